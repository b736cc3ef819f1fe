"""The tensor of a level: what a transformed function is given in place of its arguments.

It holds a `value`, of the level below, and under `vmap` a batch of values along its first dimension, which
nobody sees (native/python/levels.h says how operations on it are computed). What is not made of primitives
(factories, reading numbers, printing) is here.
"""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight import _C
from rushlight._unstored import Unstored

Tensor = _C.Tensor
GRADIENTS, TANGENTS, BATCH, TAPE = range(4)


def _no_memory(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


class Leveled(Unstored):
    """Not to be made but by `_C.raise_to_level`."""

    __slots__ = ("batched", "level", "value")
    kind, impl = "strided", "TensorWrapper"
    data = Tensor.data
    value: Tensor
    level: int
    batched: bool

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from rushlight.func._named import run

        return run(func, args, kwargs or {})

    data_ptr = _no_memory

    # A sparse value is seen through: the functions of sparse tensors ask for its parts.
    @property
    def layout(self) -> Any:
        return self.value.layout

    @property
    def is_sparse(self) -> bool:
        return self.value.is_sparse

    @property
    def is_sparse_csr(self) -> bool:
        return self.value.is_sparse_csr

    @property
    def form(self) -> Any:  # of a compressed one
        below: Any = self.value
        return below.form

    @property
    def batch(self) -> Any:
        below: Any = self.value
        return below.batch

    @property
    def parts(self) -> tuple:
        from rushlight.func._named import raised

        below: Any = self.value
        return raised(below.parts, self.level, self.batched)

    def fit_gradient(self, gradient: Tensor, masked: bool | None) -> Tensor:
        if masked is not False:
            return gradient.sparse_mask(self.coalesce() if self.is_sparse else self.detach())
        if self.is_sparse:
            return gradient.to_sparse(self.sparse_dim())
        return self.convert(gradient)

    def convert(self, other: Tensor) -> Tensor:
        below: Any = self.value
        return below.convert(other)

    def _is_batch(self) -> bool:
        return self.batched and _C.level_depth(self.level) > 0

    def tolist(self) -> Any:
        return self.value.tolist() if not self.batched else _no_memory(self)

    def numpy(self, *, force: bool = False) -> NoReturn:
        if self.requires_grad and not force:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
            )
        _no_memory(self)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self.numpy()

    def _no_storage(self, *args: Any) -> NoReturn:
        name = "BatchedTensorImpl" if self.batched else "TensorWrapper"
        raise NotImplementedError(f"Cannot access storage of {name}")

    storage = untyped_storage = _no_storage
    __reduce_ex__ = __deepcopy__ = _no_storage  # type: ignore[assignment]

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        depth = _C.level_depth(self.level) or -2
        inner = repr(self.value).replace("\n", "\n    ")
        if self.batched:
            return f"BatchedTensor(lvl={depth}, bdim=0, value=\n    {inner}\n)"
        return f"GradTrackingTensor(lvl={depth}, value=\n    {inner}\n)"

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.dim() == 0 else repr(self)

    def new(self, *args: Any, **kwargs: Any) -> Any:
        return self.new_empty(*args, **kwargs)
