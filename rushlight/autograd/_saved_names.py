"""`grad_fn._saved_self` and its kind: what a node saved, under the names torch has for it.

A primitive calls its arguments otherwise (`x`, `a`, `out`); NAMES says how per node, ALIASES how in general.
What a composed operation was called with and torch would save is kept by rushlight/ops/_node_names.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from rushlight import _C
from rushlight.autograd._facades import saved_value
from rushlight.autograd._operand_views import dense_strides
from rushlight.autograd._saved_table import SHOWN
from rushlight.ops._again import At
from rushlight.ops._node_names import is_target
from rushlight.ops._rules import _ARG, _OUT, RULES
from rushlight.ops.loss import total_weight

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
# torch shows whole numbers as unsigned ones, also where they are negative, but for those that may be others.
_SCALARS = {
    "alpha", "beta", "correction", "exponent", "initial", "input_scale", "lambd", "max", "max_val",
    "maxnorm", "min", "min_val", "n", "negative_slope", "ord", "other", "p", "scale", "self", "threshold",
    "value", "weight",
}  # fmt: skip
_SPATIAL = ("padding", "output_padding", "output_size", "stride", "dilation", "kernel_size")
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _slot_of(node: Node, name: str) -> tuple[int, int]:
    for found, slot, out in node._names_saved():
        if found == name:
            return slot, out
    raise LookupError(name)


def _value(node: Node, name: str) -> Any:
    """What the node saved under the primitive's own name."""
    return node._unpack(*_slot_of(node, name))


def _kept(node: Node, name: str) -> Any:
    """What a composed operation kept of its call."""
    return _C.kept(node, node._kept[name])


def _input_shape(node: Node, at: int) -> tuple:
    source, number = node._edges()[at]
    if source is None:
        raise LookupError(at)
    return tuple(source._outputs()[number][0])


def _own_name(node: Node, name: str) -> str:
    """Of a factor: linear calls its own otherwise."""
    return ("weight" if name == "mat2" else "x") if _of_linear(node) else name


def _sizes(name: str, at: int) -> Callable:
    """The size of an input: of what was saved of it, or of the gradient that goes to it."""

    def sizes(node: Node) -> tuple:
        if f"{name}_shape" in (found for found, _, _ in node._names_saved()):
            return tuple(_value(node, f"{name}_shape"))
        try:
            return _input_shape(node, at)
        except LookupError:
            return tuple(_value(node, _own_name(node, name)).shape)

    return sizes


def _strides(name: str, at: int) -> Callable:
    def strides(node: Node) -> tuple:
        if node._edges()[at][0] is None:
            return ()  # for no gradient of it is laid out
        shape, given = _input_shape(node, at), node._input(at)
        if given is None and not node._released:
            given = _factor(node, _own_name(node, name))
        known = given is not None and tuple(given.shape) == tuple(shape)
        return tuple(given.stride()) if known else dense_strides(shape)

    return strides


def _size(name: str, at: int, dim: int) -> Callable:
    sizes = _sizes(name, at)
    return lambda node: sizes(node)[dim]


def _output_size(node: Node, nr: int, dim: int) -> int:
    return node._outputs()[nr][0][dim]


def _source_dim(node: Node) -> int:
    return len(_value(node, "source_shape"))


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


def _output_padding(node: Node) -> Any:
    if node._primitive.__name__ == "conv_transpose":
        return _value(node, "output_padding")
    return (0,) * (len(node._outputs()[0][0]) - 2)


def _total_weight(node: Node) -> Any:
    target, weight, reduction = (_value(node, name) for name in ("target", "weight", "reduction"))
    return total_weight(target, weight, reduction, _value(node, "ignore_index"), node._outputs()[0][1])


def _table(node: Node) -> Any:
    """What embedding_bag looks rows up in, which only the gradient of their weights needs."""
    if node._primitive.__name__ in ("bag_sum", "embedding_bag"):
        return _factor(node, "weight")
    return _unsaved(node, "weight")


def _maxima(node: Node) -> Any:
    """Where the maxima are, looked for again if that was not wanted of the operation."""
    name = node._primitive.__name__
    if name.endswith("with_indices"):
        return _value(node, "indices")
    window = (_value(node, part) for part in ("kernel_size", "stride", "padding", "dilation", "ceil_mode"))
    return getattr(_C.ops, f"{name}_with_indices")(_value(node, "x").detach(), *window)[1]


def _normalization(node: Node) -> int:
    dims, scale = _value(node, "dims"), _value(node, "scale")
    shape = _input_shape(node, 0)
    if node.name() == "FftC2RBackward0":
        shape = tuple(node._outputs()[0][0])
    count = math.prod(shape[d] for d in dims)
    return 0 if scale == 1 else 2 if math.isclose(scale, 1 / count) else 1


def _bound(which: str) -> Callable:
    """A bound of clamp, which three primitives serve: with both, with min and with max."""

    def found(node: Node) -> Any:
        bounds = node._primitive.__name__.removeprefix("clamp_").removesuffix("scalar").strip("_")
        if bounds and bounds != which:
            return None
        return _value(node, "s" if bounds or which == "min" else "t")

    return found


def _noise(node: Node) -> Any:
    """The slopes of rrelu; those that were not drawn are whatever was in memory in torch."""
    from rushlight import zeros

    shape, dtype = node._outputs()[0][:2]
    return _value(node, "b") if node._primitive.__name__ == "mul" else zeros(shape, dtype=dtype)


def _part(of: str, at: int, convert: Any = None) -> Callable:
    """One of the numbers that a primitive keeps together."""
    return lambda node: _value(node, of)[at] if convert is None else convert(_value(node, of))


_AVERAGE = {
    "kernel_size": _part("spec", 1),
    "stride": _part("spec", 6),
    "ceil_mode": _part("spec", 7),
    "padding": _part("spec", 3),
    "count_include_pad": _part("spec", 4),
    "divisor_override": _part("spec", 5, lambda spec: spec[5] or None),
}

_ELU = {"alpha": _elu_alpha, "scale": "t", "input_scale": "u"}

_BACKWARD = {"grad_output": "a", "self": "b", "output": "b"}  # of activations

_BLOCKS = {"self_self_sym_blocksize_opt": lambda node: None}  # of the compressed layouts

# node: {torch's name: the primitive's name, or a function of the node}
NAMES: dict[str, dict[str, Any]] = {
    "AddcmulBackward0": {"tensor1": "b", "tensor2": "c", "value": "s"},
    "AddcdivBackward0": {"tensor1": "b", "tensor2": "c", "value": "s"},
    "ToSparseBackward0": _BLOCKS,
    "ToSparseBackward1": _BLOCKS,
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
    "ClampBackward1": {"min": _bound("min"), "max": _bound("max")},
    "ClampMaxBackward0": {"max": "s"},
    "ClampMaxBackward1": {"max": "b"},
    "ClampMinBackward1": {"min": "b"},
    "ConvolutionBackward0": {
        "input": "x",
        "bias_sym_sizes_opt": _bias_size,
        "transposed": lambda node: node._primitive.__name__ == "conv_transpose",
        "output_padding": _output_padding,
    },
    "EluBackward0": _ELU,
    "EluBackwardBackward0": {
        **_ELU, **_BACKWARD, "self_or_result": "b",
        "is_result": lambda node: node._primitive.__name__ == "elu_written_backward",
    },
    "GeluBackwardBackward0": {
        **_BACKWARD, "approximate": lambda node: "tanh" if "tanh" in node._primitive.__name__ else "none"
    },
    "HardswishBackwardBackward0": _BACKWARD,
    "HardshrinkBackwardBackward0": {**_BACKWARD, "lambd": "s"},
    "HardtanhBackwardBackward0": {**_BACKWARD, "min_val": "s", "max_val": "t"},
    "LeakyReluBackwardBackward0": {**_BACKWARD, "negative_slope": "s"},
    "SigmoidBackwardBackward0": _BACKWARD,
    "SoftshrinkBackwardBackward0": {**_BACKWARD, "lambd": "s"},
    "SoftplusBackwardBackward0": {**_BACKWARD, "beta": "s", "threshold": "t"},
    "TanhBackwardBackward0": _BACKWARD,
    "ThresholdBackwardBackward0": {**_BACKWARD, "threshold": "s"},
    "EluBackward1": _ELU,
    "HardshrinkBackward0": {"lambd": "s"},
    "HardtanhBackward0": {"min_val": "s", "max_val": "t"},
    "LeakyReluBackward1": {"negative_slope": "s"},
    "EmbeddingBackward0": {
        "scale_grad_by_freq": lambda node: bool(_value(node, "scale")),
        "sparse": lambda node: node._primitive.__name__ == "embedding_sparse",
        "weight_sym_argsize_0": lambda node: _value(node, "weight_shape")[0],
    },
    "EmbeddingBagBackward0": {
        "result1": "bag", "result2": "sizes", "result3": "places", "per_sample_weights": "factors",
        "scale_grad_by_freq": "scale", "padding_idx": "padding", "weight": _table,
        "weight_sym_argsize_0": lambda node: _value(node, "weight_shape")[0],
    },
    "FftC2CBackward0": {"normalization": _normalization},
    "FftC2RBackward0": {"normalization": _normalization},
    "FftR2CBackward0": {"normalization": _normalization},
    "GatherBackward0": {"sparse_grad": lambda node: node._primitive.__name__ == "gather_sparse"},
    "GeluBackward0": {
        "approximate": lambda node: "tanh" if "tanh" in node._primitive.__name__ else "none",
    },
    "Im2ColBackward0": {
        "self_sym_argsize_minus_1": lambda node: _value(node, "x_shape")[-1],
        "self_sym_argsize_minus_2": lambda node: _value(node, "x_shape")[-2],
    },
    "IndexAddBackward0": {"source_dim": _source_dim},
    "IndexCopyBackward0": {"source_dim": _source_dim},
    "LerpBackward0": {"weight": "s"},
    "LerpBackward1": {"end": "b", "weight": "c"},
    "LinalgLstsqBackward0": {"self": "A", "b": "B"},
    "LinalgLuBackward0": {"pivot": lambda node: True},
    "LinalgLuFactorExBackward0": {"pivot": lambda node: True},
    "LinalgSvdBackward0": {"S_sym_argsize_minus_1": lambda node: _value(node, "S").shape[-1]},
    "MaxPool2DWithIndicesBackward0": {"result1": _maxima},
    "MaxPool3DWithIndicesBackward0": {"result1": _maxima},
    "NativeBatchNormBackward0": {
        "result1": "mean", "result2": "rstd",
        "training": lambda node: node._primitive.__name__ == "batch_norm_train",
    },
    "SoftmaxBackwardDataBackward0": {"grad_output": "g", "output": "result"},
    "LogSoftmaxBackwardDataBackward0": {"grad_output": "g", "output": "result"},
    "NativeGroupNormBackward0": {
        "group": "groups",
        "N": lambda node: _sizes("x", 0)(node)[0],
        "C": lambda node: _sizes("x", 0)(node)[1],
        "HxW": lambda node: math.prod(_sizes("x", 0)(node)[2:]),
    },
    "LogSigmoidBackward0": {"buffer": lambda node: (-_value(node, "x").detach().abs()).exp()},
    "MultilabelMarginLossBackward0": {
        "is_target": lambda node: is_target(_kept(node, "self").detach(), _kept(node, "target"))
    },
    "NllLossBackward0": {"total_weight": _total_weight},
    "NllLoss2DBackward0": {"total_weight": _total_weight},
    "NormBackward1": {"p": "ord"},
    "DistBackward0": {"p": lambda node: float(_value(node, "ord"))},
    "NormalBackward1": {"mean_sym_sizes": lambda node: tuple(node._outputs()[0][0])},
    "RreluWithNoiseBackward0": {"noise": _noise},
    "RreluWithNoiseBackward1": {"noise": _noise},
    "PolygammaBackward0": {"n": "s"},
    "PolygammaBackward1": {"n": "s"},
    "PreluKernelBackward0": {"weight": "b"},
    "PowBackward2": {"self": "s", "exponent": "x"},
    "PowBackward0": {
        "exponent": lambda node: 2 if node._primitive.__name__ == "square" else _value(node, "s"),
    },
    "ScaledDotProductFlashAttentionForCpuBackward0": {
        "query": "q", "key": "k", "value": "v", "attn_mask": "mask", "is_causal": "causal",
        "dropout_p": lambda node: 0.0,
    },
    "TriangularSolveBackward0": {"self": "b"},
    "SqueezeBackward1": {"dim": lambda node: _value(node, "dim") if node._primitive.is_view else -2},
    "SqueezeBackward4": {"dim": lambda node: _value(node, "dim") if node._primitive.is_view else 0},
    "SoftshrinkBackward0": {"lambd": "s"},
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
        ("CummaxBackward0", "CumminBackward0", "MaskedSelectBackward0", "GatherBackward0", "TakeBackward0",
         "ErfinvBackward0", "NllLossBackward0",
         "NllLoss2DBackward0", "AdaptiveAvgPool2DBackward0", "AdaptiveAvgPool3DBackward0",
         "AdaptiveMaxPool2DBackward0", "AdaptiveMaxPool3DBackward0", "AvgPool2DBackward0",
         "AvgPool3DBackward0", "ReflectionPad1DBackward0", "ReflectionPad2DBackward0",
         "ReflectionPad3DBackward0", "ReplicationPad1DBackward0", "ReplicationPad2DBackward0",
         "ReplicationPad3DBackward0", "FractionalMaxPool2DBackward0", "FractionalMaxPool3DBackward0",
         "MaxPool2DWithIndicesBackward0", "MaxPool3DWithIndicesBackward0"),
        "self",
    ),
    "ConvolutionBackward0": "input weight",
    "DivBackward2": "self other",
    "EmbeddingBagBackward0": "weight per_sample_weights",
    "OrmqrBackward0": "self input2 input3",
    "HardtanhBackwardBackward0": "grad_output self",
    "LeakyReluBackwardBackward0": "grad_output self",
    "ThresholdBackwardBackward0": "grad_output self",
    "SoftmaxBackwardDataBackward0": "grad_output output",
    "LogSoftmaxBackwardDataBackward0": "grad_output output",
}  # fmt: skip
OUTPUTS: dict[str, dict[str, int]] = {
    **{
        name: {"result": 0}
        for name in
        ("CdistBackward0", "CholeskyInverseBackward0", "LdexpBackward0", "OrmqrBackward0", "PolarBackward0",
         "LogsumexpBackward0", "PdistBackward0", "SegmentReduceBackward0", "SpecialI1Backward0",
         "LinalgHouseholderProductBackward0", "SpecialI1EBackward0", "SpecialLogNdtrBackward0",
         "DistBackward0", "EluBackward1", "CeluBackward1", "LeakyReluBackward1",
         "RreluWithNoiseBackward1", "PowBackward1")
    },
}  # fmt: skip


def _found(node: Node, name: str) -> tuple[int, int] | None:
    """The slot and output number of what the node saved under torch's name."""
    saved = {ours: (slot, out) for ours, slot, out in node._names_saved()}
    if name == "self" and node._primitive.__name__ in ("at_least", "at_most"):  # clamp_ by one tensor
        return saved.get("a")
    slot = next((saved[ours] for ours in _candidates(node, name) if ours in saved), None)
    # The last step of a composed operation has the operation's output, but not its inputs.
    return None if slot is not None and slot[1] < 0 and "" in (node._kept or ()) else slot


def _unsaved(node: Node, name: str) -> Any:
    """A tensor that torch would have saved, found behind the node's edges or in front of it."""
    outputs, inputs = OUTPUTS.get(node.name(), {}), INPUTS.get(node.name(), "").split()
    known = name in outputs or name in inputs
    if not known and _saves(node, name) and "" not in (node._kept or ()):
        return None  # not needed for the gradients that are wanted
    if node._released:
        node._refuse()
    if name in outputs:
        found = node._output(outputs[name])
    else:
        found = node._input(inputs.index(name)) if known else None
    if found is None:
        raise _not_kept(node, name)
    return found


def _not_kept(node: Node, name: str) -> Exception:
    return NotImplementedError(f"Rushlight does not keep what {node.name()}._saved_{name} is in torch")


def _saves(node: Node, name: str) -> bool:
    """Whether some rule of the primitive asks for the value, though perhaps not one that was needed."""
    primitive = node._primitive
    params = [param for _, found in RULES.get(primitive.__name__, {}).values() for param in found]
    named = {primitive.args[at] for kind, at in params if kind == _ARG and at < primitive.input_count}
    named |= {primitive.outputs[at] for kind, at in params if kind == _OUT}
    return not named.isdisjoint(_candidates(node, name))


def _candidates(node: Node, name: str) -> tuple[str, ...]:
    """What the primitive may call the value."""
    special = NAMES.get(node.name(), {}).get(name)
    return (special,) if isinstance(special, str) else (name, *ALIASES.get(name, ()))


def _numbers(node: Node, name: str) -> Any:
    """Sizes that follow from the node's edges and outputs, and factors that are 1 where there are none."""
    if name in ("self_sym_sizes", "self_sizes", "self_sym_numel"):
        shape = _input_shape(node, 0)
        return math.prod(shape) if name == "self_sym_numel" else shape
    if name in ("alpha", "beta", "value"):
        return 1
    if name in ("min", "max"):
        return None  # a bound that was not given
    raise LookupError(name)


def saved_attribute(node: Node, attribute: str) -> Any:
    """`node._saved_self`, or `node._raw_saved_self`: a handle on it."""
    raw = attribute.startswith("_raw_saved_")
    name = attribute.removeprefix("_raw_saved_" if raw else "_saved_")
    shown = SHOWN.get(node.name(), {})
    if name not in shown or (raw and not shown[name]):
        raise AttributeError(f"'{type(node).__name__}' object has no attribute '{attribute}'")
    if node._facade:
        value = saved_value(node, name)
        return _C.raw_saved(node, value) if raw else _shown(node, name, value, shown[name])
    slot = _found(node, name)
    if raw and node._kept and type(at := node._kept.get(name)) is At:
        return _C.raw_saved(node, *_slot_of(node, "tensors"))[at]
    if raw and slot is not None:
        if name == "indices" and node._released:  # of one tensor the handle tells
            node._refuse()
        handle = _C.raw_saved(node, *slot)
        if handle is not None:
            return handle
    try:
        value = _get(node, name, slot, shown[name])
    except LookupError:
        raise _not_kept(node, name) from None
    if raw and isinstance(value, tuple):  # a list of tensors
        return tuple(_C.raw_saved(node, each) for each in value)
    return _C.raw_saved(node, value) if raw else value


def _get(node: Node, name: str, slot: tuple[int, int] | None, tensor: bool) -> Any:
    kept = node._kept
    if kept is not None and name in kept:
        if not tensor or kept[name] is None:
            return node._refuse() if tensor and node._released else _shown(node, name, kept[name], tensor)
        if type(kept[name]) is At:
            return _value(node, "tensors")[kept[name]]
        if isinstance(kept[name], list):
            return tuple(_C.kept(node, each) for each in kept[name])
        return _C.kept(node, kept[name])
    if (
        name == "self_sym_sizes"
        and (before := node.next_functions[:1])
        and getattr(before[0][0], "_facade", 0)
    ):
        return tuple(before[0][0]._outputs()[0][0])  # the product that is viewed
    special = NAMES.get(node.name(), {}).get(name)
    if callable(special):
        return _shown(node, name, special(node), tensor)
    if slot is not None:
        return _shown(node, name, node._unpack(*slot), tensor)
    return _unsaved(node, name) if tensor else _shown(node, name, _numbers(node, name), tensor)


def saved_attributes(node: Node) -> list[str]:
    """The names under which what a node saved can be had, for dir()."""
    shown = SHOWN.get(node.name(), {})
    raw = [f"_raw_saved_{name}" for name, tensor in shown.items() if tensor]
    return [*raw, *(f"_saved_{name}" for name in shown)]


def _shown(node: Node, name: str, value: Any, tensor: bool) -> Any:
    """The value in the form torch shows it in."""
    if name == "dim" and node.name() in _DIM_TUPLES and isinstance(value, int):
        value = (value,)
    if name == "reduction" and isinstance(value, str):
        return _REDUCTIONS[value]
    if name in _SPATIAL and isinstance(value, int):
        dims = re.search(r"(\d)(D|Col|Im)", node.name())
        value = (value,) * (int(dims[1]) if dims else len(node._outputs()[0][0]) - 2)
    if name == "threshold" and isinstance(value, _C.Tensor):
        return value.item()
    if tensor and isinstance(value, (int, float, complex)):
        import rushlight

        # A number in the place of a tensor.
        wide = {float: _C.float64, complex: _C.complex128}.get(type(value))
        return rushlight.tensor(value, dtype=wide)
    if name in ("eps", "delta") and isinstance(value, int):
        return float(value)
    if name == "stride" and value is None:  # of a pool: that of its kernel
        return ()
    # A Size compares and prints like the tuple torch has there, but is not one.
    value = tuple(value) if isinstance(value, (tuple, list)) else value
    return value if name in _SCALARS else _unsigned(value)


def _unsigned(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_unsigned, value))
    return value + 2**64 if type(value) is int and value < 0 else value
