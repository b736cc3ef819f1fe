"""Sparse gradients, gradients of sparse tensors, and what trains with them: both libraries agree.

sparse_gradients.txt has an expression on each line. Both evaluate it; what it shows (values, layouts, number
of entries, whether coalesced, the names of nodes), or the error type and first sentence, is the same.
"""

import re
from pathlib import Path

import pytest
from expressions import outcome

import rushlight

torch = pytest.importorskip("torch")

SETUP = """
import copy, importlib, io, pickle

torch.sparse.check_sparse_tensor_invariants.disable()  # said aloud, or torch warns once
D, F, I, optim, nn = torch.float64, torch.nn.functional, torch.tensor, torch.optim, torch.nn
functional = importlib.import_module(torch.__name__ + '.optim._functional')
check, check2 = torch.autograd.gradcheck, torch.autograd.gradgradcheck

def rounded(x):
    if isinstance(x, list):
        return [rounded(y) for y in x]
    return x if isinstance(x, (bool, int, complex)) else round(x, 4) + 0.0

def show(t):
    if isinstance(t, (tuple, list)):
        return [show(each) for each in t]
    if not isinstance(t, torch.Tensor):
        return t
    kind = [str(t.dtype).split('.')[1]] * (t.dtype is not D) + ['grad'] * t.requires_grad
    if t.layout is not torch.sparse_coo:
        return (rounded(t.detach().tolist()), *kind)
    form = [list(t.shape), t.sparse_dim(), t.dense_dim(), t._nnz(), t.is_coalesced()]
    return (form, t.detach()._indices().tolist(), rounded(t.detach()._values().tolist()), *kind)

def nodes(t):
    'the names of the nodes behind t, nearest first'
    waiting, seen, found = [t.grad_fn], [], []
    while waiting:
        node = waiting.pop(0)
        if node is not None and node not in seen:
            seen.append(node)
            found.append(node.name().split('::')[-1])
            waiting.extend(one for one, _ in node.next_functions)
    return ' '.join(found)

def coo(places, values, size=None, grad=False, **options):
    options.setdefault('dtype', D)
    return torch.sparse_coo_tensor(places, values, size, requires_grad=grad, **options)

def S(grad=True):
    return coo([[0, 1, 1], [2, 0, 2]], [1.0, 2, 3], (2, 3), grad)

def U(grad=True):
    return coo([[0, 1, 0], [2, 0, 2]], [1.0, 2, 3], (2, 3), grad)

def H(grad=True):
    return coo([[1, 0, 1]], [[1.0, 2], [3, 4], [5, 6]], (3, 2), grad)

def real(*size, grad=True, dtype=D):
    n = 1
    for each in size:
        n *= each
    return (torch.arange(1., n + 1, dtype=dtype).reshape(size) / 4).requires_grad_(grad)

def needing(inputs):
    return [t for t in inputs if isinstance(t, torch.Tensor) and t.requires_grad]

def ones(out, by):
    return torch.ones(out.shape, dtype=out.dtype) if by is None else by

def slopes(f, *inputs, by=None, again=False):
    'what autograd.grad gives, and with again the last node behind it'
    out = f(*inputs)
    shown = [show(out), nodes(out)]
    got = torch.autograd.grad(out, needing(inputs), ones(out, by), allow_unused=True, create_graph=again)
    return shown + show(list(got)) + [nodes(t).split()[:1] for t in got if again and t is not None]

def left(f, *inputs, by=None):
    'what backward leaves in .grad'
    out = f(*inputs)
    out.backward(ones(out, by))
    return [show(out), nodes(out), *(show(t.grad) for t in needing(inputs))]

def err(f, *args, **kwargs):
    try:
        return show(f(*args, **kwargs))
    except Exception as error:
        return f'{type(error).__name__}: {error}'.splitlines()[0].split('. ')[0]

def passing(gradient):
    'a function that passes its input on and has this gradient'
    class Pass(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x): return x * 1
        @staticmethod
        def backward(ctx, g): return gradient
    return Pass.apply

def accumulated(*gradients, first=None, twice=False):
    'x.grad after several uses of x, each with its own gradient'
    x = real(2, 3)
    if first is not None:
        x.grad = first
    for _ in range(1 + twice):
        sum(passing(g)(x).sum() for g in gradients).backward()
    return show(x.grad)

def inputs_of(*gradients):
    'what arrives at a node that is used several times'
    x, got = real(2, 3), []
    y = x * 1
    y.register_hook(lambda g: got.append(show(g)))
    sum(passing(g)(y).sum() for g in gradients).backward()
    return got, show(x.grad)

def separate(first, second, graph=False):
    'whether the gradient of a second pass is written into that of the first, and what became of those given'
    x = real(2, 3)
    passing(first)(x).sum().backward()
    before, kept = x.grad, show(x.grad)
    passing(second)(x).sum().backward(create_graph=graph)
    return x.grad is before, show(before) == kept, x.grad is first, show([x.grad, first, second])

def with_hook(hook, f, *inputs):
    calls = []
    inputs[0].register_hook(lambda g: calls.append(show(g)) or hook(g))
    return left(f, *inputs), calls

def assigned(t, grad):
    t.grad = grad
    return show(t.grad)

def stepped(kind, times=2, grad=None, **options):
    w = real(4, 2)
    o = kind([w], **options)
    for n in range(times):
        o.zero_grad()
        if grad is None:
            (F.embedding(I([1, 2, 2, n % 3]), w, sparse=True) ** 2).sum().backward()
        else:
            w.grad = grad
        o.step()
    return show(w), show(w.grad), {k: show(v) for k, v in o.state[w].items()}
"""
TABLE = Path(__file__).with_name("sparse_gradients.txt").read_text().splitlines()


def first_sentence(text):
    # Torch multiplies two sparse matrices as CSR and says so; where a NaN came from is another line here; of
    # an old name both warn once, which may have been before.
    text = re.sub(r"(?s)\nUserWarning: (Sparse CSR|Error detected|torch\.sparse\.SparseTensor).*", "", text)
    if not re.match(r"\w+Error: ", text):
        return text
    return text.splitlines()[0].split(". ")[0].removesuffix(".")


@pytest.mark.parametrize("text", [line for line in TABLE if line and not line.startswith("#")])
def test_same(text):
    theirs = first_sentence(outcome(torch, text, SETUP))
    assert first_sentence(outcome(rushlight, text, SETUP)) == theirs
