"""Distributions without torch at hand: samples fit the densities, gradients of samples, what is refused."""

import math

import pytest

import rushlight as torch
import rushlight.distributions as D

CONTINUOUS = [
    D.Normal(0.5, 2.0),
    D.Laplace(0.5, 2.0),
    D.Uniform(-1.0, 2.0),
    D.Exponential(1.5),
    D.Gamma(2.5, 1.5),
    D.Beta(2.0, 3.0),
    D.Gumbel(0.5, 1.5),
    D.LogNormal(0.1, 0.4),
    D.Weibull(1.5, 2.0),
    D.StudentT(8.0),
    D.Pareto(1.0, 6.0),
    D.HalfNormal(2.0),
    D.Kumaraswamy(2.0, 3.0),
    D.InverseGamma(6.0, 2.0),
    D.ContinuousBernoulli(0.3),
]
DISCRETE = [D.Bernoulli(0.3), D.Binomial(6, torch.tensor(0.3)), D.Poisson(3.0), D.Geometric(0.4)]


@pytest.mark.parametrize("distribution", CONTINUOUS + DISCRETE, ids=lambda d: type(d).__name__)
def test_samples_have_the_moments(distribution):
    torch.manual_seed(0)
    samples = distribution.sample((20000,)).double()
    error = 5 * distribution.stddev / math.sqrt(20000)
    assert abs(samples.mean() - distribution.mean) < error
    torch.testing.assert_close(samples.var(), distribution.variance.double(), rtol=0.15, atol=0.0)


@pytest.mark.parametrize("distribution", CONTINUOUS, ids=lambda d: type(d).__name__)
def test_densities_integrate_to_one(distribution):
    low, high = distribution.support.check(torch.tensor([-40.0, 40.0])).tolist()
    start = -40.0 if low else 0.0
    start = (
        -1.0 if isinstance(distribution, D.Uniform) else 1.0 if isinstance(distribution, D.Pareto) else start
    )
    end = 40.0 if high else 2.0 if isinstance(distribution, D.Uniform) else 1.0
    middle = torch.linspace(start, end, 200002, dtype=torch.float64)
    middle = ((middle[1:] + middle[:-1]) / 2).float()
    total = distribution.log_prob(middle).exp().double().sum() * (end - start) / 200001
    assert abs(total - 1) < 2e-2


def test_gradients_of_gamma_samples():
    """d E[x] / d concentration of Gamma(c, 1) is 1."""
    torch.manual_seed(1)
    for concentration in (0.3, 2.0, 50.0):
        c = torch.full((20000,), concentration, dtype=torch.float64, requires_grad=True)
        D.Gamma(c, 1.0).rsample().mean().backward()
        assert abs(c.grad.sum() - 1) < 0.1
    c = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    D.Dirichlet(c).rsample((20000,))[:, 0].mean().backward()
    mean = c.detach().requires_grad_()
    (mean[0] / mean.sum()).backward()
    torch.testing.assert_close(c.grad, mean.grad, rtol=0.1, atol=5e-3)


def test_mixture_and_independent():
    mixture = D.MixtureSameFamily(D.Categorical(torch.ones(2)), D.Normal(torch.tensor([-1.0, 1.0]), 0.1))
    assert abs(mixture.mean) < 1e-6 and abs(mixture.variance - 1.01) < 1e-8
    assert mixture.sample((5,)).shape == (5,)
    joined = D.Independent(D.Normal(torch.zeros(3, 2), 1.0), 1)
    assert joined.batch_shape == (3,) and joined.log_prob(torch.zeros(3, 2)).shape == (3,)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="Expected parameter scale"):
        D.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="within the support"):
        D.Exponential(1.0).log_prob(torch.tensor(-1.0))
    assert D.Normal(0.0, -1.0, validate_args=False).scale == -1
    with pytest.raises(NotImplementedError, match="No KL"):
        D.kl_divergence(D.StudentT(1.0), D.Poisson(1.0))


@pytest.mark.parametrize(("a", "b", "x", "want"), [
    (15.0, 15.0, 0.6118755340576172, 0.0376621878),
    (0.3, 2.0, 0.01, 0.130360997),
    (400.0, 30.0, 0.93, 0.00232806416),
])  # fmt: skip
def test_the_gradient_of_a_beta_sample_keeps_its_place_in_the_distribution(a, b, x, want):
    from rushlight.distributions._dirichlet import dirichlet_grad

    value, alpha, total = (torch.tensor([each], dtype=torch.float64) for each in (x, a, a + b))
    assert abs(dirichlet_grad(value, alpha, total).item() / want - 1) < 1e-8


def test_the_slope_of_a_fair_binomial():
    probs = torch.tensor(0.5, requires_grad=True)
    torch.distributions.Binomial(10, probs).log_prob(torch.tensor(7.0)).backward()
    assert probs.grad.item() == pytest.approx((7 - 10 * 0.5) / 0.25)


def test_divergences_of_exponential_families_have_gradients():
    from rushlight.distributions.kl import _kl_expfamily_expfamily

    found = []
    for function in (_kl_expfamily_expfamily, torch.distributions.kl_divergence):
        loc = torch.tensor(0.3, requires_grad=True)
        p = torch.distributions.Normal(loc, 1.0)
        function(p, torch.distributions.Normal(1.0, 2.0)).backward()
        found.append(loc.grad.item())
    assert found[0] == pytest.approx(found[1])


def test_wishart_samples_have_gradients():
    scale = torch.eye(2, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(0)
    torch.distributions.Wishart(5.0, scale_tril=scale).rsample((3,)).sum().backward()
    assert scale.grad.isfinite().all() and scale.grad.diagonal().gt(0).all()


def test_subclasses_expand_to_themselves():
    normal = D.Normal(torch.zeros(2), 1.0)
    for cls, arguments in (
        (D.Normal, (0.0, 1.0)),
        (D.Beta, (1.0, 2.0)),
        (D.Independent, (normal, 1)),
        (D.MixtureSameFamily, (D.Categorical(torch.ones(2)), normal)),
        (D.TransformedDistribution, (normal, D.ExpTransform())),
    ):
        own = type("Own", (cls,), {})(*arguments)
        larger = own.expand((3, *own.batch_shape))
        assert type(larger) is type(own) and larger.sample().shape[0] == 3

    class Changed(D.Normal):
        def __init__(self):
            super().__init__(0.0, 1.0)

    with pytest.raises(NotImplementedError, match="custom __init__"):
        Changed().expand((2,))


def test_wishart_warns_of_few_degrees_of_freedom():
    with pytest.warns(UserWarning, match="^Low df values detected. Singular samples are highly likely"):
        torch.distributions.Wishart(2.5, torch.eye(3))
    torch.distributions.Wishart(3.0, torch.eye(3))


class Flow(D.Transform, torch.nn.Module):
    """A transform with parameters, as libraries of flows write them: `__init__` runs through both bases."""

    domain = codomain = D.constraints.real_vector
    bijective = True
    __hash__ = torch.nn.Module.__hash__

    def __init__(self):
        super().__init__(cache_size=1)
        self.log_scale = torch.nn.Parameter(torch.tensor([0.5, -0.5]))

    def _call(self, x):
        return x * self.log_scale.exp()

    def _inverse(self, y):
        return y * (-self.log_scale).exp()

    def log_abs_det_jacobian(self, x, y):
        assert self._cached_x_y[0] is x and self._cached_x_y[1] is y
        return self.log_scale.sum()


class Tempered(D.Distribution, torch.nn.Module):
    arg_constraints = {}

    def __init__(self):
        super().__init__(event_shape=(2,))
        self.weight = torch.nn.Linear(2, 2)


def test_transforms_and_distributions_can_be_modules():
    flow = Flow()
    made = D.TransformedDistribution(D.Independent(D.Normal(torch.zeros(2), torch.ones(2)), 1), [flow])
    sample = made.rsample()
    made.log_prob(sample).backward()
    assert [name for name, _ in flow.named_parameters()] == ["log_scale"]
    assert flow.log_scale.grad.tolist() == [-1.0, -1.0]
    assert list(Tempered().state_dict()) == ["weight.weight", "weight.bias"]


def test_a_tensor_has_an_identity():
    a = torch.nn.Parameter(torch.ones(2))
    (same,) = torch.nn.ParameterList([a])
    assert a._cdata == same._cdata != a.detach()._cdata
