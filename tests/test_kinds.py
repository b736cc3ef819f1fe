"""What kind of function Python takes a public function for: Note [functions in classes]."""

import copy
import inspect
import pickle
import types

import pytest

import rushlight as torch
from rushlight import _C
from rushlight.nn import functional as F


class Net(torch.nn.Module):
    activation = torch.tanh
    smooth = F.gelu
    norm = torch.linalg.norm
    transform = torch.fft.fft
    gate = torch.special.expit
    scaled = torch.selu
    rectify = F.relu  # a Python function in torch, and so a method here


def test_native_functions_do_not_become_methods():
    net, x = Net(), torch.ones(2)
    for name in ("activation", "smooth", "norm", "transform", "gate", "scaled"):
        assert getattr(net, name) is getattr(Net, name)
        assert torch.equal(getattr(net, name)(x), getattr(Net, name)(x))
    assert net.activation(x).tolist() == x.tanh().tolist()
    assert isinstance(net.rectify, types.MethodType) and net.rectify.__self__ is net


class Own(torch.Tensor):
    activation = torch.tanh


def test_methods_of_tensors_are_bound():
    x = torch.ones(2).as_subclass(Own)
    assert x.activation(torch.zeros(2)).tolist() == [0.0, 0.0]
    assert x.tanh().shape == x.relu_().shape == (2,)


@pytest.mark.parametrize(
    "function", [torch.tanh, F.gelu, torch.linalg.norm, torch.fft.fft, torch.special.expit]
)
def test_native_functions_say_so(function):
    assert inspect.isbuiltin(function) and isinstance(function, types.BuiltinFunctionType)
    assert not inspect.isfunction(function) and inspect.isroutine(function)
    assert isinstance(function, _C.Function) and inspect.signature(function).parameters
    assert copy.deepcopy(function) is function and pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize(
    "function", [F.relu, F.cross_entropy, torch.einsum, torch.meshgrid, torch.Tensor.backward]
)
def test_python_functions_say_so(function):
    assert inspect.isfunction(function) and not inspect.isbuiltin(function)
    assert function.__code__.co_argcount >= 0 and inspect.getsource(function)
    assert copy.deepcopy(function) is function and pickle.loads(pickle.dumps(function)) is function


def test_methods_say_so():
    assert isinstance(torch.Tensor.abs, types.MethodDescriptorType)
    assert inspect.ismethoddescriptor(torch.Tensor.abs) and not inspect.isfunction(torch.Tensor.abs)
    assert not isinstance(torch.Tensor.split, types.MethodDescriptorType)
    assert "relu" in dict(inspect.getmembers(F, inspect.isfunction))
    with pytest.raises(TypeError):
        _C.make_builtin([len])
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Derived", (_C.Function,), {})


def test_names_of_layers():
    assert torch.typename(torch.nn.Linear(1, 1)) == torch.typename(torch.nn.Linear)
    assert torch.typename(torch.nn.Linear) == "torch.nn.modules.linear.Linear"
    assert torch.typename(torch.nn.MultiheadAttention) == "torch.nn.modules.activation.MultiheadAttention"
    assert torch.typename(torch.nn.LazyLinear) == "torch.nn.modules.linear.LazyLinear"
