"""Tensors with data and tensors on `meta` in one call: refused, or the result is on meta. Never a crash,
never a tensor with data of which nothing was computed (see Note [two devices], native/python/devices.cpp)."""

import pytest
from samples import OPS
from sampling import build, dtype_names, tensors_in

import rushlight

# Only the shape of the other argument matters to these.
SHAPE_ONLY = {"Tensor.expand_as", "Tensor.view_as", "Tensor.reshape_as", "broadcast_tensors"}
REFUSALS = (RuntimeError, TypeError, ValueError, IndexError)


def with_one_on_meta(tree, chosen):
    """The arguments with the tensor number `chosen[0]` (counting down) moved to meta."""
    if isinstance(tree, rushlight.Tensor):
        chosen[0] -= 1
        return tree.detach().to("meta") if chosen[0] == -1 else tree.detach()
    if isinstance(tree, (list, tuple)):
        moved = [with_one_on_meta(item, chosen) for item in tree]
        return type(tree)(moved) if type(tree) in (list, tuple) else type(tree)(*moved)
    if isinstance(tree, dict):
        return {name: with_one_on_meta(item, chosen) for name, item in tree.items()}
    return tree


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS.values()])
def test_mixed_devices(op):
    dtype = dtype_names(op.dtypes)[0]
    for sample in op.for_dtype(dtype):
        args, kwargs = build(rushlight, sample, dtype)
        count = len(tensors_in(rushlight, (args, list(kwargs.values()))))
        for place in range(count) if count > 1 else ():
            chosen = [place]
            args, kwargs = build(rushlight, sample, dtype)
            mixed, named = with_one_on_meta(args, chosen), with_one_on_meta(kwargs, chosen)
            try:
                result = op.function(rushlight)(*mixed, **named)
            except REFUSALS:
                continue
            if op.name not in SHAPE_ONLY:
                for made in tensors_in(rushlight, result):
                    assert made.is_meta, f"{op.name}{sample} with tensor {place} on meta: {made.device}"


DATA, SHAPE = rushlight.ones(2, 2), rushlight.ones(2, 2, device="meta")
NUMBER = rushlight.ones((), device="meta")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: DATA + SHAPE, "Tensor on device meta is not on the expected device cpu!"),
        (lambda: SHAPE + DATA, "Tensor on device cpu is not on the expected device meta!"),
        (lambda: rushlight.cat([DATA, SHAPE]), "Tensor on device meta is not on the expected device cpu!"),
        (lambda: rushlight.where(DATA > 0, DATA, SHAPE), "Tensor on device meta is not on the"),
        (lambda: DATA @ SHAPE, "Tensor on device meta is not on the expected device cpu!"),
        (lambda: rushlight.cdist(DATA, SHAPE), "Tensor on device meta is not on the expected device cpu!"),
        (
            lambda: rushlight.nn.Linear(2, 2)(SHAPE),
            "Tensor on device cpu is not on the expected device meta!",
        ),
        (lambda: DATA.clone().add_(SHAPE), "Tensor on device meta is not on the expected device cpu!"),
        (lambda: DATA.clone().fill_(NUMBER), "Tensor.item.. cannot be called on meta tensors"),
        (lambda: DATA.masked_fill(DATA > 0, NUMBER), "Tensor.item.. cannot be called on meta tensors"),
        (lambda: DATA.clone().__setitem__(DATA > 0, NUMBER), "Tensor on device meta is not on the expected"),
        (lambda: rushlight.full((2,), NUMBER), "Tensor.item.. cannot be called on meta tensors"),
        (lambda: setattr(DATA.clone(), "data", SHAPE), "have incompatible tensor type"),
        (lambda: SHAPE.cpu(), "Cannot copy out of meta tensor; no data!"),
    ],
)
def test_sentences(call, sentence):
    with pytest.raises((RuntimeError, NotImplementedError), match=sentence):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: SHAPE @ DATA,
        lambda: rushlight.nn.functional.embedding(rushlight.tensor([[0, 1]]), SHAPE),
        lambda: SHAPE[rushlight.tensor([0, 1])],
        lambda: SHAPE.clone().mul_(DATA),
        lambda: SHAPE * rushlight.tensor(2.0),
        lambda: SHAPE.clone().copy_(DATA),
        lambda: rushlight.linspace(NUMBER, 2, 3),
        lambda: DATA.type_as(SHAPE),
    ],
)
def test_on_meta(call):
    assert call().is_meta


@pytest.mark.parametrize("where", ["tensor", "leaf", "prehook", "hook"])
def test_a_hook_does_not_move_a_gradient(where):
    x = rushlight.ones(3, requires_grad=True)
    y = x.exp()
    if where == "tensor":
        y.register_hook(lambda g: g.to("meta"))
    elif where == "leaf":
        x.register_hook(lambda g: g.to("meta"))
    elif where == "prehook":
        y.grad_fn.register_prehook(lambda grads: (grads[0].to("meta"),))
    else:
        y.grad_fn.register_hook(lambda into, out: (into[0].to("meta"),))
    with pytest.raises(RuntimeError, match="has changed the type of value"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="invalid gradient at index 0 - expected device cpu but got meta"):
        x.exp().backward(rushlight.ones(3, device="meta"))


@pytest.mark.parametrize("name", ["mps", "xpu:1", "hpu", "xla", "privateuseone"])
def test_a_device_that_is_not_here_has_a_name(name):
    device = rushlight.device(name)
    assert str(device) == name and device == rushlight.device(name) and device != rushlight.device("cpu")
    for make in (
        lambda: rushlight.zeros(2, device=device),
        lambda: DATA.to(device),
        lambda: DATA.new_ones(1, device=name),
    ):
        with pytest.raises(
            (RuntimeError, AssertionError), match=r"Could not run|is not linked with|not compiled with XPU"
        ):
            make()
    words = r"Cannot get (XPU|XLA) generator|without MPS backend|doesn`t support getNew|register PrivateUse1"
    with pytest.raises(RuntimeError, match=words):
        rushlight.Generator(device)
