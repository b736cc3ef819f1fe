"""Saved values, gradient edges and accumulation: the same results and refusals in both libraries."""

import copy
import pickle
import threading
import warnings
import weakref

import pytest
import torch as torch_itself
from outcomes import collector, outcome

import rushlight


def cases(torch):
    found, case = collector()
    Function = torch.autograd.Function
    G = torch.autograd.graph
    L = lambda *s: torch.ones(*s, requires_grad=True)

    # allow mutation
    @case("am basic")
    def _():
        with G.allow_mutation_on_saved_tensors() as c:
            x = L(2)
            y = x.clone()
            out = (y**2).sum()
            n = len(c.original), len(c.cloned)
            y.sin_()
            m = len(c.original), len(c.cloned)
            out.backward()
            return n, m, x.grad

    @case("am views")
    def _():
        with G.allow_mutation_on_saved_tensors() as c:
            a = L(2, 2).clone()
            b = a.view_as(a)
            out = (b**2).sum()
            a.sin_()
            b.sin_()
            out.backward()
            return len(c.cloned)

    @case("am inplace foreach")
    def _():
        with G.allow_mutation_on_saved_tensors():
            a = L(2)
            b = a.clone()
            o = b * b
            b.add_(1)
            b.add_(1)
            o.sum().backward()
            return a.grad

    @case("am outside")
    def _():
        with G.allow_mutation_on_saved_tensors():
            a = L(2)
            b = a.clone()
            o = (b * b).sum()
            b.add_(1)
        o.backward()

    @case("am nested")
    def _():
        with G.allow_mutation_on_saved_tensors(), G.allow_mutation_on_saved_tensors():
            pass

    @case("am double backward")
    def _():
        with G.allow_mutation_on_saved_tensors():
            a = L(2)
            b = a.clone()
            o = b**3
            (g,) = torch.autograd.grad(o.sum(), b, create_graph=True)
            b.zero_()
            (g2,) = torch.autograd.grad(g.sum(), b)
            return g, g2

    @case("am custom function")
    def _():
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.sin()

            @staticmethod
            def backward(ctx, g):
                return g * ctx.saved_tensors[0].cos()

        with G.allow_mutation_on_saved_tensors():
            a = L(2)
            b = a.clone()
            o = F.apply(b)
            b.zero_()
            o.sum().backward()
            return a.grad

    @case("am setitem")
    def _():
        with G.allow_mutation_on_saved_tensors():
            a = L(2)
            b = a.clone()
            o = b * b
            b[0] = 7.0
            o.sum().backward()
            return a.grad

    @case("am out=")
    def _():
        with G.allow_mutation_on_saved_tensors():
            a = L(2)
            b = torch.ones(2)
            o = a * b
            torch.add(b, 5, out=b)
            o.sum().backward()
            return a.grad

    @case("am fill zero")
    def _():
        with G.allow_mutation_on_saved_tensors():
            a = L(2)
            b = torch.ones(2) * 3
            o = a * b
            b.zero_()
            b.normal_()
            o.sum().backward()
            return a.grad

    @case("am copy_")
    def _():
        with G.allow_mutation_on_saved_tensors():
            a = L(2)
            b = torch.ones(2) * 3
            o = a * b
            b.copy_(torch.zeros(2))
            o.sum().backward()
            return a.grad

    # saved tensor hooks details
    @case("hooks custom function")
    def _():
        s = []

        class F(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x, x * 2, None)
                return x.sin()

            @staticmethod
            def backward(ctx, g):
                return g * ctx.saved_tensors[0].cos()

        with G.saved_tensors_hooks(lambda x: s.append("p") or x, lambda x: s.append("u") or x):
            a = L(2)
            o = F.apply(a)
        o.sum().backward()
        return s, a.grad

    @case("hooks on int")
    def _():
        s = []
        with G.saved_tensors_hooks(lambda x: s.append(x.dtype) or x, lambda x: x):
            x = L(3)
            y = x[torch.tensor([0, 1])]
        y.sum().backward()
        return s, x.grad

    @case("hooks pickle to disk")
    def _():
        import os
        import tempfile

        d = tempfile.mkdtemp()
        n = [0]

        def p(x):
            n[0] += 1
            f = os.path.join(d, str(n[0]))
            torch.save(x, f)
            return f

        with G.saved_tensors_hooks(p, lambda f: torch.load(f)):
            x = L(3)
            y = (x * x).exp()
        y.sum().backward()
        return n, x.grad

    @case("hooks leaf pack sees")
    def _():
        s = []
        x = L(2)
        with G.saved_tensors_hooks(lambda t: s.append((t.is_leaf, t.requires_grad)) or t, lambda t: t):
            x * x
        return s

    @case("hooks double leaf")
    def _():
        x = L(2)
        with G.saved_tensors_hooks(lambda t: (t.detach().clone(),), lambda t: t[0]):
            y = x**3
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        g.sum().backward()
        return x.grad

    @case("save_on_cpu module")
    def _():
        m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
        [torch.nn.init.ones_(p) for p in m.parameters()]
        with G.save_on_cpu():
            y = m(L(1, 2))
        y.sum().backward()
        return m[0].weight.grad

    @case("unpack counts")
    def _():
        n = [0]

        def u(t):
            n[0] += 1
            return t

        x = L(2)
        with G.saved_tensors_hooks(lambda t: t, u):
            y = (x * x).sin().exp()
        y.sum().backward()
        return n

    @case("register hooks then inplace")
    def _():
        a = L(2).clone()
        y = a.sin()
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t.clone(), lambda t: t)
        a.zero_()
        y.sum().backward()
        return 1

    @case("pack returns None")
    def _():
        x = L(2)
        with G.saved_tensors_hooks(lambda t: None, lambda t: torch.ones(2) * 4):
            y = x * x
        y.sum().backward()
        return x.grad

    @case("pack wrong shape unpack")
    def _():
        x = L(2)
        with G.saved_tensors_hooks(lambda t: None, lambda t: torch.ones(3)):
            y = x.sin()
        y.sum().backward()

    @case("default device hook thread")
    def _():
        s = []
        with G.saved_tensors_hooks(lambda t: s.append(1) or t, lambda t: t):
            t = threading.Thread(target=lambda: L(2).sin())
            t.start()
            t.join()
        return s

    @case("gradient edge del")
    def _():
        x = L(2)
        y = x * 2
        e = G.get_gradient_edge(y)
        del y
        return torch.autograd.grad(e, x, torch.ones(2))

    @case("grad edge inputs unused")
    def _():
        x = L(2)
        z = L(2) * 2
        return torch.autograd.grad((x * 2).sum(), G.get_gradient_edge(z))

    @case("edge backward inputs hooks")
    def _():
        x = L(2)
        y = x * 2
        y.retain_grad()
        torch.autograd.backward((y * 3).sum(), inputs=(G.get_gradient_edge(x),))
        return x.grad, y.grad

    @case("channels last grad")
    def _():
        x = torch.ones(2, 3, 4, 4).contiguous(memory_format=torch.channels_last).requires_grad_()
        (x * 2).sum().backward()
        return x.grad.stride()

    @case("accumulate into given grad")
    def _():
        x = L(2)
        x.grad = torch.ones(2)
        g = x.grad
        (x * 2).sum().backward()
        return x.grad is g, g

    @case("zero grad set none")
    def _():
        m = torch.nn.Linear(1, 1)
        m(torch.ones(1, 1)).sum().backward()
        m.zero_grad()
        a = m.weight.grad
        m(torch.ones(1, 1)).sum().backward()
        m.zero_grad(set_to_none=False)
        return a, m.weight.grad

    @case("double accumulate shared grad buffer")
    def _():
        x, y = L(2), L(2)
        (x + y).backward(torch.ones(2))
        x.grad.add_(5)
        return y.grad

    @case("same tensor twice into cat")
    def _():
        x = L(2)
        torch.cat([x, x]).sum().backward()
        return x.grad

    @case("is_leaf after no_grad op")
    def _():
        x = L(2)
        with torch.no_grad():
            y = x + 1
        y.requires_grad_()
        return y.is_leaf, y.requires_grad

    make = torch._C._autograd._make_saved_tensor

    @case("saved by nobody")
    def _():
        x = L(2)
        shown = []
        for t in (x, x * 2, torch.ones(2)):
            saved = make(t, is_output=False)
            shown.append((saved.unpack() is t, saved.data is t, saved.unpack_hook))
            saved.register_hooks(lambda t: t * 3, lambda t: t + 1)
            shown.append((saved.data, saved.unpack(), saved.unpack().is_leaf))
        return shown

    @case("saved by nobody through hooks")
    def _():
        with G.saved_tensors_hooks(lambda t: ("packed", t.tolist()), lambda packed: torch.tensor(packed[1])):
            saved = make(L(2) * 2, False)
        return saved.data, saved.unpack().tolist(), saved.unpack().grad_fn.name()

    @case("saved by nobody and written")
    def _():
        saved = make(y := L(2) * 2, False)
        y.mul_(2)
        return saved.unpack()

    @case("saved by nobody, bad calls")
    def _():
        with pytest.raises(TypeError):
            make(3, False)
        with pytest.raises(TypeError):
            make(L(2))

    @case("an edge owns what keeps its node")
    def _():
        class Twice(Function):
            @staticmethod
            def forward(ctx, x):
                return 2 * x

            @staticmethod
            def backward(ctx, grad):
                return 2 * grad

        x = L(2)
        edges = [G.get_gradient_edge(t) for t in (x, x.sin())]
        twice = Twice.apply(x)
        with torch.no_grad():
            edge = G.get_gradient_edge(twice)
        token = edge.ownership_token
        return (
            [e.ownership_token for e in edges],
            token.name(),
            token.next_functions[0][0] is edge.node,
            torch.autograd.grad(edge, x, torch.ones(2)),
        )

    @case("a dtype for gradients belongs to the tensor, not to its copies")
    def _():
        x = L(2)
        x.grad_dtype = torch.float64
        copies = copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.detach(), x.clone().detach()
        return x.grad_dtype, vars(x), [c.grad_dtype for c in copies]

    @case("hooks that are entered or left during backward are as before when it ends")
    def _():
        stay = lambda t: t
        outer, inner = G.saved_tensors_hooks(stay, stay), G.saved_tensors_hooks(stay, lambda t: inner_left(t))
        top = lambda: torch._C._autograd._top_saved_tensors_default_hooks(False)
        tops = []

        def inner_left(t):
            inner.__exit__()
            return t

        with outer:
            inner.__enter__()
            L(2).sin().sum().backward()
            tops.append(top() == (inner.pack_hook, inner.unpack_hook))
            inner.__exit__()

        def entered(t):
            weak().__enter__()
            return t

        entering = G.saved_tensors_hooks(stay, entered)
        weak = weakref.ref(entering)
        with entering:
            L(2).sin().sum().backward()
        left = weakref.ref(entering)
        del entering
        return tops, top(), left() is None

    @case("hooks rest while a graph is traced, and none may be added where that is forbidden")
    def _():
        A, packed, seen = torch._C._autograd, [], []
        with G.saved_tensors_hooks(lambda t: (packed.append(1), t)[1], lambda t: t):
            L(2).sin()
            seen.append((A._saved_tensors_hooks_set_tracing(True), len(packed)))
            L(2).sin()
            seen.append((len(packed), A._top_saved_tensors_default_hooks(False)))
            seen.append(len(A._top_saved_tensors_default_hooks(True)))
            seen.append(A._saved_tensors_hooks_set_tracing(False))
            A._saved_tensors_hooks_disable("not now", fail_if_non_empty=False)
            L(2).sin()
            try:
                A._push_saved_tensors_default_hooks(id, id)
            except RuntimeError as error:
                seen.append(str(error).splitlines()[0])
            A._saved_tensors_hooks_enable()
        return seen, len(packed)

    @case("handles on the tensors of a list unpack nothing")
    def _():
        unpacked = []
        with G.saved_tensors_hooks(lambda t: t, lambda t: (unpacked.append(1), t)[1]):
            node = L(3)[torch.tensor([0, 2])].grad_fn
        handles = node._raw_saved_indices
        return len(handles), len(unpacked), len(node._saved_indices), len(unpacked)

    @case("constants of a class of one's own are saved themselves")
    def _():
        asked = []

        class Own(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                asked.append(func.__name__)
                return super().__torch_function__(func, types, args, kwargs)

        seen = []
        for use in (lambda x, k: x * k, lambda x, k: x / k, lambda x, k: x @ k, lambda x, k: x**k):
            x, k = L(2, 2), torch.ones(2, 2).as_subclass(Own)
            k.mark = 3
            y = use(x, k)
            node = y.grad_fn.next_functions[0][0]
            (name,) = {"_saved_other", "_saved_mat2", "_saved_exponent"} & set(dir(node))
            kept = getattr(node, name)
            seen += [node.name(), kept is k, type(kept) is Own, kept.mark]
            alive, total = weakref.ref(k), y.sum()
            del k, kept
            asked.clear()
            seen.append(alive() is not None)
            total.backward()
            seen += [asked.copy(), alive() is None, x.grad.tolist()]
        return seen

    @case("the order in which values are packed and unpacked, also where a formula is taken again")
    def _():
        F, told = torch.nn.functional, []

        def note(kind):
            return lambda t: (told.append((kind, t.detach().clone())), t)[1]

        with G.saved_tensors_hooks(note("pack"), note("unpack")):
            x, y = L(3, 2), L(4, 2) * 2
            torch.cdist(x, y).abs().sum().backward(retain_graph=True)
            torch.cdist(x, y, p=1.0).sum().backward(retain_graph=True)
            a, b = L(3) * 0.5, L(3) * 0.25
            for reduction in ("none", "sum", "batchmean"):
                F.kl_div(a, b, reduction=reduction).sum().backward(retain_graph=True)
            F.pdist(x).sum().backward()
            F.silu(a).sum().backward(retain_graph=True)
            F.poisson_nll_loss(a, b).backward(retain_graph=True)
            u, v, square = L(3) * 0.5, L(3) * 0.25, (torch.eye(3) * 2 + 0.25).requires_grad_()
            index = torch.tensor([0, 1])
            results = [torch.vdot(u, v), torch.linalg.cross(u, v), u.gather(0, index), torch.dist(u, v)]
            results += [F.prelu(u, L(1)), torch.logaddexp(u, v), torch.linalg.slogdet(square)[1]]
            results += [torch.linalg.det(square), torch.linalg.svdvals(square)]
            results += [F.grid_sample(L(1, 1, 2, 2), L(1, 2, 2, 2) * 0.5, align_corners=False)]
            torch.stack([each.sum() for each in results]).sum().backward()
        return [(kind, t.mul(1000).round() + 0.0 if t.is_floating_point() else t) for kind, t in told]

    @case("polar and sampled_addmm let their operands be written, and take those of inference mode")
    def _():
        def told(call, operands, wanted, written):
            operands = [t.clone() if t.layout == torch.strided else t.detach() for t in operands]
            leaves = [operands[n].requires_grad_() for n in wanted]
            given = [t if t.layout != torch.strided else t * 1 for t in operands]
            result = call(*given)
            if written is not None:
                torch.autograd.graph.increment_version([*given[-2:], result][written].detach())
            dense = result.to_dense() if result.layout != torch.strided else result
            loss = (dense.real * 2 + dense.imag).sum() if dense.is_complex() else dense.sum()
            try:
                found = torch.autograd.grad(loss, leaves)
            except RuntimeError as error:
                return str(error).split(" Hint")[0]
            dense = [g.to_dense() if g.layout != torch.strided else g for g in found]
            return [g.mul(1000).round() + 0.0 for g in dense]

        with warnings.catch_warnings(), torch.inference_mode():
            warnings.simplefilter("ignore")
            frozen = torch.ones(2, 2)
        a, b = torch.full((2, 2), 0.5), torch.full((2, 2), 0.25)
        seen = [told(torch.polar, (a, b), wanted, written)
                for wanted in ([0], [1], [0, 1]) for written in (None, 0, 1, 2)]  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mask = torch.eye(2).to_sparse_csr()
        sampled = torch.sparse.sampled_addmm
        seen += [told(sampled, (mask, a, b), wanted, written)
                 for wanted in ([0], [1], [2], [0, 1], [1, 2]) for written in (None, 0, 1)]  # fmt: skip
        x = L(2, 2)
        for result in (torch.polar(frozen, x), torch.polar(x, frozen)):
            seen.append(result.grad_fn.name())
        return seen, told(torch.polar, (a, -b), [0, 1], None)

    @case("who looks on sees each value unpacked once")
    def _():
        F = torch.nn.functional

        class Seen(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                told.append(str(func))
                return func(*args, **(kwargs or {}))

        calls = {
            "outer": lambda: torch.outer(L(3), L(3)),
            "linear": lambda: F.linear(L(3, 4), L(5, 4), L(5)),
            "bmm": lambda: torch.matmul(L(2, 3, 3), L(2, 3, 4)),
            "exp": lambda: L(3).exp(),
            "relu": lambda: F.relu(L(3)),
            "softmax": lambda: L(2, 3).softmax(-1),
            "of a result": lambda: (L(3) * 2).sin() * L(3),
            "norm": lambda: L(3).norm(),
            "pool": lambda: F.max_pool1d(L(1, 1, 4), 2),
        }
        seen = {}
        for name, call in calls.items():
            told = []
            with G.saved_tensors_hooks(lambda t: t, lambda t: t), Seen():
                call().sum().backward()
            seen[name] = told
        return seen

    return found


@pytest.mark.parametrize("name", cases(rushlight))
def test_as_in_torch(name):
    expected = outcome(cases(torch_itself)[name])
    assert outcome(cases(rushlight)[name]) == expected
