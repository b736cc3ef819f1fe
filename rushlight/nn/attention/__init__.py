"""Which kernels attention may use. One stands for all of torch's here; what is forbidden is refused."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterator
from typing import Any

__all__ = [
    "SDPBackend",
    "WARN_FOR_UNFUSED_KERNELS",
    "activate_flash_attention_impl",
    "current_flash_attention_impl",
    "list_flash_attention_impls",
    "register_flash_attention_impl",
    "restore_flash_attention_impl",
    "sdpa_kernel",
]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.Enum):
    """torch's implementations of scaled_dot_product_attention.

    >>> import rushlight as torch
    >>> torch.nn.attention.SDPBackend.MATH.name
    'MATH'
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self) -> int:
        return self.value

    __index__ = __int__


_backend_names = {
    "cudnn": "CUDNN_ATTENTION",
    "flash": "FLASH_ATTENTION",
    "mem_efficient": "EFFICIENT_ATTENTION",
    "math": "MATH",
    "overrideable": "OVERRIDEABLE",
}
_priority = [
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.OVERRIDEABLE,
]


def _backend_from_string(name: str) -> SDPBackend:
    return SDPBackend[name]


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """The kernels that are allowed now."""
    from rushlight.backends import cuda as _switches

    allowed = [SDPBackend[_backend_names[name]] for name, on in _switches._attention.items() if on]
    return [backend for backend in _priority if backend in allowed] if with_priority else allowed


def _sdpa_kernel(backends: list[SDPBackend], set_priority: bool = False) -> None:
    """Allow these kernels and no others."""
    from rushlight.backends import cuda as _switches

    for name, spelled in _backend_names.items():
        _switches._allow(name, SDPBackend[spelled] in backends)
    if set_priority:
        _priority.sort(key=lambda backend: backends.index(backend) if backend in backends else len(backends))


@contextlib.contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict]:
    """Within it attention uses only the given implementations, the first of them first with set_priority.

    >>> import rushlight as torch
    >>> x = torch.ones(1, 1, 2, 2)
    >>> with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
    ...     torch._fused_sdp_choice(x, x, x)
    0
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    if isinstance(backends, SDPBackend):
        backends = [backends]
    before, order = _cur_sdpa_kernel_backends(), list(_priority)
    try:
        _sdpa_kernel(list(dict.fromkeys(backends)), set_priority)
        yield {}
    finally:
        _sdpa_kernel(before)
        _priority[:] = order


@contextlib.contextmanager
def _sdpa_kernel_variadic(*backends: SDPBackend) -> Iterator[None]:
    with sdpa_kernel(list(backends)):
        yield


# Flash attention for GPUs that users register: kept by name; there is no GPU on which one would run.
_implementations: dict[str, Callable[..., Any] | None] = {"FA3": None, "FA4": None}


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """Name an implementation of flash attention, set up by calling ``register_fn`` when it is activated."""
    _implementations[impl] = register_fn


def activate_flash_attention_impl(impl: str) -> None:
    """Set up an implementation of flash attention by its name."""
    if impl not in _implementations:
        raise ValueError(
            f"Unknown flash attention impl '{impl}'. Available implementations: {list(_implementations)}"
        )
    register = _implementations[impl]
    if register is None:
        raise NotImplementedError(f"{impl} is flash attention for a GPU, which is not there")
    _active[:] = [(impl, register())]


_active: list[tuple[str, Any]] = []


def _get_flash_version() -> str:
    """The version of flash attention: none."""
    return ""


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Go back to the flash attention that is built in."""
    for _, handle in _active:
        if handle is not None:
            handle.remove()
    _active.clear()


def list_flash_attention_impls() -> list[str]:
    """The names of implementations of flash attention.

    >>> import rushlight as torch
    >>> torch.nn.attention.list_flash_attention_impls()
    ['FA3', 'FA4']
    """
    return sorted(_implementations)


def current_flash_attention_impl() -> str | None:
    """The implementation in use, None for the one that is built in."""
    return _active[0][0] if _active and _active[0][1] is not None else None
