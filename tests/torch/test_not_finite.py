"""NaN and infinities in matrices and grids: NaN at the same places as in torch, or the same refusal."""

import pytest

import rushlight

torch = pytest.importorskip("torch")

INF, NAN = float("inf"), float("nan")
DTYPES = ("float32", "float64", "complex64", "complex128")


def end(library, function, *args):
    """What becomes of a call, as both libraries say it."""
    try:
        result = function(library, *args)
    except RuntimeError as error:
        return type(error).__name__, str(error).partition("\n")[0]
    return [t.tolist() for t in (result if isinstance(result, tuple) else (result,))]


def matrices(library, dtype, n, value):
    dtype = getattr(library, dtype)
    for place in sorted({(0, 0), (n - 1, n - 1), (n - 1, 0), (0, n - 1), (n // 2, n // 2)}):
        a = library.eye(n, dtype=dtype)
        a[place] = value
        yield a
    yield library.full((n, n), value, dtype=dtype)
    yield library.stack([library.eye(n, dtype=dtype), library.full((n, n), value, dtype=dtype)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "matrix_rank", "pinv"])
def test_eigenvalues(name, dtype):
    def call(library, a):
        hermitian = {"hermitian": True} if name in ("matrix_rank", "pinv") else {}
        return getattr(library.linalg, name)(a, **hermitian)

    for n in (1, 2, 3, 5, 26):
        for value in (NAN, INF, -INF):
            for theirs, ours in zip(matrices(torch, dtype, n, value), matrices(rushlight, dtype, n, value)):
                assert repr(end(rushlight, call, ours)) == repr(end(torch, call, theirs)), (n, theirs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 2), (4, 4), (5, 7), (12, 12)])
def test_singular_vectors_of_one_infinity(shape, dtype):
    def call(library):
        a = library.eye(*shape, dtype=getattr(library, dtype))
        a[1, 0] = INF
        u, s, vh = library.linalg.svd(a, full_matrices=False)
        return s, library.tensor([*u.shape, *vh.shape])  # which vectors are NaN depends on the library

    assert repr(end(rushlight, call)) == repr(end(torch, call))


@pytest.mark.parametrize("dtype", DTYPES)
def test_least_squares_of_infinite_right_sides(dtype):
    def call(library, n, row):
        a = library.arange(1.0, 1 + n * n).reshape(n, n).sin().to(getattr(library, dtype))
        b = library.ones(n, 2, dtype=a.dtype)
        b[row, 0] = INF
        return library.linalg.lstsq(a, b, driver="gelsy").solution.isnan()

    for n in (1, 2, 3, 5):
        for row in {0, n - 1}:
            assert end(rushlight, call, n, row) == end(torch, call, n, row)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_points_of_a_grid(mode, padding, dtype):
    def call(library, points, gradient):
        dtype_ = getattr(library, dtype)
        x = library.arange(1.0, 13.0, dtype=dtype_).reshape(1, 1, 3, 4).requires_grad_()
        grid = library.tensor(points, dtype=dtype_).reshape(1, 1, -1, 2).requires_grad_()
        out = library.nn.functional.grid_sample(x, grid, mode, padding, align_corners=True)
        if not gradient:
            return out.detach()
        return tuple(g.isnan() for g in library.autograd.grad(out.sum(), (x, grid)))

    points = [[NAN, 0.1], [0.1, NAN], [INF, 0.1], [0.1, -INF], [INF, NAN], [0.3, -0.2]]
    for chosen in (points, *([p] for p in points)):  # in torch's vectors and one by one
        ours, theirs = call(rushlight, chosen, False), call(torch, chosen, False)
        ours, theirs = ours.flatten().tolist(), theirs.flatten().tolist()
        assert ours == pytest.approx(theirs, rel=1e-5, nan_ok=True)
    if (mode == "bicubic" and padding != "reflection") or padding == "zeros":  # elsewhere torch may crash
        for point in points:
            assert end(rushlight, call, [point], True) == end(torch, call, [point], True), point
