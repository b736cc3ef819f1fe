"""What torch.linalg and torch.fft refuse, in which words; and results that the table cannot compare."""

import warnings

import pytest
import torch
from comparing import REFUSALS, assert_same

import rushlight

NAMES = {"nan": float("nan"), "inf": float("inf")}


def prepare(lib):
    lib.manual_seed(0)
    return NAMES | {
        "lib": lib,
        "L": lib.linalg,
        "F": lib.fft,
        "A": lib.randn(3, 3, dtype=lib.float64),
        "R": lib.randn(3, 4, dtype=lib.float64),
        "V": lib.randn(3, dtype=lib.float64),
        "Z": lib.stack((lib.eye(3, dtype=lib.float64), lib.zeros(3, 3, dtype=lib.float64))),
        "ints": lib.ones(3, 3, dtype=lib.int64),
        "half": lib.eye(3, dtype=lib.float16),
        "pivots": lib.tensor([1, 2, 3], dtype=lib.int32),
        "C": lib.randn(3, 4, dtype=lib.complex128),
    }


def outcome(lib, expression):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return eval(expression, prepare(lib)), None
        except REFUSALS as error:
            return None, error


SQUARE = ("cholesky", "inv", "eigh", "eigvalsh", "eig", "eigvals", "det", "slogdet", "ldl_factor",
          "matrix_exp", "cholesky_ex", "inv_ex")  # fmt: skip
ANY = ("qr", "svd", "svdvals", "lu", "lu_factor", "pinv", "matrix_rank", "cond")
EXPRESSIONS = [f"L.{name}({argument})" for name in SQUARE for argument in ("R", "V", "ints", "half", "Z[:0]")]
EXPRESSIONS += [f"L.{name}({argument})" for name in ANY for argument in ("V", "ints", "half", "R[:0]")]
EXPRESSIONS += """L.cholesky(-A @ A.mT); L.cholesky(Z); L.cholesky_ex(Z, check_errors=True); L.inv(Z)
L.inv(Z[1]); L.inv_ex(Z, check_errors=True); L.solve(Z, Z); L.solve(Z[1], V); L.svd(Z * nan)
L.svd(A, driver='gesvd'); L.eig(A * inf); L.eigh(A, UPLO='X'); L.qr(A, mode='x'); L.solve(A, V.float())
L.solve(A, R.mT); L.solve(R, R); L.solve(A, R.mT[:3], left=False); L.solve(A, V, left=False)
L.solve_triangular(A, V, upper=True); L.solve_triangular(A, R.mT, upper=True)
L.lu_solve(A, pivots.long(), A); L.lu_solve(A, pivots[:2], A); L.lu_solve(A, pivots * 0, A)
L.lu_solve(A, pivots * 3, A); L.lu_solve(A, pivots, A.float()); L.lu(A, pivot=False); L.lu_factor(Z)
L.lstsq(A, A, driver='x'); L.lstsq(A, V.float()); L.lstsq(V, V); L.lstsq(A, R.mT); L.lstsq(Z, V)
L.householder_product(R, V); L.householder_product(A, V.float()); L.householder_product(A, R[0])
L.householder_product(V, V); L.householder_product(Z, V); lib.geqrf(V); lib.ormqr(A, V.float(), A)
lib.ormqr(A, V, R.mT); lib.ormqr(A, R[0], A); lib.cholesky(-A @ A.mT); lib.cholesky_solve(A, R)
lib.cholesky_solve(A.float(), A); lib.cholesky_solve(V, A); lib.cholesky_inverse(R)
lib.cholesky_inverse(V); lib.triangular_solve(A, R); lib.triangular_solve(V, A); lib.lu_unpack(A, V)
lib.lu_unpack(A, pivots * 3); lib.logdet(R); L.norm(A, 'x'); L.norm(V, 'nuc'); L.norm(A, 3); L.norm(Z, 2)
L.norm(Z, 2, dim=(0, 1, 2)); L.norm(ints); L.norm(A, dtype=lib.float32); L.matrix_norm(A, 'x')
L.matrix_norm(V); L.matrix_norm(A, dim=(0, 0)); L.matrix_norm(A, dim=(0, 1, 2)); L.matrix_norm(ints)
L.matrix_norm(half, 2); L.cond(A, 'x'); L.cond(A, 3); L.cond(R, 1); L.pinv(R, hermitian=True)
L.pinv(A, atol=lib.tensor(1j)); L.matrix_rank(R, hermitian=True); L.matrix_power(R, 2)
L.matrix_power(A, 2.5); L.matrix_power(ints, -1); L.tensorinv(A, ind=0); L.tensorinv(Z)
L.tensorsolve(R, V); L.vander(V[:1]); L.vander(V, N=1); L.vander(V > 0); L.vecdot(A, A.float())
L.vecdot(ints, ints); lib.norm(A, 'nuc', dim=0); lib.norm(Z, 'nuc'); lib.norm(Z, 'fro', dim=(0, 1, 2))
lib.pca_lowrank(A, 4); lib.pca_lowrank(A, 2, niter=-1); lib.lobpcg(A, k=2); F.fft(A, n=0); F.fft(A, n=-1)
F.fft(A, dim=2); F.fft(V[0]); F.fft(A, norm='x'); F.fft(half); F.rfft(C); F.ihfft(C); F.irfft(C, n=0)
F.irfft(C[:, :1]); F.fftn(A, s=(2, 2), dim=(0,)); F.fftn(A, dim=(0, 0)); F.fftn(A, s=(1, 2, 3))
F.rfftn(A, dim=()); F.irfftn(A, dim=()); F.rfftn(C); F.fft2(V); F.fft(A, out=A.clone())
F.fftfreq(3, dtype=lib.int64); lib.stft(V, 2); lib.stft(V, 2, return_complex=True)
lib.stft(V, 4, return_complex=True, center=False)
lib.stft(V.repeat(9), 8, win_length=9, return_complex=True); lib.stft(Z, 2, 1, return_complex=True)
lib.stft(V.repeat(9), 8, window=V, return_complex=True); lib.stft(ints, 2, 1, return_complex=True)
lib.stft(V.repeat(9), 8, center=True, align_to_window=True, return_complex=True); lib.istft(A, 4)
lib.istft(C, 8); lib.istft(C, 4, hop_length=5); lib.istft(C, 4, win_length=5); lib.istft(C, 4, window=V)
lib.istft(C, 4, window=lib.zeros(4)); lib.istft(C, 4, return_complex=True)""".replace("\n", "; ").split("; ")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_words(expression):
    _, refusal = outcome(torch, expression)
    _, error = outcome(rushlight, expression)
    if refusal is None:
        assert error is None, f"torch does not refuse: {error!r}"
        return
    assert error is not None, f"torch refuses: {refusal}"
    assert type(error).__name__ == type(refusal).__name__
    assert str(error).split("\n\n")[0] == str(refusal).split("\n\n")[0]


VALUES = """L.cond(Z[1]); L.cond(Z[1], 1); L.matrix_rank(Z); L.pinv(Z); L.pinv(A, rtol=lib.tensor([0.1]))
L.det(Z); L.slogdet(Z); lib.logdet(Z); L.lstsq(Z, Z); L.lstsq(R, R, driver='gelsd')
L.lstsq(R.mT, R.mT[:, 0], driver='gelss'); L.lstsq(R[:, :0], R); L.lstsq(R[:0], R[:0])
L.matrix_rank(Z, tol=lib.tensor([0.1, 2.0])); L.vander(ints); L.matrix_power(ints, 0)
L.norm(Z[:, :0], 'nuc', dim=(1, 2)); L.cond(R, -2); L.svd(A[:, :0]); L.qr(A[:0])
L.svd(A[:0], full_matrices=False); lib.svd(A, compute_uv=False); F.fftfreq(5, 0.1); F.rfftfreq(6)
F.fftn(A, s=4, dim=0); F.fftn(A, dim=()); F.fft(ints); F.irfft(A); F.fftshift(A, dim=(0, 0))""".replace(
    "\n", "; "
)


@pytest.mark.parametrize("expression", VALUES.split("; "))
def test_values(expression):
    theirs, refusal = outcome(torch, expression)
    ours, error = outcome(rushlight, expression)
    assert refusal is None and error is None, error
    assert_same(ours, theirs, scale=100.0)


def test_low_rank_draws_as_torch():
    results = []
    for lib in (torch, rushlight):
        lib.manual_seed(3)
        A = lib.randn(12, 8, dtype=lib.float64)
        results.append((lib.svd_lowrank(A, 3)[1], lib.svd_lowrank(A.mT, 3)[1], lib.pca_lowrank(A, 3)[1]))
        weight = lib.empty(3, 5)
        results[-1] += (lib.nn.init.orthogonal_(weight),)
    assert_same(results[1], results[0], scale=10.0, strides=False)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's own forward mode
@pytest.mark.parametrize("name", ["cholesky_solve", "cholesky_inverse"])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_every_element_of_a_factor_has_a_gradient(name, upper, dtype):
    """They are functions of L L^H in which the zeros beside the triangle count too."""

    def solved(lib, L, B):
        if name == "cholesky_solve":
            return lib.cholesky_solve(B, L, upper)
        return lib.cholesky_inverse(L, upper) @ B

    results = []
    for lib in (torch, rushlight):
        forward_ad = lib.autograd.forward_ad
        lib.manual_seed(1)
        A, B, G = (lib.randn(2, 3, 3, dtype=getattr(lib, dtype)) for _ in range(3))
        L = lib.linalg.cholesky(A @ A.mH + lib.eye(3, dtype=A.dtype), upper=upper).requires_grad_()
        B.requires_grad_()
        first = lib.autograd.grad(solved(lib, L, B), (L, B), G, create_graph=True)
        second = lib.autograd.grad(sum((g.abs() ** 2).sum() for g in first), (L, B))
        results.append((*(g.detach() for g in first), *second))
        if name == "cholesky_solve":  # torch's tangent of the inverse is none that finite differences confirm
            with forward_ad.dual_level():
                dual = forward_ad.make_dual(L.detach(), A)
                results[-1] += (forward_ad.unpack_dual(solved(lib, dual, B.detach())).tangent,)
    assert_same(results[1], results[0], scale=1000.0, strides=False)


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("left, right", [
    ((1, 3, 3), (2, 3, 3)), ((2, 1, 4, 2), (1, 3, 4, 1)), ((2, 3, 3), (1, 3, 3)), ((1, 3, 2), (0, 3, 1)),
    ((0, 3, 2), (1, 3, 1)),
])  # fmt: skip
def test_lstsq_tells_of_each_matrix_once(left, right, driver):
    a, b = torch.randn(left, dtype=torch.float64), torch.randn(right, dtype=torch.float64)
    expected = torch.linalg.lstsq(a, b, driver=driver)
    got = rushlight.linalg.lstsq(*(rushlight.tensor(t.numpy()) for t in (a, b)), driver=driver)
    by_chance = 0 in right  # without right sides torch writes no ranks, and sizes the residuals by them
    for name in ("solution", "residuals", "rank", "singular_values"):
        mine, theirs = getattr(got, name), getattr(expected, name)
        assert mine.shape == theirs.shape or (by_chance and name == "residuals")
        assert by_chance or torch.allclose(torch.from_numpy(mine.numpy()), theirs)
