"""Gradient accumulation: a large batch in small pieces, with the same result as all at once."""

from picture import save_curves
from terminal import progress

import rushlight as torch


def fit(steps: int, pieces: int):
    """The losses, with every batch of 64 cut into `pieces`."""
    torch.manual_seed(0)
    x = torch.randn(512, 10)
    y = torch.sin(x[:, :3].sum(1, keepdim=True))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=64, shuffle=True)
    model = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses, batches = [], iter(())
    for _ in progress(range(steps), f"{pieces} piece{'s' if pieces > 1 else ' '}"):
        batch = next(batches, None)
        if batch is None:
            batches = iter(loader)
            batch = next(batches)
        optimizer.zero_grad()
        total = 0.0
        for inputs, targets in zip(batch[0].chunk(pieces), batch[1].chunk(pieces)):
            # Gradients add up in .grad; each piece counts by its share of the batch.
            loss = torch.nn.functional.mse_loss(model(inputs), targets) / pieces
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses


def train(steps: int) -> list[float]:
    return fit(steps, 4)


if __name__ == "__main__":
    whole, cut = fit(300, 1), fit(300, 8)
    print(f"largest difference of the losses: {max(abs(a - b) for a, b in zip(whole, cut)):.1e}")
    print(save_curves("accumulation.svg", {"at once": whole, "in 8 pieces": cut}, "Accumulation", log=True))
