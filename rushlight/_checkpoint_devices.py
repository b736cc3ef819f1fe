"""Where the storages of a checkpoint are and go: names of devices, and load's map_location."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

from rushlight import _C
from rushlight._serialization_names import validate_cuda_device
from rushlight.storage import UntypedStorage

_packages: list[tuple[int, Callable, Callable]] = []


def register_package(priority: int, tagger: Callable, deserializer: Callable) -> None:
    """Adds a pair of functions that name the place of a storage and bring one there; low numbers first."""
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda entry: entry[0])


def location_tag(storage: Any) -> str:
    """The name of the device that a storage is on."""
    for _, tagger, _ in _packages:
        tag = tagger(storage)
        if tag is not None:
            return tag
    return sys.intern(str(storage.device))


def default_restore_location(storage: UntypedStorage, location: str) -> UntypedStorage:
    """Brings a storage that was read to the device of this name."""
    for _, _, deserializer in _packages:
        result = deserializer(storage, location)
        if result is not None:
            return result
    if location == "cpu":
        return storage
    if location.startswith("cuda"):
        _C.as_device(location)
        validate_cuda_device(location)
    try:
        if location.startswith("cpu:"):
            raise RuntimeError("the place is called cpu")
        return storage.to(device=location)
    except RuntimeError:
        raise RuntimeError(
            f"don't know how to restore data location of torch.storage.{type(storage).__name__} (tagged with "
            f"{location})"
        ) from None


def to_meta(storage: UntypedStorage, location: str) -> UntypedStorage:
    """A storage of the same size without data."""
    return storage if storage.device.type == "meta" else UntypedStorage(storage.nbytes(), device="meta")


def restore_location(map_location: Any) -> Callable[[UntypedStorage, str], UntypedStorage]:
    """The function that brings storages to where map_location says."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(
            storage, map_location.get(location, location)
        )
    if isinstance(map_location, bytes):
        re.match("", map_location)  # type: ignore[call-overload]  # torch looks for names of devices in it
    if isinstance(map_location, (str, _C.device)):
        place = str(map_location)
        return to_meta if place == "meta" else lambda storage, _: default_restore_location(storage, place)

    def ask(storage: UntypedStorage, location: str) -> UntypedStorage:
        result = map_location(storage, location)
        return default_restore_location(storage, location) if result is None else result

    return ask
