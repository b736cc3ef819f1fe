"""Operands written between a product and its backward: the error names what torch's product was given, which
is often a view of the operand (the transposed weight of `linear`, the rows of a batch)."""

import pytest

import rushlight

torch = pytest.importorskip("torch")

PRODUCTS = {
    "linear": ("nn.functional.linear", [(4, 3), (2, 3), (2,)]),
    "linear without bias": ("nn.functional.linear", [(4, 3), (2, 3)]),
    "linear of a batch": ("nn.functional.linear", [(5, 4, 3), (2, 3), (2,)]),
    "linear of a batch without bias": ("nn.functional.linear", [(5, 4, 3), (2, 3)]),
    "linear of a vector": ("nn.functional.linear", [(3,), (2, 3), (2,)]),
    "linear of a vector without bias": ("nn.functional.linear", [(3,), (2, 3)]),
    "two matrices": ("matmul", [(4, 3), (3, 2)]),
    "a matrix and a vector": ("matmul", [(4, 3), (3,)]),
    "a vector and a matrix": ("matmul", [(3,), (3, 2)]),
    "a batch and a matrix": ("matmul", [(5, 4, 3), (3, 2)]),
    "a batch and a vector": ("matmul", [(5, 4, 3), (3,)]),
    "two batches": ("matmul", [(5, 4, 3), (5, 3, 2)]),
    "two batches of batches": ("matmul", [(5, 6, 4, 3), (5, 6, 3, 2)]),
    "a pool of lines": ("nn.functional.avg_pool1d", [(1, 2, 6)]),
}
CASES = [(name, written, how) for name, (_, sizes) in PRODUCTS.items() for written in range(len(sizes))
         for how in ("leaf", "computed", "constant") if how != "constant" or len(sizes) > 1]  # fmt: skip


def ending(library, name, written, how):
    path, sizes = PRODUCTS[name]
    function = library
    for part in path.split("."):
        function = getattr(function, part)
    operands = [library.ones(size, requires_grad=True) for size in sizes]
    if how == "computed":
        operands = [operand * 1 for operand in operands]
    if how == "constant":
        operands[written] = library.ones(sizes[written])
    loss = function(*operands, *([2] if path.endswith("pool1d") else [])).sum()
    with library.no_grad():
        operands[written].mul_(2)
    try:
        loss.backward()
    except RuntimeError as error:
        return str(error).split("\n")[0]
    return "no error"


@pytest.mark.parametrize(("name", "written", "how"), CASES)
def test_error_names_what_was_multiplied(name, written, how):
    assert ending(rushlight, name, written, how) == ending(torch, name, written, how)
