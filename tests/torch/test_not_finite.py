"""NaN and infinities in matrices end as in torch: in NaN at the same places, or in the same refusal."""

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
