"""Tensors in a directory (torch.utils._content_store): equal memory once, shared memory shared."""

import os

import pytest

import rushlight as torch
from rushlight.utils._content_store import ContentStoreReader, ContentStoreWriter, hash_storage


def test_what_is_written_is_read(tmp_path):
    writer, reader = ContentStoreWriter(str(tmp_path)), ContentStoreReader(str(tmp_path))
    complex_ = torch.complex(torch.ones(2), torch.ones(2))
    tensors = {
        "scalar": torch.tensor(2.0, dtype=torch.float64),
        "some/place/columns": torch.arange(6.0).view(2, 3).T,
        "part": torch.arange(6.0)[2:4],
        "empty": torch.ones(0, 3, dtype=torch.int16),
        "recorded": torch.ones(2, requires_grad=True) * 2,
        "conjugate": complex_.conj(),
        "imaginary": complex_.conj().imag,
    }
    for name, tensor in tensors.items():
        writer.write_tensor(name, tensor)
    for name, tensor in tensors.items():
        read = reader.read_tensor(name)
        assert torch.equal(read, tensor) and read.dtype == tensor.dtype and not read.requires_grad
        assert read.stride() == tensor.stride()
        assert (read.is_conj(), read.is_neg()) == (tensor.is_conj(), tensor.is_neg())
    assert reader.read_tensor("part", device="meta").device.type == "meta"
    # The columns and the part have the same memory, and so have the parts of the complex numbers.
    assert len(os.listdir(tmp_path / "storages")) == len(tensors) - 2


def test_memory_is_shared_while_somebody_holds_it(tmp_path):
    writer, reader = ContentStoreWriter(str(tmp_path)), ContentStoreReader(str(tmp_path))
    x = torch.arange(4.0)
    writer.write_tensor("x", x)
    writer.write_tensor("square", x.view(2, 2))
    one, other = reader.read_tensor("x"), reader.read_tensor("square")
    one.fill_(3.0)
    assert other.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    del one
    assert reader.read_tensor("x").tolist() == [3.0] * 4
    del other
    assert reader.read_tensor("x").tolist() == x.tolist()
    alone = ContentStoreReader(str(tmp_path), cache=False)
    first, second = alone.read_tensor("x"), alone.read_tensor("x")
    assert first.fill_(1.0).tolist() != second.tolist()
    x.add_(1)
    writer.write_tensor("x", x)
    assert alone.read_tensor("x").tolist() == x.tolist()


def test_names(tmp_path):
    with pytest.raises(FileNotFoundError, match="tensors"):
        ContentStoreReader(str(tmp_path)).read_tensor("absent")
    a, b = torch.ones(3), torch.ones(3)
    hashes = {hash_storage(t.untyped_storage(), stable_hash=same) for t in (a, b) for same in (False, True)}
    assert len(hashes) == 1 and hash_storage((a + 1).untyped_storage()) not in hashes
    assert hash_storage(a.untyped_storage()) != hash_storage(torch.ones(4).untyped_storage())
