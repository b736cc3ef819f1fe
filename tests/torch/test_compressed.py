"""Compressed sparse tensors: both libraries make, show, compute, differentiate and refuse the same.

compressed.txt has an expression on each line. K stands for each of the four layouts, or for those named
behind the #. Both evaluate it; what it shows (indices, values, size, layout, dtype, version, node), or the
error type and first sentence, is the same. Where torch refuses one layout by accident or leaves memory
unwritten, test_compressed.py beside it says what there is here.
"""

import io
import re
from pathlib import Path

import pytest
from expressions import outcome

import rushlight

torch = pytest.importorskip("torch")

SETUP = """
import copy, io, pickle

torch.sparse.check_sparse_tensor_invariants.disable()  # said aloud, or torch warns once
D, I = torch.float64, torch.tensor
L = {name: getattr(torch, f'sparse_{name}') for name in ('csr', 'csc', 'bsr', 'bsc', 'coo')}

def d():
    return I([[0., 2, 0, 1], [3, 0, 0, 0], [0, 0, 4, 5], [0, 6, 0, 0]])

def X(kind, grad=False, t=None):
    'a sparse tensor in that layout'
    blocksize = (2, 2) if kind[0] == 'b' else None
    made = (d() if t is None else t).to_sparse(layout=L[kind], blocksize=blocksize)
    return made.requires_grad_() if grad else made

def dg(*size):
    return torch.arange(1., 1 + torch.Size(size).numel()).reshape(size).requires_grad_()

def rounded(x):
    if isinstance(x, list):
        return [rounded(y) for y in x]
    return round(x, 4) + 0.0 if isinstance(x, float) else x

def listed(t):
    return rounded(t.detach().tolist())

def sh(x):
    if isinstance(x, (tuple, list)):
        return [sh(y) for y in x]
    if not isinstance(x, torch.Tensor):
        return x
    y = x.detach()
    about = [x.layout, list(x.shape), x.dtype, x.requires_grad, x.grad_fn and x.grad_fn.name()]
    if x.layout is torch.strided:
        return [*about, listed(y)]
    if x.layout is torch.sparse_coo:
        return [*about, x._version, listed(y._indices()), listed(y._values()), x.is_coalesced()]
    if x.layout in (torch.sparse_csr, torch.sparse_bsr):
        indices = y.crow_indices(), y.col_indices()
    else:
        indices = y.ccol_indices(), y.row_indices()
    return [*about, x._version, *map(listed, indices), indices[0].dtype, listed(y.values())]

def each(f, kinds):
    'what it is in each layout'
    found = []
    for kind in kinds:
        torch.manual_seed(0)
        try:
            found.append(sh(f(kind)))
        except Exception as error:
            text = f'{type(error).__name__}: {error}'
            found.append(text.splitlines()[0].split('. ')[0].removesuffix('.'))
    return found

def G(f, *inputs, by=None):
    out = f(*inputs)
    by = torch.ones(out.shape, dtype=out.dtype) if by is None else by
    return [out, *torch.autograd.grad(out, [x for x in inputs if x.requires_grad], by, allow_unused=True)]

def setg(x, g):
    x.grad = g
    return x.grad

def sl(x):
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file)

def hook(x, f):
    x.register_hook(f)
    x.to_dense().sum().backward()
    return x.grad
"""
TABLE = Path(__file__).with_name("compressed.txt").read_text().splitlines()
KINDS = "csr", "csc", "bsr", "bsc"


def said(library, text):
    text = outcome(library, text, SETUP)
    # Torch says once that the layouts are in beta and what is deprecated; Rushlight does not.
    return re.sub(r"(?s)\n(DeprecationWarning|UserWarning: (Sparse [CB]S|torch\.triang|Casting)).*", "", text)


@pytest.mark.parametrize("line", [line for line in TABLE if not line.startswith("#")])
def test_same(line):
    text, _, kinds = line.partition("  # ")
    kinds = (kinds.split() or list(KINDS)) if re.search(r"\bK\b", text) else [""]
    theirs, ours = (said(library, f"each(lambda K: {text}, {kinds})") for library in (torch, rushlight))
    assert ours == theirs


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrapped", [False, True])
def test_files_go_both_ways(kind, wrapped):
    for writer, reader in ((torch, rushlight), (rushlight, torch)):
        x = writer.eye(4, dtype=writer.float64) * 3
        x = x.to_sparse(
            layout=getattr(writer, f"sparse_{kind}"), blocksize=(2, 2) if kind[0] == "b" else None
        )
        file = io.BytesIO()
        writer.save({"x": writer.nn.Parameter(x) if wrapped else x}, file)
        file.seek(0)
        read = reader.load(file)["x"]
        assert str(read.layout) == str(x.layout) and read.requires_grad == wrapped
        assert read.detach().to_dense().tolist() == x.to_dense().tolist()


@pytest.mark.parametrize("layouts", ["csr csr", "csc csc", "csr csc", "csc csr"])
def test_products_have_the_same_entries(layouts):
    """MKL does not put the columns of a product in order."""
    both = []
    for library in (torch, rushlight):
        library.manual_seed(3)
        a, b = (
            (library.rand(6, 6) * (library.rand(6, 6) > 0.6)).to_sparse(
                layout=getattr(library, f"sparse_{kind}")
            )
            for kind in layouts.split()
        )
        product = a @ b
        assert str(product.layout) == "torch.sparse_csr"
        coo = product.to_sparse()
        together = zip(coo._indices().t().tolist(), coo._values().tolist(), strict=True)
        both.append((product.crow_indices().tolist(), sorted(together)))
    (ends, theirs), (our_ends, ours) = both
    assert our_ends == ends and [place for place, _ in ours] == [place for place, _ in theirs]
    assert [value for _, value in ours] == pytest.approx([value for _, value in theirs], rel=1e-5)
