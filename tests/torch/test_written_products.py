"""Operands of products written between the forward and the backward, in every combination of dimensions,
broadcast batches and layouts: torch copies some of them before it multiplies, which then may be written, and
keeps the others. Here the same writes are taken and refused, in the same words, and the gradients are those
of what was multiplied."""

import itertools
import math

import pytest

import rushlight

torch = pytest.importorskip("torch")

BATCHES = {1: [()], 2: [()], 3: [(5,), (1,)], 4: [(2, 5), (1, 5), (2, 1), (1, 1)]}
LAYOUTS = {"plain": (), "turned": (-1, -2), "moved": (0, -2)}  # the dimensions that were exchanged


def sizes(dims, matrix):
    return [(*batch, *matrix) if dims > 1 else (3,) for batch in BATCHES[dims]]


def layouts(dims):
    return list(LAYOUTS)[: min(dims, 3)]


def leaf(library, size, layout, wanted, start):
    size = list(size)
    if layout != "plain":
        one, other = LAYOUTS[layout]
        size[one], size[other] = size[other], size[one]
    numbers = [((k * 7 + start) % 11 - 5) / 4 for k in range(math.prod(size))]
    return library.tensor(numbers, dtype=library.float64).reshape(size).requires_grad_(wanted)


def ending(library, function, given, written):
    """The gradients, or what is wrong, after a write into an operand. given: (size, layout, wants grad)."""
    leaves = [leaf(library, *each, 3 * at) for at, each in enumerate(given)]
    operands = [x * 1 for x in leaves]
    for at, (_, layout, _) in enumerate(given):
        if layout != "plain":
            operands[at] = operands[at].transpose(*LAYOUTS[layout])
    result = function(library, *operands)
    with library.no_grad():
        operands[written].mul_(2)
    try:
        result.square().sum().backward()
    except RuntimeError as error:
        return str(error).split("\n")[0]
    return [number for x in leaves if x.grad is not None for number in x.grad.flatten().tolist()]


def differs(function, given, written):
    mine, theirs = (ending(library, function, given, written) for library in (rushlight, torch))
    if isinstance(mine, str) or isinstance(theirs, str):
        return mine != theirs
    return max(abs(ours - torchs) for ours, torchs in zip(mine, theirs, strict=True)) > 1e-9


def product(library, a, b):
    return library.matmul(a, b)


@pytest.mark.parametrize(("dims_a", "dims_b"), list(itertools.product(BATCHES, BATCHES)))
def test_operands_that_torch_copies_may_be_written(dims_a, dims_b):
    found = []
    pairs = itertools.product(sizes(dims_a, (4, 3)), layouts(dims_a), sizes(dims_b, (3, 2)), layouts(dims_b))
    for (size_a, layout_a, size_b, layout_b), wanted, written in itertools.product(
        pairs, [(True, True), (True, False), (False, True)], range(2)
    ):
        given = [(size_a, layout_a, wanted[0]), (size_b, layout_b, wanted[1])]
        if differs(product, given, written):
            found.append((given, written))
    assert not found


CONTRACTED = """
    bij,bij->bij ij,ij->ij i,i->i i,j->ij ij,j->ij ij,ij->ji ij,ji->ij bi,bj->bij ij,ij-> ij,ij->i
    i,i-> ij,jk->ik ij,jk->ki bij,bjk->bik bij,bjk->kbi bid,od->bio ij,j->i j,ij->i bi,bi,bi->b
    ij,jk,kl->il ij,jk,kl->li i,ij,j-> bi,oij,bj->bo ii,i->i bqhd,bkhd->bhqk bhqk,bkhd->bqhd
    ij,kl->ijkl ikj,jlm->likm ikj,jl->lki ij,->ij
"""
EINSUMS = CONTRACTED.split()
LENGTHS = dict(zip("abcdehijklmoq", (2, 3, 4, 5, 2, 3, 4, 3, 5, 2, 6, 7, 8), strict=True))


def subscripts(equation):
    return [tuple(LENGTHS[label] for label in own) for own in equation.partition("->")[0].split(",")]


@pytest.mark.parametrize("equation", EINSUMS)
@pytest.mark.parametrize("layout", ["plain", "turned"])
def test_writes_into_operands_of_einsum(equation, layout):
    def contracted(library, *operands):
        return library.einsum(equation, *operands)

    lengths = subscripts(equation)
    shapes = [(size, layout if len(size) > 1 else "plain") for size in lengths]
    for written, constant in itertools.product(range(len(shapes)), [False, True]):
        given = [(*each, not constant or at != written) for at, each in enumerate(shapes)]
        assert not differs(contracted, given, written), (given, written)


@pytest.mark.parametrize("equation", EINSUMS)
def test_results_of_einsum_lie_in_memory_as_torchs(equation):
    def seen(library):
        result = library.einsum(
            equation, *(library.ones(size, requires_grad=True) for size in subscripts(equation))
        )
        return result.stride(), result._base is None, result.grad_fn.name()

    assert seen(rushlight) == seen(torch)


def test_a_mask_of_booleans_may_be_written():
    def gradients(library):
        q, k, v = (library.linspace(-1, at, 24).reshape(1, 2, 4, 3).requires_grad_() for at in (1, 2, 3))
        mask = library.ones(4, 4, dtype=library.bool).tril()
        out = library.nn.functional.scaled_dot_product_attention(q, k, v, mask)
        mask.logical_not_()
        out.square().sum().backward()
        return [number for x in (q, k, v) for number in x.grad.flatten().tolist()]

    assert gradients(rushlight) == pytest.approx(gradients(torch), abs=1e-5)


def test_products_are_named_and_lie_in_memory_as_torchs():
    found = []
    for dims in itertools.product(BATCHES, BATCHES):
        left, right = sizes(dims[0], (4, 3)), sizes(dims[1], (3, 2))
        for size_a, size_b, wanted in itertools.product(
            left, right, [(True, True), (True, False), (False, True)]
        ):
            seen = []
            for library in (rushlight, torch):
                a, b = (
                    library.ones(s, requires_grad=w) for s, w in zip((size_a, size_b), wanted, strict=True)
                )
                out = a @ b
                seen.append((out.grad_fn.name(), out.stride(), out._version, out._base is None))
            if seen[0] != seen[1]:
                found.append((size_a, size_b, wanted, seen))
    assert not found
