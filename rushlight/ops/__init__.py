"""The operations, by family: in each file first the derivatives, then the public functions."""

from rushlight.ops import (
    _again,
    attention,
    attributes,
    blend,
    calculus,
    clamp,
    combine,
    complex_numbers,
    compose,
    compressed,
    contract,
    conv,
    create,
    ctc,
    distance,
    elementwise,
    embedding,
    fft,
    grid,
    histogram,
    index,
    linalg,
    linalg_named,
    linalg_rules,
    linalg_spectral,
    loss,
    lowrank,
    mask,
    math,
    matmul,
    norm,
    pool,
    random,
    ranges,
    rearrange,
    reduce,
    replace,
    replay,
    resample,
    rnn,
    scaling,
    scan,
    segment,
    shape,
    sort,
    sparse,
    sparse_forms,
    special,
    stft,
    unique,
    windows,
)

from rushlight.ops import forms  # isort: skip  (of what is there by now)
from rushlight.ops import _old_forms  # isort: skip
from rushlight._named_operators import attach
from rushlight.ops._facts import tell
from rushlight.ops._public import FUNCTIONS, Tensor
from rushlight.ops._rules import check_complete

check_complete()
attach()
tell(FUNCTIONS, Tensor.__dict__)


def load_library(path):
    """Loads operations that were compiled for torch; Rushlight cannot, and fails as torch does."""
    raise OSError(f"Could not load this library: {path}: it is compiled for torch, not for Rushlight")


def __getattr__(name):  # without types: mypy meets it before it knows any
    from rushlight._aten_names import COLLECTIVES
    from rushlight._ops import namespace, namespaces

    if name.startswith("_") and name not in namespaces and name not in COLLECTIVES:
        raise AttributeError(f"module 'torch.ops' has no attribute '{name}'")
    globals()[name] = namespace(name)  # a program may delete it; asked for again, it is there again
    return namespace(name)
