"""CausalBias: the mask of causal attention by its name, so that the kernel need not read it."""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.nn.functional.attention import scaled_dot_product_attention

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """From which corner the triangle of a mask that is not square starts."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias(Tensor):
    """The lower triangle of a mask of queries by keys, for ``attn_mask`` of scaled_dot_product_attention.

    >>> import rushlight as torch
    >>> torch.nn.attention.bias.causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        # The tensor underneath is never read: the mask exists where it is asked for.
        return rushlight.Tensor._make_subclass(cls, rushlight.empty(int(variant), seq_len_q, seq_len_kv))

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            from rushlight._warn import warn

            warn("Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!")

    def _upper_left(self, device: Any) -> Tensor:
        return rushlight.tril(
            rushlight.ones(self.seq_len_q, self.seq_len_kv, device=device, dtype=rushlight.bool)
        )

    def _lower_right(self, device: Any) -> Tensor:
        return rushlight.tril(
            rushlight.ones(self.seq_len_q, self.seq_len_kv, dtype=rushlight.bool, device=device),
            diagonal=self.seq_len_kv - self.seq_len_q,
        )

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask as a tensor of bools."""
        if device is None:
            device = rushlight.device("cpu")
        return (
            self._upper_left(device)
            if self.variant == CausalVariant.UPPER_LEFT
            else self._lower_right(device)
        )

    @staticmethod
    def _dispatch(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: CausalBias,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        **options: Any,
    ) -> Tensor:
        """Attention with this mask."""
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        options["dropout_p"] = dropout_p
        if attn_mask.seq_len_q == attn_mask.seq_len_kv or attn_mask.variant == CausalVariant.UPPER_LEFT:
            return scaled_dot_product_attention(query, key, value, None, is_causal=True, **options)
        return scaled_dot_product_attention(
            query, key, value, attn_mask._materialize(query.device), is_causal=False, **options
        )

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = {} if kwargs is None else kwargs
        if func is scaled_dot_product_attention:
            return cls._dispatch(*args, **kwargs)
        return super().__torch_function__(func, types, args, kwargs)

    def __repr__(self) -> str:
        return repr(self._materialize())


def _two(name: str, size: tuple[int, ...]) -> tuple[int, int]:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return size


def causal_upper_left(*size: int) -> CausalBias:
    """Query i may look at keys 0 to i.

    >>> import rushlight as torch
    >>> torch.nn.attention.bias.causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    return CausalBias(CausalVariant.UPPER_LEFT, *_two("causal_upper_left", size))


def causal_lower_right(*size: int) -> CausalBias:
    """The last query may look at all keys, each earlier one at one key less.

    >>> import rushlight as torch
    >>> torch.nn.attention.bias.causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    return CausalBias(CausalVariant.LOWER_RIGHT, *_two("causal_lower_right", size))
