"""Pooling layers: what nn.functional does, with its settings kept."""

from __future__ import annotations

from collections.abc import Iterable

from rushlight.nn import functional as F
from rushlight.nn.module import Module

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


def _each(value, dims):
    return tuple(value) if isinstance(value, Iterable) else (value,) * dims


class _MaxPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]

    def __init__(
        self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self):
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )

    def _pool(self, pool, input):
        return pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )


class MaxPool1d(_MaxPoolNd):
    """The largest element under a window that slides along the last dimension.

    >>> import rushlight as torch
    >>> torch.nn.MaxPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """

    def forward(self, input):
        return self._pool(F.max_pool1d, input)


class MaxPool2d(_MaxPoolNd):
    """The largest element under a window that slides over height and width.

    >>> import rushlight as torch
    >>> torch.nn.MaxPool2d(2)(torch.ones(1, 3, 6, 6)).shape
    torch.Size([1, 3, 3, 3])
    """

    def forward(self, input):
        return self._pool(F.max_pool2d, input)


class MaxPool3d(_MaxPoolNd):
    """The largest element under a window that slides over depth, height and width.

    >>> import rushlight as torch
    >>> torch.nn.MaxPool3d(2)(torch.ones(1, 3, 6, 6, 6)).shape
    torch.Size([1, 3, 3, 3, 3])
    """

    def forward(self, input):
        return self._pool(F.max_pool3d, input)


class _MaxUnpoolNd(Module):
    _dims = 0

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size = _each(kernel_size, self._dims)
        self.stride = _each(stride if stride is not None else kernel_size, self._dims)
        self.padding = _each(padding, self._dims)

    def _unpool(self, unpool, input, indices, output_size):
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts the elements where MaxPool1d found them, and zeros elsewhere.

    >>> import rushlight as torch
    >>> values, where = torch.nn.MaxPool1d(2, return_indices=True)(torch.tensor([[1.0, 3.0, 2.0, 0.0]]))
    >>> torch.nn.MaxUnpool1d(2)(values, where)
    tensor([[0., 3., 2., 0.]])
    """

    _dims = 1

    def forward(self, input, indices, output_size=None):
        return self._unpool(F.max_unpool1d, input, indices, output_size)


class MaxUnpool2d(_MaxUnpoolNd):
    """Puts the elements where MaxPool2d found them, and zeros elsewhere."""

    _dims = 2

    def forward(self, input, indices, output_size=None):
        return self._unpool(F.max_unpool2d, input, indices, output_size)


class MaxUnpool3d(_MaxUnpoolNd):
    """Puts the elements where MaxPool3d found them, and zeros elsewhere."""

    _dims = 3

    def forward(self, input, indices, output_size=None):
        return self._unpool(F.max_unpool3d, input, indices, output_size)


class _AvgPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of the elements under a window that slides along the last dimension.

    >>> import rushlight as torch
    >>> torch.nn.AvgPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        self.kernel_size = _each(kernel_size, 1)
        self.stride = _each(stride if stride is not None else kernel_size, 1)
        self.padding = _each(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input):
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class _AvgPoolDivided(_AvgPoolNd):
    __constants__ = [*_AvgPoolNd.__constants__, "divisor_override"]

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _pool(self, pool, input):
        return pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPoolDivided):
    """The mean of the elements under a window that slides over height and width.

    >>> import rushlight as torch
    >>> torch.nn.AvgPool2d(3, stride=2)(torch.ones(1, 3, 7, 7)).shape
    torch.Size([1, 3, 3, 3])
    """

    def forward(self, input):
        return self._pool(F.avg_pool2d, input)


class AvgPool3d(_AvgPoolDivided):
    """The mean of the elements under a window that slides over depth, height and width.

    >>> import rushlight as torch
    >>> torch.nn.AvgPool3d(2)(torch.ones(1, 3, 6, 6, 6)).shape
    torch.Size([1, 3, 3, 3, 3])
    """

    def forward(self, input):
        return self._pool(F.avg_pool3d, input)


class _FractionalMaxPoolNd(Module):
    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    _dims = 0

    def __init__(
        self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
    ):
        super().__init__()
        dims, name = self._dims, type(self).__name__
        if dims == 3:
            sizes = kernel_size if isinstance(kernel_size, (tuple, list)) else (kernel_size,)
            if any(isinstance(size, int) and size <= 0 for size in sizes):
                raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        self.kernel_size = _each(kernel_size, dims)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = _each(output_size, dims) if output_size is not None else None
        self.output_ratio = _each(output_ratio, dims) if output_ratio is not None else None
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input):
        pool = F.fractional_max_pool2d if self._dims == 2 else F.fractional_max_pool3d
        return pool(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maxima over windows at random places, spread such that the result has output_size.

    >>> import rushlight as torch
    >>> torch.nn.FractionalMaxPool2d(3, output_ratio=0.5)(torch.ones(1, 3, 20, 20)).shape
    torch.Size([1, 3, 10, 10])
    """

    _dims = 2


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Maxima over windows at random places, spread such that the result has output_size.

    >>> import rushlight as torch
    >>> torch.nn.FractionalMaxPool3d(2, output_size=3)(torch.ones(1, 3, 8, 8, 8)).shape
    torch.Size([1, 3, 3, 3, 3])
    """

    _dims = 3


class _LPPoolNd(Module):
    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self):
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )

    def _pool(self, pool, input):
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPoolNd):
    """The norm of the elements under a window that slides along the last dimension.

    >>> import rushlight as torch
    >>> torch.nn.LPPool1d(2, 2)(torch.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """

    def forward(self, input):
        return self._pool(F.lp_pool1d, input)


class LPPool2d(_LPPoolNd):
    """The norm of the elements under a window that slides over height and width.

    >>> import rushlight as torch
    >>> torch.nn.LPPool2d(2, 2)(torch.ones(1, 1, 2, 2))
    tensor([[[[2.]]]])
    """

    def forward(self, input):
        return self._pool(F.lp_pool2d, input)


class LPPool3d(_LPPoolNd):
    """The norm of the elements under a window that slides over depth, height and width."""

    def forward(self, input):
        return self._pool(F.lp_pool3d, input)


class _AdaptiveAvgPoolNd(Module):
    __constants__ = ["output_size"]

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means over windows chosen such that there are output_size of them.

    >>> import rushlight as torch
    >>> torch.nn.AdaptiveAvgPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    def forward(self, input):
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Means over windows chosen such that the result has output_size; None keeps the input's size.

    >>> import rushlight as torch
    >>> torch.nn.AdaptiveAvgPool2d((1, None))(torch.ones(2, 3, 5, 7)).shape
    torch.Size([2, 3, 1, 7])
    """

    def forward(self, input):
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Means over windows chosen such that the result has output_size."""

    def forward(self, input):
        return F.adaptive_avg_pool3d(input, self.output_size)


class _AdaptiveMaxPoolNd(Module):
    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size, return_indices=False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima over windows chosen such that there are output_size of them.

    >>> import rushlight as torch
    >>> torch.nn.AdaptiveMaxPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """

    def forward(self, input):
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima over windows chosen such that the result has output_size; None keeps the input's size.

    >>> import rushlight as torch
    >>> torch.nn.AdaptiveMaxPool2d(2)(torch.ones(2, 3, 5, 7)).shape
    torch.Size([2, 3, 2, 2])
    """

    def forward(self, input):
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima over windows chosen such that the result has output_size."""

    def forward(self, input):
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)
