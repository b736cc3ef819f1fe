"""What functions that torch has in Python look at before they hand their arguments on.

_signatures.py refuses a call whose arguments torch's native parser does not take. Where torch's Python
stumbles over another argument first, that one is named: `look` is asked about calls that do not surely fit,
with what was given by the names of the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rushlight import _C
from rushlight._signatures import check_call
from rushlight.ops._public import stumble

Given = dict[str, Any]


def look(name: str, given: Given) -> None:
    """Raises what torch's function of this name raises by itself."""
    if name in _LOOKS:
        _LOOKS[name](given)


def _split(given: Given) -> None:
    tensor, size = (
        given.get(name, given.get(other))
        for name, other in (("tensor", "self"), ("split_size_or_sections", "split_size"))
    )
    stumble(tensor, "split")
    if isinstance(size, _C.Tensor) and size.numel() == 1:
        size = 1
    if isinstance(size, int):
        forms = "T input,y split_size,i dim=|T input,I split_size,i dim="
        check_call("split", forms, tensor, size, given.get("dim", 0))
    else:
        check_call("split_with_sizes", "T input,I split_sizes,i dim=", tensor, size, given.get("dim", 0))


def _unique(given: Given) -> None:
    _switches("return_counts", "return_inverse")(given)
    dim = given.get("dim")
    if dim is not None:
        check_call("unique_dim", "T input,i dim", given.get("input", given.get("self")), dim)


def _probability(given: Given) -> None:
    p = given.get("p", 0.5)
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _spatial_size(given: Given) -> None:
    if given.get("use_input_stats", True):
        size = given["input"].size()
        if math.prod(size[2:]) == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {size}")


def _groups(given: Given) -> None:
    input, groups = given["input"], given["num_groups"]
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    _several_values([input.size(0) * input.size(1) // groups, groups, *input.size()[2:]])


def _several_values(size: Any) -> None:
    if math.prod([size[0], *size[2:]]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def _channels(given: Given) -> None:
    if given.get("training"):
        _several_values(given["input"].size())


def _fractions(ndim: int) -> Callable[[Given], None]:
    def look(given: Given) -> None:
        if given.get("output_size") is None and given.get("output_ratio") is None:
            needed = "requires specifying either an output_size or an output_ratio"
            raise ValueError(f"fractional_max_pool{ndim}d {needed}")
        if given.get("_random_samples") is None:
            input = given["input"]
            input.dim()
            input.size(-ndim - 1)

    return look


def _padding(given: Given) -> None:
    place = given.get("padding_idx")
    if place is not None:
        rows = given["weight"].size(0) if place > 0 or place < 0 else 1
        assert -rows <= place < rows, "Padding_idx must be within num_embeddings"
    if given.get("max_norm") is not None:
        given["input"].contiguous()
        given["weight"].detach()


def _exponent(given: Given) -> None:
    p, weight = given.get("p", 1), given.get("weight")
    if p != 1 and p != 2:
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")


def _positive_margin(given: Given) -> None:
    margin = given.get("margin", 1.0)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")


def _ranked(given: Given) -> None:
    inputs = [given[name] for name in ("input1", "input2", "target")]
    if len({one.dim() for one in inputs}) > 1:
        sizes = ", ".join(f"{name}: {given[name].size()}" for name in ("input1", "input2", "target"))
        raise RuntimeError(
            f"margin_ranking_loss : All input tensors should have same dimension but got sizes: {sizes} "
        )


def _sizes(*names: str) -> Callable[[Given], None]:
    def look(given: Given) -> None:
        for name in names:
            if name != "weight" or given.get(name) is not None:
                given[name].size()

    return look


def _smoothed(given: Given) -> None:
    _sizes("target", "input")(given)
    if isinstance(given["input"], _C.Tensor) and isinstance(given["target"], _C.Tensor):
        given["input"].detach() - given["target"].detach()  # whether they broadcast
    bool(given.get("beta", 1.0) == 0.0)


def _same_size(given: Given) -> None:
    target, input = given["target"].size(), given["input"].size()
    if target != input:
        raise ValueError(f"Target size ({target}) must be the same as input size ({input})")


def _switches(*names: str) -> Callable[[Given], None]:
    """Those that choose between two functions."""

    def look(given: Given) -> None:
        for name in names:
            bool(given.get(name))

    return look


def _distance(given: Given) -> None:
    mode = given.get("compute_mode", "use_mm_for_euclid_dist")
    known = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    if not any(mode == one for one in known):
        raise ValueError(f"{mode} is not a valid value for compute_mode")


_LOOKS: dict[str, Callable[[Given], None]] = {
    **dict.fromkeys(
        ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"),
        _probability,
    ),
    "instance_norm": _spatial_size,
    "group_norm": _groups,
    "batch_norm": _channels,
    "fractional_max_pool2d": _fractions(2),
    "fractional_max_pool3d": _fractions(3),
    "fractional_max_pool2d_with_indices": _fractions(2),
    "fractional_max_pool3d_with_indices": _fractions(3),
    "embedding": _padding,
    "multi_margin_loss": _exponent,
    "binary_cross_entropy_with_logits": _same_size,
    **dict.fromkeys(("mse_loss", "l1_loss"), _sizes("target", "input")),
    "smooth_l1_loss": _smoothed,
    "huber_loss": _sizes("weight", "target", "input"),
    "triplet_margin_loss": _positive_margin,
    "margin_ranking_loss": _ranked,
    "lu": _switches("get_infos"),
    "unique": _unique,
    "unique_consecutive": _switches("return_counts", "return_inverse"),
    "split": _split,
    "cdist": _distance,
}
