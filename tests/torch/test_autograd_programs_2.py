"""More small programs about what torch's tests of its autograd ask: subclasses, modes, copies, profiles."""

import copy
from importlib import import_module

import pytest
import torch
from outcomes import collector, err, outcome

import rushlight

pytestmark = pytest.mark.torch

CASES, case = collector()


def pair_type(torch):
    """A wrapper of two tensors that does everything with both."""

    class Pair(torch.Tensor):
        @staticmethod
        def __new__(cls, a, b):
            return torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype)

        def __init__(self, a, b):
            self.a, self.b = a, b

        def __repr__(self):
            return f"Pair({self.a}, {self.b})"

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            halves = [
                function(*(getattr(x, half) if isinstance(x, Pair) else x for x in args), **(kwargs or {}))
                for half in ("a", "b")
            ]
            return Pair(*halves)

    return Pair


@case("copies of subclasses need a new_empty or a clone that keeps the class")
def _(torch):
    class Silent(torch.Tensor):
        pass

    class Deaf(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    class Empty(torch.Tensor):
        def new_empty(self, shape):
            return type(self)(shape)

    class Cloned(torch.Tensor):
        def clone(self):
            return super().clone().as_subclass(Cloned)

    found = []
    for kind in (Silent, Deaf, Empty, Cloned):
        for tensor in (torch.ones(2), torch.ones(0), torch.ones(2, device="meta")):
            x = tensor.as_subclass(kind).requires_grad_()
            x.mark = [kind.__name__]
            x.grad = torch.zeros_like(tensor)
            copied = err(copy.deepcopy, x)
            if not isinstance(copied, str):
                copied = type(copied).__name__, copied.mark, copied.grad
            found.append(copied)
    layer = torch.nn.Linear(2, 2)
    layer.weight = torch.nn.Parameter(torch.ones(2, 2).as_subclass(Silent))
    return found, err(copy.deepcopy, layer)


@case("copies of wrappers have their gradients")
def _(torch):
    pair = pair_type(torch)
    x = pair(torch.ones(2), torch.zeros(2)).requires_grad_()
    (x * 3).sum().backward()
    first, second = copy.deepcopy([x, x])
    return first is second, first, first.grad, first.grad is x.grad, first.requires_grad


@case("a view is made for the program, not for the mode that computes it")
def _(torch):
    log = []
    mode = import_module(f"{torch.__name__}.utils._python_dispatch").TorchDispatchMode

    class Log(mode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            for part in result if isinstance(result, (list, tuple)) else [result]:
                log.append((str(function), part.requires_grad, part._is_view(), part._base is None))
            return result

    leaf = torch.ones(2, 2, requires_grad=True)
    for x in (leaf, leaf * 1):
        with Log():
            views = [x.t(), x.view(4), x[0], x.diagonal(), x.expand(3, 2, 2), x.as_strided([2], [1])]
            views += [*x.unbind(), *x.split(1), x.unfold(0, 1, 1), torch.view_as_complex(x)]
            views += [x.view_as(x), x.detach(), x * 1]
            with torch.no_grad():
                views += [x.t(), x.reshape(4)]
        log += [(v.requires_grad, v._base is x, v._version, v.grad_fn and v.grad_fn.name()) for v in views]
    views[0].detach().add_(1)
    return log, leaf._version, x._version


@case("views of wrappers inside wrappers do not require grad in a backward")
def _(torch):
    log = []

    class Asking(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            wrapper = torch.Tensor._make_wrapper_subclass
            return wrapper(cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad)

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            log.append(str(function))
            args = [x.inner if isinstance(x, Asking) else x for x in args]
            return Asking(function(*args, **(kwargs or {})))

    x = Asking(torch.ones(2, 2, requires_grad=True))
    x.mm(x).t().sum().backward()
    return log, x.grad.inner


@case("a tensor is alone again when the views that its class made are gone")
def _(torch):
    pair = pair_type(torch)
    swap_tensors = import_module(f"{torch.__name__}.utils").swap_tensors
    x, y = pair(torch.ones(2), torch.ones(2)), pair(torch.zeros(2), torch.ones(2))
    view = x.view(2, 1)
    refused = err(swap_tensors, x, y).split(":")[0]
    del view
    swap_tensors(x, y)
    return refused, x, y


@case("who overrides a function that torch has in Python is told all its options by name")
def _(torch):
    told = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            name = torch.overrides.resolve_name(function)
            told.append((name, [kind.__name__ for kind in types], args[1:], kwargs or {}))
            return function(*args, **(kwargs or {}))

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            told.append((function.__name__, [kind.__name__ for kind in types], len(args), kwargs or {}))
            return super().__torch_function__(function, types, args, kwargs or {})

    functional = torch.nn.functional

    def calls(x):
        functional.relu(x), functional.relu(input=x, inplace=False), functional.dropout(x, 0.0)
        functional.softmax(x, 0), functional.layer_norm(x, (2,)), functional.pad(x, (1, 1))
        functional.mse_loss(x, x), functional.l1_loss(x, x, reduction="sum"), functional.max_pool1d(x, 2)
        functional.linear(x, x), functional.gelu(x), torch.norm(x, 2), torch.split(x, 1), torch.unique(x)
        x.norm(1), x.split(1, 1), x.unique(True), x.sum().backward(), x.abs(), x.numel(), x.sin(), x.sum(0)
        functional.sigmoid(x), functional.tanh(x), x.nelement(), x.ndimension()
        x.dim(), x.detach(), x.retain_grad(), repr(x), torch.sin(x), x.t(), torch.einsum("ij->i", x)
        torch.lu(x), torch.meshgrid(x[0], x[0])

    values = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    with Mode():
        calls(values.clone().requires_grad_())
        calls(torch.nn.Parameter(values))
    calls(values.as_subclass(Sub).requires_grad_())
    return told


@case("what does not fit is refused in the function's own words")
def _(torch):
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    functional, x = torch.nn.functional, torch.ones(2, 2)
    with Mode():
        return [
            err(call).split(":")[0]
            for call in (
                lambda: functional.dropout(x, 0.5, p=0.5),
                lambda: functional.relu(x, False, 3),
                lambda: functional.relu(),
                lambda: functional.softmax(x, dimension=0),
                lambda: functional.linear_cross_entropy(x, x, x, x),
            )
        ]


@case("a traced module calls functions with their options by name")
def _(torch):
    functional = torch.nn.functional

    class Net(torch.nn.Module):
        def forward(self, x):
            y = functional.dropout(functional.relu(functional.sigmoid(x)), 0.3)
            return y.split(2), functional.softmax(y, 0), torch.norm(y), y.norm(2), functional.max_pool1d(y, 2)

    return import_module(f"{torch.__name__}.fx").symbolic_trace(Net()).code


@case("anomaly mode finds NaN inside of wrappers, and modes look on while it does")
def _(torch):
    pair, log = pair_type(torch), []
    mode = import_module(f"{torch.__name__}.utils._python_dispatch").TorchDispatchMode

    class Log(mode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            log.append(str(function))
            return function(*args, **(kwargs or {}))

    good, bad = torch.tensor([4.0, 9.0]), torch.tensor([4.0, -1.0])
    found = []
    for check in (True, False):
        with torch.autograd.set_detect_anomaly(True, check_nan=check):
            for x in (pair(good, good), pair(good, bad), pair(bad, good)):
                x.requires_grad_()
                found.append(err(x.sqrt().sum().backward) or x.grad)
            for x in (good, bad):
                y = x.clone().requires_grad_().sqrt()
                with Log():
                    found.append(err(y.backward, torch.ones(2)))
    return found, log


NOTED = ("aten::sin", "aten::cos", "aten::tan", "aten::mul", "user", "MulBackward0")


def noted(events):
    return [event.name for event in events if event.name in NOTED]


@case("operations are noted or not in the middle of a profile")
def _(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.profiler.profile() as profile, torch.profiler.record_function("user"):
        x.sin()
        torch.autograd._enable_record_function(False)
        x.cos()
        with torch.profiler.record_function("user"):
            x.mul(2).sum().backward()
        enabled = torch.autograd._profiler_enabled()
        torch.autograd._enable_record_function(True)
        x.tan()
    refused = err(torch.autograd._enable_record_function, "x")
    return noted(profile.function_events), enabled, refused.split(".")[0]


@case("a profile is switched off and on again")
def _(torch):
    found, x = [], torch.ones(2, requires_grad=True)
    cpu, cuda = torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA
    for activities in ([cpu], [], [cuda], {cpu, cuda}):
        with torch.profiler.profile(activities=[cpu]) as profile:
            x.sin()
            profile.toggle_collection_dynamic(False, activities)
            x.mul(2).sum().backward()
            x.cos()
            profile.toggle_collection_dynamic(True, activities)
            x.tan()
        found.append(noted(profile.events()))
    with torch.profiler.profile(activities=[cpu]) as profile:
        x.sin()
        profile.toggle_collection_dynamic(False, [cpu])
    with torch.profiler.profile(activities=[cpu]) as again:
        x.cos()
    return found, noted(profile.events()), noted(again.events())


@pytest.mark.parametrize("name", CASES)
def test_same(name):
    assert outcome(lambda: CASES[name](rushlight)) == outcome(lambda: CASES[name](torch))
