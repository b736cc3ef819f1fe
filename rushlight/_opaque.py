"""Tensors in oneDNN's layout (`to_mkldnn`), which only some operations take, until `to_dense`.

There is no oneDNN here and nothing to arrange anew: such a tensor holds an ordinary one, with which the
operations that torch has for the layout compute. What else is asked of it is refused.
"""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight import _C
from rushlight._sparse.table import kernel, refuse
from rushlight.ops import create

Tensor = _C.Tensor
_DTYPES = (_C.float32, _C.bfloat16, _C.float16, _C.uint8, _C.int8)
_COMPUTED = (
    "_softmax", "add", "add_", "clone", "detach", "gelu", "mul", "mul_", "relu", "relu_", "sigmoid",
    "sigmoid_", "t", "tanh", "tanh_", "threshold_backward", "transpose", "view", "zero_",
)  # fmt: skip


def _refusing(error: type[Exception], sentence: str) -> Any:
    def refuse_it(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise error(sentence)

    return refuse_it


class OpaqueTensor(Tensor):
    """Not to be made but by `wrap`."""

    __slots__ = ("held",)
    held: Tensor

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.name().removeprefix("aten::").partition(".")[0]
        if name == "_to_dense":
            held = args[0].held
            return held.to((kwargs or {}).get("dtype") or (args[1:] or [None])[0] or held.dtype, copy=True)
        if name not in _COMPUTED:
            refuse(func.name(), "MkldnnCPU")
        tensors = [value for value in args if isinstance(value, Tensor)]
        if not all(type(value) is OpaqueTensor for value in tensors):
            raise RuntimeError("itensor_from_mkldnn expects MKL-DNN tensor input")
        result = func(*map(_unwrapped, args), **(kwargs or {}))
        return args[0] if name.endswith("_") else wrap(result)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return Tensor

    @property
    def layout(self) -> Any:
        return create._mkldnn

    @property
    def is_mkldnn(self) -> bool:
        return True

    @property
    def data(self) -> Any:  # type: ignore[override]
        return self.detach()

    view = _refusing(
        RuntimeError, "Currently Mkldnn tensor does not support view. Change to use reshape instead"
    )
    data_ptr = tolist = _refusing(
        RuntimeError, "Cannot access data pointer of Tensor that doesn't have storage"
    )
    storage = untyped_storage = __reduce_ex__ = __deepcopy__ = _refusing(
        NotImplementedError, "Cannot access storage of OpaqueTensorImpl"
    )
    numpy = __array__ = _refusing(
        TypeError, "can't convert Mkldnn layout tensor to numpy. Use Tensor.to_dense() first."
    )


OpaqueTensor.__name__ = OpaqueTensor.__qualname__ = "Tensor"
OpaqueTensor.__module__ = "torch"


def _unwrapped(value: Any) -> Any:
    return value.held if type(value) is OpaqueTensor else value


def wrap(held: Tensor) -> OpaqueTensor:
    """A tensor in this layout that holds another."""
    whole = _C.empty(tuple(held.shape), held.dtype, "meta")
    made: Any = _C.make_wrapper(OpaqueTensor, whole, held.device, 0)
    made.held = held
    return made


@kernel("to_mkldnn")
def to_mkldnn(x: Tensor, dtype: Any) -> OpaqueTensor:
    """What holds a copy of a dense tensor."""
    if x.dtype not in _DTYPES:
        raise RuntimeError("dense_to_mkldnn expects float, bfloat16, half, uint8, int8 tensor input")
    return wrap(x.detach().contiguous().clone() if dtype is None else x.detach().to(dtype, copy=True))
