"""Tensors in a directory, their memory under its hash: equal memory is kept once, and shared when it is read.

`storages/<hash>` holds the bytes, `tensors/<name>` what a tensor is besides them.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from collections import defaultdict
from typing import Any

import rushlight
from rushlight import _C


def hash_storage(storage: Any, *, stable_hash: bool = False) -> str:
    """The SHA-1 of the bytes. It is the same on all machines, as torch's is if it has to be.

    >>> from rushlight.utils._content_store import hash_storage
    >>> hash_storage(rushlight.zeros(3).untyped_storage())[:8]
    '2c513f14'
    """
    content = rushlight.empty(0, dtype=rushlight.uint8, device=storage.device).set_(storage)
    return hashlib.sha1(content.cpu().numpy().tobytes()).hexdigest()


class ContentStoreWriter:
    """Writes tensors to the directory `loc`."""

    def __init__(self, loc: str, stable_hash: bool = False) -> None:
        self.loc = loc
        self.seen_storage_hashes: set[str] = set()
        self.stable_hash = stable_hash

    def write_storage(self, storage: Any) -> str:
        """Writes memory that is not there yet, and returns its hash."""
        h = hash_storage(storage, stable_hash=self.stable_hash)
        if h not in self.seen_storage_hashes:
            path = os.path.join(self.loc, "storages", h)
            if not os.path.exists(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                rushlight.save(storage, path)
            self.seen_storage_hashes.add(h)
        return h

    def compute_tensor_metadata(self, t: _C.Tensor, h: str | None = None) -> tuple:
        """What a tensor is besides its bytes: dtype, their hash, offset, sizes, strides, lazy signs."""
        if h is None:
            h = hash_storage(t.untyped_storage(), stable_hash=self.stable_hash)
        lazy = {name: True for name, found in (("conj", t.is_conj()), ("neg", t.is_neg())) if found}
        return t.dtype, h, t.storage_offset(), tuple(t.shape), t.stride(), lazy

    def write_tensor(self, name: str, t: _C.Tensor) -> None:
        """Writes a tensor and its memory; a name may contain directories."""
        h = self.write_storage(t.untyped_storage())
        path = os.path.join(self.loc, "tensors", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        rushlight.save(self.compute_tensor_metadata(t, h), path)


class ContentStoreReader:
    """Reads tensors from the directory `loc`; with `cache`, memory that one of them still holds is shared."""

    def __init__(self, loc: str, *, cache: bool = True) -> None:
        self.loc = loc
        # Weak references to the tensors that hold memory, by device and hash.
        self.storage_cache: Any = defaultdict(lambda: defaultdict(list)) if cache else None

    def read_storage(self, h: str, *, device: Any = None) -> Any:
        """The memory with this hash."""
        if self.storage_cache is not None:
            for holder in (reference() for reference in self.storage_cache[str(device)][h]):
                if holder is not None:
                    return holder.untyped_storage()
        path = os.path.join(self.loc, "storages", h)
        return rushlight.load(path, map_location=device, weights_only=True)._untyped_storage

    def read_tensor_metadata(self, name: str) -> tuple:
        """What was written of a tensor besides its bytes."""
        path = os.path.join(self.loc, "tensors", name)
        if not os.path.exists(path):
            raise FileNotFoundError(path)
        return rushlight.load(path, weights_only=True)

    def read_tensor(self, name: str, *, device: Any = None) -> _C.Tensor:
        """The tensor of this name.

        >>> import tempfile
        >>> from rushlight.utils._content_store import ContentStoreReader, ContentStoreWriter
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     ContentStoreWriter(directory).write_tensor("x", rushlight.ones(2))
        ...     ContentStoreReader(directory).read_tensor("x")
        tensor([1., 1.])
        """
        dtype, h, offset, size, stride, lazy = self.read_tensor_metadata(name)
        storage = self.read_storage(h, device=device)
        result = rushlight.empty(0, dtype=dtype, device=storage.device).set_(storage, offset, size, stride)
        if lazy.get("conj"):
            result = result.conj()
        if lazy.get("neg"):
            result = rushlight._neg_view(result)
        if self.storage_cache is not None:
            self.storage_cache[str(device)][h].append(weakref.ref(result))
        return result
