"""Exchanging data with NumPy and others: from_numpy, numpy(), __array__, DLPack, buffers. NumPy is "
"imported on use."""

from __future__ import annotations

import sys

from rushlight import _C
from rushlight._annotations import Any
from rushlight._errors import explain_operands
from rushlight._named_operators import python_method
from rushlight._type_names import type_name as class_name
from rushlight._versions import uncounted
from rushlight._warn import warn_once
from rushlight.ops._public import Tensor, as_dtype, function, method


def _shared(array: Any) -> tuple[Tensor, bool]:
    """A tensor on the array's memory, and whether it may be written to."""
    try:
        tensor, writable = _C.from_buffer(array)
    except Exception:
        _refuse(array)
        raise
    if not tensor.numel() and array.ndim:  # of nothing a buffer shows other strides than the array has
        steps = [step // array.itemsize for step in array.strides]
        if min(steps) >= 0:
            with uncounted(tensor):
                tensor.as_strided_(array.shape, steps)
    return tensor, writable


def _refuse(array: Any) -> None:
    """Says in torch's words what kinds of arrays cannot be shared."""
    if array.dtype.byteorder == ">":
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between "
            "byte orders "
            "is currently not supported."
        ) from None
    if array.dtype.kind not in "fciub" or array.dtype.name in ("float128", "longdouble"):
        raise TypeError(
            f"can't convert np.ndarray of type "
            f"{array.dtype.type.__module__}.{array.dtype.type.__name__}. The only "
            "supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, "
            "int8, "
            "uint64, uint32, uint16, uint8, and bool."
        ) from None


_READ_ONLY = (
    "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This "
    "means writing to "
    "this tensor will result in undefined behavior. You may want to copy the array to protect its data "
    "or make it "
    "writable before converting it to a tensor. This type of warning will be suppressed for the rest of "
    "this program."
)


@function
def from_numpy(ndarray):
    """A tensor on the memory of a NumPy array: writing to one changes the other."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(ndarray, numpy.ndarray):
        raise TypeError(f"expected np.ndarray (got {class_name(ndarray)})")
    tensor, writable = _shared(ndarray)
    if not writable:
        warn_once(_READ_ONLY)
    return tensor


def from_array(data: Any) -> Tensor:
    """A tensor on the memory of any array: NumPy's, one with `__dlpack__`, or one with `__array__`."""
    loaded = sys.modules.get("numpy")
    if loaded is not None and isinstance(data, (loaded.ndarray, loaded.generic)):
        return _shared(loaded.asarray(data))[0]
    if hasattr(data, "__dlpack__") and not hasattr(data, "__array_interface__"):
        return from_dlpack(data)
    import numpy

    return _shared(numpy.asarray(data))[0]


@method
def numpy(self, *, force=False):
    """A NumPy array on this tensor's memory; force=True copies or detaches where it must.

    >>> rushlight.tensor([1, 2]).numpy()
    array([1, 2])
    """
    if self.requires_grad and not force and _C.is_grad_enabled():
        raise RuntimeError(
            explain_operands(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
                [("tensor", self, _C.place_of(self))],
                "NumPy cannot record: gradients would stop here. detach() says that this is meant.",
            )
        )
    if self.device.type != "cpu" and not force:
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the "
            f"tensor to host "
            "memory first."
        )
    import numpy

    if force:
        self = self.detach().resolve_conj().resolve_neg()
        self = self.clone() if _C.is_zero_for_good(self) else self
    _C.hold_storage(self)  # the array must not be left behind by a storage that moves
    return numpy.asarray(_C.export_buffer(self.detach()))


def _array(self, dtype=None, copy=None):
    array = self.numpy()
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


def _array_wrap(self, array, context=None, return_scalar=False):
    if array.dtype == bool:
        array = array.astype("uint8")  # as torch, whose programs may count on numbers
    return from_numpy(array[...])  # an array also of a NumPy number


def _dlpack_device(self):
    if self.device.type != "cpu":
        raise ValueError(f"Unknown device type {self.device.type} for Dlpack")
    from rushlight.utils.dlpack import DLDeviceType

    return (DLDeviceType.kDLCPU, 0)


def _dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if stream is not None and stream != -1 and self.device.type == "cpu":
        raise AssertionError("stream should be None on cpu.")
    if dl_device is not None and tuple(dl_device) != (1, 0):
        raise BufferError(f"Unsupported device_type: {int(dl_device[0])}")
    source = self.clone() if copy else self
    return _C.to_dlpack(source, max_version is not None and max_version[0] >= 1)


@function
def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor on the memory of an object with `__dlpack__`, or of a DLPack capsule.

    >>> rushlight.from_dlpack(rushlight.tensor([1, 2]))
    tensor([1, 2])
    """
    if hasattr(ext_tensor, "__dlpack__"):
        if isinstance(ext_tensor, Tensor):
            ext_tensor.__dlpack_device__()  # refuses a device without memory
        try:
            capsule = ext_tensor.__dlpack__(max_version=(1, 0))
        except TypeError:
            capsule = ext_tensor.__dlpack__()
    else:
        if device is not None or copy is not None:
            raise AssertionError(
                "device and copy kwargs not supported when ext_tensor is already a DLPack capsule."
            )
        capsule = ext_tensor
    tensor = _C.from_dlpack(capsule)
    tensor = tensor.clone() if copy else tensor
    return tensor if device is None else tensor.to(device)


@function
def frombuffer(buffer, *, dtype=None, count=-1, offset=0, requires_grad=False):
    """A 1-dim tensor on the memory of a buffer, from `offset` bytes on.

    >>> rushlight.frombuffer(bytearray(b"ab"), dtype=rushlight.uint8)
    tensor([97, 98], dtype=torch.uint8)
    """
    dtype = as_dtype(dtype)
    try:
        data = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    if not data.c_contiguous:
        raise RuntimeError("could not retrieve buffer from object")
    # What has bytes is asked itself: a memoryview in between cannot be freed with a loop that it is in.
    plain = data.format == "B" and data.ndim == 1
    data = buffer if plain else data.cast("B")
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    whole, writable = _C.from_buffer(data)
    size, item = whole.numel(), dtype.itemsize
    if size == 0 or count == 0:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} "
            f"bytes) minus 1"
        )
    if count < 0:
        if (size - offset) % item:
            raise ValueError(
                f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a multiple "
                f"of element size ({item})"
            )
        count = (size - offset) // item
    if offset + count * item > size:
        raise ValueError(
            f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must not be "
            f"greater than actual buffer length ({size} bytes)"
        )
    if not writable:
        warn_once(
            _READ_ONLY.replace("NumPy array", "buffer")
            .replace("array", "buffer")
            .replace(
                "writing to this tensor will result in undefined behavior",
                "you can write to the underlying (supposedly non-writable) buffer using the tensor",
            )
        )
    part = whole[offset : offset + count * item]
    result = _C.detach(part.clone() if offset % item else part)
    result = _C.view_dtype(result, dtype)
    return _C.requires_grad_(_C.detach(result), True) if requires_grad else _C.detach(result)


for _function in (_array, _array_wrap, _dlpack, _dlpack_device):
    _name = f"_{_function.__name__}__"
    setattr(Tensor, _name, python_method(_function, _name))
