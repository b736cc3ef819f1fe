"""Autograd of views and writes in place."""

import pytest

import rushlight as torch


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def test_in_place_changes_history():
    x = leaf(1.0, 2.0)
    y = x * 1
    y.mul_(3)
    assert y.grad_fn.name() == "MulBackward0"
    y.backward(torch.ones(2))
    assert x.grad.tolist() == [3.0, 3.0]


def test_write_into_view_reaches_base():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    y[0].mul_(5)
    assert y.grad_fn.name() == "torch::autograd::CopySlices"
    (y * y).backward(torch.ones(3))
    assert x.grad.tolist() == [50.0, 4.0, 6.0]


def test_write_into_base_reaches_view():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    v = y.view(3, 1)
    y.mul_(2)
    (v * v).backward(torch.ones(3, 1))
    assert x.grad.tolist() == [8.0, 16.0, 24.0]


def test_sibling_views():
    x = torch.arange(6.0).requires_grad_()
    y = x.clone()
    a, b = y[:3], y[2:]
    a.mul_(b[:3].clone())
    (b.exp() * y.sin()[2:]).backward(torch.ones(4))
    torch.manual_seed(0)
    expected = x.grad.clone()
    x.grad = None
    first = x[:3] * x[2:5]
    whole = [first[0], first[1], first[2], x[3], x[4], x[5]]
    total = sum(whole[i].exp() * whole[i].sin() for i in range(2, 6))
    total.backward()
    assert all(abs(p - q) < 1e-4 for p, q in zip(expected.tolist(), x.grad.tolist(), strict=True))


def test_view_of_plain_tensor_follows_its_base():
    w = leaf(2.0)
    base = torch.ones(4)
    view = base[1:3]
    base.mul_(w)
    assert view.requires_grad
    view.backward(torch.ones(2))
    assert w.grad.item() == 2.0


def test_leaf_in_place_is_refused():
    x = leaf(1.0)
    with pytest.raises(
        RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"
    ):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[0].add_(1)
    with torch.no_grad():
        x.add_(1)
    assert x.tolist() == [2.0] and x._version == 1


def test_version_is_shared_by_views_and_detach():
    x = torch.zeros(3)
    x[0].add_(1)
    x.detach().add_(1)
    assert x._version == 2
    assert x._base is None and x[0]._base is x


def test_modified_saved_value():
    x = leaf(1.0, 2.0)
    y = x * 2
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
        z.backward(torch.ones(2))
    text = str(caught.value)
    assert "z = y * y" in text and "y.add_(1)" in text


def test_data_write_warns_with_both_lines(tmp_path):
    import subprocess
    import sys
    import textwrap

    program = textwrap.dedent("""
        import warnings
        import rushlight as torch
        x = torch.ones(2, requires_grad=True)
        y = x * x
        x.data.mul_(2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            y.backward(torch.ones(2))
        print(caught[0].message)
    """)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "changed through .data" in done.stdout
    assert "line 5" in done.stdout and "line 6" in done.stdout


def test_parameters_and_tangents_of_moved_tensors_count_with_them():
    moved, shared = torch.ones(3), torch.zeros(3)
    moved.data = shared
    parameter = torch.nn.Parameter(moved)
    w = torch.ones(3, requires_grad=True)
    y = w * moved
    with torch.no_grad():
        parameter.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx, tangent):
            return tangent.mul_(2)

    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.ones(3), moved)
        tangent = torch.autograd.forward_ad.unpack_dual(Twice.apply(dual)).tangent
    assert tangent.tolist() == [2.0, 2.0, 2.0]


def test_a_view_made_without_recording_leads_nowhere():
    y = torch.ones(2, 2, requires_grad=True) * 2
    with torch.no_grad():
        v = y.view(-1)
    assert torch.autograd.grad(y.sum(), [v], allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        v.backward(torch.ones(4))


def test_views_in_place_of_a_leaf_are_refused_whatever_their_arguments():
    x = torch.ones(2, 2, 3, requires_grad=True)
    for write in (lambda: x.t_(), lambda: x.transpose_(5, 6), lambda: x.unsqueeze_(0)):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            write()


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.float32, torch.complex128])
def test_bytes_seen_as_a_dtype_have_no_gradient(dtype):
    x = torch.ones(4, dtype=torch.float64, requires_grad=True)
    seen = x.view(dtype)
    assert not seen.requires_grad and not seen._is_view() and seen.data_ptr() == x.data_ptr()
    seen.zero_()
    assert x._version == 1 and not x.any()


def test_gradcheck_leaves_no_write_behind():
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    x.data.mul_(2)
    seen = torch._C.silent_writes(x)

    def stumbling(value):
        if bool((value != 2).any()):
            raise KeyError
        return value * 2

    assert torch.autograd.gradcheck(torch.sin, (x,))
    with pytest.raises(KeyError):
        torch.autograd.gradcheck(stumbling, (x,))
    assert seen == torch._C.silent_writes(x) == 1
    assert x.tolist() == [2, 2] and x._version == 0
