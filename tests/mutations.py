"""Sample calls with one or two arguments changed: bad input that is nearly good.

`mutated_calls` walks the table of samples in an order that a seed fixes, and changes arguments: to another
dtype, an empty, expanded or overlapping tensor, one without data, one dimension more or fewer, an index that
is far out, a number of another kind, or something that is no argument at all; and it calls the function, its
in-place form or the form with `out=`. The calls are the same for Rushlight and for torch, so that
test_mutations.py can ask what must always hold and torch/test_mutations.py what torch says.
"""

import random

import numpy
from sample_creations import CREATIONS
from samples import FAMILY_OF, OPS
from sampling import DTYPES, build, dtype_names

# Results that depend on a generator or on memory that was never written; polynomials of degree 2**62.
LEFT_OUT = ("polynomial", "rand", "empty", "normal", "bernoulli", "dropout", "exponential", "cauchy",
            "geometric", "poisson", "multinomial", "uniform", "random", "rrelu", "data_ptr", "set_",
            "storage", "resize_", "new_tensor")  # fmt: skip
NUMBERS = (0, 1, -1, 2, 3, -2, 5, 64, 65, -(2**31), 2**62, 2**63 - 1, -(2**63), 2**64, 0.5, 1.5, -1.0,
           float("nan"), float("inf"), 1e300, 1j, True, False, 300, 70000, -(2**64), 1e-300)  # fmt: skip
WORDS = ("mean", "none", "constant", "reflect", "nearest", "ij,jk->ik", "amax", "x", "same", "floor", "cpu")
OF_NUMPY = (numpy.float32(1.5), numpy.int64(2), numpy.int32(-1), numpy.bool_(True), numpy.float64(0.5),
            numpy.array(1), numpy.array(2.5), numpy.array([0, 1]))  # fmt: skip
RARE = ("uint16", "uint32", "uint64", "complex32", "float8_e4m3fn", "float8_e5m2")


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
        if kind < 0.4:
            return self.tensor()
        if kind < 0.58:
            return rng.choice((0, 1, 2, 3, -1, -2, 4))
        if kind < 0.7:
            return rng.choice(NUMBERS)
        if kind < 0.75:
            return rng.choice(OF_NUMPY)
        if kind < 0.79:  # a number that is a tensor
            return self.torch.tensor(rng.choice((0, 1, -1, 2, 0.5, True, 1j, 300, float("nan"))))
        if kind < 0.87:
            return tuple(rng.choice((0, 1, 2, 3, -1, -2)) for _ in range(rng.choice((0, 1, 2, 3, 4))))
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
        if at < 0.42 and t.dim() and t.size(0):
            return t[0]
        if at < 0.5 and t.dim() > 1:
            return t.transpose(0, -1)
        if at < 0.57 and t.dim() and t.size(-1):
            return t[..., ::2]
        if at < 0.65 and t.dtype == self.torch.int64:
            return t * rng.choice((-1, 1000, 2**40, 2**62))
        if at < 0.7:
            return self.unlike(t)
        if at < 0.75 and t.dim() and t.numel() > 2:  # neighbours that share elements
            t = t.contiguous()
            return t.as_strided(t.shape, (1,) * t.dim() if first else (*t.stride()[:-1], 0))
        if at < 0.8 and t.dim() and t.size(0):
            return t[:1].expand(t.shape)
        return t.expand(rng.choice((2, 3)), *t.shape) if at < 0.9 else t.reshape(-1)

    def unlike(self, t):
        """The same numbers in a tensor of a rare kind."""
        if self.rng.random() < 0.3:
            return t.to("meta")
        if t.dtype.is_floating_point and t.numel() and self.rng.random() < 0.5:
            t = t.contiguous().clone()
            t[(0,) * t.dim()] = self.rng.choice((float("nan"), float("inf"), -float("inf"), 6e4))
            return t
        dtype = self.rng.choice(RARE)
        if dtype == "complex32":
            return t.to(getattr(self.torch, dtype))
        return (t.real if t.dtype.is_complex else t).double().abs().to(getattr(self.torch, dtype))

    def replaced(self, value):
        """What an argument becomes."""
        rng = self.rng
        tensor = isinstance(value, self.torch.Tensor)
        if isinstance(value, (list, tuple)) and value and rng.random() < 0.8:
            several = list(value)
            if rng.random() < 0.2:  # of another length
                several = several[1:] if rng.random() < 0.5 else several + several[-1:]
            else:
                several[rng.randrange(len(several))] = self.replaced(rng.choice(several))
            return several if type(value) is list else tuple(several)
        if tensor and rng.random() < 0.8:
            return self.changed(value)
        return rng.choice((self.argument(), rng.choice(NUMBERS), rng.choice((0, 1, 2, -1))))

    def mutate(self, args, kwargs):
        """Changes one or two of the arguments, in place. How many mistakes that makes."""
        mistakes = 0
        for _ in range(self.rng.choice((1, 1, 1, 2))):
            if args and (not kwargs or self.rng.random() < 0.75):
                at, among = self.rng.randrange(len(args)), args
            elif kwargs:
                at, among = self.rng.choice(list(kwargs)), kwargs
            else:
                continue
            before, among[at] = among[at], self.replaced(among[at])
            mistakes += 1 + self.is_unlike(before, among[at])
        return mistakes

    def is_unlike(self, a, b):
        """Whether a tensor became one of another dtype and shape: that is two mistakes."""
        tensors = isinstance(a, self.torch.Tensor) and isinstance(b, self.torch.Tensor)
        return tensors and a.dtype != b.dtype and a.shape != b.shape

    def out(self, args):
        """Something to write to, for a function of these arguments."""
        rng = self.rng
        own = [value for value in args if isinstance(value, self.torch.Tensor)]
        if not own or rng.random() < 0.3:
            return self.argument() if rng.random() < 0.2 else self.tensor()
        t = rng.choice(own).detach()
        kind = rng.random()
        if kind < 0.25:  # itself
            return t
        if kind < 0.4 and t.dim() and t.size(0) > 1:  # a part of itself
            return t[1:] if rng.random() < 0.5 else t[:-1].transpose(0, -1)
        if kind < 0.5 and t.dim() and t.size(0):  # that shares an element
            return t[:1].clone().expand(rng.choice((2, t.size(0))), *t.shape[1:])
        if kind < 0.7:
            return self.torch.zeros_like(t)
        return self.changed(t.clone())


def _product(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def _in_place(name):
    name = name.removeprefix("Tensor.").rpartition(".")[2]
    return lambda tensor, *args, **kwargs: getattr(tensor, name + "_")(*args, **kwargs)


def table_of(families=None):
    """The operations of some families (samples.py; "create" for functions that make tensors), or of all."""
    ops = [op for op in OPS.values() if not any(word in op.name for word in LEFT_OUT)]
    if families is not None:
        ops = [op for op in ops if FAMILY_OF[op.name] in families]
    return ops + ([*CREATIONS.values()] if families is None or "create" in families else [])


def mutated_calls(library, seed, count, families=None, start=0):
    """`count` tuples of what a call is (for messages), its function, arguments and keywords."""
    ops = table_of(families)
    for number in range(start, count):
        mutator = Mutator(library, seed * 100_003 + number)
        rng = mutator.rng
        op = rng.choice(ops)
        dtype = rng.choice(dtype_names(op.dtypes))
        samples = list(op.for_dtype(dtype))
        if not samples:
            continue
        args, kwargs = build(library, rng.choice(samples), dtype)
        args, kwargs = list(args), dict(kwargs)
        function, name = op.function(library), op.name
        form = rng.random()
        changes = mutator.mutate(args, kwargs) if form > 0.3 or rng.random() < 0.5 else 0
        if op.run is None and form < 0.15 and args and isinstance(args[0], library.Tensor):
            function, name = _in_place(name), name + "_"
            changes += 1
        elif op.run is None and form < 0.3 and not name.startswith("Tensor."):
            kwargs["out"] = mutator.out(args)
            changes += 1 + any(mutator.is_unlike(value, kwargs["out"]) for value in args)
        if rng.random() < 0.5:
            args = [_differentiable(library, value) for value in args]
            changes += name.endswith("_") or "out" in kwargs  # neither is for what requires grad
        told = [*map(described, args), *(f"{name}={described(value)}" for name, value in kwargs.items())]
        yield f"call {number}, {changes} mistakes: {name}({', '.join(told)})", function, args, kwargs


def _differentiable(library, value):
    fits = isinstance(value, library.Tensor) and (value.dtype.is_floating_point or value.dtype.is_complex)
    return value.detach().requires_grad_() if fits else value


def _is_finite(tensor):
    tensor = tensor.detach()
    if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex) or tensor.dtype.itemsize < 2:
        return True
    return bool((tensor.cfloat() if tensor.dtype.is_complex else tensor.double()).isfinite().all())


def described(value):
    """An argument in the words that are the same for both libraries."""
    if hasattr(value, "stride"):
        more = f" by {tuple(value.stride())}" if value.numel() else ""
        more += " meta" if value.is_meta else "" if _is_finite(value) else " not finite"
        if value.dim() == 0 and not value.is_meta:
            more = f" {value.item()}"
        return f"{str(value.dtype).rpartition('.')[2]}{tuple(value.shape)}{more}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(map(described, value))})"
    return repr(value).replace("rushlight", "torch")[:80]
