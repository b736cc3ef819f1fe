"""What `__torch_dispatch__` is shown, call by call, beside what torch shows."""

import pytest
import torch
import torch.utils._python_dispatch

import rushlight
import rushlight.utils._python_dispatch

pytestmark = pytest.mark.torch

CALLS = """
x + 1; x + x; 1 + x; x - 1; 1 - x; x * 2; x / 2; 2 / x; x ** 2; x ** x; 2 ** x; -x; x > 0; x == x; x % 2
x.clamp(0, 1); x.clamp(min=0); x.exp(); x.add(x, alpha=2); x.lerp(x, 0.5); x.addcdiv(x, x, value=2)
x.square()
x.where(x > 0, x); T.where(x > 0, 1.0, 2.0); x.isfinite(); T.nn.functional.gelu(x); T.nn.functional.elu(x)
x.sum(); x.sum(0); x.sum((0, 1)); x.sum(0, True); x.mean(); x.mean(0); x.prod(0); x.max(); x.max(0); x.amax(0)
x.argmax(0); x.argmax(); x.var(); x.std(0); x.cumsum(0); x.norm(); x.softmax(0); x.log_softmax(1); x.all()
x.all(0)
x.view(6); x.reshape(3, 2); x.t(); x.T; x.transpose(0, 1); x.permute(1, 0); x[0]; x[:, 1:]; x[None]; x[..., 0]
x.squeeze(); x.squeeze(0); x.expand(2, 2, 3); x.flatten(); x.narrow(0, 0, 1); x.unbind(); x.split(1)
x.chunk(2, 1)
x.diagonal(); x.detach(); x.clone(); x.mT; x.as_strided((2,), (1,)); x.unfold(0, 1, 1); x[x > 0]
x.repeat(2, 1)
T.cat([x, x]); T.stack([x, x]); x.flip(0); x.masked_fill(x > 0, 1.0); x.tril(); x.triu(1); x.sort(); x.topk(1)
x.double(); x.to(T.float64); x.float(); x.to(T.float64, copy=True); x.long(); x.to("cpu")
T.zeros_like(x); T.ones_like(x); T.empty_like(x); T.full_like(x, 2.0); x.new_zeros(2); x.new_full((1,), 3.0)
x.add_(1); x.mul_(2); x.zero_(); x.fill_(1.0); x.copy_(x); x.relu_(); x.clamp_(0); x.uniform_(); x.normal_()
x @ x.t(); x.mm(x.t()); x.mv(x[0]); x[0].dot(x[0]); T.nn.functional.linear(x, x); T.addmm(x, x @ x.t(), x)
T.addmm(x, x @ x.t(), x, beta=2); T.abs(x, out=x); x.sum().item(); x.gather(0, T.zeros(1, 3, dtype=T.long))
T.nn.functional.conv1d(x[None], x[None]); T.nn.functional.layer_norm(x, (3,))
x.index_select(0, T.tensor([1])); T.nn.functional.nll_loss(x, T.tensor([0, 2]))
"""
GRADIENTS = """
(x * x).sum(); x.exp().sum(); x.sigmoid().sum(); (x * 2).sum(); (x.relu() + x).sum(); x.view(6).sum()
x.sum(0).sum()
(x - 1).tanh().sum(); (-x).sum(); x.t().sum(); (x + x[0]).sum(); (x / x).sum(); (2 / x).sum()
x.clamp(min=3).sum(); T.nn.functional.elu(x).sum(); T.nn.functional.selu(x).sum()
T.nn.functional.leaky_relu(x).sum()
T.bmm(x[None], x.t()[None]).sum()
"""


def listed(text):
    return [each.strip() for each in text.replace("\n", ";").split(";") if each.strip()]


def wrapper(T):
    """A class of module T that wraps a tensor and writes down what it is asked."""
    log = []

    def shown(value):
        if isinstance(value, Logged):
            return f"x{list(value.shape)}"
        if isinstance(value, T.Tensor):
            return str(value.tolist())
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(shown, value))}]"
        return str(value).replace("rushlight", "torch")

    def unwrap(value):
        return value.elem if isinstance(value, Logged) else value

    def wrap(value):
        return Logged(value) if isinstance(value, T.Tensor) else value

    def each(function, value):
        if isinstance(value, (tuple, list)):
            return [each(function, v) for v in value]
        return function(value)

    class Logged(T.Tensor):
        @staticmethod
        def __new__(cls, elem, requires_grad=False):
            made = T.Tensor._make_wrapper_subclass(
                cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(),
                dtype=elem.dtype, requires_grad=requires_grad,
            )  # fmt: skip
            made.elem = elem
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            named = {k: unwrap(v) for k, v in (kwargs or {}).items()}
            result = func(*each(unwrap, args), **named)
            options = [f"{k}={shown(v)}" for k, v in (kwargs or {}).items()]
            log.append(f"{func}({', '.join([*map(shown, args), *options])}) -> {shown(each(wrap, result))}")
            return tuple(each(wrap, result)) if isinstance(result, tuple) else each(wrap, result)

    return Logged, log


def seen(T, expression, backward):
    Logged, log = wrapper(T)
    values = T.arange(1.0, 7.0).reshape(2, 3)
    result = eval(expression, {"T": T, "x": Logged(values, requires_grad=backward)})
    if backward:
        result.backward()
    return log


@pytest.mark.parametrize("expression", listed(CALLS))
def test_calls_are_shown_as_torch_shows_them(expression):
    assert seen(rushlight, expression, False) == seen(torch, expression, False)


@pytest.mark.parametrize("expression", listed(GRADIENTS))
def test_the_backward_is_shown_too(expression):
    assert seen(rushlight, expression, True) == seen(torch, expression, True)


@pytest.mark.parametrize("part", ["x.split([1, 2], 1)[1]", "x.chunk(2)[0]", "x.unbind(1)[2]",
                                  "T.unsafe_chunk(x, 2)[1]", "T.linalg.qr(x)[1].abs()"])  # fmt: skip
def test_a_plain_gradient_of_one_result_of_several(part):
    def gradient(T):
        Logged, _ = wrapper(T)
        x = Logged(T.tensor([[1.0, 2.0, 4.0], [3.0, 1.0, 5.0]]), requires_grad=True)
        y = eval(part, {"T": T, "x": x})
        (found,) = T.autograd.grad(y, x, T.ones(y.shape))
        found = getattr(found, "elem", found)
        return [round(value, 4) for value in found.flatten().tolist()]

    assert gradient(rushlight) == gradient(torch)


def seen_by_a_mode(lib, program):
    """(operation, whether grad mode is said to be on) of everything that a program does."""
    log = []

    class Log(lib.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            options = str(kwargs or {}).replace("rushlight", "torch")
            log.append((str(func), lib.is_grad_enabled(), options if "scalar_tensor" in str(func) else ""))
            return func(*args, **(kwargs or {}))

    x, weight = lib.ones(2, 3, requires_grad=True), lib.nn.Parameter(lib.ones(2))
    weight.grad = lib.ones(2)
    names = {"T": lib, "x": x, "written": x * 2, "chosen": x.where(x > 0, 0.5), "like": lib.ones(2, 3)}
    names["optimizer"] = lib.optim.SGD([weight], lr=0.1, foreach=False)
    with Log():
        exec(program, names)
    return [each for each in log if not each[0].startswith("profiler.")]


@pytest.mark.parametrize("program", """
(x * x).sum().backward(); T.zeros_like(x); T.tensor([1.0])
chosen.backward(like)
with T.no_grad(): T.ones(2) + T.zeros(2)
written[0].mul_(3); written.exp_()
optimizer.step()
T.ones(3) @ T.ones(3, 2); T.ones(1, 3).squeeze_(0).unsqueeze_(1).t_().transpose_(0, 1).squeeze_()
T.ones(2, 3).as_strided_((2, 2), (1, 1)).swapaxes_(0, 1)
written.t_().unsqueeze_(0).sum().backward()
""".strip().split("\n"))  # fmt: skip
def test_modes_see_the_same(program):
    assert seen_by_a_mode(rushlight, program) == seen_by_a_mode(torch, program)


def test_a_write_through_a_view_is_shown_by_names_torch_has():
    logs = [seen_by_a_mode(lib, "written[0].mul_(3); written.backward(like)") for lib in (rushlight, torch)]
    assert set(logs[0]) == set(logs[1])


@pytest.mark.parametrize("lib", [rushlight, torch], ids=["rushlight", "torch"])
def test_what_a_tensor_stands_for_is_turned_in_place(lib):
    class Wrapper(lib.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = lib.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            made = func(*(a.inner if isinstance(a, cls) else a for a in args), **(kwargs or {}))
            return args[0] if func._schema.name.endswith("_") else cls(made)

    for turn in ("squeeze_(0)", "squeeze_()", "unsqueeze_(0)", "t_()", "transpose_(0, 1)"):
        inner = lib.arange(3.0).reshape(1, 3)
        wrapper = Wrapper(inner.clone())
        result = eval(f"wrapper.{turn}", {"wrapper": wrapper})
        assert result is wrapper and wrapper._version == 1
        assert lib.equal(wrapper.inner, eval(f"inner.{turn}", {"inner": inner}))
    product = lib.ones(3) @ Wrapper(lib.ones(3, 2))
    assert product.inner.tolist() == [3, 3]


@pytest.mark.parametrize("lib", [rushlight, torch], ids=["rushlight", "torch"])
def test_operations_called_by_name_keep_the_class(lib):
    x = lib.ones(2, 2).as_subclass(type("Sub", (lib.Tensor,), {}))
    aten = lib.ops.aten
    made = (
        aten.alias(x),
        aten.alias.default(x),
        aten.slice(x, 0, 0, 1),
        aten.index(x, [lib.tensor([0])]),
        aten.sigmoid_backward(x, x),
        aten.threshold_backward(x, x, 0),
        aten.sin(x),
    )
    assert [type(t).__name__ for t in made] == ["Sub"] * 7


@pytest.mark.parametrize("lib", [rushlight, torch], ids=["rushlight", "torch"])
def test_views_of_wrappers_are_made_again_as_they_were(lib):
    class Wrapper(lib.Tensor):
        @staticmethod
        def __new__(cls, inner, requires_grad=False):
            return lib.Tensor._make_wrapper_subclass(
                cls, inner.shape, dtype=inner.dtype, requires_grad=requires_grad, strides=inner.stride()
            )

        def __init__(self, inner, requires_grad=False):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            plain = [one.inner if isinstance(one, cls) else one for one in args]
            result = func(*plain, **(kwargs or {}))
            return cls(result) if isinstance(result, lib.Tensor) else result

    leaf = Wrapper(lib.ones(2, 3), requires_grad=True)
    base = leaf.clone()
    view = base.view(3, 2)[0]
    view.mul_(2)
    assert view.grad_fn.name() == "SelectBackward0"
    assert view.grad_fn.next_functions[0][0].name() == "ViewBackward0"
    base.sum().backward()
    assert leaf.grad.inner.tolist() == [[2, 2, 1], [1, 1, 1]]
