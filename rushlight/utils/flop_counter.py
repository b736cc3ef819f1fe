"""Counting the floating-point operations of a block of code, by operation and by module."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from rushlight import _C, ops
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils._pytree import tree_map
from rushlight.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

aten = ops.aten
flop_registry: dict[Any, Any] = {}


def get_shape(i: Any) -> Any:
    """The size of a tensor; anything else as it is."""
    return i.shape if isinstance(i, _C.Tensor) else i


def shape_wrapper(f: Callable) -> Callable:
    """A formula of sizes as one of tensors; `out_shape` is the size of the result."""

    @functools.wraps(f)
    def counted(*args, out_val=None, **kwargs):
        args, kwargs, out_shape = tree_map(get_shape, (args, kwargs, out_val))
        return f(*args, out_shape=out_shape, **kwargs)

    return counted


suffixes = ["", "K", "M", "B", "T"]


def get_suffix_str(number: int) -> str:
    """The unit that leaves two to four digits before the point.

    >>> from rushlight.utils.flop_counter import convert_num_with_suffix, get_suffix_str
    >>> convert_num_with_suffix(123456, get_suffix_str(123456))
    '123.456K'
    """
    return suffixes[max(0, min((len(str(number)) - 2) // 3, len(suffixes) - 1))]


def convert_num_with_suffix(number: int, suffix: str) -> str:
    """A number in a unit: "", K, M, B or T."""
    return f"{number / 1000 ** suffixes.index(suffix):.3f}{suffix}"


def convert_to_percent_str(num: float, denom: float) -> str:
    """A part in percent."""
    return f"{num / denom:.2%}" if denom else "0%"


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable:
    """A decorator that says how the operations of `targets` are counted: by a function of the sizes of their
    arguments and of `out_shape`, or (get_raw) of the arguments themselves and `out_val`."""

    def register(formula: Callable) -> Callable:
        counted = formula if get_raw else shape_wrapper(formula)
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = counted
        return counted

    return register


def _product(sizes: Any) -> int:
    return functools.reduce(lambda a, b: a * b, sizes, 1)


@register_flop_formula(aten.mm)
def mm_flop(a_shape, b_shape, *args, out_shape=None, **kwargs) -> int:
    """A product of matrices: two for each of its multiplications."""
    return 2 * a_shape[0] * a_shape[1] * b_shape[1]


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape, a_shape, b_shape, *args, out_shape=None, **kwargs) -> int:
    """As the product alone."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape, b_shape, *args, out_shape=None, **kwargs) -> int:
    """A batch of products."""
    return a_shape[0] * mm_flop(a_shape[1:], b_shape[1:])


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape, a_shape, b_shape, *args, out_shape=None, **kwargs) -> int:
    """As the products alone."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Any, w_shape: Any, out_shape: Any, transposed: bool = False) -> int:
    """One product per weight and position: of the output, or of the input if transposed."""
    return 2 * x_shape[0] * _product((x_shape if transposed else out_shape)[2:]) * _product(w_shape)


@register_flop_formula(
    [aten.convolution, aten._convolution, aten.cudnn_convolution, aten._slow_conv2d_forward,
     aten.convolution_overrideable]
)  # fmt: skip
def conv_flop(
    x_shape, w_shape, _bias, _stride, _padding, _dilation, transposed, *args, out_shape=None, **kwargs
) -> int:
    """A convolution, transposed or not."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape, x_shape, w_shape, _bias, _stride, _padding, _dilation, transposed, _output_padding,
    _groups, output_mask, out_shape, **kwargs,
) -> int:  # fmt: skip
    """The gradient of the input counts as the convolution itself. That of the weight counts as a convolution
    of all channels with all others, as torch has it, also where there are groups."""
    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad_out_shape, w_shape, x_shape, not transposed)
    if output_mask[1]:
        seen, moved = (grad_out_shape, x_shape) if transposed else (x_shape, grad_out_shape)
        count += 2 * x_shape[0] * seen[1] * moved[1] * _product(w_shape[2:]) * _product(moved[2:])
    return count


def sdpa_flop_count(query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """Two batches of products: queries by keys, and the weights by the values. Fewer heads of keys and
    values than of queries are repeated."""
    (b, h, s_q, d_q), (b_k, h_k, s_k, d_k), (b_v, h_v, s_v, d_v) = query_shape, key_shape, value_shape
    fits = b == b_k == b_v and h_k == h_v and h % h_k == 0 and d_q == d_k and s_k == s_v
    if not fits:
        raise AssertionError(
            "sdpa_flop_count: query/key/value shapes are incompatible: "
            f"q={query_shape}, k={key_shape}, v={value_shape}"
        )
    return bmm_flop((b * h, s_q, d_q), (b * h, d_k, s_k)) + bmm_flop((b * h, s_q, s_k), (b * h, s_v, d_v))


@register_flop_formula(
    [aten._scaled_dot_product_efficient_attention, aten._scaled_dot_product_flash_attention,
     aten._scaled_dot_product_cudnn_attention]
)  # fmt: skip
def sdpa_flop(query_shape, key_shape, value_shape, *args, out_shape=None, **kwargs) -> int:
    """Attention as devices compute it in one step."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(grad_out_shape: Any, query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """Five batches of products: the weights again, gradients of values, weights, queries and keys."""
    (b, h, s_q, d_q), (_, _, s_k, _), (_, _, _, d_v) = query_shape, key_shape, value_shape
    weights, values = s_q * d_q * s_k, s_q * d_v * s_k
    return 2 * b * h * (3 * weights + 2 * values)


@register_flop_formula(
    [aten._scaled_dot_product_efficient_attention_backward, aten._scaled_dot_product_flash_attention_backward,
     aten._scaled_dot_product_cudnn_attention_backward]
)  # fmt: skip
def sdpa_backward_flop(
    grad_out_shape, query_shape, key_shape, value_shape, *args, out_shape=None, **kwargs
) -> int:
    """The gradient of attention as devices compute it in one step."""
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)


class FlopCounterMode(TorchDispatchMode):
    """Counts what matrix products and convolutions inside it compute, forward and backward.

    >>> from rushlight.utils.flop_counter import FlopCounterMode
    >>> with FlopCounterMode(display=False) as counter:
    ...     _ = rushlight.ones(2, 3) @ rushlight.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict | None = None
    ) -> None:
        super().__init__()
        if mods is not None:
            import warnings

            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict] = defaultdict(lambda: defaultdict(int))
        own = {
            op: formula if getattr(formula, "_get_raw", False) else shape_wrapper(formula)
            for op, formula in (custom_mapping or {}).items()
        }
        self.flop_registry = {**flop_registry, **own}
        self.mod_tracker = ModuleTracker()

    def get_total_flops(self) -> int:
        """All of them."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict]:
        """By module (all together: "Global") and operation."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """A text table of the counts per module, down to a depth."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        unit = get_suffix_str(total)

        def row(name, count):
            return name, convert_num_with_suffix(count, unit), convert_to_percent_str(count, total)

        rows = [("Module", "FLOP", "% Total")]
        for name in ["Global", *sorted(set(self.flop_counts) - {"Global"})]:
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth or name not in self.flop_counts:
                continue
            counts = self.flop_counts[name]
            rows.append(row(" " * level + name, sum(counts.values())))
            rows += [row(" " * level + f" - {op}", count) for op, count in counts.items()]
        widths = [max(len(cells[i]) for cells in rows) for i in range(3)]
        rows.insert(1, ("-" * widths[0], "-" * widths[1], "-" * widths[2]))
        return "\n".join(f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows)

    def __enter__(self) -> Any:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        packet = func.overloadpacket
        if packet in self.flop_registry:
            count = self.flop_registry[packet](*args, **kwargs, out_val=result)
            for name in self.mod_tracker.parents:
                self.flop_counts[name][packet] += count
        return result
