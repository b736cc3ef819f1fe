"""Sampling images at the points of a grid, and grids of affine maps.

A point of the grid holds x, y (and z) in [-1, 1], x along the last dimension of the image. `grid_sample` is
one primitive, and so is its gradient. Where that is differentiated itself, it is made of parts: one primitive
says which pixels a point is made of and with what weights, another adds them up, and `_points_gradient` is
the derivative of the weights: one kernel, or `_factors` in differentiable arithmetic.
"""

from __future__ import annotations

import itertools
import operator

from rushlight import _C

from ._public import check_tensor, function, type_name
from ._rules import derivative, no_derivative
from ._tangents import PRODUCT

ops = _C.ops

# Three faces of one trilinear form: the derivatives of each are the other two.
derivative(
    "pick_weighted",
    node="GridSampler2DBackward0",
    x=lambda g, x_shape, weights, index: ops.spread_weighted(g, weights, index, x_shape[2]),
    weights=lambda g, x, index: ops.pick_products(g, x, index),
    **PRODUCT,
)
derivative(
    "spread_weighted",
    node="GridSampler2DBackwardBackward0",
    grad=lambda g, weights, index: ops.pick_weighted(g, weights, index),
    weights=lambda g, grad, index: ops.pick_products(grad, g, index),
    **PRODUCT,
)
derivative(
    "pick_products",
    node="GridSampler2DBackwardBackward0",
    grad=lambda g, x, index: ops.pick_weighted(x, g, index),
    x=lambda g, grad, index, x_shape: ops.spread_weighted(grad, g, index, x_shape[2]),
    **PRODUCT,
)


def _sample_gradient(g, x, grid, mode, padding, align_corners, needs):
    if not _C.is_grad_enabled() and all(_C.tangent(t) is None for t in (g, x, grid)):
        dx, dgrid = ops.grid_sample_gradient(g, x, grid, mode, padding, align_corners, *needs)
        return dx if needs[0] else None, dgrid if needs[1] else None
    n, c, *sizes = x.shape
    points, rows = grid.flatten(1, -2), g.flatten(2)
    spec = tuple(sizes), mode, padding, align_corners
    weights, index = ops.grid_terms(points, *spec)
    dx = dgrid = None
    if needs[0]:
        dx = ops.spread_weighted(rows, weights, index, x.shape[2:].numel()).reshape(x.shape)
    if needs[1]:
        picked = ops.pick_products(rows, x.reshape(n, c, -1), index)
        dgrid = _points_gradient(picked, points, *spec).reshape(grid.shape)
    return dx, dgrid


derivative("grid_sample", _sample_gradient, node="GridSampler2DBackward0")
derivative(
    "grid_terms",
    node="GridSampler2DBackward0",
    grid=lambda g_weights, grid, sizes, mode, padding, align_corners: _points_gradient(
        g_weights, grid, sizes, mode, padding, align_corners
    ),
)
no_derivative("grid_slopes")  # constant but for jumps


def _no_derivative(gs):
    raise NotImplementedError("the derivative for 'grid_sampler_2d_backward' is not implemented.")


# Only run where no derivative of them is asked for.
derivative("grid_gradient", g=_no_derivative, grid=_no_derivative)
derivative("grid_sample_gradient", _no_derivative)

BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)


def _where(condition, a, b):
    return ops.where(condition, a, b)


def _clipped(place, size):
    """Within the image; at its border the gradient is zero already, as in torch."""
    return _where(place <= 0, 0.0, _where(place >= size - 1, float(size - 1), place))


def _reflected(place, low, span):
    if span == 0:
        return place * 0
    away = place - low
    away = _where(away < 0, -away, away)
    flips = (away.detach() / span).floor()
    extra = away - flips * span
    return _where(flips % 2 == 0, extra + low, span - extra + low)


def _padded(place, size, padding_mode, align_corners):
    """Positions outside the image brought back into it, unless what lies outside is zero."""
    if padding_mode == REFLECTION:
        if align_corners:
            place = _reflected(place, 0.0, float(size - 1))
        else:
            place = _reflected(place, -0.5, float(size))
    if padding_mode != ZEROS:
        place = _clipped(place, size)
    return place


def _pixels(point, size, align_corners):
    """From [-1, 1] to pixels: the ends are the centres of the outer pixels, or their outer edges."""
    return (point + 1) / 2 * (size - 1) if align_corners else ((point + 1) * size - 1) / 2


def _lost(point, size, dims, mode, padding_mode, align_corners):
    """NaN where a point has no place in two dimensions, unless it is brought to another (`_places`)."""
    if dims == 3 or mode == NEAREST or (mode == BILINEAR and padding_mode != ZEROS):
        return 0.0
    place = _pixels(point.detach(), size, align_corners)
    return place - place


def _places(point, size, dims, mode, padding_mode, align_corners):
    place = _pixels(point, size, align_corners)
    # Far outside: anywhere on that side will do, as long as it is an integer. What has no place (NaN, and
    # infinity where it is reflected) is brought to the first pixel in two dimensions, to the last in three.
    stays = padding_mode == ZEROS or mode == BICUBIC
    nowhere = -100.0 if stays else size - 1.0 if dims == 3 else 0.0
    if padding_mode == REFLECTION and not stays:
        return _where(ops.abs(place) < 1e9, place, nowhere)
    place = _where(place.isnan(), nowhere, place)
    place = _where(place < 1e9, place, size + 100.0)
    return _where(place > -1e9, place, -100.0)


def _cubic_weights(t, a=-0.75):
    def near(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return far(t + 1), near(t), near(1 - t), far(2 - t)


def _cubic_slopes(t, a=-0.75):
    def near(x):
        return (3 * (a + 2) * x - 2 * (a + 3)) * x

    def far(x):
        return (3 * a * x - 10 * a) * x + 8 * a

    return far(t + 1), near(t), -near(1 - t), -far(2 - t)


def _factors(place, mode, lost):
    """The weights of the pixels around a place in one dimension, and their derivatives."""
    part = place - place.detach().floor() + lost
    if mode == BICUBIC:
        return _cubic_weights(part), _cubic_slopes(part)
    return (1 - part, part), (-1.0, 1.0)


def _points_gradient(g, grid, sizes, mode, padding_mode, align_corners):
    """From the gradients of the weights (N, terms, P) to those of the points (N, P, dims)."""
    spec = sizes, mode, padding_mode, align_corners
    if not _C.is_grad_enabled() and _C.tangent(g) is None and _C.tangent(grid) is None:
        return ops.grid_gradient(g, grid, *spec)
    if mode == NEAREST:
        return grid.new_zeros(grid.shape)
    factors, slopes = [], []
    for point, size in zip(_points(grid), sizes, strict=True):
        given = size, len(sizes), mode, padding_mode, align_corners
        of_place = _factors(_place(point, *given), mode, _lost(point, *given))
        factors.append(of_place[0])
        slopes.append(of_place[1])
    count = len(factors[0])
    moved = []
    for d in range(len(sizes)):
        total = 0
        for term, steps in enumerate(itertools.product(range(count), repeat=len(sizes))):
            # The kernel counts corners from the outermost dimension, cubic terms from the innermost.
            at = term if mode == BICUBIC else sum(step << e for e, step in enumerate(steps))
            part = g.select(1, at)
            for e, step in enumerate(steps):
                part = part * (slopes if e == d else factors)[e][step]
            total = total + part
        moved.append(total)
    return ops.stack(moved[::-1], -1) * ops.grid_slopes(grid, *spec)


def _place(point, size, dims, mode, padding_mode, align_corners):
    place = _places(point, size, dims, mode, padding_mode, align_corners)
    return place if mode == BICUBIC else _padded(place, size, padding_mode, align_corners)


def _composed_terms(grid, sizes, mode, padding_mode, align_corners):
    """grid_terms for half precision, where torch rounds after every operation."""
    choices = []
    for point, size in zip(_points(grid), sizes, strict=True):
        given = size, len(sizes), mode, padding_mode, align_corners
        place, lost = _place(point, *given), _lost(point, *given)
        whole = place.detach().floor()
        if mode == NEAREST:
            # The grid takes part with a gradient of zero.
            choices.append([(place.detach().round().long(), place * 0 + 1)])
        elif mode == BILINEAR:
            choices.append(
                [(whole.long() + i, weight) for i, weight in enumerate(_factors(place, mode, lost)[0])]
            )
        else:
            near = [_padded(whole + (i - 1), size, padding_mode, align_corners).long() for i in range(4)]
            choices.append(list(zip(near, _factors(place, mode, lost)[0], strict=True)))
    index, weights = [], []
    for pixels in itertools.product(*choices):
        at = inside = weight = None
        for (i, factor), size in zip(pixels, sizes, strict=True):
            within = (i >= 0) & (i < size)
            inside = within if inside is None else inside & within
            at = i if at is None else at * size + i
            weight = factor if weight is None else weight * factor
        index.append(_where(inside, at, -1))
        weights.append(weight)
    return ops.stack(weights, 1), ops.stack(index, 1)


def _sizes(input, grid):
    return f"input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"


def _check(input, grid, mode, dims):
    check_tensor(input, "grid_sampler", "input", 1)
    check_tensor(grid, "grid_sampler", "grid", 2)
    if input.device != grid.device:
        raise RuntimeError(
            "grid_sampler(): expected input and grid to be on same device, but input is on "
            f"{input.device} and "
            f"grid is on {grid.device}"
        )
    if not input.ndim or not grid.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    shape, points = input.shape, grid.shape
    if shape[0] != points[0]:
        raise RuntimeError(
            f"grid_sampler(): expected grid and input to have same batch size, but got {_sizes(input, grid)}"
        )
    if points[-1] != input.ndim - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {input.ndim - 2} in last dimension, but got grid "
            f"with sizes {list(grid.shape)}"
        )
    if 0 in shape[2:]:
        raise RuntimeError(
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
            f"{list(shape)} with dimension {shape.index(0, 2)} being empty"
        )
    dims = dims or (2 if input.ndim == 4 else 3)
    if input.ndim != dims + 2 or input.ndim != grid.ndim:
        raise RuntimeError(
            f"grid_sampler(): expected {dims + 2}D input and grid with same number of dimensions, but got "
            f"{_sizes(input, grid)}"
        )
    if mode == BICUBIC and input.ndim == 5:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if not input.is_floating_point():
        kernel = "grid_sampler_2d_cpu_kernel_impl" if input.ndim == 4 else "grid_sampler3d_cpu"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(input.dtype)}'")
    if input.dtype != grid.dtype:
        raise RuntimeError(f"expected scalar type {type_name(input.dtype)} but found {type_name(grid.dtype)}")


def _grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners, dims=0):
    interpolation_mode, padding_mode = operator.index(interpolation_mode), operator.index(padding_mode)
    _check(input, grid, interpolation_mode, dims)
    if padding_mode not in (0, 1, 2) and input.ndim == 5:
        padding_mode = 0  # as torch takes it
    if interpolation_mode not in (0, 1, 2) or padding_mode not in (0, 1, 2):
        # torch returns memory that nobody wrote.
        raise RuntimeError(
            f"grid_sampler(): no such mode: interpolation {interpolation_mode}, padding {padding_mode}"
        )
    n, c, *sizes = input.shape
    result_shape = (n, c, *grid.shape[1:-1])
    if 0 in result_shape:
        return input.new_zeros(result_shape) + (input.sum() * 0 + grid.sum() * 0)
    modes = interpolation_mode, padding_mode, bool(align_corners)
    if input.dtype in (_C.float32, _C.float64):
        return ops.grid_sample(input, grid, *modes)
    weights, index = _composed_terms(grid.reshape(n, -1, len(sizes)), tuple(sizes), *modes)
    return ops.pick_weighted(input.reshape(n, c, -1), weights, index).reshape(result_shape)


def _points(grid):
    """The coordinates of all points, outermost dimension first."""
    return reversed(grid.unbind(-1))


@function
def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """grid_sample with modes as numbers: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection.

    >>> import rushlight as torch
    >>> torch.grid_sampler(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2), 0, 0, False)
    tensor([[[[1.]]]])
    """
    return _grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@function
def grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners):
    """grid_sampler of images (N, C, H, W) at grids (N, H', W', 2).

    >>> import rushlight as torch
    >>> torch.grid_sampler_2d(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2), 1, 0, True)
    tensor([[[[1.]]]])
    """
    return _grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners, 2)


@function
def grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners):
    """grid_sampler of volumes (N, C, D, H, W) at grids (N, D', H', W', 3).

    >>> import rushlight as torch
    >>> torch.grid_sampler_3d(torch.ones(1, 1, 2, 2, 2), torch.zeros(1, 1, 1, 1, 3), 0, 0, False).shape
    torch.Size([1, 1, 1, 1, 1])
    """
    return _grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners, 3)


@function
def affine_grid_generator(theta, size, align_corners):
    """The points of a grid over an image of `size`, moved by the affine maps theta (N, 2, 3) or (N, 3, 4).

    >>> import rushlight as torch
    >>> torch.affine_grid_generator(torch.eye(2, 3).unsqueeze(0), (1, 1, 1, 2), True)[0, 0]
    tensor([[-1.,  0.],
            [ 1.,  0.]])
    """
    from .create import ones
    from .ranges import linspace

    sizes = [operator.index(n) for n in size]
    dims = len(sizes) - 2
    if dims not in (2, 3):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    batch, spatial = sizes[0], sizes[2:]
    if min(batch, *spatial) < 0:
        points = [batch, *spatial, dims + 1]
        wrong = next(n for n in points if n < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {wrong}: {points}")
    points = ones(*spatial, dims + 1, dtype=theta.dtype, device=theta.device)
    for d, n in enumerate(spatial):
        if n > 1:
            line = linspace(-1, 1, n, dtype=theta.dtype, device=theta.device)
            line = line if align_corners else line * ((n - 1) / n)
        else:
            if theta.dtype in (_C.float16, _C.bfloat16, _C.bool):
                raise NotImplementedError(f"\"tensor_cpu\" not implemented for '{type_name(theta.dtype)}'")
            line = linspace(0, 0, n, dtype=theta.dtype, device=theta.device)
        points[..., dims - 1 - d] = line.reshape(-1, *(1,) * (dims - 1 - d))
    maps = theta.transpose(1, 2)
    if maps.ndim != 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    if maps.shape[:2] != (batch, dims + 1):
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {[batch, dims + 1]} but got: "
            f"{list(maps.shape[:2])}."
        )
    points = points.reshape(1, -1, dims + 1)
    rested = _C.rest_saved_hooks(True)  # torch's node makes the points anew
    try:
        moved = points @ maps
    finally:
        _C.rest_saved_hooks(rested)
    return moved.reshape(batch, *spatial, dims)
