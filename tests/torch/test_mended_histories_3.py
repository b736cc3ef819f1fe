"""More programs about histories, found by test_histories.py, that once differed from torch."""

import pytest
from corners import same_in_torch, short_names
from outcomes import collector, err

pytestmark = pytest.mark.torch


def graph_behind(node, depth):
    """The names of a node and of those behind it."""
    if node is None or not depth:
        return node and node.name()
    return node.name(), [graph_behind(after, depth - 1) for after, _ in node.next_functions]


def chain(tensor, depth):
    return graph_behind(tensor.grad_fn, depth)


def after(tensor):
    return [node and node.name() for node, _ in tensor.grad_fn.next_functions]


def cases(torch):
    found, case = collector()
    names = short_names(torch)
    R = names.R
    functional = torch.nn.functional

    @case("strides of dimensions of size 1 in what is computed")
    def _():
        told = []
        whole = torch.ones(2, 2)
        odd = (
            whole[::2].clone(),
            whole[None].transpose(0, 1),
            torch.ones(6).as_strided((1, 3, 1, 2), (7, 2, 9, 1)),
            torch.ones(6).as_strided((1, 2, 1, 3), (7, 1, 9, 2)),
        )
        for t in odd:
            one, more = torch.ones(t.shape), torch.ones(2, *t.shape)
            made = t.exp(), t**2, t * t, t * one, t * 2, 1 - t, t > 0, t + one[0], t + more, t.clone().sin()
            told.append([each.stride() for each in made])
        return told

    @case("losses of two dtypes")
    def _():
        told = []
        for first, second in ((torch.float64, torch.float32), (torch.float32, torch.float64)):
            x, y = R(2, 2).to(first), (R(2, 2) * 2).to(second)
            for reduction in ("mean", "sum", "none"):
                loss = functional.mse_loss(x, y, reduction=reduction)
                told += [loss, loss.grad_fn.name(), after(loss)]
                told += torch.autograd.grad(loss.sum(), (x, y))
        return told

    @case("what is no tensor is told of when forward is over")
    def _():
        def ended(*marks):
            class Marked(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    for name in marks:
                        getattr(ctx, name)(None if name != "save_for_backward" else 3)
                    ran.append(marks)
                    return x * 1

            return err(lambda: Marked.apply(R(2)))[:60]

        ran = []
        told = [
            ended("mark_dirty"),
            ended("mark_non_differentiable"),
            ended("mark_dirty", "mark_non_differentiable"),
            ended("mark_dirty", "save_for_backward"),
        ]
        return told, ran

    @case("the gradient behind a written view is one, too")
    def _():
        told = []
        for write in (lambda e: e[0].pow_(2), lambda e: (e[0].mul_(2), e[1].sin_()), lambda e: e.t().mul_(e)):
            x = R(2, 2)
            e = x * 3
            write(e)
            (gradient,) = torch.autograd.grad((e * e).sum(), x, create_graph=True)
            told += [chain(gradient, 3), *torch.autograd.grad(gradient.sum(), x)]
        return told

    @case("pieces of a negative or conjugate view")
    def _():
        e = R(2, 2) * 1
        told = []
        for view in (torch._neg_view(e), torch.complex(e, e).conj()):
            for pieces in (torch.unsafe_chunk(view, 2), torch.unsafe_split_with_sizes(view, [1, 1])):
                told += [(t, t.is_neg(), t.is_conj(), t.storage_offset(), chain(t, 1)) for t in pieces]
        return told

    @case("writes into a piece made in inference mode")
    def _():
        whole = torch.ones(2, 2)
        with torch.inference_mode():
            piece = torch.unsafe_split(whole, 1)[0]
            piece.mul_(2)
        return whole, whole._version, piece._version

    @case("elements set to those of a negative or conjugate view")
    def _():
        index = torch.tensor([1, 0])
        x, z = torch.arange(4.0).reshape(2, 2), torch.arange(4.0).reshape(2, 2) * 1j
        x[index] = torch._neg_view(x)
        z[index] = z.conj()
        return x, z

    @case("parts replaced in a view with a history")
    def _():
        e = R(2, 2) * 1
        told = []
        for view in (e[1:], e.t()[1:], e[:, 1:]):
            made = torch.select_scatter(view, torch.zeros(view.shape[1]), 0, 0)
            told += [made, made.stride(), made.storage_offset(), made._version, chain(made, 1)]
        return told

    @case("what holds a constant view")
    def _():
        part, x = torch.ones(2, 2)[:2], R(2, 2)
        product = part * x
        return part._use_count(), product.shape, err(lambda: torch.utils.swap_tensors(part, torch.ones(2)))

    @case("no tensors to swap")
    def _():
        return err(lambda: torch.utils.swap_tensors(R(2), None))

    @case("gradients that are recorded")
    def _():
        told = []
        x, y = R(2, 2), R(2, 2) * 3
        for loss in (
            functional.mse_loss(x, y),
            torch.cdist(x, y).sum(),
            torch.cdist(x[None], y[None]).sum(),
            functional.layer_norm(x, (2,)).sum(),
            functional.batch_norm(x, None, None, training=True).sum(),
            (x @ y).sum(),
            x[None].bmm(y[None]).sum(),
        ):
            (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
            told.append(chain(gradient, 2))
        return told

    @case("batches that are expanded")
    def _():
        sizes = ((2, 4, 2, 3), (4, 3, 2)), ((5, 1, 2, 3), (1, 4, 3, 2)), ((1, 2, 3), (1, 1, 3, 2))
        return [chain(R(*first) @ R(*second), 4) for first, second in sizes]

    @case("the history of a view of what was written, asked for in inference mode")
    def _():
        told = []
        for cut in (False, True):
            e = R(2, 2) * 1
            view = e[:, :1]
            e.mul_(2)
            if cut:
                e.detach_()
            with torch.inference_mode():
                told.append((view.requires_grad, view.grad_fn.name()))
            told += [view.grad_fn.name(), after(view)]
        return told

    @case("of two mistakes that of inference mode comes last")
    def _():
        with torch.inference_mode():
            made = torch.ones(2, 3)
        index = torch.tensor([1, 0])
        return [
            err(lambda: made.__setitem__(index, R(2, 2))),
            err(lambda: torch._foreach_add_([made], [torch.ones(2)])),
        ]

    @case("a tensor of inference mode resized to the size it has")
    def _():
        with torch.inference_mode():
            made = torch.ones(2, 3)
        return made.resize_(2, 3).shape, made.resize_as_(torch.ones(2, 3)).shape, err(lambda: made.resize_(2))

    @case("a mask that does not fit, into a view that may not be written")
    def _():
        with torch.no_grad():
            view = (R(2, 2) * 1)[0]
        return err(lambda: view.masked_scatter_(torch.ones(2, 2, dtype=torch.bool), R(2)))

    return found


test_as_in_torch = same_in_torch(cases)
