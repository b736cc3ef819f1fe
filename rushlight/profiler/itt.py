"""Ranges for Intel's profiler, which Rushlight does not talk to."""

from typing import NoReturn

__all__ = ["is_available", "range_push", "range_pop", "mark", "range"]


def is_available() -> bool:
    """Whether ranges reach the profiler: never."""
    return False


def _refuse(*args: object) -> NoReturn:
    raise NotImplementedError("torch.profiler.itt is not implemented: there is no such profiler to talk to")


range_push = range_pop = mark = range = _refuse
