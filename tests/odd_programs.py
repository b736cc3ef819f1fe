"""Small programs that are wrong in one place or another, made of parts by a seed.

`programs` fills the holes of the templates in odd_programs.txt: `<size>`, `<index>`, `<tensor>` and so on are
replaced by something that may be right there and often is not. A program is text that both libraries run,
with `torch` meaning either; what it gives is the value of its last line. test_odd_programs.py asks what must
always hold, torch/test_odd_programs.py what torch says.
"""

import random
import re
from functools import cache, partial
from pathlib import Path

SETUP = """
import io, math, warnings
import numpy as np
F, N, O = torch.nn.functional, torch.nn, torch.optim
S = torch.optim.lr_scheduler
inf, nan = math.inf, math.nan
def a(*size, dtype=torch.float32):
    return torch.arange(math.prod(size)).reshape(size).to(dtype)
def shown(t):
    return [t, t.dtype, tuple(t.shape), t.stride(), t.requires_grad] if isinstance(t, torch.Tensor) else t
def leaf(*size): return a(*size).requires_grad_()
def stepped(optimizer, *ws):
    for w in ws: w.grad = torch.ones_like(w)
    optimizer.step()
    return [*ws]
def saved(thing):
    file = io.BytesIO()
    torch.save(thing, file)
    return bytearray(file.getvalue())
def loaded(data, **options):
    return torch.load(io.BytesIO(bytes(data)), **options)
"""

HOLE = re.compile(r"<(\w+)>")
PARTS: dict[str, list[str]] = {}  # what may fill a hole, by its name
TEMPLATES: dict[str, list[str]] = {}  # programs with holes, by family


def _read():
    section = []
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        if line.startswith("[<"):
            section = PARTS.setdefault(line[2:-2], [])
        elif line.startswith("[programs "):
            section = TEMPLATES.setdefault(line[10:-1], [])
        elif line and not line.startswith("#"):
            section += [line] if TEMPLATES else line.split()


_read()


def programs(seed, count, families=None, start=0):
    """`count` tuples of a number and the text of a program."""
    lines = [line for family in families or TEMPLATES for line in TEMPLATES[family]]
    for number in range(start, count):
        rng = random.Random(seed * 100_003 + number)
        yield number, HOLE.sub(partial(_filling, rng), rng.choice(lines))


def _filling(rng, hole):
    """What a hole gets: nearly every other one something simple, so that most mistakes are alone."""
    parts = PARTS[hole.group(1)]
    return rng.choice(parts[:4] if rng.random() < 0.45 else parts)


@cache
def _setup():
    return compile(SETUP, "<string>", "exec")


def run_program(library, text, given=""):
    """How a program ends: "taken" with its value as text, or the type of the exception and its first line.
    `given` is what it finds besides SETUP."""
    namespace = {"torch": library}
    exec(_setup(), namespace)
    library.default_generator.manual_seed(0)  # manual_seed of torch formats the stack for absent devices
    exec(given, namespace)
    *statements, last = text.split("; ")
    try:
        exec("\n".join(statements), namespace)
        try:
            code = compile(last, "<last>", "eval")
        except SyntaxError:
            code = compile(last, "<last>", "exec")
        result = ["taken", repr(eval(code, namespace))]
    except Exception as error:
        result = [type(error).__name__, str(error).strip().partition("\n")[0]]
    finally:
        library.set_default_dtype(library.float32)
        library.set_grad_enabled(True)
    return result[0], _plain(result[1])


def _plain(text):
    """Without what two libraries and two runs need not have in common."""
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    text = re.sub(r"\[enforce fail at \w+\.cpp(:\d+)?\] (err == 0\. )?", "", text)  # lines of torch's sources
    return re.sub(r"(torch|rushlight)\.(nn|utils|optim)\.(modules\.(\w+\.)?)?", r"\2.", text).replace(
        "rushlight", "torch"
    )
