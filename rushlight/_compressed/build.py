"""Kernels that make compressed tensors of others and turn them into others.

`places` says where in the matrices each element lies, `arrange` makes a tensor of such places: all
conversions are made of these two. No index is trusted.
"""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight import _C
from rushlight._compressed.table import COMPRESSED, in_place, kernel
from rushlight._compressed.tensor import FORMS, CompressedTensor, Form, make, sharing, with_values
from rushlight._sparse import build as coordinates
from rushlight._sparse.build import indices_of, look_up, sum_rows
from rushlight._sparse.table import refuse
from rushlight._sparse.tensor import SparseTensor
from rushlight._sparse.tensor import make as make_coo
from rushlight._unstored import maker
from rushlight.ops import create

Tensor = _C.Tensor
ops = _C.ops


def check_values(x: CompressedTensor) -> None:
    """Refuses indices that lead out of the tensor."""
    compressed, plain, _ = x.parts
    form, nnz = x.form, plain.shape[-1]
    ends = compressed.to(_C.int64)
    if ends.numel() and bool((ends[..., 0] != 0).any()):
        raise RuntimeError(f"`{form.compressed}[..., 0] == 0` is not satisfied.")
    if ends.numel() and bool((ends[..., -1] != nnz).any()):
        raise RuntimeError(f"`{form.compressed}[..., -1] == nnz` is not satisfied.")
    many = ends[..., 1:] - ends[..., :-1]
    across = "ncols" if form.by_rows else "nrows"
    if many.numel() and bool((many < 0).any()):
        raise RuntimeError(
            f"`0 <= {form.compressed}[..., 1:] - {form.compressed}[..., :-1] <= {across}` is not satisfied."
        )
    if plain.numel() and not 0 <= plain.min().item() <= plain.max().item() < _lines(x)[1]:
        raise RuntimeError(f"`0 <= {form.plain} < {across}` is not satisfied.")


def _lines(x: CompressedTensor) -> tuple[int, int]:
    """How many lines there are in a matrix, and how many places in a line."""
    return lines_of(x.form, x.shape[x.batch : x.batch + 2], x.blocksize)


def lines_of(form: Form, matrix: Any, block: tuple[int, int]) -> tuple[int, int]:
    """The same of a form, the size of a matrix and of a block."""
    rows, columns = matrix[0] // max(block[0], 1), matrix[1] // max(block[1], 1)
    return (rows, columns) if form.by_rows else (columns, rows)


def entries(x: CompressedTensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of all batches: the line of each entry, its place in it, and its values."""
    check_values(x)
    compressed, plain, values = x.parts
    many = (compressed[..., 1:] - compressed[..., :-1]).reshape(-1).to(_C.int64)
    line = rushlight.repeat_interleave(rushlight.arange(many.shape[0]), many)
    count = plain.numel()
    return (
        line,
        plain.reshape(count).to(_C.int64),
        values.reshape(count, *values.shape[x.batch + 1 :]),
    )


def places(x: CompressedTensor) -> Tensor:
    """Where the elements of each entry are in the matrices, row by row: (entries, rows and columns of a
    block)."""
    line, across, _ = entries(x)
    rows, columns = x.shape[x.batch : x.batch + 2]
    high, wide = x.blocksize
    lines, _ = _lines(x)
    batch, line = line // max(lines, 1), line % max(lines, 1)
    row, column = (line, across) if x.form.by_rows else (across, line)
    row = row[:, None, None] * high + rushlight.arange(high)[:, None]
    column = column[:, None, None] * wide + rushlight.arange(wide)
    return (batch[:, None, None] * rows + row) * columns + column


def elements(x: CompressedTensor) -> tuple[Tensor, Tensor]:
    """Each element for itself: its place in the matrices, and its row of values."""
    place = places(x).reshape(-1)
    return place, x.parts[2].reshape(place.shape[0], *x.shape[x.batch + 2 :])


def arrange(
    form: Form, block: tuple[int, int], size: Any, batch: int, place: Tensor, values: Tensor
) -> CompressedTensor:
    """A tensor of elements at places in the matrices, no two of them at the same."""
    size = tuple(size)
    many = math.prod(size[:batch])
    rows, columns = size[batch : batch + 2]
    high, wide = block
    lines, across = lines_of(form, (rows, columns), block)
    key = place
    if form.blocked or not form.by_rows:
        column, row = place % max(columns, 1), place // max(columns, 1)
        which, row = row // max(rows, 1), row % max(rows, 1)
        line, at = (row // high, column // wide) if form.by_rows else (column // wide, row // high)
        key = (which * lines + line) * across + at
    dense = size[batch + 2 :]
    if form.blocked:
        known, entry = rushlight.unique(key, return_inverse=True)
        inside = (entry * high + row % high) * wide + column % wide
        values = sum_rows(values, inside, known.shape[0] * high * wide)
        values = values.view(known.shape[0], high, wide, *dense)
    elif bool((key[1:] >= key[:-1]).all()):
        known = key
    else:
        known, order = rushlight.sort(key, stable=True)
        values = ops.index_select(values, order, 0)
    counts = rushlight.bincount(known // max(across, 1), minlength=many * lines)[: many * lines]
    ends = rushlight.cat([rushlight.zeros((many, 1), dtype=_C.int64), counts.view(many, lines).cumsum(1)], 1)
    if many and bool((ends[:, -1] != ends[0, -1]).any()):
        raise RuntimeError("Expect the same number of specified elements per batch.")
    each = ends[0, -1].item() if many else 0
    plain = (known % max(across, 1)).view(*size[:batch], each)
    values = values.view(*size[:batch], each, *values.shape[1:])
    return make(form, ends.view(*size[:batch], lines + 1), plain, values, size)


def without_entries(
    form: Form, size: Any, dtype: Any, block: tuple[int, int], batch: int, dense: int
) -> CompressedTensor:
    """A tensor of zeros."""
    size = tuple(size)
    lines, _ = lines_of(form, size[batch : batch + 2], block)
    inner = block if form.blocked else ()
    values = _C.empty((*size[:batch], 0, *inner, *size[batch + 2 :]), dtype, "cpu")
    ends = rushlight.zeros((*size[:batch], lines + 1), dtype=_C.int64)
    return make(form, ends, _C.empty((*size[:batch], 0), _C.int64, "cpu"), values, size)


def empty(name: str, size: Any, dtype: Any, layout: Any) -> CompressedTensor:
    """torch.zeros or torch.empty in a layout without blocks."""
    form = FORMS[layout]
    if len(size) < 2:
        raise RuntimeError(
            f"torch.{name}: Only batched sparse compressed (non-block) tensors are supported, but got size "
            f"{list(size)}"
        )
    if form.blocked:
        raise RuntimeError(
            f"{name}_sparse_compressed expected sparse compressed (non-block) tensor layout but got "
            f"{form.name}"
        )
    return without_entries(form, size, dtype, (1, 1), len(size) - 2, 0)


def dense(x: CompressedTensor) -> Tensor:
    """The tensor with all its elements."""
    place, values = elements(x)
    return sum_rows(values, place, math.prod(x.shape[: x.batch + 2])).view(x.shape)


def with_every_element(x: CompressedTensor) -> CompressedTensor:
    """The same with an entry everywhere."""
    cells = math.prod(x.shape[: x.batch + 2])
    values = dense(x).reshape(cells, *x.shape[x.batch + 2 :])
    return arrange(x.form, x.blocksize, x.shape, x.batch, rushlight.arange(cells), values)


def to_coo(x: CompressedTensor) -> SparseTensor:
    """In coordinates, entry by entry as they are."""
    place, values = elements(x)
    ordered = place.shape[0] < 2 or bool((place[1:] > place[:-1]).all())
    known = not x.form.blocked and x.form.by_rows and ordered
    made = make_coo(indices_of(place, x.shape[: x.batch + 2]), values, x.shape, known)
    made.parts = *made.parts[:2], known  # also of a single entry, as in torch
    return made


def coalesced(x: Any) -> SparseTensor:
    """A sparse tensor of any kind in coordinates, each once and in order."""
    return coordinates.coalesced(to_coo(x) if type(x) is CompressedTensor else x)


def of_coo(x: SparseTensor, form: Form, block: tuple[int, int], batch: int) -> CompressedTensor:
    """The inverse of `to_coo`."""
    x = coordinates.coalesced(x)
    indices, values, _ = x.parts
    place = coordinates.places(indices, x.shape[: indices.shape[0]])
    return arrange(form, block, x.shape, batch, place, values)


def like(x: SparseTensor, pattern: CompressedTensor) -> CompressedTensor:
    """What was computed in coordinates, in the layout of another."""
    return of_coo(x, pattern.form, pattern.blocksize, pattern.batch)


# ---- kernels


@maker("sparse_compressed")
@kernel("sparse_compressed")
def sparse_compressed(compressed: Any, plain: Any, values: Any, size: Any, layout: Any) -> CompressedTensor:
    """A compressed tensor of parts that have been looked at."""
    return make(FORMS[layout], _C.detach(compressed), _C.detach(plain), _C.detach(values), size)


def same_entries(a: CompressedTensor, b: CompressedTensor) -> bool:
    """Whether both have the same entries in the same order."""
    if a.form is not b.form or a.shape != b.shape or a.parts[2].shape != b.parts[2].shape:
        return False
    pairs = zip(a.parts[:2], b.parts[:2], strict=True)
    return all(x is y or (x.dtype == y.dtype and rushlight.equal(x, y)) for x, y in pairs)


@kernel("compressed_at")
def compressed_at(x: Any, like: CompressedTensor) -> Tensor:
    """The elements of a tensor where another has entries, as values are laid out."""
    values = like.parts[2]
    if type(x) is CompressedTensor and same_entries(x, like):
        return x.parts[2].clone()
    place = places(like).reshape(-1)
    sizes = tuple(like.shape[: like.batch + 2])
    if _C.is_any_sparse(x):
        rows = look_up(coalesced(x), indices_of(place, sizes))
    else:
        rows = ops.index_select(x.reshape(math.prod(sizes), *x.shape[len(sizes) :]), place, 0)
    return rows.view(values.shape)


@kernel("to_dense")
def to_dense(x: CompressedTensor, dtype: Any, masked_grad: Any) -> Tensor:
    """The dense tensor; torch takes no dtype there."""
    if dtype is not None:
        raise RuntimeError("dtype argument is not supported by sparse_csr_to_dense")
    return dense(x)


@kernel("to_sparse")
def to_sparse(x: CompressedTensor, sparse_dim: int, source: Any) -> SparseTensor:
    """In coordinates."""
    return to_coo(x)


@maker("to_compressed")
@kernel("to_compressed")
def to_compressed(x: Any, layout: Any, blocksize: Any, dense_dim: Any, source: Any) -> CompressedTensor:
    """A tensor of any kind in a compressed layout."""
    form, block = FORMS[layout], blocksize or (1, 1)
    if type(x) is CompressedTensor:
        place, values = elements(x)
        made = arrange(form, block, x.shape, x.batch, place, values)
        ends, plain, values = made.parts
        made.parts = ends.to(x.parts[0].dtype), plain.to(x.parts[1].dtype), values
        return made
    if type(x) is SparseTensor:
        return of_coo(x, form, block, 0)
    batch = x.dim() - (dense_dim or 0) - 2
    cells = x.reshape(math.prod(x.shape[: batch + 2]), *x.shape[batch + 2 :])
    there = (cells != 0).reshape(cells.shape[0], math.prod(cells.shape[1:]))
    place = ops.nonzero(ops.any(there, (1,), False))[:, 0]
    made = arrange(form, block, x.shape, batch, place, ops.index_select(cells, place, 0))
    # A block has also those of its zeros that are negative.
    return sharing(made, compressed_at(x, made)) if form.blocked else made


coordinates.kernel("to_compressed")(to_compressed)


@kernel("values")
def values(x: CompressedTensor) -> Tensor:
    """The values with memory of their own: a write to them that is recorded says nothing of x."""
    return x.parts[2].clone()


@kernel("sparse_mask")
def sparse_mask(x: Tensor, mask: Any) -> CompressedTensor:
    """The elements of x where the mask has entries."""
    if type(mask) is not CompressedTensor:
        raise RuntimeError("sparse_mask: a compressed tensor is masked by a compressed one")
    if x.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(x.shape)} but mask has "
            f"size {list(mask.shape)}"
        )
    if type(x) is CompressedTensor and not same_entries(x, mask):
        from rushlight._sparse.arithmetic import _intersection

        ones = sharing(mask, rushlight.ones_like(mask.parts[2], dtype=x.dtype))
        return like(_intersection(coalesced(x), coalesced(ones), x.dtype), mask)  # as in torch
    return with_values(mask, compressed_at(x, mask))


@kernel("clone", "contiguous_copy")
def clone(x: CompressedTensor) -> CompressedTensor:
    """A copy with memory of its own."""
    compressed, plain, values = x.parts
    return make(x.form, compressed.clone(), plain.clone(), values.clone(), x.shape)


@kernel("detach.default", "alias", "detach_.default")
def detach(x: CompressedTensor) -> CompressedTensor:
    """The same indices and values, without history."""
    return sharing(x, x.parts[2])


@kernel("to_dtype")
def to_dtype(x: CompressedTensor, dtype: Any) -> CompressedTensor:
    """The values converted."""
    return with_values(x, x.parts[2].to(dtype))


@kernel("to_device")
def to_device(x: CompressedTensor, dtype: Any, device: Any) -> CompressedTensor:
    """All parts elsewhere."""
    create.refuse_sparse_on(_C.as_device(device))
    compressed, plain, values = x.parts
    return make(x.form, compressed.to(device), plain.to(device), values.to(device, dtype), x.shape)


@in_place("fill")
def fill_(x: CompressedTensor, value: Any) -> None:
    x.parts[2].fill_(value)


@in_place("copy")
def copy_(x: Any, source: Any) -> None:
    """Entries over as many others; indices are taken over, too."""
    if type(x) is not CompressedTensor:
        name = "Sparse" if type(x) is SparseTensor else "Strided"
        raise RuntimeError(f"copy_sparse_compressed_ expected sparse compressed tensor layout but got {name}")
    if source.layout is not x.layout:
        name = source.kind if _C.is_any_sparse(source) else "Strided"
        raise RuntimeError(
            "torch.copy_: copy of sparse compressed tensors having different layouts is not supported. self "
            f"layout is {x.kind} and src layout is {name}"
        )
    for d, (a, b) in enumerate(zip(x.shape, source.shape, strict=False)):
        if a != b:
            raise RuntimeError(
                "torch.copy_: expected shapes of self and src to match along dimension "
                f"{d} for {x.kind} layout but the corresponding dimensions of self and src are {a} and {b}, "
                "respectively."
            )
    if x.parts[1].shape != source.parts[1].shape:
        raise RuntimeError(
            "torch.copy_: only sparse compressed tensors with the same number of specified elements are "
            "supported."
        )
    if x.dim() != source.dim() or x.blocksize != source.blocksize or x.batch != source.batch:
        raise RuntimeError(
            "torch.copy_: expected batches, blocks and dense dimensions of self and src to match"
        )
    for mine, theirs in zip(x.parts, source.parts, strict=True):
        mine.copy_(theirs)


def resize(x: CompressedTensor, size: tuple) -> CompressedTensor:
    """Another size in place; lines are added at the end, and no dimension may shrink."""
    from rushlight.ops.sparse_forms import give_size

    if len(size) != x.dim() or x.batch or x.form.blocked or len(size) > 2:
        raise NotImplementedError(f"resize_ of a {x.kind} tensor: only matrices without blocks are resized")
    if size[-1] < x.shape[-1]:
        raise RuntimeError(
            "torch.resize_: Resizing columns of sparse CSR tensors to a smaller value is not supported. The "
            f"original number of columns is {x.shape[-1]} while the requested new number of columns is "
            f"{size[-1]}."
        )
    if size[0] < x.shape[0]:
        raise NotImplementedError("resize_ of a sparse tensor to fewer rows")
    _C.check_inplace(x)
    compressed, plain, values = x.parts
    lines = lines_of(x.form, size, (1, 1))[0] + 1 - compressed.shape[0]
    ends = rushlight.cat([compressed, compressed[-1:].expand(lines)])
    give_size(x, size)
    x.parts = ends, plain, values
    return _C.note_write(x)


# ---- others of the same size


def _check_layout(x: CompressedTensor, layout: Any) -> None:
    if layout not in (None, x.layout):
        from rushlight.ops.sparse import layout_name

        raise RuntimeError(
            f"empty_like with different sparse layout is not supported (self is {x.kind} but you requested "
            f"{layout_name(layout)})"
        )


@kernel("zeros_like.default")
def zeros_like(x, *, dtype=None, layout=None, device=None, pin_memory=False, memory_format=None):
    """Without entries."""
    _check_layout(x, layout)
    dense_dims = x.dim() - x.batch - 2
    return without_entries(x.form, x.shape, dtype or x.dtype, x.blocksize, x.batch, dense_dims)


def _filled(value: Any) -> Any:
    def made(x, *fill, dtype=None, layout=None, device=None, pin_memory=False, memory_format=None):
        _check_layout(x, layout)
        copy = clone(x)
        values = copy.parts[2].to(dtype or x.dtype)
        given = fill[0] if fill else value
        return sharing(copy, values if given is None else rushlight.full_like(values, given))

    return made


kernel("empty_like.default")(_filled(None))
kernel("ones_like.default")(_filled(1))
kernel("full_like.default")(_filled(None))


def _new(name: str) -> Any:
    def made(x, size, *, dtype=None, layout=None, device=None, pin_memory=False):
        if layout is create.strided:
            return getattr(rushlight, name)(size, dtype=dtype or x.dtype)
        return empty("empty", size, dtype or x.dtype, layout or x.layout)

    return made


kernel("new_zeros.default")(_new("zeros"))
kernel("new_empty.default")(_new("empty"))


@kernel("rand_like.default", "randn_like.default")
def random_like(x: CompressedTensor, **options: Any) -> None:
    """torch has none."""
    refuse("aten::uniform_", COMPRESSED.backend)


@kernel("_local_scalar_dense.default")
def item(x: CompressedTensor) -> Any:
    """The number of a tensor that has one."""
    if x.numel() != 1:
        raise RuntimeError(f"a Tensor with {x.numel()} elements cannot be converted to Scalar")
    return dense(x).item()
