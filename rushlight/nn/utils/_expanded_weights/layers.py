"""The functions that take expanded weights: what they hand on to the input, and leave in `grad_sample`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import rushlight
import rushlight.nn.functional as F
from rushlight import _C, Tensor
from rushlight.autograd.function import Function
from rushlight.nn._tuples import _pair, _single, _triple
from rushlight.nn.utils._expanded_weights.expanded_weights_impl import (
    ExpandedWeight,
    implements_per_sample_grads,
)
from rushlight.nn.utils._expanded_weights.expanded_weights_utils import (
    check_arguments,
    forward_helper,
    set_grad_sample_if_exists,
    standard_kwargs,
    sum_over_all_but_batch_and_last_n,
    unexpanded,
)


class _Call:
    """A call of such a function: its arguments by name."""

    def __init__(self, layer: Any, function: Callable, names: Any, values: tuple) -> None:
        args, kwargs = standard_kwargs(names, values)
        self.layer, self.function = layer, function
        self.given = dict(zip(layer.names, args, strict=False)) | kwargs
        self.order = [*layer.names[: len(args)], *kwargs]

    def option(self, name: str, default: Any) -> Any:
        return self.given.get(name, default)

    def without(self, **changed: Any) -> Any:
        """The function of other arguments, of those that are named."""
        return self.function(**(self.given | changed))


class _PerSampleGrad(Function):
    """A function with expanded weights. Subclasses name its parameters, and say what the gradient of the
    input is and, in `weights`, those of each weight, a row for each example: functions of the call, the
    gradient, the input and the weight."""

    names: tuple[str, ...] = ()
    weights: dict[str, Callable] = {}

    def __init_subclass__(cls) -> None:
        cls.forward = staticmethod(functools.partial(_forward, cls))

    @staticmethod
    def check(call: _Call) -> None:
        """Refuses what has no examples in its first dimension."""

    @staticmethod
    def of_input(call: _Call, grad: Tensor, x: Tensor, weights: dict) -> Tensor:
        """Of most it is that of the function with the weights as they are."""
        return _through(lambda x: call.without(input=x, **weights), grad, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        call = ctx.call
        x, *originals = ctx.saved_tensors
        originals = dict(zip(ctx.named, originals, strict=True))
        found = {}
        if ctx.needs_input_grad[2 + call.order.index("input")]:
            found["input"] = call.layer.of_input(call, grad, x, originals)
        for name, compute in call.layer.weights.items():
            if call.given.get(name) is not None:
                of_weight = functools.partial(compute, call, grad, x)
                set_grad_sample_if_exists(call.given[name], of_weight)
        return None, None, *(found.get(name) for name in call.order)


def _forward(layer: Any, ctx: Any, names: Any, function: Callable, *values: Any) -> Any:
    call = ctx.call = _Call(layer, function, names, values)
    layer.check(call)
    x = call.given["input"]
    out = forward_helper(function, (x,), {k: v for k, v in call.given.items() if k != "input"})
    found = {k: call.given[k] for k in layer.weights if isinstance(call.given.get(k), Tensor)}
    ctx.save_for_backward(x, *map(unexpanded, found.values()))
    ctx.named = list(found)
    call.given["input"] = None
    return out


def _through(function: Callable, grad: Tensor, x: Tensor) -> Tensor:
    """The gradient handed on to the input of a function, which may be differentiated in turn."""
    again = rushlight.is_grad_enabled()
    with rushlight.enable_grad():
        x = x if again else x.detach().requires_grad_()
        out = function(x)
    return rushlight.autograd.grad(out, x, grad, create_graph=again)[0]


def _first(x: Tensor, call: _Call) -> Tensor:
    """The examples first: within recurrent layers they may be told to lie along the second dimension."""
    marked = [value for value in call.given.values() if isinstance(value, ExpandedWeight)]
    return x if all(value.batch_first for value in marked) else x.transpose(0, 1)


@implements_per_sample_grads(F.linear)
class LinearPerSampleGrad(_PerSampleGrad):
    """`linear`."""

    names = ("input", "weight", "bias")

    @staticmethod
    def check(call: _Call) -> None:
        x = call.given["input"]
        if isinstance(x, Tensor) and len(x.shape) < 2:
            raise RuntimeError(
                "Input does not have a batch dimension. Expanded Weights expected input of at least rank 2, "
                f"got of rank {len(x.shape)}"
            )

    @staticmethod
    def of_input(call: _Call, grad: Tensor, x: Tensor, weights: dict) -> Tensor:
        return grad.matmul(weights["weight"])

    @staticmethod
    def _of_weight(call: _Call, grad: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        x, grad = _first(x, call), _first(grad, call)
        if x.dim() == 2:
            return grad.unsqueeze(2) * x.unsqueeze(1)
        rows = grad.reshape(grad.shape[0], -1, grad.shape[-1])
        return rows.mT @ x.reshape(x.shape[0], -1, x.shape[-1])

    @staticmethod
    def _of_bias(call: _Call, grad: Tensor, x: Tensor, bias: Tensor) -> Tensor:
        return sum_over_all_but_batch_and_last_n(_first(grad, call), 1)

    weights = {"weight": _of_weight.__func__, "bias": _of_bias.__func__}  # type: ignore[attr-defined]


_SPREAD = {1: _single, 2: _pair, 3: _triple}


@implements_per_sample_grads(F.conv1d)
@implements_per_sample_grads(F.conv2d)
@implements_per_sample_grads(F.conv3d)
class ConvPerSampleGrad(_PerSampleGrad):
    """Convolutions of lines, planes and volumes."""

    names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")

    @staticmethod
    def check(call: _Call) -> None:
        check_arguments(call.function, (call.given["input"],), call.given | {"input": None})
        dims = int(call.function.__name__[4])
        x = call.given["input"]
        if x.dim() != dims + 2:
            raise RuntimeError(
                f"Expanded Weights only support convolution with batched input, got {call.function} with an"
                f"unbatched input of dim {x.dim()}, expected input of dim {dims + 2}"
            )

    @staticmethod
    def _of_weight(call: _Call, grad: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        spread = _SPREAD[x.dim() - 2]
        stride, dilation = spread(call.option("stride", 1)), spread(call.option("dilation", 1))
        padding = call.option("padding", 0)
        if padding == "same":
            sides = [step * (n - 1) for step, n in zip(dilation, weight.shape[2:], strict=True)]
            x = F.pad(x, [n for side in reversed(sides) for n in (side // 2, side - side // 2)])
        padding = spread(0 if isinstance(padding, str) else padding)

        def of_example(x: Tensor, grad: Tensor) -> Tensor:
            return _C.ops.conv_weight_gradient(
                x.conj() if x.is_complex() else x, grad, tuple(weight.shape), stride, padding, dilation,
                call.option("groups", 1),
            )  # fmt: skip

        return rushlight.vmap(of_example)(x.unsqueeze(1), grad.unsqueeze(1))

    @staticmethod
    def _of_bias(call: _Call, grad: Tensor, x: Tensor, bias: Tensor) -> Tensor:
        return grad.flatten(2).sum(2)

    weights = {"weight": _of_weight.__func__, "bias": _of_bias.__func__}  # type: ignore[attr-defined]


@implements_per_sample_grads(F.embedding)
class EmbeddingPerSampleGrad(_PerSampleGrad):
    """`embedding`."""

    names = ("input", "weight", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")

    @staticmethod
    def check(call: _Call) -> None:
        x = call.given["input"]
        if isinstance(x, Tensor) and x.dim() == 1:
            raise RuntimeError(f"Expanded Weights needs an input with a batch size, got a 1D tensor, {x}")

    @staticmethod
    def of_input(call: _Call, grad: Tensor, x: Tensor, weights: dict) -> Any:
        return None

    @staticmethod
    def _of_weight(call: _Call, grad: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        padding = call.option("padding_idx", None)
        if padding is not None:
            padding %= weight.shape[0]
        index = x.flatten(1).unsqueeze(2).expand(-1, -1, weight.shape[1])
        rows = grad.reshape(index.shape)
        if padding is not None:
            rows = rows.masked_fill(index == padding, 0)
        zeros = rows.new_zeros(x.shape[0], *weight.shape)
        return zeros.scatter_add(1, index.long(), rows)

    weights = {"weight": _of_weight.__func__}  # type: ignore[attr-defined]


def _normal(call: _Call, x: Tensor) -> Tensor:
    """What the norm multiplies with its weight."""
    given: dict[str, Any] = {"weight": None, "bias": None, "input": x}
    if call.given.get("running_mean") is not None:
        given["momentum"] = 0.0  # they were updated in the forward
    return call.without(**given)


def _of_scale(call: _Call, grad: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    return (grad * _normal(call, x)).flatten(2).sum(2) if x.dim() > 2 else grad * _normal(call, x)


def _of_shift(call: _Call, grad: Tensor, x: Tensor, bias: Tensor) -> Tensor:
    return grad.flatten(2).sum(2) if grad.dim() > 2 else grad


@implements_per_sample_grads(F.layer_norm)
class LayerNormPerSampleGrad(_PerSampleGrad):
    """`layer_norm`."""

    names = ("input", "normalized_shape", "weight", "bias", "eps")

    @staticmethod
    def check(call: _Call) -> None:
        x, shape = call.given["input"], call.given["normalized_shape"]
        if len(x.shape) == len(shape):
            raise RuntimeError(
                "Expanded Weights: Layer norm should not normalize over batch dimension for per sample "
                f"gradientcomputations but got that normalized shape, {shape}, matched input shape."
            )

    @staticmethod
    def _of_weight(call: _Call, grad: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        return sum_over_all_but_batch_and_last_n(grad * _normal(call, x), weight.dim())

    @staticmethod
    def _of_bias(call: _Call, grad: Tensor, x: Tensor, bias: Tensor) -> Tensor:
        return sum_over_all_but_batch_and_last_n(grad, bias.dim())

    weights = {"weight": _of_weight.__func__, "bias": _of_bias.__func__}  # type: ignore[attr-defined]


@implements_per_sample_grads(F.group_norm)
class GroupNormPerSampleGrad(_PerSampleGrad):
    """`group_norm`."""

    names = ("input", "num_groups", "weight", "bias", "eps")
    weights = {"weight": _of_scale, "bias": _of_shift}


@implements_per_sample_grads(F.instance_norm)
class InstanceNormPerSampleGrad(_PerSampleGrad):
    """`instance_norm`."""

    names = ("input", "running_mean", "running_var", "weight", "bias", "use_input_stats", "momentum", "eps")
    weights = {"weight": _of_scale, "bias": _of_shift}

    @staticmethod
    def of_input(call: _Call, grad: Tensor, x: Tensor, weights: dict) -> Tensor:
        scale = weights.get("weight")
        if scale is not None:
            grad = grad * scale.reshape(-1, *(1,) * (x.dim() - 2))
        return _through(functools.partial(_normal, call), grad, x)
