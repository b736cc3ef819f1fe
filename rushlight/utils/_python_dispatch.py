"""The names around `__torch_dispatch__`. Rushlight has no dispatcher below its functions: programs can ask
and are told that no mode is active; to enter one is an error. `__torch_function__` is supported in full."""

from __future__ import annotations

from typing import Any

from rushlight import _C


class TorchDispatchMode:
    """A mode that sees every kernel call. It can be subclassed; entering it is not implemented."""

    def __init__(self, _dispatch_key: Any = None) -> None:
        pass

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        raise NotImplementedError(
            "TorchDispatchMode is not implemented: Rushlight has no dispatcher below its functions; "
            "__torch_function__ sees every call"
        )

    def __exit__(self, *error: object) -> None:
        pass

    @classmethod
    def is_infra_mode(cls) -> bool:
        return False


def _get_current_dispatch_mode() -> None:
    """The innermost mode: none."""


def _get_current_dispatch_mode_stack() -> list:
    """The active modes: none."""
    return []


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is active: never."""
    return False


def is_in_any_mode_without_ignore_compile_internals() -> bool:
    """Whether a mode is active that sees compiled code: never."""
    return False


class _disable_current_modes:
    """A block without modes: there are never any."""

    def __enter__(self) -> list:
        return []

    def __exit__(self, *error: object) -> None:
        pass


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class wraps tensors and says how to take it apart."""
    return (
        issubclass(t, _C.Tensor)
        and t is not _C.Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a tensor wraps tensors and says how to take it apart."""
    return is_traceable_wrapper_subclass_type(type(t))


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """For use inside `__torch_dispatch__`, which is never called."""
    raise NotImplementedError(
        "return_and_correct_aliasing is not implemented: there is no __torch_dispatch__"
    )
