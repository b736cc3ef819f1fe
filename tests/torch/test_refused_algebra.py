"""Solvers, transforms and products refuse a call at the point where torch does: what is said of `out=`, of an
order, a tolerance, a shape or a dtype, and in whose name. Every line is evaluated by both libraries.

`o` is torch.ones, `g` the same with a gradient wanted, `z` zeros, `Z` linalg, `T` fft.
"""

import subprocess
import sys

import pytest
from expressions import outcome

import rushlight

torch = pytest.importorskip("torch")

SETUP = """
import numpy
o, z, L, Z, T = torch.ones, torch.zeros, torch.tensor, torch.linalg, torch.fft
inf, nan, D, U = float('inf'), float('nan'), torch.float64, torch.uint16
def g(*size, **options): return torch.ones(*size, **options).requires_grad_()
M = L([[2.0, 1.0], [1.0, 3.0]])
G = M.clone().requires_grad_()
P = L([1, 2]).int()
def N(n, i, j, v):
    x = torch.eye(n) * n + (torch.arange(n * n) % 7).reshape(n, n) / 9
    x = x + x.mT
    x[i, j] = v
    return x
"""

WHO_COMPLAINS = """
Z.cholesky(G, out=z(0))
Z.inv(G, out=z(0).short())
torch.inverse(G, out=z(0))
Z.det(g(2), out=z(0))
torch.slogdet(G, out=(z(0), z(0)))
Z.solve(G, G, out=z(0).short())
Z.solve_triangular(g(0), G, upper=True, out=z(0))
Z.lu_factor(G, out=(z(0), z(0)))
torch.lu_solve(G, M, P, out=z(0))
Z.qr(G, out=(z(0), z(0)))
torch.orgqr(G, g(2), out=z(0).int())
Z.eigvalsh(G, out=z(0))
Z.svdvals(M, out=g(0))
Z.pinv(g(2), out=z(0))
Z.vector_norm(G, out=z(0))
Z.eigvals(G, out=z(0).cfloat()).requires_grad
Z.eigvals(M, out=z(0).cfloat().requires_grad_())
Z.matrix_norm(G, 1, out=z(0))
Z.norm(g(3), 2, out=z(0))
Z.norm(g(3), 2, out=z(0, dtype=D))
Z.norm(M, out=g(0))
Z.cond(M, out=g(0))
Z.cond(G, out=z(0)).requires_grad
Z.tensorinv(M, 1, out=g(2, 2))
Z.matrix_rank(M, out=g(0))
Z.matrix_rank(z(2, 0), out=g(0))
Z.ldl_factor(M, out=(g(0), z(0).int()))
Z.matrix_power(G, 0, out=z(0))
Z.matrix_power(M, 1, out=g(0))
Z.matrix_power(G, -1, out=z(0))
Z.matrix_power(G, 3, out=z(0))
Z.matrix_power(M, 2, out=z(0).short())
Z.matrix_power(M, 2, out=z(0, dtype=D))
Z.multi_dot((G, G, g(2)), out=z(0))
Z.vecdot(g(2), g(3), out=z(0))
Z.vecdot(G, G, out=z(0))
Z.vecdot(G, G, out=z(0, dtype=D))
torch.matmul(G, G, out=z(0, dtype=D))
torch.matmul(g(2), g(3), out=z(0))
torch.matmul(L(1.0), G, out=z(0))
torch.max(G, 0, out=(z(0), z(0).int()))
torch.max(g(0), out=z(0))
torch.max(g(2), g(3), out=z(0))
torch.special.ndtr(o(2), out=g(2))
torch.special.ndtr(g(2), out=z(1, 5, 1)).requires_grad
T.fft(G, out=z(0).cfloat())
T.fft(G.cfloat(), out=z(0).cfloat())
T.ifft(M, out=z(0).cfloat().requires_grad_())
T.ihfft(G, out=z(0).cfloat()).requires_grad
T.ifft2(G, out=z(0).cfloat())
T.hfftn(G, out=z(0))
T.rfftfreq(3, out=g(3))
T.fft(L(1.0), out=L(1.0))
T.irfft(o(3), 0, out=L(1))
T.ifftn(o(3), out=L(1))
T.ifftn(o(3), norm='x', out=L(1))
T.fftn(o(3).to(torch.complex32), out=L(1))
"""

ORDER_OF_CHECKS = """
Z.matrix_power(M, torch.bool)
Z.matrix_power(M, False)
Z.matrix_power(M, o(2))
Z.matrix_exp(1)
Z.matrix_exp(M, out=M)
Z.matrix_exp(o(3, 0).int())
Z.eigvals(z(2, 1))
Z.eigvals(g(2, 1))
Z.eig(o(2, 1).int())
Z.pinv(o(2, 2).int(), atol=0.1)
Z.pinv(o(2).half(), atol=0.1)
Z.pinv(M, L(0.1).cfloat())
Z.pinv(o(2, 2, 2), atol=o(3), rtol=o(4))
Z.matrix_rank(o(2, 2).int(), 0.5)
Z.matrix_rank(o(2, 2).int(), 0.5, True)
Z.matrix_rank(o(2, 2).half(), rtol=0.5)
Z.matrix_rank(o(0, 2).int(), 0.5)
Z.matrix_rank(o(2, 2).int())
Z.matrix_rank(o(2, 2, 2), rtol=o(0))
Z.matrix_norm(o(2), 1e-300)
Z.matrix_norm(M.int(), 3)
Z.matrix_norm(M, 2**62)
Z.matrix_norm(M, False)
Z.matrix_norm(M, 1j)
Z.matrix_norm(M, L(3.0))
Z.cond(M, 2**62)
Z.cond(M, 1j)
Z.solve_triangular(M, o(2, 1, dtype=D), upper=True)
Z.solve_triangular(M.long(), o(2, 1), upper=True)
Z.solve_triangular(o(2, 2, 2), o(3, 2, 1), upper=True)
Z.solve(o(2, 2, 2), z(0, 2, 1))
Z.solve(o(3, 2, 2), o(4, 2, 2, 1))
torch.ormqr(o(3, 3), L(1.0), o(3, 2))
torch.ormqr(o(3, 3), o(3), o(3, 2), out=z(0).short())
torch.orgqr(o(2, 3, 2), L(1.0))
Z.lstsq(o(3, 4, 2), o(4, 1))
Z.lstsq(o(3, 4, 2), o(3, 5))
Z.lstsq(o(3, 4, 2), o(1, 4))
Z.slogdet(L([[1.0, 1.0], [inf, 3.0]]))
[t.requires_grad for t in torch.lu_unpack(G, P, unpack_data=False)]
torch.lu(1)
torch.lu(1, get_infos=True)
torch.stft(o(9), 4, return_complex=0)
torch.stft(o(9), 4, [1], return_complex=True)
torch.stft(o(9), True, return_complex=True)
torch.stft(o(9), L([4, 4]), return_complex=True)
torch.stft(o(9), 4, center=False, align_to_window=3, return_complex=True)
torch.stft(o(9), 0, win_length=3, window=o(3), center=False, return_complex=True)
torch.stft(o(16).cfloat(), 30, 4, 4, center=False, align_to_window=True, return_complex=True)
torch.stft(o(16).cfloat(), 3, 4, 8, center=False, align_to_window=True, return_complex=True)
T.fft(o(3), 2**62)
T.ihfftn(o(3, 2, 2), (2, 2**62))
"""

OF_NOTHING = """
Z.cholesky(z(0, 2, 2).half())
Z.det(z(0, 0).half())
Z.det(z(0, 2, 2).half())
Z.solve(z(0, 0).half(), z(0, 0).half())
Z.lu(z(0, 2, 2).long())
Z.lu_solve(z(0, 0).half(), z(0).int(), z(0, 0).half())
Z.ldl_factor(z(0, 2, 2).half())
Z.ldl_solve(M, P, o(2))
Z.eigh(z(0, 2, 2).long())
Z.eigvals(z(0, 2, 2).half())
Z.svd(z(0, 2, 2).half())
Z.qr(z(0, 0).half())
Z.cond(z(0, 2, 2).long(), 1)
Z.cond(M, L(True))
Z.matrix_rank(z(0, 2, 2).half(), 0.5)
torch.cholesky(z(0, 2, 2).long())
torch.stft(70000, 8, 4, 4, center=False, return_complex=True)
"""

RARE_DTYPES = """
torch.acos(z(0).to(torch.float8_e5m2))
torch.sgn(z(0, 2).to(U))
torch.nonzero(z(0).to(U))
torch.logsumexp(z(0, 3).to(torch.float8_e5m2), 1)
Z.lu_factor(z(0, 3).to(U))
Z.svdvals(z(0, 2, 2).to(torch.complex32))
Z.matrix_norm(o(2, 2).to(torch.complex32), 2)
Z.lstsq(o(2, 2).to(torch.complex32), o(2, 2).to(torch.complex32))
torch.trace(o(2, 2).to(U))
torch.equal(o(2).to(torch.complex32), o(2).to(torch.complex32))
torch.isin(o(2).to(U), o(2).to(U))
torch.isin(o(2), 1j)
torch.std(o(3, 4).to(torch.float8_e5m2))
torch.softmax(o(3, 4).to(torch.float8_e5m2), 0)
torch.index_select(o(3, 4).to(U), 0, L([0, 2]))
torch.index_add(o(3, 4).to(U), 0, L([0]), o(1, 4).to(U))
torch.scatter_reduce(o(3).to(U), 0, L([0]), o(3).to(U), 'sum')
torch.deg2rad(o(2).to(torch.float8_e5m2))
torch.polygamma(1, o(2).to(torch.float8_e5m2))
2 / o(2).to(torch.complex32)
Z.eig(z(2, 0, 0).to(U))
Z.qr(z(2, 0).to(U))
Z.cholesky(o(2, 2).to(torch.complex32))
Z.vander(o(2).to(torch.float8_e5m2))
Z.vander(o(2).to(torch.complex32))
torch.orgqr(o(3).to(U), o(3))
torch.vander(o(2).to(U))
torch.eye(2, dtype=U)
torch.eye(0, dtype=torch.complex32)
torch.eye(2, dtype=torch.float8_e5m2)
o(2, 2, 2).to(U) @ o(2, 2, 2).to(U)
o(2, 2, 2).to(torch.float8_e5m2) @ o(2, 2, 2).to(torch.float8_e5m2)
o(3, 2, 2).to(torch.complex32) @ o(2).to(torch.complex32)
o(2).to(torch.complex32) @ o(2, 2).to(torch.complex32)
torch.dot(z(0).to(U), z(0).char())
torch.addmv(o(1, 1).to(U), o(2, 3).byte(), o(3).byte())
T.irfftn(o(2, 3).to(torch.float8_e5m2))
"""

# What is infinite or NaN. `N(n, i, j, v)` is a positive-definite matrix with v in that place.
NOT_FINITE = """
Z.cholesky(N(3, 1, 1, nan), upper=True)
Z.cholesky(N(20, 10, 10, nan))
Z.cholesky(N(20, 19, 0, inf))
Z.cholesky(N(40, 0, 0, nan), upper=True)
Z.cholesky_ex(N(33, 20, 3, nan)).info
Z.cholesky(N(3, 0, 2, nan))
Z.eigvalsh(N(3, 0, 2, inf))
Z.eigh(N(3, 2, 0, nan), UPLO='U').eigenvalues
Z.eigh(N(1, 0, 0, -inf))
Z.eigvalsh(N(1, 0, 0, nan))
Z.eigvalsh(N(5, 4, 0, inf))
Z.eigh(N(5, 4, 0, inf))
Z.eigvals(N(3, 1, 0, inf)), Z.eigvals(N(1, 0, 0, -inf)), Z.eigvals(N(3, 1, 2, inf).cfloat())
Z.eigvals(N(3, 1, 0, inf).requires_grad_())
Z.svdvals(N(3, 1, 2, -inf))
Z.svdvals(torch.stack((N(2, 1, 0, inf), N(2, 0, 0, 1.0))))
Z.svdvals(N(3, 1, 2, nan))
Z.matrix_norm(N(3, 0, 0, inf), 2), Z.matrix_norm(N(3, 0, 0, inf), 'nuc')
Z.cond(N(3, 0, 0, inf)), Z.matrix_rank(N(3, 0, 0, inf))
Z.slogdet(N(3, 0, 0, nan)), Z.slogdet(N(3, 0, 0, -inf)), Z.slogdet(N(1, 0, 0, nan))
Z.det(N(5, 4, 0, inf)), Z.det(N(5, 0, 4, inf)), Z.det(N(5, 0, 4, inf).mT)
torch.logdet(N(5, 4, 0, inf)), torch.logdet(N(5, 0, 4, -inf))
Z.matrix_exp(L([[inf]])), Z.matrix_exp(L([[-inf]])), Z.matrix_exp(L([[[2.0]], [[nan]]]))
Z.matrix_exp(L([[1e300 + 0j, inf], [0, 0]]))
"""

# A result of another size than `out` has.
LAYOUTS_OF_OUT = """
T.fft(o(2, 3), dim=0, out=z(1).cfloat()).stride()
T.ifft(o(2, 3), dim=0, out=z(1).cfloat()).stride()
T.rfftn(o(2, 3, 4), dim=(0, 1), out=z(0).cfloat()).stride()
T.irfft(o(2, 3).cfloat(), dim=0, out=z(5)).stride()
Z.householder_product(o(3, 2), o(2), out=z(1)).stride()
Z.householder_product(o(3, 2), o(2), out=z(0)).stride()
Z.eig(M, out=(z(1).cfloat(), z(1).cfloat())).eigenvectors.stride()
Z.matrix_power(G, 4, out=z(1)).requires_grad
Z.matrix_power(G, 8, out=z(2, 2, dtype=D)).grad_fn.name()
Z.matrix_power(G, 4, out=g(2, 2))
Z.matrix_power(M, 4, out=z(2, 2).short())
T.fftshift(torch.arange(6).reshape(2, 3), numpy.int64(1))
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "text",
    (WHO_COMPLAINS + ORDER_OF_CHECKS + OF_NOTHING + RARE_DTYPES + NOT_FINITE + LAYOUTS_OF_OUT)
    .strip()
    .split("\n"),
)
def test_same(text):
    if text:
        theirs = outcome(torch, text, SETUP).partition("\n")[0]
        assert outcome(rushlight, text, SETUP).partition("\n")[0] == theirs


def test_the_names_of_linalg_are_known_before_it_is_imported(tmp_path):
    """A first call from within does not decide that linalg.matrix_power has no signature."""
    program = (
        "import rushlight as torch\n"
        "torch.matrix_power(torch.eye(2), 2)\n"
        "try: torch.linalg.matrix_power(torch.eye(2), 'x')\n"
        "except TypeError as error: print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert "linalg_matrix_power(): argument 'n' (position 2) must be int, not str" in ran.stdout
