"""linear and bilinear."""

import math
from contextlib import nullcontext

import rushlight
from rushlight.nn.functional._checks import functional
from rushlight.ops._direct import FUNCTIONAL
from rushlight.ops._public import C_NAMES
from rushlight.ops.contract import trilinear
from rushlight.ops.matmul import linear

__all__ = ["bilinear", "linear"]

linear.direct = FUNCTIONAL["linear"]


@functional
def bilinear(input1, input2, weight, bias=None):
    """``input1 @ weight[k] @ input2 + bias[k]`` for every output feature k.

    >>> import rushlight as torch
    >>> torch.nn.functional.bilinear(torch.ones(5, 2), torch.ones(5, 3), torch.ones(4, 2, 3)).shape
    torch.Size([5, 4])
    """

    def check(condition, text):
        if not condition:
            raise RuntimeError(f"bilinear(): {text}")

    tensors = {"input1": input1, "input2": input2, "weight": weight, "bias": bias}
    kinds = {name: each.dtype for name, each in tensors.items() if each is not None}
    if len(set(kinds.values())) > 1:
        shown = ", ".join(f"{name}: {C_NAMES[dtype]}" for name, dtype in kinds.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {shown}")
    check(
        input1.dim() == input2.dim(), f"input dimensions do not match: got {input1.dim()} and {input2.dim()}"
    )
    for dim, (one, other) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        check(one == other, f"input batch dimensions do not match at dim {dim}: got {one} and {other}")
    check(
        input1.size(-1) == weight.size(1),
        f"input1 size does not match weight size: got {input1.shape[-1]} but expected {weight.shape[1]}",
    )
    check(
        input2.size(-1) == weight.size(2),
        f"input2 size does not match weight size: got {input2.shape[-1]} but expected {weight.shape[2]}",
    )
    check(
        bias is None or bias.size(0) == weight.shape[0],
        f"bias size does not match weight size: got {bias is not None and bias.shape[0]} but expected "
        f"{weight.shape[0]}",
    )
    if weight.dim() != 3:
        raise RuntimeError("number of dimensions must match")
    with rushlight.autocast("cpu", enabled=False) if rushlight.is_autocast_enabled("cpu") else nullcontext():
        n = math.prod(input1.shape[:-1])
        flat = (x.reshape(n, x.size(-1)) for x in (input1, input2))
        result = trilinear(next(flat), weight, next(flat)).view(*input1.shape[:-1], weight.size(0))
    return result if bias is None else result + bias
