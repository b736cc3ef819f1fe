"""What a training loop leaves behind: nothing."""

import gc
import os
import random
import subprocess
import sys
import threading
import weakref

import loops
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


@pytest.mark.parametrize("name", loops.MAKERS)
def test_loop_is_freed(name):
    assert loops.frees(loops.MAKERS[name])


def test_every_loop_is_expected_on_its_own():
    ran = subprocess.run([sys.executable, loops.__file__], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("\n", "")


def test_loops_are_freed_without_being_asked():
    def step(tokens):
        x, token = torch.ones(3, requires_grad=True), loops.Token()
        box = [token]
        x.register_hook(lambda g: (box, None)[1])
        for _ in range(20):
            x = x.sin()
        box.append(x)
        tokens.add(token)

    alive, most = weakref.WeakSet(), 0
    for _ in range(3000):
        step(alive)
        most = max(most, len(alive))
    assert most < 1000


class Kept(Function):
    @staticmethod
    def forward(ctx, x, collect):
        y = x.sin()
        ctx.save_for_backward(x, y)
        ctx.collect, ctx.y = collect, y
        return y

    @staticmethod
    def backward(ctx, grad):
        ctx.collect()
        x, _ = ctx.saved_tensors
        return grad * x.cos(), None


def program(seed, collect):
    """Gradients of a random graph. Much of it is held by nodes only while `collect` is called."""
    rng = random.Random(seed)
    leaves = [torch.full((3,), 0.1 * (i + 1), requires_grad=True) for i in range(3)]
    held = [leaf * 1 for leaf in leaves]

    def hook(grad):
        collect()
        return grad * 1

    def pack(value):
        collect()
        return [value]

    def unpack(packed):
        collect()
        return packed[0]

    for _ in range(rng.randrange(5, 25)):
        a, b = rng.choice(held), rng.choice(held)
        kind = rng.randrange(9)
        if kind == 0:
            y = a * b + a.exp()
        elif kind == 1:
            y = Kept.apply(a, collect)
        elif kind == 2:
            with graph.saved_tensors_hooks(pack, unpack):
                y = (a * b).tanh()
        elif kind == 3:
            y = checkpoint(lambda a: (collect(), a.sin().exp())[1], a, use_reentrant=False)
        elif kind == 4:
            y = a.clone()
            y[:2].mul_(b[:2])
        elif kind == 5:
            y = a.sin()
            y.register_hook(hook)
            y.grad_fn.register_prehook(lambda grads: (collect(), None)[1])
        elif kind == 6:
            y = a.cos()
            y.itself = [y, a]
        elif kind == 7:
            y = torch.ones(3)
            y.mul_(a + y)
        else:
            y = a.as_subclass(loops.Sub) * 2
            y.other = b
        held[rng.randrange(len(held))] = y.as_subclass(torch.Tensor) if type(y) is loops.Sub else y
        collect()
    loss = sum(h.sigmoid().sum() for h in held)
    del held, a, b, y
    collect()
    first = torch.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
    collect()
    loss = loss + sum(g.sin().sum() for g in first if g is not None)
    del first
    loss.backward(create_graph=rng.random() < 0.3)
    return [leaf.grad.tolist() for leaf in leaves if leaf.grad is not None]


@pytest.mark.filterwarnings("ignore:Using backward")
def test_what_only_nodes_hold_survives_collections():
    thresholds = gc.get_threshold()
    for seed in range(16):
        rng = random.Random(seed)
        expected = program(seed, lambda: None)
        try:
            if seed % 4 == 0:
                gc.set_threshold(1, 1, 1)
            got = program(
                seed, lambda rng=rng: gc.collect(rng.choice([0, 1, 2])) if rng.random() < 0.3 else 0
            )
        finally:
            gc.set_threshold(*thresholds)
        assert got == expected, seed


@pytest.mark.filterwarnings("ignore:Using backward")
def test_a_collection_in_one_thread_leaves_backward_in_another_alone():
    expected, failed, done = [program(seed, lambda: None) for seed in range(10)], [], threading.Event()

    def work():
        for _ in range(3):
            failed.extend(s for s in range(10) if program(s, lambda: None) != expected[s])

    def collect():
        while not done.wait(0.0005):
            gc.collect()

    collector, workers = threading.Thread(target=collect), [threading.Thread(target=work) for _ in range(2)]
    for thread in [collector, *workers]:
        thread.start()
    for thread in workers:
        thread.join()
    done.set()
    collector.join()
    assert not failed
