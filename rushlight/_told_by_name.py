"""How a call arrives at who overrides it.

Of a function that torch has in Python, what has no default arrives by position and every option by name. What
is native in torch arrives as it was called, a method without arguments with the type of its tensor.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight import _C

_STFT = {
    "hop_length": None, "win_length": None, "window": None, "center": True, "pad_mode": "reflect",
    "normalized": False, "onesided": None, "return_complex": None, "align_to_window": None,
}  # fmt: skip
_ISTFT = {
    "hop_length": None, "win_length": None, "window": None, "center": True, "normalized": False,
    "onesided": None, "length": None, "return_complex": False,
}  # fmt: skip
_METHODS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "backward": (("self",), {"gradient": None, "retain_graph": None, "create_graph": False, "inputs": None}),
    "istft": (("self", "n_fft"), _ISTFT),
    "lu": (("self",), {"pivot": True, "get_infos": False}),
    "module_load": (("self", "other"), {"assign": False}),
    "norm": (("self",), {"p": "fro", "dim": None, "keepdim": False, "dtype": None}),
    "split": (("self", "split_size"), {"dim": 0}),
    "stft": (("self", "n_fft"), _STFT),
    "unique": (("self",), {"sorted": True, "return_inverse": False, "return_counts": False, "dim": None}),
    "unique_consecutive": (("self",), {"return_inverse": False, "return_counts": False, "dim": None}),
    "__array__": (("self",), {"dtype": None}),
    "__repr__": (("self",), {"tensor_contents": None}),
}
# Methods that torch has in Python, without options.
_PLAIN_METHODS = """
__contains__ __deepcopy__ __dir__ __dlpack_device__ __floordiv__ __format__ __ipow__ __len__ __pow__
__reversed__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rpow__ __rrshift__ __rsub__ __rtruediv__
__setstate__ is_shared register_hook register_post_accumulate_grad_hook resize resize_as share_memory_
storage storage_type unflatten
"""
# Methods that take nothing but their tensor, or parse what they take themselves; native in torch.
_ALONE = """
__bool__ __complex__ __float__ __index__ __int__ __invert__ _conj _conj_physical _dimI _dimV _indices
_is_all_true _is_any_true _is_view _is_zerotensor _lazy_clone _neg_view _nnz _values abs abs_ absolute
absolute_ acos acos_ acosh acosh_ adjoint angle apply_ arccos arccos_ arccosh arccosh_ arcsin arcsin_
arcsinh arcsinh_ arctan arctan_ arctanh arctanh_ argwhere asin asin_ asinh asinh_ atan atan_ atanh atanh_
bitwise_not bitwise_not_ ccol_indices ceil ceil_ coalesce col_indices conj conj_physical conj_physical_
const_data_ptr corrcoef cos cos_ cosh cosh_ crow_indices data_ptr deg2rad deg2rad_ dense_dim dequantize
det detach detach_ digamma digamma_ dim dim_order element_size erf erf_ erfc erfc_ erfinv erfinv_ exp exp2
exp2_ exp_ expm1 expm1_ fix fix_ fliplr flipud floor floor_ frac frac_ frexp geqrf get_device i0 i0_
indices int_repr inverse is_coalesced is_complex is_conj is_distributed is_floating_point is_inference
is_neg is_nonzero is_signed isfinite isinf isnan isneginf isposinf isreal item lgamma lgamma_ log log10
log10_ log1p log1p_ log2 log2_ log_ logdet logical_not logical_not_ matrix_exp msort neg neg_ negative
negative_ new new_tensor numel positive q_per_channel_axis q_per_channel_scales q_per_channel_zero_points
q_scale q_zero_point qscheme rad2deg rad2deg_ ravel reciprocal reciprocal_ relu relu_ resolve_conj
resolve_neg retain_grad row_indices rsqrt rsqrt_ sgn sgn_ sigmoid sigmoid_ sign sign_ signbit sin sin_
sinc sinc_ sinh sinh_ slogdet sparse_dim sqrt sqrt_ square square_ storage_offset t t_ tan tan_ tanh tanh_
tolist trace trunc trunc_ untyped_storage values zero_
"""
_FUNCTIONS = {
    "cdist", "norm", "pca_lowrank", "split", "stft", "svd_lowrank", "tensordot", "unique",
    "unique_consecutive", "einsum", "broadcast_tensors", "atleast_1d", "atleast_2d", "atleast_3d",
    "block_diag", "lu", "meshgrid", "cartesian_prod", "chain_matmul",
}  # fmt: skip

# What torch has as a call of a method.
_CALLS = {
    "torch.nn.functional.sigmoid": "sigmoid", "torch.nn.functional.tanh": "tanh",
    "torch.Tensor.ndimension": "dim",
    "torch.Tensor.nelement": "numel", "torch.Tensor.to_sparse_coo": "to_sparse",
}  # fmt: skip


class Told(NamedTuple):
    """The parameters without a default, the options with theirs (None: as it was called), and whether plain
    tensors count among the types: every one, or the one that a method is called on."""

    required: tuple[str, ...]
    options: dict[str, Any] | None
    in_python: bool
    alone: bool = False
    several: bool = False  # tensors without a number
    keywords: int = 0  # how many of the options are taken by name only


@functools.cache
def _told(function: Callable) -> Told | None:
    from rushlight._overridable import name_of

    space, _, name = (name_of(function) or "").rpartition(".")
    if space == "torch.Tensor":
        if name in _METHODS:
            return Told(*_METHODS[name], in_python=True)
        if name in _PLAIN_METHODS.split():
            return Told((), None, in_python=True)
        return Told((), None, in_python=False, alone=True) if name in _ALONE.split() else None
    native = space == "torch.nn.functional" and isinstance(function, _C.Builtin)
    if native or not (space == "torch.nn.functional" or (space == "torch.functional" and name in _FUNCTIONS)):
        return None
    parameters = list(inspect.signature(function).parameters.values())
    if name == "meshgrid":
        return Told((), {"indexing": None}, in_python=True, several=True)
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return Told((), None, in_python=True)
    if name == "split":
        return Told(("tensor", "split_size_or_sections"), {"dim": 0}, in_python=True)
    required = tuple(p.name for p in parameters if p.default is p.empty)
    options = {p.name: p.default for p in parameters if p.default is not p.empty}
    if name == "l1_loss":  # which torch tells without
        del options["weight"]
    keywords = sum(p.kind is p.KEYWORD_ONLY for p in parameters)
    return Told(required, options, in_python=True, keywords=keywords)


def _filled(told: Told, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """As they were given, if they do not fit: the function refuses them itself."""
    options, names = told.options, told.required
    if options and told.several:
        return args, options | kwargs
    if options is None or len(args) > len(names) + len(options) - told.keywords:
        return args, kwargs
    given = dict(zip((*names, *options), args, strict=False))
    if any(name in given or (name not in names and name not in options) for name in kwargs):
        return args, kwargs
    given |= kwargs
    if any(name not in given for name in names):
        return args, kwargs
    return tuple(map(given.__getitem__, names)), {name: given.get(name, options[name]) for name in options}


@functools.cache
def _called(function: Callable) -> Callable:
    from rushlight._overridable import name_of

    name = name_of(function)
    return getattr(_C.Tensor, _CALLS[name]) if name in _CALLS else function


def told(function: Callable, args: tuple, kwargs: dict) -> tuple[Callable, tuple, dict, Told | None]:
    """The function and its arguments as who is asked gets them, and what is known of it."""
    try:
        method = _called(function)
        known = _told(method)
    except TypeError:  # not hashable
        return function, args, kwargs, None
    if method is not function:
        if (len(args), *kwargs) in ((1,), (0, "input")):
            function, args, kwargs = method, (*args, *kwargs.values()), {}
        else:
            known = None
    args, kwargs = _filled(known, args, kwargs) if known else (args, kwargs)
    return function, args, kwargs, known
