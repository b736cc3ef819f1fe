"""Losses with weights of their own: adaptive softmax of many classes, a linear map with cross entropy."""

from __future__ import annotations

import itertools
from collections import namedtuple

import rushlight
from rushlight.nn import functional as F
from rushlight.nn.container import ModuleList, Sequential
from rushlight.nn.linear import Linear
from rushlight.nn.loss import _WeightedLoss
from rushlight.nn.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss", "LinearCrossEntropyLoss", "LinearCrossEntropyOptions"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Softmax over many classes, the rarer ones in clusters of fewer features.

    Classes are sorted by frequency: those below ``cutoffs[0]`` have logits of their own, the others share one
    per cluster, which is resolved further where it is needed.

    >>> import rushlight as torch
    >>> layer = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 10, cutoffs=[3, 5])
    >>> output, loss = layer(torch.randn(4, 16), torch.tensor([0, 3, 6, 9]))
    >>> output.shape, loss.shape
    (torch.Size([4]), torch.Size([]))
    """

    def __init__(
        self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None
    ):
        make = {"device": device, "dtype": dtype}
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(cutoffs)
            or min(cutoffs) <= 0
            or max(cutoffs) > n_classes - 1
            or len(set(cutoffs)) != len(cutoffs)
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
                "where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **make)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, **make), Linear(hidden, size, bias=False, **make)
                )
            )

    def reset_parameters(self):
        """Draw the weights anew."""
        self.head.reset_parameters()
        for inward, outward in self.tail:
            inward.reset_parameters()
            outward.reset_parameters()

    def forward(self, input_, target_):
        dims = target_.dim()
        if dims > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if dims == 1 and input_.shape[0] != target_.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if dims == 0 and input_.dim() != 1:
            raise RuntimeError(
                f"0D target tensor expects 1D input tensors, but found inputs with size {input_.size()}"
            )
        if input_.dim() != dims + 1:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        input = input_ if dims else input_.unsqueeze(0)
        target = target_ if dims else target_.unsqueeze(0)
        used = 0
        output = input.new_zeros(target.shape[0])
        gather = target.new_zeros(target.shape[0])
        bounds = [0, *self.cutoffs]
        for i, (low, high) in enumerate(itertools.pairwise(bounds)):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            used += rows.numel()
            labels = target.index_select(0, rows)
            if i == 0:
                gather = gather.index_copy(0, rows, labels)
                continue
            cluster = F.log_softmax(self.tail[i - 1](input.index_select(0, rows)), 1)
            gather = gather.index_fill(0, rows, self.shortlist_size + i - 1)
            within = cluster.gather(1, (labels - low).unsqueeze(1)).squeeze(1)
            output = output.index_copy(0, rows, within)
        if used != target.shape[0]:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), 1)
        output = output + head.gather(1, gather.unsqueeze(1)).squeeze()
        loss = (-output).mean()
        return _ASMoutput(output if dims else output.squeeze(0), loss)

    def _get_full_log_prob(self, input, head_output):
        """The logarithms of all probabilities, given the head's output."""
        head = F.log_softmax(head_output, 1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            parts.append(F.log_softmax(cluster(input), 1) + head[:, self.shortlist_size + i].unsqueeze(1))
        return rushlight.cat(parts, 1)

    def log_prob(self, input):
        """The logarithms of the probabilities of all classes.

        >>> import rushlight as torch
        >>> torch.nn.AdaptiveLogSoftmaxWithLoss(16, 10, [3, 5]).log_prob(torch.randn(4, 16)).shape
        torch.Size([4, 10])
        """
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input):
        """The most likely class of each row; the clusters are only looked into where they may hold it.

        >>> import rushlight as torch
        >>> torch.nn.AdaptiveLogSoftmaxWithLoss(16, 10, [3, 5]).predict(torch.randn(4, 16)).shape
        torch.Size([4])
        """
        head = self.head(input)
        best = head.argmax(1)
        unsure = best >= self.shortlist_size
        if not unsure.any():
            return best
        if unsure.all():
            return self._get_full_log_prob(input, head).argmax(1)
        best[unsure] = self._get_full_log_prob(input[unsure], head[unsure]).argmax(1)
        return best


class _Asked:
    """What `dataclasses` asks a dataclass for. When it does, the class becomes one as if it had been
    decorated: to import `dataclasses` (and `inspect`) here would take half as long as all of `nn`."""

    def __set_name__(self, owner, name):
        self.owner, self.name = owner, name

    def __get__(self, instance, owner):
        import dataclasses

        return vars(dataclasses.dataclass(self.owner))[self.name]


class LinearCrossEntropyOptions:
    """How linear_cross_entropy divides its work: batch_chunk_size rows at a time, so that the scores of all
    rows are never in memory at once; with acc_dtype=torch.float32 halves are computed with in that dtype.
    acc_policy weighs memory against accuracy: every one of them is as accurate as "accurate" here.

    >>> import rushlight as torch
    >>> torch.nn.LinearCrossEntropyOptions().acc_policy
    'auto'
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: rushlight.dtype | None = None

    __dataclass_fields__, __dataclass_params__ = _Asked(), _Asked()
    __match_args__ = ("allow_retain_graph", "batch_chunk_size", "chunking_method", "acc_policy", "acc_dtype")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        allow_retain_graph: bool = False,
        batch_chunk_size: int | None = None,
        chunking_method: str | None = "auto",
        acc_policy: str = "auto",
        acc_dtype: rushlight.dtype | None = None,
    ) -> None:
        self.allow_retain_graph, self.batch_chunk_size = allow_retain_graph, batch_chunk_size
        self.chunking_method, self.acc_policy, self.acc_dtype = chunking_method, acc_policy, acc_dtype
        self.__post_init__()

    def __repr__(self):
        values = (f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{type(self).__qualname__}({', '.join(values)})"

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__match_args__)

    def __post_init__(self):
        size = self.batch_chunk_size
        if size is not None and (not isinstance(size, int) or size <= 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size}")
        if self.acc_policy not in ("accurate", "balanced", "compact", "auto"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        kinds = ("float16", "bfloat16", "float32", "float64")
        if self.acc_dtype not in (None, *(getattr(rushlight, kind) for kind in kinds)):
            raise ValueError(
                "acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, torch.float64}"
                f", got {self.acc_dtype}. Pass acc_dtype=None to let the op pick"
            )
        method = self.chunking_method
        if method is not None and method != "auto" and not method.startswith("aspect_ratio"):
            raise ValueError(f"invalid chunking_method: {method!r}")


class LinearCrossEntropyLoss(_WeightedLoss):
    """The cross entropy of logits that are a learned linear map of the input.

    >>> import rushlight as torch
    >>> loss = torch.nn.LinearCrossEntropyLoss(5, 10)
    >>> loss(torch.randn(2, 5), torch.tensor([1, 2])).shape
    torch.Size([])
    """

    __constants__ = ["num_classes", "out_features", "reduction", "ignore_index", "label_smoothing"]

    def __init__(
        self,
        in_features,
        num_classes,
        *,
        out_features=(),
        bias=False,
        device=None,
        dtype=None,
        reduction="mean",
        weight=None,
        ignore_index=None,
        label_smoothing=0.0,
        options=None,
    ):
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, None, None, reduction)
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        rows = num_classes
        for size in self.out_features:
            rows *= size
        self.linear = Linear(in_features, rows, bias=bias, device=device, dtype=dtype)

    def forward(self, input, target):
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self):
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
