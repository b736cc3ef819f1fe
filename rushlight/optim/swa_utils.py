"""Averages of a model's parameters over training: stochastic weight averaging and moving averages."""

import math
from copy import deepcopy
from itertools import chain

import rushlight
from rushlight.nn.module import Module
from rushlight.optim._lr_base import LRScheduler, one_per_group

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_multi_avg_fn",
    "get_swa_multi_avg_fn",
    "get_ema_avg_fn",
    "get_swa_avg_fn",
    "update_bn",
]


def _check_decay(decay):
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay=0.999):
    """An ``avg_fn`` for AveragedModel: the average keeps the share ``decay`` of itself."""
    _check_decay(decay)

    @rushlight.no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn():
    """An ``avg_fn`` for AveragedModel: the mean of all parameters so far."""

    @rushlight.no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(decay=0.999):
    """As ``get_ema_avg_fn``, for lists of parameters, which it changes in place."""
    _check_decay(decay)

    @rushlight.no_grad()
    def ema_update(ema_param_list, current_param_list, _):
        for average, current in zip(ema_param_list, current_param_list, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, 1 - decay)
            else:
                average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn():
    """As ``get_swa_avg_fn``, for lists of parameters, which it changes in place."""

    @rushlight.no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        share = 1 / (float(num_averaged) + 1)
        for average, current in zip(averaged_param_list, current_param_list, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, share)
            else:
                average.copy_(average + (current - average) * share)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those it was shown.

    >>> import rushlight as torch
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> average = torch.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 3.0):
    ...     _ = torch.nn.init.constant_(model.weight, value)
    ...     average.update_parameters(model)
    >>> average.module.weight.item()
    2.0
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", rushlight.tensor(0, dtype=rushlight.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def update_parameters(self, model):
        """Take the model's parameters into the averages; buffers too if ``use_buffers``, else copy them."""
        averages = [tensor.detach() for tensor in self._averaged(self.module)]
        current = [tensor.detach().to(mean.device) for mean, tensor in zip(averages, self._averaged(model))]
        if self.n_averaged == 0:
            for mean, tensor in zip(averages, current):
                mean.copy_(tensor)
        elif self.avg_fn is not None:
            for mean, tensor in zip(averages, current):
                mean.copy_(self.avg_fn(mean, tensor, self.n_averaged))
        else:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            for dtype in dict.fromkeys(mean.dtype for mean in averages):
                pairs = [pair for pair in zip(averages, current) if pair[0].dtype == dtype]
                update([mean for mean, _ in pairs], [tensor for _, tensor in pairs], self.n_averaged)
        if not self.use_buffers:
            for ours, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                ours.detach().copy_(theirs.detach())
        self.n_averaged += 1

    def _averaged(self, model):
        return chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()


class SWALR(LRScheduler):
    """Goes from the present rate to ``swa_lr`` in ``anneal_epochs`` and stays there."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        for rate, group in zip(one_per_group("swa_lr", optimizer, swa_lr), optimizer.param_groups):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step):
        """How much of ``swa_lr`` is in the rate at a step."""
        done = max(0, min(1, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * done)) / 2 if self._anneal_strategy == "cos" else done

    def get_lr(self):
        self._warn_if_called_directly()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            target = group["swa_lr"]
            # Other schedulers may change the rate meanwhile: take this one's part out and put the new one in.
            rest = target if before == 1 else (group["lr"] - before * target) / (1 - before)
            rates.append(target * now + rest * (1 - now))
        return rates


@rushlight.no_grad()
def update_bn(loader, model, device=None):
    """Compute the running statistics of all BatchNorm layers anew, as averages over the loader's batches.

    A batch may be a tensor, or a list or tuple that begins with one.

    >>> import rushlight as torch
    >>> model = torch.nn.BatchNorm1d(1)
    >>> torch.optim.swa_utils.update_bn([torch.tensor([[0.0], [2.0]])], model)
    >>> model.running_mean
    tensor([1.])
    """
    from rushlight.nn.batchnorm import _BatchNorm

    layers = {layer: layer.momentum for layer in model.modules() if isinstance(layer, _BatchNorm)}
    if not layers:
        return
    training = model.training
    model.train()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
    for batch in loader:
        input = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(input if device is None else input.to(device))
    for layer, momentum in layers.items():
        layer.momentum = momentum
    model.train(training)
