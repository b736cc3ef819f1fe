"""The ``reduction`` argument of losses, and the two older arguments it replaced."""

from rushlight.nn._reduction import WAYS, get_enum, legacy_get_string


def reduction_of(size_average, reduce, reduction):
    """What ``size_average`` and ``reduce`` meant, if given; else ``reduction``."""
    if size_average is None and reduce is None:
        return reduction
    return legacy_get_string(size_average, reduce)


def check_reduction(reduction):
    """The way that is meant, of three."""
    return reduction if reduction in WAYS else WAYS[get_enum(reduction)]


def reduced(loss, reduction):
    """The mean or sum of the elementwise loss, or the loss itself."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    return loss
