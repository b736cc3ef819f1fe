"""Checks that a text holds what it should, in order."""

from __future__ import annotations

import re
import sys
from typing import Any, NamedTuple


class _Check(NamedTuple):
    kind: str  # "", "NEXT", "SAME", "NOT", "DAG", "COUNT", "REGEX", "HIGHLIGHTED"
    text: str
    count: int = 0  # type: ignore[assignment]  # the name that tuple has for a method

    @property
    def label(self) -> str:
        ending = f"-COUNT-{self.count}" if self.kind == "COUNT" else f"-{self.kind}" if self.kind else ""
        return f"CHECK{ending}: {self.text}"


_LINE = re.compile(r"CHECK(-NEXT|-SAME|-NOT|-DAG|-COUNT-EXACTLY-(\d+)|-COUNT-(\d+)|-REGEX)?: ?(.*)")


class FileCheck:
    """What a text must hold: each check looks behind the match of the one before it.

    >>> from rushlight.testing import FileCheck
    >>> FileCheck().check("first").check_not("third").check_next("second").run("the first\\nthe second")
    """

    def __init__(self) -> None:
        self._checks: list[_Check] = []
        self._has_run = False

    def __repr__(self) -> str:
        return f"<torch.FileCheck object at {id(self):#x}>"

    def __del__(self) -> None:
        if not self._has_run:
            print("You have not run this instance of FileCheck!", file=sys.stdout)
            print("FileCheck checks:", *(f"\n\t{check.label}" for check in self._checks), sep="")

    def _add(self, kind: str, text: str, count: int = 0) -> FileCheck:
        self._checks.append(_Check(kind, text, count))
        return self

    def check(self, test_string: str) -> FileCheck:
        """The text comes later."""
        return self._add("", test_string)

    def check_not(self, test_string: str) -> FileCheck:
        """The text does not come before the next match."""
        return self._add("NOT", test_string)

    def check_same(self, test_string: str) -> FileCheck:
        """The text comes later in the same line."""
        return self._add("SAME", test_string)

    def check_next(self, test_string: str) -> FileCheck:
        """The text comes in the next line."""
        return self._add("NEXT", test_string)

    def check_count(self, test_string: str, count: int, exactly: bool = False) -> FileCheck:
        """The text comes so many times; exactly: and not once more before the next match."""
        if not count and not exactly:
            raise RuntimeError("Count == 0 && !exactly doesn't do anything")
        if count:
            self._add("COUNT", test_string, count)
        return self._add("NOT", test_string) if exactly else self

    def check_dag(self, test_string: str) -> FileCheck:
        """The text comes later; neighbouring checks of this kind match in any order."""
        return self._add("DAG", test_string)

    def check_regex(self, test_string: str) -> FileCheck:
        """Something that the expression matches comes later."""
        return self._add("REGEX", test_string)

    def check_source_highlighted(self, test_string: str) -> FileCheck:
        """The text is underlined with `~` over all its length."""
        return self._add("HIGHLIGHTED", test_string)

    def run(self, text: Any, test_file: Any = None) -> None:
        """Runs the checks on a text; of two, the first holds checks in lines like `# CHECK: text`."""
        self._has_run = True
        if not isinstance(text, str) or not isinstance(test_file, (str, type(None))):
            raise TypeError(
                "run(): incompatible function arguments. The following argument types are supported:\n"
                "    1. (self: torch._C.FileCheck, arg0: str) -> None"
            )
        if test_file is not None:
            self._read(text)
            text = test_file
        if not self._checks:
            raise RuntimeError("No checks have been added to this instance ofFilecheck! Check for bad input.")
        _run(self._checks, text)

    def _read(self, text: str) -> None:
        for line in text.splitlines():
            found = _LINE.search(line)
            if found is None:
                continue
            kind, exactly, count, wanted = found.groups()
            if exactly or count:
                self.check_count(wanted, int(exactly or count), exactly is not None)
            else:
                self._add((kind or "").lstrip("-"), wanted)


def _run(checks: list[_Check], text: str) -> None:
    position, unwanted = 0, []
    at = 0
    while at < len(checks):
        check = checks[at]
        at += 1
        if check.kind == "NOT":
            unwanted.append(check)
            continue
        start = position
        if check.kind == "DAG":
            group = [check]
            while at < len(checks) and checks[at].kind == "DAG":
                group.append(checks[at])
                at += 1
            spans = [_find(each, text, start) for each in group]
            first, position = min(a for a, _ in spans), max(b for _, b in spans)
        else:
            first, position = _match(check, text, start)
        for other in unwanted:
            _refuse(other, text, start, first)
        unwanted = []
    for other in unwanted:
        _refuse(other, text, position, len(text))


def _match(check: _Check, text: str, start: int) -> tuple[int, int]:
    """Where the match begins and where the next check starts."""
    if check.kind == "COUNT":
        first = end = -1
        for _ in range(check.count):
            found = _find(check, text, start)
            first = found[0] if first < 0 else first
            start = end = found[1]
        return first, end
    if check.kind == "REGEX":
        matched = re.compile(check.text).search(text, start)
        if matched is None:
            raise RuntimeError(
                f'Expected to find regex "{check.text}" but did not find it\nSearched string:\n'
                f"{text[start:]}\nFrom {check.label}\n"
            )
        return matched.span()
    if check.kind == "HIGHLIGHTED":
        return _highlighted(check, text, start)
    if check.kind == "SAME":
        found = _find(check, text, start)
        _within_lines(check, text, start, found[0])
        return found
    if check.kind == "NEXT":
        line_end = text.find("\n", start)
        found = _find(check, text, len(text) if line_end < 0 else line_end + 1)
        _within_lines(check, text, line_end + 1, found[0])
        return found
    return _find(check, text, start)


def _find(check: _Check, text: str, start: int) -> tuple[int, int]:
    place = text.find(check.text, start)
    if place < 0:
        raise RuntimeError(
            f'Expected to find "{check.text}" but did not find it\nSearched string:\n'
            f"{_around(text, start, len(check.text))}From {check.label}\n"
        )
    return place, place + len(check.text)


def _within_lines(check: _Check, text: str, start: int, end: int) -> None:
    place = text.find("\n", start, end)
    if place >= 0:
        raise RuntimeError(
            f'Expected to not find "\\n" but found it\n{_around(text, place, 1)}From {check.label}\n'
        )


def _refuse(check: _Check, text: str, start: int, end: int) -> None:
    place = text.find(check.text, start, end)
    if place >= 0:
        raise RuntimeError(
            f'Expected to not find "{check.text}" but found it\n'
            f"{_around(text, place, len(check.text))}From {check.label}\n"
        )


def _highlighted(check: _Check, text: str, start: int) -> tuple[int, int]:
    place = start
    while (place := text.find(check.text, place)) >= 0:
        line_start, line_end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
        column = place - line_start
        below = text[line_end + 1 :].split("\n", 1)[0] if line_end >= 0 else ""
        length = len(check.text)
        if below[column : column + length] == "~" * length and below[column + length :][:1] != "~":
            return place, line_end + 1 + len(below)
        place += 1
    raise RuntimeError(f'Expected to find "{check.text}"highlighted but it is not.\n{text}\n')


def _around(text: str, place: int, length: int) -> str:
    """The line of a place, marked, and the lines around it."""
    lines = text.split("\n")
    number = text.count("\n", 0, place)
    column = place - (text.rfind("\n", 0, place) + 1)
    shown = lines[max(number - 2, 0) : number + 3]
    marked = number - max(number - 2, 0)
    if marked < len(shown) and shown[marked]:
        shown.insert(marked + 1, " " * column + "~" * max(length, 1) + " <--- HERE")
    return "".join(f"{line}\n" for line in shown if line)
