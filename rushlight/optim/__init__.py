"""Optimizers and learning-rate schedulers. ``lr_scheduler`` and ``swa_utils`` are imported on first use."""

import importlib

from rushlight.optim._adafactor import Adafactor
from rushlight.optim._muon import Muon
from rushlight.optim._swapping import swap_in_optimizer_params_and_state
from rushlight.optim.adadelta import Adadelta
from rushlight.optim.adagrad import Adagrad
from rushlight.optim.adam import Adam
from rushlight.optim.adamax import Adamax
from rushlight.optim.adamw import AdamW
from rushlight.optim.asgd import ASGD
from rushlight.optim.lbfgs import LBFGS
from rushlight.optim.nadam import NAdam
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.radam import RAdam
from rushlight.optim.rmsprop import RMSprop
from rushlight.optim.rprop import Rprop
from rushlight.optim.sgd import SGD
from rushlight.optim.sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "LBFGS",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
    "swap_in_optimizer_params_and_state",
]


def __getattr__(name):
    if name in ("lr_scheduler", "swa_utils"):
        return importlib.import_module(f"rushlight.optim.{name}")
    raise AttributeError(f"module 'rushlight.optim' has no attribute '{name}'")


def __dir__():
    return sorted({*globals(), *__all__})
