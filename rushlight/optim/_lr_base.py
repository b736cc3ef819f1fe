"""What all learning-rate schedulers share. Start at ``LRScheduler.step``."""

import functools
import weakref

from rushlight import Tensor
from rushlight._warn import warn
from rushlight.optim.optimizer import Optimizer, _to_scalar

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. "
    "Please use `scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from "
    "None, the closed form is used instead of the new chainable form, where available. Please open an issue "
    "if you are unable to replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)
_ORDER_HINT = "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"


def check_optimizer(optimizer):
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def option_of_groups(optimizer, key):
    """The option's value in every group; tensors as copies, since a group's own is written in place."""
    return [
        value.clone() if isinstance(value := group[key], Tensor) else value
        for group in optimizer.param_groups
    ]


def set_option(group, key, value):
    """Set the option; a tensor is filled, because a captured or compiled step may hold it."""
    if isinstance(group[key], Tensor):
        group[key].fill_(_to_scalar(value))
    else:
        group[key] = value


def one_per_group(name, optimizer, value):
    """A list with a value for every group, from one value or from a list of the right length."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        value = [value] * groups
    elif len(value) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
            f"param_groups has {groups}."
        )
    return [entry.clone() if isinstance(entry, Tensor) else entry for entry in value]


def _count_steps(optimizer):
    """Let ``optimizer.step`` leave a mark, by which a scheduler that steps too early is noticed."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    step = optimizer.step.__func__
    # Weak, or the optimizer would refer to itself.
    reference = weakref.ref(optimizer)

    @functools.wraps(step)
    def counted(*args, **kwargs):
        owner = reference()
        owner._opt_called = True
        return step(owner, *args, **kwargs)

    counted._wrapped_by_lr_sched = True
    optimizer.step = counted


class _enable_get_lr_call:
    """Inside, `get_lr` is called where it belongs, and does not warn."""

    def __init__(self, scheduler):
        self.scheduler = scheduler

    def __enter__(self):
        self.scheduler._get_lr_called_within_step = True

    def __exit__(self, *error):
        self.scheduler._get_lr_called_within_step = False


class LRScheduler:
    """Base class: a subclass computes in ``get_lr`` the rates of all groups at epoch ``last_epoch``.

    >>> import rushlight as torch
    >>> class Halving(torch.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [lr * 0.5**self.last_epoch for lr in self.base_lrs]
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = Halving(optimizer)
    >>> optimizer.step(); scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    __module__ = "rushlight.optim.lr_scheduler"

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer, last_epoch=-1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault("initial_lr", lr.clone() if isinstance(lr, Tensor) else lr)
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0.\nThis typically happens when:\n1. You're trying to resume training "
                    "from a checkpoint but haven't properly loaded the optimizer state\n2. You're using "
                    "last_epoch >= 0 for a fresh training run (not recommended)"
                )
        self.base_lrs = option_of_groups(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _count_steps(optimizer)
        self._initial_step()

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self):
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict):
        """Take over what ``state_dict`` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """The rates set last."""
        return self._last_lr

    def get_lr(self):
        """The rates of this epoch; called by ``step``."""
        raise NotImplementedError

    def step(self, epoch=None):
        """Go to the next epoch and set the rates."""
        if self._step_count == 1:
            self._warn_of_order()
        self._step_count += 1
        if epoch is not None:
            warn(EPOCH_DEPRECATION_WARNING)
        self._update_lr(epoch)

    def _warn_of_order(self):
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
                "initialization. Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. "
                "" + _ORDER_HINT
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and "
                "later, you should call them in the opposite order: `optimizer.step()` before "
                "`lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping the first value "
                "of the learning rate schedule. " + _ORDER_HINT
            )

    def _update_lr(self, epoch=None):
        with _enable_get_lr_call(self):
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed_form = getattr(self, "_get_closed_form_lr", None)
                rates = self.get_lr() if closed_form is None else closed_form()
        self._set_rates(rates)

    def _set_rates(self, rates):
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            set_option(group, "lr", lr)
        self._last_lr = option_of_groups(self.optimizer, "lr")

    def _warn_if_called_directly(self):
        if not self._get_lr_called_within_step:
            warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.")

    def _kept(self):
        """The rates as they are."""
        return option_of_groups(self.optimizer, "lr")

    def _scaled(self, factor):
        """The rates times a factor."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]


_LRScheduler = LRScheduler  # torch's older name
