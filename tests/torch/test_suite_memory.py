"""What torch's suites ask about storages, lazy clones and torch.ops by keyword, one expression each.

`told` counts the warnings of a call about typed storages, `refused` gives an error in full.
"""

import pytest
from expressions import outcome

import rushlight

torch = pytest.importorskip("torch")

SETUP = """
import copy, tempfile, warnings
A, o, T = torch.ops.aten, torch.ones, torch.TypedStorage
f, d, u = torch.float32, torch.FloatStorage, torch.UntypedStorage
torch.storage._reset_warn_typed_storage_removal()
cow, lazy = torch._C._is_cow_tensor, torch._lazy_clone
x, y = o(4), o(3, requires_grad=True)
m = torch.empty(3, device='meta').storage()
def told(call):
    torch.storage._set_always_warn_typed_storage_removal(True)
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter('always')
            call()
        return len(seen)
    finally:
        torch.storage._set_always_warn_typed_storage_removal(False)
def quiet(call):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return call()
def refused(call):
    try:
        return call()
    except (RuntimeError, TypeError, NotImplementedError) as error:
        return type(error).__name__, str(error).replace('rushlight', 'torch')
def written(storage):
    with tempfile.TemporaryFile() as file:
        storage._write_file(file, True, True, 4)
        file.seek(0)
        return u._new_with_file(file, 4).tolist()
def grown(n):
    storage = u(4)
    storage.resize_(n).fill_(0)
    return copy.deepcopy(torch.empty(0).set_(storage))
"""

EXPRESSIONS = """
torch.storage._LegacyStorage()
refused(lambda: d(device='cpu'))
refused(lambda: d(dtype=f))
refused(lambda: d(odd=f))
refused(lambda: d(0, 0))
refused(lambda: d(o(0)))
refused(lambda: d(0, wrap_storage=u(4)))
refused(lambda: d(wrap_storage=d(1)))
refused(lambda: d(wrap_storage=u(4, device='meta')))
refused(lambda: T(wrap_storage=u(4), dtype=0))
refused(lambda: T(wrap_storage=u(4), dtype=f, device='cpu'))
refused(lambda: T(dtype=f, device='xla'))
refused(lambda: T(1, dtype='f'))
refused(lambda: T.from_buffer(b'abcd', 'big', dtype=f, device='meta'))
refused(lambda: T.from_buffer(b'abcd', 'big', dtype='f'))
refused(lambda: d.from_buffer(b'abcd', device='cpu'))
refused(lambda: torch.BoolStorage.from_buffer(b'ab'))
refused(lambda: d(2).fill_(d(1)))
refused(lambda: d(2).__setitem__(0, d(1)))
[refused(call) for call in (m.tolist, m.cpu, m._share_fd_cpu_, m._share_filename_cpu_, m.pin_memory)]
[refused(call) for call in (lambda: m[0], m.untyped().tolist)]
d.__mro__[1].__name__, issubclass(d, T), d in torch._storage_classes
torch.FloatTensor in torch._tensor_classes, torch.LongTensor in torch._tensor_classes
[type(getattr(torch, f'Q{n}Storage')) is type(None) for n in ('Int32', 'Int8', 'UInt8', 'UInt2x4', 'UInt4x2')]
[each.dtype for each in sorted(torch._storage_classes, key=str) if each.__name__ == 'LongStorage'][-1]
d([1, 2]).float8_e5m2().tolist(), d([1]).untyped().float8_e4m3fn().tolist()
d([1, 2]).get_device(), u(2).get_device()
[told(call) for call in (lambda: d(), lambda: d.dtype, lambda: d([1])._getitem(0), lambda: copy.copy(d(1)))]
[told(call) for call in (lambda: d(_internal=True), lambda: T(dtype=f, _internal=True), lambda: d._dtype)]
d(3)._resize_(5), d(3)._is_shared(), d(3)._share_memory_().size(), d(3)._element_size(), d(3)._nbytes()
d([1, 2])._getitem(1), d([1, 2])._setitem(0, 3), d([1, 2])._deepcopy({}).tolist(), d(3)._data_ptr() > 0
d(3)._new_wrapped_storage(u([0, 0, 128, 63])).tolist(), written(d([1, 2])), written(u([1, 2, 3, 4]))
type('Own', (u,), {})(4)[1:].__class__.__name__
grown(8), grown(12).shape
refused(lambda: o(2).set_(x.untyped_storage(), 3, (2,), (1,)))
refused(lambda: o(2).set_(o(2), 1, (2,), (1,)))
o(3).set_(o(2), 1, (2,)).shape, o(2).set_(o(2), 1, (2,), (3,)).shape
(z := lazy(x), cow(x), cow(z), cow(x[1:]), cow(o(2)), z.add_(1), cow(x), cow(z), x)
lazy(y).grad_fn.name(), lazy(y * 2).sum().backward() or y.grad, cow(y)
(z := lazy(x), w := lazy(z), x.data.mul_(3), cow(x), cow(w), w)
[lazy(t).stride() for t in (o(2, 3).t(), o(3).expand(2, 3), o(6)[::2])]
lazy(o(6)[::2]).untyped_storage().nbytes()
A.reshape.default(self=x, shape=[2, 2]), A.min.default(self=x), A.add(self=x, other=x, alpha=2)
A.where.self(condition=x > 0, self=x, other=-x), A.pow.Scalar(self=2, exponent=x), A.max.dim(self=x, dim=0)
A.sort.stable(self=x, stable=True)[1].shape, A.split.Tensor(self=x, split_size=2), A.size.int(self=x, dim=0)
A.slice.Tensor(self=x, dim=0, start=1), A.gelu(self=x), A.__and__.Tensor(self=x.int(), other=x.int())
A.add_.Tensor(self=x, other=x), x, A.masked_fill.Scalar(self=x, mask=x > 0, value=3)
torch.logsumexp(torch.ones(0, 2, dtype=torch.complex64), 0), torch.logsumexp(x[:0].cfloat(), 0, True).shape
torch.logsumexp(x, 0, out=torch.empty(()).double())
torch.nansum(x.long(), dtype=torch.cfloat), torch.nansum(x > 1, 0, True, dtype=torch.cdouble)
refused(lambda: torch.nansum(x, dtype=torch.complex64))
torch.histogram(x)[0].shape, x.histogram()[1].shape
x._fix_weakref(), x.untyped_storage()._fix_weakref()
o(1, 2, 1).squeeze(0, 2).shape, o(1, 2, 1).squeeze_(0, 1).shape
o(1, 2).broadcast_to(3, 2).shape, o(1).broadcast_to(3)
o(2, 3).count_nonzero(0, 1), o(2, 3).hsplit(1, 2), o(3, 1).vsplit(1, 2), o(1, 1, 3).dsplit(1, 2)
refused(lambda: x.squeeze(5, 6)), refused(lambda: torch.squeeze(x, 0, 1))
refused(lambda: x.broadcast_to('a'))
quiet(lambda: (torch.add(x, 2, 3), x.sub(1, 0.5), x.subtract(2, 3), x.add_(1, 2), x))
torch.rsub(x, 1, 2), torch.subtract(x, 2, 3), x.subtract_(1, 0.5), refused(lambda: torch.subtract(x, 0, x))[0]
torch.unsafe_split(x, __import__('numpy').int64(2)), x.unsafe_split(3)
[refused(lambda: f(o(2, 2).cfloat(), dim=0)) for f in (torch.unique, torch.unique_consecutive)]
refused(lambda: torch.as_tensor([1], torch.float64))[0], torch.as_tensor([1], dtype=torch.float64)
torch.nn.functional.embedding(torch.tensor([0]), o(2, 2), sparse=True)
torch.nn.functional.embedding_bag(torch.tensor([[0, 1]]), o(2, 2), sparse=True, mode='sum')
"""


@pytest.mark.parametrize("text", EXPRESSIONS.strip().split("\n"))
def test_same(text):
    assert outcome(rushlight, text, SETUP) == outcome(torch, text, SETUP)
