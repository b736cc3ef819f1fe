"""How views were made, for those who ask for it: inside `_force_original_view_tracking(True)` a mode of this
thread writes down the operations, and `Tensor._view_func` can repeat them with other arguments. Views of
classes with a `__torch_dispatch__` are written down always: their geometry tells nothing of what is inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import _C
from rushlight._dispatching import stack
from rushlight._native_names import _is_alias_of
from rushlight._ops import handle_named
from rushlight.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode
from rushlight.utils.weak import WeakIdKeyDictionary

Tensor = _C.Tensor

_steps = WeakIdKeyDictionary()  # view: ((operation, arguments, keywords, number of the output or None) ...)


def _place(view: Tensor) -> tuple:
    """The step that leads to a view when its geometry is all that is known of it."""
    geometry = list(view.shape), list(view.stride()), view.storage_offset()
    return handle_named("as_strided.default"), geometry, {}, None


class _Recorder(TorchDispatchMode):
    every = True  # or only views of those whose steps are known, by their geometry

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        # The values of a new tensor are nobody's view, though its operation may return what it was given.
        fresh = func is handle_named("lift_fresh.default")
        if fresh or not getattr(func, "is_view", False) or not args or not isinstance(args[0], Tensor):
            return made
        if self.every or (args[0]._is_view() and args[0] in _steps):
            write_down(func, args, kwargs or {}, made, self.every)
        return made


def write_down(func: Any, args: Any, kwargs: Any, made: Any, exactly: bool = True) -> None:
    """Remembers the operation that made a view or several, or only where they lie."""
    of, several = args[0], isinstance(made, (list, tuple))
    before = _steps.get(of, ()) if of._is_view() else ()
    if not before and of._is_view():  # made when nobody looked
        before = (_place(of),)
    for number, view in enumerate(made if several else (made,)):
        # What has other memory is no view; an answer becomes one only afterwards.
        if isinstance(view, Tensor) and (_C.dispatches(view) or _is_alias_of(of, view)):
            step = (func, args[1:], kwargs, number if several else None)
            _steps[view] = (*before, step if exactly else _place(view))


def track_views(on: bool, inside: bool = False) -> bool:
    """Whether this thread's views remember how they were made; returns whether they did. Switched off for a
    while inside a block where they do, views of those that remember still know that much."""
    before = _C._set_view_replay_enabled(on)
    modes = stack.modes
    recording = bool(modes) and isinstance(modes[0], _Recorder)
    # The recorder is the outermost mode: what it sees has been through all others.
    if (on or inside) and not recording:
        _push_mode(_Recorder())
        modes.insert(0, modes.pop())
    elif recording and not (on or inside):
        modes.append(modes.pop(0))
        _pop_mode()
    if on or inside:
        modes[0].every = on
    return before


def is_tracked(view: Tensor) -> bool:
    """Whether it is known how this view was made."""
    return view in _steps


def _visited(argument: Any, value: Any, visit_number: Callable | None, visit_tensor: Callable | None) -> Any:
    """An argument as the visitors want it: sizes and offsets one by one, and tensors."""
    if isinstance(value, Tensor):
        return visit_tensor(value) if visit_tensor else value
    if argument.word != "SymInt" or visit_number is None or value is None:
        return value
    return [visit_number(n) for n in value] if isinstance(value, (list, tuple)) else visit_number(value)


def repeated(
    view: Tensor, base: Tensor, visit_number: Callable | None, visit_tensor: Callable | None
) -> Tensor | None:
    """The view again, of another base and with what the visitors make of arguments; None if nobody looked."""
    if view not in _steps:
        return None
    for func, args, kwargs, output in _steps[view]:
        parameters = func._schema.arguments[1:]
        given = dict(zip((parameter.name for parameter in parameters), args), **kwargs)
        values = {
            parameter.name: _visited(
                parameter, given.get(parameter.name, parameter.default), visit_number, visit_tensor
            )
            for parameter in parameters
        }
        base = func(base, **values)
        base = base if output is None else base[output]
    return base
