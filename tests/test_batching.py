"""Every operation of the table under `vmap`, without torch: what it makes of a batch is what a loop makes of
the examples; also in place, nested, of the examples' gradients and tangents, and of gradients through a
batch."""

import itertools
import re
from functools import partial

import pytest
from batches import (
    REFUSALS,
    at_once,
    in_place,
    looped,
    make_call,
    packed,
    pull_of,
    pulled,
    pulled_for_good,
    pushed,
    ramp,
    unpacked,
)
from samples import OPS
from sampling import Input, dtype_names
from test_ops import explain, same

import rushlight
from rushlight.func._batching.table import RULES

pytestmark = pytest.mark.filterwarnings("ignore")

_DYNAMIC = "vmap: We do not support batching operators that can"
_UNBATCHED = "is not possible because there exists a Tensor `other` in extra_args that has more elements"
# What vmap refuses though a loop takes it, and with which words.
REFUSED = {
    # Its result would be of another size in every example.
    **dict.fromkeys(("nonzero", "where", "unique", "unique_consecutive", "index_put"), _DYNAMIC),
    "Tensor.__getitem__": _DYNAMIC,
    "masked_select": "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot",
    "nn.functional.one_hot": "When vmap-ing torch.nn.functional.one_hot, please provide an explicit",
    # It writes what differs among the examples where they are all the same.
    **dict.fromkeys(("Tensor.fill_", "Tensor.copy_", "Tensor.put_"), _UNBATCHED),
    "Tensor.__setitem__": (_UNBATCHED, _DYNAMIC),
    "nn.functional.batch_norm": "Batch norm got a batched tensor as input while the running_mean or",
}
_LACKS = re.compile(r"(The function '.*' is|(the )?derivative for .* is) not|Trying to use forward AD with")
# What reads the memory of its argument as it lies: examples along the last dimension are no such memory.
_AS_IT_LIES = (
    "as_strided",
    "as_strided_copy",
    "as_strided_scatter",
    "view_as_complex",
    "view_as_complex_copy",
)


def ops(keep=lambda op: True):
    return pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS.values() if keep(op)])


def calls(op, dtype, scale=1.0):
    """The samples as calls for several examples, which the operation takes one by one."""
    for sample in op.for_dtype(dtype):
        for turn in (True, False):
            call = make_call(rushlight, op, sample, dtype, turn, scale)
            try:
                results = call.columns and looped(call, call.function, call.every())
            except REFUSALS:
                continue
            if results:
                yield sample, call
            break


def is_refusal(op, error):
    said = REFUSED.get(op.name, ())
    return any(words in str(error) for words in ((said,) if isinstance(said, str) else said))


def check(op, sample, detail, got, want, may_refuse=False):
    """Compares what two functions return. The second lacks some derivatives, as torch does, and perhaps other
    things: then there is nothing to compare."""
    try:
        expected = want()
    except REFUSALS as error:
        if not (may_refuse or _LACKS.match(str(error))):
            raise
        return
    try:
        made = got()
    except REFUSALS as error:
        if is_refusal(op, error):
            return
        error.add_note(explain(op, sample, detail))
        raise
    assert len(made) == len(expected), explain(op, sample, detail)
    for ours, right in zip(made, expected, strict=True):
        assert ours.shape == right.shape, explain(op, sample, f"{detail} {ours.shape}, not {right.shape}")
        assert ours.dtype == right.dtype, explain(op, sample, f"{detail} {ours.dtype}, not {right.dtype}")
        tolerance = 1e-5 if ours.dtype == rushlight.float32 else 1e-9
        assert same(ours, right, tolerance), explain(op, sample, detail)


@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128", "bool"])
@ops()
def test_batches(op, dtype):
    if dtype not in dtype_names(op.dtypes):
        pytest.skip(f"does not take {dtype}")
    for sample, call in calls(op, dtype):
        f = call.function
        for batched in call.choices():
            check(op, sample, f"{batched} batched",
                  partial(at_once, call, f, batched), partial(looped, call, f, batched))  # fmt: skip
        if op.name not in _AS_IT_LIES:
            every = call.every()
            check(op, sample, "batched along the last dimension",
                  partial(at_once, call, f, every, -1), partial(looped, call, f, every, -1))  # fmt: skip


def nested_at_once(call, other):
    """Two batches as one of batches."""
    every = call.every()
    inner = rushlight.vmap(call.function, randomness="same")
    batches = zip(call.batch(every)[0], other.batch(every)[0], strict=True)
    return unpacked(rushlight.vmap(inner, randomness="same")(*map(rushlight.stack, batches)))


def nested_looped(call, other):
    rows = (looped(one, call.function, call.every()) for one in (call, other))
    return [rushlight.stack(pair) for pair in zip(*rows, strict=True)]


@ops(lambda op: "float64" in dtype_names(op.dtypes))
def test_batches_of_batches(op):
    for sample, call in calls(op, "float64"):
        other = make_call(rushlight, op, sample, "float64", scale=0.98)
        check(op, sample, "nested", partial(nested_at_once, call, other), partial(nested_looped, call, other))


@ops(lambda op: op.inplace)
def test_in_place(op):
    for dtype in ("float64", "int64"):
        if dtype not in dtype_names(op.dtypes if op.inplace is True else op.inplace):
            continue
        for sample, call in calls(op, dtype):
            if not isinstance(sample.args[0], Input):
                continue
            f = in_place(rushlight, op, sample)
            for batched in (batched for batched in call.choices() if 0 in batched):
                got, want = (partial(way, call, f, batched) for way in (at_once, looped))
                check(op, sample, f"{dtype} {batched} in place", got, want, may_refuse=True)


def differentiable(op, dtype):
    if dtype not in dtype_names(op.grad) or dtype not in dtype_names(op.dtypes):
        pytest.skip(f"not differentiable in {dtype}")
    for sample, call in calls(op, dtype):
        if sample.grad and call.differentiable:
            yield sample, call


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("derived", [pulled, pulled_for_good, pushed])
@ops(lambda op: op.grad)
def test_derivatives_of_examples(op, derived, dtype):
    for sample, call in differentiable(op, dtype):
        f = derived(call, call.function)
        for batched in call.choices():
            check(op, sample, f"{derived.__name__}, {batched} batched",
                  partial(at_once, call, f, batched), partial(looped, call, f, batched))  # fmt: skip


def pulled_at_once(call):
    pull, cotangents = pull_of(call)
    return unpacked(rushlight.vmap(pull)(*map(rushlight.stack, cotangents)))


def pulled_in_turn(call):
    pull, cotangents = pull_of(call)
    rows = [unpacked(pull(*row)) for row in zip(*cotangents, strict=True)]
    return [rushlight.stack(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("recording", [True, False])
@ops(lambda op: op.grad)
def test_batches_of_cotangents(op, recording):
    """Of one example, as Jacobians are computed."""
    for sample, call in differentiable(op, "float64"):
        with rushlight.set_grad_enabled(recording):
            check(op, sample, "cotangents", partial(pulled_at_once, call), partial(pulled_in_turn, call))


def gradients_through(results, leaves):
    """Of the results of `results()`, the gradients for a batch."""
    outs = [out for out in results() if out.requires_grad]
    if not outs:
        return []
    cotangents = [ramp(rushlight, out) for out in outs]
    return rushlight.autograd.grad(outs, leaves, cotangents, allow_unused=True, materialize_grads=True)


def by_loop(call, given):
    rows = [unpacked(call.function(*(x.select(0, i).clone() for x in given))) for i in range(len(given[0]))]
    return [rushlight.stack(column) for column in zip(*rows, strict=True)]


def by_vmap(call, given):
    return unpacked(rushlight.vmap(call.function, randomness="same")(*given))


@ops(lambda op: op.grad)
def test_gradients_through_a_batch(op):
    """Rules are made of operations that have derivatives."""
    for sample, call in differentiable(op, "float64"):
        given, _ = call.batch(call.every())
        leaves = [given[place].requires_grad_() for place in call.differentiable]
        got, want = (
            partial(gradients_through, partial(way, call, given), leaves) for way in (by_vmap, by_loop)
        )
        check(op, sample, "through a batch", got, want)


def test_every_rule_is_run():
    """Each batching rule by some sample: of the operation itself, in place, or in its derivatives."""
    ran = set()

    def watched(name, rule):
        def run(*args):
            ran.add(name)
            return rule(*args)

        return run

    rules = dict(RULES)
    RULES.update({name: watched(name, rule) for name, rule in rules.items()})
    try:
        for op in OPS.values():
            for dtype in ("float64", "complex128", "int64", "float32"):
                if dtype not in dtype_names(op.dtypes):
                    continue
                for sample, call in calls(op, dtype):
                    forms = [call.function]
                    if op.inplace is True and isinstance(sample.args[0], Input):
                        forms.append(in_place(rushlight, op, sample))
                    if dtype in dtype_names(op.grad) and sample.grad and call.differentiable:
                        forms += [way(call, call.function) for way in (pulled, pulled_for_good, pushed)]
                        forms.append(pushed(call, pulled(call, call.function)))
                    for form in forms:
                        for batched in call.choices():
                            try:
                                at_once(call, form, batched)
                            except REFUSALS:
                                break
        for function in FURTHER.values():
            rushlight.vmap(function)(rushlight.ones(2, 2, 4, 5, 6))
    finally:
        RULES.update(rules)
    drawing = {name for name in rules if "generator" in getattr(rushlight._C.ops, name).args}  # test_func.py
    missing = sorted(set(rules) - ran - drawing)
    assert not missing, f"rules that no sample runs: {missing}"


def test_every_view_has_a_rule():
    """What shares memory with its argument cannot be put together from examples."""
    primitives = {name: op for name, op in vars(rushlight._C.ops).items() if not name.startswith("_")}
    views = {name for name, op in primitives.items() if op.is_view}
    # Views of sparse tensors, which no batch is made of.
    assert not views - set(RULES) - {name for name in views if re.match("sparse|values|to_", name)}


def test_the_table_of_refusals_lists_nothing_that_is_computed():
    for name, op in ((name, OPS[name]) for name in REFUSED):
        refused = False
        for dtype in dtype_names(op.dtypes):
            for _, call in calls(op, dtype):
                for batched in call.choices():
                    try:
                        at_once(call, call.function, batched)
                    except REFUSALS as error:
                        refused = refused or is_refusal(op, error)
        assert refused, name


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x.sum().item(), "vmap: It looks like you're calling .item() on a Tensor."),
        (lambda x: float(x.sum()), "vmap: It looks like you're calling .item() on a Tensor."),
        (lambda x: x.tolist(), "Cannot access data pointer of Tensor that doesn't have storage"),
        (lambda x: bool(x.sum() > 0), "vmap: It looks like you're attempting to use a Tensor in some"),
        (lambda x: x if x[0] else -x, "vmap: It looks like you're attempting to use a Tensor in some"),
        (lambda x: rushlight.equal(x, x), "Batching rule not implemented for aten::equal."),
        (lambda x: rushlight.allclose(x, x), "vmap over torch.allclose isn't supported yet."),
        (lambda x: rushlight.zeros(4).put_(rushlight.arange(4), x), "vmap: aten::put_(self, *extra_args) is"),
        (lambda x: rushlight.zeros(4).mul_(x), "vmap: inplace arithmetic(self, *extra_args) is not possible"),
        (lambda x: rushlight.zeros(4).index_add_(0, rushlight.arange(4), x), "vmap: index_add_(self, *extra"),
    ],
)
def test_what_depends_on_numbers_is_refused(function, words):
    with pytest.raises(RuntimeError, match=re.escape(words)):
        rushlight.vmap(function, out_dims=None)(rushlight.arange(8.0).reshape(2, 4))


def _attended(x):
    primitives = rushlight._C.ops
    out, weights = primitives.attention_keeping(x, x, x, None, 0.5)
    return out, *primitives.attention_keeping_backward(x, x, x, x, weights, 0.5)


# What no sample calls for: rules of memory order, of sparse gradients, and of steps that are taken where
# gradients are recorded.
FURTHER = {
    "clone_strided": lambda x: x.clone(memory_format=rushlight.channels_last),
    "neg_view": rushlight._neg_view,
    "rows_copy": rushlight._C.ops.rows_copy,
    "straight": rushlight._C.ops.straight,
    "matmul_turned": lambda x: rushlight._C.ops.matmul_turned(x, x[..., :1, :].mT),
    "attention_keeping_backward": _attended,
    "gather_sparse": lambda x: rushlight.gather(x, 0, x.argsort(0), sparse_grad=True),
    "embedding_sparse": lambda x: rushlight.nn.functional.embedding(
        rushlight.tensor([1, 0]), x[0, 0], sparse=True
    ),
    "to_device": lambda x: x.to("meta").new_zeros((2,), device="cpu"),
    "grid_gradient": lambda x: rushlight._C.ops.grid_gradient(
        x[:, :, 0].clone(), x[:, :2, 0].mT.contiguous(), (5, 6), 0, 0, False
    ),
}


@pytest.mark.parametrize("name", FURTHER)
def test_rules_that_no_sample_needs(name):
    x = rushlight.randn(3, 2, 4, 5, 6, generator=rushlight.Generator().manual_seed(2))
    ours = unpacked(rushlight.vmap(FURTHER[name])(x))
    rows = [unpacked(FURTHER[name](example)) for example in x]
    for made, column in zip(ours, zip(*rows, strict=True), strict=True):
        assert same(made, rushlight.stack(column), 1e-5)


def test_empty_batches():
    """A batch of no examples is as large as their results would be, where the rule can say."""
    x, y = rushlight.ones(0, 3, 4), rushlight.ones(0, 4)
    for function in (
        rushlight.sin,
        lambda a: a.sum(1),
        lambda a: a @ rushlight.ones(4, 2),
        lambda a: a.softmax(-1),
        lambda a: a[1:],
        lambda a: a.flatten(),
        lambda a: rushlight.cat([a, a]),
        lambda a: rushlight.nn.functional.layer_norm(a, (4,)),
    ):
        expected = rushlight.stack([function(rushlight.ones(3, 4))])[:0]
        made = rushlight.vmap(function)(x)
        assert made.shape == expected.shape and made.dtype == expected.dtype
    assert rushlight.vmap(lambda a, b: a @ b)(x, y).shape == (0, 3)


def test_numbers_among_the_examples_do_not_decide_a_dtype():
    """An example without dimensions is a number beside tensors, though a batch of them is not."""
    wide, narrow = rushlight.ones(2, dtype=rushlight.float64), rushlight.ones(3, dtype=rushlight.float32)
    assert rushlight.vmap(rushlight.add, (0, None))(wide, narrow).dtype == rushlight.float32
    assert rushlight.vmap(rushlight.add, (None, 0))(narrow, wide).dtype == rushlight.float32
    whole = rushlight.ones(3, dtype=rushlight.int64)
    assert rushlight.vmap(rushlight.mul, (0, None))(wide, whole).dtype == rushlight.float64
    mask = rushlight.ones(2, dtype=rushlight.bool)
    chosen = rushlight.vmap(rushlight.where, (0, 0, None))(mask, wide, narrow)
    assert chosen.dtype == rushlight.float32


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(3), lambda x: x.sum(-2), lambda x: x.transpose(0, 1), lambda x: x.softmax(1),
        lambda x: x.unsqueeze(3), lambda x: x.select(1, 0), lambda x: x.cumsum(1), lambda x: x.sort(1),
        lambda x: x.flip(1), lambda x: x.squeeze(1), lambda x: x.argmax(-2), lambda x: x.movedim(0, 1),
        lambda x: x.unfold(1, 1, 1), lambda x: rushlight.cat([x, x], 1), lambda x: rushlight.stack([x, x], 3),
        lambda x: x.logsumexp(1), lambda x: x.var(1), lambda x: x.split(2, 1), lambda x: x.diagonal(),
    ],
)  # fmt: skip
def test_dimensions_are_counted_without_that_of_the_examples(function):
    def said(run):
        with pytest.raises(IndexError) as refusal:
            run()
        return str(refusal.value).partition("\n")[0]

    x = rushlight.ones(3, 4)
    assert said(lambda: rushlight.vmap(function)(x)) == said(lambda: function(x[0]))
    assert packed([x]) is x


def test_operations_of_a_program_are_computed_example_by_example():
    @rushlight.library.custom_op("test_batching::scaled", mutates_args=())
    def scaled(x: rushlight.Tensor, k: float) -> rushlight.Tensor:
        assert x.dim() == 1
        return x * k

    x = rushlight.arange(6.0).reshape(3, 2)
    assert rushlight.vmap(lambda row: scaled(row, 2.0))(x).tolist() == (x * 2).tolist()
    assert rushlight.vmap(rushlight.vmap(lambda row: scaled(row, 2.0)))(x.expand(2, 3, 2)).shape == (2, 3, 2)


def test_dropout_draws_for_every_example_or_for_all():
    x = rushlight.ones(4, 64)
    for form in (rushlight.nn.functional.dropout, rushlight.nn.functional.alpha_dropout):
        drop = lambda row: form(row, 0.5, True)  # noqa: B023
        rows = rushlight.vmap(drop, randomness="different")(x).tolist()
        assert rows[0] != rows[1]
        rows = rushlight.vmap(drop, randomness="same")(x).tolist()
        assert rows[0] == rows[1] == rows[3]
        with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
            rushlight.vmap(drop)(x)


def test_limits_may_differ_among_the_examples():
    x, low = rushlight.arange(6.0).reshape(2, 3), rushlight.tensor([1.5, 4.0])
    clamped = rushlight.vmap(lambda row, limit: row.clamp(min=limit, max=4.5))(x, low)
    assert clamped.tolist() == [[1.5, 1.5, 2.0], [4.0, 4.0, 4.5]]
    whole = rushlight.vmap(lambda row, limit: row.clamp(min=limit, max=2.5))(x.long(), low.long())
    assert whole.dtype == rushlight.float32


def test_running_statistics_of_every_example_move():
    norm = rushlight.nn.functional.batch_norm
    x = rushlight.arange(24.0).reshape(2, 4, 3)
    mean, var = rushlight.zeros(2, 3), rushlight.ones(2, 3)
    rushlight.vmap(lambda a, m, v: norm(a, m, v, training=True))(x, mean, var)
    for i in range(2):
        m, v = rushlight.zeros(3), rushlight.ones(3)
        norm(x[i], m, v, training=True)
        assert same(mean[i], m, 1e-6) and same(var[i], v, 1e-6)
    m, v = rushlight.zeros(3), rushlight.ones(3)
    rushlight.func.grad(lambda a: norm(a, m, v, training=True).square().sum())(x[0])
    assert m.abs().sum() > 0


def test_lengths_may_differ_among_the_examples():
    scores = rushlight.randn(2, 5, 3, 4, generator=rushlight.Generator().manual_seed(1)).log_softmax(-1)
    targets = rushlight.tensor([[[1, 2], [2, 3], [1, 1]], [[3, 1], [1, 2], [2, 2]]])
    given, wanted = rushlight.tensor([[5, 4, 5], [5, 5, 4]]), rushlight.tensor([[2, 1, 2], [1, 2, 2]])
    loss = rushlight.nn.functional.ctc_loss
    losses = rushlight.vmap(loss)(scores, targets, given, wanted)
    gradients = rushlight.vmap(rushlight.func.grad(loss))(scores, targets, given, wanted)
    for i in range(2):
        example = scores[i].clone().requires_grad_()
        right = loss(example, targets[i], given[i], wanted[i])
        right.backward()
        assert same(losses[i], right.detach(), 1e-6) and same(gradients[i], example.grad, 1e-6)


@pytest.mark.parametrize("function", [
    lambda a: a.logcumsumexp(0), lambda a: rushlight.xlogy(a, a[0]), lambda a: rushlight.xlogy(a[0], a),
    lambda a: rushlight.cholesky_solve(a[:, :1], a), lambda a: rushlight.cholesky_inverse(a),
    lambda a: rushlight.linalg.tensorsolve(a, a[0]), lambda a: rushlight.linalg.solve(a, a[0]),
], ids=range(7))  # fmt: skip
def test_tangents_of_a_dual_level_within_a_batch(function):
    forward_ad = rushlight.autograd.forward_ad
    g = rushlight.Generator().manual_seed(2)
    x = rushlight.eye(3).double() * 3 + rushlight.rand(3, 3, generator=g)
    batch = rushlight.randn(4, 3, 3, dtype=rushlight.float64, generator=g)

    def pushed(tangent):
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(function(forward_ad.make_dual(x, tangent))).tangent

    found = rushlight.vmap(pushed)(batch)
    assert all(same(found[i], pushed(batch[i]), 1e-9) for i in range(4))


@pytest.mark.parametrize("lead", [(), (2,), (0,), (2, 3), (2, 0)])
def test_layers_without_features(lead):
    linear = rushlight.nn.functional.linear
    for batch, features, rows in itertools.product((0, 2), (0, 1, 3), (0, 2)):
        x, weight = rushlight.ones(batch, *lead, features), rushlight.ones(batch, rows, features)
        one, table, bias = (
            rushlight.ones(*lead, features),
            rushlight.ones(rows, features),
            rushlight.ones(rows),
        )
        for *given, dims in ((x, weight, bias, (0, 0, None)), (one, weight, bias, (None, 0, None)),
                             (x, table, bias, (0, None, None))):  # fmt: skip
            found = rushlight.vmap(linear, dims)(*given)
            assert found.shape == (batch, *lead, rows) and bool((found == features + 1).all())
        indices = rushlight.zeros(batch, 2, dtype=rushlight.int64)
        picked = rushlight.vmap(lambda x, i: x.index_select(0, i))(
            rushlight.ones(batch, 3, features), indices
        )
        assert picked.shape == (batch, 2, features)
