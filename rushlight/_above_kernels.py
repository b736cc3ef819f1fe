"""What a library puts above a kernel of torch's own: `Library("aten", "IMPL").impl("neg", f, "AutogradCPU")`.

The kernel itself is replaced in `_dispatching.py`. What stands above it is called in the place of the whole
operation, before anything is recorded: its own operations are, so that its result has the history that they
give it. It is asked for at the steps that there is something of here: recording, and the signs that a tensor
of zeros, a conjugate and a negative view carry.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight import _C
from rushlight._dispatch_keys import _dispatch_tls_is_dispatch_key_excluded
from rushlight._ops import handle_named, handle_of

_SIGNS: dict[str, Callable] = {
    "ZeroTensor": _C.is_zero_for_good,
    "Conjugate": lambda tensor: tensor.is_conj(),
    "Negative": lambda tensor: tensor.is_neg(),
}
KEYS = ("AutogradCPU", "AutogradMeta", "AutogradCUDA", "Autograd", *_SIGNS)

# By primitive: which overload, at which step, what.
_above: dict[str, list[tuple[Any, str, Callable]]] = {}
_called: dict[str, Callable] = {}


@functools.cache
def _primitives() -> dict[Any, list[Any]]:
    """The primitives that calls of an overload arrive at."""
    from rushlight._aten_calls import SPECS

    found: dict[Any, list[Any]] = {}
    for name in dir(_C.ops):
        primitive = getattr(_C.ops, name)
        if isinstance(primitive, _C.Primitive):
            spec = SPECS.get(name)
            try:
                handle = handle_of(primitive, False) if spec is None else handle_named(spec.overload)
            except AttributeError:  # an overload that is written in place only
                continue
            found.setdefault(handle, []).append(primitive)
    return found


def _is_meant(key: str, args: tuple) -> bool:
    tensors = [arg for arg in args if isinstance(arg, _C.Tensor)]
    if key in _SIGNS:
        return any(map(_SIGNS[key], tensors))
    if key != "Autograd" and key.removeprefix("Autograd").lower() not in {t.device.type for t in tensors}:
        return False
    left_out = _dispatch_tls_is_dispatch_key_excluded("AutogradCPU" if key == "Autograd" else key)
    return not left_out and not any(tensor.is_inference() for tensor in tensors)


def _asking(primitive: Any) -> Callable:
    from rushlight._aten_calls import shown

    def call(*args: Any) -> Any:
        for handle, key, function in reversed(_above[primitive.__name__]):
            if _is_meant(key, args):
                told = shown(primitive, args, False)
                if told is not None and handle_named(told[0]) is not handle:
                    continue
                given, options = (args, {}) if told is None else told[1:]
                return function(*given, **options)
        return NotImplemented

    return call


def put(handle: Any, key: str, function: Callable) -> None:
    """Has `function` called in the place of an operation at a step."""
    if handle not in _primitives() or len(handle._schema.returns) != 1:
        raise NotImplementedError(
            f"registering something for torch's own {handle.name()} at {key} is not implemented: it is no "
            "single step here"
        )
    import rushlight.utils._python_dispatch  # noqa: F401  (tells the native core whom to ask)

    for primitive in _primitives()[handle]:
        _above.setdefault(primitive.__name__, []).append((handle, key, function))
        _called[primitive.__name__] = _asking(primitive)
    _C.call_above(_called)


def take_back(handle: Any, key: str, function: Callable) -> None:
    """Undoes `put`."""
    for primitive in _primitives()[handle]:
        name = primitive.__name__
        _above[name].remove((handle, key, function))
        if not _above[name]:
            del _above[name], _called[name]
    _C.call_above(_called)
