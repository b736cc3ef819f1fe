"""What a training loop leaves behind: nothing."""

import gc
import os
import warnings
import weakref

import pytest

import rushlight as torch
from rushlight.autograd import Function, graph
from rushlight.utils.checkpoint import checkpoint


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Scaled(Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(x, y)
        ctx.out = y  # refers back to itself
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def step(x, number):
    kind = number % 5
    if kind == 0:
        torch.tanh(x @ x).sum().backward()
    elif kind == 1:
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        g.sum().backward()
    elif kind == 2:
        (x * x).sum().backward(create_graph=True)
    elif kind == 3:
        y = Scaled.apply(x * 1)
        y.register_hook(lambda grad: grad + y.detach())
        y.sum().backward()
    else:
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            y = checkpoint(lambda x: torch.sin(x).exp(), x, use_reentrant=False)
        y.sum().backward()
    x.grad = None


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer keeps freed memory")
def test_ten_thousand_steps_need_no_more_memory_than_two_thousand():
    x = torch.ones(64, 64, requires_grad=True)
    for number in range(2000):
        step(x, number)
    gc.collect()
    before, objects = resident(), len(gc.get_objects())
    for number in range(8000):
        step(x, number)
    gc.collect()
    assert len(gc.get_objects()) - objects < 100
    assert resident() - before < 8e6


def test_checkpoint_holds_only_the_inputs():
    def function(x):
        for _ in range(20):
            x = torch.sin(x)
        return x

    x = torch.ones(100_000, requires_grad=True)

    def held(run):
        gc.collect()
        before = torch.memory_stats()["allocated_bytes"]
        y = run()
        return torch.memory_stats()["allocated_bytes"] - before, y

    plain, _ = held(lambda: function(x))
    for reentrant in (False, True):
        kept, y = held(lambda reentrant=reentrant: checkpoint(function, x, use_reentrant=reentrant))
        assert kept < plain / 10
        y.sum().backward()


def test_collects_a_tensor_that_a_hook_kept_and_that_its_own_history_leads_to():
    def once():
        a, b = torch.ones(1000, requires_grad=True), torch.ones(1000)
        with graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            b.mul_(a * b)

    once()
    gc.collect()
    before = torch._C.memory_stats()["allocated_bytes"]
    for _ in range(10):
        once()
    gc.collect()
    assert torch._C.memory_stats()["allocated_bytes"] == before


def test_what_a_leaf_is_given_meanwhile_is_never_read_beyond_its_end():
    x = torch.ones(4, requires_grad=True)
    edge = torch.autograd.graph.get_gradient_edge(x)
    x.data = torch.ones(600)
    with pytest.raises(
        RuntimeError, match="size of tensor a \\(600\\) must match the size of tensor b \\(4\\)"
    ):
        torch.autograd.backward(edge, torch.ones(4))
    assert x.grad is None


def test_a_pack_hook_may_free_what_it_packs():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for function, name in ((torch.exp, "_raw_saved_result"), (torch.sin, "_raw_saved_self")):
        y = function(x * 3)

        def pack(value, y=y):
            with torch.enable_grad():
                y.sum().backward()
            return value

        with pytest.raises(RuntimeError, match="register_hooks on a saved tensor after it has been freed"):
            getattr(y.grad_fn, name).register_hooks(pack, lambda value: value)
        with pytest.raises(RuntimeError, match="a second time"):
            y.sum().backward()


def test_constants_that_refer_to_their_graph_are_freed():
    x = torch.ones(2, requires_grad=True)

    def written():
        c = torch.ones(2)
        y = x * c
        c.mul_(y)
        return weakref.ref(c)

    def attribute():
        c = torch.ones(2)
        c.result = x * c
        return weakref.ref(c)

    def through_a_view():
        c = torch.ones(2)
        y = x * c
        c[0].mul_(y[0])
        return weakref.ref(c)

    for make in (written, attribute, through_a_view):
        gone = make()
        gc.collect()
        assert gone() is None, make.__name__


def test_gradients_with_a_graph_and_metadata_of_nodes_are_freed():
    def accumulated():
        x = torch.ones(3, requires_grad=True)
        for _ in range(2):
            (x * x * x).backward(torch.ones(3), create_graph=True)
        return weakref.ref(x)

    def metadata():
        x = torch.ones(3, requires_grad=True)
        y = x * x
        y.grad_fn.metadata["own"] = y.grad_fn
        return weakref.ref(x)

    def metadata_of_a_step():
        x = torch.ones(2, 2, 3, requires_grad=True)
        y = torch.nn.functional.linear(x, torch.ones(3, 3), torch.ones(3))
        y.grad_fn.next_functions[0][0].metadata["of"] = y.grad_fn
        return weakref.ref(x)

    for make in (accumulated, metadata, metadata_of_a_step):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of backward with create_graph
            gone = make()
        gc.collect()
        assert gone() is None, make.__name__
