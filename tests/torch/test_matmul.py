"""Matrix products against torch: random shapes, layouts and dtypes, sentences of errors."""

import random

import pytest
import torch
from comparing import REFUSALS, assert_same

import rushlight

pytestmark = pytest.mark.filterwarnings("ignore")
DTYPES = ("float32", "float64", "complex64", "complex128", "float16", "bfloat16", "int8", "int64", "uint8")


def pair(rng, shape, dtype):
    """The same tensor in both libraries, in a random memory layout."""
    count = 1
    for size in shape:
        count *= size
    if dtype.startswith("complex"):
        numbers = [complex(rng.uniform(-2, 2), rng.uniform(-2, 2)) for _ in range(count)]
    elif dtype.startswith(("float", "bfloat")):
        numbers = [rng.uniform(-2, 2) for _ in range(count)]
    else:
        numbers = [rng.randrange(0, 12) for _ in range(count)]
    layout = rng.randrange(3)
    made = []
    for lib in (rushlight, torch):
        t = lib.tensor(numbers, dtype=getattr(lib, dtype)).reshape(shape)
        if layout == 1 and len(shape) > 1:
            t = t.mT.contiguous().mT
        elif layout == 2 and shape:
            t = lib.empty((*shape, 2), dtype=t.dtype).select(-1, 0).copy_(t)
        made.append(t)
    return made


def batch(rng):
    return tuple(rng.choice((1, 2, 3)) for _ in range(rng.randrange(3)))


@pytest.mark.parametrize("seed", range(8))
def test_matmul_of_random_shapes(seed):
    rng = random.Random(seed)
    for _ in range(120):
        dtype = rng.choice(DTYPES)
        m, k, n = (rng.choice((0, 1, 2, 3, 5, 9, 17, 33)) for _ in range(3))
        shared = batch(rng)
        left, right = ((*shared[rng.randrange(len(shared) + 1) :], *matrix) for matrix in ((m, k), (k, n)))
        left = rng.choice((left, left, (k,)))
        right = rng.choice((right, right, (k,)))
        (a, ta), (b, tb) = pair(rng, left, dtype), pair(rng, right, dtype)
        try:
            assert_same(rushlight.matmul(a, b), torch.matmul(ta, tb), scale=1 + k)
        except Exception as problem:
            problem.add_note(f"matmul of {left} and {right} in {dtype}, seed {seed}")
            raise


@pytest.mark.parametrize("seed", range(4))
def test_gradients_of_random_shapes(seed):
    rng = random.Random(100 + seed)
    for _ in range(60):
        dtype = rng.choice(("float64", "complex128"))
        m, k, n = (rng.choice((1, 2, 3, 5)) for _ in range(3))
        shared = batch(rng)
        left, right = ((*shared[rng.randrange(len(shared) + 1) :], *matrix) for matrix in ((m, k), (k, n)))
        left, right = rng.choice((left, left, (k,))), rng.choice((right, right, (k,)))
        (a, ta), (b, tb) = pair(rng, left, dtype), pair(rng, right, dtype)
        gradients = []
        for lib, x, y in ((rushlight, a, b), (torch, ta, tb)):
            x, y = x.detach().requires_grad_(), y.detach().requires_grad_()
            out = lib.matmul(x, y)
            loss = (out * out).sum()
            loss = loss.real if dtype == "complex128" else loss
            first = lib.autograd.grad(loss, (x, y), create_graph=True)
            total = sum((g * g).sum() for g in first)
            total = total.real if dtype == "complex128" else total
            gradients.append([*first, *lib.autograd.grad(total, (x, y))])
        for ours, theirs in zip(*gradients, strict=True):
            assert_same(ours, theirs, scale=100, strides=False)


def t(lib, *shape, dtype="float32"):
    return lib.ones(shape, dtype=getattr(lib, dtype))


ERRORS = {
    "matmul 0d": lambda lib: lib.matmul(t(lib), t(lib, 3)),
    "matmul 1d 1d": lambda lib: t(lib, 2) @ t(lib, 3),
    "matmul 2d 1d": lambda lib: t(lib, 2, 3) @ t(lib, 4),
    "matmul 1d 2d": lambda lib: t(lib, 2) @ t(lib, 3, 4),
    "matmul 2d 2d": lambda lib: t(lib, 2, 3) @ t(lib, 4, 5),
    "matmul 3d 3d": lambda lib: t(lib, 2, 3, 4) @ t(lib, 2, 5, 6),
    "matmul batch": lambda lib: t(lib, 2, 3, 4) @ t(lib, 3, 4, 6),
    "matmul 3d 2d": lambda lib: t(lib, 2, 3, 4) @ t(lib, 5, 6),
    "matmul 3d 1d": lambda lib: t(lib, 2, 3, 4) @ t(lib, 5),
    "matmul 1d 3d": lambda lib: t(lib, 2) @ t(lib, 2, 3, 5),
    "matmul 2d 3d": lambda lib: t(lib, 2, 3) @ t(lib, 2, 4, 5),
    "matmul 2d 3d requiring grad": lambda lib: t(lib, 2, 3).requires_grad_() @ t(lib, 2, 4, 5),
    "matmul 1d 3d requiring grad": lambda lib: t(lib, 2).requires_grad_() @ t(lib, 2, 3, 5),
    "matmul strided 3d 2d": lambda lib: t(lib, 3, 2, 4).transpose(0, 1) @ t(lib, 5, 6),
    "matmul 2d 3d dtypes": lambda lib: t(lib, 2, 3) @ t(lib, 2, 3, 5, dtype="float64"),
    "matmul 1d 3d dtypes": lambda lib: t(lib, 3) @ t(lib, 2, 3, 5, dtype="float64"),
    "matmul 2d 3d requiring grad dtypes": lambda lib: (
        t(lib, 2, 3).requires_grad_() @ t(lib, 2, 3, 5, dtype="float64")
    ),
    "matmul 4d 3d": lambda lib: t(lib, 6, 2, 3, 4) @ t(lib, 3, 4, 5),
    "matmul dtypes": lambda lib: t(lib, 2, 3) @ t(lib, 3, 4, dtype="float64"),
    "matmul long": lambda lib: t(lib, 2, 3) @ t(lib, 3, 4, dtype="int64"),
    "matmul half": lambda lib: t(lib, 2, 3) @ t(lib, 3, 4, dtype="float16"),
    "matmul complex": lambda lib: t(lib, 2, 3) @ t(lib, 3, 4, dtype="complex64"),
    "matmul dot dtypes": lambda lib: t(lib, 3) @ t(lib, 3, dtype="float64"),
    "matmul mv dtypes": lambda lib: t(lib, 2, 3) @ t(lib, 3, dtype="float64"),
    "matmul bmm dtypes": lambda lib: t(lib, 2, 2, 3) @ t(lib, 2, 3, 3, dtype="float64"),
    "matmul fold dtypes": lambda lib: t(lib, 2, 2, 3) @ t(lib, 3, 3, dtype="float64"),
    "matmul number": lambda lib: lib.matmul(t(lib, 2, 3), 3),
    "operator number": lambda lib: t(lib, 2, 3) @ 3,
    "operator reflected": lambda lib: 3 @ t(lib, 2, 3),
    "operator list": lambda lib: t(lib, 2, 3) @ [1, 2, 3],
    "mm bool": lambda lib: lib.mm(t(lib, 2, 2, dtype="bool"), t(lib, 2, 2, dtype="bool")),
    "bmm bool": lambda lib: lib.bmm(t(lib, 2, 2, 2, dtype="bool"), t(lib, 2, 2, 2, dtype="bool")),
    "mv bool": lambda lib: lib.mv(t(lib, 2, 2, dtype="bool"), t(lib, 2, dtype="bool")),
    "dot bool": lambda lib: lib.dot(t(lib, 2, dtype="bool"), t(lib, 2, dtype="bool")),
    "mm vector": lambda lib: lib.mm(t(lib, 3), t(lib, 3, 4)),
    "mm batch": lambda lib: lib.mm(t(lib, 2, 3), t(lib, 1, 3, 4)),
    "mm shapes": lambda lib: lib.mm(t(lib, 2, 3), t(lib, 4, 5)),
    "mm number": lambda lib: lib.mm(t(lib, 2, 3), 3),
    "mm out dtype": lambda lib: lib.mm(t(lib, 2, 3), t(lib, 3, 4), out=t(lib, 2, 4, dtype="float64")),
    "bmm matrix": lambda lib: lib.bmm(t(lib, 2, 3), t(lib, 2, 3, 4)),
    "bmm second matrix": lambda lib: lib.bmm(t(lib, 2, 3, 4), t(lib, 2, 3)),
    "bmm batches": lambda lib: lib.bmm(t(lib, 2, 3, 4), t(lib, 3, 4, 5)),
    "bmm inner": lambda lib: lib.bmm(t(lib, 2, 3, 4), t(lib, 2, 5, 5)),
    "mv shapes": lambda lib: lib.mv(t(lib, 2, 3), t(lib, 4)),
    "mv dimensions": lambda lib: lib.mv(t(lib, 2, 3), t(lib, 3, 1)),
    "dot shapes": lambda lib: lib.dot(t(lib, 2), t(lib, 3)),
    "dot dimensions": lambda lib: lib.dot(t(lib, 2, 2), t(lib, 2)),
    "vdot dtypes": lambda lib: lib.vdot(t(lib, 2), t(lib, 2, dtype="complex64")),
    "inner shapes": lambda lib: lib.inner(t(lib, 2, 3), t(lib, 4, 2)),
    "inner dtypes": lambda lib: lib.inner(t(lib, 2, 3), t(lib, 4, 3, dtype="float64")),
    "outer dimensions": lambda lib: lib.outer(t(lib, 2, 2), t(lib, 3)),
    "outer second": lambda lib: lib.outer(t(lib, 2), t(lib, 3, 1)),
    "addmm shapes": lambda lib: lib.addmm(t(lib, 4), t(lib, 2, 3), t(lib, 4, 4)),
    "addmm input": lambda lib: lib.addmm(t(lib, 5), t(lib, 2, 3), t(lib, 3, 4)),
    "addmm input dimensions": lambda lib: lib.addmm(t(lib, 1, 2, 4), t(lib, 2, 3), t(lib, 3, 4)),
    "addmm dtypes": lambda lib: lib.addmm(t(lib, 4), t(lib, 2, 3), t(lib, 3, 4, dtype="float64")),
    "addmm input dtype": lambda lib: lib.addmm(t(lib, 4, dtype="float64"), t(lib, 2, 3), t(lib, 3, 4)),
    "addmm vector": lambda lib: lib.addmm(t(lib, 4), t(lib, 3), t(lib, 3, 4)),
    "addmm complex alpha": lambda lib: lib.addmm(t(lib, 4), t(lib, 2, 3), t(lib, 3, 4), alpha=1j),
    "addmm in place": lambda lib: t(lib, 4).addmm_(t(lib, 2, 3), t(lib, 3, 4)),
    "addmv shapes": lambda lib: lib.addmv(t(lib, 2), t(lib, 2, 3), t(lib, 4)),
    "addmv input": lambda lib: lib.addmv(t(lib, 3), t(lib, 2, 3), t(lib, 3)),
    "addmv dimensions": lambda lib: lib.addmv(t(lib, 2, 1), t(lib, 2, 3), t(lib, 3)),
    "addmv dtypes": lambda lib: lib.addmv(t(lib, 2), t(lib, 2, 3), t(lib, 3, dtype="float64")),
    "addr dimensions": lambda lib: lib.addr(t(lib, 2, 3), t(lib, 2, 2), t(lib, 3)),
    "addr shapes": lambda lib: lib.addr(t(lib, 2, 4), t(lib, 2), t(lib, 3)),
    "addr alpha": lambda lib: lib.addr(
        t(lib, 2, 3, dtype="int64"), t(lib, 2, dtype="int64"), t(lib, 3, dtype="int64"), alpha=0.5
    ),
    "addr in place": lambda lib: t(lib, 3).addr_(t(lib, 2), t(lib, 3)),
    "addbmm shapes": lambda lib: lib.addbmm(t(lib, 2, 4), t(lib, 5, 2, 3), t(lib, 5, 4, 4)),
    "addbmm batches": lambda lib: lib.addbmm(t(lib, 2, 4), t(lib, 5, 2, 3), t(lib, 6, 3, 4)),
    "addbmm input": lambda lib: lib.addbmm(t(lib, 3, 4), t(lib, 5, 2, 3), t(lib, 5, 3, 4)),
    "baddbmm shapes": lambda lib: lib.baddbmm(t(lib, 5, 2, 4), t(lib, 5, 2, 3), t(lib, 5, 4, 4)),
    "baddbmm input": lambda lib: lib.baddbmm(t(lib, 5, 3, 4), t(lib, 5, 2, 3), t(lib, 5, 3, 4)),
    "baddbmm dtypes": lambda lib: lib.baddbmm(
        t(lib, 5, 2, 4), t(lib, 5, 2, 3), t(lib, 5, 3, 4, dtype="float64")
    ),
    "linear shapes": lambda lib: lib.nn.functional.linear(t(lib, 2, 3), t(lib, 4, 5), t(lib, 4)),
    "linear 3d": lambda lib: lib.nn.functional.linear(t(lib, 2, 2, 3), t(lib, 4, 5), t(lib, 4)),
    "linear 1d": lambda lib: lib.nn.functional.linear(t(lib, 3), t(lib, 4, 5)),
    "linear bias": lambda lib: lib.nn.functional.linear(t(lib, 2, 3), t(lib, 4, 3), t(lib, 5)),
    "linear weight dtype": lambda lib: lib.nn.functional.linear(
        t(lib, 2, 3), t(lib, 4, 3, dtype="float64"), t(lib, 4)
    ),
    "linear input dtype": lambda lib: lib.nn.functional.linear(
        t(lib, 2, 3, dtype="float64"), t(lib, 4, 3), t(lib, 4)
    ),
    "linear no bias dtypes": lambda lib: lib.nn.functional.linear(
        t(lib, 2, 3), t(lib, 4, 3, dtype="float64")
    ),
    "linear 0d": lambda lib: lib.nn.functional.linear(t(lib), t(lib, 4, 3), t(lib, 4)),
    "linear 3d weight": lambda lib: lib.nn.functional.linear(t(lib, 2, 3), t(lib, 4, 3, 2), t(lib, 4)),
    "linear none": lambda lib: lib.nn.functional.linear(None, t(lib, 4, 3)),
    "multi_dot one": lambda lib: lib.linalg.multi_dot([t(lib, 3)]),
    "multi_dot shapes": lambda lib: lib.linalg.multi_dot([t(lib, 2, 3), t(lib, 4, 2)]),
    "multi_dot dimensions": lambda lib: lib.linalg.multi_dot([t(lib, 2, 3), t(lib, 2, 2, 2), t(lib, 3, 3)]),
    "chain none": lambda lib: lib.chain_matmul(),
    "tensordot shapes": lambda lib: lib.tensordot(t(lib, 2, 3), t(lib, 4, 3), dims=1),
    "tensordot negative": lambda lib: lib.tensordot(t(lib, 2, 3), t(lib, 4, 3), dims=-1),
    "tensordot lengths": lambda lib: lib.tensordot(t(lib, 2, 3), t(lib, 4, 3), dims=([1], [1, 0])),
    "tensordot too many": lambda lib: lib.tensordot(t(lib, 2, 3), t(lib, 4, 3), dims=3),
    "tensordot dtypes": lambda lib: lib.tensordot(t(lib, 2, 3), t(lib, 3, 3, dtype="float64"), dims=1),
    "tensordot repeated": lambda lib: lib.tensordot(t(lib, 3, 3), t(lib, 3, 3), dims=([0, 0], [0, 1])),
    "tensordot range": lambda lib: lib.tensordot(t(lib, 3, 3), t(lib, 3, 3), dims=([4], [0])),
    "tensordot ints": lambda lib: lib.tensordot(t(lib, 3, 4), t(lib, 5, 3), dims=(0, 1)),
    "cross none of size 3": lambda lib: lib.cross(t(lib, 4, 4), t(lib, 4, 4)),
    "cross size": lambda lib: lib.cross(t(lib, 4, 4), t(lib, 4, 4), dim=1),
    "cross dimensions": lambda lib: lib.cross(t(lib, 4, 3), t(lib, 3), dim=1),
    "cross dtypes": lambda lib: lib.cross(t(lib, 4, 3), t(lib, 4, 3, dtype="float64"), dim=1),
    "cross dim": lambda lib: lib.cross(t(lib, 4, 3), t(lib, 4, 3), dim=5),
    "einsum fewer": lambda lib: lib.einsum("ij,jk->ik", t(lib, 2, 3)),
    "einsum more": lambda lib: lib.einsum("i", t(lib, 2), t(lib, 2)),
    "einsum output": lambda lib: lib.einsum("ij->ik", t(lib, 2, 3)),
    "einsum repeated output": lambda lib: lib.einsum("ij->ii", t(lib, 2, 3)),
    "einsum dimensions": lambda lib: lib.einsum("ijk->i", t(lib, 2, 3)),
    "einsum ellipsis dimensions": lambda lib: lib.einsum("i...jk->i", t(lib, 2, 3)),
    "einsum sizes": lambda lib: lib.einsum("ij,jk->ik", t(lib, 2, 3), t(lib, 4, 3)),
    "einsum dot": lambda lib: lib.einsum("i.j->i", t(lib, 2, 3)),
    "einsum arrow": lambda lib: lib.einsum("ij-ji", t(lib, 2, 3)),
    "einsum letter": lambda lib: lib.einsum("i1->i", t(lib, 2, 3)),
    "einsum diagonal": lambda lib: lib.einsum("ii->i", t(lib, 2, 3)),
    "einsum ellipses": lambda lib: lib.einsum("...i...->i", t(lib, 2, 3)),
    "einsum ellipsis sizes": lambda lib: lib.einsum("...i,...i->...", t(lib, 2, 3), t(lib, 4, 3)),
    "einsum dtypes": lambda lib: lib.einsum("ij,jk->ik", t(lib, 2, 3), t(lib, 3, 4, dtype="float64")),
    "einsum nothing": lambda lib: lib.einsum("ij"),
    "einsum label": lambda lib: lib.einsum(t(lib, 2, 3), [0, 60], [0]),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    sentences = []
    for lib in (rushlight, torch):
        with pytest.raises(REFUSALS) as caught:
            ERRORS[name](lib)
        first = str(caught.value).partition("\n")[0]
        sentences.append((caught.type.__name__, first.replace("rushlight.Tensor", "Tensor")))
    assert sentences[0] == sentences[1]


@pytest.mark.parametrize("seed", range(4))
def test_einsum_of_random_equations(seed):
    rng = random.Random(200 + seed)
    sizes = {"a": 2, "b": 3, "c": 4, "d": 1, "e": 2, "A": 2, "B": 3}
    for _ in range(150):
        covered = [rng.choice((1, 2, 3)) for _ in range(rng.randrange(3))]
        operands, shapes = [], []
        for _ in range(rng.randrange(1, 4)):
            labels = [rng.choice(list(sizes)) for _ in range(rng.randrange(4))]
            shape = [sizes[label] for label in labels]
            if rng.random() < 0.3:
                place = rng.randrange(len(labels) + 1)
                part = covered[rng.randrange(len(covered) + 1) :]
                labels.insert(place, "...")
                shape[place:place] = part
            operands.append("".join(labels))
            shapes.append(shape)
        equation = ",".join(operands)
        if rng.random() < 0.7:
            used = sorted(set(equation) & set(sizes))
            kept = [label for label in used if rng.random() < 0.5]
            rng.shuffle(kept)
            if rng.random() < 0.5:
                kept.insert(rng.randrange(len(kept) + 1), "...")
            equation += "->" + "".join(kept)
        pairs = [pair(rng, tuple(shape), "float64") for shape in shapes]
        ours = rushlight.einsum(equation, *[a for a, _ in pairs])
        theirs = torch.einsum(equation, *[b for _, b in pairs])
        try:
            assert_same(ours, theirs, scale=100, strides=False)
        except Exception as problem:
            problem.add_note(f"{equation} of {shapes}")
            raise
