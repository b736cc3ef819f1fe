"""Writing for TensorBoard goes through tensorboardX."""

import importlib
import sys

import pytest

import rushlight as torch


def test_without_the_library_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    monkeypatch.delitem(sys.modules, "rushlight.utils.tensorboard", raising=False)
    with pytest.raises(ModuleNotFoundError, match="pip install tensorboardX"):
        importlib.import_module("rushlight.utils.tensorboard")


def test_tensors_are_written_as_arrays(tmp_path):
    pytest.importorskip("tensorboardX")
    from tensorboardX.proto.event_pb2 import Event

    from rushlight.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", torch.tensor(2.5, requires_grad=True), 3)
        writer.add_scalars("both", {"a": torch.tensor(1.0), "b": 2.0}, 1)
        writer.add_histogram("weights", torch.arange(10.0), 3)
        with pytest.raises(NotImplementedError, match="add_graph"):
            writer.add_graph(torch.nn.Linear(2, 2))
    (file,) = tmp_path.glob("events*")
    data, values = file.read_bytes(), {}
    while data:
        length = int.from_bytes(data[:8], "little")
        event = Event.FromString(data[12 : 12 + length])
        values.update({value.tag: value for value in event.summary.value})
        data = data[16 + length :]
    assert values["loss"].simple_value == 2.5
    assert values["weights"].histo.num == 10 and values["weights"].histo.sum == 45


def test_summaries_of_tensors(tmp_path):
    pytest.importorskip("tensorboardX")
    from rushlight.utils.tensorboard import SummaryWriter
    from rushlight.utils.tensorboard.summary import hparams, scalar

    assert scalar("loss", torch.tensor(2.5)).value[0].simple_value == 2.5
    experiment, start, end = hparams({"lr": 0.1}, {"loss": torch.tensor(1.0)})
    with SummaryWriter(str(tmp_path)) as writer:
        for summary in (experiment, start, end):
            writer._get_file_writer().add_summary(summary)
