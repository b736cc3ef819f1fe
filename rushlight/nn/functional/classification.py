"""Losses that compare scores of classes with class indices or probabilities."""

import rushlight
from rushlight import _C
from rushlight.nn.functional._checks import functional, number, require_floating, require_tensor
from rushlight.nn.functional._reduction import check_reduction, reduced, reduction_of
from rushlight.ops._examples import somewhere, whole_batch
from rushlight.ops._lacking import once
from rushlight.ops._public import refuse_gradient, type_name

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _check_class_target(input, target, weight):
    """Shapes and dtypes of scores (N, C, ...) or (C) and class indices (N, ...) or ()."""
    if input.dim() < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {input.dim()})")
    if input.dim() != 1 and (target.dim() == 0 or input.size(0) != target.size(0)):
        raise ValueError(
            f"Expected input batch_size ({input.size(0)}) to match target batch_size "
            f"({target.size(0) if target.dim() else 0})."
        )
    expected = [input.size(0), *input.shape[2:]]
    if input.dim() not in (1, 2, 4) and list(target.shape) != expected:
        raise RuntimeError(f"Expected target size {expected}, got {list(target.shape)}")
    refuse_gradient("nll_loss_forward" if input.dim() <= 2 else "nll_loss2d_forward", weight=weight)
    if input.dim() <= 2:
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input.dim() == 1 and target.numel() != 1:
            raise ValueError(
                f"For 1D input, 1D target must have size 1, but got target size: {target.numel()}"
            )
    elif target.dim() != 3 and list(target.shape) != expected:
        raise RuntimeError(
            "only batches of spatial targets supported (3D tensors) but got targets of dimension: "
            f"{target.dim()}"
        )
    if target.dtype not in (rushlight.int64, rushlight.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {type_name(target.dtype)}")
    _check_class_weight(input, weight)
    if input.dim() > 2 and list(target.shape) != expected:
        raise RuntimeError(f"size mismatch (got input: {list(input.shape)} , target: {list(target.shape)}")
    _require_scores(input)
    if weight is not None and weight.dtype != input.dtype:
        raise RuntimeError(
            f"expected scalar type {type_name(input.dtype)} but found {type_name(weight.dtype)}"
        )
    if input.dim() > 2 and target.dtype == rushlight.uint8 and target.numel():
        raise RuntimeError("expected scalar type Long but found Byte")


def _check_class_weight(input, weight):
    classes = input.size(0 if input.dim() == 1 else 1)
    if weight is None or (weight.dim() == 1 and weight.numel() == classes):
        return
    if input.dim() > 2:
        raise RuntimeError("weight tensor should be defined either for all or no classes")
    raise RuntimeError(
        f"weight tensor should be defined either for all {classes} classes or no classes but got weight "
        f"tensor of shape: {list(weight.shape)}"
    )


def _require_scores(input):
    require_floating(
        "nll_loss", "nll_loss_out_frame" if input.dim() <= 2 else "nll_loss2d_forward_out_frame", input
    )


def _known(target, ignore_index, classes):
    """The targets with the ignored ones replaced by 0, and which are not ignored."""
    target = target.to(rushlight.int64)
    counted = target != ignore_index
    safe = rushlight.where(counted, target, 0)
    if not target.is_meta:
        outside = (safe < 0) | (safe >= classes)
        if somewhere(outside):
            raise IndexError(f"Target {safe[outside][0].item()} is out of bounds.")
    return safe, counted


@functional
def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Minus the log probability that ``input`` gives to each target class, weighted by the class's weight.

    >>> import rushlight as torch
    >>> torch.nn.functional.nll_loss(torch.tensor([[-1.0, -2.0]]), torch.tensor([1]))
    tensor(2.)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    reduction = check_reduction(reduction)
    require_tensor("nll_loss_nd", input)
    return _nll_loss(input, target, weight, ignore_index, reduction)


def _nll_loss(input, target, weight, ignore_index, reduction):
    shape = input.shape
    # A batch of vectors and their classes, without weights, passes by most of the checks.
    if len(shape) != 2 or target.shape != shape[:1] or weight is not None or target.dtype != _C.int64:
        _check_class_target(input, target, weight)
        if target.dtype != _C.int64:
            target = target.to(_C.int64)
    _require_scores(input)
    loss = _C.ops.nll_loss if len(shape) <= 2 else _C.ops.nll_loss2d
    return loss(input, target, weight, _REDUCTIONS[reduction], ignore_index)


@functional
def cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    """``nll_loss`` of ``log_softmax``; the target holds class indices, or probabilities in the input's shape.

    >>> import rushlight as torch
    >>> torch.nn.functional.cross_entropy(torch.zeros(2, 4), torch.tensor([1, 3]))
    tensor(1.3863)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    reduction = check_reduction(reduction)
    require_tensor("cross_entropy_loss", input)
    if label_smoothing > 1.0 and (input.shape != target.shape or target.is_floating_point()):
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    # Torch takes what is not above zero for none.
    label_smoothing = float(label_smoothing) if label_smoothing > 0 else 0.0
    shape = input.shape
    if shape == target.shape:
        return _cross_entropy_of_probabilities(
            input, target, weight, ignore_index, reduction, label_smoothing
        )
    dim = 0 if len(shape) == 1 else 1
    log_probability = input.log_softmax(dim)
    loss = _nll_loss(log_probability, target, weight, ignore_index, reduction)
    if label_smoothing == 0:
        return loss
    if len(shape) == 1 and target.dim():
        raise RuntimeError("output with shape [] doesn't match the broadcast shape [1]")
    classes = input.size(dim)
    safe, counted = _known(target, ignore_index, classes)
    weighted = log_probability if weight is None else log_probability * _along(weight, dim, input.dim())
    spread = (-weighted.sum(dim)).masked_fill(~counted, 0.0)
    if reduction == "mean":
        if weight is not None and target.dtype != rushlight.int64:
            raise RuntimeError("gather(): Expected dtype int32/int64 for index")
        share = counted if weight is None else rushlight.where(counted, weight[safe], 0.0)
        spread = spread.sum() / share.sum()
    else:
        spread = reduced(spread, reduction)
    shares = (1 - label_smoothing, loss), (label_smoothing / classes, spread)
    hard, soft = (_C.name_node(each * share, "MulBackward1") for share, each in shares)
    return hard + soft


def _along(weight, dim, ndim):
    """A vector shaped to multiply along one dimension."""
    return weight.reshape([-1 if i == dim else 1 for i in range(ndim)])


def _cross_entropy_of_probabilities(input, target, weight, ignore_index, reduction, label_smoothing):
    if not target.is_floating_point():
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {type_name(target.dtype)}"
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    dim = 0 if input.dim() == 1 else 1
    classes = input.size(dim)
    if weight is not None and (weight.dim() != 1 or weight.numel() != classes):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes "
            f"but got weight tensor of shape: {list(weight.shape)}"
        )
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    loss = input.log_softmax(dim) * target
    if weight is not None:
        loss = loss * _along(weight, dim, input.dim())
    loss = -(loss.sum(dim) if reduction == "none" else loss.sum())
    if reduction == "mean":
        count = input.numel() // classes if input.numel() else 0
        return _C.name_node(loss / count, "DivBackward1")
    return loss


def _require_full_precision(function, kernel, input):
    if input.dtype in (rushlight.float16, rushlight.bfloat16):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(input.dtype)}'")
    require_floating(function, kernel, input)


def _check_scores(input):
    if input.dim() > 2 or (input.dim() and input.size(-1) == 0):
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
            f"{list(input.shape)}"
        )


@functional
def multi_margin_loss(
    input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """The mean over the other classes of ``max(0, margin - score of the target + score of the class) ** p``.

    >>> import rushlight as torch
    >>> torch.nn.functional.multi_margin_loss(torch.tensor([[0.0, 0.5]]), torch.tensor([0]))
    tensor(0.7500)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    reduction = check_reduction(reduction)
    require_tensor("multi_margin_loss", input)
    require_tensor("multi_margin_loss", target, 2, "target")
    refuse_gradient("multi_margin_loss", weight=weight)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    given = input, target, p, margin
    p = number("multi_margin_loss", "T input,T target,N p", *given[:3])
    margin = number("multi_margin_loss", "T input,T target,N p,N margin", *given)
    _check_scores(input)
    batch = input.size(0) if input.dim() == 2 else 1
    if target.dim() > 1 or target.numel() != batch:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples "
            f"(batch size). Expected target size [{batch}], but got {list(target.shape)}. Input has shape "
            f"{list(input.shape)}."
        )
    classes = input.size(-1) if input.dim() else 1
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    _require_full_precision("multi_margin_loss", "multi_margin_loss_cpu_kernel", input)
    if target.dtype != rushlight.int64:
        raise RuntimeError(f"expected scalar type Long but found {type_name(target.dtype)}")
    if weight is not None and weight.dtype != input.dtype:
        raise RuntimeError(
            f"expected scalar type {type_name(input.dtype)} but found {type_name(weight.dtype)}"
        )
    index = target.reshape(batch, 1)
    if not target.is_meta and somewhere((index < 0) | (index >= classes)):
        raise RuntimeError("target out of range")
    scores = once(input, "aten::multi_margin_loss_backward", input).contiguous().view(batch, classes)
    excess = margin - scores.gather(1, index) + scores
    cost = rushlight.where(excess > 0, excess, 0.0) ** p
    if weight is not None:
        cost = cost * weight[index]
    other = rushlight.arange(classes, device=input.device) != index
    loss = rushlight.where(other, cost, 0.0).sum(1) / classes
    if input.dim() < 2 and target.dim() == 0:
        loss = loss.reshape(())
    return reduced(loss, reduction)


@functional
def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Hinge loss between every class named by the target (up to its first -1) and every other class.

    >>> import rushlight as torch
    >>> scores, labels = torch.tensor([0.1, 0.2, 0.4, 0.8]), torch.tensor([3, 0, -1, 1])
    >>> torch.nn.functional.multilabel_margin_loss(scores, labels)
    tensor(0.8500)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    reduction = check_reduction(reduction)
    require_tensor("multilabel_margin_loss", input)
    _check_scores(input)
    flat = input.dim() < 2 and target.dim() < 2 and target.numel() == input.numel()
    if target.shape != input.shape and not flat:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    classes = input.size(-1) if input.dim() else 1
    if target.is_complex():
        raise NotImplementedError(f"\"min_all\" not implemented for '{type_name(target.dtype)}'")
    given = whole_batch(target)
    known = given.numel() and not given.is_meta
    if known and (given.min().item() < -1 or given.max().item() >= classes):
        raise RuntimeError("argument #2 'target' is out of range")
    _require_full_precision("multilabel_margin_loss", "multilabel_margin_loss_forward_out_frame", input)
    if target.dtype != rushlight.int64:
        raise RuntimeError(f"expected scalar type Long but found {type_name(target.dtype)}")
    scores = once(input, "aten::multilabel_margin_loss_backward", input).reshape(-1, classes)
    labels = target.reshape(-1, classes)
    named = (labels < 0).to(rushlight.int64).cumsum(1) == 0
    class_ids = rushlight.arange(classes, device=input.device)
    # (N, label, class): does this label name this class?
    hit = (labels.unsqueeze(2) == class_ids) & named.unsqueeze(2)
    other = ~hit.any(1)
    excess = 1 - scores.gather(1, rushlight.where(named, labels, 0)).unsqueeze(2) + scores.unsqueeze(1)
    cost = rushlight.where((excess > 0) & named.unsqueeze(2) & other.unsqueeze(1), excess, 0.0)
    loss = cost.sum((1, 2)) / classes
    return reduced(loss.reshape(()) if input.dim() < 2 else loss, reduction)


@functional
def linear_cross_entropy(
    input,
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction="mean",
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
):
    """``cross_entropy`` of ``linear(input, linear_weight, linear_bias)``.

    linear_weight may have dimensions between classes and features: those of a K-dimensional loss.

    >>> import rushlight as torch
    >>> x, table = torch.zeros(1, 3), torch.ones(2, 3)
    >>> torch.nn.functional.linear_cross_entropy(x, table, torch.tensor([0]))
    tensor(0.6931)
    """
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}"
        )
    if input.size(-1) != linear_weight.size(-1):
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.size(-1)} and {linear_weight.size(-1)}, respectively"
        )
    if linear_weight.dim() > 2 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires "
            f"batched input, (N, {input.size(-1)}), got unbatched input with shape {tuple(input.shape)}"
        )
    if linear_bias is not None and linear_bias.shape != linear_weight.shape[:-1]:
        raise RuntimeError(
            f"expected linear_bias shape {tuple(linear_weight.shape[:-1])}, got {tuple(linear_bias.shape)}"
        )
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    if options is not None and options.acc_dtype not in (None, input.dtype):
        wide, narrow = options.acc_dtype, input.dtype
        if wide != rushlight.float32 or narrow not in (rushlight.float16, rushlight.bfloat16):
            raise RuntimeError(
                "linear_cross_entropy supports float32 acc_dtype with float16/bfloat16 inputs, but got "
                f"{wide} acc_dtype and {narrow} inputs."
            )
        linear_bias, weight = (None if x is None else x.to(wide) for x in (linear_bias, weight))
        loss = linear_cross_entropy(
            input.to(wide),
            linear_weight.to(wide),
            target.to(wide) if target.is_floating_point() else target,
            linear_bias=linear_bias,
            weight=weight,
            reduction=reduction,
            ignore_index=ignore_index,
            label_smoothing=label_smoothing,
            options=options,
        )
        return loss.to(narrow)
    if options is not None and input.dim() == 2 and linear_weight.dim() == 2:
        rows = options.batch_chunk_size or max(input.size(1), 1)
        if rows < input.size(0):
            ignored = -100 if ignore_index is None else ignore_index
            return _in_pieces(
                rows, input, linear_weight, target, linear_bias, weight, reduction, ignored, label_smoothing
            )
    classes = linear_weight.shape[:-1]
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    scores = rushlight.nn.functional.linear(input, linear_weight.flatten(0, -2), bias)
    if len(classes) > 1:
        scores = scores.unflatten(-1, classes)
    if ignore_index is None:
        ignore_index = -100
    return cross_entropy(
        scores,
        target,
        weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def _in_pieces(rows, input, linear_weight, target, bias, weight, reduction, ignore_index, label_smoothing):
    """linear_cross_entropy a few rows at a time. The scores of a piece are computed again in the backward, so
    no more than those of one piece are ever in memory."""
    from rushlight.utils.checkpoint import checkpoint

    recorded = _C.recorded(input, linear_weight, bias, target, weight) & 127

    def piece(x, linear_weight, bias, goal):
        scores = rushlight.nn.functional.linear(x, linear_weight, bias)
        return cross_entropy(
            scores, goal, weight, ignore_index=ignore_index, reduction="none", label_smoothing=label_smoothing
        )

    losses = rushlight.cat(
        [
            checkpoint(piece, x, linear_weight, bias, goal, use_reentrant=False)
            if recorded
            else piece(x, linear_weight, bias, goal)
            for x, goal in zip(input.split(rows), target.split(rows), strict=True)
        ]
    )
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    reduction = check_reduction(reduction)
    if target.is_floating_point():
        return losses.sum() / target.size(0)
    counted = target != ignore_index
    if weight is None:
        return losses.sum() / counted.sum()
    return losses.sum() / weight[target.where(counted, 0)].where(counted, 0).sum()
