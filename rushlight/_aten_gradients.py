"""The gradients that are operations of their own in torch, under torch.ops.aten: `mse_loss_backward`, say.

Rushlight's derivatives are made of other steps, so most of these differentiate what they are named after. Who
looks on at a derivative is shown them (rushlight/_seen), and computes them if he likes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C
from rushlight._ops import namespace

ops = _C.ops


def differentiate(function: Callable, inputs: tuple, grads: Any) -> tuple:
    """The gradients of a function's inputs; None for those that are None."""
    before = _C.set_grad_enabled(True)
    try:
        leaves = [None if x is None else _C.requires_grad_(x.detach(), True) for x in inputs]
        results = function(*leaves)
        wanted = [leaf for leaf in leaves if leaf is not None]
        found = iter(
            rushlight.autograd.grad(results, wanted, grads, allow_unused=True, materialize_grads=True)
        )
    finally:
        _C.set_grad_enabled(before)
    return tuple(None if leaf is None else next(found) for leaf in leaves)


def _of(forward: str, taken: int | None = None) -> Callable:
    """The gradient of the first argument of an operation, of whose arguments those after the gradient are the
    first `taken`."""

    def run(grad_output, self, *args, **kwargs):
        packet = getattr(namespace("aten"), forward)
        rest = args if taken is None else args[: taken - 1]

        def first(x):
            result = packet(x, *rest, **kwargs)
            return result[0] if isinstance(result, (tuple, list)) else result

        return differentiate(first, (self,), grad_output)[0]

    return run


def _of_sizes(forward: str) -> Callable:
    """The same of an interpolation, which is told the size of its input only."""

    def run(grad_output, output_size, input_size, *args, **kwargs):
        packet = getattr(namespace("aten"), forward)
        like = grad_output.new_zeros(input_size)
        return differentiate(lambda x: packet(x, output_size, *args, **kwargs), (like,), grad_output)[0]

    return run


def _masked(mask: Any, *values: Any) -> tuple:
    return tuple(value if wanted else None for wanted, value in zip(mask, values, strict=True))


def _layer_norm(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    dims, affine = len(normalized_shape), weight is not None or bias is not None
    found = ops.native_layer_norm_backward(grad_out, input, mean, rstd, weight, dims, 1e-5, affine)
    return _masked(output_mask, *found)


def _group_norm(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
    return _masked(
        output_mask, *ops.native_group_norm_backward(grad_out, input, mean, rstd, weight, group, 1e-5)
    )


def _batch_norm(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps,
                output_mask):  # fmt: skip
    if not train:
        save_mean, save_invstd = running_mean, running_var
    found = ops.batch_norm_backward(grad_out, input, save_mean, save_invstd, weight, eps, train)
    return _masked(output_mask, *found)


def _grid(grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask):
    run = getattr(namespace("aten"), f"grid_sampler_{input.dim() - 2}d")
    options = interpolation_mode, padding_mode, align_corners
    found = differentiate(lambda x, y: run(x, y, *options), (input, grid), grad_output)
    return _masked(output_mask, *found)


def _nll(name: str) -> Callable:
    def run(grad_output, self, target, weight, reduction, ignore_index, total_weight):
        return getattr(ops, name)(grad_output, target, weight, self.shape, reduction, ignore_index)

    return run


def _max_pool(grad_output, self, *args):
    """With where the maxima lie as the last argument."""
    *_, indices = args
    dims = len(args[0]) if len(args) > 1 else self.dim() - (3 if self.dim() == 5 else 2)
    return ops.max_pool_scatter(grad_output, indices, self.shape[-dims:])


def _adaptive(dims: int) -> Callable:
    return lambda grad_output, self, indices: ops.max_pool_scatter(grad_output, indices, self.shape[-dims:])


def _adaptive_average(dims: int) -> Callable:
    def run(grad_output, self):
        pool = getattr(namespace("aten"), f"adaptive_avg_pool{dims}d")
        return differentiate(lambda x: pool(x, grad_output.shape[-dims:]), (self,), grad_output)[0]

    return run


def _masked_scatter(grad_output, mask, sizes):
    chosen = grad_output.masked_select(mask)
    whole = grad_output.new_zeros(sizes)
    whole.view(-1)[: chosen.numel()] = chosen
    return whole


def _unfold(grad_in, input_sizes, dim, size, step):
    like = grad_in.new_zeros(input_sizes)
    return differentiate(lambda x: x.unfold(dim, size, step), (like,), grad_in)[0]


def _at_zeros(name: str) -> Callable:
    """The gradient of a choice of elements, of which only the size is told."""

    def run(grad_output, input_sizes, *args):
        like = grad_output.new_zeros(input_sizes)
        return differentiate(lambda x: getattr(namespace("aten"), name)(x, *args), (like,), grad_output)[0]

    return run


def _binary_cross_entropy(grad_output, self, target, weight=None, reduction=1):
    run = namespace("aten").binary_cross_entropy
    return differentiate(lambda x: run(x, target, weight, reduction), (self,), grad_output)[0]


def _embedding_dense(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    return ops.embedding_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)


def _prelu(grad_output, self, weight):
    return differentiate(lambda x, w: rushlight.where(x > 0, x, w * x), (self, weight), grad_output)


_UPSAMPLED = ("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d",
              "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "upsample_linear1d",
              "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
              "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")  # fmt: skip
FUNCTIONS: dict[str, Callable] = {
    **{f"{name}_backward": _of_sizes(name) for name in _UPSAMPLED},
    **{f"{mode}_pad{n}d_backward": _of(f"{mode}_pad{n}d") for mode in ("reflection", "replication")
       for n in (1, 2, 3)},
    **{f"{name}_backward": _of(name) for name in (
        "hardsigmoid", "mish", "hardshrink", "softshrink", "hardtanh", "logit", "glu", "mse_loss",
        "huber_loss", "smooth_l1_loss", "soft_margin_loss", "multi_margin_loss", "avg_pool2d", "avg_pool3d")},
    **{f"{name}_backward": _adaptive(n) for n in (2, 3) for name in (f"adaptive_max_pool{n}d",)},
    **{f"_adaptive_avg_pool{n}d_backward": _adaptive_average(n) for n in (2, 3)},
    "multilabel_margin_loss_backward": _of("multilabel_margin_loss", 3),
    "log_sigmoid_backward": _of("log_sigmoid", 1),
    "binary_cross_entropy_backward": _binary_cross_entropy,
    "_cdist_backward": lambda grad, x1, x2, p, cdist: differentiate(
        lambda x: rushlight.cdist(x, x2, p), (x1,), grad)[0],
    "native_layer_norm_backward": _layer_norm,
    "native_group_norm_backward": _group_norm,
    "native_batch_norm_backward": _batch_norm,
    "grid_sampler_2d_backward": _grid,
    "grid_sampler_3d_backward": _grid,
    "nll_loss_backward": _nll("nll_loss_backward"),
    "nll_loss2d_backward": _nll("nll_loss2d_backward"),
    "max_pool3d_with_indices_backward": _max_pool,
    "fractional_max_pool2d_backward": _max_pool,
    "fractional_max_pool3d_backward": _max_pool,
    "masked_scatter_backward": _masked_scatter,
    "unfold_backward": _unfold,
    "select_backward": _at_zeros("select"),
    "slice_backward": _at_zeros("slice"),
    "diagonal_backward": _at_zeros("diagonal"),
    "embedding_dense_backward": _embedding_dense,
    "_prelu_kernel_backward": _prelu,
}  # fmt: skip
