"""What a sample is, and how to make one real in a library.

A `Sample` describes a call without naming a library: its tensors are `Input`s, plain descriptions whose
numbers come from a seed. `build` turns it into arguments for Rushlight or for torch, in any dtype and memory
layout, so that both get the same numbers. The table of samples is in samples.py; read `Op` for what an entry
there can say.
"""

import math
import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

FLOATS = ("float32", "float64", "float16", "bfloat16")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8")
DTYPES = (*FLOATS, *COMPLEX, *INTEGERS, "bool")
GROUPS = {
    "f": FLOATS,
    "s": ("float32", "float64"),
    "h": ("float16",),
    "c": COMPLEX,
    "i": INTEGERS,
    "z": INTEGERS[:-1],
    "b": ("bool",),
}

LAYOUTS = ("transposed", "strided", "offset", "expanded")
# What only the comparison of strides with torch's runs through.
MORE_LAYOUTS = (
    "matrices",
    "channels_last",
    "rotated",
    "padded",
    "expanded_last",
    "odd_ones",
    "spaced_channels",
)


def dtype_names(groups: str) -> tuple[str, ...]:
    """The dtypes of a string such as "fc": f floating (or s: single and double, h: half), c complex,
    i integers (z: signed ones), b bool."""
    return tuple(name for letter in groups for name in GROUPS[letter])


@dataclass(frozen=True)
class Input:
    """A tensor of a sample.

    Without `dtype` it takes the dtype under test and can be differentiated; with one, that is its dtype (an
    index, a mask). Numbers are drawn between `low` and `high`, at least 0.05 away from each of `avoid`
    (kinks, poles); `distinct` ones are evenly spaced, so that no maximum is tied. `values` gives the numbers
    outright.
    """

    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0
    avoid: tuple[float, ...] = ()
    distinct: bool = False
    values: tuple[Any, ...] | None = None
    dtype: str | None = None
    grad: bool = True
    seed: str = ""

    @property
    def differentiable(self) -> bool:
        return self.grad and self.dtype is None

    def numbers(self, dtype: str) -> list[Any]:
        """The elements in order, as Python numbers of the right kind."""
        count = math.prod(self.shape)
        if self.values is not None:
            return [_number(value, dtype) for value in self.values]
        rng = random.Random(zlib.crc32(self.seed.encode()))
        if dtype == "bool":
            return [True if 0.0 in self.avoid else rng.random() < 0.5 for _ in range(count)]
        if dtype in INTEGERS:
            return self._integers(rng, count, dtype)
        if dtype in COMPLEX:
            reals, imags = self._floats(rng, count), self._floats(rng, count)
            return [complex(real, imag) for real, imag in zip(reals, imags)]
        return self._floats(rng, count)

    def _floats(self, rng: random.Random, count: int) -> list[float]:
        if self.distinct:
            step = (self.high - self.low) / max(count, 1)
            numbers = [self.low + step * (place + 0.5) for place in range(count)]
            rng.shuffle(numbers)
            return [number + 0.1 * step if self._near(number) else number for number in numbers]
        numbers = []
        while len(numbers) < count:
            number = rng.uniform(self.low, self.high)
            if not self._near(number):
                numbers.append(number)
        return numbers

    def _near(self, number: float) -> bool:
        return any(abs(number - kink) < 0.05 for kink in self.avoid)

    def _integers(self, rng: random.Random, count: int, dtype: str) -> list[int]:
        low = max(math.ceil(self.low), 0) if dtype == "uint8" else math.ceil(self.low)
        high = max(math.floor(self.high), low + 1)
        if self.distinct:
            numbers = list(range(low, low + count))
            rng.shuffle(numbers)
            return numbers
        choices = [number for number in range(low, high + 1) if number not in self.avoid]
        return [rng.choice(choices) for _ in range(count)]


def _number(value: Any, dtype: str) -> Any:
    if dtype == "bool":
        return bool(value)
    return int(value) if dtype in INTEGERS else value


@dataclass(frozen=True)
class Of:
    """An argument that only a library can make: `Of(lambda lib: lib.float64)`."""

    make: Callable[[Any], Any]


@dataclass(frozen=True)
class Sample:
    """One call. `dtypes` narrows those of the operation; `grad` is False where it has no derivative."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    dtypes: str | None = None
    grad: bool = True

    def inputs(self) -> list[Input]:
        found: list[Input] = []
        map_inputs(found.append, (self.args, self.kwargs))
        return found

    def __str__(self) -> str:
        parts = [_describe(arg) for arg in self.args]
        parts += [f"{name}={_describe(value)}" for name, value in self.kwargs.items()]
        return f"({', '.join(parts)})"


def _describe(value: Any) -> str:
    if isinstance(value, Input):
        return f"<{value.dtype or 'x'}{list(value.shape)}>"
    if isinstance(value, (list, tuple)) and any(isinstance(item, (Input, list, tuple)) for item in value):
        return "[" + ", ".join(map(_describe, value)) + "]"
    return repr(value)


def call(*args: Any, only: str | None = None, nograd: bool = False, **kwargs: Any) -> Sample:
    """A sample: the arguments of the call, and `only` the dtypes it is meant for."""
    return Sample(args, kwargs, only, not nograd)


@dataclass(frozen=True)
class Op:
    """An operation of the public interface and what is true of it.

    `name` is the path below the library ("add", "nn.functional.relu", "Tensor.view"). `dtypes` lists those
    it supports, any other must raise if `strict`; `grad` those it can be differentiated in. `inplace` says
    that a method with an underscore exists, or for which dtypes; `method` that `x.name(...)` means the same
    as the function. `reference` is the same operation on Python numbers, element by element. `run` makes
    the function of a library where the path does not. `covers` names primitives that these samples exercise
    besides the one of the same name.
    """

    name: str
    samples: tuple[Sample, ...]
    dtypes: str = "fcib"
    grad: str = "fc"
    second: bool = True
    inplace: bool | str = False
    method: bool = True
    view: bool = False
    reference: Callable[..., Any] | None = None
    covers: tuple[str, ...] = ()
    tolerance: float = 1.0
    same_strides: bool = True
    strict: bool = True
    layouts: tuple[str, ...] = LAYOUTS
    run: Callable[[Any], Callable[..., Any]] | None = None

    def function(self, lib: Any) -> Callable[..., Any]:
        """The operation in a library."""
        if self.run is not None:
            return self.run(lib)
        if self.name.startswith("Tensor."):
            name = self.name.removeprefix("Tensor.")
            return lambda tensor, *args, **kwargs: getattr(tensor, name)(*args, **kwargs)
        found = lib
        for part in self.name.split("."):
            found = getattr(found, part)
        return found

    def for_dtype(self, dtype: str) -> Iterator[Sample]:
        for sample in self.samples:
            if sample.dtypes is None or dtype in dtype_names(sample.dtypes):
                yield sample


def map_inputs(function: Callable[[Input], Any], tree: Any) -> Any:
    """The tree of arguments with every `Input` replaced by what `function` makes of it."""
    if isinstance(tree, Input):
        return function(tree)
    if type(tree) in (list, tuple):
        return type(tree)(map_inputs(function, item) for item in tree)
    if type(tree) is dict:
        return {name: map_inputs(function, item) for name, item in tree.items()}
    return tree


def seeded(name: str, samples: list[Sample]) -> tuple[Sample, ...]:
    """Give every input numbers of its own that never change while the table around it does."""
    result = []
    for number, sample in enumerate(samples):
        places = iter(range(1000))
        seed = lambda item, number=number, places=places: replace(
            item, seed=f"{name}/{number}/{next(places)}"
        )
        args, kwargs = map_inputs(seed, (sample.args, sample.kwargs))
        result.append(replace(sample, args=args, kwargs=kwargs))
    return tuple(result)


def nest(numbers: list[Any], shape: tuple[int, ...]) -> Any:
    """A flat list as nested lists of the given shape."""
    if not shape:
        return numbers[0]
    if len(shape) == 1:
        return numbers
    step = math.prod(shape[1:])
    return [nest(numbers[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def make_tensor(lib: Any, item: Input, dtype: str, layout: str = "contiguous") -> Any:
    """The tensor that an input describes."""
    dtype = item.dtype or dtype
    if math.prod(item.shape) == 0:
        tensor = lib.empty(item.shape, dtype=getattr(lib, dtype))
    else:
        tensor = lib.tensor(nest(item.numbers(dtype), item.shape), dtype=getattr(lib, dtype))
    if layout == "contiguous" or not item.shape:
        return tensor
    if layout == "transposed":
        dims = tuple(reversed(range(len(item.shape))))
        return tensor.permute(dims).contiguous().permute(dims)
    if layout == "strided":
        return lib.empty((*item.shape, 2), dtype=tensor.dtype).select(-1, 0).copy_(tensor)
    if layout == "offset":
        return (
            lib.empty((item.shape[0] + 1, *item.shape[1:]), dtype=tensor.dtype)
            .narrow(0, 1, item.shape[0])
            .copy_(tensor)
        )
    if layout == "expanded":
        return tensor if item.dtype or not item.shape[0] else tensor.narrow(0, 0, 1).expand(item.shape)
    return tensor if item.dtype and layout == "expanded_last" else _further_layout(tensor, layout)


def _permuted(tensor: Any, order: tuple[int, ...], spaced: bool = False) -> Any:
    """The same numbers with memory in this order of dimensions, the last one fastest."""
    dense = tensor.permute(order).contiguous()
    if spaced:
        dense = dense.new_zeros((*dense.shape, 2)).select(-1, 0).copy_(dense)
    return dense.permute([order.index(dim) for dim in range(len(order))])


def _further_layout(tensor: Any, layout: str) -> Any:
    shape, dims = tuple(tensor.shape), tensor.dim()
    channels_last = (0, *range(2, dims), 1) if dims > 2 else tuple(range(dims))
    if layout == "matrices":
        return tensor.mT.contiguous().mT if dims > 1 else tensor
    if layout == "channels_last":
        return _permuted(tensor, channels_last)
    if layout == "spaced_channels":
        return _permuted(tensor, channels_last, spaced=True)
    if layout == "rotated":
        return _permuted(tensor, (*range(1, dims), 0))
    if layout == "padded":
        longer = tensor.new_zeros((*shape[:-1], shape[-1] + 3))
        return longer.narrow(-1, 1, shape[-1]).copy_(tensor)
    if layout == "expanded_last":
        return tensor.narrow(-1, 0, 1).expand(shape) if shape[-1] else tensor
    if layout == "odd_ones":  # the stride of a dimension of size one means nothing, and may be anything
        strides = [7 * step + 3 if size == 1 else step for step, size in zip(tensor.stride(), shape)]
        return tensor.as_strided(shape, strides)
    raise ValueError(f"no layout {layout!r}")


def build(
    lib: Any, sample: Sample, dtype: str, layout: str = "contiguous", leaves: Any = None, copy: bool = False
) -> Any:
    """The sample's (args, kwargs) in a library. With `leaves`, a list, differentiable inputs require grad
    and are appended to it. With `copy`, tensors are made contiguous in the end."""

    def make(item: Input) -> Any:
        tensor = make_tensor(lib, item, dtype, layout)
        if copy:
            tensor = tensor.contiguous()
        if leaves is not None and item.differentiable:
            tensor = tensor.detach().requires_grad_()
            leaves.append(tensor)
        return tensor

    return resolve(lib, map_inputs(make, (sample.args, sample.kwargs)))


def resolve(lib: Any, tree: Any) -> Any:
    """The tree of arguments with every `Of` made."""
    if isinstance(tree, Of):
        return tree.make(lib)
    if type(tree) in (list, tuple):
        return type(tree)(resolve(lib, item) for item in tree)
    if type(tree) is dict:
        return {name: resolve(lib, item) for name, item in tree.items()}
    return tree


def tensors_in(lib: Any, result: Any) -> list[Any]:
    """The tensors of a result, whatever they are packed in."""
    if isinstance(result, lib.Tensor):
        return [result]
    if isinstance(result, (list, tuple)):
        return [tensor for item in result for tensor in tensors_in(lib, item)]
    return []
