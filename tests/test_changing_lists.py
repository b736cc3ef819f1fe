"""Arguments that change: lists after a call and while they are read, tensors while numbers are read."""

import contextlib

import pytest

import rushlight as torch

F = torch.nn.functional
W = torch.arange(9.0).view(3, 3)

AFTER = """x.sum(l) @ [0]; x.var(l) @ [0]; torch.logsumexp(x, l) @ [0]; torch.amax(x, l) @ [0]
x.mean(l) @ [1]
F.pad(x, l) @ [1, 0, 0, 1]; torch.linalg.vector_norm(x, 3, l) @ [0]; F.layer_norm(x, l) * W @ [3]
F.conv2d(x[None, None], W[None, None], padding=l) @ [1, 1]; F.max_pool2d(x[None], l) @ [2, 2]
F.conv_transpose2d(x[None, None], W[None, None], stride=l) @ [2, 2]; F.unfold(x[None, None], l) @ [2, 2]
x.permute(l) * W @ [1, 0]; x.flip(l) * W @ [0]; x.roll(l, l) * W @ [1]; x.split(l)[0] @ [1, 2]
x.repeat(l) * torch.arange(18.0).view(6, 3) @ [2, 1]; torch.fft.fftn(x, dim=l).real * W @ [0]
F.interpolate(x[None, None], l) @ [6, 6]; F.avg_pool2d(x[None], l) @ [2, 2]; torch.std(x, l) @ [1]
torch.cat(l) * torch.arange(18.0).view(6, 3) @ [x, x * x]; torch.stack(l) @ [x, x.exp()]"""


@pytest.mark.parametrize("text", [part.strip() for part in AFTER.replace("\n", ";").split(";")])
def test_after_the_call(text):
    """Torch reads an argument once: what becomes of the list afterwards is no business of the gradient."""
    expression, _, start = text.rpartition("@")
    x = torch.tensor([[1.0, 5.0, 2.0], [4.0, 3.0, 9.0], [8.0, 7.0, 6.0]], requires_grad=True)
    names = {"x": x, "torch": torch, "F": F, "W": W}
    grads = []
    for change in (lambda items: None, lambda items: items.clear(), lambda items: items.reverse()):
        items = eval(start, names)
        y = eval(expression, {**names, "l": items})
        change(items)
        grads += torch.autograd.grad(y.sum(), x)
    assert torch.equal(grads[0], grads[1]) and torch.equal(grads[0], grads[2])


class Changing:
    """A number that changes the list it stands in when it is asked for its value."""

    def __init__(self, items, change):
        self.items, self.change = items, change

    def __index__(self):
        self.change(self.items)
        return 1

    def __float__(self):
        self.change(self.items)
        return 1.0


READ = """x.view(l); x.expand(l); x.permute(l); x.sum(l); x.amax(l); x.flip(l); x.roll(l, l); x.squeeze(l)
x.repeat(l); x.split(l); x.as_strided(l, l); F.pad(x, l); torch.rand(l); x.new_zeros(l); x.clone().resize_(l)
torch.tensor(l); torch.tensor(l, dtype=torch.float32); torch.tensor([l, l], dtype=torch.float64); x[l]
torch._C.full(l, 0, torch.float32, None); torch._C.empty(l, None, None); torch.fft.fftn(x, dim=l)
torch.Size(l)
F.conv2d(x[None], x[None], stride=l); F.max_pool2d(x, l); F.interpolate(x[None], l); torch.as_tensor(l)
torch._C.ops.split(x, l, 0); torch._C.ops.sum_dim(x, l, False); torch._C.ops.squeeze_dims(x, l)"""
CHANGES = [lambda items: items.clear(), lambda items: items.extend([1] * 1000), lambda items: items.pop()]


@pytest.mark.parametrize("change", CHANGES, ids=["cleared", "longer", "shorter"])
@pytest.mark.parametrize("text", [part.strip() for part in READ.replace("\n", ";").split(";")])
def test_while_it_is_read(text, change):
    """Whatever comes of it: no memory outside of the list or the tensor is touched (AddressSanitizer)."""
    items = []
    items += [Changing(items, change), 1, Changing(items, change), 10**40]
    with contextlib.suppress(RuntimeError, TypeError, ValueError, IndexError, AttributeError):
        eval(text, {"torch": torch, "F": F, "x": torch.ones(1, 1, 1), "l": items})


def test_tensors_that_a_hook_takes_away():
    x = torch.arange(9.0).view(3, 3).requires_grad_()
    indices = [torch.tensor([0, 2]), torch.tensor([1, 2])]

    def pack(saved):
        indices.clear()
        return saved

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
        picked = torch._C.ops.index(x, indices)
    picked.sum().backward()
    assert not indices and picked.tolist() == [1, 8] and x.grad.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 1]]


VIEWS = """torch.select(x, i, 1); x.select(0, i); x.diagonal(i); x.diagonal(0, i, 2); x.transpose(i, 0)
x.narrow(0, i, i); x.unfold(i, i, 1); x.split((i, 2)); x.unbind(i); x.as_strided((i, 9), (1, i), i)
x.view(i, -1); x.flip((i, 0)); x.expand(i, -1, -1, -1, -1, -1); x.permute(i, 0, 2, 3, 4); x.squeeze(i)
x.roll(i, i); x.gather(i, x.long())
torch._C.ops.slice(x, i, i, i, i); torch._C.on_storage(x, torch.float32, 0, (i, 99), (1, 1)); x.sort(i)"""
MOVES = {
    "away": lambda x: x.set_(),
    "smaller": lambda x: x.resize_(0),
    "other": lambda x: setattr(x, "data", torch.ones(1, 1, 1, 1, 1, 1)),
    "longer": lambda x: x.unsqueeze_(0).unsqueeze_(0),
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("text", [part.strip() for part in VIEWS.replace("\n", ";").split(";")])
def test_numbers_that_move_the_tensor(text, move):
    """No result reaches outside of its memory, whatever became of the tensor while numbers were read."""
    x = torch.arange(243.0).view(3, 3, 3, 3, 3).clone()
    names = {"torch": torch, "x": x, "i": Changing(x, MOVES[move])}
    with contextlib.suppress(RuntimeError, TypeError, ValueError, IndexError):
        results = eval(text, names)
        for result in results if isinstance(results, tuple) else [results]:
            last = sum((size - 1) * step for size, step in zip(result.shape, result.stride()))
            end = (result.storage_offset() + last + 1) * result.element_size()
            assert not result.numel() or end <= torch._C.storage_room(result)
