"""`torch.ops`: operations by torch's internal names, as handles that can be compared, listed and called.

`torch.ops.aten.mm` is a packet, `torch.ops.aten.mm.default` an overload of it. They are what a
TorchDispatchMode is told about and what policies of selective checkpoints decide on. A handle calls the
public function of its name; inside a mode, which is told about a primitive, it runs that primitive.
"""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Sequence
from typing import Any

from rushlight import _C

# Primitives that torch knows under another name, and of which overload.
_OF_PRIMITIVE = {
    "add_alpha": "add.Tensor", "sub_alpha": "sub.Tensor", "rsub_number": "rsub.Scalar",
    "pow": "pow.Tensor_Tensor", "pow_scalar": "pow.Tensor_Scalar", "scalar_pow": "pow.Scalar",
    "div_trunc": "div.Tensor_mode", "div_floor": "div.Tensor_mode",
    "clamp": "clamp.Tensor", "clamp_scalar": "clamp.default",
    "clamp_min_scalar": "clamp_min.default", "clamp_max_scalar": "clamp_max.default",
    "lerp": "lerp.Tensor", "lerp_scalar": "lerp.Scalar", "fill": "fill.Tensor", "index": "index.Tensor",
    "sum_dim": "sum.dim_IntList", "mean_dim": "mean.dim", "prod_dim": "prod.dim_int", "max_dim": "max.dim",
    "min_dim": "min.dim", "median_dim": "median.dim", "nanmedian_dim": "nanmedian.dim", "all": "all.dim",
    "any": "any.dim", "var": "var.correction", "std": "std.correction", "var_mean": "var_mean.correction",
    "std_mean": "std_mean.correction", "softmax": "_softmax.default", "log_softmax": "_log_softmax.default",
    "softmax_backward": "_softmax_backward_data.default", "transpose": "transpose.int",
    "log_softmax_backward": "_log_softmax_backward_data.default", "select": "select.int",
    "slice": "slice.Tensor", "squeeze_dim": "squeeze.dim", "squeeze_dims": "squeeze.dims",
    "unbind": "unbind.int", "split": "split.Tensor", "to_dtype": "_to_copy.default",
    "to_device": "_to_copy.default", "contiguous_copy": "clone.default",
    "clone_strided": "clone.default", "where": "where.self",
    "choose": "where.self", "mul_in_order": "mul.Tensor",
    "scatter": "scatter.src", "scatter_value": "scatter.value", "scatter_reduce": "scatter_reduce.two",
    "index_fill": "index_fill.int_Tensor", "masked_fill": "masked_fill.Tensor",
    "round_decimals": "round.decimals", "matmul_nd": "matmul.default",
    "gelu_tanh": "gelu.default", "bernoulli_number": "bernoulli.p", "bernoulli_tensor": "bernoulli.Tensor",
    "embedding_backward": "embedding_dense_backward.default", "random": "random.from",
    "conv_transpose": "convolution.default", "random_to": "random.to",
    "attention": "scaled_dot_product_attention.default",
    "attention_keeping": "scaled_dot_product_attention.default", "conj": "conj_physical.default",
    "conj_view": "_conj.default", "neg_view": "_neg_view.default",
}  # fmt: skip
_PUBLIC = {"_softmax": "softmax", "_log_softmax": "log_softmax"}


class _Dispatching(threading.local):
    """What a TorchDispatchMode of this thread is being asked about: (handle, primitive, out), and True if the
    arguments that are shown are the primitive's own."""

    calls: tuple = ()


_dispatching = _Dispatching()


class _Schema:
    """The name of an overload of which nothing else is known."""

    def __init__(self, name: str, overload: str) -> None:
        self.name, self.overload_name = name, "" if overload == "default" else overload

    def __getattr__(self, name: str) -> Any:
        if name in ("arguments", "returns", "is_mutable"):
            raise NotImplementedError(f"the schema of {self.name} is not kept: only its name is known")
        raise AttributeError(f"'FunctionSchema' object has no attribute '{name}'")


class OpOverload:
    """One overload of an operation: `torch.ops.aten.mm.default`."""

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self._overloadpacket, self._overloadname = packet, overload
        self.namespace = packet._namespace
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__qualname__ = self.name()
        self.__module__ = f"torch._ops.{self.namespace}"

    @functools.cached_property
    def _declared(self) -> Any:
        from rushlight._schema import schema_of

        return schema_of(self.name())

    @property
    def _schema(self) -> Any:
        return self._declared or _Schema(self._overloadpacket._qualified_op_name, self._overloadname)

    @functools.cached_property
    def is_view(self) -> bool:
        """Whether a result is a view of an argument that is not written."""
        schema = self._schema
        if isinstance(schema, _Schema):
            return False
        aliases = [a.alias_info for a in schema.arguments if a.alias_info is not None]
        returned = any(r.alias_info is not None for r in schema.returns)
        return returned and not any(a.is_write for a in aliases)

    @property
    def tags(self) -> list:
        """What torch says of the operation: that it is elementwise, writes in place, is random ..."""
        from rushlight._schema import tags_of

        return tags_of(self.name())

    def _can_decompose(self) -> bool:
        from rushlight._schema import is_said

        if is_said("scripted", self.name()):
            raise RuntimeError(f"operator {self.name()} does not exist")
        return is_said("decomposes", self.name())

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """The operation as those that torch composes it of; NotImplemented if it is one of its own."""
        if not self._can_decompose():
            return NotImplemented
        return self._overloadpacket.run(args, kwargs)

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """The operation of which this is an overload."""
        return self._overloadpacket

    @property
    def op(self) -> Any:
        """What runs when it is called."""
        return self._overloadpacket.op

    def name(self) -> str:
        """`aten::max.dim`; a default overload is not named."""
        ending = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self._overloadpacket._qualified_op_name}{ending}"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if _dispatching.calls:
            return _below(self, args, kwargs)
        if values := _overridden(args, kwargs):
            return _ask_function(self, values, args, kwargs)
        schema = self._declared
        refusal = schema and (schema.refusal(args, kwargs) or schema.undefined(args, kwargs))
        if refusal:
            raise RuntimeError(refusal)
        if "self" in kwargs and self._declared:  # "input" to the public functions
            args, kwargs = self._declared.bind(args, kwargs)
        return self._overloadpacket.run(args, kwargs)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._overloadpacket}', overload='{self._overloadname}')>"

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        return _find, (self.namespace, self._overloadpacket.__name__, self._overloadname)


def _overridden(args: tuple, kwargs: dict) -> list | None:
    """All values of a call, those of lists too, if somebody is to be asked by `__torch_function__`."""
    values: list = []
    for value in (*args, *kwargs.values()):
        if isinstance(value, (list, tuple)):
            values += value
        else:
            values.append(value)
    return (values or [None]) if _C._has_torch_function(values) else None


def _ask_function(called: Any, values: list, args: tuple, kwargs: dict) -> Any:
    from rushlight.nn.parameter import Parameter
    from rushlight.overrides import handle_torch_function

    others = [value for value in values if type(value) not in (_C.Tensor, Parameter)]
    return handle_torch_function(called, others, *args, **kwargs)


def _below(called: OpOverload, args: tuple, kwargs: dict) -> Any:
    """A call by somebody who has been asked: computes only. What was asked about is run as the primitive."""
    handle, primitive, out, *as_it_is = _dispatching.calls[-1]
    if handle is called and primitive is not None:
        from rushlight._aten_calls import SHOWN, SPECS

        name = primitive.__name__
        into = None if out is None else args[0]
        if name in SPECS:
            left = dict(kwargs)
            values = SPECS[name].taken(args, left)
            if not left:
                result = _C.run_forward(primitive, values, into)
                return list(result) if primitive.outputs == ("outs",) else result
        elif name not in SHOWN or as_it_is:
            return _C.run_forward(primitive, (*args, *kwargs.values()), into)
    from rushlight._dispatching import _looks_on, ask
    from rushlight._schema import is_said

    if called.namespace == "aten" and _looks_on(args, kwargs) and not is_said("decomposes", called.name()):
        return _C.below_autograd(ask, called, args, kwargs)
    before = _C.set_grad_enabled(False)
    try:
        result = called._overloadpacket.run(args, kwargs)
        # What native code asked about becomes a view there.
        return result if primitive is None else _C.without_base(result, args)
    finally:
        _C.set_grad_enabled(before)


# What returns as many tensors as it likes.
_LISTS = {
    "split", "split_with_sizes", "unbind", "chunk", "tensor_split", "hsplit", "vsplit", "dsplit", "meshgrid",
    "broadcast_tensors", "unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk", "where",
    "size", "stride", "sym_size", "sym_stride",
}  # fmt: skip


class OpOverloadPacket:
    """All overloads of an operation: `torch.ops.aten.mm`."""

    # Without overloads: an operation of torch that only its name is known of.
    def __init__(self, namespace: str, name: str, op: Any, overloads: list[str]) -> None:
        self._namespace, self.__name__, self._op = namespace, name, op
        self._qualified_op_name = f"{namespace}::{name}"
        self._overload_names = overloads
        self.__module__ = f"torch._ops.{namespace}"

    @functools.cached_property
    def op(self) -> Any:
        """What runs when it is called, as a function of this namespace."""

        def call(*args: Any, **kwargs: Any) -> Any:
            return self(*args, **kwargs)

        call.__name__, call.__module__ = self.__name__, self.__module__
        return call

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return list(self._overload_names)

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__") or (self._overload_names and name not in self._overload_names):
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        overload = OpOverload(self, name)
        setattr(self, name, overload)
        return overload

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if not _dispatching.calls and (values := _overridden(args, kwargs)):
            return _ask_function(self, values, args, kwargs)
        fitting = self._fitting(args, kwargs)
        undefined = fitting and fitting.undefined(args, kwargs)
        if undefined:
            raise RuntimeError(undefined)
        if fitting and "self" in kwargs:
            args, kwargs = fitting.bind(args, kwargs)
        return self.run(args, kwargs)

    def run(self, args: Sequence, kwargs: dict) -> Any:
        """Computes what a schema was found to take."""
        if self._op is None:
            raise NotImplementedError(f"torch.ops.{self} is not implemented: it is known by name only")
        result = self._op(*args, **kwargs)
        if isinstance(result, tuple) and self._namespace == "aten":  # tuples have no names there
            return list(result) if self.__name__ in _LISTS else tuple(result)
        return result

    def _fitting(self, args: tuple, kwargs: dict) -> Any:
        """The schema of the first overload that takes these arguments, None if none has one; if all refuse
        them, the error says why each does."""
        refusals = []
        for name in self._overload_names:
            if schema := getattr(self, name)._declared:  # those of numbers and lists only have none here
                refusal = schema.refusal(args, kwargs)
                if refusal is None:
                    return schema
                refusals.append(refusal)
        if refusals:
            text = "Overloaded torch operator invoked from Python failed to match any schema:\n"
            raise RuntimeError(("" if len(self._overload_names) == 1 else text) + "\n\n".join(refusals))
        return None

    def __dir__(self) -> list[str]:
        return [*self._overload_names, *super().__dir__()]

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __deepcopy__(self, memo: Any) -> OpOverloadPacket:
        return self

    def __reduce__(self) -> Any:
        return _find, (self._namespace, self.__name__)


class _OpNamespace(types.ModuleType):
    """`torch.ops.aten` and the like: the operations of a library, found when first named."""

    def __init__(self, name: str) -> None:
        super().__init__(f"torch.ops.{name}")
        self.name = name

    def __getattr__(self, op_name: str) -> Any:
        if not op_name.startswith("__") or self.name == "aten":
            packet = _packet(self.name, op_name)
            if packet is not None:
                setattr(self, op_name, packet)
                return packet
        raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{op_name}'")


namespaces: dict[str, Any] = {}


def namespace(name: str) -> Any:
    """`torch.ops.<name>`; an unknown one is empty."""
    if name == "higher_order" and name not in namespaces:
        from rushlight._higher_order import higher_order

        namespaces[name] = higher_order
    return namespaces.setdefault(name, _OpNamespace(name))


def _find(name: str, op_name: str, overload: str | None = None) -> Any:
    packet = getattr(namespace(name), op_name)
    return packet if overload is None else getattr(packet, overload)


def _public_function(name: str) -> Any:
    """The function that torch.ops.aten.<name> calls: one of the public ones."""
    import rushlight
    from rushlight import fft, linalg, special
    from rushlight._aten import FUNCTIONS as only_here
    from rushlight.nn import functional

    if name in only_here:
        return only_here[name]
    if name.endswith("_backward"):
        from rushlight._aten_gradients import FUNCTIONS as gradients

        if name in gradients:
            return gradients[name]
    if "spars" in name or name == "_spdiags":
        from rushlight._aten_sparse import FUNCTIONS as sparse

        if name in sparse:
            return sparse[name]
    if "upsample_" in name:
        from rushlight._aten_resample import FUNCTIONS as resampling

        return resampling.get(name)
    name = _PUBLIC.get(name, name)
    for prefix, module in (("linalg_", linalg), ("fft_", fft), ("special_", special)):
        if name.startswith(prefix) and hasattr(module, name.removeprefix(prefix)):
            return getattr(module, name.removeprefix(prefix))
    for space in (rushlight, _C.Tensor, functional):
        found = getattr(space, name, None)
        if callable(found):
            return found
    from rushlight._aten_calls import SPECS
    from rushlight._underscored import ATEN

    if name in ATEN:
        return ATEN[name]
    for spec in SPECS.values():
        if spec.overload.partition(".")[0] == name:
            return lambda *args, **kwargs: spec.primitive(*spec.taken(args, kwargs))
    primitive = getattr(_C.ops, name, None)
    # Attributes are in an order of their own.
    return primitive if primitive is not None and primitive.input_count == len(primitive.args) else None


def _packet(space: str, name: str) -> OpOverloadPacket | None:
    if space == "profiler":
        from rushlight.autograd.profiler import _PROFILER_OPS

        op = _PROFILER_OPS.get(name)
        return None if op is None else OpOverloadPacket(space, name, op, ["default", "_RecordFunction"])
    if space == "prim" and name in ("device", "layout"):
        return OpOverloadPacket(space, name, lambda tensor: getattr(tensor, name), ["default"])
    if space == "rushlight":
        op = getattr(_C.ops, name, None)
        return None if op is None else OpOverloadPacket(space, name, op, ["default"])
    from rushlight._aten_names import COLLECTIVES, OVERLOADS

    if name in COLLECTIVES.get(space, ()):
        return OpOverloadPacket(space, name, None, ["default"])
    if space != "aten":
        return None
    names = OVERLOADS.get(name)
    return None if names is None else OpOverloadPacket(space, name, _public_function(name), names)


_handles: dict[tuple[str, bool], OpOverload] = {}


def handle_of(primitive: _C.Primitive, in_place: bool) -> OpOverload:
    """The handle under which a primitive is shown: torch's, or one of `torch.ops.rushlight`."""
    key = (primitive.__name__, in_place)
    if key not in _handles:
        _handles[key] = _make_handle(primitive, in_place)
    return _handles[key]


def handle_named(name: str) -> OpOverload:
    """torch.ops.aten.<name>, the overload after the point."""
    if name not in _named:
        op, _, overload = name.partition(".")
        _named[name] = getattr(getattr(namespace("aten"), op), overload)
    return _named[name]


_named: dict[str, OpOverload] = {}


def _make_handle(primitive: _C.Primitive, in_place: bool) -> OpOverload:
    named = _OF_PRIMITIVE.get(primitive.__name__)
    name, _, overload = (named or primitive.__name__).partition(".")
    packet = getattr(namespace("aten"), name + "_" * in_place, None)
    if packet is None:
        return namespace("rushlight").__getattr__(primitive.__name__).default
    if not overload:
        overload = "Tensor" if primitive.input_count > 1 and "Tensor" in packet.overloads() else "default"
    if overload not in packet.overloads():
        overload = packet.overloads()[0]
    return getattr(packet, overload)


def __getattr__(name: str) -> Any:
    """What operations of one's own are made of, which most programs do not need."""
    if name in ("HigherOrderOperator", "OperatorBase", "_HigherOrderNamespace"):
        from rushlight import _higher_order

        return getattr(_higher_order, name)
    raise AttributeError(f"module 'torch._ops' has no attribute '{name}'", name=name)
