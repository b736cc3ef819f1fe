"""Switching recording on and off: as context manager, as decorator, on generators; per thread."""

from __future__ import annotations

import _thread
import functools
from types import FunctionType

from rushlight import _C
from rushlight._annotations import Any
from rushlight._type_names import type_name

_CO_GENERATOR = 0x20  # of inspect


class _Mode:
    """Shared by all modes: `with mode():` and `@mode()` (each call of the function runs in a fresh mode)."""

    def clone(self) -> _Mode:
        return self.__class__()

    def __call__(self, orig_func: Any) -> Any:
        if isinstance(orig_func, type):
            import warnings

            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should "
                "only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can "
                "directly "
                "decorate the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
            kind = orig_func  # what is returned makes objects of it inside of the mode
            orig_func = lambda *args, **kwargs: kind(*args, **kwargs)  # noqa: E731
        if _makes_generators(orig_func):
            return _wrap_generator(self.clone, orig_func)

        @functools.wraps(orig_func)
        def wrapper(*args, **kwargs):
            with self.clone():
                return orig_func(*args, **kwargs)

        return wrapper


def _makes_generators(function: Any) -> bool:
    """inspect.isgeneratorfunction, without importing `inspect` for the usual case."""
    if isinstance(function, FunctionType):
        return bool(function.__code__.co_flags & _CO_GENERATOR)
    import inspect

    return inspect.isgeneratorfunction(function)


def _wrap_generator(mode, function):
    """The body of the generator runs in the mode; what happens between its steps does not."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        generator = function(*args, **kwargs)
        try:
            with mode():
                response = generator.send(None)
            while True:
                try:
                    request = yield response
                except GeneratorExit:
                    with mode():
                        generator.close()
                    raise
                except BaseException as error:
                    with mode():
                        response = generator.throw(error)
                else:
                    with mode():
                        response = generator.send(request)
        except StopIteration as stop:
            return stop.value

    return wrapper


class _Recording(_C.GradSwitch, _Mode):
    """What records, or does not. Entered by many a training step: native/python/grad_switch.cpp does that."""

    recording: bool
    prev: bool
    takes_none = True

    def __call__(self, orig_func: Any) -> Any:
        derived = type(self) is not no_grad and type(self) is not enable_grad
        if derived or not isinstance(orig_func, FunctionType) or _makes_generators(orig_func):
            return super().__call__(orig_func)
        switch, recording = _C.switch_grad, self.recording

        @functools.wraps(orig_func)
        def wrapper(*args, **kwargs):
            before = switch(recording)
            try:
                return orig_func(*args, **kwargs)
            finally:
                switch(before)

        return wrapper


class no_grad(_Recording):
    """Nothing is recorded inside: results do not require grad.

    >>> x = rushlight.ones(1, requires_grad=True)
    >>> with rushlight.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    recording = False
    takes_none = False
    prev = False


class enable_grad(_Recording):
    """Records again inside a `no_grad` block."""

    recording = True


class set_grad_enabled(_Mode):
    """Switches recording at once, and back at the end if used as a context manager."""

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type_name(mode)}"
            )
        self.mode = mode
        self.prev = _C.switch_grad(mode)

    def __call__(self, orig_func: Any) -> Any:
        _C.switch_grad(self.prev)
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        _C.switch_grad(self.mode)

    def __exit__(self, *error: object) -> None:
        _C.switch_grad(self.prev)

    def clone(self) -> set_grad_enabled:
        return self.__class__(self.mode)

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"


class _InferenceGuard:
    """Inference mode from when this is made to when it is left or forgotten."""

    def __init__(self, mode: bool) -> None:
        self._mode: inference_mode | None = inference_mode(bool(mode))
        self._mode.__enter__()

    def __exit__(self, *error: object) -> None:
        mode, self._mode = getattr(self, "_mode", None), None
        if mode is not None:
            mode.__exit__()

    __del__ = __exit__


def _enter_inference_mode(mode: bool) -> _InferenceGuard:
    """Switches inference mode on or off, until the result goes or is given to `_exit_inference_mode`."""
    return _InferenceGuard(mode)


def _exit_inference_mode(mode: _InferenceGuard) -> None:
    mode.__exit__(None, None, None)


class inference_mode(_Mode):
    """Like no_grad, and the results can never take part in autograd: the cheapest way to only compute."""

    def __new__(cls, mode=True):
        if not isinstance(mode, bool):  # a function to decorate, whatever it is
            return super().__new__(cls)._started(True)(mode)
        return super().__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        self._started(mode)

    def _started(self, mode):
        self.mode = mode
        return self

    def __enter__(self) -> None:
        self._grad = _C.set_grad_enabled(False if self.mode else _C.is_grad_enabled())
        self._inference = _C.set_inference_mode(self.mode)
        if not self.mode:
            _C.set_grad_enabled(True)

    def __exit__(self, *error: object) -> None:
        _C.set_inference_mode(self._inference)
        _C.set_grad_enabled(self._grad)

    def clone(self) -> inference_mode:
        return self.__class__(self.mode)


class _Remembered(_thread._local):
    multithreading = True


_remembered = _Remembered()


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` was last given in this thread."""
    return _remembered.multithreading


def _set_multithreading_enabled(mode: bool) -> bool:
    before, _remembered.multithreading = _remembered.multithreading, mode
    return before


is_view_replay_enabled = _C._is_view_replay_enabled
# Programs that look inside torch ask its native module.
_C._is_multithreading_enabled = is_multithreading_enabled
_C._set_multithreading_enabled = _set_multithreading_enabled


class _Setting(_Mode):
    """A switch that works at once, and is put back at the end if used as a context manager."""

    switch: Any  # sets it and returns what it was
    native_name: str  # in torch's sentence

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(
                f"{self.native_name}(): argument 'enabled' (position 1) must be bool, not {type_name(mode)}"
            )
        self.mode = mode
        self.prev = self.switch(mode)

    def __enter__(self) -> None:
        self.switch(self.mode)

    def __exit__(self, *error: object) -> None:
        self.switch(self.prev)

    def clone(self) -> _Setting:
        return self.__class__(self.mode)

    def __call__(self, orig_func: Any) -> Any:
        self.switch(self.prev)
        return super().__call__(orig_func)


class set_multithreading_enabled(_Setting):
    """Whether backward may use threads of its own. It never does: it runs on the calling thread."""

    switch = staticmethod(_set_multithreading_enabled)
    native_name = "set_multithreading_enabled"
    # As in torch a decorator leaves the switch where it put it, which no other one does.
    __call__ = _Mode.__call__


class _force_original_view_tracking(_Setting):
    """Whether the history of a view repeats its operations after an in-place write, or cuts it out anew."""

    native_name = "set_view_replay_enabled"

    @staticmethod
    def switch(on: bool) -> bool:
        from rushlight.autograd._view_steps import track_views

        return track_views(on)

    def __enter__(self) -> None:
        from rushlight.autograd._view_steps import track_views

        track_views(self.mode, inside=self.prev)


class enforce_grad_layout_policy(_Setting):
    """Whether a gradient must have the layout of its leaf. If not, one of another layout is taken as it is.

    >>> p = rushlight.ones(2, 3).t().requires_grad_()
    >>> with rushlight.autograd.enforce_grad_layout_policy(False):
    ...     (p * rushlight.ones(3, 2)).sum().backward()
    """

    native_name = "set_grad_layout_enforcement_enabled"

    def __init__(self, enable: bool = True) -> None:
        super().__init__(enable)

    @staticmethod
    def switch(on: bool) -> bool:
        before = _C._is_grad_layout_enforcement_enabled()
        _C._set_grad_layout_enforcement_enabled(on)
        return before


class _unsafe_preserve_version_counter:
    """Inside, writes to these tensors are not counted: autograd does not notice them."""

    def __init__(self, tensors: Any) -> None:
        if not isinstance(tensors, (_C.Tensor, tuple)):
            raise AssertionError("Expected tensors to be a tuple")
        self.tensors = (tensors,) if isinstance(tensors, _C.Tensor) else tensors
        self.versions = tuple(tensor._version for tensor in self.tensors)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        for tensor, version in zip(self.tensors, self.versions, strict=True):
            _C.set_version(tensor, version)
