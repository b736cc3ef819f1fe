"""torch.library.custom_op: what of a call autograd sees, what writing operations record, tags, refusals: as
in torch."""

import importlib
import itertools
import logging
import re
import typing
import warnings

import pytest
import torch
from outcomes import collector, err, outcome

import rushlight

pytestmark = pytest.mark.torch

CASES, case = collector()
NUMBERS = itertools.count()


class Maker:
    """Makes operations in a namespace of its own, of functions with `Tensor` of one library."""

    def __init__(self, torch):
        self.torch, self.space = torch, f"made_{next(NUMBERS)}"
        self.library = torch.library.Library(self.space, "FRAGMENT")

    def __call__(self, name="f", mutates=(), **options):
        return self.torch.library.custom_op(f"{self.space}::{name}", mutates_args=mutates, **options)

    def said(self, function, *args, **kwargs):
        text = str(err(function, *args, **kwargs)).replace(self.space, "made")
        return re.sub(r"<module '[^>]*>", "MODULE", text).partition(" Duplicate registration")[0]

    def named(self, tensor):
        return tensor.grad_fn and tensor.grad_fn.name().replace(self.space, "made")


@case("gradients lie as the arguments that were given")
def _(torch):
    make, seen = Maker(torch), []
    Tensor = torch.Tensor

    @make()
    def f(xs: list[Tensor], y: Tensor | None, n: int, k: int = 2) -> Tensor:
        return sum(x * k for x in xs)

    def setup(ctx, inputs, output):
        ctx.k = inputs[-1]
        seen.append(inputs)

    def back(ctx, grad):
        seen.append((ctx.needs_input_grad, grad))
        return ([grad * ctx.k, None, grad], None, None, *ctx.more)

    f.register_autograd(back, setup_context=setup)
    told = []
    for more in ((), (None,)):
        xs = [torch.ones(2, requires_grad=True), torch.ones(2), torch.ones(2, requires_grad=True)]
        f.register_autograd(
            lambda ctx, g, more=more: (setattr(ctx, "more", more), back(ctx, g))[1], setup_context=setup
        )
        told.append(re.sub(r"\s+", "", make.said(f(xs, None, 3).sum().backward)))
        told += [[x.grad for x in xs], make.said(f(tuple(xs), torch.ones(1), 3, k=5).sum().backward)[:20]]
    return seen, told


@case("gradients of a list that is no list of gradients")
def _(torch):
    make = Maker(torch)

    @make()
    def f(xs: list[torch.Tensor]) -> torch.Tensor:
        return xs[0].clone()

    told = []
    for made in (lambda g: g, lambda g: [g], lambda g: [g, g], lambda g: ([g, g], None), lambda g: None,
                 lambda g: ([g, 3],), lambda g: [[g, None]]):  # fmt: skip
        f.register_autograd(lambda ctx, g, made=made: made(g))
        a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        told.append((re.sub(r"\s+", "", make.said(f([a, b]).sum().backward)), a.grad, b.grad))
    return told


@case("lists that are returned")
def _(torch):
    make, seen = Maker(torch), []

    @make("one")
    def one(x: torch.Tensor) -> list[torch.Tensor]:
        return [x * 2, x * 3]

    @make("several")
    def several(x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor], int]:
        return x * 1, [x * 2, x * 3], 4

    one.register_autograd(lambda ctx, grads: (seen.append(grads), grads[0] * 2)[1])
    several.register_autograd(lambda ctx, a, grads, n: (seen.append((a, grads, n)), a)[1])
    x = torch.ones(2, requires_grad=True)
    results = one(x), several(x)
    (results[0][0].sum() + results[1][0].sum()).backward()
    return results, make.named(results[0][0]), seen, x.grad


@case("operations that write are recorded too")
def _(torch):
    make = Maker(torch)

    @make("other", {"y"})
    def other(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        y.add_(1)
        return x * 2

    @make("same", {"x"}, tags=torch.Tag.inplace)
    def same(x: torch.Tensor) -> torch.Tensor:
        return x.add_(1)

    x, y = torch.ones(2, requires_grad=True), torch.zeros(2)
    made = other(x, y)
    told = [made, y, y._version, make.named(made), make.said(made.sum().backward), make.said(other, y, x)]
    z = x * 1
    result = same(z)
    told += [result is z, make.named(result), z._version, make.said(result.sum().backward)]
    e = z.exp()
    other(y, z)
    return told, make.said(e.sum().backward)


@case("operations tagged as writing in place, or into out")
def _(torch):
    make = Maker(torch)

    @make("kept", {"x"}, tags=torch.Tag.inplace)
    def kept(x: torch.Tensor) -> torch.Tensor:
        return x.add_(1)

    @make("copied", {"x"}, tags=torch.Tag.inplace)
    def copied(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @make("filled", {"out"}, tags=torch.Tag.out)
    def filled(x: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        return out.copy_(x)

    @make("none", {"x"})
    def none(x: torch.Tensor) -> None: ...

    x, out, meta = torch.zeros(2), torch.zeros(2), torch.ones(3, device="meta")
    return (
        [str(f._opoverload._schema).partition("::")[2] for f in (kept, filled, none)],
        (kept(x) is x, x._version, list(map(str, kept._opoverload.tags)), make.said(copied, x)),
        (filled(x, out=out) is out, out, out._version),
        (kept(meta) is meta, filled(torch.ones(1, device="meta"), out=meta) is meta, none(meta)),
        [make.said(f.register_autograd, len) for f in (kept, filled, none)],
        make.said(filled, torch.ones(2, requires_grad=True), out=out),
        make.said(filled, x, out=torch.ones(2, requires_grad=True)),
    )


@case("schemas of tagged functions")
def _(torch):
    Tensor, Tag = torch.Tensor, torch.Tag

    def a(x: Tensor) -> Tensor: ...
    def b(x: Tensor, *, out: Tensor) -> Tensor: ...
    def c(x: Tensor, *, out: Tensor, more: Tensor) -> tuple[Tensor, Tensor]: ...
    def d(*, x: Tensor) -> Tensor: ...
    def e(x: int, y: Tensor) -> Tensor: ...
    def f(x: Tensor) -> None: ...
    def g(x: Tensor, *, out: typing.List[Tensor]) -> Tensor: ...  # noqa: UP006
    def h(x: Tensor) -> tuple[Tensor]: ...
    def i(x: "Tensr") -> Tensor: ...  # noqa: F821

    tags = (None, Tag.inplace, Tag.out, (Tag.out,), (Tag.inplace, Tag.out))
    written = ((), {"x"}, {"out"}, ("out", "more")[::1], "unknown", {"y"}, "x")
    infer = torch.library.infer_schema
    return [
        re.sub(r"\{[^}]*\}", "NAMES", str(err(infer, each, mutates_args=names, tags=tag)))
        for each in (a, b, c, d, e, f, h, i)
        for tag in tags
        for names in written
    ] + [err(infer, g, mutates_args={"out"}, tags=Tag.out)]


@case("a view, and what is no new tensor")
def _(torch):
    make = Maker(torch)

    @make("view", schema="(Tensor(a) x) -> Tensor(a)")
    def view(x):
        return x.view(-1)

    @make("same")
    def same(x: torch.Tensor) -> torch.Tensor:
        return x

    @make("twice")
    def twice(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2, x[:1]

    view.register_autograd(lambda ctx, g: g.view(2, 2))
    x = torch.ones(2, 2, requires_grad=True)
    view(x).sum().backward()
    return make.named(view(x)), x.grad, make.said(same, x), make.said(twice, x.detach())


@case("definitions that are refused")
def _(torch):
    make, library = Maker(torch), torch.library

    def plain(x, y): ...
    def keyword(x: torch.Tensor, *, y: torch.Tensor) -> torch.Tensor: ...
    def number(n: int) -> torch.Tensor: ...

    for name, schema in (("k", "(Tensor x, *, Tensor y) -> Tensor"), ("v", "(Tensor(a) x) -> Tensor(a)")):
        make.library.define(name + schema)
    return (
        make.said(make("a", {"x"}, schema="(Tensor x, float y) -> Tensor"), plain),
        make.said(make("b"), keyword),
        make.said(make("c", device_types="cpu"), number),
        [make.said(library.register_autograd, f"{make.space}::{n}", len) for n in ("k", "v", "nothing")],
        [make.said(library.register_autograd, 3, len), make.said(library.define, 3, "() -> ()")],
        make.said(library.register_autocast, f"{make.space}::k", "there", torch.half),
    )


@case("kernels that are disabled, of devices, and for operations yet to come")
def _(torch):
    make = Maker(torch)

    @make()
    def f(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @make("made", device_types="cpu")
    def made(n: int, device: torch.device) -> torch.Tensor:
        return torch.ones(n, device=device)

    one, told, lines = torch.ones(1), [], []
    f.register_kernel("cpu", lambda x: x * 7)
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    log = logging.getLogger("torch._library.custom_ops")
    log.addHandler(handler)
    try:
        for kind, on in (("cpu", False), ("cpu", True), ("meta", False)):
            with f.set_kernel_enabled(kind, on):
                told.append(f(one))
    finally:
        log.removeHandler(handler)
    make.library.impl("later", lambda x: x * 3, "CPU")
    torch.library.impl(f"{make.space}::last", "cpu", lambda x: x * 4)
    make.library.define("later(Tensor x) -> Tensor")
    make.library.define("last(Tensor x) -> Tensor")
    own = getattr(torch.ops, make.space)
    return told, f(one), lines, made(2, "cpu"), make.said(made, 2, "meta"), own.later(one), own.last(one)


@case("what is asked about schemas, names and arguments")
def _(torch):
    utils = importlib.import_module(f"{torch.__name__}._library.utils")
    native, aten, x, y = torch._C, torch.ops.aten, torch.ones(2, requires_grad=True), torch.ones(2)
    texts = (
        "Tensor x) -> Tensor",
        "Tensor(a) x) -> Tensor(a)",
        "Tensor(a!) x) -> Tensor",
        "Tensor x) -> ()",
        ") -> int",
    )
    some = (
        aten.sin.default,
        aten.sin_.default,
        aten.sin.out,
        aten.add.Tensor,
        aten.zeros.default,
        aten.view.default,
    )
    alias = native._any_output_is_alias_to_input_or_output
    outputs = ((y,), (y.clone(),), (y[:1],), ([y],), ((y,),), y, [y], (y.clone(), 3, None))
    return (
        [utils.is_functional_schema(f"f({text}") for text in texts],
        [
            utils.is_functional_schema(native.parse_schema(f"f({text}"), allow_valid_view=True)
            for text in texts
        ],
        [utils.mutates_and_returns_first_arg(op) for op in some],
        [utils.mutated_args_kwargs(op._schema) for op in some],
        [(utils.has_kwarg_only_args(op._schema), utils.has_kwarg_only_tensors(op._schema)) for op in some],
        [(utils.has_tensor_arg(op._schema), op._schema._is_view_op()) for op in some],
        utils.fill_defaults(aten.sum.dim_IntList._schema, (y,), {}),
        [(a.name, v) for a, v in utils.zip_schema(aten.sum.dim_IntList._schema, (y, [1]), {"dtype": None})],
        [str(utils.lookup_op(name)) for name in ("aten::sin", "aten::sum.dim_IntList")],
        err(utils.parse_namespace, "sin"),
        [
            native._any_requires_grad(*a, **k)
            for a, k in (((x,), {}), ((y,), {}), (([y, x],), {}), (((y, x),), {}), ((y, 3), {"k": x}))
        ],
        [alias((each,), {}, (y,)) for each in (y, [y], (y,))],
        [alias((y,), {}, each) for each in outputs] + [alias((), {"k": y}, (y,)), alias((), {}, (y, y))],
        [native._jit_resolve_packet("aten::sum", y, **k) for k in ({}, {"dim": 1})],
        err(native._jit_resolve_packet, "aten::sum"),
        err(native._jit_get_schemas_for_operator, "sum"),
        [
            [str(schema) for schema in native._jit_get_schemas_for_operator(f"aten::{n}")]
            for n in ("mm", "no_such")
        ],
        native._dispatch_call_boxed(native._dispatch_find_schema_or_throw("aten::sin", ""), y),
    )


RETURNS = [
    "()", "Tensor", "int", "SymInt", "float", "bool", "Scalar", "Tensor[]", "Tensor?", "str", "int[]",
    "((Tensor))", "(Tensor, Tensor)", "(Tensor, int)", "(Tensor, Tensor[])",
]  # fmt: skip
VALUES = """
t, s, f, 3, 2.5, True, None, [t], (t,), (t, u), [t, u], (t, 3), 'ab', (), [], [t, 3], [t, None], (t, None),
1j, 2 ** 70, (t, [u]), (t, (u,)), [1, True], [1, 2.5], {}
"""


@case("what a kernel returns becomes what the schema says, or is refused")
def _(torch):
    make = Maker(torch)
    values = eval(
        f"[{VALUES}]",
        {"t": torch.ones(2), "u": torch.zeros(2), "s": torch.tensor(2), "f": torch.tensor(2.5)},
    )
    told = []
    for number, returns in enumerate(RETURNS):
        now = []
        make.library.define(f"f{number}(Tensor x) -> {returns}")
        make.library.impl(f"f{number}", lambda x, now=now: now[0], "CPU")
        op = getattr(getattr(torch.ops, make.space), f"f{number}")
        told.append(str(op.default._schema).replace(make.space, "made"))
        several = returns.count(",") + 1
        for value in values:
            if several > 1 and isinstance(value, (tuple, list)) and len(value) != several:
                continue  # torch makes something of it, or reads beyond its stack
            now[:] = [value]
            told.append((returns, err(op, torch.ones(1))))
    return re.sub(r"\s+", " ", str(told)).replace(make.space, "made")


@case("a tuple of one result")
def _(torch):
    make = Maker(torch)

    @make()
    def f(x: torch.Tensor) -> tuple[torch.Tensor]:
        return (x * 2,)

    f.register_fake(lambda x: (torch.empty_like(x),))
    f.register_autograd(lambda ctx, grads: grads)
    x = torch.ones(2, requires_grad=True)
    (made,) = f(x)
    made.sum().backward()
    types = [str(each.type) for each in f._opoverload._schema.returns]
    return made, x.grad, types, f(torch.ones(2, device="meta"))[0].shape


@case("annotations that a schema can and cannot say")
def _(torch):
    Tensor, o, number = torch.Tensor, typing.Optional, typing.Union[int, float, bool]  # noqa: UP007
    kinds = (Tensor, int, float, bool, str, number, torch.dtype, torch.device, complex, type(None))
    ways = (
        lambda k: k, lambda k: o[k], lambda k: list[k], lambda k: typing.Sequence[k], lambda k: o[list[k]],
        lambda k: list[o[k]], lambda k: o[typing.Sequence[k]], lambda k: o[list[o[k]]],
        lambda k: list[list[k]], lambda k: tuple[k], lambda k: tuple[k, k], lambda k: tuple[k, ...],
        lambda k: tuple[tuple[k]],
    )  # fmt: skip
    told = []
    for kind in kinds:
        for annotation in (way(kind) for way in ways):
            for notes in ({"x": annotation, "return": None}, {"x": Tensor, "return": annotation}):

                def f(x):
                    pass

                f.__annotations__ = notes
                told.append(err(torch.library.infer_schema, f, mutates_args=()).partition(". ")[0])
    return told


@case("arguments come to kernels as the kinds that the schema names")
def _(torch):
    make, np = Maker(torch), pytest.importorskip("numpy")
    values = (
        3, 2.5, True, torch.tensor(3), torch.tensor(2.5), torch.tensor(True), torch.tensor([3, 4]), None, "a",
        [1, 2], (1, 2), [True], [1.5], [torch.tensor(3)], 1j, np.int64(3), np.float32(2.5), np.array([1, 2]),
        np.bool_(True), torch.Size([1, 2]), range(2), [1, 2.5], [torch.ones(1), None], 2**70, [],
    )  # fmt: skip
    words = (
        "int", "SymInt", "float", "bool", "str", "int[]", "SymInt[]", "float[]", "bool[]", "Tensor[]",
        "Tensor?[]", "int?", "int[2]", "int[]?", "Scalar[]", "float?", "bool?", "Tensor?",
    )  # fmt: skip
    told = []
    for number, word in enumerate(words):
        got = []
        make.library.define(f"f{number}(Tensor x, {word} v) -> Tensor")
        make.library.impl(f"f{number}", lambda x, v, got=got: (got.append(v), x.clone())[1], "CPU")
        op = getattr(getattr(torch.ops, make.space), f"f{number}")
        for value in values:
            got.clear()
            err(op, torch.ones(1), value)
            told.append((word, [(type(v).__name__, v) for v in got]))
    return told


@case("defaults in schemas")
def _(torch):
    defaults = (
        "float n=2", "float? n=-5", "float n=2.5", "ScalarType n=float32", 'Device n="cpu"', "int[] n=None",
        "int[]? n=None", "int[2] n=1", "Scalar n=1.", "float[] n=[1., 2.]", "bool n=True",
    )  # fmt: skip
    told = []
    for default in defaults:
        schema = err(torch._C.parse_schema, f"f(Tensor x, {default}) -> ()")
        told += [schema if isinstance(schema, str) else (schema, schema.arguments[1].default_value)]
    return told


@case("kernels of libraries cover each other, and are uncovered")
def _(torch):
    make, told = Maker(torch), []
    make.library.define("f(Tensor x) -> Tensor")
    make.library.impl("f", lambda x: x * 2, "CPU")
    f, x = getattr(torch.ops, make.space).f, torch.ones(1)

    def library(factor, key):
        made = torch.library.Library(make.space, "IMPL")
        made.impl("f", lambda x: x * factor, key)
        told.append((key, f(x)))
        return made

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # once in a process: a kernel is overridden
        one, two = library(3, "CPU"), library(5, "CPU")
        one._destroy()
        told.append(f(x))
        two._destroy()
        told.append(f(x))
        x = torch.ones(1, requires_grad=True)
        one, two = library(7, "AutogradCPU"), library(11, "AutogradCPU")
        two._destroy()
        told.append(f(x))
        one._destroy()
        told.append(f(x).detach())
        x = torch.ones(1)
        library(13, "CompositeImplicitAutograd")._destroy()
        told.append(f(x))
    return told, [make.said(make.library.impl, name, abs, "CPU") for name in (3, None)]


@case("what runs on the meta device is what was registered last")
def _(torch):
    make, told = Maker(torch), []
    make.library.define("f(Tensor x) -> Tensor")
    make.library.define("composed(Tensor x) -> Tensor")
    make.library.impl("composed", lambda x: x * 2, "CompositeImplicitAutograd")
    name, f = f"{make.space}::f", getattr(torch.ops, make.space).f

    def fake(size, **options):
        options["lib"] = make.library
        said = make.said(torch.library.register_fake, name, lambda x: x.new_empty(size), **options)
        told.append((re.sub(r"at \S+:\d+", "", said)[:100] if "Error" in said else "", shown()))

    def shown():
        return f(torch.ones(2, device="meta")).shape

    fake(1)
    fake(2, allow_override=False)
    make.library.impl("f", lambda x: x.new_empty(3), "Meta")
    told.append(shown())
    fake(4, allow_override=False)
    fake(5)
    name = f"{make.space}::composed"
    fake(6)
    torch.library.impl_abstract(f"{make.space}::f", lambda x: x.new_empty(7))
    return told, shown(), make.said(torch.library.register_fake, 3, abs)


@case("what the checks and the libraries refuse")
def _(torch):
    make = Maker(torch)
    other = Maker(torch)

    @make()
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    told = [
        make.said(torch.library.opcheck, f"{make.space}::f", (torch.ones(1),)),
        make.said(f.register_autocast, 3, torch.bfloat16),
        make.said(other.library.impl, f"{make.space}::f", abs, "CPU").partition("  (Error occurred")[0],
    ]
    told[-1] = told[-1].replace(other.space, "other")
    make.library.impl(f._opoverload, lambda x: x, "Meta")
    return told, f(torch.ones(2, device="meta")).shape


@case("Functions that take and return lists")
def _(torch):
    lists = importlib.import_module(f"{torch.__name__}._library.autograd").supports_tensorlist
    seen = []

    def made(forward, backward):
        methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        return lists(type("Own", (torch.autograd.Function,), methods))

    def back(ctx, grad):
        seen.append(ctx.needs_input_grad)
        return list(grad.unbind(0))

    def back_of_several(ctx, grads, grad, number):
        seen.append((ctx.needs_input_grad, grads, grad, number))
        return [each * 2 for each in grads], grad * 3, None

    one = made(lambda ctx, xs: torch.stack(xs), back)
    several = made(lambda ctx, xs, y, k: ([x * 2 for x in xs], y * k, 5), back_of_several)
    xs = [torch.full((), float(n), requires_grad=True) for n in range(3)]
    first = one.apply(xs)
    told = [torch.autograd.grad(first.sum(), xs, retain_graph=True) for _ in range(2)]
    result = several.apply(xs, xs[0] * 1, 3)
    (result[0][0] + result[1]).backward()
    told += [first.grad_fn.name(), result, [x.grad for x in xs], one.apply(xs[:1]).shape]
    told += [err(one.forward, None, xs), err(one.backward, None, xs)]
    for wrong in (
        lambda g: [g, g],
        lambda g: tuple(g.unbind(0)),
        lambda g: ([g, g, g], 3),
        lambda g: ([None] * 3,),
    ):
        own = made(lambda ctx, xs: torch.stack(xs), lambda ctx, g, wrong=wrong: wrong(g))
        told.append(err(torch.autograd.grad, own.apply(xs).sum(), xs, allow_unused=True))
    return told, seen


@case("whoever overrides functions is asked about operations by name")
def _(torch):
    make, seen = Maker(torch), []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append((str(function), len(types), len(args), sorted(kwargs or {})))
            return function(*args, **(kwargs or {}))

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append((str(function), [kind.__name__ for kind in types]))
            return super().__torch_function__(function, types, args, kwargs or {})

    @make()
    def f(x: torch.Tensor, *, k: int = 1) -> torch.Tensor:
        return x * k

    x, aten, own = torch.ones(2, 2), torch.ops.aten, getattr(torch.ops, make.space)
    with Mode():
        results = aten.mm.default(x, x), aten.cat([x, x], dim=1), own.f(x), own.f.default(x, k=2), f(x)
    s = x.as_subclass(Sub)
    kinds = [type(each(s)).__name__ for each in (own.f, own.f.default, f, aten.sin, aten.sin.default)]
    aten.cat([x, s])
    return results, [(name.replace(make.space, "made"), *rest) for name, *rest in seen], kinds


@case("what is said by opcheck, and by the defaults of a schema")
def _(torch):
    make = Maker(torch)
    make.library.define("bare(Tensor x) -> Tensor")
    make.library.impl("bare", lambda x: x.clone(), "CPU")
    make.library.define("shared(Tensor x) -> Tensor")
    make.library.impl("shared", lambda x: x.sin_(), "CPU")
    own = getattr(torch.ops, make.space)

    @make()
    def f(
        x: torch.Tensor, d: torch.dtype = torch.float32, e: torch.dtype = torch.bfloat16, n: int = 3
    ) -> torch.Tensor:
        return x.to(d)

    x = torch.ones(2, requires_grad=True)
    check = "test_autograd_registration"
    return (
        make.said(torch.library.opcheck, own.bare, (x,), test_utils=check),
        make.said(torch.library.opcheck, own.bare, (x.detach(),), test_utils=check),
        make.said(torch.library.opcheck, own.recorded, (x,), test_utils=check),
        make.said(torch.library.opcheck, own.shared, (x.detach(),), test_utils="test_schema"),
        [argument.default_value for argument in f._opoverload._schema.arguments],
        f(x.double()).dtype,
    )


@case("tangents end at an operation, or are refused where a gradient is recorded")
def _(torch):
    make = Maker(torch)
    forward = torch.autograd.forward_ad

    @make("plain")
    def plain(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    @make("graded")
    def graded(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    graded.register_autograd(lambda ctx, g: g)

    @make("written", mutates=("x",))
    def written(x: torch.Tensor) -> None:
        x.mul_(2)

    for name in ("composed", "kernel"):
        make.library.define(f"{name}(Tensor x) -> Tensor")
    make.library.impl("composed", lambda x: x.sin(), "CompositeImplicitAutograd")
    make.library.impl("kernel", lambda x: x.sin(), "CPU")
    own = getattr(torch.ops, make.space)

    def writing(x):
        copy = x * 1
        written(copy)
        return copy

    def below(x):
        with torch._C._AutoDispatchBelowAutograd():
            return x.sin()

    def carried(function, wanted):
        with forward.dual_level():
            x = torch.full((2,), 0.5, requires_grad=wanted)
            result = function(forward.make_dual(x, torch.ones(2)))
            tangent = forward.unpack_dual(result).tangent
            return result.detach(), tangent is not None and tangent.detach(), result.requires_grad

    calls = [plain, graded, writing, own.composed, own.kernel, below]
    found = [make.said(carried, call, wanted) for call in calls for wanted in (False, True)]
    x = torch.full((2,), 0.5)
    jacobian = torch.autograd.functional.jacobian
    for call in (plain, graded, own.composed):
        found += [torch.func.jvp(lambda t, call=call: call(t), (x,), (torch.ones(2),))]
        found += [torch.func.jacfwd(lambda t, call=call: call(t))(x)]
        found += [jacobian(call, x, strategy="forward-mode", vectorize=True)]
    with torch.no_grad():
        return found, make.said(carried, plain, True)


@pytest.mark.parametrize("name", CASES)
def test_it_gives_what_torch_gives(name):
    ours, theirs = (outcome(lambda library=library: CASES[name](library)) for library in (rushlight, torch))
    assert [re.sub(r"made_\d+", "made", line) for line in ours] == [
        re.sub(r"made_\d+", "made", line) for line in theirs
    ]


def test_which_of_torchs_own_are_composed_and_which_have_a_derivative():
    def told(native, name):
        has, keys = native._dispatch_has_kernel_for_dispatch_key, ("CompositeImplicitAutograd", "Autograd")
        return [err(has, name, key) for key in keys]

    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    ours = {name: told(rushlight._C, name) for name in names}
    known = [name for name in names if isinstance(ours[name][0], bool)]
    assert len(known) > 2000
    assert {n: ours[n] for n in known} == {n: told(torch._C, n) for n in known}
