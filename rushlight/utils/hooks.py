"""Handles that take a hook away again, and the plumbing of a module's backward hooks."""

from _weakref import ref as weak_ref
from collections import OrderedDict

from rushlight._warn import warn

__all__ = ["RemovableHandle", "BackwardHook", "unserializable_hook", "warn_if_has_hooks"]


class RemovableHandle:
    """Returned by every ``register_*hook``; ``remove()`` undoes the registration. Also a context manager.

    >>> import rushlight.nn as nn
    >>> with nn.ReLU().register_forward_hook(lambda module, args, output: None):
    ...     pass
    """

    next_id = 0

    def __init__(self, hooks_dict, *, extra_dict=None):
        # Weak, so that a handle kept around does not keep the module or tensor alive.
        self.hooks_dict_ref = weak_ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        if extra_dict is None:
            extra_dict = ()
        elif isinstance(extra_dict, dict):
            extra_dict = (extra_dict,)
        self.extra_dict_ref = tuple(weak_ref(extra) for extra in extra_dict)

    def remove(self):
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            table = ref()
            if table is not None:
                table.pop(self.id, None)

    def __getstate__(self):
        if not self.extra_dict_ref:
            return (self.hooks_dict_ref(), self.id)
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref))

    def __setstate__(self, state):
        def reference(table):
            # The table died before the handle was saved: an empty one makes remove() do nothing.
            return weak_ref(OrderedDict() if table is None else table)

        self.hooks_dict_ref = reference(state[0])
        self.id = state[1]
        self.extra_dict_ref = tuple(map(reference, state[2])) if len(state) > 2 else ()
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.remove()


def unserializable_hook(f):
    """Mark a tensor hook as one that pickling drops without a warning."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor):
    """Say which hooks of ``tensor`` are lost when it is pickled."""
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can "
                f"decorate the function with @torch.utils.hooks.unserializable_hook to suppress this warning"
            )


class BackwardHook:
    """Runs a module's full backward hooks and backward pre-hooks for one call of the module.

    Identity nodes are put around the call: one behind all inputs, one before all outputs. The gradient that
    reaches the output node is ``grad_output``; the one leaving the input node is ``grad_input``.
    """

    def __init__(self, module, user_hooks, user_pre_hooks):
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs = None
        # Positions of the tensors among the inputs; None if none requires grad.
        self.input_tensors_index = self.output_tensors_index = None
        self._constant = {}
        self.n_inputs = -1
        self.n_outputs = -1

    def setup_input_hook(self, args):
        from rushlight import Tensor

        # Tensors that need no gradient have one all the same for the hook, of zeros.
        self._constant = {
            i: (arg.shape, arg.dtype, arg.device)
            for i, arg in enumerate(args)
            if isinstance(arg, Tensor) and not arg.requires_grad
        }
        args, self.input_tensors_index = self._apply_on_tensors(self._set_user_hook, args)
        self.n_inputs = len(args)
        return args

    def _set_user_hook(self, grad_fn):
        """Calls the user's hooks with the gradients that leave this node."""
        import rushlight

        constant = self._constant

        def zeros(shape, dtype, device):
            return rushlight.zeros(shape, dtype=dtype, device=device)

        def hook(grad_input, _):  # under this name errors of the engine tell it
            if self.grad_outputs is None:
                return None  # no gradient came through the outputs
            grads = self._pack_with_none(self.input_tensors_index, grad_input, self.n_inputs)
            grads = tuple(zeros(*constant[i]) if i in constant else grad for i, grad in enumerate(grads))
            for user_hook in self.user_hooks:
                grads = _replaced(
                    user_hook(self.module, grads, self.grad_outputs), grads, "hook", "grad_input"
                )
            self.grad_outputs = None
            grads = tuple(None if i in constant else grad for i, grad in enumerate(grads))
            return self._unpack_none(self.input_tensors_index, grads)

        grad_fn.register_hook(hook)

    def setup_output_hook(self, args):
        # After the identity has run: what hooks on the node before it have made of the gradient.
        def hook(_, grad_output):
            grads = self._pack_with_none(self.output_tensors_index, grad_output, self.n_outputs)
            for user_hook in self.user_pre_hooks:
                grads = _replaced(user_hook(self.module, grads), grads, "pre hook", "grad_output")
            self.grad_outputs = grads
            if self.input_tensors_index is None:
                self._fire_without_grad_input()
            return self._unpack_none(self.output_tensors_index, grads)

        outputs = args if isinstance(args, tuple) else (args,)
        attach = lambda node: node.register_hook(hook)  # noqa: E731
        outputs, self.output_tensors_index = self._apply_on_tensors(attach, outputs)
        self.n_outputs = len(outputs)
        return outputs if isinstance(args, tuple) else outputs[0]

    def _fire_without_grad_input(self):
        warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since "
            "no inputs require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
            "#torch.nn.Module.register_full_backward_hook for more details."
        )
        for hook in self.user_hooks:
            replaced = hook(self.module, (None,) * self.n_inputs, self.grad_outputs)
            if replaced is not None and not (
                isinstance(replaced, tuple) and all(g is None for g in replaced)
            ):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or "
                    "None for all gradients."
                )
        self.grad_outputs = None

    def _apply_on_tensors(self, fn, args):
        """Passes the tensors of a tuple through one identity node, which `fn` is given. Returns the tuple,
        and where the tensors are; None if no gradient flows."""
        from rushlight import Tensor, is_grad_enabled

        index = [i for i, value in enumerate(args) if isinstance(value, Tensor)]
        if not is_grad_enabled() or not any(args[i].requires_grad for i in index):
            return args, None
        outputs = _identity_function().apply(*(args[i] for i in index))
        nodes = [output.grad_fn for output in outputs if output.grad_fn is not None]
        fn(nodes[0])
        passed = list(args)
        for i, output in zip(index, outputs, strict=True):
            passed[i] = output
        named = hasattr(args, "_fields")  # a named tuple stays one
        return type(args)(*passed) if named else tuple(passed), index

    def _pack_with_none(self, indices, values, size):
        """The values at their places in a tuple of this size."""
        found = [None] * size
        for i, value in zip(indices, values, strict=True):
            found[i] = value
        return tuple(found)

    def _unpack_none(self, indices, values):
        """The values at these places."""
        return tuple(values[i] for i in indices)


def _replaced(returned, grads, kind, what):
    if returned is None:
        return grads
    if len(returned) != len(grads):
        raise RuntimeError(
            f"Backward {kind} returned an invalid number of {what}, got {len(returned)}, but expected "
            f"{len(grads)}"
        )
    return tuple(returned)


def _identity_function():
    """The autograd Function behind the hooks, made on first use: importing nn does not need autograd."""
    global _identity_function_class
    if _identity_function_class is None:
        import rushlight.autograd

        if not hasattr(rushlight.autograd, "Function"):
            raise NotImplementedError(
                "full backward hooks of modules need autograd.Function, which is missing"
            )

        class BackwardHookFunction(rushlight.autograd.Function):
            @staticmethod
            def forward(ctx, *args):
                ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
                return args

            @staticmethod
            def backward(ctx, *grads):
                return grads

        _identity_function_class = BackwardHookFunction
    return _identity_function_class


_identity_function_class = None
