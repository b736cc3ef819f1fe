"""Sparse tensors in the compressed layouts: derivatives, then the functions that make and read them.

What computes is in rushlight/_compressed, which is imported with the first such tensor.
"""

from __future__ import annotations

from rushlight import _C
from rushlight.ops import create
from rushlight.ops._public import function, method
from rushlight.ops._rules import derivative
from rushlight.ops.sparse import _times_conjugate, invariants, kind_of, layout_name, of_kind

ops = _C.ops
Tensor = _C.Tensor
_COMPRESSED = create.sparse_csr, create.sparse_csc, create.sparse_bsr, create.sparse_bsc
_BLOCKED = create.sparse_bsr, create.sparse_bsc

# ---- derivatives


def _of_at(g, x, like):
    compressed, plain, _ = like.parts
    made = ops.sparse_compressed(compressed.clone(), plain.clone(), g.contiguous(), like.shape, like.layout)
    return in_layout_of(x, made)


def in_layout_of(x, g):
    """A gradient in the layout of x."""
    return of_kind(kind_of(x), g)


def _of_values(g, compressed, plain, size, layout, values_shape):
    pattern = ops.sparse_compressed(
        compressed, plain, _C.empty(tuple(values_shape), g.dtype, "cpu"), size, layout
    )
    return ops.compressed_at(g, pattern)


def _masked(g, x):
    """The gradient of a sampled product where it has entries."""
    return g if _C.is_compressed(g) else g.sparse_mask(x.detach())


def _of_reduced(g, x, dense, reduce, needs):
    from rushlight._compressed.products import reduce_gradients

    x = x.detach()
    values, factor = _C.below_autograd(reduce_gradients, g.detach(), x, dense.detach(), reduce)
    compressed, plain, _ = x.parts
    return (
        ops.sparse_compressed(compressed.clone(), plain.clone(), values, x.shape, x.layout)
        if needs[0]
        else None,
        factor if needs[1] else None,
    )


derivative("sparse_compressed", node="SparseCompressedTensorBackward0", values=_of_values)
derivative("compressed_at", node="ValuesBackward0", x=_of_at)
derivative("to_compressed", node="ToSparseBackward1", x=lambda g, source: of_kind(source, g))
derivative(
    "sampled_addmm",
    node="SparseSampledAddmmBackward0",
    x=lambda g, beta: _times_conjugate(g, beta),
    a=lambda g, x, b, alpha: _times_conjugate(_masked(g, x) @ b.mH, alpha),
    b=lambda g, x, a, alpha: _times_conjugate(a.mH @ _masked(g, x), alpha),
    shows="x",
    packs="a b x",
)
derivative("sparse_mm_reduce", _of_reduced, node="SparseMmReduceImplBackward0",
           final="_sparse_mm_reduce_impl_backward")  # fmt: skip

# ---- what they are made of


def _part(name: str, rows: bool, at: int) -> None:
    expected = f"sparse {'row' if rows else 'column'} compressed"

    def read(self):
        if not _C.is_compressed(self) or self.form.by_rows != rows:
            raise RuntimeError(f"{name} expected {expected} tensor layout but got {layout_name(self)}")
        return _C.count_with(_C.detach(self.parts[at]), self)

    read.__name__ = read.__qualname__ = name
    lines, method_of = ("rows", "csr") if rows else ("columns", "csc")
    read.__doc__ = f"""The {name} of a sparse tensor that is compressed by {lines}.

    >>> rushlight.eye(2).to_sparse_{method_of}().{name}()
    tensor({[0, 1, 2] if at == 0 else [0, 1]})
    """
    method(read)


_part("crow_indices", True, 0)
_part("col_indices", True, 1)
_part("ccol_indices", False, 0)
_part("row_indices", False, 1)

# ---- conversions


def _check_dims(self, layout, blocksize, dense_dim, into, given):
    """Refuses what torch cannot convert. `into` is how it calls the conversion."""
    kind, wanted = layout_name(self), layout_name(layout)
    what = f"{into}: conversion from {kind} to {wanted}"
    if given and dense_dim is not None and self.layout is not create.strided:
        raise RuntimeError(f"{what} with dense_dim argument given is not supported")
    if self.layout is create.sparse_coo and self.sparse_dim() != 2:
        raise RuntimeError(f"{what} for input tensors with sparse_dim()!=2 is not supported")
    if blocksize is not None:
        if len(blocksize) != 2:
            raise RuntimeError(f"{into}: blocksize needs to be a tuple of size 2, but got {len(blocksize)}")
        if min(blocksize) <= 0:
            raise RuntimeError(f"{into}: blocksize needs to be positive, but got {list(blocksize)}")
    if _C.is_compressed(self):
        _check_compressed(self, layout, blocksize, into, what)
    elif self.layout is create.strided:
        most = self.dim() - 2
        if self.dim() < 2:
            raise IndexError(f"{into}: a tensor with at least 2 dimensions expected, but got {self.dim()}")
        if dense_dim is not None and not 0 <= dense_dim <= most:
            raise RuntimeError(
                f"{into}: dense_dim argument must be in [0,{most}] range, but {dense_dim} is given"
            )
    if blocksize is not None and not _C.is_compressed(self):
        _check_divisible(self, blocksize, self.dim() - (dense_dim or 0) - 2, into)


def _check_divisible(self, blocksize, batch, into):
    rows, columns = self.shape[:2] if self.is_sparse else self.shape[batch : batch + 2]
    if rows % blocksize[0] or columns % blocksize[1]:
        raise RuntimeError(
            f"{into}: tensor sparse size ({rows},{columns}) must be divisible by given blocksize "
            f"({blocksize[0]},{blocksize[1]})"
        )


def _check_compressed(self, layout, blocksize, into, what):
    if self.form.blocked and layout not in _BLOCKED:
        into = f"sparse_compressed_to_sparse_{layout_name(layout)[6:].lower()}"
        raise RuntimeError(f"{into}: expected SparseCsr or SparseCsc layout but got {self.kind}")
    if self.form.blocked and tuple(blocksize) != self.blocksize:
        raise RuntimeError(
            f"{what} with blocksize changed from {list(self.blocksize)} to {list(blocksize)} is not supported"
        )
    if layout in _BLOCKED and not self.form.blocked:
        if self.batch:
            raise RuntimeError(f"{what} for batched inputs is not supported")
        _check_divisible(self, blocksize, 0, into)


def to_layout(self, layout, blocksize, dense_dim, node):
    """A tensor of any kind in a compressed layout, under the name that torch has for it."""
    from rushlight._compressed import table  # noqa: F401  (the kernels)

    name = layout_name(layout)[6:].lower()
    source = {create.strided: "dense", create.sparse_coo: "coo"}.get(self.layout, "sparse_compressed")
    into = f"to_sparse_{name}" if self.layout is layout else f"{source}_to_sparse_{name}"
    if node == "ToSparseBackward1":  # asked for by the layout, which the sentences do not name then
        into = into.removesuffix(f"_{name}")
    _check_dims(self, layout, blocksize, dense_dim, into, True)
    if self.layout is layout:
        return self
    block = None if blocksize is None else tuple(blocksize)
    made = ops.to_compressed(self, layout, block, dense_dim, kind_of(self))
    return _C.name_node(made, node) if made.requires_grad else made


def _as_block(blocksize):
    return (blocksize, blocksize) if isinstance(blocksize, int) else tuple(blocksize)


@method(aliases=["_to_sparse_csr"])
def to_sparse_csr(self, dense_dim=None):
    """The elements that are not zero, row by row.

    >>> rushlight.eye(2).to_sparse_csr()
    tensor(crow_indices=tensor([0, 1, 2]),
           col_indices=tensor([0, 1]),
           values=tensor([1., 1.]), size=(2, 2), nnz=2, layout=torch.sparse_csr)
    """
    return to_layout(self, create.sparse_csr, None, dense_dim, "ToSparseCsrBackward0")


@method(aliases=["_to_sparse_csc"])
def to_sparse_csc(self, dense_dim=None):
    """The elements that are not zero, column by column.

    >>> rushlight.eye(2).to_sparse_csc().ccol_indices()
    tensor([0, 1, 2])
    """
    return to_layout(self, create.sparse_csc, None, dense_dim, "ToSparseCscBackward0")


@method(aliases=["_to_sparse_bsr"])
def to_sparse_bsr(self, blocksize, dense_dim=None):
    """The blocks in which not all elements are zero, row by row.

    >>> rushlight.eye(4).to_sparse_bsr((2, 2))._nnz()
    2
    """
    return to_layout(self, create.sparse_bsr, _as_block(blocksize), dense_dim, "ToSparseBsrBackward0")


@method(aliases=["_to_sparse_bsc"])
def to_sparse_bsc(self, blocksize, dense_dim=None):
    """The blocks in which not all elements are zero, column by column.

    >>> rushlight.eye(4).to_sparse_bsc((2, 2))._nnz()
    2
    """
    return to_layout(self, create.sparse_bsc, _as_block(blocksize), dense_dim, "ToSparseBscBackward0")


# ---- making them


def _check_shapes(compressed, plain, values, size, layout):
    from rushlight._compressed.tensor import FORMS

    form = FORMS[layout]
    names = form.compressed, form.plain
    for name, part in zip(names, (compressed, plain), strict=True):
        if part.layout is not create.strided or values.layout is not create.strided:
            raise RuntimeError("expected indices and values to be strided tensors")
        if name == names[0] and part.dim() < 1:
            raise RuntimeError(f"{name} must have dimensionality >= 1 but got {part.dim()}")
    if compressed.dim() != plain.dim():
        raise RuntimeError(
            f"{names[0]} and {names[1]} dimensionalities must be equal but got {compressed.dim()} and "
            f"{plain.dim()}, respectively"
        )
    batch, block = compressed.dim() - 1, 2 * form.blocked
    if values.dim() <= batch + block:
        raise RuntimeError(
            "values must have dimensionality > sum of batch and block dimensionalities "
            f"(={batch} + {block}) but got {values.dim()}"
        )
    if size is None:
        size = _inferred(compressed, plain, values, form)
    dense = values.dim() - batch - block - 1
    if len(size) != batch + 2 + dense:
        raise RuntimeError(
            "tensor dimensionality must be sum of batch, base, and dense dimensionalities "
            f"(={batch} + 2 + {dense}) but got {len(size)}"
        )
    batches = [list(part.shape[:batch]) for part in (compressed, plain, values)]
    if any(each != list(size[:batch]) for each in batches):
        raise RuntimeError(
            f"all batch dimensions of {names[0]} (={batches[0]}), {names[1]} (={batches[1]}), and values "
            f"(={batches[2]}) must be equal to tensor batch dimensions (={list(size[:batch])})"
        )
    _check_lengths(compressed, plain, values, size, form)
    return tuple(size)


def _check_lengths(compressed, plain, values, size, form):
    batch = compressed.dim() - 1
    block = tuple(values.shape[batch + 1 : batch + 3]) if form.blocked else (1, 1)
    for d in range(2):
        if size[batch + d] % block[d] if block[d] else size[batch + d]:
            raise RuntimeError(
                f"tensor shape[{batch + d}] (={size[batch + d]}) must be divisible with blocksize[{d}] "
                f"(={block[d]}) as defined by values shape"
            )
    d = 0 if form.by_rows else 1
    lines = size[batch + d] // max(block[d], 1)
    if compressed.shape[-1] != lines + 1:
        what = ("row" if form.by_rows else "column") + (" blocks" if form.blocked else "s")
        raise RuntimeError(
            f"{form.compressed}.shape[-1] must be equal to the number of {what} + 1 (={lines + 1}), but got "
            f"{compressed.shape[-1]}"
        )
    if plain.shape[-1] != values.shape[batch]:
        raise RuntimeError(
            f"{form.plain}.shape[-1] must be equal to nnz (={values.shape[batch]}) as defined by "
            f"values.shape[{batch}], but got {plain.shape[-1]}"
        )
    dense = list(size[batch + 2 :])
    if list(values.shape[batch + 1 + 2 * form.blocked :]) != dense:
        raise RuntimeError(f"values has dense dimensions that are not those of the size, {dense}")
    if compressed.dtype != plain.dtype:
        names = layout_type(compressed), layout_type(plain)
        raise RuntimeError(
            f"{form.compressed} and {form.plain} must have the same dtype, bot got {names[0]} and "
            f"{names[1]}, respectively"
        )
    if compressed.dtype not in (_C.int32, _C.int64):
        raise RuntimeError(
            f"{form.compressed} and {form.plain} dtype must be Int or Long, but got {layout_type(plain)}"
        )


def layout_type(x):
    """The dtype as torch's errors call it."""
    from rushlight.ops._public import type_name

    return type_name(x.dtype)


def _inferred(compressed, plain, values, form):
    if plain.dtype not in (_C.int32, _C.int64):
        name = layout_type(plain)
        raise NotImplementedError(f"\"estimate_sparse_compressed_tensor_size\" not implemented for '{name}'")
    batch = compressed.dim() - 1
    block = tuple(values.shape[batch + 1 : batch + 3]) if form.blocked else (1, 1)
    lines, across = compressed.shape[-1] - 1, plain.max().item() + 1 if plain.numel() else 0
    rows, columns = (lines, across) if form.by_rows else (across, lines)
    matrix = rows * block[0], columns * block[1]
    return (*compressed.shape[:batch], *matrix, *values.shape[batch + 1 + 2 * form.blocked :])


def _check_invariants(x):
    """All that is asked of indices, with torch's sentences."""
    from rushlight._compressed.build import check_values, entries, lines_of

    form = x.form
    across = lines_of(form, x.shape[x.batch : x.batch + 2], x.blocksize)[1]
    ends = x.parts[0]
    if ends.numel() and bool((ends[..., 0] != 0).any()):
        check_values(x)
    many = ends[..., 1:] - ends[..., :-1]
    over = many.numel() and (many.max().item() > across or many.min().item() < 0)
    if over and bool((ends[..., -1] == x.parts[1].shape[-1]).all()):
        name = "ncols" if form.by_rows else "nrows"
        raise RuntimeError(
            f"`0 <= {form.compressed}[..., 1:] - {form.compressed}[..., :-1] <= {name}` is not satisfied."
        )
    line, plain, _ = entries(x)
    key = line * across + plain
    if key.shape[0] > 1 and not bool((key[1:] > key[:-1]).all()):
        name = "nrows" if form.by_rows else "ncols"
        raise RuntimeError(
            f"`{form.plain}[..., {form.compressed}[..., i - 1]:{form.compressed}[..., i]] for all i = 1, "
            f"..., {name} are sorted and distinct along the last dimension values` is not satisfied."
        )


def _build(compressed, plain, values, size, layout, dtype, device, requires_grad, check_invariants):
    from rushlight import as_tensor
    from rushlight._compressed import table  # noqa: F401  (the kernels)

    create.refuse_sparse_on(_C.as_device(device or "cpu"))
    values = as_tensor(values, dtype=dtype)
    compressed, plain = as_tensor(compressed), as_tensor(plain)
    if compressed.dtype != plain.dtype and not plain.numel():
        plain = plain.to(compressed.dtype)  # an empty list says nothing
    if {compressed.dtype, plain.dtype} == {_C.int32, _C.int64}:
        compressed, plain = compressed.to(_C.int64), plain.to(_C.int64)
    size = _check_shapes(compressed, plain, values, size, layout)
    made = ops.sparse_compressed(compressed, plain, values, size, layout)
    if invariants.checked if check_invariants is None else check_invariants:
        _check_invariants(made.detach())
    if requires_grad and not (made.is_floating_point() or made.is_complex()):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return made.requires_grad_() if requires_grad else made


def _refuse_arguments(name, args, names):
    from rushlight._type_names import type_name

    given = ", ".join(type_name(value) for value in args)
    raise TypeError(
        f"{name}() received an invalid combination of arguments - got ({given}), but expected one of:"
        f"\n * (object {names[0]}, object {names[1]}, object values, tuple of ints size, *, torch.dtype "
        "dtype = None, torch.layout layout = None, torch.device device = None, bool pin_memory = False, bool "
        "requires_grad = False, bool check_invariants = None)"
    )


def _maker(name, names, layout, doc):
    def make(
        *args, values=None, size=None, dtype=None, layout=layout, device=None, pin_memory=False,
        requires_grad=False, check_invariants=None, **parts,
    ):  # fmt: skip
        named = {"values": values, "size": size, **parts}
        given = [*args, *(named.get(each) for each in (*names, "values", "size")[len(args) :])]
        unknown = set(parts) - set(names)
        sized = len(given) == 4 and isinstance(given[3], (tuple, list, type(None)))
        if unknown or not sized or any(each is None for each in given[:3]):
            shown = [*args, *(each for each in given[len(args) :] if each is not None)]
            _refuse_arguments(name, shown, names)
        if name == "sparse_compressed_tensor" and layout not in _COMPRESSED:
            got = "none" if layout is None else layout_name(layout)
            raise RuntimeError(f"{name} expected sparse compressed tensor layout but got {got}")
        if name != "sparse_compressed_tensor" and layout is not own:
            raise RuntimeError(f"{name}: layout must be {layout_name(own)} but got {layout_name(layout)}")
        if pin_memory:
            raise RuntimeError("Cannot access accelerator device when none is available.")
        return _build(*given, layout, dtype, device, requires_grad, check_invariants)

    own = layout
    make.__name__ = make.__qualname__ = name
    make.__doc__ = doc
    return function(make)


_ROWS, _COLUMNS = ("crow_indices", "col_indices"), ("ccol_indices", "row_indices")
sparse_csr_tensor = _maker(
    "sparse_csr_tensor", _ROWS, create.sparse_csr,
    """A sparse matrix of the ends of its rows, and for each entry the column and the value.

    >>> rushlight.sparse_csr_tensor([0, 1, 2], [2, 0], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """,
)  # fmt: skip
sparse_csc_tensor = _maker(
    "sparse_csc_tensor", _COLUMNS, create.sparse_csc,
    """A sparse matrix of the ends of its columns, and for each entry the row and the value.

    >>> rushlight.sparse_csc_tensor([0, 1, 1, 2], [1, 0], [4.0, 3.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """,
)  # fmt: skip
sparse_bsr_tensor = _maker(
    "sparse_bsr_tensor", _ROWS, create.sparse_bsr,
    """A sparse matrix of blocks: the ends of rows of them, and for each the column of blocks and the block.

    >>> rushlight.sparse_bsr_tensor([0, 1], [1], [[[1.0, 2.0]]], (1, 4)).to_dense()
    tensor([[0., 0., 1., 2.]])
    """,
)  # fmt: skip
sparse_bsc_tensor = _maker(
    "sparse_bsc_tensor", _COLUMNS, create.sparse_bsc,
    """A sparse matrix of blocks: the ends of columns of them, and for each the row of blocks and the block.

    >>> rushlight.sparse_bsc_tensor([0, 0, 1], [0], [[[1.0, 2.0]]], (1, 4)).to_dense()
    tensor([[0., 0., 1., 2.]])
    """,
)  # fmt: skip
sparse_compressed_tensor = _maker(
    "sparse_compressed_tensor", ("compressed_indices", "plain_indices"), None,
    """A sparse matrix in one of the compressed layouts.

    >>> rushlight.sparse_compressed_tensor([0, 1], [1], [5.0], (1, 2), layout=rushlight.sparse_csr).to_dense()
    tensor([[0., 5.]])
    """,
)  # fmt: skip

# ---- names with an underscore


def _validate(compressed, plain, values, size, layout):
    from rushlight._compressed import table  # noqa: F401  (the kernels)

    size = _check_shapes(compressed, plain, values, tuple(size), layout)
    _check_invariants(ops.sparse_compressed(compressed, plain, values, size, layout).detach())


@function
def _validate_sparse_compressed_tensor_args(
    compressed_indices, plain_indices, values, size, layout, check_pinning=None
):
    """Raises if these are no parts of a sparse tensor in a compressed layout."""
    _validate(compressed_indices, plain_indices, values, size, layout)


def _validator(kind, layout):
    def validate(compressed, plain, values, size, check_pinning=None):
        _validate(compressed, plain, values, size, layout)

    validate.__name__ = validate.__qualname__ = f"_validate_sparse_{kind}_tensor_args"
    validate.__doc__ = f"Raises if these are no parts of a sparse tensor in the layout {kind.upper()}."
    function(validate)


for _kind, _layout in zip(("csr", "csc", "bsr", "bsc"), _COMPRESSED, strict=True):
    _validator(_kind, _layout)


@function
def _validate_compressed_sparse_indices(is_crow, compressed_idx, plain_idx, cdim, dim, nnz):
    """Raises if these are no indices of a compressed matrix of `cdim` lines with `dim` places in each."""
    from rushlight import empty

    layout = create.sparse_csr if is_crow else create.sparse_csc
    batch = compressed_idx.shape[:-1]
    size = (*batch, cdim, dim) if is_crow else (*batch, dim, cdim)
    _validate(compressed_idx, plain_idx, empty((*batch, nnz)), size, layout)


@function
def _convert_indices_from_csr_to_coo(crow_indices, col_indices, *, out_int32=False, transpose=False):
    """The indices of a CSR matrix in coordinates, one column for each entry.

    >>> rushlight._convert_indices_from_csr_to_coo(rushlight.tensor([0, 1, 3]), rushlight.tensor([0, 1, 2]))
    tensor([[0, 1, 1],
            [0, 1, 2]])
    """
    from rushlight import arange, repeat_interleave, stack

    rows = repeat_interleave(arange(crow_indices.shape[0] - 1), (crow_indices[1:] - crow_indices[:-1]).long())
    pair = [col_indices.long(), rows] if transpose else [rows, col_indices.long()]
    return stack(pair).to(_C.int32 if out_int32 else _C.int64)


@function
def _convert_indices_from_coo_to_csr(input, size, *, out_int32=False):
    """The ends of rows of which each entry has the number of its own, in order.

    >>> rushlight._convert_indices_from_coo_to_csr(rushlight.tensor([0, 0, 2]), 3)
    tensor([0, 2, 2, 3])
    """
    from rushlight import bincount, cat, zeros

    if input.numel() and not 0 <= input.min().item() <= input.max().item() < size:
        raise RuntimeError(f"_convert_indices_from_coo_to_csr: indices must be in [0, {size})")
    ends = cat([zeros(1, dtype=_C.int64), bincount(input.long(), minlength=size).cumsum(0)])
    return ends.to(_C.int32 if out_int32 else _C.int64)


def _reduction(name, kernel):
    def reduce(input, dim, keepdim=False, *, dtype=None):
        from rushlight._compressed import arithmetic

        if not input.is_sparse_csr:
            raise RuntimeError(f"{name} expected a CSR tensor but got {layout_name(input)}")
        return getattr(arithmetic, kernel)(input.detach(), dim, keepdim, dtype)

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = "Reduces a CSR matrix along dimensions, which stay with size 1."
    function(reduce)


_reduction("_sparse_csr_sum", "csr_sum")
_reduction("_sparse_csr_prod", "csr_prod")
