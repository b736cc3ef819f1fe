"""Bringing a gradient back to the shape that an input had before it was broadcast."""


def maybe_view(tensor, size, check_same_size=True):
    """`tensor` with this size; itself if it has it and that is checked."""
    return tensor if check_same_size and tensor.size() == size else tensor.contiguous().view(size)


def maybe_unexpand(tensor, old_size, check_same_size=True):
    """`tensor` summed over the dimensions in which `old_size` was broadcast."""
    return tensor if check_same_size and tensor.size() == old_size else tensor.sum_to_size(old_size)
