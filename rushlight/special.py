"""Special functions, under the names of torch.special."""

from __future__ import annotations

import rushlight
from rushlight import _C
from rushlight._kinds import make_builtin as _make_builtin
from rushlight.ops import special as _special
from rushlight.ops._facts import tell as _tell
from rushlight.ops._public import FUNCTIONS, invalid_combination, public, write_out
from rushlight.ops._public import under as _under

digamma = _under(rushlight.digamma, "digamma")
erf = _under(rushlight.erf, "erf")
erfc = _under(rushlight.erfc, "erfc")
erfinv = _under(rushlight.erfinv, "erfinv")
exp2 = _under(rushlight.exp2, "exp2")
expit = _under(rushlight.sigmoid, "expit")
expm1 = _under(rushlight.expm1, "expm1")
gammainc = _under(_special.igamma, "gammainc")
gammaincc = _under(_special.igammac, "gammaincc")
gammaln = _under(rushlight.lgamma, "gammaln")
i0 = _under(rushlight.i0, "i0")
log1p = _under(rushlight.log1p, "log1p")
logit = _under(rushlight.logit, "logit")
logsumexp = _under(rushlight.logsumexp, "logsumexp")
multigammaln = _under(_special.mvlgamma, "multigammaln")
polygamma = _under(_special.polygamma, "polygamma")
psi = _under(rushlight.digamma, "psi")
sinc = _under(rushlight.sinc, "sinc")
xlogy = _under(rushlight.xlogy, "xlogy")


@public(method=False, namespace=False)
def round(input, *, decimals=0, out=None):
    """The nearest whole numbers, or the nearest with this many decimals; of real and complex numbers only.

    >>> rushlight.special.round(rushlight.tensor([0.6, 1.5]))
    tensor([1., 2.])
    """
    return FUNCTIONS["round"](input, decimals=decimals, out=out)


@public(method=False, namespace=False)
def softmax(input, dim, dtype=None):
    """exp(input), scaled to sum to 1 along dim.

    >>> rushlight.special.softmax(rushlight.tensor([0., 0.]), 0)
    tensor([0.5000, 0.5000])
    """
    return FUNCTIONS["softmax"](input, dim, dtype=dtype)


@public(method=False, namespace=False)
def log_softmax(input, dim, *, dtype=None):
    """The logarithm of softmax.

    >>> rushlight.special.log_softmax(rushlight.tensor([0., 0.]), 0)
    tensor([-0.6931, -0.6931])
    """
    return FUNCTIONS["log_softmax"](input, dim, dtype=dtype)


def _unary(name: str, doc: str, x: float, shown: str, op=None):
    op = op or getattr(_C.ops, name)

    def function(input, *, out=None):
        return op(input) if out is None else write_out(out, op(input), writer=f"special_{name}")

    return _named(function, name, f"{doc}\n\n    >>> rushlight.special.{name}(rushlight.tensor([{x}]))"
                  f"\n    tensor([{shown}])\n    ")  # fmt: skip


def _binary(name: str, doc: str, x: float, y: float, shown: str):
    op = getattr(_C.ops, name)

    def function(input, other, *, out=None):
        _check_one_tensor(name, input, other, "input", "other")
        return op(input, other) if out is None else write_out(out, op(input, other))

    return _named(function, name, f"{doc}\n\n    >>> rushlight.special.{name}(rushlight.tensor([{x}]), {y})"
                  f"\n    tensor([{shown}])\n    ")  # fmt: skip


def _check_one_tensor(name, a, b, first, second):
    if isinstance(a, _C.Tensor) or isinstance(b, _C.Tensor):
        return
    forms = (f"Tensor {first}, Tensor {second}", f"Number {first}, Tensor {second}",
             f"Tensor {first}, Number {second}")  # fmt: skip
    raise invalid_combination(f"special_{name}", (a, b), *(f"{form}, *, Tensor out = None" for form in forms))


def _polynomial(name: str, doc: str, x: float, n: int, shown: str):
    op = getattr(_C.ops, name)

    def function(input, n, *, out=None):
        _check_one_tensor(name, input, n, "x", "n")
        return op(input, n) if out is None else write_out(out, op(input, n))

    return _named(function, name, f"{doc}\n\n    >>> rushlight.special.{name}(rushlight.tensor([{x}]), {n})"
                  f"\n    tensor([{shown}])\n    ")  # fmt: skip


def _named(function, name, doc):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return public(function, method=False, namespace=False)


xlog1py = _binary("xlog1py", "input * log1p(other), and 0 where input is 0.", 2.0, 1.0, "1.3863")
zeta = _binary("zeta", "Hurwitz's zeta function, the sum of (other + k) ** -input.", 2.0, 1.0, "1.6449")
entr = _unary("entr", "-x log(x): 0 at 0, -inf below.", 0.5, "0.3466")
erfcx = _unary("erfcx", "exp(x ** 2) * erfc(x).", 1.0, "0.4276")
ndtr = _unary("ndtr", "The area below x of the standard normal density.", 0.0, "0.5000", _special.ndtr)
log_ndtr = _unary("log_ndtr", "The logarithm of ndtr, exact also far below 0.", -10.0, "-53.2313")
ndtri = _unary("ndtri", "The inverse of ndtr.", 0.975, "1.9600")
i0e = _unary("i0e", "exp(-|x|) i0(x).", 1.0, "0.4658")
i1 = _unary("i1", "The modified Bessel function of the first kind, order 1.", 1.0, "0.5652")
i1e = _unary("i1e", "exp(-|x|) i1(x).", 1.0, "0.2079")
airy_ai = _unary("airy_ai", "The Airy function Ai.", 0.0, "0.3550")
bessel_j0 = _unary("bessel_j0", "The Bessel function of the first kind, order 0.", 1.0, "0.7652")
bessel_j1 = _unary("bessel_j1", "The Bessel function of the first kind, order 1.", 1.0, "0.4401")
bessel_y0 = _unary("bessel_y0", "The Bessel function of the second kind, order 0.", 1.0, "0.0883")
bessel_y1 = _unary("bessel_y1", "The Bessel function of the second kind, order 1.", 1.0, "-0.7812")
modified_bessel_i0 = _unary(
    "modified_bessel_i0", "The modified Bessel function of the first kind, order 0.", 1.0, "1.2661"
)
modified_bessel_i1 = _unary(
    "modified_bessel_i1", "The modified Bessel function of the first kind, order 1.", 1.0, "0.5652"
)
modified_bessel_k0 = _unary(
    "modified_bessel_k0", "The modified Bessel function of the second kind, order 0.", 1.0, "0.4210"
)
modified_bessel_k1 = _unary(
    "modified_bessel_k1", "The modified Bessel function of the second kind, order 1.", 1.0, "0.6019"
)
scaled_modified_bessel_k0 = _unary(
    "scaled_modified_bessel_k0", "exp(x) times the modified Bessel function K0.", 1.0, "1.1445"
)
scaled_modified_bessel_k1 = _unary(
    "scaled_modified_bessel_k1", "exp(x) times the modified Bessel function K1.", 1.0, "1.6362"
)
spherical_bessel_j0 = _unary("spherical_bessel_j0", "sin(x) / x.", 1.0, "0.8415")
chebyshev_polynomial_t = _polynomial(
    "chebyshev_polynomial_t", "Chebyshev's polynomial of the first kind, degree n.", 0.5, 3, "-1."
)
chebyshev_polynomial_u = _polynomial(
    "chebyshev_polynomial_u", "Chebyshev's polynomial of the second kind, degree n.", 0.5, 3, "-1."
)
chebyshev_polynomial_v = _polynomial(
    "chebyshev_polynomial_v", "Chebyshev's polynomial of the third kind, degree n.", 0.5, 3, "-1."
)
chebyshev_polynomial_w = _polynomial(
    "chebyshev_polynomial_w", "Chebyshev's polynomial of the fourth kind, degree n.", 0.5, 3, "-1."
)
shifted_chebyshev_polynomial_t = _polynomial(
    "shifted_chebyshev_polynomial_t", "chebyshev_polynomial_t of 2x - 1.", 1.0, 3, "1."
)
shifted_chebyshev_polynomial_u = _polynomial(
    "shifted_chebyshev_polynomial_u", "chebyshev_polynomial_u of 2x - 1.", 1.0, 3, "4."
)
shifted_chebyshev_polynomial_v = _polynomial(
    "shifted_chebyshev_polynomial_v", "chebyshev_polynomial_v of 2x - 1.", 1.0, 3, "1."
)
shifted_chebyshev_polynomial_w = _polynomial(
    "shifted_chebyshev_polynomial_w", "chebyshev_polynomial_w of 2x - 1.", 1.0, 3, "7."
)
hermite_polynomial_h = _polynomial(
    "hermite_polynomial_h", "Hermite's polynomial as physicists write it, degree n.", 1.0, 3, "-4."
)
hermite_polynomial_he = _polynomial(
    "hermite_polynomial_he", "Hermite's polynomial as statisticians write it, degree n.", 1.0, 3, "-2."
)
laguerre_polynomial_l = _polynomial(
    "laguerre_polynomial_l", "Laguerre's polynomial, degree n.", 1.0, 2, "-0.5000"
)
legendre_polynomial_p = _polynomial("legendre_polynomial_p", "Legendre's polynomial, degree n.", 1.0, 2, "1.")

_tell(globals())
round.node_name = "RoundBackward1"

_make_builtin([_value for _name, _value in globals().items() if not _name.startswith("_")])
