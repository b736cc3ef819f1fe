"""Operations that torch has under torch.ops.aten only: what indexing and pooling are made of there."""

from __future__ import annotations

import math

import rushlight
from rushlight import _C, _asked_attributes, _dispatching
from rushlight._taken_apart import _unsafe_view
from rushlight.autograd import Function
from rushlight.ops._again import looked_on
from rushlight.ops._facts import told
from rushlight.ops._node_names import saving
from rushlight.ops._public import type_name
from rushlight.ops.forms import _slice


@told(node_name=saving("SafeSoftmaxBackward0", "self dim", "dim result", result=...))
def safe_softmax(self, dim, dtype=None):
    """softmax, and zeros along lines that are all minus infinity."""
    dim = int(dim)
    if looked_on(self):  # the result is all that is kept
        x = self if dtype is None else self.to(dtype)
        return _C.ops.safe_softmax(x, lambda x: safe_softmax(x, dim), dim)
    hidden = (self == -float("inf")).all(dim, keepdim=True)
    # Not where() alone: the derivatives of what it leaves out would be NaN times zero.
    return self.masked_fill(hidden, 0.0).softmax(dim, dtype=dtype).masked_fill(hidden, 0.0)


@told(node_name="MaxPool2DWithIndicesBackwardBackward0")
def max_pool2d_with_indices_backward(
    grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices, *, grad_input=None
):
    """The gradient of max_pool2d: every element of grad_output goes to where its maximum was found."""
    if not self.is_floating_point():
        raise NotImplementedError(f"\"max_pool2d_backward\" not implemented for '{type_name(self.dtype)}'")
    if grad_input is None and looked_on(grad_output, self):
        return _C.ops.max_pool_at(grad_output, self, indices, _spread)
    spread = _spread(grad_output, self, indices)
    return spread if grad_input is None else grad_input.copy_(spread)


def _spread(grad_output, self, indices):
    rows, columns = self.shape[-2:]
    flat = self.new_zeros((*self.shape[:-2], rows * columns))
    spread = flat.scatter_add(-1, indices.flatten(-2), grad_output.flatten(-2)).view(self.shape)
    if self.requires_grad:  # the maxima do not move: a derivative of zero
        spread = spread + rushlight.where(rushlight.zeros((), dtype=rushlight.bool), self, 0.0)
    if not self.is_contiguous() and self.is_contiguous(memory_format=rushlight.channels_last):
        spread = spread.contiguous(memory_format=rushlight.channels_last)
    return spread


def max_pool2d_with_indices(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """max_pool2d and the positions of the maxima."""
    return rushlight.nn.functional.max_pool2d_with_indices(
        self, kernel_size, stride or None, padding, dilation, ceil_mode, True
    )


def _to_copy(self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False,
             memory_format=None):  # fmt: skip
    """A copy, of another dtype or on another device if asked for."""
    made = self.to(device=device, dtype=dtype, copy=True)
    return made if memory_format is None else made.contiguous(memory_format=memory_format)


class _SliceInverse(Function):
    """Of a slice of `src`, or of another tensor of that layout: all of that tensor."""

    _node_name = "SliceInverseBackward0"

    @staticmethod
    def forward(ctx, self, src, dim, start, end, step):
        ctx.part = (dim, start, end, step)
        ctx._saved_dim, ctx._saved_start, ctx._saved_end, ctx._saved_step = ctx.part
        return self.as_strided(src.shape, src.stride(), src.storage_offset())

    @staticmethod
    def backward(ctx, grad):
        part = rushlight.ops.aten.slice(grad, *ctx.part)
        rest = rushlight.slice_scatter(grad, rushlight.zeros_like(part), *ctx.part)
        return part, rest, None, None, None, None

    @staticmethod
    def jvp(ctx, part, rest, *others):
        return part.as_strided(rest.shape, rest.stride(), rest.storage_offset())


def _slice_inverse(self, src, dim=0, start=None, end=None, step=1):
    if _dispatching._wanted((self, src), {}):
        return _dispatching.ask(
            _dispatching.handle_named("slice_inverse.default"), (self, src, dim, start, end, step), {}
        )
    return _SliceInverse.apply(self, src, dim, start, end, step)


def _copy(self, src, non_blocking=False):
    """The elements of src with the sizes and the dtype of self."""
    return rushlight.empty_like(self).copy_(src)


def _nll_loss_forward(self, target, weight, reduction, ignore_index):
    """nll_loss and the sum of the weights that counted."""
    names = ("none", "mean", "sum")
    functional = rushlight.nn.functional
    loss = functional.nll_loss(self, target, weight, ignore_index=ignore_index, reduction=names[reduction])
    counted = target != ignore_index
    total = counted.sum() if weight is None else weight[target.where(counted, 0)][counted].sum()
    return loss, total.to(self.dtype) if reduction else self.new_zeros(())


def _convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Convolutions of all dimensions, transposed or not."""
    functional = rushlight.nn.functional
    dims = input.dim() - 2
    name = f"conv_transpose{dims}d" if transposed else f"conv{dims}d"
    if transposed:
        return getattr(functional, name)(
            input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    return getattr(functional, name)(input, weight, bias, stride, padding, dilation, groups)


def _convolution_backward(
    grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
    output_mask,
):  # fmt: skip
    """The gradients of a convolution that output_mask asks for: of the input, the weight and the bias."""
    from rushlight.ops import conv
    from rushlight.ops.layout import contiguous_format, laid_out, suggested

    geometry = tuple(stride), tuple(padding), tuple(dilation), groups
    last = any(suggested(each) is not contiguous_format for each in (input, weight))
    grad_output = laid_out(grad_output, last)
    of_input = of_weight = of_bias = None
    if output_mask[0] and transposed:
        of_input = conv._transposed_input(grad_output, input.shape, weight, *geometry, last)
    elif output_mask[0]:
        of_input = _C.ops.conv_input_gradient(grad_output, conv._conj(weight), input.shape, *geometry)
    if output_mask[1] and transposed:
        of_weight = conv._transposed_weight(grad_output, input, weight.shape, *geometry, last)
    elif output_mask[1]:
        of_weight = _C.ops.conv_weight_gradient(conv._conj(input), grad_output, weight.shape, *geometry)
    if output_mask[2]:
        of_bias = conv._sum_bias(grad_output)
    return of_input, of_weight, of_bias


def _new_zeros_alike(self, other, *, self_num_batch_dims=0):
    """Zeros that lie in memory as `other` does, in a storage as large, behind batch dimensions of self."""
    batch = self.shape[:self_num_batch_dims]
    room = other.untyped_storage().nbytes() // other.element_size()
    steps = [room * math.prod(batch[d + 1 :]) for d in range(len(batch))]
    memory = other.new_zeros(math.prod(batch) * room)
    return memory.as_strided((*batch, *other.shape), (*steps, *other.stride()), other.storage_offset())


def _loss(name, *names):
    """A loss whose reduction is a number: 0 none, 1 the mean, 2 the sum. `names`: its other arguments, in the
    order of torch.ops.aten, `reduction` among them."""

    def run(self, target, *args, **kwargs):
        given = dict(zip(names, args), **kwargs)
        given["reduction"] = ("none", "mean", "sum")[given.get("reduction", 1)]
        return getattr(rushlight.nn.functional, name)(self, target, **given)

    return run


def _logits_loss(self, target, weight=None, pos_weight=None, reduction=1):
    word = ("none", "mean", "sum")[reduction]
    return rushlight.nn.functional.binary_cross_entropy_with_logits(
        self, target, weight, reduction=word, pos_weight=pos_weight
    )


def _multilabel_margin_loss_forward(self, target, reduction):
    """The loss, and ones where a class is among the targets."""
    loss = FUNCTIONS["multilabel_margin_loss"](self, target, reduction)
    before_end = (target < 0).cumsum(-1) == 0
    classes = rushlight.arange(self.shape[-1] if self.dim() else 1)
    among = (target.unsqueeze(-1) == classes) & before_end.unsqueeze(-1)
    return loss, among.any(-2 if target.dim() else -1).to(self.dtype).reshape(target.shape)


def _elu(self, alpha=1, scale=1, input_scale=1):
    return _C.ops.elu(self, alpha * scale, scale, input_scale)


def _elu_(self, alpha=1, scale=1, input_scale=1):
    kind = _C.ops.elu if alpha * scale < 0 else _C.ops.elu_written
    return _C.in_place(kind, self, alpha * scale, scale, input_scale)


def _elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    if not is_result:
        return _C.ops.elu_backward(grad_output, self_or_result, alpha * scale, scale, input_scale)
    if alpha < 0:
        raise RuntimeError(
            "In-place elu backward calculation is triggered with a negative slope which is not supported."
        )
    below = grad_output * input_scale * (self_or_result + alpha * scale)
    return rushlight.where(self_or_result <= 0, below, grad_output * scale)


def _leaky_relu_backward(grad_output, self, negative_slope, self_is_result):
    if self_is_result and negative_slope < 0:
        raise RuntimeError(
            "In-place leakyReLu backward calculation is triggered with a negative slope which is not "
            "supported."
        )
    return _C.ops.leaky_relu_backward(grad_output, self, negative_slope)


def _unique_consecutive(self, return_inverse=False, return_counts=False, dim=None):
    """The values, where each element is among them, and how often each came; empty if not asked for."""
    values, inverse, counts = rushlight.unique_consecutive(self, True, True, dim)
    nothing = self.new_empty(0, dtype=rushlight.int64)
    return values, inverse if return_inverse else nothing, counts if return_counts else nothing


def _unique_dim(self, dim, sorted=True, return_inverse=False, return_counts=False):
    """The slices along dim, where each is among them, and how often it came, which are found in any case."""
    return rushlight.unique(self, sorted, True, True, dim)


def _with_indices(name):
    def run(self, output_size):
        return getattr(rushlight.nn.functional, name)(self, output_size, return_indices=True)

    return run


def _fractional(name):
    def run(self, kernel_size, output_size, random_samples):
        return getattr(rushlight.nn.functional, name)(
            self, kernel_size, output_size, return_indices=True, _random_samples=random_samples
        )

    return run


def _scale(size, normalization):
    return (1.0, size**-0.5, 1 / size)[normalization]


def _fft_c2c(self, dim, normalization, forward):
    size = math.prod(self.shape[d] for d in dim)
    return _C.ops.fft_c2c(self, tuple(dim), _scale(size, normalization), forward)


def _fft_r2c(self, dim, normalization, onesided):
    size = math.prod(self.shape[d] for d in dim)
    return _C.ops.fft_r2c(self, tuple(dim), _scale(size, normalization), True, onesided)


def _fft_c2r(self, dim, normalization, last_dim_size):
    size = math.prod(self.shape[d] for d in dim[:-1]) * last_dim_size
    return _C.ops.fft_c2r(self, tuple(dim), _scale(size, normalization), False, last_dim_size)


def _padded(mode):
    return lambda self, padding: rushlight.nn.functional.pad(self, padding, mode)


FUNCTIONS = {
    "_safe_softmax": safe_softmax,
    "sym_size": lambda self, dim=None: self.size() if dim is None else self.size(dim),
    "sym_stride": lambda self, dim=None: self.stride() if dim is None else self.stride(dim),
    "sym_numel": lambda self: self.numel(),
    "stride": lambda self, dim=None: _asked_attributes.stride(self) if dim is None else self.stride(dim),
    "is_non_overlapping_and_dense": _asked_attributes.is_non_overlapping_and_dense,
    "is_contiguous": _asked_attributes.is_contiguous,
    "is_strides_like_format": _asked_attributes.is_strides_like_format,
    "sym_storage_offset": lambda self: self.storage_offset(),
    **{f"reflection_pad{n}d": _padded("reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d": _padded("replicate") for n in (1, 2, 3)},
    "l1_loss": _loss("l1_loss", "reduction"),
    "mse_loss": _loss("mse_loss", "reduction"),
    "smooth_l1_loss": _loss("smooth_l1_loss", "reduction", "beta"),
    "huber_loss": _loss("huber_loss", "reduction", "delta"),
    "binary_cross_entropy": _loss("binary_cross_entropy", "weight", "reduction"),
    "nll_loss": _loss("nll_loss", "weight", "reduction", "ignore_index"),
    "nll_loss2d": _loss("nll_loss", "weight", "reduction", "ignore_index"),
    "nll_loss_nd": _loss("nll_loss", "weight", "reduction", "ignore_index"),
    "cross_entropy_loss": _loss("cross_entropy", "weight", "reduction", "ignore_index", "label_smoothing"),
    "soft_margin_loss": _loss("soft_margin_loss", "reduction"),
    "multilabel_margin_loss": _loss("multilabel_margin_loss", "reduction"),
    "multi_margin_loss": _loss("multi_margin_loss", "p", "margin", "weight", "reduction"),
    "elu": _elu,
    "unique_consecutive": _unique_consecutive,
    "unique_dim": _unique_dim,
    "elu_": _elu_,
    "adaptive_max_pool2d": _with_indices("adaptive_max_pool2d"),
    "adaptive_max_pool3d": _with_indices("adaptive_max_pool3d"),
    "fractional_max_pool2d": _fractional("fractional_max_pool2d"),
    "fractional_max_pool3d": _fractional("fractional_max_pool3d"),
    "max_unpool2d": lambda self, indices, output_size: _C.ops.max_unpool(self, indices, tuple(output_size)),
    "max_unpool3d": lambda self, indices, output_size, stride, padding: _C.ops.max_unpool(
        self, indices, tuple(output_size)
    ),
    "_adaptive_avg_pool2d": lambda self, size: rushlight.nn.functional.adaptive_avg_pool2d(self, size),
    "_adaptive_avg_pool3d": lambda self, size: rushlight.nn.functional.adaptive_avg_pool3d(self, size),
    "im2col": lambda self, kernel_size, dilation, padding, stride: rushlight.nn.functional.unfold(
        self, kernel_size, dilation, padding, stride
    ),
    "col2im": lambda self, output_size, kernel_size, dilation, padding, stride: rushlight.nn.functional.fold(
        self, output_size, kernel_size, dilation, padding, stride
    ),
    "log_sigmoid_forward": lambda self: (rushlight.nn.functional.logsigmoid(self), (-self.abs()).exp()),
    "multilabel_margin_loss_forward": _multilabel_margin_loss_forward,
    "binary_cross_entropy_with_logits": _logits_loss,
    "_cdist_forward": lambda x1, x2, p, compute_mode: rushlight.cdist(x1, x2, p),
    "_fft_c2c": _fft_c2c,
    "_fft_r2c": _fft_r2c,
    "_fft_c2r": _fft_c2r,
    "_efficientzerotensor": lambda size, **options: rushlight._efficientzerotensor(size, **options),
    "_to_copy": _to_copy,
    "_local_scalar_dense": lambda self: self.item(),
    "lift_fresh": lambda self: self,
    "lift": lambda self: self,
    "detach": lambda self: self.detach(),
    "alias": lambda self: _C.ops.alias(self),
    "_unsafe_view": _unsafe_view,
    "_reshape_alias": lambda self, size, stride: self.as_strided(size, stride),
    "slice_inverse": _slice_inverse,
    "copy": _copy,
    "index": lambda self, indices: _C.ops.index(self, tuple(indices)),
    "_softmax": lambda self, dim, half_to_float: self.softmax(dim),
    "_log_softmax": lambda self, dim, half_to_float: self.log_softmax(dim),
    "sigmoid_backward": lambda grad_output, output: _C.ops.sigmoid_backward(grad_output, output),
    "tanh_backward": lambda grad_output, output: _C.ops.tanh_backward(grad_output, output),
    "threshold_backward": lambda grad_output, self, threshold: _C.ops.threshold_backward(
        grad_output, self, threshold
    ),
    "leaky_relu_backward": _leaky_relu_backward,
    "elu_backward": _elu_backward,
    "nll_loss_forward": _nll_loss_forward,
    "nll_loss2d_forward": _nll_loss_forward,
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
    "_new_zeros_with_same_feature_meta": _new_zeros_alike,
    "slice": _slice,
    "max_pool2d_with_indices": max_pool2d_with_indices,
    "max_pool2d_with_indices_backward": max_pool2d_with_indices_backward,
}

for _name in ("alias", "index", "slice", "sigmoid_backward", "tanh_backward", "threshold_backward"):
    # Nothing they call asks the classes of their arguments, as public functions do.
    if FUNCTIONS[_name] is not _slice:
        FUNCTIONS[_name].__name__ = FUNCTIONS[_name].__qualname__ = _name
    FUNCTIONS[_name] = _C.Function(FUNCTIONS[_name])
