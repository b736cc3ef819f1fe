"""The graph as users see it: what the comparison with torch does not say."""

import gc
import weakref

import pytest

import rushlight as torch
from rushlight.autograd import graph


def test_examples_of_the_module():
    import doctest

    for module in (graph, torch.autograd.function, torch.autograd):
        failed, _ = doctest.testmod(module, extraglobs={"rushlight": torch})
        assert not failed


def test_a_hook_that_refers_to_its_node_is_collected():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    node = y.grad_fn
    node.register_hook(lambda grads, _, kept=[node]: None)
    dead = weakref.ref(node)
    del x, y, node
    gc.collect()
    assert dead() is None


def test_identity_saved_hooks_make_no_cycle():
    gc.collect()
    gc.disable()
    try:
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            y = torch.ones(2, requires_grad=True).exp()
        dead = weakref.ref(y.grad_fn)
        del y
        assert dead() is None
    finally:
        gc.enable()


def test_mutation_clones_only_what_is_saved():
    with graph.allow_mutation_on_saved_tensors() as context:
        x = torch.ones(3, requires_grad=True)
        y = x * 1
        z = y.sin() + y.cos()
        assert (len(context.original), len(context.cloned)) == (1, 0)
        y.mul_(5)
        assert (len(context.original), len(context.cloned)) == (0, 1)
        torch.ones(3).mul_(2)
        z.sum().backward()
    expected = torch.ones(3).cos() - torch.ones(3).sin()
    assert torch.allclose(x.grad, expected)


@pytest.mark.parametrize("turn", [lambda y: y, lambda y: y.t_(), lambda y: y.data, lambda y: y.detach().t_()])
def test_mutation_clones_what_is_written_under_another_version(turn):
    with graph.allow_mutation_on_saved_tensors():
        x = torch.arange(4.0).reshape(2, 2).requires_grad_()
        y = x.clone().add_(1)
        z = y**2
        turn(y).mul_(5)
        w = y**2 if y.stride() == (2, 1) else y.t() ** 2  # saved anew, not taken for what was saved before
        torch.autograd.backward([z.sum(), w.sum()])
    once = 2 * (x.detach() + 1)
    followed = 5 if turn(x.clone()).requires_grad else 1  # writes to data and detach() are not recorded
    assert torch.equal(x.grad, once + 5 * once * followed)


def test_saved_values_under_torchs_names():
    x = torch.ones(2, 3, requires_grad=True)
    assert (x * x).grad_fn._saved_self is x
    assert x.exp().grad_fn._saved_result.shape == (2, 3)
    assert x.sum(1).grad_fn._saved_dim is not None
    with pytest.raises(AttributeError, match="SinBackward0"):
        _ = x.sin().grad_fn._saved_nonsense


def test_final_callbacks_run_after_accumulation():
    x = torch.ones(1, requires_grad=True)
    seen = []
    done = torch.autograd.Variable._execution_engine.queue_callback
    x.register_hook(lambda g: done(lambda: seen.append(x.grad)))
    (x * 3).backward()
    assert seen == [torch.tensor([3.0])]
    with pytest.raises(RuntimeError, match="Final callbacks"):
        done(print)


def test_edges_in_every_place():
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    loss = (y**2).sum()
    edge = graph.get_gradient_edge(loss)
    del loss
    gy, gx = torch.autograd.grad(edge, [graph.get_gradient_edge(y), x])
    assert gy.tolist() == [6, 6]
    assert gx.tolist() == [18, 18]


def test_index_tensors_are_saved_values_too():
    x = torch.ones(3, 3, requires_grad=True)
    index = torch.zeros(2, dtype=torch.int64).add_(1)
    x[:, index].sum().backward()
    assert x.grad.tolist() == [[0, 2, 0]] * 3
    y = x[:, index]
    index.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    packed = []
    with graph.saved_tensors_hooks(lambda t: packed.append(t.clone()) or len(packed) - 1, packed.__getitem__):
        y = x[:, index]
    index.sub_(1)
    y.sum().backward()
    assert x.grad.tolist() == [[0, 2, 2]] * 3
    raw = x[:, index].grad_fn._raw_saved_indices
    with pytest.raises(RuntimeError, match="None is forbidden"):
        raw[0].register_hooks(lambda t: t, lambda t: t)
    raw[1].register_hooks(lambda t: t, lambda t: t)


def test_a_saved_tensor_detached_in_place_is_refused():
    a = torch.ones(2, requires_grad=True).clone()
    b, c = a.sin(), a.exp()
    out = c + 1
    a.detach_()
    c.detach_()  # as the output of exp that it is, it may be
    with pytest.raises(RuntimeError, match="detached in-place"):
        b.sum().backward()
    out.sum().backward()


class _Nothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return None


def test_hooks_see_none_where_no_gradient_arrives():
    seen = []
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: seen.append(("tensor", g)))
    y.grad_fn.register_prehook(lambda g: seen.append(("pre", g)))
    y.grad_fn.register_hook(lambda i, o: seen.append(("post", i, o)))
    x.register_hook(lambda g: seen.append(("leaf", g)))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(("accumulated", p.grad)))
    _Nothing.apply(y).sum().backward()
    assert seen == [
        ("tensor", None), ("pre", (None,)), ("post", (None, None), (None,)), ("leaf", None),
        ("accumulated", None),
    ]  # fmt: skip
    y = x * 2
    y.register_hook(lambda g: torch.ones(2))
    with pytest.raises(RuntimeError, match="can't replace a None gradient with a non-None value"):
        _Nothing.apply(y).sum().backward()


def test_questions_to_the_running_backward():
    native = torch._C
    a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    out = a.sin() * b.cos()
    assert native._current_graph_task_id() == -1
    orders, wills = [], []

    def ask(grad):
        orders.append([node.name() for node in native._current_graph_task_execution_order()])
        wills.append(native._will_engine_execute_node(out.grad_fn.next_functions[1][0]))
        assert native._current_graph_task_id() >= 0

    out.register_hook(ask)
    with torch.autograd.set_multithreading_enabled(False):
        out.backward(retain_graph=True)
        out.backward(inputs=[a], retain_graph=True)
    leaf = "torch::autograd::AccumulateGrad"
    assert orders == [
        ["MulBackward0", "CosBackward0", leaf, "SinBackward0", leaf],
        ["MulBackward0", "SinBackward0", leaf],
    ]
    assert wills == [True, False]
    with pytest.raises(RuntimeError, match="should only be called during the backward pass"):
        native._current_graph_task_execution_order()
    with pytest.raises(RuntimeError, match="multithreading disabled"):
        out.backward(retain_graph=True)


def test_node_classes_and_functions_of_the_extension():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    functions = torch._C._functions
    assert type(y.grad_fn) is functions.MulBackward0
    assert isinstance(y.grad_fn.next_functions[0][0], functions.AccumulateGrad)
    late = functions.DelayedError("too late", 1)(x)
    with pytest.raises(RuntimeError, match="too late"):
        late.sum().backward()
    functions.UndefinedGrad()(x * 2).sum().backward()
    assert x.grad is None
    for made in (functions.DelayedError("too late", 1), functions.UndefinedGrad()):
        assert isinstance(made, torch.autograd.graph.Node)
        assert type(made) is getattr(functions, type(made).__name__)
        with pytest.raises(TypeError, match="expected 1 arguments, got 2 instead"):
            made(x, x)
        with pytest.raises(TypeError, match="argument 0 is not a Variable"):
            made(3)
    with pytest.raises(RuntimeError, match="Requires two arguments, got 1"):
        functions.DelayedError("too late")
    part = y[0]
    assert torch._C._autograd._get_creation_meta(part) is torch._C._autograd.CreationMeta.DEFAULT
    assert repr(torch._C._autograd._get_creation_meta(y.unbind()[0])) == "<CreationMeta.MULTI_OUTPUT_NODE: 2>"


def test_backward_with_create_graph_warns_once_or_always():
    x = torch.ones(1, requires_grad=True)
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="Using backward\\(\\) with create_graph=True"):
            (x * x).backward(create_graph=True)
    finally:
        torch.set_warn_always(False)
    assert x.grad.grad_fn.name() == "torch::autograd::CopyBackwards"
    x.grad = None


def test_gradient_dtype_none_takes_what_comes():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    x.grad_dtype = torch.float16
    y.sum().backward()
    assert x.grad.dtype == torch.float16
    x.grad = None
    x.grad_dtype = None
    (x * torch.ones(2, dtype=torch.float64)).sum().backward()
    assert x.grad.dtype == torch.float64


def test_a_view_of_other_bytes_is_no_view_to_autograd():
    x = torch.ones(2, 2, requires_grad=True).clone()
    bits = x.view(torch.int32)
    assert not bits.requires_grad and not bits._is_view() and bits._base is None
    bits.zero_()
    assert x._version == 1 and x.tolist() == [[0, 0], [0, 0]]


def test_composed_operations_end_in_a_node_of_their_name():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    rolled = torch.roll(x, 1)
    assert rolled.grad_fn.name() == "RollBackward0" and not rolled._is_view()
    loss = torch.nn.functional.cross_entropy(x.view(1, 2), torch.tensor([0]), torch.ones(2))
    assert type(loss.grad_fn).__name__ == "NllLossBackward0"
    assert loss.grad_fn._saved_weight.tolist() == [1, 1] and loss.grad_fn._saved_reduction == 1
    loss.backward()
    with pytest.raises(RuntimeError, match="already been freed"):
        _ = loss.grad_fn._saved_weight
    assert (x % 2).grad_fn.name() == "RemainderBackward0" and (x % x).grad_fn.name() == "RemainderBackward1"
    assert x.clone().acosh_().grad_fn.name() == "AcoshBackward1"
    same = x.to(torch.float32)
    assert same is x and (x * 2).to(torch.float32).grad_fn.name() == "MulBackward0"


def test_floor_division_refuses_to_be_differentiated():
    x = torch.tensor([5.0], requires_grad=True)
    assert (x // 2).grad_fn.name() == "torch::autograd::NotImplemented"
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented"):
        (x // 2).backward()
    torch.div(x, 2, rounding_mode="floor").backward()
    assert x.grad.tolist() == [0]


def test_in_place_comparison_and_set_change_the_history():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.clone().eq_(1.0)
    assert y.grad_fn.name() == "EqBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [0, 0]
    z = (x * 2).set_(torch.zeros(3))
    with pytest.raises(RuntimeError, match="derivative for set_ is not implemented"):
        z.sum().backward()


def test_hooks_of_a_computed_tensor_are_kept_on_it():
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    seen = []
    first = y.register_hook(lambda g: seen.append("first"))
    y.register_hook(lambda g: seen.append("second"))
    assert list(y._backward_hooks) == [first.id, first.id + 1]
    y.mul_(3)
    y.register_hook(lambda g: seen.append("after the write"))
    y.backward(retain_graph=True)
    assert seen == ["after the write", "first", "second"]
    first.remove()
    seen.clear()
    y.backward()
    assert seen == ["after the write", "second"]


def test_a_hook_added_while_values_are_unpacked_runs():
    seen = []
    x = torch.ones(2, requires_grad=True)

    def unpack(value):
        y.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs[0].shape, outputs)))
        return value

    with graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x.exp()
    y.sum().backward()
    assert seen == [((2,), ())]  # what arrived had been given away, as in torch


def test_the_layout_of_gradients_can_be_left_open():
    p = torch.ones(2, 3).t().requires_grad_()
    weight = torch.ones(3, 2)
    with torch.autograd.enforce_grad_layout_policy(False):
        (p * weight).sum().backward()
    assert p.grad.stride() == weight.stride()
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="do not obey the gradient layout contract"):
            (p * weight).sum().backward()
    finally:
        torch.set_warn_always(False)
    p.grad = None
    (p * weight).sum().backward()
    assert p.grad.stride() == p.stride()


def test_backward_to_a_computed_tensor_retains_its_gradient_once():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.sum().backward(inputs=[y])
    assert y.grad.tolist() == [1, 1] and x.grad is None
    seen = []
    z = x * 3
    z.grad_fn.register_hook(lambda inputs, outputs: seen.append(inputs))
    z.sum().backward(inputs=[z])
    assert z.retains_grad and z.grad.tolist() == [1, 1] and seen == [(None, None)]


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_a_step_of_an_optimizer_is_a_write_that_may_be_allowed(optimizer):
    with graph.allow_mutation_on_saved_tensors():
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        step = getattr(torch.optim, optimizer)([w], lr=0.1)
        first, second = (w * w).sum(), (w**3).sum()
        first.backward()
        step.step()
        w.grad = None
        second.backward()
    assert w.grad.tolist() == [3, 12]


def test_what_is_only_asked_for_is_not_used_up():
    a = torch.ones(2, requires_grad=True)
    b = a * 2
    torch.autograd.grad((b * b).sum(), b)
    assert torch.autograd.grad(b.sum(), a)[0].tolist() == [2, 2]


class _Deep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        if ctx.depth == 0:
            raise ValueError("at the bottom")
        with torch.enable_grad():
            _Deep.apply(torch.ones(1, requires_grad=True), ctx.depth - 1).sum().backward()
        return g, None


def test_an_error_comes_up_from_deep_reentrance():
    x = torch.ones(1, requires_grad=True)
    with pytest.raises(ValueError, match="at the bottom"):
        _Deep.apply(x, 300).sum().backward()
    assert torch.is_grad_enabled() and torch._C._current_graph_task_id() == -1
    (x * 2).sum().backward()
    assert x.grad.item() == 2


def test_writes_are_counted_with_the_tensor_when_its_data_is_replaced():
    x = torch.ones(2)
    view = x[:]
    x.data = torch.zeros(3)
    x.add_(1)
    view.add_(1)
    assert x._version == view._version == 2
    del view
    x.add_(1)
    assert x._version == 3


def test_operations_of_a_library_without_derivative_warn():
    with torch.library._scoped_library("tests_graph", "FRAGMENT") as lib:
        lib.define("constant(Tensor x) -> Tensor")
        lib.impl("constant", lambda x: x.detach() + 1, "CPU")
        x = torch.ones(2, requires_grad=True)
        y = torch.ops.tests_graph.constant(x)
        with pytest.warns(UserWarning, match="tests_graph::constant: an autograd kernel was not registered"):
            y.sum().backward()
        assert x.grad is None
    assert not hasattr(torch.ops.tests_graph, "constant")


def test_a_view_again_on_another_base():
    base = torch.arange(6.0)
    view = base.view(2, 3)[1]
    again = view._view_func(base + 10)
    assert again.tolist() == [13, 14, 15] and view._view_func(torch.ones(7)) is None
    with torch.autograd._force_original_view_tracking(True):
        tracked = base.view(2, 3)[1]
    assert torch.equal(tracked._rev_view_func_unsafe(tracked.detach()), base)
    assert torch.equal(view._view_func(base, lambda size: size + 1), view)  # no size is symbolic, as in torch


def test_a_saved_value_is_the_tensor_that_was_passed_while_that_lives():
    x = torch.randn(3, requires_grad=True)
    a = x * 2
    y = a * a
    assert y.grad_fn._saved_self is a and y.grad_fn._saved_other is a
    with torch.no_grad():
        assert y.grad_fn._saved_self is a
    u = (x * 1).unbind()
    z = u[1] * u[2]
    assert z.grad_fn._saved_self is u[1] and z.grad_fn._saved_other is u[2]
    view = (x * 2).view(3, 1)
    assert view.sin().grad_fn._saved_self is view
    del a
    rebuilt = y.grad_fn._saved_self
    assert rebuilt.grad_fn.name() == "MulBackward0" and rebuilt is y.grad_fn._saved_self

    class Keep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    b = x * 3
    c = Keep.apply(b)
    assert c.grad_fn.saved_tensors[0] is b and c.sin().grad_fn._saved_self is c
    d = b.sin()
    with pytest.raises(RuntimeError, match="Expected use_count of t1 to be 1"):
        torch.utils.swap_tensors(b, torch.zeros(3, requires_grad=True) * 1)
    assert d.grad_fn._saved_self is b


def test_living_outputs_survive_any_order_of_writes_views_and_deaths():
    import random

    draw = random.Random(0)
    x = torch.randn(4, requires_grad=True)
    alive, nodes = [x * 1], []
    for _ in range(3000):
        t = draw.choice(alive)
        step = draw.randrange(7)
        try:
            if step == 0:
                alive.append(t * t)
            elif step == 1:
                alive.append(t.view(2, 2).view(4))
            elif step == 2:
                t.add_(1)
            elif step == 3:
                alive.append(t.sin())
                nodes.append(alive[-1].grad_fn)
            elif step == 4:
                t[1:].mul_(2)
            elif step == 5:
                t = (t * 1).detach_()
            elif len(alive) > 1:
                alive.pop(draw.randrange(len(alive)))
        except RuntimeError as error:
            assert "view" in str(error) or "leaf" in str(error)
        alive, nodes = alive[-12:], nodes[-12:]
        for node in nodes:
            try:
                saved = node._saved_self
            except RuntimeError:
                continue
            assert saved.shape == (4,) and saved.requires_grad


def test_a_dying_tensor_is_not_given_out_by_the_node_that_made_it():
    found = []
    x = torch.ones(3, requires_grad=True)
    for _ in range(10):
        y = x * 2
        node = (y + y).grad_fn
        watch = weakref.ref(y, lambda _, node=node: found.append(node._input(0)))
        del y
        assert watch() is None
    assert found == [None] * 10


def test_what_a_composed_operation_computed_on_the_way_is_no_base():
    x = torch.ones(2, 3)
    shuffled = torch.nn.functional.pixel_shuffle(torch.ones(1, 4, 2, 2), 2)
    copies = (torch.kron(x, x), torch.rot90(x), x.t().reshape(6), x.double(), x.bool(), shuffled)
    for y in (*copies, torch.quantile(x, 0.5, 0)):
        assert not y._is_view() and y._base is None
    for y in (x.reshape(6), torch.ones(6).reshape(2, 3), x.t(), x.as_strided((2,), (1,))):
        assert y._is_view() and y._base is not None


def test_a_dying_tensor_of_a_subclass_is_not_given_out_either():
    class Slotted(torch.Tensor):
        __slots__ = ("kept",)

    class Asks:
        def __init__(self, node):
            self.node = node

        def __del__(self):
            found.append(self.node._output(0))

    found = []
    x = torch.ones(3, requires_grad=True)
    y = (x * 2).as_subclass(Slotted)
    y.kept = Asks(y.grad_fn)
    del y
    for depth in (40, 49, 60, 98):  # Python postpones the end of deep nests
        y = (x * 2).as_subclass(type("Plain", (torch.Tensor,), {}))
        nest = (Asks(y.grad_fn), y)
        del y
        for _ in range(depth):
            nest = (nest,)
        del nest
    assert found == [None] * 5


def test_long_and_wide_composed_operations_are_looked_through():
    x = torch.ones(1, requires_grad=True)
    y = z = x
    for _ in range(100000):
        y = y + 1
    for _ in range(40):
        z = z + z
    for each in (y, z):
        torch._C.name_node(each, "Composed", 1)
        assert len(each.grad_fn.next_functions) == 1
    assert z.grad_fn._output(2**32) is None


def test_tensors_named_as_kept_for_their_memory():
    native, x = torch._C, torch.ones(2)
    assert not native._is_cached_tensor(x)
    with pytest.raises(RuntimeError, match="not enabled"):
        native._add_cached_tensor(x)
    native._set_cached_tensors_enabled(True)
    try:
        native._add_cached_tensor(x)
        native._add_cached_tensor(x)
        assert native._is_cached_tensor(x) and not native._is_cached_tensor(x.detach())
        native._remove_cached_tensor(x)
        native._remove_cached_tensor(x)
        assert not native._is_cached_tensor(x)
        with pytest.raises(TypeError):
            native._add_cached_tensor(3)
    finally:
        native._set_cached_tensors_enabled(False)
