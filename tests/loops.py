"""Graphs that refer to themselves. Each maker ties a token into one and leaves: only the collector can
free it.

Run as a program, prints the names of those that a collection does not free, each tried in a process that has
made no other loop before.
"""

import contextlib
import functools
import gc
import os
import types
import warnings
import weakref

import rushlight as torch
from rushlight import nn
from rushlight.autograd import Function, forward_ad, graph
from rushlight.nn.utils import parametrize
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils.checkpoint import checkpoint

MAKERS = {}


class Token:
    pass


def loop(maker):
    MAKERS[maker.__name__] = maker
    return maker


def frees(maker):
    token = Token()
    gone = weakref.ref(token)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of backward with create_graph
        maker(token)
    del token
    gc.collect()
    return gone() is None


def leaf():
    return torch.ones(3, requires_grad=True)


def holding(token):
    x = leaf()
    x.token = token
    return x


def layer(token):
    made = nn.Linear(3, 3)
    made.token = token
    return made


# ---- hooks


@loop
def hook_before_the_result(token):
    x = leaf()
    x.register_hook(lambda g: (y, token))
    y = x * 2


@loop
def hook_after_the_result(token):
    x = leaf()
    y = x * 2
    x.register_hook(lambda g: (y, token))


@loop
def hook_within_a_graph(token):
    h = leaf() * 2
    h.register_hook(lambda g: (z, token))
    z = (h.sin() * h).sum()


@loop
def hook_is_a_method(token):
    class Owner:
        def __init__(self):
            self.token, self.x = token, leaf()
            self.x.register_hook(self.hook)
            self.y = self.x * 2

        def hook(self, grad):
            pass

    Owner()


@loop
def hook_keeps_gradients(token):
    x, kept = leaf(), [token]
    x.register_hook(lambda g: kept.append(g))
    (x**3).sum().backward(create_graph=True)


@loop
def hook_of_a_long_chain(token):
    x, box = leaf(), [token]
    x.register_hook(lambda g: box)
    y = x
    for _ in range(100_000):
        y = y * 1
    box.append(y)


@loop
def hook_holds_a_generator(token):
    x = leaf()

    def results():
        y = x * 2
        yield y, token

    generator = results()
    next(generator)
    x.register_hook(lambda g: generator)


@loop
def hook_among_objects_of_all_ages(token):
    x, box = leaf(), [token]
    y = x * 2
    gc.collect()
    x.register_hook(lambda g: box)
    gc.collect(0)
    box.append([y.sin()])


def accumulator_of(x):
    return graph.get_gradient_edge(x).node


def with_a_gradient(x):
    (x * x).sum().backward(create_graph=True)
    return x.grad


# Hooks that hold a box, which then gets a result of the tensor: where each is registered.
HOOKS = {
    "is_partial": lambda x, y, box: x.register_hook(functools.partial(lambda box, g: None, box)),
    "after_accumulation": lambda x, y, box: x.register_post_accumulate_grad_hook(lambda p: box),
    "of_several_tensors": lambda x, y, box: graph.register_multi_grad_hook((x, leaf()), lambda g: box),
    "of_any_tensor": lambda x, y, box: graph.register_multi_grad_hook((x, y), lambda g: box, mode="any"),
    "before_a_node": lambda x, y, box: y.grad_fn.register_prehook(lambda g: box),
    "after_a_node": lambda x, y, box: y.grad_fn.register_hook(lambda a, b: box),
    "of_an_accumulator": lambda x, y, box: accumulator_of(x).register_hook(lambda a, b: box),
    "of_a_gradient": lambda x, y, box: with_a_gradient(x).register_hook(lambda g: box),
    "on_a_saved_result": lambda x, y, box: y.grad_fn._raw_saved_result.register_hooks(
        lambda v: (v.clone(), box), lambda v: v[0]
    ),
}


def boxed(register):
    def maker(token):
        x, box = leaf(), [token]
        y = x.exp()
        register(x, y, box)
        box.append(y * 2)

    return maker


MAKERS.update({f"hook_{name}": boxed(register) for name, register in HOOKS.items()})


# ---- attributes


class Sub(torch.Tensor):
    pass


# Attributes that are filled once they are there: whose, and with what.
ATTRIBUTES = {
    "filled_later": (leaf, torch.sin),
    "of_a_result": (lambda: leaf() * 2, torch.sin),
    "of_a_parameter": (lambda: nn.Parameter(torch.ones(3)), torch.sin),
    "of_a_subclass": (lambda: leaf().as_subclass(Sub) * 1, torch.sin),
    "is_a_node": (leaf, lambda x: (x * 2).grad_fn),
    "is_an_object": (leaf, lambda x: types.SimpleNamespace(z=x.exp())),
}


def filled(owner, result):
    def maker(token):
        x = owner()
        x.token, x.y = token, {"a": [({}, [])]}
        x.y["a"][0][1].append(result(x))

    return maker


MAKERS.update({f"attribute_{name}": filled(*parts) for name, parts in ATTRIBUTES.items()})


@loop
def attribute_of_a_leaf(token):
    x = leaf()
    x.token, x.y = token, x * 2


@loop
def attribute_by_the_dict(token):
    x = leaf()
    x.__dict__.update(token=token, y=x * 2)


@loop
def attribute_is_an_exception(token):
    x = holding(token)
    try:
        raise ValueError(x * 2)
    except ValueError as error:
        x.error = error


@loop
def attribute_is_a_view(token):
    h = leaf() * 1
    h.token, h.views = token, []
    h.views.append(h[:2])
    h.views[0].mul_(2)


@loop
def attribute_has_a_callback(token):
    x = leaf()
    y = x * 2
    x.weak, x.y = weakref.ref(y, lambda gone: (x, token)), [[y]]


@loop
def attribute_after_a_swap(token):
    a, b = leaf(), leaf()
    a.token, a.y = token, []
    a.y.append(a * 2)
    torch.utils.swap_tensors(a, b)
    a.other, b.other = [b], [a * 1]


@loop
def attribute_of_moved_data(token):
    h = leaf() * 2
    h.token, h.y = token, []
    h.y.append(h.sin())
    h.data = torch.zeros(3)


@loop
def metadata_of_a_node(token):
    h = leaf() * 2
    h.grad_fn.metadata.update(token=token, later=[])
    h.grad_fn.metadata["later"].append(h.sin())


@loop
def metadata_of_a_step_of_an_operation(token):
    y = nn.functional.linear(leaf().expand(2, 2, 3), torch.ones(3, 3), torch.ones(3))
    y.grad_fn.next_functions[0][0].metadata["of"] = y.grad_fn, token


# ---- gradients and tensors that are written


@loop
def gradient_with_a_graph(token):
    x = holding(token)
    for _ in range(2):
        (x**3).sum().backward(create_graph=True)


@loop
def gradient_through_a_checkpoint(token):
    x = holding(token)
    checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False).sum().backward(create_graph=True)


@loop
def gradient_of_a_checkpointed_model(token):
    model = nn.Sequential(layer(token), nn.Tanh(), nn.Linear(3, 1))
    checkpoint(model, torch.ones(2, 3), use_reentrant=False).sum().backward(create_graph=True)


@loop
def gradient_set(token):
    x = leaf()
    x.token, x.grad = token, x * 2


@loop
def gradient_written(token):
    x = holding(token)
    (x * 2).sum().backward()
    x.grad.mul_(x)


@loop
def gradient_written_through_a_view(token):
    x = holding(token)
    (x * 2).sum().backward()
    x.grad[0].mul_(x[0])


@loop
def gradient_retained(token):
    y = leaf() * 2
    y.retain_grad()
    y.token = token
    (y * y).sum().backward(create_graph=True)


@loop
def gradient_in_anomaly_mode(token):
    x = leaf()
    x.token, x.y = token, []
    with torch.autograd.set_detect_anomaly(True):
        y = x * 2
        (y * y).sum().backward(create_graph=True)
    x.y.append(y)


@loop
def constant_written(token):
    x, c = leaf(), torch.ones(3)
    c.token = token
    c.mul_(x * c)


@loop
def constant_written_through_a_view(token):
    x, c = leaf(), torch.ones(3)
    c.token = token
    y = x * c
    c[0].mul_(y[0])


@loop
def base_written_by_a_view_that_is_a_leaf(token):
    base = torch.zeros(3)
    base.token = token
    view = base[:2].requires_grad_()
    base[2:] = view.sum()


@loop
def base_written_by_a_detached_leaf(token):
    base = torch.zeros(3)
    base.token = token
    base.mul_(base.detach().requires_grad_() * 3)


# ---- saved values


@loop
def packed_value(token):
    box = [token]
    with graph.saved_tensors_hooks(lambda v: (v, box), lambda p: p[0]):
        box.append(leaf().exp())


@loop
def unpack_hook(token):
    box = [token]
    with graph.saved_tensors_hooks(lambda v: v, lambda p: (p, box)[0]):
        y = leaf().exp().sin()
    box.append(y * 2)


@loop
def hook_on_a_saved_input(token):
    y, box = leaf().sin(), [token]
    y.grad_fn._raw_saved_self.register_hooks(lambda v: v.clone(), lambda v: (v, box)[0])
    box.append(y * 2)


@loop
def checkpointed_closure(token):
    for reentrant in (False, True):
        box = [token]
        y = checkpoint(lambda x, box=box: (x.sin(), box)[0], leaf(), use_reentrant=reentrant)
        box.append(y)


@loop
def mutation_of_saved_tensors(token):
    x = holding(token)
    with graph.allow_mutation_on_saved_tensors():
        b = x.clone()
        y = b**2
        b.sin_()
        x.kept = [[y, b]]


# ---- Functions and classes


class Boxed(Function):
    @staticmethod
    def forward(ctx, x, box):
        ctx.box = box
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


@loop
def context_attribute(token):
    box = [token]
    box.append(Boxed.apply(leaf(), box))


@loop
def context_attribute_filled_later(token):
    box = {}
    y = Boxed.apply(leaf(), box)
    box["a"] = [[[[y.sin(), token]]]]


@loop
def context_set_from_outside(token):
    y = Boxed.apply(leaf(), None)
    y.grad_fn.later = (y.sin(), token)


@loop
def function_class_with_a_closure(token):
    box = [token]

    class Local(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad if box else None

    box.append(Local.apply(leaf()))


@loop
def function_that_fails(token):
    kept = []

    class Failing(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            kept.append(ctx)
            ctx.kept = token, kept
            raise ValueError

    with contextlib.suppress(ValueError):
        Failing.apply(leaf() * 1)


@loop
def slot_of_a_subclass(token):
    class Slotted(torch.Tensor):
        __slots__ = ("y",)

    x = torch.ones(3).as_subclass(Slotted).requires_grad_()
    x.y = [token]
    x.y.append(x.sin())


@loop
def class_attribute_of_a_subclass(token):
    class Local(torch.Tensor):
        pass

    Local.y = [torch.ones(3).as_subclass(Local).requires_grad_() * 2, token]


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        plain = [a.inner if isinstance(a, Wrapper) else a for a in args]
        out = func(*plain, **(kwargs or {}))
        return Wrapper(out) if isinstance(out, torch.Tensor) else out


@loop
def gradient_of_a_wrapper(token):
    w = Wrapper(torch.ones(3)).requires_grad_()
    w.token, w.y = token, [w * w]
    (w * w).sum().backward(create_graph=True)


@loop
def dispatch_mode_that_keeps_results(token):
    class Keeping(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.kept.append(func(*args, **(kwargs or {})))
            return self.kept[-1]

    x, mode = leaf(), Keeping()
    mode.kept = [token]
    x.register_hook(lambda g: mode)
    with mode:
        mode.kept.append(x * 2)


@loop
def dual_numbers(token):
    x = holding(token)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, x * 2)
        x.kept = [dual, dual * dual]


# ---- modules, optimisers, borrowed memory


@loop
def module_that_keeps_its_output(token):
    m = layer(token)
    m.weight.register_hook(lambda g: m)
    m.out = m(torch.ones(2, 3)).sin()


@loop
def module_with_hooks(token):
    m, kept = layer(token), []
    m.register_forward_hook(lambda *args: kept.append(args))
    m.register_full_backward_hook(lambda *args: kept.append(args))
    m(leaf().expand(2, 3)).sum().backward()
    m.kept = kept


@loop
def module_that_is_parametrized(token):
    class Doubled(nn.Module):
        def forward(self, weight):
            self.last = weight * 2
            return self.last

    m = layer(token)
    parametrize.register_parametrization(m, "weight", Doubled())
    m.parametrizations.weight.original.register_hook(lambda g: m)
    m(torch.ones(1, 3))


@loop
def optimizer_with_a_graph_in_its_state(token):
    m = layer(token)
    optimizer = torch.optim.Adam(m.parameters())
    m(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    for p in m.parameters():
        optimizer.state[p]["graph"] = p * 2
        p.register_hook(lambda g: optimizer)


@loop
def buffer_that_refers_to_its_tensor(token):
    class Buffer(bytearray):
        pass

    buffer = Buffer(12)
    buffer.tensor = [torch.frombuffer(buffer, dtype=torch.float32), token]


def leaking(name):
    process = os.fork()
    if not process:
        os._exit(not frees(MAKERS[name]))
    return os.waitpid(process, 0)[1] != 0


if __name__ == "__main__":
    assert not gc.callbacks  # nothing was told to expect a loop
    print(*(name for name in MAKERS if leaking(name)))
