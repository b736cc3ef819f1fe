"""Public functions: from a plain Python function to `torch.name` and `Tensor.name`.

    @public
    def exp(input, *, out=None): ...

makes `rushlight.exp` (and `Tensor.exp`) a function that first asks `__torch_function__` of its
arguments, which costs about ten nanoseconds, and otherwise calls the Python function, or the primitive
behind it where that is all it would do (_direct.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from rushlight import _C, _type_names
from rushlight._annotations import Any
from rushlight._outputs import (
    COMPOSED,
    INTERNAL,
    OVERLAP,
    RECORDED,
    check_apart_elements,
    refuse_written_tangent,
)
from rushlight._type_names import type_name as class_name
from rushlight._versions import uncounted
from rushlight._warn import warn
from rushlight.ops._direct import OPERATIONS
from rushlight.ops._examples import is_recorded_below, refuse_batches

FUNCTIONS: dict[str, _C.Function] = {}  # what rushlight/__init__.py exports
Tensor = _C.Tensor


def public(
    function: Callable | None = None,
    *,
    name: str | None = None,
    aliases: Sequence[str] = (),
    method: bool = True,
    namespace: bool = True,
) -> Any:
    """Registers `function` as rushlight.<name> (namespace) and Tensor.<name> (method), and under its "
    "aliases."""
    if function is None:
        return lambda f: public(f, name=name, aliases=aliases, method=method, namespace=namespace)
    code = getattr(function, "__code__", None)
    if code is not None and code.co_name != function.__name__:  # made by a loop: errors name the function
        function.__code__ = code.replace(co_name=function.__name__)
    wrapped = _C.Function(function)
    for each in (name or function.__name__, *aliases):
        # A function of its own for every name: `__torch_function__` is told which of them was called.
        direct = OPERATIONS.get(each)
        if namespace:
            FUNCTIONS[each] = wrapped if each == function.__name__ else named(function, each)
            FUNCTIONS[each].direct = direct
        if method:
            made = named(function, each, True)
            made.direct = OPERATIONS.get(f".{each}", direct)
            setattr(Tensor, each, made)
    return wrapped


def named(function: Callable, name: str, is_method: bool = False) -> _C.Function:
    """The public form of a function, under another name if need be."""
    made = _C.Function(function, is_method)
    if function.__name__ != name:
        made.__name__ = name
    return made


def under(function: _C.Function, name: str) -> _C.Function:
    """A public function as one of its own under another name, by which its errors are told."""
    made = named(function.__wrapped__, name)
    for fact in ("node_name", "no_complex_gradient", "no_forward_mode"):
        setattr(made, fact, getattr(function, fact))
    return made


def method(function: Callable | None = None, *, name: str | None = None, aliases: Sequence[str] = ()) -> Any:
    """Registers a Tensor method that is not a function of the namespace."""
    return public(function, name=name, aliases=aliases, namespace=False)


def function(
    function: Callable | None = None, *, name: str | None = None, aliases: Sequence[str] = ()
) -> Any:
    """Registers a function of the namespace that is not a Tensor method."""
    return public(function, name=name, aliases=aliases, method=False)


def attribute(
    name: str,
    get: Callable,
    set: Callable | None = None,
    doc: str | None = None,
    unset: Callable | None = None,
) -> None:
    """Gives Tensor an attribute computed in Python, which asks `__torch_function__` as native ones do."""

    def read(self):
        if _C._has_torch_function_unary(self):
            from rushlight.overrides import _dispatch

            return _dispatch(made.__get__, (self,), None)
        return get(self)

    def write(self, value):
        if _C._has_torch_function_unary(self):
            from rushlight.overrides import _dispatch

            _dispatch(made.__set__, (self, value), None)
        elif set is None:
            raise AttributeError(f"attribute '{name}' of 'torch._C.TensorBase' objects is not writable")
        else:
            set(self, value)

    def delete(self):
        if unset is not None:
            return unset(self)
        raise AttributeError(f"attribute '{name}' of 'torch._C.TensorBase' objects is not writable")

    made = property(read, write, delete, doc=doc)
    setattr(Tensor, name, made)


# Why an `out=` of another dtype is refused by the functions that do not cast; see write_out.
SAME_DTYPE = "Expected out tensor to have dtype {result_c}, but got {out_c} instead"
FOUND_DTYPE = "Found dtype {out} but expected {result}"


def write_out(
    out: Any,
    result: Tensor,
    *,
    exact: str = "",
    unsafe: str = "",
    writer: str = "",
    apart: Sequence[Tensor] = (),
) -> Tensor:
    """The `out=` form of a function: puts `result` into `out`, resizing it as torch does. A result is cast
    to the dtype of `out` unless `exact` gives the sentence that refuses; `unsafe` is that for a cast that
    loses something. `writer` is torch's name of what writes, where it is not that of the function. `out` may
    be one of the inputs `apart`, but not share part of its memory with them."""
    if _C.copy_to_output(out, result, apart):  # as nearly always
        return out
    if isinstance(out, (int, float, complex)):  # where a number is taken for a tensor, also here
        double = {float: _C.float64, complex: _C.complex128}
        out = FUNCTIONS["tensor"](out, dtype=double.get(type(out)))
    if not isinstance(out, Tensor):
        raise TypeError(f"argument 'out' must be Tensor, not {class_name(out)}")
    check_examples(out, result, writer)
    check_cast(out, result.dtype, exact, unsafe)
    check_recorded(out, result, writer)
    if _C.is_any_sparse(result) and _C.is_any_sparse(out):
        return _C.in_place(_C.ops.copy, out, result)
    if _C.carries_tangents() and any(_C.tangent(t) is not None for t in (result, out)):
        refuse_written_tangent(writer or _writer())
    if out.device != result.device:
        if exact is SAME_DTYPE and (writer or _writer()).startswith(("gather", "topk", "linalg", "inv")):
            raise RuntimeError(
                f"Expected out tensor to have device {result.device}, but got {out.device} instead"
            )
        raise RuntimeError(
            f"Attempting to copy from device {result.device} to device {out.device}, but cross-device copies "
            "are not allowed!"
        )
    if apart:
        check_whole_or_apart(out, result, apart)
    if out.shape != result.shape:
        warn_resized(out, result)
        fit(out, result)
    return _C.in_place(_C.ops.copy, out, result)


def check_examples(out: Tensor, result: Tensor, writer: str = "") -> None:
    """Refuses to write what differs among the examples of a batch where it would be the same for all."""
    while _C.is_leveled(result):
        if result.batched and not (_C.is_leveled(out) and out.level == result.level and out.batched):
            raise RuntimeError(
                f"Batching rule not implemented for aten::{writer or _writer()}.out; the fallback path "
                "doesn't work on out= or view ops."
            )
        if _C.is_leveled(out) and out.level == result.level:
            out = out.value
        result = result.value


def check_cast(out: Tensor, dtype: _C.dtype, exact: str = "", unsafe: str = "") -> None:
    """Refuses an `out` that does not take a result of the dtype; see write_out."""
    if out.dtype == dtype:
        return
    names = {"out": type_name(out.dtype), "result": type_name(dtype)}
    if exact:
        raise RuntimeError(exact.format(**names, out_c=C_NAMES[out.dtype], result_c=C_NAMES[dtype]))
    if not _C.can_cast(dtype, out.dtype):
        unsafe = unsafe or "result type {result} can't be cast to the desired output type {out}"
        raise RuntimeError(unsafe.format(**names))


def check_recorded(out: Tensor, result: Tensor, writer: str = "") -> None:
    """Refuses to write a result of which a gradient is wanted, unless the function records that."""
    if _C.is_grad_enabled() and (result.requires_grad or out.requires_grad):
        name = writer or _writer()
        leaf = out.is_leaf and out.requires_grad
        if leaf and name in COMPOSED:
            _C.check_inplace(out)
        if leaf or name not in RECORDED:
            prefix = "aten::" if name in RECORDED else ""
            raise RuntimeError(
                f"{prefix}{name}(): functions with out=... arguments don't support automatic "
                "differentiation, but one of the arguments requires grad."
            )


def fit(out: Tensor, result: Tensor) -> None:
    """Resizes `out` to hold `result`, with its dimensions in the order in which they lie in memory."""
    recording = _C.set_grad_enabled(False)  # the history is that of what is written
    try:
        with uncounted(out):  # it is written once, by what comes after
            if _C.is_sparse(out):
                out.resize_(result.shape)  # which is refused
            _C.resize(out, result.shape, True)
            if out.stride() != result.stride() and out.numel():
                reach = 1 + sum((n - 1) * step for n, step in zip(result.shape, result.stride(), strict=True))
                if reach == out.numel():
                    out.as_strided_(out.shape, result.stride())
    finally:
        _C.set_grad_enabled(recording)


def warn_resized(out: Tensor, result: Tensor) -> None:
    """Says that an `out=` of another size is about to be resized."""
    if out.numel():
        warn(
            f"An output with one or more elements was resized since it had shape {list(out.shape)}, which "
            f"does not match the required output shape {list(result.shape)}. This behavior is deprecated, "
            "and in a future PyTorch release outputs will not be resized unless they have zero elements. "
            "You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with "
            "t.resize_(0)."
        )


def write_in_place(primitive: _C.Primitive, self: Tensor, *args: Any) -> Tensor:
    """The in-place form of what reads here and writes there: the tensors must not share memory."""
    if isinstance(self, Tensor) and not self.is_inference():  # of that it is told after all else
        _C.check_inplace(self)
    for value in args:
        for each in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(each, Tensor) and isinstance(self, Tensor) and _C.overlap(each, self):
                if any(_C.is_neg(t) or _C.is_conj(t) for t in (each, self)):
                    continue  # torch works on copies of those
                if primitive.__name__ == "index_put" and not _too_many(self, args[0]):
                    raise RuntimeError(OVERLAP)  # before the values are looked at
                if primitive.__name__ != "index_copy":
                    _check_shapes(primitive, self, *args)
                elif "dim" in primitive.args:
                    wrap_dim(args[primitive.args.index("dim") - 1], self.dim())
                shared = any(stride == 0 and size > 1 for stride, size in zip(self.stride(), self.shape))
                raise RuntimeError(INTERNAL if shared and primitive.__name__ != "index_put" else OVERLAP)
    return _C.in_place(primitive, self, *args)


def _too_many(self: Tensor, indices: Any) -> bool:
    """Whether the indices are of more dimensions than there are."""
    masks = (_C.bool, _C.uint8)
    taken = (x.dim() if isinstance(x, Tensor) and x.dtype in masks else 1 for x in indices)
    return sum(taken) > self.dim()


def _check_shapes(primitive: _C.Primitive, *args: Any) -> None:
    """Refuses what is wrong with the call whatever the numbers are, as on tensors that have none."""
    before = _C.set_grad_enabled(False)
    try:
        primitive(*(value.detach().to("meta") if isinstance(value, Tensor) else value for value in args))
    finally:
        _C.set_grad_enabled(before)


def _writer() -> str:
    """The name of the function whose `out=` is written."""
    frame: Any = sys._getframe(2)
    inner = ("write_out", "finish", "several", "write_apart", "<genexpr>", "<listcomp>", "__new__")
    while frame.f_code.co_name in inner or frame.f_code.co_name.startswith("_"):
        frame = frame.f_back
    return frame.f_code.co_name


def write_apart(
    out: Tensor, result: Tensor, *inputs: Tensor, exact: str = SAME_DTYPE, at_once: bool = False
) -> Tensor:
    """write_out for the functions that read here and write there: `out` must not share memory with an input
    or with itself, once it is resized or (`at_once`) as it is given."""
    if isinstance(out, Tensor) and out.shape != result.shape and not at_once:
        if not out.requires_grad and (not exact or out.dtype == result.dtype):
            check_resized(out, result, inputs)
    else:
        check_apart(out, *inputs)
    return write_out(out, result, exact=exact)


def write_beside(out: Tensor, result: Tensor, input: Tensor, *others: Any) -> Tensor:
    """write_out for what may write over its input, but not over the index and what is written."""
    if isinstance(out, Tensor) and out.shape == result.shape:
        check_apart(out, *(t for t in others if isinstance(t, Tensor)))
        check_apart_elements(out, [input])
    elif isinstance(out, Tensor) and not out.requires_grad and out.dtype == result.dtype:
        check_resized(out, result, [t for t in others if isinstance(t, Tensor)])
        check_resized(out, result, [input], itself=True)
    return write_out(out, result, exact=SAME_DTYPE)


def check_whole_or_apart(out: Tensor, result: Tensor, inputs: Sequence[Tensor]) -> None:
    """Refuses an `out=` that shares part of its memory with an input; it may be the input itself."""
    if out.shape == result.shape:
        check_apart_elements(out, inputs)
    else:
        check_resized(out, result, inputs, itself=True)


def check_resized(out: Tensor, result: Tensor, inputs: Sequence[Tensor], itself: bool = False) -> None:
    """Refuses an `out=` that, once it is as large as the result, would reach into an input; with `itself`
    it may become the input."""
    if out.is_meta:
        return
    first = out.untyped_storage().data_ptr() + out.storage_offset() * out.element_size()
    last = first + result.numel() * out.element_size()
    for input in inputs:
        if not input.is_meta and input.numel() and _same_storage(input, out):
            start, end = _span(input)
            if end - start != input.numel() * input.element_size():
                continue  # it has gaps or is expanded: torch does not look
            becomes = itself and (start, end) == (first, last) and input.is_contiguous()
            if start < last and first < end and not becomes:
                warn_resized(out, result)
                raise RuntimeError(OVERLAP)


def _same_storage(a: Tensor, b: Tensor) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def shares_elements(t: Tensor) -> bool:
    """Whether a tensor is expanded: several of its elements are one place in memory."""
    if _C.is_any_sparse(t):
        return False
    return any(size > 1 and not step for size, step in zip(t.shape, t.stride())) and t.numel() > 0


def check_apart(out: Tensor, *inputs: Tensor) -> None:
    """Refuses an `out=` that shares memory with an input or with itself."""
    if _C.are_apart(out, inputs) or any(map(_C.is_leveled, (out, *inputs))):
        return
    if isinstance(out, Tensor) and out.numel() and not out.is_meta:
        if shares_elements(out):
            raise RuntimeError(INTERNAL)
        first, last = _span(out)
        for input in inputs:
            start, end = _span(input) if input.numel() else (0, 0)
            if start < last and first < end:
                raise RuntimeError(OVERLAP)


def _span(t: Tensor) -> tuple[int, int]:
    """The addresses of the first byte of a tensor and of the one behind its last."""
    length = sum((size - 1) * step for size, step in zip(t.shape, t.stride())) + 1
    return t.data_ptr(), t.data_ptr() + length * t.element_size()


_FLOAT8 = ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")
_TYPE_NAMES = {
    _C.uint8: "Byte", _C.int8: "Char", _C.int16: "Short", _C.int32: "Int",
    _C.int64: "Long", _C.float16: "Half", _C.float32: "Float", _C.float64: "Double",
    _C.complex64: "ComplexFloat", _C.complex128: "ComplexDouble", _C.bool: "Bool", _C.bfloat16: "BFloat16",
    _C.uint16: "UInt16", _C.uint32: "UInt32", _C.uint64: "UInt64", _C.complex32: "ComplexHalf",
    **{getattr(_C, "float8_" + form): "Float8_" + form for form in _FLOAT8},
}  # fmt: skip


# Those that most of torch's kernels do not know; see _rare_dtypes.py.
RARE = frozenset(_TYPE_NAMES) - {
    _C.uint8, _C.int8, _C.int16, _C.int32, _C.int64, _C.float16, _C.float32, _C.float64, _C.complex64,
    _C.complex128, _C.bool, _C.bfloat16,
}  # fmt: skip


# What a C++ compiler calls them.
C_NAMES = {dtype: _C.dtype_cpp_name(dtype) for dtype in _TYPE_NAMES}


_OF_PYTHON = {float: _C.float64, int: _C.int64, bool: _C.bool, complex: _C.complex128}


def as_dtype(given: Any) -> Any:
    """The dtype that a type of Python stands for; all else as it is."""
    return _OF_PYTHON.get(given, given) if isinstance(given, type) else given


def type_name(dtype: _C.dtype) -> str:
    """torch's C++ name of a dtype, as its error sentences use it."""
    return _TYPE_NAMES[dtype]


def legacy_name(tensor: Tensor) -> str:
    """What torch calls a kind of tensor in some sentences: its older dtypes have types of their own."""
    name, newer = type_name(tensor.dtype), tensor.dtype.is_complex or tensor.dtype in (_C.bool, _C.bfloat16)
    return f"CPU{name}Type" if newer or tensor.dtype in RARE else f"torch.{name}Tensor"


def invalid_combination(name: str, args: Sequence[Any], *signatures: str) -> TypeError:
    """What torch raises when no signature of a function takes arguments of these types."""
    given = ", ".join(_type_names.type_name(arg) for arg in args)
    expected = "".join(f"\n * ({signature})" for signature in signatures)
    return TypeError(
        f"{name}() received an invalid combination of arguments - got ({given}), but expected one of:"
        f"{expected}"
    )


def check_tensor(value: Any, function: str, argument: str, position: int) -> None:
    """Refuses what is not a tensor in torch's words."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{function}(): argument '{argument}' (position {position}) must be Tensor, not "
            f"{_type_names.type_name(value)}"
        )


def stumble(value: Any, attribute: str) -> None:
    """Fails on what is no tensor as a function does that torch has in Python: it asks for this attribute."""
    if not isinstance(value, Tensor):
        getattr(value, attribute)


def refuse_gradient(function: str, **given: Tensor | None) -> None:
    """Refuses tensors that require grad where torch has no derivative."""
    for name, value in given.items():
        if value is not None and _C.is_grad_enabled() and (value.requires_grad or is_recorded_below(value)):
            raise RuntimeError(
                f"The function '{function}' is not differentiable with respect to argument '{name}'. This "
                "input cannot have requires_grad True."
            )


def undifferentiable(name: str, result: Tensor, *inputs: Tensor | None, node: str | None = None) -> Tensor:
    """`result`, which requires grad as `inputs` do, but whose gradient is an error: `without_derivative`."""
    if _C.is_leveled(result):  # what the batch stands for may be recorded, too
        number, below = result.level, [_C.lower_from_level(x, result.level) for x in (result, *inputs)]
        made = _C.below_level(number, undifferentiable, name, *below)
        result = _C.raise_to_level(made, number, result.batched)
    if not _C.is_grad_enabled() or not any(x is not None and x.requires_grad for x in inputs):
        return result
    from rushlight.autograd.function import without_derivative

    return without_derivative(name, result, *inputs, node=node)


def refuse_complex(value: Any, *tensors: Tensor, kind: str = "") -> None:
    """Refuses a complex number as a factor in an operation on real tensors, which would drop half of it.
    `kind` is what torch would have converted it to: the dtype, or float for halves."""
    if isinstance(value, complex) and value.imag and not any(t.is_complex() for t in tensors):
        if not kind and not tensors[0].is_floating_point():
            return  # torch has no kernel for these, and says so
        if not kind:
            half = tensors[0].dtype in (_C.float16, _C.bfloat16)
            kind = "float" if half else C_NAMES[tensors[0].dtype]
        raise RuntimeError(f"value cannot be converted to type {kind} without overflow")


def fitting(value: Any, dtype: Any) -> float:
    """A number, which has to fit the dtype."""
    from rushlight._dtype_info import finfo

    number = complex(value)
    if number.imag or finfo(dtype).max < abs(number.real) < float("inf"):
        raise RuntimeError(f"value cannot be converted to type {C_NAMES[dtype]} without overflow")
    return number.real


def needs_values(name: str, *tensors: Tensor) -> None:
    """Refuses tensors without data for an operation whose result has no shape without them."""
    if any(map(_C.is_leveled, tensors)):
        refuse_batches(name, *tensors)
    if any(x.is_meta for x in tensors):
        raise NotImplementedError(
            f"aten::{name}: attempted to run this operator with Meta tensors, but there was no fake impl or "
            "Meta kernel registered."
        )


def in_place(name: str, primitive: _C.Primitive | None = None, numbers: bool = True) -> None:
    """Gives Tensor the method `<name>_` that runs the primitive in place on the tensor alone, or with one
    more operand, `other`, which may be a number unless `numbers` says no."""
    primitive = primitive or getattr(_C.ops, name)
    run = _C.in_place

    def alone(self):
        return run(primitive, self)

    def with_other(self, other):
        return run(primitive, self, other)

    def with_tensor(self, other):
        check_tensor(other, f"{name}_", "other", 1)
        return run(primitive, self, other)

    method: Any = with_other if numbers else with_tensor
    if len(primitive.args) == 1:
        method = alone

    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"In-place version of :meth:`{name}`."
    made = _C.Function(method, True)
    made.direct = OPERATIONS.get(f"{name}_")
    setattr(Tensor, f"{name}_", made)


def in_place_of(function: Callable, name: str | None = None) -> None:
    """Gives Tensor the in-place form of any function of a tensor: computed out of place, then taken over."""
    name = name or function.__name__
    overwrite = _C.overwrite

    def method(self, *args, **kwargs):
        return overwrite(self, function, args, kwargs)

    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"In-place version of :meth:`{name}`."
    setattr(Tensor, f"{name}_", _C.Function(method))


def dims(args: tuple) -> tuple:
    """The sizes or dimensions of a call that takes them one by one or as one sequence: view(2, 3), "
    "view((2, 3))."""
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        return tuple(args[0])
    return args


def whole(value: Any) -> Any:
    """The int that NumPy's integers and tensors without dimensions stand for; anything else as it is."""
    if value.__class__ is int or isinstance(value, bool) or not hasattr(value, "__index__"):
        return value
    try:
        return value.__index__()
    except TypeError:  # an array or a tensor with dimensions
        return value


def wrap_dim(dim: int, ndim: int) -> int:
    """`dim` counted from the front; torch's IndexError if it is out of range."""
    n = ndim or 1
    if not -n <= dim < n:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim + 0})"
        )
    return dim % n
