"""What a node saved, under the names that torch gives it: `grad_fn._saved_self`, `grad_fn._raw_saved_self`.

A primitive names its arguments in its own way, and keeps some of them in another form. `_TORCH_NAMES` says
which of our names a name of torch can mean; `_OF_NODE` is for nodes where that is not enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import _C

_TORCH_NAMES = {
    "self": ("x", "a", "input"),
    "other": ("b", "y"),
    "result": ("out",),
    "exponent": ("b", "s"),
    "alpha": ("s",),
    "threshold": ("s",),
    "negative_slope": ("s",),
    "min": ("s",),
    "max": ("t",),
    "mat1": ("a", "x"),
    "mat2": ("b",),
    "tensors": ("tensors",),
    "indices": ("indices", "index"),
    "condition": ("condition", "mask"),
    "self_sym_sizes": ("x_shape", "a_shape"),
    "self_sizes": ("x_shape", "a_shape"),
    "input": ("input", "x"),
}


def _pair(value: Any) -> tuple:
    return (value, value) if isinstance(value, int) else () if value is None else tuple(value)


def _unsigned(value: int) -> int:
    """torch shows the negative dimensions of some nodes as the machine has them."""
    return value % 2**64


def _scale(index: int) -> Callable:
    """The scale factor along a dimension of an Upsample node, None if sizes were given."""
    return lambda spec: None if spec[-1] is None else float(spec[-1][index])


# node -> name of torch -> (our name, conversion), or a constant.
_KEEP = ("kernel_size", "stride", "padding", "dilation")
_WINDOW = {name: (name, _pair) for name in _KEEP}
_AVERAGE = {
    "kernel_size": ("spec", lambda spec: spec[1]),
    "stride": ("spec", lambda spec: () if spec[2] == spec[1] else spec[2]),
    "padding": ("spec", lambda spec: spec[3]), "count_include_pad": ("spec", lambda spec: spec[4]),
    "divisor_override": ("spec", lambda spec: spec[5] or None),
}  # fmt: skip
_RESIZE_1D = {"output_size": ("size", tuple), "scales": ("spec", _scale(0))}
_RESIZE_2D = {
    "output_size": ("size", tuple),
    "scales_h": ("spec", _scale(0)),
    "scales_w": ("spec", _scale(1)),
}
_CORNERS = {"align_corners": ("spec", lambda spec: spec[1])}
_ADDC = {"tensor1": ("b", None), "tensor2": ("c", None), "value": ("s", None)}
_OF_NODE: dict[str, dict[str, Any]] = {
    "AddcdivBackward0": _ADDC,
    "AddcmulBackward0": _ADDC,
    "AsStridedBackward0": {"storage_offset": ("offset", None)},
    "AvgPool2DBackward0": _AVERAGE,
    "AvgPool3DBackward0": _AVERAGE,
    "CatBackward0": {"dim": ("dim", _unsigned)},
    "DivBackward0": {"rounding_mode": None},
    "EluBackward0": {"alpha": ("s", None), "scale": ("t", None), "input_scale": ("u", None)},
    "EmbeddingBackward0": {
        "padding_idx": ("padding_idx", _unsigned),
        "scale_grad_by_freq": ("scale", None),
        "sparse": False,
        "weight_sym_argsize_0": ("weight_shape", lambda shape: shape[0]),
    },
    "GatherBackward0": {"sparse_grad": False},
    "Im2ColBackward0": _WINDOW,
    "LerpBackward0": {"weight": ("s", None)},
    "LerpBackward1": {"weight": ("c", None), "end": ("b", None)},
    "MaxPool2DWithIndicesBackward0": _WINDOW,
    "MaxPool3DWithIndicesBackward0": _WINDOW,
    "MseLossBackward0": {"reduction": ("reduction", lambda name: ("none", "mean", "sum").index(name))},
    "NativeGroupNormBackward0": {
        "result1": ("mean", None), "result2": ("rstd", None), "group": ("groups", None),
    },
    "NativeLayerNormBackward0": {"result1": ("mean", None), "result2": ("rstd", None)},
    "PolygammaBackward0": {"n": ("s", None)},
    "SoftplusBackward0": {"beta": ("s", None), "threshold": ("t", None)},
    "StackBackward0": {"dim": ("dim", _unsigned)},
    "UnbindBackward0": {"dim": ("dim", _unsigned)},
    "UnfoldBackward0": {"dimension": ("dim", None)},
    "UpsampleBicubic2DBackward0": _RESIZE_2D | _CORNERS,
    "UpsampleBilinear2DBackward0": _RESIZE_2D | _CORNERS,
    "UpsampleLinear1DBackward0": _RESIZE_1D | _CORNERS,
    "UpsampleNearest1DBackward0": _RESIZE_1D,
    "UpsampleNearest2DBackward0": _RESIZE_2D,
}  # fmt: skip
# Where torch keeps a tuple of dimensions and a primitive one dimension.
_DIM_TUPLES = ("SumBackward1", "MeanBackward1", "VarBackward0", "StdBackward0", "LogsumexpBackward0",
               "AmaxBackward0", "AminBackward0", "LinalgVectorNormBackward0")  # fmt: skip


def saved_attribute(node: Any, attribute: str) -> Any:
    """The value of an attribute `_saved_*` or `_raw_saved_*` of a node."""
    raw = attribute.startswith("_raw_saved_")
    name = attribute.removeprefix("_raw_saved_" if raw else "_saved_")
    special = _OF_NODE.get(node.name(), {}).get(name, ())
    if special != () and not isinstance(special, tuple):
        return special
    ours, convert = special or ("", None)
    candidates = (ours,) if ours else (name, *_TORCH_NAMES.get(name, ()))
    for found, slot, out in node._saved_names():
        if found not in candidates:
            continue
        if raw:
            if name == "indices":
                node._unpack(slot, out)  # raises if it has been freed
            return _C.raw_saved(node, slot, out)
        value = node._unpack(slot, out)
        return convert(value) if convert is not None else _as_torch_keeps(node, name, value)
    if raw:
        raise _missing(node, attribute)
    if name in ("self_sym_sizes", "self_sizes", "self_sym_numel") and node.next_functions:
        source, number = node.next_functions[0]
        if source is not None:
            shape = source._outputs()[number][0]
            return shape.numel() if name == "self_sym_numel" else tuple(shape)
    primitive = node._primitive
    known = () if primitive is None else (*primitive.args, *primitive.outputs)
    if any(candidate in known for candidate in candidates):
        return None
    if name == "alpha" and node.name() in ("AddBackward0", "SubBackward0"):
        return 1
    if name == "rounding_mode" and node.name() == "DivBackward2":
        return "trunc" if primitive.__name__ == "div_trunc" else "floor"
    if name == "approximate" and primitive is not None and primitive.__name__.startswith("gelu"):
        return "tanh" if primitive.__name__ == "gelu_tanh" else "none"
    raise _missing(node, attribute)


def _missing(node: Any, attribute: str) -> AttributeError:
    return AttributeError(f"'{type(node).__name__}' object has no attribute '{attribute}'")


def _as_torch_keeps(node: Any, name: str, value: Any) -> Any:
    if name == "dim" and node.name() in _DIM_TUPLES and isinstance(value, int):
        return (value,)
    if name == "other" and isinstance(value, (int, float, complex)):
        from rushlight import tensor

        dtype = (
            _C.float64 if isinstance(value, float) else _C.complex128 if isinstance(value, complex) else None
        )
        return tensor(value, dtype=dtype)
    # A Size compares and prints like the tuple torch has there, but is not one.
    return tuple(value) if isinstance(value, tuple) else value
