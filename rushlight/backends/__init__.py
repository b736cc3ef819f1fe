"""torch.backends: which libraries compute, and how they may.

Programs set the switches of libraries that run on other devices (cudnn.benchmark, cuda.matmul.allow_tf32).
They are kept, can be read back, and change nothing here: every algorithm is deterministic and in full
precision.
"""

from __future__ import annotations

from rushlight.backends import (
    cpu,
    cuda,
    cudnn,
    cusparselt,
    kleidiai,
    mha,
    mkl,
    mkldnn,
    mps,
    nnpack,
    openmp,
    opt_einsum,
    python_native,
    quantized,
    xnnpack,
)

__all__ = [
    "cpu", "cuda", "cudnn", "cusparselt", "kleidiai", "mha", "mkl", "mkldnn", "mps", "nnpack", "openmp",
    "opt_einsum", "python_native", "quantized", "xnnpack",
]  # fmt: skip

fp32_precision = "none"
_frozen = False


def flags_frozen() -> bool:
    """Whether the switches of this package may no longer be set as attributes."""
    return _frozen


def disable_global_flags() -> None:
    """From now on switches are set by the context managers (`flags`) only; asking is all there is here."""
    global _frozen
    _frozen = True
