"""Einstein summation: reading the subscripts, bringing operands to common dimensions, contracting pairwise.

Every operand is viewed with one dimension per label: first those of the result, in its order, then those that
are summed. `_contract` multiplies two such operands and sums what no later operand needs,
in one batched product.
"""

from rushlight import _C

ops = _C.ops

ELLIPSIS = -1  # stands for "..." in a list of labels; labels are 0..51 for A..Z and a..z


def einsum(*args):
    """einsum(equation, *operands) -> Tensor

    Sums products of the operands' elements along dimensions named by letters.

    Example::

        >>> x, y = rushlight.ones(2, 3), rushlight.ones(3, 4)
        >>> rushlight.einsum("ij,jk->ik", x, y).shape
        torch.Size([2, 4])
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, "
            "or at least one operand and its subscripts list"
        )
    if isinstance(args[0], str):
        equation, operands = args[0], args[1:]
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = tuple(operands[0])
        subscripts, output = _read_equation(equation)
    else:
        operands = args[0::2] if len(args) % 2 == 0 else args[:-1:2]
        subscripts = [_read_sublist(labels) for labels in args[1::2]]
        output = _read_sublist(args[-1]) if len(args) % 2 else None
    for position, operand in enumerate(operands):
        if not hasattr(operand, "ndim"):
            raise TypeError(
                f"expected Tensor as element {position} in argument 1, but got {type(operand).__name__}"
            )
    if len(operands) < len(subscripts):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    if len(operands) > len(subscripts):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    return _einsum(operands, subscripts, output)


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
        elif 0 <= label < 52:
            labels.append(int(label))
        else:
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return labels


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


def _einsum(operands, subscripts, output):
    covered = max(
        _check_operand(i, labels, x.ndim) for i, (x, labels) in enumerate(zip(operands, subscripts))
    )
    # Dimensions under an ellipsis get names of their own, counted from the right.
    ellipsis_names = [("...", covered - 1 - d) for d in range(covered)]
    counts = {}
    for labels in subscripts:
        for label in labels:
            if label != ELLIPSIS:
                counts[label] = counts.get(label, 0) + 1
    if output is None:
        result = ellipsis_names + sorted(label for label, count in counts.items() if count == 1)
    else:
        result = _result_names(output, counts, ellipsis_names)
    summed = [name for name in ellipsis_names if name not in result] + sorted(
        label for label in counts if label not in result
    )
    names = result + summed
    place = {name: d for d, name in enumerate(names)}
    sizes, seen_in, views = {}, {}, []
    for number, (x, labels) in enumerate(zip(operands, subscripts)):
        own_names = _spelled_out(labels, x.ndim, ellipsis_names)
        views.append(_aligned(x, own_names, names, number))
        for name, d in place.items():
            size = views[-1].shape[d]
            if size == 1:
                continue
            if sizes.setdefault(name, size) != size:
                _fail_size(name, size, sizes[name], number, own_names.index(name))
            seen_in[name] = number
    out_dims = len(result)
    value = views[0]
    done = [d for d in range(out_dims, len(names)) if seen_in.get(names[d], 0) == 0]
    if done and len(views) == 1:
        return value.sum(dim=done) if len(done) == len(summed) else value
    for number in range(1, len(views)):
        dims = [
            d
            for d in range(out_dims, len(names))
            if seen_in.get(names[d], 0) == number or (number == 1 and seen_in.get(names[d], 0) == 0)
        ]
        value = _contract(value, views[number], dims)
    return value.view(value.shape[:out_dims]) if len(names) > out_dims else value


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


def _spelled_out(labels, ndim, ellipsis_names):
    covered = ndim - len(labels) + 1
    names = []
    for label in labels:
        names += ellipsis_names[len(ellipsis_names) - covered :] if label == ELLIPSIS else [label]
    return names


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


def _aligned(x, own_names, names, number):
    """x with a dimension for each of `names`: a diagonal for a label it has twice, size 1 for others."""
    own = []
    for name in own_names:
        if name not in own:
            own.append(name)
            continue
        first, second = own.index(name), len(own)
        if x.shape[first] != x.shape[second]:
            raise RuntimeError(
                f"einsum(): subscript {_letter(name)} is repeated for operand {number} "
                f"but the sizes don't match, {x.shape[second]} != {x.shape[first]}"
            )
        x = x.diagonal(0, first, second).movedim(-1, first)
    for name in names:
        if name not in own:
            own.append(name)
            x = x.unsqueeze(-1)
    return x.permute([own.index(name) for name in names])


def _contract(a, b, dims):
    """The sum of a * b over `dims`, which are kept with size 1. a and b broadcast against each other."""
    if not dims:
        return a * b
    both, only_a, only_b, inner = [], [], [], []
    for d, (m, n) in enumerate(zip(a.shape, b.shape)):
        if d in dims:
            if m != 1 and n != 1:
                inner.append(d)
            elif m != 1:
                a = a.sum(dim=d, keepdim=True)
            elif n != 1:
                b = b.sum(dim=d, keepdim=True)
        elif m != 1 and n != 1:
            both.append(d)
        elif m != 1:
            only_a.append(d)
        else:
            only_b.append(d)
    if not inner:
        return a * b
    ones = [d for d in dims if d not in inner]

    def size(x, axes):
        n = 1
        for d in axes:
            n *= x.shape[d]
        return n

    left = a.permute([*both, *only_a, *inner, *only_b, *ones])
    right = b.permute([*both, *inner, *only_b, *only_a, *ones])
    product = ops.bmm(
        left.reshape(size(a, both), size(a, only_a), size(a, inner)),
        right.reshape(size(b, both), size(b, inner), size(b, only_b)),
    )
    order = [*both, *only_a, *only_b, *inner, *ones]
    shape = [(b if d in only_b else a).shape[d] if d not in dims else 1 for d in order]
    back = [order.index(d) for d in range(a.ndim)]
    return product.view(shape).permute(back)
