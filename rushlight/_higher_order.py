"""Operations of one's own that take functions, or that say themselves what they are inside transforms.

`torch._ops.HigherOrderOperator`: a name and a table of functions, by the step of a call that each stands for.
A call goes through the steps from the outside in, as torch's dispatcher does: the innermost transform,
recording (Autograd), what modes and classes are asked (Python), the kernel of a device.
"""

from __future__ import annotations

import types
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from rushlight import _C
from rushlight._dispatch_keys import DispatchKey, _dispatch_keys, _dispatch_tls_is_dispatch_key_excluded
from rushlight.func._stack import TransformType
from rushlight.utils._pytree import tree_flatten

# Steps that an operation passes by unless something is registered for them.
_PASSED_BY = (
    *(DispatchKey.PythonDispatcher, DispatchKey.PythonTLSSnapshot, DispatchKey.ADInplaceOrView),
    *(DispatchKey.BackendSelect, DispatchKey.AutocastCPU, DispatchKey.AutocastCUDA, DispatchKey.AutocastXPU),
)
_COMPOSITE = (DispatchKey.CompositeExplicitAutograd, DispatchKey.CompositeImplicitAutograd)

_named: dict[str, HigherOrderOperator] = {}


class OperatorBase:
    """What is registered for the steps of a call."""

    def __init__(self) -> None:
        self.py_kernels: dict[Any, Callable] = {}
        self.functorch_table: dict[TransformType, Callable] = {}
        self.python_key_table: dict[type, Callable] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def name(self) -> str:
        """Its name."""
        raise NotImplementedError

    def has_kernel_for_dispatch_key(self, k: Any) -> bool:
        """Whether something is registered for this step."""
        return k in self.py_kernels

    def has_kernel_for_any_dispatch_key(self, ks: Any) -> bool:
        """Whether something is registered for one of these steps."""
        return any(ks.has(key) for key in self.py_kernels)

    def py_impl(self, k: Any) -> Callable[[Callable], Callable]:
        """A decorator: the function stands for this step, transform, mode or class of tensors."""

        def register(function: Callable) -> Callable:
            if isinstance(k, type):
                from rushlight.utils._python_dispatch import TorchDispatchMode

                if not issubclass(k, (TorchDispatchMode, _C.Tensor)):
                    raise AssertionError(f"expected TorchDispatchMode or Tensor, got {k}")
                if k in self.python_key_table:
                    raise AssertionError(f"{k} already registered in python_key_table")
                self.python_key_table[k] = function
            elif isinstance(k, TransformType):
                if k in self.functorch_table:
                    raise AssertionError(f"{k} already registered in functorch_table")
                self.functorch_table[k] = function
            else:
                if not isinstance(k, DispatchKey):
                    raise AssertionError(f"expected DispatchKey, got {type(k)}")
                if k is DispatchKey.Python:
                    raise AssertionError("Please register a mode for the DispatchKey.Python key instead.")
                if k in self.py_kernels:
                    raise RuntimeError(f"Trying to override a python impl for {k} on operator {self.name()}")
                self.py_kernels[k] = function
            return function

        return register

    def py_functionalize_impl(self, fn: Callable) -> Callable:
        """The function stands for the step that takes mutations out: nothing here takes it."""
        self.functorch_table[TransformType.Functionalize] = fn
        return fn


class HigherOrderOperator(OperatorBase, ABC):
    """An operation of one's own: a class of them is derived, which has its name.

    >>> from rushlight._higher_order import HigherOrderOperator
    >>> class Twice(HigherOrderOperator):
    ...     def __init__(self):
    ...         super().__init__("twice")
    ...     def __call__(self, function, x):
    ...         return super().__call__(function, x)
    >>> twice = Twice()
    >>> @twice.py_impl(torch._C.DispatchKey.Autograd)
    ... def recorded(function, x):
    ...     return function(function(x))
    >>> twice(torch.sin, torch.ones(1))
    tensor([0.7456])
    """

    def __init__(self, name: str, *, cacheable: bool = False) -> None:
        super().__init__()
        self._name = self.__name__ = name
        self._ns = "higher_order"
        self._cacheable = cacheable
        self._passed_by = set(_PASSED_BY)
        _named[name] = self

    @property
    def namespace(self) -> str:
        """Where it is found: `torch.ops.higher_order`."""
        return self._ns

    def cacheable(self) -> bool:
        """Whether what it returns depends on its arguments alone, as a compiler may assume."""
        return self._cacheable

    def name(self) -> str:
        return self._name

    def __str__(self) -> str:
        return self._name

    def __deepcopy__(self, memo: Any) -> HigherOrderOperator:
        return self

    def fallthrough(self, dispatch_key: Any) -> None:
        """Lets calls pass this step by."""
        self._passed_by.add(dispatch_key)

    def py_impl(self, k: Any) -> Callable[[Callable], Callable]:
        if isinstance(k, DispatchKey):
            self._passed_by.discard(k)
        return super().py_impl(k)

    def py_autograd_impl(self, fn: Callable) -> Callable:
        """The function stands for recording, and is called where a gradient may be asked for."""

        def recorded(*args: Any, **kwargs: Any) -> Any:
            from rushlight._native_names import _AutoDispatchBelowAutograd

            wanted = _C.is_grad_enabled() and any(x.requires_grad for x in _tensors(args, kwargs))
            if wanted:
                return fn(*args, **kwargs)
            with _AutoDispatchBelowAutograd():
                return self(*args, **kwargs)

        self.py_impl(DispatchKey.Autograd)(recorded)
        return fn

    @abstractmethod
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        from rushlight.overrides import has_torch_function

        flat = tree_flatten((args, kwargs))[0]
        if has_torch_function(flat):
            from rushlight.overrides import handle_torch_function

            return handle_torch_function(self, flat, *args, **kwargs)
        if _C.top_level() is not None:
            from rushlight.func._interpreters import dispatch_functorch

            return dispatch_functorch(self, args, kwargs)
        tensors = _tensors(args, kwargs)
        for key in _steps(tensors):
            if key in self._passed_by or _dispatch_tls_is_dispatch_key_excluded(key):
                continue
            return self.dispatch(key, *args, **kwargs)
        return self.dispatch(DispatchKey.Undefined, *args, **kwargs)

    def dispatch(self, dispatch_key: Any, /, *args: Any, **kwargs: Any) -> Any:
        """What the operation is at a step of a call."""
        if dispatch_key == DispatchKey.Python:
            return self._ask(args, kwargs)
        found = _resolved(self, dispatch_key)
        if found is None:
            raise NotImplementedError(
                f"could not find kernel for HigherOrderOperator {self._name} at dispatch key {dispatch_key} "
                f"(resolved from {dispatch_key})"
                if _tensors(args, kwargs)
                else f"could not find kernel for {self._name} at dispatch key {dispatch_key}"
            )
        return self.py_kernels[found](*args, **kwargs)

    def _ask(self, args: tuple, kwargs: dict) -> Any:
        """The answer of the innermost mode, or of the classes of the arguments."""
        from rushlight._dispatching import _overriding, show_modes, stack

        overriding = _overriding(_tensors(args, kwargs), [])
        asked: tuple[Any, ...] = tuple(map(type, overriding))
        if stack.modes:
            mode = stack.modes[-1]
            rule = self.python_key_table.get(type(mode))
            if rule is None and not getattr(mode, "supports_higher_order_operators", False):
                raise NotImplementedError(
                    f"There was no rule registered for HigherOrderOperator {self._name} and mode {mode}."
                    f"Hint: set {mode}'s supports_higher_order_operators to True. This causes all higher "
                    f"order operators to pass through {mode}'s __torch_dispatch__, so handle them "
                    f"accordingly by adding support for HigerOrderOperators (in this case, {self._name}) in "
                    f"{mode}.__torch_dispatch__ or returning NotImplemented when not supported."
                )
            stack.modes.pop()
            show_modes()
            try:
                if rule is not None:
                    result = rule(mode, *args, **kwargs)
                else:
                    result = mode.__torch_dispatch__(self, asked, args, kwargs)
            finally:
                stack.modes.append(mode)
                show_modes()
            if result is not NotImplemented:
                return result
        for kind in asked:
            if kind in self.python_key_table:
                result = self.python_key_table[kind](*args, **kwargs)
            else:
                result = kind.__torch_dispatch__(self, asked, args, kwargs)
            if result is not NotImplemented:
                return result
        raise TypeError(
            f"HigherOrderOperator '{self._name}' is not supported for the given input types. This typically "
            f"happens when using custom tensor types or dispatch modes that don't have implementations for "
            f"this operation."
        )


def _tensors(args: tuple, kwargs: dict) -> list:
    return [value for value in tree_flatten((args, kwargs))[0] if isinstance(value, _C.Tensor)]


def _steps(tensors: list) -> list:
    """The steps of a call with these tensors, the outermost first."""
    from rushlight._dispatch_keys import DispatchKeySet, _order
    from rushlight._dispatching import stack

    keys = DispatchKeySet()
    for tensor in tensors:
        keys |= _dispatch_keys(tensor)
    found = sorted(keys._keys, key=_order, reverse=True)
    if stack.modes and DispatchKey.Python not in found:
        # After recording, before the kernels.
        at = next((i for i, key in enumerate(found) if _order(key) < _order(DispatchKey.Python)), len(found))
        found.insert(at, DispatchKey.Python)
    return found


def _resolved(operator: HigherOrderOperator, key: Any) -> Any:
    """The key under which something for this step is registered, or None."""
    kernels = operator.py_kernels
    if key in kernels:
        return key
    if key.name.startswith("Autograd"):
        return DispatchKey.Autograd if DispatchKey.Autograd in kernels else None
    return next((each for each in _COMPOSITE if each in kernels), None)


class _HigherOrderNamespace(types.ModuleType):
    """`torch.ops.higher_order`: the operations by their names."""

    __file__ = "_ops.py"

    def __getattr__(self, name: str) -> Any:
        if name in _named:
            setattr(self, name, _named[name])
            return _named[name]
        raise AttributeError(
            f"'_HigherOrderNamespace' 'torch.ops.higher_order' object has no attribute '{name}'"
        )


higher_order = _HigherOrderNamespace("torch.ops.higher_order")

for _class in (OperatorBase, HigherOrderOperator, _HigherOrderNamespace):
    _class.__module__ = "torch._ops"
