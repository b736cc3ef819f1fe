"""Modules against torch: every expression is evaluated in both; value, error and warnings must be equal."""

import re

import pytest
import torch
from expressions import outcome

import rushlight

SETUP = """
import copy, pickle
from collections import OrderedDict
nn, F, init = torch.nn, torch.nn.functional, torch.nn.init
R, T = nn.ReLU, nn.Tanh

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 3)
        self.register_buffer("steps", torch.zeros(2))
        self.plain = 1

class Extra(nn.Module):
    def get_extra_state(self):
        return 5
    def set_extra_state(self, state):
        self.extra = state

class Early(nn.Module):
    def __init__(self, value):
        self.value = value

class Dict(nn.Module):
    def forward(self, x):
        return {"out": x * 2}

class Pair(nn.Module):
    def forward(self, x, y):
        return x * y, x + y

class Boom(nn.Module):
    def forward(self, x):
        raise ValueError("boom")

def tap(module, names, hook=None, x=None):
    '''Call the module forward and backward with printing hooks registered under the names.'''
    log = []
    for name in names.split():
        def record(m, *args, name=name, **kwargs):
            log.append((name, args, kwargs))
            return hook(m, *args) if hook else None
        getattr(module, "register_" + name)(record)
    x = torch.ones(1, 2, requires_grad=True) if x is None else x
    out = module(x)
    (out["out"] if isinstance(out, dict) else out).sum().backward()
    return log, out, x.grad

def failing(module, x, **hooks):
    log = []
    for name, options in hooks.items():
        getattr(module, "register_" + name)(lambda *args: log.append(args[1:]), **options)
    try:
        module(x)
    except Exception as error:
        log.append(str(error))
    return log

def fill(module):
    return module.load_state_dict(module.state_dict())

def graded(first=3.0):
    values = [nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(1))]
    values[0].grad, values[1].grad = torch.tensor([first, 4.0]), torch.full((3,), 2.0)
    return values

U, rnn = nn.utils, nn.utils.rnn
three = rnn.pad_sequence([torch.ones(3, 2), torch.ones(1, 2) * 2, torch.ones(2, 2) * 3])
packed = rnn.pack_padded_sequence(three, [3, 1, 2], enforce_sorted=False)
net, lin = Net(), nn.Linear(2, 2)
x, i = torch.tensor([-1.0, 2.0]), torch.tensor([1, 2])
a, b, k = torch.ones(3, 2), torch.ones(3), torch.tensor([0, 1, 1])
odd = torch.tensor([float("nan"), float("inf"), -float("inf")])
p = nn.Parameter(torch.zeros(2))
"""

MODULE = """
net.register_buffer(1, None)
net.register_buffer("a.b", None)
net.register_buffer("", None)
net.register_buffer("plain", None)
net.register_buffer("x", 3)
net.register_parameter(1, None)
net.register_parameter("a.b", None)
net.register_parameter("", None)
net.register_parameter("plain", None)
net.register_parameter("x", torch.zeros(1))
net.register_parameter("x", p * 2)
net.add_module("x", 3)
net.add_module(3, None)
net.add_module("plain", None)
net.add_module("a.b", None)
net.add_module("", None)
net.register_module("x", R()), net
net.nope
setattr(lin, "weight", torch.zeros(2))
setattr(net, "layer", torch.zeros(2))
setattr(net, "layer", 3)
setattr(net, "steps", 3)
setattr(net, "steps", torch.ones(2)), net.steps, list(net.state_dict())
setattr(net, "steps", None), list(net.state_dict())
setattr(net, "layer", None), net
setattr(lin, "bias", None), lin, lin(a)
setattr(lin, "weight", R())
setattr(net, "layer", p), net, list(net.state_dict())
setattr(net, "steps", p), net._buffers, list(net.state_dict())
setattr(net, "layer", nn.Buffer(torch.zeros(1)))
setattr(net, "plain", nn.Buffer(torch.zeros(1)))
setattr(net, "y", nn.Buffer(b, persistent=False)), list(net.state_dict()), dict(net.named_buffers())
delattr(net, "zzz")
delattr(net, "layer"), net
delattr(net, "steps"), list(net.state_dict())
Early(R())
Early(p)
Early(nn.Buffer(torch.zeros(1)))
Early(1).value
nn.Module(1)
nn.Module(a=2)
net(1)
net.get_submodule("q.r")
net.get_submodule("plain")
net.get_submodule("")
net.get_submodule("layer")
net.get_parameter("plain")
net.get_parameter("layer.foo")
net.get_parameter("steps")
net.get_parameter("x.b")
net.get_parameter("layer.weight").shape
net.get_buffer("plain")
net.get_buffer("zz")
net.get_buffer("layer.weight")
net.get_buffer("steps")
net.set_submodule("", R())
net.set_submodule("q.r", R())
net.set_submodule("layer.r", R()), net
net.set_submodule("new", R(), True)
net.set_submodule("new", R()), net
net.set_submodule("layer", 3)
net.set_submodule("plain", R())
net.train(1)
net.eval().layer.training, net.train().layer.training
net.get_extra_state()
net.set_extra_state(1)
net.to(torch.int32)
net.to(torch.complex64).layer.weight.dtype
net.to("cpu", torch.float64).steps.dtype
net.to(torch.zeros(1, dtype=torch.float64)).layer.weight.dtype
net.to(dtype=torch.float16).steps.dtype
net.to("cpu", torch.float64, True, True)
net.to(copy=True)
net.to([1])
net.double().layer.bias.dtype, net.half().steps.dtype, net.bfloat16().steps.dtype, net.float().steps.dtype
(w := net.layer.weight), net.double().layer.weight is w
net.type(torch.float64).steps.dtype
net.to("meta").layer.weight.device
net.to("meta").to("cpu")
net.to("meta").to_empty(device="cpu").layer.weight.shape
[n for n, _ in net.named_parameters()], [n for n, _ in net.named_parameters("q", recurse=False)]
[n for n, _ in net.named_modules()], [n for n, _ in nn.Sequential(net, net).named_modules()]
[n for n, _ in nn.Sequential(lin, lin).named_parameters(remove_duplicate=False)]
[n for n, _ in nn.Sequential(lin, lin).named_modules(remove_duplicate=False)]
len(list(nn.Sequential(lin, lin).parameters())), len(list(nn.Sequential(lin, lin).children()))
list(net.buffers()), [n for n, _ in net.named_buffers()], [n for n, _ in net.named_children()]
[q.requires_grad for q in net.requires_grad_(False).parameters()]
net.layer(a).sum().backward(), net.zero_grad(), net.layer.weight.grad
net.layer(a).sum().backward(), net.zero_grad(set_to_none=False), net.layer.weight.grad
net.apply(lambda m: setattr(m, "seen", 1)).layer.seen
[n for n in dir(net) if n in ("layer", "steps", "plain", "weight", "forward")]
[n for n in dir(nn.Sequential(R())) if n in ("0", "append")]
copy.deepcopy(net), copy.deepcopy(net).layer.weight is net.layer.weight
copy.copy(net).layer is net.layer
"""

STATE = """
net.load_state_dict(3)
net.load_state_dict({"x": 1, "steps": torch.zeros(3), "layer.weight": 3})
net.load_state_dict({"layer.foo": 1}, strict=False)
net.load_state_dict(net.state_dict())
list(net.state_dict(prefix="x.")), net.state_dict(prefix="x.")._metadata
list(net.state_dict({}, "x.", True))
[v.requires_grad for v in net.state_dict(keep_vars=True).values()]
Extra().state_dict()
Extra().load_state_dict({"_extra_state": 3})
Extra().load_state_dict({})
lin.load_state_dict({"_extra_state": 3, "a": 3, "weight.x": 3})
lin.load_state_dict({"weight": torch.zeros(2, 2, dtype=torch.int32), "bias": torch.zeros(2)}, assign=True)
lin.load_state_dict({"weight": a[:2], "bias": b[:2]}, assign=True), lin.bias, lin.weight.requires_grad
lin.to("meta").load_state_dict({"weight": torch.zeros(2, 2), "bias": torch.zeros(2)})
lin.register_state_dict_post_hook(lambda *a: 3), lin.state_dict()
lin.register_state_dict_post_hook(lambda m, d, *a: d.update(z=1) or None), list(lin.state_dict())
lin.register_state_dict_pre_hook(lambda m, *rest: setattr(m, "seen", rest)), lin.state_dict(), lin.seen
lin.register_load_state_dict_post_hook(lambda m, keys: 3), lin.load_state_dict(lin.state_dict())
lin.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear()), lin.load_state_dict({})
lin.register_load_state_dict_pre_hook(lambda m, d, *r: d.update(bias=b[:2])), fill(lin), lin.bias
nn.BCEWithLogitsLoss(weight=b).state_dict()
nn.Module().state_dict()._metadata
"""

PARAMETER = """
nn.Parameter(), nn.Parameter(torch.zeros(2, 0))
nn.Parameter([1.0])
nn.Parameter(torch.tensor([1]))
nn.Parameter(torch.tensor([1]), requires_grad=False)
type(p * 2).__name__, type(p.data).__name__, type(p.detach()).__name__, type(p.clone()).__name__
isinstance(p, nn.Parameter), isinstance(p, torch.Tensor), isinstance(torch.zeros(1), nn.Parameter)
isinstance(nn.Buffer(b), nn.Buffer), isinstance(b, nn.Buffer), type(nn.Buffer(b)).__name__
nn.Buffer(b, persistent=False).persistent, nn.Buffer()
copy.deepcopy(p), copy.deepcopy(p).requires_grad, type(copy.deepcopy(p)).__name__
setattr(p, "grad", torch.ones(2)), setattr(p, "tag", 3), copy.deepcopy(p).grad, copy.copy(p).tag
pickle.loads(pickle.dumps(p)), type(pickle.loads(pickle.dumps(p))).__name__
setattr(p, "tag", 3), pickle.loads(pickle.dumps(p)).tag
copy.deepcopy(nn.Buffer(b, persistent=False)).persistent
p.is_leaf, p.requires_grad, p.grad, len(p)
"""

CONTAINERS = """
nn.Sequential(R(), T())[0:1], nn.Sequential(R(), T())[-1]
nn.Sequential(R())["0"]
nn.Sequential(R())[3]
nn.Sequential(3)
nn.Sequential({"a": R()})
nn.Sequential()(3)
nn.Sequential(R()).append(3)
nn.Sequential(R()).insert(5, R())
nn.Sequential(R()).insert(5, 3)
nn.Sequential(R(), T()).insert(-1, nn.Sigmoid()), nn.Sequential(R()).insert(0, T())
nn.Sequential(R()).extend(3)
nn.Sequential(R()) + 3
nn.Sequential(R(), T()) + nn.Sequential(R())
nn.Sequential(R()) * 0
nn.Sequential(R()) * 2, 2 * nn.Sequential(R())
nn.Sequential(R(), T()).pop(0)
(s := nn.Sequential(R(), T(), R())).__delitem__(1), s, list(s._modules)
(s := nn.Sequential(R(), T(), R())).__delitem__(slice(0, 2)), s, list(s._modules)
(s := nn.Sequential(R(), T())).__setitem__(-1, nn.Sigmoid()), s
nn.Sequential(OrderedDict(a=R(), b=T()))[1:], nn.Sequential(OrderedDict(a=R(), b=T())).append(R())
nn.Sequential(nn.Linear(1, 2), nn.Sequential(R())), len(nn.Sequential(R()))
nn.Sequential(None, R())
nn.ModuleList(3)
nn.ModuleList([3])
nn.ModuleList([R()]).extend(3)
nn.ModuleList([R()])[3]
nn.ModuleList([R()])["3"]
nn.ModuleList([R()])()
nn.ModuleList([R()] * 3 + [nn.Linear(1, 2)]), nn.ModuleList()
nn.ModuleList([nn.Sequential(R(), R()), nn.Sequential(R(), R()), nn.Linear(1, 2)])
nn.ModuleList([R(), T()])[0:1], nn.ModuleList([R()]) + [T()], nn.ModuleList([R()]).append(T())
(m := nn.ModuleList([R(), T()])).insert(0, nn.Sigmoid()), m, m.pop(-1), m
(m := nn.ModuleList([R(), T()])).__delitem__(0), m, list(m._modules)
nn.ModuleList([None, R()])
nn.ModuleDict(3)
nn.ModuleDict([3])
nn.ModuleDict([(3, 4, 5)])
nn.ModuleDict({3: R()})
nn.ModuleDict({"a": 3})
nn.ModuleDict({"a": R()})["b"]
nn.ModuleDict({"pop": R()})
nn.ModuleDict({"a": R()})()
nn.ModuleDict({"b": R(), "a": R()}), nn.ModuleDict([["a", R()]])
(d := nn.ModuleDict({"a": R()})).pop("a"), len(d), "a" in d
(d := nn.ModuleDict({"a": R()})).update({"b": T()}), list(d), list(d.keys()), [*d.values()], [*d.items()]
nn.ParameterList([1, "a", torch.zeros(1), p])
nn.ParameterList([torch.zeros(1)])()
nn.ParameterList([torch.zeros(1)])[2]
nn.ParameterList(3)
nn.ParameterList(torch.zeros(2))
nn.ParameterList([torch.zeros(1), torch.ones(2)])[0:1]
(l := nn.ParameterList([torch.zeros(1)])).append(p), len(l), l[-1] is p, list(l.state_dict())
(l := nn.ParameterList([torch.zeros(1)])).__setitem__(0, torch.ones(3)), l
nn.ParameterDict({"a": torch.zeros(1), "c": 3})
nn.ParameterDict({"a": torch.zeros(1)})()
nn.ParameterDict({"b": b, "a": b}).keys(), nn.ParameterDict(OrderedDict(b=b, a=b)).keys()
nn.ParameterDict({3: b})
nn.ParameterDict(3)
nn.ParameterDict([3])
nn.ParameterDict([(3, 4, 5)])
nn.ParameterDict([("a", b)])["b"]
nn.ParameterDict([("a", b)]).pop("b")
nn.ParameterDict([("a", b)]).get("b"), nn.ParameterDict([("a", b)]).popitem()
nn.ParameterDict([("a", b)]) | {"c": b}
{"c": b} | nn.ParameterDict([("a", b)])
nn.ParameterDict([("a", b)]).fromkeys(["x", "y"], 3), nn.ParameterDict([("a", b)]).setdefault("z", b)
nn.ParameterDict([("keys", b)])
nn.Container(a=R())
"""

HOOKS = """
tap(lin, "forward_pre_hook")
tap(lin, "forward_hook")
tap(lin, "forward_hook", hook=lambda m, args, out: out * 2)
tap(lin, "forward_pre_hook", hook=lambda m, args: args[0] * 3)
tap(lin, "full_backward_hook")
tap(lin, "full_backward_pre_hook")
tap(lin, "full_backward_hook full_backward_pre_hook")
tap(lin, "full_backward_hook", hook=lambda m, gi, go: (gi[0] * 2,))
tap(lin, "full_backward_pre_hook", hook=lambda m, go: (go[0] * 2,))
tap(lin, "full_backward_hook", hook=lambda m, gi, go: (1, 2))
tap(lin, "full_backward_pre_hook", hook=lambda m, go: (1, 2))
tap(lin, "full_backward_hook", x=torch.ones(1, 2))
tap(lin, "full_backward_hook", x=torch.ones(1, 2), hook=lambda m, gi, go: (1,))
tap(Dict(), "full_backward_hook")
tap(lin, "backward_hook full_backward_hook")
lin.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True), lin(a)
lin.register_forward_pre_hook(lambda m, a, k: ((k["input"],), {}), with_kwargs=True), lin(input=a).shape
lin.register_forward_hook(lambda m, a, k, out: (len(a), list(k)), with_kwargs=True), lin(input=a)
failing(Boom(), x, forward_hook={"always_call": True})
failing(Boom(), x, forward_hook={})
Boom().register_forward_hook(lambda *a: 1 / 0, always_call=True)
(m := Boom()).register_forward_hook(lambda *a: 1 / 0, always_call=True), m(x)
(h := lin.register_forward_hook(lambda *a: 7)), lin(a), h.remove(), lin(a).shape
[lin.register_forward_hook(hook) for hook in (lambda m, a, o: [1], lambda m, a, o: o + [2])], lin(a)
[lin.register_forward_hook(lambda m, a, o, i=i: i, prepend=i == 2) for i in (1, 2)], lin(a)
(m := Pair()).register_full_backward_hook(lambda m, gi, go: None), m(p, p)[1].sum().backward(), p.grad
"""

LAYERS = """
nn.Linear(0, 3)
nn.Linear(-1, 3)
nn.Bilinear(0, 3, 2)
nn.Bilinear(2, 3, 2), nn.Bilinear(2, 2, 2)(a, a).detach(), nn.Bilinear(2, 3, 2, bias=False).bias
nn.Linear(3, 2)(torch.ones(2, 5))
nn.Linear(3, 2).weight, nn.Linear(3, 2, bias=False), nn.Linear(3, 2, dtype=torch.float64).bias
nn.Linear(3, 2, device="meta").weight.device
nn.Identity(3, unused=4)(x)
nn.Embedding(4, 2), nn.Embedding(4, 2, 1, 1.0, 1.0, True), nn.Embedding(4, 2, padding_idx=-1).weight
nn.Embedding(4, 2)(i), nn.Embedding(4, 2, max_norm=0.1)(i), nn.Embedding(4, 2)(torch.tensor([[0, 3]])).shape
nn.Embedding(4, 2, padding_idx=4)
nn.Embedding(4, 2, padding_idx=-5)
nn.Embedding(4, 2, _weight=a)
nn.Embedding.from_pretrained(a), nn.Embedding.from_pretrained(a).weight, nn.Embedding.from_pretrained(a)(k)
nn.Embedding.from_pretrained(b)
(e := nn.Embedding(4, 2, padding_idx=1)), e(torch.tensor([1, 1, 2])).sum().backward(), e.weight.grad
nn.Flatten(), nn.Flatten(0)(a), nn.Flatten(1, 5)(x)
nn.Unflatten(1, 3)
nn.Unflatten(1, (2, "a"))
nn.Unflatten(1, (2, 2)), nn.Unflatten(1, (1, 2))(a).shape
nn.Dropout(2)
nn.Dropout(-0.5)
nn.Dropout(), nn.Dropout(0.2, True), nn.Dropout2d(0.3), nn.AlphaDropout().eval()(x), nn.Dropout(1.0)(x)
nn.ReLU(True), nn.Hardtanh(inplace=True), nn.ReLU6(True), nn.ELU(inplace=True), nn.Threshold(1, 2, True)
nn.SELU(True), nn.CELU(2, True), nn.SiLU(True), nn.Mish(True), nn.Hardswish(True), nn.Hardsigmoid(True)
nn.LeakyReLU(0.1, True), nn.RReLU(inplace=True), nn.GELU("tanh"), nn.Softmax(1)
nn.PReLU(2), nn.GLU(), nn.Softplus(), nn.Sigmoid(), nn.LogSigmoid(), nn.Softsign()
nn.Hardtanh(min_value=1, max_value=3)
nn.Hardtanh(2, 1)
nn.Softmax2d()(x)
nn.Softmax()(x)
nn.Softmax2d()(torch.ones(2, 1, 1)), nn.Hardshrink(), nn.Softshrink(1), nn.LogSoftmax(0)(x), nn.Softmin(0)(x)
nn.RReLU()(x), nn.RReLU().eval()(x), nn.PReLU()(x).detach(), nn.Threshold(0, 9)(x), nn.Tanhshrink()(x)
nn.MSELoss(size_average=False).reduction
nn.MSELoss(reduce=False).reduction
nn.MultiMarginLoss(p=3)
nn.TripletMarginLoss(margin=-1)
nn.TripletMarginWithDistanceLoss(margin=-1)
nn.TripletMarginWithDistanceLoss()
nn.NLLLoss2d()
nn.CosineSimilarity(), nn.CosineSimilarity()(a, a), nn.PairwiseDistance()(a, a * 2)
nn.CrossEntropyLoss(torch.ones(2))(a, k), nn.NLLLoss()(a, k), nn.BCELoss()(a, a), nn.L1Loss()(a, a * 2)
nn.HuberLoss()(a, a * 3), nn.SmoothL1Loss(beta=2.0)(a, a * 2), nn.KLDivLoss(reduction="sum")(a, a)
nn.MarginRankingLoss()(b, b, b), nn.SoftMarginLoss()(a, a), nn.PoissonNLLLoss()(a, a)
nn.HingeEmbeddingLoss()(a, a), nn.MultiLabelMarginLoss()(a, (a * 0).long()), nn.MultiMarginLoss()(a, k)
nn.GaussianNLLLoss()(a, a, a)
nn.CosineEmbeddingLoss()(a, a, b), nn.TripletMarginLoss()(a, a, a), nn.MultiLabelSoftMarginLoss()(a, a)
"""

UTILS = """
U.clip_grad_norm_(graded(), 1.0)
(q := graded()), U.clip_grad_norm_(q, 1.0), [v.grad for v in q]
(q := graded()), U.clip_grad_norm_(q, 1.0, norm_type=1), [v.grad for v in q]
(q := graded()), U.clip_grad_norm_(q, 1.0, norm_type="inf"), [v.grad for v in q]
(q := graded()), U.clip_grad_norm_(q, 100.0), [v.grad for v in q]
(q := graded()), U.clip_grad_norm_(q[0], 1.0), [v.grad for v in q]
(q := graded(float("nan"))), U.clip_grad_norm_(q, 1.0), [v.grad for v in q]
U.clip_grad_norm_(graded(float("nan")), 1.0, error_if_nonfinite=True)
U.clip_grad_norm_([], 1.0), U.clip_grad_norm_((v for v in graded()), 1.0)
U.clip_grad_norm(graded(), 1.0)
(q := graded()), U.clip_grad_value_(q, 1.5), [v.grad for v in q]
U.get_total_norm(torch.ones(3)), U.get_total_norm([])
U.parameters_to_vector(graded()), U.vector_to_parameters(torch.arange(6.0), q := graded()), q
U.vector_to_parameters([1.0], graded())
U.vector_to_parameters(torch.arange(4.0), graded())
U.parameters_to_vector([])
U.skip_init(nn.Linear, 2, 3).weight.shape, U.skip_init(nn.Linear, 2, 3, dtype=torch.float64).weight.dtype
U.skip_init(int)
U.skip_init(nn.ReLU)
rnn.pad_sequence([a, a[:1]]), rnn.pad_sequence([a, a[:1]], True, -1.0, padding_side="left")
rnn.pad_sequence([a], padding_side="x")
rnn.pad_sequence([])
rnn.pad_sequence(3)
rnn.pad_sequence(a), rnn.pad_sequence([torch.ones(2), torch.ones(3).double()])
rnn.pack_padded_sequence(three, [3, 1, 2])
rnn.pack_padded_sequence(three, [3, 1, 2], enforce_sorted=False)
rnn.pack_padded_sequence(three.transpose(0, 1), torch.tensor([3, 1, 2]), True, False)
rnn.pack_padded_sequence(three, [3, 0, 2], enforce_sorted=False)
rnn.pack_padded_sequence(three, [3, 1])
rnn.pack_padded_sequence(torch.ones(0, 1, 2), [1])
rnn.pack_padded_sequence(three, torch.tensor([[3, 1, 2]]))
rnn.pad_packed_sequence(packed), rnn.pad_packed_sequence(packed, True, 9.0, 4)
rnn.pad_packed_sequence(packed, total_length=2)
rnn.pack_sequence([a, a[:2], a[:1]]), rnn.pack_sequence([a[:1], a], enforce_sorted=False)
rnn.pack_sequence([a[:1], a])
rnn.unpack_sequence(packed), rnn.unpad_sequence(three, torch.tensor([3, 1, 2]))
rnn.invert_permutation(torch.tensor([2, 0, 1])), rnn.invert_permutation(None)
packed.double().data.dtype, packed.to(torch.float16).data.dtype, packed.to("cpu") is packed, packed.is_cuda
rnn.PackedSequence(torch.ones(3, 2), torch.tensor([2, 1]), torch.tensor([1, 0]))
nn.LazyLinear(2), nn.LazyLinear(2).weight, list(nn.LazyLinear(2).state_dict())
(l := nn.LazyLinear(2)), l(a).shape, l, l.weight
nn.LazyLinear(2).weight.shape
nn.UninitializedBuffer(), copy.deepcopy(nn.UninitializedParameter()), nn.UninitializedParameter().is_leaf
(l := nn.LazyLinear(2)).load_state_dict(lin.state_dict()), l.weight.shape
"""

INIT = [
    f"init.{name}(torch.full({size}, 7.0){rest})"
    for name, rest in {
        "uniform_": ", -2, 3",
        "normal_": "",
        "trunc_normal_": "",
        "constant_": ", 3",
        "ones_": "",
        "zeros_": "",
        "eye_": "",
        "dirac_": "",
        "xavier_uniform_": ", gain=2.0",
        "xavier_normal_": "",
        "kaiming_uniform_": ", mode='fan_out', nonlinearity='relu'",
        "kaiming_normal_": "",
        "sparse_": ", 0.5",
    }.items()
    for size in ((), (4,), (3, 5), (4, 3, 5), (5, 4, 3, 2), (0, 3))
]
INIT += """
[init.calculate_gain(n) for n in ("linear", "conv1d", "sigmoid", "tanh", "relu", "leaky_relu", "selu")]
init.calculate_gain("leaky_relu", 0.2)
init.calculate_gain("foo")
init.calculate_gain("leaky_relu", "a")
init.calculate_gain("leaky_relu", True)
init.dirac_(torch.zeros(4, 2, 3), 2)
init.dirac_(torch.zeros(4, 2, 3), 3)
init.kaiming_uniform_(a, mode="foo")
init.kaiming_uniform_(a, nonlinearity="foo")
init.trunc_normal_(torch.zeros(3, 9), 0, 2, -1, 1)
init.trunc_normal_(torch.zeros(3, 9), 5, 1, -1, 1)
init.uniform_(a, 3, 1)
init.normal_(a, 0, -1)
init.uniform(a)
init.uniform_(a, generator=torch.Generator().manual_seed(1))
init.ones_(p) is p, p
init.sparse_(torch.zeros(4, 3), 0.3, std=2)
""".strip().split("\n")

ACTIVATION_NAMES = re.findall(
    r"\w+",
    """
    relu relu6 elu selu celu gelu silu mish hardswish hardsigmoid hardtanh
    leaky_relu logsigmoid softplus softsign tanhshrink hardshrink softshrink sigmoid tanh rrelu
    """,
)
# torch's gelu is NaN at infinity and its log of sigmoid 0, not -0; relu words its errors differently.
DIFFERENT = {
    ("gelu", "odd"),
    ("logsigmoid", "odd"),
    ("relu", "i > 1"),
    ("relu", "[1.0]"),
    ("relu", "torch.ones(1, dtype=torch.complex64)"),
}
ACTIVATIONS = [
    f"F.{name}({argument})"
    for name in ACTIVATION_NAMES
    for argument in (
        "x",
        "x.double()",
        "i",
        "odd",
        "i > 1",
        "torch.zeros(0)",
        "torch.ones(1, dtype=torch.complex64)",
        "[1.0]",
    )
    if (name, argument) not in DIFFERENT
]
ACTIVATIONS += [
    f"F.{name}(y := x * 1, {options}) is y, y"
    for name, options in {
        "relu": "inplace=True",
        "elu": "0.5, True",
        "selu": "True",
        "celu": "2.0, True",
        "hardtanh": "-0.5, 0.5, True",
        "leaky_relu": "0.5, True",
        "threshold": "1, 5, True",
        "silu": "True",
        "mish": "True",
        "hardswish": "True",
        "hardsigmoid": "True",
        "rrelu": "0.1, 0.3, True, True",
        "relu6": "True",
    }.items()
]
FUNCTIONAL = """
F.threshold(i, 1, 0), F.threshold(odd, 1, 0)
F.softmax(x)
F.softmax(torch.tensor([[1, 2]]), 0)
F.softmax(x, 3)
F.softmax(i, 0, dtype=torch.float64), F.softmax(torch.tensor(2.0), 0), F.softmax(torch.zeros(0, 3), 0)
F.log_softmax(x)
F.softmin(x)
F.log_softmax(torch.tensor([[1, 2]]), 0)
F.softmax(torch.full((2,), -float("inf")), 0)
F.glu(torch.ones(3))
F.glu(torch.tensor(1.0))
F.glu(i)
F.glu(torch.ones(2, 3), 0)
F.glu(torch.ones(2), 3)
F.hardtanh(x, 2, 1)
F.softshrink(x, -1)
F.gelu(x, approximate="x")
F.prelu(x, torch.ones(3))
F.prelu(torch.ones(2, 3), torch.ones(2))
F.prelu(torch.tensor(1.0), torch.ones(2))
F.prelu(x.double(), torch.ones(1))
F.prelu(torch.tensor(-1.0), torch.ones(1) * 0.5), F.prelu(-torch.ones(2, 3), torch.tensor(0.5))
F.dropout(x, 1.5)
F.dropout(i, 0.5)
F.dropout(x, 1.0), F.dropout(x, 0.0), F.dropout(i, 0.5, False)
F.dropout(torch.ones(40), 0.3), F.dropout(torch.ones(3, 3), 0.3), F.alpha_dropout(torch.ones(20), 0.5, True)
F.dropout1d(torch.ones(2, 3, 4)), F.dropout1d(torch.ones(2, 3)), F.dropout3d(torch.ones(2, 3, 4, 5))
F.dropout2d(torch.ones(2, 3, 2, 2)), F.feature_alpha_dropout(torch.ones(2, 3, 2), 0.5, True)
F.dropout1d(x)
F.dropout2d(x)
F.dropout3d(x)
F.dropout2d(torch.ones(2, 3, 4))
F.gumbel_softmax(x), F.gumbel_softmax(a, tau=2, hard=True, dim=0)
F.bilinear(torch.ones(2, 3), torch.ones(3, 4), torch.ones(5, 3, 4))
F.bilinear(torch.ones(2, 3), torch.ones(2, 2, 4), torch.ones(5, 3, 4))
F.bilinear(torch.ones(2, 2), torch.ones(2, 4), torch.ones(5, 3, 4))
F.bilinear(torch.ones(2, 3), torch.ones(2, 5), torch.ones(5, 3, 4))
F.bilinear(torch.ones(2, 3), torch.ones(2, 4), torch.ones(5, 3, 4), torch.ones(6))
F.binary_cross_entropy(a * 2, a)
F.binary_cross_entropy_with_logits(a, a, pos_weight=torch.ones(3))
F.smooth_l1_loss(a, a, beta=-1)
F.smooth_l1_loss(a, a * 2, beta=0)
F.huber_loss(a, a, delta=0)
F.kl_div(a, a, log_target=True, reduction="batchmean"), F.kl_div(a, a * 0, reduction="sum")
F.kl_div(torch.tensor(1.0), torch.tensor(1.0), reduction="batchmean")
F.nll_loss(a, torch.tensor([0, 5, 1]))
F.nll_loss(a, torch.tensor([0, -1, 1]))
F.nll_loss(a, torch.tensor([0, -100, 1])), F.nll_loss(a, torch.tensor([-100, -100, -100]))
F.nll_loss(a, torch.tensor([0, 1]))
F.nll_loss(a, k, weight=torch.ones(3))
F.nll_loss(torch.ones(3), torch.tensor(1)), F.nll_loss(torch.ones(3), torch.tensor([1]))
F.nll_loss(torch.ones(2, 3, 4), torch.zeros(2, 4).long()), F.nll_loss(torch.ones(0, 3), torch.zeros(0).long())
F.nll_loss(torch.ones(2, 3, 4), torch.zeros(2, 5).long())
F.nll_loss(torch.ones(2, 3, 4, 5), torch.zeros(2, 4, 6).long())
F.nll_loss(torch.tensor(1.0), torch.tensor(1))
F.nll_loss(a, k.byte())
F.nll_loss(a, k.int())
F.cross_entropy(a, torch.tensor([0, 5, 1]))
F.cross_entropy(a, k, label_smoothing=2)
F.cross_entropy(a, k, label_smoothing=0.1), F.cross_entropy(torch.ones(3), torch.tensor(1))
F.cross_entropy(a, a, ignore_index=1)
F.cross_entropy(a, a, weight=torch.ones(3))
F.cross_entropy(a, k, weight=torch.ones(2).double())
F.cross_entropy(a, k, weight=torch.tensor([1.0, 2]), label_smoothing=0.1)
F.cross_entropy(a, torch.tensor([0, -100, 1]), weight=torch.tensor([1.0, 2]), label_smoothing=0.1)
F.cross_entropy(a, a * 0.5, weight=torch.tensor([1.0, 2]), label_smoothing=0.1, reduction="none")
F.cross_entropy(a, a.long())
F.cosine_embedding_loss(a, a, torch.ones(2))
F.cosine_embedding_loss(a, a, torch.ones(3, 1))
F.cosine_embedding_loss(a, b, b)
F.cosine_embedding_loss(b, b, torch.tensor(1.0))
F.margin_ranking_loss(a, b, b)
F.triplet_margin_loss(a, a, a, margin=-1)
F.triplet_margin_loss(a, b, a)
F.triplet_margin_loss(a, a * 2, a, swap=True)
F.triplet_margin_with_distance_loss(a, b, a)
F.cosine_similarity(a, b)
F.cosine_similarity(i, i)
F.cosine_similarity(a, a * 0), F.cosine_similarity(a, a.double()), F.cosine_similarity(a, a, dim=4)
F.multi_margin_loss(a, k, p=3)
F.multi_margin_loss(a, torch.tensor([0, 3, 1]))
F.multi_margin_loss(a, k, weight=torch.ones(4))
F.multi_margin_loss(torch.ones(3), torch.tensor(0)), F.multi_margin_loss(a, k, p=2, margin=0.5)
F.multi_margin_loss(torch.ones(3, 2, 2), k)
F.multilabel_margin_loss(a, torch.zeros(3, 3).long())
F.multilabel_margin_loss(a, torch.ones(3, 2).long() * 5)
F.poisson_nll_loss(a, a * 3, log_input=False, full=True)
F.gaussian_nll_loss(a, a, b), F.gaussian_nll_loss(a, a, 2.0), F.gaussian_nll_loss(a, a, a, full=True)
F.gaussian_nll_loss(a, a, -torch.ones(3, 1))
F.gaussian_nll_loss(a, a, torch.ones(3, 4))
F.mse_loss(a, a * 2, weight=a * 3), F.l1_loss(a, a * 2, weight=a * 3), F.huber_loss(a, a * 2, weight=a * 3)
F.mse_loss(a, a, weight=b)
""".strip().split("\n")

LOSS_NAMES = re.findall(
    r"\w+",
    """
    mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy soft_margin_loss
    poisson_nll_loss binary_cross_entropy_with_logits kl_div multilabel_soft_margin_loss cross_entropy
    nll_loss hinge_embedding_loss multilabel_margin_loss multi_margin_loss
    """,
)
LOSSES = [
    f"F.{name}({arguments})"
    for name in LOSS_NAMES
    for arguments in (
        "a, torch.ones(3, 1)",
        "a, a, reduction='foo'",
        "a, a * 0.5",
        "torch.zeros(0), torch.zeros(0)",
        "a.long(), a.long()",
    )
    # Here our mean of integers is a number where torch's is an error, and an empty target has no size.
    if (name, arguments[:4]) not in {("hinge_embedding_loss", "a.lo"), ("nll_loss", "torc")}
]

TABLE = [
    line
    for block in (MODULE, STATE, PARAMETER, CONTAINERS, HOOKS, LAYERS, UTILS)
    for line in block.strip().split("\n")
]


if not hasattr(rushlight.autograd, "Function"):
    # Hooks on gradients are built on it.
    TABLE = [line for line in TABLE if "full_backward" not in line and "backward_hook" not in line]


@pytest.mark.parametrize("text", [*TABLE, *INIT, *ACTIVATIONS, *FUNCTIONAL, *LOSSES])
def test_expression(text):
    assert outcome(rushlight, text, SETUP) == outcome(torch, text, SETUP)
