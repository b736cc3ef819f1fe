"""An LSTM that continues a signal: two sines and a drift, with noise."""

import math

from picture import save_curves
from terminal import progress

import rushlight as torch


def signal(count: int):
    time = torch.arange(count).float()
    waves = torch.sin(time * 0.25) + 0.5 * torch.sin(time * 0.06 + 1.0)
    return waves + 0.002 * time + 0.05 * torch.randn(count)


class Forecaster(torch.nn.Module):
    def __init__(self, hidden: int):
        super().__init__()
        self.lstm = torch.nn.LSTM(1, hidden, batch_first=True)
        self.head = torch.nn.Linear(hidden, 1)

    def forward(self, values, state=None):
        outputs, state = self.lstm(values, state)
        # The change, not the value: so that a drift costs nothing.
        return values + self.head(outputs), state


def fit(steps: int, hidden: int = 32, length: int = 40, ahead: int = 20, batch: int = 16):
    """The losses, the model and the signal. The model sees `length` values and then lives on what it predicts
    itself for `ahead` more, as it will have to when it forecasts."""
    torch.manual_seed(0)
    data = signal(600)
    model = Forecaster(hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = []
    for _ in progress(range(steps), "LSTM"):
        starts = torch.randint(0, 500 - length - ahead, (batch,)).tolist()
        windows = torch.stack([data[s : s + length + ahead] for s in starts]).unsqueeze(-1)
        predicted, state = model(windows[:, :length])
        parts = [predicted]
        for _ in range(ahead - 1):
            value, state = model(parts[-1][:, -1:], state)
            parts.append(value)
        loss = torch.nn.functional.mse_loss(torch.cat(parts, dim=1), windows[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, model, data


def forecast(model, known, count: int) -> list[float]:
    """`count` values after the known ones, each one predicted from the one before."""
    with torch.no_grad():
        predicted, state = model(known.reshape(1, -1, 1))
        value, values = predicted[:, -1:], []
        for _ in range(count):
            values.append(value.item())
            value, state = model(value, state)
    return values


def train(steps: int) -> list[float]:
    return fit(steps, hidden=8, length=20, ahead=3, batch=4)[0]


if __name__ == "__main__":
    losses, model, data = fit(300)
    values = forecast(model, data[:500], 100)
    error, naive = (
        math.sqrt(sum((a - b) ** 2 for a, b in zip(guess, data[500:].tolist())) / 100)
        for guess in (values, [data[499].item()] * 100)
    )
    print(f"root mean square error of 100 values forecast: {error:.2f}; {naive:.2f} if nothing changed")
    print(save_curves("forecast.svg", {"signal": data[500:].tolist(), "forecast": values}, "Forecast"))
