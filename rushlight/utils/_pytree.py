"""Nested containers as trees: flatten to a list of leaves, map over the leaves, and build the nest again.

    >>> leaves, spec = tree_flatten({"a": [1, 2], "b": (3,)})
    >>> leaves
    [1, 2, 3]
    >>> tree_unflatten([x * 10 for x in leaves], spec)
    {'a': [10, 20], 'b': (30,)}

Tuples, lists, dicts, named tuples, ordered and default dicts, deques and what operations return with names
are nodes; everything else, None included, is a leaf. `register_pytree_node` adds a type, `register_dataclass`
a dataclass, `register_constant` a type whose values are part of the shape. `_pytree_text` writes shapes .
"""

from __future__ import annotations

import dataclasses
import importlib
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import UnionType
from typing import Any, NamedTuple

from rushlight import _C
from rushlight._size import Size

PyTree = Any
Context = Any
IsLeaf = Callable[[Any], bool] | None


class NodeDef(NamedTuple):
    """How a container type is taken apart and put together."""

    type: type
    flatten_fn: Callable[[Any], tuple[list, Context]]
    unflatten_fn: Callable[[Iterable, Context], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list, Context]] | None


@dataclass(frozen=True)
class SequenceKey:
    """A step of a path into a tuple or list: `[0]`."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """A step of a path into a dict: `['a']`."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """A step of a path into an object: `.name`."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


KeyEntry = Any
KeyPath = tuple
SUPPORTED_NODES: dict[Any, NodeDef] = {}
NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"
# How shapes with these nodes are written: the type's name, and the context to and from what JSON has.
SUPPORTED_SERIALIZED_TYPES: dict[Any, _SerializeNodeDef] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
CONSTANT_NODES: set[type] = set()
STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})
BUILTIN_TYPES = frozenset({tuple, list, namedtuple, deque, *STANDARD_DICT_TYPES})


class _SerializeNodeDef(NamedTuple):
    typ: Any
    serialized_type_name: str
    to_dumpable_context: Callable | None
    from_dumpable_context: Callable | None


def register_pytree_node(
    cls: type,
    flatten_fn: Callable,
    unflatten_fn: Callable,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable | None = None,
    from_dumpable_context: Callable | None = None,
    flatten_with_keys_fn: Callable | None = None,
) -> None:
    """Makes `cls` a node: flatten_fn(x) gives (children, context), and unflatten_fn makes x of them again."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered."
        )
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    name = serialized_type_name or NO_SERIALIZED_TYPE_NAME_FOUND
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(cls, name, to_dumpable_context, from_dumpable_context)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


_private_register_pytree_node = register_pytree_node


def _register_pytree_node(
    cls: type, flatten_fn: Callable, unflatten_fn: Callable, *rest: Any, **more: Any
) -> None:
    """The old name of `register_pytree_node`."""
    warnings.warn(
        "`torch.utils._pytree._register_pytree_node` is deprecated. "
        "Please use `torch.utils._pytree.register_pytree_node` instead.",
        FutureWarning,
        stacklevel=2,
    )
    register_pytree_node(cls, flatten_fn, unflatten_fn, **more)


def _deregister_pytree_node(cls: type) -> None:
    known = SUPPORTED_SERIALIZED_TYPES.pop(cls)
    del SUPPORTED_NODES[cls]
    SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(known.serialized_type_name, None)
    CONSTANT_NODES.discard(cls)


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Makes a dataclass a node whose children are its fields; fields that are None are left out."""
    dropped = set(drop_field_names or ())
    if not dataclasses.is_dataclass(cls):
        if field_names is None:
            raise ValueError(
                "field_names must be specified with a list of all fields used to "
                f"initialize {cls}, as it is not a dataclass."
            )
    elif field_names is None:
        field_names = [f.name for f in dataclasses.fields(cls) if f.init and f.name not in dropped]
    else:
        fields = {f.name for f in dataclasses.fields(cls) if f.init} - dropped
        named = set(field_names)
        for missing, head, tail in (
            (fields - named, "Missing fields in `field_names`", "want to include these fields in the pytree, "
             "please add them to `field_names`, otherwise please add them to `drop_field_names`."),
            (named - fields, "Unexpected fields in `field_names`", "want these fields in the pytree, "
             "they must be fields of the dataclass that its constructor takes."),
        ):  # fmt: skip
            if missing:
                raise ValueError(
                    f"field_names does not include all dataclass fields.\n{head}: {missing}. If you {tail}\n"
                )

    def split(x: Any) -> tuple[list[tuple[str, Any]], Context]:
        held = [(name, getattr(x, name)) for name in field_names]
        there = [(name, value) for name, value in held if value is not None]
        return there, [[name for name, _ in there], [name for name, value in held if value is None]]

    def flatten(x: Any) -> tuple[list, Context]:
        held, context = split(x)
        return [value for _, value in held], context

    def with_keys(x: Any) -> tuple[list, Context]:
        held, context = split(x)
        return [(GetAttrKey(name), value) for name, value in held], context

    def unflatten(values: Iterable, context: Context) -> Any:
        return cls(**dict(zip(context[0], values, strict=True)), **dict.fromkeys(context[1]))

    if cls in SUPPORTED_NODES:
        _deregister_pytree_node(cls)
    register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=with_keys
    )


@dataclass(frozen=True)
class ConstantNode:
    """The context of a constant: the value itself."""

    value: Any


def register_constant(cls: type) -> None:
    """Makes values of `cls` part of a nest's shape: nodes without children, compared by ==."""
    if cls.__eq__ is object.__eq__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__eq__` implementation.")
    if cls.__hash__ in (None, object.__hash__):
        raise TypeError(
            "register_constant(cls) expects `cls` to have a non-default `__hash__` implementation."
        )
    if cls not in SUPPORTED_NODES:
        register_pytree_node(
            cls,
            lambda x: ([], ConstantNode(x)),
            lambda _, context: context.value,
            flatten_with_keys_fn=lambda x: ([], ConstantNode(x)),
        )
        CONSTANT_NODES.add(cls)


def is_constant_class(cls: type) -> bool:
    """Whether `register_constant` was called for `cls`."""
    return cls in CONSTANT_NODES


def _is_constant_holder(spec: TreeSpec) -> bool:
    return isinstance(spec.context, ConstantNode)


def _retrieve_constant(spec: TreeSpec) -> Any:
    return spec.context.value


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Gives a named tuple the name under which shapes that have it are written."""
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(cls, serialized_type_name, None, None)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[serialized_type_name] = cls


def _mapping_with_keys(d: Any) -> tuple[list, Context]:
    values, context = SUPPORTED_NODES[type(d)].flatten_fn(d)
    return [(MappingKey(k), v) for k, v in zip(d, values, strict=True)], context


def _sequence_with_keys(s: Any) -> tuple[list, Context]:
    values, context = SUPPORTED_NODES[_get_node_type(s)].flatten_fn(s)
    return [(SequenceKey(i), v) for i, v in enumerate(values)], context


def _dict_flatten(d: dict) -> tuple[list, Context]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable, context: Context) -> dict:
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: dict) -> tuple[list, Context]:
    return [(MappingKey(k), v) for k, v in d.items()], list(d)


def _list_flatten(d: list) -> tuple[list, Context]:
    return d, None


def _list_flatten_with_keys(d: list) -> tuple[list, Context]:
    return [(SequenceKey(i), v) for i, v in enumerate(d)], None


def _list_unflatten(values: Iterable, context: Context) -> list:
    return list(values)


def _namedtuple_to_text(kind: type) -> str:
    known = SUPPORTED_SERIALIZED_TYPES.get(kind)
    if known is None:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {kind} because we didn't register a "
            "serializated_type_name. Please register using `_register_namedtuple`."
        )
    return known.serialized_type_name


def _namedtuple_from_text(name: str) -> type:
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {name} because we couldn't find a "
            "serializated name."
        )
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[name]


def _defaultdict_to_text(context: Context) -> dict:
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def _defaultdict_from_text(context: Any) -> Context:
    factory: Any = importlib.import_module(context["default_factory_module"])
    for part in context["default_factory_name"].split("."):
        factory = getattr(factory, part)
    return [factory, context["dict_context"]]


_sequences = (
    (tuple, lambda x: (list(x), None), lambda v, _: tuple(v), "builtins.tuple"),
    (deque, lambda x: (list(x), x.maxlen), lambda v, maxlen: deque(v, maxlen=maxlen), "collections.deque"),
    (Size, lambda x: (list(x), None), lambda v, _: Size(v), "torch.Size"),
)
for _kind, _flat, _whole, _name in _sequences:
    register_pytree_node(
        _kind, _flat, _whole, serialized_type_name=_name, flatten_with_keys_fn=_sequence_with_keys
    )
register_pytree_node(
    list, _list_flatten, _list_unflatten,
    serialized_type_name="builtins.list", flatten_with_keys_fn=_list_flatten_with_keys,
)  # fmt: skip
register_pytree_node(
    dict, _dict_flatten, _dict_unflatten,
    serialized_type_name="builtins.dict", flatten_with_keys_fn=_dict_flatten_with_keys,
)  # fmt: skip
register_pytree_node(
    OrderedDict,
    lambda d: (list(d.values()), list(d)),
    lambda v, keys: OrderedDict(zip(keys, v, strict=True)),
    serialized_type_name="collections.OrderedDict",
    flatten_with_keys_fn=_mapping_with_keys,
)
register_pytree_node(
    defaultdict,
    lambda d: (list(d.values()), [d.default_factory, list(d)]),
    lambda v, context: defaultdict(context[0], zip(context[1], v, strict=True)),
    serialized_type_name="collections.defaultdict",
    to_dumpable_context=_defaultdict_to_text,
    from_dumpable_context=_defaultdict_from_text,
    flatten_with_keys_fn=_mapping_with_keys,
)
register_pytree_node(
    namedtuple,  # type: ignore[arg-type]  # stands in the table for every named tuple
    lambda x: (list(x), type(x)),
    lambda v, kind: kind(*v),
    serialized_type_name="collections.namedtuple",
    to_dumpable_context=_namedtuple_to_text,
    from_dumpable_context=_namedtuple_from_text,
    flatten_with_keys_fn=lambda x: (
        [(GetAttrKey(name), v) for name, v in zip(x._fields, x, strict=True)],
        type(x),
    ),
)

# Libraries import the functions by names.
for _name, _type in (
    ("tuple", tuple),
    ("deque", deque),
    ("odict", OrderedDict),
    ("ordereddict", OrderedDict),
    ("defaultdict", defaultdict),
    ("namedtuple", namedtuple),
):
    _node = SUPPORTED_NODES[_type]
    globals()[f"_{_name}_flatten"], globals()[f"_{_name}_unflatten"] = _node.flatten_fn, _node.unflatten_fn


def _get_node_type(tree: Any) -> Any:
    kind = type(tree)
    if kind not in SUPPORTED_NODES and issubclass(kind, tuple):
        if is_namedtuple_class(kind):
            return namedtuple
        if kind.__module__.endswith("return_types"):  # what operations return
            register_pytree_node(
                kind,
                lambda x: (list(x), None),
                lambda v, _: kind(v),
                flatten_with_keys_fn=_sequence_with_keys,
            )
    return kind


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether `tree` is a leaf."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


class TreeSpec:
    """The shape of a nest: the container's type, what else rebuilds it, and the shapes of its children."""

    def __init__(
        self, type: Any, context: Context = None, children_specs: list[TreeSpec] | None = None
    ) -> None:
        self.type, self.context = type, context
        self._children = children_specs or []
        leaf = type is None
        self.num_leaves: int = 1 if leaf else sum(spec.num_leaves for spec in self._children)
        self.num_nodes: int = 1 + sum(spec.num_nodes for spec in self._children)
        self.num_children = len(self._children)

    @property
    def children_specs(self) -> list[TreeSpec]:
        return self._children

    def children(self) -> list[TreeSpec]:
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        return self._children[index]

    def is_leaf(self) -> bool:
        return self.type is None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self.type, self.context, self._children) == (other.type, other.context, other._children)

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, tuple(map(hash, self._children))))

    def __repr__(self, indent: int = 0) -> str:
        if self.is_leaf():
            return "*"
        kind = self.type.__name__
        inner = (",\n" + " " * (indent + 2)).join(spec.__repr__(indent + 2) for spec in self._children)
        return f"TreeSpec({kind}, {self.context}, [{inner}])"

    def flatten_up_to(self, tree: PyTree) -> list:
        """The subtrees of `tree` where this spec has its leaves; ValueError if it does not reach that far."""
        if self.is_leaf():
            return [tree]
        dicts = self.type in STANDARD_DICT_TYPES and type(tree) in STANDARD_DICT_TYPES
        if _get_node_type(tree) != self.type and not dicts:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        children, context = SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)
        children = list(children)
        if len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children!r}, but got {len(children)!r}."
            )
        if self.type in STANDARD_DICT_TYPES:
            missing, extra = set(self._keys()) - set(tree), set(tree) - set(self._keys())
            if missing or extra:
                text = f"; missing key(s): {missing}" if missing else ""
                text += f"; extra key(s): {extra}" if extra else ""
                raise ValueError(f"Node keys mismatch{text}.")
            children = [tree[key] for key in self._keys()]
        elif context != self.context and self.type is not deque:  # another maximal length is no other shape
            if self.type not in BUILTIN_TYPES:
                raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
            raise ValueError(
                f"Node context mismatch for node type {self.type!r}; "
                f"expected {self.context!r}, but got {context!r}."
            )
        return [leaf for spec, child in zip(self._children, children, strict=True)
                for leaf in spec.flatten_up_to(child)]  # fmt: skip

    def _keys(self) -> list:
        return self.context[1] if self.type is defaultdict else self.context

    def unflatten(self, leaves: Iterable) -> PyTree:
        """The nest of this shape with these leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a "
                f"pytree that holds {self.num_leaves} items ({self})."
            )
        if self.type is None:
            return leaves[0]
        if self.num_children == self.num_leaves == self.num_nodes - 1:
            return SUPPORTED_NODES[self.type].unflatten_fn(leaves, self.context)
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator) -> PyTree:
        if self.type is None:
            return next(leaves)
        if self.num_children == self.num_leaves == self.num_nodes - 1:
            children = list(islice(leaves, self.num_children))
        else:
            children = [spec._build(leaves) for spec in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)


class LeafSpec(TreeSpec):
    """The shape of a leaf."""

    def __init__(self) -> None:
        super().__init__(None)


PyTreeSpec = TreeSpec
_LEAF_SPEC = LeafSpec()


# Of tuples and of lists of so many leaves, of dicts of leaves by their keys; and what is known of the types.
_FLAT_SPECS: tuple[dict, dict, dict] = ({}, {}, {})
_PLAIN_NODES = (SUPPORTED_NODES[tuple], SUPPORTED_NODES[list], SUPPORTED_NODES[dict])
_MOST_SPECS = 256
_flatten_plainly = _C.flatten_plainly


def _flatten(tree: PyTree, leaves: list, is_leaf: IsLeaf) -> TreeSpec:
    if is_leaf is None:  # most are flat
        found = _flatten_plainly(tree, SUPPORTED_NODES, _FLAT_SPECS, _LEAF_SPEC, _PLAIN_NODES)
        if found is not None:
            leaves += found[0]
            return found[1]
    kind = type(tree)
    node = None if is_leaf is not None and is_leaf(tree) else SUPPORTED_NODES.get(kind)
    if node is None:
        if not issubclass(kind, tuple) or tree_is_leaf(tree, is_leaf):
            leaves.append(tree)
            return _LEAF_SPEC
        kind = _get_node_type(tree)
        node = SUPPORTED_NODES[kind]
    children, context = node.flatten_fn(tree)
    spec = TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])
    if node in _PLAIN_NODES and spec.num_children == spec.num_leaves == spec.num_nodes - 1:
        known = _FLAT_SPECS[_PLAIN_NODES.index(node)]
        key = tuple(context) if kind is dict else spec.num_children
        if len(known) < _MOST_SPECS and (kind is not dict or all(type(each) is str for each in context)):
            return known.setdefault(key, spec)
    return spec


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list, TreeSpec]:
    """(leaves, shape) of a nest."""
    if is_leaf is None:
        found = _flatten_plainly(tree, SUPPORTED_NODES, _FLAT_SPECS, _LEAF_SPEC, _PLAIN_NODES)
        if found is not None:
            return found
    leaves: list = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _refuse_spec(treespec: Any) -> None:
    raise TypeError(
        f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}."
    )


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> PyTree:
    """The nest of the given shape with these leaves."""
    given: Any = treespec
    if given is _LEAF_SPEC and leaves.__class__ is list and len(leaves) == 1:
        return leaves[0]
    if not isinstance(given, TreeSpec):
        _refuse_spec(given)
    return treespec.unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator:
    """The leaves, one by one."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
    else:
        for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
            yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list:
    """The list of leaves."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The shape of a nest."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """The nest of func(leaf, ...); further trees have the shape of the first, or go deeper."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def tree_map_(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Calls func on every leaf for its effect; returns the tree itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    deque(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)), maxlen=0)
    return tree


def _matches(kinds: Any) -> Callable[[Any], bool]:
    if callable(kinds) and not isinstance(kinds, type):
        return kinds
    if not isinstance(kinds, (type, tuple, UnionType)):
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")
    return lambda x: isinstance(x, kinds)


def map_only(kinds: Any, /) -> Callable[[Callable], Callable]:
    """Makes a function apply to values of these types only; others pass unchanged."""
    wanted = _matches(kinds)
    return lambda func: lambda x: func(x) if wanted(x) else x


def tree_map_only(kinds: Any, /, func: Callable, tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """`tree_map` that leaves other leaves than those of the given types as they are."""
    return tree_map(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_map_only_(kinds: Any, /, func: Callable, tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """`tree_map_only` for its effect; returns the tree itself."""
    return tree_map_(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether pred holds for every leaf."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether pred holds for a leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(kinds: Any, /, pred: Callable, tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether pred holds for every leaf of the given types."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, kinds))


def tree_any_only(kinds: Any, /, pred: Callable, tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether pred holds for a leaf of the given types."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, kinds))


def _with_paths(tree: PyTree, path: KeyPath, is_leaf: IsLeaf) -> Iterator:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[_get_node_type(tree)]
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node.type}. Please pass a flatten_with_keys_fn "
            "argument to register_pytree_node."
        )
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _with_paths(child, (*path, key), is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list:
    """The leaves, each with the keys that lead to it."""
    return list(_with_paths(tree, (), is_leaf))


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list, TreeSpec]:
    """([(path, leaf), ...], shape)"""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """`tree_map` whose function gets the path first."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(func(path, leaf, *more) for (path, leaf), *more in zip(pairs, *others, strict=True))


def keystr(kp: KeyPath) -> str:
    """A path as text: `['a'][0].name`."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What a path leads to."""
    for key in kp:
        obj = key.get(obj)
    return obj


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list:
    """The leaves of all arguments of a call."""
    return tree_leaves((args, kwargs))


def treespec_leaf() -> LeafSpec:
    """The shape of a leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The shape of a tuple whose items have these shapes."""
    children = list(iterable)
    if not all(isinstance(child, TreeSpec) for child in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(
    mapping: Mapping[Any, TreeSpec] | Iterable[tuple[Any, TreeSpec]] = (), /, **kwargs: TreeSpec
) -> TreeSpec:
    """The shape of a dict whose values have these shapes."""
    held = dict(mapping, **kwargs)
    if not all(isinstance(child, TreeSpec) for child in held.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {held!r}.")
    return TreeSpec(dict, list(held), list(held.values()))


def treespec_pprint(treespec: TreeSpec) -> str:
    """The shape as the nest that has it, with stars for leaves."""

    class Star:
        def __repr__(self) -> str:
            return "*"

    return repr(tree_unflatten([Star()] * treespec.num_leaves, treespec))


def _is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """The old name of `tree_is_leaf`."""
    warnings.warn(
        "torch.utils._pytree._is_leaf is private and will be removed in a future release. "
        "Please use torch.utils._pytree.tree_is_leaf instead.",
        FutureWarning,
        stacklevel=2,
    )
    return tree_is_leaf(tree, is_leaf)


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list | None:
    """The leaves of `tree` repeated to fit a deeper shape, or None if it does not fit."""
    if treespec.is_leaf():
        return [tree] if tree_is_leaf(tree, is_leaf) else None
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if _get_node_type(tree) != treespec.type:
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    leaves: list = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        leaves += part
    return leaves


def is_namedtuple_class(cls: Any) -> bool:
    """Whether `cls` was made by namedtuple or typing.NamedTuple."""
    fields = getattr(cls, "_fields", None)
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(fields, tuple)
        and all(isinstance(field, str) for field in fields)
    )


def is_namedtuple_instance(obj: object) -> bool:
    """Whether `obj` is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Whether `cls` is one of C's tuples with names, such as `time.struct_time`."""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and isinstance(getattr(cls, "n_fields", None), int)
        and isinstance(getattr(cls, "n_sequence_fields", None), int)
    )


def is_structseq_instance(obj: object) -> bool:
    """Whether `obj` is one of C's tuples with names."""
    return is_structseq_class(type(obj))


def is_namedtuple(obj: object) -> bool:
    """Whether this is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq(obj: object) -> bool:
    """Whether this is one of C's tuples with names, or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def __getattr__(name: str) -> Any:
    """What `_pytree_text` has: a program that writes no shapes does not load JSON's modules."""
    if not name.startswith("__"):
        from rushlight.utils import _pytree_text

        if name in _pytree_text.__all__:
            return getattr(_pytree_text, name)
    raise AttributeError(f"module 'torch.utils._pytree' has no attribute {name!r}")
