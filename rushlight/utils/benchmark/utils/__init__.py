"""The parts of the benchmark package."""

from rushlight.utils.benchmark.utils import common, compare, timer

__all__ = ["common", "compare", "timer"]
