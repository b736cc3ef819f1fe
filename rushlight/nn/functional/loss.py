"""Losses that compare an input with a target of the same shape."""

import math

import rushlight
from rushlight import _C
from rushlight._signatures import check_call
from rushlight._type_names import type_name as signature_name
from rushlight._warn import warn
from rushlight.nn.functional._checks import functional, require_floating, require_tensor
from rushlight.nn.functional._reduction import check_reduction, reduced, reduction_of
from rushlight.nn.functional.activation import logsigmoid
from rushlight.ops._examples import somewhere
from rushlight.ops._public import C_NAMES, refuse_gradient, type_name
from rushlight.ops.loss import mse_loss as _mse_loss
from rushlight.ops.loss import smooth_l1_loss as _smooth_l1_loss


def _alike(input, target):
    """Both in one shape, with torch's warning if they were not."""
    if target.size() == input.size():
        return input, target
    warn(
        f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). "
        "This will likely lead to incorrect results due to broadcasting. Please ensure they have the "
        "same size."
    )
    return rushlight.broadcast_tensors(input, target)


def _difference(function, kernel, input, target):
    """input - target, which must be of floating-point numbers. Booleans are converted, not refused."""
    if _C.bool in (input.dtype, target.dtype):
        wide = rushlight.result_type(input, target)
        input, target = input.to(wide), target.to(wide)
        require_floating(function, kernel, input)
    difference = input - target
    require_floating(function, kernel, difference)
    return difference


def _check_cast(result, output):
    """Refuses to write numbers of one dtype in place of another's that is of a lower kind."""
    if not rushlight.can_cast(result, output):
        raise RuntimeError(
            f"result type {type_name(result)} can't be cast to the desired output type {type_name(output)}"
        )


def _in_place(loss, weight):
    """loss * weight, where torch writes it in place of the loss."""
    weighted = loss * weight
    if weighted.shape != loss.shape:
        raise RuntimeError(
            f"output with shape {list(loss.shape)} doesn't match the broadcast shape {list(weighted.shape)}"
        )
    if weighted.dtype == loss.dtype:
        return weighted
    _check_cast(weighted.dtype, loss.dtype)
    return weighted.to(loss.dtype)


def _weighted(loss, weight, size, reduction, mean_over_weight):
    if weight is None:
        return reduced(loss, reduction)
    if weight.size() != size:
        raise ValueError("Weights and input must have the same size.")
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")
    loss = loss * weight
    if reduction == "mean" and mean_over_weight:
        return loss.sum() / weight.sum()
    return reduced(loss, reduction)


@functional
def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The squared difference.

    >>> import rushlight as torch
    >>> torch.nn.functional.mse_loss(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 1.0]))
    tensor(2.5000)
    """
    if size_average is not None or reduce is not None:
        reduction = reduction_of(size_average, reduce, reduction)
    size = input.size()
    input, target = _alike(input, target)
    if weight is None:
        reduction = check_reduction(reduction)
    if weight is None and input.is_floating_point():
        common = rushlight.result_type(input, target)
        if target.dtype != input.dtype == common and not target.requires_grad:
            target = target.to(common)
    elif weight is None and target.is_floating_point() and not input.is_complex():
        input = input.to(target.dtype)
    if weight is None and input.is_floating_point() and target.is_floating_point():
        return _mse_loss(input, target, reduction)
    difference = _difference("mse_loss", "mse_cpu", input, target)
    return _weighted(difference * difference, weight, size, reduction, mean_over_weight=True)


@functional
def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The absolute difference.

    >>> import rushlight as torch
    >>> torch.nn.functional.l1_loss(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 1.0]))
    tensor(1.5000)
    """
    if size_average is not None or reduce is not None:
        reduction = reduction_of(size_average, reduce, reduction)
    size = input.size()
    input, target = _alike(input, target)
    if weight is None:
        reduction = check_reduction(reduction)
    return _weighted((input - target).abs(), weight, size, reduction, mean_over_weight=True)


@functional
def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """Squared below ``beta``, absolute above it.

    >>> import rushlight as torch
    >>> torch.nn.functional.smooth_l1_loss(torch.tensor([0.5, 3.0]), torch.zeros(2), reduction="none")
    tensor([0.1250, 2.5000])
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if input.size() != target.size():
        return smooth_l1_loss(*_alike(input, target), reduction=reduction, beta=beta)
    reduction = check_reduction(reduction)
    if not beta >= 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return reduced((input - target).abs(), reduction)
    if input.dtype == target.dtype and input.is_floating_point():
        return _smooth_l1_loss(input, target, reduction, float(beta))
    difference = _difference("smooth_l1_loss", "smooth_l1_cpu", input, target)
    return reduced(_C.ops.smooth_absolute(difference, float(beta)), reduction)


@functional
def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Half the square below ``delta``, ``delta`` times the absolute difference above it.

    >>> import rushlight as torch
    >>> torch.nn.functional.huber_loss(torch.tensor([0.5, 3.0]), torch.zeros(2), reduction="none", delta=2.0)
    tensor([0.1250, 4.0000])
    """
    size = input.size()
    if size != target.size():
        input, target = _alike(input, target)
        if weight is None:
            return huber_loss(input, target, reduction, delta)
    if weight is None:
        reduction = check_reduction(reduction)
    if not delta > 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if input.dtype != target.dtype:
        _check_cast(rushlight.result_type(input, target), input.dtype)
    elif delta == 1 and weight is None and input.is_floating_point() and input.shape == target.shape:
        return _smooth_l1_loss(input, target, reduction, 1.0)
    difference = _difference("huber_loss", "huber_cpu", input, target)
    narrow = difference.dtype in (rushlight.float16, rushlight.bfloat16)
    if delta > rushlight.finfo(rushlight.float32 if narrow else difference.dtype).max:
        loss = 0.5 * difference * difference
    elif delta == 1:
        loss = _C.ops.smooth_absolute(difference, 1)
    elif 1e-3 < delta < 1e3 and not narrow:
        loss = _C.ops.smooth_absolute(difference, delta) * delta
    else:  # a quotient by `delta` that is multiplied by it again would lose its digits
        difference, delta = difference.float() if narrow else difference, float(delta)
        distance = difference.abs()
        line = delta * (distance - 0.5 * delta)
        loss = rushlight.where(distance <= delta, 0.5 * difference * difference, line)
    return _weighted(loss.to(input.dtype), weight, size, reduction, mean_over_weight=False)


@functional
def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Minus the log likelihood of outcomes ``target`` under probabilities ``input``; logarithms end at -100.

    >>> import rushlight as torch
    >>> torch.nn.functional.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([1.0]))
    tensor(0.6931)
    """
    reduction = check_reduction(reduction_of(size_average, reduce, reduction))
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
            "deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        size = rushlight.broadcast_shapes(target.size(), weight.size())
        weight = weight.expand(size)
        refuse_gradient("binary_cross_entropy", weight=weight)
    if target.dtype != input.dtype:
        raise RuntimeError(f"Found dtype {type_name(target.dtype)} but expected {type_name(input.dtype)}")
    require_floating("binary_cross_entropy", "binary_cross_entropy", input)
    if input.numel() and not input.is_meta:
        for name, values in (("input", input), ("target", target)):
            within = _C.are_within_unit(values)
            if within is None:
                values = values.detach()
                within = not somewhere(~((values >= 0) & (values <= 1)))  # nor are they if one is NaN
            if not within:
                raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    loss = _binary_cross_entropy(input, target)
    return reduced(loss if weight is None else _in_place(loss, weight), reduction)


_LEAST = 9.999999960041972e-13  # 1e-12 as torch has it, in float32


def _binary_cross_entropy(input, target):
    inside = input * (1 - input) >= _LEAST
    safe = rushlight.where(inside, input, 0.5)
    loss = (target - 1) * rushlight.log1p(-safe) - target * safe.log()
    if inside.is_meta or not somewhere(~inside):
        return loss
    # At 0 and 1 torch limits the logarithms to -100 and the derivative's denominator.
    at = input.detach()
    low = rushlight.log1p(-at).clamp(min=-100)
    high = at.log().clamp(min=-100)
    edge = (target - 1) * low - target * high + (at - target.detach()) / _LEAST * (input - at)
    return rushlight.where(inside, loss, edge)


@functional
def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """``binary_cross_entropy`` of ``sigmoid(input)``, without overflow.

    >>> import rushlight as torch
    >>> torch.nn.functional.binary_cross_entropy_with_logits(torch.zeros(2), torch.tensor([0.0, 1.0]))
    tensor(0.6931)
    """
    reduction = check_reduction(reduction_of(size_average, reduce, reduction))
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    refuse_gradient("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    if pos_weight is not None:
        log_probability = logsigmoid(input)
        log_weight = 1 + (pos_weight - 1) * target
        _check_cast(rushlight.result_type(log_probability, log_weight), log_probability.dtype)
        log_probability = log_probability * log_weight
    elif not input.is_floating_point():
        logsigmoid(input)  # which refuses it, before anything is said of the target
    if target.dtype == _C.bool:
        target - target  # refused: torch's 1 is a boolean
    others = 1 - target
    if not (others.is_floating_point() or others.is_complex()):
        raise RuntimeError(
            f"result type {type_name(input.dtype)} can't be cast to the desired output type "
            f"{type_name(target.dtype)}"
        )
    # The dtype is the target's, as where torch computes in its place.
    loss = others * input
    if pos_weight is None:  # last: its gradient is the first, and the sum lies as the first does
        log_probability = logsigmoid(input)
    loss = (loss - log_probability).to(target.dtype)
    if weight is None:
        return reduced(loss, reduction)
    return reduced(_in_place(loss, weight), reduction)


@functional
def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """The Kullback-Leibler divergence of ``target`` from ``input``, which holds logarithms.

    >>> import rushlight as torch
    >>> torch.nn.functional.kl_div(torch.tensor([[0.0]]), torch.tensor([[1.0]]), reduction="batchmean")
    tensor(0.)
    """
    asked = size_average is None and reduce is None  # by the name that is to mean something else
    reduction = reduction_of(size_average, reduce, reduction)
    if asked and reduction == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support "
            "size.'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next major release."
        )
    if reduction != "batchmean":
        reduction = check_reduction(reduction)
    require_tensor("kl_div", input)
    for value in (input, target):
        if value.is_complex():
            raise RuntimeError("kl_div: Complex inputs not supported.")
        if not value.is_floating_point():
            raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        loss = target.exp() * (target - input)
    else:
        product = target * input  # before the other, as in torch: their gradients follow each other
        loss = rushlight.xlogy(target, target) - product
    if reduction == "batchmean":
        return loss.sum() / (input.size(0) if input.dim() else 1)
    return reduced(loss, reduction)


@functional
def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    """The negative log likelihood of counts ``target`` at rate ``exp(input)``, or ``input``.

    >>> import rushlight as torch
    >>> torch.nn.functional.poisson_nll_loss(torch.tensor([0.0]), torch.tensor([1.0]))
    tensor(1.)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not a valid value for reduction")
    require_tensor("poisson_nll_loss", input)
    product = target * (input if log_input else (input + eps).log())  # before the other, as in torch
    loss = (input.exp() if log_input else input) - product
    if full:
        if target.dtype == rushlight.bool:
            loss = loss - target  # which is refused
        loss = loss + _log_factorial(target)
    return reduced(loss, reduction)


def _log_factorial(count):
    """Stirling's approximation, and 0 up to 1. There, no gradient comes from what was not used: 0 times the
    infinite slope of log(0) would be NaN."""
    few = count <= 1
    if count.requires_grad and rushlight.is_grad_enabled():
        count = count.view_as(count)
        count.register_hook(lambda grad: grad if grad is None else grad.masked_fill(few, 0))
    half = 0.5 * (2 * math.pi * count).log()  # first, as in torch
    stirling = count * count.log() - count + half
    return stirling.masked_fill(few, 0)


@functional
def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """The negative log likelihood of ``target`` under normals of mean ``input`` and variance ``var``.

    >>> import rushlight as torch
    >>> torch.nn.functional.gaussian_nll_loss(torch.zeros(1), torch.ones(1), torch.ones(1))
    tensor(0.5000)
    """
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = rushlight.ones_like(input) * var
    else:
        negative = var < 0
        if not isinstance(negative, rushlight.Tensor):
            check_call("any", "", negative)
        if somewhere(negative):
            raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif input.dim() != var.dim() or sum(v for n, v in zip(input.size(), var.size()) if n != v) != 1:
            # One dimension of var may have size 1: one variance for all of it.
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    if not var.is_floating_point():
        raise RuntimeError(f"result type Float can't be cast to the desired output type {C_NAMES[var.dtype]}")
    # The lower limit guards the values; the gradient goes through as if it were not there.
    if eps is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if not (
        isinstance(eps, (rushlight.Tensor, complex))
        or (hasattr(eps, "__float__") and eps.__hash__ is not None)
    ):
        given = f"min={signature_name(eps)}, "
        raise TypeError(
            f"clamp_() received an invalid combination of arguments - got ({given}), but expected one of:"
        )
    var = var.clone()
    with rushlight.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)


@functional
def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """``log(1 + exp(-target * input))`` for targets of 1 and -1.

    >>> import rushlight as torch
    >>> torch.nn.functional.soft_margin_loss(torch.tensor([0.0]), torch.tensor([1.0]))
    tensor(0.6931)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    reduction = check_reduction(reduction)
    require_tensor("soft_margin_loss", input)
    refuse_gradient("soft_margin_loss", target=target)
    alike = input.dtype == target.dtype and input.shape == target.shape
    if reduction != "none" and alike:  # the gradient lies as the targets do
        margin = (-target * input).exp()
    else:
        margin = _in_place(-input, target).exp()
    _check_cast(margin.dtype, input.dtype)
    return reduced(rushlight.log1p(margin), reduction)


@functional
def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1.

    >>> import rushlight as torch
    >>> distance, same = torch.tensor([0.25, 0.25]), torch.tensor([1, -1])
    >>> torch.nn.functional.hinge_embedding_loss(distance, same, reduction="none")
    tensor([0.2500, 0.7500])
    """
    reduction = reduction_of(size_average, reduce, reduction)
    reduction = check_reduction(reduction)
    require_tensor("hinge_embedding_loss", input)
    margin = float(margin)
    if input.dtype not in (_C.float32, _C.float64):
        margin = input.new_full((), margin)  # which rounds it
    # As torch records it; what is no floating point number is refused as a number's difference.
    short = _C.ops.sub(margin, input) if input.is_floating_point() else margin - input
    apart = rushlight.where(target != 1, short.clamp_min(0), 0)
    return reduced(apart + rushlight.where(target != -1, input, 0), reduction)


@functional
def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The mean over classes (the last dimension) of the binary cross entropy of each.

    >>> import rushlight as torch
    >>> torch.nn.functional.multilabel_soft_margin_loss(torch.zeros(1, 2), torch.ones(1, 2))
    tensor(0.6931)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    class_dim = input.dim() - 1  # of the loss as well, which a larger target may have given more dimensions
    loss = loss.sum(class_dim) / input.size(class_dim)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    return reduced(loss, reduction)
