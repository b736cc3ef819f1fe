"""The lists and dictionaries among a node's arguments: a change would bypass the graph's record of users."""

from __future__ import annotations

from typing import Any

from rushlight.utils._pytree import (
    _dict_flatten,
    _dict_flatten_with_keys,
    _list_flatten,
    _list_flatten_with_keys,
    register_pytree_node,
)

__all__ = ["immutable_dict", "immutable_list"]

_HELP = (
    "If you are attempting to modify the kwargs or args of a torch.fx.Node object,\n"
    "instead create a new copy of it and assign the copy to the node:\n"
    "    new_args = ...  # copy and mutate args\n"
    "    node.args = new_args\n"
)


def _refusing(base: type, names: tuple[str, ...]) -> dict[str, Any]:
    def refusal(name: str) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            raise TypeError(f"'{type(self).__name__}' object does not support mutation. {_HELP}")

        method.__name__ = name
        return method

    return {name: refusal(name) for name in names}


class immutable_list(list):
    """A list that refuses to be changed."""

    locals().update(_refusing(list, ("__delitem__", "__iadd__", "__imul__", "__setitem__", "append", "clear",
                                     "extend", "insert", "pop", "remove", "reverse", "sort")))  # fmt: skip

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (tuple(self),)


class immutable_dict(dict):
    """A dictionary that refuses to be changed."""

    locals().update(_refusing(dict, ("__delitem__", "__ior__", "__setitem__", "clear", "pop", "popitem",
                                     "setdefault", "update")))  # fmt: skip

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (tuple(self.items()),)


register_pytree_node(
    immutable_list,
    _list_flatten,
    lambda values, _: immutable_list(values),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
    flatten_with_keys_fn=_list_flatten_with_keys,
)
register_pytree_node(
    immutable_dict,
    _dict_flatten,
    lambda values, keys: immutable_dict(zip(keys, values, strict=True)),
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
    flatten_with_keys_fn=_dict_flatten_with_keys,
)
