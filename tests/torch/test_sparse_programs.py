"""Programs as they are written with sparse tensors: recommenders, graph networks, Laplacians. Both agree."""

import pytest
import torch as torch_itself
import torch.nn.functional
from outcomes import collector

import rushlight
import rushlight.nn.functional


def cases(torch):
    found, case = collector()
    F, nn, optim, D = torch.nn.functional, torch.nn, torch.optim, torch.float64

    def fill(module):
        """Parameters that do not depend on how a library draws."""
        with torch.no_grad():
            for i, p in enumerate(module.parameters()):
                p.copy_(torch.linspace(-1, 1, p.numel(), dtype=p.dtype).reshape(p.shape) / (i + 1))
        return module

    EDGES = torch.tensor([[0, 1, 1, 2, 3, 3, 4, 0], [1, 0, 2, 1, 4, 0, 3, 3]])

    def adjacency(values=None, n=5):
        values = torch.ones(EDGES.shape[1], dtype=D) if values is None else values
        return torch.sparse_coo_tensor(EDGES, values, (n, n)).coalesce()

    @case("bags of words, one optimiser for sparse and one for dense parameters")
    def _():
        words = fill(nn.EmbeddingBag(12, 4, sparse=True, mode="mean", dtype=D))
        head = fill(nn.Linear(4, 2, dtype=D))
        rare, often = optim.SparseAdam(words.parameters(), lr=0.1), optim.Adam(head.parameters(), lr=0.1)
        text, starts = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([0, 3, 5])
        losses = []
        for _ in range(6):
            rare.zero_grad()
            often.zero_grad()
            loss = F.cross_entropy(head(words(text, starts)), torch.tensor([0, 1, 0]))
            loss.backward()
            rare.step()
            often.step()
            losses.append(loss.item())
        moved = (words.weight.detach() != fill(nn.EmbeddingBag(12, 4, dtype=D)).weight.detach()).any(1)
        return losses, moved.nonzero().flatten().tolist(), words.weight.grad._nnz(), head.weight

    @case("matrix factorisation")
    def _():
        results = []
        for make in (
            lambda p: optim.SGD(p, lr=0.5),
            lambda p: optim.SGD(p, lr=0.2, momentum=0.9),
            lambda p: optim.Adagrad(p, lr=0.3),
            lambda p: optim.SparseAdam(list(p), lr=0.1),
        ):
            users = fill(nn.Embedding(6, 3, sparse=True, dtype=D))
            items = fill(nn.Embedding(5, 3, sparse=True, dtype=D))
            both = nn.ModuleList([users, items])
            optimiser = make(both.parameters())
            u, i = torch.tensor([0, 1, 1, 4, 5, 0]), torch.tensor([2, 2, 3, 0, 4, 1])
            rating = torch.tensor([1.0, 0.0, 2.0, 1.0, 0.5, 1.0], dtype=D)
            for _ in range(5):
                optimiser.zero_grad()
                loss = ((users(u) * items(i)).sum(1) - rating).square().mean()
                loss.backward()
                optimiser.step()
            results.append((loss.item(), users.weight, shapes(optimiser.state_dict())))
        return results

    def shapes(state):
        return {
            name: {k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in one.items()}
            for name, one in state["state"].items()
        }

    @case("words and their neighbours, with negative samples and padding")
    def _():
        centre = fill(nn.Embedding(8, 3, sparse=True, padding_idx=0, dtype=D))
        context = fill(nn.Embedding(8, 3, sparse=True, padding_idx=0, dtype=D))
        optimiser = optim.SparseAdam([*centre.parameters(), *context.parameters()], lr=0.05)
        c, near = torch.tensor([1, 3, 5]), torch.tensor([[2, 0], [4, 1], [6, 7]])
        far = torch.tensor([[5, 6, 7], [1, 0, 2], [2, 3, 3]])
        losses = []
        for _ in range(4):
            optimiser.zero_grad()
            v = centre(c).unsqueeze(2)
            good = torch.bmm(context(near), v).squeeze(2)
            bad = torch.bmm(context(far), v).squeeze(2)
            loss = -(F.logsigmoid(good).sum() + F.logsigmoid(-bad).sum())
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses, centre.weight, context.weight.grad.coalesce().indices()

    @case("a graph network of two layers")
    def _():
        a = adjacency() + torch.sparse_coo_tensor(
            torch.arange(5).expand(2, 5), torch.ones(5, dtype=D), (5, 5)
        )
        a = a.coalesce()
        degree = torch.sparse.sum(a, 1).to_dense()
        scale = degree.pow(-0.5)
        row, col = a.indices()
        a = torch.sparse_coo_tensor(a.indices(), a.values() * scale[row] * scale[col], a.shape)
        first, second = fill(nn.Linear(3, 4, dtype=D)), fill(nn.Linear(4, 2, dtype=D))
        x = torch.linspace(-1, 1, 15, dtype=D).reshape(5, 3)
        optimiser = optim.Adam([*first.parameters(), *second.parameters()], lr=0.05)
        losses = []
        for _ in range(5):
            optimiser.zero_grad()
            h = torch.sparse.mm(a, first(x)).relu()
            out = torch.sparse.mm(a, second(h))
            loss = F.cross_entropy(out[[0, 3]], torch.tensor([0, 1]))
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses, out, first.weight.grad

    @case("learned weights of edges")
    def _():
        w = torch.linspace(0.5, 2, 8, dtype=D).requires_grad_()
        x = torch.linspace(-1, 1, 10, dtype=D).reshape(5, 2).requires_grad_()
        out = torch.sparse.mm(adjacency(w.exp()), torch.tanh(torch.sparse.mm(adjacency(w), x)))
        out.square().sum().backward()
        return out, w.grad, x.grad

    @case("attention along edges")
    def _():
        x = torch.linspace(-1, 1, 10, dtype=D).reshape(5, 2).requires_grad_()
        score = (x[EDGES[0]] * x[EDGES[1]]).sum(1)
        weights = torch.sparse.softmax(torch.sparse_coo_tensor(EDGES, score, (5, 5)), dim=1)
        out = torch.sparse.mm(weights, x)
        out.square().sum().backward()
        return out, weights.detach().to_dense(), x.grad

    @case("a smooth signal on a graph")
    def _():
        a = adjacency()
        a = (a + a.t()).coalesce()
        degree = torch.sparse.sum(a, 1).to_dense()
        diagonal = torch.sparse_coo_tensor(torch.arange(5).expand(2, 5), degree, (5, 5))
        laplacian = (diagonal - a).coalesce()
        x = torch.linspace(-1, 1, 5, dtype=D).requires_grad_()
        known = x.detach().clone()
        for _ in range(4):
            energy = x @ torch.mv(laplacian, x) + (x - known).square().sum()
            (slope,) = torch.autograd.grad(energy, x)
            x = (x - 0.1 * slope).detach().requires_grad_()
        return energy, x, laplacian.to_dense().sum(0), laplacian._nnz()

    @case("how important pages are")
    def _():
        a = adjacency().t().coalesce()
        out = torch.sparse.sum(a, 0).to_dense().clamp(min=1)
        m = torch.sparse_coo_tensor(a.indices(), a.values() / out[a.indices()[1]], a.shape)
        rank = torch.full((5, 1), 0.2, dtype=D)
        for _ in range(10):
            rank = 0.15 / 5 + 0.85 * torch.sparse.mm(m, rank)
        return rank.squeeze(1)

    @case("collaborative filtering over several hops")
    def _():
        u, i = torch.tensor([0, 0, 1, 2, 3]), torch.tensor([0, 1, 1, 2, 0])
        edges = torch.stack([torch.cat([u, i + 4]), torch.cat([i + 4, u])])
        a = torch.sparse_coo_tensor(edges, torch.ones(10, dtype=D), (7, 7)).coalesce()
        scale = torch.sparse.sum(a, 0).to_dense().pow(-0.5)
        r, c = a.indices()
        a = torch.sparse_coo_tensor(a.indices(), scale[r] * a.values() * scale[c], a.shape).coalesce()
        table = fill(nn.Embedding(7, 3, dtype=D))
        optimiser = optim.Adam(table.parameters(), lr=0.1)
        losses = []
        for _ in range(4):
            layers = [table.weight]
            for _ in range(2):
                layers.append(torch.sparse.mm(a, layers[-1]))
            people, things = torch.stack(layers).mean(0).split([4, 3])
            good, bad = (people[u] * things[i]).sum(1), (people[u] * things[(i + 1) % 3]).sum(1)
            loss = -F.logsigmoid(good - bad).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses, table.weight

    @case("wide and deep, saved and taken up again")
    def _():
        import io

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.wide = nn.EmbeddingBag(10, 1, mode="sum", sparse=True, dtype=D)
                self.deep = nn.Embedding(10, 3, sparse=True, dtype=D)
                self.top = nn.Linear(6, 1, dtype=D)

            def forward(self, x):
                return (self.wide(x) + self.top(self.deep(x).flatten(1))).squeeze(1)

        def parts(model):
            tables = [*model.wide.parameters(), *model.deep.parameters()]
            return optim.SparseAdam(tables, lr=0.05), optim.SGD(model.top.parameters(), lr=0.1)

        def train(model, optimisers, steps):
            x, y = torch.tensor([[1, 2], [3, 4], [1, 4]]), torch.tensor([1.0, 0.0, 1.0], dtype=D)
            for _ in range(steps):
                for o in optimisers:
                    o.zero_grad()
                loss = F.binary_cross_entropy_with_logits(model(x), y)
                loss.backward()
                for o in optimisers:
                    o.step()
            return loss.item()

        one = fill(Model())
        optimisers = parts(one)
        train(one, optimisers, 3)
        file = io.BytesIO()
        torch.save([one.state_dict(), *(o.state_dict() for o in optimisers)], file)
        file.seek(0)
        model, *states = torch.load(file)
        other = Model()
        other.load_state_dict(model)
        others = parts(other)
        for o, state in zip(others, states, strict=True):
            o.load_state_dict(state)
        return train(one, optimisers, 2) == train(other, others, 2), list(other.parameters())

    return found


def rounded(value, torch):
    if isinstance(value, torch.Tensor):
        return rounded(value.detach().tolist(), torch)
    if isinstance(value, (list, tuple)):
        return [rounded(one, torch) for one in value]
    return round(value, 8) + 0.0 if isinstance(value, float) else value


OURS, THEIRS = cases(rushlight), cases(torch_itself)


@pytest.mark.parametrize("name", THEIRS)
@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_same(name):
    theirs = rounded(THEIRS[name](), torch_itself)
    assert rounded(OURS[name](), rushlight) == theirs
