"""Operations that torch has under torch.ops.aten only: what indexing and pooling are made of there."""

from __future__ import annotations

import rushlight
from rushlight.ops._public import type_name
from rushlight.ops.forms import _slice


def max_pool2d_with_indices_backward(
    grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices, *, grad_input=None
):
    """The gradient of max_pool2d: every element of grad_output goes to where its maximum was found."""
    if not self.is_floating_point():
        raise NotImplementedError(f"\"max_pool2d_backward\" not implemented for '{type_name(self.dtype)}'")
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


def _to_copy(self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False,
             memory_format=None):  # fmt: skip
    """A copy, of another dtype or on another device if asked for."""
    made = self.to(device=device, dtype=dtype, copy=True)
    return made if memory_format is None else made.contiguous(memory_format=memory_format)


def _copy(self, src, non_blocking=False):
    """The elements of src with the sizes and the dtype of self."""
    return rushlight.empty_like(self).copy_(src)


def _nll_loss_forward(self, target, weight, reduction, ignore_index):
    """nll_loss and the sum of the weights that counted."""
    names = ("none", "mean", "sum")
    functional = rushlight.nn.functional
    loss = functional.nll_loss(self, target, weight, ignore_index=ignore_index, reduction=names[reduction])
    counted = target != ignore_index
    total = counted.sum() if weight is None else weight[target.where(counted, 0)][counted].sum()
    return loss, total.to(self.dtype) if reduction else self.new_zeros(())


def _convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Convolutions of all dimensions, transposed or not."""
    functional = rushlight.nn.functional
    dims = input.dim() - 2
    name = f"conv_transpose{dims}d" if transposed else f"conv{dims}d"
    if transposed:
        return getattr(functional, name)(
            input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    return getattr(functional, name)(input, weight, bias, stride, padding, dilation, groups)


FUNCTIONS = {
    "_to_copy": _to_copy,
    "_local_scalar_dense": lambda self: self.item(),
    "lift_fresh": lambda self: self,
    "lift": lambda self: self,
    "detach": lambda self: self.detach(),
    "alias": lambda self: self.view_as(self),
    "_unsafe_view": lambda self, size: self.reshape(size),
    "_reshape_alias": lambda self, size, stride: self.as_strided(size, stride),
    "copy": _copy,
    "index": lambda self, indices: self[tuple(slice(None) if i is None else i for i in indices)],
    "_softmax": lambda self, dim, half_to_float: self.softmax(dim),
    "_log_softmax": lambda self, dim, half_to_float: self.log_softmax(dim),
    "sigmoid_backward": lambda grad_output, output: rushlight._C.ops.sigmoid_backward(grad_output, output),
    "tanh_backward": lambda grad_output, output: rushlight._C.ops.tanh_backward(grad_output, output),
    "threshold_backward": lambda grad_output, self, threshold: rushlight._C.ops.threshold_backward(
        grad_output, self, threshold
    ),
    "nll_loss_forward": _nll_loss_forward,
    "convolution": _convolution,
    "slice": _slice,
    "max_pool2d_with_indices": max_pool2d_with_indices,
    "max_pool2d_with_indices_backward": max_pool2d_with_indices_backward,
}
