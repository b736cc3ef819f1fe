"""BatchNorm in one, two and three dimensions, SyncBatchNorm, and their lazy forms."""

import rushlight
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.lazy import LazyModuleMixin
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """What norms per channel have in common: weight and bias, running statistics, and loading old ones."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(
        self,
        num_features,
        eps=1e-05,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        make = {"device": device, "dtype": dtype}
        if affine:
            self.weight = Parameter(rushlight.empty(num_features, **make))
        else:
            self.register_parameter("weight", None)
        if affine and bias:
            self.bias = Parameter(rushlight.empty(num_features, **make))
        else:
            self.register_parameter("bias", None)
        if track_running_stats:
            self.register_buffer("running_mean", rushlight.zeros(num_features, **make))
            self.register_buffer("running_var", rushlight.ones(num_features, **make))
            count = rushlight.tensor(0, dtype=rushlight.long, device=device)
            self.register_buffer("num_batches_tracked", count)
        else:
            self.register_buffer("running_mean", None)
            self.register_buffer("running_var", None)
            self.register_buffer("num_batches_tracked", None)
        self.reset_parameters()

    def reset_running_stats(self):
        """Forget the batches seen so far."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        """Weight 1, bias 0, and no batches seen."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input):
        raise NotImplementedError

    def extra_repr(self):
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        version = local_metadata.get("version", None)
        if (version is None or version < 2) and self.track_running_stats:
            # Checkpoints of the first version do not count batches.
            counter = self.num_batches_tracked
            known = counter is not None and not counter.is_meta
            state_dict.setdefault(
                prefix + "num_batches_tracked",
                counter if known else rushlight.tensor(0, dtype=rushlight.long),
            )
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    def forward(self, input):
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        buffers, training = self._buffers, self.training
        try:
            mean, var = buffers["running_mean"], buffers["running_var"]
            counter = buffers["num_batches_tracked"]
        except KeyError:  # they are no buffers any more, or are attributes of another kind
            counter = self.num_batches_tracked if training and self.track_running_stats else None
            unused = training and not self.track_running_stats
            mean, var = (None, None) if unused else (self.running_mean, self.running_var)
        if training and self.track_running_stats and counter is not None:
            counter.add_(1)
            if self.momentum is None:  # all batches count the same
                momentum = 1.0 / float(counter)
        own_statistics = training or (mean is None and var is None)
        if training and not self.track_running_stats:
            mean = var = None
        return F.batch_norm(input, mean, var, self.weight, self.bias, own_statistics, momentum, self.eps)


def _expect_dims(input, *dims):
    if input.dim() not in dims:
        raise ValueError(f"expected {' or '.join(f'{d}D' for d in dims)} input (got {input.dim()}D input)")


class BatchNorm1d(_BatchNorm):
    """Normalises each channel of (N, C) or (N, C, L) over the batch, by running averages in eval mode.

    >>> import rushlight as torch
    >>> layer = torch.nn.BatchNorm1d(1, eps=1e-12)
    >>> layer(torch.tensor([[0.0], [2.0]])).flatten().tolist()
    [-1.0, 1.0]
    >>> layer.running_mean
    tensor([0.1000])
    """

    def _check_input_dim(self, input):
        _expect_dims(input, 2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalises each channel of (N, C, H, W).

    >>> import rushlight as torch
    >>> torch.nn.BatchNorm2d(3)(torch.randn(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    def _check_input_dim(self, input):
        _expect_dims(input, 4)


class BatchNorm3d(_BatchNorm):
    """Normalises each channel of (N, C, D, H, W).

    >>> import rushlight as torch
    >>> torch.nn.BatchNorm3d(3)(torch.randn(2, 3, 1, 4, 4)).shape
    torch.Size([2, 3, 1, 4, 4])
    """

    def _check_input_dim(self, input):
        _expect_dims(input, 5)


class SyncBatchNorm(_BatchNorm):
    """BatchNorm whose statistics are those of all processes: in one process, an ordinary BatchNorm.

    >>> import rushlight as torch
    >>> torch.nn.SyncBatchNorm(3)(torch.randn(2, 3, 4)).shape
    torch.Size([2, 3, 4])
    """

    def __init__(
        self,
        num_features,
        eps=1e-05,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        process_group=None,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input):
        if self.process_group is not None:
            raise NotImplementedError("SyncBatchNorm over a process group is not implemented")
        return super().forward(input)

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """The module with every BatchNorm in it replaced by a SyncBatchNorm that shares its tensors.

        >>> import rushlight as torch
        >>> torch.nn.SyncBatchNorm.convert_sync_batchnorm(torch.nn.Sequential(torch.nn.BatchNorm1d(2)))
        Sequential(
          (0): SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
        )
        """
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            if module.affine:
                with rushlight.no_grad():
                    result.weight = module.weight
                    result.bias = module.bias
            result.running_mean = module.running_mean
            result.running_var = module.running_var
            result.num_batches_tracked = module.num_batches_tracked
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """Learns ``num_features`` from the channels of its first input."""

    def __init__(
        self,
        eps=1e-05,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        # Without features there is nothing to make yet.
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=bias)
        self.affine = affine
        self.track_running_stats = track_running_stats
        make = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**make)
            if bias:
                self.bias = UninitializedParameter(**make)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**make)
            self.running_var = UninitializedBuffer(**make)
            self.num_batches_tracked = rushlight.tensor(0, dtype=rushlight.long, device=device)

    def reset_parameters(self):
        """Weight 1, bias 0, once there are any."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        """Take ``num_features`` from the input."""
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            if self.affine:
                self.weight.materialize((self.num_features,))
                if self.bias is not None:
                    self.bias.materialize((self.num_features,))
            if self.track_running_stats:
                self.running_mean.materialize((self.num_features,))
                self.running_var.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A BatchNorm1d that learns ``num_features`` from its first input.

    >>> import rushlight as torch
    >>> layer = torch.nn.LazyBatchNorm1d()
    >>> layer(torch.randn(4, 3)).shape, layer.num_features
    (torch.Size([4, 3]), 3)
    """

    cls_to_become = BatchNorm1d

    def _check_input_dim(self, input):
        _expect_dims(input, 2, 3)


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A BatchNorm2d that learns ``num_features`` from its first input."""

    cls_to_become = BatchNorm2d

    def _check_input_dim(self, input):
        _expect_dims(input, 4)


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A BatchNorm3d that learns ``num_features`` from its first input."""

    cls_to_become = BatchNorm3d

    def _check_input_dim(self, input):
        _expect_dims(input, 5)
