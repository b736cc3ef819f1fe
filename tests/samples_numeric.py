"""Samples of calculus, distances, histograms, torch.masked, and other forms of operations."""

from typing import Any

from families import POSITIVE, const, index, mask, mutating, op, x
from sampling import Input, call

INF = float("inf")


def plain(name: str, samples: list[Any], **properties: Any) -> None:
    op(name, samples, **({"method": False} | properties))


# Integrals and slopes
for _name in ("trapezoid", "cumulative_trapezoid"):
    plain(
        _name,
        [
            call(x(3, 4)),
            call(x(3, 4), x(4)),
            call(x(3, 4), x(3), dim=0),
            call(x(3, 4), x(3, 4), dim=1),
            call(x(2, 3, 4), dx=0.5, dim=1),
            call(x(2, 1)),
            call(x(2, 0), nograd=True),
        ],
        dtypes="fci",
    )
plain("trapz", [call(x(3, 4)), call(x(3, 4), x(4)), call(x(5), dx=2.0)], dtypes="fci")
plain(
    "gradient",
    [
        call(x(5)),
        call(x(3, 4)),
        call(x(3, 4), dim=1, edge_order=2),
        call(x(3, 4), spacing=0.5),
        call(x(4, 5), spacing=[2.0, 0.5], edge_order=2, dim=(1, 0)),
        call(x(4, 3), spacing=(Input((4,), values=(0.0, 1.0, 3.0, 4.0), grad=False),), dim=0, only="fc"),
        call(
            x(5),
            spacing=(Input((5,), values=(0.0, 1.0, 3.0, 4.0, 7.0), grad=False),),
            edge_order=2,
            only="fc",
        ),
    ],
    dtypes="fcz",
    strict=False,
    tolerance=2.0,
)

# Distances
plain(
    "cdist",
    [
        call(x(3, 4), x(2, 4)),
        *(call(x(3, 4), x(2, 4), p) for p in (0.0, 0.5, 1.0, 1.5, 3.0, INF)),
        call(x(2, 1, 3, 2), x(4, 5, 2)),
        call(x(3, 4), x(2, 4), compute_mode="use_mm_for_euclid_dist"),
        call(x(2, 3), x(30, 3)),
        call(x(0, 3), x(2, 3)),
        call(x(2, 0), x(3, 0)),
    ],
    dtypes="s",
    strict=False,
    grad="f",
    covers=("cdist_backward", "once"),
    tolerance=100.0,
    same_strides=False,
)
plain(
    "pdist",
    [call(x(4, 3)), *(call(x(4, 3), p) for p in (0.0, 0.5, 1.0, 3.0, INF)), call(x(1, 3)), call(x(3, 0))],
    dtypes="s",
    strict=False,
    grad="f",
    covers=("pdist_backward",),
    tolerance=10.0,
)
op(
    "renorm",
    [
        call(x(3, 4), 2, 0, 1.0),
        call(x(3, 4), 1, 1, 0.5),
        call(x(2, 3, 2), 2.0, -1, 3),
        call(x(3, 4), INF, 0, 1.0),
    ],
    dtypes="fc",
    inplace=True,
    tolerance=10.0,
)

plain("nn.functional.pdist", [call(x(4, 3)), call(x(4, 3), 1)], dtypes="s", strict=False, grad="f")

# Bags of rows, and a loss over a linear layer
_BAGS = index(0, 2, 5, 2, 1, 4, shape=(3, 2))
_FLAT, _STARTS = index(0, 2, 5, 2, 1), index(0, 2, 2)
plain(
    "nn.functional.embedding_bag",
    [
        *(call(_BAGS, x(6, 3, distinct=True), mode=mode) for mode in ("mean", "sum", "max")),
        *(call(_FLAT, x(6, 3, distinct=True), _STARTS, mode=mode) for mode in ("mean", "sum", "max")),
        call(_FLAT, x(6, 3), _STARTS, mode="sum", per_sample_weights=x(5)),
        call(_FLAT, x(6, 3), index(0, 2, 5), include_last_offset=True),
        call(_FLAT, x(6, 3), _STARTS, padding_idx=2),
        call(index(shape=(0, 2)), x(6, 3)),
        call(index(shape=(2, 0)), x(6, 3), mode="sum"),
        call(_FLAT, x(6, 3, distinct=True), _STARTS, padding_idx=2, mode="max"),
    ],
    covers=("bag_sum",),
    dtypes="f",
    grad="f",
    same_strides=False,
    strict=False,
    tolerance=2.0,
)
plain(
    "nn.functional.linear_cross_entropy",
    [
        call(x(3, 4), x(5, 4), index(0, 4, 2)),
        call(
            x(3, 4), x(5, 4), index(0, 4, 2), linear_bias=x(5), weight=const(5, **POSITIVE), reduction="sum"
        ),
        call(x(3, 4), x(5, 2, 4), index(0, 4, 2, 1, 1, 3, shape=(3, 2)), reduction="none"),
        call(x(3, 4), x(5, 4), index(0, -100, 2), label_smoothing=0.1),
    ],
    dtypes="f",
    grad="f",
    same_strides=False,
    strict=False,
    tolerance=4.0,
)

plain(
    "segment_reduce",
    [
        *(call(x(5, 2, distinct=True), how, lengths=index(1, 0, 4), nograd=how in ("max", "min", "mean"))
          for how in ("sum", "mean", "prod", "max", "min")),
        *(call(x(5, distinct=True), how, offsets=index(0, 2, 5)) for how in ("sum", "mean", "prod", "max")),
        call(x(2, 4, 2), "sum", lengths=index(1, 3, 2, 2, shape=(2, 2)), axis=1),
        call(x(5, 2, distinct=True), "max", lengths=index(1, 0, 4), initial=0.5),
        call(x(5), "sum", lengths=index(1, 2), unsafe=True),
    ],
    dtypes="f",
    grad="f",
    strict=False,
    tolerance=4.0,
)  # fmt: skip

# Histograms
op(
    "histc",
    [
        call(x(20), only="s"),
        call(x(20), 5),
        call(x(4, 5), bins=6, min=-1, max=1.5),
        call(x(0), 3),
        call(const(3, low=1, high=1), 4),
    ],
    dtypes="f",
    grad="",
)
op(
    "histogram",
    [
        call(x(20), 5),
        call(x(20), 5, range=(-1.0, 1.0)),
        call(x(4, 5), 3, weight=x(4, 5), density=True),
        call(x(20), Input((4,), values=(-1.0, 0.0, 0.5, 2.0))),
    ],
    dtypes="s",
    strict=False,
    grad="",
)
plain(
    "histogramdd",
    [
        call(x(9, 2), [3, 2]),
        call(x(9, 3), 2, weight=x(9)),
        call(x(9, 2), 2, range=[-1.0, 1.0, 0.0, 2.0], density=True),
        call(x(9, 2), [Input((3,), values=(-1.0, 0.0, 2.0)), Input((2,), values=(-1.0, 1.0))]),
    ],
    dtypes="s",
    strict=False,
    grad="",
)

# Powers of two, indices and sizes
op(
    "frexp",
    [call(x(3, 4)), call(x()), call(x(0)), call(Input((4,), values=(0.0, -6.0, 1e-5, 1.0)), nograd=True)],
    dtypes="f",
    grad="f",
)
op(
    "ldexp",
    [call(x(3, 4), index(1, 2, 3, 0)), call(x(3), x(3)), call(x(2, 1), x(3))],
    dtypes="fcib",
    grad="fc",
    inplace="fc",
    strict=False,
)
plain(
    "unravel_index",
    [
        call(index(0, 5, 7), (2, 4)),
        call(index(3, shape=()), 6),
        call(index(1, 2, 3, 4, shape=(2, 2)), (3, 2, 1)),
    ],
    grad="",
    same_strides=False,
    strict=False,
)
op("nonzero_static", [call(x(5), size=3), call(x(2, 3), size=8, fill_value=7), call(x(), size=2)], grad="")
op(
    "Tensor.sum_to_size",
    [call(x(3, 4), 1, 4), call(x(2, 3), (3,)), call(x(2, 3), 2, 3), call(x(3), ())],
    strict=False,
)
plain(
    "vander",
    [call(x(4)), call(x(3), 2), call(x(3), N=5, increasing=True), call(x(2), 0, nograd=True)],
    strict=False,
    dtypes="fciz",
    grad="fc",
)
plain(
    "norm_except_dim",
    [call(x(3, 4), 2, 0), call(x(3, 4), 2, 1), call(x(3, 4), 2, -1), call(x(2, 3, 4), 1, 1)],
    dtypes="fc",
    tolerance=4.0,
)
plain(
    "frobenius_norm",
    [call(x(3, 4), 1), call(x(3, 4), (0, 1)), call(x(3, 4), 0, True)],
    dtypes="fc",
    tolerance=4.0,
)

# Other forms
plain("alias_copy", [call(x(3, 4)), call(x())])
plain("detach_copy", [call(x(3, 4)), call(x())], grad="")
plain("slice_copy", [call(x(3, 4)), call(x(3, 4), 1, 1, 3), call(x(5), 0, -4, None, 2)], grad="f")
op("Tensor.narrow_copy", [call(x(3, 4), 1, 1, 2)])
for _name in ("unsafe_chunk", "unsafe_split"):
    op(_name, [call(x(5, 2), 2), call(x(3, 4), 3, 1)], same_strides=False)
op("unsafe_split_with_sizes", [call(x(5, 2), [2, 3]), call(x(3, 4), [1, 3], dim=1)], same_strides=False)
plain(
    "native_dropout",
    [call(x(3, 4), 0.0, True), call(x(3, 4), 0.5, False), call(x(0), 0.5, True, nograd=True)],
    dtypes="f",
    grad="f",
    strict=False,
)
op(
    "native_dropout_backward",
    [call(x(3), mask(1, 0, 1), 2.0)],
    dtypes="f",
    grad="f",
    method=False,
    strict=False,
    run=lambda lib: getattr(lib, "native_dropout_backward", None) or lib.ops.aten.native_dropout_backward,
)
mutating(
    "Tensor.fill_diagonal_",
    [
        call(x(3, 3), 1),
        call(x(2, 5), 0.0),
        call(x(7, 3), 2, wrap=True),
        call(x(7, 3), 2),
        call(x(2, 2, 2), 1),
    ],
    strict=False,
)

# torch.masked
_SOME = mask(1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 1, shape=(3, 4))
_ROW = mask(1, 0, 1, 1)


def masked(name: str, samples: list[Any], **properties: Any) -> None:
    op(f"masked.{name}", samples, **({"method": False, "strict": False, "tolerance": 10.0} | properties))


def masked_reduction(name: str, *before: Any, domain: Any = (), **properties: Any) -> None:
    inputs = dict(domain)
    masked(
        name,
        [
            call(x(3, 4, **inputs), *before, mask=_SOME),
            call(x(3, 4, **inputs), *before, 1, mask=_ROW),
            call(x(3, 4, **inputs), *before, (0, 1), keepdim=True, mask=_SOME),
            call(x(3, 4, **inputs), *before, dim=0),
            call(x(2, 3, 4, **inputs), *before, dim=(0, 2), mask=_SOME),
        ],
        **properties,
    )


masked_reduction("sum")
masked_reduction("prod", domain=POSITIVE)
masked_reduction("mean", dtypes="fc")
masked_reduction("amax", domain={"distinct": True}, dtypes="fi", grad="f")
masked_reduction("amin", domain={"distinct": True}, dtypes="fi", grad="f")
masked_reduction("norm", 2.0, dtypes="fc", second=False)
masked_reduction("var", dtypes="fci")
masked_reduction("std", dtypes="fci")
masked_reduction("logsumexp", dtypes="f", grad="f")
for _name in ("argmax", "argmin"):
    masked(
        _name,
        [call(x(3, 4, distinct=True), 1, mask=_SOME), call(x(3, 4, distinct=True), mask=_ROW)],
        dtypes="fi",
        grad="",
    )
masked(
    "median",
    [
        call(x(3, 5, distinct=True), 1, mask=mask(1, 0, 1, 1, 1)),
        call(x(3, 4, distinct=True), 0, keepdim=True),
    ],
    dtypes="f",
    grad="f",
    layouts=(),
)
for _name in ("cumsum", "cumprod"):
    masked(_name, [call(x(3, 4), 1, mask=_SOME), call(x(3, 4), 0, mask=_ROW), call(x(3, 4), 1)], dtypes="fci")
for _name in ("softmax", "log_softmax", "softmin"):
    masked(
        _name,
        [call(x(3, 4), 1, mask=_SOME, nograd=_name == "log_softmax"), call(x(3, 4), 0)],
        dtypes="f",
        grad="f",
    )
masked("normalize", [call(x(3, 4), 2.0, 1, mask=_SOME), call(x(3, 4), 1.0, 0)], dtypes="fc", second=False)
masked(
    "logaddexp",
    [call(x(3, 4), x(3, 4)), call(x(3, 4), x(3, 4), input_mask=_SOME, other_mask=_ROW, nograd=True)],
    dtypes="f",
    grad="f",
    second=False,
)
