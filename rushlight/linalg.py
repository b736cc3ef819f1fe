"""Linear algebra, as torch.linalg names it: so far the products."""

from rushlight.ops.contract import linalg_cross as cross
from rushlight.ops.contract import multi_dot
from rushlight.ops.matmul import matmul

__all__ = ["cross", "matmul", "multi_dot"]
