"""How tensors, sizes and dtype limits print and behave as values; the expected texts are torch's."""

import copy
import pickle
from itertools import pairwise

import pytest

import rushlight
from rushlight import Size, Tensor, finfo, iinfo, nn, tensor
from rushlight._printing import get_printoptions, printoptions

TRANSCRIPT = """
>>> tensor(1.)
tensor(1.)
>>> tensor(3)
tensor(3)
>>> tensor(True)
tensor(True)
>>> tensor(1.5, dtype=float64)
tensor(1.5000, dtype=torch.float64)
>>> tensor(nan)
tensor(nan)
>>> tensor(1e-9)
tensor(1.0000e-09)
>>> tensor([])
tensor([])
>>> tensor([1.0, 2.0, 3.0])
tensor([1., 2., 3.])
>>> tensor([1.5, -2.25, 1000.0])
tensor([   1.5000,   -2.2500, 1000.0000])
>>> tensor([1.0, 2000.0])
tensor([1.0000e+00, 2.0000e+03])
>>> tensor([0.0, nan, inf, -1.0])
tensor([ 0., nan, inf, -1.])
>>> tensor([1e-5, 1.0])
tensor([1.0000e-05, 1.0000e+00])
>>> tensor([123456789.0])
tensor([1.2346e+08])
>>> tensor([-0.0, 1.25])
tensor([-0.0000, 1.2500])
>>> tensor([[1, -20], [300, 4]])
tensor([[  1, -20],
        [300,   4]])
>>> tensor([[True, False], [False, True]])
tensor([[ True, False],
        [False,  True]])
>>> tensor([1 + 2j, -0.5 - 0.25j])
tensor([ 1.0000+2.0000j, -0.5000-0.2500j])
>>> tensor([1, 2], dtype=uint8)
tensor([1, 2], dtype=torch.uint8)
>>> tensor([0.1, 0.2], dtype=float16)
tensor([0.1000, 0.2000], dtype=torch.float16)
>>> tensor([0.1, 0.2], dtype=bfloat16)
tensor([0.1001, 0.2002], dtype=torch.bfloat16)
>>> zeros(0, 3)
tensor([], size=(0, 3))
>>> zeros(2, 0, dtype=int64)
tensor([], size=(2, 0), dtype=torch.int64)
>>> zeros(2, 3, device="meta")
tensor(..., device='meta', size=(2, 3))
>>> zeros(2, 3, device="meta", dtype=float64, requires_grad=True)
tensor(..., device='meta', size=(2, 3), dtype=torch.float64,
       requires_grad=True)
>>> ones(2, requires_grad=True)
tensor([1., 1.], requires_grad=True)
>>> ones(2, 2, 2)
tensor([[[1., 1.],
         [1., 1.]],

        [[1., 1.],
         [1., 1.]]])
>>> arange(24).reshape(2, 3, 4)
tensor([[[ 0,  1,  2,  3],
         [ 4,  5,  6,  7],
         [ 8,  9, 10, 11]],

        [[12, 13, 14, 15],
         [16, 17, 18, 19],
         [20, 21, 22, 23]]])
>>> arange(2000)
tensor([   0,    1,    2,  ..., 1997, 1998, 1999])
>>> arange(2000.0)
tensor([0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.9970e+03, 1.9980e+03,
        1.9990e+03])
>>> arange(10000).reshape(100, 100)
tensor([[   0,    1,    2,  ...,   97,   98,   99],
        [ 100,  101,  102,  ...,  197,  198,  199],
        [ 200,  201,  202,  ...,  297,  298,  299],
        ...,
        [9700, 9701, 9702,  ..., 9797, 9798, 9799],
        [9800, 9801, 9802,  ..., 9897, 9898, 9899],
        [9900, 9901, 9902,  ..., 9997, 9998, 9999]])
>>> arange(4096).reshape(16, 16, 16)[::8, :, ::8]
tensor([[[   0,    8],
         [  16,   24],
         [  32,   40],
         [  48,   56],
         [  64,   72],
         [  80,   88],
         [  96,  104],
         [ 112,  120],
         [ 128,  136],
         [ 144,  152],
         [ 160,  168],
         [ 176,  184],
         [ 192,  200],
         [ 208,  216],
         [ 224,  232],
         [ 240,  248]],

        [[2048, 2056],
         [2064, 2072],
         [2080, 2088],
         [2096, 2104],
         [2112, 2120],
         [2128, 2136],
         [2144, 2152],
         [2160, 2168],
         [2176, 2184],
         [2192, 2200],
         [2208, 2216],
         [2224, 2232],
         [2240, 2248],
         [2256, 2264],
         [2272, 2280],
         [2288, 2296]]])
>>> arange(2048.0).reshape(2, 2, 512) / 7
tensor([[[0.0000e+00, 1.4286e-01, 2.8571e-01,  ..., 7.2714e+01,
          7.2857e+01, 7.3000e+01],
         [7.3143e+01, 7.3286e+01, 7.3429e+01,  ..., 1.4586e+02,
          1.4600e+02, 1.4614e+02]],

        [[1.4629e+02, 1.4643e+02, 1.4657e+02,  ..., 2.1900e+02,
          2.1914e+02, 2.1929e+02],
         [2.1943e+02, 2.1957e+02, 2.1971e+02,  ..., 2.9214e+02,
          2.9229e+02, 2.9243e+02]]])
>>> arange(30)
tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,
        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])
>>> arange(30.0)
tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,
        14., 15., 16., 17., 18., 19., 20., 21., 22., 23., 24., 25., 26., 27.,
        28., 29.])
>>> zeros(1, 2, 1, 3)
tensor([[[[0., 0., 0.]],

         [[0., 0., 0.]]]])
>>> zeros(20, dtype=float64)
tensor([0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0.],
       dtype=torch.float64)
"""
PRINTED = [tuple(part.rstrip("\n").split("\n", 1)) for part in TRANSCRIPT.split(">>> ")[1:]]


@pytest.mark.parametrize("expression, text", PRINTED, ids=[expression for expression, _ in PRINTED])
def test_repr(expression, text):
    value = eval(expression, dict(vars(rushlight)))
    assert repr(value) == text
    assert str(value) == text


def test_history_is_shown():
    x = rushlight.ones(2, requires_grad=True)
    assert repr(x * 2) == "tensor([2., 2.], grad_fn=<MulBackward0>)"
    assert repr(x.detach()) == "tensor([1., 1.])"
    assert repr(x.sum()) == "tensor(2., grad_fn=<SumBackward0>)"


def test_printing_records_nothing():
    x = rushlight.ones(2000, requires_grad=True)
    version = x._version
    repr(x)
    assert x._version == version
    assert x.grad_fn is None


def test_subclasses_and_parameters():
    class Named(Tensor):
        pass

    class Weight(nn.Parameter):
        pass

    assert (
        repr(nn.Parameter(rushlight.zeros(2)))
        == "Parameter containing:\ntensor([0., 0.], requires_grad=True)"
    )
    assert repr(rushlight.zeros(2).as_subclass(Named)) == "Named([0., 0.])"
    assert (
        repr(Weight(rushlight.zeros(2)))
        == "Parameter containing:\nParameter(Weight([0., 0.], requires_grad=True))"
    )


def test_contents_can_be_given():
    assert rushlight.zeros(2).__repr__(tensor_contents="words") == "tensor(words)"


def test_default_dtype_is_not_mentioned():
    rushlight.set_default_dtype(rushlight.float64)
    try:
        assert repr(rushlight.zeros(1)) == "tensor([0.])"
        assert repr(rushlight.zeros(1, dtype=rushlight.float32)) == "tensor([0.], dtype=torch.float32)"
        assert repr(rushlight.zeros(1, dtype=rushlight.complex128)) == "tensor([0.+0.j])"
        assert (
            repr(rushlight.zeros(1, dtype=rushlight.complex64)) == "tensor([0.+0.j], dtype=torch.complex64)"
        )
    finally:
        rushlight.set_default_dtype(rushlight.float32)


@pytest.mark.parametrize(
    "options, value, text",
    [
        ({"precision": 2}, [1.23456], "tensor([1.23])"),
        ({"precision": 0}, [1.5, 2.25], "tensor([2, 2])"),
        ({"sci_mode": True}, [1.5], "tensor([1.5000e+00])"),
        ({"sci_mode": False}, [1e-5, 1.5], "tensor([0.0000, 1.5000])"),
        ({"threshold": 3, "edgeitems": 1}, [1, 2, 3, 4], "tensor([1,  ..., 4])"),
        ({"threshold": 3, "edgeitems": 0}, [1, 2, 3, 4], "tensor([...], size=(4,))"),
        ({"linewidth": 20}, [1, 2, 3, 4, 5, 6], "tensor([1, 2, 3, 4,\n        5, 6])"),
        ({"profile": "short"}, [1.23456], "tensor([1.23])"),
    ],
)
def test_options(options, value, text):
    before = get_printoptions()
    with printoptions(**options):
        assert repr(tensor(value)) == text
    assert get_printoptions() == before


@pytest.mark.parametrize(
    ("options", "error"),
    [({"precision": -1}, ValueError), ({"precision": 2.5}, ValueError), ({"threshold": "many"}, TypeError),
     ({"threshold": 1, "edgeitems": 1.0}, TypeError), ({"linewidth": []}, TypeError)],
)  # fmt: skip
def test_bad_options_are_taken_and_fail_at_the_next_tensor(options, error):
    before = get_printoptions()
    with printoptions(**options), pytest.raises(error):
        repr(tensor([1.5, 2.5, 3.5, 4.5]))
    assert get_printoptions() == before


def test_options_that_are_not_given_stay():
    with printoptions(precision=2, linewidth=40):
        rushlight.set_printoptions(threshold=7)
        assert get_printoptions() | {"edgeitems": 0} == {
            "precision": 2,
            "threshold": 7,
            "edgeitems": 0,
            "linewidth": 40,
            "sci_mode": None,
        }
        rushlight.set_printoptions(profile="full")
        assert get_printoptions()["threshold"] == float("inf")


def test_formatting():
    assert f"{tensor(1.5):.3f}" == "1.500"
    assert f"{tensor(1.5)}" == "1.5"
    assert f"{tensor(3):5d}" == "    3"
    assert f"{tensor(1.5, requires_grad=True):.1f}" == "1.5"
    assert f"{tensor([1.5])}" == "tensor([1.5000])"
    assert "%.2f" % tensor(1.5) == "1.50"  # noqa: UP031
    assert "%s" % tensor(3) == "tensor(3)"  # noqa: UP031
    with pytest.raises(TypeError, match=r"unsupported format string passed to Tensor.__format__"):
        f"{tensor([1.5]):.3f}"


def test_size_is_a_tuple_that_stays_a_size():
    size = Size([3, 4, 5])
    for same in (rushlight.zeros(3, 4, 5).shape, size[:], Size((3, 4)) + (5,), (3,) + Size([4, 5])):  # noqa: RUF005
        assert type(same) is Size
        assert same == size == (3, 4, 5)
    assert repr(size) == str(size) == f"{size}" == "torch.Size([3, 4, 5])"
    assert repr(size[::-1]) == "torch.Size([5, 4, 3])"
    assert size * 0 == 0 * size == Size()
    assert type(2 * size) is Size
    assert type(size[0]) is int
    assert size.numel() == 60
    assert Size().numel() == 1
    assert (size.index(4), size.count(5)) == (1, 1)
    assert hash(size) == hash((3, 4, 5))
    for clone in (pickle.loads(pickle.dumps(size)), copy.copy(size), copy.deepcopy(size)):
        assert type(clone) is Size
        assert clone == size


def test_size_takes_what_counts_as_an_int():
    size = Size([True, tensor(3), tensor([4])])
    assert size == (1, 3, 4)
    assert [type(item) for item in size] == [int, int, int]


@pytest.mark.parametrize(
    "items, error, message",
    [
        ([1.0], TypeError, r"torch.Size\(\) takes an iterable of 'int' \(item 0 is 'float'\)"),
        ([1, "a"], TypeError, r"torch.Size\(\) takes an iterable of 'int' \(item 1 is 'str'\)"),
        ([2, 3, None], TypeError, r"torch.Size\(\) takes an iterable of 'int' \(item 2 is 'NoneType'\)"),
        ([2**70], ValueError, "Overflow when unpacking long long"),
        (3, TypeError, "'int' object is not iterable"),
    ],
)
def test_size_refuses(items, error, message):
    with pytest.raises(error, match=message):
        Size(items)


def test_size_joins_only_tuples():
    with pytest.raises(TypeError, match=r"can only concatenate tuple \(not list\) to torch.Size"):
        Size([3]) + [4]  # noqa: RUF005
    with pytest.raises(TypeError, match="item 1 is 'float'"):
        Size([3]) + (1.5,)  # noqa: RUF005


def test_finfo():
    half = finfo(rushlight.float16)
    assert (half.bits, half.max, half.min, half.eps, half.tiny) == (16, 65504.0, -65504.0, 2.0**-10, 2.0**-14)
    assert finfo() == finfo(rushlight.float32) != finfo(rushlight.float64)
    assert finfo(rushlight.complex64).dtype == "float32"
    assert finfo(rushlight.bfloat16).max == 3.3895313892515355e38
    assert repr(finfo(type=rushlight.float64)) == (
        "finfo(resolution=1e-15, min=-1.79769e+308, max=1.79769e+308, eps=2.22045e-16, "
        "smallest_normal=2.22507e-308, tiny=2.22507e-308, dtype=float64)"
    )


def test_iinfo():
    limits = {"int8": 127, "uint8": 255, "int16": 32767, "int32": 2**31 - 1, "int64": 2**63 - 1}
    for name, largest in limits.items():
        info = iinfo(getattr(rushlight, name))
        assert info.max == largest
        assert info.min == (0 if name == "uint8" else -largest - 1)
        assert info.dtype == name
    assert repr(iinfo(rushlight.int32)) == "iinfo(min=-2.14748e+09, max=2.14748e+09, dtype=int32)"


def test_infos_are_distinct_values():
    infos = [
        finfo(rushlight.float32),
        finfo(rushlight.float64),
        iinfo(rushlight.int8),
        iinfo(rushlight.uint8),
    ]
    assert all(a != b for a, b in pairwise(infos))
    with pytest.raises(TypeError, match="unhashable"):
        hash(infos[0])


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: finfo(rushlight.int32), r"torch.finfo\(\) requires a floating point input type"),
        (lambda: iinfo(rushlight.float32), r"torch.iinfo\(\) requires an integer input type"),
        (lambda: iinfo(rushlight.bool), "torch.bool is not supported by torch.iinfo"),
        (lambda: finfo("float32"), r"finfo\(\): argument 'type' \(position 1\) must be torch.dtype, not str"),
    ],
)
def test_infos_refuse(make, message):
    with pytest.raises(TypeError, match=message):
        make()
