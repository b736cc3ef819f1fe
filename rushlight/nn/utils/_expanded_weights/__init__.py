"""Weights whose gradients are wanted for each example of a batch: `ExpandedWeight`.

`call_for_per_sample_grads` (_per_sample_grad.py) puts them in place of the parameters of a module. A layer
that is called with them is computed as ever, by an `autograd.Function` (layers.py) that hands the gradient on
to the input and leaves those of its weights, example by example, in their `grad_sample`.
"""

from rushlight.nn.utils._expanded_weights.expanded_weights_impl import ExpandedWeight
from rushlight.nn.utils._expanded_weights.layers import (
    ConvPerSampleGrad,
    EmbeddingPerSampleGrad,
    GroupNormPerSampleGrad,
    InstanceNormPerSampleGrad,
    LayerNormPerSampleGrad,
    LinearPerSampleGrad,
)

__all__ = ["ExpandedWeight"]
