"""What nodes show while somebody looks on, and what counts as holding a tensor: as in torch."""

import contextlib

import pytest
import torch

import rushlight

LIBS = (rushlight, torch)


def edges(node):
    return [None if after is None else after.name() for after, _ in node.next_functions]


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("running", [False, True])
def test_batch_norm_has_an_edge_for_each_of_its_variables(tracked, affine, running):
    found = []
    for lib in LIBS:
        x = lib.arange(24.0).reshape(4, 3, 2).requires_grad_()
        parameters = [lib.ones(3, requires_grad=True) if affine else None for _ in range(2)]
        statistics = (lib.zeros(3), lib.ones(3)) if running else (None, None)
        # Made is entered.
        with lib.autograd._force_original_view_tracking(True) if tracked else contextlib.nullcontext():
            y = lib.nn.functional.batch_norm(x, *statistics, *parameters, training=True)
            z = lib.nn.functional.instance_norm(x, None, None, *parameters)
        y.pow(2).sum().backward()
        grads = [None if each is None else each.grad.tolist() for each in parameters]
        found.append((y.grad_fn.name(), edges(y.grad_fn), edges(z.grad_fn), grads))
    assert found[0][:3] == found[1][:3]
    assert [each and pytest.approx(each, abs=1e-4) for each in found[0][3]] == found[1][3]


HELD = {
    "linear": lambda lib, t, other: lib.nn.functional.linear(other, t),
    "linear with a bias": lambda lib, t, other: lib.nn.functional.linear(other, t, other[0]),
    "linear of a batch": lambda lib, t, other: lib.nn.functional.linear(other[None], t, other[0]),
    "linear by another": lambda lib, t, other: lib.nn.functional.linear(t, other),
    "weight of a constant": lambda lib, t, other: lib.nn.functional.linear(other.detach(), t),
    "complex": lambda lib, t, other: lib.complex(t, other),
    "complex of another": lambda lib, t, other: lib.complex(other, t),
    "cdist": lambda lib, t, other: lib.cdist(t, other),
    "logsumexp": lambda lib, t, other: t.logsumexp(0),
    "sum": lambda lib, t, other: t.sum(),
}


@pytest.mark.parametrize("call", HELD)
def test_what_a_graph_keeps_of_a_leaf_cannot_be_swapped(call):
    found = []
    for lib in LIBS:
        t, other = (lib.rand(3, 3, requires_grad=True) for _ in range(2))
        y = HELD[call](lib, t, other)
        told = []
        for _ in range(2):
            try:
                lib.utils.swap_tensors(t, lib.ones(3, 3))
                told.append(None)
            except RuntimeError as error:
                told.append(str(error))
            y = None
        assert y is None
        found.append(told)
    assert found[0] == found[1]


@pytest.mark.parametrize("call", ["celu_(y)", "rrelu_(y, 0.1, 0.4, False)", "relu6(y, inplace=True)"])
def test_a_node_that_a_hook_has_seen_gets_its_name(call):
    found = []
    for lib in LIBS:
        y = lib.tensor([0.3, -0.8], requires_grad=True) * 1

        def looked_at(t):
            assert t.grad_fn is None or t.grad_fn.name()
            return t

        with lib.autograd.graph.saved_tensors_hooks(looked_at, lambda t: t):
            z = eval(f"F.{call}", {"F": lib.nn.functional, "y": y})
        found.append((z.grad_fn.name(), type(z.grad_fn).__name__))
    assert found[0] == found[1]
