"""Schedulers that go in cycles, with momentum against the rate, and the one that watches a metric."""

import functools
import math
import types

from rushlight._warn import warn
from rushlight.optim._lr_base import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    check_optimizer,
    one_per_group,
    option_of_groups,
    set_option,
)


class ReduceLROnPlateau(LRScheduler):
    """Multiplies by ``factor`` when a metric has not improved for ``patience`` epochs.

    >>> import rushlight as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    >>> scheduler.step(5.0); scheduler.step(5.0)
    >>> scheduler.get_last_lr()
    [0.1]
    """

    __module__ = "rushlight.optim.lr_scheduler"

    def __init__(
        self,
        optimizer,
        mode="min",
        factor=0.1,
        patience=10,
        threshold=1e-4,
        threshold_mode="rel",
        cooldown=0,
        min_lr=0,
        eps=1e-8,
    ):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        check_optimizer(optimizer)
        groups = len(optimizer.param_groups)
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != groups:
                raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
            self.default_min_lr = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * groups
        self.factor = factor
        self.optimizer = optimizer
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = option_of_groups(optimizer, "lr")
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _reset(self):
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def _init_is_better(self, mode, threshold, threshold_mode):
        if mode not in ("min", "max"):
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def _is_better(self, value, best):
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            limit = best * (1.0 + sign * self.threshold)
        else:
            limit = best + sign * self.threshold
        return value < limit if self.mode == "min" else value > limit

    @property
    def in_cooldown(self):
        """Whether the rate was reduced too recently to count bad epochs."""
        return self.cooldown_counter > 0

    def step(self, metrics, epoch=None):
        """Take this epoch's metric into account."""
        value = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warn(EPOCH_DEPRECATION_WARNING)
        self.last_epoch = epoch
        if self._is_better(value, self.best):
            self.best = value
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = option_of_groups(self.optimizer, "lr")

    def _reduce_lr(self, epoch):
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param "
                    "group being added to the optimizer. Please modify the `min_lrs` field to match the "
                    "length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, smallest in zip(groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, smallest)
            if old - new > self.eps:
                set_option(group, "lr", new)

    def load_state_dict(self, state_dict):
        super().load_state_dict(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)


class _MomentumCycle(LRScheduler):
    """What CyclicLR and OneCycleLR share: momentum, or Adam's first beta, that moves against the rate."""

    def _take_momentum(self, optimizer, cycle_momentum, base_momentum, max_momentum, last_epoch):
        self.cycle_momentum = cycle_momentum
        if not cycle_momentum:
            return
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        lows = one_per_group("base_momentum", optimizer, base_momentum)
        highs = one_per_group("max_momentum", optimizer, max_momentum)
        self._momentum_bounds(lows, highs)
        if last_epoch == -1:
            for low, high, group in zip(lows, highs, optimizer.param_groups):
                self._set_momentum(group, high)
                group["max_momentum"] = high
                group["base_momentum"] = low

    def _momentum_bounds(self, lows, highs):
        pass

    def _set_momentum(self, group, momentum):
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_MomentumCycle):
    """Goes up from ``base_lr`` to ``max_lr`` and down again, over and over (Smith 2017)."""

    __module__ = "rushlight.optim.lr_scheduler"

    def __init__(
        self,
        optimizer,
        base_lr,
        max_lr,
        step_size_up=2000,
        step_size_down=None,
        mode="triangular",
        gamma=1.0,
        scale_fn=None,
        scale_mode="cycle",
        cycle_momentum=True,
        base_momentum=0.8,
        max_momentum=0.9,
        last_epoch=-1,
    ):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = one_per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups):
                set_option(group, "lr", lr)
        self.max_lrs = one_per_group("max_lr", optimizer, max_lr)
        step_size_up = float(step_size_up)
        step_size_down = step_size_up if step_size_down is None else float(step_size_down)
        self.total_size = step_size_up + step_size_down
        self.step_ratio = step_size_up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        self._init_scale_fn()
        self._take_momentum(optimizer, cycle_momentum, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _momentum_bounds(self, lows, highs):
        self.base_momentums = lows
        self.max_momentums = highs

    def _init_scale_fn(self):
        if self._scale_fn_custom is not None:
            return
        self._scale_fn_ref = {
            "triangular": _same_height,
            "triangular2": _half_height,
            "exp_range": functools.partial(pow, self.gamma),
        }[self.mode]
        self.scale_mode = "iterations" if self.mode == "exp_range" else "cycle"

    def scale_fn(self, x):
        """The height of cycle, or iteration, ``x`` relative to the first."""
        return self._scale_fn_ref(x) if self._scale_fn_custom is None else self._scale_fn_custom(x)

    def get_lr(self):
        self._warn_if_called_directly()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        counted = cycle if self.scale_mode == "cycle" else self.last_epoch
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums)
            for group, (low, high) in zip(self.optimizer.param_groups, bounds):
                self._set_momentum(group, high - (high - low) * height * self.scale_fn(counted))
        return [
            low + (high - low) * height * self.scale_fn(counted)
            for low, high in zip(self.base_lrs, self.max_lrs)
        ]

    def state_dict(self):
        state = super().state_dict()
        # Functions are not kept, unless they are objects with attributes.
        state.pop("_scale_fn_ref", None)
        function = state.pop("_scale_fn_custom")
        keep = function is not None and not isinstance(function, types.FunctionType)
        state["_scale_fn_custom"] = function.__dict__.copy() if keep else None
        return state

    def load_state_dict(self, state_dict):
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if state_dict.get("_scale_fn_custom") is not None:
            self._scale_fn_custom.__dict__.update(state_dict["_scale_fn_custom"])
        self._init_scale_fn()


def _same_height(cycle):
    return 1.0


def _half_height(cycle):
    return 1 / (2.0 ** (cycle - 1))


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing that starts again after ``T_0`` epochs, then after ``T_mult`` times as many, ..."""

    __module__ = "rushlight.optim.lr_scheduler"

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_if_called_directly()
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (lr - self.eta_min) * height for lr in self.base_lrs]

    def step(self, epoch=None):
        """Go to the next epoch, or to ``epoch``, which may be a fraction: once per batch is common."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            rates = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set_rates(rates)

    def _go_to(self, epoch):
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i = self.T_0
            self.T_cur = epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            # The number of restarts so far, from the sum of a geometric series.
            restarts = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**restarts - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**restarts


class OneCycleLR(_MomentumCycle):
    """One rise to ``max_lr`` and one long fall, over all steps of the training (Smith and Topin 2018)."""

    __module__ = "rushlight.optim.lr_scheduler"

    def __init__(
        self,
        optimizer,
        max_lr,
        total_steps=None,
        epochs=None,
        steps_per_epoch=None,
        pct_start=0.3,
        anneal_strategy="cos",
        cycle_momentum=True,
        base_momentum=0.85,
        max_momentum=0.95,
        div_factor=25.0,
        final_div_factor=1e4,
        three_phase=False,
        last_epoch=-1,
    ):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = self._phases(pct_start, three_phase)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        highs = one_per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, high in zip(optimizer.param_groups, highs):
                group["initial_lr"] = high / div_factor
                group["max_lr"] = high
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self._take_momentum(optimizer, cycle_momentum, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _phases(self, pct_start, three_phase):
        """Each phase: where it ends, and between which options of a group rate and momentum go."""

        def phase(end_step, start_lr, end_lr, start_momentum, end_momentum):
            return {
                "end_step": end_step,
                "start_lr": start_lr,
                "end_lr": end_lr,
                "start_momentum": start_momentum,
                "end_momentum": end_momentum,
            }

        steps = self.total_steps
        up = phase(float(pct_start * steps) - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        if not three_phase:
            return [up, phase(steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        return [
            up,
            phase(float(2 * pct_start * steps) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
            phase(steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
        ]

    def _anneal(self, start, end, done):
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * done) + 1)
        return (end - start) * done + start

    def get_lr(self):
        self._warn_if_called_directly()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is {self.total_steps}"
            )
        start = 0.0
        for phase in self._schedule_phases[:-1]:
            if step <= phase["end_step"]:
                break
            start = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        done = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], done))
            if self.cycle_momentum:
                momentum = self._anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], done)
                self._set_momentum(group, momentum)
        return rates


def _total_steps(total_steps, epochs, steps_per_epoch):
    if total_steps is not None:
        if total_steps <= 0 or not isinstance(total_steps, int):
            raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
        return total_steps
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    if not isinstance(epochs, int) or epochs <= 0:
        raise ValueError(f"Expected positive integer epochs, but got {epochs}")
    if not isinstance(steps_per_epoch, int) or steps_per_epoch <= 0:
        raise ValueError(f"Expected positive integer steps_per_epoch, but got {steps_per_epoch}")
    return epochs * steps_per_epoch
