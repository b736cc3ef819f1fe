"""Normalisation of layers, batches, groups, instances, neighbouring channels and vectors."""

import rushlight
from rushlight._signatures import check_call
from rushlight.nn.functional._checks import functional
from rushlight.nn.functional.pooling import avg_pool2d, avg_pool3d
from rushlight.ops._public import write_out
from rushlight.ops.resample import pad


def _check_values_per_channel(sizes, shown):
    count = sizes[0]
    for size in sizes[2:]:
        count *= size
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {shown}")


@functional
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05):
    """Normalise over the last dimensions, then scale and shift elementwise.

    >>> import rushlight as torch
    >>> torch.nn.functional.layer_norm(torch.tensor([[0.0, 2.0]]), (2,), eps=0.0)
    tensor([[-1.,  1.]])
    """
    return rushlight.layer_norm(input, normalized_shape, weight, bias, eps)


@functional
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Divide by the root mean square of the last dimensions, then scale elementwise.

    >>> import rushlight as torch
    >>> torch.nn.functional.rms_norm(torch.tensor([[3.0, 3.0]]), (2,), eps=0.0)
    tensor([[1., 1.]])
    """
    return rushlight.rms_norm(input, normalized_shape, weight, eps)


@functional
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05):
    """Normalise each sample's channels in ``num_groups`` groups.

    >>> import rushlight as torch
    >>> torch.nn.functional.group_norm(torch.tensor([[0.0, 2.0, 5.0, 5.0]]), 2, eps=1e-12)
    tensor([[-1.,  1.,  0.,  0.]])
    """
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    sizes = [input.size(0) * input.size(1) // num_groups, num_groups, *input.size()[2:]]
    _check_values_per_channel(sizes, sizes)
    if num_groups.__class__ is not int:
        check_call("group_norm", "T input,i num_groups", input, num_groups)
    return rushlight.group_norm(input, num_groups, weight, bias, eps)


@functional
def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05
):
    """Normalise each channel over the batch while training, by the running statistics otherwise.

    While training, the running statistics move towards the batch's by ``momentum``, in place.

    >>> import rushlight as torch
    >>> mean, var = torch.zeros(1), torch.ones(1)
    >>> torch.nn.functional.batch_norm(torch.tensor([[0.0], [2.0]]), mean, var, training=True, eps=1e-12)
    tensor([[-1.],
            [ 1.]])
    >>> mean, var
    (tensor([0.1000]), tensor([1.1000]))
    """
    if training:
        _check_values_per_channel(input.size(), input.size())
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    if training.__class__ is not bool or momentum.__class__ is not float:
        given = weight, bias, running_mean, running_var, training
        check_call("batch_norm", "", input, *given, momentum, eps, True)
    return rushlight.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


@functional
def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-05,
):
    """Normalise each channel of each sample by itself.

    >>> import rushlight as torch
    >>> torch.nn.functional.instance_norm(torch.tensor([[[0.0, 2.0]]]), eps=1e-12)
    tensor([[[-1.,  1.]]])
    """
    if use_input_stats:
        count = 1
        for size in input.size()[2:]:
            count *= size
        if count == 1:
            raise ValueError(
                f"Expected more than 1 spatial element when training, got input size {input.size()}"
            )
    if use_input_stats.__class__ is not bool:
        given = weight, bias, running_mean, running_var, use_input_stats
        check_call("instance_norm", "", input, *given, momentum, eps, True)
    return rushlight.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True
    )


@functional
def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Divide by ``(k + alpha * mean of squares over size neighbouring channels) ** beta``.

    >>> import rushlight as torch
    >>> torch.nn.functional.local_response_norm(torch.ones(1, 2, 1), 2, alpha=2.0, beta=1.0)
    tensor([[[0.5000],
             [0.3333]]])
    """
    dims = input.dim()
    if dims < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality                          input (got {dims} dimensions)"
        )
    if input.numel() == 0:
        return input
    # The channels as the first dimension of images, over which a window slides.
    squares, shape = input * input, input.shape
    images = squares.unsqueeze(1) if dims == 3 else squares.reshape(shape[0], 1, shape[1], shape[2], -1)
    around = (*(0, 0) * (images.ndim - 3), size // 2, (size - 1) // 2)
    if size.__class__ is not int or size >= 2**63:
        check_call("pad", "T input,I pad", images, around)
    images = pad(images, around)
    pool, window = (avg_pool2d, (size, 1)) if dims == 3 else (avg_pool3d, (size, 1, 1))
    if size.__class__ is not int:
        check_call(f"avg_pool{len(window)}d", f"T input,I{len(window)} kernel_size", images, window)
    mean = pool(images, window, 1).reshape(shape)
    if not {alpha.__class__, k.__class__, beta.__class__} <= {float, int}:
        check_call("mul", "n other", alpha)
        check_call("add", "n other", k)
        check_call("pow", "T exponent|N exponent", beta)
    return input / (mean * alpha + k).pow(beta)


@functional
def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """Divide by the p-norm along ``dim``, or by ``eps`` where that is larger.

    >>> import rushlight as torch
    >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    result = input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return result if out is None else write_out(out, result)
