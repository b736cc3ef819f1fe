"""Integrals and slopes of sampled functions: trapezoid, cumulative_trapezoid, gradient."""

from __future__ import annotations

from rushlight import _C
from rushlight._type_names import type_name as class_name
from rushlight.ops._public import FUNCTIONS, Tensor, function, wrap_dim

ops = _C.ops


def _panels(name, y, x, dx, dim):
    """The areas between neighbouring samples along `dim`."""
    if y.dtype == _C.bool or (x is not None and x.dtype == _C.bool):
        which = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(f"{name}: received a bool input for {which}, but bool is not supported")
    n = y.size(dim)
    left, right = y.narrow(dim, 0, max(n - 1, 0)), y.narrow(dim, min(1, n), max(n - 1, 0))
    if x is None:
        return _scaled(left + right, dx / 2)
    if x.dim() == 1:
        if x.size(0) != n:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        sizes = [1] * y.dim()
        sizes[dim] = n
        x = x.reshape(sizes)
    elif x.dim() == 0:
        x = x.reshape([1] * y.dim())
    elif x.dim() < y.dim():
        x = x.reshape([1] * (y.dim() - x.dim()) + list(x.shape))
    count = x.size(dim)
    widths = x.narrow(dim, min(1, count), max(count - 1, 0)) - x.narrow(dim, 0, max(count - 1, 0))
    return (left + right) * widths


def _scaled(result, number):
    """Times a number, which torch records in a form of its own."""
    return _C.name_node(result * number, "MulBackward1")


def _halved(result):
    return _C.name_node(result / 2.0, "DivBackward1")


def _only_one(name, x, dx):
    if isinstance(dx, (complex, bool)) or (isinstance(dx, Tensor) and dx.dtype == _C.bool):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
    if x is not None and dx is not None:
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got (Tensor, Tensor, "
            f"dx={class_name(dx)}), but expected one of:\n * (Tensor y, Tensor x, *, int dim = -1)\n"
            " * (Tensor y, *, Number dx = 1, int dim = -1)"
        )


@function
def trapezoid(y, x=None, *, dx=None, dim=-1):
    """The integral of samples y along dim, by the trapezoidal rule; x (or dx) says where they were taken.

    >>> rushlight.trapezoid(rushlight.tensor([1., 2., 3.]), dx=2.)
    tensor(8.)
    """
    return _trapezoid(y, x, dx, dim)


def _trapezoid(y, x, dx, dim):
    _only_one("trapezoid", x, dx)
    if x is not None:
        dim = wrap_dim(dim, y.dim())
    if y.dim() == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    dim = wrap_dim(dim, y.dim())
    if y.size(dim) == 0:
        sizes = [size for d, size in enumerate(y.shape) if d != dim]
        return _C.full(tuple(sizes), 0, y.dtype, y.device)
    if x is None and y.dtype != _C.bool:  # panels of one width: all samples but half of the first and last
        ends = y.select(dim, 0) + y.select(dim, -1)
        return _scaled(y.sum(dim) - _scaled(ends, 0.5), 1.0 if dx is None else float(dx))
    return _halved(_panels("trapezoid", y, x, 1, dim).sum(dim))


@function
def trapz(y, x=None, *, dx=None, dim=-1):
    """An older name of :func:`trapezoid`, where True is a distance.

    >>> rushlight.trapz(rushlight.tensor([1., 2., 3.]), rushlight.tensor([0., 2., 4.]))
    tensor(8.)
    """
    return _trapezoid(y, x, float(dx) if isinstance(dx, bool) else dx, dim)


@function
def cumulative_trapezoid(y, x=None, *, dx=None, dim=-1):
    """The running integral of samples y along dim, by the trapezoidal rule.

    >>> rushlight.cumulative_trapezoid(rushlight.tensor([1., 2., 3.]))
    tensor([1.5000, 4.0000])
    """
    _only_one("cumulative_trapezoid", x, dx)
    if x is not None:
        dim = wrap_dim(dim, y.dim())
    if y.dim() == 0:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, y.dim())
    result = _panels("cumulative_trapezoid", y, x, 1 if dx is None else dx, dim).cumsum(dim)
    return result if x is None else _halved(result)


def _over(result, number):
    return _C.name_node(result / number, "DivBackward1")


def _difference(at, later, earlier, count=1):
    """The samples from one place on less those from another, which torch takes first."""
    taken = at(earlier, count)
    return at(later, count) - taken


def _slope_even(y, h, dim, edge_order):
    """Slopes of samples a distance h apart. Of each sum torch takes the last term first."""
    n = y.size(dim)
    at = lambda start, count=1: y.narrow(dim, start, count)  # noqa: E731
    middle = _over(_over(_difference(at, 2, 0, n - 2), h), 2)
    if edge_order == 1:
        first, last = (_over(_difference(at, place + 1, place), h) for place in (0, n - 2))
    else:
        third, second = _scaled(at(2), 0.5), _scaled(at(1), 2)
        first = _over(_scaled(at(0), -1.5) + second - third, h)
        third, second = _scaled(at(n - 1), 1.5), _scaled(at(n - 2), 2)
        last = _over(_scaled(at(n - 3), 0.5) - second + third, h)
    return FUNCTIONS["cat"]([first, middle, last], dim)


def _slope_uneven(y, x, dim, edge_order):
    """Slopes of samples taken at the coordinates x: of the parabola through each point and its neighbours."""
    n, m = y.size(dim), x.size(0)  # torch does not ask whether they are equal, but broadcasts
    sizes = [1] * y.dim()
    sizes[dim] = max(m - 1, 0)
    widths = FUNCTIONS["diff"](x).reshape(sizes)
    at = lambda start, count=1: y.narrow(dim, start, count)  # noqa: E731
    gap = lambda start, count=1: widths.narrow(dim, start, count)  # noqa: E731
    left, right = gap(0, max(m - 2, 0)), gap(min(m - 1, 1), max(m - 2, 0))
    middle = (
        (-right / (left * (left + right))) * at(0, n - 2)
        + ((right - left) / (left * right)) * at(1, n - 2)
        + (left / (right * (left + right))) * at(2, n - 2)
    )
    if m < 2:
        raise IndexError("select(): index 0 out of range for tensor of size [0] at dimension 0")
    # The widths at the ends have no dimension and leave the samples their dtype.
    edge = lambda start: widths.reshape(-1)[start]  # noqa: E731
    if edge_order == 1:
        first, last = _difference(at, 1, 0) / edge(0), _difference(at, n - 1, n - 2) / edge(m - 2)
    else:
        a, b = edge(0), edge(1)
        first = (
            (-(2.0 * a + b) / (a * (a + b))) * at(0)
            + ((a + b) / (a * b)) * at(1)
            + (-a / (b * (a + b))) * at(2)
        )
        a, b = edge(m - 3), edge(m - 2)
        last = (
            (b / (a * (a + b))) * at(n - 3)
            + (-(a + b) / (a * b)) * at(n - 2)
            + ((a + 2.0 * b) / (b * (a + b))) * at(n - 1)
        )
    return FUNCTIONS["cat"]([first, middle, last], dim)


@function
def gradient(input, *, spacing=None, dim=None, edge_order=1):
    """The slope along every dimension (or along dim), from central differences; a tuple with one per dim.

    spacing is a distance, one distance per dimension, or one tensor of coordinates per dimension.

    >>> rushlight.gradient(rushlight.tensor([1., 2., 4., 8.]))[0]
    tensor([1.0000, 1.5000, 3.0000, 4.0000])
    """
    dims = list(range(input.dim()) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,))
    if isinstance(spacing, (tuple, list)):
        if len(spacing) != len(dims) and dim is None:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
                f"'self.dim() = {input.dim()}', since dim argument was not given, but got a list of length "
                f"{len(spacing)}"
            )
        if len(spacing) != len(dims):
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
                f"arguments to have the same length, but got a spacing argument of length {len(spacing)} and "
                f"a dim argument of length {len(dims)}."
            )
    dims = [wrap_dim(d, input.dim()) for d in dims]
    for place, d in enumerate(dims):
        if d in dims[:place]:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    if input.dtype == _C.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if spacing is None:
        spacing = 1
    if isinstance(spacing, (tuple, list)):
        spacings = list(spacing)
    else:
        if isinstance(spacing, Tensor) and spacing.dim():
            raise TypeError(
                "gradient() received an invalid combination of arguments - got (Tensor, spacing=Tensor); "
                "pass coordinates as a tuple of tensors, one per dimension"
            )
        spacings = [spacing] * len(dims)
    for d, step in zip(dims, spacings):
        if input.size(d) < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
        if isinstance(step, Tensor) and step.device != input.device:
            raise RuntimeError(
                "torch.gradient expected each tensor to be on the same device, but got devices "
                f"{input.device} and {step.device}!"
            )
        listed = isinstance(spacing, (tuple, list))
        if isinstance(step, Tensor) and (step.dim() or listed) and step.dim() != 1:
            raise RuntimeError(
                "torch.gradient expected each element of spacing to have one dimension, but got an element "
                f"with {step.dim()} dimensions!"
            )
    return tuple(
        (_slope_uneven if isinstance(step, Tensor) and step.dim() else _slope_even)(
            input, step, d, edge_order
        )
        for d, step in zip(dims, spacings)
    )
