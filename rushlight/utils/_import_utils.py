"""Whether an optional package is there."""

import importlib.util
from types import ModuleType


def _check_module_exists(name: str) -> bool:
    """Whether `import name` would find something."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def dill_available() -> bool:
    """Whether the package dill is installed."""
    return _check_module_exists("dill")


def import_dill() -> ModuleType | None:
    """The package dill, or None."""
    if not dill_available():
        return None
    import dill

    return dill
