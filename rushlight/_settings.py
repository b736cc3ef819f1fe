"""Settings of the whole library: the default device, determinism, precision, threads; and torch.compile.

A setting that chooses among algorithms which only other devices have is kept and answered, and changes
nothing: every algorithm here is deterministic and computes float32 in full precision.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable

from rushlight import _C
from rushlight._annotations import Any
from rushlight._put_back import keep
from rushlight._type_names import type_name as class_name

_state: dict[str, Any] = {"precision": "highest", "deterministic": False, "warn_only": False}


# ---- the default device


class DefaultDevice(_thread._local):
    """This thread's, and what it was around the `with` statements that run now. As in torch it does not reach
    into a backward: there another one may be chosen, which ends with it."""

    device: _C.device | None = None
    run = 0  # the backward in which it was chosen

    def __init__(self) -> None:
        self.before: list[tuple] = []

    def now(self) -> _C.device | None:
        return None if self.device is None or self.run != _C.current_run() else self.device

    def state(self) -> tuple:
        return self.device, self.run, tuple(self.before)

    def put_back(self, state: tuple) -> None:
        self.device, self.run, before = state
        self.before = list(before)

    def choose(self, device: _C.device | None) -> None:
        from rushlight.ops import create

        keep(self.state, self.put_back)
        create._default_device = self
        _C.tell_factories(True, None)
        self.device, self.run = device, _C.current_run()


_default = DefaultDevice()


def get_default_device() -> _C.device:
    """The device of tensors that are made without naming one.

    >>> rushlight.get_default_device()
    device(type='cpu')
    """
    chosen = _default.now()
    if chosen is not None and chosen.type == "cuda" and chosen.index is None:
        chosen = _C.empty(
            (0,), _C.float32, chosen
        ).device  # which one it would be: an error says that there is none
    return chosen or _C.as_device("cpu")


def set_default_device(device: Any) -> None:
    """Makes `device` the one of tensors that are made without naming one; None means the CPU again.

    >>> rushlight.set_default_device("meta")
    >>> rushlight.zeros(2).device
    device(type='meta')
    >>> rushlight.set_default_device(None)
    """
    _default.choose(None if device is None else _checked(device))


def _checked(device: Any) -> _C.device | None:
    chosen = _C.as_device(device)
    return None if chosen.type == "cpu" else chosen


def _enter(self: _C.device) -> _C.device:
    chosen, before = _checked(self), (_default.device, _default.run)
    _default.choose(chosen)
    _default.before.append(before)
    return self


def _exit(self: _C.device, *error: object) -> None:
    _default.device, _default.run = _default.before.pop()


# `with torch.device("meta"):` makes it the default for the block.
_C.device.__enter__, _C.device.__exit__ = _enter, _exit


def get_device_module(device: Any = None) -> Any:
    """The module of a device: torch.cpu, torch.cuda.

    >>> rushlight.get_device_module("cuda").__name__
    'rushlight.cuda'
    """
    from importlib import import_module

    if not isinstance(device, (_C.device, str, type(None))):
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    kind = get_default_device().type if device is None else _C.as_device(device).type
    try:
        return import_module(f"rushlight.{kind}")
    except ModuleNotFoundError as error:
        raise RuntimeError(f"Device '{kind}' does not have a corresponding module registered as "
                           f"'torch.{kind}'.") from error  # fmt: skip


# ---- determinism and precision


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Asks for deterministic algorithms. All of them are; what changes is the answer below, that memory which
    nobody has written holds NaN (see torch.utils.deterministic), and that the functions refuse to run which
    depend in torch on the order of writes: a program is told the same here.

    >>> rushlight.use_deterministic_algorithms(True)
    >>> rushlight.are_deterministic_algorithms_enabled()
    True
    >>> rushlight.use_deterministic_algorithms(False)
    """
    from rushlight.ops import create

    given: dict[str, Any] = {"mode": mode, "warn_only": warn_only}
    for name, value in given.items():
        if not isinstance(value, bool):
            place = " (position 1)" if name == "mode" else ""
            raise TypeError(
                f"_set_deterministic_algorithms(): argument '{name}'{place} must be bool, not "
                f"{class_name(value)}"
            )
    _state["deterministic"], _state["warn_only"] = bool(mode), bool(warn_only)
    create.deterministic = bool(mode)
    _C.tell_factories(None, create.deterministic)


def are_deterministic_algorithms_enabled() -> bool:
    """What use_deterministic_algorithms was last told."""
    return _state["deterministic"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether use_deterministic_algorithms was asked to warn only."""
    return _state["warn_only"]


def alert_not_deterministic(name: str) -> None:
    """Refuses, or warns of, an operation that torch calls not deterministic, if that was asked for."""
    if not _state["deterministic"]:
        return
    text = (
        f"{name} does not have a deterministic implementation, but you set "
        "'torch.use_deterministic_algorithms(True"
    )
    issue = (
        "file an issue at https://github.com/pytorch/pytorch/issues to help us prioritize adding "
        "deterministic support for this operation."
    )
    if not _state["warn_only"]:
        raise RuntimeError(
            f"{text})'. You can turn off determinism just for this operation, or you can use the "
            f"'warn_only=True' option, if that's acceptable for your application. You can also {issue}"
        )
    from rushlight._warn import warn

    warn(f"{text}, warn_only=True)'. You can {issue}")


def get_deterministic_debug_mode() -> int:
    """0 by default, 1 for a warning, 2 for an error where an algorithm is not deterministic."""
    return (1 if _state["warn_only"] else 2) if _state["deterministic"] else 0


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """0 or "default", 1 or "warn", 2 or "error"."""
    if isinstance(debug_mode, str):
        modes = {"default": 0, "warn": 1, "error": 2}
        if debug_mode not in modes:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`, "
                               f"but got {debug_mode}")  # fmt: skip
        debug_mode = modes[debug_mode]
    elif not isinstance(debug_mode, int):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_float32_matmul_precision() -> str:
    """What set_float32_matmul_precision was last told; products are always computed in full precision.

    >>> rushlight.get_float32_matmul_precision()
    'highest'
    """
    return _state["precision"]


def set_float32_matmul_precision(precision: str) -> None:
    """Allows less than full precision in products of float32 matrices ("high", "medium"): not used here."""
    if precision not in ("highest", "high", "medium"):
        import warnings

        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current "
            "setFloat32MatmulPrecision call has no effect.",
            stacklevel=2,
        )
        return
    _state["precision"] = precision


def set_flush_denormal(mode: bool) -> bool:
    """Whether denormal numbers are taken for zero in this thread; False if its processor cannot.

    >>> rushlight.set_flush_denormal(True), rushlight.tensor([1e-40]) * 2, rushlight.set_flush_denormal(False)
    (True, tensor([0.]), True)
    """
    return _C.set_flush_denormal(mode)


def is_warn_always_enabled() -> bool:
    """Whether warnings that torch gives once are given always."""
    return _state.get("warn_always", False)


def set_warn_always(b: bool) -> None:
    """Whether warnings that torch gives once are given always: Python's own filters decide that here."""
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {class_name(b)}")
    _state["warn_always"] = b


def _is_device_backend_autoload_enabled() -> bool:
    """Whether extensions of torch for other devices are loaded with it: none is, whatever
    `TORCH_DEVICE_BACKEND_AUTOLOAD` says, since they are made of torch's own objects.

    >>> rushlight._is_device_backend_autoload_enabled()
    False
    """
    return False


# ---- names of the past

_REPLACED = {
    "has_mps": ("mps", "is_built"),
    "has_cuda": ("cuda", "is_built"),
    "has_cudnn": ("cudnn", "is_available"),
    "has_mkldnn": ("mkldnn", "is_available"),
}


def deprecated(name: str) -> Any:
    """What a name stood for that torch only warns of; KeyError for any other name."""
    if name != "set_vital" and name not in _REPLACED:
        raise KeyError(name)
    import importlib
    import warnings

    if name == "set_vital":
        warnings.warn(f"{name!r} is deprecated, please do not call", stacklevel=3)
        return lambda *args: None
    backend, question = _REPLACED[name]
    warnings.warn(f"{name!r} is deprecated, please use 'torch.backends.{backend}.{question}()'", stacklevel=3)
    return getattr(importlib.import_module(f"rushlight.backends.{backend}"), question)()


# ---- threads


def get_num_interop_threads() -> int:
    """Operations run one after the other, on the thread that calls them.

    >>> rushlight.get_num_interop_threads()
    1
    """
    return 1


def set_num_interop_threads(num: int) -> None:
    """Accepts 1: operations are not run beside each other."""
    if not isinstance(num, int) or isinstance(num, bool):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {class_name(num)}")
    if not -(1 << 31) <= num < 1 << 31:
        raise ValueError("Overflow when unpacking long")
    if num <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    if num != 1:
        raise NotImplementedError("Rushlight runs operations one after the other: set_num_interop_threads(1)")


# ---- compiling


def compile(
    model: Callable | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable | None = "inductor",
    mode: str | None = None,
    options: dict | None = None,
    disable: bool = False,
    **others: Any,
) -> Any:
    """The function itself, or a module that stands before the one it is given (`nn/_optimized.py`): there is
    no compiler, and compiling would not change a result.

    >>> rushlight.compile(len) is len
    True
    """
    unknown = set(others) - {"name", "recompile_limit", "isolate_recompiles", "shapes_spec"}
    if unknown:
        raise TypeError(f"compile() got an unexpected keyword argument '{unknown.pop()}'")
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if model is None:
        return lambda wrapped: compile(wrapped, disable=disable)
    if not callable(model):
        raise RuntimeError(f"torch.compile expects a function or a module, not {class_name(model)}")
    import sys

    nn = sys.modules.get("rushlight.nn")
    if nn is None or disable or not isinstance(model, nn.Module):
        return model
    from rushlight.nn._optimized import OptimizedModule

    return model if isinstance(model, OptimizedModule) else OptimizedModule(model)


EXPORTED = [
    name
    for name, value in list(globals().items())
    if callable(value) and not name.startswith("_") and getattr(value, "__module__", "") == __name__
] + ["_is_device_backend_autoload_enabled"]
