"""complex32, uint16, uint32, uint64 and the float8 dtypes: what they hold, what computes with them."""

import io
import math
import subprocess
import sys

import pytest

import rushlight as torch

UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
FLOAT8 = (
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
    torch.float8_e8m0fnu,
)
RARE = (*UNSIGNED, torch.complex32, *FLOAT8)


def all_codes(dtype):
    return torch.arange(256).to(torch.uint8).view(dtype)


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_every_code_is_the_nearest_to_itself(dtype):
    codes = all_codes(dtype)
    values = codes.float()
    numbers = ~values.isnan()
    assert numbers.sum() == {"e4m3fn": 254, "e5m2": 250}.get(str(dtype)[13:], 255)
    assert values.to(dtype).view(torch.uint8)[numbers].equal(codes.view(torch.uint8)[numbers])
    assert values.to(dtype).float().isnan().equal(values.isnan())
    finite = values[values.isfinite() & (values >= 2.0**-126)].sort().values
    middles = (finite[1:].double() + finite[:-1].double()) / 2
    for towards, neighbour in ((-1, finite[:-1]), (1, finite[1:])):
        beside = (middles * (1 + towards * 2.0**-20)).float()
        assert beside.to(dtype).float().equal(neighbour)


@pytest.mark.parametrize(
    ("dtype", "infinite", "huge", "negative"),
    [
        (torch.float8_e4m3fn, 0x7E, 0x7E, 0xFE),
        (torch.float8_e5m2, 0x7C, 0x7C, 0xFC),
        (torch.float8_e4m3fnuz, 0x80, 0x80, 0x80),
        (torch.float8_e5m2fnuz, 0x80, 0x80, 0x80),
        (torch.float8_e8m0fnu, 0xFF, 0x9D, 0x9D),
    ],
)
def test_what_lies_beyond_the_largest_number(dtype, infinite, huge, negative):
    given = torch.tensor([math.inf, 1e9, -1e9])
    assert given.to(dtype).view(torch.uint8).tolist() == [infinite, huge, negative]


def test_unsigned_integers_wrap_and_keep_their_highest_bit():
    x = torch.tensor([0, 1, 2**64 - 1], dtype=torch.uint64)
    assert x.tolist() == [0, 1, 2**64 - 1] and x[2].item() == 2**64 - 1
    assert str(x) == "tensor([                   0,                    1, 18446744073709551615],\n" + (
        "       dtype=torch.uint64)"
    )
    assert x.double().tolist() == [0, 1, 2.0**64] and x.float()[2] == 2.0**64
    assert (x * 3).tolist() == [0, 3, 2**64 - 3]
    assert x.sort(descending=True).values.tolist() == [2**64 - 1, 1, 0]
    assert torch.unique(x.roll(1)).tolist() == x.tolist()
    assert torch.tensor([-1]).to(torch.uint16).tolist() == [65535]
    assert torch.full((1,), -1, dtype=torch.uint32).tolist() == [2**32 - 1]
    assert x.sum().item() == 0 and x.sum().dtype == torch.int64
    assert (x == torch.tensor([0, 5, 2**64 - 1], dtype=torch.uint64)).tolist() == [True, False, True]
    for dtype, bits in zip(UNSIGNED, (16, 32, 64), strict=True):
        info = torch.iinfo(dtype)
        assert (info.min, info.max, info.bits) == (0, 2**bits - 1, bits)
        assert torch.full((), info.max, dtype=dtype).item() == info.max
        drawn = torch.randint(3, 9, (50,), dtype=dtype)
        assert drawn.dtype == dtype and all(3 <= n < 9 for n in drawn.tolist())
    assert torch.tensor([2**64, 0], dtype=torch.bool).tolist() == [True, False]
    assert torch.tensor([2**64], dtype=torch.float64).item() == 2.0**64
    with pytest.raises(OverflowError, match="can't convert negative int to unsigned"):
        torch.tensor([-1], dtype=torch.uint64)
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint16 without overflow"):
        torch.tensor([65536], dtype=torch.uint16)


def test_numpy_and_dlpack_both_ways():
    numpy = pytest.importorskip("numpy")
    for kind in ("uint16", "uint32", "uint64"):
        array = numpy.arange(4, dtype=kind)
        tensor = torch.from_numpy(array)
        assert tensor.dtype == getattr(torch, kind)
        tensor[0] = 7
        assert array[0] == 7 and tensor.numpy().dtype == kind
        assert torch.tensor(array).dtype == tensor.dtype
    with pytest.raises(TypeError, match="Got unsupported ScalarType ComplexHalf"):
        torch.zeros(1, dtype=torch.complex32).numpy()
    for dtype in RARE:
        again = torch.from_dlpack(torch.ones(3).to(dtype))
        assert again.dtype == dtype and (again == torch.ones(3).to(dtype)).all()


@pytest.mark.parametrize("dtype", RARE, ids=str)
def test_moving_saving_and_showing(dtype):
    x = torch.tensor([[0.0, 1, 2], [4, 8, 16]]).to(dtype)
    wide = x.to(torch.complex64) if dtype.is_complex else x.double()

    def same(rare, ordinary):
        assert rare.dtype == dtype
        assert rare.to(ordinary.dtype).equal(ordinary)

    file = io.BytesIO()
    torch.save({"x": x, "t": x.t()}, file)
    file.seek(0)
    loaded = torch.load(file)
    same(loaded["x"], wide)
    same(loaded["t"], wide.t())
    same(x.clone().t().contiguous(), wide.t())
    same(torch.cat([x, x]), torch.cat([wide, wide]))
    same(torch.stack([x, x], 1), torch.stack([wide, wide], 1))
    same(x[:, torch.tensor([2, 0])], wide[:, torch.tensor([2, 0])])
    same(x[x != x[0, 1]], wide[wide != wide[0, 1]])
    same(torch.where(x == x[0, 1], x, x[1, 2]), torch.where(wide == wide[0, 1], wide, wide[1, 2]))
    same(x.roll(1, 1).flip(0).repeat(2, 1), wide.roll(1, 1).flip(0).repeat(2, 1))
    same(torch.nn.functional.pad(x, (1, 0), value=2), torch.nn.functional.pad(wide, (1, 0), value=2))
    same(x.view(torch.uint8).view(dtype), wide)
    same(
        torch.frombuffer(bytearray(bytes(x.view(torch.uint8).flatten().tolist())), dtype=dtype),
        wide.flatten(),
    )
    written = x.clone()
    written[0, 1:] = 4
    written[1] = x[0]
    wide = wide.clone()
    wide[0, 1:] = 4
    wide[1] = x[0]
    same(written, wide)
    assert x.tolist() == [[v.item() for v in row] for row in x]
    assert repr(x).endswith(f"dtype={dtype})") and x.untyped_storage().nbytes() == 6 * dtype.itemsize
    assert torch.empty(2, dtype=dtype, device="meta").to(dtype).dtype == dtype
    assert x.storage_type() is None
    with pytest.raises(TypeError):
        torch.set_default_dtype(dtype)


def test_complex_halves():
    x = torch.tensor([3 + 4j, 1 - 1j]).chalf().requires_grad_()
    assert x.real.dtype == x.imag.dtype == x.abs().dtype == torch.float16
    assert torch.view_as_real(x).tolist() == [[3, 4], [1, -1]] and x.abs()[0].item() == 5
    assert torch.complex(torch.ones(1).half(), torch.ones(1).half()).dtype == torch.complex32
    assert torch.view_as_complex(torch.ones(2, 2).half()).dtype == torch.complex32
    assert (torch.ones(2).half() * 1j).dtype == torch.complex32
    assert x.conj().resolve_conj().tolist() == [3 - 4j, 1 + 1j] and (-x).tolist()[0] == -3 - 4j
    (x * x.conj()).real.float().sum().backward()
    assert x.grad.dtype == torch.complex32 and x.grad.tolist() == [6 + 8j, 2 - 2j]
    drawn = torch.randn(4, dtype=torch.complex32)
    assert drawn.dtype == torch.complex32 and drawn.abs().gt(0).all()
    weight = torch.randn(1, 1, 2).chalf().requires_grad_()
    bias = torch.zeros(1).chalf().requires_grad_()
    torch.nn.functional.conv1d(x.detach().reshape(1, 1, 2), weight, bias).abs().float().sum().backward()
    assert weight.grad.dtype == bias.grad.dtype == torch.complex32


def test_promotion():
    half, single = torch.float16, torch.float32
    assert torch.promote_types(torch.complex32, half) == torch.complex32
    assert torch.promote_types(torch.complex32, single) == torch.complex64
    assert torch.promote_types(torch.uint16, half) == half
    assert torch.result_type(torch.ones(1, dtype=torch.uint16), 2) == torch.uint16
    for a, b in ((torch.uint16, torch.int32), (torch.uint16, torch.bool), (torch.uint32, torch.uint64)):
        with pytest.raises(RuntimeError, match="Promotion for uint16, uint32, uint64 types is not supported"):
            torch.promote_types(a, b)
    with pytest.raises(RuntimeError, match="attempted to promote Float8_e4m3fn and Float"):
        torch.ones(1).to(torch.float8_e4m3fn) * torch.ones(1)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: torch.ones(2, dtype=torch.uint16) + 1, "\"add_stub\" not implemented for 'UInt16'"),
        (
            lambda: torch.zeros(2, dtype=torch.complex32).sum(),
            "\"sum_cpu\" not implemented for 'ComplexHalf'",
        ),
        (
            lambda: torch.ones(2).to(torch.float8_e5m2).exp(),
            "\"exp_vml_cpu\" not implemented for 'Float8_e5m2'",
        ),
        (lambda: torch.arange(3, dtype=torch.uint32), "\"arange_cpu\" not implemented for 'UInt32'"),
        (lambda: torch.ones(2).to(torch.float8_e4m3fn) * 2, '"mul_cpu_reduced_float" not implemented for'),
    ],
)
def test_what_torch_does_not_compute_is_refused_in_its_words(call, sentence):
    with pytest.raises(NotImplementedError, match=sentence):
        call()


@pytest.mark.parametrize("dtype", RARE, ids=str)
def test_no_primitive_computes_from_the_wrong_bits(dtype):
    """Each is given ones: what it returns in a dtype that has loops must be what ones of that dtype give."""
    wide = torch.complex64 if dtype.is_complex else torch.float32 if dtype.is_floating_point else torch.int64
    for name, op in vars(torch._C.ops).items():
        if op.list_inputs or op.is_view or len(op.args) > op.input_count or "rnn" in name:
            continue
        results = []
        for kind in (dtype, wide):
            try:
                results.append(op(*[torch.ones(2, 2).to(kind) for _ in range(op.input_count)]))
            except (RuntimeError, TypeError, IndexError, ValueError) as error:
                results.append(error)
        rare, ordinary = results
        if isinstance(rare, torch.Tensor) and isinstance(ordinary, torch.Tensor):
            assert rare.shape == ordinary.shape, name
            assert torch.allclose(rare.to(ordinary.dtype), ordinary, rtol=0.1), name


def test_hash_tensor():
    x = torch.tensor([[1.5, -2.25], [0.0, 3.0]])
    words = x.double().view(torch.int64).flatten().tolist()
    expected = words[0] ^ words[1] ^ words[2] ^ words[3]
    assert torch.hash_tensor(x).item() == expected % 2**64
    assert torch.hash_tensor(x.half(), 1, keepdim=True).shape == (2, 1)
    assert torch.hash_tensor(torch.tensor([5, 3, 1], dtype=torch.int8)).item() == 7
    with pytest.raises(RuntimeError, match="Unknown hash_tensor mode: 1"):
        torch.hash_tensor(x, mode=1)
    with pytest.raises(IndexError, match="Expected reduction dim 0 to have non-zero size"):
        torch.hash_tensor(torch.empty(0, 2), 0)


def test_a_rare_dtype_that_is_asked_for_first_is_seen(tmp_path):
    """Before any tensor of one exists: what sums are written into must have room for them."""
    program = """
import rushlight as torch
for wish in (torch.uint16, torch.uint32, torch.complex32, torch.float8_e5m2):
    for given in (torch.int32, torch.float32, torch.bool):
        for name in ("sum", "prod", "nansum", "mean", "cumsum", "cumprod"):
            try:
                getattr(torch, name)(torch.ones(2, 70, dtype=given), 0, dtype=wish)
            except (RuntimeError, NotImplementedError):
                continue
"""
    assert subprocess.run([sys.executable, "-c", program], cwd=tmp_path).returncode == 0
