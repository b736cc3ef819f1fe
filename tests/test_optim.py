"""Optimizers on their own, with the numbers written down."""

import copy
import gc
import pickle
import weakref

import pytest

import rushlight as torch
from rushlight import nn, optim


def one(value=1.0):
    return nn.Parameter(torch.tensor([value]))


def step(optimizer, *params):
    for param in params:
        param.grad = torch.full_like(param, 2.0)
    optimizer.step()


def test_sgd_by_hand():
    x = one()
    optimizer = optim.SGD([x], lr=0.5, momentum=0.5, weight_decay=1.0)
    step(optimizer, x)  # gradient 2 + 1 = 3, buffer 3
    assert x.item() == pytest.approx(1 - 0.5 * 3)
    step(optimizer, x)  # gradient 2 - 0.5 = 1.5, buffer 1.5 + 1.5 = 3
    assert x.item() == pytest.approx(-0.5 - 0.5 * 3)


def test_nesterov_and_maximize_by_hand():
    x = one()
    optimizer = optim.SGD([x], lr=0.1, momentum=0.5, nesterov=True, maximize=True)
    step(optimizer, x)  # gradient -2, buffer -2, direction -2 - 1
    assert x.item() == pytest.approx(1.3)


def test_adam_by_hand():
    x = one()
    step(optim.Adam([x], lr=0.1), x)  # the first step is lr times the sign
    assert x.item() == pytest.approx(0.9)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: optim.SGD(p, lr=0.1),
        lambda p: optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
        lambda p: optim.Adam(p, lr=0.3),
        lambda p: optim.AdamW(p, lr=0.3, weight_decay=0.0),
        lambda p: optim.Adamax(p, lr=0.3),
        lambda p: optim.NAdam(p, lr=0.3),
        lambda p: optim.RAdam(p, lr=0.3),
        lambda p: optim.Adagrad(p, lr=1.0),
        lambda p: optim.Adadelta(p, lr=100.0),
        lambda p: optim.RMSprop(p, lr=0.05),
        lambda p: optim.Rprop(p, lr=0.1),
        lambda p: optim.ASGD(p, lr=0.1),
        lambda p: optim.Adafactor(p, lr=0.3),
    ],
)
def test_finds_a_minimum(make):
    x = nn.Parameter(torch.tensor([[3.0, -2.0], [0.5, 1.0]]))
    optimizer = make([x])

    def loss():
        return ((x - 1) ** 2).sum()

    for _ in range(300):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    assert loss().item() < 1e-2


def test_lbfgs_finds_a_curved_minimum():
    x = nn.Parameter(torch.tensor([-1.5, 2.0], dtype=torch.float64))
    optimizer = optim.LBFGS([x], line_search_fn="strong_wolfe", max_iter=100)

    def closure():
        optimizer.zero_grad()
        loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        loss.backward()
        return loss

    optimizer.step(closure)
    assert x.tolist() == pytest.approx([1.0, 1.0], abs=1e-5)


def test_step_returns_the_closures_loss():
    x = one()
    optimizer = optim.SGD([x], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 1.0
    assert x.item() == 0.0


def test_zero_grad():
    x = one()
    optimizer = optim.SGD([x])
    x.grad = torch.ones(1)
    grad = x.grad
    optimizer.zero_grad(set_to_none=False)
    assert x.grad is grad
    assert grad.item() == 0.0
    optimizer.zero_grad()
    assert x.grad is None


def test_parameters_without_gradient_stay():
    x, y = one(), one()
    optimizer = optim.Adam([x, y], lr=0.1)
    step(optimizer, x)
    assert y.item() == 1.0
    assert y not in optimizer.state


def test_step_writes_in_place():
    x = one()
    version, pointer = x._version, x.data_ptr()
    step(optim.SGD([x], lr=0.5), x)
    assert x._version > version
    assert x.data_ptr() == pointer
    assert x.is_leaf
    assert x.requires_grad


@pytest.mark.parametrize("again", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copies(again):
    x = one()
    optimizer = optim.Adam([x], lr=0.1)
    step(optimizer, x)
    other = again(optimizer)
    (y,) = other.param_groups[0]["params"]
    assert y is not x
    step(other, y)
    step(optimizer, x)
    assert y.item() == x.item()


def test_resuming_continues_exactly():
    x, y = one(), one()
    first, second = optim.Adam([x], lr=0.1, amsgrad=True), optim.Adam([y])
    for _ in range(3):
        step(first, x)
    with torch.no_grad():
        y.copy_(x)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for _ in range(3):
        step(first, x)
        step(second, y)
    assert x.item() == y.item()


def test_hooks():
    x = one()
    optimizer = optim.SGD([x], lr=0.5)
    log = []
    handles = [
        optimizer.register_step_pre_hook(lambda o, args, kwargs: log.append("pre")),
        optimizer.register_step_post_hook(lambda o, args, kwargs: log.append("post")),
        optimizer.register_state_dict_pre_hook(lambda o: log.append("saving")),
        optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1}),
        optimizer.register_load_state_dict_pre_hook(lambda o, state: log.append("loading")),
        optimizer.register_load_state_dict_post_hook(lambda o: log.append("loaded")),
    ]
    step(optimizer, x)
    state = optimizer.state_dict()
    assert state["more"] == 1
    optimizer.load_state_dict(state)
    assert log == ["pre", "post", "saving", "loading", "loaded"]
    for handle in handles:
        handle.remove()
    step(optimizer, x)
    assert len(log) == 5


def test_a_users_optimizer_has_hooks_too():
    class Halve(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                for param in group["params"]:
                    param.mul_(0.5)

    x = one()
    optimizer = Halve([x])
    log = []
    optimizer.register_step_post_hook(lambda *args: log.append(1))
    optimizer.step()
    assert x.item() == 0.5
    assert log == [1]


def test_differentiable_step():
    start = torch.tensor([2.0], requires_grad=True)
    lr = torch.tensor(0.25, requires_grad=True)
    x = start.clone()
    x.retain_grad()
    optimizer = optim.SGD([x], lr=lr, differentiable=True)
    (x.grad,) = torch.autograd.grad((x * x).sum(), x, create_graph=True)
    optimizer.step()
    x.sum().backward()
    assert start.grad.item() == pytest.approx(1 - 0.25 * 2)
    assert lr.grad.item() == pytest.approx(-4.0)


def test_schedulers_do_not_keep_the_optimizer_alive_in_a_cycle():
    optimizer = optim.SGD([one()])
    optim.lr_scheduler.StepLR(optimizer, 1)
    gone = weakref.ref(optimizer)
    gc.disable()
    try:
        del optimizer
        assert gone() is None
    finally:
        gc.enable()


def test_warmup_then_cosine():
    x = one()
    optimizer = optim.SGD([x], lr=1.0)
    warmup = optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    cosine = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    scheduler = optim.lr_scheduler.SequentialLR(optimizer, [warmup, cosine], milestones=[2])
    rates = []
    for _ in range(5):
        rates.append(scheduler.get_last_lr()[0])
        step(optimizer, x)
        scheduler.step()
    assert rates == pytest.approx([0.5, 0.75, 1.0, 0.5, 0.0])


def test_torchs_import_paths():
    from rushlight.optim.adam import Adam
    from rushlight.optim.lr_scheduler import LRScheduler, _LRScheduler
    from rushlight.optim.optimizer import Optimizer
    from rushlight.optim.sgd import SGD

    assert (Adam, SGD, Optimizer) == (optim.Adam, optim.SGD, optim.Optimizer)
    assert _LRScheduler is LRScheduler
    assert {"Adam", "LBFGS", "lr_scheduler"} <= set(dir(optim))
