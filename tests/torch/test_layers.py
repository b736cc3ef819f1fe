"""Layers against torch: the same initial numbers after manual_seed, the same repr, state_dict, results,
gradients and statistics; and what both refuse, with the same words."""

import re
import warnings

import moduledb
import pytest
import torch

import rushlight

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def example(*shape):
    """Numbers for both libraries, without either's generator."""
    count = 1
    for size in shape:
        count *= size
    return [((i * 7919 + 13) % 1009) / 504.5 - 1 for i in range(count)], shape


def tensors(lib, inputs):
    made = []
    for item in inputs:
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], list):
            made.append(lib.tensor(item[0]).reshape(item[1]).detach().requires_grad_())
        elif isinstance(item, list):
            made.append(lib.tensor(item))
        else:
            made.append(item)
    return made


def flat(result):
    if result is None:
        return []
    if hasattr(result, "batch_sizes"):
        return [result.data]
    if isinstance(result, (tuple, list)):
        return [tensor for item in result for tensor in flat(item)]
    return [result]


def run(lib, make, call, inputs, train):
    """Everything to compare, as lists of numbers."""
    nn = lib.nn
    lib.manual_seed(3)
    module = eval(make, {"nn": nn, "torch": lib}).train(train)
    state = {name: value.tolist() for name, value in module.state_dict().items()}
    arguments = tensors(lib, inputs)
    lib.manual_seed(5)
    names = dict(zip("xyzw", arguments)) | {"m": module, "nn": nn, "torch": lib}
    results = flat(eval(call, names))
    total = sum((r * (r.detach().cos() + 1)).sum() for r in results if r.requires_grad)
    if isinstance(total, lib.Tensor):
        total.backward()
    gradients = {name: p.grad for name, p in module.named_parameters()}
    gradients |= {f"input {i}": t.grad for i, t in enumerate(arguments) if isinstance(t, lib.Tensor)}
    return (
        repr(module),
        state,
        [r.detach().tolist() for r in results],
        {name: None if g is None else g.tolist() for name, g in gradients.items()},
        {name: value.tolist() for name, value in module.state_dict().items()},
    )


def near(a, b, tolerance=3e-5):
    if isinstance(a, dict):
        return list(a) == list(b) and all(near(a[k], b[k], tolerance) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(near(p, q, tolerance) for p, q in zip(a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or abs(a - b) <= tolerance * (1 + abs(b))
    return a == b


SEQUENCE, PADDED = example(5, 4, 2), example(5, 3, 8)
PAD = [[False] * 5, [False, False, False, True, True], [False] * 5]
PACK = "nn.utils.rnn.pack_padded_sequence(x, [5, 3, 3, 1])"
UNSORTED = "nn.utils.rnn.pack_padded_sequence(x, [2, 5, 1, 4], enforce_sorted=False)"
TARGETS = [0, 3, 6, 9, 4, 1]
LAYERS = [
    *[
        (f"nn.BatchNorm{len(shape) - 2 or 1}d(3, {options})", "(m(x), m(x))", [example(*shape)])
        for shape in ((4, 3), (2, 3, 4, 4), (2, 3, 2, 2, 2))
        for options in ("", "affine=False", "momentum=None", "track_running_stats=False", "bias=False")
    ],
    ("nn.BatchNorm1d(3)", "m(x)", [example(4, 3, 5)]),
    ("nn.SyncBatchNorm(3)", "m(x)", [example(4, 3, 5)]),
    ("nn.InstanceNorm1d(3)", "m(x)", [example(4, 3, 5)]),
    ("nn.InstanceNorm2d(3, affine=True, track_running_stats=True)", "(m(x), m(x))", [example(2, 3, 4, 4)]),
    ("nn.InstanceNorm3d(3)", "m(x)", [example(3, 2, 2, 2)]),
    ("nn.LayerNorm((3, 4))", "m(x)", [example(2, 3, 4)]),
    ("nn.LayerNorm(4, bias=False)", "m(x)", [example(2, 3, 4)]),
    ("nn.GroupNorm(2, 4)", "m(x)", [example(3, 4, 5)]),
    ("nn.RMSNorm(4)", "m(x)", [example(2, 3, 4)]),
    ("nn.LocalResponseNorm(3)", "m(x)", [example(2, 5, 4)]),
    ("nn.CrossMapLRN2d(3, alpha=0.5)", "m(x.detach())", [example(2, 6, 2, 2)]),
    *[
        (f"nn.{kind}(2, 3, {options})", call, [SEQUENCE])
        for kind in ("LSTM", "GRU", "RNN")
        for options in ("", "num_layers=3, bidirectional=True, dropout=0.4", "bias=False, batch_first=True")
        for call in ("m(x)", "m(x[:, 0])", f"m({PACK})", f"m({UNSORTED})")
        if "batch_first" not in options or "pack" not in call
    ],
    ("nn.RNN(2, 3, nonlinearity='relu')", f"(m(x), m({PACK}))", [SEQUENCE]),
    ("nn.LSTM(2, 3, 2, bidirectional=True, proj_size=2)", f"(m(x), m({PACK}))", [SEQUENCE]),
    ("nn.LSTM(2, 3)", "m(x, (y, z))", [SEQUENCE, example(1, 4, 3), example(1, 4, 3)]),
    ("nn.GRU(2, 3)", f"m({PACK}, y)", [SEQUENCE, example(1, 4, 3)]),
    *[(f"nn.{kind}Cell(2, 3)", "(m(x), m(x[0]))", [example(4, 2)]) for kind in ("LSTM", "GRU", "RNN")],
    *[
        (f"nn.MultiheadAttention(8, 2, {options})", f"m(x, x, x, need_weights={weights})", [PADDED])
        for options in (
            "",
            "bias=False",
            "add_bias_kv=True, add_zero_attn=True",
            "dropout=0.3",
            "batch_first=True",
        )
        for weights in (True, False)
    ],
    ("nn.MultiheadAttention(8, 2)", "m(x, x, x, key_padding_mask=y)", [PADDED, PAD]),
    ("nn.MultiheadAttention(8, 2)", "m(x, y, z)", [PADDED, example(6, 3, 8), example(6, 3, 8)]),
    (
        "nn.MultiheadAttention(8, 2, kdim=3, vdim=5)",
        "m(x, y, z)",
        [PADDED, example(6, 3, 3), example(6, 3, 5)],
    ),
    (
        "nn.MultiheadAttention(8, 2)",
        "m(x, x, x, attn_mask=nn.Transformer.generate_square_subsequent_mask(5), is_causal=True,"
        " need_weights=False, key_padding_mask=y)",
        [PADDED, PAD],
    ),
    *[
        (f"nn.TransformerEncoderLayer(8, 2, 16, {options})", "m(x)", [PADDED])
        for options in ("", "norm_first=True", "batch_first=True", "activation='gelu'", "bias=False")
    ],
    ("nn.TransformerDecoderLayer(8, 2, 16)", "m(x, y)", [PADDED, example(6, 3, 8)]),
    (
        "nn.Transformer(8, 2, 2, 2, 16)",
        "m(x, y, tgt_mask=m.generate_square_subsequent_mask(6))",
        [PADDED, example(6, 3, 8)],
    ),
    (
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2, nn.LayerNorm(8))",
        "m(x, src_key_padding_mask=y)",
        [PADDED, PAD],
    ),
    (
        "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 5], div_value=2.0, head_bias=True)",
        "(*m(x, y), m.log_prob(x), m.predict(x))",
        [example(6, 8), TARGETS],
    ),
    ("nn.LinearCrossEntropyLoss(8, 10, bias=True)", "m(x, y)", [example(6, 8), TARGETS]),
    (
        "nn.LinearCrossEntropyLoss(8, 10, options=nn.LinearCrossEntropyOptions(batch_chunk_size=2))",
        "m(x, y)",
        [example(6, 8), TARGETS],
    ),
    *[
        (f"nn.{kind}(0.4)", "m(x)", [example(2, 3, 4, *[2] * more)])
        for kind, more in (
            ("Dropout", 0),
            ("Dropout1d", 0),
            ("Dropout2d", 1),
            ("Dropout3d", 2),
            ("AlphaDropout", 0),
            ("FeatureAlphaDropout", 1),
        )
    ],
    *[
        (f"(lambda m: (m(torch.ones({shape})), m)[1])(nn.{kind}())", "m(x)", [example(*shape)])
        for n in (1, 2, 3)
        for shape in [(2, 3, *[4] * n)]
        for kind in (f"LazyBatchNorm{n}d", f"LazyInstanceNorm{n}d")
    ],
    ("(lambda m: (m(torch.ones(2, 3)), m)[1])(nn.LazyLinear(4))", "m(x)", [example(2, 3)]),
    *[
        (
            f"nn.MaxUnpool{n}d(2)",
            f"m(*nn.functional.max_pool{n}d(x, 2, return_indices=True))",
            [example(2, 3, *[4] * n)],
        )
        for n in (1, 2, 3)
    ],
    ("nn.EmbeddingBag(10, 3, mode='mean')", "m(x, y)", [[1, 2, 4, 5, 4, 3], [0, 2]]),
    ("nn.EmbeddingBag(10, 3, mode='max', padding_idx=2)", "m(x)", [[[1, 2, 4], [5, 4, 3]]]),
    ("nn.Fold((4, 5), (2, 2))", "m(x)", [example(1, 12, 12)]),
    ("nn.Unfold((2, 2), padding=1)", "m(x)", [example(1, 3, 4, 5)]),
    *[
        (f"nn.{layer}", "m(x)", [example(1, 4, 2, 2)])
        for layer in (
            "ChannelShuffle(2)",
            "PixelShuffle(2)",
            "PixelUnshuffle(2)",
            "Upsample(scale_factor=2.5)",
            "Upsample((5, 4), mode='bicubic', align_corners=True)",
            "UpsamplingBilinear2d(scale_factor=2)",
            "UpsamplingNearest2d((3, 5))",
            "Flatten(1, 2)",
            "Unflatten(1, (2, 2))",
            "Identity(3, a=4)",
            "Hardsigmoid()",
            "RReLU(0.2, 0.4)",
            "DataParallel(nn.ReLU())",
        )
    ],
    ("nn.CosineSimilarity(2)", "m(x, y)", [SEQUENCE, example(5, 4, 2)]),
    ("nn.PairwiseDistance(1.5, keepdim=True)", "m(x, y + 1)", [example(3, 4), example(3, 4)]),
    ("nn.TripletMarginLoss(swap=True)", "m(x, y + 1, x * y)", [example(3, 4), example(3, 4)]),
    ("nn.TripletMarginWithDistanceLoss(margin=2)", "m(x, y + 1, x * y)", [example(3, 4), example(3, 4)]),
    ("nn.NLLLoss2d()", "m(x, y)", [example(1, 3, 1, 2), [[[0, 2]]]]),
    (
        "nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2, nn.LayerNorm(8))",
        "m(x, y)",
        [PADDED, example(6, 3, 8)],
    ),
    ("nn.RNNBase('GRU', 2, 3)", "m.weight_hh_l0 * 1", []),
    ("nn.RNNCellBase(2, 3, True, num_chunks=2)", "m.weight_ih * 1", []),
    ("nn.CTCLoss()", "m(x.log_softmax(-1), y, [5, 4], [2, 1])", [example(5, 2, 4), [[1, 2], [3, 3]]]),
]


# Compared in other files: containers, parameters, bases, and what has no result of its own.
ELSEWHERE = {
    "Buffer", "Container", "Module", "ModuleDict", "ModuleList", "Parameter", "ParameterDict",
    "ParameterList", "Sequential", "UninitializedBuffer", "UninitializedParameter",
}  # fmt: skip


def test_every_class_of_torch_is_compared():
    exported = {name for name, value in vars(torch.nn).items() if isinstance(value, type)}
    here = {name for make, _, _ in LAYERS for name in re.findall(r"nn\.(\w+)\(", make)}
    in_table = {name.rpartition(".")[2].rpartition("_")[2] for name in map(str, moduledb.INFOS)}
    assert exported - here - in_table == ELSEWHERE
    assert len(exported) == 168 and all(isinstance(getattr(rushlight.nn, name), type) for name in exported)


@pytest.mark.parametrize(("make", "call", "inputs"), LAYERS, ids=[f"{m}: {c}" for m, c, _ in LAYERS])
def test_layers(make, call, inputs):
    for train in (True, False):
        if not train and "dropout" in make and "Multihead" not in make:
            continue
        ours, theirs = run(rushlight, make, call, inputs, train), run(torch, make, call, inputs, train)
        assert ours[0] == theirs[0]
        for what, a, b in zip(("initial", "results", "gradients", "state"), ours[1:], theirs[1:]):
            assert near(a, b), f"{what}: {a}\ntorch: {b}"


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("packed", [False, True])
def test_second_derivatives_of_recurrent_layers(kind, packed):
    found = []
    for lib in (rushlight, torch):
        lib.manual_seed(0)
        module = getattr(lib.nn, kind)(2, 3, 2, bidirectional=True).double()
        numbers, shape = SEQUENCE
        x = lib.tensor(numbers, dtype=lib.float64).reshape(shape).requires_grad_()
        out = module(eval(PACK, {"nn": lib.nn, "x": x}) if packed else x)[0]
        out = out.data if packed else out
        inputs = [x, *module.parameters()]
        first = lib.autograd.grad(out.pow(2).sum(), inputs, create_graph=True)
        second = lib.autograd.grad(sum((g * g).sum() for g in first), inputs)
        found.append([g.tolist() for g in second])
    assert near(*found, tolerance=1e-10)


REFUSED = """
nn.BatchNorm1d(3)(x)
nn.BatchNorm2d(3)(m)
nn.InstanceNorm1d(3)(x)
nn.InstanceNorm2d(5, affine=True)(x)
nn.GroupNorm(3, 4)
F.layer_norm(m, (5,))
F.layer_norm(m, ())
F.layer_norm(m.long(), (3,))
F.layer_norm(m, (3,), torch.ones(2))
F.layer_norm(m, (3,), torch.ones(3).double())
F.rms_norm(m, (5,))
F.group_norm(x, 2)
F.group_norm(m[0], 2)
F.group_norm(torch.ones(1, 6), 6)
F.batch_norm(x, None, None)
F.batch_norm(x, torch.zeros(2), torch.ones(3), training=True)
F.batch_norm(x, torch.zeros(3), None, training=True)
F.batch_norm(torch.ones(1, 3), None, None, training=True)
F.batch_norm(m.double(), torch.zeros(3), torch.ones(3), torch.ones(3), torch.ones(3), True)
F.batch_norm(m, None, None, training=True, eps=0)
F.batch_norm(m.long(), torch.zeros(3), torch.ones(3))
F.instance_norm(torch.ones(2, 6, 1))
F.instance_norm(x, use_input_stats=False)
F.local_response_norm(m, 2)
F.scaled_dot_product_attention(m, m, m.double())
F.scaled_dot_product_attention(m[0], m[0], m[0])
F.scaled_dot_product_attention(m, m, m, attn_mask=torch.zeros(4, 4, dtype=torch.int64))
F.scaled_dot_product_attention(m, m, m, dropout_p=1.5)
nn.MultiheadAttention(8, 3)
nn.MultiheadAttention(0, 3)
nn.MultiheadAttention(4, 2)(q, q, q[:1])
nn.MultiheadAttention(4, 2)(q[..., :2], q, q)
nn.MultiheadAttention(4, 2)(q[None], q, q)
nn.MultiheadAttention(4, 2)(q, q[0], q)
nn.MultiheadAttention(4, 2)(q, q, q, is_causal=True)
nn.MultiheadAttention(4, 2)(q, q, q, attn_mask=torch.zeros(5, 4))
nn.MultiheadAttention(4, 2)(q, q, q, attn_mask=torch.zeros(4))
nn.MultiheadAttention(4, 2)(q, q, q, key_padding_mask=torch.zeros(3, 4, dtype=torch.int64))
nn.MultiheadAttention(4, 2)(q, q, q, key_padding_mask=torch.zeros(3, 5))
nn.TransformerEncoderLayer(8, 2, activation='foo')
nn.Transformer(4, 2, 1, 1, 8)(q, q[:, :1])
nn.Transformer(4, 2, 1, 1, 8)(q[..., :2], q)
nn.LSTM(2, 3)(x)
nn.LSTM(2, 3)(q)
nn.LSTM(2, 3)(q[..., :2], (torch.zeros(1, 2, 3), torch.zeros(1, 3, 3)))
nn.LSTM(2, 3)(q[..., :2], (torch.zeros(3, 3), torch.zeros(3, 3)))
nn.LSTM(2, 3)(q[..., :2].double())
nn.GRU(2, 3)(q[..., :2], torch.zeros(1, 2, 3))
nn.RNN(2, 3, nonlinearity='foo')
nn.RNN(2, 3, dropout=2)
nn.GRU(2, 3, proj_size=1)
nn.GRU(2, 3)(torch.zeros(2))
nn.RNN(2, 3)(torch.zeros(2))
nn.LSTM(2, 3)(torch.zeros(1, 1, 1, 2))
nn.LSTM(2, 3, proj_size=3)
nn.LSTM(2, 0)
nn.LSTM(2.0, 3)
nn.LSTMCell(2, 3)(q)
nn.LSTMCell(2, 3)(m)
nn.LSTMCell(3, 3)(m, torch.zeros(4, 3))
nn.RNNCell(3, 3)(m, torch.zeros(2, 3))
nn.AdaptiveLogSoftmaxWithLoss(8, 10, [5, 3])
nn.AdaptiveLogSoftmaxWithLoss(3, 10, [5])(m, torch.tensor([1, 2, 3, 11]))
F.ctc_loss(q, torch.tensor([[1], [1], [1]]), [9, 4, 4], [1, 1, 1])
F.ctc_loss(q, torch.tensor([[1], [1], [1]]), [4, 4], [1, 1, 1])
F.ctc_loss(q, torch.tensor([[1], [1], [1]]), [4, 4, 4], [1, 1, 2])
F.ctc_loss(q, torch.tensor([[1], [1], [1]]), [4, 4, 4], [1, 1, 1], blank=7)
"""


@pytest.mark.parametrize("expression", REFUSED.split("\n")[1:-1])
def test_refusals(expression):
    caught = []
    for lib in (rushlight, torch):
        scope = {"torch": lib, "nn": lib.nn, "F": lib.nn.functional}
        scope |= {"x": lib.ones(2, 3, 4, 4), "m": lib.ones(4, 3), "q": lib.ones(4, 3, 4)}
        with warnings.catch_warnings(), pytest.raises(Exception) as error:
            warnings.simplefilter("ignore")
            eval(expression, scope)
        caught.append((error.type, str(error.value).split("\n")[0]))
    assert caught[0] == caught[1]


@pytest.mark.parametrize(
    "call",
    [
        lambda lib: lib.nn.Conv2d(3, 2, 3).double()(lib.ones(1, 3, 5, 5)),
        lambda lib: lib.nn.functional.scaled_dot_product_attention(
            *[lib.ones(2, 4, 8)] * 3, lib.ones(4, 4), is_causal=True
        ),
    ],
)
def test_refusals_of_layers(call):
    said = []
    for lib in (torch, rushlight):
        with pytest.raises(RuntimeError) as error:
            call(lib)
        said.append(str(error.value).split("\n")[0])
    assert said[0] == said[1]
