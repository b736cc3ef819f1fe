"""Modes that see every function (TorchFunctionMode) or every operation below autograd (TorchDispatchMode)."""

import copy
import functools
import pickle
import threading

import pytest

import rushlight as torch
from rushlight._vmap_internals import _vmap
from rushlight.overrides import (
    BaseTorchFunctionMode,
    TorchFunctionMode,
    get_overridable_functions,
    get_testing_overrides,
    resolve_name,
)
from rushlight.utils._mode_utils import no_dispatch
from rushlight.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode
from rushlight.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
from rushlight.utils.flop_counter import FlopCounterMode


class Names(TorchFunctionMode):
    def __init__(self):
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(resolve_name(func))
        return func(*args, **(kwargs or {}))


class Operations(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_a_function_mode_sees_functions_operators_and_attributes():
    x = torch.ones(2, 2)
    with Names() as mode:
        x.shape, x[0], x + 1, 1 - x, -x, x.dim(), torch.ones(2)
        x += 1
        x[0] = 2.0
    assert mode.seen == [
        "torch.Tensor.shape.__get__", "torch.Tensor.__getitem__", "torch.Tensor.add", "torch.Tensor.__rsub__",
        "torch.Tensor.neg", "torch.Tensor.dim", "torch.ones", "torch.Tensor.add_", "torch.Tensor.__setitem__",
    ]  # fmt: skip
    mode.seen.clear()
    assert (x + 1).shape == (2, 2) and not mode.seen


def test_function_modes_nest_and_belong_to_a_thread():
    x = torch.ones(2)
    with Names() as outer, Names() as inner:
        x * 2
        other = threading.Thread(target=lambda: x * 3)
        other.start()
        other.join()
    assert outer.seen == inner.seen == ["torch.Tensor.mul"]
    with pytest.raises(ValueError), Names():
        raise ValueError
    assert torch.overrides._get_current_function_mode() is None


def test_function_modes_can_replace_and_be_switched_off():
    class Two(BaseTorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return 2 if func is torch.sum else super().__torch_function__(func, types, args, kwargs)

    x = torch.ones(3)
    with Two():
        assert torch.sum(x) == 2
        with torch.overrides.DisableTorchFunction():
            assert torch.sum(x) == 3


def test_overridable_functions_have_names_and_stand_ins():
    functions = get_overridable_functions()
    assert torch.exp in functions[torch] and torch.Tensor.add_ in functions[torch.Tensor]
    stand_ins = get_testing_overrides()
    assert stand_ins[torch.exp]() == -1 and len(stand_ins) > 800


def test_a_dispatch_mode_sees_forward_and_backward():
    x = torch.ones(2, requires_grad=True)
    with Operations() as mode:
        y = (x.exp() * 2).sum()
        y.backward()
        z = x.detach().clone()
        z.add_(1)
        with no_dispatch():
            z.exp()
    # The result of exp is saved, detached.
    first = ["aten.exp.default", "aten.detach.default", "aten.mul.Tensor", "aten.sum.default"]
    assert mode.seen[:4] == first
    assert mode.seen.count("aten.mul.Tensor") > 1 and mode.seen[-1] == "aten.add_.Tensor"
    assert torch.allclose(x.grad, 2 * x.detach().exp()) and z.tolist() == [2.0, 2.0] and z._version == 1
    seen = len(mode.seen)
    x.exp()
    assert len(mode.seen) == seen and _get_current_dispatch_mode() is None


def test_what_a_dispatch_mode_returns_takes_part_in_autograd():
    class Negated(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return -result if func is torch.ops.aten.exp.default else result

    x = torch.zeros(1, requires_grad=True)
    with Negated():
        y = x.exp()
    assert y.tolist() == [-1.0] and y.grad_fn.name() == "ExpBackward0"
    with pytest.raises(RuntimeError, match="Unable to cast 1 to Tensor"):

        class Wrong(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return 1

        with Wrong():
            x.exp()
    assert x.exp().tolist() == [1.0]


def test_a_profile_and_a_dispatch_mode_at_once():
    x = torch.ones(2)
    mode, profile = Operations(), torch.autograd.profiler.profile()
    mode.__enter__()
    profile.__enter__()
    x.exp()
    mode.__exit__()
    x.sin()
    profile.__exit__()
    x.cos()
    assert mode.seen == ["aten.exp.default"]
    assert [event.name for event in profile.function_events] == ["aten::exp", "aten::sin"]


def test_handles_of_operations():
    op = torch.ops.aten.max.dim
    assert str(op) == "aten.max.dim" and op.name() == "aten::max.dim" and op is torch.ops.aten.max.dim
    assert copy.deepcopy(op) is op and pickle.loads(pickle.dumps(op)) is op
    assert torch.ops.aten.add.Tensor(torch.ones(1), torch.ones(1), alpha=3).tolist() == [4.0]
    with pytest.raises(AttributeError, match="no overload name 'nosuch'"):
        torch.ops.aten.max.nosuch
    with pytest.raises(NotImplementedError, match="known by name only"):
        torch.ops.aten._cudnn_rnn.default(1)
    with pytest.raises(
        AttributeError, match="'_OpNamespace' 'aten' object has no attribute 'no_such_kernel'"
    ):
        torch.ops.aten.no_such_kernel


def test_selective_checkpoints_keep_what_the_policy_says():
    runs = []

    class Counted(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            runs.append(str(func))
            return func(*args, **(kwargs or {}))

    def f(x, w):
        return (x @ w).sin().exp()

    x, w = (torch.rand(3, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    expected = torch.autograd.grad(f(x, w).sum(), (x, w))
    for keep in ([torch.ops.aten.mm.default], lambda ctx, op, *a, **k: op is torch.ops.aten.mm.default):
        y = checkpoint(
            f,
            x,
            w,
            use_reentrant=False,
            context_fn=lambda keep=keep: create_selective_checkpoint_contexts(keep),
        )
        runs.clear()
        with Counted():
            got = torch.autograd.grad(y.sum(), (x, w), retain_graph=True)
        # Two products are of the gradient; the one of the function is not repeated.
        assert runs.count("aten.mm.default") == 2 and runs.count("aten.sin.default") == 1
        assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))
        with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
            torch.autograd.grad(y.sum(), (x, w))


def test_selective_checkpoints_repeat_writes_and_keep_nothing_that_is_written():
    def f(x):
        y = (x * 2).sin()
        y.mul_(3)
        return y.exp()

    def slope(kept):
        contexts = functools.partial(create_selective_checkpoint_contexts, [kept])
        return torch.autograd.grad(checkpoint(f, x, use_reentrant=False, context_fn=contexts).sum(), x)[0]

    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    assert torch.equal(slope(torch.ops.aten.mul.Tensor), torch.autograd.grad(f(x).sum(), x)[0])
    for written in (torch.ops.aten.sin.default, torch.ops.aten.mul_.Tensor):
        with pytest.raises(RuntimeError, match="has been mutated"):
            slope(written)


def test_flops_are_counted_by_operation_and_module():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with FlopCounterMode(display=False) as counter:
        model(torch.rand(3, 4, requires_grad=True)).sum().backward()
    counts = counter.get_flop_counts()
    assert counter.get_total_flops() == 864 and sum(counts["Sequential.0"].values()) == 576
    assert counts["Global"] == {torch.ops.aten.addmm: 288, torch.ops.aten.mm: 576}
    assert "Sequential.2" in counter.get_table()
    with FlopCounterMode(display=False) as counter:
        x, w = torch.rand(1, 3, 8, 8, requires_grad=True), torch.rand(4, 3, 3, 3, requires_grad=True)
        torch.nn.functional.conv2d(x, w).sum().backward()
    assert counter.get_total_flops() == 23328


def test_views_repeat_their_operations_if_told_to():
    def written(x):
        v = x.clone().view(-1)
        v.add_(1)
        return v

    x = torch.ones(2, 2, requires_grad=True)
    assert written(x).grad_fn.name() == "AsStridedBackward0"
    with torch.autograd._force_original_view_tracking(True):
        assert torch.autograd.is_view_replay_enabled()
        v = written(x)
    assert v.grad_fn.name() == "ViewBackward0" and not torch.autograd.is_view_replay_enabled()
    (v * torch.arange(4.0)).sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0], [2.0, 3.0]]


def test_tangents_lie_in_memory_as_their_tensors_do():
    fwAD = torch.autograd.forward_ad
    primal, tangent = torch.arange(5.0)[:4], torch.ones(4)
    with fwAD.dual_level():
        dual = fwAD.make_dual(primal, tangent)
        unpacked = fwAD.unpack_dual(dual).tangent
        unpacked.mul_(2)
        assert tangent.tolist() == [1.0] * 4 and unpacked.untyped_storage().nbytes() == 20
        assert dual.as_strided((5,), (1,), 0).shape == (5,)


def test_everything_made_in_inference_mode_is_an_inference_tensor():
    with torch.inference_mode():
        made = [torch.tensor([1.0, 2.0]), torch.arange(3.0), torch.rand(2), torch.ones(2) + 1, torch.eye(2)]
        made += [torch.from_dlpack(torch.ones(2)), torch.frombuffer(bytearray(8), dtype=torch.float32)]
    for tensor in made:
        assert tensor.is_inference()
        for change in (lambda t: t.resize_(7), lambda t: t.unsqueeze_(0), lambda t: t.set_(torch.ones(1))):
            with pytest.raises(
                RuntimeError, match="Inplace update to inference tensor outside InferenceMode"
            ):
                change(tensor)


def test_vmap_stacks_what_single_examples_give():
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(_vmap(torch.dot)(x, x), (x * x).sum(1))
    doubled, total = _vmap(lambda row, scale: (row * scale, row.sum()), (0, None), (1, 0))(x, 2)
    assert torch.equal(doubled, 2 * x.T) and torch.equal(total, x.sum(1))
    fwAD = torch.autograd.forward_ad
    with fwAD.dual_level():
        jacobian = _vmap(lambda t: fwAD.unpack_dual(fwAD.make_dual(x[0], t).sin()).tangent)(torch.eye(3))
    assert torch.equal(jacobian, torch.diag(x[0].cos()))
    with pytest.raises(ValueError, match="same size in the mapped dimension"):
        _vmap(torch.dot)(x, x.T)


def test_recording_switches_are_ordinary_objects():
    """What enters and leaves them is native (native/python/grad_switch.cpp); all else is Python's."""
    import inspect

    guard = torch.no_grad()
    assert guard.prev is False and str(inspect.signature(torch.no_grad)) == "()"
    with guard:
        assert guard.prev is True and not torch.is_grad_enabled()
        with torch.enable_grad() as entered:
            assert entered is None and torch.is_grad_enabled()
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    assert type(copy.copy(guard)) is torch.no_grad and copy.copy(guard).prev is True
    assert type(pickle.loads(pickle.dumps(guard))) is torch.no_grad
    assert torch.no_grad(torch.is_grad_enabled)() is False
    for wrong in ((None,), (len, len)):
        with pytest.raises(TypeError):
            torch.no_grad(*wrong)

    class Counted(torch.no_grad):
        def __init__(self):
            super().__init__()
            self.entered = 0

        def __enter__(self):
            super().__enter__()
            self.entered += 1
            return self

    with Counted() as counted:
        assert counted.entered == 1 and counted.prev is True and not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), torch.no_grad():
        _ = 1 / 0
    assert torch.is_grad_enabled()
