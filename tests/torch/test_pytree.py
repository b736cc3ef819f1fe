"""Nests of containers: leaves, shapes as text, registered types and the refusals of unequal shapes."""

import collections
import dataclasses
import enum
import warnings

import pytest
from outcomes import err

import rushlight
import rushlight.utils._pytree as ours

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("torch.utils._pytree")

Point = collections.namedtuple("Point", "x y")
Other = collections.namedtuple("Other", "x y")


class Colour(enum.Enum):
    RED = 1


NESTS = [
    [1, (2, {"a": 3})], Point(1, 2), collections.OrderedDict(b=1, a=2), collections.defaultdict(int, a=1),
    collections.deque([1], maxlen=3), {Colour.RED: 1}, {"b": 1, "a": [None]}, 5, [], (), {},
]  # fmt: skip


@pytest.mark.parametrize("nest", NESTS, ids=repr)
def test_shapes(nest):
    def run(p):
        leaves, spec = p.tree_flatten(nest)
        told = [leaves, str(spec), spec.num_nodes, p.treespec_pprint(spec), err(p.treespec_dumps, spec)]
        told += [str(p.tree_flatten_with_path(nest)), p.tree_unflatten(leaves, spec) == nest]
        if type(nest) is not Point:
            told.append(p.treespec_loads(p.treespec_dumps(spec)) == spec)
        return told

    assert run(ours) == run(theirs)


UNEQUAL = [
    ({"a": [1, 2], "b": 3}, {"a": [1, 2]}), ({"a": 1}, {"b": 1}), ({"a": [1, 2]}, {"a": [1]}), ([1], (1,)),
    ([1], 5),
    ({"a": 1, "b": 2}, collections.OrderedDict(b=2, a=1)), (Point(1, 2), Other(1, 2)),
    (collections.deque([1, 2], maxlen=5), collections.deque([1, 2])),
    (collections.defaultdict(int, a=1), {"a": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "nest"), UNEQUAL, ids=repr)
def test_flatten_up_to(shape, nest):
    assert err(ours.tree_structure(shape).flatten_up_to, nest) == err(
        theirs.tree_structure(shape).flatten_up_to, nest
    )


def test_registered_types():
    def run(p):
        @dataclasses.dataclass
        class Pair:
            a: int
            b: int | None = None
            c: int = dataclasses.field(default=3, init=False)

        class Value:
            def __init__(self, v):
                self.v = v

            def __eq__(self, other):
                return self.v == other.v

            def __hash__(self):
                return 1

            def __repr__(self):
                return f"Value({self.v})"

        class Plain:
            pass

        class Named:
            pass

        told = [err(p.register_dataclass, Pair, field_names=["a"]), err(p.register_dataclass, Plain)]
        p.register_dataclass(Pair, serialized_type_name="Pair")
        p.register_constant(Value)
        told += [str(p.tree_flatten(Pair(1))), str(p.tree_flatten(Pair(1, 2)))]
        told += [
            str(p.tree_unflatten([5], p.tree_structure(Pair(1)))),
            p.treespec_dumps(p.tree_structure(Pair(1))),
        ]
        told += [
            str(p.tree_flatten([Value(3), 1])),
            p.is_constant_class(Value),
            err(p.register_constant, Plain),
        ]
        told.append(err(p.tree_structure(Value(3)).flatten_up_to, Value(4)).replace(__name__, ""))
        flatten, build = (lambda x: ([1], {7})), (lambda values, context: Named())
        told.append(
            err(p.register_pytree_node, Plain, flatten, build, to_dumpable_context=list).partition("<")[0]
        )
        p.register_pytree_node(Named, flatten, build, serialized_type_name=f"Named{p.__name__}")
        told += [
            err(p.treespec_dumps, p.tree_structure(Named())),
            err(p.register_pytree_node, Named, flatten, build),
        ]
        for kind in (Pair, Value, Named):
            p._deregister_pytree_node(kind)
        return [str(each).replace(p.__name__, "") for each in told]

    assert run(ours) == run(theirs)


def test_what_operations_return_is_a_node():
    def run(library, p):
        found = library.max(library.tensor([[1, 3]]), 1)
        leaves, spec = p.tree_flatten(found)
        return [leaf.tolist() for leaf in leaves], str(spec), str(p.tree_map(lambda t: t + 1, found))

    assert run(rushlight, ours) == run(torch, theirs)


def test_texts_and_refusals():
    def run(p):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [
                err(p.treespec_dumps, 3), err(p.treespec_loads, "[99, {}]"), err(p.tree_unflatten, [1], 3),
                err(p.treespec_dumps, p.tree_structure([1]), 5), err(p.map_only, 3),
                err(p.treespec_loads, '[1, {"type": "zork", "context": "null", "children_spec": []}]'),
                str(p.treespec_tuple([p.tree_structure(1)])),
                str(p.treespec_dict({"a": p.tree_structure(1)})),
                err(p.treespec_tuple, [1]), p.pytree_to_str(p.tree_structure([1])), p._is_leaf([1]),
                p.is_namedtuple(Point), p.is_structseq(1), p.tree_map_only(int | str, str, [1, 2.5]),
            ]  # fmt: skip

    assert run(ours) == run(theirs)
