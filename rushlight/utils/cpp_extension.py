"""torch.utils.cpp_extension: extensions against torch's C++ interface, which Rushlight does not have."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

CUDA_HOME = ROCM_HOME = SYCL_HOME = CUDNN_HOME = None
IS_WINDOWS = sys.platform == "win32"
IS_MACOS = sys.platform.startswith("darwin")
IS_LINUX = sys.platform.startswith("linux")
IS_HIP_EXTENSION = False


def _missing(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(
        "C++ extensions are not implemented: Rushlight does not have the C++ interface of torch (ATen)"
    )


load = load_inline = CppExtension = CUDAExtension = SyclExtension = include_paths = library_paths = _missing


class BuildExtension:
    """Builds extensions in setup.py; not implemented."""

    with_options = classmethod(_missing)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _missing()


def is_ninja_available() -> bool:
    """Whether the build tool ninja is installed."""
    import shutil

    return shutil.which("ninja") is not None
