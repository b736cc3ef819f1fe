"""Random programs about the history of tensors: views, writes, hooks, passes and modes in any order, of the
statements in histories_made.txt and histories_done.txt. Every statement is tried; `run` tells what it made,
and what became of everything in the end, in a form that two libraries can be compared by."""

import copy
import functools
import pickle
import random
import re
import warnings
from pathlib import Path

from history_functions import functions

STEPS = 8
KINDS = {"view": 25, "value": 26, "write": 25, "hook": 7, "backward": 11, "mode": 6}


def _statements():
    found = {}
    for name in ("histories_made.txt", "histories_done.txt"):
        for line in Path(__file__).with_name(name).read_text().splitlines():
            if re.fullmatch(r"\[\w+\]", line):
                kind = found.setdefault(line[1:-1], [])
            elif not line.startswith("#"):
                kind.append(line)
    return found


STATEMENTS = _statements()


def program(seed):
    """Lines of (depth, kind, name of the result or None, statement)."""
    draw = random.Random(seed)
    start = draw.choice(STATEMENTS["start"][:1] if draw.random() < 0.5 else STATEMENTS["start"])
    names, lines, ends = ["x", "w", "c", "e"], [(0, "start", None, start)], []
    while sum(kind != "mode" for _, kind, *_ in lines) <= STEPS:
        kind = draw.choices(list(KINDS), KINDS.values())[0]
        if kind == "mode" and len(ends) == 2:
            continue
        text = draw.choice(STATEMENTS[kind])
        text = text.format(a=draw.choice(names), b=draw.choice(names), t=draw.choice(("True", "False")))
        made = f"t{len(lines)}" if kind in ("view", "value") else None
        lines.append((len(ends), kind, made, text))
        if made:
            names.append(made)
        ends = [left - 1 for left in ends if left > 1]
        if kind == "mode":
            ends.append(draw.randint(2, 5))
    return lines


def source(lines):
    """The program as it can be read and run on its own."""
    told = []
    for depth, kind, made, text in lines:
        text = f"with {text}:" if kind == "mode" else f"{made} = {text}" if made else text
        told.append("    " * depth + text)
    return "\n".join(told)


_METHODS = ("is_inference", "is_conj", "is_neg")


def _told_number(value):
    if isinstance(value, list):
        return [_told_number(v) for v in value]
    if isinstance(value, complex):
        return [value.real, value.imag]
    return value


def _numbers(tensor):
    try:
        tensor = tensor.to_dense() if tensor.is_sparse else tensor
        if tensor.dtype.itemsize == 4 and not tensor.is_floating_point():
            tensor = tensor.view(
                tensor.real.new_zeros(0).float().dtype
            )  # bits of floats, told as what they are
        return _told_number(tensor.tolist())
    except RuntimeError as error:  # the negative of booleans cannot be read, nor what a batch left in torch
        return _first(error)


def _told(torch, value, is_gradient=False):
    """What there is to see of a tensor."""
    if not isinstance(value, torch.Tensor):
        return repr(value)

    def ask(name):
        try:
            found = getattr(value, name)
            return found() if name in _METHODS else found
        except Exception as error:
            return f"{type(error).__name__}: {_first(error)}"

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        node, base, grad = (ask(name) for name in ("grad_fn", "_base", "grad"))
        # What a batch is computed of cannot be detached in torch.
        told = {"numbers": _numbers(value if is_gradient else value.detach())}
    told |= {
        "dtype": str(value.dtype).split(".")[-1],
        "size": list(value.shape),
        "type": type(value).__name__,
        "grad": _numbers(grad) if isinstance(grad, torch.Tensor) else grad,
        "node": node,
    }
    if hasattr(node, "next_functions"):
        told |= {"node": node.name(), "next": [f and f.name() for f, _ in node.next_functions]}
    for name in ("requires_grad", "is_leaf", "retains_grad", "output_nr", *_METHODS):
        told[name] = ask(name)
    if not is_gradient:  # how a gradient was made is nobody's business
        sparse = value.layout is not torch.strided
        told |= {
            "strides": str(value.layout) if sparse else list(value.stride()),
            "offset": None if sparse else value.storage_offset(),
            "_version": ask("_version"),
        }
        told["base"] = list(base.shape) if isinstance(base, torch.Tensor) else base
    return told


def _memory(tensor):
    """What a write may change of a tensor."""
    try:
        return str(_numbers(tensor.detach())), tensor.shape, tensor.stride(), tensor.storage_offset()
    except Exception as error:
        return _first(error)


def _places(tensor):
    """Where in memory the elements are, one after the other."""
    if tensor.is_sparse:
        return []
    places = [tensor.storage_offset()]
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        places = [place + k * stride for place in places for k in range(size)]
    return [place * tensor.element_size() for place in places]


def _overlap(torch, text, tensors):
    """Whether a statement names tensors that lie in the same memory in different ways, or one whose own
    elements share memory: then torch may read what it has written."""
    lying, products = {}, re.search(r"add(mm|bmm|mv|r)_|baddbmm_", text)
    for name in set(re.findall(r"\w+", text)) & tensors.keys():
        places = _places(tensors[name])
        if len(set(places)) < len(places):
            return True
        if places:
            lying.setdefault(tensors[name].untyped_storage().data_ptr(), []).append(places)
    twice = products and any(len(re.findall(rf"\b{name}\b", text)) > 1 for name in tensors)
    return twice or any(
        places != where[0] or (products and where[1:]) for where in lying.values() for places in where
    )


def _shares_memory(text, tensors):
    """Whether a statement makes a dual tensor of two that lie in the same memory."""
    for primal, tangent in re.findall(r"make_dual\((\w+)[^,()]*, (\w+)[^,()]*\)", text):
        given = [tensors.get(name) for name in (primal, tangent)]
        if not any(t is None or t.is_sparse for t in given):
            first, second = (t.untyped_storage().data_ptr() for t in given)
            if first == second:
                return True
    return False


def _is_repeated(text, tensors):
    """Whether a statement names the same memory twice."""
    named = [tensors[name] for name in re.findall(r"\w+", text) if name in tensors]
    places = [t.untyped_storage().data_ptr() for t in named if not t.is_sparse]
    return len(set(places)) < len(places)


def _first(error):
    return str(error).strip().splitlines()[0] if str(error).strip() else ""


def run(torch, lines):
    """What the statements did, one after the other: [statement, what is to be seen or was refused ...]."""
    told = []

    def log(name, *values):
        told.append([name, *(_told(torch, v, is_gradient=True) for v in values)])

    def f(z):
        return (z * z).sin()

    names = {"torch": torch, "copy": copy, "pickle": pickle, "log": log, "f": f, **functions(torch)}
    names |= {"F": torch.nn.functional, "fw": torch.autograd.forward_ad}
    names["checkpoint"] = torch.utils.checkpoint.checkpoint
    names["selective"] = functools.partial(
        torch.utils.checkpoint.create_selective_checkpoint_contexts,
        [torch.ops.aten.sin.default, torch.ops.aten.mm.default],
    )
    torch.default_generator.manual_seed(0)
    names["x"] = torch.tensor([[0.5, -1.0], [2.0, 0.25]], requires_grad=True)
    names["w"] = torch.tensor([[1.0, 2.0], [-0.5, 3.0]], requires_grad=True)
    names["c"] = torch.tensor([[0.1, 0.2], [0.3, 0.4]])
    names["i"], names["m"] = torch.tensor([1, 0]), torch.tensor([[True, False], [False, True]])

    def tensors():
        return {name: value for name, value in names.items() if isinstance(value, torch.Tensor)}

    def attempt(kind, made, text):
        before = {name: _memory(value) for name, value in tensors().items()} if kind == "write" else {}
        overlaps = kind == "write" and _overlap(torch, text, tensors())
        if "_foreach_" in text and _is_repeated(text, tensors()):
            told.append(["a list in one memory"])
        if "make_dual" in text and _shares_memory(text, tensors()):
            told.append(["a tangent in its own memory"])
        try:
            exec(f"{made} = {text}" if made else text, names)
        except NameError:
            told.append([text, "nothing was made before"])
        except Exception as error:
            told.append([text, type(error).__name__, _first(error)])
            changed = [name for name, memory in before.items() if _memory(names[name]) != memory]
            told.append(["refused, and changed", *changed])
        else:
            if made:
                told.append([text, _told(torch, names[made])])
            if overlaps:
                told.append(["written while it is read"])

    def block(start, depth):
        """Runs the lines from `start` on that are at least this deep; tells where it ended."""
        while start < len(lines) and lines[start][0] >= depth:
            _, kind, made, text = lines[start]
            start += 1
            if kind != "mode":
                attempt(kind, made, text)
                continue
            entered = start
            try:
                with eval(text, names):
                    start = block(start, depth + 1)
            except Exception as error:
                told.append([text, type(error).__name__, _first(error)])
                while start == entered and start < len(lines) and lines[start][0] > depth:
                    start += 1
        return start

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        block(0, 0)
        made = [name for name in ("x", "w", "c", "e", *(name for _, _, name, _ in lines)) if name in names]
        told += [[f"in the end {name}", _told(torch, names[name])] for name in made]
    # Said once in a process, of torch's own use of its compiler, or by Rushlight alone.
    passed = ("Attempted to insert a get_attr", "index_reduce() is in beta", "Default grid_sample")
    passed += ("Using backward() with create_graph", "`torch.jit", "backward hook <", "a value needed for")
    heard = {_first(w.message).split(" (Triggered")[0][:60] for w in caught}
    told.append(["warned", *sorted(words for words in heard if not words.startswith(passed))])
    return told
