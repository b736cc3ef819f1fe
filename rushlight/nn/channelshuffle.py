"""Channels of several groups dealt out in turn."""

from __future__ import annotations

from rushlight.nn import functional as F
from rushlight.nn.module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """The channels of `groups` groups dealt out in turn: 0 1 | 2 3 becomes 0 2 1 3.

    >>> import rushlight as torch
    >>> torch.nn.ChannelShuffle(2)(torch.arange(4.0).reshape(1, 4, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    __constants__ = ["groups"]

    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, input):
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self):
        return f"groups={self.groups}"
