"""The functional forms of optimizers against torch's: the same lists through both, after three steps."""

import importlib
import inspect

import pytest
import torch

import rushlight

pytestmark = pytest.mark.torch

# Module, form, lists of state ("step" counts, "one" starts at 1, "rate" at 0.1), options.
FORMS = [
    ("adam", "adam", "zero zero zero step", {"amsgrad": True, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8}),
    ("adamw", "adamw", "zero zero zero step", {"amsgrad": True, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8}),
    ("sgd", "sgd", "none", {"momentum": 0.9, "dampening": 0.1, "nesterov": False}),
    ("adadelta", "adadelta", "zero zero step", {"rho": 0.9, "eps": 1e-6}),
    ("adagrad", "adagrad", "zero step", {"lr_decay": 0.1, "eps": 1e-10}),
    ("adamax", "adamax", "zero zero step", {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8}),
    ("asgd", "asgd", "zero one rate step", {"lambd": 1e-4, "t0": 1.0, "alpha": 0.75}),
    (
        "nadam",
        "nadam",
        "zero zero one step",
        {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "momentum_decay": 4e-3},
    ),
    ("radam", "radam", "zero zero step", {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8}),
    (
        "rmsprop",
        "rmsprop",
        "zero zero zero step",
        {"alpha": 0.9, "eps": 1e-8, "momentum": 0.9, "centered": True},
    ),
    (
        "rprop",
        "rprop",
        "zero rate-like step",
        {"step_size_min": 1e-6, "step_size_max": 50, "etaminus": 0.5, "etaplus": 1.2},
    ),
    (
        "_adafactor",
        "adafactor",
        "row column None step",
        {"d": 1.0, "beta2_decay": -0.8, "eps1": None, "eps2": 1e-3},
    ),
    (
        "_muon",
        "muon",
        "zero",
        {
            "momentum": 0.9,
            "nesterov": True,
            "ns_coefficients": (3.4, -4.7, 2.0),
            "ns_steps": 3,
            "eps": 1e-7,
            "adjust_lr_fn": None,
            "has_complex": False,
        },
    ),
]
LISTED = ["SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam"]
WITHOUT_MAXIMIZE = {"muon"}


def moved(library, home, form, state, options):
    module = importlib.import_module(f"{library.__name__}.optim.{home}")
    made = {
        "zero": lambda: library.zeros(2, 3),
        "step": lambda: library.tensor(0.0),
        "one": lambda: library.tensor(1.0),
        "rate": lambda: library.tensor(0.1),
        "rate-like": lambda: library.full((2, 3), 0.1),
        "row": lambda: library.zeros(2, 1),
        "column": lambda: library.zeros(1, 3),
        "none": lambda: None,
        "None": lambda: None,
    }
    lists = [[made[kind](), made[kind]()] for kind in state.split()]
    params = [library.tensor([[0.5, -1.0, 2.0], [3.0, 0.25, -0.125]]) * factor for factor in (1, -3)]
    for sign in (1, 1, -1):
        grads = [param * 0.3 + sign * 0.1 for param in params]
        if form == "rprop":
            getattr(module, form)(params, grads, *lists, **options)
        else:
            getattr(module, form)(params, grads, *lists, lr=0.1, weight_decay=0.01, **options)
    tensors = params + [entry for entries in lists for entry in entries if entry is not None]
    return [tensor.tolist() for tensor in tensors]


@pytest.mark.parametrize(("home", "form", "state", "options"), FORMS, ids=[row[1] for row in FORMS])
@pytest.mark.parametrize("maximize", [False, True])
def test_form(home, form, state, options, maximize):
    if form not in WITHOUT_MAXIMIZE:
        options = {**options, "maximize": maximize}
    ours, theirs = (moved(library, home, form, state, options) for library in (rushlight, torch))
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(torch.tensor(our), torch.tensor(their))


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
@pytest.mark.parametrize("overflow", [0.0, 1.0])
def test_fused_step_takes_the_scale(name, overflow):
    results = []
    for library in (rushlight, torch):
        x = library.nn.Parameter(library.tensor([1.0, -2.0]))
        optimizer = getattr(library.optim, name)([x], lr=0.1, fused=True)
        x.grad = library.tensor([4.0, 8.0])
        optimizer.grad_scale, optimizer.found_inf = library.tensor(4.0), library.tensor(overflow)
        optimizer.step()
        state = {key: value.tolist() for key, value in optimizer.state[x].items()}
        results.append((x.tolist(), x.grad.tolist(), state, optimizer._step_supports_amp_scaling))
    assert results[0] == results[1]


@pytest.mark.parametrize("name", [*LISTED, "Adagrad", "Adadelta", "RMSprop", "Rprop", "ASGD"])
def test_init_group(name):
    results = []
    for library in (rushlight, torch):
        x = library.nn.Parameter(library.ones(2, 2))
        x.grad = library.ones(2, 2)
        optimizer = getattr(library.optim, name)([x, library.nn.Parameter(library.ones(1))])
        # Through what torch._dynamo may have put around it, once something has imported that.
        parameters = inspect.signature(getattr(torch.optim, name)._init_group).parameters
        lists = [[] for _ in range(len(parameters) - 2)]
        found = optimizer._init_group(optimizer.param_groups[0], *lists)
        results.append((found, [[entry.tolist() for entry in entries] for entries in lists]))
    assert results[0] == results[1]
