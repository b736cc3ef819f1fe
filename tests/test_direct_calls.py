"""Calls that go straight to a primitive do what the Python functions do: see rushlight/ops/_direct.py."""

import contextlib
import inspect
from pathlib import Path

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


def lowered():
    return torch.autocast("cpu", dtype=torch.bfloat16)


@pytest.mark.parametrize("mode", [contextlib.nullcontext, lowered])
def test_both_ways_for_all_samples(mode):
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
                    with mode():
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


LINES = (Path(__file__).parent / "direct_calls.txt").read_text().splitlines()
CALLS = [line for line in LINES if not line.startswith("#")]


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


@pytest.mark.parametrize("mode", [contextlib.nullcontext, torch.no_grad, torch.inference_mode, lowered])
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
