"""Every operation of the table where functions are transformed: `grad`, `jvp` and mixtures of them give what
the ordinary backward, forward mode and a second backward give, and refuse what these refuse."""

import pytest
from samples import OPS
from sampling import build, dtype_names, tensors_in
from test_ops import as_function_of_inputs, explain, same

import rushlight
from rushlight import func
from rushlight.autograd import forward_ad

pytestmark = pytest.mark.filterwarnings("ignore")

REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, AttributeError, NotImplementedError)


def ops():
    named = [op for op in OPS.values() if "float64" in dtype_names(op.dtypes)]
    return pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in named])


def weighed(outputs):
    """A number of the floating outputs, in which every element counts."""
    total = rushlight.zeros((), dtype=rushlight.float64)
    for out in tensors_in(rushlight, outputs):
        if out.is_complex():
            out = rushlight.view_as_real(out.resolve_conj())
        if out.is_floating_point() and out.numel():
            ramp = rushlight.arange(1, out.numel() + 1, dtype=rushlight.float64) / out.numel()
            total = total + (out.reshape(-1) * ramp).sum()
    return total


def functions(op):
    """The samples as functions of their inputs that give a number, with the inputs."""
    for sample in op.for_dtype("float64"):
        function, inputs = as_function_of_inputs(op, sample, "float64")
        if not inputs:
            continue

        def number(*tensors, function=function):
            rushlight.manual_seed(0)
            return weighed(function(*tensors))

        try:
            value = number(*inputs)
        except REFUSALS:
            continue
        if isinstance(value, rushlight.Tensor) and value.requires_grad:
            yield sample, number, inputs, value


def attempt(function, *args):
    try:
        return function(*args)
    except REFUSALS as error:
        return error


def compare(op, sample, wanted, got, tolerance=1e-10):
    if isinstance(wanted, Exception):
        return
    assert not isinstance(got, Exception), explain(op, sample, f"{type(got).__name__}: {got}")
    for a, b in zip(got, wanted, strict=True):
        if b is not None:
            a = a.to_dense() if a.layout != rushlight.strided else a
            b = b.to_dense() if b.layout != rushlight.strided else b
            assert same(a.detach().tolist(), b.detach().tolist(), tolerance), explain(op, sample, f"{a}\n{b}")


def pulled_back(value, inputs, **options):
    return rushlight.autograd.grad(value, inputs, allow_unused=True, **options)


def pulled_back_twice(value, inputs):
    first = pulled_back(value, inputs, create_graph=True)
    total = weighed([g for g in first if g is not None])
    return pulled_back(total, inputs) if total.requires_grad else [None for _ in inputs]


def pushed(number, inputs, along):
    with forward_ad.dual_level():
        made = number(*map(forward_ad.make_dual, inputs, along))
        tangent = forward_ad.unpack_dual(made).tangent
    return [rushlight.zeros_like(made) if tangent is None else tangent]


def by_all(number, inputs):
    """The gradient of a function by all inputs."""
    return func.grad(number, tuple(range(len(inputs))))


@ops()
def test_gradients(op):
    for sample, number, inputs, value in functions(op):
        plain = [x.detach() for x in inputs]
        compare(op, sample, attempt(pulled_back, value, inputs), attempt(by_all(number, plain), *plain))


@ops()
def test_gradients_of_gradients(op):
    for sample, number, inputs, value in functions(op):
        plain = [x.detach() for x in inputs]
        first = by_all(number, plain)
        second = by_all(lambda *tensors, first=first: weighed(first(*tensors)), plain)
        compare(op, sample, attempt(pulled_back_twice, value, inputs), attempt(second, *plain))


@ops()
def test_tangents(op):
    for sample, number, inputs, _ in functions(op):
        plain = [x.detach() for x in inputs]
        along = [rushlight.linspace(0.5, 1.5, x.numel(), dtype=x.dtype).reshape(x.shape) for x in plain]
        got = attempt(func.jvp, number, tuple(plain), tuple(along))
        got = got if isinstance(got, Exception) else got[1:]
        compare(op, sample, attempt(pushed, number, plain, along), got)


@ops()
def test_it_leaves_no_level_behind(op):
    for sample in list(op.for_dtype("float64"))[:1]:
        args, kwargs = build(rushlight, sample, "float64")

        def fails(x, args=args, kwargs=kwargs):
            op.function(rushlight)(*args, **kwargs)
            raise KeyError(x.shape)

        for transform in (func.grad, func.vmap, func.jacfwd):
            with pytest.raises((KeyError, *REFUSALS)):
                transform(fails)(rushlight.ones(2))
            assert rushlight._C.top_level() is None
