"""Layers and losses: most of their gradients are operations of their own in torch."""

from __future__ import annotations

from rushlight import _C
from rushlight._aten_layers import RESAMPLED, each, group_norm_sizes, reduction_number, resampled
from rushlight._ops import handle_named
from rushlight._seen._table import keep_whole, ops, seen, show
from rushlight._seen._whole import whole
from rushlight.ops.norm import _check_features

# ---- pools, paddings, interpolations


def _resampling(name):
    def by_size(g, x_shape, size, spec, adjoint):
        if adjoint:
            return NotImplemented
        shown, (output, *rest) = resampled(name, x_shape, size, spec)
        return show(f"{shown}_backward.default", g, output, list(x_shape), *rest)

    def by_input(g, x, size, spec, adjoint):
        if adjoint:
            return NotImplemented
        shown, args = resampled(name, x.shape, size, spec)
        if name.startswith("adaptive"):
            args = ()
        return show(f"{shown}_backward.default", g, x, *args)

    return by_size if "upsample" in name else by_input


for _name in RESAMPLED:
    if not _name.startswith(("avg_pool1d", "adaptive_avg_pool1d")):
        seen(_name, x=_resampling(_name))


def _max_pool(name, dims):
    def rule(g_values, x, kernel_size, stride, padding, dilation, ceil_mode, indices):
        lists = [each(value, dims) for value in (kernel_size, stride, padding, dilation)]
        return show(f"{name}_backward.default", g_values, x, *lists, ceil_mode, indices)

    return rule


def _adaptive_max(name):
    return lambda g_values, x, indices: show(f"{name}_backward.default", g_values, x, indices)


def _fractional(name):
    return lambda g_values, x, kernel_size, output_size, indices: show(
        f"{name}_backward.default", g_values, x, list(kernel_size), list(output_size), indices)  # fmt: skip


def _unpool(g, x_shape, indices, size):
    lead = list(x_shape[: -len(size)])
    places = indices.view([*lead, -1])
    return ops.gather(g.view([*lead, -1]), places, -1).view(x_shape)


for _dims in (2, 3):
    _name = f"max_pool{_dims}d_with_indices"
    seen(_name, x=_max_pool(_name, _dims))
    seen(f"adaptive_max_pool{_dims}d", x=_adaptive_max(f"adaptive_max_pool{_dims}d"))
    _name = f"fractional_max_pool{_dims}d"
    seen(_name, x=_fractional(_name), samples=lambda g_values: None)
seen("max_unpool", x=_unpool)

# ---- products with a vector


def _outer(g, vec):
    return g.view([g.shape[0], 1]) * vec


# torch looks how a factor lies in memory: of one whose columns are contiguous the gradient is, too.


def _is_turned(x):
    return not _C.is_compressed(x) and x.stride() == (1, x.shape[0])


def _to_first(g, first, second, alpha=1):
    product = second.mm(g.t()).t() if _is_turned(first) else g.mm(second.t())
    return product if alpha == 1 else product * alpha


def _to_second(g, first, second, alpha=1):
    product = g.t().mm(first).t() if _is_turned(second) else first.t().mm(g)
    return product if alpha == 1 else product * alpha


seen("mm", mat2=lambda g, input, mat2: _to_second(g, input, mat2),
     input=lambda g, input, mat2: _to_first(g, input, mat2))  # fmt: skip
seen("addmm", mat1=lambda g, mat1, mat2, alpha: _to_first(g, mat1, mat2, alpha),
     mat2=lambda g, mat1, mat2, alpha: _to_second(g, mat1, mat2, alpha),
     input=lambda g, beta: g if beta == 1 else g * beta)  # fmt: skip
seen("mv", input=_outer, vec=lambda g, input: input.t().mv(g))

# ---- convolutions


def _convolution(g, x, weight, bias_shape, stride, padding, dilation, groups, needs):
    dims = x.dim() - 2
    lists = [each(value, dims) for value in (stride, padding, dilation)]
    sizes = [0] if bias_shape is None else list(bias_shape)
    shown = (*lists, False, [0] * dims, groups, list(needs))
    return tuple(show("convolution_backward.default", g, x, weight, sizes, *shown))


def _transposed(g, x, weight, bias_shape, stride, padding, output_padding, dilation, groups, needs):
    dims = x.dim() - 2
    stride, padding, dilation, output_padding = (
        each(value, dims) for value in (stride, padding, dilation, output_padding)
    )
    sizes = [0] if bias_shape is None else list(bias_shape)
    shown = (stride, padding, dilation, True, output_padding, groups, list(needs))
    return tuple(show("convolution_backward.default", g, x, weight, sizes, *shown))


seen("convolution", _convolution)
seen("conv_transpose", _transposed)

# ---- norms


def _layer_norm(g_out, x, weight, bias, normalized_shape, mean, rstd, needs):
    size = list(normalized_shape)
    return tuple(show("native_layer_norm_backward.default", g_out, x, size, mean, rstd, weight, bias,
                      list(needs)))  # fmt: skip


def _group_norm(g_out, g_mean, g_rstd, x, weight, groups, mean, rstd, needs):
    if g_out is None or g_mean is not None or g_rstd is not None:
        return NotImplemented
    sizes = group_norm_sizes(x)
    return tuple(show("native_group_norm_backward.default", g_out, x, mean, rstd, weight, *sizes, groups,
                      list(needs)))  # fmt: skip


def _batch_norm_arguments(*args):
    if len(args) != 9:  # that of nn.functional, which calls the other
        return None
    input, weight, bias, mean, var, training, momentum, eps = args[:8]
    if input.dim() < 2 or not input.numel() or (mean is None) != (var is None):
        return None
    _check_features(input, training, running_mean=mean, running_var=var, weight=weight, bias=bias)
    reserve = {"dtype": _C.uint8, "layout": input.layout, "device": input.device}
    show("empty.memory_format", [0], **reserve)
    return input, weight, bias, mean, var, training, momentum, eps


def _batch_norm(g, needs, input, weight, bias, mean, var, training, momentum, eps, *saved):
    given = g, input, weight, mean, var, *saved, training, eps, list(needs[:3])
    return tuple(show("native_batch_norm_backward.default", *given))


def _batch_norm_again(function, args):
    """Without the running statistics, which have been brought up to date."""
    input, weight, bias, mean, var, training, *rest = args
    running = (None, None) if training else (mean, var)
    return function(input, weight, bias, *running, training, *rest)


whole(
    "batch_norm",
    "native_batch_norm.default",
    _batch_norm_arguments,
    _batch_norm,
    run=_batch_norm_again,
    inputs=3,
)
seen("native_layer_norm", _layer_norm, undetached="mean rstd")
seen("native_group_norm", _group_norm, undefined=True)
for _name in ("linalg_solve", "linalg_det", "linalg_slogdet"):  # the factors have no derivative in torch
    keep_whole(_name, "LU pivots")

# ---- losses


def _mse(g, x, target, reduction):
    return show("mse_loss_backward.default", g, x, target, reduction_number(reduction))


def _nll(name):
    def rule(g, x, target, weight, reduction, ignore_index):
        if any(_C.dispatches(value) for value in (x, target, weight)):
            return NotImplemented
        modes = _C.set_dispatch_mode(False)  # what the forward pass has counted
        try:
            total = handle_named(f"{name}_forward.default")._overloadpacket.run(
                (x, target, weight, reduction_number(reduction), ignore_index), {}
            )[1]
        finally:
            _C.set_dispatch_mode(modes)
        given = (x, target, weight, reduction_number(reduction), ignore_index, total)
        return show(f"{name}_backward.default", g, *given)

    return rule


for _name in ("nll_loss", "nll_loss2d"):
    seen(_name, x=_nll(_name))
seen("mse_loss", x=_mse, target=lambda g, x, target, reduction: _mse(g, target, x, reduction))
