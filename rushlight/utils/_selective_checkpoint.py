"""Selective checkpoints: a policy says which operations' results are kept and which are computed again.

The two contexts are TorchDispatchModes. In the first run `_CachingTorchDispatchMode` asks the policy about
every operation and keeps the results it wants kept; in the second `_CachedTorchDispatchMode` hands them out
instead of computing. Results are known by their operation and how often that has run before.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from rushlight import _C, ops
from rushlight._ops import OpOverload, OpOverloadPacket, _dispatching
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils._pytree import tree_map

SAC_IGNORED_OPS = {
    ops.aten.detach.default, ops.prim.device.default, ops.aten.size.default, ops.aten.stride.default,
    ops.aten.numel.default, ops.aten.dim.default, ops.aten.storage_offset.default,
    ops.aten.is_contiguous.default, ops.aten.sym_size.default, ops.aten.sym_stride.default,
    ops.aten.sym_numel.default, ops.aten.sym_storage_offset.default,
    ops.aten.is_contiguous.memory_format, ops.aten.is_non_overlapping_and_dense.default,
    ops.aten.is_strides_like_format.default,
}  # fmt: skip

_RECOMPUTE = object()  # was not kept
_CONSUMED = object()  # was kept, and has been handed out
_SAC_MISMATCH_MSG = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend on global "
    "state that changed between forward and backward."
)


class CheckpointPolicy(enum.Enum):
    """What a policy can say about an operation's result."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


# The policies about offloading are for compilers: here, as in torch, such results are computed again.
_KEPT = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


def _policy_from_bool(b: bool) -> CheckpointPolicy:
    return CheckpointPolicy.MUST_SAVE if b else CheckpointPolicy.PREFER_RECOMPUTE


class SelectiveCheckpointContext:
    """What a policy is told besides the operation: whether this is the second run, and its result."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


_WRITTEN = -1  # no tensor's version


class _VersionWrapper:
    """A kept tensor that must not have been written in place when it is handed out."""

    def __init__(self, val: Any) -> None:
        self.val = val
        self.version = None if not isinstance(val, _C.Tensor) or val.is_inference() else val._version

    def get_val(self, allow_cache_entry_mutation: bool) -> Any:
        """The tensor."""
        if self.version is not None and not allow_cache_entry_mutation and self.val._version != self.version:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return self.val


def _writes() -> bool:
    """Whether the operation of the moment works in place."""
    return _dispatching.calls[-1][2] is not None


def _kept(value: Any) -> _VersionWrapper:
    """What is kept of a result. A write counts as one after the result was kept, as it does in torch: it is
    handed out only to those who allow writes."""
    wrapper = _VersionWrapper(value.detach() if isinstance(value, _C.Tensor) else value)
    if wrapper.version is not None and _writes():
        wrapper.version = _WRITTEN
    return wrapper


def _is_view() -> bool:
    """Whether the operation of the moment returns a view."""
    _, primitive, out, *_ = _dispatching.calls[-1]
    return out is None and primitive is not None and primitive.is_view


def _is_to_repeat(args: tuple, kept: Any) -> bool:
    """Whether a kept write in place has to happen again: to another tensor than the kept one."""
    return _writes() and args[0].untyped_storage().data_ptr() != kept.val.untyped_storage().data_ptr()


def _is_compiling(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether the operation is being traced by a compiler: there is none."""
    return False


def _sac_storage_key(func: Any, args: Any) -> Any:
    """What the calls of an operation are counted under."""
    return func


class _CountingMode(TorchDispatchMode):
    """Numbers the calls of each operation in a run."""

    def __init__(self, storage: dict) -> None:
        super().__init__()
        self.storage = storage
        self.func_counter: dict = defaultdict(int)

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Whether what a compiler does inside is not looked at."""
        return True

    def __enter__(self) -> Any:
        self.func_counter.clear()
        return super().__enter__()


class _CachingTorchDispatchMode(_CountingMode):
    """The first run: keeps the results that the policy wants kept."""

    def __init__(self, policy_fn: Callable, storage: dict, ac_graph_id: Any = None) -> None:
        super().__init__(storage)
        self.policy_fn, self.ac_graph_id = policy_fn, ac_graph_id

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in SAC_IGNORED_OPS:
            return func(*args, **kwargs)
        result = func(*args, **kwargs)
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
        policy = self.policy_fn(context, func, *args, **kwargs)
        if isinstance(policy, bool):
            policy = _policy_from_bool(policy)
        kept = tree_map(_kept, result) if policy in _KEPT else _RECOMPUTE
        key = _sac_storage_key(func, args)
        self.storage[key][self.func_counter[key]] = kept
        self.func_counter[key] += 1
        return result


class _CachedTorchDispatchMode(_CountingMode):
    """The second run: hands out what was kept, and computes the rest."""

    # The policy is not asked a second time; classes derived from this one hand theirs over.
    def __init__(self, policy_fn: Any, storage: dict, allow_cache_entry_mutation: bool = False) -> None:
        super().__init__(storage)
        self.allow_cache_entry_mutation = allow_cache_entry_mutation

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in SAC_IGNORED_OPS:
            return func(*args, **kwargs)
        key = _sac_storage_key(func, args)
        calls, call = self.storage.get(key, {}), self.func_counter[key]
        self.func_counter[key] += 1
        if call not in calls:
            which = f"{func} invocation index {call}" if calls else func
            raise RuntimeError(
                f"{which} encountered during backward but not found in storage. {_SAC_MISMATCH_MSG}"
            )
        kept = calls[call]
        if kept is _CONSUMED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region "
                "computed under selective activation checkpoint."
            )
        if kept is _RECOMPUTE:
            return func(*args, **kwargs)
        calls[call] = _CONSUMED
        if _is_view():  # it must be one of what there is now, and writes to its memory are not counted for it
            return func(*args, **kwargs)
        result = tree_map(lambda wrapper: wrapper.get_val(self.allow_cache_entry_mutation), kept)
        return func(*args, **kwargs) if _is_to_repeat(args, kept) else result


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[_CachingTorchDispatchMode, _CachedTorchDispatchMode]:
    """The contexts of a checkpoint that keeps the results of some operations: of those in a list, or those a
    function `policy(ctx, op, *args, **kwargs)` names by a CheckpointPolicy (or True).

    >>> import functools
    >>> from rushlight.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> keep = functools.partial(create_selective_checkpoint_contexts, [rushlight.ops.aten.mm.default])
    >>> x = rushlight.ones(2, 2, requires_grad=True)
    >>> y = checkpoint(lambda x: (x @ x).sin(), x, use_reentrant=False, context_fn=keep)
    >>> y.sum().backward()
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, OpOverload):
                advice = (
                    "Please update the OpOverloadPacket to a specific OpOverload.For example, if you have "
                    "`torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
                    if isinstance(op, OpOverloadPacket)
                    else ""
                )
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. {advice}"
                )
        chosen = set(policy_fn_or_list)

        def policy(ctx, op, *args, **kwargs):
            return CheckpointPolicy.MUST_SAVE if op in chosen else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: dict = defaultdict(dict)  # by operation and number of the call
    return (
        _CachingTorchDispatchMode(policy, storage),
        _CachedTorchDispatchMode(policy, storage, allow_cache_entry_mutation),
    )
