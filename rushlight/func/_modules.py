"""Modules as functions: their state stacked, batch norms without memory, and a look behind wrappers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight import _C
from rushlight.func._tensor import Tensor
from rushlight.nn import Module


def _alike(models: Any, called: str) -> None:
    if len(models) == 0:
        raise RuntimeError(f"{called}: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError(f"{called}: Expected all models to have the same training/eval mode.")
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError(f"{called}: Expected all models to be of the same class.")


def stack_module_state(models: Sequence[Module] | Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of several modules of one class, each stacked along a first dimension:
    what `vmap` of `functional_call` takes to run all of them at once. The stacks are leaves.

    >>> models = [torch.nn.Linear(2, 3) for _ in range(4)]
    >>> params, buffers = torch.func.stack_module_state(models)
    >>> params["weight"].shape, buffers
    (torch.Size([4, 3, 2]), {})
    >>> def run(params, buffers, x):
    ...     return torch.func.functional_call(models[0], (params, buffers), (x,))
    >>> torch.vmap(run, in_dims=(0, 0, None))(params, buffers, torch.ones(5, 2)).shape
    torch.Size([4, 5, 3])
    """
    _alike(models, "stack_module_state")
    parameters = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return (
        {name: construct_stacked_leaf(tuple(p[name] for p in parameters), name) for name in parameters[0]},
        {name: construct_stacked_leaf(tuple(b[name] for b in buffers), name) for name in buffers[0]},
    )


def construct_stacked_leaf(tensors: tuple[Tensor, ...] | list[Tensor], name: str) -> Tensor:
    """A leaf of the tensors along a new first dimension."""
    import rushlight

    wanted = [t.requires_grad for t in tensors]
    if any(wanted) and not all(wanted):
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    stacked = rushlight.stack(list(tensors)).detach()
    return _C.requires_grad_(stacked, True) if all(wanted) else stacked


def batch_norm_without_running_stats(module: Module) -> None:
    """Lets a batch norm use the statistics of the batch alone, and keep none."""
    from rushlight.nn.batchnorm import _BatchNorm

    if isinstance(module, _BatchNorm) and module.track_running_stats:
        module.running_mean = None
        module.running_var = None
        module.num_batches_tracked = None
        module.track_running_stats = False


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Lets every batch norm in a module use the statistics of the batch alone: the running ones are written
    in place, which has no meaning where functions are transformed.

    >>> net = torch.func.replace_all_batch_norm_modules_(torch.nn.Sequential(torch.nn.BatchNorm1d(3)))
    >>> net[0].running_mean is None
    True
    """
    for module in root.modules():
        batch_norm_without_running_stats(module)
    return root


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor that one of a level stands for: the whole batch, say. To be looked at, not computed with.

    >>> seen = []
    >>> torch.vmap(lambda x: seen.append(torch.func.debug_unwrap(x)) or x)(torch.arange(3))
    tensor([0, 1, 2])
    >>> seen
    [tensor([0, 1, 2])]
    """
    from rushlight.func._stack import check_tensor, get_unwrapped

    check_tensor("is_functorch_wrapped_tensor", tensor, "bool")
    while _C.is_leveled(tensor):
        tensor = get_unwrapped(tensor)
        if not recurse:
            break
    return tensor
