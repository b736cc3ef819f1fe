<<<<<<< HEAD
"""Linear algebra, as torch.linalg names it: so far products and vector norms."""
=======
"""Linear algebra, as torch.linalg names it: so far the products and the vector norm."""
>>>>>>> 6ce9e46 (Cover every function by samples, check second derivatives and views; keep external memory on the cpu device, guard logcumsumexp)

from rushlight.ops.contract import linalg_cross as cross
from rushlight.ops.contract import multi_dot
from rushlight.ops.matmul import matmul
from rushlight.ops.reduce import vector_norm

__all__ = ["cross", "matmul", "multi_dot", "vector_norm"]
