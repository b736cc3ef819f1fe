"""The recorded graph as users see it: nodes, gradient edges, hooks on nodes and on what they save."""

from __future__ import annotations

import _thread
import abc
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Sequence

from rushlight import _C
from rushlight._annotations import Any
from rushlight._deferred import contextmanager
from rushlight._type_names import type_name as class_name
from rushlight.utils.hooks import RemovableHandle

__all__ = [
    "saved_tensors_hooks", "save_on_cpu", "disable_saved_tensors_hooks", "register_multi_grad_hook",
    "allow_mutation_on_saved_tensors", "Node", "GradientEdge", "get_gradient_edge", "increment_version",
    "region_activation_memory_budget", "set_warn_on_accumulate_grad_stream_mismatch",
    "set_override_stale_capture_stream",
]  # fmt: skip

Tensor = _C.Tensor


class Node(abc.ABC):
    """What every node of the graph is an instance of: `isinstance(y.grad_fn, Node)`. None inherits it."""

    @abc.abstractmethod
    def name(self) -> str:
        """The name of the node's class."""

    @property
    @abc.abstractmethod
    def next_functions(self) -> tuple:
        """The nodes that get this one's gradients, each with the number of its output."""

    @abc.abstractmethod
    def metadata(self) -> dict:
        """A dict for anything a program wants to remember with the node."""

    @property
    @abc.abstractmethod
    def _input_metadata(self) -> list:
        """Shape, dtype and device of the gradients that the node takes."""

    @abc.abstractmethod
    def _register_hook_dict(self, tensor: Tensor) -> None:
        """Runs the hooks in `tensor._backward_hooks` on the gradient of `tensor`."""

    @abc.abstractmethod
    def register_hook(self, fn: Callable) -> RemovableHandle:
        """Calls `fn(grad_inputs, grad_outputs)` after the node ran; its result replaces grad_inputs."""

    @abc.abstractmethod
    def register_prehook(self, fn: Callable) -> RemovableHandle:
        """Calls `fn(grad_outputs)` before the node runs; its result replaces grad_outputs."""

    @abc.abstractmethod
    def _sequence_nr(self) -> int:
        """The number of the node, which grows from one to the next."""

    @classmethod
    def __subclasshook__(cls, subclass: type) -> bool:
        if cls is Node and issubclass(subclass, _C.Node) and not hasattr(subclass, "_backward_cls"):
            return True
        return NotImplemented


GradientEdge = namedtuple("GradientEdge", ("node", "output_nr", "ownership_token"), defaults=(None,))
GradientEdge.__annotations__ = {"node": Node, "output_nr": int, "ownership_token": Node | None}
GradientEdge.__doc__ = """Where in the graph a tensor's gradient flows: a node, and which of its outputs.

    `backward` and `grad` take it in the place of the tensor, which need not be kept alive.
    """


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge along which the gradient of `tensor` flows.

    >>> x = rushlight.ones(2, requires_grad=True)
    >>> edge = rushlight.autograd.graph.get_gradient_edge(x * 2)
    >>> rushlight.autograd.grad(edge, x, rushlight.ones(2))
    (tensor([2., 2.]),)
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        )
    if (
        tensor.is_leaf and _C.is_inference_mode_enabled()
    ):  # torch asks a view of it, which has no history here
        raise AttributeError("'NoneType' object has no attribute 'next_functions'")
    edge = GradientEdge(*_C.gradient_edge(tensor))
    if not hasattr(edge.node, "_forward_cls") or tensor.is_nested:
        return edge
    # torch's nodes of custom functions need one after them to be kept alive.
    before = _C.set_grad_enabled(True)
    try:
        return edge._replace(ownership_token=tensor.view_as(tensor).grad_fn)
    finally:
        _C.set_grad_enabled(before)


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Whether to warn of gradients from another stream. There are no streams, so nothing to warn of."""
    if not isinstance(enabled, bool):
        raise RuntimeError(f"enabled must be a bool, but got {class_name(enabled)}")


def set_override_stale_capture_stream(enabled: bool) -> None:
    """What to do about stale streams while a CUDA graph is captured. Without CUDA graphs there are none."""
    if not isinstance(enabled, bool):
        raise RuntimeError(f"enabled must be a bool, but got {class_name(enabled)}")


def region_activation_memory_budget(budget: float) -> Any:
    """How much of what a compiled region computes it may keep for backward. Nothing is compiled here."""
    name = "torch.autograd.graph.region_activation_memory_budget"
    if not isinstance(budget, (int, float)):
        raise TypeError(f"{name}: expects a float, got {class_name(budget)}")
    if not 0 <= budget <= 1:
        raise ValueError(f"{name}: must be in [0, 1], got {budget}")
    raise RuntimeError(
        f"{name} can only be used inside a torch.compile region; it has no effect in eager mode."
    )


def __getattr__(name: str) -> Any:
    if name == "log":
        from rushlight.autograd._logged import log

        return log
    if name == "_allow_mutation_on_saved_tensors_enabled":
        return bool(_mutation_contexts)
    if name == "Variable":
        from rushlight.autograd import Variable

        return Variable
    if name == "TorchDispatchMode":
        from rushlight.utils._python_dispatch import TorchDispatchMode

        return TorchDispatchMode
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _register_logging_hooks_on_whole_graph(t_outputs: Sequence[Tensor | GradientEdge]) -> Callable[[], None]:
    """Lets every node behind these outputs tell the log that it runs; the result ends that."""
    from rushlight.autograd._logged import register

    return register([_get_grad_fn_or_grad_acc(one) for one in t_outputs])


def _get_tid(tensor: Tensor) -> tuple[int, int, int]:
    """Which object, memory and version a tensor is."""
    return id(tensor), tensor.data_ptr(), tensor._version


def _get_sid(tensor: Tensor) -> tuple[int, int]:
    """Which memory and version a tensor is."""
    return tensor.data_ptr(), tensor._version


def _get_grad_fn_or_grad_acc(t: Tensor | GradientEdge) -> Node:
    """The node at which the gradient of a tensor arrives."""
    if isinstance(t, GradientEdge):
        return t.node
    if t.requires_grad and t.grad_fn is None:
        return get_gradient_edge(t).node
    if t.grad_fn is None:
        raise AssertionError("Expected gradient function to be set")
    return t.grad_fn


def _engine_run_backward(t_outputs: Any, *args: Any, **kwargs: Any) -> Any:
    """The engine as `backward` and `grad` call it."""
    from rushlight.autograd import Variable

    return Variable._execution_engine.run_backward(t_outputs, *args, **kwargs)


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Tells autograd that the memory of these tensors was written by something it does not see.

    >>> x = rushlight.zeros(2)
    >>> rushlight.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    tensors = (tensor,) if isinstance(tensor, Tensor) else tensor
    try:
        tensors = tuple(tensors)
    except TypeError:
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input") from None
    for each in tensors:
        if not isinstance(each, Tensor):
            raise RuntimeError("increment_version expects each element of the iterable to be a tensor")
        _C.note_write(each)


# ---- hooks of tensors and nodes


def _no_hook(tensor: Tensor, sentence: str, advice: str) -> RuntimeError:
    from rushlight._errors import explain_operands  # only needed to complain

    return RuntimeError(explain_operands(sentence, [("it", tensor, _C.place_of(tensor))], advice))


def register_tensor_hook(tensor: Tensor, hook: Callable) -> Any:
    """Tensor.register_hook: on a leaf before accumulation, elsewhere before the node that made the tensor."""
    if not tensor.requires_grad:
        raise _no_hook(tensor, "cannot register a hook on a tensor that doesn't require gradient", "")
    node = tensor.grad_fn
    if node is None:
        hooks = _C.leaf_hooks(tensor, False)
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        return handle
    # Hooks stay with the node that made the tensor then; after an in-place write there is another.
    entries, hooks = node._hooks("tensor"), tensor._backward_hooks
    if hooks is None or not any(entry[1] is hooks for entry in entries):
        hooks = OrderedDict()
        tensor._backward_hooks = hooks
        entries.append((tensor.output_nr, hooks))
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_post_accumulate_grad_hook(tensor: Tensor, hook: Callable) -> RemovableHandle:
    """Tensor.register_post_accumulate_grad_hook."""
    if not tensor.requires_grad:
        raise _no_hook(tensor, "cannot register a hook on a tensor that doesn't require gradient", "")
    if tensor.grad_fn is not None:
        sentence = "post accumulate grad hooks cannot be registered on non-leaf tensors"
        raise _no_hook(tensor, sentence, "register_hook() is called with the gradient of such a tensor.")
    hooks = _C.leaf_hooks(tensor, True)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def _register(kind: str) -> Callable:
    def register(self, *hook, **named):
        if named or len(hook) != 1:
            name = f"{self.name()}.register_{'pre' if kind == 'pre' else ''}hook"
            takes = "no keyword arguments" if named else f"exactly one argument ({len(hook)} given)"
            raise TypeError(f"{name}() takes {takes}")
        node, where, fn = self, kind, hook[0]
        if kind == "post" or self._facade:
            from rushlight.autograd import _facades

            node, where, fn = _facades.placed(self, kind, fn)
        hooks = OrderedDict() if node is None else node._hooks(where)
        handle = RemovableHandle(hooks)
        hooks[handle.id] = fn
        return handle

    return register


_C.Node.register_hook = _register("post")
_C.Node.register_prehook = _register("pre")
_C.Node.register_hook.__doc__ = (
    "Calls fn(grad_inputs, grad_outputs) after the node ran; its result replaces grad_inputs."
)
_C.Node.register_prehook.__doc__ = (
    "Calls fn(grad_outputs) before the node runs; its result replaces grad_outputs."
)


def _register_hook_dict(self, tensor: Any) -> None:
    """Runs the hooks in `tensor._backward_hooks`, also those added later, on the gradient of `tensor`."""
    if not isinstance(tensor, Tensor):
        if hasattr(self, "_forward_cls"):
            raise RuntimeError("_register_hook_dict expected a Tensor")
        raise TypeError("_register_hook_dict expected a variable")
    if tensor._backward_hooks is not None:
        self._hooks("tensor").append((tensor.output_nr, tensor._backward_hooks))


_C.Node._register_hook_dict = _register_hook_dict


_InputMetadata = namedtuple(
    "_InputMetadata",
    ("shape", "dtype", "device", "is_nested_tensor", "is_cpp_nested_tensor"),
    defaults=(False, False),
)


_C.Node._input_metadata = property(
    lambda self: tuple(
        _InputMetadata(list(shape), dtype, device)
        for (shape, dtype, device), shown in zip(self._outputs(), self._shown(), strict=True)
        if shown and (dtype.is_floating_point or dtype.is_complex)
    ),
    doc="Shape, dtype and device of the gradients this node takes.",
)


class _MultiHandle(RemovableHandle):
    """Removes one hook from several tensors."""

    def __init__(self, handles: tuple) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> tuple:
        return self.handles

    def __setstate__(self, state: tuple) -> None:
        self.handles = state


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable, *, mode: str = "all"
) -> RemovableHandle:
    """Calls `fn` in each backward once the gradients of all `tensors` are known, or that of the first of any.

    >>> x, y = rushlight.ones(1, requires_grad=True), rushlight.ones(1, requires_grad=True)
    >>> seen = []
    >>> handle = rushlight.autograd.graph.register_multi_grad_hook((x, y), seen.append)
    >>> (x * 2 + y * 3).backward()
    >>> seen
    [[tensor([2.]), tensor([3.])]]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = _thread.allocate_lock()
    if mode == "any":
        fired: set = set()

        def once(grad):
            run = _C.current_run()
            with lock:
                if run in fired:
                    return
                fired.clear()
                fired.add(run)
            fn(grad)

        return _MultiHandle(tuple(tensor.register_hook(once) for tensor in tensors if tensor.requires_grad))

    from rushlight.autograd._native_names import _will_engine_execute_node

    edges = []
    for tensor in tensors:
        if not tensor.requires_grad:
            raise AssertionError("Expected gradient function to be set")
        edges.append(get_gradient_edge(tensor))
    waiting: dict = {}

    def collect(index):
        def hook(grad):
            run = _C.current_run()
            with lock:
                if run not in waiting:
                    # What the same tensors left behind in a run that was broken off.
                    waiting.clear()
                    expected = sum(_will_engine_execute_node(node) for node, *_ in edges)
                    waiting[run] = (expected, [None] * len(edges), [0])
                expected, grads, count = waiting[run]
                grads[index] = grad
                count[0] += 1
                complete = count[0] == expected
                if complete:
                    del waiting[run]
            if complete:
                fn(grads)

        return hook

    return _MultiHandle(tuple(tensor.register_hook(collect(i)) for i, tensor in enumerate(tensors)))


# ---- what nodes save


class saved_tensors_hooks:
    """Inside, what is saved for backward goes through `pack_hook`, and through `unpack_hook` when it is used.

    >>> x = rushlight.ones(2, requires_grad=True)
    >>> halve = rushlight.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float())
    >>> with halve:
    ...     y = x * x
    >>> y.sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __init__(self, pack_hook: Callable, unpack_hook: Callable) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if not (callable(self.pack_hook) and callable(self.unpack_hook)):
            raise TypeError(
                "_push_saved_tensors_default_hooks(): incompatible function arguments. The following "
                "argument types are supported:\n    two callables"
            )
        _C.push_saved_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *error: object) -> None:
        _C.pop_saved_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Inside, saved tensors wait in main memory and return to their device when they are used."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor):
            if not pin_memory:
                return tensor.device, tensor.cpu()
            # Pinned memory is an accelerator's, and there is none.
            return tensor.device, tensor.detach().clone().cpu()

        def unpack(packed):
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside, entering `saved_tensors_hooks` raises a RuntimeError with this message."""
    before = _C.disabled_saved_hooks()
    _C.disable_saved_hooks(error_message)
    try:
        yield
    finally:
        _C.allow_saved_hooks(before)


def _show_facades(node: Any) -> tuple | None:
    from rushlight.autograd import _facades

    return _facades.show(node)


def _within(node: Any, name: str, value: Any) -> tuple[list[int], str] | bool | None:
    from rushlight.autograd import _operands

    return _operands.within(node, name, value)


_LINEAR = ("linear", "linear_unbiased", "linear_nd_unbiased")
_PRODUCTS = ("matmul_nd", "matmul_turned", "vecmat")
_LINES = ("avg_pool1d", "max_pool1d", "adaptive_avg_pool1d", "adaptive_max_pool1d")
_BY_ADJOINTS = ("mm_nh", "mm_hn", "bmm_nh", "bmm_hn")
_C.show_facades(_show_facades, (*_LINEAR, *_PRODUCTS, *_LINES, *_BY_ADJOINTS))
_OTHERS = ("attention", "attention_keeping", "einsum_mm", "einsum_bmm", "nll_loss2d", "rnn_sequence")
_C.show_operands(_within, (*_LINEAR, *_PRODUCTS, *_LINES, *_OTHERS))


def _node_dir(self) -> list[str]:
    from rushlight.autograd._saved_names import saved_attributes

    return [*object.__dir__(self), *saved_attributes(self)]


_C.Node.__dir__ = _node_dir


# ---- writing to what was saved


class _Handle:
    """Stands for one saved value; the context knows its tensor."""

    __slots__ = ("__weakref__",)


class _AllowMutationOnSavedContext:
    """The saved values of one `allow_mutation_on_saved_tensors`: still shared, or cloned before a write."""

    def __init__(self) -> None:
        from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

        self.original: WeakKeyDictionary = WeakKeyDictionary()
        self.cloned: WeakKeyDictionary = WeakKeyDictionary()
        self.tid_to_weakhandle: WeakValueDictionary = WeakValueDictionary()  # value -> handle
        self.sid_to_tid: dict = {}  # (address, version) -> values that were saved, for who wants to look
        self._handles = WeakSet
        self._shared: dict[int, WeakSet] = {}  # memory -> handles of what was saved and is not cloned

    @staticmethod
    def _memory(tensor: Tensor) -> int:
        return tensor.data_ptr() - tensor.storage_offset() * tensor.element_size()

    def pack(self, tensor: Tensor) -> _Handle:
        memory = self._memory(tensor)
        place = (tensor.data_ptr(), tensor._version)
        # By what it is, as in torch, and by what it holds: who is gone may have left its number to another.
        value = (id(tensor), memory, *place, tuple(tensor.shape), tensor.stride(), tensor.dtype)
        self.sid_to_tid.setdefault(place, set()).add(value)
        handle = self.tid_to_weakhandle.get(value)
        if handle is None or handle not in self.original:  # a write through `x.data` leaves the version
            handle = self.tid_to_weakhandle[value] = _Handle()
            self.original[handle] = tensor.detach()
            self._shared.setdefault(memory, self._handles()).add(handle)
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        kept = handle in self.cloned or handle in self.original  # unless somebody cleared them
        if not kept or not _mutation_contexts or _mutation_contexts[-1] is not self:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the "
                "graph was originally recorded."
            )
        return self.cloned[handle] if handle in self.cloned else self.original[handle]

    def before_write(self, tensor: Tensor) -> None:
        # By memory alone: whoever writes may count by another version, or change the geometry first.
        for handle in self._shared.pop(self._memory(tensor), ()):
            if handle in self.original:
                self.cloned[handle] = self.original.pop(handle).clone()

    def clear(self) -> None:
        for table in (self.original, self.cloned, self.tid_to_weakhandle, self.sid_to_tid, self._shared):
            table.clear()


class _swap_with_cloned(saved_tensors_hooks):
    """Inside, what is saved is kept by `ctx`, which gives back its clone if it was written."""

    def __init__(self, ctx: _AllowMutationOnSavedContext) -> None:
        super().__init__(ctx.pack, ctx.unpack)


class _CloneArgBeforeMutateMode:
    """Inside, `ctx` clones what it has kept before it is written."""

    def __init__(self, ctx: _AllowMutationOnSavedContext) -> None:
        self.ctx = ctx

    def __enter__(self) -> _CloneArgBeforeMutateMode:
        self._before = _C.watch_writes(self.ctx.before_write)
        return self

    def __exit__(self, *error: object) -> None:
        _C.watch_writes(self._before)


_mutation_contexts: list[_AllowMutationOnSavedContext] = []


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationOnSavedContext]:
    """Inside, a saved tensor may be written in place: it is cloned first. Backward must run inside too.

    >>> with rushlight.autograd.graph.allow_mutation_on_saved_tensors():
    ...     x = rushlight.ones(2, requires_grad=True)
    ...     y = x.clone()
    ...     out = (y ** 2).sum()
    ...     _ = y.sin_()
    ...     out.backward()
    >>> x.grad
    tensor([2., 2.])
    """
    if _mutation_contexts:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _AllowMutationOnSavedContext()
    with _swap_with_cloned(context), _CloneArgBeforeMutateMode(context):
        _mutation_contexts.append(context)
        try:
            yield context
        finally:
            _mutation_contexts.pop()
            context.clear()
