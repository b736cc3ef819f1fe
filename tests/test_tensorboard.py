"""Event files: framed with valid checksums, and holding what was added."""

import struct
import zlib
from pathlib import Path

import pytest

import rushlight as torch
from rushlight.utils.tensorboard import SummaryWriter
from rushlight.utils.tensorboard._events import masked_crc


def read_records(path):
    data, at = Path(path).read_bytes(), 0
    while at < len(data):
        length, check = struct.unpack_from("<QI", data, at)
        assert check == masked_crc(data[at : at + 8])
        record = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length) == (masked_crc(record),)
        yield record
        at += length + 16


def read_message(data):
    """The fields of a protobuf message: number -> values."""
    fields, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = data[at], at + 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}[kind] if kind != 2 else varint()
            value, at = data[at : at + size], at + size
            value = struct.unpack("<d" if kind == 1 else "<f", value)[0] if kind != 2 else value
        fields.setdefault(key >> 3, []).append(value)
    return fields


def values(directory):
    (path,) = [p for p in Path(directory).iterdir() if p.is_file()]
    first, *records = map(read_message, read_records(path))
    assert first[3] == [b"brain.Event:2"]
    for event in records:
        value = read_message(read_message(event[5][0])[1][0])
        yield value[1][0].decode(), event.get(2, [None])[0], value


def test_checksum():
    assert (
        masked_crc(b"123456789")
        == (((0xE3069283 >> 15 | 0xE3069283 << 17) & 0xFFFFFFFF) + 0xA282EAD8) % 2**32
    )


def test_scalars(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", torch.tensor(0.5, requires_grad=True), 3)
        writer.add_scalar("plain", 2)
        writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 7)
    assert [(tag, step, value[2]) for tag, step, value in values(tmp_path)] == [
        ("loss", 3, [0.5]),
        ("plain", None, [2.0]),
    ]
    assert [(tag, step, v[2]) for tag, step, v in values(tmp_path / "both_b")] == [("both", 7, [2.0])]
    with pytest.raises(AssertionError, match="scalar should be 0D"):
        writer.add_scalar("loss", torch.ones(2))


def test_histogram(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("h", torch.tensor([0.0, 1.0, 1.0, 4.0, 7.0]), 1, bins=[0, 2, 4, 8, 16])
        with pytest.raises(ValueError, match="no element"):
            writer.add_histogram("h", torch.ones(0))
    ((_, _, value),) = values(tmp_path)
    fields = read_message(value[5][0])
    assert [fields[i] for i in range(1, 6)] == [[0.0], [7.0], [5.0], [13.0], [67.0]]
    limits, counts = (struct.unpack(f"<{len(fields[i][0]) // 8}d", fields[i][0]) for i in (6, 7))
    assert (limits, counts) == ((0, 2, 4, 8), (0, 3, 0, 2))


def test_image_and_text(tmp_path):
    picture = torch.randint(0, 256, (3, 4, 5), dtype=torch.uint8)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("im", picture, 1)
        writer.add_text("note", "*hello*", 2)
    image, text = (value for _, _, value in values(tmp_path))
    fields = read_message(image[4][0])
    assert (fields[1], fields[2], fields[3]) == ([4], [5], [3])
    png = fields[4][0]
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at = png.index(b"IDAT")
    (size,) = struct.unpack_from(">I", png, at - 4)
    rows = zlib.decompress(png[at + 4 : at + 4 + size])
    assert rows == b"".join(b"\0" + bytes(picture[:, y].t().flatten().tolist()) for y in range(4))
    assert read_message(text[8][0])[8] == [b"*hello*"]


def test_hparams_and_what_is_missing(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"lr": 0.1, "name": "adam"}, {"acc": 0.5}, run_name="run")
        with pytest.raises(NotImplementedError, match="not implemented"):
            writer.add_graph(torch.nn.Linear(1, 1))
    tags = [tag for tag, _, _ in values(tmp_path / "run")]
    assert tags == [
        "_hparams_/experiment", "_hparams_/session_start_info", "_hparams_/session_end_info", "acc",
    ]  # fmt: skip
