"""The steps that torch records within linear and matmul, seen from outside: see Note [facades]."""

import gc
import weakref

import pytest
import torch

import rushlight

LIBS = pytest.mark.parametrize("lib", [rushlight, torch], ids=["rushlight", "torch"])
CASES = {
    "linear": ((3, 4), (5, 4), (5,)),
    "linear without bias": ((3, 4), (5, 4)),
    "linear of a batch": ((2, 3, 4), (5, 4), (5,)),
    "linear of a batch without bias": ((2, 3, 4), (5, 4)),
    "linear of a vector": ((4,), (5, 4), (5,)),
    "linear of a vector without bias": ((4,), (5, 4)),
    "product": ((2, 3, 4), (4, 5)),
    "product with a vector": ((2, 3, 4), (4,)),
    "product of a vector": ((4,), (4, 5)),
    "product of batches": ((2, 3, 4), (2, 4, 5)),
    "product of batches of batches": ((2, 6, 3, 4), (2, 6, 4, 5)),
    "avg_pool1d": ((2, 3, 8),),
    "max_pool1d": ((2, 3, 8),),
    "adaptive_avg_pool1d": ((2, 3, 8),),
    "adaptive_max_pool1d": ((2, 3, 8),),
}


def made(lib, case):
    inputs = []
    for number, shape in enumerate(CASES[case]):
        size = lib.Size(shape).numel()
        inputs.append(
            (lib.arange(size, dtype=lib.float64) / size - 0.3 + number).reshape(shape).requires_grad_()
        )
    if case.startswith("linear"):
        return lib.nn.functional.linear(*inputs), inputs
    if case.endswith("pool1d"):
        return getattr(lib.nn.functional, case)(inputs[0], 3), inputs
    return inputs[0] @ inputs[1], inputs


def walked(node, seen):
    if node is not None and node not in seen:
        seen.append(node)
        for after, _ in node.next_functions:
            walked(after, seen)
    return seen


def numbers(grads):
    return [None if g is None else (list(g.shape), g.detach().reshape(-1).tolist()) for g in grads]


@LIBS
def test_they_are_made_once(lib):
    y, _ = made(lib, "linear of a batch")
    ((product, _),) = y.grad_fn.next_functions
    assert y.grad_fn.next_functions[0][0] is product and product in {product}
    assert product.next_functions[2][0] is product.next_functions[2][0]
    assert [after is None or after.name() for after, _ in product.next_functions] == [
        "torch::autograd::AccumulateGrad", "ViewBackward0", "TBackward0",
    ]  # fmt: skip
    assert product.metadata == {} and type(product) is lib._C._functions.AddmmBackward0
    assert [list(m.shape) for m in product._input_metadata] == [[6, 5]]


@pytest.mark.parametrize("case", CASES)
def test_hooks_see_what_torch_shows_them(case):
    def run(lib):
        y, inputs = made(lib, case)
        told = []
        for number, node in enumerate(walked(y.grad_fn, [])):
            name = f"{number} {node.name()}"
            if "Accumulate" in name:
                continue
            node.register_prehook(lambda gs, name=name: told.append((name, "pre", numbers(gs))))
            node.register_hook(
                lambda ins, outs, name=name: told.append((name, "post", numbers(ins), numbers(outs)))
            )
        y.pow(2).sum().backward()
        return sorted(told, key=str), numbers([x.grad for x in inputs])

    (mine, grads), (theirs, their_grads) = run(rushlight), run(torch)
    assert [entry[:2] for entry in mine] == [entry[:2] for entry in theirs]
    for a, b in zip(mine, theirs, strict=True):
        for these, those in zip(a[2:], b[2:], strict=True):
            compare(these, those)
    compare(grads, their_grads)


def compare(these, those):
    for a, b in zip(these, those, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a[0] == b[0] and a[1] == pytest.approx(b[1])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["pre", "post"])
def test_hooks_change_gradients(case, kind):
    def run(lib):
        y, inputs = made(lib, case)
        handles = []
        for number, node in enumerate(walked(y.grad_fn, [])):
            if "Accumulate" in node.name():
                continue
            if kind == "pre":
                hook = lambda gs, by=number + 2: tuple(g * by for g in gs)
                handles.append(node.register_prehook(hook))
            else:
                hook = lambda ins, _, by=number + 2: tuple(g * (by + k) for k, g in enumerate(ins))
                handles.append(node.register_hook(hook))
        y.pow(2).sum().backward(retain_graph=True)
        changed = numbers([x.grad for x in inputs])
        for handle in handles:
            handle.remove()
        for x in inputs:
            x.grad = None
        y.pow(2).sum().backward()
        return changed, numbers([x.grad for x in inputs])

    for mine, theirs in zip(run(rushlight), run(torch), strict=True):
        compare(mine, theirs)


def test_looking_changes_nothing():
    def second(look):
        y, inputs = made(rushlight, "linear of a batch")
        if look:
            assert len(walked(y.grad_fn, [])) == 7
        first = rushlight.autograd.grad(y.pow(3).sum(), inputs, create_graph=True)
        if look:
            walked(first[0].grad_fn, [])
        return rushlight.autograd.grad(sum(g.pow(2).sum() for g in first), inputs)

    assert all(rushlight.equal(a, b) for a, b in zip(second(True), second(False), strict=True))


def test_what_needs_a_gradient_there_is_refused():
    y, _ = made(rushlight, "linear")
    turned = y.grad_fn.next_functions[2][0]
    edge = rushlight.autograd.graph.GradientEdge(turned, 0)
    for attempt in (
        lambda: turned(rushlight.ones(4, 5)),
        lambda: rushlight.autograd.grad(y.sum(), edge),
        lambda: rushlight.autograd.backward(edge, rushlight.ones(4, 5, dtype=rushlight.float64)),
        lambda: turned._hooks("post"),
    ):
        with pytest.raises(NotImplementedError, match="stands for a step within an operation"):
            attempt()


@LIBS
def test_saved_values_are_freed(lib):
    y, _ = made(lib, "linear of a batch")
    product = y.grad_fn.next_functions[0][0]
    assert product._saved_mat1.shape == (6, 4) and product._saved_mat2.stride() == (1, 4)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        product._saved_mat1
    assert product._saved_mat1_sym_sizes == (6, 4)


def test_they_keep_nothing_alive():
    gc.disable()
    try:
        y, inputs = made(rushlight, "linear of a batch without bias")
        node = weakref.ref(y.grad_fn)
        product = y.grad_fn.next_functions[0][0]
        walked(y.grad_fn, [])
        del y
        assert node() is None
        assert product.next_functions[1][0].next_functions[0][0].variable is inputs[1]
        with pytest.raises(NotImplementedError, match="is gone"):
            product._saved_self
        product.register_hook(lambda *gs: None).remove()  # nothing will ever run
    finally:
        gc.enable()
