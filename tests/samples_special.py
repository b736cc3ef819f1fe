"""Samples of special functions."""

import math
from typing import Any

from families import INSIDE, POSITIVE, binary, const, op, unary, x
from sampling import call


def special(name: str, reference: Any = None, **properties: Any) -> None:
    unary(
        f"special.{name}",
        reference,
        **({"dtypes": "sib", "grad": "f", "method": False} | properties),
    )


special("entr", lambda x: -x * math.log(x), **POSITIVE, dtypes="fib")
special("erfcx", lambda x: math.exp(x * x) * math.erfc(x))
special("ndtr", lambda x: math.erfc(-x / math.sqrt(2)) / 2, dtypes="fib")
special("log_ndtr", lambda x: math.log(math.erfc(-x / math.sqrt(2)) / 2), more=[call(x(3, low=-9, high=-5))])
special("ndtri", low=0.02, high=0.98)
special("i0e", dtypes="fib", avoid=(0,), more=[call(x(3, low=15, high=25))])
special("i1", dtypes="fib", more=[call(x(3, low=15, high=25))])
special("i1e", dtypes="fib", avoid=(0,), more=[call(x(3, low=15, high=25))])
for _name in (
    "airy_ai", "bessel_j0", "bessel_j1", "modified_bessel_i0", "modified_bessel_i1", "spherical_bessel_j0",
):  # fmt: skip
    special(_name, grad="", low=-12, high=12)
for _name in (
    "bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
):  # fmt: skip
    special(_name, grad="", low=0.1, high=25)
for _name in (
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
    "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he",
    "laguerre_polynomial_l", "legendre_polynomial_p",
):  # fmt: skip
    op(
        f"special.{_name}",
        [
            call(x(3, 4), 5),
            call(x(3, 1), const(4, low=0, high=11)),
            *(call(x(5), degree) for degree in (-1, 0, 1)),
            call(x(0), 2),
            call(x(6, **INSIDE), 12),
            call(x(2, values=(1, -1)), 3),
        ],
        dtypes="sib",
        grad="",
        method=False,
    )
binary(
    "special.zeta",
    dtypes="sib",
    left={"low": 1.5, "high": 4.0, "grad": False},
    right=POSITIVE,
    scalars=(),
    grad="f",
    method=False,
    more=[call(const(3, low=2, high=4), x(3, low=10, high=40))],
)
for _name in ("igamma", "igammac"):
    binary(
        _name,
        dtypes="f",
        left=POSITIVE | {"grad": False},
        right=POSITIVE,
        scalars=(),
        grad="f",
        inplace=True,
        more=[
            call(const(3, low=30, high=90), x(3, low=50, high=60)),
            call(const(3, low=0.01, high=0.1), x(3, low=0.01, high=0.9)),
        ],
    )
op(
    "polygamma",
    [call(n, x(3, 4, **POSITIVE)) for n in range(5)] + [call(1, x(4, low=-0.9, high=-0.1)), call(2, x(0))],
    dtypes="fib",
    grad="f",
    tolerance=10.0,
    method=False,
)
op(
    "mvlgamma",
    [call(x(3, 4, low=1, high=4), 1), call(x(3, low=2, high=4), 3), call(x(low=3, high=5), 5)],
    dtypes="fi",
    grad="f",
    inplace=True,
)
