"""Sparse gradients of tables, bags and gather, and what steps by them: the same as with dense ones."""

import copy
import pickle

import pytest

import rushlight as torch
from rushlight.autograd import gradcheck, gradgradcheck

F, nn, optim = torch.nn.functional, torch.nn, torch.optim


def table(*size):
    torch.manual_seed(0)
    return torch.randn(*size, dtype=torch.float64, requires_grad=True)


INDEX = torch.tensor([[1, 2], [2, 4], [0, 2]])
USES = {
    "embedding": lambda w, sparse: F.embedding(INDEX, w, sparse=sparse),
    "padded": lambda w, sparse: F.embedding(INDEX, w, 2, sparse=sparse),
    "sum": lambda w, sparse: F.embedding_bag(INDEX, w, mode="sum", sparse=sparse),
    "mean": lambda w, sparse: F.embedding_bag(
        INDEX.flatten(), w, torch.tensor([0, 1, 1, 4]), mode="mean", sparse=sparse
    ),
    "weighted": lambda w, sparse: F.embedding_bag(
        INDEX, w, mode="sum", sparse=sparse, per_sample_weights=(INDEX * 0.5).double()
    ),
    "gather": lambda w, sparse: w.gather(0, INDEX, sparse_grad=sparse),
    "gathered columns": lambda w, sparse: w.gather(1, INDEX % 3, sparse_grad=sparse),
}


@pytest.mark.parametrize("use", USES)
def test_the_gradient_is_that_of_the_dense_form(use):
    w, cotangent = table(5, 3), None
    grads = []
    for sparse in (False, True):
        out = USES[use](w, sparse)
        cotangent = torch.randn(out.shape, dtype=out.dtype) if cotangent is None else cotangent
        grads.append(torch.autograd.grad(out, w, cotangent)[0])
    assert grads[1].is_sparse and grads[1].shape == w.shape
    torch.testing.assert_close(grads[1].to_dense(), grads[0])


@pytest.mark.parametrize("use", [use for use in USES if use not in ("padded",)])
def test_second_derivatives_by_finite_differences(use):
    """Of what the first one is, made dense; the gradient of a padded row is none by definition."""

    def slope(w):
        (grad,) = torch.autograd.grad((USES[use](w, True) ** 3).sum(), w, create_graph=True)
        return grad.to_dense()

    if use in ("sum", "mean", "weighted"):  # torch has no second derivative of a bag, and says so
        with pytest.raises(RuntimeError, match=r"derivative for .* is not implemented"):
            slope(table(5, 3)).sum().backward()
        return
    w = table(5, 3)
    (grad,) = torch.autograd.grad(slope(w).sum(), w)
    assert grad.is_sparse
    for place in ((1, 0), (2, 1), (4, 2), (3, 0)):
        moved = []
        for step in (1e-6, -1e-6):
            other = w.detach().clone()
            other[place] += step
            moved.append(slope(other.requires_grad_()).sum().item())
        assert grad.to_dense()[place].item() == pytest.approx((moved[0] - moved[1]) / 2e-6, abs=1e-6)


def test_a_gradient_is_not_written_to_by_others():
    """The values of a sparse gradient may be the memory of a gradient that goes on elsewhere."""
    w, b = table(5, 3), torch.zeros(3, 2, 3, dtype=torch.float64, requires_grad=True)
    c = b * 1
    out = F.embedding(INDEX, w, sparse=True) + c
    ((out * 2) + (c * 5)).sum().backward()
    assert w.grad._values().eq(2).all() and b.grad.eq(7).all()


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("fast", [True, False])
def test_gradcheck_of_sparse_inputs(masked, fast):
    x = torch.eye(3, dtype=torch.float64)[:, :2].to_sparse().requires_grad_()
    y = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)

    def product(x, y):
        return x.to_dense(masked_grad=masked) @ y

    assert gradcheck(product, (x, y), masked=masked, fast_mode=fast)
    check = torch.sparse.as_sparse_gradcheck(gradcheck)
    assert check(product, (x, y), masked=masked, fast_mode=fast)
    assert gradgradcheck(lambda y: product(x.detach(), y) ** 2, y, fast_mode=fast)


def test_a_wrong_gradient_of_a_sparse_input_is_found():
    x = torch.eye(2, dtype=torch.float64).to_sparse().requires_grad_()
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(lambda x: x.to_dense(), x, masked=False)


@pytest.mark.parametrize(
    "make", [lambda p: optim.SGD(p, 0.1), lambda p: optim.Adagrad(p, 0.1), lambda p: optim.SGD(p, 0.1, 0.9)]
)
def test_a_step_is_that_by_the_dense_gradient(make):
    results = []
    for sparse in (False, True):
        w = table(5, 3)
        optimiser = make([w])
        for _ in range(3):
            optimiser.zero_grad()
            F.embedding(INDEX, w, sparse=sparse).square().sum().backward()
            optimiser.step()
        results.append(w.detach())
    torch.testing.assert_close(*results)


def test_sparse_adam_is_adam_for_rows_that_are_always_used():
    results = []
    for kind, sparse in ((optim.Adam, False), (optim.SparseAdam, True)):
        w = table(5, 3)
        optimiser = kind([w], lr=0.1, betas=(0.8, 0.9), eps=1e-12)
        for _ in range(4):
            optimiser.zero_grad()
            F.embedding(INDEX, w, sparse=sparse).square().sum().backward()
            optimiser.step()
        results.append(w.detach()[[0, 1, 2, 4]])
    torch.testing.assert_close(*results)


def test_sparse_adam_goes_on_from_its_state():
    model = nn.Embedding(5, 3, sparse=True)
    optimiser = optim.SparseAdam(model.parameters(), lr=0.1)

    def train(model, optimiser):
        optimiser.zero_grad()
        model(INDEX).square().sum().backward()
        optimiser.step()

    train(model, optimiser)
    twin = pickle.loads(pickle.dumps(model))
    other = optim.SparseAdam(twin.parameters(), lr=0.1)
    other.load_state_dict(copy.deepcopy(optimiser.state_dict()))
    assert type(other.state[twin.weight]["step"]) is int
    train(model, optimiser)
    train(twin, other)
    assert torch.equal(model.weight, twin.weight)


DENSE = [
    *(
        torch.ones(4, 3, dtype=dtype)
        for dtype in (torch.float64, torch.float16, torch.complex64, torch.int64)
    ),
    torch.ones(4, 3, dtype=torch.bool),
    torch.arange(12.0).view(3, 4).t(),
    torch.arange(24.0).view(4, 6)[:, ::2],
    nn.Parameter(torch.ones(4, 3)),
]


@pytest.mark.parametrize("dense", DENSE, ids=lambda t: f"{type(t).__name__} {t.dtype} {t.stride()}")
@pytest.mark.parametrize("rows", [[1, 3, 1], [], [0]])
def test_a_sparse_tensor_added_in_place(dense, rows):
    values = torch.ones(len(rows), 3).to(dense.dtype)
    sparse = torch.sparse_coo_tensor([rows], values, (4, 3), dtype=dense.dtype)
    adds = [lambda a, b: a.add_(b), lambda a, b: a.sub_(b), lambda a, b: a.add_(b, alpha=2)]
    for add in adds[:1] if dense.dtype == torch.bool else adds:
        with torch.no_grad():
            ours, theirs = dense.detach().clone(), dense.detach().clone()
            version = ours._version
            assert torch.equal(add(ours, sparse), add(theirs, sparse.to_dense()))
            assert ours._version == version + 1


def test_values_that_are_part_of_what_they_are_added_to():
    x = torch.arange(6.0).view(3, 2)
    x.add_(torch.sparse_coo_tensor([[1, 2]], x[:2], (3, 2)))
    assert x.tolist() == [[0, 1], [2, 4], [6, 8]]
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        x.add_(torch.sparse_coo_tensor([[7]], torch.ones(1, 2), (3, 2), check_invariants=False))


class Entries(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, i):
        return torch.sparse_coo_tensor([[i]], [i + 1.0], (2,))


def test_sparse_batches_come_from_a_worker():
    loader = torch.utils.data.DataLoader(Entries(), batch_size=2, num_workers=1, collate_fn=torch.stack)
    (batch,) = loader
    assert batch.is_sparse and batch.to_dense().tolist() == [[1, 0], [0, 2]]
    with pytest.raises(RuntimeError, match="Batches of sparse tensors are not currently supported"):
        list(torch.utils.data.DataLoader(Entries(), batch_size=2))


def test_a_write_to_the_values_of_a_saved_tensor_is_noticed():
    a = torch.eye(2).to_sparse()
    x = torch.ones(2, 2, requires_grad=True)
    for write in (lambda: a.values().mul_(2), lambda: a._values().add_(1), lambda: a.mul_(3)):
        y = torch.sparse.mm(a, x)
        write()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
