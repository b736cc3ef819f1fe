"""A dtype without a kernel: the same operations refuse it, in torch's words."""

import pytest

import rushlight

torch = pytest.importorskip("torch")

UNARY = [
    "abs", "acos", "asin", "atan", "ceil", "cos", "deg2rad", "digamma", "erf", "erfc", "erfinv", "exp",
    "floor", "frac", "i0", "isneginf", "isposinf", "lgamma", "log", "logit", "neg", "rad2deg",
    "reciprocal", "round", "rsqrt", "sgn", "sigmoid", "sign", "signbit", "sin", "sinc", "tan", "trunc",
    "bitwise_not", "unique_consecutive", "nn.functional.relu", "nn.functional.gelu",
    "nn.functional.softplus",
]  # fmt: skip
BINARY = [
    "add", "sub", "mul", "div", "floor_divide", "fmod", "remainder", "pow", "atan2", "copysign",
    "maximum", "minimum", "fmax", "fmin", "lt", "le", "bitwise_and", "bitwise_left_shift",
    "logical_and", "hypot", "nextafter", "heaviside", "gcd", "lcm", "xlogy", "logaddexp", "isin",
    "trapezoid",
]  # fmt: skip
DTYPES = ["complex64", "int64", "uint8", "bool", "float16"]


def outcome(library, name, dtype, count):
    function = library
    for part in name.split("."):
        function = getattr(function, part)
    x = library.ones(2, 2).to(getattr(library, dtype))
    try:
        return str(function(*[x] * count).dtype)
    except (RuntimeError, NotImplementedError, TypeError) as error:
        return type(error).__name__, str(error).partition("\n")[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("names", "count"), [(UNARY, 1), (BINARY, 2)], ids=["unary", "binary"])
def test_elementwise(names, count, dtype):
    ours = {name: outcome(rushlight, name, dtype, count) for name in names}
    assert ours == {name: outcome(torch, name, dtype, count) for name in names}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax(name, dim, dtype):
    def run(library):
        try:
            return str(getattr(library, name)(library.ones(2, 2).to(getattr(library, dtype)), dim).dtype)
        except NotImplementedError as error:
            return str(error).partition("\n")[0]

    assert run(rushlight) == run(torch)


@pytest.mark.parametrize("dtype", ["float32", "int8", "int32", "int64", "uint8"])
def test_transposed_and_dilated_convolutions(dtype):
    def run(library):
        functional, kind = library.nn.functional, getattr(library, dtype)
        image, weight = library.ones(1, 2, 5, 5).to(kind), library.ones(2, 2, 2, 2).to(kind)
        found = []
        for call in (
            lambda: functional.conv_transpose2d(image, weight),
            lambda: functional.conv2d(image, weight, dilation=2),
            lambda: library.arange(0, 3, dtype=kind),
            lambda: library.linspace(0, 2, 3, dtype=kind),
        ):
            try:
                found.append(call().tolist())
            except NotImplementedError as error:
                found.append(str(error).partition("\n")[0])
        return found

    assert run(rushlight) == run(torch)
