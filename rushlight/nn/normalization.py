"""LayerNorm, RMSNorm, GroupNorm, and the two norms over neighbouring channels."""

import rushlight
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class _LocalNorm(Module):
    def __init__(self, size, alpha, beta, k):
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LocalResponseNorm(_LocalNorm):
    """Divides by a power of the mean square over ``size`` neighbouring channels.

    >>> import rushlight as torch
    >>> torch.nn.LocalResponseNorm(2)(torch.ones(1, 3, 4)).shape
    torch.Size([1, 3, 4])
    """

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__(size, alpha, beta, k)

    def forward(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(_LocalNorm):
    """LocalResponseNorm of images as torch's older layer computes it.

    Its sum runs over ``(size - 1) // 2`` channels to either side, and from channel ``(size + 1) // 2`` on
    also over the first channel, which torch's running sum never drops.

    >>> import rushlight as torch
    >>> torch.nn.CrossMapLRN2d(3)(torch.ones(1, 3, 4, 4)).shape
    torch.Size([1, 3, 4, 4])
    """

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1):
        super().__init__(size, alpha, beta, k)

    def forward(self, input):
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        reach = (self.size - 1) // 2
        squares = input * input
        channels = input.size(1)
        rows = []
        for channel in range(channels):
            low, high = max(0, channel - reach), min(channels, channel + reach + 1)
            total = squares[:, low:high].sum(1, keepdim=True)
            rows.append(total + squares[:, :1] if channel > reach else total)
        scale = rushlight.cat(rows, 1) * (self.alpha / self.size) + self.k
        return input * scale.pow(-self.beta)


def _sizes(shape):
    if isinstance(shape, (tuple, list)):
        return tuple(shape)
    from numbers import Integral

    return (shape,) if isinstance(shape, (int, Integral)) else tuple(shape)


class LayerNorm(Module):
    """Normalises over the last dimensions, then scales and shifts each element by a learned number.

    >>> import rushlight as torch
    >>> torch.nn.LayerNorm(2, eps=1e-12)(torch.tensor([[0.0, 2.0]])).tolist()
    [[-1.0, 1.0]]
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self, normalized_shape, eps=1e-05, elementwise_affine=True, bias=True, device=None, dtype=None
    ):
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(rushlight.empty(self.normalized_shape, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)
        if elementwise_affine and bias:
            self.bias = Parameter(rushlight.empty(self.normalized_shape, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Weight 1, bias 0."""
        if self.elementwise_affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(Module):
    """Normalises the channels of each sample in groups, then scales and shifts each channel.

    >>> import rushlight as torch
    >>> torch.nn.GroupNorm(3, 6)(torch.randn(2, 6, 4)).shape
    torch.Size([2, 6, 4])
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(
        self, num_groups, num_channels, eps=1e-05, affine=True, device=None, dtype=None, *, bias=True
    ):
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        if affine:
            self.weight = Parameter(rushlight.empty(num_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)
        if affine and bias:
            self.bias = Parameter(rushlight.empty(num_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Weight 1, bias 0."""
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides by the root mean square of the last dimensions, then scales each element.

    >>> import rushlight as torch
    >>> torch.nn.RMSNorm(2)(torch.tensor([[3.0, 3.0]])).tolist()
    [[1.0, 1.0]]
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(rushlight.empty(self.normalized_shape, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Weight 1."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, input):
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
