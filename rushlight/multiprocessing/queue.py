"""Python's queues, which carry tensors once rushlight.multiprocessing is imported."""

from multiprocessing.queues import Queue, SimpleQueue

__all__ = ["Queue", "SimpleQueue"]
