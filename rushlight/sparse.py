"""torch.sparse: functions of sparse tensors whose gradients stay sparse."""

from __future__ import annotations

import functools
from typing import Any, NoReturn

import rushlight
from rushlight import _C
from rushlight._absent import absent_class
from rushlight._tensor_types import _DTYPES, tensortype
from rushlight._warn import warn_once
from rushlight.autograd._sparse_check import as_sparse_gradcheck as as_sparse_gradcheck
from rushlight.ops._public import _TYPE_NAMES, type_name, wrap_dim
from rushlight.ops.sparse import invariants, layout_name

_ops = _C.ops
Tensor = _C.Tensor
__path__: list[str] = []  # the modules below it are in _absent_names.py


def _missing(name: str, lacking: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"torch.sparse.{name} is not implemented: {lacking}")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Not implemented."
    return function


to_sparse_semi_structured = _missing("to_sparse_semi_structured", "Rushlight has no semi-structured tensors")

SparseSemiStructuredTensor, SparseSemiStructuredTensorCUSPARSELT, SparseSemiStructuredTensorCUTLASS = (
    absent_class("torch.sparse", "SparseSemiStructuredTensor" + kind)
    for kind in ("", "CUSPARSELT", "CUTLASS")
)


def _refuse_dense(x: Tensor, name: str) -> None:
    if not x.is_sparse:
        from rushlight._sparse.table import refuse

        refuse(f"aten::{name}", "SparseCsrCPU" if _C.is_compressed(x) else "CPU")


def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """The product of two matrices, one of them sparse: dense, or sparse if both are. The gradient of a sparse
    factor has the entries of that factor.

    >>> x = rushlight.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    >>> rushlight.sparse.mm(x, rushlight.ones(2, 1))
    tensor([[2.],
            [0.]])
    """
    if reduce is not None:
        return _reduced(mat1, mat2, reduce)
    if mat1.is_sparse and mat2.is_sparse:
        return _ops.sparse_sparse_matmul(mat1, mat2)
    if _C.is_compressed(mat1) and _C.is_compressed(mat2):
        return _ops.mm(mat1, mat2)
    if _C.is_any_sparse(mat2):
        return mm(mat2.transpose(0, 1), mat1.transpose(0, 1)).transpose(0, 1)
    if not _C.is_any_sparse(mat1):
        return _ops.mm(mat1, mat2)
    nothing = rushlight.zeros((mat1.shape[0], mat2.size(1)), dtype=mat1.dtype)
    return _ops.sparse_addmm(nothing, mat1, mat2, 0, 1)


def _reduced(mat1: Tensor, mat2: Tensor, reduce: str) -> Tensor:
    if not _C.is_compressed(mat1):
        from rushlight._sparse.table import refuse

        refuse("aten::_sparse_mm_reduce_impl")
    if not mat1.is_sparse_csr:
        raise RuntimeError(f"sparse_mm_reduce: expect self to be SparseCsr, got {layout_name(mat1)}")
    _check_reduced(mat1, mat2)
    if reduce == "prod":
        raise RuntimeError("sparse_mm_reduce: reduce type of prod has not been enabled.")
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if not mat1.is_floating_point():
        raise NotImplementedError(f"\"spmm_reduce_kernel\" not implemented for '{type_name(mat1.dtype)}'")
    return _ops.sparse_mm_reduce(mat1, mat2, reduce)


def _check_reduced(mat1: Tensor, mat2: Tensor) -> None:
    while_checking = "(while checking arguments for sparse_mm_reduce)"
    if mat2.layout is not rushlight.strided:
        raise RuntimeError(
            f"Expected tensor to have Strided Layout, but got tensor with {layout_name(mat2)} Layout "
            f"{while_checking}"
        )
    if mat1.dtype != mat2.dtype:
        raise RuntimeError(
            f"Expected tensor for argument #1 'other' to have scalar type {type_name(mat1.dtype)}; but got "
            f"{mat2.type()} instead {while_checking}"
        )
    if mat2.dim() != 2 or mat2.shape[0] != mat1.shape[1]:
        raise RuntimeError(
            f"Expected a tensor of dimension 2 and tensor.size[0] == {mat1.shape[1]} but got: dimension "
            f"{mat2.dim()} and tensor.size[0] = {mat2.shape[0] if mat2.dim() else 1}"
        )


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0) -> Tensor:
    """beta * mat + alpha * (mat1 @ mat2) of a sparse mat1, whose gradient has its entries.

    >>> x = rushlight.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    >>> rushlight.sparse.addmm(rushlight.ones(2, 1), x, rushlight.ones(2, 1))
    tensor([[3.],
            [1.]])
    """
    wanted = mat1.shape[0], mat2.shape[1]
    return _ops.sparse_addmm(mat if mat.shape == wanted else mat.expand(wanted), mat1, mat2, beta, alpha)


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of all elements, or over some dimensions; the gradient has the entries of the input.

    >>> x = rushlight.tensor([[1.0, 2.0], [0.0, 3.0]]).to_sparse()
    >>> rushlight.sparse.sum(x, 0).to_dense()
    tensor([1., 5.])
    """
    if dim is None:
        return input.coalesce().values().sum(dtype=dtype)
    _refuse_dense(input, "_indices")
    dims = [wrap_dim(d, input.dim()) for d in ([dim] if isinstance(dim, int) else dim)]
    for d in dims:
        if dims.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    input = input if dtype is None else input.to(dtype)
    return _ops.sparse_sum(input, tuple(dims)) if dims else input.coalesce()


def sampled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0, out: Any = None
) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) where the CSR matrix `input` has entries: nothing else is
    computed.

    >>> x = rushlight.eye(2).to_sparse_csr()
    >>> rushlight.sparse.sampled_addmm(x, rushlight.ones(2, 3), rushlight.ones(3, 2)).values()
    tensor([4., 4.])
    """
    if not _C.is_compressed(input) or not input.is_sparse_csr:
        raise RuntimeError(
            f"sampled_addmm: Expected result to have sparse csr layout, but got {layout_name(input)}"
        )
    if mat1.dim() != 2 or mat2.dim() != 2 or mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied ({'x'.join(map(str, mat1.shape))} and "
            f"{'x'.join(map(str, mat2.shape))})"
        )
    for d, (which, n) in enumerate((("mat1", mat1.shape[0]), ("mat2", mat2.shape[1]))):
        if input.shape[d] != n:
            raise RuntimeError(f"sampled_addmm: self.shape[{-2 + d}] must match {which}.shape[{-2 + d}]")
    if not input.dtype == mat1.dtype == mat2.dtype:
        raise RuntimeError("sampled_addmm: Expected mat1 and mat2 to have the same dtype")
    result = _ops.sampled_addmm(input, mat1, mat2, beta, alpha)
    return result if out is None else out.copy_(result)


def spsolve(input: Tensor, other: Tensor, *, left: bool = True) -> NoReturn:
    """The solution of a sparse system, which torch computes on a GPU only."""
    from rushlight._sparse.table import refuse

    if not _C.is_any_sparse(input):
        refuse("aten::_spsolve", "CPU")
    refuse("aten::_spsolve", "SparseCPU" if input.is_sparse else "SparseCsrCPU")


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The softmax of the entries along a dimension; what is no entry counts as minus infinity.

    >>> x = rushlight.tensor([[1.0, 1.0], [0.0, 3.0]]).to_sparse()
    >>> rushlight.sparse.softmax(x, 1).values()
    tensor([0.5000, 0.5000, 1.0000])
    """
    _refuse_dense(input, "_sparse_softmax")
    return _ops.sparse_softmax(input if dtype is None else input.to(dtype), wrap_dim(dim, input.dim()))


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The logarithm of the softmax of the entries along a dimension.

    >>> x = rushlight.tensor([[1.0, 0.0], [0.0, 3.0]]).to_sparse()
    >>> rushlight.sparse.log_softmax(x, 1).values()
    tensor([0., 0.])
    """
    _refuse_dense(input, "_sparse_log_softmax")
    return _ops.sparse_log_softmax(input if dtype is None else input.to(dtype), wrap_dim(dim, input.dim()))


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor:
    """A sparse matrix with the rows of `diagonals` on the diagonals `offsets`: an element stays in its
    column.

    >>> rushlight.sparse.spdiags(rushlight.ones(1, 3), rushlight.tensor([1]), (3, 3)).to_dense()
    tensor([[0., 1., 0.],
            [0., 0., 1.],
            [0., 0., 0.]])
    """
    diagonals = diagonals.unsqueeze(0) if diagonals.dim() == 1 else diagonals
    offsets = offsets.unsqueeze(0) if offsets.dim() == 0 else offsets
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if diagonals.dim() != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if offsets.dim() != 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if offsets.dtype != rushlight.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {rushlight.typename(offsets)}")
    if diagonals.shape[0] != offsets.shape[0]:
        raise RuntimeError(
            f"Number of diagonals ({diagonals.shape[0]}) does not match the number of offsets "
            f"({offsets.shape[0]})"
        )
    given = offsets.tolist()
    if len(set(given)) != len(given):
        raise RuntimeError("Offset tensor contains duplicate values")
    layouts = rushlight.sparse_coo, rushlight.sparse_csc, rushlight.sparse_csr
    if layout not in (None, *layouts):
        raise RuntimeError(
            f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {layout_name(layout)}"
        )
    rows, columns = shape
    places = []
    for at, offset in enumerate(given):
        first, last = max(offset, 0), min(columns, diagonals.shape[1], rows + offset)
        line = rushlight.arange(first, max(first, last))
        places.append(rushlight.stack([line - offset, line, rushlight.full_like(line, at)]))
    row, column, diagonal = rushlight.cat(places, 1)
    values = diagonals[diagonal, column]
    made = rushlight.sparse_coo_tensor(rushlight.stack([row, column]), values, tuple(shape))
    return made if layout in (None, rushlight.sparse_coo) else made.to_sparse(layout=layout)


# ---- older names


def _deprecated(form: str, other: str) -> None:
    warn_once(
        f"torch.sparse.SparseTensor({form}) is deprecated.  Please use torch.sparse_coo_tensor({other})."
    )


def _is_size(args: tuple) -> bool:
    return all(isinstance(arg, int) for arg in args) or isinstance(args[0], rushlight.Size)


def new(dtype: Any, args: tuple) -> Tensor:
    """The older way to make a sparse tensor: of its size, or of indices, values and perhaps its size."""
    if not args or _is_size(args):
        size = args[0] if args and not isinstance(args[0], int) else args or (0,)
        return rushlight.sparse_coo_tensor(size=tuple(size), dtype=dtype)
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        raise TypeError(
            "SparseTensor.new(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() or "
            "construct a strided tensor and convert it to sparse via to_sparse."
        )
    if len(args) > 3:
        raise TypeError(f"new() takes 3 positional arguments but {len(args)} were given")
    if len(args) < 2 or not all(isinstance(arg, Tensor) for arg in args[:2]) or isinstance(args[-1], int):
        given = ", ".join(type(arg).__name__ for arg in args)
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({given}), but expected one of:\n"
            " * (*, torch.device device = None)\n * (tuple of ints size, *, torch.device device = None)\n"
            " * (Tensor indices, Tensor values, *, torch.device device = None)\n"
            " * (Tensor indices, Tensor values, tuple of ints size, *, torch.device device = None)"
        )
    if args[0].dtype != rushlight.int64:
        found = f"expected scalar type Long but found {_TYPE_NAMES[args[0].dtype]}"
        raise RuntimeError("indices must be an int64 tensor" if len(args) == 3 else found)
    return rushlight.sparse_coo_tensor(*args)


class _SparseType(tensortype):
    """The type of torch.sparse.FloatTensor and its kin: calling one makes a sparse tensor."""

    is_sparse = True
    layout = rushlight.sparse_coo

    def __call__(cls, *args: Any, device: Any = None, **unknown: Any) -> Tensor:
        made = new(cls.dtype, args)
        if not args:
            _deprecated("", "(0,), dtype=")
        else:
            parts = "shape" if _is_size(args) else "indices, values" + (", shape" if len(args) == 3 else "")
            _deprecated(f"{parts}, *, device=", f"{parts}, dtype=, device=")
        return made

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.dtype == cls.dtype and instance.is_sparse

    def __repr__(cls) -> str:
        return f"<class 'torch.sparse.{cls.__name__}'>"


for _name, _dtype in _DTYPES.items():
    if _name != "BoolTensor":
        globals()[_name] = _SparseType(
            _name,
            (),
            {"dtype": _dtype, "__module__": "torch.sparse", "__doc__": f"Sparse tensors of {_dtype}."},
        )


class check_sparse_tensor_invariants:
    """Whether the indices of sparse tensors are checked when they are made, as a context or a decorator.
    Where they are not, they are checked when they are used.

    >>> with rushlight.sparse.check_sparse_tensor_invariants():
    ...     rushlight.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    """

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self._before: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """What was last asked for."""
        return invariants.checked

    @staticmethod
    def enable() -> None:
        """Asks for checks."""
        invariants.checked = True

    @staticmethod
    def disable() -> None:
        """Asks for no checks."""
        invariants.checked = False

    def __enter__(self) -> None:
        if self._before is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager "
                "instance for context nesting."
            )
        self._before = invariants.checked
        invariants.checked = self.state

    def __exit__(self, *error: object) -> None:
        if self._before is None:
            raise AssertionError("saved_state must not be None when exiting context")
        invariants.checked, self._before = self._before, None

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return wrapped
