"""What accelerators and communication tell of an event besides its times, from Kineto's text."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple


class EventMetadata(NamedTuple):
    """Of a kernel where and how it ran, of a copy its size, of a collective operation who took part. None:
    that was not told."""

    registers_per_thread: int | None
    shared_memory: int | None
    grid: list[int] | None
    block: list[int] | None
    priority: int | None
    blocks_per_sm: float | None
    warps_per_sm: float | None
    occupancy: dict[str, Any] | None
    est_occupancy_pct: float | None
    queued: int | None
    graph_id: int | None
    graph_node_id: int | None
    stream: int | None
    context: int | None
    channel: int | None
    channel_type: int | None
    bytes: int | None
    bandwidth_gb_s: float | None
    collective_name: str | None
    dtype: str | None
    in_msg_nelems: int | None
    out_msg_nelems: int | None
    in_split_size: str | None
    out_split_size: str | None
    global_rank_start: int | None
    global_rank_stride: int | None
    group_size: int | None
    process_group_name: str | None
    process_group_desc: str | None
    group_ranks: str | None
    rank: int | None
    src_rank: int | None
    dst_rank: int | None
    seq: int | None
    is_async: bool | None


def _to_str(v: str) -> str:
    return v.strip('"')


def _to_bool(v: str) -> bool:
    return v in ("1", "true")


# Where Kineto's words are other than those of the fields with blanks for underscores.
_WORDS = {
    "blocks_per_sm": "blocks per SM", "warps_per_sm": "warps per SM", "channel_type": "channel_type",
    "est_occupancy_pct": "est. achieved occupancy %", "bandwidth_gb_s": "memory bandwidth (GB/s)",
    "process_group_name": "Process Group Name", "process_group_desc": "Process Group Description",
    "group_ranks": "Process Group Ranks", "src_rank": "Src Rank", "dst_rank": "Dst Rank", "dtype": "dtype",
    "is_async": "Is asynchronized op",
}  # fmt: skip
_KINDS: dict[str, Callable] = {"int": int, "float": float, "str": _to_str, "bool": _to_bool}


def _word(field: str, of_a_collective: bool) -> str:
    plain = field.replace("_", " ")
    return _WORDS.get(field) or (plain[:1].upper() + plain[1:] if of_a_collective else plain)


def _keys() -> dict[str, tuple[str, Callable]]:
    found, of_a_collective = {}, False
    for field, kind in EventMetadata.__annotations__.items():
        of_a_collective = of_a_collective or field == "collective_name"
        text = str(getattr(kind, "__forward_arg__", kind))  # "int | None"
        found[_word(field, of_a_collective)] = field, _KINDS.get(text.partition(" ")[0], json.loads)
    return found


_EVENT_METADATA_KEYS = _keys()


def _build_metadata(extra_meta: dict[str, str]) -> EventMetadata | None:
    """What is told under these keys; None if nothing is."""
    fields = {
        field: None if extra_meta.get(key) is None else convert(extra_meta[key])
        for key, (field, convert) in _EVENT_METADATA_KEYS.items()
    }
    return None if all(value is None for value in fields.values()) else EventMetadata(**fields)
