"""How primitives compute a batch of calls at once, by family; table.py is what to read first."""

from rushlight.func._batching import (
    index,
    layers,
    loss,
    matmul,
    norm,
    random,
    recurrent,
    reduce,
    table,
    views,
)
