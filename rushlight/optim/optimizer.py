"""Optimizer: parameter groups, state, and what every optimizer has in common.

An optimizer of this package derives from ``GroupOptimizer`` and says in ``_update`` how one group of
parameters moves; a user's own may derive from ``Optimizer`` and define ``step``.
"""

import functools
from collections import OrderedDict, defaultdict
from copy import deepcopy

import rushlight
from rushlight import _C, Tensor
from rushlight._warn import warn
from rushlight.nn.module import typename
from rushlight.optim._authors import (  # noqa: F401
    Args,
    DeviceDict,
    DeviceDtypeDict,
    GlobalOptimizerPostHook,
    GlobalOptimizerPreHook,
    Indices,
    Kwargs,
    ParamsT,
    StateDict,
    TensorListList,
    _capturable_doc,
    _default_to_fused_or_foreach,
    _device_dtype_check_for_fused,
    _differentiable_doc,
    _disable_dynamo_if_unsupported,
    _foreach_doc,
    _fused_doc,
    _get_capturable_supported_devices,
    _get_scalar_dtype,
    _get_value,
    _maximize_doc,
    _params_doc,
    _stack_if_compiling,
    _to_scalar,
    _use_grad_for_differentiable,
    _view_as_real,
    group_tensors_by_device_and_dtype,
    params_t,
)
from rushlight.utils.hooks import RemovableHandle

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]

_global_optimizer_pre_hooks: dict = OrderedDict()
_global_optimizer_post_hooks: dict = OrderedDict()
# Stays set once a hook was registered anywhere: the path with hooks is right without any, too.
_step_hooked = False
# What each step asks for.
_profiler_enabled, _set_grad_enabled = _C._profiler_enabled, _C.set_grad_enabled
_with_gradients = _C.with_gradients


class _RequiredParameter:
    """Stands for an option that every group must give itself."""

    def __repr__(self):
        return "<required parameter>"


required = _RequiredParameter()


def register_optimizer_step_pre_hook(hook):
    """Run ``hook(optimizer, args, kwargs)`` before every optimizer's step; it may return new arguments."""
    return _register(hook, _global_optimizer_pre_hooks)


def register_optimizer_step_post_hook(hook):
    """Run ``hook(optimizer, args, kwargs)`` after every optimizer's step."""
    return _register(hook, _global_optimizer_post_hooks)


def _register(hook, table, prepend=False):
    global _step_hooked
    _step_hooked = True
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def _named(optimizer, what):
    """A block that a profile shows as this optimiser's."""
    from rushlight.autograd.profiler import record_function

    return record_function(f"Optimizer.{what}#{type(optimizer).__name__}.{what}")


def _with_hooks(step):
    """A ``step`` method around which registered hooks run."""

    @functools.wraps(step)
    def hooked_step(*args, **kwargs):
        if _profiler_enabled():
            with _named(args[0], "step"):
                return step_with_hooks(*args, **kwargs)
        return step_with_hooks(*args, **kwargs) if _step_hooked else step(*args, **kwargs)

    def step_with_hooks(*args, **kwargs):
        self = args[0]
        for hook in [*_global_optimizer_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()]:
            replaced = hook(self, args, kwargs)
            if replaced is not None:
                if not (isinstance(replaced, tuple) and len(replaced) == 2):
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got {replaced}."
                    )
                args, kwargs = replaced
        result = step(*args, **kwargs)
        for hook in [*self._optimizer_step_post_hooks.values(), *_global_optimizer_post_hooks.values()]:
            hook(self, args, kwargs)
        return result

    hooked_step.hooked = True
    return hooked_step


_HOOK_TABLES = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class Optimizer:
    """Base class: holds groups of parameters with their options, and a state for each parameter.

    >>> import rushlight as torch
    >>> class SignDescent(torch.optim.Optimizer):
    ...     @torch.no_grad()
    ...     def step(self):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p -= group["lr"] * p.grad.sign()
    >>> x = torch.nn.Parameter(torch.tensor([1.0]))
    >>> x.square().sum().backward()
    >>> SignDescent([x], {"lr": 0.25}).step()
    >>> x
    Parameter containing:
    tensor([0.7500], requires_grad=True)
    """

    # Options that a group from an older checkpoint may lack, and what they were then.
    _added_options: dict = {}

    def __init__(self, params, defaults):
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + typename(params)
            )
        self.defaults = defaults
        self._set_missing_tables()
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _set_missing_tables(self):
        for table in _HOOK_TABLES:
            self.__dict__.setdefault(table, OrderedDict())
        cls = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = _with_hooks(cls.step)

    # What a ``step`` written after torch's calls: nothing is recorded on a GPU, nothing is compiled.

    def _cuda_graph_capture_health_check(self):
        """Nothing to check: there are no graphs of a GPU."""

    _accelerator_graph_capture_health_check = _cuda_graph_capture_health_check

    def _optimizer_step_code(self):
        """Where a compiler would find the code of the step."""

    def _patch_step_function(self):
        """Let hooks run around the ``step`` of this class."""
        self._set_missing_tables()

    profile_hook_step = staticmethod(_with_hooks)
    _group_tensors_by_device_and_dtype = staticmethod(group_tensors_by_device_and_dtype)
    OptimizerPreHook = GlobalOptimizerPreHook
    OptimizerPostHook = GlobalOptimizerPostHook

    @staticmethod
    def _process_value_according_to_param_policy(param, value, param_id, param_groups, key=None):
        """A loaded state tensor as the parameter needs it; ``param_groups`` tells its options."""
        group = next((group for group in param_groups or () if param_id in group["params"]), {})
        return _as_state_of(param, value, group, key)

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._set_missing_tables()
        self.defaults.setdefault("differentiable", False)
        for group in self.param_groups:
            for name, value in self._added_options.items():
                group.setdefault(name, value)

    def __repr__(self):
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group.keys()):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"

    def step(self, closure=None):
        """Move the parameters once; ``closure`` computes the loss anew and returns it."""
        raise NotImplementedError

    def zero_grad(self, set_to_none=True):
        """Drop all gradients, or with ``set_to_none=False`` fill them with zeros."""
        if _C._profiler_enabled():
            with _named(self, "zero_grad"):
                return self._zero_grad(set_to_none)
        return self._zero_grad(set_to_none)

    def _zero_grad(self, set_to_none):
        for group in self.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if set_to_none:
                    param.grad = None
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    def add_param_group(self, param_group):
        """Add a dictionary with "params" and the options that differ from the defaults.

        >>> import rushlight as torch
        >>> a, b = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))
        >>> optimizer = torch.optim.SGD([a], lr=0.1)
        >>> optimizer.add_param_group({"params": [b], "lr": 0.5})
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.1, 0.5]
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of "
                "tensors in sets will change between runs. Please use a list instead."
            )
        params = list(params)
        names = None
        if any(isinstance(param, tuple) for param in params):
            if not all(isinstance(param, tuple) for param in params):
                raise ValueError(
                    "all optimizer params should be with/without names. Some param names are missing"
                )
            names = [name for name, _ in params]
            params = [param for _, param in params]
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {typename(param)}"
                )
            if not self.defaults.get("differentiable", None) and not (param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        self._check_names(names)
        # The caller's dictionary stays the group, as in torch: options set on it later count.
        param_group["params"] = params
        if names is not None:
            param_group["param_names"] = names
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    f"parameter group didn't specify a value of required optimization parameter {name}"
                )
            param_group.setdefault(name, default)
        if len(params) != len(set(params)):
            warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause "
                "an error; see github.com/pytorch/pytorch/issues/40967 for more information"
            )
        known = {param for group in self.param_groups for param in group["params"]}
        if not known.isdisjoint(params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def _check_names(self, names):
        """Either all groups name their parameters or none does."""
        if self.param_groups and ("param_names" in self.param_groups[0]) != (names is not None):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'without' if names is None else 'with'} names to the optimizer"
            )

    # Saving and loading

    def state_dict(self):
        """The state and the groups, with parameters replaced by their numbers; torch can load it.

        >>> import rushlight as torch
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
        >>> optimizer.state_dict()["param_groups"][0]["params"]
        [0]
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers = {}
        for group in self.param_groups:
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
        groups = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            groups.append(packed)
        state = {
            (numbers[id(key)] if isinstance(key, Tensor) else key): value for key, value in self.state.items()
        }
        state_dict = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            replaced = hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        return state_dict

    def load_state_dict(self, state_dict):
        """Take over the state and options of ``state_dict()``, ours or torch's."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        groups = self.param_groups
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(
            len(ours["params"]) != len(saved["params"])
            for ours, saved in zip(groups, saved_groups, strict=True)
        ):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's "
                "group"
            )
        params, group_of = {}, {}
        for ours, saved in zip(groups, saved_groups, strict=True):
            for number, param in zip(saved["params"], ours["params"], strict=True):
                params[number] = param
                group_of[number] = saved
        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = _as_state_of(params[key], value, group_of[key])
            else:
                state[key] = value
        for ours, saved in zip(groups, saved_groups, strict=True):
            saved["params"] = ours["params"]
            if "param_names" in ours:
                saved.setdefault("param_names", ours["param_names"])
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # Hooks

    def register_step_pre_hook(self, hook):
        """Run ``hook(optimizer, args, kwargs)`` before each step; it may return new arguments."""
        return _register(hook, self._optimizer_step_pre_hooks)

    def register_step_post_hook(self, hook):
        """Run ``hook(optimizer, args, kwargs)`` after each step."""
        return _register(hook, self._optimizer_step_post_hooks)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Run ``hook(optimizer)`` before ``state_dict``."""
        return _register(hook, self._optimizer_state_dict_pre_hooks, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Run ``hook(optimizer, state_dict)`` after ``state_dict``; what it returns takes its place."""
        return _register(hook, self._optimizer_state_dict_post_hooks, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Run ``hook(optimizer, state_dict)`` before loading; what it returns takes its place."""
        return _register(hook, self._optimizer_load_state_dict_pre_hooks, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Run ``hook(optimizer)`` after loading."""
        return _register(hook, self._optimizer_load_state_dict_post_hooks, prepend)


def _as_state_of(param, value, group, key=None):
    """Loaded state on the parameter's device and in its dtype, all the way down; step counts stay."""
    if isinstance(value, Tensor):
        if key == "step":
            if group.get("capturable") or group.get("fused"):
                return value.to(dtype=rushlight.float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {name: _as_state_of(param, entry, group, name) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_as_state_of(param, entry, group) for entry in value)
    return value


class GroupOptimizer(Optimizer):
    """An optimizer whose ``_update(group)`` moves the parameters of one group that have a gradient."""

    # State that is one number for each parameter, kept in a tensor.
    _numbers: tuple[str, ...] = ("step",)

    def __init__(self, params, defaults):
        super().__init__(params, defaults)
        if self.defaults.get("fused"):
            if self.defaults.get("differentiable"):
                raise RuntimeError("`fused` does not support `differentiable`")
            if self.defaults.get("foreach"):
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
            # Tells GradScaler to hand over its scale instead of dividing the gradients itself.
            self._step_supports_amp_scaling = True

    def __setstate__(self, state):
        super().__setstate__(state)
        for param_state in self.state.values():
            if not isinstance(param_state, dict):
                continue  # a hook's own entry
            for name in self._numbers:
                # Checkpoints of old versions have Python numbers there.
                if not isinstance(param_state.get(name, None), (Tensor, type(None))):
                    param_state[name] = new_step_count().fill_(float(param_state[name]))

    def _update(self, group):
        raise NotImplementedError

    @_with_hooks
    def step(self, closure=None):
        """Move the parameters once; ``closure`` computes the loss anew and returns it."""
        loss = None
        if closure is not None:
            with rushlight.enable_grad():
                loss = closure()
        # The bare switch, not its context manager: a step of a small model takes few microseconds.
        recorded = _set_grad_enabled(self.defaults.get("differentiable", False))
        try:
            for group in self.param_groups:
                if group.get("fused") and not self._unscaled(group):
                    continue
                self._update(group)
        finally:
            _set_grad_enabled(recorded)
        return loss

    def _moving(self, group):
        """The parameters of the group with a gradient, each with it: negated if the group maximizes."""
        pairs = self._graded(group)
        if not self._takes_sparse:
            for _, grad in pairs:
                self._refuse_sparse(grad)
        return [(param, -grad) for param, grad in pairs] if group["maximize"] else pairs

    # Whether a step can be made of sparse gradients.
    _takes_sparse = False

    def _refuse_sparse(self, grad):
        if grad.is_sparse:
            ours = (cls for cls in type(self).__mro__ if cls.__module__.startswith(__package__))
            raise RuntimeError(f"{next(ours).__name__} does not support sparse gradients")

    def _graded(self, group):
        """The parameters of the group that have a gradient, each with it."""
        return [(param, grad) for param in group["params"] if (grad := param.grad) is not None]

    def _columns(self, group):
        """The same as two lists, of parameters and of gradients."""
        return _with_gradients(group["params"])

    def _state_of(self, param, grad, group):
        """The state of the parameter, made at its first step."""
        return self.state[param]

    def _unscaled(self, group):
        """Apply what a GradScaler left for a fused step; False if there is nothing to move by."""
        scale, found = getattr(self, "grad_scale", None), getattr(self, "found_inf", None)
        if scale is None and found is None:
            return True
        pairs = self._graded(group)
        moves = take_scale([grad for _, grad in pairs], scale, found)
        if not moves:
            for param, grad in pairs:
                self._state_of(param, grad, group)
        return moves

    def _init_group(self, group, params_with_grad, grads, *state_lists):
        """Fill the lists that a functional form takes, making state where there is none."""
        for param, grad in self._graded(group):
            params_with_grad.append(param)
            grads.append(grad)
            state = self._state_of(param, grad, group)
            for key, values in zip(self._listed, state_lists, strict=True):
                if key in state or self._lists_none(key, group):
                    values.append(state.get(key))
        return any(param.is_complex() for param in params_with_grad)

    # The state that ``_init_group`` hands out, in its order.
    _listed: tuple[str, ...] = ()

    def _lists_none(self, key, group):
        """Whether a state that does not exist takes its place in the list as None."""
        return False


def options_of(arguments, names):
    """The options of an optimiser by name, in torch's order, from the arguments of its ``__init__``."""
    return {name: arguments[name] for name in names.split()}


def check_at_least_zero(**options):
    """Refuse negative options in torch's words: ``Invalid weight_decay value: -1``."""
    for name, value in options.items():
        if not 0.0 <= value:  # noqa: SIM300
            spelled = {"lr": "learning rate", "eps": "epsilon value"}.get(name, f"{name} value")
            raise ValueError(f"Invalid {spelled}: {value}")


def check_tensor_lr(lr):
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def check_betas(betas):
    for i in (0, 1):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def check_not_capturable(
    group, what="params and state_steps", devices="'cuda', 'xpu', 'hpu', 'privateuseone', 'xla'"
):
    """``capturable`` is about recording GPU graphs; torch refuses it on the CPU, at the first step."""
    if group["capturable"]:
        raise AssertionError(f"If capturable=True, {what} must be on supported devices: [{devices}].")


def as_number(value):
    """A Python number from an option that may also be a tensor without dimensions. What else it is stays:
    the operation that it goes to refuses it in torch's words."""
    if value.__class__ is float or value.__class__ is int:
        return value
    if isinstance(value, Tensor) and value.dim() == 0 and value.dtype != rushlight.bool:
        return value.item()
    return value


def as_rate(lr):
    """The same of a learning rate, whose only element may have dimensions."""
    return as_number(_to_scalar(lr)) if isinstance(lr, Tensor) else lr


def real_view(tensor):
    """Optimizers treat a complex parameter as the pairs of its real and imaginary parts."""
    return rushlight.view_as_real(tensor) if tensor.is_complex() else tensor


def root_plus(square, eps, differentiable):
    """``sqrt(square) + eps``; to be differentiated, of a copy, since later steps write to the square."""
    return square.clone().sqrt() + eps if differentiable else square.sqrt().add_(eps)


def check_fused(params):
    """``fused`` is for real floating-point parameters, as in torch."""
    for param in params:
        _device_dtype_check_for_fused(param)


def take_scale(grads, grad_scale, found_inf):
    """Divide the gradients by a GradScaler's scale; False, and nothing done, if some are not finite."""
    if found_inf is not None and as_number(found_inf) == 1:
        return False
    if grad_scale is not None:
        for grad in grads:
            grad.div_(grad_scale)
    return True


def new_step_count():
    # A float32 scalar, because torch keeps it so in state dicts (float64 under that default dtype).
    return rushlight.tensor(0.0, dtype=_get_scalar_dtype())


def at_places_of(grad, values):
    """A sparse tensor with these values where `grad` has its own."""
    return rushlight.sparse_coo_tensor(grad._indices(), values, grad.shape)


def zeros_for(param):
    """A state tensor of the parameter's shape and layout."""
    return rushlight.zeros_like(param, memory_format=rushlight.preserve_format)
