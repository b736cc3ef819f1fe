"""Pictures without a plotting library: curves as SVG, grey images as PNG."""

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

COLOURS = ("#c2410c", "#1d4ed8", "#15803d", "#7e22ce")


def save_curves(path: str | Path, curves: dict[str, Sequence[float]], title: str, log: bool = False) -> Path:
    """Curves over equal steps, by name; `log` makes equal factors equal heights."""
    import math

    width, height, edge = 720, 420, 60
    shown = {
        name: [math.log10(max(v, 1e-12)) if log else v for v in values] for name, values in curves.items()
    }
    low = min(min(values) for values in shown.values())
    high = max(max(values) for values in shown.values())
    span = (high - low) or 1.0

    def place(i: int, count: int, value: float) -> str:
        x = edge + (width - 2 * edge) * i / max(count - 1, 1)
        return f"{x:.1f},{height - edge - (height - 2 * edge) * (value - low) / span:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{edge}" y="32" font-size="18">{title}</text>',
        f'<path d="M{edge},{edge}V{height - edge}H{width - edge}" fill="none" stroke="#444"/>',
    ]
    for value, y in ((high, edge), (low, height - edge)):
        text = f"{10**value if log else value:.3g}"
        parts.append(f'<text x="{edge - 6}" y="{y + 5}" font-size="12" text-anchor="end">{text}</text>')
    for number, (name, values) in enumerate(shown.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(place(i, len(values), value) for i, value in enumerate(values))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        y = 56 + 18 * number
        parts.append(
            f'<text x="{width - edge}" y="{y}" font-size="13" fill="{colour}" text-anchor="end">{name}</text>'
        )
    path = Path(path)
    path.write_text("\n".join([*parts, "</svg>\n"]), encoding="utf-8")
    return path


def save_grey(path: str | Path, rows: Sequence[Sequence[float]], scale: int = 1) -> Path:
    """An image of brightnesses between 0 and 1, each pixel `scale` pixels wide."""
    lines = []
    for row in rows:
        line = bytes(b for v in row for b in [round(255 * min(max(v, 0.0), 1.0))] * scale)
        lines.extend([b"\0" + line] * scale)
    size = struct.pack(">IIBBBBB", len(rows[0]) * scale, len(lines), 8, 0, 0, 0, 0)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    data = chunk(b"IHDR", size) + chunk(b"IDAT", zlib.compress(b"".join(lines), 9)) + chunk(b"IEND", b"")
    path = Path(path)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + data)
    return path


def grid(images: Sequence[Sequence[Sequence[float]]], columns: int) -> list[list[float]]:
    """Small images side by side, with a white line between them."""
    size = len(images[0])
    rows: list[list[float]] = []
    for start in range(0, len(images), columns):
        line = images[start : start + columns]
        rows.extend([value for image in line for value in [*image[y], 1.0]] for y in range(size))
        rows.append([1.0] * len(rows[-1]))
    width = max(len(row) for row in rows)
    return [row + [1.0] * (width - len(row)) for row in rows]
