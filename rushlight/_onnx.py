"""What of torch.onnx needs no export."""

from __future__ import annotations

from collections.abc import Sequence


def _prepare_onnx_paddings(dim: int, pad: Sequence[int]) -> list[int]:
    """The paddings of :func:`torch.nn.functional.pad`, last dimension first and in pairs, as ONNX has them:
    what comes before each of `dim` dimensions, then what comes after.

    >>> from rushlight._onnx import _prepare_onnx_paddings
    >>> _prepare_onnx_paddings(3, [1, 2, 3, 4])
    [0, 3, 1, 0, 4, 2]
    """
    every = [*pad, *[0] * (2 * dim - len(pad))]
    return every[-2::-2] + every[::-2]
