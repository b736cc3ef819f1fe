"""Attention: weighted means of values, the weights being the softmax of products of queries and keys."""

import math

import rushlight
from rushlight import _C
from rushlight._warn import warn
from rushlight.nn import functional as F  # whose functions a program may replace: attention is made of those
from rushlight.nn.functional._checks import functional
from rushlight.nn.functional.dropout import dropout
from rushlight.ops._examples import filled, is_derived, somewhere
from rushlight.ops._facts import told
from rushlight.ops._lacking import once
from rushlight.ops._node_names import asked_plainly
from rushlight.ops._public import C_NAMES, type_name


def _c_name(tensor):
    return C_NAMES[tensor.dtype]


def _check_attention(query, key, value, attn_mask):
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {_c_name(query)} "
            f"key.dtype: {_c_name(key)} and value.dtype: {_c_name(value)} instead."
        )
    if query.dim() < 2 or key.dim() < 2 or value.dim() < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.dim()} key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )
    if not (query.is_floating_point() or query.is_complex()):
        raise RuntimeError(f"expected scalar type Float but found {type_name(query.dtype)}")
    allowed = (rushlight.bool, rushlight.float32, query.dtype)
    if attn_mask is not None and attn_mask.dtype not in allowed:
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {_c_name(attn_mask)} and  query.dtype: {_c_name(query)} instead."
        )


def _check_both_masks(query, key, value, attn_mask, dropout_p, enable_gqa):
    """A mask beside is_causal: torch's fused kernels take both, and only they."""
    if _fused_sdp_choice(query, key, value, attn_mask, dropout_p, True, enable_gqa=enable_gqa) == 0:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
        )


def _added_mask(query, key, attn_mask, is_causal):
    """The mask as numbers to add, or None."""
    allowed = None
    if is_causal:
        size = (query.size(-2), key.size(-2))
        allowed = rushlight.ones(size, dtype=rushlight.bool, device=query.device).tril()
    if attn_mask is None and allowed is None:
        return None
    if attn_mask is not None and attn_mask.dtype == rushlight.bool:
        allowed = attn_mask if allowed is None else allowed & attn_mask
    added = None
    if allowed is not None:
        added = rushlight.zeros(allowed.shape, dtype=query.dtype, device=query.device)
        added = filled(_C.ops.masked_fill, added, ~allowed, -math.inf)
    if attn_mask is not None and attn_mask.dtype != rushlight.bool:
        attn_mask = attn_mask.to(query.dtype)
        added = attn_mask if added is None else attn_mask + added
    return added


@functional
def scaled_dot_product_attention(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    scale=None,
    enable_gqa=False,
):
    """``softmax(scale * query @ key.mT + mask) @ value``, with scale ``1 / sqrt(features)``.

    A bool mask is True where a query may look; another mask is added. Queries that may look nowhere get
    zeros. With enable_gqa several heads of queries share one of keys and values.

    >>> import rushlight as torch
    >>> q, v = torch.zeros(1, 2), torch.tensor([[1.0], [3.0]])
    >>> torch.nn.functional.scaled_dot_product_attention(q, torch.ones(2, 2), v)
    tensor([[2.]])
    """
    _check_attention(query, key, value, attn_mask)
    if _restricted:
        _fused_sdp_choice(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa=enable_gqa)
    if not value.numel() or not query.size(-2):  # whatever the other sizes are
        nothing = query.sum() * 0 + key.sum() * 0 + value.sum() * 0
        return nothing.new_zeros((*query.shape[:-1], value.size(-1))) + nothing
    if is_causal and attn_mask is not None:
        _check_both_masks(query, key, value, attn_mask, dropout_p, enable_gqa)
    dtype = query.dtype
    if dropout_p > 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p:g}")
    if scale is None:
        scale = 1.0 / math.sqrt(query.size(-1)) if query.size(-1) else 1.0
    flash = _takes_flash(query, key, value, attn_mask, dropout_p, enable_gqa)
    if flash:
        given = query, key, value
        query, key, value = (once(x, f"aten::{FLASH}_backward", *given) for x in given)
    if enable_gqa:
        key, value = _share_heads(query, key, value)
    half = query.dtype in (rushlight.float16, rushlight.bfloat16)
    if half:  # scores and weights would lose digits
        query, key, value = query.float(), key.float(), value.float()
    if attn_mask is not None and attn_mask.dtype != rushlight.bool:
        attn_mask = attn_mask.to(query.dtype)
    asked = 0 if flash else _C.recorded(query, key, value)
    if asked & 3:  # torch's graph keeps scaled copies: both may be written to
        factor = math.sqrt(abs(scale))
        query, key, scale = _scaled(query, math.copysign(factor, scale)), _scaled(key, factor), 1.0
    apart = asked == 4 or asked > 7  # of the values alone, and as hooks are shown it, in torch's steps
    if dropout_p <= 0 and not apart and _is_plain(query, key, value, attn_mask, is_causal, flash):
        watched = _C.watched(query)  # who looks on sees torch's kernel
        if flash and not (is_causal or watched) and _keeps_weights(query, key, value):
            result, _ = _C.ops.attention_keeping(query, key, value, attn_mask, scale)
        else:
            result = _C.ops.attention(query, key, value, attn_mask, scale, is_causal)
    else:
        result = _attend(query, key, value, attn_mask, is_causal, scale, dropout_p)
    return result.to(dtype) if half else result


FLASH = "_scaled_dot_product_flash_attention_for_cpu"


def _takes_flash(query, key, value, attn_mask=None, dropout_p=0.0, enable_gqa=False):
    """Whether torch would take its fused kernel, which it can differentiate once, and not in forward mode."""
    if "flash" in _restricted:
        return False
    return _not_flash(query, key, value, attn_mask, dropout_p, enable_gqa) is None


def _lacks_forward_mode(query, key, value, attn_mask=None, dropout_p=0.0, *args, enable_gqa=False, **kwargs):
    return FLASH if _takes_flash(query, key, value, attn_mask, dropout_p, enable_gqa) else None


def _node_name(query, key, value, attn_mask=None, dropout_p=0.0, *args, enable_gqa=False, **kwargs):
    if not _takes_flash(query, key, value, attn_mask, dropout_p, enable_gqa):
        return None
    if not asked_plainly():
        return "ScaledDotProductFlashAttentionForCpuBackward0", {"output": ...}
    kept = {"query": query, "key": key, "value": value, "attn_mask": attn_mask, "output": ...}
    kept["logsumexp"] = _log_sums(query, key, attn_mask, *args, **kwargs)
    return "ScaledDotProductFlashAttentionForCpuBackward0", kept, (query, key, value)


def _log_sums(query, key, attn_mask, is_causal=False, scale=None):
    """The logarithms of the sums by which torch's kernel divides, and which its node keeps."""
    with rushlight.no_grad():
        wide = rushlight.float64 if query.dtype == rushlight.float64 else rushlight.float32
        query, key = query.detach().to(wide), key.detach().to(wide)
        if key.size(-3) != query.size(-3):
            key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        scores = query @ key.mT * (1.0 / math.sqrt(query.size(-1)) if scale is None else scale)
        added = _added_mask(query, key, attn_mask, is_causal)
        return (scores if added is None else scores + added).logsumexp(-1)


scaled_dot_product_attention.no_forward_mode = _lacks_forward_mode
scaled_dot_product_attention.node_name = _node_name

# Not empty while nn.attention.sdpa_kernel or the switches of backends.cuda forbid one of torch's kernels.
_restricted: set[str] = set()


def _fused_sdp_choice(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    *,
    scale=None,
    enable_gqa=False,
):
    """The number of the kernel that torch would take on the CPU: 1 flash attention, 0 matrix products.

    >>> import rushlight as torch
    >>> x = torch.ones(1, 1, 2, 2)
    >>> torch._fused_sdp_choice(x, x, x), torch._fused_sdp_choice(x, x, x, dropout_p=0.5)
    (1, 0)
    """
    flash, composed = "flash" not in _restricted, "math" not in _restricted
    if not (flash or composed):
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off "
            "both the math kernel and the fused kernels."
        )
    reason = _not_flash(query, key, value, attn_mask, dropout_p, enable_gqa)
    if flash and reason is None:
        return 1
    if composed:
        return 0
    warn("Flash attention kernel not used because:")
    warn(reason)
    raise RuntimeError("No available kernel.  Aborting execution.")


def _scaled_dot_product_attention_math(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    dropout_mask=None,
    *,
    scale=None,
    enable_gqa=False,
):
    """Attention in matrix products, and its weights.

    >>> import rushlight as torch
    >>> x = torch.zeros(1, 1, 2, 2)
    >>> torch._scaled_dot_product_attention_math(x, x, x)[1]
    tensor([[[[0.5000, 0.5000],
              [0.5000, 0.5000]]]])
    """
    _check_attention(query, key, value, attn_mask)
    if enable_gqa:
        key, value = _share_heads(query, key, value)
    if scale is None:
        scale = 1.0 / math.sqrt(query.size(-1)) if query.size(-1) else 1.0
    weights = _weights(query, key, attn_mask, is_causal, scale)
    if dropout_mask is not None:
        weights = weights.masked_fill(dropout_mask.logical_not(), 0.0)
        return rushlight.matmul(weights, value * (1.0 / (1.0 - dropout_p))), weights
    weights = dropout(weights, dropout_p) if dropout_p > 0.0 else weights
    return rushlight.matmul(weights, value), weights


def _not_flash(query, key, value, attn_mask, dropout_p, enable_gqa):
    """Why torch's flash attention on the CPU does not take these arguments, or None."""
    if query.dtype not in (rushlight.float64, rushlight.float32, rushlight.float16, rushlight.bfloat16):
        return "Expected query, key and value to all be of dtype: {Double, Float, Half, BFloat16}."
    q, k, v = query.shape, key.shape, value.shape
    if not len(q) == len(k) == len(v) == 4:
        return (
            f"All fused kernels requires query, key and value to be 4 dimensional, but got Query dim: "
            f"{len(q)}, Key dim: {len(k)}, Value dim: {len(v)} instead."
        )
    if dropout_p > 0.0:
        return "Both fused kernels do not support non-zero dropout."
    if attn_mask is not None and attn_mask.requires_grad:
        return "Both fused kernels do not support attn_mask requiring gradients."
    if not q[3] == k[3] == v[3]:
        return "Both fused kernels require q, k and v to have the same last dimension."
    if not q[0] == k[0] == v[0]:
        return "Both fused kernels require query, key and value to have the same batch_size."
    if k[1] != v[1] or (q[1] != k[1] and not enable_gqa):
        return "Both fused kernels require query, key and value to have the same num_heads."
    if not q[2] or not k[2]:
        return "Both fused kernels do not support zero seq_len_q or seq_len_kv."
    steps = query.stride(-1), key.stride(-1), value.stride(-1)
    if steps != (1, 1, 1):
        return (
            "All fused kernels require the last dimension of the input to have stride 1. Got "
            f"Query.stride(-1): {steps[0]}, Key.stride(-1): {steps[1]}, Value.stride(-1): {steps[2]}"
        )
    return None


# Weights of up to this many elements are kept for the gradient; more are computed anew, block by block.
_KEPT = 1 << 19


def _is_plain(query, key, value, mask, is_causal, flash=False):
    """Whether the fused primitive computes this: as many heads of each, and a mask without gradient.

    Where torch's own attention does not take it, without any mask and with a gradient to come, it pays for
    many weights (4M: 45 to 31 ms).
    """
    if query.dtype not in (rushlight.float32, rushlight.float64) or query.is_meta:
        return False
    if not query.shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        return False
    if key.size(-1) != query.size(-1) or value.size(-2) != key.size(-2):
        return False
    if mask is not None:
        return not is_derived(mask) and mask.dim() <= query.dim()
    return is_causal or flash or not _keeps_weights(query, key, value)


def _keeps_weights(query, key, value):
    """Whether there is a gradient to come for which keeping the weights pays (200 queries of each of 8 heads:
    2.09 to 1.62 ms)."""
    if not (query.requires_grad or key.requires_grad or value.requires_grad):
        return False
    few = query.shape[:-1].numel() * key.size(-2) <= _KEPT
    return few and rushlight.is_grad_enabled()


def _attend(query, key, value, attn_mask, is_causal, scale, dropout_p):
    """Attention in differentiable operations."""
    weights = _weights(query, key, attn_mask, is_causal, scale)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p)
    return rushlight.matmul(weights, value)


def _weights(query, key, attn_mask, is_causal, scale):
    """How much each query takes from each value."""
    scores = rushlight.matmul(query if scale == 1 else _scaled(query, scale), key.mT)
    added = _added_mask(query, key, attn_mask, is_causal)
    if added is not None:
        scores = scores + added
    return _safe_softmax(scores)


@told(node_name="MulBackward1")
def _scaled(query, scale):
    return query * scale


@told(node_name="SafeSoftmaxBackward0")
def _safe_softmax(scores):
    """softmax, with zeros for a query that may look nowhere: its scores are all minus infinity."""
    weights = rushlight.softmax(scores, -1)
    if weights.is_meta or not somewhere(weights.detach()[..., :1].isnan()):
        return weights
    from rushlight._aten import safe_softmax

    return safe_softmax(scores, -1)


def _share_heads(query, key, value):
    if query.dim() < 3 or key.dim() < 3 or value.dim() < 3:
        raise RuntimeError(
            "enable_gqa needs a dimension of heads: query, key and value of at least 3 dimensions"
        )
    heads = query.size(-3)
    if heads % key.size(-3) or heads % value.size(-3):
        raise RuntimeError("Number of heads in key and value must divide the number of heads in query")
    return (
        key.repeat_interleave(heads // key.size(-3), -3),
        value.repeat_interleave(heads // value.size(-3), -3),
    )


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """The mask as numbers to add: a bool mask is True where nothing may be seen."""
    if mask is None:
        return None
    if mask.dtype != rushlight.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both "
            "instead."
        )
    if mask.dtype == rushlight.bool:
        return rushlight.zeros(mask.shape, dtype=target_type, device=mask.device).masked_fill_(
            mask, -math.inf
        )
    return mask


def _none_or_dtype(input):
    return None if input is None else input.dtype


def _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether there is a batch dimension; torch's errors where the dimensions do not fit each other."""

    def check(condition, text):
        if not condition:
            raise AssertionError(text)

    if query.dim() == 3:
        batched, kind, padding = True, "batched (3-D)", 2
    elif query.dim() == 2:
        batched, kind, padding = False, "unbatched (2-D)", 1
    else:
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    dims = query.dim()
    check(
        key.dim() == dims and value.dim() == dims,
        f"For {kind} `query`, expected `key` and `value` to be {dims}-D but found {key.dim()}-D and "
        f"{value.dim()}-D tensors respectively",
    )
    if key_padding_mask is not None:
        check(
            key_padding_mask.dim() == padding,
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {padding}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead",
        )
    if attn_mask is not None:
        check(
            attn_mask.dim() in (2, 3),
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
            f"{attn_mask.dim()}-D tensor instead",
        )
        if not batched and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            check(
                attn_mask.shape == expected,
                f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}",
            )
    return batched


def _project(query, key, value, weight, bias):
    """Queries, keys and values from one matrix: a single product if all three are the same tensor."""
    size = query.size(-1)
    if key is value:
        if query is key:
            return F.linear(query, weight, bias).chunk(3, -1)
        split = [size, 2 * size]
        weights = weight.split(split)
        biases = (None, None) if bias is None else bias.split(split)
        return F.linear(query, weights[0], biases[0]), *F.linear(key, weights[1], biases[1]).chunk(2, -1)
    w_q, w_k, w_v = weight.chunk(3)
    b_q, b_k, b_v = (None,) * 3 if bias is None else bias.chunk(3)
    return F.linear(query, w_q, b_q), F.linear(key, w_k, b_k), F.linear(value, w_v, b_v)


def _project_apart(inputs, weights, bias, embed_dim):
    """Queries, keys and values, each of its own input by a weight of its own."""
    for weight, name in zip(weights, "qkv", strict=True):
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    for given, weight, name in zip(inputs, weights, ("query", "key", "value"), strict=True):
        if weight.shape != (embed_dim, given.size(-1)):
            raise AssertionError(
                f"expecting {name} weights shape of {(embed_dim, given.size(-1))}, but got {weight.shape}"
            )
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return map(F.linear, inputs, weights, biases)


def _padding_by_heads(mask, batch, num_heads, keys):
    """The mask of the keys of each sequence, once for each head."""
    for d, size in enumerate((batch, keys)):
        if mask.shape[d] != size:
            raise AssertionError(f"Expected key_padded_mask.shape[{d}] to be {size}, but got {mask.shape[d]}")
    by_heads = mask.view(batch, 1, 1, keys).expand(-1, num_heads, -1, -1)
    return by_heads.reshape(batch * num_heads, 1, keys)


def _pad_mask(mask):
    """One more column, which may be looked at."""
    return rushlight.constant_pad_nd(mask, (0, 1))


@functional
def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """What nn.MultiheadAttention computes: projections, attention by heads, a projection of the result.

    Inputs are (length, batch, features) or (length, features). Returns the result and the weights, or None.

    >>> import rushlight as torch
    >>> x, eye = torch.ones(4, 1, 2), torch.eye(2)
    >>> out, weights = torch.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 2, 1, torch.cat([eye, eye, eye]), None, None, None, False, 0.0, eye, None)
    >>> out.shape, weights.shape
    (torch.Size([4, 1, 2]), torch.Size([1, 4, 4]))
    """
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)  # three, also of one
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, embed_dim = query.shape
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # scaled_dot_product_attention knows the causal mask
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        is_causal = False
    _check_embedding(embed_dim, embed_dim_to_check, num_heads, key, value, use_separate_proj_weight)
    head_dim = embed_dim // num_heads
    if use_separate_proj_weight:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _project_apart((query, key, value), weights, in_proj_bias, embed_dim)
    else:
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None:
        attn_mask = _shaped_mask(attn_mask, length, key.size(0), batch * num_heads)
    if (bias_k is None) != (bias_v is None):
        given, missing = ("bias_k", "bias_v") if bias_v is None else ("bias_v", "bias_k")
        raise AssertionError(f"{given} is set but {missing} is None")
    if bias_k is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key.")
        k = rushlight.cat([k, bias_k.repeat(1, batch, 1)])
        v = rushlight.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask = None if attn_mask is None else _pad_mask(attn_mask)
        key_padding_mask = None if key_padding_mask is None else _pad_mask(key_padding_mask)

    def by_heads(x):
        return x.reshape(x.shape[0], batch * num_heads, head_dim).transpose(0, 1)

    q = by_heads(q)
    k = by_heads(k) if static_k is None else _static(static_k, "static_k", batch * num_heads, head_dim)
    v = by_heads(v) if static_v is None else _static(static_v, "static_v", batch * num_heads, head_dim)
    if add_zero_attn:
        nothing = k.new_zeros((batch * num_heads, 1, head_dim))
        k, v = rushlight.cat([k, nothing], 1), rushlight.cat([v, nothing], 1)
        attn_mask = None if attn_mask is None else _pad_mask(attn_mask)
        key_padding_mask = None if key_padding_mask is None else _pad_mask(key_padding_mask)
    keys = k.size(1)
    if key_padding_mask is not None:
        padding = _padding_by_heads(key_padding_mask, batch, num_heads, keys)
        attn_mask = padding if attn_mask is None else attn_mask + padding
    if not training:
        dropout_p = 0.0
    if need_weights:
        q = q * math.sqrt(1.0 / head_dim)
        scores = rushlight.bmm(q, k.mT) if attn_mask is None else rushlight.baddbmm(attn_mask, q, k.mT)
        weights = F.softmax(scores, -1)
        if dropout_p > 0.0:
            weights = F.dropout(weights, dropout_p)
        result = rushlight.bmm(weights, v)
    else:
        weights = None
        if attn_mask is not None:
            if attn_mask.size(0) == 1:
                attn_mask = attn_mask.unsqueeze(0)
            else:
                attn_mask = attn_mask.view(batch, num_heads, -1, keys)
        heads = [x.view(batch, num_heads, x.size(1), head_dim) for x in (q, k, v)]
        result = F.scaled_dot_product_attention(*heads, attn_mask, dropout_p, is_causal)
        result = result.view(batch * num_heads, length, head_dim)
    result = result.transpose(0, 1).reshape(length * batch, embed_dim)
    result = F.linear(result, out_proj_weight, out_proj_bias).view(length, batch, out_proj_weight.size(0))
    if weights is not None:
        weights = weights.view(batch, num_heads, length, keys)
        if average_attn_weights:
            weights = weights.mean(1)
    if not batched:
        result = result.squeeze(1)
        weights = None if weights is None else weights.squeeze(0)
    return result, weights


def _check_embedding(embed_dim, embed_dim_to_check, num_heads, key, value, separate):
    if embed_dim != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}"
        )
    if embed_dim // num_heads * num_heads != embed_dim:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if separate:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


def _shaped_mask(mask, length, keys, heads):
    """(1 or batch * heads, length, keys)"""
    expected = (length, keys) if mask.dim() == 2 else (heads, length, keys)
    if mask.shape != expected:
        raise RuntimeError(
            f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {expected}."
        )
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _static(x, name, heads, head_dim):
    if x.size(0) != heads:
        raise AssertionError(f"expecting {name}.size(0) of {heads}, but got {x.size(0)}")
    if x.size(2) != head_dim:
        raise AssertionError(f"expecting {name}.size(2) of {head_dim}, but got {x.size(2)}")
    return x
