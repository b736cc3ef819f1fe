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


_COMPILERS = {
    "linux": ["g++", "gcc", "gnu-c++", "gnu-cc", "clang++", "clang"],
    "darwin": ["clang++", "clang"],
}


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Whether this is a compiler of the kind that torch's extensions for this platform are built with."""
    import os
    import shutil
    import subprocess

    if IS_WINDOWS:
        return True
    found = shutil.which(compiler)
    if found is None:
        return False
    accepted = _COMPILERS["darwin" if IS_MACOS else "linux"]
    if os.path.basename(os.path.realpath(found)) in accepted:
        return True
    said = subprocess.run([found, "-v"], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    about = said.stdout + said.stderr
    return any(name in about for name in ("gcc version", "clang version"))
