"""Calls of layers, pools, normalisations, convolutions and losses that are wrong in a small way: both
libraries refuse them with the same words, or give the same.

Every line of refused_layers.txt and of refused_shapes.txt (empty and misshapen operands) is an expression
that both libraries evaluate. `o` is torch.ones, `g` ones
that require grad, `I` ones of int32, `L` torch.tensor.
"""

from pathlib import Path

import pytest
from comparing import BY_ONEDNN
from expressions import outcome

import rushlight

torch = pytest.importorskip("torch")

SETUP = """
import math
import numpy as np
o, F, nn, L, inf, nan = torch.ones, torch.nn.functional, torch.nn, torch.tensor, math.inf, math.nan
def I(*size): return o(*size).int()
def g(*size): return o(*size).requires_grad_()
x, t, c = o(2, 3) / 4, L([[0.5, 0.25, 0.25], [0.5, 0.125, 0.25]]), L([1, 2])
"""
TABLES = ("refused_layers.txt", "refused_shapes.txt")
CALLS = [line for name in TABLES for line in Path(__file__).with_name(name).read_text().splitlines()]

# Each with reduction="elementwise_mean", which most losses warn of and take, and some refuse.
LOSSES = """
F.mse_loss(x, t, {})
F.mse_loss(x, t, weight=x, {})
F.l1_loss(x, t, {})
F.l1_loss(x, t, weight=x, {})
F.smooth_l1_loss(x, t, {})
F.smooth_l1_loss(x, t, beta=0, {})
F.huber_loss(x, t, {})
F.huber_loss(x, t, weight=x, {})
F.binary_cross_entropy(x, t, {})
F.binary_cross_entropy_with_logits(x, t, {})
F.nll_loss(x, c, {})
F.cross_entropy(x, c, {})
F.cross_entropy(x, t, {})
F.cross_entropy(x, c, label_smoothing=0.25, {})
F.kl_div(x, t, {})
F.poisson_nll_loss(x, t, {})
F.gaussian_nll_loss(x, t, t, {})
F.multi_margin_loss(x, c, {})
F.multilabel_margin_loss(x, L([[0, 1, -1], [1, -1, 0]]), {})
F.multilabel_soft_margin_loss(x, t, {})
F.soft_margin_loss(x, t, {})
F.hinge_embedding_loss(x, t.sign(), {})
F.cosine_embedding_loss(x, t, L([1, -1]), {})
F.margin_ranking_loss(x, t, t.sign(), {})
F.triplet_margin_loss(x, t, x + t, {})
F.triplet_margin_with_distance_loss(x, t, x + t, {})
F.ctc_loss(x.reshape(2, 1, 3), L([[1]]), L([2]), L([1]), {})
nn.MSELoss({})(x, t)
nn.CrossEntropyLoss({})(x, c)
nn.PoissonNLLLoss({})(x, t)
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", CALLS)
def test_same(text):
    if "F.conv" in text and "bfloat16" in text and not BY_ONEDNN["bfloat16"]:
        pytest.skip("torch leaves these to oneDNN, and says its words, where the processor has AVX-512")
    theirs = outcome(torch, text, SETUP).partition("\n")[0]
    assert outcome(rushlight, text, SETUP).partition("\n")[0] == theirs


@pytest.mark.parametrize("text", LOSSES.strip().split("\n"))
@pytest.mark.parametrize("way", ("elementwise_mean", "x", None))
def test_reduction(text, way):
    text = text.format(f"reduction={way!r}")
    assert outcome(rushlight, text, SETUP) == outcome(torch, text, SETUP)
