"""The steps that torch records within a product or a pool along a line, which are one node here: see Note
[facades], graph_inspect.cpp.

`next_functions` of such a node leads to the product as torch has it and from there, through the views of its
operands, to what the operation was called with. `show` is where to start.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight import _C

Node = _C.Node


class Step(NamedTuple):
    """A view between an operand of the product and what the operation was called with."""

    name: str
    primitive: str
    size: tuple  # as the product sees it
    inward: Callable  # the gradient as the product gives it, from the one that arrives outside
    outward: Callable
    shows: dict[str, Any]


def _transposed(size: tuple) -> list[Step]:
    return [Step("TBackward0", "t", size[::-1], _C.ops.t, _C.ops.t, {})]


def _viewed(size: tuple, flat: tuple, name: str = "ViewBackward0") -> list[Step]:
    shows = {"self_sym_sizes": size}
    return [Step(name, "view", flat, lambda g: g.reshape(flat), lambda g: g.reshape(size), shows)]


def _row(size: tuple) -> list[Step]:
    return [
        Step("UnsqueezeBackward0", "unsqueeze", (1, *size), lambda g: g[None], lambda g: g[0], {"dim": 0})
    ]


def _expanded(size: tuple) -> list[Step]:
    same = lambda g: g  # noqa: E731
    return [Step("ExpandBackward0", "expand", size, same, same, {"self_sym_sizes": size})]


def _size(node: Node, at: int, name: str) -> tuple | None:
    """The size of an operand: of the gradient that goes to it, or of what was saved."""
    source, nr = node._edges()[at]
    if source is not None:
        return tuple(source._outputs()[nr][0])
    saved = _saved(node, name)
    return None if saved is None else tuple(saved.shape)


def _saved(node: Node, name: str) -> Any:
    """What the node saved under its primitive's name; None if that was not needed or is gone."""
    if node._released:
        return None
    return next((node._unpack(slot, out) for found, slot, out in node._names_saved() if found == name), None)


def _leads(node: Node) -> tuple:
    return tuple(node._outputs()[0][0])


class Product(NamedTuple):
    name: str
    primitive: str
    size: tuple
    names: tuple[tuple[str, str], ...]  # of its operands, to torch and to the primitive


def _chain(node: Node, at: int, steps: list[Step]) -> tuple:
    """The edge of an operand, behind its views."""
    edge = node._edges()[at]
    if edge[0] is None:
        return edge
    for k in reversed(range(len(steps))):
        step = steps[k]
        about = {"owner": weakref.ref(node), "hooks": (at, steps, k), "saved": step.shows}
        edge = _C.facade(node, step.name, step.primitive, (edge,), step.size, about), 0
    return edge


def _around(node: Node, product: Product, operands: list[list[Step]], **saved: Any) -> tuple:
    edges = tuple(_chain(node, at, steps) for at, steps in enumerate(operands))
    first = len(operands) - len(product.names)  # an Addmm has the bias before its factors
    for at, (theirs, mine) in enumerate(product.names, first):
        saved[theirs] = _operand(mine, operands[at])
        if product.primitive in ("addmm", "mm"):
            size = operands[at][0].size if operands[at] else _size(node, at, mine)
            saved[f"{theirs}_sym_sizes"] = size
            saved[f"{theirs}_sym_strides"] = (
                () if edges[at][0] is None else _strides(node, mine, size, operands[at])
            )
    if product.primitive == "addmm":
        saved.update(alpha=1, beta=1)
    about = {"owner": weakref.ref(node), "hooks": (None, operands, product.size), "saved": saved}
    return ((_C.facade(node, product.name, product.primitive, edges, product.size, about), 0),)


def _strides(node: Node, name: str, size: Any, steps: list[Step]) -> tuple:
    saved = _saved(node, name)
    if saved is not None:
        return tuple(_within(steps, 0, saved).stride())
    if steps and steps[0].name == "TBackward0":
        return (1, size[0])
    return tuple(math.prod(size[d + 1 :]) for d in range(len(size)))


def _operand(name: str, steps: list[Step]) -> Callable:
    def value(node: Node) -> Any:
        if node._released:
            node._refuse()
        return _within(steps, 0, _saved(node, name))

    return value


def show(node: Node) -> tuple | None:
    """What next_functions of a product shows; None for the edges that it has."""
    name = node._primitive.__name__
    if name.startswith("linear"):
        return _linear(node, name)
    if name.endswith("_pool1d"):
        return _pool(node, name)
    a, b = _size(node, 0, "a"), _size(node, 1, "b")
    out = _leads(node)
    if a is None or b is None:
        return None
    factors = (("self", "a"), ("mat2", "b"))
    if name == "vecmat":
        product = Product("MmBackward0", "mm", (1, *out), factors)
        return _around(node, product, [_row(a), []])
    if len(a) < 3:
        return None
    if len(b) == 2:
        flat = (math.prod(a[:-1]), a[-1])
        product = Product("MmBackward0", "mm", (flat[0], out[-1]), factors)
        return _around(node, product, [_viewed(a, flat), []])
    if len(b) == 1:
        flat = (math.prod(a[:-1]), a[-1])
        product = Product("MvBackward0", "mv", flat[:1], (("self", "a"), ("vec", "b")))
        return _around(node, product, [_viewed(a, flat), []])
    if a[:-2] != b[:-2]:
        return None
    batch = math.prod(a[:-2])
    product = Product("BmmBackward0", "bmm", (batch, *out[-2:]), factors)
    turned = "ReshapeAliasBackward0" if name == "matmul_nd_t" else "ViewBackward0"
    views = [
        _viewed(size, (batch, *size[-2:]), view) + _expanded(size)
        for size, view in ((a, "ViewBackward0"), (b, turned))
    ]
    return _around(node, product, views)


def _linear(node: Node, name: str) -> tuple | None:
    biased = "unbiased" not in name
    x, weight = _size(node, int(biased), "x"), _size(node, 1 + biased, "weight")
    edges = node._edges()
    turned = _transposed(weight) if weight is not None else []
    if "nd" not in name:
        return (*edges[:-1], _chain(node, 1 + biased, turned))
    if x is None or weight is None:
        return None
    out, flat = _leads(node), (math.prod(x[:-1]), x[-1])
    size = (flat[0], out[-1])
    if biased:
        product = Product("AddmmBackward0", "addmm", size, (("mat1", "x"), ("mat2", "weight")))
        return _around(node, product, [[], _viewed(x, flat), turned])
    product = Product("MmBackward0", "mm", size, (("self", "x"), ("mat2", "weight")))
    return _around(node, product, [_viewed(x, flat) if len(x) > 1 else _row(x), turned])


_POOLS = {
    "avg_pool1d": ("AvgPool2DBackward0", "avg_pool2d"),
    "max_pool1d": ("MaxPool2DWithIndicesBackward0", "max_pool2d"),
    "adaptive_avg_pool1d": ("AdaptiveAvgPool2DBackward0", "adaptive_avg_pool2d"),
    "adaptive_max_pool1d": ("AdaptiveMaxPool2DBackward0", "adaptive_max_pool2d"),
}


def _pool(node: Node, name: str) -> tuple | None:
    """torch pools lines as images of one row."""
    x, out = _size(node, 0, "x"), _leads(node)
    if x is None:
        return None
    values = {found: node._unpack(slot, out_nr) for found, slot, out_nr in node._names_saved()
              if found not in ("x", "indices")}  # fmt: skip
    saved: dict[str, Any] = {"self": _pooled}
    if name == "avg_pool1d":
        _, kernel, stride, padding, include, _, _, ceil = values["spec"]
        saved.update(kernel_size=(1, *kernel), stride=(1, *stride), padding=(0, *padding), ceil_mode=ceil,
                     count_include_pad=include, divisor_override=None)  # fmt: skip
    elif name == "max_pool1d":
        one = {part: _one(value) for part, value in values.items()}
        kernel, stride = one["kernel_size"], one["stride"]
        saved.update(kernel_size=(1, kernel), stride=(1, kernel if stride is None else stride),
                     padding=(0, one["padding"]), dilation=(1, one["dilation"]), ceil_mode=one["ceil_mode"],
                     result1=lambda owner: _maxima(owner, values))  # fmt: skip
    elif name == "adaptive_max_pool1d":
        saved["result1"] = _kept_maxima
    row = lambda size: (*size[:-1], 1, size[-1])  # noqa: E731
    view = Step("UnsqueezeBackward0", "unsqueeze", row(x), lambda g: g.unsqueeze(-2),
                lambda g: g.squeeze(-2), {"dim": -2})  # fmt: skip
    return _around(node, Product(*_POOLS[name], row(out), ()), [[view]], **saved)


def _one(value: Any) -> Any:
    """The number of a window along a line, given as it is or in a tuple; None for an empty one."""
    return (*value, None)[0] if isinstance(value, (tuple, list)) else value


def _pooled(owner: Node) -> Any:
    if owner._released:
        owner._refuse()
    found = _saved(owner, "x")
    found = owner._input(0) if found is None else found
    if found is None:
        raise NotImplementedError("Rushlight does not keep what was pooled")
    return found.unsqueeze(-2)


def _maxima(owner: Node, values: dict[str, Any]) -> Any:
    window = (values[part] for part in ("kernel_size", "stride", "padding", "dilation", "ceil_mode"))
    return _C.ops.max_pool1d_with_indices(_pooled(owner).detach().squeeze(-2), *window)[1].unsqueeze(-2)


def _kept_maxima(owner: Node) -> Any:
    if owner._released:
        owner._refuse()
    return _saved(owner, "indices").unsqueeze(-2)


def saved_value(node: Node, name: str) -> Any:
    """`_saved_*` of a facade."""
    value = node._kept["saved"].get(name)
    if not callable(value):
        return value
    owner = node._kept["owner"]()
    if owner is None:
        raise NotImplementedError(f"the operation that {node.name()} is a step of is gone, and what it saved")
    return value(owner)


def _within(steps: list[Step], k: int, gradient: Any) -> Any:
    """A gradient that arrives outside, as it was before the views from the k-th on."""
    for step in reversed(steps[k:]):
        gradient = None if gradient is None else step.inward(gradient)
    return gradient


def _without(steps: list[Step], k: int, gradient: Any) -> Any:
    for step in steps[k:]:
        gradient = None if gradient is None else step.outward(gradient)
    return gradient


def _replaced(result: Any, count: int) -> tuple | None:
    """What a hook returned, as a tuple of as many gradients."""
    if result is None:
        return None
    return result if isinstance(result, tuple) and len(result) == count else (result,) * count


def placed(node: Node, kind: str, hook: Callable) -> tuple[Node | None, str, Callable]:
    """Where a hook goes and as what: one on a facade becomes one on the operation that it is a step of, where
    the same gradients arrive in another shape. The node None: that operation is gone, and no gradient comes.
    """
    if not node._facade:
        within = [
            after._kept["hooks"] if after is not None and after._facade else None
            for after, _ in node.next_functions
        ]
        if not any(within):
            return node, kind, hook
        if within[0] and within[0][0] is None:
            return node, "pre", _after_view(hook, within[0][2], _leads(node))
        return node, "post", _after_product(hook, [each[1] if each else [] for each in within], _leads(node))
    owner = node._kept["owner"]()
    at, steps, k = node._kept["hooks"]
    if owner is None:
        return None, kind, hook
    if at is not None:
        return owner, "post", _at_operand(kind, hook, at, steps, k)
    if kind == "pre":
        return owner, "pre", _before_product(hook, k, _leads(owner))
    return owner, "post", _after_product(hook, steps, k)


def _reshaped(gradient: Any, size: tuple) -> Any:
    return None if gradient is None else gradient.reshape(size)


def _after_view(hook: Callable, size: tuple, out: tuple) -> Callable:
    """After the view of the result, that is before the product."""

    def run(grad_outputs):
        new = _replaced(hook((_reshaped(grad_outputs[0], size),), grad_outputs), 1)
        return None if new is None else (_reshaped(new[0], out),)

    return run


def _before_product(hook: Callable, size: tuple, out: tuple) -> Callable:
    def run(grad_outputs):
        new = _replaced(hook((_reshaped(grad_outputs[0], size),)), 1)
        return None if new is None else (_reshaped(new[0], out),)

    return run


def _after_product(hook: Callable, operands: list[list[Step]], size: tuple) -> Callable:
    def run(grad_inputs, grad_outputs):
        inside = tuple(_within(steps, 0, grad) for steps, grad in zip(operands, grad_inputs, strict=True))
        new = _replaced(hook(inside, (_reshaped(grad_outputs[0], size),)), len(inside))
        if new is None:
            return None
        return tuple(_without(steps, 0, grad) for steps, grad in zip(operands, new, strict=True))

    return run


def _at_operand(kind: str, hook: Callable, at: int, steps: list[Step], k: int) -> Callable:
    """Before or after the k-th view of an operand, that is after the product."""

    def run(grad_inputs, grad_outputs):
        arrived = grad_inputs[at]
        if kind == "pre":
            new, place = _replaced(hook((_within(steps, k, arrived),)), 1), k
        else:
            new = _replaced(hook((_within(steps, k + 1, arrived),), (_within(steps, k, arrived),)), 1)
            place = k + 1
        if new is None:
            return None
        return (*grad_inputs[:at], _without(steps, place, new[0]), *grad_inputs[at + 1 :])

    return run
