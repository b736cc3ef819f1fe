"""Few singular values or eigenpairs of large matrices: svd_lowrank, pca_lowrank, lobpcg."""

from __future__ import annotations

from rushlight import _C
from rushlight._dtype_info import finfo
from rushlight._signatures import check_call
from rushlight.autograd.grad_mode import no_grad
from rushlight.ops._public import C_NAMES, FUNCTIONS, function, stumble
from rushlight.ops.create import strided
from rushlight.ops.linalg import records, require_tensor

ops = _C.ops


def _dtype_of_directions(A):
    known = A.is_complex() or A.dtype in (_C.float16, _C.float32, _C.float64)
    return A.dtype if known else _C.float32


def _times(A, M, X):
    """(A - M) @ X, of a matrix that need not be made: it may have structure that A - M has not."""
    return A @ X if M is None else A @ X - M @ X


def _basis(A, q, niter, M=None):
    """Orthonormal columns that nearly span the q largest singular directions (Halko et al. 2009)."""
    if q.__class__ is not int:
        check_call("randn", "", A.shape[-1], q)
    R = FUNCTIONS["randn"](A.shape[-1], q, dtype=_dtype_of_directions(A), device=A.device)
    Q = ops.linalg_qr(_times(A, M, R), "reduced")[0]
    for _ in range(niter):
        Q = ops.linalg_qr(_times(A.mH, None if M is None else M.mH, Q), "reduced")[0]
        Q = ops.linalg_qr(_times(A, M, Q), "reduced")[0]
    return Q


@function
def svd_lowrank(A, q=6, niter=2, M=None):
    """U, S and V of a matrix of rank about q, from q random directions and niter power iterations.

    >>> U, S, V = rushlight.svd_lowrank(rushlight.ones(20, 10), q=2)
    >>> S.shape
    torch.Size([2])
    """
    stumble(A, "shape")
    m, n = A.shape[-2:]
    q = 6 if q is None else q
    niter = 2 if niter is None else niter
    if M is not None:
        stumble(M, "broadcast_to")
        dtype = _dtype_of_directions(A)
        for factor in (A, M):  # both are multiplied with the directions
            if factor.dtype != dtype:
                kinds = f"{C_NAMES[factor.dtype]} != {C_NAMES[dtype]}"
                raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {kinds}")
        M = M.expand(A.shape)
    wide = m < n
    if wide:
        A, M = A.mH, None if M is None else M.mH
    Q = _basis(A, q, niter, M)
    B = Q.mH @ A
    U, S, Vh = ops.linalg_svd(B if M is None else B - Q.mH @ M, False, True)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


@function
def pca_lowrank(A, q=None, center=True, niter=2):
    """Principal components: svd_lowrank of the rows of A, their mean subtracted if `center`.

    >>> U, S, V = rushlight.pca_lowrank(rushlight.eye(20, 10), q=2)
    >>> V.shape
    torch.Size([10, 2])
    """
    stumble(A, "shape")
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not (q >= 0 and q <= min(m, n)):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if not niter >= 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if center:
        A = A - A.mean(dim=-2, keepdim=True)
    return svd_lowrank(A, q, niter=niter)


# ---- LOBPCG


def _orthonormal(S, B):
    """Columns that span those of S, orthonormal in the inner product of B; dependent ones are dropped."""
    gram = S.mH @ (S if B is None else B @ S)
    scale = gram.diagonal().real.clamp_min(finfo(S.dtype).tiny).rsqrt().to(S.dtype)
    values, vectors = ops.linalg_eigh(scale.unsqueeze(-1) * gram * scale, False, True)
    kept = values > values[-1] * finfo(S.dtype).eps * 10
    vectors, values = vectors[:, kept], values[kept]
    return (S * scale) @ (vectors * values.rsqrt().to(S.dtype))


def _pairs(A, B, S, k, largest):
    """The best k eigenpairs in the span of S, whose columns are orthonormal (Rayleigh-Ritz)."""
    values, vectors = ops.linalg_eigh(S.mH @ (A @ S), False, True)
    if largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[:k], vectors[:, :k]


class LOBPCG:
    """The iteration as a tracker is shown it: the matrices, the eigenpairs so far and their errors."""

    def __init__(self, A, B, X, iK, iparams, fparams, bparams, method, tracker):
        self.A, self.B, self.X, self.iK = A, B, X, iK
        self.iparams, self.fparams, self.bparams = iparams, fparams, bparams
        self.method, self.tracker = method, tracker
        self.E = self.R = self.S = None
        self.ivars, self.fvars, self.bvars, self.tvars = {}, {}, {}, {}

    def show(self, step, X, E, R, S, error):
        """Calls the tracker with the state before step `step`."""
        if self.tracker is None:
            return
        self.X, self.E, self.R, self.S, self.tvars["rerr"] = X, E, R, S, error
        far = (error >= self.fparams["tol"]).tolist()
        self.ivars["istep"], self.ivars["iterations_left"] = step + 1, self.iparams["niter"] - step - 1
        self.ivars["converged_count"] = far.index(True) if True in far else len(far)
        self.tracker(self)


def _lobpcg(worker):
    A, B, X, iK = worker.A, worker.B, worker.X, worker.iK
    k, n, largest = worker.iparams["k"], X.shape[-1], worker.bparams["largest"]
    S = X = _orthonormal(X, B)
    values, C = _pairs(A, B, X, n, largest)
    X, P = X @ C, None
    norm = ops.vector_norm(_entries(A), 2, None, False, None)
    worker.fvars["A_norm"] = norm.item()
    for step in range(worker.iparams["niter"]):
        R = A @ X - (X if B is None else B @ X) * values.to(X.dtype)
        error = ops.vector_norm(R, 2, 0, False, None) / (norm * ops.vector_norm(X, 2, 0, False, None))
        worker.show(step, X, values, R, S, error)
        if bool((error[:k] < worker.fparams["tol"]).all()):
            break
        W = R if iK is None else iK @ R
        parts = [W] if P is None else [W, P]
        # Twice: what is left after the first projection is small, and rounding has turned it.
        rest = FUNCTIONS["cat"](parts, 1)
        for _ in range(2):
            rest = rest - X @ (X.mH @ (rest if B is None else B @ rest))
        rest = _orthonormal(rest, B)
        S = FUNCTIONS["cat"]((X, rest), 1)
        values, C = _pairs(A, B, S, n, largest)
        P = rest @ C[n:]
        X = X @ C[:n] + P
    return values[:k], X[:, :k]


def _entries(matrix):
    """The elements that are written down, of whatever layout."""
    if matrix.is_sparse:
        return matrix.coalesce().values()
    return matrix if matrix.layout is strided else matrix.values()


@function
def lobpcg(
    A,
    k=None,
    B=None,
    X=None,
    n=None,
    iK=None,
    niter=None,
    tol=None,
    largest=None,
    method=None,
    tracker=None,
    ortho_iparams=None,
    ortho_fparams=None,
    ortho_bparams=None,
):
    """The k largest (or smallest) eigenvalues of Hermitian A, or of the pencil (A, B), and their vectors.

    The locally optimal block preconditioned conjugate gradient method (Knyazev 2001), with the blocks kept
    orthonormal. iK is a preconditioner, X the first guess. `tracker` is called in each step with an object
    that knows the state: `X`, `E`, `tvars["rerr"]`, `ivars["istep"]`, ...

    >>> values, vectors = rushlight.lobpcg(rushlight.arange(9.0).diag(), k=1)
    >>> values.round()
    tensor([8.])
    """
    require_tensor("lobpcg", A=A)
    for name, value in (("ortho_iparams", ortho_iparams), ("ortho_fparams", ortho_fparams),
                        ("ortho_bparams", ortho_bparams)):  # fmt: skip
        if value is not None:
            raise NotImplementedError(f"lobpcg(): {name} is not implemented")
    m = A.shape[-1]
    if A.ndim < 2 or A.shape[-2] != m:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if B is not None and B.shape != A.shape:
        raise AssertionError(f"B shape mismatch: got {B.shape}, expected {A.shape}")
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the "
            f"number of requested eigenpairs (={n})"
        )
    largest = True if largest is None else largest
    tol = finfo(A.dtype).eps ** 0.5 if tol is None else tol
    niter = 1000 if niter is None or niter < 0 else niter
    if X is None:
        X = FUNCTIONS["randn"](*A.shape[:-1], n, dtype=A.dtype, device=A.device)
    elif tuple(X.shape) != (*A.shape[:-1], n):
        raise AssertionError(f"X shape mismatch: got {X.shape}, expected {(*A.shape[:-1], n)}")
    lacks = _lacking(A, B)
    if records(A) and lacks is None:
        A = (A + A.mT) / 2
    sizes = {"m": m, "n": n, "k": k, "niter": niter}
    how = {"tol": tol}, {"largest": largest}, "ortho" if method is None else method, tracker
    with no_grad():
        values, vectors = _lobpcg_each(A, B, X, iK, sizes, how)
    if lacks is not None:
        return _refusing(lacks, values, vectors, A, B)
    return (values, vectors) if not records(A) else _with_history(A, values, vectors, largest)


def _lacking(A, B):
    """Why there is no gradient, where one will be asked for."""
    if not (records(A) or (B is not None and records(B))):
        return None
    if A.layout is not strided:
        return "lobpcg.backward does not support sparse input yet. Note that lobpcg.forward does though."
    return None if B is None else "lobpcg.backward does not support backward with B != I yet."


def _refusing(sentence, values, vectors, *inputs):
    """The eigenpairs with a history that raises when it is asked for a gradient."""
    from rushlight.autograd.function import Function

    class LOBPCGAutogradFunction(Function):
        @staticmethod
        def forward(ctx, *inputs):
            return values, vectors

        @staticmethod
        def backward(ctx, *grads):
            raise ValueError(sentence)

    return LOBPCGAutogradFunction.apply(*inputs)


def _with_history(A, values, vectors, largest):
    """The same eigenpairs, whose derivative is that of the complete decomposition."""
    k = values.shape[-1]
    w, V = ops.linalg_eigh(A, False, True)
    if largest:
        w, V = w.flip(-1), V.flip(-1)
    w, V = w[..., :k], V[..., :k]
    signs = (V.detach() * vectors).sum(-2, keepdim=True).sign()
    V = V * signs
    return values + (w - w.detach()), vectors + (V - V.detach())


def _lobpcg_each(A, B, X, iK, sizes, how):
    """lobpcg for each matrix of a batch."""
    if A.ndim == 2:
        return _lobpcg(LOBPCG(A, B, X, iK, sizes, *how))
    count, k = A.shape[:-2].numel(), sizes["k"]
    blocks = [None if x is None else x.reshape(count, *x.shape[-2:]) for x in (A, B, X, iK)]
    found = [
        _lobpcg(LOBPCG(*[None if x is None else x[i] for x in blocks], {**sizes, "batch_index": i}, *how))
        for i in range(count)
    ]
    values = FUNCTIONS["stack"]([value for value, _ in found]).reshape(*A.shape[:-2], k)
    vectors = FUNCTIONS["stack"]([vector for _, vector in found]).reshape(*A.shape[:-1], k)
    return values, vectors
