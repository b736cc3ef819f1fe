"""torch.quasirandom: the Sobol sequence, scrambled or not, with torch's numbers.

The direction numbers are those of S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better
two-dimensional projections", SIAM J. Sci. Comput. 30, 2635-2654 (2008): a table of 21201 dimensions.
`_joe_kuo.bin` holds it, compressed, under the licence beside it; `direction_numbers` unfolds it into the
state that an engine draws from.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight._type_names import type_name as class_name

BITS = 30
_LARGEST = 21201


@functools.cache
def _table() -> tuple[Tensor, list[Tensor]]:
    """The polynomials of dimensions 2 ... 21201, and for i = 1 ... 18 the initial numbers m_i.

    The file is a list of numbers, their low bytes first, then the middle ones, then the high ones: all
    polynomials (the highest bit is their degree, and degrees ascend), then all m_1, then m_2 of those whose
    degree is at least 2 ...
    """
    import pathlib
    import zlib

    data = zlib.decompress(pathlib.Path(__file__).with_name("_joe_kuo.bin").read_bytes())
    planes = rushlight.frombuffer(bytearray(data), dtype=rushlight.uint8).view(3, -1).long()
    numbers = planes[0] | planes[1] << 8 | planes[2] << 16
    count = _LARGEST - 1
    polynomials, rest = numbers[:count], numbers[count:]
    initial = []
    for i in range(1, 19):
        present = int((polynomials >> i > 0).sum())
        initial.append(rushlight.cat([rest.new_zeros(count - present), rest[:present]]))
        rest = rest[present:]
    return polynomials, initial


def direction_numbers(dimension: int) -> Tensor:
    """The first `dimension` rows of direction numbers, each a fraction of 30 bits."""
    polynomials, initial = _table()
    polynomials = polynomials[: dimension - 1]
    rows = rushlight.zeros(dimension, BITS, dtype=rushlight.int64)
    rows[0] = 1 << rushlight.arange(BITS - 1, -1, -1)
    first = 0
    for degree in range(1, 19):
        last = int((polynomials >> degree + 1 == 0).sum())
        if last == first:
            continue
        terms = polynomials[first:last]
        columns = [initial[j][first:last] << BITS - 1 - j for j in range(degree)]
        for j in range(degree, BITS):
            column = columns[j - degree] ^ columns[j - degree] >> degree
            for k in range(1, degree):
                column = column ^ (terms >> degree - k & 1) * columns[j - k]
            columns.append(column)
        rows[first + 1 : last + 1] = rushlight.stack(columns, 1)
        first = last
    return rows


def _gray(number: Any) -> Any:
    return number ^ number >> 1


class SobolEngine:
    """A source of points that fill the unit cube [0, 1)^dimension more evenly than random ones.

    `scramble=True` applies a random lower triangular matrix and a random shift to the bits (Owen's scrambling
    as Matousek simplified it), drawn from a generator with `seed`, or from the default one.

    >>> import rushlight
    >>> rushlight.quasirandom.SobolEngine(dimension=2).draw(3).tolist()
    [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25]]
    """

    MAXBIT = BITS
    MAXDIM = _LARGEST

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = direction_numbers(operator.index(dimension))
        if scramble:
            self._scramble()
        else:
            self.shift = rushlight.zeros(dimension, dtype=rushlight.int64)
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def _scramble(self) -> None:
        generator = None if self.seed is None else rushlight.Generator().manual_seed(self.seed)
        bits = rushlight.arange(self.MAXBIT)
        shift = rushlight.randint(2, (self.dimension, self.MAXBIT), generator=generator)
        self.shift = (shift << bits).sum(1)
        matrix = rushlight.randint(2, (self.dimension, self.MAXBIT, self.MAXBIT), generator=generator).tril(
            -1
        )
        highest_first = bits.flip(0)
        scrambled = self.sobolstate.clone()  # the unit diagonal
        for row in range(1, self.MAXBIT):
            # Bit `row` of the product: the parity of the bits above it that this row of the matrix selects.
            selected = (matrix[:, row] << highest_first).sum(1)[:, None] & self.sobolstate
            scrambled ^= _parity(selected) << int(highest_first[row])
        self.sobolstate = scrambled

    def _points(self, n: int, first: int, dtype: rushlight.dtype) -> Tensor:
        """The points numbered first + 1 ... first + n; leaves the last one's bits in `quasi`."""
        if dtype not in (rushlight.float32, rushlight.float64):
            name = {rushlight.float16: "Half", rushlight.bfloat16: "BFloat16", rushlight.int64: "Long"}
            raise NotImplementedError(
                f"\"_sobol_engine_draw\" not implemented for '{name.get(dtype, str(dtype)[6:].capitalize())}'"
            )
        if n <= 0:
            return rushlight.empty(n, self.dimension, dtype=dtype)
        self._check_range(first + n)
        # The bits of point i are linear in those of i: a block of 2**low points is one of them combined
        # with each of the first block, so that almost all points cost one operation and not one for each bit.
        low = n.bit_length() // 2
        block = self._combined(rushlight.arange(2**low))
        starts = self._combined(rushlight.arange(first + 1 >> low, (first + n >> low) + 1) << low)
        points = (starts[:, None] ^ self._combined(rushlight.tensor([first])) ^ self.quasi) ^ block
        points = points.flatten(0, 1).narrow(0, first + 1 & 2**low - 1, n)
        self.quasi = points[-1].clone()
        return points.to(dtype) * 2.0**-self.MAXBIT

    def _combined(self, numbers: Tensor) -> Tensor:
        """The direction numbers that the bits of each number's Gray code select, combined."""
        points = rushlight.zeros(len(numbers), self.dimension, dtype=rushlight.int64)
        selected = _gray(numbers)
        for bit in range(int(selected.max()).bit_length()):
            points ^= (selected >> bit & 1)[:, None] * self.sobolstate[:, bit]
        return points

    def _check_range(self, last: int) -> None:
        if last >= 2**self.MAXBIT:
            raise RuntimeError(
                f"A Sobol sequence of {self.MAXBIT} bits has no more than 2**{self.MAXBIT} points"
            )

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: rushlight.dtype | None = None) -> Tensor:
        """The next `n` points, as an n x dimension tensor of `dtype` (the default one, or float64).

        >>> import rushlight
        >>> engine = rushlight.quasirandom.SobolEngine(1)
        >>> engine.draw(2).tolist(), engine.draw(2).tolist()
        ([[0.0], [0.5]], [[0.75], [0.25]])
        """
        dtype = dtype or rushlight.get_default_dtype()
        try:
            n = operator.index(n)
        except TypeError:
            raise TypeError(
                f"_sobol_engine_draw(): argument 'n' (position 2) must be int, not {class_name(n)}"
            ) from None
        if self.num_generated:
            result = self._points(n, self.num_generated - 1, dtype)
        elif n == 1:
            result = self._first_point.to(dtype)
        else:
            result = rushlight.cat([self._first_point.to(dtype), self._points(n - 1, 0, dtype)])
        self.num_generated += n
        return result if out is None else out.resize_as_(result).copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: rushlight.dtype | None = None) -> Tensor:
        """The next 2**m points; refuses where the points so far and these are not a power of two together.

        >>> import rushlight
        >>> rushlight.quasirandom.SobolEngine(1).draw_base2(2).tolist()
        [[0.0], [0.5], [0.75], [0.25]]
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. "
                "If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Starts again from the first point, with the same scrambling."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leaves out the next `n` points, at the cost of one.

        >>> import rushlight
        >>> rushlight.quasirandom.SobolEngine(1).fast_forward(2).draw(2).tolist()
        [[0.75], [0.25]]
        """
        first, steps = (self.num_generated - 1, n) if self.num_generated else (0, n - 1)
        if steps > 0:
            self._check_range(first + steps)
            before, after = self._combined(rushlight.tensor([first, first + steps]))
            self.quasi = self.quasi ^ before ^ after
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        text = f"dimension={self.dimension}"
        if self.scramble:
            text += ", scramble=True"
        if self.seed is not None:
            text += f", seed={self.seed}"
        return f"{type(self).__name__}({text})"


def _parity(numbers: Tensor) -> Tensor:
    for shift in (16, 8, 4, 2, 1):
        numbers = numbers ^ numbers >> shift
    return numbers & 1
