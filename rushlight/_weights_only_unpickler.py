"""A reader of pickles that runs nothing: tensors, containers, numbers and text, and what the user allows.

It is a small machine for the opcodes that torch's checkpoints use. A name in the pickle is looked up in a
table, never imported; only functions of that table are called, only objects of known types are built.
"""

from __future__ import annotations

import _compat_pickle
import codecs
import pickle
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

import rushlight
from rushlight import _C, _utils
from rushlight.storage import LEGACY, TypedStorage, UntypedStorage

_BLOCKED = {"sys", "os", "posix", "nt"}
_MARK = object()

# What the user allows, by full name. One list for the process, as in torch.
user_allowed: dict[str, Any] = {}


# What torch's checkpoints may hold and Rushlight cannot.
_LACKING = {
    "torch._utils._rebuild_qtensor": "quantized tensors",
    "torch._utils._rebuild_nested_tensor": "nested tensors",
}
_LACKING |= {
    f"torch.{name}": f"tensors of the dtype torch.{name}"
    for name in (
        "float4_e2m1fn_x2", "bits8", "bits16", "bits1x8", "bits2x4", "bits4x2", "qint8", "qint32", "quint8",
        "quint4x2", "quint2x4",
    )
}  # fmt: skip


class StorageType:
    """Stands for a storage class in a checkpoint: only its dtype matters."""

    def __init__(self, name: str) -> None:
        self.dtype = LEGACY[name]._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


def full_name(obj: Any) -> str:
    """The name under which a pickle refers to a class or function."""
    return f"{obj.__module__}.{obj.__qualname__}"


def renamed(module: str, name: str) -> tuple[str, str]:
    """Where Python 3 has a name that protocol 2 writes as Python 2 had it."""
    if (module, name) in _compat_pickle.NAME_MAPPING:
        return _compat_pickle.NAME_MAPPING[module, name]
    return _compat_pickle.IMPORT_MAPPING.get(module, module), name


def _encode(text: str, encoding: str = "utf-8") -> bytes:
    if encoding not in ("latin1", "utf-8"):
        raise UnpicklingError(f"Trying to encode as {encoding}")
    return codecs.encode(text, encoding)


def _table() -> tuple[dict[str, Any], tuple]:
    """The names that every checkpoint may use, and those of them that may be called."""
    from rushlight._checkpoint_pickle import _get_layout
    from rushlight.nn.parameter import Parameter

    called = {
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "torch.nn.parameter.Parameter": Parameter,
        "torch.serialization._get_layout": _get_layout,
        "torch.Size": rushlight.Size,
        "torch.device": rushlight.device,
        "torch.Tensor": rushlight.Tensor,
        "_codecs.encode": _encode,
        "builtins.bytearray": bytearray,
        "builtins.set": set,
        "builtins.complex": complex,
        "torch._tensor._rebuild_from_type_v2": _utils._rebuild_from_type_v2,
    }
    for name in ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_parameter",
                 "_rebuild_parameter_with_state", "_rebuild_meta_tensor_no_storage",
                 "_rebuild_sparse_tensor", "_rebuild_wrapper_subclass"):  # fmt: skip
        called[f"torch._utils.{name}"] = getattr(_utils, name)
    names: dict[str, Any] = dict(called)
    for dtype in LEGACY.values():
        names[str(dtype._dtype)] = dtype._dtype
    for name in ("uint16", "uint32", "uint64", "complex32", "float8_e4m3fn", "float8_e4m3fnuz",
                 "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"):  # fmt: skip
        names[f"torch.{name}"] = getattr(_C, name)
    for name in LEGACY:
        names[f"torch.{name}"] = names[f"torch.cuda.{name}"] = StorageType(name)
    names["torch.storage.UntypedStorage"] = UntypedStorage
    names["torch.storage.TypedStorage"] = TypedStorage
    return names, tuple(called.values())


def _get_allowed_globals() -> dict[str, Any]:
    """What every checkpoint may name, by its full name."""
    return _table()[0]


class Unpickler:
    """Reads one pickle from a file. `persistent_load` provides the storages."""

    def __init__(self, file: Any, *, encoding: str = "bytes") -> None:
        self.file, self.encoding = file, encoding
        self.names, self.callable = _table()
        self.memo: dict[int, Any] = {}
        self.stack: list[Any] = []
        self.protocol = -1
        self.persistent_load: Callable[[Any], Any] = self._no_storages

    def _no_storages(self, pid: Any) -> Any:
        raise UnpicklingError("unsupported persistent id encountered")

    def load(self) -> Any:
        """The object that the pickle describes."""
        read = self.file.read
        while True:
            code = read(1)
            if not code:
                error = EOFError()
                error.add_note("The file ends in the middle of a pickle; is it damaged?")
                raise error
            if code == b".":
                if not self.stack:
                    raise UnpicklingError("the pickle ends before it describes an object")
                return self._pop()
            step = _STEPS.get(code[0])
            if step is None:
                raise UnpicklingError(f"Unsupported operand {code[0]}")
            try:
                step(self)
            except (IndexError, KeyError, UnicodeDecodeError, OverflowError) as error:
                raise UnpicklingError(f"the pickle is damaged: {error!r}") from None

    # ---- input

    def _bytes(self, count: int) -> bytes:
        data = self.file.read(count)
        if len(data) != count:
            raise UnpicklingError("pickle data was truncated")
        return data

    def _number(self, layout: str) -> int:
        return struct.unpack(layout, self._bytes(struct.calcsize(layout)))[0]

    def _line(self) -> str:
        line = self.file.readline()
        if not line.endswith(b"\n"):
            raise UnpicklingError("pickle data was truncated")
        return line[:-1].decode("utf-8")

    def _text(self, count: int) -> str:
        return self._bytes(count).decode("utf-8", "surrogatepass")

    # ---- the stack

    def _pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise UnpicklingError("unexpected MARK found")
        return value

    def _pop_mark(self) -> list[Any]:
        for at in range(len(self.stack) - 1, -1, -1):
            if self.stack[at] is _MARK:
                items = self.stack[at + 1 :]
                del self.stack[at:]
                return items
        raise UnpicklingError("could not find MARK")

    def _top(self, kinds: tuple, what: str) -> Any:
        top = self.stack[-1]
        if type(top) not in kinds:
            raise UnpicklingError(f"Can only {what}, but got {type(top)}")
        return top

    # ---- names, calls, objects

    def global_(self) -> None:
        module, name = self._line(), self._line()
        if self.protocol == 2:
            module, name = renamed(module, name)
        self.stack.append(self.find(module, name))

    def find(self, module: str, name: str) -> Any:
        """What a name of the pickle stands for."""
        full = f"{module}.{name}"
        if module.partition(".")[0] in _BLOCKED:
            raise UnpicklingError(
                f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked."
            )
        ours = "torch" + full.removeprefix("rushlight") if module.startswith("rushlight") else full
        for key in (full, ours):
            if key in user_allowed:
                return user_allowed[key]
        if ours in self.names:
            return self.names[ours]
        if ours in _LACKING:
            raise NotImplementedError(f"the checkpoint holds {_LACKING[ours]}, which Rushlight does not have")
        shown = name if module == "builtins" else full
        raise UnpicklingError(
            f"Unsupported global: GLOBAL {shown} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{shown}])` or the "
            f"`torch.serialization.safe_globals([{shown}])` context manager to allowlist this global if you "
            "trust this class/function."
        )

    def _allowed_by_user(self, obj: Any) -> bool:
        return any(obj is allowed for allowed in user_allowed.values())

    def reduce(self) -> None:
        args, function = self._pop(), self._pop()
        if type(args) is not tuple:
            raise UnpicklingError(f"a call needs a tuple of arguments, not {type(args)}")
        if not any(function is known for known in self.callable) and not self._allowed_by_user(function):
            raise UnpicklingError(f"Trying to call reduce for unrecognized function {function}")
        if function is _utils._rebuild_from_type_v2:
            self._check_rebuild(args)
        if self._allowed_by_user(function):
            self.stack.append(function(*args))
            return
        try:
            self.stack.append(function(*args))
        except (TypeError, ValueError, AttributeError) as error:
            raise UnpicklingError(f"the pickle is damaged: {error}") from None

    def _check_rebuild(self, args: tuple) -> None:
        # This function calls one of its arguments and makes an object of the class that another one is.
        known = len(args) == 4 and isinstance(args[1], type) and issubclass(args[1], _C.Tensor)
        if not known or not any(args[0] is function for function in self.callable):
            raise UnpicklingError("Trying to rebuild a tensor with an unrecognized function")

    def newobj(self) -> None:
        args, cls = self._pop(), self._pop()
        if cls in (OrderedDict, Counter, set) or cls is self.names["torch.nn.parameter.Parameter"]:
            self.stack.append(cls(*args))
        elif self._allowed_by_user(cls):
            self.stack.append(cls.__new__(cls, *args))
        else:
            raise UnpicklingError(f"Trying to create new object for unallowed class {cls}")

    def build(self) -> None:
        state, inst = self._pop(), self.stack[-1]
        if type(inst) is OrderedDict:
            inst.__dict__.update(state)
        elif isinstance(inst, _C.Tensor):
            _utils._set_state(inst, state)
        elif self._allowed_by_user(type(inst)):
            if hasattr(inst, "__setstate__"):
                inst.__setstate__(state)
            else:
                _utils._set_state(inst, state)
        else:
            raise UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, "
                f"but got {type(inst)}"
            )

    def binpersid(self) -> None:
        pid = self._pop()
        if type(pid) is not tuple and type(pid) is not int:
            raise UnpicklingError(f"persistent_load id must be tuple or int, but got {type(pid)}")
        if type(pid) is tuple and (not pid or pid[0] not in ("storage", b"storage")):
            raise UnpicklingError(f"Only persistent_load of storage is allowed, but got {pid[:1]}")
        self.stack.append(self.persistent_load(pid))

    # ---- containers

    def append(self) -> None:
        value = self._pop()
        self._top((list,), "append to lists").append(value)

    def appends(self) -> None:
        values = self._pop_mark()
        self._top((list,), "extend lists").extend(values)

    def setitem(self) -> None:
        value, key = self._pop(), self._pop()
        self._set(self._top((dict, OrderedDict, Counter), "set items of dicts"), key, value)

    def _set(self, mapping: Any, key: Any, value: Any) -> None:
        try:
            mapping[key] = value
        except TypeError as error:
            raise UnpicklingError(f"the pickle is damaged: {error}") from None

    def setitems(self) -> None:
        items = self._pop_mark()
        top = self._top((dict, OrderedDict, Counter), "set items of dicts")
        if len(items) % 2:
            raise UnpicklingError("the pickle is damaged: a key without a value")
        for key, value in zip(items[::2], items[1::2]):
            self._set(top, key, value)

    def put(self, at: int) -> None:
        self.memo[at] = self.stack[-1]

    def few(self, count: int) -> None:
        values = [self._pop() for _ in range(count)]
        self.stack.append(tuple(reversed(values)))

    def proto(self) -> None:
        self.protocol = self._bytes(1)[0]
        if self.protocol != 2:
            import warnings

            warnings.warn(
                f"Detected pickle protocol {self.protocol} in the checkpoint, which was not the default "
                "pickle "
                "protocol used by `torch.load` (2). The weights_only Unpickler might not support all "
                "instructions implemented by this protocol, please file an issue for adding support if you "
                "encounter this.",
                stacklevel=6,
            )


def _push(make: Callable[[Unpickler], Any]) -> Callable[[Unpickler], None]:
    return lambda machine: machine.stack.append(make(machine))


def _short_string(machine: Unpickler, count: int) -> Any:
    data = machine._bytes(count)
    return data if machine.encoding == "bytes" else data.decode(machine.encoding)


_BY_NAME: dict[str, Callable[[Unpickler], Any]] = {
    "PROTO": Unpickler.proto,
    "GLOBAL": Unpickler.global_,
    "REDUCE": Unpickler.reduce,
    "NEWOBJ": Unpickler.newobj,
    "BUILD": Unpickler.build,
    "BINPERSID": Unpickler.binpersid,
    "APPEND": Unpickler.append,
    "APPENDS": Unpickler.appends,
    "SETITEM": Unpickler.setitem,
    "SETITEMS": Unpickler.setitems,
    "MARK": _push(lambda m: _MARK),
    "NONE": _push(lambda m: None),
    "NEWFALSE": _push(lambda m: False),
    "NEWTRUE": _push(lambda m: True),
    "EMPTY_TUPLE": _push(lambda m: ()),
    "EMPTY_LIST": _push(lambda m: []),
    "EMPTY_DICT": _push(lambda m: {}),
    "EMPTY_SET": _push(lambda m: set()),
    "TUPLE": _push(lambda m: tuple(m._pop_mark())),
    "TUPLE1": lambda m: m.few(1),
    "TUPLE2": lambda m: m.few(2),
    "TUPLE3": lambda m: m.few(3),
    "BININT": _push(lambda m: m._number("<i")),
    "BININT1": _push(lambda m: m._number("<B")),
    "BININT2": _push(lambda m: m._number("<H")),
    "LONG1": _push(lambda m: int.from_bytes(m._bytes(m._number("<B")), "little", signed=True)),
    "BINFLOAT": _push(lambda m: struct.unpack(">d", m._bytes(8))[0]),
    "BINUNICODE": _push(lambda m: m._text(m._number("<I"))),
    "SHORT_BINSTRING": _push(lambda m: _short_string(m, m._number("<B"))),
    "BINGET": _push(lambda m: m.memo[m._number("<B")]),
    "LONG_BINGET": _push(lambda m: m.memo[m._number("<I")]),
    "BINPUT": lambda m: m.put(m._number("<B")),
    "LONG_BINPUT": lambda m: m.put(m._number("<I")),
}
_STEPS = {getattr(pickle, name)[0]: step for name, step in _BY_NAME.items()}


def load(file: Any, *, encoding: str = "ASCII") -> Any:
    """What one pickle in an open file holds."""
    return Unpickler(file, encoding=encoding).load()


def __getattr__(name: str) -> Any:
    """torch's names for the list of what the user allows."""
    from rushlight import serialization

    names = {
        "_add_safe_globals": "add_safe_globals",
        "_get_safe_globals": "get_safe_globals",
        "_clear_safe_globals": "clear_safe_globals",
        "_safe_globals": "safe_globals",
    }
    if name in names:
        return getattr(serialization, names[name])
    raise AttributeError(f"module 'torch._weights_only_unpickler' has no attribute '{name}'", name=name)
