"""How the losses name the way they are reduced, for libraries that ask as torch's own losses do."""

from __future__ import annotations

from rushlight._warn import warn

WAYS = ("none", "mean", "sum")


def get_enum(reduction: str) -> int:
    """0 for "none", 1 for "mean", 2 for "sum"."""
    if reduction == "elementwise_mean":
        warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.")
        return 1
    for number, way in enumerate(WAYS):
        if reduction == way:
            return number
    raise ValueError(f"{reduction} is not a valid value for reduction")


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """What the two switches that came before `reduction` mean."""
    size_average = True if size_average is None else bool(size_average)
    reduce = True if reduce is None else reduce
    reduction = "none" if not reduce else "mean" if size_average else "sum"
    if emit_warning:
        warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.")
    return reduction


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """The same as a number."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
