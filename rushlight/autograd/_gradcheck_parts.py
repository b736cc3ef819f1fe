"""Small parts of gradcheck: what counts as a tensor, elements and random vectors of one, room for Jacobians,
and comparing. The names here and in the files beside are torch's, as programs import them from `gradcheck`.
"""

from __future__ import annotations

import collections.abc
import itertools
from collections.abc import Iterator, Sequence

import rushlight
from rushlight import _C
from rushlight._annotations import Any
from rushlight.ops.create import _mkldnn

Tensor = _C.Tensor


class GradcheckError(RuntimeError):
    """A derivative is wrong."""


GradcheckError.__module__ = "rushlight.autograd.gradcheck"


# ---- kinds of values


def is_tensor_like(inp: Any) -> bool:
    """Whether a value is a tensor or acts as one."""
    from rushlight import overrides  # which takes long to import

    return overrides.is_tensor_like(inp)


def _is_float_or_complex_tensor(obj: Any) -> bool:
    return is_tensor_like(obj) and (obj.is_floating_point() or obj.is_complex())


def _is_sparse_compressed_tensor(obj: Tensor) -> bool:
    return _C.is_compressed(obj)


def _is_sparse_any_tensor(obj: Tensor) -> bool:
    return _C.is_any_sparse(obj)


def _to_real_dtype(dtype: Any) -> Any:
    return dtype.to_real() if dtype.is_complex else dtype


def _as_tuple(x: Any) -> tuple:
    return x if isinstance(x, tuple) else tuple(x) if isinstance(x, list) else (x,)


def _iter_tensors(x: Any, only_requiring_grad: bool = False) -> Iterator[Tensor]:
    """The tensors in nested sequences."""
    if is_tensor_like(x):
        if x.requires_grad or not only_requiring_grad:
            yield x
    elif isinstance(x, collections.abc.Iterable) and not isinstance(x, str):
        for element in x:
            yield from _iter_tensors(element, only_requiring_grad)


def _get_inp_tensors(tupled_inputs: Sequence) -> tuple[list[int], list[Tensor]]:
    """The places of the inputs that require grad, and these inputs."""
    places = [i for i, value in enumerate(tupled_inputs) if is_tensor_like(value) and value.requires_grad]
    return places, [tupled_inputs[i] for i in places]


def _differentiable_outputs(x: Any) -> tuple:
    return tuple(o for o in _as_tuple(x) if o.requires_grad)


# ---- elements


def with_every_element(t: Any) -> Any:
    """A sparse tensor that stores all its elements, those too that were not there."""
    if not _C.is_any_sparse(t):
        return t
    return t.with_every_element().requires_grad_(t.requires_grad)


def _densify(x: Any) -> Any:
    """Sparse tensors, also within lists and tuples, as ones that store every element."""
    if isinstance(x, (list, tuple)):
        return type(x)(map(_densify, x))
    return with_every_element(x) if is_tensor_like(x) else x


def _to_flat_dense_if_sparse(tensor: Tensor) -> Tensor:
    return tensor.to_dense().reshape(-1) if _C.is_any_sparse(tensor) else tensor


def _iter_tensor(x_tensor: Any) -> Iterator[tuple[Tensor, tuple[int, ...], int]]:
    """Of every element that is stored: memory it can be written in, its index there, and its number among
    all. Of a sparse tensor the memory is an entry's: only its dense dimensions are left."""
    if x_tensor.layout is _mkldnn:  # its memory is not to be had: a copy, anew for every element
        for number, index in enumerate(_indices(x_tensor.shape)):
            yield x_tensor.to_dense(), index, number
        return
    if not _C.is_any_sparse(x_tensor):
        for number, index in enumerate(_indices(x_tensor.shape)):
            yield x_tensor.data, index, number
        return
    memory, numbers = x_tensor.memory().data, x_tensor.numbers().reshape(-1).tolist()
    split = memory.dim() - x_tensor.dense_dim()
    found = itertools.product(_indices(memory.shape[:split]), _indices(memory.shape[split:]))
    for number, (entry, index) in zip(numbers, found, strict=True):
        yield memory[entry], index, number


def _indices(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*map(range, sizes))


# ---- vectors


def _vec_from_tensor(x: Any, generator: Any, downcast_complex: bool = False) -> Tensor:
    """A random vector of length 1 with an element for each of x, or a sparse tensor of such elements where x
    has its own; real ones, in the dtype of x unless a complex one is to become real."""
    dtype = _to_real_dtype(x.dtype) if downcast_complex else x.dtype
    stored = x.detach().memory() if _C.is_any_sparse(x) else None
    count = x.numel() if stored is None else stored.numel()
    found = rushlight.rand(count, generator=generator).to(x.device, dtype)
    found /= found.norm()
    return found if stored is None else x.detach().with_memory(found.view(stored.shape))


def _make_vectors(
    inp_tensors: Sequence[Tensor], outputs: Sequence[Tensor], *, use_forward_ad: bool
) -> tuple[list | None, list, list]:
    """Random vectors v for the outputs (none in forward mode) and u for the inputs, and the latter without
    holes: of a complex input two, for its real and its imaginary part."""
    generator = rushlight.Generator()  # the user's draws nothing here
    with rushlight.device("cpu"):  # where the generator is, whatever the default may be
        us: list = [
            tuple(_vec_from_tensor(t, generator, True) for _ in range(1 + t.is_complex()))
            for t in inp_tensors
        ]
        vs = None if use_forward_ad else [_vec_from_tensor(o, generator) for o in outputs]
    flat = [tuple(map(_to_flat_dense_if_sparse, parts)) for parts in us]

    def alone(parts: tuple) -> Any:
        return parts if len(parts) == 2 else parts[0]

    return vs, list(map(alone, us)), list(map(alone, flat))


def _mul_tensor_or_tuple(u: Any, k: Any) -> Any:
    return (k * u[0], k * u[1]) if isinstance(u, tuple) else k * u


def _reshape_tensor_or_tuple(u: Any, shape: Any) -> Any:
    """Vectors as tensors of that shape; those of a sparse input are already."""
    first = u[0] if isinstance(u, tuple) else u
    if _C.is_any_sparse(first):
        return u
    return tuple(part.reshape(shape) for part in u) if isinstance(u, tuple) else u.reshape(shape)


def _dot_with_type_promotion(u: Tensor, v: Tensor) -> Tensor:
    if u.dim() != 1 or v.dim() != 1:
        raise AssertionError(f"Expected u and v to be 1D tensors, but got dims {u.dim()} and {v.dim()}")
    return (u * v).sum()


# ---- Jacobians: a row per element of the input, a column per element of the output


def _allocate_jacobians_with_inputs(input_tensors: Sequence, numel_output: int) -> tuple[Tensor, ...]:
    """Zeros for the Jacobian of each input that can be differentiated by."""
    return tuple(
        t.new_zeros((t.numel(), numel_output), layout=rushlight.strided)
        for t in input_tensors
        if _is_float_or_complex_tensor(t) and t.requires_grad
    )


def _allocate_jacobians_with_outputs(
    output_tensors: Sequence, numel_input: int, dtype: Any = None, device: Any = None
) -> tuple[Tensor, ...]:
    """Zeros for the Jacobian of each output that has one."""
    return tuple(
        t.new_zeros((numel_input, t.numel()), dtype=dtype, device=device, layout=rushlight.strided)
        for t in output_tensors
        if _is_float_or_complex_tensor(t)
    )


def _transpose(matrix_of_tensors: Any) -> list[tuple]:
    return list(zip(*matrix_of_tensors, strict=False))


def _check_jacobians_equal(j1: Any, j2: Any, atol: float) -> bool:
    """Whether two lists of Jacobians differ nowhere by more than `atol`. NaN does not say they do."""
    return not any(a.numel() and bool((a - b).abs().max() > atol) for a, b in zip(j1, j2, strict=False))


def _allclose_with_type_promotion(a: Tensor, b: Tensor, rtol: float, atol: float) -> bool:
    dtype = rushlight.promote_types(a.dtype, b.dtype)
    return rushlight.allclose(a.to(dtype), b.to(dtype), rtol, atol)


def _adjusted_atol(atol: float, u: Any, v: Tensor | None) -> float:
    """How far two products u' J v may differ if the elements of J may differ by `atol`."""
    total = sum(float(part.sum()) for part in u) if isinstance(u, tuple) else float(u.sum())
    return atol * total * (1.0 if v is None else float(v.sum()))


def _get_notallclose_msg(
    analytical: Tensor,
    numerical: Tensor,
    output_idx: int,
    input_idx: int,
    complex_indices: Any,
    test_imag: bool = False,
    is_forward_ad: bool = False,
) -> str:
    """What is said of two Jacobians that differ. Complex outputs, in forward mode complex inputs, are
    compared part by part: `complex_indices` tells which are complex, `test_imag` the part."""
    kind, index = ("inputs", input_idx) if is_forward_ad else ("outputs", output_idx)
    about = ""
    if complex_indices and index in complex_indices:
        about = f"While considering the {'imaginary' if test_imag else 'real'} part of complex {kind} only, "
    mode = "computed with forward mode " if is_forward_ad else ""
    return (
        f"{about}Jacobian {mode}mismatch for output {output_idx:d} with respect to input {input_idx:d},\n"
        f"numerical:{numerical}\nanalytical:{analytical}\n"
    )
