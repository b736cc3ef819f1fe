"""Activations.

Most are fused primitives. In the composed ones branches are selected with ``where``: the derivative at a kink
is torch's and the branch that is not taken contributes exactly zero.
"""

import functools
import math

import rushlight
from rushlight import _C
from rushlight._dtype_info import extremes
from rushlight._warn import warn
from rushlight.nn.functional._checks import (
    functional,
    number,
    require_floating,
    require_representable,
    require_tensor,
)
from rushlight.ops._again import looked_on, one_node
from rushlight.ops._facts import told
from rushlight.ops._node_names import saving
from rushlight.ops._public import FOUND_DTYPE, refuse_complex, shares_elements, type_name, write_out

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946

ops = _C.ops
_in_place = _C.in_place


@functional
def relu(input, inplace=False):
    """``max(0, input)``.

    >>> import rushlight as torch
    >>> torch.nn.functional.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return input.relu_() if inplace else ops.relu(input)


@functional
def relu_(input):
    """In-place ``relu``."""
    return input.relu_()


@functional
def threshold(input, threshold, value, inplace=False):
    """``input`` where it exceeds ``threshold``, elsewhere ``value``.

    >>> import rushlight as torch
    >>> torch.nn.functional.threshold(torch.tensor([0.5, 2.0]), 1, -1)
    tensor([-1.,  2.])
    """
    require_tensor("threshold", input)
    threshold, value = (x.item() if isinstance(x, _C.Tensor) else x for x in (threshold, value))
    return (_threshold_ if inplace else ops.threshold)(input, threshold, value)


def _threshold_(input, threshold, value):
    written = input
    if shares_elements(input) and not input.requires_grad:
        # A second time changes nothing: an expanded tensor is written as the one before it was expanded.
        sizes = [size if step else 1 for size, step in zip(input.shape, input.stride(), strict=True)]
        written = input.as_strided(sizes, input.stride())
    _in_place(ops.threshold, written, threshold, value)
    return input


@functional
def threshold_(input, threshold, value):
    """In-place ``threshold``."""
    return _threshold_(input, threshold, value)


@functional
def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """``input`` limited to [min_val, max_val].

    >>> import rushlight as torch
    >>> torch.nn.functional.hardtanh(torch.tensor([-2.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    require_tensor("hardtanh", input)
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _between("hardtanh_" if inplace else "hardtanh", input, min_val, max_val, inplace)


def _between(name, input, min_val, max_val, inplace):
    kind = "double" if input.is_floating_point() else "int64_t"
    low = number(name, "T input,N min_val", input, min_val, kind=kind)
    high = number(name, "T input,N min_val,N max_val", input, low, max_val, kind=kind)
    return _hardtanh(input, low, high, inplace)


def _hardtanh(input, low, high, inplace):
    if inplace:
        _C.check_inplace(input)
    if input.dtype == rushlight.bool:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if input.is_complex():
        raise NotImplementedError("clamp is not supported for complex types")
    if not input.is_floating_point():
        low, high = (rushlight.full((), limit, dtype=rushlight.int64).item() for limit in (low, high))
    low = min(low, high)  # crossed ones, which only hardtanh_ takes, leave the upper one everywhere
    if input.dtype == rushlight.uint8 and (low < 0 or high < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    if low == low and high == high:
        require_representable(input, low, high)
    elif input.is_floating_point():  # beside NaN a bound that the dtype does not hold does not matter
        largest = extremes(input.dtype)[1]
        low, high = (math.nan if largest < abs(bound) < math.inf else bound for bound in (low, high))
    return _in_place(ops.hardtanh, input, low, high) if inplace else ops.hardtanh(input, low, high)


def _straight(input):
    """input, such that a gradient that is the same for every input has zeros for derivative, as in torch,
    rather than none."""
    return ops.straight(input) if input.requires_grad and _C.is_grad_enabled() else input


def _taken_over(input, result):
    """The in-place form of a composed function: ``input`` becomes ``result``, with its history."""
    _C.check_inplace(input)
    return _C.become(input, result)


@functional
def hardtanh_(input, min_val=-1.0, max_val=1.0):
    """In-place ``hardtanh``."""
    require_tensor("hardtanh_", input)
    return _between("hardtanh_", input, min_val, max_val, True)


@functional
def relu6(input, inplace=False):
    """``min(max(0, input), 6)``.

    >>> import rushlight as torch
    >>> torch.nn.functional.relu6(torch.tensor([-1.0, 7.0]))
    tensor([0., 6.])
    """
    require_tensor("relu6", input)
    return _hardtanh(input, 0, 6, inplace)


def _without_backward(result, function):
    """Where torch cannot tell the input's sign from the output any more: a backward is refused."""
    return _refusing_backward(
        result,
        f"In-place {function} backward calculation is triggered with a negative slope which is not "
        "supported. This is caused by calling in-place forward function with a negative slope, please "
        "call out-of-place version instead.",
    )


def _refusing_backward(result, sentence):
    """`result`, of which no gradient can be asked."""

    def refuse(grads):
        raise RuntimeError(sentence)

    if result.grad_fn is not None:
        result.grad_fn.register_prehook(refuse)
    return result


def _elu(input, alpha, scale, input_scale, inplace):
    """``scale * x`` above zero, ``alpha * (exp(input_scale * x) - 1)`` below."""
    if inplace and scale < 0:  # the sign of the result is not that of the input
        return _taken_over(input, ops.elu(ops.clone(input), alpha, scale, input_scale))
    if inplace and alpha < 0:
        return _without_backward(_in_place(ops.elu, input, alpha, scale, input_scale), "elu")
    if inplace:
        return _in_place(ops.elu_written, input, alpha, scale, input_scale)
    return ops.elu(input, alpha, scale, input_scale)


@functional
def elu(input, alpha=1.0, inplace=False):
    """``input`` above zero, ``alpha * (exp(input) - 1)`` below.

    >>> import rushlight as torch
    >>> torch.nn.functional.elu(torch.tensor([-1.0, 1.0]))
    tensor([-0.6321,  1.0000])
    """
    require_tensor("elu", input)
    refuse_complex(alpha, input)
    return _elu(input, alpha, 1, 1, inplace)


@functional
def elu_(input, alpha=1, scale=1, input_scale=1):
    """In-place ``elu``, with a factor for all of the result and one for what is below zero."""
    if isinstance(input, _C.Tensor) and input.requires_grad:
        _C.check_inplace(input)  # torch says this before it looks at the dtype
    require_floating("elu_", "elu_cpu", input)
    for given in (alpha, scale, input_scale):
        refuse_complex(given, input)
    if alpha < 0:
        return _without_backward(_in_place(ops.elu, input, alpha * scale, scale, input_scale), "elu")
    return _elu(input, alpha * scale, scale, input_scale, True)


@functional
def selu(input, inplace=False):
    """The self-normalising ``elu``.

    >>> import rushlight as torch
    >>> torch.nn.functional.selu(torch.tensor([-1.0, 1.0]))
    tensor([-1.1113,  1.0507])
    """
    require_tensor("selu", input)
    return _elu(input, _SELU_SCALE * _SELU_ALPHA, _SELU_SCALE, 1, inplace)


@functional
def selu_(input):
    """In-place ``selu``."""
    return selu(input, inplace=True)


@functional
def celu(input, alpha=1.0, inplace=False):
    """``elu`` with a continuous derivative: ``alpha * (exp(input / alpha) - 1)`` below zero.

    >>> import rushlight as torch
    >>> torch.nn.functional.celu(torch.tensor([-1.0, 1.0]), alpha=2.0)
    tensor([-0.7869,  1.0000])
    """
    require_tensor("celu", input)
    inplace = bool(inplace)
    refuse_complex(alpha, input, kind="double")
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    result = _elu(input, alpha, 1, 1 / alpha, inplace)
    if extremes(_C.float32)[1] < abs(float(alpha)) < math.inf:  # torch's gradient takes alpha for a float32
        return _refusing_backward(result, "value cannot be converted to type float without overflow")
    return result


@functional
def celu_(input, alpha=1.0):
    """In-place ``celu``."""
    return celu(input, alpha, inplace=True)


@functional
def leaky_relu(input, negative_slope=0.01, inplace=False):
    """``input`` above zero, ``negative_slope * input`` below.

    >>> import rushlight as torch
    >>> torch.nn.functional.leaky_relu(torch.tensor([-1.0, 1.0]), 0.1)
    tensor([-0.1000,  1.0000])
    """
    require_tensor("leaky_relu", input)
    refuse_complex(negative_slope, input)
    if inplace and negative_slope < 0:
        return _without_backward(_in_place(ops.leaky_relu, input, negative_slope), "leakyReLu")
    if inplace:
        return _in_place(ops.leaky_relu_written, input, negative_slope)
    return ops.leaky_relu(input, negative_slope)


@functional
def leaky_relu_(input, negative_slope=0.01):
    """In-place ``leaky_relu``."""
    return leaky_relu(input, negative_slope, inplace=True)


@functional
def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """``leaky_relu`` with a slope drawn for every negative element while training, their mean otherwise.

    >>> import rushlight as torch
    >>> torch.nn.functional.rrelu(torch.tensor([-1.0, 1.0]), 0.1, 0.3)
    tensor([-0.2000,  1.0000])
    """
    return randomly_leaky(input, lower, upper, training, None, inplace)


_RRELU = "RreluWithNoiseBackward0"


def randomly_leaky(input, lower, upper, training, generator, inplace=False):
    require_tensor("rrelu", input)
    for name, bound in (("lower", lower), ("upper", upper)):
        refuse_complex(bound, kind="double")
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound:g}")
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        both = lower is upper is True  # their sum is True in torch
        slope = (lower + (not both and upper)) / 2
        if not inplace and looked_on(input):  # torch's node keeps factors that were not drawn
            kept = {"noise": rushlight.zeros_like(input), "self": input}
            return one_node(lambda x: leaky_relu(x.contiguous(), slope), (input,), _RRELU, kept, (input,))
        return leaky_relu(input if inplace else input.contiguous(), slope, inplace)
    require_floating("rrelu", "rrelu_with_noise_out_cpu", input)
    if input.dtype == rushlight.float16:
        raise NotImplementedError("\"rrelu_with_noise_out_cpu\" not implemented for 'Half'")
    if input.is_meta:
        return input if inplace else rushlight.empty_like(input)
    if _C.is_leveled(input):
        from rushlight.func._named import refuse_in_batch

        refuse_in_batch("aten::rrelu", input)
    with rushlight.no_grad():
        below = input <= 0
        # torch draws only for these, one after the other, in double precision, between bounds of less.
        wide = rushlight.float64 if input.dtype == rushlight.float64 else rushlight.float32
        bounds = rushlight.tensor([lower, upper], dtype=wide)
        drawn = rushlight.empty(int(below.sum()), dtype=rushlight.float64)
        draw = functools.partial(drawn.uniform_, *bounds.tolist(), generator=generator)
        top = _C.top_level()
        _ = draw() if top is None else _C.below_level(top[0], draw)  # torch takes no notice of it in a batch
        ones = rushlight.ones_like(input, memory_format=rushlight.contiguous_format)
        slope = ones.masked_scatter(below, drawn.to(input.dtype))
    if not inplace and looked_on(input):
        kept = {"noise": slope, "self": input}
        return one_node(lambda x: slope * _straight(x), (input,), _RRELU, kept, (input,))
    return input.mul_(slope) if inplace else _straight(input.contiguous()) * slope


@functional
def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    """In-place ``rrelu``."""
    return randomly_leaky(input, lower, upper, training, generator, inplace=True)


@functional
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
            f"prelu: Type promoting not supported. Got {type_name(input.dtype)} and {type_name(weight.dtype)}"
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
    require_floating("prelu", "prelu_cpu", input)
    if weight.dim() > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.dim()}"
        )
    if weight.dim() == input.dim():
        return ops.prelu(input, weight)
    shape = [1] * input.dim()
    if input.dim() > 1:
        shape[1] = -1
    return ops.prelu(input, weight.reshape(shape))


@functional
def glu(input, dim=-1):
    """The first half along ``dim`` times the sigmoid of the second half.

    >>> import rushlight as torch
    >>> torch.nn.functional.glu(torch.tensor([2.0, 0.0]))
    tensor([1.])
    """
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    if not -input.dim() <= dim < input.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.dim()}, {input.dim() - 1}], but "
            f"got {dim})"
        )
    dim = dim % input.dim()
    if input.size(dim) % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {input.size(dim)}")
    require_floating("glu", "glu_cpu", input)
    half = input.size(dim) // 2
    return input.narrow(dim, 0, half) * input.narrow(dim, half, half).sigmoid()


@functional
def logsigmoid(input, *, out=None):
    """``log(sigmoid(input))`` without overflow.

    >>> import rushlight as torch
    >>> torch.nn.functional.logsigmoid(torch.tensor([0.0, -200.0]))
    tensor([  -0.6931, -200.0000])
    """
    require_tensor("log_sigmoid", input)
    result = ops.log_sigmoid(input) if input.is_contiguous() else _log_sigmoid_of_turned(input)
    if out is None:
        return result
    return write_out(out, result, exact="expected scalar type {result} but found {out}")


@told(node_name=saving("LogSigmoidBackward0", "self", "self", "self"))
def _log_sigmoid_of_turned(input):
    """The result lies in order; torch's node is given the input as it lies."""
    return ops.log_sigmoid(input.contiguous())


@functional
def softplus(input, beta=1, threshold=20, *, out=None):
    """``log(1 + exp(beta * input)) / beta``, and the identity where ``beta * input`` exceeds ``threshold``.

    >>> import rushlight as torch
    >>> torch.nn.functional.softplus(torch.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """
    require_tensor("softplus", input)
    refuse_complex(beta, input)
    result = ops.softplus(input, beta, threshold)
    return result if out is None else write_out(out, result, exact=FOUND_DTYPE)


@functional
def softsign(input):
    """``input / (1 + |input|)``.

    >>> import rushlight as torch
    >>> torch.nn.functional.softsign(torch.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return input / (input.abs() + 1)


@functional
def tanhshrink(input):
    """``input - tanh(input)``.

    >>> import rushlight as torch
    >>> torch.nn.functional.tanhshrink(torch.tensor([1.0]))
    tensor([0.2384])
    """
    return input - input.tanh()


@functional
def hardshrink(input, lambd=0.5, *, out=None):
    """``input``, but 0 within [-lambd, lambd].

    >>> import rushlight as torch
    >>> torch.nn.functional.hardshrink(torch.tensor([0.4, 1.0]))
    tensor([0., 1.])
    """
    require_floating("hardshrink", "hardshrink_cpu", input)
    lambd = number("hardshrink", "T input,N lambd", input, lambd)
    require_representable(input, lambd)
    result = ops.hardshrink(input, lambd)
    return result if out is None else write_out(out, result, exact=FOUND_DTYPE)


@functional
def softshrink(input, lambd=0.5, *, out=None):
    """``input`` moved towards 0 by ``lambd``, and 0 within [-lambd, lambd].

    >>> import rushlight as torch
    >>> torch.nn.functional.softshrink(torch.tensor([-2.0, 0.4, 1.0]))
    tensor([-1.5000,  0.0000,  0.5000])
    """
    require_floating("softshrink", "softshrink_check", input)
    refuse_complex(lambd, kind="double")
    largest = extremes(input.dtype)[1]
    if not 0 <= lambd <= largest:
        raise RuntimeError(
            f"lambda must be in range [0, {largest:g}] for input dtype {type_name(input.dtype)}, "
            f"but found {lambd:g}"
        )
    result = ops.softshrink(input, float(lambd))
    return result if out is None else write_out(out, result, exact=FOUND_DTYPE)


@functional
def hardsigmoid(input, inplace=False):
    """``relu6(input + 3) / 6``.

    >>> import rushlight as torch
    >>> torch.nn.functional.hardsigmoid(torch.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    require_tensor("hardsigmoid", input)
    return _in_place(ops.hardsigmoid, input) if inplace else ops.hardsigmoid(input)


@functional
def hardswish(input, inplace=False):
    """``input * relu6(input + 3) / 6``.

    >>> import rushlight as torch
    >>> torch.nn.functional.hardswish(torch.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000, 0.6667, 4.0000])
    """
    require_tensor("hardswish", input)
    return _in_place(ops.hardswish, input) if inplace else ops.hardswish(input)


@functional
def sigmoid(input):
    """``1 / (1 + exp(-input))``.

    >>> rushlight.nn.functional.sigmoid(rushlight.tensor([0.0]))
    tensor([0.5000])
    """
    return input.sigmoid()


@functional
def tanh(input):
    """The hyperbolic tangent.

    >>> rushlight.nn.functional.tanh(rushlight.tensor([0.0]))
    tensor([0.])
    """
    return input.tanh()


@functional
def silu(input, inplace=False):
    """``input * sigmoid(input)``.

    >>> import rushlight as torch
    >>> torch.nn.functional.silu(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """
    require_tensor("silu", input)
    return _in_place(ops.silu, input) if inplace else ops.silu(input)


@functional
def mish(input, inplace=False):
    """``input * tanh(softplus(input))``.

    >>> import rushlight as torch
    >>> torch.nn.functional.mish(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8651])
    """
    require_tensor("mish", input)
    return _in_place(ops.mish, input) if inplace else ops.mish(input)


@functional
def gelu(input, approximate="none", *, out=None):
    """``input`` times the normal distribution function of it; "tanh" is the cheaper approximation.

    >>> import rushlight as torch
    >>> torch.nn.functional.gelu(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8413])
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    require_floating("gelu", "GeluKernelImpl", input)
    result = ops.gelu(input) if approximate == "none" else ops.gelu_tanh(input)
    return result if out is None else write_out(out, result, exact=FOUND_DTYPE)


def _implicit_dim(name, ndim):
    warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an "
        "argument."
    )
    return 0 if ndim in (0, 1, 3) else 1


@functional
def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """Exponentials along ``dim`` divided by their sum.

    >>> import rushlight as torch
    >>> torch.nn.functional.softmax(torch.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    if dim is None:
        dim = _implicit_dim("softmax", input.dim())
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


@functional
def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """``softmax(-input)``.

    >>> rushlight.nn.functional.softmin(rushlight.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """
    if dim is None:
        dim = _implicit_dim("softmin", input.dim())
    return softmax(-input, dim, dtype=dtype)


@functional
def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """The logarithm of ``softmax``, without overflow.

    >>> import rushlight as torch
    >>> torch.nn.functional.log_softmax(torch.tensor([0.0, 0.0]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim())
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


@functional
def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A random one-hot vector, softened; with ``hard`` one-hot in value and soft in gradient.

    >>> import rushlight as torch
    >>> float(torch.nn.functional.gumbel_softmax(torch.zeros(3), hard=True).sum())
    1.0
    """
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    drawn = rushlight.empty_like(logits, memory_format=rushlight.contiguous_format)
    gumbels = -drawn.exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    nothing = rushlight.zeros_like(logits, memory_format=rushlight.contiguous_format)
    one_hot = nothing.scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft
