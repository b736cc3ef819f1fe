"""A convolutional network that reads digits, drawn at run time: shifted, slanted and noisy."""

from picture import grid, save_curves, save_grey
from terminal import progress

import rushlight as torch

# Each digit in a 5 x 3 grid, row by row.
SHAPES = [
    "111101101101111",
    "010110010010111",
    "111001111100111",
    "111001111001111",
    "101101111001001",
    "111100111001111",
    "111100111101111",
    "111001010010010",
    "111101111101111",
    "111101111001111",
]


def draw(count: int):
    """Images of 16 x 16 pixels and their digits."""
    labels = torch.randint(0, 10, (count,))
    glyphs = torch.tensor([[float(pixel) for pixel in shape] for shape in SHAPES]).reshape(10, 1, 5, 3)
    large = torch.nn.functional.interpolate(glyphs, size=(10, 6), mode="bilinear", align_corners=False)
    images = torch.zeros(count, 1, 16, 16)
    shifts = torch.randint(0, 6, (count, 2))
    for i in range(count):
        down, right = int(shifts[i, 0]), int(shifts[i, 1]) + 2
        images[i, :, down : down + 10, right : right + 6] = large[int(labels[i])]
    return (images + 0.25 * torch.randn(images.shape)).clamp(0, 1), labels


class Reader(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(8, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(),
            torch.nn.MaxPool2d(2), torch.nn.Flatten(),
        )  # fmt: skip
        self.head = torch.nn.Linear(16 * 4 * 4, 10)

    def forward(self, images):
        return self.head(self.features(images))


def fit(steps: int, batch: int = 64):
    """The losses and the trained model."""
    torch.manual_seed(0)
    model = Reader()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in progress(range(steps), "digits"):
        images, labels = draw(batch)
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model


def train(steps: int) -> list[float]:
    return fit(steps, batch=16)[0]


if __name__ == "__main__":
    losses, model = fit(300)
    model.eval()
    images, labels = draw(500)
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).float().mean().item()
    print(f"{right:.1%} of 500 new digits read rightly")
    print(save_curves("digits.svg", {"cross entropy": losses}, "Reading digits", log=True))
    print(save_grey("digits.png", grid([image[0].tolist() for image in images[:24]], 12), scale=3))
