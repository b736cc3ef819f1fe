"""Sparse tensors in the compressed layouts: against dense ones, finite differences, and bad indices."""

import copy
import io
import pickle

import pytest

import rushlight as torch
from rushlight.autograd import gradcheck, gradgradcheck

KINDS = "csr", "csc", "bsr", "bsc"
LAYOUTS = {kind: getattr(torch, f"sparse_{kind}") for kind in KINDS}
D = torch.float64


def dense(dtype=D):
    x = torch.tensor([[0, 2, 0, 1, 0, 0], [3, 0, 0, 0, 0, 0], [0, 0, 4, 5, 0, -1], [0, 6, 0, 0, 0, 2]])
    return x.to(dtype) * (1 + 2j) if dtype.is_complex else x.to(dtype)


def compress(x, kind, dense_dim=None):
    return x.to_sparse(
        layout=LAYOUTS[kind], blocksize=(2, 3) if kind[0] == "b" else None, dense_dim=dense_dim
    )


def sample(kind, dtype=D, grad=False):
    return compress(dense(dtype), kind).requires_grad_(grad)


DTYPES = [torch.float32, D, torch.float16, torch.bfloat16, torch.complex128, torch.int32, torch.bool]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_conversions_agree(kind, dtype):
    x = sample(kind, dtype)
    assert torch.equal(x.to_dense(), dense(dtype))
    assert torch.equal(x.to_sparse().to_dense(), dense(dtype))
    for other in KINDS:
        if kind[0] == "b" > other[0] or (kind[0] == "b" and other[0] == "c"):
            with pytest.raises(RuntimeError, match="expected SparseCsr or SparseCsc"):
                compress(x, other)
            continue
        for source in (x, x.to_sparse()):
            turned = compress(source, other)
            assert turned.layout is LAYOUTS[other] and torch.equal(turned.to_dense(), dense(dtype))
            torch.testing.assert_close(turned, compress(dense(dtype), other))
    assert torch.equal(x.t().to_dense(), dense(dtype).t())


@pytest.mark.parametrize("kind", KINDS)
def test_batches_and_dense_dimensions(kind):
    generator = torch.Generator().manual_seed(4)
    one = dense()
    many = torch.stack([one, one.roll(1, 0), -one.roll(2, 0)]).unsqueeze(0).expand(2, 3, 4, 6).contiguous()
    if kind[0] == "b":
        many = one.expand(2, 3, 4, 6).contiguous()
    batch = compress(many, kind)
    assert (batch.sparse_dim(), batch.dense_dim(), batch.dim()) == (2, 0, 4)
    for result, wanted in (
        (batch.to_dense(), many),
        (batch.to_sparse().to_dense(), many),
        (batch[1].to_dense(), many[1]),
        (batch[1, 2].to_dense(), many[1, 2]),
        (batch.transpose(-1, -2).to_dense(), many.mT),
        (batch.transpose(0, 1).to_dense(), many.transpose(0, 1)),
        ((batch * 2 + batch).to_dense(), 3 * many),
        ((batch * many).to_dense(), many * many),
        (batch.sum(), many.sum()),
    ):
        torch.testing.assert_close(result, wanted)
    rows = torch.randn(4, 6, 2, 3, generator=generator, dtype=D) * (one != 0)[..., None, None]
    x = compress(rows, kind, 2)
    assert (x.sparse_dim(), x.dense_dim()) == (2, 2)
    assert torch.equal(x.to_dense(), rows) and torch.equal(x.to_sparse().to_dense(), rows)
    assert torch.equal(x.transpose(0, 1).to_dense(), rows.transpose(0, 1))
    assert torch.equal(x.transpose(2, 3).to_dense(), rows.transpose(2, 3))
    assert torch.equal(x.select(3, 1).to_dense(), rows.select(3, 1))
    for given in (batch, x):
        given = given.detach().requires_grad_()
        assert gradcheck(lambda y: y.to_dense(), given, masked=True, fast_mode=True)
        assert gradcheck(lambda y: y.to_dense(masked_grad=False), given, masked=False, fast_mode=True)


PRODUCTS = {
    "matrix": lambda x, y: x @ y,
    "other_side": lambda x, y: (y.t() @ x.t()).t(),
    "vector": lambda x, y: x @ y[:, 0],
    "vector_first": lambda x, y: y[:, 0] @ x.t(),
    "addmm": lambda x, y: torch.addmm(y[:4], x, y, beta=2, alpha=3),
    "addmv": lambda x, y: torch.addmv(y[:4, 0], x, y[:, 1], beta=2, alpha=3),
    "linear": lambda x, y: torch.nn.functional.linear(y.t(), x, y[:4, 0]),
    "linear_rows": lambda x, y: torch.nn.functional.linear(y.t().reshape(2, 1, 6), x),
    "plus": lambda x, y: x + torch.cat([y, y, y], 1)[:4],
    "onto": lambda x, y: torch.cat([y, y, y], 1)[:4] + x,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", [D, torch.complex128])
def test_products_and_their_gradients(kind, name, dtype):
    function = PRODUCTS[name]
    torch.manual_seed(1)
    y = torch.randn(6, 2, dtype=dtype, requires_grad=True)
    x, twin = sample(kind, dtype, True), dense(dtype).requires_grad_()
    result, wanted = function(x, y), function(twin, y)
    torch.testing.assert_close(result, wanted)
    g = torch.randn_like(wanted)
    for found, expected in zip(
        torch.autograd.grad(result, (x, y), g), torch.autograd.grad(wanted, (twin, y), g), strict=True
    ):
        torch.testing.assert_close(found, expected)  # dense, as in torch
    assert gradcheck(function, (x, y), masked=False)


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_gradients_of_products(kind):
    torch.manual_seed(1)
    x, y, z = sample(kind, grad=True), torch.randn(6, 2, dtype=D), torch.randn(4, 2, dtype=D)
    y.requires_grad_(), z.requires_grad_()
    for function in (
        lambda x, y, z: torch.sparse.mm(x, y),
        lambda x, y, z: torch.sparse.mm(y.t(), x.t()),
        lambda x, y, z: torch.sparse.addmm(z, x, y, beta=2, alpha=3),
    ):
        result = function(x, y, z)
        (found,) = torch.autograd.grad(result.sum(), x)
        assert found.layout is x.layout and found._nnz() == x._nnz()
        assert gradcheck(lambda x, y, z, f=function: f(x, y, z), (x, y, z), masked=True)
        assert gradcheck(lambda x, y, z, f=function: f(x, y, z), (x, y, z), masked=True, fast_mode=True)
    # Of factors that are dense the second derivatives, too.
    fixed = x.detach()
    assert gradgradcheck(lambda y, z: (torch.sparse.addmm(z, fixed, y) ** 2).sum(), (y, z))
    assert gradgradcheck(lambda y: (fixed @ y).sin(), (y,))


def test_sampled_products():
    torch.manual_seed(1)
    a, b = torch.randn(4, 3, dtype=D), torch.randn(3, 6, dtype=D)
    x = sample("csr")
    result = torch.sparse.sampled_addmm(x, a, b, beta=2, alpha=3)
    wanted = (2 * dense() + 3 * a @ b) * (dense() != 0)
    torch.testing.assert_close(result.to_dense(), wanted)
    check = torch.sparse.as_sparse_gradcheck(gradcheck)
    inputs = x.requires_grad_(), a.requires_grad_(), b.requires_grad_()
    assert check(lambda x, a, b: torch.sparse.sampled_addmm(x, a, b, beta=2, alpha=3), inputs, masked=True)
    z = [t.detach().to(torch.complex128).mul(1 + 0.5j).requires_grad_() for t in (a, b)]
    c = sample("csr", torch.complex128, True)
    assert check(lambda x, a, b: torch.sparse.sampled_addmm(x, a, b, alpha=2j), (c, *z), masked=True)


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_other_reductions_of_a_product(reduce):
    torch.manual_seed(2)
    x, y = sample("csr"), torch.randn(6, 3, dtype=D)
    products = torch.where((dense() != 0)[..., None], dense()[..., None] * y, torch.nan)
    rows = [row[~row[:, 0].isnan()] for row in products]
    wanted = torch.stack([getattr(row, reduce)(0) for row in rows])
    torch.testing.assert_close(torch.sparse.mm(x, y, reduce), wanted)
    inputs = x.requires_grad_(), y.requires_grad_()
    assert gradcheck(lambda x, y: torch.sparse.mm(x, y, reduce), inputs, masked=True)
    empty = torch.zeros(4, 6, dtype=D).to_sparse_csr()
    assert torch.equal(torch.sparse.mm(empty, y, reduce), torch.zeros(4, 3, dtype=D))


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_two_compressed_operands(first, second):
    """Torch has some of these for CSR alone, and corrupts others."""
    other = dense().roll(1, 1)
    a, b = sample(first), compress(other, second)
    assert (a + b).layout is a.layout
    torch.testing.assert_close((a + b).to_dense(), dense() + other)
    torch.testing.assert_close((a * b).to_dense(), dense() * other)
    torch.testing.assert_close(torch.add(a, b, alpha=3).to_dense(), dense() + 3 * other)
    product = a @ b.t()
    assert product.layout is torch.sparse_csr
    torch.testing.assert_close(product.to_dense(), dense() @ other.t())
    a += b
    a *= 2
    torch.testing.assert_close(a.to_dense(), 2 * (dense() + other))
    leaf, twin = sample(first, grad=True), dense().requires_grad_()
    weights = torch.arange(24.0, dtype=D).reshape(4, 6)
    ((leaf + b).to_dense(masked_grad=False) * weights).sum().backward()
    ((twin + other) * weights).sum().backward()
    assert torch.equal(leaf.grad.to_dense(), twin.grad)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_conversions(kind):
    x = dense().requires_grad_()
    assert gradcheck(lambda x: compress(x, kind).to_dense(masked_grad=False), x)
    assert gradgradcheck(lambda x: compress(x, kind).to_dense(masked_grad=False) ** 2, x)
    y = sample(kind, grad=True)
    for options in ({}, {"fast_mode": True}):
        assert gradcheck(lambda y: y.to_dense(), y, masked=True, **options)
        assert gradcheck(lambda y: y.to_dense(masked_grad=False), y, masked=False, **options)
        assert gradcheck(lambda y: y.values(), y, masked=True, **options)
        assert gradcheck(lambda y: y.to_sparse().to_dense(), y, masked=True, **options)
        assert gradcheck(lambda y: y.sum() * 2, y, masked=False, **options)
    mask = sample(kind)
    assert gradcheck(lambda x: x.sparse_mask(mask).to_dense(), x)
    compressed, plain, values = sample(kind).parts

    def built(values):
        return torch.sparse_compressed_tensor(
            compressed, plain, values, (4, 6), layout=LAYOUTS[kind]
        ).to_dense()

    values = values.clone().requires_grad_()
    assert gradcheck(built, values) and gradgradcheck(lambda v: built(v) ** 3, values)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_add_up(kind):
    x = sample(kind, grad=True)
    (x.to_dense() * 2 + x.to_dense() * dense()).sum().backward()
    assert x.grad.layout is x.layout
    torch.testing.assert_close(
        x.grad.to_dense(), (2 + dense()) * (x.to_dense() != 0 if kind[0] == "c" else 1)
    )
    before = x.grad
    x.to_dense().sum().backward()
    assert x.grad is before
    (x @ torch.ones(6, 1, dtype=D)).sum().backward()  # dense: what is there becomes dense
    assert x.grad.layout is torch.strided
    with torch.no_grad():
        x.add_(x, alpha=-0.5)
    torch.testing.assert_close(x.detach().to_dense(), dense() * 0.5)


def test_a_write_to_the_values_of_a_saved_tensor_is_noticed():
    x, y = sample("csr"), torch.ones(6, 2, dtype=D, requires_grad=True)
    product = x @ y
    x.values().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


FUNCTIONS = "abs asinh atan ceil deg2rad erf expm1 floor frac log1p neg relu round sgn sign sin sinh tan tanh"


@pytest.mark.parametrize("kind", KINDS)
def test_functions_that_keep_zero(kind):
    for name in FUNCTIONS.split():
        x = sample(kind) * 0.1
        wanted = getattr(dense() * 0.1, name)()
        assert torch.equal(getattr(x, name)().to_dense(), wanted), name
        if name != "sgn":
            assert torch.equal(getattr(x, f"{name}_")().to_dense(), wanted), name
    for name in ("cos", "exp", "sigmoid", "reciprocal"):
        with pytest.raises(RuntimeError, match="unsupported tensor layout: Sparse"):
            getattr(sample(kind), name)()


@pytest.mark.parametrize("kind", KINDS)
def test_copies(kind):
    x = sample(kind, grad=True)
    for copied in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), _saved(x)):
        assert copied.requires_grad and copied.layout is x.layout
        torch.testing.assert_close(copied.detach(), x.detach())
    deep = copy.deepcopy(x)
    deep.detach().values().zero_()
    assert x.detach().values().any()
    parameter = torch.nn.Parameter(x.detach())
    assert isinstance(_saved(parameter), torch.nn.Parameter)
    y = x.detach().clone().copy_(x.detach() * 3)
    assert torch.equal(y.to_dense(), 3 * dense())
    assert torch.equal(torch.ones_like(y).to_dense(), y.fill_(1).to_dense())
    assert torch.zeros_like(y)._nnz() == 0 and not torch.zeros_like(y).to_dense().any()
    assert not y.zero_().to_dense().any()


def _saved(x):
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file)


def test_no_product_makes_a_factor_dense():
    """Twelve million million elements would not fit."""
    size, count = 3_500_000, 1000
    torch.manual_seed(0)
    rows, columns = torch.randint(size, (2, count))
    values = torch.randn(count)
    x = torch.sparse_coo_tensor(torch.stack([rows, columns]), values, (size, size)).to_sparse_csr()
    y = torch.randn(size, 1)
    wanted = torch.zeros(size, 1).index_add(0, rows, values[:, None] * y[columns])
    torch.testing.assert_close(x @ y, wanted)
    torch.testing.assert_close((y.t() @ x.t()).t(), wanted)
    assert (x @ x.t()).shape == (size, size)
    x.requires_grad_()
    torch.sparse.mm(x, y).sum().backward()
    assert x.grad._nnz() == x._nnz()
    assert torch.sparse.sampled_addmm(x.detach(), y, y.t())._nnz() == x._nnz()


BAD = [
    ([0, 1, 2, 3, 4], [0, 1, 2, 99], "0 <= col_indices < ncols"),
    ([0, 1, 2, 3, 4], [0, 1, 2, -1], "0 <= col_indices < ncols"),
    ([0, 1, 2, 3, 2**40], [0, 1, 2, 3], "-1. == nnz"),
    ([0, 9, 2, 3, 4], [0, 1, 2, 3], "0 <= crow_indices"),
    ([0, -5, 2, 3, 4], [0, 1, 2, 3], "0 <= crow_indices"),
    ([2, 2, 2, 3, 4], [0, 1, 2, 3], "0. == 0"),
]


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_csc])
@pytest.mark.parametrize("bad", range(len(BAD)))
@pytest.mark.parametrize("indices", [torch.int32, torch.int64])
def test_indices_that_lead_out_are_refused_where_they_are_used(layout, bad, indices):
    ends, plain, sentence = BAD[bad]
    if indices is torch.int32:
        ends = [min(end, 2**31 - 1) for end in ends]
    if layout is torch.sparse_csc:
        sentence = sentence.replace("crow", "ccol").replace("col_indices <", "row_indices <")
        sentence = sentence.replace("ncols", "nrows")
    parts = torch.tensor(ends, dtype=indices), torch.tensor(plain, dtype=indices), torch.ones(4, dtype=D)
    with pytest.raises(RuntimeError, match=sentence.replace("ccol_indices <", "row_indices <")):
        torch.sparse_compressed_tensor(*parts, (4, 4), layout=layout, check_invariants=True)
    with torch.sparse.check_sparse_tensor_invariants(), pytest.raises(RuntimeError):
        torch.sparse_compressed_tensor(*parts, (4, 4), layout=layout)
    x = torch.sparse_compressed_tensor(*parts, (4, 4), layout=layout)
    y = torch.ones(4, 4, dtype=D)
    for use in (
        lambda: x.to_dense(),
        lambda: x.to_sparse(),
        lambda: x.to_sparse_csr() if layout is torch.sparse_csc else x.to_sparse_csc(),
        lambda: x.to_sparse_bsr((2, 2)),
        lambda: x @ y,
        lambda: y @ x,
        lambda: x @ x,
        lambda: x @ y[0],
        lambda: x + y,
        lambda: x * y,
        lambda: y.sparse_mask(x),
        lambda: y.add_(x),
        lambda: x[1],
        lambda: torch.nn.functional.linear(y, x),
        lambda: torch.ops.aten.sparse_sampled_addmm(x, y, y),
        lambda: x.requires_grad_().values().sum().backward() or x.grad.to_dense(),
    ):
        with pytest.raises(RuntimeError):
            use()
    repr(x), x.clone(), x * 2, x.sin(), x.sum(), pickle.loads(pickle.dumps(x))


def test_parts_that_do_not_fit_are_refused_at_once():
    make = torch.sparse_csr_tensor
    for args in (
        ([0, 1], [0, 1], [1.0, 2.0], (2, 2)),
        ([0, 1, 2], [0, 1], [1.0], (2, 2)),
        ([0, 1, 2], [0, 1], [1.0, 2.0], (2,)),
        ([0, 1, 2], [0, 1], 1.0, (2, 2)),
        ([0.0, 1, 2], [0.0, 1], [1.0, 2.0], (2, 2)),
        ([0, 1, 2], [0, 1], [[1.0], [2.0]], (2, 2, 5)),
        ([[0, 1, 2]], [[0, 1]], [[1.0, 2.0]], (3, 2, 2)),
    ):
        with pytest.raises(RuntimeError):
            make(*args)
    with pytest.raises(RuntimeError, match="divisible"):
        torch.sparse_bsr_tensor([0, 1], [0], torch.ones(1, 2, 2), (2, 3))
    with pytest.raises(RuntimeError):
        torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (-2, 2))


def test_indices_in_any_order():
    """An unsorted line, or an index that is there twice, is what its sum says."""
    x = torch.sparse_csr_tensor([0, 3, 4], [2, 0, 2, 1], torch.tensor([1.0, 2, 3, 4], dtype=D), (2, 3))
    whole = torch.tensor([[2.0, 0, 4], [0, 4, 0]], dtype=D)
    y = torch.arange(6.0, dtype=D).reshape(3, 2)
    assert torch.equal(x.to_dense(), whole) and torch.equal(x @ y, whole @ y)
    assert torch.equal((x + x).to_dense(), 2 * whole) and torch.equal(
        (x @ x.t()).to_dense(), whole @ whole.t()
    )
    assert not x.to_sparse().is_coalesced() and torch.equal(x.to_sparse().to_dense(), whole)
    assert torch.equal(x.to_sparse_bsr((1, 3)).to_dense(), whole)


def test_inner_names():
    assert torch._convert_indices_from_csr_to_coo(
        torch.tensor([0, 2, 3]), torch.tensor([0, 1, 0])
    ).tolist() == [
        [0, 0, 1],
        [0, 1, 0],
    ]
    assert torch._convert_indices_from_coo_to_csr(torch.tensor([0, 0, 1]), 2).tolist() == [0, 2, 3]
    with pytest.raises(RuntimeError):
        torch._convert_indices_from_coo_to_csr(torch.tensor([7]), 2)
    x = torch.tensor([[2.0, 3], [0, 4]]).to_sparse_csr()
    assert torch._sparse_csr_sum(x, 1, True).values().tolist() == [5, 4]
    assert torch._sparse_csr_prod(x, 0, True).values().tolist() == [2, 12]
    ends, plain = torch.tensor([0, 1]), torch.tensor([0])
    for kind in KINDS:
        values = torch.ones(1, 1, 1) if kind[0] == "b" else torch.ones(1)
        getattr(torch, f"_validate_sparse_{kind}_tensor_args")(ends, plain, values, (1, 1))
        torch._validate_sparse_compressed_tensor_args(ends, plain, values, (1, 1), LAYOUTS[kind])
        with pytest.raises(RuntimeError):
            getattr(torch, f"_validate_sparse_{kind}_tensor_args")(ends, plain + 1, values, (1, 1))
    torch._validate_compressed_sparse_indices(True, ends, plain, 1, 1, 1)
    made = torch.ops.aten._sparse_csr_tensor_unsafe(ends, plain, torch.ones(1), (1, 1))
    assert made.is_sparse_csr


def test_training_with_a_compressed_weight():
    torch.manual_seed(0)
    weight = sample("csr").requires_grad_()
    x, wanted = torch.randn(32, 6, dtype=D), torch.randn(32, 4, dtype=D)
    losses = []
    for _ in range(5):
        loss = ((torch.sparse.mm(weight, x.t()).t() - wanted) ** 2).mean()
        losses.append(loss.item())
        (grad,) = torch.autograd.grad(loss, weight)
        weight = (weight.detach() + grad * -0.1).requires_grad_()
    assert losses == sorted(losses, reverse=True) and weight._nnz() == 8


def test_a_block_keeps_the_sign_of_its_zeros():
    x = torch.tensor([[-0.0, 1.0], [0.0, -0.0]]).to_sparse_bsr((2, 2))
    assert x.values().signbit().tolist() == [[[True, False], [False, True]]]


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_a_module_with_a_sparse_parameter_changes_its_dtype(layout):
    module = torch.nn.Module()
    module.weight = weight = torch.nn.Parameter(torch.eye(3).to_sparse(layout=layout))
    module.double()
    assert module.weight is weight and weight.dtype == D and weight.requires_grad
    torch.sparse.mm(weight, torch.ones(3, 1, dtype=D)).sum().backward()
    assert weight.grad.dtype == D
    x = torch.eye(3).to_sparse(layout=layout)
    x.data = torch.ones(2, 5, dtype=D).to_sparse(layout=layout)
    assert x.shape == (2, 5) and torch.equal(x.to_dense(), torch.ones(2, 5, dtype=D))


def test_a_sum_in_place_keeps_its_dtype():
    with pytest.raises(RuntimeError, match="Can't convert result type Float to output Int in add operation"):
        torch.ones(2, 2, dtype=torch.int32).add_(torch.eye(2).to_sparse_csr())
    x = torch.eye(2, dtype=torch.int32).to_sparse_csr()
    with pytest.raises(RuntimeError):
        x.add_(torch.eye(2).to_sparse_csr())
    assert torch.equal(x.to_dense(), torch.eye(2, dtype=torch.int32))


def test_a_loader_says_that_it_makes_no_batches_of_them():
    with pytest.raises(RuntimeError, match="Batches of sparse tensors are not currently supported"):
        torch.utils.data.default_collate([sample("csr")] * 2)


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_products_of_two_are_differentiated(kind):
    check = torch.sparse.as_sparse_gradcheck(gradcheck)
    x, y = sample(kind, grad=True), compress(dense().t().contiguous(), kind).requires_grad_()
    assert check(lambda x, y: x @ y, (x, y), masked=False)
    assert check(lambda x, y: x + y.t() * 2, (x, y), masked=False)
    assert check(lambda x, y: x * y.t(), (x, y), masked=False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fill", ["zero_", "normal_", "fill_"])
def test_what_is_filled_has_no_gradient(kind, fill):
    x = sample(kind, grad=True)
    written = x.clone()
    before = written._version
    getattr(written, fill)(*([3.0] if fill == "fill_" else []))
    assert written._version > before
    assert written._nnz() == (0 if fill == "zero_" else x._nnz())
    (written.to_dense() * torch.arange(24.0, dtype=D).view(4, 6)).sum().backward()
    assert not x.grad.to_dense().any()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        getattr(x, fill)(*([3.0] if fill == "fill_" else []))


def test_reductions_go_by_both_names():
    x, y = sample("csr"), torch.randn(6, 2, dtype=D)
    assert torch.equal(torch.sparse.mm(x, y, "max"), torch.sparse.mm(x, y, "amax"))
    data, lengths = torch.tensor([1.0, 3.0, 2.0]), torch.tensor([2, 1])
    assert torch.segment_reduce(data, "amax", lengths=lengths).tolist() == [3, 2]
    assert torch._segment_reduce(data, "amin", lengths=lengths).tolist() == [1, 2]


def test_lists_of_compressed_tensors():
    xs = [sample(kind) for kind in KINDS]
    torch._foreach_mul_(xs, 2)
    torch._foreach_add_(xs, [sample(kind) for kind in KINDS], alpha=3)
    for x in xs:
        assert torch.equal(x.to_dense(), 5 * dense())


@pytest.mark.parametrize("derive", ["mul", "abs", "add", "mask", "cast", "masked", "gradient"])
def test_what_is_computed_has_indices_of_its_own(derive):
    """copy_ writes to indices, too: those of what the tensor was computed from stay as they are."""
    x = sample("csr")
    result = {
        "mul": lambda: x * 2,
        "abs": lambda: x.abs(),
        "add": lambda: x + x,
        "mask": lambda: dense().sparse_mask(x),
        "cast": lambda: x.to(torch.complex128),
        "masked": lambda: x.sparse_mask(sample("csr")),
        "gradient": lambda: torch.autograd.grad(x.requires_grad_().values().sum(), x)[0],
    }[derive]()
    other = compress(dense().roll(1, 1).contiguous(), "csr")
    assert other._nnz() == result._nnz()
    result.copy_(other)
    assert torch.equal(result.to_dense().real.to(D), other.to_dense())
    assert torch.equal(x.detach().to_dense(), dense())
    shown = x.detach()
    shown.copy_(other)  # which is x itself
    assert torch.equal(x.detach().to_dense(), other.to_dense())


@pytest.mark.parametrize("kind", KINDS)
def test_a_gradient_is_added_to_that_of_the_values(kind):
    x = sample(kind, grad=True)
    for _ in range(2):
        x.values().sum().backward()
    x.t().values().sum().backward()
    assert torch.equal(x.grad.values(), torch.full_like(x.detach().values(), 3.0))
