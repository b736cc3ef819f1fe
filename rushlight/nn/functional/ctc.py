"""The loss of unaligned sequences of labels."""

import rushlight
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
    check_reduction(reduction)
    kind = {"none": 0, "mean": 1, "sum": 2}[reduction]
    return rushlight.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, kind, zero_infinity)
