"""Operations that torch has under torch.ops.aten only: what indexing and pooling are made of there."""

from __future__ import annotations

import rushlight
from rushlight.ops.forms import _slice


def max_pool2d_with_indices_backward(
    grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices, *, grad_input=None
):
    """The gradient of max_pool2d: every element of grad_output goes to where its maximum was found."""
    rows, columns = self.shape[-2:]
    flat = self.new_zeros((*self.shape[:-2], rows * columns))
    spread = flat.scatter_add(-1, indices.flatten(-2), grad_output.flatten(-2)).view(self.shape)
    if self.requires_grad:  # the maxima do not move: a derivative of zero
        spread = spread + rushlight.where(rushlight.zeros((), dtype=rushlight.bool), self, 0.0)
    if not self.is_contiguous() and self.is_contiguous(memory_format=rushlight.channels_last):
        spread = spread.contiguous(memory_format=rushlight.channels_last)
    return spread if grad_input is None else grad_input.copy_(spread)


def max_pool2d_with_indices(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """max_pool2d and the positions of the maxima."""
    return rushlight.nn.functional.max_pool2d_with_indices(
        self, kernel_size, stride or None, padding, dilation, ceil_mode, True
    )


FUNCTIONS = {
    "slice": _slice,
    "max_pool2d_with_indices": max_pool2d_with_indices,
    "max_pool2d_with_indices_backward": max_pool2d_with_indices_backward,
}
