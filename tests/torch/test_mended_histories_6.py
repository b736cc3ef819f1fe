"""What programs about histories found in views that turn a tensor, in modes and in transforms."""

import contextlib
import importlib

import pytest
from corners import same_in_torch
from outcomes import collector, err

pytestmark = pytest.mark.torch


def cases(torch):
    found, case = collector()
    fw = importlib.import_module(f"{torch.__name__}.autograd.forward_ad")

    def seen(tensor):
        node = tensor.grad_fn
        return (
            tuple(tensor.shape), tensor.stride(), tensor._version, tensor.requires_grad, tensor._is_view(),
            node and (node.name(), [after and after.name() for after, _ in node.next_functions]),
        )  # fmt: skip

    def tangents(start):
        """A tensor, the tangent it was given, and the dual number of both."""
        made = torch.arange(6.0, 12.0).reshape(2, 3)
        tangent = {
            "plain": lambda: made, "leaf": lambda: made.requires_grad_(),
            "result": lambda: made.requires_grad_() * 1, "expanded": lambda: torch.ones(1).expand(2, 3),
        }[start]()  # fmt: skip
        primal = torch.arange(6.0).reshape(2, 3)
        return tangent, fw.make_dual(primal, tangent)

    turns = {
        "t": lambda d: d.t_(), "transpose": lambda d: d.transpose_(0, 1), "swap": lambda d: d.swapaxes_(0, 1),
        "squeeze": lambda d: d.unsqueeze_(1).squeeze_(1), "as_strided": lambda d: d.as_strided_((3,), (2,)),
        "twice": lambda d: d.t_().mul_(2).t_(),
    }  # fmt: skip

    for start in ("plain", "leaf", "result", "expanded"):
        for name, turn in turns.items():

            @case(f"{name} turns the tangent itself: {start}")
            def _(start=start, turn=turn):
                told = []
                for recorded in (True, False):
                    with fw.dual_level(), torch.set_grad_enabled(recorded):
                        tangent, dual = tangents(start)
                        of_view = dual[0]
                        held = fw.unpack_dual(of_view).tangent
                        told.append(err(lambda turn=turn, dual=dual: turn(dual) is dual))
                        if told[-1] is not True:
                            continue
                        told += [seen(tangent), seen(held), fw.unpack_dual(dual).tangent.tolist()]
                        of_view.unsqueeze_(0)
                        told += [seen(held), seen(fw.unpack_dual(dual).tangent), seen(dual)]
                return told

    @case("a tangent of more digits than its primal is computed in those")
    def _():
        told, functions = [], [
            lambda d: d * d, lambda d: d * 2, lambda d: d.sin(), lambda d: d.exp(), lambda d: d / d,
            lambda d: d**2, lambda d: d.sigmoid(), lambda d: d.mean(), lambda d: d.softmax(0),
            lambda d: d + 1, lambda d: d.norm(), lambda d: d.clone().mul_(d), lambda d: d.tanh(),
            lambda d: d.cumsum(0), lambda d: torch.where(d > 0, d, d),
        ]  # fmt: skip
        for function in functions:
            for recorded in (True, False):
                for dtypes in ((torch.float32, torch.float64), (torch.float64, torch.float32)):
                    primal = torch.tensor([0.5, 2.0], dtype=dtypes[0], requires_grad=recorded)
                    tangent = torch.tensor([1.0, -0.25], dtype=dtypes[1])
                    with fw.dual_level():
                        made = fw.unpack_dual(function(fw.make_dual(primal, tangent)))
                        if dtypes[1] == torch.float64:
                            told.append((made.tangent.dtype, made.primal.dtype))
                        told.append([round(x, 5) for x in made.tangent.reshape(-1).tolist()])
        return told

    @case("a leaf is refused before its dtype")
    def _():
        w, z = torch.rand(2, requires_grad=True), torch.rand(2) + 1j
        names = ("clamp_", "clamp_min_", "clamp_max_")
        return [err(lambda name=name: getattr(w, name)(z)) for name in names]

    @case("steps of optimisers are counted as torch writes")
    def _():
        told, options = [], ({}, {"weight_decay": 0.1}, {"amsgrad": True}, {"maximize": True})
        for name in ("SGD", "Adam", "AdamW", "RMSprop", "NAdam", "RAdam", "Adamax", "Adadelta", "Adagrad"):
            for foreach in (False, None):
                for more in options:
                    if "amsgrad" in more and not name.startswith("Adam"):
                        continue
                    w = torch.rand(2, 2, requires_grad=True)
                    optimiser = err(getattr(torch.optim, name), [w], lr=0.1, foreach=foreach, **more)
                    for _ in range(2 * (not isinstance(optimiser, str))):
                        w.grad = torch.ones(2, 2)
                        optimiser.step()
                        state = optimiser.state[w].items()
                        kept = [
                            (key, v._version) for key, v in state if isinstance(v, torch.Tensor) and v.dim()
                        ]
                        told.append((name, w._version, w.grad._version, kept))
        return told

    @case("norms of empty matrices are constants")
    def _():
        told = []
        for sizes in ((0, 2), (2, 0), (0, 0), (3, 0, 2), (2, 2)):
            for order in (2, 1, float("inf"), "fro", "nuc"):
                made = err(torch.linalg.norm, torch.zeros(sizes, requires_grad=True) * 2, order, (0, 1))
                told.append(made if isinstance(made, str) else (made.requires_grad, made.tolist()))
        return told

    @case("a sparse tensor of a class of its own is refused")
    def _():
        class Sub(torch.Tensor):
            pass

        makes = [lambda x: x.to_sparse(), lambda x: x.to_sparse_csr(), lambda x: x.to_sparse_csc()]
        makes.append(lambda x: x.to_sparse_bsr((1, 1)))
        eye = torch.eye(2)
        return [err(lambda m=m: m(eye).as_subclass(Sub)) for m in makes] + [
            err(lambda m=m: m(eye.as_subclass(Sub)).to_dense()) for m in makes
        ]

    @case("what is wrong with a view of other bytes, and with an outer product")
    def _():
        narrow, w = torch.rand(2, 2, dtype=torch.bfloat16), torch.rand(2, 2, requires_grad=True)
        flat, plain = torch.rand(4), torch.rand(2, 2)
        return [
            err(narrow.t().view, torch.complex64), err(narrow.t().view, torch.float32),
            err(torch.rand(3, 2).t().view, torch.float64), err(torch.rand(2, 4).t().view, torch.float64),
            err(w.addr_, w[0], w[1]), err(flat.addr_, flat[:2], flat[2:]),
            err(plain.addr_, plain[0], plain[1]), err(plain.clamp_min_, plain + 1j),
            err(plain.clamp_max_, plain + 1j),
        ]  # fmt: skip

    F = torch.nn.functional
    calls = {
        "huber": lambda a, b: F.huber_loss(a, b),
        "huber of a row": lambda a, b: F.huber_loss(a[0], b),
        "huber by a row": lambda a, b: F.huber_loss(a, b[0], reduction="none", delta=0.5),
        "logsigmoid": lambda a, b: F.logsigmoid(a),
        "polar": lambda a, b: torch.polar(a, b),
        "polar by a constant": lambda a, b: torch.polar(a, b.detach()),
        "gumbel": lambda a, b: F.gumbel_softmax(a),
        "hard gumbel": lambda a, b: F.gumbel_softmax(a, hard=True),
        "rrelu": lambda a, b: F.rrelu(a - 0.5),
        "rrelu in training": lambda a, b: F.rrelu(a - 0.5, training=True),
        "group norm": lambda a, b: F.group_norm(a, 1),
        "weighted group norm": lambda a, b: F.group_norm(a, 2, b[0], b[1]),
        "lstsq": lambda a, b: torch.linalg.lstsq(a, b)[0],
        "lstsq of a vector": lambda a, b: torch.linalg.lstsq(a, b[0].detach())[0],
        "as_strided_scatter": lambda a, b: torch.as_strided_scatter(a.contiguous(), b[0], (2,), (1,)),
        "diagonal_scatter": lambda a, b: torch.diagonal_scatter(a, b[0]),
        "rms norm": lambda a, b: F.rms_norm(a[:, :1], (1,), b[0]),
        "jacrev": lambda a, b: torch.func.jacrev(lambda q: (q * q).sum())(b[0]),
        "jacrev of a number": lambda a, b: torch.func.jacrev(lambda q: q * q)(b[0, 0]),
    }

    def recorded(call, wanted, turned, hooked):
        torch.manual_seed(3)
        a, b = (torch.rand(2, 2, dtype=torch.float64) + 0.2 for _ in range(2))
        a, b = (a.t(), b.t()) if turned else (a, b)
        a.requires_grad_(wanted != "none")
        b.requires_grad_(wanted == "both")
        hooks = torch.autograd.graph.saved_tensors_hooks(lambda v: v.clone(), lambda v: v)
        with hooks if hooked else contextlib.nullcontext():
            made = err(call, a, b)
        if isinstance(made, str):
            return made
        base = made._base is not None and tuple(made._base.shape)
        numbers = torch.view_as_real(made.detach() + 0j).reshape(-1).tolist()
        return seen(made), base, [round(x, 5) for x in numbers]

    for name, call in calls.items():
        for wanted in ("both", "first", "none"):

            @case(f"{name} is recorded as torch does: {wanted}")
            def _(call=call, wanted=wanted):
                return [recorded(call, wanted, t, hooked) for t in (False, True) for hooked in (False, True)]

    for name in ("layer_norm", "solve", "det", "slogdet", "cholesky", "mm"):

        @case(f"what is detached for {name} while somebody looks on")
        def _(name=name):
            modes = importlib.import_module(f"{torch.__name__}.utils._python_dispatch")
            told = []

            class Mode(modes.TorchDispatchMode):
                def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                    told.append(str(func).startswith("aten.detach"))
                    return func(*args, **(kwargs or {}))

            function = {
                "layer_norm": lambda x, w: torch.nn.functional.layer_norm(x, (3,), w[0], w[1]),
                "solve": torch.linalg.solve,
                "det": lambda x, w: torch.det(x),
                "slogdet": lambda x, w: torch.slogdet(x)[1],
                "cholesky": lambda x, w: torch.linalg.cholesky(x @ x.mT + torch.eye(3)),
                "mm": lambda x, w: x @ w,
            }[name]
            counts = []
            for hooks in (False, True):
                x, w = (torch.rand(3, 3, requires_grad=True) for _ in range(2))
                keep = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
                with Mode(), keep if hooks else contextlib.nullcontext():
                    made = function(x, w)
                    counts.append(sum(told))
                    torch.autograd.grad(made.sum(), (x, w), allow_unused=True)
                counts.append(sum(told))
            return counts

    @case("a table of inference mode is shortened, and nothing cut to pieces")
    def _():
        with torch.inference_mode():
            table = torch.ones(3, 2) * 2
        at, nothing = torch.tensor([0, 2]), torch.zeros(0, 2, requires_grad=True)
        told = [torch.nn.functional.embedding(at, table, max_norm=0.5), table.clone()]
        told += [err(torch.embedding_renorm_, table, at, 0.3, 2.0), table.is_inference()]
        parts = (
            torch.unsafe_chunk(nothing, 2)[0],
            torch.unsafe_chunk(nothing, 2, 1)[0],
            torch.chunk(nothing, 2)[0],
        )
        return told, [part.grad_fn.name() for part in parts]

    @case("a logsigmoid of a view that was written is recorded with its history")
    def _():
        x = torch.rand(2, 2, requires_grad=True)
        e = x * 1
        part = e[:, 1:]
        e.mul_(2)
        made = torch.nn.functional.logsigmoid(part)
        b = torch.rand(3, 2, requires_grad=True)
        solved = torch.linalg.lstsq(torch.rand(3, 2, 2) + torch.eye(2), b * 1)[0]
        return seen(made), seen(solved), torch.autograd.grad(made.sum(), x)

    @case("no gradient through a loss by complex targets")
    def _():
        F, a, b = torch.nn.functional, torch.rand(2, requires_grad=True), torch.rand(2) + 1j
        plain = F.binary_cross_entropy_with_logits(a.detach(), b)
        return err(F.binary_cross_entropy_with_logits, a, b), plain.dtype, err(b.clone().clamp_, -1, 1)

    @case("what torch.func records of numbers")
    def _():
        def chain(node, depth=4):
            after = [chain(each, depth - 1) for each, _ in node.next_functions] if node and depth else []
            return node and (node.name(), after)

        a, func = torch.rand(2, 2, requires_grad=True), torch.func
        inner = lambda q: torch.autograd.grad(q.pow(3).sum(), q, create_graph=True)[0].sum()
        functions = [inner, lambda q: q.pow(2).sum(), lambda q: q.pow(3).sum(), lambda q: (q * 3).sum()]
        made = [func.grad(function)(a) for function in functions]
        return [(chain(each.grad_fn), each.requires_grad) for each in made]

    @case("an output is written once, whoever looks on")
    def _():
        modes = importlib.import_module(f"{torch.__name__}.utils._python_dispatch")

        class Mode(modes.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))

        x, told = torch.rand(2, 2), []
        for looks_on in (Mode(), torch.autograd._force_original_view_tracking(True)):
            with looks_on:
                for write in (
                    lambda out: torch.add(x, x, out=out), lambda out: torch.mm(x, x, out=out),
                    lambda out: torch.sin(x, out=out), lambda out: torch.cat([x[:1], x[1:]], out=out),
                    lambda out: torch.sum(x, 0, out=out),
                ):  # fmt: skip
                    empty, part = torch.empty(0), torch.zeros(4, 4)[0, :2]
                    write(empty)
                    told.append(empty._version)
                    if empty.shape == part.shape:
                        write(part)
                        told.append(part._version)
        return told

    return found


test_mended = same_in_torch(cases)
