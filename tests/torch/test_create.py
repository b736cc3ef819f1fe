"""Tensors from nothing, from Python values, from arrays: values, dtypes and strides against torch."""

import array
import builtins
import itertools

import numpy
import pytest
import torch
from comparing import REFUSALS, assert_same

import rushlight

EXPRESSIONS = """
tensor(1)
tensor(1.5)
tensor(True)
tensor(1j)
tensor([])
tensor([[]])
tensor([[], []])
tensor([1, 2.5])
tensor([True, 2])
tensor([True, 2.5])
tensor([1, 2j])
tensor([[1, 2], [3, 4]])
tensor(((1, 2), (3, 4)))
tensor([1, 2], dtype=float64)
tensor([1.9, -1.9], dtype=int32)
tensor([0.0, 0.5], dtype=bool)
tensor([256.0, -1.0], dtype=uint8)
tensor([1e10], dtype=float16)
tensor([1.00390625, 3.0e38, 1e-45], dtype=bfloat16)
tensor([tensor(1.0), tensor(2)])
tensor([tensor(1), 2])
tensor([tensor([1.0]), tensor([2.0])])
tensor(range(3))
tensor(b"ab")
tensor(bytearray(b"ab"))
tensor([2**40])
tensor([float("nan"), float("inf")])
tensor(numpy.arange(6).reshape(2, 3))
tensor(numpy.float32(1.5))
tensor([numpy.float64(1.5), numpy.float64(2)])
tensor(numpy.int16(3))
tensor(numpy.array([True, False]))
tensor(numpy.array([1 + 2j]))
tensor(array.array("d", [1.0, 2.0]))
as_tensor([1, 2])
as_tensor(numpy.ones((2, 2), dtype=numpy.float32))
as_tensor(tensor([1.0]), dtype=float64)
asarray([1, 2])
asarray(numpy.arange(3)[::2])
asarray(5.0, dtype=int64)
from_numpy(numpy.arange(6.0).reshape(2, 3).T)
from_numpy(numpy.arange(6)[::2])
from_numpy(numpy.float32([1, 2]))
frombuffer(bytearray(b"abcdefgh"), dtype=int16)
frombuffer(bytearray(b"abcdefgh"), dtype=uint8, offset=2, count=3)
scalar_tensor(3.5)
scalar_tensor(3, dtype=int8)
zeros(2, 3)
zeros((2, 3), dtype=int64)
zeros([])
zeros(())
zeros(0)
zeros(size=(2,))
ones(2, dtype=complex64)
ones((), dtype=bool)
full((2, 2), 7)
full((2,), 1.5)
full((2,), True)
full((), 1j)
full((2,), 3, dtype=float16)
eye(3)
eye(2, 4)
eye(3, 2, dtype=int64)
eye(0)
arange(5)
arange(5.0)
arange(2, 8, 3)
arange(0, 1, 0.25)
arange(5, 0, -2)
arange(0, 0)
arange(1, 2.5)
arange(3, dtype=float16)
arange(0.0, 1.0, 0.1)
arange(0, 1, 0.1, dtype=float64)
arange(10, 0, -3, dtype=float32)
linspace(0, 1, 5)
linspace(3, -3, 4, dtype=float64)
linspace(0, 10, 1)
linspace(0, 1, 0)
linspace(0, 10, 4, dtype=int64)
linspace(0, 1j, 3)
linspace(-0.3, 7.7, 101)
logspace(0, 2, 3)
logspace(0, 4, 5, base=2)
logspace(-1, 1, 7, dtype=float64)
empty(2, 0)
empty_strided((2, 3), (1, 2)).fill_(1)
empty_permuted((2, 3, 4), (2, 0, 1)).fill_(1)
empty_permuted((2, 3), (0, 0)).fill_(1)
ones(2).new_empty_strided((2, 3), (1, 2)).fill_(1)
zeros(2, 3, 4, 5).contiguous(memory_format=channels_last)
zeros(2, 3, 4, 5).to(memory_format=channels_last).is_contiguous(memory_format=channels_last)
zeros(2, 3, 4, 5).clone(memory_format=channels_last)
ones_like(zeros(2, 3, 4, 5), memory_format=channels_last)
zeros(2, 3).clone(memory_format=channels_last)
full((3,), 2, out=zeros(3, dtype=int64))
ones(3, out=zeros(3, dtype=int64))
zeros(3, dtype=float64, out=zeros(3))
linspace(4.3, -3, 50, dtype=int64)
linspace(1, 2, 1.0)
zeros_like(ones(2, 3).t())
ones_like(zeros(2, 3, dtype=int8))
full_like(zeros(3), 2)
full_like(zeros(3, dtype=int64), 2.0, dtype=float32)
zeros_like(ones(3, 1).expand(3, 4))
empty_like(ones(2, 3).t()).fill_(2)
zeros(3).new_zeros(2)
zeros(3, dtype=int16).new_full((2,), 3)
zeros(3, dtype=int16).new_tensor([1.5, 2])
zeros(3, dtype=float64).new_ones(2, 2)
zeros(3).new_empty(0)
complex(tensor([1.0]), tensor([2.0]))
polar(tensor([1.0]), tensor([0.5]))
tril_indices(3, 3)
triu_indices(2, 4, 1)
result_type(tensor([1]), 1.5)
result_type(tensor([1]), tensor(1.5))
result_type(tensor([1], dtype=int8), 1000)
result_type(tensor([1.0], dtype=float16), tensor([1.0], dtype=bfloat16))
result_type(tensor([True]), 1)
result_type(1, 1j)
promote_types(int8, uint8)
promote_types(float16, bfloat16)
promote_types(int64, float16)
promote_types(complex64, float64)
can_cast(float32, int64)
can_cast(int64, float32)
can_cast(complex64, float64)
can_cast(float64, float16)
numel(ones(2, 3))
is_tensor(ones(1))
is_tensor(1)
is_floating_point(ones(1))
is_complex(ones(1))
is_nonzero(tensor([0.0]))
ones(2, 3).size()
ones(2, 3).size(1)
ones(2, 3).stride()
ones(2, 3).stride(0)
ones(2, 3).nbytes
ones(2, 3).itemsize
ones(2, 3).element_size()
ones(2, 3).dim()
ones(2, 3).ndim
ones(2, 3).ndimension()
ones(2, 3).nelement()
ones(2, 3)[1].storage_offset()
ones(2, 3).is_contiguous()
ones(2, 3).t().is_contiguous()
ones(2, 3).tolist()
ones(2, 3).numpy().tolist()
ones(2, 3).t().numpy().strides
ones(2, dtype=bool).numpy().dtype.name
1.0 in ones(2)
len(ones(2, 3))
int(tensor(3.7))
float(tensor([2]))
bool(tensor(0.0))
complex(tensor(2.5), tensor(1.0)).item()
""".strip().splitlines()


def evaluate(lib, expression):
    names = {"numpy": numpy, "array": array}
    for name in ("int", "float", "bool"):
        # As an argument these are dtypes, as functions Python's.
        names[name] = getattr(lib, name) if f"={name}" in expression else getattr(builtins, name)
    return eval(expression, names, Names(lib))


class Names(dict):
    """The library's names, looked up when used."""

    def __init__(self, lib):
        self.lib = lib

    def __missing__(self, name):
        if name in ("numpy", "array", "int", "float", "bool", "range", "len", "bytearray"):
            raise KeyError(name)
        return getattr(self.lib, name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression(expression):
    try:
        theirs, refusal = evaluate(torch, expression), None
    except REFUSALS as error:
        theirs, refusal = None, error
    if refusal is not None:
        with pytest.raises(type(refusal)):
            evaluate(rushlight, expression)
        return
    ours = evaluate(rushlight, expression)
    if isinstance(theirs, torch.dtype):
        assert str(ours) == str(theirs)
    else:
        assert_same(ours, theirs)


SHARING = {
    "from_numpy": lambda lib, data: lib.from_numpy(data),
    "as_tensor": lambda lib, data: lib.as_tensor(data),
    "asarray": lambda lib, data: lib.asarray(data),
    "tensor": lambda lib, data: lib.tensor(data),
    "from_dlpack": lambda lib, data: lib.from_dlpack(data),
    "as_tensor of another dtype": lambda lib, data: lib.as_tensor(data, dtype=lib.float32),
    "asarray copied": lambda lib, data: lib.asarray(data, copy=True),
}


@pytest.mark.parametrize("make", SHARING.values(), ids=SHARING.keys())
def test_memory_is_shared_where_torch_shares_it(make):
    seen = []
    for lib in (torch, rushlight):
        data = numpy.zeros(3)
        result = make(lib, data)
        data[0] = 5
        seen.append(result.tolist())
    assert seen[1] == seen[0]


def test_numpy_shares_memory_both_ways():
    tensor = rushlight.zeros(2, 3)
    view = tensor.numpy()
    view[0, 1] = 7
    tensor[1, 2] = 8
    assert tensor.tolist() == view.tolist() == [[0, 7, 0], [0, 0, 8]]
    assert numpy.asarray(tensor).base is not None or numpy.shares_memory(numpy.asarray(tensor), view)


@pytest.mark.parametrize("name", ["tril_indices", "triu_indices"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_places_of_triangles(name, dtype):
    for rows, columns in itertools.product((0, 1, 2, 5, 7), repeat=2):
        for offset in (-9, -5, -1, 0, 1, 3, 9, 2**40, -(2**40)):
            ours, theirs = (
                getattr(t, name)(rows, columns, offset, dtype=getattr(t, dtype)) for t in (rushlight, torch)
            )
            assert ours.tolist() == theirs.tolist() and ours.stride() == theirs.stride(), (
                rows,
                columns,
                offset,
            )
            assert str(ours.dtype) == str(theirs.dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_linspace_to_the_bit(dtype):
    for start, end in [(-2, 2), (0, 1), (-3.3, 7.7), (0.1, 10), (1, -5)]:
        for steps in (1, 2, 5, 8, 17, 41, 100, 257, 1000):
            ours, theirs = (
                t.linspace(start, end, steps, dtype=getattr(t, dtype)) for t in (rushlight, torch)
            )
            assert ours.tolist() == theirs.tolist(), (start, end, steps)


@pytest.mark.parametrize(
    "make",
    [
        lambda lib: lib.eye(2),
        lambda lib: lib.linspace(0, 1, 1),
        lambda lib: lib.bincount(lib.tensor([1])),
        lambda lib: lib.histc(lib.ones(2)),
        lambda lib: lib.nonzero_static(lib.ones(2), size=3),
        lambda lib: lib.linalg.lu(lib.eye(2)).P,
    ],
)
def test_what_is_new_has_not_been_written(make):
    """Errors about writes name versions."""
    assert make(rushlight)._version == make(torch)._version == 0
