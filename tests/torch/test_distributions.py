"""Every distribution against torch's: samples after the same seed, densities, moments, gradients, KL."""

import pytest
import torch
import torch.distributions as theirs
from comparing import assert_same

import rushlight
import rushlight.distributions as ours

pytestmark = pytest.mark.filterwarnings("ignore:Singular sample detected")

P, Q, S = [0.2, 0.7], [0.4, 0.6], [0.5, 2.0]
MATRIX = [[2.0, 0.3], [0.3, 1.0]]
TRIL = [[1.5, 0.0], [0.3, 1.0]]
# Name, parameters (lists become tensors), and what torch lacks or draws otherwise.
CASES = [
    ("Bernoulli", {"probs": P}),
    ("Bernoulli", {"logits": [-1.0, 2.0]}),
    ("Beta", {"concentration1": S, "concentration0": [1.5, 0.8]}),
    ("Binomial", {"total_count": 5, "probs": P}),
    ("Categorical", {"probs": [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]}),
    ("Categorical", {"logits": [0.3, -1.0, 2.0]}),
    ("Cauchy", {"loc": [0.0, 1.0], "scale": S}),
    ("Chi2", {"df": [1.0, 3.5]}),
    ("ContinuousBernoulli", {"probs": [0.2, 0.5]}),
    ("Dirichlet", {"concentration": [[0.5, 1.0, 2.0]]}),
    ("Exponential", {"rate": S}),
    ("FisherSnedecor", {"df1": [3.0, 5.0], "df2": [5.0, 7.0]}),
    ("Gamma", {"concentration": S, "rate": [1.0, 3.0]}),
    ("Geometric", {"probs": P}),
    ("GeneralizedPareto", {"loc": [0.0, 1.0], "scale": S, "concentration": [0.2, -0.1]}),
    ("Gumbel", {"loc": [0.0, 1.0], "scale": S}),
    ("HalfCauchy", {"scale": S}),
    ("HalfNormal", {"scale": S}),
    ("InverseGamma", {"concentration": [3.0, 4.0], "rate": S}),
    ("Kumaraswamy", {"concentration1": [1.5, 2.0], "concentration0": [1.2, 3.0]}),
    ("LKJCholesky", {"dim": 3, "concentration": [1.5]}),
    ("Laplace", {"loc": [0.0, 1.0], "scale": S}),
    ("LogNormal", {"loc": [0.0, 1.0], "scale": S}),
    ("LogisticNormal", {"loc": [0.0, 1.0], "scale": S}),
    ("LowRankMultivariateNormal", {"loc": [0.0, 1.0], "cov_factor": [[1.0], [0.5]], "cov_diag": S}),
    ("Multinomial", {"total_count": 4, "probs": [0.2, 0.3, 0.5]}),
    ("MultivariateNormal", {"loc": [0.0, 1.0], "covariance_matrix": MATRIX}),
    ("MultivariateNormal", {"loc": [0.0, 1.0], "scale_tril": TRIL}),
    ("MultivariateNormal", {"loc": [0.0, 1.0], "precision_matrix": MATRIX}),
    ("NegativeBinomial", {"total_count": [3.0, 5.0], "probs": P}),
    ("Normal", {"loc": [0.0, 1.0], "scale": S}),
    ("OneHotCategorical", {"probs": [0.2, 0.3, 0.5]}),
    ("OneHotCategoricalStraightThrough", {"probs": [0.2, 0.3, 0.5]}),
    ("Pareto", {"scale": S, "alpha": [2.5, 3.0]}),
    ("Poisson", {"rate": [0.5, 6.0]}),
    ("RelaxedBernoulli", {"temperature": [0.5], "probs": P}),
    ("RelaxedOneHotCategorical", {"temperature": [0.5], "probs": [0.2, 0.3, 0.5]}),
    ("StudentT", {"df": [3.0, 5.0], "loc": [0.0, 1.0], "scale": S}),
    ("Uniform", {"low": [0.0, 1.0], "high": [2.0, 3.0]}),
    ("VonMises", {"loc": [0.0, 1.0], "concentration": S}),
    ("Weibull", {"scale": S, "concentration": [1.0, 2.0]}),
    ("Wishart", {"df": 4.0, "covariance_matrix": MATRIX}),
]
IDS = [f"{number}-{name}" for number, (name, _) in enumerate(CASES)]


@pytest.fixture(autouse=True)
def validated():
    # Part of torch (torch._dynamo) turns this off for the process when something imports it.
    torch.distributions.Distribution.set_default_validate_args(True)


def make(library, distributions, case, grad=False):
    name, parameters = case
    # torch's own GeneralizedPareto refuses float64.
    dtype = library.float32 if name == "GeneralizedPareto" else library.float64
    made = {
        key: library.tensor(value, dtype=dtype, requires_grad=grad) if isinstance(value, list) else value
        for key, value in parameters.items()
    }
    return getattr(distributions, name)(**made), made


def pair(case, grad=False):
    return make(rushlight, ours, case, grad), make(torch, theirs, case, grad)


def like(value):
    return rushlight.tensor(value.tolist(), dtype=getattr(rushlight, str(value.dtype).removeprefix("torch.")))


def rough(case):
    """torch's Bessel functions of VonMises are good to seven digits."""
    return {"VonMises": 1e7, "GeneralizedPareto": 10}.get(case[0], 1e4)


def attempt(function):
    try:
        return function()
    except NotImplementedError:
        return None


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_samples_and_densities(case):
    (mine, _), (other, _) = pair(case)
    assert (mine.batch_shape, mine.event_shape) == (other.batch_shape, other.event_shape)
    assert repr(mine) == repr(other)
    samples = []
    for library, distribution in ((rushlight, mine), (torch, other)):
        library.manual_seed(3)
        samples.append(distribution.sample((4,)))
    assert_same(*samples, scale=1e5, strides=False)
    value = samples[1]
    given = like(value)
    assert_same(mine.log_prob(given), other.log_prob(value), scale=rough(case), strides=False)
    for name in ("mean", "variance", "stddev", "mode"):
        expected = attempt(lambda name=name: getattr(other, name))
        if expected is not None and (case[0], name) != ("Kumaraswamy", "mode"):  # which is NaN in torch
            assert_same(getattr(mine, name), expected, scale=rough(case), strides=False)
    for name, argument in (("entropy", ()), ("cdf", (1,))):
        if name == "cdf" and case[0] in ("FisherSnedecor", "StudentT"):
            continue
        expected = attempt(
            lambda name=name, argument=argument: getattr(other, name)(*([value] * len(argument)))
        )
        if expected is not None:
            assert_same(
                getattr(mine, name)(*([given] * len(argument))), expected, scale=rough(case), strides=False
            )


def test_rejections_draw_the_same_numbers():
    for name, arguments in (
        ("VonMises", {"loc": 0.0, "concentration": [0.1, 1.0, 20.0]}),
        ("Wishart", {"df": [4.0, 5.0], "covariance_matrix": MATRIX}),
        ("LKJCholesky", {"dim": 3, "concentration": [0.5, 2.0]}),
    ):
        for shape in ((), (5,), (2, 3)):
            samples = []
            for library, distributions in ((rushlight, ours), (torch, theirs)):
                given = {
                    key: value if isinstance(value, int) else library.tensor(value, dtype=library.float64)
                    for key, value in arguments.items()
                }
                library.manual_seed(7)
                samples += [getattr(distributions, name)(**given).sample(shape), library.rand(1)]
            assert_same(samples[0], samples[2], scale=1e5, strides=False)
            assert_same(samples[1], samples[3])


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_gradients(case):
    (mine, a), (other, b) = pair(case, grad=True)
    assert bool(mine.has_rsample) == bool(other.has_rsample)
    torch.manual_seed(1)
    value = other.sample((3,)).detach()
    mine.log_prob(like(value)).sum().backward()
    other.log_prob(value).sum().backward()
    for key in a:
        if isinstance(a[key], rushlight.Tensor) and b[key].grad is not None:
            assert_same(a[key].grad, b[key].grad, scale=rough(case), strides=False)
    # The paths through gamma variables are others here, equally right.
    if mine.has_rsample and case[0] not in ("Beta", "Dirichlet", "Wishart"):
        (mine, a), (other, b) = pair(case, grad=True)
        for library, distribution in ((rushlight, mine), (torch, other)):
            library.manual_seed(2)
            (distribution.rsample((3,)) ** 2).sum().backward()
        for key in a:
            if isinstance(a[key], rushlight.Tensor) and b[key].grad is not None:
                assert_same(a[key].grad, b[key].grad, scale=1e9, strides=False)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_expand(case):
    (mine, _), (other, _) = pair(case)
    shape = (3, *other.batch_shape)
    assert mine.expand(shape).sample().shape == other.expand(shape).sample().shape
    torch.manual_seed(0)
    value = other.sample()
    given = like(value)
    assert_same(
        mine.expand(shape).log_prob(given),
        other.expand(shape).log_prob(value),
        scale=rough(case),
        strides=False,
    )


@pytest.mark.parametrize("first", range(len(CASES)), ids=IDS)
def test_divergences(first):
    for second in CASES:
        (p, _), (p_, _) = pair(CASES[first])
        (q, _), (q_, _) = pair(second)
        try:
            expected = theirs.kl_divergence(p_, q_)
        except (NotImplementedError, ValueError, RuntimeError):
            continue
        if (p_.batch_shape, p_.event_shape) == (q_.batch_shape, q_.event_shape):
            assert_same(ours.kl_divergence(p, q), expected, scale=1e5, strides=False)


TRANSFORMS = [
    ("ExpTransform", ()),
    ("SigmoidTransform", ()),
    ("TanhTransform", ()),
    ("SoftplusTransform", ()),
    ("AffineTransform", (1.0, -2.0)),
    ("StickBreakingTransform", ()),
    ("SoftmaxTransform", ()),
    ("CorrCholeskyTransform", ()),
    ("AbsTransform", ()),
    ("LowerCholeskyTransform", ()),
]


@pytest.mark.parametrize("name, arguments", TRANSFORMS)
def test_transforms(name, arguments):
    shape = (2, 3, 3) if name == "LowerCholeskyTransform" else (2, 3)
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=torch.float64)
    mine, other = getattr(ours, name)(*arguments), getattr(theirs, name)(*arguments)
    a, b = rushlight.tensor(x.tolist(), dtype=rushlight.float64), x
    assert_same(mine(a), other(b), scale=100, strides=False)
    assert_same(mine.inv(mine(a)), other.inv(other(b)), scale=1e4, strides=False)
    jacobian = attempt(lambda: other.log_abs_det_jacobian(b, other(b)))
    if jacobian is not None:
        assert_same(mine.log_abs_det_jacobian(a, mine(a)), jacobian, scale=100, strides=False)
    assert tuple(mine.forward_shape(shape)) == tuple(other.forward_shape(shape))
    assert (mine.bijective, repr(mine.domain), repr(mine.codomain)) == (
        other.bijective, repr(other.domain), repr(other.codomain))  # fmt: skip


@pytest.mark.parametrize(
    "make",
    [
        lambda t, d: d.Normal(0.0, -1.0),
        lambda t, d: d.Uniform(1.0, 0.0),
        lambda t, d: d.Categorical(),
        lambda t, d: d.Normal(0.0, 1.0).log_prob(1.0),
        lambda t, d: d.Bernoulli(0.5).log_prob(t.tensor(0.5)),
        lambda t, d: d.Categorical(t.ones(3)).log_prob(t.tensor(3)),
        lambda t, d: d.Gamma(t.tensor([1.0, -1.0]), 1.0),
        lambda t, d: d.Normal(t.zeros(2), t.ones(2)).log_prob(t.zeros(3)),
        lambda t, d: d.Independent(d.Normal(0.0, 1.0), 1),
        lambda t, d: d.Multinomial(-1, t.ones(2)),
        lambda t, d: d.ContinuousBernoulli(2.0, validate_args=False),
        lambda t, d: d.Wishart(3.0, t.ones(1)),
        lambda t, d: d.MultivariateNormal(t.ones(2), scale_tril=t.ones(1)),
        lambda t, d: d.TransformedDistribution(d.Normal(0.0, 1.0), [1]),
        lambda t, d: d.CatTransform([d.ExpTransform()], lengths=[1, 2]),
        lambda t, d: d.StackTransform([d.ExpTransform()])(t.ones(2)),
        lambda t, d: d.constraints.cat([d.constraints.real], 0).check(t.tensor(1.0)),
        lambda t, d: d.Wishart(3.0),
        lambda t, d: d.Distribution(validate_args=False).support,
        lambda t, d: type("Own", (d.Normal,), {"__init__": lambda self: None})().expand((2,)),
    ],
)
def test_errors(make):
    texts = []
    for library, distributions in ((rushlight, ours), (torch, theirs)):
        with pytest.raises((ValueError, AssertionError, NotImplementedError)) as caught:
            make(library, distributions)
        texts.append((caught.type, str(caught.value)))
    assert texts[0] == texts[1]


def test_constraints_and_registry():
    for name in (
        "positive",
        "unit_interval",
        "simplex",
        "real",
        "real_vector",
        "lower_cholesky",
        "positive_definite",
    ):
        mine, other = getattr(ours.constraints, name), getattr(theirs.constraints, name)
        assert repr(mine) == repr(other)
        assert repr(ours.transform_to(mine)) == repr(theirs.transform_to(other))
