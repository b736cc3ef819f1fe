"""How things are measured: alternating rounds in one process, so that both sides meet the same machine."""

import gc
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, sleep

from cases import Work

ROUND = 0.004  # seconds


def seconds_per_call(work: Work, calls: int) -> float:
    start = perf_counter()
    for _ in range(calls):
        work()
    return (perf_counter() - start) / calls


def calls_for(work: Work, seconds: float) -> int:
    """How many calls fill a round, found by doubling (which is the warm-up too).

    Not counting the first call: it may open OpenBLAS, and a round of that length would be a single call, made
    while the caches still hold the other side's work.
    """
    work()
    calls = 1
    while (each := seconds_per_call(work, calls)) * calls < seconds / 2:
        calls *= 2
    return max(1, round(seconds / each))


LEAST_ROUNDS = 7
SETTLED = 0.02  # seconds


def alternate(ours: Work, theirs: Work, rounds: int, budget: float, threads: int = 1) -> tuple[float, float]:
    """The best time per call of each, over rounds that take turns.

    Rounds are short and many: on a busy machine some of them run undisturbed, and the best one counts. Work
    that takes long by itself gets fewer rounds, so that a case stays within `budget` seconds or so.

    With several threads there is a pause before each round, and a call that is not counted: the second thread
    of torch goes on asking for work for 5 ms after a call (ours for 0.4 ms), which takes a processor from
    whoever comes next. Without the pause a round of 4 ms of Rushlight's ran beside that.
    """
    sides = [(work, calls_for(work, ROUND)) for work in (ours, theirs)]
    best = [float("inf")] * 2
    collecting = gc.isenabled()
    gc.disable()
    start = perf_counter()
    try:
        for done in range(rounds):
            if done >= LEAST_ROUNDS and perf_counter() - start > budget:
                break
            for side, (work, calls) in enumerate(sides):
                if threads > 1:
                    sleep(SETTLED)
                    work()
                best[side] = min(best[side], seconds_per_call(work, calls))
            gc.collect(0)
    finally:
        if collecting:
            gc.enable()
    return best[0], best[1]


def run_python(code: str) -> str:
    # `-c` puts the working directory first on the path: away from the source tree, which has no native core.
    environment = {**os.environ, "PYTHONPATH": package_parent("rushlight")}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=tempfile.gettempdir(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout


IMPORT = """\
from time import perf_counter, sleep
start = perf_counter()
import {module}
print(perf_counter() - start)
"""


def import_seconds(rounds: int) -> tuple[float, float]:
    times: dict[str, list[float]] = {"rushlight": [], "torch": []}
    for _ in range(rounds):
        for module, measured in times.items():
            measured.append(float(run_python(IMPORT.format(module=module))))
    return min(times["rushlight"]), min(times["torch"])


# The resident size is compared with that of the list alone, which holds one pointer for each tensor.
MEMORY = """\
import json, {module} as torch

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * {page}

count = 200_000
warm_up = [torch.ones(1) for _ in range(1000)]
start = resident()
pointers = [None] * count
after_list = resident()
for i in range(count):
    pointers[i] = torch.ones(1)
print(json.dumps((resident() - after_list) / count))
"""


def bytes_per_tensor() -> tuple[float, float]:
    page = os.sysconf("SC_PAGE_SIZE")
    ours, theirs = (
        json.loads(run_python(MEMORY.format(module=m, page=page))) for m in ("rushlight", "torch")
    )
    return ours, theirs


def package_parent(module: str) -> str:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{module} is not installed", name=module)
    return str(Path(spec.origin).parents[1])


def installed_bytes(module: str) -> int:
    directory = Path(package_parent(module), module)
    return sum(p.stat().st_size for p in directory.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
