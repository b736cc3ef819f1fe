"""Tensor subclasses and `__torch_function__`: what is asked, under which name, and what comes back."""

import copy
import operator

import pytest

import rushlight as torch
from rushlight.nn import functional as F
from rushlight.overrides import (
    BaseTorchFunctionMode,
    TorchFunctionMode,
    get_ignored_functions,
    get_overridable_functions,
    get_testing_overrides,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    is_tensor_method_or_property,
    resolve_name,
    wrap_torch_function,
)


class Logged(torch.Tensor):
    seen: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(resolve_name(func).removeprefix("torch."))
        return super().__torch_function__(func, types, args, kwargs)


def logged(*size):
    x = torch.arange(1.0, 1 + torch.Size(size).numel()).reshape(size).as_subclass(Logged)
    Logged.seen.clear()
    return x


ASKED = [
    (lambda x: x + 1, "Tensor.add"), (lambda x: 1 + x, "Tensor.add"), (lambda x: 1 - x, "Tensor.__rsub__"),
    (lambda x: 2 / x, "Tensor.__rtruediv__"), (lambda x: 2**x, "Tensor.__rpow__"),
    (lambda x: 5 // x, "Tensor.__rfloordiv__"), (lambda x: 5 % x, "Tensor.__rmod__"),
    (lambda x: x**2, "Tensor.__pow__"), (lambda x: x // 2, "Tensor.__floordiv__"),
    (lambda x: x @ torch.ones(3, 2), "Tensor.matmul"), (lambda x: torch.ones(2, 2) @ x, "Tensor.matmul"),
    (lambda x: -x, "Tensor.neg"), (lambda x: +x, "Tensor.positive"), (abs, "Tensor.abs"),
    (lambda x: x == 1, "Tensor.__eq__"), (lambda x: x < 1, "Tensor.lt"),
    (lambda x: operator.lt(1, x), "Tensor.gt"),
    (lambda x: x.shape, "Tensor.shape.__get__"), (lambda x: x.T, "Tensor.T.__get__"),
    (lambda x: x.real, "Tensor.real.__get__"), (lambda x: x.is_meta, "Tensor.is_meta.__get__"),
    (lambda x: x.grad_fn, "Tensor.grad_fn.__get__"), (lambda x: x.size(0), "Tensor.size"),
    (lambda x: x.dim(), "Tensor.dim"), (lambda x: x.numel(), "Tensor.numel"), (len, "Tensor.__len__"),
    (lambda x: x[0], "Tensor.__getitem__"), (lambda x: operator.setitem(x, 0, 1.0), "Tensor.__setitem__"),
    (repr, "Tensor.__repr__"), (lambda x: f"{x}", "Tensor.__format__"),
    (lambda x: 1 in x, "Tensor.__contains__"),
    (lambda x: x.sum(), "Tensor.sum"), (torch.sum, "sum"), (lambda x: torch.cat([x, x]), "cat"),
    (F.relu, "nn.functional.relu"), (lambda x: torch.einsum("ij->ji", x), "functional.einsum"),
    (torch.linalg.norm, "linalg.norm"), (lambda x: torch.add(1, x), "add"),
    (lambda x: F.embedding(torch.tensor([0]), x), "nn.functional.embedding"),
]  # fmt: skip


@pytest.mark.parametrize("use, name", ASKED, ids=[name for _, name in ASKED])
def test_a_subclass_is_asked_once_under_torchs_name(use, name):
    x = logged(2, 3)
    use(x)
    assert Logged.seen == [name]


@pytest.mark.parametrize("convert, name", [(bool, "__bool__"), (float, "__float__"), (int, "__int__")])
def test_conversions_are_asked(convert, name):
    x = logged(1)
    assert convert(x) == 1
    assert Logged.seen == [f"Tensor.{name}"]


def test_results_are_of_the_subclass_and_know_their_history():
    x = torch.ones(2, requires_grad=True)
    y = x.as_subclass(Logged)
    assert y.requires_grad and y.grad_fn.name() == "AliasBackward0"
    z = 2 * y
    assert type(z) is Logged and type(y.T if y.dim() == 2 else y.view(2)) is Logged
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0] and type(x.grad) is torch.Tensor


def test_as_subclass_is_a_view_and_make_subclass_is_not():
    base = torch.zeros(2)
    view = base.as_subclass(Logged)
    view.add_(1)
    assert base.tolist() == [1.0, 1.0] and view._is_view()
    made = torch.Tensor._make_subclass(Logged, base, True)
    assert made.requires_grad and made.is_leaf and not made._is_view()


@pytest.mark.filterwarnings("ignore:To copy construct")
def test_data_is_taken_from_a_subclass_without_asking():
    x = logged(2)
    assert type(torch.tensor(x)) is torch.Tensor and torch.as_tensor(x) is x
    assert Logged.seen == []


class Refusing(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def test_nobody_answers():
    x = torch.ones(2).as_subclass(Refusing)
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+: 'Refusing' and 'int'"):
        x + 1
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch\.sum'; all __torch_function__"):
        torch.sum(x)
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch.Tensor.shape.__get__'"):
        x.shape
    with pytest.raises(TypeError, match="no implementation found for"):
        handle_torch_function(torch.sum, (x,), x)


def test_foreign_types_take_part():
    class Foreign:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    other = Foreign()
    assert torch.sum(other) == "sum" and torch.ones(1) + other == "add" and other + torch.ones(1) == "add"
    assert torch.ones(1) @ other == "matmul" and F.linear(other, other) == "linear"
    assert is_tensor_like(other) and has_torch_function([other]) and not has_torch_function([1])

    @wrap_torch_function(lambda a: (a,))
    def mine(a):
        return a

    assert mine(other) == "mine" and mine(3) == 3


def test_modes_see_plain_tensors():
    class Log(TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen.append(resolve_name(func).removeprefix("torch."))
            return func(*args, **(kwargs or {}))

    with Log() as mode, BaseTorchFunctionMode():
        x = torch.ones(2)
        x[0] = 3
        bool(x.sum() > 1)
        x.requires_grad = True
    assert mode.seen == [
        "ones", "Tensor.__setitem__", "Tensor.sum", "Tensor.gt", "Tensor.__bool__",
        "Tensor.requires_grad.__set__",
    ]  # fmt: skip
    with Log() as mode, torch._C.DisableTorchFunctionSubclass():
        torch.zeros(1)
    assert mode.seen == ["zeros"]
    with Log() as mode, torch._C.DisableTorchFunction():
        torch.zeros(1)
    assert mode.seen == []


def test_lists_of_what_can_be_overridden():
    spaces = get_overridable_functions()
    assert torch.add in spaces[torch] and torch.Tensor.add in spaces[torch.Tensor]
    assert torch.add is not torch.Tensor.add and resolve_name(torch.add) == "torch.add"
    assert spaces[torch.Tensor.shape] == [torch.Tensor.shape.__get__]
    assert torch.zeros in get_ignored_functions() and torch.zeros not in spaces[torch]
    overrides = get_testing_overrides()
    assert overrides[torch.add](1, 2) == -1 and len(overrides) > 1200
    assert is_tensor_method_or_property(torch.Tensor.add) and not is_tensor_method_or_property(torch.add)


@pytest.mark.parametrize("name", ["add", "sum", "mm", "relu", "where", "clamp"])
def test_every_function_asks(name):
    class Answer:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func

    function = getattr(torch, name)
    assert function(Answer()) is function


def test_copies_keep_strides_and_sharing():
    x = torch.arange(6.0).view(2, 3)
    a, b = copy.deepcopy((x.t(), x[0]))
    assert a.stride() == (1, 3)
    b[0] = 9
    assert a[0, 0] == 9 and x[0, 0] == 0


def test_copies_of_temporary_tensors_are_not_mixed_up():
    class Holder:
        def __init__(self, value):
            self.value = value

        def __deepcopy__(self, memo):
            # A tensor that lives for the length of this call only.
            return Holder(copy.deepcopy(torch.full((64,), float(self.value)), memo))

    copies = copy.deepcopy([Holder(k) for k in range(20)])
    assert [int(h.value[0]) for h in copies] == list(range(20))


def test_a_handler_enters_a_function_and_is_asked_about_its_parts():
    def scaled(a, b):
        if torch.overrides.has_torch_function((a, b)):
            return torch.overrides.handle_torch_function(scaled, (a, b), a, b)
        return a * b + 1

    seen = []

    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args, kwargs=None):
            seen.append(func.__name__)
            return torch.overrides.redispatch_function(func, types, args, kwargs)

    x = torch.tensor([3.0]).as_subclass(Seen)
    assert scaled(x, x).tolist() == [10.0] and seen == ["scaled", "mul"]
    assert torch.is_tensor in torch.overrides.get_ignored_functions()


def test_as_subclass_leaves_the_class():
    class Cloning(torch.Tensor):
        def clone(self):
            return self.as_subclass(torch.Tensor).clone().as_subclass(type(self))

    x = torch.ones(2).as_subclass(Cloning)
    assert type(x.as_subclass(torch.Tensor)) is torch.Tensor and type(x.clone()) is Cloning
