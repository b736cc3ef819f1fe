"""Tensors of a program's own classes: as_subclass, wrappers, and what `__torch_dispatch__` brings with it."""

from __future__ import annotations

from rushlight import _C
from rushlight._type_names import type_name as class_name

Tensor = _C.Tensor


def as_subclass(self, cls):
    """A view of this tensor that is an instance of a Tensor subclass. It does not ask `__torch_function__`,
    whose answer would again be of the class that the caller wants to leave."""
    if not isinstance(self, Tensor):
        raise TypeError(
            "descriptor 'as_subclass' for 'torch._C.TensorBase' objects doesn't apply to a "
            f"'{class_name(self)}' object"
        )
    return _C.view_as_subclass(self, cls)


Tensor.as_subclass = as_subclass


def _make_subclass(
    cls,
    data,
    require_grad=False,
    *,
    dispatch_sizes_strides_policy=None,
    dispatch_device=False,
    dispatch_layout=False,
    device_for_backend_keys=None,
):
    """The data of a tensor as an instance of a subclass: a leaf that knows nothing of the tensor."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {class_name(cls)})")
    if not isinstance(data, Tensor):
        told = f"must be Tensor, not {class_name(data)}"
        raise TypeError(f"_make_subclass(): argument 'data' (position 2) {told}")
    mode = _C.set_dispatch_mode(False)
    try:
        plain = data.detach() if _is_asked(data) else _C.detach(data)
    finally:
        _C.set_dispatch_mode(mode)
    if require_grad and not (plain.is_floating_point() or plain.is_complex()):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    made = _C.view_as_subclass(plain, cls) if _is_asked(plain) else _C.as_subclass(plain, cls)
    _ask_about(made, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    return _C.requires_grad_(made, True) if require_grad else made


def _make_wrapper_subclass(
    cls,
    size,
    strides=None,
    storage_offset=None,
    memory_format=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    dispatch_sizes_strides_policy=None,
    dispatch_device=False,
    dispatch_layout=False,
    _extra_dispatch_keys=None,
    storage_size=None,
):
    """An instance of a subclass with the given sizes and no data: operations on it are its
    `__torch_dispatch__`'s."""
    asked = getattr(cls, "__torch_dispatch__", None)
    if getattr(asked, "__func__", None) is _disabled_torch_dispatch:
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    if layout is not None and str(layout) != "torch.strided":
        raise NotImplementedError(f"wrappers of layout {layout} are not implemented: all tensors are strided")
    if strides is None and storage_offset is not None:
        raise RuntimeError("setting storage offset without stride not supported")
    dtype = dtype or _C.get_default_dtype()
    if strides is None:
        meta = _C.empty(tuple(size), dtype, "meta")
    else:
        meta = _C.empty_strided(tuple(size), tuple(strides), dtype, "meta")
    made = _C.make_wrapper(cls, meta, device, storage_offset or 0)
    _ask_about(made, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    return _C.requires_grad_(made, True) if requires_grad else made


def _is_asked(tensor):
    return _C.dispatches(tensor) and not _C.is_any_sparse(tensor) and not _C.is_leveled(tensor)


def _ask_about(made, policy, device, layout):
    if policy or device or layout:
        from rushlight._asked_attributes import mark

        mark(made, policy, device, layout)


def _disabled_torch_dispatch(cls, func, types, args=(), kwargs=None):
    """Runs an operation on the tensors as if their classes were plain."""
    before = _C.set_dispatch_disabled(True)
    try:
        return func(*args, **(kwargs or {}))
    finally:
        _C.set_dispatch_disabled(before)


Tensor._make_subclass = staticmethod(_make_subclass)
Tensor._make_wrapper_subclass = staticmethod(_make_wrapper_subclass)
Tensor.__torch_dispatch__ = classmethod(_disabled_torch_dispatch)


def _init_subclass(cls, **kwargs):
    """A class that has a `__torch_dispatch__` and says nothing of `__torch_function__` is not asked."""
    super(Tensor, cls).__init_subclass__(**kwargs)
    _C.keep_native_operators(cls)
    if "__torch_dispatch__" not in vars(cls):
        return
    if vars(cls)["__torch_dispatch__"] is _C._disabled_torch_dispatch_impl:  # as if it had none
        cls.__torch_dispatch__ = vars(Tensor)["__torch_dispatch__"]
    else:
        inherited = getattr(cls.__torch_function__, "__func__", None)
        if inherited is Tensor.__torch_function__.__func__:
            cls.__torch_function__ = _C._disabled_torch_function_impl


Tensor.__init_subclass__ = classmethod(_init_subclass)
