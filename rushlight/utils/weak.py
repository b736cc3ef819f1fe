"""Weak references and dictionaries by identity: tensors compare by value, so they cannot be plain keys."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any
from weakref import ref

from rushlight import _C

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]

WeakRef = ref


class WeakIdRef(weakref.ref):
    """A weak reference that equals another one to the same object, and hashes by its identity.

    >>> t = rushlight.ones(2)
    >>> rushlight.utils.weak.WeakIdRef(t) == rushlight.utils.weak.WeakIdRef(t)
    True
    """

    __slots__ = ["_id"]

    def __init__(self, key: Any, callback: Any = None) -> None:
        self._id = id(key)
        super().__init__(key, callback)  # type: ignore[call-arg]

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine, theirs = self(), other() if isinstance(other, weakref.ref) else None
        return mine is theirs if mine is not None and theirs is not None else self is other


class _WeakHashRef(weakref.ref):
    """A weak reference that equals others as its object does, also when that is gone."""

    __slots__ = ["_hash"]

    def __init__(self, key: Any, callback: Any = None) -> None:
        self._hash = hash(key)
        super().__init__(key, callback)  # type: ignore[call-arg]

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        mine, theirs = self(), other() if isinstance(other, weakref.ref) else None
        return mine == theirs if mine is not None and theirs is not None else self is other


class WeakIdKeyDictionary(MutableMapping):
    """A dictionary whose entries go when their keys do.

    >>> t = rushlight.ones(2)
    >>> notes = rushlight.utils.weak.WeakIdKeyDictionary({t: "mine"})
    >>> notes[t], len(notes)
    ('mine', 1)
    """

    def __init__(self, dict: Any = None, ref_type: type = WeakIdRef) -> None:
        self.data: dict = {}
        self.ref_type = ref_type
        mine = weakref.ref(self)

        def remove(key: Any) -> None:
            owner = mine()
            if owner is not None:
                owner.data.pop(key, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: Any) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # an object without weak references
            return False

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def keyrefs(self) -> list:
        """Weak references to the keys."""
        return list(self.data)

    def popitem(self) -> tuple[Any, Any]:
        while True:
            reference, value = self.data.popitem()
            key = reference()
            if key is not None:
                return key, value

    def copy(self) -> WeakIdKeyDictionary:
        """A dictionary with the same keys and values."""
        return type(self)(dict(self.items_by_reference()), self.ref_type)

    def items_by_reference(self) -> Iterator[tuple[Any, Any]]:
        for reference, value in list(self.data.items()):
            key = reference()
            if key is not None:
                yield key, value

    __copy__ = copy

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        joined = self.copy()
        joined.update(other)
        return joined

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:
        self.update(other)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        theirs = {id(key): other[key] for key in other}
        return {id(key): value for key, value in self.items_by_reference()} == theirs

    __hash__ = None  # type: ignore[assignment]


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor; calling it gives the tensor or None."""

    def __init__(self, tensor: _C.Tensor) -> None:
        if not isinstance(tensor, _C.Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = ref(tensor)

    def __call__(self) -> _C.Tensor | None:
        return self.ref()
