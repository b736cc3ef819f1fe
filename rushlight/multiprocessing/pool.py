"""Python's pool of processes, which carries tensors once rushlight.multiprocessing is imported."""

from multiprocessing.pool import Pool

__all__ = ["Pool"]
