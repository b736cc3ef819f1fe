"""`grad_fn._saved_self` and its kind: what a node saved, under the names torch has for it.

A primitive calls its arguments otherwise (`x`, `a`, `out`); NAMES says how per node, ALIASES how in general.
What a composed operation was called with and torch would save is kept by rushlight/ops/_node_names.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rushlight import _C

Node = _C.Node

# torch's names of what primitives call otherwise.
ALIASES = {
    "self": ("x", "a", "input", "A"),
    "other": ("b", "y"),
    "result": ("out", "L"),
    "exponent": ("b", "s"),
    "alpha": ("s",),
    "threshold": ("s",),
    "negative_slope": ("s",),
    "min": ("s",),
    "max": ("t",),
    "mat1": ("a", "x"),
    "mat2": ("b",),
    "indices": ("indices", "index"),
    "condition": ("condition", "mask"),
    "self_sym_sizes": ("x_shape", "a_shape"),
    "self_sizes": ("x_shape", "a_shape"),
    "input": ("input", "x"),
    "storage_offset": ("offset",),
    "dimension": ("dim",),
    "dim": ("dims",),
    "source_sym_sizes": ("source_shape",),
    "result1": ("indices", "mean"),
    "result2": ("rstd",),
    "result0": ("std", "var"),
}

# Where torch keeps a tuple of dimensions and a primitive one dimension.
_DIM_TUPLES = (
    "SumBackward1", "MeanBackward1", "VarBackward0", "StdBackward0", "LogsumexpBackward0", "AmaxBackward0",
    "AminBackward0", "NansumBackward0", "StdMeanBackward0", "VarMeanBackward0", "LinalgVectorNormBackward0",
    "NormBackward1",
)  # fmt: skip
# torch shows these as unsigned numbers, also where they are negative.
_UNSIGNED = {
    "dim", "dims", "dim0", "dim1", "dim2", "index", "diagonal", "padding_idx", "ignore_index", "shifts",
    "dimension", "start", "offset",
}  # fmt: skip
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _value(node: Node, name: str) -> Any:
    """What the node saved under the primitive's own name."""
    for found, slot, out in node._names_saved():
        if found == name:
            return node._unpack(slot, out)
    raise LookupError(name)


def _input_shape(node: Node, at: int) -> tuple:
    source, number = node.next_functions[at]
    if source is None:
        raise LookupError(at)
    return tuple(source._outputs()[number][0])


def _sizes(name: str, at: int) -> Callable:
    """The size of an input: of what was saved of it, or of the gradient that goes to it."""

    def sizes(node: Node) -> tuple:
        try:
            return tuple(_value(node, name).shape)
        except LookupError:
            return _input_shape(node, at)

    return sizes


def _strides(name: str, at: int) -> Callable:
    def strides(node: Node) -> tuple:
        try:
            return tuple(_value(node, name).stride())
        except LookupError:
            shape = _input_shape(node, at)
            return tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))

    return strides


def _size(name: str, at: int, dim: int) -> Callable:
    sizes = _sizes(name, at)
    return lambda node: sizes(node)[dim]


def _output_size(node: Node, nr: int, dim: int) -> int:
    return node._outputs()[nr][0][dim]


def _elu_alpha(node: Node) -> Any:
    alpha, scale = _value(node, "s"), _value(node, "t")  # the primitive has their product
    return alpha if scale == 1 else alpha / scale


def _attribute(node: Node, name: str) -> Any:
    """A factor that is 1 where the primitive has none."""
    try:
        return _value(node, name)
    except LookupError:
        return 1


# linear is one step here: torch saves the weight as it multiplies with it, transposed.
def _of_linear(node: Node) -> bool:
    return node._primitive.__name__.startswith("linear")


def _factor(node: Node, *names: str) -> Any:
    saved = {found for found, _, _ in node._names_saved()}
    return next((_value(node, name) for name in names if name in saved), None)


def _second(node: Node, at: int) -> Any:
    if not _of_linear(node):
        return _factor(node, "mat2", "b")
    weight = _factor(node, "weight")
    return weight if weight is None else weight.t()


def _turned(numbers: Callable) -> Callable:
    return lambda node: numbers(node)[::-1] if _of_linear(node) else numbers(node)


def _bias_size(node: Node) -> tuple:
    try:
        return _input_shape(node, 2)
    except LookupError:
        return (0,)


def _normalization(node: Node) -> int:
    dims, scale = _value(node, "dims"), _value(node, "scale")
    shape = _input_shape(node, 0)
    if node.name() == "FftC2RBackward0":
        shape = tuple(node._outputs()[0][0])
    count = math.prod(shape[d] for d in dims)
    return 0 if scale == 1 else 2 if math.isclose(scale, 1 / count) else 1


def _part(of: str, at: int, convert: Any = None) -> Callable:
    """One of the numbers that a primitive keeps together."""
    return lambda node: _value(node, of)[at] if convert is None else convert(_value(node, of))


_AVERAGE = {
    "kernel_size": _part("spec", 1),
    "stride": _part("spec", 2, lambda spec: () if spec[2] == spec[1] else spec[2]),
    "padding": _part("spec", 3),
    "count_include_pad": _part("spec", 4),
    "divisor_override": _part("spec", 5, lambda spec: spec[5] or None),
}

# node: {torch's name: the primitive's name, or a function of the node}
NAMES: dict[str, dict[str, Any]] = {
    "AddcmulBackward0": {"tensor1": "b", "tensor2": "c", "value": "s"},
    "AddcdivBackward0": {"tensor1": "b", "tensor2": "c", "value": "s"},
    "AddbmmBackward0": {
        "batch1_sym_argsize_0": _size("batch1", 1, 0),
        "batch1_sym_argsize_1": _size("batch1", 1, 1),
        "batch2_sym_argsize_2": _size("batch2", 2, 2),
    },
    "AddmmBackward0": {
        "alpha": lambda node: _attribute(node, "alpha"), "beta": lambda node: _attribute(node, "beta"),
        "mat1": lambda node: _factor(node, "mat1", "x"), "mat2": lambda node: _second(node, 2),
        "mat1_sym_sizes": _sizes("mat1", 1), "mat1_sym_strides": _strides("mat1", 1),
        "mat2_sym_sizes": _turned(_sizes("mat2", 2)), "mat2_sym_strides": _turned(_strides("mat2", 2)),
    },
    "MmBackward0": {
        "self": lambda node: _factor(node, "input", "x"), "mat2": lambda node: _second(node, 1),
        "self_sym_sizes": _sizes("input", 0), "self_sym_strides": _strides("input", 0),
        "mat2_sym_sizes": _turned(_sizes("mat2", 1)), "mat2_sym_strides": _turned(_strides("mat2", 1)),
    },
    "AvgPool2DBackward0": _AVERAGE,
    "AvgPool3DBackward0": _AVERAGE,
    "ClampBackward0": {"min": "b", "max": "c"},
    "ClampMinBackward1": {"min": "b"},
    "ClampMaxBackward1": {"max": "b"},
    "ConvolutionBackward0": {
        "input": "x",
        "bias_sym_sizes_opt": _bias_size,
        "transposed": lambda node: node._primitive.__name__ == "conv_transpose",
        "output_padding": lambda node: (0,) * (len(_value(node, "weight_shape")) - 2),
    },
    "EluBackward0": {
        "alpha": _elu_alpha, "scale": "t", "input_scale": "u",
    },
    "EmbeddingBackward0": {
        "scale_grad_by_freq": lambda node: bool(_value(node, "scale")),
        "sparse": lambda node: False,
        "weight_sym_argsize_0": lambda node: _value(node, "weight_shape")[0],
    },
    "FftC2CBackward0": {"normalization": _normalization},
    "FftC2RBackward0": {"normalization": _normalization},
    "FftR2CBackward0": {"normalization": _normalization},
    "GatherBackward0": {"sparse_grad": lambda node: False},
    "GeluBackward0": {
        "approximate": lambda node: "tanh" if "tanh" in node._primitive.__name__ else "none",
    },
    "Im2ColBackward0": {
        "self_sym_argsize_minus_1": lambda node: _value(node, "x_shape")[-1],
        "self_sym_argsize_minus_2": lambda node: _value(node, "x_shape")[-2],
    },
    "IndexAddBackward0": {"source_dim": lambda node: len(_input_shape(node, 1))},
    "IndexCopyBackward0": {"source_dim": lambda node: len(_input_shape(node, 1))},
    "LerpBackward0": {"weight": "s"},
    "LerpBackward1": {"end": "b", "weight": "c"},
    "LinalgLstsqBackward0": {"self": "A", "b": "B"},
    "LinalgSvdBackward0": {"S_sym_argsize_minus_1": lambda node: _value(node, "S").shape[-1]},
    "LinalgVectorNormBackward0": {"ord": lambda node: float(_value(node, "ord"))},
    "NativeBatchNormBackward0": {
        "training": lambda node: node._primitive.__name__ == "batch_norm_train",
    },
    "NativeGroupNormBackward0": {
        "group": "groups",
        "N": lambda node: _sizes("x", 0)(node)[0],
        "C": lambda node: _sizes("x", 0)(node)[1],
        "HxW": lambda node: math.prod(_sizes("x", 0)(node)[2:]),
    },
    "NormBackward1": {"p": "ord"},
    "DistBackward0": {"p": lambda node: float(_value(node, "ord"))},
    "NormalBackward1": {"mean_sym_sizes": lambda node: tuple(node._outputs()[0][0])},
    "PolygammaBackward0": {"n": "s"},
    "PolygammaBackward1": {"n": "s"},
    "PowBackward0": {
        "exponent": lambda node: 2 if node._primitive.__name__ == "square" else _value(node, "s"),
    },
    "ScaledDotProductFlashAttentionForCpuBackward0": {
        "query": "q", "key": "k", "value": "v", "attn_mask": "mask", "is_causal": "causal",
        "dropout_p": lambda node: 0.0,
    },
    "SoftplusBackward0": {"beta": "s", "threshold": "t"},
    "SplitBackward0": {"split_size": lambda node: _output_size(node, 0, _value(node, "dim"))},
    "SplitWithSizesBackward0": {
        "split_sizes": lambda node: tuple(
            _output_size(node, nr, _value(node, "dim")) for nr in range(len(node._outputs()))
        ),
    },
}  # fmt: skip


# What torch saves and no rule here needs: the inputs, in the order of the node's edges, and the outputs. They
# are shown while they live (Note [living outputs], native/graph/living.h).
INPUTS = {
    **dict.fromkeys(
        ("ClampBackward0", "CummaxBackward0", "CumminBackward0", "MaskedSelectBackward0", "GatherBackward0",
         "TakeBackward0", "ErfinvBackward0", "NllLossBackward0", "NllLoss2DBackward0", "FftR2CBackward0",
         "AdaptiveAvgPool2DBackward0", "AdaptiveAvgPool3DBackward0", "AdaptiveMaxPool2DBackward0",
         "AdaptiveMaxPool3DBackward0", "AvgPool2DBackward0", "AvgPool3DBackward0", "GluBackward0",
         "ReflectionPad1DBackward0", "ReflectionPad2DBackward0", "ReflectionPad3DBackward0",
         "ReplicationPad1DBackward0", "ReplicationPad2DBackward0", "ReplicationPad3DBackward0",
         "FractionalMaxPool2DBackward0", "FractionalMaxPool3DBackward0", "MaxPool2DWithIndicesBackward0",
         "MaxPool3DWithIndicesBackward0", "SoftshrinkBackward0", "HardshrinkBackward0", "HardtanhBackward0",
         "MvlgammaBackward0", "LogsumexpBackward0", "PdistBackward0", "CholeskyInverseBackward0",
         "RreluWithNoiseBackward0", "RreluWithNoiseBackward1", "CeluBackward0"),
        "self",
    ),
    "BinaryCrossEntropyBackward0": "self target",
    "BinaryCrossEntropyWithLogitsBackward0": "self target",
    "CdistBackward0": "x1 x2",
    "CholeskySolveBackward0": "self input2",
    "ClampMaxBackward1": "self max",
    "ClampMinBackward1": "self min",
    "ComplexBackward0": "real imag",
    "DistBackward0": "self other",
    "DivBackward2": "self other",
    "EmbeddingBagBackward0": "weight per_sample_weights",
    "GridSampler2DBackward0": "input grid",
    "GridSampler3DBackward0": "input grid",
    "HuberLossBackward0": "self target",
    "IndexAddBackward0": "self source",
    "IndexCopyBackward0": "self source",
    "LogaddexpBackward0": "self other",
    "MultiMarginLossBackward0": "self",
    "MultilabelMarginLossBackward0": "self",
    "OrmqrBackward0": "self input2 input3",
    "PreluKernelBackward0": "self weight",
    "PutBackward0": "self source",
    "SegmentReduceBackward0": "data",
    "SmoothL1LossBackward0": "self target",
    "SoftMarginLossBackward0": "self target",
    "SoftmaxBackwardDataBackward0": "grad_output output",
    "LogSoftmaxBackwardDataBackward0": "grad_output output",
    "TriangularSolveBackward0": "self A",
}  # fmt: skip
OUTPUTS: dict[str, dict[str, int]] = {
    **{
        name: {"result": 0}
        for name in
        ("CdistBackward0", "CholeskyInverseBackward0", "LdexpBackward0", "OrmqrBackward0", "PolarBackward0",
         "LogsumexpBackward0", "PdistBackward0", "SegmentReduceBackward0", "SpecialI1Backward0",
         "LinalgHouseholderProductBackward0", "SpecialI1EBackward0", "SpecialLogNdtrBackward0",
         "HardtanhBackward0", "DistBackward0")
    },
    "TriangularSolveBackward0": {"solution": 0},
}  # fmt: skip


def _unsaved(node: Node, name: str) -> Any:
    """What torch would have saved, found behind the node's edges or in front of it. None if it is gone."""
    if name in OUTPUTS.get(node.name(), ()):
        found = node._output(OUTPUTS[node.name()][name])
    elif name in (names := INPUTS.get(node.name(), "").split()):
        kept = node._kept or {}
        found = node._input(sum(each not in kept for each in names[: names.index(name)]))
    else:
        return None
    if node._released:
        node._refuse()
    return found


def saved_attribute(node: Node, attribute: str) -> Any:
    """`node._saved_self`, or `node._raw_saved_self`: a handle on it."""
    raw = attribute.startswith("_raw_saved_")
    name = attribute.removeprefix("_raw_saved_" if raw else "_saved_")
    kept = node._kept
    if kept is not None and name in kept and not raw:
        if node._released and isinstance(kept[name], _C.Tensor):
            node._refuse()
        return _shown(node, name, kept[name])
    special = NAMES.get(node.name(), {}).get(name)
    candidates = (special,) if isinstance(special, str) else (name, *ALIASES.get(name, ()))
    if callable(special) and not raw:
        return _shown(node, name, special(node))
    for found, slot, out in node._names_saved():
        if found in candidates:
            if raw and name == "indices":
                node._unpack(slot, out)  # raises if it has been freed
            return _C.raw_saved(node, slot, out) if raw else _shown(node, name, node._unpack(slot, out))
    if not raw and name in ("self_sym_sizes", "self_sizes", "self_sym_numel") and node.next_functions:
        source, number = node.next_functions[0]
        if source is not None:
            shape = source._outputs()[number][0]
            return shape.numel() if name == "self_sym_numel" else tuple(shape)
    found = None if raw else _unsaved(node, name)
    if found is not None:
        return found
    primitive = node._primitive
    if not raw and primitive is not None:
        if any(candidate in _named_by_rules(primitive) for candidate in candidates):
            return None  # not needed for the gradients that are wanted
        if name == "alpha" and node.name() in ("AddBackward0", "SubBackward0"):
            return 1
    raise AttributeError(f"'{type(node).__name__}' object has no attribute '{attribute}'")


def _named_by_rules(primitive: Any) -> set[str]:
    """The inputs and outputs that some rule of the primitive names."""
    from rushlight.ops._rules import _ARG, _OUT, RULES

    params = [param for _, found in RULES.get(primitive.__name__, {}).values() for param in found]
    inputs = {primitive.args[at] for kind, at in params if kind == _ARG and at < primitive.input_count}
    return inputs | {primitive.outputs[at] for kind, at in params if kind == _OUT}


def _shown(node: Node, name: str, value: Any) -> Any:
    """The value in the form torch shows it in."""
    if name == "dim" and node.name() in _DIM_TUPLES and isinstance(value, int):
        value = (value,)
    if name == "reduction" and isinstance(value, str):
        return _REDUCTIONS[value]
    if name in ("padding", "stride", "dilation", "kernel_size") and isinstance(value, int):
        value = (value,) * (len(_input_shape(node, 0)) - 2 if node.next_functions[0][0] else 1)
    if name == "threshold" and isinstance(value, _C.Tensor):
        return value.item()
    if name in ("self", "other") and isinstance(value, (int, float, complex)):
        from rushlight import tensor

        # A number in the place of a tensor.
        wide = {float: _C.float64, complex: _C.complex128}.get(type(value))
        return tensor(value, dtype=wide)
    if name == "stride" and value is None:  # of a pool: that of its kernel
        return ()
    if name in _UNSIGNED:
        return _unsigned(value)
    # A Size compares and prints like the tuple torch has there, but is not one.
    return tuple(value) if isinstance(value, tuple) else value


def _unsigned(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_unsigned, value))
    return value + 2**64 if isinstance(value, int) and value < 0 else value


def saved_attributes(node: Node) -> list[str]:
    """The names under which what a node saved can be had, for dir()."""
    usual = {ours: theirs for theirs, names in reversed(ALIASES.items()) for ours in names}
    usual |= {"x": "self", "a": "self", "b": "other", "s": "s", "out": "result", "x_shape": "self_sym_sizes"}
    usual |= {"dim": "dim", "indices": "indices", "index": "index", "mask": "mask", "input": "input"}
    special = NAMES.get(node.name(), {})
    unsaved = {*INPUTS.get(node.name(), "").split(), *OUTPUTS.get(node.name(), ())}
    back = {ours: theirs for theirs, ours in special.items() if isinstance(ours, str)}
    found = {*special, *filter(None, node._kept or ()), *unsaved}
    saved = [name for name, _, _ in node._names_saved()]
    primitive = node._primitive
    tensors = () if primitive is None else (*primitive.args[: primitive.input_count], *primitive.outputs)
    names = []
    for name in saved:
        theirs = back.get(name) or (name if name in special else usual.get(name, name))
        found.add(theirs)
        if name in tensors:
            names.append(f"_raw_saved_{theirs}")
    return sorted({*names, *(f"_saved_{name}" for name in found)} - {"_saved_"})
