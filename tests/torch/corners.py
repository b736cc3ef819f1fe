"""What the corner cases of autograd share: short names for leaves, names of nodes, an error as a string; and
the test that runs them in both libraries."""

import math
from types import SimpleNamespace

import pytest
import torch as torch_itself
from outcomes import outcome

import rushlight


def short_names(torch):
    def leaf(*sizes):
        return torch.ones(*sizes, requires_grad=True)

    def numbers(*sizes):
        return torch.arange(1.0, 1 + math.prod(sizes)).reshape(sizes).clone().requires_grad_()

    def doubles(*sizes):
        return numbers(*sizes).double().detach().requires_grad_()

    def error_or_result(f):
        try:
            return f()
        except Exception as error:
            return type(error).__name__ + ": " + str(error).splitlines()[0]

    def checked(f, *args):
        """Whether both gradient checks pass."""
        checks = torch.autograd
        return error_or_result(lambda: checks.gradcheck(f, args) and checks.gradgradcheck(f, args))

    def node_name(tensor):
        return tensor.grad_fn and tensor.grad_fn.name()

    return SimpleNamespace(L=leaf, R=numbers, D=doubles, nm=node_name, E=error_or_result, gc_=checked)


def same_in_torch(cases):
    """A test of every program that `cases(library)` names: it ends alike in both libraries."""
    here, there = cases(rushlight), cases(torch_itself)

    @pytest.mark.parametrize("name", here)
    def test_as_in_torch(name):
        mine, theirs = outcome(here[name]), outcome(there[name])
        assert mine[0].replace("rushlight", "torch") == theirs[0]

    return test_as_in_torch
