"""`torch._functorch.pyfunctorch`: the transforms at work as objects, which can be left for a while.

Who decides what an operation of their own means inside a transform (HigherOrderOperator, _higher_order.py) is
given the innermost one, and computes what stands below it within `interpreter.lower()`.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from rushlight import _C
from rushlight.func._stack import (
    CInterpreter,
    TransformType,
    get_interpreter_stack,
    peek_interpreter_stack,
    unwrap_if_dead,
)
from rushlight.func._tensor import Tensor
from rushlight.utils._pytree import tree_map


class _Left:
    """A transform that is not at work for a while, and what was recorded where it began."""

    def __init__(self, about: tuple) -> None:
        self.number, *self.kind = about
        before = _C.set_grad_enabled(True), _C._set_fwd_grad_enabled(True)
        self.grad = _C.below_level(self.number, _C.is_grad_enabled)
        self.forward = _C.below_level(self.number, _C._is_fwd_grad_enabled)
        _C.set_grad_enabled(before[0])
        _C._set_fwd_grad_enabled(before[1])

    def leave(self) -> None:
        _C.pop_level(self.number)

    def come_back(self) -> None:
        """It remembers what is recorded as it begins, so that has to be as it was."""
        before = _C.set_grad_enabled(self.grad), _C._set_fwd_grad_enabled(self.forward)
        _C.push_level(*self.kind, self.number)
        _C.set_grad_enabled(before[0])
        _C._set_fwd_grad_enabled(before[1])


@contextlib.contextmanager
def temporarily_pop_interpreter_stack() -> Iterator[None]:
    """Inside, the innermost transform is not at work."""
    about = _C.top_level()
    if about is None:
        raise AssertionError("no function is being transformed")
    left = _Left(about)
    left.leave()
    try:
        yield
    finally:
        left.come_back()


@contextlib.contextmanager
def temporarily_clear_interpreter_stack() -> Iterator[list[FuncTorchInterpreter]]:
    """Inside, no transform is at work; gives those that were, from the inside out."""
    stack = list(reversed(retrieve_all_functorch_interpreters()))
    left = []
    try:
        while (about := _C.top_level()) is not None:
            left.append(_Left(about))
            left[-1].leave()
        yield stack
    finally:
        for each in reversed(left):
            each.come_back()


class FuncTorchInterpreter(ABC):
    """A transform that is at work."""

    def __init__(self, cptr: CInterpreter) -> None:
        self._cptr = cptr

    @abstractmethod
    def process(self, op: Any, args: tuple, kwargs: dict) -> Any:
        """What the operation is inside this transform."""

    def lower(self) -> Any:
        """Inside, this transform is not at work."""
        return temporarily_pop_interpreter_stack()

    def level(self) -> int:
        """How many are at work up to this one."""
        return self._cptr.level()

    def key(self) -> TransformType:
        """Which transform it is."""
        return self._cptr.key()

    def get_state(self) -> tuple:
        """What tells it from others."""
        raise NotImplementedError

    def check_state(self, state: tuple) -> bool:
        """Whether it is as it was when that was its state."""
        return state == self.get_state()

    def _ask(self, op: Any, args: tuple, kwargs: dict) -> Any:
        kind = self.key()
        return op.functorch_table[kind](self, *args, **kwargs)


class VmapInterpreter(FuncTorchInterpreter):
    """A batch."""

    def process(self, op: Any, args: tuple, kwargs: dict) -> Any:
        return self._ask(op, args, kwargs)

    def batch_size(self) -> int:
        """How many examples it has."""
        return self._cptr._size

    def randomness(self) -> str:
        """What random functions do: "error", "same" or "different"."""
        return self._cptr._randomness

    def get_state(self) -> tuple:
        return self.key().name, self.level(), self.randomness()


class _Recording(FuncTorchInterpreter):
    def __init__(self, cptr: CInterpreter) -> None:
        super().__init__(cptr)
        top = next(about for about in _C.all_levels() if about[0] == cptr._number)
        left = _Left(top)
        self._grad, self._forward = left.grad, left.forward

    def process(self, op: Any, args: tuple, kwargs: dict) -> Any:
        return self._ask(op, args, kwargs)


class GradInterpreter(_Recording):
    """A gradient."""

    @contextlib.contextmanager
    def lower(self) -> Iterator[None]:
        with temporarily_pop_interpreter_stack():
            before = _C.set_grad_enabled(_C.is_grad_enabled() and self._grad)
            try:
                yield
            finally:
                _C.set_grad_enabled(before)

    def prev_grad_mode(self) -> bool:
        """Whether was recorded where it began."""
        return self._grad

    def get_state(self) -> tuple:
        return self.key().name, self.level(), self.prev_grad_mode()


class JvpInterpreter(_Recording):
    """A tangent."""

    @contextlib.contextmanager
    def lower(self) -> Iterator[None]:
        with temporarily_pop_interpreter_stack():
            before = _C._set_fwd_grad_enabled(_C._is_fwd_grad_enabled() and self._forward)
            try:
                yield
            finally:
                _C._set_fwd_grad_enabled(before)

    def prev_fwd_grad_mode(self) -> bool:
        """Whether tangents were carried where it began."""
        return self._forward

    def get_state(self) -> tuple:
        return self.key().name, self.level(), self.prev_fwd_grad_mode()


class FunctionalizeInterpreter(FuncTorchInterpreter):
    """None is ever at work here: `functionalize` is the function itself."""

    def process(self, op: Any, args: tuple, kwargs: dict) -> Any:
        return self._ask(op, args, kwargs)


_CLASSES = {
    TransformType.Grad: GradInterpreter,
    TransformType.Jvp: JvpInterpreter,
    TransformType.Vmap: VmapInterpreter,
}


def coerce_cinterpreter(cinterpreter: CInterpreter) -> FuncTorchInterpreter:
    """The transform with its own methods."""
    if cinterpreter.key() not in _CLASSES:
        raise RuntimeError(f"NYI: PyDispatcher has not implemented support for {cinterpreter.key()}")
    return _CLASSES[cinterpreter.key()](cinterpreter)


def retrieve_current_functorch_interpreter() -> FuncTorchInterpreter:
    """The innermost transform."""
    innermost = peek_interpreter_stack()
    if innermost is None:
        raise AssertionError("interpreter must not be None")
    return coerce_cinterpreter(innermost)


def retrieve_all_functorch_interpreters() -> list[FuncTorchInterpreter]:
    """The transforms at work, from the outside in."""
    return [coerce_cinterpreter(each) for each in get_interpreter_stack() or ()]


def compare_functorch_state(states: list[tuple]) -> bool:
    """Whether the same transforms are at work as when these were their states."""
    stack = retrieve_all_functorch_interpreters()
    return len(stack) == len(states) and all(map(FuncTorchInterpreter.check_state, stack, states))


def dispatch_functorch(op: Any, args: tuple, kwargs: dict) -> Any:
    """What an operation of one's own is inside the innermost transform."""
    args, kwargs = tree_map(lambda x: unwrap_if_dead(x) if isinstance(x, Tensor) else x, (args, kwargs))
    return retrieve_current_functorch_interpreter().process(op, args, kwargs)


@contextlib.contextmanager
def nested(*contexts: Any) -> Iterator[tuple]:
    """All of these contexts, one within the other."""
    with contextlib.ExitStack() as stack:
        yield tuple(map(stack.enter_context, contexts))
