"""`torch.func` by itself: derivatives against finite differences in every nesting, and what must hold of
whatever a transformed function does: levels end, nothing is kept, tensors of levels that have ended harm
nobody."""

import contextlib
import copy
import gc
import itertools
import subprocess
import sys
import threading
import weakref

import pytest
from rushlight._functorch.make_functional import make_functional

import rushlight as torch
from rushlight import _C
from rushlight.autograd import forward_ad
from rushlight.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

EPS = 1e-5


def numeric(function):
    """The Jacobian by central differences, as a function."""

    def jacobian(x):
        units = torch.eye(x.numel(), dtype=x.dtype).reshape(-1, *x.shape)
        columns = [(function(x + EPS * u) - function(x - EPS * u)) / (2 * EPS) for u in units]
        made = torch.stack(columns, -1)
        return made.reshape(*made.shape[:-1], *x.shape)

    return jacobian


def along_units(function):
    """The Jacobian by `jvp`, a column at a time."""

    def jacobian(x):
        units = torch.eye(x.numel(), dtype=x.dtype)
        return torch.stack([jvp(function, (x,), (u,))[1] for u in units], -1)

    return jacobian


def by_rows(function):
    """The Jacobian by `vjp`, all rows at once."""

    def jacobian(x):
        out, pull = vjp(function, x)
        units = torch.eye(out.numel(), dtype=x.dtype).reshape(-1, *out.shape)
        return vmap(pull)(units)[0].reshape(*out.shape, *x.shape)

    return jacobian


def by_elements(function):
    """The Jacobian by `grad` of every element."""

    def jacobian(x):
        count = function(x).numel()
        rows = [grad(lambda y, i=i: function(y).reshape(-1)[i])(x) for i in range(count)]
        return torch.stack(rows).reshape(*function(x).shape, *x.shape)

    return jacobian


JACOBIANS = {
    "jacrev": jacrev,
    "jacfwd": jacfwd,
    "jvp": along_units,
    "vjp": by_rows,
    "grad": by_elements,
    "chunks": lambda f: jacrev(f, chunk_size=2),
}


def curved(x):
    return torch.stack([x[0] * x[1] * x.sin().sum(), (x**3).sum(), x[0].exp() * x[-1]])


def written(x):
    made = torch.zeros_like(x)
    for i in range(len(x)):
        made[i] = x[i] ** 2 * x.sum()
    made[1:].mul_(x[0])
    return made


@pytest.mark.parametrize("function", [curved, written])
@pytest.mark.parametrize("name", JACOBIANS)
def test_jacobians_are_those_of_differences(name, function):
    x = torch.tensor([0.3, -0.7], dtype=torch.float64)
    assert torch.allclose(JACOBIANS[name](function)(x), numeric(function)(x), atol=1e-8)


@pytest.mark.parametrize("names", list(itertools.product(JACOBIANS, repeat=2)))
def test_second_derivatives_nest_in_every_way(names):
    x = torch.tensor([0.3, -0.7], dtype=torch.float64)
    outer, inner = (JACOBIANS[name] for name in names)
    for function in (curved, written):
        wanted = numeric(jacrev(function))(x)
        assert torch.allclose(outer(inner(function))(x), wanted, atol=1e-7)


@pytest.mark.parametrize("names", list(itertools.product(("jacrev", "jacfwd", "jvp", "grad"), repeat=3)))
def test_third_derivatives_nest_in_every_way(names):
    x = torch.tensor([0.3, -0.7], dtype=torch.float64)
    made = curved
    for name in names:
        made = JACOBIANS[name](made)
    assert torch.allclose(made(x), numeric(jacrev(jacrev(curved)))(x), atol=1e-6)


@pytest.mark.parametrize("name", JACOBIANS)
def test_examples_keep_their_derivatives_apart(name):
    x = torch.tensor([[0.3, -0.7], [1.1, 0.2], [-0.4, 0.9]], dtype=torch.float64)
    wanted = torch.stack([numeric(curved)(row) for row in x])
    assert torch.allclose(vmap(JACOBIANS[name](curved))(x), wanted, atol=1e-8)
    whole = JACOBIANS[name](lambda rows: vmap(curved)(rows.reshape(3, 2)).reshape(-1))(x.reshape(-1))
    blocks = whole.reshape(3, 3, 3, 2)
    assert torch.allclose(blocks[[0, 1, 2], :, [0, 1, 2]], wanted, atol=1e-8)


@pytest.mark.parametrize("name", ["jacrev", "vjp", "grad"])
def test_writes_in_a_batch_have_derivatives(name):
    def scaled(x):
        made = x * 2
        made.mul_(x.cos())
        made[0].add_(x.sum())
        return made

    x = torch.tensor([0.3, -0.7], dtype=torch.float64)
    for function in (
        lambda y: vmap(scaled, in_dims=1)(y.reshape(2, 1) * torch.ones(3, dtype=y.dtype)).sum(0),
        lambda y: vmap(lambda s: scaled(y * s))(torch.tensor([0.5, 2.0], dtype=y.dtype)).sum(0),
    ):
        assert torch.allclose(JACOBIANS[name](function)(x), numeric(function)(x), atol=1e-8)


def test_tangents_of_constants_may_be_written():
    def shifted(x):
        made = x * 1
        part = made[1:]
        made[0] = x[1] ** 2
        part.mul_(x[0])
        return made.exp_()

    def pushed(x):
        return jvp(shifted, (x,), (torch.ones_like(along),))[1]

    x = along = torch.tensor([0.3, -0.7, 0.5], dtype=torch.float64)
    for transform in (jacrev, jacfwd):
        assert torch.allclose(transform(pushed)(x), numeric(pushed)(x), atol=1e-7)
    rows = torch.stack([x, 2 * x])
    assert torch.allclose(vmap(pushed)(rows)[1], pushed(2 * x))


def test_captured_tensors_have_gradients_of_their_own():
    w = torch.tensor([0.5, -1.5], dtype=torch.float64, requires_grad=True)
    x = torch.tensor([0.3, -0.7], dtype=torch.float64)
    for transform in (jacrev, jacfwd):
        found = torch.autograd.grad(transform(lambda y: curved(y * w))(x).sum(), w)[0]
        wanted = numeric(lambda v: jacrev(lambda y: curved(y * v))(x).sum())(w.detach())
        assert torch.allclose(found, wanted, atol=1e-7)


class Cube(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return t * 3 * x**2


@pytest.mark.parametrize("names", list(itertools.product(("jacrev", "jacfwd", "jvp", "vjp"), repeat=2)))
def test_functions_have_their_derivative_at_every_level(names):
    x = torch.tensor([0.3, -0.7], dtype=torch.float64)
    outer, inner = (JACOBIANS[name] for name in names)
    assert torch.allclose(outer(inner(Cube.apply))(x), numeric(jacrev(lambda y: y**3))(x), atol=1e-7)
    rows = x.expand(3, 2)
    assert torch.allclose(vmap(inner(Cube.apply))(rows)[1], numeric(lambda y: y**3)(x), atol=1e-8)


def test_a_gradient_that_all_examples_share_is_summed_once():
    class Parts(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return x * y, y.cos()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g, h):
            x, y = ctx.saved_tensors
            return g * y, g * x - h * y.sin()

    x = torch.rand(4, 3, dtype=torch.float64)
    y = torch.rand(3, dtype=torch.float64)

    def total(apply):
        def run(x, y):
            one, two = vmap(apply, (0, None))(x, y)
            return one.sum() + two.sum()

        return grad(run, (0, 1))(x, y)

    for ours, wanted in zip(total(Parts.apply), total(lambda x, y: (x * y, y.cos())), strict=True):
        assert torch.allclose(ours, wanted)


def test_a_jvp_works_within_a_dual_level():
    x, t = torch.tensor(0.3, dtype=torch.float64), torch.tensor(2.0, dtype=torch.float64)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        inner = jvp(torch.sin, (dual,), (torch.ones_like(x),))[1]
        assert torch.allclose(forward_ad.unpack_dual(inner).tangent, -x.sin() * t)


TRANSFORMS = {
    "grad": lambda f: grad(f)(torch.ones(2)),
    "vjp": lambda f: vjp(f, torch.ones(2)),
    "jvp": lambda f: jvp(f, (torch.ones(2),), (torch.ones(2),)),
    "vmap": lambda f: vmap(f)(torch.ones(3, 2)),
    "jacrev": lambda f: jacrev(f)(torch.ones(2)),
    "hessian": lambda f: hessian(f)(torch.ones(2)),
    "vmap of grad": lambda f: vmap(grad(f))(torch.ones(3, 2)),
    "grad of vmap": lambda f: grad(lambda x: vmap(f)(x).sum())(torch.ones(3, 2)),
}
transforms = pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)


def nothing_is_at_work():
    return (
        _C.top_level() is None
        and forward_ad._current_level == -1
        and torch.is_grad_enabled()
        and not torch.is_inference_mode_enabled()
        and _C.disabled_saved_hooks() is None
    )


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit, RecursionError])
@transforms
def test_an_exception_ends_all_levels(transform, error):
    def fails(x):
        (x * 2).sum()
        raise error("here")

    with pytest.raises(error):
        transform(fails)
    assert nothing_is_at_work()
    assert grad(torch.sin)(torch.tensor(0.0)) == 1


@transforms
def test_nothing_is_kept(transform):
    seen = []

    def run(x):
        seen.append(weakref.ref(x))
        return (x * x).sum()

    def fails(x):
        run(x)
        raise ValueError

    transform(run)
    with pytest.raises(ValueError):
        transform(fails)
    gc.collect()
    assert seen and all(each() is None for each in seen)


@transforms
def test_objects_do_not_grow_in_number(transform):
    def run(x):
        return (x * x).sum()

    for _ in range(5):
        transform(run)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(50):
        transform(run)
    gc.collect()
    assert len(gc.get_objects()) < before + 10


def test_a_tensor_of_an_ended_level_is_what_it_stood_for():
    kept = []
    grad(lambda x: kept.append(x * 2) or x.sum())(torch.ones(2))
    assert (kept[0] + 1).tolist() == [3, 3] and "lvl=-2" in repr(kept[0])
    assert grad(lambda y: (y * kept[0]).sum())(torch.ones(2)).tolist() == [2, 2]


def test_an_escaped_batch_is_refused():
    kept = []
    vmap(lambda x: kept.append(x) or x)(torch.ones(3))
    for use in (lambda x: x + 1, lambda x: vmap(lambda y: y + x)(torch.ones(3)), lambda x: x.sum()):
        with pytest.raises(RuntimeError, match="escaped from inside a function being vmapped"):
            use(kept[0])


@pytest.mark.parametrize("slot", ["value", "level", "batched"])
def test_what_it_stands_for_cannot_be_changed(slot):
    def run(x):
        for change in (lambda: setattr(x, slot, None), lambda: delattr(x, slot)):
            with pytest.raises(AttributeError):
                change()
        return x.sum()

    for transform in TRANSFORMS.values():
        transform(run)


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.resize_(0),
        lambda v: v.unsqueeze_(0),
        lambda v: v.squeeze_(),
        lambda v: v.t_(),
        lambda v: v.set_(),
        lambda v: v.set_(torch.tensor(3.0)),
        lambda v: v.untyped_storage().resize_(0),
    ],
)
@transforms
def test_changes_behind_its_back_do_not_crash(transform, change):
    def run(x):
        try:
            change(x.value)
        except (RuntimeError, NotImplementedError):
            return x.sum()
        uses = [
            lambda: x + 1, lambda: x[0], lambda: repr(x), lambda: x.view(-1), lambda: x.mul_(2),
            lambda: x @ x, lambda: x.expand(3, *x.shape), lambda: torch.cat([x, x]), lambda: x.sort(),
            lambda: x.softmax(0),
            lambda: x.as_strided((2,), (1,)), lambda: x.index_select(0, torch.tensor([1])), lambda: x.sum(),
        ]  # fmt: skip
        for use in uses:
            with contextlib.suppress(RuntimeError, IndexError, ValueError):
                use()
        return (x * 1).sum()

    with contextlib.suppress(RuntimeError, IndexError, ValueError):
        transform(run)
    assert nothing_is_at_work()


def test_it_is_made_by_transforms_alone():
    found = []
    grad(lambda x: found.append(type(x)) or x.sum())(torch.ones(2))
    (kind,) = found
    for made in (kind(), torch.ones(2).as_subclass(kind), type("Of", (kind,), {})()):
        for use in (lambda t: t + 1, lambda t: t.sum(), lambda t: t.tolist(), lambda t: t.item()):
            with pytest.raises((RuntimeError, AttributeError, TypeError)):
                use(made)


@transforms
def test_copies_are_refused(transform):
    def run(x):
        for copied in (copy.copy, copy.deepcopy):
            with pytest.raises(NotImplementedError, match="Cannot access storage"):
                copied(x)
        return x.sum()

    transform(run)


def test_threads_do_not_see_each_others_levels():
    wrong = []

    def work():
        for _ in range(20):
            x = torch.rand(3, dtype=torch.float64)
            second = hessian(lambda y: (y**3).sum())(x)
            pushed = jvp(lambda y: y**2, (x,), (x,))[1]
            if not (torch.allclose(second, torch.diag(6 * x)) and torch.allclose(pushed, 2 * x * x)):
                wrong.append(x)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and nothing_is_at_work()


@transforms
def test_a_tensor_of_a_level_may_go_to_another_thread(transform):
    def run(x):
        answers = []

        def work():
            try:
                answers.append((x * 2).sum())
            except RuntimeError as error:
                answers.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert len(answers) == 1
        return (x * x).sum()

    transform(run)
    assert nothing_is_at_work()


def test_levels_may_end_in_any_order():
    first, second = _C.push_level(0, 0, ""), _C.push_level(2, 3, "error")
    _C.pop_level(first)
    _C.pop_level(second)
    assert nothing_is_at_work()


def test_a_functional_module_has_no_memory():
    made, params = make_functional(torch.nn.Linear(2, 1))
    assert torch.equal(made(params, torch.zeros(2)), params[1])
    assert made.stateless_model.weight.is_meta


def test_a_batch_of_nothing():
    x = torch.zeros(0, 3)
    for function, shape in (
        (torch.func.grad(lambda x: (x**2).sum()), (0, 3)),
        (lambda x: x.prod(), (0,)),
        (lambda x: x.median(), (0,)),
        (lambda x: x.argmax(), (0,)),
        (lambda x: x.roll(1), (0, 3)),
        (torch.func.jacrev(torch.sin), (0, 3, 3)),
    ):
        assert torch.vmap(function)(x).shape == shape


def test_others_are_asked_after_a_transform(tmp_path):
    """Levels begin to be asked about operations first, in a process of its own."""
    program = """
import rushlight as torch
from rushlight.utils._python_dispatch import TorchDispatchMode

seen = []

class Log(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        seen.append(str(func))
        return func(*args, **(kwargs or {}))

class Noted(torch.Tensor):
    @staticmethod
    def __new__(cls, x):
        return torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype)
    def __init__(self, x):
        self.x = x
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        seen.append(str(func))
        return cls(func(*(a.x if isinstance(a, cls) else a for a in args), **(kwargs or {})))

x = torch.ones(3)
assert torch.vmap(torch.sin)(x).shape == (3,)
assert torch.equal(x * 2, torch.full((3,), 2.0))
with Log():
    x.cos()
assert seen == ["aten.cos.default"], seen
assert (torch.eye(2).to_sparse() * 2).to_dense().sum() == 4
assert torch.equal((Noted(x).exp()).x, x.exp()) and seen[-1] == "aten.exp.default"
assert torch.func.grad(lambda x: (x * x).sum())(x).tolist() == [2.0] * 3
assert torch.equal((Noted(x) + 1).x, x + 1)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Pair:
    """A batch of two tensors that is no pytree."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def map(self, function):
        return Pair(function(self.x), function(self.y))


def test_libraries_replace_the_steps_of_vmap_for_batches_of_their_own(monkeypatch):
    from rushlight._functorch import vmap as steps

    def process(in_dims, args, func):
        assert all(isinstance(arg, Pair) for arg in args)
        dims = steps._broadcast_to_and_flatten(in_dims, steps.tree_flatten(args)[1])
        return args[0].x.size(dims[0]), dims, list(args), steps.tree_flatten(args)[1]

    def create(dims, values, level, spec):
        given = [
            pair.map(lambda t, dim=dim: steps._add_batch_dim(t, dim, level))
            for pair, dim in zip(values, dims, strict=True)
        ]
        return steps.tree_unflatten(given, spec)

    def unwrap(result, out_dims, level, size, func):
        return result.map(
            lambda t: steps._maybe_remove_batch_dim(steps._get_name(func), t, level, size, out_dims)
        )

    def seen(pair):
        shapes.append((pair.x.shape, pair.y.shape))
        return Pair(pair.x.sin(), torch.ones(2))

    shapes = []
    pair = Pair(torch.randn(2, 3), torch.randn(4, 3, 5))
    with pytest.raises(ValueError, match="but the input is of type"):
        vmap(seen, in_dims=1)(pair)
    for name, function in (("process", process), ("create", create), ("unwrap", unwrap)):
        rest = "" if name == "unwrap" else "_inputs"
        monkeypatch.setattr(steps, f"_{name}_batched{rest}", function)
    out = vmap(seen, in_dims=1, out_dims=1)(pair)
    assert shapes == [((2,), (4, 5))]
    assert torch.equal(out.x, pair.x.sin()) and torch.equal(out.y, torch.ones(2, 3))
    monkeypatch.setattr(steps, "_unwrap_batched", lambda result, *rest: "whatever it makes of it")
    assert vmap(seen, in_dims=1)(pair) == "whatever it makes of it"
    monkeypatch.undo()
    assert torch.equal(vmap(torch.sin)(pair.x), pair.x.sin())


def test_one_result_of_a_batch_is_refused_where_it_has_no_place():
    from rushlight._functorch.vmap import _maybe_remove_batch_dim

    def function(x):
        assert torch.equal(_maybe_remove_batch_dim("f", torch.ones(2), 1, 3, 0), torch.ones(3, 2))
        assert torch.equal(_maybe_remove_batch_dim("f", x, 1, 3, 0), torch.arange(3.0))
        assert _maybe_remove_batch_dim("f", 5, 1, 3, None) == 5
        for value, dim, words in (
            (x, None, "can not return a BatchedTensor"),
            (5, 0, "must only return Tensors"),
        ):
            with pytest.raises(ValueError, match=words):
                _maybe_remove_batch_dim("f", value, 1, 3, dim)
        with pytest.raises(RuntimeError, match="there is no level 2"):
            _maybe_remove_batch_dim("f", x, 2, 3, 0)
        return x

    vmap(function)(torch.arange(3.0))


def test_a_library_may_keep_the_tensors_of_a_level_for_the_next_batch_of_that_size(monkeypatch):
    from rushlight._functorch import vmap as steps

    kept = {}

    def create(dims, values, level, spec):
        key = level, values[0].size(dims[0])
        if key not in kept:
            kept[key] = [steps._add_batch_dim(x, dim, level) for x, dim in zip(values, dims, strict=True)]
        return steps.tree_unflatten(kept[key], spec)

    monkeypatch.setattr(steps, "_create_batched_inputs", create)
    w = torch.arange(6.0).reshape(2, 3).requires_grad_()
    with torch.no_grad():
        vmap(torch.sum)(w)
    for _ in range(2):  # what is kept is the parameter, not a copy
        (g,) = torch.autograd.grad(vmap(lambda x: (x * x).sum())(w).sum(), w)
        assert torch.equal(g, 2 * w)
        with torch.no_grad():
            w += 1
    assert torch.equal(vmap(torch.sum)(torch.zeros(3, 2)), torch.zeros(3))  # of another size: others
    assert torch.equal(vmap(torch.sum)(w), w.sum(1)) and len(kept) == 2

    numbers = [_C.push_level(2, 3, "error")]
    again = _C.push_level(2, 3, "error", numbers[0])  # at work: it gets a number of its own
    _C.pop_level(again)
    below = _C.below_level(numbers[0], _C.push_level, 2, 3, "error", numbers[0])
    _C.pop_level(numbers[0])
    assert _C.push_level(2, 3, "error", numbers[0]) == numbers[0]
    _C.pop_level(numbers[0])
    never = _C.push_level(2, 3, "error", 2**60)
    _C.pop_level(never)
    assert len({numbers[0], again, below, never, 2**60}) == 5


def test_a_jacobian_has_the_structure_of_the_arguments_not_of_rows_of_gradients():
    class Sizes(tuple):  # equal structures may be of different sizes
        __slots__ = ()
        __hash__ = tuple.__hash__

        def __eq__(self, other):
            return isinstance(other, Sizes)

    class Sized:
        def __init__(self, x, sizes):
            assert tuple(x.shape[: len(sizes)]) == tuple(sizes)
            self.x, self.sizes, self.shape = x, Sizes(sizes), tuple(sizes)

    def unflatten(values, sizes):  # as tensordict does: sizes that no longer fit are found anew
        shape = values[0].shape
        fits = tuple(shape[: len(sizes)]) == tuple(sizes)
        return Sized(values[0], sizes if fits else shape[: len(shape) - 1])

    torch.utils._pytree.register_pytree_node(Sized, lambda s: ([s.x], s.sizes), unflatten)
    try:
        for step in (None, 1, 2):
            got = jacrev(lambda s: s.x.sin().sum(1), chunk_size=step)(Sized(torch.ones(2, 3), (2,)))
            assert got.x.shape == (2, 2, 3) and tuple(got.sizes) == (2,), step
        for function in (jacfwd(jacrev(lambda s: s.x.sin().sum())), hessian(lambda s: s.x.sin().sum())):
            for sizes in ((), (2,)):
                assert function(Sized(torch.ones(2, 3), sizes)).x.x.shape == (2, 3, 2, 3)
    finally:
        torch.utils._pytree.SUPPORTED_NODES.pop(Sized)


@pytest.mark.parametrize("place", [0, 1, 2, -1, -2])
def test_a_result_that_is_the_same_for_all_examples_has_them_where_they_are_wanted(place):
    same = torch.arange(6.0).reshape(2, 3)
    out = vmap(lambda x: same, out_dims=place)(torch.ones(4))
    assert torch.equal(out, vmap(lambda x: same * x, out_dims=place)(torch.ones(4)))
    assert out.shape[place] == 4 and torch.equal(out.select(place, 3), same)


def test_constants_are_computed_within_as_without():
    data = torch.tensor([[1.5, -2.0], [0.0, 4.0]], dtype=torch.float64)
    functions = [
        lambda: torch.histc(data, 3),
        lambda: torch.nonzero_static(data, size=5),
        lambda: data.to_sparse().to_dense(),
        lambda: torch.signal.windows.hann(5),
        lambda: torch.unique(data),
        lambda: copy.deepcopy(data),
        lambda: data.to_sparse() @ data,
    ]
    for function in functions:
        seen = []
        grad(lambda x, f=function, seen=seen: (seen.append(f()), x.sum())[1])(torch.ones(2))
        assert torch.equal(seen[0] * 1, function())


def test_what_is_returned_is_dressed_as_functools_does_it():
    import functools

    def annotated(x: int, *, y: str = "") -> None:
        """Its text."""

    annotated.mark = [1]

    class Callable:
        """Of its own."""

        def __call__(self, x):
            return x

    def undressed():
        def one(*args):
            return args

        one.kept = 1
        return one

    for wrapped in (
        annotated,
        lambda x: x,
        Callable(),
        functools.partial(annotated, 1),
        torch.sin,
        len,
        Callable,
    ):
        one, other = undressed(), undressed()
        expected = functools.update_wrapper(one, wrapped)
        made = torch._C.dressed(other, wrapped)
        assert made is other and vars(made) == vars(expected) and made.__wrapped__ is wrapped
        for name in functools.WRAPPER_ASSIGNMENTS:
            assert getattr(made, name) == getattr(expected, name), (wrapped, name)
    assert torch.vmap(annotated).__name__ == "annotated" and torch.func.grad(annotated).mark == [1]


def test_a_failed_transform_leaves_everything_as_it_was():
    def fails(x):
        raise ZeroDivisionError

    before = torch._C.all_levels()
    for transformed in (torch.func.grad(fails), torch.vmap(fails), torch.func.jacrev(fails)):
        with torch.no_grad(), pytest.raises(ZeroDivisionError):
            transformed(torch.ones(2))
        assert torch._C.all_levels() == before and torch.is_grad_enabled()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        with pytest.raises(RuntimeError, match="don't yet support saved tensor hooks"):
            torch.func.grad(lambda x: x.sin())(torch.ones(()))
        assert torch._C.all_levels() == before
        torch.ones(2, requires_grad=True).exp()
    assert len(kept) == 1


def test_nests_are_flattened_alike_however_it_is_done():
    from collections import OrderedDict, namedtuple

    from rushlight.utils import _pytree as pytree

    Pair = namedtuple("Pair", "x y")
    plain = (1, None, torch.ones(1), (), [], {}, (1, 2), [1, [2]], {"b": 1, "a": 2}, {"a": 1, "b": 2})
    nested = ({1: "x"}, {True: "x"}, {"a": {"b": 1}, "c": (2, {"d": 3})}, ({"w": 1, "b": 2}, 3, [4]))
    others = (Pair(1, [2]), (Pair(1, 2),), OrderedDict(a=1), (torch.ones(2).max(0),), torch.Size([1, 2]))
    for _ in range(2):  # the second time shapes are known
        for nest in plain + nested + others:
            leaves, spec = pytree.tree_flatten(nest)
            slow, slow_spec = pytree.tree_flatten(nest, is_leaf=lambda x: False)
            assert len(leaves) == len(slow) == spec.num_leaves
            assert all(map(lambda a, b: a is b, leaves, slow))
            assert spec == slow_spec and repr(spec) == repr(slow_spec), nest
            again = pytree.tree_unflatten(leaves, spec)
            assert type(again) is type(nest) and repr(again) == repr(nest)
