"""Conjugate and negative views: what shows of them, where they stay lazy, what is refused, as in torch."""

import copy
import io
import pickle

import pytest
import torch as torch_itself
from outcomes import outcome

import rushlight


def saved(torch, tensor):
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    return torch.load(file)


def facts(value):
    """What can be told of a tensor without knowing its library."""
    if isinstance(value, (tuple, list)):
        return [facts(item) for item in value]
    if not isinstance(value, (rushlight.Tensor, torch_itself.Tensor)):
        return value
    return (
        value.is_conj(), value.is_neg(), value._is_view(), value.is_contiguous(), value.stride(),
        value.storage_offset(), str(value.dtype).rpartition(".")[2], value.requires_grad,
        type(value.grad_fn).__name__, None if value.is_meta else value.tolist(),
    )  # fmt: skip


# x: two complex numbers, c: their conjugates, m: a complex matrix, r: a real tensor, i: integers, odd: bools
# on bytes that are neither 0 nor 1
VALUES = """
c; c.conj(); c.resolve_conj(); c.conj_physical(); x.conj_physical(); c.clone(); c.detach(); c.data; c.imag
c.real; c.imag.resolve_neg(); -c.imag; torch._neg_view(r); torch._neg_view(torch._neg_view(r))
torch._neg_view(i); torch._neg_view(x); torch._neg_view(c); torch._neg_view(c).imag; torch._neg_view(c).real
torch._neg_view(x).conj(); torch.view_as_real(torch._neg_view(x))
torch.view_as_complex(torch._neg_view(r.view(1, 2))); c.view(2, 1); c[0]; c[1:]; c[[0, 1]]; c[None]
c.reshape(1, 2).T; c.expand(2, 2); c.unbind(); c.split(1); c.as_strided((2,), (1,)); c.diag()
c.unfold(0, 1, 1); copy.deepcopy(c); copy.deepcopy(c.imag); copy.copy(c); saved(torch, c)
saved(torch, c.imag); pickle.loads(pickle.dumps(torch._neg_view(c))); m.H; m.mH; m.adjoint(); r.view(1, 2).H
c.to(torch.complex128); c.to(torch.complex64, copy=True); torch.zeros_like(c); c * 2; torch.isreal(c)
torch._conj(x); torch._conj_physical(x); torch._conj_copy(x); torch._neg_view_copy(r); c.requires_grad_()
torch.stack([c, c])[0]; torch.view_copy(c, [2]); torch.view_as_real_copy(c); c.positive(); c.sgn(); c.neg()
c.imag.neg(); m.mT.conj().contiguous(); m.H.ravel(); m.conj().flatten(); c.cdouble(); c.type(torch.cdouble)
m.conj().narrow(0, 0, 1); m.conj().diagonal(); m.conj().movedim(0, 1); m.conj().unflatten(1, (1, 2))
torch.broadcast_to(c, (2, 2)); torch.atleast_3d(c); m.conj()[..., 0]; c.flip(0); m.conj().triu(); c.sum()
torch.einsum("ij->ji", m.conj()); torch.full_like(c, 1j); x.clone().conj().unsqueeze_(0)
m.clone().conj().t_(); m.clone().conj().as_strided_((2,), (1,)); m.conj() @ m; torch.vdot(c, x)
torch.fft.fft(c); torch.cat([c, x]); torch.where(torch.tensor([True, False]), c, x)
torch.empty(2, dtype=torch.cfloat, device="meta").conj(); torch.nn.Parameter(c); x.requires_grad_().conj()
torch._neg_view(r.requires_grad_()); x.requires_grad_().conj().imag
x.requires_grad_().conj().conj_physical(); x.requires_grad_().conj().resolve_conj()
x.requires_grad_().conj().clone(); x[torch._neg_view(-i)]; x.gather(0, torch._neg_view(-i))
torch._neg_view(r).nonzero(); torch._neg_view(r).argmax(); torch._neg_view(r).unique()
torch._neg_view(-i).bincount(); torch._neg_view(torch.ones(3).half())
torch._neg_view(torch.tensor([1, 2], dtype=torch.uint8))
torch.arange(5)[torch._neg_view(torch.tensor(-2)):]
odd; odd.clone(); odd[1:]; odd.sum(); odd.int(); odd ^ True; odd.reshape(2, 2).T; odd == True
odd.nonzero(); torch.arange(4)[odd]; copy.copy(odd); odd.cumsum(0); odd.view(torch.uint8)
odd.clone().view(torch.uint8); torch.where(odd, 1, 2); odd.sort()[0]; torch.cat([odd, odd]); odd.unique()
torch.frombuffer(bytearray([2, 0, 1]), dtype=torch.bool).sum()
torch.from_numpy(odd.numpy()).sum(); torch.from_dlpack(odd).int(); copy.deepcopy(odd).sum()
torch.empty(0, dtype=torch.bool).set_(odd.view(torch.uint8).untyped_storage()).int(); saved(torch, odd).sum()
odd.fill_(True).view(torch.uint8); odd.logical_not_().view(torch.uint8); odd.copy_(odd.clone()).int()
torch.count_nonzero(odd); odd.numpy().tolist() and odd.any(); pickle.loads(pickle.dumps(odd)).int()
"""
OTHERS = """
odd[:1].item(); odd[2:].tolist(); repr(odd); bool(odd[0])
c._base is x; c.data_ptr() == x.data_ptr(); r.conj() is r; x.resolve_conj() is x; r.resolve_neg() is r
r.real is r; c.imag._base is x; c.contiguous() is c; c.to(torch.complex64) is c; torch.as_tensor(c) is c
repr(c); repr(c.imag); c.tolist(); list(c.storage()); c.untyped_storage().nbytes(); c.is_set_to(x)
c.is_set_to(c); torch.equal(c, x); complex(c[0]); float(c.imag[0]); bool(c[0]); c[0].item()
list(range(torch._neg_view(torch.tensor(-3)))); [1, 2, 3][torch._neg_view(torch.tensor(-2))]
torch.is_conj(c); torch.is_neg(c.imag); torch.is_conj(r); (x * 1).requires_grad_().conj().grad_fn.name()
torch.allclose(c, x.conj_physical()); c.numpy(force=True).tolist(); c.numpy(); c.imag.numpy(); c.__array__()
c.__dlpack__(); torch.view_as_real(c); c.view(torch.float32); c.view(torch.complex64)
torch._neg_view(r).view(torch.int32); torch._neg_view(r).view(torch.float64)
torch._neg_view(torch.tensor([True])).clone(); r.imag; x.requires_grad_().conj().mul_(2)
"""
WRITES = """
k.add_(1j); k.mul_(1j); k.__setitem__(0, 5j); k.__setitem__([0], 5j); k.__setitem__(slice(1), 5j)
k.fill_(2j); k.__setitem__(torch.tensor([True, False]), 5j); k.copy_(torch.tensor([1j, 2j])); k.zero_()
k.conj_physical_(); k.neg_(); k.__iadd__(1); k.normal_(generator=torch.Generator().manual_seed(0))
k.resize_(1); k.unsqueeze_(0); torch.add(torch.tensor([1j, 2j]), 0, out=k); torch.mm(m, m, out=k)
k.set_(torch.tensor([7j])); k.imag.add_(1); setattr(k, "imag", r); setattr(k, "real", r); k.mul_(a)
a.mul_(k); a.copy_(k); k.copy_(a); k.exp_(); k.scatter_(0, torch.tensor([0]), torch.tensor([5j]))
k.index_fill_(0, torch.tensor([0]), 5j); k.real.mul_(2); k.masked_fill_(torch.tensor([True, False]), 3j)
torch._neg_view(k).mul_(2); k.expand(2, 2).add_(1); setattr(k, "data", a)
k.index_put_((torch.tensor([0, 0]),), torch.tensor([1j, 1j]), accumulate=True); setattr(a, "data", k)
"""
# z: zeros for good, zz: complex ones, v: ones that some are divided by, w: a leaf
ZEROS = """
z; z * v; v * z; z * 2; z * z; z * torch.inf; torch.tensor([torch.nan, torch.inf]) * z; z[0] * v
z * v.double(); z + v; v + z; z + z; z + 1; z - v; z - z; z / v; v / z; z / z; z.exp(); -z; z.sum()
z.clone(); z.detach(); z.t(); z.view(2, 1); z.reshape(1, 2); z[0]; z.expand(3, 2); z.to(torch.float64)
z.view(2, 1).contiguous(); z.conj(); zz.conj(); zz.real; zz.conj().imag; torch.view_as_real(zz)
torch.view_as_real(zz).mul_(2); z.data; z.view(torch.int32); z.view(torch.int32).add_(1); torch.dot(z, v)
torch.vdot(v, z); torch.cat([z, v]); torch.where(v > 0, z, v); torch.zeros_like(z); z.add_(1); z.zero_()
z.fill_(1); z.copy_(v); z.normal_(); z[0].mul_(2); z.__setitem__(0, 1); z.set_(); v.clone().copy_(z)
v.clone().add_(z); v.clone().mul_(z); z.numpy(); z.tolist(); z.numpy(force=True); z[0].item()
z.data_ptr(); pickle.dumps(z); torch._efficientzerotensor(2, 3)
torch._efficientzerotensor(size=(2,), dtype=torch.int64)
torch._efficientzerotensor((2,), requires_grad=True); torch._efficientzerotensor((2,), device="meta")
torch.equal(z, torch.zeros(2)); w * z; (w * z).grad_fn.name(); torch.autograd.grad((w * z).sum(), w)
torch.autograd.grad(w.exp(), w, z)[0].sum(); z.unbind()
"""
HISTORIES = """
k.mul_(1j); k.imag.mul_(2); k[0].mul_(2); torch._neg_view(k).mul_(2); k.exp_(); k.conj_physical_()
k[0].fill_(2j); k.copy_(b.detach() * 2); b.mul_(2); b.conj().mul_(k)
"""


def cases(text):
    parts = (part.strip() for part in text.replace("\n", ";").split(";"))
    return [pytest.param(part, id=part) for part in parts if part]


def names(torch):
    x = torch.tensor([1 + 2j, 3 - 1j])
    return {
        "torch": torch, "x": x, "c": x.conj(), "m": torch.tensor([[1 + 2j, 3j], [2 - 1j, 4]]),
        "r": torch.tensor([1.0, 2.0]), "i": torch.tensor([1, 0]),
        "odd": torch.tensor([2, 0, 255, 1], dtype=torch.uint8).view(torch.bool),
        "copy": copy, "pickle": pickle, "saved": saved,
    }  # fmt: skip


def both(run):
    return outcome(lambda: run(rushlight)), outcome(lambda: run(torch_itself))


@pytest.mark.parametrize("text", cases(VALUES))
def test_results(text):
    ours, theirs = (facts(eval(text, names(torch))) for torch in (rushlight, torch_itself))
    if isinstance(ours, list):
        assert ours == theirs
        return
    assert ours[:-1] == theirs[:-1]
    if ours[-1] is not None:
        torch_itself.testing.assert_close(*(torch_itself.tensor(values[-1]) for values in (ours, theirs)))


@pytest.mark.parametrize("text", cases(OTHERS))
def test_facts_and_refusals(text):
    ours, theirs = both(lambda torch: eval(text, names(torch)))
    assert ours == theirs


@pytest.mark.parametrize("text", cases(ZEROS))
def test_zeros_for_good(text):
    def run(torch):
        zero, w = torch._efficientzerotensor(2), torch.ones(2, requires_grad=True)
        given = {"z": zero, "zz": torch._efficientzerotensor(2, dtype=torch.cfloat), "v": w.detach(), "w": w}
        made = eval(text, {**names(torch), **given})
        tensor = isinstance(made, torch.Tensor)
        return made, tensor and (made._is_zerotensor(), made._is_view(), made.stride()), zero._version

    ours, theirs = both(run)
    assert ours == theirs


@pytest.mark.parametrize("text", cases(WRITES))
def test_writes(text):
    def run(torch):
        a = torch.tensor([1 + 2j, 3 - 1j])
        k = a.conj()
        eval(text, {**names(torch), "a": a, "k": k})
        values = [[(round(v.real, 5), round(v.imag, 5)) for v in t.reshape(-1).tolist()] for t in (a, k)]
        return values, k.shape == a.shape, k.is_conj(), a.is_conj()

    ours, theirs = both(run)
    assert ours == theirs


@pytest.mark.parametrize("text", cases(HISTORIES))
def test_histories_after_writes(text):
    def run(torch):
        leaf = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128, requires_grad=True)
        b = leaf * 1
        k = b.conj()
        eval(text, {**names(torch), "b": b, "k": k})
        chains = []
        for node in (k.grad_fn, b.grad_fn):
            chains.append([])
            while node is not None:
                chains[-1].append(node.name())
                node = node.next_functions[0][0] if node.next_functions else None
        (k * torch.tensor([1 + 1j, 2 - 3j])).abs().sum().backward()
        return chains, [(round(g.real, 6) + 0, round(g.imag, 6) + 0) for g in leaf.grad.tolist()]

    ours, theirs = both(run)
    assert ours == theirs
