"""A small GPT that learns this repository's README character by character, and then writes its own."""

from pathlib import Path

from picture import save_curves
from terminal import progress

import rushlight as torch

TEXT = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
ALPHABET = sorted(set(TEXT))
NUMBER = {character: i for i, character in enumerate(ALPHABET)}


class Block(torch.nn.Module):
    """Attention to earlier characters, then a network for each character on its own."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.before = torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.between = torch.nn.LayerNorm(width)
        self.feed = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
        )

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.before(x)).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        seen = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(self.between(x))


class GPT(torch.nn.Module):
    def __init__(self, context: int, width: int, heads: int, blocks: int):
        super().__init__()
        self.context = context
        self.characters = torch.nn.Embedding(len(ALPHABET), width)
        self.places = torch.nn.Embedding(context, width)
        self.blocks = torch.nn.Sequential(*[Block(width, heads) for _ in range(blocks)])
        self.norm = torch.nn.LayerNorm(width)
        self.head = torch.nn.Linear(width, len(ALPHABET))

    def forward(self, numbers):
        x = self.characters(numbers) + self.places(torch.arange(numbers.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def fit(steps: int, context: int = 64, width: int = 96, batch: int = 16):
    """The losses and the trained model."""
    torch.manual_seed(0)
    data = torch.tensor([NUMBER[character] for character in TEXT])
    model = GPT(context, width, heads=4, blocks=3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(steps, 1))
    losses = []
    for _ in progress(range(steps), "GPT"):
        starts = torch.randint(0, len(data) - context - 1, (batch,))
        windows = torch.stack([data[s : s + context + 1] for s in starts.tolist()])
        scores = model(windows[:, :-1])
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses, model


def write(model, start: str, count: int) -> str:
    """Goes on after `start` for `count` characters."""
    numbers = torch.tensor([[NUMBER[character] for character in start]])
    with torch.no_grad():
        for _ in range(count):
            scores = model(numbers[:, -model.context :])[:, -1]
            drawn = torch.multinomial(torch.softmax(scores / 0.7, -1), 1)
            numbers = torch.cat([numbers, drawn], 1)
    return "".join(ALPHABET[i] for i in numbers[0].tolist())


def train(steps: int) -> list[float]:
    return fit(steps, context=16, width=32, batch=4)[0]


if __name__ == "__main__":
    losses, model = fit(400)
    print(write(model, "Rushlight ", 300))
    print(save_curves("char_gpt.svg", {"cross entropy": losses}, "Learning to write"))
