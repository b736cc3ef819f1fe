"""Saving a module's parameters and buffers into a dictionary, and loading them back.

Start at ``ModuleState.state_dict`` and ``ModuleState.load_state_dict``. Both walk the tree of submodules;
what one module stores of its own is in ``_save_to_state_dict`` and ``_load_from_state_dict``, which
subclasses may override.
"""

import weakref
from collections import OrderedDict, namedtuple
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight import __future__ as _future
from rushlight._warn import warn
from rushlight.nn._call import _HookTable, _register
from rushlight.nn.parameter import Parameter, is_lazy
from rushlight.utils import swap_tensors

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    __str__ = __repr__


class _WithModule:
    """A load hook that also receives the module it belongs to; picklable, unlike a closure.

    The module is held weakly: it holds the hook, and is to be freed with its last reference.
    """

    def __init__(self, hook, module):
        self.hook = hook
        self.module = weakref.ref(module)

    def __call__(self, *args):
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args)

    def __getstate__(self):
        return {"hook": self.hook, "module": self.module()}

    def __setstate__(self, state):
        if state["module"] is None:
            raise RuntimeError("You are trying to revive the hook of a dead Module!")
        self.__init__(**state)


def _swap_loaded(current, loaded, assign):
    """Let a parameter or buffer change places with what ``module_load`` makes of the loaded one."""
    made = current.module_load(loaded, assign=assign)
    if made is loaded or made is current:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the "
            "inputs in module_load"
        )
    if isinstance(current, Parameter):
        if isinstance(made, Parameter):
            made.requires_grad_(current.requires_grad)
        else:
            made = Parameter(made, requires_grad=current.requires_grad)
    swap_tensors(current, made)


class ModuleState:
    """The part of Module that saves and restores its state."""

    _modules: dict[str, Any]

    _version = 1
    _state_dict_pre_hooks = _HookTable(False)
    _state_dict_hooks = _HookTable(False)
    _load_state_dict_pre_hooks = _HookTable(False)
    _load_state_dict_post_hooks = _HookTable(False)

    def get_extra_state(self):
        """Override to put more than tensors into the state dict."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. Please file an "
            "issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this "
            "bug."
        )

    def set_extra_state(self, state):
        """Override to receive what ``get_extra_state`` returned."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. Please file an "
            "issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this "
            "bug."
        )

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False) -> dict[str, Any]:
        """All parameters and persistent buffers by their dotted names.

        The tensors share memory with the module; ``keep_vars=False`` detaches them.

        >>> import rushlight as torch
        >>> list(torch.nn.Linear(2, 1).state_dict())
        ['weight', 'bias']
        """
        if args:
            warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for "
                "details.",
                FutureWarning,
            )
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        own = self.__dict__
        asked = "_forgotten" in own  # tables of hooks that somebody deleted are missed
        if asked or own.get("_state_dict_pre_hooks"):
            for hook in self._state_dict_pre_hooks.values():
                hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        if not asked and not own.get("_state_dict_hooks"):
            return destination
        for hook in self._state_dict_hooks.values():
            replaced = hook(self, destination, prefix, local_metadata)
            if getattr(hook, "_from_public_api", False):
                if replaced is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif replaced is not None:
                destination = replaced
        return destination

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Store this module's own tensors, not its children's."""
        for name, value in self._saved_tensors():
            destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not ModuleState.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def _saved_tensors(self):
        for name, param in self._parameters.items():
            if param is not None:
                yield name, param
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                yield name, buffer

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copy the tensors of ``state_dict`` into this module, or with ``assign`` put them in its place.

        >>> import rushlight as torch
        >>> a, b = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
        >>> a.load_state_dict(b.state_dict())
        <All keys matched successfully>
        """
        from collections.abc import Mapping

        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        # Hooks of submodules may change the dictionary; the caller's stays as it is.
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata
        missing_keys = []
        unexpected_keys = []
        error_msgs = []

        def load(module, state_dict, prefix):
            local_metadata = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            module._load_from_state_dict(
                state_dict, prefix, local_metadata, True, missing_keys, unexpected_keys, error_msgs
            )
            for name, child in module._modules.items():
                if child is not None:
                    child_prefix = prefix + name + "."
                    load(
                        child,
                        {k: v for k, v in state_dict.items() if k.startswith(child_prefix)},
                        child_prefix,
                    )
            incompatible = _IncompatibleKeys(missing_keys, unexpected_keys)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, incompatible) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to "
                        "return new values, if incompatible_keys need to be modified, it should be done "
                        "inplace."
                    )

        load(self, state_dict, "")
        if strict:
            for keys, kind in ((missing_keys, "Missing"), (unexpected_keys, "Unexpected")):
                if keys:
                    quoted = ", ".join(f'"{key}"' for key in keys)
                    error_msgs.insert(
                        kind == "Unexpected" and bool(missing_keys),
                        f"{kind} key(s) in state_dict: {quoted}. ",
                    )
        if error_msgs:
            raise RuntimeError(
                "Error(s) in loading state_dict for {}:\n\t{}".format(
                    type(self).__name__, "\n\t".join(error_msgs)
                )
            )
        return _IncompatibleKeys(missing_keys, unexpected_keys)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Load this module's own tensors, collecting what is missing, left over or wrong."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = dict(self._saved_tensors())
        for name, value in own.items():
            key = prefix + name
            if key in state_dict:
                self._load_tensor(name, value, state_dict[key], key, assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if type(self).set_extra_state is not ModuleState.set_extra_state:
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra_key:
                    name, dot, _ = key[len(prefix) :].partition(".")
                    if name not in (self._modules if dot else own):
                        unexpected_keys.append(key)

    def _load_tensor(self, name, current, loaded, key, assign, error_msgs):
        if not isinstance(loaded, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object '
                f"from checkpoint but received {type(loaded)}"
            )
            return
        lazy = is_lazy(current)
        # Checkpoints of old versions keep 0-dimensional values as one-element vectors.
        if not lazy and current.dim() == 0 and loaded.dim() == 1 and loaded.shape[0] == 1:
            loaded = loaded[0]
        if not lazy and loaded.shape != current.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {loaded.shape} from checkpoint, the "
                f"shape in current model is {current.shape}."
            )
            return
        if current.is_meta and not loaded.is_meta and not assign:
            warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the "
                "current model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the "
                "state dictionary to their corresponding key in the module instead of copying them in "
                "place?)"
            )
        swap = _future.get_swap_module_params_on_conversion()
        try:
            with rushlight.no_grad():
                if swap:
                    _swap_loaded(current, loaded, assign)
                    return
                if not assign:
                    current.copy_(loaded)
                    return
                if isinstance(current, Parameter):
                    if isinstance(loaded, Parameter):
                        loaded.requires_grad_(current.requires_grad)
                    else:
                        loaded = Parameter(loaded, requires_grad=current.requires_grad)
                setattr(self, name, loaded)
        except Exception as error:
            action = "swapping" if swap else "copying"
            error_msgs.append(
                f'While {action} the parameter named "{key}", whose dimensions in the model are '
                f"{current.size()} and whose dimensions in the checkpoint are {loaded.size()}, an "
                f"exception occurred : {error.args}."
            )

    def register_state_dict_pre_hook(self, hook):
        """Run ``hook(module, prefix, keep_vars)`` before the module's state is collected."""
        return _register(hook, self._state_dict_pre_hooks, False)

    def register_state_dict_post_hook(self, hook):
        """Run ``hook(module, state_dict, prefix, local_metadata)`` afterwards; it may change the dict."""
        hook._from_public_api = True
        return _register(hook, self._state_dict_hooks, False)

    def _register_state_dict_hook(self, hook):
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously "
                "registered via register_state_dict_post_hook"
            )
        return _register(hook, self._state_dict_hooks, False)

    def register_load_state_dict_pre_hook(self, hook):
        """Run ``hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)`` first."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        return _register(
            _WithModule(hook, self) if with_module else hook, self._load_state_dict_pre_hooks, False
        )

    def register_load_state_dict_post_hook(self, hook):
        """Run ``hook(module, incompatible_keys)`` after loading; it may change the two lists in place."""
        return _register(hook, self._load_state_dict_post_hooks, False)
