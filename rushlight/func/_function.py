"""`autograd.Function` where functions are transformed.

Its derivative is the user's at every level. So it is applied at the highest level of its arguments by a
Function with the same `setup_context`, `backward` and `jvp` whose forward applies it a level lower, down to
tensors of no level, where it is applied as ever. In a batch, its `vmap` is asked, or a Function is made whose
parts are those of the first one, each run on a batch (`generate_vmap_rule`).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight import _C
from rushlight._errors import module_of
from rushlight.autograd.function import Function, _bind, _SingleLevelFunction
from rushlight.func._allowed import allowed
from rushlight.func._parts import validate_vmap_returns_tuple_of_two_elements
from rushlight.func._tensor import BATCH, TAPE, Tensor
from rushlight.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_map, tree_unflatten

_MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"

# Functions of Rushlight's own whose nodes are of use to the user alone.
_AS_WRITTEN = ("rushlight.nn.", "rushlight._custom_op", "rushlight._operators")


class VmapInfo(NamedTuple):
    """What `Function.vmap` is told of the batch."""

    batch_size: int
    randomness: str


class _Outside(threading.local):
    grad = True  # whether was recorded where the Function was applied


_outside = _Outside()


def apply(cls: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`cls.apply` inside transforms; called by the native code."""
    separate = cls.setup_context is not _SingleLevelFunction.setup_context
    if not separate:
        made_in = sys.modules.get(cls.__module__)
        home = cls.__module__ if made_in is None else module_of(vars(made_in))
        ours = home.startswith("rushlight.") and not home.startswith(_AS_WRITTEN)
        if allowed.single_level_function or (ours and cls.__name__ != "CheckpointFunction"):
            return _C.apply_function(cls, *args)
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), "
            f"it must override the setup_context staticmethod. {_MORE}"
        )
    return _applied(cls, *_bind(cls.forward, args, kwargs, False))


def _applied(cls: Any, *args: Any) -> Any:
    number = _C.highest_level(args)
    kind, size, randomness = _C.level_about(number) if number else (TAPE, 0, "")
    if kind == TAPE:
        return _C.apply_function(cls, *args)
    if kind == BATCH:
        return _in_batch(cls, args, number, size, randomness)
    raised = (_raised(arg, number) for arg in args)
    before, _outside.grad = _outside.grad, _C.is_grad_enabled()
    try:
        return _C.apply_function(_at_level(cls), *raised)
    finally:
        _outside.grad = before


def _raised(value: Any, number: int) -> Any:
    if not isinstance(value, Tensor) or _C.highest_level((value,)) == number:
        return value
    return _C.raise_to_level(value, number, False)


def _same_or(raise_one: Callable, outputs: Any, inner: Any, outer: Any) -> Any:
    """The outputs a level higher; an input that came back is the input there."""
    known = {
        id(low): high
        for low, high in zip(tree_flatten(inner)[0], tree_flatten(outer)[0], strict=True)
        if isinstance(low, Tensor)
    }
    return tree_map(lambda out: known[id(out)] if id(out) in known else raise_one(out), outputs)


def _at_level(cls: Any) -> Any:
    """The Function that stands for `cls` at a level of derivatives."""
    if "_at_level" in vars(cls):
        return vars(cls)["_at_level"]

    def forward(*args: Any) -> Any:
        number = _C.highest_level(args)
        inner = tuple(_C.lower_from_level(arg, number) for arg in args)
        before = _C.set_grad_enabled(_outside.grad)
        try:
            outputs = _C.below_level(number, _applied, cls, *inner)
        finally:
            _C.set_grad_enabled(before)
        return _same_or(lambda out: _raised(out, number), outputs, inner, args)

    parts = {"forward": staticmethod(forward), "_node_name": f"{cls.__name__}GeneratedBackward"}
    for name in ("setup_context", "backward", "vjp", "jvp"):
        if getattr(cls, name) is not getattr(_SingleLevelFunction, name):
            parts[name] = staticmethod(getattr(cls, name))
    parts["clear_saved_tensors_on_access"] = cls.clear_saved_tensors_on_access
    parts["boxed_grads_call"] = cls.boxed_grads_call
    cls._at_level = type(cls)(f"{cls.__name__}Generated", (Function,), parts)
    return cls._at_level


def _dims(args: tuple, number: int) -> tuple[tuple, tuple]:
    """Arguments below a batch, and where each of them has its examples."""

    def lower(value: Any) -> Any:
        return _C.lower_from_level(value, number) if isinstance(value, Tensor) else value

    def dim(value: Any) -> int | None:
        if not isinstance(value, Tensor):
            return None
        below = _C.lower_from_level(value, number)
        return 0 if below is not value and _batched(value, number) else None

    return tree_map(lower, args), tree_map(dim, args)


def _batched(value: Any, number: int) -> bool:
    value = _C.living(value)
    return _C.is_leveled(value) and value.level == number and value.batched


def _raised_from(number: int, size: int) -> Callable:
    def raise_one(value: Any, dim: int | None) -> Any:
        if dim is None or not isinstance(value, Tensor):
            return value
        return _C.raise_to_level(value.movedim(dim, 0) if dim else value, number, True)

    return raise_one


def _in_batch(cls: Any, args: tuple, number: int, size: int, randomness: str) -> Any:
    own = cls.vmap is not Function.vmap
    if cls.generate_vmap_rule and own:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an "
            "overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap "
            f"staticmethod to avoid ambiguity. {_MORE}"
        )
    if not cls.generate_vmap_rule and not own:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and "
            f"implement the vmap staticmethod or set generate_vmap_rule=True. {_MORE}"
        )
    inner, dims = _dims(args, number)
    if all(dim is None for dim in tree_flatten(dims)[0]):
        return _C.below_level(number, _applied, cls, *inner)
    if cls.generate_vmap_rule:
        whole = _of_batches(cls, dims, size, randomness)
        outputs = _C.below_level(number, _applied, whole, *inner)
        out_dims = whole.out_dims
    else:
        answer = _C.below_level(number, cls.vmap, VmapInfo(size, randomness), dims, *inner)
        validate_vmap_returns_tuple_of_two_elements(answer)
        outputs, out_dims = answer
    flat, spec = tree_flatten(outputs)
    places = _broadcast_to_and_flatten(out_dims, spec)
    if places is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. "
            f"Expected out_dims={out_dims} to be compatible with the structure of `output`. out_dims has "
            f"structure {tree_flatten(out_dims)[1]} but output has structure {spec}. {_MORE}"
        )
    raise_one = _raised_from(number, size)
    known = {
        (id(low), dim): high
        for low, dim, high in zip(*(tree_flatten(each)[0] for each in (inner, dims, args)), strict=True)
        if isinstance(low, Tensor)
    } if not cls.generate_vmap_rule else {}  # fmt: skip
    made = [
        known[id(out), dim] if (id(out), dim) in known else _C.below_level(number, raise_one, out, dim)
        for out, dim in zip(flat, places, strict=True)
    ]
    return tree_unflatten(made, spec)


class _Context:
    """The ctx of a part of a Function that is run on a batch: what it saves are batches."""

    def __init__(self, ctx: Any, number: int, saved: Any = None) -> None:
        vars(self).update(_ctx=ctx, _number=number, _saved=saved)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, value)

    @property
    def saved_tensors(self) -> Any:
        return self._ctx.saved_tensors if self._saved is None else self._saved

    def _lowered(self, tensors: tuple) -> tuple[tuple, tuple]:
        return _dims(tensors, self._number)

    def save_for_backward(self, *tensors: Any) -> None:
        values, self._ctx._saved_dims = self._lowered(tensors)
        self._ctx.save_for_backward(*values)

    def save_for_forward(self, *tensors: Any) -> None:
        values, self._ctx._forward_dims = self._lowered(tensors)
        self._ctx.save_for_forward(*values)

    def mark_dirty(self, *tensors: Any) -> None:
        self._ctx.mark_dirty(*self._lowered(tensors)[0])

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self._ctx.mark_non_differentiable(*self._lowered(tensors)[0])


CtxCustomSave = _Context
_Context.__name__ = _Context.__qualname__ = "CtxCustomSave"


def _of_batches(cls: Any, in_dims: tuple, size: int, randomness: str) -> Any:
    """The Function of batches that acts on each example as `cls` does."""
    from rushlight.func._levels import level

    def on_batch(function: Callable, *groups: tuple) -> tuple[Any, Any]:
        """What a function of groups of arguments, (values, dims) each, returns, and where its examples
        are."""
        with level(BATCH, size, randomness) as number:
            raise_one = _raised_from(number, size)
            given = []
            for values, dims in groups:
                flat, spec = tree_flatten(values)
                places: Any = _broadcast_to_and_flatten(dims, spec)
                raised = [_C.below_level(number, raise_one, v, d) for v, d in zip(flat, places, strict=True)]
                given.append(tree_unflatten(raised, spec))
            outputs = function(number, *given)
            flat, spec = tree_flatten(outputs)
            values, dims = _dims(tuple(flat), number)
        return tree_unflatten(list(values), spec), tree_unflatten(list(dims), spec)

    def forward(*args: Any) -> Any:
        outputs, dims = on_batch(lambda number, given: cls.forward(*given), (args, in_dims))
        flat, spec = tree_flatten(outputs)
        every = [
            value.unsqueeze(0).expand(size, *value.shape)
            if isinstance(value, Tensor) and dim is None
            else value
            for value, dim in zip(flat, tree_flatten(dims)[0], strict=True)
        ]  # so that each example has a gradient of its own
        whole.out_dims = tree_unflatten([0 if isinstance(value, Tensor) else None for value in flat], spec)
        return tree_unflatten(every, spec)

    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        def run(number: int, given: tuple, result: Any) -> tuple:
            cls.setup_context(_Context(ctx, number), given, result)
            return ()

        ctx._shapes = tuple(x.shape if isinstance(x, Tensor) else None for x in inputs)
        on_batch(run, (inputs, in_dims), (output, whole.out_dims))

    def backward(ctx: Any, *gradients: Any) -> Any:
        saved = ctx.saved_tensors
        places = whole.out_dims if isinstance(whole.out_dims, tuple) else (whole.out_dims,)
        places = tuple(None if g is None else dim for g, dim in zip(gradients, places, strict=True))

        def run(number: int, kept: tuple, given: tuple) -> Any:
            found = _user_backward(cls)(_Context(ctx, number, kept), *given)
            return found if isinstance(found, tuple) else (found,)

        found, dims = on_batch(run, (saved, getattr(ctx, "_saved_dims", ())), (gradients, places))
        shapes = ctx._shapes
        if len(found) < len(shapes):
            return found  # which is refused
        return tuple(
            _fitted(found[i], dims[i], in_dims[i], size, shapes[i]) if i < len(shapes) else found[i]
            for i in range(len(found))
        )

    def jvp(ctx: Any, *tangents: Any) -> Any:
        saved = ctx.saved_tensors
        places = tuple(None if t is None else dim for t, dim in zip(tangents, in_dims, strict=True))

        def run(number: int, kept: tuple, given: tuple) -> Any:
            return cls.jvp(_Context(ctx, number, kept), *given)

        saved_dims = getattr(ctx, "_forward_dims", getattr(ctx, "_saved_dims", ()))
        found, dims = on_batch(run, (saved, saved_dims), (tangents, places))
        flat, spec = tree_flatten(found)
        wanted = tree_flatten(whole.out_dims)[0]
        lifted = [
            value.unsqueeze(0).expand(size, *value.shape)
            if isinstance(value, Tensor) and dim is None and to is not None
            else value
            for value, dim, to in zip(flat, tree_flatten(dims)[0], wanted, strict=True)
        ]
        return tree_unflatten(lifted, spec)

    parts: dict[str, Any] = {
        "forward": staticmethod(forward),
        "setup_context": staticmethod(setup_context),
        "backward": staticmethod(backward),
        "jvp": staticmethod(jvp),
        "generate_vmap_rule": True,
        "out_dims": None,
    }
    whole: Any = type(cls)(f"Vmapped{cls.__name__}", (Function,), parts)
    return whole


def _user_backward(cls: Any) -> Callable:
    return cls.backward if cls.vjp is _SingleLevelFunction.vjp else cls.vjp


def _fitted(found: Any, dim: int | None, wanted: int | None, size: int, shape: Any) -> Any:
    """A gradient as its input is: for one that all examples share, the sum of theirs. Being linear, one that
    is not batched comes from outputs that all examples share too, and is the whole of it."""
    if not isinstance(found, Tensor) or shape is None:
        return found
    if wanted is None:
        return found if dim is None else found.sum(0)
    if dim is None:
        found = found.unsqueeze(0).expand(size, *found.shape)
    surplus = found.dim() - len(shape)
    if surplus > 0:  # it was broadcast in each example
        found = found.sum(tuple(range(1, surplus + 1)))
    example = tuple(n for at, n in enumerate(shape) if at != wanted)
    return found.sum_to_size(size, *example).movedim(0, wanted)
