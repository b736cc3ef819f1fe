"""The graphs of products: every node that torch records for them, by name, with its edges, sizes and strides,
for operands of all dimensions, laid out in memory in several ways, each requiring grad or not."""

from itertools import permutations, product

import pytest
import torch

import rushlight

LIBS = (rushlight, torch)
LAYOUTS = {
    "dense": lambda lib, size: lib.ones(size),
    "turned": lambda lib, size: lib.ones(*size[:-2], size[-1], size[-2]).mT,
    "strided": lambda lib, size: lib.ones(*size[:-1], 2 * size[-1])[..., ::2],
    "batch turned": lambda lib, size: lib.ones(size[1], size[0], *size[2:]).transpose(0, 1),
    "repeated": lambda lib, size: lib.ones(size[-1:]).expand(size),
}
DIMS = {"turned": 2, "batch turned": 3, "repeated": 2}


def shown(node):
    """What a node shows of sizes, strides and numbers."""
    names = [name for name in dir(node) if name.startswith("_saved_")]
    values = {name: getattr(node, name) for name in names}
    return {
        name: (tuple(value.shape), value.stride()) if hasattr(value, "stride") else value
        for name, value in values.items()
    }


def drawn(node, values):
    if node is None:
        return None
    if hasattr(node, "variable"):
        return tuple(node.variable.shape)
    behind = [drawn(after, values) for after, _ in node.next_functions]
    return (node.name(), shown(node) if values else None, behind)


def told(function, lib, sizes, layouts, required, values=True):
    inputs = [LAYOUTS[layout](lib, size).detach() for size, layout in zip(sizes, layouts)]
    for x, needs in zip(inputs, required):
        x.requires_grad_(needs)
    try:
        y = function(lib, *inputs)
    except RuntimeError as error:
        return str(error).split("\n")[0]
    base = None if y._base is None else (tuple(y._base.shape), drawn(y._base.grad_fn, False))
    return (tuple(y.shape), y.stride(), y._is_view(), base, y._version, drawn(y.grad_fn, values))


def compare(function, *sizes, values=True, layouts=LAYOUTS):
    for layout in product(layouts, repeat=len(sizes)):
        if any(len(size) < DIMS.get(name, 1) for size, name in zip(sizes, layout)):
            continue
        for required in product((False, True), repeat=len(sizes)):
            mine, theirs = (told(function, lib, sizes, layout, required, values) for lib in LIBS)
            assert mine == theirs, (sizes, layout, required)


@pytest.mark.parametrize("a", [(4,), (3, 4), (1, 4), (2, 3, 4), (1, 3, 4), (6, 2, 3, 4), (6, 1, 3, 4)])
@pytest.mark.parametrize(
    "b", [(4,), (4, 5), (4, 1), (2, 4, 5), (1, 4, 5), (2, 4, 1), (6, 2, 4, 5), (0, 4, 5)]
)
def test_matmul(a, b):
    compare(lambda lib, x, y: x @ y, a, b)


@pytest.mark.parametrize("x", [(4,), (3, 4), (2, 3, 4), (1, 3, 4), (2, 2, 3, 4), (0, 3, 4)])
@pytest.mark.parametrize("bias", [None, (5,), (1,), (1, 5), (3, 5), (3,)])
def test_linear(x, bias):
    sizes = (x, (5, 4)) if bias is None else (x, (5, 4), bias)
    compare(
        lambda lib, *given: lib.nn.functional.linear(*given),
        *sizes,
        values=bias is None,  # the sizes of factors that need no gradient are not kept for a bias
        layouts=("dense", "strided", "turned"),
    )


@pytest.mark.parametrize("call", ["addmm", "addbmm", "baddbmm"])
def test_sums_with_products_show_their_factors(call):
    batch = () if call == "addmm" else (2,)
    sizes = ((3, 5) if call != "baddbmm" else (2, 3, 5), (*batch, 3, 4), (*batch, 4, 5))
    compare(lambda lib, *given: getattr(lib, call)(*given, beta=2, alpha=3), *sizes, layouts=("dense",))


def test_tensordot_sums_over_single_elements():
    compare(
        lambda lib, x, y: lib.tensordot(x, y, ([0], [0])),
        (1, 3, 4),
        (1, 5),
        values=False,
        layouts=("dense", "turned"),
    )


@pytest.mark.parametrize("write", ["y.relu_()", "y += 1", "y[0].mul_(2)", "y._base.mul_(3)", "y.t_()"])
@pytest.mark.parametrize("size", [(4,), (2, 3, 4)])
def test_writes_into_the_result_of_linear(size, write):
    found = []
    for lib in LIBS:
        x, w, b = (lib.arange(n).reshape(s).double().sub_(5).requires_grad_()
                   for n, s in ((lib.Size(size).numel(), size), (20, (5, 4)), (5, 5)))  # fmt: skip
        y = lib.nn.functional.linear(x, w, b)
        known = {"y": y}
        try:
            exec(write, known)
            y.pow(2).sum().backward()
        except RuntimeError as error:
            found.append(str(error).split("\n")[0])
            continue
        grads = [each.grad.tolist() for each in (x, w, b)]
        found.append((y.grad_fn.name(), y._version, drawn(y._base.grad_fn, False), grads))
    assert found[0] == found[1]


def test_graphs_are_shown_after_the_backward_too():
    for a, b in (((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((3, 4), (2, 4, 5)), ((2, 3, 4), (4,))):
        for required in ((False, True), (True, False), (True, True)):
            if (a, b) == ((2, 3, 4), (4, 5)) and not required[1]:
                continue  # that it was no batch is not known any more
            found = []
            for lib in LIBS:
                x, y = (lib.ones(size, requires_grad=needs) for size, needs in zip((a, b), required))
                z = x @ y
                z.sum().backward()
                found.append(drawn(z.grad_fn, False))
            assert found[0] == found[1], (a, b, required)


@pytest.mark.parametrize("sizes", [((3, 4), (2, 4, 5)), ((6, 1, 3, 4), (2, 4, 5)), ((4,), (2, 4, 5)),
                                   ((2, 3, 4), (1, 4, 5)), ((3, 4), (2, 4, 1))])  # fmt: skip
def test_hooks_within_products_that_repeat_an_operand(sizes):
    def run(lib):
        told = []
        inputs = [lib.arange(float(lib.Size(size).numel())).reshape(size).double().requires_grad_()
                  for size in sizes]  # fmt: skip
        z = inputs[0] @ inputs[1]
        seen = []

        def add(node):
            if node is None or node in seen or hasattr(node, "variable"):
                return
            seen.append(node)
            name = f"{len(seen)} {node.name()}"
            node.register_prehook(lambda gs: told.append((name, [g.tolist() for g in gs])))
            node.register_hook(
                lambda gs, _: told.append((name, [g if g is None else g.tolist() for g in gs]))
            )
            node.register_hook(lambda gs, _: tuple(g if g is None else g * len(seen) for g in gs))
            for after, _ in node.next_functions:
                add(after)

        add(z.grad_fn)
        z.pow(2).sum().backward()
        return sorted(told, key=str), [x.grad.tolist() for x in inputs]

    assert run(rushlight) == run(torch)


EQUATIONS = [
    f"{a},{b}->{''.join(result)}"
    for a in ("i", "ij", "bij", "jib")
    for b in ("j", "kj", "bjk", "ji")
    for count in range(4)
    for result in permutations(sorted({*a, *b}), count)
]


@pytest.mark.parametrize("required", [False, True])
def test_einsum_gives_views_in_the_same_layouts(required):
    sizes = {"i": 3, "j": 4, "k": 5, "b": 2, "l": 1}
    for equation in [*EQUATIONS, "ij,jl->il", "ij->ji", "ij->j", "ii->i"]:
        found = []
        for lib in LIBS:
            factors = equation.split("->")[0].split(",")
            inputs = [lib.ones([sizes[name] for name in own], requires_grad=required) for own in factors]
            y = lib.einsum(equation, *inputs)
            name = None if y.grad_fn is None else y.grad_fn.name()
            found.append((y._is_view(), tuple(y.shape), y.stride(), name))
        assert found[0] == found[1], equation


def test_what_einsum_only_multiplies_has_the_views_of_torch():
    for equation, sizes in (("i,j->ij", ((3,), (4,))), ("bi,bj->bji", ((2, 3), (2, 4)))):
        compare(
            lambda lib, *given, equation=equation: lib.einsum(equation, *given), *sizes, layouts=("dense",)
        )
