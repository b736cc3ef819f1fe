"""Tensors in oneDNN's layout (`to_mkldnn`), which only some operations take, until `to_dense`.

There is no oneDNN here and nothing to arrange anew: such a tensor holds an ordinary one, with which the
operations that torch has for the layout compute. What else is asked of it is refused.
"""

from __future__ import annotations

from typing import Any

from rushlight import _C
from rushlight._sparse.table import refuse
from rushlight._unstored import Unstored, maker, refusing
from rushlight.ops import create

Tensor = _C.Tensor
_DTYPES = (_C.float32, _C.bfloat16, _C.float16, _C.uint8, _C.int8)
_COMPUTED = (
    "_softmax", "add", "add_", "clone", "detach", "gelu", "mul", "mul_", "relu", "relu_", "sigmoid",
    "sigmoid_", "t", "tanh", "tanh_", "threshold_backward", "transpose", "view", "zero_",
)  # fmt: skip


# What makes another tensor of the same kind, if it is told the layout.
_MADE_LIKE = (
    "new_empty",
    "new_full",
    "new_ones",
    "new_zeros",
    "empty_like",
    "full_like",
    "ones_like",
    "zeros_like",
)


class OpaqueTensor(Unstored):
    """Not to be made but by `wrap`."""

    __slots__ = ("held",)
    kind, impl = "Mkldnn", "OpaqueTensorImpl"
    held: Tensor

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.name().removeprefix("aten::").partition(".")[0]
        if name == "_to_dense":
            held = args[0].held
            return held.to((kwargs or {}).get("dtype") or (args[1:] or [None])[0] or held.dtype, copy=True)
        if name in _MADE_LIKE and (kwargs or {}).get("layout") is create.strided:
            return func(args[0].held, *args[1:], **(kwargs or {}))
        if name not in _COMPUTED:
            refuse(func.name(), "MkldnnCPU")
        tensors = [value for value in args if isinstance(value, Tensor)]
        if not all(type(value) is OpaqueTensor for value in tensors):
            raise RuntimeError("itensor_from_mkldnn expects MKL-DNN tensor input")
        result = func(*map(_unwrapped, args), **(kwargs or {}))
        return args[0] if name.endswith("_") else wrap(result)

    @property
    def layout(self) -> Any:
        return create._mkldnn

    @property
    def is_mkldnn(self) -> bool:
        return True

    def memory(self) -> Tensor:
        return self.held

    def fit_gradient(self, gradient: Tensor, masked: bool | None) -> Tensor:
        return gradient.to_mkldnn()

    view = refusing(
        RuntimeError, "Currently Mkldnn tensor does not support view. Change to use reshape instead"
    )
    __reduce_ex__ = __deepcopy__ = refusing(NotImplementedError, "Cannot access storage of {impl}")


def _unwrapped(value: Any) -> Any:
    return value.held if type(value) is OpaqueTensor else value


def wrap(held: Tensor) -> OpaqueTensor:
    """A tensor in this layout that holds another."""
    whole = _C.empty(tuple(held.shape), held.dtype, "meta")
    made: Any = _C.make_wrapper(OpaqueTensor, whole, held.device, 0)
    made.held = held
    return made


@maker("to_mkldnn")
def to_mkldnn(x: Tensor, dtype: Any) -> OpaqueTensor:
    """What holds a copy of a dense tensor."""
    if x.dtype not in _DTYPES:
        raise RuntimeError("dense_to_mkldnn expects float, bfloat16, half, uint8, int8 tensor input")
    return wrap(x.detach().contiguous().clone() if dtype is None else x.detach().to(dtype, copy=True))
