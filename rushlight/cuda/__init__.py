"""`torch.cuda` on a machine without a GPU: it can be asked, and says no."""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight import OutOfMemoryError

_initialized = False
default_generators: tuple = ()
has_half, has_magma = True, False


def is_available() -> bool:
    """Whether a GPU can be used."""
    return False


def device_count() -> int:
    """How many GPUs there are."""
    return 0


def is_initialized() -> bool:
    """Whether the GPU has been set up."""
    return False


def _unavailable() -> NoReturn:
    raise AssertionError("Torch not compiled with CUDA enabled")


def init() -> None:
    """Sets the GPU up."""
    _unavailable()


def current_device() -> int:
    """The index of the selected GPU."""
    _unavailable()


def synchronize(device: object = None) -> None:
    """Waits for the GPU's queue."""
    _unavailable()


def manual_seed(seed: int) -> None:
    """Seeds the current GPU's generator; there is none."""


def manual_seed_all(seed: int) -> None:
    """Seeds all GPUs' generators; there are none."""


def empty_cache() -> None:
    """Frees cached GPU memory; there is none."""


def seed() -> None:
    """Seeds the current GPU's generator from the clock; there is none."""


seed_all = seed


def initial_seed() -> int:
    """The seed of the current GPU's generator."""
    _unavailable()


def get_rng_state(device: object = "cuda") -> Any:
    """The state of a GPU's generator."""
    _unavailable()


def set_rng_state(new_state: object, device: object = "cuda") -> None:
    """Sets the state of a GPU's generator; there is none."""


def ipc_collect() -> None:
    """Frees GPU memory that other processes have given back."""
    _unavailable()


def is_tf32_supported() -> bool:
    """Whether the GPU rounds float32 products; there is none."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the GPU computes with bfloat16; there is none."""
    return False


def device_memory_used(device: object = None) -> int:
    """Bytes of the GPU's memory in use."""
    _unavailable()


def get_device_name(device: object = None) -> str:
    """The name of a GPU."""
    _unavailable()


def get_device_properties(device: object = None) -> object:
    """What a GPU is like."""
    _unavailable()


def get_device_capability(device: object = None) -> tuple[int, int]:
    """A GPU's version of its instruction set."""
    _unavailable()


def set_device(device: object) -> None:
    """Selects a GPU."""
    _unavailable()


def memory_allocated(device: object = None) -> int:
    """Bytes of GPU memory that tensors take: none."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def reset_peak_memory_stats(device: object = None) -> None:
    """Forgets the peak of GPU memory; there is none."""


def get_rng_state_all() -> list:
    """The states of the GPUs' generators: none."""
    return []


def set_rng_state_all(new_states: object) -> None:
    """Sets the states of the GPUs' generators; there are none."""


def memory_stats(device: object = None) -> dict[str, Any]:
    """Figures of the GPU's allocator: none."""
    return {}


def mem_get_info(device: object = None) -> tuple[int, int]:
    """Free and total bytes of a GPU."""
    _unavailable()


reset_max_memory_allocated = reset_max_memory_cached = reset_accumulated_memory_stats = (
    reset_peak_memory_stats
)
memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def get_arch_list() -> list[str]:
    """The GPUs that the kernels were compiled for: none."""
    return []


def get_gencode_flags() -> str:
    """How the kernels were compiled for GPUs: they were not."""
    return ""


def is_current_stream_capturing() -> bool:
    """Whether work is being recorded for a GPU: never."""
    return False


def current_stream(device: object = None) -> Any:
    """The selected queue of a GPU."""
    _unavailable()


default_stream = set_stream = current_stream


def cudart() -> Any:
    """The GPU's run-time library."""
    _unavailable()


class device:
    """`with device(index):` selects a GPU; a negative index or a device that is no GPU selects nothing."""

    def __init__(self, device: Any) -> None:
        index = device if isinstance(device, int) else getattr(device, "index", None)
        of_gpu = index is not None and getattr(device, "type", "cuda") == "cuda"
        self.idx, self.prev_idx = index if of_gpu and index is not None else -1, -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            raise RuntimeError("PyTorch was compiled without CUDA support")

    def __exit__(self, *exception: object) -> None:
        pass


class device_of(device):
    """`with device_of(tensor):` selects the GPU that the tensor is on; no tensor is."""

    def __init__(self, obj: Any) -> None:
        super().__init__(getattr(obj, "device", None) if getattr(obj, "is_cuda", False) else -1)


class _NeedsGpu:
    refusal: str

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError(self.refusal)


class Stream(_NeedsGpu):
    """A queue of work on a GPU."""

    refusal = "torch.cuda.Stream requires CUDA support"


class Event(_NeedsGpu):
    """A mark in a GPU's queue."""

    refusal = "Tried to instantiate dummy base class Event"


class CUDAGraph(_NeedsGpu):
    """A recorded piece of work for a GPU."""

    refusal = "Tried to instantiate dummy base class CUDAGraph"


class StreamContext:
    """`with stream(s):` selects a GPU's queue; stream(None) selects nothing."""

    def __init__(self, stream: object) -> None:
        if stream is not None:
            _unavailable()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass


stream = StreamContext


class graph(_NeedsGpu):
    """`with graph(...):` records work for a GPU."""


# The names that `Tensor.type()` gave to tensors on a GPU. Nothing is an instance, none can be made.
_TENSOR_TYPES = {
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _TENSOR_TYPES:
        return _tensor_type(name)
    if name in ("amp", "graphs", "memory", "nvtx", "profiler", "random", "streams"):
        from importlib import import_module

        return import_module(f"rushlight.cuda.{name}")
    raise AttributeError(f"module 'torch.cuda' has no attribute '{name}'", name=name)


def _tensor_type(name: str) -> type:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        raise TypeError(f"type torch.cuda.{name} not available. Torch not compiled with CUDA enabled.")

    made = type(name, (), {"__init__": __init__, "__module__": "torch.cuda", "__doc__": "A tensor on a GPU."})
    globals()[name] = made
    return made


class jiterator:
    """Kernels from source text, which need a GPU: they can be made, and raise when called."""

    @staticmethod
    def _create_jit_fn(code_string: str, **kwargs: object) -> object:
        return lambda *args, **kwargs: _unavailable()

    @staticmethod
    def _create_multi_output_jit_fn(code_string: str, num_outputs: int, **kwargs: object) -> object:
        return lambda *args, **kwargs: _unavailable()
