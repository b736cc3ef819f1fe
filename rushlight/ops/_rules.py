"""The derivative table: how a rule written in Python becomes part of a primitive.

A rule is a plain function of tensors. Its parameter names say what it needs, and what it names is
what is saved:

    derivative("mul", a=lambda g, b: g * b, b=lambda g, a: g * a)

`g` is the gradient of the output (`g_values` that of the output `values`, `gs` the list of all); the name of
an argument is its value, `x_shape` its size only; the name of an output (`out`) is that output; `needs`, in a
joint rule, says which inputs want a gradient; `x_turned` whether torch computes the gradient of x as the
transpose of a contiguous matrix. The engine sums over broadcast dimensions and casts, so no
rule does.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight import _C
from rushlight._annotations import Any
from rushlight.ops._lacking import finally_

# primitive -> {input index, or -1 for a joint rule: (rule, what its parameters are)}; forward mode reads it
RULES: dict[str, dict[int, tuple[Callable, list[tuple[int, int]]]]] = {}
# primitive -> a formula of forward mode, where the rules are not enough (_tangents.py)
TANGENTS: dict[str, Callable] = {}
RECORDED: dict[str, Callable] = {}

_GRAD, _GRADS, _ARG, _SHAPE, _OUT, _NEEDS, _TURNED = range(7)


def _parameters(
    primitive: _C.Primitive, args: list[str], outputs: list[str], rule: Callable
) -> list[tuple[int, int]]:
    code = rule.__code__
    found = []
    for name in code.co_varnames[: code.co_argcount]:
        if name == "g" and name not in args:
            found.append((_GRAD, 0))
        elif name == "gs":
            found.append((_GRADS, 0))
        elif name == "needs":
            found.append((_NEEDS, 0))
        elif name in args:
            found.append((_ARG, args.index(name)))
        elif name in outputs:
            found.append((_OUT, outputs.index(name)))
        elif name.startswith("g_") and name[2:] in outputs:
            found.append((_GRAD, outputs.index(name[2:])))
        elif name.endswith("_shape") and name[:-6] in args:
            found.append((_SHAPE, args.index(name[:-6])))
        elif name.endswith("_turned") and name[:-7] in args:
            found.append((_TURNED, args.index(name[:-7])))
        else:
            raise TypeError(f"the derivative of {primitive.__name__} names '{name}', which is neither an "
                            f"argument "
                            f"{args} nor an output {outputs}")  # fmt: skip
    return found


# The forms of rules that the engine computes without calling Python. Of the last one only `x ** 2`, when
# nothing is recorded: what _pow_number says of all others it does not know.
_conj, _recording = _C.conj, _C.is_grad_enabled
_MODELS: tuple[Callable, ...] = (
    lambda g: g,
    lambda g: -g,
    lambda g, b: g * _conj(b),
    lambda g, b: g * (2 * _conj(b)),
    lambda g, b, s: _pow_number(g, b, s) if s != 2 or _recording() else g * (2 * _conj(b)),  # type: ignore[name-defined] # noqa: F821
)
_FORMS = {model.__code__.co_code: (number, model.__code__) for number, model in enumerate(_MODELS, 1)}
_NAMES = {model.__code__.co_names for model in _MODELS}
_MEANT = {"_conj": _conj, "_recording": _recording}


def form_of(rule: Callable, params: list[tuple[int, int]]) -> int:
    """Which of these forms a rule has, counted from 1; 0 for none of them."""
    code: Any = getattr(rule, "__code__", None)
    if code is None or code.co_argcount > 3 or code.co_names not in _NAMES:  # quickly: most rules are none
        return 0
    form, model = _FORMS.get(code.co_code, (0, code))
    if code.co_names != model.co_names or code.co_consts != model.co_consts:
        return 0
    if any(rule.__globals__.get(name) is not _MEANT[name] for name in code.co_names if name in _MEANT):
        return 0
    kinds = [kind for kind, _ in params]
    if rule.__defaults__ or rule.__closure__ or params[0] != (_GRAD, 0) or len(kinds) != model.co_argcount:
        return 0
    return form if all(kind in (_ARG, _OUT) for kind in kinds[1:]) and _OUT not in kinds[2:] else 0


def _bits(parts: list[str], names: str) -> int:
    return sum(1 << at for at, part in enumerate(parts) if part in names.split())


def derivative(
    name: str,
    joint: Callable | None = None,
    *,
    node: str | None = None,
    undefined: bool = False,
    shows: str = "",
    constant: str = "",
    final: str = "",
    packs: str = "",
    tangent: Callable | None = None,
    recorded: Callable | None = None,
    **rules: Callable,
) -> None:
    """Sets the derivative of the primitive `name`: one rule per input, or one joint rule for all of them.

    node is the name of the graph node if it is not the primitive's own (`MulBackward0` for `mul`);
    undefined=True passes None for gradients that did not arrive, instead of zeros. shows names arguments,
    shapes and outputs that torch's node keeps (as `_saved_*`) whoever needs a gradient: also tensors that no
    rule reads are packed by hooks, and a write into them is refused; constant the inputs that are no
    variables to torch; final the operation that computes the gradient in torch and has no derivative itself;
    packs the arguments and outputs that hooks on saved tensors are shown first, in torch's order; tangent and
    recorded the formulas of forward mode that do not follow from the rules (_tangents.py).
    """
    primitive = getattr(_C.ops, name)
    args, outputs = primitive.args, primitive.outputs
    table = RULES[name] = {}
    if joint is not None:
        rules = {"": joint, **rules}
    for input_name, rule in rules.items():
        index = args.index(input_name) if input_name else -1
        parameters = _parameters(primitive, args, outputs, rule)
        if final:
            rule = finally_(rule, final)
        table[index] = rule, parameters
        primitive.set_rule(index, rule, parameters, undefined, form_of(rule, parameters))
    if tangent is not None:
        TANGENTS[name] = tangent
    if recorded is not None:
        RECORDED[name] = recorded
    if node is not None:
        primitive.set_node_name(node)
    if shows or constant:
        shapes = [f"{part}_shape" for part in args]
        shown = (_bits(parts, shows) for parts in (args, shapes, outputs))
        primitive.set_shown(*shown, _bits(args, constant))
    if packs:
        places = (
            tuple(parts.index(name) for name in packs.split() if name in parts) for parts in (args, outputs)
        )
        primitive.set_packed(*places)


def unmoved(gradient: Any, x: Any, node: str) -> Any:
    """A gradient for x that does not depend on x, recorded so that its own gradient for x is zero and not
    missing: the kernels of torch's that it stands for are given x too. node names the forward's node."""
    if not (x.requires_grad and _C.is_grad_enabled()):
        return gradient
    return _C.name_node(_C.ops.copy(x, gradient), node.replace("Backward0", "BackwardBackward0"))


def no_derivative(*names: str) -> None:
    """Declares primitives whose results never carry a gradient (comparisons, indices, rounding to "
    "integers)."""
    for name in names:
        getattr(_C.ops, name).set_no_derivative()


def check_complete() -> None:
    """Raises if a primitive has neither a rule nor a declaration: a missing rule is an error, not a "
    "missing gradient."""
    missing = [name for name, primitive in vars(_C.ops).items() if not primitive.settled]
    if missing:
        raise ImportError(f"no derivative rule and no declaration for: {', '.join(sorted(missing))}")
