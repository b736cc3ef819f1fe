"""What `__torch_dispatch__` is shown of derivatives: torch's operations, with its arguments, as often."""

import contextlib

import pytest
import torch as torch_itself
import torch.utils._python_dispatch

import rushlight
import rushlight.utils._python_dispatch

EXPRESSIONS = """
x.acos()|x.acosh()|x.asin()|x.asinh()|x.atanh()|x.tan()|x.erf()|x.erfc()|x.rsqrt()|x.i0()|x.ceil()|x.sign()
x ** 2|x ** 3.5|x ** y|x.pow(0)|2 ** x|torch.atan2(x, y)|torch.fmax(x, y)|torch.maximum(x, y)
torch.minimum(x, 2 * y)|torch.xlogy(x, y)|torch.copysign(x, y)|torch.fmod(x, y)|torch.remainder(x, y)
torch.logaddexp(x, y)|x.sinc()|torch.hypot(x, y)|torch.addcdiv(x, y, y + 1)|torch.addcmul(x, y, y, value=2)
torch.add(x, y, alpha=3)|x * y[0, 0]|torch.div(x, y, rounding_mode="floor")|torch.where(mask, x, y)
F.mish(x)|F.hardsigmoid(x)|x.logit()|torch.logaddexp2(x, y)|x.var()|x.var(1)|x.std(0, keepdim=True)|x.std()
torch.var_mean(x, 1)[0]|torch.std_mean(x, 1)|x.amax(1)|x.amin()|x.max()|x.max(1).values|x.median()
x.kthvalue(2).values|x.sort().values|x.topk(2).values|x.mode().values|x.cummax(0).values|x.norm()
x.norm(1, 1)|x.norm(3, 0)|x.norm(float("inf"), 1, True)|x.norm(0.5)|x.logsumexp(1)|x.nansum(0)|x.prod()
x.prod(1)|x.gather(1, at)|x.scatter(1, at, y)|x.scatter(1, at, 2.0)|x.index_select(0, row)
x.index_add(0, row, y[:2], alpha=2)|x.index_copy(0, row, y[:2])|x.index_fill(0, row, y[0, 0])|x.take(row)
x.masked_fill(mask, y[0, 0])|x.masked_select(mask)|x.masked_scatter(mask, y)
x.scatter_reduce(1, at, y, "amax")|x.scatter_reduce(1, at, y, "mean", include_self=False)
x.index_put((row,), y[:2])|torch.stack([x, y], -1)|x.unfold(1, 2, 1)|x.roll((1, 2), (0, 1))
x.unsqueeze(0).squeeze()|F.mse_loss(x, y)|F.mse_loss(x, y, reduction="sum")
F.layer_norm(x, (4,), y[0], y[1])|F.layer_norm(x, (4,))|F.group_norm(image, 2)
F.conv2d(image, kernel, padding=1)|F.conv2d(image, kernel, bias, stride=2)|F.conv2d(image.detach(), kernel)
F.conv_transpose2d(image, kernel.transpose(0, 1), output_padding=1, stride=2)
F.conv1d(image[0, :, :4], kernel[:, :, 0])|F.max_pool2d(image, 2)
F.max_pool2d(image, 3, 2, 1, ceil_mode=True)|F.max_pool1d(image[0], 2)|F.avg_pool2d(image, 2, padding=1)
F.avg_pool1d(image[0], 2)|F.adaptive_avg_pool2d(image, (2, 3))|F.adaptive_avg_pool2d(image, 1)
F.adaptive_avg_pool1d(image[0], 2)|F.adaptive_max_pool2d(image, 2)|F.adaptive_max_pool1d(image[0], 2)
F.pad(image, (1, 2, 0, 1), "reflect")|F.unfold(image, 2)|F.pad(image, (1, 2, 0, 1), "replicate")
F.interpolate(image, scale_factor=1.5)|F.interpolate(image, (3, 5), mode="bilinear")
F.interpolate(image, (3, 5), mode="bicubic", align_corners=True)
F.interpolate(image, (3, 5), mode="nearest-exact")|F.hardtanh(x)|F.relu6(x)|F.hardshrink(x)
F.softshrink(x, 0.2)|F.glu(x)|F.logsigmoid(x)|torch.clamp_min(x, y[0])|F.soft_margin_loss(x, y.detach())
F.smooth_l1_loss(x, y)|F.huber_loss(x, y, "sum", 0.1)|F.multi_margin_loss(x, at[:, 1])
F.multilabel_margin_loss(x, at)|F.binary_cross_entropy(x, y, reduction="none")|F.nll_loss(x, at[:, 1])
F.binary_cross_entropy_with_logits(x, y, y[0].detach())|torch.mvlgamma(x + 2, 2)|x.diag_embed()|x.ldexp(y)
x.polygamma(1)|x.expand(2, 3, 4)|x.double()|x.mean(-1)|x.split(2, -1)|torch.mv(x, y[0])|torch.rsub(x, y)
torch.fft.rfft(x).abs()|torch.fft.irfft(x + 0j)|torch.fft.fft(x, norm="ortho").abs()
""".strip().replace("\n", "|").split("|")  # fmt: skip


def shown(lib, expression):
    def text(value):
        if isinstance(value, lib.Tensor):
            return f"{value.dtype}{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(text, value))}]"
        return f"{value:.5g}" if isinstance(value, float) else str(value)

    class Log(lib.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            options = "".join(f" {name}={text(value)}" for name, value in (kwargs or {}).items())
            lines.append(f"{func}{text(args)}{options}".replace("rushlight", "torch"))
            return func(*args, **(kwargs or {}))

    def leaf(*sizes):
        count = 1
        for size in sizes:
            count *= size
        return (lib.arange(count).reshape(sizes) * 0.07 % 0.9 + 0.05).requires_grad_()

    sizes = {"x": (3, 4), "y": (3, 4), "image": (2, 4, 5, 5), "kernel": (2, 4, 3, 3), "bias": (2,)}
    names = {name: leaf(*size) for name, size in sizes.items()}
    names |= {"torch": lib, "F": lib.nn.functional, "row": lib.tensor([2, 0])}
    names["at"], names["mask"] = lib.tensor([[0, 1, 0, 3]] * 3), names["x"].detach() > 0.4
    lines = []
    with Log():
        result = eval(expression, names)
    lines.append("backward")
    results = [r for r in (result if isinstance(result, tuple) else [result]) if r.requires_grad]
    grads = [lib.ones_like(r) for r in results]
    leaves = [names[name] for name in sizes]
    with Log():
        found = lib.autograd.grad(results, leaves, grads, allow_unused=True)
    plain = lib.autograd.grad(eval(expression, names), leaves, grads, allow_unused=True)
    for one, other in zip(found, plain, strict=True):
        assert (one is None) == (other is None) or (one if other is None else other).abs().sum() == 0
        if one is not None and other is not None:
            lib.testing.assert_close(one, other, equal_nan=True)
    return lines


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_torchs_steps_are_shown(expression):
    assert shown(rushlight, expression) == shown(torch_itself, expression)


WRITTEN = """
(lambda z: (z[0].mul_(2), z)[1])(x * 1)
(lambda z: (z.t()[1].mul_(y[:, 0]), z.view(4, 3)[1:, :2].exp_(), z)[2])(x * 1)
(lambda z: z.view(4, 3)[1].mul_(y[0, :3]))(x * 1)
(lambda z: (z[:, 1:3].fill_(3), z)[1])(x * 1)
x[0].expand(2, 4)
"""


@pytest.mark.parametrize("expression", WRITTEN.strip().splitlines())
def test_torchs_steps_behind_written_views_are_shown(expression):
    assert shown(rushlight, expression) == shown(torch_itself, expression)


def test_numbers_and_sizes_are_shown_as_torch_shows_them():
    def seen(lib):
        lines = []

        class Log(lib.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                lines.append((str(func), [repr(value) for value in args if not lib.is_tensor(value)]))
                return func(*args, **(kwargs or {}))

        x = lib.ones(3, 4, requires_grad=True)
        with Log():
            (x**3).sum().backward()
            (x[0].sum() + x[:, 1:3].sum()).backward()
            (lib.nn.functional.pad(x, (1, 1)), lib.nn.functional.pad(x, (1, 1), value=2))
            y = x.detach()
            (
                y.normal_(),
                y.normal_(0, 1),
                y.uniform_(-1, 1),
                y.exponential_(2),
                lib.addcmul(y, y, y, value=1.0),
            )
            (y.add(y, alpha=1.0), lib.addmm(y, y, y.t() @ y, beta=1.0), lib.nn.functional.softplus(y, 1.0))
            (x.view(-1), x.view(2, -1), x.reshape(-1, 2), x.flatten(), x.ravel(), x.unflatten(1, (2, -1)))
        return lines

    assert seen(rushlight) == seen(torch_itself)


def test_who_is_asked_may_compute_by_himself():
    """A wrapper is shown mse_loss_backward, and so is the mode below another one."""

    class Outer(rushlight.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    names = []
    x = rushlight.arange(3.0).requires_grad_()
    with Outer():
        rushlight.nn.functional.mse_loss(x, rushlight.zeros(3)).backward()
    alone, names = names, []
    with Outer(), rushlight.utils._python_dispatch.BaseTorchDispatchMode():
        rushlight.nn.functional.mse_loss(x, rushlight.zeros(3)).backward()
    assert "aten.mse_loss_backward.default" in alone
    assert names[: len(alone) - 1] == alone[: len(alone) - 1]
    names.clear()
    with Outer():
        rushlight.ones(2).pow_(2)
    assert names[-1] == "aten.pow_.Scalar"


@pytest.mark.parametrize(
    "name",
    """x ** 3|F.smooth_l1_loss(x, y)|F.binary_cross_entropy(x, y)|F.logsigmoid(x)|x.var()
F.conv1d(x, y[None, :, :2]).tanh()|F.conv_transpose1d(x, y.unsqueeze(1)) ** 2|F.mse_loss(x, y)|F.glu(x)
F.soft_margin_loss(x, y.detach())|F.binary_cross_entropy_with_logits(x, y)|x.ldexp(y)
F.avg_pool1d(x, 2) ** 3|F.adaptive_avg_pool1d(x, 2) ** 3|F.pad(x, (1, 1), "reflect") ** 3""".replace(
        "\n", "|"
    ).split("|"),
)
def test_gradients_of_gradients_are_the_same(name):
    """Where gradients are recorded they are Rushlight's own."""
    found = []
    for mode in (contextlib.nullcontext, rushlight.utils._python_dispatch.BaseTorchDispatchMode):
        x, y = (rushlight.linspace(0.1, 0.8, 12, dtype=rushlight.float64).view(1, 3, 4) + d for d in (0, 0.1))
        x, y = x[0].requires_grad_(), y[0].requires_grad_()
        with mode():
            result = eval(name, {"x": x, "y": y, "F": rushlight.nn.functional}).sum()
            first = rushlight.autograd.grad(result, [x, y], create_graph=True, allow_unused=True)
            first = sum((g**2).sum() for g in first if g is not None)
            second = rushlight.autograd.grad(first, [x, y], allow_unused=True)
        found.append([0 * x if g is None else g for g in second])
    rushlight.testing.assert_close(*found)
