"""Attention and encoder layers in one call, as torch's modules run when they are evaluated without gradients.

torch has fused kernels for these. Here the calls are made of the same functions as the modules; what they are
for is code that calls them, or looks whether they are called.
"""

from __future__ import annotations

import math

from rushlight import Tensor
from rushlight.nn.functional.activation import gelu, relu
from rushlight.nn.functional.linear import linear
from rushlight.nn.functional.norm import layer_norm


def _native_multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Attention of several heads, batch first, and its weights.

    What `mask` sets is left out: by ``mask_type`` 0 of queries and keys, 1 of keys of each sample, 2 of both.
    A query that may look nowhere gets NaN, as in torch.

    >>> import rushlight as torch
    >>> x, square = torch.ones(1, 2, 4), torch.eye(4)
    >>> out, weights = torch._native_multi_head_attention(
    ...     x, x, x, 4, 2, torch.eye(4).repeat(3, 1), torch.zeros(12), square, torch.zeros(4)
    ... )
    >>> weights
    tensor([[[0.5000, 0.5000],
             [0.5000, 0.5000]]])
    """
    if query is key and key is value:
        projected = linear(query, qkv_weight, qkv_bias).chunk(3, dim=-1)
    else:
        parts = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
        projected = tuple(linear(x, weight, bias) for x, weight, bias in parts)
    q, k, v = (x.unflatten(-1, (num_head, -1)).transpose(1, 2) for x in projected)
    scores = (q / math.sqrt(embed_dim // num_head)) @ k.mT
    if mask is not None:
        left_out = mask.bool()
        scores = scores.masked_fill(left_out[:, None, None] if mask_type == 1 else left_out, -math.inf)
    weights = scores.softmax(-1)
    out = linear((weights @ v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    if not need_weights:
        return out, None
    return out, weights.mean(1) if average_attn_weights else weights


def _transformer_encoder_layer_fwd(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """A layer of a transformer's encoder, batch first."""

    def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return layer_norm(x, (embed_dim,), weight, bias, eps)

    def attend(x: Tensor) -> Tensor:
        weights = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        out, _ = _native_multi_head_attention(
            x, x, x, embed_dim, num_heads, *weights, mask=mask, need_weights=False, mask_type=mask_type
        )
        return out

    def feed(x: Tensor) -> Tensor:
        inner = (gelu if use_gelu else relu)(linear(x, ffn_weight_1, ffn_bias_1))
        return linear(inner, ffn_weight_2, ffn_bias_2)

    # Of two operands that lie otherwise the first says how the sum lies: in order, as in torch.
    if norm_first:
        src = attend(norm(src, norm_weight_1, norm_bias_1)) + src
        return feed(norm(src, norm_weight_2, norm_bias_2)) + src
    src = norm(attend(src) + src, norm_weight_1, norm_bias_1)
    return norm(feed(src) + src, norm_weight_2, norm_bias_2)
