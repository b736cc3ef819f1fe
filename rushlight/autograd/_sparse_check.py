"""torch.sparse.as_sparse_gradcheck: checks that know dense tensors only, of functions of sparse ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C
from rushlight.autograd._gradcheck_parts import with_every_element

Tensor = _C.Tensor


def as_sparse_gradcheck(gradcheck: Callable) -> Callable:
    """A gradcheck that takes functions of sparse tensors: it is shown their values, and dense results.

    >>> check = rushlight.sparse.as_sparse_gradcheck(rushlight.autograd.gradcheck)
    >>> x = rushlight.eye(2, dtype=rushlight.float64).to_sparse().requires_grad_()
    >>> check(lambda x: x * 2, x)
    True
    """

    def gradcheck_with_sparse_support(func: Callable, inputs: Any, **kwargs: Any) -> Any:
        masked = kwargs.pop("masked", False)
        given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        shown: list = []
        whole: list = []  # per input what makes it of what is shown, or None
        for value in given:
            if not (_C.is_any_sparse(value) and value.requires_grad):
                shown.append(value)
                whole.append(None)
                continue
            stored = value.detach() if masked else with_every_element(value).detach()
            shown.append(stored.memory().clone().requires_grad_())
            whole.append(functools.partial(_with_values, stored))

        def of_values(*args: Any, **options: Any) -> Any:
            made = [
                arg if make is None else make(arg)
                for arg, make in zip(args[: len(whole)], whole, strict=True)
            ]
            results = func(*made, *args[len(whole) :], **options)
            if isinstance(results, (tuple, list)):
                return tuple(_dense(result, masked) for result in results)
            return _dense(results, masked)

        return gradcheck(of_values, tuple(shown), **kwargs)

    return gradcheck_with_sparse_support


def _with_values(stored: Any, values: Tensor) -> Tensor:
    """The tensor with other values, recorded."""
    if _C.is_sparse(stored):
        coalesced = stored.is_coalesced()
        return rushlight.sparse_coo_tensor(stored._indices(), values, stored.shape, is_coalesced=coalesced)
    compressed, plain, _ = stored.parts
    layout = stored.layout
    return rushlight.sparse_compressed_tensor(compressed, plain, values, stored.shape, layout=layout)


def _dense(result: Any, masked: bool) -> Any:
    if _C.is_any_sparse(result) and result.requires_grad:
        return result.to_dense(masked_grad=masked)
    return result
