"""Functions of nn.functional that torch has in its main namespace as well, with the arguments they have
there: dropout takes `train`, a loss takes its reduction as a number (0 none, 1 mean, 2 sum)."""

from __future__ import annotations

import rushlight
from rushlight.nn import functional as F
from rushlight.ops._public import Tensor, public

celu, celu_ = F.celu, F.celu_
selu, selu_ = F.selu, F.selu_
rrelu, rrelu_ = F.rrelu, F.rrelu_
hardshrink = F.hardshrink
prelu = F.prelu
bilinear = F.bilinear
cosine_similarity = F.cosine_similarity
pairwise_distance = F.pairwise_distance
threshold_ = F.threshold_

_REDUCTIONS = {0: "none", 1: "mean", 2: "sum"}


def _reduction(reduction: int) -> str:
    if reduction not in _REDUCTIONS:
        raise RuntimeError(f"{reduction} is not a valid reduction: 0 is none, 1 mean, 2 sum")
    return _REDUCTIONS[reduction]


def _function(function):
    return public(function, method=False, namespace=False)


def _dropout(name: str, function) -> None:
    def dropout(input: Tensor, p: float, train: bool) -> Tensor:
        return function(input, p, train)

    def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
        return function(input, p, train, True)

    for each, form in ((name, dropout), (f"{name}_", dropout_)):
        form.__name__ = form.__qualname__ = each
        form.__doc__ = f"nn.functional.{function.__name__} with three arguments."
        globals()[each] = _function(form)


_dropout("dropout", F.dropout)
_dropout("alpha_dropout", F.alpha_dropout)
_dropout("feature_dropout", F.dropout2d)
_dropout("feature_alpha_dropout", F.feature_alpha_dropout)


@_function
def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=0):
    """nn.functional.binary_cross_entropy_with_logits."""
    return F.binary_cross_entropy_with_logits(
        input, target, weight, reduction=_reduction(reduction), pos_weight=pos_weight
    )


@_function
def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=0):
    """nn.functional.cosine_embedding_loss."""
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_reduction(reduction))


@_function
def hinge_embedding_loss(input, target, margin=1.0, reduction=0):
    """nn.functional.hinge_embedding_loss."""
    return F.hinge_embedding_loss(input, target, margin, reduction=_reduction(reduction))


@_function
def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=0):
    """nn.functional.margin_ranking_loss, of tensors that broadcast."""
    input1, input2, target = rushlight.broadcast_tensors(input1, input2, target)
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_reduction(reduction))


@_function
def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=0):
    """nn.functional.triplet_margin_loss."""
    return F.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_reduction(reduction)
    )


@_function
def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    """nn.functional.poisson_nll_loss."""
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_reduction(reduction))


@_function
def kl_div(input, target, reduction=0, *, log_target=False):
    """nn.functional.kl_div."""
    return F.kl_div(input, target, reduction=_reduction(reduction), log_target=log_target)
