"""Views and shapes: the same elements seen with other sizes, and copies of them.

Derivatives first. A view's derivative undoes it; where elements were left out (select, slice, diagonal),
zeros take their place. `expand` needs nothing: the engine sums over broadcast dimensions.
"""

from __future__ import annotations

import math
import operator

from rushlight import _C
from rushlight._warn import warn_once
from rushlight.ops._public import (
    FUNCTIONS,
    RARE,
    as_dtype,
    check_apart,
    dims,
    function,
    method,
    public,
    type_name,
    whole,
    wrap_dim,
)
from rushlight.ops._rules import derivative, unmoved
from rushlight.ops._tangents import copied, linear, strided
from rushlight.ops.layout import (
    arranged,
    arranged_copy,
    contiguous_format,
    is_arranged,
    preserve_format,
)

ops = _C.ops


def _inverse(order):
    inverse = [0] * len(order)
    for position, dim in enumerate(order):
        inverse[dim % len(order)] = position
    return tuple(inverse)


def _unsqueeze_as(g, x_shape, dim):
    if not x_shape:
        return g
    chosen = sorted({d % len(x_shape) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))})
    for d in chosen:
        if x_shape[d] == 1:
            g = ops.unsqueeze(g, d)
    return g


def _cat_pieces(gs, dim):
    return FUNCTIONS["cat"](gs, dim)


derivative("view", x=lambda g, x_shape: reshape(g, x_shape))
derivative("expand", x=lambda g: g)
derivative("permute", x=lambda g, dims: ops.permute(g, _inverse(dims)))
derivative("transpose", x=lambda g, dim0, dim1: ops.transpose(g, dim0, dim1))
derivative("t", x=lambda g: ops.t(g))
derivative("unsqueeze", x=lambda g, dim: ops.squeeze_dim(g, dim))
derivative("squeeze", x=lambda g, x_shape: _unsqueeze_all(g, x_shape))
derivative("squeeze_dim", x=_unsqueeze_as, node="SqueezeBackward1")
derivative("squeeze_dims", x=_unsqueeze_as, node="SqueezeBackward2")
derivative("select", x=lambda g, x_shape, dim, index: ops.select_backward(g, x_shape, dim, index))
derivative(
    "slice", x=lambda g, x_shape, dim, start, end, step: ops.slice_backward(g, x_shape, dim, start, end, step)
)
derivative(
    "diagonal",
    x=lambda g, x_shape, offset, dim1, dim2: ops.diagonal_backward(g, x_shape, offset, dim1, dim2),
)
derivative("select_backward", g=lambda g_out, dim, index: ops.select(g_out, dim, index), tangent=linear)
derivative(
    "slice_backward",
    g=lambda g_out, dim, start, end, step: ops.slice(g_out, dim, start, end, step),
    tangent=linear,
)
derivative(
    "diagonal_backward",
    g=lambda g_out, offset, dim1, dim2: ops.diagonal(g_out, offset, dim1, dim2),
    tangent=linear,
)
derivative(
    "as_strided",
    x=lambda g, x_shape, size, stride, offset, layout, start: _strided_backward(
        g, x_shape, size, stride, offset - start, layout
    ),
    tangent=strided,
)
derivative(
    "place",
    node="AsStridedBackward0",
    part=lambda g, layout, size, stride, offset: ops.pick(g, layout, size, stride, offset),
    tangent=linear,
)
derivative(
    "pick",
    x=lambda g, x_shape, layout, size, stride, offset: ops.place(g, x_shape, layout, size, stride, offset),
    tangent=linear,
)


def _without_part(g, part_shape, layout, size, stride, offset):
    """The gradient without what was replaced; in order where g is, or where its elements share memory."""
    left = ops.replace(g, g.new_zeros(part_shape), layout, size, stride, offset)
    in_order = left.is_contiguous() or not (g.is_contiguous() or 0 in g.stride())
    return left if in_order else ops.contiguous_copy(left)


derivative(
    "replace",
    x=lambda g, part_shape, layout, size, stride, offset: _without_part(
        g, part_shape, layout, size, stride, offset
    ),
    part=lambda g, layout, size, stride, offset: ops.pick(g, layout, size, stride, offset),
    tangent=linear,
)
derivative("unfold", x=lambda g, x_shape, dim, size, step: _unfold_gradient(g, x_shape, dim, size, step))
derivative("alias", x=lambda g: g)
# For composed functions whose gradient is constant in x but given x by torch.
derivative("straight", x=lambda g, x: unmoved(g, x, "AliasBackward0"), node="AliasBackward0")
derivative("conj_view", x=lambda g: FUNCTIONS["conj"](g), node="ConjBackward0")
derivative("neg_view", x=lambda g: -g)
derivative("view_as_real", x=lambda g: ops.view_as_complex(ops.contiguous_copy(g)))
derivative("view_as_complex", x=lambda g: ops.view_as_real(ops.contiguous_copy(g)))
derivative("split", x=lambda gs, dim: _cat_pieces(gs, dim))
derivative("split_with_sizes", x=lambda gs, dim: _cat_pieces(gs, dim))
derivative("unbind", x=lambda gs, dim: FUNCTIONS["stack"](gs, dim))
derivative("clone", x=lambda g: g, tangent=linear)
derivative("contiguous_copy", x=lambda g: g, node="CloneBackward0", tangent=linear)
derivative("clone_strided", x=lambda g: g, node="CloneBackward0", tangent=linear)
derivative("rows_copy", x=lambda g: g, node="CloneBackward0", tangent=linear)
derivative("to_dtype", x=lambda g: g, node="ToCopyBackward0", tangent=linear)
derivative("to_device", x=lambda g: g, node="ToCopyBackward0", tangent=linear)
derivative("sum_to", x=lambda g, x_shape: ops.expand(g, x_shape), node="SumBackward1", tangent=linear)
derivative(
    "copy",
    x=lambda g: _C.zeros_like(g),
    source=lambda g: g,
    node="torch::autograd::CopyBackwards",
    tangent=copied,
)
derivative("fill", x=lambda g: _C.zeros_like(g), value=lambda g: g.sum(), tangent=copied)


def _unsqueeze_all(g, x_shape):
    if not _C.is_grad_enabled():
        return reshape(g, x_shape)
    for d, size in enumerate(x_shape):  # in torch's steps, for who looks at the graph
        if size == 1:
            g = ops.unsqueeze(g, d)
    return g


def _strided_backward(g, x_shape, size, stride, offset, layout):
    """What each place in memory got; elements of the input that share a place divide it among them."""
    if not _overlaps(x_shape, layout):
        return ops.place(g, x_shape, layout, size, stride, offset)
    first = min(offset, 0)
    last = max(offset + _reach(size, stride), _reach(x_shape, layout))
    memory = (last - first + 1,)
    counted = _C.detach(g).real if g.is_complex() else _C.detach(g)
    shares = ops.place(counted.new_ones(x_shape), memory, (1,), x_shape, layout, -first)
    places = ops.place(g, memory, (1,), size, stride, offset - first) / shares.clamp(min=1)
    return ops.as_strided(places, x_shape, layout, -first, (1,), 0)


def _reach(sizes, strides):
    return sum((size - 1) * step for size, step in zip(sizes, strides, strict=True) if size)


def _overlaps(sizes, strides):
    """Whether two elements may lie at the same place."""
    last = 0
    for step, size in sorted(zip(strides, sizes, strict=True)):
        if size > 1:
            if step <= last:
                return True
            last += step * (size - 1)
    return False


def _unfold_gradient(g, x_shape, dim, size, step):
    if step < size and g.dtype in RARE:  # whose sums torch has not got
        raise NotImplementedError(f"\"unfold_backward_cpu\" not implemented for '{type_name(g.dtype)}'")
    return _unfold_backward(g, x_shape, dim, size, step)


def _unfold_backward(g, x_shape, dim, size, step):
    """Windows overlap, so their gradients are added where they came from."""
    layout = _contiguous_strides(x_shape)
    d = wrap_dim(dim, len(x_shape))
    stride = list(layout)
    inner = stride[d] if x_shape else 1
    if x_shape:
        stride[d] *= step
    return ops.place(g, tuple(x_shape), layout, tuple(g.shape), (*stride, inner), 0)


def _contiguous_strides(sizes):
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


# ---- the same elements, other sizes


@method
def view(self, *size, dtype=None):
    """Returns a view with another shape (or, given a dtype, the same bytes seen as that dtype: that has no
    gradient, whatever the dtype).

    >>> rushlight.arange(6).view(2, 3)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if dtype is None and len(size) == 1 and isinstance(size[0], (_C.dtype, type)):
        dtype = size[0]
    if dtype is not None:
        return _C.view_dtype(self, as_dtype(dtype))
    return ops.view(self, dims(size))


@public
def reshape(input, *shape):
    """Returns the elements with another shape: a view where possible, a copy otherwise.

    >>> rushlight.reshape(rushlight.arange(4.), (2, 2))
    tensor([[0., 1.],
            [2., 3.]])
    """
    shape = dims(shape)
    if input._is_contiguous() or _C.can_view(input, shape):
        return ops.view(input, shape)
    return ops.view(ops.contiguous_copy(input), shape)


@method
def reshape_as(self, other):
    """Returns this tensor with the shape of `other`.

    >>> rushlight.arange(4).reshape_as(rushlight.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return reshape(self, other.shape)


@method
def view_as(self, other):
    """Views this tensor with the shape of `other`.

    >>> rushlight.arange(4).view_as(rushlight.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return ops.view(self, other.shape)


@public
def flatten(input, start_dim=0, end_dim=-1):
    """Merges the dimensions from start_dim to end_dim into one.

    >>> rushlight.flatten(rushlight.ones(2, 3, 4), 1).shape
    torch.Size([2, 12])
    """
    n = input.dim()
    start, end = wrap_dim(start_dim, n), wrap_dim(end_dim, n)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if n == 0:
        return ops.view(input, (1,))
    if start == end:
        return input
    if end - start == n - 1:
        flat = (input.numel(),)
    else:
        shape = tuple(input.shape)
        flat = (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :])
    return ops.view(input, flat) if input._is_contiguous() else reshape(input, flat)


@public
def ravel(input):
    """Returns the elements in one contiguous dimension, in place if they are.

    >>> rushlight.ravel(rushlight.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    return input.contiguous().view(-1)


@function
def unflatten(input, dim, sizes):
    """Splits one dimension into several.

    >>> rushlight.ones(2, 6).unflatten(1, (2, -1)).shape
    torch.Size([2, 2, 3])
    """
    sizes = tuple(int(size) for size in sizes)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    dim = wrap_dim(dim, input.dim())
    shape = tuple(input.shape)
    if not shape:
        raise RuntimeError(
            f"unflatten got an unexpected error:\nDimension specified as {dim} but tensor has no dimensions"
        )
    for at, size in enumerate(sizes):
        if size < -1:
            raise RuntimeError(
                "unflatten got an unexpected error:\n"
                f"invalid shape dimension {size} at index {at} of shape {list(sizes)}"
            )
    known = 1
    for size in sizes:
        known *= size if size != -1 else 1
    if sizes.count(-1) > 1:
        raise RuntimeError("unflatten got an unexpected error:\nonly one dimension can be inferred")
    if known == 0 and shape[dim] == 0 and -1 in sizes:
        raise RuntimeError(
            "unflatten got an unexpected error:\n"
            f"cannot reshape tensor of 0 elements into shape {list(sizes)} because the unspecified dimension "
            "size -1 can be any value and is ambiguous"
        )
    if (known == 0 or shape[dim] % known) if -1 in sizes else known != shape[dim]:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} "
            f"({shape[dim]}) "
            "in the input tensor"
        )
    sizes = tuple(shape[dim] // known if size == -1 else size for size in sizes)
    return ops.view(input, shape[:dim] + sizes + shape[dim + 1 :])


_unflatten = unflatten


@method(name="unflatten")
def _method_unflatten(self, dim, sizes):
    """Splits one dimension into several.

    >>> rushlight.ones(6).unflatten(0, (2, 3)).shape
    torch.Size([2, 3])
    """
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    from rushlight._signatures import check_call

    check_call("unflatten", "i dim,I sizes", dim, sizes)
    return _unflatten(self, dim, sizes)


@public
def permute(input, *dims_):
    """Reorders the dimensions.

    >>> rushlight.ones(2, 3, 5).permute(2, 0, 1).shape
    torch.Size([5, 2, 3])
    """
    if not dims_ and input.dim():
        raise TypeError('permute() missing 1 required positional arguments: "dims"')
    return ops.permute(input, dims(dims_))


@public(aliases=("swapaxes", "swapdims"))
def transpose(input, dim0, dim1):
    """Exchanges two dimensions.

    >>> rushlight.ones(2, 3).transpose(0, 1).shape
    torch.Size([3, 2])
    """
    return ops.transpose(input, dim0, dim1)


@public
def t(input):
    """Transposes a matrix; vectors and numbers stay as they are.

    >>> rushlight.t(rushlight.tensor([[1, 2], [3, 4]]))
    tensor([[1, 3],
            [2, 4]])
    """
    return ops.t(input)


def conj_of_number(input, name):
    """What the adjoint of a tensor without dimensions is; `name` asked for it."""
    warn_once(f"{name} is deprecated on 0-D tensors. Consider using x.conj().")
    return input.conj()


@public
def adjoint(input):
    """The conjugate transpose of a matrix or batch of matrices.

    >>> rushlight.adjoint(rushlight.tensor([[1 + 2j, 3j]]))
    tensor([[1.-2.j],
            [0.-3.j]])
    """
    if input.dim() == 1:
        raise RuntimeError(
            "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor."
        )
    if input.dim() == 0:
        return conj_of_number(input, "adjoint()")
    return ops.transpose(input, -2, -1).conj()


@public(aliases=("moveaxis",))
def movedim(input, source, destination):
    """Moves dimensions to other positions; the rest keep their order.

    >>> rushlight.ones(2, 3, 5).movedim(0, -1).shape
    torch.Size([3, 5, 2])
    """
    n = input.dim()
    source, destination = whole(source), whole(destination)
    sources = (source,) if isinstance(source, int) else tuple(map(whole, source))
    destinations = (destination,) if isinstance(destination, int) else tuple(map(whole, destination))
    if len(sources) != len(destinations):
        raise RuntimeError(
            "movedim: Invalid source or destination dims: source "
            f"({list(sources)} dims) should contain the same number of dims as destination "
            f"({list(destinations)} dims)"
        )
    given = {"source": sources, "destination": destinations}
    sources = [wrap_dim(d, n) for d in sources]
    destinations = [wrap_dim(d, n) for d in destinations]
    for name, wrapped in (("source", sources), ("destination", destinations)):
        if len(set(wrapped)) != len(wrapped):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(map(int, given[name]))})")
    if n == 0:
        return ops.alias(input)
    order = [None] * n
    for s, d in zip(sources, destinations, strict=True):
        order[d] = s
    rest = iter(d for d in range(n) if d not in sources)
    return ops.permute(input, tuple(next(rest) if d is None else d for d in order))


@method
def expand(self, *size, implicit=False):
    """Shows dimensions of size 1 (and new leading ones) with larger sizes, without copying.

    >>> rushlight.tensor([[1], [2]]).expand(2, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return ops.expand(self, dims(size))


@method
def expand_as(self, other):
    """Expands this tensor to the shape of `other`.

    >>> rushlight.tensor([1]).expand_as(rushlight.ones(3))
    tensor([1, 1, 1])
    """
    return ops.expand(self, other.shape)


@public
def broadcast_to(input, size):
    """Expands `input` to `size`.

    >>> rushlight.broadcast_to(rushlight.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    size = whole(size)
    return ops.expand(input, (size,) if isinstance(size, int) else tuple(size))


@public
def unsqueeze(input, dim):
    """Inserts a dimension of size 1.

    >>> rushlight.ones(3).unsqueeze(0).shape
    torch.Size([1, 3])
    """
    return ops.unsqueeze(input, dim)


@public
def squeeze(input, dim=None):
    """Removes dimensions of size 1: all of them, or those named.

    >>> rushlight.ones(2, 1, 3).squeeze().shape
    torch.Size([2, 3])
    """
    if dim is None:
        return ops.squeeze(input)
    if isinstance(dim, (tuple, list)):
        return ops.squeeze_dims(input, tuple(dim))
    return ops.squeeze_dim(input, dim)


@public
def select(input, dim, index):
    """The slice at `index` along `dim`, without that dimension.

    >>> rushlight.tensor([[1, 2], [3, 4]]).select(1, 0)
    tensor([1, 3])
    """
    return ops.select(input, dim, index)


@public
def narrow(input, dim, start, length):
    """The `length` slices from `start` along `dim`.

    >>> rushlight.arange(5).narrow(0, 1, 3)
    tensor([1, 2, 3])
    """
    if input.dim() == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if isinstance(start, _C.Tensor):
        if start.dim() or start.is_floating_point() or start.is_complex() or start.dtype == _C.bool:
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        start = start.item()
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = input.size(wrap_dim(dim, input.dim()))
    if not -size <= start <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {start})"
        )
    if start < 0:
        start += size
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({int(length)}) exceeds dimension size ({size}).")
    return ops.slice(input, dim, start, start + length, 1)


@public
def diagonal(input, offset=0, dim1=0, dim2=1):
    """The diagonals of the planes of two dimensions, as a view with the diagonal last.

    >>> rushlight.tensor([[1, 2], [3, 4]]).diagonal()
    tensor([1, 4])
    """
    return ops.diagonal(input, offset, dim1, dim2)


@method
def unfold(self, dimension, size, step):
    """All windows of `size` along a dimension, every `step`, as a view with the window last.

    >>> rushlight.arange(4).unfold(0, 2, 1)
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    return ops.unfold(self, dimension, size, step)


@public
def as_strided(input, size, stride, storage_offset=None):
    """Views the storage with any sizes and strides.

    >>> rushlight.as_strided(rushlight.arange(5), (2, 2), (1, 2))
    tensor([[0, 2],
            [1, 3]])
    """
    offset = input.storage_offset() if storage_offset is None else storage_offset
    return ops.as_strided(input, tuple(size), tuple(stride), offset, input.stride(), input.storage_offset())


@function
def view_as_real(input):
    """Views complex numbers as pairs of real ones in a last dimension.

    >>> rushlight.view_as_real(rushlight.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    return ops.view_as_real(input)


@function
def view_as_complex(input):
    """Views pairs of real numbers in the last dimension as complex ones.

    >>> rushlight.view_as_complex(rushlight.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    return ops.view_as_complex(input)


@public
def unbind(input, dim=0):
    """The slices along a dimension, as a tuple of views.

    >>> rushlight.tensor([[1, 2], [3, 4]]).unbind()
    (tensor([1, 2]), tensor([3, 4]))
    """
    return ops.unbind(input, dim)


@public
def split(tensor, split_size_or_sections=None, dim=0, *, split_size=None):
    """Views of pieces along a dimension: of one size (the last may be smaller), or of the sizes listed.

    >>> [p.tolist() for p in rushlight.arange(5).split(2)]
    [[0, 1], [2, 3], [4]]
    """
    if split_size_or_sections is None:
        split_size_or_sections = split_size
    if tensor.dim() == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    length = tensor.size(wrap_dim(dim, tensor.dim()))
    if isinstance(split_size_or_sections, _C.Tensor):
        split_size_or_sections = _C.full((), split_size_or_sections.reshape(()), _C.int64, None).item()
    if isinstance(split_size_or_sections, int):
        size = split_size_or_sections
        if size < 0:
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
        if size == 0:
            if length:
                raise RuntimeError(
                    "split_size can only be 0 if dimension size is 0, but got dimension size of "
                    + str(length)
                )
            return ops.split(tensor, (0,), dim)
        count = max(-(-length // size), 1)
        sizes = [size] * (count - 1) + [length - size * (count - 1)]
        return ops.split(tensor, tuple(sizes), dim)
    sizes = tuple(int(s) for s in split_size_or_sections)
    if any(s < 0 for s in sizes):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(sizes)}"
        )
    if sum(sizes) != length:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at "
            f"dimension "
            f"{dim}), but got split_sizes={list(sizes)}"
        )
    return ops.split_with_sizes(tensor, sizes, dim)


@public
def split_with_sizes(input, split_sizes, dim=0):
    """Views of pieces of the given sizes along a dimension.

    >>> [piece.tolist() for piece in rushlight.arange(3).split_with_sizes([1, 2])]
    [[0], [1, 2]]
    """
    return split(input, tuple(split_sizes), dim)


@public
def chunk(input, chunks, dim=0):
    """Views of at most `chunks` pieces of equal size (the last may be smaller) along a dimension.

    >>> [piece.tolist() for piece in rushlight.arange(5).chunk(2)]
    [[0, 1, 2], [3, 4]]
    """
    if input.dim() == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    chunks = operator.index(chunks)
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    length = input.size(wrap_dim(dim, input.dim()))
    size = -(-length // chunks)
    if size == 0:
        return split(input, (0,) * chunks, dim)
    return split(input, size, dim)


# ---- copies


@public
def clone(input, *, memory_format=None):
    """A copy with its own memory, through which gradients flow back.

    >>> rushlight.tensor([1, 2]).clone()
    tensor([1, 2])
    """
    return ops.clone(input) if memory_format is None else arranged_copy(input, memory_format)


@method
def contiguous(self, memory_format=None):
    """This tensor if its elements lie in order, else a copy in which they do.

    >>> rushlight.ones(2, 3).t().contiguous().stride()
    (2, 1)
    """
    if memory_format not in (None, contiguous_format):
        if memory_format is preserve_format:
            if self._is_contiguous():
                return self
            raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
        return arranged(self, memory_format)
    return self if self._is_contiguous() else ops.contiguous_copy(self)


@method
def is_contiguous(self, memory_format=None):
    """Whether the elements lie in memory in order, without gaps.

    >>> rushlight.ones(2, 3).t().is_contiguous()
    False
    """
    return self._is_contiguous() if memory_format is None else is_arranged(self, memory_format)


@method
def copy_(self, other, non_blocking=False):
    """Copies the elements of `other` into this tensor, broadcasting and casting.

    >>> rushlight.zeros(2).copy_(rushlight.tensor([1, 2]))
    tensor([1., 2.])
    """
    return _C.in_place(ops.copy, self, other)


@method
def fill_(self, value):
    """Sets every element to `value`.

    >>> rushlight.zeros(2).fill_(3)
    tensor([3., 3.])
    """
    if isinstance(value, _C.Tensor) and not _C.is_leveled(self):
        check_apart(self)
    return _C.in_place(ops.fill, self, value)


@function
def fill(input, value):
    """A tensor like `input` with every element `value`.

    >>> rushlight.fill(rushlight.ones(2), 5)
    tensor([5., 5.])
    """
    return ops.fill(input, value)


@method
def zero_(self):
    """Sets every element to zero.

    >>> rushlight.ones(2).zero_()
    tensor([0., 0.])
    """
    return _C.in_place(ops.fill, self, 0)
