"""Copies and pickles of tensors, and pickles of the functions that work on them."""

from __future__ import annotations

import copyreg
import types

from rushlight import _C
from rushlight._annotations import Any
from rushlight._tensor_subclasses import _make_wrapper_subclass

Tensor = _C.Tensor


def _deepcopy(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at "
            "the moment.  "
            "If you were attempting to deepcopy a module, this may be because of a "
            "torch.nn.utils.weight_norm usage, "
            "see https://github.com/pytorch/pytorch/pull/103001"
        )

    from rushlight.overrides import DisableTorchFunctionSubclass

    with_grad = self.requires_grad
    if type(self) is not Tensor:
        with DisableTorchFunctionSubclass():  # its own methods are asked, not its parent's
            if self.data_ptr() == 0:
                return _deepcopy_wrapper(self, memo)
            kept = type(self.new_empty([])) is type(self)
    if type(self) is not Tensor and not kept:
        raise RuntimeError(
            "The default implementation of __deepcopy__() for non-wrapper subclasses only works for subclass "
            "types that implement new_empty() and for which that function returns another instance of the "
            "same subclass. You should either properly implement new_empty() for your subclass or override "
            "__deepcopy__() if it is intended behavior for new_empty() to return an instance of a different "
            "type."
        )
    from rushlight._untyped_storage import as_ever

    plain = _C.as_subclass(self.detach(), Tensor)
    if plain.is_meta:
        copy = _C.empty_strided(tuple(plain.shape), plain.stride(), plain.dtype, plain.device)
    elif plain.is_conj() or plain.is_neg():
        copy = as_ever(plain.clone)
    else:
        # The memory is copied once, however many tensors are on it.
        storage = plain.untyped_storage()
        key = ("storage", storage.data_ptr() or id(storage))
        if key not in memo:
            # With the original, whose address is not to be given to another meanwhile.
            memo[key] = as_ever(storage._all().clone), plain
        copy = _C.on_storage(
            memo[key][0], plain.dtype, plain.storage_offset(), tuple(plain.shape), plain.stride()
        )
        _C.set_version(copy, 1)  # in torch it was moved there
    if type(self) is not Tensor:
        copy = _C.as_subclass(copy, type(self))
    if with_grad:
        _C.requires_grad_(copy, True)
    return _copy_gradient_and_attributes(self, copy, memo)


def _copy_gradient_and_attributes(self, copy, memo):
    from copy import deepcopy

    memo[id(self)] = copy
    if self.grad is not None:
        copy.grad = deepcopy(self.grad, memo)
    if type(self) is Tensor:  # whose class has no slots
        attributes = self.__dict__
    else:
        from rushlight._utils import _get_obj_state

        state = _get_obj_state(self)
        attributes = {**state[0], **state[1]} if isinstance(state, tuple) else state
    for name, value in attributes.items():
        setattr(copy, name, deepcopy(value, memo))
    return copy


def _deepcopy_wrapper(self, memo):
    """A wrapper has no memory to copy: its class clones it."""
    before = _C.set_grad_enabled(False)
    try:
        copy = self.clone()
    finally:
        _C.set_grad_enabled(before)
    if type(copy) is not type(self):
        raise RuntimeError(
            "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass "
            "types that implement clone() and for which cloning returns another instance of the same "
            "subclass. You should either properly implement clone() for your subclass or override "
            "__deepcopy__() if it is intended behavior for clone() to return an instance of a different type."
        )
    if self.requires_grad:
        _C.requires_grad_(copy, True)
    return _copy_gradient_and_attributes(self, copy, memo)


def _rebuild_wrapper(cls, size, stride, offset, dtype, device, requires_grad, attributes):
    made = _make_wrapper_subclass(
        cls,
        size,
        strides=stride,
        storage_offset=offset,
        dtype=dtype,
        device=device,
        requires_grad=requires_grad,
    )
    from rushlight._utils import _set_state

    return _set_state(made, attributes)


def _rebuild(cls, storage, dtype, offset, size, stride, requires_grad, attributes, lazy=None):
    if storage is None:
        t = _C.empty_strided(size, stride, dtype, "meta")
    elif cls is None:  # another tensor, which counts its writes itself and was moved there once
        t = _C.empty((0,), dtype, storage.device)
        _C.set_storage(t, storage._bytes, dtype, offset, size, stride)
    else:
        t = _C.on_storage(storage._bytes, dtype, offset, size, stride)
    if lazy is not None:
        _C.set_lazy(t, *lazy)
    if cls is not None:
        t = _C.as_subclass(t, cls)
    if requires_grad:
        _C.requires_grad_(t, True)
    for name, value in attributes.items():
        setattr(t, name, value)
    return t


def _reduce_ex(self, protocol):
    if self._backward_hooks:
        from rushlight.utils.hooks import warn_if_has_hooks

        warn_if_has_hooks(self)
    if _C.dispatches(self) and self.data_ptr() == 0:
        place = tuple(self.shape), self.stride(), self.storage_offset(), self.dtype, self.device
        from rushlight._utils import _get_obj_state

        return _rebuild_wrapper, (type(self), *place, self.requires_grad, _get_obj_state(self))
    plain = _C.as_subclass(self.detach(), Tensor)
    if _C.is_zero_for_good(plain):
        raise RuntimeError("ZeroTensor is not serializable, please file an issue if required.")
    lazy = (plain.is_conj(), plain.is_neg())
    _C.set_lazy(plain, False, False)
    return (
        _rebuild,
        (
            # By its name the class would be looked up in torch.
            None if type(self) is Tensor else type(self),
            # The storage itself: copy.copy shares it, a pickle holds it once for all tensors on it.
            None if plain.is_meta else plain.untyped_storage(),
            self.dtype,
            plain.storage_offset(),
            tuple(self.shape),
            plain.stride(),
            self.requires_grad,
            dict(self.__dict__),
            *((lazy,) if any(lazy) else ()),
        ),
    )


def _setstate(self, state):
    """The state as old files have it: storage, offset, size and stride, or what else a tensor knows."""
    if not self.is_leaf:
        raise RuntimeError("__setstate__ can be only called on leaf Tensors")
    if len(state) == 4:
        self.set_(*state)
        return
    if len(state) == 5:
        self.data = state[0]
        state = (state[3], state[4], state[2])
    self.requires_grad, _, self._backward_hooks = state


# ---- pickles of functions name where a program finds them, not the file that defines them


def _named(place: str, name: str) -> Any:
    import rushlight

    owner: Any = rushlight
    for part in place.split(".") if place else ():
        owner = getattr(owner, part)
    return getattr(owner, name)


def _reduce_function(function: Any) -> Any:
    for place in ("", "Tensor", "nn.functional", "linalg", "fft", "special"):
        try:
            if _named(place, function.__name__) is function:
                return _named, (place, function.__name__)
        except AttributeError:
            continue
    return function.__reduce__()


copyreg.pickle(_C.Function, _reduce_function)
copyreg.pickle(_C.Builtin, _reduce_function)


def _reduce_descriptor(method: Any) -> Any:
    # Tensor.__add__ and its like are of a base that programs do not find by its name.
    return _reduce_function(method) if issubclass(Tensor, method.__objclass__) else method.__reduce__()


for _kind in (types.MethodDescriptorType, types.WrapperDescriptorType):
    copyreg.pickle(_kind, _reduce_descriptor)
