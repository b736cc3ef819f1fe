"""Functions of torch whose names begin with an underscore and that programs call all the same."""

from __future__ import annotations

import rushlight
from rushlight import _C
from rushlight._warn import warn_once
from rushlight.ops._facts import told
from rushlight.ops._node_names import asked_plainly
from rushlight.ops._public import public, whole
from rushlight.ops.linalg import require_tensor
from rushlight.ops.unique import without_derivative


def _is_all_true(input):
    """Whether all elements of a tensor of booleans are True."""
    return input.all()


def _is_any_true(input):
    """Whether one element of a tensor of booleans is True."""
    return input.any()


def _is_zerotensor(input):
    """Whether this is one of :func:`_efficientzerotensor`, or computed from one and known to be all zeros."""
    return _C.is_zero_for_good(input)


def _efficientzerotensor(*size, **options):
    """Zeros that nobody may write. Products with them are such zeros too, whatever the other factor holds.

    >>> zero = rushlight._efficientzerotensor((2,))
    >>> zero * rushlight.tensor([1.0, rushlight.inf])
    tensor([0., 0.])
    """
    if options.get("layout") not in (None, rushlight.strided):
        raise NotImplementedError("_efficientzerotensor() makes tensors of layout torch.strided only")
    return _C.zero_for_good(rushlight.zeros(*size, **options))


def _softmax(input, dim, half_to_float):
    """softmax."""
    return rushlight.softmax(input, dim)


def _log_softmax(input, dim, half_to_float):
    """log_softmax."""
    return rushlight.log_softmax(input, dim)


def _norm_node(v, g, dim=0):
    if dim not in (0, v.dim() - 1):
        return None
    if not asked_plainly():
        return "WeightNormInterfaceBackward0"
    norms = rushlight.norm_except_dim(v.detach(), 2, dim)
    return "WeightNormInterfaceBackward0", {"v": v, "g": g, "result1": norms}, (v, g)


@told(
    no_forward_mode=lambda v, g, dim=0: "_weight_norm_interface" if dim in (0, v.dim() - 1) else None,
    node_name=_norm_node,
)
def _weight_norm(v, g, dim=0):
    """v with the norms g over all dimensions but `dim`."""
    return v * (g / rushlight.norm_except_dim(v, 2, dim))


def _unique2(input, sorted=True, return_inverse=False, return_counts=False):
    """unique, with empty tensors for what is not asked for."""
    found, inverse, counts = rushlight.unique(input, sorted, True, True)
    nothing = rushlight.empty(0, dtype=rushlight.int64)
    return found, inverse if return_inverse else nothing, counts if return_counts else nothing


def _unique(input, sorted=True, return_inverse=False):
    """unique, with an empty tensor for the places if they are not asked for."""
    found, inverse, _ = _unique2(input.detach(), sorted, return_inverse)
    return without_derivative("_unique", "UniqueBackward0", input, (found, inverse))


def _stack(tensors, dim=0):
    """stack."""
    return rushlight.stack(tensors, dim)


def _dim_arange(like, dim):
    """The positions along a dimension."""
    return rushlight.arange(like.size(dim), device=like.device)


def compiled_with_cxx11_abi():
    """Whether the native code has the newer interface of C++."""
    return True


@public(method=False, namespace=False)
def nuclear_norm(input, dim=None, keepdim=False, *, out=None):
    """The sum of the singular values."""
    if isinstance(dim, bool):  # a matrix, and `keepdim`
        dim, keepdim = None, dim
    dim = whole(dim)
    dim = (0, 1) if dim is None else (dim, dim) if isinstance(dim, int) else dim
    warn_once(
        "at::nuclear_norm is deprecated and it is just left for JIT compatibility. It will be removed in a "
        "future PyTorch release. Please use `linalg.matrix_norm(A, 'nuc', dim, keepdim)` instead"
    )
    return rushlight.linalg.matrix_norm(input, "nuc", dim, keepdim, out=out)


@public(method=False, namespace=False)
def to_dlpack(data):
    """A DLPack capsule of the tensor's memory."""
    return rushlight.utils.dlpack.to_dlpack(data)


def set_anomaly_enabled(mode, check_nan=True):
    """Switches anomaly detection on or off."""
    rushlight.autograd.set_detect_anomaly(mode, check_nan)


spmm = dsmm = rushlight.mm  # every matrix here is dense


def is_vulkan_available(*ignored, **options):
    """Whether Vulkan can be used; it cannot."""
    return False


has_lapack, has_spectral, has_openmp, has_mkl = True, True, False, False


@_C.Function
def _neg_view(input):
    """The negative, as a view that negates when it is read.

    >>> x = rushlight.ones(2)
    >>> rushlight._neg_view(x), rushlight._neg_view(x)._base is x
    (tensor([-1., -1.]), True)
    """
    require_tensor("_neg_view", input=input)
    return _C.ops.neg_view(input)


def _neg_view_copy(input, *, out=None):
    """The negative, computed at once."""
    negative = rushlight.neg(input, out=out)
    return _C.name_node(negative, "NegViewBackward0_copy") if out is None else negative


def _conj(input):
    """The conjugate of a complex tensor, as a view that conjugates when it is read."""
    return _C.ops.conj_view(input)


def _conj_copy(input, *, out=None):
    """The conjugate, computed at once."""
    return rushlight.conj_physical(input, out=out)


def _conj_physical(input, *, out=None):
    """The conjugate, computed at once, as conj_physical()."""
    return rushlight.conj_physical(input, out=out)
