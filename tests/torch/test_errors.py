"""What both libraries refuse: the same type of exception and the same first sentence."""

import re

import pytest
import torch

import rushlight

pytestmark = pytest.mark.filterwarnings("ignore")


def leaf(lib, *shape):
    return lib.ones(*shape, requires_grad=True)


def saved_then_changed(lib):
    x = leaf(lib, 3)
    y = x * 2
    z = (y * y).sum()
    y.add_(1)
    z.backward()


def twice(lib):
    y = (leaf(lib, 2) ** 2).sum()
    y.backward()
    y.backward()


def leaf_in_place(lib):
    leaf(lib, 2).add_(1)


def view_of_leaf_in_place(lib):
    leaf(lib, 2)[0].mul_(2)


def unused_input(lib):
    x, y = leaf(lib, 2), leaf(lib, 2)
    lib.autograd.grad((x * 2).sum(), y)


def assign_wrong_grad(lib, grad):
    x = leaf(lib, 2)
    x.grad = grad(lib)


def set_item(target, key, value):
    target[key] = value


def requires_grad_of_result(lib):
    y = leaf(lib, 2) * 2
    y.requires_grad_(False)


def unbound_in_place(lib):
    first, *_ = (leaf(lib, 2, 2) * 1).unbind()
    first.add_(1)


def inference_outside(lib):
    with lib.inference_mode():
        x = lib.ones(2)
    (leaf(lib, 2) * x).sum().backward()


# fmt: off
REFUSED = {
    # autograd
    "backward of a vector": lambda lib: (leaf(lib, 2) * 2).backward(),
    "backward of a constant": lambda lib: lib.ones(()).backward(),
    "backward twice": twice,
    "leaf in place": leaf_in_place,
    "view of leaf in place": view_of_leaf_in_place,
    "saved value changed": saved_then_changed,
    "unused input": unused_input,
    "gradient of wrong shape": lambda lib: (leaf(lib, 2) * 2).backward(lib.ones(3)),
    "integer requires grad": lambda lib: lib.tensor([1, 2], requires_grad=True),
    "integer requires_grad_": lambda lib: lib.tensor([1, 2]).requires_grad_(),
    "bool requires grad": lambda lib: lib.zeros(2, dtype=lib.bool, requires_grad=True),
    "result stops requiring grad": requires_grad_of_result,
    "grad of wrong shape assigned": lambda lib: assign_wrong_grad(lib, lambda lib: lib.ones(3)),
    "grad of wrong dtype assigned": lambda lib: assign_wrong_grad(lib, lambda lib: lib.ones(2).double()),
    "grad of wrong type assigned": lambda lib: assign_wrong_grad(lib, lambda lib: 3),
    "retain_grad of a constant": lambda lib: lib.ones(2).retain_grad(),
    "numpy of a leaf": lambda lib: leaf(lib, 2).numpy(),
    "one of several views in place": unbound_in_place,
    "inference tensor saved": inference_outside,
    "deepcopy of a result": lambda lib: __import__("copy").deepcopy(leaf(lib, 2) * 2),
    "grad of a constant output": lambda lib: lib.autograd.grad(lib.ones(()), leaf(lib, 2)),
    "grad towards a constant": lambda lib: lib.autograd.grad(leaf(lib, 2).sum(), lib.ones(2)),
    "grad of a vector": lambda lib: lib.autograd.grad(leaf(lib, 2) * 2, leaf(lib, 2)),
    # shapes
    "broadcast": lambda lib: lib.ones(2) + lib.ones(3),
    "broadcast later": lambda lib: lib.ones(4, 2) * lib.ones(3, 2),
    "in place broadcast": lambda lib: lib.ones(1).add_(lib.ones(3)),
    "matmul of matrices": lambda lib: lib.ones(2, 3) @ lib.ones(2, 3),
    "matmul of vectors": lambda lib: lib.ones(2) @ lib.ones(3),
    "matmul of matrix and vector": lambda lib: lib.ones(2, 3) @ lib.ones(2),
    "matmul of scalars": lambda lib: lib.ones(()) @ lib.ones(()),
    "matmul of batches": lambda lib: lib.ones(2, 3, 4) @ lib.ones(5, 4, 2),
    "matmul inner of batches": lambda lib: lib.ones(2, 3, 4) @ lib.ones(2, 5, 2),
    "matmul of dtypes": lambda lib: lib.ones(2, 2) @ lib.ones(2, 2, dtype=lib.float64),
    "mm of a vector": lambda lib: lib.mm(lib.ones(2), lib.ones(2, 2)),
    "mm of shapes": lambda lib: lib.mm(lib.ones(2, 3), lib.ones(2, 2)),
    "bmm of matrices": lambda lib: lib.bmm(lib.ones(2, 3), lib.ones(2, 2)),
    "dot of matrices": lambda lib: lib.dot(lib.ones(2, 2), lib.ones(2, 2)),
    "dot of lengths": lambda lib: lib.dot(lib.ones(2), lib.ones(3)),
    "dot of dtypes": lambda lib: lib.dot(lib.ones(2), lib.ones(2).double()),
    "mv of shapes": lambda lib: lib.mv(lib.ones(2, 3), lib.ones(2)),
    "view of a wrong size": lambda lib: lib.ones(6).view(4),
    "view twice inferred": lambda lib: lib.ones(6).view(-1, -1),
    "view inferred with rest": lambda lib: lib.ones(6).view(4, -1),
    "view of a transposed": lambda lib: lib.ones(2, 3).t().view(6),
    "view of negative": lambda lib: lib.ones(6).view(-2, 3),
    "reshape of a wrong size": lambda lib: lib.ones(6).reshape(4),
    "reshape of ambiguous": lambda lib: lib.ones(0).reshape(0, -1),
    "expand": lambda lib: lib.ones(2).expand(3),
    "expand to fewer": lambda lib: lib.ones(2, 2).expand(2),
    "permute of a wrong number": lambda lib: lib.ones(2, 3).permute(0),
    "permute repeated": lambda lib: lib.ones(2, 3).permute(0, 0),
    "transpose out of range": lambda lib: lib.ones(2, 3).transpose(0, 2),
    "t of three dimensions": lambda lib: lib.ones(2, 3, 4).t(),
    "dim out of range": lambda lib: lib.ones(2, 3).sum(2),
    "dim out of range below": lambda lib: lib.ones(2, 3).sum(-3),
    "dim repeated": lambda lib: lib.ones(2, 3).sum((0, 0)),
    "unsqueeze out of range": lambda lib: lib.ones(2).unsqueeze(3),
    "squeeze out of range": lambda lib: lib.ones(2).squeeze(3),
    "narrow too long": lambda lib: lib.ones(3).narrow(0, 1, 3),
    "narrow negative": lambda lib: lib.ones(3).narrow(0, 1, -1),
    "narrow start": lambda lib: lib.ones(3).narrow(0, 5, 1),
    "narrow of a scalar": lambda lib: lib.ones(()).narrow(0, 0, 1),
    "select out of range": lambda lib: lib.ones(3).select(0, 3),
    "select of a scalar": lambda lib: lib.ones(()).select(0, 0),
    "split of zero": lambda lib: lib.ones(3).split(0),
    "split of a wrong sum": lambda lib: lib.ones(3).split([1, 1]),
    "chunk of zero": lambda lib: lib.ones(3).chunk(0),
    "unbind of a scalar": lambda lib: lib.ones(()).unbind(),
    "unfold too large": lambda lib: lib.ones(3).unfold(0, 4, 1),
    "unfold of step zero": lambda lib: lib.ones(3).unfold(0, 1, 0),
    "as_strided beyond": lambda lib: lib.ones(3).as_strided((4,), (1,)),
    "as_strided mismatch": lambda lib: lib.ones(3).as_strided((2,), (1, 1)),
    "as_strided negative": lambda lib: lib.ones(3).as_strided((2,), (-1,)),
    "diagonal of a vector": lambda lib: lib.ones(3).diagonal(),
    "diagonal of one dimension": lambda lib: lib.ones(3, 3).diagonal(0, 0, 0),
    "flatten of dims": lambda lib: lib.ones(2, 3, 4).flatten(2, 1),
    "cat of shapes": lambda lib: lib.cat([lib.ones(2, 3), lib.ones(2, 4)]),
    "cat of ranks": lambda lib: lib.cat([lib.ones(2, 3), lib.ones(3)]),
    "cat of scalars": lambda lib: lib.cat([lib.ones(()), lib.ones(())]),
    "cat of nothing": lambda lib: lib.cat([]),
    "stack of shapes": lambda lib: lib.stack([lib.ones(2), lib.ones(3)]),
    "stack of nothing": lambda lib: lib.stack([]),
    "zeros of a negative size": lambda lib: lib.zeros(-1),
    "len of a scalar": lambda lib: len(lib.ones(())),
    "iteration of a scalar": lambda lib: list(lib.ones(())),
    # indexing
    "index out of range": lambda lib: lib.ones(3)[3],
    "index below range": lambda lib: lib.ones(3)[-4],
    "index of a scalar": lambda lib: lib.ones(())[0],
    "too many indices": lambda lib: lib.ones(3)[0, 0],
    "negative step": lambda lib: lib.ones(3)[::-1],
    "step of zero": lambda lib: lib.ones(3)[::0],
    "index by float": lambda lib: lib.ones(3)[1.5],
    "index by string": lambda lib: lib.ones(3)["a"],
    "index by float tensor": lambda lib: lib.ones(3)[lib.ones(2)],
    "index tensor out of range": lambda lib: lib.ones(3)[lib.tensor([0, 5])],
    "mask of a wrong size": lambda lib: lib.ones(3)[lib.tensor([True, False])],
    "mask too long": lambda lib: lib.ones(2, 3)[lib.ones(3, 3) > 0],
    "index shapes": lambda lib: lib.ones(3, 3)[lib.tensor([0, 1]), lib.tensor([0, 1, 2])],
    "assign shape": lambda lib: set_item(lib.ones(3), slice(0, 2), lib.ones(3)),
    "assign shape by index": lambda lib: set_item(lib.ones(3), lib.tensor([0, 1]), lib.ones(3)),
    "assign dtype by index": lambda lib: set_item(lib.ones(3), lib.tensor([0, 1]), lib.ones(2).double()),
    "gather out of range": lambda lib: lib.ones(3).gather(0, lib.tensor([3])),
    "gather index dtype": lambda lib: lib.ones(3).gather(0, lib.tensor([0], dtype=lib.int8)),
    "gather index size": lambda lib: lib.ones(3, 2).gather(0, lib.zeros(2, 3, dtype=lib.int64)),
    "gather rank": lambda lib: lib.ones(3, 2).gather(0, lib.tensor([0])),
    "index_select out of range": lambda lib: lib.ones(3).index_select(0, lib.tensor([3])),
    "index_select of a matrix": lambda lib: lib.ones(3).index_select(0, lib.zeros(2, 2, dtype=lib.int64)),
    "index_select of floats": lambda lib: lib.ones(3).index_select(0, lib.ones(2)),
    "scatter out of range": lambda lib: lib.ones(3).scatter(0, lib.tensor([3]), 1.0),
    "scatter of dtypes": lambda lib: lib.ones(3).scatter(0, lib.tensor([0]), lib.ones(1, dtype=lib.float64)),
    "masked_fill of floats": lambda lib: lib.ones(3).masked_fill(lib.ones(3), 0),
    "masked_fill of a vector": lambda lib: lib.ones(3).masked_fill(lib.ones(3) > 0, lib.ones(2)),
    "masked_select of floats": lambda lib: lib.ones(3).masked_select(lib.ones(3)),
    "where of floats": lambda lib: lib.where(lib.ones(2), lib.ones(2), lib.ones(2)),
    "take out of range": lambda lib: lib.ones(3).take(lib.tensor([3])),
    # dtypes
    "mean of integers": lambda lib: lib.tensor([1, 2]).mean(),
    "sub of bool": lambda lib: lib.tensor([True]) - lib.tensor([True]),
    "neg of bool": lambda lib: -lib.tensor([True]),
    "in place cast": lambda lib: lib.tensor([1, 2]).add_(0.5),
    "in place division": lambda lib: lib.tensor([1, 2]).div_(2),
    "in place complex": lambda lib: lib.ones(2).mul_(1j),
    "comparison of complex": lambda lib: lib.tensor([1j]) < lib.tensor([2j]),
    "bitwise of floats": lambda lib: lib.ones(2) & lib.ones(2),
    "invert of floats": lambda lib: ~lib.ones(2),
    "shift of floats": lambda lib: lib.ones(2) << 1,
    "max of nothing": lambda lib: lib.zeros(0).max(),
    "amax of nothing": lambda lib: lib.zeros(0).amax(),
    "argmax of nothing": lambda lib: lib.zeros(0).argmax(),
    "max of an empty dim": lambda lib: lib.zeros(2, 0).max(1),
    "clamp without bounds": lambda lib: lib.ones(2).clamp(),
    "clamp of complex": lambda lib: lib.tensor([1j]).clamp(0),
    "floor of complex": lambda lib: lib.tensor([1j]).floor(),
    "negative integer power": lambda lib: lib.tensor([2, 3]) ** -1,
    "integer division by zero": lambda lib: lib.tensor([1]) // 0,
    "remainder by zero": lambda lib: lib.tensor([1]) % 0,
    "var of integers": lambda lib: lib.tensor([1, 2]).var(),
    "norm of integers": lambda lib: lib.tensor([1, 2]).norm(),
    "imag of reals": lambda lib: lib.ones(2).imag,
    "view_as_complex of threes": lambda lib: lib.view_as_complex(lib.ones(2, 3)),
    "view_as_real of reals": lambda lib: lib.view_as_real(lib.ones(2, 2)),
    # values
    "bool of several": lambda lib: bool(lib.ones(2)),
    "bool of nothing": lambda lib: bool(lib.zeros(0)),
    "item of several": lambda lib: lib.ones(2).item(),
    "int of several": lambda lib: int(lib.ones(2)),
    "float of complex": lambda lib: float(lib.tensor(1j)),
    "index of a float": lambda lib: [1, 2, 3][lib.tensor(1.0)],
    "ragged list": lambda lib: lib.tensor([[1, 2], [3]]),
    "mixed depth": lambda lib: lib.tensor([1, [2]]),
    "string": lambda lib: lib.tensor("a"),
    "list of strings": lambda lib: lib.tensor(["a"]),
    "None": lambda lib: lib.tensor(None),
    "list of None": lambda lib: lib.tensor([None]),
    "object": lambda lib: lib.tensor(object()),
    "overflow": lambda lib: lib.tensor([2**70]),
    "fill overflow": lambda lib: lib.zeros(2, dtype=lib.int8).fill_(300),
    "full overflow": lambda lib: lib.full((2,), 300, dtype=lib.uint8),
    "complex into float": lambda lib: lib.tensor([1j], dtype=lib.float32),
    "fill_ with a vector": lambda lib: lib.zeros(2).fill_(lib.ones(2)),
    "arange of step zero": lambda lib: lib.arange(0, 1, 0),
    "arange backwards": lambda lib: lib.arange(1, 0),
    "arange of infinity": lambda lib: lib.arange(float("inf")),
    "linspace of a negative count": lambda lib: lib.linspace(0, 1, -1),
    "eye of a negative size": lambda lib: lib.eye(-1),
    "randint of an empty range": lambda lib: lib.randint(3, 3, (2,)),
    "normal of a negative spread": lambda lib: lib.zeros(2).normal_(0, -1),
    "uniform backwards": lambda lib: lib.zeros(2).uniform_(1, 0),
    "bernoulli of two": lambda lib: lib.bernoulli(lib.tensor([2.0])),
    "randperm of a negative count": lambda lib: lib.randperm(-1),
    "item of meta": lambda lib: lib.ones((), device="meta").item(),
    "tolist of meta": lambda lib: lib.ones(2, device="meta").tolist(),
    "unknown attribute": lambda lib: lib.ones(2).nowhere,
    "add of a string": lambda lib: lib.ones(2) + "a",
    "set data to nothing": lambda lib: setattr(lib.ones(2), "data", None),
    "set default dtype": lambda lib: lib.set_default_dtype(lib.int64),
}
# fmt: on


def first_sentence(error):
    return re.split(r"(?<=[.!?])\s|\n", str(error), maxsplit=1)[0].rstrip(".")


def refusal(case, lib):
    try:
        case(lib)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_same_error(case):
    theirs, ours = refusal(case, torch), refusal(case, rushlight)
    assert theirs is not None, "torch accepts this"
    assert ours is not None, f"accepted, but torch raises {theirs!r}"
    expected = f"{type(theirs).__name__}: {first_sentence(theirs)}"
    assert f"{type(ours).__name__}: {first_sentence(ours)}" == expected
