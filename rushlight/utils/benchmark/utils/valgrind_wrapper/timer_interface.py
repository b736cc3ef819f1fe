"""Counts of instructions: what Callgrind counted while a statement ran. Start at ``collect_callgrind``.

The statement runs in another process, under Valgrind, which counts only between the two calls of
``_C._valgrind_toggle``; the numbers are exact and hardly differ from one run to the next.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import rushlight
from rushlight.utils.benchmark.utils import common

__all__ = ["CallgrindStats", "CopyIfCallgrind", "FunctionCount", "FunctionCounts"]

_ROWS = 9  # at each end of a long table
_TEMPLATE = """\
import sys
sys.path[:] = {path!r}
{prepare}
import rushlight as torch, pickle
from rushlight._C import _valgrind_toggle, _valgrind_toggle_and_dump_stats
space = {{"torch": torch, "__name__": "__main__"}}
{globals}
torch.set_num_threads({threads})
exec({setup!r}, space)
def loop(statement):
    made = dict(space)
    exec(f"def loop(_it, _toggle, _dump):\\n  _toggle()\\n  for _ in _it:\\n{{statement}}\\n  _dump()", made)
    space.update({{k: v for k, v in made.items() if k != "loop"}})
    return made["loop"]
def nothing(): pass
measured, baseline = loop({stmt!r}), loop("    pass")
measured(range({warmup}), nothing, nothing)
baseline(range({warmup}), nothing, nothing)
for each in [measured] * {repeats} + [baseline] * {baseline}:
    each(range({number}), _valgrind_toggle, _valgrind_toggle_and_dump_stats)
"""


class FunctionCount(NamedTuple):
    """How many instructions ran in a function."""

    count: int  # type: ignore[assignment]
    function: str


@dataclasses.dataclass(repr=False, eq=False, frozen=True)
class FunctionCounts:
    """Counts by function; they can be added, subtracted, filtered and renamed.

    >>> from rushlight.utils.benchmark import FunctionCount, FunctionCounts
    >>> counts = FunctionCounts((FunctionCount(5, "a.c:f"), FunctionCount(2, "b.c:g")), inclusive=False)
    >>> counts.transform(lambda name: name.partition(":")[0]).sum()
    7
    """

    _data: tuple[FunctionCount, ...]
    inclusive: bool
    truncate_rows: bool = True
    _linewidth: int | None = None

    def __iter__(self) -> Iterator[FunctionCount]:
        yield from self._data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, item: Any) -> Any:
        data = self._data[item]
        if isinstance(data, FunctionCount):
            return data
        return dataclasses.replace(self, _data=data, truncate_rows=False)

    def __repr__(self) -> str:
        width = max((len(str(count)) + (count < 0) for count, _ in self), default=0)
        most = max((self._linewidth or common.LINE_WIDTH) - width - 4, 40)
        lines = []
        for count, function in self:
            if len(function) > most:
                left = (most - 5) // 2
                function = f"{function[:left]} ... {function[left + 5 - most :]}"
            lines.append(f"  {count:>{width}}  {function}")
        if self.truncate_rows and len(lines) > 2 * _ROWS:
            lines[_ROWS:-_ROWS] = ["...".rjust(width + 2)]
        if not self.inclusive:
            lines += ["", f"Total: {self.sum()}"]
        return "\n".join([object.__repr__(self).replace("rushlight.", "torch."), *lines])

    def __add__(self, other: FunctionCounts) -> FunctionCounts:
        return self._merge(other, lambda count: count)

    def __sub__(self, other: FunctionCounts) -> FunctionCounts:
        return self._merge(other, lambda count: -count)

    def __mul__(self, other: float) -> FunctionCounts:
        return self._from_dict({function: int(count * other) for count, function in self})

    def transform(self, map_fn: Callable[[str], str]) -> FunctionCounts:
        """With other names for the functions; functions of one name count as one."""
        counts: dict[str, int] = collections.defaultdict(int)
        for count, function in self:
            counts[map_fn(function)] += count
        return self._from_dict(counts)

    def filter(self, filter_fn: Callable[[str], bool]) -> FunctionCounts:
        """Only functions whose names are accepted."""
        return dataclasses.replace(self, _data=tuple(each for each in self if filter_fn(each.function)))

    def sum(self) -> int:
        """All instructions."""
        return sum(count for count, _ in self)

    def denoise(self) -> FunctionCounts:
        """Without the look-up in dictionaries, whose cost depends on where strings lie in memory."""
        return self.filter(lambda function: "dictobject.c:lookdict_unicode" not in function)

    def _merge(self, other: FunctionCounts, signed: Callable[[int], int]) -> FunctionCounts:
        if self.inclusive != other.inclusive:
            raise AssertionError("Cannot merge inclusive and exclusive counts.")
        counts: dict[str, int] = collections.defaultdict(int)
        for count, function in self:
            counts[function] += count
        for count, function in other:
            counts[function] += signed(count)
        return self._from_dict(counts)

    def _from_dict(self, counts: dict[str, int]) -> FunctionCounts:
        found = (FunctionCount(count, function) for function, count in counts.items() if count)
        return dataclasses.replace(self, _data=tuple(sorted(found, reverse=True)))


@dataclasses.dataclass(repr=False, eq=False, frozen=True)
class CallgrindStats:
    """What Callgrind counted: for a statement, and for a loop that does nothing."""

    task_spec: common.TaskSpec
    number_per_run: int
    built_with_debug_symbols: bool
    baseline_inclusive_stats: FunctionCounts
    baseline_exclusive_stats: FunctionCounts
    stmt_inclusive_stats: FunctionCounts
    stmt_exclusive_stats: FunctionCounts
    stmt_callgrind_out: str | None

    def __repr__(self) -> str:
        base = self.baseline_exclusive_stats
        threads = self.task_spec.num_threads
        lines = [
            object.__repr__(self).replace("rushlight.", "torch."),
            self.task_spec.summarize(),
            f"{'':>27}All{'':>10}Noisy symbols removed",
            f"    Instructions: {self.counts():>12}{'':>15}{self.counts(denoise=True):>12}",
            f"    Baseline:     {base.sum():>12}{'':>15}{base.denoise().sum():>12}",
            f"{self.number_per_run} runs per measurement, {threads} thread{'s' if threads > 1 else ''}",
        ]
        if not self.built_with_debug_symbols:
            lines += [
                "Warning: Rushlight was not built with debug symbols.",
                "         Source information may be limited.",
            ]
        return "\n".join(lines)

    def stats(self, inclusive: bool = False) -> FunctionCounts:
        """The statement's counts: of the functions alone, or with what they call."""
        return self.stmt_inclusive_stats if inclusive else self.stmt_exclusive_stats

    def counts(self, *, denoise: bool = False) -> int:
        """The number of instructions."""
        return (self.stats().denoise() if denoise else self.stats()).sum()

    def delta(self, other: CallgrindStats, inclusive: bool = False) -> FunctionCounts:
        """By how much the counts of another measurement are exceeded."""
        return self.stats(inclusive) - other.stats(inclusive)

    def as_standardized(self) -> CallgrindStats:
        """With paths that do not depend on where things were built and installed."""

        def short(name: str) -> str:
            name = re.sub(r"^.*build/aten/", "build/aten/", name)
            name = re.sub(r"^.*(Python/|Objects/)", r"\1", name)
            return re.sub(r"\s\[.+\]$", "", name)

        return dataclasses.replace(
            self,
            baseline_inclusive_stats=self.baseline_inclusive_stats.transform(short),
            baseline_exclusive_stats=self.baseline_exclusive_stats.transform(short),
            stmt_inclusive_stats=self.stmt_inclusive_stats.transform(short),
            stmt_exclusive_stats=self.stmt_exclusive_stats.transform(short),
        )


class Serialization(enum.Enum):
    """How a value comes into the other process."""

    PICKLE = 0
    TORCH = 1
    TORCH_JIT = 2


_ALLOWED: dict[Serialization, tuple[type, ...]] = {
    Serialization.PICKLE: (str, bytes, bool, int, float, complex),
    Serialization.TORCH: (rushlight.nn.Module,),
}


class CopyIfCallgrind:
    """A value of Timer's globals that may be copied into the process that counts; `setup` runs there first.

    >>> rushlight.utils.benchmark.CopyIfCallgrind(3).value
    3
    """

    def __init__(self, value: Any, *, setup: str | None = None) -> None:
        fitting = [how for how, kinds in _ALLOWED.items() if isinstance(value, kinds)]
        if not fitting:
            kinds = "\n".join(f"  {kinds}" for kinds in _ALLOWED.values())
            raise ValueError(
                f"Unsupported type: {type(value)}\n`collect_callgrind` restricts globals to the following "
                f"types:\n{textwrap.dedent(kinds)}"
            )
        self._value, self._setup, self._serialization = value, setup, fitting[0]

    @property
    def value(self) -> Any:
        """The value."""
        return self._value

    @property
    def setup(self) -> str | None:
        """What runs before the value is read."""
        return self._setup

    @property
    def serialization(self) -> Serialization:
        """How the value is written."""
        return self._serialization

    @staticmethod
    def unwrap_all(globals: dict[str, Any]) -> dict[str, Any]:
        """The values themselves."""
        return {
            name: value.value if isinstance(value, CopyIfCallgrind) else value
            for name, value in globals.items()
        }


def _copied(globals: dict[str, Any], directory: str) -> str:
    """Code that makes `globals` in the other process."""
    lines = []
    for name, wrapped in globals.items():
        if wrapped.setup:
            lines.append(f"exec({textwrap.dedent(wrapped.setup)!r}, space)")
        if wrapped.serialization is Serialization.PICKLE:
            lines.append(f"space[{name!r}] = pickle.loads({pickle.dumps(wrapped.value)!r})")
            continue
        file = os.path.join(directory, f"{name}.pt")
        rushlight.save(wrapped.value, file)
        lines.append(f"space[{name!r}] = torch.load({file!r}, weights_only=False)")
    return "\n".join(lines)


def collect_callgrind(
    task_spec: common.TaskSpec,
    globals: dict[str, Any],
    *,
    number: int,
    repeats: int,
    collect_baseline: bool,
    retain_out_file: bool = False,
) -> tuple[CallgrindStats, ...]:
    """Runs the statement `number` times under Callgrind, and that `repeats` times."""
    if not rushlight._C._valgrind_supported_platform():
        raise OSError("Valgrind is not supported on this platform.")
    if shutil.which("valgrind") is None:
        raise OSError("Missing: valgrind")
    if not all(isinstance(value, CopyIfCallgrind) for value in globals.values()):
        raise ValueError(
            "`collect_callgrind` requires that globals be wrapped in `CopyIfCallgrind` so that "
            "serialization is explicit."
        )
    home = os.path.dirname(os.path.dirname(rushlight.__file__))
    as_torch = getattr(sys.modules.get("torch"), "__file__", None) == rushlight.__file__
    with tempfile.TemporaryDirectory(prefix="callgrind") as directory:
        script, out = os.path.join(directory, "statement.py"), os.path.join(directory, "out")
        with open(script, "w") as file:
            file.write(
                _TEMPLATE.format(
                    path=[os.path.abspath(each) for each in (home, *sys.path)],
                    prepare="import rushlight.__main__ as m; m.prepare()" if as_torch else "",
                    globals=_copied(globals, directory),
                    threads=task_spec.num_threads,
                    setup=task_spec.setup,
                    stmt=textwrap.indent(task_spec.stmt, "    "),
                    warmup=min(number, 10),
                    repeats=repeats,
                    baseline=int(collect_baseline),
                    number=number,
                )
            )
        command = [
            "valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--collect-atstart=no",
            "--instr-atstart=no", sys.executable, "-I", script,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(f"Failed to collect callgrind profile:\n{done.stdout}{done.stderr}")
        files = [f"{out}.{n + 1}" for n in range(repeats + collect_baseline)]
        profiles = [_read_profile(file) for file in files]
        texts: list[str | None] = [None] * repeats
        if retain_out_file:
            with contextlib.ExitStack() as stack:
                texts = [stack.enter_context(open(file)).read() for file in files[:repeats]]
    nothing = (FunctionCounts((), True), FunctionCounts((), False))
    baseline = profiles[repeats] if collect_baseline else nothing
    return tuple(
        CallgrindStats(task_spec, number, _names_sources(profile[1]), *baseline, *profile, text)
        for profile, text in zip(profiles[:repeats], texts, strict=True)
    )


def _names_sources(counts: FunctionCounts) -> bool:
    """Whether the package's own functions are found in source files."""
    own = [function for _, function in counts if "/rushlight/_C." in function]
    return any(not function.startswith("???:") for function in own)


def _read_profile(path: str) -> tuple[FunctionCounts, FunctionCounts]:
    """Inclusive and exclusive counts from a file of Callgrind's.

    A line ``key=(number) name`` names an object, file or function, and later ``key=(number)`` means the same;
    a line of figures ends in the cost of a place in the current function; the one after ``calls=`` is the
    cost of a called function with all that it calls.
    """
    names: dict[tuple[str, str], str] = {}
    now: dict[str, str] = {"ob": "???", "fl": "???", "fn": "???"}
    exclusive: dict[str, int] = collections.defaultdict(int)
    inclusive: dict[str, int] = collections.defaultdict(int)
    place, called = "", False
    with open(path, errors="replace") as file:
        for line in file:
            if match := re.match(r"(c?)(ob|fl|fi|fe|fn)=\((\d+)\)(?: (.*))?$", line):
                callee, key, number, name = match.groups()
                kind = key if key in ("ob", "fn") else "fl"
                if name is not None:
                    names[kind, number] = name
                if callee:
                    continue
                now[kind] = names[kind, number]
                if key in ("ob", "fl"):
                    now["file"] = now["fl"]
                place = f"{now['fl' if key != 'fn' else 'file']}:{now['fn']} [{now['ob']}]"
            elif line.startswith("calls="):
                called = True
            elif place and line[:1] in "0123456789+-*":
                figures = line.split()
                cost = int(figures[-1]) if len(figures) > 1 else 0
                inclusive[place] += cost
                if not called:
                    exclusive[place] += cost
                called = False
    empty = FunctionCounts((), True), FunctionCounts((), False)
    return empty[0]._from_dict(inclusive), empty[1]._from_dict(exclusive)
