"""autocast and GradScaler: the dtypes that torch's functions compute in, and the scales it comes to."""

import warnings

import pytest
import torch

import rushlight

# Called with the library, its functional module and a maker of tensors.
FUNCTIONS = {
    "mm": lambda t, f, x: t.mm(x(4, 4), x(4, 4)),
    "matmul": lambda t, f, x: x(4, 4) @ x(4),
    "einsum": lambda t, f, x: t.einsum("ij,jk->ik", x(4, 4), x(4, 4)),
    "tensordot": lambda t, f, x: t.tensordot(x(4, 4), x(4, 4), 1),
    "linear": lambda t, f, x: f.linear(x(4, 4), x(3, 4), x(3)),
    "conv2d": lambda t, f, x: f.conv2d(x(1, 2, 5, 5), x(3, 2, 3, 3)),
    "conv_transpose1d": lambda t, f, x: f.conv_transpose1d(x(1, 2, 5), x(2, 3, 3)),
    "attention": lambda t, f, x: f.scaled_dot_product_attention(x(2, 4, 4), x(2, 4, 4), x(2, 4, 4)),
    "prelu": lambda t, f, x: f.prelu(x(4, 4), x(1)),
    "matrix_power": lambda t, f, x: t.linalg.matrix_power(x(4, 4), 2),
    "mv": lambda t, f, x: t.mv(x(4, 4), x(4)),
    "addmv": lambda t, f, x: t.addmv(x(4), x(4, 4), x(4)),
    "dot": lambda t, f, x: t.dot(x(4), x(4)),
    "sum": lambda t, f, x: x(4).sum(),
    "prod": lambda t, f, x: x(4).prod(),
    "exp": lambda t, f, x: x(4).exp(),
    "softmax": lambda t, f, x: f.softmax(x(4), -1),
    "layer_norm": lambda t, f, x: f.layer_norm(x(4, 4), (4,)),
    "gelu": lambda t, f, x: f.gelu(x(4)),
    "mse_loss": lambda t, f, x: f.mse_loss(x(4), x(4)),
    "cross_entropy": lambda t, f, x: f.cross_entropy(x(4, 4), t.tensor([0, 1, 2, 3])),
    "max_pool2d": lambda t, f, x: f.max_pool2d(x(1, 2, 4, 4), 2),
    "max_pool3d": lambda t, f, x: f.max_pool3d(x(1, 2, 4, 4, 4), 2),
    "adaptive_max_pool3d": lambda t, f, x: f.adaptive_max_pool3d(x(1, 2, 4, 4, 4), 2),
    "avg_pool2d": lambda t, f, x: f.avg_pool2d(x(1, 2, 4, 4), 2),
    "avg_pool3d": lambda t, f, x: f.avg_pool3d(x(1, 2, 4, 4, 4), 2),
    "reflect": lambda t, f, x: f.pad(x(1, 2, 4, 4), (1, 1, 1, 1), mode="reflect"),
    "replicate": lambda t, f, x: f.pad(x(1, 2, 4), (1, 1), mode="replicate"),
    "constant": lambda t, f, x: f.pad(x(1, 2, 4), (1, 1)),
    "cat": lambda t, f, x: t.cat([x(4), t.ones(4)]),
    "add": lambda t, f, x: x(4) + t.ones(4),
    "double": lambda t, f, x: x(4, 4).double() @ x(4, 4).double(),
    "fft": lambda t, f, x: t.fft.fft(x(4)),
    "eigh": lambda t, f, x: t.linalg.eigh(x(4, 4) @ x(4, 4).mT)[0],
    "lstm": lambda t, f, x: t.nn.LSTM(4, 3)(x(2, 4, 4))[0],
    "gru_cell": lambda t, f, x: t.nn.GRUCell(4, 3)(x(2, 4)),
    "out": lambda t, f, x: t.mm(t.ones(2, 2), t.ones(2, 2), out=t.empty(2, 2)),
}


def dtype(lib, function, given):
    def make(*shape):
        lib.manual_seed(0)
        return lib.randn(*shape).to(getattr(lib, given))

    with lib.autocast("cpu"):
        return str(function(lib, lib.nn.functional, make).dtype)


@pytest.mark.parametrize("given", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_dtypes(name, given):
    try:
        expected = dtype(torch, FUNCTIONS[name], given)
    except RuntimeError as error:
        if "could not create a primitive" not in str(error):
            raise
        pytest.skip("torch has no such kernel for this processor")
    assert dtype(rushlight, FUNCTIONS[name], given) == expected


def scaled(lib, overflows, unscale):
    weight = lib.nn.Parameter(lib.ones(2))
    optimizer = lib.optim.SGD([weight], lr=0.1)
    scaler = lib.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    seen = []
    for overflow in overflows:
        optimizer.zero_grad()
        scaler.scale((weight * lib.tensor([1.0, 2.0])).sum()).backward()
        if overflow:
            weight.grad[0] = float("inf")
        if unscale:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        seen.append((weight.detach().tolist(), scaler.state_dict()))
    return seen


@pytest.mark.parametrize("unscale", [False, True])
@pytest.mark.parametrize("overflows", ["0000", "1", "01", "0010"])
def test_scales(overflows, unscale):
    steps = [digit == "1" for digit in overflows]
    assert scaled(rushlight, steps, unscale) == scaled(torch, steps, unscale)


def half(lib):
    weight = lib.nn.Parameter(lib.ones(1, dtype=lib.float16))
    scaler = lib.amp.GradScaler("cpu")
    scaler.scale(weight.float().sum()).backward()
    scaler.unscale_(lib.optim.SGD([weight], lr=0.1))


@pytest.mark.parametrize(
    "wrong",
    [
        half,
        lambda lib: lib.amp.GradScaler("cpu").update(),
        lambda lib: lib.amp.GradScaler("cpu").step(lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=0.1)),
        lambda lib: lib.amp.GradScaler("cpu", growth_factor=1.0),
        lambda lib: lib.amp.GradScaler("cpu").load_state_dict({}),
        lambda lib: lib.autocast(3),
    ],
)
def test_errors(wrong):
    found = []
    for lib in (rushlight, torch):
        with pytest.raises(Exception) as caught:
            wrong(lib)
        found.append((caught.type, str(caught.value)))
    assert found[0] == found[1]


def test_older_names():
    for lib in (rushlight, torch):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with lib.cpu.amp.autocast():
                assert lib.is_autocast_enabled("cpu")
            assert lib.cpu.amp.GradScaler().is_enabled()
        assert [each.category for each in caught] == [FutureWarning, FutureWarning]


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss"])
def test_losses_of_the_core(name, reduction):
    values = []
    for lib in (rushlight, torch):
        loss = getattr(lib._C._nn, name)(lib.tensor([1.0, -2.0]), lib.tensor([0.5, 1.0]), reduction)
        values.append(loss.tolist())
    assert values[0] == pytest.approx(values[1])


def test_other_functions_of_the_core():
    values = []
    for lib in (rushlight, torch):
        x, labels = lib.arange(6.0).reshape(2, 3), lib.tensor([2, 0])
        nn = lib._C._nn
        values.append([
            nn.nll_loss(x, labels, lib.tensor([1.0, 2.0, 3.0]), 2, 0).item(),
            nn.reflection_pad1d(x, (1, 2)).tolist(),
            nn.replication_pad1d(x, [1, 0]).tolist(),
            nn.linear(x, x).tolist(),
            lib.margin_ranking_loss(x, x + 1, lib.tensor([1.0, -1.0, 1.0]), 0.0, 1).item(),
        ])  # fmt: skip
    assert values[0] == values[1]


def kept_through_steps(library):
    """The state of a scaler through a good step, an overflow and what follows."""
    x = library.nn.Parameter(library.ones(2))
    optimizer = library.optim.SGD([x], lr=0.1)
    scaler = library.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    seen = []
    for factor in (1.0, 2.0, float("inf"), 1.0):
        optimizer.zero_grad()
        scaler.scale((x * factor).sum()).backward()
        scaler.unscale_(optimizer)
        states = scaler._per_optimizer_states[id(optimizer)]
        seen.append(str(states["found_inf_per_device"]) + states["stage"].name)
        scaler.step(optimizer)
        scaler.update()
        seen.append((x.tolist(), str(scaler._scale), str(scaler._growth_tracker), scaler.state_dict()))
    return seen


def test_a_scaler_keeps_what_torch_keeps():
    assert kept_through_steps(rushlight) == kept_through_steps(torch)


def test_addmm_with_an_activation():
    results = []
    for library in (rushlight, torch):
        x = library.arange(9.0).view(3, 3) - 4
        with library.autocast("cpu", dtype=library.bfloat16):
            lower = library._addmm_activation(x, x, x)
        results.append((str(lower.dtype), library._addmm_activation(x, x, -x, beta=0.5).tolist()))
    assert results[0] == results[1]


STATE = [
    "torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()",
    "torch.set_autocast_enabled('cpu', True), (x @ x).dtype, torch.is_autocast_cpu_enabled()",
    "torch.set_autocast_cpu_dtype(torch.float16), (x @ x).dtype, torch.get_autocast_dtype('cpu')",
    "torch.set_autocast_cpu_enabled(False), (x @ x).dtype, torch.is_autocast_enabled('cpu')",
    "torch.set_autocast_cpu_dtype(torch.bfloat16), torch.get_autocast_cpu_dtype()",
    "torch.set_autocast_enabled(True), torch.is_autocast_enabled(), torch.set_autocast_enabled(False)",
    "torch.set_autocast_cache_enabled(False), torch.is_autocast_cache_enabled()",
    "torch.set_autocast_cache_enabled(True), torch.is_autocast_cache_enabled()",
    "torch.set_autocast_gpu_dtype(torch.bfloat16), torch.get_autocast_gpu_dtype()",
    "torch.set_autocast_gpu_dtype(torch.float16), torch.get_autocast_dtype('cuda')",
    "torch._C._is_any_autocast_enabled(), torch._C._is_autocast_available('cpu')",
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_state_as_functions():
    answers = [
        [str(eval(line, {"torch": lib, "x": lib.ones(2, 2)})) for line in STATE] for lib in (torch, rushlight)
    ]
    assert answers[0] == answers[1]


ELSEWHERE = """
def state(kind, **options):
    with torch.autocast(kind, **options) as block:
        here = (torch.ones(2, 2) @ torch.ones(2, 2)).dtype, torch.is_autocast_enabled("cpu")
        there = torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)
        return *here, *there, block.device, block.fast_dtype
"""


@pytest.mark.parametrize(
    "kind",
    ["cuda", "xpu", "mps", "hpu", "xla", "mtia", "ipu", "maia", "cuda:0", "cpu:0", "meta", "lazy", "foo"],
)
def test_autocast_for_a_device_that_is_not_here(kind):
    answers = []
    for library in (torch, rushlight):
        names = {"torch": library}
        exec(ELSEWHERE, names)
        answers.append([])
        for options in ({}, {"enabled": False}, {"dtype": library.bfloat16}, {"dtype": library.float64}):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                try:
                    said = str(names["state"](kind, **options))
                except RuntimeError as error:
                    said = str(error).splitlines()[0]
            after = [str(library.device(kind))] if kind != "foo" else []
            after += [str(library.is_autocast_enabled("xpu")), *(str(w.message) for w in told)]
            answers[-1].append([said, *after])
    assert answers[0] == answers[1]
