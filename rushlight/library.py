"""torch.library: operations of one's own under `torch.ops.namespace.name`, with their gradient.

There is no tracer, so what is registered for one (`register_vmap`) returns its function; `register_fake` is
what runs on the meta device. How a call goes is in rushlight/_operators.py.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import re
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import rushlight
from rushlight import _above_kernels
from rushlight._dispatching import REPLACED, replace_kernel, restore_kernel, run_kernel
from rushlight._opcheck import OpCheckError, opcheck  # noqa: F401
from rushlight._operators import OPERATORS, Operator
from rushlight._ops import OpOverload
from rushlight._schema import FunctionSchema, Tag, infer_schema
from rushlight._warn import warn, warn_once

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "fallthrough_kernel", "get_kernel", "impl",
    "impl_abstract", "infer_schema", "opcheck", "register_autocast", "register_autograd", "register_fake",
    "register_kernel", "register_torch_dispatch", "register_vmap", "triton_op", "wrap_triton",
]  # fmt: skip

_log = logging.getLogger("torch._library.custom_ops")
_KEYS = re.compile(
    r"(Autograd|Sparse|Quantized|Nested|Autocast)?"
    r"(CPU|CUDA|HIP|XLA|MPS|IPU|XPU|HPU|VE|Lazy|MTIA|MAIA|PrivateUse[123]|Meta|Functionality|Other|NestedTensor|Csr\w+)?"
)
_COMPOSITE = (
    "CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional",
    "CompositeImplicitAutogradNestedTensor",
)  # fmt: skip
_OTHER_KEYS = ("ADInplaceOrView", "BackendSelect", "Python", "FuncTorchBatched", "Functionalize", "Conjugate",
               "Negative", "ZeroTensor", "FuncTorchVmapMode", "Tracer", "Undefined", "Batched")  # fmt: skip


def fallthrough_kernel() -> None:
    """Registered under a key: the level is passed over."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def _checked_name(qualname: str) -> tuple[str, str]:
    if not re.fullmatch(r"[^:]+::[^:]+", qualname):
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The qualname '
            "passed to the torch.library APIs must consist of a namespace and a name, e.g. aten::sin"
        )
    space, _, name = qualname.partition("::")
    return space, name


class CustomOpDef:
    """An operation made by `custom_op`: call it, and register its gradient with `register_autograd`."""

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable, tags: Any = None) -> None:
        self._namespace, self._name, self._schema = namespace, name, schema
        self._qualname = f"{namespace}::{name}"
        self._init_fn, self._init_name = fn, getattr(fn, "__name__", name)
        self._module = getattr(fn, "__module__", "")
        tags = () if tags is None else tags if isinstance(tags, (tuple, list)) else (tags,)
        tags = (Tag.pt2_compliant_tag, *tags)
        parsed = FunctionSchema(self._qualname + schema)
        if _keyword_tensors(parsed) and Tag.out not in tags:
            raise NotImplementedError(
                "custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: "
                f"{name}{schema}"
            )
        self._lib = Library(namespace, "FRAGMENT")
        self._operator = Operator(parsed, self, tuple(tags))

    @property
    def _opoverload(self) -> OpOverload:
        return self._operator.handle

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types: Any, fn: Callable | None = None, /) -> Callable:
        """Sets what runs on these types of devices (None: on any)."""
        arguments = self._operator.schema.arguments
        if device_types is not None and not any(a.word == "Tensor" for a in arguments):
            places = [place for place, a in enumerate(arguments) if a.word == "Device"]
            if not places:
                raise ValueError(
                    "Functions without tensor inputs are required to have a `device: torch.device` argument"
                )
            self._operator.kernels["backendselect"] = functools.partial(self._run_on, places[0])

        def register(fn: Callable) -> Callable:
            kinds = (device_types,) if device_types is None or isinstance(device_types, str) else device_types
            for kind in kinds:
                device = None if kind in (None, "default") else rushlight.device(kind).type
                self._operator.kernels[device] = fn
            return fn

        return register if fn is None else register(fn)

    def _run_on(self, place: int, *args: Any, **kwargs: Any) -> Any:
        """What makes tensors runs on the device that it is given."""
        kind = rushlight.device(args[place]).type
        if kind not in self._operator.kernels:
            raise RuntimeError(
                f"{self._name} does not have a kernel registered for {kind}. Please use register_kernel to "
                "do so."
            )
        return self._operator.kernels[kind](*args, **kwargs)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """In the block the kernel of a type of device is (not) used; without one, that of any device is."""
        disabled, kernels = self._operator.disabled, self._operator.kernels
        before = device_type in disabled
        if device_type not in kernels:
            _log.warning(
                "Attempted to %s kernel for %s but no kernel was registered for this device type.",
                "enable" if enabled else "disable", device_type,
            )  # fmt: skip
        if enabled and not before:
            _log.warning("Attempted to enable kernel for  %s but it was already enabled.", device_type)
        elif before and not enabled:
            _log.warning("Attempted to disable kernel for %s but it was already disabled.", device_type)
        (disabled.discard if enabled else disabled.add)(device_type)
        try:
            yield
        finally:
            (disabled.add if before else disabled.discard)(device_type)

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """Sets the gradient: `backward(ctx, *grads)`, after `setup_context(ctx, inputs, output)`."""
        _set_autograd(self._operator, backward, setup_context, self)

    def register_fake(self, fn: Callable, /) -> Callable:
        """Sets what runs on the meta device."""
        return register_fake(self, fn, _stacklevel=2)

    def register_vmap(self, func: Callable | None = None) -> Callable:
        """What a batching transform would run; there is none."""
        return (lambda fn: fn) if func is None else func

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Under autocast for this type of device floating point arguments come in this dtype."""
        _set_autocast(self._operator, device_type, cast_inputs)

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Callable | None = None, /) -> Callable:
        """Sets what runs instead of `torch_dispatch_class.__torch_dispatch__`."""

        def register(fn: Callable) -> Callable:
            self._operator.rules[torch_dispatch_class] = fn
            return fn

        return register if fn is None else register(fn)


def _keyword_tensors(schema: FunctionSchema) -> bool:
    return any(argument.kwarg_only and argument.word == "Tensor" for argument in schema.arguments)


def _set_autocast(op: Operator, device_type: Any, dtype: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if not rushlight.amp.is_autocast_available(device_type):
        raise ValueError(f"Device type '{device_type}' does not support autocast.")
    op.casts[device_type] = dtype


def _set_autograd(op: Operator, backward: Callable, setup_context: Callable | None, shown: Any) -> None:
    if Tag.out in op.tags:
        raise RuntimeError(
            f"Cannot register autograd formula for operator tagged with torch.Tag.out: {shown}. Out variants "
            "do not support autograd."
        )
    views = any(r.alias_info is not None for r in op.schema.returns)
    tensors = [sum(a.word == "Tensor" for a in each) for each in (op.schema.arguments, op.schema.returns)]
    one_view = op.owner is not None and tensors == [1, 1]
    if op.schema.is_mutable or not op.schema.returns or (views and not one_view):
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {shown} with schema {op.schema}. "
            "Please create a functional operator and register an autograd formula for that."
        )
    if op.owner is None and _keyword_tensors(op.schema):
        raise NotImplementedError(
            "register_autograd with kwarg-only Tensor args. In the original definition of the op, please "
            f"make your tensors not kwarg-only. Got: {op.schema}"
        )
    op.backward, op.setup_context, op.differentiable = backward, setup_context, True


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
        text = infer_schema(fn, mutates_args=mutates_args, tags=tags) if schema is None else schema
        space, short = name.split("::")
        op = CustomOpDef(space, short, text, fn, tags)
        arguments = op._operator.schema.arguments
        written = {a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write}
        if schema is not None and written != set(mutates_args):
            raise ValueError(
                f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}. "
                f"The schema suggests that the op mutates {written}which is different from what was provided "
                "to us in `mutates_args`. Please make these consistent."
            )
        op.register_kernel(device_types, fn)
        return op

    return make if fn is None else make(fn)


def triton_op(
    name: str,
    fn: Callable | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    schema: str | None = None,
) -> Any:
    """`custom_op` for a function made of torch's operations and of Triton's kernels, which cannot run."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Callable, /) -> Any:
    """Not implemented: there is no Triton."""
    raise NotImplementedError("torch.library.wrap_triton is not implemented: there is no Triton")


def get_ctx() -> None:
    """The tracer at work: none."""


def _operator(op: Any, asked_by: str = "") -> Operator:
    if isinstance(op, CustomOpDef):
        return op._operator
    if isinstance(op, OpOverload):
        op = op.name()
    elif not isinstance(op, str):
        raise ValueError(f"{asked_by}({op}): got unexpected type for op: {type(op)}")
    _checked_name(op)
    if op not in OPERATORS:
        if op.startswith("aten::"):
            raise NotImplementedError(f"registering something for torch's own {op} is not implemented")
        if asked_by in ("register_autograd", "register_autocast"):
            getattr(
                getattr(rushlight.ops, op.partition("::")[0]), op.partition("::")[2]
            )  # says that it is not
        raise RuntimeError(f"operator {op} does not exist")
    return OPERATORS[op]


def register_autograd(
    op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Any = None
) -> None:
    """Sets the gradient of an operation made by `custom_op` or `define`."""
    found = _operator(op, "register_autograd")
    _set_autograd(found, backward, setup_context, found.handle)


def register_kernel(op: Any, device_types: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """Sets what an operation runs on these types of devices."""
    return impl(op, "default" if device_types is None else device_types, func, lib=lib)


def register_fake(
    op: Any,
    func: Callable | None = None,
    /,
    *,
    lib: Any = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """Sets what an operation runs on the meta device. One that nobody has defined is passed over: a library
    whose compiled part cannot be loaded here (torchvision) names those at import, and does without."""

    frame = sys._getframe(_stacklevel)
    where = f"{frame.f_code.co_filename}:{frame.f_lineno}"

    def register(fn: Callable) -> Callable:
        if not isinstance(op, str) or op in OPERATORS or op.startswith("aten::"):
            found = _operator(op, "register_fake")
            _set_fake(found, fn, where, allow_override or found.owner is not None)
        else:
            _checked_name(op)
        return fn

    return register if func is None else register(func)


def _set_fake(op: Operator, fn: Callable, where: str, allow_override: bool = True) -> None:
    start = f"register_fake(...): the operator {op.key} already has a"
    if not allow_override and op.fake is not None:
        raise RuntimeError(f"{start} fake impl registered at {op.fake_source}.")
    if not allow_override and "meta" in op.kernels:
        raise RuntimeError(
            f"{start} DispatchKey::Meta implementation via a pre-existing torch.library or TORCH_LIBRARY "
            "registration. Please either remove that registration or don't call register_fake."
        )
    if op.is_composite():
        raise RuntimeError(
            f"We should not register a meta kernel directly to the operator '{op.key}', because it has a "
            "CompositeImplicitAutograd kernel in core. Instead we should let the operator decompose, and "
            "ensure that we have meta kernels for the base ops that it decomposes into."
        )
    op.fake, op.fake_source = fn, where
    op.kernels.pop("meta", None)  # what was registered last counts


def impl_abstract(
    qualname: Any, func: Callable | None = None, *, lib: Any = None, _stacklevel: int = 1
) -> Any:
    """The older name of `register_fake`."""
    warn(
        "`torch.library.impl_abstract` was renamed to `torch.library.register_fake`. Please use that "
        "instead; we will remove `torch.library.impl_abstract` in a future version of PyTorch.",
        FutureWarning,
    )
    return register_fake(qualname, func, lib=lib, _stacklevel=_stacklevel + 1)


def register_vmap(op: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """What a batching transform would run; there is none, so the function is returned."""
    _operator(op)
    return (lambda fn: fn) if func is None else func


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Under autocast for this type of device floating point arguments come in this dtype."""
    _set_autocast(_operator(op, "register_autocast"), device_type, cast_inputs)


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Any = None, /, *, lib: Any = None
) -> Any:
    """Sets what runs instead of `torch_dispatch_class.__torch_dispatch__`."""

    def register(fn: Callable) -> Callable:
        _operator(op).rules[torch_dispatch_class] = fn
        return fn

    return register if func is None else register(func)


# The namespaces that a DEF has: torch's, and those of this process.
_defining: set[str] = {
    "_c10d_functional", "_c10d_functional_autograd", "_dtensor", "_quantized", "aten", "c10d", "mkl",
    "mkldnn", "mkldnn_prepacked", "onednn", "prims", "profiler", "quantization", "quantized", "sparse",
}  # fmt: skip
# What was registered for operations that nobody has defined yet: by whom, and how.
_waiting: dict[str, list[tuple[Any, tuple]]] = {}
_kept: list[Library] = []  # those that nobody else holds


def _reached(name: str) -> Any:
    """The overload of torch's own operation, if it is one of those that calls arrive at by that name."""
    from rushlight import _C, _aten_calls

    op, _, overload = name.removeprefix("aten::").partition(".")
    try:
        handle = getattr(getattr(rushlight.ops.aten, op), overload or "default")
    except AttributeError:
        raise RuntimeError(f"operator {name} does not exist") from None
    plain = op.removesuffix("_") if op.endswith("_") and not op.endswith("__") else op
    shown = {spec.overload.partition(".")[0] for spec in _aten_calls.SPECS.values()}
    if plain in _aten_calls.COMPOSED or (plain not in shown and not hasattr(_C.ops, plain)):
        raise NotImplementedError(
            f"registering something for torch's own {name} is not implemented: it is no single step here"
        )
    return handle


def _warn_of_override(schema: Any, key: str) -> None:
    warn_once(
        "Warning only once for all operators,  other operators may also be overridden.\n  Overriding a "
        "previously registered kernel for the same operator and the same dispatch key\n  operator: "
        f"{schema}\n  dispatch key: {key}",
        about="an overridden kernel",
    )


def _replace(name: str, fn: Callable, key: str, with_keyset: bool) -> tuple[Any, str, Callable]:
    """Puts a function in the place of a kernel of torch's own."""
    if key == "AutocastCPU" and fn is fallthrough_kernel:
        from rushlight.amp.autocast_mode import passed_by

        handle = _reached(name)
        _warn_of_override(handle._schema, key)
        passed_by.append(handle._overloadpacket.__name__)
        return handle, key, fn
    if key != "CPU" and (key not in _above_kernels.KEYS or with_keyset or fn is fallthrough_kernel):
        raise NotImplementedError(
            f"registering something for torch's own {name} at {key} is not implemented: only at CPU, at "
            f"{', '.join(_above_kernels.KEYS)}, and what is not cast at AutocastCPU"
        )
    handle = _reached(name)
    _warn_of_override(handle._schema, key)
    if key != "CPU":
        _above_kernels.put(handle, key, fn)
        return handle, key, fn
    run = (
        functools.partial(fn, rushlight._C.DispatchKeySet(rushlight._C.DispatchKey.CPU))
        if with_keyset
        else fn
    )
    replace_kernel(handle, run)
    return handle, key, run


def _put_back(handle: Any, key: str | None, fn: Callable) -> None:
    """Undoes `_replace`."""
    if key == "CPU":
        restore_kernel(handle, fn)
    elif key == "AutocastCPU":
        from rushlight.amp.autocast_mode import passed_by

        passed_by.remove(handle._overloadpacket.__name__)
    else:
        _above_kernels.take_back(handle, str(key), fn)


class _SafeKernelFunction:
    """What an operation runs at one level, as `get_kernel` found it: what is registered later is not seen."""

    def __init__(self, op_handle: Any, key: str, run: Callable) -> None:
        self.op_handle, self._key, self._run = op_handle, key, run

    def call_boxed(self, keyset: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Runs it. The set of keys is what a function registered by `impl(with_keyset=True)` gets."""
        if not isinstance(keyset, rushlight._C.DispatchKeySet):
            raise TypeError(f"call_boxed(): the first argument must be a DispatchKeySet, not {type(keyset)}")
        return self._run(*args, **kwargs)

    def __repr__(self) -> str:
        return f"SafeKernelFunction(debug='{self.op_handle} at {self._key}')"


def _below_autograd(handle: Any, *args: Any, **kwargs: Any) -> Any:
    with rushlight.no_grad():
        return run_kernel(handle, args, kwargs)


def _own_kernel(name: str, key: str) -> tuple[Any, Callable]:
    """Of torch's own operation: what was put in the place of its kernel, or that."""
    space, _, op = name.partition("::")
    op, _, overload = op.partition(".")
    packet = getattr(getattr(rushlight.ops, space), op, None)
    if packet is None or (overload or "default") not in packet.overloads():
        raise RuntimeError(f"operator {name} does not exist")
    handle = getattr(packet, overload or "default")
    if key == "CPU":
        replaced = REPLACED.get(handle)
        return handle, replaced[-1] if replaced else functools.partial(_below_autograd, handle)
    if key == "AutogradCPU":
        return handle, handle
    raise NotImplementedError(
        f"the kernel of {name} at {key} is not there: only those at CPU and AutogradCPU"
    )


def get_kernel(op: Any, dispatch_key: Any) -> _SafeKernelFunction:
    """What an operation runs at "CPU" or "AutogradCPU" (one's own also at other levels), to be called by
    what is put in its place.

    >>> sin = rushlight.library.get_kernel("aten::sin", "CPU")
    >>> sin.call_boxed(rushlight._C.DispatchKeySet(rushlight._C.DispatchKey.CPU), rushlight.zeros(2))
    tensor([0., 0.])
    """
    if not isinstance(op, (str, OpOverload)):
        raise ValueError(f"get_kernel({op}): got unexpected type for op: {type(op)}")
    name = op if isinstance(op, str) else op.name()
    key = getattr(dispatch_key, "name", dispatch_key)
    if not isinstance(key, str):
        raise TypeError(f"get_kernel(): dispatch_key must be a str or DispatchKey, not {type(dispatch_key)}")
    if not key or (key not in _COMPOSITE and key not in _OTHER_KEYS and not _KEYS.fullmatch(key)):
        raise ValueError(f"Invalid dispatch key: {key}")
    if key in (*_COMPOSITE, "Autograd"):
        raise RuntimeError("Alias keys do not have runtime kernel registrations.")
    if name not in OPERATORS:
        handle, run = _own_kernel(name, key)
        return _SafeKernelFunction(handle, key, run)
    own = OPERATORS[name]
    if key.startswith("Autograd"):
        return _SafeKernelFunction(own.handle, key, own)
    fake = own.fake if key == "Meta" else None
    found = own.kernels.get(key.lower()) or fake or own.kernels.get(None)
    if found is None:
        raise RuntimeError(f"no kernel for {key} for {name}")
    return _SafeKernelFunction(own.handle, key, found)


class _DispatchModule:
    """What a library has defined and registered, which `Library.m` is in torch: `reset` takes it back."""

    def __init__(self, ns: str, kind: str) -> None:
        self._ns, self._kind = ns, kind
        self._defined: list[Operator] = []
        self._registered: list[tuple[Any, str | None, Callable]] = []

    def define(self, schema: str, alias_analysis: str = "", tags: Any = ()) -> str:
        """Declares an operation and returns its name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self._kind == "IMPL":
            raise RuntimeError(
                f'def("{schema.partition("(")[0]}"): Cannot define an operator inside of a '
                "TORCH_LIBRARY_IMPL block.  All def()s should be placed in the (unique) TORCH_LIBRARY block "
                "for their namespace."
            )
        op = Operator(FunctionSchema(f"{self._ns}::{schema.strip()}"), tags=tuple(tags))
        self._defined.append(op)
        for module, given in _waiting.pop(op.key, ()):
            module.impl(*given)
        return op.key.partition("::")[2].partition(".")[0]

    def impl(self, name: str, dispatch: Any, func: Callable, with_keyset: bool = False) -> None:
        """Registers what an operation runs at a level."""
        space = name.partition("::")[0] if "::" in name else self._ns
        if space != self._ns:
            block = "TORCH_LIBRARY" if self._kind == "DEF" else f"TORCH_LIBRARY_{self._kind}"
            raise RuntimeError(
                f'impl("{name}", ...): Explicitly provided namespace ({space}) in operator name does not '
                f"match namespace of enclosing {block} block ({self._ns}).  Move this definition to the "
                f"{block} block corresponding to this namespace (and consider deleting the namespace from "
                "your schema string.)"
            )
        name = name if "::" in name else f"{space}::{name}"
        key = getattr(dispatch, "name", dispatch) or "CompositeImplicitAutograd"
        if key not in _COMPOSITE and key not in _OTHER_KEYS and not _KEYS.fullmatch(key):
            raise RuntimeError(f"could not parse dispatch key: {key}")
        if name.startswith("aten::"):
            self._registered.append(_replace(name, func, key, with_keyset))
            return
        if with_keyset:
            raise NotImplementedError("Library.impl(with_keyset=True) is not implemented")
        if name not in OPERATORS:
            _waiting.setdefault(name, []).append((self, (name, key, func)))
            return
        op = _operator(name)
        if key.startswith("Autograd"):
            # A level that is passed over records nothing, and nobody misses a gradient.
            self._cover(op, "autograd", op.run if func is fallthrough_kernel else func)
        elif func is fallthrough_kernel:
            return
        elif key in _COMPOSITE:
            self._cover(op, None, func)
            if key == "CompositeImplicitAutograd":
                self._cover(op, "autograd", func)  # made of operations that autograd sees
        elif key not in _OTHER_KEYS or key == "BackendSelect":
            device = {"PrivateUse1": "privateuseone"}.get(key, key.lower())
            if device in op.kernels:
                _warn_of_override(op.schema, key)
            self._cover(op, device, func)

    def _cover(self, op: Operator, level: str | None, func: Callable) -> None:
        op.cover(level, func)
        self._registered.append((op, level, func))

    def reset(self) -> None:
        """Takes back all that was defined and registered."""
        for op in self._defined:
            op.forget()
        for op, device, fn in reversed(self._registered):
            if isinstance(op, OpOverload):
                _put_back(op, device, fn)
                continue
            op.uncover(device, fn)
        self._defined.clear()
        self._registered.clear()
        if self._kind == "DEF":
            _defining.discard(self._ns)


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
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "prim" and kind in ("DEF", "FRAGMENT"):
            raise ValueError("prim is a reserved namespace. Please try creating a library with another name.")
        if kind == "DEF" and ns in _defining:
            raise RuntimeError(
                f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put all of "
                "your definitions in a single TORCH_LIBRARY block.  If you were trying to specify "
                "implementations, consider using TORCH_LIBRARY_IMPL (which can be duplicated).  If you "
                "really intended to define operators for a single namespace in a distributed way, you can "
                "use TORCH_LIBRARY_FRAGMENT to explicitly indicate this."
            )
        if kind == "DEF":
            _defining.add(ns)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self.m: _DispatchModule | None = _DispatchModule(ns, kind)
        self._op_defs: set[str] = set()
        self._op_impls: set[str] = set()
        # What it has defined and registered goes with it, and not with `m`.
        self._take_back = weakref.finalize(self, self.m.reset)

    def _destroy(self) -> None:
        self._take_back()
        self.m = None

    def _module(self) -> _DispatchModule:
        if self.m is None:
            raise AssertionError("Library object has been destroyed")
        return self.m

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Declares an operation: "name(Tensor x, int n) -> Tensor"."""
        tags = tags if isinstance(tags, (tuple, list)) else (tags,)
        name = self._module().define(schema, alias_analysis, tags)
        self._op_defs.add(f"{self.ns}::{schema.partition('(')[0].strip()}")
        return name

    def impl(
        self,
        op_name: Any,
        fn: Callable,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Sets what an operation runs at a level: "CPU", "Meta", "Autograd", "CompositeImplicitAutograd"."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        if not isinstance(op_name, (str, OpOverload)):
            raise RuntimeError(
                "impl should be passed either a name or an OpOverload object as the first argument, got "
                f"{type(op_name)}"
            )
        name = op_name.name() if isinstance(op_name, OpOverload) else op_name
        key = dispatch_key or self.dispatch_key
        self._module().impl(name, key, fn, with_keyset)
        self._op_impls.add(f"{self.ns}/{name.rpartition('::')[2]}/{key or 'CompositeImplicitAutograd'}")


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Declares the operation `namespace::name` with the schema "(Tensor x) -> Tensor".

    >>> rushlight.library.define("docs_lib::thrice", "(Tensor x) -> Tensor")
    >>> @rushlight.library.impl("docs_lib::thrice", "cpu")
    ... def thrice(x):
    ...     return 3 * x
    >>> rushlight.ops.docs_lib.thrice(rushlight.ones(2))
    tensor([3., 3.])
    """
    if not isinstance(qualname, str):
        raise ValueError(
            f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}"
        )
    space, name = _checked_name(qualname)
    if not re.fullmatch(r"\(.*\) -> .*", schema, re.DOTALL):
        raise ValueError(
            'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got '
            f'"{schema}"'
        )
    if lib is None:
        _kept.append(lib := Library(space, "FRAGMENT"))
    lib.define(name + schema, "", tags=tags)


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A Library whose operations are gone after the block."""
    lib = Library(*args, **kwargs)
    try:
        yield lib
    finally:
        lib._destroy()


def impl(qualname: Any, types: Any, func: Callable | None = None, *, lib: Any = None) -> Any:
    """Sets what an operation runs on the named types of devices."""

    def register(fn: Callable) -> Callable:
        kinds = (types,) if isinstance(types, str) else types
        if isinstance(qualname, str) and qualname not in OPERATORS and not qualname.startswith("aten::"):
            _kept.append(waiting := Library(_checked_name(qualname)[0], "FRAGMENT"))
            for kind in kinds:
                key = {"default": "CompositeExplicitAutograd"}.get(kind, kind)
                (lib or waiting).impl(qualname, fn, key if key[:1].isupper() else key.upper())
            return fn
        op = _operator(qualname)
        for kind in kinds:
            if kind == "default":
                op.kernels[None] = fn
            elif kind in _COMPOSITE or (kind[:1].isupper() and _KEYS.fullmatch(kind)):
                if lib is None:
                    _kept.append(Library(op.schema.name.partition("::")[0], "IMPL"))
                (lib or _kept[-1]).impl(op.handle, fn, kind)
            else:
                op.kernels[rushlight.device(kind).type] = fn
        return fn

    if func is None:
        return register
    register(func)
    return None
