"""What a Tensor can do besides operations: autograd methods, conversions, its text."""

from __future__ import annotations

import sys

from rushlight import _C
from rushlight._annotations import Any
from rushlight._errors import explain_operands, module_of
from rushlight._named_operators import python_method
from rushlight._size import Size
from rushlight._tensor_copies import _deepcopy, _reduce_ex, _setstate
from rushlight._to_arguments import to_arguments
from rushlight._versions import uncounted
from rushlight._warn import warn
from rushlight.ops import create
from rushlight.ops._facts import tell
from rushlight.ops._public import attribute, method, public
from rushlight.ops.layout import (
    preserve_format,
    rearranged,
    strides_in,
    suggested,
)
from rushlight.ops.shape import conj_of_number

Tensor = _C.Tensor


def _construct(
    *args: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **unknown: Any
) -> Tensor:
    """Tensor(2, 3) is uninitialised memory of the default dtype, Tensor(data) a copy of data in it."""
    if len(unknown) == 1 and not args and next(iter(unknown)) in ("size", "other", "storage", "data"):
        args, unknown = tuple(unknown.values()), {}
        if isinstance(args[0], (tuple, list)):
            args = (Size(args[0]),)
    if unknown or dtype is not None or requires_grad:
        named = {**unknown, "dtype": dtype, "requires_grad": requires_grad or None}
        shown = [type(arg).__name__ for arg in args]
        kinds = {_C.dtype: "torch.dtype", _C.device: "torch.device"}
        shown += [
            f"{name}={kinds.get(type(value), type(value).__name__)}, "
            for name, value in named.items()
            if value is not None
        ]
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({', '.join(shown)}), but expected "
            "one of:\n * (*, torch.device device = None)\n * (torch.Storage storage)\n * (Tensor other)\n"
            " * (tuple of ints size, *, torch.device device = None)\n * (object data, *, torch.device device "
            "= None)"
        )
    from rushlight._tensor_types import legacy_tensor

    if len(args) == 1 and isinstance(args[0], Tensor):
        if device is not None:
            raise RuntimeError(
                "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not "
                "supported.  Use torch.tensor(...) or torch.as_tensor(...) instead."
            )
        return _C.ops.alias(args[0])  # gradients flow through it
    return legacy_tensor(_C.get_default_dtype(), device, args)


# ---- autograd


@method
def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Adds the gradient of this tensor with respect to the graph's leaves to their `.grad`.

    >>> x = rushlight.tensor(2., requires_grad=True)
    >>> (2 * x ** 2 + 3).backward()
    >>> x.grad
    tensor(8.)
    """
    # A loss, as most are: nothing else to check, which spares a third of the time of a small graph.
    plain = gradient is None and inputs is None and not create_graph
    plain = plain and (retain_graph is None or isinstance(retain_graph, bool))
    if plain and _C.backward_loss(self, bool(retain_graph)):
        return
    from rushlight import autograd

    autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


@method
def detach(self):
    """A tensor on the same memory without history: gradients do not flow through it.

    >>> rushlight.ones(1, requires_grad=True).detach().requires_grad
    False
    """
    return _C.detach(self)


@method
def detach_(self):
    """Cuts this tensor off its history: it becomes a leaf that does not require grad."""
    if not _C.is_inference_mode_enabled():  # there it has no effect
        self._grad_fn = None
        self.requires_grad = False
        if _C.tangent(self) is not None:
            _C.set_tangent(self, None)
    return self


@method
def requires_grad_(self, requires_grad=True):
    """Switches recording for this leaf on or off; returns the tensor itself.

    >>> rushlight.ones(1).requires_grad_().requires_grad
    True
    """
    if not isinstance(requires_grad, bool):
        raise TypeError(
            "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not "
            + type(requires_grad).__name__
        )
    if _C.transforming():
        _refuse_inside("requires_grad_()", " (or perhaps using torch.autograd.functional.* APIs)")
    if requires_grad and not (self.is_floating_point() or self.is_complex()):
        raise RuntimeError(
            explain_operands(
                "only Tensors of floating point dtype can require gradients",
                [("tensor", self, _C.place_of(self))],
                "Convert it first: t.float().requires_grad_(), or create it from floats.",
            )
        )
    return _C.requires_grad_(self, requires_grad)


def _refuse_inside(method, more=""):
    """What changes a tensor for the outer graph alone has no meaning where a function is transformed."""
    from rushlight.func._allowed import allowed

    ours = module_of(sys._getframe(2).f_globals).startswith(("rushlight.ops.", "rushlight._"))
    if not ours and (method != "requires_grad_()" or not allowed.in_place_requires_grad):
        raise RuntimeError(
            f"You are attempting to call Tensor.{method}{more} inside of a function being transformed by a "
            "functorch transform. This is unsupported, please attempt to use the functorch transforms (e.g. "
            f"grad, vjp, jacrev, jacfwd, hessian) or call {method} outside of a function being transformed "
            "instead."
        )


@method
def retain_grad(self):
    """Makes backward() fill in `.grad` of this tensor although it is not a leaf."""
    if _C.transforming() and self.requires_grad:
        _refuse_inside("retain_grad()")
    _C.retain_grad(self)


@method
def register_hook(self, hook):
    """Calls `hook(grad)` whenever the gradient of this tensor is computed; a tensor it returns takes
    its place."""
    from rushlight.autograd import graph

    return graph.register_tensor_hook(self, hook)


@method
def register_post_accumulate_grad_hook(self, hook):
    """Calls `hook(tensor)` after `.grad` of this leaf has been accumulated."""
    from rushlight.autograd import graph

    return graph.register_post_accumulate_grad_hook(self, hook)


for _function in (backward, register_hook, register_post_accumulate_grad_hook):
    # Methods in torch, too; Python names them so where a call does not fit.
    _function.__wrapped__.__qualname__ = f"Tensor.{_function.__name__}"


@method
def _is_view(self):
    return _C.is_view(self)


@method
def _use_count(self):
    return _C.use_count(self)


# ---- Python values


@method
def item(self):
    """The value of a tensor of one element, as a Python number.

    >>> rushlight.tensor(3).item()
    3
    """
    return _C.item(self)


@method
def tolist(self):
    """The elements as nested lists; a number for a 0-dim tensor.

    >>> rushlight.tensor([[1, 2]]).tolist()
    [[1, 2]]
    """
    return _C.tolist(self)


def _iter(self):
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def _reversed(self):
    return self if self.dim() == 0 else self.flip(0)


def _contains(self, element, /):
    from numbers import Number  # NumPy's are registered there

    if isinstance(element, Tensor):  # in this order: a refusal names the sizes so
        return bool((element == self).any())
    if isinstance(element, Number):
        return bool((self == element).any())
    raise RuntimeError(
        f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
    )


def _complex(self):
    if self.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    if self.is_complex():
        return complex(float(self.real), _C.item(self.imag))
    return complex(float(self))  # float warns of a lost history


def _format(self, format_spec):
    """A zero-dimensional tensor formats as its number, any other only without a spec."""
    if type(self) is Tensor and self.ndim == 0 and not self.is_meta:
        return format(self.item(), format_spec)
    return object.__format__(self, format_spec)


def _repr(self, *, tensor_contents=None):
    from rushlight._printing import tensor_str

    return tensor_str(self, tensor_contents=tensor_contents)


# ---- conversions


@method
def to(self, *args, **kwargs):
    """This tensor with another dtype or device; itself if nothing changes.

    >>> rushlight.tensor([1.5]).to(rushlight.int64)
    tensor([1])
    """
    asked = to_arguments(args, kwargs)
    made = _to(self, asked.dtype, asked.device, asked.copy)
    return rearranged(made, self, asked.memory_format)


def _to(self: Tensor, dtype: Any, device: Any, copy: bool = False) -> Tensor:
    if device is not None:
        device = _C.as_device(device)
        if device.type == "cpu":
            copy = copy or device.index is not None  # "cpu:0" is another than "cpu", to begin with
            device = _C.as_device("cpu")
        if device != self.device:
            if device.type == "cuda":
                raise AssertionError("Torch not compiled with CUDA enabled")
            if self.device.type == "meta":
                raise NotImplementedError("Cannot copy out of meta tensor; no data!")
            return _C.ops.to_device(self, dtype or self.dtype, device)
    if dtype is not None and dtype != self.dtype:
        return _C.ops.to_dtype(self, dtype)
    return _C.ops.clone(self) if copy else self


def _cast_method(name: str, dtype: _C.dtype) -> None:
    def cast(self, memory_format=None):
        made = self if self.dtype == dtype else _C.ops.to_dtype(self, dtype)
        return rearranged(made, self, memory_format)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"This tensor as {dtype}.\n\n    >>> rushlight.ones(2).{name}().dtype\n    {dtype}\n    "
    method(cast)


for _name, _dtype in {
    "float": _C.float32, "double": _C.float64, "half": _C.float16, "bfloat16": _C.bfloat16, "long": _C.int64,
    "int": _C.int32, "short": _C.int16, "char": _C.int8, "byte": _C.uint8, "bool": _C.bool,
    "cfloat": _C.complex64, "cdouble": _C.complex128, "chalf": _C.complex32,
}.items():  # fmt: skip
    _cast_method(_name, _dtype)


@method
def type_as(self, other):
    """This tensor with the dtype and on the device of `other`.

    >>> rushlight.tensor([1]).type_as(rushlight.ones(1))
    tensor([1.])
    """
    return _to(self, other.dtype, other.device)


@method
def cpu(self, memory_format=None):
    """This tensor in the computer's main memory.

    >>> rushlight.ones(1).cpu().device
    device(type='cpu')
    """
    return rearranged(_to(self, None, "cpu"), self, memory_format)


@method
def cuda(self, device=None, non_blocking=False, memory_format=None):
    """This tensor on a GPU."""
    return rearranged(_to(self, None, "cuda" if device is None else device), self, memory_format)


def _resize(self, size):
    if _C.is_sparse(self):
        from rushlight._sparse.table import refuse

        refuse("aten::resize_")
    if not create.deterministic or self.device.type == "meta":
        return _C.resize(self, size)
    before = self.untyped_storage().nbytes() // self.element_size()
    _C.resize(self, size)
    added = self.untyped_storage().nbytes() // self.element_size() - before
    if added > 0:
        create.mark_unwritten(self.detach().as_strided((added,), (1,), before))
    return self


def _resize_arranged(self, size, chosen):
    if chosen is preserve_format:
        raise RuntimeError("Unsupported memory formatPreserve")
    if min(size, default=0) < 0 and 0 not in size:
        raise RuntimeError("numel: integer multiplication overflow")
    strides = None if chosen is None or min(size, default=0) < 0 else strides_in(size, chosen)
    if self.is_inference() and tuple(size) == self.shape and strides in (None, self.stride()):
        return self
    self = _resize(self, size)
    if strides is not None and self.stride() != strides:
        with uncounted(self):  # the sizes were written already
            self.as_strided_(size, strides)
    return self


@method
def resize_(self, *size, memory_format=None):
    """Changes the sizes in place; new elements are uninitialised.

    >>> rushlight.ones(4).resize_(2).shape
    torch.Size([2])
    """
    from rushlight.ops._public import dims

    return _resize_arranged(self, dims(size), memory_format)


@public
def resize_as_(input, the_template, memory_format=None):
    """Changes the sizes to those of another tensor in place.

    >>> rushlight.ones(6).resize_as_(rushlight.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    if memory_format is preserve_format:
        memory_format = suggested(the_template)
    return _resize_arranged(input, the_template.shape, memory_format)


@method
def get_device(self):
    """The index of the GPU this tensor is on, -1 on the CPU."""
    return -1 if self.device.index is None else self.device.index


@method
def is_pinned(self, device=None):
    """Whether the memory is page-locked; it never is."""
    return False


@method
def is_set_to(self, tensor):
    """Whether both tensors are the same view of the same memory, and read it as it is."""
    if any(t.is_conj() or t.is_neg() for t in (self, tensor)):
        return False
    same = self.data_ptr() == tensor.data_ptr() and self.storage_offset() == tensor.storage_offset()
    return same and self.shape == tensor.shape and self.stride() == tensor.stride()


def _dir(self):
    names = {*dir(type(self)), *self.__dict__} - {"volatile"}  # looking at which warns
    if not self.is_cuda:
        names.discard("__cuda_array_interface__")
    return sorted(names)


def _flag(name: str, value: Any, doc: str) -> None:
    attribute(name, lambda self: value, doc=doc)


def _cuda_array_interface(self):
    raise AttributeError(
        f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} If CUDA data is required "
        "use tensor.cuda() to copy tensor to device memory."
    )


NO_VOLATILE = "volatile was removed and now has no effect. Use `with torch.no_grad():` instead."


def _volatile(self):
    warn("volatile was removed (Variable.volatile is always False)")
    return False


def _conjugate_transpose(self):
    if self.dim() not in (0, 2):
        batches = " For batches of matrices, consider using tensor.mH" if self.dim() > 2 else ""
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self.dim()}-D tensor.{batches}"
        )
    return self.adjoint() if self.dim() else conj_of_number(self, "Tensor.H")


def _batch_transpose(self):
    if self.dim() == 1:
        raise RuntimeError("tensor.mH is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return self.adjoint() if self.dim() else conj_of_number(self, "Tensor.mH")


_flag("is_sparse", False, "Whether the tensor is sparse, in coordinates.")
_flag("_has_symbolic_sizes_strides", False, "Whether a size is a symbol; none is.")
_flag("is_quantized", False, "Whether the elements are quantised; they never are.")
_flag("is_mkldnn", False, "Whether the layout is oneDNN's (see to_mkldnn).")
_flag("is_nested", False, "Whether this is a nested tensor (see torch.nested).")
_flag("is_sparse_csr", False, "Whether the tensor is sparse, compressed by rows (CSR).")
attribute("layout", lambda self: create.strided, doc="How the elements are stored.")
_EXAMPLE = """

    >>> rushlight.tensor([[1j, 2]]).{}.tolist()
    [[-1j], [(2-0j)]]
    """
attribute("H", _conjugate_transpose, doc="The conjugate transpose of a matrix." + _EXAMPLE.format("H"))
attribute(
    "mH",
    _batch_transpose,
    doc="The conjugate transpose of the last two dimensions." + _EXAMPLE.format("mH"),
)
attribute("name", lambda self: None)
attribute("_cdata", id)
attribute("__cuda_array_interface__", _cuda_array_interface)
attribute("volatile", _volatile, lambda self, value: warn(NO_VOLATILE), unset=lambda self: warn(NO_VOLATILE))


_iter.__name__, _iter.__qualname__ = "__iter__", "Tensor.__iter__"
Tensor.__iter__ = _iter
for _function in (_reversed, _contains, _format, _repr, _dir, _deepcopy, _reduce_ex, _setstate):
    _name = f"_{_function.__name__}__"
    setattr(Tensor, _name, python_method(_function, _name))
_complex.__name__ = _complex.__qualname__ = "__complex__"
Tensor.__complex__ = _C.Function(_complex)
Tensor.__module__ = "torch"
Tensor.__name__ = "Tensor"  # without the module, which sentences of the interpreter would repeat
Tensor.__array_priority__ = 1000


def _torch_function(cls, func, types, args=(), kwargs=None):
    from rushlight.overrides import _default_torch_function

    return _default_torch_function(cls, func, types, args, kwargs)


Tensor.__torch_function__ = classmethod(_torch_function)

tell(Tensor.__dict__)


# What torch defines here, and what files that it has written name by this place.
_ELSEWHERE = {
    "_rebuild_from_type": "_utils", "_rebuild_from_type_v2": "_utils", "_convert": "overrides",
    "get_default_nowrap_functions": "overrides", "handle_torch_function": "overrides",
    "has_torch_function": "overrides", "has_torch_function_unary": "overrides",
    "has_torch_function_variadic": "overrides",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"rushlight.{_ELSEWHERE[name]}"), name)
