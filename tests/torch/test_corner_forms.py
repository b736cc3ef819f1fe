"""Rare forms of tensor functions, one expression each: the same values, layouts and refusals as torch's."""

import numpy as np
import pytest
from outcomes import outcome

import rushlight

torch = pytest.importorskip("torch")

OUT = """
torch.segment_reduce(torch.zeros(0), 'max', lengths=torch.tensor([0, 0]))
torch.segment_reduce(torch.zeros(2, 0), 'mean', offsets=torch.tensor([0, 2]))
torch.nn.functional.linear_cross_entropy(torch.ones(2, 0), torch.ones(3, 0), torch.tensor([0, 2]))
torch.searchsorted(torch.tensor([1j]), torch.tensor([]))
torch.sum(torch.ones(2, 2), 0, out=torch.empty(2, dtype=torch.int))
torch.sum(torch.ones(2, 2), 0, dtype=torch.float, out=torch.empty(2, dtype=torch.int))
torch.sum(torch.ones(2, 2), 0, dtype=torch.int, out=torch.empty(2))
torch.prod(torch.ones(2, 2), 0, out=torch.empty(2, dtype=torch.int))
torch.prod(torch.ones(2, 2), 0, dtype=torch.int, out=torch.empty(2))
torch.mean(torch.ones(2, 2), 0, dtype=torch.double, out=torch.empty(2))
torch.nansum(torch.ones(2, 2), 0, out=torch.empty(2, dtype=torch.int))
torch.nansum(torch.ones(2, 2), 0, dtype=torch.double, out=torch.empty(2))
torch.logcumsumexp(torch.ones(2, 2), 0, out=torch.empty(2, 2, dtype=torch.double))
torch.quantile(torch.arange(5.), 0.3, out=torch.empty(1, dtype=torch.double))
torch.sort(torch.ones(2, 2), 1, out=(torch.empty(0, dtype=torch.double), torch.empty(0, dtype=torch.long)))
torch.topk(torch.ones(2, 2).int(), 1, out=(torch.empty(0), torch.empty(0, dtype=torch.long)))
torch.kthvalue(torch.ones(2, 2), 1, out=(torch.empty(0).double(), torch.empty(0, dtype=torch.long)))
torch.mode(torch.ones(2, 2), 1, out=(torch.empty(2), torch.empty(2)))
torch.mode(torch.ones(2, 2).int(), 1, out=(torch.empty(2), torch.empty(2, dtype=torch.long)))
torch.median(torch.ones(2, 2), 0, out=(torch.empty(2, dtype=torch.double), torch.empty(2, dtype=torch.long)))
torch.median(torch.ones(2, 2), 0, out=(torch.empty(2), torch.empty(2)))
torch.cummax(torch.ones(2, 2), 1, out=(torch.empty(2), torch.empty(2)))
torch.max(torch.ones(2, 2).int(), 1, out=(torch.empty(2), torch.empty(2, dtype=torch.long)))
torch.aminmax(torch.ones(2, 2), dim=1, out=(torch.empty(2).double(), torch.empty(2).double()))
torch.stack([torch.ones(2), torch.ones(2)], out=torch.empty(2, 2).int())
torch.add(torch.ones(2, 3).t(), torch.ones(2, 3).t(), out=torch.empty(0)).stride()
torch.where(torch.ones(2, 3).t() > 0, torch.ones(2, 3).t(), torch.ones(2, 3).t(), out=torch.empty(0)).stride()
torch.sum(torch.ones(2, 3, 4).permute(2, 0, 1), 0, out=torch.empty(0)).stride()
torch.linalg.qr(torch.ones(3, 2), out=(torch.empty(0), torch.empty(0)))[0].stride()
torch.linalg.cholesky(torch.eye(2), out=torch.empty(0)).stride()
torch.nonzero(torch.ones(2, 3), out=torch.empty(0).long()).stride()
torch.cat([torch.ones(2, 3).t(), torch.ones(2, 3).t()], out=torch.empty(0)).stride()
torch.cumsum(torch.ones(2, 3).t(), 0, out=torch.empty(0)).stride()
torch.arange(5, out=torch.empty(2))
torch.linspace(0, 1, 3, out=torch.empty(2))
torch.eye(2, out=torch.empty(5))
torch.full((3,), 2, out=torch.empty(7))
torch.zeros(3, out=torch.empty(7))
"""

REFUSALS = """
torch.corrcoef(torch.randn(2, 2, 2))
torch.Tensor(dtype=torch.int)
torch.lerp(torch.ones(2), torch.zeros(2), 0.5j)
torch.ones(2).lerp_(torch.zeros(2), 0.5j)
torch.addcmul(torch.ones(2), torch.ones(2), torch.ones(2), value=1j)
torch.ones(2).addcdiv_(torch.ones(2), torch.ones(2), value=1j)
torch._foreach_addcmul([torch.ones(2)], [torch.ones(2)], [torch.ones(2)], 1j)
torch.nn.functional.leaky_relu(torch.ones(2), 1j)
torch.nn.functional.elu(torch.ones(2), 1j)
torch.nn.functional.softplus(torch.ones(2), 1j)
torch.index_add(torch.ones(2), 0, torch.tensor([0]), torch.ones(1), alpha=1j)
torch.nan_to_num(torch.ones(2), nan=1j)
torch.trapezoid(torch.ones(3), dx=1j)
torch.cumulative_trapezoid(torch.ones(3), dx=1j)
torch.set_warn_always(3)
torch.use_deterministic_algorithms('a')
torch.promote_types('a', torch.int)
torch.can_cast(1, torch.int)
torch.where(torch.tensor([True]), 'a', 2)
torch.masked._reduction_identity('softmax', torch.ones(2))
torch.get_device_module(3)
torch.set_default_tensor_type(torch.IntTensor)
torch.gradient(torch.arange(10.), spacing=[1., 2.])
torch.diff(torch.arange(6).reshape(2, 3), prepend=torch.zeros(3, 1))
torch.zeros(3).index_add_(0, torch.tensor([0, 5]), torch.ones(2))
torch.zeros(3, 2).index_add_(0, torch.tensor([0, 5]), torch.ones(2, 2))
torch.renorm(torch.ones(3, 3), 2j, 0, 1)
torch.ones(2).resize(3)
torch.ones(2).resize_as(torch.ones(3, 4))
torch.ones(2).resize_(2, 3, memory_format=torch.preserve_format)
torch.empty(1, 2, memory_format=torch.preserve_format)
torch.segment_reduce(torch.arange(6.), 'sum', lengths=torch.tensor([2, 4.]))
torch.ones(6).unflatten(0, 6)
torch.ones(6).unflatten(0, (-1, -1))
torch.ones(2, 3).permute()
torch.split(torch.arange(5), 'a')
torch.split(torch.arange(5), 2.5)
torch.broadcast_shapes(1.5)
torch.meshgrid(torch.ones(2, 2), torch.arange(3), indexing='ij')
torch.searchsorted(torch.tensor(1), torch.tensor([3]))
torch.searchsorted(torch.tensor([[1, 3], [1, 3]]), 1)
torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3]), sorter=torch.tensor([0, 1, 7]))
torch.quantile(torch.arange(5.), torch.tensor([1.3]))
torch.linspace(0, 1j, 3, dtype=torch.float)
torch.tensor(np.array(['a']))
torch.tensor(np.array([None]))
torch.from_numpy(np.float64(3))
torch.asarray(np.ones(2), dtype=torch.float, copy=False)
torch.frombuffer([1], dtype=torch.int)
torch.frombuffer(bytearray(8))
torch.frombuffer(bytearray(8), dtype=torch.int, requires_grad=True)
torch.arange(5).index_put_(torch.tensor([0]), torch.tensor(1))
torch.arange(6).reshape(2, 3).index_put_((None, torch.tensor([0])), torch.tensor(1))
torch.empty(0).set_(torch.ones(3, dtype=torch.int).storage())
torch.FloatTensor(torch.DoubleStorage([1, 2]))
torch.ByteStorage.from_buffer(bytearray([1, 2, 3]), 'native', 1, 20)
torch.tensor([1., 2]).storage()['a']
"""

VALUES = """
torch.clamp(torch.arange(5), torch.tensor(1), 3)
torch.clamp(torch.arange(5), 1, torch.tensor(3.5))
torch.ones(2).resize_(1, 2, 3, 4, memory_format=torch.channels_last).stride()
torch.ones(2).resize_as_(torch.ones(1, 2, 3, 4), memory_format=torch.channels_last).stride()
torch.ones(1, 2, 3, 4).resize_(1, 2, 3, 4, memory_format=torch.channels_last).stride()
torch.ones(6).view(2, 3).t().resize_(3, 2).stride()
torch.empty(0).set_(torch.ones(3).untyped_storage(), 0, (10,), (1,))[:3]
torch.ones(3).storage().resize_(5)
torch.ByteStorage.from_buffer(bytearray([1, 2, 3]), 'q').tolist()
np.greater_equal(torch.arange(3), 1)
torch.pow(torch.tensor([True, False]), True), torch.pow(torch.tensor([True, False]), False)
torch._foreach_pow([torch.tensor([True, False])], [True])
torch.addcmul(torch.ones(2), torch.ones(2) * 1j, torch.ones(2), value=1j)
torch.lerp(torch.ones(2), torch.zeros(2), 0.5 + 0j)
torch.where(torch.tensor([1, 0], dtype=torch.uint8), 1, 2)
torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (torch.ones(2),))
__import__('inspect').getfullargspec(torch.overrides.get_testing_overrides()[torch.gru]).args
torch.pow(torch.tensor([0j]), torch.tensor([-1 + 0j, -1 + 1j, 1j, 2 - 1j]))
torch.tensor([0j]) ** -1.5
torch.Tensor(size=(2, 3)).shape
torch.Tensor(other=torch.ones(2))
torch.masked._reduction_identity('norm', torch.ones(2), -float('inf'))
torch.masked._reduction_identity('mean', torch.ones(2))
torch.masked._combine_input_and_mask(torch.masked.amax, torch.arange(3.), torch.tensor([True, False, True]))
torch.masked._canonical_dim((0, -1), 3), torch.masked._canonical_dim((), 2)
torch.utils.dlpack.DLDeviceType.kDLCPU, torch.utils.dlpack.DLDeviceType.kDLMAIA
torch.torch_version.TorchVersion('2.13.0+x') > (2, 9), torch.torch_version.TorchVersion('1.10') < '1.9'
torch.torch_version.TorchVersion('2.0') == '2.0.0', torch.torch_version.TorchVersion('2.0') > 'parrot'
torch.tensor([1., 2]).__array_wrap__(np.array([True, False]))
torch.segment_reduce(torch.arange(6.), 'max', lengths=torch.tensor([2, 4]))
"""


@pytest.mark.parametrize("text", [s for t in (OUT, REFUSALS, VALUES) for s in t.strip().splitlines()])
def test_expression(text):
    ours, theirs = (
        outcome(lambda lib=lib: eval(text, {"torch": lib, "np": np}))[0] for lib in (rushlight, torch)
    )
    assert ours.replace("rushlight", "torch") == theirs


def test_a_storage_and_its_tensors_are_copied_together():
    import copy

    def run(library):
        a = library.arange(4.0)
        b, c = copy.deepcopy([a, a.untyped_storage()])
        b.fill_(3)
        return c.tolist(), a.tolist()

    assert run(rushlight) == run(torch)


@pytest.mark.parametrize("action", [
    "FloatStorage()", "FloatStorage.dtype", "s.fill_(0)", "s.is_cuda", "s.untyped()", "len(s)", "s[0]",
    "s.size()", "s.clone()", "s.device", "s._size()", "s._untyped_storage", "ones(2).untyped_storage()",
    "save(ones(2), file)", "load(saved, weights_only=False)", "load(saved)",
])  # fmt: skip
def test_typed_storages_warn_once(action, tmp_path):
    """The first use of a typed storage warns; what the library does by itself never does."""
    import warnings

    def run(library):
        library.storage._reset_warn_typed_storage_removal()
        names = {"s": library.ones(3)._typed_storage(), "len": len, "file": tmp_path / "x"}
        names |= {name: getattr(library, name) for name in ("FloatStorage", "ones", "save", "load")}
        names["saved"] = tmp_path / "y"
        library.save(library.ones(2), names["saved"])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            eval(action, names)
            eval(action, names)
        return len(caught)

    assert run(rushlight) == run(torch)


@pytest.mark.parametrize("warn_only", [False, True])
def test_what_is_not_deterministic(warn_only):
    def run(library):
        functional = library.nn.functional
        index, image = library.tensor([0, 1]), library.ones(1, 1, 2, 2)
        library.use_deterministic_algorithms(True, warn_only=warn_only)
        try:
            return [
                outcome(lambda: library.zeros(4).put_(index, library.ones(2))),
                outcome(lambda: library.zeros(4).put_(index, library.ones(2), accumulate=True)),
                outcome(lambda: functional.max_unpool2d(image, library.zeros(1, 1, 2, 2).long(), 2).shape),
                outcome(lambda: functional.max_unpool1d(image[0], library.zeros(1, 2, 2).long(), 2).shape),
            ]
        finally:
            library.use_deterministic_algorithms(False)

    assert run(rushlight) == run(torch)


def test_warnings_given_once_are_given_always_if_asked_for():
    def run(library):
        fixed = np.ones(2)
        fixed.flags.writeable = False
        library.set_warn_always(True)
        try:
            told = [outcome(lambda: library.from_numpy(fixed))[1:] for _ in range(2)]
            told += [outcome(lambda: library.frombuffer(b"1234", dtype=library.uint8))[1:] for _ in range(2)]
            spectrum = library.ones(3, 5) + 0j
            return told + [len(outcome(lambda: library.istft(spectrum, 4, length=5))) for _ in range(2)]
        finally:
            library.set_warn_always(False)

    assert run(rushlight) == run(torch)


def test_names_of_the_past_warn():
    def run(library):
        told = [outcome(lambda: library.set_vital("Dataloader", "enabled", "True"))]
        return told + [
            outcome(lambda name=name: getattr(library, f"has_{name}"))[-1]
            for name in ("mps", "cuda", "mkldnn")
        ]

    assert run(rushlight) == run(torch)
