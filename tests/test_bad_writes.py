"""Writes that are refused leave everything as it was, and `out=` is asked for what torch asks of it. The
sentences are torch's."""

import numpy
import pytest

import rushlight as torch

INTERNAL = "more than one element of the written-to tensor refers to a single memory location"
OVERLAP = "some elements of the input tensor and the written-to tensor refer to a single memory location"


@pytest.mark.parametrize("name", ["remainder_", "fmod_", "floor_divide_"])
@pytest.mark.parametrize("divisor", [torch.tensor([2, 0, 3, 1]), torch.tensor(0), 0])
def test_integers_divided_by_zero_stay_whole(name, divisor):
    x = torch.tensor([6, 7, 8, 9])
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        getattr(x, name)(divisor)
    assert x.tolist() == [6, 7, 8, 9] and x._version == 0


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("add_", ([torch.ones(2), torch.ones(3)],)),
        ("add_", ([torch.ones(2), torch.ones(2, dtype=torch.complex64)],)),
        ("mul_", ([1.0, 1j],)),
        ("copy_", ([torch.ones(2), torch.ones(3)],)),
        ("addcmul_", ([torch.ones(2), torch.ones(5)], [torch.ones(2), torch.ones(5)])),
        ("lerp_", ([torch.ones(2), torch.ones(3)], 0.5)),
    ],
)
def test_a_list_of_tensors_is_written_as_a_whole(name, rows):
    tensors = [torch.tensor([6.0, 7.0]), torch.tensor([8.0, 9.0])]
    with pytest.raises(RuntimeError):
        getattr(torch, "_foreach_" + name)(tensors, *rows)
    assert [t.tolist() for t in tensors] == [[6.0, 7.0], [8.0, 9.0]]
    frozen = [torch.ones(2), torch.ones(2, requires_grad=True)]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        torch._foreach_add_(frozen, 1)
    assert frozen[0].tolist() == [1.0, 1.0]


def test_out_that_is_an_input_is_not_resized():
    x = torch.ones(3)
    with pytest.raises(
        RuntimeError, match=r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"
    ):
        torch.add(x, torch.ones(2, 3), out=x)
    assert x.shape == (3,)


def test_out_of_elements_that_are_shared():
    x = torch.arange(6.0).view(2, 3)
    with pytest.raises(RuntimeError, match=INTERNAL):
        torch.exp(x, out=torch.zeros(3).expand(2, 3))
    with pytest.raises(RuntimeError, match=INTERNAL):  # of any shape, before it is resized
        torch.exp(x, out=torch.zeros(1).expand(7))
    for call in (
        lambda: torch.exp(x, out=x[1:]),
        lambda: torch.outer(x[0], x[1], out=x),
        lambda: torch.scatter(torch.zeros(2, 3), 0, torch.zeros(2, 3).long(), x, out=x),
    ):
        with pytest.raises(RuntimeError, match=OVERLAP):
            call()
    with pytest.raises(RuntimeError, match=OVERLAP), pytest.warns(UserWarning, match="was resized"):
        torch.cumsum(x, 0, out=x[1:])
    assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_out_of_what_requires_grad_is_told_first():
    x = torch.ones(3, requires_grad=True)
    for call, name in (
        (lambda: torch.divide(x, torch.ones(2), out=torch.ones(2)), "div"),
        (lambda: torch.special.i0e(x, out=torch.ones(3)), "special_i0e"),
        (lambda: torch.hstack([x, x], out=torch.ones(3)), "cat"),
    ):
        with pytest.raises(RuntimeError) as error:
            call()
        assert str(error.value).startswith(f"{name}(): functions with out=... arguments don't support")
    assert torch.quantile(x, 0.5, out=torch.ones(())).requires_grad  # composed, and recorded


def test_numbers_that_do_not_fit():
    chosen, small = torch.tensor([True, False]), torch.tensor([1, 2], dtype=torch.int8)
    for call in (lambda: torch.where(chosen, 300, small), lambda: torch.where(chosen, small, -200)):
        with pytest.raises(RuntimeError, match="value cannot be converted to type int8_t without overflow"):
            call()
    halves = torch.zeros(3, dtype=torch.float16)
    halves[0], halves[1:2], halves[torch.tensor([2])] = 70000, -1e30, 65510
    assert halves.tolist() == [float("inf"), -float("inf"), 65504.0]
    with pytest.raises(RuntimeError, match="without overflow"):
        halves.fill_(70000)
    with pytest.raises(RuntimeError, match="more than memory holds"):
        torch.tensor_split(torch.ones(3), 2**63 - 1)


def test_shapes_are_compared_before_types():
    for call in (
        lambda: torch.atan2(torch.ones(3), torch.ones(2, dtype=torch.complex64)),
        lambda: torch.sub(torch.ones(3).to(torch.uint16), torch.ones(2)),
    ):
        with pytest.raises(
            RuntimeError, match=r"size of tensor a \(3\) must match the size of tensor b \(2\)"
        ):
            call()


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ((1,), "Cannot access accelerator device when none is available."),
        ((-1,), "Device index must not be negative"),
        ((None,), "device() received an invalid combination of arguments - got (NoneType)"),
        ((), "device() received an invalid combination of arguments - got ()"),
        ((0, 0), "device(): argument 'type' (position 1) must be str, not int"),
        (("cpu", 2.0), "device(): argument 'index' (position 2) must be int, not float"),
        (("cpu", True), "device(): argument 'index' (position 2) must be int, not bool"),
        (("cpu", 300), "Device index must be below 128, got 300"),
        ((1.5,), "device() received an invalid combination of arguments - got (float)"),
    ],
)
def test_devices(args, sentence):
    with pytest.raises((RuntimeError, TypeError)) as error:
        torch.device(*args)
    assert str(error.value).startswith(sentence)
    assert torch.device("cpu", numpy.int64(1)) == torch.device(type="cpu", index=1) == torch.device("cpu:1")


def test_arrays_without_dimensions_are_sizes_but_no_dims():
    x, one = torch.ones(2, 3), numpy.array(1)
    assert x.narrow(0, one, one).shape == (1, 3) and torch.zeros(one).shape == (1,)
    for call in (
        lambda: x.sum(one),
        lambda: x.unsqueeze(one),
        lambda: x.chunk(one),
        lambda: torch.cat([x], one),
    ):
        with pytest.raises(TypeError, match=r"numpy\.ndarray"):
            call()
    with pytest.raises(TypeError, match=r"missing 2 required positional argument"):
        torch.transpose(x, axis0=0, axis1=1)
    assert torch.swapaxes(x, axis0=0, axis1=1).shape == (3, 2)


def test_slopes_where_hardswish_bends():
    x = torch.tensor([-3.0, 3.0], requires_grad=True)
    torch.nn.functional.hardswish(x).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0]


def test_asarray_keeps_the_history_it_is_not_told_to_cut():
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="unspecified requires_grad"):
        assert torch.asarray(x, copy=True).grad_fn is not None
    assert not torch.asarray(x, requires_grad=False).requires_grad


def test_tensors_without_data_take_the_output_of_counting():
    assert torch.arange(5, out=torch.empty(0, dtype=torch.int64, device="meta")).shape == (5,)
    assert torch.linspace(0, 1, 5, out=torch.empty(0, device="meta")).shape == (5,)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.mul_(x[0]),
        lambda x: x.detach().sub_(x[1]),
        lambda x: x.lerp_(x[0], 0.5),
        lambda x: x.addcmul_(x[0], x),
        lambda x: x.clamp_(x[0]),
        # the memory is looked at before the shapes
        lambda x: x[1].mul_(x),
        lambda x: x[:1].add_(x),
    ],
)
def test_a_number_of_what_is_written_overlaps_it(write):
    x = torch.arange(4.0)
    with pytest.raises(RuntimeError, match=OVERLAP):
        write(x)
    assert x.tolist() == [0, 1, 2, 3] and x._version == 0


@pytest.mark.parametrize("shapes", [((), (1,)), ((1,), ())])
def test_a_source_has_the_dimensions_of_what_it_is_added_to(shapes):
    x, source = torch.ones(shapes[0]), torch.ones(shapes[1])
    for add in (lambda i: x.index_add_(0, i, source), lambda i: x.index_reduce_(0, i, source, "prod")):
        with pytest.raises(RuntimeError, match="source tensor shape must match self tensor shape"):
            add(torch.tensor([0]))


def test_a_leaf_is_refused_before_its_memory_is_looked_at():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.index_add_(0, torch.tensor([0]), x[:1])


def test_counts_may_be_tensors_of_one_element():
    assert torch.ones(5).topk(torch.tensor([2])).indices.shape == (2,)
    with pytest.raises(TypeError, match="must be int, not Tensor"):
        torch.ones(5).unsqueeze(torch.tensor([0]))


def test_a_rare_dtype_is_asked_for_once():
    scan = torch.cumprod(torch.tensor(3).to(torch.uint16), 0, out=torch.tensor(0).to(torch.uint16))
    assert scan.item() == 3


def test_checksums_and_ranges():
    sums = torch.empty(2, dtype=torch.uint64)
    assert torch.hash_tensor(torch.tensor([[1, 2], [4, 8]]), 1, out=sums).tolist() == [3, 12]
    with pytest.raises(RuntimeError, match="Expected result to be of dtype uint64, but got Float"):
        torch.hash_tensor(torch.ones(2), out=torch.ones(()))
    with (
        pytest.warns(UserWarning, match=r"torch\.range is deprecated"),
        pytest.raises(RuntimeError, match="unsupported range: 0 -> nan"),
    ):
        torch.range(0, float("nan"))


def test_nothing_to_select_split_or_subtract():
    with pytest.raises(RuntimeError, match="self indexing axis dim should be positive"):
        torch.index_select(torch.zeros(0, 3), 0, torch.tensor([0]))
    with pytest.raises(RuntimeError, match="unflatten got an unexpected error"):
        torch.tensor(1.0).unflatten(0, (-1, 2))
    with pytest.raises(RuntimeError, match="with a bool tensor is not supported"):
        torch.sub(torch.ones(2), torch.tensor(True), alpha=3)


def test_kaisers_window_is_even_in_its_shape():
    assert torch.kaiser_window(5, True, -2.0).tolist() == torch.kaiser_window(5, True, 2.0).tolist()


def test_interpolation_casts_unless_its_weights_are_many():
    wide = torch.ones(3, dtype=torch.float64)
    assert torch.lerp(torch.ones(3), torch.zeros(3), 0.5, out=wide).tolist() == [0.5] * 3
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        torch.lerp(torch.ones(3), torch.zeros(3), torch.full((3,), 0.5), out=wide)
