"""Parametrizations, pruning, fusion and functional_call against torch's."""

import warnings

import pytest
import torch
import torch.nn.utils.prune
from comparing import assert_same

import rushlight

BOTH = (rushlight, torch)


def both(run):
    results = []
    for library in BOTH:
        library.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            results.append(run(library))
    assert_same(*results, scale=10, strides=False)


def state(module):
    return [value for _, value in sorted(module.state_dict().items())]


def trained(library, layer, shape):
    """A few steps on a layer: its output, its state, and the names in it."""
    optimizer = library.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        out = layer(library.arange(float(torch.Size(shape).numel())).reshape(shape) / 10)
        (out**2).mean().backward()
        optimizer.step()
    layer.eval()
    return [layer(library.ones(shape)), *state(layer)]


LAYERS = {
    "linear": (lambda t: t.nn.Linear(4, 3), (2, 4)),
    "square": (lambda t: t.nn.Linear(4, 4), (2, 4)),
    "wide": (lambda t: t.nn.Linear(3, 5), (2, 3)),
    "conv": (lambda t: t.nn.Conv2d(2, 3, 2), (1, 2, 4, 4)),
    "transposed": (lambda t: t.nn.ConvTranspose1d(2, 3, 2), (1, 2, 4)),
}
WAYS = {
    "weight_norm": lambda t, m: t.nn.utils.parametrizations.weight_norm(m),
    "weight_norm_whole": lambda t, m: t.nn.utils.parametrizations.weight_norm(m, dim=None),
    "spectral_norm": lambda t, m: t.nn.utils.parametrizations.spectral_norm(m),
    "old_weight_norm": lambda t, m: t.nn.utils.weight_norm(m),
    "old_spectral_norm": lambda t, m: t.nn.utils.spectral_norm(m),
    "l1": lambda t, m: t.nn.utils.prune.l1_unstructured(m, "weight", 0.3),
    "random": lambda t, m: t.nn.utils.prune.random_unstructured(m, "weight", 4),
    "l2_slices": lambda t, m: t.nn.utils.prune.ln_structured(m, "weight", 1, 2, 0),
    "random_slices": lambda t, m: t.nn.utils.prune.random_structured(m, "weight", 1, 1),
    "twice": lambda t, m: t.nn.utils.prune.ln_structured(
        t.nn.utils.prune.l1_unstructured(m, "weight", 0.3), "weight", 1, 2, 0
    ),
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("way", WAYS)
def test_training(layer, way):
    make, shape = LAYERS[layer]
    names = [
        sorted(WAYS[way](t, make(t)).state_dict()) for t in BOTH if way.startswith(("w", "s", "l", "r", "t"))
    ]
    assert not names or names[0] == names[1]
    both(lambda t: trained(t, WAYS[way](t, make(t)), shape))


@pytest.mark.parametrize("layer", ["linear", "square", "wide"])
@pytest.mark.parametrize("way", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal(layer, way, trivial):
    make, shape = LAYERS[layer]
    layers = []
    for t in BOTH:
        t.manual_seed(0)
        m = make(t)
        layers.append(
            t.nn.utils.parametrizations.orthogonal(m, orthogonal_map=way, use_trivialization=trivial)
        )
    assert_same(layers[0].weight, layers[1].weight, scale=20, strides=False)
    w = layers[0].weight
    w = w if w.shape[0] <= w.shape[1] else w.T
    rushlight.testing.assert_close(w @ w.T, rushlight.eye(w.shape[0]), rtol=0, atol=1e-5)
    x = rushlight.ones(shape)
    layers[0](x).square().sum().backward()
    layers[1](torch.ones(shape)).square().sum().backward()
    grads = [m.parametrizations.weight.original.grad for m in layers]
    assert_same(*grads, scale=100, strides=False)


def test_remove_and_assign():
    class Symmetric(rushlight.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, x):
            return x.triu()

    P = rushlight.nn.utils.parametrize
    layer = rushlight.nn.Linear(3, 3)
    P.register_parametrization(layer, "weight", Symmetric())
    layer.weight = rushlight.ones(3, 3)
    assert layer.weight.tolist() == [[1.0] * 3] * 3 and P.is_parametrized(layer, "weight")
    with P.cached():
        assert layer.weight is layer.weight
    P.remove_parametrizations(layer, "weight")
    assert type(layer) is rushlight.nn.Linear and isinstance(layer.weight, rushlight.nn.Parameter)
    with pytest.raises(ValueError, match="does not have a parametrization on weight"):
        P.remove_parametrizations(layer, "weight")


def test_old_checkpoints_of_weight_norm():
    old = rushlight.nn.Linear(3, 2)
    with pytest.warns(FutureWarning):
        rushlight.nn.utils.weight_norm(old)
    new = rushlight.nn.utils.parametrizations.weight_norm(rushlight.nn.Linear(3, 2))
    new.load_state_dict(old.state_dict())
    rushlight.testing.assert_close(new.weight, old.weight)


def test_global_pruning_and_removal():
    def run(t):
        m = t.nn.Sequential(t.nn.Linear(4, 3), t.nn.Linear(3, 2))
        prune = t.nn.utils.prune
        prune.global_unstructured([(m[0], "weight"), (m[1], "weight")], prune.L1Unstructured, amount=0.5)
        masks = [m[0].weight_mask, m[1].weight_mask]
        prune.remove(m[0], "weight")
        assert prune.is_pruned(m) and not prune.is_pruned(m[0])
        return [*masks, *state(m)]

    both(run)


@pytest.mark.parametrize("kind", ["Conv2d", "Linear"])
def test_fusion(kind):
    def run(t):
        conv = kind == "Conv2d"
        layer = t.nn.Conv2d(2, 3, 2) if conv else t.nn.Linear(4, 3)
        norm = t.nn.BatchNorm2d(3) if conv else t.nn.BatchNorm1d(3)
        norm(layer(t.randn((5, 2, 4, 4) if conv else (5, 4))))
        layer.eval(), norm.eval()
        fuse = t.nn.utils.fuse_conv_bn_eval if conv else t.nn.utils.fuse_linear_bn_eval
        return fuse(layer, norm)(t.ones((1, 2, 4, 4) if conv else (1, 4)))

    both(run)


def test_functional_call():
    class Tied(rushlight.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = rushlight.nn.Linear(2, 2, bias=False)
            self.b = rushlight.nn.Linear(2, 2, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    module, call = Tied(), rushlight.func.functional_call
    before = module.a.weight
    twos = 2 * rushlight.eye(2)
    assert call(module, {"a.weight": twos}, rushlight.ones(2)).tolist() == [4.0, 4.0]
    assert module.a.weight is before and module.b.weight is before
    with pytest.raises(RuntimeError, match="Missing key"):
        call(module, {"a.weight": twos}, rushlight.ones(2), strict=True, tie_weights=False)
    # Under one of its names a tied weight is given under all.
    assert call(module, {"a.weight": twos}, rushlight.ones(2), strict=True).tolist() == [4.0, 4.0]
