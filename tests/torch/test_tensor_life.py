"""What torch's suites ask of tensors as objects: copies, pickles, storages, layouts, exchange, old names.

Every line is an expression that both libraries evaluate; the value, or the error's type and first sentence,
has to be the same.
"""

import pytest
from expressions import outcome

import rushlight

torch = pytest.importorskip("torch")

SETUP = """
import copy, pickle, numpy, warnings
with warnings.catch_warnings(action='ignore'):
    torch.set_default_tensor_type(torch.FloatTensor)  # its warning is given once in a process
DLDeviceType, to_dlpack = torch.utils.dlpack.DLDeviceType, torch.utils.dlpack.to_dlpack
n, o, c = float('nan'), torch.ones, torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
x = torch.arange(6.0)[1::2]
back = lambda t: pickle.loads(pickle.dumps(t))
def laid(t): return t.shape, t.stride(), t.storage_offset(), t.untyped_storage().nbytes()
def shares(a, b): return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
def strided(sizes, steps): return torch.zeros(99).as_strided(sizes, steps)
odd = torch.empty(0).set_(torch.UntypedStorage(9), 0, (2,)).fill_(2)
singular = torch.eye(3).repeat(3, 1, 1)
singular[1, -1, -1] = 0
plain = torch.eye(2)
kinds = [[x, x.double(), plain.to_sparse(), plain.to_sparse_csr(), plain.to_sparse_csc(), x.to('meta')]]
class S(torch.UntypedStorage): pass
kept = S(4)
numbers = torch.FloatStorage([1, 2])
def unwritten(make):
    torch.use_deterministic_algorithms(True)
    try:
        return make()
    finally:
        torch.use_deterministic_algorithms(False)
class P(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l, self.k, self.plain = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1), torch.zeros(1)
        self.k.bias = self.l.bias
    def forward(self, x):
        return x if self.plain is None else x + self.plain
def call(**tensors): return torch.func.functional_call(P(), tensors, (o(1),))
A = torch.ops.aten
def orders(t):
    def order(check):
        try:
            return t.dim_order(ambiguity_check=check)
        except RuntimeError as error:
            return str(error)
    formats = torch.contiguous_format, torch.channels_last
    return [order(check) for check in (False, True, [], [formats[0]], [*formats])]
"""

LINES = """
shares(copy.copy(x), x), laid(copy.copy(x))
laid(back(x)), laid(back(x[1:]))
copy.copy(o(2, dtype=torch.cfloat).conj()).is_conj()
copy.deepcopy(odd), copy.copy(odd)
torch.FloatTensor.layout
torch.set_default_dtype('torch.FloatTensor')
torch.set_default_tensor_type(torch.float32)
torch.set_deterministic_debug_mode(1.5)
[unwritten(make) for make in (lambda: torch.Tensor(2), lambda: torch.IntTensor(2), lambda: x.new(2, 1))]
x.new(size=(2, 1)).shape
torch.vander(torch.tensor([1j, 2])), torch.vander(torch.tensor([1j, 2]), 0), torch.vander(x.int(), 1, True)
torch.vander(x[:0]), torch.vander(x.bool(), 2), torch.vander(x, 4, True)
torch.logspace(0, 1j, 3), torch.logspace(1j, 1j, 1), torch.logspace(0, 1j, 0)
torch.logspace(0, 1j, 3, dtype=torch.float64)
torch.logspace(0, 1j, 3, dtype=torch.int32)
o(4)[1:3].view(torch.float64)
o(2, 3)[:, :2].view(torch.float64)
torch.nansum(torch.tensor([[1.0, n], [2.0, 5.0]]), 0, dtype=torch.int32)
torch.nansum(torch.tensor([n, 0.0]), dtype=torch.bool), torch.nansum(torch.tensor([n, 2.0]), dtype=torch.int8)
[laid(torch.stack([c, c], d)) for d in range(5)]
laid(torch.stack([c, c.contiguous()])), laid(torch.stack([c])), laid(torch.stack([c[:0], c[:0]]))
torch.stack([c + torch.arange(5), c], 1).sum((0, 1, 2, 3))
x.clone().contiguous(memory_format=torch.preserve_format)
x.contiguous(memory_format=torch.preserve_format)
x.is_contiguous(memory_format=torch.preserve_format), o(2).is_contiguous(memory_format=torch.preserve_format)
issubclass(torch.UntypedStorage, torch.storage._StorageBase), isinstance(3, torch.storage._StorageBase)
o(2).untyped_storage().resize_('a')
torch.nonzero(x, as_tuple=True, out=x)
torch._tensor_str.get_printoptions()
isinstance(o(1).__dlpack_device__()[0], DLDeviceType), o(1).__dlpack_device__() == (1, 0)
torch.asarray(x.__dlpack__()), torch.asarray(x.__dlpack__(), dtype=torch.int32)
torch.asarray(x.__dlpack__(), dtype=torch.int32, copy=False)
o(1).__dlpack__(stream='a')
o(1).__dlpack__(stream=True)
o(1).__dlpack__(dl_device=(3, 0))
torch.from_dlpack(o(1, device='meta'))
torch.from_dlpack(to_dlpack(x), copy=True)
torch.from_dlpack(to_dlpack((o(2, requires_grad=True) * 3)[1:]))
to_dlpack(3)
torch.from_dlpack(o(2, requires_grad=True))
orders(c), orders(c[:, :1]), orders(o(2, 3, 4)), orders(o(2, 1).t()), orders(o(()))
[orders(strided((2, 3, 4), steps)) for steps in ((0, 4, 1), (4, 0, 1), (1, 1, 1), (1, 4, 0), (0, 2, 8))]
[orders(strided((4, 2, 3), steps)) for steps in ((1, 1, 2), (2, 2, 1), (3, 0, 0), (1, 8, 1))]
o(2).dim_order(ambiguity_check='x')
[torch.linalg.cond(singular, p) for p in (1, -1, 'fro', 'nuc')], torch.linalg.cond(0 * singular, 'nuc')
torch.linalg.cond(singular.double().requires_grad_()[::2] * 2 + 1, 'nuc')
torch.linalg.matrix_norm(singular, dtype=torch.complex64)
torch.linalg.norm(o(2, 2, dtype=torch.cfloat), 'nuc', dtype=torch.int32)
torch.linalg.norm(o(2), 'x')
torch.linalg.norm(o(2, 2), 'x', 0)
torch.linalg.norm(o(2, 2), 0, dim=(0, 0))
[type(t).__name__ for t in (S(4).clone(), torch.empty(0).set_(kept).untyped_storage(), torch.Tensor(kept))]
S(4).__sizeof__() - S(0).__sizeof__()
o(2).map_(o(2).int(), max)
o(2).map2_(o(2), o(2).int(), max)
[torch._debug_has_internal_overlap(t) for t in (c, c[:, :, ::2], x, o(1).expand(2), o(1).expand(1), x[:0])]
[[torch._has_compatible_shallow_copy_type(a, b) for b in k] for k in kinds for a in k]
torch.masked._ops.sum(x, mask=x > 1), torch.masked._ops._reduction_identity('prod', x)
torch.Tensor({})
torch.LongTensor({'a': 1})
torch.Tensor(b'ab')
torch.asarray(numpy.ones(2), device='meta', copy=False)
torch.asarray(o(1), device='meta', copy=False)
torch.tensor(o(2).untyped_storage()), torch.tensor(o(2).untyped_storage(), dtype=torch.float32)
[shares(f(numbers), torch.tensor(numbers)) for f in (torch.tensor, torch.as_tensor)], torch.tensor(numbers)
torch.tensor(numbers, dtype=torch.int32)
A.add.__module__ == A.add.op.__module__, A.add.op(o(1), 2), A.add.Tensor(o(1), o(1), alpha=2)
A.add.Tensor(o(1), o(1), out=o(1))
A.add.Tensor(o(1), o(1), o(1))
A.add.Tensor(o(1))
A.mm.default(o(1, 1), o(1, 1), c=1)
A.mm(o(1, 1))
A.mm(o(1, 1), o(1, 1), c=1)
call(plain=o(1)), call(plain=None), hasattr(P(), 'foo'), call(foo=o(1))
call(foo=3)
call(**{'': o(1)})
call(**{'l.': o(1)})
call(**{'l.foo.weight': o(1)})
call(**{'l.weight.z': o(1)})
call(l=o(1))
call(**{'l.bias': o(1), 'k.bias': o(1) + 1, 'l.weight': o(1, 1)})
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", LINES.strip().split("\n"))
def test_same(text):
    assert outcome(rushlight, text, SETUP) == outcome(torch, text, SETUP)


@pytest.mark.parametrize("text", ["h.clamp(2j)", "h.clamp_max(2j)", "h.clamp(1, 2j)", "h ** 2j", "2j ** h"])
def test_complex_numbers_with_halves_are_refused(text):
    by_number = "RuntimeError: value cannot be converted to type double without overflow"
    refusal = by_number if "clamp(" in text else "NotImplementedError: "
    assert outcome(rushlight, text, "h = torch.ones(2).half()").startswith(refusal)


@pytest.mark.parametrize("name", ["is_complex", "is_floating_point", "is_inference"])
def test_native_methods_say_what_they_do(name):
    assert getattr(rushlight.Tensor, name).__doc__


def test_complex_half_is_warned_of_once():
    rushlight.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="ComplexHalf support is experimental"):
            rushlight.zeros(2, dtype=rushlight.complex32)
    finally:
        rushlight.set_warn_always(False)
