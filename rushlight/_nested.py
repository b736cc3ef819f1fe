"""Nested tensors (`torch.nested`, strided): several tensors of one number of dimensions and many sizes.

Such a tensor holds its parts, and passes for one with the sizes that they would be padded to: no kernel reads
it by those. Operations are recorded as on any other tensor; below, those that torch has for such tensors
run part by part, and everything else is refused. Where a derivative needs to know the sizes of the parts
(of a sum, of padding), the operation is a Function that keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rushlight import _C
from rushlight._sparse.table import refuse
from rushlight._unstored import Unstored, refusing
from rushlight.autograd.function import Function, once_differentiable

Tensor = _C.Tensor
_GRAD: Any = vars(Tensor)["grad"]
_BACKEND = "NestedTensorCPU"
_SIZES = "Internal error: NestedTensorImpl doesn't support sizes. Please file an issue."
_STRIDES = "Internal error: NestedTensorImpl doesn't support strides. Please file an issue."

# What torch computes part by part.
_POINTWISE = frozenset((
    "_to_copy", "abs", "abs_", "add", "add_", "clone", "copy_", "cos", "cos_", "detach", "div", "empty_like",
    "fill_", "gelu", "gelu_", "isinf", "isnan", "isposinf", "isneginf", "logical_not", "logical_not_", "mul",
    "mul_", "native_dropout", "neg", "neg_", "ones_like", "rand_like", "randn_like", "relu", "relu_", "sgn",
    "sgn_", "silu", "silu_", "sin", "sin_", "sqrt", "sub", "tanh", "tanh_", "zero_", "zeros_like",
))  # fmt: skip
# What only our formulas of their derivatives compute.
_IN_FORMULAS = frozenset((
    "conj", "gelu_backward", "masked_fill", "reciprocal", "rsub", "scalar_tensor", "sigmoid", "sign",
    "silu_backward", "square", "tanh_backward", "threshold_backward", "where", "choose", "gt", "eq",
))  # fmt: skip


class Outline(tuple):
    """The sizes of the parts: what takes the place of a shape."""

    __slots__ = ()

    def numel(self) -> int:
        """How many elements there are."""
        return sum(map(math.prod, self))


def same_size(a: Any, b: Any) -> bool:
    """Whether the parts of two nested tensors have the same sizes."""
    if not (a.is_nested and b.is_nested):
        first, second = (f"is{'' if x.is_nested else ' not'} nested" for x in (a, b))
        raise RuntimeError(
            f"Expected both self and other to be nested tensors. Self {first}. While Other {second}."
        )
    return a.outline() == b.outline()


class NestedTensor(Unstored):
    """Not to be made but by `wrap`."""

    __slots__ = ("parts",)
    kind, impl = "Nested", "NestedTensorImpl"
    parts: tuple[Tensor, ...]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})

    @property
    def is_nested(self) -> bool:
        return True

    @property
    def shape(self) -> Any:
        return self.size()

    def size(self, dim: int | None = None) -> Any:
        if dim is None:
            raise RuntimeError(_SIZES)
        count = self.dim()
        if not -count <= dim < count:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})"
            )
        at = dim % count
        if at == 0:
            return len(self.parts)
        found = {part.shape[at - 1] for part in self.parts}
        if len(found) != 1:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return found.pop()

    def outline(self) -> Outline:
        """The sizes of the parts."""
        return Outline(tuple(part.shape) for part in self.parts)

    def numel(self) -> int:
        return self.outline().numel()

    @property
    def grad(self) -> Any:
        return _GRAD.__get__(self)

    @grad.setter
    def grad(self, value: Any) -> None:
        if isinstance(value, Tensor) and not (value.is_nested and same_size(self, value)):
            raise RuntimeError(_SIZES)
        _GRAD.__set__(self, value)

    @grad.deleter
    def grad(self) -> None:
        _GRAD.__delete__(self)

    nelement = numel
    __len__ = flatten = ravel = refusing(RuntimeError, _SIZES)
    numpy = __array__ = refusing(RuntimeError, _SIZES)
    stride = tolist = refusing(RuntimeError, _STRIDES)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return True

    def contiguous(self, memory_format: Any = None) -> Any:
        return self

    def item(self) -> Any:
        raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")

    def __bool__(self) -> bool:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        if dim != 0:
            raise RuntimeError(
                f"unbind(): NestedTensor can only be unbound along dimension 0, got dimension {dim} instead."
            )
        return _Parts.apply(self) if self.parts else ()

    def __iter__(self) -> Any:
        return iter(self.unbind())

    def __getitem__(self, index: Any) -> Any:
        first, *others = index if isinstance(index, tuple) else (index,)
        if type(first) is not int:
            refuse("aten::slice.Tensor", _BACKEND)
        count = len(self.parts)
        if not -count <= first < count:
            raise IndexError(f"index {first} is out of bounds for dimension 0 with size {count}")
        part = self.unbind()[first]
        return part[tuple(others)] if others else part

    def __setitem__(self, index: Any, value: Any) -> None:
        refuse("aten::slice.Tensor", _BACKEND)

    def sum(self, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Any:
        if dim is None or out is not None:
            refuse("aten::sum", _BACKEND)
        dims = dim if isinstance(dim, (tuple, list)) else (dim,)
        if [d % self.dim() for d in dims] != [self.dim() - 1]:
            raise RuntimeError(
                "NestedTensor can only be reduced across the last dimension for now got dimension "
                f"{dims[0]} instead."
            )
        if not keepdim:
            raise RuntimeError("NestedTensor always requires keepdim=True for now.")
        return _Sum.apply(self, dtype)

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        return _Padded.apply(self, padding, output_size)

    def is_same_size(self, other: Any) -> bool:
        return same_size(self, other)

    def _nested_tensor_size(self) -> Tensor:
        return _table([list(part.shape) for part in self.parts])

    def _nested_tensor_strides(self) -> Tensor:
        return _table([list(part.stride()) for part in self.parts])

    def _nested_tensor_storage_offsets(self) -> Tensor:
        counts = [part.numel() for part in self.parts]
        return _table([sum(counts[:i]) for i in range(len(counts))])

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        shown = [repr(part.detach().requires_grad_(self.requires_grad)) for part in self.parts]
        inner = ",\n".join("  " + text.replace("\n", "\n  ") for text in shown)
        ending = ""
        if self.grad_fn is not None:
            ending = f", grad_fn=<{self.grad_fn.name()}>"
        elif self.requires_grad:
            ending = ", requires_grad=True"
        return f"nested_tensor([\n{inner}\n]{ending})"

    def values(self) -> Tensor:
        import rushlight

        return rushlight.cat([part.reshape(-1) for part in self.unbind()])

    def __copy__(self) -> Any:
        return self.detach().requires_grad_(self.requires_grad)

    __reduce_ex__ = __deepcopy__ = refusing(NotImplementedError, "Cannot access storage of {impl}")


def _table(rows: list) -> Tensor:
    import rushlight

    return rushlight.tensor(rows, dtype=_C.int64)


def _padded(parts: tuple) -> tuple[int, ...]:
    """The sizes that hold every part, one behind the other."""
    return (len(parts), *(max(lengths) for lengths in zip(*(part.shape for part in parts), strict=True)))


def wrap(parts: Any, dtype: Any = None, device: Any = None) -> NestedTensor:
    """A nested tensor of these parts, which have one number of dimensions, dtype and device."""
    parts = tuple(parts)
    dtype = parts[0].dtype if parts else dtype or _C.float32
    whole = _C.empty(_padded(parts), dtype, "meta")
    made: Any = _C.make_wrapper(NestedTensor, whole, parts[0].device if parts else device, 0)
    made.parts = parts
    return made


def _part(value: Any, i: int) -> Any:
    return value.parts[i] if type(value) is NestedTensor else value


def _run(func: Any, args: Any, kwargs: dict) -> Any:
    name = func.name().removeprefix("aten::").partition(".")[0]
    kernel = _KERNELS.get(name)
    if kernel is not None:
        return kernel(func, *args, **kwargs)
    if name not in _POINTWISE and not (name in _IN_FORMULAS and _C.rule_of() is not None):
        refuse(func.name(), _BACKEND)
    return _by_part(func, args, kwargs, name)


def _by_part(func: Any, args: Any, kwargs: dict, name: str) -> Any:
    tensors = [value for value in args if isinstance(value, Tensor)]
    nested = [value for value in tensors if type(value) is NestedTensor]
    if any(value.dim() for value in tensors if type(value) is not NestedTensor):
        which = "a nested self and non-nested other", "a non-nested self and nested other"
        raise RuntimeError(
            f"Expected both self and other to be nested, but got {which[type(args[0]) is not NestedTensor]}"
        )
    first = nested[0]
    if any(value.outline() != first.outline() for value in nested):
        raise RuntimeError(f"{name} does not support broadcasting when given a NestedTensor")
    results = [func(*(_part(value, i) for value in args), **kwargs) for i in range(len(first.parts))]
    if name.endswith("_"):
        return args[0]
    if results and isinstance(results[0], tuple):
        return tuple(wrap(each) for each in zip(*results, strict=True))
    return wrap(results, first.dtype, first.device)


def _softmax(func: Any, x: NestedTensor, dim: int, half: bool) -> NestedTensor:
    return wrap([func(part, _inner(dim, x, "softmax"), half) for part in x.parts], x.dtype, x.device)


def _softmax_backward(func: Any, grad: Any, output: NestedTensor, dim: int, dtype: Any) -> NestedTensor:
    inner = _inner(dim, output, "softmax backward")
    pairs = zip(grad.parts, output.parts, strict=True)
    return wrap([func(g, part, inner, dtype) for g, part in pairs], output.dtype, output.device)


def _inner(dim: int, x: NestedTensor, name: str) -> int:
    if dim % x.dim() == 0:
        raise RuntimeError(f"Cannot apply {name} across nested dimension 0")
    return dim % x.dim() - 1


_KERNELS: dict[str, Callable] = {"_softmax": _softmax, "_softmax_backward_data": _softmax_backward}


class Joined(Function):
    """The nested tensor of tensors that may have a history."""

    _node_name = "NestedTensorFromTensorListBackward0"

    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        return wrap([tensor.contiguous().clone() for tensor in tensors])

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return tuple(grad.unbind())


class _Parts(Function):
    _node_name = "UnbindBackwardAutogradNestedTensor0"

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.like = x.outline(), x.dtype
        # Copies: a write to a view of a part would not be noticed by what has kept the nested tensor.
        return tuple(part.clone() for part in x.parts)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        import rushlight

        sizes, dtype = ctx.like
        pairs = zip(grads, sizes, strict=True)
        return Joined.apply(*(rushlight.zeros(size, dtype=dtype) if g is None else g for g, size in pairs))


class _Sum(Function):
    _node_name = "SumBackwardAutogradNestedTensor1"

    @staticmethod
    def forward(ctx: Any, x: Any, dtype: Any) -> Any:
        ctx.save_for_backward(x)
        return wrap([part.sum(-1, keepdim=True, dtype=dtype) for part in x.parts], dtype or x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        pairs = zip(grad.parts, x.parts, strict=True)
        return wrap([g.expand(part.shape).to(part.dtype).clone() for g, part in pairs]), None


class _Padded(Function):
    _node_name = "ToPaddedTensorBackward0"

    @staticmethod
    def forward(ctx: Any, x: Any, padding: float, size: Any) -> Any:
        import rushlight

        ctx.sizes = x.outline()
        padded = _padded(x.parts)
        size = padded if size is None else tuple(size)
        if len(size) != len(padded):
            raise RuntimeError(
                "Length of output_size does not match NestedTensor dims. Broadcasting is not supported."
            )
        if any(wanted < least for wanted, least in zip(size, padded, strict=True)):
            raise RuntimeError(
                "Value in output_size is less than NestedTensor padded size. Truncation is not supported."
            )
        out = rushlight.full(size, padding, dtype=x.dtype)
        for i, part in enumerate(x.parts):
            out[(i, *(slice(0, length) for length in part.shape))] = part
        return out

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        cut = [grad[(i, *(slice(0, length) for length in size))] for i, size in enumerate(ctx.sizes)]
        return Joined.apply(*cut), None, None
