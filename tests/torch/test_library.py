"""torch.library: operations of one's own, their schemas, gradients and refusals, as in torch."""

import itertools
import threading
import typing
import warnings

import pytest
import torch as torch_itself
from outcomes import collector, err, outcome

import rushlight


def cases(torch):
    found, case = collector()
    library, Tensor = torch.library, torch.Tensor
    numbers = itertools.count()
    keep = []

    def space():
        return f"test_library_{next(numbers)}"

    def L(*sizes):
        return torch.ones(sizes, requires_grad=True)

    def twice(x: Tensor, k: float = 2.0) -> Tensor:
        return x * k

    @case("define and impl")
    def _():
        name = "tl_define"
        library.define(f"{name}::f", "(Tensor x) -> Tensor")
        library.impl(f"{name}::f", "cpu", lambda x: x.sin())
        op = getattr(torch.ops, name).f
        return op(torch.ones(2)), str(op), str(op.default), str(op.default._schema), repr(op.default)

    @case("what is written and shares memory with nothing that is named")
    def _():
        mine, seen = library.Library("tl_written", "DEF"), []
        keep.append(mine)
        for i, schema in enumerate((
            "(Tensor! out, Tensor x) -> ()", "(Tensor!? out, Tensor![] b) -> Tensor",
            "(Tensor! a) -> Tensor!", "(Tensor ! a, *, Tensor! b, Tensor(a!) c) -> Tensor(a!)",
            "(Tensor![]? b) -> ()",
        )):  # fmt: skip
            mine.define(f"f{i}{schema}")
            read = getattr(torch.ops.tl_written, f"f{i}").default._schema
            shared = [a.alias_info for a in (*read.arguments, *read.returns)]
            sets = [a and (a.is_write, sorted(a.before_set), sorted(a.after_set)) for a in shared]
            seen.append((str(read), sets, read.is_mutable))
        return seen

    @case("names and schemas that are refused")
    def _():
        name = "tl_refused"
        library.define(f"{name}::h", "(Tensor x) -> Tensor")
        return [
            err(library.define, "nothing", "(Tensor x) -> Tensor"),
            err(library.define, f"{name}::g", "bad schema"),
            err(library.define, f"{name}::h", "(Tensor x) -> Tensor")[:120],
            err(lambda: getattr(torch.ops, name).absent),
            err(getattr(torch.ops, name).h, torch.ones(1))[:150],
            err(library.Library, name, "OTHER"),
            err(library.Library, "prim", "DEF"),
        ]

    @case("namespaces that torch has defined, and schemas that are none")
    def _():
        mine = library.Library("tl_schemas", "DEF")
        keep.append(mine)
        texts = (
            "bad",
            "bad x",
            "bad.ov",
            "(Tensor x)",
            "f(Tensor x",
            "f(Tensor x)",
            "",
            "f.a b(Tensor x)",
        )
        return [
            *(err(library.Library, name, "DEF")[:200] for name in ("aten", "prims", "quantized", "c10d")),
            *(err(mine.define, text) for text in texts),
        ]

    @case("results of lists and numbers")
    def _():
        def parts(x: Tensor, sizes: typing.Sequence[int]) -> tuple[list[Tensor], int]:
            return [part * 2 for part in x.split(sizes)], len(sizes)

        op = library.custom_op("tl_nested::f", mutates_args=())(parts)
        op.register_autograd(lambda ctx, grads, number: (2 * torch.cat(grads), None))
        x = L(3)
        results, count = op(x, [1, 2])
        (results[0].sum() + 3 * results[1].sum()).backward()
        return type(results), count, x.grad, results[1].grad_fn.name()

    @case("kernels see the examples of a batch one by one")
    def _():
        def twice_in_numpy(x: Tensor) -> Tensor:
            return torch.from_numpy(x.detach().numpy() * 2)

        op = library.custom_op("tl_batch::f", mutates_args=())(twice_in_numpy)
        op.register_autograd(lambda ctx, g: op(g))
        x = L(2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.autograd.grad(op(x), x, torch.eye(2), is_grads_batched=True)

    @case("an operation with a gradient")
    def _():
        op = library.custom_op("tl_grad::f", mutates_args=())(twice)
        results = [op(torch.ones(2)), repr(op), repr(op._opoverload), err(op(L(2)).sum().backward)]
        op.register_autograd(
            lambda ctx, g: (g * ctx.k, None),
            setup_context=lambda ctx, inputs, output: setattr(ctx, "k", inputs[1]),
        )
        x = L(2)
        y = op(x, 5)
        y.sum().backward()
        return results, y, x.grad, type(y.grad_fn).__name__, op(x).grad_fn is None

    @case("gradients that do not fit")
    def _():
        op = library.custom_op("tl_unfit::f", mutates_args=())(twice)
        op.register_autograd(lambda ctx, g: (g, g))
        return err(op(L(2), 3.0).sum().backward)

    @case("lists and keywords")
    def _():
        def f(xs: list[Tensor], k: int, *, scale: float = 1.0) -> Tensor:
            return sum(xs) * k * scale

        op = library.custom_op("tl_lists::f", mutates_args=())(f)
        seen = []

        def keep_them(ctx, inputs, keyword_only_inputs, output):
            seen.append((len(inputs), inputs[1], keyword_only_inputs))

        op.register_autograd(lambda ctx, g: ([g * 2, g * 3], None), setup_context=keep_them)
        a, b = L(2), L(2)
        op([a, b], 2, scale=3).sum().backward()
        return a.grad, b.grad, seen

    @case("several outputs")
    def _():
        def f(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            return x * 2, y * 3

        op = library.custom_op("tl_several::f", mutates_args=())(f)
        op.register_autograd(lambda ctx, a, b: (a * 2, b * 3))
        x, y = L(2), L(2)
        op(x, y)[0].sum().backward()
        return x.grad, y.grad

    @case("writing")
    def _():
        def f(x: Tensor, k: float) -> None:
            x.add_(k)

        op = library.custom_op("tl_writes::f", mutates_args={"x"})(f)
        x = torch.zeros(2)
        return (
            op(x, 1.0), x, x._version, str(op._opoverload._schema), op._opoverload._schema.is_mutable,
            err(op.register_autograd, lambda ctx, g: g),
        )  # fmt: skip

    @case("arguments that do not fit")
    def _():
        op = library.custom_op("tl_args::f", mutates_args=())(twice)
        x = torch.ones(1)
        calls = (((), {}), ((x, 1.0, 2.0), {}), (("a",), {}), ((x, "b"), {}), ((x,), {"z": 1}), ((x, 3), {}))
        return [err(op, *args, **kwargs) for args, kwargs in calls]

    @case("memory that is returned")
    def _():
        def same(x: Tensor) -> Tensor:
            return x

        def view(x: Tensor) -> Tensor:
            return x.view(-1)

        said = [
            err(library.custom_op(f"tl_alias::{f.__name__}", mutates_args=())(f), torch.ones(2))
            for f in (same, view)
        ]
        return [s.partition("): ")[2] for s in said]

    @case("what is no tensor")
    def _():
        def three(x: Tensor) -> Tensor:
            return 3

        return err(library.custom_op("tl_three::f", mutates_args=())(three), torch.ones(2))

    @case("the meta device")
    def _():
        op = library.custom_op("tl_meta::f", mutates_args=())(twice)
        x = torch.ones(3, device="meta")
        before = err(op, x)
        op.register_fake(lambda x, k=2.0: torch.empty_like(x))
        return before, op(x).shape

    @case("autocast")
    def _():
        op = library.custom_op("tl_cast::f", mutates_args=())(twice)
        op.register_autocast("cpu", torch.bfloat16)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            inside = op(torch.ones(2)).dtype
        return str(inside)[-8:], str(op(torch.ones(2)).dtype)[-7:]

    @case("overloads")
    def _():
        lib = library.Library("tl_overloads", "DEF")
        keep.append(lib)
        lib.define("q(Tensor x) -> Tensor")
        lib.define("q.s(Tensor x, Scalar y) -> Tensor")
        lib.impl("q", lambda x: x + 1, "CPU")
        lib.impl("q.s", lambda x, y: x * y, "CPU")
        q, x = torch.ops.tl_overloads.q, torch.ones(1)
        return q(x), q(x, 3), q.s(x, 4), q.overloads(), str(q.s), str(q.s._schema), err(q, x, 1, 2)

    @case("levels")
    def _():
        lib = library.Library("tl_levels", "DEF")
        keep.append(lib)
        for name in "abc":
            lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl("a", lambda x: x.sin().exp(), "CompositeImplicitAutograd")
        lib.impl("b", library.fallthrough_kernel, "Autograd")
        lib.impl("b", lambda x: x * 2, "CPU")
        ops = torch.ops.tl_levels
        return (
            type(ops.a(L(2)).grad_fn).__name__, type(ops.b(L(2)).grad_fn).__name__,
            err(lib.impl, "c", lambda x: x, "NoSuchKey"), err(lib.impl, "c", 3, "CPU"),
            err(library.fallthrough_kernel),
        )  # fmt: skip

    @case("a library that goes")
    def _():
        with library._scoped_library("tl_goes", "FRAGMENT") as lib:
            lib.define("f(Tensor x) -> Tensor")
            lib.impl("f", lambda x: x * 2, "CPU")
            inside = torch.ops.tl_goes.f(torch.ones(1))
        return inside, err(lambda: torch.ops.tl_goes.f)

    @case("opcheck")
    def _():
        op = library.custom_op("tl_check::f", mutates_args=())(twice)
        op.register_fake(lambda x, k=2.0: torch.empty_like(x))
        op.register_autograd(
            lambda ctx, g: (g * ctx.k, None),
            setup_context=lambda ctx, inputs, output: setattr(ctx, "k", inputs[1]),
        )

        def writes(x: Tensor) -> Tensor:
            x.add_(1)
            return x.clone()

        bad = library.custom_op("tl_check::g", mutates_args=())(writes)
        return (
            library.opcheck(op, (L(2),)),
            str(library.opcheck(bad, (torch.ones(2),), test_utils="test_schema", raise_exception=False)),
            err(library.opcheck, op, (L(2),), test_utils="other"),
        )  # fmt: skip

    @case("checked gradients")
    def _():
        def f(x: Tensor) -> Tensor:
            return x.sin()

        op = library.custom_op("tl_checked::f", mutates_args=())(f)
        op.register_autograd(
            lambda ctx, g: g * ctx.saved_tensors[0].cos(),
            setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        )
        x = torch.ones(2, dtype=torch.float64, requires_grad=True)
        return torch.autograd.gradcheck(op, x), torch.autograd.gradgradcheck(op, x)

    @case("schemas of functions")
    def _():
        def a(x: Tensor, y: int = 3, *, z: float = 1.0) -> Tensor: ...
        def b(x: Tensor, y: list[int], z: bool = True) -> None: ...
        def c(
            x: Tensor | None, y: typing.Sequence[Tensor | None], z: int | None = None,
            w: torch.dtype = torch.float32, v: torch.device = None, u: int | float | bool = 3, s: str = "a",
        ) -> tuple[Tensor, int]: ...  # fmt: skip
        def d(x) -> Tensor: ...
        def e(x: Tensor): ...
        def f(*x): ...
        def g(x: Tensor, z: typing.Sequence[int] = ()) -> Tensor: ...

        infer = library.infer_schema
        said = [infer(each, mutates_args=()) for each in (a, b, c)]
        refused = [err(infer, each, mutates_args=()).partition(" Got func")[0] for each in (d, e, f, g)]
        return (
            said, infer(b, mutates_args={"x"}), infer(b, mutates_args="unknown", op_name="op"), refused,
            err(infer, a, mutates_args=("q",)).partition(" Got func")[0],
        )  # fmt: skip

    @case("a schema that is read")
    def _():
        s = torch._C.parse_schema(
            "tl::f.o(Tensor x, Tensor(a!) y, int[2] s, *, float p=0.5, ScalarType? d=None) "
            "-> (Tensor, Tensor(a!))"
        )
        arguments = [
            (
                a.name,
                str(a.type),
                a.default_value,
                a.kwarg_only,
                a.is_out,
                a.N,
                a.alias_info and a.alias_info.is_write,
            )
            for a in s.arguments
        ]
        bad = ("f Tensor x", "f(Tensor x", "f(Foo x) -> Tensor", "(Tensor x) -> Tensor")
        return str(s), s.name, s.overload_name, arguments, [err(torch._C.parse_schema, b)[:60] for b in bad]

    @case("functions in the place of kernels")
    def _():
        seen, calls = [], []

        def product(a, b):
            calls.append(0)
            return (a[:, :, None] * b[None]).sum(1)

        lib = library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lib.impl("sin", lambda x: x.clone().mul_(0).add_(7), "CPU")
            lib.impl("cos", lambda keys, x: x.clone(), "CPU", with_keyset=True)
            lib.impl("mm", product, "CPU")
        try:
            x = L(2)
            y = torch.sin(x)
            y.sum().backward()  # by cos, which gives back what it gets
            seen += [y, x.grad, torch.ones(2).sin_(), x.detach().exp()]
            w = L(2, 3)
            torch.nn.functional.linear(torch.ones(2, 3), w).sum().backward()
            seen += [w.grad, len(calls)]
            thread = threading.Thread(target=lambda: seen.append(torch.cos(torch.full((2,), 3.0))))
            thread.start()
            thread.join()
        finally:
            lib._destroy()
        return seen, torch.sin(torch.ones(2)), torch.mm(torch.ones(1, 2), torch.ones(2, 1)), len(calls)

    @case("kernels that are asked for")
    def _():
        keys = torch._C.DispatchKeySet(torch.DispatchKey.CPU)
        exp = library.get_kernel("aten::exp", "CPU")
        x = torch.zeros(2, requires_grad=True)

        def instead(keys, x):
            return exp.call_boxed(keys, x) if bool((x < 0).any()) else torch.zeros_like(x)

        seen = [exp.call_boxed(keys, x), library.get_kernel("aten::exp", "AutogradCPU").call_boxed(keys, x)]
        seen += [library.get_kernel(torch.ops.aten.max.dim, torch.DispatchKey.CPU).call_boxed(keys, L(2), 0)]
        lib = library.Library("aten", "IMPL")
        try:  # in its own place
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                lib.impl("exp", instead, "CPU", with_keyset=True)
            seen += [torch.exp(torch.ones(2)), torch.exp(-x - 1), exp.call_boxed(keys, torch.ones(2))]
            seen += [library.get_kernel("aten::exp", "CPU").call_boxed(keys, torch.ones(2))]
        finally:
            lib._destroy()
        own = library.Library(space(), "DEF")
        own.define("f(Tensor x) -> Tensor")
        seen += [err(library.get_kernel, f"{own.ns}::f", "CPU").replace(own.ns, "")]
        own.impl("f", lambda x: x + 5, "CPU")
        seen += [library.get_kernel(f"{own.ns}::f", "CPU").call_boxed(keys, torch.ones(2))]
        bad = [
            ("aten::absent", "CPU"),
            ("absent", "CPU"),
            ("aten::exp", "x"),
            (3, "CPU"),
            ("aten::exp", "Autograd"),
        ]
        return seen, [err(library.get_kernel, *each) for each in bad]

    @case("what a library holds, taken from it")
    def _():
        lib = library.Library(space(), "FRAGMENT")
        name = lib.ns
        seen = [lib.define("f.over(Tensor x) -> Tensor"), lib.m.define("g(Tensor x) -> Tensor")]
        lib.impl("f.over", lambda x: x + 1, "CPU")
        lib.m.impl("g", "CPU", lambda x: x + 2, False)
        seen += [sorted(lib._op_defs), sorted(lib._op_impls)]
        f, g = getattr(torch.ops, name).f.over, getattr(torch.ops, name).g.default
        del lib.m
        seen += [f(torch.ones(1)), g(torch.ones(1)), err(lib.define, "h(Tensor x) -> Tensor")]
        del lib  # and now they are gone
        lib = library.Library(name, "FRAGMENT")
        lib.define("f.over(Tensor x, int k) -> Tensor")
        seen += [str(library.Library(name, "FRAGMENT"))]
        lib._destroy()
        return str(seen).replace(name, ""), lib.m, err(lib.define, "h(Tensor x) -> Tensor")

    return found


ours, theirs = cases(rushlight), cases(torch_itself)


@pytest.mark.torch
@pytest.mark.parametrize("name", ours)
def test_as_in_torch(name):
    assert outcome(ours[name]) == outcome(theirs[name])
