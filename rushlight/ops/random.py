"""Random numbers: factories (rand, randn, randint, randperm), distributions, and Tensor's samplers.

After the same seed all of them give the numbers that torch gives. A sample does not depend on what was in the
tensor, so the derivative of every sampler is zero.
"""

from __future__ import annotations

from rushlight import _C
from rushlight._dtype_info import finfo
from rushlight._outputs import OVERLAP, fill_made
from rushlight._type_names import type_name as class_name
from rushlight._versions import uncounted
from rushlight.ops._public import (
    FUNCTIONS,
    Tensor,
    check_whole_or_apart,
    fit,
    function,
    method,
    public,
    type_name,
)
from rushlight.ops._rules import derivative, no_derivative
from rushlight.ops._tangents import drawn
from rushlight.ops.create import _checked, _device, _finish, _made, _size
from rushlight.ops.shape import preserve_format
from rushlight.ops.special import _no_derivative

ops = _C.ops
_into = _C.sample_into
_in_place = _C.in_place


def _zero(g):
    return _C.full(g.shape, 0, g.dtype, g.device)


def _underivable(name):
    def rule(g):
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return rule


derivative("uniform", x=_zero, tangent=drawn)
derivative("normal", x=_zero, tangent=drawn)
derivative("log_normal", x=_zero, tangent=drawn)
derivative("cauchy", x=_zero, tangent=drawn)
derivative("exponential", x=_zero, tangent=drawn)
derivative("geometric", x=_zero, tangent=drawn)
derivative("random", x=_zero, tangent=drawn)
derivative("random_to", x=_zero, node="RandomBackward1", tangent=drawn)
derivative("random_full", x=_zero, node="RandomBackward2", tangent=drawn)
derivative("bernoulli", p=_zero, tangent=drawn)
derivative("bernoulli_tensor", x=_zero, p=_zero, node="BernoulliBackward1", tangent=drawn)
derivative("bernoulli_number", x=_zero, node="BernoulliBackward2", tangent=drawn)
derivative("bernoulli_like", x=_underivable("bernoulli"), node="torch::autograd::NotImplemented")
derivative("normal_mean", mean=_zero, node="NormalBackward1", tangent=drawn)
derivative("normal_std", std=_zero, node="NormalBackward2", tangent=drawn)
derivative("normal_mean_std", mean=_zero, std=_zero, node="NormalBackward3", tangent=drawn)
derivative("poisson", input=_zero, tangent=drawn)
derivative(
    "binomial",
    count=_underivable("binomial"),
    prob=_underivable("binomial"),
    node="torch::autograd::NotImplemented",
)
derivative("standard_gamma", alpha=lambda g, alpha, out: g * ops._standard_gamma_grad(alpha, out))
derivative(
    "_standard_gamma_grad",
    alpha=lambda g: _no_derivative("_standard_gamma_grad"),
    sample=lambda g: _no_derivative("_standard_gamma_grad"),
    node="StandardGammaGradBackward0",
)
no_derivative("multinomial", "randperm")


def _wrong_arguments(name, args, named=()):
    got = [class_name(a) for a in args] + [f"{key}={class_name(a)}" for key, a in dict(named).items()]
    return TypeError(f"{name}() received an invalid combination of arguments - got ({', '.join(got)})")


def _is_int(value):
    if isinstance(value, Tensor):
        return value.numel() == 1 and not (value.is_floating_point() or value.is_complex())
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _drawn(sampler, attributes, size, name, out, dtype, layout, device, requires_grad, pin_memory):
    """A factory's result: a new tensor that `sampler` has filled, or `out`, resized and filled."""
    _checked(layout, pin_memory)
    if out is not None:
        return _finish(_fill_out(sampler, attributes, size, name, out, dtype), requires_grad)
    return _made(
        lambda s: _into(sampler, _C.empty(s, dtype, _device(device)), *attributes), size, requires_grad
    )


def _no_size(name, *given):
    """torch's error for rand() and randn() without sizes, which depends on what else there is."""
    if any(value is not None for value in given):
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    raise TypeError(
        f"{name}() received an invalid combination of arguments - got (), but expected one of:\n"
        " * (tuple of ints size, *, torch.Generator generator, Tensor out = None, torch.dtype dtype = None)"
    )


def _no_out_gradient(name):
    return RuntimeError(
        f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
        "arguments requires grad."
    )


def _fill_out(sampler, attributes, size, name, out, dtype):
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {class_name(out)}")
    if dtype is not None and dtype != out.dtype:
        raise RuntimeError(
            f"dtype {type_name(dtype)} does not match dtype of out parameter ({type_name(out.dtype)})"
        )

    def draw():
        if out.shape == size:
            return _in_place(sampler, out, *attributes)
        drawn = _into(sampler, _C.empty(size, out.dtype, out.device), *attributes)  # may be refused
        if name == "randn":  # whose change of size torch counts as a write of its own
            out.resize_(size)
        else:
            fit(out, drawn)
        return out.copy_(drawn)

    return fill_made(name, out, draw)


@function
def rand(*args, size=None, generator=None, out=None, dtype=None, layout=None, device=None, pin_memory=False,
         requires_grad=False):  # fmt: skip
    """Uniform numbers in [0, 1).

    >>> generator = rushlight.Generator().manual_seed(0)
    >>> rushlight.rand(3, generator=generator)
    tensor([0.4963, 0.7682, 0.0885])
    """
    attributes = 0.0, 1.0, generator
    size = _size(args, "rand", size) if args or size is not None else _no_size("rand", dtype, out)
    return _drawn(
        ops.uniform, attributes, size, "rand", out, dtype, layout, device, requires_grad, pin_memory
    )


@function
def randn(*args, size=None, generator=None, out=None, dtype=None, layout=None, device=None, pin_memory=False,
          requires_grad=False):  # fmt: skip
    """Normal numbers with mean 0 and variance 1.

    >>> generator = rushlight.Generator().manual_seed(0)
    >>> rushlight.randn(3, generator=generator)
    tensor([ 1.5410, -0.2934, -2.1788])
    """
    attributes = 0.0, 1.0, generator
    size = _size(args, "randn", size) if args or size is not None else _no_size("randn", dtype, out)
    return _drawn(
        ops.normal, attributes, size, "randn", out, dtype, layout, device, requires_grad, pin_memory
    )


def _bounds(name, args, named, rest):
    """low, high and `rest` more arguments of randint(high, ...) or randint(low, high, ...)."""
    values = list(args)
    if "low" in named:
        values.insert(0, named["low"])
    values.extend(named[key] for key in ("high", *rest) if key in named)
    if len(values) == 1 + len(rest):
        values.insert(0, 0)
    if len(values) != 2 + len(rest) or not (_is_int(values[0]) and _is_int(values[1])):
        raise _wrong_arguments(name, args, named)
    return values


@function
def randint(*args, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False,
            pin_memory=False, **named):  # fmt: skip
    """randint(low=0, high, size): integers from low up to and without high.

    >>> generator = rushlight.Generator().manual_seed(0)
    >>> rushlight.randint(10, (4,), generator=generator)
    tensor([4, 9, 3, 0])
    """
    if len(args) == 2 and not named and type(args[0]) is int:
        low, (high, size) = 0, args
    else:
        low, high, size = _bounds("randint", args, named, ("size",))
    if not isinstance(size, (tuple, list)) or (named and not named.keys() <= {"low", "high", "size"}):
        raise _wrong_arguments("randint", args, named)
    if out is None and dtype is None:
        dtype = _C.int64
    attributes = low, high, generator
    size = _size((size,), "randint")
    return _drawn(
        ops.random, attributes, size, "randint", out, dtype, layout, device, requires_grad, pin_memory
    )


@function
def randperm(n, *, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False,
             pin_memory=False):  # fmt: skip
    """The integers below n in random order.

    >>> generator = rushlight.Generator().manual_seed(0)
    >>> rushlight.randperm(4, generator=generator)
    tensor([0, 1, 3, 2])
    """
    if not _is_int(n):
        raise TypeError(f"randperm(): argument 'n' (position 1) must be int, not {class_name(n)}")
    if out is None and dtype is None:
        dtype = _C.int64
    size, attributes = (int(n),), (generator,)
    return _drawn(
        ops.randperm, attributes, size, "randperm", out, dtype, layout, device, requires_grad, pin_memory
    )


def _drawn_like(
    sampler, attributes, input, name, dtype, layout, device, requires_grad, pin_memory, memory_format
):
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {class_name(input)}")
    _checked(layout, pin_memory)
    if memory_format not in (None, preserve_format):
        made = _C.empty(input.shape, dtype or input.dtype, input.device if device is None else device)
        made = made.contiguous(memory_format=memory_format)
    elif _C.is_leveled(input):
        made = FUNCTIONS["empty_like"](input, dtype=dtype)
    else:
        made = _C.empty_like(input, dtype or input.dtype, input.device if device is None else device)
    _into(sampler, made, *attributes)
    return _finish(made, requires_grad)


@function
def rand_like(input, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False,
              pin_memory=False, memory_format=None):  # fmt: skip
    """Uniform numbers in [0, 1) with the sizes of `input`.

    >>> rushlight.rand_like(rushlight.ones(2)).shape
    torch.Size([2])
    """
    return _drawn_like(ops.uniform, (0.0, 1.0, generator), input, "rand_like", dtype, layout, device,
                       requires_grad, pin_memory, memory_format)  # fmt: skip


@function
def randn_like(input, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False,
               pin_memory=False, memory_format=None):  # fmt: skip
    """Normal numbers with the sizes of `input`.

    >>> rushlight.randn_like(rushlight.ones(2)).shape
    torch.Size([2])
    """
    return _drawn_like(ops.normal, (0.0, 1.0, generator), input, "randn_like", dtype, layout, device,
                       requires_grad, pin_memory, memory_format)  # fmt: skip


@function
def randint_like(input, *args, generator=None, dtype=None, layout=None, device=None, requires_grad=False,
                 pin_memory=False, memory_format=None, **named):  # fmt: skip
    """randint_like(input, low=0, high): integers with the sizes of `input`.

    >>> rushlight.randint_like(rushlight.ones(2), 10).shape
    torch.Size([2])
    """
    if len(args) == 1 and isinstance(args[0], Tensor) and args[0].dim():
        raise RuntimeError("high must be a scalar tensor and on CPU")
    low, high = _bounds("randint_like", args, named, ())
    return _drawn_like(ops.random, (low, high, generator), input, "randint_like", dtype, layout, device,
                       requires_grad, pin_memory, memory_format)  # fmt: skip


@function
def normal(mean=None, std=1.0, size=None, *, generator=None, out=None, dtype=None, layout=None, device=None,
           pin_memory=False, requires_grad=False):  # fmt: skip
    """Normal numbers: normal(mean, std, size) with numbers, or with a tensor of means, deviations or both.

    >>> generator = rushlight.Generator().manual_seed(0)
    >>> rushlight.normal(rushlight.tensor([0., 100.]), rushlight.tensor([1., 10.]), generator=generator)
    tensor([ 1.5410, 97.0657])
    """
    if size is not None:  # numbers, which tensors without dimensions may be
        mean, std = (
            x.item() if isinstance(x, Tensor) and x.dim() == 0 and not x.requires_grad else x
            for x in (mean, std)
        )
    tensors = isinstance(mean, Tensor), isinstance(std, Tensor)
    if mean is None and tensors[1]:
        raise TypeError('normal() missing 1 required positional arguments: "mean"')
    if (size is None) != any(tensors) or (any(tensors) and (dtype or device or requires_grad)):
        raise _wrong_arguments("normal", (mean, std) if size is None else (mean, std, size))
    if size is not None:
        attributes = mean, std, generator
        size = _size((size,), "normal")
        device = "cpu" if device is None else device  # a default device does not count here, as in torch
        return _drawn(
            ops.normal, attributes, size, "normal", out, dtype, layout, device, requires_grad, pin_memory
        )
    if out is not None:
        return _normal_out(mean, std, generator, out)
    if all(tensors):
        return ops.normal_mean_std(mean, std, generator)
    return ops.normal_mean(mean, std, generator) if tensors[0] else ops.normal_std(std, mean, generator)


def _normal_out(mean, std, generator, out):
    if _C.is_grad_enabled() and any(isinstance(t, Tensor) and t.requires_grad for t in (mean, std)):
        raise _no_out_gradient("normal")
    # In torch the means are added to an output of its own size.
    whole = ops.add(mean, std if isinstance(std, Tensor) else out)
    attributes = 0.0, 1.0 if isinstance(std, Tensor) else std, generator
    if isinstance(out, Tensor):
        check_whole_or_apart(out, whole, [t for t in (mean, std) if isinstance(t, Tensor)])
    wanted = isinstance(out, Tensor) and out.requires_grad and out.is_leaf  # which factories change
    _fill_out(ops.normal, attributes, whole.shape, "normal", out, None)
    with uncounted(out):  # one write, which was counted
        if isinstance(std, Tensor):
            out.mul_(std)
        out.add_(mean)
    return _C.requires_grad_(out, True) if wanted else out


@public
def bernoulli(input, p=None, *, generator=None, out=None):
    """Ones with the probabilities in `input` (or with probability p everywhere), zeros elsewhere.

    >>> rushlight.bernoulli(rushlight.tensor([0., 1., 1.]))
    tensor([0., 1., 1.])
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"bernoulli(): argument 'input' (position 1) must be Tensor, not {class_name(input)}")
    if p is not None:
        if out is not None or isinstance(p, str):
            raise _wrong_arguments("bernoulli", (input, p), {} if out is None else {"out": out})
        return ops.bernoulli_like(input, p, generator)
    if out is None:
        return ops.bernoulli(input, generator)
    check_whole_or_apart(out, input, [input])
    if out.shape != input.shape:
        fit(out, input)
    return _in_place(ops.bernoulli_tensor, out, input, generator)


@function
def poisson(input, generator=None):
    """Poisson numbers with the rates in `input`.

    >>> rushlight.poisson(rushlight.ones(3)).shape
    torch.Size([3])
    """
    return ops.poisson(input, generator)


@function
def _standard_gamma(alpha, generator=None):
    """Samples of gamma distributions with rate one; differentiable by their shapes `alpha`."""
    return ops.standard_gamma(alpha, generator)


@function
def _sample_dirichlet(concentration, generator=None):
    """Samples of Dirichlet distributions along the last dimension."""
    gammas = ops.standard_gamma(concentration.double(), generator)
    samples = gammas / gammas.sum(-1, keepdim=True)
    return samples.clamp(min=finfo(concentration.dtype).tiny).to(concentration.dtype)


@function
def binomial(count, prob, generator=None):
    """How many of `count` trials succeed, each with probability `prob`.

    >>> rushlight.binomial(rushlight.tensor([10.0]), rushlight.tensor([1.0]))
    tensor([10.])
    """
    return ops.binomial(count, prob, generator)


@public
def multinomial(input, num_samples, replacement=False, *, generator=None, out=None):
    """Row by row, the numbers of `num_samples` categories drawn with the weights in `input`.

    >>> rushlight.multinomial(rushlight.tensor([0., 3., 0.]), 2, replacement=True)
    tensor([1, 1])
    """
    if not _is_int(num_samples):
        raise TypeError("multinomial(): argument 'num_samples' (position 2) must be int, not "
                        f"{class_name(num_samples)}")  # fmt: skip
    if not isinstance(replacement, bool):
        raise TypeError("multinomial(): argument 'replacement' (position 3) must be bool, not "
                        f"{class_name(replacement)}")  # fmt: skip
    if out is not None and out.dtype != _C.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {type_name(out.dtype)}")
    result = ops.multinomial(input, num_samples, replacement, generator)
    if out is None:
        return result
    if out.shape != result.shape:
        fit(out, result)
    return out.copy_(result)


def _from_to(name, bounds, named, default):
    """The bounds of f(from, to): `from` is a word of Python, so it can only be named through **."""
    if len(bounds) > 2:
        raise TypeError(f"{name}() takes from 0 to 2 positional arguments but {len(bounds)} were given")
    values = dict(zip(("from", "to"), bounds))
    for key, value in named.items():
        if key not in ("from", "to") or key in values:
            raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
        values[key] = value
    return values.get("from", default[0]), values.get("to", default[1])


@method
def uniform_(self, *bounds, generator=None, **named):
    """uniform_(from=0, to=1): fills with uniform numbers in [from, to)."""
    low, high = _from_to("uniform_", bounds, named, (0.0, 1.0))
    return _in_place(ops.uniform, self, low, high, generator)


@method
def normal_(self, mean=0.0, std=1.0, *, generator=None):
    """Fills with normal numbers."""
    return _in_place(ops.normal, self, mean, std, generator)


@method
def random_(self, *bounds, generator=None, **named):
    """random_(from=0, to=None): fills with integers in [from, to), or up to what the dtype holds."""
    if not bounds and not named:
        return _in_place(ops.random_full, self, generator)
    if len(bounds) == 1 and not named:
        bounds, named = (), {"to": bounds[0]}
    if not bounds and named.keys() == {"to"}:
        if not _is_int(named["to"]):
            raise _wrong_arguments("random_", tuple(named.values()))
        return _in_place(ops.random_to, self, named["to"], generator)
    low, high = _from_to("random_", bounds, named, (None, None))
    if not _is_int(low) or not (high is None or _is_int(high)) or named.keys() == {"from"}:
        raise _wrong_arguments("random_", bounds, named)
    return _in_place(ops.random, self, low, high, generator)


@method
def bernoulli_(self, p=0.5, *, generator=None):
    """Fills with ones with probability p (a number, or a tensor with one for each element), and zeros."""
    if isinstance(p, Tensor):
        if _C.overlap(p, self) == "partial":
            raise RuntimeError(OVERLAP)
        return _in_place(ops.bernoulli_tensor, self, p, generator)
    if isinstance(p, str):
        raise _wrong_arguments("bernoulli_", (p,))
    return _in_place(ops.bernoulli_number, self, p, generator)


@method
def exponential_(self, lambd=1.0, *, generator=None):
    """Fills with exponential numbers of rate lambd."""
    return _in_place(ops.exponential, self, lambd, generator)


@method
def geometric_(self, p, *, generator=None):
    """Fills with the number of trials up to the first success of probability p."""
    return _in_place(ops.geometric, self, p, generator)


@method
def cauchy_(self, median=0.0, sigma=1.0, *, generator=None):
    """Fills with numbers of the Cauchy distribution."""
    return _in_place(ops.cauchy, self, median, sigma, generator)


@method
def log_normal_(self, mean=1.0, std=2.0, *, generator=None):
    """Fills with numbers whose logarithm is normal with this mean and deviation."""
    return _in_place(ops.log_normal, self, mean, std, generator)
