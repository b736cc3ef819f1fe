"""Linear algebra and Fourier transforms beyond the table: failures, special matrices, large ones, threads."""

import itertools
import math

import pytest

import rushlight as torch
from rushlight import linalg


def random(*shape, dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    return torch.randn(*shape, dtype=dtype)


def close(a, b, tolerance=1e-9):
    return a.shape == b.shape and bool(((a - b).abs() <= tolerance * (1 + b.abs())).all())


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("shape", [(70, 70), (3, 20, 20), (90, 40), (40, 90)])
def test_factors_multiply_to_the_matrix(shape, dtype):
    A = random(*shape, dtype=dtype)
    Q, R = linalg.qr(A)
    assert close(Q @ R, A) and close(
        Q.mH @ Q, torch.eye(Q.shape[-1], dtype=dtype).expand(*Q.shape[:-2], -1, -1)
    )
    U, S, Vh = linalg.svd(A, full_matrices=False)
    assert close((U * S.unsqueeze(-2)) @ Vh, A) and bool((S.diff(dim=-1) <= 0).all())
    P, L, U = linalg.lu(A)
    assert close(P @ L @ U, A)
    assert close(linalg.pinv(A) @ A @ linalg.pinv(A), linalg.pinv(A))


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_eigenvectors_diagonalise(dtype):
    A = random(2, 30, 30, dtype=dtype)
    values, V = linalg.eig(A)
    assert close(A.to(V.dtype) @ V, V * values.unsqueeze(-2))
    H = A + A.mH
    values, V = linalg.eigh(H)
    assert close((V * values.unsqueeze(-2)) @ V.mH, H)
    assert close(linalg.eigh(H.triu(), "U")[0], values)


def test_failures_name_the_matrix():
    batch = torch.stack((torch.eye(2), torch.zeros(2, 2)))
    with pytest.raises(linalg.LinAlgError, match=r"linalg.inv: \(Batch element 1\): The diagonal element"):
        linalg.inv(batch)
    with pytest.raises(linalg.LinAlgError, match="leading minor of order 2 is not positive-definite"):
        linalg.cholesky(torch.tensor([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(RuntimeError, match="The solver failed because the input matrix is singular"):
        linalg.solve(torch.zeros(2, 2), torch.ones(2))
    with pytest.raises(linalg.LinAlgError, match="contained non-finite values"):
        linalg.svd(torch.full((2, 2), math.nan))
    with pytest.raises(RuntimeError, match="should not contain infs or NaNs"):
        linalg.eig(torch.full((2, 2), math.inf))
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        with pytest.raises(linalg.LinAlgError, match=r"lstsq: .*non-finite values"):
            linalg.lstsq(torch.full((3, 2), math.nan), torch.ones(3, 1), driver=driver)
    assert linalg.inv_ex(batch).info.tolist() == [0, 1]
    assert issubclass(linalg.LinAlgError, RuntimeError)


def test_pivots_from_elsewhere_are_refused():
    LU, pivots = linalg.lu_factor(random(3, 3))
    for bad in (0, 4, -1):
        with pytest.raises(RuntimeError, match="Did you properly pass the result of lu_factor"):
            linalg.lu_solve(LU, torch.full_like(pivots, bad), torch.ones(3, 1, dtype=LU.dtype))
        with pytest.raises(RuntimeError, match="Did you properly pass the result of lu_factor"):
            torch.lu_unpack(LU, torch.full_like(pivots, bad))
        with pytest.raises(RuntimeError, match="ldl_factor"):
            linalg.ldl_solve(LU, torch.full_like(pivots, bad), torch.ones(3, 1, dtype=LU.dtype))


def test_the_gradient_of_a_singular_determinant_is_its_adjugate():
    A = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
    linalg.det(A).backward()
    assert close(A.grad, torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64))
    A = torch.diag(torch.tensor([0.0, 2.0, 3.0], dtype=torch.float64)).requires_grad_()
    linalg.det(A).backward()
    assert close(A.grad, torch.diag(torch.tensor([6.0, 0.0, 0.0], dtype=torch.float64)))


def test_a_loss_that_depends_on_the_phase_is_refused():
    A = random(3, 3, dtype=torch.complex128).requires_grad_()
    for name, loss in {
        "svd_backward": lambda: linalg.svd(A)[0].real.sum(),
        "linalg_eig_backward": lambda: linalg.eig(A)[1].real.sum(),
        "linalg_eigh_backward": lambda: linalg.eigh(A + A.mH)[1].real.sum(),
    }.items():
        with pytest.raises(RuntimeError, match=f"{name}: .*up to multiplication by e"):
            loss().backward()


def test_what_has_no_derivative_says_so():
    A = random(3, 2).requires_grad_()
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete'"):
        linalg.qr(A, "complete")[0].sum().backward()
    with pytest.raises(RuntimeError, match="depends on Q, which is not computed when mode='r'"):
        linalg.qr(A, "r")[1].sum().backward()
    with pytest.raises(NotImplementedError, match="the derivative for 'geqrf' is not implemented"):
        torch.geqrf(A)[0].sum().backward()
    with pytest.raises(ValueError, match="does not support backward with B != I yet"):
        torch.lobpcg(A @ A.mT, k=1, B=torch.eye(3).double())[0].sum().backward()
    with pytest.raises(ValueError, match="does not support sparse input yet"):
        torch.lobpcg((A @ A.mT).to_sparse(), k=1)[1].sum().backward()


def test_out_and_names():
    A = random(2, 2)
    result = torch.empty(0, dtype=torch.float64)
    assert linalg.inv(A, out=result) is result and close(result @ A, torch.eye(2, dtype=torch.float64))
    L, info = torch.empty(0, dtype=torch.float64), torch.empty(0, dtype=torch.int32)
    named = linalg.cholesky_ex(A @ A.mT, out=(L, info))
    assert named.L is L and named.info is info
    assert repr(linalg.slogdet(torch.eye(1))).startswith("torch.return_types.linalg_slogdet(\nsign=")


def test_low_rank():
    torch.manual_seed(0)
    A = random(30, 4) @ random(4, 20, seed=1)
    for M in (A, A.mT):
        U, S, V = torch.svd_lowrank(M, 4)
        assert close((U * S) @ V.mT, M)
    U, S, V = torch.pca_lowrank(A, 4)
    assert close((U * S) @ V.mT, A - A.mean(0))
    H = A @ A.mT
    exact = linalg.eigvalsh(H)
    values, vectors = torch.lobpcg(H, k=2)
    assert close(torch.lobpcg(H.to_sparse_csr(), k=2)[0], values, 1e-6)
    assert close(values, exact[-2:].flip(0), 1e-6) and close(H @ vectors, vectors * values, 1e-3)
    H.requires_grad_()
    torch.lobpcg(H, k=1)[0].sum().backward()  # of the largest eigenvalue: v v^T
    assert close(H.grad, vectors[:, :1] @ vectors[:, :1].mT, 1e-3)
    H = H.detach()
    B = torch.diag(torch.arange(1.0, 31.0, dtype=torch.float64))
    values, vectors = torch.lobpcg(H, k=3, B=B)
    assert close(H @ vectors, B @ vectors * values, 1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
@pytest.mark.parametrize("size", [1e-3, 0.1, 0.7, 1.7, 4.0, 30.0])
def test_exponentials_of_all_sizes(dtype, size):
    """exp(A) exp(-A) is the identity, and a diagonal one is known."""
    A = random(6, 6, dtype=dtype)
    A = (A - A.mH) * (size / 6)
    product = torch.matrix_exp(A) @ torch.matrix_exp(-A)
    assert close(product, torch.eye(6, dtype=dtype), 1e-4 if torch.finfo(dtype).eps > 1e-10 else 1e-12)
    d = torch.linspace(-1, 1, 6, dtype=torch.float64).to(dtype) * size
    tolerance = 2e-4 if torch.finfo(dtype).eps > 1e-10 else 1e-12
    assert close(torch.matrix_exp(torch.diag(d)).diagonal(), d.exp(), tolerance)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 30, 97, 128, 256, 512, 1009, 2048])
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_transforms_of_any_length(n, dtype):
    x = random(3, n, dtype=dtype)
    tolerance = 1e-4 if dtype == torch.complex64 else 1e-11
    k = torch.arange(n, dtype=torch.float64)
    matrix = torch.exp(-2j * math.pi * (k.unsqueeze(1) * k % n) / n).to(torch.complex128)
    expected = (x.to(torch.complex128) @ matrix).to(dtype)
    assert close(torch.fft.fft(x), expected, tolerance)
    assert close(torch.fft.ifft(torch.fft.fft(x)), x, tolerance)
    assert close(torch.fft.fft(x.real), torch.fft.fft(x.real.to(dtype)), tolerance)
    assert close(torch.fft.irfft(torch.fft.rfft(x.real), n), x.real, tolerance)
    assert close(torch.fft.hfft(torch.fft.ihfft(x.real), n), x.real, tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
def test_small_reflectors_are_orthogonal_at_any_scale(dtype):
    eps = torch.finfo(dtype).eps
    scales = (1, 1e-30, 1e30, 1e-300, 1e300) if eps < 1e-10 else (1, 1e-30, 1e30)
    for m, n in [(1, 1), (2, 3), (5, 2), (8, 8), (32, 32), (32, 33), (33, 32)]:
        for scale in scales:
            A = random(3, m, n, dtype=dtype) * scale
            A[1, :, 0] = 0  # nothing to reflect
            for mode in ("reduced", "complete"):
                Q, R = linalg.qr(A, mode=mode)
                assert (Q.mH @ Q - torch.eye(Q.shape[-1], dtype=dtype)).abs().max() < 40 * eps
                assert (Q @ (R / scale) - A / scale).abs().max() < 200 * eps
                assert torch.equal(R, R.triu())
            a, tau = torch.geqrf(A)
            assert torch.equal(torch.triu(a), linalg.qr(A, mode="complete")[1].triu())
            if m >= n:
                assert (linalg.householder_product(a, tau) - linalg.qr(A)[0]).abs().max() < 40 * eps


@pytest.mark.parametrize("n", [2, 3, 4, 8, 15, 16, 32, 64, 100])
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_many_lines_are_transformed_as_one_is(n, dtype):
    """A vector holds a number of each of several lines: whole vectors of them, and what is left over."""
    tolerance = 1e-4 if dtype == torch.complex64 else 1e-11
    x = random(2, 13, n, dtype=dtype)
    for name, lines, length in [
        ("fft", x, n),
        ("ifft", x, n),
        ("rfft", x.real, n),
        ("ihfft", x.real, n),
        ("irfft", torch.fft.rfft(x.real), n),
        ("hfft", torch.fft.rfft(x.real), n),
    ]:
        transform = getattr(torch.fft, name)
        expected = torch.stack([torch.stack([transform(line, length) for line in part]) for part in lines])
        assert close(transform(lines, length), expected, tolerance)
        assert close(transform(lines.transpose(0, 1), length), expected.transpose(0, 1), tolerance)
        assert close(transform(lines[:, ::2], length), expected[:, ::2], tolerance)


def test_threads_give_the_same():
    before = torch.get_num_threads()
    A = random(64, 8, 8)
    x = random(400, 512)
    try:
        results = []
        for threads in (1, 4):
            torch.set_num_threads(threads)
            results.append((linalg.inv(A), linalg.svdvals(A), torch.fft.rfft(x), torch.fft.fft(x, dim=0)))
    finally:
        torch.set_num_threads(before)
    for one, many in zip(*results):
        assert one.tolist() == many.tolist()


def test_frequencies():
    assert torch.fft.fftfreq(5, 0.5).tolist() == pytest.approx([0, 0.4, 0.8, -0.8, -0.4])
    assert torch.fft.rfftfreq(4).tolist() == [0, 0.25, 0.5]
    assert torch.fft.fftfreq(0).shape == (0,)
    with pytest.raises(RuntimeError, match="requires a floating point or complex dtype"):
        torch.fft.fftfreq(3, dtype=torch.int64)
    with pytest.raises(RuntimeError, match=r"Invalid number of data points \(0\) specified"):
        torch.fft.fft(torch.zeros(3, 0))
    with pytest.raises(RuntimeError, match="Unsupported dtype Half"):
        torch.fft.fft(torch.zeros(3, dtype=torch.float16))


def test_a_signal_survives_its_windows():
    signal, window = random(2, 50), torch.hann_window(16, dtype=torch.float64)
    spectrum = torch.stft(signal, 16, window=window, return_complex=True)
    assert close(torch.istft(spectrum, 16, window=window, length=50), signal)
    assert close(signal.stft(16, window=window, return_complex=True), spectrum)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("n", [1, 2, 5, 8, 9, 16, 17])
def test_small_matrices_agree_with_large_ones(n, dtype):
    """Loops of our own serve few rows; a block diagonal matrix of forty rows goes to LAPACK."""
    A = random(3, n, n, dtype=dtype)
    large = torch.block_diag(*[*A, torch.eye(40, dtype=dtype)])

    def blocks(x):
        return torch.stack([x[i * n : (i + 1) * n, i * n : (i + 1) * n] for i in range(3)])

    assert close(linalg.inv(A), blocks(linalg.inv(large)))
    assert close(linalg.det(A).prod(), linalg.det(large))
    H = A @ A.mH + torch.eye(n, dtype=dtype)
    big = torch.block_diag(*[*H, torch.eye(40, dtype=dtype)])
    assert close(linalg.cholesky(H), blocks(linalg.cholesky(big)))
    B = random(3, n, 2, dtype=dtype)
    assert close(A @ linalg.solve(A, B), B)
    assert close(linalg.solve(A, B.mT, left=False) @ A, B.mT)


def test_pivots_near_zero_do_not_overflow():
    A = torch.tensor([[1e-310, 0.0], [0.0, 1.0]], dtype=torch.float64)
    assert linalg.solve(A, torch.tensor([1e-310, 1.0], dtype=torch.float64)).tolist() == [1.0, 1.0]
    assert linalg.lu_factor(A).pivots.tolist() == [1, 2]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [15, 17, 64, 83, 130])
def test_large_systems(n, dtype):
    tolerance = 1e-3 if dtype == torch.float32 else 1e-10
    torch.manual_seed(n)
    A = torch.randn(n, n, dtype=dtype) / n**0.5 + 2 * torch.eye(n, dtype=dtype)[torch.randperm(n)]
    unit = torch.eye(n, dtype=dtype)
    B = torch.randn(n, 40, dtype=dtype)
    P, L, U = torch.linalg.lu(A)
    assert (P @ L @ U - A).abs().max() < tolerance and (L.abs() <= 1).all()
    assert (torch.linalg.inv(A) @ A - unit).abs().max() < tolerance
    assert (A @ torch.linalg.solve(A, B) - B).abs().max() < tolerance
    assert (torch.linalg.solve(A, B.mT, left=False) @ A - B.mT).abs().max() < tolerance
    assert torch.linalg.lu_factor_ex(torch.cat([A[:, :-1], A[:, :1]], 1) * 0)[2] == 1
    T = torch.randn(n, n, dtype=dtype) / n + unit
    for upper, left, unitriangular, turned in itertools.product([False, True], repeat=4):
        matrix = T.mT.contiguous().mT if turned else T
        right = B if left else B.mT
        X = torch.linalg.solve_triangular(matrix, right, upper=upper, left=left, unitriangular=unitriangular)
        triangle = matrix.triu() if upper else matrix.tril()
        if unitriangular:
            triangle = triangle - triangle.diag().diag() + unit
        assert ((triangle @ X if left else X @ triangle) - right).abs().max() < tolerance
    # The other triangle is not looked at, and a diagonal too small for a reciprocal divides.
    small = torch.full((n, n), float("nan"), dtype=dtype).tril(-1) + torch.finfo(dtype).tiny / 8 * unit
    x = torch.linalg.solve_triangular(
        small, torch.finfo(dtype).tiny * torch.ones(n, 20, dtype=dtype), upper=True
    )
    assert (x == 8).all()


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
def test_triangular_solve_gives_a_copy_of_a_matrix_that_lies_by_columns():
    A = torch.tensor([[2.0, 0.0], [1.0, 3.0]]).mT
    torch.triangular_solve(torch.ones(2, 1), A).cloned_coefficient.zero_()
    assert A.tolist() == [[2.0, 1.0], [0.0, 3.0]]
