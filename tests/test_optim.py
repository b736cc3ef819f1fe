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


# --- all parameters in one native step ----------------------------------------------------------------------


class Subclass(torch.Tensor):
    """Not plain: steps on it go operation by operation."""


STEPS = {
    "SGD": [{}, {"weight_decay": 0.1}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True},
            {"momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1, "maximize": True}],
    "Adam": [{}, {"weight_decay": 0.1}, {"amsgrad": True, "maximize": True}, {"betas": (0.3, 0.9)}],
    "AdamW": [{}, {"weight_decay": 0.1, "amsgrad": True}],
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("name", "options"), [(n, o) for n, each in STEPS.items() for o in each], ids=str)
def test_native_steps_are_the_operations_bit_for_bit(name, options, dtype):
    torch.manual_seed(0)
    shapes = ((5, 3), (1,), (), (0, 2), (33,))
    start = [torch.randn(shape, dtype=dtype) for shape in shapes]
    native = [value.clone().requires_grad_() for value in start]
    # A subclass in the group sends all of it through the operations.
    plain = [value.clone().as_subclass(Subclass).requires_grad_() for value in start]
    optimizers = [getattr(torch.optim, name)(params, lr=0.05, **options) for params in (native, plain)]
    for step in range(4):
        for a, b in zip(native, plain):
            a.grad = None if step == 1 and a.numel() == 1 else torch.randn(a.shape, dtype=dtype)
            b.grad = None if a.grad is None else a.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
        for a, b in zip(native, plain):
            assert a.tolist() == b.tolist()


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_native_steps_count_their_writes(name):
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    x.grad = torch.ones(3)
    optimizer = getattr(torch.optim, name)([x], lr=0.1)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_parameters_that_overlap_move_one_after_the_other(name):
    memory = torch.zeros(4)
    a, b = memory[:3].detach().requires_grad_(), memory[1:].detach().requires_grad_()
    a.grad, b.grad = torch.ones(3), torch.ones(3)
    getattr(torch.optim, name)([a, b], lr=0.5).step()
    assert memory.tolist() == pytest.approx([-0.5, -1.0, -1.0, -0.5])


def test_native_steps_refuse_what_is_no_list_of_tensors():
    x = torch.ones(2)
    options = (0.1, 0.0, 0.0, 0.0, False, False, False)
    for lists in (([x], (x,), None), ([x], [1.0], None), ([x], [x, x], None), ([x], [x], [None])):
        with pytest.raises((TypeError, ValueError)):
            torch._C.sgd_steps(*lists, *options)
    for other in (torch.ones(3), torch.ones(2, dtype=torch.float64), torch.ones(2, device="meta"), x):
        assert torch._C.sgd_steps([x], [other], None, *options) is False
    assert x.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "RAdam", "Adadelta"])
def test_a_differentiable_step_has_the_right_gradient(name):
    def moved(start, grad):
        param = start.clone()
        optimizer = getattr(torch.optim, name)([param], lr=0.1, differentiable=True)
        for scale in (1.0, 2.0):
            param.grad = grad * scale
            optimizer.step()
        return param

    start = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    grad = torch.tensor([0.5, 0.7], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(moved, (start, grad))


def test_adam_is_differentiable_in_its_options():
    def moved(lr, beta1, beta2, decay):
        param = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True).clone()
        optimizer = torch.optim.AdamW(
            [param], lr=lr, betas=(beta1, beta2), weight_decay=decay, differentiable=True
        )
        for step in range(2):
            param.grad = torch.tensor([0.5, 0.7 + step], dtype=torch.float64)
            optimizer.step()
        return param

    options = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (0.1, 0.8, 0.9, 0.01)]
    assert torch.autograd.gradcheck(moved, options)


@pytest.mark.parametrize(
    "name",
    ["Adadelta", "Adafactor", "Adagrad", "Adam", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"],
)
def test_numbers_of_old_checkpoints_become_tensors(name):
    param = one()
    optimizer = getattr(optim, name)([param])
    step(optimizer, param)
    expected = optimizer.state_dict()["state"][0]
    saved = copy.deepcopy(optimizer.state_dict())
    saved["state"][0] = {
        key: value.item() if value.dim() == 0 else value for key, value in saved["state"][0].items()
    }
    other = getattr(optim, name)([param])
    other.load_state_dict(saved)
    loaded = other.state_dict()["state"][0]
    assert all(torch.equal(loaded[key], expected[key]) for key in expected)
    step(other, param)
    assert other.state[param]["step"] == 2
