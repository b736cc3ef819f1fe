"""Functions with a derivative of their own: `torch.autograd.Function`.

A subclass writes `forward` and `backward`; `apply` runs the first and records a node that runs the second.
The node is the `ctx` both are given, of a class made per Function and named after it (`MyFnBackward`).
`apply`, what ctx can do and the call of `backward` are native (native/python/custom_function.cpp).
"""

from __future__ import annotations

import _thread
import functools
import itertools
from collections import OrderedDict
from collections.abc import Iterator

from rushlight import _C
from rushlight._annotations import Any
from rushlight._warn import warn
from rushlight.autograd.graph import Node  # gives nodes their hooks

__all__ = [
    "FunctionCtx", "BackwardCFunction", "FunctionMeta", "Function", "once_differentiable", "InplaceFunction",
    "NestedIOFunction",
]  # fmt: skip

AUTOGRAD_FUNCTION_COUNTER = itertools.count()


class FunctionCtx:
    """What a Function's `ctx` can do; on its own it only remembers, for code that calls `forward` itself."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps tensors for backward, where `ctx.saved_tensors` gives them back. Call it once, in forward."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keeps tensors for `jvp`, where `ctx.saved_tensors` gives them back."""
        for tensor in tensors:
            if not isinstance(tensor, _C.Tensor) and tensor is not None:
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as "
                    "attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: _C.Tensor) -> None:
        """Says which inputs forward has written in place; they must be among its outputs."""
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Needless and deprecated: tensors that share memory are found without it."""
        warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically "
            "tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
        )

    def mark_non_differentiable(self, *args: _C.Tensor) -> None:
        """Says which outputs never have a gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (the default) or None for an output nobody used."""
        self.materialize_grads = value


_ContextMethodMixin = FunctionCtx  # its old name


class _HookMixin:
    @staticmethod
    def _register_hook(backward_hooks: Any, hook: Any) -> tuple:
        from rushlight.utils.hooks import RemovableHandle

        if backward_hooks is None:
            backward_hooks = OrderedDict()
        handle = RemovableHandle(backward_hooks)
        backward_hooks[handle.id] = hook
        return backward_hooks, handle


class BackwardCFunction(_C._FunctionBase, FunctionCtx, _HookMixin):
    """The class of a Function's nodes: an instance is `ctx` and `grad_fn` at once."""

    _forward_cls: Any

    def apply(self, *args: Any) -> Any:
        """Calls the Function's backward (or vjp) with this node as ctx."""
        boxed = getattr(self._forward_cls, "boxed_grads_call", False)
        return self._get_user_fn()(self, *((list(args),) if boxed else args))

    def apply_boxed(self, *args: Any) -> Any:
        """Calls the Function's backward (or vjp) with what it takes: with `boxed_grads_call`, a list."""
        return self._get_user_fn()(self, *args)

    def apply_jvp(self, *args: Any) -> Any:
        """Calls the Function's jvp with this node as ctx."""
        return self._forward_cls.jvp(self, *args)

    def _get_user_fn(self) -> Any:
        backward, vjp = self._forward_cls.backward, self._forward_cls.vjp
        if vjp is Function.vjp:
            return backward
        if backward is not Function.backward:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should "
                "only implement one of them."
            )
        return vjp

    @property
    def saved_variables(self) -> tuple:
        """The old name of `saved_tensors`."""
        warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors


BackwardCFunction.__module__ = "torch.autograd.function"


class FunctionMeta(type):
    """Makes the class of nodes that goes with each Function."""

    def __init__(cls, name: str, bases: tuple, attrs: dict) -> None:
        names = {"_forward_cls": cls, "__module__": "torch.autograd.function"}
        names["_autograd_function_id"] = next(AUTOGRAD_FUNCTION_COUNTER)
        cls._backward_cls = type(attrs.get("_node_name") or name + "Backward", (BackwardCFunction,), names)
        super().__init__(name, bases, attrs)


class _SingleLevelFunction(_C._FunctionBase, FunctionCtx, _HookMixin, metaclass=FunctionMeta):
    clear_saved_tensors_on_access = False
    boxed_grads_call = False

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the outputs: `forward(ctx, *args)`, or `forward(*args)` beside a `setup_context`."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Saves what backward needs, if forward does not take ctx itself."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the inputs, one per argument of forward, from those of the outputs."""
        raise NotImplementedError("You must implement either the backward or vjp method for your custom "
                                  "autograd.Function to use it with backward mode AD.")  # fmt: skip

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the outputs from those of the inputs, for forward mode."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )


class Function(_SingleLevelFunction):
    """A differentiable function with a derivative written by hand.

    >>> class Cube(rushlight.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x ** 3
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         x, = ctx.saved_tensors
    ...         return grad * 3 * x ** 2
    >>> x = rushlight.tensor(2., requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all static, so "
            "you should invoke them on the class itself. Instantiating an autograd function will raise an "
            "error in a future version of PyTorch.",
            DeprecationWarning,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style "
            "autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """How the Function acts on a batch, for batching transforms."""
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap "
                                  "staticmethod or set generate_vmap_rule=True.")  # fmt: skip


def _is_setup_context_defined(fn: Any) -> bool:
    """Whether a class has a `setup_context` of its own."""
    return fn != _SingleLevelFunction.setup_context


def _bind(forward: Any, args: tuple, kwargs: dict, with_ctx: bool) -> tuple:
    """All arguments of forward as positional ones; with setup_context, defaults are filled in."""
    import inspect

    signature = inspect.signature(forward)
    if with_ctx:
        unknown = [name for name in kwargs if name not in signature.parameters]
        takes_any = any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())
        if unknown and not takes_any:
            raise TypeError(f"forward() got an unexpected keyword argument '{unknown[0]}'")
        bound = signature.bind(None, *args, **kwargs)
    else:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(f"forward() got an unexpected keyword argument '{next(iter(bound.kwargs))}'")
    return bound.args[1:] if with_ctx else bound.args


class _Raises(Function):
    """Passes values on; differentiating them raises the message that their node carries."""

    _node_name = "Error"

    @staticmethod
    def forward(ctx, *values):
        return tuple(v.detach() if isinstance(v, _C.Tensor) else v for v in values)

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError(ctx.message)


class _Lacks(_Raises):
    """The result of an operation that has no derivative; its node leads on to the operation's inputs."""

    _node_name = "NotImplemented"
    _result = _thread._local()

    @staticmethod
    def forward(ctx, *inputs):
        return _Lacks._result.value


class _Undefined(Function):
    """Passes values on, and no gradient back."""

    _node_name = "UndefinedGradBackward"

    @staticmethod
    def forward(ctx, *values):
        return tuple(v.view_as(v) for v in values)

    @staticmethod
    def backward(ctx, *grads):
        return (None,) * len(grads)


def _in_namespace(cls: type) -> type:
    """The class of a Function's nodes; they call themselves by the full name torch gives to its own."""
    node: Any = cls._backward_cls  # type: ignore[attr-defined]
    node.name = lambda self: f"torch::autograd::{type(self).__name__}"
    node.__module__ = "builtins"  # as those of nodes that are not written in Python
    return node


_Error, _NotImplemented, _ = map(_in_namespace, (_Raises, _Lacks, _Undefined))


def _single(values: tuple) -> Any:
    return values[0] if len(values) == 1 else values


def _as_in_torch(cls: type) -> type:
    """A class of `torch._C._functions` that makes nodes, by its name there; it counts as one of theirs."""
    cls.__name__ = cls.__qualname__ = cls.__name__[1:]
    cls.__module__ = "builtins"
    return Node.register(cls)


def _check_values(values: tuple, count: int) -> tuple:
    if len(values) != count:
        raise TypeError(f"expected {count} arguments, got {len(values)} instead")
    for index, value in enumerate(values):
        if not isinstance(value, _C.Tensor):
            raise TypeError(f"argument {index} is not a Variable")
    return values


@_as_in_torch
class _UndefinedGrad:
    """`torch._C._functions.UndefinedGrad()(x)`: x, through which no gradient comes back."""

    def __call__(self, *values: Any) -> Any:
        return _single(_Undefined.apply(*_check_values(values, 1)))


@_as_in_torch
class _DelayedError:
    """`torch._C._functions.DelayedError(message, count)(*values)`: values whose derivative raises."""

    def __init__(self, *args: Any) -> None:
        if len(args) != 2:
            raise RuntimeError(f"Requires two arguments, got {len(args)}")
        self.message, self.count = args

    def __call__(self, *values: Any) -> Any:
        return _single(_with_message(self.message, _Raises.apply(*_check_values(values, self.count))))


def _with_message(message: str, values: tuple) -> tuple:
    for value in values:
        if isinstance(value, _C.Tensor) and value.grad_fn is not None:
            value.grad_fn.message = message
    return values


def without_derivative(
    name: str, result: Any, *inputs: Any, node: str | None = None, space: str = "aten::"
) -> Any:
    """`result` of the operation `name`, which torch cannot differentiate: asking for its gradient raises.
    Some of them have a `node` of their own in torch, and another sentence."""
    if not _C.is_grad_enabled() or not any(isinstance(i, _C.Tensor) and i.requires_grad for i in inputs):
        return result
    kind, message = _Lacks, f"derivative for {space}{name} is not implemented"
    if node is None and space:  # torch leads to what requires grad alone
        inputs = tuple(i for i in inputs if isinstance(i, _C.Tensor) and i.requires_grad)
    if node is not None:
        kind, message = _named_refusal(node), f"the derivative for '{name}' is not implemented."
    _Lacks._result.value = result
    try:
        outputs = kind.apply(*inputs)
    finally:
        del _Lacks._result.value
    _with_message(message, outputs if isinstance(outputs, tuple) else (outputs,))
    return outputs


@functools.cache
def _named_refusal(node: str) -> Any:
    def backward(ctx, *grads):
        raise NotImplementedError(ctx.message)

    made: Any = type(node, (_Lacks,), {"_node_name": node, "backward": staticmethod(backward)})
    made._backward_cls.__module__ = "builtins"
    return made


def _raise_if_used(message: str, values: tuple) -> tuple:
    # Each value becomes a leaf of its own; a None leads nowhere, but it has its place among the edges.
    leaves = [
        _C.requires_grad_(v.detach(), True) if isinstance(v, _C.Tensor) else _C.empty((0,), _C.float32, None)
        for v in values
    ]
    outputs = _with_message(message, _Raises.apply(*leaves))
    return tuple(o if isinstance(v, _C.Tensor) else v for o, v in zip(outputs, values, strict=True))


def once_differentiable(fn: Any) -> Any:
    """Decorates a `backward` that cannot be differentiated itself: trying to raises an error.

    >>> class Double(rushlight.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...     @staticmethod
    ...     @rushlight.autograd.function.once_differentiable
    ...     def backward(ctx, grad):
    ...         return 2 * grad
    """

    @functools.wraps(fn)
    def wrapper(ctx, *args):
        recording = _C.set_grad_enabled(False)
        try:
            outputs = fn(ctx, *args)
        finally:
            _C.set_grad_enabled(recording)
        if not recording or not any(isinstance(a, _C.Tensor) and a.requires_grad for a in args):
            return outputs
        message = "trying to differentiate twice a function that was marked with @once_differentiable"
        values = outputs if isinstance(outputs, tuple) else (outputs,)
        return _raise_if_used(message, values)

    return wrapper


class InplaceFunction(Function):
    """A Function that remembers whether it works in place."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


def _nested_map(condition: Any, fn: Any, condition_msg: str | None = None) -> Any:
    """Maps what meets the condition, in nested lists, tuples and dicts; None stays."""

    def mapped(obj: Any) -> Any:
        if condition(obj):
            return fn(obj)
        if obj is None:
            return None
        if isinstance(obj, (list, tuple)):
            parts = [mapped(part) for part in obj]
            return type(obj)(*parts) if hasattr(obj, "_fields") else type(obj)(parts)
        if isinstance(obj, dict):
            return {key: mapped(part) for key, part in obj.items()}
        from rushlight import typename

        accepted = f". Accepted types: {condition_msg}, or lists/tuples of them" if condition_msg else ""
        raise ValueError(
            f"Auto nesting doesn't know how to process an input object of type {typename(obj)}{accepted}"
        )

    return mapped


def _map_tensors(function: Any, value: Any) -> Any:
    return _nested_map(lambda part: part is None or isinstance(part, _C.Tensor), function, "Tensors")(value)


def _iter_filter(
    condition: Any, allow_unknown: bool = False, condition_msg: str | None = None, conversion: Any = None
) -> Any:
    """An iterator over what meets the condition in nested lists, tuples and dicts; None is left out."""

    def found(obj: Any) -> Iterator[Any]:
        obj = obj if conversion is None else conversion(obj)
        if condition(obj):
            yield obj
        elif isinstance(obj, (list, tuple, dict)):
            for part in obj.values() if isinstance(obj, dict) else obj:
                yield from found(part)
        elif obj is not None:
            if not allow_unknown:
                _nested_map(lambda _: False, None, condition_msg)(obj)  # refuses
            yield obj

    return found


def _unflatten(input: Any, proto: Any) -> Any:
    """What is flat, nested as `proto` is: an element for each place that is no list or tuple."""
    rest = iter(input)

    def nested(proto: Any) -> Any:
        if isinstance(proto, (list, tuple)):
            return type(proto)(map(nested, proto))
        return next(rest)

    return nested(proto)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, _C.Tensor)


_iter_tensors = _iter_filter(_is_tensor, condition_msg="Tensors")
_iter_tensors_permissive = _iter_filter(_is_tensor, allow_unknown=True, condition_msg="Tensors (permissive)")
_iter_None_tensors = _iter_filter(
    lambda value: value is None or _is_tensor(value), condition_msg="Tensors or None"
)
_map_tensor_data = _nested_map(_is_tensor, lambda tensor: tensor.data, condition_msg="Tensors")


def _flatten(value: Any) -> list:
    found: list = []
    _map_tensors(found.append, value)
    return found


class NestedIOFunction(Function):
    """A Function whose arguments and results are nested lists, tuples and dicts of tensors.

    A subclass writes `forward_extended(ctx, *args)` and `backward_extended(ctx, *grads)`.
    """

    @classmethod
    def apply(cls, *args: Any) -> Any:
        inner: Any = type(cls.__name__, (_Nested,), {"_extended": cls, "_structure": args})
        flat = inner._apply(*_flatten(args))
        return inner._rebuild(flat)

    @staticmethod
    def forward_extended(ctx: Any, *args: Any) -> Any:
        """The computation on nested arguments."""
        raise NotImplementedError

    @staticmethod
    def backward_extended(ctx: Any, *grads: Any) -> Any:
        """The gradients, nested as the arguments are, from those nested as the results are."""
        raise NotImplementedError


class _Nested(Function):
    _extended: Any
    _structure: Any
    _result: Any

    @classmethod
    def _apply(cls, *flat):
        return super().apply(*flat)

    @classmethod
    def _rebuild(cls, flat):
        rest = iter(flat)
        return _map_tensors(lambda _: next(rest), cls._result)

    @classmethod
    def _nest(cls, structure, flat):
        rest = iter(flat)
        return _map_tensors(lambda _: next(rest), structure)

    @staticmethod
    def forward(ctx, *flat):
        cls = type(ctx)._forward_cls
        cls._result = cls._extended.forward_extended(ctx, *cls._nest(cls._structure, flat))
        return tuple(_flatten(cls._result))

    @staticmethod
    def backward(ctx, *grads):
        cls = type(ctx)._forward_cls
        nested = cls._extended.backward_extended(ctx, *_as_tuple(cls._rebuild(grads)))
        return tuple(_flatten(nested))


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


for _class in (FunctionCtx, _HookMixin, FunctionMeta, _SingleLevelFunction, Function, InplaceFunction,
               NestedIOFunction):  # fmt: skip
    _class.__module__ = "torch.autograd.function"

_C.set_function_defaults(Function, _bind)
