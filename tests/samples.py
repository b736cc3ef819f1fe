"""The table of operations and sample inputs. Every check is driven by it: values, dtypes, first and second
derivatives, in-place forms, memory layouts, and the comparison with torch. An operation without an entry
fails the suite. To add one, write a line in the file of its family, `op("name", [call(...), ...])` or
`unary("name")`; families.py has the words for it, sampling.py says what an entry can declare."""

import importlib

from families import OPS

FAMILIES = "elementwise reduce shape index functional special norm numeric conv linalg fft"
FAMILY_OF: dict[str, str] = {}  # of every operation
for family in FAMILIES.split():
    importlib.import_module(f"samples_{family}")
    FAMILY_OF |= {name: family for name in OPS if name not in FAMILY_OF}

# Derivatives that torch, and so Rushlight, refuses of some of the samples: the second, and forward mode.
LACKS = {
    **dict.fromkeys(
        ("cdist", "pdist", "segment_reduce", "nn.functional.embedding_bag", "nn.functional.multi_margin_loss",
         "nn.functional.multilabel_margin_loss", "nn.functional.pdist",
         "nn.functional.scaled_dot_product_attention"),
        "second, forward",
    ),
    "nn.functional.hardsigmoid": "second",
    **dict.fromkeys(
        ("cholesky", "conv_tbc", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "igamma", "igammac",
         "index_reduce", "native_dropout_backward", "nn.functional.conv_tbc", "nn.functional.grid_sample",
         "ormqr", "special.zeta"),
        "forward",
    ),
}  # fmt: skip

__all__ = ["FAMILY_OF", "LACKS", "OPS"]
