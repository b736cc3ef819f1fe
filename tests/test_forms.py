"""The forms in which torch offers an operation: function, method, in place, `out=`."""

import inspect
from pathlib import Path

import pytest

import rushlight
import rushlight.nn.functional

OPERATIONS = [
    line.split()
    for line in (Path(__file__).parent / "operations.txt").read_text().splitlines()
    if not line.startswith("#")
]


def found(name):
    value = rushlight
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def lacking(name, forms):
    """The forms of an operation that do not exist."""
    function = found(name)
    if "f" in forms and function is None:
        return name
    if "m" in forms and not hasattr(rushlight.Tensor, name):
        return f"Tensor.{name}"
    if "i" in forms and not hasattr(rushlight.Tensor, f"{name}_".replace("__", "_")):
        return f"Tensor.{name}_"
    if "o" in forms and "out" not in inspect.signature(getattr(function, "__wrapped__", function)).parameters:
        return f"{name}(out=)"
    return None


def test_every_operation_has_torchs_forms():
    missing = {lacking(name, forms) for name, forms in OPERATIONS} - {None}
    assert not missing, sorted(missing)


def test_functions_that_work_in_place():
    for name in ("abs_", "exp_", "clamp_", "zero_", "relu_", "sigmoid_", "fill_"):
        x = rushlight.tensor([-1.0, 0.5])
        expected = getattr(x.clone(), name)(*([0.0] if name in ("clamp_", "fill_") else []))
        result = getattr(rushlight, name)(x, *([0.0] if name in ("clamp_", "fill_") else []))
        assert result is x and rushlight.equal(x, expected)


def test_put_is_a_function_too():
    x = rushlight.zeros(3)
    assert rushlight.put(x, rushlight.tensor([1]), rushlight.tensor([5.0])).tolist() == [0, 5, 0]
    assert x.tolist() == [0, 0, 0]


def test_empty_permuted():
    x = rushlight.empty_permuted((2, 3, 5), (2, 0, 1), dtype=rushlight.int32)
    assert x.stride() == (3, 1, 6) and x.dtype == rushlight.int32
    for size, layout, message in (
        ((2, 3), (0, 0), "Duplicate dim not allowed"),
        ((2, 3), (0,), "Number of dimensions in size does not match"),
        ((2, 3), (0, 2), "Dimension out of range"),
    ):
        with pytest.raises(RuntimeError, match=message):
            rushlight.empty_permuted(size, layout)


def test_range_includes_its_end():
    with pytest.warns(UserWarning, match="torch.range is deprecated"):
        assert rushlight.range(1, 2, 0.5).tolist() == [1, 1.5, 2]
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="inconsistent with step sign"):
        rushlight.range(4, 1)


def test_numpy_names_of_arguments():
    x = rushlight.arange(6.0).reshape(2, 3)
    assert x.sum(axis=0, keepdims=True).shape == (1, 3)
    assert rushlight.equal(rushlight.softmax(x, axis=1), rushlight.softmax(x, dim=1))
    assert rushlight.equal(rushlight.add(x1=x, x2=x), x + x)
    assert rushlight.equal(rushlight.exp(x=x), x.exp()) and rushlight.equal(rushlight.exp(a=x), x.exp())
    assert rushlight.argmax(x, axis=1).tolist() == [2, 2]
    with pytest.raises(TypeError, match="unexpected keyword argument 'x2'"):
        rushlight.exp(x, x2=x)
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
        x.sum(0, axis=1)


def test_forms_that_a_signature_must_not_refuse():
    x, at = rushlight.tensor([0.0, 2.0]), rushlight.tensor([0])
    assert [t.tolist() for t in rushlight.nonzero(x, as_tuple=True)] == [[1]] == x.nonzero().tolist()
    assert rushlight.scatter(x, 0, at, 5.0, out=rushlight.empty(2)).tolist() == [5, 2]
    assert rushlight.cat([x, x], axis=0).tolist() == [0, 2, 0, 2]
    assert x.sum(rushlight.tensor(0)) == 2
    assert x.to(1.5).dtype == rushlight.float64 and x.to(None, rushlight.int64).dtype == rushlight.int64
    with pytest.raises(
        TypeError, match=r"to\(\) received an invalid combination of arguments - got \(slice\)"
    ):
        x.to(slice(1))
    with pytest.raises(TypeError, match=r"contiguous\(\) takes 0 positional arguments but 1 was given"):
        x.contiguous(rushlight.contiguous_format)


def test_sizes_and_operands_by_name():
    x = rushlight.ones(2, 3)
    assert (
        x.view(size=(3, 2)).shape == x.reshape(shape=(3, 2)).shape == x.permute(dims=(1, 0)).shape == (3, 2)
    )
    assert x.expand(size=(4, 2, 3)).shape == (4, 2, 3) and x.tile(dims=(2,)).shape == (2, 6)
    assert x.repeat(repeats=(1, 2)).shape == (2, 6) and x.sum_to_size(size=(1, 3)).shape == (1, 3)
    assert x.new_zeros(size=(1,), dtype=rushlight.int64).dtype == rushlight.int64
    assert rushlight.swapaxes(x, axis0=0, axis1=1).shape == (3, 2)
    assert len(x.split(split_size=1)) == len(rushlight.tensor_split(x, sections=2)) == 2
    assert len(rushlight.hsplit(x, indices=[1])) == 2
    assert x.clone().mul_(other=2)[0, 0] == 2 and x.clone().heaviside_(values=x)[0, 0] == 1
    assert x.clone().addmm_(mat1=rushlight.ones(2, 2), mat2=x)[0, 0] == 3
    assert rushlight.result_type(x, other=1) == rushlight.promote_types(type1=x.dtype, type2=x.dtype)
    assert rushlight.can_cast(from_=rushlight.int32, to=rushlight.float32)
    for call in (
        lambda: x.view(size=(3, 2), foo=1),
        lambda: x.view(3, 2, size=(3, 2)),
        lambda: x.abs_(1),
        lambda: x.mul_(1, 2),
        lambda: rushlight.hsplit(x),
        lambda: rushlight.hsplit(x, 1, indices=[1]),
    ):
        with pytest.raises(TypeError):
            call()


def test_tensor_types():
    x = rushlight.FloatTensor([1, 2])
    assert x.dtype == rushlight.float32 and x.type() == rushlight.typename(x) == "torch.FloatTensor"
    assert isinstance(x, rushlight.FloatTensor) and not isinstance(x, rushlight.LongTensor)
    assert rushlight.LongTensor([1.5, 2]).tolist() == [1, 2]
    assert rushlight.DoubleTensor(2, 3).shape == (2, 3) and rushlight.BoolTensor().shape == (0,)
    for kind in ("torch.DoubleTensor", rushlight.DoubleTensor, rushlight.float64):
        assert x.type(kind).dtype == rushlight.float64
    with pytest.raises(ValueError, match=r"invalid type: 'torch\.FooTensor'"):
        x.type("torch.FooTensor")
    assert x.new([3]).tolist() == [3.0] and x.new(2, 2).shape == (2, 2)


def test_default_device():
    assert rushlight.get_default_device() == rushlight.device("cpu")
    rushlight.set_default_device("meta")
    try:
        assert rushlight.zeros(1).device.type == rushlight.nn.Linear(1, 1).weight.device.type == "meta"
        assert rushlight.FloatTensor([1]).device.type == "cpu"
    finally:
        rushlight.set_default_device(None)
    with rushlight.device("meta"):
        assert rushlight.rand(2).is_meta
        with rushlight.device("cpu"):
            assert rushlight.ones(2).is_cpu
        assert rushlight.hann_window(3).is_meta
    assert rushlight.ones(1).is_cpu
    with rushlight.device("cuda"), pytest.raises(AssertionError, match="not compiled with CUDA enabled"):
        rushlight.ones(1)


def test_factories_want_a_size():
    for name in ("rand", "randn"):
        with pytest.raises(TypeError, match=rf"{name}\(\) received an invalid combination of arguments"):
            getattr(rushlight, name)()
    for name in ("zeros", "ones", "empty"):
        with pytest.raises(TypeError, match=rf'{name}\(\) missing 1 required positional arguments: "size"'):
            getattr(rushlight, name)()


def test_settings():
    assert rushlight.compile(len) is len and rushlight.compile(mode="default")(len) is len
    assert not rushlight.compiler.is_compiling()
    rushlight.use_deterministic_algorithms(True, warn_only=True)
    assert rushlight.get_deterministic_debug_mode() == 1
    rushlight.set_deterministic_debug_mode("default")
    assert not rushlight.are_deterministic_algorithms_enabled()
    assert rushlight.strided != rushlight.sparse_coo == rushlight.sparse_coo
    with pytest.raises(NotImplementedError, match="not implemented"):
        rushlight.zeros(2, layout=rushlight.jagged)


def test_functions_of_nn_in_the_main_namespace():
    x = rushlight.tensor([-1.0, 2.0])
    for name in ("celu", "selu", "hardshrink"):
        assert rushlight.equal(getattr(rushlight, name)(x), getattr(rushlight.nn.functional, name)(x))
    assert rushlight.dropout(x, 0.5, False) is x or rushlight.equal(rushlight.dropout(x, 0.5, False), x)
    assert rushlight.hinge_embedding_loss(x, rushlight.tensor([1.0, -1.0])).shape == (2,)
    assert rushlight.kl_div(x, x.abs(), 2).shape == ()


def test_attributes():
    x = rushlight.arange(6.0).reshape(2, 3)
    assert x.is_signed() and not rushlight.is_signed(x.byte())
    assert x.t().dim_order() == (1, 0) and x.const_data_ptr() == x.data_ptr()
    assert x.clone().apply_(lambda v: v + 1)[0, 0] == 1
    assert x.clone().map_(x, lambda a, b: a * b)[1, 2] == 25
    y = rushlight.zeros(1)
    assert y.set_(x) is y and y.data_ptr() == x.data_ptr() and y.shape == x.shape
    y.set_(x.untyped_storage(), 1, (2, 2), (3, 1))
    assert y.tolist() == [[1, 2], [4, 5]]
    assert not x.is_mps and x.to_dense() is x and x.dense_dim() == 2
    assert x.__rdiv__(2.0)[0, 1] == 2
    for call, message in (
        (x.values, "values expected sparse tensor layout but got Strided"),
        (x.pin_memory, "Cannot access accelerator device"),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()
    assert x.chalf().dtype == rushlight.complex32


def test_embedding_bag_scales_gradients_by_frequency():
    table = rushlight.ones(4, 2, requires_grad=True)
    bags = rushlight.tensor([[0, 2], [2, 3]])
    rushlight.nn.functional.embedding_bag(bags, table, mode="sum", scale_grad_by_freq=True).sum().backward()
    assert table.grad.tolist() == [[1, 1], [0, 0], [1, 1], [1, 1]]


def test_backends_can_be_asked_and_set():
    from rushlight.backends import cudnn

    assert not rushlight.backends.mps.is_available() and not rushlight.accelerator.is_available()
    with cudnn.flags(benchmark=True, deterministic=True):
        assert rushlight.backends.cudnn.benchmark
    assert not cudnn.benchmark
    with pytest.raises(AttributeError, match="Unknown attribute allow_tf33"):
        rushlight.backends.cuda.matmul.allow_tf33 = True
    assert rushlight.version.cuda is None and issubclass(rushlight.cuda.OutOfMemoryError, RuntimeError)
    assert rushlight.accelerator.current_accelerator() is None
    assert rushlight.sym_max(1, 2.0) == 2.0 and rushlight.sym_not(True) is False


def test_names_that_live_elsewhere_can_be_imported():
    for name in rushlight._LAZY_NAMES:
        assert getattr(rushlight, name) is not None, name


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.cumprod_(0), lambda y: y.ldexp_(rushlight.tensor(2.0)), lambda y: y.nan_to_num_(),
        lambda y: y.polygamma_(1), lambda y: y.logit_(), lambda y: y[1:].logit_(), lambda y: y.sinc_(),
        lambda y: y.view(2, 2).renorm_(2, 0, 0.5), lambda y: y.clamp_(rushlight.full((4,), 0.4)),
    ],
)  # fmt: skip
def test_composed_in_place_forms_are_differentiable(write):
    """Their rules read the input, which is written over by then."""

    def function(x):
        y = x * 1
        write(y)
        return y * x

    x = rushlight.tensor([0.2, 0.5, 0.7, 0.3], dtype=rushlight.float64, requires_grad=True)
    assert rushlight.autograd.gradcheck(function, x)
    assert rushlight.autograd.gradgradcheck(function, x)


def test_the_gradient_of_a_bound_that_is_just_met_is_the_inputs():
    x = rushlight.tensor([0.25, 0.5], requires_grad=True)
    bound = rushlight.tensor([0.25, 0.5], requires_grad=True)
    for clamp in (rushlight.clamp_min, rushlight.clamp_max, rushlight.clamp):
        gradients = rushlight.autograd.grad(clamp(x, bound).sum(), (x, bound))
        assert [g.tolist() for g in gradients] == [[1.0, 1.0], [0.0, 0.0]]
