"""What torch's test files for modes, threads, checkpoints, hooks and sparse gradients ask, a few lines each."""

import pytest
import torch
from outcomes import collector, err, outcome

import rushlight

pytestmark = pytest.mark.torch

CASES, case = collector()


@case("views of what inference mode made with a gradient")
def _(torch):
    seen = []
    for viewed in (torch.no_grad, torch.enable_grad, torch.inference_mode):
        for take in (lambda x: x.view(-1), lambda x: x.t(), lambda x: x[:, 1:], lambda x: x.chunk(2)[0]):
            for written in (0, 1):
                with torch.inference_mode():
                    x = torch.ones(2, 3, requires_grad=True)
                with viewed():
                    view = take(x)
                with torch.inference_mode():
                    (x, view)[written].mul_(2)
                seen.append([(t.requires_grad, t.is_leaf, t.grad_fn, t._is_view()) for t in (x, view)])
                seen.append((err(lambda: view * 2), err(lambda: view.mul_(2)), err(lambda: view.sum().backward())))
    return seen


@pytest.mark.parametrize("name", CASES)
def test_it_gives_what_torch_gives(name):
    assert outcome(lambda: CASES[name](rushlight)) == outcome(lambda: CASES[name](torch))
