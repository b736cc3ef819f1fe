"""More programs about histories, found by test_histories.py, that once differed from torch."""

import warnings

import pytest
from corners import same_in_torch, short_names
from outcomes import collector, err

pytestmark = pytest.mark.torch


def chain(tensor, steps=3):
    """The names of the nodes behind a tensor, along the first edges."""
    names, node = [], tensor.grad_fn
    while node is not None and len(names) < steps:
        names.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return names


def after(tensor):
    return [node and node.name() for node, _ in tensor.grad_fn.next_functions]


def warned_of(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        told = err(function)
    return [str(warning.message)[:40] for warning in caught], told


def cases(torch):
    found, case = collector()
    names = short_names(torch)
    R = names.R
    functional, graph = torch.nn.functional, torch.autograd.graph
    index, mask = torch.tensor([1, 0]), torch.tensor([[True, False], [False, True]])

    class Sub(torch.Tensor):
        pass

    @case("hooks on several tensors, of which one is the only root")
    def _():
        x, w = R(2), R(2)
        y = x * w
        told = []
        graph.register_multi_grad_hook((x, y), lambda grads: told.append(len(grads)))
        y.sum().backward(retain_graph=True)
        before = len(told)
        y.backward(torch.ones(2), retain_graph=True)  # the root is not counted, so never are all there
        torch.autograd.backward([y, x], [torch.ones(2), torch.ones(2)])
        return before, len(told)

    @case("hooks on several tensors in inference mode")
    def _():
        with torch.inference_mode():
            return [
                err(lambda t=t: graph.register_multi_grad_hook(t, print))
                for t in ((R(2), torch.ones(2)), (torch.ones(2), R(2)))
            ]

    @case("what a class of tensors computes by a composed function")
    def _():
        x = R(2, 2)
        sub = torch.Tensor.as_subclass(x, Sub)
        results = [
            sub.diag(), sub.logsumexp(0), torch.slice_scatter(sub, sub[:1], 0, 1, 2), torch._neg_view(sub),
            functional.smooth_l1_loss(sub, x), torch.diag_embed(sub), sub.t().reshape(-1),
        ]  # fmt: skip
        return [(type(t).__name__, chain(t, 2)) for t in results]

    @case("None for a tensor")
    def _():
        return err(lambda: torch._neg_view(None)), err(lambda: torch.Tensor.as_subclass(None, Sub))

    @case("a batched product of two dtypes and too few dimensions")
    def _():
        x = torch.ones(1, 2, 2)
        return [err(lambda y=y: torch.baddbmm(x, y, x)) for y in (x[0].int(), x.int(), x[0])]

    @case("writes by index into expanded tensors")
    def _():
        told = []
        for start in (lambda: torch.ones(2, 2), lambda: R(2, 2) * 1, lambda: R(2, 2)):
            for write in (
                lambda t: t.__setitem__(mask, 0.5),
                lambda t: t.__setitem__(mask, torch.ones(1)),
                lambda t: t.__setitem__(mask, torch.ones(2, 2)),
                lambda t: t.__setitem__(index, 0.5),
                lambda t: t.masked_fill_(mask, 0.5),
                lambda t: t.index_fill_(0, index, 0.5),
                lambda t: t.index_put_((index,), torch.ones(2, 2)),
            ):
                t = start().expand(2, 2, 2)
                told.append(warned_of(lambda write=write, t=t: write(t) and None))
        return told

    @case("a copy with a part replaced is one node, however it lies and whatever dtype the part has")
    def _():
        x, w = R(3, 3), R(3)
        made = [
            torch.select_scatter(x.diagonal(), w[0], 0, 0),
            torch.slice_scatter(x, w.double()[None], 0, 1, 2),
            torch.slice_scatter(x.as_strided((2, 2), (1, 1)), x[:1, 1:], 0, 1, 2),
            torch.select_scatter(x.expand(2, 3, 3), x.exp(), 0, 1),
        ]
        grads = [torch.autograd.grad(t.sin().sum(), [x, w], allow_unused=True) for t in made]
        return [(t.grad_fn.name(), after(t), t.stride(), t.detach()) for t in made], grads

    @case("a part that requires grad in a copy of integers")
    def _():
        x = torch.ones(2, 2, dtype=torch.int64)
        return err(lambda: torch.select_scatter(x, R(2), 0, 0)), err(
            lambda: torch.select_scatter(x, R(3), 0, 0)
        )

    @case("the bytes of a tensor in inference mode")
    def _():
        with torch.inference_mode():
            views = [torch.ones(2).view(torch.int32), R(2).view(torch.int32), R(2)[:1], torch.ones(2)]
        views.append(views[-1].view(torch.int32))
        return [v.is_inference() for v in views], err(lambda: views[1].add_(1))

    @case("what is wrong with a write is said before that the tensor is from inference mode")
    def _():
        with torch.inference_mode():
            x, flags = torch.ones(2), torch.ones(2, 2) > 0
        return [
            err(f)
            for f in (
                lambda: x.tril_(),
                lambda: flags.addmm_(R(2, 2), R(2, 2)),
                lambda: x.add_(torch.ones(3)),
                lambda: x.add_(1),
            )
        ]

    def move(tensor, to):
        tensor.data = to.data
        return tensor

    def moved(how):
        x, w = R(2, 2), R(2, 2)
        e = x * w
        view, other = e[0], e.t()
        how(e, view, w)
        told = [(chain(t), t._version, t.detach()) for t in (e, view, other)]
        return told, [err(lambda t=t: torch.autograd.grad(t.sum(), x, retain_graph=True)) for t in (e, view)]

    for name, how in {
        "set_ of a base": lambda e, view, w: e.set_(w.detach()),
        "set_ of a view": lambda e, view, w: view.set_(w.detach()),
        "set_ of a view to a part": lambda e, view, w: view.set_(w.detach()[1]),
        "set_ and a write": lambda e, view, w: e.set_(w.detach()).add_(1),
        "set_ to nothing": lambda e, view, w: e.set_(),
        "a write and other memory": lambda e, view, w: e.add_(1) is move(view, w),
        "other memory of a view and a write": lambda e, view, w: move(view, w) is e.mul_(3),
        "other memory of a base and a write": lambda e, view, w: move(e, w).mul_(3),
        "a write into a view with other memory": lambda e, view, w: move(view, w).mul_(3),
        "other memory, smaller": lambda e, view, w: move(e, w[0, :1]).mul_(3),
    }.items():
        case(name)(lambda how=how: moved(how))

    @case("set_ to what requires grad")
    def _():
        c, w = torch.zeros(2), R(2)
        c.set_(w)
        part = torch.zeros(2, 2)
        part[0].set_(w * 1)
        return chain(c), after(c), chain(part), after(part)

    @case("views that strides do not tell, when their base is written")
    def _():
        told = []
        for make in (
            lambda e: torch._neg_view(e),
            lambda e: torch._neg_view(e[None]),
            lambda e: torch._neg_view(e.t())[0],
            lambda e: torch.view_as_complex(e),
            lambda e: torch.view_as_complex(e[1:]),
            lambda e: torch.view_as_complex(e).conj(),
            lambda e: torch.view_as_complex(e).conj().imag,
        ):
            x = R(2, 2)
            e = x * 2
            view = make(e)
            e.mul_(x)
            (grad,) = torch.autograd.grad(view.abs().sum(), x, retain_graph=True)
            told.append((chain(view), grad + 0.0))
            view.zero_()
            told.append((chain(view), chain(e)))
        return told

    @case("views of original operations")
    def _():
        force = torch.autograd._force_original_view_tracking
        x, c = R(2, 2), torch.ones(2, 2)
        e = x * 1
        before = e[..., -1]
        with force(True):
            inside, further, plain = e[:, 1:], before.narrow(0, 0, 1), c.narrow(0, 0, 1)
        outside = inside.squeeze(1)
        with force(True):
            e.mul_(2)
            c.mul_(x)
        told = [chain(t) for t in (before, inside, further, plain, outside)]
        (grad,) = torch.autograd.grad(sum(t.sum() for t in (before, inside, further, plain, outside)), x)
        return told, grad

    @case("a view from no_grad, asked there for its history")
    def _():
        x = R(2, 2)
        with torch.no_grad():
            view = x[0]
            x.add_(1)
            return err(lambda: view.grad_fn), err(lambda: view.is_leaf), (view * 2).tolist()

    @case("retained gradients are copies, also in a graph")
    def _():
        told = []
        for create_graph in (False, True):
            for given in (False, True):
                for f in (
                    lambda t, x: t.sum(),
                    lambda t, x: (t * t).sum(),
                    lambda t, x: t[0].sum() * x.sum(),
                ):
                    x = R(2, 2)
                    t = (x * 2).t()
                    if not given:
                        t.retain_grad()
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        for _ in range(2):
                            f(t, x).backward(
                                inputs=[t] if given else None, create_graph=create_graph, retain_graph=True
                            )
                            told.append(
                                (t.grad.stride(), t.grad.grad_fn and chain(t.grad, 1), t.grad.detach())
                            )
        return told

    @case("the gradients of sine and cosine in a graph")
    def _():
        x = R(2)
        grads = [torch.autograd.grad(f(x).sum(), x, create_graph=True)[0] for f in (torch.sin, torch.cos)]
        return [after(g) for g in grads], [torch.autograd.grad(g.sum(), x) for g in grads]

    @case("the dtype of a gradient that there is not going to be")
    def _():
        x = R(2) * 1
        return warned_of(lambda: setattr(x, "grad_dtype", None))

    @case("triangles of expanded tensors are written once")
    def _():
        t = torch.ones(1).expand(2, 2)
        return t.tril_()._version, t.triu_()._version

    @case("pairs in a dimension of one")
    def _():
        t = torch.arange(20.0)
        return [
            err(lambda s=s: torch.view_as_complex(t.as_strided(*s)).stride())
            for s in (((1, 2), (1, 1)), ((1, 2), (3, 1)), ((2, 2), (3, 1)), ((1, 1, 2), (1, 2, 1)))
        ]

    @case("writes from the negative of the same memory")
    def _():
        t = torch.arange(4.0).reshape(2, 2)
        t.index_add_(0, index, torch._neg_view(t))
        t.scatter_add_(0, torch.tensor([[1, 0], [0, 1]]), torch._neg_view(t))
        return t

    @case("resizing a view from inference mode")
    def _():
        x = R(2, 2)
        with torch.inference_mode():
            view = x.unfold(0, 2, 1)
        return err(lambda: view.resize_(4))

    @case("what is refused of set_ changes nothing")
    def _():
        x, c, w = R(2, 2), torch.zeros(2), R(2)
        part = (x * 1).split(1)[0]
        graph.increment_version(part)
        small = torch.ones(1).untyped_storage()
        return err(lambda: c.set_(part)), c, err(lambda: w.set_(small, 0, (9,), (1,))), w

    @case("set_ to a view of itself")
    def _():
        t = torch.outer(R(2), R(2))
        t.set_(t[0])
        e = R(4) * 1
        view = e.unflatten(0, (2, -1))
        view.set_(view)
        return after(t), after(e), t.shape

    @case("a stale part of several may be asked to require grad, and not to keep its gradient")
    def _():
        part = R(2, 2).unbind(-1)[1]
        graph.increment_version(part)
        with torch.no_grad():
            return part.requires_grad_() is part, err(part.retain_grad)

    @case("one element for many, of the same memory")
    def _():
        x = R(2, 2)
        e = x * 1
        e[0] = e[0][1]
        part = e.detach().clone()
        part[...] = part[1, 0]
        (grad,) = torch.autograd.grad(e.exp().sum(), x, retain_graph=True)
        return after(e), e.detach(), grad, part

    @case("mistakes in writes by index into tensors of inference mode")
    def _():
        with torch.inference_mode():
            q = torch.ones(2)
        return [
            err(f)
            for f in (
                lambda: q.index_add_(0, index, torch.ones(2, 2)),
                lambda: q.scatter_(0, torch.tensor([[5]]), 1.0),
                lambda: q.swapaxes_(0, 1),
                lambda: q.t_(),
                lambda: q.squeeze_(5),
            )
        ]

    @case("an expanded tensor written from itself, and a mask of another size for another dtype")
    def _():
        t = torch.ones(2, 2).expand(2, 2, 2)
        return [
            err(f)
            for f in (
                lambda: t.index_copy_(0, index, t),
                lambda: t.index_add_(0, index, t),
                lambda: torch.tensor(3).masked_scatter_(mask, R(2, 2)),
                lambda: torch.tensor(3.0).masked_scatter_(mask, R(2, 2)),
            )
        ]

    @case("a loss of integers")
    def _():
        x = R(2)
        losses = [functional.mse_loss(torch.full((2,), 5), x), functional.mse_loss(torch.tensor(3), x)]
        return [(t.grad_fn.name(), after(t), torch.autograd.grad(t, x)) for t in losses]

    @case("a running sum in the place of distances")
    def _():
        far = torch.cdist(R(2, 2), torch.ones(2, 2))
        return chain(far.cumsum_(0), 2)

    @case("gradcheck leaves no gradient behind")
    def _():
        x = torch.ones(2, dtype=torch.float64, requires_grad=True) * 1
        return torch.autograd.gradcheck(torch.sin, x), x.retains_grad

    @case("writes into a view that has not been asked for the history of its base")
    def _():
        told = []
        for write in (
            lambda t: t.index_fill_(0, index, 0.0),
            lambda t: t.zero_(),
            lambda t: t.masked_fill_(mask, 1.0),
            lambda t: t.clamp_(0, 1),
            lambda t: t.t_(),
            lambda t: t.fill_diagonal_(1.0),
            lambda t: t.mul_(2),
        ):
            c = torch.zeros(2, 2)
            view = c.movedim(0, -1)
            c.copy_(R(2, 2))
            told.append((err(lambda v=view, w=write: w(v) is v), chain(c), c.detach().clone()))
        return told

    @case("a diagonal that is filled is a view")
    def _():
        x = R(2, 2)
        e = x * 1
        e.fill_diagonal_(3.0)
        cube = R(2, 2, 2) * 1
        cube.fill_diagonal_(3.0)
        (grad,) = torch.autograd.grad(e.exp().sum(), x)
        return chain(e), e._version, grad, chain(cube), cube.detach(), err(lambda: x.fill_diagonal_(1.0))

    @case("pieces in inference mode")
    def _():
        x = R(2, 2)
        with torch.inference_mode():
            pieces = [
                torch.unsafe_chunk(x, 2)[0],
                torch.unsafe_split(x * 1, 1)[0],
                torch.unsafe_split_with_sizes(x.detach(), [1, 1])[0],
            ]
        return [(t.requires_grad, None if t._base is None else t._base.shape) for t in pieces]

    @case("how often views that convert hold their base")
    def _():
        told = []
        for make in (
            torch._neg_view,
            lambda c: torch._neg_view(torch._neg_view(c))[0],
            torch.view_as_complex,
            lambda c: torch.view_as_complex(c).imag,
            lambda c: c.t(),
        ):
            for wanted in (False, True):
                c = torch.ones(2, 2, requires_grad=wanted)
                view = make(c)
                told.append(c._use_count())
                del view
                told.append(c._use_count())
        return told

    @case("the rows of a Jacobian without elements")
    def _():
        jacobian = torch.autograd.functional.jacobian
        return (
            err(lambda: jacobian(lambda q: q * q, torch.ones(0))),
            err(lambda: jacobian(lambda q: q[:0], torch.ones(2))),
            jacobian(lambda q: torch.ones(2) * q.sum(), torch.ones(0)),
        )

    @case("a write into a part of what is read, and a bias of one number")
    def _():
        c = torch.ones(2, 2)
        v = R(3)
        out = functional.linear(v, v, v[0])
        return err(lambda: c[0].copy_(c)), err(lambda: c[0].copy_(torch.ones(2, 2))), out._version, chain(out)

    @case("the dictionary of hooks of a tensor that is written")
    def _():
        told = []
        for write in (
            lambda z, v: z.mul_(2),
            lambda z, v: z.copy_(torch.ones(2, 2)),
            lambda z, v: z.clamp_(0, 1),
            lambda z, v: v.mul_(2),
            lambda z, v: z.detach().mul_(2),
        ):
            z = R(2, 2) * 1
            view, ran = z[0], []
            z.register_hook(lambda g, ran=ran: ran.append("before"))
            view.register_hook(lambda g, ran=ran: ran.append("view"))
            write(z, view)
            told.append([None if t._backward_hooks is None else len(t._backward_hooks) for t in (z, view)])
            z.register_hook(lambda g, ran=ran: ran.append("after"))
            z.sum().backward()
            told.append((len(z._backward_hooks), ran))
        return told

    @case("the total weight that hooks give back is divided by")
    def _():
        told = []
        for size, weight in (((4, 3), None), ((2, 3, 5), torch.tensor([1.0, 2.0, 3.0]))):
            x = R(*size)
            target = torch.zeros(size[0], *size[2:], dtype=torch.int64)
            with graph.saved_tensors_hooks(lambda v: v, lambda v: v * 2 if v.shape == () else v):
                loss = functional.nll_loss(x, target, weight)
            told += [loss, *torch.autograd.grad(loss, x, retain_graph=True)]
            told += torch.autograd.grad(loss, x, create_graph=True)
        return told

    @case("parts replaced in what does not begin where its memory does")
    def _():
        told = []
        whole = torch.arange(24.0).reshape(4, 6)
        for part in (whole[2:], whole[1:, ::2], whole.t()[1:]):
            made = [
                torch.as_strided_scatter(part, -torch.ones(2, 2), (2, 2), (3, 1), offset)
                for offset in (None, 0, 3)
            ]
            made += [
                torch.slice_scatter(part, -part[:1], 0, 1, 2),
                torch.select_scatter(part, -part[0], 0, 0),
            ]
            told += [(t, t.stride(), t.storage_offset(), t._version, t._base is None) for t in made]
        return told

    @case("parts replaced while views are written down")
    def _():
        e = R(2, 2) * 1
        with torch.autograd._force_original_view_tracking(True):
            made = torch.select_scatter(e, e[0], 0, 0), torch.slice_scatter(e, e[:1], 0, 1, 2)
        return [(t._version, chain(t, 1)) for t in made]

    @case("memory of another dtype")
    def _():
        with torch.inference_mode():
            made_there = torch.ones(2)
        kinds = (R(2), R(2) * 1, made_there)
        return [err(lambda t=t: t.set_(torch.ones(2, dtype=torch.complex64))) for t in kinds]

    @case("the dtype of the gradient of what is no leaf")
    def _():
        e = R(2) * 1
        e.retain_grad()
        e.sum().backward()
        other = R(2) * 1
        return [err(lambda t=t: setattr(t, "grad_dtype", torch.float64)) for t in (e, other)]

    return found


test_as_in_torch = same_in_torch(cases)
