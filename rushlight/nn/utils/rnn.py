"""Sequences of different lengths in one tensor: padded to the longest, or packed without padding.

Packed data hold step after step, in each the elements of all sequences that reach it, longest sequence first.
"""

from collections import namedtuple
from collections.abc import Iterable

import rushlight
from rushlight._type_names import type_name as class_name
from rushlight.ops._facts import told
from rushlight.ops._public import type_name

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


def invert_permutation(permutation):
    """The permutation that undoes the given one.

    >>> import rushlight as torch
    >>> torch.nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    inverse = rushlight.empty_like(permutation)
    inverse[permutation] = rushlight.arange(permutation.numel(), device=permutation.device)
    return inverse


class PackedSequence(
    namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])
):
    """The elements of several sequences, how many there are in each step, and how they were sorted."""

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            # A pair of data and batch sizes, as some programs pass it.
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created "
                "manually. They should be instantiated by functions like pack_sequence and "
                "pack_padded_sequences in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        """The same with the data moved or cast, and the indices moved; itself if nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self

        def moved(indices):
            return None if indices is None else indices.to(data.device)

        return type(self)(data, self.batch_sizes, moved(self.sorted_indices), moved(self.unsorted_indices))

    def cpu(self, *args, **kwargs):
        """On the CPU, and cast by the other arguments of ``to``."""
        return self.to(*args, **{**kwargs, "device": "cpu"})

    def cuda(self, *args, **kwargs):
        """On the GPU, and cast by the other arguments of ``to``."""
        if "device" not in kwargs and not (args and isinstance(args[0], (int, str, rushlight.device))):
            kwargs["device"] = "cuda"
        return self.to(*args, **kwargs)

    def pin_memory(self):
        """With all its tensors in page-locked memory; they say whether they can."""
        return type(self)(*(None if each is None else each.pin_memory() for each in self))

    def is_pinned(self):
        """Whether the data lie in page-locked memory."""
        return self.data.is_pinned()

    def double(self):
        """With float64 data."""
        return self.to(rushlight.float64)

    def float(self):
        """With float32 data."""
        return self.to(rushlight.float32)

    def half(self):
        """With float16 data."""
        return self.to(rushlight.float16)

    def long(self):
        """With int64 data."""
        return self.to(rushlight.int64)

    def int(self):
        """With int32 data."""
        return self.to(rushlight.int32)

    def short(self):
        """With int16 data."""
        return self.to(rushlight.int16)

    def char(self):
        """With int8 data."""
        return self.to(rushlight.int8)

    def byte(self):
        """With uint8 data."""
        return self.to(rushlight.uint8)

    @property
    def is_cuda(self):
        """Whether the data are on a GPU."""
        return self.data.device.type == "cuda"


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Stack sequences of different lengths, filling up the shorter ones.

    >>> import rushlight as torch
    >>> torch.nn.utils.rnn.pad_sequence([torch.ones(3), torch.ones(1)], batch_first=True)
    tensor([[1., 1., 1.],
            [1., 0., 0.]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    for i, sequence in enumerate(sequences):
        if not isinstance(sequence, rushlight.Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {class_name(sequence)}")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    first = sequences[0]
    if first.dim() == 0:
        raise RuntimeError(
            "ArrayRef: invalid slice, N = 1; size = 0\n\nThe sequences need at least one dimension."
        )
    longest = max(sequence.size(0) for sequence in sequences)
    rows = []
    for sequence in sequences:
        missing = longest - sequence.size(0)
        sequence = sequence.to(first.dtype)
        if sequence.shape[1:] != first.shape[1:]:
            sequence = first.new_empty((sequence.size(0), *first.shape[1:])).copy_(sequence)
        if missing:
            filler = sequence.new_full((missing, *sequence.shape[1:]), padding_value)
            sequence = rushlight.cat([filler, sequence] if padding_side == "left" else [sequence, filler])
        rows.append(sequence)
    return rushlight.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences of a padded tensor, without their padding."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [padded[: int(length)] for padded, length in zip(padded_sequences, lengths, strict=True)]


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Take the padding out of a padded tensor.

    >>> import rushlight as torch
    >>> padded = torch.tensor([[1, 2, 3], [4, 0, 0]])
    >>> torch.nn.utils.rnn.pack_padded_sequence(padded, [3, 1], batch_first=True).data
    tensor([1, 4, 2, 3])
    """
    lengths = rushlight.as_tensor(lengths, dtype=rushlight.int64)
    if lengths.dim() != 1:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D "
            f"{lengths.device.type} {type_name(lengths.dtype)} tensor"
        )
    if batch_first:
        input = input.transpose(0, 1)
    sizes, sorted_indices = lengths.tolist(), None
    if not enforce_sorted:
        order = sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True)
        # sorted() keeps equal lengths in order when reversed, as torch's descending sort does.
        sorted_indices = rushlight.tensor(order, device=input.device)
        sizes = [sizes[i] for i in order]
        if len(sizes) == input.size(1):
            input = input.index_select(1, sorted_indices)
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if len(sizes) != input.size(1):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} "
            f"(batch_size={input.size(1)})"
        )
    if sizes[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if sizes != sorted(sizes, reverse=True):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this "
            "requirement if you do not need ONNX exportability."
        )
    if sizes[0] > input.size(0):
        raise RuntimeError(f"Expected lengths of at most {input.size(0)}, but got {sizes[0]}")
    alive = [sum(size > step for size in sizes) for step in range(sizes[0])]
    return PackedSequence(_joined(input, alive), rushlight.tensor(alive), sorted_indices)


@told(
    no_complex_gradient="_pack_padded_sequence",
    no_forward_mode="_pack_padded_sequence",
    node_name="PackPaddedSequenceBackward0",
)
def _joined(input, alive):
    """The first elements of every step, as many as are alive there."""
    return rushlight.cat([input[step, :count] for step, count in enumerate(alive)])


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """The padded tensor of a PackedSequence, and the lengths.

    >>> import rushlight as torch
    >>> packed = torch.nn.utils.rnn.pack_sequence([torch.ones(2), torch.ones(1)])
    >>> torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1., 1.],
            [1., 0.]]), tensor([2, 1]))
    """
    alive = sequence.batch_sizes.tolist()
    steps = len(alive)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {steps}"
            )
        alive += [0] * (total_length - steps)
    data, batch, rows, offset = sequence.data, alive[0], [], 0
    for count in alive:
        row = data[offset : offset + count]
        if count < batch:
            row = rushlight.cat([row, data.new_full((batch - count, *data.shape[1:]), padding_value)])
        rows.append(row)
        offset += count
    padded = rushlight.stack(rows)
    lengths = rushlight.tensor([sum(count > i for count in alive) for i in range(batch)])
    if batch_first:
        padded = padded.transpose(0, 1)
    if sequence.unsorted_indices is not None:  # lies in order then: a dropout draws its mask in that order
        padded = padded.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return padded, lengths


def pack_sequence(sequences, enforce_sorted=True):
    """Pack a list of sequences of different lengths.

    >>> import rushlight as torch
    >>> torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])]).data
    tensor([1, 4, 2, 3])
    """
    lengths = [sequence.size(0) for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The list of sequences of a PackedSequence."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
