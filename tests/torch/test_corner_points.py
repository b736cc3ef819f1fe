"""Tangents at kinks and through complex views, and gradients of ties: both libraries agree."""

import pytest
from corners import same_in_torch
from outcomes import collector, err

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def cases(torch):
    found, case = collector()
    forward = torch.autograd.forward_ad
    minus_inf = float("-inf")

    def tangent(dual):
        return forward.unpack_dual(dual).tangent

    views = {
        "real": lambda z: z.real,
        "imag": lambda z: z.imag,
        "imag of the conjugate": lambda z: z.conj().imag,
        "view_as_real": lambda z: torch.view_as_real(z),
        "a part of view_as_real": lambda z: torch.view_as_real(z)[1:, 1],
        "view_as_complex": lambda z: torch.view_as_complex(torch.view_as_real(z)),
    }
    for name, view in views.items():

        @case(f"a tangent written into {name} is one of the whole")
        def _(view=view):
            told = []
            with forward.dual_level():
                for start in (0, 1):
                    z = torch.complex(torch.arange(4.0), torch.ones(4))[start:]
                    part = view(z)
                    other = forward.make_dual(torch.full(part.shape, 2.0), torch.ones(part.shape))
                    part.mul_(other.to(part.dtype))
                    told += [part, tangent(part), z, tangent(z), tangent(z * z), tangent(z.real)]
            return told

    @case("a tangent written into a complex view of real numbers")
    def _():
        with forward.dual_level():
            x = torch.arange(8.0).reshape(4, 2)
            z = torch.view_as_complex(x[1:3])
            z.add_(forward.make_dual(torch.ones(2, dtype=torch.complex64), torch.full((2,), 1 + 2j)))
            return x, tangent(x), tangent(z), tangent(x.sum())

    @case("tangents of norms at zero")
    def _():
        told = []
        for order in (0.5, 1.5, 2, 2.5, 3, 4.5):
            x = torch.zeros(3, dtype=torch.float64)
            with forward.dual_level():
                told.append(tangent(torch.linalg.vector_norm(forward.make_dual(x, x + 1), order)))
            x.requires_grad_()
            (g,) = torch.autograd.grad(torch.linalg.vector_norm(x, order), x, create_graph=True)
            told += [g.detach(), torch.autograd.grad(g.sum(), x)[0].tolist()]
        return told

    @case("tangents of quotients by zero")
    def _():
        with forward.dual_level():
            a = forward.make_dual(torch.tensor([1.0, 0.0, 2.0]), torch.ones(3))
            b = forward.make_dual(torch.tensor([0.0, 0.0, 2.0]), torch.tensor([2.0, 3.0, 4.0]))
            found = [a / b, a.double() / b, a / b[:1], a[:1] / b, a.clone().div_(b), (a * 1j)[2:] / b[2:]]
            return [tangent(q) for q in found]

    @case("tangents of sgn and angle at zero")
    def _():
        x = torch.tensor([0j, 1 + 1j, 2j], dtype=torch.complex128)
        with forward.dual_level():
            dual = forward.make_dual(x, torch.tensor([1 + 1j, 2.0, 3j], dtype=torch.complex128))
            norm = torch.linalg.vector_norm(dual, 1)
            return tangent(dual.sgn()), tangent(dual.angle()), tangent(dual.abs()), tangent(norm)

    @case("the gradient of a complex Cholesky factor")
    def _():
        a = torch.tensor([[2.0, 1 + 1j], [1 - 1j, 3.0]], dtype=torch.complex128, requires_grad=True)
        weights = torch.tensor([[1.0, 2.0], [3 - 1j, 4j]], dtype=torch.complex128)
        told = []
        for upper in (False, True):
            loss = (torch.linalg.cholesky(a, upper=upper) * weights).sum().real
            (g,) = torch.autograd.grad(loss, a, create_graph=True)
            (h,) = torch.autograd.grad((g * weights).sum().real, a)
            told += [
                [complex(round(z.real, 6) + 0.0, round(z.imag, 6) + 0.0) for z in t.flatten().tolist()]
                for t in (g, h)
            ]
        return told

    @case("the inverse of a singular factor")
    def _():
        factors = [[0.0, 1.0], [1.0, 0.0]], [[[1.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]]
        return [
            err(torch.cholesky_inverse, torch.tensor(f), upper) for f in factors for upper in (False, True)
        ]

    @case("extremes of segments that equal what they are compared with")
    def _():
        told = []
        for reduce in ("max", "min", "prod"):
            for values in ([minus_inf, minus_inf], [-minus_inf, -minus_inf, 1.0], [1.0, 1.0, 2.0]):
                for initial in (None, 1.0, minus_inf):
                    x = torch.tensor(values, requires_grad=True)
                    lengths = torch.tensor([len(values), 0])
                    y = torch.segment_reduce(x, reduce, lengths=lengths, initial=initial)
                    told.append((y, torch.autograd.grad(y, x, torch.tensor([2.0, 3.0]))))
        return told

    @case("products in another dtype")
    def _():
        told = []
        for dtype in (torch.float32, torch.float64, torch.float16):
            for values in ([1 + 2j, 2.0, 4.0], [0j, 2.0, 4j], [0j, 0j, 1j]):
                x = torch.tensor(values, requires_grad=True)
                found = x.prod(dtype=dtype), x.prod(0, dtype=dtype), x.prod(0, True, dtype=dtype)
                told += [torch.autograd.grad(product.sum(), x) for product in found]
        return told

    @case("types that a hook must not give")
    def _():
        told = []
        for dtype in (
            torch.bool,
            torch.uint8,
            torch.bfloat16,
            torch.complex32,
            torch.float8_e5m2,
            torch.complex64,
        ):
            y = torch.ones(2, requires_grad=True) * 1
            y.register_hook(lambda g, dtype=dtype: torch.ones(2).to(dtype))
            told.append(err(y.sum().backward))
        return told

    return found


test_as_in_torch = same_in_torch(cases)
