"""Counting the floating-point operations of a block of code, by operation and by module."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from rushlight import _C, ops
from rushlight.utils._python_dispatch import TorchDispatchMode

__all__ = ["FlopCounterMode", "register_flop_formula"]

aten = ops.aten
flop_registry: dict[Any, Any] = {}


def _shapes(value: Any) -> Any:
    if isinstance(value, _C.Tensor):
        return value.shape
    return type(value)(map(_shapes, value)) if isinstance(value, (tuple, list)) else value


def _of_shapes(formula: Callable) -> Callable:
    """A formula of sizes as one of tensors; `out_shape` is the size of the result."""

    @functools.wraps(formula)
    def counted(*args, out_val=None, **kwargs):
        kwargs = {name: _shapes(value) for name, value in kwargs.items()}
        return formula(*map(_shapes, args), out_shape=_shapes(out_val), **kwargs)

    return counted


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable:
    """A decorator that says how the operations of `targets` are counted: by a function of the sizes of their
    arguments and of `out_shape`, or (get_raw) of the arguments themselves and `out_val`."""

    def register(formula: Callable) -> Callable:
        counted = formula if get_raw else _of_shapes(formula)
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = counted
        return formula

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


@register_flop_formula(aten.convolution, get_raw=True)
def conv_flop(x, weight, bias, stride, padding, dilation, transposed, *args, out_val=None, **kwargs) -> int:
    """A convolution, transposed or not."""
    return conv_flop_count(x.shape, weight.shape, out_val.shape, transposed)


@register_flop_formula(aten.convolution_backward, get_raw=True)
def conv_backward_flop(
    grad, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask,
    out_val=None,
) -> int:  # fmt: skip
    """The gradient of the input counts as the convolution itself. That of the weight counts as a convolution
    of all channels with all others, as torch has it, also where there are groups."""
    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad.shape, weight.shape, x.shape, not transposed)
    if output_mask[1]:
        seen, moved = (grad, x) if transposed else (x, grad)
        channels = seen.shape[1] * moved.shape[1]
        count += 2 * x.shape[0] * channels * _product(weight.shape[2:]) * _product(moved.shape[2:])
    return count


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
        self.flop_counts: dict[str, dict] = {}
        own = {
            op: formula if getattr(formula, "_get_raw", False) else _of_shapes(formula)
            for op, formula in (custom_mapping or {}).items()
        }
        self.flop_registry = {**flop_registry, **own}
        self._inside: list[str] = []
        self._handles: list = []

    def get_total_flops(self) -> int:
        """All of them."""
        return sum(self.flop_counts["Global"].values()) if "Global" in self.flop_counts else 0

    def get_flop_counts(self) -> dict[str, dict]:
        """By module (all together: "Global") and operation."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """A text table of the counts per module, down to a depth."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        unit = next((i for i, limit in enumerate((1e3, 1e6, 1e9, 1e12)) if total < limit), 4)

        def row(name, count):
            text = f"{count / 1000**unit:.3f}{('', 'K', 'M', 'B', 'T')[unit]}" if unit else str(count)
            return name, text, f"{count / total * 100 if total else 0:.2f}%"

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
        from rushlight.nn.modules.module import (  # type: ignore[import-not-found]
            register_module_forward_hook,
            register_module_forward_pre_hook,
        )

        self.flop_counts = {}
        self._inside = []
        self._names: dict = {}
        self._handles = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module),
        ]
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        for handle in self._handles:
            handle.remove()
        if self.display:
            print(self.get_table(self.depth))

    def _name(self, module: Any) -> str:
        if module not in self._names:
            top = type(module).__name__
            for name, child in module.named_modules():
                self._names.setdefault(child, f"{top}.{name}" if name else top)
        return self._names[module]

    def _enter_module(self, module: Any, inputs: Any) -> None:
        self._inside.append(self._name(module))
        self._in_backward(inputs, self._name(module), leaving=True)

    def _leave_module(self, module: Any, inputs: Any, outputs: Any) -> None:
        name = self._name(module)
        if name in self._inside:
            self._inside.remove(name)
        self._in_backward(outputs if isinstance(outputs, (tuple, list)) else (outputs,), name, leaving=False)

    def _in_backward(self, tensors: Any, name: str, leaving: bool) -> None:
        """A module's backward begins with a gradient of its outputs and ends with those of its inputs."""
        from rushlight.autograd.graph import register_multi_grad_hook

        wanted = [x for x in tensors if isinstance(x, _C.Tensor) and x.requires_grad]
        if not wanted:
            return

        def leave(*grads):
            if name in self._inside:
                self._inside.remove(name)

        def enter(*grads):
            if name not in self._inside:
                self._inside.append(name)

        if leaving:
            self._handles.append(register_multi_grad_hook(wanted, leave))
        else:
            self._handles.append(register_multi_grad_hook(wanted, enter, mode="any"))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        packet = func.overloadpacket
        if packet in self.flop_registry:
            count = self.flop_registry[packet](*args, **kwargs, out_val=result)
            for name in {"Global", *self._inside}:
                self.flop_counts.setdefault(name, defaultdict(int))[packet] += count
        return result
