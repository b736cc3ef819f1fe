"""Trading time for memory: run a function without keeping what its backward needs, and again when it does.

Without reentrance (`use_reentrant=False`, the form to prefer) the saved values of the function's operations
go through saved-tensor hooks: each is replaced by a `_Holder`, and the first one that backward asks for runs
the function again, which fills all of them (`_CheckpointFrame`). With reentrance the function is one
`CheckpointFunction`, whose backward runs it again and differentiates that.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from rushlight import _C
from rushlight._warn import warn
from rushlight.autograd import backward, enable_grad, graph, no_grad
from rushlight.autograd._native_names import _get_graph_exec_group, _set_graph_exec_group
from rushlight.autograd.function import Function
from rushlight.random import get_rng_state, set_rng_state
from rushlight.utils._operator_log import OperatorLog
from rushlight.utils._python_dispatch import _disable_current_modes
from rushlight.utils._selective_checkpoint import (
    _CONSUMED,  # noqa: F401  (programs look at what is kept)
    _RECOMPUTE,  # noqa: F401
    _SAC_MISMATCH_MSG,  # noqa: F401
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    _CachedTorchDispatchMode,  # noqa: F401  (and ask for the mode they are in)
    _CachingTorchDispatchMode,  # noqa: F401
    _is_compiling,  # noqa: F401
    _policy_from_bool,  # noqa: F401
    _sac_storage_key,  # noqa: F401
    _VersionWrapper,  # noqa: F401
    create_selective_checkpoint_contexts,
)

__all__ = [
    "checkpoint", "checkpoint_sequential", "CheckpointError", "CheckpointFunction", "check_backward_validity",
    "detach_variable", "get_device_states", "set_device_states", "noop_context_fn",
    "set_checkpoint_early_stop", "DefaultDeviceType", "set_checkpoint_debug_enabled", "CheckpointPolicy",
    "SelectiveCheckpointContext", "create_selective_checkpoint_contexts", "SAC_IGNORED_OPS",
    "GraphExecGroup",
]  # fmt: skip

_DEFAULT_DETERMINISM_MODE = "default"
_enable_checkpoint_early_stop: bool | None = None
_checkpoint_debug_enabled: bool | None = None


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function did not save what the first did."""


class DefaultDeviceType:
    """The kind of device whose random state is kept besides the CPU's."""

    _type = "cpu"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Sets the kind of device."""
        DefaultDeviceType._type = device

    @staticmethod
    def get_device_type() -> str:
        """The kind of device."""
        return DefaultDeviceType._type


def detach_variable(inputs: tuple) -> tuple:
    """The same values cut off their graph, each requiring grad if it did."""
    if not isinstance(inputs, tuple):
        raise RuntimeError("Only tuple of tensors is supported. Got Unsupported input type: "
                           f"{type(inputs).__name__}")  # fmt: skip
    return tuple(
        _C.requires_grad_(x.detach(), x.requires_grad) if isinstance(x, _C.Tensor) else x for x in inputs
    )


def _detach_helper(x: Any) -> Any:
    return x.detach() if isinstance(x, _C.Tensor) else x


def _get_device_module(device: str = "cuda") -> Any:
    """The module of a kind of device; of "meta" there is none, and its name is returned."""
    import rushlight

    return rushlight.device("meta") if device == "meta" else getattr(rushlight, device)


def _get_autocast_kwargs(device_type: str = "cuda") -> tuple[dict, dict]:
    """What autocast is set to, for a kind of device and for the CPU."""
    from rushlight.amp import autocast_mode as mode

    def present(kind: str) -> dict:
        return {
            "enabled": mode.is_autocast_enabled(kind),
            "dtype": mode.get_autocast_dtype(kind),
            "cache_enabled": mode.is_autocast_cache_enabled(),
        }

    return present(device_type), present("cpu")


def check_backward_validity(inputs: Any) -> None:
    """Warns if no input requires grad: a reentrant checkpoint then passes no gradient on."""
    if not any(isinstance(x, _C.Tensor) and x.requires_grad for x in inputs):
        warn("None of the inputs have requires_grad=True. Gradients will be None")


def _infer_device_type(*args: Any) -> str:
    """The kind of device that the tensors among nested arguments are on."""
    from rushlight.utils._pytree import tree_leaves

    kinds = {x.device.type for x in tree_leaves(args) if isinstance(x, _C.Tensor)} - {"cpu"}
    if len(kinds) > 1:
        warn(
            "Tensor arguments, excluding CPU tensors, are detected on at least two types of devices. Device "
            "state will only be saved for devices of a single device type, and the remaining devices will be "
            "ignored. Consequently, if any checkpointed functions involve randomness, this may result in "
            "incorrect gradients. (Note that if CUDA devices are among the devices detected, it will be "
            "prioritized; otherwise, the first device encountered will be selected.)"
            f"\nDevice types: {sorted(kinds)} first device type: {min(kinds)}"
        )
    return "cuda" if "cuda" in kinds else min(kinds, default=DefaultDeviceType.get_device_type())


def get_device_states(*args: Any) -> tuple[list[int], list]:
    """The random states of the devices of these tensors; the CPU's is kept apart."""
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Puts back what `get_device_states` gave."""


class _Random:
    """Runs a block with the random state there was when this was made, and the present one afterwards."""

    def __init__(self, keep: bool) -> None:
        self.state = get_rng_state() if keep else None

    @contextlib.contextmanager
    def again(self):
        if self.state is None:
            yield
            return
        present = get_rng_state()
        set_rng_state(self.state)
        try:
            yield
        finally:
            set_rng_state(present)


def _present_autocast() -> Callable:
    """Makes contexts in which autocast is as it is now."""
    mode = sys.modules.get("rushlight.amp.autocast_mode")
    if mode is None:  # nobody has used it yet
        return contextlib.nullcontext
    dtype, enabled = mode.get_autocast_dtype("cpu"), mode.is_autocast_enabled("cpu")
    cache = mode.is_autocast_cache_enabled()
    if not enabled:
        return lambda: mode.autocast("cpu", enabled=False) if mode.is_autocast_enabled("cpu") else _nothing
    return lambda: mode.autocast("cpu", dtype=dtype, enabled=True, cache_enabled=cache)


_nothing = contextlib.nullcontext()


class GraphExecGroup:
    """Inside, several backward calls over different parts of a graph run a checkpoint again only once.

    >>> import rushlight.utils.checkpoint
    >>> x = rushlight.ones(2, requires_grad=True)
    >>> a, b = rushlight.utils.checkpoint.checkpoint(lambda x: (x.exp(), x.sin()), x, use_reentrant=False)
    >>> with rushlight.utils.checkpoint.GraphExecGroup():
    ...     a.sum().backward(retain_graph=True)
    ...     b.sum().backward()
    """

    _run: object  # stands for the backward that several calls are together
    _frames: weakref.WeakSet

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphExecGroup:  # derived classes need not call __init__
        group = super().__new__(cls)
        group._run, group._frames = object(), weakref.WeakSet()
        return group

    def __enter__(self) -> GraphExecGroup:
        current = _get_graph_exec_group()
        if current is not None:
            raise RuntimeError(f"GraphExecGroup contexts cannot be nested. Already inside group {current}")
        _set_graph_exec_group(self)
        return self

    def __exit__(self, *error: object) -> None:
        _set_graph_exec_group(None)

    def __del__(self) -> None:
        for frame in self._frames:
            frame.forget(self._run)

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return _get_graph_exec_group()


class CheckpointFunction(Function):
    """The reentrant form: backward runs the function again and differentiates that."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.random = _Random(preserve_rng_state)
        ctx.autocast = _present_autocast()
        ctx.places = [i for i, arg in enumerate(args) if isinstance(arg, _C.Tensor)]
        ctx.inputs = [None if isinstance(arg, _C.Tensor) else arg for arg in args]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *args):
        if not _C.all_runs_accumulate():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an "
                "`inputs` parameter to .backward(). To resolve this error, you can either set "
                "use_reentrant=False, or call .backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[place] = tensor
        inputs = detach_variable(tuple(inputs))
        with ctx.random.again(), ctx.autocast(), enable_grad():
            outputs = ctx.run_function(*inputs)
        if isinstance(outputs, _C.Tensor):
            outputs = (outputs,)
        pairs = [
            (output, grad)
            for output, grad in zip(outputs, args, strict=False)
            if isinstance(output, _C.Tensor) and output.requires_grad
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([output for output, _ in pairs], [grad for _, grad in pairs])
        return (None, None, *(x.grad if isinstance(x, _C.Tensor) else None for x in inputs))


def noop_context_fn() -> tuple:
    """The contexts of a checkpoint that needs none."""
    return contextlib.nullcontext(), contextlib.nullcontext()


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool):
    """Whether the checkpoints called inside stop their second run once everything needed is there."""
    global _enable_checkpoint_early_stop
    before, _enable_checkpoint_early_stop = _enable_checkpoint_early_stop, enable
    try:
        yield
    finally:
        _enable_checkpoint_early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None):
    """Whether the checkpoints called inside explain a mismatch in detail; None leaves it to them."""
    global _checkpoint_debug_enabled
    before, _checkpoint_debug_enabled = _checkpoint_debug_enabled, enabled
    try:
        yield
    finally:
        _checkpoint_debug_enabled = before


# ---- without reentrance


class _Handle:
    """The value of a holder in one run."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class _Holder:
    """Stands in a node for a saved value, which runs that compute it again put here until it is taken."""

    __slots__ = ("__weakref__", "handles")

    def __init__(self) -> None:
        self.handles: dict[Any, _Handle | None] = {}


def _internal_assert(cond: Any) -> None:
    """Raises unless `cond`: what a frame knows of itself does not fit together."""
    if not cond:
        raise AssertionError(
            "Something went unexpectedly wrong in activation checkpoint. Please report this bug with the "
            "program that led to it."
        )


class _StopRecomputationError(Exception):
    """Everything is there: the rest of the function need not run."""


class _SaveInputs(Function):
    """Keeps a checkpoint's arguments the way saved values are kept, so that an outer checkpoint's hooks
    hold them too."""

    @staticmethod
    def forward(ctx, anchor, *tensors):
        ctx.save_for_backward(*tensors)
        return anchor.detach()

    @staticmethod
    def backward(ctx, grad):
        raise AssertionError("this node is not part of the graph")


_READ_TWICE = (
    "If you are calling ctx.saved_tensors in backward, make sure to do so only once. Otherwise please open "
    "an issue with details on your use case."
)
_OVERLAP = (
    "Performing two backward calls that overlap (i.e. require the same saved activation in order to compute "
    "gradients) is not allowed while under the torch.utils.checkpoint.GraphExecGroup context. "
)


def _default_meta_extractor(x: Any) -> dict:
    """What a value that is saved again must have in common with the first one."""
    return {"shape": x.shape, "dtype": x.dtype, "device": x.device}


# What is compared, by the name that `determinism_check` gives.
_allowed_determinism_checks_to_fns: dict[str, Callable] = {
    _DEFAULT_DETERMINISM_MODE: _default_meta_extractor,
    "none": lambda _: None,
}
_debug_tip_msg = """
Tip: To see a more detailed error message, either pass `debug=True` to
`torch.utils.checkpoint.checkpoint(...)` or wrap the code block
with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to
see which operations saved what.
"""


class _CheckpointFrame:
    """One call of a checkpointed function: how to run it again, and the values it saved the first time."""

    def __init__(
        self,
        recompute_fn: Callable,
        early_stop: bool,
        unpack_error_cb: Callable | None,
        metadata_fn: Callable,
    ) -> None:
        self.recompute_fn, self.early_stop = recompute_fn, early_stop
        self.unpack_error_cb, self.metadata_fn = unpack_error_cb, metadata_fn
        self.saved_args: list = []  # those that are no tensors, at their places
        self.forward_completed = False
        self.ignore_saved_mismatch = False  # a second run began before that, so that it may save more
        self.weak_holders: list = []  # a value that no node needs any more is not computed again
        self.x_metadatas: list = []  # what `metadata_fn` said of each value
        self.recomp_counter: dict[Any, int] = defaultdict(int)  # how many values each run saved so far
        self._again: list = []  # what `metadata_fn` says of the values of the last second run

    def save_inputs(self, *args: Any) -> None:
        """Keeps the arguments of the function, tensors as nodes keep theirs."""
        tensors = [arg for arg in args if isinstance(arg, _C.Tensor)]
        self.saved_args = [None if isinstance(arg, _C.Tensor) else arg for arg in args]
        self._places = [i for i, arg in enumerate(args) if isinstance(arg, _C.Tensor)]
        anchor = _C.requires_grad_(_C.empty((0,), _C.float32, None), True)
        carrying = _C.set_forward_mode(False)
        try:
            with _disable_current_modes():
                self._saved = _SaveInputs.apply(anchor, *tensors).grad_fn
        finally:  # a second run may end here, as soon as it has all it needs
            _C.set_forward_mode(carrying)

    def get_inputs(self) -> list:
        """The arguments that `save_inputs` was given."""
        args = list(self.saved_args)
        for place, tensor in zip(self._places, self._saved.saved_tensors, strict=True):
            args[place] = tensor
        return args

    def _recompute(self, gid: Any, group: GraphExecGroup | None) -> None:
        args = self.get_inputs()
        self.recomp_counter[gid], self._again = 0, []
        if group:
            group._frames.add(self)
        elif isinstance(gid, int):
            _C.call_when_done(lambda: self.forget(gid))
        stop = contextlib.suppress(_StopRecomputationError)
        with stop, _recomputation_hook(weakref.ref(self), gid), enable_grad():
            self.recompute_fn(*args)
        self.check_recomputed_tensors_match(gid)

    def forget(self, gid: Any) -> None:
        """Lets go of what a run with retain_graph=True has left."""
        for reference in self.weak_holders:
            holder = reference()
            if holder is not None:
                holder.handles.pop(gid, None)
        self.recomp_counter.pop(gid, None)

    def check_recomputed_tensors_match(self, gid: Any) -> None:
        """Raises unless the second run for `gid` saved what the first one did."""
        if self.ignore_saved_mismatch:
            return
        count = self.recomp_counter[gid]
        if count < len(self.weak_holders):
            raise self._error(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward "
                f"and recomputation.\nNumber of tensors saved during forward: {len(self.weak_holders)}\n"
                f"Number of tensors saved during recomputation: {count}."
            )
        lines = ""
        for index, (before, now) in enumerate(zip(self.x_metadatas, self._again, strict=False)):
            if self.weak_holders[index]() is not None and before != now:
                lines += (
                    f"tensor at position {index}:\nsaved metadata: {before}\nrecomputed metadata: {now}\n"
                )
        if lines:
            raise self._error(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata "
                f"than during the forward pass.\n{lines}."
            )

    def _error(self, text: str) -> CheckpointError:
        """The error with this text, and with how to learn more unless that is told anyway."""
        return CheckpointError(text if self.unpack_error_cb else f"{text}\n{_debug_tip_msg}")


class _checkpoint_hook(graph.saved_tensors_hooks):
    """Inside, what is saved is replaced by holders of a frame, whose function runs again for the first value
    that is asked for."""

    def __init__(self, frame: _CheckpointFrame) -> None:
        def pack_hook(tensor):
            holder = _Holder()
            frame.weak_holders.append(weakref.ref(holder))
            frame.x_metadatas.append(frame.metadata_fn(tensor))
            return holder

        def unpack_hook(holder):
            group = GraphExecGroup._get_current_group()
            run = group._run if group else _C.current_run()
            # Somebody may look at one value outside of backward: the others are not kept for that.
            gid = run or object()
            try:
                return _taken(frame, holder, gid, group)
            except CheckpointError as error:
                if frame.unpack_error_cb is not None:
                    frame.unpack_error_cb(error)
                raise
            finally:
                if not run:
                    frame.forget(gid)

        super().__init__(pack_hook, unpack_hook)


def _taken(frame: _CheckpointFrame, holder: _Holder, gid: Any, group: GraphExecGroup | None) -> Any:
    if gid not in holder.handles:
        frame._recompute(gid, group)
        if gid not in holder.handles:
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was never recomputed."
            )
    handle, holder.handles[gid] = holder.handles[gid], None
    if handle is None:
        raise CheckpointError(
            "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked "
            "once. " + ("" if group is None else _OVERLAP) + _READ_TWICE
        )
    return handle.value


class _recomputation_hook(graph.saved_tensors_hooks):
    """Inside, what is saved becomes the value of a frame's holders in the run `gid`, in their order."""

    def __init__(self, target_frame_ref: weakref.ReferenceType, gid: Any) -> None:
        def pack_hook(tensor):
            frame = target_frame_ref()
            _internal_assert(frame is not None)
            index, expected = frame.recomp_counter[gid], len(frame.weak_holders)
            frame.ignore_saved_mismatch |= index >= expected and not frame.forward_completed
            if index == expected and not frame.early_stop and not frame.ignore_saved_mismatch:
                raise frame._error(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during "
                    "the original forward pass."
                )
            frame.recomp_counter[gid] = index + 1
            value = tensor.detach() if tensor.requires_grad else tensor
            frame._again.append(frame.metadata_fn(tensor))
            holder = frame.weak_holders[index]() if index < expected else None
            if holder is not None:
                holder.handles[gid] = _Handle(value)
            if frame.early_stop and index + 1 == expected:
                raise _StopRecomputationError
            return value

        super().__init__(pack_hook, lambda value: value)


def _chapter(title: str) -> str:
    return f"+{'-' * 78}+\n| {title:^76} |\n+{'-' * 78}+"


_checkpoint_error_template = (
    " An error happened while unpacking tensors; dumping logs of latest computation\n"
    "because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.\n\n"
    f"{_chapter('1. Stack traces of the operators that ran in the original forward')}\n\n"
    "{forward_traces}\n\n"
    f"{_chapter('2. Stack traces of the operators that ran during recomputation')}\n\n"
    "{recompute_traces}\n\n"
    f"{_chapter('3. Log of operators in the original forward and recomputation')}\n"
    "(A detach more or less is the checkpoint's own doing and means nothing.)\n\n"
    "Operations executed during the original forward:\n\n{forward_ops}\n\n"
    "Operations executed during recomputation:\n\n{recompute_ops}\n\n"
    f"{_chapter('4. Error message')}\n"
    " ERROR: Detected non-determinism while running activation checkpointing\n\n"
    " You are seeing this error because you passed `debug=True` to checkpoint and\n the second run saved "
    "other tensors than the first. Look above for the first operation\n in which the two lists differ, and "
    "for the lines it came from.\n\n"
)


def _get_debug_context_and_cb() -> tuple[Callable, Callable]:
    """What makes the contexts of a checkpoint that notes its operations, and what raises a mismatch with
    those that were noted."""
    first, second = logs = OperatorLog(), OperatorLog()

    def unpack_error_cb(error):
        told = _checkpoint_error_template.format(
            forward_traces=first.shown("original"),
            recompute_traces=second.shown("recompute"),
            forward_ops="\n".join(first.lines),
            recompute_ops="\n".join(second.lines),
        )
        raise CheckpointError(f"{told}{error}") from error

    return lambda: logs, unpack_error_cb


def checkpoint(
    function: Callable,
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable = noop_context_fn,
    determinism_check: str = _DEFAULT_DETERMINISM_MODE,
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Runs `function(*args)` without keeping what its backward needs: backward runs it a second time.

    >>> import rushlight.utils.checkpoint
    >>> x = rushlight.ones(2, requires_grad=True)
    >>> y = rushlight.utils.checkpoint.checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False)
    >>> y.sum().backward()
    >>> x.grad
    tensor([-2.4783, -2.4783])
    """
    if use_reentrant is None:
        warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in "
            "PyTorch 2.9, calling checkpoint without use_reentrant will raise an exception. "
            "use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
            "you can pass use_reentrant=True. Refer to docs for more details on the differences between the "
            "two variants."
        )
        use_reentrant = True
    keep_random = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, keep_random, *args)
    frame, context = _prepared(
        function, keep_random, context_fn, determinism_check, debug, early_stop, args, kwargs
    )
    if frame is None:
        return function(*args, **kwargs)
    with _checkpoint_hook(frame), context:
        result = function(*args, **kwargs)
    frame.forward_completed = True
    return result


def _prepared(
    function, keep_random, context_fn, determinism_check, debug, early_stop, args, kwargs
) -> tuple[_CheckpointFrame | None, Any]:
    """The frame of a call without reentrance, None where nothing is recorded, and the context of its first
    run."""
    if determinism_check not in _allowed_determinism_checks_to_fns:
        raise ValueError(
            f"determinism_check should be one of {list(_allowed_determinism_checks_to_fns)}, but got "
            f"{determinism_check}"
        )
    unpack_error_cb = None
    if debug if _checkpoint_debug_enabled is None else _checkpoint_debug_enabled:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        context_fn, unpack_error_cb = _get_debug_context_and_cb()
    first, second = context_fn()
    if not _C.is_grad_enabled():
        return None, first
    random, autocast = _Random(keep_random), _present_autocast()

    def run_again(*args):
        with random.again(), autocast(), second:
            function(*args, **kwargs)

    stop = early_stop if _enable_checkpoint_early_stop is None else _enable_checkpoint_early_stop
    about_one = _allowed_determinism_checks_to_fns[determinism_check]
    frame = _CheckpointFrame(run_again, stop, unpack_error_cb, about_one)
    frame.save_inputs(*args)
    return frame, first


def _checkpoint_without_reentrant_generator(
    fn: Callable,
    preserve_rng_state: bool = True,
    context_fn: Callable = noop_context_fn,
    determinism_check: str = _DEFAULT_DETERMINISM_MODE,
    debug: bool = False,
    early_stop: bool = True,
    *args: Any,
    **kwargs: Any,
) -> Iterator[None]:
    """A checkpoint around what the caller runs between two steps of this generator: `fn(*args, **kwargs)`,
    which is what the backward runs again."""
    frame, context = _prepared(
        fn, preserve_rng_state, context_fn, determinism_check, debug, early_stop, args, kwargs
    )
    if frame is None:
        yield
        return
    with _checkpoint_hook(frame), context:
        yield
    frame.forward_completed = True


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Runs a Sequential (or a list of functions) in `segments` parts, each but the last a checkpoint.

    >>> import rushlight.utils.checkpoint
    >>> model = rushlight.nn.Sequential(rushlight.nn.Tanh(), rushlight.nn.Tanh(), rushlight.nn.Tanh())
    >>> x = rushlight.ones(2, requires_grad=True)
    >>> y = rushlight.utils.checkpoint.checkpoint_sequential(model, 3, x, use_reentrant=False)
    """
    if use_reentrant is None:
        warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed "
            "explicitly. In version 2.9 we will raise an exception if use_reentrant is not passed. "
            "use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
            "you can pass use_reentrant=True. Refer to docs for more details on the differences between the "
            "two variants."
        )
        use_reentrant = True
    keep_random = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(steps) // segments

    def part(start, end):
        def run(value):
            for step in steps[start:end]:
                value = step(value)
            return value

        return run

    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(
            part(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=keep_random
        )
    return part(end, len(steps))(input)
