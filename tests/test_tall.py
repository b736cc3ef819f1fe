"""Tensors of more than 64 dimensions exist, can be filled, reshaped, reduced as a whole and computed with
element by element; all else refuses them."""

import copy
import pickle

import pytest

import rushlight as torch

MADE = """ones(s); zeros(s); empty(s); full(s, 2.0); rand(s); randn(s); randint(3, s); ones(*s); ones(size=s)
empty(s, dtype=torch.complex64); zeros(s, device="meta"); rand(s, generator=torch.Generator())
ones(1).new_ones(s); ones(1).new_zeros(*s); ones(1).new_empty(s); ones(1).new_full(s, 3)"""
WHOLE = """t.sum() == 3 and t.mean() == 1.5 and t.max() == 2 and t.view(-1).tolist() == [1, 2]
t.reshape(1, 2).shape == (1, 2); torch.sum(t) == 3; t.flatten().tolist() == [1, 2]; t.argmax() == 1
t.numel() == 2 and t.size(-1) == 2 and t.stride(0) == 2 and len(t) == 1 and t.stride()[-1] == 1
t.fill_(3) is t and t.sum() == 6; t.uniform_(2, 3).min() >= 2; t.dtype == torch.float32; t.is_contiguous()
"size=(1, 1" in repr(t); t.dim() == t.ndim == len(t.shape) == 70"""
BY_ELEMENTS = """t + 1 == [2, 3]; 1 - t == [0, -1]; t * t == [1, 4]; t.exp().log() == [1, 2]; -t == [-1, -2]
torch.ones(1) + t == [2, 3]; torch.tensor([1.0, 3.0]) + t == [2, 5]; t.double() == [1, 2]
t.to(torch.int64) == [1, 2]; torch.zeros_like(t) == [0, 0]; torch.nn.functional.relu(-t) == [0, 0]
t.add_(1) == [2, 3]; t.clone() == [1, 2]; torch.where(t > 1, t, 0.5) == [0.5, 2]; t.detach() == [1, 2]
(t == t) == [True, True]; t.clamp(max=1) == [1, 1]
t + torch.ones([1] * 66 + [2]) == [2, 3]; torch.add(t, t, alpha=2) == [3, 6]; t.mul_(t) == [1, 4]"""
REFUSED = """t.sum(0); t.sum(dim=0); torch.amax(t, 0); t[0]; t[None]; torch.add(t, 1, out=torch.ones(1))
t.mT; t.T; t.data; t.numpy(); t.tolist(); t.to("meta")
t.cumsum(0); t.requires_grad_(); torch.cat([t, t]); torch.stack([t]); copy.deepcopy(t); pickle.dumps(t)
torch.add(torch.ones(1), 1, out=t); torch.nn.Parameter(t); torch.ones(2, requires_grad=True) * t
t.set_(torch.ones(1)); t.resize_(2); torch.ones(3)[t]; t.view(torch.int32); list(t)
torch.masked.sum(t, dim=0); torch.linalg.vector_norm(t, dim=0)
torch.ones([1] * 70, requires_grad=True); t.as_strided((2,), (1,)); t.expand(2)"""

ADDED = """torch.ones(1).view(s); torch.ones(1).expand(s); x.unsqueeze(0); x.unsqueeze(-1); x[None]
x.unfold(0, 1, 1); torch.view_as_real(x + 0j); torch.stack([x, x])
x[i]; x[None, 0, i]; torch.diag_embed(x); torch.nn.functional.one_hot(x.long()); x[..., None]
torch.kron(x, torch.ones(s)); torch.tensordot(x, x, 0); x.repeat(*s); x.tile(s)"""


def cases(text):
    return [pytest.param(part.strip(), id=part.strip()) for part in text.replace("\n", ";").split(";")]


def names():
    tall = torch.empty([1] * 69 + [2])
    tall.view(-1).copy_(torch.tensor([1.0, 2.0]))
    return {"torch": torch, "t": tall, "copy": copy, "pickle": pickle}


@pytest.mark.parametrize("text", cases(MADE))
def test_made(text):
    made = eval(f"torch.{text}", {"torch": torch, "s": [1] * 64 + [2]})
    assert isinstance(made, torch.Tensor)
    assert made.shape == torch.Size([1] * 64 + [2]) and made.numel() == 2


@pytest.mark.parametrize("text", cases(WHOLE))
def test_as_a_whole(text):
    assert eval(text, names())


@pytest.mark.parametrize("text", cases(BY_ELEMENTS))
def test_element_by_element(text):
    expression, _, expected = text.rpartition(" == ")
    result = eval(expression, names())
    assert result.shape == torch.Size([1] * 69 + [2])
    assert result.flatten().tolist() == pytest.approx(eval(expected))


def test_what_is_written_keeps_its_sizes():
    wide = torch.zeros([1] * 65)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        wide += torch.ones(2)
    assert wide.sum() == 0


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize("text", cases(REFUSED))
def test_refused(text):
    with pytest.raises(RuntimeError, match=r"^only tensors with up to 64 dims are supported"):
        eval(text, names())


def test_empty():
    assert torch.empty([0] * 65).numel() == 0 and torch.zeros([1] * 64 + [0, 2]).sum() == 0


@pytest.mark.parametrize("text", cases(ADDED))
def test_views_end_at_64(text):
    """Under AddressSanitizer: nothing is written behind the sizes."""
    full = torch.ones([2] + [1] * 63)
    with pytest.raises((RuntimeError, ValueError, IndexError), match=r"64|too many (dimensions|indices)"):
        eval(text, {"torch": torch, "s": [1] * 65, "x": full, "i": torch.zeros(1, 1, dtype=torch.int64)})
