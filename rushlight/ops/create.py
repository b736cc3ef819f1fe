"""Factories: tensors from data, from sizes, from other tensors."""

from __future__ import annotations

import math

from rushlight import _C
from rushlight._annotations import Any
from rushlight._outputs import fill_made
from rushlight._type_names import type_name as class_name
from rushlight._warn import warn, warn_once
from rushlight.ops._public import (
    Tensor,
    as_dtype,
    check_cast,
    dims,
    fit,
    function,
    invalid_combination,
    method,
    type_name,
    write_out,
)
from rushlight.ops._public import whole as as_whole
from rushlight.ops.layout import empty_arranged, preserve_format

_default_device: Any = (
    None  # the answer of _settings.DefaultDevice, from the first thread on that chooses one
)
MOST_DIMS = 64  # of a tensor that is not a TallTensor


class layout:
    """How a tensor's elements are stored: strided, sparse in coordinates, or compressed by rows, columns or
    blocks of them."""

    __module__ = "rushlight"

    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"torch.{self._name}"

    def __reduce__(self):
        return self._name


strided = layout("strided")
sparse_coo, sparse_csr, sparse_csc = layout("sparse_coo"), layout("sparse_csr"), layout("sparse_csc")
sparse_bsr, sparse_bsc, jagged = layout("sparse_bsr"), layout("sparse_bsc"), layout("jagged")
_mkldnn = layout("_mkldnn")
SPARSE = sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc


def _checked(layout_, pin_memory):
    if layout_ is not None and layout_ is not strided:
        raise NotImplementedError(f"layout={layout_} is not implemented there")
    if pin_memory:
        raise RuntimeError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is "
            "available on this system."
        )


def refuse_sparse_on(device):
    """Sparse tensors are in memory."""
    if device.type == "cuda":
        raise RuntimeError("PyTorch is not linked with support for cuda devices")
    if device.type != "cpu":
        raise NotImplementedError(f"sparse tensors on {device} are not implemented")


def without_entries(size, dtype, device, requires_grad, layout_=sparse_coo, name="zeros"):
    """A sparse tensor of zeros."""
    place = _C.as_device(device or "cpu")
    refuse_sparse_on(place)
    dtype = dtype or _C.get_default_dtype()
    if layout_ is not sparse_coo:
        from rushlight._compressed.build import empty as compressed

        return _finish(compressed(name, size, dtype, layout_), requires_grad)
    from rushlight._sparse.tensor import empty

    return _finish(empty(size, dtype, place), requires_grad)


def _refuse_filled(layout_):
    if layout_ is sparse_coo:
        raise RuntimeError("full(...) is not implemented for sparse layout")


def _finish(t, requires_grad, out=None, name=""):
    if isinstance(out, Tensor):
        check_cast(out, t.dtype, "dtype {result} does not match dtype of out parameter ({out})")
        if out.device != t.device and t.is_meta:
            raise RuntimeError(
                f"device type {t.device.type} does not match device type of out parameter ({out.device.type})"
            )
        t = fill_made(name, out, lambda: _fill_made(out, t, name))
    elif out is not None:
        write_out(out, t)  # says that it is no tensor
    if requires_grad and not (t.is_floating_point() or t.is_complex()):
        raise RuntimeError(
            f"Only Tensors of floating point and complex dtype can require gradients\n\n  The dtype here is "
            f"{t.dtype}. Write the numbers as floats (1.0), or pass dtype=torch.float32."
        )
    return _C.requires_grad_(t, True) if requires_grad else t


def _fill_made(out, t, name):
    if name == "empty":
        return out.resize_(t.shape)
    if out.shape != t.shape:
        fit(out, t)  # without the warning that other functions give
    if out.is_meta:
        t = t.to(out.device)
    place = out
    if name in ("zeros", "ones", "full", "eye"):  # of equal numbers, which an expanded tensor takes
        for d, step in enumerate(out.stride()):
            if step == 0 and out.shape[d] > 1:
                place = place.narrow(d, 0, 1)
                t = t.ne(0).any(d, True).to(t.dtype) if name == "eye" else t.narrow(d, 0, 1)
    write_out(place, t)
    return out


def _finish_numbers(t, requires_grad, out, name):
    """_finish for numbers in a row: an `out` of as many elements keeps its shape."""
    fits = isinstance(out, Tensor) and out.numel() == t.numel()
    return _finish(t.reshape(out.shape) if fits else t, requires_grad, out, name)


deterministic = False  # what use_deterministic_algorithms() was last told


def mark_unwritten(t):
    """Under deterministic algorithms memory that nobody has written holds NaN, the largest number or True,
    unless torch.utils.deterministic.fill_uninitialized_memory is False."""
    from rushlight.utils import deterministic as switch

    if switch.fill_uninitialized_memory and t.device.type != "meta":
        if t.is_floating_point() or t.is_complex():
            _C.fill_fresh(t, math.nan)
        else:
            from rushlight._dtype_info import iinfo

            _C.fill_fresh(t, True if t.dtype == _C.bool else iinfo(t.dtype).max)
    return t


def _kind(dtype, out):
    """The dtype to make: the one asked for, else that of `out`, else None."""
    return out.dtype if dtype is None and out is not None else as_dtype(dtype)


def _device(device):
    return _default_device.now() if device is None and _default_device is not None else device


def _size(args, name, keyword=None):
    if not args and keyword is None:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    given = args[0] if len(args) == 1 else args
    if keyword is not None:
        given = keyword
    if isinstance(given, (tuple, list)):
        size = tuple(given)
        for at, s in enumerate(size, 1):
            if type(s) is not int and (isinstance(s, (float, complex, str)) or s is None):
                raise TypeError(
                    f"{name}(): argument 'size' failed to unpack the object at pos {at} with error \"type "
                    f'must be tuple of ints,but got {class_name(s)}"'
                )
        return size
    if isinstance(given, (float, complex, str, bool)) or given is None:
        raise TypeError(
            f"{name}(): argument 'size' (position 1) must be tuple of ints, not {class_name(given)}"
        )
    return dims(args) if keyword is None else (given,)


def _made(make, sizes, requires_grad, out=None, name=""):
    """make(sizes), which may be too many for the core."""
    if len(sizes) > MOST_DIMS and out is None:
        from rushlight._tall import tall

        return tall(sizes, lambda few: _finish(make(few), requires_grad))
    return _finish(make(sizes), requires_grad, out, name)


def _filled(args, value):
    """A tensor of these sizes, if nothing else is asked for; None if something is wrong, which the longer way
    says."""
    sizes = args if len(args) > 1 or type(args[0]) is int else args[0]
    try:
        return _C.full(sizes, value, _C.get_default_dtype(), None)
    except (TypeError, RuntimeError):
        return None


def _check_dtype(dtype, name):
    if dtype is not None and not isinstance(dtype, _C.dtype) and dtype not in (float, int, bool, complex):
        raise TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {class_name(dtype)}")


@function
def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A tensor with a copy of `data`: a number, nested sequences, an array or another tensor.

    >>> rushlight.tensor([[1., 2.], [3., 4.]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    _checked(None, pin_memory)
    if isinstance(data, Tensor):
        import warnings

        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            stacklevel=2,
        )
        made = data.detach().to(dtype=dtype, device=device, copy=True)
    else:
        place = _device(device)
        _refuse_fraction(data, dtype)
        made = _from_foreign(data)
        if made is not None:
            made = made.to(dtype=dtype, device=place, copy=True)
        elif _is_storage(data):
            made = _on_storage(data, dtype)
        else:
            made = _C.from_data(data, dtype, place)
    return _finish(made, requires_grad)


def _refuse_fraction(data, dtype):
    """Refuses NumPy's numbers with a fraction for whole ones; those that Python knows are cut."""
    dtype = as_dtype(dtype)
    whole_wanted = isinstance(dtype, _C.dtype) and not (dtype.is_floating_point or dtype.is_complex)
    if whole_wanted and type(data) not in _PLAIN and not isinstance(data, float):
        home, kind = getattr(type(data), "__module__", ""), getattr(getattr(data, "dtype", None), "kind", "")
        if home == "numpy" and kind in "fc" and not hasattr(data, "__len__"):
            raise TypeError(f"'{class_name(data)}' object cannot be interpreted as an integer")


def _is_storage(data):
    return type(data) not in _PLAIN and hasattr(data, "_cdata") and hasattr(data, "nbytes")


def _on_storage(data, dtype):
    """A tensor on the memory of a storage, of its dtype; bytes without one are taken for whole numbers."""
    own = getattr(data, "dtype", None)
    if own is None and not data.nbytes():
        own = dtype or _C.get_default_dtype()
    if own is not None and dtype not in (None, own):
        raise RuntimeError(
            f"Expected a Storage of type {type_name(dtype)} or an UntypedStorage, but got {type_name(own)}"
        )
    return _C.empty((0,), dtype or own or _C.int64, data.device).set_(data)


_PLAIN = (list, tuple, float, int, bool, complex, range, str)


def _from_foreign(data):
    """A tensor on the memory of an array of another library, or None if `data` is plain Python."""
    kind = type(data)
    if kind in _PLAIN or not (hasattr(data, "__array__") or hasattr(data, "__dlpack__")):
        return None
    from rushlight import _exchange

    return _exchange.from_array(data)


def _is_buffer(data):
    """Whether `data` lends its memory (bytes, array.array, mmap ...) and is no array."""
    if type(data) in _PLAIN or isinstance(data, Tensor) or hasattr(data, "__array__"):
        return False
    try:
        memoryview(data)
    except TypeError:
        return False
    return True


@function
def as_tensor(data, *, dtype=None, device=None):
    """A tensor of `data`, sharing memory and history where that is possible.

    >>> rushlight.as_tensor([1, 2])
    tensor([1, 2])
    """
    if not isinstance(data, Tensor):
        _refuse_fraction(data, dtype)
        made = _from_foreign(data)
        if made is None:
            if _is_storage(data):
                return _on_storage(data, dtype)
            return _C.from_data(data, dtype, _device(device))
        data = made
    return data.to(dtype=dtype or data.dtype, device=device or data.device)


@function
def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None):
    """A tensor of `obj`, sharing its memory unless that is impossible or copy=True.

    copy=False insists on sharing.

    Unlike as_tensor, the history of a tensor is cut with requires_grad=False; without a word it is kept.

    >>> rushlight.asarray([1.0, 2.0])
    tensor([1., 2.])
    """
    if requires_grad is None:
        requires_grad = isinstance(obj, Tensor) and obj.requires_grad
        if requires_grad:
            warn_once(
                "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of "
                "False. Pass requires_grad=False explicitly to get the old behavior and silence this warning."
            )
    if _is_buffer(obj):
        from rushlight._exchange import frombuffer

        made = frombuffer(obj, dtype=dtype or _C.get_default_dtype())
        return _finish(made.clone() if copy else made, requires_grad)
    if type(obj).__name__ == "PyCapsule":
        from rushlight._exchange import from_dlpack

        obj = from_dlpack(obj)
    listed = isinstance(obj, (list, tuple, int, float, complex, bool))
    if copy is False and not (
        isinstance(obj, Tensor) or getattr(type(obj), "__module__", "") == "numpy" or _exports(obj)
    ):
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    made = as_tensor(obj, dtype=dtype, device=device)
    shares = made is obj or not (listed or made.is_meta)
    if isinstance(obj, Tensor):
        shares = made.data_ptr() == obj.data_ptr()
    elif shares and _is_storage(obj):
        copy = None  # the memory of a storage, of any dtype: torch does not copy it
    elif dtype is not None and shares:
        shares = as_tensor(obj).dtype == dtype
    if copy is False and not shares:
        before = as_tensor(obj)
        if made.device != before.device:
            raise ValueError(f"can't alias tensor from device '{before.device}' to '{made.device}'.")
        if made.dtype != before.dtype:
            kinds = [type_name(t.dtype) for t in (before, made)]
            raise ValueError(f"can't alias tensor with dtype '{kinds[0]}' into dtype '{kinds[1]}'.")
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    if copy and shares:
        made = made.clone()
    if made.requires_grad and not requires_grad:
        made = _C.requires_grad_(made, False) if made.is_leaf else made.detach()
    return _finish(made, True) if requires_grad and not made.requires_grad else made


def _exports(obj):
    """Whether somebody else's object may show us its memory."""
    return hasattr(obj, "__array__") or hasattr(obj, "__dlpack__") or hasattr(obj, "__array_interface__")


@function
def scalar_tensor(s, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """A 0-dim tensor of a number, of the default dtype.

    >>> rushlight.scalar_tensor(3)
    tensor(3.)
    """
    _checked(layout, pin_memory)
    return _finish(_C.full((), s, dtype or _C.get_default_dtype(), _device(device)), requires_grad)


@function
def empty(*args, size=None, out=None, dtype=None, layout=None, device=None, requires_grad=False,
          pin_memory=False, memory_format=None):  # fmt: skip
    """A tensor of uninitialised memory.

    >>> rushlight.empty(2, 3).shape
    torch.Size([2, 3])
    """
    sizes = _size(args, "empty", size)
    if layout in SPARSE and out is None:
        return without_entries(sizes, dtype, device, requires_grad, layout, "empty")
    _checked(layout, pin_memory)

    def unwritten(sizes):
        t = empty_arranged(sizes, memory_format, _kind(dtype, out), _device(device))
        return mark_unwritten(t) if deterministic else t

    return _made(unwritten, sizes, requires_grad, out, "empty")


@function
def empty_strided(
    size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """Uninitialised memory with the given strides.

    >>> rushlight.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    _checked(layout, pin_memory)
    t = _C.empty_strided(tuple(size), tuple(stride), dtype, _device(device))
    return _finish(mark_unwritten(t) if deterministic else t, requires_grad)


@function
def zeros(
    *args, size=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """Zeros.

    >>> rushlight.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    if size is out is dtype is layout is device is _default_device is None and not requires_grad and args:
        made = _filled(args, 0) if not pin_memory else None
        if made is not None:
            return made
    sizes = _size(args, "zeros", size)
    if layout in SPARSE and out is None:
        return without_entries(sizes, dtype, device, requires_grad, layout)
    _checked(layout, pin_memory)
    _check_dtype(dtype, "zeros")
    if sizes and min(sizes) < 0:
        raise RuntimeError("zeros: Dimension size must be non-negative.")
    dtype = _kind(dtype, out) or _C.get_default_dtype()
    return _made(lambda s: _C.full(s, 0, dtype, _device(device)), sizes, requires_grad, out, "zeros")


@function
def ones(
    *args, size=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """Ones.

    >>> rushlight.ones(2)
    tensor([1., 1.])
    """
    if size is out is dtype is layout is device is _default_device is None and not requires_grad and args:
        made = _filled(args, 1) if not pin_memory else None
        if made is not None:
            return made
    _refuse_filled(layout)
    _checked(layout, pin_memory)
    sizes = _size(args, "ones", size)
    dtype = _kind(dtype, out) or _C.get_default_dtype()
    return _made(lambda s: _C.full(s, 1, dtype, _device(device)), sizes, requires_grad, out, "ones")


def _number(name, value):
    """What to fill with: a number, or a tensor that is one."""
    if not isinstance(value, Tensor):
        return value
    if value.dim() or value.requires_grad:
        raise TypeError(f"{name}(): argument 'fill_value' (position 2) must be Number, not Tensor")
    return value.item()


@function
def full(
    size, fill_value, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """A tensor filled with one value.

    >>> rushlight.full((2,), 7)
    tensor([7, 7])
    """
    _refuse_filled(layout)
    _checked(layout, pin_memory)
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {class_name(size)}")
    sizes = _size((size,), "full")
    value = _number("full", fill_value)
    dtype = _kind(dtype, out)
    return _made(lambda s: _C.full(s, value, dtype, _device(device)), sizes, requires_grad, out, "full")


_NO_EYE = (_C.uint16, _C.uint32, _C.uint64, _C.complex32)


@function
def eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """The identity matrix, or its n by m corner.

    >>> rushlight.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    _checked(layout, pin_memory)
    n, m = as_whole(n), as_whole(m)
    m = n if m is None else m
    for which, value in (("n", n), ("m", m)):
        if isinstance(value, float):
            if which == "m":
                raise invalid_combination("eye", (n, m), "int n, *", "int n, int m, *")
            raise TypeError("eye(): argument 'n' (position 1) must be int, not float")
    if n < 0 or m < 0:
        raise RuntimeError(f"{'n' if n < 0 else 'm'} must be greater or equal to 0, got {n if n < 0 else m}")
    dtype = _kind(dtype, out) or _C.get_default_dtype()
    if dtype in _NO_EYE:
        raise NotImplementedError(f"\"eye\" not implemented for '{type_name(dtype)}'")
    if n * m >= 2**63:
        raise RuntimeError("numel: integer multiplication overflow")
    t = _C.full((n, m), 0, dtype, _device(device))
    t.diagonal().fill_(1)
    _C.set_version(t, 0)  # nobody has seen it written
    _C.stamp(t)
    return _finish(t, requires_grad, out, "eye")


def _like(input, dtype, layout_, device, pin_memory):
    _checked(layout_, pin_memory)
    return dtype or input.dtype, input.device if device is None else device


def _fill_like(input, value, dtype, layout_, device, requires_grad, pin_memory, memory_format):
    dtype, device = _like(input, dtype, layout_, device, pin_memory)
    if memory_format in (None, preserve_format):
        t = _C.empty_like(input, dtype, device)
    else:
        t = empty_arranged(tuple(input.shape), memory_format, dtype, device)
    if value is not None:
        _C.fill_fresh(t, value)
    elif deterministic:
        mark_unwritten(t)
    return _finish(t, requires_grad)


@function
def empty_like(input, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False,
               memory_format=None):  # fmt: skip
    """Uninitialised memory with the sizes (and dense layout) of `input`.

    >>> rushlight.empty_like(rushlight.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    return _fill_like(input, None, dtype, layout, device, requires_grad, pin_memory, memory_format)


@function
def zeros_like(input, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False,
               memory_format=None):  # fmt: skip
    """Zeros with the sizes of `input`.

    >>> rushlight.zeros_like(rushlight.ones(2))
    tensor([0., 0.])
    """
    if layout in SPARSE:
        return without_entries(input.shape, dtype or input.dtype, device, requires_grad, layout)
    return _fill_like(input, 0, dtype, layout, device, requires_grad, pin_memory, memory_format)


@function
def ones_like(input, *, dtype=None, layout=None, device=None, requires_grad=False,
              pin_memory=False, memory_format=None):  # fmt: skip
    """Ones with the sizes of `input`.

    >>> rushlight.ones_like(rushlight.zeros(2))
    tensor([1., 1.])
    """
    return _fill_like(input, 1, dtype, layout, device, requires_grad, pin_memory, memory_format)


@function
def full_like(input, fill_value, *, dtype=None, layout=None, device=None, requires_grad=False,
              pin_memory=False, memory_format=None):  # fmt: skip
    """One value with the sizes of `input`.

    >>> rushlight.full_like(rushlight.ones(2), 7)
    tensor([7., 7.])
    """
    value = _number("full_like", fill_value)
    return _fill_like(input, value, dtype, layout, device, requires_grad, pin_memory, memory_format)


@method
def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """A tensor of `data` with this tensor's dtype and device.

    >>> rushlight.ones(1).new_tensor([1, 2])
    tensor([1., 2.])
    """
    _checked(layout, pin_memory)
    dtype, device = dtype or self.dtype, self.device if device is None else device
    if isinstance(data, Tensor):
        warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than "
            "tensor.new_tensor(sourceTensor)."
        )
        made = data.detach().to(dtype=dtype, device=device, copy=True)
        return _finish(made, requires_grad)
    return tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


@method
def new_empty(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """Uninitialised memory with this tensor's dtype and device.

    >>> rushlight.ones(1).new_empty(2, 3).shape
    torch.Size([2, 3])
    """
    if layout in SPARSE:
        return without_entries(_size(size, "new_empty"), dtype or self.dtype, device, requires_grad, layout)
    _checked(layout, pin_memory)

    def unwritten(sizes):
        t = _C.empty(sizes, dtype or self.dtype, self.device if device is None else device)
        return mark_unwritten(t) if deterministic else t

    return _made(unwritten, _size(size, "new_empty"), requires_grad)


def _filled_like(self, sizes, value, dtype, device, requires_grad):
    dtype, device = dtype or self.dtype, self.device if device is None else device
    return _made(lambda s: _C.full(s, value, dtype, device), sizes, requires_grad)


@method
def new_zeros(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """Zeros with this tensor's dtype and device.

    >>> rushlight.tensor([1]).new_zeros(2)
    tensor([0, 0])
    """
    if layout in SPARSE:
        return without_entries(_size(size, "new_zeros"), dtype or self.dtype, device, requires_grad, layout)
    _checked(layout, pin_memory)
    return _filled_like(self, _size(size, "new_zeros"), 0, dtype, device, requires_grad)


@method
def new_ones(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """Ones with this tensor's dtype and device.

    >>> rushlight.tensor([1]).new_ones(2)
    tensor([1, 1])
    """
    _checked(layout, pin_memory)
    return _filled_like(self, _size(size, "new_ones"), 1, dtype, device, requires_grad)


@method
def new_full(
    self, size, fill_value, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False
):
    """One value with this tensor's dtype and device.

    >>> rushlight.ones(1).new_full((2,), 7)
    tensor([7., 7.])
    """
    _checked(layout, pin_memory)
    return _filled_like(self, tuple(size), fill_value, dtype, device, requires_grad)
