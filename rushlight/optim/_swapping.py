"""Lending an optimizer other parameters and another state for a while."""

import contextlib


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(optimizer, swapin_parameters, swapin_optim_state):
    """Within it the optimizer has other parameters, by name in the order of its own, and another state dict.

    Tensors of the given state are written in place by steps; everything else that is assigned within is
    forgotten.

    >>> import rushlight as torch
    >>> x = torch.nn.Parameter(torch.ones(1))
    >>> optimizer = torch.optim.SGD([x], lr=0.5, momentum=0.9)
    >>> x.grad = torch.ones(1)
    >>> optimizer.step()
    >>> other = torch.zeros(1)
    >>> other.grad = torch.ones(1)
    >>> with torch.optim.swap_in_optimizer_params_and_state(optimizer, {"x": other}, optimizer.state_dict()):
    ...     optimizer.step()
    >>> other, x.detach()
    (tensor([-0.9500]), tensor([0.5000]))
    """
    name = "swap_in_optimizer_params_and_state"
    if not optimizer.state:
        raise RuntimeError(f"{name} requires initialized optimizer state.")
    given = swapin_optim_state.get("state")
    if not isinstance(given, dict):
        raise RuntimeError(
            f"{name} requires swapin_optim_state['state'] to be a dict mapping packed parameter ids to "
            f"per-param state dicts, got {type(given).__name__}."
        )
    groups = swapin_optim_state.get("param_groups", ())
    if len(groups) != len(optimizer.param_groups):
        raise RuntimeError(
            "swapin_optim_state has a different number of parameter groups than the live optimizer."
        )
    params = list(swapin_parameters.values())
    if len(params) < sum(len(group["params"]) for group in optimizer.param_groups):
        raise RuntimeError(
            f"{name} requires the explicit parameter state to match optimizer.param_groups ordering."
        )
    state, swapped, at = {}, [], 0
    for live, group in zip(optimizer.param_groups, groups, strict=True):
        chosen = params[at : at + len(live["params"])]
        at += len(chosen)
        state |= {param: dict(given[number]) for number, param in zip(group["params"], chosen, strict=True)}
        swapped.append({**group, "params": chosen})
    before = [dict(group) for group in optimizer.param_groups], dict(optimizer.state)
    try:
        _put(optimizer, swapped, state)
        yield
    finally:
        _put(optimizer, *before)


def _put(optimizer, groups, state):
    """Give the groups and the state, which stay the same objects, other contents."""
    for live, group in zip(optimizer.param_groups, groups, strict=True):
        live.clear()
        live.update(group)
    optimizer.state.clear()
    optimizer.state.update(state)
