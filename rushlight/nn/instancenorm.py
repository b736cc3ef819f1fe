"""InstanceNorm in one, two and three dimensions, and their lazy forms."""

from rushlight._warn import warn
from rushlight.nn import functional as F
from rushlight.nn.batchnorm import _expect_dims, _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    _spatial: int

    def __init__(
        self,
        num_features,
        eps=1e-05,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input):
        _expect_dims(input, self._spatial + 1, self._spatial + 2)

    def forward(self, input):
        self._check_input_dim(input)
        batched = input.dim() == self._spatial + 2
        channel = 1 if batched else 0
        if input.size(channel) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={channel} to match num_features ({self.num_features}), "
                    f"but got: {input.size(channel)}."
                )
            warn(
                f"input's size at dim={channel} does not match num_features. You can silence this warning by "
                "not passing in num_features, which is not used because affine=False"
            )
        result = F.instance_norm(
            input if batched else input.unsqueeze(0),
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return result if batched else result.squeeze(0)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        version = local_metadata.get("version", None)
        if version is None and not self.track_running_stats:
            # Checkpoints from before 0.4.0 hold statistics that nothing reads.
            name = type(self).__name__
            found = [k for k in ("running_mean", "running_var") if prefix + k in state_dict]
            if found:
                names = " and ".join(f'"{prefix}{k}"' for k in found)
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {names} for {name} with track_running_stats=False. "
                    "If state_dict is a checkpoint saved before 0.4.0, this may be expected because "
                    f"{name} does not track running stats by default since 0.4.0. Please remove these keys "
                    "from state_dict. If the running stats are actually needed, instead set "
                    f"track_running_stats=True in {name} to enable them. See the documentation of {name} for "
                    "details."
                )
                for key in found:
                    state_dict.pop(prefix + key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalises each channel of each sample of (N, C, L) or (C, L) by itself.

    >>> import rushlight as torch
    >>> torch.nn.InstanceNorm1d(1, eps=1e-12)(torch.tensor([[[0.0, 2.0]]]))
    tensor([[[-1.,  1.]]])
    """

    _spatial = 1


class InstanceNorm2d(_InstanceNorm):
    """Normalises each channel of each sample of (N, C, H, W) or (C, H, W) by itself."""

    _spatial = 2


class InstanceNorm3d(_InstanceNorm):
    """Normalises each channel of each sample of (N, C, D, H, W) or (C, D, H, W) by itself."""

    _spatial = 3


class _LazyInstanceNorm(_LazyNormBase, _InstanceNorm):
    pass


class LazyInstanceNorm1d(_LazyInstanceNorm):
    """An InstanceNorm1d that learns ``num_features`` from its first input.

    >>> import rushlight as torch
    >>> layer = torch.nn.LazyInstanceNorm1d()
    >>> layer(torch.randn(2, 3, 4)).shape, layer.num_features
    (torch.Size([2, 3, 4]), 3)
    """

    cls_to_become = InstanceNorm1d
    _spatial = 1


class LazyInstanceNorm2d(_LazyInstanceNorm):
    """An InstanceNorm2d that learns ``num_features`` from its first input."""

    cls_to_become = InstanceNorm2d
    _spatial = 2


class LazyInstanceNorm3d(_LazyInstanceNorm):
    """An InstanceNorm3d that learns ``num_features`` from its first input."""

    cls_to_become = InstanceNorm3d
    _spatial = 3
