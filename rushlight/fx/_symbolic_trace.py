"""Recording a program. `Tracer.trace` puts proxies in the place of the inputs, stands between modules and
their calls while `forward` runs, and returns the graph; `symbolic_trace` makes a GraphModule of it."""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
import math
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import rushlight
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Argument
from rushlight.fx.proxy import ParameterProxy, Proxy, Scope, TracerBase

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "symbolic_trace", "wrap"]

_is_fx_tracing_flag = False
# (globals of a module, name): functions that are recorded as one call; see wrap.
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
_wrapped_methods_to_patch: list[tuple[type, str]] = []


def is_fx_tracing() -> bool:
    """Whether a program is being recorded."""
    return _is_fx_tracing_flag


is_fx_symbolic_tracing = is_fx_tracing


class PHBase:
    """A placeholder for an argument inside a structure of `concrete_args`."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class ProxyableClassMeta(type):
    """The metaclass of a class whose construction from proxies is recorded as one call."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        instance = cls.__new__(cls)  # type: ignore[call-overload]
        proxy = _first_proxy(args, kwargs)
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        instance.__init__(*args, **kwargs)
        return instance


def _first_proxy(args: tuple, kwargs: dict) -> Proxy | None:
    from rushlight.fx.node import map_aggregate

    found: list[Proxy] = []
    map_aggregate((args, kwargs), lambda a: found.append(a) if isinstance(a, Proxy) else None)
    return found[0] if found else None


def _recorded(function: Callable) -> Callable:
    """`function`, but called with a proxy it becomes a node."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _first_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        result = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result

    return wrapped


def wrap(fn_or_name: str | Callable) -> Any:
    """Makes calls of a function of the calling module one node, not what the function does.

    >>> import rushlight as torch
    >>> @torch.fx.wrap
    ... def shift(x, by):
    ...     return x + (1 if by else 2)
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    caller = frame.f_back if frame is not None else None
    if caller is None:
        raise RuntimeError("wrap must be called at the top level of a module")
    if caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name


def _replace(stack: contextlib.ExitStack, owner: Any, name: str, value: Any) -> None:
    """Sets an attribute of a class or an entry of a dictionary until the stack is left."""
    missing = object()
    names = owner if isinstance(owner, dict) else vars(owner)
    old = names.get(name, missing)
    if isinstance(owner, dict):
        owner[name] = value
        stack.callback(lambda: owner.pop(name) if old is missing else owner.update({name: old}))
    else:
        setattr(owner, name, value)
        stack.callback(lambda: delattr(owner, name) if old is missing else setattr(owner, name, old))


class Tracer(TracerBase):
    """Records `forward` of a module. Subclasses decide what is a leaf (`is_leaf_module`) and how calls of
    modules are recorded (`call_module`)."""

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable, ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        self._autowrap_function_ids = {
            id(value)
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        } | {id(function) for function in autowrap_functions}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Any, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack: dict[str, Any] = {}
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope: dict[str, tuple[str, Any]] = {}
        self._specialised = 0  # how many arguments of the program have been given as constants

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name that no attribute of the root has: the prefix and a number."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def create_arg(self, a: Any) -> Argument:
        """An argument of the program as an argument of a node: parameters, buffers and submodules become
        readings of attributes, other tensors become attributes first."""
        if isinstance(a, rushlight.nn.Parameter):
            for name, parameter in self.root.named_parameters():
                if a is parameter:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, rushlight.Tensor):
            for name, buffer in self.root.named_buffers():
                if a is buffer:
                    return self.create_node("get_attr", name, (), {})
        elif isinstance(a, rushlight.nn.Module):
            for name, module in self.root.named_modules():
                if a is module:
                    return self.create_node("get_attr", name, (), {})
        elif isinstance(a, tuple) and hasattr(a, "_fields"):
            values = tuple(self.create_arg(item) for item in a)
            return self.create_node("call_function", a.__class__, values, {})
        if isinstance(a, rushlight.Tensor):
            name = self.tensor_attrs.get(a)
            if name is None:
                name = self.get_fresh_qualname("_tensor_constant")
                self.tensor_attrs[a] = name
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if type(type(a)) is ProxyableClassMeta:
            name = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Whether calls of a module become one node: by default torch's own modules but Sequential."""
        name = m.__module__
        return name.startswith(("rushlight.nn", "torch.nn")) and not isinstance(m, rushlight.nn.Sequential)

    def path_of_module(self, mod: Any) -> str:
        """The name of a submodule, as `named_modules` spells it."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: Any, forward: Callable, args: tuple, kwargs: dict) -> Any:
        """Called instead of a module's `__call__`."""
        path = self.path_of_module(m)
        before, self.scope = self.scope, Scope(path, type(m))
        self.num_calls[path] = self.num_calls.get(path, 0) + 1
        key = path if self.num_calls[path] == 1 else f"{path}@{self.num_calls[path] - 1}"
        self.module_stack[key] = (path, type(m))
        try:
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            self.scope = before
            self.module_stack.pop(key, None)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Called instead of a module's `__getattr__`: a parameter is read through the graph."""

        def proxy_of(named: Any) -> Any:
            name = next((name for name, value in named if value is attr_val), None)
            if name is None:
                return attr_val
            if name not in parameter_proxy_cache:
                options: dict[str, Any] = {}  # subclasses may know a create_proxy without them
                if self.param_shapes_constant:
                    options["proxy_factory_fn"] = lambda node: ParameterProxy(self, node, name, attr_val)
                parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, **options)
            return parameter_proxy_cache[name]

        if isinstance(attr_val, rushlight.nn.Parameter):
            return proxy_of(self.root.named_parameters())
        if self.proxy_buffer_attributes and isinstance(attr_val, rushlight.Tensor):
            return proxy_of(self.root.named_buffers())
        return attr_val

    def _proxy_placeholder(self, name: str, concrete_args: dict | None, signature: Any, function: Any) -> Any:
        parameter = signature.parameters.get(name.lstrip("*"))
        default: tuple = ()
        if parameter is not None and parameter.default is not inspect.Parameter.empty:
            default = (parameter.default,)
        kind = (
            function.__annotations__.get(name.lstrip("*")) if hasattr(function, "__annotations__") else None
        )
        if concrete_args is not None and name in concrete_args:
            value = concrete_args[name]
            self._specialised += 1
            out = self.create_proxy("placeholder", f"{name}_{self._specialised}", default, {})
            if isinstance(value, (bool, int, float)):
                rushlight._assert(
                    out == value, f"{name} has been specialized to have value {value} but got another value"
                )
            elif value is None:
                self.create_proxy(
                    "call_function", _assert_is_none,
                    (out, f"{name} has been specialized to have value None but got another value"), {},
                )  # fmt: skip
            elif value is PH or isinstance(value, (dict, list, tuple, rushlight.nn.Module)):
                raise NotImplementedError("concrete_args of nested structures are not implemented")
            else:
                from rushlight._warn import warn

                warn(
                    f"Was not able to add assertion to guarantee correct input {name} to specialized "
                    "function."
                )
            return value
        return self.create_proxy("placeholder", name, default, {}, type_expr=kind)

    def create_args_for_root(self, root_fn: Callable, is_module: bool, concrete_args: Any = None) -> tuple:
        """The function to run and the proxies to run it on."""
        function = inspect.unwrap(root_fn)
        code = function.__code__
        signature = inspect.signature(function)
        names = iter(code.co_varnames)
        args: list[Any] = []
        count = code.co_argcount + code.co_kwonlyargcount
        skipped = 0
        if is_module:
            if count == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            next(names)
            args.append(self.root)
            skipped = 1
        self._specialised = 0
        if isinstance(concrete_args, tuple):
            own = code.co_varnames[skipped:count]
            if len(own) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(own)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(own, concrete_args))
        args += [
            self._proxy_placeholder(next(names), concrete_args, signature, function)
            for _ in range(skipped, count)
        ]
        # Those by keyword only come after all others in co_varnames; the call below has to name them.
        keyword_only = code.co_varnames[code.co_argcount : count]
        starred: list[Any] = []
        double: Any = None
        if code.co_flags & inspect.CO_VARARGS:
            starred = [self._proxy_placeholder("*" + next(names), None, signature, function)]
        if code.co_flags & inspect.CO_VARKEYWORDS:
            double = self._proxy_placeholder("**" + next(names), None, signature, function)
        if not starred and double is None and not keyword_only:
            return root_fn, args
        plain = code.replace(co_flags=code.co_flags & ~inspect.CO_VARARGS & ~inspect.CO_VARKEYWORDS,
                             co_argcount=count + len(starred) + (double is not None),
                             co_kwonlyargcount=0)  # fmt: skip
        opened = FunctionType(plain, function.__globals__, function.__name__, closure=function.__closure__)
        return opened, [*args, *starred, *([] if double is None else [double])]

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module or function."""
        global _is_fx_tracing_flag
        before, _is_fx_tracing_flag = _is_fx_tracing_flag, True
        try:
            is_module = isinstance(root, rushlight.nn.Module)
            if is_module:
                name = getattr(self, "traced_func_name", "forward")
                if not hasattr(type(root), name):
                    raise AssertionError(f"traced_func_name={name} doesn't exist in {type(root).__name__}")
                function = getattr(type(root), name)
                self.root = root
                self.root_module_name = root._get_name()
                self.submodule_paths = {module: path for path, module in root.named_modules()}
            else:
                self.root = rushlight.nn.Module()
                function = root
            tracer_cls = getattr(self, "__class__", None)
            self.graph = Graph(tracer_cls=tracer_cls)
            self.tensor_attrs: dict[Any, str] = {}
            self._collect_constants(self.root, [])
            if not isinstance(function, FunctionType) and not hasattr(inspect.unwrap(function), "__code__"):
                raise AssertionError(f"cannot trace {function}: it is not a Python function")
            function, args = self.create_args_for_root(function, is_module, concrete_args)
            with contextlib.ExitStack() as stack:
                self._intercept(stack, function)
                result = self.create_arg(function(*args))
            self.create_node(
                "output",
                "output",
                (result,),
                {},
                type_expr=getattr(function, "__annotations__", {}).get("return"),
            )
            self.submodule_paths = None
            return self.graph
        finally:
            _is_fx_tracing_flag = before

    def _collect_constants(self, module: Any, path: list[str]) -> None:
        """Notes the tensors that are plain attributes, so that they are read by their own names."""
        for name, value in vars(module).items():
            if isinstance(value, rushlight.Tensor):
                self.tensor_attrs[value] = ".".join([*path, name])
        for name, child in module.named_children():
            self._collect_constants(child, [*path, name])

    def _intercept(self, stack: contextlib.ExitStack, function: Any) -> None:
        """Stands between the program and what it calls, until the stack is left."""
        Module = rushlight.nn.Module
        call, get = Module.__call__, Module.__getattr__
        cache: dict[str, Any] = {}
        searched: set[int] = set()

        def search(names: dict[str, Any]) -> None:
            # Functions of `math` and the like that a program has imported by name.
            if id(names) in searched:
                return
            searched.add(id(names))
            for name, value in list(names.items()):
                if not name.startswith("_") and callable(value) and id(value) in self._autowrap_function_ids:
                    _replace(stack, names, name, _recorded(value))

        @functools.wraps(get)
        def read(module: Any, name: str) -> Any:
            return self.getattr(name, get(module, name), cache)

        @functools.wraps(call)
        def run(module: Any, *args: Any, **kwargs: Any) -> Any:
            search(getattr(module.forward, "__globals__", {}))
            return self.call_module(module, lambda *a, **k: call(module, *a, **k), args, kwargs)

        _replace(stack, Module, "__getattr__", read)
        _replace(stack, Module, "__call__", run)
        for (_, name), names in _wrapped_fns_to_patch.items():
            _replace(stack, names, name, _recorded(names[name] if name in names else getattr(builtins, name)))
        for owner, name in _wrapped_methods_to_patch:
            _replace(stack, owner, name, _recorded_method(owner, name))
        search(getattr(function, "__globals__", {}))
        for module in self._autowrap_search:
            search(vars(module))


def _recorded_method(owner: type, name: str) -> Callable:
    function = getattr(owner, name)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _first_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None, prune: bool = True) -> GraphModule:
    """A module that does what `root` (a module or a function) does, with the graph of it.

    >>> import rushlight as torch
    >>> def f(x):
    ...     return torch.relu(x) + 1
    >>> traced = torch.fx.symbolic_trace(f)
    >>> [node.op for node in traced.graph.nodes]
    ['placeholder', 'call_function', 'call_function', 'output']
    >>> traced(torch.tensor([-1.0, 1.0]))
    tensor([1., 2.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root.__class__.__name__ if isinstance(root, rushlight.nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
