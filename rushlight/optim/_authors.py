"""What authors of optimizers import from ``torch.optim.optimizer`` beside the base class.

Optimizers outside of this package are written after torch's own and use the same small functions: a step that
records or not, options that are numbers or tensors, complex parameters seen as pairs, tensors grouped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import rushlight
from rushlight import _C, Tensor

Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
StateDict: TypeAlias = dict[str, Any]
DeviceDict: TypeAlias = dict["rushlight.device | None", Tensor]
DeviceDtypeDict: TypeAlias = dict[tuple["rushlight.device", "rushlight.dtype"] | None, Tensor]
TensorListList: TypeAlias = list[list[Tensor | None]]
Indices: TypeAlias = list[int]
GlobalOptimizerPreHook: TypeAlias = Callable[[Any, Args, Kwargs], tuple[Args, Kwargs] | None]
GlobalOptimizerPostHook: TypeAlias = Callable[[Any, Args, Kwargs], None]
ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
params_t: TypeAlias = ParamsT

# Pieces of docstrings, for those that are put together from them.
_params_doc = "params: the parameters, their names and values, or dictionaries that define groups of them"
_foreach_doc = "foreach (bool, optional): chooses between implementations in torch; the numbers are the same"
_fused_doc = "fused (bool, optional): chooses between implementations in torch; the numbers are the same"
_capturable_doc = "capturable (bool, optional): for recording GPU graphs; refused on the CPU (default: False)"
_differentiable_doc = (
    "differentiable (bool, optional): whether steps are recorded by autograd (default: False)"
)
_maximize_doc = "maximize (bool, optional): go up instead of down (default: False)"


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """A ``step`` that autograd records only if the optimizer's default ``differentiable`` says so."""

    @functools.wraps(func)
    def step(*args: Any, **kwargs: Any) -> Any:
        recorded = _C.set_grad_enabled(bool(args[0].defaults["differentiable"]))
        try:
            return func(*args, **kwargs)
        finally:
            _C.set_grad_enabled(recorded)

    return step


def _get_value(x: Any) -> Any:
    """The number in a one-element tensor; other values as they are."""
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x: Any) -> Any:
    """A one-element tensor without dimensions; other values as they are."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


def _stack_if_compiling(x: Any) -> Any:
    """The list itself: there is no compiler for which it would have to be one tensor."""
    return x


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[Any], Any]:
    """A decorator that leaves the function as it is: there is no compiler to keep away from it."""
    return lambda function: function


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Replace complex parameters by views of their real and imaginary parts, and what belongs to them."""
    for i, param in enumerate(params):
        if param.is_complex():
            params[i] = rushlight.view_as_real(param)
            for tensors in state_and_grads:
                tensors[i] = rushlight.view_as_real(tensors[i])


def _get_scalar_dtype(is_fused: bool | None = None) -> rushlight.dtype:
    """The dtype of numbers of steps."""
    if not is_fused and rushlight.get_default_dtype() == rushlight.float64:
        return rushlight.float64
    return rushlight.float32


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The devices on which torch can record graphs."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    """Refuse parameters for which torch has no fused step."""
    devices = ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]
    if cuda_unsupported:
        devices.remove("cuda")
    if p.device.type not in devices or not p.is_floating_point():
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported devices: "
            f"{devices} but {p.dtype} and {p.device.type}"
        )


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Which of torch's implementations a step takes if nobody says: on the CPU neither, unless asked."""
    if differentiable:
        return False, False
    fused = use_fused and all(
        p is None or (p.device.type in ("cpu", "cuda") and p.is_floating_point()) for p in params
    )
    foreach = not fused and all(p is None or p.device.type == "cuda" for p in params)
    return fused, foreach


def group_tensors_by_device_and_dtype(
    tensorlistlist: TensorListList, with_indices: bool = False
) -> dict[Any, tuple[TensorListList, Indices]]:
    """Lists of tensors that belong together, split by device and dtype of the first list's.

    >>> a, b = rushlight.ones(1), rushlight.ones(1, dtype=rushlight.float64)
    >>> groups = rushlight.optim.Optimizer._group_tensors_by_device_and_dtype([[a, b]], with_indices=True)
    >>> [(str(dtype), indices) for (_, dtype), (_, indices) in groups.items()]
    [('torch.float32', [0]), ('torch.float64', [1])]
    """
    groups: dict[Any, tuple[TensorListList, Indices]] = {}
    for i, first in enumerate(tensorlistlist[0]):
        assert first is not None
        lists, indices = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for into, tensors in zip(lists, tensorlistlist, strict=True):
            if tensors:
                into.append(tensors[i])
        if with_indices:
            indices.append(i)
    return groups
