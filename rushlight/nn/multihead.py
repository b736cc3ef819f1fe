"""MultiheadAttention."""

import rushlight
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.functional.attention import _canonical_mask, _none_or_dtype
from rushlight.nn.linear import NonDynamicallyQuantizableLinear
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention by several heads at once, between learned projections.

    Inputs are (length, batch, features), or (batch, length, features) with ``batch_first``, or have no
    batch dimension.

    >>> import rushlight as torch
    >>> attention = torch.nn.MultiheadAttention(8, 2)
    >>> x = torch.randn(5, 3, 8)
    >>> out, weights = attention(x, x, x)
    >>> out.shape, weights.shape
    (torch.Size([5, 3, 8]), torch.Size([3, 5, 5]))
    """

    __constants__ = ["batch_first"]

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def weights(*sizes):
            return Parameter(rushlight.empty(sizes, device=device, dtype=dtype))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = weights(3 * embed_dim, embed_dim)
            self.register_parameter("q_proj_weight", None)
            self.register_parameter("k_proj_weight", None)
            self.register_parameter("v_proj_weight", None)
        else:
            self.q_proj_weight = weights(embed_dim, embed_dim)
            self.k_proj_weight = weights(embed_dim, self.kdim)
            self.v_proj_weight = weights(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = weights(3 * embed_dim)
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, device=device, dtype=dtype
        )
        if add_bias_kv:
            self.bias_k = weights(1, 1, embed_dim)
            self.bias_v = weights(1, 1, embed_dim)
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self):
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            init.xavier_uniform_(self.q_proj_weight)
            init.xavier_uniform_(self.k_proj_weight)
            init.xavier_uniform_(self.v_proj_weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            init.xavier_normal_(self.bias_v)

    def __setstate__(self, state):
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        batched = query.dim() == 3
        numbers = any(mask is not None and mask.is_floating_point() for mask in (attn_mask, key_padding_mask))
        key_padding_mask = _canonical_mask(
            key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
        )
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        if not self.training and not numbers and self._goes_short(query, key, value):
            mask, kind = self.merge_masks(attn_mask, key_padding_mask, query)
            return rushlight._native_multi_head_attention(
                query,
                key,
                value,
                self.embed_dim,
                self.num_heads,
                self.in_proj_weight,
                self.in_proj_bias,
                self.out_proj.weight,
                self.out_proj.bias,
                mask,
                need_weights,
                average_attn_weights,
                kind,
            )
        if self.batch_first and batched:
            # What is one tensor stays one, so that it is projected once.
            swapped = {id(x): x.transpose(0, 1) for x in (query, key, value)}
            query, key, value = (swapped[id(x)] for x in (query, key, value))
        out, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        if self.batch_first and batched:
            out = out.transpose(1, 0)
        return out, weights

    def _goes_short(self, query, key, value):
        """Whether torch evaluates this in one call: attention of a sequence to itself, without gradients."""
        from rushlight.backends import mha

        return (
            mha.get_fastpath_enabled()
            and query.dim() == 3
            and query is key
            and key is value
            and self.batch_first
            and self._qkv_same_embed_dim
            and self.in_proj_bias is not None
            and query.dtype == self.in_proj_weight.dtype == self.in_proj_bias.dtype
            and self.num_heads % 2 == 0
            and self.bias_k is None
            and self.bias_v is None
            and not self.add_zero_attn
            and not rushlight.is_autocast_enabled(query.device.type)
            and not (
                rushlight.is_grad_enabled()
                and (query.requires_grad or any(parameter.requires_grad for parameter in self.parameters()))
            )
        )

    def merge_masks(self, attn_mask, key_padding_mask, query):
        """Both masks as one, and what it is: None without any, 0 attention, 1 padding, 2 both.

        >>> import rushlight as torch
        >>> torch.nn.MultiheadAttention(4, 2).merge_masks(None, None, torch.ones(1, 3, 4))
        (None, None)
        """
        merged, kind = None, None
        if key_padding_mask is not None:
            merged, kind = key_padding_mask, 1
        if attn_mask is not None:
            batch, length = query.shape[:2]
            kind = 2
            if attn_mask.dim() == 3:
                expanded = attn_mask.view(batch, -1, length, length)
            else:
                expanded = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
            merged = expanded
            if key_padding_mask is not None:
                padding = key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
                merged = expanded + padding
        return merged, kind
