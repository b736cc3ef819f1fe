"""Tensor subclasses with a `__torch_dispatch__`: wrappers without data, asked below autograd."""

import copy
import gc
import pickle
import weakref

import pytest

import rushlight as torch
from rushlight.utils._python_dispatch import (
    TorchDispatchMode,
    is_traceable_wrapper_subclass,
    return_and_correct_aliasing,
    transform_subclass,
)
from rushlight.utils._pytree import tree_map


class Pair(torch.Tensor):
    """Two tensors that everything is done to."""

    @staticmethod
    def __new__(cls, a, b):
        options = {"strides": a.stride(), "storage_offset": a.storage_offset(), "dtype": a.dtype}
        return torch.Tensor._make_wrapper_subclass(cls, a.size(), device=a.device, **options)

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __repr__(self):
        return f"Pair({self.a.tolist()}, {self.b.tolist()})"

    def __tensor_flatten__(self):
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Pair(inner["a"], inner["b"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        one = [
            func(*(tree_map(lambda x, k=k: getattr(x, k) if isinstance(x, Pair) else x, args)), **kwargs)
            for k in ("a", "b")
        ]
        if isinstance(one[0], (tuple, list)):
            out = type(one[0])(Pair(x, y) for x, y in zip(*one, strict=True))
        else:
            out = Pair(*one) if isinstance(one[0], torch.Tensor) else one[0]
        return return_and_correct_aliasing(func, args, kwargs, out)


class Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        shown = [x for x in args if not isinstance(x, torch.Tensor)]
        self.calls.append((str(func).removeprefix("aten."), *shown, *(kwargs or {})))
        return func(*args, **(kwargs or {}))


def pair(*values, **options):
    return Pair(torch.tensor(values), 2 * torch.tensor(values)).requires_grad_(**options)


def test_a_wrapper_has_sizes_and_no_data():
    x = pair(1.0, 2.0, requires_grad=False)
    assert x.shape == (2,) and x.device.type == "cpu" and not x.is_meta and x.data_ptr() == 0
    assert type(x + 1) is Pair and repr(x + 1) == "Pair([2.0, 3.0], [3.0, 5.0])"
    for name in ("tolist", "numpy"):
        with pytest.raises(RuntimeError, match="not supported for tensor subclasses"):
            getattr(x, name)()
    with pytest.raises(TypeError, match="Tensor must define __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(torch.Tensor, (2,))


def test_gradients_of_wrappers_are_wrappers():
    x = pair(1.0, 2.0)
    y = (x * x).sin().sum()
    y.backward()
    assert type(x.grad) is Pair and not x.grad.requires_grad
    for part, given in ((x.grad.a, x.a), (x.grad.b, x.b)):
        assert torch.allclose(part, (given * given).cos() * 2 * given)
    (x * 3).sum().backward()
    plain = torch.ones(2, requires_grad=True)
    (x * plain).sum().backward()
    assert type(plain.grad) is Pair and repr(plain.grad) == "Pair([1.0, 2.0], [2.0, 4.0])"
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert repr(h) == "Pair([6.0, 12.0], [12.0, 24.0])"


def test_hooks_functions_modules_and_optimisers_take_wrappers():
    x, seen = pair(1.0, 2.0), []
    x.register_hook(lambda g: seen.append(type(g)))
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    y.sum().backward()
    assert seen == [Pair] and repr(x.grad) == "Pair([4.0, 4.0], [4.0, 4.0])"
    assert repr(y.grad) == "Pair([2.0, 2.0], [2.0, 2.0])"

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            assert isinstance(ctx.saved_tensors[0], Pair)
            return g * 2

    parameter = torch.nn.Parameter(pair(1.0, 2.0, requires_grad=False))
    assert isinstance(parameter, torch.nn.Parameter) and type(parameter) is Pair
    for kind in (torch.optim.SGD, torch.optim.Adam):
        optimiser = kind([parameter], lr=0.1)
        Twice.apply(parameter).sum().backward()
        optimiser.step()
        optimiser.zero_grad()
    assert torch.allclose(parameter.detach().a, torch.tensor([0.7, 1.7]))
    assert type(torch.nn.Linear(2, 1)(x)) is Pair


def test_views_of_wrappers_share_history_and_versions():
    x = pair(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    v = y.view(2, 2)
    assert v._is_view() and v._base is y
    v.mul_(3)
    y.sum().backward()
    assert (
        y._version == v._version == 1 and repr(x.grad) == "Pair([3.0, 3.0, 3.0, 3.0], [3.0, 3.0, 3.0, 3.0])"
    )
    assert [type(part) for part in x.detach().chunk(2)] == [Pair, Pair]


def test_wrappers_are_copied_taken_apart_and_freed():
    x = pair(1.0, 2.0)
    again = copy.deepcopy(x)
    assert repr(again) == repr(x) and again.a is not x.a and again.requires_grad
    assert repr(copy.copy(x)) == repr(x)
    assert is_traceable_wrapper_subclass(x)
    assert repr(transform_subclass(x.detach(), lambda name, t: t * 2)) == "Pair([2.0, 4.0], [4.0, 8.0])"
    assert repr(pickle.loads(pickle.dumps(x.detach()))) == repr(x)
    y = x.exp().sum()
    y.backward()
    weak = weakref.ref(x)
    del x, y
    gc.collect()
    assert weak() is None


def test_nobody_answers():
    class Silent(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    x = torch.Tensor._make_subclass(Silent, torch.ones(2))
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch._ops.aten.exp.default'"):
        x.exp()
    with torch._C._DisableTorchDispatch():
        assert x.exp().shape == (2,)

    class Wrong(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return "nothing"

    with pytest.raises(RuntimeError, match="Unable to cast nothing to Tensor"):
        torch.Tensor._make_subclass(Wrong, torch.ones(2)).add_(1)


def test_modes_see_factories_conversions_and_numbers():
    with Seen() as mode:
        x = torch.ones(2, 3)
        x.to(torch.float64)
        torch.zeros_like(x)
        x.detach()
        x[0, 0].item()
        float(x.sum(1, keepdim=True)[0, 0])
        torch.tensor([1.0])
        x.zero_()
        torch.abs(x, out=torch.empty(0))
    assert mode.calls == [
        ("ones.default", [2, 3], "device", "pin_memory"), ("_to_copy.default", "dtype"),
        ("zeros_like.default", "pin_memory"), ("detach.default",), ("select.int", 0, 0), ("select.int", 0, 0),
        ("_local_scalar_dense.default",), ("sum.dim_IntList", [1], True), ("select.int", 0, 0),
        ("select.int", 0, 0), ("_local_scalar_dense.default",), ("lift_fresh.default",), ("zero_.default",),
        ("empty.memory_format", [0], "device", "pin_memory"), ("abs.out", "out"),
    ]  # fmt: skip
    assert torch.ones(2).tolist() == [1.0, 1.0] and torch._C._len_torch_dispatch_stack() == 0


def test_writes_under_a_mode_are_counted_once():
    with Seen():
        x = torch.ones(2, 2, requires_grad=True)
        y = x * 1
        v = y.view(4)
        v.mul_(2)
        y.sum().backward()
    assert y._version == 1 and x.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_operations_of_torch_ops_take_torchs_arguments():
    aten = torch.ops.aten
    x, y = torch.tensor([1.0, 3.0]), torch.tensor([2.0, 1.0])
    assert [aten.mse_loss(x, y, k).tolist() for k in (0, 1, 2)] == [[1.0, 4.0], 2.5, 5.0]
    assert aten.smooth_l1_loss(x, y, 2, 0.5).item() == 2.5
    assert torch.allclose(aten.elu(-x, 2.0, 3.0, 0.5), 6 * torch.expm1(-x / 2))
    assert type(aten.max.dim(x, 0)) is tuple and type(aten.split.Tensor(x, 1)) is list
    assert aten.unique_consecutive(x)[1].numel() == 0
    assert aten.reflection_pad1d(x[None], [1, 1]).tolist() == [[3.0, 1.0, 3.0, 1.0]]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses_of_wrappers(reduction):
    x = pair(1.0, 2.0)
    loss = torch.nn.functional.mse_loss(x, torch.zeros(2), reduction=reduction)
    assert torch.equal(
        loss.detach().b, torch.nn.functional.mse_loss(x.b, torch.zeros(2), reduction=reduction)
    )


def test_missing_gradients_among_wrappers_are_zeros():
    for first in (
        lambda x: x.unbind()[0],
        lambda x: x.chunk(2)[0],
        lambda x: x.cumsum(0),
        lambda x: x.ceil(),
    ):
        x = pair(1.0, 2.0)
        first(x).sum().backward()
        plain = x.a.clone().requires_grad_()
        first(plain).sum().backward()
        assert type(x.grad) is Pair and torch.equal(x.grad.a, plain.grad)


def test_wrappers_are_saved(tmp_path):
    x = pair(1.0, 2.0)
    torch.save(x.detach(), tmp_path / "wrapper.pt")
    assert repr(torch.load(tmp_path / "wrapper.pt", weights_only=False)) == repr(x)


def test_a_handler_may_record_again():
    seen = []

    class Inside(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            with torch.overrides.enable_reentrant_dispatch():
                z = torch.ones(2, requires_grad=True)
                (z * 3).sum().backward()
                seen.append((z.grad.tolist(), torch.is_grad_enabled()))
            return torch.ones(1)

    x = torch.Tensor._make_subclass(Inside, torch.ones(1))
    assert (x + 1).tolist() == [1.0] and seen == [([3.0, 3.0], True)] and torch.is_grad_enabled()


def test_handles_say_what_they_are():
    assert torch.ops.aten.view.default.is_view and not torch.ops.aten.add.Tensor.is_view
    schema = torch.ops.aten.add.Tensor._schema
    assert (schema.name, schema.overload_name) == ("aten::add", "Tensor")
    assert [each.name for each in schema.arguments] == ["self", "other", "alpha"]


def test_checkpoints_custom_operations_and_saved_hooks_take_wrappers():
    x = pair(1.0, 2.0)
    torch.utils.checkpoint.checkpoint(lambda t: t.sin().exp(), x, use_reentrant=False).sum().backward()
    plain = x.b.clone().requires_grad_()
    plain.sin().exp().sum().backward()
    assert torch.allclose(x.grad.b, plain.grad)

    @torch.library.custom_op("dispatch_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    with Seen() as mode:
        twice(torch.ones(2))
    assert mode.calls[-1] == ("dispatch_test.twice.default",)
    assert repr(twice(x.detach())) == "Pair([2.0, 4.0], [4.0, 8.0])"


def test_gradients_are_assigned_across_wrappers():
    x, plain = pair(1.0, 2.0), torch.ones(2, requires_grad=True)
    plain.grad, x.grad = x.detach(), torch.ones(2)
    assert type(plain.grad) is Pair and x.grad.tolist() == [1.0, 1.0]
    assert (
        repr(x.detach().view(torch.int32)) == f"Pair({x.a.view(torch.int32).tolist()}, "
        f"{x.b.view(torch.int32).tolist()})"
    )
    with Seen() as mode:
        torch.ones(2).view(torch.int32)
    assert mode.calls[-1] == ("view.dtype", torch.int32)


def test_a_class_is_asked_for_sizes_strides_device_and_layout():
    asked = []

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, data, **options):
            made = torch.Tensor._make_wrapper_subclass(cls, (1,), dtype=data.dtype, **options)
            made.inner = data
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            asked.append(str(func))
            return func(*(a.inner if isinstance(a, Wrapper) else a for a in args), **(kwargs or {}))

    def answers(wrapper, read):
        asked.clear()
        return read(wrapper), list(asked)

    data = torch.ones(2, 3)
    sizes = Wrapper(data, dispatch_sizes_strides_policy="sizes")
    assert answers(sizes, lambda w: w.shape) == ((2, 3), ["aten.sym_size.default"])
    assert answers(sizes, lambda w: w.stride()) == ((3, 1), ["aten.sym_stride.default"])
    assert answers(sizes, lambda w: w.numel()) == (6, ["aten.sym_numel.default"])
    assert answers(sizes, len) == (2, ["aten.dim.default", "aten.sym_size.default"])
    assert answers(sizes, lambda w: w.size(-1))[0] == 3
    strides = Wrapper(data, dispatch_sizes_strides_policy="strides")
    assert answers(strides, lambda w: w.shape) == ((1,), [])
    assert answers(strides, lambda w: w.is_contiguous()) == (True, ["aten.is_contiguous.default"])
    plain = Wrapper(data)
    assert answers(plain, lambda w: (w.shape, w.stride(), w.device.type)) == (((1,), (1,), "cpu"), [])
    device = Wrapper(data, dispatch_device=True, dispatch_layout=True)
    assert answers(device, lambda w: w.device) == (torch.device("cpu"), ["prim.device.default"])
    assert answers(device, lambda w: w.layout) == (torch.strided, ["prim.layout.default"])
    with pytest.raises(ValueError, match="Unknown sizes_strides_policy: bad; expected 'strides' or 'sizes'"):
        Wrapper(data, dispatch_sizes_strides_policy="bad")
    for name in ("size", "stride", "shape", "device", "layout"):  # by which classes see they left it alone
        assert getattr(Wrapper, name) is getattr(torch.Tensor, name)


def test_a_class_that_moves_its_views_to_the_memory_of_their_base_counts_writes_with_it():
    class Moving(torch.Tensor):
        @staticmethod
        def __new__(cls, inner, requires_grad=False):
            made = torch.Tensor._make_wrapper_subclass(
                cls, inner.shape, dtype=inner.dtype, requires_grad=requires_grad
            )
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            inner = [a.inner if isinstance(a, Moving) else a for a in args]
            made = Moving(func(*inner, **(kwargs or {})))
            if str(func) in ("aten.detach.default", "aten.view.default"):
                with torch._C._DisableTorchDispatch():
                    made.set_(func(*args))
            return made

    x = Moving(torch.tensor([2.0, 4.0]), requires_grad=True)
    y = x.reciprocal()
    assert (y.detach()._version, y.view(2)._version) == (0, 0)
    (grad,) = torch.autograd.grad(y, x, Moving(torch.ones(2)))
    assert grad.inner.tolist() == [-0.25, -0.0625]
    y = x.exp()
    y.view(2).mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(y, x, Moving(torch.ones(2)))


def test_saved_indices_and_gradients_made_real_stay_of_the_class():
    x = Pair(torch.tensor([3.0, 1.0, 2.0]), torch.tensor([1.0, 2.0, 3.0])).requires_grad_()
    weights = torch.tensor([1.0, 2.0, 3.0])
    (x.sort()[0] * weights).sum().backward()
    assert (x.grad.a.tolist(), x.grad.b.tolist()) == ([3.0, 1.0, 2.0], [1.0, 2.0, 3.0])
    (grad,) = torch.autograd.grad(x.sort()[0].sum(), x, create_graph=True)
    assert type(grad) is Pair and grad.a.tolist() == [1.0, 1.0, 1.0]
    with Seen() as mode:
        x.to(torch.complex64).abs().sum().backward()
    assert "view_as_real.default" in [call[0] for call in mode.calls]


def test_copies_have_the_attributes_and_slots():
    class Slotted(torch.Tensor):
        __slots__ = ("log", "unset")

        def new_empty(self, shape):  # without it torch refuses the copy, too
            return super().new_empty(shape).as_subclass(Slotted)

    x = torch.ones(2).as_subclass(Slotted)
    x.log, x.more = [1], {2}
    first, second = copy.deepcopy([x, x])
    assert first is second and type(first) is Slotted
    assert (first.log, first.more, hasattr(first, "unset")) == ([1], {2}, False)
    assert first.log is not x.log

    x = Pair(torch.ones(2), torch.zeros(2))
    x.note = [x.a]
    twin = copy.deepcopy(x)
    assert twin.note[0] is twin.a and twin.a is not x.a


def test_wrappers_take_everything_by_position_and_answer_what_their_class_does_not():
    class Silent(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return None

    make = torch.Tensor._make_wrapper_subclass
    t = make(Silent, (2, 3), (3, 1), 1, None, torch.float64, torch.strided, "cpu", False, True, "sizes")
    assert (t.shape, t.stride(), t.storage_offset(), t.numel()) == ((2, 3), (3, 1), 1, 6)
    assert t.dtype == torch.float64 and t.requires_grad
    with pytest.raises(RuntimeError, match="setting storage offset without stride not supported"):
        make(Silent, (2, 3), storage_offset=1)


def test_functions_keep_their_checks_while_somebody_looks_on():
    numbers = torch.arange(9.0)
    with pytest.raises(RuntimeError, match="refer to a single memory location"), Seen():
        torch.nn.functional.hardshrink(numbers[2:7], out=numbers[3:8])
    with pytest.raises(AttributeError, match="'int' object has no attribute 'dim'"), Seen():
        torch.nn.functional.glu(1)


def test_views_of_wrappers_are_made_again_step_by_step():
    x = Pair(torch.arange(8.0), torch.arange(8.0) * 2)
    row = x.view(2, 4)[0]
    again = row._view_func_unsafe(x.clone(), lambda number: 1 if number == 0 else number)
    assert (again.a.tolist(), again.b.tolist()) == ([4, 5, 6, 7], [8, 10, 12, 14])
    seen = []
    parts = x.view(2, 4).t().split(2)
    again = parts[1]._view_func_unsafe(x.clone(), lambda number: seen.append(number) or number)
    assert again.a.tolist() == parts[1].a.tolist() and seen == [2, 4, 2]
    for view in (row, x[1:3], x.unsqueeze(0).expand(2, 8), *parts):
        back = view._rev_view_func_unsafe(view.detach())
        assert type(back) is Pair and back.shape == x.shape and back._is_view()
        assert back.a.tolist() == x.a.tolist() and back.b.tolist() == x.b.tolist()


def test_jacobians_of_wrappers_are_wrappers():
    x = Pair(torch.ones(2), torch.ones(2) * 2)
    for function in (lambda x: x, lambda x: x.sum(), lambda x: x * 2):
        for strategy in ("reverse-mode", "forward-mode"):
            found = torch.autograd.functional.jacobian(function, x, vectorize=True, strategy=strategy)
            assert type(found) is Pair and torch.equal(found.a, found.b)


def test_errors_call_a_wrapper_what_it_claims_to_be():
    x = Pair(torch.ones(2), torch.ones(2)).requires_grad_()
    y = x.exp()
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match=r"operation: \[torch.FloatTensor \[2\]\], which is output 0"):
        y.sum().backward()
    x.register_hook(lambda grad: Pair(torch.ones(2).double(), torch.ones(2).double()))
    with pytest.raises(RuntimeError, match=r"\(was torch.FloatTensor got torch.DoubleTensor\)"):
        (x * 2).sum().backward()


def test_a_view_that_a_mode_answers_with_leaves_the_base_that_it_had():
    pairs, x = torch.ones(2, dtype=torch.complex64), torch.ones(4)
    answers = [torch.view_as_real(pairs)]

    class Other(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return answers.pop() if func is torch.ops.aten.view.default else func(*args, **(kwargs or {}))

    with Other():
        view = x.view(2, 2)
    assert view._base is x
    del view
    gc.collect()
    # Neither is held by anybody any more.
    torch.utils.swap_tensors(x, torch.zeros(4))
    torch.utils.swap_tensors(pairs, torch.zeros(2, dtype=torch.complex64))
    assert not x.any() and not pairs.any()
