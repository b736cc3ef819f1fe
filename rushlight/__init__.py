"""Rushlight: PyTorch's gradient system as small, fast software. `import rushlight as torch`."""

from __future__ import annotations

import gc as _gc
import os as _os
import sys as _sys

try:
    from rushlight import _C
except ImportError as _error:
    _here = _os.path.dirname(_os.path.abspath(__file__))
    if any(name.startswith("_C.") and not name.endswith(".pyi") for name in _os.listdir(_here)):
        raise
    raise ImportError(
        f"{_here} is the source of Rushlight, in which nothing has been compiled. Run Python in another "
        "directory to use what `pip install .` or `make demo` installed, or `make dev` to compile it here."
    ) from _error

_OWN_VERSION = "0.1.0"

_C.set_package_directory(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)

from rushlight._annotations import TYPE_CHECKING as _TYPE_CHECKING  # noqa: E402
from rushlight._C import (  # noqa: E402
    Tensor,
    bfloat16,
    bits1x8,
    bits2x4,
    bits4x2,
    bits8,
    bits16,
    bool,
    can_cast,
    complex32,
    complex64,
    complex128,
    device,
    dtype,
    empty_cache,
    float4_e2m1fn_x2,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    get_default_dtype,
    get_num_threads,
    int1,
    int2,
    int3,
    int4,
    int5,
    int6,
    int7,
    int8,
    int16,
    int32,
    int64,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_inference_mode_enabled,
    memory_stats,
    promote_types,
    qint8,
    qint32,
    quint2x4,
    quint4x2,
    quint8,
    result_type,
    set_default_dtype,
    set_num_threads,
    uint1,
    uint2,
    uint3,
    uint4,
    uint5,
    uint6,
    uint7,
    uint8,
    uint16,
    uint32,
    uint64,
)
from rushlight._dtype_info import finfo, iinfo  # noqa: E402
from rushlight._printing import set_printoptions  # noqa: E402
from rushlight._size import Size  # noqa: E402

float, double, half, cfloat, cdouble, chalf = float32, float64, float16, complex64, complex128, complex32
short, int, long = int16, int32, int64

_C.set_size_type(Size)

# Nothing that is made here is garbage. To look for it again and again would take a tenth of the time, and to
# look once, when the collector is on again, as much: so all there is counts as old, as it does after a while.
_collecting = _gc.isenabled()
_gc.disable()
try:
    from rushlight import _exchange, _tensor, _tensor_subclasses
    from rushlight import ops as _operations
finally:
    if _collecting:
        if not _gc.get_freeze_count():  # what a program has frozen stays so
            _gc.freeze()
            _gc.unfreeze()
        _gc.enable()

globals().update(_operations.FUNCTIONS)

from rushlight import (  # noqa: E402
    _absent,
    _kinds,
    _settings,
    _tensor_types,
    autograd,
)
from rushlight._tensor_types import set_default_tensor_type, typename  # noqa: E402
from rushlight.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled  # noqa: E402
from rushlight.ops.create import (  # noqa: E402
    _mkldnn,
    jagged,
    layout,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from rushlight.ops.layout import (  # noqa: E402
    channels_last,
    channels_last_3d,
    contiguous_format,
    memory_format,
    preserve_format,
)
from rushlight.random import (  # noqa: E402
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

_kinds.mark(_operations.FUNCTIONS)
globals().update({name: getattr(_settings, name) for name in _settings.EXPORTED})
globals().update(_tensor_types.TYPES)
for _kind in (dtype, device, Size, layout, memory_format, finfo, iinfo):
    _C.name_in_errors(_kind, f"torch.{_kind.__name__}")
_C.name_in_errors(Generator, "torch._C.Generator")


is_grad_enabled = _C.shown_grad_enabled


def is_tensor(obj: object) -> bool:
    """Whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


from math import e, inf, nan, pi  # noqa: E402

newaxis = None


def _native_name(name):
    """What libraries look up in torch._C beside what the extension has."""
    if not name.startswith("__"):
        from rushlight._native_names import NAMES

        if name in NAMES:
            return NAMES[name]
        if name in ("_functorch", "_profiler"):  # modules that a program need not import
            from importlib import import_module

            return import_module(f"rushlight._C.{name}")
    raise AttributeError(f"module 'torch._C' has no attribute '{name}'", name=name, obj=_C)


_C.__getattr__ = _native_name
_C.__path__ = []  # torch._C._functorch and the like are modules; see _absent.py


class OutOfMemoryError(RuntimeError):
    """Raised when the memory of a device is exhausted."""


class AcceleratorError(RuntimeError):
    """Raised when an accelerator fails."""


legacy_contiguous_format = contiguous_format

# Submodules that a program may not need are imported when they are first named.
_LAZY = {
    "_logging",
    "_VF",
    "_vmap_internals",
    "torch_version",
    "_refs",
    "library",
    "futures",
    "func",
    "functional",
    "_utils",
    "__config__",
    "_tensor_str",
    "__future__",
    "accelerator",
    "amp",
    "backends",
    "compiler",
    "cpu",
    "cuda",
    "fft",
    "distributed",
    "fx",
    "jit",
    "distributions",
    "linalg",
    "masked",
    "mps",
    "mtia",
    "multiprocessing",
    "nested",
    "nn",
    "optim",
    "overrides",
    "profiler",
    "quasirandom",
    "return_types",
    "serialization",
    "signal",
    "sparse",
    "special",
    "storage",
    "testing",
    "types",
    "utils",
    "version",
    "xpu",
}
# Names that live in such a submodule.
_LAZY_NAMES = {
    "ScriptObject": "_script_object",
    "cond": "_compile",
    "GradScaler": "amp",
    "autocast": "amp",
    "clear_autocast_cache": "amp.autocast_mode",
    "get_autocast_cpu_dtype": "amp.autocast_mode",
    "get_autocast_dtype": "amp.autocast_mode",
    "get_autocast_gpu_dtype": "amp.autocast_mode",
    "is_autocast_cache_enabled": "amp.autocast_mode",
    "is_autocast_cpu_enabled": "amp.autocast_mode",
    "is_autocast_enabled": "amp.autocast_mode",
    "set_autocast_dtype": "amp.autocast_mode",
    "autocast_decrement_nesting": "amp.autocast_mode",
    "autocast_increment_nesting": "amp.autocast_mode",
    "set_autocast_cache_enabled": "amp.autocast_mode",
    "set_autocast_cpu_dtype": "amp.autocast_mode",
    "set_autocast_cpu_enabled": "amp.autocast_mode",
    "set_autocast_enabled": "amp.autocast_mode",
    "set_autocast_gpu_dtype": "amp.autocast_mode",
    "_disable_dynamo": "_compile",
    "TypedStorage": "storage",
    "UntypedStorage": "storage",
    "load": "serialization",
    "save": "serialization",
}
_LAZY_NAMES |= dict.fromkeys(
    (
        "alpha_dropout", "alpha_dropout_", "bilinear", "binary_cross_entropy_with_logits", "celu", "celu_",
        "cosine_embedding_loss", "cosine_similarity", "dropout", "dropout_", "embedding_bag",
        "feature_alpha_dropout",
        "feature_alpha_dropout_", "feature_dropout", "feature_dropout_", "hardshrink", "hinge_embedding_loss",
        "kl_div", "margin_ranking_loss", "pairwise_distance", "poisson_nll_loss", "prelu", "rrelu", "rrelu_",
        "selu", "selu_", "threshold_", "triplet_margin_loss",
    ),
    "_functional_names",
)  # fmt: skip

_LAZY_NAMES |= dict.fromkeys(
    ("sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum"), "_symbols"
)

_LAZY_NAMES |= dict.fromkeys(
    (
        "_conj", "_conj_copy", "_conj_physical", "_dim_arange", "_efficientzerotensor",
        "_is_all_true", "_is_any_true", "_is_zerotensor", "_log_softmax", "_neg_view", "_neg_view_copy",
        "_softmax", "_stack",
        "_unique", "_unique2", "_weight_norm",
        "compiled_with_cxx11_abi", "dsmm", "has_lapack", "has_mkl", "has_openmp", "has_spectral",
        "is_vulkan_available", "nuclear_norm", "set_anomaly_enabled", "spmm", "to_dlpack",
    ),
    "_private",
)  # fmt: skip

_LAZY_NAMES |= dict.fromkeys(
    (
        "_assert", "_assert_async", "_cast_Long", "_check", "_check_index", "_check_is_size",
        "_check_not_implemented", "_check_tensor_all", "_check_tensor_all_with", "_check_type",
        "_check_value", "_check_with", "_shape_as_tensor", "eig", "lstsq",
        "matrix_rank", "solve", "symeig",
    ),
    "_checks",
)  # fmt: skip
_LAZY_NAMES |= {
    "StorageBase": "_untyped_storage",
    "Future": "futures",
    "ScriptModule": "jit",
    "Tag": "_schema",
    "FunctionSchema": "_schema",
    "vmap": "func",
}
_LAZY_NAMES |= dict.fromkeys(("PyTorchFileReader", "PyTorchFileWriter"), "_archive_names")
_LAZY_NAMES |= dict.fromkeys(
    ("_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_"), "amp.grad_scaler"
)
_LAZY_NAMES |= dict.fromkeys(
    ("_native_multi_head_attention", "_transformer_encoder_layer_fwd"), "nn.functional.short_path"
)
_LAZY_NAMES |= dict.fromkeys(
    ("_fused_sdp_choice", "_scaled_dot_product_attention_math"), "nn.functional.attention"
)
_LAZY_NAMES |= dict.fromkeys(
    (
        "_addmm_activation", "_chunk_cat", "_compute_linear_combination", "_debug_has_internal_overlap",
        "_dirichlet_grad", "_has_compatible_shallow_copy_type", "_int_mm", "_lazy_clone",
        "_log_softmax_backward_data", "_make_dual",
        "_native_batch_norm_legit", "_pack_padded_sequence", "_pad_packed_sequence", "_segment_reduce",
        "_softmax_backward_data", "_standard_gamma_grad", "_unpack_dual", "_unsafe_index",
        "_unsafe_masked_index", "_unsafe_masked_index_put_accumulate",
    ),
    "_underscored",
)  # fmt: skip
_LAZY_NAMES |= dict.fromkeys(
    (
        "_test_autograd_multiple_dispatch", "_test_autograd_multiple_dispatch_view",
        "_test_autograd_multiple_dispatch_view_copy", "_test_functorch_fallback",
    ),
    "_test_operations",
)  # fmt: skip

if _TYPE_CHECKING:
    from rushlight import cuda, nn, optim, overrides, utils


def _found(name, value):
    """What stays in the module, to be found at once the next time."""
    return globals().setdefault(name, value)


def __getattr__(name):  # without types: mypy meets it before it knows any
    if name in _LAZY:
        from importlib import import_module

        return import_module(f"rushlight.{name}")
    if name in _LAZY_NAMES:
        from importlib import import_module

        return _found(name, getattr(import_module(f"rushlight.{_LAZY_NAMES[name]}"), name))
    if name.startswith("_foreach_"):
        from rushlight._foreach import FUNCTIONS

        if name in FUNCTIONS:
            return _found(name, FUNCTIONS[name])
    if name == "__all__":
        return _public_names()
    if name == "torch":  # torch.torch is torch
        return _sys.modules["rushlight"]
    if name == "__version__":  # in torch's place, that of the torch whose behaviour is followed here
        from rushlight.torch_version import followed

        return followed(_OWN_VERSION) if _in_torchs_place() else _OWN_VERSION
    if name == "_tensor_classes":
        return set(_tensor_types.TYPES.values())
    if name.endswith("Storage") or name == "_storage_classes":
        from rushlight.storage import CLASSES, LEGACY

        if name == "_storage_classes":
            return CLASSES
        if name == "Storage":
            return LEGACY["FloatStorage"]
        if name in LEGACY:
            return LEGACY[name]
    if name == "DispatchKey":
        return _C.DispatchKey
    for find in (_absent.top_level, _settings.deprecated):
        try:
            return find(name)
        except KeyError:
            pass
    raise AttributeError(
        f"module 'rushlight' has no attribute '{name}': Rushlight does not have torch.{name} (yet)"
    )


def __dir__():
    """All that __getattr__ finds as well: libraries copy the names that they see in torch."""
    from rushlight._absent_names import MODULES, TOP_LEVEL
    from rushlight._foreach import FUNCTIONS
    from rushlight.storage import LEGACY

    absent = [*TOP_LEVEL.split(), *(name for name in MODULES if "." not in name)]
    others = ["DispatchKey", "Storage", "__version__", "torch"]
    return sorted({*globals(), *_LAZY, *_LAZY_NAMES, *FUNCTIONS, *LEGACY, *absent, *others})


def _public_names():
    """What `from torch import *` brings: everything but the modules."""
    from types import ModuleType

    from rushlight._absent_names import MODULES

    modules = {"torch", *_LAZY, *MODULES, *(n for n, v in globals().items() if isinstance(v, ModuleType))}
    return [name for name in __dir__() if not name.startswith("_") and name not in modules]


def _in_torchs_place():
    return _sys.modules.get("torch") is _sys.modules["rushlight"]


class _UnderTorchsName:
    """Who writes `sys.modules["torch"] = rushlight` gets the modules below as `torch.nn`, not once more,
    and the version that libraries ask for."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if not name.startswith("torch.") or not _in_torchs_place():
            return None
        from rushlight._alias import TorchFinder

        return TorchFinder().find_spec(name, path, target)

    @staticmethod
    def find_distributions(context=None):
        if not _in_torchs_place():
            return iter(())
        from rushlight._alias import TorchFinder

        return TorchFinder().find_distributions(context)


_sys.meta_path.insert(0, _UnderTorchsName)

if "TORCH_LOGS" in _os.environ:
    __getattr__("_logging")._init_logs()
