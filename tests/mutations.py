"""Sample calls with one or two arguments changed: bad input that is nearly good.

`mutated_calls` walks the table of samples in an order that a seed fixes, and changes arguments: to another
dtype, an empty or an expanded tensor, one dimension more or fewer, an index that is far out, a number of
another kind, or something that is no argument at all. The calls are the same for Rushlight and for torch, so
that test_mutations.py can ask what must always hold and torch/test_mutations.py what torch says.
"""

import random

from samples import OPS
from sampling import DTYPES, build, dtype_names

# Results that depend on a generator or on memory that was never written; polynomials of degree 2**62.
LEFT_OUT = ("polynomial", "rand", "empty", "normal", "bernoulli", "dropout", "exponential", "cauchy",
            "geometric", "poisson", "multinomial", "uniform", "random", "rrelu", "data_ptr", "set_",
            "storage", "resize_", "new_tensor")  # fmt: skip
NUMBERS = (0, 1, -1, 2, 3, -2, 5, 64, 65, -(2**31), 2**62, 2**63 - 1, -(2**63), 2**64, 0.5, 1.5, -1.0,
           float("nan"), float("inf"), 1e300, 1j, True, False)  # fmt: skip
WORDS = ("mean", "none", "constant", "reflect", "nearest", "ij,jk->ik", "amax", "x", "same", "floor", "cpu")


class Mutator:
    def __init__(self, library, seed):
        self.torch, self.rng = library, random.Random(seed)

    def tensor(self):
        torch, rng = self.torch, self.rng
        shape = [rng.choice((0, 1, 2, 3, 3, 4, 5)) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4)))]
        t = torch.arange(-3, 4).repeat(200)[: max(1, _product(shape))].to(getattr(torch, rng.choice(DTYPES)))
        return (t if _product(shape) else t[:0]).reshape(shape)

    def argument(self, depth=0):
        """Anything."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.45:
            return self.tensor()
        if kind < 0.65:
            return rng.choice((0, 1, 2, 3, -1, -2, 4))
        if kind < 0.77:
            return rng.choice(NUMBERS)
        if kind < 0.87:
            return tuple(rng.choice((0, 1, 2, 3, -1, -2)) for _ in range(rng.choice((1, 2, 3, 4))))
        if kind < 0.9 and depth < 2:
            return [self.argument(depth + 1) for _ in range(rng.choice((0, 1, 2, 3)))]
        return rng.choice(
            (None, getattr(self.torch, rng.choice(DTYPES)), rng.choice(WORDS), slice(1, -1), ..., {}, True)
        )

    def changed(self, t):
        """A tensor nearly like `t`."""
        rng, t = self.rng, t.detach()
        at, first = rng.random(), rng.random() < 0.5
        if at < 0.15:
            return t.to(getattr(self.torch, rng.choice(DTYPES)))
        if at < 0.25 and t.dim():
            return t[:0] if first else t[..., :0]
        if at < 0.35:
            return t.unsqueeze(0 if first else -1)
        if at < 0.45 and t.dim() and t.size(0):
            return t[0]
        if at < 0.6 and t.dim() > 1:
            return t.transpose(0, -1)
        if at < 0.7 and t.dim() and t.size(-1):
            return t[..., ::2]
        if at < 0.8 and t.dtype == self.torch.int64:
            return t * rng.choice((-1, 1000, 2**40, 2**62))
        return t.expand(rng.choice((2, 3)), *t.shape) if at < 0.9 else t.reshape(-1)

    def replaced(self, value):
        """What an argument becomes."""
        rng = self.rng
        tensor = isinstance(value, self.torch.Tensor)
        if isinstance(value, (list, tuple)) and value and rng.random() < 0.8:
            several = list(value)
            several[rng.randrange(len(several))] = self.replaced(rng.choice(several))
            return several if type(value) is list else tuple(several)
        if tensor and rng.random() < 0.8:
            return self.changed(value)
        return rng.choice((self.argument(), rng.choice(NUMBERS), rng.choice((0, 1, 2, -1))))

    def mutate(self, args, kwargs):
        """Changes one or two of the arguments, in place."""
        for _ in range(self.rng.choice((1, 1, 1, 2))):
            if args and (not kwargs or self.rng.random() < 0.75):
                at = self.rng.randrange(len(args))
                args[at] = self.replaced(args[at])
            elif kwargs:
                name = self.rng.choice(list(kwargs))
                kwargs[name] = self.replaced(kwargs[name])


def _product(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def mutated_calls(library, seed, count):
    """`count` tuples of what a call is (for messages), its function, arguments and keywords."""
    ops = [op for op in OPS.values() if not any(word in op.name for word in LEFT_OUT)]
    for number in range(count):
        mutator = Mutator(library, seed * 100_003 + number)
        rng = mutator.rng
        op = rng.choice(ops)
        dtype = rng.choice(dtype_names(op.dtypes))
        samples = list(op.for_dtype(dtype))
        if not samples:
            continue
        args, kwargs = build(library, rng.choice(samples), dtype)
        args, kwargs = list(args), dict(kwargs)
        mutator.mutate(args, kwargs)
        if rng.random() < 0.5:
            args = [_differentiable(library, value) for value in args]
        told = [*map(described, args), *(f"{name}={described(value)}" for name, value in kwargs.items())]
        yield f"call {number}: {op.name}({', '.join(told)})", op.function(library), args, kwargs


def _differentiable(library, value):
    fits = isinstance(value, library.Tensor) and (value.dtype.is_floating_point or value.dtype.is_complex)
    return value.detach().requires_grad_() if fits else value


def described(value):
    """An argument in the words that are the same for both libraries."""
    if hasattr(value, "dtype"):
        return f"{str(value.dtype).rpartition('.')[2]}{tuple(value.shape)} by {tuple(value.stride())}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(map(described, value))})"
    return repr(value).replace("rushlight", "torch")[:80]
