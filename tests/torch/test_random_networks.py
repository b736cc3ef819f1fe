"""Random networks are trained for a few steps in both libraries: losses, gradients, learning rates, state and
the random numbers that follow are the same.

`plan(seed)` draws a network, a loss, an optimiser, a scheduler and how it is trained; `trained` does it. The
optimisers are those whose steps grow with the gradient: what divides by its size makes steps of a parameter
without influence (a bias before a normalisation) out of rounding. Left out are layers whose gradient in
float64 torch computes with constants of float32 (hardsigmoid, celu).
"""

import io
import random

import numpy as np
import pytest
import torch

import rushlight

ACTIVATIONS = (
    "ReLU() GELU() GELU('tanh') SiLU() Mish() ELU() SELU() LeakyReLU(0.2) Hardswish() Hardtanh(-0.5,0.7) "
    "Softplus(2,3) Softshrink(0.1) Hardshrink(0.1) Tanhshrink() Softsign() Sigmoid() LogSigmoid() Tanh() "
    "Threshold(0.1,0.2) ReLU6() ReLU(inplace=True) SiLU(inplace=True) Identity() Flatten()"
)
IMAGES = [
    lambda c, h, w, r: f"Conv2d({c},{r((4, 6))},{r((1, 2, 3))},{r((1, 2))},{r((0, 1))},{r((1, 2))},"
                       f"padding_mode='{r(('zeros', 'reflect', 'replicate', 'circular'))}')",
    lambda c, h, w, r: f"ConvTranspose2d({c},{r((4, 6))},{r((2, 3))},stride={r((1, 2))},padding={r((0, 1))})",
    lambda c, h, w, r: f"BatchNorm2d({c},momentum={r((0.1, None))},affine={r((True, False))})",
    lambda c, h, w, r: f"InstanceNorm2d({c},affine=True,track_running_stats={r((True, False))})",
    lambda c, h, w, r: f"GroupNorm(1,{c})",
    lambda c, h, w, r: f"MaxPool2d({r((2, 3))},{r((1, 2))},{r((0, 1))},ceil_mode={r((True, False))})",
    lambda c, h, w, r: f"AvgPool2d(2,{r((1, 2))},{r((0, 1))},count_include_pad={r((True, False))})",
    lambda c, h, w, r: f"AdaptiveAvgPool2d(({r((2, 3, None))},{r((1, 3))}))",
    lambda c, h, w, r: "LPPool2d(2,2,stride=1)",
    lambda c, h, w, r: f"Upsample(scale_factor={r((2, 1.5))},mode='{r(('nearest', 'bilinear', 'bicubic'))}')",
    lambda c, h, w, r: f"Dropout2d({r((0.1, 0.5))})",
    lambda c, h, w, r: f"LocalResponseNorm({r((2, 3))})",
    lambda c, h, w, r: f"PReLU({r((1, c))})",
    lambda c, h, w, r: "PixelShuffle(2)",
    lambda c, h, w, r: "ReflectionPad2d((1,0,1,0))",
    lambda c, h, w, r: "ZeroPad2d((1,-1,0,1))",
    lambda c, h, w, r: f"LayerNorm([{h},{w}])",
    lambda c, h, w, r: "Flatten(2)",
]  # fmt: skip
LINES = [
    lambda l, e, r: f"Conv1d({l},{r((2, 4))},{r((1, 2))},padding={r((1, 2))},stride={r((1, 2))})",
    lambda l, e, r: f"BatchNorm1d({l})",
    lambda l, e, r: f"LayerNorm({e},bias={r((True, False))})",
    lambda l, e, r: f"RMSNorm({e},eps=1e-5)",
    lambda l, e, r: f"MaxPool1d(2,ceil_mode={r((True, False))})",
    lambda l, e, r: f"Linear({e},{r((4, 8))})",
    lambda l, e, r: f"TransformerEncoderLayer({e},2,8,dropout={r((0.0, 0.1))},batch_first=True,"
                    f"norm_first={r((True, False))},activation='{r(('relu', 'gelu'))}')",
    lambda l, e, r: f"LSTM({e},4,{r((1, 2))},bidirectional={r((True, False))},batch_first=True,"
                    f"proj_size={r((0, 2))})",
    lambda l, e, r: f"GRU({e},4,bidirectional={r((True, False))},batch_first=True,bias={r((True, False))})",
    lambda l, e, r: f"RNN({e},4,nonlinearity='{r(('tanh', 'relu'))}',batch_first=True)",
    lambda l, e, r: "Softmax(dim=1)",
    lambda l, e, r: "Dropout1d(0.3)",
    lambda l, e, r: "AlphaDropout(0.2)",
    lambda l, e, r: "Upsample(scale_factor=2,mode='linear')",
    lambda l, e, r: f"Unflatten(1,({l},1))",
]  # fmt: skip
ROWS = [
    lambda e, r: f"Linear({e},{r((3, 8, 12))},bias={r((True, False))})",
    lambda e, r: f"BatchNorm1d({e})",
    lambda e, r: f"LayerNorm({e})",
    lambda e, r: "Dropout(0.3)",
    lambda e, r: "GLU()",
    lambda e, r: f"Unflatten(1,(2,{e // 2}))",
]
OPTIMISERS = (
    "SGD(ps,lr=0.05) SGD(ps,lr=0.05,momentum=0.9,nesterov=True,weight_decay=1e-2) "
    "SGD(ps,lr=0.05,momentum=0.9,dampening=0.1,maximize=True) SGD(ps,lr=0.05,momentum=0.5,fused=True) "
    "SGD(ps,lr=0.05,foreach=False)"
)
SCHEDULERS = (
    "StepLR(o,2,0.5) CosineAnnealingLR(o,5) OneCycleLR(o,0.1,total_steps=10,cycle_momentum=False) "
    "ExponentialLR(o,0.9) CyclicLR(o,0.001,0.1,cycle_momentum=False) CosineAnnealingWarmRestarts(o,3) "
    "LinearLR(o) PolynomialLR(o,4) MultiStepLR(o,[1,3])"
)
LOSSES = {
    "mse": lambda F, x, y: F.mse_loss(x, y),
    "l1": lambda F, x, y: F.l1_loss(x, y, reduction="sum"),
    "smooth": lambda F, x, y: F.smooth_l1_loss(x, y, beta=0.5),
    "huber": lambda F, x, y: F.huber_loss(x, y, delta=0.7),
    "cross entropy": lambda F, x, y: F.cross_entropy(x, classes(x, y), label_smoothing=0.1),
    "nll": lambda F, x, y: F.nll_loss(F.log_softmax(x, 1), classes(x, y), ignore_index=0),
    "logits": lambda F, x, y: F.binary_cross_entropy_with_logits(x, (y > 0).to(x.dtype)),
    "kl": lambda F, x, y: F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction="batchmean"),
    "poisson": lambda F, x, y: F.poisson_nll_loss(x.clamp(-3, 3), y.abs()),
    "gaussian": lambda F, x, y: F.gaussian_nll_loss(x, y, F.softplus(x) + 0.1),
    "margin": lambda F, x, y: F.multi_margin_loss(x, classes(x, y)),
    "soft margin": lambda F, x, y: F.soft_margin_loss(x, (y > 0).to(x.dtype) * 2 - 1),
    "cosine": lambda F, x, y: F.cosine_embedding_loss(x, y, (y[:, 0] > 0).to(x.dtype) * 2 - 1),
    "triplet": lambda F, x, y: F.triplet_margin_loss(x, y, y.flip(0)),
}


def classes(x, y):
    return (y[:, 0].abs() * 7).long() % x.shape[1]


def layer(torch, text):
    made = eval("nn." + text, {"nn": torch.nn})
    if not isinstance(made, torch.nn.RNNBase):
        return made

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = made

        def forward(self, x):
            return self.inner(x)[0]

    return First()


def network(torch, texts, seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(*[layer(torch, text) for text in texts]).double()


def plan(seed):
    rng = random.Random(seed)
    r = rng.choice
    shape = r([(3, 8, 8), (4, 7, 9), (2, 6, 6), (5, 6), (4, 8), (12,), (8,)])
    numbers = np.random.default_rng(seed)
    x = numbers.standard_normal((r([2, 3, 5]), *shape))
    texts, z = [], torch.from_numpy(x)
    while len(texts) < 2 or rng.random() < 0.75:
        form = z.shape[1:]
        kinds = {3: IMAGES, 2: LINES, 1: ROWS}[len(form)]
        text = r(kinds)(*form, r) if rng.random() < 0.75 else r(ACTIVATIONS.split())
        try:  # which layers can follow depends on sizes
            after = network(torch, [text], 0)(z.clone()).detach()
        except (RuntimeError, ValueError, AssertionError):
            continue
        if after.dim() in (2, 3, 4) and 0 < after[0].numel() < 1500:
            texts.append(text)
            z = after
    flags = {name: rng.random() < 0.3 for name in ("channels_last", "checkpoint", "clip", "save")}
    chosen = r(OPTIMISERS.split()), r([None, *SCHEDULERS.split()]), r(list(LOSSES))
    return texts, x, numbers.standard_normal((len(x), z[0].numel())), chosen, flags, rng.randint(2, 4)


def trained(torch, seed):
    texts, x, y, (optimiser, scheduler, loss), flags, steps = plan(seed)
    net = network(torch, texts, seed)
    form = torch.channels_last if flags["channels_last"] and x.ndim == 4 else torch.contiguous_format
    net = net.to(memory_format=form) if x.ndim == 4 else net
    parameters = list(net.parameters())
    o = eval("optim." + optimiser, {"optim": torch.optim, "ps": parameters}) if parameters else None
    s = eval("sch." + scheduler, {"sch": torch.optim.lr_scheduler, "o": o}) if o and scheduler else None
    told = []
    for step in range(steps):
        given = torch.from_numpy(x.copy()).clone(memory_format=form).requires_grad_()
        if flags["checkpoint"] and len(net) > 2:
            out = torch.utils.checkpoint.checkpoint_sequential(net, 2, given, use_reentrant=False)
        else:
            out = net(given)
        value = LOSSES[loss](torch.nn.functional, out.flatten(1), torch.from_numpy(y))
        net.zero_grad(set_to_none=flags["clip"])
        value.backward()
        told += [value, *(value for value in (given.grad,) if value is not None)]
        if flags["clip"] and o:
            told.append(torch.nn.utils.clip_grad_norm_(parameters, 0.5))
        if o:
            o.step()
        if s:
            s.step()
            told.append(torch.tensor([group["lr"] for group in o.param_groups]))
        if flags["save"] and o and step == 1:
            file = io.BytesIO()
            torch.save([net.state_dict(), o.state_dict()], file)
            file.seek(0)
            of_net, of_optimiser = torch.load(file)
            net.load_state_dict(of_net)
            o.load_state_dict(of_optimiser)
    net.eval()
    with torch.no_grad():
        told.append(net(torch.from_numpy(x.copy())))
    return [*told, *net.state_dict().values(), torch.rand(3)]


def outcome(torch, seed):
    """What it gives, or the type and the first sentence of its error."""
    try:
        return trained(torch, seed)
    except RuntimeError as error:
        return [type(error).__name__, str(error).split(". ")[0].splitlines()[0]]


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [*range(150), 401, 477, 776])
def test_a_network_is_trained_alike(seed, one_thread):
    theirs, ours = outcome(torch, seed), outcome(rushlight, seed)
    assert len(theirs) == len(ours)
    for a, b in zip(theirs, ours, strict=True):
        if isinstance(a, str):
            assert a == b
            continue
        assert a.shape == b.shape and str(a.dtype).split(".")[-1] == str(b.dtype).split(".")[-1]
        assert a.stride() == b.stride(), plan(seed)
        scale = max(1.0, float(a.detach().double().abs().max())) if a.numel() else 1.0
        np.testing.assert_allclose(
            b.detach().numpy(), a.detach().numpy(), rtol=1e-8, atol=1e-9 * scale, err_msg=str(plan(seed))
        )
