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


# Steps that are taken as the tensors and modes say: that they are asked for changes nothing.
_INERT = _named("BackendSelect", "Functionalize", "PreDispatch", "PythonDispatcher", "FuncTorchBatched")


class _Asked(threading.local):
    """What this thread asked to leave out and to take; where recording, asking and casting are left out,
    what they were before."""

    out: DispatchKeySet = DispatchKeySet()
    taken: DispatchKeySet = DispatchKeySet()
    recording: tuple[bool, bool] | None = None
    asking: Any = None
    casting: Any = None


_asked = _Asked()


def _check(keys: DispatchKeySet, what: str, *more: str) -> None:
    possible = _RECORDS | _PYTHON | _AUTOCAST | _INERT | _named(*more)
    if not keys._keys <= possible._keys:
        raise NotImplementedError(f"these steps cannot be {what}: {keys - possible}")


def _leave_out(keys: DispatchKeySet, back: DispatchKeySet) -> None:
    """Leaves out the steps of `keys`, and takes those of `back` again."""
    _check(keys, "left out")
    _check(back, "put back", "ADInplaceOrView")
    out = _asked.out = (_asked.out | keys) - back
    casts = not out.has(DispatchKey.AutocastCPU)
    if not casts and _asked.casting is None and rushlight.is_autocast_enabled("cpu"):
        from rushlight.amp.autocast_mode import _DisableAutocast

        _asked.casting = _DisableAutocast().__enter__()
    elif casts and _asked.casting is not None:
        _asked.casting.__exit__()
        _asked.casting = None
    records, asks = not out._keys & _RECORDS._keys, not out._keys & _PYTHON._keys
    if not records and _asked.recording is None:
        _asked.recording = _C.set_grad_enabled(False), _C._set_fwd_grad_enabled(False)
    elif records and _asked.recording is not None:
        _C.set_grad_enabled(_asked.recording[0])
        _C._set_fwd_grad_enabled(_asked.recording[1])
        _asked.recording = None
    if not asks and _asked.asking is None:
        from rushlight._native_names import _DisableTorchDispatch

        _asked.asking = _DisableTorchDispatch().__enter__()
    elif asks and _asked.asking is not None:
        _asked.asking.__exit__()
        _asked.asking = None


def _take(keys: DispatchKeySet) -> None:
    """Takes the steps of `keys` whatever the tensors are: of those that they take anyway."""
    _check(keys, "taken whatever the tensors are", "CPU", "ADInplaceOrView")
    _asked.taken = keys


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


def _inactive_autocast() -> DispatchKeySet:
    return _AUTOCAST - _named("AutocastCPU") if rushlight.is_autocast_enabled("cpu") else _AUTOCAST


def _dispatch_tls_local_exclude_set() -> DispatchKeySet:
    """The keys whose steps this thread leaves out."""
    keys = _inactive_autocast() | _asked.out
    if rushlight.is_inference_mode_enabled():
        keys |= _named("AutogradOther", "AutogradNestedTensor")
    return keys


def _dispatch_tls_local_include_set() -> DispatchKeySet:
    """The keys whose steps this thread takes whatever the tensors are."""
    keys = _named("BackendSelect") | _asked.taken
    return keys if rushlight.is_inference_mode_enabled() else keys | _named("ADInplaceOrView")


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


def _dispatch_tls_set_dispatch_key_excluded(key: Any, excluded: bool) -> None:
    """Leaves a step out from now on, or takes it again."""
    keys = _named(key) if isinstance(key, str) else DispatchKeySet(key)
    _leave_out(keys if excluded else DispatchKeySet(), DispatchKeySet() if excluded else keys)


def _dispatch_tls_set_dispatch_key_included(key: Any, included: bool) -> None:
    """Takes a step whatever the tensors are from now on, or no more."""
    keys = _named(key) if isinstance(key, str) else DispatchKeySet(key)
    _take(_asked.taken | keys if included else _asked.taken - keys)


class _PreserveDispatchKeyGuard:
    """Afterwards, the same steps are left out and taken as before."""

    def _enter(self) -> None:
        pass

    def __enter__(self) -> None:
        self._before = _asked.out, _asked.taken
        self._enter()

    def __exit__(self, *error: object) -> None:
        out, _asked.taken = self._before
        _leave_out(out - _asked.out, _asked.out - out)


class _ExcludeDispatchKeyGuard(_PreserveDispatchKeyGuard):
    """Inside, calls leave some steps out: recording (all keys of Autograd), asking modes and classes
    (Python), or casting."""

    def __init__(self, keys: DispatchKeySet) -> None:
        _check(keys, "left out")
        self._keys = keys

    def _enter(self) -> None:
        _leave_out(self._keys, DispatchKeySet())


class _SetExcludeDispatchKeyGuard(_PreserveDispatchKeyGuard):
    """Inside, a step is left out, or taken though a guard around it leaves it out."""

    def __init__(self, key: Any, excluded: bool) -> None:
        self._key, self._excluded = key, excluded

    def _enter(self) -> None:
        _dispatch_tls_set_dispatch_key_excluded(self._key, self._excluded)


class _IncludeDispatchKeyGuard(_PreserveDispatchKeyGuard):
    """Inside, calls take a step whatever the tensors are: those that they take anyway can be asked for."""

    def __init__(self, key: Any) -> None:
        self._keys = key if isinstance(key, DispatchKeySet) else DispatchKeySet(key)

    def _enter(self) -> None:
        _take(_asked.taken | self._keys)


class _ForceDispatchKeyGuard(_PreserveDispatchKeyGuard):
    """Inside, exactly these steps are taken and left out; without arguments, as it is."""

    def __init__(self, include: DispatchKeySet | None = None, exclude: DispatchKeySet | None = None) -> None:
        self._include, self._exclude = include, exclude

    def _enter(self) -> None:
        if self._include is None or self._exclude is None:
            return
        included, excluded = _dispatch_tls_local_include_set(), _dispatch_tls_local_exclude_set()
        _take((_asked.taken | self._include) - (included - self._include))
        _leave_out(self._exclude - excluded, excluded - self._exclude)


_OWN = [
    "_keys",
    "_order",
    "_named",
    "_Asked",
    "_enumeration",
    "_leave_out",
    "_take",
    "_check",
    "_inactive_autocast",
]
NAMES = {
    name: value
    for name, value in list(globals().items())
    if getattr(value, "__module__", None) == __name__ and name not in _OWN
}
NAMES["ExcludeDispatchKeyGuard"] = _ExcludeDispatchKeyGuard
