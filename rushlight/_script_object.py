"""Objects of classes that torch keeps behind its operators. Here one class has any: the profiler's ranges."""

from __future__ import annotations

from typing import Any, NoReturn


class ClassType:
    """The class of such an object, by its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        """Without the namespaces."""
        return self._name.rpartition(".")[2]

    def qualified_name(self) -> str:
        """With the namespaces."""
        return self._name

    def __str__(self) -> str:
        return self._name

    __repr__ = __str__


class ScriptObject:
    """An object whose class Python does not know. Only what made it can use it."""

    _class: ClassType
    _held: Any

    def __init__(self, *args: Any) -> None:
        raise TypeError("torch.ScriptObject: No constructor defined!")

    @classmethod
    def _of(cls, name: str, held: Any) -> ScriptObject:
        made = cls.__new__(cls)
        made.__dict__.update(_class=ClassType(f"__torch__.torch.classes.{name}"), _held=held)
        return made

    def _type(self) -> ClassType:
        return self._class

    def _method_names(self) -> list[str]:
        return []

    _properties = _method_names

    def _has_method(self, name: str) -> bool:
        return False

    hasattr = _has_method

    def _get_method(self, name: str) -> NoReturn:
        raise AttributeError(f"Method '{name}' is not defined.")

    def getattr(self, name: str) -> NoReturn:
        """The value of a field: there is none."""
        raise AttributeError(
            f"{self._class} (of Python compilation unit at: 0) does not have a field with name '{name}'"
        )

    __getattr__ = getattr

    def setattr(self, name: str, value: Any) -> None:
        """Gives a field a value: there is none."""
        self.getattr(name)

    def __eq__(self, other: object) -> bool:
        raise NotImplementedError(f"'__eq__' is not implemented for {self._class}")

    __hash__ = object.__hash__


ScriptObject.__module__ = "torch"
