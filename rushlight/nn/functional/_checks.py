"""Argument checks that the functions of this package share, worded as torch words them."""

from rushlight import Tensor

# How torch's messages call the dtypes.
_SCALAR_TYPE = {
    "float32": "Float",
    "float64": "Double",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "bool": "Bool",
}


def scalar_type(dtype):
    """``torch.int64`` is "Long" in messages."""
    name = str(dtype).rpartition(".")[2]
    return _SCALAR_TYPE.get(name, name)


def require_tensor(function, value, position=1, name="input"):
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{function}(): argument '{name}' (position {position}) must be Tensor, not "
            f"{type(value).__name__}"
        )


def require_floating(function, kernel, value):
    """Refuse all but tensors of real floating-point numbers; torch names ``kernel`` in the message."""
    if not isinstance(value, Tensor):
        require_tensor(function, value)
    if not value.is_floating_point():
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_type(value.dtype)}'")


def assign(input, function):
    """The in-place form of a composed function: what it saves must not be the memory that is overwritten."""
    return input.copy_(function(input.clone()))
