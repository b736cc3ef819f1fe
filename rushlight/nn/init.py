"""Filling parameters with their first values. After the same ``manual_seed`` the numbers are torch's."""

import math

import rushlight
from rushlight import _C
from rushlight._warn import warn

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_GAINS = {
    "linear": 1,
    **{f"conv{kind}{n}d": 1 for kind in ("", "_transpose") for n in (1, 2, 3)},
    "sigmoid": 1,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity, param=None):
    """The factor by which weights before the nonlinearity should be larger.

    >>> import rushlight.nn as nn
    >>> nn.init.calculate_gain("leaky_relu", 0.2)
    1.3867504905630728
    """
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def _asked(function, tensor, **others):
    """What a mode or the tensor's `__torch_function__` answers, NotImplemented if nobody is to be asked."""
    if not _C._has_torch_function_unary(tensor):
        return NotImplemented
    from rushlight.overrides import handle_torch_function, has_torch_function_unary

    if not has_torch_function_unary(tensor):  # one who was asked has told the function to go on
        return NotImplemented
    return handle_torch_function(function, (tensor,), tensor=tensor, **others)


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Fill with values drawn uniformly from [a, b).

    >>> import rushlight as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.init.uniform_(torch.empty(2))
    tensor([0.4963, 0.7682])
    """
    answer = _asked(uniform_, tensor, a=a, b=b, generator=generator)
    return _no_grad_uniform_(tensor, a, b, generator) if answer is NotImplemented else answer


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Fill with values of the normal distribution."""
    answer = _asked(normal_, tensor, mean=mean, std=std, generator=generator)
    return _no_grad_normal_(tensor, mean, std, generator) if answer is NotImplemented else answer


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Fill with values of the normal distribution restricted to [a, b].

    >>> import rushlight as torch
    >>> float(torch.nn.init.trunc_normal_(torch.empty(1000)).abs().max()) <= 2
    True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect."
        )
    if tensor.is_meta:
        return tensor
    inside = (math.erf((b - mean) / std / math.sqrt(2)) - math.erf((a - mean) / std / math.sqrt(2))) / 2
    with rushlight.no_grad():
        if inside > 0.3:
            _redraw_outside(tensor, mean, std, a, b, generator)
        else:
            _accept_by_density(tensor, mean, std, a, b, generator)
    return tensor


def _redraw_outside(tensor, mean, std, a, b, generator):
    """Most draws land inside: draw normals, and draw again those that do not."""
    low, high = tensor.new_tensor(a).item(), tensor.new_tensor(b).item()
    drawn = tensor.normal_(mean, std, generator=generator)
    while (outside := (drawn < low) | (drawn > high)).any():
        # A whole tensor is drawn each time, because torch's stream advances so.
        drawn = rushlight.where(
            outside, rushlight.empty_like(drawn).normal_(mean, std, generator=generator), drawn
        )
    tensor.copy_(drawn)


def _accept_by_density(tensor, mean, std, a, b, generator):
    """Few draws would land inside: draw uniforms and keep each with the relative density there."""
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    kept, pending = tensor, None
    while True:
        drawn = rushlight.empty_like(tensor).uniform_(a, b, generator=generator)
        log_density = ((drawn - mean) / std) ** 2 * -0.5 - peak
        rejected = rushlight.empty_like(tensor).uniform_(generator=generator).log_() > log_density
        kept = drawn if pending is None else rushlight.where(pending, drawn, kept)
        pending = rejected if pending is None else pending & rejected
        if not pending.any():
            tensor.copy_(kept)
            return


def constant_(tensor, val):
    """Fill with one value."""
    answer = _asked(constant_, tensor, val=val)
    return _no_grad_fill_(tensor, val) if answer is NotImplemented else answer


def ones_(tensor):
    """Fill with ones."""
    return _no_grad_fill_(tensor, 1.0)


def zeros_(tensor):
    """Fill with zeros."""
    with rushlight.no_grad():
        return tensor.zero_()


def eye_(tensor):
    """Fill a matrix with the identity.

    >>> import rushlight as torch
    >>> torch.nn.init.eye_(torch.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with rushlight.no_grad():
        rushlight.eye(*tensor.shape, out=tensor, requires_grad=tensor.requires_grad)
    return tensor


def dirac_(tensor, groups=1):
    """Fill a convolution's weight so that it passes its input channels through unchanged."""
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = sizes[0] // groups
    centre = tuple(size // 2 for size in sizes[2:])
    with rushlight.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, sizes[1])):
                tensor[(group * per_group + channel, channel, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    inputs, outputs = tensor.size(1), tensor.size(0)
    receptive = math.prod(tensor.shape[2:]) if tensor.dim() > 2 else 1
    return inputs * receptive, outputs * receptive


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Uniform values that keep the variance forward and backward (Glorot and Bengio 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Normal values that keep the variance forward and backward (Glorot and Bengio 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return _no_grad_normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Uniform values that keep the variance through rectifiers (He et al. 2015)."""
    options = {"a": a, "mode": mode, "nonlinearity": nonlinearity, "generator": generator}
    if (answer := _asked(kaiming_uniform_, tensor, **options)) is not NotImplemented:
        return answer
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op")
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Normal values that keep the variance through rectifiers (He et al. 2015)."""
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op")
        return tensor
    return _no_grad_normal_(tensor, 0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor, gain=1, generator=None):
    """Fill with a matrix whose rows or columns are orthonormal, times ``gain`` (Saxe et al. 2013)."""
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    drawn = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
    if rows < cols:
        drawn = drawn.t()
    q, r = rushlight.linalg.qr(drawn)
    # The signs of R's diagonal make the result unique and so uniformly distributed.
    q = q * rushlight.diag(r, 0).sign()
    if rows < cols:
        q = q.t()
    with rushlight.no_grad():
        tensor.view_as(q).copy_(q)
        tensor.mul_(gain)
    return tensor


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Fill a matrix with normal values and set the fraction ``sparsity`` of each column to zero."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if tensor.is_meta:
        return tensor
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with rushlight.no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            tensor[rushlight.randperm(rows)[:zeros], col] = 0
    return tensor


def _deprecated(function):
    """torch's old names, without the underscore."""
    old = function.__name__[:-1]

    def renamed(*args, **kwargs):
        warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{old}_`.", FutureWarning)
        return function(*args, **kwargs)

    renamed.__name__ = renamed.__qualname__ = old
    renamed.__doc__ = f"Deprecated in torch: use ``{old}_``."
    return renamed


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)


# Libraries that fill tensors their own way take torch's inner functions.
def _no_grad_uniform_(tensor, a, b, generator=None):
    with rushlight.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _no_grad_normal_(tensor, mean, std, generator=None):
    with rushlight.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _no_grad_trunc_normal_(tensor, mean, std, a, b, generator=None):
    return trunc_normal_(tensor, mean, std, a, b, generator)


def _no_grad_fill_(tensor, val):
    with rushlight.no_grad():
        return tensor.fill_(val)


def _no_grad_zero_(tensor):
    return zeros_(tensor)
