"""Where torch's own result is the wrong one: that it is, shown without Rushlight as the judge.

gaps.py counts these forms apart. Each is held against mpmath, finite differences in float64, or the
definition of the operation; torch has to be off by more than the tolerance of the comparison, and Rushlight
within it.
"""

import itertools

import mpmath
import numpy as np
import opdb
import pytest
import torch
from gaps import GAPS

import rushlight

pytestmark = pytest.mark.filterwarnings("ignore")
PROOFS = {}


def proof(*entries):
    def register(test):
        PROOFS.update(dict.fromkeys(entries, test))
        return test

    return register


def first_samples(entry, dtype, count=None, differentiable=False):
    return list(itertools.islice(opdb.samples(opdb.ENTRIES[entry], dtype, count, differentiable), count))


def errors(exact, mine, theirs):
    """The largest errors of both libraries, relative to 1 or to the value if that is larger."""
    scale = np.maximum(np.abs(exact), 1)
    return tuple(np.max(np.abs(np.asarray(part) - exact) / scale) for part in (mine, theirs))


def exactly(function, *numbers):
    with mpmath.workdps(40):
        return float(function(*(mpmath.mpf(float(number)) for number in numbers)))


@proof(
    *(f"polygamma.polygamma_n_{n}" for n in range(5)), "special.polygamma.special_polygamma_n_0"
)  # fmt: skip
def test_polygamma():
    (sample,) = first_samples("polygamma.polygamma_n_0", "float32", 1)
    x, n = sample.input.numpy(), sample.args[0]
    x, n = (n.numpy(), int(x)) if isinstance(n, torch.Tensor) else (x, n)
    mine = rushlight.polygamma(n, rushlight.from_numpy(x)).numpy()
    theirs = torch.polygamma(n, torch.from_numpy(x)).numpy()
    exact = np.array([exactly(lambda v: mpmath.polygamma(n, v), v) for v in x.ravel()]).reshape(x.shape)
    ours, off = errors(exact, mine, theirs)
    assert ours < 1e-6 and off > opdb.TOLERANCE["float32"]


@proof("special.bessel_y1")
def test_bessel_functions():
    x = np.linspace(0.3, 9.7, 97)
    for name, function in (
        ("bessel_j0", lambda v: mpmath.besselj(0, v)),
        ("bessel_j1", lambda v: mpmath.besselj(1, v)),
        ("bessel_y0", lambda v: mpmath.bessely(0, v)),
        ("bessel_y1", lambda v: mpmath.bessely(1, v)),
    ):
        mine = getattr(rushlight.special, name)(rushlight.from_numpy(x)).numpy()
        theirs = getattr(torch.special, name)(torch.from_numpy(x)).numpy()
        ours, off = errors(np.array([exactly(function, v) for v in x]), mine, theirs)
        assert ours < 1e-14 and off > 1e-10, name
    for sample in first_samples("special.bessel_y1", "float64", 1):
        x = sample.input.numpy()
        exact = np.array([exactly(lambda v: mpmath.bessely(1, v), v) if v > 0 else 0 for v in x])
        pairs = [
            np.where(x > 0, lib.special.bessel_y1(lib.from_numpy(x)).numpy(), 0) for lib in (rushlight, torch)
        ]
        ours, off = errors(exact, *pairs)
        assert ours < 1e-14 and off > opdb.TOLERANCE["float64"]


@proof("logcumsumexp")
def test_tangent_of_logcumsumexp():
    """d log(sum exp x) is the sum of t exp(x), over that of exp(x)."""
    results = {torch: [], rushlight: []}
    exact = []
    for sample in first_samples("logcumsumexp", "float64", 4):
        x, dim = sample.input.detach().numpy(), sample.args[0]
        tangent = opdb.cotangent(0, x.shape, "float64")
        if not x.ndim:
            continue
        weights = np.exp(x.astype(np.longdouble))
        exact.append(np.cumsum(weights * tangent, dim) / np.cumsum(weights, dim))
        for lib, found in results.items():
            forward = lib.autograd.forward_ad
            with forward.dual_level():
                dual = forward.make_dual(lib.from_numpy(x), lib.from_numpy(tangent))
                found.append(forward.unpack_dual(lib.logcumsumexp(dual, dim)).tangent.numpy())
    flat = lambda parts: np.concatenate([np.ravel(part) for part in parts]).astype(np.float64)
    ours, off = errors(flat(exact), flat(results[rushlight]), flat(results[torch]))
    assert ours < 1e-11 and off > opdb.TOLERANCE["float64"]


@proof("as_strided_scatter")
def test_gradient_of_as_strided_scatter():
    """The elements that are replaced have no influence, by finite differences."""
    x, part = np.arange(9.0).reshape(3, 3), np.full((2, 2), -1.0)

    def function(lib, x, part):
        return lib.as_strided_scatter(x, part, (2, 2), (1, 2), 1)

    weights = np.linspace(1, 2, 9).reshape(3, 3)
    difference = np.zeros((3, 3))
    for place in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[place] = 0.5
        values = [
            function(torch, torch.from_numpy(x + sign * step), torch.from_numpy(part)).numpy()
            for sign in (1, -1)
        ]
        difference[place] = ((values[0] - values[1]) * weights).sum()
    gradients = []
    for lib in (rushlight, torch):
        leaf = lib.from_numpy(x.copy()).requires_grad_()
        result = function(lib, leaf, lib.from_numpy(part))
        gradients.append(lib.autograd.grad(result, leaf, lib.from_numpy(weights))[0].numpy())
    assert np.array_equal(gradients[0], difference)
    assert not np.allclose(gradients[1], difference)


def into_gaps(lib, function, *args):
    """The result in an out= with gaps, and that without one."""
    expected = function(*args)
    out = lib.zeros((*expected.shape, 2), dtype=expected.dtype).select(-1, 0)
    function(*args, out=out)
    return out.numpy(), expected.numpy()


@proof("narrow_copy", "nn.functional.gelu", "nn.functional.avg_pool3d")
@pytest.mark.parametrize("name", ["narrow_copy", "gelu", "avg_pool3d"])
def test_out_with_gaps(name):
    """What is written is what the call without out= returns."""
    x = np.linspace(-2, 2, 96, dtype=np.float32)
    same = {}
    for lib in (rushlight, torch):
        function, args = {
            "narrow_copy": lambda lib=lib: (lib.narrow_copy, (lib.from_numpy(x).view(4, 24), 1, 2, 5)),
            "gelu": lambda lib=lib: (lib._C._nn.gelu, (lib.from_numpy(x).view(4, 24),)),
            "avg_pool3d": lambda lib=lib: (
                lib._C._nn.avg_pool3d,
                (lib.from_numpy(x).view(1, 2, 4, 4, 3), (2, 2, 2)),
            ),
        }[name]()
        same[lib] = np.array_equal(*into_gaps(lib, function, *args))
    assert same == {rushlight: True, torch: False}


@proof("mean", "logsumexp")
@pytest.mark.parametrize("name", ["mean", "logsumexp"])
def test_complex_results_into_a_real_out(name):
    """Half of the result is lost in torch, which refuses the same elsewhere."""
    x, out = torch.tensor([1 + 2j, 3 + 4j]), torch.zeros(())
    result = getattr(torch, name)(x, 0)
    assert getattr(torch, name)(x, 0, out=out) is out and not torch.equal(out.to(result.dtype), result)
    with pytest.raises(RuntimeError, match="result type ComplexFloat can't be cast") as refusal:
        torch.exp(x[0], out=out)
    with pytest.raises(RuntimeError) as mine:
        getattr(rushlight, name)(rushlight.tensor([1 + 2j, 3 + 4j]), 0, out=rushlight.zeros(()))
    assert str(mine.value).splitlines()[0] == str(refusal.value).splitlines()[0]


@proof("matrix_exp")
def test_matrix_exp_of_bfloat16():
    x = first_samples("matrix_exp", "bfloat16", 1)[0].input
    exact = torch.matrix_exp(x.double()).numpy()
    assert np.isfinite(exact).all() and torch.matrix_exp(x).isnan().all()
    mine = rushlight.matrix_exp(opdb.Carrier()(x)).double().numpy()
    assert np.linalg.norm(mine - exact) < 0.05 * np.linalg.norm(exact)


@proof("masked.logaddexp")
def test_second_derivative_of_masked_logaddexp():
    """Where the other is masked the result is the input itself, whose second derivative is 0."""
    sample = first_samples("masked.logaddexp", "float64", 2, differentiable=True)[1]
    carry = opdb.Carrier()
    args, kwargs = carry((sample.input, *sample.args)), carry(dict(sample.kwargs))
    alone = sample.kwargs["input_mask"] & ~sample.kwargs["other_mask"]
    values = torch.masked.logaddexp(sample.input, *sample.args, **sample.kwargs)
    assert alone.any() and torch.equal(values[alone], sample.input[alone])
    leaves = [leaf for leaf, _ in carry.leaves]
    mine = opdb.derivatives(rushlight, rushlight.masked.logaddexp, None, args, kwargs, leaves, True)
    theirs = opdb.derivatives(
        torch, torch.masked.logaddexp, None, (sample.input, *sample.args), sample.kwargs,
        [leaf for _, leaf in carry.leaves], True,
    )  # fmt: skip
    assert theirs[0][alone].isnan().all()
    assert (mine[0].numpy()[alone.numpy()] == 0).all()


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_median_of_expanded_rows(name):
    """The median of equal numbers is that number; torch finds one beside it in memory."""
    found = {}
    for lib in (rushlight, torch):
        x = lib.arange(12.0).view(3, 4).narrow(-1, 0, 1).expand(3, 4)
        found[lib] = getattr(lib, name)(x, 1)[0].tolist()
    assert found[rushlight] == [0.0, 4.0, 8.0] != found[torch]


def test_cov_with_float_weights():
    """Two observations: the weights cancel, but for what is lost of them in float32."""
    exact = None
    for lib, dtype in ((torch, "float64"), (rushlight, "float32"), (torch, "float32")):
        forward = lib.autograd.forward_ad
        with forward.dual_level():
            kind = getattr(lib, dtype)
            weights = lib.tensor([0.2598, 0.3666], dtype=lib.float32).to(kind)
            weights = forward.make_dual(weights, lib.tensor([0.7, -0.4], dtype=kind))
            x = lib.tensor([1.25, -1.5], dtype=lib.float64)
            x = forward.make_dual(x, lib.tensor([0.3, 0.1], dtype=lib.float64))
            tangent = forward.unpack_dual(lib.cov(x, aweights=weights)).tangent.item()
        exact = exact or tangent
        assert tangent == pytest.approx(exact, rel=1e-5)


def test_words_of_python():
    for name, kind in itertools.product(("__radd__", "__rmul__"), (torch, rushlight)):
        with pytest.raises(TypeError, match=f"descriptor '{name}' "):
            getattr(kind.Tensor, name)(2, kind.tensor([1]))


def test_every_claim_has_a_proof():
    claimed = {entry for (entry, _), gap in GAPS.items() if gap.kind == "T"}
    assert claimed == set(PROOFS)


def test_complex_silu():
    """In place, and in forward mode, torch leaves out the conjugation that a gradient needs and a tangent
    does not. f(z) = z sigmoid(z) is holomorphic: f'(z) by central differences."""
    z, step, direction = 0.3 + 0.7j, 1e-6, 1 + 0.5j
    f = lambda z: z / (1 + np.exp(-z))
    slope = (f(z + step) - f(z - step)) / (2 * step)
    found = []
    for lib in (rushlight, torch):
        x = lib.tensor(z, dtype=lib.complex128, requires_grad=True)
        silu, forward_ad = lib.nn.functional.silu, lib.autograd.forward_ad
        written = silu(x * 1, inplace=True)
        (gradient,) = lib.autograd.grad(written, x, lib.ones_like(written))
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x.detach(), lib.tensor(direction, dtype=lib.complex128))
            found.append((gradient.item(), forward_ad.unpack_dual(silu(dual)).tangent.item()))
    mine, theirs = errors(np.array([slope.conjugate(), slope * direction]), *found)
    assert mine < 1e-8 and theirs > 0.1
