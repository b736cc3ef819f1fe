"""How the primitives of layers are called in torch: pools, paddings, interpolations, norms, losses. See
_aten_calls.py, which takes this table over."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rushlight import _C

REDUCTIONS = ("none", "mean", "sum")


def reduction_number(reduction: Any) -> int:
    """torch's number of a reduction."""
    return reduction if isinstance(reduction, int) else REDUCTIONS.index(reduction)


def trimmed(args: tuple, *defaults: Any) -> tuple:
    """Without the last arguments where they are at their defaults."""
    kept = list(args)
    for default in reversed(defaults):
        value = kept[-1]
        same = value is default or (type(value) in (int, float, bool, list) and value == default)
        if not same or isinstance(value, bool) is not isinstance(default, bool):
            break
        kept.pop()
    return tuple(kept)


def each(value: Any, dims: int) -> list[int]:
    """One number for each dimension; none of what is not given."""
    if value is None:
        return []
    return [value] * dims if isinstance(value, int) else list(value)


# ---- one gradient of a convolution: torch has one operation for all of them, which reads all tensors


def _unread(like: Any, size: Any) -> Any:
    """Stands for a tensor of which only the size is known, and matters."""
    modes = _C.set_dispatch_mode(False)
    try:
        return like.detach().new_zeros(()).expand(tuple(size))
    finally:
        _C.set_dispatch_mode(modes)


def convolution_part(name: str, args: tuple) -> tuple[int, tuple]:
    """Which of the gradients it is, and the arguments of convolution_backward."""
    if name == "convolution":  # in the derivative of one that is transposed
        grad, weight, _, stride, padding, dilation, groups = args
        dims = grad.dim() - 2
        stride, padding, dilation = (each(value, dims) for value in (stride, padding, dilation))
        lengths = [
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(grad.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
        ]
        x = _unread(grad, (grad.shape[0], weight.shape[0], *lengths))
        given = (grad, x, weight, [0], stride, padding, dilation, True, [0] * dims, groups)
        return 0, (*given, [True, False, False])
    first, second, size, stride, padding, dilation, groups = args
    of_input = name == "conv_input_gradient"
    grad, other = (first, second) if of_input else (second, first)
    transposed = _C.rule_of() == "conv_transpose"
    if of_input:
        x, weight = _unread(grad, size), other
    else:
        grad, x = (other, grad) if transposed else (grad, other)
        weight = _unread(grad, size)
    dims = grad.dim() - 2
    lists = [each(value, dims) for value in (stride, padding, dilation)]
    given = (grad, x, weight, [0], *lists, transposed, [0] * dims, groups)
    return int(not of_input), (*given, [of_input, not of_input, False])


# ---- NAME(x; size, spec, adjoint): what follows x in torch, by which its gradient is called too


def resampled(name: str, x_shape: Any, size: Any, spec: tuple) -> tuple[str, tuple]:
    """The operation of torch and its arguments after the tensor."""
    if "_pad" in name:
        before = spec[1]
        rooms = [
            (left, n - have - left) for left, n, have in zip(before, size, x_shape[-len(size) :], strict=True)
        ]
        return name, ([side for room in reversed(rooms) for side in room],)
    if name.startswith("adaptive"):
        return f"_{name}", (list(size),)
    if name.startswith("avg_pool"):
        _, kernel, _, padding, include, divisor, given, ceil = spec
        return name, (list(kernel), list(given), list(padding), ceil, include, divisor or None)
    named = f"_{name}" if "exact" in name or name.endswith("_aa") else name
    scales = spec[-1] or ()
    return named, (list(size), *spec[1:-1], *scales)


def _resampling(name: str) -> Callable:
    def show(x, size, spec, adjoint):
        if adjoint:
            return None
        shown, args = resampled(name, x.shape, size, spec)
        if name.startswith("avg_pool"):
            zeros = [0] * len(args[0])
            args = trimmed(args, [], zeros, False, True, None)
        return f"{shown}.default", (x, *args), {}

    return show


RESAMPLED = [
    name for name, primitive in vars(_C.ops).items()
    if primitive.args == ("x", "size", "spec", "adjoint") and "circular" not in name and "lanczos" not in name
]  # fmt: skip


def _max_pool(name: str, dims: int) -> Callable:
    def show(x, kernel_size, stride, padding, dilation, ceil_mode):
        kernel, stride, padding, dilation = (each(v, dims) for v in (kernel_size, stride, padding, dilation))
        args = trimmed((x, kernel, stride, padding, dilation, ceil_mode), [], [0] * dims, [1] * dims, False)
        return f"{name}.default", args, {}

    return show


def _adaptive_max(name: str) -> Callable:
    return lambda x, output_size: (f"{name}.default", (x, list(output_size)), {})


def _fractional(name: str) -> Callable:
    return lambda x, samples, kernel_size, output_size: (
        f"{name}.default", (x, list(kernel_size), list(output_size), samples), {})  # fmt: skip


def _columns(x, kernel_size, dilation, padding, stride):
    return "im2col.default", (x, *(each(v, 2) for v in (kernel_size, dilation, padding, stride))), {}


def _image(x, output_size, kernel_size, dilation, padding, stride):
    lists = (each(v, 2) for v in (output_size, kernel_size, dilation, padding, stride))
    return "col2im.default", (x, *lists), {}


def _unpool(x, indices, size):
    if len(size) == 2:
        return "max_unpool2d.default", (x, indices, list(size)), {}
    return None


def group_norm_sizes(x: Any) -> tuple[int, int, int]:
    """The batch, the channels and the elements of each."""
    batch, channels = x.shape[:2]
    return batch, channels, x.numel() // max(batch * channels, 1)


def _group_norm(x, weight, bias, groups, eps):
    return "native_group_norm.default", (x, weight, bias, *group_norm_sizes(x), groups, eps), {}


# ---- Fourier transforms: torch counts the ways to scale them


def _scaling(scale: float, size: int) -> int | None:
    found = [mode for mode, value in enumerate((1.0, size**-0.5, 1 / size)) if math.isclose(scale, value)]
    return found[0] if size and found else None


def _transform(name: str) -> Callable:
    def show(x, dims, scale, forward, last=None):
        sizes = [x.shape[d] for d in dims]
        if name == "_fft_c2r":
            sizes[-1:] = [last]
        mode = _scaling(scale, math.prod(sizes))
        if mode is None or forward is (name == "_fft_c2r"):
            return None
        return f"{name}.default", (x, list(dims), mode, forward if last is None else last), {}

    return show


def _complex_transform(x, dims, scale, forward):
    mode = _scaling(scale, math.prod(x.shape[d] for d in dims))
    return None if mode is None else ("_fft_c2c.default", (x, list(dims), mode, forward), {})


SHOWN: dict[str, Callable] = {
    "fft_r2c": _transform("_fft_r2c"), "fft_c2r": _transform("_fft_c2r"), "fft_c2c": _complex_transform,
    **{name: _resampling(name) for name in RESAMPLED},
    **{f"max_pool{n}d_with_indices": _max_pool(f"max_pool{n}d_with_indices", n) for n in (2, 3)},
    **{f"adaptive_max_pool{n}d": _adaptive_max(f"adaptive_max_pool{n}d") for n in (2, 3)},
    **{f"fractional_max_pool{n}d": _fractional(f"fractional_max_pool{n}d") for n in (2, 3)},
    "im2col": _columns, "col2im": _image, "max_unpool": _unpool, "native_group_norm": _group_norm,
}  # fmt: skip
