"""Parameter and Buffer: tensors that a module registers when they are assigned to it."""

from collections import OrderedDict

import rushlight
from rushlight import Tensor
from rushlight._type_names import type_name

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


class _ParameterMeta(type):
    """``isinstance(t, Parameter)`` also holds for a parameter made of a tensor subclass, of that type."""

    def __instancecheck__(cls, instance):
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


def _marked(data, requires_grad):
    """The tensor, to be differentiated with respect to or not. Where functions are transformed a program must
    not say so, but of parameters."""
    if rushlight._C.transforming():
        return rushlight._C.requires_grad_(data, requires_grad)
    return data.requires_grad_(requires_grad)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a Module lists among its parameters when it is assigned as an attribute.

    >>> import rushlight as torch
    >>> torch.nn.Parameter(torch.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = rushlight.empty(0)
        kind = type(data)
        if kind is Tensor or kind is Parameter:
            if not isinstance(requires_grad, bool):
                told = f"must be bool, not {type_name(requires_grad)}"
                raise TypeError(f"_make_subclass(): argument 'require_grad' (position 3) {told}")
            # Modes are not asked: it is the same tensor.
            modes = rushlight._C.set_dispatch_mode(False), rushlight._C.set_function_mode(False)
            try:
                if requires_grad and not (data.is_floating_point() or data.is_complex()):
                    raise RuntimeError(
                        "Only Tensors of floating point and complex dtype can require gradients"
                    )
                made = rushlight._C.as_subclass(data.detach(), cls)
            finally:
                rushlight._C.set_dispatch_mode(modes[0])
                rushlight._C.set_function_mode(modes[1])
            return rushlight._C.requires_grad_(made, requires_grad)
        # A user's tensor subclass stays what it is; only a mark is put on it.
        marked = _marked(data.detach(), requires_grad)
        if type(marked) is not kind:
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {kind.__name__} requires that detach() "
                f"returns an instance of the same type, but return type {type(marked).__name__} was found "
                "instead. To use the type as a Parameter, please correct the detach() semantics defined by "
                "its __torch_dispatch__() implementation."
            )
        marked._is_param = True
        return marked

    # Operations on parameters give plain tensors.
    __torch_function__ = rushlight._C._disabled_torch_function_impl

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            copied = self.data.clone(memory_format=rushlight.preserve_format)
            memo[id(self)] = type(self)(copied, self.requires_grad)
        return memo[id(self)]

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol):
        from rushlight._utils import _rebuild_parameter, _rebuild_parameter_with_state

        # The grad and hooks are not part of the value, as in torch.
        arguments = (self.data, self.requires_grad, OrderedDict())
        state = dict(self.__dict__)
        if not state:
            return (_rebuild_parameter, arguments)
        return (_rebuild_parameter_with_state, (*arguments, state))


# From now on the native core takes its short path for parameters as for tensors.
rushlight._C.set_parameter_type(Parameter)


class _BufferMeta(type):
    def __instancecheck__(cls, instance):
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a Module lists among its buffers when assigned: ``data`` itself, marked.

    >>> import rushlight as torch
    >>> torch.nn.Buffer(torch.zeros(2), persistent=False).persistent
    False
    """

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = rushlight.empty(0)
        marked = _marked(data.detach(), data.requires_grad)
        marked.persistent = persistent
        marked._is_buffer = True
        return marked


class UninitializedTensorMixin:
    """A tensor that waits for its shape. Until ``materialize`` only moving and casting are allowed."""

    cls_to_become: type
    _allowed_methods = frozenset(
        [
            "size",
            "copy_",
            "is_complex",
            "is_floating_point",
            "to",
            "cpu",
            "cuda",
            "get_device",
            "half",
            "float",
            "double",
            "bfloat16",
            "char",
            "short",
            "int",
            "long",
            "requires_grad_",
        ]
    )

    def materialize(self, shape, device=None, dtype=None):
        """Give the tensor memory of this shape, and make it an ordinary one."""
        device = self.data.device if device is None else device
        dtype = self.data.dtype if dtype is None else dtype
        self.data = rushlight.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        """There is none yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call "
            "`forward` to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self):
        """There is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the "
            "parameters before calling `module.share_memory()`."
        )

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol):
        return (type(self), (self.requires_grad,))

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        attribute = type(func).__name__ == "method-wrapper"  # Tensor.grad_fn.__get__
        if getattr(func, "__name__", None) not in cls._allowed_methods and not attribute:
            raise ValueError(
                f"Attempted to use an uninitialized parameter in {func}. This error happens when you are "
                f"using a `LazyModule` or explicitly manipulating `torch.nn.parameter.{cls.__name__}` "
                "objects. When using LazyModules Call `forward` with a dummy batch to initialize the "
                "parameters before calling torch functions"
            )
        asked = rushlight._C.set_torch_function_enabled(False)
        try:
            return func(*args, **(kwargs or {}))
        finally:
            rushlight._C.set_torch_function_enabled(asked)


def is_lazy(param):
    """Whether the tensor has no shape yet: an UninitializedParameter or UninitializedBuffer."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A Parameter of a lazy module before its first call.

    >>> import rushlight as torch
    >>> weight = torch.nn.UninitializedParameter()
    >>> weight.materialize((2, 3))
    >>> weight.shape
    torch.Size([2, 3])
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        empty = rushlight.empty(0, device=device, dtype=dtype)
        return rushlight._C.requires_grad_(rushlight._C.as_subclass(empty, cls), requires_grad)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer of a lazy module before its first call."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        empty = rushlight.empty(0, device=device, dtype=dtype)
        buffer = rushlight._C.requires_grad_(rushlight._C.as_subclass(empty, cls), requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer


# Libraries tell whose tensor it is by the module of its class: torch's, for a program that knows us as torch.
for _kind in (Parameter, Buffer, UninitializedParameter, UninitializedBuffer):
    _kind.__module__ = f"{rushlight.__name__}.nn.parameter"
