"""What nodes and passes show at the edges: hooks that come late, batches, warnings said once."""

import warnings

import pytest
import torch as torch_itself
from corners import short_names
from outcomes import collector, err, outcome

import rushlight


def cases(torch):
    found, case = collector()
    L = short_names(torch).L

    class Registers(torch.autograd.graph.saved_tensors_hooks):
        """Unpacking adds a hook after the node that asks, which halves what it gives."""

        def __init__(self, seen):
            def unpack(x):
                def halve(inputs, outputs):
                    seen.append((inputs, outputs))
                    return tuple(g / 2 for g in inputs)

                torch._C._current_autograd_node().register_hook(halve)
                return x

            super().__init__(lambda x: x, unpack)

    @case("hooks from unpacking see no gradients")
    def _():
        seen, a = [], L(2)
        with Registers(seen):
            b = a * a.clone()
        b.sum().backward()
        return seen, a.grad

    @case("hooks from unpacking see them if others were there before")
    def _():
        seen, a = [], L(2)
        with Registers(seen):
            b = a.sin()
        b.grad_fn.register_hook(lambda *given: seen.append(given))
        b.sum().backward()
        return seen, a.grad

    @case("the hooks of a Function that unpacks")
    def _():
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, g):
                return 2 * g * ctx.saved_tensors[0]

        seen, a = [], L(2)
        with Registers(seen):
            b = F.apply(a)
        b.sum().backward()
        return seen, a.grad

    def late(register):
        seen, a = [], L(2)
        b = a * 1
        node = b.grad_fn.next_functions[0][0]
        register(a, node, lambda *_: node.register_hook(lambda *given: seen.append(given)) and None)
        b.sum().backward()
        return seen

    case("late hooks of a leaf, from its own")(lambda: late(lambda a, node, f: a.register_hook(f)))
    case("from hooks before its node")(lambda: late(lambda a, node, f: node.register_prehook(f)))
    case("from hooks after its gradient")(
        lambda: late(lambda a, node, f: a.register_post_accumulate_grad_hook(f))
    )

    @case("batches without gradients")
    def _():
        x = L(2)
        grad = torch.autograd.grad
        return [
            err(grad, x.sum(), x, is_grads_batched=True),
            err(grad, (x.sum(), x * 2), x, (None, torch.ones(3, 2)), is_grads_batched=True),
        ]

    @case("a profile that has not ended")
    def _():
        profile = torch.autograd.profiler.profile()
        return str(profile), repr(profile)

    @case("traced functions")
    def _():
        def double(x):
            return 2 * x

        return [
            torch.jit.trace(double, torch.ones(2))(torch.ones(1)),
            torch.jit.trace(double, example_kwarg_inputs={"x": torch.ones(2)})(torch.ones(1)),
            torch.jit._wait(torch.jit._fork(torch.jit.trace(double, (torch.ones(2),)), torch.ones(3))),
        ]

    return found


HERE, THERE = cases(rushlight), cases(torch_itself)


@pytest.mark.parametrize("name", HERE)
def test_as_in_torch(name):
    mine, theirs = outcome(HERE[name]), outcome(THERE[name])
    assert mine[0].replace("rushlight", "torch") == theirs[0]


def times_warned(torch, always):
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(always)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                torch.ones(2, dtype=torch.complex64).to(torch.int16)
        return len(caught)
    finally:
        torch.set_warn_always(before)


def test_warnings_that_are_always_given_do_not_count_as_said():
    from rushlight import _warn

    _warn._warned.discard("Casting complex values to real discards the imaginary part")
    assert [times_warned(rushlight, always) for always in (True, False, True)] == [2, 1, 2]
    assert times_warned(torch_itself, True) == 2
