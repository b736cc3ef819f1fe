"""Tools around tensors and modules; each part is imported when it is first named."""

from __future__ import annotations

from importlib import import_module as _import

from rushlight._annotations import Any

_PARTS = {
    "_contextlib", "_device", "_traceback", "collect_env", "_dtype_abbrs",
    "_foreach_utils", "_import_utils", "_mode_utils", "_python_dispatch", "_pytree",
    "_triton", "benchmark", "checkpoint", "cpp_extension", "data", "deterministic", "dlpack", "hooks",
    "model_zoo", "npz", "safetensors", "serialization", "weak",
}  # fmt: skip


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchanges two tensors in place: who holds the one sees the values, type and attributes of the other.

    >>> a, b = rushlight.zeros(2), rushlight.ones(3)
    >>> rushlight.utils.swap_tensors(a, b)
    >>> a
    tensor([1., 1., 1.])
    """
    from copyreg import _slotnames  # type: ignore[attr-defined]
    from weakref import getweakrefs

    from rushlight import _C
    from rushlight.autograd._view_steps import is_tracked

    for name, tensor in {"t1": t1, "t2": t2}.items():
        # Retaining a gradient and knowing how a view was made are weak references here; torch looks for its
        # own last.
        own = getattr(tensor, "retains_grad", False) + is_tracked(tensor)
        if len(getweakrefs(tensor)) > own:
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    if set(_slotnames(type(t1))) != set(_slotnames(type(t2))):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    _check_alone(t1, "t1")
    _check_alone(t2, "t2")
    for name, tensor in {"t1": t1, "t2": t2}.items():
        if tensor.retains_grad:
            raise RuntimeError(f"Expected no weakrefs to {name}'s Tensor object but got  1")
    _C.swap(t1, t2)


def _check_alone(tensor: Any, name: str) -> None:
    from rushlight.autograd.graph import get_gradient_edge

    count = tensor._use_count()
    if count == 1:
        return
    if count == 2 and tensor.is_leaf:
        # The graph that waits for its gradient would deliver it to the other tensor.
        node = get_gradient_edge(tensor).node
        if tensor._use_count() == 2:
            node.register_prehook(_poison)
            return
    raise RuntimeError(
        f"Expected use_count of {name} to be 1 or 2 with an AccumulateGrad node but got {count} make sure "
        "you are not holding references to the tensor in other places."
    )


def set_module(obj: Any, mod: str) -> None:
    """Says in which module something is to be looked for."""
    obj.__module__ = mod


def _poison(grads: Any) -> None:
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you "
        "try to run backward on a tensor that was swapped. For a module m with "
        "`torch.__future__.set_swap_module_params_on_conversion(True)` you should not change the device or "
        "dtype of the module (e.g. `m.cpu()` or `m.half()`) between running forward and backward. To "
        "resolve this, please only change the device/dtype before running forward (or after both forward "
        "and backward)."
    )


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        try:
            return _import(f"rushlight.utils.{name}")
        except ModuleNotFoundError:
            pass
    raise AttributeError(f"module 'torch.utils' has no attribute '{name}'")
