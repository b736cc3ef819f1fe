"""torch.backends: which libraries compute, and how they may.

Programs set the switches of libraries that run on other devices (cudnn.benchmark, cuda.matmul.allow_tf32).
They are kept, can be read back, and change nothing here: every algorithm is deterministic and in full
precision.
"""

from rushlight.backends import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]
