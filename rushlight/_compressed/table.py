"""Which kernel computes a primitive that is given compressed tensors; see rushlight/_sparse/table.py."""

from __future__ import annotations

from typing import Any

from rushlight._compressed.tensor import CompressedTensor
from rushlight._indexed import check_cast
from rushlight._sparse.table import Table

COMPRESSED = Table("SparseCsrCPU")
kernel, in_place = COMPRESSED.kernel, COMPRESSED.in_place

# What torch computes element by element with any strides, and refuses by the layout.
_ELEMENTWISE = (
    "acos", "acosh", "addcdiv", "addcmul", "atan2", "bitwise_and", "bitwise_not", "bitwise_or",
    "bitwise_xor", "clamp", "clamp_max_scalar", "clamp_min_scalar", "clamp_scalar", "copysign", "cos",
    "cosh", "digamma", "div", "div_floor", "div_trunc", "elu", "eq", "erfc", "exp", "exp2",
    "float_power", "fmax", "fmin", "fmod", "gcd", "ge", "gelu", "gelu_tanh", "gt", "hypot", "i0",
    "isclose", "isfinite", "lcm", "le", "leaky_relu", "lerp", "lerp_scalar", "lgamma", "log", "log10",
    "log2", "logaddexp", "logaddexp2", "logit", "lt", "maximum", "minimum", "mish", "mse_loss", "ne",
    "nextafter", "pow", "pow_scalar", "reciprocal", "remainder", "rsqrt", "rsub_number", "scalar_pow",
    "sigmoid", "sigmoid_backward", "silu", "sinc", "softplus", "square", "sub", "sub_alpha",
    "tanh_backward", "threshold", "xlogy",
)  # fmt: skip


def assign(out: Any, result: Any) -> Any:
    """Lets `out` be what was computed for it."""
    if type(out) is not CompressedTensor:
        return out.copy_(result.to_dense() if type(result) is CompressedTensor else result)
    if type(result) is not CompressedTensor:
        raise RuntimeError(f"a dense result cannot be written into a {out.kind} tensor")
    from rushlight.ops.sparse_forms import give_size

    check_cast(result, out)
    compressed, plain, values = result.parts
    give_size(out, result.shape)
    out.parts, out.form = (compressed, plain, values.to(out.dtype)), result.form
    return out


def _missing(name: str, args: tuple) -> None:
    if name in _ELEMENTWISE:
        first = next(value for value in args if type(value) is CompressedTensor)
        raise RuntimeError(f"unsupported tensor layout: {first.kind}")


COMPRESSED.assign, COMPRESSED.missing = assign, _missing

from rushlight._compressed import arithmetic, build, products, shape  # noqa: E402, F401  (the kernels themselves)
