"""Functions and methods called with odd arguments: too many, too few, unknown names, values of another kind
at each place. Both libraries give the same, or refuse with the same type and first sentence.

Every name is called in two dozen ways, drawn by its name from those of `calls`. odd_arguments.txt lists the
calls that end otherwise and why; `python test_odd_arguments.py [name ...]` prints them (all ways of a name).
"""

import math
import re
import sys
import types
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
first_sentence = pytest.importorskip("opdb").first_sentence

SPACES = ("", "nn.functional", "linalg", "fft", "special", "Tensor")
PER_NAME = 24
LISTED = Path(__file__).with_name("odd_arguments.txt")
# What changes the library, waits, reads files, moves or shares memory, or has no operations here.
LEFT_OUT = re.compile(
    r"^_|^(set|get|is|init|clear|autocast)_(autocast|num|rng|default|anomaly|device|pinned|shared|warn|vital)"
    r"|^(set_|parse_|import_|import|fork|wait|save|load|compile|manual_seed|seed$|initial_seed|from_file|to_dlpack)"
    r"|sparse|quant|fbgemm|cudnn|mkldnn|miopen|vital|_copy$|vulkan|batch_norm_|moving_avg|scaled_mm|scaled_gr"
    r"|^(sym_|index$|hspmm|smm|sspaddmm|saddmm|hsmm|slice_inverse|dequantize|int_repr|native_norm|qscheme"
    r"|merge_type|unify_type|storage|untyped|data_ptr|share_memory|register_|module_load|cuda|xpu|ipu|hpu|mtia"
    r"|pin_memory|record_stream|backward|reinforce|autocast|read_|use_|boolean_d|handle_|has_torch|assert_"
    r"|as_subclass|grad_fn|q_|hash_tensor|is_.*_enabled|choose_|normal|const_data_ptr|prepare_|Optional|Callable)"
)
# Operators and what else Python asks of a tensor; not what makes, copies or describes an object, and not
# __array_wrap__, which takes what NumPy 2 gives it.
NOT_OPERATORS = re.compile(
    r"^__(class|new|init|init_subclass|subclasshook|torch_function|torch_dispatch|dir|dlpack|deepcopy|reduce|reduce_ex"
    r"|setstate|getstate|sizeof|repr|str|hash|array|array_wrap|delattr|setattr|getattribute)__$"
)
# Sentences about torch's own insides, and what has no memory to be compared.
INSIDE = re.compile(r"INTERNAL ASSERT|SymInt|enforce fail|Could not run 'aten|at /")
UNWRITTEN = re.compile(r"^(new_)?empty|^resize|^new$|^svd$|^range$")
TENSORS = {
    "t": [[1.0, 2.0, 0.5], [3.0, -1.0, 0.25]], "i": [[1, 0, 1], [0, 1, 1]], "m": [[2.0, 1.0], [1.0, 3.0]],
    "b": [[True, False, True], [False, True, True]], "v": [1.0, 2.0, 3.0], "z": 1, "zf": 1.5, "e": [],
    "c": [[1 + 2j, 2, 3], [4, 5j, 6]], "q": [[[[0.0, 0.125, 0.25, 0.375], [0.5, 0.625, 0.75, 0.875]]] * 2],
}  # fmt: skip
ODD = (
    "0", "1", "-1", "2.5", "True", "None", "'a'", "'mean'", "(0, 1)", "(0, True)", "(1.5,)", "['a']", "[]",
    "()", "np.array(1)", "np.float32(2)", "np.int64(1)", "np.bool_(True)", "np.ones(3, 'f')", "1j",
    "T.Size([2])", "T.float32", "float", "2**70", "t", "i", "z", "zf", "(t, t)", "[t, 1]", "{}", "object",
    "T.strided", "T.device('cpu')", "b''", "range(2)", "slice(1)", "...",
)  # fmt: skip
FORMS = (
    "{}", "t, {}", "i, {}", "t, 0, {}", "t, t, {}", "m, m, m, {}", "t, 0, i, {}", "t, 1, 0, {}", "q, 2, {}",
    "q, (1, 1), {}", "t, dim={}", "t, out={}", "t, t, out={}", "t, dtype={}", "t, keepdim={}", "t, other={}",
    "t, alpha={}", "t, value={}", "t, input={}", "t, size={}", "t, reduction={}", "t, weight={}", "t, p={}",
    "t, generator={}", "t, t, dim={}",
)  # fmt: skip
OTHERS = (
    "", "t, bogus=1", "t, t, bogus=1", "t, 0, dim=0", "t, dim=0, axis=0", "input=t", "input=t, dim=0",
    "self=t",
    "t, t, t", "t, t, t, t, t", "*[t] * 9", "*[0] * 8", "t, (0,), (1,)", "t, t, out=(t, t)", "t, t, input=t",
    "x=t", "a=t, b=t", "(t, t), 0", "(t, 1), 0", "t, keepdims=True", "t, axis=0", "t, (0, z)", "t, z, z",
    "t, True, True", "c, 0", "c, c", "e, 0", "e, e", "e", "c", "b, b", "b, 1", "zf", "z", "zf, 0", "z, z",
)  # fmt: skip


def calls() -> list[str]:
    return [*OTHERS, *(form.format(odd) for form in FORMS for odd in ODD)]


def place(library: Any, space: str) -> Any:
    for part in space.split(".") if space else ():
        library = getattr(library, part)
    return library


def names() -> Iterator[str]:
    for space in SPACES:
        library = place(torch, space)
        for name in sorted(dir(library)):
            value = getattr(library, name)
            of_torch = space or isinstance(value, types.BuiltinFunctionType) or name in dir(torch.functional)
            if space == "Tensor" and name.startswith("__"):
                left_out = NOT_OPERATORS.search(name)
            else:
                left_out = LEFT_OUT.search(name)
            if callable(value) and not isinstance(value, type) and of_torch and not left_out:
                yield f"{space}.{name}".lstrip(".")


def outcome(library: Any, name: str, text: str) -> Any:
    library.manual_seed(0)
    known = {key: library.tensor(data) for key, data in TENSORS.items()}
    function = place(library, name)
    try:
        return described(eval(f"f({text})", {"T": library, "np": np, "f": function, **known}), library, name)
    except Exception as error:
        return f"{type(error).__name__}: {first_sentence(error)}"


def described(value: Any, library: Any, name: str) -> Any:
    if isinstance(value, library.Tensor):
        shown = value.detach().resolve_conj().resolve_neg()
        shown = shown.float() if shown.dtype == library.bfloat16 else shown
        data = np.zeros(0) if UNWRITTEN.search(name.rpartition(".")[2]) else np.asarray(shown.tolist())
        return str(value.dtype), tuple(value.shape), data
    if isinstance(value, (tuple, list)):
        return [described(item, library, name) for item in value]
    return value if isinstance(value, (int, float, complex, str)) else type(value).__name__


def same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and (
            bool((a == b).all())
            if a.dtype.kind not in "fc"
            else np.allclose(a, b, 1e-4, 1e-5, equal_nan=True)
        )
    return a == b or (isinstance(a, float) and math.isclose(a, b, rel_tol=1e-4)) or a != a


def differing(name: str, texts: list[str]) -> Iterator[tuple[str, str]]:
    """The calls that end otherwise than in torch, and how both end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in texts:
            theirs = outcome(torch, name, text)
            mine = outcome(rushlight, name, text)
            inside = isinstance(theirs, str) and INSIDE.search(theirs)
            if not inside and not same(mine, theirs):
                yield (
                    f"{name}({text})",
                    " | ".join(re.sub(r"\s+", " ", str(end))[:200] for end in (mine, theirs)),
                )


def drawn(name: str) -> list[str]:
    """Some ways of calling a name; which, depends on nothing else."""
    every = calls()
    step = len(every) // PER_NAME
    return every[zlib.crc32(name.encode()) % step :: step]


def listed() -> dict[str, str]:
    return dict(line.split(" | ") for line in LISTED.read_text().splitlines() if not line.startswith("#"))


@pytest.mark.parametrize("space", SPACES)
def test_ends_as_in_torch(space):
    of_space = [name for name in names() if name.rpartition(".")[0] == space]
    found = dict(pair for name in of_space for pair in differing(name, drawn(name)))
    known = [call for call in listed() if call.partition("(")[0].rpartition(".")[0] == space]
    unexpected = [f"{call}: {ends}" for call, ends in found.items() if call not in known]
    assert not unexpected, "\n".join(unexpected)
    stale = [call for call in known if call not in found]
    assert not stale, "listed, but nothing differs any more:\n" + "\n".join(stale)


if __name__ == "__main__":
    for one in sys.argv[1:] or names():
        for call, ends in differing(one, calls() if sys.argv[1:] else drawn(one)):
            print(call, ends, sep=" | ", flush=True)
