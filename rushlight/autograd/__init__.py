"""Reverse-mode differentiation: `backward` and `grad`, the modes, and the graph they walk.

The walk itself is native (graph/engine.cpp); here its arguments are checked and its errors worded.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from rushlight import _C
from rushlight._annotations import Any
from rushlight._errors import explain_no_graph, explain_operands, shape_of, with_places
from rushlight._tensor import NO_VOLATILE
from rushlight._type_names import type_name as class_name
from rushlight._warn import warn, warn_once
from rushlight.autograd import _native_names, function, graph
from rushlight.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from rushlight.autograd.function import Function, NestedIOFunction
from rushlight.autograd.grad_mode import (
    _force_original_view_tracking,
    _unsafe_preserve_version_counter,
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    is_multithreading_enabled,
    is_view_replay_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from rushlight.autograd.gradcheck import gradcheck, gradgradcheck

Tensor = _C.Tensor
SavedTensor = _C.SavedTensor

__all__ = [
    "Function",
    "NestedIOFunction",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


def _asked_ones(root: Any) -> Any:
    from rushlight import ones_like, preserve_format

    return ones_like(root, memory_format=preserve_format)


def _as_tuple(value: Any) -> tuple:
    if isinstance(value, (Tensor, graph.GradientEdge)) or hasattr(value, "__torch_function__"):
        return (value,)
    return tuple(value)


def _inputs_of(given: Any, name: str) -> tuple:
    """The tensors of `inputs`, of which a dictionary gives names."""
    if type(given) is dict:
        return tuple(given.values())
    if isinstance(given, Mapping):
        raise TypeError(
            f"`inputs` argument to `{name}()` must be a dict, not {type(given).__name__}. "
            "Other Mapping types are not supported."
        )
    return _as_tuple(given)


def _check_ends(given: tuple, what: str) -> None:
    """Where gradients start or end: tensors, or edges of the graph."""
    for each in given:
        if isinstance(each, graph.GradientEdge):
            if not isinstance(each.node, graph.Node):
                raise RuntimeError(
                    "GradientEdge's first object must be an autograd.graph.Node but got "
                    + type(each.node).__name__
                )
        elif not isinstance(each, Tensor):
            if what == "output":
                raise AssertionError("Expected output to be a torch.Tensor")
            raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {class_name(each)}")


def _about(root: Any) -> tuple:
    """Shape, dtype and device of a tensor, or of the tensor whose gradient flows along an edge."""
    if isinstance(root, Tensor):
        return shape_of(root), root.dtype, root.device
    return root.node._outputs()[root.output_nr]


def _calculate_shape(output: Any, grad: Tensor, is_grads_batched: bool) -> tuple:
    """The shapes of an output and of the gradient given for it, without the batch; of nested tensors a table
    of the sizes of their parts."""
    if isinstance(output, Tensor) and output.is_nested:
        if is_grads_batched:
            raise RuntimeError("Batched grads are not supported with Nested Tensor.")
        return output._nested_tensor_size(), grad._nested_tensor_size()
    return _about(output)[0], grad.shape[1:] if is_grads_batched else grad.shape


def kineto_available() -> bool:
    """Whether a profile may be asked for with `use_kineto`: it may, there is one way of measuring."""
    return True


_profiler_enabled = _C._profiler_enabled
_is_checkpoint_valid = _C.all_runs_accumulate


def _mismatch(batched: bool, index: int, gradient: Tensor, root: Any) -> RuntimeError:
    if batched and not isinstance(root, Tensor):
        return RuntimeError("Batched grads are not supported with GradientEdge")
    if isinstance(root, Tensor) and root.is_nested:
        root.is_same_size(gradient[0] if batched else gradient)  # refuses one that is not nested
    shape, given = _calculate_shape(root, gradient, batched)
    places = (
        f"grad_output[{index}] has a shape of {given[1:] if batched else given} and "
        f"output[{index}] has a shape of {shape}."
    )
    if batched:
        return RuntimeError(
            "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
            "dimension. The sizes of the remaining dimensions are expected to match the shape of "
            f"corresponding output, but a mismatch was detected: {places} If you only want some tensors in "
            "`grad_output` to be considered batched, consider using vmap."
        )
    # Programs compare the whole text of this one, so that what we have to add is a note.
    error = RuntimeError(f"Mismatch in shape: {places}")
    error.add_note(
        explain_operands(
            "",
            [("the gradient", gradient, _C.place_of(gradient))],
            "Give backward() a gradient of the shape of what it is called on: torch.ones_like(y) weighs all "
            "elements alike.",
        )[1:]
    )
    return error


def _initial_gradients(roots: tuple, gradients: tuple, batched: bool = False) -> tuple:
    """A gradient for every root: given ones are checked, missing ones are ones for scalars."""
    made: list = []
    _check_ends(roots, "output")
    for index, (root, gradient) in enumerate(zip(roots, gradients, strict=False)):
        shape, dtype, device = _about(root)
        if isinstance(gradient, Tensor):
            if batched and not gradient.dim():
                gradient[0]  # raises: there is no first dimension to be the batch
            if (gradient.shape[1:] if batched else shape_of(gradient)) != shape:
                raise _mismatch(batched, index, gradient, root)
            if dtype.is_complex != gradient.is_complex():
                raise RuntimeError(
                    "For complex Tensors, both grad_output and output are required to have the same dtype. "
                    f"Mismatch in dtype: grad_output[{index}] has a dtype of {gradient.dtype} and "
                    f"output[{index}] has a dtype of {dtype}."
                )
            if gradient.device != device:
                raise RuntimeError(
                    f"invalid gradient at index {index} - expected device {device} but got {gradient.device}"
                )
            # The gradient of a leaf may have another dtype, or any. Whether a view is one is not asked: that
            # would bring its history up to date.
            if isinstance(root, Tensor) and (dtype != gradient.dtype or not root._is_view()) and root.is_leaf:
                differs = gradient.is_floating_point() or gradient.is_complex()
                dtype = root.grad_dtype or (gradient.dtype if differs else dtype)
            made.append(gradient if gradient.dtype == dtype else gradient.to(dtype))
        elif gradient is None:
            if isinstance(root, Tensor) and not root.requires_grad:
                made.append(None)
                continue
            if shape.numel() != 1:
                # The history of a view is not asked for: it may be stale, and remains so.
                place = _C.place_of(root) if isinstance(root, Tensor) else root.node._source
                raise RuntimeError(
                    with_places(
                        "grad can be implicitly created only for scalar outputs",
                        [(f"A tensor of shape {list(shape)} was computed", place)],
                        "Reduce it first, y.sum().backward(), or say how its elements weigh: "
                        "y.backward(weights).",
                    )
                )
            if not dtype.is_floating_point:
                raise RuntimeError(
                    f"grad can be implicitly created only for real scalar outputs but got {dtype}"
                )
            if isinstance(root, Tensor):
                watched = _C.watched(root) and not _C.is_leveled(root)
                made.append(_asked_ones(root) if watched else _C.ones_like(root))
            else:
                from rushlight import ones

                made.append(ones(shape, dtype=dtype, device=device))
        else:
            raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
    if len(made) != len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(made)} gradients")
    return tuple(made)


def _flag(value: Any) -> bool:
    """A switch as torch's engine takes it: a bool, or a number."""
    if isinstance(value, bool):
        return value
    from operator import index

    return index(value) != 0


def _check_roots(roots: tuple) -> None:
    for index, root in enumerate(roots):
        if not isinstance(root, (Tensor, graph.GradientEdge)):
            raise RuntimeError(f"element {index} of tensors tuple is neither a Tensor nor a GradientEdge")
        if isinstance(root, Tensor) and not root.requires_grad:
            index = next((k for k, each in enumerate(roots[:index]) if _leads_nowhere(each)), index)
            raise RuntimeError(explain_no_graph(index, roots[index]))


def _leads_nowhere(root: Any) -> bool:
    """Whether it is a view made without recording: that requires grad with its base, and has no history."""
    return isinstance(root, Tensor) and root._is_view() and root.grad_fn is None


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensor | Sequence[Tensor] | dict[Any, Tensor] | None = None,
) -> None:
    """Adds the gradients of `tensors` with respect to the leaves of their graph to the leaves' `.grad`.

    >>> x = rushlight.tensor(3., requires_grad=True)
    >>> rushlight.autograd.backward(x * x)
    >>> x.grad
    tensor(6.)
    """
    if _C.transforming():
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use "
            "functorch.grad or functorch.vjp instead or call backward() outside of functorch transforms."
        )
    if grad_variables is not None:
        import warnings

        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2
        )
        if grad_tensors is None:
            grad_tensors = grad_variables
        else:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed "
                               "to `backward()`. Please only use `grad_tensors`.")  # fmt: skip
    tensors = _as_tuple(tensors)
    if _C._has_torch_function(tensors):
        from rushlight.overrides import handle_torch_function

        return handle_torch_function(
            backward, tensors, tensors, grad_tensors=grad_tensors, retain_graph=retain_graph,
            create_graph=create_graph, inputs=inputs,
        )  # fmt: skip
    if inputs is not None:
        inputs = _inputs_of(inputs, "backward")
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    gradients = (None,) * len(tensors) if grad_tensors is None else _as_tuple(grad_tensors)
    gradients = _initial_gradients(tensors, gradients)
    _check_roots(tensors)
    _check_ends(inputs or (), "input")
    for tensor in inputs or ():
        # Asked for its history first: a view of what was written since has one then.
        if isinstance(tensor, Tensor) and (tensor.grad_fn is not None or not tensor.requires_grad):
            tensor.retain_grad()
    create_graph = _flag(create_graph)
    keep = create_graph if retain_graph is None else _flag(retain_graph)
    try:
        _C.run_backward(tensors, gradients, keep, create_graph, inputs, True)
    finally:
        if create_graph:
            warn_once(_CYCLE)
    return None


_CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
    "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to "
    "avoid this. If you have to use this function, make sure to reset the .grad fields of your parameters to "
    "None after use to break the cycle and avoid the leak."
)


def _run(tensors, gradients, keep_graph, create_graph, inputs, accumulate, allow_unused):
    """The engine as torch offers it below `backward` and `grad`: nothing is filled in or materialised."""
    for name, given in (("tensors", tensors), ("grad_tensors", gradients)):
        if not isinstance(given, tuple):
            raise RuntimeError(f"{name} argument is expected to be a tuple, but got {class_name(given)}")
    if len(tensors) != len(gradients):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(gradients)} gradients")
    _check_roots(tensors)
    for index, gradient in enumerate(gradients):
        if gradient is None:
            raise RuntimeError(
                f"element {index} of gradients tuple is None, but the corresponding Tensor requires grad"
            )
        if not isinstance(gradient, Tensor):
            raise RuntimeError(f"element {index} of gradients tuple is not a Tensor or None")
    if not isinstance(inputs, tuple):
        raise RuntimeError("inputs to run_backward must be a tuple")
    if not inputs and not accumulate:
        raise RuntimeError("grad requires non-empty inputs.")
    _check_inputs(inputs)
    keep, create = _flag(keep_graph), _flag(create_graph)
    result = _C.run_backward(tensors, gradients, keep, create, inputs or None, accumulate)
    if accumulate:
        return None
    if not allow_unused:
        _check_used(result, tensors, inputs)
    return result


def _check_inputs(inputs: tuple, outputs: tuple = ()) -> None:
    _check_ends(inputs, "input")
    for tensor in inputs:
        if isinstance(tensor, Tensor) and not tensor.requires_grad:
            for root in outputs:
                _node_of(root)  # a view that was lost to a write is told of first
            sentence = "One of the differentiated Tensors does not require grad"
            advice = "Call requires_grad_() on it before it is used, or leave it out of the inputs."
            raise RuntimeError(explain_operands(sentence, [("it", tensor, _C.place_of(tensor))], advice))


def _check_used(gradients: tuple, outputs: tuple, inputs: tuple) -> None:
    """Refuses inputs without a gradient."""
    index = next((index for index, gradient in enumerate(gradients) if gradient is None), None)
    if index is None:
        return
    node = _node_of(outputs[0]) if outputs else None
    size = list(_about(inputs[index])[0])
    raise RuntimeError(
        with_places(
            f"The differentiated Tensor at index {index} appears to not have been used in the graph. Set "
            "allow_unused=True if this is the desired behavior.",
            [(f"Input {index}, of shape {size}, is not used by what was computed", node and node._source)],
            "Check that this very tensor (not a copy of it) enters the computation.",
        )
    )


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor] | dict[Any, Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of `outputs` with respect to `inputs`, returned instead of accumulated.

    Of a dictionary of inputs (`dict(model.named_parameters())`) they come by the same names.

    >>> x = rushlight.tensor(3., requires_grad=True)
    >>> rushlight.autograd.grad(x ** 3, x)
    (tensor(27.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, "
                         "but got: allow_unused=False.")  # fmt: skip
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    # Some tensors by some others, as most calls are: nothing else to check, which spares half of their time.
    if create_graph.__class__ is bool and only_inputs and not is_grads_batched and not materialize_grads:
        keep = create_graph if retain_graph is None else _flag(retain_graph)
        result = _C.plain_gradients(outputs, inputs, grad_outputs, keep, create_graph)
        if result is not None:
            if not allow_unused:
                _check_used(result, _as_tuple(outputs), _as_tuple(inputs))
            return result
    if type(inputs) is dict:
        values = tuple(inputs.values())
        gradients = grad(
            outputs, values, grad_outputs, retain_graph, create_graph, only_inputs, allow_unused,
            is_grads_batched, materialize_grads,
        )  # fmt: skip
        return dict(zip(inputs, gradients, strict=True))
    outputs, inputs = _as_tuple(outputs), _inputs_of(inputs, "grad")
    if _C._has_torch_function((*outputs, *inputs)):
        from rushlight.overrides import handle_torch_function

        return handle_torch_function(
            grad, (*outputs, *inputs), outputs, inputs, grad_outputs=grad_outputs, retain_graph=retain_graph,
            create_graph=create_graph, only_inputs=only_inputs, allow_unused=allow_unused,
            is_grads_batched=is_grads_batched, materialize_grads=materialize_grads,
        )  # fmt: skip
    if not only_inputs:
        import warnings

        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True). To "
                      "accumulate gradient for other parts of the graph, please use "
                      "torch.autograd.backward.", FutureWarning, stacklevel=2)  # fmt: skip
    given = (None,) * len(outputs) if grad_outputs is None else _as_tuple(grad_outputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    create_graph = _flag(create_graph)
    keep = create_graph if retain_graph is None else _flag(retain_graph)
    if is_grads_batched:
        return _grad_batched(outputs, inputs, given, keep, create_graph, allow_unused, materialize_grads)
    gradients = _initial_gradients(outputs, given)
    _check_roots(outputs)
    _check_inputs(inputs, outputs)
    result = _C.run_backward(outputs, gradients, keep, create_graph, inputs, False)
    if not allow_unused:
        _check_used(result, outputs, inputs)
    return _materialized(result, inputs, create_graph) if materialize_grads else result


def _materialized(result: tuple, inputs: tuple, create_graph: bool) -> tuple:
    """Zeros of the shape of the input where it has no gradient, in a batch of gradients as well."""
    pairs = list(zip(result, inputs, strict=True))
    if any(g is None and isinstance(x, graph.GradientEdge) for g, x in pairs):
        raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
    return tuple(_C.requires_grad_(_C.zeros_like(x), create_graph) if g is None else g for g, x in pairs)


def _node_of(root: Any) -> Any:
    return root.grad_fn if isinstance(root, Tensor) else root.node


def _grad_batched(outputs, inputs, given, keep, create_graph, allow_unused, materialize_grads):
    """One run for all rows of the gradients."""
    from rushlight.func._levels import BATCH, level
    from rushlight.func._vmap import together

    given = _initial_gradients(outputs, given, batched=True)
    for gradient in given:
        if gradient is None:
            raise ValueError(
                "vmap(vjp, in_dims=0, ...)(<inputs>): Got in_dim=0 for an input but the input is of type "
                "<class 'NoneType'>. We cannot vmap over non-Tensor arguments, please use None as the "
                "respective in_dim"
            )
        if not gradient.dim():
            raise ValueError(
                "vmap(vjp, in_dims=0, ...)(<inputs>): Got in_dim=0 for some input, but that input is a "
                "Tensor of dimensionality 0 so expected in_dim to satisfy 0 <= in_dim < 0."
            )
    sizes = [g.shape[0] for g in given]
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    _check_ends(inputs, "input")
    for index, (root, gradient) in enumerate(zip(outputs, given, strict=True)):
        if gradient.shape[1:] != _about(root)[0]:  # the one that was made for a root of one element
            raise RuntimeError(
                f"invalid gradient at index {index} - got {list(gradient.shape[1:])} but expected shape "
                f"compatible with {list(_about(root)[0])}"
            )
    count = sizes[0] if sizes else 1
    if not count:
        return tuple(_C.zeros_like(x).expand((0, *x.shape)) for x in inputs)
    _check_roots(outputs)
    _check_inputs(inputs)
    with level(BATCH, count) as number:
        row = tuple(_C.raise_to_level(g, number, True) for g in given)
        found = _C.run_backward(outputs, row, keep, create_graph, inputs, False)
        if not allow_unused:
            _check_used(found, outputs, inputs)
        result = tuple(
            None if g is None else _C.below_level(number, together, g, number, count) for g in found
        )
    return _materialized(result, inputs, create_graph) if materialize_grads else result


def _make_grads(outputs: Any, grads: Any, is_grads_batched: bool) -> tuple:
    """The gradients that a backward starts with."""
    return _initial_gradients(_as_tuple(outputs), tuple(grads), is_grads_batched)


def _tensor_or_tensors_to_tuple(tensors: Any, length: int) -> tuple:
    """One tensor, several, or as many None as wanted."""
    if tensors is None:
        return (None,) * length
    return (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)


_engine_run_backward = graph._engine_run_backward


class VariableMeta(type):
    """Every tensor is a Variable."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=VariableMeta):
    """The old name of Tensor: Variable(t) is t."""

    _execution_engine = _native_names._EngineBase()

    def __new__(cls, data=None, requires_grad=False, volatile=None, _grad_fn=None):
        from rushlight import tensor

        if volatile:
            warn(NO_VOLATILE)
            if requires_grad:
                raise ValueError("Variable can't be volatile and require_grad at the same time!")
        if isinstance(_grad_fn, Function):
            raise RuntimeError(
                "_grad_fn argument to legacy Variable constructor is no longer supported.  "
                "Instead, please invoke your _grad_fn to produce a variable with it as the _grad_fn."
            )
        if _grad_fn is not None:
            raise TypeError(f"_grad_fn has to be a Function object or None, but got {class_name(_grad_fn)}")
        data = tensor([]) if data is None else data
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {class_name(data)}")
        if requires_grad and not (data.is_floating_point() or data.is_complex()):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        return data.detach().requires_grad_(bool(requires_grad))


for _old in (Variable, VariableMeta):
    _old.__module__ = "rushlight.autograd.variable"


# Parts that a program may not need are imported when they are first named.
_LAZY = {"forward_ad", "functional", "profiler", "profiler_legacy", "profiler_util", "variable"}
_SWITCHES = """
ProfilerConfig _ProfilerDisableOptions _add_metadata_json _clear_callbacks _disable_profiler
_disable_profiler_legacy _enable_profiler _enable_profiler_legacy _enable_record_function _is_kineto_stopped
_kineto_step _prepare_profiler _profiler_type _set_empty_test_observer _soft_assert_raises
_supported_activities _toggle_collection_dynamic
"""
_OF_THE_PROFILER = dict.fromkeys(_SWITCHES.split(), "profiler._switches") | {
    "DeviceType": "_numbered", "ProfilerActivity": "_numbered", "ProfilerState": "_numbered",
    "_KinetoEvent": "profiler._results", "_ProfilerResult": "profiler._results",
    "ProfilerEvent": "profiler._results",
    "_record_function_with_args_enter": "autograd.profiler",
    "_record_function_with_args_exit": "autograd.profiler",
}  # fmt: skip


def _variable(*args: Any, **kwargs: Any) -> None:
    """Refuses: what made tensors once."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


def __getattr__(name: str) -> Any:
    if name == "torch":  # every module of torch's has it
        return sys.modules["rushlight"]
    if name in _LAZY:
        from importlib import import_module

        module = import_module(f"rushlight.autograd.{name}")
        if name != "variable":
            return module
        # The name of a function too, which hides the module as in torch, and has the class as it has.
        globals()[name] = _variable
        vars(_variable)["Variable"] = module.Variable
        return _variable
    if name in _OF_THE_PROFILER:
        from importlib import import_module

        return getattr(import_module(f"rushlight.{_OF_THE_PROFILER[name]}"), name)
    if name in ("_push_saved_tensors_default_hooks", "_pop_saved_tensors_default_hooks", "_get_sequence_nr"):
        return getattr(_C._autograd, name)
    raise AttributeError(f"module 'torch.autograd' has no attribute '{name}'")
