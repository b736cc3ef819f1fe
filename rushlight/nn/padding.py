"""Layers that put something around their input: a constant, zeros, its reflection, border or other side."""

from __future__ import annotations

from collections.abc import Iterable

from rushlight.nn import functional as F
from rushlight.nn.module import Module

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


def _each(value, count):
    return tuple(value) if isinstance(value, Iterable) else (value,) * count


class _PadNd(Module):
    __constants__ = ["padding"]
    _dims = 0
    _mode = "constant"

    def __init__(self, padding):
        super().__init__()
        self.padding = _each(padding, 2 * self._dims)

    def forward(self, input):
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def _check_input_dim(self, input):
        least = self._dims + 1
        if input.dim() not in (least, least + 1):
            raise ValueError(f"expected {least}D or {least + 1}D input (got {input.dim()}D input)")

    def forward(self, input):
        self._check_input_dim(input)
        return super().forward(input)


class ConstantPad1d(_ConstantPadNd):
    """`value` around the last dimension.

    >>> import rushlight as torch
    >>> torch.nn.ConstantPad1d((1, 2), 7.0)(torch.ones(1, 2))
    tensor([[7., 1., 1., 7., 7.]])
    """

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """`value` around height and width."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """`value` around depth, height and width."""

    _dims = 3


class ZeroPad1d(ConstantPad1d):
    """Zeros around the last dimension.

    >>> import rushlight as torch
    >>> torch.nn.ZeroPad1d(1)(torch.ones(1, 2))
    tensor([[0., 1., 1., 0.]])
    """

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Zeros around height and width.

    >>> import rushlight as torch
    >>> torch.nn.ZeroPad2d(1)(torch.ones(1, 2, 2)).shape
    torch.Size([1, 4, 4])
    """

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Zeros around depth, height and width."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ReflectionPad1d(_ReflectionPadNd):
    """The reflection of the input around the last dimension.

    >>> import rushlight as torch
    >>> torch.nn.ReflectionPad1d(2)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 2., 1., 2., 3., 2., 1.]])
    """

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """The reflection of the input around height and width."""

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """The reflection of the input around depth, height and width."""

    _dims = 3


class ReplicationPad1d(_ReplicationPadNd):
    """The border of the input repeated around the last dimension.

    >>> import rushlight as torch
    >>> torch.nn.ReplicationPad1d(2)(torch.tensor([[1.0, 2.0]]))
    tensor([[1., 1., 1., 2., 2., 2.]])
    """

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """The border of the input repeated around height and width."""

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """The border of the input repeated around depth, height and width."""

    _dims = 3


class CircularPad1d(_CircularPadNd):
    """The other side of the input around the last dimension.

    >>> import rushlight as torch
    >>> torch.nn.CircularPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3., 1.]])
    """

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """The other side of the input around height and width."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """The other side of the input around depth, height and width."""

    _dims = 3
