"""Normalisation: layer, rms, batch, group and instance norm.

All of them compute xhat = (x - mean) * rstd over some dimensions and out = xhat * weight + bias. Forward and
gradient are fused primitives; the derivative of a gradient is written once, for all of them, in `_second`.
"""

from __future__ import annotations

import math
import operator

from rushlight import _C
from rushlight.ops._examples import has_batch, known
from rushlight.ops._public import (
    check_tensor,
    function,
    refuse_complex,
    refuse_gradient,
    type_name,
    write_out,
)
from rushlight.ops._rules import derivative
from rushlight.ops.layout import channels_last, channels_last_3d, contiguous_format, is_arranged

ops = _C.ops
Tensor = _C.Tensor


def _second(v, vw, vb, g, x, weight, dims, eps, needs, centred=True):
    """The gradients of a norm's gradient: of (g, x, weight), given those of dx, dw and db (or None).

    With P(u) = rstd * (u - mean(u) - xhat * mean(u * xhat)), which is its own adjoint, the gradient is
    dx = P(g * weight), dw = sum(g * xhat), db = sum(g). The statistics are computed anew from x, so that this
    is differentiable in turn.
    """

    def average(t):
        return t.mean(dims, True)

    deviation = x - average(x) if centred else x
    rstd = (average(deviation * deviation) + eps).rsqrt()
    xhat = deviation * rstd
    u = g if weight is None else g * weight

    def project(t):
        t_xhat = average(t * xhat)
        return rstd * ((t - average(t) if centred else t) - xhat * t_xhat)

    g_needed, x_needed, weight_needed = needs
    to_g = to_x = to_weight = None
    if v is not None and (g_needed or weight_needed):
        projected = project(v)
        to_g = projected if weight is None else projected * weight
        to_weight = g * projected
    if vw is not None:
        to_g = vw * xhat if to_g is None else to_g + vw * xhat
    if vb is not None:
        to_g = vb + 0 * g if to_g is None else to_g + vb
    if x_needed:
        through_xhat = None if vw is None else vw * g
        if v is not None:
            v_xhat, u_xhat = average(v * xhat), average(u * xhat)
            own = -rstd * (v * u_xhat + u * v_xhat)
            through_xhat = own if through_xhat is None else through_xhat + own
            correlation = average(v * u) - v_xhat * u_xhat
            if centred:
                correlation = correlation - average(v) * average(u)
        if through_xhat is not None:
            to_x = project(through_xhat)
        if v is not None:
            to_x = to_x - correlation * rstd * rstd * xhat
    return to_g, to_x, to_weight


def _constants(*statistics):
    """Statistics as the gradient is given them: they depend on the input, but nothing goes back that way."""
    return [t.detach() for t in statistics] if _C.is_grad_enabled() else statistics


def _layer_norm_gradient(g, x, mean, rstd, weight, bias, normalized_shape, eps, needs):
    affine = needs[1] or needs[2]
    mean, rstd = _constants(mean, rstd)
    since = _C.next_sequence()
    dx, dw, db = ops.native_layer_norm_backward(g, x, mean, rstd, weight, len(normalized_shape), eps, affine)
    if _C.is_grad_enabled() and dx.requires_grad:
        _C.name_node((dx,), "NativeLayerNormBackwardBackward0", since, {}, (g, x, mean, rstd, weight, bias))
    return dx, dw if needs[1] else None, db if needs[2] else None


def _rows(t, sizes):
    return None if t is None else t.reshape(sizes)


def _layer_norm_second(g_dx, g_dw, g_db, g, x, weight, dims, eps, affine, needs):
    count, n = x.shape[: x.dim() - dims].numel(), x.shape[x.dim() - dims :].numel()
    if not affine:
        g_dw = g_db = None
    to_g, to_x, to_weight = _second(
        _rows(g_dx, (count, n)),
        _rows(g_dw, (1, n)),
        _rows(g_db, (1, n)),
        _rows(g, (count, n)),
        _rows(x, (count, n)),
        _rows(weight, (1, n)),
        (1,),
        eps,
        (needs[0], needs[1], needs[4]),
    )
    if to_weight is not None:
        to_weight = to_weight.sum(0).reshape(weight.shape) if needs[4] else None
    return _shaped(to_g, x), _shaped(to_x, x), None, None, to_weight


def _shaped(t, x):
    return None if t is None else t.reshape(x.shape)


def _rms_norm_gradient(g, x, rstd, weight, normalized_shape, eps, needs):
    dx, dw = ops.rms_norm_backward(g, x, rstd, weight, len(normalized_shape), eps, needs[1])
    return dx, dw if needs[1] else None


def _rms_norm_second(g_dx, g_dw, g, x, weight, dims, eps, affine, needs):
    count, n = x.shape[: x.dim() - dims].numel(), x.shape[x.dim() - dims :].numel()
    to_g, to_x, to_weight = _second(
        _rows(g_dx, (count, n)),
        _rows(g_dw, (1, n)) if affine else None,
        None,
        _rows(g, (count, n)),
        _rows(x, (count, n)),
        _rows(weight, (1, n)),
        (1,),
        eps,
        (needs[0], needs[1], needs[3]),
        centred=False,
    )
    if to_weight is not None:
        to_weight = to_weight.sum(0).reshape(weight.shape) if needs[3] else None
    return _shaped(to_g, x), _shaped(to_x, x), None, to_weight


def _group_norm_gradient(g_out, g_mean, g_rstd, x, mean, rstd, weight, groups, eps, needs):
    dx = dw = db = None
    if g_out is not None:
        dx, dw, db = ops.native_group_norm_backward(g_out, x, mean, rstd, weight, groups, eps)
    if needs[0] and (g_mean is not None or g_rstd is not None):
        blocks = x.reshape(x.shape[0], groups, math.prod(x.shape[1:]) // groups)
        own = 0 * blocks
        if g_mean is not None:
            own = own + g_mean.unsqueeze(2) / blocks.shape[2]
        if g_rstd is not None:
            slope = -(g_rstd * rstd**3).unsqueeze(2) / blocks.shape[2]
            own = own + slope * (blocks - mean.unsqueeze(2))
        own = own.reshape(x.shape)
        dx = own if dx is None else dx + own
    return dx, dw if needs[1] else None, db if needs[2] else None


def _group_norm_second(g_dx, g_dw, g_db, g, x, weight, groups, eps, needs):
    shape = (x.shape[0], groups, x.shape[1] // groups, math.prod(x.shape[2:]))

    def blocks(t):
        return None if t is None else t.reshape(shape)

    def channels(t):
        return None if t is None else t.reshape(1, groups, -1, 1)

    to_g, to_x, to_weight = _second(
        blocks(g_dx),
        channels(g_dw),
        channels(g_db),
        blocks(g),
        blocks(x),
        channels(weight),
        (2, 3),
        eps,
        (needs[0], needs[1], needs[4]),
    )
    if to_weight is not None:
        to_weight = to_weight.sum((0, 3)).reshape(weight.shape) if needs[4] else None
    return _shaped(to_g, x), _shaped(to_x, x), None, None, to_weight


def _batch_norm_gradient(g, x, mean, rstd, weight, eps, needs):
    dx, dw, db = ops.batch_norm_backward(g, x, *_constants(mean, rstd), weight, eps, True)
    return dx, dw if needs[1] else None, db if needs[2] else None, None, None


def _batch_norm_eval_gradient(g, x, weight, running_mean, running_var, eps, needs):
    dx, dw, db = ops.batch_norm_backward(g, x, running_mean, running_var, weight, eps, False)
    if not (needs[3] or needs[4]):
        return dx, dw if needs[1] else None, db if needs[2] else None, None, None
    # Statistics that want a gradient themselves: rare, so composed.
    shape = (1, -1) + (1,) * (x.dim() - 2)
    dims = [d for d in range(x.dim()) if d != 1]
    scaled = g if weight is None else g * weight.reshape(shape)
    inverse = (running_var + eps).rsqrt()
    to_mean = -scaled.sum(dims) * inverse if needs[3] else None
    to_var = None
    if needs[4]:
        to_var = -0.5 * inverse**3 * (scaled * (x - running_mean.reshape(shape))).sum(dims)
    return dx, dw if needs[1] else None, db if needs[2] else None, to_mean, to_var


def _batch_norm_second(g_dx, g_dw, g_db, g, x, mean, spread, weight, eps, training, needs):
    shape = (1, -1) + (1,) * (x.dim() - 2)
    dims = [d for d in range(x.dim()) if d != 1]

    def channels(t):
        return None if t is None else t.reshape(shape)

    if training:
        wanted = (needs[0], needs[1], needs[4])
        to_g, to_x, to_weight = _second(
            g_dx, channels(g_dw), channels(g_db), g, x, channels(weight), dims, eps, wanted
        )
        if to_weight is not None:
            to_weight = to_weight.sum(dims).reshape(weight.shape) if needs[4] else None
        return to_g, to_x, None, None, to_weight
    # dx = g * weight * rstd, dw = sum(g * (x - mean) * rstd), db = sum(g): linear in each.
    mean, rstd, w = channels(mean), (channels(spread) + eps).rsqrt(), channels(weight)
    total = 0 * g
    to_x = to_weight = None
    if g_dx is not None:
        total = total + (g_dx * rstd if w is None else g_dx * rstd * w)
        to_weight = (g_dx * g * rstd).sum(dims).reshape(weight.shape) if needs[4] else None
    if g_dw is not None:
        total = total + channels(g_dw) * (x - mean) * rstd
        to_x = channels(g_dw) * g * rstd
    if g_db is not None:
        total = total + channels(g_db)
    return total, to_x, None, None, to_weight


derivative("native_layer_norm", _layer_norm_gradient, packs="bias x weight")
derivative("native_layer_norm_backward", _layer_norm_second, undefined=True)
derivative("rms_norm", _rms_norm_gradient, node="MulBackward0")
derivative("rms_norm_backward", _rms_norm_second, undefined=True, node="FusedRmsNormBackwardBackward0")
derivative("native_group_norm", _group_norm_gradient, undefined=True)
derivative("native_group_norm_backward", _group_norm_second, undefined=True)
derivative(
    "batch_norm_train",
    _batch_norm_gradient,
    node="NativeBatchNormBackward0",
    shows="running_mean running_var",
    constant="running_mean running_var",
    packs="x running_mean running_var weight",
)
derivative(
    "batch_norm_eval",
    _batch_norm_eval_gradient,
    node="NativeBatchNormBackward0",
    shows="mean rstd",
    packs="x running_mean running_var weight",
)
derivative("batch_norm_backward", _batch_norm_second, undefined=True, node="NativeBatchNormBackwardBackward0")


@function
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True):
    """Subtract the mean of the last dimensions, divide by their deviation; then scale and shift elementwise.

    >>> rushlight.layer_norm(rushlight.tensor([[0.0, 2.0]]), (2,), eps=0.0)
    tensor([[-1.,  1.]])
    """
    return ops.native_layer_norm(input, weight, bias, normalized_shape, eps)[0]


def _statistics(node, out, values, x, weight, bias):
    """Mean and 1 / deviation as torch returns them: without history, in the parameters' type."""
    first = bias if weight is None else weight
    wide = first is not None and first.dtype != x.dtype
    return _refusing(node, out, values, tuple(v.detach() if wide else v.detach().to(x.dtype) for v in values))


def _refusing(node, out, values, rounded):
    """What is returned for the statistics: torch's node keeps it, so that a write into it is refused."""
    if out.requires_grad and values[0].dtype != rounded[0].dtype:
        kept = {f"result{at}": _C.keep(value.detach()) for at, value in enumerate(rounded, 1)}
        _C.name_node(out, node, 0, kept)
    return rounded


@function
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """layer_norm() with the mean and 1 / deviation it divided by, which carry no gradient.

    >>> out, mean, rstd = rushlight.native_layer_norm(rushlight.tensor([[0.0, 2.0]]), (2,), None, None, 0.0)
    >>> mean
    tensor([[1.]])
    """
    out, mean, rstd = ops.native_layer_norm(input, weight, bias, normalized_shape, eps)
    return out, *_statistics("NativeLayerNormBackward0", out, (mean, rstd), input, weight, bias)


@function
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Divide by the root of the mean square over the last dimensions; then scale elementwise.

    Without eps, it is the smallest step from 1 that the type can make.

    >>> rushlight.rms_norm(rushlight.tensor([[3.0, 3.0]]), (2,), eps=0.0)
    tensor([[1., 1.]])
    """
    recorded = _recorded(input, weight)
    if recorded not in (0, 1, 3) or (isinstance(input, Tensor) and input.dtype is not _FLOAT):
        return _rms_norm(input, normalized_shape, weight, eps, recorded)
    return ops.rms_norm(input, weight, normalized_shape, 2.0**-23 if eps is None else eps)[0]


def _rms_norm(input, normalized_shape, weight, eps, recorded):
    """The same of other types, and where torch's graph keeps something else than the input."""
    dtype = input.dtype
    mixed = weight is not None and weight.dtype != dtype and dtype == _C.float64
    if input.is_complex() or mixed or recorded > 3:
        return _composed_rms_norm(input, normalized_shape, weight, eps)
    if eps is None:
        eps = _EPSILON.get(dtype, 0.0)
    if recorded == 2:  # for its own gradient the weight needs what it is multiplied with
        _check_scale(weight, list(map(operator.index, normalized_shape)))
        wide = input.float() if dtype in _HALF else input
        return (ops.rms_norm(wide, None, normalized_shape, eps)[0] * weight).to(dtype)
    if recorded and dtype in _HALF:  # torch keeps a wider copy: the input may be written to
        input = ops.clone(input)
    return ops.rms_norm(input, weight, normalized_shape, eps)[0]


_recorded = _C.recorded
_FLOAT, _HALF = _C.float32, (_C.float16, _C.bfloat16)
_EPSILON = {_C.float64: 2.0**-52, _C.float32: 2.0**-23, _C.float16: 2.0**-23, _C.bfloat16: 2.0**-23}


def _check_scale(weight, shape):
    if weight is not None and list(weight.shape) != shape:
        raise RuntimeError(
            f"Expected weight to be of same shape as normalized_shape, but got weight of shape "
            f"{list(weight.shape)} and normalized_shape = {shape}"
        )


def _composed_rms_norm(x, normalized_shape, weight, eps):
    if eps is None:
        eps = 2.0**-52 if x.dtype in (_C.float64, _C.complex128) else 2.0**-23
    shape = list(map(operator.index, normalized_shape))
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, "
            "but got normalized_shape = []"
        )
    _check_scale(weight, shape)
    if len(shape) > x.dim():
        raise ValueError(f"Input tensor must have at least {len(shape)} dimensions, but got {x.dim()}")
    if list(x.shape[x.dim() - len(shape) :]) != shape:
        raise RuntimeError(
            f"Given normalized_shape={shape}, expected input with shape [*{str(shape)[1:]}, but got input of "
            f"size{list(x.shape)}"
        )
    dims = tuple(range(-len(shape), 0))
    wide = x.float() if x.dtype in _HALF else x
    result = wide * wide.pow(2).mean(dims, keepdim=True).add(eps).rsqrt()
    return (result if weight is None else result * weight).to(x.dtype)


@function
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True):
    """Normalise each sample's channels in groups; then scale and shift each channel.

    >>> rushlight.group_norm(rushlight.tensor([[0.0, 2.0, 5.0, 5.0]]), 2, eps=1e-12)
    tensor([[-1.,  1.,  0.,  0.]])
    """
    if isinstance(input, Tensor) and input.dim() < 2:
        input.size(1)  # torch's IndexError
    if _recorded(input, weight, bias):  # torch's graph has the copies that its kernel reads
        input, weight, bias = _in_order(input), _in_order(weight), _in_order(bias)
    return ops.native_group_norm(input, weight, bias, num_groups, eps)[0]


def _in_order(x):
    if not isinstance(x, Tensor) or x.is_contiguous():
        return x
    last = {4: channels_last, 5: channels_last_3d}.get(x.dim())
    return x if last is not None and x.is_contiguous(memory_format=last) else x.contiguous()


@function
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """group_norm() of N samples of C channels of HxW elements, with the mean and 1 / deviation of each group.

    >>> x = rushlight.tensor([[0.0, 2.0]])
    >>> rushlight.native_group_norm(x, None, None, 1, 2, 1, 1, 1e-12)[1]
    tensor([[1.]])
    """
    if isinstance(input, Tensor) and N * C * HxW != input.numel():
        _refuse_blocks(input, weight, bias, N, C, HxW, group)
    blocks = input if input.shape[:2] == (N, C) else input.reshape(N, C, HxW)
    out, mean, rstd = ops.native_group_norm(blocks, weight, bias, group, eps)
    first = bias if weight is None else weight
    if first is None or first.dtype == input.dtype:
        rounded = mean.to(input.dtype), rstd.to(input.dtype)
        mean, rstd = _refusing("NativeGroupNormBackward0", out, (mean, rstd), rounded)
    return out if out.shape == input.shape else out.reshape(input.shape), mean, rstd


def _refuse_blocks(input, weight, bias, N, C, HxW, group):
    """Says why an input is not N samples of C channels of HxW elements, in the order torch finds it out."""
    shape = list(input.shape)
    if group > 0 and C % group:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{shape} and num_groups={group}"
        )
    for name, given in (("weight", weight), ("bias", bias)):
        if group > 0 and given is not None and (given.ndim != 1 or given.numel() != C):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got "
                f"{name} of shape {[0] if weight is None else list(weight.shape)} and input of shape {shape}"
            )
    if N < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {int(N)}: {[int(N), group]}")
    if not any(is_arranged(input, format) for format in (contiguous_format, channels_last, channels_last_3d)):
        raise RuntimeError("Expected X.is_contiguous(memory_format) to be true, but got false.")
    raise RuntimeError(
        "Expected X.numel() == N * C * HxW to be true, but got false.\n\n"
        f"  The input has sizes {shape}, not {N} samples of {C} channels of {HxW} elements."
    )


def _check_features(x, training, **given):
    """Refuses running statistics that are missing and parameters of another size than the channels."""
    channels = x.shape[1] if x.dim() > 1 else 0
    for name, value in given.items():
        if value is None:
            if not training and name.startswith("running"):
                raise RuntimeError(f"{name} must be defined in evaluation mode")
        elif value.numel() != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {value.numel()}")


def _check_broadcast(x, *parameters):
    """Refuses parameters of another size as torch does where something is not contiguous. Else torch does not
    look, but reads beyond their end."""
    given = [t for t in parameters if t is not None]
    if not all(t.is_contiguous() for t in (x, *given)):
        for t in given:
            if t.dim() == 1 and t.numel() not in (1, x.size(1)):
                raise RuntimeError(
                    f"The size of tensor a ({x.size(1)}) must match the size of tensor b ({t.numel()}) at "
                    "non-singleton dimension 1"
                )


def _check_running(x, running_mean, running_var, *parameters):
    """Refuses running statistics of another type than the parameters or the input."""
    if not x.is_floating_point():
        raise NotImplementedError(f"\"batch_norm\" not implemented for '{type_name(x.dtype)}'")
    given = [t for t in (*parameters, running_mean, running_var) if t is not None]
    if given[0].dtype != x.dtype:
        if any(t.dtype != _C.float32 for t in given):
            raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
        if x.dtype not in (_C.float16, _C.bfloat16):
            raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
    for t in (running_mean, running_var):
        if given[0].dtype == x.dtype != t.dtype:
            raise RuntimeError(f"expected scalar type {type_name(x.dtype)} but found {type_name(t.dtype)}")
        if t.dim() != 1:
            raise RuntimeError(f"TensorAccessor expected 1 dims but tensor has {t.dim()}")


def _constant(x, *statistics):
    """Running statistics, which may have no tangents beside an input that has one; alone they are ignored."""
    if _C.tangent(x) is not None and any(t is not None and _C.tangent(t) is not None for t in statistics):
        raise RuntimeError(
            "batch_norm is not differentiable wrt running_mean and running_var, they cannot have forward "
            "grad defined"
        )
    return (t if t is None else t.detach() for t in statistics)


def _check_momentum(momentum):
    """A tensor for it is read also where nothing runs."""
    if isinstance(momentum, Tensor) and momentum.is_complex() and not momentum.is_meta:
        refuse_complex(momentum.item(), kind="double")


def _bring_up_to_date(running, now, count, momentum):
    """Moves the running statistics towards those of a batch that has `count` elements in a channel."""
    running, now = (tuple(known(x.detach()) for x in pair) for pair in (running, now))
    if not any(map(_C.is_leveled, (*running, *now))):
        _C.update_running_statistics(*running, *now, count, momentum)
        return
    if any(map(_C.is_leveled, now)) and not all(map(_C.is_leveled, running)):
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be "
            "updated in place, were not batched.\nIf you are using a module and do not need eval mode, "
            "please set `track_running_stats` to be False.If you are using a prebuilt module and do not need "
            "eval mode, please see the functorch website for resources on how to patch your module to work "
            "with vmap"
        )
    for to, value, unbiased in zip(running, now, (1, count / (count - 1)), strict=True):
        to.mul_(1 - momentum).add_(value, alpha=momentum * unbiased)


def _batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps):
    """out, mean, rstd; the running statistics are brought up to date while training."""
    if running_mean is not None or running_var is not None:
        refuse_gradient("native_batch_norm", running_mean=running_mean, running_var=running_var)
        if _C.carries_tangents() and not training:
            running_mean, running_var = _constant(x, running_mean, running_var)
        if running_mean is None or running_var is None:
            raise ValueError("running_mean and running_var must either both be None or neither be None")
        plain = (
            running_mean.dtype == running_var.dtype == x.dtype and running_mean.ndim == running_var.ndim == 1
        )
        if not plain or (weight is not None and weight.dtype != x.dtype):
            _check_running(x, running_mean, running_var, weight, bias)
    if x.dim() < 2:
        if x.numel():
            x.size(1)  # torch's IndexError
        return x + 0, x.new_empty(0), x.new_empty(0)
    if not training:
        return ops.batch_norm_eval(x, weight, bias, running_mean, running_var, eps)
    kept = running_mean, running_var
    if _C.top_level() is not None:  # it is kept for torch's node only, and may be no batch where x is one
        kept = None, None
    apart = any(t is not None and has_batch(t) for t in (weight, bias)) and not has_batch(x)
    parameters = (None, None) if apart else (weight, bias)

    def compute():
        return ops.batch_norm_train(x, *parameters, *kept, eps)

    def update(result):
        if running_mean is not None and x.numel():
            now, count = (result[1], result[3]), x.numel() / x.shape[1]
            _bring_up_to_date((running_mean, running_var), now, count, momentum)

    # Before hooks on saved tensors are shown results: a checkpoint stops at the last of them.
    hooked = _C.top_saved_hooks() is not None
    out, mean, rstd, _ = result = _C.shown_after(compute, update) if hooked else compute()
    if not hooked:
        update(result)
    if apart:  # the statistics are the same for all examples, which have other parameters
        for operation, t in ((ops.mul, weight), (ops.add, bias)):
            out = out if t is None else operation(out, t.reshape(-1, *(1,) * (x.dim() - 2)))
    return out, mean, rstd


@function
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=True):
    """Normalise each channel over the batch, or by the running statistics; then scale and shift it.

    >>> x = rushlight.tensor([[0.0], [2.0]])
    >>> rushlight.batch_norm(x, None, None, None, None, True, 0.1, 1e-12, True)
    tensor([[-1.],
            [ 1.]])
    """
    _check_momentum(momentum)
    check_tensor(input, "batch_norm", "input", 1)
    if not input.numel():  # without a look at the statistics
        result = input.clone() if weight is None else input * weight.select(0, 0)
        return result if bias is None else result + bias.select(0, 0)
    _check_features(
        input, training, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
    )
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@function
def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, *, out=None):
    """batch_norm() with the mean and 1 / deviation of the batch, which are empty out of training.

    >>> x = rushlight.tensor([[0.0], [2.0]])
    >>> rushlight.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-12)[1]
    tensor([1.])
    """
    if not input.numel() and training:
        raise RuntimeError(
            f"input tensor must have at least one element, but got input_sizes = {list(input.shape)}"
        )
    features = {"running_mean": running_mean, "running_var": running_var}
    if input.dim() == 1 and input.numel():
        input.size(1)  # torch's IndexError
    if (running_mean is None) == (running_var is None):
        _check_features(input, training, **features)
    if input.dim() > 1:
        _check_broadcast(input, weight, bias)
    result, mean, rstd = _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    results = result, *_statistics("NativeBatchNormBackward0", result, (mean, rstd), input, weight, bias)
    if out is None:
        return results
    return tuple(write_out(to, each) for to, each in zip(out, results, strict=True))


@function
def instance_norm(
    input,
    weight,
    bias,
    running_mean,
    running_var,
    use_input_stats,
    momentum,
    eps,
    cudnn_enabled=True,
):
    """Normalise each channel of each sample by itself, or by the running statistics.

    >>> x = rushlight.tensor([[[0.0, 2.0]]])
    >>> rushlight.instance_norm(x, None, None, None, None, True, 0.1, 1e-12, True)
    tensor([[[-1.,  1.]]])
    """
    _check_momentum(momentum)
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    n, channels = input.size(0), input.size(1)

    def repeated(t):
        return None if t is None else t.repeat(n)

    for t in (weight, bias, running_mean, running_var):
        if t is not None and t.dim() > 1:
            repeated(t)  # which refuses it
    means, variances = running_mean, running_var
    wanted = input.dtype if weight is None else weight.dtype
    if means is not None and means.dtype != wanted:
        if variances is None:
            raise RuntimeError(
                "Expected a proper Tensor but got None (or an undefined Tensor in C++) for argument #0 'self'"
            )
        means, variances = means.to(wanted), variances.to(wanted)
    weights = repeated(weight), repeated(bias)
    means, variances = repeated(means), repeated(variances)
    out = batch_norm(
        input.contiguous().view(1, n * channels, *input.shape[2:]),
        *weights,
        means,
        variances,
        use_input_stats,
        momentum,
        eps,
        True,
    )
    if use_input_stats:
        with _no_grad():
            if running_mean is not None:
                _replace_statistics(running_mean, means.view(n, channels).mean(0))
            if running_var is not None:
                _replace_statistics(running_var, variances.view(n, channels).mean(0))
    return out.view(input.shape)


def _replace_statistics(running, now):
    """Writes them where no function is transformed: torch takes no notice of that, unless in a batch."""
    top = _C.top_level()
    number = 0 if top is None else top[0]
    at_top = number == _C.highest_level((now,))
    if number and number != _C.highest_level((running,)) and not (at_top and now.batched):
        now = _C.lower_from_level(now, number)
        _C.below_level(number, _replace_statistics, running, now)
    else:
        ops.alias(running).copy_(now)


def _no_grad():
    from rushlight.autograd.grad_mode import no_grad

    return no_grad()
