"""Small expressions about constructors, arguments, attributes and subclasses, evaluated in both libraries."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch

import rushlight

pytestmark = pytest.mark.torch

EXPRESSIONS = """
torch.Tensor(); torch.Tensor([1, 2]); torch.Tensor((1, 2)); torch.Tensor(torch.tensor([1, 2])); torch.Tensor(3.5)
torch.Tensor('abc'); torch.Tensor(None); torch.Tensor(2, 3.5); torch.Tensor(True); torch.Tensor([[1, 2], [3]])
torch.Tensor(2, device='meta'); torch.LongTensor([1.7, 2.2]); torch.FloatTensor(torch.tensor([1]))
torch.ones(2).type('DoubleTensor'); torch.ones(2).type(3); torch.ones(2).type('torch.DoubleTensor')
torch.ones(2, dtype=torch.int).new([1.5]); torch.ones(2).new_full((2,), True); torch.asarray(b'ab', dtype=torch.uint8)
torch.asarray([1], copy=False); torch.asarray(torch.ones(1), copy=False, dtype=torch.int)
torch.zeros(2.5); torch.zeros('a'); torch.zeros((2, 2.5)); torch.zeros(2, None); torch.zeros(True); torch.full(2, 3)
torch.zeros(2, device='cpu:0').device; torch.zeros(2, dtype='float32'); torch.device(''); torch.device('foo')
torch.arange(end=3); torch.arange('a'); torch.arange(1j); torch.arange(3, dtype=torch.bool)
torch.arange(1, 2.5, .5, dtype=torch.int); torch.arange(0., -8.000001, -4., dtype=torch.int64)
torch.linspace(0, 1, 3, dtype=torch.bool); torch.linspace(torch.tensor([0.]), 1, 3); torch.eye(2.)
torch.logspace(0, 1.9, 3, dtype=torch.int64); torch.logspace(-1.5, 2.7, 4, base=2, dtype=torch.int32)
torch.exp([1]); torch.exp(3); torch.add(torch.ones(1), 'a'); torch.ones(1).add('a'); torch.mul(torch.ones(1), None)
torch.ones_like(3); torch.full_like([1], 2); torch.sum([1]); torch.ones(1).sum('a'); torch.reshape([1], (1,))
torch.ones(2).reshape(2.); torch.ones(2).view('a'); torch.transpose(torch.ones(2, 2), 0); torch.ones(2).unsqueeze()
torch.topk(torch.ones(2), 'a'); torch.gather(torch.ones(2), 'a', torch.ones(2).long()); torch.index_select(torch.ones(2), 0, [0])
torch.ones(2).item(3); torch.ones(2).repeat('a'); torch.ones(2).copy_([1, 2]); torch.equal([1], [1]); torch.numel([1])
torch.flip(torch.ones(2), 'a'); torch.chunk(torch.ones(2), 'a'); torch.cumsum(torch.ones(2)); torch.linalg.inv([[1.]])
torch.fft.fft([1.]); torch.nn.functional.one_hot([1]); torch.nn.functional.embedding([0], torch.ones(1, 1)); torch.tril([[1]])
torch.ones(2, 3).size('a'); torch.zeros(2, requires_grad=True).apply_(lambda a: a); torch.ones(2, 3, 4).H; torch.tensor(1.).mH
torch.ones(2).__cuda_array_interface__; torch.return_types.max([1]); torch.return_types.max; torch.set_num_threads('a')
copy.deepcopy(torch.ones(4)[::2]).stride(); pickle.loads(pickle.dumps(torch.ones(2, 3).t())).stride()
pickle.loads(pickle.dumps(torch.ones(2, device='meta'))); torch.gather(torch.ones(3), 0, torch.tensor([0]), out=torch.ones(1).long())
x.index_add_(0, torch.tensor([0, 1]), x[2:4]); x.index_copy_(0, torch.tensor([0, 1]), x[1:3]); x.put_(torch.tensor([1]), x[:1])
x.scatter_(0, torch.tensor([0, 1]), x[2:4]); x[1:].copy_(x[:-1]); torch.add(x[:-1], 1, out=x[1:]); torch.lerp(x[:2], x[1:3], .5, out=x[:2])
torch.cat([x[:3], x[3:]], out=x); torch.gather(x, 0, torch.tensor([1, 2]), out=x[:2]); x.index_put_((torch.tensor([0]),), x[:1])
[t.data_ptr() - x.data_ptr() for t in torch.unsafe_chunk(x, 3)]; torch.unsafe_split(x, 4)[1].storage_offset()
torch.ones(3, device='meta')[torch.tensor([0, 1])].shape; torch.histc(torch.ones(3, device='meta'), 4).shape
torch.nn.functional.one_hot(torch.zeros(3, dtype=torch.long, device='meta'), 4).shape; torch.masked.prod(torch.tensor(True)).dtype
torch.ops.aten.slice(x, 0, 1, 5, 2); torch.quantile(x, 2.); complex(x); x.add(1, out=x); x.sum(0, out=x[0]); x.cumsum(0, out=x)
torch.max(torch.ones(2, 2), 0, out=(torch.zeros(2), torch.zeros(2))); torch.sort(x, out=(x,)); torch.softmax(torch.tensor([1, 2]), 0); torch.ceil(torch.tensor([True])); torch.arange(np.int64(3))
torch.heaviside(torch.ones(1), torch.tensor([1])); torch.lerp(torch.tensor([1]), torch.tensor([2]), .5); x.index_reduce(0, torch.tensor([0]), x[:1], "foo")
torch.nn.functional.grouped_mm(x, x)
"""  # noqa: E501


def outcome(lib, expression):
    scope = {"torch": lib, "copy": copy, "pickle": pickle, "np": np, "x": lib.arange(6.0)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(eval(expression, scope))
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"


@pytest.mark.parametrize(
    "expression", [part.strip() for line in EXPRESSIONS.split("\n") for part in line.split(";") if part]
)
def test_expression(expression):
    assert outcome(rushlight, expression) == outcome(torch, expression)


def logged(lib, use):
    from importlib import import_module

    overrides = import_module(f"{lib.__name__}.overrides")
    seen = []

    class Logged(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(overrides.resolve_name(func))
            return super().__torch_function__(func, types, args, kwargs)

    x = lib.arange(1.0, 7.0).reshape(2, 3).as_subclass(Logged)
    seen.clear()
    result = eval(use, {"torch": lib, "x": x, "p": lib.ones(2, 3)})
    return seen, type(result).__name__


USES = """
x + p; p + x; 1 - x; 2 / x; 2 // x; 2 % x; 2 ** x; x ** 2; x // 2; x % 2; x @ p.T; p @ x.T; -x; +x; abs(x); x == p; x != p; 1 < x
x[0]; p[x > 3]; x.shape; x.dtype; x.grad; x.grad_fn; x.T; x.mT; x.H; x.real; x.is_meta; x.layout; x.size(0); x.dim(); x.stride()
len(x); list(x); bool(x.sum()); float(x.sum()); int(x.sum()); repr(x); f"{x}"; 1. in x; reversed(x); x.tolist(); x.numpy(); x.is_complex()
torch.sum(x); x.sum(); torch.add(p, x); torch.cat([p, x]); torch.max(x, 0); torch.einsum('ij->ji', x); torch.split(x, 1); x.split(1)
torch.nn.functional.relu(x); torch.nn.functional.linear(x, p); torch.nn.functional.embedding(torch.tensor([0]), x); torch.nn.functional.pad(x, (1, 1))
torch.linalg.norm(x); torch.fft.fft(x); torch.special.erf(x); torch.unique(x); x.detach(); x.to(torch.float64); x.type(); x.new_zeros(2)
torch.zeros_like(x); torch.result_type(x, 1); torch.numel(x); torch.is_tensor(x); torch.as_tensor(x); x.clone(); x.zero_(); x.add_(1)
""".replace("\n", ";")  # noqa: E501


@pytest.mark.parametrize("use", [part.strip() for part in USES.split(";") if part.strip()])
def test_what_a_subclass_is_asked(use):
    assert logged(rushlight, use) == logged(torch, use)
