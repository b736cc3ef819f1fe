"""A custom autograd Function: rounding that lets gradients through, for weights of one bit."""

from picture import save_curves
from terminal import progress

import rushlight as torch


class Sign(torch.autograd.Function):
    """The sign of x; its gradient is passed straight through where |x| <= 1, for the true one is 0."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * (x.abs() <= 1)


class BinaryLinear(torch.nn.Linear):
    """A linear layer that computes with the signs of its weights and one scale."""

    def forward(self, x):
        scale = self.weight.abs().mean()
        return torch.nn.functional.linear(x, Sign.apply(self.weight) * scale, self.bias)


def fit(steps: int, layer):
    """The losses of a network whose middle layer is of this type, voting by majority."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 32), torch.nn.Tanh(), layer(32, 32), torch.nn.Tanh(),
                                torch.nn.Linear(32, 1))  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = []
    for _ in progress(range(steps), layer.__name__):
        bits = torch.randint(0, 2, (64, 5)).float()
        majority = (bits.sum(1, keepdim=True) > 2.5).float()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(bits), majority)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train(steps: int) -> list[float]:
    return fit(steps, BinaryLinear)


if __name__ == "__main__":
    full, binary = fit(600, torch.nn.Linear), fit(600, BinaryLinear)
    print(f"last losses: {full[-1]:.4f} with real weights, {binary[-1]:.4f} with signs")
    print(save_curves("custom_function.svg", {"real": full, "signs": binary}, "Weights of one bit", log=True))
