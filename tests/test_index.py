"""Indexing without torch at hand: views or copies, graphs, refused writes, threads that agree."""

import itertools
import random

import pytest

import rushlight as rl


def chain(t):
    names, node = [], t.grad_fn
    while node is not None:
        names.append(node.name().split("::")[-1])
        node = node.next_functions[0][0] if node.next_functions else None
    return names


def leaf():
    return rl.arange(24.0).reshape(2, 3, 4).requires_grad_(True)


@pytest.mark.parametrize(
    ("index", "nodes"),
    [
        (0, ["SelectBackward0"]),
        (slice(None), ["SliceBackward0"]),
        (..., ["AliasBackward0"]),
        (None, ["UnsqueezeBackward0"]),
        ((slice(None), slice(None)), ["AliasBackward0"]),
        ((0, slice(1, 2), None), ["UnsqueezeBackward0", "SliceBackward0", "SelectBackward0"]),
        ([0, 1], ["IndexBackward0"]),
        (True, ["IndexBackward0", "UnsqueezeBackward0"]),
        ((0, [0, 1]), ["IndexBackward0", "SelectBackward0"]),
    ],
)
def test_nodes_of_an_index(index, nodes):
    assert chain(leaf()[index]) == [*nodes, "AccumulateGrad"]


def test_basic_indices_give_views_and_advanced_ones_copies():
    x = rl.zeros(3, 4)
    x[1][2] = 1
    x[:, 0].fill_(2)
    x[rl.tensor([0])].fill_(9)
    assert x.tolist() == [[2, 0, 0, 0], [2, 0, 1, 0], [2, 0, 0, 0]]
    assert x[1, 1:]._base is x


def test_assignment_is_recorded():
    x = rl.ones(3, requires_grad=True)
    v = rl.tensor([5.0], requires_grad=True)
    y = x * 2
    y[1:2] = v
    y[rl.tensor([0])] = 7.0
    assert chain(y)[:2] == ["IndexPutBackward0", "CopySlices"]
    (y * y).sum().backward()
    assert x.grad.tolist() == [0, 0, 8]
    assert v.grad.tolist() == [10]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda x: x.__setitem__(rl.tensor([0, 9]), 1), IndexError),
        (lambda x: x.scatter_(0, rl.tensor([0, 9]), 1.0), RuntimeError),
        (lambda x: x.index_add_(0, rl.tensor([0, 9]), rl.ones(2)), IndexError),
        (lambda x: x.index_fill_(0, rl.tensor([0, 9]), 1), IndexError),
        (lambda x: x.put_(rl.tensor([0, 9]), rl.ones(2)), IndexError),
        (lambda x: x.scatter_reduce_(0, rl.tensor([0, -1]), rl.ones(2), "sum"), RuntimeError),
        (lambda x: x.masked_scatter_(rl.ones(4, dtype=rl.bool), rl.ones(3)), RuntimeError),
    ],
)
def test_a_refused_write_changes_nothing(change, error):
    x = rl.zeros(4)
    with pytest.raises(error):
        change(x)
    assert x.tolist() == [0, 0, 0, 0]
    assert x._version == 0


def test_embedding_error_names_index_and_table():
    with pytest.raises(IndexError, match=r"index out of range in self[\s\S]*index 7 .*3 rows"):
        rl.embedding(rl.zeros(3, 2), rl.tensor([1, 7]))


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.scatter_(0, rl.tensor([0, 1]), x[2:4]),
        lambda x: x.scatter_add_(0, rl.tensor([0, 1]), x[2:4]),
        lambda x: x.index_add_(0, rl.tensor([0, 1]), x[1:3]),
        lambda x: x.index_copy_(0, rl.tensor([0, 1]), x[2:4]),
        lambda x: x.index_put_((rl.tensor([0, 1]),), x[1:3]),
        lambda x: x.__setitem__(rl.tensor([0, 1]), x[1:3]),
        lambda x: x.put_(rl.tensor([1, 2]), x[:2]),
        lambda x: x[1:].copy_(x[:-1]),
        lambda x: x[1:].add_(x[:-1]),
        lambda x: rl.add(x[:-1], 1, out=x[1:]),
        lambda x: rl.cat([x[:3], x[3:]], out=x),
        lambda x: rl.gather(x, 0, rl.tensor([1, 2]), out=x[:2]),
    ],
)
def test_memory_that_is_read_is_not_written(write):
    x = rl.arange(6.0)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        write(x)
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", ["index_add", "scatter_add", "index_put"])
def test_sums_do_not_depend_on_threads(name):
    rl.manual_seed(0)
    n = 3000
    index, source = rl.randint(0, 50, (n,)), rl.randn(n, 64)

    def run():
        x = rl.zeros(50, 64)
        if name == "index_add":
            return x.index_add_(0, index, source)
        if name == "scatter_add":
            return x.scatter_add_(0, index.unsqueeze(1).expand(n, 64), source)
        return x.index_put_((index,), source, accumulate=True)

    before = rl.get_num_threads()
    try:
        rl.set_num_threads(1)
        alone = run()
        rl.set_num_threads(2)
        assert all((run() == alone).all() for _ in range(5))
    finally:
        rl.set_num_threads(before)


def test_half_sums_are_accumulated_in_float():
    h = rl.tensor([2048.0, 0], dtype=rl.float16)
    assert h.scatter_add(0, rl.zeros(4, dtype=rl.int64), rl.ones(4, dtype=rl.float16)).tolist() == [2052, 0]


def test_large_masks_agree_with_indices():
    rl.manual_seed(1)
    x = rl.randn(300, 700)
    mask = x > 0.3
    picked = x[mask]
    assert picked.shape == (mask.sum().item(),)
    assert (picked == x[mask.nonzero(as_tuple=True)]).all()
    assert (rl.zeros(300, 700).masked_scatter(mask, picked) == rl.where(mask, x, 0.0)).all()


def test_embedding_padding_and_scale():
    w = rl.randn(4, 2, dtype=rl.float64).requires_grad_(True)
    i = rl.tensor([1, 1, 3, 0])
    rl.embedding(w, i, padding_idx=3, scale_grad_by_freq=True).sum().backward()
    assert w.grad.tolist() == [[1, 1], [1, 1], [0, 0], [0, 0]]


def test_subclass_is_asked_first():
    class Loud(rl.Tensor):
        seen = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.seen.append(func.__name__)
            return NotImplemented

    with pytest.raises(TypeError):
        Loud([1.0])[0]
    assert Loud.seen == ["__getitem__"]


def test_deleting_is_refused():
    x = rl.zeros(2)
    with pytest.raises(TypeError, match="Tensor does not support deleting items"):
        del x[0]


def test_triangles_as_indices():
    assert rl.tril_indices(2, 3).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert rl.triu_indices(2, 3, 1, dtype=rl.int32).tolist() == [[0, 0, 1], [1, 2, 2]]
    x = rl.ones(4, 4).tril(-1)
    assert x.sum().item() == rl.tril_indices(4, 4, -1).shape[1]


def test_broadcast_shapes():
    assert rl.broadcast_shapes((2, 1), 3, (1,)) == (2, 3)
    with pytest.raises(RuntimeError, match="Attempting to broadcast a dimension of length 3"):
        rl.broadcast_shapes((2,), (3,))


def test_long_rows_are_shortened_before_they_are_read():
    w = rl.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])
    rows = rl.nn.functional.embedding(rl.tensor([0, 1]), w, max_norm=1.0)
    assert rl.allclose(rows, rl.tensor([[0.6, 0.8], [0.3, 0.4]]))
    assert w[2].tolist() == [6, 8]


def test_gradient_of_as_strided_scatter():
    x, part = rl.ones(2, 3, requires_grad=True), rl.ones(2, requires_grad=True)
    whole = x.as_strided_scatter(part, (2,), (2,))
    (whole * rl.arange(6.0).reshape(2, 3)).sum().backward()
    assert x.grad.tolist() == [[0, 1, 0], [3, 4, 5]]
    assert part.grad.tolist() == [0, 2]


def test_steps_that_are_never_taken_may_be_absurd():
    x = rl.arange(5.0)
    for step in (2**62, 2**63 - 1):
        assert x.unfold(0, 2, step).tolist() == [[0.0, 1.0]]
        assert (x.unfold(0, 2, step) * 2).tolist() == [[0.0, 2.0]]
        assert rl.slice_copy(x, 0, -4, None, step).tolist() == [1.0]
        assert x[::step].tolist() == [0.0]
    assert x.as_strided((1, 2), (2**62, 1)).exp().shape == (1, 2)
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        x.as_strided((2, 2), (1, 2), 2**63 - 1)


@pytest.mark.parametrize("value", [300, 1e10, float("nan"), 1 + 2j])
@pytest.mark.parametrize("mask", [[True, False], [False, False]])
def test_a_value_under_a_mask_must_fit(value, mask):
    x = rl.zeros(2, dtype=rl.int8)
    for single in (rl.tensor(value), rl.tensor([value])):
        with pytest.raises(RuntimeError, match="value cannot be converted to type int8_t without overflow"):
            x[rl.tensor(mask)] = single
    assert x.tolist() == [0, 0] and x._version == 0


@pytest.mark.parametrize("dtype", [rl.float16, rl.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(4096,), (4096, 3), (2, 4096, 3)], ids=str)
def test_halves_that_meet_at_one_element_are_summed_in_float(dtype, shape):
    rl.manual_seed(0)
    dim = shape.index(4096)
    x, index = rl.rand(shape).to(dtype), rl.arange(4096) % 3
    sizes = [3 if size == 4096 else size for size in shape]
    exact = rl.zeros(sizes, dtype=rl.float64).index_add(dim, index, x.double())
    for found in (
        rl.zeros(sizes, dtype=dtype).index_add(dim, index, x),
        rl.zeros(sizes, dtype=dtype).index_add_(dim, index, x),
    ):
        assert ((found.double() - exact) / exact).abs().max() <= rl.finfo(dtype).eps


def test_a_mean_of_many_halves_has_a_gradient():
    x = rl.full((100_000,), 100.0, dtype=rl.float16, requires_grad=True)
    rl.nn.functional.mse_loss(x, rl.zeros_like(x)).backward(rl.tensor(0.013, dtype=rl.float16))
    assert abs(x.grad[0].item() / (100 * 2e-5 * 0.013) - 1) < 1e-2


def test_a_list_that_contains_itself_is_no_index():
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="contains itself"):
        rl.ones(3, 3)[[0], endless]


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.bfloat16], ids=str)
@pytest.mark.parametrize("width", [1, 3, 4, 31, 32, 77])
def test_bags_of_rows_of_any_width(width, dtype):
    rl.manual_seed(0)
    table = rl.randn(50, width).to(dtype)
    index, starts = rl.randint(0, 50, (40,)), [0, 0, 7, 8, 30, 40]
    for mode in ("sum", "mean"):
        result = rl.nn.functional.embedding_bag(index, table, rl.tensor(starts[:-1]), mode=mode)
        for bag, (begin, end) in enumerate(itertools.pairwise(starts)):
            rows = table[index[begin:end]].double()
            exact = rows.sum(0) / (max(end - begin, 1) if mode == "mean" else 1)
            rl.testing.assert_close(
                result[bag], exact.to(dtype), rtol=1e-2 if dtype == rl.bfloat16 else 1e-5, atol=1e-5
            )


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex128"])
def test_rows_gathered_and_scattered(dtype):
    """Rows that lie together have loops of their own; every one of them against the definition."""
    dtype = getattr(rl, dtype)
    for rows, size, taken in [(1, 5, 3), (9, 4, 4), (40, 7, 16), (6, 300, 3001), (3000, 16, 17)]:
        whole = (rl.arange(rows * size) % 251).reshape(rows, size).to(dtype)
        index = rl.randint(0, size, (rows, taken))
        place = rl.arange(rows)[:, None] * size + index
        for table in (whole, whole.t().contiguous().t()):
            for chosen in (index, index[:1].expand(rows, taken)):
                where = place if chosen is index else rl.arange(rows)[:, None] * size + chosen
                expected = whole.flatten()[where]
                assert rl.equal(table.gather(1, chosen), expected)
                if chosen is not index:
                    assert rl.equal(table.index_select(1, chosen[0]), expected)
        source = (rl.arange(rows * taken) % 3).reshape(rows, taken).to(dtype)
        added = rl.zeros(rows * size, dtype=dtype).index_add(0, place.flatten(), source.flatten())
        assert rl.equal(rl.zeros_like(whole).scatter_add(1, index, source), added.view(rows, size))


@pytest.mark.parametrize("wrong", [-1, 5, 2**62, -(2**63)])
def test_an_index_out_of_range_among_rows_is_refused(wrong):
    for rows, taken in [(3, 4), (40, 16), (2, 70000)]:
        index = rl.zeros(rows, taken, dtype=rl.int64)
        index[rows - 1, taken - 2] = wrong
        table = rl.ones(rows, 5)
        with pytest.raises(RuntimeError, match=f"index {wrong} is out of bounds for dimension 1 with size 5"):
            table.gather(1, index)
        with pytest.raises(RuntimeError, match=f"index {wrong} is out of bounds for dimension 1 with size 5"):
            table.scatter_add_(1, index, rl.ones(rows, taken))
        assert rl.equal(table, rl.ones(rows, 5))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64", "float32"])
def test_isin_compares_looks_up_and_searches(dtype):
    rng = random.Random(5)
    ends = [(0, 100)] if dtype == "uint8" else [(0, 100), (-128, 127)]
    if dtype == "int64":
        ends += [(-(2**62), 2**62), (2**63 - 200, 2**63 - 1), (-(2**63), -(2**63) + 99)]
    for low, high in ends:
        for many in (3, 40):
            elements, known = ([rng.randint(low, high) for _ in range(n)] for n in (120, many))
            edges = [*elements, low, high, known[0], known[-1]]
            got = rl.isin(*(rl.tensor(numbers, dtype=getattr(rl, dtype)) for numbers in (edges, known)))
            assert got.tolist() == [number in known for number in edges]
            others = rl.isin(rl.tensor(edges, dtype=rl.int64), rl.tensor(known), invert=True)
            assert others.tolist() == [number not in known for number in edges]
    x = rl.arange(40).view(4, 10)
    assert rl.vmap(lambda row: rl.isin(row, rl.arange(20)))(x).sum() == 20
    assert rl.isin(rl.empty(0, dtype=rl.int64), rl.arange(20)).shape == (0,)


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.int64, rl.bfloat16, rl.bool])
def test_long_rows_of_indices_and_one_that_is_out_of_range(dtype):
    # Indices are looked at in parts of 256, as they are used where the result is new.
    rl.manual_seed(0)
    x, source = (rl.randint(0, 9, (3, 700)).to(dtype) for _ in range(2))
    index = rl.stack([rl.randperm(700) for _ in range(3)])
    expected = rl.stack([a[i] for a, i in zip(x, index, strict=True)])
    assert x.gather(1, index).equal(expected)
    back = rl.empty_like(x)
    for row, i, s in zip(back, index, source, strict=True):
        row[i] = s
    assert x.scatter(1, index, source).equal(back)
    assert x.clone().scatter_(1, index, source).equal(back)
    assert x.flatten().take(index - 2100).equal(x.flatten()[index])
    assert x.flatten().put(index[0] - 2100, source[0])[:700].equal(x[0].scatter(0, index[0], source[0]))
    for at, wrong in ((699, 700), (300, -1), (0, 1 << 40)):
        bad = index.clone()
        bad[2, at] = wrong
        before = x.clone()
        for name in ("gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "scatter_reduce"):
            given = [source] * (name != "gather") + ["amax"] * (name == "scatter_reduce")
            message = f"index {wrong} is out of bounds for dimension 1 with size 700"
            with pytest.raises(RuntimeError, match=message):
                getattr(x, name)(1, bad, *given)
        assert x.equal(before)


def test_largest_and_smallest_of_what_is_scattered_with_nan():
    rl.manual_seed(0)
    x, source, index = rl.randn(50), rl.randn(2000), rl.randint(0, 50, (2000,))
    source[[3, 999]] = float("nan")
    x[7] = float("nan")
    for kind, pick in (("amax", rl.max), ("amin", rl.min)):
        expected = rl.stack([pick(rl.cat([x[i : i + 1], source[index == i]])) for i in range(50)])
        rl.testing.assert_close(
            x.scatter_reduce(0, index, source, kind), expected, equal_nan=True, rtol=0, atol=0
        )


@pytest.mark.parametrize("right", [False, True])
def test_searches_in_step_with_each_other_find_what_one_alone_does(right):
    # Also in rows that are not sorted, or hold NaN: the same elements are looked at.
    random.seed(3)

    def found(row, value):
        low, high = 0, len(row)
        while low < high:
            middle = low + (high - low) // 2
            if not (row[middle] > value if right else row[middle] >= value):
                low = middle + 1
            else:
                high = middle
        return low

    for length in (*range(20), 31, 32, 33, 100):
        row = [random.choice([random.randint(-9, 9), float("nan")]) for _ in range(length)]
        for numbers in (sorted(random.randint(-9, 9) for _ in range(length)), row):
            values = [random.randint(-12, 12) for _ in range(29)] + [float("nan")]
            sequence, wanted = (rl.tensor(part, dtype=rl.float64) for part in (numbers, values))
            result = rl.searchsorted(sequence, wanted, right=right)
            assert result.tolist() == [found(numbers, value) for value in values]
            twice = rl.searchsorted(sequence.repeat(2, 1), wanted.repeat(2, 1), right=right)
            assert twice.tolist() == [result.tolist()] * 2
