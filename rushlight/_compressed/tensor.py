"""The compressed sparse tensor: a tensor without memory of its own, which holds indices and values.

`parts` is (compressed indices, plain indices, values). With `batch` dimensions in front of each: the ends of
the lines, one more than there are; for every entry its place in the line; and its value, a block in BSR and
BSC. What such tensors have in common with others is in `_indexed.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rushlight import _C
from rushlight._indexed import Indexed
from rushlight._unstored import refusing
from rushlight.ops import create
from rushlight.ops.sparse import kind_of, of_kind

Tensor = _C.Tensor


class Form(NamedTuple):
    """One of the four layouts."""

    layout: Any
    title: str  # CSR
    by_rows: bool  # whether its lines are rows
    blocked: bool

    @property
    def name(self) -> str:
        """How torch's errors call it."""
        return f"Sparse{self.title.title()}"

    @property
    def compressed(self) -> str:
        return "crow_indices" if self.by_rows else "ccol_indices"

    @property
    def plain(self) -> str:
        return "col_indices" if self.by_rows else "row_indices"

    @property
    def turned(self) -> Form:
        """That of the transpose."""
        return _TURNED[self.layout]


FORMS = {
    form.layout: form
    for form in (
        Form(create.sparse_csr, "CSR", True, False),
        Form(create.sparse_csc, "CSC", False, False),
        Form(create.sparse_bsr, "BSR", True, True),
        Form(create.sparse_bsc, "BSC", False, True),
    )
}
_TURNED = {
    a: FORMS[b]
    for a, b in (
        (create.sparse_csr, create.sparse_csc),
        (create.sparse_csc, create.sparse_csr),
        (create.sparse_bsr, create.sparse_bsc),
        (create.sparse_bsc, create.sparse_bsr),
    )
}


_NO_STRIDES = refusing(RuntimeError, "Sparse {form.title} tensors do not have strides")
_NOT_CONTIGUOUS = refusing(RuntimeError, "Sparse {form.title} tensors do not have is_contiguous")


class CompressedTensor(Indexed):
    """Not to be made but by `make`."""

    __slots__ = ("form", "parts")
    impl, backend = "SparseCsrTensorImpl", "SparseCsrCPU"
    parts: tuple[Tensor, Tensor, Tensor]
    form: Form

    @property
    def kind(self) -> str:  # type: ignore[override]
        return self.form.name

    @property
    def layout(self) -> Any:
        return self.form.layout

    @property
    def is_sparse_csr(self) -> bool:
        return self.form.layout is create.sparse_csr

    @property
    def batch(self) -> int:
        """How many dimensions are batches."""
        return self.parts[0].dim() - 1

    @property
    def blocksize(self) -> tuple[int, int]:
        """Rows and columns of an entry."""
        if not self.form.blocked:
            return 1, 1
        rows, columns = self.parts[2].shape[self.batch + 1 : self.batch + 3]
        return rows, columns

    def take_parts(self, other: Any) -> None:
        self.parts, self.form = other.parts, other.form

    def memory(self) -> Tensor:
        return _C.count_with(_C.detach(self.parts[2]), self)

    def places(self) -> Tensor:
        from rushlight._compressed.build import places

        return places(self)

    def with_memory(self, values: Tensor) -> CompressedTensor:
        return sharing(self, values)

    def filled(self) -> CompressedTensor:
        from rushlight._compressed.build import with_every_element

        return with_every_element(self)

    def fit_gradient(self, gradient: Tensor, masked: bool | None) -> Tensor:
        if masked is False:
            return self.convert(gradient)
        return gradient.sparse_mask(self.detach())

    def convert(self, other: Tensor) -> Tensor:
        """Another tensor of this size in the layout of this one."""
        return of_kind(kind_of(self), other)

    stride = dim_order = diagonal = narrow = split = chunk = squeeze = unsqueeze = squeeze_ = _NO_STRIDES
    unsqueeze_ = sort = kron = _NO_STRIDES
    is_contiguous = contiguous = reshape = flatten = ravel = _NOT_CONTIGUOUS
    tile = Indexed.expand
    transpose_ = t_ = swapaxes_ = swapdims_ = refusing(
        RuntimeError, "torch.transpose_: in-place transposition is not supported for {kind} layout"
    )
    new = new_tensor = refusing(RuntimeError, "Cannot map DispatchKey SparseCsrCPU to a unique layout.")

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:  # type: ignore[override]
        if dtype is None:
            raise RuntimeError("Unimplemented backend SparseCsrCPU")
        return self.to(self.parts[2].reshape(-1)[:0].type(dtype).dtype)

    def zero_(self) -> Any:
        """Has no entries then, where `fill_(0)` keeps them."""
        from rushlight._compressed.build import without_entries

        super().zero_()
        batch, dense = self.shape[: self.batch], self.batch + 2
        self.parts = without_entries(
            self.form, self.shape, self.dtype, self.blocksize, len(batch), len(self.shape) - dense
        ).parts
        return self

    def normal_(self, mean: float = 0, std: float = 1, *, generator: Any = None) -> Any:
        self.fill_(0)  # which is recorded: what was there has no part in what is drawn
        self.parts[2].normal_(mean, std, generator=generator)
        return self

    def resize_(self, *size: Any, memory_format: Any = None) -> Any:
        from rushlight._compressed.build import resize

        wanted = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
        return resize(self, wanted)

    def text(self, contents: str | None) -> str:
        from rushlight._compressed.printing import text

        return text(self, contents)

    def reduced(self) -> tuple:
        return (*self.parts[:2], self.values(), self.size())


_C.set_sparse_type(CompressedTensor, True)


def make(form: Form, compressed: Any, plain: Any, values: Any, size: Any) -> CompressedTensor:
    """A compressed tensor of these parts, which fit together."""
    whole = _C.empty(tuple(size), values.dtype, "meta")
    made: Any = _C.make_wrapper(CompressedTensor, whole, values.device, 0)
    made.form, made.parts = form, (compressed, plain, values)
    return made


def sharing(x: CompressedTensor, values: Tensor) -> CompressedTensor:
    """A compressed tensor on the indices of x: what is written to the one is written to the other."""
    compressed, plain, _ = x.parts
    return make(x.form, compressed, plain, values, x.shape)


def with_values(x: CompressedTensor, values: Tensor) -> CompressedTensor:
    """A compressed tensor with indices of its own, as those of x: `copy_` writes to them."""
    compressed, plain, _ = x.parts
    return make(x.form, compressed.clone(), plain.clone(), values, x.shape)
