"""What torch's suites of autograd, gradcheck and embeddings ask of sparse tensors, as programs of our own."""

import itertools
import re
import warnings

import pytest
import torch as torch_itself
import torch.nn.functional
from outcomes import collector, err, function_of, outcome

import rushlight
import rushlight.nn.functional


def cases(torch):
    found, case = collector()
    F, D, check = torch.nn.functional, torch.float64, torch.autograd.gradcheck
    torch.sparse.check_sparse_tensor_invariants.disable()

    def shown(t):
        if t is None or not t.is_sparse:
            return t
        return t.layout, tuple(t.shape), t._nnz(), t.is_coalesced(), t.to_dense()

    def draw(*size, dtype=D):
        return torch.linspace(0.5, 2, max(torch.Size(size).numel(), 1), dtype=dtype)[
            : torch.Size(size).numel()
        ].reshape(size)

    @case("sparse and dense gradients meet at a leaf in every order")
    def _():
        first = torch.sparse_coo_tensor(torch.tensor([[1, 0, 1]]), draw(3, 3), (3, 3))
        second = torch.sparse_coo_tensor(torch.tensor([[2, 2]]), draw(2, 3), (3, 3))
        dense = draw(3, 3)
        results = []
        for grads in itertools.permutations([first, second, dense], 2):
            x = draw(3, 3).requires_grad_()
            total = 0
            for grad in grads:
                fixed = function_of(torch, lambda ctx, x: x * 1, lambda ctx, g, grad=grad: grad)
                total = total + fixed.apply(x).sum()
            total.backward()
            results.append(shown(x.grad))
        return results

    @case("the grad of a leaf keeps its identity when it is added to in place")
    def _():
        def sparse():
            return torch.sparse_coo_tensor([[0, 1]], [1.5, 2.0], (2,))

        def dense():
            return torch.tensor([1.5, 0.5])

        results = []
        for kept, given, graph in itertools.product((sparse, dense), (sparse, dense), (False, True)):
            x = torch.tensor([1.0, 2.0], requires_grad=True)
            x.grad = kept()
            before = x.grad
            with warnings.catch_warnings():  # of the loop, once in a process: another test may have been told
                warnings.simplefilter("ignore")
                x.backward(given(), create_graph=graph)
            results.append((kept.__name__, given.__name__, graph, x.grad is before, shown(x.grad)))
            x.grad = None
        return results

    @case("gradients that are given are not written to")
    def _():
        leaf = draw(2, 2).requires_grad_()
        picked = leaf.gather(0, torch.tensor([[0, 0]]), sparse_grad=True)
        same = leaf.clone()
        by_same, by_picked = draw(2, 2), draw(1, 2)
        torch.autograd.backward((same, picked), (by_same, by_picked))
        return by_same, by_picked, leaf.grad

    @case("products with a sparse matrix on either side, of odd sizes")
    def _():
        results = []
        for n, m, k in ((1, 2, 1), (2, 3, 4), (3, 1, 2), (2, 3, 0), (0, 3, 2), (2, 0, 3)):
            a, b = draw(n, m) - 1, draw(m, k) - 1
            for make in (
                lambda a, b: (a.to_sparse(), b),
                lambda a, b: (a, b.to_sparse()),
                lambda a, b: (a.relu().to_sparse(), b),
            ):
                left, right = make(a, b)
                left, right = left.detach().requires_grad_(), right.detach().requires_grad_()
                for product in (torch.sparse.mm, torch.mm):

                    def run(product=product, left=left, right=right):
                        left.grad = right.grad = None
                        out = product(left, right)
                        out.sum().backward()
                        return out, shown(left.grad), shown(right.grad)

                    results.append(err(run))
        return results

    @case("values go in and come out again")
    def _():
        results = []
        for sparse, dense, count in itertools.product(([2], [2, 3]), ([], [2], [0]), (0, 1, 4)):
            size = [*sparse, *dense]
            at = torch.stack([torch.arange(count) * 5 % n for n in sparse])
            for dtype in (D, torch.complex128):
                values = draw(count, *dense, dtype=dtype).requires_grad_()

                def both(v, at=at, size=size):
                    made = torch.sparse_coo_tensor(at, v, size)
                    return made.coalesce().values() * 2, made.to_dense()

                results.append(err(check, both, values))
                both(values)[0].abs().sum().backward()
                results.append(values.grad)
        return results

    @case("indices have no gradient")
    def _():
        x = draw(2, 2).to_sparse().requires_grad_()
        y = (x * 2).coalesce()
        return y.indices().requires_grad, y.values().grad_fn.name(), y.indices().grad_fn, err(y.indices().sum)

    @case("a mask lets through what it has")
    def _():
        x = draw(3, 3).requires_grad_()
        mask = torch.eye(3, dtype=D).to_sparse()
        taken = x.sparse_mask(mask)
        (taken.to_dense() * draw(3, 3)).sum().backward()
        return shown(taken.detach()), x.grad

    @case("gather has the gradient of its dense self")
    def _():
        results = []
        samples = (
            (draw(3, 4), 0, [[0, 1, 2, 0], [2, 2, 1, 0]]),
            (draw(3, 4), 1, [[0, 3], [2, 2], [1, 0]]),
            (draw(3, 4), -1, [[0], [2], [1]]),
            (draw(5), 0, 3),
            (draw(), 0, [0]),
            (draw(), 0, 0),
            (draw(2, 2, 2), 1, [[[1, 0]], [[0, 0]]]),
        )
        for x, dim, at in samples:
            grads = []
            for sparse in (False, True):
                leaf = x.clone().requires_grad_()
                out = torch.gather(leaf, dim, torch.tensor(at), sparse_grad=sparse)
                out.backward(draw(*out.shape))
                grads.append(leaf.grad)
            results.append((torch.equal(grads[0], grads[1].to_dense()), shown(grads[1])))
        return results

    @case("gradcheck of a sparse input that is no leaf")
    def _():
        results = []
        for fast, masked in itertools.product((False, True), (False, True)):
            x = draw(2, 3).requires_grad_().to_sparse()
            results.append(err(check, lambda x: x.to_dense(), (x,), masked=masked, fast_mode=fast))
            x = torch.eye(2, dtype=D).requires_grad_().to_sparse()
            results.append(err(check, lambda x: x.to_dense(), (x,), masked=masked, fast_mode=fast))
            results.append(
                err(check, lambda x: x, (x,), masked=masked, fast_mode=fast, raise_exception=False)
            )
        return results

    @case("gradcheck of dense and sparse inputs together")
    def _():
        results = []
        for fast in (False, True):
            a, b = draw(2, 2).requires_grad_(), draw(2, 2).to_sparse().requires_grad_()
            f = lambda a, b: a * b.coalesce().to_dense()
            results.append(check(f, (a, b), masked=True, fast_mode=fast))
        return results

    @case("gradcheck finds gradients that are not multiples, or of another layout")
    def _():
        results = []
        hooks = (
            lambda g: g.to_dense().to_sparse(1),
            lambda g: g,
            lambda g: (g.to_dense() + 1e-9).to_sparse(),
            lambda g: (g.to_dense() + 1).to_sparse(),
            lambda g: g * 2,
        )
        for hook, fast in itertools.product(hooks, (False, True)):
            x = torch.ones(2, 2, dtype=D).to_sparse().requires_grad_()

            def hooked(x, hook=hook):
                y = x.clone()
                y.register_hook(hook)
                return y.to_dense(masked_grad=False)

            results.append(err(check, hooked, (x,), masked=False, fast_mode=fast))
            results.append(err(check, hooked, (x,), masked=False, fast_mode=fast, raise_exception=False))
        return results

    @case("gradcheck cannot batch sparse gradients")
    def _():
        results = []
        for fast in (False, True):
            x = draw(3).requires_grad_().to_sparse()
            options = {"masked": True, "check_batched_grad": True, "fast_mode": fast}
            try:
                check(lambda x: x.to_dense(), (x,), **options)
            except RuntimeError as error:
                said = "gradcheck or gradgradcheck failed while testing batched gradient computation"
                results.append((type(error).__name__, said in str(error)))
            results.append(check(lambda x: x.to_dense(), (x,), raise_exception=False, **options))
        return results

    @case("data of another layout")
    def _():
        x, s = draw(1, 2), torch.sparse_coo_tensor([[0]], [1.0], (1,))

        def exchange(a, b):
            a.data = b

        return err(exchange, x, s), err(exchange, s, x), err(exchange, s, s), s.is_sparse

    @case("embeddings without rows, columns or indices")
    def _():
        results = []
        for rows, columns, at in ((0, 0, []), (10, 0, [0]), (10, 0, [0, 3, 3]), (4, 2, [])):
            layer = torch.nn.Embedding(rows, columns, sparse=True)
            layer(torch.tensor(at, dtype=torch.int64)).sum().backward()
            results.append(shown(layer.weight.grad))
        return results

    @case("an embedding's dense and sparse gradients are one")
    def _():
        results = []
        for padding, dtype in itertools.product((None, 2, -1), (torch.int32, torch.int64)):
            grads = []
            for sparse in (False, True):
                w = draw(4, 3).requires_grad_()
                out = F.embedding(torch.tensor([[1, 2], [3, 1]], dtype=dtype), w, padding, sparse=sparse)
                (out * draw(2, 2, 3)).sum().backward()
                grads.append(w.grad)
            results.append((torch.equal(grads[0], grads[1].to_dense()), shown(grads[1])))
        return results

    @case("a bag's dense and sparse gradients are one")
    def _():
        results = []
        flat, starts = torch.tensor([3, 1, 1, 0, 2, 1]), torch.tensor([0, 2, 2])
        for mode, padding, weighted in (
            ("sum", None, False), ("mean", None, False), ("sum", 1, False), ("mean", 1, False),
            ("sum", None, True),
        ):  # fmt: skip
            grads = []
            for sparse in (False, True):
                w, by = draw(4, 2).requires_grad_(), draw(6).requires_grad_() if weighted else None
                out = F.embedding_bag(
                    flat, w, starts, mode=mode, sparse=sparse, padding_idx=padding, per_sample_weights=by
                )
                (out * draw(3, 2)).sum().backward()
                grads.append((w.grad, None if by is None else by.grad))
            results.append((torch.allclose(grads[0][0], grads[1][0].to_dense()), shown(grads[1][0])))
            results.append([None if g is None else g.tolist() for _, g in grads])
        return results

    @case("half precision")
    def _():
        layer = torch.nn.Embedding(4, 2, sparse=True)
        with torch.no_grad():
            layer.weight.copy_(draw(4, 2))
        layer.half()
        layer(torch.tensor([1, 3, 1])).sum().backward()
        before = shown(layer.weight.grad), layer.weight.grad.dtype
        layer.float()
        return before, shown(layer.weight.grad), layer.weight.grad.dtype

    @case("a sparse gradient survives a move of its module")
    def _():
        layer = torch.nn.Embedding(4, 2, sparse=True, dtype=D)
        layer(torch.tensor([1, 3, 1])).sum().backward()
        layer.to(torch.float32).to("cpu")
        return shown(layer.weight.grad), layer.weight.grad.dtype

    return found


OURS, THEIRS = cases(rushlight), cases(torch_itself)


@pytest.mark.parametrize("name", THEIRS)
def test_same(name):
    def said(found):
        return [re.sub(r"rushlight", "torch", text) for text in outcome(found[name])]

    torch_itself.manual_seed(0)
    theirs = said(THEIRS)
    rushlight.manual_seed(0)
    assert said(OURS) == theirs
