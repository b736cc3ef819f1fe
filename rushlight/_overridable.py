"""What `__torch_function__` can override, found by looking through the namespaces.

`names()` is the one table: every function, method and attribute that asks, with the name that torch calls it
by. Everything else here is a view of it.
"""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any

import rushlight
from rushlight import _C

_MODULES = ("functional", "nn.functional", "nn.init", "linalg", "fft", "special")
_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.FunctionType, _C.Function)
# What belongs to Python rather than to tensors, and what makes tensors of a given class.
_PLAIN_METHODS = {
    "__class__", "__delattr__", "__delitem__", "__dir__", "__getattribute__", "__getstate__", "__hash__",
    "__init__", "__init_subclass__", "__iter__", "__new__", "__setattr__", "__sizeof__", "__str__",
    "__subclasshook__", "__torch_function__", "__torch_dispatch__", "_make_subclass",
    "_make_wrapper_subclass", "as_subclass", "reinforce",
}  # fmt: skip
_FACTORY_METHODS = {
    "new", "new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros", "stride",
    "unflatten",
}  # fmt: skip
# Functions without a tensor among their arguments, or whose arguments are data.
_IGNORED = {
    "are_deterministic_algorithms_enabled", "arange", "as_strided", "as_tensor", "asarray", "bartlett_window",
    "blackman_window", "broadcast_shapes", "can_cast", "compile", "empty", "empty_permuted", "empty_strided",
    "eye", "fill", "from_dlpack", "from_file", "from_numpy", "frombuffer", "full", "get_default_device",
    "get_default_dtype", "get_num_threads", "get_rng_state", "hamming_window", "hann_window", "initial_seed",
    "is_storage", "is_tensor", "kaiser_window", "linspace", "load", "logspace", "manual_seed", "normal",
    "ones", "promote_types", "rand", "randint", "randint_like", "randn", "randn_like", "rand_like",
    "randperm", "range", "result_type", "save", "scalar_tensor", "seed", "set_default_device",
    "set_default_tensor_type", "set_num_threads", "set_printoptions", "set_rng_state", "tensor",
    "tril_indices", "triu_indices", "typename", "use_deterministic_algorithms", "vander", "zeros",
    "calculate_gain", "fftfreq", "rfftfreq", "upsample", "upsample_bilinear", "upsample_nearest", "tanh",
    "sigmoid", "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor",
    "sparse_csc_tensor", "sparse_csr_tensor",
}  # fmt: skip
_SETTINGS = (
    "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache", "device", "dtype",
    "enable_grad", "finfo", "get_autocast_dtype", "get_deterministic_debug_mode", "get_device_module",
    "get_float32_matmul_precision", "get_num_interop_threads", "iinfo", "inference_mode",
    "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "is_autocast_cache_enabled", "is_autocast_enabled",
    "is_deterministic_algorithms_warn_only_enabled", "is_grad_enabled", "is_inference_mode_enabled",
    "is_warn_always_enabled", "layout", "memory_format", "no_grad", "qscheme", "set_anomaly_enabled",
    "set_autocast_cache_enabled", "set_autocast_dtype", "set_autocast_enabled",
    "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal", "set_grad_enabled",
    "set_num_interop_threads", "set_warn_always", "vmap",
)  # fmt: skip
_OVERRIDDEN_ANYWAY = {
    "torch.tanh", "torch.sigmoid", "torch.Tensor.tanh", "torch.Tensor.sigmoid", "torch.linalg.vander",
}  # fmt: skip
# Functions in Python that ask, which no namespace lists.
_ASKING = (
    "nn.init.uniform_", "nn.init.normal_", "nn.init.constant_", "nn.init.kaiming_uniform_", "sym_float",
    "sym_int", "sym_max", "sym_min", "sym_not", "sym_ite", "sym_sum", "sym_sqrt",
)  # fmt: skip


def _namespaces():
    yield "torch", rushlight
    for path in _MODULES:
        yield f"torch.{path}", functools.reduce(getattr, path.split("."), rushlight)


def _is_attribute(value: Any) -> bool:
    return inspect.isgetsetdescriptor(value) or isinstance(value, property)


@functools.cache
def names() -> dict[Any, str]:
    """Every callable that asks, with its name; an attribute stands for its `__get__` and `__set__`."""
    found: dict[Any, str] = {}
    for prefix, module in _namespaces():
        for name in sorted(set(dir(module)) | set(rushlight._LAZY_NAMES if module is rushlight else ())):
            value = getattr(module, name, None)
            inner = prefix == "torch.nn.init" or name.startswith("sym_")
            asks = isinstance(value, _C.Function) or (inner and inspect.isfunction(value))
            if asks and not name.startswith("_"):
                found[value] = f"{prefix}.{name}"
    older = {"__nonzero__", "__long__", "__div__", "__rdiv__", "__idiv__"}
    # Names that begin with a letter first, those of older Pythons last.
    for name in sorted(dir(_C.Tensor), key=lambda name: (name in older, name.startswith("_"))):
        value = inspect.getattr_static(_C.Tensor, name)
        if isinstance(value, _METHODS) and name not in ("__doc__", "__module__"):
            found.setdefault(getattr(_C.Tensor, name), f"torch.Tensor.{name}")
        elif _is_attribute(value) and not name.startswith("__"):
            found[value.__get__] = f"torch.Tensor.{name}.__get__"
            found[value.__set__] = f"torch.Tensor.{name}.__set__"
    return found


def name_of(function: Any) -> str | None:
    if function is _C.device:  # a type that modes are asked about
        return "torch.device"
    try:
        return names().get(function)
    except TypeError:  # not hashable
        return None


@functools.cache
def tensor_methods() -> set[Any]:
    return {function for function, name in names().items() if name.startswith("torch.Tensor.")}


def _is_ignored(name: str) -> bool:
    last = name.rpartition(".")[2]
    if name.startswith("torch.Tensor."):
        return last in _PLAIN_METHODS or last in _FACTORY_METHODS or last in ("__set__", "__delete__")
    return (last in _IGNORED and name not in _OVERRIDDEN_ANYWAY) or last.startswith("_")


def by_namespace() -> dict[Any, list[Any]]:
    spaces = dict(_namespaces())
    spaces.pop("torch.nn.init")
    found: dict[Any, list[Any]] = {space: [] for space in (*spaces.values(), _C.Tensor)}
    for function, name in names().items():
        prefix, _, last = name.rpartition(".")
        if _is_ignored(name) or name.removeprefix("torch.") in _ASKING or prefix == "torch.nn.init":
            continue
        if last == "__get__":
            found[inspect.getattr_static(_C.Tensor, name.split(".")[2])] = [function]
        else:
            found[spaces.get(prefix, _C.Tensor)].append(function)
    return found


def ignored() -> set[Any]:
    found = {function for function, name in names().items() if _is_ignored(name)}
    found |= {
        getattr(rushlight, name)
        for name in (*(_IGNORED - {"tanh", "sigmoid"}), *_SETTINGS)
        if hasattr(rushlight, name)
    }
    return found | {getattr(_C.Tensor, name) for name in _PLAIN_METHODS if hasattr(_C.Tensor, name)}


def dummies() -> dict[Any, Any]:
    """A function that returns -1 for each overridable one, with its signature."""
    asking = [functools.reduce(getattr, path.split("."), rushlight) for path in _ASKING]
    found = [function for group in by_namespace().values() for function in group]
    return {function: _dummy(function) for function in (*found, *asking)}


def _dummy(function: Any) -> Any:
    def override(*args, **kwargs):
        return -1

    try:
        signature = inspect.signature(function)
    except ValueError:
        signature = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)])
    if getattr(function, "__name__", "") == "__get__":
        signature = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)])
    if getattr(function, "__name__", "") in ("gru", "lstm", "rnn_relu", "rnn_tanh"):  # which have two forms
        names = "input hx params has_biases num_layers dropout train bidirectional batch_first"
        signature = inspect.Signature(
            [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names.split()]
        )
    override.__signature__ = signature  # type: ignore[attr-defined]
    override.__name__ = override.__qualname__ = getattr(function, "__name__", "override")
    return override
