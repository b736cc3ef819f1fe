"""torch's names for the steps that a call takes through its dispatcher, and sets of them.

A call here takes no such steps. But what the keys stand for exists: recording (Autograd), what modes and
classes are asked (Python), views and versions (ADInplaceOrView). So a tensor can be asked which keys it would
have, and the guards that leave steps out do so where it can be done; others are refused.
"""

from __future__ import annotations

import threading
from typing import Any

import rushlight
from rushlight import _C
from rushlight._numbered import Numbered

_BACKENDS = """CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta"""
# Groups of keys with one for every backend: the number of the group, and of its first key less one.
_GROUPS = {"Dense": (1, 48), "Quantized": (5, 65), "Sparse": (8, 82), "SparseCsr": (9, 99),
           "NestedTensor": (10, 116), "AutogradFunctionality": (21, 133)}  # fmt: skip
_OTHERS = """
Undefined=0 BackendSelect=11 Python=13 FuncTorchDynamicLayerBackMode=14 Functionalize=15 Conjugate=16
Negative=17 ZeroTensor=18 ADInplaceOrView=19 AutogradOther=20 AutogradNestedTensor=22 AutocastCPU=24
AutocastXPU=27 AutocastIPU=28 AutocastHPU=29 AutocastMPS=31 AutocastCUDA=32 AutocastPrivateUse1=33
FuncTorchBatched=34 FuncTorchVmapMode=36 FuncTorchGradWrapper=39 PythonTLSSnapshot=41
FuncTorchDynamicLayerFrontMode=42 PreDispatch=45 PythonDispatcher=46 Autograd=150
CompositeImplicitAutograd=151 FuncTorchBatchedDecomposition=152 CompositeImplicitAutogradNestedTensor=153
CompositeExplicitAutograd=154 CompositeExplicitAutogradNonFunctional=155
"""
_group_of: dict[int, int] = {}


def _keys() -> dict[str, int]:
    found = {name: int(number) for name, _, number in (item.partition("=") for item in _OTHERS.split())}
    for group, (number, first) in _GROUPS.items():
        prefix = {"Dense": "", "AutogradFunctionality": "Autograd"}.get(group, group)
        found[group], found[f"StartOf{group}Backends"] = number, first
        for at, backend in enumerate(_BACKENDS.split(), first + 1):
            found[prefix + backend] = at
            _group_of[at] = number
        found[f"EndOf{group}Backends"] = first + 16
    return found


_enumeration: Any = Numbered  # whose call makes a class
DispatchKey: Any = _enumeration("DispatchKey", _keys(), module=__name__)


def _order(key: Any) -> tuple[int, int]:
    return _group_of.get(key.value, key.value), key.value


class DispatchKeySet:
    """A set of keys.

    >>> from rushlight._dispatch_keys import DispatchKey, DispatchKeySet
    >>> DispatchKeySet(DispatchKey.AutogradCPU) | DispatchKeySet(DispatchKey.CPU)
    DispatchKeySet(CPU, AutogradCPU)
    """

    def __init__(self, *keys: Any) -> None:
        self._keys = frozenset(keys) - {DispatchKey.Undefined}

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self._keys | other._keys))

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self._keys & other._keys))

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self._keys - other._keys))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in sorted(self._keys, key=_order))})"

    def has(self, key: Any) -> bool:
        """Whether the key is in the set."""
        return key in self._keys

    def add(self, key: Any) -> DispatchKeySet:
        """The set with one more key."""
        return self | DispatchKeySet(key)

    def remove(self, key: Any) -> DispatchKeySet:
        """The set without the key."""
        return self - DispatchKeySet(key)

    def highestPriorityTypeId(self) -> Any:
        """The key whose step comes first."""
        return max(self._keys, key=_order, default=DispatchKey.Undefined)


def _named(*names: str) -> DispatchKeySet:
    return DispatchKeySet(*(DispatchKey[name] for name in names))


_AUTOCAST = _named(*(name for name in DispatchKey.__members__ if name.startswith("Autocast")))
_RECORDS = _named(*(name for name in DispatchKey.__members__ if name.startswith("Autograd")))
_PYTHON = _named("Python", "PythonTLSSnapshot")


class _Excluded(threading.local):
    sets: tuple[DispatchKeySet, ...] = ()


_excluded = _Excluded()


def _dispatch_keys(tensor: _C.Tensor) -> DispatchKeySet:
    """The keys of the steps that calls with this tensor take in torch."""
    kind = {"cpu": "CPU", "meta": "Meta", "cuda": "CUDA"}[tensor.device.type]
    group = "SparseCsr" if _C.is_compressed(tensor) else "Sparse" if tensor.is_sparse else ""
    keys = _named(group + kind)
    if not tensor.is_inference():
        keys |= _named("ADInplaceOrView", "Autograd" + kind)
    if kind != "Meta":
        keys |= _named("Autocast" + kind)
    if _C.dispatches(tensor) and not group:
        keys |= _PYTHON
    for name, has in (("Conjugate", tensor.is_conj()), ("Negative", tensor.is_neg())):
        keys |= _named(name) if has else _named()
    return keys


_dispatch_key_set = _dispatch_keys


def _dispatch_tls_local_exclude_set() -> DispatchKeySet:
    """The keys whose steps this thread leaves out."""
    keys = _named() if rushlight.is_autocast_enabled("cpu") else _named("AutocastCPU")
    keys |= _AUTOCAST - _named("AutocastCPU")
    if rushlight.is_inference_mode_enabled():
        keys |= _named("AutogradOther", "AutogradNestedTensor")
    for more in _excluded.sets:
        keys |= more
    return keys


def _dispatch_tls_local_include_set() -> DispatchKeySet:
    """The keys whose steps this thread takes whatever the tensors are."""
    return (
        _named("BackendSelect")
        if rushlight.is_inference_mode_enabled()
        else _named("BackendSelect", "ADInplaceOrView")
    )


def _dispatch_tls_is_dispatch_key_excluded(key: Any) -> bool:
    """Whether this thread leaves the step out."""
    return _dispatch_tls_local_exclude_set().has(DispatchKey[key] if isinstance(key, str) else key)


def _dispatch_tls_is_dispatch_key_included(key: Any) -> bool:
    """Whether this thread takes the step whatever the tensors are."""
    return _dispatch_tls_local_include_set().has(DispatchKey[key] if isinstance(key, str) else key)


def _dispatch_key_name(key: Any) -> str:
    """The name of a key."""
    return key.name


def _dispatch_key_parse(name: str) -> Any:
    """The key of that name."""
    if name not in DispatchKey.__members__:
        raise RuntimeError(f"could not parse dispatch key: {name}")
    return DispatchKey[name]


def _parse_dispatch_key(name: str) -> Any:
    """The key of that name, or None."""
    return DispatchKey.__members__.get(name)


def _dispatch_key_for_device(device_type: str) -> str:
    """The name of the key of a kind of device."""
    return {"cpu": "CPU", "meta": "Meta", "cuda": "CUDA"}[device_type]


class _ExcludeDispatchKeyGuard:
    """Inside, calls leave some steps out: recording (all keys of Autograd), or asking modes and classes
    (Python). Autocast is left out by `_DisableAutocast`."""

    def __init__(self, keys: DispatchKeySet) -> None:
        if not keys._keys <= (_RECORDS | _PYTHON)._keys:
            raise NotImplementedError(f"these steps cannot be left out: {keys - _RECORDS - _PYTHON}")
        self._keys = keys

    def __enter__(self) -> None:
        from rushlight._native_names import _DisableTorchDispatch

        _excluded.sets += (self._keys,)
        self._asking = _DisableTorchDispatch() if self._keys._keys & _PYTHON._keys else None
        if self._asking is not None:
            self._asking.__enter__()
        self._recording = _C.set_grad_enabled(_C.is_grad_enabled() and not self._keys._keys & _RECORDS._keys)

    def __exit__(self, *error: object) -> None:
        _C.set_grad_enabled(self._recording)
        if self._asking is not None:
            self._asking.__exit__()
        _excluded.sets = _excluded.sets[:-1]


class _IncludeDispatchKeyGuard:
    """Inside, calls take a step whatever the tensors are: those that they take anyway can be asked for."""

    def __init__(self, key: Any) -> None:
        if not _dispatch_tls_local_include_set().has(key):
            raise NotImplementedError(f"the step {key.name} is taken as the tensors say, and not otherwise")

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


class _ForceDispatchKeyGuard:
    """Inside, exactly these steps are taken and left out: what is so anyway can be asked for."""

    def __init__(self, include: DispatchKeySet | None = None, exclude: DispatchKeySet | None = None) -> None:
        present = _dispatch_tls_local_include_set(), _dispatch_tls_local_exclude_set()
        if include is not None and (include, exclude) != present:
            raise NotImplementedError("the steps of calls can be saved and put back, not chosen one by one")

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


NAMES = {
    name: value
    for name, value in list(globals().items())
    if getattr(value, "__module__", None) == __name__
    and name not in ("_keys", "_order", "_named", "NAMES", "_Excluded", "_enumeration")
}
NAMES["ExcludeDispatchKeyGuard"] = _ExcludeDispatchKeyGuard
