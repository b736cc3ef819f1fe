"""Functions of torch whose names begin with an underscore and that programs call all the same."""

from __future__ import annotations

import rushlight


def _is_all_true(input):
    """Whether all elements of a tensor of booleans are True."""
    return input.all()


def _is_any_true(input):
    """Whether one element of a tensor of booleans is True."""
    return input.any()


def _is_zerotensor(input):
    """Whether this is a tensor of zeros without memory; it never is."""
    return False


def _softmax(input, dim, half_to_float):
    """softmax."""
    return rushlight.softmax(input, dim)


def _log_softmax(input, dim, half_to_float):
    """log_softmax."""
    return rushlight.log_softmax(input, dim)


def _weight_norm(v, g, dim=0):
    """v with the norms g over all dimensions but `dim`."""
    return v * (g / rushlight.norm_except_dim(v, 2, dim))


def _unique2(input, sorted=True, return_inverse=False, return_counts=False):
    """unique, with empty tensors for what is not asked for."""
    found, inverse, counts = rushlight.unique(input, sorted, True, True)
    nothing = rushlight.empty(0, dtype=rushlight.int64)
    return found, inverse if return_inverse else nothing, counts if return_counts else nothing


def _stack(tensors, dim=0):
    """stack."""
    return rushlight.stack(tensors, dim)


def _dim_arange(like, dim):
    """The positions along a dimension."""
    return rushlight.arange(like.size(dim), device=like.device)


def compiled_with_cxx11_abi():
    """Whether the native code has the newer interface of C++."""
    return True
