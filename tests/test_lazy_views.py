"""Conjugate and negative views: what they are, and that every operation reads and writes them rightly."""

import copy
import io
import pickle

import pytest
from gradcheck import gradcheck, gradgradcheck
from samples import OPS
from sampling import build, dtype_names, tensors_in
from test_ops import REFUSALS, explain, same

import rushlight as torch

MOST = 3  # samples of an operation: what differs here is how its inputs are read


def conjugate(t):
    """A tensor with t's values that holds their conjugates."""
    return t.conj_physical().conj() if t.is_complex() else t


def negative(t):
    """A tensor with t's values that holds their negatives."""
    return torch._neg_view(-t) if t.dtype != torch.bool else t


def loose(t):
    """A bool tensor with t's values on bytes that no bool has."""
    return (t.to(torch.uint8) * 6).view(torch.bool) if t.dtype == torch.bool else t


def both(t):
    return conjugate(negative(t))


LAZY = [
    pytest.param("float64", negative, id="neg"),
    pytest.param("complex128", conjugate, id="conj"),
    pytest.param("complex128", both, id="neg_conj"),
    pytest.param("int64", negative, id="integers"),
    pytest.param("bool", loose, id="loose"),
]
ALL = pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS.values()])


def swapped(tree, change):
    if isinstance(tree, torch.Tensor):
        return change(tree)
    if type(tree) in (list, tuple):
        return type(tree)(swapped(item, change) for item in tree)
    if type(tree) is dict:
        return {name: swapped(item, change) for name, item in tree.items()}
    return tree


def outcome(function, args, kwargs):
    torch.manual_seed(0)
    try:
        return tensors_in(torch, function(*args, **kwargs)), None
    except REFUSALS as error:
        return [], (type(error), str(error).partition("\n")[0])


@pytest.mark.parametrize("dtype, lazy", LAZY)
@ALL
def test_operations_read_lazy_views(op, dtype, lazy):
    """Values, in-place forms and gradients are those of ordinary tensors."""
    if dtype not in dtype_names(op.dtypes):
        pytest.skip(f"does not take {dtype}")
    function = op.function(torch)
    for sample in list(op.for_dtype(dtype))[:MOST]:
        args, kwargs = build(torch, sample, dtype)
        lazily = swapped(args, lazy), swapped(kwargs, lazy)
        held = [t.clone() for t in tensors_in(torch, lazily)]
        (want, refusal), (got, reason) = outcome(function, args, kwargs), outcome(function, *lazily)
        if op.name == "view_as_real" and lazy is not negative:
            assert reason and "unresolved conjugated tensors" in reason[1]
            continue
        assert len(want) == len(got), explain(op, sample, f"{reason} instead of {refusal}")
        for a, b in zip(want, got):
            assert same(a, b, 1e-14), explain(op, sample, f"{b} instead of {a}")
        for before, after in zip(held, tensors_in(torch, lazily)):
            assert same(before, after), explain(op, sample, "changed its input")
        in_place(op, sample, dtype, lazy)
        if sample.grad and dtype in dtype_names(op.grad):
            gradients(op, sample, dtype, lazy)


def in_place(op, sample, dtype, lazy):
    if not op.inplace or op.view or dtype not in dtype_names(op.dtypes if op.inplace is True else op.inplace):
        return
    results = []
    for change in (lambda t: t, lazy):
        args, kwargs = build(torch, sample, dtype)
        if not isinstance(args[0], torch.Tensor) or "dtype" in kwargs:
            return
        target = change(args[0].clone())
        base, version = target._base, target._version
        method = getattr(target, op.name + "_")
        found, refusal = outcome(method, args[1:], kwargs)
        assert refusal or found[0] is target
        if base is not None and not refusal:
            raw = base.neg() if target.is_neg() else base
            assert same(raw.conj() if target.is_conj() else raw, target), explain(op, sample, "the base")
            assert target._version > version or op.name == "conj_physical"
        results.append((target, refusal and refusal[0]))
    assert same(results[0][0], results[1][0]), explain(op, sample, "in place")
    assert results[0][1] == results[1][1], explain(op, sample, f"{results}")


def gradients(op, sample, dtype, lazy):
    found = []
    for change in (lambda t: t, lazy):
        leaves = []
        args, kwargs = build(torch, sample, dtype, leaves=leaves)
        args, kwargs = swapped(args, change), swapped(kwargs, change)
        outputs, _ = outcome(op.function(torch), args, kwargs)
        outputs = [out for out in outputs if out.requires_grad]
        if not leaves or not outputs:
            return
        loss = sum((out * out).abs().sum() for out in outputs)
        found.append(torch.autograd.grad(loss, leaves, allow_unused=True))
    for a, b in zip(*found):
        assert (a is None) == (b is None), explain(op, sample, "gradient")
        assert a is None or same(a, b, 1e-12), explain(op, sample, f"gradient {b} instead of {a}")


# ---- what they are


def numbers():
    return torch.tensor([1 + 2j, 3 - 1j])


def facts(t):
    return t.is_conj(), t.is_neg(), t._is_view(), t.is_contiguous(), t.tolist()


def test_a_conjugate_is_a_view():
    x = numbers()
    c = x.conj()
    assert facts(c) == (True, False, True, True, [1 - 2j, 3 + 1j])
    assert c._base is x and c.data_ptr() == x.data_ptr() and c.untyped_storage().nbytes() == 16
    assert facts(c.conj()) == (False, False, True, True, x.tolist())
    assert facts(c.resolve_conj()) == (False, False, False, True, c.tolist())
    assert x.resolve_conj() is x and x.resolve_neg() is x and c.contiguous() is c and c.to(c.dtype) is c
    assert facts(c.imag) == (False, True, True, False, [-2.0, 1.0]) and c.imag._base is x
    assert facts(c.real) == (False, False, True, False, [1.0, 3.0])
    assert facts(torch._neg_view(c).imag) == (False, False, True, False, [2.0, -1.0])
    assert not c.clone().is_conj() and not torch.empty_like(c).is_conj() and not (c * 1).is_conj()
    assert torch.ones(2).conj().is_conj() is False
    assert c.detach().is_conj() and c.data.is_conj() and not c.detach()._is_view()
    assert torch.nn.Parameter(c).is_conj()
    assert torch.empty(2, dtype=torch.complex64, device="meta").conj().is_conj()
    assert repr(c) == "tensor([1.-2.j, 3.+1.j])" and repr(c.imag) == "tensor([-2.,  1.])"
    assert complex(c[0]) == 1 - 2j and c[0].item() == 1 - 2j and float(c.imag[1]) == 1.0
    assert [1, 2, 3][torch._neg_view(torch.tensor(-2))] == 3


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t[0], lambda t: t[1:], lambda t: t.view(2, 1), lambda t: t.reshape(1, 2).T,
        lambda t: t.expand(3, 2), lambda t: t.unbind()[0], lambda t: t.split(1)[1], lambda t: t.unsqueeze(0),
        lambda t: t.as_strided((2,), (1,)), lambda t: t.unfold(0, 1, 1), lambda t: t.detach(),
        lambda t: t.view_as(t), lambda t: t.chunk(2)[0], lambda t: t.reshape(1, 1, 2).permute(2, 0, 1),
    ],
)  # fmt: skip
def test_views_of_it_are_like_it(view):
    for lazy in (numbers().conj(), torch._neg_view(numbers()), numbers().conj().imag.neg()):
        seen, want = view(lazy), view(lazy.clone().contiguous())
        assert (seen.is_conj(), seen.is_neg()) == (lazy.is_conj(), lazy.is_neg())
        assert same(seen, want)


def write(change):
    x = numbers()
    c = x.conj()
    change(c)
    assert c.is_conj() and same(x.conj_physical(), c)
    return c.tolist()


def test_writes_go_through():
    assert write(lambda c: c.add_(1j)) == [1 - 1j, 3 + 2j]
    assert write(lambda c: c.fill_(2j)) == [2j, 2j]
    assert write(lambda c: c.__setitem__(0, 5j)) == [5j, 3 + 1j]
    assert write(lambda c: c.__setitem__([0], 5j)) == [5j, 3 + 1j]
    assert write(lambda c: c.__setitem__(torch.tensor([True, False]), 5j)) == [5j, 3 + 1j]
    assert write(lambda c: c.copy_(numbers())) == numbers().tolist()
    assert write(lambda c: c.copy_(c._base)) == numbers().tolist()
    assert write(lambda c: c._base.copy_(c)) == numbers().tolist()
    assert write(lambda c: c.conj_physical_()) == numbers().tolist()
    assert write(lambda c: torch.add(numbers(), 1, out=c)) == [2 + 2j, 4 - 1j]
    assert write(lambda c: setattr(c, "imag", torch.tensor([7.0, 8.0]))) == [1 + 7j, 3 + 8j]
    assert write(lambda c: c.imag.add_(1)) == [1 - 1j, 3 + 2j]
    assert write(lambda c: c.scatter_(0, torch.tensor([0]), torch.tensor([5j]))) == [5j, 3 + 1j]
    assert write(lambda c: c.mul_(c._base)) == [5, 10]
    assert (torch._neg_view(torch.zeros(3)).uniform_(1, 2) > 0).all()
    assert torch._neg_view(torch.zeros(1)).expand(3).fill_(2.0).tolist() == [2.0] * 3
    x = torch.ones(2)
    torch._foreach_add_([torch._neg_view(x)], 3.0)
    assert x.tolist() == [-2.0, -2.0]
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch._neg_view(torch.zeros(1)).expand(3).add_(2.0)


def test_what_is_refused():
    c = numbers().conj()
    for call, error, words in (
        (lambda: torch.view_as_real(c), RuntimeError, "doesn't work on unresolved conjugated tensors"),
        (lambda: c.view(torch.float32), RuntimeError, "not supported for conjugate view tensors"),
        (lambda: c.imag.view(torch.int32), RuntimeError, "not supported for tensors with negative bit set"),
        (lambda: c.__dlpack__(), BufferError, "Can't export tensors with the conjugate bit set"),
        (lambda: torch._neg_view(torch.tensor([True])).clone(), NotImplementedError, '"neg_cpu" not'),
    ):
        with pytest.raises(error, match=words):
            call()
    pytest.importorskip("numpy")
    with pytest.raises(RuntimeError, match="on Tensor that has conjugate bit set"):
        c.numpy()
    with pytest.raises(RuntimeError, match="on Tensor that has negative bit set"):
        c.imag.numpy()
    assert c.numpy(force=True).tolist() == c.tolist()


def test_copies_and_files():
    c = numbers().conj()
    for lazy in (c, c.imag, torch._neg_view(c)):
        assert same(copy.deepcopy(lazy), lazy) and not copy.deepcopy(lazy).is_conj()
        file = io.BytesIO()
        torch.save(lazy, file)
        file.seek(0)
        for again in (torch.load(file), pickle.loads(pickle.dumps(lazy)), copy.copy(lazy)):
            assert facts(again)[:2] == facts(lazy)[:2] and same(again, lazy)
    x = torch.tensor([1j])
    x.data = c
    assert x.is_conj() and x.tolist() == c.tolist()
    x.data = numbers()
    assert not x.is_conj() and x.tolist() == numbers().tolist()
    x.set_(c)
    assert not x.is_conj() and x.tolist() == numbers().tolist()
    k = numbers().conj().set_(torch.tensor([7j]))
    assert k.is_conj() and k.tolist() == [-7j] and (k * 1).tolist() == [-7j]


def test_a_view_again_on_another_base():
    x = numbers()
    for view in (x.conj(), x.conj()[1:], x.conj().imag, torch._neg_view(x.conj()).real):
        again = view._view_func(x * 2j)
        assert facts(again)[:2] == facts(view)[:2]
    assert x.conj()[1:]._view_func(x * 2).tolist() == [6 + 2j]
    assert x.conj().imag._view_func(x * 2).tolist() == [-4.0, 2.0]
    assert same(x.conj()._rev_view_func_unsafe(x.conj()), x)


# ---- gradients


def test_names_of_nodes():
    x = numbers().requires_grad_()
    names = [type(f(x).grad_fn).__name__ for f in (
        torch.conj, torch._neg_view, torch.conj_physical, lambda t: t.view(1, 2).mH,
        lambda t: t.conj().resolve_conj(), lambda t: t.conj().imag,
    )]  # fmt: skip
    assert names == ["ConjBackward0", "NegViewBackward0", "ConjPhysicalBackward0", "ConjBackward0",
                     "CloneBackward0", "SelectBackward0"]  # fmt: skip
    assert (x.conj() * x.conj()).grad_fn._saved_self.is_conj()


@pytest.mark.parametrize(
    "function",
    [
        lambda t: t.conj() * t,
        lambda t: t.conj().imag * t,
        lambda t: torch._neg_view(t.conj()).exp(),
        lambda t: (t * 1).conj().mul_(t),
        lambda t: written(t, lambda b: b.conj().mul_(t)),
        lambda t: written(t, lambda b: b.conj().imag.mul_(t.real)),
        lambda t: written(t, lambda b: b.conj()[0].mul_(1j)),
        lambda t: written(t, lambda b: torch._neg_view(b).exp_()),
        lambda t: written(t, lambda b: torch._neg_view(b.conj())[:1].copy_(t[1:])),
        lambda t: (t * 1).conj()[:1].mul_(t[1:]),
        lambda t: (t * 1).conj().imag.mul_(t.real),
        lambda t: view_of_written(t),
        lambda t: t.view(1, 2).mH @ t.view(1, 2),
        lambda t: torch.view_as_real(torch._neg_view(t)).exp(),
    ],
)
def test_gradients_of_views_and_writes(function):
    x = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128, requires_grad=True)
    gradcheck(torch, function, [x])
    gradgradcheck(torch, function, [x])


def written(t, change):
    base = t * 1
    change(base)
    return base * t


def view_of_written(t):
    base = t * 1
    view = base.conj()
    base.mul_(t)
    return view * t


def test_a_lazy_leaf_and_gradient():
    leaf = numbers().conj().requires_grad_()
    assert leaf.is_leaf
    plain = leaf.detach().clone().requires_grad_()
    for x in (leaf, plain):
        (x * x * x.abs()).sum().abs().backward(create_graph=True)
        x.grad.abs().sum().backward()
    assert same(leaf.grad, plain.grad, 1e-6)
    for rule in (lambda x: x * 1, lambda x: x.view(2), lambda x: -x, lambda x: x * 2 + x):
        x, g = numbers().requires_grad_(), numbers().conj()
        want = torch.autograd.grad(rule(x), x, g.clone())[0]
        assert same(torch.autograd.grad(rule(x), x, g)[0], want)
        for _ in range(2):
            rule(x).backward(g)
        assert same(x.grad, want * 2)
        x = torch.ones(2, requires_grad=True)
        rule(x).backward(torch._neg_view(torch.ones(1)).expand(2))
        rule(x).backward(torch._neg_view(torch.ones(2)))
        assert same(x.grad, torch.autograd.grad(rule(x), x, torch.full((2,), -2.0))[0])
    b = numbers().requires_grad_() * 1
    y = b.conj() * b.conj()
    b.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.abs().sum().backward()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        numbers().requires_grad_().conj().mul_(2)


def test_forward_mode():
    import rushlight.autograd.forward_ad as fwAD

    with fwAD.dual_level():
        d = fwAD.make_dual(torch.tensor([1 + 2j]), torch.tensor([3 - 1j]))
        c = d.conj()
        assert fwAD.unpack_dual(c).tangent.tolist() == [3 + 1j]
        assert fwAD.unpack_dual(c.imag).tangent.tolist() == [1.0]
        c.mul_(1j)
        assert fwAD.unpack_dual(d).tangent.tolist() == [-1 - 3j]
        assert fwAD.unpack_dual(c).tangent.tolist() == [-1 + 3j]
        b = torch.tensor([1 + 2j])
        c = b.conj()
        c.mul_(fwAD.make_dual(torch.tensor([2j]), torch.tensor([3 - 1j])))
        assert fwAD.unpack_dual(b).tangent.tolist() == [1 + 7j]
        assert fwAD.unpack_dual(c).tangent.tolist() == [1 - 7j]


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
@pytest.mark.parametrize("foreach", [False, True])
def test_optimizers_take_lazy_gradients_and_parameters(name, foreach):
    results = []
    for change in (lambda t: t, negative):
        p = torch.nn.Parameter(change(torch.tensor([1.0, 2.0])))
        p.grad = change(torch.tensor([0.5, -1.0]))
        optimizer = getattr(torch.optim, name)([p], lr=0.1, foreach=foreach)
        optimizer.step()
        optimizer.step()
        results.append(p.detach())
    assert same(*results, 1e-6)


def test_views_that_were_given_other_sizes_in_place_are_written_where_they_are():
    """Torch repeats the operation that made them, and fails or takes elements that are not the view's."""
    for turn, weights in (
        (lambda b: b.unsqueeze_(0), [[[1, 2], [3, 4], [5, 6]]]),
        (lambda b: b.transpose_(0, 1), [[1, 2, 3], [4, 5, 6]]),
    ):
        root = torch.ones(3, 2, dtype=torch.complex64, requires_grad=True)
        base = root.clone()
        view = base.real
        turn(view)
        view.mul_(torch.tensor(weights, dtype=torch.float32))
        base.sum().real.backward()
        expected = torch.tensor(weights, dtype=torch.float32)
        assert torch.equal(turn(root.grad.real.clone()), expected)
        again = torch.ones(3, 2, dtype=torch.complex64, requires_grad=True)
        view = again.clone().real
        turn(view)
        view.add_(1).backward(expected)
        assert torch.equal(turn(again.grad.real.clone()), expected)
