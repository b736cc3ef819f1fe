"""How entries of the table are written: `op` for one of its own kind, `unary`, `binary`, `reduction` ... for
those that share their samples with others."""

from typing import Any

from sampling import Input, Of, Op, Sample, call, seeded

# Domains that keep clear of poles and kinks.
POSITIVE = {"low": 0.2, "high": 3.0}
AWAY = {"low": 0.4, "high": 3.0}
INSIDE = {"low": -0.9, "high": 0.9}
DTYPE64 = Of(lambda lib: lib.float64)

OPS: dict[str, Op] = {}


def op(name: str, samples: list[Sample], **properties: Any) -> None:
    assert name not in OPS, f"{name} has two entries"
    OPS[name] = Op(name, seeded(name, samples), **properties)


def x(*shape: int, **domain: Any) -> Input:
    """A tensor of the dtype under test, drawn from -2..2 unless told otherwise."""
    return Input(shape, **domain)


def const(*shape: int, **domain: Any) -> Input:
    """The same, but not differentiated."""
    return Input(shape, grad=False, **domain)


def index(*values: int, shape: tuple[int, ...] | None = None) -> Input:
    return Input(shape or (len(values),), values=values, dtype="int64")


def mask(*values: int, shape: tuple[int, ...] | None = None) -> Input:
    return Input(shape or (len(values),), values=values, dtype="bool")


def unary(name: str, reference: Any = None, low: float = -2.0, high: float = 2.0, **properties: Any) -> None:
    avoid = properties.pop("avoid", ())
    shapes: tuple[tuple[int, ...], ...] = ((3, 4), (), (0, 3), (2, 1, 5))
    samples = [call(x(*shape, low=low, high=high, avoid=avoid)) for shape in shapes]
    op(name, samples + properties.pop("more", []), reference=reference, **properties)


def binary(
    name: str, reference: Any = None, *, scalars: tuple[Any, ...] = (2, 1.5), **properties: Any
) -> None:
    """Same shapes, broadcast ones, zero-dimensional and empty ones, and numbers on the right."""
    left, right = properties.pop("left", {}), properties.pop("right", {})
    shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((3, 4), (3, 4)),
        ((3, 1), (4,)),
        ((4,), (2, 3, 4)),
        ((), (2, 3)),
        ((3,), ()),
        ((), ()),
        ((0, 3), (1, 3)),
        ((1, 3), (0, 1)),
    ]
    samples = [call(x(*a, **left), x(*b, **right)) for a, b in shapes]
    samples += [call(x(2, 3, **left), scalar) for scalar in scalars]
    op(name, samples + properties.pop("more", []), reference=reference, **properties)


def comparison(name: str, reference: Any, **properties: Any) -> None:
    few = {"low": -2.4, "high": 2.4}
    ties = [call(index(1, 2, 3), index(3, 2, 1)), call(x(3), index(0, 1, 2))]
    properties = {"grad": "", "inplace": True} | properties
    binary(name, reference, left=few, right=few, more=ties, **properties)


def reduction(
    name: str, *, dims: bool = True, more: Any = (), distinct: bool = False, **properties: Any
) -> None:
    """Over everything, over one dimension, several, none; kept or not; empty and zero-dimensional."""
    domain = properties.pop("domain", {}) | ({"distinct": True} if distinct else {})
    samples = [
        call(x(3, 4, **domain)),
        call(x(**domain)),
        call(x(3, 4, **domain), 0),
        call(x(3, 4, **domain), -1, keepdim=True),
        call(x(2, 3, 2, **domain), dim=1),
        call(x(**domain), 0),
        call(x(2, 1, 3, **domain), 1),
        call(x(0, 3, **domain), 1),
    ]
    if dims:
        samples += [
            call(x(2, 3, 2, **domain), (0, 2)),
            call(x(2, 3, 2, **domain), dim=(-1, 0), keepdim=True),
            call(x(2, 3, **domain), dim=[]),
        ]
    op(name, samples + list(more), **properties)


def mutating(name: str, samples: list[Sample], **properties: Any) -> None:
    """A method that only exists in place: it runs on a copy, which is the result."""

    def run(lib: Any) -> Any:
        def function(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            copy = tensor.clone()
            getattr(copy, name.removeprefix("Tensor."))(*args, **kwargs)
            return copy

        return function

    op(name, samples, run=run, **properties)
