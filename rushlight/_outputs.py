"""What torch asks of `out=` before anything is computed: that no gradient is wanted of the call, and that
what is written element by element shares no part of its memory with itself or with what is read.

`check` is called by native/python/functions.cpp for every call with an `out`; write_out (ops/_public.py) asks
the rest once there is a result.
"""

from __future__ import annotations

from rushlight import _C
from rushlight._annotations import Any

INTERNAL = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory "
    "location. Please clone() the tensor before performing the operation."
)
OVERLAP = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
    "memory location. Please clone() the tensor before performing the operation."
)


def _names(text: str) -> frozenset:
    return frozenset(text.split())


# Written element by element, as those of all inputs are read.
ELEMENTWISE = _names("""
    abs absolute acos acosh add addcdiv addcmul angle arccos arccosh arcsin arcsinh arctan arctan2
    arctanh asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min clip conj_physical copysign cos
    cosh deg2rad digamma div divide eq erf erfc erfinv exp exp2 expm1 fix floor floor_divide fmax
    fmin fmod frac gcd ge greater greater_equal gt heaviside hypot i0 igamma igammac lcm le
    lerp less less_equal lgamma log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not
    logical_or logical_xor logit lt maximum minimum mul multiply nan_to_num ne neg negative
    nextafter not_equal polygamma pow rad2deg reciprocal remainder round rsqrt sgn sigmoid sign sin
    sinc sinh special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0
    special_bessel_y1 special_digamma special_entr special_erf special_erfc special_erfcx
    special_erfinv special_exp2 special_expit special_expm1 special_gammainc special_gammaincc
    special_gammaln special_i0 special_i0e special_i1 special_i1e special_log1p special_log_ndtr
    special_logit special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0
    special_modified_bessel_k1 special_ndtri special_polygamma special_psi special_round
    special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_sinc
    special_spherical_bessel_j0 special_xlog1py special_xlogy special_zeta sqrt square sub subtract
    tan tanh true_divide trunc where xlogy
    nn.gelu nn.hardshrink hardshrink nn.softplus nn.softshrink
""") | {
    f"special_{family}_polynomial_{kind}"
    for families, kinds in (
        ("chebyshev shifted_chebyshev", "tuvw"), ("hermite", ("h", "he")), ("laguerre", "l"),
        ("legendre", "p"),
    )
    for family in families.split()
    for kind in kinds
}  # fmt: skip
# The inputs whose elements are read as those of `out` are written, for the functions that write element by
# element. Of some it is the first alone, as torch has computed something of the others; of some none, as they
# read anywhere.
_ALONG = {
    **dict.fromkeys(ELEMENTWISE, slice(None)),
    **dict.fromkeys(_names("ldexp nn.normalize"), slice(1)),
    **dict.fromkeys(
        _names("ger index_select masked_select scatter scatter_add scatter_reduce take"), slice(0)
    ),
}
# Who complains of a gradient that is wanted, where it is not the function itself.
_COMPLAINS = {
    "absolute": "abs", "negative": "neg", "square": "pow", "arcsin": "asin",
    "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "fix": "trunc", "subtract": "sub", "diff": "sub", "multiply": "mul", "outer": "mul", "ger": "mul",
    "kron": "mul", "divide": "div", "true_divide": "div", "arctan2": "atan2", "clip": "clamp",
    "nanmean": "nansum", "norm": "linalg_vector_norm", "concat": "cat", "concatenate": "cat", "hstack": "cat",
    "vstack": "cat", "row_stack": "cat", "dstack": "cat", "column_stack": "cat", "take_along_dim": "gather",
    "msort": "sort", "cross": "linalg_cross", "frobenius_norm": "norm",
    "linalg_cholesky": "linalg_cholesky_ex", "linalg_inv": "linalg_inv_ex", "inverse": "linalg_inv_ex",
    "linalg_det": "_linalg_det", "linalg_slogdet": "_linalg_slogdet", "slogdet": "_linalg_slogdet",
    "linalg_solve": "_linalg_solve_ex", "linalg_solve_ex": "_linalg_solve_ex", "qr": "linalg_qr",
    "linalg_lu_factor": "linalg_lu_factor_ex", "lu_solve": "linalg_lu_solve", "linalg_eigh": "_linalg_eigh",
    "linalg_eigvalsh": "_linalg_eigh", "linalg_svd": "_linalg_svd", "linalg_svdvals": "_linalg_svd",
    **{f"nn.{name}": name for name in ("avg_pool2d", "avg_pool3d", "gelu", "linear", "softplus")},
    "nn.softshrink": "softshrink", "nn.hardshrink": "hardshrink", "nn.normalize": "div",
    "nn.logsigmoid": "log_sigmoid_forward",
    "linalg_matmul": "matmul", "svd": "_linalg_svd", "orgqr": "linalg_householder_product",
    "special_round": "round",
}  # fmt: skip
# What torch computes by means of others and copies, which is recorded; what complains of a leaf is the copy.
COMPOSED = _names("""
    inner linalg_cond linalg_matrix_norm linalg_matrix_power linalg_matrix_rank linalg_norm
    linalg_tensorinv linalg_tensorsolve nanquantile quantile special_ndtr tensordot
""")
# What torch has no derivative of with an `out`: the result has a node that refuses to be asked for one.
_UNDERIVED = _names("""
    alias_copy as_strided_copy bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor conj_physical detach_copy diag diagonal_copy expand_copy
    fft_fftfreq fft_rfftfreq floor_divide gcd heaviside histogram lcm linalg_eigvals linalg_ldl_factor
    linalg_ldl_factor_ex linalg_ldl_solve log_softmax permute_copy select_copy slice_copy
    slice_scatter softmax squeeze_copy t_copy transpose_copy unfold_copy unsqueeze_copy
    view_as_complex_copy view_as_real_copy view_copy
""")
RECORDED = COMPOSED | _names("""
    argmax argmin matrix_power split_copy split_with_sizes_copy unbind_copy
""")
_LATER = _names("float_power linalg_multi_dot linalg_vecdot")  # whose complaint comes from within
# Factories, which complain of `out` alone, after its dtype, and of a leaf only (`fill_made`).
_MADE = _names("arange empty eye full linspace logspace ones rand randint randn randperm range zeros")
# Who complains, given the tensors of the call.
_BY_ARGUMENTS = {
    "max": lambda tensors: "maximum" if len(tensors) > 1 else "max",
    "min": lambda tensors: "minimum" if len(tensors) > 1 else "min",
    "normal": lambda tensors: "normal" if tensors else "",
    "matmul": lambda tensors: "matmul" if all(t.dim() for t in tensors) else "",
}
_WITHOUT_DERIVATIVE = _names("""
    all any argsort bucketize eq ge greater greater_equal gt hash_tensor histc isin isneginf
    isposinf le less less_equal logical_and logical_not logical_or logical_xor lt multinomial ne nonzero
    nonzero_static not_equal searchsorted signbit special_airy_ai special_bessel_j0
    special_bessel_j1 special_bessel_y0 special_bessel_y1 special_modified_bessel_i0
    special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1
    special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_spherical_bessel_j0
""")
# What forward mode does about `out=`. Carried along: torch copies what others computed into it.
CARRIED = COMPOSED | _names("diff lu matrix_power")
_NOT_EVEN_KNOWN = _names("""
    arange linspace logspace ones zeros full eye
""")  # to torch's derivatives
_RESIZED = _names("empty rand randn")
_LACKS = {
    "diag": "aten::diag_embed", "norm": "", "linalg_ldl_factor": "aten::linalg_ldl_factor_ex",
    "nn.normalize": "div_out", "argmax": "argmax_out", "argmin": "argmin_out",
    **{name: f"{name}_out" for name in ("unbind_copy", "split_copy", "split_with_sizes_copy")},
}  # fmt: skip
_entries: dict[Any, tuple[str, str, slice | None, str, int]] = {}


def _is_constant(name: str) -> bool:
    """Whether results never have a tangent: only that of `out` is in the way."""
    kinds = ("bessel_", "polynomial_")
    return name.startswith("special_airy_") or (
        name.startswith("special_") and any(kind in name for kind in kinds)
    )


def _entry(function: Any) -> tuple[str, str, slice | None, str, int]:
    """Who complains of a gradient (nobody: ""), who does when it is asked for (nobody: ""), which inputs
    the function reads as it writes, element by element (None: it writes as a whole), who complains of a
    tangent, and how many results there are (one: 0).
    """
    from rushlight import _signatures, return_types

    key, name = _signatures._name_of(function)
    code = getattr(function.__wrapped__, "__code__", None)
    if code is not None and "out" not in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        return "", "", None, "", 0
    apart = (
        key in RECORDED | _UNDERIVED | _WITHOUT_DERIVATIVE | _LATER | _MADE
        or key.startswith("fft_")
        or _is_constant(key)
    )
    unknown = not key or (key.startswith("nn.") and key not in _COMPLAINS)
    complains = "" if apart or unknown else _COMPLAINS.get(key, name)
    several = getattr(return_types, key, None)
    count = 3 if key == "native_batch_norm" else 0 if several is None else several.n_fields
    underived = name if key in _UNDERIVED or (key not in _WITHOUT_DERIVATIVE and _is_constant(key)) else ""
    return complains, underived, _ALONG.get(key), _lacks_tangents(key, name, complains), count


def _lacks_tangents(key: str, name: str, complains: str) -> str:
    if key in _LACKS:
        return _LACKS[key]
    if not key or key in CARRIED or key in _LATER or key.startswith(("fft_", ".")):
        return ""
    if key in RECORDED or key in _UNDERIVED or key in _NOT_EVEN_KNOWN:
        return f"aten::{name}"
    known = complains or key in _WITHOUT_DERIVATIVE or _is_constant(key) or key in ("bernoulli", "normal")
    return f"{complains or name}_out" if known else ""


def _refuse_tangents(lacks: str, function: Any, inputs: list, tensors: list) -> None:
    if _is_constant(lacks):
        tensors = tensors[len(inputs) :]
    if not any(_C.tangent(t) is not None for t in tensors):
        return
    if function.__name__ in _RESIZED:
        raise RuntimeError("cannot resize variables that has a forward grad")
    if function.__name__ == "normal" and not inputs:
        lacks = "aten::normal"
    if function.__name__ == "matmul":
        lacks = f"{_product(*(t.dim() for t in inputs))}_out"
    if function.__name__ in ("max", "min") and len(inputs) > 1:
        lacks = f"{function.__name__}imum_out"
    if lacks:
        _refuse(lacks)


def _product(first: int, second: int) -> str:
    """What torch multiplies tensors of so many dimensions by."""
    if second == 1:
        return "dot" if first == 1 else "mv"
    return "mm" if second == 2 else "bmm"


def refuse_written_tangent(writer: str) -> None:
    """What `check` does not know of before there is a result."""
    if writer in CARRIED:
        return
    lacks = {"vector_norm": "linalg_vector_norm_out", "conj_physical": "aten::conj_physical"}
    _refuse(lacks.get(writer, f"{writer}_out"))


def _refuse(lacks: str) -> None:
    reason = "." if lacks.startswith("aten::") else " because it is an out= function"
    raise NotImplementedError(f"Trying to use forward AD with {lacks} that does not support it{reason}")


def check(function: Any, args: tuple, kwargs: dict) -> Any:
    """Raises what torch does about the `out` of a call before anything else. What is returned, unless it is
    None, is the result of the call, which was made already: the history of it is not that of its steps."""
    out = kwargs.get("out")
    entry = _entries.get(function)
    if entry is None:
        entry = _entries[function] = _entry(function)
    complains, underived, along, lacks, count = entry
    if count and isinstance(out, (tuple, list)) and len(out) != count:
        raise TypeError(f"expected tuple of {count} elements but got {len(out)}")
    forward = _C.carries_tangents()
    if out is None or not (complains or underived or along is not None or forward):
        return None
    inputs = [value for name, value in kwargs.items() if name != "out"]
    inputs = [each for value in (*args, *inputs) for each in _elements(value) if isinstance(each, _C.Tensor)]
    tensors = inputs + [each for each in _elements(out) if isinstance(each, _C.Tensor)]
    if complains in _BY_ARGUMENTS:
        complains = _BY_ARGUMENTS[complains](inputs)
    if (complains or underived) and _C.is_grad_enabled() and any(t.requires_grad for t in tensors):
        if complains:
            raise _no_gradient(complains)
        if not forward:
            return _call_underived(underived, function, args, kwargs, inputs, tensors[len(inputs) :])
    if forward:
        _refuse_tangents(lacks, function, inputs, tensors)
    if along is None or not isinstance(out, _C.Tensor) or out.is_meta:
        return None
    if function.__name__ in ("clamp", "clip") and len(args) + len(kwargs) == 2:
        return None  # without bounds, which is told first
    inputs = [t for t in inputs[along] if not t.is_meta]
    check_apart_elements(out, inputs)
    if any(t is out for t in inputs):
        shape, broadcast = tuple(out.shape), _broadcast([tuple(t.shape) for t in inputs])
        if broadcast is not None and shape != broadcast:
            raise RuntimeError(
                f"output with shape {list(shape)} doesn't match the broadcast shape {list(broadcast)}"
            )
    return None


def _no_gradient(name: str) -> RuntimeError:
    return RuntimeError(
        f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
        "arguments requires grad."
    )


def _call_underived(name: str, function: Any, args: tuple, kwargs: dict, inputs: list, outputs: list) -> Any:
    """The call of a function that torch has no derivative of where there is an `out`."""
    from rushlight.autograd.grad_mode import no_grad

    if _is_constant(name):  # its results are constants
        if any(out.requires_grad for out in outputs):
            raise _no_gradient(name)
        with no_grad():
            return function(*args, **kwargs)
    if name == "diag":
        name = "diag_embed" if inputs and inputs[0].dim() == 1 else "diagonal_copy"
    name = {"linalg_ldl_factor": "linalg_ldl_factor_ex"}.get(name, name)
    _check_rewritten(name, outputs)
    with no_grad():
        result = function(*args, **kwargs)
    for out in outputs:
        _rewrite_history(name, out, inputs)
    return result


def _check_rewritten(name: str, outputs: list) -> None:
    """Refuses to give leaves, and views that cannot be written, the history of the operation `name`."""
    for out in outputs:
        if out.requires_grad:
            try:
                _C.check_inplace(out)
            except RuntimeError:
                raise _no_gradient(f"aten::{name}") from None


def _rewrite_history(name: str, out: Any, inputs: list) -> None:
    """Makes `out`, which was written, the result of the operation `name`, which has no derivative."""
    from rushlight._versions import uncounted
    from rushlight.autograd.function import without_derivative

    if not (out.is_floating_point() or out.is_complex()):
        return
    with uncounted(out):  # one write, not two
        sources = [t for t in (*inputs, out) if t.requires_grad]
        _C.become(out, without_derivative(name, _C.detach(out), *sources))


def fill_made(name: str, out: Any, write: Any) -> Any:
    """write(), which puts what the factory `name` makes into `out`. Torch knows no derivative of that: it
    refuses a leaf, and anything else has no gradient any more."""
    if out.requires_grad and name in ("empty", "randn") and not _C.is_inference_mode_enabled():
        raise RuntimeError("cannot resize variables that require grad")
    if not out.requires_grad:
        return write()
    if not _C.is_grad_enabled() or _C.is_inference_mode_enabled():
        leaf = out.is_leaf  # which cannot be asked of every view once it was written
        write()
        # What a factory makes requires grad only if that is asked of it.
        return _C.requires_grad_(out, False) if leaf else out
    _check_rewritten(name, [out])
    from rushlight.autograd.grad_mode import no_grad

    with no_grad():
        write()
    _rewrite_history(name, out, [])
    return out


def _elements(value: Any) -> Any:
    return value if type(value) in (tuple, list) else (value,)


def _broadcast(shapes: list) -> tuple | None:
    """The shape that tensors of these shapes broadcast to, None if they do not."""
    sizes: list = []
    for shape in shapes:
        sizes = [1] * (len(shape) - len(sizes)) + sizes
        for d in range(-len(shape), 0):
            if shape[d] != 1 and sizes[d] not in (1, shape[d]):
                return None
            sizes[d] = shape[d] if sizes[d] == 1 else sizes[d]
    return tuple(sizes)


def check_apart_elements(out: Any, inputs: Any) -> None:
    """Refuses an `out` that shares elements with itself, or some but not all with one of the inputs."""
    if out.numel() > 1 and any(size > 1 and not step for size, step in zip(out.shape, out.stride())):
        raise RuntimeError(INTERNAL)
    if any(t is not out and _C.overlap(t, out) == "partial" for t in inputs):
        raise RuntimeError(OVERLAP)
