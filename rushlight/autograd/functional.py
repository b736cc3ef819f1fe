"""Derivatives as functions of a function: vjp, jvp, vhp, hvp, jacobian, hessian.

Everything here is made of `autograd.grad`. The product with the Jacobian from the right (`jvp`) is the
derivative of the product from the left with respect to its vector, so it costs two backward passes. A
vectorized Jacobian gives the same result as a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C

__all__ = ["vjp", "jvp", "jacobian", "hessian", "hvp", "vhp"]

Tensor = _C.Tensor


def _as_tuple_nocheck(x: Any) -> tuple:
    return x if isinstance(x, tuple) else tuple(x) if isinstance(x, list) else (x,)


def _as_tuple(inp: Any, arg_name: str | None = None, fn_name: str | None = None) -> Any:
    """Whether it was a tuple, and the tuple. Without names nothing is checked, and the tuple is all."""
    if arg_name is None and fn_name is None:
        return _as_tuple_nocheck(inp)
    values = inp if isinstance(inp, tuple) else (inp,)
    for index, element in enumerate(values):
        if not isinstance(element, Tensor):
            which = f"value at index {index}" if isinstance(inp, tuple) else f"given {arg_name}"
            raise TypeError(
                f"The {arg_name} given to {fn_name} must be either a Tensor or a tuple of Tensors but the "
                f"{which} has type {type(element)}."
            )
    return isinstance(inp, tuple), values


def _as_outputs(value: Any, function: str) -> tuple[bool, tuple]:
    return _as_tuple(value, "outputs of the user-provided function", function)


def _plain(values: tuple, several: bool) -> Any:
    return values if several else values[0]


def _grad_preprocess(inputs: tuple, create_graph: bool, need_graph: bool) -> tuple:
    """Tensors to differentiate by, or with `need_graph=False` to multiply with: connected to the user's graph
    only if one is wanted."""
    return tuple(
        x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_(need_graph)
        for x in inputs
    )


def _grad_postprocess(inputs: Any, create_graph: bool) -> tuple:
    """Gradients, in tuples that may nest, cut from the graph unless one is wanted."""
    if isinstance(inputs[0], Tensor):
        return inputs if create_graph else tuple(value.detach() for value in inputs)
    return tuple(_grad_postprocess(part, create_graph) for part in inputs)


def _tuple_postprocess(res: Any, to_unpack: Any) -> Any:
    """Takes single tensors out of the tuples they were computed in: of outputs, or of (outputs, inputs)."""
    outer, inner = to_unpack if isinstance(to_unpack, tuple) else (to_unpack, True)
    if not inner:
        res = tuple(part[0] for part in res)
    return res if outer else res[0]


def _validate_v(v: tuple, other: tuple, is_other_tuple: bool) -> None:
    """Refuses vectors that do not fit what they are to be multiplied with."""
    if len(v) != len(other):
        if is_other_tuple:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(other)} but got {len(v)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for index, (vector, one) in enumerate(zip(v, other, strict=True)):
        if vector.shape != one.shape:
            prefix = f"Entry {index} in " if is_other_tuple else ""
            raise RuntimeError(f"{prefix}v has invalid size: should be {one.shape} but got {vector.shape}.")


def _independent(what: str, index: int) -> RuntimeError:
    return RuntimeError(
        f"The {what} of the user-provided function is independent of input {index}. This is not allowed in "
        "strict mode."
    )


_NOT_CONNECTED = {
    "jacobian": (
        "While computing the hessian, found that the jacobian of the user-provided function with respect to "
        "input {} is independent of the input. This is not allowed in strict mode. You should ensure that "
        "your function is twice differentiable and that the jacobian depends on the inputs (this would be "
        "violated by a linear function for example)."
    ),
    "hessian": (
        "The hessian of the user-provided function with respect to input {} is independent of the input. "
        "This is not allowed in strict mode. You should ensure that your function is thrice differentiable "
        "and that the hessian depends on the inputs."
    ),
    "grad_inputs": (
        "The gradient with respect to input {} is independent of the inputs of the user-provided function. "
        "This is not allowed in strict mode."
    ),
    "outputs": (
        "Output {} of the user-provided function does not require gradients. The outputs must be computed in "
        "a differentiable manner from the input when running in strict mode."
    ),
}


def _check_requires_grad(inputs: Any, input_type: str, strict: bool) -> None:
    """Strict mode's refusal of outputs, gradients or Jacobians that have no graph."""
    if not strict:
        return
    if input_type not in _NOT_CONNECTED:
        raise RuntimeError("Invalid input_type to _check_requires_grad")
    for index, value in enumerate(inputs):
        if value is None:
            raise _independent("output", index)
        if not value.requires_grad:
            raise RuntimeError(_NOT_CONNECTED[input_type].format(index))


def _autograd_grad(
    outputs: Any,
    inputs: tuple,
    grad_outputs: Any = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
    is_grads_batched: bool = False,
) -> tuple:
    """Like autograd.grad, but outputs that do not require grad have none, and unused inputs give None."""
    weights = (None,) * len(outputs) if grad_outputs is None else grad_outputs
    for name, values in (("outputs", outputs), ("grad_outputs", weights)):
        if not isinstance(values, tuple):
            raise AssertionError(f"Expected {name} to be a tuple")
    if len(outputs) != len(weights):
        raise AssertionError(
            "Expected outputs and grad_outputs to have the same length, but got "
            f"{len(outputs)} and {len(weights)}"
        )
    pairs = [(o, w) for o, w in zip(outputs, weights, strict=True) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    kept, given = zip(*pairs, strict=True)
    return rushlight.autograd.grad(
        kept, inputs, given, allow_unused=True, create_graph=create_graph, retain_graph=retain_graph,
        is_grads_batched=is_grads_batched,
    )  # fmt: skip


# What strict mode says of a gradient that is not there, by the step that it comes from.
_NOT_THERE = {
    "back_trick": (
        "The gradient with respect to the input is independent of entry {} in the grad_outputs when using "
        "the double backward trick to compute forward mode gradients. This is not allowed in strict mode."
    ),
    "double_back_trick": (
        "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. This is "
        "not allowed in strict mode as it prevents from using the double backward trick to replace forward "
        "mode AD."
    ),
}
_STAGES = {"back": "output", "back_trick": "", "double_back": "jacobian", "double_back_trick": ""}


def _fill_in_zeros(grads: tuple, refs: tuple, strict: bool, create_graph: bool, stage: str) -> tuple:
    """Zeros for None, or strict mode's refusal."""
    if stage not in _STAGES:
        raise RuntimeError(f"Invalid stage argument '{stage}' to _fill_in_zeros")
    result = []
    for index, (grad, value) in enumerate(zip(grads, refs, strict=True)):
        if grad is None and strict:
            if stage in _NOT_THERE:
                raise RuntimeError(_NOT_THERE[stage].format(index))
            raise _independent(_STAGES[stage], index)
        if strict and create_graph and not grad.requires_grad:
            what = "hessian" if "double" in stage else "jacobian"
            raise RuntimeError(
                f"The {what} of the user-provided function is independent of input {index}. This is not "
                "allowed in strict mode when create_graph=True."
            )
        result.append(rushlight.zeros_like(value) if grad is None else grad)
    return tuple(result)


def vjp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple:
    """`(func(inputs), v^T J)`: the product of a vector with the Jacobian, one backward pass.

    >>> x = rushlight.tensor([1., 2.])
    >>> rushlight.autograd.functional.vjp(lambda x: x ** 2, x, rushlight.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with rushlight.enable_grad():
        several, inputs = _as_tuple(inputs, "inputs", "vjp")
        inputs = _grad_preprocess(inputs, create_graph, True)
        several_out, outputs = _as_outputs(func(*inputs), "vjp")
        _check_requires_grad(outputs, "outputs", strict)
        if v is not None:
            _, v = _as_tuple(v, "v", "vjp")
            v = _grad_preprocess(v, create_graph, False)
            _validate_v(v, outputs, several_out)
        elif len(outputs) != 1 or outputs[0].numel() != 1:
            raise RuntimeError(
                "The vector v can only be None if the user-provided function returns a single Tensor with a "
                "single element."
            )
    with rushlight.set_grad_enabled(create_graph):
        grads = _autograd_grad(outputs, inputs, v, create_graph)
        result = _fill_in_zeros(grads, inputs, strict, create_graph, "back")
    outputs, result = _grad_postprocess(outputs, create_graph), _grad_postprocess(result, create_graph)
    return _plain(outputs, several_out), _plain(result, several)


def jvp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple:
    """`(func(inputs), J v)`: the product of the Jacobian with a vector, by two backward passes.

    >>> x = rushlight.tensor([1., 2.])
    >>> rushlight.autograd.functional.jvp(lambda x: x ** 2, x, rushlight.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with rushlight.enable_grad():
        several, inputs = _as_tuple(inputs, "inputs", "jvp")
        inputs = _grad_preprocess(inputs, create_graph, True)
        if v is not None:
            _, v = _as_tuple(v, "v", "jvp")
            v = _grad_preprocess(v, create_graph, False)
            _validate_v(v, inputs, several)
        elif len(inputs) != 1 or inputs[0].numel() != 1:
            raise RuntimeError(
                "The vector v can only be None if the input to the user-provided function is a single Tensor "
                "with a single element."
            )
        several_out, outputs = _as_outputs(func(*inputs), "jvp")
        _check_requires_grad(outputs, "outputs", strict)
        # v^T J is linear in v: its derivative there is J.
        weights = tuple(rushlight.zeros_like(o, requires_grad=True) for o in outputs)
        products = _autograd_grad(outputs, inputs, weights, True)
        _check_requires_grad(products, "grad_inputs", strict)
        if v is None:
            v = tuple(rushlight.ones_like(x) for x in inputs)
        grads = _autograd_grad(products, weights, v, create_graph)
        result = _fill_in_zeros(grads, outputs, strict, create_graph, "back_trick")
    outputs, result = _grad_postprocess(outputs, create_graph), _grad_postprocess(result, create_graph)
    return _plain(outputs, several_out), _plain(result, several_out)


def _scalar_output(result: Any, function: str, strict: bool) -> Tensor:
    several, outputs = _as_outputs(result, function)
    _check_requires_grad(outputs, "outputs", strict)
    if several or not isinstance(outputs[0], Tensor):
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {function} should contain a single element"
        )
    return outputs[0]


def _hessian_inputs(inputs, v, create_graph, function) -> tuple:
    several, inputs = _as_tuple(inputs, "inputs", function)
    inputs = _grad_preprocess(inputs, create_graph, True)
    if v is not None:
        _, v = _as_tuple(v, "v", function)
        v = _grad_preprocess(v, create_graph, False)
        _validate_v(v, inputs, several)
    elif len(inputs) != 1 or inputs[0].numel() != 1:
        raise RuntimeError(
            "The vector v can only be None if the input to the user-provided function is a single Tensor "
            "with a single element."
        )
    else:
        v = tuple(rushlight.ones_like(x) for x in inputs)
    return several, inputs, v


def vhp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple:
    """`(func(inputs), v^T H)`: the product of a vector with the Hessian of a scalar function.

    >>> x = rushlight.tensor([1., 2.])
    >>> rushlight.autograd.functional.vhp(lambda x: (x ** 3).sum(), x, rushlight.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with rushlight.enable_grad():
        several, inputs, v = _hessian_inputs(inputs, v, create_graph, "vhp")
        output = _scalar_output(func(*inputs), "vhp", strict)
        jacobian = _autograd_grad((output,), inputs, None, True)
        _check_requires_grad(jacobian, "jacobian", strict)
        grads = _autograd_grad(jacobian, inputs, v, create_graph)
        result = _fill_in_zeros(grads, inputs, strict, create_graph, "double_back")
    (output,), result = _grad_postprocess((output,), create_graph), _grad_postprocess(result, create_graph)
    return output, _plain(result, several)


def hvp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple:
    """`(func(inputs), H v)`: the product of the Hessian of a scalar function with a vector.

    >>> x = rushlight.tensor([1., 2.])
    >>> rushlight.autograd.functional.hvp(lambda x: (x ** 3).sum(), x, rushlight.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with rushlight.enable_grad():
        several, inputs, v = _hessian_inputs(inputs, v, create_graph, "hvp")
        output = _scalar_output(func(*inputs), "hvp", strict)
        jacobian = _autograd_grad((output,), inputs, None, True)
        _check_requires_grad(jacobian, "jacobian", strict)
        weights = tuple(rushlight.zeros_like(x, requires_grad=True) for x in inputs)
        products = _autograd_grad(jacobian, inputs, weights, True)
        grads = _autograd_grad(products, weights, v, create_graph)
        result = _fill_in_zeros(grads, inputs, strict, create_graph, "double_back_trick")
    (output,), result = _grad_postprocess((output,), create_graph), _grad_postprocess(result, create_graph)
    return output, _plain(result, several)


def _construct_standard_basis_for(tensors: tuple, tensor_numels: tuple) -> tuple:
    """The unit vectors of all elements together, cut into one matrix per tensor, in its dtype."""
    if len(tensors) != len(tensor_numels):
        raise AssertionError(
            f"Expected tensors and tensor_numels to have the same length, but got {len(tensors)} and "
            f"{len(tensor_numels)}"
        )
    if not tensors:
        raise AssertionError("Expected at least one tensor")
    total, first, chunks = sum(tensor_numels), 0, []
    for tensor, count in zip(tensors, tensor_numels, strict=True):
        chunk = tensor.new_zeros(total, count)
        chunk.diagonal(-first).fill_(1)
        chunks.append(chunk)
        first += count
    return tuple(chunks)


def _jacobian_rows(output: Tensor, inputs: tuple, create_graph: bool, strict: bool, place: int) -> list:
    """Per input: the derivative of every element of the output."""
    rows: list[list] = [[] for _ in inputs]
    for element in output.reshape(-1):
        grads = _autograd_grad((element,), inputs, None, create_graph, retain_graph=True)
        for index, (grad, value) in enumerate(zip(grads, inputs, strict=True)):
            if grad is None:
                if strict:
                    raise RuntimeError(
                        f"Output {place} of the user-provided function is independent of input {index}. This "
                        "is not allowed in strict mode."
                    )
                grad = rushlight.zeros_like(value)
            elif strict and create_graph and not grad.requires_grad:
                raise RuntimeError(
                    "The jacobian of the user-provided function is independent of input "
                    f"{place}. This is not allowed in strict mode when create_graph=True."  # as torch counts
                )
            rows[index].append(grad)
    return rows


def _batched_jacobians(outputs: tuple, inputs: tuple, create_graph: bool) -> list[tuple]:
    """Per output the Jacobians: pieces of one tensor per input, the gradients of a batch of all rows."""
    if not outputs:
        raise AssertionError("Expected at least one tensor")
    counts = [output.numel() for output in outputs]
    found = []
    for output, count in zip(outputs, counts, strict=True):
        units = _construct_standard_basis_for((output,), (count,))[0].reshape(count, *output.shape)
        grads = _autograd_grad((output,), inputs, (units,), create_graph, True, is_grads_batched=True)
        found.append([
            value.new_zeros(count, *value.shape) if grad is None else grad
            for grad, value in zip(grads, inputs, strict=True)
        ])  # fmt: skip
    pieces = []
    for columns, value in zip(zip(*found, strict=True), inputs, strict=True):
        whole = columns[0] if len(columns) == 1 else rushlight.cat(columns)
        cuts = whole.split(counts)
        pieces.append([cut.view((*o.shape, *value.shape)) for cut, o in zip(cuts, outputs, strict=True)])
    return list(zip(*pieces, strict=True))


def _forward_jacobian(func: Callable, inputs: tuple) -> tuple:
    """The Jacobian by forward mode, along all elements of the inputs at once."""
    from rushlight.autograd import forward_ad
    from rushlight.func._derivatives import basis
    from rushlight.func._levels import BATCH, level
    from rushlight.func._vmap import together

    directions = basis(inputs)
    count = directions[0].shape[0]
    if not count:
        several_out, outputs = _as_tuple(func(*inputs), "outputs", None)
        empty = [tuple(rushlight.zeros((*o.shape, *x.shape), dtype=o.dtype) for x in inputs) for o in outputs]
        return several_out, tuple(empty)
    columns = []
    with level(BATCH, count) as number, forward_ad.dual_level():
        duals = [
            forward_ad.make_dual(x, _C.raise_to_level(direction, number, True))
            for x, direction in zip(inputs, directions, strict=True)
        ]
        several_out, outputs = _as_tuple(func(*duals), "outputs", None)
        for part in map(forward_ad.unpack_dual, outputs):
            tangent = rushlight.zeros_like(part.primal) if part.tangent is None else part.tangent
            columns.append(_C.below_level(number, together, tangent, number, count))
    counts = [x.numel() for x in inputs]
    result = []
    for column in columns:
        parts = column.movedim(0, -1).split(counts, -1)
        result.append(
            tuple(part.reshape(*column.shape[1:], *x.shape) for part, x in zip(parts, inputs, strict=True))
        )
    return several_out, tuple(result)


def _jacfwd(func: Callable, inputs: Any, strict: bool = False, vectorize: bool = False) -> Any:
    """The Jacobian by forward mode, in the form that `inputs` and the outputs have."""
    if strict:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `strategy="
            '"forward-mode"` are not supported together (yet). Please either set `strict=False` or '
            '`strategy="reverse-mode"`.'
        )
    with rushlight.enable_grad():
        several, inputs = _as_tuple(inputs, "inputs", "jacobian")
        if not vectorize:
            raise NotImplementedError(
                "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
                "`vectorize=True`."
            )
        several_out, result = _forward_jacobian(func, inputs)
    if several:  # torch gives lists here
        return [list(row) for row in result] if several_out else list(result[0])
    return _plain(tuple(_plain(row, several) for row in result), several_out)


def jacobian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivative of every element of the outputs with respect to every element of the inputs.

    >>> rushlight.autograd.functional.jacobian(lambda x: x ** 2, rushlight.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has '
            'more outputs than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use '
            '"reverse-mode".'
        )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                "torch.autograd.functional.jacobian: `create_graph=True` and `strategy="
                '"forward-mode"` are not supported together (yet). Please either set `create_graph=False` or '
                '`strategy="reverse-mode"`.'
            )
        return _jacfwd(func, inputs, strict, vectorize)
    with rushlight.enable_grad():
        several, inputs = _as_tuple(inputs, "inputs", "jacobian")
        inputs = _grad_preprocess(inputs, create_graph, True)
        several_out, outputs = _as_outputs(func(*inputs), "jacobian")
        _check_requires_grad(outputs, "outputs", strict)
        if strict and vectorize:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not "
                "supported together. Please either set `strict=False` or `vectorize=False`."
            )
        if vectorize:
            rows = _batched_jacobians(outputs, inputs, create_graph)
        else:
            rows = [
                tuple(
                    rushlight.stack(column).view((*output.shape, *value.shape))
                    for column, value in zip(columns, inputs, strict=True)
                )
                for output, columns in (
                    (output, _jacobian_rows(output, inputs, create_graph, strict, place))
                    for place, output in enumerate(outputs)
                )
            ]
        result = tuple(_grad_postprocess(row, create_graph) for row in rows)
    result = tuple(_plain(row, several) for row in result)
    return _plain(result, several_out)


def hessian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a scalar function.

    >>> rushlight.autograd.functional.hessian(lambda x: (x ** 3).sum(), rushlight.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    several, inputs = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*args):
        result = func(*args)
        several_out, outputs = _as_tuple(result, "outputs of the user-provided function", "hessian")
        _check_requires_grad(outputs, "outputs", strict)
        if several_out or not isinstance(result, Tensor):
            raise RuntimeError("The function given to hessian should return a single Tensor")
        if result.numel() != 1:
            raise RuntimeError(
                "The Tensor returned by the function given to hessian should contain a single element"
            )
        return result.squeeze()

    def gradient(*args):
        if outer_jacobian_strategy == "forward-mode":
            args = tuple(x.requires_grad_() if not x.requires_grad else x for x in args)
        grads = jacobian(scalar, args, create_graph=True)
        _check_requires_grad(grads, "jacobian", strict)
        return grads

    result = jacobian(
        gradient,
        inputs,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return result if several else result[0][0]
