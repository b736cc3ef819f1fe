"""Linear and logistic regression: a line through noisy points, and two clouds told apart."""

from picture import save_curves
from terminal import progress

import rushlight as torch


def linear(steps: int = 200) -> tuple[list[float], float, float]:
    """The losses, and the slope and intercept found (3 and -1 were used to make the points)."""
    torch.manual_seed(0)
    x = torch.rand(100, 1) * 4 - 2
    y = 3 * x - 1 + 0.2 * torch.randn(100, 1)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in progress(range(steps), "linear  "):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model.weight.item(), model.bias.item()


def logistic(steps: int = 200) -> tuple[list[float], float]:
    """The losses, and the fraction of points told apart rightly."""
    torch.manual_seed(0)
    points = torch.randn(200, 2)
    labels = (torch.arange(200) % 2).float()
    points = points + labels[:, None] * 2.5
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in progress(range(steps), "logistic"):
        scores = model(points).squeeze(1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    right = ((model(points).squeeze(1) > 0) == (labels > 0.5)).float().mean().item()
    return losses, right


def train(steps: int) -> list[float]:
    """The losses of both, one after the other."""
    return linear(steps)[0] + logistic(steps)[0]


if __name__ == "__main__":
    fitted, slope, intercept = linear()
    told_apart, right = logistic()
    print(f"y = {slope:.3f} x + {intercept:.3f}; {right:.1%} of the points told apart rightly")
    print(save_curves("regression.svg", {"linear": fitted, "logistic": told_apart}, "Regression", log=True))
