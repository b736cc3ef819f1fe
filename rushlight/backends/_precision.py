"""The switch for products of float32 numbers in less than full precision: kept and answered, not used."""

from __future__ import annotations

from typing import Any


class Precision:
    """`fp32_precision` of one kind of operation: "none", "ieee", "tf32" or "bf16"."""

    def __init__(self, precision: str = "none") -> None:
        self.fp32_precision = precision

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "fp32_precision":
            raise AttributeError(f"Unknown attribute {name}")
        if value not in ("none", "ieee", "tf32", "bf16"):
            raise RuntimeError(f"Unknown precision: {value}")
        object.__setattr__(self, name, value)
