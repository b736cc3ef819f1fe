"""Operands written between a product and its backward: the error names what torch's product was given, which
is often a view of the operand (the transposed weight of `linear`, the rows of a batch)."""

import pytest

import rushlight

torch = pytest.importorskip("torch")

PRODUCTS = {
    "linear": ("nn.functional.linear", [(4, 3), (2, 3), (2,)]),
    "linear without bias": ("nn.functional.linear", [(4, 3), (2, 3)]),
    "linear of a batch": ("nn.functional.linear", [(5, 4, 3), (2, 3), (2,)]),
    "linear of a batch without bias": ("nn.functional.linear", [(5, 4, 3), (2, 3)]),
    "linear of a vector": ("nn.functional.linear", [(3,), (2, 3), (2,)]),
    "linear of a vector without bias": ("nn.functional.linear", [(3,), (2, 3)]),
    "two matrices": ("matmul", [(4, 3), (3, 2)]),
    "a matrix and a vector": ("matmul", [(4, 3), (3,)]),
    "a vector and a matrix": ("matmul", [(3,), (3, 2)]),
    "a batch and a matrix": ("matmul", [(5, 4, 3), (3, 2)]),
    "a batch and a vector": ("matmul", [(5, 4, 3), (3,)]),
    "two batches": ("matmul", [(5, 4, 3), (5, 3, 2)]),
    "two batches of batches": ("matmul", [(5, 6, 4, 3), (5, 6, 3, 2)]),
    "a batch and a batch of one": ("matmul", [(5, 4, 3), (1, 3, 2)]),
    "batches of batches and a matrix": ("matmul", [(2, 5, 4, 3), (3, 2)]),
    "batches of batches of one": ("matmul", [(2, 5, 4, 3), (1, 1, 3, 2)]),
    "two batches of one": ("matmul", [(1, 4, 3), (1, 3, 2)]),
    "a matrix and a batch": ("matmul", [(4, 3), (5, 3, 2)]),
    "a batch of one and a batch": ("matmul", [(1, 4, 3), (5, 3, 2)]),
    "a vector and a batch": ("matmul", [(3,), (5, 3, 2)]),
    "batches of batches and a batch": ("matmul", [(2, 5, 4, 3), (5, 3, 2)]),
    "a pool of lines": ("nn.functional.avg_pool1d", [(1, 2, 6)]),
}
CASES = [(name, written, how) for name, (_, sizes) in PRODUCTS.items() for written in range(len(sizes))
         for how in ("leaf", "computed", "constant") if how != "constant" or len(sizes) > 1]  # fmt: skip


def ending(library, name, written, how):
    path, sizes = PRODUCTS[name]
    function = library
    for part in path.split("."):
        function = getattr(function, part)
    operands = [library.ones(size, requires_grad=True) for size in sizes]
    if how == "computed":
        operands = [operand * 1 for operand in operands]
    if how == "constant":
        operands[written] = library.ones(sizes[written])
    loss = function(*operands, *([2] if path.endswith("pool1d") else [])).sum()
    with library.no_grad():
        operands[written].mul_(2)
    try:
        loss.backward()
    except RuntimeError as error:
        return str(error).split("\n")[0]
    return "no error"


@pytest.mark.parametrize(("name", "written", "how"), CASES)
def test_error_names_what_was_multiplied(name, written, how):
    assert ending(rushlight, name, written, how) == ending(torch, name, written, how)


TURNED = {
    "linear": lambda library, x, w: library.nn.functional.linear(x.transpose(0, 1), w),
    "linear with bias": lambda library, x, w: library.nn.functional.linear(
        x.transpose(0, 1), w, library.ones(2)
    ),
    "matmul": lambda library, x, w: x.transpose(0, 1) @ w.t(),
    "matmul of a permuted": lambda library, x, w: x.permute(1, 0, 2) @ w.detach().t().requires_grad_(),
}


def gradient_after_a_write(library, function, into_x, frozen):
    x = (library.arange(30.0).reshape(5, 2, 3) / 10).requires_grad_()
    w = (library.arange(6.0).reshape(2, 3) / 10).requires_grad_(not frozen)
    given = x * 1
    loss = function(library, given, w).square().sum()
    with library.no_grad():
        (given if into_x else w).mul_(2)
    try:
        loss.backward()
    except RuntimeError as error:
        return str(error).split("\n")[0]
    return [number for each in (x.grad, w.grad) if each is not None for number in each.flatten().tolist()]


@pytest.mark.parametrize("name", TURNED)
@pytest.mark.parametrize("into_x", [False, True])
@pytest.mark.parametrize("frozen", [False, True])
def test_rows_that_do_not_follow_one_another_are_copied(name, into_x, frozen):
    rushlight.ones(1).to_sparse()  # also once there has been a tensor about which somebody is asked
    found, expected = (
        gradient_after_a_write(library, TURNED[name], into_x, frozen) for library in (rushlight, torch)
    )
    assert found == (expected if isinstance(expected, str) else pytest.approx(expected))


VIEWS = {
    "chunk": lambda library, x: x.chunk(2)[0],
    "split": lambda library, x: x.split(2)[1],
    "unbind": lambda library, x: x.view(2, 2, 2).unbind()[1],
    "a view of a chunk": lambda library, x: x.chunk(2)[0].view(2, 2),
    "plain": lambda library, x: x[:2],
    "without grad": lambda library, x: without_grad(library, x),
}
USES = {
    "product": lambda library, view, y: view * y,
    "linear": lambda library, view, y: library.nn.functional.linear(y, view),
    "linear of it": lambda library, view, y: library.nn.functional.linear(view[None], y),
    "rows": lambda library, view, y: view.view(1, 2, 2) @ y,
}


def without_grad(library, x):
    with library.no_grad():
        return x[:2]


def ending_of_a_written_base(library, view, use, computed, recorded):
    x, y = library.ones(4, 2, requires_grad=True), library.ones(2, 2, requires_grad=True)
    base = x * 1 if computed else x
    loss = USES[use](library, VIEWS[view](library, base), y).sum()
    if recorded and computed:
        base.mul_(2)
    else:
        with library.no_grad():
            base.mul_(2)
    with pytest.raises(RuntimeError) as refused:
        loss.backward()
    return str(refused.value).split("\n")[0]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("recorded", [False, True])
def test_a_view_that_cannot_be_cut_out_anew_is_told_so(view, use, computed, recorded):
    assert ending_of_a_written_base(rushlight, view, use, computed, recorded) == ending_of_a_written_base(
        torch, view, use, computed, recorded
    )


CELLS = {
    "RNNCell": ("weight_hh",),
    "GRUCell": ("weight_hh", "bias_hh"),
    "LSTMCell": ("weight_hh",),
    "GRU": ("bias_hh_l0",),
}


@pytest.mark.parametrize(("layer", "name"), [(layer, name) for layer in CELLS for name in CELLS[layer]])
def test_what_a_step_does_not_read_again_may_be_written(layer, name):
    def gradients(write, create_graph=False):
        rushlight.manual_seed(0)
        module = getattr(rushlight.nn, layer)(3, 4)
        x = rushlight.ones(5, 2, 3)[: 5 if layer == "GRU" else 1].squeeze(0).requires_grad_()
        out = module(x)
        loss = (out[0] if isinstance(out, tuple) else out).square().sum()
        if write:
            with rushlight.no_grad():
                getattr(module, name).zero_()
        return rushlight.autograd.grad(loss, [x, *module.parameters()], create_graph=create_graph)

    for found, expected in zip(gradients(True), gradients(False), strict=True):
        assert rushlight.equal(found, expected)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        gradients(True, create_graph=True)


RECURRENT = ["RNNCell", "GRUCell", "LSTMCell", "RNN", "GRU", "LSTM"]


@pytest.mark.parametrize("layer", RECURRENT)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("both", [False, True])
def test_what_a_recurrent_layer_returned_may_be_written_where_torch_allows_it(layer, dtype, length, both):
    def gradients(library):
        library.manual_seed(0)
        kind = getattr(library, dtype)
        options = {} if "Cell" in layer else {"bidirectional": both}
        module = getattr(library.nn, layer)(3, 4, dtype=kind, **options)
        x = library.linspace(-1, 1, 6 * length, dtype=kind).reshape(length, 2, 3).requires_grad_()
        out = module(x[0] if "Cell" in layer else x)
        out = out[0] if isinstance(out, tuple) else out
        if not both:
            out = out.mul_(0.5)
        else:
            with library.no_grad():
                out.zero_()
        try:
            out.square().sum().backward()
        except RuntimeError as error:
            return str(error).split("\n")[0]
        grads = [x.grad, *(parameter.grad for parameter in module.parameters())]
        return [number for grad in grads for number in grad.flatten().tolist()]

    found, expected = gradients(rushlight), gradients(torch)
    assert found == (expected if isinstance(expected, str) else pytest.approx(expected, abs=1e-6))


@pytest.mark.parametrize("layer", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("written", [0, -1])
def test_a_written_state_is_named_as_it_was_taken_apart(layer, dtype, written):
    def ending(library):
        kind = getattr(library, dtype)
        module = getattr(library.nn, layer)(3, 4, 2, dtype=kind)
        states = [library.ones(2, 5, 4, dtype=kind, requires_grad=True) for _ in range(1 + (layer == "LSTM"))]
        out, _ = module(library.ones(2, 5, 3, dtype=kind), tuple(states) if layer == "LSTM" else states[0])
        with library.no_grad():
            states[written].mul_(2)
        with pytest.raises(RuntimeError) as refused:
            out.sum().backward()
        return str(refused.value).split("\n")[0]

    assert ending(rushlight) == ending(torch)


@pytest.mark.parametrize("layer", ["GRUCell", "GRU"])
@pytest.mark.parametrize("wanted", ["input", "state", "both"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_state_given_to_frozen_weights_may_be_written(layer, wanted, create_graph):
    def gradients(library):
        library.manual_seed(0)
        module = getattr(library.nn, layer)(3, 4).requires_grad_(False)
        x = library.linspace(-1, 1, 18).reshape(3, 2, 3).requires_grad_(wanted != "state")
        h = library.linspace(-2, 1, 8).reshape(1, 2, 4).requires_grad_(wanted != "input")
        state = h * 1
        out = module(x[0], state[0]) if layer == "GRUCell" else module(x, state)[0]
        with library.no_grad():
            state.zero_()
        asked = [each for each in (x, h) if each.requires_grad]
        found = library.autograd.grad(out.square().sum(), asked, create_graph=create_graph)
        if create_graph:
            found = library.autograd.grad(sum(grad.square().sum() for grad in found), asked)
        return [number for grad in found for number in grad.flatten().tolist()]

    assert gradients(rushlight) == pytest.approx(gradients(torch), abs=1e-5)


@pytest.mark.parametrize("layer", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("both", [False, True])
def test_only_what_the_user_is_given_is_copied_for_the_gradient(layer, both):
    module = getattr(rushlight.nn, layer)(3, 4, 3, bidirectional=both, dtype=rushlight.float64)
    out, _ = module(rushlight.ones(5, 2, 3, dtype=rushlight.float64))
    copied, seen, waiting = [], set(), [out.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        waiting += [source for source, _ in node.next_functions]
        if node._primitive and node._primitive.__name__ == "rnn_sequence":
            saved = {name: node._unpack(slot, is_out) for name, slot, is_out in node._names_saved()}
            copied.append(saved["states"].numel())
    assert sorted(copied) == ([0] * 6 if both else [0, 0, out.numel()])


LAYERS = {
    "LSTM": lambda nn: nn.LSTM(3, 4),
    "LSTM of doubles": lambda nn: nn.LSTM(3, 4).double(),
    "LSTM without bias": lambda nn: nn.LSTM(3, 4, bias=False),
    "LSTM of two layers": lambda nn: nn.LSTM(3, 4, 2),
    "LSTM both ways": lambda nn: nn.LSTM(3, 4, bidirectional=True),
    "GRU": lambda nn: nn.GRU(3, 4),
    "RNN": lambda nn: nn.RNN(3, 4),
    "linear layers": lambda nn: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)),
}


def ending_of_a_second_backward(library, make, of_input):
    layer = make(library.nn)
    parameters = list(layer.parameters())
    optimizer = library.optim.SGD(parameters, 0.1)
    out = layer(library.ones(5, 2, 3, dtype=parameters[0].dtype, requires_grad=of_input))
    loss = (out[0] if isinstance(out, tuple) else out).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError) as refused:
        loss.backward()
    return str(refused.value).split("\n")[0]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("of_input", [False, True])
def test_a_second_backward_after_a_step_names_the_same_weight(layer, of_input):
    assert ending_of_a_second_backward(rushlight, LAYERS[layer], of_input) == ending_of_a_second_backward(
        torch, LAYERS[layer], of_input
    )
