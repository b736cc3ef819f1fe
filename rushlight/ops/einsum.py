"""Einstein summation: reading the subscripts, planning, contracting pairwise from left to right.

A plan depends on the subscripts and the operands' shapes only, and is kept for the next call. In it each
operand is first brought to one dimension per label: a label it has twice becomes a diagonal, and dimensions
of size 1 are dropped, since broadcasting them is the same as not having them. Each step then multiplies two
operands and sums over the labels that neither the result nor a later operand needs, as one matrix product.
"""

from __future__ import annotations

import operator
from functools import lru_cache

from rushlight import _C
from rushlight._type_names import type_name as class_name

ops = _C.ops
ELLIPSIS = -1  # stands for "..." in a list of labels; labels are 0..51 for A..Z and a..z

_NO_OPERAND = (
    "einsum(): must specify the equation string and at least one operand, "
    "or at least one operand and its subscripts list"
)


def einsum(*args):
    """einsum(equation, *operands) -> Tensor

    Sums products of the operands' elements along dimensions named by letters.

    Example::

        >>> x, y = rushlight.ones(2, 3), rushlight.ones(3, 4)
        >>> rushlight.einsum("ij,jk->ik", x, y).shape
        torch.Size([2, 4])
    """
    if len(args) < 2:
        raise ValueError(_NO_OPERAND)
    if isinstance(args[0], (str, bytes)):
        subscripts, operands = args[0], args[1:]
        if isinstance(subscripts, bytes):
            subscripts = subscripts.decode()
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = tuple(operands[0])
    elif not isinstance(args[0], _C.Tensor):
        raise TypeError(f"einsum(): argument 'equation' (position 1) must be str, not {class_name(args[0])}")
    else:
        operands = args[0::2] if len(args) % 2 == 0 else args[:-1:2]
        lists = tuple(_read_sublist(labels) for labels in args[1::2])
        subscripts = (lists, _read_sublist(args[-1]) if len(args) % 2 else None)
    if not operands:
        raise ValueError(_NO_OPERAND)
    for position, operand in enumerate(operands):
        if not isinstance(operand, _C.Tensor):
            raise TypeError(
                f"expected Tensor as element {position} in argument 1, but got {class_name(operand)}"
            )
    plan = _plan(subscripts, tuple([x.shape for x in operands]))
    return plan.run(operands)


def _read_equation(equation):
    """The labels of each operand and of the result (None if there is no arrow)."""
    lists, labels, has_arrow, found, i = [], [], False, False, 0
    while i < len(equation):
        letter = equation[i]
        if letter == " ":
            pass
        elif letter == ".":
            if has_arrow:
                if found:
                    raise RuntimeError(
                        "einsum(): found '.' for output but an ellipsis (...) was already found"
                    )
                if equation[i : i + 3] != "...":
                    raise RuntimeError(
                        "einsum(): found '.' for output that is not part of any ellipsis (...)"
                    )
            else:
                if found:
                    raise RuntimeError(
                        f"einsum(): found '.' for operand {len(lists)} "
                        "for which an ellipsis was already found"
                    )
                if equation[i : i + 3] != "...":
                    raise RuntimeError(
                        f"einsum(): found '.' for operand {len(lists)} that is not part of any ellipsis"
                    )
            labels.append(ELLIPSIS)
            found = True
            i += 2
        elif letter == "," and not has_arrow:
            lists.append(labels)
            labels, found = [], False
        elif equation[i : i + 2] == "->" and not has_arrow:
            lists.append(labels)
            labels, found, has_arrow = [], False, True
            i += 1
        elif letter.isascii() and letter.isalpha():
            labels.append(_label(letter))
        else:
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {i} in the equation string, "
                "subscripts must be in [a-zA-Z]"
            )
        i += 1
    if has_arrow:
        return lists, labels
    return [*lists, labels], None


def _read_sublist(sublist):
    labels = []
    for label in sublist:
        if label is Ellipsis:
            labels.append(ELLIPSIS)
        elif label >= 0 and label < 52:
            labels.append(operator.index(label))
        else:
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return tuple(labels)


def _label(letter):
    return ord(letter) - ord("A") if letter.isupper() else ord(letter) - ord("a") + 26


def _letter(label):
    return chr(label + ord("A")) if label < 26 else chr(label - 26 + ord("a"))


def _check_operand(number, labels, ndim):
    """The number of dimensions that the ellipsis of this operand stands for."""
    if labels.count(ELLIPSIS) > 1:
        raise RuntimeError(
            f"einsum(): found '.' for operand {number} for which an ellipsis was already found"
        )
    named = len(labels) - labels.count(ELLIPSIS)
    if ELLIPSIS in labels:
        if named > ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) is more than the number of "
                f"dimensions ({ndim}) for operand {number}"
            )
    elif named != ndim:
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({named}) does not match the number of "
            f"dimensions ({ndim}) for operand {number} and no ellipsis was given"
        )
    return ndim - named


def _spelled_out(labels, ndim, ellipsis_names):
    covered = ndim - len(labels) + 1
    names = []
    for label in labels:
        names += ellipsis_names[len(ellipsis_names) - covered :] if label == ELLIPSIS else [label]
    return names


def _result_names(output, counts, ellipsis_names):
    if output.count(ELLIPSIS) > 1:
        raise RuntimeError("einsum(): found '.' for output but an ellipsis (...) was already found")
    result = []
    for label in output:
        if label == ELLIPSIS:
            result += ellipsis_names
        elif label in result:
            raise RuntimeError(
                f"einsum(): output subscript {_letter(label)} appears more than once in the output"
            )
        elif label not in counts:
            raise RuntimeError(
                f"einsum(): output subscript {_letter(label)} does not appear in the equation "
                "for any input operand"
            )
        else:
            result.append(label)
    return result


def _fail_size(name, size, before, number, dim):
    if isinstance(name, tuple):
        raise RuntimeError(
            f"einsum(): dimension {dim} covered by ellipsis in operand {number}"
            f"has size {size} which does not broadcast with previously seen ellipsis with size {before} "
            "for the respective dimension"
        )
    raise RuntimeError(
        f"einsum(): subscript {_letter(name)} has size {size} for operand {number} "
        f"which does not broadcast with previously seen size {before}"
    )


@lru_cache(maxsize=1024)
def _plan(subscripts, shapes):
    lists, output = _read_equation(subscripts) if isinstance(subscripts, str) else subscripts
    if len(shapes) < len(lists):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    if len(shapes) > len(lists):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    covered = max(
        _check_operand(i, labels, len(shape)) for i, (shape, labels) in enumerate(zip(shapes, lists))
    )
    # Dimensions under an ellipsis get names of their own, counted from the right.
    ellipsis_names = [("...", covered - 1 - d) for d in range(covered)]
    counts = {}
    for labels in lists:
        for label in labels:
            if label != ELLIPSIS:
                counts[label] = counts.get(label, 0) + 1
    if output is None:
        result = ellipsis_names + sorted(label for label, count in counts.items() if count == 1)
    else:
        result = _result_names(output, counts, ellipsis_names)
    operands, sizes = [], {}
    for number, (shape, labels) in enumerate(zip(shapes, lists)):
        own_names = _spelled_out(labels, len(shape), ellipsis_names)
        operands.append(_Operand(own_names, shape, number))
        for name, size in zip(operands[-1].names, operands[-1].shape):
            if size != 1 and sizes.setdefault(name, size) != size:
                _fail_size(name, size, sizes[name], number, own_names.index(name))
    return _Plan(operands, result, sizes)


class _Operand:
    """The views that give an operand one dimension per label."""

    def __init__(self, own_names, shape, number):
        self.diagonals, self.names, self.shape = [], [], list(shape)
        for name in own_names:
            if name not in self.names:
                self.names.append(name)
                continue
            first, second = self.names.index(name), len(self.names)
            if self.shape[first] != self.shape[second]:
                raise RuntimeError(
                    f"einsum(): subscript {_letter(name)} is repeated for operand {number} "
                    f"but the sizes don't match, {self.shape[second]} != {self.shape[first]}"
                )
            self.diagonals.append((first, second))
            del self.shape[second]

    def view(self, x):
        for first, second in self.diagonals:
            x = x.diagonal(0, first, second).movedim(-1, first)
        return x


class _Plan:
    """What to do with the operands, worked out once: `run` only calls operations."""

    def __init__(self, operands, result, sizes):
        self.operands = operands
        self.shape = [sizes.get(name, 1) for name in result]
        self.single = self.steps = None
        if len(operands) == 1:
            names = operands[0].names
            summed = [name for name in names if name not in result]
            order = [names.index(name) for name in result if name in names] + [names.index(n) for n in summed]
            kept = len(order) - len(summed)
            missing = [d for d, name in enumerate(result) if name not in names]
            self.single = (order, list(range(kept, len(order))), missing)
            return
        self.squeezed = []
        labels = []
        rest = {name for operand in operands for name in operand.names if name not in result}
        self.summed = bool(rest)
        for operand in operands:
            pairs = zip(operand.names, operand.shape)
            kept = [(n, size) for n, size in pairs if size != 1 or not rest]
            self.squeezed.append([size for _, size in kept] if len(kept) < len(operand.names) else None)
            labels.append([n for n, _ in kept])
        # As in torch the labels of the result come first, in its order, then those that are summed.
        summed = sorted(name for name in rest if not isinstance(name, tuple))
        order = [*result, *sorted(rest.difference(summed)), *summed]
        places = {name: place for place, name in enumerate(order)}
        self.steps, names = [], labels[0]
        for number in range(1, len(labels)):
            needed = set(result).union(*labels[number + 1 :])
            step = _Step(names, labels[number], needed, sizes, places)
            self.steps.append(step)
            names = step.names
        wanted = [name for name in result if name in names]
        self.order = None if wanted == names else [names.index(name) for name in wanted]

    def run(self, tensors):
        views = [operand.view(x) if operand.diagonals else x for operand, x in zip(self.operands, tensors)]
        if self.single is not None:
            order, summed, missing = self.single
            value = views[0].permute(order)
            if summed:
                value = value.sum(dim=summed)
            for d in missing:
                value = value.unsqueeze(d)
            return value
        for i, shape in enumerate(self.squeezed):
            if shape is not None:
                views[i] = views[i].view(shape)
        value = views[0]
        for step, x in zip(self.steps, views[1:]):
            value = step.run(value, x)
        if self.order is not None:
            value = value.permute(self.order)
        return value.view(self.shape) if self.summed or value.ndim != len(self.shape) else value


class _Step:
    """The product of a and b, summed over the labels that are not needed any more."""

    def __init__(self, a, b, needed, sizes, places):
        (self.sum_a, a), (self.sum_b, b) = (
            self._summed(own, other, needed, places) for own, other in ((a, b), (b, a))
        )
        self.is_product = any(name in b and name not in needed for name in a)
        self.swapped = False
        if self.is_product:
            self._plan_product(a, b, needed, sizes, places)
        else:
            self._plan_elementwise(a, b, places)

    def _summed(self, own, other, needed, places):
        """(order, dims) for the labels that only this operand has, or None, and those that are left. As in
        torch the rest is in the order of the result, so that it lies in memory in it."""
        alone = [name for name in own if name not in needed and name not in other]
        if not alone:
            return None, own
        names = sorted(own, key=places.get)
        dims = [d for d, name in enumerate(names) if name in alone]
        return ([own.index(name) for name in names], dims), [name for name in names if name not in alone]

    def _plan_product(self, a, b, needed, sizes, places):
        both = sorted((name for name in a if name in b and name in needed), key=places.get)
        inner = sorted((name for name in a if name in b and name not in needed), key=places.get)
        only_a = sorted((name for name in a if name not in b), key=places.get)
        only_b = sorted((name for name in b if name not in a), key=places.get)
        # torch turns the product round where its result comes out in order then. What neither operand has
        # counts as b's.
        others = [place for name, place in places.items() if name not in a]
        if only_a and others and max(others) < places[only_a[0]]:
            self.swapped, a, b, only_a, only_b = True, b, a, only_b, only_a
        self.names = both + only_a + only_b

        def count(names):
            n = 1
            for name in names:
                n *= sizes[name]
            return n

        def order(names, wanted):
            return None if names == wanted else [names.index(name) for name in wanted]

        self.order_a = order(a, both + only_a + inner)
        self.order_b = order(b, both + inner + only_b)
        batch = [count(both)] if both else []
        shape_a = [*batch, count(only_a), count(inner)]
        shape_b = [*batch, count(inner), count(only_b)]
        self.shape_a = shape_a if shape_a != [sizes[name] for name in both + only_a + inner] else None
        self.shape_b = shape_b if shape_b != [sizes[name] for name in both + inner + only_b] else None
        shape = [sizes[name] for name in self.names]
        self.shape = shape if shape != [*batch, count(only_a), count(only_b)] else None

    def _plan_elementwise(self, a, b, places):
        self.names = sorted({*a, *b}, key=places.get)

        def views(own):
            missing = [name for name in self.names if name not in own]
            return len(missing), [(own + missing).index(name) for name in self.names]

        (self.lacks_a, self.order_a), (self.lacks_b, self.order_b) = views(a), views(b)
        self.in_order = list(range(len(self.names)))

    def run(self, a, b):
        if self.sum_a is not None:
            a = a.permute(self.sum_a[0]).sum(dim=self.sum_a[1])
        if self.sum_b is not None:
            b = b.permute(self.sum_b[0]).sum(dim=self.sum_b[1])
        if not self.is_product:
            return self._aligned(a, self.lacks_a, self.order_a) * self._aligned(b, self.lacks_b, self.order_b)
        if self.swapped:
            a, b = b, a
        if self.order_a is not None:
            a = a.permute(self.order_a)
        if self.order_b is not None:
            b = b.permute(self.order_b)
        if self.shape_a is not None:
            a = a.reshape(self.shape_a)
        if self.shape_b is not None:
            b = b.reshape(self.shape_b)
        if a.ndim == 3:
            product = ops.einsum_bmm(a, b)
        elif a.dtype != b.dtype or a.dtype == _C.bool:
            product = ops.bmm(a.unsqueeze(0), b.unsqueeze(0))  # refuses in torch's words
        else:
            product = ops.einsum_mm(a, b)
        return product if self.shape is None else product.view(self.shape)

    def _aligned(self, x, lacks, order):
        """x with a dimension for each label. What has a history torch multiplies as a view of it."""
        for _ in range(lacks):
            x = x.unsqueeze(x.ndim)
        return x.permute(order) if order != self.in_order or x.requires_grad else x
