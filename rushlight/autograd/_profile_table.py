"""The table of a profile, and times and sizes as text."""

from __future__ import annotations

from typing import Any


def _format_time(time_us: float) -> str:
    if time_us >= 1e6:
        return f"{time_us / 1e6:.3f}s"
    if time_us >= 1e3:
        return f"{time_us / 1e3:.3f}ms"
    return f"{time_us:.3f}us"


def _format_time_share(time_us: float, total_time_us: float) -> str:
    if not total_time_us:
        if time_us:
            raise AssertionError(f"Expected time_us == 0 but got {time_us}")
        return "NaN"
    return f"{time_us * 100 / total_time_us:.2f}%"


def _format_memory(nbytes: int) -> str:
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if abs(nbytes) >= unit:
            return f"{nbytes / unit:.2f} {name}"
    return f"{nbytes} B"


def _build_table(
    events: Any,
    sort_by: str | None = None,
    header: str | None = None,
    row_limit: int = 100,
    max_src_column_width: int = 75,
    max_name_column_width: int = 55,
    max_shapes_column_width: int = 80,
    with_flops: bool = False,
    profile_memory: bool = False,
    top_level_events_only: bool = False,
    time_unit: str | None = None,
) -> str:
    """A text table of events or of sums of events."""
    if not events:
        return ""
    if time_unit not in (None, "s", "ms", "us"):
        raise ValueError(f"invalid time_unit: {time_unit}, it should be one of s, ms, us")
    rows = list(events)
    if sort_by is not None:
        sort_by = sort_by.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
        rows.sort(key=lambda event: getattr(event, sort_by), reverse=True)
    total = sum(event.self_cpu_time_total for event in events)

    def time(microseconds):
        if time_unit is None:
            return _format_time(microseconds)
        return f"{microseconds / {'s': 1e6, 'ms': 1e3, 'us': 1.0}[time_unit]:.3f}{time_unit}"

    shapes = any(event.input_shapes for event in events)
    stacks = any(event.stack for event in events)
    titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
    if profile_memory:
        titles += ["CPU Mem", "Self CPU Mem"]
    titles.append("# of Calls")
    titles += ["Input Shapes"] * shapes + ["Source Location"] * stacks
    unit, unit_name = _flops_unit([event.flops or 0 for event in events])
    titles += [f"Total {unit_name}FLOPs"] * with_flops
    lines: list[list[str]] = []
    rest: list[list[str]] = []  # of the call stacks, below the line
    for event in rows:
        if len(lines) == row_limit:
            break
        if top_level_events_only and event.cpu_parent is not None:
            continue
        line = [
            _shortened(event.key, max_name_column_width),
            _format_time_share(event.self_cpu_time_total, total),
            time(event.self_cpu_time_total),
            _format_time_share(event.cpu_time_total, total) if not event.is_async else "0",
            time(event.cpu_time_total),
            time(event.cpu_time),
        ]
        if profile_memory:
            line += [_format_memory(event.cpu_memory_usage), _format_memory(event.self_cpu_memory_usage)]
        line.append(str(event.count))
        if shapes:
            line.append(str(event.input_shapes)[:max_shapes_column_width])
        if stacks:
            line.append(_shortened_front((event.stack or [""])[0], max_src_column_width))
        if with_flops:
            line.append(f"{event.flops / unit:.3f}" if event.flops else "--")
        lines.append(line)
        rest.append([_shortened_front(entry, max_src_column_width) for entry in (event.stack or [])[1:]])
    # Columns of text are as wide as what is in them; those of figures all alike.
    limits = {
        "Name": max_name_column_width,
        "Input Shapes": max_shapes_column_width,
        "Source Location": max_src_column_width,
    }
    words = {
        "Name": [event.key for event in events],
        "Input Shapes": [str(event.input_shapes) for event in events],
        "Source Location": [entry for event in events for entry in event.stack or []],
    }
    widths = []
    for title in titles:
        width = 12
        if title in words:
            width = max(map(len, words[title]), default=0) + 4
            width = width if limits[title] is None else min(width, limits[title])
        widths.append(width)

    def text(row):
        aligned = (
            cell.ljust(width) if title == "Source Location" else cell.rjust(width)
            for title, cell, width in zip(titles, row, widths, strict=True)
        )
        return "".join(cell + "  " for cell in aligned)

    def below(entry):
        return text([entry if title == "Source Location" else "" for title in titles])

    rule = text(["-" * width for width in widths])
    shown = [rule, text(titles), rule]
    for line, entries in zip(lines, rest, strict=True):
        shown += [text(line), *(below(entry) for entry in [*entries, ""] if stacks)]
    shown.append(rule)
    across = "=" * (len(rule) - 2)
    if top_level_events_only:
        shown = [across, "This report only display top-level ops statistics", *shown]
    if header is not None:
        shown = [across, header, *shown]
    return "\n".join([*shown, f"Self CPU time total: {time(total)}", ""])


def _flops_unit(flops: list[int]) -> tuple[float, str]:
    most = min((f for f in flops if f > 0), default=0)
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K")):
        if most >= unit:
            return unit, name
    return 1.0, ""


def _shortened_front(path: str, width: int | None) -> str:
    return path if width is None or len(path) <= width else "..." + path[3 - width :]


def _shortened(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else text[: width - 3] + "..."
