"""Functions composed of others: comparing whole tensors, diagonals, statistics, copies of views."""

from __future__ import annotations

from rushlight import _C
from rushlight.ops import combine, index, math, reduce, shape, sort  # noqa: F401  (used by name below)
from rushlight.ops._examples import has_batch, somewhere
from rushlight.ops._public import (
    FUNCTIONS,
    RARE,
    SAME_DTYPE,
    Tensor,
    check_tensor,
    fitting,
    function,
    invalid_combination,
    method,
    needs_values,
    public,
    type_name,
    undifferentiable,
    wrap_dim,
    write_out,
)

ops = _C.ops


# ---- comparing


@public
def equal(input, other):
    """Whether two tensors have the same size and elements.

    >>> rushlight.equal(rushlight.tensor([1, 2]), rushlight.tensor([1, 2]))
    True
    """
    needs_values("equal", input, other)
    if input.shape != other.shape:
        return False
    if input.dtype == other.dtype == _C.complex32:
        raise NotImplementedError("\"equal_cpu\" not implemented for 'ComplexHalf'")
    return bool(ops.eq(input, other).all())


@public
def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether |input - other| <= atol + rtol * |other|, element by element.

    >>> rushlight.isclose(rushlight.tensor([1.0, 2.0]), rushlight.tensor([1.0, 2.1]))
    tensor([ True, False])
    """
    check_tensor(input, "isclose", "input", 1)
    check_tensor(other, "isclose", "other", 2)
    if input.dtype != other.dtype:
        raise RuntimeError(f"{_name(input)} did not match {_name(other)}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {float(value):g}")
    close = ops.eq(input, other)
    if equal_nan and (input.is_floating_point() or input.is_complex()):
        close = close | (ops.isnan(input) & ops.isnan(other))
    if rtol == 0 and atol == 0:
        return close
    if not input.is_floating_point() and not input.is_complex():
        input, other = input.double(), other.double()
    allowed = atol + ops.abs(rtol * other)
    difference = ops.abs(input - other)
    return close | (ops.isfinite(difference) & ops.le(difference, allowed))


def _name(t):
    from rushlight.ops._public import type_name

    return type_name(t.dtype)


@public
def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements are close, see isclose.

    >>> rushlight.allclose(rushlight.tensor([1.0]), rushlight.tensor([1.0 + 1e-9]))
    True
    """
    close = isclose(input, other, rtol, atol, equal_nan)
    if _C.is_leveled(close) and has_batch(close):
        raise RuntimeError(
            "vmap over torch.allclose isn't supported yet. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues if you need this feature."
        )
    return bool(close.all())


@public
def isreal(input):
    """Whether the imaginary part is zero.

    >>> rushlight.isreal(rushlight.tensor([1 + 0j, 1j]))
    tensor([ True, False])
    """
    if not input.is_complex():
        return _C.fill_fresh(_C.empty_like(input, _C.bool, input.device), True)
    return ops.eq(ops.imag(input), 0)


@function
def isin(elements, test_elements, *, assume_unique=False, invert=False, out=None):
    """Whether each element is among the test elements.

    >>> rushlight.isin(rushlight.tensor([1, 2, 3]), rushlight.tensor([2, 3]))
    tensor([False,  True,  True])
    """
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        rest = ", *, bool assume_unique = False, bool invert = False, Tensor out = None"
        raise invalid_combination(
            "isin", (elements, test_elements),
            f"Tensor elements, Tensor test_elements{rest}",
            f"Number element, Tensor test_elements{rest}",
            f"Tensor elements, Number test_element{rest}",
        )  # fmt: skip
    elements, test_elements = (
        x
        if isinstance(x, Tensor)
        else _C.full((), x, _C.complex128 if isinstance(x, complex) else None, None)
        for x in (elements, test_elements)
    )
    for each in (elements, test_elements):
        if (each.is_complex() and each.dtype != _C.complex32) or each.dtype == _C.bool:
            raise RuntimeError(f"Unsupported input type encountered for isin(): {type_name(each.dtype)}")
    found = _among(elements, test_elements.reshape(-1))
    result = ops.logical_not(found) if invert else found
    return result if out is None else write_out(out, result, exact=SAME_DTYPE)


_WHOLE = (_C.uint8, _C.int8, _C.int16, _C.int32, _C.int64)


def _in_table(elements, known):
    """Whether each element is among numbers of a small range; None if they are not such (100,000 among 100:
    2.7 to 0.4 ms)."""
    for each in (elements, known):
        if each.dtype not in _WHOLE or each.is_meta or _C.is_leveled(each) or _C.watched(each):
            return None
    low, high = known.min().item(), known.max().item()
    if high - low >= 8 * (elements.numel() + len(known)):
        return None
    table = FUNCTIONS["zeros"](high - low + 1, dtype=_C.bool)
    table[known.long() - low] = True
    elements = elements.long()
    near = elements.clamp(low, high)
    return ops.logical_and(table[near - low], ops.eq(near, elements))


def _among(elements, known):
    """Whether each element equals one of `known`: compared one by one, or looked up if they are many."""
    if elements.dtype == known.dtype and elements.dtype in RARE and elements.numel():
        raise NotImplementedError(f"\"isin_default_cpu\" not implemented for '{type_name(known.dtype)}'")
    if len(known) <= 16 or elements.numel() == 0:
        return ops.eq(elements.unsqueeze(-1), known).any(-1)
    found = _in_table(elements, known)
    if found is not None:
        return found
    kind = _C.result_type(elements, known)
    elements, known = elements.to(kind), FUNCTIONS["sort"](known.to(kind))[0]
    place = FUNCTIONS["searchsorted"](known, elements.contiguous()).clamp(max=len(known) - 1)
    return ops.eq(known[place], elements)


@public
def is_nonzero(input):
    """Whether the one element is not zero.

    >>> rushlight.is_nonzero(rushlight.tensor(0.5))
    True
    """
    if input.numel() != 1:
        what = "no values" if input.numel() == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
    return input.item() != 0


@public
def is_same_size(input, other):
    """Whether two tensors have the same size.

    >>> rushlight.is_same_size(rushlight.ones(2), rushlight.zeros(2))
    True
    """
    if input.is_nested or other.is_nested:
        from rushlight._nested import same_size

        return same_size(input, other)
    return input.shape == other.shape


@function
def numel(input):
    """The number of elements.

    >>> rushlight.numel(rushlight.ones(2, 3))
    6
    """
    return input.numel()


@function
def is_floating_point(input):
    """Whether the dtype is a floating-point one.

    >>> rushlight.is_floating_point(rushlight.tensor(1))
    False
    """
    return input.is_floating_point()


@function
def is_complex(input):
    """Whether the dtype is a complex one.

    >>> rushlight.is_complex(rushlight.tensor(1j))
    True
    """
    return input.is_complex()


# ---- elementwise


@public
def logit(input, eps=None, *, out=None):
    """log(x / (1 - x)), with x first moved into [eps, 1 - eps] if eps is given.

    >>> rushlight.logit(rushlight.tensor([0.5, 0.75]))
    tensor([0.0000, 1.0986])
    """
    result = _logit(input, eps)
    return result if out is None else write_out(out, result)


def _logit(x, eps=None):
    if x.is_complex():
        raise NotImplementedError(f"\"logit_cpu\" not implemented for '{type_name(x.dtype)}'")
    if eps is not None:
        x = x if x.is_floating_point() else x.to(_C.get_default_dtype())
        eps = fitting(eps, x.dtype)
        # Not clamp: its gradient is 0 at NaN, and where the bounds are crossed it takes the upper one.
        x = ops.where(ops.lt(x, eps), eps, ops.where(ops.gt(x, 1 - eps), 1 - eps, x))
    return ops.logit(x)


@method
def logit_(self, eps=None):
    """In-place version of logit."""
    _C.check_inplace(self)
    if eps is None and self.is_floating_point():
        return _C.in_place(ops.logit, self)
    function = _logit if _C.top_saved_hooks() is None else logit  # who look on see one step
    return _C.overwrite(self, function, (eps,), {})


# ---- diagonals


@public
def trace(input):
    """The sum of the diagonal of a matrix.

    >>> rushlight.trace(rushlight.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    if input.dtype in RARE:
        raise NotImplementedError(f"\"trace\" not implemented for '{type_name(input.dtype)}'")
    if input.dim() != 2:
        raise RuntimeError("trace: expected a matrix, but got tensor with dim " + str(input.dim()))
    if input.dtype == _C.bool:
        raise NotImplementedError("\"trace\" not implemented for 'Bool'")
    return ops.diagonal(input, 0, 0, 1).sum()


@public
def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Matrices with the last dimension on their diagonal.

    >>> rushlight.diag_embed(rushlight.ones(3, 2)).shape
    torch.Size([3, 2, 2])
    """
    n = input.dim() + 1
    d1, d2 = wrap_dim(dim1, n), wrap_dim(dim2, n)
    if d1 == d2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    side = input.size(-1) + abs(offset)
    if side >= 2**63:
        raise RuntimeError(f"diag_embed(): an offset of {offset} makes matrices that are too large")
    sizes = list(input.shape[:-1])
    for d in sorted((d1, d2)):
        sizes.insert(d, side)
    return ops.diagonal_backward(input, tuple(sizes), offset, d1, d2)


@public
def diag(input, diagonal=0, *, out=None):
    """The diagonal of a matrix, or the matrix with a vector on its diagonal.

    >>> rushlight.diag(rushlight.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    if input.dim() == 1:
        result = diag_embed(input, diagonal)
    elif input.dim() == 2:
        result = ops.contiguous_copy(ops.diagonal(input, diagonal, 0, 1))
    else:
        raise RuntimeError("diag(): Supports 1D or 2D tensors. Got " + str(input.dim()) + "D")
    return result if out is None else write_out(out, result, exact=SAME_DTYPE)


@public
def diagflat(input, offset=0):
    """The matrix with all elements on its diagonal.

    >>> rushlight.diagflat(rushlight.tensor([[1, 2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    return FUNCTIONS["diag_embed"](input.reshape(-1), offset)


# ---- statistics


@public
def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariance matrix of the rows' variables.

    >>> rushlight.cov(rushlight.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 6.0]]))
    tensor([[1.0000, 2.5000],
            [2.5000, 7.0000]])
    """
    if input.dim() > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {input.dim()} "
            f"dimensions"
        )
    if input.dtype == _C.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input.reshape(1, -1) if input.dim() < 2 else input
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is not None:
            _check_weights(name, given, x.size(1))
    weights = None
    if fweights is not None:
        weights = fweights
    if aweights is not None:
        weights = aweights if weights is None else weights * aweights
    if weights is None:
        total = x.new_tensor(x.size(1), dtype=_C.int64)
        mean = x.sum(1) / total
    else:
        total = weights.sum()
        if not total.is_meta and somewhere(total == 0):
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        mean = (x * weights).sum(1) / total
    if aweights is None or correction == 0:
        divisor = total - correction
    else:
        divisor = total - _C.name_node((weights * aweights).sum() * correction, "MulBackward1") / total
    if not x.is_meta and somewhere(divisor <= 0):
        import warnings

        warnings.warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the "
                      "number of "
                      "observations.", stacklevel=2)  # fmt: skip
        divisor = FUNCTIONS["clamp"](divisor, min=0)
    centred = x - mean.unsqueeze(1)
    weighted = centred if weights is None else centred * weights
    product = centred @ weighted.t().conj()
    if x.size(0) == 1 and x.is_complex():  # the variance of one variable is a real number
        product = FUNCTIONS["complex"](product.real, product.real.new_zeros((1, 1)))
    return (product / divisor).squeeze()


def _check_weights(name, weights, count):
    if weights.dim() > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.dim()} "
            "dimensions"
        )
    whole = not weights.is_floating_point() and not weights.is_complex() and weights.dtype != _C.bool
    kind, fits = (
        ("integral", whole) if name == "fweights" else ("floating point", weights.is_floating_point())
    )
    if not fits:
        raise RuntimeError(
            f"cov(): expected {name} to have {kind} dtype but got {name} with {type_name(weights.dtype)} "
            "dtype"
        )
    if weights.numel() != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{weights.numel()} != {count}"
        )
    if weights.numel() and somewhere(FUNCTIONS["min"](weights) < 0):  # its minimum, which hooks are shown
        raise RuntimeError(f"cov(): {name} cannot be negative")


@public
def corrcoef(input):
    """The matrix of correlation coefficients of the rows' variables.

    >>> rushlight.corrcoef(rushlight.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.dim() > 2:
        raise RuntimeError(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with "
            f"{input.dim()} dimensions"
        )
    c = cov(input)
    if c.dim() == 0:
        return c / c
    scale = ops.sqrt(FUNCTIONS["real"](ops.diagonal(c, 0, 0, 1)))
    c = c / scale.reshape(-1, 1) / scale.reshape(1, -1)
    if not c.is_complex():
        return c.clamp(-1, 1)
    return FUNCTIONS["complex"](c.real.clamp(-1, 1), c.imag.clamp(-1, 1))


def _quantile(input, q, dim, keepdim, interpolation, ignore_nan):
    name = "quantile"  # of both functions, in sentences
    if not isinstance(q, Tensor) and not 0 <= q <= 1:
        raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(f"{name}() interpolation must be one of linear, lower, higher, midpoint or "
                           f"nearest, but "
                           f"got {interpolation}")  # fmt: skip
    if not isinstance(q, Tensor):
        q = _C.full((), q, input.dtype, input.device)
    if input.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if q.dim() > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if input.dtype not in (_C.float32, _C.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if q.dtype != input.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if q.is_cpu and somewhere(~((q >= 0) & (q <= 1))):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    n = input.dim()
    kept = [1] * n if dim is None else list(input.shape)
    if dim is None:
        lines = input.reshape(-1)
    else:
        d = wrap_dim(dim, n)
        lines = ops.transpose(input.unsqueeze(-1), d, -1).squeeze(d) if n else input.reshape(1)
        if n:
            kept[d] = 1
    ordered = lines.sort(-1)[0]
    nan = ops.isnan(lines)
    flat = q.reshape(-1)
    if ignore_nan:
        last = (ops.logical_not(nan).sum(-1, keepdim=True) - 1).clamp(min=0)
    else:
        last = _C.full((1,), lines.size(-1) - 1, _C.int64, input.device)
    rank = flat * last.to(input.dtype)
    if not ignore_nan:  # NaN is sorted behind everything else
        rank = ops.where(nan.any(-1, keepdim=True), float(lines.size(-1) - 1), rank)
    low, high = ops.floor(rank), ops.ceil(rank)
    if interpolation == "lower":
        rank = low
    elif interpolation == "higher":
        rank = high
    elif interpolation == "nearest":
        rank = ops.round(rank)
    low, high = ops.floor(rank).long(), ops.ceil(rank).long()
    target = (*ordered.shape[:-1], flat.numel())
    below = ordered.gather(-1, low.expand(target))
    above = ordered.gather(-1, high.expand(target))
    if interpolation == "midpoint":
        result = FUNCTIONS["lerp"](below, above, rank.new_full(target, 0.5))
    elif interpolation == "linear":
        result = FUNCTIONS["lerp"](below, above, (rank - low.to(rank.dtype)).expand(target))
    else:
        result = below
    if keepdim:
        result = result.reshape(*kept, flat.numel())
    if q.dim():  # one leading entry per q
        result = result.unsqueeze_(0).transpose_(0, -1)
    return result.squeeze_(-1)


_QUANTILE_OUT = "quantile() out tensor must be same dtype as the input tensor"


@public
def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """The value below which a share q of the elements lies.

    >>> rushlight.quantile(rushlight.tensor([0.0, 1.0, 2.0, 3.0]), 0.5)
    tensor(1.5000)
    """
    result = _quantile(input, q, dim, keepdim, interpolation, False)
    return result if out is None else write_out(out, result, exact=_QUANTILE_OUT)


@public
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """quantile, ignoring NaN.

    >>> rushlight.nanquantile(rushlight.tensor([1.0, float("nan"), 3.0]), 0.5)
    tensor(2.)
    """
    result = _quantile(input, q, dim, keepdim, interpolation, True)
    return result if out is None else write_out(out, result, exact=_QUANTILE_OUT)


# ---- copies of views


def _copy_of(name, args, shown, view_name=None):
    """Makes `<name>_copy`; with these arguments it turns [[1, 2]] into what is shown."""
    view = FUNCTIONS.get(view_name or name) or getattr(Tensor, view_name or name)

    def copy(input, *args, out=None, **kwargs):
        if name == "view" and "size" in kwargs:
            kwargs["shape"] = kwargs.pop("size")
        by_dtype = name == "view" and isinstance(args[0] if args else kwargs.get("dtype"), _C.dtype)
        # A copy of the pairs of a conjugate view can be had, a view of them cannot.
        seen = (Tensor.view if by_dtype else view)(
            input.resolve_conj() if name == "view_as_real" else input, *args, **kwargs
        )
        if isinstance(seen, tuple):
            copies = tuple(ops.contiguous_copy(t) for t in seen)
            if out is None:
                return copies
            if len(out) != len(copies):
                raise RuntimeError(
                    f"{name}_copy_out() expected an out= argument of size {len(copies)}, got size {len(out)}"
                )
            for place, part in zip(out, copies):
                write_out(place, part, exact=SAME_DTYPE)
            return None
        result = ops.contiguous_copy(seen)
        return result if out is None else write_out(out, result, exact=SAME_DTYPE)

    copy.__name__ = copy.__qualname__ = f"{name}_copy"
    given = (
        "[[1.0, 2.0]]" if name.startswith("view_as_c") else "[[1j]]" if name.endswith("real") else "[[1, 2]]"
    )
    copy.__doc__ = f"""A copy of what {name} shows as a view.

    >>> rushlight.{name}_copy(rushlight.tensor({given}){args})
    {shown}
    """
    function(copy)


_copy_of("view", ", (2,)", "tensor([1, 2])", "reshape")  # a copy needs no compatible strides
for _view, _args, _shown in (
    ("expand", ", (2, 2)", "tensor([[1, 2],\n            [1, 2]])"),
    ("permute", ", (1, 0)", "tensor([[1],\n            [2]])"),
    ("transpose", ", 0, 1", "tensor([[1],\n            [2]])"),
    ("t", "", "tensor([[1],\n            [2]])"),
    ("unsqueeze", ", 0", "tensor([[[1, 2]]])"),
    ("squeeze", "", "tensor([1, 2])"),
    ("select", ", 1, 0", "tensor([1])"),
    ("diagonal", "", "tensor([1])"),
    ("unfold", ", 1, 1, 1", "tensor([[[1],\n             [2]]])"),
    ("as_strided", ", (2, 1), (1, 1)", "tensor([[1],\n            [2]])"),
    ("split", ", 1, 1", "(tensor([[1]]), tensor([[2]]))"),
    ("unbind", ", 1", "(tensor([1]), tensor([2]))"),
    ("view_as_real", "", "tensor([[[0., 1.]]])"),
    ("view_as_complex", "", "tensor([1.+2.j])"),
    ("split_with_sizes", ", (1, 1), 1", "(tensor([[1]]), tensor([[2]]))"),
):
    _copy_of(_view, _args, _shown)


@function
def narrow_copy(input, dim, start, length, *, out=None):
    """A copy of what narrow shows as a view.

    >>> rushlight.narrow_copy(rushlight.tensor([1, 2, 3]), 0, 1, 2)
    tensor([2, 3])
    """
    if _C.is_sparse(input):
        from rushlight._sparse.shape import narrow_copy
        from rushlight._sparse.table import refusal

        result = narrow_copy(input.detach(), dim, start, length)
        result = undifferentiable("narrow_copy", result, input, node="NarrowCopyBackward0")
        if result.grad_fn is not None:  # by the kernel that torch does not find
            result.grad_fn.message = refusal("aten::as_strided")
        return result if out is None else out.copy_(result)
    if 0 < input.dim() <= dim:
        raise RuntimeError(
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.  (Could this "
            "error message be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    if input.dim() and length < 0:
        size = input.size(dim)
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    result = ops.contiguous_copy(input.narrow(dim, start, length))
    return result if out is None else write_out(out, result, exact=SAME_DTYPE)


@function
def detach(input):
    """A tensor on the same memory without history.

    >>> rushlight.detach(rushlight.ones(2, requires_grad=True)).requires_grad
    False
    """
    return _C.detach(input)


@function
def detach_(input):
    """Cuts a tensor off its history."""
    return input.detach_()


# ---- views that change the tensor itself


def _in_place_view(name):
    view = FUNCTIONS[name]

    def method_(self, *args, **kwargs):
        if _C.is_any_sparse(self):
            return getattr(self, f"{name}_")(*args, **kwargs)  # of its own class, which turns its entries
        if self.is_inference() and not _C.is_inference_mode_enabled():
            view(self, *args, **kwargs)  # what is wrong with the call is said first
        _C.check_inplace(self)
        if name == "t" and self.dim() > 2:
            raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {self.dim()}D")
        if _C.asks_dispatch(self):
            from rushlight._dispatching import ask_in_place_view

            return ask_in_place_view(name, view, self, args, kwargs)
        tangent = _C.tangent(self) if _C.carries_tangents() and not _C.is_leveled(self) else None
        if tangent is None or _C.is_leveled(tangent):
            return _C.become_view(self, view(self, *args, **kwargs))
        _C.check_inplace(tangent)
        _C.become_view(self, view(self, *args, **kwargs))
        before = _C.set_forward_mode(False)
        try:
            getattr(tangent, method_.__name__)(*args, **kwargs)  # this very tensor, which others may hold
        finally:
            _C.set_forward_mode(before)
        _C.set_tangent(self, tangent)
        return self

    method_.__name__ = method_.__qualname__ = f"{name}_"
    method_.__doc__ = f"In-place version of {name}: changes the sizes of this very tensor."
    method(method_)


for _view in ("squeeze", "unsqueeze", "transpose", "swapaxes", "swapdims", "t", "as_strided"):
    _in_place_view(_view)


@method
def untyped_storage(self):
    """The bytes behind this tensor.

    >>> rushlight.ones(2).untyped_storage().nbytes()
    8
    """
    from rushlight.storage import UntypedStorage

    return UntypedStorage._of(self)


@method
def storage(self):
    """The elements behind this tensor, in the order of memory."""
    from rushlight.storage import _warn_typed_storage_removal, data_of

    _warn_typed_storage_removal()
    return data_of(self)


@method
def _typed_storage(self):
    from rushlight.storage import data_of

    return data_of(self)


@method
def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Moves this tensor to the memory of another tensor or of a storage."""
    from rushlight._set_storage import set_storage

    return set_storage(self, source, storage_offset, size, stride)
