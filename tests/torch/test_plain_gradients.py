"""`autograd.grad` of some tensors by some others, which takes a native way past the checks: the same results
and refusals as in torch wherever a call is, or is just not, such a plain one."""

from functools import partial

import pytest
import torch

import rushlight

LIBRARIES = (torch, rushlight)


def told(function, library):
    """What a call gives or says, and in which shapes and dtypes."""
    try:
        found = function(library)
    except (RuntimeError, TypeError, ValueError) as error:
        return type(error).__name__, str(error).split("\n")[0].split(". ")[0]
    return [None if g is None else (str(g.dtype), list(g.shape), g.tolist(), g.requires_grad) for g in found]


def inputs(library):
    x = library.tensor([1.0, 2.0], requires_grad=True)
    return x, x * 3


CALLS = {
    "lists": lambda t, x, y: t.autograd.grad([y.sum(), (y * y).sum()], [x]),
    "a gap": lambda t, x, y: t.autograd.grad([y.sum(), (y * y).sum()], [x, y], [None, t.tensor(2.0)]),
    "gap of a vector": lambda t, x, y: t.autograd.grad([y.sum(), y], x, [t.tensor(1.0), None]),
    "vector": lambda t, x, y: t.autograd.grad(y, x, t.tensor([1.0, -1.0])),
    "vector without weights": lambda t, x, y: t.autograd.grad(y, x),
    "another dtype": lambda t, x, y: t.autograd.grad(y, x, t.ones(2, dtype=t.float64)),
    "another shape": lambda t, x, y: t.autograd.grad(y, x, t.ones(1)),
    "complex weights": lambda t, x, y: t.autograd.grad(y, x, t.ones(2, dtype=t.complex64)),
    "too few weights": lambda t, x, y: t.autograd.grad([y.sum(), y.sum()], x, [None]),
    "no weights": lambda t, x, y: t.autograd.grad(y.sum(), x, []),
    "weights of another kind": lambda t, x, y: t.autograd.grad(y.sum(), x, [1.0]),
    "a leaf by itself": lambda t, x, y: t.autograd.grad(x, x, t.ones(2)),
    "a leaf and another dtype": lambda t, x, y: t.autograd.grad(x, x, t.ones(2, dtype=t.float64)),
    "twice the same": lambda t, x, y: t.autograd.grad(y.sum(), [x, x]),
    "iterators": lambda t, x, y: t.autograd.grad(iter([y.sum()]), iter([x])),
    "no inputs": lambda t, x, y: t.autograd.grad(y.sum(), []),
    "create_graph": lambda t, x, y: t.autograd.grad((y * y).sum(), x, create_graph=True),
    "create_graph=1": lambda t, x, y: t.autograd.grad((y * y).sum(), x, create_graph=1),
    "retain_graph": lambda t, x, y: [
        *t.autograd.grad((z := (y * y).sum()), x, retain_graph=True), *t.autograd.grad(z, x)
    ],
    "graph is gone": lambda t, x, y: [*t.autograd.grad((z := (y * y).sum()), x), *t.autograd.grad(z, x)],
    "input without grad": lambda t, x, y: t.autograd.grad(y.sum(), t.ones(2)),
    "output without graph": lambda t, x, y: t.autograd.grad(t.ones(()), x),
    "unused": lambda t, x, y: t.autograd.grad(y.sum(), [x, t.ones(2, requires_grad=True)]),
    "unused, allowed": lambda t, x, y: t.autograd.grad(
        y.sum(), [x, t.ones(3, requires_grad=True)], allow_unused=True
    ),
    "unused, zeros": lambda t, x, y: t.autograd.grad(
        y.sum(), [x, t.ones(3, requires_grad=True)], materialize_grads=True
    ),
    "only_inputs": lambda t, x, y: t.autograd.grad(y.sum(), x, only_inputs=False),
    "an edge": lambda t, x, y: t.autograd.grad(
        (y * y).sum(), [x, t.autograd.graph.get_gradient_edge(y)]
    ),
    "complex output": lambda t, x, y: t.autograd.grad((y * 1j).sum(), x, t.tensor(1j)),
    "integers": lambda t, x, y: t.autograd.grad(y.sum(), x, t.tensor(1)),
    "parameter": lambda t, x, y: t.autograd.grad((p := t.nn.Parameter(t.ones(2))).sum() * 2, p),
    "batched": lambda t, x, y: t.autograd.grad(y, x, t.eye(2), is_grads_batched=True),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_calls(call):
    theirs, ours = (told(lambda t: call(t, *inputs(t)), library) for library in LIBRARIES)
    assert ours == theirs


def leaf_of_double(library):
    x = library.ones(2, requires_grad=True)
    x.grad_dtype = library.float64
    return library.autograd.grad(x, x, library.ones(2))


def in_inference_mode(library):
    x, y = inputs(library)
    z = y.sum()
    with library.inference_mode():
        return library.autograd.grad(z, x)


def asked_by_a_mode(library):
    overrides = __import__(f"{library.__name__}.overrides", fromlist=["TorchFunctionMode"])
    names = []

    class Names(overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            names.append(getattr(function, "__name__", ""))
            return function(*args, **(kwargs or {}))

    x, y = inputs(library)
    z = y.sum()
    with Names():
        library.autograd.grad(z, x)
    assert names[0] == "grad"
    return []


@pytest.mark.parametrize("call", [leaf_of_double, in_inference_mode, asked_by_a_mode])
def test_situations(call):
    theirs, ours = (told(call, library) for library in LIBRARIES)
    assert ours == theirs


def test_the_given_gradient_is_left_alone():
    for library in LIBRARIES:
        x, y = inputs(library)
        weights = library.tensor([1.0, 2.0])
        (g,) = library.autograd.grad(y + 0, y, weights)
        g.mul_(5)
        x.register_hook(lambda g: g * 0)
        library.autograd.grad(y, x, weights)
        assert weights.tolist() == ([5.0, 10.0] if g.data_ptr() == weights.data_ptr() else [1.0, 2.0])


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        lambda t, x, y: (x.sum() * y, y * 2),
        lambda t, x, y: (x[:0], y),
        lambda t, x, y: (t.ones(2), x**3),
        lambda t, x, y: x.double()[:, None] * y,
        lambda t, x, y: t.complex(x, x * 2),
    ],
)
def test_vectorized_jacobians(function, create_graph):
    found = []
    for library in LIBRARIES:
        x, y = library.tensor([1.0, 2.0, 3.0]), library.tensor([0.5, -1.0])
        result = library.autograd.functional.jacobian(
            partial(function, library), (x, y), vectorize=True, create_graph=create_graph
        )
        flat = [p for row in result for p in (row if isinstance(row, tuple) else (row,))]
        found.append([(str(p.dtype), list(p.shape), p.tolist(), p.requires_grad) for p in flat])
    assert found[0] == found[1]
