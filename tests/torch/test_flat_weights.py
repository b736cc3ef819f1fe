"""The list of weights that recurrent layers keep, and statistics of batch_norm that are no buffers."""

import copy
import io
import weakref

import pytest
import torch
from outcomes import collector, err, outcome

import rushlight

pytestmark = pytest.mark.torch
CASES, case = collector()


def layer(torch, kind="LSTM", **options):
    torch.manual_seed(0)
    return getattr(torch.nn, kind)(2, 3, **options), torch.linspace(-1, 1, 8).reshape(2, 2, 2)


def same(one, other):
    return [a is b for a, b in zip(one, other, strict=True)]


@case("the list holds the parameters in the order of use")
def _(torch):
    lstm, _ = layer(torch, bidirectional=True, num_layers=2)
    gru, _ = layer(torch, "GRU", bias=False)
    return [
        (same(x._flat_weights, [getattr(x, name) for name in x._flat_weights_names]), x._flat_weights_names)
        for x in (lstm, gru)
    ]


@case("a list put in its place is used, until a name means another tensor")
def _(torch):
    lstm, x = layer(torch)
    plain = lstm(x)[0].sum().item()
    doubled = [(w * 2).detach().requires_grad_() for w in lstm._flat_weights]
    lstm._flat_weights = doubled
    given = lstm(x)[0].sum()
    given.backward()
    grads = [w.grad is None for w in lstm.parameters()], [w.grad is None for w in doubled]
    lstm.weight_ih_l0 = torch.nn.Parameter(lstm.weight_ih_l0.detach() * 3)
    again = lstm(x)[0].sum().item()
    return (
        round(plain, 4),
        round(given.item(), 4),
        grads,
        round(again, 4),
        same(lstm._flat_weights, lstm.parameters()),
    )


@case("an element put into the list is used")
def _(torch):
    gru, x = layer(torch, "GRU")
    gru._flat_weights[3] = torch.ones(9)
    return round(gru(x)[0].sum().item(), 4)


@case("a weight made anew before every call")
def _(torch):
    rnn, x = layer(torch, "RNN")
    raw = torch.nn.Parameter(rnn.weight_hh_l0.detach().clone())
    del rnn.weight_hh_l0
    rnn.raw = raw
    total = 0.0
    for factor in (1.0, 2.0):
        rnn.weight_hh_l0 = raw * factor
        total = total + rnn(x)[0].sum()
    total.backward()
    return round(total.item(), 4), [round(g, 4) for g in raw.grad.reshape(-1).tolist()]


@case("other parameters under functional_call")
def _(torch):
    lstm, x = layer(torch)
    own = {name: (p * 2).detach().requires_grad_() for name, p in lstm.named_parameters()}
    out = torch.nn.utils.stateless.functional_call(lstm, own, (x,))[0].sum()
    out.backward()
    return round(out.item(), 4), [p.grad is not None for p in own.values()], round(lstm(x)[0].sum().item(), 4)


@case("copies, casts and files have lists of their own")
def _(torch):
    lstm, x = layer(torch)
    buffer = io.BytesIO()
    torch.save(lstm, buffer)
    buffer.seek(0)
    read = torch.load(buffer, weights_only=False)
    made = [copy.deepcopy(lstm), read, copy.deepcopy(lstm).double(), copy.deepcopy(lstm).to("meta")]
    kept = [same(m._flat_weights, m.parameters()) for m in made]
    refs = [all(isinstance(ref, weakref.ref) for ref in m._flat_weight_refs) for m in made]
    in_state = [name in lstm.__getstate__() for name in ("_flat_weights", "_flat_weight_refs")]
    return kept, refs, made[0](x)[0].equal(lstm(x)[0]), made[2](x.double())[0].dtype, in_state


@case("a layer made without its constructor")
def _(torch):
    lstm, x = layer(torch)

    class Patched(torch.nn.LSTM):
        def __init__(self, other):
            torch.nn.Module.__init__(self)
            for name, value in other.__dict__.items():
                if name not in ("_parameters", "_buffers", "_modules"):
                    setattr(self, name, value)

    patched = Patched(lstm)
    for name, weight in lstm.named_parameters():
        setattr(patched, name, weight * 2)
    patched._flat_weights = [getattr(patched, name) for name in patched._flat_weights_names]
    return round(patched(x)[0].sum().item(), 4)


@case("a descriptor of a subclass computes the list")
def _(torch):
    class Computed:
        def __get__(self, layer, kind):
            return [getattr(layer, name) for name in layer._flat_weights_names]

        def __set__(self, layer, value):
            pass

    class Own(torch.nn.GRU):
        _flat_weights = Computed()

    _, x = layer(torch)
    gru = Own(2, 3)
    gru.bias_hh_l0 = torch.nn.Parameter(torch.ones(9))
    return gru(x)[0].shape, same(gru._flat_weights, gru.parameters())


@case("statistics that are plain attributes")
def _(torch):
    norm, x = torch.nn.BatchNorm1d(2), torch.arange(8.0).reshape(4, 2)
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        value = getattr(norm, name)
        delattr(norm, name)
        setattr(norm, name, value * 1.0 if name != "num_batches_tracked" else value)
    norm(x)
    trained = norm.running_mean.tolist(), norm.num_batches_tracked.item(), list(norm.state_dict())
    norm.eval()
    del norm.num_batches_tracked
    shown = [round(v, 4) for v in norm(x).reshape(-1).tolist()]
    del norm.running_var
    norm.track_running_stats = False
    without = err(norm, x), [round(v, 4) for v in norm.train()(x).reshape(-1).tolist()]
    norm.track_running_stats = True
    return trained, shown, without, err(norm, x)


@pytest.mark.parametrize("name", CASES)
def test_as_in_torch(name):
    assert outcome(lambda: CASES[name](rushlight)) == outcome(lambda: CASES[name](torch))
