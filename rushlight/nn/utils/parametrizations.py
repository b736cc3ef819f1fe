"""Ready parametrizations: weight_norm, spectral_norm, orthogonal."""

import rushlight
import rushlight.nn.functional as F
from rushlight._private import _weight_norm
from rushlight.nn.module import Module
from rushlight.nn.utils import parametrize
from rushlight.ops.forms import norm_except_dim

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _tensor_of(module, name):
    tensor = getattr(module, name, None)
    if not isinstance(tensor, rushlight.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return tensor


class _WeightNorm(Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return _weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Splits a weight into a length (`original0`) and a direction (`original1`).

    >>> import rushlight as torch
    >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))
    >>> layer.parametrizations.weight.original0.shape
    torch.Size([2, 1])
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def take_old_names(state_dict, prefix, *rest):
        for old, new in (("g", "original0"), ("v", "original1")):
            key = f"{prefix}{name}_{old}"
            if key in state_dict:
                state_dict[f"{prefix}parametrizations.{name}.{new}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(take_old_names)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight)
            height, width = matrix.size()
            u = matrix.new_empty(height).normal_(0, 1)
            v = matrix.new_empty(width).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=self.eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=self.eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight):
        if self.dim != 0:
            others = [d for d in range(weight.dim()) if d != self.dim]
            weight = weight.permute(self.dim, *others)
        return weight.flatten(1)

    @rushlight.no_grad()
    def _iterate(self, matrix, count):
        for _ in range(count):
            self._u = F.normalize(rushlight.mv(matrix, self._v), dim=0, eps=self.eps)
            self._v = F.normalize(rushlight.mv(matrix.T.conj(), self._u), dim=0, eps=self.eps)

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        return weight / rushlight.vdot(u, rushlight.mv(matrix, v))

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divides a weight by its largest singular value, which is followed by power iteration."""
    weight = _tensor_of(module, name)
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    norm = _SpectralNorm(weight.detach(), n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, norm)


class _Orthogonal(Module):
    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x):
        n, k = x.size(-2), x.size(-1)
        transposed = n < k
        if transposed:
            x = x.mT
            n, k = k, n
        if self.orthogonal_map in ("matrix_exp", "cayley"):
            # A skew-symmetric matrix is mapped to a rotation.
            a = x.tril()
            if n != k:
                a = rushlight.cat([a, a.new_zeros(n, n - k).expand(*a.shape[:-2], -1, -1)], dim=-1)
            a = a - a.mH
            if self.orthogonal_map == "matrix_exp":
                q = rushlight.linalg.matrix_exp(a)
            else:
                identity = rushlight.eye(n, dtype=a.dtype, device=a.device)
                q = rushlight.linalg.solve(identity - 0.5 * a, identity + 0.5 * a)
            if n != k:
                q = q[..., :k]
        else:
            a = x.tril(diagonal=-1)
            tau = 2.0 / (1.0 + (a * a).sum(dim=-2))
            q = rushlight.linalg.householder_product(a, tau)
            q = q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        if getattr(self, "base", None) is not None:
            q = self.base @ q
        return q.mT if transposed else q

    @rushlight.no_grad()
    def right_inverse(self, q):
        if q.shape != self.shape:
            raise ValueError(
                "Expected a matrix or batch of matrices of shape "
                f"{self.shape}. Got a tensor of shape {q.shape}."
            )
        if not hasattr(self, "base") and self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        n, k = q.size(-2), q.size(-1)
        transposed = n < k
        if transposed:
            q = q.mT
            n, k = k, n
        if not hasattr(self, "base"):
            a, tau = rushlight.geqrf(q)
            # The diagonal of R says which reflections are there; it is +1 or -1 afterwards.
            signs = a.diagonal(dim1=-2, dim2=-1).sign()
            signs = rushlight.where(tau == 0.0, -signs, signs)
            a.diagonal(dim1=-2, dim2=-1).copy_(signs)
            return a.mT if transposed else a
        if n == k:
            q = q.clone() if _is_orthogonal(q) else _make_orthogonal(q)
        else:
            more = rushlight.randn(*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)
            q = _make_orthogonal(rushlight.cat([q, more], dim=-1))
        self.base = q
        start = rushlight.zeros(self.shape, dtype=q.dtype, device=q.device)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def _is_orthogonal(q):
    identity = rushlight.eye(q.size(-1), dtype=q.dtype, device=q.device)
    eps = 10.0 * q.size(-2) * rushlight.finfo(q.dtype).eps
    return rushlight.allclose(q.mH @ q, identity, atol=eps)


def _make_orthogonal(a):
    """The orthogonal factor of a, with signs such that an orthogonal matrix stays what it is."""
    q, r = rushlight.linalg.qr(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Keeps a weight orthogonal: made by "matrix_exp", "cayley" or "householder"."""
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)
