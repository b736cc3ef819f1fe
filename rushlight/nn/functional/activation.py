"""Activations, composed of tensor operations.

Where torch fixes the derivative at a kink, the composition selects branches with ``where`` so that ours is
the same: the branch that is not taken contributes exactly zero, and its argument is replaced first where it
could overflow.
"""

import math
import warnings

import rushlight
from rushlight.nn.functional._checks import assign, require_floating, require_tensor, scalar_type

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def relu(input, inplace=False):
    """``max(0, input)``.

    >>> import rushlight as torch
    >>> torch.nn.functional.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return rushlight.relu_(input) if inplace else rushlight.relu(input)


def relu_(input):
    """In-place ``relu``."""
    return rushlight.relu_(input)


def threshold(input, threshold, value, inplace=False):
    """``input`` where it exceeds ``threshold``, elsewhere ``value``.

    >>> import rushlight as torch
    >>> torch.nn.functional.threshold(torch.tensor([0.5, 2.0]), 1, -1)
    tensor([-1.,  2.])
    """
    require_tensor("threshold", input)
    if inplace:
        return threshold_(input, threshold, value)
    return rushlight.where(input <= threshold, input.new_tensor(value), input)


def threshold_(input, threshold_value, value):
    """In-place ``threshold``."""
    return assign(input, lambda x: threshold(x, threshold_value, value))


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """``input`` limited to [min_val, max_val].

    >>> import rushlight as torch
    >>> torch.nn.functional.hardtanh(torch.tensor([-2.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    require_tensor("hardtanh", input)
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _hardtanh(input, min_val, max_val, inplace)


def _hardtanh(input, low, high, inplace):
    if input.dtype == rushlight.bool:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if input.is_complex():
        raise NotImplementedError("clamp is not supported for complex types")
    if inplace:
        return assign(input, lambda x: _hardtanh(x, low, high, False))
    # Not clamp: at the limits themselves the derivative is 0 here and 1 there.
    limited = rushlight.where(input <= low, input.new_tensor(low), input)
    return rushlight.where(input >= high, input.new_tensor(high), limited)


def hardtanh_(input, min_val=-1.0, max_val=1.0):
    """In-place ``hardtanh``."""
    return hardtanh(input, min_val, max_val, inplace=True)


def relu6(input, inplace=False):
    """``min(max(0, input), 6)``.

    >>> import rushlight as torch
    >>> torch.nn.functional.relu6(torch.tensor([-1.0, 7.0]))
    tensor([0., 6.])
    """
    require_tensor("relu6", input)
    return _hardtanh(input, 0, 6, inplace)


def _elu(input, positive, negative, alpha):
    """``positive * x`` above zero, ``alpha * (exp(negative * x) - 1)`` below."""
    below = input <= 0
    curve = rushlight.expm1(rushlight.where(below, input, 0.0) * negative) * alpha
    return rushlight.where(below, curve, input * positive if positive != 1 else input)


def elu(input, alpha=1.0, inplace=False):
    """``input`` above zero, ``alpha * (exp(input) - 1)`` below.

    >>> import rushlight as torch
    >>> torch.nn.functional.elu(torch.tensor([-1.0, 1.0]))
    tensor([-0.6321,  1.0000])
    """
    require_floating("elu", "elu_cpu", input)
    return assign(input, lambda x: _elu(x, 1, 1, alpha)) if inplace else _elu(input, 1, 1, alpha)


def elu_(input, alpha=1.0):
    """In-place ``elu``."""
    return elu(input, alpha, inplace=True)


def selu(input, inplace=False):
    """The self-normalising ``elu``.

    >>> import rushlight as torch
    >>> torch.nn.functional.selu(torch.tensor([-1.0, 1.0]))
    tensor([-1.1113,  1.0507])
    """
    require_floating("selu", "elu_cpu", input)
    if inplace:
        return assign(input, selu)
    return _elu(input, _SELU_SCALE, 1, _SELU_SCALE * _SELU_ALPHA)


def selu_(input):
    """In-place ``selu``."""
    return selu(input, inplace=True)


def celu(input, alpha=1.0, inplace=False):
    """``elu`` with a continuous derivative: ``alpha * (exp(input / alpha) - 1)`` below zero.

    >>> import rushlight as torch
    >>> torch.nn.functional.celu(torch.tensor([-1.0, 1.0]), alpha=2.0)
    tensor([-0.7869,  1.0000])
    """
    require_floating("celu", "elu_cpu", input)
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return (
        assign(input, lambda x: _elu(x, 1, 1 / alpha, alpha)) if inplace else _elu(input, 1, 1 / alpha, alpha)
    )


def celu_(input, alpha=1.0):
    """In-place ``celu``."""
    return celu(input, alpha, inplace=True)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """``input`` above zero, ``negative_slope * input`` below.

    >>> import rushlight as torch
    >>> torch.nn.functional.leaky_relu(torch.tensor([-1.0, 1.0]), 0.1)
    tensor([-0.1000,  1.0000])
    """
    require_floating("leaky_relu", "leaky_relu_cpu", input)
    if inplace:
        return assign(input, lambda x: leaky_relu(x, negative_slope))
    return rushlight.where(input > 0, input, input * negative_slope)


def leaky_relu_(input, negative_slope=0.01):
    """In-place ``leaky_relu``."""
    return leaky_relu(input, negative_slope, inplace=True)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """``leaky_relu`` with a slope drawn for every negative element while training, their mean otherwise.

    >>> import rushlight as torch
    >>> torch.nn.functional.rrelu(torch.tensor([-1.0, 1.0]), 0.1, 0.3)
    tensor([-0.2000,  1.0000])
    """
    require_tensor("rrelu", input)
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    require_floating("rrelu", "rrelu_with_noise_out_cpu", input)
    if inplace:
        return assign(input, lambda x: rrelu(x, lower, upper, True))
    with rushlight.no_grad():
        below = input <= 0
        # torch draws only for these, one after the other, in double precision.
        drawn = rushlight.empty(int(below.sum()), dtype=rushlight.float64).uniform_(lower, upper)
        slope = rushlight.ones_like(input)
        slope[below] = drawn.to(input.dtype)
    return input * slope


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    """In-place ``rrelu``."""
    return rrelu(input, lower, upper, training, inplace=True)


def prelu(input, weight):
    """``leaky_relu`` with learned slopes: one, or one per channel (dimension 1).

    >>> import rushlight as torch
    >>> torch.nn.functional.prelu(torch.tensor([-1.0, 1.0]), torch.tensor([0.25]))
    tensor([-0.2500,  1.0000])
    """
    require_tensor("prelu", input)
    require_tensor("prelu", weight, 2, "weight")
    if input.dtype != weight.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {scalar_type(input.dtype)} and "
            f"{scalar_type(weight.dtype)}"
        )
    if weight.numel() != 1:
        if input.dim() == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.size(1) if input.dim() > 1 else 1
        if weight.numel() != channels:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight.numel()} and channel size = {channels}."
            )
    if weight.dim() > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.dim()}"
        )
    shape = [1] * input.dim()
    if input.dim() > 1:
        shape[1] = -1
    return rushlight.where(input > 0, input, input * weight.reshape(shape))


def glu(input, dim=-1):
    """The first half along ``dim`` times the sigmoid of the second half.

    >>> import rushlight as torch
    >>> torch.nn.functional.glu(torch.tensor([2.0, 0.0]))
    tensor([1.])
    """
    require_tensor("glu", input)
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    if not -input.dim() <= dim < input.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.dim()}, {input.dim() - 1}], but "
            f"got {dim})"
        )
    dim %= input.dim()
    if input.size(dim) % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {input.size(dim)}")
    require_floating("glu", "glu_cpu", input)
    half = input.size(dim) // 2
    return input.narrow(dim, 0, half) * input.narrow(dim, half, half).sigmoid()


def logsigmoid(input):
    """``log(sigmoid(input))`` without overflow.

    >>> import rushlight as torch
    >>> torch.nn.functional.logsigmoid(torch.tensor([0.0, -200.0]))
    tensor([  -0.6931, -200.0000])
    """
    require_floating("log_sigmoid", "log_sigmoid_cpu", input)
    below = input < 0
    # -|x|, selected rather than abs so that the derivative at 0 is one half.
    falling = rushlight.where(below, input, -input)
    return rushlight.where(below, input, 0.0) - rushlight.log1p(falling.exp())


def softplus(input, beta=1.0, threshold=20.0):
    """``log(1 + exp(beta * input)) / beta``, and the identity where ``beta * input`` exceeds ``threshold``.

    >>> import rushlight as torch
    >>> torch.nn.functional.softplus(torch.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """
    require_floating("softplus", "softplus_cpu", input)
    scaled = input * beta
    linear = scaled > threshold
    return rushlight.where(linear, input, rushlight.log1p(rushlight.where(linear, 0.0, scaled).exp()) / beta)


def softsign(input):
    """``input / (1 + |input|)``.

    >>> import rushlight as torch
    >>> torch.nn.functional.softsign(torch.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return input / (input.abs() + 1)


def tanhshrink(input):
    """``input - tanh(input)``.

    >>> import rushlight as torch
    >>> torch.nn.functional.tanhshrink(torch.tensor([1.0]))
    tensor([0.2384])
    """
    return input - input.tanh()


def hardshrink(input, lambd=0.5):
    """``input``, but 0 within [-lambd, lambd].

    >>> import rushlight as torch
    >>> torch.nn.functional.hardshrink(torch.tensor([0.4, 1.0]))
    tensor([0., 1.])
    """
    require_floating("hardshrink", "hardshrink_cpu", input)
    return rushlight.where((input >= -lambd) & (input <= lambd), 0.0, input)


def softshrink(input, lambd=0.5):
    """``input`` moved towards 0 by ``lambd``, and 0 within [-lambd, lambd].

    >>> import rushlight as torch
    >>> torch.nn.functional.softshrink(torch.tensor([-2.0, 0.4, 1.0]))
    tensor([-1.5000,  0.0000,  0.5000])
    """
    require_floating("softshrink", "softshrink_check", input)
    if lambd < 0:
        largest = float(rushlight.finfo(input.dtype).max)
        raise RuntimeError(
            f"lambda must be in range [0, {largest:g}] for input dtype {scalar_type(input.dtype)}, "
            f"but found {lambd:g}"
        )
    moved = rushlight.where(
        input > lambd, input - lambd, rushlight.where(input < -lambd, input + lambd, input)
    )
    return rushlight.where((input >= -lambd) & (input <= lambd), 0.0, moved)


def hardsigmoid(input, inplace=False):
    """``relu6(input + 3) / 6``.

    >>> import rushlight as torch
    >>> torch.nn.functional.hardsigmoid(torch.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    require_floating("hardsigmoid", "hardsigmoid_cpu", input)
    if inplace:
        return assign(input, hardsigmoid)
    return _hardtanh(input + 3, 0, 6, False) / 6


def hardswish(input, inplace=False):
    """``input * relu6(input + 3) / 6``.

    >>> import rushlight as torch
    >>> torch.nn.functional.hardswish(torch.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000, 0.6667, 4.0000])
    """
    require_floating("hardswish", "hardswish_cpu", input)
    if inplace:
        return assign(input, hardswish)
    return input * _hardtanh(input + 3, 0, 6, False) / 6


def sigmoid(input):
    """``1 / (1 + exp(-input))``."""
    return input.sigmoid()


def tanh(input):
    """The hyperbolic tangent."""
    return input.tanh()


def silu(input, inplace=False):
    """``input * sigmoid(input)``.

    >>> import rushlight as torch
    >>> torch.nn.functional.silu(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """
    require_tensor("silu", input)
    if not input.is_complex():
        require_floating("silu", "silu_cpu", input)
    return assign(input, silu) if inplace else input * input.sigmoid()


def mish(input, inplace=False):
    """``input * tanh(softplus(input))``.

    >>> import rushlight as torch
    >>> torch.nn.functional.mish(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8651])
    """
    require_floating("mish", "mish_cpu", input)
    return assign(input, mish) if inplace else input * softplus(input).tanh()


def gelu(input, approximate="none"):
    """``input`` times the normal distribution function of it; "tanh" is the cheaper approximation.

    >>> import rushlight as torch
    >>> torch.nn.functional.gelu(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8413])
    """
    require_tensor("gelu", input)
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    require_floating("gelu", "GeluKernelImpl", input)
    if approximate == "none":
        return input * 0.5 * (1 + rushlight.erf(input * math.sqrt(0.5)))
    inner = math.sqrt(2 / math.pi) * (input + 0.044715 * input * input * input)
    return 0.5 * input * (1 + inner.tanh())


def _implicit_dim(name, ndim):
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an "
        "argument.",
        stacklevel=3,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """Exponentials along ``dim`` divided by their sum.

    >>> import rushlight as torch
    >>> torch.nn.functional.softmax(torch.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    if dim is None:
        dim = _implicit_dim("softmax", input.dim())
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """``softmax(-input)``."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim())
    return softmax(-input, dim, dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """The logarithm of ``softmax``, without overflow.

    >>> import rushlight as torch
    >>> torch.nn.functional.log_softmax(torch.tensor([0.0, 0.0]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim())
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A random one-hot vector, softened; with ``hard`` one-hot in value and soft in gradient.

    >>> import rushlight as torch
    >>> float(torch.nn.functional.gumbel_softmax(torch.zeros(3), hard=True).sum())
    1.0
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    gumbels = -rushlight.empty_like(logits).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = rushlight.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft
