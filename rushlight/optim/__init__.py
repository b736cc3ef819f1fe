"""Optimizers and learning-rate schedulers.

The common ones are imported with the package; the rest, and ``lr_scheduler`` and ``swa_utils``, on first use.
"""

from rushlight.optim.adam import Adam
from rushlight.optim.adamw import AdamW
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.sgd import SGD

__all__ = ["Adam", "AdamW", "Optimizer", "SGD"]
