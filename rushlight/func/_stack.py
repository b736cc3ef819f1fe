"""`torch._C._functorch`: which transforms are at work, and what a tensor of theirs is."""

from __future__ import annotations

import enum
from typing import Any

from rushlight import _C
from rushlight.func._allowed import allowed
from rushlight.func._levels import number_of
from rushlight.func._tensor import BATCH, GRADIENTS, TANGENTS, TAPE, Tensor

argnums_t = int | tuple[int, ...]


class TransformType(enum.IntEnum):
    """The kinds of transforms."""

    Torch, Vmap, Grad, Jvp, Functionalize = range(5)
    __str__ = enum.Enum.__str__


class RandomnessType(enum.IntEnum):
    """What random functions do in a batch."""

    Error, Same, Different = range(3)
    __str__ = enum.Enum.__str__


_TYPES = {GRADIENTS: TransformType.Grad, TANGENTS: TransformType.Jvp, BATCH: TransformType.Vmap,
          TAPE: TransformType.Torch}  # fmt: skip


class CInterpreter:
    """A transform that is at work."""

    def __init__(self, number: int, kind: int, size: int, randomness: str) -> None:
        self._number, self._kind, self._size, self._randomness = number, kind, size, randomness

    def key(self) -> TransformType:
        """Which transform it is."""
        return _TYPES[self._kind]

    def level(self) -> int:
        """How many are at work up to this one."""
        return _C.level_depth(self._number)


for _class in (TransformType, RandomnessType, CInterpreter):
    _class.__module__ = "torch._C._functorch"


def check_tensor(name: str, value: Any, returns: str) -> None:
    """As these functions refuse what is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name}(): incompatible function arguments. The following argument types are supported:\n    1. "
            f"(arg0: torch.Tensor) -> {returns}\n\nInvoked with: {value!r}"
        )


def is_functorch_wrapped_tensor(tensor: Any) -> bool:
    """Whether it stands for another tensor."""
    check_tensor("is_functorch_wrapped_tensor", tensor, "bool")
    return _C.is_leveled(tensor)


def is_batchedtensor(tensor: Any) -> bool:
    """Whether it stands for a batch."""
    check_tensor("is_batchedtensor", tensor, "bool")
    return _C.is_leveled(tensor) and tensor.batched


def is_gradtrackingtensor(tensor: Any) -> bool:
    """Whether it stands for a tensor by which a function is being differentiated."""
    check_tensor("is_gradtrackingtensor", tensor, "bool")
    return _C.is_leveled(tensor) and not tensor.batched


def is_dead_tensor_wrapper(tensor: Any) -> bool:
    """Whether the derivative that it was made for has been computed."""
    return is_gradtrackingtensor(tensor) and not _C.level_depth(tensor.level)


def is_functionaltensor(tensor: Any) -> bool:
    """False: nothing is functionalised."""
    check_tensor("is_functionaltensor", tensor, "bool")
    return False


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """False: there are none."""
    check_tensor("is_legacy_batchedtensor", tensor, "bool")
    return False


def maybe_get_level(tensor: Any) -> int:
    """The level of a tensor, -1 if it has none, -2 if that has ended."""
    check_tensor("maybe_get_level", tensor, "int")
    if not _C.is_leveled(tensor):
        return -1
    return _C.level_depth(tensor.level) or -2


def maybe_get_bdim(tensor: Any) -> int:
    """Where the examples of a batch lie, which is always first; -1 if it is none."""
    return 0 if is_batchedtensor(tensor) else -1


def get_unwrapped(tensor: Any) -> Tensor:
    """What it stands for."""
    check_tensor("get_unwrapped", tensor, "torch.Tensor")
    if not _C.is_leveled(tensor):
        raise RuntimeError("No wrappers present!")
    return tensor.value


def unwrap_if_dead(tensor: Any) -> Tensor:
    """The same, of one whose level has ended; others as they are."""
    check_tensor("unwrap_if_dead", tensor, "torch.Tensor")
    return tensor.value if is_dead_tensor_wrapper(tensor) else tensor


def unwrap_dead_wrappers(args: tuple) -> tuple:
    """The same of several values."""
    return tuple(unwrap_if_dead(value) if isinstance(value, Tensor) else value for value in args)


def get_interpreter_stack() -> list[CInterpreter] | None:
    """The transforms at work, from the outside in."""
    return [CInterpreter(*each) for each in _C.all_levels()] or None


def peek_interpreter_stack() -> CInterpreter | None:
    """The innermost transform."""
    top = _C.top_level()
    return None if top is None else CInterpreter(*top)


def get_dynamic_layer_stack_depth() -> int:
    """How many transforms are at work."""
    return len(_C.all_levels())


def maybe_current_level() -> int | None:
    """The innermost level, if there is one."""
    return get_dynamic_layer_stack_depth() or None


def current_level() -> int:
    """The innermost level."""
    level = maybe_current_level()
    if level is None:
        raise RuntimeError("current_level(): no function is being transformed")
    return level


def _push(kind: int, size: int = 0, randomness: str = "") -> int:
    from rushlight.func._levels import intercept

    intercept()
    _C.push_level(kind, size, randomness)
    return current_level()


def _pop(kind: int) -> int:
    top = _C.top_level()
    if top is None or top[1] != kind:
        raise RuntimeError("the innermost transform is not of this kind")
    level = current_level()
    _C.pop_level(top[0])
    return level


def _grad_increment_nesting() -> int:
    return _push(GRADIENTS)


def _grad_decrement_nesting() -> int:
    return _pop(GRADIENTS)


def _jvp_increment_nesting() -> int:
    return _push(TANGENTS)


def _jvp_decrement_nesting() -> int:
    return _pop(TANGENTS)


def _vmap_increment_nesting(batch_size: int, randomness: str) -> int:
    return _push(BATCH, batch_size, randomness)


def _vmap_decrement_nesting() -> int:
    return _pop(BATCH)


def _wrap_for_grad(tensor: Tensor, level: int) -> Tensor:
    return _C.raise_to_level(tensor, number_of(level), False)


def _unwrap_for_grad(tensor: Tensor, level: int) -> Tensor:
    if is_dead_tensor_wrapper(tensor):  # its level may have been left for a while
        return get_unwrapped(tensor)
    return _C.lower_from_level(tensor, number_of(level))


def _add_batch_dim(tensor: Tensor, batch_dim: int, level: int) -> Tensor:
    from rushlight.func._vmap import batched_at

    number = number_of(level)
    return _C.below_level(number, batched_at, tensor, number, batch_dim % tensor.dim())


def _remove_batch_dim(tensor: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    from rushlight.func._vmap import _together

    number = number_of(level)
    return _C.below_level(number, _together, tensor, number, batch_size, out_dim, "_remove_batch_dim")


def reshape_dim_into(src: int, dst: int, x: Tensor) -> Tensor:
    """The tensor with `src` in front of `dst`, counted without it, and both one dimension."""
    _check_calling("reshape_dim_into", (src, dst, x), (int, int, Tensor))
    rest = x.dim() - 1
    src, dst = _within(src, rest + 1), _within(dst, rest)
    return x.movedim(src, dst).flatten(dst, dst + 1)


def reshape_dim_outof(src: int, size1: int, x: Tensor) -> Tensor:
    """The tensor with one dimension more: `src` becomes `size1` by what is left."""
    _check_calling("reshape_dim_outof", (src, size1, x), (int, int, Tensor))
    src = _within(src, x.dim())
    return x.unflatten(src, (size1, x.size(src) // size1 if size1 else 0))


def _within(dim: int, rank: int) -> int:
    if not -rank <= dim < rank:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})"
        )
    return dim % rank


def _check_calling(name: str, values: tuple, kinds: tuple) -> None:
    if not all(map(isinstance, values, kinds)):
        said = ", ".join(
            f"arg{i}: {'torch.Tensor' if k is Tensor else k.__name__}" for i, k in enumerate(kinds)
        )
        raise TypeError(
            f"{name}(): incompatible function arguments. The following argument types are supported:\n    1. "
            f"({said}) -> torch.Tensor\n\nInvoked with: {', '.join(map(repr, values))}"
        )


# Which operations have no rule for a batch is not the same here as in torch. What is computed example by
# example is decided by the operation, and gives the same: the switches are about the one made to try them.
def _is_vmap_fallback_enabled() -> bool:
    """Whether `_test_functorch_fallback` may be computed example by example."""
    return allowed.example_by_example


def _set_vmap_fallback_enabled(enabled: bool) -> None:
    """Lets it be computed, or has it refused."""
    _check_switch("_set_vmap_fallback_enabled", enabled)
    allowed.example_by_example = enabled


def _set_vmap_fallback_warning_enabled(enabled: bool) -> None:
    """Has it warn that it is slow, or not."""
    _check_switch("_set_vmap_fallback_warning_enabled", enabled)
    allowed.warns_of_examples = enabled


def _check_switch(name: str, enabled: Any) -> None:
    if not isinstance(enabled, bool):
        raise TypeError(
            f"{name}(): incompatible function arguments. The following argument types are supported:\n    1. "
            f"(arg0: bool) -> None\n\nInvoked with: {enabled!r}"
        )


def get_inplace_requires_grad_allowed() -> bool:
    """Whether requires_grad_() may be called inside transforms, in this thread."""
    return allowed.in_place_requires_grad


def set_inplace_requires_grad_allowed(value: bool) -> None:
    """Lets requires_grad_() be called inside transforms, or not."""
    allowed.in_place_requires_grad = value


def get_single_level_autograd_function_allowed() -> bool:
    """Whether a Function without setup_context may be applied inside transforms, in this thread."""
    return allowed.single_level_function


def set_single_level_autograd_function_allowed(value: bool) -> None:
    """Lets such a Function be applied, or not."""
    allowed.single_level_function = value
