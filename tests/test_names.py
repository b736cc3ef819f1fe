"""Names that libraries and test suites look up: each works, or says what is true here."""

import gc
import importlib

import pytest

import rushlight
from rushlight.testing import _comparison as comparison


@pytest.mark.parametrize(
    "name",
    [
        "backends.cusparselt", "backends.kleidiai", "backends.nnpack", "backends.opt_einsum",
        "xpu", "mps", "mtia",
    ],
)  # fmt: skip
def test_what_is_not_there_says_so(name):
    assert importlib.import_module(f"rushlight.{name}").is_available() is False


def test_switches_of_backends_come_back():
    for library in (rushlight.backends.cudnn, rushlight.backends.mkldnn):
        before = library.set_flags()
        with library.flags(enabled=not library.enabled, deterministic=True):
            assert library.deterministic
            assert library.set_flags() != before
        assert library.set_flags() == before
    with pytest.raises(RuntimeError, match="Unknown precision: half"):
        rushlight.backends.cudnn.conv.fp32_precision = "half"


def test_names_of_the_extension():
    assert rushlight._C.has_lapack is True
    assert rushlight._C._get_tracing_state() is None
    with rushlight._C.DisableTorchFunctionSubclass():
        assert not rushlight._C._is_torch_function_enabled()
    assert rushlight._C._is_torch_function_enabled()
    with pytest.raises(AttributeError, match="no_such_name"):
        rushlight._C.no_such_name


def test_dispatcher_names():
    aten = rushlight.ops.aten
    x = rushlight.tensor([1.0, -2.0])
    assert aten.abs.default(x).tolist() == [1.0, 2.0]
    assert aten.add.Tensor is aten.add.Tensor
    with pytest.raises(NotImplementedError, match=r"torch\.ops\.aten\._cudnn_rnn"):
        aten._cudnn_rnn(x)


def test_weak_dictionary_goes_by_identity():
    from rushlight.utils.weak import TensorWeakRef, WeakIdKeyDictionary

    a, b = rushlight.ones(2), rushlight.ones(2)
    notes = WeakIdKeyDictionary({a: 1, b: 2})
    assert (notes[a], notes[b], a in notes, len(notes)) == (1, 2, True, 2)
    assert notes.copy() == notes
    reference = TensorWeakRef(b)
    del b
    gc.collect()
    assert reference() is None
    assert len(notes) == 1


# ---- lists of tensors


def leaves():
    return [rushlight.tensor([1.0, 2.0], requires_grad=True), rushlight.tensor([3.0], requires_grad=True)]


def test_lists_compute_and_differentiate():
    xs = leaves()
    total = sum(t.sum() for t in rushlight._foreach_mul(rushlight._foreach_exp(xs), [2.0, 3.0]))
    total.backward()
    assert rushlight.allclose(xs[0].grad, 2 * xs[0].detach().exp())
    assert rushlight.allclose(xs[1].grad, 3 * xs[1].detach().exp())
    plain = [t.detach() for t in xs]
    assert rushlight._foreach_add_(plain, plain, alpha=2) is plain
    assert plain[0].tolist() == [3.0, 6.0]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda f: f([], []), "Tensor list must have at least one tensor."),
        (
            lambda f: f([rushlight.ones(1)], [rushlight.ones(1)] * 2),
            "Tensor lists must have the same number of tensors, got 1 and 2",
        ),
        (
            lambda f: f([rushlight.ones(1)], []),
            "Tensor list must have same number of elements as scalar list.",
        ),
        (
            lambda f: f([rushlight.ones(1)], [1.0, 2.0]),
            "Tensor list must have same number of elements as scalar list.",
        ),
        (lambda f: f([rushlight.ones(1)], rushlight.ones(2)), "scalar tensor expected to be 0 dim"),
    ],
)
def test_lists_that_do_not_fit(call, text):
    with pytest.raises(RuntimeError, match=text):
        call(rushlight._foreach_add)


# ---- comparison


def test_pairs_of_one_s_own():
    class TextPair(comparison.Pair):
        def __init__(self, actual, expected, **others):
            self._check_inputs_isinstance(actual, expected, cls=str)
            super().__init__(actual, expected, **others)

        def compare(self):
            if self.actual != self.expected:
                self._fail(AssertionError, f"{self.actual!r} is not {self.expected!r}")

    kinds = (TextPair, comparison.ObjectPair)
    found = comparison.not_close_error_metas({"a": "x", "b": [1]}, {"a": "y", "b": [2]}, pair_types=kinds)
    assert [(meta.msg, meta.id) for meta in found] == [("'x' is not 'y'", ("a",)), ("1 != 2", ("b", 0))]
    assert str(found[0].to_error(lambda text: f"so: {text}")).startswith("so: 'x' is not 'y'")


# ---- odd arguments that torch's own tests try


def test_two_numbers_make_a_tensor():
    for name, expected in (("add", 5), ("sub", -1), ("mul", 6), ("floor_divide", 0)):
        result = getattr(rushlight, name)(2, 3)
        assert (result.item(), result.dtype, result.dim()) == (expected, rushlight.int64, 0)
    assert rushlight.div(1, 2).item() == 0.5
    with pytest.raises(RuntimeError, match="with two bool tensors is not supported"):
        rushlight.tensor([True]).sub_(rushlight.tensor([True]))


def test_out_on_another_device_is_refused():
    with pytest.raises(RuntimeError, match="cross-device copies are not allowed"):
        rushlight.exp(rushlight.ones(2), out=rushlight.empty(2, device="meta"))


def test_out_that_overlaps():
    x = rushlight.arange(4.0)
    for write in (
        lambda: rushlight.exp(x[:3], out=x[1:]),
        lambda: rushlight.add(x[:3], 1, out=x[1:]),
        lambda: x[1:].copy_(x[:3]),
    ):
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            write()
    rushlight.mul(x, 2, out=x)
    assert x.tolist() == [0.0, 2.0, 4.0, 6.0]


def test_an_error_about_out_names_the_function():
    x = rushlight.ones(2, requires_grad=True)
    for name in ("exp", "add"):
        with pytest.raises(RuntimeError, match=rf"^{name}\(\): functions with out="):
            getattr(rushlight, name)(*[x] * (2 if name == "add" else 1), out=rushlight.empty(2))


def test_numpy_integers_are_the_ones_of_tables():
    numpy = pytest.importorskip("numpy")
    assert rushlight.tensor([1]).numpy().dtype.type is numpy.int64


def test_isin_looks_many_up():
    x = rushlight.tensor([3.0, float("nan"), 50.0, -1.0, 99.5])
    known = rushlight.cat([rushlight.arange(100.0), rushlight.tensor([float("nan")])])
    assert rushlight.isin(x, known).tolist() == [True, False, True, False, False]
    with pytest.raises(RuntimeError, match="Unsupported input type encountered for isin"):
        rushlight.isin(rushlight.tensor([True]), rushlight.tensor([True]))


def test_unique_rows_of_nothing():
    assert rushlight.unique(rushlight.zeros(0, 5, 5), dim=0).shape == (0, 5, 5)
    with pytest.raises(RuntimeError, match="There are 0 sized dimensions"):
        rushlight.unique(rushlight.zeros(5, 0), dim=0)


def test_underscored_functions():
    pieces = rushlight._chunk_cat([rushlight.arange(5), rushlight.arange(4)], 0, 2)
    assert pieces.tolist() == [[0, 1, 2, 0, 1], [3, 4, 0, 2, 3]]
    x = rushlight.tensor([[0.0, 1.0, 2.0]], requires_grad=True)
    y = x.softmax(1)
    aten = rushlight.ops.aten
    g = rushlight.tensor([[1.0, 0.0, 2.0]])
    (expected,) = rushlight.autograd.grad(y, x, g)
    assert rushlight.allclose(aten._softmax_backward_data(g, y, 1, rushlight.float32), expected)
    assert aten.slice.Tensor(x, 1, 0, 2).tolist() == [[0.0, 1.0]]
    mask = rushlight.masked._output_mask(
        rushlight.masked.sum, x, 1, mask=rushlight.tensor([True, False, True])
    )
    assert mask.tolist() == [True]


# ---- compilers


def test_settings_of_a_compiler_can_be_read_and_set():
    config = rushlight._dynamo.config
    assert config.suppress_errors is False
    config.suppress_errors = True
    assert config.suppress_errors is True
    config.suppress_errors = False

    @config.patch(suppress_errors=True)
    def function():
        return config.suppress_errors

    assert function() is False
    with pytest.raises(NotImplementedError, match=r"torch\._prims\.add is not implemented"):
        rushlight._prims.add(1, 2)


def test_references_are_the_operations_themselves():
    import rushlight._refs.nn.functional

    from rushlight import _refs

    for module in (_refs, _refs.fft, _refs.linalg, _refs.nn.functional, _refs.special, _refs._conversions):
        assert module.__all__ and all(callable(getattr(module, name)) for name in module.__all__)
    assert _refs.add is rushlight.add and _refs.T(rushlight.ones(2, 3)).shape == (3, 2)
    assert _refs.fft.fft is rushlight.fft.fft and _refs.nn.functional.gelu is rushlight.nn.functional.gelu
    assert _refs._conversions.int(rushlight.ones(1)).dtype == rushlight.int32
    x = rushlight.zeros(3)
    assert _refs.exponential(x).all() and not x.any()
    with pytest.raises(AttributeError, match=r"module 'torch._refs.fft' has no attribute 'zork'"):
        _refs.fft.zork


def test_versions_compare():
    parse = importlib.import_module("rushlight._vendor.packaging.version").parse
    ordered = ["1.0.dev3", "1.0a1", "1.0rc1", "1.0", "1.0.post1", "1.0.1", "1.2", "1.10", "2.13.0+cpu"]
    assert sorted(ordered, key=parse) == ordered
    assert parse("1.0") == parse("1.0.0")
    with pytest.raises(ValueError, match="Invalid version"):
        parse("one")


def test_a_view_of_one_element_is_assigned_to_itself():
    x = rushlight.tensor([1.0, 2.0, 3.0])
    x[1::2] *= -1
    assert x.tolist() == [1.0, -2.0, 3.0]
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[1:] = x[:2]


def test_unwritten_memory_under_deterministic_algorithms():
    rushlight.use_deterministic_algorithms(True)
    try:
        made = [rushlight.empty(2), rushlight.empty_like(rushlight.ones(2)), rushlight.ones(1).new_empty(2)]
        assert all(t.isnan().all() for t in made)
        assert rushlight.empty(1, dtype=rushlight.int8).item() == 127
        grown = rushlight.ones(2).resize_(3)
        assert grown[:2].tolist() == [1.0, 1.0]
        assert grown[2].isnan()
    finally:
        rushlight.use_deterministic_algorithms(False)


def test_every_use_of_a_typed_storage_can_be_warned_about():
    from rushlight import storage

    storage._set_always_warn_typed_storage_removal(True)
    try:
        for _ in range(2):
            with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
                rushlight.ones(2).storage()
    finally:
        storage._set_always_warn_typed_storage_removal(False)
        storage._reset_warn_typed_storage_removal()
