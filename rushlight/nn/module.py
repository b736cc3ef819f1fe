"""Module: the base class of everything with parameters.

What a module holds is in tables of its ``__dict__`` (parameters, buffers, submodules); ``__setattr__`` sorts
assigned values into them and ``__getattr__`` finds them again. Calling and hooks live in ``_call.py``, saving
and loading in ``_state.py``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar

import rushlight
from rushlight import _C, Tensor
from rushlight import __future__ as _future
from rushlight._to_arguments import to_arguments
from rushlight._warn import warn
from rushlight.nn._call import (
    ModuleCall,
    _note_module,
    _register,
    forget_hook_table,
    register_module_backward_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from rushlight.nn._state import _EXTRA_STATE_KEY_SUFFIX, ModuleState, _IncompatibleKeys  # noqa: F401
from rushlight.nn.parameter import Buffer, Parameter
from rushlight.utils import swap_tensors

T_destination = TypeVar("T_destination", bound=dict[str, Any])

__all__ = [
    "Module",
    "register_module_forward_pre_hook",
    "register_module_forward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

_set_plainly = _C.set_plainly  # what most assignments are: of numbers, strings and containers

_global_backward_pre_hooks: dict = OrderedDict()
_global_backward_hooks: dict = OrderedDict()
_global_is_full_backward_hook = None
_global_forward_pre_hooks: dict = OrderedDict()
_global_forward_hooks: dict = OrderedDict()
_global_forward_hooks_always_called: dict = OrderedDict()
_global_forward_hooks_with_kwargs: dict = OrderedDict()
_global_parameter_registration_hooks: dict = OrderedDict()
_global_module_registration_hooks: dict = OrderedDict()
_global_buffer_registration_hooks: dict = OrderedDict()


def register_module_parameter_registration_hook(hook):
    """Run ``hook(module, name, param)`` whenever a parameter is registered; it may return another."""
    return _register(hook, _global_parameter_registration_hooks, False)


def register_module_module_registration_hook(hook):
    """Run ``hook(module, name, submodule)`` whenever a submodule is registered; it may return another."""
    return _register(hook, _global_module_registration_hooks, False)


def register_module_buffer_registration_hook(hook):
    """Run ``hook(module, name, buffer)`` whenever a buffer is registered; it may return another."""
    return _register(hook, _global_buffer_registration_hooks, False)


def _after_registration_hooks(hooks, module, name, value):
    for hook in hooks.values():
        replaced = hook(module, name, value)
        if replaced is not None:
            value = replaced
    return value


def typename(value):
    """A value's type as torch writes it in messages: ``torch.FloatTensor`` for tensors."""
    if isinstance(value, Tensor):
        return value.type()
    kind = value if hasattr(value, "__qualname__") else type(value)
    module = getattr(kind, "__module__", None)
    if module in (None, "builtins"):
        return kind.__qualname__
    return f"{module}.{kind.__qualname__}"


def _check_name(kind, name, got=""):
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."{got}')
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')


def _forward_unimplemented(self, *input):
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module(ModuleCall, ModuleState):
    """Base class of layers and models: assign parameters and submodules as attributes, define ``forward``.

    >>> import rushlight as torch
    >>> class Net(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = torch.nn.Linear(2, 1)
    ...     def forward(self, x):
    ...         return self.layer(x).relu()
    >>> Net()
    Net(
      (layer): Linear(in_features=2, out_features=1, bias=True)
    )
    """

    dump_patches = False
    call_super_init = False
    training: bool
    T_destination = T_destination
    forward: Callable[..., Any] = _forward_unimplemented

    def __init__(self, *args, **kwargs):
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                    f"'{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were "
                    "given"
                )
        # Straight into the dict: __setattr__ would search tables that do not exist yet.
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_non_persistent_buffers_set"] = set()
        state["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # What belongs to a module

    def register_parameter(self, name, param) -> None:
        """Add a parameter under ``name``; None reserves the name."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        _check_name("parameter", name)
        if name not in self._parameters and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                    f"explicitly. To express '{name}' as a function of another Tensor, compute the value in "
                    "the forward() method."
                )
            param = _after_registration_hooks(_global_parameter_registration_hooks, self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name, tensor, persistent=True) -> None:
        """Add a tensor that is state but not a parameter; the state dict has it if ``persistent``."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        _check_name("buffer", name)
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None "
                "required)"
            )
        self._buffers[name] = _after_registration_hooks(_global_buffer_registration_hooks, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name, module):
        """Add a submodule under ``name``; None reserves the name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        _check_name("module", name, f", got: {name}")
        if name not in self._modules and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        self._modules[name] = _after_registration_hooks(_global_module_registration_hooks, self, name, module)

    def register_module(self, name, module):
        """Alias of ``add_module``."""
        self.add_module(name, module)

    def __setattr__(self, name, value):
        if _set_plainly(self, name, value):
            return
        params = self.__dict__.get("_parameters")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None "
                    "expected)"
                )
            self.register_parameter(name, value)
        else:
            self._set_module_or_plain(name, value)

    def _set_module_or_plain(self, name, value):
        state = self.__dict__
        modules, buffers = state.get("_modules"), state.get("_buffers")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_parameters", "_buffers")
            modules[name] = _after_registration_hooks(_global_module_registration_hooks, self, name, value)
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None "
                    "expected)"
                )
            modules[name] = _after_registration_hooks(_global_module_registration_hooks, self, name, value)
        elif isinstance(value, Buffer) or (buffers is not None and name in buffers):
            if buffers is None:
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            persistent = name not in self._non_persistent_buffers_set
            if isinstance(value, Buffer):
                persistent = value.persistent
            # A subclass may have its own register_buffer with another signature.
            if type(self).register_buffer is Module.register_buffer:
                self.register_buffer(name, value, persistent)
            else:
                buffers[name] = _after_registration_hooks(
                    _global_buffer_registration_hooks, self, name, value
                )
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name, *tables):
        """Drop ``name`` from where it was, before it goes into another table."""
        state = self.__dict__
        state.pop(name, None)
        for table in tables:
            state[table].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        _C.find_in_tables(cls)
        _C.call_natively(cls)

    def __getattr__(self, name):
        # Reached by what is nowhere, and by classes that call it from a __getattr__ of their own: the tables
        # are looked into natively before (native/python/attribute_tables.cpp).
        state = self.__dict__
        if "_parameters" in state:
            params = state["_parameters"]
            if name in params:
                return params[name]
            modules = state["_modules"]
            if name in modules:
                return modules[name]
            buffers = state["_buffers"]
            if name in buffers:
                return buffers[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name):
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        elif not forget_hook_table(self, name):
            object.__delattr__(self, name)

    def _replicate_for_data_parallel(self):
        """A shallow copy with tables of its own, for a thread that runs it on another device."""
        replica = type(self).__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        # Parameters become plain attributes that the caller sets, since a replica's are no leaves.
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica

    def __dir__(self):
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        # Children of a Sequential are called "0", "1" ...: not something to complete after a dot.
        return sorted(name for name in names if not name[0].isdigit())

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.__dict__.pop("_forgotten", None)  # what an older version saved has its tables once it is loaded
        for table in ("_backward_pre_hooks", "_backward_hooks", "_forward_pre_hooks", "_forward_hooks"):
            if self.__dict__.get(table):
                self.__dict__["_hooked"] = True
            else:  # an empty one, as torch's files have it, would take hooks without anyone noticing
                self.__dict__.pop(table, None)
        self.__dict__.setdefault("_non_persistent_buffers_set", set())

    # Finding things

    def get_submodule(self, target) -> Module:
        """The submodule of a dotted path.

        >>> import rushlight.nn as nn
        >>> nn.Sequential(nn.Sequential(nn.ReLU())).get_submodule("0.0")
        ReLU()
        """
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Replace the submodule of a dotted path; with ``strict`` it must exist already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get_member(self, target):
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return module, name, getattr(module, name)

    def get_parameter(self, target) -> Parameter:
        """The parameter of a dotted path."""
        _, name, param = self._get_member(target)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target):
        """The buffer of a dotted path."""
        module, name, buffer = self._get_member(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    def named_modules(self, memo=None, prefix="", remove_duplicate=True) -> Iterator[tuple[str, Module]]:
        """This module and all below it, each with its dotted name.

        >>> import rushlight.nn as nn
        >>> [name for name, _ in nn.Sequential(nn.ReLU(), nn.Sequential(nn.ReLU())).named_modules()]
        ['', '0', '1', '1.0']
        """
        yield from _C.walk_modules(self, memo, prefix, remove_duplicate)

    def modules(self, remove_duplicate=True) -> Iterator[Module]:
        """This module and all below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct submodules with their names."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct submodules."""
        for _, module in self.named_children():
            yield module

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        seen = set()
        for module_prefix, module in modules:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield (f"{module_prefix}.{name}" if module_prefix else name), member

    def _members(self, table, prefix, recurse, once, names):
        """What this module, and those below it, have in a table of that name."""
        if not _C.has_methods_of(self, Module, "_named_members"):
            found = self._named_members(lambda m: getattr(m, table).items(), prefix, recurse, once)
            return found if names else (member for _, member in found)
        if not recurse:
            modules = ((prefix, self),)
        elif _C.has_methods_of(self, Module, "named_modules"):
            modules = _C.walk_modules(self, None, prefix, once)
        else:
            modules = self.named_modules(prefix=prefix, remove_duplicate=once)
        return _C.walk_members(modules, table, once, names)

    def named_parameters(
        self, prefix="", recurse=True, remove_duplicate=True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their dotted names.

        >>> import rushlight.nn as nn
        >>> [(name, tuple(p.shape)) for name, p in nn.Linear(2, 3).named_parameters()]
        [('weight', (3, 2)), ('bias', (3,))]
        """
        yield from self._members("_parameters", prefix, recurse, remove_duplicate, True)

    def parameters(self, recurse=True) -> Iterator[Parameter]:
        """All parameters, as optimizers take them."""
        if _C.has_methods_of(self, Module, "named_parameters"):
            yield from self._members("_parameters", "", recurse, True, False)
        else:
            for _, param in self.named_parameters(recurse=recurse):
                yield param

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True) -> Iterator[tuple[str, Tensor]]:
        """All buffers with their dotted names."""
        yield from self._members("_buffers", prefix, recurse, remove_duplicate, True)

    def buffers(self, recurse=True) -> Iterator[Tensor]:
        """All buffers."""
        if _C.has_methods_of(self, Module, "named_buffers"):
            yield from self._members("_buffers", "", recurse, True, False)
        else:
            for _, buffer in self.named_buffers(recurse=recurse):
                yield buffer

    # Changing all at once

    def apply(self, fn) -> Self:
        """Call ``fn`` on every submodule, then on this module.

        >>> import rushlight.nn as nn
        >>> _ = nn.Sequential(nn.ReLU(), nn.Tanh()).apply(lambda module: print(type(module).__name__))
        ReLU
        Tanh
        Sequential
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn, recurse=True):
        """Replace every parameter, its gradient and every buffer by ``fn`` of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is not None:
                self._apply_to_parameter(fn, name, param)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _apply_to_parameter(self, fn, name, param):
        with rushlight.no_grad():
            applied = fn(param)
        if _future.get_swap_module_params_on_conversion():
            self._swap_parameter(fn, name, param, applied)
            return
        # Where possible the Parameter object stays the same, since an optimizer may hold it.
        keep = not _future.get_overwrite_module_params_on_conversion()
        stays = keep and param.is_meta == applied.is_meta
        grad = param.grad
        if stays:
            param.data = applied
        else:
            self._parameters[name] = Parameter(applied, param.requires_grad)
        if grad is not None:
            with rushlight.no_grad():
                applied_grad = fn(grad)
            if keep and stays and grad.is_meta == applied_grad.is_meta and not grad.is_sparse:
                grad.data = applied_grad
            else:
                self._parameters[name].grad = applied_grad.requires_grad_(grad.requires_grad)

    def _swap_parameter(self, fn, name, param, applied):
        """What ``fn`` gave changes places with the parameter: whoever holds it sees the new values."""

        def swap(current, other, what):
            try:
                swap_tensors(current, other)
            except Exception as error:
                raise RuntimeError(f"_apply(): Couldn't swap {self._get_name()}.{what}") from error

        grad = param.grad
        param.grad = None
        try:
            swap(param, Parameter(applied, requires_grad=param.requires_grad), name)
            if grad is not None:
                with rushlight.no_grad():
                    applied_grad = fn(grad)
                swap(grad, applied_grad.requires_grad_(grad.requires_grad), f"{name}.grad")
        finally:
            if grad is None or grad.dtype == param.dtype:
                param.grad = grad

    def to(self, *args, **kwargs) -> Self:
        """Move and cast parameters and buffers in place: ``to(device)``, ``to(dtype)``, ``to(tensor)`` ...

        >>> import rushlight as torch
        >>> torch.nn.Linear(1, 1).to(torch.float64).weight.dtype
        torch.float64
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                    f"dtype={dtype}"
                )
            if dtype.is_complex:
                warn(
                    "Complex modules are a new feature under active development whose design may change, and "
                    "some modules might not work as expected when using complex tensors as parameters or "
                    "buffers. Please file an issue at "
                    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a complex "
                    "module does not work as expected."
                )

        def convert(tensor):
            options = {"non_blocking": non_blocking}
            if memory_format is not None and tensor.dim() in (4, 5):
                options["memory_format"] = memory_format
            if device is not None:
                options["device"] = device
            if dtype is not None and (tensor.is_floating_point() or tensor.is_complex()):
                options["dtype"] = dtype
            try:
                return tensor.to(**options)
            except NotImplementedError as error:
                if str(error).startswith("Cannot copy out of meta tensor; no data!"):
                    raise NotImplementedError(
                        "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() "
                        "instead of torch.nn.Module.to() when moving module from meta to a different device."
                    ) from None
                raise

        return self._apply(convert)

    def to_empty(self, *, device, recurse=True):
        """Move to the device without copying values."""
        return self._apply(lambda t: rushlight.empty_like(t, device=device), recurse=recurse)

    def cpu(self) -> Self:
        """Move everything to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None) -> Self:
        """Move everything to the GPU."""
        return self._apply(lambda t: t.cuda(device))

    def xpu(self, device=None):
        """There is no such device here; what a tensor says is what this raises."""
        return self._apply(lambda t: t.to(f"xpu:{device}" if isinstance(device, int) else device or "xpu"))

    def ipu(self, device=None):
        """There is no such device here; what a tensor says is what this raises."""
        return self._apply(lambda t: t.to(f"ipu:{device}" if isinstance(device, int) else device or "ipu"))

    def mtia(self, device=None):
        """There is no such device here; what a tensor says is what this raises."""
        return self._apply(lambda t: t.to(f"mtia:{device}" if isinstance(device, int) else device or "mtia"))

    def share_memory(self):
        """Make the memory of all tensors one that other processes see; tensors say whether they can."""
        return self._apply(lambda t: t.share_memory_())

    def compile(self, *args, **kwargs):
        """What ``torch.compile`` does, in place: the module stays as it is, for there is no compiler."""
        rushlight.compile(self.forward, *args, **kwargs)

    def type(self, dst_type):
        """Cast all parameters and buffers, given a dtype or torch's name of a tensor type.

        >>> import rushlight as torch
        >>> torch.nn.Linear(1, 1).type("torch.DoubleTensor").weight.dtype
        torch.float64
        """
        return self._apply(lambda t: t.type(dst_type))

    def _cast(self, dtype):
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self) -> Self:
        """Cast floating-point parameters and buffers to float32."""
        return self._cast(rushlight.float32)

    def double(self) -> Self:
        """Cast floating-point parameters and buffers to float64."""
        return self._cast(rushlight.float64)

    def half(self) -> Self:
        """Cast floating-point parameters and buffers to float16."""
        return self._cast(rushlight.float16)

    def bfloat16(self) -> Self:
        """Cast floating-point parameters and buffers to bfloat16."""
        return self._cast(rushlight.bfloat16)

    def train(self, mode=True) -> Self:
        """Set training mode here and below; dropout and batch norm behave differently in it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        if _C.has_methods_of(self, Module, "children", "named_children"):
            children = [module for module in dict.fromkeys(self._modules.values()) if module is not None]
        else:
            children = list(self.children())
        for module in children:
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode: ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True) -> Self:
        """Say whether gradients are computed for the parameters.

        >>> import rushlight.nn as nn
        >>> any(p.requires_grad for p in nn.Linear(2, 2).requires_grad_(False).parameters())
        False
        """
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True) -> None:
        """Drop all gradients, or with ``set_to_none=False`` fill them with zeros."""
        for param in self.parameters():
            if (grad := param.grad) is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    # Printing

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands between the parentheses of the printed module; override it in a layer."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        lines = [f"({name}): " + _addindent(repr(module), 2) for name, module in self._modules.items()]
        name = self._get_name()
        if len(extra_lines) == 1 and not lines:
            return f"{name}({extra})"
        if not extra_lines and not lines:
            return f"{name}()"
        return f"{name}(\n  " + "\n  ".join(extra_lines + lines) + "\n)"


_C.find_in_tables(Module, ("_parameters", "_modules", "_buffers"))
_C.call_natively(Module, ModuleCall.__call__, _note_module)
_C.set_plain_walk(Module.named_modules)


def _addindent(text, spaces):
    """Indent all lines but the first."""
    return text.replace("\n", "\n" + " " * spaces)


def _parse_to(*args, **kwargs):
    if _C._is_torch_function_mode_enabled():
        from rushlight.overrides import handle_torch_function

        return handle_torch_function(_parse_to, (), *args, **kwargs)
    asked = to_arguments(args, kwargs)
    if asked.copy:
        raise RuntimeError(".to() does not accept copy argument")
    return asked.device, asked.dtype, asked.non_blocking, asked.memory_format
