"""Images of bytes are interpolated to the same bytes as in torch, and an antialiased image that keeps a size
keeps it as it is."""

import random

import pytest

import rushlight

torch = pytest.importorskip("torch")

WAYS = [("bilinear", False), ("bicubic", False), ("bilinear", True), ("bicubic", True), ("lanczos", True)]


def same(image, **wanted):
    theirs = torch.nn.functional.interpolate(torch.tensor(image, dtype=torch.uint8), **wanted)
    ours = rushlight.nn.functional.interpolate(rushlight.tensor(image, dtype=rushlight.uint8), **wanted)
    assert ours.dtype == rushlight.uint8
    assert ours.tolist() == theirs.tolist(), wanted


@pytest.mark.parametrize(
    "mode, antialias, corners", [(*way, False) for way in WAYS] + [(*way, True) for way in WAYS[:2]]
)
def test_bytes(mode, antialias, corners):
    draw = random.Random(f"{mode} {antialias} {corners}")
    for _ in range(12):
        channels, height, width = draw.choice((1, 3, 5)), draw.randrange(1, 20), draw.randrange(1, 20)
        image = [
            [[[draw.randrange(256) for _ in range(width)] for _ in range(height)]] for _ in range(channels)
        ]
        size = draw.randrange(1, 30), draw.randrange(2, 30)
        given = {"mode": mode, "antialias": antialias}
        if mode != "lanczos":
            given["align_corners"] = corners
        same(image, size=size, **given)
        same(image, size=(height, size[1]), **given)
        if not corners and width > 2:
            same(image, scale_factor=(draw.choice((0.5, 1.02, 2.3)) if height > 1 else 1.5, 1.02), **given)


@pytest.mark.parametrize("mode, antialias", WAYS)
@pytest.mark.parametrize("size", [(40, 33), (121, 150), (70, 17), (31, 96)])
def test_large_images_of_bytes(mode, antialias, size):
    """Rows are taken 32 at a time, bytes 16."""
    image = torch.randint(0, 256, (2, 3, 70, 96), generator=torch.Generator().manual_seed(0))
    same(image.tolist(), size=size, mode=mode, antialias=antialias)


@pytest.mark.parametrize("mode", ("bilinear", "bicubic", "lanczos"))
@pytest.mark.parametrize("factors", ((1.02, 1.02), (1.02, 0.5), (0.5, 1.02)))
def test_a_size_that_stays_is_not_resampled(mode, factors):
    results = []
    for library in (torch, rushlight):
        x = library.arange(48.0, dtype=library.float64).sin().reshape(1, 1, 6, 8)
        results.append(library.nn.functional.interpolate(x, scale_factor=factors, mode=mode, antialias=True))
    assert torch.allclose(results[0], torch.tensor(results[1].tolist(), dtype=torch.float64), atol=1e-12)


def test_the_gradient_of_a_size_that_stays_is_that_of_the_result():
    x = rushlight.rand(1, 1, 5, 7, dtype=rushlight.float64, requires_grad=True)

    def shrunk(x):
        return rushlight.nn.functional.interpolate(
            x, scale_factor=(1.02, 0.5), mode="bicubic", antialias=True
        )

    assert rushlight.autograd.gradcheck(shrunk, (x,))
    assert rushlight.autograd.gradgradcheck(shrunk, (x,))
