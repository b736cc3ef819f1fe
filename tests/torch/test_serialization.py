"""Files of torch read by Rushlight, and the other way round."""

import io
import pickle
import re

import pytest
import torch
from comparing import assert_same

import rushlight


def exchange(writer, reader, obj, **options):
    buffer = io.BytesIO()
    writer.save(obj, buffer, **options)
    buffer.seek(0)
    return reader.load(buffer)


def content(library):
    x = library.arange(12.0).reshape(3, 4)
    return {
        "x": x, "t": x.t(), "part": x[1:, 2:], "scalar": library.tensor(3),
        "parameter": library.nn.Parameter(x[0].clone()), "empty": library.empty(0, 3),
        "half": x.half(), "bfloat": x.bfloat16(), "bool": x > 3, "complex": library.complex(x, x),
        "list": [1, 2.5, "text", None, True], "dtype": library.float16, "size": x.shape,
    }  # fmt: skip


@pytest.mark.parametrize("new", [True, False])
def test_both_directions(new):
    ours, theirs = content(rushlight), content(torch)
    read = exchange(torch, rushlight, theirs, _use_new_zipfile_serialization=new)
    back = exchange(rushlight, torch, ours, _use_new_zipfile_serialization=new)
    for name in ("x", "t", "part", "scalar", "parameter", "empty", "half", "bfloat", "bool", "complex"):
        assert_same(read[name], theirs[name])
        assert_same(ours[name], back[name])
    assert type(read["parameter"]) is rushlight.nn.Parameter and type(back["parameter"]) is torch.nn.Parameter
    assert read["list"] == back["list"] == ours["list"]
    assert read["dtype"] is rushlight.float16 and back["dtype"] is torch.float16
    back["x"][1, 2] = 50
    read["x"][1, 2] = 50
    for loaded in (back, read):
        assert loaded["t"][2, 1] == 50 and loaded["part"][0, 0] == 50


def test_the_files_have_the_same_bytes():
    def file(library):
        buffer = io.BytesIO()
        library.save({"x": library.arange(100.0), "y": [library.ones(2, 3), library.ones(1)]}, buffer)
        data = buffer.getvalue()
        at = data.index(b"archive/.data/serialization_id")
        return data[:at], len(data)

    assert file(rushlight) == file(torch)


def test_conjugated_views_and_state_dicts():
    z = torch.randn(3, dtype=torch.complex64)
    assert_same(exchange(torch, rushlight, z.conj()), z.conj().resolve_conj())
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1))
    ours = rushlight.nn.Sequential(rushlight.nn.Linear(3, 2), rushlight.nn.Tanh(), rushlight.nn.Linear(2, 1))
    ours.load_state_dict(exchange(torch, rushlight, model.state_dict()))
    assert_same(ours(rushlight.ones(1, 3)), model(torch.ones(1, 3)))
    model.load_state_dict(exchange(rushlight, torch, ours.state_dict()))


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_optimizer_states(name):
    def train(library, state=None):
        weight = library.nn.Parameter(library.arange(4.0))
        optimizer = getattr(library.optim, name)([weight], lr=0.1)
        if state is not None:
            optimizer.load_state_dict(state)
        (weight**2).sum().backward()
        optimizer.step()
        return optimizer.state_dict(), weight

    ours, theirs = train(rushlight)[0], train(torch)[0]
    copy = exchange(torch, rushlight, theirs)  # before the state is trained on
    assert_same(train(rushlight, copy)[1], train(torch, theirs)[1])
    copy = exchange(rushlight, torch, ours)
    assert_same(train(rushlight, ours)[1], train(torch, copy)[1])


def test_whole_models():
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.Embedding(3, 2))
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    ours = rushlight.load(buffer, weights_only=False)
    assert_same(ours[1](ours[0](rushlight.ones(1, 3))), model[1](model[0](torch.ones(1, 3))))
    buffer = io.BytesIO()
    rushlight.save(ours, buffer)
    buffer.seek(0)
    assert str(torch.load(buffer, weights_only=False)) == str(model)


def test_layers_are_named_after_torchs_files():
    from rushlight._checkpoint_pickle import torch_name

    for name in rushlight.nn.__all__:
        ours, theirs = getattr(rushlight.nn, name), getattr(torch.nn, name, None)
        if isinstance(ours, type) and isinstance(theirs, type):
            assert torch_name(ours.__module__, name) == (theirs.__module__, name)


@pytest.mark.parametrize(
    "data", [b"", b"garbage", b"PK\x03\x04garbage", b"\x80\x02K\x01.", b"\x80\x02}q\x00."]
)
def test_errors_are_torchs(data):
    def error(library, **options):
        with pytest.raises(Exception) as caught:
            library.load(io.BytesIO(data), **options)
        return type(caught.value), str(caught.value)[:120]

    if data and not data.startswith(b"PK"):  # of an empty file torch says nothing at all
        assert error(rushlight) == error(torch)
    assert error(rushlight)[0] is error(torch)[0]


class _AsRushlight(pickle.Unpickler):
    """What `python -m rushlight` makes of a pickle: the names of torch mean Rushlight's."""

    def find_class(self, module, name):
        return super().find_class(re.sub(r"^torch\b", "rushlight", module), name)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_what_is_local_is_refused_in_torchs_words():
    class Local:
        pass

    for obj in (Local, Local(), {"activation": lambda x: x}):
        refusals = []
        for library in (rushlight, torch):
            with pytest.raises((AttributeError, pickle.PicklingError)) as refusal:
                library.save(obj, io.BytesIO())
            refusals.append((refusal.type, str(refusal.value)))
        assert refusals[0] == refusals[1]


def test_pickles_of_torch_are_read():
    theirs = content(torch) | {"layer": torch.nn.Linear(2, 1)}
    read = _AsRushlight(io.BytesIO(pickle.dumps(theirs))).load()
    for name in ("x", "t", "part", "scalar", "parameter", "empty", "half", "bfloat", "bool", "complex"):
        assert_same(read[name], theirs[name])
    assert_same(read["layer"].weight, theirs["layer"].weight)
    assert read["dtype"] is rushlight.float16 and read["size"] == (3, 4)
