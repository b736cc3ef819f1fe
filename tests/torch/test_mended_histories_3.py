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

    @case("an output that requires grad is resized where nothing is recorded")
    def _():
        x, y, z = R(2, 2), R(3), R(2)
        with torch.no_grad():
            view = x[:1]
            torch.sin(torch.ones(8), out=y)
            torch.cat([torch.ones(2), torch.zeros(2)], out=z)
            torch.mm(torch.ones(1, 2), torch.ones(2, 3), out=view)
        refused = err(lambda: torch.sin(torch.ones(5), out=y)), err(lambda: y.resize_(3))
        return y, y.is_leaf, y._version, z, z._version, view.detach(), view._version, refused

    @case("sums and products by a number in the gradients that are recorded")
    def _():
        told = []
        for function in ("sqrt", "log10", "log1p", "atan", "exp2", "norm", "expm1"):
            x = R(2, 2)
            (grad,) = torch.autograd.grad(getattr(x, function)().sum(), x, create_graph=True)
            told.append(chain(grad, 3))
        x = R(2)
        (grad,) = torch.autograd.grad((2**x).sum(), x, create_graph=True)
        hooked = R(2)
        hooked.register_hook(lambda g: 3 * g)  # a user's products keep their names
        (other,) = torch.autograd.grad((hooked * hooked).sum(), hooked, create_graph=True)
        return told, chain(grad, 3), chain(other, 1)

    @case("the layout of a batch norm")
    def _():
        told = []
        memory = torch.arange(64.0).requires_grad_()
        for size, strides in (
            ((2, 1), (1, 2)),
            ((1, 2, 2), (2, 1, 2)),
            ((2, 3, 2), (6, 1, 3)),
            ((2, 1, 2), (2, 4, 1)),
            ((2, 2, 2, 2), (16, 2, 8, 4)),
            ((2, 1, 2, 2), (4, 8, 2, 1)),
            ((2, 3, 2, 2), (12, 1, 6, 3)),
        ):
            x = memory.as_strided(size, strides)
            out = functional.batch_norm(x, None, None, training=True)
            told += [out, out.stride()]
            if len(size) < 4:
                (grad,) = torch.autograd.grad((out * out * x).sum(), x)
                told += [grad, grad.stride()]
        return told

    @case("a tensor without a gradient that fills a part")
    def _():
        told = []
        mask, index = torch.tensor([True, False]), torch.tensor([1])
        value = torch.tensor(2.0)
        for fill in (
            lambda t: t.masked_fill_(mask, value),
            lambda t: t.masked_fill_(mask, 2.0),
            lambda t: t.index_fill_(0, index, value),
            lambda t: t.index_fill_(0, index, 2.0),
            lambda t: t.fill_(value),
            lambda t: t.fill_(2.0),
        ):
            whole, part = R(2, 2).tanh(), R(2, 2).tanh()
            fill(whole[0])
            told += [chain(whole, 2), chain(fill(part), 2)]
        return told

    @case("views that may not be written any more, as whole numbers")
    def _():
        x = R(2, 2) * 1
        piece, line = x.chunk(2)[0], x.unbind(0)[1]
        x.mul_(2)
        whole = piece.long(), line.bool(), piece.to(torch.int8), line.type(torch.int16), piece.int()
        return whole, err(lambda: piece.double()), err(lambda: line.sin())

    @case("an input returned as it is, with odd strides")
    def _():
        class Same(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def backward(ctx, g):
                return g

        x = R(2, 2)
        views = x[::2], x.t()[:1], x[:, ::2], x[None].transpose(0, 1)
        return [Same.apply(view).stride() for view in views]

    @case("what is computed of a view that was made without recording")
    def _():
        x, batch = R(2, 2), R(1, 2, 2)
        with torch.no_grad():
            view = x.t()
        with torch.inference_mode():
            other = x.squeeze()
        made = view.diag(), view.roll(1), view.sin(), view.masked_fill(view.detach() > 0, 0.0)
        told = [chain(each, 1) for each in made]
        product = other @ batch
        return told, product.grad_fn.name(), product

    @case("a backward that is refused leaves a view as it was")
    def _():
        c = torch.ones(2, 2)
        view, other = c[None], c[:1]
        c.mul_(R(1).sum())
        refused = err(lambda: torch.autograd.backward([view, view], [torch.ones_like(view), None]))
        return refused, err(lambda: view.mul_(2)), err(lambda: other.grad_fn.name()), other.mul_(2)

    @case("which of several tensors has no history")
    def _():
        x, c = R(2, 2), torch.ones(2, 2)
        ones = torch.ones(2, 2)
        with torch.no_grad():
            view = x.t()
            return [
                err(lambda: torch.autograd.grad([view, c], x, [ones, ones])),
                err(lambda: torch.autograd.grad([x, view, c], x, [ones] * 3)),
                err(lambda: torch.autograd.backward([c, view], [ones, ones])),
            ]

    @case("what the smooth loss keeps")
    def _():
        x, y = R(2), R(2)
        loss = functional.smooth_l1_loss(x, y)
        counts = x._use_count(), y._use_count()
        loss.grad_fn._raw_saved_self.register_hooks(lambda v: v, lambda v: v * 3)
        loss.grad_fn._raw_saved_target.register_hooks(lambda v: v, lambda v: v * 2)
        loss.backward()
        told = [counts, x.grad, y.grad]
        for reduction in ("mean", "sum", "none"):
            for beta in (1.0, 0.25):
                a, b = R(3) * 2, R(3)
                loss = functional.smooth_l1_loss(a, b, reduction=reduction, beta=beta)
                grads = torch.autograd.grad(loss.sum(), (a, b), create_graph=True)
                told += [loss, *grads, *(chain(g, 1) for g in grads)]
                told += torch.autograd.grad(grads[0].sum(), (a, b))
        return told

    @case("tensors exchanged while views are tracked")
    def _():
        with torch.autograd._force_original_view_tracking(True):
            a, b = torch.tensor(3.0), torch.tensor([1.0, 2.0])
            torch.utils.swap_tensors(a, b)
        return a, b

    @case("the gradient of a mean may be written")
    def _():
        told = []
        for mean in (
            lambda t: t.mean(),
            lambda t: t.mean(0).sum(),
            lambda t: (t + 1).mean(),
            lambda t: t.view(-1).mean(),
            lambda t: t.mean(-1, keepdim=True).sum(),
        ):
            x, y, z = R(2, 2), R(2, 2), R(2, 2)
            x.register_hook(lambda g: g.mul_(2))
            mean(x).backward()
            (grad,) = torch.autograd.grad(mean(y), y)
            made = z * 1
            made.register_hook(lambda g: g.add_(1))
            made.retain_grad()
            mean(made).backward()
            told += [x.grad, x.grad.stride(), grad.stride(), grad.mul_(3), z.grad, made.grad]
            (grad,) = torch.autograd.grad((mean(y) * 3).exp(), y, create_graph=True)
            told += [grad.stride(), grad.grad_fn.name()]
        return told

    @case("a Function writes the gradient of a mean")
    def _():
        class Writes(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, g):
                return g.mul_(4)

        x, seen = R(2, 2), []
        made = Writes.apply(x)
        made.grad_fn.register_hook(lambda inputs, outputs: seen.append([g.stride() for g in outputs]))
        loss = made.mean()
        loss.grad_fn.register_hook(lambda inputs, outputs: seen.append([g.stride() for g in inputs]))
        loss.backward()
        return x.grad, seen, R(3).mean().grad_fn(torch.ones(())).add_(1)

    @case("hooks where a backward begins, though nothing is asked for behind")
    def _():
        seen = []

        def hook(name):
            return lambda g: seen.append((name, g.clone()))

        x, w = R(2), R(2)
        w.register_hook(hook("leaf"))
        inner = w * 2
        inner.register_hook(hook("inner"))
        outer = inner + 1
        outer.register_hook(hook("outer"))
        ones = torch.ones(2)
        told = [
            err(lambda: torch.autograd.grad(w, x, ones)),
            torch.autograd.grad(outer, x, ones, retain_graph=True, allow_unused=True),
            torch.autograd.grad([outer, inner, w], x, [ones] * 3, retain_graph=True, allow_unused=True),
            torch.autograd.grad([w, x * 2], x, [ones] * 2, allow_unused=True),
            err(lambda: torch.autograd.backward(w, ones, inputs=[x])),
        ]
        return told, seen, w.grad, x.grad

    @case("looking at a graph calls no hooks")
    def _():
        calls = []
        x, y = R(2, 2), R(2, 2) * 1
        with torch.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: calls.append(0) or 1 / 0):
            made = x.exp() @ y, torch.nn.functional.linear(y, x), (x.exp() * 1) @ y[0]
        return [chain(each, 3) for each in made], calls

    @case("the dimension of an index is its place among the others")
    def _():
        x, empty = torch.ones(2, 3, 4), torch.ones(0)
        dots, every = Ellipsis, slice(None)
        places = (dots, 9), (0, dots, 9), (None, dots, 9), (dots, 9, 0), (every, None, 9), (dots, None, 9)
        told = [err(lambda at=at: x[at]) for at in places]
        return [*told, err(lambda: empty[..., -1]), err(lambda: empty[None, ..., 0]), err(lambda: empty[0])]

    @case("the graph of a tangent")
    def _():
        fw = torch.autograd.forward_ad
        x, t = R(2, 2), R(2, 2)
        with fw.dual_level():
            dual = fw.make_dual(x, t.exp())
            made = dual.exp(), dual[0].exp(), dual.cos(), dual * dual
            return [after(fw.unpack_dual(each).tangent) for each in made]

    @case("sums of gradients that the engine writes are counted")
    def _():
        x, y = R(2, 2), R(2, 2)
        twice = x * 2

        def versions(value, *inputs, **options):
            return [
                g._version for g in torch.autograd.grad(value.sum(), inputs, retain_graph=True, **options)
            ]

        told = [versions(z, x) for z in (x * x, x * x * x, x.sin() + x.cos() + x.exp(), x + x, x[0] * x[1])]
        told += [versions(twice * twice, x), versions(x * x, x, create_graph=True), versions(x * y, x, y)]
        (x * x).sum().backward()
        products = torch.autograd.functional.vhp(lambda z: (z * z).sin().sum(), y, x)
        with torch.autograd.forward_ad.dual_level():
            told.append(versions(x * x, x))
        seen = []
        twice.register_hook(lambda g: seen.append(g._version))
        (twice * twice).sum().backward()
        return told, x.grad._version, [each._version for each in products], seen

    @case("a converting view that was given other memory has the history of its base")
    def _():
        told = []
        makers = (
            lambda e: torch._neg_view(e),
            lambda e: e.to(torch.complex64).conj(),
            lambda e: e.to(torch.complex64).conj().imag,
            lambda e: (e * 1j).real,
            lambda e: torch.view_as_complex(e),
            lambda e: torch.view_as_real(e.to(torch.complex64)),
        )
        for make in makers:
            for memory in ((), (torch.ones(3, 2),)):
                view = make(R(2, 2) * 2)
                refused = err(lambda view=view, memory=memory: view.set_(*memory) is view)
                told.append((refused, chain(view, 2), view.shape))
        return told

    @case("a view whose base cannot be read so any more is refused each time it is asked")
    def _():
        base = R(2, 2) * 2
        view = torch.view_as_complex(base)
        base.set_()
        return [
            err(lambda: view.grad_fn),
            err(lambda: view * 1),
            err(lambda: view[0]),
            err(lambda: view.grad_fn),
        ]

    @case("attention of elements that do not lie side by side is composed")
    def _():
        told, fused = [], torch._fused_sdp_choice
        plain = R(1, 2, 3, 4)
        for odd in (plain.detach().mT.contiguous().mT.requires_grad_(), R(1, 2, 3, 8)[..., ::2]):
            for given in ((odd, plain, plain), (plain, odd, plain), (plain, plain, odd)):
                made = functional.scaled_dot_product_attention(*given)
                told.append((fused(*given), made.grad_fn.name()))
        (first,) = torch.autograd.grad(made.sum(), plain, create_graph=True)
        return told, torch.autograd.grad(first.pow(2).sum(), plain)[0].shape

    @case("elements that share a place share a complex gradient")
    def _():
        x = torch.tensor([[1 + 2j, 3 - 1j]], requires_grad=True)
        part = x.expand(3, 2).as_strided((2,), (1,))
        return torch.autograd.grad((part * part).sum(), x)[0].tolist()

    @case("names in the graphs of gradients of scans, determinants and squeezed tensors")
    def _():
        x = R(2, 2) / 4
        made = x.squeeze(), x[None].squeeze(), x.cumsum(0), x[:1].cumsum(0), torch.linalg.det(x)
        made += torch.linalg.slogdet(x)[1], x.as_strided((2, 2), (1, 2))
        grads = [torch.autograd.grad(each.exp().sum(), x, create_graph=True)[0] for each in made]
        functions = torch.linalg.det, lambda z: torch.linalg.slogdet(z)[1], lambda z: z.cumsum(-1)
        matrix = names.D(3, 3).detach().cos().requires_grad_()
        checked = [names.gc_(function, matrix) for function in functions]
        return [chain(g, 2) for g in grads[:6]], grads[6].grad_fn.name(), checked

    @case("conjugates in the graphs of complex gradients")
    def _():
        z = torch.tensor([[1 + 2j, 3 - 1j], [0.5j, 1]], requires_grad=True)
        functions = lambda z: z * z, torch.sin, torch.exp, lambda z: z**3, torch.conj_physical, torch.tanh
        ones = torch.ones(2, 2, dtype=z.dtype)
        grads = [torch.autograd.grad(f(z), z, ones * z, create_graph=True)[0] for f in functions]
        nodes = [[edge and edge.name() for edge, _ in g.grad_fn.next_functions] for g in grads]
        return nodes, [g.grad_fn.name() for g in grads]

    @case("a tensor of repeated elements is written over itself")
    def _():
        x = R(2) * 1
        t, version = x.expand(2, 2), x._version
        t[...] = t
        t.copy_(t.detach())
        grad = torch.autograd.grad(t.sum(), x, retain_graph=True)[0].tolist()
        return x.tolist(), x._version - version, t.grad_fn.name(), grad, err(lambda: t.copy_(t.t()))[:60]

    @case("the graph of the gradient of the largest element")
    def _():
        x = R(2, 2)
        made = x.max(), x.min(), x.median(), x.nanmedian(), (x * 2).max()
        grads = [torch.autograd.grad(each.exp(), x, create_graph=True)[0] for each in made]
        seconds = [torch.autograd.grad(g.pow(2).sum(), x)[0].tolist() for g in grads]
        return [chain(g, 2) for g in grads], seconds

    @case("what replaces a part of a negative view lies as its copy")
    def _():
        z = torch.tensor([[1 + 2j, 3 - 1j], [0.5j, 1]], requires_grad=True)
        told = []
        for part in (z.conj().imag, z.t().conj().imag, torch.view_as_real(z).select(-1, 1)):
            line = torch.ones(2)
            all_made = (
                torch.select_scatter(part, line, 0, 0),
                torch.slice_scatter(part, line[None], 0, 0, 1),
                torch.diagonal_scatter(part, line),
            )
            told += [(x.stride(), x.storage_offset(), x.is_neg(), x.grad_fn.name()) for x in all_made]
        plain = z.detach()
        return told, [torch.select_scatter(x, x[1], 0, 0).stride() for x in (plain.conj(), plain.t().conj())]

    return found


test_as_in_torch = same_in_torch(cases)
