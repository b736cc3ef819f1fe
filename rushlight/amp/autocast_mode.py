"""autocast: matrix products and convolutions run in bfloat16, delicate functions in float32.

The first autocast block of the process hooks the functions in the two tables below (native/python/
call_hooks.cpp), the end of the last one restores them: outside, autocast costs nothing. The state is per
thread, so a hooked function called by another thread does what it always does.
"""

from __future__ import annotations

import functools
import importlib
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import rushlight
from rushlight import _C
from rushlight._put_back import keep

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

# By the places where torch has them: a name that is not there (yet) is left out.
_LOWER = {
    "rushlight": "matmul mm bmm addmm baddbmm addbmm chain_matmul einsum tensordot conv_tbc matrix_power "
    "prelu lstm",
    "rushlight.linalg": "vecdot multi_dot matmul matrix_power",
    "rushlight.nn.functional": "linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
    "conv_transpose3d scaled_dot_product_attention prelu",
}
_FLOAT32 = {
    "rushlight": "prod trace cdist quantile nanquantile polar view_as_complex inverse pinverse cholesky "
    "cholesky_inverse cholesky_solve svd qr lstsq stft lu_solve geqrf orgqr ormqr triangular_solve",
    "rushlight.linalg": "cholesky cholesky_ex cond eigh eigvalsh householder_product inv inv_ex lstsq lu "
    "lu_factor lu_solve matrix_rank qr solve svd svdvals tensorinv tensorsolve eig eigvals",
    "rushlight.fft": "fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft",
    "rushlight.nn.functional": "mse_loss l1_loss smooth_l1_loss huber_loss cross_entropy nll_loss "
    "binary_cross_entropy binary_cross_entropy_with_logits kl_div cosine_embedding_loss "
    "margin_ranking_loss triplet_margin_loss hinge_embedding_loss multi_margin_loss "
    "multilabel_margin_loss poisson_nll_loss soft_margin_loss ctc_loss avg_pool3d adaptive_avg_pool3d "
    "grid_sample max_pool3d max_unpool2d max_unpool3d adaptive_max_pool3d fractional_max_pool2d "
    "fractional_max_pool3d",
}
_PADS = {"rushlight.nn.functional": "pad"}
_WIDEST = {"rushlight": "cat stack index_copy concat concatenate"}


class _State:
    """Of one thread."""

    def __init__(self) -> None:
        self.enabled = False
        self.dtype = _C.bfloat16
        self.cache_enabled = True
        self.depth = 0
        self.held = 0  # how many blocks of this thread hold the functions hooked
        self.by_hand = False  # switched on by set_autocast_enabled, outside of any block
        # Whether it is on for devices that there are not, and in which dtype: remembered only.
        self.elsewhere: dict[str, list] = {}
        # Parameters in the lower precision, for the length of the outermost block.
        self.cache: dict[int, tuple[Any, Any]] = {}


class _PerThread(threading.local):
    def __init__(self) -> None:
        self.state = _State()


_this_thread = _PerThread()
_lock = threading.Lock()
_blocks = 0  # of all threads
_kinds: dict[int, str] = {}  # id of a function -> which table it is in


def _functions() -> dict[int, tuple[Any, str]]:
    found: dict[int, tuple[Any, str]] = {}
    for kind, table in (("lower", _LOWER), ("float32", _FLOAT32), ("widest", _WIDEST), ("pad", _PADS)):
        for module_name, names in table.items():
            try:
                module = importlib.import_module(module_name)
            except ImportError:
                continue
            for name in names.split():
                # torch.mm and Tensor.mm are two functions.
                for owner in (module, _C.Tensor) if module is rushlight else (module,):
                    function = getattr(owner, name, None)
                    if isinstance(function, (_C.Function, _C.Primitive)):
                        found[id(function)] = function, kind
    return found


def _choose() -> None:
    functions = _functions()
    _kinds.update({key: kind for key, (_, kind) in functions.items()})
    _C.choose_calls(tuple(function for function, _ in functions.values()), _rewrite, rushlight.matmul)


# What a library had passed by: operations by their names.
passed_by: list[str] = []


def _rewrite(function: Any, arguments: list) -> list:
    state = _this_thread.state
    if passed_by and function.__name__ in passed_by:
        return arguments
    return _REWRITTEN[_kinds[id(function)]](arguments, state) if state.enabled else arguments


def _to_lower(arguments: list, state: _State) -> list:
    dtype = state.dtype
    return [_lowered(value, dtype, state) for value in arguments]


def _to_float32(arguments: list, state: _State) -> list:
    return [_lowered(value, _C.float32, state) for value in arguments]


def _to_widest(arguments: list, state: _State) -> list:
    widest = _widest(arguments, state.dtype)
    return arguments if widest is None else [_lowered(value, widest, state) for value in arguments]


def _pad_in_float32(arguments: list, state: _State) -> list:
    return _to_float32(arguments, state) if _mirrors(arguments) else arguments


_REWRITTEN = {
    "lower": _to_lower, "float32": _to_float32, "widest": _to_widest, "pad": _pad_in_float32
}  # fmt: skip


def _mirrors(arguments: list) -> bool:
    """Whether a call of `pad` is for one of the modes that run in float32."""
    widths = [value for value in arguments if isinstance(value, (tuple, list))]
    flat = bool(widths) and len(widths[0]) <= 4
    words = [value for value in arguments if isinstance(value, str)]
    return "replicate" in words or ("reflect" in words and flat)


# What is cast: every floating dtype but float64.
_CAST = frozenset(
    value for value in vars(_C).values()
    if isinstance(value, _C.dtype) and value.is_floating_point and value is not _C.float64
)  # fmt: skip
_HALVES = (_C.float16, _C.bfloat16)


def _widest(values: Any, lower: _C.dtype) -> Any:
    """float32 if tensors of it and of the lower precision meet; None if there is nothing to do."""
    dtypes = set()
    for value in values:
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(one, _C.Tensor):
                dtypes.add(one.dtype)
                # After one in float32 the others do not matter; before it torch knows one lower precision.
                if (
                    one.dtype in _HALVES
                    and one.dtype != _this_thread.state.dtype
                    and _C.float32 not in dtypes
                ):
                    raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
    return _C.float32 if _C.float32 in dtypes and len(dtypes) > 1 and _C.float64 not in dtypes else None


def _lowered(value: Any, dtype: _C.dtype, state: _State) -> Any:
    if isinstance(value, _C.Tensor):
        own = value.dtype
        if own is dtype or own not in _CAST:
            return value
        cast = _C.ops.to_dtype if type(value) is _C.Tensor else _C.Tensor.to  # past the arguments of `to`
        if not value.requires_grad:
            return cast(value, dtype)
        keep = state.cache_enabled and dtype is state.dtype and value.is_leaf and _C.is_grad_enabled()
        if not keep:
            return cast(value, dtype)
        known = state.cache.get(id(value))
        if known is None:
            known = state.cache[id(value)] = value, cast(value, dtype)
        return known[1]
    if isinstance(value, (list, tuple)) and any(isinstance(one, _C.Tensor) for one in value):
        return type(value)(_lowered(one, dtype, state) for one in value)
    return value


def as_product(value: Any) -> Any:
    """The dtype that autocast gives a matrix product of which this is the value."""
    state = _this_thread.state
    return _lowered(value, state.dtype, state) if state.enabled else value


class _DisableAutocast:
    """Inside, autocast is off."""

    def __enter__(self) -> _DisableAutocast:
        self._before = _this_thread.state.enabled
        _this_thread.state.enabled = False
        return self

    def __exit__(self, *error: object) -> None:
        _this_thread.state.enabled = self._before


def _cast(value: Any, device_type: str, dtype: _C.dtype) -> Any:
    """A value, or what a container holds, with its floating tensors in another dtype."""
    if isinstance(value, _C.Tensor):
        fits = value.is_floating_point() and value.device.type == device_type and value.dtype != _C.float64
        return value.to(dtype) if fits else value
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, Iterable) and hasattr(value, "__len__"):
        items = [_cast(each, device_type, dtype) for each in value]
        return type(value)(items) if isinstance(value, (list, tuple)) else items
    return value


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast works on a kind of device.

    >>> rushlight.amp.is_autocast_available("cpu")
    True
    """
    kind = _C.as_device(device_type).type
    return kind == "cpu" or kind in _DEFAULTS


def _hold() -> None:
    """One more reason for the functions to be hooked."""
    global _blocks
    with _lock:
        if _blocks == 0:
            if not _kinds:
                _choose()
            _C.hook_calls(True)
        _blocks += 1


def _release() -> None:
    global _blocks
    with _lock:
        _blocks -= 1
        if _blocks == 0:
            _C.hook_calls(False)


def _elsewhere(kind: str, refusal: str) -> list:
    found = _this_thread.state.elsewhere.get(kind)
    if found is None:
        if kind not in _DEFAULTS:
            raise RuntimeError(refusal)
        found = _this_thread.state.elsewhere[kind] = [False, _DEFAULTS[kind]]
    return found


_DEFAULTS = dict.fromkeys(("cuda", "xpu", "mps", "mtia", "ipu", "privateuseone"), _C.float16)
_DEFAULTS |= dict.fromkeys(("hpu", "xla", "maia"), _C.bfloat16)
_UNKNOWN = "unknown device type for autocast in get_autocast_dispatch_key_from_device_type"


class autocast:
    """Inside the block (or the decorated function), matrix products and convolutions compute in bfloat16.

    >>> x = rushlight.ones(2, 2)
    >>> with rushlight.autocast("cpu", dtype=rushlight.bfloat16):
    ...     (x @ x).dtype
    torch.bfloat16
    """

    def __init__(
        self,
        device_type: str,
        dtype: _C.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device, self._kind = device_type, _C.as_device(device_type).type
        self.fast_dtype = dtype or get_autocast_dtype(device_type)
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if self.device == "cuda" and enabled:
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2)
            enabled = False
        elif self._kind != "cpu" and self._kind not in _DEFAULTS:
            raise RuntimeError(f"User specified an unsupported autocast device_type '{self.device}'")
        elif enabled and self.fast_dtype not in (_C.bfloat16, _C.float16):
            name = device_type.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled

    def __enter__(self) -> autocast:
        keep(_switched, _put_back)
        state = _this_thread.state
        _hold_for(state.held + 1)
        self._before = state.enabled, state.dtype, state.cache_enabled
        if self._kind == "cpu":
            state.enabled, state.dtype = self._enabled, self.fast_dtype
            state.cache_enabled = self._cache_enabled
        else:
            self._there = _elsewhere(self._kind, _UNKNOWN)
            state.elsewhere[self._kind] = [self._enabled, self.fast_dtype]
        state.depth += 1
        return self

    def __exit__(self, *error: object) -> None:
        keep(_switched, _put_back)
        state = _this_thread.state
        state.enabled, state.dtype, state.cache_enabled = self._before
        if self._kind != "cpu":
            state.elsewhere[self._kind] = self._there
        state.depth -= 1
        if state.depth == 0:
            state.cache.clear()
        _hold_for(max(state.held - 1, 0))  # a block that ended with a backward is left already

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.device, self.fast_dtype, self._enabled, self._cache_enabled):
                return function(*args, **kwargs)

        return inside


# ---- the state as functions of the namespace


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on in this thread."""
    kind = _C.as_device(device_type).type
    return _this_thread.state.enabled if kind == "cpu" else _elsewhere(kind, _UNKNOWN)[0]


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Switches autocast of this thread on or off, for good; with a bool alone, that of a GPU."""
    if enabled is None:
        device_type, enabled = "cuda", bool(device_type)
    keep(_switched, _put_back)
    kind = _C.as_device(device_type).type
    if kind != "cpu":
        _elsewhere(kind, _UNKNOWN)[0] = enabled
        return
    _this_thread.state.enabled = enabled
    _switch_by_hand(enabled)


def _switch_by_hand(enabled: bool) -> None:
    if enabled != _this_thread.state.by_hand:
        _this_thread.state.by_hand = enabled
        _hold() if enabled else _release()


def _hold_for(blocks: int) -> None:
    """So many blocks of this thread hold the functions hooked; all of them count for one."""
    state = _this_thread.state
    if (blocks > 0) != (state.held > 0):
        _hold() if blocks else _release()
    state.held = blocks


def _switched() -> tuple:
    elsewhere = {kind: list(pair) for kind, pair in _this_thread.state.elsewhere.items()}
    return (
        _this_thread.state.enabled,
        _this_thread.state.dtype,
        elsewhere,
        _this_thread.state.by_hand,
        _this_thread.state.held,
    )


def _put_back(switched: tuple) -> None:
    _this_thread.state.enabled, _this_thread.state.dtype, _this_thread.state.elsewhere, by_hand, held = (
        switched
    )
    _switch_by_hand(by_hand)
    _hold_for(held)


def get_autocast_dtype(device_type: str) -> _C.dtype:
    """The dtype autocast uses on a kind of device."""
    kind = _C.as_device(device_type).type
    return _this_thread.state.dtype if kind == "cpu" else _elsewhere(kind, "unsupported scalarType")[1]


def set_autocast_dtype(device_type: str, dtype: _C.dtype) -> None:
    """Chooses the dtype autocast uses."""
    keep(_switched, _put_back)
    kind = _C.as_device(device_type).type
    if kind == "cpu":
        _this_thread.state.dtype = dtype
    else:
        _elsewhere(kind, "unsupported scalarType")[1] = dtype


def _deprecated(old: str, new: str) -> None:
    text = f"torch.{old} is deprecated. Please use torch.{new} instead."
    warnings.warn(text, DeprecationWarning, stacklevel=3)


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Switches autocast of this thread on or off, for good."""
    _deprecated("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)")
    set_autocast_enabled("cpu", enabled)


def set_autocast_cpu_dtype(dtype: _C.dtype) -> None:
    """Chooses the dtype autocast uses on the CPU."""
    _deprecated("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")
    _this_thread.state.dtype = dtype


def set_autocast_gpu_dtype(dtype: _C.dtype) -> None:
    """Chooses the dtype autocast would use on a GPU."""
    _deprecated("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)")
    set_autocast_dtype("cuda", dtype)


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Whether autocast keeps parameters in the lower precision for the length of the block."""
    _this_thread.state.cache_enabled = enabled


def autocast_increment_nesting() -> int:
    """Counts a block that is entered; the cache lasts until the outermost is left."""
    _this_thread.state.depth += 1
    return _this_thread.state.depth


def autocast_decrement_nesting() -> int:
    """Counts a block that is left. Whoever reaches 0 clears the cache."""
    _this_thread.state.depth -= 1
    return _this_thread.state.depth


def is_autocast_cpu_enabled() -> bool:
    """Whether autocast is on in this thread."""
    _deprecated("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return _this_thread.state.enabled


def get_autocast_cpu_dtype() -> _C.dtype:
    """The dtype autocast uses on the CPU."""
    _deprecated("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return _this_thread.state.dtype


def get_autocast_gpu_dtype() -> _C.dtype:
    """The dtype autocast would use on a GPU."""
    _deprecated("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return get_autocast_dtype("cuda")


def is_autocast_cache_enabled() -> bool:
    """Whether autocast keeps parameters in the lower precision for the length of the block."""
    return _this_thread.state.cache_enabled


def clear_autocast_cache() -> None:
    """Forgets the parameters in the lower precision."""
    _this_thread.state.cache.clear()


def custom_fwd(fwd: Callable | None = None, *, device_type: str, cast_inputs: Any = None) -> Callable:
    """Decorates `forward` of an autograd.Function for use under autocast."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    forward: Callable = fwd

    @functools.wraps(forward)
    def decorated(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = is_autocast_enabled(device_type)
        if cast_inputs is None or not ctx._fwd_used_autocast:
            return forward(ctx, *args, **kwargs)
        ctx._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            args = tuple(_cast(value, device_type, cast_inputs) for value in args)
            return forward(ctx, *args, **_cast(kwargs, device_type, cast_inputs))

    return decorated


def custom_bwd(bwd: Callable | None = None, *, device_type: str) -> Callable:
    """Decorates `backward` of an autograd.Function: it runs under the autocast state of its forward."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    backward: Callable = bwd

    @functools.wraps(backward)
    def decorated(ctx: Any, *args: Any) -> Any:
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return backward(ctx, *args)

    return decorated
