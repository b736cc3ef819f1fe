"""The batching rule of recurrent layers."""

from __future__ import annotations

from typing import Any

from rushlight.func._batching.layers import merged, parted
from rushlight.func._batching.table import Batch, batching, example_by_example, ops


@batching("rnn_sequence")
def rnn_sequence(op: Any, batch: Batch, gx: Any, h: Any, c: Any, w: Any, b: Any, mode: str, sizes: Any,
                 *options: Any) -> Any:  # fmt: skip
    """The sequences of all examples beside each other, if they are equally long and have one layer."""
    on_gx, on_h, on_c, *on_layer = batch.batched
    if sizes is not None or any(on_layer) or not batch.size:
        return example_by_example(op, batch, gx, h, c, w, b, mode, sizes, *options)
    gx, h = batch.whole(gx, on_gx), batch.whole(h, on_h)
    count, steps, rows = gx.shape[:3]
    given = ops.permute(gx, (1, 0, 2, 3)).reshape(steps, count * rows, gx.shape[3])
    cells = c if c is None else merged(batch.whole(c, on_c))

    def by_example(t: Any) -> Any:
        if not t.numel():
            return batch.whole(t, False)
        return ops.permute(t.reshape(steps, count, rows, t.shape[-1]), (1, 0, 2, 3))

    out, hn, cn, *kept = op(given, merged(h), cells, w, b, mode, None, *options)
    kept = [
        t if not t.numel() else t.reshape(count, steps * rows, t.shape[-1]) for t in map(by_example, kept)
    ]
    return (
        by_example(out),
        parted(batch, hn),
        batch.whole(cn, False) if c is None else parted(batch, cn),
        *kept,
    )
