"""`out=` that torch has no derivative of, and memory that is written or laid out past its tensors."""

import pytest
from corners import same_in_torch, short_names
from outcomes import collector, err

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def cases(torch):
    found, case = collector()
    short = short_names(torch)
    L, R, nm = short.L, short.R, short.nm
    forward_ad = torch.autograd.forward_ad

    def behind(tensor):
        return [node and node.name() for node, _ in tensor.grad_fn.next_functions]

    underived = {
        "softmax": lambda a, out: torch.softmax(a, 0, out=out),
        "log_softmax": lambda a, out: torch.log_softmax(a, 0, out=out),
        "diag": lambda a, out: torch.diag(a, out=out),
        "diag of a vector": lambda a, out: torch.diag(a[0], out=out),
        "heaviside": lambda a, out: torch.heaviside(a, a, out=out),
        "floor_divide": lambda a, out: torch.floor_divide(a, 2, out=out),
        "conj_physical": lambda a, out: torch.conj_physical(a, out=out),
        "t_copy": lambda a, out: torch.t_copy(a, out=out),
        "slice_scatter": lambda a, out: torch.slice_scatter(a, a[:1], 0, 0, 1, out=out),
        "bitwise_not": lambda a, out: torch.bitwise_not(a.detach().long(), out=out),
        "full": lambda a, out: torch.full((2, 2), 1.0, out=out),
    }
    places = {
        "empty": lambda: torch.empty(0),
        "leaf": lambda: torch.zeros(2, 2, requires_grad=True),
        "result": lambda: L(2, 2) * 1,
        "view of a leaf": lambda: L(4, 2)[:2],
        "one of several views": lambda: (L(4, 2) * 1).split(2)[0],
    }
    for name, call in underived.items():

        @case(f"an out without a derivative: {name}")
        def _(call=call):
            told = []
            for place in places.values():
                out = place()
                result = err(call, R(2, 2), out)
                if result is not out:
                    told.append((result, out.requires_grad, out._version))
                elif out.requires_grad:
                    told.append((nm(out), behind(out), out._version, err(out.sum().backward)))
                else:
                    told.append(out)
            return told

    @case("several outs without a derivative")
    def _():
        a = R(2, 2)
        whole = torch.empty(0), torch.empty(0, dtype=torch.int32)
        found = [
            *torch.histogram(a, 2, out=(torch.empty(0), torch.empty(0))),
            *torch.linalg.ldl_factor(a, out=whole),
        ]
        return [nm(t) for t in found], [err(found[i].sum().backward) for i in (0, 2)]

    @case("outs that are constants, and what is said first of them")
    def _():
        a = R(2, 2)
        cheb = torch.special.chebyshev_polynomial_t(a, 2, out=torch.empty(0))
        pair = torch.empty(0), torch.empty(0)
        return [
            cheb,
            err(torch.multinomial, a, 1, out=torch.empty(0)),
            err(torch.nn.functional.normalize, a, out=torch.empty(0)),
            err(torch.hardshrink, a, out=torch.empty(0, dtype=torch.int64)),
            err(torch.tensordot, a, a, 1, out=L(0)),
            err(torch.inner, a, a, out=L(3)),
            err(torch.kthvalue, a.detach(), 1, 0, out=pair),
            err(torch.kthvalue, a.detach().double(), 1, 0, out=pair),
            err(torch.frexp, a.detach(), out=pair),
            err(torch.frexp, a.detach().double(), out=pair),
        ]

    @case("duals that are multiplied into an out")
    def _():
        told = []
        with forward_ad.dual_level():
            for sizes in ((2,), (2, 2), (3, 2, 2)):
                a = forward_ad.make_dual(torch.ones(sizes), torch.ones(sizes))
                others = (torch.ones(sizes) for sizes in ((2,), (2, 2), (3, 2, 2)))
                told += [err(torch.matmul, a, b, out=torch.empty(0)) for b in others]
        return told

    @case("a factory into a view that was made without recording")
    def _():
        leaf = L(4)
        with torch.no_grad():
            view = leaf[:2]
            result = torch.zeros(2, out=view)
        return result is view, leaf, leaf._version

    @case("copies in another memory format are no views")
    def _():
        told = []
        last = torch.channels_last
        for copy in (
            lambda x: x.clone(memory_format=last),
            lambda x: x.contiguous(memory_format=last),
            lambda x: x.to(memory_format=last),
            lambda x: x.transpose(1, 2).contiguous(memory_format=last),
        ):
            x = R(1, 4, 2, 2)
            y = copy(x)
            told.append((nm(y), behind(y), y._is_view(), y._base, y.stride(), copy(x.detach())._is_view()))
            (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
            told.append((g, torch.autograd.grad(g.sum(), x)))
            y.mul_(2)
            told.append((nm(y), behind(y)))
        return told

    @case("writes into a storage are not counted")
    def _():
        x = torch.ones(4)
        bytes_, told = x.untyped_storage(), []
        for write in (
            lambda: bytes_.fill_(0),
            lambda: bytes_.copy_(torch.ones(4).untyped_storage()),
            lambda: bytes_.__setitem__(0, 1),
            lambda: bytes_.__setitem__(slice(0, 2), 1),
            lambda: x.storage().fill_(2.0),
            lambda: x.storage().__setitem__(0, 3.0),
            lambda: bytes_.byteswap(torch.float32),
        ):
            write()
            told.append((x._version, bytes_.tolist()))
        y = L(4) * 1
        z = y * y
        y.untyped_storage().fill_(0)
        return told, torch.autograd.grad(z.sum(), y), z

    @case("a resize to a memory format is one write")
    def _():
        base = torch.arange(8.0)
        view = base[2:6]
        view.resize_(1, 2, 1, 2, memory_format=torch.channels_last)
        told = [base._version, view._version, view.stride()]
        base.add_(1)
        return told, base._version, view

    @case("the name of a history without a derivative")
    def _():
        y = R(3) * 1
        z = y * y
        y.set_(torch.ones(3))
        return err(z.sum().backward), err(y.sum().backward)

    @case("gradients that are sparse, and how often they were written")
    def _():
        def sparse(*places):
            return torch.sparse_coo_tensor(torch.tensor([places]), torch.ones(len(places)), (3,))

        class Give(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, g):
                ctx.g = g
                return x.sum()

            @staticmethod
            def backward(ctx, g):
                return ctx.g, None

        told = [(torch.ones(3) + sparse(0, 2))._version]
        for first in (torch.ones(3), sparse(0, 2), sparse(0, 0)):
            for second in (torch.ones(3), sparse(1)):
                x = R(3)
                (Give.apply(x, first) + Give.apply(x, second)).backward()
                told += [x.grad, x.grad._version]
                x = R(3)
                Give.apply(x, first).backward()
                told.append(x.grad._version)
                Give.apply(x, second).backward()
                told += [x.grad, x.grad._version]
        return told

    @case("derivatives of the gradient of a sparse softmax")
    def _():
        told = []
        for function in (torch.sparse.softmax, torch.sparse.log_softmax):
            x = torch.sparse_coo_tensor(torch.tensor([[0, 2]]), torch.ones(2), (3,)).requires_grad_()
            (g,) = torch.autograd.grad(function(x, 0).to_dense().pow(2).sum(), x, create_graph=True)
            told.append(err(torch.autograd.grad, g.to_dense().sum(), x))
        return told

    @case("what leads on from a node without a derivative")
    def _():
        a, b = R(2), torch.ones(2)
        found = torch.heaviside(a, b), torch.heaviside(b, a), torch.nextafter(a, b), torch.detach_copy(a)
        return [(nm(t), t.grad_fn and behind(t)) for t in found]

    @case("pieces of what was made in inference mode")
    def _():
        with torch.inference_mode():
            x = torch.arange(4.0)
        piece = x.unsafe_split(2)[0]
        return piece.is_inference(), err(lambda: piece._version), err(piece.mul_, 2)

    @case("classes that are none, and whole numbers that require grad")
    def _():
        make = torch.Tensor._make_subclass
        whole = torch.ones(2, dtype=torch.int64)
        return err(make, 3, torch.ones(2)), err(make, torch.nn.Parameter, whole, True)

    return found


test_as_in_torch = same_in_torch(cases)
