"""complex32, uint16, uint32, uint64 and float8 against torch: casts bit for bit, promotion, refusals."""

import itertools

import pytest
import torch

import rushlight

UNSIGNED = ("uint16", "uint32", "uint64")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
RARE = (*UNSIGNED, "complex32", *FLOAT8)
OTHERS = ("uint8", "int8", "int16", "int32", "int64", "bool", "float16", "bfloat16", "float32", "float64",
          "complex64", "complex128")  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support", "ignore:Casting complex values")


def raw(t):
    t = t.resolve_conj().contiguous().reshape(-1)
    return t.detach().view(torch.uint8 if isinstance(t, torch.Tensor) else rushlight.uint8).numpy().tobytes()


def outcome(library, call):
    try:
        result = call(library)
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0]
    parts = result if isinstance(result, (tuple, list)) else [result]
    return [(str(p.dtype), tuple(p.shape), raw(p)) if hasattr(p, "dtype") else p for p in parts]


def agree(call):
    theirs, mine = outcome(torch, call), outcome(rushlight, call)
    assert mine == theirs


def patterns(t):
    """float32 of every sign, exponent and first seven bits, with some of what may follow."""
    top = t.arange(65536) * 65536
    every = t.cat([top + low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF, 0x1234)])
    return t.where(every >= 2**31, every - 2**32, every).to(t.int32).view(t.float32)


@pytest.mark.parametrize("name", ("complex32", *FLOAT8))
def test_casts_of_floats(name):
    agree(lambda t: patterns(t).to(getattr(t, name)))
    agree(lambda t: (patterns(t).double() * (1 + 2.0**-30)).to(getattr(t, name)))
    for half in ("float16", "bfloat16"):
        agree(
            lambda t, half=half: (
                (t.arange(65536) - 32768).to(t.int16).view(getattr(t, half)).to(getattr(t, name))
            )
        )


@pytest.mark.parametrize("name", FLOAT8)
@pytest.mark.parametrize("to", (*OTHERS[6:], "bool", *FLOAT8, "complex32"))
def test_casts_of_every_code(name, to):
    agree(lambda t: t.arange(256).to(t.uint8).view(getattr(t, name)).to(getattr(t, to)))


def integers(t):
    t.manual_seed(0)
    wide = t.randint(-(2**63), 2**63 - 1, (1000,))
    edges = t.tensor([0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1, 2**24 + 1, 2**62 + 1])
    return t.cat([wide, wide >> 20, wide >> 33, wide >> 50, edges])


@pytest.mark.parametrize("name", UNSIGNED)
def test_casts_of_unsigned_integers(name):
    for to in (*OTHERS, *RARE):
        agree(lambda t, to=to: integers(t).to(getattr(t, name)).to(getattr(t, to)))
    for source in OTHERS[:6]:
        agree(lambda t, source=source: integers(t).to(getattr(t, source)).to(getattr(t, name)))
    for source in OTHERS[6:]:
        agree(
            lambda t, source=source: (t.arange(-900, 900) * 0.3).to(getattr(t, source)).to(getattr(t, name))
        )


@pytest.mark.parametrize("name", RARE)
def test_casts_of_the_others(name):
    for source in OTHERS:
        agree(lambda t, source=source: (integers(t) % 100).to(getattr(t, source)).to(getattr(t, name)))


def test_promotion():
    for a, b in itertools.product(RARE, (*RARE, *OTHERS)):
        for call in (
            lambda t: str(t.promote_types(getattr(t, a), getattr(t, b))),  # noqa: B023
            lambda t: str(t.promote_types(getattr(t, b), getattr(t, a))),  # noqa: B023
            lambda t: str(t.result_type(t.ones(1).to(getattr(t, a)), t.ones(()).to(getattr(t, b)))),  # noqa: B023
            lambda t: str(t.result_type(t.ones(()).to(getattr(t, a)), t.ones(1).to(getattr(t, b)))),  # noqa: B023
            lambda t: t.can_cast(getattr(t, a), getattr(t, b)),  # noqa: B023
        ):
            agree(call)
    for a, number in itertools.product(RARE, (True, 2, 2.5, 1j)):
        agree(lambda t: str(t.result_type(t.ones(1).to(getattr(t, a)), number)))  # noqa: B023


def _names(text):
    return text.split()


CALLS = {
    name: lambda t, x, m, name=name: getattr(t, name)(x)
    for name in _names(
        "neg abs sgn reciprocal frac logical_not isnan isinf isfinite signbit bitwise_not conj_physical real "
        "floor round trunc isreal mean nansum amax argmax any all count_nonzero sort nonzero square relu "
        "sign positive median"
    )
}
CALLS |= {
    name: lambda t, x, m, name=name: getattr(t, name)(x, x)
    for name in _names("add sub mul eq ne lt maximum bitwise_and bitwise_xor pow remainder gcd dot")
}
CALLS |= {
    "number": lambda t, x, m: x * 2,
    "equal to": lambda t, x, m: x == 2,
    "in place": lambda t, x, m: x.clone().mul_(x),
    "in place eq": lambda t, x, m: x.clone().eq_(x),
    "sum": lambda t, x, m: m.sum(1),
    "sum as float32": lambda t, x, m: m.sum(1, dtype=t.float32),
    "sum as this": lambda t, x, m: t.ones(2).sum(0, dtype=x.dtype),
    "index": lambda t, x, m: x[t.tensor([2, 0])],
    "mask": lambda t, x, m: x[t.tensor([True, False, True, False])],
    "set": lambda t, x, m: x.index_put((t.tensor([0, 1]),), x[2:]),
    "accumulate": lambda t, x, m: x.index_put((t.tensor([0, 0]),), x[2:], accumulate=True),
    "gather": lambda t, x, m: m.gather(1, t.tensor([[0], [1]])),
    "scatter": lambda t, x, m: m.scatter(1, t.tensor([[0], [1]]), m),
    "where": lambda t, x, m: t.where(t.tensor([True, False, True, False]), x, x[0]),
    "cat": lambda t, x, m: t.cat([x, x]),
    "cat with float": lambda t, x, m: t.cat([x, t.ones(1)]),
    "cat with integers": lambda t, x, m: t.cat([x, t.ones(1, dtype=t.int64)]),
    "index_select": lambda t, x, m: x.index_select(0, t.tensor([1])),
    "index_fill": lambda t, x, m: x.index_fill(0, t.tensor([1]), 2),
    "masked_fill": lambda t, x, m: x.masked_fill(t.tensor([True, False, True, False]), 2),
    "mm": lambda t, x, m: m @ m,
    "bmm": lambda t, x, m: t.bmm(m[None], m[None]),
    "addmm": lambda t, x, m: t.addmm(m, m, m),
    "linear": lambda t, x, m: t.nn.functional.linear(m, m, x[:2]),
    "norm": lambda t, x, m: t.linalg.vector_norm(x),
    "inv": lambda t, x, m: t.linalg.inv(m),
    "pad": lambda t, x, m: t.nn.functional.pad(x, (1, 1), value=2),
    "arange": lambda t, x, m: t.arange(3, dtype=x.dtype),
    "randint": lambda t, x, m: t.randint(0, 9, (3,), dtype=x.dtype),
    "randn": lambda t, x, m: t.randn(3, dtype=x.dtype),
    "rand": lambda t, x, m: t.rand(3, dtype=x.dtype),
    "random_": lambda t, x, m: x.clone().random_(),
    "full": lambda t, x, m: t.full((2,), 3, dtype=x.dtype),
    "negative full": lambda t, x, m: t.full((2,), -1, dtype=x.dtype),
    "huge full": lambda t, x, m: t.full((2,), 70000, dtype=x.dtype),
    "tensor": lambda t, x, m: t.tensor([1, 2], dtype=x.dtype),
    "huge": lambda t, x, m: t.tensor([70000], dtype=x.dtype),
    "repr": lambda t, x, m: repr(m),
    "list": lambda t, x, m: str(x.tolist()),
    "item": lambda t, x, m: str(x[1].item()),
    "type": lambda t, x, m: x.type(),
    "unique": lambda t, x, m: t.unique(x),
    "requires_grad": lambda t, x, m: x.clone().requires_grad_().requires_grad,
    "tril": lambda t, x, m: t.tril(m),
    "softmax": lambda t, x, m: m.softmax(1),
    "hash": lambda t, x, m: t.hash_tensor(x),
    "mask of it": lambda t, x, m: t.zeros(4).masked_fill_(x, 1),
    "gradient of it": lambda t, x, m: setattr(t.zeros(4, requires_grad=True), "grad", x),
    "info": lambda t, x, m: str((t.finfo if x.is_floating_point() or x.is_complex() else t.iinfo)(x.dtype)),
}


@pytest.mark.parametrize("dtype", RARE)
@pytest.mark.parametrize("name", CALLS)
def test_calls(name, dtype):
    def call(t):
        t.manual_seed(1)
        values = [0, 1, 2.5 - 1j, -3] if dtype == "complex32" else [0, 1, 2, 40]
        x = t.tensor(values).to(getattr(t, dtype))
        return CALLS[name](t, x, x.reshape(2, 2))

    agree(call)


@pytest.mark.parametrize("dtype", ["float8_e5m2", "float8_e4m3fn"])
@pytest.mark.parametrize("text", ["x @ y", "y @ x", "torch.mm(x, y)"])
def test_products_with_floats(dtype, text):
    def call(t):
        y = t.ones(2, 2)
        return eval(text, {"torch": t, "x": y.to(getattr(t, dtype)), "y": y})

    agree(call)


@pytest.mark.parametrize("dtype", ["uint16", "complex32", "float8_e5m2"])
def test_each_reads_the_files_of_the_other(dtype, tmp_path):
    for writer, reader in ((torch, rushlight), (rushlight, torch)):
        written = writer.tensor([0.0, 1, 3]).to(getattr(writer, dtype))
        writer.save({"x": written}, tmp_path / "x.pt")
        read = reader.load(tmp_path / "x.pt", weights_only=True)["x"]
        assert str(read.dtype) == f"torch.{dtype}" and raw(read) == raw(written)


@pytest.mark.parametrize("dims", [(), 0, (0, 1), -1])
def test_hash_tensor(dims):
    for dtype in ("float32", "float16", "int64", "int8", "bool", "uint8"):
        agree(
            lambda t, dtype=dtype: t.hash_tensor(
                t.tensor([[1, 0, -3], [2, 5, 7]]).to(getattr(t, dtype)), dims
            )
        )
