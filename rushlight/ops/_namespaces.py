"""torch.ops.aten.NAME(.overload): the operations under the names that the dispatcher of torch has for them.

A name is the public function, the method or the function of nn.functional of that name; there is no
dispatcher and no schema here. Any other name can be mentioned, and raises NotImplementedError when called.
"""

from __future__ import annotations

from typing import Any

import rushlight


class OpOverload:
    """One form of an operation: `torch.ops.aten.add.Tensor`."""

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self._packet, self._overload = packet, overload
        self.__name__ = f"{packet.__name__}.{overload}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._packet(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._packet.__name__}', overload='{self._overload}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        return self._packet


class OpOverloadPacket:
    """An operation in all its forms: `torch.ops.aten.add`."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._overloads: dict[str, OpOverload] = {}

    def _find(self) -> Any:
        for owner in (rushlight, rushlight.Tensor, rushlight.nn.functional):
            function = getattr(owner, self.__name__, None)
            if callable(function):
                return function
        raise NotImplementedError(f"torch.ops.aten.{self.__name__} is not implemented")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._find()(*args, **kwargs)

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        if overload not in self._overloads:
            self._overloads[overload] = OpOverload(self, overload)
        return self._overloads[overload]

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"


class Namespace:
    """torch.ops.aten."""

    def __init__(self) -> None:
        self.name = "aten"
        self._packets: dict[str, OpOverloadPacket] = {}

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        if name not in self._packets:
            self._packets[name] = OpOverloadPacket(name)
        return self._packets[name]


aten = Namespace()
