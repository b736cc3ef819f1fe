"""How the primitives are called in torch: what `__torch_dispatch__` is shown.

A line of `_SPECS` says for a primitive which overload of torch it is and in which order that takes the
primitive's arguments. `dim[]` is shown as a list, `=value` is a default (arguments at their defaults are not
shown, as in torch), what follows `*` is given by keyword, `s:alpha` is called alpha there. Primitives that
torch composes of others are in `COMPOSED`: they are taken apart before anybody is asked.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C
from rushlight._aten_layers import SHOWN as _SHOWN_LAYERS
from rushlight._aten_layers import each as _each
from rushlight._taken_apart import _mh, rule_of, unsafe

ops = _C.ops
Tensor = _C.Tensor

_SPECS = """
add_alpha add.Tensor a b * s:alpha=1
sub_alpha sub.Tensor a b * s:alpha=1
addmm addmm.default input mat1 mat2 * beta=1 alpha=1
addmv addmv.default input mat vec * beta=1 alpha=1
addr addr.default input vec1 vec2 * beta=1 alpha=1
addbmm addbmm.default input batch1 batch2 * beta=1 alpha=1
baddbmm baddbmm.default input batch1 batch2 * beta=1 alpha=1
addcmul addcmul.default a b c * s:value=1
addcdiv addcdiv.default a b c * s:value=1
amax amax.default x dim[]=[] keepdim=False
amin amin.default x dim[]=[] keepdim=False
argmax argmax.default x dim=None keepdim=False
argmin argmin.default x dim=None keepdim=False
cat cat.default tensors[] dim=0
stack stack.default tensors[] dim=0
clamp_scalar clamp.default x s=None t=None
clamp_min_scalar clamp.default x s=None
constant_pad_nd constant_pad_nd.default x pad[] value=0
copy copy.default x source
diagonal diagonal.default x offset=0 dim1=0 dim2=1
embedding embedding.default weight index padding_idx=-1 scale=False
embedding_sparse embedding.default weight index padding_idx=-1 scale=False sparse=False
expand expand.default x size[]
flip flip.default x dims[]
gather gather.default x dim index
gather_sparse gather.default x dim index * sparse_grad=False
index index.Tensor x indices[]
index_put index_put.default x indices[] values accumulate=False
index_select index_select.default x dim index
index_add index_add.default x dim index source * alpha=1
index_copy index_copy.default x dim index source
index_reduce index_reduce.default x dim index source reduce * include_self=True
leaky_relu leaky_relu.default x s=0.01
leaky_relu_written leaky_relu.default x s=0.01
hardshrink hardshrink.default x s=0.5
hardshrink_backward hardshrink_backward.default a b s
hardtanh hardtanh.default x s t
hardtanh_backward hardtanh_backward.default a b s t
lerp lerp.Tensor a b c
lerp_scalar lerp.Scalar a b s
logsumexp logsumexp.default x dim[] keepdim=False
max_dim max.dim x dim keepdim=False
min_dim min.dim x dim keepdim=False
median_dim median.dim x dim=-1 keepdim=False
nanmedian_dim nanmedian.dim x dim=-1 keepdim=False
mode mode.default x dim=-1 keepdim=False
kthvalue kthvalue.default x k dim=-1 keepdim=False
mean mean.default x * dtype=None
mean_dim mean.dim x dim[] keepdim=False * dtype=None
native_layer_norm native_layer_norm.default x normalized_shape[] weight bias eps
nan_to_num nan_to_num.default x s=None t=None u=None
normal normal.default x mean=0.0 std=1.0 * generator=None
permute permute.default x dims[]
pow_scalar pow.Tensor_Scalar x s
scalar_pow pow.Scalar s x
prod prod.default x * dtype=None
prod_dim prod.dim_int x dim keepdim=False * dtype=None
repeat repeat.default x repeats[]
roll roll.default x shifts[] dims[]=[]
scatter scatter.src x dim index src
scatter_add scatter_add.default x dim index src
scatter_reduce scatter_reduce.two x dim index src reduce * include_self=True
scatter_value scatter.value x dim index value
select select.int x dim index
softplus softplus.default x s=1 t=20
softplus_backward softplus_backward.default a b s t
softshrink softshrink.default x s=0.5
softshrink_backward softshrink_backward.default a b s
sort sort.default x dim=-1 descending=False
squeeze_dim squeeze.dim x dim
squeeze_dims squeeze.dims x dim[]
sum sum.default x * dtype=None
sum_dim sum.dim_IntList x dim[] keepdim=False * dtype=None
nansum nansum.default x dim[]=None keepdim=False * dtype=None
threshold_backward threshold_backward.default a b s
to_device _to_copy.default x * dtype=None device=None
topk topk.default x k dim=-1 largest=True sorted=True
tril tril.default x diagonal=0
triu triu.default x diagonal=0
unbind unbind.int x dim=0
unfold unfold.default x dim size step
uniform uniform.default x from=0.0 to=1.0 * generator=None
bernoulli_number bernoulli.float x p=0.5 * generator=None
bernoulli_tensor bernoulli.Tensor x p * generator=None
bernoulli bernoulli.default p * generator=None
exponential exponential.default x lambd=1.0 * generator=None
unsqueeze unsqueeze.default x dim
vector_norm linalg_vector_norm.default x ord=2 dim[]=None keepdim=False * dtype=None
split_with_sizes split_with_sizes.default x sizes[] dim=0
gelu_tanh gelu.default x
count_nonzero count_nonzero.dim_IntList x dim[]
cummax cummax.default x dim
cummin cummin.default x dim
aminmax aminmax.default x * dim=None keepdim=False
linalg_cross linalg_cross.default input other * dim=-1
linalg_qr linalg_qr.default A mode='reduced'
coalesce _coalesce.default x
to_dense _to_dense.default x dtype=None masked_grad=None
to_sparse _to_sparse.sparse_dim x sparse_dim
sparse_sum _sparse_sum.dim x dim[]
sparse_addmm _sparse_addmm.default input sparse dense * beta=1 alpha=1
sparse_sparse_matmul _sparse_sparse_matmul.default a b
sampled_addmm sparse_sampled_addmm.default x a b * beta=1 alpha=1
linalg_lu_solve linalg_lu_solve.default LU pivots B * left=True adjoint=False
"""


def _arrangement(rank: int) -> Any:
    return rushlight.channels_last if rank == 4 else rushlight.channels_last_3d


class _Missing:
    def __repr__(self) -> str:
        return "(none)"


_NONE = _Missing()


class Spec:
    """One line of the table: from the primitive's arguments to torch's and back."""

    def __init__(self, line: str) -> None:
        primitive, self.overload, *words = line.split()
        self.primitive = getattr(ops, primitive)
        names = self.primitive.args
        self.fields: list[tuple[int, str, bool, Any, bool]] = []
        keyword = False
        for word in words:
            if word == "*":
                keyword = True
                continue
            name, equals, default = word.partition("=")
            listed = name.endswith("[]")
            ours, _, theirs = name.removesuffix("[]").partition(":")
            value = ast.literal_eval(default) if equals else _NONE
            self.fields.append((names.index(ours), theirs or ours, listed, value, keyword))

    def shown(self, args: tuple) -> tuple[tuple, dict]:
        """torch's arguments of a call of the primitive."""
        positional: list[Any] = []
        kept = 0
        kwargs = {}
        for at, name, listed, default, keyword in self.fields:
            value = args[at]
            if listed:
                value = [value] if isinstance(value, (int, Tensor)) else value
                value = None if value is None else list(value)
            if type(value) is int and type(default) is float:
                value = float(value)
            if keyword:
                if not _same(value, default):
                    kwargs[name] = value
            else:
                positional.append(value)
                if not _same(value, default):
                    kept = len(positional)
        return tuple(positional[:kept]), kwargs

    def taken(self, args: tuple, kwargs: dict) -> tuple:
        """The primitive's arguments of such a call; kwargs is emptied of what was used."""
        values: list[Any] = [None] * len(self.primitive.args)
        place = 0
        for at, name, listed, default, keyword in self.fields:
            if name in kwargs:
                value = kwargs.pop(name)
            elif not keyword and place < len(args):
                value = args[place]
            elif default is _NONE:
                raise TypeError(f"{self.overload}() is missing value for argument '{name}'")
            else:
                value = default
            place += not keyword
            values[at] = tuple(value) if listed and value is not None else value
        return tuple(values)


def _same(value: Any, default: Any) -> bool:
    if default is _NONE or isinstance(value, Tensor):
        return False
    # 0.0 is not the default 0: torch shows it.
    return type(value) is type(default) and value == default


SPECS = {line.split()[0]: Spec(line) for line in _SPECS.strip().splitlines()}

# ---- primitives that need a look at their arguments: (overload, arguments, keywords)

_WITH_SCALAR = {
    "eq", "ne", "lt", "le", "gt", "ge", "remainder", "fmod", "bitwise_and", "bitwise_or", "bitwise_xor",
}  # fmt: skip
_OVER_ALL = {"all", "any"}


def _is_number(value: Any) -> bool:
    return not isinstance(value, Tensor)


def _compared(name: str) -> Callable:
    def show(a, b):
        return f"{name}.{'Scalar' if _is_number(b) else 'Tensor'}", (a, b), {}

    return show


def _all_any(name: str) -> Callable:
    def show(x, dim, keepdim):
        if dim is None:
            return f"{name}.default", (x,), {}
        if isinstance(dim, int):
            return f"{name}.dim", (x, dim, keepdim) if keepdim else (x, dim), {}
        return f"{name}.dims", (x, list(dim), keepdim) if keepdim else (x, list(dim)), {}

    return show


def _softmax(name: str) -> Callable:
    return lambda x, dim: (f"{name}.default", (x, dim, False), {})


def _slice(x, dim, start, end, step):
    args = (x, dim, start, end, step)
    return "slice.Tensor", args[:-1] if step == 1 else args, {}


def _split(x, sizes, dim):
    if len(set(sizes[:-1])) <= 1 and sizes and (len(sizes) == 1 or sizes[-1] <= sizes[0]):
        return "split.Tensor", (x, sizes[0], dim) if dim else (x, sizes[0]), {}
    return "split_with_sizes.default", (x, list(sizes), dim) if dim else (x, list(sizes)), {}


def _convolution(x, weight, bias, stride, padding, dilation, groups):
    stride, padding, dilation = (_each(value, x.dim() - 2) for value in (stride, padding, dilation))
    args = (x, weight, bias, stride, padding, dilation, False, [0] * len(stride), groups)
    return "convolution.default", args, {}


def _conv_transpose(x, weight, bias, stride, padding, output_padding, dilation, groups):
    lists = [_each(value, x.dim() - 2) for value in (stride, padding, dilation, output_padding)]
    args = (x, weight, bias, *lists[:3], True, lists[3], groups)
    return "convolution.default", args, {}


def _from_the_end(name: str) -> Callable:
    def run(x, dim, dtype, reverse):
        if not reverse:
            return NotImplemented
        return getattr(x.flip(dim), name)(dim, dtype=dtype).flip(dim)

    return run


def _cumulative(name: str) -> Callable:
    def show(x, dim, dtype, reverse):
        return f"{name}.default", (x, dim), {} if dtype in (None, x.dtype) else {"dtype": dtype}

    return show


def _elu(x, s, t, u):
    args = (x, s / t, t, u)
    return "elu.default", args if u != 1 else args[:3] if t != 1 else args[:2], {}


def _mse_loss(x, target, reduction):
    number = ("none", "mean", "sum").index(reduction)
    return "mse_loss.default", (x, target) if number == 1 else (x, target, number), {}


def _smooth_l1_loss(x, target, reduction, beta):
    number = ("none", "mean", "sum").index(reduction)
    args = (x, target, number, beta)
    return "smooth_l1_loss.default", args if beta != 1 else args[:3] if number != 1 else args[:2], {}


def _as_strided(x, size, stride, offset, layout, start):
    args = (x, list(size), list(stride), offset)
    return "as_strided.default", args[:-1] if offset == start else args, {}


def _spread(name: str) -> Callable:
    def show(x, dim, correction, keepdim):
        kwargs = {"keepdim": True} if keepdim else {}
        if dim is None:
            shown = kwargs if correction in (None, 1) else {"correction": correction, **kwargs}
            return f"{name}.correction", (x,), shown
        correction = 1 if correction is None else correction
        dims = [dim] if isinstance(dim, int) else list(dim)
        return f"{name}.correction", (x, dims), {"correction": correction, **kwargs}

    return show


def _where(condition, a, b):
    from rushlight._dispatching import stack

    options = {"dtype": rushlight.result_type(a, b)}
    made = rushlight.scalar_tensor
    if stack.modes and rule_of() is not None:  # in a derivative torch makes it otherwise
        options |= {"layout": rushlight.strided, "device": condition.device}
        made = functools.partial(named, "scalar_tensor.default")
    a, b = (x if isinstance(x, Tensor) else made(x, **options) for x in (a, b))
    return "where.self", (condition, a, b), {}


def _to_copy(x, dtype):
    kind = {"dtype": dtype}
    if _C.rule_of() == "to_dtype":  # back to what it was, in everything
        kind |= {"layout": x.layout, "device": x.device}
    return "_to_copy.default", (x,), kind


# Numbers that a derivative's formula brings along are numbers in torch; those of a program become tensors.
_OF_PROGRAMS = {None, "add", "sub", "mul", "div", "rsub_number"}


def _with_number(name: str) -> Callable:
    def show(a, b):
        number = _is_number(a) or _is_number(b)
        kind = "Scalar" if number and rule_of() not in _OF_PROGRAMS else "Tensor"
        swapped = name in ("add", "mul") and _is_number(a)
        return f"{name}.{kind}", (b, a) if swapped else (a, b), {}

    return show


_PRODUCTS = {"mm", "mm_nh", "mm_hn", "addmm", "linear", "linear_unbiased"}


def _transpose(x, dim0, dim1):
    if x.dim() == 2 and rule_of() in _PRODUCTS:
        return "t.default", (x,), {}
    return "transpose.int", (x, dim0, dim1), {}


def named(overload: str, *args: Any, **kwargs: Any) -> Any:
    """Asks about an operation that is made of others here, or computes it if nobody is there to be asked."""
    from rushlight._dispatching import _looks_on, ask
    from rushlight._ops import handle_named

    if not _looks_on(args, kwargs):
        return handle_named(overload)(*args, **kwargs)
    return _C.below_autograd(ask, handle_named(overload), args, kwargs)


SHOWN: dict[str, Callable] = {
    **_SHOWN_LAYERS,
    **{name: _with_number(name) for name in ("add", "sub", "mul", "div")}, "transpose": _transpose,
    "rsub_number": lambda a, b: ("rsub.Scalar", (b, a), {}),
    "pow": lambda a, b: ("pow.Scalar" if _is_number(a) else "pow.Tensor_Tensor", (a, b), {}),
    "div_trunc": lambda a, b: ("div.Tensor_mode", (a, b), {"rounding_mode": "trunc"}),
    "div_floor": lambda a, b: ("div.Tensor_mode", (a, b), {"rounding_mode": "floor"}),
    "floor_divide": lambda a, b: ("floor_divide.default", (a, b), {}),
    "clamp_max_scalar": lambda x, s: ("clamp.default", (x, None, s), {}),
    "fill": lambda x, value: (f"fill.{'Scalar' if _is_number(value) else 'Tensor'}", (x, value), {}),
    "masked_fill": lambda x, mask, value: (
        f"masked_fill.{'Scalar' if _is_number(value) else 'Tensor'}", (x, mask, value), {}),
    "index_fill": lambda x, index, value, dim: (
        f"index_fill.int_{'Scalar' if _is_number(value) else 'Tensor'}", (x, dim, index, value), {}),
    "softmax": _softmax("_softmax"), "log_softmax": _softmax("_log_softmax"),
    "softmax_backward": lambda g, result, dim: (
        "_softmax_backward_data.default", (g, result, dim, g.dtype), {}),
    "log_softmax_backward": lambda g, result, dim: (
        "_log_softmax_backward_data.default", (g, result, dim, g.dtype), {}),
    "view": lambda x, size: (
        "_unsafe_view.default" if unsafe.now else "view.default", (x, list(size)), {}),
    "contiguous_copy": lambda x: ("clone.default", (x,), {"memory_format": rushlight.contiguous_format}),
    "clone_strided": lambda x, stride: ("clone.default", (x,), {"memory_format": _arrangement(x.dim())}),
    "polygamma": lambda x, s: ("polygamma.default", (s, x), {}),
    "round_decimals": lambda x, s, t: ("round.decimals", (x,), {"decimals": t}),
    "linalg_eig": lambda A, vectors, caller: ("linalg_eig.default", (A,), {}),
    "mse_loss": _mse_loss, "smooth_l1_loss": _smooth_l1_loss, "elu": _elu, "elu_written": _elu,
    "elu_backward": lambda a, b, s, t, u: ("elu_backward.default", (a, s / t, t, u, False, b), {}),
    "elu_written_backward": lambda a, b, s, t, u: ("elu_backward.default", (a, s / t, t, u, True, b), {}),
    "leaky_relu_backward": lambda a, b, s: (
        "leaky_relu_backward.default", (a, b, s, _C.rule_of() == "leaky_relu_written"), {}
    ),
    "slice": _slice, "split": _split, "convolution": _convolution, "conv_transpose": _conv_transpose,
    "cumsum": _cumulative("cumsum"), "cumprod": _cumulative("cumprod"), "as_strided": _as_strided,
    **{name: _spread(name) for name in ("std", "var", "std_mean", "var_mean")},
    "where": _where, "choose": _where,
    "to_dtype": _to_copy,
    "square": lambda x: ("pow.Tensor_Scalar", (x, 2), {}),
    **{name: _compared(name) for name in _WITH_SCALAR}, **{name: _all_any(name) for name in _OVER_ALL},
}  # fmt: skip
# Those in place that are shown otherwise than out of place.
SHOWN_IN_PLACE: dict[str, Callable] = {
    "copy": lambda x, source: ("copy_.default", (x, source), {}),
    "fill": lambda x, value: (
        ("zero_.default", (x,), {})
        if type(value) is int and value == 0
        else (f"fill_.{'Scalar' if _is_number(value) else 'Tensor'}", (x, value), {})
    ),
}

# ---- primitives that torch has not: run with everybody asked about the parts


def _matmul_nd(a, b):
    if a.dim() == 1:
        return _matmul_nd(a.unsqueeze(0), b).squeeze(-2)
    if b.dim() == 1:
        return _matmul_nd(a, b.unsqueeze(-1)).squeeze(-1)
    if a.dim() == 2 and b.dim() == 2:
        return ops.mm(a, b)
    if b.dim() == 2 and a.dim() > 2 and rule_of() != "addbmm":
        product = ops.mm(a.reshape(-1, a.shape[-1]), b)
        return named("_unsafe_view.default", product, [*a.shape[:-1], b.shape[-1]])
    batch = rushlight.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    count = math.prod(batch)
    left = a.expand(*batch, *a.shape[-2:]).reshape(count, *a.shape[-2:])
    right = b.expand(*batch, *b.shape[-2:]).reshape(count, *b.shape[-2:])
    return named("_unsafe_view.default", ops.bmm(left, right), [*batch, a.shape[-2], b.shape[-1]])


def _sum_to(x, shape):
    lead = x.dim() - len(shape)
    if not shape:
        return x.sum()
    dims = [d for d in range(x.dim()) if d < lead or (shape[d - lead] == 1 and x.shape[d] != 1)]
    total = x.sum(dims, True) if dims else x
    return total.view(shape) if lead else total


def _restore(g, size, dim, keepdim):
    if dim is not None and not keepdim and g.dim() < len(size):
        dims = [dim] if isinstance(dim, int) else list(dim)
        for d in dims if len(dims) == 1 else sorted(d % len(size) for d in dims):
            g = g.unsqueeze(d)
    return g.expand(size)


def _nll_loss(x, target, weight, reduction, ignore_index):
    number = reduction if isinstance(reduction, int) else ("none", "mean", "sum").index(reduction)
    overload = "nll_loss_forward.default" if x.dim() < 3 else "nll_loss2d_forward.default"
    return named(overload, x, target, weight, number, ignore_index)[0]


def _laid_out(x, layout):
    """A copy of a gradient that lies as the tensor it belongs to."""
    return named("new_empty_strided.default", x, list(x.shape), list(layout)).copy_(x)


def _strided(x, size, stride, offset):
    return named("as_strided.default", x, list(size), list(stride), offset)


# The copies that gradients of written views were taken from, by the gradient: what comes back is put there.
_copies: Any = None


def _pick(x, layout, size, stride, offset):
    global _copies
    if _copies is None:
        from rushlight.utils.weak import WeakIdKeyDictionary

        _copies = WeakIdKeyDictionary()
    whole = _laid_out(x, layout)
    part = _strided(whole, size, stride, offset)
    if not rushlight.is_grad_enabled():
        _copies[x] = whole, part, (layout, size, stride, offset)
    return named("clone.default", part, memory_format=rushlight.contiguous_format)


def _replace(x, part, layout, size, stride, offset):
    known = None if _copies is None else _copies.pop(x, None)
    if known is not None and known[2] == (layout, size, stride, offset):
        whole, place, _ = known
    else:
        whole = _laid_out(x, layout)
        place = _strided(whole, size, stride, offset)
    place.copy_(part)
    return whole


def _place(part, shape, layout, size, stride, offset):
    """The gradient of `as_strided`, whose elements have each a place of their own."""
    order = sorted((step, count) for count, step in zip(size, stride, strict=True) if count > 1)
    reach = 0
    for step, count in order:
        if step <= reach:
            return NotImplemented
        reach += step * (count - 1)
    if not all(size) or not all(shape):
        return NotImplemented
    end = 1 + sum(step * (count - 1) for count, step in zip(shape, layout, strict=True))
    memory = part.new_zeros(max(end, 1 + offset + reach))
    _strided(memory, size, stride, offset).copy_(part)
    return _strided(memory, shape, layout, 0)


def _isfinite(x):
    bounded = x.abs() != math.inf
    return (x == x) * bounded


COMPOSED: dict[str, Callable] = {
    "einsum_mm": lambda input, mat2: ops.bmm(input.unsqueeze(0), mat2.unsqueeze(0)).squeeze(0),
    "einsum_bmm": lambda input, mat2: ops.bmm(input, mat2),
    "matmul_nd_nh": lambda a, b: _matmul_nd(a, _mh(b)),
    "matmul_nd_hn": lambda a, b: _matmul_nd(_mh(a), b),
    "sum_to": _sum_to,
    "index_backward": lambda g, indices, shape: ops.index_put(g.new_zeros(shape), indices, g, True),
    "restore": _restore,
    "sin_backward": lambda a, b: a * b.cos(),
    "cos_backward": lambda a, b: a * -b.sin(),
    "max_pool1d": lambda *args: ops.max_pool1d_with_indices(*args)[0],
    "max_pool2d": lambda *args: ops.max_pool2d_with_indices(*args)[0],
    "max_pool3d": lambda *args: ops.max_pool3d_with_indices(*args)[0],
    "isfinite": _isfinite,
    "pick": _pick,
    "place": _place,
    "replace": _replace,
    "nll_loss": _nll_loss,
    "nll_loss2d": _nll_loss,
    "cumsum": _from_the_end("cumsum"),
    "cumprod": _from_the_end("cumprod"),
}


def shown(primitive: Any, args: tuple, in_place: bool) -> tuple[str, tuple, dict] | None:
    """(overload, arguments, keywords) of torch for a call of a primitive, or None."""
    name = primitive.__name__
    if in_place and name in SHOWN_IN_PLACE:
        return SHOWN_IN_PLACE[name](*args)
    if name in SPECS:
        spec = SPECS[name]
        result = spec.overload, *spec.shown(args)
    elif name in SHOWN:
        result = SHOWN[name](*args)
    else:
        return None
    if result is None or not in_place:
        return result
    op, _, overload = result[0].partition(".")
    return f"{op}_.{overload.removeprefix('Tensor_') if op == 'pow' else overload}", *result[1:]
