"""What the functions that programs use most were given, and what they returned, written between the forward
and the backward: both libraries refuse the same writes, in the same words.

Modules: test_written_modules.py; products of all dimensions and layouts: test_written_products.py.
"""

import warnings

import pytest

import rushlight

torch = pytest.importorskip("torch")


def sizes_and_rest(text):
    """ "4x3 4 int, dim=1": a tensor of 4x3 numbers, one of 4 indices, and a keyword."""
    operands, _, rest = text.partition(", ")
    return operands.split(), eval(f"dict({rest})") if rest else {}


# A line is a function, or an expression of a, b, c, d; and what it is called with, in one or several ways. i
# and m before sizes: indices and a mask.
CALLS = """
    pad: 2x3x4, pad=(1, 1) | 2x3x4, pad=(1, 1), mode="reflect" | 2x3x4, pad=(1, 1), mode="replicate"
    mse_loss: 4x3 4x3 | 4x3 4x3, reduction="sum" | 4x3 4x3, reduction="none" | 4x3 3
    cross_entropy: 4x3 i4 | 4x3 4x3 | 4x3x5 i4x5 | 4x3 i4, label_smoothing=0.1 | 3 i
    softmax: 4x3, dim=-1 | 4x3, dim=0
    log_softmax: 4x3, dim=-1
    normalize: 4x3 | 4x3, p=1, dim=0 | 4x3, dim=-1
    scaled_dot_product_attention: 1x2x4x3 1x2x4x3 1x2x4x3 | 2x4x3 2x4x3 2x4x3 | 4x3 4x3 4x3
    scaled_dot_product_attention: 1x2x4x3 1x2x4x3 1x2x4x3, is_causal=True | 2x4x3 2x4x3 2x4x3, is_causal=True
    scaled_dot_product_attention: 1x2x4x3 1x2x5x3 1x2x5x3 4x5 | 1x2x4x3 1x2x4x3 1x2x4x3, dropout_p=0.5
    scaled_dot_product_attention: 2x4x4x3 2x2x4x3 2x2x4x3, enable_gqa=True
    scaled_dot_product_attention: 1x2x4x3 1x2x5x3 1x2x5x3 m4x5
    relu: 4x3
    gelu: 4x3 | 4x3, approximate="tanh"
    silu: 4x3
    softplus: 4x3
    sigmoid: 4x3
    logsigmoid: 4x3
    elu: 4x3
    leaky_relu: 4x3
    prelu: 4x3 3 | 4x3 1 | 3 1
    glu: 4x4
    linear: 4x3 2x3 2 | 5x4x3 2x3 2 | 5x4x3 2x3 | 3 2x3 2
    bilinear: 4x3 4x2 5x3x2 5
    max_pool2d: 1x2x4x4, kernel_size=2
    avg_pool2d: 1x2x4x4, kernel_size=2
    max_pool1d: 1x2x4, kernel_size=2 | 2x4, kernel_size=2
    adaptive_avg_pool2d: 1x2x4x4, output_size=1 | 1x2x4x4, output_size=2
    adaptive_max_pool2d: 1x2x4x4, output_size=2
    layer_norm: 4x3, normalized_shape=(3,)
    nn.functional.layer_norm(a, (3,), b, c): 4x3 3 3
    nn.functional.group_norm(a, 2, b, c): 2x4x3 4 4
    nn.functional.rms_norm(a, (3,), b): 4x3 3
    nn.functional.instance_norm(a, None, None, b, c): 2x3x4 3 3
    nn.functional.batch_norm(a, None, None, b, c, True): 4x3 3 3
    interpolate: 1x2x4x4, scale_factor=2 | 1x2x4x4, size=(3, 3), mode="bilinear"
    affine_grid: 1x2x3, size=(1, 1, 4, 4), align_corners=False
    grid_sample: 1x1x4x4 1x3x3x2, align_corners=False
    pixel_shuffle: 1x4x2x2, upscale_factor=2
    unfold: 1x2x4x4, kernel_size=2
    conv2d: 1x2x4x4 3x2x2x2 3 | 2x4x4 3x2x2x2 | 1x2x4x4 2x2x1x1
    conv1d: 1x2x4 3x2x2 3 | 2x4 3x2x2 | 1x2x4 3x2x2, padding="same"
    conv3d: 1x1x4x4x4 2x1x2x2x2
    conv_transpose2d: 1x2x4x4 2x3x2x2 3
    dropout: 4x3
    kl_div: 4x3 4x3, reduction="batchmean" | 4x3 4x3, reduction="sum", log_target=True
    nll_loss: 4x3 i4 | 4x3x5 i4x5 | 4x3x5x2x2 i4x5x2x2
    l1_loss: 4x3 4x3
    smooth_l1_loss: 4x3 4x3
    huber_loss: 4x3 4x3
    cosine_similarity: 4x3 4x3
    binary_cross_entropy: 4x3 4x3
    binary_cross_entropy_with_logits: 4x3 4x3
    gaussian_nll_loss: 4x3 4x3 4x3
    triplet_margin_loss: 4x3 4x3 4x3
    embedding: i4 5x3
    a @ b: 4x3 3x2 | 5x4x3 5x3x2 | 5x4x3 3x2 | 4x3 3 | 3 3
    a @ b: 4x3 5x3x2 | 2x5x4x3 5x3x2 | 3 5x3x2
    einsum("ij,jk->ik", a, b): 4x3 3x2
    einsum("bij,bjk->bik", a, b): 2x4x3 2x3x2
    einsum("bhid,bhjd->bhij", a, b): 2x2x4x3 2x2x4x3
    einsum("bid,od->bio", a, b): 2x4x3 2x3
    einsum("ij,j->i", a, b): 4x3 3
    einsum("bij,bij->bij", a, b): 2x4x3 2x4x3
"""
CASES = [(function, call.strip()) for line in CALLS.strip().splitlines()
         for function, _, calls in [line.strip().partition(": ")] for call in calls.split(" | ")]  # fmt: skip


def operand(library, text):
    size = [int(part) for part in text.strip("im").split("x") if part]
    if text[0] == "i":
        return library.zeros(size, dtype=library.int64)
    return library.ones(size, dtype=library.bool) if text[0] == "m" else library.full(size, 0.5)


def ending(library, function, call, written, how):
    """How a backward ends after a write into an operand, or into the result if `written` is one beyond."""
    texts, rest = sizes_and_rest(call)
    operands = []
    for place, text in enumerate(texts):
        tensor = operand(library, text)
        if tensor.is_floating_point() and not (how == "constant" and place == written):
            tensor.requires_grad_()
            operands.append(tensor * 1 if how == "computed" else tensor)
        else:
            operands.append(tensor)
    library.manual_seed(0)
    if "(" in function or "@" in function:
        names = {**vars(library), "nn": library.nn, **dict(zip("abcd", operands))}
        result = eval(function, names)
    else:
        result = getattr(library.nn.functional, function)(*operands, **rest)
    if not result.requires_grad:
        return "nothing to differentiate"
    target = [*operands, result][written]
    with library.no_grad():
        target.copy_(target.clone())
    try:
        result.sum().backward()
    except RuntimeError as error:
        return str(error).split("\n")[0].split(" Hint: ")[0]
    return "accepted"


def differences(function, call):
    count = len(sizes_and_rest(call)[0])
    for written in range(count + 1):
        for how in ("leaf", "computed", *(["constant"] if written < count else [])):
            mine, theirs = (ending(library, function, call, written, how) for library in (rushlight, torch))
            if mine != theirs:
                yield f"{how} {written}: {mine}; torch: {theirs}"


@pytest.mark.parametrize(("function", "call"), CASES)
def test_writes_are_refused_in_the_same_words(function, call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(differences(function, call))
    assert not found
