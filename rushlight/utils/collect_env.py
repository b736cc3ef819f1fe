"""What runs where: the text to put into a report about a problem.

python -m rushlight.utils.collect_env
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib import metadata
from typing import Any, NamedTuple

_UNKNOWN = "Could not collect"
_PACKAGES = ("rushlight", "numpy", "scipy", "mypy", "pyopencl", "mpi4py", "safetensors", "torch")


class SystemEnv(NamedTuple):
    """The answers, by name. What is about devices that Rushlight does not know is None."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str | None
    gcc_version: str | None
    clang_version: str | None
    cmake_version: str | None
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    cuda_runtime_version: str | None
    cuda_module_loading: str
    nvidia_driver_version: str | None
    nvidia_gpu_models: str | None
    cudnn_version: str | None
    is_xpu_available: str
    pip_version: str
    pip_packages: str
    conda_packages: str | None
    hip_compiled_version: str
    hip_runtime_version: str
    miopen_runtime_version: str
    caching_allocator_config: str
    is_xnnpack_available: str
    cpu_info: str


def run(command: Any) -> tuple[int, str, str]:
    """Runs a command: its exit code, output and errors; 127 if there is no such command."""
    try:
        done = subprocess.run(
            command, shell=isinstance(command, str), capture_output=True, text=True, check=False
        )
    except OSError as error:
        return 127, "", str(error)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def _first_line(*command: str) -> str | None:
    code, out, _ = run(list(command))
    return out.split("\n")[0] if code == 0 and out else None


def _packages() -> str:
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"[pip3] {name}=={metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return "\n".join(found)


def _cpu() -> str:
    code, out, _ = run(["lscpu"])
    return out if code == 0 else f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors"


def get_env_info() -> SystemEnv:
    """Asks the system."""
    import rushlight

    bits = 64 if sys.maxsize > 2**32 else 32
    return SystemEnv(
        torch_version=rushlight.__version__,
        is_debug_build="False",
        cuda_compiled_version=None,
        gcc_version=_first_line("gcc", "--version"),
        clang_version=_first_line("clang", "--version"),
        cmake_version=_first_line("cmake", "--version"),
        os=f"{platform.system()} {platform.release()} ({platform.machine()})",
        libc_version="-".join(platform.libc_ver()) or "N/A",
        python_version=f"{sys.version.replace(chr(10), ' ')} ({bits}-bit runtime)",
        python_platform=platform.platform(),
        is_cuda_available=str(rushlight.cuda.is_available()),
        cuda_runtime_version=None,
        cuda_module_loading="N/A",
        nvidia_driver_version=None,
        nvidia_gpu_models=None,
        cudnn_version=None,
        is_xpu_available="False",
        pip_version="pip3",
        pip_packages=_packages(),
        conda_packages=None,
        hip_compiled_version="N/A",
        hip_runtime_version="N/A",
        miopen_runtime_version="N/A",
        caching_allocator_config="N/A",
        is_xnnpack_available="False",
        cpu_info=_cpu(),
    )


def pretty_str(envinfo: SystemEnv) -> str:
    """The answers as text."""
    e = SystemEnv(*(_UNKNOWN if value is None else value for value in envinfo))
    return f"""Rushlight version: {e.torch_version}
Is debug build: {e.is_debug_build}
CUDA used to build: {e.cuda_compiled_version}
ROCM used to build: {e.hip_compiled_version}

OS: {e.os}
GCC version: {e.gcc_version}
Clang version: {e.clang_version}
CMake version: {e.cmake_version}
Libc version: {e.libc_version}

Python version: {e.python_version}
Python platform: {e.python_platform}
Is CUDA available: {e.is_cuda_available}
CUDA runtime version: {e.cuda_runtime_version}
GPU models and configuration: {e.nvidia_gpu_models}
Is XPU available: {e.is_xpu_available}

CPU:
{e.cpu_info}

Versions of relevant libraries:
{e.pip_packages}"""


def get_pretty_env_info() -> str:
    """The text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Prints the text."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
