"""Operations of one's own by `torch._custom_ops`, the forerunner of `torch.library.custom_op`.

A `CustomOp` is an operation of `torch.library` that only computes new tensors, with what was registered for
it. Its gradient comes in two parts, what to save and how to go back; `autograd.py` makes a Function of them.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, NoReturn

import rushlight
from rushlight._custom_op.autograd import kernel_of
from rushlight._operators import OPERATORS
from rushlight._schema import Argument, FunctionSchema
from rushlight.library import Library, get_ctx, infer_schema

__all__ = ["CustomOp", "custom_op", "get_ctx"]

SUPPORTED_DEVICE_TYPE_TO_KEY = {"cpu": "CPU", "cuda": "CUDA"}
RESERVED_NS = {"prim", "prims", "aten", "at", "torch", "pytorch"}

global_registry: dict[str, CustomOp] = {}  # by name; what is here lives until `_destroy`


class FuncAndLocation(NamedTuple):
    """What was registered, and where."""

    func: Callable
    location: str


def warn_deprecated() -> None:
    warnings.warn(
        "torch._custom_op is deprecated and will be removed in PyTorch 2.6, please use the equivalent "
        "torch.library API instead.",
        DeprecationWarning,
        stacklevel=2,
    )


class CustomOp:
    """An operation whose parts are registered one by one: kernels, what it saves, its gradient."""

    def __init__(
        self, lib: Any, cpp_ns: Any, schema: Any, operator_name: Any, ophandle: Any, *, _private_access=False
    ) -> None:
        warn_deprecated()
        if not _private_access:
            raise RuntimeError(
                "The CustomOp constructor is private and we do not guarantee BC for it. Please use "
                "custom_op(...) to create a CustomOp object"
            )
        self._lib, self._cpp_ns, self._schema, self._opname = lib, cpp_ns, schema, operator_name
        self._qualname = f"{cpp_ns}::{operator_name}"
        self._ophandle = ophandle
        self.__name__: str | None = None
        self._impls: dict[str, FuncAndLocation] = {}
        self._output_differentiability: list[bool] | None = None
        self._has_autograd_kernel = False
        self._node: Any = None  # the class of its nodes in the graph, once there was one
        global_registry[self._qualname] = self

    def __repr__(self) -> str:
        return f'<CustomOp(op="{self._qualname}")>'

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._ophandle(*args, **kwargs)

    def _has_impl(self, kind: str) -> bool:
        return kind in self._impls

    def _get_impl(self, kind: str) -> FuncAndLocation:
        return self._impls[kind]

    def _register_impl(self, kind: str, func: Callable, stacklevel: int = 2) -> None:
        if self._has_impl(kind):
            raise RuntimeError(
                f"Attempting to register a {kind} impl for operator {self._qualname} that already has a "
                f"{kind} impl registered from Python at {self._get_impl(kind).location}. This is not "
                "supported."
            )
        frame = inspect.getframeinfo(sys._getframe(stacklevel))
        self._impls[kind] = FuncAndLocation(func, f"{frame.filename}:{frame.lineno}")

    def _destroy(self) -> None:
        """Takes the operation away, for tests."""
        self._lib._destroy()
        del self._lib, global_registry[self._qualname]

    def impl(self, device_types: str | Iterable[str], _stacklevel: int = 2) -> Callable:
        """Registers what runs on these types of devices."""
        kinds = [device_types] if isinstance(device_types, str) else list(device_types)
        for kind in kinds:
            validate_device_type(kind)

        def register(fn: Callable) -> Callable:
            for kind in dict.fromkeys(kinds):
                self._refuse_other_kernel(kind)
                self._register_impl(kind, fn, stacklevel=_stacklevel)
                self._lib.impl(self._opname, fn, SUPPORTED_DEVICE_TYPE_TO_KEY[kind])
            return fn

        return register

    def impl_factory(self) -> Callable:
        """Registers what runs if there is no tensor among the arguments."""

        def register(fn: Callable) -> Callable:
            self._register_impl("factory", fn)
            self._lib.impl(self._opname, fn, "BackendSelect")
            return fn

        return register

    def impl_abstract(self, _stacklevel: int = 2) -> Callable:
        """Registers what runs on the meta device."""

        def register(fn: Callable) -> Callable:
            self._refuse_other_meta()
            self._register_impl("abstract", fn, stacklevel=_stacklevel)
            self._lib.impl(self._opname, fn, "Meta")
            return fn

        return register

    def impl_save_for_backward(self, _stacklevel: int = 2) -> Callable:
        """Registers `fn(inputs, output)`, which returns what the gradient needs."""

        def register(fn: Callable) -> None:
            self._refuse_gradient()
            self._register_impl("save_for_backward", fn, stacklevel=_stacklevel)

        return register

    def impl_backward(
        self, output_differentiability: list[bool] | None = None, _stacklevel: int = 2
    ) -> Callable:
        """Registers `fn(ctx, saved, *grads)`, which returns a dict of gradients by the names of inputs."""
        said = output_differentiability
        if said is not None and not (
            isinstance(said, list)
            and all(isinstance(each, bool) for each in said)
            and len(said) == len(self._schema.returns)
        ):
            raise RuntimeError(
                "impl_backward(output_differentiability): expected output_differentiability to be a list of "
                f"bools with length equal to the number of outputs of this CustomOp got: {said}"
            )

        def register(fn: Callable) -> None:
            self._refuse_gradient()
            self._register_impl("backward", fn, stacklevel=_stacklevel)
            self._output_differentiability = said

        return register

    def _use_own_autograd(self) -> None:
        self._lib.impl(self._opname, kernel_of(weakref.proxy(self)), "Autograd")
        self._has_autograd_kernel = True

    # What cannot be registered

    def _refuse_other_kernel(self, kind: str) -> None:
        kernels = OPERATORS[self._qualname].kernels
        if not self._has_impl(kind) and (kind in kernels or None in kernels):
            raise RuntimeError(
                f"impl(..., device_types={kind}): the operator {self._qualname} already has an "
                "implementation for this device type via a pre-existing torch.library or "
                "TORCH_LIBRARY registration."
            )

    def _is_composite(self) -> bool:
        return OPERATORS[self._qualname].is_composite()

    def _refuse_other_meta(self) -> None:
        if self._has_impl("abstract"):
            return  # the registration says so, and where it was
        if self._is_composite():
            raise RuntimeError(
                f"impl_abstract(...): the operator {self._qualname} already has an implementation for this "
                "device type via a pre-existing registration to DispatchKey::CompositeImplicitAutograd."
                "CompositeImplicitAutograd operators do not need an abstract impl; instead, the operator "
                "will decompose into its constituents and those can have abstract impls defined on them."
            )
        if "meta" in OPERATORS[self._qualname].kernels:
            raise RuntimeError(
                f"impl_abstract(...): the operator {self._qualname} already has a DispatchKey::Meta "
                "implementation via a pre-existing torch.library or TORCH_LIBRARY registration. Please "
                "either remove that registration or don't call impl_abstract."
            )

    def _refuse_gradient(self) -> None:
        """Raises if no gradient can be registered; else the operation gets an autograd kernel of ours."""
        declared = self._schema.returns
        written = [a for a in (*self._schema.arguments, *declared) if a.alias_info and a.alias_info.is_write]
        if written:
            self._no_gradient_for("non-functional operator")
        if not declared:
            self._no_gradient_for("operator with no returns")
        if any(each.alias_info is not None for each in declared):
            self._no_gradient_for("operator that returns views")
        allowed = {"int": "int", "SymInt": "SymInt", "bool": "bool", "float": "float", "Tensor": "Tensor"}
        allowed["Tensor[]"] = "List[Tensor]"
        for each in declared:
            if _type_text(each) not in allowed:
                self._no_gradient_for(
                    f"operator with return not in {list(allowed.values())} (got {_type_text(each)})"
                )
        if self._has_autograd_kernel:
            return
        if self._is_composite():
            raise RuntimeError(
                f"impl_backward/impl_save_for_backward: the operator {self._qualname} already has an "
                "implementation for this device type via a pre-existing registration to "
                "DispatchKey::CompositeImplicitAutograd.CompositeImplicitAutograd operators do not need an "
                "autograd formula; instead, the operator will decompose into its constituents and those can "
                "have autograd formulas defined on them."
            )
        if OPERATORS[self._qualname].autograd_kernel is not None:
            raise RuntimeError(
                f"impl_backward/impl_save_for_backward: the operator {self._qualname} already has an "
                "Autograd kernel registered to DispatchKey::Autograd vi a pre-existing torch.library or "
                "TORCH_LIBRARY registration. Please either remove those registrations or don't use the "
                "torch._custom_ops APIs"
            )
        self._use_own_autograd()

    def _no_gradient_for(self, what: str) -> NoReturn:
        raise RuntimeError(
            f"Cannot use torch._custom_ops APIs to register backward formula for {what}. Got operator "
            f"{self._qualname} with schema: {self._schema}"
        )


def _type_text(argument: Argument) -> str:
    """Its type as a schema writes it."""
    inner = argument.word + ("?" if argument.optional_elements else "") + ("[]" if argument.is_list else "")
    return inner + ("?" if argument.is_optional else "")


# ---- names and schemas


def parse_qualname(qualname: str) -> tuple[str, str]:
    """Namespace and name of "ns::name"."""
    space, sign, name = qualname.partition("::")
    if not sign:
        raise ValueError(
            f"Expected there to be a namespace in {qualname}, i.e. The operator name should look something "
            "like ns::foo"
        )
    if "." in name:
        raise ValueError(
            "The torch.custom_ops APIs do not handle overloads, i.e. operator names with '.' in them. Please "
            f"name your operator something like ns::foo. Got: {qualname}"
        )
    return space, name


def validate_namespace(ns: str) -> None:
    if "." in ns:
        raise ValueError(
            f'custom_op(..., ns="{ns}"): expected ns to not contain any . (and be a valid variable name)'
        )
    if ns in RESERVED_NS:
        raise ValueError(
            f"custom_op(..., ns='{ns}'): '{ns}' is a reserved namespace, please choose something else. "
        )


def validate_device_type(device_type: str) -> None:
    if device_type not in SUPPORTED_DEVICE_TYPE_TO_KEY:
        raise ValueError(
            f"CustomOp.impl(device_types=[{device_type}, ...]): we only support device_type in "
            f"{SUPPORTED_DEVICE_TYPE_TO_KEY.keys()}."
        )


def validate_schema(schema: FunctionSchema) -> None:
    """Raises if an operation of this schema does more than to compute new tensors."""
    if schema.is_mutable or not schema.returns or any(r.alias_info is not None for r in schema.returns):
        raise ValueError(
            "custom_op only supports functional operators (ops that do not mutate any inputs, do not return "
            "views of the inputs, and has at least one return). Got the following non-functional schema: "
            f"{schema}"
        )
    if any(argument.name == "self" for argument in schema.arguments):
        raise ValueError(
            f"custom_op does not support arguments named 'self'. Please rename your argument. Got: {schema}"
        )


def validate_function_matches_schema(schema: FunctionSchema, func: Callable) -> None:
    """Raises if a function has other arguments than a schema that was written by hand, or annotations."""
    signature = inspect.signature(func)
    params = list(signature.parameters.values())
    start = "custom_op(..., manual_schema)(func): "
    if any(p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in params):
        raise ValueError(
            f"{start}positional-only args, varargs, and kwargs are not supported. Please rewrite `func` to "
            f"not have them. Got `func` with signature: {signature}"
        )
    if any(note is not inspect.Parameter.empty for note in (*(p.annotation for p in params),
                                                            signature.return_annotation)):  # fmt: skip
        raise ValueError(
            f"{start}When passing in a manual schema, we expect `func` to have no type annotations to avoid "
            f"ambiguity. Got `func` with signature: {signature}"
        )
    both = f"func's signature: {signature}, manual_schema: {schema}"
    unlike = (
        f"{start}When passing in a manual schema, we expect `func`'s signature to match `manual_schema` "
        f"(aside from type annotations). {both}"
    )
    for keyword_only in (False, True):
        own = [p for p in params if (p.kind is p.KEYWORD_ONLY) is keyword_only]
        declared = [a for a in schema.arguments if a.kwarg_only is keyword_only]
        if len(own) != len(declared):
            raise ValueError(unlike)
        for param, argument in zip(own, declared, strict=True):
            if param.name != argument.name:
                raise ValueError(unlike)
            if param.default is not param.empty or argument.has_default_value():
                raise ValueError(
                    f"{start}neither func nor manual_schema should have default arguments. Got {both}"
                )


def report_error_callback(op: Any, key: str) -> NoReturn:
    """Says that nothing was registered for the level that a call came to."""
    if key == "Undefined":
        raise NotImplementedError(
            f"{op}: There were no Tensor inputs to this operator (e.g. you passed an empty list of Tensors). "
            "If your operator is a factory function (that is, it takes no Tensors and constructs a new one), "
            "then please use CustomOp.impl_factory to register an implementation for it"
        )
    if key in SUPPORTED_DEVICE_TYPE_TO_KEY.values():
        device = key.lower()
        raise NotImplementedError(
            f"{op}: when running with device='{device}' tensors: there is no {device} impl registered for "
            f"this CustomOp. Please register one via CustomOp.impl(device_type='{device}')"
        )
    raise NotImplementedError(
        f"{op}: No implementation for dispatch key {key}. It is likely that we have not added this "
        "functionality yet, please either open an issue or if you're feeling adventurous, use the low-level "
        "torch.library API"
    )


# ---- making and finding


def _defined(ns: str, name: str, signature: str, tags: Iterable = ()) -> CustomOp:
    schema = FunctionSchema(f"{name}{signature}")
    validate_schema(schema)
    lib = Library(ns, "FRAGMENT")
    lib.define(f"{name}{signature}", tags=tuple(tags))
    made = CustomOp(lib, ns, schema, name, get_op(f"{ns}::{name}"), _private_access=True)
    made._use_own_autograd()
    OPERATORS[made._qualname].missing = functools.partial(report_error_callback, weakref.proxy(made))
    return made


def _check_prototype(func: Any, qualname: str, name: str) -> None:
    if not inspect.isfunction(func):
        raise ValueError(f"custom_op(...)(func): Expected `func` to be a Python function, got: {type(func)}")
    if func.__name__ != name:
        raise ValueError(
            f"custom_op(qualname='{qualname}', ...)(func): expected `func` to have name '{name}' but got "
            f"'{func.__name__}'. Please either change the name of `func` or the qualname that is passed to "
            "`custom_op`"
        )


def custom_op(qualname: str, manual_schema: str | None = None) -> Callable:
    """Makes an operation with the schema that a function's annotations say, or of one written by hand."""
    warn_deprecated()

    def make(func: Callable) -> CustomOp:
        ns, name = parse_qualname(qualname) if inspect.isfunction(func) else ("", "")
        validate_namespace(ns)
        _check_prototype(func, qualname, name)
        signature = infer_schema(func, mutates_args=()) if manual_schema is None else manual_schema
        if manual_schema is not None:
            schema = FunctionSchema(f"{name}{signature}")
            validate_schema(schema)
            validate_function_matches_schema(schema, func)
        made = _defined(ns, name, signature)
        made.__name__, made.__module__, made.__doc__ = func.__name__, func.__module__, func.__doc__
        return made

    return make


def get_op(qualname: str) -> Any:
    """The overload `torch.ops.ns.name.default`."""
    space, name = parse_qualname(qualname)
    packet = getattr(getattr(rushlight.ops, space, None), name, None)
    if packet is None or not hasattr(packet, "default"):
        raise ValueError(
            f"Could not find the operator {qualname}. Please make sure you have already registered the "
            "operator and (if registered from C++) loaded it via torch.ops.load_library."
        )
    return packet.default


def _find_custom_op(qualname: str, also_check_torch_library: bool = False) -> CustomOp:
    if qualname in global_registry:
        return global_registry[qualname]
    if not also_check_torch_library:
        raise RuntimeError(
            f'Could not find custom op "{qualname}". Did you register it via the torch._custom_ops API?'
        )
    return custom_op_from_existing(get_op(qualname))


def custom_op_from_existing(op: Any) -> CustomOp:
    """For an operation that was defined by `torch.library`."""
    name = op.name().rpartition("::")[2]
    schema = copy.copy(op._schema)
    schema.name = name
    return CustomOp(Library(op.namespace, "FRAGMENT"), op.namespace, schema, name, op, _private_access=True)


def get_abstract_impl(qualname: str) -> Callable | None:
    """What was registered for the meta device, if something was."""
    found = global_registry.get(qualname)
    return found._get_impl("abstract").func if found is not None and found._has_impl("abstract") else None
