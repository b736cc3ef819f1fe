"""Corners of layers, attention, pipes and autocast, as expressions that both libraries evaluate."""

import pytest
import torch

import rushlight

pytestmark = pytest.mark.torch

SETUP = """
import io
import torch.nn as nn, torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel, _cur_sdpa_kernel_backends
from torch.nn.attention.bias import causal_lower_right, causal_upper_left
from torch.nn.parallel import DataParallel, gather, parallel_apply, replicate, scatter
from torch.utils.data import IterDataPipe
from torch.utils.data.datapipes.iter import IterableWrapper
from torch.utils.data.datapipes.utils import decoder
from torch.utils.data.datapipes.utils.snapshot import _simple_graph_snapshot_restoration as restore
q, k = torch.arange(24.0).view(1, 1, 3, 8) / 9, torch.arange(40.0).view(1, 1, 5, 8).sin()
three = torch.eye(3) + 1

class Itself(IterDataPipe):
    def __iter__(self):
        self.i = 0
        return self

    def __next__(self):
        if self.i >= 3:
            raise StopIteration
        self.i += 1
        return self.i

class Fails(IterDataPipe):
    def __init__(self, a, b=2):
        self.a, self.c = a, 5

    def __iter__(self):
        yield 1
        raise ValueError("bad")

def restored(count):
    pipe = IterableWrapper(range(5)).map(str)
    restore(pipe, count)
    return list(pipe), list(pipe), pipe._snapshot_state.name

def both(pipe):
    first, second = iter(pipe), iter(pipe)
    return next(second), next(first)

def under(backends):
    with sdpa_kernel(backends):
        return torch._fused_sdp_choice(q, k, k), [b.name for b in _cur_sdpa_kernel_backends()]

def cast(function, *args):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return str(function(*args).dtype)
"""
EXPRESSIONS = """
nn.BatchNorm1d(3, eps=-1.0).eval()(three)
F.batch_norm(three, torch.zeros(3), torch.zeros(3), eps=0)
F.batch_norm(three, torch.ones(3), torch.zeros(3), eps=0.0)
F.conv2d(torch.ones(2, 0, 4, 4), torch.ones(3, 0, 2, 2), torch.ones(3)).shape
F.conv1d(torch.ones(0, 4), torch.ones(3, 0, 2), padding="same").shape
nn.LinearCrossEntropyLoss(4, 3, weight=torch.ones(2))
nn.LinearCrossEntropyLoss(4, 3, label_smoothing=2.0)
causal_lower_right(2, 3)
causal_upper_left(2, 3)
causal_upper_left(2)
F.scaled_dot_product_attention(q, k, k, causal_lower_right(3, 5))
F.scaled_dot_product_attention(q, k, k, causal_upper_left(3, 5), scale=0.1)
F.scaled_dot_product_attention(q, k, k, causal_upper_left(3, 5), is_causal=True)
under(SDPBackend.MATH)
under([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION])
under(SDPBackend.EFFICIENT_ATTENTION)
under("MATH")
torch._fused_sdp_choice(q, k, k, dropout_p=0.5)
torch._scaled_dot_product_attention_math(q, k, k)
DataParallel(nn.Identity(), [0, 1])(three)
DataParallel(nn.ReLU())
scatter((1, {"a": [2]}), [0, 1])
scatter(three, ["cpu"])
gather([three, three], "cpu")
replicate(nn.Sequential(nn.ReLU()), [0, 1])
replicate(nn.Linear(2, 2), [0])
parallel_apply([nn.ReLU()], [])
list(Itself()), list(Itself())
both(Itself())
list(Fails(1))
restored(0)
restored(3)
restored(9)
list(IterableWrapper([("b.json", io.BytesIO(b"[1]"))]).routed_decode(decoder.basichandlers))
decoder.imagehandler("what")
[type(child).__name__ for child in IterableWrapper(range(3)).fork(2)]
len(IterableWrapper(range(3)).demux(2, len)[0])
cast(F.bilinear, three, three, torch.ones(2, 3, 3))
cast(torch.cat, [three.half(), three])
cast(torch.cat, [three, three.half()])
cast(torch.stack, [three.bfloat16(), three])
"""


def outcome(library, name, expression):
    code = SETUP.replace("import torch.nn as nn, torch.nn.functional as F", "")
    names = {"torch": library, "nn": library.nn, "F": library.nn.functional}
    exec(code.replace("from torch.", f"from {name}."), names)
    try:
        return repr(eval(expression, names))
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


@pytest.mark.parametrize("expression", EXPRESSIONS.strip().splitlines())
@pytest.mark.filterwarnings("ignore")
def test_as_torch(expression):
    ours = outcome(rushlight, "rushlight", expression)
    assert ours.replace("rushlight", "torch") == outcome(torch, "torch", expression)


def hooked(library):
    """What a full backward hook sees for inputs that need a gradient and inputs that need none."""

    class Sum(library.nn.Module):
        def forward(self, *args):
            return sum(arg for arg in args if isinstance(arg, library.Tensor) and arg.is_floating_point())

    module, seen = Sum(), []
    module.register_full_backward_hook(lambda _, grads, __: seen.append(str(grads)))
    needed = library.ones(1, requires_grad=True)
    module(needed, library.ones(2), 3, library.tensor([True])).sum().backward()
    return seen


def test_a_hook_gets_zeros_for_what_needs_no_gradient():
    assert hooked(rushlight) == hooked(torch)


@pytest.mark.parametrize("leaves_out", ["nothing", "later", "padding", "both", "everything"])
@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_in_one_call(leaves_out, need_weights):
    results = []
    for library in (rushlight, torch):
        library.manual_seed(0)
        layer = library.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
        x, masks = library.randn(2, 4, 8), {}
        later = library.ones(4, 4).triu(1).bool()
        padding = library.tensor([[False, False, True, True], [False] * 4])
        if leaves_out in ("later", "both"):
            masks["attn_mask"] = later
        if leaves_out in ("padding", "both"):
            masks["key_padding_mask"] = padding
        if leaves_out == "everything":
            masks["key_padding_mask"] = library.ones(2, 4).bool()
        with library.no_grad():
            out, weights = layer.self_attn(x, x, x, need_weights=need_weights, **masks)
            whole = layer(x, masks.get("attn_mask"), masks.get("key_padding_mask"))
        results.append([None if each is None else each.tolist() for each in (out, weights, whole)])
    for ours, theirs in zip(*results, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs), equal_nan=True)
