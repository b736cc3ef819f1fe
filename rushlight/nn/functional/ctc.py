"""The loss of unaligned sequences of labels."""

import rushlight
from rushlight import Tensor
from rushlight._signatures import check_call
from rushlight.nn.functional._checks import functional
from rushlight.nn.functional._reduction import check_reduction


@functional
def ctc_loss(
    log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False
):
    """Minus the log likelihood of label sequences over all their alignments with the input.

    >>> import rushlight as torch
    >>> probabilities = torch.full((2, 1, 2), 0.5)
    >>> torch.nn.functional.ctc_loss(probabilities.log(), torch.tensor([[1]]), [2], [1]).exp()
    tensor(1.3333)
    """
    reduction = check_reduction(reduction)
    _check_types(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    kind = {"none": 0, "mean": 1, "sum": 2}[reduction]
    return rushlight.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, kind, zero_infinity)


def _check_types(*given):
    """What torch's native function says of types that none of its forms takes."""
    log_probs, targets, inputs, lengths, blank, zero_infinity = given
    tensors = isinstance(inputs, Tensor) and isinstance(lengths, Tensor)
    fits = tensors and isinstance(log_probs, Tensor) and isinstance(targets, Tensor)
    if not (fits and blank.__class__ is int and abs(blank) < 2**63 and isinstance(zero_infinity, bool)):
        check_call("ctc_loss", "", *given[:5], 0, zero_infinity)
