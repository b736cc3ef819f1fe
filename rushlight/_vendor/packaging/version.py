"""Comparing versions such as "2.13.0" or "1.0rc1+local"."""

from __future__ import annotations

import functools
import re
from typing import Any

__all__ = ["InvalidVersion", "Version", "parse"]

_PATTERN = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)(?:[-_.]?(?P<kind>a|alpha|b|beta|c|rc|pre|preview|post|rev|r|dev)[-_.]?"
    r"(?P<number>\d*))?(?:\+(?P<local>[a-z0-9._-]+))?",
    re.IGNORECASE,
)
_ORDER = {"dev": 0, "a": 1, "alpha": 1, "b": 2, "beta": 2, "c": 3, "rc": 3, "pre": 3, "preview": 3}


class InvalidVersion(ValueError):
    """A text that is no version."""


@functools.total_ordering
class Version:
    """A version that can be compared.

    >>> Version = rushlight._vendor.packaging.version.Version
    >>> Version("2.9.1") < Version("2.13") < Version("2.13.1rc1") < Version("2.13.1")
    True
    """

    def __init__(self, version: str) -> None:
        match = _PATTERN.fullmatch(str(version).strip())
        if match is None:
            raise InvalidVersion(f"Invalid version: {version!r}")
        self._text = str(version).strip()
        self.release = tuple(int(part) for part in match["release"].split("."))
        kind = (match["kind"] or "").lower()
        self.local = match["local"]
        self.is_prerelease = kind in _ORDER
        rank = _ORDER.get(kind, 4) if kind in ("", *_ORDER) else 5
        digits = list(self.release)
        while digits and digits[-1] == 0:
            digits.pop()
        self._key = (tuple(digits), rank, int(match["number"] or 0), self.local or "")

    @property
    def major(self) -> int:
        return self.release[0]

    @property
    def minor(self) -> int:
        return (*self.release, 0)[1]

    @property
    def micro(self) -> int:
        return (*self.release, 0, 0)[2]

    @property
    def base_version(self) -> str:
        return ".".join(map(str, self.release))

    @property
    def public(self) -> str:
        return self._text.partition("+")[0]

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Version('{self}')>"

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> Any:
        return self._key == other._key if isinstance(other, Version) else NotImplemented

    def __lt__(self, other: object) -> Any:
        return self._key < other._key if isinstance(other, Version) else NotImplemented


def parse(version: str) -> Version:
    """The version a text says."""
    return Version(version)
