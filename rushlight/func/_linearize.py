"""`linearize`: the derivative of a function at a point, computed as often as one likes without the function.

While the function runs, once, its tangents are tensors of a level below that of the derivative (`TAPE`).
Whatever primitive is computed of one is written down, with what else it reads: the numbers that the function
came by, random ones too, are in what it reads. To push tangents through is to call those primitives again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import _C
from rushlight.func._derivatives import _carrying, _fitting
from rushlight.func._levels import TANGENTS, Tensor, level, tree_flatten, tree_unflatten
from rushlight.func._tensor import TAPE
from rushlight.ops._examples import writable

_COPY = _C.ops.clone


class _Place(int):
    """Where a tensor that depends on the tangents is, when the steps are taken again."""


class _Tape:
    """The steps from the tangents of the arguments to those of the results."""

    def __init__(self) -> None:
        self.steps: list[tuple[Any, list, bool]] = []
        self.count = 0
        self.writes = False  # whether any step does
        self.places: dict[int, _Place] = {}  # of a value, by its id
        self.alive: list[Tensor] = []  # so that each id is of one
        self.read: dict[int, list[tuple[list, int]]] = {}  # where steps hold what lies in a storage

    def enter(self, value: Tensor) -> _Place:
        place = self.places[id(value)] = _Place(self.count)
        self.alive.append(value)
        self.count += 1
        return place

    def reference(self, value: Any) -> Any:
        """What stands for an argument of a step."""
        if isinstance(value, (tuple, list)):
            return [self.reference(part) for part in value]
        return self.places.get(id(value), value) if isinstance(value, Tensor) else value

    def watch(self, given: list) -> None:
        """Remembers where the tensors are that a step reads."""
        for at, value in enumerate(given):
            if isinstance(value, list):
                self.watch(value)
            elif isinstance(value, Tensor):
                self.read.setdefault(_storage(value), []).append((given, at))

    def before_write(self, written: Tensor) -> None:
        """Copies what steps read of memory that is about to change."""
        for given, at in self.read.pop(_storage(written), ()):
            given[at] = given[at].clone()

    def take(self, tangents: list) -> list:
        """The steps again; what is in every place then."""
        values = [tangent.clone() for tangent in tangents] if self.writes else list(tangents)
        for op, given, in_place in self.steps:
            args = tuple(_filled(part, values) for part in given)
            made = _C.in_place(op, *args) if in_place else op(*args)
            if op is _COPY and not isinstance(given[0], _Place):
                made = writable(made, *tangents)
            if not in_place:
                values.extend(made) if isinstance(made, (tuple, list)) else values.append(made)
        return values


def _filled(given: Any, values: list) -> Any:
    if isinstance(given, _Place):
        return values[given]
    return tuple(_filled(part, values) for part in given) if isinstance(given, list) else given


def _storage(tensor: Any) -> int:
    while _C.is_leveled(tensor):
        tensor = tensor.value
    return _C.storage_id(tensor)


_tapes: dict[int, _Tape] = {}  # by the number of their level


def record(number: int, op: Any, values: tuple, in_place: bool) -> Any:
    """Computes a primitive of tangents and writes it down; called by the native code, below the level."""
    tape = _tapes[number]
    if (in_place or op.is_view) and id(values[0]) not in tape.places:  # what is made for every tangent anew
        tape.before_write(values[0])
        tape.steps.append((_COPY, [values[0].clone()], False))
        tape.enter(values[0])
    given = tape.reference(values)
    tape.watch(given)
    made = _C.in_place(op, *values) if in_place else op(*values)
    tape.steps.append((op, given, in_place))
    tape.writes |= in_place
    if not in_place:
        for value in made if isinstance(made, (tuple, list)) else (made,):
            tape.enter(value)
    return made


def before_write(number: int, written: Tensor) -> None:
    """Called by the native code before an operation in place."""
    _C.below_level(number, _tapes[number].before_write, written)


def linearize(func: Callable, *primals: Any) -> tuple:
    """The value of a function, and the linear function of tangents that touches it there, which does not call
    the function again.

    >>> value, push = torch.func.linearize(torch.sin, torch.tensor(0.0))
    >>> value, push(torch.tensor(2.0))
    (tensor(0.), tensor(2.))
    """
    flat, spec = tree_flatten(primals)
    for primal in flat:
        if not isinstance(primal, Tensor):
            raise RuntimeError(f"linearize: expected primals to contain only tensors, got {type(primal)}")
    tape = _Tape()
    results: list[Any] = []  # a place, a tensor whose tangent is zero, or what is no tensor
    with level(TAPE) as below:
        _tapes[below] = tape
        try:
            with level(TANGENTS) as number, _carrying():
                along = [_C.below_level(below, _ones_of, primal) for primal in flat]
                for tangent in along:  # before any step is taken: they are what `push` is given
                    tape.enter(tangent)
                duals = [_dual(*pair, number, below) for pair in zip(flat, along, strict=True)]
                outs, out_spec = tree_flatten(func(*tree_unflatten(duals, spec)))
                for out in outs:
                    known = _C.is_leveled(out) and out.level == number
                    tangent = _C.tangent(out) if known else None
                    value = _C.lower_from_level(tangent, number) if tangent is not None else None
                    value = _C.lower_from_level(value, below) if value is not None else None
                    results.append((_C.lower_from_level(out, number), tape.reference(value)))
        finally:
            del _tapes[below]
    tape.places, tape.alive, tape.read = {}, [], {}
    value = tree_unflatten([out for out, _ in results], out_spec)
    about = [(primal.shape, primal.dtype) for primal in flat]

    def push(*tangents: Any) -> Any:
        given, given_spec = tree_flatten(tangents)
        if given_spec != spec:
            raise RuntimeError(
                f"Expected the tangents {given_spec} to have the same argspec as the primals {spec}"
            )
        for at, (wanted, tangent) in enumerate(zip(about, given, strict=True)):
            for kind, of_primal in zip(("shape", "dtype"), wanted, strict=True):
                if of_primal != getattr(tangent, kind):
                    raise RuntimeError(
                        f"tangent:{at} with {kind} {getattr(tangent, kind)} in flattened pytree doesn't "
                        f"match the {kind} {of_primal} of the corresponding primal."
                    )
        values = tape.take(given)
        return tree_unflatten([_tangent_of(out, values, place) for out, place in results], out_spec)

    return value, push


def _ones_of(primal: Tensor) -> Tensor:
    return primal.new_ones(primal.shape)


def _dual(primal: Tensor, tangent: Tensor, number: int, below: int) -> Tensor:
    """An argument at the level of the derivative, whose tangent is on the tape."""

    def fitting() -> Tensor:
        return _fitting(primal, _C.raise_to_level(tangent, below, False))

    dual = _C.raise_to_level(primal, number, False)
    _C.set_tangent(dual, _C.raise_to_level(_C.below_level(number, fitting), number, False))
    return dual


def _tangent_of(out: Any, values: list, place: Any) -> Any:
    if not isinstance(out, Tensor):
        return out
    if place is None:
        return out.new_zeros(out.shape)
    return values[place] if isinstance(place, _Place) else place.clone()
