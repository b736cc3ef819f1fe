"""Operations of one's own inside transforms, and what else torch's files about them import."""

from importlib import import_module

import pytest
import torch as torch_itself
from outcomes import collector, err, outcome

import rushlight

pytestmark = pytest.mark.torch

CASES, case = collector()


def of(torch, path):
    """What a program that imports torch finds under this path."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(f"{torch.__name__}.{module}"), name)


def operation(torch, name):
    """An operation without a rule for anything."""
    base = of(torch, "_ops.HigherOrderOperator")

    class Named(base):
        def __init__(self):
            super().__init__(name)

        def __call__(self, *args, **kwargs):
            return super().__call__(*args, **kwargs)

    return Named()


def sum_with_rules(torch, seen):
    """`torch.sum` that says itself what it is of a batch, and what its gradient is."""
    C, kinds = of(torch, "_C._functorch"), of(torch, "_C._functorch.TransformType")
    allow = of(torch, "_functorch.utils.enable_single_level_autograd_function")
    total = operation(torch, "total")

    @total.py_impl(kinds.Vmap)
    def of_batch(interpreter, x, dim):
        about = interpreter.level(), interpreter.batch_size(), interpreter.randomness()
        seen.append((str(interpreter.key()), *about))
        if not C.is_batchedtensor(x):
            with interpreter.lower():
                return total(x, dim)
        where, value = C.maybe_get_bdim(x), C.get_unwrapped(x)
        with interpreter.lower():
            result = total(value.movedim(where, 0), dim + 1)
        return C._add_batch_dim(result, 0, interpreter.level())

    @total.py_impl(kinds.Grad)
    def of_gradient(interpreter, x, dim):
        level = interpreter.level()
        seen.append((str(interpreter.key()), level, interpreter.prev_grad_mode()))

        class Total(of(torch, "autograd.function._SingleLevelFunction")):
            @staticmethod
            def forward(ctx, x, dim):
                ctx.shape, ctx.dim = x.shape, dim
                with torch.enable_grad(), interpreter.lower():
                    result = total(C._unwrap_for_grad(x, level), dim)
                return C._wrap_for_grad(result, level)

            @staticmethod
            def backward(ctx, g):
                return g.unsqueeze(ctx.dim).expand(ctx.shape), None

        with allow():
            return Total.apply(x, dim)

    @total.py_impl(torch._C.DispatchKey.AutogradCPU)
    def recorded(x, dim):
        seen.append(("CPU", torch.is_grad_enabled()))
        return torch.sum(x, dim)

    return total


@case("an operation that says what it is inside transforms")
def _(torch):
    seen = []
    total, x = sum_with_rules(torch, seen), torch.arange(6.0).reshape(2, 3)
    grad, vmap = torch.func.grad, torch.vmap
    sin = lambda x: total(x.sin(), 0)
    found = [
        *(total(x, 1), vmap(total, (0, None))(x, 0), vmap(total, (1, None))(x, 0), grad(sin)(x[0])),
        *(
            grad(lambda x: grad(sin)(x)[0])(x[0]),
            vmap(grad(sin))(x),
            vmap(lambda y: total(x[0], 0) + y)(x[0]),
        ),
    ]
    return found, seen


@case("such an operation where nothing is recorded")
def _(torch):
    seen = []
    total, x, grad = sum_with_rules(torch, seen), torch.arange(3.0).requires_grad_(), torch.func.grad

    def less(x):
        with torch.no_grad():
            fixed = total(x**2, 0)
        return total(x**2, 0) - fixed

    with torch.no_grad():
        found = [grad(lambda x: total(x, 0))(x)]
    return [*found, grad(less)(x.detach()), grad(lambda x: grad(less)(x).sum())(x.detach())], seen


@case("which rule a call comes to")
def _(torch):
    keys, mode_class = torch._C.DispatchKey, of(torch, "utils._python_dispatch.TorchDispatchMode")
    seen, x = [], torch.ones(2)
    first = operation(torch, "first")
    found = [str(first), first.name(), first.__name__, first.namespace, first.cacheable()]
    found += [err(first, x), err(first), torch.ops.higher_order.first is first]
    found += [err(lambda: torch.ops.higher_order.unheard_of)]
    first.py_impl(keys.CompositeExplicitAutograd)(lambda x: x + 1)
    found += [err(first, x), err(first, x.to("meta"))]
    first.py_impl(keys.Autograd)(lambda x: x * 10)
    found += [first(x), first(x.clone().requires_grad_())]

    second = operation(torch, "second")

    @second.py_impl(keys.Autograd)
    def recorded(x):
        seen.append("recorded")
        with torch._C._AutoDispatchBelowAutograd():
            return second(x)

    second.py_impl(keys.CPU)(lambda x: x * 3)
    found += [second(x.clone().requires_grad_())]

    class Mode(mode_class):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    class Told(Mode):
        supports_higher_order_operators = True

    def within(mode):
        with mode():
            return second(x)

    found += [err(within, Mode).split(" object")[0].split("<")[0], within(Told)]
    second.py_impl(Mode)(lambda mode, x: x * 5)
    found += [within(Mode)]

    third = operation(torch, "third")
    third.py_impl(keys.CompositeExplicitAutograd)(lambda x: x * 2)
    third.py_autograd_impl(lambda x: x * 4)
    found += [third(x), third(x.clone().requires_grad_()), err(torch.vmap(third), x)]
    found += [err(lambda: second.py_impl(keys.CPU)(str)), err(lambda: second.py_impl("CPU")(str))]
    return found, seen


@case("a class that overrides is asked about it")
def _(torch):
    class Asked(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return str(function), [kind.__name__ for kind in types]

    return operation(torch, "overridden")(torch.ones(1).as_subclass(Asked))


@case("leaving transforms for a while")
def _(torch):
    P, C, seen = of(torch, "_functorch.pyfunctorch"), of(torch, "_C._functorch"), []

    def look(x):
        inner = P.retrieve_current_functorch_interpreter()
        states = [each.get_state() for each in P.retrieve_all_functorch_interpreters()]
        seen.append((type(inner).__name__, states, P.compare_functorch_state(states)))
        for context in (
            *(P.temporarily_pop_interpreter_stack, P.temporarily_clear_interpreter_stack, inner.lower),
        ):
            with context():
                seen.append((C.maybe_current_level(), torch.is_grad_enabled()))
            seen.append((C.maybe_current_level(), torch.is_grad_enabled()))
        return x.sum()

    x = torch.ones(2, 2)
    torch.func.grad(look)(x)
    with torch.no_grad():
        torch.func.grad(look)(x)
    torch.vmap(look)(x)
    torch.func.grad(lambda x: torch.vmap(look, randomness="different")(x).sum())(x)
    torch.func.jvp(look, (x,), (x,))
    return seen, err(P.retrieve_current_functorch_interpreter), P.retrieve_all_functorch_interpreters()


@case("the arguments that are meant by numbers")
def _(torch):
    chosen, as_tuple = (
        of(torch, f"_functorch.eager_transforms.{n}") for n in ("_slice_argnums", "_as_tuple")
    )
    right = [0, -1, (0,), (1, -1), (-4,)]
    wrong = [0.0, (0.0, 1), 4, -5, (), (0, 0), (0, -4), [0], (0, 7), None, ((0,),)]
    found = [chosen("abcd", each, as_tuple=flag) for each in right for flag in (True, False)]
    return found, [err(chosen, tuple("abcd"), each) for each in wrong], as_tuple(1), as_tuple((1, 2))


@case("a dimension within another")
def _(torch):
    into, out = (of(torch, f"_C._functorch.reshape_dim_{n}") for n in ("into", "outof"))
    x = torch.arange(24).reshape(2, 3, 4)
    pairs = ((0, 0), (0, 1), (1, 0), (2, 0), (-1, 0), (0, -1), (5, 0))
    return [err(into, a, b, x) for a, b in pairs], [
        out(a, n, x) for a, n in ((0, 2), (1, 3), (-1, 4), (0, 1))
    ]


@case("a function of batches that says where its results have them")
def _(torch):
    restore = of(torch, "_functorch.vmap.restore_vmap")
    x = torch.arange(6.0).reshape(2, 3)
    return [
        restore(lambda x, y: ([x * 1, y], 3), (0, None), 2, "error")(x, x.t()),
        restore(lambda x, y: ([x * 1, y], 3), (1, None), 3, "error")(x, torch.ones(1)),
        restore(lambda x: (x[0].sum(), {"a": x[1] * 2}), ([0, None],), 2, "error")([x, torch.ones(1)]),
        restore(lambda x: torch.ones(3), (0,), 2, "error")(x),
        restore(lambda x: torch.rand(2), (0,), 2, "same")(x)[1],
        restore(lambda x: torch.rand(2), (0,), 2, "different")(x)[1],
        err(restore(lambda x: torch.rand(2), (0,), 2, "error"), x),
    ]


@case("models that are made as functions")
def _(torch):
    plain, buffered = (
        of(torch, f"_functorch.make_functional.functional_init{n}") for n in ("", "_with_buffers")
    )

    class Net(torch.nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.layer = torch.nn.Linear(i, o)
            self.register_buffer("shift", torch.ones(o))

        def forward(self, x):
            return self.layer(x) + self.shift

    x = torch.ones(5, 2)
    torch.manual_seed(0)
    single = plain(torch.nn.Linear)(2, 3)
    weights, function, names = plain(torch.nn.Linear, (4,))(2, 3)
    params, buffers, of_both, *more = buffered(Net, [4])(2, 3)
    found = [
        single[0],
        single[2],
        weights,
        names,
        torch.vmap(function, (0, None))(weights, (x,)).mul(1e3).round().int(),
        params,
        buffers,
    ]
    found += [
        torch.vmap(of_both, (0, 0, None))(params, buffers, (x,)).mul(1e3).round().int(),
        more,
        err(plain(Net), 2, 3),
    ]
    return found, [err(plain(torch.nn.Linear, shape), 2, 3) for shape in ((4, 2), (0,))]


@case("what is computed example by example, and warns of it")
def _(torch):
    C, slow, x = of(torch, "_C._functorch"), torch._test_functorch_fallback, torch.ones(3)
    found = [slow(x, x), torch.vmap(slow)(x, x), torch.vmap(slow, (0, None))(torch.ones(2, 3), x)]
    found += [torch.vmap(torch.vmap(slow))(torch.ones(2, 3), torch.ones(2, 3)), C._is_vmap_fallback_enabled()]
    found += [err(torch.vmap(slow), torch.ones(0, 2), torch.ones(0, 2)), err(slow, x, 2)]
    C._set_vmap_fallback_enabled(False)
    C._set_vmap_fallback_warning_enabled(False)
    try:
        found += [err(torch.vmap(slow), x, x), C._is_vmap_fallback_enabled()]
    finally:
        C._set_vmap_fallback_enabled(True)
        found += [torch.vmap(slow)(x, x)]
        C._set_vmap_fallback_warning_enabled(True)
    recorded = slow(x.requires_grad_(), x)
    found += [recorded, recorded.grad_fn.name(), err(recorded.sum().backward)]
    return found, torch._C._debug_only_are_vmap_fallback_warnings_enabled()


@case("contexts around a context")
def _(torch):
    path = "_functorch.autograd_function."
    Wrapped, Saved = of(torch, path + "WrappedCtx"), of(torch, path + "CtxWithSavedTensors")

    class Plain:
        foo = 1

    class Own(Wrapped):
        _pt_reserved_attrs = ("_pt_reserved_attrs", "_pt_inner_ctx", "_pt_own")

        def __init__(self, ctx):
            super().__init__(ctx)
            self._pt_own = 3

    plain = Plain()
    own, taken = Own(plain), Plain()
    own.bar, taken._pt_own = 5, 1
    found = [
        plain.bar,
        own.foo,
        own._pt_own,
        hasattr(plain, "_pt_own"),
        err(lambda: own.nope),
        err(Own, taken),
    ]

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            inner = Saved(ctx, (g,))
            outer = Saved(inner, (g, g + 1))
            outer.seen = inner.needs_input_grad
            found.append((inner.saved_tensors, outer.saved_tensors, ctx.saved_tensors, ctx.seen))
            return g * 2

    Doubled.apply(torch.ones(2, requires_grad=True)).sum().backward()
    return found


@case("gradients that fit their inputs, in a batch")
def _(torch):
    path = "_functorch.autograd_function."
    leaf, several = of(torch, path + "reductify_leaf"), of(torch, path + "reductify")
    x, y = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3, 4)
    calls = [(None, None, 0, 2), (x, 0, None, 2), (x, None, None, 2), (x[0], None, 0, 2), (x[0], None, 1, 2)]
    calls += [(x, 0, 1, 2), (x, 1, 0, 3), (x, 0, 0, 2, (3,)), (y, 0, 0, 2, (4,)), (y, 0, 1, 2, (1, 4))]
    calls += [(x[0], None, 0, 2, (3,)), (y, 2, 0, 4, (3,)), (x, 0, 0, 2, (2,))]
    check = of(torch, path + "validate_vmap_returns_tuple_of_two_elements")
    refused = [err(check, answer) for answer in ((1, 2), (1,), (1, 2, 3), [1, 2])]
    pairs = several((x, None), (0, None), (None, 0), 2), several(x, 0, None, 2), several(x, 0, 0, 2, ((3,),))
    return [err(leaf, *call) for call in calls], pairs, refused, of(torch, path + "NO_OUT_DIMS")


@case("transforms where the steps of the dispatcher are left out")
def _(torch):
    C = torch._C
    x, guard = torch.arange(6.0).reshape(2, 3), C._ExcludeDispatchKeyGuard
    with guard(C.DispatchKeySet(C.DispatchKey.FuncTorchBatched)):
        mapped = torch.vmap(lambda x: x.sum(0))(x)
    with guard(C.DispatchKeySet(C.DispatchKey.Autograd)):
        pulled = torch.func.grad(torch.sin)(x[0, 0])
    return mapped, pulled


@case("paddings as ONNX has them, and compilers")
def _(torch):
    prepare = of(torch, "onnx.symbolic_opset9._prepare_onnx_paddings")
    good = of(torch, "utils.cpp_extension.check_compiler_ok_for_platform")
    pads = ((3, [1, 2, 3, 4]), (2, [1, 2]), (1, []), (2, (1, 2, 3, 4)))
    return [prepare(*each) for each in pads], good("no such compiler"), good("python3")


@pytest.mark.parametrize("name", CASES)
def test_both_give_the_same(name):
    torch_itself.manual_seed(0)
    theirs = outcome(lambda: CASES[name](torch_itself))
    rushlight.manual_seed(0)
    ours = outcome(lambda: CASES[name](rushlight))
    assert ours == theirs
