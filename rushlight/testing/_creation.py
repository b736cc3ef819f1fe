"""make_tensor: random tensors for tests."""

from __future__ import annotations

import math
import warnings
from typing import Any

import rushlight
from rushlight import _C


def make_tensor(
    *shape: Any,
    dtype: _C.dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Any:
    """A tensor of uniformly distributed random values between `low` and `high`.

    >>> rushlight.testing.make_tensor((2, 3), dtype=rushlight.float32, device="cpu").shape
    torch.Size([2, 3])
    """
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"noncontiguous={noncontiguous} and memory_format={memory_format}"
        )
    if dtype in (_C.qint8, _C.quint8, _C.qint32):
        raise TypeError(
            f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor(). To request "
            "support, file an issue at: https://github.com/pytorch/pytorch/issues"
        )
    floating = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not floating:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype}"
        )
    # Every second element of twice as many, if it is not to be contiguous.
    doubled = noncontiguous and math.prod(shape) > 1
    size = (*shape[:-1], 2 * shape[-1]) if doubled else shape
    if floating:
        result = _uniform(size, dtype, device, low, high)
    else:
        least, most = (0, 2) if dtype == _C.bool else _limits(dtype)
        usual = (0, 2) if dtype == _C.bool else (-9, 10)
        first, last = _interval(low, high, *usual, least, most, dtype)
        last = min(math.ceil(last), 2**63 - 1)  # the most that randint takes
        result = rushlight.randint(math.ceil(first), last, size, device=device, dtype=dtype)
    if doubled:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = rushlight.finfo(dtype).tiny if floating else 1
    return result.requires_grad_() if requires_grad else result


def _limits(dtype: _C.dtype) -> tuple[int, int]:
    """The least of the integers of a dtype, and the first beyond them."""
    info = rushlight.iinfo(dtype)
    return info.min, info.max + 1


def _interval(
    low: Any, high: Any, default_low: float, default_high: float, least: float, most: float, dtype: _C.dtype
) -> tuple[float, float]:
    low = default_low if low is None else low
    high = default_high if high is None else high
    if low != low or high != high:
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low!r} and high={high!r}")
    if low == high and (dtype.is_floating_point or dtype.is_complex):
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated "
            "since 2.1 and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=4,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < least or low > most or (low >= most and low != high):
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
            f"[{least}, {most})"
        )
    return max(low, least), min(high, most)


def _uniform(size: tuple, dtype: _C.dtype, device: Any, low: Any, high: Any) -> Any:
    info = rushlight.finfo(dtype)
    first, last = _interval(low, high, -9, 9, info.min, info.max, dtype)
    if dtype.itemsize == 1:  # float8: nothing is drawn in it
        return _uniform(size, _C.float32, device, first, last).to(dtype)
    result = rushlight.empty(size, dtype=dtype, device=device)
    parts = rushlight.view_as_real(result) if dtype.is_complex else result
    if last - first > info.max:  # too wide for one draw
        parts.uniform_(first / 2, last / 2).mul_(2)
    else:
        parts.uniform_(first, last)
    return result
