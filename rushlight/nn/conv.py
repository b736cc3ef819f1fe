"""Convolutional layers, plain and transposed, and those that learn their number of channels."""

from __future__ import annotations

import math
from collections.abc import Iterable

import rushlight
from rushlight._warn import warn
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.lazy import LazyModuleMixin
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter, UninitializedParameter

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]

_MODES = {"zeros", "reflect", "replicate", "circular"}
_PADDINGS = {"same", "valid"}


def _each(value, dims):
    return tuple(value) if isinstance(value, Iterable) else (value,) * dims


class _ConvNd(Module):
    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        bias,
        padding_mode,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in _PADDINGS:
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {_PADDINGS}")
            if padding == "same" and any(step != 1 for step in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _MODES:
            raise ValueError(f"padding_mode must be one of {_MODES}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._amounts()
        if transposed:
            shape = (in_channels, out_channels // groups, *kernel_size)
        else:
            shape = (out_channels, in_channels // groups, *kernel_size)
        self.weight = Parameter(rushlight.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(rushlight.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _amounts(self):
        """How much to pad with, as F.pad takes it: the last dimension first, left and right."""
        if not isinstance(self.padding, str):
            return tuple(n for n in reversed(self.padding) for _ in range(2))
        amounts = [0, 0] * len(self.kernel_size)
        if self.padding == "same":
            pairs = list(zip(self.dilation, self.kernel_size, strict=False))  # the weight shows what is amiss
            for place, (step, size) in enumerate(reversed(pairs)):
                total = step * (size - 1)
                amounts[2 * place] = total // 2
                amounts[2 * place + 1] = total - total // 2
        return amounts

    def reset_parameters(self):
        """Draw the weights anew: uniformly within one over the root of the terms of a sum."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self):
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        )
        if self.padding != (0,) * len(self.padding):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state):
        super().__setstate__(state)
        if not hasattr(self, "padding_mode"):
            self.padding_mode = "zeros"


def _conv_class(dims):
    # Looked up at each call: counters of operations put their own functions in its place.
    name = f"conv{dims}d"

    class Conv(_ConvNd):
        def __init__(
            self,
            in_channels,
            out_channels,
            kernel_size,
            stride=1,
            padding=0,
            dilation=1,
            groups=1,
            bias=True,
            padding_mode="zeros",
            device=None,
            dtype=None,
        ):
            super().__init__(
                in_channels,
                out_channels,
                _each(kernel_size, dims),
                _each(stride, dims),
                padding if isinstance(padding, str) else _each(padding, dims),
                _each(dilation, dims),
                False,
                (0,) * dims,
                groups,
                bias,
                padding_mode,
                device,
                dtype,
            )

        def _conv_forward(self, input, weight, bias):
            convolve = getattr(F, name)
            if self.padding_mode != "zeros":
                padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
                return convolve(padded, weight, bias, self.stride, 0, self.dilation, self.groups)
            return convolve(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)

        def forward(self, input):
            return self._conv_forward(input, self.weight, self.bias)

        __init__.__qualname__, forward.__qualname__ = f"Conv{dims}d.__init__", f"Conv{dims}d.forward"

    return Conv


class Conv1d(_conv_class(1)):  # type: ignore[misc]
    """The correlation of signals (N, C, L) with learned kernels.

    >>> import rushlight as torch
    >>> layer = torch.nn.Conv1d(3, 8, kernel_size=5, padding=2)
    >>> layer
    Conv1d(3, 8, kernel_size=(5,), stride=(1,), padding=(2,))
    >>> layer(torch.ones(2, 3, 10)).shape
    torch.Size([2, 8, 10])
    """


class Conv2d(_conv_class(2)):  # type: ignore[misc]
    """The correlation of images (N, C, H, W) with learned kernels.

    >>> import rushlight as torch
    >>> layer = torch.nn.Conv2d(3, 8, kernel_size=3, padding="same")
    >>> layer(torch.ones(2, 3, 10, 10)).shape
    torch.Size([2, 8, 10, 10])
    """


class Conv3d(_conv_class(3)):  # type: ignore[misc]
    """The correlation of volumes (N, C, D, H, W) with learned kernels.

    >>> import rushlight as torch
    >>> torch.nn.Conv3d(3, 8, kernel_size=3)(torch.ones(2, 3, 4, 4, 4)).shape
    torch.Size([2, 8, 2, 2, 2])
    """


class _ConvTransposeNd(_ConvNd):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        bias,
        padding_mode,
        device=None,
        dtype=None,
    ):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            transposed,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(
        self, input, output_size, stride, padding, kernel_size, num_spatial_dims, dilation=None
    ):
        """What has to be added on one side for the result to have the size asked for."""
        if output_size is None:
            return self.output_padding
        dims, dilation = num_spatial_dims, dilation or (1,) * num_spatial_dims
        before = 2 if input.dim() == dims + 2 else 1
        if len(output_size) == before + dims:
            output_size = output_size[before:]
        if len(output_size) != dims:
            raise ValueError(
                f"ConvTranspose{dims}D: for {input.dim()}D input, output_size must have {dims} or "
                f"{before + dims} elements (got {len(output_size)})"
            )
        least = [
            (n - 1) * step - 2 * pad + spread * (size - 1) + 1
            for n, step, pad, spread, size in zip(
                input.shape[before:], stride, padding, dilation, kernel_size, strict=True
            )
        ]
        most = [n + step - 1 for n, step in zip(least, stride, strict=True)]
        for size, low, high in zip(output_size, least, most, strict=True):
            if not low <= size <= high:
                raise ValueError(
                    f"requested an output size of {output_size}, but valid sizes range from {least} to "
                    f"{most} "
                    f"(for an input of {input.shape[2:]})"
                )
        return [size - low for size, low in zip(output_size, least, strict=True)]


class _ConvTransposeMixin(_ConvTransposeNd):
    """An old name of the class above, which libraries still look for."""

    def __init__(self, *args, **kwargs):
        warn(
            "`_ConvTransposeMixin` is a deprecated internal class. Please consider using public APIs.",
            FutureWarning,
        )
        super().__init__(*args, **kwargs)


def _transposed_class(dims):
    name = f"conv_transpose{dims}d"

    class ConvTranspose(_ConvTransposeNd):
        def __init__(
            self,
            in_channels,
            out_channels,
            kernel_size,
            stride=1,
            padding=0,
            output_padding=0,
            groups=1,
            bias=True,
            dilation=1,
            padding_mode="zeros",
            device=None,
            dtype=None,
        ):
            super().__init__(
                in_channels,
                out_channels,
                _each(kernel_size, dims),
                _each(stride, dims),
                _each(padding, dims),
                _each(dilation, dims),
                True,
                _each(output_padding, dims),
                groups,
                bias,
                padding_mode,
                device,
                dtype,
            )

        def forward(self, input, output_size=None):
            extra = self._output_padding(
                input, output_size, self.stride, self.padding, self.kernel_size, dims, self.dilation
            )
            return getattr(F, name)(
                input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
            )

    return ConvTranspose


class ConvTranspose1d(_transposed_class(1)):  # type: ignore[misc]
    """The adjoint of Conv1d: every element spreads a learned kernel over the output.

    >>> import rushlight as torch
    >>> torch.nn.ConvTranspose1d(3, 8, 2, stride=2)(torch.ones(2, 3, 10)).shape
    torch.Size([2, 8, 20])
    """


class ConvTranspose2d(_transposed_class(2)):  # type: ignore[misc]
    """The adjoint of Conv2d: every pixel spreads a learned kernel over the output.

    output_size, in a call, picks one of the sizes that a strided convolution would bring to the input's.

    >>> import rushlight as torch
    >>> layer = torch.nn.ConvTranspose2d(3, 8, 3, stride=2, padding=1)
    >>> layer(torch.ones(2, 3, 5, 5)).shape, layer(torch.ones(2, 3, 5, 5), output_size=(10, 10)).shape
    (torch.Size([2, 8, 9, 9]), torch.Size([2, 8, 10, 10]))
    """


class ConvTranspose3d(_transposed_class(3)):  # type: ignore[misc]
    """The adjoint of Conv3d: every voxel spreads a learned kernel over the output.

    >>> import rushlight as torch
    >>> torch.nn.ConvTranspose3d(3, 8, 2)(torch.ones(2, 3, 4, 4, 4)).shape
    torch.Size([2, 8, 5, 5, 5])
    """


class _LazyConvNd(LazyModuleMixin):
    """A convolution that takes in_channels from its first input."""

    def _lazily(self, out_channels, bias, device, dtype, **settings):
        # Without channels there is nothing to initialise yet.
        self._start(**settings)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def _start(self, **settings):
        super().__init__(0, 0, bias=False, **settings)

    def reset_parameters(self):
        """Draw the weights anew, once there are any."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs):
        """Take in_channels from the input."""
        if not self.has_uninitialized_params():
            return
        dims = len(self.kernel_size)
        if input.dim() not in (dims + 1, dims + 2):
            raise RuntimeError(
                f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to "
                f"{type(self).__name__}, but "
                f"got input of size: {input.shape}"
            )
        self.in_channels = input.shape[1] if input.dim() == dims + 2 else input.shape[0]
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        if self.transposed:
            shape = (self.in_channels, self.out_channels // self.groups, *self.kernel_size)
        else:
            shape = (self.out_channels, self.in_channels // self.groups, *self.kernel_size)
        self.weight.materialize(shape)
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


def _lazy_class(dims, base):
    class Lazy(_LazyConvNd, base):
        cls_to_become = base

        def __init__(
            self,
            out_channels,
            kernel_size,
            stride=1,
            padding=0,
            dilation=1,
            groups=1,
            bias=True,
            padding_mode="zeros",
            device=None,
            dtype=None,
        ):
            self._lazily(
                out_channels,
                bias,
                device,
                dtype,
                kernel_size=kernel_size,
                stride=stride,
                padding=padding,
                dilation=dilation,
                groups=groups,
                padding_mode=padding_mode,
            )

    return Lazy


def _lazy_transposed_class(dims, base):
    class Lazy(_LazyConvNd, base):
        cls_to_become = base

        def __init__(
            self,
            out_channels,
            kernel_size,
            stride=1,
            padding=0,
            output_padding=0,
            groups=1,
            bias=True,
            dilation=1,
            padding_mode="zeros",
            device=None,
            dtype=None,
        ):
            self._lazily(
                out_channels,
                bias,
                device,
                dtype,
                kernel_size=kernel_size,
                stride=stride,
                padding=padding,
                output_padding=output_padding,
                groups=groups,
                dilation=dilation,
                padding_mode=padding_mode,
            )

    return Lazy


class LazyConv1d(_lazy_class(1, Conv1d)):  # type: ignore[misc]
    """A Conv1d that learns in_channels from its first input.

    >>> import rushlight as torch
    >>> torch.nn.LazyConv1d(8, 3)(torch.ones(2, 3, 10)).shape
    torch.Size([2, 8, 8])
    """


class LazyConv2d(_lazy_class(2, Conv2d)):  # type: ignore[misc]
    """A Conv2d that learns in_channels from its first input.

    >>> import rushlight as torch
    >>> layer = torch.nn.LazyConv2d(8, 3)
    >>> layer(torch.ones(2, 3, 10, 10)).shape
    torch.Size([2, 8, 8, 8])
    >>> layer
    Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1))
    """


class LazyConv3d(_lazy_class(3, Conv3d)):  # type: ignore[misc]
    """A Conv3d that learns in_channels from its first input."""


class LazyConvTranspose1d(_lazy_transposed_class(1, ConvTranspose1d)):  # type: ignore[misc]
    """A ConvTranspose1d that learns in_channels from its first input."""


class LazyConvTranspose2d(_lazy_transposed_class(2, ConvTranspose2d)):  # type: ignore[misc]
    """A ConvTranspose2d that learns in_channels from its first input."""


class LazyConvTranspose3d(_lazy_transposed_class(3, ConvTranspose3d)):  # type: ignore[misc]
    """A ConvTranspose3d that learns in_channels from its first input."""
