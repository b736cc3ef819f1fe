"""torch._refs, where torch has its operations once more in Python: here every name is the operation itself.

`_refs.abs` is `torch.abs`, `_refs.nn.functional.relu` is `torch.nn.functional.relu`, and
`_refs._conversions.int` is `Tensor.int`. A random filling, which torch has in place only, fills a copy; what
torch's take for `out=` and the operations do not (`_WRITTEN`) is written after the operation.
"""

from __future__ import annotations

import functools
import operator
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import rushlight
from rushlight import _C
from rushlight.ops._public import wrap_dim, write_out

_PARTS = ("fft", "linalg", "nn", "nn.functional", "special", "_conversions")
# What `import *` takes from each module in torch: tools go through these lists.
_ALL = {
    "": """T abs abs_ acos acos_ acosh acosh_ add add_ addcdiv addcdiv_ addcmul addcmul_ addr
        alias_copy all allclose amax amin any arange as_strided as_strided_copy
        as_strided_scatter asin asin_ asinh asinh_ atan atan2 atan2_ atan_ atanh atanh_
        atleast_1d atleast_2d atleast_3d bitwise_and bitwise_and_ bitwise_left_shift
        bitwise_left_shift_ bitwise_not bitwise_not_ bitwise_or bitwise_or_
        bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ block_diag
        broadcast_shapes broadcast_tensors broadcast_to bucketize cat cauchy cauchy_ ceil
        ceil_ chunk clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clone
        column_stack conj conj_physical conj_physical_ constant_pad_nd contiguous copysign
        copysign_ cos cos_ cosh cosh_ count_nonzero cumprod cumprod_ cumsum cumsum_ deg2rad
        deg2rad_ diag diag_embed diagonal diagonal_copy diagonal_scatter digamma digamma_
        div div_ dot dsplit dstack empty empty_like empty_permuted empty_strided eq eq_
        equal erf erf_ erfc erfc_ erfinv erfinv_ exp exp2 exp2_ exp_ expand expand_as
        expand_copy expm1 expm1_ exponential exponential_ eye fill fill_ flatten flip fliplr
        flipud float_power float_power_ floor floor_ floor_divide floor_divide_ fmax fmin
        fmod fmod_ frac frac_ full full_like gcd gcd_ ge ge_ geometric geometric_ gt gt_
        heaviside heaviside_ hsplit hstack hypot hypot_ i0 i0_ igamma igamma_ igammac
        igammac_ imag index_add index_copy index_copy_ index_fill index_fill_ index_select
        is_complex isclose isfinite isinf isnan isneginf isposinf isreal istft item lcm lcm_
        le le_ lerp lerp_ lgamma lgamma_ linspace log log10 log10_ log1p log1p_ log2 log2_
        log_ log_normal log_normal_ log_softmax logaddexp logaddexp2 logical_and
        logical_and_ logical_not logical_not_ logical_or logical_or_ logical_xor
        logical_xor_ logspace logsumexp lt lt_ masked_fill masked_fill_ maximum mean
        meshgrid minimum movedim mul mul_ mvlgamma mvlgamma_ nan_to_num nan_to_num_ narrow
        narrow_copy native_group_norm native_layer_norm ne ne_ neg neg_ new_empty
        new_empty_strided new_full new_ones new_zeros nextafter nextafter_ norm normal ones
        ones_like permute permute_copy positive pow pow_ prod rad2deg rad2deg_ randn ravel
        real reciprocal reciprocal_ remainder remainder_ renorm repeat reshape reshape_as
        roll rot90 round rsqrt rsqrt_ rsub scalar_tensor sgn sgn_ sigmoid sigmoid_ sign
        sign_ signbit sin sin_ sinc sinc_ sinh sinh_ softmax split_with_sizes sqrt sqrt_
        square square_ squeeze squeeze_copy stack std std_mean stft sub sub_ sum sum_to_size
        t t_copy take_along_dim tan tan_ tanh tanh_ tensor_split to trace transpose
        transpose_copy tril tril_ tril_indices triu triu_ triu_indices true_divide
        true_divide_ trunc trunc_ unbind unbind_copy unflatten unfold unfold_copy unsqueeze
        unsqueeze_copy var var_mean vdot view view_as view_as_complex view_copy vsplit
        vstack where xlogy xlogy_ zero zero_ zeros zeros_like""",
    "special": """bessel_j0 bessel_j1 entr erfcx expit i0e i1 i1e log_ndtr log_softmax logit
        multigammaln ndtr ndtri softmax spherical_bessel_j0 xlog1py zeta""",
    "nn.functional": """alpha_dropout celu celu_ channel_shuffle dropout elu elu_ gelu glu group_norm
        hardshrink hardtanh hinge_embedding_loss huber_loss l1_loss layer_norm leaky_relu
        log_softmax margin_ranking_loss mish mse_loss nll_loss pairwise_distance pdist
        poisson_nll_loss prelu relu relu6 selu selu_ smooth_l1_loss softmax softmin softplus
        softshrink tanhshrink threshold threshold_ triplet_margin_loss""",
    "fft": """fft fft2 fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2
        ihfftn irfft irfft2 irfftn rfft rfft2 rfftn""",
    "_conversions": """bfloat16 bool byte cdouble cfloat chalf char complex double float half int long
        polar short""",
    "linalg": """cross diagonal matrix_norm norm svd svdvals vecdot vector_norm""",
}

_WRITTEN = {
    "": "amax amin bitwise_not conj_physical fill isfinite isinf isnan isreal nan_to_num neg round",
    "nn.functional": "celu elu hardshrink hardtanh mish relu relu6 selu softplus softshrink threshold",
}


def _into(function: Any, *args: Any, out: Any = None, **kwargs: Any) -> Any:
    """The operation with an `out=` of any dtype that its result can be cast to."""
    result = function(*args, **kwargs)
    if out is None:
        return result
    if not isinstance(out, _C.Tensor):
        raise AssertionError(f"out must be TensorLike, got {type(out)}")
    if not rushlight.can_cast(result.dtype, out.dtype):
        raise RuntimeError(
            f"Attempting to cast from {result.dtype} to out tensor with dtype {out.dtype}, but this can't be "
            "cast because it is not safe!"
        )
    return write_out(out, result)


def _filled_copy(name: str, self: _C.Tensor, *args: Any, **kwargs: Any) -> _C.Tensor:
    return getattr(self.clone(), name)(*args, **kwargs)


def prod(a: _C.Tensor, dim: Any = None, keepdim: bool = False, *, dtype: _C.dtype | None = None) -> _C.Tensor:
    """The product over any dimensions; `torch.prod` takes one."""
    count = a.ndim or 1
    given = range(a.ndim) if dim is None or dim in ((), []) else (dim,) if isinstance(dim, int) else dim
    over = [wrap_dim(d, a.ndim) for d in given]
    if len(set(over)) < len(over):
        raise RuntimeError("duplicate value in the list of dims")
    if not over:
        return rushlight.prod(a, dtype=dtype)
    for d in over:
        a = rushlight.prod(a, d, keepdim=True, dtype=dtype)
    return a if keepdim or count > a.ndim else a.squeeze(over)


def heaviside(input: _C.Tensor, values: _C.Tensor, *, out: Any = None) -> _C.Tensor:
    """The step function, of what its arguments are promoted to; `torch.heaviside` takes one dtype."""
    dtype = rushlight.result_type(input, values)
    return _into(rushlight.heaviside, input.to(dtype), values.to(dtype), out=out)


def T(a: _C.Tensor) -> _C.Tensor:
    """The transpose of a matrix."""
    if a.ndim not in (0, 2):
        raise RuntimeError(
            "The use of `x.T` on tensors of dimension other than 0 or 2 to reverse their shape is not "
            "supported."
        )
    return a.T


def _tanhshrink(a: _C.Tensor) -> _C.Tensor:
    """Rounded once, where `torch.nn.functional.tanhshrink` rounds the tangent too."""
    wide = a.float() if a.dtype in (_C.float16, _C.bfloat16) else a
    return rushlight.nn.functional.tanhshrink(wide).to(a.dtype)


def _find(part: str, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    places: tuple[Any, ...] = (
        rushlight,
        _C.Tensor,
        rushlight.nn.functional,
        rushlight.special,
        rushlight.linalg,
    )
    if part == "_conversions":
        places = (rushlight,) if name in ("complex", "polar") else (_C.Tensor,)
    elif (part, name) == ("nn.functional", "tanhshrink"):
        return _tanhshrink
    elif part:
        places = (functools.reduce(getattr, part.split("."), rushlight),)
    for place in places:
        found = getattr(place, name, None)
        if callable(found):
            return functools.partial(_into, found) if name in _WRITTEN.get(part, "").split() else found
    if not part and name in ("H", "mT", "mH"):
        return operator.attrgetter(name)
    if not part and hasattr(_C.Tensor, f"{name}_"):
        return functools.partial(_filled_copy, f"{name}_")
    shown = f"torch._refs.{part}".rstrip(".")
    raise AttributeError(f"module '{shown}' has no attribute '{name}'", name=name, obj=sys.modules[__name__])


__all__ = _ALL[""].split()


def __getattr__(name: str) -> Any:
    return _find("", name)


for _part in _PARTS:
    _module = ModuleType(f"{__name__}.{_part}")
    _module.__spec__ = ModuleSpec(_module.__name__, None, is_package=True)
    vars(_module)["__getattr__"] = functools.partial(_find, _part)
    vars(_module)["__all__"] = _ALL.get(_part, "").split()
    sys.modules[_module.__name__] = _module
    _owner, _, _last = _part.rpartition(".")
    setattr(sys.modules[f"{__name__}.{_owner}" if _owner else __name__], _last, _module)
