"""What nodes and passes show at the edges: hooks that come late, batches, warnings said once."""

import warnings

import pytest
import torch as torch_itself
from corners import same_in_torch, short_names
from outcomes import collector, err, function_of, passing_on

import rushlight


def cases(torch):
    found, case = collector()
    L = short_names(torch).L
    passing = passing_on(torch)

    @case("tensors made of tensors by the old constructors")
    def _():
        x, c, found = L(2), torch.ones(2), []
        y = x * 2
        sub = type("Sub", (torch.Tensor,), {})
        made = (torch.Tensor, torch.FloatTensor, x.new, c.new, sub, lambda t: torch.Tensor(other=t))
        for make in made:
            for t in (x, y, c, y[:1]):
                z = make(t)
                edges = z.grad_fn and [n.name() for n, _ in z.grad_fn.next_functions]
                found.append((type(z).__name__, z.requires_grad, z.is_leaf, edges, z._base is t, z._version))
        z = torch.Tensor(y)
        (z * z).sum().backward()
        b = x * 1
        torch.Tensor(b).mul_(3)
        with torch.no_grad():
            unrecorded = torch.Tensor(x)
        refused = err(torch.Tensor, x, device="cpu")
        return found, x.grad, b, unrecorded.requires_grad, unrecorded._is_view(), refused

    @case("calls that do not fit")
    def _():
        x = L(2)
        node, loss = (x * 2).grad_fn, x.sum()
        return (
            [err(f) for f in (node.register_hook, node.register_prehook, x.register_hook)],
            err(node.register_hook, 1, 2),
            [err(loss.backward, **{name: 2.5}) for name in ("retain_graph", "bad")],
            err(torch.autograd.set_multithreading_enabled, "a"),
            err(torch.autograd._force_original_view_tracking, 1),
        )

    @case("nodes of primals")
    def _():
        x = L(2)
        dual_level, make_dual, unpack_dual = (
            getattr(torch.autograd.forward_ad, name) for name in ("dual_level", "make_dual", "unpack_dual")
        )
        with dual_level():
            d = make_dual(x * 2, torch.ones(2))
            found = [unpack_dual(t).primal for t in (d, d * 2, x)]
            found[0].sum().backward(retain_graph=True)
            return [(t, [n.name() for n, _ in t.grad_fn.next_functions]) for t in found], x.grad

    class Registers(torch.autograd.graph.saved_tensors_hooks):
        """Unpacking adds a hook after the node that asks, which halves what it gives."""

        def __init__(self, seen):
            def unpack(x):
                def halve(inputs, outputs):
                    seen.append((inputs, outputs))
                    return tuple(g / 2 for g in inputs)

                torch._C._current_autograd_node().register_hook(halve)
                return x

            super().__init__(lambda x: x, unpack)

    @case("hooks from unpacking see no gradients")
    def _():
        seen, a = [], L(2)
        with Registers(seen):
            b = a * a.clone()
        b.sum().backward()
        return seen, a.grad

    @case("hooks from unpacking see them if others were there before")
    def _():
        seen, a = [], L(2)
        with Registers(seen):
            b = a.sin()
        b.grad_fn.register_hook(lambda *given: seen.append(given))
        b.sum().backward()
        return seen, a.grad

    @case("the hooks of a Function that unpacks")
    def _():
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, g):
                return 2 * g * ctx.saved_tensors[0]

        seen, a = [], L(2)
        with Registers(seen):
            b = F.apply(a)
        b.sum().backward()
        return seen, a.grad

    def late(register):
        seen, a = [], L(2)
        b = a * 1
        node = b.grad_fn.next_functions[0][0]
        register(a, node, lambda *_: node.register_hook(lambda *given: seen.append(given)) and None)
        b.sum().backward()
        return seen

    case("late hooks of a leaf, from its own")(lambda: late(lambda a, node, f: a.register_hook(f)))
    case("from hooks before its node")(lambda: late(lambda a, node, f: node.register_prehook(f)))
    case("from hooks after its gradient")(
        lambda: late(lambda a, node, f: a.register_post_accumulate_grad_hook(f))
    )

    @case("whose turn it is")
    def _():
        seen = []

        def note(what):
            def hook(*_):
                seen.append((what, type(torch._C._current_autograd_node()).__name__))

            return hook

        @passing
        def F(ctx, g):
            with torch.enable_grad():
                inner = L(1) * 3
                inner.register_hook(note("inside"))
                inner.backward()
            note("after it")()
            return g

        x = L(2)
        y = x * 2
        node, leaf = y.grad_fn, y.grad_fn.next_functions[0][0]
        y.register_hook(note("tensor"))
        node.register_prehook(note("before"))
        node.register_hook(note("after"))
        x.register_hook(note("leaf"))
        leaf.register_prehook(note("before leaf"))
        leaf.register_hook(note("after leaf"))
        x.register_post_accumulate_grad_hook(note("accumulated"))
        F.apply(y).sum().backward(retain_graph=True)
        torch.autograd.grad(y.sum(), (x, y))
        note("none")()
        return seen

    @case("what active hooks are shown")
    def _():
        shown = []

        def pack(x):
            shown.append(x)
            return x

        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y = x * 2
                ctx.save_for_backward(x, y)
                return y

            @staticmethod
            def backward(ctx, g):
                return 2 * g

        def unpack(x):
            unpacked.append([x is t for t in known])
            return x

        unpacked, a = [], L(2)
        b = a * 1
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            known = [a, b, a * b, b.exp(), F.apply(b), torch.softmax(b, 0), b.norm()]
        seen = [([x is t for t in known], x.requires_grad, x.is_leaf) for x in shown]
        sum(t.sum() for t in known[2:]).backward()
        return seen, sorted(unpacked), a.grad

    @case("what later hooks are shown, and what is kept")
    def _():
        a = L(2)
        b = a * 1
        y, z = a * b, b.exp()
        handles = [y.grad_fn._raw_saved_self, y.grad_fn._raw_saved_other, z.grad_fn._raw_saved_result]
        r = [[h.data is t for t in (a, b, z)] + [h.data.requires_grad, h.unpack_hook] for h in handles]
        r.append([handles[0].unpack() is a, handles[1].unpack() is b])
        for h in handles:
            h.register_hooks(lambda x: r.append((x.requires_grad, x.is_leaf, x is a)) or x, lambda x: x * 1)
        (y + z).sum().backward()
        return r, [h.data for h in handles], a.grad

    @case("kept whatever was written to it")
    def _():
        b = L(2) * 1
        handle = (b * b).grad_fn._raw_saved_self
        with torch.no_grad():
            b.add_(1)
        return handle.data is b, err(handle.unpack)

    @case("pieces that count apart")
    def _():
        r = []
        for pieces in (
            lambda t: t.unsafe_split(1),
            lambda t: t.unsafe_split_with_sizes((1, 1, 1)),
            lambda t: t.unsafe_chunk(3),
        ):
            a = L(3, 3)
            b = a + a
            one, two, _ = pieces(b)
            one.mul_(two)
            r.append((one._version, two._version, b._version))
            one.sum().backward()
            r.append(a.grad)
        return r

    @case("data counts apart")
    def _():
        x, w = torch.ones(2), L(2)
        first, second = x.data, x.data
        product, parts = first * w, first[:1] * w
        versions = [(x._version, first._version, second._version, x.data._version)]
        second.add_(1)
        x.mul_(1)
        versions.append((x._version, first._version, second._version, x.data._version))
        product.sum().backward(retain_graph=True)
        first.add_(1)
        versions.append((x._version, first._version, first.detach()._version, first.data._version))
        return versions, w.grad, err(product.sum().backward), err(parts.sum().backward)

    @case("numbers set by the program")
    def _():
        r = []
        for numbers in ((100, 99, 98), (1, 2, 3), (3, 2, 1)):
            x, y, z = L(3), L(3), L(3)
            a, b = x * y, y * z
            c = a * b
            for t, number in zip((a, b, c), numbers, strict=True):
                t.grad_fn._set_sequence_nr(number)
            loss = c.sum()
            r.append(torch.autograd.grad(loss, (x, y, z), retain_graph=True))
            r.append(torch.autograd.grad(loss, a, retain_graph=True))
            loss.backward(inputs=(x, z))
            r.append((x.grad, y.grad, z.grad))
        return r

    @case("leaves are not numbered")
    def _():
        first, second = L(1) * L(1), L(1) * L(1)
        return second.grad_fn._sequence_nr() - first.grad_fn._sequence_nr()

    def names_behind(write, part):
        base = L(3, 3).clone()
        written = base[0] if part else base
        write(written)
        return base.grad_fn.name(), [node and node.name() for node, _ in base.grad_fn.next_functions]

    writes = {
        "masked_fill_": lambda v: v.masked_fill_(v > 0, 2.0),
        "index_fill_": lambda v: v.index_fill_(0, torch.tensor([0]), 2.0),
        "index_add_": lambda v: v.index_add_(0, torch.tensor([0]), v.detach()[:1]),
        "fill_": lambda v: v.fill_(1.0),
        "zero_": lambda v: v.zero_(),
        "mul_ by a leaf": lambda v: v.mul_(L(3)),
        "clamp_ by tensors": lambda v: v.clamp_(torch.zeros(3), torch.ones(3)),
        "clamp_min_ by a tensor": lambda v: v.clamp_min_(torch.zeros(3)),
    }
    for name, write in writes.items():
        case(f"behind {name}")(lambda write=write: names_behind(write, False))
        if not name.startswith("clamp"):  # composed here, and one node in torch
            case(f"behind {name} of a view")(lambda write=write: names_behind(write, True))

    @case("batches without gradients")
    def _():
        x = L(2)
        grad = torch.autograd.grad
        return [
            err(grad, x.sum(), x, is_grads_batched=True),
            err(grad, (x.sum(), x * 2), x, (None, torch.ones(3, 2)), is_grads_batched=True),
        ]

    @case("a profile that has not ended")
    def _():
        profile = torch.autograd.profiler.profile()
        return str(profile), repr(profile)

    @case("traced functions")
    def _():
        def double(x):
            return 2 * x

        return [
            torch.jit.trace(double, torch.ones(2))(torch.ones(1)),
            torch.jit.trace(double, example_kwarg_inputs={"x": torch.ones(2)})(torch.ones(1)),
            torch.jit._wait(torch.jit._fork(torch.jit.trace(double, (torch.ones(2),)), torch.ones(3))),
        ]

    @case("what nodes with statistics and factors take and show")
    def _():
        x, square, F = L(2, 3), torch.eye(2).requires_grad_(), torch.nn.functional
        results = (
            F.layer_norm(x, (3,)), F.batch_norm(x, None, None, training=True), torch.linalg.det(square),
            torch.linalg.slogdet(square)[1], torch.linalg.solve(square, square), x.max(1)[0], x.unbind()[0],
        )  # fmt: skip
        found = []
        for y in results:
            node = y.grad_fn
            kept = [getattr(node, name, None) for name in ("_saved_result1", "_saved_result2", "_saved_LU")]
            takes = [(list(each.shape), str(each.dtype)[-7:]) for each in node._input_metadata]
            shown = [(t.requires_grad, t.is_leaf, t.shape) for t in kept if t is not None]
            found.append((node.name(), takes, shown))
        return found

    @case("which output of an operation was written")
    def _():
        def written(operation, which):
            outputs = operation(L(3, 3) + torch.eye(3))
            with torch.no_grad():
                outputs[which].add_(1)
            return err(sum(each.abs().sum() for each in outputs).backward)

        linalg = torch.linalg
        operations = ((linalg.svd, 3), (linalg.qr, 2), (linalg.eigh, 2), (torch.std_mean, 2))
        return [written(operation, which) for operation, n in operations for which in range(n)]

    @case("recorded gradients of what was written through a view")
    def _():
        def graph(node, depth=0):
            if node is None or depth > 6:
                return "None" if node is None else "..."
            return f"{node.name()}({', '.join(graph(n, depth + 1) for n, _ in node.next_functions)})"

        def passing_twice(ctx, g):
            seen.append(graph(g.grad_fn))
            return g * 2

        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        twice = function_of(torch, forward, passing_twice)
        found, seen = [], []
        for cut in (lambda b: b[:2], lambda b: b.view(2, 2).t(), lambda b: b.view(2, 2).diagonal()):
            for write in (lambda v, y: twice.apply(v), lambda v, y: v.mul_(3), lambda v, y: v.copy_(y)):
                x, y = L(4), L(1)
                b = x * 1
                write(cut(b), y * 3)
                grads = torch.autograd.grad((b * b).sum(), [x, y], create_graph=True, allow_unused=True)
                grads = [g for g in grads if g is not None]
                again = torch.autograd.grad(sum((g * g).sum() for g in grads), x)
                found.append(([graph(g.grad_fn) for g in grads], grads, again))
        return found, seen

    @case("recorded gradients of real tensors among complex ones")
    def _():
        found = []
        for operation in (lambda x, z: x + z, lambda x, z: x.to(torch.complex64) * 2, lambda x, z: z - x):
            x, z = L(2), torch.tensor([1 + 2j, 3 - 1j])
            (grad,) = torch.autograd.grad(operation(x, z).abs().sum(), x, create_graph=True)
            path, node = [], grad.grad_fn
            while node and len(path) < 4:
                path.append(node.name())
                node = next((n for n, _ in node.next_functions if n), None)
            found.append((path, grad, grad.stride(), torch.autograd.grad((grad * grad).sum(), x)))
        return found

    @case("gradients of what was written through an expanded view")
    def _():
        found = []
        for cut in (lambda b: b.expand(2, 4), lambda b: b[:1].expand(3), lambda b: b.expand(1, 4)):
            for write in (lambda v: v.zero_(), lambda v: v.fill_(3.0), lambda v: v.view_as(v).zero_()):
                for recorded in (False, True):
                    x = L(4)
                    base = x * 1
                    write(cut(base))
                    grad = torch.autograd.grad
                    found.append(err(grad, (base * base).sum(), x, create_graph=recorded))
        return found

    @case("gradients of another layout than the leaf's")
    def _():
        found = []
        for turned in (lambda g: g.t(), lambda g: g.permute(1, 0), lambda g: g.contiguous().t()):
            for taken in (True, False):
                x = L(2, 3)
                kept = torch.ones(3, 2)
                give = passing_on(torch)(lambda ctx, g, t=turned, k=kept, own=taken: t(k * 2 if own else k))
                with torch.autograd.enforce_grad_layout_policy(False):
                    give.apply(x).sum().backward()
                found.append((x.grad.stride() if taken else None, x.grad.sum(), x.grad._is_view()))
                x.grad.mul_(2)
                found.append(kept.sum() if taken else None)
        x = L(2, 3)
        with torch.autograd.enforce_grad_layout_policy(False):
            (x.t() * torch.ones(3, 2)).sum().backward()
            before = x.grad.stride()
            (x * 2).sum().backward()
        return found, before, x.grad, x.grad.stride()

    @case("the engine below backward and grad")
    def _():
        x, other, one = L(2), L(2), torch.tensor(1.0)
        edge = torch.autograd.graph.get_gradient_edge
        run = torch.autograd.Variable._execution_engine.run_backward

        def calls():
            y = (x * 2).sum()
            yield (y,), (one,), True, False, (x, other)
            yield (y,), (one,), True, False, (x, other), True
            yield (y,), (one,), True, False, (x, other), False, True
            yield (y,), (one,), True, False, (), False, True
            yield (y,), (one,), True, False, None, False, True
            yield (y,), (one,), True, False, [x]
            yield (y,), (one,), True, False, (1,)
            yield (y,), (one,), True, False, (torch.ones(2),)
            yield (y,), (None,), True, False, (x,)
            yield (y,), (3,), True, False, (x,)
            yield (y, y), (one,), True, False, (x,)
            yield (y, 1), (one, one), True, False, (x,)
            yield [y], (one,), True, False, (x,)
            yield (y,), [one], True, False, (x,)
            yield (torch.ones(1),), (one,), True, False, (x,)
            yield (edge(y),), (one,), True, False, (edge(x),)

        return [(err(run, *call), x.grad) for call in calls()]

    @case("the old name of tensors refuses integers")
    def _():
        return err(torch.autograd.Variable, torch.ones(2, dtype=torch.int64), requires_grad=True)

    return found


test_as_in_torch = same_in_torch(cases)


def test_packed_results_are_collected():
    import gc
    import weakref

    freed = []
    for pack in (lambda x: x, lambda x: (x,), lambda x: x.view(-1)):
        with rushlight.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            y = rushlight.ones(2, requires_grad=True).exp()
        alive = weakref.ref(y)
        del y
        at_once = alive() is None
        gc.collect()
        freed.append((at_once, alive() is None))
    assert freed == [(True, True), (False, True), (False, True)]


CALLED = """
L(3).expand(2, 3); L(1, 3).expand(2, 3); torch.ones((), requires_grad=True).expand(2); L(2).broadcast_to(4, 2)
L(3).double(); L(3).half(); L(2) * torch.ones(2, dtype=torch.complex64); L(2) + torch.tensor([1j, 2j])
torch.complex(L(2), L(2) * 3); torch.polar(L(2), L(2) * 2); torch.logaddexp(L(2), L(2) * 2)
torch.cdist(L(2, 3), L(2, 3) * 2); torch.dist(L(3), L(3) * 4, 3); torch.kron(L(2), L(3))
L(2, 3).std(0); L(4).var()
torch.nn.functional.gelu(L(3), approximate="tanh"); torch.nn.functional.huber_loss(L(3), L(3) * 3)
torch.hypot(L(2), L(2) * 3); torch.xlogy(L(2), L(2) * 2); torch.special.entr(L(2))
torch.logsumexp(L(2, 2), 1)
L(2, 3).norm(dim=1); torch.nn.functional.normalize(L(2, 3)); torch.cosine_similarity(L(2, 3), L(2, 3) * 2)
"""


@pytest.mark.parametrize("expression", [e.strip() for e in CALLED.replace("\n", ";").split(";") if e.strip()])
def test_nodes_that_are_called_give_the_derivative_of_torchs_operation(expression):
    def gradients(torch):
        torch.manual_seed(0)
        leaves = lambda *sizes: (torch.rand(sizes) + 0.5).requires_grad_()
        y = eval(expression, {"torch": torch, "L": leaves})
        weight = torch.ones_like(y).requires_grad_()
        found = y.grad_fn(weight)
        found = found if isinstance(found, tuple) else (found,)
        there = [g for g in found if g is not None]
        shown = [(list(g.shape), str(g.dtype).rpartition(".")[2], g.requires_grad) for g in there]
        shown.append([g is None for g in found])
        values = [torch.view_as_real(g.double() + 0j).flatten().tolist() for g in there]
        return shown, [[round(value, 3) for value in each] for each in values], y.grad_fn.name()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, of dtypes that are being tried out
        assert gradients(rushlight) == gradients(torch_itself)


def test_a_call_does_not_guess_how_much_comes_from_which_of_two():
    x = rushlight.ones(2, requires_grad=True)
    with pytest.raises(NotImplementedError, match="given a tensor twice"):
        rushlight.polar(x, x).grad_fn(rushlight.ones(2, dtype=rushlight.complex64))


def times_warned(torch, always):
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(always)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                torch.ones(2, dtype=torch.complex64).to(torch.int16)
        return len(caught)
    finally:
        torch.set_warn_always(before)


def test_warnings_that_are_always_given_do_not_count_as_said():
    from rushlight import _warn

    _warn._warned.discard("Casting complex values to real discards the imaginary part")
    assert [times_warned(rushlight, always) for always in (True, False, True)] == [2, 1, 2]
    assert times_warned(torch_itself, True) == 2
