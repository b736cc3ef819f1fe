"""torch.ops.aten.upsample_* and _upsample_*: interpolation by the sizes of the result or by scale factors.

Every kind has two signatures there, which one function serves here: (input, output_size, align_corners,
scales_h, scales_w) and (input, output_size or None, align_corners, scale_factors); the nearest ones take no
align_corners. `NAME_backward` is the same linear map the other way round.
"""

from __future__ import annotations

from typing import Any

from rushlight import _C
from rushlight.ops._public import write_out
from rushlight.ops.resample import _check_sizes

_AXES = {1: ("",), 2: ("_h", "_w"), 3: ("_d", "_h", "_w")}
# By the name in torch: the primitive's taps and how many dimensions it resizes.
KINDS = {
    "upsample_linear1d": ("linear", 1),
    "upsample_bilinear2d": ("linear", 2),
    "upsample_trilinear3d": ("linear", 3),
    "upsample_bicubic2d": ("cubic", 2),
    "_upsample_bilinear2d_aa": ("linear_aa", 2),
    "_upsample_bicubic2d_aa": ("cubic_aa", 2),
    "_upsample_lanczos2d_aa": ("lanczos_aa", 2),
    **{f"upsample_nearest{n}d": ("nearest", n) for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d": ("nearest-exact", n) for n in (1, 2, 3)},
}


def _given(names: list[str], args: tuple, kwargs: dict) -> list[Any]:
    """The values of these parameters, None for what is not given."""
    if len(args) > len(names):
        raise TypeError(f"expected at most {len(names)} arguments but got {len(args)}")
    values = dict(zip(names, args))
    for name, value in kwargs.items():
        if name not in names or name in values:
            raise TypeError(f"Unknown keyword argument '{name}'")
        values[name] = value
    return [values.get(name) for name in names]


def _scales(args: tuple, kwargs: dict, names: list[str]) -> tuple[tuple, dict, Any]:
    """Takes scale_factors, or the scales one by one, off the arguments after those of these names."""
    factors = kwargs.pop("scale_factors", None)
    if len(args) == len(names) + 1 and not isinstance(args[-1], (int, float)):
        args, factors = args[:-1], args[-1]
    return args, kwargs, factors


def _of(name: str) -> Any:
    kind, dims = KINDS[name]
    primitive = getattr(_C.ops, name.removeprefix("_"))
    before = [] if kind.startswith("nearest") else ["align_corners"]
    axes = [f"scales{axis}" for axis in _AXES[dims]]

    def spec(align: Any, factors: Any, spatial: Any, size: Any) -> tuple:
        scales = None
        if factors is not None and any(factor is not None for factor in factors):
            scales = tuple(
                m / n if factor is None else float(factor) for factor, n, m in zip(factors, spatial, size)
            )
        return (kind, scales) if not before else (kind, bool(align), scales)

    def upsample(input: Any, output_size: Any = None, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        args, kwargs, factors = _scales(args, kwargs, before)
        values = _given(before + axes, args, kwargs)
        listed = factors is not None
        factors = factors if listed else values[len(before) :]
        spatial = input.shape[2:]
        if output_size is None:
            if any(factor is None for factor in factors):
                raise RuntimeError("Must specify exactly one of output_size and scale_factors")
            if len(factors) != len(spatial):
                raise RuntimeError(
                    "Expected static_cast<int64_t>(scale_factors->size()) == spatial_dimensions to be true, "
                    "but got false."
                )
            scaled = [float(n) * factor for n, factor in zip(spatial, factors)]
            if not all(-(2.0**63) <= n < 2.0**63 for n in scaled):
                raise RuntimeError("value cannot be converted to type int64_t without overflow")
            output_size = [int(n) for n in scaled]
        elif listed:
            raise RuntimeError("Must specify exactly one of output_size and scale_factors")
        if len(output_size) != dims:
            raise RuntimeError(
                f"It is expected output_size equals to {dims}, but got size {len(output_size)}"
            )
        if input.dim() != dims + 2:
            raise RuntimeError(f"It is expected input_size equals to {dims + 2}, but got size {input.dim()}")
        size = tuple(n.__index__() for n in output_size)
        _check_sizes(input, size, dims)
        result = primitive(input, size, spec(values[0], factors, spatial, size), False)
        return result if out is None else write_out(out, result)

    def backward(
        grad_output: Any, output_size: Any, input_size: Any, *args: Any, grad_input: Any = None, **kwargs: Any
    ) -> Any:
        args, kwargs, factors = _scales(args, kwargs, before)
        values = _given(before + axes, args, kwargs)
        spatial, size = tuple(input_size[2:]), tuple(output_size)
        if tuple(grad_output.shape) != (*input_size[:2], *size):
            raise RuntimeError(
                f"Expected grad_output to have the same shape as output; output.size = "
                f"{[*input_size[:2], *size]} but got grad_output.size = {list(grad_output.shape)}"
            )
        taps = spec(values[0], values[len(before) :] if factors is None else factors, spatial, size)
        result = primitive(grad_output, spatial, taps, True)
        return result if grad_input is None else write_out(grad_input, result)

    upsample.__name__ = upsample.__qualname__ = name
    backward.__name__ = backward.__qualname__ = f"{name}_backward"
    return upsample, backward


FUNCTIONS = {
    named: function
    for name in KINDS
    for named, function in zip((name, f"{name}_backward"), _of(name), strict=True)
}
