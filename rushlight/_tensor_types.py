"""torch's older way to name tensors: FloatTensor, LongTensor and so on, `tensor.type()`, `tensor.new()`."""

from __future__ import annotations

from rushlight import _C
from rushlight._annotations import Any
from rushlight._type_names import type_name as class_name
from rushlight._warn import warn_once
from rushlight.ops import create
from rushlight.ops._public import _TYPE_NAMES, C_NAMES, dims, method, whole

Tensor = _C.Tensor

_DTYPES = {
    "FloatTensor": _C.float32, "DoubleTensor": _C.float64, "HalfTensor": _C.float16,
    "BFloat16Tensor": _C.bfloat16, "ByteTensor": _C.uint8, "CharTensor": _C.int8, "ShortTensor": _C.int16,
    "IntTensor": _C.int32, "LongTensor": _C.int64, "BoolTensor": _C.bool,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()} | {
    _C.complex64: "ComplexFloatTensor",
    _C.complex128: "ComplexDoubleTensor",
    **{dtype: _TYPE_NAMES[dtype] + "Tensor" for dtype in _TYPE_NAMES if dtype not in _DTYPES.values()},
}


class tensortype(type):
    """The type of FloatTensor and its kin: calling one makes a tensor, and isinstance asks for the dtype."""

    dtype: _C.dtype
    is_cuda = False
    is_sparse = False
    layout = create.strided

    def __call__(cls, *args: Any, device: Any = None, **unknown: Any) -> Tensor:
        if unknown:
            from rushlight._tensor import _construct

            _construct(*args, device=device, **unknown, dtype=cls.dtype)  # refuses
        return legacy_tensor(cls.dtype, device, args)

    def __instancecheck__(cls, instance: object) -> bool:
        if not isinstance(instance, Tensor) or instance.dtype != cls.dtype:
            return False
        return instance.is_cpu and instance.layout is create.strided

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


def legacy_tensor(dtype: _C.dtype, device: Any, args: tuple) -> Tensor:
    """Uninitialised memory of the given sizes, or a copy of data."""
    device = _C.as_device(device or "cpu")  # these do not ask for the default device
    if device.type != "cpu":
        raise RuntimeError(
            f"legacy constructor expects device type: cpu but device type: {device.type} was passed"
        )
    if not args:
        return _empty((0,), dtype, device)
    if any(getattr(type(arg), "__module__", "") == "numpy" for arg in args):
        args = tuple(map(whole, args))
    if all(isinstance(arg, int) and not isinstance(arg, bool) for arg in args):
        for at, size in enumerate(args, 1):
            if not -(2**63) <= size < 2**63:
                raise TypeError(
                    f"new(): argument 'size' failed to unpack the object at pos {at} with error "
                    '"Overflow when unpacking long long\n"'
                )
        return _empty(args, dtype, device)
    if len(args) > 1:
        at, wrong = next((i, arg) for i, arg in enumerate(args, 1) if not isinstance(arg, int))
        raise TypeError(
            f"new(): argument 'size' failed to unpack the object at pos {at} with error \"type must be tuple "
            f'of ints,but got {class_name(wrong)}"'
        )
    (data,) = args
    if isinstance(data, Tensor):
        if data.dtype != dtype:
            raise TypeError(f"expected {_options(dtype)} (got {_options(data.dtype)})")
        return _C.ops.alias(data)
    if type(data).__name__ == "Size":
        return _empty(tuple(data), dtype, device)
    if any(kind.__name__ in ("TypedStorage", "UntypedStorage") for kind in type(data).__mro__):
        if getattr(data, "dtype", dtype) != dtype:
            raise RuntimeError(
                f"Expected a Storage of type {_TYPE_NAMES[dtype]} or an UntypedStorage, but got type "
                f"{_TYPE_NAMES[data.dtype]} for argument 1 'storage'"
            )
        return _C.empty((0,), dtype, device).set_(data)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{class_name(data)}'")
    sequence = hasattr(data, "__array__") or (hasattr(data, "__getitem__") and hasattr(data, "__len__"))
    sequence = sequence and not isinstance(data, dict)
    if not sequence or getattr(data, "ndim", 1) == 0:
        raise TypeError(f"new(): data must be a sequence (got {class_name(data)})")
    return create.tensor(data, dtype=dtype, device=device)


def _empty(size: tuple, dtype: _C.dtype, device: Any) -> Tensor:
    made = _C.empty(size, dtype, device)
    return create.mark_unwritten(made) if create.deterministic else made


def _options(dtype: _C.dtype) -> str:
    """torch's account of what kind of tensors have this dtype."""
    return (
        f"TensorOptions(dtype={C_NAMES[dtype]}, device=cpu, layout=Strided, requires_grad=false (default), "
        "pinned_memory=false (default), memory_format=(nullopt))"
    )


TYPES = {
    name: tensortype(name, (), {"dtype": dtype, "__module__": "torch", "__doc__": f"Tensors of {dtype}."})
    for name, dtype in _DTYPES.items()
}


def type_of(name: Any) -> _C.dtype:
    """The dtype that a dtype, a tensor type or its name means."""
    if isinstance(name, _C.dtype):
        return name
    if isinstance(name, tensortype):
        return name.dtype
    if isinstance(name, bytes):
        name = name.decode()
    if name is Tensor or name == "torch.Tensor":
        return _C.get_default_dtype()
    if isinstance(name, type):
        space = "numpy." if name.__module__ == "numpy" else ""
        raise ValueError(f"invalid type: '{space}{name.__name__}'")
    if not isinstance(name, str):
        raise TypeError("dtype must be a type, str, or dtype object")
    short = name.removeprefix("torch.") if name.startswith("torch.") else ""
    if short in _DTYPES or short in ("ComplexFloatTensor", "ComplexDoubleTensor"):
        return next(dtype for dtype, known in _NAMES.items() if known == short)
    if isinstance(name, str) and short.startswith("cuda."):
        raise RuntimeError("Cannot initialize CUDA without ATen_cuda library.")
    raise ValueError(f"invalid type: {name!r}")


def type_string(tensor: Tensor) -> str:
    """What tensor.type() answers: torch.FloatTensor, torch.cuda.FloatTensor."""
    place = "" if tensor.device.type == "cpu" else f"{tensor.device.type}."
    return f"torch.{place}{_NAMES[tensor.dtype]}"


@method(name="type")
def _type(self, dtype=None, non_blocking=False, **kwargs):
    """The name of this tensor's type, or the tensor in another one.

    >>> rushlight.ones(1).type(), rushlight.ones(1).type(rushlight.int64)
    ('torch.FloatTensor', tensor([1]))
    """
    return type_string(self) if dtype is None else self.to(type_of(dtype))


@method
def new(self, *args, size=None, device=None, other=None, storage=None, data=None):
    """A tensor of this one's dtype and device: uninitialised of the given sizes, or a copy of data.

    >>> rushlight.ones(1).new([1, 2])
    tensor([1., 2.])
    """
    if size is not None and not args:
        return self.new_empty(size, device=device)
    if len(args) == 1 and isinstance(args[0], tuple) and type(args[0]).__name__ == "Size":
        return self.new_empty(dims(args), device=device)
    args = args or tuple(given for given in (other, storage, data) if given is not None)
    if len(args) > 1:  # sizes, of which those behind the first may be booleans
        args = (args[0], *(int(size) if isinstance(size, bool) else size for size in args[1:]))
    return legacy_tensor(self.dtype, self.device if device is None else device, args)


def set_default_tensor_type(t: Any) -> None:
    """Makes the dtype of a floating tensor type the default; deprecated in torch.

    >>> rushlight.set_default_tensor_type(rushlight.FloatTensor)
    """
    warn_once(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
        "torch.set_default_dtype() and torch.set_default_device() as alternatives."
    )
    if not isinstance(t, (str, tensortype)):
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    dtype = type_of(t)
    if not dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _C.set_default_dtype(dtype)


def typename(obj: Any, /) -> str:
    """The name of an object's type: torch.FloatTensor for a tensor, else the class with its module.

    >>> rushlight.typename(rushlight.ones(1)), rushlight.typename(3)
    ('torch.FloatTensor', 'int')
    """
    if isinstance(obj, Tensor):
        return obj.type() if obj.is_sparse else type_string(obj)
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(obj, "__module__", "") or ""
    if module in ("builtins", "__builtin__", ""):
        return kind.__qualname__
    if isinstance(kind, type) and module.startswith("rushlight.nn."):
        from rushlight._checkpoint_pickle import torch_name

        return ".".join(torch_name(module, kind.__qualname__))
    return f"{module}.{kind.__qualname__}".replace("rushlight.", "torch.", 1)
