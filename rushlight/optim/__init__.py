"""Optimizers and learning-rate schedulers.

The common ones are imported with the package; the rest, ``lr_scheduler`` and ``swa_utils`` on first use.
"""

import importlib

from rushlight.optim.adam import Adam
from rushlight.optim.adamw import AdamW
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.sgd import SGD

_LATER = {
    "ASGD": "asgd",
    "Adadelta": "adadelta",
    "Adafactor": "_adafactor",
    "Adagrad": "adagrad",
    "Adamax": "adamax",
    "LBFGS": "lbfgs",
    "Muon": "_muon",
    "NAdam": "nadam",
    "RAdam": "radam",
    "RMSprop": "rmsprop",
    "Rprop": "rprop",
    "SparseAdam": "sparse_adam",
}

__all__ = ["Adam", "AdamW", "Optimizer", "SGD", *_LATER, "lr_scheduler", "swa_utils"]


def __getattr__(name):
    if name in ("lr_scheduler", "swa_utils"):
        return importlib.import_module(f"rushlight.optim.{name}")
    if name in _LATER:
        found = getattr(importlib.import_module(f"rushlight.optim.{_LATER[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'rushlight.optim' has no attribute '{name}'")


def __dir__():
    return sorted({*globals(), *__all__})
