"""Connectionist temporal classification."""

from __future__ import annotations

from rushlight import _C
from rushlight._type_names import type_name as class_name
from rushlight.ops._examples import known
from rushlight.ops._lacking import finally_
from rushlight.ops._public import function, type_name
from rushlight.ops._rules import derivative, no_derivative

ops = _C.ops
Tensor = _C.Tensor


def _gradient(
    g, log_probs, loss, log_alpha, targets, input_lengths, target_lengths, starts, blank, zero_infinity
):
    rest = (log_alpha.detach(), targets, input_lengths, target_lengths, starts, blank, zero_infinity)
    once = finally_(lambda *by: ops.ctc_loss_backward(*by, *rest), "aten::_ctc_loss_backward")
    return once(g, log_probs, loss)


derivative("ctc_loss", log_probs=_gradient)
no_derivative("ctc_loss_backward")


def _lengths(value, name):
    """A tuple of ints from a tensor, a sequence or a number."""
    if isinstance(value, Tensor):
        if value.is_floating_point() or value.is_complex():
            raise RuntimeError(f"{name} must be integral")
        value = known(value.reshape(-1)).tolist() if value.dim() else value.item()
    return (value,) if isinstance(value, int) else tuple(int(v) for v in value)


def _check(log_probs, targets, input_lengths, target_lengths):
    where = "(while checking arguments for ctc_loss_allocate_outputs)"
    steps, batch = log_probs.shape[:2]
    if len(input_lengths) != batch:
        raise RuntimeError("input_lengths must be of size batch_size")
    if len(target_lengths) != batch:
        raise RuntimeError("target_lengths must be of size batch_size")
    for length in target_lengths:
        if length < 0:
            raise RuntimeError(
                f"Expected target_lengths to have value at least 0, but got value {length} {where}"
            )
    if targets.dim() == 1:
        if targets.shape[0] != sum(target_lengths):
            raise RuntimeError(
                f"Expected tensor to have size {sum(target_lengths)} at dimension 0, but got size "
                f"{targets.shape[0]} for argument #2 'targets' {where}"
            )
    elif targets.dim() == 2:
        if targets.shape[0] != batch:
            raise RuntimeError(
                f"Expected tensor to have size {batch} at dimension 0, but got size {targets.shape[0]} for "
                f"argument #2 'targets' {where}"
            )
        longest = max(target_lengths, default=0)
        if targets.shape[1] < longest:
            raise RuntimeError(
                f"Expected tensor to have size at least {longest} at dimension 1, but got size "
                f"{targets.shape[1]} for argument #2 'targets' {where}"
            )
    else:
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {targets.dim()}-dimensional tensor for argument #2 "
            f"'targets' {where}"
        )
    for length in input_lengths:
        if length < 0:
            raise RuntimeError(
                f"Expected input_lengths to have value at least 0, but got value {length} {where}"
            )
        if length > steps:
            raise RuntimeError(
                f"Expected input_lengths to have value at most {steps}, but got value {length} {where}"
            )


@function
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=0, zero_infinity=False):
    """Minus the log likelihood of label sequences over all their alignments with the input.

    log_probs is (time, batch, classes) or (time, classes). targets are labels, one row per sequence or all in
    a row; reduction is 0 for none, 1 for the mean (of losses divided by target lengths), 2 for the sum.

    >>> probabilities = rushlight.full((2, 1, 2), 0.5)
    >>> rushlight.ctc_loss(probabilities.log(), rushlight.tensor([[1]]), [2], [1], reduction=1).exp()
    tensor(1.3333)
    """
    if not isinstance(log_probs, Tensor):
        raise TypeError(
            f"ctc_loss(): argument 'log_probs' (position 1) must be Tensor, not {class_name(log_probs)}"
        )
    batched = log_probs.dim() == 3
    x = log_probs if batched else log_probs.unsqueeze(1)
    if x.dim() != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {x.dim()}-dimensional tensor for argument #1 "
            "'log_probs' (while checking arguments for ctc_loss_allocate_outputs)"
        )
    if x.is_meta:
        return x.new_empty(x.shape[1:2] if reduction == 0 and batched else ())
    inputs, lengths = _lengths(input_lengths, "input_lengths"), _lengths(target_lengths, "target_lengths")
    if not x.numel():
        raise RuntimeError("log_probs tensor must not be empty")
    if targets.dim() not in (1, 2):
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {targets.dim()}-dimensional tensor for argument #2 "
            "'targets' (while checking arguments for ctc_loss_allocate_outputs)"
        )
    if x.dtype not in (_C.float32, _C.float64):
        raise NotImplementedError(f"\"ctc_loss_cpu\" not implemented for '{type_name(x.dtype)}'")
    if isinstance(blank, int) and not 0 <= blank < x.shape[2]:
        raise RuntimeError("blank must be in label range")
    _check(x, targets, inputs, lengths)
    if targets.dim() == 2:
        starts = tuple(n * targets.shape[1] for n in range(len(lengths)))
    else:
        starts = tuple(sum(lengths[:n]) for n in range(len(lengths)))
    labels = targets.detach().to(_C.int64)
    loss = ops.ctc_loss(x, labels, inputs, lengths, starts, blank, bool(zero_infinity))[0]
    if zero_infinity:
        loss = loss.masked_fill(loss.detach() == float("inf"), 0.0)
    if reduction == 1:
        divisor = loss.new_tensor([max(length, 1) for length in lengths])
        return (loss / divisor).mean()
    if reduction == 2:
        return loss.sum()
    return loss if batched else loss.squeeze(0)
