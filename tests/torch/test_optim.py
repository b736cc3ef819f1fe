"""Optimizers and schedulers against torch: the same problem, the same steps, the same numbers to rounding."""

import copy
import itertools
import math
import pickle
import warnings

import pytest
import torch
from expressions import outcome

import rushlight

STEPS = 100


def choices(**options):
    """All combinations, one of them per dictionary."""
    return [dict(zip(options, values)) for values in itertools.product(*options.values())]


YES_NO = (False, True)
OPTIMIZERS = {
    "SGD": [
        *choices(lr=[0.05], momentum=[0, 0.9], weight_decay=[0, 0.1], maximize=YES_NO, dampening=[0, 0.2]),
        *choices(lr=[0.05], momentum=[0.9], nesterov=[True], weight_decay=[0, 0.1]),
        *choices(lr=[0.05], foreach=[True, False, None], momentum=[0.5]),
        {"lr": 0.05, "fused": True, "momentum": 0.5},
        {},
    ],
    "Adam": [
        *choices(
            lr=[0.05], weight_decay=[0, 0.1], amsgrad=YES_NO, maximize=YES_NO, decoupled_weight_decay=YES_NO
        ),
        *choices(foreach=[True, False], betas=[(0.5, 0.9)], eps=[1e-3]),
        {"fused": True},
        {},
    ],
    "AdamW": [*choices(lr=[0.05], weight_decay=[0, 0.1], amsgrad=YES_NO, maximize=YES_NO), {}],
    "Adamax": [*choices(lr=[0.05], weight_decay=[0, 0.1], maximize=YES_NO), {}],
    "NAdam": [
        *choices(lr=[0.05], weight_decay=[0, 0.1], maximize=YES_NO, decoupled_weight_decay=YES_NO),
        {"momentum_decay": 0.1},
        {},
    ],
    "RAdam": [*choices(lr=[0.05], weight_decay=[0, 0.1], maximize=YES_NO, decoupled_weight_decay=YES_NO), {}],
    "Adagrad": [
        *choices(
            lr=[0.05],
            lr_decay=[0, 0.1],
            weight_decay=[0, 0.1],
            maximize=YES_NO,
            initial_accumulator_value=[0, 0.2],
        ),
        {"fused": True},
        {},
    ],
    "Adadelta": [*choices(lr=[0.5], rho=[0.9, 0.5], weight_decay=[0, 0.1], maximize=YES_NO), {}],
    "RMSprop": [
        *choices(lr=[0.01], momentum=[0, 0.9], centered=YES_NO, weight_decay=[0, 0.1], maximize=YES_NO),
        {},
    ],
    "Rprop": [
        *choices(lr=[0.01], etas=[(0.5, 1.2), (0.3, 1.5)], maximize=YES_NO),
        {"step_sizes": (1e-3, 0.1)},
    ],
    "ASGD": [
        *choices(lr=[0.05], weight_decay=[0, 0.1], t0=[10, 1e6], lambd=[1e-4, 0.1], maximize=YES_NO),
        {},
    ],
    "Adafactor": [
        *choices(lr=[0.05], weight_decay=[0, 0.1], maximize=YES_NO),
        {"d": 2.0, "eps": (1e-3, 0.1)},
        {},
    ],
}
CASES = [(name, options) for name, all_options in OPTIMIZERS.items() for options in all_options]


def problem(library, dtype="float64", shapes=((3, 2), (4,))):
    """Parameters and a function of them with a minimum inside."""
    generator = torch.Generator().manual_seed(0)
    starts = [torch.randn(shape, generator=generator, dtype=torch.float64).tolist() for shape in shapes]
    targets = [torch.randn(shape, generator=generator, dtype=torch.float64).tolist() for shape in shapes]
    kind = getattr(library, dtype)
    params = [library.nn.Parameter(library.tensor(start, dtype=kind)) for start in starts]
    goals = [library.tensor(target, dtype=kind) for target in targets]

    def loss(step=0):
        # The minimum wanders: near one that stays, gradients vanish and their rounding is all that is left.
        total = 0
        for i, (param, goal) in enumerate(zip(params, goals)):
            away = param - goal - math.sin(step)
            total = total + (away**2).sum() * (i + 1) + (param * goal).sin().sum()
        return total

    return params, loss


def values(params):
    return [value for p in params for value in p.detach().reshape(-1).tolist()]


def assert_close(ours, theirs, tolerance):
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs):
        assert (
            one == other
            or abs(one - other) <= tolerance * (1 + abs(other))
            or (one != one and other != other)
        )


def run(library, name, options, steps=STEPS, dtype="float64"):
    params, loss = problem(library, dtype)
    optimizer = getattr(library.optim, name)(params, **options)
    for step in range(steps):
        optimizer.zero_grad()
        loss(step).backward()
        optimizer.step()
    return params, optimizer


def plain(value):
    """State as plain Python values."""
    if isinstance(value, (torch.Tensor, rushlight.Tensor)):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return value


def assert_same_state(ours, theirs, tolerance):
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key in theirs:
            assert_same_state(ours[key], theirs[key], tolerance)
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs):
            assert_same_state(one, other, tolerance)
    elif isinstance(theirs, float):
        assert_close([ours], [theirs], tolerance)
    else:
        assert ours == theirs


@pytest.mark.parametrize(("name", "options"), CASES, ids=[f"{name}-{options}" for name, options in CASES])
def test_a_hundred_steps(name, options):
    ours, our_optimizer = run(rushlight, name, options)
    theirs, their_optimizer = run(torch, name, options)
    assert_close(values(ours), values(theirs), 1e-9)
    assert_same_state(plain(our_optimizer.state_dict()), plain(their_optimizer.state_dict()), 1e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_hundred_steps_in_single_precision(name):
    ours, _ = run(rushlight, name, {}, dtype="float32")
    theirs, _ = run(torch, name, {}, dtype="float32")
    assert_close(values(ours), values(theirs), 2e-5)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_state_dicts_are_interchangeable(name):
    """Fifty steps in torch, fifty more with its state loaded here."""
    theirs, their_optimizer = run(torch, name, {}, steps=50)
    params, loss = problem(rushlight)
    with rushlight.no_grad():
        for p, q in zip(params, theirs):
            p.copy_(rushlight.tensor(q.tolist(), dtype=rushlight.float64))
    optimizer = getattr(rushlight.optim, name)(params)

    def translated(value):
        if isinstance(value, torch.Tensor):
            return rushlight.tensor(
                value.tolist(), dtype=getattr(rushlight, str(value.dtype).removeprefix("torch."))
            )
        if isinstance(value, dict):
            return {key: translated(entry) for key, entry in value.items()}
        return [translated(entry) for entry in value] if isinstance(value, list) else value

    optimizer.load_state_dict(translated(their_optimizer.state_dict()))
    for step in range(50, 100):
        optimizer.zero_grad()
        loss(step).backward()
        optimizer.step()
    # Loading casts state to the parameters' dtype, in torch too: ASGD's float32 rate is finer from then on.
    assert_close(values(params), values(run(torch, name, {})[0]), 1e-7)


@pytest.mark.parametrize(
    "options", [{}, {"line_search_fn": "strong_wolfe"}, {"history_size": 2, "max_iter": 7}]
)
@pytest.mark.parametrize("lr", [1, 0.1])
def test_lbfgs(options, lr):
    results = []
    for library in (rushlight, torch):
        params, loss = problem(library)
        optimizer = library.optim.LBFGS(params, lr=lr, **options)
        calls = []

        def closure(optimizer=optimizer, loss=loss, calls=calls):
            optimizer.zero_grad()
            value = loss()
            value.backward()
            calls.append(value.item())
            return value

        first = [optimizer.step(closure).item() for _ in range(5)]
        state = optimizer.state_dict()["state"][0]
        results.append((values(params) + first + calls, state["n_iter"], state["func_evals"]))
    assert_close(results[0][0], results[1][0], 1e-7)
    assert results[0][1:] == results[1][1:]


@pytest.mark.parametrize(
    "options", [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}, {"ns_steps": 3}]
)
def test_muon(options):
    results = []
    for library in (rushlight, torch):
        params, loss = problem(library, "float32", shapes=((3, 2), (2, 5)))
        optimizer = library.optim.Muon(params, lr=0.05, **options)
        for _ in range(10):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
        results.append(values(params))
    # The iteration runs in bfloat16, where a different order of summation shows.
    assert_close(*results, 2e-2)


SCHEDULERS = {
    "lambda": lambda s, o: s.LambdaLR(o, lambda epoch: 0.95**epoch),
    "lambdas": lambda s, o: s.LambdaLR(o, [lambda epoch: 0.95**epoch, lambda epoch: epoch]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.9),
    "step": lambda s, o: s.StepLR(o, 3, 0.5),
    "multi step": lambda s, o: s.MultiStepLR(o, [2, 5, 5, 9]),
    "constant": lambda s, o: s.ConstantLR(o, 0.5, 4),
    "linear": lambda s, o: s.LinearLR(o, 0.25, 0.9, 6),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.9),
    "polynomial": lambda s, o: s.PolynomialLR(o, 7, 2.0),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 5, 0.01),
    "sequential": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 20), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 4)], [3, 9]
    ),
    "chained": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 5), s.ExponentialLR(o, 0.9)]),
    "nested": lambda s, o: s.SequentialLR(
        o, [s.ChainedScheduler([s.LinearLR(o), s.ExponentialLR(o, 0.9)]), s.StepLR(o, 2)], [5]
    ),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, 4),
    "cyclic 2": lambda s, o: s.CyclicLR(o, 0.01, [0.1, 0.2], 3, mode="triangular2"),
    "cyclic exp": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, mode="exp_range", gamma=0.9, cycle_momentum=False),
    "cyclic own": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, scale_fn=lambda x: 1 / x, scale_mode="cycle"),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.001),
    "restarts 1": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3),
    "one cycle": lambda s, o: s.OneCycleLR(o, 0.3, total_steps=25),
    "one cycle 3": lambda s, o: s.OneCycleLR(
        o, [0.3, 0.1], epochs=5, steps_per_epoch=5, three_phase=True, anneal_strategy="linear"
    ),
}


def two_groups(library, kind):
    params = [library.nn.Parameter(library.ones(1)) for _ in range(2)]
    options = {"momentum": 0.9} if kind == "SGD" else {}
    groups = [{"params": [params[0]], "lr": 0.5}, {"params": [params[1]], "lr": 0.05}]
    return getattr(library.optim, kind)(groups, **options)


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_scheduler(name, kind):
    """Twenty epochs with a restart from state dicts in the middle, bit for bit."""
    seen = []
    for library in (rushlight, torch):
        make = SCHEDULERS[name]
        optimizer = two_groups(library, kind)
        rates = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scheduler = make(library.optim.lr_scheduler, optimizer)
            for epoch in range(20):
                rates.append(scheduler.get_last_lr())
                rates.append([(g["lr"], g.get("momentum"), g.get("betas")) for g in optimizer.param_groups])
                optimizer.step()
                scheduler.step()
                if epoch == 10:
                    state, optimizer_state = scheduler.state_dict(), optimizer.state_dict()
                    optimizer = two_groups(library, kind)
                    optimizer.load_state_dict(optimizer_state)
                    scheduler = make(library.optim.lr_scheduler, optimizer)
                    optimizer.load_state_dict(optimizer_state)
                    scheduler.load_state_dict(state)
        seen.append((rates, sorted(scheduler.state_dict())))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("name", list(SCHEDULERS)[:10])
def test_scheduler_at_an_epoch(name):
    seen = []
    for library in (rushlight, torch):
        optimizer = two_groups(library, "SGD")
        scheduler = SCHEDULERS[name](library.optim.lr_scheduler, optimizer)
        optimizer.step()
        rates = []
        for epoch in (3, 1, 7, 20):
            with pytest.warns(UserWarning, match="The epoch parameter"):
                scheduler.step(epoch)
            rates.append(scheduler.get_last_lr())
        seen.append(rates)
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 2},
        {"mode": "max", "threshold_mode": "abs", "cooldown": 1, "min_lr": [0.1, 0.001], "patience": 2},
        {"patience": 1, "factor": 0.5},
    ],
)
def test_plateau(options):
    seen = []
    for library in (rushlight, torch):
        optimizer = two_groups(library, "SGD")
        scheduler = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        log = []
        for metric in [5, 4, 4, 4, 4, 4, 3.9999, 5, 6, 7, 8, 8, 8, 8, 2, 2, 2, 2, 2]:
            scheduler.step(metric)
            log.append((scheduler.get_last_lr(), scheduler.num_bad_epochs, scheduler.best))
        seen.append((log, scheduler.state_dict()))
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    "options",
    [
        {"swa_lr": 0.05},
        {"swa_lr": [0.05, 0.2], "anneal_epochs": 0},
        {"swa_lr": 0.05, "anneal_epochs": 3, "anneal_strategy": "linear"},
    ],
)
def test_swalr(options):
    seen = []
    for library in (rushlight, torch):
        optimizer = two_groups(library, "SGD")
        scheduler = library.optim.swa_utils.SWALR(optimizer, **options)
        rates = []
        for _ in range(12):
            optimizer.step()
            scheduler.step()
            rates.append(scheduler.get_last_lr())
        seen.append((rates, sorted(scheduler.state_dict())))
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    "average", [None, "get_swa_avg_fn", "get_ema_avg_fn", "get_swa_multi_avg_fn", "get_ema_multi_avg_fn"]
)
def test_averaged_model(average):
    seen = []
    for library in (rushlight, torch):
        library.manual_seed(0)
        utils = library.optim.swa_utils
        model = library.nn.Linear(3, 3)
        options = {}
        if average is not None:
            options["multi_avg_fn" if "multi" in average else "avg_fn"] = getattr(utils, average)()
        mean = utils.AveragedModel(model, **options)
        for i in range(5):
            with library.no_grad():
                model.weight.add_(i)
            mean.update_parameters(model)
        seen.append((values(mean.parameters()), mean.n_averaged.item(), list(mean.state_dict())))
    assert_close(seen[0][0], seen[1][0], 1e-6)
    assert seen[0][1:] == seen[1][1:]


SETUP = """
nn, optim = torch.nn, torch.optim
s, w = optim.lr_scheduler, optim.swa_utils
p, q = nn.Parameter(torch.tensor([1.0, 2.0])), nn.Parameter(torch.tensor([3.0]))
m = nn.Parameter(torch.ones(2, 2))
def stepped(optimizer, *params):
    for param in params or (p,):
        param.grad = torch.ones(param.shape)
    optimizer.step()
    return optimizer
def sgd(**options):
    return optim.SGD([p], **options)
"""
EXPRESSIONS = """
optim.SGD(p)
optim.SGD([])
optim.SGD([3])
optim.SGD(3)
optim.SGD({"a": p})
optim.SGD([p, p])
optim.SGD([{"params": p}, {"params": [p]}])
optim.SGD([{"params": {p}}])
optim.SGD([{"lr": 3}])
optim.SGD([p * 2])
optim.SGD([("a", p)]).param_groups
optim.SGD([("a", p), q])
optim.SGD([{"params": [("a", p)]}, {"params": [q]}])
optim.SGD([{"params": [p]}, {"params": [("x", q)]}])
sgd().add_param_group(3)
sgd().add_param_group({"params": q, "lr": 5})
optim.Optimizer([p], {}).step()
optim.Adam([{"params": [p], "lr": 3, "zoo": 4}, {"params": q}])
sgd(lr=-1)
sgd(momentum=-1)
sgd(weight_decay=-1)
sgd(nesterov=True)
sgd(lr=torch.ones(2))
sgd(lr=torch.ones(1))
sgd(fused=True, foreach=True)
sgd(fused=True, differentiable=True)
optim.Adam([p], eps=-1)
optim.Adam([p], betas=(1, 0.9))
optim.Adam([p], betas=(0.9, 1))
optim.Adam([p], betas=(torch.tensor(0.9), 0.9))
optim.Adam([p], lr=torch.tensor(0.1), foreach=True)
optim.Adadelta([p], rho=2)
optim.Adagrad([p], lr_decay=-1)
optim.Adagrad([p], initial_accumulator_value=-1)
optim.NAdam([p], momentum_decay=-1)
optim.RMSprop([p], alpha=-1)
optim.Rprop([p], etas=(2, 0.5))
optim.Adafactor([p], beta2_decay=1)
optim.Adafactor([p], eps=(None, -1))
optim.Adafactor([p], d=0.5)
optim.Muon([p])
optim.Muon([m], adjust_lr_fn="x")
stepped(optim.Muon([m], ns_steps=100), m)
stepped(optim.Muon([m], ns_coefficients=(1, 2)), m)
stepped(optim.SparseAdam([p]))
optim.LBFGS([{"params": p}, {"params": q}])
optim.LBFGS([p]).step()
stepped(optim.LBFGS([p], line_search_fn="x"), p)
stepped(optim.Adam([p], capturable=True))
stepped(optim.NAdam([p], capturable=True))
stepped(optim.ASGD([p], capturable=True))
stepped(optim.Adadelta([p], capturable=True))
stepped(sgd(momentum=0.9)).state_dict()
sgd(momentum=0.9).state_dict()
stepped(optim.Adam([p])).state_dict()
optim.Adagrad([p]).state_dict()
sgd().load_state_dict({"state": {}, "param_groups": []})
sgd().load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]})
sgd().load_state_dict({})
(o := sgd()).load_state_dict({"state": {}, "param_groups": [{"params": [7], "lr": 9}]}), o
(o := sgd()).register_step_pre_hook(lambda *a: ((a[0],), {})), stepped(o)
(o := sgd(lr=torch.tensor(0.5))), stepped(o), p
s.StepLR(3, 2)
s.StepLR(sgd(), 2, last_epoch=3)
(c := s.StepLR(sgd(), 2)).step(), c.step()
s.StepLR(sgd(), 2).get_lr()
s.LambdaLR(sgd(), [1, 2])
s.MultiplicativeLR(sgd(), 3)
s.ConstantLR(sgd(), 2)
s.LinearLR(sgd(), 0)
s.LinearLR(sgd(), 1, 2)
s.SequentialLR(sgd(), [], [])
s.SequentialLR((o := sgd()), [s.StepLR(o, 2)], [3])
s.ChainedScheduler([])
s.ChainedScheduler([s.ReduceLROnPlateau(sgd())])
s.ReduceLROnPlateau(sgd(), factor=1.0)
s.ReduceLROnPlateau(sgd(), mode="x")
s.ReduceLROnPlateau(sgd(), threshold_mode="x")
s.ReduceLROnPlateau(sgd(), min_lr=[1, 2])
s.CyclicLR(sgd(), 1, 2, mode="x")
s.CyclicLR(sgd(), [1, 2], 2)
s.CyclicLR(optim.Adagrad([p]), 1, 2)
s.CosineAnnealingWarmRestarts(sgd(), 0)
s.CosineAnnealingWarmRestarts(sgd(), 1, 0)
s.CosineAnnealingWarmRestarts(sgd(), 1).step(-1)
s.OneCycleLR(sgd(), 1)
s.OneCycleLR(sgd(), 1, total_steps=0)
s.OneCycleLR(sgd(), 1, epochs=0, steps_per_epoch=1)
s.OneCycleLR(sgd(), 1, total_steps=5, pct_start=2)
s.OneCycleLR(sgd(), 1, total_steps=5, anneal_strategy="x")
w.SWALR(sgd(), 1, anneal_strategy="x")
w.SWALR(sgd(), 1, anneal_epochs=-1)
w.get_ema_avg_fn(2)
w.AveragedModel(nn.Linear(1, 1), avg_fn=1, multi_avg_fn=2)
(c := s.StepLR(sgd(lr=torch.tensor(0.5)), 1)).optimizer.step(), c.step(), c.get_last_lr(), c.base_lrs
"""


@pytest.mark.parametrize("text", EXPRESSIONS.strip().split("\n"))
def test_expression(text):
    assert outcome(rushlight, text, SETUP) == outcome(torch, text, SETUP)


def test_pickle_and_deepcopy():
    params, optimizer = run(rushlight, "Adam", {}, steps=3)
    for again in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert plain(again.state_dict()) == plain(optimizer.state_dict())
        assert again.param_groups[0]["params"][0] is not params[0]


def test_the_line_search_of_lbfgs_has_torchs_name_and_results():
    def run(library, step):
        from importlib import import_module

        search = import_module(f"{library.__name__}.optim.lbfgs")

        def at(x, t, d):
            z = (x + t * d).detach().requires_grad_()
            loss = (100 * (z[1:] - z[:-1] ** 2) ** 2 + (1 - z[:-1]) ** 2).sum()
            return loss.item(), library.autograd.grad(loss, z)[0]

        x = library.tensor([1.3, 0.7, 0.8], dtype=library.float64)
        loss, grad = at(x, 0, x)
        found = search._strong_wolfe(at, x, step, -grad, loss, grad, -grad.dot(grad), c2=0.5)
        return [float(found[0]), *found[1].tolist(), float(found[2]), found[3]]

    for step in (1.0, 0.1, 1e-3, 1e-5):
        assert run(rushlight, step) == pytest.approx(run(torch, step), rel=1e-9)
