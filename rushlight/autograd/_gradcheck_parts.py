"""Steps of gradcheck under the names that torch's own has for them. They are functions of their arguments
alone, and programs that check derivatives in a way of their own import them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import rushlight
from rushlight import _C
from rushlight._annotations import Any
from rushlight.autograd._jacobians import analytical_jacobians, indices_of, one_at, with_every_element

Tensor = _C.Tensor


def _is_sparse_compressed_tensor(obj: Tensor) -> bool:
    return _C.is_compressed(obj)


def _is_sparse_any_tensor(obj: Tensor) -> bool:
    return _C.is_any_sparse(obj)


def _to_real_dtype(dtype: Any) -> Any:
    return dtype.to_real() if dtype.is_complex else dtype


def _densify(x: Any) -> Any:
    """Sparse tensors, also within lists and tuples, as ones that store every element."""
    if isinstance(x, (list, tuple)):
        return type(x)(map(_densify, x))
    return with_every_element(x) if isinstance(x, Tensor) else x


def _to_flat_dense_if_sparse(tensor: Tensor) -> Tensor:
    return tensor.to_dense().reshape(-1) if _C.is_any_sparse(tensor) else tensor


def _get_inp_tensors(tupled_inputs: tuple) -> tuple[list[int], list[Tensor]]:
    """The places of inputs that can be differentiated by, and these inputs."""
    found = [
        (at, value)
        for at, value in enumerate(tupled_inputs)
        if isinstance(value, Tensor)
        and (value.is_floating_point() or value.is_complex())
        and value.requires_grad
    ]
    return [at for at, _ in found], [value for _, value in found]


def _vec_from_tensor(x: Tensor, generator: Any, downcast_complex: bool = False) -> Tensor:
    """A random vector of length 1 with an element for each of x; real elements, in the dtype of x unless a
    complex one is to become real."""
    if _C.is_any_sparse(x):
        raise NotImplementedError("_vec_from_tensor of a sparse tensor is not implemented")
    found = rushlight.rand(x.numel(), generator=generator)
    found = found.to(x.device, _to_real_dtype(x.dtype) if downcast_complex else x.dtype)
    return found / found.norm()


def _dot_with_type_promotion(u: Tensor, v: Tensor) -> Tensor:
    if u.dim() != 1 or v.dim() != 1:
        raise AssertionError("Expected u and v to be 1D tensors")
    return (u * v).sum()


def _allclose_with_type_promotion(a: Tensor, b: Tensor, rtol: float, atol: float) -> bool:
    dtype = rushlight.promote_types(a.dtype, b.dtype)
    return rushlight.allclose(a.to(dtype), b.to(dtype), rtol, atol)


def _adjusted_atol(atol: float, u: Any, v: Tensor | None) -> float:
    """How far two products u' J v may differ if the elements of J may differ by `atol`."""
    total = sum(part.sum() for part in u) if isinstance(u, tuple) else u.sum()
    return atol * float(total) * (1.0 if v is None else float(v.sum()))


def _mul_tensor_or_tuple(u: Any, k: Any) -> Any:
    return (k * u[0], k * u[1]) if isinstance(u, tuple) else k * u


def _reshape_tensor_or_tuple(u: Any, shape: Any) -> Any:
    return tuple(part.reshape(shape) for part in u) if isinstance(u, tuple) else u.reshape(shape)


def _transpose(matrix_of_tensors: Any) -> list[tuple]:
    return list(zip(*matrix_of_tensors, strict=False))


def _iter_tensor(x_tensor: Tensor) -> Iterator[tuple]:
    """Of every element: the memory it is in, its index there, and its number."""
    if _C.is_any_sparse(x_tensor):
        raise NotImplementedError("_iter_tensor of a sparse tensor is not implemented")
    for number, index in enumerate(indices_of(x_tensor)):
        yield x_tensor.data, index, number


def _allocate_jacobians_with_inputs(input_tensors: tuple, numel_output: int) -> tuple[Tensor, ...]:
    """Zeros for the Jacobian of each input that can be differentiated by."""
    _, tensors = _get_inp_tensors(input_tensors)
    return tuple(t.new_zeros((t.numel(), numel_output), layout=rushlight.strided) for t in tensors)


def _allocate_jacobians_with_outputs(
    output_tensors: tuple, numel_input: int, dtype: Any = None, device: Any = None
) -> tuple[Tensor, ...]:
    """Zeros for the Jacobian of each output that has one."""
    return tuple(
        t.new_zeros((numel_input, t.numel()), dtype=dtype or t.dtype, device=device or t.device)
        for t in output_tensors
        if t.is_floating_point() or t.is_complex()
    )


def _compute_analytical_jacobian_rows(vjp_fn: Callable, sample_output: Tensor) -> list[list[Tensor | None]]:
    """What `vjp_fn` gives for each element of an output alone: a list per input."""
    rows: list[list[Tensor | None]] = []
    for element in range(sample_output.numel()):
        found = vjp_fn(one_at(sample_output, element, 1.0))
        rows.append([None if one is None else one.clone() for one in found])
    return [list(of_input) for of_input in zip(*rows, strict=True)]


def _get_analytical_jacobian(inputs: Any, outputs: Any, input_idx: int, output_idx: int) -> Tensor:
    """The Jacobian of one output by one of the inputs that require grad, by backward."""
    targets = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    return analytical_jacobians(targets, outputs[output_idx], 1.0)[input_idx]


def _get_analytical_jacobian_forward_ad(
    fn: Callable, inputs: Any, outputs: Any, *, check_grad_dtypes: bool = False, all_u: Any = None
) -> tuple[tuple[Tensor, ...], ...]:
    """Per input that requires grad the Jacobian of every output, by forward mode."""
    if all_u is not None:
        raise NotImplementedError("_get_analytical_jacobian_forward_ad with all_u is not implemented")
    from rushlight.autograd import forward_ad

    targets = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    result = []
    for target in targets:
        rows = []
        for element in range(target.numel()):
            with forward_ad.dual_level():
                moved = tuple(
                    forward_ad.make_dual(one.detach(), one_at(one, element, 1.0)) if one is target else one
                    for one in inputs
                )
                found = fn(*moved)
                parts = [
                    forward_ad.unpack_dual(one)
                    for one in (found if isinstance(found, (tuple, list)) else (found,))
                ]
                rows.append(
                    [
                        rushlight.zeros_like(primal) if tangent is None else tangent
                        for primal, tangent in parts
                    ]
                )
        result.append(
            tuple(rushlight.stack([row[o].reshape(-1) for row in rows]) for o in range(len(outputs)))
        )
    return tuple(result)


def _real_and_imag_output(fn: Callable) -> tuple[Callable, Callable]:
    """Two functions: the real parts of the outputs of `fn`, and the imaginary parts of complex ones."""

    def part(of: Callable) -> Callable:
        def of_outputs(*inputs: Any) -> tuple:
            found = fn(*inputs)
            outputs = (
                found if isinstance(found, tuple) else tuple(found) if isinstance(found, list) else (found,)
            )
            return tuple(of(one) if one.is_complex() else one for one in outputs)

        return of_outputs

    return part(rushlight.real), part(rushlight.imag)


def _real_and_imag_input(
    fn: Callable, complex_inp_indices: Any, tupled_inputs: tuple
) -> tuple[Callable, Callable]:
    """Two functions that return tuples: of the real parts of those inputs, the imaginary ones being as given,
    and the reverse."""

    def part(of: Callable) -> Callable:
        def of_inputs(*inputs: Any) -> Any:
            given = list(inputs)
            for at in complex_inp_indices:
                given[at] = of(given[at], tupled_inputs[at])
            found = fn(*given)
            return found if isinstance(found, tuple) else (found,)

        return of_inputs

    return part(lambda x, z: x + z.imag * 1j), part(lambda x, z: z.real + x * 1j)


def _check_jacobians_equal(j1: Any, j2: Any, atol: float) -> bool:
    """Whether two lists of Jacobians differ nowhere by more than `atol`."""
    return all(a.numel() == 0 or bool((a - b).abs().max() <= atol) for a, b in zip(j1, j2, strict=False))
