"""How a tensor prints: digit for digit, bracket for bracket as torch prints it.

Only the elements that will be shown leave the tensor, as one Python list; the rest is string work. Start with
`tensor_str`, then `_float_strings`, where the choice between `1.`, `1.0000` and `1.0000e+00` is made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain

import rushlight
from rushlight import _C
from rushlight._annotations import Any
from rushlight._deferred import contextmanager
from rushlight._unstored import Unstored

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


class _Options:
    """The settings of `set_printoptions`; one object, changed in place."""

    __slots__ = ("edgeitems", "linewidth", "precision", "sci_mode", "threshold")

    def __init__(self) -> None:
        self.precision: int = 4
        self.threshold: float = 1000
        self.edgeitems: int = 3
        self.linewidth: int = 80
        self.sci_mode: bool | None = None


_options = _Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print, for the whole process.

    `precision` is the number of digits after the point (4), `threshold` the number of elements above which
    the middle is left out (1000), `edgeitems` how many are then shown at either end of each dimension (3),
    `linewidth` where lines break (80). `profile` resets these four to "default", "short" or "full" before the
    others apply. `sci_mode` forces scientific notation on or off; None, also when not given, lets the values
    decide.

    >>> rushlight.set_printoptions(precision=2)
    >>> rushlight.tensor([1.12345])
    tensor([1.12])
    >>> rushlight.set_printoptions(profile="default")
    """
    new = next((dict(values) for name, values in _PROFILES.items() if profile == name), {})
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    new |= {name: value for name, value in given.items() if value is not None}
    for name, value in new.items():
        setattr(_options, name, value)
    _options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """Return the current settings as the keyword arguments that `set_printoptions` takes."""
    return {
        "precision": _options.precision,
        "threshold": _options.threshold,
        "edgeitems": _options.edgeitems,
        "linewidth": _options.linewidth,
        "sci_mode": _options.sci_mode,
    }


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Set print options for the duration of a `with` block."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


def tensor_str(tensor: Any, *, tensor_contents: str | None = None) -> str:
    """Return what `repr(tensor)` shows; `tensor_contents` replaces the elements. Modes are not told."""
    modes = _C.set_dispatch_mode(False)
    try:
        return _shown(tensor, tensor_contents)
    finally:
        _C.set_dispatch_mode(modes)


def _shown(tensor: Any, tensor_contents: str | None) -> str:
    kind = tensor.__class__
    plain = kind is rushlight.Tensor or kind is rushlight.nn.Parameter
    prefix = "tensor(" if plain else kind.__name__ + "("
    dtype = tensor.dtype
    shape = tensor.shape
    count = tensor.numel()
    suffixes = []

    device = tensor.device
    if device.type != "cpu":
        suffixes.append(f"device='{device}'")
    if device.type == "meta":
        contents = "..."
        suffixes.append(f"size={tuple(shape)}")
        dtype_is_implied = dtype == rushlight.get_default_dtype()
    elif count == 0:
        contents = "[]"
        if len(shape) != 1:
            suffixes.append(f"size={tuple(shape)}")
        dtype_is_implied = dtype == rushlight.get_default_dtype()
    else:
        if not _options.edgeitems:
            suffixes.append(f"size={tuple(shape)}")
        if tensor_contents is None:
            summarize = count > _options.threshold and len(shape) > 0
            held = tensor.memory() if isinstance(tensor, Unstored) else tensor
            held = held.clone() if _C.is_zero_for_good(held) else held
            contents = _contents(held, shape, dtype, summarize, len(prefix))
        dtype_is_implied = _reads_back_as(dtype)
    if tensor_contents is not None:
        contents = tensor_contents
    if not dtype_is_implied:
        suffixes.append(f"dtype={dtype}")
    if tensor.layout is not rushlight.strided:
        suffixes.append(f"layout={tensor.layout}")

    suffixes += _derivatives(tensor)
    text = _append(prefix + contents, suffixes, len(prefix)) if suffixes else prefix + contents
    if not plain and isinstance(tensor, rushlight.nn.Parameter):
        return f"Parameter({text}))"
    return text + ")"


def _derivatives(tensor: Any) -> list[str]:
    """What there is to be said of a tensor's history and tangent."""
    said = []
    try:
        if tensor.grad_fn is not None:
            said.append(f"grad_fn=<{_node_name(tensor.grad_fn)}>")
        elif tensor.requires_grad:
            said.append("requires_grad=True")
    except RuntimeError:  # a view whose base was written behind its back
        said.append("grad_fn=<Invalid>")
    tangent = _C.tangent(tensor) if _C._is_fwd_grad_enabled() else None
    return said if tangent is None else [*said, f"tangent={tangent}"]


def _node_name(node: Any) -> str:
    name = type(node).__name__
    return node.name().rsplit("::", 1)[-1] if name == "CppFunction" else name


def _reads_back_as(dtype: Any) -> bool:
    """Whether `tensor(...)` of the printed elements would have this dtype, so that it need not be said."""
    if dtype.is_complex:
        wide = rushlight.get_default_dtype() == rushlight.float64
        return dtype == (rushlight.complex128 if wide else rushlight.complex64)
    return dtype == rushlight.get_default_dtype() or dtype == rushlight.int64 or dtype == rushlight.bool


def _append(text: str, suffixes: list[str], indent: int, new_line: bool = False) -> str:
    # A line counts one column more than it shows: torch does so, and where lines break must agree.
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if new_line or column + len(suffix) + 2 > _options.linewidth:
            new_line = False
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text


def _contents(tensor: Any, shape: Any, dtype: Any, summarize: bool, indent: int) -> str:
    if summarize and not _options.edgeitems:
        return "[...]"
    # Past any subclass, whose __torch_function__ may do anything.
    values = _C.detach(tensor)
    if type(values) is not rushlight.Tensor:
        values = _C.as_subclass(values, rushlight.Tensor)
    nested = _corners(values, shape) if summarize else _C.tolist(values)
    flat: list[Any] = [nested]
    for _ in shape:
        flat = list(chain.from_iterable(flat))

    if dtype.is_complex:
        strings, width = _complex_strings(flat)
    elif dtype.is_floating_point:
        if dtype == _C.float8_e8m0fnu:  # which has no 0: it is what 0 becomes
            flat = [0.0 if value == 2.0**-127 else value for value in flat]
        strings, width = _float_strings(flat)
    else:
        strings = [str(value) for value in flat]
        width = max(map(len, strings))
    if not shape:
        return strings[0].rjust(width) if not dtype.is_complex else strings[0]
    if not dtype.is_complex:
        strings = [string.rjust(width) for string in strings]
    return _layout(iter(strings), tuple(shape), summarize, indent, width + 2)


def _corners(tensor: Any, shape: Any) -> list[Any]:
    """Nested lists of the elements that remain when the middle of every long dimension is left out."""
    edge = _options.edgeitems
    size = shape[0]
    parts = _ends(size) if size > 2 * edge else [range(size)]
    if len(shape) == 1:
        return [one for part in parts for one in _C.tolist(tensor.narrow(0, part.start, len(part)))]
    return [_corners(tensor.select(0, row), shape[1:]) for row in chain(*parts)]


def _ends(size: int) -> list[range]:
    """The places that are shown of a dimension whose middle is left out."""
    return [range(size)[: _options.edgeitems], range(size)[-_options.edgeitems :]]


def _layout(strings: Iterator[str], shape: tuple[int, ...], summarize: bool, indent: int, width: int) -> str:
    """Brackets, commas and line breaks around elements that come in order; `width` counts comma and space."""
    size = shape[0]
    edge = _options.edgeitems
    parts = _ends(size) if summarize and size > 2 * edge else [range(size)]
    if len(shape) == 1:
        items = [next(strings) for _ in chain(*parts)]
        if len(parts) > 1:
            items.insert(len(parts[0]), " ...")
        per_line = max(1, math.floor((_options.linewidth - indent) / width))
        lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    items = [_layout(strings, shape[1:], summarize, indent + 1, width) for _ in chain(*parts)]
    if len(parts) > 1:
        items.insert(len(parts[0]), "...")
    return "[" + ("," + "\n" * (len(shape) - 1) + " " * (indent + 1)).join(items) + "]"


def _float_strings(values: list[float]) -> tuple[list[str], int]:
    """Format floats alike: whole numbers as `1.`, others with `precision` digits, in scientific notation when
    the magnitudes lie far apart. The width is that of the widest finite non-zero element; zeros, infinities
    and nan must make do with it."""
    precision = _options.precision
    visible = [value for value in values if value and value - value == 0.0]
    whole = all(value == math.floor(value) for value in visible)
    scientific = False
    if visible:
        sizes = list(map(abs, visible))
        high, low = max(sizes), min(sizes)
        scientific = high / low > 1000.0 or high > 1.0e8 or (not whole and low < 1.0e-4)

        if _options.sci_mode is not None:
            scientific = _options.sci_mode

    if scientific:
        spec = f"{{:.{precision}e}}"
    elif whole:
        spec = "{:.0f}."
    else:
        spec = f"{{:.{precision}f}}"
    formatted = spec.format
    strings = [formatted(value) for value in values]
    if len(visible) == len(values):
        return strings, max(map(len, strings))
    if spec == "{:.0f}.":  # "inf." and "nan." lose the point
        strings = [s if s[-2].isdigit() else s[:-1] for s in strings]
    return strings, max([len(formatted(value)) for value in visible], default=1)


def _complex_strings(values: list[complex]) -> tuple[list[str], int]:
    """Real and imaginary parts are formatted each on its own terms and joined."""
    reals, real_width = _float_strings([value.real for value in values])
    imags, imag_width = _float_strings([value.imag for value in values])
    strings = []
    for real, imag in zip(reals, imags, strict=True):
        imag = (imag.rjust(imag_width) + "j").lstrip()
        sign = "" if imag[0] in "+-" else "+"
        strings.append(real.rjust(real_width) + sign + imag)
    return strings, real_width + imag_width + 1
