"""Where torch collects the functional forms of its optimizers."""

from rushlight.optim.adadelta import adadelta
from rushlight.optim.adagrad import adagrad
from rushlight.optim.adam import adam
from rushlight.optim.adamax import adamax
from rushlight.optim.adamw import adamw
from rushlight.optim.asgd import asgd
from rushlight.optim.nadam import nadam
from rushlight.optim.radam import radam
from rushlight.optim.rmsprop import rmsprop
from rushlight.optim.rprop import rprop
from rushlight.optim.sgd import sgd
from rushlight.optim.sparse_adam import move

__all__ = [
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "asgd",
    "nadam",
    "radam",
    "rmsprop",
    "rprop",
    "sgd",
]


def sparse_adam(params, grads, exp_avgs, exp_avg_sqs, state_steps, *, eps, beta1, beta2, lr, maximize):
    """One step of SparseAdam for parameters, gradients and state given as lists."""
    group = {"betas": (beta1, beta2), "lr": lr, "eps": eps, "maximize": maximize}
    for param, grad, mean, square, step in zip(
        params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=False
    ):
        move(param, grad, mean, square, step, group)
