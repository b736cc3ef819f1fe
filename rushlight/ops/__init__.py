"""The operations, by family: in each file first the derivatives, then the public functions."""

from rushlight.ops import (
    combine,
    compose,
    contract,
    create,
    elementwise,
    index,
    loss,
    math,
    matmul,
    norm,
    random,
    reduce,
    scan,
    shape,
    sort,
    special,
)
from rushlight.ops._public import FUNCTIONS
from rushlight.ops._rules import check_complete

check_complete()
