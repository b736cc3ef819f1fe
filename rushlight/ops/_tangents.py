"""Forward mode's formulas, taken from the same derivative table as reverse mode's.

For an operation with Jacobian J the table holds g -> J^T g. What forward mode needs is t -> J t:

- a view, or an operation that is linear in all its inputs together, is applied to the tangents themselves;
- an elementwise operation has a diagonal J, its own transpose: the rule applied to the tangent is it;
- a product is linear in each factor: one term per factor;
- for everything else the rule is transposed: J^T g is linear in g, so its derivative with respect to g,
  pulled back along t, is J t. That is right for every rule that can be differentiated itself, complex or not.

What stands between the two is said in the table, in two columns of `derivative`. `tangent` is a formula
that is asked first: `linear`, `drawn`, or one of an operation's own, which returns None where it leaves the
work to the rules. `recorded` is one for tangents that are recorded themselves (_recorded_tangents.py);
`**PRODUCT` is both for products. A formula is given the operation, its arguments, the tangents of its inputs
(None: it has none) and the result, which is None before a call in place; it returns the tangent, or a list.

`tangents` is what native/python/forward_mode.cpp calls, with forward mode switched off.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from rushlight import _C
from rushlight._annotations import Any
from rushlight._size import Size
from rushlight.ops._examples import has_batch
from rushlight.ops._recorded_tangents import product as product_terms
from rushlight.ops._rules import _ARG, _GRAD, _GRADS, _NEEDS, _OUT, _TURNED, RECORDED, RULES, TANGENTS

Tensor = _C.Tensor

# Inputs that say which elements are meant: nothing is differentiated with respect to them.
WHICH = {"index", "indices", "mask", "starts"}


def fitted(tangent: Tensor, like: Tensor) -> Tensor:
    """The tangent in the dtype and size of another tensor; itself if it is so, which a graph shows."""
    tangent = tangent if tangent.dtype == like.dtype else tangent.to(like.dtype)
    return tangent if tangent.shape == like.shape else tangent.expand(like.shape)


def _zero_for(value: Any) -> Any:
    """What stands for an input without tangent in a linear operation."""
    if isinstance(value, Tensor):
        return value.new_zeros(value.shape)
    return None if value is None else 0


def linear(op: _C.Primitive, args: tuple, tangents: tuple, result: Any) -> Any:
    """Of an operation that is linear in all its inputs together."""
    inputs = []
    for i, (name, tangent) in enumerate(zip(op.args, tangents, strict=False)):
        if name in WHICH:
            inputs.append(args[i])
        elif op.list_inputs >> i & 1:
            inputs.append([_zero_for(x) if t is None else t for x, t in zip(args[i], tangent, strict=True)])
        else:
            inputs.append(_zero_for(args[i]) if tangent is None else tangent)
    return op(*inputs, *args[len(tangents) :])


def _product(op: _C.Primitive, args: tuple, tangents: tuple, result: Any) -> Any:
    total = None
    for i, tangent in enumerate(tangents):
        if tangent is not None:
            term = op(*args[:i], tangent, *args[i + 1 :])
            total = term if total is None else total + term
    return total


PRODUCT: dict[str, Any] = {"tangent": _product, "recorded": product_terms}


def drawn(op: _C.Primitive, args: tuple, tangents: tuple, result: Any) -> Tensor:
    """Of what is drawn anew: the old value has no influence."""
    return args[0].new_zeros((args[0] if result is None else result).shape)


def copied(op: _C.Primitive, args: tuple, tangents: tuple, result: Any) -> Any:
    """Of what is written as a whole. In place the tangent is the source's, of its dtype, as in torch."""
    if result is None and not _any_leveled(args, tangents):
        if tangents[1] is None:
            return _C.zero_for_good(tangents[0].new_zeros(()))  # which fills the tangent there is
        if op is _C.ops.copy and args[0].shape == tangents[1].shape:
            return tangents[1]
    return linear(op, args, tangents, result)


def strided(op: _C.Primitive, args: tuple, tangents: tuple, result: Any) -> Tensor:
    """The geometry is that of the input's storage. Where the tangent lies in its own as the input does, the
    result is a view of it, so that writes into either are seen by the other."""
    (t,), (size, stride, offset, layout, start) = tangents, args[1:]
    length = sum((n - 1) * step for n, step in zip(size, stride, strict=True)) + 1
    if tuple(t.stride()) == tuple(layout) and start <= offset and all(n > 0 for n in size):
        first = t.storage_offset() + offset - start
        if not _C.is_leveled(t):
            end = t.untyped_storage().nbytes() // t.element_size()
        else:
            end = t.storage_offset() + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) + 1
        if first + length <= end:
            return op(t, size, stride, first, t.stride(), t.storage_offset())
        if has_batch(t):
            raise RuntimeError(
                f"result = tensor.as_strided({list(size)}, {list(stride)}, {offset}) can access memory "
                "outside of `tensor`. This is not supported inside of vmap"
            )
    return _C.ops.pick(t, layout, size, stride, offset - start)


def only_of(name: str) -> Callable:
    """Torch leaves the tangents of all other inputs out of account."""

    def formula(op: _C.Primitive, args: tuple, tangents: tuple, result: Any) -> tuple:
        moving = tuple(t if of == name else None for of, t in zip(op.args, tangents, strict=False))
        return _by_rules(op, args, moving, result)

    return formula


def _arguments(params: list, args: tuple, outs: tuple, grads: list, needs: tuple) -> list:
    """The values of a rule's parameters, as the engine would pass them."""
    values: list[Any] = []
    for kind, index in params:
        if kind == _GRAD:
            values.append(grads[index])
        elif kind == _GRADS:
            values.append(list(grads))
        elif kind == _ARG:
            values.append(args[index])
        elif kind == _OUT:
            values.append(outs[index])
        elif kind == _NEEDS:
            values.append(needs)
        elif kind == _TURNED:
            values.append(False)
        else:
            values.append(_shape(args[index]))
    return values


def _shape(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_shape(x) for x in value]
    return None if value is None else value.shape if isinstance(value, Tensor) else Size(())


def _elementwise(op: _C.Primitive, args: tuple, tangents: tuple, out: Tensor) -> Tensor | None:
    total = None
    for i, tangent in enumerate(tangents):
        if tangent is None:
            continue
        rule, params = RULES[op.__name__].get(i) or _refuse(op)
        given = _arguments(params, args, (out,), [fitted(tangent, out)], ())
        term = rule(*given)
        if term is not None:
            total = term if total is None else total + term
    return total if total is None or total.dtype == out.dtype else total.to(out.dtype)


def _refuse(op: _C.Primitive) -> Any:
    raise NotImplementedError(
        f"Trying to use forward AD with {op.__name__} that does not support it because it has not been "
        "implemented yet."
    )


def _refuse_if_lacking(error: RuntimeError) -> None:
    """Where reverse mode refuses an operation as one that has no derivative at all, so does forward mode."""
    before, found, _ = str(error).partition(" is not implemented")
    name = before.removeprefix("derivative for ")
    if found and name != before and name.startswith("aten::"):
        raise NotImplementedError(f"Trying to use forward AD with {name} that does not support it.") from None


def _transposed(op: _C.Primitive, args: tuple, tangents: tuple, outs: tuple) -> tuple:
    from rushlight.autograd import grad

    given = [any(t is not None for t in x) if isinstance(x, tuple) else x is not None for x in tangents]
    record = _C.is_grad_enabled()
    pairs: list[tuple[Tensor, Tensor]] = []
    # What is recorded in between is not the program's, and read at once: hooks that keep what is saved (a
    # checkpoint's) are not asked.
    before, rested = _C.set_grad_enabled(True), _C.rest_saved_hooks(True)
    try:
        grads = [o.new_zeros(o.shape) for o in outs]
        for g in grads:
            if g.is_floating_point() or g.is_complex():
                _C.requires_grad_(g, True)
        rules = RULES[op.__name__]
        if -1 in rules:
            rule, params = rules[-1]
            pulled = rule(*_arguments(params, args, outs, grads, tuple(given)))
        else:
            pulled = [None] * len(tangents)
            if any(asked and i not in rules for i, asked in enumerate(given)):
                _refuse(op)
            for i, (rule, params) in rules.items():
                if given[i]:
                    pulled[i] = rule(*_arguments(params, args, outs, grads, ()))
        for i, value in enumerate(pulled):
            if value is None or not given[i]:
                continue
            several = isinstance(tangents[i], tuple)
            for v, t, x in zip(
                value if several else (value,),
                tangents[i] if several else (tangents[i],),
                args[i] if several else (args[i],),
                strict=True,
            ):
                if v is None or t is None or not v.requires_grad:
                    continue
                if v.is_complex() and not x.is_complex():
                    v = v.real
                pairs.append((v, fitted(t, v)))
    finally:
        _C.set_grad_enabled(before)
        _C.rest_saved_hooks(rested)
    wanted = [g for g in grads if g.requires_grad]
    if not pairs or not wanted:
        return tuple(None for _ in outs)
    values, pushed = zip(*pairs, strict=True)
    # Where functions are transformed, a level below may record what this one does not.
    recorded = record and (_any_requires_grad(args, pushed) or _C.top_level() is not None)
    found = grad(values, wanted, pushed, create_graph=recorded, allow_unused=True)
    result = iter(found)
    return tuple(
        None if not g.requires_grad else o.new_zeros(o.shape) if (t := next(result)) is None else t
        for g, o in zip(grads, outs, strict=True)
    )


@functools.cache
def _follow() -> Any:
    """A copy of a tangent that depends on other tensors, with a derivative of zero."""
    from rushlight.autograd.function import Function

    class Follow(Function):
        @staticmethod
        def forward(ctx: Any, tangent: Tensor, *unread: Tensor) -> Tensor:
            ctx.unread = [(x.shape, x.dtype) for x in unread]
            return tangent.clone()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            return g, *(g.new_zeros(shape, dtype=dtype) for shape, dtype in ctx.unread)

    return Follow.apply


def followed(count: int) -> Callable:
    """For the column `recorded`: where one of the first `count` inputs moves alone, the tangent does not
    depend on it. Torch's formula reads it all the same: the derivative by it is there, and zero."""

    def formula(op: _C.Primitive, args: tuple, tangents: tuple, result: Any) -> tuple:
        found = _by_rules(op, args, tangents, result)
        moving = sum(t is not None for t in tangents[:count])
        unread = [
            x
            for x, t in zip(args[:count], tangents[:count], strict=True)
            if moving == (t is not None) and isinstance(x, Tensor) and x.requires_grad
        ]
        return (_follow()(found[0], *unread), *found[1:]) if unread and found[0] is not None else found

    return formula


def _any_requires_grad(args: tuple, pushed: tuple) -> bool:
    for value in (*args, *pushed):
        if isinstance(value, Tensor) and value.requires_grad:
            return True
        if isinstance(value, (tuple, list)) and any(isinstance(x, Tensor) and x.requires_grad for x in value):
            return True
    return False


def tangents(op: _C.Primitive, args: tuple, tangents: tuple, result: Any) -> tuple:
    """The tangents of op(*args), one per output, from those of its inputs (None: it has none)."""
    found = _tangents(op, args, tangents, result)
    return tuple(found) if isinstance(found, (tuple, list)) else (found,)


# The formulas that apply the operation to the tangents, whatever their dtype.
_AS_THEY_ARE = (linear, copied, strided)


def _tangents(op: _C.Primitive, args: tuple, tangents: tuple, result: Any) -> Any:
    formula = TANGENTS.get(op.__name__, linear if op.is_view else None)
    wide = None if formula in _AS_THEY_ARE else _wider(args, tangents)
    if wide is not None:
        args, tangents, result = (_in_dtype(values, wide) for values in (args, tangents, result))
    recorded = RECORDED.get(op.__name__)
    if recorded is not None and _is_recorded(args, tangents):
        args, tangents, result = _before_write(op, args, tangents, result)
        return recorded(op, args, tangents, result)
    found = None if formula is None else formula(op, args, tangents, result)
    return _by_rules(op, args, tangents, result) if found is None else found


def _wider(args: tuple, tangents: tuple) -> Any:
    """The dtype of a tangent that has more digits than what it belongs to, in which torch computes with it;
    None nearly always."""
    wide = None
    for x, t in zip(args, tangents):
        other = isinstance(t, Tensor) and t.dtype is not x.dtype and t.is_floating_point()
        if other and _C.promote_types(t.dtype, x.dtype) == t.dtype:
            wide = t.dtype if wide is None else _C.promote_types(wide, t.dtype)
    return wide


def _in_dtype(value: Any, wide: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(_in_dtype(each, wide) for each in value)
    narrow = isinstance(value, Tensor) and value.dtype is not wide and value.is_floating_point()
    return value.to(wide) if narrow and _C.promote_types(value.dtype, wide) == wide else value


def _is_recorded(args: tuple, tangents: tuple) -> bool:
    return _C.is_grad_enabled() and _any_requires_grad(args, tangents) and not _any_leveled(args, tangents)


def _before_write(op: _C.Primitive, args: tuple, tangents: tuple, result: Any) -> tuple:
    """The arguments, tangents and result of a call; in place, what it is about to overwrite is kept as it is
    for the derivative of the tangent."""
    if result is not None:
        return args, tangents, result
    if _is_recorded(args, tangents):
        written, kept = args[0], args[0].clone()
        args = tuple(kept if x is written else x for x in args)
        if tangents[0] is not None:
            tangents = (tangents[0].clone(), *tangents[1:])
    return args, tangents, op(*args)


def _by_rules(op: _C.Primitive, args: tuple, tangents: tuple, result: Any) -> tuple:
    args, tangents, result = _before_write(op, args, tangents, result)
    try:
        # The derivative of sgn is its own transpose, also of complex numbers.
        if op.is_elementwise and (op.__name__ == "sgn" or not _any_complex((*args, result))):
            return (_elementwise(op, args, tangents, result),)
        outs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        return _transposed(op, args, tangents, outs)
    except NotImplementedError as error:
        if str(error).startswith("the derivative for"):  # a rule that only says that there is none
            _refuse(op)
        raise
    except RuntimeError as error:
        _refuse_if_lacking(error)
        raise


def _any_leveled(args: tuple, tangents: tuple) -> bool:
    return any(isinstance(x, Tensor) and _C.is_leveled(x) for x in (*args, *tangents))


def _any_complex(args: tuple) -> bool:
    return any(isinstance(x, Tensor) and x.is_complex() for x in args)
