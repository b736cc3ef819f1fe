"""Calls that go straight to a primitive do what the Python functions do: see rushlight/ops/_direct.py."""

import contextlib
import inspect

import pytest
from samples import OPS
from sampling import DTYPES, build, tensors_in

import rushlight as torch
from rushlight import _C
from rushlight.ops._direct import FUNCTIONAL, OPERATIONS
from rushlight.ops._public import FUNCTIONS

F = torch.nn.functional


def described():
    """Every public function that has direct calls, with its description."""
    for table, spaces in ((OPERATIONS, (FUNCTIONS, vars(torch.Tensor))), (FUNCTIONAL, (vars(F),))):
        for name in table:
            for space in spaces:
                function = space.get(name.removeprefix("."))
                if isinstance(function, _C.Function) and function.direct:
                    yield function, function.direct


ALL = list(described())


@contextlib.contextmanager
def without_direct_calls():
    for function, _ in ALL:
        function.direct = None
    try:
        yield
    finally:
        for function, direct in ALL:
            function.direct = direct


def shown(value):
    """What a program can see of a result."""
    if isinstance(value, torch.Tensor):
        strides = value.stride() if value.layout is torch.strided else None
        node = type(value.grad_fn).__name__
        version = None if value.is_inference() else value._version
        same = value.tolist() if not value.is_meta else None
        return (type(value), value.dtype, value.shape, strides, value.requires_grad, node, version,
                value._is_view(), value.is_inference(), repr(same))  # fmt: skip
    if isinstance(value, (list, tuple)):
        return type(value), [shown(each) for each in value]
    return repr(value)


def outcome(call):
    torch.manual_seed(3)
    try:
        result = call()
    except Exception as error:
        return type(error), str(error).partition("\n")[0]
    return shown(result)


def test_both_ways_for_all_samples():
    functions = {id(function) for function, _ in ALL}
    compared = 0
    for op in OPS.values():
        if id(op.function(torch)) not in functions:
            continue
        for dtype in DTYPES:
            for sample in op.for_dtype(dtype):

                def call(op=op, sample=sample, dtype=dtype):
                    args, kwargs = build(torch, sample, dtype)
                    for each in tensors_in(torch, args):
                        if each.dtype.is_floating_point and sample.grad:
                            each.requires_grad_()
                    return op.function(torch)(*args, **kwargs)

                with without_direct_calls():
                    expected = outcome(call)
                assert outcome(call) == expected, f"{op.name}{sample} of {dtype}"
                compared += 1
    assert compared > 2000


def test_names_in_any_order():
    """Also the last argument first, when nothing is known of the others."""
    functions = {id(function): function for function, _ in ALL}
    compared = 0
    for op in OPS.values():
        function = functions.get(id(op.function(torch)))
        if function is None:
            continue
        names = list(inspect.signature(function).parameters)
        for sample in op.for_dtype("float32"):

            def call(op=op, sample=sample, names=names):
                args, kwargs = build(torch, sample, "float32")
                named = dict(zip(names, args, strict=False))
                return op.function(torch)(**dict(reversed({**named, **kwargs}.items())))

            with without_direct_calls():
                expected = outcome(call)
            assert outcome(call) == expected, f"{op.name}{sample}"
            compared += 1
    assert compared > 500


# x: 2 x 3 floats, y: the same with a gradient wanted, n: ints, m: booleans, i: indices, z: complex numbers,
# e: expanded
CALLS = """
x.view(6)
x.view(3, 2)
x.view((3, -1))
x.view([3, 2])
x.view(x.shape)
x.view(4)
x.view(2.0)
x.view(size=(6,))
x.view(torch.int32)
x.view(dtype=torch.int32)
x.t().view(6)
y.view(6)
x.reshape(6)
x.reshape((3, 2))
x.t().reshape(6)
x.reshape(4)
torch.reshape(x, (6,))
torch.reshape(x, shape=(6,))
torch.reshape(y, (3, 2))
x.permute(1, 0)
x.permute((1, 0))
x.permute(1, 1)
x.permute(0)
torch.permute(x, dims=(1, 0))
x.transpose(0, 1)
x.transpose(dim0=0, dim1=-1)
x.transpose(0, 2)
x.transpose(0)
x.transpose(0, True)
x.transpose(0, 1.0)
y.transpose(0, 1)
x.swapaxes(axis0=0, axis1=1)
x.expand(4, 2, 3)
x.expand(2, 4)
x.expand(-1, 3)
x.unsqueeze(0)
x.unsqueeze(dim=-1)
x.unsqueeze(5)
x.squeeze()
x[:1].squeeze(0)
x[:1].squeeze((0,))
x.contiguous() is x
x.t().contiguous()
x.contiguous(memory_format=torch.contiguous_format) is x
torch.cat([x, y])
torch.cat((x, n))
torch.cat([x, x], dim=1)
torch.cat([x, x], axis=1)
torch.cat([x, 1])
torch.cat([])
torch.cat(x)
torch.cat([x, x.t()])
torch.stack([x, y], -1)
torch.stack([x, x.t()])
torch.where(m, x, y)
torch.where(m, x, 0)
torch.where(m, 1.5, x)
torch.where(m, 1.5, 2)
torch.where(n, x, y)
torch.where(m)
x.where(m, y)
x.where(m, 0.0)
x.where(condition=m, other=y)
x.masked_fill(m, 1)
x.masked_fill_(m, 1)
e.masked_fill_(m, 1)
x.gather(1, i)
x.gather(1, index=i)
x.gather(1, x)
x.scatter(1, i, 2.0)
x.scatter(1, i, x)
x.scatter_add(1, i, x)
x.sum()
x.sum(1)
x.sum(dim=1)
x.sum(None)
x.sum(dim=None, keepdim=True)
x.sum((0, 1))
x.sum([])
x.sum(-1, True)
x.sum(axis=0)
x.sum(2)
x.sum((0, 0))
x.sum(0, 1)
x.sum(dtype=torch.float64)
n.sum(0, dtype=torch.float32)
y.sum()
y.sum(0)
y.mean(0)
n.mean()
m.sum(1)
x.mean(dim=-1, keepdim=True)
x.prod(1)
x.max(1)
x.max(dim=0, keepdim=True)
x.max(y)
torch.max(x, y)
y.min(1)
x.amax()
x.amax((0, 1))
x.argmax()
x.argmax(1, True)
m.any(1)
m.all()
x.var()
x.var(1)
x.var(1, keepdim=True)
x.var(False)
x.std(0, unbiased=False)
x.norm()
x.norm(1)
x.norm(2, 1)
x.norm(p="fro", dim=1)
n.norm()
x.logsumexp(1)
z.logsumexp(1)
x.cumsum(0)
n.cumsum(0, dtype=torch.float32)
x.cumsum(2)
x.softmax(1)
n.softmax(1)
x.softmax(1, torch.float64)
F.softmax(x, dim=1)
F.softmax(x, 1, dtype=torch.float64)
F.log_softmax(y, -1)
x.sort()
x.sort(0, True)
x.sort(dim=0, stable=True)
x.topk(2)
x.topk(5)
x.topk(1, largest=False)
x.median(1)
z.sort()
x.clamp(0, 1)
x.clamp(0)
x.clamp(max=0.5)
x.clamp(min=y)
x.clamp(0, float("nan"))
x.clamp()
n.clamp(0, 1.5)
z.clamp(0, 1)
x.clamp_(0, 1)
n.clamp_(0, 1.5)
y.clamp_(0)
x.add(y)
x.add(1)
x.add(True)
x.add(x, alpha=2)
torch.add(1, x)
torch.add(1, 2)
n.add(1.5)
m.add(m)
m.sub(m)
x.sub(y)
x.sub(1)
n.sub(n)
x.mul(n)
x.div(0)
n.div(n, rounding_mode="floor")
x.add_(y)
y.add_(1)
n.add_(1.5)
x.maximum(y)
z.maximum(z)
x.eq(y)
x.gt(0)
x.lerp(y, 0.5)
x.lerp(x.double(), 0.5)
x.addcmul(x, y)
x.addcmul(x, x, value=2)
n.addcmul(n, n, value=1.5)
x.fill_(1)
x.fill_(True)
x.zero_()
y.zero_()
x.copy_(n)
x.copy_(y.t())
torch.exp(n)
torch.exp(1.0)
torch.exp(x, out=x)
torch.abs(z)
torch.sigmoid(y)
x.exp_()
n.exp_()
y.exp_()
F.relu(x, inplace=True)
F.leaky_relu(x, 0.2)
F.elu(y)
F.softplus(x)
torch.mm(x, x.t())
torch.mm(x, x)
torch.addmm(x, torch.eye(2), x, beta=2)
torch.addmm(x, torch.eye(2), x, alpha=y)
x.normal_()
x.uniform_(-1, 1)
x.uniform_(1, 0)
n.normal_()
torch.bernoulli(torch.rand(3))
torch.multinomial(torch.rand(3), 2)
torch.zeros(2, 3)
torch.zeros((2, 3))
torch.zeros([2], dtype=torch.int8)
torch.zeros(())
torch.zeros(size=(2,))
torch.zeros()
torch.zeros(-1)
torch.zeros(2.0)
torch.zeros(2, True)
torch.zeros(2, dtype=float)
torch.zeros(2, dtype="f")
torch.zeros(2, device="cpu")
torch.zeros(2, device="cpu:0")
torch.zeros(2, device="meta")
torch.zeros(2, device=torch.device("cpu"), requires_grad=True)
torch.zeros(2, dtype=torch.int64, requires_grad=True)
torch.zeros(2, layout=torch.strided, pin_memory=False)
torch.zeros(2, out=x)
torch.zeros(2, nonsense=1)
torch.zeros(x.shape)
torch.zeros(2, dtype=torch.complex64)
torch.zeros(2, dtype=torch.uint32)
torch.zeros(2**62, 2**62)
torch.ones(3, dtype=torch.bool)
torch.full((2,), 7)
torch.full((2,), True)
torch.full((2,), 1.5, dtype=torch.int64)
torch.full((2,), 300, dtype=torch.uint8)
torch.full(2, 1)
torch.full((2,), x)
torch.empty(2, 0)
torch.empty((0,), dtype=torch.float64, requires_grad=True)
torch.eye(3)
torch.eye(2, 3)
torch.eye(3, 2, dtype=torch.int64)
torch.eye(-1)
torch.eye(2.0)
torch.eye(2, dtype=torch.bool)
torch.zeros_like(x)
torch.zeros_like(x.t())
torch.zeros_like(e)
torch.ones_like(n, dtype=torch.float32)
torch.ones_like(y, requires_grad=True)
torch.zeros_like(y)
torch.full_like(x, 2)
torch.full_like(n, 2.5)
torch.full_like(x.to(torch.uint8), 300)
torch.zeros_like([1])
x.new_zeros(2)
n.new_ones((2,), dtype=torch.bool)
x.new_full((2,), 3)
x.new_empty(0)
x.new_zeros(2, requires_grad=True)
torch.arange(5)
torch.arange(2, 5)
torch.arange(5, 2)
torch.arange(5, 2, -1)
torch.arange(0, 1, 0.1)
torch.arange(1, 8, 3)
torch.arange(8, 1, -3)
torch.arange(3.0)
torch.arange(3, dtype=torch.float32)
torch.arange(3.5, dtype=torch.int64)
torch.arange(0, 5, 0)
torch.arange(True)
torch.arange(end=3)
torch.arange(0, 3, step=2)
torch.arange(float("nan"))
torch.arange(2**60, 2**60 + 3)
torch.arange(0)
torch.arange(3, dtype=torch.bool)
torch.arange(3, dtype=torch.int8)
torch.arange(3, requires_grad=True)
torch.linspace(0, 1, 5)
torch.linspace(0, 1, 1)
torch.linspace(0, 1, -1)
torch.linspace(0, 1, 5, dtype=torch.int64)
torch.linspace(0, 1e300, 3)
torch.linspace(-1, 1, steps=3)
torch.rand(2, 3)
torch.randn(2, 3)
torch.randn(20, dtype=torch.float64)
torch.randn(2, dtype=torch.int64)
torch.randn(2, dtype=torch.complex64)
torch.randn(4, requires_grad=True)
torch.randn(2, generator=torch.Generator().manual_seed(1))
torch.randn(2, generator=None)
torch.randn()
torch.rand_like(x)
torch.randn_like(y)
torch.randn_like(n)
torch.randint(5, (3,))
torch.randint(2, 5, (3,))
torch.randint(5, 2, (3,))
torch.randint(0, 2, (3,), dtype=torch.float32)
torch.randint(0, 2**40, (3,))
torch.randperm(6)
torch.randperm(-1)
torch.tensor([1, 2.5])
torch.tensor([[1], [2]], dtype=torch.float64)
torch.tensor([])
torch.tensor(1, requires_grad=True)
torch.tensor([1.0], requires_grad=True)
torch.tensor([1.0, [2]])
torch.tensor(["a"])
torch.tensor(True)
torch.tensor(2**63)
torch.tensor([x[0, 0], 1])
torch.tensor(1.5, dtype=torch.int32)
torch.as_tensor(x) is x
torch.as_tensor(x, dtype=torch.float32) is x
torch.as_tensor(x, dtype=torch.float64)
torch.as_tensor([1, 2])
torch.as_tensor(y, device="cpu") is y
""".strip().splitlines()


def names():
    torch.manual_seed(0)
    x = torch.randn(2, 3)
    y, n = torch.randn(2, 3, requires_grad=True), torch.arange(6).view(2, 3)
    i, z, e = torch.tensor([[0, 2], [1, 1]]), torch.complex(x, x), torch.ones(1).expand(2, 3)
    return {"torch": torch, "F": F, "x": x, "y": y, "n": n, "m": x > 0, "i": i, "z": z, "e": e}


def evaluated(code, mode=contextlib.nullcontext):
    known = names()
    with mode():
        result = outcome(lambda: eval(code, known))
    return result, [shown(known[name]) for name in "xynmize"]


@pytest.mark.parametrize("mode", [contextlib.nullcontext, torch.no_grad, torch.inference_mode])
def test_both_ways(mode):
    for code in CALLS:
        with without_direct_calls():
            expected = evaluated(code, mode)
        assert evaluated(code, mode) == expected, code


def test_a_default_device_is_asked_for():
    with torch.device("meta"):
        assert torch.zeros(2).is_meta
        assert torch.arange(2).is_meta
        assert torch.randn(2).is_meta
        assert torch.tensor([1.0]).is_meta
        assert not torch.zeros_like(torch.ones(2, device="cpu")).is_meta
    assert not torch.zeros(2).is_meta


def test_unwritten_memory_is_marked_where_that_is_wanted():
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(3).isnan().all()
        assert torch.empty_like(torch.ones(3)).isnan().all()
        assert torch.ones(3).new_empty(2).isnan().all()
    finally:
        torch.use_deterministic_algorithms(False)


def test_classes_and_modes_are_asked_first():
    class Own(torch.Tensor):
        pass

    own = torch.ones(2, 3).as_subclass(Own)
    assert type(own.sum(1)) is Own
    assert type(torch.zeros_like(own)) is Own
    assert type(own.reshape(6)) is Own

    called = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            called.append(function)
            return function(*args, **(kwargs or {}))

    with Mode():
        torch.zeros(2).view(1, 2).sum(0)
    assert called == [torch.zeros, torch.Tensor.view, torch.Tensor.sum]


def test_a_list_of_sizes_is_not_kept():
    x, sizes = torch.ones(2, 3, requires_grad=True), [0]
    total = x.sum(sizes)
    sizes[0] = 1
    total.sum().backward()
    assert x.grad.shape == (2, 3)


def test_signatures_stay():
    assert list(inspect.signature(torch.sum).parameters) == ["input", "dim", "keepdim", "dtype", "out"]
    assert torch.zeros.__doc__.startswith("Zeros")


def test_descriptions_that_cannot_be_read_are_refused():
    for wrong in (
        "T x",
        "T x -> nothing(x)",
        "T x -> exp(y)",
        "T x -> exp()",
        "native nothing",
        "T x,i d=q -> exp(x)",
    ):
        function = _C.Function(lambda x: x)
        function.direct = wrong
        with pytest.raises((RuntimeError, SystemError), match=r"direct call|no primitive"):
            function(torch.ones(1))
