"""Functions that torch has under a leading underscore and that libraries call all the same."""

from __future__ import annotations

import functools
from typing import Any

import rushlight
from rushlight import _C, Tensor
from rushlight.ops._again import looked_on
from rushlight.ops._facts import told
from rushlight.ops._node_names import saving
from rushlight.ops._public import FUNCTIONS, public, refuse_gradient, type_name, undifferentiable, wrap_dim
from rushlight.ops.mask import masked_index, masked_put

_segment_reduce = FUNCTIONS["segment_reduce"]
_BYTES = (rushlight.int8, rushlight.uint8)


@told(node_name="UnsafeIndexBackward0")
def _unsafe_index(input: Tensor, indices: Any) -> Tensor:
    """input[indices] for indices that are whole numbers; the bounds are looked at all the same.

    >>> rushlight._unsafe_index(rushlight.tensor([1.0, 2.0]), [rushlight.tensor([1, 1])])
    tensor([2., 2.])
    """
    _check_kinds("_unsafe_index", indices)
    return _C.ops.index(input, tuple(indices))


@told(node_name=saving("UnsafeMaskedIndexBackward0", "self mask indices fill", "mask indices"))
def _unsafe_masked_index(input: Tensor, mask: Tensor, indices: Any, fill: Any) -> Tensor:
    """input[indices] where the mask is set (elsewhere an index may be out of range), else `fill`.

    >>> x, at = rushlight.tensor([1.0, 2.0]), rushlight.tensor([1, 7])
    >>> rushlight._unsafe_masked_index(x, rushlight.tensor([True, False]), [at], 0.0)
    tensor([2., 0.])
    """
    _check_kinds("_unsafe_masked_index", indices)
    if input.numel() and looked_on(input):
        run = functools.partial(masked_index, fill=fill)
        return _C.ops.masked_index(input, mask, tuple(indices), run)
    held = input.new_full([size or 1 for size in input.shape], fill) if input.numel() == 0 else input
    return masked_index(held, mask, indices, fill)


def _put_node(input, mask, indices, values):
    kept = ("mask",) if values.requires_grad else ()
    name, order = "UnsafeMaskedIndexPutAccumulateBackward0", "self mask indices values"
    return saving(name, order, " ".join((*kept, "indices")))(input, mask, indices, values)


@told(node_name=_put_node)
def _unsafe_masked_index_put_accumulate(input: Tensor, mask: Tensor, indices: Any, values: Tensor) -> Tensor:
    """input with `values` added at the indices where the mask is set.

    >>> x, at = rushlight.tensor([1.0, 2.0]), rushlight.tensor([1, 7])
    >>> rushlight._unsafe_masked_index_put_accumulate(x, at < 2, [at], rushlight.ones(2))
    tensor([1., 3.])
    """
    if input.numel() == 0:
        return input.clone()
    _check_kinds("_unsafe_masked_index", indices)
    if looked_on(input, values):
        return _C.ops.masked_index_put(input, values, mask, tuple(indices), masked_put)
    return masked_put(input, values, mask, indices)


def _check_kinds(name: str, indices: Any) -> None:
    for index in indices:
        if isinstance(index, Tensor) and index.dtype not in (rushlight.int64, rushlight.int32):
            raise RuntimeError(f"{name} found unexpected index type {type_name(index.dtype)}")


def _same_floats(name: str, first: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    """The tensors, broadcast together; they must be of one dtype, float32 or float64."""
    tensors = rushlight.broadcast_tensors(first, *others)
    for each in others:
        if each.dtype != first.dtype:
            raise RuntimeError(f"Found dtype {type_name(each.dtype)} but expected {type_name(first.dtype)}")
    if first.dtype not in (rushlight.float32, rushlight.float64):
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{type_name(first.dtype)}'")
    return tensors


@public(method=False, namespace=False)
def _standard_gamma_grad(input: Tensor, output: Tensor) -> Tensor:
    """How a sample `output` of the gamma distribution moves with its shape `input`.

    >>> rushlight._standard_gamma_grad(rushlight.tensor([1.0]), rushlight.tensor([0.5]))
    tensor([0.7578])
    """
    return _C.ops._standard_gamma_grad(*_same_floats("_standard_gamma_grad", input, output.detach()))


@public(method=False, namespace=False)
def _dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """How a component `x` of a sample of the Dirichlet distribution moves with its concentration `alpha`,
    divided by 1 - x; `total` is the sum of all concentrations.

    >>> x, one = rushlight.tensor([0.5]), rushlight.ones(1)
    >>> rushlight._dirichlet_grad(x, one, 2 * one)
    tensor([0.6931])
    """
    from rushlight.distributions._dirichlet import dirichlet_grad

    tensors = _same_floats("_dirichlet_grad", x, alpha, total)
    found = dirichlet_grad(*(each.detach() for each in tensors))
    return undifferentiable("_dirichlet_grad", found, x, alpha, total)


@public(method=False, namespace=False)
def _make_dual(primal: Tensor, tangent: Tensor, level: int) -> Tensor:
    """autograd.forward_ad.make_dual."""
    return rushlight.autograd.forward_ad._dual(primal, tangent, level)


@public(method=False, namespace=False)
def _unpack_dual(dual: Tensor, level: int) -> Any:
    """autograd.forward_ad.unpack_dual."""
    if level < 0:
        if _C.tangent(dual) is not None:
            raise RuntimeError("Invalid level given to _fw_primal")
        return rushlight.return_types._unpack_dual((dual, None))
    parts = rushlight.autograd.forward_ad._parts(dual, level)
    return rushlight.return_types._unpack_dual(parts)


def _debug_has_internal_overlap(input: Tensor) -> int:
    """Whether elements share memory: 0 for no, 1 for yes, 2 for a layout that is not looked into.

    >>> rushlight._debug_has_internal_overlap(rushlight.ones(1).expand(2))
    1
    """
    strides = input.stride()
    step = 1
    for d in sorted((d for d in range(input.dim()) if input.size(d) > 1), key=strides.__getitem__):
        if strides[d] != step:
            break
        step *= input.size(d)
    else:
        return 0
    if input.numel() == 0:
        return 0
    return 1 if any(n > 1 and stride == 0 for n, stride in zip(input.shape, strides, strict=True)) else 2


def _has_compatible_shallow_copy_type(input: Tensor, _from: Tensor) -> bool:
    """Whether `input.data = _from` is possible: both on one kind of device, and dense or sparse alike.

    >>> x = rushlight.eye(2)
    >>> rushlight._has_compatible_shallow_copy_type(x, x.double())
    True
    >>> rushlight._has_compatible_shallow_copy_type(x, x.to_sparse())
    False
    """

    def kind(t: Tensor) -> tuple:
        return t.device.type, t.is_nested, "compressed" if _C.is_compressed(t) else t.layout

    return kind(input) == kind(_from)


@told(node_name="LazyCloneBackward0")
def _lazy_clone(input: Tensor) -> Tensor:
    """A copy with input's strides and all of its memory, which says that it is one until it is written.
    See Note [lazy clones] in native/python/storage_ops.cpp.

    >>> copy = rushlight._lazy_clone(rushlight.ones(2))
    >>> before = _C._is_cow_tensor(copy)
    >>> before, _C._is_cow_tensor(copy.add_(1))
    (True, False)
    """
    copy = input.clone()
    memory = _C.storage_bytes(input)
    if copy.stride() != input.stride() or _C.storage_nbytes(copy) != len(memory):
        with rushlight.no_grad():
            offset, size, stride = input.storage_offset(), input.shape, input.stride()
            _C.set_storage(copy, memory.clone(), input.dtype, offset, size, stride)
    _C.mark_lazily_cloned(input)
    _C.mark_lazily_cloned(copy)
    return copy


@told(no_forward_mode="aten::_chunk_cat")
def _chunk_cat(tensors: Any, dim: int, num_chunks: int, *, out: Tensor | None = None) -> Tensor:
    """Each tensor in `num_chunks` equal pieces along dim (the last ones filled up with zeros), flattened from
    there on and joined: all first pieces, all second ones, ...

    >>> rushlight._chunk_cat([rushlight.tensor([1, 2, 3]), rushlight.tensor([4])], 0, 2)
    tensor([[1, 2, 4],
            [3, 0, 0]])
    """
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    first = tensors[0]
    if all(tensor.dim() == first.dim() for tensor in tensors):
        dim = wrap_dim(dim, first.dim())
    elif dim < 0:
        raise RuntimeError("_chunk_cat expects non-negative dim when input tensors have different ndims")
    pieces = []
    for tensor in tensors:
        if tensor.numel() == 0:
            raise RuntimeError("_chunk_cat expects non-empty tensor")
        if tensor.dtype != first.dtype:
            raise RuntimeError("_chunk_cat expects all input tensors with the same dtype")
        if tensor.dim() <= dim:
            raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
        if tensor.shape[:dim] != first.shape[:dim]:
            raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
        size = tensor.size(dim)
        length = -(-size // num_chunks)
        rest = tensor.shape[dim + 1 :]
        filling = tensor.new_zeros((*tensor.shape[:dim], length * num_chunks - size, *rest))
        whole = rushlight.cat([tensor, filling], dim)
        pieces.append(whole.reshape(*tensor.shape[:dim], num_chunks, -1))
    joined = rushlight.cat(pieces, dim + 1, out=out)
    return undifferentiable("_chunk_cat", joined.detach(), *tensors) if out is None else joined


def _addmm_activation(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, use_gelu: bool = False
) -> Tensor:
    """relu or gelu of addmm.

    >>> eye = rushlight.eye(2)
    >>> rushlight._addmm_activation(-2 * eye, eye, eye)
    tensor([[0., 0.],
            [0., 0.]])
    """
    activation = rushlight.nn.functional.gelu if use_gelu else rushlight.relu
    return activation(rushlight.addmm(input, mat1, mat2, beta=beta, alpha=alpha))


def _compute_linear_combination(input: Tensor, coefficients: Tensor) -> Tensor:
    """Sums of the slices of input along its first dimension, weighted by each row of coefficients.

    >>> rushlight._compute_linear_combination(rushlight.eye(2), rushlight.tensor([[1.0, 2.0]]))
    tensor([[1., 2.]])
    """
    if input.numel() == 0 or coefficients.numel() == 0:
        raise RuntimeError("Expected: input.numel() > 0 && coefficients.numel() > 0")
    return rushlight.tensordot(coefficients, input, 1)


def _int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices of bytes, in int32.

    >>> rushlight._int_mm(rushlight.full((1, 2), 100, dtype=rushlight.int8), rushlight.eye(2).char())
    tensor([[100, 100]], dtype=torch.int32)
    """
    width, (height, _) = self.size(-1), (mat2.size(0), mat2.size(1))
    kind, other = _C.dtype_cpp_name(self.dtype), _C.dtype_cpp_name(mat2.dtype)
    for holds, text in (
        (self.dim() == 2, f"Expected self to be of dimension 2 but got {self.dim()}"),
        (mat2.dim() == 2, f"Expected mat2 to be of dimension 2 but got {mat2.dim()}"),
        (width == height, f"self.size(1) needs to match mat2.size(0) but got {width} and {height}"),
        (self.dtype in _BYTES, f"Expected self dtype to be int8 or uint8 but got {kind}"),
        (mat2.dtype == rushlight.int8, f"Expected mat2 dtype to be of type int8 but got {other}"),
    ):
        if not holds:
            raise RuntimeError(f"int_mm_out_cpu: {text}")
    return rushlight.mm(self.int(), mat2.int())


@public(method=False, namespace=False)
def _native_batch_norm_legit(input: Any, weight: Any, bias: Any, *rest: Any, out: Any = None) -> tuple:
    """native_batch_norm; the running statistics can be left out.

    >>> rushlight._native_batch_norm_legit(rushlight.tensor([[0.0], [2.0]]), None, None, True, 0.1, 1e-12)[1]
    tensor([1.])
    """
    if len(rest) == 3:
        rest = (None, None, *rest)
    if len(rest) > 1 and all(isinstance(mean, Tensor | None) for mean in rest[:2]):
        refuse_gradient("_native_batch_norm_legit", running_mean=rest[0], running_var=rest[1])
    result = rushlight.native_batch_norm(input, weight, bias, *rest, out=out)
    return _C.name_node(result, f"NativeBatchNormLegitBackward{int(rest[0] is None)}")


# ---- names that only torch.ops.aten has


def _slice(self: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    """self[start:end:step] along a dimension, as a view."""
    dim = dim + self.dim() if dim < 0 else dim
    return self[(slice(None),) * dim + (slice(start, end, step),)]


def _pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """The data of pack_padded_sequence, and how many elements there are in each step.

    >>> rushlight._pack_padded_sequence(rushlight.ones(2, 2), rushlight.tensor([2, 1]), False)
    (tensor([1., 1., 1.]), tensor([2, 1]))
    """
    packed = rushlight.nn.utils.rnn.pack_padded_sequence(input, lengths, batch_first)
    return packed.data, packed.batch_sizes


def _pad_packed_sequence(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: Any, total_length: int
) -> tuple[Tensor, Tensor]:
    """pad_packed_sequence of data that were never sorted.

    >>> steps = rushlight.tensor([2, 1])
    >>> rushlight._pad_packed_sequence(rushlight.ones(3), steps, False, 0.0, 0)[0].shape
    torch.Size([2, 2])
    """
    rnn = rushlight.nn.utils.rnn
    packed = rnn.PackedSequence(data, batch_sizes)
    return rnn.pad_packed_sequence(packed, batch_first, padding_value, total_length or None)


def _softmax_gradient(name: str, g: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    dim = wrap_dim(dim, output.dim())
    # Torch asks for the dtype of the input for this one case, and has a kernel for it on other devices only.
    halved = g.dtype == _C.float32 and input_dtype == _C.float16
    if g.shape == output.shape and not g.numel():
        return g.to(_C.float16) if halved else g.clone()
    if not g.is_floating_point():
        kernel = "backward_lastdim_kernel_impl" if dim + 1 >= g.dim() else "backward_kernel_impl"
        raise NotImplementedError(f"\"{name}_{kernel}\" not implemented for '{type_name(g.dtype)}'")
    found = _C.float16 if halved else output.dtype
    if found != g.dtype:
        raise RuntimeError(f"expected scalar type {type_name(g.dtype)} but found {type_name(found)}")
    return getattr(_C.ops, f"{name}_backward")(g, output, dim)


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """The gradient of softmax, from its result."""
    return _softmax_gradient("softmax", grad_output, output, dim, input_dtype)


def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """The gradient of log_softmax, from its result."""
    return _softmax_gradient("log_softmax", grad_output, output, dim, input_dtype)


def _batch_norm_with_update(
    input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> tuple:
    """native_batch_norm in training, with a reserve that nothing needs here."""
    refuse_gradient("_batch_norm_with_update", running_mean=running_mean, running_var=running_var)
    results = rushlight.native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    reserve = rushlight.empty(0, dtype=rushlight.uint8, device=input.device)
    kept = {f"result{at}": _C.keep(value) for at, value in enumerate((*results[1:], reserve), 1)}
    if _C.recorded(input, weight, bias) >> 7:
        kept["reserve"] = _C.make_saved(reserve)  # which shows it to the hooks
    results = _C.name_node(results, "BatchNormWithUpdateBackward0", 0, kept)
    return (*results, reserve)


ATEN = {
    "slice": _slice,
    "_softmax_backward_data": _softmax_backward_data,
    "_log_softmax_backward_data": _log_softmax_backward_data,
    "_batch_norm_with_update": _batch_norm_with_update,
}
