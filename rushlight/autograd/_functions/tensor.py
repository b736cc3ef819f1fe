"""`Type` and `Resize`, written as custom Functions. Programs call `x.type(...)` and `x.view(...)` instead."""

import math
import warnings

from rushlight.autograd.function import Function


class Type(Function):
    """A conversion to another type; the gradient comes back in the type of the input."""

    @staticmethod
    def forward(ctx, i, dest_type):
        warnings.warn(
            "`torch.autograd._functions.Type` is deprecated as of PyTorch 2.1, please use "
            "`torch.tensor.to(dtype=dtype)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        ctx.input_type = i.type()
        return i.type(dest_type)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.type(ctx.input_type), None


class Resize(Function):
    """The same elements in another shape."""

    @staticmethod
    def forward(ctx, tensor, sizes):
        if math.prod(sizes) != tensor.numel():
            raise RuntimeError(
                f"requested resize to {'x'.join(map(str, sizes))} ({math.prod(sizes)} elements in total), "
                f"but the given tensor has a size of {'x'.join(map(str, tensor.size()))} ({tensor.numel()} "
                "elements). autograd's resize can only change the shape of a given tensor, while preserving "
                "the number of elements. "
            )
        ctx.input_sizes = tensor.size()
        return tensor.contiguous().view(*sizes)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.contiguous().view(ctx.input_sizes), None
