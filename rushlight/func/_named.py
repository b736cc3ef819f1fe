"""What is asked about by torch's name, since it is not made of primitives: factories above all.

Where a function is transformed, `torch.zeros(3)` gives a tensor of the innermost level of derivatives, so
that tensors of that level may be written into it; under `vmap` it is the same for all examples, and random
numbers are what `randomness` says.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from rushlight import _C
from rushlight._errors import module_of
from rushlight.func._tensor import BATCH, GRADIENTS, TANGENTS, TAPE, Tensor
from rushlight.utils._pytree import tree_map

_LIKE = ("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like")
_NEW = ("new_empty", "new_zeros", "new_ones", "new_full")
_DRAW = {"rand", "randn", "randint", "randperm", "normal"}
_MAKE = ("empty", "ones", "zeros", "full", "arange", "linspace", "logspace", "eye", "scalar_tensor", "tensor",
         "as_tensor", "from_numpy", "empty_strided", "tril_indices", "triu_indices", "complex32")  # fmt: skip


def _mapped(function: Callable, structure: Any) -> Any:
    """`tree_map`, at a third of its price for the structures that most are."""
    kind = type(structure)
    if kind is tuple:
        return tuple([_mapped(function, part) for part in structure])
    if kind is list:
        return [_mapped(function, part) for part in structure]
    if kind is dict:
        return {key: _mapped(function, part) for key, part in structure.items()}
    if isinstance(structure, Tensor):
        return function(structure)
    return structure if kind in (int, float, bool, str) else tree_map(function, structure)


def raised(made: Any, number: int, batched: bool) -> Any:
    """Tensors in a structure as those of a level."""
    plain = _C.raise_all(made, number, batched)
    if plain is not None:
        return plain

    def one(value: Any) -> Any:
        return _C.raise_to_level(value, number, batched) if isinstance(value, Tensor) else value

    return _mapped(one, made)


def lowered(given: Any, number: int) -> Any:
    """Tensors in a structure as they are below a level."""
    return _mapped(lambda value: _C.lower_from_level(value, number), given)


def run(handle: Any, args: tuple, kwargs: dict) -> Any:
    """An operation that is no primitive, of tensors of a level."""
    number = _C.highest_level((args, tuple(kwargs.values())))
    if not number:
        args, kwargs = tree_map(_C.living, (args, kwargs))
        return handle(*args, **kwargs)
    kind, size, randomness = _C.level_about(number)
    inner, options = lowered(args, number), lowered(kwargs, number)
    name, _, overload = handle.__name__.partition(".")
    if kind == TAPE and name not in (*_LIKE, *_NEW, "new_empty_strided"):
        raise NotImplementedError(f"linearize: {handle} of a tangent cannot be written down")
    if kind != BATCH:
        return raised(_C.below_level(number, functools.partial(handle, **options), *inner), number, False)
    if name in _LIKE:
        if name.startswith("rand"):
            from rushlight.func._batching.random import check

            if not check(randomness):
                made = _C.below_level(number, functools.partial(handle, **options), inner[0][0], *inner[1:])
                return raised(made.unsqueeze(0).expand(size, *made.shape), number, True)
        options.pop("memory_format", None)
        if name == "full_like" and isinstance(inner[1], Tensor):
            inner = (inner[0], args[1].item(), *inner[2:])
    elif name in _NEW:
        values = [value.item() if isinstance(value, Tensor) else value for value in args[2:]]
        inner = (inner[0], [size, *inner[1]], *values)
    elif name == "new_empty_strided":
        shape, strides = inner[1], inner[2]
        length = sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) + 1
        inner = (inner[0], [size, *shape], [max(length, 0), *strides], *inner[3:])
    elif (name, overload) == ("view", "dtype") and (
        args[0].dim() or args[0].element_size() == args[1].itemsize
    ):
        pass
    elif name == "equal":
        raise RuntimeError("Batching rule not implemented for aten::equal. We could not generate a fallback.")
    elif handle.is_view or name.endswith("_"):
        raise NotImplementedError(f"vmap: there is no batching rule for {handle}")
    else:  # a program's own operation, say
        for value in (*args, *kwargs.values()):
            if name in _MAKE and isinstance(value, Tensor):
                value.item()  # which is what it is wanted for, and refused
        from rushlight.func._by_example import by_example

        return by_example(lambda *given, **named: handle(*given, **named))(*args, **kwargs)
    return raised(_C.below_level(number, functools.partial(handle, **options), *inner), number, True)


def zeros_as(like: Any, sizes: Any, strides: Any) -> Tensor:
    """Zeros of these sizes and strides, for as many examples as `like` has at every level; called by the
    native code."""
    if not _C.is_leveled(like):
        zeros = like.new_zeros(sizes)
        if zeros.stride() == tuple(strides):
            return zeros
        room = sum((n - 1) * step for n, step in zip(sizes, strides, strict=True)) + 1
        return like.new_zeros(max(room, 0)).as_strided(sizes, strides)
    if like.batched:
        room = sum((n - 1) * step for n, step in zip(sizes, strides, strict=True)) + 1
        sizes, strides = (like.value.shape[0], *sizes), (max(room, 0), *strides)
    if not _C.level_depth(like.level):
        return zeros_as(like.value, sizes, strides)
    made = _C.below_level(like.level, zeros_as, like.value, sizes, strides)
    return _C.raise_to_level(made, like.level, like.batched)


def refuse_in_batch(operation: str, x: Any) -> None:
    """Raises if a tensor belongs to a function of examples, for which an operation is not defined."""
    while _C.is_leveled(x):
        if x.batched and _C.level_depth(x.level) and _C.level_about(x.level)[2]:
            raise RuntimeError(f"vmap: we do not yet support {operation}. Please file an issue")
        x = x.value


# Where operations are made: what these write of their own is nobody else's affair.
_KERNELS = ("rushlight.ops.", "rushlight.nn.functional", "rushlight._")


def _is_asked_for() -> bool:
    """Whether the write is what the program, or a module, has called a function of ours for."""
    called: Any = None
    frame: Any = sys._getframe(2)
    while frame is not None and module_of(frame.f_globals).startswith(_KERNELS):
        called, frame = frame, frame.f_back
    if called is None or called.f_code.co_name.endswith("_"):
        return True
    in_general = module_of(called.f_globals) == "rushlight.ops._public"  # what methods in place are made of
    return in_general or bool(called.f_locals.get("inplace"))


def captured_write(primitive: Any, args: tuple) -> str | None:
    """What torch calls an operation in place; None if it is part of an operation that writes nothing."""
    from rushlight import _aten_calls
    from rushlight._ops import handle_of

    if not _is_asked_for():
        return None
    shown = _aten_calls.shown(primitive, args, True)
    name = shown[0] if shown is not None else str(handle_of(primitive, True)).partition(".")[2]
    return name.removesuffix(".default")


def _sizes(args: tuple, kwargs: dict) -> tuple | None:
    given = kwargs.get("size", args)
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = given[0]
    return tuple(given) if all(isinstance(n, int) for n in given) else None


def _drawing(name: str, original: Callable, number: int, about: tuple, args: tuple, kwargs: dict) -> Any:
    from rushlight.func._batching.random import check

    below = functools.partial(_C.below_level, number)
    if not check(about[2]):
        return below(functools.partial(original, **kwargs), *args)
    size = about[1]
    if name in ("rand", "randn"):
        sizes = _sizes(args, kwargs) or ()
        options = {key: value for key, value in kwargs.items() if key != "size"}
        made = below(functools.partial(original, **options), (size, *sizes))
    else:
        import rushlight

        made = below(
            rushlight.stack, [below(functools.partial(original, **kwargs), *args) for _ in range(size)]
        )
    return raised(made, number, True)


def _at_top(name: str, original: Callable, function: Callable) -> Callable:
    """A factory where functions are transformed."""

    @functools.wraps(function)
    def made(*args: Any, **kwargs: Any) -> Any:
        top = _C.top_level()
        if top is None or _C.highest_level((args, tuple(kwargs.values()))):
            return original(*args, **kwargs)
        if args and isinstance(args[0], Tensor) and _C.dispatches(args[0]):
            return original(*args, **kwargs)
        number, *about = top
        if about[0] not in (BATCH, TAPE):
            wanted = kwargs.pop("requires_grad", False)
            out = raised(_C.below_level(number, functools.partial(function, **kwargs), *args), number, False)
            return _C.requires_grad_(out, True) if wanted else out
        if name in _LIKE[4:]:
            return original(*args, **kwargs)
        if name in _DRAW and about[0] == BATCH:
            return _drawing(name, function, number, tuple(about), args, kwargs)
        return _C.below_level(number, functools.partial(function, **kwargs), *args)

    return made


# What draws of tensors that all examples share, and which of its arguments says how many.
_DRAW_FROM = ("bernoulli", "poisson", "multinomial", "binomial", "dropout", "alpha_dropout",
              "feature_dropout", "feature_alpha_dropout", "rrelu", "normal", "native_dropout", "rand_like",
              "randn_like", "randint_like")  # fmt: skip


def _for_each(x: Tensor, number: int, size: int) -> Tensor:
    """The tensor for every example of a batch, if it is the same for all of them."""
    at: Any = _C.living(x)
    while _C.is_leveled(at):
        if at.level == number and at.batched:
            return x
        at = _C.living(at.value)

    def flags() -> Tensor:
        import rushlight

        return rushlight.ones((size, *(1,) * x.dim()), dtype=_C.bool)

    every = _C.raise_to_level(_C.below_level(number, flags), number, True)
    return _C.ops.where(every, x, x)


def _drawing_from(original: Callable, function: Callable) -> Callable:
    @functools.wraps(function)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        batches = [about for about in _C.all_levels() if about[1] == BATCH and about[3] not in ("", "same")]
        given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        first = next((key for key, value in given.items() if isinstance(value, Tensor)), None)
        draws = kwargs.get("training", kwargs.get("train", True)) is not False
        if not batches or first is None or not draws:
            return original(*args, **kwargs)
        for number, _, size, randomness in batches:
            if randomness == "different":
                given[first] = _for_each(given[first], number, size)
        placed = [given.pop(at) for at in range(len(args))]
        return original(*placed, **given)

    return drawn


def _holds_indices(x: Any) -> bool:
    return not (x.is_floating_point() or x.is_complex())


# What reads the numbers of all its arguments, or of those that are no floating ones.
_READING: dict[str, Callable] = {
    **dict.fromkeys(("histc", "histogram", "histogramdd", "nonzero_static", "argwhere", "linspace",
                     "logspace"), lambda x: True),
    **dict.fromkeys(("embedding_bag", "segment_reduce", "lstm", "gru", "rnn_tanh", "rnn_relu", "bincount",
                     "ctc_loss", "repeat_interleave"), _holds_indices),
}  # fmt: skip


def _are_equal_bags(original: Callable, args: tuple, kwargs: dict) -> bool:
    """Whether a batch of bags is summed at once: all are equally long, and no index is left out."""
    try:
        given = inspect.signature(original).bind(*args, **kwargs).arguments
    except TypeError:
        return False
    plain = not any(given.get(name) is not None for name in ("padding_idx", "max_norm"))
    bags = given.get("input")
    return isinstance(bags, Tensor) and bags.dim() == 2 and plain and given.get("mode", "mean") != "max"


def _one_by_one(original: Callable, function: Callable, reads: Callable) -> Callable:
    """What reads numbers, where functions are transformed."""

    @functools.wraps(function)
    def computed(*args: Any, **kwargs: Any) -> Any:
        if _C.top_level() is None:
            return original(*args, **kwargs)
        if original.__name__ == "embedding_bag" and _are_equal_bags(original, args, kwargs):
            return original(*args, **kwargs)
        from rushlight.func._by_example import by_example

        return by_example(original, reads)(*args, **kwargs)

    return computed


# What gives a tensor another form, or other memory, in place.
_RESHAPING = ("t_", "squeeze_", "unsqueeze_", "transpose_", "swapaxes_", "swapdims_", "detach_",
              "as_strided_", "resize_", "resize_as_", "set_")  # fmt: skip


def _overload(name: str, args: tuple, kwargs: dict) -> str:
    if name == "set_" and args:
        return "set_.source_Tensor" if isinstance(args[0], Tensor) else "set_.source_Storage"
    if name == "squeeze_" and (args or kwargs):
        given = args[0] if len(args) == 1 and not kwargs else kwargs.get("dim", args)
        return "squeeze_.dim" if isinstance(given, int) else "squeeze_.dims"
    return name


def _reshaping(name: str, original: Callable) -> Callable:
    @functools.wraps(original)
    def checked(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        own = _C.level_depth(_C.highest_level((self,)))
        if any(kind in (GRADIENTS, TANGENTS) for _, kind, *_ in _C.all_levels()[own:]):
            raise RuntimeError(
                "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call "
                f"in-place operation (aten::{_overload(name, args, kwargs)}) that would mutate a captured "
                "Tensor. This is not supported; please rewrite the function being transformed to explicitly "
                "accept the mutated Tensor(s) as inputs."
            )
        return original(self, *args, **kwargs)

    return checked


@functools.cache
def intercept() -> None:
    """Lets factories know of levels; from the first transform on."""
    from rushlight import _dispatching
    from rushlight.nn import functional
    from rushlight.ops._public import FUNCTIONS

    _dispatching.intercept()

    def watched(name: str) -> Any:
        found: list[Any] = []
        for function in (FUNCTIONS.get(name), vars(functional).get(name), vars(Tensor).get(name)):
            if isinstance(function, _C.Function) and all(function is not other for other in found):
                found.append(function)
        yield from found

    for name in (*_MAKE, *_DRAW, *_LIKE, *_NEW, "new_tensor", "new_empty_strided"):
        for function in watched(name):
            original = function.while_watched or function.__wrapped__
            function.while_watched = _at_top(name, original, function)
    for name, reads in _READING.items():
        for function in watched(name):
            original = function.while_watched or function.__wrapped__
            function.while_watched = _one_by_one(original, function, reads)
    for name in _RESHAPING:
        function = vars(Tensor)[name]
        function.while_watched = _reshaping(name, function.while_watched or function.__wrapped__)
    for name in _DRAW_FROM:
        for function in watched(name):
            original = function.while_watched or function.__wrapped__
            function.while_watched = _drawing_from(original, function)
