"""Modules on their own: what a user relies on, with the numbers written down."""

import collections
import copy
import gc
import pickle
import weakref

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)

    def forward(self, x):
        return self.layers(x - self.mean)


def test_default_initialisation_is_torchs():
    torch.manual_seed(0)
    layer = nn.Linear(2, 2)
    assert layer.weight.flatten().tolist() == pytest.approx([-0.0053, 0.3793, -0.5820, -0.5204], abs=1e-4)
    assert layer.bias.tolist() == pytest.approx([-0.2723, 0.1896], abs=1e-4)


def test_names():
    net = Net()
    assert list(net.state_dict()) == [
        "mean",
        "layers.0.weight",
        "layers.0.bias",
        "layers.2.weight",
        "layers.2.bias",
    ]
    assert [name for name, _ in net.named_modules()] == ["", "layers", "layers.0", "layers.1", "layers.2"]
    assert [name for name, _ in net.named_buffers()] == ["mean", "scratch"]
    assert net.get_submodule("layers.2") is net.layers[2]
    assert net.get_parameter("layers.0.bias") is net.layers[0].bias


def test_gradients_reach_the_parameters():
    net = Net()
    net(torch.ones(5, 3)).sum().backward()
    assert all(p.grad is not None and p.grad.shape == p.shape for p in net.parameters())
    assert net.layers[2].bias.grad.tolist() == [5.0]
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())


def test_an_error_names_the_module():
    net = Net()
    with pytest.raises(RuntimeError) as caught:
        net.layers[0:1](torch.ones(2, 7))
    assert caught.value.__notes__ == ["In module Sequential.0 (Linear)"]
    with pytest.raises(RuntimeError) as caught:
        net.mean = torch.zeros(7)
        net(torch.ones(2, 7))
    assert caught.value.__notes__ == ["In module Net.layers.0 (Linear)"]
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args


def test_the_broadcast_warning_names_the_users_line():
    loss = nn.MSELoss()
    with pytest.warns(UserWarning, match=r"torch.Size\(\[3\]\).*torch.Size\(\[3, 1\]\)") as caught:
        loss(torch.ones(3, 1), torch.ones(3))
    assert caught[0].filename == __file__


def test_save_and_load():
    torch.manual_seed(0)
    one, other = Net(), Net()
    x = torch.ones(2, 3)
    assert one(x).tolist() != other(x).tolist()
    assert str(other.load_state_dict(one.state_dict())) == "<All keys matched successfully>"
    assert one(x).tolist() == other(x).tolist()
    assert other.layers[0].weight is not one.layers[0].weight
    with pytest.raises(RuntimeError, match="Missing key"):
        other.load_state_dict({})


@pytest.mark.parametrize("again", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_are_independent(again):
    net = Net()
    net.layers.register_forward_hook(_double)
    other = again(net)
    x = torch.ones(2, 3)
    assert other(x).tolist() == net(x).tolist()
    with torch.no_grad():
        other.layers[0].weight.zero_()
    assert other(x).tolist() != net(x).tolist()
    assert isinstance(other.layers[0].weight, nn.Parameter)


def _double(module, args, output):
    return output * 2


def test_conversion_keeps_the_parameter_objects():
    net = Net()
    weight = net.layers[0].weight
    net(torch.ones(1, 3)).sum().backward()
    net.double()
    assert net.layers[0].weight is weight
    assert weight.dtype == weight.grad.dtype == net.mean.dtype == torch.float64
    assert net(torch.ones(1, 3, dtype=torch.float64)).dtype == torch.float64


def test_hooks_come_and_go():
    layer = nn.Linear(2, 2)
    calls = []
    handle = layer.register_forward_hook(lambda module, args, output: calls.append("hook"))
    layer(torch.ones(2))
    with layer.register_forward_pre_hook(lambda module, args: calls.append("pre")):
        layer(torch.ones(2))
    handle.remove()
    layer(torch.ones(2))
    assert calls == ["hook", "pre", "hook"]


def test_global_hooks():
    calls = []
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, output: calls.append(module))
    try:
        layer = nn.Identity()
        layer(torch.ones(1))
    finally:
        handle.remove()
    layer(torch.ones(1))
    assert calls == [layer]


def test_registration_hooks():
    seen = []
    handle = nn.modules.module.register_module_parameter_registration_hook(
        lambda module, name, value: seen.append(name)
    )
    try:
        nn.Linear(1, 1)
    finally:
        handle.remove()
    assert seen == ["weight", "bias"]


def test_a_module_is_freed():
    net = Net()
    net(torch.ones(1, 3)).sum().backward()
    gone = weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None


def test_call_passes_everything_on():
    class Echo(nn.Module):
        def forward(self, *args, **kwargs):
            return args, kwargs

    echo = Echo()
    assert echo() == ((), {})
    assert echo(1) == ((1,), {})
    assert echo(1, 2, a=3) == ((1, 2), {"a": 3})
    assert echo(input=1) == ((), {"input": 1})
    echo.register_forward_hook(lambda *args: None)
    assert echo() == ((), {})
    assert echo(1, 2, a=3) == ((1, 2), {"a": 3})


def test_inplace_activations_differentiate():
    for name in (
        "relu",
        "elu",
        "selu",
        "celu",
        "silu",
        "mish",
        "hardswish",
        "hardsigmoid",
        "hardtanh",
        "relu6",
    ):
        function = getattr(F, name)
        x = torch.tensor([-4.0, -0.5, 0.25, 7.0], requires_grad=True)
        y = x * 1
        assert function(y, inplace=True) is y
        y.sum().backward()
        z = torch.tensor([-4.0, -0.5, 0.25, 7.0], requires_grad=True)
        function(z * 1).sum().backward()
        if name in ("elu", "selu", "celu"):  # from the result, as in torch
            torch.testing.assert_close(x.grad, z.grad)
        else:
            assert x.grad.equal(z.grad)
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            function(z, inplace=True)


@pytest.mark.parametrize(
    ("name", "at", "slope"),
    [
        ("relu", 0.0, 0.0),
        ("relu6", 6.0, 0.0),
        ("relu6", 0.0, 0.0),
        ("hardtanh", 1.0, 0.0),
        ("hardtanh", -1.0, 0.0),
        ("elu", 0.0, 1.0),
        ("leaky_relu", 0.0, 0.01),
        ("logsigmoid", 0.0, 0.5),
        ("softshrink", 0.5, 0.0),
        ("hardshrink", 0.5, 0.0),
        ("hardsigmoid", 3.0, 0.0),
        ("softsign", 0.0, 1.0),
    ],
)
def test_derivative_at_the_kink(name, at, slope):
    x = torch.tensor(at, requires_grad=True)
    getattr(F, name)(x).backward()
    assert x.grad.item() == pytest.approx(slope)


def test_losses_far_from_overflow():
    big = torch.tensor([1000.0, -1000.0], requires_grad=True)
    F.binary_cross_entropy_with_logits(big, torch.tensor([1.0, 0.0])).backward()
    assert big.grad.tolist() == [0.0, 0.0]
    logits = torch.tensor([[1000.0, 0.0]], requires_grad=True)
    loss = F.cross_entropy(logits, torch.tensor([0]))
    loss.backward()
    assert loss.item() == 0.0
    assert logits.grad.tolist() == [[0.0, 0.0]]


def test_torchs_import_paths():
    from rushlight.nn.modules.container import Sequential
    from rushlight.nn.modules.linear import Linear
    from rushlight.nn.modules.module import Module

    from rushlight.nn.parameter import Parameter

    assert (Sequential, Linear, Module, Parameter) == (nn.Sequential, nn.Linear, nn.Module, nn.Parameter)
    assert nn.modules.Linear is nn.Linear


def test_a_lazy_layer_becomes_an_ordinary_one():
    layer = nn.LazyLinear(2)
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter"):
        layer.weight.shape
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        layer.weight + 1
    layer.double()
    assert layer(torch.ones(5, 3, dtype=torch.float64)).shape == (5, 2)
    assert type(layer) is nn.Linear
    assert type(layer.weight) is nn.Parameter
    other = nn.LazyLinear(2)
    other.load_state_dict(layer.state_dict())
    assert other(torch.ones(1, 3)).shape == (1, 2)


@pytest.mark.parametrize("flat", ["rows", "columns", "inner", "none"])
def test_grouped_products(flat):
    offs = torch.tensor([3, 5], dtype=torch.int32)
    a, b = torch.randn(5, 4), torch.randn(2, 4, 6)
    many = torch.randn(2, 3, 4)
    ends = [(0, 3), (3, 5)]
    if flat == "rows":
        got, expected = (
            F.grouped_mm(a, b, offs=offs),
            torch.cat([a[i:j] @ b[g] for g, (i, j) in enumerate(ends)]),
        )
    elif flat == "columns":
        got = F.grouped_mm(many, a.t(), offs=offs)
        expected = torch.cat([many[g] @ a.t()[:, i:j] for g, (i, j) in enumerate(ends)], 1)
    elif flat == "inner":
        got, expected = F.grouped_mm(a.t(), a, offs=offs), torch.stack([a[i:j].t() @ a[i:j] for i, j in ends])
    else:
        got, expected = F.grouped_mm(many, b), torch.bmm(many, b)
    assert torch.allclose(got, expected)
    with pytest.raises(RuntimeError, match="Have to provide offsets"):
        F.grouped_mm(a, b)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("kind", ["indices", "weighted", "probabilities"])
def test_linear_cross_entropy_in_pieces_is_the_same(reduction, kind):
    torch.manual_seed(0)
    x, table, bias = torch.randn(7, 3), torch.randn(4, 3), torch.randn(4)
    target = (
        torch.tensor([0, 1, -100, 2, 3, 3, 1]) if kind != "probabilities" else torch.rand(7, 4).softmax(1)
    )
    weight = torch.rand(4) if kind == "weighted" else None
    results = []
    for options in (None, nn.LinearCrossEntropyOptions(batch_chunk_size=3)):
        leaves = [t.clone().requires_grad_() for t in (x, table, bias)]
        loss = F.linear_cross_entropy(
            leaves[0], leaves[1], target, linear_bias=leaves[2], weight=weight, reduction=reduction,
            label_smoothing=0.1, options=options,
        )  # fmt: skip
        loss.sum().backward()
        results.append([loss, *(leaf.grad for leaf in leaves)])
    for whole, pieces in zip(*results, strict=True):
        assert torch.allclose(whole, pieces, atol=1e-6)


def test_products_of_eight_bit_numbers_say_what_is_missing():
    for multiply in (F.scaled_mm, F.scaled_grouped_mm):
        with pytest.raises(NotImplementedError, match="8-bit"):
            multiply(torch.ones(1, 1), torch.ones(1, 1))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("batch, hidden", [(4, 33), (15, 80), (32, 330)])
def test_recurrent_layers_whose_weights_are_packed_once(kind, batch, hidden, threads):
    # Single precision, forward and backward, against double.
    torch.manual_seed(0)
    layer = getattr(nn, kind)(20, hidden)
    double = copy.deepcopy(layer).double()
    x = torch.randn(12, batch, 20, requires_grad=True)
    y = x.detach().double().requires_grad_()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        if batch == 15:  # packed sequences: fewer rows at every step
            lengths = [12] * 10 + [8, 6, 4, 2, 1]
            got, exact = (
                m(nn.utils.rnn.pack_padded_sequence(i, lengths))[0].data for m, i in ((layer, x), (double, y))
            )
        else:
            got, exact = layer(x)[0], double(y)[0]
        assert (got - exact).abs().max() < 2e-6
        got.square().sum().backward()
        exact.square().sum().backward()
    finally:
        torch.set_num_threads(before)
    assert (x.grad - y.grad).abs().max() < 1e-5 * y.grad.abs().max()
    for p, q in zip(layer.parameters(), double.parameters(), strict=True):
        assert (p.grad - q.grad).abs().max() < 1e-5 * q.grad.abs().max()


def test_attributes_are_found_in_tables_before_getattr_is_asked():
    class Asks(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 3)
            self.asked = []

        def __getattr__(self, name):
            if "asked" in self.__dict__:
                self.asked.append(name)
            return super().__getattr__(name)

    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 3)
            self.register_buffer("seen", torch.zeros(1))

        @property
        def broken(self):
            raise AttributeError("an inner error")

    asks, plain = Asks(), Plain()
    assert asks.layer.out_features == 3 and asks.asked == ["layer"]
    assert plain.layer is plain._modules["layer"] and plain.seen is plain._buffers["seen"]
    for name in ("nowhere", "broken"):
        with pytest.raises(AttributeError, match=f"'Plain' object has no attribute '{name}'"):
            getattr(plain, name)
    # Python's own rules come first, and a __getattr__ assigned later is asked.
    plain.__dict__["layer"] = 1
    assert plain.layer == 1
    del plain.__dict__["layer"]
    Plain.__getattr__ = lambda self, name: name
    assert plain.layer == "layer"
    del Plain.__getattr__
    assert plain.layer is plain._modules["layer"]
    # A table that is no plain dict is asked as __getattr__ asks it.
    plain.__dict__["_modules"] = collections.OrderedDict(plain._modules)
    assert plain.layer.in_features == 2
    del plain.__dict__["_parameters"]
    with pytest.raises(AttributeError):
        plain.layer


@pytest.mark.parametrize("name", ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d"])
def test_layers_call_what_stands_in_the_namespace(monkeypatch, name):
    """Counters of operations put their own functions into nn.functional."""
    seen = []
    before = getattr(F, name)
    monkeypatch.setattr(F, name, lambda *args: seen.append(name) or before(*args))
    dims = int(name[-2])
    layer = getattr(nn, ("ConvTranspose" if "transpose" in name else "Conv") + name[-2:])(2, 2, 1)
    layer(torch.ones(1, 2, *[3] * dims))
    assert seen == [name]


def test_calls_without_the_python_function_do_what_it_does():
    """A plain call goes past ModuleCall.__call__ (native/python/module_call.cpp)."""
    from rushlight.nn.module import Module

    class Net(Module):
        def __init__(self, scale=2):
            super().__init__()
            self.scale = scale

        def forward(self, *args, **kwargs):
            return args, kwargs, self.scale

    net = Net()
    many = tuple(range(12))
    for args, kwargs in (((), {}), ((1,), {}), (many, {}), ((1,), {"x": 2}), ((), {"input": 1, "self_": 2})):
        assert net(*args, **kwargs) == Module.__call__(net, *args, **kwargs) == (args, kwargs, 2)
    with pytest.raises(TypeError):
        net(self=1)

    net.forward = lambda x: x + 1  # an attribute of the instance comes first
    assert net(1) == 2
    del net.forward
    net.register_forward_hook(lambda module, args, result: "hooked")
    assert net(1) == "hooked"

    class Static(Net):
        forward = staticmethod(lambda x: x * 3)

    class Own(Net):
        def __call__(self, x):
            return ["own", super().__call__(x)]

    class Computed(Net):
        @property
        def forward(self):
            return lambda x: (self.scale, x)

    class Watched(Net):
        def __getattribute__(self, name):
            return (lambda x: "watched") if name == "forward" else super().__getattribute__(name)

    class Unprepared(Module):
        def __init__(self):
            pass

        def forward(self, x):
            return x

    assert Static()(2) == 6 and Own()(1) == ["own", ((1,), {}, 2)] and Computed()(1) == (2, 1)
    assert Watched()(1) == "watched" and Unprepared()(5) == 5
    Net.forward = lambda self, x: -x
    assert Net()(3) == -3

    plain = Net()
    Net.__call__ = lambda self, *args: "patched"
    assert plain(1) == "patched"
    del Net.__call__
    assert plain(1) == -1


def test_an_error_of_a_plain_call_tells_the_module():
    net = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Linear(2, 3)))
    with pytest.raises(RuntimeError) as caught:
        net(torch.ones(4, 5))
    assert caught.value.__notes__ == ["In module Sequential.1.0 (Linear)"]
    assert caught.value.__traceback__ is not None

    class Leaves(nn.Module):
        def forward(self, error):
            raise error

    for error in (KeyboardInterrupt(), SystemExit(), StopIteration()):
        with pytest.raises(type(error)) as caught:
            Leaves()(error)
        assert caught.value is error
        assert hasattr(error, "__notes__") == isinstance(error, Exception)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_losses_of_many_elements_are_those_of_few(reduction, dtype):
    # From 16384 elements on they are summed block by block, the same whatever the number of threads.
    torch.manual_seed(0)
    before = torch.get_num_threads()
    x, y = torch.randn(259, 301).to(dtype).requires_grad_(), torch.randn(259, 301).to(dtype) * 2
    for loss, each in (
        (F.mse_loss, lambda d: d * d),
        (F.huber_loss, lambda d: torch.where(d.abs() < 1, d * d / 2, d.abs() - 0.5)),
        (F.smooth_l1_loss, lambda d: torch.where(d.abs() < 1, d * d / 2, d.abs() - 0.5)),
    ):
        total = loss(x, y, reduction=reduction)
        exact = each(x.double() - y.double())
        exact = exact.mean() if reduction == "mean" else exact.sum()
        torch.testing.assert_close(total.double(), exact, rtol=1e-6, atol=0)
        gradients = [torch.autograd.grad(t, x)[0].double() for t in (total, exact)]
        torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-12)
        for threads in (1, 2, before):
            torch.set_num_threads(threads)
            assert total.equal(loss(x, y, reduction=reduction))
        turned = loss(x.t(), y.t(), reduction=reduction)
        torch.testing.assert_close(turned, total, rtol=1e-6, atol=0)
    bad = y.clone()
    bad[200, 3] = float("nan")
    assert F.mse_loss(x, bad).isnan() and F.huber_loss(bad, x).isnan()


def test_walks_go_as_the_generators_did():
    """native/python/module_tree.cpp: in the same order, as late, and past whoever has a walk of its own."""

    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(1, 1)

        def named_modules(self, memo=None, prefix="", remove_duplicate=True):
            yield prefix + "!", self

    shared = nn.Linear(2, 2)
    net = nn.Sequential(shared, nn.Sequential(shared, Own()), nn.BatchNorm1d(2))
    net.register_module("none", None)
    net.again = shared.weight
    assert [name for name, _ in net.named_modules()] == ["", "0", "1", "1.1!", "2"]
    names = [name for name, _ in net.named_modules(remove_duplicate=False)]
    assert names == ["", "0", "1", "1.0", "1.1!", "2"]
    assert [n for n, _ in net.named_modules(prefix="net")] == ["net", "net.0", "net.1", "net.1.1!", "net.2"]
    memo = {shared}
    assert [name for name, _ in net.named_modules(memo)] == ["", "1", "1.1!", "2"] and len(memo) == 4
    named = [name for name, _ in net.named_parameters()]
    assert named == ["again", "0.bias", "2.weight", "2.bias"]
    assert len(list(net.named_parameters(remove_duplicate=False))) == 7
    assert [id(p) for p in net.parameters()] == [id(p) for _, p in net.named_parameters()]
    assert [name for name, _ in net.named_parameters("p", recurse=False)] == ["p.again"]
    assert [name for name, _ in net.named_buffers()] == [
        "2.running_mean", "2.running_var", "2.num_batches_tracked"]  # fmt: skip
    assert len(list(net.buffers())) == 3 and list(net.buffers(recurse=False)) == []

    # What is replaced while somebody walks is met as it is then.
    seen = []
    for name, _ in net.named_modules():
        seen.append(name)
        if name == "0":
            net[1] = nn.Sequential(nn.ReLU())
    assert seen == ["", "0", "1", "1.0", "2"]
    walk = net.named_modules()
    assert next(walk)[1] is net and next(walk)[1] is shared
    net.register_module("more", nn.ReLU())
    with pytest.raises(RuntimeError, match="changed size during iteration"):
        list(walk)

    class Renamed(nn.Sequential):
        def named_parameters(self, *args, **kwargs):
            for name, p in super().named_parameters(*args, **kwargs):
                yield "renamed." + name, p

    class Chosen(nn.Sequential):
        def _named_members(self, get_members_fn, *args, **kwargs):
            for name, p in super()._named_members(get_members_fn, *args, **kwargs):
                if name.endswith("bias"):
                    yield name, p

    assert [n for n, _ in Renamed(shared).named_parameters()] == ["renamed.0.weight", "renamed.0.bias"]
    assert len(list(Renamed(shared).parameters())) == 2
    assert list(Chosen(shared).parameters()) == [shared.bias]
    net.named_parameters = lambda **kwargs: [("x", shared.bias)]
    assert list(net.parameters()) == [shared.bias]

    # A walk that refers to itself is collected.
    net = nn.Sequential(nn.ReLU())
    net.walk = net.named_modules()
    next(net.walk)
    gone = weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None


def test_plain_attributes_of_modules():
    class Guarded(nn.Module):
        def __init__(self):
            super().__init__()
            self.log = []

        @property
        def level(self):
            return self._level

        @level.setter
        def level(self, value):
            self._level = value + 1

    net = Guarded()
    net.level = 1
    assert net.level == 2 and "level" not in vars(net)
    net.weight = nn.Parameter(torch.ones(1))
    with pytest.raises(TypeError):
        net.weight = 3
    net.layer = nn.ReLU()
    with pytest.raises(TypeError):
        net.layer = "text"
    object.__setattr__(net, "hidden", nn.ReLU())
    assert "hidden" not in net._modules and net.hidden is vars(net)["hidden"]

    class Early(nn.Module):
        def __init__(self):
            self.early = 1
            super().__init__()

    assert Early().early == 1
    net.train(False)
    assert net.training is False and net.layer.training is False
