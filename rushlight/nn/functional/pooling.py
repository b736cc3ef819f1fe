"""Maxima and averages over windows, and their inverses."""

from __future__ import annotations

import rushlight
from rushlight import _C
from rushlight._settings import alert_not_deterministic
from rushlight.nn.functional._checks import functional, require_floating, require_tensor
from rushlight.ops import pool
from rushlight.ops._public import refuse_gradient, type_name
from rushlight.ops.pool import adaptive_avg_pool1d, avg_pool1d

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]

ops = _C.ops
avg_pool2d = functional(pool.avg_pool2d)
avg_pool3d = functional(pool.avg_pool3d)
adaptive_avg_pool2d = functional(pool.adaptive_avg_pool2d)
adaptive_avg_pool3d = functional(pool.adaptive_avg_pool3d)


# ---- maxima


@functional
def max_pool1d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """max_pool1d, and where the maxima are."""
    return pool.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


@functional
def max_pool2d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """max_pool2d, and where the maxima are in each plane."""
    return ops.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


@functional
def max_pool3d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """max_pool3d, and where the maxima are in each volume."""
    return ops.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


@functional
def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element under a window that slides along the last dimension; stride is kernel_size if None.

    >>> import rushlight as torch
    >>> torch.nn.functional.max_pool1d(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    if return_indices:
        return pool.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return ops.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


@functional
def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element under a window that slides over height and width; stride is kernel_size if None.

    >>> import rushlight as torch
    >>> torch.nn.functional.max_pool2d(torch.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """
    if return_indices:
        return ops.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return ops.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


@functional
def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element under a window that slides over depth, height and width.

    >>> import rushlight as torch
    >>> torch.nn.functional.max_pool3d(torch.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[7.]]]])
    """
    if return_indices:
        return ops.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return ops.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)


# ---- adaptive maxima


def _adaptive_max_pool(dims, input, output_size):
    name = f"adaptive_max_pool{dims}d"
    if dims > 1 and not isinstance(input, rushlight.Tensor):
        input.size()  # the AttributeError that torch gives
    require_tensor(name, input)
    if dims == 1:
        return pool.adaptive_max_pool1d(input, output_size)
    return getattr(ops, name)(input, pool.sizes_like(output_size, input, dims, "max"))


@functional
def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    """adaptive_max_pool1d, and where the maxima are."""
    return _adaptive_max_pool(1, input, output_size)


@functional
def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    """adaptive_max_pool2d, and where the maxima are in each plane."""
    return _adaptive_max_pool(2, input, output_size)


@functional
def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    """adaptive_max_pool3d, and where the maxima are in each volume."""
    return _adaptive_max_pool(3, input, output_size)


@functional
def adaptive_max_pool1d(input, output_size, return_indices=False):
    """Maxima over windows chosen such that there are output_size of them.

    >>> import rushlight as torch
    >>> torch.nn.functional.adaptive_max_pool1d(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    both = _adaptive_max_pool(1, input, output_size)
    return both if return_indices else both[0]


@functional
def adaptive_max_pool2d(input, output_size, return_indices=False):
    """Maxima over windows chosen such that the result has output_size; None keeps the input's size.

    >>> import rushlight as torch
    >>> torch.nn.functional.adaptive_max_pool2d(torch.ones(1, 3, 5, 7), (2, None)).shape
    torch.Size([1, 3, 2, 7])
    """
    both = _adaptive_max_pool(2, input, output_size)
    return both if return_indices else both[0]


@functional
def adaptive_max_pool3d(input, output_size, return_indices=False):
    """Maxima over windows chosen such that the result has output_size; None keeps the input's size.

    >>> import rushlight as torch
    >>> torch.nn.functional.adaptive_max_pool3d(torch.ones(1, 3, 5, 7, 4), 2).shape
    torch.Size([1, 3, 2, 2, 2])
    """
    both = _adaptive_max_pool(3, input, output_size)
    return both if return_indices else both[0]


# ---- fractional maxima


def _fractional(dims, input, kernel_size, output_size, output_ratio, samples):
    name = f"fractional_max_pool{dims}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if dims == 3 and samples is None and not isinstance(input, rushlight.Tensor):
        input.size()
    require_tensor(name, input)
    if dims == 3 and input.ndim > 5:
        raise RuntimeError(
            f"fractional_max_pool3d_out(): Expected 4D or 5D tensor, but got: {list(input.shape)}"
        )
    if input.ndim <= dims:
        if dims == 3 and samples is not None:
            raise RuntimeError(
                f"fractional_max_pool3d_out(): Expected 4D or 5D tensor, but got: {list(input.shape)}"
            )
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.ndim}, {input.ndim - 1}], but got "
            f"{-dims - 1})"
        )
    if output_size is None:
        if len(output_ratio) > dims:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        rest = input.shape[-dims:]
        output_size = tuple(int(n * ratio) for n, ratio in zip(rest, output_ratio, strict=True))
    if samples is None:
        batch = 1 if input.ndim == dims + 1 else input.size(0)
        samples = rushlight.rand(batch, input.size(-dims - 1), dims, dtype=input.dtype, device=input.device)
    elif samples.dtype != input.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    kernel_size = pool.numbers(name, "kernel_size", kernel_size, dims)
    refuse_gradient(name, random_samples=samples)
    return getattr(ops, name)(input, samples, kernel_size, output_size)


@functional
def fractional_max_pool2d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """fractional_max_pool2d, and where the maxima are."""
    return _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)


@functional
def fractional_max_pool3d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """fractional_max_pool3d, and where the maxima are."""
    return _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)


@functional
def fractional_max_pool2d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Maxima over windows at random places, spread such that the result has output_size.

    >>> import rushlight as torch
    >>> torch.nn.functional.fractional_max_pool2d(torch.ones(1, 3, 9, 9), 2, output_size=5).shape
    torch.Size([1, 3, 5, 5])
    """
    both = _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return both if return_indices else both[0]


@functional
def fractional_max_pool3d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Maxima over windows at random places, spread such that the result has output_size.

    >>> import rushlight as torch
    >>> torch.nn.functional.fractional_max_pool3d(torch.ones(1, 3, 9, 9, 9), 2, output_size=5).shape
    torch.Size([1, 3, 5, 5, 5])
    """
    both = _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return both if return_indices else both[0]


# ---- the root of a sum of powers


@functional
def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The norm of the elements under a window that slides along the last dimension.

    >>> import rushlight as torch
    >>> torch.nn.functional.lp_pool1d(torch.tensor([[3.0, 4.0]]), 2, 2)
    tensor([[5.]])
    """
    return pool.lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


@functional
def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The norm of the elements under a window that slides over height and width.

    >>> import rushlight as torch
    >>> torch.nn.functional.lp_pool2d(torch.ones(1, 1, 2, 2), 2, 2)
    tensor([[[[2.]]]])
    """
    return pool.lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


@functional
def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The norm of the elements under a window that slides over depth, height and width.

    >>> import rushlight as torch
    >>> torch.nn.functional.lp_pool3d(torch.ones(1, 1, 2, 2, 2), 1, 2)
    tensor([[[[[8.]]]]])
    """
    return pool.lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


# ---- unpooling


def _unpool_size(input, kernel, stride, padding, output_size):
    """The spatial size of what was pooled: computed, or the one given if it is near that."""
    dims = len(kernel)
    rest = input.shape[-dims:]
    size = [(n - 1) * s + k - 2 * p for n, k, s, p in zip(rest, kernel, stride, padding, strict=True)]
    if output_size is None:
        for d, n in enumerate(size):
            if n < 0:
                raise ValueError(
                    "max_unpooling: output_size must contain non-negative spatial dimensions, but got "
                    f"output_size[{d}]={n}"
                )
        return size
    if len(output_size) == dims + 2:
        output_size = output_size[2:]
    if len(output_size) != dims:
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a "
            "length of "
            f"'{len(output_size)}'"
        )
    for d, (n, s) in enumerate(zip(size, stride, strict=True)):
        if not n - s < output_size[d] < n + s:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {d} must be between {n - s} and {n + s})'
            )
    return list(output_size)


def _unpool(dims, input, indices, kernel_size, stride, padding, output_size):
    name = f"max_unpool{dims}d"
    if not isinstance(input, rushlight.Tensor):
        input.size()  # the AttributeError that torch gives
    if dims == 1 and not isinstance(indices, rushlight.Tensor):
        indices.unsqueeze(-1)
    require_tensor(name, indices, 2, "indices")
    kernel = pool.numbers(name, "kernel_size", kernel_size, dims)
    stride = kernel if stride is None else pool.numbers(name, "stride", stride, dims)
    padding = pool.numbers(name, "padding", padding, dims)
    if input.ndim < dims:
        raise IndexError("tuple index out of range")
    size = _unpool_size(input, kernel, stride, padding, output_size)
    if indices.dtype != rushlight.int64:
        shown = f" but got: {type_name(indices.dtype)}" if dims < 3 else ""
        raise RuntimeError(f"elements in indices should be type int64{shown}")
    if input.ndim not in (dims + 1, dims + 2):
        flat = max(dims, 2)
        raise RuntimeError(
            f"Input to max_unpooling{flat}d should be a {flat + 1}d or {flat + 2}d Tensor, but got a "
            "tensor with "
            f"{input.ndim + (dims == 1)} dimensions."
        )
    require_floating(name, f"max_unpool{max(dims, 2)}d", input)
    if dims == 1:
        # As torch, which unpools lines as columns of an image.
        alert_not_deterministic("max_unpooling2d_forward_out")
        return ops.max_unpool(input.unsqueeze(-1), indices.unsqueeze(-1), (*size, 1)).squeeze(-1)
    alert_not_deterministic(f"max_unpooling{len(size)}d_forward_out")
    return ops.max_unpool(input, indices, size)


@functional
def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Puts the elements where max_pool1d found them, and zeros elsewhere.

    >>> import rushlight as torch
    >>> torch.nn.functional.max_unpool1d(torch.tensor([[3.0, 2.0]]), torch.tensor([[1, 2]]), 2)
    tensor([[0., 3., 2., 0.]])
    """
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


@functional
def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Puts the elements where max_pool2d found them, and zeros elsewhere.

    >>> import rushlight as torch
    >>> torch.nn.functional.max_unpool2d(torch.tensor([[[3.0]]]), torch.tensor([[[2]]]), 2)
    tensor([[[0., 0.],
             [3., 0.]]])
    """
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


@functional
def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Puts the elements where max_pool3d found them, and zeros elsewhere.

    >>> import rushlight as torch
    >>> x, where = torch.ones(1, 1, 1, 1), torch.zeros(1, 1, 1, 1, dtype=torch.int64)
    >>> torch.nn.functional.max_unpool3d(x, where, 2).shape
    torch.Size([1, 2, 2, 2])
    """
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)
