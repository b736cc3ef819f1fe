"""Parts of `torch._functorch.autograd_function`: contexts around a ctx, and gradients that fit."""

from __future__ import annotations

from typing import Any

from rushlight.func._tensor import Tensor
from rushlight.func._vmap import vmap

NO_OUT_DIMS = "not specified"


class WrappedCtx:
    """A context that is another one, but for the fields that it reserves."""

    _pt_reserved_attrs: tuple[str, ...] = ("_pt_reserved_attrs", "_pt_inner_ctx")

    def __init__(self, ctx: Any) -> None:
        reserved = type(self)._pt_reserved_attrs
        if not isinstance(ctx, WrappedCtx) and any(hasattr(ctx, name) for name in reserved):
            raise RuntimeError(
                f"PyTorch reserves the {reserved} field on ctx. Please name your fields on ctx something "
                "else to avoid name collision."
            )
        self._pt_inner_ctx = ctx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pt_inner_ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in type(self)._pt_reserved_attrs:
            object.__setattr__(self, name, value)
        else:
            setattr(self._pt_inner_ctx, name, value)


class CtxWithSavedTensors(WrappedCtx):
    """A context with other saved tensors."""

    _pt_reserved_attrs = ("_pt_new_saved_tensors", *WrappedCtx._pt_reserved_attrs)

    def __init__(self, ctx: Any, new_saved_tensors: Any) -> None:
        super().__init__(ctx)
        self._pt_new_saved_tensors = new_saved_tensors

    @property
    def saved_tensors(self) -> Any:
        """The tensors that it was given."""
        return self._pt_new_saved_tensors


def reductify_leaf(
    grad_input: Tensor | None,
    grad_input_bdim: int | None,
    input_bdim: int | None,
    batch_size: int,
    target_shape_without_bdim_to_reduce_to: Any = None,
) -> Tensor | None:
    """The gradient of an input whose examples lie along `input_bdim`: of one that all share, the sum of
    theirs; of one that was broadcast in each example, in its own shape."""
    if grad_input is None or (grad_input_bdim is None and input_bdim is None):
        return grad_input
    if input_bdim is None:
        return grad_input.sum(grad_input_bdim)
    if grad_input_bdim is None:
        sizes = list(grad_input.shape)
        sizes.insert(input_bdim, batch_size)
        grad_input, grad_input_bdim = grad_input.unsqueeze(input_bdim).expand(sizes), input_bdim
    if target_shape_without_bdim_to_reduce_to is not None:
        fit = vmap(Tensor.sum_to_size, in_dims=(grad_input_bdim, None), out_dims=input_bdim)
        return fit(grad_input, target_shape_without_bdim_to_reduce_to)
    return grad_input.movedim(grad_input_bdim, input_bdim) if grad_input_bdim != input_bdim else grad_input


def reductify(
    grad_input: Any,
    grad_input_bdim: Any,
    input_bdim: Any,
    batch_size: int,
    target_shape_without_bdim_to_reduce_to: Any = None,
) -> tuple:
    """The gradients of several inputs."""
    several = [x if isinstance(x, tuple) else (x,) for x in (grad_input, grad_input_bdim, input_bdim)]
    shapes = target_shape_without_bdim_to_reduce_to or (None,) * len(several[0])
    return tuple(
        reductify_leaf(gradient, at, wanted, batch_size, shape)
        for gradient, at, wanted, shape in zip(*several, shapes, strict=True)
    )


def has_overridden_vmap_rule(autograd_function: Any) -> bool:
    """Whether a Function says itself what it is of a batch."""
    from rushlight.autograd.function import Function

    return autograd_function.vmap is not Function.vmap


def validate_vmap_returns_tuple_of_two_elements(result: Any) -> None:
    """Refuses what `Function.vmap` must not return."""
    said = (
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
        "compatible with the output. "
    )
    if not isinstance(result, tuple):
        raise RuntimeError(f"{said}Got a {type(result)} instead")
    if len(result) != 2:
        raise RuntimeError(f"{said}Got {len(result)} returns instead")
