"""Sample calls of functions that make tensors out of numbers, for mutations.py."""

from families import index, mask, x
from sampling import Of, Op, call, seeded

CREATIONS: dict[str, Op] = {}


def creation(name, *samples, **properties):
    CREATIONS[name] = Op(name, seeded(name, list(samples)), dtypes="s", **properties)


def dtype(name):
    return Of(lambda lib: getattr(lib, name))


for _name in ("zeros", "ones"):
    creation(
        _name, call(2, 3), call((2, 3)), call((0, 2), dtype=dtype("int64")), call([2], requires_grad=True)
    )
creation("full", call((2, 3), 1.5), call((2,), 7, dtype=dtype("int8")), call([3], True))
creation("eye", call(3), call(2, 3), call(3, 2, dtype=dtype("int64")))
creation("arange", call(5), call(1, 6), call(0, 1, 0.25), call(5, 1, -1, dtype=dtype("int32")), call(2.5))
creation("range", call(0, 4), call(1, 2, 0.5))
for _name in ("linspace", "logspace"):
    creation(_name, call(0, 1, 5), call(0.0, -2, 3, dtype=dtype("float64")), call(1, 2, steps=1))
creation(
    "tensor", call([1, 2]), call([[1.0], [2.0]]), call(2, dtype=dtype("int8")), call([True, 1.5]), call([1j])
)
creation("as_tensor", call([1, 2]), call(x(2)), call(2, dtype=dtype("int8")))
creation("asarray", call([1, 2]), call(x(2), copy=True), call(2, dtype=dtype("int8")))
creation("scalar_tensor", call(2), call(1.5, dtype=dtype("int64")))
creation("tril_indices", call(3, 4), call(3, 3, -1), call(2, 3, offset=1))
creation("triu_indices", call(3, 4), call(3, 3, -1), call(2, 3, offset=1))
for _name in ("hann_window", "hamming_window", "bartlett_window", "blackman_window"):
    creation(_name, call(4), call(5, False), call(3, periodic=True, dtype=dtype("float64")))
creation("kaiser_window", call(4), call(5, False), call(5, True, 10.0), call(3, beta=2.0))
creation("empty_strided", call((0, 3), (3, 1)), call((0,), (1,)))
creation("broadcast_shapes", call((2, 1), (3,)), call((), (2,)), call((1,), (4, 1), (3,)))
creation("promote_types", call(dtype("int8"), dtype("float16")), call(dtype("bool"), dtype("bool")))
creation("can_cast", call(dtype("int8"), dtype("float16")), call(dtype("float32"), dtype("int32")))
creation("result_type", call(x(2), 1), call(x(), x(2)), call(1, 2.5))
creation("is_tensor", call(x(2)))
creation("numel", call(x(2, 2)))
creation("device", call("cpu"), call("cpu", 0), call("cuda:1"))
for _name in ("rand", "randn"):
    creation(_name, call(2, 3), call((2, 0)), call(0, dtype=dtype("float64")))
creation("randint", call(5, (2,)), call(-2, 3, (2, 2)), call(1, (0,), dtype=dtype("int8")))
creation("randperm", call(4), call(0), call(3, dtype=dtype("int32")))
creation("bernoulli", call(x(3, low=0.0, high=1.0)), call(x(3), 0.5))
creation("multinomial", call(x(4, low=0.1, high=1.0), 2), call(x(2, 3, low=0.1, high=1.0), 2, True))
creation("normal", call(x(3), x(3, low=0.5, high=1.0)), call(0.0, 1.0, (2,)), call(x(2), 1.5))
creation("poisson", call(x(3, low=0.1, high=2.0)))
for _name in ("rand_like", "randn_like", "empty_like"):
    creation(_name, call(x(2, 3)), call(x(0), dtype=dtype("float64")))
creation("randint_like", call(x(2, 3), 5), call(x(2), 1, 4))
DRAWS = {"uniform_": (0.0, 1.0), "normal_": (0.0, 1.0), "exponential_": (1.0,), "geometric_": (0.5,),
         "cauchy_": (0.0, 1.0), "log_normal_": (0.0, 1.0), "random_": (0, 5),
         "bernoulli_": (0.5,)}  # fmt: skip
for _name, _args in DRAWS.items():
    creation(
        "Tensor." + _name, call(x(2, 3)) if _name != "geometric_" else call(x(2), 0.3), call(x(4), *_args)
    )
creation("Tensor.resize_", call(x(2, 3), 3, 2), call(x(2), (0,)))
creation("Tensor.size", call(x(2, 3)), call(x(2, 3), 1), call(x(2), dim=0))
creation("Tensor.stride", call(x(2, 3)), call(x(2, 3), 1))
creation("Tensor.index_fill_", call(x(3), 0, index(0, 2), 1.0), call(x(2, 2), 1, index(0), -1))
creation("Tensor.masked_fill_", call(x(3), mask(0, 1, 1), 1.0), call(x(1), mask(1), 2))
creation("Tensor.scatter_add_", call(x(3), 0, index(0, 2), x(2)))
creation("Tensor.requires_grad_", call(x(2)), call(x(2), False))
creation("Tensor.type", call(x(2)), call(x(2), dtype("float64")), call(x(2), "torch.IntTensor"))
creation("Tensor.new_empty", call(x(2), (0,)), call(x(2), 0, 3))
creation("_foreach_add", call([x(2), x(3)], 1), call([x(2), x(3)], [x(2), x(3)], alpha=2))
creation("_foreach_add_", call([x(2), x(3)], 1), call([x(2), x(3)], [x(2), x(3)], alpha=2))
creation("_foreach_mul_", call([x(2), x(3)], 1), call([x(2), x(3)], [x(2), x(3)]), call([x(2)], [1.5]))
creation("_foreach_div_", call([x(2), x(3)], 2), call([x(2), x(3)], [x(2), x(3)]))
creation("_foreach_sqrt", call([x(2), x(3)]), call([x(0)]))
creation("_foreach_addcmul_", call([x(2)], [x(2)], [x(2)]), call([x(2)], [x(2)], [x(2)], 0.5))
