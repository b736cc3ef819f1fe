"""What torch's test files for training, linear algebra, processes and subclasses ask, a few lines each."""

import operator

import pytest
import torch
from outcomes import collector, err, outcome

import rushlight

pytestmark = pytest.mark.torch

CASES, case = collector()


@case("hooks may keep entries of their own in an optimizer's state")
def _(torch):
    kept = []
    for cls in (torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop, torch.optim.LBFGS):
        optimizer = cls([torch.nn.Parameter(torch.ones(2))])
        optimizer.register_state_dict_pre_hook(lambda optimizer: operator.setitem(optimizer.state, "seen", 1))
        optimizer.load_state_dict(optimizer.state_dict())
        kept.append(optimizer.state["seen"])
    return kept


@case("whose __torch_function__ is asked, and in what form it may be written")
def _(torch):
    from importlib import import_module

    C, seen = torch._C, []

    def note():
        seen.append((C._is_torch_function_enabled(), C._is_torch_function_all_disabled()))

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function.__name__)
            return function(*args, **(kwargs or {}))

    with C.DisableTorchFunctionSubclass():
        note()
        with C.DisableTorchFunction(), Mode():
            note()
            torch.ones(1)
            with C._EnableTorchFunction():
                note()
                torch.zeros(1)
            with C.DisableTorchFunctionSubclass():
                note()
        note()

    class OfClass(torch.overrides.TorchFunctionMode):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    class Dispatched(import_module(f"{torch.__name__}.utils._python_dispatch").TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    for mode in (OfClass, Dispatched):
        with mode():
            seen.append(err(torch.ones, 1))

    class Plain:
        def __torch_function__(self, *args, **kwargs):
            return 1

    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        return seen, torch.nn.functional.dropout(Plain()), torch.abs(Plain()), torch.abs(Plain())
    finally:
        torch.set_warn_always(before)


@case("Muon takes a learning rate of one element")
def _(torch):
    moved = []
    for rate in (torch.tensor(0.1), torch.tensor([0.1]), 0.1):
        param = torch.nn.Parameter(torch.ones(2, 2))
        param.grad = torch.eye(2)
        torch.optim.Muon([param], lr=rate).step()
        moved.append((param.detach() * 100).round())
    return moved


@case("einsum without operands, tensorsolve of sizes that do not fit")
def _(torch):
    solve, ones = torch.linalg.tensorsolve, torch.ones
    return [
        *(err(torch.einsum, *args) for args in (("", []), ("i", ()), ("",))),
        *(err(solve, ones(2, 2), ones(3)), err(solve, ones(2, 3, 6), ones(2, 3), (1, 1))),
        solve(torch.eye(6).reshape(2, 3, 6), ones(2, 3)),
    ]


@case("products of bytes")
def _(torch):
    ones, small = torch.ones, torch.int8
    left, right = ones(3, 8, dtype=small) * 100, ones(8, 2, dtype=small) * -3
    bad = [
        (left.float(), right),
        (left, right.half()),
        (left[0], right),
        (left[:, :7], right),
        (left, right[0]),
    ]
    product = torch._int_mm(left, right), torch._int_mm(left.to(torch.uint8), right)
    mixed = torch._compute_linear_combination(torch.arange(12.0).reshape(3, 2, 2), ones(2, 3))
    return product, [err(torch._int_mm, *pair) for pair in bad], mixed


class _Wrapped:
    """Makes a class of tensors without memory of their own, which answer with plain ones."""

    def __new__(cls, torch):
        class Wrapped(torch.Tensor):
            @staticmethod
            def __new__(cls, inner):
                made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)
                made.inner = inner
                return made

            @classmethod
            def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
                return function(*(getattr(each, "inner", each) for each in args), **(kwargs or {}))

        return Wrapped


@case("the gradient of a leaf without memory has memory")
def _(torch):
    leaf = _Wrapped(torch)(torch.ones(2, 2)).requires_grad_()
    (leaf + leaf).sum().backward()
    return type(leaf.grad) is torch.Tensor, leaf.grad.device, leaf.grad


@case("a saved output has its history in backward, whether that is recorded or not")
def _(torch):
    seen = []

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, form):
            y = form(x * 2)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            (y,) = ctx.saved_tensors
            with torch.enable_grad():
                (inner,) = torch.autograd.grad((y * y).sum(), y)
            seen.append((y.requires_grad, y.is_leaf, type(y.grad_fn).__name__, inner))
            return grad.sum() * torch.ones(3), None

    for form in (lambda y: y, lambda y: y.view(3, 1), lambda y: y[:2]):
        for recorded in (False, True):
            x = torch.ones(3, requires_grad=True)
            torch.autograd.grad(Doubled.apply(x, form).sum(), x, create_graph=recorded)
    return seen


@case("lists with a truth value of their own")
def _(torch):
    class Unsure(list):
        def __bool__(self):
            raise RuntimeError("ambiguous")

    one, numbers = Unsure([torch.ones(2)]), Unsure([3.0])
    torch._foreach_lerp_(one, one, 0.5)
    sums = torch._foreach_add(one, one), torch._foreach_mul(one, numbers), torch._foreach_add(one, 1.0)
    return sums, err(torch._foreach_add, Unsure(), 1.0), torch._foreach_norm(one)


@case("a transposed convolution of one's own")
def _(torch):
    from importlib import import_module

    conv = import_module(f"{torch.__name__}.nn.modules.conv")

    class Own(conv._ConvTransposeNd):
        def __init__(self):
            super().__init__(2, 3, (3,), (2,), (1,), (1,), True, (0,), 1, True, "zeros")

        def forward(self, x, size):
            extra = self._output_padding(
                x, size, self.stride, self.padding, self.kernel_size, 1, self.dilation
            )
            return torch.nn.functional.conv_transpose1d(
                x, self.weight, self.bias, self.stride, self.padding, extra
            )

    torch.manual_seed(0)
    layer = Own()
    shapes = [err(lambda size=size: layer(torch.ones(1, 2, 4), size).shape) for size in ([7], [8], [9], None)]
    return shapes, repr(layer), issubclass(conv._ConvTransposeMixin, conv._ConvNd)


@case("names that libraries import")
def _(torch):
    from collections import OrderedDict, namedtuple
    from importlib import import_module

    tree = import_module(f"{torch.__name__}.utils._pytree")
    pair = namedtuple("pair", "a b")
    values, kind = tree._namedtuple_flatten(pair(1, 2))
    made = tree._namedtuple_unflatten(values, kind), tree._odict_flatten(OrderedDict(a=1))
    types = import_module(f"{torch.__name__}.utils._foreach_utils")._foreach_supported_types
    utils = import_module(f"{torch.__name__}._utils")
    tensors = [torch.ones(3), torch.ones(2).double(), torch.ones(5), torch.ones(1).double(), torch.ones(2)]
    groups = [[list(group) for group in utils._take_tensors(tensors, limit)] for limit in (0, 24, 32, 99)]
    ordered = utils._reorder_tensors_as([tensor for group in groups[3] for tensor in group], tensors)
    return values, made, torch.Tensor in types, groups, ordered


@case("where schedulers and optimizers say that they are defined, for files that hold them")
def _(torch):
    rates, optim = torch.optim.lr_scheduler, torch.optim
    kinds = [rates.LRScheduler, rates.CyclicLR, rates.OneCycleLR, rates.ReduceLROnPlateau, rates.StepLR]
    kinds += [rates.CosineAnnealingWarmRestarts, optim.Muon, optim.Adafactor, optim.Adam]
    return [kind.__module__.replace("rushlight", "torch") for kind in kinds]


@case("what a thread is called")
def _(torch):
    before = torch.multiprocessing._get_thread_name()
    torch.multiprocessing._set_thread_name("a name that is too long"[:15])
    name = torch.multiprocessing._get_thread_name()
    torch.multiprocessing._set_thread_name(before)
    return name, err(torch.multiprocessing.set_sharing_strategy, 3)[0]


@pytest.mark.parametrize("name", CASES)
def test_it_gives_what_torch_gives(name):
    assert outcome(lambda: CASES[name](rushlight)) == outcome(lambda: CASES[name](torch))


def test_the_namespace_of_operations_lists_them():
    """Tracers wrap what they find there."""
    ours = dir(rushlight._C._VariableFunctions)
    assert {"add", "exp_", "unsqueeze", "dropout"} <= set(ours) and len(ours) > 600
    assert set(ours) - set(dir(torch._C._VariableFunctions)) <= {"native_dropout_backward"}
    assert all(callable(getattr(rushlight._VF, name)) for name in ours)
