"""Linear algebra, as torch.linalg names it: so far products and vector norms."""

from rushlight.ops.contract import linalg_cross as cross
from rushlight.ops.contract import multi_dot
from rushlight.ops.matmul import matmul
from rushlight.ops.reduce import vector_norm

__all__ = ["cross", "matmul", "multi_dot", "vector_norm"]
