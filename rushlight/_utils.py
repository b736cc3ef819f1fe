"""How a pickled tensor becomes one again: the functions that torch's files name, under torch's names. And how
an exception crosses to another process."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from rushlight import _C
from rushlight.storage import TypedStorage


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> _C.Tensor:
    """A tensor of this geometry on a storage, which other tensors may share."""
    if not isinstance(storage, TypedStorage):
        raise TypeError(f"a tensor is rebuilt from a storage, not from {type(storage).__name__}")
    made = _C.on_storage(storage._untyped_storage._bytes, storage.dtype, storage_offset, size, stride)
    _C.set_version(made, 1)  # in torch it was moved there
    return made


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: dict | None = None,
) -> _C.Tensor:
    """The same with what autograd knows, and how the elements are to be read."""
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    for mark in metadata or {}:
        if mark not in ("conj", "neg"):
            raise NotImplementedError(f"tensors with the mark {mark!r} are not supported")
    if metadata:
        _C.set_lazy(tensor, bool(metadata.get("conj")), bool(metadata.get("neg")))
    if requires_grad:
        _C.requires_grad_(tensor, True)
    if backward_hooks:
        raise NotImplementedError("tensors that were saved with backward hooks are not supported")
    return tensor


def _rebuild_tensor_v3(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: _C.dtype,
    metadata: dict | None = None,
) -> _C.Tensor:
    """The same on an untyped storage, with the dtype given."""
    untyped = getattr(storage, "_untyped_storage", storage)
    typed = TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)
    return _rebuild_tensor_v2(typed, storage_offset, size, stride, requires_grad, backward_hooks, metadata)


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Any, stride: Any, requires_grad: bool) -> _C.Tensor:
    """A tensor with sizes and no data."""
    from rushlight.ops.create import empty_strided

    return empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=requires_grad)


def _rebuild_sparse_tensor(layout: Any, data: tuple) -> _C.Tensor:
    """A sparse tensor of its indices, values, size and, of one in coordinates, whether it is coalesced."""
    import rushlight

    if layout is not rushlight.sparse_coo:
        return rushlight.sparse_compressed_tensor(*data, layout=layout)
    indices, values, size, *coalesced = data
    return rushlight.sparse_coo_tensor(
        indices, values, size, is_coalesced=coalesced[0] if coalesced else None
    )


def _rebuild_parameter(data: _C.Tensor, requires_grad: bool, backward_hooks: Any) -> Any:
    from rushlight.nn.parameter import Parameter

    param = Parameter(data, requires_grad)
    if backward_hooks:
        param._backward_hooks = backward_hooks
    return param


def _rebuild_parameter_with_state(data: Any, requires_grad: bool, backward_hooks: Any, state: Any) -> Any:
    return _set_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _get_obj_state(obj: Any) -> Any:
    """The attributes of an object: a dict, or a dict and the values of slots."""
    import copyreg

    slots = {
        name: getattr(obj, name)
        for name in copyreg._slotnames(type(obj))  # type: ignore[attr-defined]
        if name not in ("__dict__", "__weakref__") and hasattr(obj, name)
    }
    return (dict(obj.__dict__), slots) if slots else dict(obj.__dict__)


def _set_state(obj: Any, state: Any) -> Any:
    """Gives an object the attributes it was saved with: a dict, or a dict and the values of slots."""
    if isinstance(state, tuple):
        if len(state) != 2:
            raise RuntimeError(f"Invalid serialized state: {state}")
        attributes = {**(state[0] or {}), **state[1]}
    else:
        attributes = state or {}
    if not isinstance(attributes, dict):
        raise RuntimeError(f"Invalid serialized state: {state}")
    for name, value in attributes.items():
        setattr(obj, name, value)
    return obj


def _rebuild_from_type_v2(func: Any, new_type: type, args: tuple, state: Any) -> _C.Tensor:
    """A tensor of a subclass, or one with attributes."""
    tensor = func(*args)
    if type(tensor) is not new_type:
        tensor = _C.as_subclass(tensor, new_type)
    own = getattr(type(tensor), "__setstate__", None)
    if own is not None and own is not getattr(_C.Tensor, "__setstate__", None):
        own(tensor, state)
        return tensor
    return _set_state(tensor, state)


def _rebuild_from_type(func: Any, type: type, args: tuple, dict: dict) -> _C.Tensor:
    """A tensor of a subclass as older versions of torch wrote it."""
    if type is _C.Tensor:
        return func(*args)
    tensor = _C.as_subclass(func(*args), type)
    tensor.__dict__ = dict
    return tensor


def get_tensor_metadata(tensor: _C.Tensor) -> dict:
    """What a tensor is besides its elements: whether they are to be read as conjugate or negative."""
    return {name: True for name, said in (("conj", tensor.is_conj()), ("neg", tensor.is_neg())) if said}


def cpu_count() -> int | None:
    """How many processors this process may use."""
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _is_privateuse1_backend_available() -> bool:
    """Whether someone else's device can be used: nobody adds one."""
    return False


def _get_available_device_type() -> str | None:
    """The accelerator of this machine: none is used."""
    return None


def _rebuild_wrapper_subclass(
    cls: type, dtype: Any, size: Any, stride: Any, storage_offset: int, layout: Any, device: Any,
    requires_grad: bool,
) -> _C.Tensor:  # fmt: skip
    """A wrapper of the given sizes; what it wraps comes with its attributes."""
    return _C.Tensor._make_wrapper_subclass(
        cls, size, strides=stride, storage_offset=storage_offset, layout=layout, device=device, dtype=dtype,
        requires_grad=requires_grad,
    )  # fmt: skip


def is_compiling() -> bool:
    """Whether this code is being compiled: never."""
    return False


def reduce_tensor(tensor: _C.Tensor) -> tuple:
    """What torch's format says about a tensor: one of the functions above and its arguments."""
    from rushlight.storage import STORAGE_NAMES, data_of
    from rushlight.utils.hooks import warn_if_has_hooks

    warn_if_has_hooks(tensor)
    if _C.is_any_sparse(tensor):
        return tensor.__reduce_ex__(2)
    grad = tensor.requires_grad
    if _C.dispatches(tensor) and tensor.data_ptr() == 0:
        place = tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
        given = (type(tensor), *place, tensor.layout, tensor.device, grad)
        return _rebuild_from_type_v2, (_rebuild_wrapper_subclass, type(tensor), given, _get_obj_state(tensor))
    if tensor.device.type == "meta":
        call: tuple = _rebuild_meta_tensor_no_storage, (
            tensor.dtype, tuple(tensor.shape), tensor.stride(), grad,
        )  # fmt: skip
    else:
        geometry = tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
        marks = {name: True for name in ("conj", "neg") if getattr(tensor, f"is_{name}")()}
        marked = (marks,) if marks else ()
        data = data_of(tensor)
        hooks: OrderedDict = OrderedDict()
        if tensor.dtype in STORAGE_NAMES:
            call = _rebuild_tensor_v2, (data, *geometry, grad, hooks, *marked)
        else:
            untyped = data._untyped_storage
            call = _rebuild_tensor_v3, (untyped, *geometry, grad, hooks, tensor.dtype, *marked)
    state = dict(tensor.__dict__)
    if type(tensor) is _C.Tensor and not state:
        return call
    return _rebuild_from_type_v2, (call[0], type(tensor), call[1], state)


class KeyErrorMessage(str):
    """KeyError shows its argument by repr: this text keeps its line breaks."""

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception as its type and the text of its traceback, to be raised again elsewhere."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        import traceback

        kind, error, trace = exc_info if exc_info is not None else sys.exc_info()
        self.exc_type: Any = kind
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))
        self.where = where

    def reraise(self) -> None:
        """Raises the exception, with what happened to it in its text."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        elif getattr(self.exc_type, "message", None):
            # Such an exception takes its text by name.
            raise self.exc_type(message=message)
        try:
            error = self.exc_type(message)
        except Exception:
            # An exception that takes other arguments than a text.
            raise RuntimeError(message) from None
        raise error


def _flatten_dense_tensors(tensors: Any) -> _C.Tensor:
    """The elements of all tensors in one vector."""
    import rushlight

    return rushlight.cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: _C.Tensor, tensors: Any) -> tuple[_C.Tensor, ...]:
    """Views of a vector in the shapes of `tensors`."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True))


def _import_dotted_name(name: str) -> Any:
    """What a name such as `torch.nn.Linear` says."""
    first, *rest = name.split(".")
    found = __import__(first)
    for part in rest:
        found = getattr(found, part)
    return found


def _take_tensors(tensors: Any, size_limit: int) -> Iterator[list[_C.Tensor]]:
    """Groups of tensors of one type, of at most `size_limit` bytes each (but of one tensor at least)."""
    groups: dict[str, tuple[list, int]] = {}
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        group, taken = groups.get(tensor.type(), ([], 0))
        if group and taken + size > size_limit:
            yield group
            group, taken = [], 0
        groups[tensor.type()] = [*group, tensor], taken + size
    for group, _ in groups.values():
        yield group


def _reorder_tensors_as(tensors: Any, ordered_tensors: Any) -> tuple[_C.Tensor, ...]:
    """The tensors, each type in its own order, in the order of types that `ordered_tensors` has."""
    of_type: dict[str, list] = {}
    for tensor in tensors:
        of_type.setdefault(tensor.type(), []).append(tensor)
    rest = {kind: iter(group) for kind, group in of_type.items()}
    return tuple(next(rest[tensor.type()]) for tensor in ordered_tensors)


def _element_size(dtype: _C.dtype) -> int:
    """Bytes of an element."""
    return dtype.itemsize


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int | None:
    """The index of a device; with `optional` the current one for None, with `allow_cpu` -1 for the CPU."""
    if isinstance(device, str):
        device = _C.as_device(device)
    if isinstance(device, _C.device):
        if device.type == "cpu" and not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        if device.type == "cpu":
            return -1
        device = device.index
    if isinstance(device, int):
        return device
    if optional:
        return None
    raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")


def _get_device_module(device_type: str) -> Any:
    """The module of a kind of device: torch.cpu, torch.cuda ..."""
    import rushlight

    module = getattr(rushlight, device_type, None)
    if module is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as "
            f"'torch.{device_type}'."
        )
    return module


def try_import(module_name: str) -> Any:
    """A module if it can be imported, else None."""
    import importlib
    import importlib.util

    found = importlib.util.find_spec(module_name)
    return None if found is None else importlib.import_module(module_name)


class classproperty:
    """A property of a class.

    >>> class Named:
    ...     name = rushlight._utils.classproperty(lambda cls: cls.__name__)
    >>> Named.name
    'Named'
    """

    def __init__(self, function: Any) -> None:
        self.fget = function if isinstance(function, (classmethod, staticmethod)) else classmethod(function)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.fget.__get__(instance, type(instance) if owner is None else owner)()


def render_call(fn: Any, args: Any, kwargs: Any) -> str:
    """A call as one would write it, tensors in short."""
    from rushlight.overrides import resolve_name

    def shown(value: Any) -> str:
        if not isinstance(value, _C.Tensor):
            return repr(value)
        parts = ["...", f"size={tuple(value.shape)}"]
        if str(value.device) != "cpu":
            parts.append(f"device='{value.device}'")
        if value.dtype != _C.float32:
            parts.append(f"dtype={value.dtype}")
        if value.requires_grad:
            parts.append("requires_grad=True")
        return f"tensor([{parts[0]}], {', '.join(parts[1:])})"

    given = [*map(shown, args), *(f"{name}={shown(value)}" for name, value in kwargs.items())]
    return f"{resolve_name(fn) or str(fn)}({', '.join(given)})"
