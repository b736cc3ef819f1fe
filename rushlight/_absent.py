"""Modules of torch about things that Rushlight does not have: compilers, graph capture, several processes,
quantisation, transforms.

Libraries import names from them at the top of a file and use them on paths that most programs never take. So
the modules can be imported and hold the names, and using one raises NotImplementedError. What can be answered
truly is: `is_available()`, `is_compiling()` and their like are False, a decorator that talks to a compiler
returns the function. The table is in `_absent_names.py`; a module that Rushlight does have is found first.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

from rushlight._annotations import Any


class AbsentFinder:
    """Finds `rushlight.x.y` in the table. It stands last in `sys.meta_path`."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not fullname.startswith("rushlight."):
            return None
        from rushlight._absent_names import MODULES

        if fullname.removeprefix("rushlight.") in MODULES:
            return ModuleSpec(fullname, AbsentFinder, is_package=True)  # type: ignore[arg-type]
        return None

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        return AbsentModule(spec.name)

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        from rushlight._absent_names import MODULES

        name = module.__name__.removeprefix("rushlight.")
        vars(module)["__all__"] = []  # nothing that a program should take wholesale
        for entry in MODULES[name].split():
            if entry == "*":
                continue
            key, value = _entry(f"torch.{name}", entry)
            vars(module)[key] = value


class AbsentModule(ModuleType):
    """A module of the table. It finds the modules below it when they are named, as torch's packages do."""

    def __getattr__(self, name: str) -> Any:
        from rushlight._absent_names import MODULES

        shown = vars(self)["__spec__"].name.removeprefix("rushlight.")
        if f"{shown}.{name}" in MODULES:
            return importlib.import_module(f"rushlight.{shown}.{name}")
        if "*" in MODULES[shown].split() and not name.startswith("__"):
            return _absent_function(f"torch.{shown}", name)
        raise AttributeError(
            f"module 'torch.{shown}' has no attribute '{name}': of torch.{shown} Rushlight has only names "
            f"that libraries import",
            name=name,
            obj=self,
        )


def top_level(name: str) -> Any:
    """The module or the name `torch.<name>` of the table; KeyError if there is none."""
    from rushlight._absent_names import MODULES, TOP_LEVEL

    if name in MODULES:
        return importlib.import_module(f"rushlight.{name}")
    if name in TOP_LEVEL.split():
        value = _entry("torch", name)[1]
        setattr(sys.modules["rushlight"], name, value)
        return value
    raise KeyError(name)


def _entry(module: str, entry: str) -> tuple[str, Any]:
    """An entry of the table; `_absent_names.py` says how they are written."""
    if entry.endswith("?"):
        return entry[:-1], _answers_no(entry[:-1])
    if entry.endswith("!"):
        return entry[:-1], _notes(entry[:-1])
    if entry.endswith("@"):
        return entry[:-1], _returns_its_argument(entry[:-1])
    if entry.endswith("}"):
        import enum

        name, members = entry[:-1].split("{")
        return name, enum.Enum(name, members.split(","), module=module)
    if "=" in entry:
        name, path = entry.split("=")
        if path.isdigit():
            return name, int(path)
        if path in ("True", "False"):
            return name, path == "True"
        home, _, attribute = path.rpartition(".")
        if home == "typing":
            import typing

            return name, getattr(typing, attribute)
        return name, getattr(importlib.import_module(f"rushlight.{home}" if home else "rushlight"), attribute)
    if entry.lstrip("_")[0].isupper():
        return entry, absent_class(module, entry)
    return entry, _absent_function(module, entry)


def absent_class(module: str, name: str, base: type = object) -> type:
    """A class that annotations, `isinstance` and subclasses may name and that cannot be made."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{module}.{name} is not implemented")

    doc = f"Not implemented: {module}.{name} can be named, and nothing is an instance of it."
    of = classmethod(lambda cls, item: cls)  # in annotations: BroadcastingList2[int]
    names = {"__init__": __init__, "__class_getitem__": of, "__doc__": doc, "__module__": module}
    return type(name, (base,), names)


def _absent_function(module: str, name: str) -> Any:
    def absent(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{module}.{name} is not implemented")

    absent.__name__ = absent.__qualname__ = name
    absent.__module__ = module
    absent.__doc__ = "Not implemented."
    return absent


def _answers_no(name: str) -> Any:
    def answer(*args: Any, **kwargs: Any) -> bool:
        return False

    answer.__name__ = answer.__qualname__ = name
    answer.__doc__ = "False: there is no such thing here."
    return answer


def _notes(name: str) -> Any:
    def note(*args: Any, **kwargs: Any) -> None:
        pass

    note.__name__ = note.__qualname__ = name
    note.__doc__ = "Tells something to a tool that is not there."
    return note


def _returns_its_argument(name: str) -> Any:
    def mark(fn: Any = None, *args: Any, **kwargs: Any) -> Any:
        return fn if callable(fn) else lambda wrapped: wrapped

    mark.__name__ = mark.__qualname__ = name
    mark.__doc__ = "The function itself: there is no compiler that could heed the mark."
    return mark


sys.meta_path.append(AbsentFinder)
