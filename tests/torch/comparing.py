"""When a result of Rushlight counts as equal to one of torch."""

import math

import torch

import rushlight

REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError)
# How far results may lie apart, relative and absolute; the libraries sum in different orders.
TOLERANCE = {
    "float64": 1e-12,
    "complex128": 1e-12,
    "float32": 3e-6,
    "complex64": 5e-6,
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
}
# The halves whose convolutions torch leaves to oneDNN: those that the processor has instructions for.
BY_ONEDNN = {
    "bfloat16": torch.ops.mkldnn._is_mkldnn_bf16_supported(),
    "float16": torch.ops.mkldnn._is_mkldnn_fp16_supported(),
}


def numbers(value):
    """The elements of a tensor as a flat list; torch hides tensors of zeros behind a type without storage."""
    return value.detach().resolve_conj().clone().reshape(-1).tolist()


def close(a, b, tolerance):
    if a == b or (a != a and b != b):
        return True
    if isinstance(a, complex) and (a.real != a.real or math.isinf(a.real) or math.isinf(a.imag)):
        return close(a.real, b.real, tolerance) and close(a.imag, b.imag, tolerance)
    return tolerance > 0 and abs(a - b) <= tolerance * (1 + abs(b))


def assert_same(ours, theirs, *, scale=1.0, strides=True):
    """Results of the two libraries: tensors, sequences of them, numbers."""
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, rushlight.Tensor), f"{type(ours).__name__} instead of a tensor"
        assert str(ours.dtype) == str(theirs.dtype), f"dtype {ours.dtype}, torch {theirs.dtype}"
        assert tuple(ours.shape) == tuple(theirs.shape), (
            f"shape {tuple(ours.shape)}, torch {tuple(theirs.shape)}"
        )
        tolerance = scale * TOLERANCE.get(str(theirs.dtype).removeprefix("torch."), 0.0)
        a, b = numbers(ours), numbers(theirs)
        assert all(close(p, q, tolerance) for p, q in zip(a, b, strict=True)), f"{ours}\ntorch: {theirs}"
        if strides and theirs.numel() > 1:
            # The stride of a dimension of size one means nothing.
            ours_strides = [n for n, size in zip(ours.stride(), ours.shape) if size > 1]
            theirs_strides = [n for n, size in zip(theirs.stride(), theirs.shape) if size > 1]
            assert ours_strides == theirs_strides, f"strides {ours.stride()}, torch {theirs.stride()}"
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            assert_same(a, b, scale=scale, strides=strides)
    else:
        assert type(ours) is type(theirs)
        assert close(ours, theirs, scale * 1e-6), f"{ours}, torch {theirs}"
