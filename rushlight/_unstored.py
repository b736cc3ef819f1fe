"""Tensors without memory of their own: sparse ones, and those in oneDNN's layout.

Each is a wrapper like those of `Tensor._make_wrapper_subclass`, so that no native loop can read it, and
passes for a plain Tensor otherwise. What it holds, how that is printed and written, and what a dense gradient
becomes for it, its class says; what needs memory is refused here.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight import _C
from rushlight._annotations import Any, NoReturn

Tensor = _C.Tensor
_NO_POINTER = "Cannot access data pointer of Tensor that doesn't have storage"

# Primitives that make such tensors of dense ones, or read them together with those: computed in any case by
# these functions, by name.
MAKERS: dict[str, Callable] = {}


def maker(name: str) -> Callable:
    """Registers what computes a primitive that may be given dense tensors only."""

    def register(function: Callable) -> Callable:
        MAKERS[name] = function
        return function

    return register


def arange(count: int) -> Tensor:
    """0, 1, ... count - 1."""
    import rushlight

    return rushlight.arange(count)


def refusing(error: type[Exception], sentence: str) -> Any:
    """A method that raises this; `sentence` may name what the class says of itself, as {kind}."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        names = {name: getattr(self, name) for name in ("kind", "impl", "form") if hasattr(self, name)}
        raise error(sentence.format(**names))

    return refuse


class Unstored(Tensor):
    """What wraps other tensors and is taken for one."""

    __slots__ = ()
    kind: str  # the layout as torch's errors call it
    impl: str  # what torch says has no storage

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__name__ = cls.__qualname__ = "Tensor"
        cls.__module__ = "torch"

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return Tensor

    @property
    def data(self) -> Any:  # type: ignore[override]
        return self.detach()

    def memory(self) -> Tensor:
        """The elements that are held, to be read and written."""
        raise NotImplementedError

    def numbers(self) -> Tensor:
        """The place that each of those has among all elements."""
        raise NotImplementedError

    def with_memory(self, values: Tensor) -> Unstored:
        """The same with other elements there."""
        raise NotImplementedError

    def with_every_element(self) -> Unstored:
        """The same, holding all elements, those too that were not there."""
        raise NotImplementedError

    def reduced(self) -> tuple:
        """The parts by which it is pickled."""
        raise NotImplementedError

    def fit_gradient(self, gradient: Tensor, masked: bool | None) -> Tensor:
        """A dense gradient as this tensor takes it: where it has entries, unless `masked` is False."""
        raise NotImplementedError

    data_ptr = tolist = refusing(RuntimeError, _NO_POINTER)
    storage = untyped_storage = refusing(NotImplementedError, "Cannot access storage of {impl}")
    numpy = __array__ = refusing(
        TypeError, "can't convert {kind} layout tensor to numpy. Use Tensor.to_dense() first."
    )

    def __reduce_ex__(self, protocol: Any) -> Any:
        from rushlight._utils import _rebuild_sparse_tensor

        if self._backward_hooks:
            from rushlight.utils.hooks import warn_if_has_hooks

            warn_if_has_hooks(self)
        if getattr(self, "_is_param", False):
            from collections import OrderedDict

            from rushlight._utils import _rebuild_parameter

            return _rebuild_parameter, (self.detach(), self.requires_grad, OrderedDict())
        return _rebuild_sparse_tensor, (self.layout, self.reduced())

    def __deepcopy__(self, memo: Any) -> Any:
        from copy import deepcopy

        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            return Tensor.__deepcopy__(self, memo)
        copy = self.detach().clone()
        if self.requires_grad:
            _C.requires_grad_(copy, True)
        memo[id(self)] = copy
        if self.grad is not None:
            copy.grad = deepcopy(self.grad, memo)
        for name, value in self.__dict__.items():
            setattr(copy, name, deepcopy(value, memo))
        return copy
