"""Similarity of vectors, and losses made of it."""

import rushlight
from rushlight import _C
from rushlight.nn.functional._checks import functional, number, require_tensor
from rushlight.nn.functional._reduction import check_reduction, reduced, reduction_of
from rushlight.ops._public import type_name
from rushlight.ops.distance import pdist  # noqa: F401  (a function of this package)


@functional
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """The cosine of the angle between vectors along ``dim``; norms below ``eps`` count as ``eps``.

    >>> import rushlight as torch
    >>> torch.nn.functional.cosine_similarity(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]]))
    tensor([0.7071])
    """
    if not eps >= 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps:g}")
    common = rushlight.result_type(x1, x2)
    if not common.is_floating_point:
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {type_name(common)}"
        )
    # Each is brought to length one in its own dtype.
    x1, x2 = rushlight.broadcast_tensors(*(x if x.is_floating_point() else x.to(common) for x in (x1, x2)))
    limit1, limit2 = _limited(x1, dim, eps), _limited(x2, dim, eps)
    other = x2 / limit2  # in the order in which torch records them
    return (x1 / limit1 * other).sum(dim)


def _limited(x, dim, eps):
    norm = rushlight.norm(x, 2, dim, keepdim=True)
    # The lower limit guards the value; the gradient goes through as if it were not there.
    limited = norm.clone()
    before = _C.set_grad_enabled(False)
    try:
        limited.clamp_(min=eps)
    finally:
        _C.set_grad_enabled(before)
    return limited


@functional
def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """The p-norm of ``x1 - x2 + eps`` along the last dimension.

    >>> import rushlight as torch
    >>> torch.nn.functional.pairwise_distance(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """
    difference = _C.name_node(x1 - x2 + eps, "AddBackward1")
    return rushlight.norm(difference, p, difference.dim() - 1, keepdim=keepdim)


@functional
def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """``1 - cosine`` where the target is 1, ``max(0, cosine - margin)`` where it is -1.

    >>> import rushlight as torch
    >>> torch.nn.functional.cosine_embedding_loss(torch.ones(1, 2), torch.ones(1, 2), torch.tensor([-1]))
    tensor(1.)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    reduction = check_reduction(reduction)
    require_tensor("cosine_embedding_loss", input1, 1, "input1")
    if target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    dim = target.dim()
    if input1.dim() != dim + 1 or input2.dim() != dim + 1:
        raise RuntimeError(
            f"{dim}D target tensor expects {dim + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    tiny = 1e-12
    dot = (input1 * input2).sum(dim)
    squares = ((input1 * input1).sum(dim) + tiny) * ((input2 * input2).sum(dim) + tiny)
    cosine = dot / squares.sqrt()
    apart = (cosine - float(margin)).clamp_min(0)
    loss = rushlight.where(target == 1, _C.ops.sub(1, cosine), 0) + rushlight.where(target == -1, apart, 0)
    return reduced(loss, reduction)


@functional
def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """``max(0, -target * (input1 - input2) + margin)``.

    >>> import rushlight as torch
    >>> torch.nn.functional.margin_ranking_loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0]))
    tensor(2.)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    reduction = check_reduction(reduction)
    if not (input1.dim() == input2.dim() == target.dim()):
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    difference = input1 - input2
    apart = _C.name_node(-target * difference + float(margin), "AddBackward1")
    return reduced(apart.clamp_min(0), reduction)


def _check_margin(margin):
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")


def check_triplet(anchor, positive, negative):
    """Refuses tensors of different numbers of dimensions."""
    if not (anchor.ndim == positive.ndim == negative.ndim):
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, "
            f"but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D "
            "inputs"
        )


def triplet(distance, anchor, positive, negative, margin, swap, reduction):
    """How much farther the positive is than the negative, and a margin."""
    near = distance(anchor, positive)
    far = distance(anchor, negative)
    if swap:
        far = rushlight.minimum(far, distance(positive, negative))
    return reduced((_C.name_node(margin + near, "AddBackward1") - far).clamp_min(0), reduction)


@functional
def triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin=1.0,
    p=2,
    eps=1e-6,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    """``max(0, distance(anchor, positive) - distance(anchor, negative) + margin)``.

    >>> import rushlight as torch
    >>> a, far = torch.zeros(1, 2), torch.full((1, 2), 9.0)
    >>> torch.nn.functional.triplet_margin_loss(a, a, far)
    tensor(0.)
    """
    reduction = check_reduction(reduction_of(size_average, reduce, reduction))
    require_tensor("triplet_margin_loss", anchor, 1, "anchor")
    _check_margin(margin)
    check_triplet(anchor, positive, negative)
    signature = "T anchor,T positive,T negative,f margin"
    margin = number("triplet_margin_loss", signature, anchor, positive, negative, margin)

    def distance(x1, x2):
        return pairwise_distance(x1, x2, float(p) if isinstance(p, int) else p, eps)

    return triplet(distance, anchor, positive, negative, margin, swap, reduction)


@functional
def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """``triplet_margin_loss`` with any distance function.

    >>> rushlight.nn.functional.triplet_margin_with_distance_loss(*rushlight.zeros(3, 1, 2))
    tensor(1.)
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    _check_margin(margin)
    check_triplet(anchor, positive, negative)
    distance = pairwise_distance if distance_function is None else distance_function
    return triplet(distance, anchor, positive, negative, margin, swap, reduction)
