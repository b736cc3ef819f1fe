"""The loss of unaligned sequences of labels."""

import rushlight
from rushlight import Tensor
from rushlight._signatures import _is_whole, check_call
from rushlight._type_names import type_name
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
    several = (tuple, list)
    fits = isinstance(log_probs, Tensor) and isinstance(targets, Tensor) and isinstance(zero_infinity, bool)
    fits = fits and _is_whole(blank) and not isinstance(blank, bool)
    if fits and isinstance(inputs, Tensor) and isinstance(lengths, Tensor):
        return
    listed = fits and isinstance(inputs, several) and isinstance(lengths, several)
    if listed and all(not values or _is_whole(values[0]) for values in (inputs, lengths)):
        signature = "T log_probs,T targets,I input_lengths,I target_lengths"
        check_call("ctc_loss", signature, *given[:4])
        return
    shown = ", ".join(map(type_name, (*given[:5], 0, zero_infinity)))
    raise TypeError(
        f"ctc_loss() received an invalid combination of arguments - got ({shown}), but expected one of:\n"
        " * (Tensor log_probs, Tensor targets, tuple of ints input_lengths, tuple of ints target_lengths, "
        "int blank, int reduction, bool zero_infinity)\n"
        " * (Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank, int "
        "reduction, bool zero_infinity)"
    )
