"""Timing small pieces of code: Timer measures, Compare makes a table of what was measured."""

from rushlight.utils.benchmark import utils
from rushlight.utils.benchmark.utils.common import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from rushlight.utils.benchmark.utils.compare import Colorize, Compare
from rushlight.utils.benchmark.utils.fuzzer import FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias
from rushlight.utils.benchmark.utils.sparse_fuzzer import FuzzedSparseTensor
from rushlight.utils.benchmark.utils.timer import Language, Timer, timer
from rushlight.utils.benchmark.utils.valgrind_wrapper.timer_interface import (
    CallgrindStats,
    CopyIfCallgrind,
    FunctionCount,
    FunctionCounts,
)

__all__ = [
    "CallgrindStats", "Colorize", "Compare", "CopyIfCallgrind", "FunctionCount", "FunctionCounts",
    "FuzzedParameter", "FuzzedSparseTensor", "FuzzedTensor", "Fuzzer", "Language", "Measurement",
    "ParameterAlias", "TaskSpec", "Timer", "ordered_unique", "select_unit", "set_torch_threads",
    "timer", "trim_sigfig", "unit_to_english", "utils",
]  # fmt: skip
