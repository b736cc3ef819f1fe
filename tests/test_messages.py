"""Errors of everyday calls: torch's sentence first, then the shapes, the user's lines and what to do."""

import traceback

import pytest

import rushlight as torch


def message(call, kind):
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def test_operands_are_named_with_shape_and_line():
    left = torch.ones(3, requires_grad=True) * 2  # left
    right = torch.ones(4)  # right
    text = message(lambda: left + right, RuntimeError)
    sentence, rest = text.split("\n\n")
    assert sentence == (
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0"
    )
    assert "a has shape [3], float32" in rest and "# left" in rest and "# right" in rest
    assert "equal, or one of them 1" in rest
    text = message(lambda: left.add_(torch.ones(2, 3)), RuntimeError)
    assert "write x = x + y" in text


@pytest.mark.parametrize(
    ("a", "b"), [((2, 3), (2, 3)), ((2, 3), (2,)), ((2, 2, 3), (2, 2, 3)), ((3,), (2,)), ((2, 3), (4, 2, 3))]
)
def test_products_name_both_operands(a, b):
    x, y = torch.ones(a), torch.ones(b)  # operands
    text = message(lambda: x @ y, RuntimeError)
    assert text.count("# operands") == 2


def test_a_mismatch_inside_modules_names_the_path():
    net = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Sequential(torch.nn.Linear(3, 2)))
    text = message(lambda: net(torch.ones(1, 4)), RuntimeError)
    assert text.startswith("mat1 and mat2 shapes cannot be multiplied (1x5 and 3x2)\n\n")
    assert "in the module Sequential.1.0: Linear(in_features=3" in text


def test_devices():
    text = message(lambda: torch.ones(3) + torch.ones(3, device="meta"), RuntimeError)
    assert "device meta; made at" in text and "Compute on one device" in text


def test_tensors_that_cannot_be_converted():
    x = torch.ones(3, requires_grad=True)  # made here
    assert "# made here" in message(x.numpy, RuntimeError)
    assert "# made here" in message(lambda: bool(x), RuntimeError)
    whole = torch.ones(3, dtype=torch.int64)  # whole numbers
    assert "# whole numbers" in message(whole.requires_grad_, RuntimeError)
    assert "dtype=torch.float32" in message(lambda: torch.tensor([1, 2], requires_grad=True), RuntimeError)


def test_indices_out_of_range_name_index_size_and_tensor():
    x = torch.ones(3)  # three
    for call in (lambda: x[5], lambda: x[torch.tensor([5])], lambda: x.select(0, 5)):
        text = message(call, IndexError)
        assert "5" in text.split("\n\n")[0] and "[3]" in text and "# three" in text


def test_a_gradient_of_the_wrong_shape():
    y = torch.ones(3, requires_grad=True) * 2
    wrong = torch.ones(4)  # wrong
    with pytest.raises(RuntimeError) as caught:
        y.backward(wrong)
    # Programs compare this text as a whole.
    assert str(caught.value) == (
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([4]) and output[0] has a shape of "
        "torch.Size([3])."
    )
    text = "".join(traceback.format_exception(caught.value))
    assert "torch.Size([3]).\n\n  the gradient has shape [4]" in text
    assert "# wrong" in text and "ones_like" in text


def test_a_graph_cut_further_up_names_the_detach():
    x = torch.ones(3, requires_grad=True)
    cut = x.detach()  # cut here
    loss = (cut * 2).sum()
    assert "# cut here" in message(loss.backward, RuntimeError)


def test_what_detach_finds_cut_already_names_the_first_cut():
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        y = x * 2  # not recorded
    text = message((y.detach() + 1).sum().backward, RuntimeError)
    assert "under no_grad" in text and "# not recorded" in text


def test_an_index_outside_an_embedding_names_table_and_module():
    net = torch.nn.Sequential(torch.nn.Embedding(5, 3))
    words = torch.tensor([1, 7])  # seven
    text = message(lambda: net(words), IndexError)
    assert text.startswith("index out of range in self\n\n")
    assert "The index 7 is not in the table: it has 5 rows" in text
    assert "# seven" in text and "in the module Sequential.0: Embedding(5, 3)" in text


def test_a_graph_cut_by_an_operation_without_derivative_is_explained():
    x = torch.ones(2, requires_grad=True)
    position = x.argmax().float()  # cut here
    text = message(position.backward, RuntimeError)
    assert "cut by an operation that has no derivative" in text and "# cut here" in text


def test_the_path_is_found_whatever_self_is_called():
    class Net(torch.nn.Module):
        def __init__(me):
            super().__init__()
            me.inner = torch.nn.Linear(3, 2)

        def forward(me, x):
            return me.inner(x)

    assert "in the module Net.inner: Linear" in message(lambda: Net()(torch.ones(1, 4)), RuntimeError)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: torch.exp([1]), "exp(): argument 'input' (position 1) must be Tensor, not list"),
        (lambda: torch.add(torch.ones(1), "a"),
         "add(): argument 'other' (position 2) must be Tensor, not str"),
        (lambda: torch.ones(1).add("a"), "add(): argument 'other' (position 1) must be Tensor, not str"),
        (lambda: torch.ones_like(3), "ones_like(): argument 'input' (position 1) must be Tensor, not int"),
        (lambda: torch.ones(2).unsqueeze("a"),
         "unsqueeze(): argument 'dim' (position 1) must be int, not str"),
        (lambda: torch.ones(2).unsqueeze(), 'unsqueeze() missing 1 required positional arguments: "dim"'),
        (lambda: torch.chunk(torch.ones(2), "a"),
         "chunk(): argument 'chunks' (position 2) must be int, not str"),
        (lambda: torch.zeros(2.5), "zeros(): argument 'size' (position 1) must be tuple of ints, not float"),
        (lambda: torch.ones(2).exp(3), "TensorBase.exp() takes no arguments (1 given)"),
        (lambda: torch.linalg.inv([[1.0]]),
         "linalg_inv(): argument 'A' (position 1) must be Tensor, not list"),
        (lambda: torch.flip(torch.ones(2), "a"),
         "flip(): argument 'dims' (position 2) must be tuple of ints, not str"),
        (lambda: torch.ones(2, 3).size("a"), "size(): argument 'dim' (position 1) must be int, not str"),
        (lambda: torch.Tensor("abc"), "new(): invalid data type 'str'"),
        (lambda: torch.Tensor(3.5), "new(): data must be a sequence (got float)"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named_as_the_caller_knows_it(call, sentence):
    assert message(call, TypeError).split("\n")[0] == sentence


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda x: torch.sum(x, 0, 1), r"sum\(\): argument 'keepdim' \(position 3\) must be bool, not int"),
        (lambda x: torch.topk(x, 1, largest=0), r"topk\(\): argument 'largest' must be bool, not int"),
        (lambda x: x.isclose(x, equal_nan=2), r"isclose\(\): argument 'equal_nan' must be bool, not int"),
        (lambda x: torch.nn.functional.dropout(x, 0.5, 1), r"'train' \(position 3\) must be bool, not int"),
        (lambda x: torch.svd(x[None], some=0.5), r"svd\(\): argument 'some' must be bool, not float"),
        (lambda x: torch.addcmul(x, 1, x), r"argument 'tensor1' \(position 2\) must be Tensor, not int"),
    ],
)
def test_switches_are_booleans(call, sentence):
    with pytest.raises(TypeError, match=sentence):
        call(torch.ones(3))


def test_what_torch_reads_in_python_may_be_anything_true():
    x = -torch.ones(1, 4, 4)
    assert torch.nn.functional.relu(x, inplace=1) is x
    assert len(torch.nn.functional.max_pool2d(x, 2, return_indices=1)) == 2


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (torch.unique, "the derivative for '_unique2' is not implemented."),
        (lambda x: torch.unique(x, dim=0), "the derivative for 'unique_dim' is not implemented."),
        (torch.unique_consecutive, "the derivative for 'unique_consecutive' is not implemented."),
        (lambda x: torch.histogram(x, 2).hist, "derivative for aten::histogram is not implemented"),
        (lambda x: torch.bincount(torch.tensor([1, 2, 1]), x), "derivative for aten::bincount is not"),
    ],
)
def test_what_has_no_derivative_says_so(call, sentence):
    with pytest.raises((NotImplementedError, RuntimeError), match=sentence):
        call(torch.tensor([1.0, 2.0, 1.0], requires_grad=True)).sum().backward()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda x: x.byte().clamp(0, 300), "cannot be converted to type uint8_t without overflow"),
        (lambda x: x.int().clamp_max(2**40), "cannot be converted to type int without overflow"),
        (lambda x: x.clamp(min=1e300), "cannot be converted to type float without overflow"),
        (lambda x: x.char().clamp_(300), "cannot be converted to type int8_t without overflow"),
        (lambda x: torch.lerp(x, x.double(), 0.5), "expected dtype float for `end` but got dtype double"),
        (lambda x: torch.lerp(x, x, x.double()), "expected dtype float for `weight` but got dtype double"),
        (lambda x: torch.rms_norm(x + 0j, (4,)), r"expected input with shape \[\*4\]"),
        (lambda x: torch.take_along_dim(x, torch.tensor([-1])), "index -1 is out of bounds for dimension 0"),
    ],
)
def test_numbers_that_do_not_fit(call, sentence):
    with pytest.raises(RuntimeError, match=sentence):
        call(torch.ones(3))


def test_a_frozen_parameter_is_not_said_to_have_been_created_without_requires_grad():
    layer = torch.nn.Linear(2, 1).requires_grad_(False)
    with pytest.raises(RuntimeError, match="does not require grad and does not") as caught:
        layer(torch.ones(1, 2)).sum().backward()
    assert "computed from a tensor that does not require grad, made at" in str(caught.value)
    assert "frozen" in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.std(torch.ones(1)),
        lambda: torch.nn.functional.gelu(torch.ones(2, requires_grad=True)).grad,
        lambda: torch.ones(3)[torch.ones(3, dtype=torch.uint8)],
        lambda: torch.var_mean(torch.ones(1)),
        lambda: torch.ones(2).random_(2**60),
    ],
)
def test_warnings_point_at_the_callers_line(call):
    with pytest.warns(UserWarning) as caught:
        call()
    assert {warning.filename for warning in caught} == {__file__}
