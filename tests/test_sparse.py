"""Sparse tensors against the dense ones that they stand for, and their gradients against finite
differences."""

import copy
import io
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight as torch
from rushlight.autograd import gradcheck, gradgradcheck

INDICES = torch.tensor([[1, 0, 1, 0], [0, 2, 0, 1]])  # (1, 0) is there twice


def sample(dtype=torch.float64, grad=False):
    values = torch.tensor([3.0, -4.0, 5.0, 0.5], dtype=dtype)
    return torch.sparse_coo_tensor(INDICES, values, (2, 3)).requires_grad_(grad)


def dense(x):
    return x.to_dense() if x.is_sparse else x


FUNCTIONS = {
    "coalesce": lambda x: x.coalesce(),
    "clone": lambda x: x.clone(),
    "detach": lambda x: x.detach(),
    "to_float": lambda x: x.float(),
    "neg": lambda x: -x,
    "times": lambda x: x * 3,
    "over": lambda x: x / 4,
    "plus": lambda x: x + x * 2,
    "minus": lambda x: x.sub(x.coalesce(), alpha=3),
    "square": lambda x: x * x,
    "by_dense": lambda x: x * torch.arange(6.0, dtype=x.dtype).reshape(2, 3),
    "onto_dense": lambda x: torch.ones(2, 3, dtype=x.dtype) + x,
    "sin": lambda x: x.sin(),
    "power": lambda x: x**3,
    "sum": lambda x: x.sum(),
    "sum_rows": lambda x: x.sum(0),
    "sum_kept": lambda x: x.sum(1, keepdim=True),
    "transposed": lambda x: x.t(),
    "unsqueezed": lambda x: x.unsqueeze(1),
    "row": lambda x: x[1],
    "element": lambda x: x[1, 0],
    "chosen": lambda x: x.index_select(1, torch.tensor([0, 2, 0])),
    "together": lambda x: torch.cat([x, x], 1),
    "stacked": lambda x: torch.stack([x, x], 2),
    "product": lambda x: x @ torch.arange(12.0, dtype=x.dtype).reshape(3, 4),
    "other_product": lambda x: torch.arange(8.0, dtype=x.dtype).reshape(4, 2) @ x,
    "vector": lambda x: x @ torch.arange(3.0, dtype=x.dtype),
    "norm": lambda x: x.norm(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_the_dense_tensor(name):
    function, x = FUNCTIONS[name], sample()
    for given in (x, x.coalesce()):
        if name == "coalesce":
            result, wanted = function(given), given.to_dense()
        else:
            twin = given.to_dense()
            result = function(given)
            wanted = twin - 3 * twin if name == "minus" else function(twin)
        torch.testing.assert_close(dense(result), wanted)
        assert result.shape == wanted.shape and result.dtype == wanted.dtype


@pytest.mark.parametrize("name", ["to_dense", "values", "plus", "product", "masked", "built"])
def test_gradients(name):
    values = torch.tensor([3.0, -4.0, 5.0, 0.5], dtype=torch.float64, requires_grad=True)
    weights = torch.arange(6.0, dtype=torch.float64).reshape(2, 3) + 1

    def function(v):
        x = torch.sparse_coo_tensor(INDICES, v, (2, 3))
        if name == "values":
            return x.coalesce().values() ** 2
        if name == "plus":
            return ((x + x * 2).to_dense() * weights) ** 2
        if name == "product":
            return (x.to_dense() @ weights.t()) ** 2
        if name == "masked":
            return (x.coalesce() * weights).to_dense() ** 3
        return x.to_dense() ** 3

    assert gradcheck(function, (values,))
    assert gradgradcheck(function, (values,))


def test_dense_to_sparse_and_back_has_a_gradient():
    x = torch.tensor([[1.0, 0.0], [2.0, 3.0]], dtype=torch.float64, requires_grad=True)
    y = (x * 2).to_sparse()
    assert y.grad_fn.name() == "ToSparseBackward1" and y.is_coalesced()
    (y.to_dense() ** 2).sum().backward()
    torch.testing.assert_close(x.grad, 8 * x.detach())


class Rows(torch.autograd.Function):
    """Its gradient is sparse, or dense."""

    @staticmethod
    def forward(ctx, x, sparse, scale):
        ctx.sparse, ctx.scale = sparse, scale
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        if not ctx.sparse:
            return grad * ctx.scale, None, None
        made = torch.sparse_coo_tensor([[1, 0, 1]], torch.full((3, 2), ctx.scale), (2, 2))
        return made, None, None


@pytest.mark.parametrize("pattern", [(1, 1), (1, 0), (0, 1), (1, 0, 1), (0, 1, 1), (1, 1, 0)])
def test_sparse_gradients_are_summed_with_others(pattern):
    def run(inputs):
        return sum(
            Rows.apply(x, bool(p), k + 1.0) for k, (x, p) in enumerate(zip(inputs, pattern, strict=True))
        )

    parts = [
        torch.tensor([[1.0, 1.0], [2.0, 2.0]]) * (k + 1) if p else torch.full((2, 2), k + 1.0)
        for k, p in enumerate(pattern)
    ]
    x = torch.ones(2, 2, requires_grad=True)
    run([x] * len(pattern)).sum().backward()
    torch.testing.assert_close(dense(x.grad), sum(parts))
    assert x.grad.is_sparse == all(pattern)
    x.grad = None
    for k, p in enumerate(pattern):  # one after the other into .grad
        before = x.grad
        Rows.apply(x, bool(p), k + 1.0).sum().backward()
        assert x.grad is not before or not (before.is_sparse and not p)
    torch.testing.assert_close(dense(x.grad), sum(parts))
    assert x.grad.is_sparse == all(pattern)


def test_sparse_leaf_accumulates():
    x = sample(grad=True)
    for _ in range(2):
        (x.to_dense() ** 2).sum().backward()
    torch.testing.assert_close(x.grad.to_dense(), 4 * x.detach().to_dense())
    assert x.grad.is_sparse


def test_copies_and_pickles():
    x = sample()
    x.mark = "kept"
    saved = io.BytesIO()
    torch.save({"x": x}, saved)
    saved.seek(0)
    for copied in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), torch.load(saved)["x"]):
        assert copied.is_sparse and not copied.is_coalesced() and copied is not x
        torch.testing.assert_close(copied, x)
    assert copy.deepcopy(x).mark == "kept"
    assert copy.deepcopy(sample(grad=True)).requires_grad


def test_it_passes_for_a_tensor():
    x = sample()
    assert isinstance(x, torch.Tensor) and x.__class__ is torch.Tensor and x.layout is torch.sparse_coo
    for refused in (
        lambda: x.numpy(),
        lambda: x.storage(),
        lambda: x.data_ptr(),
        lambda: x.tolist(),
        lambda: x.exp(),
    ):
        with pytest.raises((TypeError, NotImplementedError, RuntimeError)):
            refused()


def test_an_index_outside_is_never_followed():
    x = torch.sparse_coo_tensor([[0, 1], [3, 0]], [1.0, 2.0], (2, 3))
    for use in (
        lambda: x.to_dense(),
        lambda: x.coalesce(),
        lambda: x @ torch.ones(3, 2),
        lambda: x + x,
        lambda: x * torch.ones(2, 3),
        lambda: torch.ones(2, 3).sparse_mask(x),
    ):
        with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
            use()
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        torch.sparse_coo_tensor([[0, 1], [3, 0]], [1.0, 2.0], (2, 3), check_invariants=True)


def test_modes_see_the_operations_and_no_class():
    from rushlight.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((str(func), types))
            return func(*args, **(kwargs or {}))

    x = sample(grad=True)
    with Log():
        y = (x * 2).coalesce()
    assert ("aten.mul.Tensor", ()) in seen and all(types == () for _, types in seen)
    torch.testing.assert_close(y.to_dense(), (2 * x).to_dense())


def test_printing():
    assert repr(sample(torch.float32).coalesce()) == (
        "tensor(indices=tensor([[0, 0, 1],\n"
        "                       [1, 2, 0]]),\n"
        "       values=tensor([ 0.5000, -4.0000,  8.0000]),\n"
        "       size=(2, 3), nnz=3, layout=torch.sparse_coo)"
    )


def test_sums_and_products_whose_gradients_stay_sparse():
    x = sample(grad=True)
    other = torch.arange(6.0, dtype=torch.float64).reshape(3, 2)
    entries = [[0, 0, 1], [1, 2, 0]]
    for function, wanted in (
        (lambda x: torch.sparse.sum(x), torch.ones(2, 3)),
        (lambda x: torch.sparse.mm(x, other).sum(), other.sum(1).expand(2, 3)),
        (
            lambda x: torch.sparse.addmm(torch.ones(2, 2), x, other, alpha=2).sum(),
            2 * other.sum(1).expand(2, 3),
        ),
        (
            lambda x: (torch.sparse.sum(x, 1).to_dense() ** 2).sum(),
            2 * x.to_dense().sum(1, True).expand(2, 3),
        ),
        (lambda x: torch.sparse.mm(x, x.detach().t()).to_dense().sum(), x.to_dense().sum(0).expand(2, 3)),
    ):
        (grad,) = torch.autograd.grad(function(x), x)
        assert grad.is_sparse and grad.is_coalesced() and grad.indices().tolist() == entries
        torch.testing.assert_close(grad.values(), wanted.detach().double()[tuple(grad.indices())])


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("function", [torch.sparse.softmax, torch.sparse.log_softmax])
def test_softmax_of_entries(function, dim):
    values = torch.tensor([3.0, -4.0, 5.0, 0.5], dtype=torch.float64, requires_grad=True)
    full = sample().to_dense()
    full = torch.where(full != 0, full, -torch.inf)
    name = "softmax" if function is torch.sparse.softmax else "log_softmax"
    wanted = getattr(torch, name)(full, dim)
    result = function(sample(), dim)
    torch.testing.assert_close(result.values(), wanted[tuple(result.indices())])
    assert gradcheck(lambda v: function(torch.sparse_coo_tensor(INDICES, v, (2, 3)), dim).values(), (values,))


def test_sizes_in_place():
    x = sample()
    assert x.sparse_resize_((3, 4), 2, 0).to_dense()[:2, :3].equal(sample().to_dense())
    with pytest.raises(RuntimeError, match="shrinking the size of sparse dimensions"):
        x.sparse_resize_((1, 1), 2, 0)
    assert x.sparse_resize_and_clear_((2,), 1, 0)._nnz() == 0
    x = sample()
    assert x.t_().shape == (3, 2) and x.to_dense().equal(sample().to_dense().t())
    for refused in ("resize_", "squeeze_", "unsqueeze_", "as_strided_", "set_"):
        with pytest.raises(NotImplementedError):
            getattr(x, refused)(0)


def test_written_into_given_tensors():
    x = sample()
    out = torch.zeros(0, layout=torch.sparse_coo, dtype=torch.float64)
    assert torch.add(x, x, out=out) is out
    torch.testing.assert_close(out.to_dense(), 2 * x.to_dense())


def test_checks_can_be_asked_for():
    with torch.sparse.check_sparse_tensor_invariants(), pytest.raises(RuntimeError, match="inconsistent"):
        torch.sparse_coo_tensor([[5]], [1.0], (2,))
    torch.sparse_coo_tensor([[5]], [1.0], (2,))


def test_a_gradient_keeps_its_layout():
    x = sample(grad=True)
    with pytest.raises(RuntimeError, match="has data of a different type"):
        x.grad = torch.ones(2, 3, dtype=torch.float64)
    x.register_hook(lambda g: g.to_dense())
    with pytest.raises(RuntimeError, match=r"was torch\.sparse\.DoubleTensor got torch\.DoubleTensor"):
        x.to_dense().sum().backward()


def test_a_mask_with_repetitions_counts_them():
    x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3).requires_grad_()
    assert gradcheck(lambda x: x.sparse_mask(sample()).to_dense(), (x,))
    assert gradgradcheck(lambda x: x.sparse_mask(sample()).to_dense() ** 2, (x,))


def test_products_without_a_derivative_say_so():
    x = sample(grad=True)
    for made in (
        torch.hspmm(x, torch.ones(3, 2, dtype=x.dtype)),
        torch.smm(x, torch.ones(3, 2, dtype=x.dtype)),
    ):
        with pytest.raises(RuntimeError, match=r"derivative for aten::\w+ is not implemented"):
            made.backward(made.detach())


def test_names_of_products():
    x, other = sample(), torch.arange(6.0, dtype=torch.float64).reshape(3, 2)
    wanted = x.to_dense() @ other
    for made in (
        torch.spmm(x, other),
        torch.dsmm(x, other),
        torch.hspmm(x, other),
        torch.hsmm(x, other),
        torch.smm(x, other),
    ):
        torch.testing.assert_close(dense(made), wanted)
    start = torch.eye(2, dtype=torch.float64).to_sparse()
    for function in (torch.sspaddmm, torch.saddmm):
        made = function(start, x, other, beta=2, alpha=3)
        torch.testing.assert_close(made.to_dense(), 2 * start.to_dense() + 3 * wanted)
    torch.testing.assert_close(torch._sparse_sum(x, 0).to_dense(), x.to_dense().sum(0))
    square = torch._sparse_sparse_matmul(x, x.t())
    torch.testing.assert_close(square.to_dense(), x.to_dense() @ x.to_dense().t())
    assert torch._coalesce(x).is_coalesced()
    with pytest.raises(RuntimeError, match="found negative index -1 for dim 0"):
        torch._validate_sparse_coo_tensor_args(torch.tensor([[-1]]), torch.ones(1), (2,))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("hardtanh", lambda x: torch.nn.functional.hardtanh(x)),
        ("clamp_max.Tensor", lambda x: torch.clamp_max(x, x)),
        ("log_sigmoid_forward", lambda x: torch.nn.functional.logsigmoid(x)),
        ("_cdist_forward", lambda x: torch.cdist(x, x)),
    ],
)
def test_what_is_shown_whole_is_refused_by_its_name(name, call):
    with pytest.raises(NotImplementedError, match=f"Could not run 'aten::{name}'"):
        call(torch.eye(3).to_sparse())


def test_an_output_that_a_function_does_not_take():
    x = torch.eye(3).to_sparse()
    with pytest.raises(TypeError, match=r"allclose\(\) got an unexpected keyword argument 'out'"):
        torch.allclose(x, x, out=x)
    assert torch.add(x, x, out=x) is x and x.to_dense().tolist() == (2 * torch.eye(3)).tolist()


def test_the_size_of_entries_that_are_there_is_not_taken_away():
    x = sample()
    for refused in (lambda: torch.resize_as_(x, torch.ones(3, 2)), lambda: torch.Tensor.resize_(x, 1)):
        with pytest.raises(NotImplementedError, match="aten::resize_"):
            refused()
    assert x.shape == (2, 3)


def test_sums_of_many_entries():
    torch.manual_seed(0)
    size = (30, 40)
    first, second = (
        torch.sparse_coo_tensor(
            torch.stack([torch.randint(0, n, (500,)) for n in size]), torch.randn(500), size
        )
        for _ in range(2)
    )
    wanted = first.to_dense() - 2 * second.to_dense()
    for a in (first, first.coalesce()):
        for b in (second, second.coalesce()):
            made = torch.sub(a, b, alpha=2)
            assert made.is_coalesced() == (a.is_coalesced() and b.is_coalesced())
            torch.testing.assert_close(made.to_dense(), wanted)
            torch.testing.assert_close((a * b).to_dense(), first.to_dense() * second.to_dense())


class NotANumber(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        return torch.sparse_coo_tensor([[0]], [float("nan")], (2,))


def test_anomaly_mode_looks_at_values():
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning), torch.autograd.detect_anomaly():
        loss = NotANumber.apply(x).sum()
        with pytest.raises(RuntimeError, match="'NotANumberBackward' returned nan values in its 0th output"):
            loss.backward()


def test_tangents_are_refused_as_in_torch():
    from rushlight.autograd import forward_ad

    with forward_ad.dual_level():
        values = forward_ad.make_dual(torch.ones(1), torch.ones(1))
        with pytest.raises(NotImplementedError, match="_sparse_coo_tensor_with_dims_and_tensors"):
            torch.sparse_coo_tensor([[0]], values, (2,))


def test_the_gradient_of_a_sparse_factor_needs_no_dense_product():
    size = 200_000  # whose square has no room
    x = torch.sparse_coo_tensor([[0, 5], [7, size - 1]], [1.0, 2.0], (size, size), requires_grad=True)
    dense = torch.arange(float(size))[:, None]
    torch.sparse.mm(x, dense).sum().backward()
    assert x.grad.coalesce().values().tolist() == [7.0, size - 1.0]


def test_choosing_rows_takes_the_room_of_what_is_chosen():
    size = 300_000  # entries times rows would have none
    at = torch.arange(size)
    x = torch.sparse_coo_tensor(torch.stack([at, at]), at.double(), (size, size))
    assert x.index_select(0, at.flip(0)).coalesce().values().tolist() == at.flip(0).tolist()


def test_nothing_is_written_into_a_copy():
    x = sample()
    for place in (0, (0, 1), slice(None), ...):
        with pytest.raises(TypeError, match="Cannot assign to a sparse tensor"):
            x[place] = 1.0
    square = torch.tensor([[0.0, 1.0], [0.0, 0.0]]).to_sparse()
    assert torch.Tensor.t_(square).to_dense().tolist() == [[0.0, 0.0], [1.0, 0.0]]
    with pytest.raises(NotImplementedError, match="aten::as_strided_"):
        torch.Tensor.unsqueeze_(square, 0)


def test_complex_factors_have_the_gradients_of_their_differences():
    values = torch.tensor([0.3 + 0.5j, -1.2, 0.7j], dtype=torch.complex128, requires_grad=True)
    whole = torch.randn(3, 3, dtype=torch.complex128, requires_grad=True)
    indices = torch.tensor([[0, 1, 1], [1, 0, 0]])

    def made(values):
        return torch.sparse_coo_tensor(indices, values, (3, 3))

    for function in (
        lambda v, w: torch.sparse.addmm(w, made(v), w * 2, beta=2 + 1j, alpha=0.5 - 2j),
        lambda v, w: torch.sparse.mm(made(v), made(v).t()).to_dense(),
        lambda v, w: torch.sparse.mm(made(v), made(v * 2).coalesce()).to_dense(),
    ):
        assert torch.autograd.gradcheck(function, (values, whole))
    part = values.detach().real.requires_grad_()
    assert torch.autograd.gradcheck(lambda v: made(v).to(torch.complex128).to_dense() * (1 + 2j), (part,))


def test_an_infinite_gradient_stays_where_it_is():
    x = torch.eye(2, dtype=torch.float64).to_sparse().requires_grad_()
    mask = torch.sparse_coo_tensor([[0, 0], [0, 0]], torch.ones(2, dtype=torch.float64), (2, 2))
    gradient = torch.sparse_coo_tensor([[0, 1], [0, 1]], [3.0, float("inf")], (2, 2), dtype=torch.float64)
    x.sparse_mask(mask).backward(gradient)
    assert x.grad.to_dense().tolist() == [[6, 0], [0, 0]]


def _peak_of(call):
    """How much more memory there was during a call than before it, in MB."""
    Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status")

    def read(name):
        return int(next(line for line in status.read_text().splitlines() if line.startswith(name)).split()[1])

    before = read("VmRSS")
    call()
    return (read("VmHWM") - before) / 1024


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer keeps freed memory")
def test_products_need_no_room_for_all_that_is_multiplied():
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("needs /proc")
    count, size = 400_000, 1000
    indices = torch.randint(0, size, (2, count))
    many = torch.sparse_coo_tensor(indices, torch.rand(count), (size, size)).requires_grad_()
    whole = torch.rand(size, 64, requires_grad=True)
    assert _peak_of(lambda: torch.sparse.mm(many, whole).sum().backward()) < 80  # all rows: 100 MB
    band = torch.sparse_coo_tensor(indices % 400, torch.ones(count), (size, size)).coalesce()
    assert _peak_of(lambda: torch.sparse.mm(band, band)) < 150  # all 5e7 products: more than 1 GB


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(2, layout=torch.sparse_coo, device="meta"),
        lambda: torch.sparse_coo_tensor(size=(2,), device="meta"),
        lambda: torch.sparse_coo_tensor([[0]], [1.0], (2,), device="meta"),
        lambda: torch.eye(2).to_sparse().to("meta"),
    ],
)
def test_there_are_none_on_meta(make):
    with pytest.raises(NotImplementedError):
        make()


def test_what_is_repeated_along_a_larger_factor():
    x = torch.tensor([[3.0, 4.0]]).to_sparse()
    whole = torch.arange(6.0).view(3, 2)
    assert torch.equal((x * whole).to_dense(), x.to_dense() * whole)
    assert torch.equal((whole.t() * x.t()).to_dense(), whole.t() * x.to_dense().t())


def test_dense_tensors_are_made_as_fast_as_without_sparse_ones(monkeypatch):
    x = torch.eye(2).to_sparse()
    asked = []
    for name in ("zeros", "zeros_like"):
        function = getattr(torch, name)
        monkeypatch.setattr(function, "while_watched", lambda *args, name=name: asked.append(name))
    torch.zeros(2), torch.zeros_like(torch.ones(2))
    assert not asked
    torch.zeros_like(x)
    assert asked == ["zeros_like"]


INTERRUPTED = """
import rushlight as torch
from rushlight.utils import _python_dispatch as dispatch

def interrupted():
    raise KeyboardInterrupt

start, dispatch._start = dispatch._start, interrupted
try:
    torch.eye(2).to_sparse()
except KeyboardInterrupt:
    dispatch._start = start
x = torch.eye(2).to_sparse()
assert (x + x).to_dense().tolist() == [[2, 0], [0, 2]]
"""


def test_the_first_one_is_interrupted_and_the_second_works():
    command = [sys.executable, "-P", "-c", INTERRUPTED]  # not in the source
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_onednns_layout_holds_ordinary_memory():
    x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    held = x.to_mkldnn()
    assert held.is_mkldnn and repr(held.layout) == "torch._mkldnn" and not x.is_mkldnn
    (held * held).to_dense().sum().backward()
    assert x.grad.tolist() == [2.0, -4.0, 6.0]
    with pytest.warns(UserWarning, match="double precision"):
        assert gradcheck(lambda x: x.to_mkldnn().to_dense(), (x,), atol=0.1, rtol=0.1)
    with pytest.raises(NotImplementedError, match="'MkldnnCPU' backend"):
        held.exp()


def test_a_mask_of_its_own_is_the_tensor_itself():
    x = torch.eye(3).to_sparse()
    assert x.sparse_mask(x) is x
    masked = torch.ones(3, 3).sparse_mask(x)
    assert masked._indices().data_ptr() != x._indices().data_ptr()  # nobody else's
    assert x.clone().sparse_mask(x)._indices().data_ptr() != x._indices().data_ptr()
    assert masked.is_coalesced() and torch.equal(masked.to_dense(), torch.eye(3))
    compressed = torch.eye(3).to_sparse_csr()
    assert compressed.sparse_mask(compressed) is compressed
    grad = torch.eye(3, requires_grad=True)
    leaf = grad.to_sparse()
    leaf.sparse_mask(leaf).to_dense().sum().backward()
    assert torch.equal(grad.grad, torch.eye(3))


def test_batched_gradients_of_compressed_layouts_are_refused_as_torch_does():
    x = torch.eye(2, dtype=torch.float64).to_sparse_csr().requires_grad_()
    with pytest.raises(RuntimeError, match="Sparse CSR tensors do not have is_contiguous") as refused:
        torch.autograd.gradcheck(lambda v: v.to_dense() * 2, (x,), masked=True, check_batched_grad=True)
    assert refused.type is RuntimeError


def test_any_part_of_them_can_be_the_first_that_is_imported():
    found = Path(torch.__file__).parent
    files = [file for part in ("_sparse", "_compressed") for file in (found / part).glob("[a-z]*.py")]
    names = [f"rushlight.{file.parent.name}.{file.stem}" for file in files]
    program = """
import sys, rushlight as torch
loaded = set(sys.modules)
for name in NAMES:
    for other in set(sys.modules) - loaded:
        del sys.modules[other]
    __import__(name)
"""
    command = [sys.executable, "-c", program.replace("NAMES", repr(names))]
    subprocess.run(command, check=True, cwd=found.parent)
    program = "import rushlight as torch; torch.sparse_coo_tensor([[0]], [1.0], (2,), check_invariants=True)"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=found.parent)
