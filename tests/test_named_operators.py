"""Operators called by name, and the native slots that they leave alone: Note [operators by name]."""

import copy
import operator
import pickle
import types

import pytest

import rushlight as torch
from rushlight import _C


@pytest.fixture
def t():
    return torch.tensor([1.0, 2.0])


def test_arguments_are_those_of_the_function(t):
    assert t.__add__(other=1).tolist() == [2.0, 3.0]
    assert t.__add__(1, alpha=3).tolist() == [4.0, 5.0]
    assert t.__truediv__(2, rounding_mode="floor").tolist() == [0.0, 1.0]
    assert t.__pow__(exponent=2).tolist() == [1.0, 4.0]
    assert torch.Tensor.__rsub__(t, other=5).tolist() == [4.0, 3.0]
    assert torch.Tensor.__rmod__(5.0, t).tolist() == [1.0, 2.0]


def test_what_does_not_fit_is_not_implemented(t):
    for name in ("__add__", "__isub__", "__rmul__", "__eq__", "__and__", "__rpow__", "__matmul__"):
        method = getattr(torch.Tensor, name)
        assert method(t) is NotImplemented
        assert method(t, 1, 2, 3) is NotImplemented
        assert method(t, bogus=1) is NotImplemented
        assert method(t, "a") is NotImplemented
    with pytest.raises(
        TypeError, match=r"descriptor '__add__' for 'torch._C.TensorBase' objects doesn't apply"
    ):
        torch.Tensor.__add__(2.0, t)
    with pytest.raises(TypeError, match=r"Tensor.__len__\(\) takes 1 positional argument but 2 were given"):
        t.__len__(1)


def test_they_are_methods_of_the_base():
    base = torch.Tensor.__mro__[1]
    assert isinstance(torch.Tensor.__add__, types.MethodDescriptorType)
    assert torch.Tensor.__add__.__objclass__ is base
    assert isinstance(torch.Tensor.__rsub__, types.FunctionType)
    assert torch.Tensor.__abs__ is torch.Tensor.abs
    assert pickle.loads(pickle.dumps(torch.Tensor.__add__)) is torch.Tensor.__add__
    assert pickle.loads(pickle.dumps(str.upper)) is str.upper
    # Their first argument is taken for a tensor: nothing else may have them.
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Other", (base, int), {})


class Plain(torch.Tensor):
    pass


class Counted(torch.Tensor):
    """Its own addition and length; what it does not define is Tensor's."""

    seen = 0

    def __add__(self, other):
        type(self).seen += 1
        return super().__add__(other)

    def __len__(self):
        return 7


class Deeper(Counted):
    pass


class Compared(torch.Tensor):
    def __eq__(self, other):
        return "compared"

    __hash__ = torch.Tensor.__hash__


class Silent(torch.Tensor):
    def __init_subclass__(cls, **kwargs):
        pass


def test_subclasses_keep_native_slots():
    for cls in (torch.nn.Parameter, torch.nn.Buffer, Plain, Counted, Deeper, Compared):
        assert _C.keep_native_operators(cls) == 0
    unasked = type("Unasked", (Silent,), {})  # works all the same, by looking methods up
    x = torch.ones(2).as_subclass(unasked)
    assert (2 - x * 3).tolist() == [-1.0, -1.0]
    assert _C.keep_native_operators(unasked) > 30
    assert (2 - x * 3).tolist() == [-1.0, -1.0]
    with pytest.raises(TypeError):
        _C.keep_native_operators(int)


@pytest.mark.parametrize("cls", [Counted, Deeper])
def test_own_methods_are_respected(cls, t):
    x = t.as_subclass(cls)
    before = cls.seen
    assert (x + 1).tolist() == [2.0, 3.0] and cls.seen == before + 1
    assert len(x) == 7 and len(t) == 2
    assert (x * 2).tolist() == [2.0, 4.0]
    y = t.as_subclass(Compared)
    assert (y == 1) == "compared" and (y != 1).tolist() == [False, True] and hash(y) == id(y)


def test_methods_set_later_are_respected(t):
    class Late(torch.Tensor):
        pass

    x = t.as_subclass(Late)
    Late.__mul__ = lambda self, other: "late"
    assert x * 2 == "late" and (t * 2).tolist() == [2.0, 4.0]
    del Late.__mul__
    assert (x * 2).tolist() == [2.0, 4.0]


def test_python_asks_by_slot_and_by_name_alike(t):
    x = torch.tensor([3, 5])
    for name in (
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "and",
        "or",
        "xor",
        "lshift",
        "rshift",
    ):
        apply = getattr(operator, name + "_" * (name in ("and", "or")))
        assert getattr(x, f"__{name}__")(2).tolist() == apply(x, 2).tolist()
        if name not in ("and", "or", "xor"):
            assert getattr(x, f"__r{name}__")(2).tolist() == apply(2, x).tolist()
    one = torch.tensor(4)
    assert one.__index__() == 4 == one.__int__() == one.__long__() and one.__float__() == 4.0
    assert one.__bool__() is one.__nonzero__() is True and one.__invert__().item() == -5


def test_object_protocol_by_name(t):
    assert "add" in t.__dir__() and t.__dir__() == sorted(t.__dir__())
    assert copy.copy(t).tolist() == t.__deepcopy__({}).tolist() == [1.0, 2.0]
    rebuild, state = t.__reduce_ex__(2)[:2]
    assert rebuild(*state).tolist() == [1.0, 2.0]
    assert torch.Tensor.__contains__(t, 2.0) and [*t.__reversed__()] == [2.0, 1.0]
    assert t.__format__("") == str(t)
    with pytest.raises(TypeError, match="argument must be str, not bytes"):
        t.__format__(b"")


FUNCTIONS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
    "eq": "eq", "lt": "lt",
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("by", ["function", "super"])
def test_an_own_operator_may_call_the_function_of_its_name(name, by):
    def through_function(self, other):
        return getattr(torch, FUNCTIONS[name])(self, other)

    def through_super(self, other):
        return getattr(super(type(self), self), f"__{name}__")(other)

    method = through_function if by == "function" else through_super
    cls = type("Own", (torch.Tensor,), {f"__{name}__": method, "__hash__": torch.Tensor.__hash__})
    data = torch.tensor([[1, 2], [3, 4]])
    apply = getattr(operator, name + "_" * (name in ("and", "or")))
    assert apply(data.as_subclass(cls), data).tolist() == apply(data, data).tolist()
    assert apply(data, data.as_subclass(cls)).tolist() == apply(data, data).tolist()
    if name != "matmul":
        assert apply(2, data.as_subclass(cls)).tolist() == apply(2, data).tolist()
