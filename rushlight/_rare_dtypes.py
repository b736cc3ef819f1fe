"""What torch computes with complex32, uint16, uint32, uint64 and the float8 dtypes, and by way of what.

No loop of the core knows these dtypes: a primitive that is given one is handed to ``forward`` (Note [rare
dtypes], native/tensor/dtype.h). What only moves elements runs on the same memory under the name of a dtype of
their size (``moved``); arithmetic runs in a dtype that holds all values and is rounded once (``widened``).
What torch does not compute on a CPU is refused in its words; ``_KERNELS`` has its names for the kernels.
"""

from rushlight import _C


def _names(text):
    return set(text.split())


_UNSIGNED = (_C.uint16, _C.uint32, _C.uint64)
_FLOAT8 = (_C.float8_e4m3fn, _C.float8_e5m2, _C.float8_e4m3fnuz, _C.float8_e5m2fnuz, _C.float8_e8m0fnu)
_SAME_SIZE = {_C.uint16: _C.int16, _C.uint32: _C.int32, _C.uint64: _C.int64, _C.complex32: _C.int32}
_SAME_SIZE.update(dict.fromkeys(_FLOAT8, _C.uint8))
_WIDE = {
    _C.complex32: _C.complex64,
    **dict.fromkeys(_UNSIGNED, _C.int64),
    **dict.fromkeys(_FLOAT8, _C.float32),
}
_CLASS = {
    _C.uint16: "UInt16", _C.uint32: "UInt32", _C.uint64: "UInt64", _C.complex32: "ComplexHalf",
    **{dtype: "F" + str(dtype)[7:] for dtype in _FLOAT8},
}  # fmt: skip

_WIDE_CLASS = {_C.complex64: "ComplexFloat", _C.int64: "Long", _C.float32: "Float", _C.float16: "Half"}

# Dtypes that are refused in the same words, and torch's name of them.
_ALIKE = {
    "u": [(_C.int64, "Long")],
    "c": [(_C.complex64, "ComplexFloat"), (_C.float16, "Half")],
    "f": [(_C.float16, "Half")],
}

_MOVES = _names(
    "index cat stack block_diag flip roll repeat embedding circular_pad1d circular_pad2d circular_pad3d pick "
    "replace select_backward slice_backward diagonal_backward"
)
_BITS = {*_MOVES, *_names("place mul eq ne bitwise_and bitwise_or bitwise_xor")}
_REDUCTIONS = _names("sum sum_dim prod prod_dim nansum cumsum cumprod any all count_nonzero")
_SAME = _names("conj floor ceil round trunc nan_to_num")
_TESTS = _names("isnan isinf isfinite isposinf isneginf signbit")
_COMPLEX = _names(
    "neg abs sgn conj real imag isnan isinf isfinite add sub mul add_alpha sub_alpha rsub_number eq ne "
    "addcmul any all count_nonzero var std var_mean std_mean vector_norm nonzero tril triu index_put "
    "index_backward convolution conv_transpose conv_input_gradient conv_weight_gradient index_add index_copy "
    "index_fill embedding_backward masked_fill masked_select_backward constant_pad_nd sum_to place"
)
_PRODUCTS = _names(
    "mm einsum_mm matmul_nd matmul_turned addmm addbmm linear linear_unbiased linear_nd_unbiased"
)
_FLOATS = _names("isnan mul eq ne any all count_nonzero constant_pad_nd place")

_KERNELS = {
    name: kernel
    for kernel, names in {
        "add_stub": "add sub add_alpha sub_alpha rsub_number",
        "pow": "pow pow_scalar scalar_pow square",
        "sign_cpu": "sgn",
        "div_floor_cpu": "floor_divide",
        "clamp_min_scalar_cpu": "relu",
        "GeluKernelImpl": "gelu gelu_tanh",
        "smooth_l1_cpu": "smooth_absolute",
        "round_cpu": "round_decimals",
        "lshift_cpu": "bitwise_left_shift",
        "rshift_cpu": "bitwise_right_shift",
        "lerp_kernel_tensor": "lerp",
        "lerp_kernel_scalar": "lerp_scalar",
        "sum_cpu": "sum sum_dim mean mean_dim sum_to",
        "prod_out_cpu": "prod prod_dim",
        "max_all": "max",
        "min_all": "min",
        "max_values_cpu": "amax logsumexp",
        "min_values_cpu": "amin",
        "max_cpu": "max_dim",
        "min_cpu": "min_dim",
        "nonzero_count_cpu": "count_nonzero nonzero",
        "std_cpu": "var std var_mean std_mean",
        "median_cpu": "median nanmedian",
        "median_out": "median_dim nanmedian_dim",
        "softmax_lastdim_kernel_impl": "softmax",
        "log_softmax_lastdim_kernel_impl": "log_softmax",
        "sorting_kernel_method_name": "sort",
        "norm_cpu": "vector_norm",
        "searchsorted_out_cpu": "searchsorted",
        "slow_conv2d_cpu": "convolution",
        "slow_conv_transpose2d_out_cpu": "conv_transpose",
        "scatter_gather_tensor_cpu": "gather scatter scatter_add",
        "scatter_gather_scalar_cpu": "scatter_value",
        "index_add_": "index_add",
        "index_copy_cpu": "index_copy",
        "index_func_": "index_reduce",
        "take_put_cpu": "put",
        "addmm_impl_cpu_": "vecmat " + " ".join(_PRODUCTS),
        "addmv_impl_cpu": "mv addmv",
        "cross": "linalg_cross",
        "mse_cpu": "mse_loss",
        "LayerNormKernelImpl": "native_layer_norm",
        "GroupNormKernelImpl": "native_group_norm",
        "max_pool1d_impl": "max_pool1d",
        "avg_pool2d": "avg_pool1d",
        "adaptive_avg_pool2d": "adaptive_avg_pool1d",
        "adaptive_max_pool2d": "adaptive_max_pool1d",
        "compute_indices_weights_nearest": "upsample_nearest1d upsample_nearest2d upsample_nearest3d "
        "upsample_nearest_exact1d upsample_nearest_exact2d upsample_nearest_exact3d",
        "compute_indices_weights_linear": "upsample_linear1d upsample_bilinear2d upsample_trilinear3d",
        "compute_indices_weights_cubic": "upsample_bicubic2d",
        "check_uniform_bounds": "uniform",
        "normal_kernel_cpu": "normal normal_mean normal_std normal_mean_std",
        "random_update_from_to": "random random_to",
        "random_kernel_cpu": "random_full",
        "bernoulli_scalar_cpu_": "bernoulli_number bernoulli_like",
        "bernoulli_tensor_cpu_self_": "bernoulli_tensor bernoulli",
        "lu_cpu": "linalg_lu_factor linalg_solve linalg_det",
        "cholesky_cpu": "linalg_cholesky",
        "geqrf_cpu": "linalg_qr",
        "linalg_eig_out_cpu": "linalg_eig",
        "batch_norm": "batch_norm_train batch_norm_eval",
    }.items()
    for name in names.split()
}
for _ending, _ops in {
    "_vml_cpu": "sqrt exp expm1 log log2 log10 log1p sin cos tan asin acos atan tanh erf erfc erfinv floor "
    "ceil round trunc lgamma i0",
    "_out_cpu": "cumsum cumprod logcumsumexp im2col col2im",
    "_cpu_out": "addcmul addcdiv",
    "": "exp2 nan_to_num digamma isinf isfinite tril triu index_put masked_fill cdist index_select dot vdot "
    "masked_select masked_scatter bmm einsum_bmm baddbmm rms_norm randperm reflection_pad1d reflection_pad2d "
    "reflection_pad3d replication_pad1d replication_pad2d replication_pad3d max_pool2d max_pool3d avg_pool2d "
    "avg_pool3d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d",
}.items():
    _KERNELS.update({name: name + _ending for name in _names(_ops)})


# Of a tensor without dimensions these are what it is, for any dtype.
_PLACES = _names("argmax argmin nonzero count_nonzero searchsorted")  # whose results are counts or places
# Refused also if they are empty, as all that is computed element by element.
_NEVER = _names(
    "nonzero count_nonzero sort logcumsumexp dot vdot mean mean_dim median_dim nanmedian_dim aminmax addr "
    "logsumexp masked_fill masked_scatter bincount frexp geqrf ormqr linalg_qr linalg_eig fft_c2c fft_c2r "
    "linalg_householder_product matrix_exp"
)
_TRIVIAL = _names("cummax cummin cumsum cumprod kthvalue max_dim min_dim topk mode")
_SENTENCES = {
    **dict.fromkeys(("fft_c2c", "fft_c2r"), "MKL FFT doesn't support tensors of type: Half"),
    **dict.fromkeys(
        ("random", "random_to"),
        "check_random_bounds handles only integral, floating-point and boolean types",
    ),
}


def refuse(op, dtype, args):
    """Says in torch's words that there is no such operation for the dtype."""
    name = op.__name__
    given = [t for a in args for t in _tensors_in(a) if t.dtype == dtype]
    empty = given and all(t.numel() == 0 for t in given) and not op.is_elementwise and name not in _NEVER
    if empty or (given and name in _TRIVIAL and given[0].ndim == 0):
        wide = _C.float16 if name.startswith("linalg") and dtype in _FLOAT8 else _WIDE[dtype]
        result = _run_as(op, args, dtype, wide, _WIDE_CLASS[wide])
        if not isinstance(result, tuple):
            kept = name in _PLACES or result.dtype == _C.bool
            return result if kept else _cast(result, dtype)
        if name.startswith("linalg"):
            return tuple(_narrowed(t, wide, dtype) for t in result)
        return (_cast(result[0], dtype), *result[1:])  # the others are positions
    for like, text in _ALIKE["u" if dtype in _UNSIGNED else "c" if dtype == _C.complex32 else "f"]:
        if like == _C.float16 and dtype == _C.complex32 and not name.startswith("linalg"):
            continue
        try:
            _run_as(op, args, dtype, like, text)
        except (RuntimeError, TypeError, IndexError) as error:
            late = isinstance(error, _C._LinAlgError) or "is zero" in str(error)
            late |= str(error) == "ZeroDivisionError"
            kinds = (_CLASS[dtype], "complex", "floating point")
            if not late and (
                not isinstance(error, NotImplementedError) or any(kind in str(error) for kind in kinds)
            ):
                raise
    if dtype == _C.complex32 and name in _SENTENCES:
        raise RuntimeError(_SENTENCES[name])
    if name in ("var", "std") and dtype in _FLOAT8 and args[1] is None:
        raise RuntimeError(f"std_var_all: Unsupported dtype {_CLASS[dtype]}")
    raise NotImplementedError(f"\"{_kernel(name, dtype, args)}\" not implemented for '{_CLASS[dtype]}'")


def _kernel(name, dtype, args):
    """torch's name of the kernel that it has not got for the dtype."""
    kernel = _KERNELS.get(name, name + "_cpu")
    first = args[0]
    number_first = not isinstance(first, _C.Tensor)
    if dtype in _UNSIGNED:
        kernel = {"fmax": "maximum_cpu", "fmin": "minimum_cpu", "nansum": "sum_cpu"}.get(name, kernel)
    elif dtype in _FLOAT8:
        number = len(args) == 2 and any(not isinstance(a, _C.Tensor) or a.ndim == 0 for a in args)
        divided = number and not number_first and name in ("div", "floor_divide")
        if name == "mul" or divided or name == "sigmoid":
            kernel += "_reduced_float"
        if name in ("deg2rad", "rad2deg", "ndtr"):
            kernel = "mul_cpu_reduced_float"
    if name == "logsumexp" and (dtype == _C.complex32 or not first.numel()):
        kernel = "exp_vml_cpu"
    if number_first:
        return "reciprocal_cpu" if name == "div" else kernel
    if name == "scatter_reduce":
        included, plain = args[5], args[4] in ("sum", "prod")
        kernel = "scatter_gather_tensor_cpu" + ("" if plain else "_reduce_" + args[4])
        return kernel if included else "scatter_reduce_exclude_input_init"
    if name == "index_add" and first.ndim > 1:
        return "scatter_gather_tensor_cpu"
    if name in ("softmax", "log_softmax") and dtype in _FLOAT8 and first.ndim:
        return f"{name}_{'lastdim_' if args[1] % first.ndim == first.ndim - 1 else ''}kernel_impl"
    if name == "polygamma":
        return {0: "digamma", 1: "trigamma"}.get(args[1], "polygamma")
    if name == "vdot" and dtype != _C.complex32:
        return "dot"
    if name.startswith("matmul_nd"):
        dims = first.ndim, args[1].ndim
        return "bmm" if min(dims) > 2 else "addmv_impl_cpu" if dims[1] == 1 else kernel
    return kernel


def _run_as(op, args, dtype, like, text):
    """The primitive on arguments of the dtype `like`, called `text`, but complaining of those given."""
    try:
        given = [_each(a, lambda t: _cast(t, like) if t.dtype == dtype else t) for a in args]
        return _run(op, [like if a is dtype else a for a in given])
    except (RuntimeError, TypeError, IndexError) as error:
        raise _reworded(error, args, dtype, like, text) from None


def _reworded(error, args, dtype, like, text):
    """An error that names the dtype in place of the one that it was computed in."""
    said = str(error).split("\n")[0]
    if not any(t.dtype == like for a in args for t in _tensors_in(a)):
        said = said.replace(_C.dtype_cpp_name(like), _C.dtype_cpp_name(dtype))
    said = said.replace(text, _CLASS[dtype])
    return type(error)(said.replace(f"torch.{_CLASS[dtype]}Tensor", f"CPU{_CLASS[dtype]}Type"))


def _moves_rows(x, dims):
    """Whether whole rows keep their order when the elements of x are reversed along dims."""
    turned = {d % x.ndim for d in dims if x.shape[d] > 1} if x.ndim else set()
    rows = [d for d in range(x.ndim) if x.shape[d] > 1 and x.stride(d) == 1 and d not in turned]
    return not turned or not x.numel() or bool(rows)


def _run(op, args, out=None):
    return _C.run_forward(op, tuple(args), out)


def _cast(t, dtype):
    return t if t.dtype == dtype else _run(_C.ops.to_dtype, (t, dtype))


def _each(value, change):
    if isinstance(value, _C.Tensor):
        return change(value)
    if isinstance(value, (tuple, list)):
        return type(value)(_each(v, change) for v in value) if type(value) in (tuple, list) else value
    return value


def _number(value, dtype):
    return _C.full((), value, dtype, None)


def _finish(result, out, back):
    if out is None:
        return _each(result, back)
    _run(_C.ops.copy, (out, back(result)), out)
    return out


def moved(op, args, dtype, out):
    """The primitive on the same memory, as elements of a dtype of the same size."""
    label = _SAME_SIZE[dtype]
    given = [_each(a, lambda t: _C.relabel(_resolved(t), label) if t.dtype == dtype else t) for a in args]
    if out is not None:
        _run(op, given, given[0])
        return out
    return _each(_run(op, given), lambda t: _C.relabel(t, dtype) if t.dtype == label else t)


def _resolved(t):
    return _run(_C.ops.clone, (t,)) if _C.is_conj(t) or _C.is_neg(t) else t


def _narrowed(t, wide, dtype):
    """A result computed in the dtype `wide` in place of a rare one."""
    if t.dtype == wide:
        return _cast(t, dtype)
    return _cast(t, _C.float16) if dtype == _C.complex32 and t.dtype == _C.float32 else t


def widened(op, args, dtype, out):
    """The primitive in a dtype that has loops; results of that dtype are rounded to the one asked for."""
    wide = _WIDE[dtype]

    def back(t):
        return _narrowed(t, wide, dtype)

    given = [_each(a, lambda t: _cast(t, wide) if t.dtype == dtype else t) for a in args]
    fresh = None
    if out is not None:
        given[0] = fresh = given[0] if out.dtype == dtype else _run(_C.ops.clone, (given[0],))
    try:
        result = _run(op, given, fresh)
    except RuntimeError as error:
        raise _reworded(error, args, dtype, wide, _WIDE_CLASS[wide]) from None
    return _finish(result, out, back)


def _sorted(op, args, dtype):
    values, indices = _run(op, (ordered(args[0]), *args[1:]))
    return unordered(values, dtype), indices


def ordered(x):
    """Unsigned integers as int64, in the same order: those of uint64 with the highest bit turned over."""
    wide = _cast(x, _C.int64)
    return _run(_C.ops.bitwise_xor, (wide, -(2**63))) if x.dtype == _C.uint64 else wide


def unordered(x, dtype):
    """Back from ``ordered``."""
    return _cast(_run(_C.ops.bitwise_xor, (x, -(2**63))) if dtype == _C.uint64 else x, dtype)


def _unsigned(op, name, args, dtype, out):
    if name in _BITS or (name == "index_select" and args[0].ndim > 1):
        return moved(op, args, dtype, out)
    if name in _SAME:
        return out if out is not None else _run(_C.ops.clone, (args[0],))
    if name in _TESTS:
        return _run(_C.ops.eq if name == "isfinite" else _C.ops.ne, (args[0], args[0]))
    if name == "sort":
        return _sorted(op, args, dtype)
    if name == "constant_pad_nd":
        return widened(op, args, dtype, out)
    if name == "logsumexp":
        return _run(op, (_cast(args[0], _C.get_default_dtype()), *args[1:]))
    if name in ("random", "random_to"):
        _check_bounds(dtype, *(args[1:3] if name == "random" else (0, args[1])))
        return _finish(_run(op, (_cast(args[0], _C.int64), *args[1:])), out, lambda t: _cast(t, dtype))
    if name == "count_nonzero" and args[1] in (None, ()):
        refuse(op, dtype, args)
    if name in _REDUCTIONS:  # in int64, and so is the result
        return _run(op, (_cast(args[0], _C.int64), *args[1:]))
    return refuse(op, dtype, args)


def _check_bounds(dtype, low, high):
    limit = {_C.uint16: 2**16, _C.uint32: 2**32}.get(dtype, 2**64)
    for name, bound in (("from", low), ("to - 1", high - 1 if high is not None else limit - 1)):
        if not 0 <= bound < limit:
            raise RuntimeError(f"{name} is out of bounds for {_C.dtype_cpp_name(dtype)}")


def _complex_random(op, name, args, out):
    parts = _run(_C.ops.view_as_real, (out if out is not None else _run(_C.ops.clone, (args[0],)),))
    a, b = args[1:3]
    _run(op, (parts, a, b if name == "uniform" else b / 2**0.5, args[3]), parts)
    return out if out is not None else _run(_C.ops.view_as_complex, (parts,))


def _complex(op, name, args, dtype, out):
    if name in ("uniform", "normal"):
        return _complex_random(op, name, args, out)
    if name in _MOVES or name in ("index_select", "masked_select"):
        return moved(op, args, dtype, out)
    if name == "addcmul":  # torch rounds after every step
        a, b, c, scale = args
        product = forward(_C.ops.mul, (forward(_C.ops.mul, (b, scale), None), c), None)
        return forward(_C.ops.add, (a, product), out)
    if name in _COMPLEX:
        return widened(op, args, dtype, out)
    return refuse(op, dtype, args)


def _float8(op, name, args, dtype, out):
    scale = dtype == _C.float8_e8m0fnu
    if name == "index_put" and not isinstance(args[2], _C.Tensor):
        args = [args[0], args[1], _number(args[2], dtype), args[3]]
    if name == "count_nonzero" and scale and args[1] not in (None, ()):  # 0 is the smallest number there is
        return _run(op, (_run(_C.ops.ne, (_C.relabel(args[0], _C.uint8), 0)), *args[1:]))
    accumulates = name == "index_put" and args[3]
    if (
        name in _MOVES
        or name in ("index_select", "masked_select")
        or (name == "index_put" and not (accumulates or scale))
    ):
        return moved(op, args, dtype, out)
    if name == "mul" and not all(isinstance(a, _C.Tensor) and a.ndim for a in args):
        refuse(op, dtype, args)
    if name == "conj":
        return out if out is not None else _run(_C.ops.clone, (args[0],))
    if name == "count_nonzero" and args[1] in (None, ()):
        refuse(op, dtype, args)
    if name.startswith("matmul_nd") and min(args[0].ndim, args[1].ndim) > 2:
        refuse(op, dtype, args)
    if name in _PRODUCTS and len(set(_dtypes_in(args))) > 1:
        from rushlight.ops._public import type_name

        first, *_, m1, m2 = (kinds := list(_dtypes_in(args)))[:1] + kinds
        added = name in ("addmm", "addbmm", "linear")
        if m1 == m2 or (added and first != m2):  # the bias is another's
            names = f"{type_name(first)} and {type_name(m2)}"
            raise RuntimeError(f"self and mat2 must have the same dtype, but got {names}")
        if added:
            names = f"{type_name(m1)} and {type_name(m2)}"
            raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {names}")
        left, right = map(_C.dtype_cpp_name, (m1, m2))
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {left} != {right}")
    if name in ("addmm", "addbmm"):  # beta and alpha are numbers of the dtype
        args = [*args[:3], *(_C.item(_number(a, dtype)) for a in args[3:])]
    allowed = name in _FLOATS or (not scale and (name == "abs" or accumulates or name in _PRODUCTS))
    allowed |= name == "isinf" and dtype == _C.float8_e5m2
    allowed |= name == "isfinite" and dtype in (_C.float8_e5m2, _C.float8_e8m0fnu)
    if allowed:
        return widened(op, args, dtype, out)
    return refuse(op, dtype, args)


def _tensors_in(value):
    if isinstance(value, _C.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for v in value:
            yield from _tensors_in(v)


def _dtypes_in(value):
    return (t.dtype for t in _tensors_in(value))


def _are_rare(args):
    return [isinstance(a, _C.Tensor) and a.dtype in _WIDE for a in args]


def forward(op, args, out):
    """What the primitive gives for arguments of which one has a rare dtype (or is one)."""
    name = op.__name__
    wanted = args[op.args.index("dtype")] if "dtype" in op.args else None
    if wanted in _WIDE:
        return refuse(op, wanted, args)
    index = args[op.args.index("index")] if "index" in op.args else None
    if isinstance(index, _C.Tensor) and index.dtype in _WIDE:  # refused as other indices that are none
        like, text = (_C.int16, "Short") if index.dtype in _UNSIGNED else (_C.float16, "Half")
        _run_as(op, args, index.dtype, like, text)
    if wanted is not None:  # torch converts the elements first
        return _run(op, [_each(a, lambda t: _cast(t, wanted)) for a in args], out)
    if name == "index_put" and isinstance(args[2], _C.Tensor) and args[2].dtype != args[0].dtype:
        from rushlight.ops._public import type_name

        names = type_name(args[0].dtype), type_name(args[2].dtype)
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{names[0]} for the destination and {names[1]} for the source."
        )
    if name in ("masked_fill", "index_fill") and _are_rare(args[:3]) == [False, False, True]:
        # A number, as torch takes it, is cast if it fits; more than one is refused.
        value = _cast(args[2], args[0].dtype) if args[2].ndim else _C.item(args[2])
        return _run(op, (*args[:2], value, *args[3:]), out)
    if name == "flip" and not _moves_rows(*args):
        return refuse(op, args[0].dtype, args)
    if op.is_elementwise or name in ("cat", "stack", "block_diag"):
        dtype = _common(op, args)
        args = [_each(a, lambda t: _cast(t, dtype)) for a in args]
        if dtype not in _WIDE:
            return _run(op, args, out)
        if dtype == _C.complex32 or (dtype not in _UNSIGNED and name != "mul"):  # numbers are rounded too
            numbers = range(op.input_count) if op.is_elementwise else ()
            args = [
                _number(a, dtype) if i in numbers and not isinstance(a, _C.Tensor) else a
                for i, a in enumerate(args)
            ]
    else:
        dtype = next(d for d in _dtypes_in(args) if d in _WIDE)
    if out is not None and out.dtype != dtype:
        return _finish(forward(op, [args[0], *args[1:]], None), out, lambda t: t)
    handle = _unsigned if dtype in _UNSIGNED else _complex if dtype == _C.complex32 else _float8
    return handle(op, name, args, dtype, out)


def _common(op, args):
    """The dtype that the operands are promoted to."""
    from rushlight import promote_types, result_type

    if op.list_inputs:
        dtypes = list(_dtypes_in(args))
        common = dtypes[0]
        for dtype in dtypes[1:]:
            common = promote_types(common, dtype)
        return common
    # A complex exponent or bound counts too, though it is no input: float16 becomes complex32 by it.
    operands = [
        a for i, a in enumerate(args) if a is not None and (i < op.input_count or isinstance(a, complex))
    ]
    dims = [a for a in operands if isinstance(a, _C.Tensor) and a.ndim]
    rest = [a for a in operands if not (isinstance(a, _C.Tensor) and a.ndim)]
    common = None
    for a in dims:
        common = a.dtype if common is None else promote_types(common, a.dtype)
    if common is None:
        return result_type(*rest) if len(rest) == 2 else next(_dtypes_in(rest))
    like = dims[0] if dims[0].dtype == common else _cast(dims[0], common)
    for a in rest:
        found = result_type(like, a)
        if found != common:
            common, like = found, _cast(like, found)
    return common
