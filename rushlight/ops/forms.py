"""Other forms of what exists: functions that work in place, copies of views, splits that are not views of
each other, and operations that torch has under a second name."""

from __future__ import annotations

from rushlight import _C
from rushlight._type_names import type_name as class_name
from rushlight._warn import warn_once
from rushlight.ops._public import (
    FUNCTIONS,
    SAME_DTYPE,
    Tensor,
    function,
    method,
    named,
    public,
    type_name,
    undifferentiable,
    whole,
    wrap_dim,
    write_out,
)

ops = _C.ops

# torch has the in-place form of these methods as a function, too.
for _name in (
    "abs", "acos", "acosh", "addmv", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh",
    "as_strided", "asin", "asinh", "atan", "atanh", "ceil", "clamp", "clamp_max", "clamp_min", "clip",
    "conj_physical", "cos", "cosh", "deg2rad", "erf", "erfc", "exp", "exp2", "expm1", "fill", "fix",
    "floor", "frac", "gcd", "i0", "index_put", "lcm", "ldexp", "log", "log10", "log1p", "log2", "logit",
    "nan_to_num", "neg", "negative", "rad2deg", "reciprocal", "relu", "round", "rsqrt", "sigmoid", "sin",
    "sinc", "sinh", "sqrt", "square", "tan", "tanh", "trunc", "xlogy", "zero",
):  # fmt: skip
    FUNCTIONS[f"{_name}_"] = named(getattr(Tensor, f"{_name}_").__wrapped__, f"{_name}_")


@function
def put(input, index, source, accumulate=False):
    """A copy with the elements at flat positions replaced, or added to.

    >>> rushlight.put(rushlight.zeros(3), rushlight.tensor([1]), rushlight.tensor([5.]))
    tensor([0., 5., 0.])
    """
    return Tensor.put(input, index, source, accumulate)


@function
def result_type(tensor, other):
    """The dtype of arithmetic on the two, which may be numbers.

    >>> rushlight.result_type(rushlight.ones(1, dtype=rushlight.int32), 1.0)
    torch.float32
    """
    return _C.result_type(tensor, other)


@function
def can_cast(from_, to):
    """Whether a result of dtype `from_` may be written to a tensor of dtype `to`.

    >>> rushlight.can_cast(rushlight.float32, rushlight.int32)
    False
    """
    _check_dtypes("can_cast", from_=from_, to=to)
    return _C.can_cast(from_, to)


def _check_dtypes(name, **given):
    for position, (argument, value) in enumerate(given.items(), 1):
        if not isinstance(value, _C.dtype) and value not in (int, float, bool, complex):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be torch.dtype, not "
                f"{class_name(value)}"
            )


@function
def promote_types(type1, type2):
    """The smallest dtype that holds both.

    >>> rushlight.promote_types(rushlight.int32, rushlight.float16)
    torch.float16
    """
    _check_dtypes("promote_types", type1=type1, type2=type2)
    return _C.promote_types(type1, type2)


@function
def alias_copy(input, *, out=None):
    """A copy of the tensor.

    >>> rushlight.alias_copy(rushlight.tensor([1, 2]))
    tensor([1, 2])
    """
    result = ops.contiguous_copy(input)
    return result if out is None else write_out(out, result, exact=SAME_DTYPE)


@function
def detach_copy(input, *, out=None):
    """A copy of the tensor, whose gradient nobody may ask for.

    >>> rushlight.detach_copy(rushlight.tensor([1, 2]))
    tensor([1, 2])
    """
    result = undifferentiable("detach_copy", ops.contiguous_copy(_C.detach(input)), input)
    return result if out is None else write_out(out, result, exact=SAME_DTYPE)


def _slice(input, dim=0, start=None, end=None, step=1):
    if step is not None and step <= 0:
        raise RuntimeError("slice step must be positive")
    if not input.dim():
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    wrap_dim(dim, input.dim())
    start, end = 0 if start is None else start, 2**63 - 1 if end is None else end
    return ops.slice(input, dim, start, end, 1 if step is None else step)


@function
def slice_copy(input, dim=0, start=None, end=None, step=1, *, out=None):
    """A copy of input[start:end:step] along dim.

    >>> rushlight.slice_copy(rushlight.tensor([1, 2, 3, 4]), 0, 0, 4, 2)
    tensor([1, 3])
    """
    result = ops.contiguous_copy(_slice(input, dim, start, end, step))
    return result if out is None else write_out(out, result, exact=SAME_DTYPE)


@method
def narrow_copy(self, dim, start, length):
    """A copy of what narrow shows as a view.

    >>> rushlight.tensor([1, 2, 3]).narrow_copy(0, 1, 2)
    tensor([2, 3])
    """
    return FUNCTIONS["narrow_copy"](self, dim, start, length)


def _apart(pieces):
    """What is no view of its base; in inference mode, where torch does not look, it is one that counts its
    own writes."""
    return tuple(map(_C.count_apart if _C.is_inference_mode_enabled() else _C.forget_base, pieces))


def _resolved(input):
    """What torch splits where it makes no views: the elements themselves, in memory of their own."""
    lazy = isinstance(input, _C.Tensor) and (input.is_neg() or input.is_conj())
    return ops.clone(input) if lazy else input


@public
def unsafe_chunk(input, chunks, dim=0):
    """chunk; the pieces may be written to in place while the others are in use.

    >>> rushlight.unsafe_chunk(rushlight.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    return _apart(FUNCTIONS["chunk"](_resolved(input), chunks, dim))


@public
def unsafe_split(input, split_size, dim=0):
    """split; the pieces may be written to in place while the others are in use.

    >>> rushlight.unsafe_split(rushlight.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    return _apart(FUNCTIONS["split"](_resolved(input), whole(split_size), dim))


@public
def unsafe_split_with_sizes(input, split_sizes, dim=0):
    """split_with_sizes; the pieces may be written to in place while the others are in use.

    >>> rushlight.unsafe_split_with_sizes(rushlight.tensor([1, 2, 3]), [1, 2])
    (tensor([1]), tensor([2, 3]))
    """
    return _apart(FUNCTIONS["split_with_sizes"](_resolved(input), split_sizes, dim))


@function
def empty_permuted(size, physical_layout, *, dtype=None, layout=None, device=None, requires_grad=False,
                   pin_memory=False):  # fmt: skip
    """Uninitialised memory whose dimensions lie in memory in the order of physical_layout.

    >>> rushlight.empty_permuted((2, 3, 5), (0, 2, 1)).stride()
    (15, 1, 3)
    """
    if len(size) != len(physical_layout):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(size)} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    for place, d in enumerate(physical_layout):
        if not 0 <= d < len(size):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {d} at index "
                f"{place}).  NB: negative dims not currently supported; file an issue if you want it."
            )
    if len(set(physical_layout)) != len(size):
        raise RuntimeError("Duplicate dim not allowed")
    strides, step = [0] * len(size), 1
    for d in reversed(physical_layout):
        strides[d] = step
        step *= max(size[d], 1)
    if step >= 2**56:  # told of as it would lie in memory
        FUNCTIONS["empty"]([size[d] for d in physical_layout], dtype=dtype, device=device)
    return FUNCTIONS["empty_strided"](
        size, strides, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad,
        pin_memory=pin_memory,
    )  # fmt: skip


@method
def new_empty_strided(self, size, stride, *, dtype=None, layout=None, device=None, requires_grad=False,
                      pin_memory=False):  # fmt: skip
    """Uninitialised memory of this tensor's dtype and device, with the given size and strides.

    >>> rushlight.zeros(1).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    return FUNCTIONS["empty_strided"](
        size, stride, dtype=dtype or self.dtype, layout=layout, device=device or self.device,
        requires_grad=requires_grad, pin_memory=pin_memory,
    )  # fmt: skip


@function
def native_dropout(input, p, train):
    """Dropout, and the mask of what it kept.

    >>> rushlight.native_dropout(rushlight.ones(2), 0., True)
    (tensor([1., 1.]), tensor([True, True]))
    """
    if input.numel() == 0:
        return ops.clone(input), FUNCTIONS["empty_like"](input)
    if not (train or train is None):
        return ops.clone(input), FUNCTIONS["ones_like"](input, dtype=_C.bool)
    drawn = _C.bool if input.dtype.is_complex else input.dtype
    mask = FUNCTIONS["empty_like"](input, dtype=drawn).bernoulli_(1 - p).bool()
    return input * mask * (0 if p == 1 else 1 / (1 - p)), mask


@function
def native_dropout_backward(grad_output, mask, scale):
    """The derivative of native_dropout: the gradient where the mask kept, times the scale.

    >>> mask = rushlight.tensor([True, False])
    >>> rushlight.native_dropout_backward(rushlight.ones(2), mask, 2.0)
    tensor([2., 0.])
    """
    common = _C.promote_types(grad_output.dtype, mask.dtype)
    return grad_output * (mask.to(common) * float(scale))


@function
def norm_except_dim(v, pow=2, dim=0):
    """The norm of every slice along dim, kept as dimensions of size 1 (of the whole tensor if dim is -1).

    >>> rushlight.norm_except_dim(rushlight.tensor([[3., 4.]]), 2, 0)
    tensor([[5.]])
    """
    from rushlight.ops.reduce import vector_norm

    _check_norm_dtype(v)
    if dim == -1:
        return vector_norm(v, pow)
    if not v.dim():
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    dim = wrap_dim(dim, v.dim())
    if dim in (0, v.dim() - 1) and not v.shape[dim]:
        shape = f"[{v.shape[0]}, -1]" if dim == 0 else f"[-1, {v.shape[dim]}]"
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {shape} because the unspecified dimension size "
            "-1 can be any value and is ambiguous"
        )
    others = [d for d in range(v.dim()) if d != dim]
    return vector_norm(v, pow, others, keepdim=True) if others else vector_norm(v.unsqueeze(-1), pow, [-1])


def _check_norm_dtype(x):
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got "
            f"{type_name(x.dtype)} instead."
        )


@function
def frobenius_norm(input, dim, keepdim=False, *, out=None):
    """The 2-norm along dim.

    >>> rushlight.frobenius_norm(rushlight.tensor([[3., 4.]]), 1)
    tensor([5.])
    """
    from rushlight.ops.reduce import vector_norm

    if isinstance(dim, (tuple, list)) and len(dim) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dim)} dimensions instead.")
    warn_once(
        "at::frobenius_norm is deprecated and it is just left for JIT compatibility. It will be removed in a "
        "future PyTorch release. Please use `linalg.vector_norm(A, 2., dim, keepdim)` instead"
    )
    _check_norm_dtype(input)
    result = vector_norm(input, 2, dim, keepdim)
    return result if out is None else write_out(out, result, exact=SAME_DTYPE)


@function
def embedding_renorm_(input, indices, max_norm, norm_type):
    """Shortens those of the rows at `indices` whose norm exceeds max_norm, in place.

    >>> rushlight.embedding_renorm_(rushlight.tensor([[3., 4.]]), rushlight.tensor([0]), 1., 2.)
    tensor([[0.6000, 0.8000]])
    """
    from rushlight.nn.functional.sparse import _shorten_rows

    if input.is_inference():
        _C.check_inplace(input)
    _shorten_rows(input, indices, max_norm, norm_type)
    return input


@method
def fill_diagonal_(self, fill_value, wrap=False):
    """Writes a number to the main diagonal; wrap starts it again below in tall matrices.

    >>> rushlight.zeros(2, 2).fill_diagonal_(1)
    tensor([[1., 0.],
            [0., 1.]])
    """
    n = self.dim()
    if n < 2:
        raise RuntimeError("dimensions must larger than 1")
    if n > 2 and any(size != self.size(0) for size in self.shape):
        raise RuntimeError("all dimensions of input must be of equal length")
    if isinstance(fill_value, _C.Tensor) or not isinstance(fill_value, (int, float, complex)):
        fill_value = fill_value.item()  # what stands for a number
    if isinstance(fill_value, int) and not -(2**63) <= fill_value < 2**63:
        if not (self.is_floating_point() or self.is_complex()):
            raise RuntimeError("value cannot be converted to type int64_t without overflow")
        fill_value = float(fill_value)
    side = min(self.shape)
    if n > 2 or not wrap or self.size(0) <= self.size(1):
        if self.is_conj() or self.is_neg():
            self[(_C.arange(0, 1, side, _C.int64, self.device),) * n] = fill_value
        else:
            self.as_strided((side,), (sum(self.stride()),)).fill_(fill_value)
        return self
    rows = [row for row in range(self.size(0)) if row % (self.size(1) + 1) < self.size(1)]
    columns = [row % (self.size(1) + 1) for row in rows]
    self[rows, columns] = fill_value
    return self


@method
def resize(self, *sizes):
    """This tensor's memory in other sizes; deprecated in torch."""
    import warnings

    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    return _resized(self, sizes)


@method
def resize_as(self, tensor):
    """This tensor's memory in the sizes of another; deprecated in torch."""
    import warnings

    warnings.warn("non-inplace resize_as is deprecated", stacklevel=2)
    return _resized(self, tensor.size())


def _resized(self, sizes):
    from rushlight.autograd._functions import Resize

    return Resize.apply(self, sizes)
