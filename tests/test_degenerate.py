"""Derivatives where a function degenerates: no degree of freedom, several zeros, strides over one element."""

import itertools
from functools import partial

import pytest
from gradcheck import gradcheck, gradgradcheck

import rushlight as torch

F = torch.nn.functional


def double(*values):
    return torch.tensor(values, dtype=torch.float64)


def gradient(function, x):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(function(x).sum(), x)[0]


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("correction", [0, 1, 3])
@pytest.mark.parametrize("name", ["var", "std"])
def test_spread_along_a_dimension(name, correction):
    """Without a degree of freedom the value is infinite, and the slope that of the formula, as in torch."""
    x, slope = (
        double(1.0, 2.0),
        gradient(lambda x: getattr(x, name)(0, correction=correction), double(1.0, 2.0)),
    )
    if correction < 2:
        gradcheck(torch, lambda x: getattr(x, name)(0, correction=correction), [x])
    elif name == "var":
        assert slope.tolist() == [1.0, -1.0]
    else:
        assert slope.tolist() == [0.0, 0.0]


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_spread_with_as_many_corrections_as_elements():
    assert gradient(lambda x: x.var(0, correction=2), double(1.0, 2.0)).tolist() == [-torch.inf, torch.inf]
    assert gradient(lambda x: x.var(correction=2), double(1.0, 2.0)).tolist() == [torch.inf, torch.inf]
    assert gradient(lambda x: x.var(0), double(1.0)).isnan().all()


@pytest.mark.parametrize("name", ["scatter_reduce", "index_reduce"])
def test_second_derivative_of_products_with_zeros(name):
    index = torch.tensor([0, 0, 0, 1])

    def product(x):
        return getattr(torch, name)(x.new_ones(2), 0, index, x, "prod")

    gradgradcheck(torch, product, [double(0.0, 2.0, 3.0, 2.0)], tolerance=10)
    x = double(0.0, 0.0, 3.0, 2.0).requires_grad_()
    (g,) = torch.autograd.grad(product(x).sum(), x, create_graph=True)
    assert g.tolist() == [0.0, 0.0, 0.0, 1.0]
    with pytest.raises(RuntimeError, match=rf"^{name}\(\): Double backward is unsupported for src|source"):
        torch.autograd.grad(g.sum(), x)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_gradient_of_eigh_is_hermitian(dtype):
    torch.manual_seed(3)
    A = torch.randn(3, 3, dtype=dtype)
    A = (A + A.mH).requires_grad_()

    def loss(A):
        values, vectors = torch.linalg.eigh(A)
        return (values * torch.arange(1.0, 4.0, dtype=torch.float64)).sum() + (vectors.abs() ** 3).sum()

    (g,) = torch.autograd.grad(loss(A), A)
    torch.testing.assert_close(g, g.mH)
    step = torch.randn(3, 3, dtype=dtype)
    step = 1e-6 * (step + step.mH)
    with torch.no_grad():
        moved = (loss(A + step) - loss(A - step)) / 2
    torch.testing.assert_close(moved, (g.conj() * step).sum().real, rtol=1e-5, atol=1e-11)


@pytest.mark.parametrize(
    ("input", "weight", "stride", "padding"),
    [((1, 1, 1), (2, 1, 1), 3, 0), ((2, 1, 1), (2, 1, 3), 2, 1), ((1, 2, 1, 4), (2, 2, 1, 2), (3, 2), 0),
     ((1, 1, 1, 1), (1, 1, 2, 2), (3, 2), 1), ((1, 1, 2, 1), (1, 1, 1, 1), 2, 0)],
)  # fmt: skip
def test_strided_convolution_of_one_element(input, weight, stride, padding):
    torch.manual_seed(0)
    x, w = (torch.randn(shape, dtype=torch.float64) for shape in (input, weight))
    convolve = F.conv1d if len(input) == 3 else F.conv2d
    gradcheck(torch, lambda x, w: convolve(x, w, stride=stride, padding=padding), [x, w])
    gradgradcheck(torch, lambda x, w: convolve(x, w, stride=stride, padding=padding), [x, w], tolerance=10)


def test_huber_loss_without_a_bound_is_half_the_square():
    x, y = double(1.0, -4.0), double(0.0, 2.0)
    assert F.huber_loss(x, y, delta=float("inf"), reduction="none").tolist() == [0.5, 18.0]
    gradcheck(torch, lambda x: F.huber_loss(x, y, delta=float("inf")), [x])


def test_prelu_with_an_infinite_weight():
    x, weight = double(1.0, -1.0), double(float("inf"))
    assert gradient(lambda x: F.prelu(x, weight), x).tolist() == [1.0, float("inf")]
    gradcheck(torch, F.prelu, [x, double(0.25)])
    gradgradcheck(torch, F.prelu, [x, double(0.25)], tolerance=10)


def test_triangles_of_which_rows_are_empty():
    """Rows below, within and beyond the triangle: as many indices as there are places, all written."""
    for upper, first, last, columns, offset in itertools.product(
        (False, True), (0, 2), (2, 6), (0, 1, 3), range(-8, 9)
    ):
        found = torch._C.triangle_indices(
            first, last, columns, offset, upper, torch.int64, torch.device("cpu")
        )
        places = itertools.product(range(first, last), range(columns))
        inside = [(r, c) for r, c in places if (c >= r + offset if upper else c <= r + offset)]
        assert found.T.tolist() == [list(place) for place in inside]


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("return_indices", [False, True])
def test_gradient_of_maxima_of_nothing(dims, return_indices):
    """Steps that jump over the input leave empty windows, from which no element gets a gradient."""
    pool = getattr(F, f"max_pool{dims}d")
    x = torch.arange(2.0 * 2**dims, dtype=torch.float64).reshape(1, 2, *(2,) * dims).requires_grad_()

    def pooled(x, padding, dilation):
        found = pool(x, 2, 1, padding, dilation, return_indices=return_indices)
        found = found[0] if return_indices else found
        return torch.where(found > -1e300, found, 0.0)

    assert (pooled(x, 1, 3) == 0).all()  # nothing but such windows
    for window in [(0, 1), (1, 1), (1, 2), (1, 3)]:
        function = partial(pooled, padding=window[0], dilation=window[1])
        gradcheck(torch, function, [x])
        gradgradcheck(torch, function, [x])
    image = torch.ones(1, 4, 1, 1).requires_grad_()
    F.max_pool2d(image.contiguous(memory_format=torch.channels_last), 2, 1, 1, 2).sum().backward()
    assert (image.grad == 0).all()


def test_bags_end_with_the_indices():
    weight, indices = torch.ones(4, 2), torch.tensor([0, 1, 2, 3])
    for mode in ("sum", "mean", "max"):
        with pytest.raises(
            RuntimeError, match="the last offset value should be the size of the indices tensor"
        ):
            F.embedding_bag(indices, weight, torch.tensor([0, 2, 3]), mode=mode, include_last_offset=True)


def test_the_gradient_of_a_point_without_another_may_be_written():
    x = torch.ones(1, 4, requires_grad=True)
    distances = torch.pdist(x)
    (gradient,) = torch.autograd.grad(distances, x, torch.ones_like(distances))
    assert torch.equal(gradient.add_(1), torch.ones(1, 4))
