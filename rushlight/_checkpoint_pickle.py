"""The pickle in a checkpoint: rushlight's names on this side, torch's in the file, storages as numbers."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType
from typing import Any

import rushlight
from rushlight import _C, _utils
from rushlight._checkpoint_devices import location_tag
from rushlight.ops import create
from rushlight.storage import LEGACY, STORAGE_NAMES, TypedStorage, UntypedStorage

_FILES = {
    "rushlight.optim._lr_base": "torch.optim.lr_scheduler",
    "rushlight.optim._lr_cycles": "torch.optim.lr_scheduler",
    "rushlight.nn.parallel": "torch.nn.parallel.data_parallel",
    "rushlight.ops.create": "torch",
    "rushlight.ops.ranges": "torch",
    "rushlight.ops.shape": "torch",
}
_NOT_LAYERS = {"functional", "init", "parameter", "utils"}


def torch_name(module: str, name: str) -> tuple[str, str]:
    """Where torch has what is `name` in our `module`."""
    if (module, name) == ("rushlight._utils", "_rebuild_from_type_v2"):
        return "torch._tensor", name
    if module in _FILES:
        return _FILES[module], name
    parts = module.split(".")
    if parts[1:2] == ["nn"] and len(parts) == 3 and parts[2] not in _NOT_LAYERS:
        return f"torch.nn.modules.{_layer_file(name, parts[2])}", name
    return ".".join(["torch", *parts[1:]]), name


def _layer_file(name: str, file: str) -> str:
    from rushlight._torch_names import LAYER_FILES

    return LAYER_FILES.get(name, file)


def find_name(module: str, name: str) -> Any:
    """What a pickle means by a name: torch's are ours, others are imported."""
    if module != "torch" and not module.startswith("torch."):
        return None
    if (module, name) == ("torch._tensor", "_rebuild_from_type_v2"):
        return _utils._rebuild_from_type_v2
    ours = "rushlight" + module.removeprefix("torch")
    candidates = [ours]
    if module.startswith("torch.nn."):
        candidates.append("rushlight.nn")
    if module in sys.modules:  # somebody else's, that a program has put beside ours
        candidates.append(module)
    for candidate in candidates:
        try:
            found: Any = importlib.import_module(candidate)
            for part in name.split("."):
                found = getattr(found, part)
            return found
        except (ImportError, AttributeError):
            continue
    raise AttributeError(f"the file uses {module}.{name}, which Rushlight does not have")


def _get_layout(name: str) -> Any:
    """The layout of this name."""
    for layout in (create.strided, *create.SPARSE):
        if name == str(layout):
            return layout
    raise NotImplementedError(f"Rushlight does not have the layout {name}")


_get_layout.__module__ = "rushlight.serialization"  # where torch has it, and where pickles look for it


def _reduce_module(module: Any) -> tuple:
    """torch expects the hook tables of a module, which ours has only once there are hooks."""
    made, arguments, *rest = module.__reduce_ex__(2)
    if rest and isinstance(rest[0], dict):
        state = {name: value for name, value in rest[0].items() if name not in ("_hooked", "_forgotten")}
        for name in ("_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
                     "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
                     "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
                     "_load_state_dict_post_hooks"):  # fmt: skip
            state.setdefault(name, OrderedDict())
        state.setdefault("_is_full_backward_hook", None)
        rest[0] = state
    return (made, arguments, *rest)


_PythonPickler: Any = vars(pickle)["_Pickler"]
# Of these types themselves nothing is a storage or reduces to something else.
_ORDINARY = {type(None), bool, int, float, str, bytes, tuple, list, dict}


class _NamesPickler(_PythonPickler):
    """Pickles tensors as torch does, with torch's names. In Python, for only there a name can be changed."""

    def __init__(self, file: Any, protocol: int) -> None:
        super().__init__(file, protocol=protocol)
        if self.proto < 4:  # without frames
            self.write = file.write

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        kind = type(obj)
        if kind in _ORDINARY:  # most of what a checkpoint holds
            known = self.memo.get(id(obj))
            self.framer.commit_frame()
            if known is not None:
                self.write(self.get(known[0]))
            else:
                self.dispatch[kind](self, obj)
        elif kind is OrderedDict and not obj and not obj.__dict__ and id(obj) not in self.memo:
            self.save_reduce(OrderedDict, (), obj=obj)  # the hooks of a tensor
        else:
            super().save(obj, save_persistent_id)

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, _C.Tensor) and type(obj).__reduce_ex__ is _C.Tensor.__reduce_ex__:
            return _utils.reduce_tensor(obj)
        if isinstance(obj, rushlight.layout):
            return _get_layout, (str(obj),)
        if isinstance(obj, rushlight.nn.Module):
            return _reduce_module(obj)
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if obj is _C.Tensor:
            module, name = "torch", "Tensor"
        elif isinstance(obj, _C.dtype):
            module, name = "torch", str(obj).removeprefix("torch.")
        else:
            name = name or getattr(obj, "__qualname__", None) or obj.__name__
            module = vars(pickle)["whichmodule"](obj, name)
            if module.partition(".")[0] != "rushlight" or "." in name:
                if "<locals>" in name:
                    pickle.dumps(obj)  # refused in the words, and by the type, of the pickler that torch uses
                super().save_global(obj, name)
                return
            module, name = torch_name(module, name)
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    dispatch = {**_PythonPickler.dispatch, FunctionType: save_global}


class Storages:
    """The storages of a pickle being written: each once, under a number."""

    def __init__(self) -> None:
        self.keys: dict[int, str] = {}
        self.storages: dict[str, UntypedStorage] = {}
        self.dtypes: dict[int, _C.dtype] = {}

    def describe(self, obj: Any) -> tuple | None:
        """What stands in the pickle for a storage; None for any other object."""
        if isinstance(obj, TypedStorage):
            untyped, dtype, kind = obj._untyped_storage, obj.dtype, LEGACY[STORAGE_NAMES[obj.dtype]]
        elif isinstance(obj, UntypedStorage):
            untyped, dtype, kind = obj, _C.uint8, UntypedStorage
        else:
            return None
        count = untyped.nbytes() // dtype.itemsize
        where = untyped.data_ptr()
        if where and self.dtypes.setdefault(where, dtype) != dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types"
            )
        key = self.keys.setdefault(untyped._cdata, str(len(self.keys)))
        self.storages[key] = untyped
        return "storage", kind, key, location_tag(untyped), count


def make_pickler(pickle_module: Any, persistent_id: Callable, file: Any, protocol: int) -> Any:
    """A pickler of this module that asks persistent_id about storages and writes tensors as torch does."""
    base = _NamesPickler if pickle_module is pickle else pickle_module.Pickler
    namespace: dict[str, Any] = {"persistent_id": lambda self, obj: persistent_id(obj)}
    if base is not _NamesPickler:
        namespace["reducer_override"] = _NamesPickler.reducer_override
    return type("CheckpointPickler", (base,), namespace)(file, protocol=protocol)


def memory_of(storage: UntypedStorage) -> memoryview:
    """The bytes of a storage, without a copy."""
    if storage.nbytes() == 0:
        return memoryview(b"")
    return memoryview(_C.export_buffer(storage.cpu()._all()))
