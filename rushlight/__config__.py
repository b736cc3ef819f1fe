"""How this package was built."""

from __future__ import annotations

import rushlight
from rushlight import _C

__all__ = ["parallel_info", "show"]


def show() -> str:
    """What the kernels were built with.

    >>> "Rushlight" in rushlight.__config__.show()
    True
    """
    return (
        f"Rushlight built with:\n  - C++ Version: 202002\n  - OpenBLAS (BLAS and LAPACK)\n  - pocketfft\n"
        f"  - CPU capability usage: {_C.cpu_capability}\n"
        f"  - Build settings: USE_CUDA=OFF, USE_MKL=OFF, USE_MKLDNN=OFF, USE_OPENMP=OFF, USE_ROCM=OFF\n"
    )


def parallel_info() -> str:
    """How many threads the kernels use."""
    return f"Rushlight:\n\tget_num_threads() : {rushlight.get_num_threads()}\n"
