"""Copies of tensors between devices. There is one device: what can be checked is, and the rest raises."""

from rushlight import device as make_device

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def _not_there(what):
    raise NotImplementedError(f"{what} between devices is not implemented: there is one device")


def device_index(device):
    """The number of a device that is not the CPU."""
    if isinstance(device, int):
        return device
    made = make_device(device)
    if made.type == "cpu":
        raise ValueError(f"Expected a non cpu device, but got: {made}")
    return made.index or 0


def broadcast(tensor, devices=None, *, out=None):
    """Copies of a tensor on each device."""
    if not (devices is None) ^ (out is None):
        raise RuntimeError(
            f"Exactly one of 'devices' and 'out' must be specified, but got devices={devices} and out={out}"
        )
    for device in devices or ():
        device_index(device)
    return _not_there("broadcast")


def broadcast_coalesced(tensors, devices, buffer_size=10485760):
    """Copies of several tensors on each device."""
    for device in devices:
        device_index(device)
    return _not_there("broadcast")


def reduce_add(inputs, destination=None):
    """The sum of tensors on several devices."""
    if destination is not None:
        device_index(destination)
    size = inputs[0].size()
    for i, tensor in enumerate(inputs):
        if tensor.device.type == "cpu":
            raise AssertionError(f"reduce_add expects all inputs to be on GPUs, but input {i} is on CPU")
        if tensor.size() != size:
            got, expected = "x".join(map(str, tensor.size())), "x".join(map(str, size))
            raise ValueError(f"input {i} has invalid size: got {got}, but expected {expected}")
    return _not_there("reduce_add")


def reduce_add_coalesced(inputs, destination=None, buffer_size=10485760):
    """The sums of lists of tensors on several devices."""
    return tuple(reduce_add(tensors, destination) for tensors in zip(*inputs, strict=True))


def scatter(tensor, devices=None, chunk_sizes=None, dim=0, streams=None, *, out=None):
    """Parts of a tensor on each device."""
    if out is None:
        for device in devices:
            device_index(device)
    elif devices is not None:
        raise RuntimeError(
            f"'devices' must not be specified when 'out' is specified, but got devices={devices}"
        )
    elif chunk_sizes is not None:
        raise RuntimeError(
            f"'chunk_sizes' must not be specified when 'out' is specified, but got chunk_sizes={chunk_sizes}"
        )
    return _not_there("scatter")


def gather(tensors, dim=0, destination=None, *, out=None):
    """Tensors on several devices, one after the other on one."""
    if out is not None and destination is not None:
        raise RuntimeError(
            f"'destination' must not be specified when 'out' is specified, but got destination={destination}"
        )
    return _not_there("gather")
