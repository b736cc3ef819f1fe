"""What sparse tensors of all layouts have in common: they hold indices, and a value for each.

Which indices, how they print and what they refuse besides, their classes say.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

from rushlight import _C
from rushlight._unstored import Unstored, arange, refusing
from rushlight.ops import create

Tensor = _C.Tensor
_SET_DATA: Any = vars(Tensor)["data"].__set__  # size, dtype and the counter of writes


def without(name: str) -> Any:
    """A method that torch has no kernel for."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        from rushlight._sparse.table import refuse

        refuse(f"aten::{name}", self.backend)

    return refuse


def check_cast(result: Any, out: Any) -> None:
    """Refuses to write a result into a tensor whose dtype cannot take it."""
    if out.dtype != result.dtype and not _C.can_cast(result.dtype, out.dtype):
        from rushlight.ops._public import type_name

        raise RuntimeError(
            f"result type {type_name(result.dtype)} can't be cast to the desired output type "
            f"{type_name(out.dtype)}"
        )


class Indexed(Unstored):
    """A sparse tensor."""

    __slots__ = ()
    backend: str  # whose kernels compute with it, as torch's errors call them

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from rushlight._sparse.table import run_named

        return run_named(func, args, kwargs or {})

    def take_parts(self, other: Any) -> None:
        """Holds what another of its kind holds."""
        raise NotImplementedError

    def places(self) -> Tensor:
        """The place of each entry among all there could be."""
        raise NotImplementedError

    def filled(self) -> Unstored:
        """The same with an entry everywhere, of a tensor without history."""
        raise NotImplementedError

    def text(self, contents: str | None) -> str:
        """What `repr` shows."""
        raise NotImplementedError

    @Unstored.data.setter  # type: ignore[attr-defined]
    def data(self, value: Any) -> None:
        if type(value) is not type(self):
            raise RuntimeError(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
                "incompatible tensor type."
            )
        _SET_DATA(self, value)
        self.take_parts(value)

    @property
    def real(self) -> Any:
        return _C.ops.real(self) if self.is_complex() else self

    @property
    def imag(self) -> Any:
        if not self.is_complex():
            raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
        return _C.ops.imag(self)

    def numbers(self) -> Tensor:
        each = math.prod(self.shape[self.dim() - self.dense_dim() :])
        return (self.places()[..., None] * each + arange(each)).reshape(self.memory().shape)

    def with_every_element(self) -> Unstored:
        detached: Any = self.detach()
        return detached.filled()

    _typed_storage = is_shared = share_memory_ = storage_type = Unstored.storage
    __setitem__ = refusing(TypeError, "Cannot assign to a sparse tensor")
    __dlpack__ = refusing(BufferError, "Can't export tensors with layout other than torch.strided")
    expand = expand_as = repeat = broadcast_to = refusing(
        RuntimeError, "expand is unsupported for {kind} tensors"
    )
    as_strided_, set_, is_set_to = without("as_strided_"), without("set_"), without("is_set_to")

    def clone(self, *, memory_format: Any = None) -> Any:
        if memory_format not in (None, create.preserve_format):
            raise RuntimeError("unsupported memory format option Contiguous")
        return _C.ops.clone(self)

    def is_pinned(self, device: Any = None) -> bool:
        return False

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        about = "Parameter containing:\n" if getattr(self, "_is_param", False) else ""
        return about + self.text(tensor_contents)

    def __format__(self, spec: str) -> str:
        if spec:
            raise TypeError("unsupported format string passed to Tensor.__format__")
        return repr(self)
