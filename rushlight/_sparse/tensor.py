"""The sparse tensor: a tensor without memory of its own, which holds indices and values.

`parts` is (indices, values, whether they are coalesced): int64 of size (sparse dimensions, entries), and one
row of `values` for each entry. What such tensors have in common with others is in `_indexed.py`.
"""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight import _C
from rushlight._indexed import Indexed, without
from rushlight._size import Size
from rushlight._unstored import refusing
from rushlight.ops import create

Tensor = _C.Tensor


class SparseTensor(Indexed):
    """Not to be made but by `make`."""

    __slots__ = ("parts",)
    kind, impl, backend = "Sparse", "SparseTensorImpl", "SparseCPU"
    parts: tuple[Tensor, Tensor, bool]

    @property
    def layout(self) -> Any:
        return create.sparse_coo

    @property
    def is_sparse(self) -> bool:
        return True

    @property
    def nbytes(self) -> NoReturn:
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add "
            "the nbytes of the indices and values.  If you want the size of the  equivalent dense tensor, "
            "multiply numel() by element_size()"
        )

    def memory(self) -> Tensor:
        return self.detach()._values()

    def take_parts(self, other: Any) -> None:
        self.parts = other.parts

    def places(self) -> Tensor:
        from rushlight._sparse.build import places, sparse_sizes

        return places(self.parts[0], sparse_sizes(self))

    def with_memory(self, values: Tensor) -> SparseTensor:
        return with_values(self, values)

    def filled(self) -> SparseTensor:
        from rushlight._sparse.build import with_every_element

        return with_every_element(self)

    def fit_gradient(self, gradient: Tensor, masked: bool | None) -> Tensor:
        if masked is False:
            return gradient.to_sparse(self.sparse_dim())
        return gradient.sparse_mask(self.coalesce())

    def stride(self, dim: int | None = None) -> Any:
        return (0,) * self.dim() if dim is None else 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return False

    contiguous = refusing(RuntimeError, "unsupported memory format option Contiguous")
    reshape = flatten = ravel = refusing(RuntimeError, "reshape is not implemented for sparse tensors")
    unsqueeze_ = squeeze_ = Indexed.as_strided_
    resize_, fill_, pow_ = without("resize_"), without("fill_.Scalar"), without("pow_.Scalar")

    def resize_as_(self, other: Any, *, memory_format: Any = None) -> Any:  # type: ignore[override]
        return self.resize_as_sparse_(other)

    def transpose_(self, dim0: int, dim1: int) -> Any:
        from rushlight._sparse.table import assign

        _C.check_inplace(self)
        return _C.note_write(assign(self, self.detach().transpose(dim0, dim1)))

    swapaxes_ = swapdims_ = transpose_

    def t_(self) -> Any:
        return self.transpose_(0, 1) if self.dim() == 2 else self

    def new(self, *args: Any, device: Any = None, **named: Any) -> Any:
        from rushlight.sparse import new

        if "size" in named:
            named["size"] = Size(named["size"])
        args += tuple(named.pop(name) for name in ("indices", "values", "size") if name in named)
        if named:
            raise TypeError(f"new() got an unexpected keyword argument {next(iter(named))!r}")
        return new(self.dtype, args)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:  # type: ignore[override]
        if dtype is None:
            return self.parts[1].type().replace("torch.", "torch.sparse.")
        if isinstance(dtype, str):
            dtype = dtype.replace("torch.sparse.", "torch.")
        return self.to(self.parts[1][:0].type(dtype).dtype)

    def dim_order(self, *, ambiguity_check: Any = False) -> Any:
        raise AttributeError(
            f"Can't get dim order on sparse type: {self.type()} Use Tensor.to_dense() to convert to a dense "
            "tensor first."
        )

    def text(self, contents: str | None) -> str:
        from rushlight._sparse.printing import text

        return text(self, contents)

    def __format__(self, spec: str) -> str:
        if spec and self.dim() == 0:
            return format(self.item(), spec)
        return super().__format__(spec)

    def reduced(self) -> tuple:
        indices, values, coalesced = self.parts
        return indices, values, self.size(), coalesced


_C.set_sparse_type(SparseTensor, False)


def make(indices: Any, values: Any, size: Any, coalesced: bool = False) -> SparseTensor:
    """A sparse tensor of these parts, which fit together. Fewer than two entries are coalesced."""
    whole = _C.empty(tuple(size), values.dtype, "meta")
    made: Any = _C.make_wrapper(SparseTensor, whole, values.device, 0)
    made.parts = indices, values, coalesced or values.shape[0] < 2
    return made


def with_values(x: SparseTensor, values: Tensor, coalesced: bool | None = None) -> SparseTensor:
    """A sparse tensor with the indices of x."""
    indices, _, was = x.parts
    return make(indices, values, x.shape, was if coalesced is None else coalesced)


def empty(size: Any, dtype: Any, device: Any, sparse_dim: int | None = None) -> SparseTensor:
    """A sparse tensor without entries."""
    size = tuple(size)
    count = len(size) if sparse_dim is None else sparse_dim
    indices = _C.empty((count, 0), _C.int64, device)
    return make(indices, _C.empty((0, *size[count:]), dtype, device), size, True)
