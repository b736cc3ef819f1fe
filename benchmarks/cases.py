"""What is timed. A case builds a piece of work from a torch-like module; its target is a ratio of times."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Work = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    name: str
    build: Callable[[Any], Work]  # given torch or rushlight, the work to time
    target: float | None = None  # torch's time / Rushlight's, with one thread


CASES: list[Case] = []


def case(name: str, target: float | None = None):
    def register(build: Callable[[Any], Work]) -> Callable[[Any], Work]:
        CASES.append(Case(name, build, target))
        return build

    return register


@case("a * b, 4x4, recording", target=10)
def multiply(torch):
    torch.manual_seed(0)
    a = torch.randn(4, 4, requires_grad=True)
    b = torch.randn(4, 4, requires_grad=True)
    return lambda: a * b


@case("y = 2*x**2 + 3; y.backward()", target=20)
def polynomial(torch):
    x = torch.tensor(2.0, requires_grad=True)

    def work():
        y = 2 * x**2 + 3
        y.backward()

    return work


@case("chain of 100 multiplications, forward + backward", target=20)
def chain(torch):
    x = torch.tensor(1.0001, requires_grad=True)

    def work():
        y = x
        for _ in range(100):
            y = y * x
        y.backward()

    return work


@case("x[0] on a vector", target=4)
def select(torch):
    x = torch.arange(10.0)
    return lambda: x[0]


@case("torch.add(a, b, out=c), 4x4", target=5)
def add_to_given(torch):
    a, b, c = torch.randn(4, 4), torch.randn(4, 4), torch.empty(4, 4)
    return lambda: torch.add(a, b, out=c)


@case("torch.mm(a, b, out=c), 4x4", target=3)
def multiply_to_given(torch):
    a, b, c = torch.randn(4, 4), torch.randn(4, 4), torch.empty(4, 4)
    return lambda: torch.mm(a, b, out=c)


@case("torch.add(a, b, alpha=2), 4x4", target=5)
def add_scaled(torch):
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    return lambda: torch.add(a, b, alpha=2)


@case("network of document 000 (N=50), forward + backward", target=6)
def document_network(torch):
    torch.manual_seed(0)
    x = torch.randn(50, 10, requires_grad=True)
    w1 = torch.randn(10, 20, requires_grad=True)
    b1 = torch.randn(1, 20, requires_grad=True)
    w2 = torch.randn(20, 1, requires_grad=True)
    b2 = torch.randn(1, 1, requires_grad=True)
    target = torch.randn(50, 1)

    def work():
        hidden1 = torch.relu(x @ w1 + b1)
        output = hidden1 @ w2 + b2
        loss = torch.mean((output - target) ** 2)
        loss.backward()

    return work


def training_step(torch, make_optimizer):
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    loss_fn = nn.MSELoss()
    optimizer = make_optimizer(model.parameters())
    x, y = torch.randn(32, 10), torch.randn(32, 1)

    def work():
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return work


@case("autograd.grad with create_graph, then its norm's backward", target=10)
def gradient_penalty(torch):
    torch.manual_seed(0)
    x = torch.randn(8, 8, requires_grad=True)

    def work():
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        g.norm().backward()

    return work


@case("jacobian of 16 by 16, vectorize=True")
def jacobian(torch):
    x = torch.linspace(0, 1, 16)
    return lambda: torch.autograd.functional.jacobian(lambda x: x**2, x, vectorize=True)


@case("two linear layers under autocast")
def autocast(torch):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    x = torch.randn(5, 8)

    def work():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            net(x)

    return work


@case("32x10 -> 32 -> 32 -> 1 training step, SGD", target=6)
def sgd_step(torch):
    return training_step(torch, lambda parameters: torch.optim.SGD(parameters, lr=1e-3))


@case("32x10 -> 32 -> 32 -> 1 training step, Adam")
def adam_step(torch):
    return training_step(torch, lambda parameters: torch.optim.Adam(parameters, lr=1e-3))


def optimizer_step(torch, shape, count, name, **options):
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(shape)) for _ in range(count)]
    for parameter in parameters:
        parameter.grad = torch.randn(shape)
    return getattr(torch.optim, name)(parameters, lr=1e-3, fused=True, **options).step


@case("step of fused SGD with momentum, 200 parameters of 16x16")
def many_sgd(torch):
    return optimizer_step(torch, (16, 16), 200, "SGD", momentum=0.9)


@case("step of fused AdamW, 200 parameters of 16x16")
def many_adamw(torch):
    return optimizer_step(torch, (16, 16), 200, "AdamW")


@case("step of fused AdamW, 4 parameters of 1024x1024")
def large_adamw(torch):
    return optimizer_step(torch, (1024, 1024), 4, "AdamW")


@case("zeros, arange, randn and tensor, of 16 elements", target=5)
def factories(torch):
    def work():
        torch.zeros(4, 4)
        torch.arange(16)
        torch.randn(4, 4)
        torch.tensor([1.0, 2.0, 3.0])

    return work


@case("view, transpose, cat, where and sum(1), 4x4", target=4)
def everyday_calls(torch):
    x, y = torch.ones(4, 4), torch.zeros(4, 4)
    mask = x > y

    def work():
        x.view(16)
        x.transpose(0, 1)
        torch.cat([x, y])
        torch.where(mask, x, y)
        x.sum(1)

    return work


@case("softmax, clamp, max(dim), to(float64) and cross_entropy, 4x4", target=4)
def everyday_functions(torch):
    x, classes = torch.ones(4, 4), torch.tensor([0, 1, 2, 3])

    def work():
        x.softmax(1)
        x.clamp(0, 1)
        x.max(1)
        x.to(torch.float64)
        torch.nn.functional.cross_entropy(x, classes)

    return work


@case("(x.exp() * x.sin()).sum(), 4M, forward + backward", target=1.5)
def large_elementwise(torch):
    torch.manual_seed(0)
    x = torch.randn(4_000_000, requires_grad=True)

    def work():
        x.grad = None
        (x.exp() * x.sin()).sum().backward()

    return work


def sgemm(size):
    def build(torch):
        torch.manual_seed(0)
        a, b = torch.randn(size, size), torch.randn(size, size)
        return lambda: a @ b

    return build


for size in (256, 512, 1024, 2048):
    case(f"sgemm {size}", target=0.95)(sgemm(size))
