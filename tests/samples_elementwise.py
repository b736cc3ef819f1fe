"""Samples of the elementwise operations and the operators."""

import cmath
import math

from families import AWAY, INSIDE, POSITIVE, binary, comparison, mask, op, unary, x
from sampling import Input, call

# Elementwise, one operand

unary("abs", abs, avoid=(0.0,), inplace="fi", dtypes="fci")
unary("absolute", abs, avoid=(0.0,), inplace="fi", dtypes="fci")
unary("neg", lambda v: -v, inplace=True, dtypes="fci")
unary("negative", lambda v: -v, inplace=True, dtypes="fci")
unary("positive", lambda v: v, dtypes="fci")
unary("sign", lambda v: (v > 0) - (v < 0), avoid=(0.0,), inplace=True, dtypes="fib", grad="f")
unary("sgn", inplace=True, avoid=(0.0,))
unary("square", lambda v: v * v, inplace=True)
unary("exp", cmath.exp, inplace=True)
unary("exp2", lambda v: 2**v, inplace=True)
unary("expm1", lambda v: cmath.exp(v) - 1, inplace=True)
unary("log", cmath.log, **POSITIVE, inplace=True)
unary("log2", lambda v: cmath.log(v, 2), **POSITIVE, inplace=True)
unary("log10", cmath.log10, **POSITIVE, inplace=True)
unary("log1p", lambda v: cmath.log(1 + v), low=-0.8, high=2.0, inplace=True)
unary("sqrt", cmath.sqrt, **POSITIVE, inplace=True)
unary("rsqrt", lambda v: 1 / cmath.sqrt(v), **POSITIVE, inplace=True)
unary("reciprocal", lambda v: 1 / v, avoid=(0.0,), low=0.3, high=3.0, inplace=True)
unary("sin", cmath.sin, inplace=True, covers=("sin_backward",))
unary("cos", cmath.cos, inplace=True, covers=("cos_backward",))
unary("tan", cmath.tan, low=-1.2, high=1.2, inplace=True)
unary("asin", cmath.asin, **INSIDE, inplace=True)
unary("acos", cmath.acos, **INSIDE, inplace=True)
unary("atan", cmath.atan, **INSIDE, inplace=True)
unary("arcsin", cmath.asin, **INSIDE, inplace=True)
unary("arccos", cmath.acos, **INSIDE, inplace=True)
unary("arctan", cmath.atan, **INSIDE, inplace=True)
unary("sinh", cmath.sinh, inplace=True)
unary("cosh", cmath.cosh, inplace=True)
unary("tanh", cmath.tanh, low=-1.2, high=1.2, inplace=True, covers=("tanh_backward",))
unary("asinh", cmath.asinh, low=-0.9, high=0.9, inplace=True)
unary("acosh", cmath.acosh, low=1.2, high=4.0, inplace=True)
unary("atanh", cmath.atanh, **INSIDE, inplace=True)
unary("arcsinh", cmath.asinh, **INSIDE, inplace=True)
unary("arccosh", cmath.acosh, low=1.2, high=4.0, inplace=True)
unary("arctanh", cmath.atanh, **INSIDE, inplace=True)
unary("sigmoid", lambda v: 1 / (1 + cmath.exp(-v)), inplace=True, covers=("sigmoid_backward",))
unary("erf", math.erf, inplace=True, dtypes="fib", grad="f")
unary("erfc", math.erfc, inplace=True, dtypes="fib", grad="f")
unary("erfinv", None, **INSIDE, inplace=True, dtypes="fib", grad="f")
unary("lgamma", math.lgamma, **POSITIVE, inplace=True, dtypes="fib", grad="f")
unary("digamma", None, **POSITIVE, inplace=True, dtypes="fib", grad="f")
unary("sinc", None, low=0.2, high=0.9, inplace=True)
unary("i0", None, inplace=True, dtypes="fib", grad="f")
unary("deg2rad", math.radians, inplace=True, dtypes="fib", grad="f")
unary("rad2deg", math.degrees, inplace=True, dtypes="fib", grad="f")
unary("floor", math.floor, avoid=(-1, 0, 1), inplace=True, dtypes="fi", grad="f")
unary("ceil", math.ceil, avoid=(-1, 0, 1), inplace=True, dtypes="fi", grad="f")
unary("trunc", math.trunc, avoid=(-1, 0, 1), inplace=True, dtypes="fi", grad="f")
unary("fix", math.trunc, avoid=(-1, 0, 1), inplace=True, dtypes="fi", grad="f")
unary(
    "round",
    None,
    avoid=(-1.5, -0.5, 0.5, 1.5),
    inplace=True,
    dtypes="fi",
    grad="f",
    more=[
        call(Input((4,), values=(0.5, 1.5, 2.5, -0.5)), only="f", nograd=True),
        call(x(3), decimals=1, only="f", nograd=True),
    ],
    covers=("round_decimals",),
)
unary("frac", lambda v: v - math.trunc(v), avoid=(-1, 0, 1), inplace=True, dtypes="f", grad="f")
unary("relu", lambda v: max(v, 0), avoid=(0.0,), inplace=True, dtypes="fi", grad="f")
unary(
    "logit",
    lambda v: math.log(v / (1 - v)),
    low=0.1,
    high=0.9,
    inplace=True,
    dtypes="fib",
    grad="f",
    covers=("choose",),
)
unary(
    "nan_to_num",
    None,
    inplace=True,
    grad="f",
    more=[
        call(Input((4,), values=(math.nan, math.inf, -math.inf, 1.0)), only="f", nograd=True),
        call(
            Input((3,), values=(math.nan, math.inf, -math.inf)),
            nan=1.0,
            posinf=2.0,
            neginf=-3.0,
            only="f",
            nograd=True,
        ),
    ],
)
# The negative view has no samples of its own: tests/test_lazy_views.py gives it to every operation.
unary("conj", lambda v: complex(v).conjugate(), view=True, covers=("conj_view", "neg_view"))
unary("resolve_conj")
unary("resolve_neg")
unary("conj_physical", lambda v: complex(v).conjugate(), inplace=True)
unary("real", view=True, method=False)
unary("imag", dtypes="c", grad="c", view=True, method=False)
unary("view_as_real", dtypes="c", grad="c", view=True, method=False)
# There is no complex number of half floats here.
REAL = "scib"
op(
    "view_as_complex",
    [call(x(*shape), only=REAL) for shape in ((3, 2), (2, 2, 2), (0, 2))],
    dtypes="s",
    grad="f",
    method=False,
    view=True,
    layouts=(),
)
op(
    "complex",
    [call(x(3), x(3), only=REAL), call(x(2, 1), x(3), only=REAL)],
    dtypes="s",
    grad="f",
    method=False,
)
op("polar", [call(x(3, low=0.5, high=2.0), x(3))], dtypes="s", grad="f", method=False)
unary("angle", None, avoid=(0.0,))
unary("clone", lambda v: v)
op("Tensor.detach", [call(x(3, 4)), call(x())], grad="", view=True)
unary("isnan", None, grad="", more=[call(Input((3,), values=(math.nan, 1.0, math.inf)), only="fc")])
unary("isinf", None, grad="", more=[call(Input((3,), values=(math.nan, 1.0, -math.inf)), only="fc")])
unary("isfinite", None, grad="", more=[call(Input((3,), values=(math.nan, 1.0, math.inf)), only="fc")])
unary(
    "isposinf",
    None,
    grad="",
    dtypes="fib",
    more=[call(Input((3,), values=(-math.inf, 1.0, math.inf)), only="f")],
)
unary(
    "isneginf",
    None,
    grad="",
    dtypes="fib",
    more=[call(Input((3,), values=(-math.inf, 1.0, math.inf)), only="f")],
)
unary("isreal", None, grad="")
unary("signbit", None, grad="", dtypes="fib", more=[call(Input((2,), values=(-0.0, 0.0)), only="f")])
unary("logical_not", lambda v: not v, grad="", inplace=True)
unary("bitwise_not", lambda v: ~v, grad="", dtypes="ib", inplace=True)

# Elementwise, two operands

binary(
    "add",
    lambda a, b: a + b,
    inplace=True,
    more=[call(x(3), x(3), alpha=2, only="fci"), call(x(3), 2.5, alpha=0.5, only="fc")],
    covers=("add_alpha",),
)
binary(
    "sub",
    lambda a, b: a - b,
    inplace=True,
    dtypes="fci",
    more=[call(x(2, 2), x(2), alpha=3)],
    covers=("sub_alpha",),
)
binary("subtract", lambda a, b: a - b, inplace=True, dtypes="fci")
binary(
    "rsub",
    lambda a, b: b - a,
    dtypes="fci",
    method=False,
    more=[call(x(3), 1.0, alpha=2, only="fc")],
    covers=("rsub_number",),
)
binary("mul", lambda a, b: a * b, inplace=True)
binary("multiply", lambda a, b: a * b, inplace=True)
binary(
    "div",
    lambda a, b: a / b,
    inplace=True,
    right=AWAY,
    more=[
        call(x(3, low=-5, high=5), x(3, **AWAY), rounding_mode="floor", only="fi", nograd=True),
        call(x(3, low=-5, high=5), x(3, **AWAY), rounding_mode="trunc", only="fi", nograd=True),
        call(x(3), 2, rounding_mode=None),
    ],
    covers=("div_trunc", "div_floor"),
)
binary("divide", lambda a, b: a / b, inplace=True, right=AWAY)
binary("true_divide", lambda a, b: a / b, inplace=True, right=AWAY)
binary("floor_divide", lambda a, b: a // b, inplace=True, right=AWAY, dtypes="fi", grad="")
binary(
    "remainder",
    lambda a, b: a % b,
    inplace=True,
    left={"low": -5, "high": 5},
    right={"low": 0.7, "high": 3.0},
    dtypes="fi",
    grad="f",
)
binary(
    "fmod",
    lambda a, b: math.fmod(a, b),
    inplace=True,
    left={"low": -5, "high": 5},
    right={"low": 0.7, "high": 3.0},
    dtypes="fi",
    grad="f",
)
binary(
    "pow",
    lambda a, b: a**b,
    left={"low": 0.4, "high": 2.0},
    right={"low": 0.3, "high": 2.0},
    inplace=True,
    scalars=(2, 0.5, 0, 1, 3),
    dtypes="fci",
    more=[
        call(2.0, x(3), only="fc"),
        call(3, x(2, 2, low=0.0)),
        call(x(3, avoid=(0.0,)), 2),
        call(x(3, **AWAY), -1.5, only="fc"),
    ],
    same_strides=False,
    covers=("pow_scalar", "scalar_pow"),
)
binary("float_power", None, left={"low": 0.4, "high": 2.0}, right={"low": 0.3, "high": 2.0}, scalars=(2, 0.5))
for name, function in {"maximum": max, "minimum": min, "fmax": max, "fmin": min}.items():
    binary(
        name,
        function,
        scalars=(),
        left={"distinct": True},
        right={"distinct": True, "low": -1.93, "high": 1.91},
        dtypes="fib",
        grad="f",
    )
binary("atan2", math.atan2, scalars=(), right=AWAY, inplace=True, dtypes="fib", grad="f")
binary("arctan2", math.atan2, scalars=(), right=AWAY, inplace=True, dtypes="fib", grad="f")
binary("hypot", math.hypot, scalars=(), right=AWAY, inplace=True, dtypes="f", grad="f")
binary(
    "copysign",
    math.copysign,
    scalars=(2, -1.5),
    left=AWAY,
    right={"avoid": (0.0,)},
    inplace=True,
    dtypes="fib",
    grad="f",
)
binary("heaviside", None, scalars=(), inplace=True, dtypes="fib", grad="")
binary("xlogy", lambda a, b: a * math.log(b), right=AWAY, inplace=True, dtypes="fib", grad="f")
binary("logaddexp", lambda a, b: cmath.log(cmath.exp(a) + cmath.exp(b)), scalars=(), dtypes="fc", grad="fc")
binary("special.xlog1py", lambda a, b: a * math.log1p(b), right=AWAY, dtypes="fib", grad="f", method=False)
binary("logaddexp2", lambda a, b: math.log2(2**a + 2**b), scalars=(), dtypes="f", grad="f")
op(
    "nextafter",
    [call(x(3, 4), x(3, 4)), call(x(3), x()), call(x(2, 3, values=(1, 0, 5, -1, 2, 0)), x(2, 3))],
    reference=math.nextafter,
    inplace=True,
    dtypes="f",
    grad="f",
)
binary("gcd", lambda a, b: math.gcd(a, b), scalars=(), inplace=True, dtypes="i", grad="")
binary("lcm", lambda a, b: math.lcm(a, b), scalars=(), inplace=True, dtypes="i", grad="")
comparison("eq", lambda a, b: a == b)
comparison("ne", lambda a, b: a != b)
comparison("lt", lambda a, b: a < b, dtypes="fib")
comparison("le", lambda a, b: a <= b, dtypes="fib")
comparison("gt", lambda a, b: a > b, dtypes="fib")
comparison("ge", lambda a, b: a >= b, dtypes="fib")
comparison("not_equal", lambda a, b: a != b)
comparison("less", lambda a, b: a < b, dtypes="fib")
comparison("less_equal", lambda a, b: a <= b, dtypes="fib")
comparison("greater", lambda a, b: a > b, dtypes="fib")
comparison("greater_equal", lambda a, b: a >= b, dtypes="fib")
binary("logical_and", lambda a, b: bool(a) and bool(b), scalars=(), grad="", inplace=True)
binary("logical_or", lambda a, b: bool(a) or bool(b), scalars=(), grad="", inplace=True)
binary("logical_xor", lambda a, b: bool(a) != bool(b), scalars=(), grad="", inplace=True)
binary("bitwise_and", lambda a, b: a & b, scalars=(2,), grad="", inplace=True, dtypes="ib")
binary("bitwise_or", lambda a, b: a | b, scalars=(2,), grad="", inplace=True, dtypes="ib")
binary("bitwise_xor", lambda a, b: a ^ b, scalars=(2,), grad="", inplace=True, dtypes="ib")
binary(
    "bitwise_left_shift",
    lambda a, b: a << b,
    scalars=(2,),
    right={"low": 0, "high": 3},
    grad="",
    inplace=True,
    dtypes="i",
)
binary(
    "bitwise_right_shift",
    lambda a, b: a >> b,
    scalars=(2,),
    right={"low": 0, "high": 3},
    grad="",
    inplace=True,
    dtypes="i",
)

# Operators
for _name, _kinds in {
    "add": "fcib",
    "radd": "fcib",
    "sub": "fci",
    "rsub": "fci",
    "mul": "fcib",
    "rmul": "fcib",
    "eq": "fcib",
    "ne": "fcib",
    "lt": "fib",
    "le": "fib",
    "gt": "fib",
    "ge": "fib",
}.items():
    op(
        f"Tensor.__{_name}__",
        [call(x(3, 4), x(4)), call(x(2), 2), call(x(2), 0.5)],
        dtypes=_kinds,
        grad="" if _name in ("eq", "ne", "lt", "le", "gt", "ge") else "fc",
    )
for _name in ("truediv", "floordiv", "mod"):
    _kinds = "fcib" if _name == "truediv" else "fi"
    op(
        f"Tensor.__{_name}__",
        [call(x(3, 4, low=-5, high=5), x(4, low=0.7, high=3.0)), call(x(2), 2)],
        dtypes=_kinds,
        grad={"truediv": "fc", "floordiv": "", "mod": "f"}[_name],
    )
    op(
        f"Tensor.__r{_name}__",
        [call(x(4, low=0.7, high=3.0), 2, nograd=_name == "mod"), call(x(4, low=0.7, high=3.0), x(4))],
        dtypes=_kinds,
        grad={"truediv": "fc", "floordiv": "", "mod": "f"}[_name],
    )
op(
    "Tensor.__pow__",
    [call(x(3, **POSITIVE), x(3)), call(x(3), 2), call(x(3, **POSITIVE), 0.5)],
    dtypes="fci",
    grad="fc",
)
op(
    "Tensor.__rpow__",
    [call(x(3, low=0.0), 2), call(x(2, 2), 1.5)],
    dtypes="fcib",
    grad="fc",
    same_strides=False,
)
op("Tensor.__matmul__", [call(x(2, 3), x(3, 2)), call(x(3), x(3))], dtypes="fci", grad="fc")
op("Tensor.__rmatmul__", [call(x(3, 2), x(2, 3))], dtypes="fci", grad="fc")
op("Tensor.__neg__", [call(x(3))], dtypes="fci")
op("Tensor.__pos__", [call(x(3))], dtypes="fci")
op("Tensor.__abs__", [call(x(3, avoid=(0.0,)))], dtypes="fci")
op("Tensor.__invert__", [call(x(3))], dtypes="ib", grad="")
for _name in ("and", "or", "xor"):
    op(f"Tensor.__{_name}__", [call(x(2, 3), x(3)), call(x(3), 1), call(x(3), True)], dtypes="ib", grad="")
    op(f"Tensor.__r{_name}__", [call(x(3), 1), call(x(3), True)], dtypes="ib", grad="")
for _name in ("lshift", "rshift"):
    op(f"Tensor.__{_name}__", [call(x(3), x(3, low=0, high=3)), call(x(3), 2)], dtypes="i", grad="")
    op(f"Tensor.__r{_name}__", [call(x(3, low=0, high=3), 2)], dtypes="ib", grad="")

# Elementwise, three operands
op(
    "where",
    [
        call(mask(1, 0, 1), x(3), x(3)),
        call(mask(1, 0, 1), x(2, 3), x(1)),
        call(mask(1, 0), x(2), 0),
        call(mask(1, 0), 1.5, x(2), only="fc"),
        call(mask(1, shape=()), x(), x()),
        call(mask(1, 0, 0, 1, shape=(2, 2)), x(2), x(2, 1)),
        call(mask(1, 0), 1, 2, nograd=True),
        call(mask(0, 1, 1), nograd=True),
    ],
    method=False,
)
op(
    "clamp",
    [
        call(x(3, 4, avoid=(-1, 1)), -1, 1),
        call(x(5, avoid=(0,)), min=0),
        call(x(5, avoid=(1,)), max=1),
        call(x(avoid=(-1,)), -1.0, None, only="f"),
        call(
            x(6, distinct=True),
            x(6, distinct=True, low=-1.9, high=-0.55),
            x(6, distinct=True, low=0.5, high=1.7),
            only="f",
        ),
        call(x(2, 3, distinct=True), x(3, distinct=True, low=-0.96, high=0.3), only="f"),
        call(x(0, 2), 0, 1),
    ],
    dtypes="fib",
    grad="f",
    inplace=True,
    covers=("clamp_scalar",),
)
op("clip", [call(x(3, 4, avoid=(-1, 1)), -1, 1)], dtypes="fib", grad="f", inplace=True)
op(
    "clamp_min",
    [call(x(5, avoid=(0,)), 0), call(x(5, distinct=True), x(5, distinct=True, low=-1.7, high=1.6))],
    dtypes="fib",
    grad="f",
    inplace=True,
    covers=("clamp_min_scalar", "at_least"),
)
op(
    "clamp_max",
    [call(x(5, avoid=(0,)), 0), call(x(5, distinct=True), x(5, distinct=True, low=-1.7, high=1.6))],
    dtypes="fib",
    grad="f",
    inplace=True,
    covers=("clamp_max_scalar", "at_most"),
)
op(
    "addcmul",
    [
        call(x(3), x(3), x(3)),
        call(x(2, 3), x(3), x(2, 1), value=2),
        call(x(), x(2), x(2), value=0.5, only="fc"),
    ],
    dtypes="fci",
    inplace=True,
)
op(
    "addcdiv",
    [call(x(3), x(3), x(3, **AWAY)), call(x(2, 3), x(3), x(2, 1, **AWAY), value=2)],
    dtypes="fc",
    inplace=True,
)
op(
    "threshold",
    [call(x(5, avoid=(0.5,)), 0.5, 0.0), call(x(2, 3, avoid=(1,)), 1, 7)],
    dtypes="fi",
    grad="f",
    inplace=False,
    method=False,
    covers=("threshold_backward",),
)
op("fill", [call(x(2, 3), 1), call(x(2), x()), call(x(), 0)], method=False)
op(
    "lerp",
    [call(x(3), x(3), 0.3), call(x(2, 3), x(3), x(2, 1)), call(x(3), x(3), 0.8)],
    dtypes="fc",
    inplace=True,
    covers=("lerp_scalar",),
)
