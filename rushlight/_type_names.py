"""Types by the names that torch's errors give them. Imports nothing of the package: the stub of the native
core leads here, through Size."""

from __future__ import annotations

from rushlight._annotations import Any

_TORCHS = ("dtype", "device", "Size", "layout", "memory_format")


def type_name(value: Any) -> str:
    """As C code sees it: with the module if the type was made there."""
    kind = type(value)
    home, name = getattr(kind, "__module__", ""), kind.__name__
    if (home, name) == ("torch", "Tensor") or issubclass(kind, BaseException):
        return name
    if name in _TORCHS and home in ("rushlight", "torch"):
        return f"torch.{name}"
    if home == "rushlight.storage":
        return f"torch.storage.{name}"
    made_in_c = not kind.__flags__ & 1 << 9 and home != "builtins"
    return f"{home}.{name}" if made_in_c else name
