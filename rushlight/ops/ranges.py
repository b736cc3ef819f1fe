"""Factories of ranges of numbers."""

from __future__ import annotations

import math
import operator

from rushlight import _C
from rushlight._type_names import type_name as class_name
from rushlight._versions import uncounted
from rushlight._warn import warn
from rushlight.ops._public import C_NAMES, Tensor, as_dtype, function, invalid_combination, type_name
from rushlight.ops.create import _checked, _device, _finish_numbers, _kind


@function
def arange(start=None, end=None, step=1, *, out=None, dtype=None, layout=None, device=None,
           requires_grad=False, pin_memory=False):  # fmt: skip
    """Numbers from start (included) to end (excluded).

    >>> rushlight.arange(1, 4)
    tensor([1, 2, 3])
    """
    _checked(layout, pin_memory)
    dtype = as_dtype(dtype)
    if end is None:
        start, end = 0, start
    elif start is None:
        start = 0
    if end is None:
        raise invalid_combination("arange", () if start == 0 else (start, end), "Number end", "Number start, "
                                  "Number end, Number step = 1")  # fmt: skip
    if isinstance(end, str):
        raise TypeError(f"arange(): argument 'end' (position 1) must be Number, not {class_name(end)}")
    start, end, step = (real_number(x.item() if isinstance(x, Tensor) else x) for x in (start, end, step))
    if dtype is not None and (dtype == _C.bool or dtype.is_complex):
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{type_name(dtype)}'")
    start, end, step = (operator.index(x) if hasattr(x, "__index__") else x for x in (start, end, step))
    if dtype is None:
        whole = all(isinstance(x, int) for x in (start, end, step))
        dtype = out.dtype if out is not None else _C.int64 if whole else _C.get_default_dtype()
    if dtype.is_complex or dtype == _C.bool:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{type_name(dtype)}'")
    if not (step > 0 or step < 0):
        raise RuntimeError("step must be nonzero")
    check_range(start, end)
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype == _C.int64 and any(not -(2**63) <= x < 2**63 for x in (start, end, step)):
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    if not dtype.is_floating_point and all(isinstance(x, int) for x in (start, end, step)):
        count = -((start - end) // step)
    else:
        if dtype == _C.int64:  # torch counts these in 64 bits, those of all other dtypes in doubles
            start, end, step = int(start), int(end), int(step)
            if step == 0:
                raise ValueError("step must be nonzero")
        count = math.ceil((end - start) / step)
        if count >= 2**63:
            raise RuntimeError("invalid size, possible overflow?")
        if not dtype.is_floating_point:  # as many numbers as before their fractions were cut off
            start, step = int(start), int(step)
    if isinstance(out, Tensor) and out.numel() not in (0, count) and out.dtype == dtype:
        warn(
            f"The number of elements in the out tensor of shape {list(out.shape)} is {out.numel()} which "
            f"does not match the computed number of elements {count}. Note that this may occur as a result "
            f"of rounding error. The out tensor will be resized to a tensor of shape ({count},)."
        )
    return _finish_numbers(
        _C.arange(start, step, count, dtype, _device(device)), requires_grad, out, "arange"
    )


def real_number(x):
    """A bound of a range: a complex number without an imaginary part is a float, an integer must be one of
    64 bits."""
    if isinstance(x, complex):
        if x.imag != 0:
            raise RuntimeError("value cannot be converted to type double without overflow")
        return x.real
    if isinstance(x, int) and not -(2**63) <= x < 2**64:
        raise OverflowError("int too big to convert" if x > 0 else "can't convert negative int to unsigned")
    return x


def check_range(start, end):
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")


@function
def linspace(start, end, steps, *, out=None, dtype=None, layout=None, device=None,
             requires_grad=False, pin_memory=False):  # fmt: skip
    """`steps` numbers from start to end, both included, evenly spaced.

    >>> rushlight.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    _checked(layout, pin_memory)
    start, end, device = _ends("linspace", start, end, steps, device)
    dtype = _between("linspace", start, end, _kind(dtype, out))
    if dtype == _C.bool and steps > 1:
        raise NotImplementedError("\"linspace_cpu\" not implemented for 'Bool'")
    if steps == 1:
        one = _C.full((1,), 0, dtype, _device(device))
        with uncounted(one):
            one.fill_(start)
        return _finish_numbers(one, requires_grad, out, "linspace")
    if not dtype.is_floating_point and not dtype.is_complex:
        start, end = int(start), int(end)
    elif not dtype.is_complex and steps > 1:
        for number in (start, end):
            _C.full((2,), number, dtype, None)  # refuses one that is beyond the dtype
    return _finish_numbers(
        _C.linspace(start, end, steps, dtype, _device(device)), requires_grad, out, "linspace"
    )


def _power(base, exponent):
    """What logspace begins with, in double precision, where numbers beyond it are infinite."""
    return (
        _C.full((), base, _C.complex128 if isinstance(exponent, complex) else _C.float64, None) ** exponent
    ).item()


def _ends(name, start, end, steps, device):
    """The ends of a range as numbers, and its device: that of ends which are tensors, unless one is given."""
    if isinstance(start, Tensor) or isinstance(end, Tensor):
        dims = [x.dim() if isinstance(x, Tensor) else 0 for x in (start, end)]
        if any(dims):
            wrong = [f"{which} with {n} dimension(s)" for which, n, x in
                     (("start", dims[0], start), ("end", dims[1], end)) if isinstance(x, Tensor)]  # fmt: skip
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got {' and '.join(wrong)}."
            )
        if device is None and any(isinstance(x, Tensor) and x.is_meta for x in (start, end)):
            device = "meta"
        known = device is None or _C.as_device(device).type != "meta"  # there any number is as good
        start, end = (
            x if not isinstance(x, Tensor) else x.item() if known else (1j if x.is_complex() else 1.0)
            for x in (start, end)
        )
    if isinstance(steps, (float, complex, str, bool)) or steps is None:
        raise invalid_combination(name, (start, end, steps), *_RANGES)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    return start, end, device


def _between(name, start, end, dtype):
    """The dtype of the numbers between two ends: the one asked for, if complex ends fit into it."""
    default = _C.get_default_dtype()
    if not isinstance(start, complex) and not isinstance(end, complex):
        return dtype or default
    wide = default.to_complex()
    if dtype is not None and not dtype.is_complex:
        raise RuntimeError(
            f"torch.{name}(): inferred dtype {C_NAMES[wide]} can't be safely cast to passed dtype "
            f"{type_name(dtype)}"
        )
    return dtype or wide


_RANGES = tuple(
    f"{start} start, {end} end, int steps, *, Tensor out = None, torch.dtype dtype = None, "
    "torch.layout layout = torch.strided, torch.device device = None, bool pin_memory = False, "
    "bool requires_grad = False"
    for start, end in (("Tensor", "Tensor"), ("Number", "Tensor"), ("Tensor", "Number"), ("Number", "Number"))
)


@function
def logspace(start, end, steps, base=10.0, *, out=None, dtype=None, layout=None, device=None,
             requires_grad=False, pin_memory=False):  # fmt: skip
    """`base` to the powers from start to end.

    >>> rushlight.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    _checked(layout, pin_memory)
    start, end, device = _ends("logspace", start, end, steps, device)
    dtype = _between("logspace", start, end, _kind(dtype, out))
    if steps == 1:
        one = _C.full((1,), 0, dtype, _device(device)).fill_(_power(base, start))
        return _finish_numbers(one, requires_grad, out, "logspace")
    if steps and dtype in (_C.bool, _C.uint16, _C.uint32, _C.uint64):
        raise NotImplementedError(f"\"logspace_cpu\" not implemented for '{type_name(dtype)}'")
    wide = dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        # The exponents run between whole numbers, as torch has it.
        wide, start, end = _C.float64, int(start), int(end)
    exponents = _C.linspace(start, end, steps, wide, _device(device))
    return _finish_numbers((base**exponents).to(dtype), requires_grad, out, "logspace")
