"""torch.library: operations of one's own under `torch.ops.namespace.name`, with their gradient.

There is one device and no tracer, so a registration for another device is kept and never chosen, and one for
tracers (`register_fake`, `register_vmap`) returns its function.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import rushlight
from rushlight import Tensor, _autograd_fallback
from rushlight._ops import OpOverload, OpOverloadPacket, namespace

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "impl", "impl_abstract", "register_autocast",
    "register_autograd", "register_fake", "register_kernel", "register_torch_dispatch", "register_vmap",
]  # fmt: skip

_HERE = ("cpu", "default", "", "CPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd")
_definitions: dict[str, CustomOpDef] = {}


class CustomOpDef:
    """An operation made by `custom_op`: call it, and register its gradient with `register_autograd`."""

    def __init__(self, name: str, fn: Callable | None, mutates_args: Iterable[str] | str = ()) -> None:
        self._namespace, found, self._name = name.partition("::")
        if not found:
            raise ValueError(f"Expected `name` to be of the form `namespace::name`, got {name}")
        self._qualname = name
        self._kernel = fn
        self._signature = None if fn is None else inspect.signature(fn)
        self._mutates = mutates_args
        self._backward: Callable | None = None
        self._setup_context: Callable | None = None
        self._autograd_kernel: Callable | None = None
        self._schema = ""  # of an operation of a Library, which says nothing about its gradient
        self._opoverload = OpOverloadPacket(self._namespace, self._name, self, ["default"]).default
        setattr(namespace(self._namespace), self._name, self._opoverload.overloadpacket)
        _definitions[name] = self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types: Any, fn: Callable | None = None, /) -> Callable:
        """Sets what runs; for another device than the CPU it is never chosen."""

        def register(fn: Callable) -> Callable:
            kinds = (device_types,) if device_types is None or isinstance(device_types, str) else device_types
            if None in kinds or any(kind in _HERE for kind in kinds):
                self._kernel = fn
                if self._signature is None and not inspect.isbuiltin(fn):  # as Function.apply is
                    self._signature = inspect.signature(fn)
            return fn

        return register if fn is None else register(fn)

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """Sets the gradient: `backward(ctx, *grads)`, after `setup_context(ctx, inputs, output)`."""
        self._backward, self._setup_context = backward, setup_context

    def register_fake(self, fn: Callable, /) -> Callable:
        """What a tracer would run instead; nothing traces here."""
        return fn

    register_vmap = register_fake

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        """The kernel, or who is asked about it by `__torch_dispatch__`."""
        asking = sys.modules.get("rushlight._dispatching")
        if asking is not None and asking._wanted(args, kwargs):
            return asking.ask(self._opoverload, args, kwargs)
        assert self._kernel is not None
        return self._kernel(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._autograd_kernel is not None and rushlight.is_grad_enabled():
            return self._autograd_kernel(*args, **kwargs)
        if self._kernel is None:
            raise NotImplementedError(f"{self._qualname} has no kernel for the CPU")
        if self._schema and self._backward is None:
            return _autograd_fallback.call(self._qualname, self._run, self._schema, args, kwargs)
        if self._signature is not None:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        leaves = [
            leaf for value in args for leaf in (value if isinstance(value, (list, tuple)) else (value,))
        ]
        if not rushlight.is_grad_enabled() or not any(
            isinstance(leaf, Tensor) and leaf.requires_grad for leaf in leaves
        ):
            return self._run(*args, **kwargs)
        return _CustomCall.apply(self, args, kwargs, *leaves)


class _CustomCall(rushlight.autograd.Function):
    """A call of a custom operation that autograd sees: lists among the arguments are given flat as well."""

    @staticmethod
    def forward(ctx: Any, op: CustomOpDef, args: tuple, kwargs: dict, *leaves: Any) -> Any:
        ctx.op, ctx.sizes = op, [len(v) if isinstance(v, (list, tuple)) else None for v in args]
        output = op._run(*args, **kwargs)
        if op._setup_context is not None:
            if kwargs:
                op._setup_context(ctx, args, kwargs, output)
            else:
                op._setup_context(ctx, args, output)
        return tuple(output) if isinstance(output, list) else output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if ctx.op._backward is None:
            raise RuntimeError(
                f"Trying to backward through {ctx.op._opoverload} but no autograd formula was registered. "
                f"Please use register_autograd to add one."
            )
        result = ctx.op._backward(ctx, *grads)
        result = result if isinstance(result, tuple) else (result,)
        if len(result) != len(ctx.sizes):
            raise RuntimeError(
                f"{ctx.op._qualname}: expected a gradient for each of {len(ctx.sizes)} arguments, got "
                f"{len(result)}"
            )
        flat: list = []
        for gradient, size in zip(result, ctx.sizes, strict=True):
            if size is None:
                flat.append(gradient)
            else:
                flat.extend([None] * size if gradient is None else gradient)
        return (None, None, None, *flat)


def custom_op(
    name: str,
    fn: Callable | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Makes a function an operation. Inside it nothing is recorded; `register_autograd` adds the gradient.

    >>> @rushlight.library.custom_op("docs::cube", mutates_args=())
    ... def cube(x: rushlight.Tensor) -> rushlight.Tensor:
    ...     return x**3
    >>> cube.register_autograd(
    ...     lambda ctx, g: 3 * ctx.saved_tensors[0] ** 2 * g,
    ...     setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    ... )
    >>> x = rushlight.tensor(2.0, requires_grad=True)
    >>> cube(x).backward()
    >>> x.grad
    tensor(12.)
    """

    def make(fn: Callable) -> CustomOpDef:
        op = CustomOpDef(name, None, mutates_args)
        op._signature = inspect.signature(fn)
        op.register_kernel(device_types, fn)
        return op

    return make if fn is None else make(fn)


def _definition(op: Any) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    name = op.name() if isinstance(op, OpOverload) else str(op)
    if name not in _definitions:
        raise RuntimeError(f"operator {name} does not exist")
    return _definitions[name]


def register_autograd(
    op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Any = None
) -> None:
    """Sets the gradient of an operation made by `custom_op` or `define`."""
    _definition(op).register_autograd(backward, setup_context=setup_context)


def register_kernel(op: Any, device_types: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """Sets what an operation runs."""
    return _definition(op).register_kernel(device_types, func)


def register_fake(op: Any, func: Callable | None = None, /, **options: Any) -> Any:
    """What a tracer would run instead; nothing traces here, so the function is returned."""
    return func if func is not None else lambda fn: fn


impl_abstract = register_vmap = register_fake


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Not implemented."""
    raise NotImplementedError("torch.library.register_autocast is not implemented")


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Any = None, /, *, lib: Any = None
) -> Any:
    """Not implemented."""
    raise NotImplementedError("torch.library.register_torch_dispatch is not implemented")


class Library:
    """Operations of one namespace, defined by a schema and implemented by functions.

    >>> lib = rushlight.library.Library("docs_lib", "DEF")
    >>> lib.define("twice(Tensor x) -> Tensor")
    'twice'
    >>> lib.impl("twice", lambda x: 2 * x, "CPU")
    >>> rushlight.ops.docs_lib.twice(rushlight.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError("Unsupported kind: ", kind)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self.m: list[str] = []  # what it has defined

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Declares an operation: "name(Tensor x, int n) -> Tensor"."""
        name = schema.partition("(")[0].strip()
        CustomOpDef(f"{self.ns}::{name}", None)._schema = schema
        self.m.append(name)
        return name

    def _destroy(self) -> None:
        """Takes the operations that it has defined away again."""
        for name in self.m:
            _definitions.pop(f"{self.ns}::{name}", None)
            vars(namespace(self.ns)).pop(name, None)
        self.m.clear()

    def impl(
        self,
        op_name: Any,
        fn: Callable,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Sets what an operation runs; for another device than the CPU it is never chosen."""
        if with_keyset:
            raise NotImplementedError("Library.impl(with_keyset=True) is not implemented")
        name = op_name.name() if isinstance(op_name, OpOverload) else str(op_name)
        op = _definition(name if "::" in name else f"{self.ns}::{name}")
        key = dispatch_key or self.dispatch_key
        if key.startswith("Autograd"):
            op._autograd_kernel = fn
        elif key == "CompositeImplicitAutograd":
            op._autograd_kernel = fn  # made of operations that autograd sees
            op.register_kernel(key, fn)
        else:
            op.register_kernel(key, fn)


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Declares the operation `namespace::name` with the schema "(Tensor x) -> Tensor"."""
    CustomOpDef(qualname, None)._schema = schema


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A Library whose operations are gone after the block."""
    lib = Library(*args, **kwargs)
    try:
        yield lib
    finally:
        lib._destroy()


def impl(qualname: str, types: Any, func: Callable | None = None, *, lib: Any = None) -> Any:
    """Sets what an operation runs on the named devices."""
    return register_kernel(qualname, types, func)
