"""What happens to modules over their life, against torch: hooks, conversions, padding, old files, calls.

Each function runs with one library and then the other; what it returns or raises must be the same.
"""

import copy
import gc
import pickle
import warnings
import weakref
from collections import OrderedDict

import pytest
import torch
import torch.__future__
import torch.nn.utils.spectral_norm
from comparing import assert_same
from outcomes import collector, err

import rushlight

CASES, case = collector()


def attempts(*functions):
    """The results of several calls; of a refused one its type and first line."""
    found = []
    for function in functions:
        try:
            found.append(function())
        except Exception as error:
            found.append(f"{type(error).__name__}: {str(error).splitlines()[0]}")
    return found


def shapes(gradients):
    return [None if g is None else tuple(g.shape) for g in gradients]


# --- hooks -------------------------------------------------------------------------------------------------


@case("a plain backward hook on Linear sees bias, input and transposed weight")
def linear_hook(t):
    found = []
    for bias in (True, False):
        for requires_grad in (True, False):
            layer = t.nn.Linear(2, 3, bias=bias)
            layer.register_backward_hook(lambda module, gi, go: found.append(shapes(gi) + shapes(go)))
            layer(t.ones(4, 2, requires_grad=requires_grad)).sum().backward()
    return str(found)


@case("tables of global hooks that a program empties by putting others in their place")
def replaced_tables(t):
    module, found = t.nn.modules.module, []
    module.register_module_forward_pre_hook(lambda *args: found.append("before"))
    module.register_module_forward_hook(lambda *args: found.append("after"), always_call=True)
    module.register_module_full_backward_hook(lambda *args: found.append("gradient"))
    module.register_module_full_backward_pre_hook(lambda *args: found.append("gradient of the output"))
    module.register_module_parameter_registration_hook(lambda *args: found.append("parameter"))
    t.nn.Linear(1, 1, bias=False)(t.ones(1, requires_grad=True)).backward()
    tables = [
        name for name in dir(module) if name.startswith("_global_") and name.endswith(("hooks", "called"))
    ]
    for name in tables:
        setattr(module, name, OrderedDict())
    found.append("emptied")
    t.nn.Linear(1, 1, bias=False)(t.ones(1, requires_grad=True)).backward()
    full = module._global_is_full_backward_hook
    module._global_is_full_backward_hook = None
    return found, tables, full


@case("hook tables that a module of an older version has not")
def _(torch):
    told = []
    for name in ("_load_state_dict_post_hooks", "_state_dict_pre_hooks", "_backward_pre_hooks"):
        layer = torch.nn.Linear(1, 1)
        delattr(layer, name)
        told += [hasattr(layer, name), err(delattr, layer, name)]
        again = pickle.loads(pickle.dumps(layer))
        seen = []
        again.register_load_state_dict_post_hook(lambda *given, seen=seen: seen.append(len(given)))
        again.register_forward_hook(lambda *given, seen=seen: seen.append(len(given)))
        told += [hasattr(again, name), again.load_state_dict(layer.__class__(1, 1).state_dict())]
        told += [again(torch.ones(1, 1)).shape, seen]
    return told


@case("a module is freed with its last reference, whatever hooks it has")
def freed_at_once(t):
    def load(module):
        module.load_state_dict(module.state_dict())

    found = []
    gc.disable()
    try:
        for name in [
            "forward_pre_hook",
            "forward_hook",
            "full_backward_hook",
            "full_backward_pre_hook",
            "state_dict_pre_hook",
            "state_dict_post_hook",
            "load_state_dict_pre_hook",
            "load_state_dict_post_hook",
        ]:
            layer = t.nn.Linear(1, 1)
            getattr(layer, "register_" + name)(lambda *args, name=name: found.append(name))
            alive = weakref.ref(layer)
            layer(t.ones(1, requires_grad=True)).backward()
            load(layer)
            load(copy.deepcopy(layer))
            del layer
            found.append(alive() is None)
    finally:
        gc.enable()
    return found


@case("attention calls the functions that a program put in the place of torch.nn.functional's")
def replaced_functions(t):
    functional, found = t.nn.functional, []
    names = ("linear", "softmax", "dropout", "scaled_dot_product_attention", "interpolate", "log_softmax")
    kept = {name: getattr(functional, name) for name in names}

    def telling(name):
        def call(*args, **options):
            found.append(name)
            return kept[name](*args, **options)

        return call

    x, y = t.ones(3, 2, 4), t.ones(3, 2, 4)
    try:
        for name in names:
            setattr(functional, name, telling(name))
        for options in ({}, {"dropout": 0.5}, {"kdim": 4, "vdim": 4, "bias": False}):
            layer = t.nn.MultiheadAttention(4, 2, **options)
            for need_weights in (True, False):
                for given in ((x, x, x), (x, y, y), (x, y, x)):
                    layer(*given, need_weights=need_weights)
        functional.upsample(x, scale_factor=2)
        t.nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2]).log_prob(x[0])
    finally:
        for name, function in kept.items():
            setattr(functional, name, function)
    return found


@case("what a plain backward hook on Linear returns is used")
def linear_hook_replaces(t):
    layer = t.nn.Linear(2, 3)
    layer.register_backward_hook(lambda module, gi, go: (gi[0] * 2, gi[1] * 3, gi[2] * 5))
    x = t.ones(4, 2, requires_grad=True)
    layer(x).sum().backward()
    return [x.grad, layer.weight.grad, layer.bias.grad]


@case("hooks of a node see gradients of the shapes and dtypes of its inputs")
def node_hook(t):
    found = []
    x, y = t.ones(3, requires_grad=True), t.ones(4, 3, dtype=t.float64, requires_grad=True)
    z = x * y
    z.grad_fn.register_hook(lambda gi, go: found.append([(tuple(g.shape), str(g.dtype)) for g in gi]))
    z.sum().backward()
    return str(found)


# --- conversions -------------------------------------------------------------------------------------------


@case("conversions under torch.__future__")
def future(t):
    found = []
    for switch in ("overwrite", "swap"):
        name = f"{switch}_module_params_on_conversion"
        getattr(t.__future__, f"set_{name}")(True)
        try:
            layer = t.nn.Linear(2, 2)
            weight = layer.weight
            layer(t.ones(1, 2)).sum().backward()
            layer.double()
            found.append((layer.weight is weight, str(weight.dtype), str(layer.weight.grad.dtype)))
            layer.load_state_dict({"weight": t.ones(2, 2), "bias": t.zeros(2)})
            found.append((str(layer.weight.dtype), type(layer.weight).__name__, layer.weight.tolist()))
        finally:
            getattr(t.__future__, f"set_{name}")(False)
    return str(found)


@case("gradients of convolutions by name")
def grads(t):
    grad, weight = t.ones(1, 2, 3, 3), t.arange(16.0).view(2, 2, 2, 2)
    x = t.arange(32.0).view(1, 2, 4, 4)
    return [
        t.nn.grad.conv2d_input(x.shape, weight, grad),
        t.nn.grad.conv2d_weight(x, weight.shape, grad),
        t.nn.grad.conv1d_input((1, 4, 7), t.ones(2, 2, 3), t.ones(1, 2, 3), 2, 1, 2, 2),
        t.nn.grad.conv3d_weight(t.ones(1, 1, 3, 3, 3), (1, 1, 2, 2, 2), t.ones(1, 1, 2, 2, 2)),
    ]


# --- an encoder that leaves out padding ---------------------------------------------------------------------


def encoded(t, padding, *, grad=False, norm=False, options=None, **layer):
    made = {"batch_first": True, "dim_feedforward": 16, **layer}
    last = t.nn.LayerNorm(8) if norm else None
    encoder = t.nn.TransformerEncoder(t.nn.TransformerEncoderLayer(8, 2, **made), 2, last, **(options or {}))
    encoder.eval()
    if norm:
        t.nn.init.ones_(encoder.norm.bias)
    x = t.randn(3, 5, 8)
    with t.set_grad_enabled(grad):
        return [encoder(x, src_key_padding_mask=padding), str(encoder.use_nested_tensor)]


def padded(t, *lengths):
    return t.arange(5).unsqueeze(0) >= t.tensor(lengths).unsqueeze(1)


PADDINGS = {
    "": {},
    ", normalised": {"norm": True},
    ", with gradients": {"grad": True},
    ", gelu": {"activation": "gelu"},
    ", another activation": {"activation": lambda x: x * 2},
    ", norm first": {"norm_first": True},
    ", not nested": {"options": {"enable_nested_tensor": False}},
    ", unchecked": {"options": {"mask_check": False}},
}
for what, settings in PADDINGS.items():
    case(f"padding{what}")(lambda t, settings=settings: encoded(t, padded(t, 5, 3, 2), **settings))
case("padding of whole sequences")(lambda t: encoded(t, padded(t, 5, 0, 2)))
case("padding at the front")(lambda t: encoded(t, padded(t, 5, 3, 2).flip(1)))
case("padding as numbers")(lambda t: encoded(t, t.zeros(3, 5).masked_fill(padded(t, 5, 3, 2), -t.inf)))


@case("embedding_bag with all it returns")
def bags(t):
    weight, indices = t.arange(12.0).view(4, 3), t.tensor([0, 1, 2, 3, 1])
    found = []
    for mode in (0, 1, 2):
        for offsets in (t.tensor([0, 2]), t.tensor([0, 2, 2])):
            found += t.embedding_bag(weight, indices, offsets, mode=mode)
    found += t.embedding_bag(weight, indices, t.tensor([0, 2]), False, 2, False, None, False, 1)
    found += t.embedding_bag(weight.double(), indices, t.tensor([0, 2, 5]), include_last_offset=True)
    return found


# --- old files, and calls with other parameters -------------------------------------------------------------


@case("the state of an old spectral norm")
def spectral(t):
    layer = t.nn.utils.spectral_norm(t.nn.Linear(2, 3))
    layer(t.ones(1, 2))
    state = layer.state_dict()
    versions = str(dict(state._metadata))
    del state._metadata
    state["weight"] = layer.weight.detach().clone()
    del state["weight_v"]
    other = t.nn.utils.spectral_norm(t.nn.Linear(2, 3))
    other.load_state_dict(state)
    other.eval()
    t.nn.utils.remove_spectral_norm(layer)
    return [versions, other(t.ones(1, 2)), str(len(layer._state_dict_hooks)), str(list(layer.state_dict()))]


@case("functional_call")
def functional_call(t):
    class Counts(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = t.nn.Parameter(t.ones(1))
            self.register_buffer("calls", t.zeros(1))

        def forward(self, x):
            self.calls = self.calls + 1
            return x * self.weight + self.calls

    module, tensors = Counts(), {"calls": t.full((1,), 5.0)}
    call = t.func.functional_call
    out = call(module, tensors, t.ones(1))
    return [
        out.detach(),
        tensors["calls"],
        module.calls,
        *attempts(
            lambda: call(module, {"other": t.ones(1)}, t.ones(1)).detach(),
            lambda: call(module, {"other": t.ones(1)}, t.ones(1), strict=True),
            lambda: call(module, ({"weight": t.ones(1)}, {"weight": t.ones(1)}), t.ones(1)),
            lambda: call(module, {"weight": 5}, t.ones(1)),
            lambda: call(module, 5, t.ones(1)),
        ),
    ]


@case("arguments that layers refuse")
def refused(t):
    nn, functional = t.nn, t.nn.functional
    return attempts(
        lambda: nn.LSTM(0, 3),
        lambda: nn.LSTM(2, 3, bias=1),
        lambda: nn.GRU(2, 3, batch_first="yes"),
        lambda: nn.RNN(2, 3, proj_size=0),
        lambda: nn.LSTM(2, 3, dropout="x"),
        lambda: nn.HuberLoss(delta="x"),
        lambda: nn.Dropout(None),
        lambda: nn.CircularPad2d(1)(t.ones(2, 2)),
        lambda: nn.LazyInstanceNorm1d()(t.ones(2, 6)),
        lambda: functional.batch_norm(t.ones(2, 2), None, None, training=True, eps=0.0),
        lambda: functional.instance_norm(t.arange(6.0).view(1, 2, 3), eps=0.0),
        lambda: functional.binary_cross_entropy_with_logits(t.ones(2), t.tensor([0, 1])),
        lambda: functional.binary_cross_entropy_with_logits(t.ones(2).double(), t.ones(2)),
        lambda: functional.soft_margin_loss(t.ones(2, 1), t.ones(2, 3)),
        lambda: functional.cosine_similarity(t.ones(1, 2), t.ones(1, 2), eps=-1.0),
        lambda: functional.nll_loss(t.ones(1, 2, 3, 3), t.zeros(1, 3, dtype=t.int64)),
        lambda: nn.utils.rnn.PackedSequence(t.ones(3)),
        lambda: nn.utils.rnn.pad_sequence([t.ones(2, 3), t.ones(1, 2)]),
        lambda: nn.utils.parametrizations.orthogonal(nn.Linear(2, 2), "other"),
    )


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    results, said = [], []
    for library in (rushlight, torch):
        library.manual_seed(0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            results.append(CASES[name](library))
        lines = [str(w.message).split("\n")[0] for w in caught]
        said.append([line for line in lines if "nested tensors is in prototype" not in line])
    assert_same_parts(*results)
    assert said[0] == said[1]


def assert_same_parts(ours, theirs):
    if isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            assert_same_parts(a, b)
    elif isinstance(theirs, str):
        assert ours.replace("rushlight", "torch") == theirs
    else:
        assert_same(ours, theirs, scale=10, strides=False)
