"""Sparse tensors in the compressed layouts (CSR, CSC, BSR, BSC): what they are (`tensor`), how they are made
of others and read (`build`), and what computes with them (`table` and its kernels).

All four are one thing here: lines along the compressed dimension, in each the places of its entries, and for
every entry a value, a block, or either with dense dimensions behind. Kernels see the place that each element
has in the matrix, and share what they can with the tensors in coordinates (rushlight/_sparse).
"""

from rushlight._compressed import table as table  # first: the kernels and the table import each other
