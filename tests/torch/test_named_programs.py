"""What torch's tests of classes and modes that are asked (`__torch_dispatch__`) look at."""

import io
from importlib import import_module

import pytest
import torch as torch_itself
from outcomes import collector, err, outcome

import rushlight

pytestmark = pytest.mark.torch

CASES, case = collector()


def mode_class(torch):
    return import_module(f"{torch.__name__}.utils._python_dispatch").TorchDispatchMode


def told(function, *args, **options):
    """What a call gives; of an error the type and what stands before the list of those who were asked."""
    try:
        return function(*args, **options)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def asked_class(torch, answers, log=None, **what):
    """A class that is asked for its sizes, strides, device or layout, and has these answers."""

    class Asked(torch.Tensor):
        @staticmethod
        def __new__(cls, data, wraps):
            if not wraps:
                return torch.Tensor._make_subclass(cls, data, True, **what)
            return torch.Tensor._make_wrapper_subclass(
                cls, data.size(), dtype=data.dtype, requires_grad=True, **what
            )

        @classmethod
        def __torch_dispatch__(cls, function, types, args, kwargs=None):
            if log is not None:
                log.append((str(function), [str(arg) for arg in args[1:]]))
            return next((answers[name] for name in answers if str(function).startswith(name)), NotImplemented)

    return Asked


READINGS = [
    lambda x: x.is_contiguous(),
    lambda x: x.contiguous() is x,
    lambda x: x.stride(),
    lambda x: x.stride(-1),
    lambda x: x.size(),
    lambda x: x.size(0),
    lambda x: x.shape,
    lambda x: len(x),
    lambda x: x.dim(),
    lambda x: x.ndim,
    lambda x: x.ndimension(),
    lambda x: x.numel(),
    lambda x: x.nelement(),
    lambda x: x.storage_offset(),
    lambda x: x.device,
    lambda x: x.is_cpu,
    lambda x: x.is_meta,
    lambda x: x.is_cuda,
    lambda x: x.layout,
]


def read(torch, answers, readings=READINGS, **what):
    asked = asked_class(torch, answers, **what)
    return [told(each, asked(torch.randn(6, 2), wraps)) for each in readings for wraps in (True, False)]


@case("classes that have no answer are refused in the words of what was asked")
def _(torch):
    policies = [{"dispatch_sizes_strides_policy": policy} for policy in ("sizes", "strides")]
    every = [*policies, {"dispatch_device": True}, {"dispatch_layout": True}]
    # With strides alone torch asks for them before it looks at the dimension.
    return [read(torch, {}, [f for at, f in enumerate(READINGS) if at != 3], **what) for what in every]


@case("answers of another kind are refused")
def _(torch):
    found = []
    for wrong in ("x", None, 2.5, 7):
        answers = {
            "aten.dim": 2,
            "aten.sym_size": wrong,
            "aten.sym_stride": wrong,
            "aten.is_contiguous": wrong,
        }
        found.append(read(torch, answers, READINGS[:8], dispatch_sizes_strides_policy="sizes"))
        found.append(read(torch, {"aten.dim": wrong}, READINGS[8:11], dispatch_sizes_strides_policy="sizes"))
        numbers = {"aten.sym_numel": wrong, "aten.sym_storage_offset": wrong}
        found.append(read(torch, numbers, READINGS[11:14], dispatch_sizes_strides_policy="sizes"))
        found.append(
            told(
                lambda wrong=wrong: read(torch, {"prim.device": wrong}, READINGS[14:16], dispatch_device=True)
            )
        )
    return found


@case("a device that a class answers with")
def _(torch):
    x = torch.rand(1)
    readings = [*READINGS[14:18], lambda e: x.type_as(e).device, lambda e: e.get_device()]
    return read(torch, {"prim.device": torch.device("meta")}, readings, dispatch_device=True)


@case("what is asked for layouts in memory")
def _(torch):
    A, log = torch.ops.aten, []
    names = (
        "aten.is_contiguous",
        "aten.is_strides_like_format",
        "aten.is_non_overlapping_and_dense",
        "aten.stride",
    )
    asked = asked_class(torch, dict.fromkeys(names), log, dispatch_sizes_strides_policy="strides")
    x = asked(torch.randn(2, 2), False)
    found = [
        *(x.is_contiguous(), x.is_contiguous(memory_format=torch.channels_last), A.is_contiguous.default(x)),
        *(A.is_strides_like_format.default(x, torch.channels_last), A.stride.default(x)),
        A.is_non_overlapping_and_dense.default(x),
    ]
    asked = asked_class(
        torch, {"aten.dim": 2, "aten.numel": None}, log, dispatch_sizes_strides_policy="sizes"
    )
    return (
        found,
        asked(torch.randn(2, 2), True).data_ptr(),
        asked(torch.randn(2, 2), False).data_ptr() != 0,
        log,
    )


@case("layouts in memory, by torch's names of operations")
def _(torch):
    A, ones, strided, last = torch.ops.aten, torch.ones, torch.empty_strided, torch.channels_last
    images = [ones(2, 3, 4, 5), ones(2, 1, 4, 5), ones(1, 3, 1, 1), ones(2, 3, 1, 1), ones(0, 3, 2, 2)]
    images += [image.contiguous(memory_format=last) for image in images]
    images += [images[5][:, :, ::2], images[0].permute(0, 2, 3, 1), strided((2, 2, 2, 2), (1, 1, 1, 1))]
    images += [strided((2, 3, 4, 5), (0, 0, 0, 0)), strided((2, 1, 3, 3), (9, 9, 3, 1))]
    images += [ones(2, 3).t(), ones(2, 3)[:, ::2], ones(()), ones(3).expand(2, 3), ones(2, 0).t()]
    images += [ones(2, 3, 4, 5, 6).contiguous(memory_format=torch.channels_last_3d)]
    formats = (torch.channels_last, torch.channels_last_3d, torch.contiguous_format)
    return [
        (
            *(
                A.is_non_overlapping_and_dense.default(x),
                A.stride(x),
                A.size.default(x),
                A.sym_stride.default(x),
            ),
            [(A.is_strides_like_format.default(x, f), A.is_contiguous.memory_format(x, f)) for f in formats],
        )
        for x in images
    ]


def wrapping(torch, name="Wrapped", bases=None):
    """A class around tensors, whose operations are theirs."""

    class Wrapped(*(bases or (torch.Tensor,))):
        @staticmethod
        def __new__(cls, inner):
            made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            answer = function(*(getattr(each, "inner", each) for each in args), **(kwargs or {}))
            return Wrapped(answer) if isinstance(answer, torch.Tensor) else answer

        __repr__ = object.__repr__

    Wrapped.__name__ = Wrapped.__qualname__ = name
    return Wrapped


@case("what a class answers for does not become another's")
def _(torch):
    Plain = type("Plain", (torch.Tensor,), {})
    wrapped = wrapping(torch)
    other, inner = wrapping(torch, "Other", (wrapped,)), torch.ones(2)
    make = torch.Tensor._make_subclass
    kind = lambda function: told(lambda: type(function()).__name__)
    return [
        *(kind(lambda: make(Plain, wrapped(inner))), kind(lambda: wrapped(inner).as_subclass(Plain))),
        *(kind(lambda: Plain(wrapped(inner))), kind(lambda: wrapped(inner).as_subclass(other))),
        *(
            kind(lambda: wrapped(inner).as_subclass(torch.Tensor)),
            kind(lambda: make(wrapped, wrapped(inner))),
        ),
        *(kind(lambda: make(other, wrapped(inner))), kind(lambda: make(Plain, Plain(inner)))),
        *(kind(lambda: torch.nn.Parameter(wrapped(inner))), kind(lambda: inner.as_subclass(3))),
        kind(lambda: inner.as_subclass(Plain).as_subclass(torch.nn.Parameter)),
    ]


@case("a class that says that it is not asked")
def _(torch):
    silent = type("Silent", (torch.Tensor,), {"__torch_dispatch__": torch._C._disabled_torch_dispatch_impl})
    x = torch.ones(2).as_subclass(silent)
    made = [x + 1, x.sum(), x.detach(), x[0], x.clone(), x.add_(1), torch.ones_like(x), x.view(1, 2), x.data]
    return [type(each).__name__ for each in [*made, torch.cat([x, x]), x.max(0)[0]]]


@case("a mode knows that it is one while it is asked, and is not told of printing")
def _(torch):
    inside = import_module(f"{torch.__name__}.utils._python_dispatch").is_in_torch_dispatch_mode
    seen = []

    class Mode(mode_class(torch)):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append((str(function), inside()))
            return function(*args, **(kwargs or {}))

    seen.append(inside())
    with Mode():
        x = torch.ones(2)
        text = f"{x} {x!r}"
        with Mode():
            x.sin()
        seen.append(inside())
    return text, seen, inside()


@case("a wrapper of what has a history of its own has its own beside it")
def _(torch):
    again = import_module(f"{torch.__name__}.overrides").enable_reentrant_dispatch

    class Both(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), requires_grad=inner.requires_grad)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            with again():
                return Both(function(*(getattr(each, "inner", each) for each in args), **(kwargs or {})))

    x = Both(torch.ones(2, requires_grad=True))
    y = x * 2
    z = y.sum()
    return x.is_leaf, y.grad_fn.name(), y.inner.grad_fn.name(), z.grad_fn.name(), z.inner.grad_fn.name()


@case("answers that are no results")
def _(torch):
    found = []
    functions = [torch.neg, lambda x: x.detach(), lambda x: x.sum(), lambda x: x.max(0), lambda x: x.split(1)]
    for answer in ("arf", 1, {"a": 1}, object):
        Bad = type("Bad", (torch.Tensor,), {})
        Bad.__torch_dispatch__ = classmethod(lambda *args, answer=answer, **kwargs: answer)
        bad = torch.zeros(2).as_subclass(Bad)
        # The letters of a word are taken for results by torch.
        found += [err(f, bad) for at, f in enumerate(functions) if answer != "arf" or at != 3]
    return found


@case("how functions are named that nobody has an answer for")
def _(torch):
    class Silent:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return NotImplemented

    x, F = Silent(), torch.nn.functional
    calls = [lambda: torch.mm(x, x), lambda: F.relu(x), lambda: torch.split(x, 1), lambda: torch.add(x, 1)]
    calls += [
        lambda: F.dropout(x),
        lambda: F.mse_loss(x, x),
        lambda: torch.ones(1).sub(x),
        lambda: torch.norm(x),
    ]
    calls += [lambda: torch.nn.init.normal_(x), lambda: torch.stack([x, x]), lambda: torch.ones(2) @ x]
    return [told(call) for call in calls]


@case("torch's own operations are checked as those of a program are")
def _(torch):
    A, x = torch.ops.aten, torch.arange(3.0, requires_grad=True)
    check = import_module(f"{torch.__name__}.library").opcheck
    found = [check(A.sin.default, (x,)), check(A.mul.Tensor, (x, x), test_utils="test_schema")]
    found += [check(A.add_.Tensor, (x.detach(), x.detach()), test_utils=["test_schema", "test_faketensor"])]
    return found, told(lambda: check(A.sin.default, (x,), test_utils="blah")).partition(":")[0]


@case("a right inverse of another dtype is refused, unsafe or not")
def _(torch):
    parametrize = import_module(f"{torch.__name__}.nn.utils.parametrize")

    class Doubled(torch.nn.Module):
        def forward(self, x):
            return x.float()

        def right_inverse(self, x):
            return x.double()

    register = parametrize.register_parametrization
    return [
        told(register, torch.nn.Linear(2, 2), "weight", Doubled(), unsafe=unsafe) for unsafe in (False, True)
    ]


@case("what a library puts above a kernel of torch's own")
def _(torch):
    scoped, x = import_module(f"{torch.__name__}.library")._scoped_library, torch.tensor([1, 2])
    zero, leaf, found = torch._efficientzerotensor(2), torch.zeros(2, requires_grad=True), []

    def below(function):
        with torch._C._AutoDispatchBelowAutograd():
            return function()

    class Seven(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return below(lambda: torch.cos(x))

        @staticmethod
        def backward(ctx, g):
            return g * 7

    with scoped("aten", "IMPL") as other:
        with scoped("aten", "IMPL") as library:
            library.impl("neg", lambda x: x._neg_view(), "AutogradCPU")
            library.impl("sin", lambda x: below(lambda: torch.sin(x) + 1), "AutogradCPU")
            library.impl("cos", Seven.apply, "AutogradCPU")
            other.impl("aten::mul.Tensor", lambda a, b: torch.zeros_like(a), "ZeroTensor")
            ways = (torch.neg(x), -x, x.neg(), torch.ops.aten.neg(x), torch.neg(x.to("meta")))
            found += [
                [y.is_neg() for y in ways],
                torch.neg(leaf).grad_fn.name(),
                torch.mul(x, zero)._is_zerotensor(),
            ]
            found += [
                x * x,
                leaf.sin(),
                leaf.cos(),
                torch.autograd.grad(leaf.cos().sum(), leaf),
                x.float().neg_(),
            ]
        found += [torch.mul(zero, x)._is_zerotensor(), torch.neg(x).is_neg(), leaf.cos().grad_fn.name()]
    return found, torch.mul(x, zero)._is_zerotensor()


@case("what a library lets autocast pass by")
def _(torch):
    scoped = import_module(f"{torch.__name__}.library")
    a, b, found = torch.ones(2, 3), torch.ones(3, 2), []
    with scoped._scoped_library("aten", "IMPL") as library:
        library.impl("mm", scoped.fallthrough_kernel, "AutocastCPU")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found += [torch.mm(a, b).dtype, a.matmul(b).dtype, torch.nn.functional.linear(a, a).dtype]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return found[0], torch.mm(a, b).dtype


@case("what a mode makes of a factory is a tensor")
def _(torch):
    class Mode(mode_class(torch)):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            return args[0]

    def made(function):
        with Mode():
            return function(2)

    return [
        told(made, function) for function in (torch.zeros, torch.ones, torch.rand, torch.empty, torch.arange)
    ]


@case("the coordinates of triangles take what other factories take")
def _(torch):
    options = [{"requires_grad": True}, {"requires_grad": False}, {"pin_memory": False}, {"requires_grad": 1}]
    options += [{"dtype": torch.float32, "requires_grad": True}, {"pin_memory": True}, {"dtype": torch.int32}]
    return [told(f, 2, 2, **each) for f in (torch.tril_indices, torch.triu_indices) for each in options]


@case("only modes are entered")
def _(torch):
    stack = import_module(f"{torch.__name__}.utils._python_dispatch")._get_current_dispatch_mode_stack
    refused = told(mode_class(torch).__enter__, 3)
    return refused.partition(":")[0] in ("AttributeError", "TypeError"), stack()


@case("where a function that is transformed may ask for a gradient to be kept")
def _(torch):
    func, x = torch.func, torch.ones(2, requires_grad=True)
    found = []
    for transform in (func.grad, torch.vmap, func.jacrev, func.jacfwd, func.hessian):
        found.append(told(transform(lambda x: x.retain_grad() or x.sum()), x))
        found.append(told(transform(lambda x: x.retain_grad() or x.sum()), x.detach()))
    pull = func.vjp(lambda x: (x, {"b": [x * 2]}), torch.tensor(1.0))[1]
    return found, told(pull, torch.tensor(1.0)), told(pull, (torch.tensor(1.0), {"b": (torch.ones(1),)}))


def kept_class(base):
    class Kept(base):
        @staticmethod
        def __new__(cls, inner):
            made = base._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype, device=inner.device)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            answer = function(*(getattr(each, "inner", each) for each in args), **(kwargs or {}))
            return cls(answer) if isinstance(answer, base) else answer

        __repr__ = object.__repr__

    Kept.__module__, Kept.__qualname__ = __name__, "Kept"
    return Kept


@case("checkpoints that hold wrappers, of classes that are allowed and others")
def _(torch):
    serialization, file = import_module(f"{torch.__name__}.serialization"), io.BytesIO()
    globals()["Kept"] = cls = kept_class(torch.Tensor)
    torch.save(cls(torch.arange(3.0)), file)

    def load(**options):
        file.seek(0)
        return torch.load(file, **options).inner

    refused = told(load)
    with serialization.safe_globals([cls]):
        allowed = told(load)
    return refused.partition(".")[0], allowed, load(weights_only=False)


@pytest.mark.parametrize("name", CASES)
def test_both_give_the_same(name):
    torch_itself.manual_seed(0)
    theirs = outcome(lambda: CASES[name](torch_itself))
    rushlight.manual_seed(0)
    ours = outcome(lambda: CASES[name](rushlight))
    assert ours == theirs
