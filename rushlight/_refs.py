"""torch._refs, where torch has its operations once more in Python: here every name is the operation itself.

`_refs.abs` is `torch.abs`, `_refs.nn.functional.relu` is `torch.nn.functional.relu`, and
`_refs._conversions.int` is `Tensor.int`. A random filling, which torch has in place only, fills a copy.
"""

from __future__ import annotations

import functools
import operator
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import rushlight
from rushlight import _C

_PARTS = ("fft", "linalg", "nn", "nn.functional", "special", "_conversions")


def _filled_copy(name: str, self: _C.Tensor, *args: Any, **kwargs: Any) -> _C.Tensor:
    return getattr(self.clone(), name)(*args, **kwargs)


def _find(part: str, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    places: tuple[Any, ...] = (
        rushlight,
        _C.Tensor,
        rushlight.nn.functional,
        rushlight.special,
        rushlight.linalg,
    )
    if part == "_conversions":
        places = (rushlight,) if name in ("complex", "polar") else (_C.Tensor,)
    elif part:
        places = (functools.reduce(getattr, part.split("."), rushlight),)
    for place in places:
        found = getattr(place, name, None)
        if callable(found):
            return found
    if not part and name in ("T", "H", "mT", "mH"):
        return operator.attrgetter(name)
    if not part and hasattr(_C.Tensor, f"{name}_"):
        return functools.partial(_filled_copy, f"{name}_")
    shown = f"torch._refs.{part}".rstrip(".")
    raise AttributeError(f"module '{shown}' has no attribute '{name}'", name=name, obj=sys.modules[__name__])


def __getattr__(name: str) -> Any:
    return _find("", name)


for _part in _PARTS:
    _module = ModuleType(f"{__name__}.{_part}")
    _module.__spec__ = ModuleSpec(_module.__name__, None, is_package=True)
    vars(_module)["__getattr__"] = functools.partial(_find, _part)
    vars(_module)["__all__"] = []
    sys.modules[_module.__name__] = _module
    _owner, _, _last = _part.rpartition(".")
    setattr(sys.modules[f"{__name__}.{_owner}" if _owner else __name__], _last, _module)
