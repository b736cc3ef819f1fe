"""Nested tensors in the strided layout: several tensors of different sizes as one (see rushlight/_nested.py).

>>> x = rushlight.nested.nested_tensor([rushlight.ones(2), rushlight.ones(3)])
>>> (x * 2).to_padded_tensor(0.0)
tensor([[2., 2., 0.],
        [2., 2., 2.]])
"""

from __future__ import annotations

from typing import Any

from rushlight import _C
from rushlight._absent import _absent_function
from rushlight._nested import Joined, NestedTensor, wrap
from rushlight.ops import create

Tensor = _C.Tensor
__all__ = [
    "to_padded_tensor", "as_nested_tensor", "nested_tensor", "nested_tensor_from_jagged", "narrow",
    "masked_select",
]  # fmt: skip

narrow = _absent_function("torch.nested", "narrow")
masked_select = _absent_function("torch.nested", "masked_select")
nested_tensor_from_jagged = _absent_function("torch.nested", "nested_tensor_from_jagged")


def _check_layout(layout: Any) -> None:
    if layout is create.jagged:
        raise NotImplementedError("torch.nested: the layout torch.jagged is not implemented")
    if layout not in (None, create.strided):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")


def _check_dims(tensors: list) -> None:
    for i, tensor in enumerate(tensors):
        if tensor.dim() != tensors[0].dim():
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension "
                f"{tensor.dim()} for Tensor at index {i} and dimension {tensors[0].dim()} for Tensor at "
                "index 0."
            )


def nested_tensor(
    tensor_list: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A nested tensor of copies of these tensors, or of numbers in lists; a leaf.

    >>> rushlight.nested.nested_tensor([[1., 2.], [3.]])
    nested_tensor([
      tensor([1., 2.]),
      tensor([3.])
    ])
    """
    import rushlight

    _check_layout(layout)
    if not isinstance(tensor_list, list):
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    parts: list = []
    for given in tensor_list:
        wanted = dtype or (parts[0].dtype if parts else None)
        if isinstance(given, Tensor):
            parts.append(given.detach().to(dtype=wanted, device=device).contiguous().clone())
        else:
            parts.append(rushlight.tensor(given, dtype=wanted, device=device))
    _check_dims(parts)
    made = wrap(parts, dtype, device)
    if requires_grad:
        if not (made.dtype.is_floating_point or made.dtype.is_complex):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        made.requires_grad_()
    return made


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> Tensor:
    """A nested tensor of these tensors, with their history; of one tensor, of its rows.

    >>> a, b = rushlight.ones(2, requires_grad=True), rushlight.ones(1)
    >>> rushlight.nested.as_nested_tensor([a, b]).to_padded_tensor(0.0).sum().backward()
    >>> a.grad
    tensor([1., 1.])
    """
    _check_layout(layout)
    tensors = list(ts) if isinstance(ts, (list, tuple)) else []
    if isinstance(ts, NestedTensor):
        raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
    if isinstance(ts, Tensor):
        tensors = list(ts.unbind())
    elif not isinstance(ts, (list, tuple)) or not all(isinstance(tensor, Tensor) for tensor in tensors):
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors "
        )
    if not tensors:
        return wrap([], dtype, device)
    _check_dims(tensors)
    dtype = dtype or tensors[0].dtype
    return Joined.apply(*(tensor.to(dtype=dtype, device=device) for tensor in tensors))


def to_padded_tensor(
    input: Tensor, padding: float, output_size: Any = None, out: Tensor | None = None
) -> Tensor:
    """A dense tensor of the parts, filled up with `padding`.

    >>> x = rushlight.nested.nested_tensor([[1., 2.], [3.]])
    >>> rushlight.nested.to_padded_tensor(x, 0.0)
    tensor([[1., 2.],
            [3., 0.]])
    """
    if out is not None:
        raise NotImplementedError("torch.nested.to_padded_tensor(out=...) is not implemented")
    return input.to_padded_tensor(padding, output_size)
