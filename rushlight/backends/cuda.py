"""The switches of CUDA's libraries, which are not here, and of the kernels of attention."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from rushlight._warn import warn

_attention = {"cudnn": True, "flash": True, "mem_efficient": True, "math": True, "overrideable": True}


def is_built() -> bool:
    """Whether CUDA is compiled in: no.

    >>> rushlight.backends.cuda.is_built()
    False
    """
    return False


class _Matmul:
    """How cuBLAS may round."""

    def __init__(self) -> None:
        self.allow_tf32 = False
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True
        self.fp32_precision = "none"

    def __setattr__(self, name: str, value: Any) -> None:
        known = (
            "allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction",
            "allow_fp16_accumulation", "fp32_precision",
        )  # fmt: skip
        if name not in known:
            raise AttributeError(f"Unknown attribute {name}")
        object.__setattr__(self, name, value)


matmul = _Matmul()


def flash_sdp_enabled() -> bool:
    """Whether attention may use flash attention; here one kernel computes all of it."""
    return _attention["flash"]


def mem_efficient_sdp_enabled() -> bool:
    """Whether attention may use the memory-efficient kernel."""
    return _attention["mem_efficient"]


def math_sdp_enabled() -> bool:
    """Whether attention may be composed of matrix products."""
    return _attention["math"]


def cudnn_sdp_enabled() -> bool:
    """Whether attention may use cuDNN."""
    return _attention["cudnn"]


def enable_flash_sdp(enabled: bool) -> None:
    """Allows flash attention."""
    _allow("flash", enabled)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Allows the memory-efficient kernel of attention."""
    _allow("mem_efficient", enabled)


def enable_math_sdp(enabled: bool) -> None:
    """Allows attention composed of matrix products."""
    _allow("math", enabled)


def enable_cudnn_sdp(enabled: bool) -> None:
    """Allows cuDNN's attention."""
    _allow("cudnn", enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Whether attention composed of matrix products may add up in half precision; here it never does."""
    return _reduction["allowed"]


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Allows sums in half precision to attention composed of matrix products."""
    _reduction["allowed"] = bool(enabled)


_reduction = {"allowed": False}


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[dict[Any, Any]]:
    """The older form of `nn.attention.sdpa_kernel`."""
    from rushlight.nn.attention import SDPBackend, sdpa_kernel

    warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be "
        "removed. Please see `torch.nn.attention.sdpa_kernel()` for the new context manager, with updated "
        "signature.",
        FutureWarning,
    )
    allowed = {
        SDPBackend.FLASH_ATTENTION: enable_flash,
        SDPBackend.EFFICIENT_ATTENTION: enable_mem_efficient,
        SDPBackend.MATH: enable_math,
        SDPBackend.CUDNN_ATTENTION: enable_cudnn,
    }
    with sdpa_kernel([backend for backend, enabled in allowed.items() if enabled]) as context:
        yield context


class SDPAParams:
    """The arguments of an attention, to ask whether a kernel would take them."""

    def __init__(
        self,
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any,
        dropout: float,
        is_causal: bool,
        enable_gqa: bool,
    ) -> None:
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = dropout, is_causal, enable_gqa


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether CUDA's flash attention takes these arguments: there is none."""
    return False


def can_use_efficient_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether CUDA's memory-efficient attention takes these arguments: there is none."""
    return False


def can_use_cudnn_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether cuDNN's attention takes these arguments: there is none."""
    return False


class _Preference:
    """Which of CUDA's libraries a family of functions should use: kept, and none is used."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names, self.chosen = names, names[0]

    def __call__(self, backend: str | None = None) -> str:
        if backend is not None:
            if backend not in self.names:
                raise RuntimeError(f"Unknown input value. Choose from: {', '.join(self.names)}.")
            self.chosen = backend
        return self.chosen


preferred_linalg_library = _Preference(("default", "cusolver", "magma"))
preferred_blas_library = _Preference(("default", "cublas", "hipblas", "cublaslt", "hipblaslt", "ck"))
preferred_rocm_fa_library = _Preference(("default", "aotriton", "ck"))


def is_flash_attention_available() -> bool:
    """Whether flash attention is compiled in for CUDA: no."""
    return False


def is_ck_sdpa_available() -> bool:
    """Whether AMD's composable kernels are there: no."""
    return False


def _allow(name: str, enabled: bool) -> None:
    """Allow or forbid a kernel of attention by its name."""
    from rushlight.nn.functional.attention import _restricted

    _attention[name] = bool(enabled)
    if enabled:
        _restricted.discard(name)
    else:
        _restricted.add(name)


def __getattr__(name: str) -> Any:
    if name == "SDPBackend":  # which is defined where it is used
        from rushlight.nn.attention import SDPBackend

        return SDPBackend
    raise AttributeError(f"module 'torch.backends.cuda' has no attribute '{name}'", name=name)
