"""Calls with a plain `out=`: what they write, and what they leave alone.

Which those are say the descriptions with `out` in rushlight/ops/_direct.py; the comparison of refusals with
torch is in tests/torch/.
"""

import contextlib
import gc
import inspect
import random
import re
import threading

import pytest

import rushlight as torch
from rushlight.ops._direct import OPERATIONS

SHAPE = (3, 4)


def filled(*shape, dtype=torch.float32):
    numbers = torch.arange(1, 1 + torch.empty(shape).numel()).reshape(shape)
    if dtype == torch.bool:
        return numbers > 3
    return numbers.to(dtype) / 7 if dtype.is_floating_point else numbers.to(dtype)


def operands(name):
    """Arguments of a call without keywords."""
    a, b, c = filled(*SHAPE), filled(*SHAPE).flip(0).contiguous() + 0.5, filled(*SHAPE) - 1
    if name in ("bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm", "bitwise_left_shift",
                "bitwise_right_shift", "bitwise_not"):  # fmt: skip
        a, b = filled(*SHAPE, dtype=torch.int64), filled(*SHAPE, dtype=torch.int64) % 5 + 1
    if name in ("asin", "acos", "atanh", "erfinv"):
        a = a / 10
    if name == "acosh":
        a = a + 1
    matrices = {
        "mm": (filled(3, 4), filled(4, 2)),
        "bmm": (filled(2, 3, 4), filled(2, 4, 2)),
        "mv": (filled(3, 4), filled(4)),
        "dot": (filled(4), filled(4)),
        "matmul": (filled(2, 3, 4), filled(4, 2)),
        "addmm": (filled(3, 2), filled(3, 4), filled(4, 2)),
        "addmv": (filled(3), filled(3, 4), filled(4)),
        "addbmm": (filled(3, 2), filled(2, 3, 4), filled(2, 4, 2)),
        "baddbmm": (filled(2, 3, 2), filled(2, 3, 4), filled(2, 4, 2)),
    }
    if name in matrices:
        return matrices[name]
    if name in ("cat", "stack"):
        return ([a, b, a], 1)
    if name == "where":
        return filled(*SHAPE, dtype=torch.bool), a, b
    if name in ("addcmul", "addcdiv", "lerp", "clamp"):
        return a, c, b
    if name in ("sum", "mean", "amax", "amin", "prod", "any", "all", "argmax", "argmin", "cumsum", "cumprod",
                "max", "min"):  # fmt: skip
        return a, 1
    one = len(inspect.signature(getattr(torch, name)).parameters) == 2 or name == "round"
    return (a,) if one else (a, b)


ALIASES = ("clip", "concat", "concatenate")
OTHERS = ("sort", "topk", "kthvalue", "median")
WRITING = sorted(
    name
    for name, description in OPERATIONS.items()
    if re.search(r" out\b", description) and name not in ALIASES + OTHERS
)


def empty_for(result):
    return tuple(map(empty_for, result)) if isinstance(result, tuple) else torch.zeros_like(result)


@pytest.mark.parametrize("name", WRITING)
def test_out_is_written_once_and_returned(name):
    function, args = getattr(torch, name), operands(name)
    expected = function(*args)
    out = empty_for(expected)
    result = function(*args, out=out)
    if isinstance(expected, tuple):
        assert type(result) is getattr(torch.return_types, f"{name}_out")
        pairs = list(zip(expected, out, result, strict=True))
    else:
        pairs = [(expected, out, result)]
    for value, place, returned in pairs:
        assert returned is place
        assert torch.equal(value, place)
        assert place._version == 1 and not place.requires_grad


@pytest.mark.parametrize("name", WRITING)
def test_out_may_be_part_of_a_tensor(name):
    function, args = getattr(torch, name), operands(name)
    expected = function(*args)
    expected = expected if isinstance(expected, torch.Tensor) else None
    if expected is None:
        return
    whole = torch.stack([torch.zeros_like(expected)] * 3)
    assert function(*args, out=whole[1])._base is whole
    assert torch.equal(whole[1], expected)
    assert not whole[0].any() and not whole[2].any()
    assert whole._version == 1


@pytest.mark.parametrize("name", WRITING)
def test_out_of_other_sizes_strides_and_dtypes(name):
    function, args = getattr(torch, name), operands(name)
    expected = function(*args)
    if not isinstance(expected, torch.Tensor) or not expected.dim():
        return
    resized = torch.empty(0, dtype=expected.dtype)
    assert function(*args, out=resized) is resized and torch.equal(resized, expected)
    turned = torch.zeros(expected.shape[::-1], dtype=expected.dtype).permute(*reversed(range(expected.dim())))
    assert function(*args, out=turned) is turned and torch.equal(turned, expected)
    many = torch.zeros(1, dtype=expected.dtype).expand(expected.shape)
    with pytest.raises(RuntimeError, match="single memory location"):
        function(*args, out=many)
    assert not many.any()


@pytest.mark.parametrize("name", sorted({*WRITING, *ALIASES, *OTHERS}))
def test_out_is_a_parameter_of_the_function(name):
    assert "out" in inspect.signature(getattr(torch, name).__wrapped__).parameters
    assert len(re.findall(r" out\b", OPERATIONS[name])) <= OPERATIONS[name].count("->")


def test_gradients_are_refused_and_nothing_is_written():
    leaf, out = torch.ones(2, requires_grad=True), torch.zeros(2)
    base = torch.zeros(2, 2)
    view = base[0]
    base.mul_(torch.ones((), requires_grad=True))  # by which the view requires grad, too
    calls = (
        lambda **k: torch.add(leaf, 1, **k),
        lambda **k: torch.exp(leaf, **k),
        lambda **k: torch.sum(leaf, 0, **k),
        lambda **k: torch.cat([leaf, leaf], **k),
    )
    for function in calls:
        with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
            function(out=out)
    for wanted in (leaf, view):
        with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
            torch.add(out, 1, out=wanted)
    assert not out.any() and out._version == 0
    with torch.no_grad():
        assert torch.add(leaf, 1, out=out).tolist() == [2, 2]
        assert torch.add(leaf, 1, out=leaf) is leaf
    assert leaf.tolist() == [2, 2] and leaf._version == 1 and leaf.requires_grad


def test_results_over_their_operands():
    a, b = filled(4, 4), filled(4, 4) + 1
    expected = a + b
    assert torch.equal(torch.add(a, b, out=a), expected)
    flat = torch.arange(8.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.exp(flat[:6], out=flat[2:])
    assert flat.tolist() == list(range(8))
    square = filled(3, 3)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.add(square.t(), 1, out=square)
    product = square @ square
    assert torch.equal(torch.mm(square, square, out=square), product)  # through a copy
    row = filled(4)
    halves = torch.arange(8.0)
    torch.sum(halves.view(2, 4), 0, out=halves[:4])
    assert halves.tolist() == [4, 6, 8, 10, 4, 5, 6, 7]
    torch.mul(row, row, out=row)
    assert torch.equal(row, filled(4) ** 2)


def test_foreign_memory_that_two_tensors_share():
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(10.0)
    a, b = torch.from_numpy(array[:9]), torch.from_numpy(array[1:])  # of which no storage knows the other
    expected = [x * 2 for x in range(9)]
    assert torch.mul(a, 2.0, out=b).tolist() == expected


def test_the_line_that_wrote_is_named():
    x = torch.ones(3, requires_grad=True)
    kept = torch.ones(3)
    y = (x * kept).sum()
    torch.mul(torch.ones(3), 2.0, out=kept)  # this line wrote
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
        y.backward()
    assert "this line wrote" in str(caught.value)


def test_dtypes_are_cast_or_refused():
    a, double, whole = torch.ones(3), torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.int64)
    assert torch.add(a, a, out=double).tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.add(a, a, out=whole)
    with pytest.raises(RuntimeError, match="to have dtype"):
        torch.mm(torch.ones(3, 3), torch.ones(3, 3), out=torch.zeros(3, 3, dtype=torch.float64))
    with pytest.raises(RuntimeError, match=r"[Ff]ound dtype"):
        torch.floor(a, out=double)
    assert torch.sum(torch.ones(2, 3, dtype=torch.int32), 0, out=whole).tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.floor_divide(whole, 0, out=whole)
    assert whole.tolist() == [2, 2, 2] and whole._version == 1


def test_whole_sums_take_no_out():
    with pytest.raises(TypeError, match="invalid combination"):
        torch.sum(torch.ones(3), out=torch.zeros(()))


def test_tuples_of_outputs():
    x = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
    values, indices = torch.zeros(2), torch.zeros(2, dtype=torch.int64)
    result = torch.max(x, dim=1, out=(values, indices))
    assert result.values is values and result.indices is indices
    assert values.tolist() == [5, 7] and indices.tolist() == [1, 0] and values._version == 1
    with pytest.raises(TypeError, match="expected tuple of 2 elements"):
        torch.max(x, 1, out=(values,))
    with pytest.raises(RuntimeError, match="to have dtype"):
        torch.max(x, 1, out=(values, torch.zeros(2)))
    both = torch.zeros(2, dtype=torch.int64)
    assert torch.min(x.long(), 1, out=(both, both)).values is both  # the indices come last
    assert both.tolist() == [0, 1]


def test_keywords_record_what_positions_do():
    x, y = (torch.full((3,), value, requires_grad=True) for value in (2.0, 3.0))
    for made, name, gradients in (
        (torch.add(x, y, alpha=2), "AddBackward0", (1, 2)),
        (x.sub(y, alpha=2.5), "SubBackward0", (1, -2.5)),
        (torch.add(x, y, alpha=1), "AddBackward0", (1, 1)),
        (torch.addcmul(x, x, y, value=2), "AddcmulBackward0", (7, 4)),
    ):
        assert made.grad_fn.name() == name
        assert [g.tolist() for g in torch.autograd.grad(made.sum(), (x, y))] == [[g] * 3 for g in gradients]
    assert torch.clamp(x, min=0).grad_fn.name() == torch.clamp(x, 0).grad_fn.name()
    written = (x * 1).add_(y, alpha=2)
    assert (
        written.grad_fn.name() == "AddBackward0" and written.tolist() == [8, 8, 8] and written._version == 1
    )
    assert x.view(1, 3).max(dim=1, keepdim=True).indices.tolist() == [[0]]


def test_wrong_alphas_are_refused():
    whole, flags = torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.bool)
    with pytest.raises(RuntimeError, match="must not be a floating point number"):
        torch.add(whole, whole, alpha=2.5)
    with pytest.raises(RuntimeError, match="must not be a floating point number"):
        whole.add_(whole, alpha=2.5)
    with pytest.raises(RuntimeError, match="Boolean alpha"):
        torch.add(whole, whole, alpha=True)
    with pytest.raises(RuntimeError, match="Subtraction, the `-` operator, with a bool tensor"):
        torch.sub(whole, flags, alpha=2)
    assert whole.tolist() == [1, 1] and whole._version == 0


def test_no_memory_is_taken_for_a_result_that_has_some():
    a, b, out = torch.ones(1_000_000), torch.ones(1_000_000), torch.zeros(1_000_000)
    condition, matrix = a > 0, torch.ones(1000, 1000)
    calls = [
        lambda: torch.add(a, b, out=out),
        lambda: torch.exp(a, out=out),
        lambda: torch.where(condition, a, b, out=out),
        lambda: torch.clamp(a, 0, 1, out=out),
        lambda: torch.add(a, b, alpha=2, out=out),
        lambda: torch.add(matrix, matrix[0], out=out.view(1000, 1000)),
        lambda: torch.cat([a[:500_000], b[500_000:]], out=out),
        lambda: torch.mm(matrix[:, :8], matrix[:8], out=out.view(1000, 1000)),
    ]
    for call in calls:
        call()
    for call in calls:
        requested = torch._C.memory_stats()["allocated_bytes"]
        torch._C.reset_peak_memory_stats()
        call()
        assert torch._C.memory_stats()["peak_bytes"] - requested < 1_000_000


def test_who_looks_on_sees_the_call():
    from rushlight.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Listing(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    a, out = torch.ones(3), torch.zeros(3)
    torch.add(a, a, out=out)
    with Listing():
        torch.add(a, a, out=out)
        torch.add(a, a, alpha=2)
        a.add_(a, alpha=2)
    assert seen == ["aten.add.out", "aten.add.Tensor", "aten.add_.Tensor"]
    with torch.autograd.profiler.profile() as profile:
        torch.mul(a, a, out=out)
    assert "aten::mul" in [event.name for event in profile.function_events]


class Wrapped(torch.Tensor):
    pass


def test_subclasses_keep_their_class():
    a = torch.ones(3).as_subclass(Wrapped)
    assert type(torch.add(a, a, alpha=2)) is Wrapped
    out = torch.zeros(3)
    torch.add(a, a, out=out)
    assert out.tolist() == [2, 2, 2]


def test_inference_and_lazy_tensors():
    with torch.inference_mode():
        made = torch.ones(2)
        assert torch.add(made, 1, out=made).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        torch.add(torch.ones(2), 1, out=made)
    out = torch.zeros(2)
    assert torch.add(made, 1, out=out).tolist() == [3, 3] and out._version == 1
    z = torch.tensor([1 + 2j, 3 - 1j])
    assert torch.mul(z.conj(), 2, out=torch.zeros(2, dtype=z.dtype)).tolist() == [2 - 4j, 6 + 2j]
    turned = torch.zeros(2, dtype=z.dtype)
    torch.mul(z, 2, out=turned.conj())
    assert turned.tolist() == [2 - 4j, 6 + 2j]


def test_tangents_are_refused():
    import rushlight.autograd.forward_ad as forward_ad

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(2), torch.ones(2))
        with pytest.raises(NotImplementedError, match="forward AD"):
            torch.exp(dual, out=torch.zeros(2))
        tangent = forward_ad.unpack_dual(torch.add(dual, dual, alpha=2)).tangent
        assert tangent.tolist() == [3, 3]


def test_autocast_leaves_out_alone():
    a, out = filled(3, 3), torch.zeros(3, 3)
    with torch.autocast("cpu"):
        assert torch.mm(a, a, out=out).dtype == torch.float32
    assert torch.equal(out, a @ a)


def test_lists_that_change_and_tensors_that_shrink_meanwhile():
    """Other threads take away what is read and written: no memory is touched that is not there."""
    stop = threading.Event()
    tensors, out, target = (
        [torch.ones(300, 300) for _ in range(4)],
        torch.zeros(1200, 300),
        torch.zeros(300, 300),
    )

    def change():
        choose = random.Random(0)
        while not stop.is_set():
            at = choose.randrange(4)
            tensors[at] = torch.ones(300, 300) if choose.random() < 0.5 else torch.ones(2, 300)
            target.resize_(300, 300) if choose.random() < 0.5 else target.resize_(3, 300)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(200):
            for call in (
                lambda: torch.cat(tensors, out=out),
                lambda: torch.exp(tensors[0], out=target),
                lambda: torch.mm(tensors[0], tensors[1], out=target),
            ):
                # Of sizes that do not fit, of outputs that are resized.
                with contextlib.suppress(RuntimeError, UserWarning):
                    call()
    finally:
        stop.set()
        thread.join()
    gc.collect()


def test_empty_outputs_grow():
    a = filled(3, 4)
    out = torch.empty(0)
    address = out.untyped_storage()
    assert torch.add(a, a, out=out) is out and torch.equal(out, a + a)
    assert out._version == 1 and out.untyped_storage().nbytes() == 48 and address.nbytes() == 48
    whole = torch.zeros(8)
    part = whole[:0]
    torch.exp(a[0], out=part)  # grows over what is beside it, as in torch
    assert torch.equal(whole[:4], a[0].exp()) and not whole[4:].any()
    assert torch.mul(a.t(), 2, out=torch.empty(0)).stride() == (1, 4)
    kept = torch.empty(0, dtype=torch.float64)
    assert torch.sum(a, 1, out=torch.empty(0)).shape == (3,) and torch.add(a, a, out=kept).dtype == kept.dtype


def test_a_name_that_is_put_together_counts():
    leaf, x = torch.ones(2, requires_grad=True), torch.ones(2)
    for name in ("out", "".join(["o", "ut"]), "outs"[:3]):
        with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
            torch.add(x, x, **{name: leaf})
        with pytest.raises(RuntimeError, match="to a single memory location"):
            torch.add(x, x, **{name: torch.ones(1).expand(2)})
        out = torch.zeros(2)
        assert torch.add(x, x, **{name: out}) is out and out.tolist() == [2, 2]


def test_classes_that_are_asked_are_not_in_the_way():
    torch.eye(2).to_sparse()  # from now on sparse tensors are asked about every operation
    test_no_memory_is_taken_for_a_result_that_has_some()
    values, indices = torch.zeros(2), torch.zeros(2, dtype=torch.int64)
    torch.max(torch.tensor([[1.0, 2.0], [4.0, 3.0]]), 1, out=(values, indices))
    assert (values.tolist(), indices.tolist()) == ([2, 4], [1, 0])
