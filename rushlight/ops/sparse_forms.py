"""Less common functions of sparse tensors: other sizes in place, and products that stay sparse."""

from __future__ import annotations

from rushlight import _C
from rushlight._annotations import Any
from rushlight._versions import uncounted
from rushlight.ops._public import FUNCTIONS, function, method, public, undifferentiable
from rushlight.ops.sparse import _check_parts, _refuse_dense, is_sparse

ops = _C.ops
Tensor = _C.Tensor

# ---- sizes


def give_size(x: Any, size: Any) -> None:
    """Another size for a sparse tensor, whose parts are changed by the caller."""
    if tuple(size) != tuple(x.shape):
        with uncounted(x):
            _C.resize(x, tuple(size))


def check_dims(size: Any, sparse_dim: int, dense_dim: int) -> None:
    """Refuses a size that has not as many dimensions."""
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{sparse_dim}, dense_dim = {dense_dim}"
        )


def _check_growth(x: Any, size: Any, sparse_dim: int, dense_dim: int) -> None:
    """Entries stay where they are."""
    for kind, before, after in (("sparse", x.sparse_dim(), sparse_dim), ("dense", x.dense_dim(), dense_dim)):
        if before != after:
            raise RuntimeError(
                f"changing the number of {kind} dimensions (from {before} to {after}) on a non-empty sparse "
                "tensor is not supported."
            )
    for kind, part in (("sparse", slice(sparse_dim)), ("dense", slice(sparse_dim, None))):
        had, has = list(x.shape[part]), list(size[part])
        if any(new < old for old, new in zip(had, has, strict=True)):
            raise RuntimeError(
                f"shrinking the size of {kind} dimensions (from {had} to {has}) on a non-empty sparse "
                "tensor is not supported."
            )


@method
def sparse_resize_(self, size, sparse_dim, dense_dim):
    """Another size in place; the entries stay, so that no dimension may shrink if there are some.

    >>> x = rushlight.eye(2).to_sparse()
    >>> x.sparse_resize_((3, 3), 2, 0).shape
    torch.Size([3, 3])
    """
    _refuse_dense(self, "sparse_resize_")
    check_dims(size, sparse_dim, dense_dim)
    if not self._nnz():
        return sparse_resize_and_clear_(self, size, sparse_dim, dense_dim)
    _check_growth(self, size, sparse_dim, dense_dim)
    _C.check_inplace(self)
    indices, values, coalesced = self.parts
    if tuple(values.shape[1:]) != tuple(size[sparse_dim:]):
        grown = values.new_zeros((values.shape[0], *size[sparse_dim:]))
        grown[tuple(slice(n) for n in values.shape)] = values
        values = grown
    give_size(self, size)
    self.parts = indices, values, coalesced
    return _C.note_write(self)


@method
def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):
    """Another size in place, without entries.

    >>> rushlight.eye(2).to_sparse().sparse_resize_and_clear_((3, 3), 2, 0)._nnz()
    0
    """
    from rushlight._sparse.tensor import empty

    _refuse_dense(self, "sparse_resize_and_clear_")
    check_dims(size, sparse_dim, dense_dim)
    _C.check_inplace(self)
    parts = empty(size, self.dtype, self.device, sparse_dim).parts
    give_size(self, size)
    self.parts = parts
    return _C.note_write(self)


@public
def resize_as_sparse_(self, the_template):
    """The size of another sparse tensor, in place.

    >>> x = rushlight.eye(2).to_sparse()
    >>> rushlight.resize_as_sparse_(x, rushlight.eye(3).to_sparse()).shape
    torch.Size([3, 3])
    """
    template = the_template
    if _C.is_compressed(self) and _C.is_compressed(template) and self.shape == template.shape:
        return _C.note_write(self)
    _refuse_dense(self, "resize_as_sparse_")
    if (self.shape, self.sparse_dim()) == (template.shape, template.sparse_dim()):
        return self
    return sparse_resize_(self, template.shape, template.sparse_dim(), template.dense_dim())


# ---- names with an underscore


@function
def _coalesce(input):
    """The sparse tensor with each index once, a tensor of its own."""
    _refuse_dense(input, "_coalesce")
    return ops.coalesce(input)


@function
def _validate_sparse_coo_tensor_args(indices, values, size, is_coalesced=None, check_pinning=None):
    """Raises if these are no parts of a sparse tensor.

    >>> rushlight._validate_sparse_coo_tensor_args(rushlight.tensor([[1]]), rushlight.ones(1), (2,))
    """
    _check_parts(indices, values, size, is_coalesced, True)


@function
def _sparse_sum(input, dim=None, *, dtype=None):
    """torch.sparse.sum under its inner name."""
    from rushlight.sparse import sum

    return sum(input, dim, dtype)


@function
def _sparse_sparse_matmul(input, other):
    """The sparse product of two sparse matrices."""
    return ops.sparse_sparse_matmul(input, other)


# ---- products


def _check_product(name: str, a: Any, b: Any) -> None:
    if not is_sparse(a) or is_sparse(b):
        from rushlight._sparse.table import refuse

        refuse(f"aten::{name}", "SparseCPU" if is_sparse(b) else "CPU")
    if a.dim() != 2 or b.dim() != 2 or a.sparse_dim() != 2:
        raise RuntimeError(f"{name}: two matrices expected, of which the first is sparse")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(f"{name}: Argument #3: Expected dim 0 size {a.shape[1]}, got {b.shape[0]}")


def _rows(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """The rows of a product that have entries, and their numbers."""
    from rushlight import unique
    from rushlight._sparse.build import check_indices
    from rushlight._sparse.products import sum_weighted

    indices, values, _ = a.detach().parts
    check_indices(indices, a.shape)
    known, at = unique(indices[0], return_inverse=True)
    return known, sum_weighted(values, b.detach(), indices[1], at, known.shape[0])


@function
def hspmm(mat1, mat2, *, out=None):
    """The product of a sparse matrix and a dense one: its rows that have entries, as dense rows of a sparse
    tensor.

    >>> x = rushlight.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    >>> rushlight.hspmm(x, rushlight.ones(2, 2)).values()
    tensor([[2., 2.]])
    """
    from rushlight._sparse.tensor import make

    _check_product("hspmm", mat1, mat2)
    known, products = _rows(mat1, mat2)
    made = make(known[None], products, (mat1.shape[0], mat2.shape[1]))
    made = undifferentiable("hspmm", made, mat1, mat2)
    return made if out is None else out.copy_(made)


@public
def sspaddmm(input, mat1, mat2, *, beta=1, alpha=1, out=None):
    """beta * input + alpha * (mat1 @ mat2) of a dense mat2, all else sparse.

    >>> x = rushlight.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    >>> rushlight.sspaddmm(x, x, rushlight.ones(2, 2)).to_dense()
    tensor([[2., 4.],
            [0., 0.]])
    """
    from rushlight import arange, cat, stack
    from rushlight._sparse.tensor import make

    _check_product("sspaddmm", mat1, mat2)
    for d, n in enumerate((mat1.shape[0], mat2.shape[1])):
        if input.shape[d] != n:
            raise RuntimeError(f"sspaddmm: Argument #1: Expected dim {d} size {n}, got {input.shape[d]}")
    known, products = _rows(mat1, mat2)
    count = mat2.shape[1]
    rows = known.repeat_interleave(count)
    columns = arange(count).repeat(known.shape[0])
    indices, values, _ = input.detach().parts
    made = make(
        cat([indices, stack([rows, columns])], 1),
        cat([values * beta, products.reshape(-1) * alpha]),
        (mat1.shape[0], count),
        False,
    )
    made = undifferentiable("sspaddmm", made, input, mat1, mat2)
    return made if out is None else out.copy_(made)


@public
def smm(input, mat2):
    """The product of a sparse matrix and a dense one, sparse.

    >>> x = rushlight.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    >>> rushlight.smm(x, rushlight.ones(2, 2)).to_dense()
    tensor([[2., 2.],
            [0., 0.]])
    """
    from rushlight._sparse.tensor import empty

    _check_product("sspaddmm", input, mat2)
    nothing = empty((input.shape[0], mat2.shape[1]), input.dtype, input.device)
    return sspaddmm(nothing, input, mat2)


FUNCTIONS["saddmm"] = FUNCTIONS["sspaddmm"]
FUNCTIONS["dsmm"] = FUNCTIONS["spmm"] = FUNCTIONS["mm"]
FUNCTIONS["hsmm"] = FUNCTIONS["hspmm"]
