"""Functions of nn.functional that torch has in its main namespace as well, with the arguments they have
there: dropout takes `train`, a loss takes its reduction as a number (0 none, 1 mean, 2 sum)."""

from __future__ import annotations

import rushlight
from rushlight import _C
from rushlight._kinds import make_builtin
from rushlight.nn import functional as F
from rushlight.nn.functional.activation import randomly_leaky
from rushlight.nn.functional.distance import check_triplet, triplet
from rushlight.nn.functional.sparse import _bags, _starts
from rushlight.ops import _node_names
from rushlight.ops._public import Tensor, public

celu_, selu_, rrelu_ = F.celu_, F.selu_, F.rrelu_
hardshrink = F.hardshrink
prelu = F.prelu
bilinear = F.bilinear
cosine_similarity = F.cosine_similarity
pairwise_distance = F.pairwise_distance
threshold_ = F.threshold_

_REDUCTIONS = {1: "mean", 2: "sum"}  # any other number is none


def _reduction(reduction: int) -> str:
    return _REDUCTIONS.get(int(reduction), "none")


def _function(function):
    return public(function, method=False, namespace=False)


@_function
def celu(input, alpha=1.0):
    """nn.functional.celu."""
    return F.celu(input, alpha)


@_function
def selu(input):
    """nn.functional.selu."""
    return F.selu(input)


@_function
def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    """nn.functional.rrelu, drawing from a generator."""
    return randomly_leaky(input, lower, upper, training, generator)


def _dropout(name: str, function) -> None:
    def dropout(input: Tensor, p: float, train: bool, inplace: bool = False) -> Tensor:
        if not 0 <= p <= 1:  # nn.functional has a ValueError for it
            raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {float(p):g}")
        return function(input, p, train, inplace)

    def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
        return dropout(input, p, train, True)

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
    """nn.functional.binary_cross_entropy_with_logits, of an input that is broadcast to the target."""
    if input.shape != target.shape:
        shape = rushlight.broadcast_tensors(target, input)[0].shape
        if shape != target.shape:
            raise RuntimeError(
                f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(shape)}"
            )
        input = input.expand(shape)
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
    """nn.functional.triplet_margin_loss, of any margin."""
    check_triplet(anchor, positive, negative)

    def distance(x1, x2):
        return F.pairwise_distance(x1, x2, p, eps)

    return triplet(distance, anchor, positive, negative, margin, swap, _reduction(reduction))


@_function
def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    """nn.functional.poisson_nll_loss."""
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_reduction(reduction))


@_function
def kl_div(input, target, reduction=0, *, log_target=False):
    """nn.functional.kl_div."""
    return F.kl_div(input, target, reduction=_reduction(reduction), log_target=log_target)


_MODES = {0: "sum", 1: "mean", 2: "max"}


@_function
def embedding_bag(
    weight,
    indices,
    offsets,
    scale_grad_by_freq=False,
    mode=0,
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """What bags of rows come to (mode 0 sum, 1 mean, 2 maximum), and how: the bag of every index, the sizes
    of the bags and the row of each maximum. For a sum torch leaves out what its gradient does not need.

    >>> table = rushlight.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> out, bags, sizes, _ = rushlight.embedding_bag(
    ...     table, rushlight.tensor([0, 1, 1]), rushlight.tensor([0, 1]), mode=1
    ... )
    >>> out, bags, sizes
    (tensor([[1., 2.],
            [3., 4.]]), tensor([0, 1, 1]), tensor([1, 2]))
    """
    if mode not in _MODES:
        raise RuntimeError("`mode` must be sum, mean, or max.")
    if per_sample_weights is not None and mode != 0:
        raise RuntimeError("embedding_bag: per_sample_weights only supported with mode='sum'")
    flat, since = indices.reshape(-1), _C.next_sequence()
    call = (
        flat, weight, offsets, None, 2.0, scale_grad_by_freq, _MODES[mode], sparse, per_sample_weights,
        include_last_offset, padding_idx,
    )  # fmt: skip
    out = F.embedding_bag(*call)
    how = _how(out, flat, weight, offsets, mode, include_last_offset, padding_idx)
    if out.requires_grad:  # torch's node keeps all that it gives
        name, kept, inputs = _node_names.embedding_bag(*call)
        kept |= {f"result{at}": _C.keep(each) for at, each in enumerate(how, 1)}
        _C.name_node(out, name, since, kept, inputs)
    return out, *how


def _how(out, flat, weight, offsets, mode, include_last_offset, padding_idx):
    bags, count = _bags(_starts(flat, offsets, include_last_offset))
    if mode == 0:
        none = rushlight.zeros(offsets.numel(), dtype=rushlight.int64)
        short = weight.dtype != rushlight.float64 and padding_idx is None
        return bags[:0].clone() if short else bags, none, none.clone()
    counted, rows = bags, flat.long()
    if padding_idx is not None:
        kept = flat != padding_idx % weight.size(0)
        counted, rows = bags[kept], rows[kept]
    sizes = rushlight.bincount(counted, minlength=count)
    if mode == 1:
        return bags, sizes, sizes.clone()
    # The first of the rows that have the maximum, column by column.
    with rushlight.no_grad():
        places = rushlight.arange(rows.numel()).unsqueeze(-1).expand(-1, weight.size(1))
        places = places.where(weight[rows] == out[counted], rows.numel())
        first = rushlight.full((count, weight.size(1)), rows.numel(), dtype=rushlight.int64)
        first = first.scatter_reduce(0, counted.unsqueeze(-1).expand_as(places), places, "amin")
        largest = rushlight.cat([rows, rows.new_zeros(1)])[first]
    return bags, sizes, largest


make_builtin(list(globals().values()))
