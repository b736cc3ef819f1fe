"""torch.fx: recorded programs compute what the programs do, and graphs can be changed, copied and run."""

import copy
import pickle
from math import sqrt

import pytest

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.passes.shape_prop import ShapeProp
from rushlight.nn import functional as F


@fx.wrap
def leaf(x, double):
    return x * (2 if double else 3)


fx.wrap("len")


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.scale = nn.Parameter(torch.ones(3))
        self.constant = torch.arange(3.0)

    def forward(self, x):
        return self.linear(x) * self.scale + self.constant, x


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.rest = nn.ModuleList([nn.Linear(3, 3), nn.Sequential(nn.Tanh(), nn.Dropout(0.5))])

    def forward(self, x, flag=False):
        y, z = self.inner(x)
        for module in self.rest:
            y = module(y)
        torch._assert(y.dim() == 2, "two dimensions")
        return (y * 2 if flag else y) + z


@pytest.fixture
def outer():
    torch.manual_seed(0)
    return Outer().eval()


X = torch.arange(6.0).reshape(2, 3)


def test_a_module_is_recorded(outer):
    traced = fx.symbolic_trace(outer, concrete_args={"flag": True})
    assert torch.equal(traced(X, True), outer(X, True))
    assert [node.target for node in traced.graph.nodes if node.op == "call_module"] == [
        "inner.linear", "rest.0", "rest.1.0", "rest.1.1",
    ]  # fmt: skip
    assert dict(traced.named_parameters()).keys() == dict(outer.named_parameters()).keys()
    assert not traced.training
    with pytest.raises(AssertionError, match="flag has been specialized to have value True"):
        traced(X, False)
    traced(X, True).sum().backward()
    assert all(p.grad is not None for p in outer.parameters())
    traced.graph.lint()


@pytest.mark.parametrize("function", [
    lambda x: F.relu(x, inplace=False) - x[:, 1:2].sum(dim=-1, keepdim=True),
    lambda x: torch.cat([x, x.T.reshape(2, 3)], dim=1)[..., None, 0:2],
    lambda x: 2 - x + 2**x + 1 / (x + 1) + 7 // (x + 1) % 3,
    lambda x: ((x == 1) & (x < 2) | ~(x != 3)).to(torch.float64),
    lambda x: {"a": x.max(dim=1).values, "b": [x, None, 1.5, (x.shape[0],)]},
    lambda x: leaf(x, True) + len(x) + sqrt(x.size(0)),
    lambda x: -abs(x) @ torch.ones(3, 2) * float("inf"),
    lambda x: torch.einsum("ij,kj->ik", [x, x]),
])  # fmt: skip
def test_functions_are_recorded(function):
    traced = fx.symbolic_trace(function)
    for run in (
        traced,
        fx.Interpreter(traced).run,
        fx.Transformer(traced).transform(),
        copy.deepcopy(traced),
    ):
        assert repr(run(X)) == repr(function(X))
    assert sqrt(4) == 2 and len([0]) == 1  # what was stood in for is back


@pytest.mark.parametrize("function, error", [
    (lambda x: x if x.sum() > 0 else -x, "cannot be used as inputs to control flow"),
    (lambda x: [row for row in x], "cannot be iterated"),  # noqa: C416
])  # fmt: skip
def test_what_cannot_be_recorded(function, error):
    with pytest.raises(fx.proxy.TraceError, match=error):
        fx.symbolic_trace(function)
    assert torch.equal(nn.ReLU()(X), X)  # modules are called as before


def test_the_code():
    assert fx.symbolic_trace(lambda x, y=2: torch.relu(x) + y).code == (
        "\n\n\ndef forward(self, x, y = 2):\n    relu = torch.relu(x);  x = None\n"
        "    add = relu + y;  relu = y = None\n    return add\n    "
    )


def test_new_nodes_go_where_they_are_told_to():
    traced = fx.symbolic_trace(lambda x: x.exp().log())
    graph = traced.graph
    x, exp = list(graph.nodes)[:2]
    names = lambda: " ".join(node.name for node in graph.nodes)
    with graph.inserting_after(exp):
        for function in (torch.sin, torch.cos):
            graph.call_function(function, (x,))
    assert names() == "x exp cos sin log output"
    point = graph.inserting_before(exp)  # without a block, too
    graph.call_function(torch.tan, (x,))
    assert names() == "x tan exp cos sin log output"
    with point:
        graph.call_function(torch.abs, (x,))
    with graph.inserting_before():
        graph.placeholder("y")
    graph.call_function(torch.neg, (x,))
    assert names() == "y x tan abs_1 exp cos sin log output neg"


def test_graphs_can_be_changed():
    traced = fx.symbolic_trace(lambda x, y: torch.add(x, y).relu())
    (add,) = traced.graph.find_nodes(op="call_function", target=torch.add)
    with pytest.raises(RuntimeError, match="still had 1 users"):
        traced.graph.erase_node(add)
    with traced.graph.inserting_after(add):
        mul = traced.graph.call_function(torch.mul, add.args)
    add.replace_all_uses_with(mul)
    traced.graph.erase_node(add)
    traced.recompile()
    assert traced(torch.tensor([2.0]), torch.tensor([3.0])).item() == 6
    with pytest.raises(TypeError, match="does not support mutation"):
        fx.symbolic_trace(lambda x: torch.cat([x])).graph.find_nodes(op="call_function")[0].args[0].append(1)
    unused = fx.symbolic_trace(lambda x: (x + 1, x * 2)[1])
    assert unused.graph.eliminate_dead_code() and len(unused.graph.nodes) == 3


def test_patterns_are_replaced():
    traced = fx.symbolic_trace(lambda x: torch.relu(x).tanh() + torch.relu(x.abs()).tanh())
    matches = fx.replace_pattern(traced, lambda a: torch.relu(a).tanh(), lambda a: torch.sigmoid(a))
    assert len(matches) == 2
    assert torch.equal(traced(X), torch.sigmoid(X) + torch.sigmoid(X.abs()))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies(outer, copied):
    traced = fx.symbolic_trace(outer, concrete_args={"flag": False})
    twin = copied(traced)
    assert twin.code == traced.code and torch.equal(twin(X, False), traced(X, False))
    assert twin.inner.linear.weight is not traced.inner.linear.weight and twin.graph.owning_module is twin


def test_shapes_are_noted(outer):
    traced = fx.symbolic_trace(outer, concrete_args={"flag": False})
    ShapeProp(traced).propagate(X, False)
    (last,) = [node.args[0] for node in traced.graph.nodes if node.op == "output"]
    assert last.meta["tensor_meta"].shape == (2, 3) and last.meta["tensor_meta"].dtype is torch.float32
