"""Small programs about what torch's tests of its autograd ask, one after the other in both libraries."""

import random

import pytest
import torch
from outcomes import collector, err, outcome

import rushlight

pytestmark = pytest.mark.torch

CASES, case = collector()


def dispatch_log(torch):
    """A mode that notes the names of the operations it is asked about."""
    from importlib import import_module

    mode = import_module(f"{torch.__name__}.utils._python_dispatch").TorchDispatchMode

    class Log(mode):
        def __init__(self, log):
            super().__init__()
            self.log = log

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.log.append(str(function))
            return function(*args, **(kwargs or {}))

    return Log


@case("a leaf that backward is asked for takes the gradient that arrives as its own")
def _(torch):
    versions = []
    for function in (torch.exp, lambda x: x * 2, lambda x: x.sin() * x.detach()):
        x = torch.ones(3, requires_grad=True)
        function(x).sum().backward(inputs=[x])
        versions.append(x.grad._version)
    return versions


@case("hooks unpack all that a node has saved before anything is computed")
def _(torch):
    found = []
    for function in (torch.mul, torch.mm, torch.div):
        log = []
        x, y = (torch.rand(2, 2, requires_grad=True) for _ in range(2))
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t, log=log: log.append("U") or t):
            out = function(x, y)
        with dispatch_log(torch)(log):
            out.backward(torch.ones(2, 2))
        found.append([name for name in log if name == "U" or name.startswith(("aten.mul", "aten.mm"))])
    return found


@case("hooks unpack in the order in which they have packed")
def _(torch):
    found = []
    for function in (torch.mul, torch.mm, torch.div, torch.pow, torch.hypot, torch.atan2):
        for needed in ((True, False), (False, True), (True, True)):
            packed, log = [], []

            def pack(value, packed=packed):
                packed.append(value)
                return len(packed), value

            def unpack(pair, log=log):
                log.append(pair[0])
                return pair[1]

            x, y = (torch.rand(2, 2, requires_grad=grad) for grad in needed)
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                out = function(x, y)
            out.sum().backward()
            found.append((len(packed), log))
    return found


@case("limits of inference mode are not saved by a clamp")
def _(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        limit = torch.ones(2)
    calls = [lambda: x.clamp(limit), lambda: x.clamp(max=limit), lambda: x.clamp(limit, limit)]
    calls += [lambda: limit.clamp(x), lambda: torch.clamp_min(x, limit), lambda: torch.clamp_max(x, limit)]
    with torch.no_grad():
        allowed = x.clamp(limit)
    return [err(call) for call in calls], allowed


@case("nothing is saved, and nothing refused, where nothing is recorded")
def _(torch):
    functional, names = torch.nn.functional, torch.ops.aten
    pieces = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    torch.manual_seed(0)
    x, w = torch.rand(6, 3), torch.rand(4, 3)
    target, mean, var = torch.tensor([0, 1, 2, 3, 0, 1]), torch.zeros(3), torch.ones(3)

    def calls():
        yield lambda: names._batch_norm_with_update(x, None, None, mean, var, 0.1, 1e-5)[2]
        yield lambda: functional.linear_cross_entropy(x, w, target, options=pieces)
        yield lambda: torch.frexp(x)[1]
        yield lambda: torch.linalg.lu(x)[0].shape

    with torch.inference_mode():
        inside = [err(call) for call in calls()]
        x, w = x.clone(), w.clone()
        within = [err(call) for call in calls()]
    return inside, within, [err(call) for call in calls()]


@case("batch norms name themselves where statistics require grad")
def _(torch):
    x, mean, var = torch.rand(4, 3), torch.zeros(3, requires_grad=True), torch.ones(3)
    found = [err(torch.ops.aten._batch_norm_with_update, x, None, None, mean, var, 0.1, 1e-5)]
    return found, err(torch._native_batch_norm_legit, x, None, None, mean, var, True, 0.1, 1e-5)


@case("a tensor of inference mode with other data is none any more")
def _(torch):
    with torch.inference_mode():
        x, layer, other = torch.ones(2), torch.nn.Linear(2, 2), torch.ones(3)
    x.data = torch.zeros(2)
    layer.double()
    with torch.inference_mode():
        y = torch.ones(2)
    y.data = other
    return x.is_inference(), layer.weight.is_inference(), y.is_inference(), err(y.add_, 1)


@case("make_dual and unpack_dual ask classes and modes")
def _(torch):
    class Like(torch.Tensor):
        pass

    from importlib import import_module

    fwd = import_module(f"{torch.__name__}.autograd.forward_ad")
    seen, kinds = [], []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append((function.__name__, sorted(kwargs or {})))
            return function(*args, **(kwargs or {}))

    x, like = torch.ones(2), torch.ones(2).as_subclass(Like)
    with fwd.dual_level():
        with Mode():
            fwd.unpack_dual(fwd.make_dual(x, x))
        for primal, tangent in ((like, x), (x, like), (like, like)):
            dual = fwd.make_dual(primal, tangent)
            kinds.append(
                [type(t).__name__ for t in (dual, *fwd.unpack_dual(dual), *fwd.unpack_dual(dual * 2))]
            )
    return seen, kinds


@case("what is drawn has a tangent of zeros")
def _(torch):
    from importlib import import_module

    fwd = import_module(f"{torch.__name__}.autograd.forward_ad")
    with fwd.dual_level():
        d = fwd.make_dual(torch.full((2, 1), 0.5), torch.ones(2, 1))
        draws = [
            torch.poisson,
            torch.bernoulli,
            lambda x: torch.normal(x, 1.0),
            lambda x: torch.normal(0.0, x),
        ]
        draws.append(lambda x: torch.normal(x, x))
        return [fwd.unpack_dual(draw(d)).tangent for draw in draws]


@case("refusals of _vmap")
def _(torch):
    from importlib import import_module

    module = import_module(f"{torch.__name__}._vmap_internals")
    x = torch.ones(3, 2)
    found = [
        err(module._vmap(lambda x: x, in_dims=dims), x)
        for dims in ((0, 0), [0], 5, -1, None, ("a",), ((0,),))
    ]
    found += [
        err(module._vmap(lambda x: x, out_dims=dims), x)
        for dims in ("a", (0,), (0, 0), None, (None,), 1, -1, [0])
    ]
    found.append(err(module._vmap(lambda x: (x, x), out_dims=(0, 0, 0)), x))
    found += [err(module._vmap(lambda x: (x, 3)), x), err(module._vmap(lambda x: [x]), x)]
    return found, err(module.vmap(lambda x: x * 2), x)


@case("which event runs in which is a matter of times")
def _(torch):
    from importlib import import_module

    util, drawn, found = import_module(f"{torch.__name__}.autograd.profiler_util"), random.Random(0), []
    for _ in range(50):
        events = util.EventList()
        for i in range(8):
            start, length, thread = drawn.randint(0, 12), drawn.randint(0, 6), drawn.randint(0, 1)
            times = {"start_us": start, "end_us": start + length}
            events.append(util.FunctionEvent(id=i, node_id=0, name=str(i), thread=thread, **times))
        events._build_tree()
        found.append([[child.id for child in event.cpu_children] for event in events])
        found.append([event.self_cpu_time_total for event in events])
    return found


@case("a range that is begun with arguments tells their shapes")
def _(torch):
    from importlib import import_module

    profile, found = import_module(f"{torch.__name__}.autograd.profiler").profile, []
    enter, leave = (getattr(torch.autograd, f"_record_function_with_args_{end}") for end in ("enter", "exit"))
    x = torch.ones(3, 4)
    for shapes in (True, False):
        with profile(record_shapes=shapes) as profiler:
            for args in ((1, x), (x, [x, x], "s", None, 2.5, True), ()):
                leave(enter("range", *args))
        for event in profiler.function_events:
            strides, dtypes = event.structured_input_strides, event.input_dtypes
            found.append((event.input_shapes, event.structured_input_shapes, strides, dtypes))
    return found, err(enter, 3)


@case("strict mode has words for a hessian")
def _(torch):
    return err(torch.autograd.functional._check_requires_grad, (torch.ones(1),), "hessian", True)


@pytest.mark.parametrize("name", CASES)
def test_same(name):
    assert outcome(lambda: CASES[name](rushlight)) == outcome(lambda: CASES[name](torch))
