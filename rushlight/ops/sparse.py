"""Sparse tensors in coordinates: derivatives, then the functions that make and read them.

What computes is in rushlight/_sparse, which is imported with the first sparse tensor.
"""

from __future__ import annotations

from rushlight import _C
from rushlight._annotations import Any
from rushlight.ops import create
from rushlight.ops._public import function, method
from rushlight.ops._rules import derivative, no_derivative

ops = _C.ops
Tensor = _C.Tensor

# ---- derivatives


def _of_values(g, x):
    if _C.is_compressed(x):
        compressed, plain, _ = x.parts
        # Contiguous, as another gradient may be added there.
        return ops.sparse_compressed(compressed.clone(), plain.clone(), g.contiguous(), x.shape, x.layout)
    indices, _, coalesced = x.parts
    return ops.sparse_coo(indices, g, x.shape, coalesced)


def _of_at(g, x, indices):
    made = ops.sparse_coo(indices, g, x.shape, False)
    return made if is_sparse(x) else made.to_dense()


def _of_dense(g, x, masked_grad):
    return x.fit_gradient(g, masked_grad)


def _of_mask(g, x, mask):
    if _C.is_compressed(mask):
        from rushlight.ops.compressed import in_layout_of

        return in_layout_of(x, g.sparse_mask(mask))
    projected = _projected(g if g.is_coalesced() else g.coalesce(), mask)
    return projected if is_sparse(x) else projected.to_dense()


def _projected(g, mask, counted=True):
    """A sparse tensor where the mask has entries, as often as it has them or once."""
    if mask.is_coalesced():
        return ops.sparse_coo(mask._indices(), ops.sparse_at(g, mask._indices()), g.shape, True)
    entries = ops.sparse_coo(mask._indices(), _ones(mask._values(), g), g.shape, False)
    counts = ops.sparse_at(entries, g._indices())
    values = ops.values(g).masked_fill(counts == 0, 0)
    return ops.sparse_coo(g._indices(), values * counts if counted else values, g.shape, True)


def _ones(values, x):
    from rushlight import ones

    return ones(values.shape, dtype=x.dtype, device=x.device)


def _of_sum(g, x, dim):
    """The sum's gradient at the entries of x."""
    x = x.coalesce()
    indices, values = x._indices(), x._values()
    count = x.sparse_dim()
    dims = {d % x.dim() for d in ([dim] if isinstance(dim, int) else dim)}
    kept = [d for d in range(count) if d not in dims]
    if kept:
        if not is_sparse(g):
            raise RuntimeError("_sparse_sum_backward_cpu: expected grad_ Tensor to be sparse, but got dense")
        rows = ops.sparse_at(g, indices[kept])
    else:
        rows = g.unsqueeze(0)
    for d in sorted(dims):
        if d >= count:
            rows = rows.unsqueeze(d - count + 1)
    return ops.sparse_coo(indices, rows.expand(values.shape).clone(), x.shape, True)


def _of_sparse_factor(g, sparse, dense, alpha):
    """g times the other factor, at the entries: alone, as the whole product may be larger than memory, unless
    it is recorded as torch records it."""
    if _C.is_compressed(sparse):
        entries = sparse.detach()
        product = ops.sampled_addmm(entries, g, dense.mT.conj(), 0, 1)
        return _times_conjugate(product, alpha)
    entries = sparse.coalesce()
    if _C.is_grad_enabled():
        product = (g @ dense.t().conj()).sparse_mask(entries)
    else:
        from rushlight import cat

        indices = entries._indices()
        parts = indices.split(entries_at_once(g), 1)
        values = [(g.index_select(0, i) * dense.index_select(0, j).conj()).sum(1) for i, j in parts]
        product = ops.sparse_coo(indices, cat(values), sparse.shape, True)
    return _times_conjugate(product, alpha)


def kind_of(x):
    """How a tensor of the layout of x is made of another one; None if x is dense."""
    if _C.is_compressed(x):
        return x.layout, x.blocksize if x.form.blocked else None, x.dense_dim()
    return x.sparse_dim() if is_sparse(x) else None


def of_kind(kind, g):
    """A gradient in the layout that kind_of() told."""
    if kind is None:
        # Where an entry happens to be zero there is a second derivative all the same.
        return g.to_dense(masked_grad=False) if is_sparse(g) or _C.is_compressed(g) else g
    if isinstance(kind, int):
        return g if is_sparse(g) else g.to_sparse(kind)
    layout, block, dense = kind
    if g.layout is layout:
        return g
    return ops.to_compressed(g, layout, block, dense if g.layout is create.strided else None, kind_of(g))


def entries_at_once(rows):
    """How many entries may have a row of the size of these each at the same time."""
    return max(2**18 // max(rows.shape[1], 1), 1)


def _times_conjugate(x, number):
    return x if number == 1 else x * number.conjugate()


def _of_dense_factor(g, sparse, alpha):
    return _times_conjugate(sparse.conj().t() @ g, alpha)


derivative("sparse_coo", node="SparseCooTensorWithDimsAndTensorsBackward0",
           values=lambda g, indices: ops.sparse_at(g, indices))  # fmt: skip
derivative("sparse_at", node="SparseMaskProjectionBackward0", x=_of_at)
derivative("to_dense", node="ToDenseBackward0", x=_of_dense, shows="x")
derivative("to_mkldnn", node="ToMkldnnBackward0", x=lambda g: g.to_dense())
derivative("to_sparse", node="ToSparseBackward1", x=lambda g, source: of_kind(source, g))
derivative("coalesce", node="CoalesceBackward0", x=lambda g: g)
derivative("values", node="ValuesBackward0", x=_of_values)
derivative("sparse_mask", node="SparseMaskBackward0", x=_of_mask)
derivative("sparse_sum", node="SparseSumBackward0", x=_of_sum)
derivative("sparse_addmm", node="SparseAddmmBackward0",
           input=lambda g, beta: _times_conjugate(g, beta),
           sparse=_of_sparse_factor, dense=_of_dense_factor)  # fmt: skip
derivative("sparse_sparse_matmul", node="SparseSparseMatmulBackward0",
           a=lambda g, a, b: _projected(ops.sparse_sparse_matmul(g, b.conj().t()), a, False),
           b=lambda g, a, b: _projected(ops.sparse_sparse_matmul(a.conj().t(), g), b, False))  # fmt: skip
derivative("sparse_softmax", node="SparseSoftmaxBackward0", final="aten::_sparse_softmax_backward_data",
           x=lambda g, out, dim: ops.sparse_softmax_backward(g, out, dim))  # fmt: skip
derivative("sparse_log_softmax", node="SparseLogSoftmaxBackward0",
           final="aten::_sparse_log_softmax_backward_data",
           x=lambda g, out, dim: ops.sparse_log_softmax_backward(g, out, dim))  # fmt: skip


no_derivative("sparse_softmax_backward", "sparse_log_softmax_backward")

# ---- what is sparse


def is_sparse(x: Any) -> bool:
    """Whether it is a sparse tensor."""
    return _C.is_sparse(x)


def layout_name(x: Any) -> str:
    """A layout, or that of a tensor, as torch's errors call it."""
    layout = x.layout if isinstance(x, Tensor) else x
    name = repr(layout).rpartition(".")[2]
    return {"strided": "Strided", "sparse_coo": "Sparse", "_mkldnn": "Mkldnn"}.get(
        name, name.title().replace("_", "")
    )


def _expect(x: Tensor, name: str, expected: str = "sparse coordinate") -> None:
    if not is_sparse(x):
        raise RuntimeError(f"{name} expected {expected} tensor layout but got {layout_name(x)}")


def _refuse_dense(x: Tensor, name: str) -> None:
    if not is_sparse(x):
        from rushlight._sparse.table import refuse

        refuse(f"aten::{name}", "SparseCsrCPU" if _C.is_compressed(x) else "CPU")


@method
def sparse_dim(self):
    """How many dimensions are sparse, 0 for a dense tensor.

    >>> rushlight.eye(2).to_sparse().sparse_dim()
    2
    """
    if _C.is_compressed(self):
        return 2
    return self.parts[0].shape[0] if is_sparse(self) else 0


@method
def dense_dim(self):
    """How many dimensions are dense.

    >>> rushlight.eye(2).to_sparse(1).dense_dim()
    1
    """
    batch = self.batch if _C.is_compressed(self) else 0
    return self.dim() - sparse_dim(self) - batch


@method
def _dimI(self):
    """How many dimensions of a sparse tensor are sparse."""
    _refuse_dense(self, "_dimI")
    return sparse_dim(self)


@method
def _dimV(self):
    """How many dimensions of a sparse tensor are dense."""
    _refuse_dense(self, "_dimV")
    return dense_dim(self)


@method
def _nnz(self):
    """How many entries a sparse tensor has.

    >>> rushlight.eye(2).to_sparse()._nnz()
    2
    """
    if _C.is_compressed(self):
        return self.parts[1].shape[-1]
    _refuse_dense(self, "_nnz")
    return self.parts[1].shape[0]


@method
def _indices(self):
    """The indices as they are, also with repetitions."""
    _refuse_dense(self, "_indices")
    return _C.detach(self.parts[0])


@method
def _values(self):
    """The values as they are, without a gradient.

    >>> rushlight.eye(2).to_sparse()._values()
    tensor([1., 1.])
    """
    _refuse_dense(self, "_values")
    return _C.count_with(_C.detach(self.parts[1]), self)


@method
def is_coalesced(self):
    """Whether each index is there once, in order.

    >>> rushlight.eye(2).to_sparse().is_coalesced()
    True
    """
    _expect(self, "is_coalesced")
    return self.parts[2]


@method
def _coalesced_(self, coalesced):
    """Says of a sparse tensor whether it is coalesced."""
    _refuse_dense(self, "_coalesced_")
    self.parts = (*self.parts[:2], bool(coalesced))
    return _C.note_write(self)


@method
def coalesce(self):
    """The sparse tensor with each index once, in order; itself if it is so already.

    >>> x = rushlight.sparse_coo_tensor([[1, 1]], [1.0, 2.0], (2,))
    >>> x.coalesce().values()
    tensor([3.])
    """
    _expect(self, "coalesce")
    return self if self.parts[2] else ops.coalesce(self)


@method
def indices(self):
    """The indices of a coalesced sparse tensor, one column for each entry.

    >>> rushlight.eye(2).to_sparse().indices().tolist()
    [[0, 1], [0, 1]]
    """
    _expect(self, "indices")
    if not self.parts[2]:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return _C.detach(self.parts[0])


@method
def values(self):
    """The values of a coalesced sparse tensor, through which gradients flow back.

    >>> rushlight.eye(2).to_sparse().values()
    tensor([1., 1.])
    """
    if _C.is_compressed(self):
        return ops.values(self) if self.requires_grad and _C.is_grad_enabled() else self.memory()
    _expect(self, "values", "sparse")
    if not self.parts[2]:
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    return ops.values(self) if self.requires_grad and _C.is_grad_enabled() else self._values()


@method(aliases=["_to_dense"])
def to_dense(self, dtype=None, *, masked_grad=None):
    """The tensor with all its elements; a dense one is returned as it is. The gradient is that of the
    entries, unless masked_grad is False.

    >>> x = rushlight.ones(1)
    >>> x.to_dense() is x
    True
    >>> rushlight.sparse_coo_tensor([[1]], [5.0], (2,)).to_dense()
    tensor([0., 5.])
    """
    if self.layout is create.strided:
        return self if dtype is None else self.to(dtype)
    return ops.to_dense(self, dtype, masked_grad)


@method
def to_mkldnn(self, dtype=None):
    """A copy in oneDNN's layout, which few operations take.

    >>> rushlight.ones(2).to_mkldnn().to_dense()
    tensor([1., 1.])
    """
    from rushlight import _opaque  # noqa: F401  (the kernel)

    return ops.to_mkldnn(self, dtype)


def _to_coo(self, count):
    many = self.dim()
    if _C.is_compressed(self):
        return _from_compressed(self, count)
    if is_sparse(self):
        if count in (None, self.sparse_dim()):
            return self
        raise RuntimeError(
            "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not "
            "supported"
        )
    if count is None:
        return ops.to_sparse(self, many, None)
    if many and count == 0:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    if not 0 <= count <= many:
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [0,{many}] range, but {count} is given"
        )
    made = ops.to_sparse(self, count, None)
    return _C.name_node(made, "ToSparseBackward0") if made.requires_grad else made


def _from_compressed(self, count):
    if count not in (None, self.batch + 2):
        raise RuntimeError(
            f"sparse_compressed_to_sparse: conversion from {self.kind} to Sparse with sparse_dim argument "
            f"!={self.batch + 2} is not supported"
        )
    made = ops.to_sparse(self, self.batch + 2, kind_of(self))
    return _C.name_node(made, "ToSparseBackward0") if count is not None and made.requires_grad else made


def _check_block(self, layout, blocksize):
    """Blocks are asked for in the layouts that have them."""
    blocked = layout in (create.sparse_bsr, create.sparse_bsc)
    if blocked == (blocksize is not None):
        return
    source = {create.strided: "dense_", create.sparse_coo: "sparse_coo_"}.get(
        self.layout, "sparse_compressed_"
    )
    into = "to_sparse" if self.layout is layout else f"{source}to_sparse"
    raise RuntimeError(
        f"{into}: conversion from {layout_name(self)} to {layout_name(layout)} "
        f"{'without' if blocked else 'with'} blocksize argument given is not supported"
    )


@method(aliases=["_to_sparse"])
def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """The elements that are not zero, or of which a row along the dense dimensions is not.

    >>> rushlight.tensor([0.0, 2.0]).to_sparse()
    tensor(indices=tensor([[1]]),
           values=tensor([2.]),
           size=(2,), nnz=1, layout=torch.sparse_coo)
    """
    if sparse_dim is not None and (layout, blocksize, dense_dim) != (None, None, None):
        raise TypeError("to_sparse() takes 0 positional arguments but 1 was given")
    layout = layout or create.sparse_coo
    _check_block(self, layout, blocksize)
    if layout is create.strided:
        return self.to_dense()
    if layout not in create.SPARSE:
        raise RuntimeError(f"dense_to_sparse: unexpected source layout {layout_name(self)}")
    if layout is not create.sparse_coo:
        from rushlight.ops.compressed import to_layout

        return to_layout(self, layout, blocksize, dense_dim, "ToSparseBackward1")
    if dense_dim is not None:
        sparse_dim = self.dim() - dense_dim
    return _to_coo(self, sparse_dim)


@method
def to_sparse_coo(self):
    """The elements that are not zero, in coordinates.

    >>> rushlight.eye(2).to_sparse_coo()._nnz()
    2
    """
    return self.to_sparse()


@method
def sparse_mask(self, mask):
    """The elements where the sparse tensor `mask` has entries.

    >>> rushlight.tensor([3.0, 4.0]).sparse_mask(rushlight.tensor([0.0, 1.0]).to_sparse()).values()
    tensor([4.])
    """
    if not _C.is_compressed(mask):
        _expect(mask, "sparse_mask")
    if self is mask and not (self.requires_grad and _C.is_grad_enabled()):
        return self
    return ops.sparse_mask(self, mask.detach() if mask.requires_grad else mask)


@method
def _sparse_mask_projection(self, mask, accumulate_matches=False):
    """The entries of a sparse tensor where another has some."""
    if accumulate_matches:
        raise NotImplementedError("_sparse_mask_projection(accumulate_matches=True) is not implemented")
    return ops.sparse_mask(self, mask.detach() if mask.requires_grad else mask)


# ---- making them


class invariants:
    """Whether sparse tensors are checked when they are made, where a call does not say."""

    checked = False


def _check_parts(indices: Tensor, values: Tensor, size: Any, coalesced: Any, checks: bool) -> tuple:
    if indices.dim() == 0:
        raise RuntimeError("indices must be sparse_dim x nnz, but got: []")
    count, dense = indices.shape[0], values.dim() - 1
    if size is None:
        if indices.dim() != 2:
            raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
        size = (*_inferred(indices), *values.shape[1:])
    if len(size) != count + dense:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{count}, dense_dim = {dense}"
        )
    if indices.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if indices.shape[1] != values.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {indices.shape[1]}, nnz from "
            f"values: {values.shape[0]}"
        )
    if list(values.shape[1:]) != list(size[count:]):
        raise RuntimeError(
            f"values has incorrect size, expected {[values.shape[0], *size[count:]]}, got "
            f"{list(values.shape)}"
        )
    if checks:
        from rushlight._sparse.build import check_indices
        from rushlight._sparse.tensor import make

        check_indices(indices, size)
        if coalesced:
            plain = make(indices, _C.detach(values), size)
            if plain.coalesce()._nnz() != indices.shape[1] or not bool(
                (plain.coalesce()._indices() == indices).all()
            ):
                raise RuntimeError(
                    "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"
                )
    return tuple(size)


def _inferred(indices: Tensor) -> list[int]:
    if not indices.shape[1]:
        return [0] * indices.shape[0]
    if not indices.shape[0]:
        return []
    for d, low in enumerate(ops.amin(indices, (1,), False).tolist()):
        if low < 0:
            raise RuntimeError(f"found negative index {low} for dim {d}")
    return [high + 1 for high in ops.amax(indices, (1,), False).tolist()]


@function
def sparse_coo_tensor(
    *args, indices=None, values=None, size=None, dtype=None, device=None, pin_memory=False,
    requires_grad=False, check_invariants=None, is_coalesced=None,
):  # fmt: skip
    """A sparse tensor of indices, one column for each entry, and values; without both, of a size and
    nothing else.

    >>> rushlight.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    from rushlight import _sparse, as_tensor  # noqa: F401

    if len(args) == 1 and indices is values is size is None:
        size, args = args[0], ()
    if not args and indices is values is None and isinstance(size, (tuple, list)):
        return create.without_entries(size, dtype, device, requires_grad)
    if len(args) > 3:
        _refuse_arguments(args)
    if args:
        indices, values, size = list(args) + [indices, values, size][len(args) :]
    if indices is None or values is None or not isinstance(size, (tuple, list, type(None))):
        _refuse_arguments(args or tuple(value for value in (indices, values, size) if value is not None))
    create.refuse_sparse_on(_C.as_device(device or "cpu"))
    values = as_tensor(values, dtype=dtype)
    indices = as_tensor(indices).to(_C.int64)
    if values.dim() == 0:
        values = values.unsqueeze(0)
    checks = invariants.checked if check_invariants is None else check_invariants
    size = _check_parts(indices, values, size, is_coalesced, checks)
    made = ops.sparse_coo(indices, values, size, bool(is_coalesced))
    if requires_grad and not (made.is_floating_point() or made.is_complex()):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return made.requires_grad_() if requires_grad else made


def _refuse_arguments(args: tuple) -> None:
    from rushlight._type_names import type_name

    if len(args) == 1:
        raise TypeError(
            f"sparse_coo_tensor(): argument 'size' (position 1) must be tuple of ints, not "
            f"{type_name(args[0])}"
        )
    given = ", ".join(type_name(value) for value in args)
    raise TypeError(
        f"sparse_coo_tensor() received an invalid combination of arguments - got ({given}), but "
        "expected one of:"
        "\n * (object indices, object values, *, torch.dtype dtype = None, torch.device device = None, bool "
        "pin_memory = False, bool requires_grad = False, bool check_invariants = None, bool "
        "is_coalesced = None)"
    )
