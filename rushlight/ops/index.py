"""Addressing elements by index tensors: gather, scatter, index_select and kin.

Reading and writing through an index are each other's derivative: the gradient of a read is a sum into zeros,
the gradient of a write is a read (and zeros where the old value was lost). `x[...]` itself is in
native/python/subscript.cpp.
"""

from __future__ import annotations

import math

from rushlight import _C
from rushlight._type_names import type_name as class_name
from rushlight._warn import warn, warn_once
from rushlight.autograd.grad_mode import no_grad
from rushlight.ops import create
from rushlight.ops._examples import filled, somewhere, sum_where
from rushlight.ops._public import (
    C_NAMES,
    Tensor,
    check_apart,
    function,
    method,
    named,
    public,
    refuse_complex,
    type_name,
    undifferentiable,
    wrap_dim,
    write_apart,
    write_beside,
    write_in_place,
)
from rushlight.ops._rules import derivative
from rushlight.ops._tangents import linear
from rushlight.ops.create import as_tensor, tensor
from rushlight.ops.ranges import arange

ops = _C.ops
_in_place = _C.in_place


def padded(g, shape):
    """g with zeros after its end up to `shape`: the part of a source beyond a smaller index."""
    for dim, size in enumerate(shape):
        if g.size(dim) != size:
            whole = (*g.shape[:dim], size, *g.shape[dim + 1 :])
            g = ops.slice_backward(g, whole, dim, 0, g.size(dim), 1)
    return g


def _scattered_source(g, index, dim, src_shape):
    return padded(ops.gather(g, index, dim), src_shape)


def _gathered_entries(g, index, size, dim):
    """The sparse gradient of gather: each element of g where it came from."""
    if not size:
        return ops.sparse_coo(index.new_empty((0, index.numel())), g.reshape(-1), size, False)
    index = index.reshape(1) if index.dim() == 0 else index
    shape, many = tuple(index.shape), index.numel()
    places = [arange(n).view(-1, *(1 for _ in shape[d + 1 :])).expand(shape) for d, n in enumerate(shape)]
    places[dim] = index
    rows = [place.reshape(many).to(_C.int64) for place in places]
    return ops.sparse_coo(ops.stack(rows, 0), g.reshape(many), size, False)


# torch keeps what gather, take and masked_select choose from; so do these, that a later write is refused.
derivative(
    "gather",
    x=lambda g, index, x, dim: filled(ops.scatter_add, g.new_zeros(x.shape), index, g, dim),
    packs="index x",
    tangent=linear,
)
derivative(
    "gather_sparse",
    x=lambda g, index, x, dim, sparse_grad: _gathered_entries(g, index, x.shape, dim),
    node="GatherBackward0",
    packs="index x",
    tangent=linear,
)
derivative(
    "scatter",
    x=lambda g, index, dim: ops.scatter_value(g, index, 0, dim),
    src=_scattered_source,
    tangent=linear,
)
derivative(
    "scatter_value",
    x=lambda g, index, dim: ops.scatter_value(g, index, 0, dim),
    node="ScatterBackward1",
    tangent=linear,
)
derivative("scatter_add", x=lambda g: g, src=_scattered_source, tangent=linear)
derivative(
    "index_select",
    x=lambda g, index, x_shape, dim: filled(ops.index_add, g.new_zeros(x_shape), index, g, dim, 1),
    tangent=linear,
)
derivative(
    "index_add",
    x=lambda g: g,
    source=lambda g, index, source, dim, alpha: ops.index_select(g, index, dim).reshape(source.shape) * alpha,
    shows="dim alpha source_shape",
    tangent=linear,
)
derivative(
    "index_copy",
    x=lambda g, index, dim: ops.index_fill(g, index, 0, dim),
    source=lambda g, index, source, dim: ops.index_select(g, index, dim).reshape(source.shape),
    shows="source_shape",
    tangent=linear,
)
derivative(
    "index_fill",
    x=lambda g, index, dim: ops.index_fill(g, index, 0, dim),
    value=lambda g, index, dim: sum_where(_filled(g, index, dim), g),
    tangent=linear,
)


def _filled(g, index, dim):
    """Where index_fill wrote; an element that was named twice counts once."""
    return ops.index_fill(_C.full(g.shape, False, _C.bool, g.device), index, True, dim)


derivative(
    "take",
    x=lambda g, index, x: filled(ops.put, g.new_zeros(x.shape), index, g, True),
    packs="index x",
    tangent=linear,
)
derivative(
    "put",
    x=lambda g, index, source_shape, accumulate: (
        g if accumulate else ops.put(g, index, g.new_zeros(source_shape), False)
    ),
    source=lambda g, index, source: ops.take(g, index).reshape(source.shape),
    tangent=linear,
)
derivative("index", x=lambda g, indices, x_shape: ops.index_backward(g, indices, x_shape), tangent=linear)
derivative(
    "index_backward",
    g=lambda g_out, indices: ops.index(g_out, indices),
    node="IndexPutImplBackward0",
    tangent=linear,
)
derivative(
    "index_put",
    x=lambda g, indices, accumulate: g if accumulate else ops.index_put(g, indices, 0, False),
    values=lambda g, indices: ops.index(g, indices),
    tangent=linear,
)


def _only_once(gradient, function, argument):
    """The gradient of a product with several zeros: it is zero, its own derivatives need not be."""
    from rushlight.autograd.function import _DelayedError

    return _DelayedError(
        f"{function}(): Double backward is unsupported for {argument} when >1 zeros in {argument} are "
        "scattered to the same position in self",
        1,
    )(gradient)


def _reduced(g, x, index, src, out, dim, reduce, include_self, of):
    """Gradients of scatter_reduce. Where include_self is False, elements of x that were hit do not matter."""

    def read(t):
        return padded(ops.gather(t, index, dim), src.shape)

    def kept(t):
        return t if include_self else ops.scatter_value(t, index, 0, dim)

    if index.shape != src.shape:  # only the leading part of src takes part
        for d in range(src.dim()):
            src = ops.slice(src, d, 0, index.size(d), 1)
        full = _reduced(g, x, index, src, out, dim, reduce, include_self, of)
        return full[0], full[1]
    if reduce == "sum":
        return kept(g), read(g)
    if reduce == "mean":
        count = ops.scatter_add(kept(ops.fill(x.detach(), 1)), index, ops.fill(src.detach(), 1), dim)
        g = g / ops.masked_fill(count, count == 0, 1)
        return kept(g), read(g)
    if reduce == "prod":
        others = ops.scatter_reduce(ops.fill(x, 1), index, src, dim, "prod", True)
        is_zero = src == 0
        zeros = ops.scatter_add(x.detach().new_zeros(x.shape), index, is_zero.to(x.dtype), dim)
        several = zeros > 1
        single = is_zero & (read(zeros) == 1)
        without = ops.scatter_reduce(x, index, ops.masked_fill(src, single, 1), dim, "prod", include_self)
        of_src = ops.where(single, read(g * without), read(g * out) / ops.masked_fill(src, is_zero, 1))
        if _C.is_grad_enabled() and not several.is_meta and somewhere(several):
            of_src = _only_once(of_src, *of)
        return kept(g * others), of_src
    # amax, amin: equal elements share the gradient
    from_x, from_src = kept((x == out).to(g.dtype)), (src == read(out)).to(g.dtype)
    count = ops.scatter_add(from_x, index, from_src, dim)
    g = g / ops.masked_fill(count, count == 0, 1)
    g = ops.masked_fill(g, out != out, math.nan)  # NaN equals nothing: nobody can be given the gradient
    return kept(g * from_x), read(g) * from_src


def _scatter_reduce_rule(g, x, index, src, out, dim, reduce, include_self):
    of_x, of_src = _reduced(g, x, index, src, out, dim, reduce, include_self, ("scatter_reduce", "src"))
    return of_x, None, padded(of_src, src.shape)


def _index_reduce_rule(g, x, index, source, out, dim, reduce, include_self):
    if source.dim() == 0:
        line = (t.reshape(1) for t in (g, x, index, source, out))
        of_x, _, of_source = _index_reduce_rule(*line, 0, reduce, include_self)
        return of_x.reshape(()), None, of_source.reshape(())
    dim = wrap_dim(dim, source.dim())
    sizes = [1] * source.dim()
    sizes[dim] = index.numel()
    index = ops.expand(index.reshape(sizes), source.shape)
    of_x, of_source = _reduced(
        g, x, index, source, out, dim, reduce, include_self, ("index_reduce", "source")
    )
    return of_x, None, of_source


derivative("scatter_reduce", _scatter_reduce_rule, constant="index", packs="index x src")
derivative("index_reduce", _index_reduce_rule, constant="index", packs="index x source")


def _index_tensor(data):
    """The tensor that a sequence or array stands for as an index (called by x[...])."""
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{class_name(data)}'")
    if not isinstance(data, (list, tuple, range)):
        index = as_tensor(data)
        return index if index.dtype in (_C.bool, _C.uint8, _C.int32, _C.int64) else index.to(_C.int64)
    try:
        index = tensor(data)
    except ValueError as error:
        kind = str(error).removeprefix("too many dimensions ")
        if kind in ("'str'", "'bytes'"):  # it has no dtype, which torch asks for before the shape
            raise TypeError(f"new(): invalid data type {kind}") from None
        raise
    # What is neither whole nor a mask is read once more: not all of it fits.
    return index if index.dtype in (_C.bool, _C.uint8, _C.int64) else _C.from_data(data, _C.int64, None)


# ---- along a dimension, with an index of the tensor's rank


@public
def gather(input, dim, index, *, sparse_grad=False, out=None):
    """The elements at `index` along `dim`: out[i][j] = input[index[i][j]][j] for dim=0.

    >>> rushlight.gather(rushlight.tensor([[1, 2], [3, 4]]), 1, rushlight.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    result = ops.gather_sparse(input, index, dim, True) if sparse_grad else ops.gather(input, index, dim)
    if out is None:
        return result
    # An index may be replaced by what was found there.
    own = isinstance(out, Tensor) and _C.overlap(index, out) == "full"
    return write_apart(out, result, input, *([] if own else [index]))


def _scatter_arguments(args, src, value, reduce):
    """Finds (primitive, source) among scatter's forms: src a tensor or value a number, maybe reduce."""
    if args:
        if len(args) > 1 or src is not None or value is not None:
            raise TypeError("scatter() received an invalid combination of arguments")
        if isinstance(args[0], Tensor):
            src = args[0]
        else:
            value = args[0]
    if (src is None) == (value is None):
        raise TypeError("scatter() received an invalid combination of arguments")
    source = value if src is None else src
    if reduce is None:
        return (ops.scatter_value if src is None else ops.scatter), source
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    return None, source


def _scatter_reduce_old(self, dim, index, source, reduce):
    """scatter(..., reduce="add"): the older form of scatter_reduce, which also takes a number."""
    if isinstance(source, Tensor):
        warn_once(
            "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a "
            "future PyTorch release. Use torch.scatter_reduce instead for more reduction options."
        )
    if not isinstance(source, Tensor):
        source = self.new_full(index.shape, source)
    return self, index, source, dim, "sum" if reduce == "add" else "prod", True


@function
def scatter(input, dim, index, *args, src=None, value=None, reduce=None, out=None):
    """A copy of `input` with `src` (or the number `value`) written at `index` along `dim`.

    >>> rushlight.scatter(rushlight.zeros(2, 2), 1, rushlight.tensor([[1], [0]]), 5.)
    tensor([[0., 5.],
            [5., 0.]])
    """
    primitive, source = _scatter_arguments(args, src, value, reduce)
    if primitive is None:
        operands = _scatter_reduce_old(input, dim, index, source, reduce)
        with no_grad():
            result = ops.scatter_reduce(*operands)
        result = undifferentiable("scatter", result, input, operands[2])
    else:
        result = primitive(input, index, source, dim)
    return result if out is None else write_beside(out, result, input, index, source)


@method
def scatter_(self, dim, index, *args, src=None, value=None, reduce=None):
    """In-place version of :meth:`scatter`."""
    primitive, source = _scatter_arguments(args, src, value, reduce)
    if primitive is None:
        operands = _scatter_reduce_old(self, dim, index, source, reduce)
        if not (_C.is_grad_enabled() and (self.requires_grad or operands[2].requires_grad)):
            return write_in_place(ops.scatter_reduce, *operands)
        _C.check_inplace(self)
        before = _C.before_write(self)
        with no_grad():
            result = ops.scatter_reduce(_C.detach(before), *operands[1:])
        return _C.become(self, undifferentiable("scatter_", result, before, operands[2]))
    return write_in_place(primitive, self, index, source, dim)


Tensor.scatter = named(scatter.__wrapped__, "scatter", True)


def _need_tensor(value, name, function_name, position):
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{function_name}(): argument '{name}' (position {position}) must be Tensor, not "
            f"{class_name(value)}"
        )


@public
def scatter_add(input, dim, index, src, *, out=None):
    """A copy of `input` with `src` added at `index` along `dim`; several sources may meet at one element.

    >>> rushlight.zeros(2).scatter_add(0, rushlight.tensor([0, 0, 1]), rushlight.ones(3))
    tensor([2., 1.])
    """
    _need_tensor(src, "src", "scatter_add", 3)
    result = ops.scatter_add(input, index, src, dim)
    return result if out is None else write_beside(out, result, input, index, src)


@method
def scatter_add_(self, dim, index, src):
    """In-place version of :meth:`scatter_add`."""
    _need_tensor(src, "src", "scatter_add_", 3)
    return write_in_place(ops.scatter_add, self, index, src, dim)


@public
def scatter_reduce(input, dim, index, src, reduce, *, include_self=True, out=None):
    """A copy of `input` with the elements of `src` that meet at one place reduced ("sum", "prod", "mean",
    "amax", "amin"), together with the old value if include_self.

    >>> index = rushlight.tensor([0, 0, 1])
    >>> rushlight.zeros(2).scatter_reduce(0, index, rushlight.tensor([1., 3., 5.]), "amax")
    tensor([3., 5.])
    """
    _need_tensor(src, "src", "scatter_reduce", 4)
    result = ops.scatter_reduce(input, index, src, dim, reduce, bool(include_self))
    return result if out is None else write_beside(out, result, input, index, src)


@method
def scatter_reduce_(self, dim, index, src, reduce, *, include_self=True):
    """In-place version of :meth:`scatter_reduce`."""
    _need_tensor(src, "src", "scatter_reduce_", 4)
    return write_in_place(ops.scatter_reduce, self, index, src, dim, reduce, bool(include_self))


@public
def take_along_dim(input, indices, dim=None, *, out=None):
    """Elements at `indices` along `dim`, broadcasting the other dimensions (argsort's results fit it).

    >>> rushlight.take_along_dim(rushlight.tensor([[3, 1]]), rushlight.tensor([[1, 0]]), 1)
    tensor([[1, 3]])
    """
    if dim is None:
        result = ops.gather(input.reshape(-1), indices.reshape(-1), 0)  # counted from the front only
    else:
        if input.dim() != indices.dim():
            raise RuntimeError(
                "torch.take_along_dim(): input and indices should have the same number of dimensions, but "
                "got "
                f"{input.dim()} dimensions for input, and {indices.dim()} dimensions for indices"
            )
        if indices.dtype != _C.int64:
            raise RuntimeError(
                f"torch.take_along_dim(): dtype of indices should be Long but got {type_name(indices.dtype)}"
            )
        dim = wrap_dim(dim, input.dim())
        sizes, index_sizes = list(input.shape), list(indices.shape)
        for d in range(input.dim()):
            if d != dim:
                sizes[d] = index_sizes[d] = _broadcast(input, indices, d)
        # Indices beyond either end go round, as in torch.
        index = ops.remainder(ops.expand(indices, index_sizes), input.size(dim))
        result = ops.gather(ops.expand(input, sizes), index, dim)
        if sizes != list(input.shape):  # torch does not look at what is broadcast
            return result if out is None else write_apart(out, result, indices)
    return result if out is None else write_apart(out, result, input, indices)


def _broadcast(a, b, d):
    m, n = a.size(d), b.size(d)
    if m != n and m != 1 and n != 1:
        raise RuntimeError(
            f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton dimension {d}"
        )
    return n if m == 1 else m


# ---- along a dimension, with a vector of indices


@public
def index_select(input, dim, index, *, out=None):
    """The slices at `index` along `dim`.

    >>> rushlight.index_select(rushlight.tensor([[1, 2], [3, 4]]), 0, rushlight.tensor([1, 1]))
    tensor([[3, 4],
            [3, 4]])
    """
    if input.dim() > 1 and not input.numel() and index.numel() and not input.size(dim):
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    try:
        result = ops.index_select(input, index, dim)
    except IndexError as error:
        if isinstance(out, Tensor) and str(error).startswith("index out of range"):
            check_apart(out, input, index)  # which torch does before it reads the index
        raise
    return (
        result
        if out is None
        else write_apart(
            out,
            result,
            input,
            index,
            exact="index_select(): self and result must have the same scalar type",
            at_once=True,
        )
    )


@public
def index_add(input, dim, index, source, *, alpha=1, out=None):
    """A copy of `input` with alpha * source added to the slices at `index` along `dim`.

    >>> rushlight.zeros(3).index_add(0, rushlight.tensor([0, 0]), rushlight.ones(2))
    tensor([2., 0., 0.])
    """
    refuse_complex(alpha, input, kind=C_NAMES[input.dtype])
    result = ops.index_add(input, index, source, dim, alpha)
    return result if out is None else write_beside(out, result, input, index, source)


@method
def index_add_(self, dim, index, source, *, alpha=1):
    """In-place version of :meth:`index_add`."""
    refuse_complex(alpha, self, kind=C_NAMES[self.dtype])
    return write_in_place(ops.index_add, self, index, source, dim, alpha)


@public
def index_copy(input, dim, index, source, *, out=None):
    """A copy of `input` with the slices at `index` along `dim` replaced by those of `source`.

    >>> rushlight.zeros(3).index_copy(0, rushlight.tensor([2]), rushlight.ones(1))
    tensor([0., 0., 1.])
    """
    result = ops.index_copy(input, index, source, dim)
    return result if out is None else write_beside(out, result, input, index, source)


@method
def index_copy_(self, dim, index, source):
    """In-place version of :meth:`index_copy`."""
    return write_in_place(ops.index_copy, self, index, source, dim)


@public
def index_fill(input, dim, index, value):
    """A copy of `input` with the slices at `index` along `dim` set to a number.

    >>> rushlight.zeros(3).index_fill(0, rushlight.tensor([0, 2]), 5)
    tensor([5., 0., 5.])
    """
    return ops.index_fill(input, index, value, dim)


@method
def index_fill_(self, dim, index, value):
    """In-place version of :meth:`index_fill`."""
    once = each_place_once(self, "index_fill_", "mask] = scalar")
    if once is None:
        if isinstance(value, Tensor) and not value.dim() and _C.overlap(self, value):
            value = value.clone()  # it is read before anything is written
        return write_in_place(ops.index_fill, self, index, value, dim)
    if once.shape[dim] == self.shape[dim]:
        once.index_fill_(dim, index, value)
    elif index.numel():  # the slices of this dimension are one
        once.index_fill_(dim, index.new_zeros((1,)), value)
    return self


def each_place_once(tensor, name, form):
    """The part of an expanded tensor that holds every element of its memory once; else None."""
    if 0 not in tensor.stride():
        return None
    shared = [d for d, n in enumerate(tensor.stride()) if n == 0 and tensor.size(d) > 1]
    if not shared or not tensor.numel():
        return None
    _C.check_inplace(tensor)
    warn(
        f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this "
        f"operation. This also applies to advanced indexing e.g. tensor[{form}"
    )
    for d in shared:
        tensor = tensor.narrow(d, 0, 1)
    return tensor


def _check_reducible(input, dim, index, source, reduce, include_self):
    """Complex numbers and booleans are reduced row by row only, with what torch has for rows."""
    warn_once("index_reduce() is in beta and the API may change at any time.")
    if not input.is_complex() and input.dtype != _C.bool:
        return
    rows = {"amax": "maximum_cpu", "amin": "minimum_cpu"} if input.is_complex() else {"mean": "div_floor_cpu"}
    kernel = rows.get(reduce) if index.numel() else None
    if input.dim() < 2 or not include_self:
        kernel = "index_func_" if include_self else "index_reduce_func_exclude_input_init"
    if kernel is not None:
        known = reduce in ("amax", "amin", "mean")  # the product is there, and names other mistakes first
        ops.index_reduce(_C.detach(input), index, source, dim, "prod" if known else reduce, True)
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(input.dtype)}'")


@public
def index_reduce(input, dim, index, source, reduce, *, include_self=True, out=None):
    """A copy of `input` with slices of `source` reduced ("prod", "mean"...) into those at `index`.

    >>> rushlight.ones(2).index_reduce(0, rushlight.tensor([1, 1]), rushlight.tensor([3.0, 4.0]), "prod")
    tensor([ 1., 12.])
    """
    _check_reducible(input, dim, index, source, reduce, include_self)
    result = ops.index_reduce(input, index, source, dim, reduce, bool(include_self))
    return result if out is None else write_beside(out, result, input, index, source)


@method
def index_reduce_(self, dim, index, source, reduce, *, include_self=True):
    """In-place version of :meth:`index_reduce`."""
    _check_reducible(self, dim, index, source, reduce, include_self)
    return write_in_place(ops.index_reduce, self, index, source, dim, reduce, bool(include_self))


# ---- several index tensors, flat indices


@public
def index_put(input, indices, values, accumulate=False):
    """A copy of `input` with `values` written (or added, if accumulate) at input[indices].

    >>> i = rushlight.tensor([0, 0, 1])
    >>> rushlight.zeros(2).index_put((i,), rushlight.ones(3), accumulate=True)
    tensor([2., 1.])
    """
    _refuse_bytes(input, indices, values, accumulate)
    return ops.index_put(input, tuple(indices), values, bool(accumulate))


def _refuse_bytes(input, indices, values, accumulate):
    """A single value is written as by masked_fill, which takes no bytes for a mask that fits."""
    if not accumulate and isinstance(values, Tensor) and values.numel() == 1:
        _C.refuse_bytes(input, tuple(indices))


@method
def index_put_(self, indices, values, accumulate=False):
    """In-place version of :meth:`index_put`."""
    _refuse_bytes(self, indices, values, accumulate)
    each_place_once(self, "index_put_", "indices] = tensor")
    return write_in_place(ops.index_put, self, tuple(indices), values, bool(accumulate))


@public
def take(input, index, *, out=None):
    """The elements at `index`, counted in row-major order.

    >>> rushlight.take(rushlight.tensor([[1, 2], [3, 4]]), rushlight.tensor([0, 3]))
    tensor([1, 4])
    """
    result = ops.take(input, index)
    return (
        result
        if out is None
        else write_apart(
            out,
            result,
            input,
            index,
            exact="take(): self and out expected to have the same dtype, but got self.dtype = {result} and "
            "out.dtype = {out}",
            at_once=True,
        )
    )


@method
def put(self, index, source, accumulate=False):
    """A copy of this tensor with `source` written (or added) at the elements `index`, in row-major order.

    >>> rushlight.zeros(3).put(rushlight.tensor([1]), rushlight.tensor([5.0]))
    tensor([0., 5., 0.])
    """
    _alert_put(self, accumulate)
    return ops.put(self, index, source, bool(accumulate))


def _alert_put(self, accumulate):
    if create.deterministic and not accumulate and not self.is_meta:
        from rushlight._settings import alert_not_deterministic

        alert_not_deterministic("put_")


@method
def put_(self, index, source, accumulate=False):
    """In-place version of :meth:`put`."""
    _alert_put(self, accumulate)
    return write_in_place(ops.put, self, index, source, bool(accumulate))
