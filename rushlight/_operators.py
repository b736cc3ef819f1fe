"""Operations of one's own: what `torch.library` registers and `torch.ops.namespace.name` calls.

An `Operator` is one overload: its schema and what was registered for it. A call goes down the levels that
torch's has: autocast, autograd, `__torch_dispatch__`, the kernel of the device.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import rushlight
from rushlight import _C, Tensor, _autograd_fallback
from rushlight._ops import OpOverload, OpOverloadPacket, _ask_function, _dispatching, _overridden, namespace
from rushlight._returned import returned
from rushlight._schema import FunctionSchema, Tag
from rushlight._tensor_lists import supports_tensorlist
from rushlight.autograd.function import Function
from rushlight.utils._pytree import tree_map_only

OPERATORS: dict[str, Operator] = {}


class Operator:
    """One overload of an operation."""

    def __init__(self, schema: FunctionSchema, owner: Any = None, tags: tuple = ()) -> None:
        self.schema, self.owner, self.tags = schema, owner, tags  # owner: the CustomOpDef, if it is of one
        self.kernels: dict[str | None, Callable] = {}  # by type of device; None: of any
        self.disabled: set[str] = set()
        self.autograd_kernel: Callable | None = None
        self.covered: dict[
            str | None, list[Callable | None]
        ] = {}  # what was at a level before, the newest last
        self.fake: Callable | None = None
        self.fake_source = ""  # file and line
        self.backward: Callable | None = None
        self.setup_context: Callable | None = None
        self.differentiable = False  # whether register_autograd was called
        self.casts: dict[str, Any] = {}
        self.rules: dict[type, Callable] = {}
        self.node: type[Function] | None = None
        self.missing: Callable[[str], Any] | None = None  # raises what is to be said for want of a kernel
        self.key = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
        if self.key in OPERATORS and owner is None:
            raise RuntimeError(
                f"Tried to register an operator ({schema}) with the same name and overload name multiple "
                "times. Each overload's schema should only be registered with a single call to def()."
            )
        OPERATORS[self.key] = self
        space, _, name = schema.name.partition("::")
        overload = schema.overload_name or "default"
        packet = vars(namespace(space)).get(name)
        if not isinstance(packet, _Packet):
            packet = _Packet(space, name, [])
            setattr(namespace(space), name, packet)
        if overload not in packet._overload_names:
            packet._overload_names.append(overload)
        packet.operators[overload] = self
        self.handle = _Overload(packet, overload)
        setattr(packet, overload, self.handle)

    def cover(self, level: str | None, kernel: Callable) -> None:
        """Puts a kernel at a level, a device or "autograd", above what is there."""
        self.covered.setdefault(level, []).append(self._at(level))
        self._put(level, kernel)

    def uncover(self, level: str | None, kernel: Callable) -> None:
        """Takes a kernel away again, so that what it covered is there."""
        below = self.covered[level]
        if self._at(level) is kernel:
            self._put(level, below.pop())
        elif kernel in below:
            below.remove(kernel)

    def _at(self, level: str | None) -> Callable | None:
        return self.autograd_kernel if level == "autograd" else self.kernels.get(level)

    def _put(self, level: str | None, kernel: Callable | None) -> None:
        if level == "autograd":
            self.autograd_kernel = kernel
        elif kernel is None:
            self.kernels.pop(level, None)
        else:
            self.kernels[level] = kernel

    def forget(self) -> None:
        """Takes it away again."""
        OPERATORS.pop(self.key, None)
        packet: Any = self.handle._overloadpacket
        packet.operators.pop(self.handle._overloadname, None)
        if self.handle._overloadname in packet._overload_names:
            packet._overload_names.remove(self.handle._overloadname)
        if not packet.operators:
            vars(namespace(packet._namespace)).pop(packet.__name__, None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        placed, named = self.schema.bind(args, kwargs)
        for device, dtype in self.casts.items():
            if rushlight.is_autocast_enabled(device):
                with rushlight.autocast(device, enabled=False):
                    placed, named = _cast((placed, named), dtype)
                    return self._differentiated(placed, named)
        return self._differentiated(placed, named)

    def _differentiated(self, args: list, kwargs: dict) -> Any:
        records = rushlight.is_grad_enabled()
        if self.autograd_kernel is not None and records and not self._is_covered(args, kwargs):
            return returned(self.schema, self.autograd_kernel(*args, **kwargs))
        if self.owner is None and not self.differentiable:
            return _autograd_fallback.call(self.key, self.run, str(self.schema), tuple(args), kwargs)
        given = _tensors([args, list(kwargs.values()) if self.tagged(Tag.out) else []])
        records = records and any(tensor.requires_grad for tensor in given)
        if records and self.tagged(Tag.out):
            raise RuntimeError(
                f"{self.schema.name.rpartition('::')[2]}(): functions with out=... arguments don't support "
                "automatic differentiation, but one of the arguments requires grad."
            )
        if not records:  # below autograd, also for tangents: the operation has none
            with rushlight.no_grad():
                carried = _C._set_fwd_grad_enabled(False)
                try:
                    return self.run(*args, **kwargs)
                finally:
                    _C._set_fwd_grad_enabled(carried)
        if self.node is None:
            name = f"GeneratedBackwardFor_{self.key.replace('::', '_').replace('.', '_')}"
            name += "" if self.schema.overload_name else "_default"
            self.node = type(name, (_Recorded,), {"operator": self})
            if self._has_lists():
                supports_tensorlist(self.node)
        return self.node.apply(*args, _Call(self, args, kwargs))

    def is_composite(self) -> bool:
        """Whether it is made of operations that autograd sees."""
        return self.autograd_kernel is not None and self.autograd_kernel is self.kernels.get(None)

    def _is_covered(self, args: list, kwargs: dict) -> bool:
        """Whether it is composite, and a kernel of the device runs instead."""
        if not self.is_composite():
            return False
        given = _tensors([args, list(kwargs.values())])
        return any(tensor.device.type in self.kernels for tensor in given)

    def _has_lists(self) -> bool:
        """Whether lists of tensors are among what it takes and returns."""
        return any(each.is_list and each.word == "Tensor" for each in
                   (*self.schema.arguments, *self.schema.returns))  # fmt: skip

    def tagged(self, tag: Tag) -> bool:
        return tag in self.tags

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Whoever is asked about it by `__torch_dispatch__`, or the kernel."""
        asking = sys.modules.get("rushlight._dispatching")
        if asking is not None and asking._wanted(args, kwargs):
            innermost = asking.stack.modes[-1:] or args
            for one in innermost:
                rule = self.rules.get(type(one))
                if rule is not None:
                    mode = one if asking.stack.modes else None
                    types = tuple({type(t) for t in _tensors(list(args)) if type(t) is not Tensor})
                    return returned(self.schema, rule(mode, self.handle, types, args, kwargs))
            return asking.ask(self.handle, args, kwargs)
        return self._computed(args, kwargs)

    def _computed(self, args: tuple, kwargs: dict) -> Any:
        inputs = _tensors([list(args), list(kwargs.values())])
        kernel = self._kernel(inputs)
        result = returned(self.schema, kernel(*args, **kwargs))
        if self.owner is None:
            return result
        for tensor in self.schema.written(args, kwargs):
            _C.note_write(tensor)
        self._check_result(args, kwargs, result)
        return result

    def _check_result(self, args: tuple, kwargs: dict, result: Any) -> None:
        """Raises if an operation of `custom_op` returned what its schema and its tags do not say."""
        if self.tagged(Tag.inplace):
            if result is not args[0]:
                self._refuse_result(
                    "An operator tagged with torch.Tag.inplace must return its first argument."
                )
        elif self.tagged(Tag.out):
            outs = [kwargs[a.name] for a in self.schema.arguments if a.is_out]
            several = result if isinstance(result, tuple) and len(outs) > 1 else (result,)
            if len(several) != len(outs) or any(r is not out for r, out in zip(several, outs, strict=True)):
                self._refuse_result(
                    "An operator tagged with torch.Tag.out must return its mutable keyword-only arguments."
                )
        elif not any(each.alias_info is not None for each in self.schema.returns):
            inputs = _tensors([list(args), list(kwargs.values())])
            memory = [t.untyped_storage()._cdata for t in inputs if t.device.type != "meta"]
            for output in _tensors([result]):
                if output.device.type == "meta":
                    continue
                if output.untyped_storage()._cdata in memory and output.numel():
                    self._refuse_result(
                        "The output of this custom operator (1) must not also be an input to this custom "
                        "operator and (2) may not alias any inputs to this custom operator or other returns. "
                        "The most common way to trigger this error is if we have y = custom_op(x) and y and "
                        "x are the same Tensor. Please instead return a clone of the offending output "
                        "tensor(s) (e.g. return x.clone()) or refactor the custom operator to not return y."
                    )
                memory.append(output.untyped_storage()._cdata)

    def _refuse_result(self, what: str) -> NoReturn:
        module = inspect.getmodule(self.owner._init_fn)
        raise RuntimeError(f"{self.owner._name} (with implementation in {module}): {what}")

    def _kernel(self, inputs: list[Tensor]) -> Callable:
        if "backendselect" in self.kernels:  # which in torch decides itself what is to run
            return self.kernels["backendselect"]
        device = "meta" if any(t.device.type == "meta" for t in inputs) else "cpu"
        for tensor in inputs:
            if tensor.device.type not in ("cpu", "meta"):
                device = tensor.device.type
        if device == "meta":
            found = self.kernels.get("meta") or self.fake or self._trivial_fake()
            if found is None and self.owner is not None:
                raise RuntimeError(
                    f"There was no fake impl registered for {self.owner!r}. This is necessary for "
                    "torch.compile/export/fx tracing to work. Please use "
                    f"`{self.owner._init_name}.register_fake` to add an fake impl."
                )
        else:
            found = self.owner._init_fn if device in self.disabled else self.kernels.get(device)
        found = found or self.kernels.get(None)
        if found is None and device == "meta":
            raise NotImplementedError(
                f"{self.key}: attempted to run this operator with Meta tensors, but there was no fake impl "
                "or Meta kernel registered. You may have run into this message while using an operator with "
                "PT2 compilation APIs (torch.compile/torch.export); in order to use this operator with those "
                "APIs you'll need to add a fake impl. Please see the following for next steps:  "
                "https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html"
            )
        if self.missing is not None and (found is None or not (inputs or None in self.kernels)):
            self.missing(device.upper() if inputs else "Undefined")
        if found is None:
            raise NotImplementedError(
                f"Could not run '{self.key}' with arguments from the '{device.upper()}' backend. This could "
                "be because the operator doesn't exist for this backend, or was omitted during the "
                "selective/custom build process (if using custom build)."
            )
        return found

    def _trivial_fake(self) -> Callable | None:
        """What runs on the meta device if the schema says it all: that arguments, or nothing, are
        returned."""
        if self.owner is None:
            return None
        if self.tagged(Tag.out):
            names = [a.name for a in self.schema.arguments if a.is_out]
            return lambda *args, **kwargs: (
                kwargs[names[0]] if len(names) == 1 else tuple(kwargs[name] for name in names)
            )
        if self.tagged(Tag.inplace):
            return lambda *args, **kwargs: args[0]
        return (lambda *args, **kwargs: None) if self.schema.is_mutable and not self.schema.returns else None


class _Call:
    """One call that autograd sees."""

    def __init__(self, op: Operator, args: list, kwargs: dict) -> None:
        self.op, self.args, self.kwargs = op, args, kwargs


class _Recorded(Function):
    """A call that autograd sees: its arguments, and the call itself."""

    operator: Operator

    @staticmethod
    def forward(ctx: Any, *leaves: Any) -> Any:
        call = leaves[-1]
        op = call.op
        result = op.run(*call.args, **call.kwargs)
        if op.setup_context is not None:
            args, kwargs = op.schema.bind(tuple(call.args), call.kwargs, fill=True)
            named = {"keyword_only_inputs": kwargs} if any(a.kwarg_only for a in op.schema.arguments) else {}
            op.setup_context(ctx=ctx, inputs=tuple(args), **named, output=result)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        op = type(ctx)._forward_cls.operator
        if op.backward is None:
            raise RuntimeError(
                f"Trying to backward through {op.handle} but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        needs = ctx.needs_input_grad
        ctx.needs_input_grad = needs[:-1]
        try:
            result = op.backward(ctx, *grads)
        finally:
            ctx.needs_input_grad = needs
        return (*result, None) if isinstance(result, tuple) else (result, None)


class _Overload(OpOverload):
    """An overload of such an operation, with its schema."""

    @property
    def _operator(self) -> Operator:
        packet: Any = self._overloadpacket
        return packet.operators[self._overloadname]

    @property
    def _schema(self) -> FunctionSchema:
        return self._operator.schema

    @property
    def _name(self) -> str:
        return self.name()

    @property
    def tags(self) -> list:
        """What it was tagged with when it was defined."""
        return list(self._operator.tags)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if not _dispatching.calls:
            if values := _overridden(args, kwargs):
                return _ask_function(self, values, args, kwargs)
            return self._operator(*args, **kwargs)
        with rushlight.no_grad():  # by somebody who has been asked: computes only
            return self._operator(*args, **kwargs)


class _Packet(OpOverloadPacket):
    """All overloads of such an operation."""

    def __init__(self, space: str, name: str, overloads: list[str]) -> None:
        super().__init__(space, name, self._choose, overloads)
        self.operators: dict[str, Operator] = {}

    def _choose(self, *args: Any, **kwargs: Any) -> Any:
        if len(self.operators) == 1:
            return next(iter(self.operators.values()))(*args, **kwargs)
        said = []
        for operator in self.operators.values():
            try:
                operator.schema.bind(args, kwargs)
            except RuntimeError as error:
                said.append(str(error))
                continue
            return operator(*args, **kwargs)
        raise RuntimeError(
            "Overloaded torch operator invoked from Python failed to match any schema:\n" + "\n\n".join(said)
        )


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for each in value for tensor in _tensors(each)]
    return []


def _cast(value: Any, dtype: Any) -> Any:
    """The floating point tensors in another dtype."""

    def cast(tensor: Tensor) -> Tensor:
        return tensor.to(dtype) if tensor.is_floating_point() and tensor.dtype != _C.float64 else tensor

    return tree_map_only(Tensor, cast, value)
