"""torch.distributed.checkpoint.state_dict in one process: the same programs in both libraries."""

import pytest
import torch
import torch.distributed.checkpoint.state_dict
from outcomes import collector, err, outcome

import rushlight

pytestmark = pytest.mark.torch
CASES, case = collector()


def parts(torch):
    return torch.distributed.checkpoint.state_dict


def network(torch, compiled=False, steps=1, optimizer="Adam", **options):
    """A model with a frozen parameter, a buffer that is not saved and one parameter under two names."""
    torch.manual_seed(0)
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2))
            self.head = nn.Linear(2, 2, bias=False)
            self.head.weight = self.body[1].weight
            self.scale = nn.Parameter(torch.ones(2), requires_grad=False)
            self.register_buffer("passing", torch.zeros(1), persistent=False)

        def forward(self, x):
            return self.head(self.body(x)) * self.scale

    net = Net()
    if compiled:
        net.body = torch.compile(net.body, backend="eager")
    made = getattr(torch.optim, optimizer)(net.parameters(), **{"lr": 0.1, **options})
    for _ in range(steps):
        made.zero_grad()
        source = net.body._orig_mod if compiled else net.body
        (net.head(source(torch.arange(8.0).reshape(4, 2))) * net.scale).square().sum().backward()
        made.step()
        made.zero_grad()
    return net, made


def shown(states):
    """States as text that does not tell how their dictionaries are ordered, with rounded numbers."""
    if isinstance(states, dict):
        return {str(key): shown(states[key]) for key in sorted(states, key=str)}
    if isinstance(states, list | tuple):
        return type(states)(shown(value) for value in states)
    if hasattr(states, "tolist"):
        numbers = states.detach().double().reshape(-1).tolist()
        return [round(number, 3) + 0.0 for number in numbers], list(states.shape), states.requires_grad
    return states


@case("a model's state goes by plain names")
def _(torch):
    net, _ = network(torch, compiled=True)
    states = parts(torch).get_model_state_dict(net)
    own = net.state_dict()
    same = states["body.1.weight"].data_ptr() == net.head.weight.data_ptr()
    return shown(states), sorted(own), same, states["scale"].requires_grad


@case("what is left out, and put on the CPU")
def _(torch):
    net, _ = network(torch)
    get, options = parts(torch).get_model_state_dict, parts(torch).StateDictOptions
    full, offloaded, trained = (
        get(net, options=options(**{name: True}))
        for name in ("full_state_dict", "cpu_offload", "ignore_frozen_params")
    )
    types = [type(states).__name__ for states in (get(net), full, offloaded)]
    return shown(full), shown(offloaded), sorted(trained), types, options(strict=False)


@case("parts of a model")
def _(torch):
    net, _ = network(torch)
    get, options = parts(torch).get_model_state_dict, parts(torch).StateDictOptions
    short = get(net, submodules={net.body}, options=options(keep_submodule_prefixes=False))
    return sorted(get(net, submodules={net.body[0]})), sorted(short), get(net, submodules={torch.nn.ReLU()})


@case("the state of an optimiser goes by plain names")
def _(torch):
    net, optimizer = network(torch, compiled=True)
    return shown(parts(torch).get_optimizer_state_dict(net, optimizer))


@case("the states of several optimisers are one")
def _(torch):
    net, _ = network(torch)
    first = torch.optim.Adam([net.body[1].weight])
    second = torch.optim.SGD(
        [{"params": [net.body[1].bias], "lr": 0.5}, {"params": [net.scale]}], momentum=0.9
    )
    states = parts(torch).get_optimizer_state_dict(net, [first, second])
    before = [net.body[1].bias.tolist(), net.body[1].bias.grad, first.param_groups[0]["lr"]]
    return shown(states), before


@case("an optimiser without state")
def _(torch):
    net, optimizer = network(torch, optimizer="SGD", steps=0)
    net.body[1].bias.grad = torch.ones(2)
    states = parts(torch).get_optimizer_state_dict(net, optimizer)
    return shown(states), net.body[1].bias.grad.tolist()


@case("a rate that is a tensor is kept")
def _(torch):
    net, optimizer = network(torch, steps=0, lr=torch.tensor(0.5))
    parts(torch).get_optimizer_state_dict(net, optimizer)
    return shown(optimizer.param_groups[0]["lr"]), shown(net.state_dict())


@case("flat states of an optimiser, and back")
def _(torch):
    module = parts(torch)
    net, optimizer = network(torch, optimizer="SGD", momentum=0.9)
    options = module.StateDictOptions(flatten_optimizer_state_dict=True)
    flat = module.get_optimizer_state_dict(net, optimizer, options=options)
    other, made = network(torch, optimizer="SGD", momentum=0.5, steps=2, lr=0.3)
    module.set_optimizer_state_dict(other, made, flat, options=options)
    adam = module.get_optimizer_state_dict(*network(torch), options=options)
    optimizer.state[net.scale] = {"inner": {"deep": torch.ones(1)}}
    nested = module.get_optimizer_state_dict(net, optimizer, options=options)
    optimizer.state[net.scale] = {"inner": None}
    refused = err(module.get_optimizer_state_dict, net, optimizer, options=options)
    return sorted(flat), shown(made.state_dict()), shown(adam), sorted(nested), refused


@case("states go from a plain model to a compiled one")
def _(torch):
    module = parts(torch)
    net, optimizer = network(torch)
    model_states, optimizer_states = module.get_state_dict(net, optimizer)
    copied = {name: value.clone() for name, value in model_states.items()}
    other, made = network(torch, compiled=True, steps=3, lr=0.7)
    keys = module.set_state_dict(other, made, model_state_dict=copied, optim_state_dict=optimizer_states)
    return keys, shown(other.state_dict()), shown(made.state_dict()), sorted(copied)


@case("groups may be others than those saved")
def _(torch):
    module = parts(torch)
    net, optimizer = network(torch)
    states = module.get_optimizer_state_dict(net, optimizer)
    other, _ = network(torch, steps=2)
    made = torch.optim.Adam([other.body[0].weight, other.body[0].bias, other.body[1].bias], lr=3.0)
    module.set_optimizer_state_dict(other, made, states)
    return shown(made.state_dict())


@case("full states fill what is missing")
def _(torch):
    module = parts(torch)
    full = module.StateDictOptions(full_state_dict=True)
    net, optimizer = network(torch, steps=2)
    given = {"body.1.bias": torch.tensor([5.0, 6.0]), "body.0.num_batches_tracked": torch.tensor(7)}
    keys = module.set_model_state_dict(net, given, options=full)
    states = module.get_optimizer_state_dict(net, optimizer)
    states["param_groups"][0]["lr"] = 0.25
    states["state"]["body.1.bias"]["step"] = torch.tensor(9.0)
    module.set_optimizer_state_dict(net, optimizer, states, options=full)
    return keys, shown(net.state_dict()), sorted(given), shown(optimizer.state_dict())


@case("full states are taken by a model on the meta device")
def _(torch):
    module = parts(torch)
    net, meta = torch.nn.Linear(1, 2), torch.nn.Linear(1, 2, device="meta")
    meta.bias = torch.nn.Parameter(torch.zeros(2))
    states = {name: value.clone() for name, value in net.state_dict().items()}
    full = module.StateDictOptions(full_state_dict=True)
    module.set_model_state_dict(meta, states, options=full)
    return [(p.device, p.requires_grad, p.equal(q)) for p, q in zip(meta.parameters(), net.parameters())]


@case("states of modules, by module")
def _(torch):
    module = parts(torch)
    net, _ = network(torch)
    given = {net.body[0]: {"weight": torch.ones(2), "bias": torch.ones(2)}}
    keys = module.set_model_state_dict(net, given, options=module.StateDictOptions(strict=False))
    return keys, shown(net.body.state_dict())


@case("names that a module changes")
def _(torch):
    module = parts(torch)

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(1, 1)
            self._register_state_dict_hook(self.renamed)

        @staticmethod
        def renamed(self, states, prefix, metadata):
            for name in list(states):
                states[name.replace("inner.", "")] = states.pop(name)

        def _fqn_modifiers(self):
            return {"weight": "inner", "bias": "inner"}

    return err(lambda: sorted(module.get_model_state_dict(torch.nn.Sequential(Outer()))))


@case("extra state")
def _(torch):
    module = parts(torch)

    class Counting(torch.nn.Linear):
        count = 3

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    net = torch.nn.Sequential(Counting(1, 1))
    states = module.get_model_state_dict(net)
    states["0._extra_state"] = {"count": 8}
    keys = module.set_model_state_dict(net, states)
    return sorted(states), keys, net[0].count


@case("what is refused")
def _(torch):
    module = parts(torch)
    options, linear = module.StateDictOptions, torch.nn.Linear(1, 1)
    sgd = torch.optim.SGD(linear.parameters())
    strict = options(broadcast_from_rank0=True, full_state_dict=True)
    some = {"weight": torch.ones(1, 1)}
    foreign = torch.optim.SGD(torch.nn.Linear(1, 1).parameters())
    lost = module.get_optimizer_state_dict(linear, torch.optim.Adam(linear.parameters()))
    del lost["state"]["bias"]
    calls = [
        (module.get_model_state_dict, torch.nn.ReLU()),
        (module.get_model_state_dict, linear, {"options": options(broadcast_from_rank0=True)}),
        (module.set_model_state_dict, linear, {}),
        (module.set_model_state_dict, linear, {}, {"options": options(strict=False)}),
        (module.set_model_state_dict, linear, some, {"options": strict}),
        (module.set_model_state_dict, linear, {**some, "other": 1}),
        (module.set_model_state_dict, linear, {"a._flat_param": 1}),
        (module.set_model_state_dict, network(torch, compiled=True)[0], dict(some)),
        (module.get_optimizer_state_dict, linear, []),
        (module.get_optimizer_state_dict, linear, foreign),
        (module.set_optimizer_state_dict, linear, sgd, {}),
        (module.set_optimizer_state_dict, linear, torch.optim.Adam(linear.parameters()), lost),
        (module.set_state_dict, linear, [], {"model_state_dict": {}, "optim_state_dict": {}}),
    ]
    found = []
    for function, *arguments in calls:
        last = arguments[-1]
        named = (
            last if isinstance(last, dict) and last and set(last) & {"options", "model_state_dict"} else {}
        )
        found.append(err(function, *arguments[: len(arguments) - bool(named)], **named))
    return found


@pytest.mark.parametrize("name", CASES)
def test_as_in_torch(name):
    assert outcome(lambda: CASES[name](rushlight)) == outcome(lambda: CASES[name](torch))
