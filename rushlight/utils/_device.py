"""A device for everything that is made inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight.utils._contextlib import context_decorator


class DeviceContext:
    """Inside, tensors are made on a device unless another one is given.

    >>> with rushlight.utils._device.DeviceContext(rushlight.device("meta")):
    ...     rushlight.ones(2).device
    device(type='meta')
    """

    def __init__(self, device: Any) -> None:
        self.device = rushlight.device(device)

    def __enter__(self) -> DeviceContext:
        self.device.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self.device.__exit__(*error)


def device_decorator(device: Any, func: Callable) -> Callable:
    """The function, running inside the device."""
    return context_decorator(lambda: rushlight.device(device), func)


def set_device(device: Any) -> Callable:
    """A decorator: the function makes its tensors on the device."""
    return lambda func: device_decorator(rushlight.device(device), func)
