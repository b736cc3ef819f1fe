"""Sparse tensors in coordinates: what they are (`tensor`) and what computes with them (`table` and its
kernels).

A sparse tensor wraps its indices and values. Operations on it are recorded as on any other; below,
`table.run` finds the kernel of the primitive, which is written in Python over dense operations on indices
and values.
"""

from rushlight._sparse import table as table  # first: the kernels and the table import each other
