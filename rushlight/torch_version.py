"""A version that is text and can be compared with versions, texts and tuples of numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rushlight
from rushlight._vendor.packaging.version import InvalidVersion, Version

__all__ = ["TorchVersion"]


class TorchVersion(str):
    """A text that compares as a version does: "2.13" is after "2.9".

    >>> rushlight.torch_version.TorchVersion("2.13.0") > (2, 9)
    True
    """

    def _convert_to_version(self, inp: Any) -> Any:
        if isinstance(inp, Version):
            return inp
        if isinstance(inp, str):
            return Version(inp)
        if isinstance(inp, Iterable):
            return Version(".".join(str(part) for part in inp))
        raise InvalidVersion(inp)

    def _cmp_wrapper(self, cmp: Any, method: str) -> bool:
        try:
            return getattr(Version(self), method)(self._convert_to_version(cmp))
        except InvalidVersion:
            return getattr(super(), method)(cmp)  # as text


for _name in ("__gt__", "__lt__", "__eq__", "__ge__", "__le__"):
    setattr(TorchVersion, _name, lambda self, other, name=_name: self._cmp_wrapper(other, name))
TorchVersion.__hash__ = str.__hash__


def followed(own: str) -> TorchVersion:
    """The torch whose behaviour version `own` of Rushlight follows: libraries ask how new it is."""
    return TorchVersion(f"2.13.0+rushlight.{own}")


def __getattr__(name: str) -> TorchVersion:
    if name != "__version__":
        raise AttributeError(f"module 'torch.torch_version' has no attribute {name!r}")
    return TorchVersion(rushlight.__version__)
