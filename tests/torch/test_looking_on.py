"""What somebody who looks on sees: FlopCounterMode counts and the profiler shows the steps of products,
convolutions and attention that torch makes of them, and those of their gradients."""

import threading

import pytest
import torch as torch_itself
import torch.utils.flop_counter

import rushlight
import rushlight.utils.flop_counter

COUNTED = """
F.linear(r(3, 4), w, b)|F.linear(r(2, 3, 4), w, b)|F.linear(r(4), w, b)|F.linear(r(2, 3, 4), w)
F.linear(r(2, 3, 4).transpose(0, 1), w, b)|F.linear(r(3, 4).detach(), w, b)|r(3, 4) @ r(4)|r(3) @ r(3, 4)
r(2, 3, 4) @ r(4)|r(3) @ r(2, 3, 4)|r(5, 3) @ r(2, 3, 4)|r(5, 3).detach() @ r(2, 3, 4)
r(2, 3, 4) @ r(4, 5)|r(2, 1, 3, 4) @ r(5, 4, 2)|r(2, 3, 4) @ r(2, 4, 5)|torch.bmm(r(2, 3, 4), r(2, 4, 5))
torch.addmm(r(3, 5), r(3, 4), r(4, 5))|torch.baddbmm(r(2, 3, 5), r(2, 3, 4), r(2, 4, 5))
torch.addbmm(r(3, 5), r(2, 3, 4), r(2, 4, 5))|torch.addmv(r(3), r(3, 4), r(4))|torch.addr(r(3, 4), r(3), r(4))
F.conv1d(r(2, 2, 8), r(3, 2, 3))|F.conv2d(r(2, 2, 8, 8), r(3, 2, 3, 3), r(3), padding=1, stride=2)
F.conv2d(r(2, 4, 8, 8), r(4, 1, 3, 3), groups=4)|F.conv2d(r(2, 2, 8, 8).detach(), r(4, 1, 3, 3), groups=2)
F.conv_transpose2d(r(1, 2, 5, 5), r(2, 3, 3, 3), r(3))|F.conv_transpose1d(r(1, 2, 5), r(2, 3, 3))
F.conv_transpose2d(r(1, 4, 5, 5), r(4, 2, 3, 3), stride=2, groups=2)
F.conv3d(r(1, 2, 4, 4, 4), r(3, 2, 2, 2, 2))
F.scaled_dot_product_attention(r(2, 3, 6, 8), r(2, 3, 5, 8), r(2, 3, 5, 8))
F.scaled_dot_product_attention(r(2, 3, 6, 8), r(2, 3, 6, 8), r(2, 3, 6, 8), is_causal=True)
F.scaled_dot_product_attention(r(3, 6, 8), r(3, 6, 8), r(3, 6, 8))
nn.MultiheadAttention(8, 2, batch_first=True)(*[r(2, 5, 8)] * 3)[0]
nn.MultiheadAttention(8, 2)(*[r(2, 5, 8)] * 3, need_weights=False)[0]
nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)(r(2, 5, 8))
nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0)(r(2, 5, 8), r(2, 5, 8))
nn.GRU(4, 5)(r(3, 2, 4))[0]|nn.RNN(4, 5)(r(3, 2, 4))[0]|nn.GRUCell(4, 5)(r(2, 4))
nn.LSTMCell(4, 5)(r(2, 4))[0]|nn.RNNCell(4, 5)(r(2, 4))|torch.cdist(r(3, 4), r(5, 4))
torch.einsum("bij,bjk->bik", r(2, 3, 4), r(2, 4, 5))|torch.tensordot(r(2, 3), r(3, 4), 1)
torch.inner(r(2, 3), r(4, 3))|torch.cdist(r(3, 4), r(5, 4), p=1.0)
""".strip().replace("\n", "|").split("|")  # fmt: skip


def names_of(torch):
    def leaf(*sizes):
        return torch.ones(*sizes, requires_grad=True)

    nn = torch.nn
    return {"torch": torch, "nn": nn, "F": nn.functional, "r": leaf, "w": leaf(5, 4), "b": leaf(5)}


def counted(torch, expression):
    with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
        result = eval(expression, names_of(torch))
    forward = counter.get_flop_counts()
    with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
        eval(expression, names_of(torch)).sum().backward()
    assert result.requires_grad
    found = ((step, module, str(op), n) for step, counts in enumerate((forward, counter.get_flop_counts()))
             for module, ops in counts.items() for op, n in ops.items())  # fmt: skip
    return sorted(found), counter.get_total_flops()


def test_nothing_counted_is_told_as_in_torch():
    def told(torch):
        counter = torch.utils.flop_counter.FlopCounterMode(display=False)
        seen = [counter.get_flop_counts(), counter.get_total_flops()]
        with counter:
            torch.ones(2).exp()
        seen += [counter.get_flop_counts(), counter.get_total_flops(), counter.get_flop_counts()]
        return [*seen, dict(counter.flop_counts["absent"])]

    assert told(rushlight) == told(torch_itself)


@pytest.mark.parametrize("expression", COUNTED)
def test_operations_are_counted_as_in_torch(expression):
    assert counted(rushlight, expression) == counted(torch_itself, expression)


# Whose steps are torch's, but for those by which torch allocates and lays out memory.
MEASURED = """
x * x + x|x.sum()|x.exp()|F.linear(x, w, b)|F.linear(r(2, 3, 4), w, b)|F.linear(x, w)|F.linear(r(2, 3, 4), w)
x @ r(4, 6)|r(2, 3, 4) @ r(4, 6)|r(3) @ x|torch.bmm(r(2, 3, 4), r(2, 4, 3))|F.softmax(x, 1)|F.relu(x)
F.cross_entropy(x, at)|F.nll_loss(F.log_softmax(x, 1), at)|F.cross_entropy(x, at).backward()
F.max_pool2d(r(1, 2, 6, 6), 2)|x.t()|x.cumsum(0)|torch.cat([x, x])|(x * x).sum().backward()|x[0]|x[:, 1:2]
x.sum().backward()|(x @ y).sum().backward()|F.log_softmax(x, 1)|(x + x).sum().backward()
""".strip().replace("\n", "|").split("|")  # fmt: skip
INNER = {
    "as_strided", "empty", "empty_strided", "empty_like", "resize_", "resolve_conj", "_to_copy", "to",
    "fill_", "copy_", "as_strided_", "_reshape_alias", "clone", "ones", "zero_",
}  # fmt: skip


def measured(torch, expression):
    """The tree of what ran, as (depth, name)."""
    known = names_of(torch)
    known |= {"x": known["r"](3, 4), "y": known["r"](4, 6), "at": torch.tensor([1, 2, 0])}
    eval(expression, known)
    with torch.autograd.profiler.profile() as profile:
        eval(expression, known)
    tree = []

    def walk(events, depth):
        for event in sorted(events, key=lambda event: (event.time_range.start, event.id)):
            if event.name.removeprefix("aten::") not in INNER:
                tree.append((depth, event.name))
                walk(event.cpu_children, depth + 1)

    walk([event for event in profile.function_events if event.cpu_parent is None], 0)
    return tree


@pytest.mark.parametrize("expression", MEASURED)
def test_the_profiler_shows_torchs_steps(expression):
    assert measured(rushlight, expression) == measured(torch_itself, expression)


@pytest.mark.parametrize("lib", [rushlight, torch_itself], ids=["rushlight", "torch"])
def test_who_looks_on_changes_no_number(lib):
    lib.manual_seed(0)
    layer, x = lib.nn.Linear(4, 5), lib.randn(2, 3, 4, requires_grad=True)
    plain = layer(x.transpose(0, 1)), layer(x), x @ x.mT
    with lib.autograd.profiler.profile():
        watched = layer(x.transpose(0, 1)), layer(x), x @ x.mT
    for one, other in zip(plain, watched, strict=True):
        assert lib.equal(one, other)
        grads = [lib.autograd.grad(y.sum(), [x], retain_graph=True)[0] for y in (one, other)]
        lib.testing.assert_close(*grads)


SHAPES = [
    "torch.nn.functional.linear(x, y.t(), y[0]).relu().sum()",
    "torch.nn.functional.softmax(x * 2 + 1, -1).sum()",
    "torch.cat([x, x]).transpose(0, 1).clamp(0.1, 0.9).sum(0)",
    "torch.bmm(x[None], y[None]).tanh()",
    "(x * 2 + x).tanh().relu().sum().backward()",
]


def shapes(torch, expression):
    known = names_of(torch)
    known |= {"x": known["r"](3, 4), "y": known["r"](4, 6)}
    eval(expression, known)
    with torch.autograd.profiler.profile(record_shapes=True) as profile:
        eval(expression, known)
    events = sorted(profile.function_events, key=lambda event: (event.time_range.start, event.id))
    return [
        (event.name, event.input_shapes)
        for event in events
        if event.name.removeprefix("aten::") not in INNER
        and not any(around.removeprefix("aten::") in INNER for around in names_around(event))
    ]


def names_around(event):
    while (event := event.cpu_parent) is not None:
        yield event.name


@pytest.mark.parametrize("expression", SHAPES)
def test_every_argument_has_a_shape(expression):
    assert shapes(rushlight, expression) == shapes(torch_itself, expression)


def test_convolutions_are_counted_where_torch_counts_them():
    found = []
    for lib in (rushlight, torch_itself):
        x, weight = lib.ones(1, 4, 5, 5), lib.ones(6, 2, 3, 3)
        with lib.autograd.profiler.profile(with_flops=True) as profile:
            lib.nn.functional.conv2d(x, weight, groups=2)
            lib.nn.functional.conv1d(x[0], lib.ones(2, 5, 3))
        found.append({event.name: event.flops for event in profile.function_events if event.flops})
    assert found[0] == found[1]


def table_of(lib, **shown):
    util = lib.autograd.profiler_util
    events = util.EventList()
    calls = ["a.py(3): f", "b.py(4): " + "g" * 100, "c.py(5): h"]
    for number, (name, start, end, stack) in enumerate(
        [("aten::a", 0, 1000.5, calls), ("aten::b", 1, 500, []), ("aten::a", 2000, 3000, [])]
    ):
        event = util.FunctionEvent(number, name, 1, start, end, stack=stack, input_shapes=[[2]], flops=0)
        events.append(event)
    events._build_tree()
    with pytest.warns(FutureWarning, match="`cuda_time` is deprecated, please use `device_time` instead"):
        assert events[0].cuda_time == 0
    names = ["aten::is_leaf", "aten::mul", "ProfilerStep#3"]
    return (
        [
            listed.table(**shown)
            for listed in (events, events.key_averages(), events.key_averages(group_by_stack_n=2))
        ],
        [(util._filter_name(name), util._rewrite_name(name, with_wildcard=True)) for name in names],
    )


@pytest.mark.parametrize("shown", [{}, {"header": "HEAD"}, {"top_level_events_only": True, "header": "HEAD"}])
def test_tables_of_the_profiler(shown):
    assert table_of(rushlight, **shown) == table_of(torch_itself, **shown)


@pytest.mark.parametrize("lib", [rushlight, torch_itself], ids=["rushlight", "torch"])
def test_formulas_take_tensors_and_sizes(lib):
    counter = lib.utils.flop_counter
    x, w, out = lib.ones(1, 2, 6, 6), lib.ones(3, 2, 3, 3), lib.ones(1, 3, 4, 4)
    q, wide = (1, 2, 3, 4), (1, 2, 3, 5)
    assert counter.conv_flop(x, w, None, 1, 0, 1, False, out_val=out) == 1728
    assert counter.mm_flop((2, 3), (3, 4)) == counter.mm_flop(lib.ones(2, 3), lib.ones(3, 4)) == 48
    assert (counter.sdpa_flop(q, q, wide), counter.sdpa_backward_flop(wide, q, q, wide)) == (324, 792)
    assert len(counter.flop_registry) >= 16 and lib.ops.aten._convolution in counter.flop_registry


@pytest.mark.parametrize("lib", [rushlight, torch_itself], ids=["rushlight", "torch"])
def test_forked_calls_are_futures(lib):
    with pytest.warns(DeprecationWarning, match=r"torch.jit.fork"):
        future = lib.jit.fork(lambda x: x + 1, lib.ones(1))
    with pytest.warns(DeprecationWarning, match=r"torch.jit.wait"):
        assert future.done() and lib.jit.wait(future.then(lambda done: done.value() * 2)).item() == 4
    with pytest.warns(DeprecationWarning), pytest.raises(TypeError, match="incompatible function arguments"):
        lib.jit.wait(3)


@pytest.mark.parametrize("lib", [rushlight, torch_itself], ids=["rushlight", "torch"])
def test_ranges_that_overlap_are_not_within_each_other(lib):
    named = lib.autograd.profiler.record_function
    with lib.autograd.profiler.profile() as measured:
        outer = named("outer").__enter__()
        with named("inner"):
            outer.__exit__(None, None, None)
        with named("second"):
            late = named("late").__enter__()
        late.__exit__(None, None, None)
        with named("around"), named("within"):
            pass
    seen = {event.name: event.cpu_parent and event.cpu_parent.name for event in measured.function_events}
    assert seen == {
        "outer": None, "inner": None, "second": None, "late": None, "around": None, "within": "around",
    }  # fmt: skip


@pytest.mark.parametrize("lib", [rushlight, torch_itself], ids=["rushlight", "torch"])
def test_ranges_may_end_on_another_thread(lib):
    named = lib.autograd.profiler.record_function
    with lib.autograd.profiler.profile() as measured:
        begun = named("begun").__enter__()
        thread = threading.Thread(target=begun.__exit__, args=(None, None, None))
        thread.start()
        thread.join()
        with named("after"):
            pass
    seen = {event.name: event for event in measured.function_events}
    assert seen["after"].cpu_parent is None and seen["begun"].cpu_parent is None
