"""What torch keeps about autograd in its extension: `torch._C._autograd`, `torch._C._functions` and questions
to the engine. Programs that look behind the public names find the same names here, next to Rushlight's own.
"""

from __future__ import annotations

import _thread
import sys
from types import ModuleType

from rushlight import _C
from rushlight._annotations import Any
from rushlight._type_names import type_name as class_name

_COPIES = ("AccumulateGrad", "CopySlices")


class _Functions(ModuleType):
    """`torch._C._functions`: the classes of graph nodes, by name."""

    def __getattr__(self, name: str) -> Any:
        if name in ("UndefinedGrad", "DelayedError", "Error", "NotImplemented"):
            from rushlight.autograd import function

            return getattr(function, f"_{name}")
        if name in _COPIES or "Backward" in name:
            found = _C.node_class(name)
            if found is not None:
                return found
        raise AttributeError(f"module 'torch._C._functions' has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        from rushlight.autograd._saved_table import SHOWN

        return [*super().__dir__(), *_COPIES, *SHOWN]


def _get_creation_meta(tensor: _C.Tensor) -> Any:
    """How a view came about."""
    from rushlight._numbered import CreationMeta

    return CreationMeta(_C.view_origin(tensor))


def _set_creation_meta(tensor: _C.Tensor, meta: Any) -> None:
    """Changes what is remembered of a view's making."""
    _C.set_view_origin(tensor, int(meta))


def _push_saved_tensors_default_hooks(pack_hook: Any, unpack_hook: Any) -> None:
    """What entering `saved_tensors_hooks` does."""
    _C.push_saved_hooks(pack_hook, unpack_hook)


def _pop_saved_tensors_default_hooks() -> None:
    """What leaving `saved_tensors_hooks` does."""
    if _C.top_saved_hooks(True) is None:
        raise RuntimeError("there are no saved-tensor hooks to leave")
    _C.pop_saved_hooks()


def _top_saved_tensors_default_hooks(ignore_is_tracing: bool) -> Any:
    """The innermost pair of hooks, or None; while a graph is traced only for those who ignore that."""
    return _C.top_saved_hooks(ignore_is_tracing)


def _saved_tensors_hooks_set_tracing(is_tracing: bool) -> bool:
    """Says that this thread traces a graph, during which hooks do not run; returns what was so before."""
    return _C.rest_saved_hooks(is_tracing)


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether `saved_tensors_hooks` may be entered."""
    return _saved_tensors_hooks_get_disabled_error_message() is None


def _saved_tensors_hooks_enable() -> None:
    """Allows `saved_tensors_hooks` again."""
    _C.allow_saved_hooks(None)


def _saved_tensors_hooks_disable(error_message: str, fail_if_non_empty: bool = True) -> None:
    """Entering `saved_tensors_hooks` raises with this message from now on."""
    _C.disable_saved_hooks(error_message, not fail_if_non_empty)


def _saved_tensors_hooks_get_disabled_error_message() -> str | None:
    """The message given to `_saved_tensors_hooks_disable`, or None."""
    return _C.disabled_saved_hooks()


def _make_saved_tensor(tensor: _C.Tensor, is_output: bool) -> Any:
    """What a node would keep of the tensor if it saved it now."""
    if not isinstance(tensor, _C.Tensor) or not isinstance(is_output, bool):
        raise TypeError(
            "_make_saved_tensor(): incompatible function arguments. A tensor and a bool are expected, not "
            f"{class_name(tensor)} and {class_name(is_output)}"
        )
    if is_output and not tensor.is_leaf:
        raise NotImplementedError("_make_saved_tensor: the output of a node that is not there to save it")
    return _C.make_saved(tensor)


def _unsafe_set_version_counter(tensors: Any, versions: Any) -> None:
    """Sets what `_version` says."""
    if len(tensors) != len(versions):
        raise RuntimeError(f"tensors_len={len(tensors)}, versions_len={len(versions)}")
    for version in versions:
        if version < 0:
            raise RuntimeError(f"Cannot set a version_counter to a value below 0: {version}")
    if any(tensor.is_inference() for tensor in tensors):
        raise RuntimeError(
            "Tried to call torch.autograd._unsafe_set_version() on a tensor that does not have a version "
            "counter. Was it created in inference mode?"
        )
    for tensor, version in zip(tensors, versions, strict=True):
        _C.set_version(tensor, version)


def _get_sequence_nr() -> int:
    """The number that the next node of the graph gets."""
    return _C.next_sequence()


def _get_current_graph_task_keep_graph() -> bool:
    """Whether the backward that is running keeps what was saved; True if none runs."""
    return _C.run_keeps_graph()


def _get_data_attr(tensor: _C.Tensor) -> _C.Tensor:
    """`tensor.data`"""
    return tensor.data


def _current_graph_task_id() -> int:
    """The number of the backward that is running on this thread, -1 if none is."""
    return _C.current_run() - 1 if _C.current_run() else -1


def _current_graph_task_execution_order() -> list:
    """The nodes of the running backward in the order in which they run."""
    if not _C.current_run():
        raise RuntimeError(
            "_current_graph_task_execution_order should only be called during the backward pass"
        )
    from rushlight.autograd.grad_mode import is_multithreading_enabled

    if is_multithreading_enabled():
        raise RuntimeError(
            "get_current_graph_task_execution_order expects the current backward to be executed with "
            "multithreading disabled, e.g. by running:\n\n>>> with torch.autograd.set_multithreading_enabled("
            "False):\n...     torch.autograd.grad(...)\n"
        )
    return _C.execution_order()


def _will_engine_execute_node(node: Any) -> bool:
    """Whether the running backward reaches this node."""
    if not isinstance(node, _C.Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    if not _C.current_run():
        raise RuntimeError("_get_should_execute_nodes should only be called during the backward pass")
    will = _C.will_run(node, 0)
    if will and not _C.run_accumulates() and node.name() == "torch::autograd::AccumulateGrad":
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently running "
            "autograd.grad(). This is currently not supported."
        )
    return will


def _current_autograd_node() -> Any:
    """The node whose derivative is being computed on this thread, or None."""
    return _C.running_node()


def _set_grad_enabled(enabled: bool) -> None:
    """Whether operations are recorded on this thread."""
    if not isinstance(enabled, bool):
        raise TypeError(
            f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {class_name(enabled)}"
        )
    _C.switch_grad(enabled)


def _any_requires_grad(*args: Any, **kwargs: Any) -> bool:
    """Whether one of the tensors among the arguments, or in lists among them, requires grad."""
    values = (*args, *kwargs.values())
    lists = [value if isinstance(value, list) else (value,) for value in values]
    return any(isinstance(value, _C.Tensor) and value.requires_grad for each in lists for value in each)


class _EngineBase:
    """What programs reach as `Variable._execution_engine`."""

    def queue_callback(self, callback: Any) -> None:
        """Calls `callback` at the end of the backward that is running."""
        _C.call_when_done(callback)

    def run_backward(
        self,
        tensors: tuple,
        grad_tensors: tuple,
        keep_graph: bool,
        create_graph: bool,
        inputs: tuple = (),
        allow_unreachable: bool = False,
        accumulate_grad: bool = False,
    ) -> Any:
        """The run of the engine under `backward` and `grad`."""
        from rushlight.autograd import _run

        return _run(
            tensors, grad_tensors, keep_graph, create_graph, inputs, accumulate_grad, allow_unreachable
        )

    def is_checkpoint_valid(self) -> bool:
        """Whether no `grad` and no `backward(inputs=...)` is running on this thread."""
        return _C.all_runs_accumulate()


def _increment_version(tensors: Any) -> None:
    """Counts a write to each of the tensors."""
    for tensor in tensors:
        _C.note_write(tensor)


_stashed = _thread._local()


def _stash_obj_in_tls(key: str, value: Any) -> None:
    """Keeps an object for this thread, whose backward passes see it."""
    _stashed.__dict__[key] = value


def _is_key_in_tls(key: str) -> bool:
    """Whether this thread keeps an object under the name."""
    return key in _stashed.__dict__


def _get_obj_in_tls(key: str) -> Any:
    """What this thread keeps under the name."""
    if key not in _stashed.__dict__:
        raise RuntimeError("Expected py_objects.obj_dict_.count(key) to be true, but got false.")
    return _stashed.__dict__[key]


def _remove_obj_from_tls(key: str) -> None:
    """Lets go of what this thread keeps under the name."""
    _stashed.__dict__.pop(key, None)


class _Groups(_thread._local):
    current: Any = None


_groups = _Groups()


def _get_graph_exec_group() -> Any:
    """The group of backward calls that this thread is in, or None."""
    return _groups.current


def _set_graph_exec_group(group: Any) -> None:
    """Makes this thread's backward calls some of the group."""
    _groups.current = group


_AUTOGRAD = (
    _get_creation_meta, _set_creation_meta, _push_saved_tensors_default_hooks,
    _pop_saved_tensors_default_hooks, _top_saved_tensors_default_hooks, _saved_tensors_hooks_is_enabled,
    _saved_tensors_hooks_enable, _saved_tensors_hooks_disable, _saved_tensors_hooks_set_tracing,
    _saved_tensors_hooks_get_disabled_error_message, _unsafe_set_version_counter, _get_sequence_nr,
    _get_current_graph_task_keep_graph, _get_data_attr, _make_saved_tensor,
)  # fmt: skip
_CORE = (
    _current_graph_task_id, _current_graph_task_execution_order, _will_engine_execute_node,
    _current_autograd_node, _increment_version, _stash_obj_in_tls, _is_key_in_tls, _get_obj_in_tls,
    _remove_obj_from_tls, _set_grad_enabled, _any_requires_grad, _get_graph_exec_group,
    _set_graph_exec_group,
)  # fmt: skip


def _when_asked(name: str) -> Any:
    from rushlight import autograd

    if name == "CreationMeta":
        from rushlight._numbered import CreationMeta

        return CreationMeta
    if name == "_InputMetadata":
        return autograd.graph._InputMetadata
    if name in autograd._OF_THE_PROFILER or name in ("_profiler_enabled", "kineto_available"):
        return getattr(autograd, name)
    raise AttributeError(f"module 'torch._C._autograd' has no attribute '{name}'")


def _install() -> None:
    _C._autograd = ModuleType("torch._C._autograd")
    _C._autograd.__getattr__ = _when_asked
    for item in (_C.SavedTensor, *_AUTOGRAD):
        setattr(_C._autograd, item.__name__, item)
    for item in _CORE:
        setattr(_C, item.__name__, item)
    _C._ImperativeEngine = _EngineBase
    _C._functions = _Functions("torch._C._functions")
    # `import torch._C._functions` asks the parent for a path and the table of modules for the child.
    _C.__path__ = []
    for name in ("_autograd", "_functions"):
        sys.modules[f"rushlight._C.{name}"] = getattr(_C, name)


_install()
