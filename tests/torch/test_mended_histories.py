"""Programs about histories, found by test_histories.py, that once differed from torch."""

import warnings

from corners import same_in_torch, short_names
from outcomes import collector, err


def after(tensor):
    return [node and node.name() for node, _ in tensor.grad_fn.next_functions]


def warnings_of(function, *args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*args)
    return [str(warning.message)[:70] for warning in caught]


def cases(torch):
    found, case = collector()
    names = short_names(torch)
    L, R = names.L, names.R
    functional = torch.nn.functional

    @case("attention shows its three inputs")
    def _():
        q = L(1, 2, 4, 8)
        return after(functional.scaled_dot_product_attention(q, q, q))

    @case("attention in steps is called after torch's steps")
    def _():
        return after(functional.scaled_dot_product_attention(L(2, 2), L(2, 2), L(2, 2)))

    @case("a composed function of a view whose base was written")
    def _():
        x = R(2, 2)
        e = x * 3
        part = e[:, 1:]
        e.index_copy_(0, torch.tensor([1, 0]), x)
        result = torch.complex(part, part)
        torch.view_as_real(result).sum().backward()
        return after(result), x.grad

    @case("a reshape that copies is two steps")
    def _():
        return after(R(2, 2).t().flatten()), after(R(2, 2).expand(2, 2, 2).reshape(-1))

    @case("what needs no broadcasting is passed on")
    def _():
        x = R(2, 2)
        same, wider = torch.broadcast_tensors(x, torch.ones(2))
        return same is x, wider._is_view(), after(functional.mse_loss(x, torch.ones(2)))

    @case("a weight of one dimension is transposed")
    def _():
        return after(functional.linear(R(2, 2), R(2) * 1))

    @case("a broadcast assignment expands")
    def _():
        x, whole = R(2), torch.zeros(2, 2)
        whole[...] = x * 1
        return after(whole)

    @case("aliases")
    def _():
        x = R(2)
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, torch.ones(2))
            return torch.ops.aten.alias(x).grad_fn.name(), dual.grad_fn.name()

    @case("in-place operations in a level keep their names")
    def _():
        x = R(2) * 1
        with torch.autograd.forward_ad.dual_level():
            x.cumsum_(0)
            return x.grad_fn.name()

    @case("set_ is one write")
    def _():
        x = R(2) * 1
        x.set_(torch.ones(3))
        return x._version, after(x)

    @case("a jacobian is no view")
    def _():
        found = torch.autograd.functional.jacobian(torch.sin, R(2))
        return found._is_view(), found

    @case("versions of out= and of copies")
    def _():
        import copy

        out = torch.zeros(0)
        torch.sin(torch.ones(3), out=out)
        made = torch.arange(3.0, out=torch.zeros(0))
        scattered = torch.slice_scatter(torch.zeros(2), torch.ones(1), 0, 1, 2)
        return [t._version for t in (out, made, scattered, copy.deepcopy(out))]

    @case("lists refuse before they write")
    def _():
        whole = torch.ones(2, requires_grad=True) * 1
        part = whole.split([1, 1])[1]
        return err(torch._foreach_mul_, [whole, part], 2), whole.detach()

    @case("indexed assignment of what shares memory")
    def _():
        x, i = torch.arange(6.0), torch.tensor([0, 2])
        values = [x[:2], x[0], torch.ones(2), x[i]]
        return [err(x.__setitem__, i, value) for value in values], x

    @case("a leaf is refused before the other operand is looked at")
    def _():
        return err(L(2).lerp_, torch.ones(2).double(), 0.5)

    @case("dtypes of addmm before its sizes")
    def _():
        x = torch.ones(2, 2)
        return err(torch.addmm, x, x, torch.ones(2).long()), err(torch.addmm, x, x.long(), torch.ones(3, 2))

    @case("masks that cannot be expanded")
    def _():
        return err(torch.ones(2).masked_scatter_, torch.ones(2, 2) > 0, torch.ones(4))

    @case("complex numbers lie as their parts do")
    def _():
        x = torch.ones(2, 3).t()
        return (
            torch.complex(x, x).stride(),
            torch.polar(x, x).stride(),
            torch.complex(x, torch.ones(2)).stride(),
        )

    @case("hooks of several leaves in autograd.grad")
    def _():
        x, y = R(2), R(2)
        torch.autograd.graph.register_multi_grad_hook((x, y), lambda grads: None)
        return err(torch.autograd.grad, (x * y).sum(), [x, y])

    @case("what is no tensor has no tangent")
    def _():
        with torch.autograd.forward_ad.dual_level():
            return err(torch.autograd.forward_ad.unpack_dual, None)

    @case("weights in two parts")
    def _():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            old = torch.nn.utils.weight_norm(torch.nn.Linear(3, 3))
        new = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 3), dim=1)
        return [(m.weight.grad_fn.name(), after(m.weight)) for m in (old, new)]

    @case("a module's hook of which no input has a gradient")
    def _():
        layer = torch.nn.Linear(2, 2)
        layer.register_full_backward_pre_hook(lambda module, grads: None)
        return warnings_of(layer(torch.ones(1, 2)).sum().backward)

    @case("recurrent layers are called after torch's last step")
    def _():
        x, packed = (
            torch.ones(4, 2, 3),
            torch.nn.utils.rnn.pack_sequence([torch.ones(4, 3), torch.ones(2, 3)]),
        )
        names = []
        for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
            layer = kind(3, 2)
            outs = (layer(x)[0], layer(packed)[0].data, layer.double()(x.double())[0])
            names += [out.grad_fn.name() for out in outs]
        cells = torch.nn.GRUCell(3, 2), torch.nn.RNNCell(3, 2), torch.nn.RNNCell(3, 2, nonlinearity="relu")
        return names, [cell(x[0]).grad_fn.name() for cell in cells]

    @case("a generator of no parameters")
    def _():
        return warnings_of(torch.nn.utils.clip_grad_norm_, torch.nn.Module().parameters(), 1.0)

    @case("words about layers")
    def _():
        return err(torch.nn.Conv1d(1, 1, 1), torch.ones(1, 1, 1), 3), err(torch.nn.init.zeros_, None)

    @case("functions of a view that negates keep its history")
    def _():
        x = R(2)
        e = x * 2
        view = torch._neg_view(e)
        functional.celu_(view)
        return view.grad_fn.name(), after(view), torch.autograd.grad((e * e).sum(), x)

    @case("a single value fills what it is assigned to")
    def _():
        x, y = R(2), R(2) * 1
        y[...] = x.prod()
        z = R(2) * 1
        z[:] = torch.tensor(3.0)
        return y.grad_fn.name(), after(y), z.grad_fn.name(), after(z), torch.autograd.grad(y.sum(), x)

    @case("a gradient of the shape that the data has now")
    def _():
        e, f = R(2, 2) * 1, R(1) * 1
        e.data, f.data = torch.tensor(1.0), torch.ones(3)
        return err(e.backward), err(f.backward, torch.ones(3)), f.grad_fn.name()

    @case("names of nodes and out= while somebody looks on")
    def _():
        x = R(2, 2)
        with torch.autograd._force_original_view_tracking(True):
            made = torch.diag_embed(x), torch.diag(x[0]), functional.pad(x, (1, 1)), torch.kron(x, x)
            return [t.grad_fn.name() for t in made], err(torch.sin, x, out=torch.ones(2, 2))

    @case("a table without dimensions")
    def _():
        index, number = torch.tensor([1, 0]), torch.tensor(1.0)
        return [err(functional.embedding, index, table) for table in (number, R(1)[0], R(3))]

    @case("a write into a view that has not asked for its base's new history")
    def _():
        base = torch.zeros(2, 2)
        part, seen = base[0], base[1]
        base.mul_(R(2, 2))
        name = seen.grad_fn.name()
        seen.mul_(2)
        return name, err(lambda: part.mul_(2))

    @case("strides of one row, and of its diagonal")
    def _():
        row = R(2, 3)[::2]
        return [f(row).stride() for f in (torch.abs, torch.exp, lambda x: x * x, torch.diag)]

    @case("values that share memory and do not fit")
    def _():
        x, i = torch.ones(4), torch.tensor([1, 0])
        return [err(lambda v=v: x.index_put_((i,), v)) for v in (x.view(2, 2), x[:2])]

    @case("a loss of numbers and counts")
    def _():
        return functional.mse_loss(R(2), torch.ones(2, dtype=torch.int64)).grad_fn.name()

    @case("the gradient of a running product")
    def _():
        names = []
        for shape in ((3, 2), (1, 2)):
            x = torch.rand(shape, requires_grad=True)
            (grad,) = torch.autograd.grad(x.cumprod(0).sum(), x, create_graph=True)
            names.append(grad.grad_fn and [grad.grad_fn.name(), after(grad)])
        return names

    @case("the gradient of the gradient of a smooth loss")
    def _():
        x = R(2)
        loss = functional.smooth_l1_loss(x * 1, torch.zeros(2))
        (grad,) = torch.autograd.grad(loss, x, create_graph=True)
        return after(grad)

    @case("a write into the result of a composed operation, named")
    def _():
        x = R(2, 3)
        far = torch.cdist(x * 1, x)
        far.mul_(2)
        return err(lambda: far.sum().backward())

    return found


test_as_in_torch = same_in_torch(cases)
