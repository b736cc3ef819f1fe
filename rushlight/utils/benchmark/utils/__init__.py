"""The parts of the benchmark package."""

from rushlight.utils.benchmark.utils import common, compare, fuzzer, timer

__all__ = ["common", "compare", "fuzzer", "timer"]
