"""How tensors and storages cross to another process: their memory is shared, not copied.

`init_reductions` tells Python's multiprocessing, so that queues, pipes and the arguments of processes carry
them.
"""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any

from rushlight import _C
from rushlight.multiprocessing._memory import SharedMemory, share, ticket
from rushlight.storage import TypedStorage, UntypedStorage

__all__ = ["StorageWeakRef", "init_reductions", "rebuild_tensor", "reduce_storage", "reduce_tensor"]


class StorageWeakRef:
    """A reference to a storage that does not keep it; equal for the same storage."""

    def __init__(self, storage: Any) -> None:
        self.cdata = storage.untyped()._weak_ref()

    @classmethod
    def from_weakref(cls, cdata: int) -> StorageWeakRef:
        """The reference to a storage's `_weak_ref()`."""
        made = cls.__new__(cls)
        made.cdata = cdata
        return made

    def expired(self) -> bool:
        """Whether the memory is gone."""
        return UntypedStorage._expired(self.cdata)

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, StorageWeakRef) and self.cdata == other.cdata)


def rebuild_storage(memory: SharedMemory, nbytes: int) -> UntypedStorage:
    """The storage on shared memory."""
    whole = _C.on_shared_memory(memory, nbytes)
    if _C.storage_nbytes(whole) < nbytes:
        raise RuntimeError("the shared memory is smaller than the storage that was sent")
    return UntypedStorage._of(whole)


def rebuild_storage_empty(cls: type) -> Any:
    """A storage without bytes."""
    return cls()


def reduce_storage(storage: Any) -> tuple:
    """What a pickle for another process holds of a storage."""
    if isinstance(storage, TypedStorage):
        return rebuild_typed_storage, (storage._untyped_storage, storage.dtype)
    if storage.device.type != "cpu":
        return storage.__reduce__()
    if storage.nbytes() == 0:
        return rebuild_storage_empty, (UntypedStorage,)
    memory = share(storage._bytes)
    return rebuild_storage, (_Ticket(memory), storage.nbytes())


class _Ticket:
    """Stands for shared memory in a pickle, and is the memory once that is read."""

    def __init__(self, memory: SharedMemory) -> None:
        self.memory = memory

    def __reduce__(self) -> tuple:
        return ticket(self.memory)


def rebuild_typed_storage(storage: UntypedStorage, dtype: _C.dtype) -> TypedStorage:
    """The typed storage on an untyped one."""
    return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


def rebuild_tensor(cls: type | None, storage: TypedStorage, metadata: tuple) -> _C.Tensor:
    """The tensor on a storage that was sent: metadata is offset, size, stride, requires_grad and bits."""
    from rushlight.nn.parameter import Parameter

    offset, size, stride, requires_grad, lazy = metadata
    tensor = _C.on_storage(storage._untyped_storage._bytes, storage.dtype, offset, size, stride)
    if lazy:
        _C.set_lazy(tensor, *lazy)
    if cls is Parameter:
        return Parameter(tensor, requires_grad=requires_grad)
    if requires_grad:
        _C.requires_grad_(tensor, True)
    return tensor


def reduce_tensor(tensor: _C.Tensor) -> tuple:
    """What a pickle for another process holds of a tensor. Its memory is moved to shared memory first."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not "
            "support crossing process boundaries.  If you just want to transfer the data, call detach() on "
            "the tensor before serializing (e.g., putting it on the queue)."
        )
    if tensor._backward_hooks:
        from rushlight.utils.hooks import warn_if_has_hooks

        warn_if_has_hooks(tensor)
    if tensor.device.type != "cpu":
        return tensor.__reduce_ex__(2)
    storage = TypedStorage(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype, _internal=True)
    lazy = (tensor.is_conj(), tensor.is_neg()) if tensor.is_conj() or tensor.is_neg() else None
    metadata = tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.requires_grad, lazy
    cls = None if type(tensor) is _C.Tensor else type(tensor)
    return rebuild_tensor, (cls, storage, metadata)


def init_reductions() -> None:
    """Makes multiprocessing send tensors and storages this way."""
    from rushlight.nn.parameter import Parameter

    for storage in (UntypedStorage, TypedStorage):
        ForkingPickler.register(storage, reduce_storage)
    for kind in (_C.Tensor, Parameter):
        ForkingPickler.register(kind, reduce_tensor)
