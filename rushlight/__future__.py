"""Switches for how modules convert and load their parameters, as ``torch.__future__`` has them."""

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]

_overwrite = False
_swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether ``module.to(...)`` and the like put new Parameters in the place of the old ones."""
    global _overwrite
    _overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether conversions of a module make new Parameters.

    >>> rushlight.__future__.get_overwrite_module_params_on_conversion()
    False
    """
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether conversions and ``load_state_dict`` exchange parameters by ``utils.swap_tensors``."""
    global _swap
    _swap = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether conversions of a module and ``load_state_dict`` swap tensors.

    >>> rushlight.__future__.get_swap_module_params_on_conversion()
    False
    """
    return _swap
