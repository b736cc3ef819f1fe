"""torch.futures: a value that some thread will set."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(Generic[T]):
    """A value to come. `wait` waits for it, `then` goes on with it.

    >>> future = rushlight.futures.Future()
    >>> doubled = future.then(lambda f: 2 * f.value())
    >>> future.set_result(21)
    >>> doubled.wait()
    42
    """

    def __init__(self, *, devices: list | None = None) -> None:
        if devices:
            raise NotImplementedError("Future(devices=...) is not implemented: there is one device")
        self._lock = threading.Condition()
        self._done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self._done

    def wait(self) -> T:
        """Waits for the result; raises the error if there is one instead."""
        with self._lock:
            self._lock.wait_for(lambda: self._done)
        return self.value()

    def value(self) -> T:
        """The result, which must be there."""
        if not self._done:
            raise RuntimeError("Future has not been completed: call wait() first")
        if self._error is not None:
            raise self._error
        return self._result

    def set_result(self, result: T) -> None:
        """Completes the future."""
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Completes the future with an error, which `wait` raises."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, result: Any, error: BaseException | None) -> None:
        with self._lock:
            if self._done:
                raise RuntimeError("Future can only be marked completed once")
            self._result, self._error, self._done = result, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._lock.notify_all()
        for callback in callbacks:
            callback(self)

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Calls `callback` with this future once it is complete."""
        with self._lock:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """A future of what `callback` returns for this one."""
        following: Future[Any] = Future()

        def go_on(future: Future[T]) -> None:
            try:
                result = callback(future)
            except Exception as error:
                following.set_exception(error)
            else:
                following.set_result(result)

        self.add_done_callback(go_on)
        return following


def collect_all(futures: list[Future]) -> Future[list[Future]]:
    """A future of the list itself, complete when all in it are.

    >>> a, b = rushlight.futures.Future(), rushlight.futures.Future()
    >>> both = rushlight.futures.collect_all([a, b])
    >>> a.set_result(1); b.set_result(2)
    >>> [future.value() for future in both.wait()]
    [1, 2]
    """
    together: Future[list[Future]] = Future()
    waiting = len(futures)
    lock = threading.Lock()

    def one_is_done(future: Future) -> None:
        nonlocal waiting
        with lock:
            waiting -= 1
            last = waiting == 0
        if last:
            together.set_result(futures)

    if not futures:
        together.set_result(futures)
    for future in futures:
        future.add_done_callback(one_is_done)
    return together


def wait_all(futures: list[Future]) -> list:
    """Waits for all and returns their results."""
    return [future.wait() for future in collect_all(futures).wait()]
