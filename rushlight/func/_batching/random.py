"""Batching rules of random numbers: `vmap(randomness=...)` says whether the examples draw the same."""

from __future__ import annotations

from typing import Any

from rushlight import _C
from rushlight.func._batching.table import Batch, Tensor, aligned, batching

_REFUSED = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
    "'different' randomness flags on vmap or perform the randomness operation out of vmap"
)


_LEGACY = (
    "vmap: We do not yet support calling random operations inside of vmap. Please perform random operations "
    "outside of vmap as a workaround"
)


def check(randomness: str) -> bool:
    """Whether each example draws its own; refuses where nobody has said, and in a batch of gradients."""
    if not randomness:
        raise RuntimeError(_LEGACY)
    if randomness == "error":
        raise RuntimeError(_REFUSED)
    return randomness == "different"


def different(number: int) -> bool:
    return check(_C.level_about(number)[2])


def check_different(number: int) -> None:
    if not different(number):
        raise RuntimeError(
            "Vmap does not currently support same randomness with a batched tensor input. Please use "
            "'different' randomness"
        )


@batching("uniform", "normal", "log_normal", "cauchy", "exponential", "geometric", "random", "random_to",
          "random_full", "bernoulli_like", "bernoulli_number")  # fmt: skip
def draw(op: Any, batch: Batch, x: Any, *attributes: Any) -> Any:
    """Numbers of the tensor's size, whatever it holds."""
    if different(batch.number):
        return op(x, *attributes)
    return op(x[0], *attributes).unsqueeze(0).expand(x.shape)


@batching("bernoulli", "poisson", "binomial", "standard_gamma", "normal_mean", "normal_std",
          "normal_mean_std", "bernoulli_tensor")  # fmt: skip
def draw_by(op: Any, batch: Batch, *args: Any) -> Any:
    """Numbers whose distribution the examples say."""
    if op.__name__ != "binomial" or _C.level_about(batch.number)[2]:  # which torch draws in any case
        check_different(batch.number)
    count = op.input_count
    tensors = [t for t in args[:count] if isinstance(t, Tensor)]
    values = aligned(batch, args[:count], batch.batched[:count]) if len(tensors) > 1 else args[:count]
    return op(*values, *args[count:])


@batching("multinomial")
def multinomial(op: Any, batch: Batch, weights: Any, count: int, replacement: bool, generator: Any) -> Any:
    check_different(batch.number)
    rows = weights.reshape(-1, weights.shape[-1])
    return op(rows, count, replacement, generator).reshape(*weights.shape[:-1], count)
