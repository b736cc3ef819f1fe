"""Kernels that turn compressed tensors and choose parts of them."""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight import _C
from rushlight._compressed.build import coalesced
from rushlight._compressed.table import COMPRESSED, kernel
from rushlight._compressed.tensor import CompressedTensor, make
from rushlight._sparse import shape as coordinates
from rushlight._sparse.table import refuse
from rushlight.ops._public import wrap_dim

Tensor = _C.Tensor


def _sort_of(x: CompressedTensor, dim: int) -> str:
    if dim < x.batch:
        return "Batch"
    return "Sparse" if dim < x.batch + 2 else "Dense"


@kernel("transpose")
def transpose(x: CompressedTensor, dim0: int, dim1: int) -> CompressedTensor:
    """Two dimensions of the same sort; the matrices themselves become those of the other layout."""
    dim0, dim1 = wrap_dim(dim0, x.dim()), wrap_dim(dim1, x.dim())
    compressed, plain, values = x.parts
    if dim0 == dim1:
        return make(x.form, compressed, plain, values, x.shape)
    sorts = _sort_of(x, dim0), _sort_of(x, dim1)
    if sorts[0] != sorts[1]:
        raise RuntimeError(
            "transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), got "
            f"{dim0}({sorts[0]}) and {dim1}({sorts[1]})"
        )
    size = list(x.shape)
    size[dim0], size[dim1] = size[dim1], size[dim0]
    if sorts[0] == "Batch":
        turned = [part.transpose(dim0, dim1) for part in x.parts]
        return make(x.form, turned[0], turned[1], turned[2], size)
    if sorts[0] == "Dense":
        before = x.batch + 1 + 2 * x.form.blocked - (x.batch + 2)
        return make(x.form, compressed, plain, values.transpose(dim0 + before, dim1 + before), size)
    if x.form.blocked:
        values = values.transpose(x.batch + 1, x.batch + 2)
    return make(x.form.turned, compressed, plain, values, size)


@kernel("t")
def t(x: CompressedTensor) -> CompressedTensor:
    """The transpose of a matrix."""
    if x.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {x.dim()}D")
    return transpose(x, 0, 1)


@kernel("select")
def select(x: CompressedTensor, dim: int, index: int) -> Tensor:
    """One of a dimension: of a batch compressed, of the matrix in coordinates."""
    dim = wrap_dim(dim, x.dim())
    if not -x.shape[dim] <= index < x.shape[dim]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(x.shape)} at dimension {dim}"
        )
    size = [*x.shape[:dim], *x.shape[dim + 1 :]]
    compressed, plain, values = x.parts
    if dim < x.batch:
        chosen = [part.select(dim, index) for part in x.parts]
        return make(x.form, chosen[0], chosen[1], chosen[2], size)
    if dim >= x.batch + 2:
        at = dim - (x.batch + 2) + x.batch + 1 + 2 * x.form.blocked
        return make(x.form, compressed, plain, values.select(at, index), size)
    if x.form.blocked and (x.form.by_rows or dim == x.batch):
        raise RuntimeError("select(): no view exists for the given input, consider using torch.select_copy.")
    return coordinates.select(coalesced(x), dim, index)


@kernel("unbind")
def unbind(x: CompressedTensor, dim: int) -> Any:
    """All of a dimension."""
    dim = wrap_dim(dim, x.dim())
    return [select(x, dim, k) for k in range(x.shape[dim])]


@kernel("cat", "stack")
def cat(tensors: Any, dim: int) -> NoReturn:
    """torch has none."""
    first = next(x for x in tensors if type(x) is CompressedTensor)
    raise RuntimeError(f"Sparse {first.form.title} tensors do not have is_contiguous")


@kernel("slice", "squeeze", "squeeze_dim", "squeeze_dims", "unsqueeze", "diagonal", "split",
        "split_with_sizes", "index")  # fmt: skip
def strided_view(x: CompressedTensor, *args: Any) -> NoReturn:
    """Views that torch makes by strides."""
    raise RuntimeError(f"Sparse {x.form.title} tensors do not have strides")


@kernel("permute", "as_strided", "view.dtype")
def permuted(*args: Any) -> NoReturn:
    """torch has none."""
    refuse("aten::as_strided", COMPRESSED.backend)
