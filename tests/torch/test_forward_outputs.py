"""Duals and `out=`: refused in torch's words or carried along; and what a copy makes of a tangent's dtype."""

import pytest
import torch as torch_itself
from outcomes import outcome

import rushlight

# A call of d [3, 3], a dual tensor (or a plain one), and o, its result's place.
CALLS = """
torch.add(d, d, out=o)|torch.sin(d, out=o)|torch.nonzero(d, out=o)|torch.all(d, out=o)|torch.any(d, out=o)
torch.argmax(d, out=o)|torch.isposinf(d, out=o)|torch.eq(d, d, out=o)|torch.histc(d, out=o)
torch.multinomial(d.abs(), 2, out=o)|torch.bernoulli(d.abs() / 99, out=o)|torch.normal(d, 1.0, out=o)
torch.inner(d, d, out=o)|torch.tensordot(d, d, out=o)|torch.diff(d, out=o)|torch.quantile(d, 0.5, out=o)
torch.linalg.cond(d, out=o)|torch.linalg.norm(d, out=o)|torch.linalg.matrix_norm(d, out=o)
torch.linalg.vector_norm(d, out=o)|torch.norm(d, out=o)|torch.norm(d, p="nuc", out=o)
torch.linalg.inv(d, out=o)|torch.linalg.det(d, out=o)|torch.linalg.eigvals(d, out=o)
torch.softmax(d, 0, out=o)|torch.diag(d[0], out=o)|torch.t_copy(d, out=o)|torch.slice_scatter(d, d, out=o)
torch.square(d, out=o)|torch.outer(d[0], d[0], out=o)|torch.nanmean(d, out=o)|torch.matmul(d[0], d[0], out=o)
torch.max(d, d, out=o)|torch.index_add(d, 0, torch.tensor([0]), d[:1], out=o)|torch.cross(d, d, out=o)
torch.igamma(d, d, out=o)|torch.special.zeta(d, d, out=o)|torch.special.xlog1py(d, d, out=o)
torch.special.bessel_j0(d, out=o)|torch.special.ndtr(d, out=o)|torch.fft.fft(d, out=o)
torch.cat([d, d], out=o)|torch.linspace(d[0, 0], d[0, 1], 3, out=o)
""".replace("\n", "|").strip("|").split("|")  # fmt: skip


def run(torch, call, dual_out):
    forward = torch.autograd.forward_ad
    plain = torch.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]], dtype=torch.float64)
    torch.manual_seed(0)
    place = torch.empty_like(eval(call, {"torch": torch, "d": plain, "o": None}))
    if dual_out and not (place.is_floating_point() or place.is_complex()):
        return None
    with forward.dual_level():
        if dual_out:
            place = forward.make_dual(place, torch.ones_like(place))
        else:
            plain = forward.make_dual(plain, torch.ones_like(plain))
        eval(call, {"torch": torch, "d": plain, "o": place})
        return forward.unpack_dual(place).tangent is not None


@pytest.mark.parametrize("dual_out", [False, True], ids=["input", "out"])
@pytest.mark.parametrize("call", CALLS)
def test_out(call, dual_out):
    mine, theirs = (outcome(lambda lib=lib: run(lib, call, dual_out)) for lib in (rushlight, torch_itself))
    assert mine[0] == theirs[0]


def copied(torch, to, source, into):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        x = torch.tensor([1.0, 2.0], dtype=getattr(torch, source))
        dual = forward.make_dual(x, x / 8)
        place = torch.zeros(2, dtype=getattr(torch, to))
        eval(into, {"place": place, "dual": dual})
        tangent = forward.unpack_dual(place).tangent
        return str(tangent.dtype).split(".")[1], tangent.tolist()


@pytest.mark.parametrize("into", ["place.copy_(dual)", "place.copy_(dual[:1])", "place[:1].copy_(dual[:1])"])
@pytest.mark.parametrize("to, source", [("float64", "float32"), ("float32", "float64"),
                                        ("bfloat16", "float32"), ("complex64", "float32")])  # fmt: skip
def test_a_tangent_is_copied_as_it_is(to, source, into):
    assert copied(rushlight, to, source, into) == copied(torch_itself, to, source, into)


def slice_inverse(torch):
    x = torch.arange(6.0, requires_grad=True)
    base = x * 1
    whole = torch.ops.aten.slice_inverse(base[2:5], base, 0, 2, 5, 1)
    node = whole.grad_fn
    (grad,) = torch.autograd.grad((whole * torch.arange(6.0)).sum(), x)
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        dual = forward.make_dual(torch.arange(6.0), torch.arange(6.0) * 2)
        carried = forward.unpack_dual(torch.ops.aten.slice_inverse(dual[2:5], dual, 0, 2, 5, 1)).tangent
    return (
        node.name(), [behind.name() for behind, _ in node.next_functions], node._saved_start, node._saved_end,
        whole._is_view(), whole.tolist(), grad.tolist(), carried.tolist(),
    )  # fmt: skip


def test_slice_inverse_is_differentiable():
    assert slice_inverse(rushlight) == slice_inverse(torch_itself)
