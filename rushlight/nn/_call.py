"""Calling a module: the path without hooks, the path with them, and how hooks are registered.

Start at ``ModuleCall.__call__``. A hook table is made the first time something asks for it, and from then on
the module takes the careful path; a module nobody hooked pays two flag tests on top of its ``forward``.
"""

import functools
from collections import OrderedDict

# The tables of global hooks are where torch has them, and where programs put empty ones in their place.
import rushlight.nn.module as _shared
from rushlight import _C, Tensor
from rushlight._warn import warn
from rushlight.utils.hooks import BackwardHook, RemovableHandle

# Set by the first global registration and never cleared: the careful path is right with or without hooks.
_global_hooked = False
_NOTHING = object()


class _HookTable:
    """An OrderedDict per module that comes into being when it is first looked at.

    Being no data descriptor, it is shadowed by the instance's own entry from then on.
    """

    def __init__(self, runs_in_call):
        self.runs_in_call = runs_in_call

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, module, owner=None):
        if module is None:
            return self
        state = module.__dict__
        if self.name in state.get("_forgotten", ()):
            raise AttributeError(f"'{type(module).__name__}' object has no attribute '{self.name}'")
        table = state[self.name] = OrderedDict()
        if self.runs_in_call:
            state["_hooked"] = True
        return table


def forget_hook_table(module, name):
    """Delete the hook table of that name, if it is one. It is missing then, as in modules of old versions."""
    if not hasattr(module, name) or not isinstance(getattr(type(module), name, None), _HookTable):
        return False
    state = module.__dict__
    del state[name]
    state["_forgotten"] = {*state.get("_forgotten", ()), name}
    return True


class ModuleCall:
    """The part of Module that runs ``forward`` and the hooks around it."""

    _hooked = False
    _backward_pre_hooks = _HookTable(True)
    _backward_hooks = _HookTable(True)
    _is_full_backward_hook = None
    _forward_pre_hooks = _HookTable(True)
    _forward_pre_hooks_with_kwargs = _HookTable(False)
    _forward_hooks = _HookTable(True)
    _forward_hooks_with_kwargs = _HookTable(False)
    _forward_hooks_always_called = _HookTable(False)

    def __call__(self, input=_NOTHING, /, *args, **kwargs):
        # Plain calls do this without coming here: native/python/module_call.cpp.
        try:
            # One positional argument, by far the commonest call, builds no tuple (-20 %).
            if args or kwargs or input is _NOTHING or self._hooked or _global_hooked:
                if input is not _NOTHING:
                    args = (input, *args)
                call = self._call_impl if self._hooked or _global_hooked else self.forward
                return call(*args, **kwargs)
            return self.forward(input)
        except Exception as error:
            _note_module(error, self)
            raise

    def _call_impl(self, *args, **kwargs):
        unfinished = _AlwaysCalled(self)
        result = None
        try:
            args, kwargs = self._run_forward_pre_hooks(args, kwargs)
            backward_hook = self._full_backward_hook()
            if backward_hook is not None:
                args = backward_hook.setup_input_hook(args)
            result = self.forward(*args, **kwargs)
            for table, always, with_kwargs in (
                (
                    _shared._global_forward_hooks,
                    _shared._global_forward_hooks_always_called,
                    _shared._global_forward_hooks_with_kwargs,
                ),
                (self._forward_hooks, self._forward_hooks_always_called, self._forward_hooks_with_kwargs),
            ):
                for key, hook in list(table.items()):
                    if key in always:
                        unfinished.done.add(key)
                    replaced = (
                        hook(self, args, kwargs, result) if key in with_kwargs else hook(self, args, result)
                    )
                    if replaced is not None:
                        result = replaced
            if backward_hook is not None:
                if not isinstance(result, (Tensor, tuple)):
                    warn(
                        "For backward hooks to be called, module output should be a Tensor or a tuple of "
                        f"Tensors but received {type(result)}"
                    )
                else:
                    result = backward_hook.setup_output_hook(result)
            self._attach_plain_backward_hooks(args, result)
            return result
        except Exception:
            unfinished.run(args, kwargs, result)
            raise

    # torch's names of the steps between a call and ``forward``; there is nothing to trace or compile here.
    _wrapped_call_impl = __call__
    _compiled_call_impl = None

    def _slow_forward(self, *input, **kwargs):
        return self.forward(*input, **kwargs)

    def _run_forward_pre_hooks(self, args, kwargs):
        for hook in list(_shared._global_forward_pre_hooks.values()):
            replaced = hook(self, args)
            if replaced is not None:
                args = replaced if isinstance(replaced, tuple) else (replaced,)
        with_kwargs = self._forward_pre_hooks_with_kwargs
        for key, hook in list(self._forward_pre_hooks.items()):
            if key in with_kwargs:
                replaced = hook(self, args, kwargs)
                if replaced is not None:
                    if not (isinstance(replaced, tuple) and len(replaced) == 2):
                        raise RuntimeError(
                            "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                            f"but got {replaced}."
                        )
                    args, kwargs = replaced
            else:
                replaced = hook(self, args)
                if replaced is not None:
                    args = replaced if isinstance(replaced, tuple) else (replaced,)
        return args, kwargs

    def _full_backward_hook(self):
        hooks, _ = self._get_backward_hooks()
        pre_hooks = self._get_backward_pre_hooks()
        return BackwardHook(self, hooks, pre_hooks) if hooks or pre_hooks else None

    def _get_backward_hooks(self):
        """The full hooks and the plain ones, global ones first."""
        full, plain = [], []
        if _shared._global_backward_hooks:
            (full if _shared._global_is_full_backward_hook else plain).extend(
                _shared._global_backward_hooks.values()
            )
        if self._backward_hooks:
            (full if self._is_full_backward_hook else plain).extend(self._backward_hooks.values())
        return full, plain

    def _get_backward_pre_hooks(self):
        return [*_shared._global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def _attach_plain_backward_hooks(self, args, result):
        _, hooks = self._get_backward_hooks()
        if not hooks:
            return
        first = result
        while not isinstance(first, Tensor):
            first = (
                next(v for v in first.values() if isinstance(v, Tensor))
                if isinstance(first, dict)
                else first[0]
            )
        node = first.grad_fn
        if node is None:
            return
        for hook in hooks:
            self._attach_plain_backward_hook(hook, node, result)
        self._maybe_warn_non_full_backward_hook(args, result, node)

    def _attach_plain_backward_hook(self, hook, node, result):
        node.register_hook(_bound_to(hook, self))

    def _maybe_warn_non_full_backward_hook(self, inputs, result, grad_fn):
        def say(text):
            warn(text, FutureWarning)

        results = (result,) if isinstance(result, Tensor) else result
        if not (isinstance(results, tuple) and all(isinstance(r, Tensor) for r in results)):
            return say(
                "Using non-full backward hooks on a Module that does not return a single Tensor or a tuple "
                "of Tensors is deprecated and will be removed in future versions. This hook will be missing "
                "some of the grad_output. Please use register_full_backward_hook to get the documented "
                "behavior."
            )
        inputs = (inputs,) if isinstance(inputs, Tensor) else inputs
        if not (isinstance(inputs, tuple) and all(isinstance(i, Tensor) for i in inputs)):
            return say(
                "Using non-full backward hooks on a Module that does not take as input a single Tensor or a "
                "tuple of Tensors is deprecated and will be removed in future versions. This hook will be "
                "missing some of the grad_input. Please use register_full_backward_hook to get the "
                "documented behavior."
            )
        if any(r.grad_fn is not grad_fn for r in results if r.grad_fn is not None):
            return say(
                "Using a non-full backward hook when outputs are generated by different autograd Nodes is "
                "deprecated and will be removed in future versions. This hook will be missing some "
                "grad_output. Please use register_full_backward_hook to get the documented behavior."
            )
        # The node's own inputs should be exactly the module's inputs.
        inputs_grad_fn = {i.grad_fn for i in inputs if i.grad_fn is not None}
        next_functions = {n[0] for n in grad_fn.next_functions}
        if inputs_grad_fn != next_functions:
            return say(
                "Using a non-full backward hook when the forward contains multiple autograd Nodes is "
                "deprecated and will be removed in future versions. This hook will be missing some "
                "grad_input. Please use register_full_backward_hook to get the documented behavior."
            )
        return None

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Run ``hook(module, args)`` before ``forward``; what it returns replaces the arguments.

        >>> import rushlight as torch
        >>> relu = torch.nn.ReLU()
        >>> handle = relu.register_forward_pre_hook(lambda module, args: (-args[0],))
        >>> relu(torch.tensor([-1.0, 2.0]))
        tensor([1., 0.])
        """
        return _register(
            hook, self._forward_pre_hooks, prepend, [(self._forward_pre_hooks_with_kwargs, with_kwargs)]
        )

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Run ``hook(module, args, output)`` after ``forward``; what it returns replaces the output.

        >>> import rushlight as torch
        >>> relu = torch.nn.ReLU()
        >>> handle = relu.register_forward_hook(lambda module, args, output: output + 1)
        >>> relu(torch.tensor([-1.0, 2.0]))
        tensor([1., 3.])
        """
        marks = [
            (self._forward_hooks_with_kwargs, with_kwargs),
            (self._forward_hooks_always_called, always_call),
        ]
        return _register(hook, self._forward_hooks, prepend, marks)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Run ``hook(module, grad_output)`` when the gradient of the output is known; may replace it."""
        return _register(hook, self._backward_pre_hooks, prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """Run ``hook(module, grad_input, grad_output)`` once the gradient of the inputs is known."""
        if self._is_full_backward_hook is False:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please "
                "use only one of them."
            )
        self._is_full_backward_hook = True
        return _register(hook, self._backward_hooks, prepend)

    def register_backward_hook(self, hook):
        """Deprecated in torch: the hook sees the gradients of the last node of ``forward`` only."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please "
                "use only one of them."
            )
        self._is_full_backward_hook = False
        return _register(hook, self._backward_hooks, False)


class _AlwaysCalled:
    """Hooks registered with always_call=True that an exception must still reach."""

    def __init__(self, module):
        self.module = module
        self.done = set()

    def run(self, args, kwargs, result):
        module = self.module
        for kind, table, always, with_kwargs in (
            (
                "global module",
                _shared._global_forward_hooks,
                _shared._global_forward_hooks_always_called,
                _shared._global_forward_hooks_with_kwargs,
            ),
            (
                "module",
                module._forward_hooks,
                module._forward_hooks_always_called,
                module._forward_hooks_with_kwargs,
            ),
        ):
            for key, hook in list(table.items()):
                if key not in always or key in self.done:
                    continue
                try:
                    replaced = (
                        hook(module, args, kwargs, result)
                        if key in with_kwargs
                        else hook(module, args, result)
                    )
                    if replaced is not None:
                        result = replaced
                except Exception as error:
                    warn(
                        f"{kind} forward hook with ``always_call=True`` raised an exception that was "
                        f"silenced as another error was raised in forward: {error}"
                    )


def _bound_to(hook, module):
    """The hook with the module before its arguments, under its own name: errors of the engine tell it."""

    def call(*grads):
        return hook(module, *grads)

    functools.update_wrapper(call, hook)
    return call


def _register(hook, table, prepend, marks=()):
    """Put the hook into its table and its id into each side table whose mark is set."""
    handle = RemovableHandle(table, extra_dict=[extra for extra, _ in marks] or None)
    table[handle.id] = hook
    for extra, marked in marks:
        if marked:
            extra[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
        for extra, marked in marks:
            if marked:
                extra.move_to_end(handle.id, last=False)
    return handle


def _register_global(hook, table, marks=()):
    global _global_hooked
    _global_hooked = True
    _C.hook_all_modules()
    return _register(hook, table, False, marks)


def register_module_forward_pre_hook(hook):
    """Run ``hook(module, args)`` before the ``forward`` of every module."""
    return _register_global(hook, _shared._global_forward_pre_hooks)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Run ``hook(module, args, output)`` after the ``forward`` of every module."""
    marks = [
        (_shared._global_forward_hooks_with_kwargs, with_kwargs),
        (_shared._global_forward_hooks_always_called, always_call),
    ]
    return _register_global(hook, _shared._global_forward_hooks, marks)


def register_module_full_backward_pre_hook(hook):
    """Run ``hook(module, grad_output)`` for every module whose output's gradient is known."""
    return _register_global(hook, _shared._global_backward_pre_hooks)


def register_module_full_backward_hook(hook):
    """Run ``hook(module, grad_input, grad_output)`` for every module whose inputs' gradient is known."""
    if _shared._global_is_full_backward_hook is False:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please "
            "use only one of them."
        )
    _shared._global_is_full_backward_hook = True
    return _register_global(hook, _shared._global_backward_hooks)


def register_module_backward_hook(hook):
    """Deprecated in torch: the hook sees the gradients of the last node of each ``forward`` only."""
    if _shared._global_is_full_backward_hook is True:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please "
            "use only one of them."
        )
    _shared._global_is_full_backward_hook = False
    return _register_global(hook, _shared._global_backward_hooks)


def _note_module(error, module):
    """Tell in which module an error arose: ``In module Net.layers.2 (Linear)``.

    Every module on the way out puts its name for the inner one before the path; the outermost completes it.
    The text is a note on the exception: type and message stay as they are, and calls without error pay
    nothing.
    """
    state = error.__dict__
    # Ids, not modules: an exception may be pickled, and the traceback keeps the modules alive meanwhile.
    child_id, path, kind, previous = state.get("_module_path", (None, "", type(module).__name__, None))
    if child_id == id(module):
        return  # a call that only forwards to itself
    note = f"In module {type(module).__name__}"
    if child_id is not None:
        names = [name for name, found in module.named_modules() if id(found) == child_id]
        path = ".".join(filter(None, [names[0] if names else f"<{kind}>", path]))
        note += f".{path} ({kind})"
    if previous in getattr(error, "__notes__", ()):
        error.__notes__.remove(previous)
    error.add_note(note)
    state["_module_path"] = (id(module), path, kind, note)
