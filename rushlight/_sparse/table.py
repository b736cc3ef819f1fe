"""Which kernel computes a primitive that is given sparse tensors.

`@kernel("mul")` registers a function of the primitive's arguments; it runs below autograd, where nothing is
recorded and nobody else is asked. Written in place the result of the kernel becomes that of the tensor,
unless `@in_place("mul")` has another for it. What is asked about by torch's name (factories, `item`,
`detach`) stands under that name with the overload: `@kernel("zeros_like.default")`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NoReturn

from rushlight import _C
from rushlight._indexed import check_cast
from rushlight._ops import handle_named, handle_of
from rushlight._schema import is_said
from rushlight._sparse.tensor import SparseTensor
from rushlight._unstored import MAKERS

Tensor = _C.Tensor


class _Running(threading.local):
    """The operations that are being composed of others in this thread."""

    def __init__(self) -> None:
        self.handles: list[Any] = []


_running = _Running()


class Table:
    """The kernels of one kind of sparse tensors."""

    def __init__(self, backend: str) -> None:
        self.backend = backend  # as torch's errors call it
        self.kernels: dict[str, Callable] = {}
        self.writers: dict[str, Callable] = {}
        self.assign: Callable = assign
        self.missing: Callable | None = None  # what says that there is no kernel, if not as torch does

    def kernel(self, *names: str) -> Callable:
        """Registers the kernel of these primitives, or of operations by torch's names."""

        def register(function: Callable) -> Callable:
            self.kernels.update(dict.fromkeys(names, function))
            return function

        return register

    def in_place(self, *names: str) -> Callable:
        """Registers what writes into its first argument and returns nothing."""

        def register(function: Callable) -> Callable:
            self.writers.update(dict.fromkeys(names, function))
            return function

        return register


def refusal(name: str, backend: str = "SparseCPU") -> str:
    """What is said where there is no such kernel in torch."""
    return (
        f"Could not run '{name}' with arguments from the '{backend}' backend. This could be because the "
        "operator doesn't exist for this backend, or was omitted during the selective/custom build process "
        "(if using custom build)."
    )


def refuse(name: str, backend: str = "SparseCPU") -> NoReturn:
    """There is no such kernel in torch."""
    raise NotImplementedError(refusal(name, backend))


def _table_of(values: Any) -> Table | None:
    """Whose kernels compute with these arguments: those of compressed tensors, if one is among them."""
    found = None
    for value in values:
        if type(value) is SparseTensor:
            found = COORDINATES
        elif _C.is_compressed(value) and not _C.is_leveled(value):
            from rushlight._compressed.table import COMPRESSED

            return COMPRESSED
        elif isinstance(value, (tuple, list)) and (inner := _table_of(value)) is not None:
            if inner is not COORDINATES:
                return inner
            found = inner
    return found


def run(primitive: Any, args: tuple, out: Any) -> Any:
    """What a primitive computes of sparse tensors; `out` is the tensor it is written into."""
    name = primitive.__name__
    table = _table_of(args)
    if table is None:
        if name in MAKERS:
            return MAKERS[name](*args)
        raise RuntimeError(f"{name} expected a sparse tensor")
    if out is not None and name in table.writers:
        table.writers[name](*args)
        return out
    function = table.kernels.get(name)
    if function is None:
        return _other(table, primitive, args, out)
    result = function(*args)
    if out is not None:
        return table.assign(out, result)
    # It belongs to whoever asked, who knows nothing of what it is a view of.
    return _C.detach(result) if isinstance(result, Tensor) and result._is_view() else result


def _other(table: Table, primitive: Any, args: tuple, out: Any) -> Any:
    from rushlight import _aten_calls

    if table.missing is not None:
        table.missing(primitive.__name__, args)
    if out is None and primitive.__name__ in _aten_calls.COMPOSED:
        result = _aten_calls.COMPOSED[primitive.__name__](*args)
        if result is not NotImplemented:
            return result
    shown = _aten_calls.shown(primitive, args, out is not None)
    handle = handle_of(primitive, out is not None) if shown is None else handle_named(shown[0])
    refuse(handle.name(), table.backend)


def run_named(handle: Any, args: tuple, kwargs: dict) -> Any:
    """What an operation that is no primitive computes of sparse tensors."""
    table = _table_of((*args, *kwargs.values())) or COORDINATES
    function = table.kernels.get(handle.__name__)
    if function is not None:
        return function(*args, **kwargs)
    from rushlight._dispatching import _SHOWN

    if handle.__name__.partition(".")[0] in _SHOWN or is_said("not_sparse", handle.name()):
        refuse(handle.name(), table.backend)
    if handle in _running.handles:  # it is asked about as a whole, and made of nothing else
        refuse(handle.name(), table.backend)
    before = _C.set_grad_enabled(False)
    _running.handles.append(handle)
    try:
        return handle._overloadpacket.run(args, kwargs)  # whose primitives have kernels
    finally:
        _running.handles.pop()
        _C.set_grad_enabled(before)


def assign(out: Any, result: Any) -> Any:
    """Lets `out` be what was computed for it."""
    if type(out) is not SparseTensor:
        return out.copy_(result.to_dense() if type(result) is SparseTensor else result)
    check_cast(result, out)
    from rushlight.ops.sparse_forms import give_size

    indices, values, coalesced = result.parts
    give_size(out, result.shape)
    out.parts = indices, values.to(out.dtype), coalesced
    return out


COORDINATES = Table("SparseCPU")
kernel, in_place = COORDINATES.kernel, COORDINATES.in_place

from rushlight._sparse import arithmetic, build, gradients, products, shape  # noqa: E402, F401  (the kernels themselves)
