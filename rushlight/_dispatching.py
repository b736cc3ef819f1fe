"""Asking `__torch_dispatch__`: of the modes of a thread, and of the classes of arguments.

The native core hands primitives to `handle` (native/python/dispatch_mode.cpp). What is not made of primitives
(factories, `item`, `zero_`) is caught in front: while somebody may be asked at all, other functions stand in
for those (`intercept`). Below, nothing is recorded: what a handler calls computes only.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any

from rushlight import _C
from rushlight._ops import _dispatching, handle_named, handle_of, namespace
from rushlight._size import Size
from rushlight.overrides import _method_of_mode

Tensor = _C.Tensor


class _Stack(threading.local):
    """The modes that are active in this thread, innermost last."""

    def __init__(self) -> None:
        self.modes: list[Any] = []
        self.entered: list[Any] = []  # by `with`, those too that are just being asked


stack = _Stack()


def show_modes() -> None:
    """Tells the native core whether this thread has a mode."""
    _C.set_dispatch_mode(bool(stack.modes))


def _overriding(values: Any, found: list[Any]) -> list[Any]:
    """One tensor of each class that is to be asked, subclasses before their bases."""
    for value in values:
        if isinstance(value, (tuple, list)):
            _overriding(value, found)
        elif _C.dispatches(value) and not any(type(value) is type(other) for other in found):
            at = next((i for i, other in enumerate(found) if isinstance(value, type(other))), len(found))
            found.insert(at, value)
    return found


def ask(handle: Any, args: tuple, kwargs: dict, call: tuple | None = None) -> Any:
    """The answer to a call: of the innermost mode, else of the classes of the arguments. Sparse tensors pass
    for plain ones: nobody sees their class, and their kernel answers if nobody else does."""
    args = tuple(list(value) if type(value) is Size else value for value in args)  # sizes are lists there
    overriding = _overriding((*args, *kwargs.values()), [])
    types = tuple(type(value) for value in overriding if not _is_own(value))
    if not types and not stack.modes and overriding:
        from rushlight._sparse.table import run_named

        return run_named(handle, args, kwargs)
    before = _dispatching.calls
    _dispatching.calls = (*before, (handle, *(call or (None, None))))
    asked = []
    try:
        if stack.modes:
            mode = stack.modes.pop()
            show_modes()
            try:
                result = _method_of_mode(mode, "__torch_dispatch__")(handle, types, args, kwargs)
            finally:
                stack.modes.append(mode)
                show_modes()
            if result is not NotImplemented:
                return result
            asked.append(f"  - mode object {mode!r}")
        for kind in types:
            result = kind.__torch_dispatch__(handle, types, args, kwargs)
            if result is not NotImplemented:
                return result
            asked.append(f"  - tensor subclass {kind}")
        if not asked and REPLACED:
            return _run_kernel(handle, args, kwargs)
    finally:
        _dispatching.calls = before
    from rushlight.overrides import _Unanswered

    raise _Unanswered(
        f"Multiple dispatch failed for 'torch._ops.{handle}'; all __torch_dispatch__ handlers returned "
        "NotImplemented:\n\n" + "\n".join(asked) + "\n\n"
        "For more information, try re-running with TORCH_LOGS=not_implemented"
    )


# The functions that torch.library has put in the place of kernels, by overload, the newest last.
REPLACED: dict[Any, list[Callable]] = {}


def replace_kernel(handle: Any, function: Callable) -> None:
    """Lets `function` run in the place of the CPU's kernel of an operation."""
    import rushlight.utils._python_dispatch  # noqa: F401  (tells the native core whom to ask)

    REPLACED.setdefault(handle, []).append(function)
    _C.replace_kernels(True)


def restore_kernel(handle: Any, function: Callable) -> None:
    """Takes such a function back."""
    REPLACED[handle].remove(function)
    if not REPLACED[handle]:
        del REPLACED[handle]
    if not REPLACED:
        _C.replace_kernels(False)


def _run_kernel(handle: Any, args: tuple, kwargs: dict) -> Any:
    if handle in REPLACED:
        return REPLACED[handle][-1](*args, **kwargs)
    return run_kernel(handle, args, kwargs)


def run_kernel(handle: Any, args: tuple, kwargs: dict) -> Any:
    """Runs the kernel of an operation, whatever has been put in its place."""
    before = _C.run_kernels(True)
    try:
        return handle(*args, **kwargs)
    finally:
        _C.run_kernels(before)


def _is_own(x: Any) -> bool:
    """Whether a tensor is sparse itself: one of a level that stands for another goes the way of levels."""
    return _C.is_any_sparse(x) and not _C.is_leveled(x)


def _plain(primitive: Any, args: tuple, out: Any) -> bool:
    """Whether nobody is to be asked but the kernels of sparse tensors."""
    overriding = _overriding(args, [])
    if REPLACED and (not overriding or handle_of(primitive, out is not None) in REPLACED):
        return False
    return all(map(_is_own, overriding))


def handle(primitive: Any, args: tuple, out: Any) -> Any:
    """Asks about a primitive; called by the native code."""
    from rushlight import _aten_calls, _aten_layers

    name = primitive.__name__
    if not stack.modes and _plain(primitive, args, out):
        from rushlight._sparse.table import run

        return run(primitive, args, out)
    if out is None and name in _aten_calls.COMPOSED:
        result = _aten_calls.COMPOSED[name](*args)
        if result is not NotImplemented:
            return result
    if name == "div" and out is None and not isinstance(args[0], Tensor):
        return args[1].reciprocal() * args[0]
    in_transposed = name == "convolution" and _C.rule_of() == "conv_transpose"
    if in_transposed or name in ("conv_input_gradient", "conv_weight_gradient"):
        which, given = _aten_layers.convolution_part(name, args)
        return ask(handle_named("convolution_backward.default"), given, {})[which]
    shown = _aten_calls.shown(primitive, args, out is not None)
    if shown is None:
        asked, given, options = handle_of(primitive, out is not None), args, dict[str, Any]()
        made = ask(asked, given, options, (primitive, out, True))
    else:
        asked, (given, options) = handle_named(shown[0]), shown[1:]
        made = ask(asked, given, options, (primitive, out))
    if asked.is_view and _C.dispatches(args[0]):
        from rushlight.autograd._view_steps import write_down

        write_down(asked, given, options, made)
    return made


def detach(tensor: Tensor) -> Tensor:
    """Asks about `tensor.detach()`; called by the native code."""
    return ask(handle_named("detach.default"), (tensor,), {})


def item(tensor: Tensor) -> Any:
    """Asks about `tensor.item()`; called by the native code."""
    return ask(handle_named("_local_scalar_dense.default"), (tensor,), {})


def any_nan(tensor: Tensor) -> bool:
    """Whether a gradient that somebody is asked about has a NaN; called in anomaly mode."""
    before = _C.set_grad_enabled(False)
    try:
        found = _C.below_autograd(ask, handle_named("_is_any_true.default"), (tensor.isnan(),), {})
        return bool(found.item())
    finally:
        _C.set_grad_enabled(before)


def view_dtype(tensor: Tensor, dtype: Any) -> Tensor:
    """Asks about `tensor.view(dtype)`; called by the native code."""
    return _C.below_autograd(ask, handle_named("view.dtype"), (tensor, dtype), {})


def own_gradient(grad: Tensor, leaf: Tensor) -> Tensor:
    """A copy of a gradient that lies as its leaf does; called by the native code."""
    if _C.is_grad_enabled() or _C.is_any_sparse(grad) or grad.is_nested:
        return grad.clone()
    options = {"dtype": grad.dtype, "layout": grad.layout, "device": grad.device}
    place = list(leaf.shape), list(leaf.stride())
    own = ask(handle_named("new_empty_strided.default"), (grad, *place), options)
    return own.copy_(grad)


def take_sparse(grad: Any) -> Tensor:
    """A sparse gradient that nobody else holds, for a leaf; called by the native code. As in torch it is no
    longer known to be coalesced."""
    from rushlight._sparse.tensor import with_values

    indices, values, _ = grad.parts
    if not (indices.is_contiguous() and values.is_contiguous()):
        return grad.clone()
    return with_values(grad, values, False)


@functools.cache
def _takes_out(function: Any) -> bool:
    parameters = inspect.signature(function.__wrapped__).parameters
    return "out" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def ask_out(function: Any, args: tuple, kwargs: dict) -> Any:
    """Asks about a call with `out=`; called by the native code."""
    from rushlight._outputs import check
    from rushlight.ops._public import write_out

    if not _takes_out(function):
        raise TypeError(f"{function.__name__}() got an unexpected keyword argument 'out'")
    sparse = not stack.modes and all(map(_is_own, _overriding((*args, *kwargs.values()), [])))
    if not sparse:
        check(function, args, kwargs)
    out = kwargs["out"]
    kwargs = {name: value for name, value in kwargs.items() if name != "out"}
    if sparse:
        return write_out(out, function(*args, **kwargs), writer=function.__name__)
    packet = getattr(namespace("aten"), function.__name__, None)
    with _C_no_grad():
        if packet is None or "out" not in packet.overloads():
            return out.copy_(function(*args, **kwargs))
        version = None if out.is_inference() else out._version
        ask(packet.out, args, {**kwargs, "out": out})
        if version is not None:  # it is one write, whoever was asked
            _C.set_version(out, version)
    return _C.note_write(out)


def _turned(dim0: int, dim1: int) -> tuple:
    return "transpose_.default", (dim0, dim1)


_IN_PLACE_VIEWS: dict[str, Callable] = {
    "squeeze": lambda dim=None: (
        ("squeeze_.default", ())
        if dim is None
        else ("squeeze_.dim", (dim,))
        if isinstance(dim, int)
        else ("squeeze_.dims", (list(dim),))
    ),
    "unsqueeze": lambda dim: ("unsqueeze_.default", (dim,)),
    "transpose": _turned,
    "swapdims": _turned,
    "swapaxes": lambda axis0, axis1: _turned(axis0, axis1),
    "t": lambda: ("t_.default", ()),
    "as_strided": lambda size, stride, storage_offset=None: (
        "as_strided_.default",
        (list(size), list(stride), *([] if storage_offset is None else [storage_offset])),
    ),
}


def ask_in_place_view(name: str, view: Callable, tensor: Tensor, args: tuple, kwargs: dict) -> Tensor:
    """Asks about squeeze_() and its kin. The tensor then has the sizes and the history of the view, whether
    whoever was asked changed it or what it stands for."""
    if not _wanted((tensor,), {}):  # kernels have been replaced, that is all
        return _C.become_view(tensor, view(tensor, *args, **kwargs))
    if _C.is_leveled(tensor):
        seen = view(tensor, *args, **kwargs)
        _C.become_value_of(tensor, seen)
        return _C.become_view(tensor, seen)
    modes, classes = _C.set_dispatch_mode(False), _C.set_dispatch_disabled(True)
    try:
        seen = view(tensor, *args, **kwargs)
    finally:
        _C.set_dispatch_mode(modes)
        _C.set_dispatch_disabled(classes)
    version = None if tensor.is_inference() else tensor._version
    overload, given = _IN_PLACE_VIEWS[name](*args, **kwargs)
    _C.below_autograd(ask, handle_named(overload), (tensor, *given), {})
    if version is not None:
        _C.set_version(tensor, version)
    return _C.become_view(tensor, seen)


def is_tensor_constructor(func: Any) -> bool:
    """Whether an operation makes tensors out of nothing."""
    name = func.__name__.partition(".")[0]
    return name in _SHOWN and not name.endswith(("_like", "equal")) and not name.startswith("new_")


# ---- functions that are not made of primitives


def _wanted(args: tuple, kwargs: dict) -> bool:
    return bool(stack.modes) or any(map(_C.dispatches, args)) or any(map(_C.dispatches, kwargs.values()))


def _looks_on(args: tuple, kwargs: dict) -> bool:
    """The same, where what is not of torch.func is to see torch's operations: those of its levels compute."""
    values = (*args, *kwargs.values())
    return bool(stack.modes) or any(_C.dispatches(x) and not _C.is_leveled(x) for x in values)


def _options(kwargs: dict, like: bool) -> dict:
    """The keywords of a factory as torch passes them on."""
    import rushlight
    from rushlight._taken_apart import rule_of

    shown: dict = {}
    if kwargs.get("generator") is not None:
        shown["generator"] = kwargs["generator"]
    if kwargs.get("dtype") is not None:
        shown["dtype"] = kwargs["dtype"]
    if kwargs.get("layout") is not None:
        shown["layout"] = kwargs["layout"]
    device = kwargs.get("device")
    if device is not None or not like:
        shown["device"] = rushlight.device(device if device is not None else rushlight.get_default_device())
    if rule_of() is None:  # a derivative's formula says what it needs and no more
        shown["pin_memory"] = bool(kwargs.get("pin_memory"))
    if kwargs.get("memory_format") is not None:
        shown["memory_format"] = kwargs["memory_format"]
    return shown


def _sizes(args: tuple, kwargs: dict) -> list:
    if "size" in kwargs:
        args = (kwargs["size"],)
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = tuple(args[0])
    return list(args)


def _sized(overload: str) -> Callable:
    return lambda args, kwargs: (overload, (_sizes(args, kwargs),), _options(kwargs, False))


def _of_like(name: str, values: int = 0) -> Callable:
    def show(args, kwargs):
        given = [*args]
        names = ("input", "self", "fill_value")[: 2 + values]
        given.extend(kwargs[name] for name in names if name in kwargs)
        return f"{name}.default", tuple(given), _options(kwargs, True)

    return show


def _of_new(name: str, values: int = 0) -> Callable:
    def show(args, kwargs):
        self, *rest = args
        if values:
            size = rest[0] if rest else kwargs["size"]
            value = rest[1] if len(rest) > 1 else kwargs["fill_value"]
            return f"{name}.default", (self, list(size), value), _options(kwargs, True)
        return f"{name}.default", (self, _sizes(tuple(rest), kwargs)), _options(kwargs, True)

    return show


def _positional(*names: str) -> Callable:
    """Arguments that may be given by name, in torch's order."""

    def read(args: tuple, kwargs: dict) -> tuple:
        return (*args, *(kwargs[name] for name in names[len(args) :] if name in kwargs))

    return read


def _arange(args, kwargs):
    values = list(args) + [kwargs[name] for name in ("start", "end", "step") if name in kwargs]
    overload = ("default", "start", "start_step")[min(len(values), 3) - 1]
    return f"arange.{overload}", tuple(values), _options(kwargs, False)


def _randint(args, kwargs):
    values = [*args, *(kwargs[name] for name in ("low", "high", "size") if name in kwargs)]
    *bounds, size = values
    if len(bounds) == 1:
        return "randint.default", (bounds[0], list(size)), _options(kwargs, False)
    return "randint.low", (*bounds, list(size)), _options(kwargs, False)


def _fixed(overload: str, *names: str) -> Callable:
    read = _positional(*names)
    return lambda args, kwargs: (overload, read(args, kwargs), _options(kwargs, False))


def _eye(args, kwargs):
    values = _positional("n", "m")(args, kwargs)
    return "eye.default" if len(values) == 1 else "eye.m", values, _options(kwargs, False)


def _empty_strided(args, kwargs):
    size, stride = _positional("size", "stride")(args, kwargs)
    return "empty_strided.default", (list(size), list(stride)), _options(kwargs, False)


def _full(args, kwargs):
    size, value = _positional("size", "fill_value")(args, kwargs)
    return "full.default", (list(size), value), _options(kwargs, False)


_SHOWN: dict[str, Callable] = {
    "empty": _sized("empty.memory_format"), "ones": _sized("ones.default"), "zeros": _sized("zeros.default"),
    "rand": _sized("rand.default"), "randn": _sized("randn.default"), "full": _full, "arange": _arange,
    "linspace": _fixed("linspace.default", "start", "end", "steps"), "eye": _eye, "randint": _randint,
    "logspace": _fixed("logspace.default", "start", "end", "steps"),
    "randperm": _fixed("randperm.default", "n"), "empty_strided": _empty_strided,
    "scalar_tensor": _fixed("scalar_tensor.default", "s"),
    "zeros_like": _of_like("zeros_like"), "ones_like": _of_like("ones_like"),
    "empty_like": _of_like("empty_like"), "rand_like": _of_like("rand_like"),
    "randn_like": _of_like("randn_like"), "full_like": _of_like("full_like", 1),
    "new_empty": _of_new("new_empty"), "new_zeros": _of_new("new_zeros"), "new_ones": _of_new("new_ones"),
    "new_full": _of_new("new_full", 1),
    "equal": lambda args, kwargs: ("equal.default", args, {}),
}  # fmt: skip
_LIFTED = ("tensor", "as_tensor", "from_numpy")
_REFUSED = {"tolist": ".tolist() is not supported for tensor subclasses, got {}",
            "numpy": ".numpy() is not supported for tensor subclasses."}  # fmt: skip


def _catching(name: str, original: Any) -> Callable:
    show = _SHOWN[name]

    def caught(*args, **kwargs):
        if kwargs.get("out") is not None or not _wanted(args, kwargs):
            return original(*args, **kwargs)
        overload, given, options = show(args, kwargs)
        handle = handle_named(overload)
        result = _C.below_autograd(ask, handle, given, options)
        returns = handle._declared.returns if handle._declared else ()
        if [one.declared for one in returns] == ["Tensor"] and not isinstance(result, (Tensor, type(None))):
            raise RuntimeError(f"Unable to cast {result!s} to Tensor")
        return _C.requires_grad_(result, True) if kwargs.get("requires_grad") else result

    return caught


def _lifting(original: Any) -> Callable:
    def caught(*args, **kwargs):
        if not stack.modes:
            return original(*args, **kwargs)
        modes, stack.modes = stack.modes, []
        show_modes()
        try:
            made = original(*args, **kwargs)
        finally:
            stack.modes = modes
            show_modes()
        if any(made is value for value in args):
            return made
        grad = made.requires_grad and made.is_leaf
        given = (made.detach_() if grad else made,)
        made = _C.below_autograd(ask, handle_named("lift_fresh.default"), given, {})
        return _C.requires_grad_(made, True) if grad else made

    return caught


def _refusing(name: str, original: Any) -> Callable:
    def caught(self, *args, **kwargs):
        if _C.dispatches(self):
            raise RuntimeError(_REFUSED[name].format(type(self).__name__))
        return original(self, *args, **kwargs)

    return caught


class _C_no_grad:
    def __enter__(self) -> None:
        self.before = _C.set_grad_enabled(False)

    def __exit__(self, *error: object) -> None:
        _C.set_grad_enabled(self.before)


@functools.cache
def intercept() -> None:
    """Tells the functions above what they are while somebody may be asked."""
    from rushlight._seen._whole import ROWS, catching
    from rushlight.nn import functional
    from rushlight.ops._public import FUNCTIONS

    makers: dict[str, Callable] = {name: lambda o, name=name: _catching(name, o) for name in _SHOWN}
    makers.update(dict.fromkeys(_LIFTED, _lifting))
    makers.update({name: lambda o, name=name: _refusing(name, o) for name in _REFUSED})
    makers.update({name: lambda o, name=name: catching(name, o, _looks_on) for name in ROWS})
    for name, maker in makers.items():
        for function in (FUNCTIONS.get(name), vars(Tensor).get(name), vars(functional).get(name)):
            if isinstance(function, _C.Function) and function.while_watched is None:
                function.while_watched = maker(function.__wrapped__)
