"""What nodes saved, asked for by torch's names (`grad_fn._saved_self`), and the nodes behind them."""

import weakref

import pytest
import torch
import torch.nn.functional

import rushlight
import rushlight.nn.functional

# An expression of x [3, 4], y [3, 4], b [2, 3, 4], image [1, 2, 6, 6] and idx; the attributes to compare.
CASES = {
    "x + y": "alpha",
    "x * 2": "other",
    "x * y": "self other",
    "x / 2.5": "other",
    "x ** 2": "exponent self",
    "x.exp()": "result",
    "x.sum(1)": "dim keepdim self_sym_sizes",
    "x.mean()": "self_sym_numel self_sym_sizes",
    "x.amax(1)": "dim keepdim result",
    "x.max(1)[0]": "dim indices keepdim",
    "x.norm(p=3, dim=1)": "dim ord",
    "x.clamp(0.1, 0.5)": "min max",
    "x.cumsum(0)": "dim",
    "x.softmax(1)": "dim result",
    "x.transpose(0, 1)": "dim0 dim1",
    "b.permute(2, 0, 1)": "dims",
    "x[:, 1:3]": "dim start end step self_sym_sizes",
    "x[idx]": "indices self_sym_sizes",
    "x.gather(1, torch.zeros(3, 1, dtype=torch.int64))": "dim index sparse_grad",
    "x.masked_fill(x > 0.5, 0.0)": "mask",
    "torch.where(x > 0.5, x, y)": "condition",
    "torch.cat([x, y], -1)": "dim",
    "torch.stack([x, y], -1)": "dim",
    "x.unbind(-1)[0]": "dim",
    "x.unfold(0, 2, 1)": "dimension size step",
    "x.as_strided((2, 2), (1, 2), 1)": "size stride storage_offset",
    "torch.div(x, 2.0, rounding_mode='trunc')": "rounding_mode",
    "torch.lerp(x, y, 0.5)": "weight",
    "torch.lerp(x, y, y)": "weight end self",
    "torch.addcmul(x, y, y, value=2)": "tensor1 tensor2 value",
    "torch.polygamma(1, x)": "n self",
    "torch.linalg.qr(x)[0]": "mode",
    "F.elu(x)": "alpha scale input_scale",
    "F.gelu(x)": "approximate self",
    "F.gelu(x, approximate='tanh')": "approximate",
    "F.softplus(x)": "beta threshold",
    "F.leaky_relu(x, 0.2)": "negative_slope",
    "F.threshold(x, torch.tensor(0.5), 2.0)": "threshold",
    "F.mse_loss(x, y)": "reduction self target",
    "F.embedding(idx, x)": "indices padding_idx scale_grad_by_freq sparse",
    "F.layer_norm(x, (4,))": "normalized_shape result1 result2",
    "F.avg_pool2d(image, 2)": "kernel_size stride padding count_include_pad divisor_override",
    "F.max_pool2d(image, 2)": "kernel_size stride padding dilation ceil_mode",
    "F.interpolate(image, scale_factor=2)": "output_size scales_h scales_w",
    "F.interpolate(image, size=(3, 3), mode='bilinear')": "output_size align_corners scales_h",
    "F.unfold(image, 2)": "kernel_size stride padding dilation",
    "torch.cdist(x, y)": "p x1 x2 result",
    "torch.cummax(x, 0)[0]": "self indices dim",
    "x.gather(1, torch.ones(3, 1, dtype=torch.int64))": "self index",
    "F.smooth_l1_loss(x, y)": "self target beta reduction",
    "F.binary_cross_entropy(x, y.detach())": "self target weight reduction",
    "F.huber_loss(x, y)": "self target delta reduction",
    "F.grid_sample(image, torch.zeros(1, 2, 2, 2), align_corners=False)": (
        "input grid interpolation_mode padding_mode align_corners"
    ),
    "F.pad(image, (1, 2, 0, 1), mode='reflect')": "self padding",
    "torch.transpose_copy(x, 0, 1)": "dim0 dim1",
    "torch.diagonal_copy(x, 1)": "offset dim1 dim2",
    "x.std()": "correction result",
    "torch.special.i1(x)": "self result",
    "torch.select_scatter(x, y[0], 0, 1)": "dim index",
    "torch.slice_scatter(x, y[:1], 0, 1, 2)": "dim start end step",
    "torch.diagonal_scatter(x, y[0, :3])": "offset dim1 dim2",
    "F.relu6(x)": "self min_val max_val",
    "x.roll(1)": "shifts dims",
    "x.roll((1, 2), (0, -1))": "shifts dims",
    "torch.cdist(x, y, 1)": "p",
    "F.huber_loss(x, y, delta=2)": "delta",
    "F.group_norm(image, 1, eps=1)": "eps",
    "F.conv2d(image, torch.ones(2, 2, 3, 3))": "input weight stride",
}


def shown(value):
    if hasattr(value, "detach"):
        return [list(value.shape), value.detach().double().reshape(-1).numpy().round(4).tolist()]
    if isinstance(value, tuple):
        return ["tuple", *map(shown, value)]
    return round(value, 6) if isinstance(value, float) else value


@pytest.mark.parametrize(
    "call", ["softplus(x)", "softplus(x, 2.0)", "elu_(x * 1)", "elu_(x * 1, 2)", "elu(x)"]
)
def test_numbers_are_of_the_type_they_were_given_in(call):
    found = []
    for lib in (rushlight, torch):
        node = eval(f"F.{call}", {"F": lib.nn.functional, "x": lib.ones(2, requires_grad=True)}).grad_fn
        found.append([repr(getattr(node, f"_saved_{name}", None)) for name in ("alpha", "beta", "threshold")])
    assert found[0] == found[1]


def run(lib, expression, names):
    def filled(*shape):
        count = 1
        for size in shape:
            count *= size
        return (lib.arange(float(count)).reshape(shape) / 7 % 1 + 0.1).requires_grad_()

    known = {"torch": lib, "F": lib.nn.functional, "x": filled(3, 4), "y": filled(3, 4), "b": filled(2, 3, 4),
             "image": filled(1, 2, 6, 6), "idx": lib.tensor([0, 2])}  # fmt: skip
    result = eval(expression, known)  # alive, while it is asked
    node = result.grad_fn
    behind = [type(next_node).__name__ for next_node, _ in node.next_functions]
    values = {name: shown(getattr(node, f"_saved_{name}")) for name in names.split()}
    return type(node).__name__, values, [name for name in behind if name != "NoneType"]


@pytest.mark.parametrize("expression", CASES)
def test_same(expression):
    assert run(rushlight, expression, CASES[expression]) == run(torch, expression, CASES[expression])


# Written in place on y = x * 1 [4]: torch saves a copy of what was there, with a history of its own.
IN_PLACE = {
    "F.hardtanh_(y, -0.1, 0.4)": "self min_val max_val",
    "F.hardtanh(y, -0.1, 0.4, inplace=True)": "self",
    "F.relu6(y, inplace=True)": "self max_val",
    "y.abs_().logit_()": "self eps",
    "y.logit_(0.1)": "self eps",
    "y.add_(3).mvlgamma_(2)": "self p",
    "y.clamp_(low, high)": "self min max",
    "y.clamp_(low)": "self min max",
    "y.clamp_max_(high)": "self max",
    "y.clamp_max_(0.4)": "self max",
    "y.clamp_(max=0.4)": "self min max",
    "y.clone().view(2, 2).clone().renorm_(2, 0, 0.5)": "self p dim maxnorm",
    "y.index_add_(0, at, low[:2] * 2)": "source index alpha",
    "y.index_add_(0, at, high[:2])": "source source_dim",
    "y.index_copy_(0, at, low[:2] * 2)": "source",
    "y.put_(at, low[:2] * 2)": "source",
    "y.put_(at, high[:2])": "source",
    "F.rrelu_(y, 0.1, 0.4, True)": "noise result lower upper",
    "F.rrelu(y, 0.1, 0.4, True)": "noise self",
    "F.celu_(y, 1.5)": "result alpha",
    "F.leaky_relu_(y, 0.1)": "result",
    "y.ldexp_(high)": "other result",
    "y.pow_(3)": "self exponent",
    "y.mul_(low)": "self other",
    "2 ** y": "self exponent result",
    "y.clamp(max=0.5)": "min max",
}


@pytest.mark.parametrize("expression", IN_PLACE)
def test_what_was_there_before_a_write(expression):
    found = []
    for lib in (rushlight, torch):
        lib.manual_seed(0)
        x, low = (lib.tensor([0.3, 0.8, -0.2, 0.5], requires_grad=True) for _ in range(2))
        known = {"lib": lib, "F": lib.nn.functional, "y": x * 1, "low": low, "at": lib.tensor([0, 2])}
        result = eval(expression, known, {"high": lib.full((4,), 0.4)})
        node = result.grad_fn
        seen = [node.name(), [type(behind).__name__ for behind, _ in node.next_functions]]
        for name in IN_PLACE[expression].split():
            value = getattr(node, f"_saved_{name}")
            tensor = isinstance(value, lib.Tensor)
            history = tensor and (value.grad_fn and value.grad_fn.name(), value is result, value._version)
            raw = getattr(node, f"_raw_saved_{name}").data if tensor else None
            seen.append((shown(value), history, tensor and (shown(raw), raw.requires_grad)))
        result.sum().backward()
        found.append([*seen, shown(x.grad), low.grad is not None and shown(low.grad)])
    assert found[0] == found[1]


@pytest.mark.parametrize("lib", [rushlight, torch], ids=["rushlight", "torch"])
def test_what_was_not_saved_is_none_after_backward_too(lib):
    y = lib.ones(2, requires_grad=True) * lib.ones(2)
    node = y.grad_fn
    y.sum().backward()
    assert node._saved_self is None
    with pytest.raises(RuntimeError, match="already been freed"):
        node._saved_other


@pytest.mark.parametrize("lib", [rushlight, torch], ids=["rushlight", "torch"])
def test_inputs_without_derivative_are_not_among_the_next_functions(lib):
    x, index = lib.ones(3, 4, requires_grad=True), lib.zeros(1, 4, dtype=lib.int64)
    for y in (x.gather(0, index), x[index], x.index_select(0, index[0]), lib.where(x > 0, x, x * 2)):
        assert all(node is not None for node, _ in y.grad_fn.next_functions)


@pytest.mark.parametrize("lib", [rushlight, torch], ids=["rushlight", "torch"])
def test_freed_values_cannot_be_asked_for(lib):
    x = lib.ones(2, 3, requires_grad=True)
    y = x[:, lib.tensor([0, 1])]
    assert y.grad_fn._saved_indices[0] is None
    y.sum().backward()
    for name in ("_saved_indices", "_raw_saved_indices"):
        with pytest.raises(RuntimeError, match="after they have already been freed"):
            getattr(y.grad_fn, name)


@pytest.mark.parametrize("lib", [rushlight, torch], ids=["rushlight", "torch"])
def test_a_leaf_comes_back_from_hooks_as_a_leaf(lib):
    x = lib.ones(2, requires_grad=True)
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = x * x
    saved = y.grad_fn._saved_self
    assert saved is not x and saved.is_leaf and saved.grad_fn is None and saved.requires_grad
    (saved * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("lib", [rushlight, torch], ids=["rushlight", "torch"])
def test_linear_shows_what_is_multiplied(lib):
    x, w, b = (lib.ones(n, requires_grad=True) for n in ((3, 4), (5, 4), (5,)))
    node = lib.nn.functional.linear(x, w, b).grad_fn
    assert (node._saved_alpha, node._saved_beta) == (1, 1)
    assert node._saved_mat1 is x and node._saved_mat2.shape == (4, 5)
    assert (node._saved_mat2_sym_sizes, node._saved_mat2_sym_strides) == ((4, 5), (1, 4))
    node = lib.nn.functional.linear(x, w).grad_fn
    assert node._saved_self is x and node._saved_mat2.shape == (4, 5)
    assert (node._saved_mat2_sym_sizes, node._saved_self_sym_sizes) == ((4, 5), (3, 4))


@pytest.mark.parametrize("lib", [rushlight, torch], ids=["rushlight", "torch"])
def test_what_a_composed_operation_shows_is_checked_and_freed_as_what_is_saved(lib):
    x, y = lib.rand(3, 4, requires_grad=True), lib.rand(5, 4, requires_grad=True)
    a = x * 2
    node = lib.cdist(a, y).grad_fn
    assert node._saved_x1 is a and node._saved_x2 is y
    assert [n is not None for n, _ in lib.cdist(x, y.detach()).grad_fn.next_functions] == [True, False]
    del a
    assert node._saved_x1.grad_fn.name() == "MulBackward0"  # what was shown may be gone, its value is not
    loss = lib.nn.functional.huber_loss(x, target := lib.rand(3, 4))
    target.add_(1)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        loss.grad_fn._saved_target
    loss = lib.cdist(x, y)
    loss.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        loss.grad_fn._saved_x1
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        loss.grad_fn._raw_saved_x1.unpack()
    assert loss.grad_fn._saved_p == 2.0


def test_a_handle_on_what_is_not_needed_refuses_hooks():
    x = rushlight.rand(3, 4, requires_grad=True)
    handle = rushlight.nn.functional.glu(x).grad_fn._raw_saved_self
    assert handle.unpack() is x and handle.data is x and handle.unpack_hook is None
    with pytest.raises(NotImplementedError, match="hooks on it would not run"):
        handle.register_hooks(lambda t: t, lambda t: t)
    unneeded = (x * rushlight.ones(4)).grad_fn._raw_saved_self
    with pytest.raises(RuntimeError, match="with value None is forbidden"):
        unneeded.register_hooks(lambda t: t, lambda t: t)


def test_what_is_shown_keeps_no_graph_alive():
    x = rushlight.rand(3, 4, requires_grad=True)
    target = rushlight.rand(3, 4)
    loss = rushlight.nn.functional.huber_loss(x, target)
    node, gone = loss.grad_fn, []
    weakref.finalize(node, gone.append, True)
    target += loss.detach()
    other = rushlight.rand(3, 4)
    again = rushlight.nn.functional.huber_loss(x, other)
    other += again  # refers to the node that shows it
    del loss, node, target, again, other
    assert gone
