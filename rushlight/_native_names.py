"""Names of torch._C that libraries ask about the build or switch: each says what is true here."""

from __future__ import annotations

import enum
import threading
import weakref
from typing import Any, NoReturn

import rushlight
from rushlight import _C, _autograd_fallback, _dispatch_keys, overrides
from rushlight._absent import absent_class
from rushlight._archive_names import PyTorchFileReader, PyTorchFileWriter
from rushlight._script_object import ScriptObject
from rushlight._type_names import type_name as class_name
from rushlight._untyped_storage import StorageBase
from rushlight._warn import warn
from rushlight.amp.autocast_mode import _DisableAutocast
from rushlight.autograd import forward_ad, graph
from rushlight.backends import cuda
from rushlight.utils._foreach_utils import _group_tensors_by_device_and_dtype


def _get_privateuse1_backend_name() -> str:
    """The name of a device that someone else adds: nobody does."""
    return "privateuseone"


class _TorchFunctionState(enum.Enum):
    """Whose `__torch_function__` is asked."""

    ENABLED = 0
    SUBCLASSES_DISABLED = 1
    ALL_DISABLED = 2


def _get_torch_function_state() -> _TorchFunctionState:
    """Whose `__torch_function__` is asked at present."""
    if _C._is_torch_function_enabled():
        return _TorchFunctionState.ENABLED
    all_off = overrides._is_torch_function_all_disabled()
    return _TorchFunctionState.ALL_DISABLED if all_off else _TorchFunctionState.SUBCLASSES_DISABLED


def _set_torch_function_state(state: _TorchFunctionState) -> None:
    """Switches the asking of `__torch_function__`."""
    _C.set_torch_function_enabled(state is _TorchFunctionState.ENABLED)
    modes = overrides._get_current_function_mode_stack()
    overrides._stack.off = state is _TorchFunctionState.ALL_DISABLED
    _C.set_function_mode(bool(modes) and state is not _TorchFunctionState.ALL_DISABLED)


class _WeakTensorRef:
    """Tells whether a tensor is still there, without keeping it."""

    def __init__(self, tensor: rushlight.Tensor) -> None:
        if not isinstance(tensor, rushlight.Tensor):
            raise TypeError(f"expected a Tensor, got {class_name(tensor)}")
        self._ref = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether the tensor has been freed."""
        return self._ref() is None


class _CachedTensors:
    """The tensors that a program says it keeps to use their memory again, as torch's CUDA graphs do."""

    enabled = False
    tensors: dict[int, weakref.ref] = {}

    @classmethod
    def check(cls, tensor: Any) -> int:
        """The key of a tensor, where tensors may be named at all."""
        if not isinstance(tensor, rushlight.Tensor):
            raise TypeError(f"expected a Tensor, got {class_name(tensor)}")
        if not cls.enabled:
            raise RuntimeError("cached tensors are not enabled: call _set_cached_tensors_enabled(True) first")
        return id(tensor)


def _set_cached_tensors_enabled(enabled: bool) -> None:
    """Whether tensors can be named as kept for their memory."""
    _CachedTensors.enabled = bool(enabled)


def _add_cached_tensor(tensor: rushlight.Tensor) -> None:
    """Says that the tensor is kept for its memory; it is not kept by this."""
    _CachedTensors.tensors[_CachedTensors.check(tensor)] = weakref.ref(tensor)


def _remove_cached_tensor(tensor: rushlight.Tensor) -> None:
    """Takes back what `_add_cached_tensor` said, however often it did."""
    _CachedTensors.tensors.pop(_CachedTensors.check(tensor), None)


def _is_cached_tensor(tensor: rushlight.Tensor) -> bool:
    """Whether the tensor was named by `_add_cached_tensor`."""
    if not _CachedTensors.enabled:
        return False
    known = _CachedTensors.tensors.get(_CachedTensors.check(tensor))
    return known is not None and known() is tensor


def _warn() -> None:
    """Warns, for tests of how warnings reach the user."""
    warn("Test message for TORCH_WARN")


def _warn_deprecation() -> None:
    """Warns of something deprecated, for tests of how warnings reach the user."""
    warn("Test message for TORCH_WARN_DEPRECATION", DeprecationWarning)


def _set_check_sparse_tensor_invariants(on: bool) -> None:
    """Whether sparse tensors are checked when they are made."""
    checks = rushlight.sparse.check_sparse_tensor_invariants
    checks.enable() if on else checks.disable()


def _check_sparse_tensor_invariants() -> bool:
    """Whether sparse tensors are checked when they are made."""
    return rushlight.sparse.check_sparse_tensor_invariants.is_enabled()


def _get_deterministic_fill_uninitialized_memory() -> bool:
    """Whether deterministic algorithms fill memory that nobody has written."""
    return rushlight.utils.deterministic.fill_uninitialized_memory


def _set_deterministic_fill_uninitialized_memory(on: bool) -> None:
    """Whether deterministic algorithms fill memory that nobody has written."""
    rushlight.utils.deterministic.fill_uninitialized_memory = on


def _swap_tensor_impl(a: rushlight.Tensor, b: rushlight.Tensor) -> None:
    """Exchanges two tensors in place, whoever else looks at them."""
    _C.swap(a, b)


def _get_thread_name() -> str:
    """The name of this thread."""
    return threading.current_thread().name


def _infer_size(a: Any, b: Any) -> Any:
    """The size that two sizes are broadcast to."""
    one = rushlight.zeros(())
    return rushlight.broadcast_tensors(one.expand(a), one.expand(b))[0].shape


def _get_cpu_capability() -> str:
    """The instruction set that the kernels use."""
    return _C.cpu_capability


class ScriptFunction:
    """Only for `isinstance` checks: no function is ever one."""


class ScriptMethod:
    """Only for `isinstance` checks: no method is ever one."""


class ScriptList(list):
    """TorchScript's list; not implemented."""

    def __init__(self, *args: Any) -> NoReturn:
        raise NotImplementedError("Rushlight has no TorchScript")


class ScriptDict(dict):
    """TorchScript's dict; not implemented."""

    def __init__(self, *args: Any) -> NoReturn:
        raise NotImplementedError("Rushlight has no TorchScript")


class _NN:
    """torch._C._nn, whose functions are looked up when they are named."""

    @property
    def _parse_to(self):
        from rushlight.nn.module import _parse_to

        return _parse_to

    def __getattr__(self, name):
        from rushlight._nn_names import find

        return find(name)


class _Family:
    """torch._C._linalg and its like: `linalg_norm` is the public linalg.norm, the rest is of aten."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        public = getattr(rushlight, self._name)
        found = getattr(public, name.removeprefix(f"{self._name}_"), None)
        if found is None:
            found = getattr(rushlight.ops.aten, name)
        setattr(self, name, found)
        return found


class _DisableTorchDispatch:
    """Inside, neither modes nor classes are asked by `__torch_dispatch__`."""

    def __enter__(self) -> _DisableTorchDispatch:
        self._before = _C.set_dispatch_mode(False), _C.set_dispatch_disabled(True)
        return self

    def __exit__(self, *error: object) -> None:
        _C.set_dispatch_mode(self._before[0])
        _C.set_dispatch_disabled(self._before[1])


class _AutoDispatchBelowAutograd:
    """Inside, nothing is recorded and no tangent carried, as below autograd in torch."""

    def __init__(self) -> None:
        self._guard = _dispatch_keys._ExcludeDispatchKeyGuard(_dispatch_keys._RECORDS)
        self._guard.__enter__()

    def __enter__(self) -> _AutoDispatchBelowAutograd:
        return self

    def __exit__(self, *error: object) -> None:
        self._guard.__exit__()


_TorchDispatchModeKey = enum.Enum("_TorchDispatchModeKey", "PROXY FUNCTIONAL FAKE", module=__name__, start=0)


def _push_on_torch_dispatch_stack(mode: Any) -> None:
    """Makes a mode the innermost."""
    from rushlight.utils._python_dispatch import _push_mode

    _push_mode(mode)


def _pop_torch_dispatch_stack(mode_key: Any = None) -> Any:
    """Takes the innermost mode off."""
    from rushlight.utils._python_dispatch import _pop_mode

    return _pop_mode()


def _dispatch_modes() -> list:
    from rushlight._dispatching import stack

    return stack.modes


def _get_dispatch_mode(mode_key: Any) -> None:
    """The mode of a compiler: there is none."""


def _disabled_torch_dispatch_impl(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Runs an operation as if the classes of its arguments were plain."""
    return getattr(_C.Tensor, "__torch_dispatch__")(func, types, args, kwargs)  # noqa: B009


# What torch can be asked to warn of, and nothing here does.
_warned_of = {"broadcast": False, "keepdim": False, "examples": False}


def _set_backcompat_broadcast_warn(on: bool) -> None:
    """Asks for warnings where a result was another before there was broadcasting: no such version existed."""
    _warned_of["broadcast"] = bool(on)


def _get_backcompat_broadcast_warn() -> bool:
    """What `_set_backcompat_broadcast_warn` was given."""
    return _warned_of["broadcast"]


def _set_backcompat_keepdim_warn(on: bool) -> None:
    """Asks for warnings where a result had other dimensions once: no such version existed."""
    _warned_of["keepdim"] = bool(on)


def _get_backcompat_keepdim_warn() -> bool:
    """What `_set_backcompat_keepdim_warn` was given."""
    return _warned_of["keepdim"]


_executor = {"optimize": True, "profiling": True, "mode": True}


def _swap(key: str, value: bool) -> bool:
    before, _executor[key] = _executor[key], bool(value)
    return before


def _jit_set_profiling_executor(on: bool) -> bool:
    """Sets the switch and returns what it was: without TorchScript it changes nothing."""
    return _swap("profiling", on)


def parse_schema(schema: str) -> Any:
    """The FunctionSchema that a text says."""
    from rushlight._schema import parse

    return parse(schema)


def _dispatch_has_kernel(name: str) -> bool:
    """Whether an operation of this name is known."""
    return _operator_named(name) is not None


# What is composed here and has a derivative of its own in torch; what is composed there as well and has one;
# what is not composed and has none.
_KERNEL_OF_AUTOGRAD = {
    f"aten::{name}"
    for name in (
        "_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d",
        "native_batch_norm", "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d",
    )
}  # fmt: skip
_BOTH_KERNELS = {
    f"aten::{name}"
    for name in (
        "chunk", "linear", "matmul", "matmul.out", "max_pool2d", "narrow", "native_channel_shuffle",
        "silu_backward",
    )
}  # fmt: skip
_NO_KERNEL_OF_AUTOGRAD = {
    f"aten::{name}"
    for name in (
        "adaptive_avg_pool1d.out", "avg_pool1d.out", "upsample_bilinear2d.vec_out",
        "upsample_nearest2d.vec_out",
    )
}  # fmt: skip


def _dispatch_has_kernel_for_dispatch_key(name: str, key: str) -> bool:
    """Whether something was registered for an operation of one's own at this level."""
    from rushlight._schema import is_said, schema_of

    op = _operator_named(name)
    if op is None and schema_of(name) is None:
        raise RuntimeError(f"operator {name} does not exist")
    if op is None:
        if key == "CompositeImplicitAutograd":
            return is_said("decomposes", name) and name not in _KERNEL_OF_AUTOGRAD
        if key == "Autograd":
            without = is_said("decomposes", name) or name in _NO_KERNEL_OF_AUTOGRAD
            return not without or name in _KERNEL_OF_AUTOGRAD or name in _BOTH_KERNELS
        if key == "AutogradCPU":  # torch's own are at Autograd
            return False
        raise NotImplementedError(f"it is not known whether torch registers something for {name} at {key}")
    composite = op.is_composite()
    if key.startswith("Autograd"):
        return (op.autograd_kernel is not None and not composite) or op.differentiable
    if key.startswith("Composite"):
        return None in op.kernels and composite is (key == "CompositeImplicitAutograd")
    return key.lower() in op.kernels


def _dispatch_has_computed_kernel_for_dispatch_key(name: str, key: str) -> bool:
    """Whether a call of an operation of one's own that comes to this level runs something."""
    op = _operator_named(name)
    if op is None:
        raise RuntimeError(f"operator {name} does not exist")
    return key.lower() in op.kernels or None in op.kernels or key == "Meta" or key.startswith("Autograd")


def _dispatch_find_schema_or_throw(name: str, overload: str) -> Any:
    """The overload of an operation, to be called by `_dispatch_call_boxed`."""
    space, _, rest = name.partition("::")
    found = getattr(getattr(getattr(rushlight.ops, space), rest, None), overload or "default", None)
    if found is None:
        raise RuntimeError(f"Could not find schema for {name}.")
    return found


def _dispatch_call_boxed(handle: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls what `_dispatch_find_schema_or_throw` has found."""
    return handle(*args, **kwargs)


def _jit_get_schemas_for_operator(name: str) -> list:
    """The schemas of all overloads of an operation; none of one that is not there."""
    from rushlight._schema import FunctionSchema

    if "::" not in name:
        raise RuntimeError(f"all symbols must have a namespace, <namespace>::<string>, but found: {name}")
    space, _, rest = name.partition("::")
    packet = getattr(getattr(rushlight.ops, space), rest, None)
    found = (
        [getattr(packet, overload)._schema for overload in packet.overloads()] if packet is not None else []
    )
    return [schema for schema in found if isinstance(schema, FunctionSchema)]


def _jit_resolve_packet(name: str, *args: Any, **kwargs: Any) -> str:
    """The overload of an operation that these arguments are for."""
    from rushlight._schema import FunctionSchema

    space, _, rest = name.partition("::")
    packet = getattr(getattr(rushlight.ops, space), rest, None)
    said = []
    for overload in packet.overloads() if packet is not None else ():
        schema = getattr(packet, overload)._schema
        if not isinstance(schema, FunctionSchema):  # only its name is known
            continue
        refusal = schema.refusal(args, kwargs)
        if refusal is None:
            return overload
        said.append(refusal)
    raise RuntimeError(
        "Overloaded torch operator invoked from Python failed to match any schema:\n" + "\n\n".join(said)
    )


def _any_output_is_alias_to_input_or_output(args: Any, kwargs: dict, outputs: Any) -> bool:
    """Whether tensors that are returned, a tuple, share memory with each other or with what was given."""

    def memory(values: Any) -> list:
        """Of the tensors among the values and in lists among them, as schemas have them."""
        lists = [value if isinstance(value, list) else (value,) for value in values]
        tensors = [value for each in lists for value in each if isinstance(value, _C.Tensor)]
        return [tensor.untyped_storage()._cdata for tensor in tensors]

    returned = memory(outputs if isinstance(outputs, tuple) else ())
    given = memory((*args, *kwargs.values()))
    return len(set(returned)) < len(returned) or not set(returned).isdisjoint(given)


def _operator_named(name: str) -> Any:
    from rushlight._operators import OPERATORS

    return OPERATORS.get(name)


def _get_graph_executor_optimize(on: bool | None = None) -> bool:
    """Sets the switch and returns what it was: without TorchScript it changes nothing."""
    return _swap("mode", _executor["mode"] if on is None else on)


_PRIVATE = ("_swap", "NAMES", "_CachedTensors", "_dispatch_modes", "_operator_named")


def _is_alias_of(a: Any, b: Any) -> bool:
    """Whether two tensors show the same memory."""
    while _C.is_leveled(a):  # which have none of their own
        a = a.value
    while _C.is_leveled(b):
        b = b.value
    return _C.storage_id(a) == _C.storage_id(b)


NAMES = {
    name: value
    for name, value in list(globals().items())
    if getattr(value, "__module__", None) == __name__ and name not in _PRIVATE
}
NAMES |= {
    name: absent_class("torch._C", name)
    for name in (
        "Graph",
        "TensorType",
        "Value",
    )
}
NAMES |= _dispatch_keys.NAMES
# What torch itself has under the same names.
_SHARED = """
finfo iinfo layout memory_format autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache
get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled
is_autocast_cpu_enabled is_autocast_enabled set_autocast_cache_enabled set_autocast_cpu_dtype
set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype
get_num_interop_threads set_num_interop_threads
"""
NAMES |= {name: getattr(rushlight, name) for name in _SHARED.split()}
NAMES |= {"FunctionSchema": rushlight.FunctionSchema, "Tag": rushlight.Tag, "StorageBase": StorageBase}
NAMES |= {
    "_get_autograd_fallback_mode": _autograd_fallback._get_autograd_fallback_mode,
    "_set_autograd_fallback_mode": _autograd_fallback._set_autograd_fallback_mode,
    "DisableTorchFunctionSubclass": overrides.DisableTorchFunctionSubclass,
    "DisableTorchFunction": overrides.DisableTorchFunction,
    "TensorBase": _C.Tensor, "_TensorBase": _C.Tensor,
    "_EnableTorchFunction": overrides._EnableTorchFunction,
    "_is_torch_function_all_disabled": overrides._is_torch_function_all_disabled,
    "_push_on_torch_function_stack": overrides._push_mode,
    "_pop_torch_function_stack": overrides._pop_mode,
    "_get_function_stack_at": lambda at: overrides._get_current_function_mode_stack()[at],
    "_len_torch_function_stack": lambda: len(overrides._get_current_function_mode_stack()),
    "_len_torch_dispatch_stack": lambda: len(_dispatch_modes()),
    "_get_dispatch_stack_at": lambda at: _dispatch_modes()[at],
    "_dispatch_isTensorSubclassLike": lambda tensor: _C.dispatches(tensor),
    "_get_tracing_state": lambda: None,  # no TorchScript trace is ever being taken
    "_is_tracing": lambda: False,
    "_get_deterministic_algorithms": lambda: rushlight.are_deterministic_algorithms_enabled(),
    "_get_deterministic_algorithms_warn_only": (
        lambda: rushlight.is_deterministic_algorithms_warn_only_enabled()
    ),
    "_get_warnAlways": lambda: rushlight.is_warn_always_enabled(),
    "_set_warnAlways": lambda on: rushlight.set_warn_always(on),
    "has_lapack": True, "has_spectral": True, "has_openmp": False, "has_mkl": False, "has_mkldnn": False,
    "_has_cuda": False, "_has_mps": False, "_has_mkldnn": False, "_has_xpu": False,
    "_cuda_getCompiledVersion": lambda: 0,
    "_jit_set_num_profiled_runs": lambda count: count,
    "_log_api_usage_once": lambda name: None,
    "_are_functorch_transforms_active": lambda: rushlight._C.transforming(),
    "_jit_can_fuse_on_cpu": lambda: False, "_jit_can_fuse_on_gpu": lambda: False,
    "_is_any_autocast_enabled": lambda: any(map(rushlight.is_autocast_enabled, ("cpu", "cuda"))),
    "_is_autocast_available": lambda device_type: rushlight.amp.is_autocast_available(device_type),
    "_get_default_device": lambda: str(rushlight.get_default_device()),
    "_get_accelerator": lambda: rushlight.device("cpu"),
    "_debug_only_are_vmap_fallback_warnings_enabled": lambda: _warned_of["examples"],
    "_debug_only_display_vmap_fallback_warnings": lambda on: _warned_of.update(examples=bool(on)),
    "_data_address": lambda tensor: tensor.data_ptr(),
    "_is_alias_of": _is_alias_of,
    "_jit_override_can_fuse_on_cpu": lambda on: False,  # without TorchScript it changes nothing
    "_jit_override_can_fuse_on_gpu": lambda on: False,  # without TorchScript it changes nothing
    "_jit_set_nvfuser_enabled": lambda on: False,  # without TorchScript it changes nothing
    "_jit_set_nvfuser_guard_mode": lambda on: False,  # without TorchScript it changes nothing
    "_jit_set_profiling_mode": lambda on: False,  # without TorchScript it changes nothing
    "_jit_set_texpr_fuser_enabled": lambda on: False,  # without TorchScript it changes nothing
    "_TensorMeta": type(_C.Tensor), "Size": rushlight.Size,
    "OutOfMemoryError": rushlight.OutOfMemoryError, "AcceleratorError": rushlight.AcceleratorError,
    "_InferenceMode": rushlight.inference_mode,
    "_show_config": lambda: rushlight.__config__.show(),
    "_parallel_info": lambda: rushlight.__config__.parallel_info(),
    "_nn": _NN(), "_VariableFunctions": rushlight._VF,
    "_linalg": _Family("linalg"), "_special": _Family("special"), "_fft": _Family("fft"),
    "_DisableAutocast": _DisableAutocast,
    "PyTorchFileReader": PyTorchFileReader, "PyTorchFileWriter": PyTorchFileWriter,
    "_get_flash_sdp_enabled": cuda.flash_sdp_enabled, "_set_sdp_use_flash": cuda.enable_flash_sdp,
    "_get_math_sdp_enabled": cuda.math_sdp_enabled, "_set_sdp_use_math": cuda.enable_math_sdp,
    "_get_mem_efficient_sdp_enabled": cuda.mem_efficient_sdp_enabled,
    "_set_sdp_use_mem_efficient": cuda.enable_mem_efficient_sdp,
    "_get_cudnn_sdp_enabled": cuda.cudnn_sdp_enabled, "_set_sdp_use_cudnn": cuda.enable_cudnn_sdp,
    "_from_dlpack": rushlight.from_dlpack, "_to_dlpack": lambda tensor: tensor.__dlpack__(),
    "_group_tensors_by_device_and_dtype": _group_tensors_by_device_and_dtype,
    "_set_warn_on_accumulate_grad_stream_mismatch": graph.set_warn_on_accumulate_grad_stream_mismatch,
    "_set_override_stale_capture_stream": graph.set_override_stale_capture_stream,
    "_set_default_dtype": rushlight.set_default_dtype,
    "_set_default_tensor_type": rushlight.set_default_tensor_type,
    "_set_deterministic_algorithms": (
        lambda mode, *, warn_only=False: rushlight.use_deterministic_algorithms(mode, warn_only=warn_only)
    ),
    "_VariableFunctionsClass": type(rushlight._VF),
    "_has_storage": lambda tensor: tensor.layout is rushlight.strided,
    "_enter_dual_level": forward_ad.enter_dual_level,
    "_exit_dual_level": lambda level: forward_ad.exit_dual_level(level=level),
    "_SDPAParams": cuda.SDPAParams, "ScriptObject": ScriptObject,
}  # fmt: skip
