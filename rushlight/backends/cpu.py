"""What the processor can do."""

from rushlight import _C


def get_cpu_capability() -> str:
    """The instruction set that the kernels use: "AVX2" or "DEFAULT"."""
    return _C.cpu_capability
