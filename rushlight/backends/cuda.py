"""The switches of CUDA's libraries, which are not here, and of the kernels of attention."""

from __future__ import annotations

from typing import Any

_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


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
    _attention["flash"] = bool(enabled)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Allows the memory-efficient kernel of attention."""
    _attention["mem_efficient"] = bool(enabled)


def enable_math_sdp(enabled: bool) -> None:
    """Allows attention composed of matrix products."""
    _attention["math"] = bool(enabled)


def enable_cudnn_sdp(enabled: bool) -> None:
    """Allows cuDNN's attention."""
    _attention["cudnn"] = bool(enabled)


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
