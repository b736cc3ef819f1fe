"""Matrix products beyond the table of samples: every size class of the kernels, layouts, threads, the
fallbacks for a missing OpenBLAS and for processors without AVX2, node names, in-place forms and aliases."""

import itertools
import math
import os
import random
import subprocess
import sys
import threading

import numpy as np
import pytest
from gradcheck import gradcheck, gradgradcheck

import rushlight
from rushlight.nn.functional import linear

FLOATING = ("float32", "float64", "complex64", "complex128")
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-5, "complex64": 1e-5}


def numbers(rng, shape, dtype):
    if dtype.startswith("complex"):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype.startswith(("float", "bfloat")):
        return rng.standard_normal(shape).astype("float32" if dtype != "float64" else dtype)
    return rng.integers(-9, 9, shape).astype(dtype)


def tensor(array, dtype=None):
    result = rushlight.tensor(array.tolist(), dtype=getattr(rushlight, dtype or str(array.dtype)))
    return result.reshape(array.shape)


def laid_out(t, layout):
    """The same elements in another order of memory."""
    if layout == "transposed":
        return t.mT.contiguous().mT
    if layout == "spread":
        return rushlight.empty((*t.shape, 2), dtype=t.dtype).select(-1, 0).copy_(t)
    return t


def assert_close(result, expected, dtype, terms=1):
    got = np.array(result.tolist()).reshape(expected.shape)
    if dtype.startswith(("int", "uint")):
        assert (got == expected.astype(dtype)).all()
        return
    bound = TOLERANCE.get(dtype, 1e-13) * (abs(expected) + 1 + np.sqrt(terms))
    assert (abs(got - expected) <= bound).all()


SIZES = [
    (1, 1, 1),
    (3, 2, 4),
    (8, 8, 8),
    (7, 17, 5),
    (20, 1, 30),
    (1, 30, 20),
    (16, 33, 9),
    (50, 10, 20),
    (6, 1300, 7),
]
LARGE = [(130, 140, 150), (65, 300, 70), (257, 40, 200)]


@pytest.mark.parametrize("dtype", [*FLOATING, "float16", "bfloat16", "int8", "int32", "int64", "uint8"])
def test_products_of_all_sizes_and_layouts(dtype):
    rng = np.random.default_rng(3)
    for m, k, n in SIZES + (LARGE if dtype in FLOATING else [(40, 40, 40)]):
        a, b = numbers(rng, (m, k), dtype), numbers(rng, (k, n), dtype)
        x, y = tensor(a, dtype), tensor(b, dtype)
        if dtype in ("float16", "bfloat16"):
            a, b = np.array(x.tolist()), np.array(y.tolist())
        wide = (
            "int64"
            if dtype.startswith(("int", "uint"))
            else "complex128"
            if "complex" in dtype
            else "float64"
        )
        expected = a.astype(wide).reshape(m, k) @ b.astype(wide).reshape(k, n)
        for left in ("plain", "transposed", "spread"):
            for right in ("plain", "transposed", "spread"):
                result = laid_out(x, left) @ laid_out(y, right)
                assert_close(result, expected, dtype, k)


def test_the_number_of_threads_does_not_change_the_result_much():
    rng = np.random.default_rng(4)
    a, b = tensor(numbers(rng, (300, 200), "float64")), tensor(numbers(rng, (200, 250), "float64"))
    v = tensor(numbers(rng, (200_000,), "float64"))
    before = rushlight.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3, 5):
            rushlight.set_num_threads(threads)
            results.append(((a @ b).sum().item(), (v @ v).item(), (a @ b[:, 0]).sum().item()))
    finally:
        rushlight.set_num_threads(before)
    for result in results[1:]:
        assert result == pytest.approx(results[0], rel=1e-12)
        assert result[1] == results[0][1]


def test_products_from_several_python_threads():
    a = rushlight.ones(200, 200)
    failures = []

    def work():
        sums = [(a @ a).sum().item() for _ in range(20)]
        failures.extend(value for value in sums if value != 200.0**3)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


CHECK = """
import rushlight
def maps():
    with open("/proc/self/maps") as lines:
        return "openblas" in lines.read()
assert not maps(), "opened at import"

for dtype in (rushlight.float32, rushlight.float64, rushlight.complex64, rushlight.float16, rushlight.int64):
    for n in (3, 40, 150):
        a = rushlight.arange(n * n).reshape(n, n).remainder(7).to(dtype)
        rows, ends = a.tolist(), (0, n - 1)
        expected = [[sum(rows[i][k] * rows[k][j] for k in range(n)) for j in ends] for i in ends]
        got = (a @ a)[:: n - 1, :: n - 1].tolist()
        for g, e in zip(got[0] + got[1], expected[0] + expected[1]):
            assert abs(g - e) <= 2e-3 * abs(e), (dtype, n)
    v = rushlight.ones(300, dtype=dtype)
    assert (v @ v).item() == 300 and (rushlight.ones(300, 300, dtype=dtype) @ v)[7].item() == 300
print(maps())
"""


@pytest.mark.parametrize(
    "environment, opened",
    [({}, True), ({"RUSHLIGHT_OPENBLAS": "/nonexistent"}, False), ({"RUSHLIGHT_CPU": "baseline"}, True)],
    ids=["as installed", "without OpenBLAS", "without AVX2"],
)
def test_openblas_opens_at_the_first_product_and_can_be_missing(environment, opened, tmp_path):
    if not os.path.exists("/proc/self/maps"):
        pytest.skip("needs /proc")
    run = subprocess.run(
        [sys.executable, "-c", CHECK],
        env=os.environ | environment,
        cwd=tmp_path,  # not beside the source tree, which has no native core
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == str(opened)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_products_after_fork():
    a = rushlight.ones(300, 300)
    assert (a @ a).sum().item() == 300.0**3
    child = os.fork()
    if child == 0:
        os._exit(0 if (a @ a).sum().item() == 300.0**3 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_beta_zero_reads_nothing_and_no_terms_give_zeros():
    nan = rushlight.full((3, 3), float("nan"))
    for n in (1, 20):
        a = rushlight.ones(3, n)
        assert rushlight.addmm(nan, a, a.mT, beta=0).tolist() == [[float(n)] * 3] * 3
        assert nan.clone().addmm_(a, a.mT, beta=0).tolist() == [[float(n)] * 3] * 3
        assert rushlight.addmv(nan[0], a, a[0], beta=0).tolist() == [float(n)] * 3
        assert rushlight.baddbmm(nan, a[None], a.mT[None], beta=0).tolist() == [[[float(n)] * 3] * 3]
    empty = rushlight.ones(3, 0)
    assert (empty @ empty.mT).tolist() == [[0.0] * 3] * 3
    assert rushlight.addmm(rushlight.ones(3), empty, empty.mT, beta=2).tolist() == [[2.0] * 3] * 3
    assert rushlight.addmm(nan, empty, empty.mT, beta=0).tolist() == [[0.0] * 3] * 3
    assert rushlight.addbmm(
        rushlight.ones(2, 2), rushlight.ones(0, 2, 3), rushlight.ones(0, 3, 2), beta=3
    ).tolist() == [
        [3.0, 3.0],
        [3.0, 3.0],
    ]


@pytest.mark.parametrize("batch", [(2,), (1,), (0,), (2, 3)])
@pytest.mark.parametrize("rows, terms, columns", list(itertools.product((0, 1, 3), (0, 2), (0, 1, 4))))
def test_a_matrix_times_a_batch_of_any_size(rows, terms, columns, batch):
    for lead in ((), (1,)):
        a = rushlight.ones(*lead, rows, terms, requires_grad=True)
        b = rushlight.ones(*batch, terms, columns, requires_grad=True)
        y = a @ b
        assert y.shape == (*batch, rows, columns)
        assert rushlight.equal(y, rushlight.full_like(y, float(terms)))
        y.sum().backward()
        assert rushlight.equal(a.grad, rushlight.full_like(a, float(columns * math.prod(batch))))
        assert rushlight.equal(b.grad, rushlight.full_like(b, float(rows)))


def test_integers_wrap_around():
    big = rushlight.full((2, 2), 100, dtype=rushlight.int8)
    assert (big @ big).tolist() == [[32, 32], [32, 32]]
    huge = rushlight.full((1, 1), 2**40, dtype=rushlight.int64)
    assert (huge @ huge).tolist() == [[0]]


def test_half_precision_rounds_once():
    # 2048 + 1 is not a half: a sum kept in half precision would stay at 2048.
    ones = rushlight.ones(1, 4096, dtype=rushlight.float16)
    assert (ones @ ones.mT).item() == 4096.0
    assert (ones[0] @ ones[0]).item() == 4096.0
    wide = rushlight.ones(64, 4096, dtype=rushlight.float16)
    assert (wide @ wide.mT).amin().item() == 4096.0


def test_in_place_sums_may_alias_their_operands():
    x = rushlight.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.clone().addmm_(x, x).tolist() == (x + x @ x).tolist()
    y = x.clone()
    assert y.addmm_(y, y).tolist() == (x + x @ x).tolist()
    y = x.clone()
    assert y.addmm_(y.mT, y, beta=2, alpha=-1).tolist() == (2 * x - x.mT @ x).tolist()
    z = x.clone()
    assert z[0].addmv_(z, z[1]).tolist() == (x[0] + x @ x[1]).tolist()
    with pytest.raises(RuntimeError, match="Bad in-place call: input tensor size"):
        rushlight.ones(2).addmm_(x, x)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        rushlight.ones(1).expand(2, 2).addmm_(x, x)


def leaf(*shape):
    return rushlight.ones(*shape).requires_grad_()


@pytest.mark.parametrize(
    "name, function",
    [
        ("MmBackward0", lambda: leaf(2, 3) @ leaf(3, 4)),
        ("MvBackward0", lambda: leaf(2, 3) @ leaf(3)),
        ("DotBackward0", lambda: leaf(3) @ leaf(3)),
        ("SqueezeBackward4", lambda: leaf(3) @ leaf(3, 4)),
        ("UnsafeViewBackward0", lambda: leaf(5, 2, 3) @ leaf(3, 4)),
        ("UnsafeViewBackward0", lambda: leaf(5, 2, 3) @ leaf(5, 3, 4)),
        ("BmmBackward0", lambda: rushlight.bmm(leaf(5, 2, 3), leaf(5, 3, 4))),
        ("VdotBackward0", lambda: rushlight.vdot(leaf(3), leaf(3))),
        ("AddmmBackward0", lambda: rushlight.addmm(leaf(4), leaf(2, 3), leaf(3, 4))),
        ("AddmvBackward0", lambda: rushlight.addmv(leaf(2), leaf(2, 3), leaf(3))),
        ("AddrBackward0", lambda: rushlight.addr(leaf(2, 3), leaf(2), leaf(3))),
        ("AddbmmBackward0", lambda: rushlight.addbmm(leaf(2, 4), leaf(5, 2, 3), leaf(5, 3, 4))),
        ("BaddbmmBackward0", lambda: rushlight.baddbmm(leaf(2, 4), leaf(5, 2, 3), leaf(5, 3, 4))),
        ("AddmmBackward0", lambda: linear(leaf(2, 3), leaf(4, 3), leaf(4))),
        ("MmBackward0", lambda: linear(leaf(2, 3), leaf(4, 3))),
        ("ViewBackward0", lambda: linear(leaf(5, 2, 3), leaf(4, 3), leaf(4))),
        ("LinalgCrossBackward0", lambda: rushlight.cross(leaf(2, 3), leaf(2, 3), dim=1)),
    ],
)
def test_node_names_are_torchs(name, function):
    assert function().grad_fn.name() == name


def test_matmul_errors():
    ones = rushlight.ones
    for message, call in {
        r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)": lambda: ones(2, 3) @ ones(4, 5),
        r"mat1 and mat2 shapes cannot be multiplied \(6x4 and 5x6\)": lambda: ones(2, 3, 4) @ ones(5, 6),
        r"size mismatch, got input \(2\), mat \(2x3\), vec \(4\)": lambda: ones(2, 3) @ ones(4),
        "expected m1 and m2 to have the same dtype, but got: float != double": lambda: (
            ones(2, 2) @ ones(2, 2).double()
        ),
        "self must be a matrix": lambda: rushlight.mm(ones(2), ones(2, 2)),
        "batch1 must be a 3D tensor": lambda: rushlight.bmm(ones(2, 2), ones(1, 2, 2)),
        "Expected out tensor to have dtype float, but got double instead": lambda: rushlight.mm(
            ones(2, 2), ones(2, 2), out=ones(2, 2).double()
        ),
        r"both arguments to linear need to be at least 1D, but they are 0D and 2D": lambda: linear(
            ones(()), ones(2, 2)
        ),
    }.items():
        with pytest.raises(RuntimeError, match=message):
            call()
    with pytest.raises(TypeError, match="unsupported operand type"):
        ones(2, 2) @ 3
    with pytest.raises(TypeError, match=r"mm\(\): argument 'mat2' \(position 2\) must be Tensor, not int"):
        rushlight.mm(ones(2, 2), 3)


def test_linear_with_every_kind_of_bias_and_input():
    rng = np.random.default_rng(5)
    weight = numbers(rng, (4, 3), "float64")
    for shape in ((3,), (2, 3), (5, 2, 3), (2, 5, 2, 3), (0, 3), (2, 0, 3)):
        x = numbers(rng, shape, "float64")
        for bias_shape in (None, (4,), (1,), ()):
            bias = None if bias_shape is None else numbers(rng, bias_shape, "float64")
            expected = x @ weight.T + (0 if bias is None else bias)
            args = [tensor(np.asarray(item)) for item in (x, weight)]
            if x.size == 0:
                args[0] = rushlight.empty(shape, dtype=rushlight.float64)
            args.append(None if bias is None else tensor(np.asarray(bias), "float64"))
            result = linear(*args)
            assert tuple(result.shape) == expected.shape
            assert_close(result, expected, "float64", 3)
    x = tensor(numbers(rng, (2, 5, 3), "float64"))
    w, b = tensor(weight), tensor(numbers(rng, (4,), "float64"))
    strided = x.transpose(0, 1)
    assert linear(strided, w, b).tolist() == linear(strided.contiguous(), w, b).tolist()


@pytest.mark.parametrize("dtype", [rushlight.float64, rushlight.complex128])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 3)])
def test_gradients_of_linear(shape, dtype):
    rushlight.manual_seed(1)
    inputs = [rushlight.randn(*size, dtype=dtype) for size in (shape, (2, 3), (2,))]
    gradcheck(rushlight, linear, inputs)
    gradgradcheck(rushlight, linear, inputs)


def random_equation(rng):
    letters = "abcdeAB"
    sizes = dict(zip(letters, (2, 3, 4, 1, 2, 2, 3)))
    operands = [
        "".join(rng.choice(letters) for _ in range(rng.randrange(4))) for _ in range(rng.randrange(1, 4))
    ]
    equation = ",".join(operands)
    if rng.random() < 0.7:
        used = sorted(set(equation) - {","})
        kept = [letter for letter in used if rng.random() < 0.5]
        rng.shuffle(kept)
        equation += "->" + "".join(kept)
    return equation, [tuple(sizes[letter] for letter in operand) for operand in operands]


def test_einsum_agrees_with_numpy():
    rng, values = random.Random(6), np.random.default_rng(6)
    for _ in range(300):
        equation, shapes = random_equation(rng)
        arrays = [np.asarray(numbers(values, shape, "float64")) for shape in shapes]
        expected = np.asarray(np.einsum(equation, *arrays))
        result = rushlight.einsum(equation, *[tensor(array, "float64") for array in arrays])
        assert tuple(result.shape) == expected.shape, equation
        assert np.allclose(np.array(result.tolist()), expected, rtol=1e-10), equation


def test_einsum_of_sublists_and_ellipses():
    x = tensor(np.arange(24.0).reshape(2, 3, 4))
    y = tensor(np.arange(12.0).reshape(4, 3))
    by_list = rushlight.einsum(x, [..., 0], y, [0, 1], [..., 1])
    assert by_list.tolist() == rushlight.einsum("...i,ij->...j", x, y).tolist() == (x @ y).tolist()
    gradcheck(rushlight, lambda a, b: rushlight.einsum("...ij,jj->...i", a, b), [x[..., :3], y[:3]])


def test_einsum_errors():
    x = rushlight.ones(2, 3)
    for message, args in {
        "fewer operands were provided than specified": ("ij,jk->ik", x),
        "output subscript k does not appear": ("ij->ik", x),
        "subscript j has size 2 for operand 1 which does not broadcast": ("ij,jk->ik", x, x),
        "found '.' for operand 0 that is not part of any ellipsis": ("i.j->i", x),
        "invalid subscript given at index 1": ("i1->i", x),
        "is repeated for operand 0 but the sizes don't match, 3 != 2": ("ii->i", x),
    }.items():
        with pytest.raises(RuntimeError, match=message):
            rushlight.einsum(*args)


def test_multi_dot_takes_the_cheapest_order():
    matrices = [rushlight.ones(10, 100), rushlight.ones(100, 5), rushlight.ones(5, 50)]
    multi_dot = rushlight.linalg.multi_dot
    assert multi_dot(matrices).tolist() == [[500.0] * 50] * 10
    assert multi_dot([rushlight.ones(3), rushlight.ones(3, 2), rushlight.ones(2)]).item() == 6.0
    with pytest.raises(
        RuntimeError, match=r"multi_dot\(\): tensors 0 and 1 with shapes \[2, 3\] and \[2, 3\]"
    ):
        multi_dot([rushlight.ones(2, 3), rushlight.ones(2, 3)])


def test_meta_products_have_shapes_only():
    a, b = rushlight.ones(5, 2, 3, device="meta"), rushlight.ones(3, 4, device="meta")
    assert (a @ b).shape == (5, 2, 4)
    assert (a[0] @ b).device.type == "meta"
    assert linear(a, b.mT, rushlight.ones(4, device="meta")).shape == (5, 2, 4)
    with pytest.raises(RuntimeError, match="Tensor on device meta is not on the expected device cpu!"):
        rushlight.ones(2, 3) @ b


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 4), (5, 4)),
        ((2, 3, 4), (5, 4)),
        ((2, 3, 4), (2, 5, 4)),
        ((3, 4), (2, 5, 4)),
    ],
)
def test_gradient_of_a_transposed_right_side_has_its_layout(left, right):
    rushlight.manual_seed(0)
    a = rushlight.randn(*left, dtype=rushlight.float64, requires_grad=True)
    b = rushlight.randn(*right, dtype=rushlight.float64, requires_grad=True)
    turned = b.mT
    strides = []
    turned.register_hook(lambda g: strides.append(g.stride()))  # what is retained is a copy in its own order
    turned.retain_grad()
    product = a @ turned
    product.sum().backward()
    # Of two batches torch multiplies, and its gradients lie in order.
    assert strides == [turned.stride() if b.dim() == 2 or a.dim() == 2 else (20, 5, 1)]
    assert b.grad.is_contiguous()
    plain = b.detach().mT.contiguous().requires_grad_()
    again = a.detach().requires_grad_()
    (again @ plain).sum().backward()
    assert rushlight.allclose(turned.grad, plain.grad)
    assert rushlight.allclose(a.grad, again.grad)
    inputs = [a.detach(), b.detach()]
    gradcheck(rushlight, lambda a, b: a @ b.mT, inputs)
    gradgradcheck(rushlight, lambda a, b: a @ b.mT, inputs)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "rows, columns, terms",
    [(16, 1030, 130), (33, 129, 399), (57, 300, 100), (300, 1100, 129), (2100, 150, 256), (17, 1025, 321)],
)
def test_products_packed_by_ourselves(rows, columns, terms, threads):
    # Every layout, with and without what was there before; 1e-6 of the size a sum of such terms has.
    before = rushlight.get_num_threads()
    rushlight.set_num_threads(threads)
    try:
        rng = np.random.default_rng(rows)
        a = rushlight.from_numpy(rng.standard_normal((rows, terms), dtype="float32"))
        b = rushlight.from_numpy(rng.standard_normal((terms, columns), dtype="float32"))
        c = rushlight.from_numpy(rng.standard_normal((rows, columns), dtype="float32"))
        exact = a.double() @ b.double()
        for left in (a, a.T.contiguous().T):
            for right in (b, b.T.contiguous().T):
                assert (left @ right - exact).abs().max() < 4e-6 * terms**0.5
                for alpha, beta in ((1, 1), (2.5, -0.5)):
                    error = c.addmm(left, right, alpha=alpha, beta=beta) - (alpha * exact + beta * c.double())
                    assert error.abs().max() < 1e-5 * terms**0.5
    finally:
        rushlight.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 50])
def test_the_edges_of_small_products(columns, dtype):
    """Every height of a tile, every width of its last vector, with what was there before, turned round."""
    rng = np.random.default_rng(columns)
    for rows, terms in [*((rows, 40) for rows in range(2, 15)), (25, 13), (37, 512), (5, 513)]:
        a, b = numbers(rng, (rows, terms), dtype), numbers(rng, (terms, columns), dtype)
        before = numbers(rng, (rows, columns), dtype)
        expected = a.astype("float64") @ b.astype("float64")
        for left, right in itertools.product(("", "transposed", "spread"), ("", "transposed", "spread")):
            x, y = laid_out(tensor(a), left), laid_out(tensor(b), right)
            assert_close(x @ y, expected, dtype, terms)
            sums = rushlight.addmm(tensor(before), x, y, beta=-2, alpha=0.5)
            assert_close(sums, 0.5 * expected - 2 * before, dtype, terms)
            out = laid_out(tensor(before), "transposed")
            assert_close(out.addmm_(x, y), expected + before, dtype, terms)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("left", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("right", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize(
    ("rows", "columns", "terms"), [(33, 32, 33), (15, 1100, 31), (100, 65, 1025), (3, 129, 513)]
)
def test_pairs_of_bfloat16(rows, columns, terms, left, right, threads):
    """An odd last term, parts of tiles and panels, and several blocks of terms and columns."""
    before = rushlight.get_num_threads()
    rushlight.set_num_threads(threads)
    try:
        a = (
            rushlight.randn(terms, rows).t() if left else rushlight.randn(rows, 2 * terms)[:, ::2]
        ).bfloat16()
        b = (rushlight.randn(columns, terms).t() if right else rushlight.randn(terms, columns)).bfloat16()
        start = rushlight.randn(rows, columns).bfloat16()
        for ours, sign in (
            (a @ b, 0),
            (rushlight.addmm(start, a, b), 1),
            (rushlight.addmm(start, a, b, beta=-1), -1),
        ):
            exact = a.double() @ b.double() + sign * start.double()
            error = (ours.double() - exact).abs() / (exact.abs() + 0.01 * terms**0.5)
            assert float(error.max()) < 0.005
    finally:
        rushlight.set_num_threads(before)


@pytest.mark.parametrize(
    "low, high", [(-5, 5), (-(2**31), 2**31), (2**31 - 2, 2**31 + 2), (-(2**63), 2**63 - 1)]
)
@pytest.mark.parametrize("m, k, n", [(1, 3, 5), (7, 600, 9), (33, 17, 65)])
def test_products_of_wide_integers_wrap(low, high, m, k, n):
    """Factors that fit 32 bits are multiplied in another way than those that do not."""
    random = np.random.default_rng(m)
    a, b = random.integers(low, high, (m, k)), random.integers(low, high, (k, n))
    expected = (a @ b).tolist()
    assert (rushlight.tensor(a) @ rushlight.tensor(b)).tolist() == expected
    assert (rushlight.tensor(a.T.copy()).t() @ rushlight.tensor(b.T.copy()).t()).tolist() == expected


@pytest.mark.parametrize("dtype", [rushlight.complex64, rushlight.complex128])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_small_products_with_the_adjoint_are_hermitian(n, dtype):
    a = rushlight.randn(3, n, n, dtype=dtype)
    product = a @ a.mH
    assert (product == product.mH).all()
    assert (product.diagonal(dim1=1, dim2=2).imag == 0).all()
    assert rushlight.vdot(a[0, 0], a[0, 0]).imag == 0


@pytest.mark.parametrize("dtype", FLOATING)
def test_many_products_of_two_or_three_rows(dtype):
    rng = np.random.default_rng(7)
    for m, k, n in [(1, 1, 1), (2, 2, 2), (3, 3, 3), (2, 8, 3), (3, 9, 2), (1, 3, 2), (3, 1, 1), (3, 2, 4)]:
        a, b, c = (numbers(rng, shape, dtype) for shape in ((4, 5, m, k), (5, k, n), (4, 5, m, n)))
        for layout in ("dense", "transposed", "spread"):
            left, right = laid_out(tensor(a), layout), laid_out(tensor(b), layout)
            assert_close(left @ right, a @ b, dtype, k)
            result = rushlight.baddbmm(
                tensor(c[0]), left[1], right, beta=0.5, alpha=2
            )  # the old contents and a factor
            assert_close(result, 0.5 * c[0] + 2 * (a[1] @ b), dtype, 4 * k)


def test_a_small_product_with_its_adjoint_is_hermitian():
    for n in (2, 3, 8):
        a = rushlight.randn(50, n, n, dtype=rushlight.complex64)
        product = a @ a.mH.contiguous()
        assert (product == product.mH).all()


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int64"])
def test_batches_that_lie_turned_times_one_matrix(dtype, grad):
    # Few rows of each are copied into one matrix first; 150 are multiplied where they lie.
    if grad and dtype == "int64":
        return
    dtype = getattr(rushlight, dtype)
    rushlight.manual_seed(0)
    for rows in (1, 2, 7, 150):
        x = (rushlight.randn(rows, 9, 5) * 4).round().to(dtype)
        w, bias = ((rushlight.randn(*size) * 4).round().to(dtype) for size in ((6, 5), (6,)))
        if grad:
            x, w = x.requires_grad_(), w.requires_grad_()
        turned = x.transpose(0, 1)
        for view in (turned, turned.expand(2, 9, rows, 5).transpose(0, 1)):
            plain = view.contiguous().flatten(0, -2)
            for result, expected in (
                (view @ w.t(), plain @ w.t()),
                (linear(view, w), linear(plain, w)),
                (linear(view, w, bias), linear(plain, w, bias)),
            ):
                assert result.flatten(0, -2).equal(expected)
                if grad:
                    for t in (x, w):
                        totals = (y.abs().sum() for y in (result, expected))
                        grads = (rushlight.autograd.grad(y, t, retain_graph=True)[0] for y in totals)
                        rushlight.testing.assert_close(*grads)
