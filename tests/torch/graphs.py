"""Drawing the graph behind a tensor, in either library, and telling where two drawings differ."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from opdb import array_of, numpy_of, value_differences

import rushlight

# Vectors that are determined up to a factor of modulus one.
UP_TO_A_FACTOR = ("_saved_eigenvectors", "_saved_U", "_saved_Vh")


def saved(node: Any) -> dict[str, Any]:
    """What a node shows of what it saved, by the names that dir() tells."""
    names = [name for name in dir(node) if name.startswith(("_saved_", "_raw_saved_"))]
    return {name: attribute(node, name) for name in names}


def attribute(node: Any, name: str) -> Any:
    try:
        return getattr(node, name)
    except (RuntimeError, LookupError) as error:  # freed, or a value that torch cannot show
        return f"{type(error).__name__}: {str(error).split('.')[0]}"


class Drawing:
    """The nodes of a graph in the order of a walk along `next_functions`; equal nodes are met once."""

    def __init__(self, leaves: list[Any]) -> None:
        self.leaves = leaves
        self.nodes: list[tuple[str, dict[str, Any], list[Any]]] = []
        self.numbers: dict[Any, int] = {}

    def add(self, node: Any) -> int | None:
        if node is None:
            return None
        if node in self.numbers:
            return self.numbers[node]
        number = self.numbers[node] = len(self.nodes)
        edges: list[Any] = []
        variable = getattr(node, "variable", None)
        shown = {} if variable is not None else saved(node)
        if variable is not None:
            edges.append(next((n for n, leaf in enumerate(self.leaves) if leaf is variable), "no leaf"))
        self.nodes.append((node.name(), shown, edges))
        for after, nr in node.next_functions:
            edges.append((self.add(after), nr))
        return number


def value_difference(mine: Any, theirs: Any) -> str | None:
    """What distinguishes two saved values."""
    if isinstance(theirs, torch.Tensor):
        if not isinstance(mine, rushlight.Tensor):
            return f"{type(mine).__name__} instead of a tensor"
        if tuple(mine.shape) != tuple(theirs.shape) or str(mine.dtype) != str(theirs.dtype):
            return f"{mine.dtype}{list(mine.shape)}, torch {theirs.dtype}{list(theirs.shape)}"
        return next(value_differences(array_of(mine), numpy_of(theirs), str(theirs.dtype)[6:]), None)
    if isinstance(theirs, (tuple, list)):
        if type(mine) is not type(theirs) or len(mine) != len(theirs):
            return f"{mine}, torch {theirs}"
        return next(filter(None, map(value_difference, mine, theirs)), None)
    if isinstance(theirs, (float, complex)) and type(mine) is type(theirs):
        return None if np.isclose(mine, theirs, equal_nan=True) else f"{mine}, torch {theirs}"
    if type(mine).__name__ != type(theirs).__name__:
        return f"{type(mine).__name__} {mine}, torch {type(theirs).__name__} {theirs}"
    if type(theirs).__name__ == "SavedTensor":
        return None
    return None if str(mine).replace("rushlight.", "torch.") == str(theirs) else f"{mine}, torch {theirs}"


def differences(mine: Drawing, theirs: Drawing) -> Iterator[tuple[str, str]]:
    """The kinds of differences and what they are, up to where the graphs part."""
    for number, (ours, there) in enumerate(zip(mine.nodes, theirs.nodes)):
        place = f"{there[0]}#{number}"
        at = "last" if number == 0 else "inner"
        if ours[0] != there[0]:
            yield f"{at} name", f"{place}: {ours[0]}"
            return
        missing, more = sorted(there[1].keys() - ours[1].keys()), sorted(ours[1].keys() - there[1].keys())
        for name in there[1]:
            unwritten = name.endswith("_saved_noise") and not there[1].get("_saved_training")
            if name.endswith(UP_TO_A_FACTOR) or unwritten:
                continue
            if name in ours[1] and (found := value_difference(ours[1][name], there[1][name])):
                yield f"{at} saved", f"{place}.{name}: {found}"
        if missing or more:
            yield f"{at} saved", f"{place}: lacks {missing}, has {more}"
        if ours[2] != there[2]:
            yield "edges", f"{place}: {ours[2]}, torch {there[2]}"
            return
    if len(mine.nodes) != len(theirs.nodes):
        yield "edges", f"{len(mine.nodes)} nodes, torch {len(theirs.nodes)}"
