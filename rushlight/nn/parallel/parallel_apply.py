"""Modules on several devices at once."""

from rushlight import Tensor, device

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj):
    """A tensor from within nested lists, tuples and dictionaries, or None."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, (list, tuple, dict)):
        for entry in obj.items() if isinstance(obj, dict) else obj:
            found = get_a_var(entry)
            if isinstance(found, Tensor):
                return found
    return None


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """The modules, each with its inputs on its device: there are no devices to call them on."""
    if len(modules) != len(inputs):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}"
        )
    if kwargs_tup is not None and len(modules) != len(kwargs_tup):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of kwargs_tup {len(kwargs_tup)}"
        )
    if devices is not None:
        if len(modules) != len(devices):
            raise AssertionError(
                f"The number of modules {len(modules)} is not equal to the number of devices {len(devices)}"
            )
        for entry in devices:
            if not isinstance(entry, int) and device(entry).type != "cuda":
                raise ValueError(f"Expected a cuda device, but got: {device(entry)}")
    raise RuntimeError("Cannot access accelerator device when none is available.")
