"""The ``reduction`` argument of losses, and the two older arguments it replaced."""

from rushlight._warn import warn
from rushlight.nn._reduction import get_enum

_WAYS = ("none", "mean", "sum")


def reduction_of(size_average, reduce, reduction):
    """What ``size_average`` and ``reduce`` meant, if given; else ``reduction``."""
    if size_average is None and reduce is None:
        return reduction
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    meant = "none" if not reduce else "mean" if size_average else "sum"
    warn(f"size_average and reduce args will be deprecated, please use reduction='{meant}' instead.")
    return meant


def check_reduction(reduction):
    """The way that is meant, of three."""
    return reduction if reduction in _WAYS else _WAYS[get_enum(reduction)]


def reduced(loss, reduction):
    """The mean or sum of the elementwise loss, or the loss itself."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    return loss
