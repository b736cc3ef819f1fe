"""Samples of views, rearrangements, casts, joining, and of factories that look at a tensor."""

from typing import Any

from families import DTYPE64, OPS, const, index, mutating, op, x
from sampling import Of, call

# Views
VIEW: dict[str, Any] = {"view": True}
op(
    "Tensor.view",
    [
        call(x(2, 6), 3, 4),
        call(x(2, 6), (4, 3)),
        call(x(2, 6), -1),
        call(x(), 1),
        call(x(1), ()),
        call(x(0, 3), 3, 0),
        call(x(2, 3, 4), 6, -1),
    ],
    layouts=("offset",),
    **VIEW,
)
op(
    "reshape",
    [
        call(x(2, 6), (3, 4)),
        call(x(2, 6), (-1,)),
        call(x(), (1,)),
        call(x(1), ()),
        call(x(0, 3), (3, 0)),
        call(x(2, 3, 4), (6, -1)),
    ],
    **VIEW,
)
op("Tensor.view_as", [call(x(2, 6), const(3, 4))], layouts=(), **VIEW)
op("Tensor.reshape_as", [call(x(2, 6), const(3, 4))])
op("permute", [call(x(2, 3, 4), (2, 0, 1)), call(x(2, 3), (-1, 0)), call(x(), ())], **VIEW)
op("movedim", [call(x(2, 3, 4), 0, 2), call(x(2, 3, 4), (0, 1), (2, 0)), call(x(2, 3), -1, 0)], **VIEW)
op("moveaxis", [call(x(2, 3, 4), 0, 2)], **VIEW)
op("transpose", [call(x(2, 3, 4), 0, 2), call(x(2, 3), -1, -2), call(x(), 0, 0)], **VIEW, inplace=True)
op("swapaxes", [call(x(2, 3, 4), 0, 2)], **VIEW, inplace=True)
op("swapdims", [call(x(2, 3, 4), 0, 2)], **VIEW, inplace=True)
op("t", [call(x(2, 3)), call(x(3)), call(x())], **VIEW, inplace=True)
op("adjoint", [call(x(2, 3)), call(x(2, 2, 3))], **VIEW)
op(
    "Tensor.expand",
    [call(x(3, 1), 3, 4), call(x(3, 1), (2, -1, 4)), call(x(), 2, 3), call(x(1), 0)],
    **VIEW,
    covers=("sum_to",),
)
op("Tensor.expand_as", [call(x(3, 1), const(3, 4))], **VIEW)
op("broadcast_to", [call(x(3, 1), (2, 3, 4)), call(x(), (2,))], **VIEW)
op("broadcast_tensors", [call(x(3, 1), x(4))], method=False, **VIEW)
op(
    "squeeze",
    [
        call(x(1, 3, 1)),
        call(x(1, 3, 1), 0),
        call(x(1, 3, 1), 1),
        call(x(1, 3, 1), (0, -1)),
        call(x()),
        call(x(), 0),
    ],
    **VIEW,
    covers=("squeeze_dim", "squeeze_dims"),
    inplace=True,
)
op("unsqueeze", [call(x(2, 3), 0), call(x(2, 3), -1), call(x(), 0), call(x(0), 1)], **VIEW, inplace=True)
op(
    "narrow",
    [call(x(4, 3), 0, 1, 2), call(x(4, 3), -1, 0, 1), call(x(4), 0, 4, 0), call(x(4), 0, -2, 2)],
    **VIEW,
)
op(
    "select",
    [call(x(2, 3), 0, 1), call(x(2, 3), -1, -1), call(x(3), 0, 2)],
    **VIEW,
    covers=("select_backward",),
)
op("split", [call(x(5, 2), 2), call(x(5, 2), [1, 4]), call(x(2, 3), 1, dim=1), call(x(0, 2), 2)], **VIEW)
op("split_with_sizes", [call(x(5, 2), [1, 4]), call(x(2, 3), (1, 0, 2), 1)], **VIEW)
op("tensor_split", [call(x(5, 2), 3), call(x(5, 2), (1, 3)), call(x(2, 4), 2, dim=1)], **VIEW)
op("chunk", [call(x(5, 2), 2), call(x(2, 6), 3, 1), call(x(2), 5)], **VIEW)
op("hsplit", [call(x(2, 4), 2)], **VIEW)
op("dsplit", [call(x(2, 3, 4), 2)], **VIEW)
op("vsplit", [call(x(4, 2), 2)], **VIEW)
op("unbind", [call(x(3, 2)), call(x(3, 2), 1), call(x(3))], **VIEW)
op("flatten", [call(x(2, 3, 4)), call(x(2, 3, 4), 1), call(x(2, 3, 4), 0, 1), call(x())], **VIEW)
op("unflatten", [call(x(2, 6), 1, (2, 3)), call(x(6), 0, (-1, 2))], **VIEW)
op("ravel", [call(x(2, 3)), call(x())], **VIEW)
op(
    "as_strided",
    [
        call(x(6), (2, 3), (3, 1)),
        call(x(6), (2, 2), (1, 2), 1),
        call(x(6), (3, 3), (1, 1)),
        call(x(3, 3), (3,), (4,)),
    ],
    layouts=("offset",),
    **VIEW,
    covers=("place", "pick", "replace"),
    inplace=True,
)
op(
    "diagonal",
    [call(x(3, 3)), call(x(3, 4), 1), call(x(3, 4), -1), call(x(2, 3, 3), 0, 1, 2), call(x(2, 2), 5)],
    **VIEW,
    covers=("diagonal_backward",),
)
op("diag", [call(x(3, 3)), call(x(3)), call(x(3), 1), call(x(3, 4), -1)])
op("diagflat", [call(x(3)), call(x(2, 2), 1)])
op("diag_embed", [call(x(3)), call(x(2, 3), 1), call(x(2, 3), -1, 0, 2)])
op(
    "Tensor.unfold",
    [call(x(5), 0, 2, 1), call(x(5, 3), 0, 3, 2), call(x(4, 6), 1, 2, 2), call(x(5), 0, 5, 1)],
    **VIEW,
)
op(
    "Tensor.contiguous",
    [call(x(2, 3)), call(x())],
    **VIEW,
    covers=("contiguous_copy", "rows_copy", "clone_strided"),
)
op("flip", [call(x(3, 4), (0,)), call(x(3, 4), (0, 1)), call(x(3, 4), (-1,)), call(x(0, 2), (0,))])
op("fliplr", [call(x(3, 4))])
op("flipud", [call(x(3, 4))])
op(
    "rot90",
    [call(x(3, 4), 1, (0, 1)), call(x(2, 3), 2, (0, 1)), call(x(2, 3), -1, (1, 0))],
    same_strides=False,
)
op("roll", [call(x(3, 4), 1), call(x(3, 4), 1, 0), call(x(3, 4), (1, -2), (0, 1)), call(x(0, 2), 1, 0)])
op("tile", [call(x(2, 3), (2,)), call(x(2), (2, 3)), call(x(), (2,))])
op("Tensor.repeat", [call(x(2, 3), 2, 1), call(x(2), (3, 2)), call(x(2), 0), call(x(), 2)])
op(
    "repeat_interleave",
    [call(x(2, 3), 2), call(x(2, 3), 2, 0), call(x(3), index(1, 0, 2)), call(x(2, 2), index(1, 2), dim=1)],
)
for _name in ("T", "mT", "H", "mH"):
    op(
        f"Tensor.{_name}",
        [call(x(2, 3)), call(x(0, 2))],
        run=lambda lib, name=_name: lambda tensor: getattr(tensor, name),
        **VIEW,
    )
for _name in ("tril", "triu"):
    op(_name, [call(x(3, 3)), call(x(3, 4), 1), call(x(2, 4, 3), -1), call(x(0, 3))], inplace=True)
op(
    "Tensor.to",
    [
        call(x(3), Of(lambda lib: lib.float64)),
        call(x(3), Of(lambda lib: lib.int32), only="fib", nograd=True),
        call(x(3), "cpu"),
        call(x(3), Of(lambda lib: lib.complex64), only="fib", nograd=True),
    ],
    covers=("to_device", "to_dtype"),
)
op("Tensor.type_as", [call(x(3), const(2))])
for _name in (
    "float",
    "double",
    "half",
    "bfloat16",
    "int",
    "long",
    "short",
    "char",
    "byte",
    "bool",
    "cfloat",
    "cdouble",
):
    op(
        f"Tensor.{_name}",
        [call(x(3, low=0.0)), call(x()), call(x(0, 2))],
        grad="f" if _name in ("double", "cdouble") else "",
    )
op("Tensor.item", [call(x()), call(x(1)), call(x(1, 1))], grad="")
op("Tensor.tolist", [call(x()), call(x(2, 3)), call(x(0, 2))], grad="")
mutating("Tensor.fill_", [call(x(2, 3), 1), call(x(2), x()), call(x(), 0)])
mutating("Tensor.zero_", [call(x(2, 3)), call(x())])
mutating("Tensor.copy_", [call(x(2, 3), x(2, 3)), call(x(2, 3), x(3)), call(x(2), x())])

# Copies of views; they take sizes as one tuple only
COPIED = """Tensor.view Tensor.expand permute transpose t unsqueeze squeeze select narrow diagonal
    Tensor.unfold as_strided split unbind view_as_real view_as_complex split_with_sizes"""
for _view in map(OPS.get, COPIED.split()):
    _kind = {"Tensor.view": tuple, "Tensor.expand": tuple, "split": int}.get(_view.name, object)
    op(
        f"{_view.name.removeprefix('Tensor.')}_copy",
        [sample for sample in _view.samples if isinstance(sample.args[-1], _kind)],
        dtypes=_view.dtypes,
        # torch has no gradients of these copies if they are complex
        grad={"select": "f", "view_as_complex": ""}.get(_view.name, _view.grad),
        layouts=_view.layouts,
        method=False,
        same_strides=False,
    )

# Joining
op(
    "cat",
    [
        call([x(2, 3), x(1, 3)]),
        call((x(2, 3), x(2, 1)), 1),
        call([x(2), x(0), x(1)]),
        call([x(2, 3)], dim=-1),
        call([x(2, 2), index(1, 2, shape=(1, 2))]),
    ],
    method=False,
)
for _name in ("concat", "concatenate"):
    op(_name, [call([x(2, 3), x(1, 3)])], method=False)
op(
    "stack",
    [call([x(2, 3), x(2, 3)]), call([x(3), x(3)], 1), call([x(), x()]), call([x(2), x(2)], dim=-1)],
    method=False,
)
op("hstack", [call([x(2), x(1)]), call([x(2, 1), x(2, 2)]), call([x(), x()])], method=False)
op("vstack", [call([x(2), x(2)]), call([x(1, 2), x(2, 2)])], method=False)
op("row_stack", [call([x(2), x(2)])], method=False)
op("dstack", [call([x(2), x(2)]), call([x(1, 2), x(1, 2)])], method=False)
op("column_stack", [call([x(2), x(2)]), call([x(2, 1), x(2, 2)])], method=False)
op("meshgrid", [call(x(2), x(3), indexing="ij"), call(x(2), x(3), indexing="xy")], method=False)
op("atleast_1d", [call(x()), call(x(2))], method=False)
op("atleast_2d", [call(x()), call(x(2)), call(x(1, 2))], method=False)
op("atleast_3d", [call(x()), call(x(2)), call(x(1, 2))], method=False)
op("cartesian_prod", [call(x(2), x(3))], method=False)
op("block_diag", [call(x(2, 2), x(1, 3))], method=False)

# Factories that look at a tensor
for _name in ("zeros_like", "ones_like"):
    op(_name, [call(const(2, 3)), call(const()), call(const(2), dtype=DTYPE64)], grad="", method=False)
op("full_like", [call(const(2, 3), 1), call(const(2), 2.5, dtype=DTYPE64)], grad="", method=False)
op("Tensor.new_zeros", [call(const(2), (2, 3)), call(const(2), 2, 3, dtype=DTYPE64)], grad="")
op("Tensor.new_ones", [call(const(2), (2, 3)), call(const(2), 2, 3)], grad="")
op("Tensor.new_full", [call(const(2), (2, 3), 1)], grad="")
op("Tensor.new_tensor", [call(const(2), [[1, 0], [0, 1]])], grad="")
