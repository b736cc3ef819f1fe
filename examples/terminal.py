"""Drawing in a terminal: colours, a progress bar, a chart. Plain text where there is no terminal."""

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence

INTERACTIVE = sys.stdout.isatty()
COLOUR = INTERACTIVE and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
UNICODE = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
WIDTH = min(shutil.get_terminal_size((100, 24)).columns, 110)

if not UNICODE:
    sys.stdout.reconfigure(errors="replace")

CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36}


def paint(text: str, *styles: str) -> str:
    if not COLOUR or not text:
        return text
    codes = ";".join(str(CODES[style]) for style in styles)
    return f"\x1b[{codes}m{text}\x1b[0m"


def heading(text: str) -> None:
    line = "━" if UNICODE else "-"
    print(f"\n{paint(text, 'bold', 'yellow')}\n{paint(line * len(text), 'yellow')}\n")


def block(text: str, *styles: str, bar: str = "│") -> None:
    """Prints lines behind a bar, so that code and output stand apart from the tour's own words."""
    edge = paint(bar if UNICODE else "|", "dim")
    for line in text.rstrip("\n").split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        for piece in textwrap.wrap(line, WIDTH - 4, subsequent_indent=indent) or [""]:
            print(f"  {edge} {paint(piece, *styles)}".rstrip())


def progress(items: Sequence, label: str) -> Iterator:
    """Yields the items; on a terminal a bar shows how far it is."""
    full, empty = ("█", "░") if UNICODE else ("#", ".")
    start = shown = time.perf_counter()
    for done, item in enumerate(items, 1):
        yield item
        now = time.perf_counter()
        if INTERACTIVE and (now - shown > 0.05 or done == len(items)):
            shown = now
            filled = round(40 * done / len(items))
            bar = paint(full * filled, "green") + paint(empty * (40 - filled), "dim")
            rate = done / (now - start)
            print(f"\r  {label} {bar} {done}/{len(items)}  {rate:,.0f} steps/s ", end="", flush=True)
    if INTERACTIVE:
        print("\r\x1b[K", end="")


def chart(series: Iterable[tuple[Sequence[float], str]], height: int = 12, width: int | None = None) -> str:
    """Curves over equal steps, in dots four times finer than the characters (or in stars without Unicode).

    Each series is a list of heights and a colour; the axis at the left shows the largest and smallest height.
    """
    curves = [(list(values), colour) for values, colour in series]
    top = max(max(values) for values, _ in curves)
    bottom = min(min(values) for values, _ in curves)
    span = (top - bottom) or 1.0
    width = width or WIDTH - 16
    fine_x, fine_y = (2, 4) if UNICODE else (1, 1)
    dots = [[0] * width for _ in range(height)]
    colours: list[list[str]] = [["dim"] * width for _ in range(height)]
    for values, colour in curves:
        previous = None
        for x in range(width * fine_x):
            value = values[min(len(values) - 1, x * len(values) // (width * fine_x))]
            y = round((top - value) / span * (height * fine_y - 1))
            # Joins neighbouring columns, so that a steep curve stays one line.
            low, high = sorted((y, y if previous is None else previous))
            for between in range(low + (low != y), high + (high == y)) if high > low else (y,):
                row, column = between // fine_y, x // fine_x
                dots[row][column] |= BRAILLE[between % fine_y][x % fine_x]
                colours[row][column] = colour
            previous = y
    lines = []
    for row in range(height):
        label = f"{top:10.4g}" if row == 0 else f"{bottom:10.4g}" if row == height - 1 else " " * 10
        line = "".join(paint(symbol(d), c) if d else " " for d, c in zip(dots[row], colours[row]))
        lines.append(f"{label} {paint('┤' if UNICODE else '|', 'dim')}{line.rstrip()}")
    return "\n".join(lines)


# The bit of each dot in a Braille character, by row and column.
BRAILLE = [(0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80)]


def symbol(dots: int) -> str:
    return chr(0x2800 + dots) if UNICODE else "*"
