"""The steps that torch records within a product or a pool along a line, which are one node here: see Note
[facades], graph_inspect.cpp.

`next_functions` of such a node leads to the product as torch has it and from there, through the views of its
operands, to what the operation was called with. `show` is where to start; the views are
those of _operand_views.py.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight import _C
from rushlight.autograd._operand_views import Operand, Step, reshaped_step, turned_step

Node = _C.Node


class Parts(NamedTuple):
    """What an operation is made of in torch. The node itself is the last step; `after` are those between it
    and the product, the nearest to the node first. Without a name the node is the product."""

    name: str
    primitive: str
    names: tuple[str, ...]  # of the operands
    size: tuple  # of the product
    operands: tuple[Operand, ...]
    after: tuple[Step, ...]
    changed: dict[int, tuple]  # by hooks, of operands that are repeated: what came of it, and where it was


def _parts(name: str, primitive: str, names: tuple, size: tuple, operands: tuple, after: tuple = ()) -> Parts:
    return Parts(name, primitive, names, size, operands, after, {})


def _mm(size: tuple, *operands: Operand, after: tuple[Step, ...] = ()) -> Parts:
    return _parts("MmBackward0", "mm", ("self", "mat2"), size, operands, after)


def _saved(node: Node, name: str) -> Any:
    """What the node saved under its primitive's name; None if that was not needed, is gone, or was packed by
    a hook: to look at a graph calls none."""
    if node._released:
        return None
    for found, slot, out in node._names_saved():
        if found == name:
            packed = getattr(_C.raw_saved(node, slot, out), "unpack_hook", None) is not None
            return None if packed else node._unpack(slot, out)
    return None


def _leads(node: Node) -> tuple:
    return tuple(node._outputs()[0][0])


def _given(node: Node, at: int, name: str) -> Operand | None:
    """An operand as the operation was called with it; None if that is not known any more. Its strides are
    those of the tensor, or of what was saved of it; else it is taken to be contiguous."""
    source, nr = node._edges()[at]
    size = None if source is None else tuple(source._outputs()[nr][0])
    tensor = None if size is None else node._input(at)
    if tensor is None or tuple(tensor.shape) != size:
        tensor = _saved(node, name)
    if tensor is not None and size in (None, tuple(tensor.shape)):
        operand = Operand(at, name, size is not None, tensor.shape, tensor.stride())
    elif size is not None:
        operand = Operand(at, name, True, size, None)
    else:
        return None
    primitive = None if source is None else source._primitive
    operand.copied = primitive is not None and primitive.__name__ == "rows_copy"
    return operand


def show(node: Node) -> tuple | None:
    """What next_functions of a product shows; None for the edges that it has."""
    name = node._primitive.__name__
    if name.endswith("_pool1d"):
        return _pool(node, name)
    if name.startswith("linear"):
        parts = _linear(node, name)
    else:
        a, b = _given(node, 0, "a"), _given(node, 1, "b")
        if name.endswith(("_nh", "_hn")):
            parts = _by_adjoint(node, a, b, name.endswith("_nh"))
            return None if parts is None else _around(node, parts)
        a = a or _missing(node, b, 0, "a")
        b = b or _missing(node, a, 1, "b")
        parts = None if a is None or b is None else _product(a, b)
        if name == "matmul_turned" and parts is not None:
            parts = parts._replace(after=())  # what it is turned by is a node
    return None if parts is None else _around(node, parts)


def _by_adjoint(node: Node, a: Operand | None, b: Operand | None, second: bool) -> Parts | None:
    """The gradient of a product, which is one by the other factor turned; that of a complex one is conjugated
    too, which is not shown."""
    if a is None or b is None or node._outputs()[0][1].is_complex:
        return None
    turned = b if second else a
    turned = turned.t() if len(turned.size) == 2 else turned.mT()
    return _parts("", "", (), _leads(node), (a, turned) if second else (turned, b))


def _missing(node: Node, other: Operand | None, at: int, name: str) -> Operand | None:
    """An operand that has no gradient and is not saved any more, as it was most likely."""
    if other is None:
        return None
    out, k = _leads(node), other.size[-1] if at or len(other.size) == 1 else other.size[-2]
    if len(other.size) > 1 and len(out) < len(other.size):
        size: tuple = (k,)
    elif at:
        size = (*out[:-1], k, out[-1]) if len(other.size) == 1 else (*out[:-2], k, out[-1])
    else:
        size = (*out, k) if len(other.size) == 1 else (*out[:-1], k)
    return Operand(at, name, False, size, None)


def _linear(node: Node, name: str) -> Parts | None:
    """The last two operands are the rows and the weight."""
    at = len(node._edges()) - 2
    x, weight, out = _given(node, at, "x"), _given(node, at + 1, "weight"), _leads(node)
    if x is None and weight is not None:
        x = Operand(at, "x", False, (*out[:-1], weight.size[1]), None)
    if weight is None and x is not None:
        weight = Operand(at + 1, "weight", False, (out[-1], x.size[-1]), None)
    if x is None or weight is None:
        return None
    if "nd" in name:
        return _product(x, weight.t())
    bias = (Operand(0, "bias", True, out[-1:], None),) * at
    return _parts("", "", (), out, (*bias, x, weight.t()))


def _folds(many: Operand, one: Operand, first: bool) -> bool:
    """See torch_folds, matmul_ops.cpp."""
    if len(many.size) < 3 or len(one.size) > 2:
        return False
    if one.required:
        return True
    if not first and len(one.size) == 2:
        return False
    if 0 in many.size:
        return True
    rows = many if first else many.mT()
    return all(rows.stride[d] == rows.stride[d + 1] * rows.size[d + 1] for d in range(len(rows.size) - 2))


def _product(a: Operand, b: Operand) -> Parts | None:
    """How torch multiplies."""
    if len(a.size) == 1 and len(b.size) == 2:
        return _mm((1, b.size[1]), a.unsqueeze(0), b)
    if len(a.size) < 3 and len(b.size) < 3:
        return None
    first = len(a.size) >= len(b.size)
    if _folds(a, b, True) if first else _folds(b, a, False):
        return _folded(a, b, first)
    lead, rest = a.size[:-2], b.size[:-2]
    if len(lead) == len(rest) == 1 and lead != rest:
        if lead == (1,) and a.required:
            return _product(a.squeeze(), b)
        if rest == (1,) and b.required:
            return _product(a, b.squeeze())
    dims = max(len(lead), len(rest))
    pairs = zip((1,) * (dims - len(lead)) + lead, (1,) * (dims - len(rest)) + rest)
    batch = tuple(y if x == 1 else x for x, y in pairs)
    count, matrix = math.prod(batch), (1, *a.size)[-2:]
    left = a.expand((*batch, *matrix)).reshape((count, *matrix))
    right = b.expand((*batch, *b.size[-2:])).reshape((count, *b.size[-2:]))
    size: tuple = (count, matrix[0], b.size[-1])
    after: tuple[Step, ...] = ()
    if len(b.size) == 1:
        right, size = right.unsqueeze(2), (count, matrix[0], 1)
        after = (Step("SqueezeBackward1", "squeeze_dim", size[:2], lambda g: g.unsqueeze(-1),
                      lambda g: g.squeeze(-1), {"dim": -1, "self_sym_sizes": size}),)  # fmt: skip
    return _parts("BmmBackward0", "bmm", ("self", "mat2"), size, (left, right), after)


def _folded(a: Operand, b: Operand, first: bool) -> Parts:
    """One product of all rows of `a`; or of all columns of `b` by the turned `a`, whose result is turned
    round and copied."""
    many, one = (a, b) if first else (b.mT(), a.t() if len(a.size) == 2 else a)
    flat = many.reshape((math.prod(many.size[:-1]), many.size[-1]))
    if len(one.size) == 1:
        return _parts("MvBackward0", "mv", ("self", "vec"), flat.size[:1], (flat, one))
    size = (flat.size[0], one.size[1])
    if first:
        return _mm(size, flat, one)
    turned = (*many.size[:-1], one.size[1])
    result = (*turned[:-2], turned[-1], turned[-2])
    view = reshaped_step("UnsafeViewBackward0", size, turned)
    # Behind the product inward and outward are the other way round.
    view = view._replace(inward=view.outward, outward=view.inward)
    return _mm(size, flat, one, after=(turned_step(result), view))


def _chain(node: Node, parts: Parts, operand: Operand) -> tuple:
    """The edge of an operand, behind its views."""
    edge = node._edges()[operand.at]
    if edge[0] is None:
        return edge
    for k, step in reversed(list(enumerate(operand.steps))):
        about = {"owner": weakref.ref(node), "hooks": (parts, operand, k), "saved": step.shows}
        edge = _C.facade(node, step.name, step.primitive, (edge,), step.size, about), 0
    return edge


def _around(node: Node, parts: Parts, **saved: Any) -> tuple:
    edges = tuple(_chain(node, parts, operand) for operand in parts.operands)
    if not parts.name:
        return edges
    for name, operand, edge in zip(parts.names, parts.operands, edges):
        saved[name] = _operand(operand)
        if parts.primitive == "mm":
            saved[f"{name}_sym_sizes"] = operand.size
            saved[f"{name}_sym_strides"] = () if edge[0] is None else operand.stride
    steps = [(step.name, step.primitive, step.size, step.shows) for step in parts.after]
    steps.append((parts.name, parts.primitive, parts.size, saved))
    for k, (name, primitive, size, shows) in reversed(list(enumerate(steps))):
        about = {"owner": weakref.ref(node), "hooks": (parts, None, k), "saved": shows}
        edges = ((_C.facade(node, name, primitive, edges, size, about), 0),)
    return edges


def _operand(operand: Operand) -> Callable:
    def value(node: Node) -> Any:
        if node._released:
            node._refuse()
        return _within(operand.steps, 0, _saved(node, operand.name))

    return value


_POOLS = {
    "avg_pool1d": ("AvgPool2DBackward0", "avg_pool2d"),
    "max_pool1d": ("MaxPool2DWithIndicesBackward0", "max_pool2d"),
    "adaptive_avg_pool1d": ("AdaptiveAvgPool2DBackward0", "adaptive_avg_pool2d"),
    "adaptive_max_pool1d": ("AdaptiveMaxPool2DBackward0", "adaptive_max_pool2d"),
}


def _pool(node: Node, name: str) -> tuple | None:
    """torch pools lines as images of one row."""
    operand, out = _given(node, 0, "x"), _leads(node)
    if operand is None:
        return None
    x = operand.size
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
    images = Operand(0, "x", True, row(x), None, (view,))
    return _around(node, _parts(*_POOLS[name], (), row(out), (images,)), **saved)


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


def _within(steps: tuple[Step, ...], k: int, value: Any) -> Any:
    """What is outside, as it is before the views from the k-th on."""
    for step in reversed(steps[k:]):
        value = None if value is None else step.inward(value)
    return value


def _without(steps: tuple[Step, ...], k: int, gradient: Any) -> Any:
    for step in steps[k:]:
        gradient = None if gradient is None else step.outward(gradient)
    return gradient


def _replaced(result: Any, count: int) -> tuple | None:
    """What a hook returned, as a tuple of as many gradients."""
    if result is None:
        return None
    return result if isinstance(result, tuple) and len(result) == count else (result,) * count


class _Gradients:
    """The gradients at the steps of an operation, from those that its node is given and gives."""

    def __init__(self, owner: Node, parts: Parts) -> None:
        self.parts, self.size = parts, _leads(owner)
        self.first = parts.after[0].size if parts.after else parts.size
        # Of what is repeated for a batch the node gives the sum.
        self.factors: list[Any] = []
        if any(step.repeats for operand in parts.operands for step in operand.steps):
            values = [_within(o.steps, 0, _saved(owner, o.name)) for o in parts.operands]
            self.factors = [None if value is None else value.mH for value in values]

    def behind(self, k: int, gradient: Any) -> Any:
        """At the k-th step behind the product, or at the product."""
        if gradient is None:
            return None
        gradient = gradient.reshape(self.first) if self.parts.name else gradient
        for step in self.parts.after[:k]:
            gradient = step.inward(gradient)
        return gradient

    def outside(self, k: int, gradient: Any) -> Any:
        for step in reversed(self.parts.after[:k]):
            gradient = None if gradient is None else step.outward(gradient)
        return None if gradient is None else gradient.reshape(self.size)

    def at(self, operand: Operand, k: int, given: tuple, arrived: tuple) -> Any:
        """At an operand, before its k-th view."""
        gradient = given[operand.at]
        if gradient is None or not any(step.repeats for step in operand.steps[k:]):
            return _within(operand.steps, k, gradient)
        outside, place, new = self.parts.changed.get(operand.at, (None, 0, None))
        if outside is gradient and place <= k:
            return _without(operand.steps[place:k], 0, new)
        product = self.behind(len(self.parts.after), arrived[0])
        first = operand is self.parts.operands[0]
        other = self.factors[first]
        gradient = product.bmm(other) if first else other.bmm(product)
        return _without(operand.steps[:k], 0, gradient)

    def change(self, operand: Operand, k: int, gradient: Any) -> Any:
        """What the node gives if the gradient before the k-th view of an operand is this one."""
        outside = _without(operand.steps, k, gradient)
        if any(step.repeats for step in operand.steps):
            self.parts.changed[operand.at] = outside, k, gradient
        return outside


def placed(node: Node, kind: str, hook: Callable) -> tuple[Node | None, str, Callable]:
    """Where a hook goes and as what: one on a facade becomes one on the operation that it is a step of, where
    the same gradients arrive in another shape. The node None: that operation is gone, and no gradient comes.
    """
    if not node._facade:
        after = [each for each, _ in node.next_functions if each is not None and each._facade]
        if not after:
            return node, kind, hook
        parts = after[0]._kept["hooks"][0]
        gradients = _Gradients(node, parts)
        return (node, "pre", _between(hook, gradients, -1)) if parts.name else (
            node, "post", _after_product(hook, gradients))  # fmt: skip
    owner = node._kept["owner"]()
    if owner is None:
        return None, kind, hook
    parts, operand, k = node._kept["hooks"]
    gradients = _Gradients(owner, parts)
    if operand is not None:
        return owner, "post", _at_operand(kind, hook, gradients, operand, k)
    if kind == "pre":
        return owner, "pre", _before(hook, gradients, k)
    if k < len(parts.after):
        return owner, "pre", _between(hook, gradients, k)
    return owner, "post", _after_product(hook, gradients)


def _before(hook: Callable, gradients: _Gradients, k: int) -> Callable:
    """Before a step behind the product, or the product."""

    def run(grad_outputs):
        new = _replaced(hook((gradients.behind(k, grad_outputs[0]),)), 1)
        return None if new is None else (gradients.outside(k, new[0]),)

    return run


def _between(hook: Callable, gradients: _Gradients, k: int) -> Callable:
    """After a step behind the product, that is before the next; -1 is the node itself."""

    def run(grad_outputs):
        arrived = grad_outputs[0] if k < 0 else gradients.behind(k, grad_outputs[0])
        new = _replaced(hook((gradients.behind(k + 1, grad_outputs[0]),), (arrived,)), 1)
        return None if new is None else (gradients.outside(k + 1, new[0]),)

    return run


def _after_product(hook: Callable, gradients: _Gradients) -> Callable:
    operands = gradients.parts.operands

    def run(grad_inputs, grad_outputs):
        inside = tuple(gradients.at(operand, 0, grad_inputs, grad_outputs) for operand in operands)
        arrived = gradients.behind(len(gradients.parts.after), grad_outputs[0])
        new = _replaced(hook(inside, (arrived,)), len(inside))
        if new is None:
            return None
        changed = list(grad_inputs)
        for operand, gradient in zip(operands, new, strict=True):
            changed[operand.at] = gradients.change(operand, 0, gradient)
        return tuple(changed)

    return run


def _at_operand(kind: str, hook: Callable, gradients: _Gradients, operand: Operand, k: int) -> Callable:
    """Before or after the k-th view of an operand, that is after the product."""
    at = operand.at

    def run(grad_inputs, grad_outputs):
        arrived = gradients.at(operand, k, grad_inputs, grad_outputs)
        if kind == "pre":
            new, place = _replaced(hook((arrived,)), 1), k
        else:
            new = _replaced(hook((gradients.at(operand, k + 1, grad_inputs, grad_outputs),), (arrived,)), 1)
            place = k + 1
        if new is None:
            return None
        return (*grad_inputs[:at], gradients.change(operand, place, new[0]), *grad_inputs[at + 1 :])

    return run
