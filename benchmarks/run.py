"""Compares Rushlight with torch 2.13: times, import, size and memory, as a table and as JSON.

    make bench                      everything, with one thread and with two
    make bench ARGS="--only sgemm"  some of it

A ratio is torch's figure divided by Rushlight's: above 1 means that Rushlight needs less. Targets are for one
thread.
"""

import argparse
import json
import platform
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import measure
from cases import CASES


@dataclass
class Row:
    name: str
    threads: int | None
    rushlight: float
    torch: float
    unit: str
    target: str | None = None
    met: bool | None = None

    @property
    def ratio(self) -> float:
        return self.torch / self.rushlight


def time_cases(threads: int, options) -> list[Row]:
    import torch

    import rushlight

    rows = []
    rushlight.set_num_threads(threads)
    torch.set_num_threads(threads)
    for case in CASES:
        if options.only not in case.name:
            continue
        show_progress(f"{case.name} ({threads} threads)")
        ours, theirs = measure.alternate(
            case.build(rushlight), case.build(torch), options.rounds, options.budget, threads
        )
        row = Row(case.name, threads, ours, theirs, "s")
        if threads == 1 and case.target is not None:
            row.target, row.met = f"≥ {case.target:g}x", row.ratio >= case.target
        rows.append(row)
    return rows


def figures(options) -> list[Row]:
    """What is not a time per call: import, memory, size."""
    rows = []
    if options.only in "import":
        show_progress("import")
        ours, theirs = measure.import_seconds(min(options.rounds, 10))
        met = ours <= theirs / 15 and ours <= 0.1
        rows.append(Row("import", None, ours, theirs, "s", "≥ 15x and ≤ 0.1 s", met))
    if options.only in "memory of a 1-element tensor":
        show_progress("memory")
        ours, theirs = measure.bytes_per_tensor()
        rows.append(Row("memory of a 1-element tensor", None, ours, theirs, "B", "≤ 250 B", ours <= 250))
    if options.only in "installed size":
        ours, theirs = (measure.installed_bytes(module) for module in ("rushlight", "torch"))
        rows.append(Row("installed size", None, ours, theirs, "B", "≤ 40 MB", ours <= 40e6))
    return rows


def quantity(value: float, unit: str) -> str:
    if unit == "s":
        scales = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (0.0, "ns")]
    else:
        scales = [(1e6, "MB"), (0.0, "B")]
    for least, name in scales:
        if value >= least:
            scale = least or (1e-9 if unit == "s" else 1.0)
            return f"{value / scale:.3g} {name}" if value / scale < 100 else f"{value / scale:.0f} {name}"
    raise AssertionError(value)


def table(rows: list[Row]) -> str:
    head = ["", "threads", "rushlight", "torch", "ratio", "target", ""]
    verdict = {None: "", True: "met", False: "NOT MET"}
    cells = [head] + [
        [
            row.name,
            "" if row.threads is None else str(row.threads),
            quantity(row.rushlight, row.unit),
            quantity(row.torch, row.unit),
            f"{row.ratio:.2f}x",
            row.target or "",
            verdict[row.met],
        ]
        for row in rows
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    lines = []
    for line in cells:
        first, *others = (
            cell.ljust(width) if column in (0, 6) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths))
        )
        lines.append("  ".join([first, *others]).rstrip())
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(lines)


def show_progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rounds", type=int, default=200, help="alternating rounds; the best counts (%(default)s)"
    )
    parser.add_argument("--budget", type=float, default=5.0, help="seconds for one case, about (%(default)s)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="thread counts (1 2)")
    parser.add_argument("--only", default="", help="only what has this text in its name")
    parser.add_argument(
        "--json", type=Path, default=Path("build/bench.json"), help="where to write (%(default)s)"
    )
    options = parser.parse_args()

    rows = [row for threads in options.threads for row in time_cases(threads, options)]
    rows += figures(options)
    show_progress("")
    print(table(rows))

    import torch

    import rushlight

    report = {
        "rushlight": rushlight.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "rounds": options.rounds,
        "rows": [{**asdict(row), "ratio": row.ratio} for row in rows],
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    print(f"\nwritten to {options.json}")


if __name__ == "__main__":
    main()
