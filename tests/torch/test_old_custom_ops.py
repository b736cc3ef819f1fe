"""Operations made by torch._custom_ops, the interface before torch.library.custom_op: as in torch."""

import importlib
import itertools
import re
import warnings

import pytest
import torch
from outcomes import collector, err, outcome

import rushlight

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:torch._custom_op is deprecated")]

CASES, case = collector()
NUMBERS = itertools.count()


class Ops:
    """The interface in one of the libraries, in a namespace of its own."""

    def __init__(self, torch):
        self.old = importlib.import_module(f"{torch.__name__}._custom_ops")
        self.impl = importlib.import_module(f"{torch.__name__}._custom_op.impl")
        self.torch, self.space = torch, f"old_{next(NUMBERS)}"

    def name(self, name):
        return f"{self.space}::{name}"

    def defined(self, schema, name="f"):
        self.old.custom_op(self.name(name), schema)
        return getattr(getattr(self.torch.ops, self.space), name)

    def differentiable(self, schema, run, save, back, said=None):
        made = self.defined(schema)
        self.old.impl(self.name("f"), func=run)
        if save:
            self.old.impl_save_for_backward(self.name("f"), func=save)
        if back:
            self.old.impl_backward(self.name("f"), said, func=back)
        return made

    def said(self, function, *args, **kwargs):
        """What is refused, without the lines of either library and the namespace."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = str(err(function, *args, **kwargs)).replace(self.space, "old")
        return re.sub(r"(at )?\S+\.py:\d+", "LINE", text).partition(" Duplicate registration")[0]


def prototype(torch, name="f"):
    def f(x: torch.Tensor, s: float = 2.0) -> torch.Tensor:
        raise NotImplementedError

    f.__name__ = name
    return f


def nothing(inputs, output):
    return None


@case("an operation by annotations, by a schema, and what is refused")
def _(torch):
    ops = Ops(torch)
    f = prototype(torch)
    ops.old.custom_op(ops.name("f"))(f)
    handle = getattr(torch.ops, ops.space).f.default
    names = ("f", "a.b::f", "aten::f", ops.name("g"), ops.name("f.x"), ops.name("f"))
    schemas = (
        "(Tensor(a!) x) -> Tensor",
        "(Tensor(a) x) -> Tensor(a)",
        "(Tensor x) -> ()",
        "(Tensor self) -> Tensor",
    )
    return (
        [ops.said(ops.old.custom_op, name, f) for name in names],
        [ops.said(ops.defined, schema, "other") for schema in schemas],
        str(handle._schema).replace(ops.space, "old"),
        list(map(str, handle.tags)),
        [ops.said(getattr(ops.old, part)(ops.name("missing")), f) for part in ("impl", "impl_backward")],
        ops.said(ops.impl.CustomOp, None, None, None, None, None),
        ops.said(ops.impl.get_op, ops.name("missing")),
        ops.said(ops.old.custom_op(ops.name("h")), 3),
    )


@case("a schema written by hand fits its function")
def _(torch):
    ops = Ops(torch)

    def more(x, *rest): ...
    def noted(x: int): ...
    def filled(x=3): ...
    def named(*, x): ...
    def plain(x): ...

    pairs = [(f, "(Tensor x) -> Tensor") for f in (more, noted, filled, named)]
    pairs += [
        (plain, s)
        for s in ("(Tensor y) -> Tensor", "(Tensor x, int y) -> Tensor", "(Tensor x=None) -> Tensor")
    ]
    refused = [ops.said(ops.impl.custom_op(ops.name(f.__name__), schema), f) for f, schema in pairs]
    made = ops.impl.custom_op(ops.name("named"), "(*, Tensor x) -> Tensor")(named)
    return refused, repr(made).replace(ops.space, "old"), made.__name__, type(made).__name__


@case("kernels, and the want of them")
def _(torch):
    ops = Ops(torch)
    f, one = ops.defined("(Tensor[] x) -> Tensor"), torch.ones(2)
    before = [
        ops.said(f, given) for given in ([one], [], [one.to("meta")], [torch.ones(2, requires_grad=True)])
    ]
    unknown = ops.said(ops.old.impl, ops.name("f"), device_types="there", func=f)
    ops.old.impl(ops.name("f"), device_types="cpu")(lambda x: x[0] * 2)
    ops.old.impl_abstract(ops.name("f"), func=lambda x: torch.empty_like(x[0]))
    run = f([one]), f([one.to("meta")]).shape, ops.said(f, [])
    again = ops.said(ops.old.impl(ops.name("f"), device_types="cpu"), f)
    found = ops.impl._find_custom_op(ops.name("f"))
    kinds = list(found._impls), found._get_impl("cpu").location.rpartition("/")[2].partition(":")[0]
    found.impl_factory()(lambda x: torch.zeros(1))
    made = f([])
    ops.old._destroy(ops.name("f"))
    gone = hasattr(getattr(torch.ops, ops.space), "f"), ops.name("f") in ops.impl.global_registry
    return (
        before,
        unknown,
        run,
        again,
        kinds,
        made,
        gone,
        str(ops.defined("(Tensor x) -> Tensor")).partition(".")[2],
    )


@case("parts of an operation that torch.library has defined")
def _(torch):
    ops = Ops(torch)
    lib = torch.library.Library(ops.space, "FRAGMENT")
    for name, key in (("a", "CPU"), ("b", "CompositeImplicitAutograd"), ("c", "Autograd"), ("d", "Meta")):
        lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl(name, lambda x: x.sin(), key)
    returns = ("Scalar", "str", "int[]", "(Tensor, Tensor?)", "(Tensor, int)", "Tensor[]", "()", "Tensor(a)")
    for number, word in enumerate(returns):
        lib.define(f"r{number}(Tensor{'(a)' if '(a)' in word else ''} x) -> {word}")
    lib.define("w(Tensor(a!) x) -> Tensor")
    return (
        ops.said(ops.old.impl, ops.name("a"), device_types="cpu", func=len),
        [ops.said(ops.old.impl_backward, ops.name(n), func=len) for n in "bcw"],
        [ops.said(ops.impl._find_custom_op(ops.name(n), True).impl_abstract(), len) for n in "bd"],
        [ops.said(ops.old.impl_backward(ops.name(f"r{n}")), len) for n in (0, 1, 2, 3, 6, 7)],
    )


@case("a gradient of two parts")
def _(torch):
    ops, seen = Ops(torch), []

    def save(inputs, output):
        seen.append((type(inputs).__name__, inputs._fields, output.shape, inputs.s))
        return {"x": inputs.x, "count": 3}

    def back(ctx, saved, grad):
        return {"x": grad * saved["x"], "more": [grad, None], "maybe": None}

    schema = "(Tensor x, float s, Tensor[] more, Tensor? maybe, int k) -> Tensor"
    f = ops.differentiable(schema, lambda x, s, more, maybe, k: x * s, save, back)
    x, y, z = (torch.full((2,), 2.0, dtype=torch.double, requires_grad=True) for _ in range(3))
    result = f(x, 2.0, [y, z], None, 3)
    result.sum().backward()
    with torch.no_grad():
        constant = f(x, 2.0, [y, z], None, 3).requires_grad
    return seen[:1], result.grad_fn.name(), x.grad, y.grad, z.grad, constant


@case("a gradient that is recorded in its turn")
def _(torch):
    ops = Ops(torch)
    f = ops.differentiable(
        "(Tensor x) -> Tensor",
        lambda x: x**3,
        lambda inputs, output: inputs.x,
        lambda ctx, x, grad: {"x": grad * 3 * x**2},
    )
    x = torch.rand(3, dtype=torch.double, requires_grad=True)
    return torch.autograd.gradcheck(f, x), torch.autograd.gradgradcheck(f, x)


@case("parts that are missing, and gradients that do not fit")
def _(torch):
    told = []

    def ask(schema, args, save, back, said=None):
        ops = Ops(torch)

        def whole():
            made = ops.differentiable(schema, lambda *a: a[0] * 2, save, back, said)
            made(*args).sum().backward()
            return args[0].grad

        told.append(ops.said(whole))

    def x():
        return torch.ones(2, requires_grad=True)

    ask("(Tensor x) -> Tensor", (x(),), None, lambda ctx, saved, g: {"x": g})
    ask("(Tensor x) -> Tensor", (x(),), nothing, None)
    wrong = (lambda g: g, lambda g: {}, lambda g: {"x": g, "y": g}, lambda g: {"x": 3}, lambda g: {"x": None})
    for make in wrong:
        ask("(Tensor x) -> Tensor", (x(),), nothing, lambda ctx, saved, g, make=make: make(g))
    lists = (lambda g: g, lambda g: [g], lambda g: (g, g), lambda g: [g, "no"], lambda g: [None, None])
    for make in lists:
        back = lambda ctx, saved, g, make=make: {"x": g, "l": make(g)}
        ask("(Tensor x, Tensor[] l) -> Tensor", (x(), [x(), x()]), nothing, back)
    ask("(Tensor x, Tensor? o) -> Tensor", (x(), None), nothing, lambda ctx, saved, g: {"x": g, "o": g})
    return [re.sub(r"\{'\w', '\w'\}", "KEYS", line) for line in told]  # a set in any order


@case("outputs that are not differentiable")
def _(torch):
    told = []

    def ask(returns, run, said, back):
        ops = Ops(torch)

        def whole():
            x = torch.ones(2, requires_grad=True)
            result = ops.differentiable(f"(Tensor x) -> {returns}", run, nothing, back, said)(x)
            leaves = result if isinstance(result, (tuple, list)) else [result]
            needs = [getattr(leaf, "requires_grad", leaf) for leaf in leaves]
            sum(leaf.sum() for leaf, yes in zip(leaves, needs) if yes is True).backward()
            return type(result).__name__, needs, x.grad

        told.append(ops.said(whole))

    for said in (None, [True, False], [False, True], True, [True], ["a", True]):
        ask("(Tensor, Tensor)", lambda x: (x * 2, x * 3), said, lambda ctx, s, a, b: {"x": a + 10 * b})
    for said in ([True, True], [True, False], None):
        ask("(Tensor, int)", lambda x: (x * 2, 3), said, lambda ctx, s, a, b: {"x": a})
    for said in ([True], None):
        ask("Tensor[]", lambda x: [x * 2, x * 3], said, lambda ctx, s, a: {"x": a[0] + 10 * a[1]})
    return told


@case("the list that a tuple becomes")
def _(torch):
    to_list = importlib.import_module(f"{torch.__name__}._library.infer_schema").tuple_to_list
    kinds = (tuple, tuple[()], tuple[int], tuple[int, ...], tuple[int, str], tuple[int, str, float])
    return [str(to_list(kind)) for kind in kinds]


@pytest.mark.parametrize("name", CASES)
def test_it_gives_what_torch_gives(name):
    assert outcome(lambda: CASES[name](rushlight)) == outcome(lambda: CASES[name](torch))


@pytest.mark.parametrize("kinds", [("cpu", "cuda"), ("cuda", "cpu")])
def test_kernels_are_registered_in_the_order_given(kinds):
    ops = Ops(rushlight)
    ops.defined("(Tensor x) -> Tensor")
    ops.old.impl(ops.name("f"), device_types=kinds, func=abs)
    said = ops.said(ops.old.impl, ops.name("f"), device_types=kinds, func=abs)
    assert said.startswith(f"RuntimeError: Attempting to register a {kinds[0]} impl for operator old::f")
