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
