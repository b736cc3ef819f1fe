"""Random shapes, strides, dtypes and indices: Rushlight never crashes and agrees with torch."""

import math

import pytest
import torch
from comparing import REFUSALS, assert_same
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sampling import DTYPES, FLOATS, INTEGERS, nest

import rushlight

pytestmark = pytest.mark.filterwarnings("ignore")

fuzz = settings(max_examples=300, suppress_health_check=list(HealthCheck))
sizes = st.integers(0, 4) | st.integers(1, 3)
shapes = st.lists(sizes, max_size=4).map(tuple)
dims = st.integers(-5, 5)
slices = st.builds(slice, st.none() | dims, st.none() | dims, st.none() | st.integers(1, 3))

# Each step turns a tensor into a view of it, in either library.
steps = st.one_of(
    st.tuples(st.just("transpose"), dims, dims),
    st.tuples(st.just("unsqueeze"), dims),
    st.tuples(st.just("squeeze"), dims),
    st.tuples(st.just("select"), dims, dims),
    st.tuples(st.just("narrow"), dims, st.integers(0, 3), st.integers(0, 3)),
    st.tuples(st.just("__getitem__"), slices),
    st.tuples(st.just("__getitem__"), st.tuples(slices, slices)),
    st.tuples(st.just("__getitem__"), st.tuples(st.just(Ellipsis), slices)),
    st.tuples(st.just("expand"), st.integers(1, 3), st.just(-1), st.just(-1)),
    st.tuples(st.just("diagonal"), st.integers(-2, 2)),
    st.tuples(st.just("unfold"), dims, st.integers(0, 3), st.integers(1, 2)),
    st.tuples(st.just("flatten")),
    st.tuples(st.just("unflatten"), dims, st.just((-1, 2))),
    st.tuples(st.just("view"), st.just(-1)),
    st.tuples(st.just("contiguous")),
)


@st.composite
def tensors(draw, dtypes=DTYPES):
    """How to make a tensor: a dtype, a shape, numbers, and views to take."""
    dtype = draw(st.sampled_from(dtypes))
    shape = draw(shapes)
    start = draw(st.integers(0, 50))
    return dtype, shape, start, draw(st.lists(steps, max_size=3))


def number(place, dtype):
    value = (place * 7919 + 13) % 23 - 11
    if dtype == "bool":
        return value % 3 == 0
    if dtype == "uint8":
        return abs(value)
    if dtype in INTEGERS:
        return value
    return complex(value / 4, -value / 8) if dtype.startswith("complex") else value / 4


def attempt(function, *args, **kwargs):
    try:
        return function(*args, **kwargs), None
    except REFUSALS as error:
        return None, error


def make(lib, recipe):
    dtype, shape, start, views = recipe
    count = math.prod(shape)
    if count:
        values = [number(start + place, dtype) for place in range(count)]
        tensor = lib.tensor(nest(values, shape), dtype=getattr(lib, dtype))
    else:
        tensor = lib.zeros(shape, dtype=getattr(lib, dtype))
    for name, *args in views:
        viewed, error = attempt(getattr(tensor, name), *args)
        if error is None:
            tensor = viewed
    return tensor


# What torch refuses and Rushlight computes: missing kernels, the gradient of an empty complex tensor.
MORE_GENERAL = ("not implemented for", "Tensor must have a last dimension with stride 1")


def compare(function, *recipes, strides=True):
    """Run `function(lib, *tensors)` in both; what torch refuses must be refused. (Not with the same error: a
    random call is often wrong in more ways than one. test_errors.py compares those.)"""
    theirs, refusal = attempt(function, torch, *[make(torch, recipe) for recipe in recipes])
    ours, error = attempt(function, rushlight, *[make(rushlight, recipe) for recipe in recipes])
    if refusal is None:
        if error is not None:
            raise error
        assert_same(ours, theirs, strides=strides)
    elif not any(words in str(refusal) for words in MORE_GENERAL):
        assert error is not None, f"torch refuses: {refusal}"


@fuzz
@given(tensors())
def test_views(recipe):
    compare(lambda lib, tensor: tensor, recipe)
    compare(lambda lib, tensor: (tensor.storage_offset(), tensor.is_contiguous(), list(tensor.shape)), recipe)


@fuzz
@given(
    tensors(),
    tensors(),
    st.sampled_from(["add", "sub", "mul", "div", "eq", "lt", "maximum", "logical_and", "pow"]),
)
def test_binary(left, right, name):
    compare(lambda lib, a, b: getattr(lib, name)(a, b), left, right)


@fuzz
@given(tensors(), tensors(), st.sampled_from(["add_", "mul_", "copy_", "eq_"]))
def test_in_place(left, right, name):
    def run(lib, a, b):
        a = a.contiguous()
        getattr(a, name)(b)
        return a

    compare(run, left, right)


@fuzz
@given(
    tensors(),
    st.sampled_from([1, 2.5, -3, True, 1j, 0]),
    st.sampled_from(["add", "mul", "div", "rsub", "pow", "eq", "lt"]),
)
def test_numbers(recipe, value, name):
    assume(name != "pow" or type(value) not in (bool, complex))  # torch: 0 ** 1j is nan, True ** True a bool
    compare(lambda lib, tensor: getattr(lib, name)(tensor, value), recipe)


@fuzz
@given(
    tensors(),
    st.sampled_from(["abs", "neg", "exp", "sqrt", "sin", "floor", "sigmoid", "isnan", "logical_not", "sign"]),
)
def test_unary(recipe, name):
    compare(lambda lib, tensor: getattr(lib, name)(tensor), recipe)


@fuzz
@given(
    tensors(),
    st.sampled_from(["sum", "mean", "prod", "amax", "any", "all", "argmax", "max", "cumsum", "var"]),
    dims | st.none() | st.lists(dims, max_size=2, unique=True).map(tuple),
    st.booleans(),
)
def test_reductions(recipe, name, dim, keepdim):
    def run(lib, tensor):
        if name == "cumsum":
            return tensor.cumsum(dim)
        if dim is None:
            return getattr(tensor, name)()
        return getattr(tensor, name)(dim, keepdim=keepdim)

    compare(run, recipe)


@fuzz
@given(
    tensors(FLOATS[:2] + INTEGERS[2:4] + ("complex128",)),
    tensors(FLOATS[:2] + INTEGERS[2:4] + ("complex128",)),
)
def test_matmul(left, right):
    right = (left[0], *right[1:])
    compare(lambda lib, a, b: lib.matmul(a, b), left, right)
    compare(lambda lib, a, b: lib.matmul(a, b.mT), left, right)
    compare(lambda lib, a, b: lib.matmul(a.transpose(-1, -2), a), left, right)


index_items = st.one_of(
    dims,
    slices,
    st.none(),
    st.just(Ellipsis),
    st.booleans(),
    st.lists(dims, max_size=3).map(lambda values: ("int64", (len(values),), values)),
    st.lists(st.integers(0, 1), min_size=4, max_size=4).map(lambda values: ("int64", (2, 2), values)),
    st.lists(st.booleans(), max_size=4).map(lambda values: ("bool", (len(values),), values)),
    st.lists(st.booleans(), min_size=4, max_size=4).map(lambda values: ("bool", (2, 2), values)),
)
indices = index_items | st.lists(index_items, max_size=4).map(tuple)


def real_index(lib, item):
    """Index tensors are described by (dtype, shape, values)."""
    if isinstance(item, tuple) and len(item) == 3 and isinstance(item[0], str):
        dtype, shape, values = item
        return lib.tensor(values, dtype=getattr(lib, dtype)).reshape(shape)
    return tuple(real_index(lib, part) for part in item) if isinstance(item, tuple) else item


@fuzz
@given(tensors(), indices)
def test_reading_by_index(recipe, item):
    # The order of a gathered result in memory is left open.
    compare(lambda lib, tensor: tensor[real_index(lib, item)], recipe, strides=False)


@fuzz
@given(tensors(), indices, tensors())
def test_writing_by_index(recipe, item, value):
    def run(lib, tensor, value):
        tensor = tensor.clone()
        tensor[real_index(lib, item)] = value
        return tensor

    compare(run, recipe, value)


@fuzz
@given(tensors(), indices, st.sampled_from([0, 1.5, True, -2]))
def test_writing_numbers_by_index(recipe, item, value):
    def run(lib, tensor):
        tensor = tensor.clone()
        tensor[real_index(lib, item)] = value
        return tensor

    compare(run, recipe)


@fuzz
@given(
    tensors(),
    dims,
    st.lists(dims, max_size=4),
    st.sampled_from(["gather", "index_select", "index_add", "scatter_add"]),
)
def test_indexed_functions(recipe, dim, values, name):
    def run(lib, tensor):
        index = lib.tensor(values, dtype=lib.int64)
        if name == "index_add":
            return tensor.index_add(dim, index.abs(), tensor.index_select(dim, index.abs()))
        if name == "scatter_add":
            return tensor.scatter_add(dim, index.abs(), tensor)
        return getattr(tensor, name)(dim, index)

    compare(run, recipe)


@fuzz
@given(st.lists(tensors(), min_size=1, max_size=3), dims, st.sampled_from(["cat", "stack"]))
def test_joining(recipes, dim, name):
    compare(lambda lib, *parts: getattr(lib, name)(parts, dim), *recipes)


@fuzz
@given(tensors(), st.lists(st.integers(-1, 6), max_size=4))
def test_reshape(recipe, shape):
    compare(lambda lib, tensor: tensor.reshape(shape), recipe)
    compare(lambda lib, tensor: tensor.view(shape), recipe)
    if -1 not in shape:  # torch lets a leading -1 through and returns a tensor of negative size
        compare(lambda lib, tensor: tensor.expand(shape), recipe)


@fuzz
@given(tensors(), st.sampled_from(DTYPES))
def test_casts(recipe, dtype):
    compare(lambda lib, tensor: tensor.to(getattr(lib, dtype)), recipe)


@fuzz
@given(tensors(("float64", "complex128")), st.lists(steps, max_size=3), tensors(("float64",)))
def test_gradients_through_views(recipe, views, other):
    """The gradient of a product through a chain of views, and through writing into one."""

    def run(lib, tensor, factor):
        leaf = tensor.detach().clone().requires_grad_()
        result = leaf * 2
        for name, *args in views:
            viewed, error = attempt(getattr(result, name), *args)
            if error is None:
                result = viewed
        product = result * factor
        return lib.autograd.grad(
            lib.view_as_real(product).sum() if product.is_complex() else product.sum(), leaf
        )

    compare(run, recipe, other)


@fuzz
@given(
    tensors(("float64",)),
    st.lists(steps, min_size=1, max_size=3),
    st.sampled_from(["mul_", "add_", "copy_", "zero_"]),
)
def test_gradients_of_writes_into_views(recipe, views, name):
    def run(lib, tensor):
        leaf = tensor.detach().clone().requires_grad_()
        base = leaf * 1
        view = base
        for step, *args in views:
            viewed, error = attempt(getattr(view, step), *args)
            if error is None:
                view = viewed
        if name == "zero_":
            view.zero_()
        else:
            getattr(view, name)((leaf * leaf).sum())
        return lib.autograd.grad((base * base).sum(), leaf)

    compare(run, recipe)


@pytest.mark.parametrize("dtype", DTYPES)
def test_printing_of_fuzzed_tensors(dtype):
    @fuzz
    @given(tensors((dtype,)))
    def check(recipe):
        assert repr(make(rushlight, recipe)) == repr(make(torch, recipe))

    check()
