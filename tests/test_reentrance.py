"""Python code that runs in the middle of native work (hooks, modes, user-defined Functions), or between
forward and backward, and pulls away what that works on: it ends in an error or in a result, never in a
crash, and what is thrown away is freed."""

import contextlib
import gc
import sys
import weakref

import pytest

import rushlight as torch
from rushlight.autograd import forward_ad
from rushlight.autograd.graph import register_multi_grad_hook, saved_tensors_hooks
from rushlight.utils._python_dispatch import TorchDispatchMode


class SavesThree(torch.autograd.Function):
    context = None

    @staticmethod
    def forward(ctx, x):
        SavesThree.context = ctx
        ctx.save_for_backward(x, x * 2, x * 3)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[1]

    @staticmethod
    def jvp(ctx, tangent):
        ctx.save_for_backward()
        return tangent * 2


def test_a_pack_hook_that_asks_for_other_values_is_too_late():
    def pack(t):
        SavesThree.context.to_save = None
        return t

    x = torch.ones(2, requires_grad=True)
    with saved_tensors_hooks(pack, lambda t: t):
        y = SavesThree.apply(x)
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_a_jvp_that_asks_for_other_values_is_too_late():
    x = torch.ones(2, requires_grad=True)
    with forward_ad.dual_level():
        y = SavesThree.apply(forward_ad.make_dual(x, torch.ones(2)))
        assert forward_ad.unpack_dual(y).tangent.tolist() == [2, 2]
        y.sum().backward()
    assert x.grad.tolist() == [2, 2]


@pytest.mark.parametrize("first", [0, 1])
def test_writing_a_view_and_returning_more_than_it_is_refused(first):
    class Doubles(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x.mul_(2))
            return (x, "more") if first == 0 else ("more", x)

        @staticmethod
        def backward(ctx, *grads):
            return grads[first] * 2

    base = torch.ones(4, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="cannot return more than one Tensor"):
        Doubles.apply(base[:2])


class Exchanging(TorchDispatchMode):
    """Takes the leaf's gradient away, or exchanges the leaf, whenever it is asked."""

    def __init__(self, leaf, swap):
        super().__init__()
        self.leaf, self.swap = leaf, swap

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if self.swap:
            torch.utils.swap_tensors(self.leaf, torch.zeros(4, requires_grad=True))
        else:
            self.leaf.grad = None
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("has_grad", [False, True])
def test_a_mode_takes_the_gradient_away_while_it_is_accumulated(swap, create_graph, has_grad):
    leaf = torch.ones(4, requires_grad=True)
    loss = (leaf * 2).sum()
    if has_grad:
        leaf.grad = torch.ones(4)
    with Exchanging(leaf, swap):
        if swap:
            with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
                loss.backward(create_graph=create_graph)
        else:
            loss.backward(create_graph=create_graph)
    assert leaf.grad is None or leaf.grad.tolist() in ([2] * 4, [3] * 4)


def test_a_mode_takes_the_retained_gradient_away():
    hidden = torch.ones(4, requires_grad=True) * 1
    hidden.retain_grad()
    loss = (hidden * 2).sum()
    loss.backward(retain_graph=True)
    with Exchanging(hidden, False):
        loss.backward()
    assert hidden.grad is None or hidden.grad.tolist() == [4] * 4


def test_nothing_becomes_its_own_base_or_gradient():
    base, leaf = torch.ones(4), torch.ones(2, requires_grad=True)
    view = base[:2]
    leaf.grad = gradient = torch.zeros(2)
    for a, b in ((base, view), (view, base), (leaf, gradient), (gradient, leaf)):
        with pytest.raises(RuntimeError, match="not possible to get the gradient edge"):
            torch.utils.swap_tensors(a, b)


@pytest.mark.parametrize("data", [torch.tensor(1.0), torch.ones(3), torch.ones(2, 1, 2), torch.ones(0, 5)])
@pytest.mark.parametrize(
    "function", [torch.inverse, lambda x: x @ x, lambda x: torch.ones(2) @ x, torch.linalg.cholesky]
)
def test_saved_values_of_other_dimensions_are_not_read_beyond(function, data):
    x = torch.eye(2, requires_grad=True) * 2
    y = function(x)
    gradient = torch.ones(y.shape)
    x.data = y.data = data
    with contextlib.suppress(RuntimeError):
        y.backward(gradient)


@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 3), (0, 2)])
def test_a_node_called_with_a_gradient_of_another_shape(shape):
    x = torch.ones(6, requires_grad=True) * 1
    with pytest.raises(RuntimeError):
        x.as_strided((2, 2), (2, 1)).grad_fn(torch.ones(shape))


def test_names_that_are_no_text():
    with pytest.raises(UnicodeEncodeError):
        torch.device(**{"\ud800": 1})

    class Odd:
        dtype = type("", (), {"__str__": lambda self: "\ud800"})()

    with pytest.raises(UnicodeEncodeError):
        torch.tensor([Odd()])
    code = "x = torch.ones(2, requires_grad=True)\ny = x * x\ny.sum().backward()\ny.sum().backward()"
    with pytest.raises(RuntimeError, match=r"(?s)a second time .*\\udcff.py"):
        exec(compile(code, "\udcff.py", "exec"), {"torch": torch})
    assert not hasattr(torch.add, "\ud800")


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        x.context = ctx
        raise ValueError

    @staticmethod
    def backward(ctx, g):
        return g


def failing_forward(w):
    with pytest.raises(ValueError):
        Fails.apply(w * 1)
    return w


def handle_of_a_saved_value(w):
    w.handle = (w * w.exp()).grad_fn._raw_saved_self
    return w


def hooks_of_a_saved_value(w):
    y = w * w.exp()
    handle = y.grad_fn._raw_saved_self
    handle.register_hooks(lambda t: (t, handle, y), lambda packed: packed[0])
    return w


def node_and_list_as_attributes(w):
    w.node, w.results = (w * 2).grad_fn, [w * 3]
    return w


def metadata_of_its_own_output(w):
    y = w * 2
    y.grad_fn.metadata["output"] = y
    return y


def hook_on_several(w):
    other = torch.ones(4, requires_grad=True)
    register_multi_grad_hook([w, other], lambda grads: (w, other))
    (w * other).sum().backward()
    return w


@pytest.mark.parametrize(
    "program",
    [
        failing_forward,
        handle_of_a_saved_value,
        hooks_of_a_saved_value,
        node_and_list_as_attributes,
        metadata_of_its_own_output,
        hook_on_several,
    ],
)
def test_loops_through_what_a_program_looked_at_are_freed(program):
    tensor = program(torch.ones(4, requires_grad=True))
    alive = weakref.ref(tensor)
    del tensor
    gc.collect()
    assert alive() is None


class Interrupted(Exception):
    """What the handler of a signal raises, wherever Python code runs."""


@pytest.mark.parametrize("call", [
    lambda x: x.logsumexp(0), lambda x: x.sort(), lambda x: torch.cdist(x, x),
    lambda x: torch.nn.functional.interpolate(x[None], scale_factor=2.0), lambda x: x.view(3, 2).norm("fro"),
    lambda x: x.std(0, unbiased=False), lambda x: x.sum("a"),
    lambda x: torch.linalg.solve(x @ x.mT, x), lambda x: x.clone().clamp_(x, 2),
    lambda x: x[[torch.tensor([0]), slice(0, 2)]], lambda x: torch.quantile(x, 0.3), repr,
])  # fmt: skip
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_interruption_is_told_wherever_it_comes(call):
    """Raises at each call of a function of the package in turn, as a handler could."""
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    with contextlib.suppress(TypeError):  # that one is wrong
        call(x)
    package, calls, at = torch.__path__[0], 0, 0

    def interrupt(frame, event, _):
        nonlocal calls
        if event == "call" and frame.f_code.co_filename.startswith(package):
            calls += 1
            if calls == at:
                raise Interrupted

    while at <= calls:
        calls, at = 0, at + 1
        before = sys.gettrace()
        sys.settrace(interrupt)
        try:
            call(x)
            told = None
        except Exception as error:
            told = type(error)
        finally:
            sys.settrace(before)
        assert calls < at or told is Interrupted, at
        torch.set_grad_enabled(True)
    assert at > 1
