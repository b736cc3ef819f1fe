"""Samples of reductions, scans and matrix products."""

import math
from typing import Any

from families import AWAY, DTYPE64, op, reduction, x
from sampling import Input, call

# Reductions
reduction(
    "sum",
    covers=("sum_dim", "restore"),
    more=[call(x(3), dtype=DTYPE64, only="fib"), call(x(2, 3), 1, dtype=DTYPE64, only="fib"), call(x(0))],
)
reduction(
    "nansum",
    dtypes="fib",
    grad="f",
    more=[call(Input((3,), values=(1.0, math.nan, 2.0)), only="f", nograd=True)],
)
reduction("mean", dtypes="fc", covers=("mean_dim",), more=[call(x(3), dtype=DTYPE64, only="f")])
reduction("nanmean", dtypes="f", grad="f")
reduction(
    "prod",
    dims=False,
    covers=("prod_dim",),
    domain={"low": 0.5, "high": 1.6},
    more=[
        call(Input((4,), values=(0.0, 2.0, 3.0, 0.5))),
        call(Input((4,), values=(0.0, 2.0, 0.0, 0.5))),
        call(Input((2, 2), values=(0.0, 2.0, 3.0, 0.5)), 1),
        call(x(3), dtype=DTYPE64, only="fib"),
    ],
)
reduction(
    "amax",
    dtypes="fib",
    grad="f",
    distinct=True,
    more=[call(Input((4,), values=(1.0, 3.0, 3.0, 2.0)), nograd=True)],
    covers=("restore",),
)
reduction(
    "amin",
    dtypes="fib",
    grad="f",
    distinct=True,
    more=[call(Input((4,), values=(1.0, 3.0, 1.0, 2.0)), nograd=True)],
)
reduction(
    "max",
    dims=False,
    covers=("max_dim",),
    dtypes="fib",
    grad="f",
    distinct=True,
    more=[call(x(3, distinct=True), x(3, distinct=True, low=-1.3, high=1.7))],
)
reduction(
    "min",
    dims=False,
    covers=("min_dim",),
    dtypes="fib",
    grad="f",
    distinct=True,
    more=[call(x(3, distinct=True), x(3, distinct=True, low=-1.3, high=1.7))],
)
op(
    "aminmax",
    [
        call(x(3, 4, distinct=True)),
        call(x(3, 4, distinct=True), dim=1),
        call(x(2, 3, distinct=True), dim=0, keepdim=True),
    ],
    dtypes="fib",
    grad="f",
)
reduction("argmax", dims=False, dtypes="fi", grad="", distinct=True)
reduction("argmin", dims=False, dtypes="fi", grad="", distinct=True)
reduction("any", grad="")
reduction("all", grad="")
op(
    "count_nonzero",
    [
        call(x(3, 4, low=-1.4, high=1.4)),
        call(x(3, 4), 1),
        call(x(2, 3, 2), dim=(0, 2)),
        call(x()),
        call(x(0, 3), 0),
    ],
    grad="",
)
op("hash_tensor", [call(x(3, 4)), call(x(3, 4), 1), call(x(2, 3, 2), (0, 2), keepdim=True)],
   dtypes="fib", grad="")  # fmt: skip
for _name in ("var", "std"):
    _spread: dict[str, Any] = {"distinct": True}
    op(
        _name,
        [
            call(x(3, 4, **_spread)),
            call(x(3, 4, **_spread), 0),
            call(x(3, 4, **_spread), 1, keepdim=True),
            call(x(2, 3, 2, **_spread), (0, 2)),
            call(x(3, 4, **_spread), unbiased=False),
            call(x(3, 4, **_spread), 1, False),
            call(x(3, 4, **_spread), dim=0, correction=0),
            call(x(3, 4, **_spread), correction=2),
            call(x(3, 4, **_spread), dim=None, correction=1, keepdim=True),
        ],
        dtypes="fc",
        tolerance=4,
    )
    op(
        f"{_name}_mean",
        [
            call(x(3, 4, **_spread)),
            call(x(3, 4, **_spread), 0, keepdim=True),
            call(x(3, 4, **_spread), 1, correction=0),
        ],
        dtypes="fc",
        tolerance=4,
        method=False,
    )
op(
    "logsumexp",
    [
        call(x(3, 4), 0),
        call(x(3, 4), -1, keepdim=True),
        call(x(2, 3, 2), (0, 2)),
        call(x(), 0),
        call(x(0, 3), 1),
    ],
    dtypes="fcib",
    grad="fc",
)
op(
    "norm",
    [
        call(x(3, 4, **AWAY)),
        call(x(3, 4, **AWAY), 1),
        call(x(3, 4, **AWAY), 3.0),
        call(x(3, 4, **AWAY), 2, 1),
        call(x(3, 4, **AWAY), 2, -1, True),
        call(x(2, 3, 2, **AWAY), p=2, dim=(0, 2)),
        call(x(3, 4, distinct=True, **AWAY), float("inf"), 1),
        call(x(3, 4, distinct=True, **AWAY), float("-inf"), 1),
        call(x(5), 0, nograd=True),
        call(x(3, 4, **AWAY), "fro"),
        call(x(0, 3), 2, 1, nograd=True),
        call(x(**AWAY)),
    ],
    dtypes="fc",
    tolerance=4,
)
op(
    "linalg.vector_norm",
    [
        call(x(3, 4, **AWAY)),
        call(x(3, 4, **AWAY), 1),
        call(x(3, 4, **AWAY), 2.5, 1),
        call(x(3, 4, **AWAY), dim=(0, 1), keepdim=True),
        call(x(3, distinct=True, **AWAY), float("inf"), only="f"),
        call(x(3), 0, nograd=True),
    ],
    dtypes="fc",
    method=False,
    tolerance=4,
)
op("dist", [call(x(3, 4), x(3, 4)), call(x(3), x(3), 1), call(x(2, 3), x(3), 3.0)], dtypes="fc", tolerance=4)
op(
    "cumsum",
    [
        call(x(3, 4), 0),
        call(x(3, 4), -1),
        call(x(2, 3, 2), 1),
        call(x(), 0),
        call(x(0, 3), 0),
        call(x(3), 0, dtype=DTYPE64, only="fib"),
    ],
    inplace="fci",
)
op(
    "cumprod",
    [
        call(x(3, 4, **AWAY), 0),
        call(x(3, 4, **AWAY), -1),
        call(x(), 0),
        call(Input((4,), values=(2.0, 0.0, 3.0, 1.5)), 0),
        call(x(0, 3), 0),
    ],
    inplace="fci",
    tolerance=4,
)
op(
    "cummax",
    [
        call(x(3, 4, distinct=True), 0),
        call(x(3, 4, distinct=True), -1),
        call(Input((4,), values=(1.0, 1.0, 0.0, 1.0)), 0, nograd=True),
    ],
    dtypes="fib",
    grad="f",
)
op("cummin", [call(x(3, 4, distinct=True), 0), call(x(3, 4, distinct=True), -1)], dtypes="fib", grad="f")
op(
    "logcumsumexp",
    [call(x(3, 4), 0), call(x(3, 4), -1)],
    dtypes="fc",
    tolerance=4,
    covers=("logcumsumexp_backward", "logcumsumexp_tangent"),
)
op(
    "softmax",
    [
        call(x(3, 4), 0),
        call(x(3, 4), -1),
        call(x(2, 3, 2), 1),
        call(x(), 0),
        call(x(0, 3), 1),
        call(x(3), 0, dtype=DTYPE64, only="fib"),
    ],
    dtypes="f",
    grad="f",
    covers=("softmax_backward",),
)
op(
    "log_softmax",
    [
        call(x(3, 4), 0),
        call(x(3, 4), -1),
        call(x(2, 3, 2), 1),
        call(x(), 0),
        call(x(3), 0, dtype=DTYPE64, only="fib"),
    ],
    dtypes="f",
    grad="f",
    covers=("log_softmax_backward",),
)
op("trace", [call(x(3, 3)), call(x(2, 4)), call(x(0, 3))], dtypes="fci")
op("equal", [call(x(3), x(3)), call(x(2, 3), x(3))], grad="")
op("allclose", [call(x(3), x(3))], dtypes="fcib", grad="")
op(
    "isclose",
    [
        call(x(3), x(3)),
        call(x(3, 4), x(4), rtol=0.5, atol=0.1),
        call(
            Input((2,), values=(math.nan, 1.0)), Input((2,), values=(math.nan, 1.0)), equal_nan=True, only="f"
        ),
    ],
    grad="",
)

# Matrix products
PRODUCT: dict[str, Any] = {"dtypes": "fci", "grad": "fc", "tolerance": 4}
op(
    "matmul",
    [
        call(x(2, 3), x(3, 4)),
        call(x(3), x(3)),
        call(x(2, 3), x(3)),
        call(x(3), x(3, 2)),
        call(x(2, 2, 3), x(2, 3, 2)),
        call(x(2, 2, 3), x(3, 2)),
        call(x(2, 3), x(2, 3, 2)),
        call(x(2, 3), x(2, 3, 1)),
        call(x(1, 1, 3), x(2, 3, 2)),
        call(x(2, 1, 2, 3), x(3, 3, 2)),
        call(x(3), x(2, 3, 2)),
        call(x(2, 2, 3), x(3)),
        call(x(0, 3), x(3, 2)),
        call(x(2, 0), x(0, 2)),
        call(x(0), x(0)),
        call(x(2, 0, 3), x(3, 2)),
        call(x(2, 2, 0), x(2, 0, 3)),
    ],
    covers=("matmul_nd", "matmul_turned", "matmul_nd_nh", "matmul_nd_hn", "vecmat"),
    **PRODUCT,
)
op(
    "mm",
    [
        call(x(2, 3), x(3, 4)),
        call(x(1, 1), x(1, 1)),
        call(x(0, 3), x(3, 2)),
        call(x(2, 0), x(0, 2)),
        call(x(5, 4), x(4, 1)),
    ],
    covers=("mm_nh", "mm_hn", "einsum_mm"),
    **PRODUCT,
)
op(
    "bmm",
    [
        call(x(2, 2, 3), x(2, 3, 4)),
        call(x(1, 2, 3), x(1, 3, 1)),
        call(x(0, 2, 3), x(0, 3, 2)),
        call(x(2, 2, 0), x(2, 0, 3)),
    ],
    covers=("bmm_nh", "bmm_hn", "einsum_bmm"),
    **PRODUCT,
)
op("mv", [call(x(2, 3), x(3)), call(x(0, 3), x(3)), call(x(2, 0), x(0))], **PRODUCT)
op("dot", [call(x(3), x(3)), call(x(0), x(0)), call(x(1), x(1))], **PRODUCT)
op("vdot", [call(x(3), x(3)), call(x(0), x(0))], **PRODUCT)
op("inner", [call(x(3), x(3)), call(x(2, 3), x(4, 3)), call(x(2, 3), x(3)), call(x(2), x())], **PRODUCT)
op("outer", [call(x(3), x(2)), call(x(0), x(2))], **(PRODUCT | {"dtypes": "fcib"}))
op("ger", [call(x(3), x(2))], **(PRODUCT | {"dtypes": "fcib"}))
op(
    "addmm",
    [
        call(x(2, 4), x(2, 3), x(3, 4)),
        call(x(4), x(2, 3), x(3, 4)),
        call(x(2, 1), x(2, 3), x(3, 4), beta=2, alpha=3),
        call(x(), x(2, 3), x(3, 4), beta=0.5, alpha=1.5, only="fc"),
    ],
    **PRODUCT,
)
op("addmv", [call(x(2), x(2, 3), x(3)), call(x(1), x(2, 3), x(3), beta=2, alpha=3)], **PRODUCT)
op("addbmm", [call(x(2, 4), x(3, 2, 3), x(3, 3, 4))], **PRODUCT)
op(
    "baddbmm",
    [call(x(3, 2, 4), x(3, 2, 3), x(3, 3, 4)), call(x(4), x(3, 2, 3), x(3, 3, 4), beta=2, alpha=3)],
    **PRODUCT,
)
op(
    "addr",
    [call(x(3, 2), x(3), x(2)), call(x(2), x(3), x(2), beta=2, alpha=3, only="fci")],
    **(PRODUCT | {"dtypes": "fcib"}),
)
op(
    "tensordot",
    [
        call(x(2, 3), x(3, 2), dims=1),
        call(x(2, 3, 4), x(4, 3, 2), dims=([1, 2], [1, 0])),
        call(x(2), x(3), dims=0),
    ],
    method=False,
    **PRODUCT,
)
op(
    "einsum",
    [
        call("ij,jk->ik", x(2, 3), x(3, 4)),
        call("ij->ji", x(2, 3)),
        call("ii->i", x(3, 3)),
        call("ii", x(3, 3)),
        call("bij,bjk->bik", x(2, 2, 3), x(2, 3, 2)),
        call("i,j->ij", x(2), x(3)),
        call("...i,i->...", x(2, 3, 4), x(4)),
        call("ij", x(2, 3)),
        call("ij,ij->", x(2, 3), x(2, 3)),
    ],
    method=False,
    **PRODUCT,
)
op("kron", [call(x(2, 2), x(2, 3)), call(x(2), x(3))], **(PRODUCT | {"dtypes": "fcib"}))
