"""Views and in-place writes: the same results and refusals in both libraries."""

import pytest
import torch as torch_itself
from outcomes import collector, outcome

import rushlight


def cases(torch):
    found, case = collector()
    L = lambda *s: torch.ones(*s, requires_grad=True)

    def ng(f):
        def g(x):
            with torch.no_grad():
                return f(x)

        return g

    def im(f):
        def g(x):
            with torch.inference_mode():
                return f(x)

        return g

    views = {
        "unbind": lambda x: x.unbind()[0],
        "split": lambda x: x.split(1)[0],
        "chunk": lambda x: x.chunk(2)[1],
        "ng view": ng(lambda x: x[0]),
        "ng unbind": ng(lambda x: x.unbind()[0]),
        "im view": im(lambda x: x[0]),
        "im unbind": im(lambda x: x.unbind()[0]),
        "unbind+view": lambda x: x.unbind()[0].view(-1),
        "view": lambda x: x[0],
        "tsplit": lambda x: torch.tensor_split(x, 2)[0],
        "detach": lambda x: x.detach(),
        "expand": lambda x: x.expand(2, 2, 2),
        "T": lambda x: x.T,
        "diag": lambda x: x.diagonal(),
        "viewreal": lambda x: torch.view_as_complex(x),
    }
    bases = {"leaf": lambda: L(2, 2), "nonleaf": lambda: L(2, 2).clone(), "plain": lambda: torch.ones(2, 2)}

    def without_recording(write):
        with torch.no_grad():
            write(2)

    writes = {
        "direct": lambda x, y: y.mul_(2),
        "direct other": lambda x, y: y.mul_(L(1).sum()),
        "indirect": lambda x, y: x.mul_(2),
        "indirect other": lambda x, y: x.mul_(L(1).sum()),
        "nograd write": lambda x, y: without_recording(y.mul_),
        "nograd write base": lambda x, y: without_recording(x.mul_),
    }

    def each(bn, b, vn, v):
        for name, write in writes.items():

            @case(f"{bn}/{vn}/{name}")
            def _(write=write):
                x = b()
                y = v(x)
                write(x, y)
                names = [t.grad_fn and t.grad_fn.name() for t in (x, y)]
                return y.requires_grad, names, y._version, x._version

        @case(f"{bn}/{vn}/attrs")
        def _():
            x = b()
            y = v(x)
            return (
                y._is_view(),
                y._base is x,
                y.requires_grad,
                y.is_leaf,
                y.is_inference(),
                y.output_nr,
                y.grad_fn and y.grad_fn.name(),
            )

        @case(f"{bn}/{vn}/requires_grad_")
        def _():
            x = b()
            y = v(x)
            y.requires_grad_()
            y.mul_(2)

        @case(f"{bn}/{vn}/detach_")
        def _():
            x = b()
            y = v(x)
            y.detach_()
            return y.requires_grad, y._is_view()

    for bn, b in bases.items():
        for vn, v in views.items():
            each(bn, b, vn, v)
    return found


@pytest.mark.parametrize("name", cases(rushlight))
def test_as_in_torch(name):
    expected = outcome(cases(torch_itself)[name])
    assert outcome(cases(rushlight)[name]) == expected


WRITES = """
v.zero_(); v.mul_(2); v.clamp_(0, 1); v.clamp_(min=torch.zeros(3)); v.masked_fill_(v > 0.5, 1.0); v.cumsum_(0)
v.index_fill_(0, torch.tensor([0]), 1.0); v.copy_(torch.ones(3)); v.squeeze_(); v.unsqueeze_(0); v.logit_(0.1)
v.round_(); v.xlogy_(2.0); F.hardtanh_(v); F.relu6(v, True); F.elu_(v); F.celu_(v); v.ldexp_(torch.tensor(2))
v.div_(2, rounding_mode="floor"); v.polygamma_(1); v.copysign_(2.0); v.t_(); v.as_strided_((2,), (1,))
"""


@pytest.mark.parametrize("write", [w.strip() for w in WRITES.replace("\n", ";").split(";") if w.strip()])
def test_a_view_whose_base_nobody_holds_stays_one_when_it_is_written(write):
    def run(torch, view):
        x = (torch.arange(9.0).reshape(3, 3) / 10 + 0.1).requires_grad_()
        v = view(x * 1)
        result = eval(write, {"torch": torch, "F": torch.nn.functional, "v": v})
        (grad,) = torch.autograd.grad(v.sum(), x)
        base = v._base
        return result is v, v._is_view(), tuple(base.shape), base.grad_fn.name(), v.grad_fn.name(), grad

    for view in (lambda x: x.diagonal(), lambda x: x[0]):
        ours, theirs = (
            outcome(lambda lib=lib, view=view: run(lib, view)) for lib in (rushlight, torch_itself)
        )
        assert ours == theirs and ours[0].startswith("(True, True")
