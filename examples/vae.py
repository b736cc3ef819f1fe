"""A variational autoencoder of small drawings: crosses, rings and bars of random place and size."""

from picture import grid, save_curves, save_grey
from terminal import progress

import rushlight as torch

SIZE = 14


def draw(count: int):
    """Images of SIZE x SIZE pixels, flattened."""
    axis = torch.arange(SIZE).float()
    y, x = axis[:, None], axis[None, :]
    kinds = torch.randint(0, 3, (count,)).tolist()
    where = 4 + 6 * torch.rand(count, 3)
    images = []
    for kind, (a, b, c) in zip(kinds, where.tolist()):
        if kind == 0:
            shape = torch.minimum((x - a).abs(), (y - b).abs())
        elif kind == 1:
            shape = (((x - a) ** 2 + (y - b) ** 2).sqrt() - c / 3).abs()
        else:
            shape = (x - a + (y - b) * 0.5).abs()
        images.append(torch.exp(-(shape**2)).flatten())
    return torch.stack(images)


class VAE(torch.nn.Module):
    def __init__(self, hidden: int, latent: int):
        super().__init__()
        pixels = SIZE * SIZE
        self.encoder = torch.nn.Sequential(torch.nn.Linear(pixels, hidden), torch.nn.ReLU())
        self.mean = torch.nn.Linear(hidden, latent)
        self.log_variance = torch.nn.Linear(hidden, latent)
        self.decoder = torch.nn.Sequential(
            torch.nn.Linear(latent, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, pixels)
        )

    def forward(self, images):
        h = self.encoder(images)
        posterior = torch.distributions.Normal(self.mean(h), (0.5 * self.log_variance(h)).exp())
        return self.decoder(posterior.rsample()), posterior


def fit(steps: int, hidden: int = 128, latent: int = 8, batch: int = 64):
    """The losses (in nats per image) and the trained model."""
    torch.manual_seed(0)
    model = VAE(hidden, latent)
    prior = torch.distributions.Normal(0.0, 1.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    losses = []
    for _ in progress(range(steps), "VAE"):
        images = draw(batch)
        logits, posterior = model(images)
        missed = torch.nn.functional.binary_cross_entropy_with_logits(logits, images, reduction="sum")
        distance = torch.distributions.kl_divergence(posterior, prior).sum()
        loss = (missed + distance) / batch
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model


def train(steps: int) -> list[float]:
    return fit(steps, hidden=32, latent=4, batch=8)[0]


if __name__ == "__main__":
    losses, model = fit(800)
    with torch.no_grad():
        samples = torch.sigmoid(model.decoder(torch.randn(24, 8))).reshape(24, SIZE, SIZE)
    print(f"{losses[0]:.1f} nats per image before training, {losses[-1]:.1f} after")
    print(save_curves("vae.svg", {"negative bound": losses}, "Variational autoencoder"))
    print(save_grey("vae.png", grid(samples.tolist(), 12), scale=3))
