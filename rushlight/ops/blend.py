"""The elementwise functions of three tensors: lerp, addcmul, addcdiv and where."""

from __future__ import annotations

from rushlight import _C
from rushlight._warn import warn_once
from rushlight.ops._examples import refuse_batches
from rushlight.ops._public import (
    C_NAMES,
    FOUND_DTYPE,
    Tensor,
    check_tensor,
    function,
    invalid_combination,
    method,
    public,
    refuse_complex,
    type_name,
    write_out,
)

ops = _C.ops


@public
def lerp(input, end, weight, *, out=None):
    """input + weight * (end - input).

    >>> rushlight.lerp(rushlight.tensor([0.0]), rushlight.tensor([10.0]), 0.25)
    tensor([2.5000])
    """
    _check_lerp(input, end, weight)
    result = (
        ops.lerp(input, end, weight) if isinstance(weight, Tensor) else ops.lerp_scalar(input, end, weight)
    )
    several = isinstance(weight, Tensor) and weight.dim() > 0
    return result if out is None else write_out(out, result, exact=FOUND_DTYPE if several else "")


def _check_lerp(input, end, weight):
    check_tensor(input, "lerp", "input", 1)
    check_tensor(end, "lerp", "end", 2)
    refuse_complex(weight, input)
    if end.dtype == input.dtype and (not isinstance(weight, Tensor) or weight.dtype == input.dtype):
        return
    for name, other in (("end", end), ("weight", weight)):
        if isinstance(other, Tensor) and other.dtype != input.dtype and (name == "end" or other.dim()):
            raise RuntimeError(
                f"expected dtype {C_NAMES[input.dtype]} for `{name}` but got dtype {C_NAMES[other.dtype]}"
            )


@method
def lerp_(self, end, weight):
    """In-place version of lerp."""
    _C.check_inplace(self)
    _check_lerp(self, end, weight)
    return _C.in_place(ops.lerp if isinstance(weight, Tensor) else ops.lerp_scalar, self, end, weight)


@public
def addcmul(input, tensor1, tensor2, *, value=1, out=None):
    """input + value * tensor1 * tensor2.

    >>> rushlight.addcmul(rushlight.ones(2), rushlight.tensor([1.0, 2.0]), rushlight.ones(2), value=2)
    tensor([3., 5.])
    """
    check_tensor(input, "addcmul", "input", 1)
    check_tensor(tensor1, "addcmul", "tensor1", 2)
    check_tensor(tensor2, "addcmul", "tensor2", 3)
    refuse_complex(value, input, tensor1, tensor2)
    result = ops.addcmul(input, tensor1, tensor2, value)
    return result if out is None else write_out(out, result)


@method
def addcmul_(self, tensor1, tensor2, *, value=1):
    """In-place version of addcmul."""
    check_tensor(tensor1, "addcmul_", "tensor1", 1)
    check_tensor(tensor2, "addcmul_", "tensor2", 2)
    refuse_complex(value, self, tensor1, tensor2)
    return _C.in_place(ops.addcmul, self, tensor1, tensor2, value)


@public
def addcdiv(input, tensor1, tensor2, *, value=1, out=None):
    """input + value * tensor1 / tensor2.

    >>> rushlight.addcdiv(rushlight.ones(2), rushlight.tensor([1.0, 2.0]), rushlight.tensor([2.0, 4.0]))
    tensor([1.5000, 1.5000])
    """
    check_tensor(input, "addcdiv", "input", 1)
    check_tensor(tensor1, "addcdiv", "tensor1", 2)
    check_tensor(tensor2, "addcdiv", "tensor2", 3)
    _check_integer_addcdiv(tensor1, tensor2)
    refuse_complex(value, input, tensor1, tensor2)
    result = ops.addcdiv(input, tensor1, tensor2, value)
    return result if out is None else write_out(out, result)


def _check_integer_addcdiv(tensor1, tensor2):
    if not any(t.is_floating_point() or t.is_complex() for t in (tensor1, tensor2)):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will "
            "perform a "
            "true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as "
            "(input + "
            "value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + "
            "value * "
            "tensor1 / tensor2) for float inputs. The future addcdiv behavior is just the latter "
            "implementation: "
            "(input + value * tensor1 / tensor2), for all dtypes."
        )


@method
def addcdiv_(self, tensor1, tensor2, *, value=1):
    """In-place version of addcdiv."""
    check_tensor(tensor1, "addcdiv_", "tensor1", 1)
    check_tensor(tensor2, "addcdiv_", "tensor2", 2)
    if self.requires_grad:
        _C.check_inplace(self)
    _check_integer_addcdiv(tensor1, tensor2)
    refuse_complex(value, self, tensor1, tensor2)
    return _C.in_place(ops.addcdiv, self, tensor1, tensor2, value)


@function
def where(condition, input=None, other=None, *, out=None):
    """Elements of input where condition holds, of other elsewhere; with condition alone, where it is nonzero.

    >>> rushlight.where(rushlight.tensor([True, False]), 1., 2.)
    tensor([1., 2.])
    """
    if input is None and other is None:
        if _C.is_leveled(condition):
            refuse_batches("where", condition)
        return condition.nonzero(as_tuple=True)
    result = _where(condition, input, other)
    return (
        result
        if out is None
        else write_out(out, result, exact="Expected out type to be {result} but got {out}")
    )


def _where(condition, input, other):
    if condition.dtype != _C.bool:
        if condition.dtype != _C.uint8:
            raise RuntimeError(
                "where expected condition to be a boolean tensor, but got a tensor with dtype "
                f"{type_name(condition.dtype)}"
            )
        warn_once(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a "
            "future version of PyTorch. Use a boolean condition instead."
        )
        condition = condition.bool()
    for value in (input, other):
        if isinstance(value, (str, type(None))):
            raise invalid_combination(
                "where",
                (condition, input, other),
                "Tensor condition",
                "Tensor condition, Tensor input, Tensor other",
            )
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        kind = _C.result_type(input, other)
        input = _C.full((), input, kind, condition.device)
    return ops.where(condition, input, other)


@method(name="where")
def _where_method(self, condition, other):
    """Elements of this tensor where condition holds, of other elsewhere.

    >>> rushlight.tensor([1, 2]).where(rushlight.tensor([True, False]), 0)
    tensor([1, 0])
    """
    return _where(condition, self, other)
