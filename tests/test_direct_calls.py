"""Calls that go straight to a primitive do what the Python functions do: see rushlight/ops/_direct.py."""

import contextlib
import inspect

import pytest
from samples import OPS
from sampling import DTYPES, build, tensors_in

import rushlight as torch
from rushlight import _C
from rushlight.ops._direct import FUNCTIONAL, LINALG, OPERATIONS
from rushlight.ops._public import FUNCTIONS

F = torch.nn.functional


def described():
    """Every public function that has direct calls, with its description."""
    of_linalg = (vars(torch.linalg),)
    tables = (OPERATIONS, (FUNCTIONS, vars(torch.Tensor))), (FUNCTIONAL, (vars(F),)), (LINALG, of_linalg)
    for table, spaces in tables:
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
x.add(y, out=None)
x.__radd__(y, out=None)
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
x.to(torch.float64)
x.to(torch.float32) is x
x.to("cpu") is x
x.to("cpu:0")
x.to("meta")
x.to("cpu", torch.int64)
x.to(torch.device("cpu"), dtype=torch.int64)
x.to(device="cpu", dtype=torch.float16)
x.to(dtype=torch.float64, copy=True)
x.to(torch.float32, copy=True) is x
x.to(n)
x.to(other=n)
x.to(float)
x.to(torch.float64, non_blocking=True)
x.to(torch.float64, dtype=torch.float32)
x.to()
x.to(None)
x.to(1.5)
x.to("cuda")
y.to(torch.float64)
y.to(torch.int64)
e.to(torch.float64)
x.to(torch.uint16)
x.to(torch.float64, memory_format=torch.preserve_format)
x.float() is x
y.double()
n.half()
x.bool()
x.long()
x.cpu() is x
x.type_as(n)
x.type_as(1)
x[0, 0].item()
x.item()
y[:1, :1].item()
x.is_contiguous()
x.t().is_contiguous()
x.is_contiguous(memory_format=torch.channels_last)
torch.is_floating_point(x)
torch.is_floating_point(1)
torch.is_complex(z)
x.requires_grad_()
x.requires_grad_(False)
x.requires_grad_(1)
n.requires_grad_()
n.requires_grad_(False)
(y * 2).requires_grad_(False)
torch.equal(x, y)
torch.equal(x, x.clone())
torch.equal(x, x.t())
torch.equal(x, x[:1])
torch.equal(x, n)
torch.equal(n, n)
torch.equal(z, z)
torch.equal(x * float("nan"), x * float("nan"))
torch.equal(x.to(torch.float8_e5m2), x.to(torch.float8_e5m2))
torch.equal(x, x.to("meta"))
torch.equal(x, 1)
e.expand_as(x)
x[:1].expand_as(x)
x.expand_as(e)
x.expand_as(torch.ones(4))
x.view_as(x.t())
x.view_as(torch.ones(4))
x.flatten()
y.flatten()
x.t().flatten()
x.flatten(1)
x.flatten(0, -1)
x.flatten(start_dim=1)
x.flatten(1, 0)
x.flatten(3)
x[None].flatten(1)
x[None].flatten(0, 1)
x[0, 0].flatten()
y.narrow(1, 1, 2)
x.narrow(-1, 0, 3)
x.narrow(1, -1, 1)
x.narrow(1, 2, 2)
x.narrow(2, 0, 1)
x.narrow(0, 0, -1)
x.narrow(0, torch.tensor(1), 1)
x.movedim(0, 1)
x[None].movedim(0, -1)
x[None].movedim(2, 0)
x.movedim((0, 1), (1, 0))
x.movedim(0, 2)
x.split(2)
y.split(2, 1)
x.split(2, dim=-1)
x.split([1, 2], 1)
x.split((1, 1), 1)
x.split(0)
x.split(-1)
x.split(10)
x.split(2.0)
x.split(split_size=1)
torch.split(x, 1)
torch.split(x, [2, 1], dim=1)
torch.split(x, 1, 2)
x[0, 0].split(1)
x[:, :0].split(1, 1)
F.cross_entropy(x, i[:, 0])
F.cross_entropy(y, i[:, 0])
F.cross_entropy(y, i[:, 0], reduction="none")
F.cross_entropy(x, i[:, 0], reduction="sums")
F.cross_entropy(x, x)
F.cross_entropy(y, i[:, 0], weight=None, ignore_index=2, reduction="sum", label_smoothing=0.0)
F.cross_entropy(target=i[:, 0], input=y)
F.cross_entropy(y, i[:, 0], None, None, -100, None, "mean", 0.0)
F.cross_entropy(y, i[:, 0], nonsense=1)
F.cross_entropy(y, i[:, 0], size_average=False)
F.nll_loss(y, i[:, 0], label_smoothing=0.0)
F.nll_loss(y, i[:, 0], None, None, -100, None, "mean", 0.0)
F.batch_norm(y, None, None, training=True)
F.batch_norm(y, None, None, eps=1e-3, training=True)
F.batch_norm(y, None)
F.relu(x, False)
F.relu(y, inplace=False)
F.silu(y, inplace=True)
F.hardtanh(x, -1.0, 1.0, False)
F.hardtanh(x, -1.0, 1.0, True)
F.relu6(x, False)
F.softmax(x, 1, _stacklevel=5)
F.softmax(x, 1, 3, None)
F.embedding(i, y, None, None, 2.0, False, False)
F.embedding(i, y, None, None, 2.0, False, True)
F.embedding(i, y, scale_grad_by_freq=True)
F.embedding(i, y, max_norm=1.0)
F.cross_entropy(x, i[:, 0], label_smoothing=0.1)
F.cross_entropy(x, i[:, 0], torch.ones(3))
F.cross_entropy(x, n[:, 0])
F.cross_entropy(x, i)
F.cross_entropy(n, i[:, 0])
F.cross_entropy(x, torch.tensor([-100, 1]))
F.nll_loss(y, i[:, 0])
F.nll_loss(y, i[:, 0], reduction="sum")
F.nll_loss(y, i[:, 0], reduction=None)
F.nll_loss(y, i[:, 0], ignore_index=0)
F.nll_loss(x, x[:, 0])
F.glu(x, 0)
F.glu(y, -2)
F.glu(x)
F.glu(x, 2)
F.glu(n, 0)
F.hardtanh(x)
F.hardtanh(y, -0.5, 0.5)
F.hardtanh(x, 0.5, -0.5)
F.hardtanh(x, 0, 1)
F.hardtanh(x, -1e300, 1e300)
F.hardtanh(n)
F.relu6(y)
F.relu6(n)
F.relu6(x, inplace=True)
F.layer_norm(y, (3,))
F.layer_norm(y, [3], torch.ones(3), torch.zeros(3))
F.layer_norm(x, 3)
F.layer_norm(x, (2,))
F.layer_norm(n, (3,))
F.embedding(i, y)
F.embedding(i, x.double())
F.embedding(n, y)
F.embedding(i, y, 0)
F.embedding(i, z)
F.one_hot(i)
F.one_hot(i, 5)
F.one_hot(i, num_classes=4)
F.one_hot(i, 2)
F.one_hot(i - 1)
F.one_hot(i[:0])
F.one_hot(x)
torch.matmul(x, y.t())
torch.matmul(x, x)
torch.matmul(x, 1)
x.matmul(y[0])
torch.outer(x[0], y[1])
torch.outer(x[:, 0], y[1])
torch.outer(x, y)
x.trace()
y[:, :2].trace()
m.trace()
x[0].trace()
torch.hstack([x, y])
torch.hstack((x[0], y[0]))
torch.hstack([x[0, 0], x[0]])
torch.vstack([x, y])
torch.vstack([x[0], y[0]])
torch.vstack([])
torch.vstack([x, x.t()])
torch.broadcast_tensors(x, y[0])
torch.broadcast_tensors(x, y)[0] is x
torch.broadcast_tensors(x[:1], x[:, :1])
torch.broadcast_tensors(x, x.t())
torch.broadcast_tensors(x, 1)
torch.broadcast_tensors()
torch.complex(x, y)
torch.complex(x, x.double())
torch.complex(x.t(), x.t())
torch.complex(n, n)
F.group_norm(torch.arange(8.0).view(2, 4), 2)
F.group_norm(torch.arange(8.0).view(2, 4), 2, torch.ones(4), y.flatten()[:4], 1e-3)
F.group_norm(torch.arange(8.0).view(2, 4), 3)
F.group_norm(torch.arange(2.0).view(1, 2), 2)
F.group_norm(x[0], 1)
F.batch_norm(y, None, None, None, None, True, 0.1, 1e-5)
F.batch_norm(y, torch.zeros(3), torch.ones(3), torch.ones(3), None, False, 0.1, 1e-5)
F.batch_norm(y, torch.zeros(3), None, None, None, False, 0.1, 1e-5)
F.batch_norm(x, x[0], y[1].detach().abs(), torch.ones(3), torch.zeros(3), True, 0.5, 1e-5)
F.batch_norm(x, *(torch.ones(3, dtype=torch.float64),) * 2, None, None, True, 0.5, 1e-5)
F.batch_norm(x[:1], None, None, None, None, True, 0.1, 1e-5)
F.batch_norm(x, None, None, None, None, True, 0.1, -1.0)
F.batch_norm(x, None, None, torch.ones(2), None, True, 0.1, 1e-5)
F.batch_norm(x[0], None, None, None, None, True, 0.1, 1e-5)
torch.numel(x)
torch.numel(1)
torch.promote_types(torch.int8, torch.uint8)
torch.promote_types(torch.uint16, torch.uint8)
torch.promote_types(int, torch.uint8)
(x / 0).nan_to_num()
(y.double() / 0).nan_to_num()
n.nan_to_num()
x.nan_to_num(1.0)
torch.real(x) is x
torch.real(z)
torch.real(1)
F.pad(x, (1, 1))
F.pad(y, [1, 0, 2, 1], value=2.0)
F.pad(x, (1, 1), "constant", 1)
F.pad(x, (1,))
F.pad(x, (1, 1), mode="reflect")
F.pad(x, (-1, 0))
F.pad(x, (-5, 0))
F.pad(n, (1, 1))
F.pad(x, (1, 1.0))
F.pad(x, (0,) * 6)
F.binary_cross_entropy(x.sigmoid(), x.sigmoid())
F.binary_cross_entropy(x, x.sigmoid())
F.binary_cross_entropy(x.sigmoid() * float("nan"), x.sigmoid())
n[0].bincount()
n[0].bincount(minlength=5)
n[0].bincount(None, 5)
n.bincount()
(n[0] - 1).bincount()
n[0, :0].bincount()
n[0].bincount(x[0])
n[0].bincount(minlength=-1)
x.roll(1, 0)
x.roll(-1, -1)
x.roll(1)
x.roll((1, 2), (0, 1))
x[:0].roll(1, 0)
x.roll(1, 2)
y.index_select(1, n[0])
x.index_select(1, x[0])
x.index_select(2, n[0])
x.round()
n.round()
x.round(decimals=1)
y.round()
x.type()
n.type()
m.type()
x.type(torch.float64)
x.type("torch.LongTensor")
x.type(dtype=torch.int8)
torch.linalg.norm(x)
torch.linalg.norm(y, dim=1)
torch.linalg.norm(x, 1)
torch.linalg.norm(n)
torch.linalg.norm(x, dim=5)
torch.linalg.vector_norm(y)
torch.linalg.vector_norm(y, 1, (0, 1))
torch.linalg.vector_norm(x, dim=-1, keepdim=True)
x.argsort()
x.argsort(0, descending=True)
x.argsort(stable=True)
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


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_arrays_of_numpy_both_ways():
    numpy = pytest.importorskip("numpy")
    kinds = "?bBhHiIlLqQefdFD"
    arrays = [numpy.arange(6).reshape(2, 3).astype(kind) for kind in kinds]
    arrays += [arrays[0].T, arrays[3][:, ::2], arrays[3][:, :0], numpy.array(1.5), arrays[5].astype(">f4")]
    arrays += [numpy.broadcast_to(numpy.ones(3), (2, 3)), numpy.array(["a"]), numpy.zeros(2, "M8[s]")]
    arrays += [arrays[3][::-1], numpy.ones(2, "g"), numpy.ma.ones(2), numpy.float32(1), [1.0]]
    makers = [torch.from_numpy, torch.as_tensor, torch.tensor]
    makers += [lambda array: torch.as_tensor(array, dtype=torch.float64)]
    makers += [lambda array: torch.tensor(array, dtype=torch.int32)]
    makers += [lambda array: torch.tensor(array, requires_grad=True)]
    for make in makers:
        for array in arrays:

            def seen(make=make, array=array):
                tensor = make(array)
                return tensor, tensor.data_ptr() == getattr(array, "ctypes", tensor.__class__).data

            with without_direct_calls():
                expected = outcome(lambda: seen())
            assert outcome(lambda: seen()) == expected, (make, array.dtype)


def test_numpy_both_ways():
    numpy = pytest.importorskip("numpy")

    def array_of(tensor):
        array = tensor.numpy()
        return type(array), array.dtype, array.shape, array.strides, array.flags.writeable, array.tolist()

    dtypes = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128 bfloat16 uint16"
    for name in dtypes.split():
        x = torch.arange(6).view(2, 3).to(getattr(torch, name))
        for tensor in (x, x.t(), x[:, 1:], x[:0], x[0, 0], x.expand(2, 2, 3), x.conj(), x.to("meta")):
            with without_direct_calls():
                expected = outcome(lambda: array_of(tensor))  # noqa: B023
            assert outcome(lambda: array_of(tensor)) == expected, name  # noqa: B023
    y = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        y.numpy()
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        y[:1].numpy()
    with torch.no_grad():
        assert y.numpy().sum() == 2
    x = torch.zeros(3)
    array = x.numpy()
    x[0] = 1.0
    array[1] = 2.0
    assert array.tolist() == x.tolist() == [1.0, 2.0, 0.0]
    del x
    assert array.tolist() == [1.0, 2.0, 0.0]
    shared = numpy.ones(3, dtype="float32")
    back = torch.from_numpy(shared)
    del shared
    assert back.sum() == 3


def test_sizes_are_read_natively():
    size = torch.ones(2, 3, 4).shape
    assert size[0] == 2
    assert size[-1] == 4
    assert type(size[1:]) is torch.Size
    assert size[::-1] == torch.Size([4, 3, 2])
    assert torch.Size.__getitem__(size, slice(1)) == torch.Size([2])
    with pytest.raises(IndexError, match="index out of range"):
        size[3]
    with pytest.raises(TypeError):
        size["a"]

    class Own(torch.Size):
        def __getitem__(self, index):
            return 7

    assert Own([1])[0] == 7
