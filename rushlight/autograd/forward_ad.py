"""Forward-mode differentiation: tensors that carry a tangent along.

    >>> import rushlight as torch
    >>> import rushlight.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(torch.tensor(3.0), torch.tensor(1.0))
    ...     print(fwAD.unpack_dual(x * x).tangent)
    tensor(6.)

How a tangent passes an operation is in ops/_tangents.py; where it hangs, in native/python/forward_mode.cpp.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import rushlight
from rushlight import _C
from rushlight._type_names import type_name as class_name
from rushlight.autograd.grad_mode import _Mode
from rushlight.ops._tangents import tangents as _formulas

Tensor = _C.Tensor

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

_C.set_tangent_formulas(_formulas)
_current_level = -1


class UnpackedDualTensor(NamedTuple):
    """What :func:`unpack_dual` returns: the value, and the tangent or None."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Opens a level in which dual tensors can be made; returns its number. :class:`dual_level` is safer."""
    global _current_level
    if _current_level >= 0:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _C.enter_dual_level()
    _current_level += 1
    return _current_level


def exit_dual_level(*, level: int | None = None) -> None:
    """Closes a level: every tangent made in it is gone."""
    global _current_level
    if level is None:
        level = _current_level
    if level == _current_level < 0:
        raise RuntimeError("Dual level must be a positive number.")
    if level != _current_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not "
            "supported."
        )
    _C.exit_dual_level()
    _current_level -= 1


def _may_overlap(sizes: tuple, strides: tuple) -> bool:
    """Whether two elements may lie in one place: a step does not lead beyond all smaller ones together."""
    reach = 0
    for step, n in sorted((step, n) for n, step in zip(sizes, strides, strict=True) if n > 1):
        if step <= reach:
            return True
        reach += step * (n - 1)
    return False


def _aliased(tensor: Tensor) -> Tensor:
    """A view of the whole. Who is asked about operations knows it as an alias."""
    return _C.ops.alias(tensor) if _C.asks_dispatch(tensor) else tensor.view_as(tensor)


def _laid_out_as(tensor: Tensor, tangent: Tensor) -> Tensor:
    """The tangent in memory as the tensor is, so that every view of the one is a view of the other."""
    if _C.is_leveled(tensor) or _C.is_leveled(tangent):  # native/python/forward_mode.cpp lays them out
        return tangent
    sizes, strides, offset = tensor.shape, tensor.stride(), tensor.storage_offset()
    room, given = (t.untyped_storage().nbytes() // t.element_size() for t in (tensor, tangent))
    alike = all(n < 2 or a == b for n, a, b in zip(sizes, strides, tangent.stride(), strict=True))
    alike = alike and tensor.is_conj() == tangent.is_conj() and tensor.is_neg() == tangent.is_neg()
    if tensor.numel() == 0 or tensor.device.type == "meta":
        return tangent
    if alike and offset == tangent.storage_offset() and room == given:
        return tangent
    if _may_overlap(sizes, strides):
        return tangent
    memory = tangent.new_zeros(room, dtype=tensor.dtype).as_strided(sizes, strides, offset)
    memory = memory.conj() if tensor.is_conj() and memory.is_complex() else memory
    memory = memory._neg_view() if tensor.is_neg() else memory
    return memory.detach().copy_(tangent)  # no view: what jvp makes of it is compared with it


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of `tensor` that carries `tangent`: the direction in which to differentiate."""
    level = _current_level if level is None else level
    _check_parts(tensor, tangent, level)
    return rushlight._make_dual(tensor, tangent, level=level)  # which asks the classes of both


def _check_parts(tensor: Tensor, tangent: Tensor, level: int) -> None:
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for name, value in (("primal", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}")


def _dual(tensor: Tensor, tangent: Tensor, level: int) -> Tensor:
    _check_parts(tensor, tangent, level)
    inference = _C.is_inference_mode_enabled()  # where nothing is carried
    if level > 0 and not inference:
        raise RuntimeError("Invalid level given to _make_dual")
    if _C.tangent(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level "
            f"{level} is not supported."
        )
    if _C.tangent(tangent) is not None:
        raise RuntimeError(
            f"Setting a forward grad that itself has a forward gradient at the same level{level} is not "
            "supported."
        )
    if not inference and tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, "
            f"this is not supported. Tensor is of size {list(tensor.shape)} while the given forward gradient "
            f"is of size {list(tangent.shape)}."
        )
    if _current_level < 0:
        raise RuntimeError(
            "Trying to access a forward AD level with an invalid index. This index was either not created or "
            "is already deleted."
        )
    dual = _aliased(tensor)
    if not inference:
        _C.set_tangent(dual, _laid_out_as(tensor, tangent))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Takes a dual tensor apart: (primal, tangent). The tangent of a plain tensor is None."""
    level = _current_level if level is None else level
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {class_name(tensor)}"
        )
    return UnpackedDualTensor(*rushlight._unpack_dual(tensor, level=level))


def _parts(tensor: Tensor, level: int) -> tuple[Tensor, Tensor | None]:
    asked_for = _C._is_fwd_grad_enabled() and not _C.is_inference_mode_enabled()
    tangent = _C.tangent(tensor) if asked_for else None
    if level > 0 and tangent is not None:
        raise RuntimeError("Invalid level given to _fw_primal")
    before = _C.set_forward_mode(False)
    try:
        if _C.is_grad_enabled():
            _ = tensor.grad_fn  # brought up to date before: it is no step of what follows
        since = _C.next_sequence()
        primal = _aliased(tensor)
        if _C.next_sequence() != since:
            _C.name_node(primal, "torch::autograd::Identity", since, {})
        if _current_level >= 0:
            _C.set_tangent(primal, None)
    finally:
        _C.set_forward_mode(before)
    return primal, tangent


class dual_level(_Mode):
    """Context manager (and decorator): forward mode is on inside it.

    >>> with dual_level():
    ...     d = make_dual(torch.ones(2), torch.ones(2))
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: Any) -> None:
        exit_dual_level()


class _set_fwd_grad_enabled(_Mode):
    """Context manager that switches the carrying of tangents on or off."""

    def __init__(self, mode: bool) -> None:
        self.mode, self.before = mode, _C._set_fwd_grad_enabled(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        _C._set_fwd_grad_enabled(self.before)

    def clone(self) -> _set_fwd_grad_enabled:
        return self.__class__(self.mode)


_is_fwd_grad_enabled = _C._is_fwd_grad_enabled
