"""What torch's own suites of operators ask about many operators at once, one expression each."""

import itertools
import warnings

import pytest
from outcomes import outcome

import rushlight

torch = pytest.importorskip("torch")
pytest.importorskip("torch._refs")

EXPRESSIONS = """
torch.tensor([1 + 2j, 3j, complex("inf")]).mean()
torch.tensor([[1 + 2j, 3j], [complex("nan"), 1]]).mean(1, keepdim=True)
torch.tensor([[1 + 2j, 3j], [5, 1 - 1j]], requires_grad=True).mean(0)
torch.ones(0, dtype=torch.complex64).mean()
torch.tensor([True, False]) ** True
torch.tensor([True, False]) ** False
torch.tensor([True, False]).pow_(True)
torch.tensor([True, False]).pow_(False)
torch.tensor([True, False]).pow_(2)
torch.tensor([True, False]).pow(2)
torch.tensor([True, False]).__ipow__(True)
torch.pow(torch.tensor([True, False]), False, out=torch.zeros(2))
torch._foreach_pow_([torch.tensor([True, False])], [True])
torch._foreach_mm([torch.ones(1, 1, requires_grad=True)], [torch.ones(1, 1)])[0].grad_fn.name()
torch._foreach_maximum([torch.ones(2)], [torch.ones(2, dtype=torch.complex64)])
torch._foreach_minimum([torch.ones(2, dtype=torch.complex128)], 1)
torch._foreach_clamp_max_([torch.ones(2)], [1j])
torch._foreach_clamp_min([torch.ones(2, dtype=torch.complex64)], [torch.ones(2)])
torch._foreach_norm([torch.ones(2)], True)
torch.all(torch.tensor([[1, 0], [1, 2]], dtype=torch.uint8), 1, out=torch.zeros(2, dtype=torch.bool))
torch.any(torch.tensor([0, 2], dtype=torch.uint8), out=torch.zeros((), dtype=torch.bool))
torch.any(torch.tensor([0.0, 2.0]), out=torch.zeros((), dtype=torch.uint8))
torch.any(torch.tensor([0.0, 2.0]), out=torch.zeros(()))
torch.ones(2).heaviside_(torch.ones(2).double())
torch.ones(2).heaviside_(torch.ones(2, dtype=torch.complex64))
torch.zeros(2).heaviside_(torch.tensor([0.5]))
torch.zeros(2).heaviside_(1.0)
torch._foreach_copy_([torch.ones(2)], [torch.ones(2)], 0.5)
torch._foreach_powsum([torch.ones(2, dtype=torch.int16)])
torch.alias_copy(torch.ones(2), out=torch.ones(2, requires_grad=True))
torch.floor_divide(torch.ones(2), 2, out=torch.ones(2, requires_grad=True))
torch.softmax(torch.ones(2), 0, out=torch.ones(2, requires_grad=True))
torch.slice_scatter(torch.ones(2), torch.ones(2), out=torch.ones(2, requires_grad=True))
torch.view_copy(torch.ones(2), (2,), out=torch.ones(2, requires_grad=True))
torch.histogram(torch.ones(2), 1, out=(torch.ones(1, requires_grad=True), torch.ones(2)))
torch.quantile(torch.ones(2), 0.5, out=torch.ones((), requires_grad=True))
torch.frac(torch.ones(2), out=torch.ones(2).double())
torch.nn.functional.softplus(torch.ones(2), out=torch.ones(2).double())
torch.nn.functional.hardshrink(torch.ones(2), out=torch.ones(2).long())
torch.nn.functional.softshrink(torch.ones(2), out=torch.ones(2).bool())
torch.nn.functional.logsigmoid(torch.ones(2), out=torch.ones(2).double())
[torch.float32.abbr, torch.complex32.abbr, torch.float8_e4m3fn.abbr, torch.bool.abbr, torch.uint16.abbr]
torch.quint8.abbr
torch.trapz(torch.arange(6.0).view(2, 3), torch.arange(3.0).expand(2, 3), dim=1)
torch.trapz(torch.ones(2, 3), torch.ones(2, 3), dim=2)
torch.trapz(torch.ones(2, 3), torch.ones(3), dim=0)
torch.trapz(torch.ones(2, 3), torch.ones(2, 3), dx=1)
torch._refs.prod(torch.arange(1.0, 7.0).view(1, 2, 3), (0, -1), keepdim=True)
torch._refs.prod(torch.arange(1.0, 7.0).view(1, 2, 3), (0, 1))
torch._refs.prod(torch.arange(1, 7).view(2, 3))
torch._refs.prod(torch.tensor(3), keepdim=True)
torch._refs.prod(torch.ones(2, 2), (0, -2))
torch._refs.prod(torch.ones(2, 3), [])
torch._refs.prod(torch.ones(2, 3), [], True)
torch._refs.T(torch.ones(1, 2, 3))
torch._refs.T(torch.ones(1, 3)).shape
torch._refs.isnan(torch.ones(2), out=torch.ones(2))
torch._refs.amax(torch.ones(2), 0, out=torch.ones((), dtype=torch.int32))
torch._refs.amin(torch.ones(2), 0, out=torch.ones((), dtype=torch.float64))
torch._refs.neg(torch.ones(2), out=torch.ones(2, dtype=torch.float64))
torch._refs.nn.functional.relu(torch.ones(2), out=3)
torch._refs.nn.functional.threshold(torch.ones(2), 2.0, 1.5, out=torch.ones(0))
torch._refs.nn.functional.tanhshrink(torch.linspace(-3, 3, 13).bfloat16())
torch._refs.heaviside(torch.tensor([0.0, 2.0]), torch.tensor([1]))
torch._refs.heaviside(torch.tensor([1, 0]), torch.tensor(0.5))
torch.zeros(3, dtype=torch.uint16).random_(5, generator=torch.Generator().manual_seed(0))
torch.zeros(3, dtype=torch.uint64).random_(5, generator=torch.Generator().manual_seed(0))
torch.zeros(3, dtype=torch.uint16).random_(-1, 3)
torch.zeros(3, dtype=torch.uint16).random_(2**20)
torch.hash_tensor(torch.ones(2, 0, 3), 0)
torch.hash_tensor(torch.ones(2, 0, 3), (0, 2), keepdim=True)
torch.ones(3, 4, 5).to(torch.complex32).flip(2)
torch.ones(3, 4, 5).to(torch.complex32).flip(1).shape
torch.ones(3, 4, 5).to(torch.complex32).flip((0, 2)).shape
torch.ones(3, 4, 5).to(torch.complex32)[..., ::2].flip(0)
torch.ones(3, 4, 1).to(torch.uint16).flip(0)
torch.ones(3, 4, 1).to(torch.uint16).flip(2).shape
torch.ones(3, 4, 5).to(torch.uint32).transpose(0, 2).flip(1).shape
torch.ones(3, 4, 5).to(torch.float8_e5m2).transpose(0, 2).flip(0)
torch.ones(0, 4).to(torch.complex32).flip(1).shape
torch.ones((), dtype=torch.uint64).flip(0)
torch.rot90(torch.ones(3, 3).to(torch.complex32), 2)
torch.nn.functional.pixel_shuffle(torch.ones(4, 1, 1).to(torch.complex32), 2)
torch.nn.functional.pixel_unshuffle(torch.ones(1, 2, 2).to(torch.uint16), 2)
torch.nn.functional.pixel_shuffle(torch.ones(4, 0, 1).to(torch.complex32), 2).shape
torch.nn.functional.channel_shuffle(torch.ones(1, 4, 1).to(torch.float8_e4m3fn), 2)
(lambda x: x.unfold(0, 2, 1).backward(x.new_ones(2, 2)))(torch.ones(3, dtype=torch.chalf, requires_grad=True))
(lambda x: x.unfold(0, 2, 2).backward(x.new_ones(1, 2)))(torch.ones(3, dtype=torch.chalf, requires_grad=True))
torch.masked.norm(torch.ones(2, dtype=torch.complex64), -float("inf"), mask=torch.tensor([True, False]))
torch.masked.norm(torch.ones(2, dtype=torch.complex64), -float("inf"))
"""


@pytest.fixture(autouse=True, scope="module")
def complex_half():
    """Both have warned of complex32, which they do once in a process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for library in (rushlight, torch):
            library.ones(1).to(library.complex32)


@pytest.mark.parametrize("text", EXPRESSIONS.strip().splitlines())
def test_expressions(text):
    ours, theirs = (outcome(lambda t=t: repr(eval(text, {"torch": t}))) for t in (rushlight, torch))
    assert ours == theirs


def test_parallel_lists():
    def groups(library, utilities):
        one = library.ones(1)
        other, step = one.double(), library.tensor(1)
        for lists in (
            *([[one], [one, one]], [[one, one], [one]], [], [[]], [[one, one], []], [[one], [None]]),
            *([[None], [one]], [[one, None], [one, one]], [[one], [step]], [[one], [step.double()]]),
            *([[one], [one.bfloat16()]], [[one], [one.half()]], [[one, other], [other, one]]),
        ):
            for with_indices in (False, True):
                try:
                    found = utilities._group_tensors_by_device_and_dtype(lists, with_indices)
                except RuntimeError as error:
                    yield str(error).startswith("Tensors of the") and str(error)
                else:
                    yield sorted((str(key), repr(value)) for key, value in found.items())

    import torch.utils._foreach_utils as theirs

    import rushlight.utils._foreach_utils as ours

    assert list(groups(rushlight, ours)) == list(groups(torch, theirs))


def test_elementwise_dtypes():
    def answers(library, utilities):
        some = [
            *(
                library.ones(2, dtype=getattr(library, name))
                for name in ("float16", "int32", "bool", "cfloat")
            ),
            *(library.tensor(1.0), library.tensor(1, dtype=library.int8), 2.5, True, 1, 1j),
        ]
        ask = utilities.elementwise_dtypes
        return [
            [str(dtype) for dtype in ask(*values, type_promotion_kind=kind)]
            for kind in utilities.ELEMENTWISE_TYPE_PROMOTION_KIND
            for values in itertools.product(some, repeat=3)
        ]

    import rushlight._prims_common as ours
    import torch._prims_common as theirs

    assert answers(rushlight, ours) == answers(torch, theirs)


LOST_HISTORY = """
float(x)
int(x)
complex(x)
torch.tensor([x, x])
torch.tensor([[x], [1]])
torch.tensor([x], dtype=torch.complex64)
torch.tensor([x.detach()])
x.new_tensor([x * 2])
torch.Tensor([x])
torch.as_tensor([x])
torch.no_grad()(lambda: torch.tensor([x]))()
x.item()
"""


@pytest.mark.parametrize("text", LOST_HISTORY.strip().splitlines())
def test_a_number_made_of_what_has_a_gradient(text):
    def told(library):
        names = {"torch": library, "x": library.ones((), requires_grad=True)}
        library.set_warn_always(True)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                value = eval(text, names)
        finally:
            library.set_warn_always(False)
        return repr(value), [str(w.message).split(" (Triggered")[0] for w in caught]

    assert told(rushlight) == told(torch)


def test_layout_of_gradients_without_elements():
    def strides(library):
        x = library.empty_strided((0, 4, 10), (80, 20, 1)).requires_grad_()
        (x * 2).backward(library.ones(0, 4, 10))
        (x * 2).backward(library.ones(0, 4, 10))
        return x.grad.stride()

    assert strides(rushlight) == strides(torch)


@pytest.mark.parametrize("correction", [1, 0, -1, 2.5])
@pytest.mark.parametrize("dim", [0, 1, 2, (0, 2), None])
def test_warnings_of_spreads_without_results(dim, correction):
    def told(library):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for name in ("var", "std", "var_mean"):
                getattr(library, name)(library.ones(2, 0, 3), dim, correction=correction)
        return [str(w.message).split(" (Triggered")[0] for w in caught]

    assert told(rushlight) == told(torch)
