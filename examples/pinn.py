"""A physics-informed fit: a network learns a damped oscillation from its equation u'' + d u' + k u = 0.

No solution is shown to it, only the equation, through second derivatives, and the start u(0) = 1, u'(0) = 0.
"""

import math

from picture import save_curves
from terminal import progress

import rushlight as torch

DAMPING, STIFFNESS = 0.6, 9.0


def exact(t: float) -> float:
    frequency = math.sqrt(STIFFNESS - DAMPING**2 / 4)
    wave = math.cos(frequency * t) + DAMPING / (2 * frequency) * math.sin(frequency * t)
    return math.exp(-DAMPING / 2 * t) * wave


def derivative(y, x):
    (result,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return result


def fit(steps: int, width: int = 32):
    """The losses and the trained network."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(1, width), torch.nn.Tanh(), torch.nn.Linear(width, width), torch.nn.Tanh(),
        torch.nn.Linear(width, 1),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in progress(range(steps), "PINN"):
        t = (3 * torch.rand(64, 1)).requires_grad_()
        u = model(t)
        velocity = derivative(u, t)
        residual = derivative(velocity, t) + DAMPING * velocity + STIFFNESS * u
        start = torch.zeros(1, 1, requires_grad=True)
        first = model(start)
        beginning = (first - 1).square().sum() + derivative(first, start).square().sum()
        loss = residual.square().mean() / STIFFNESS**2 + beginning
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model


def train(steps: int) -> list[float]:
    return fit(steps, width=16)[0]


if __name__ == "__main__":
    losses, model = fit(3000)
    times = torch.linspace(0, 3, 200).reshape(-1, 1)
    with torch.no_grad():
        learnt = model(times).flatten().tolist()
    true = [exact(t) for t in times.flatten().tolist()]
    print(f"greatest error: {max(abs(a - b) for a, b in zip(learnt, true)):.4f}")
    print(save_curves("pinn.svg", {"learnt": learnt, "exact": true}, "A damped oscillation"))
