"""Running cases in a process of its own, and in another one after a case that ended it."""

import json
import os
import subprocess
import sys


def lines_of(script, library, seed, count, families, number, **variables):
    """The lines of JSON that `script run library seed count start family ...` prints, and the last one of
    each process that a case has ended. `number` tells which case a line is about, `variables` are added to
    the environment."""
    told, ended, start = [], [], 0
    environment = os.environ | {"PYTHONHASHSEED": "0"} | variables  # some sentences show a set
    while True:
        command = [sys.executable, script, "run", library, *map(str, (seed, count, start)), *families]
        ran = subprocess.run(command, capture_output=True, text=True, env=environment)
        told += [json.loads(line) for line in ran.stdout.splitlines() if line.endswith("]")]
        if ran.returncode == 0:
            return told, ended
        if ran.returncode > 0:
            raise RuntimeError(ran.stderr)
        ended.append(told[-1])
        start = number(told[-1]) + 1
