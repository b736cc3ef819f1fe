"""save and load without torch at hand: what comes back, what is refused, what a damaged file does."""

import collections
import contextlib
import copy
import io
import mmap
import os
import pickle
import random
import struct
import tarfile
import warnings
import zipfile

import pytest

import rushlight as torch

REFUSALS = (
    RuntimeError,
    EOFError,
    pickle.UnpicklingError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
)


def saved(obj, **options):
    buffer = io.BytesIO()
    torch.save(obj, buffer, **options)
    buffer.seek(0)
    return buffer


def again(obj, **options):
    return torch.load(saved(obj), **options)


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("new", [True, False])
def test_views_share_their_storage(weights_only, new):
    x = torch.randn(4, 5)
    file = saved(
        {"x": x, "t": x.t(), "part": x[1:, 2:], "other": x.clone()}, _use_new_zipfile_serialization=new
    )
    back = torch.load(file, weights_only=weights_only)
    assert back["t"].stride() == (1, 5) and back["part"].storage_offset() == 7
    back["x"][1, 2] = 77
    assert back["t"][2, 1] == 77 and back["part"][0, 0] == 77 and back["other"][1, 2] != 77


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16",
                                   "int8", "uint8", "bool", "complex64", "complex128"])  # fmt: skip
def test_every_dtype_comes_back_bit_for_bit(dtype):
    x = torch.randn(3, 2, dtype=torch.float64).mul(50).to(getattr(torch, dtype))
    back = again(x)
    assert back.dtype == x.dtype and back.untyped_storage().tolist() == x.untyped_storage().tolist()


def test_parameters_attributes_and_state_dicts():
    parameter = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    parameter.note = "kept"
    back = again(parameter)
    assert isinstance(back, torch.nn.Parameter) and not back.requires_grad and back.note == "kept"
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    state = again(model.state_dict())
    assert type(state) is collections.OrderedDict and state._metadata["0"] == {"version": 1}
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    other = torch.optim.Adam(model.parameters())
    other.load_state_dict(again(optimizer.state_dict()))
    assert torch.equal(other.state[model[0].weight]["exp_avg"], optimizer.state[model[0].weight]["exp_avg"])


def test_a_whole_model_and_its_hooks():
    model = again(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()), weights_only=False)
    calls = []
    model.register_forward_hook(lambda *_: calls.append(1))
    model(torch.ones(1, 3))
    assert calls == [1]


def test_containers_and_numbers():
    value = [{"a": (1, 2.5, None, True, 2**70, -3, "é", b"x")}, {1, 2}, bytearray(b"z"), 1 + 2j,
             torch.float16, torch.Size([2, 3]), torch.device("cpu"), torch.strided,
             collections.Counter("aab"), [], {}]  # fmt: skip
    assert again(value) == value


class Evil:
    def __reduce__(self):
        return os.mkdir, ("/tmp/rushlight-evil",)


class Plain:
    pass


def test_a_malicious_file_runs_nothing():
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        again(Evil())
    assert not os.path.exists("/tmp/rushlight-evil")


@pytest.mark.parametrize("body", [
    b"c__builtin__\neval\nX\x03\x00\x00\x001+1\x85R.",  # a call of what is not in the table
    b"ctorch._utils\n_rebuild_tensor_v2\n}X\x01\x00\x00\x00aK\x01sb.",  # attributes for a function
    b"ctorch.nn.parameter\nParameter\nN}X\x01\x00\x00\x00aK\x01s\x86b.",  # and for a class
    b"ctorch._tensor\n_rebuild_from_type_v2\n(c_codecs\nencode\nctorch\nTensor\n)}tR.",
    b"ctorch\nFloatStorage\n)R.",
    b"ibuiltins\nprint\n.", b"h\x05.", b"K\x01", b"(.", b"a.", b"\x85.", b"K\x01Q.",
])  # fmt: skip
def test_strange_pickles_are_refused(body):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02" + body)
    buffer.seek(0)
    with pytest.raises((pickle.UnpicklingError, EOFError, RuntimeError, TypeError)):
        torch.load(io.BytesIO(buffer.getvalue()))


def test_classes_can_be_allowed():
    with pytest.raises(pickle.UnpicklingError, match=r"GLOBAL .*Plain was not an allowed global by default"):
        again(Plain())
    assert any(
        name.endswith("Plain")
        for name in torch.serialization.get_unsafe_globals_in_checkpoint(saved(Plain()))
    )
    with torch.serialization.safe_globals([Plain]):
        assert torch.serialization.get_safe_globals() == [Plain]
        assert type(again(Plain())) is Plain
    assert torch.serialization.get_safe_globals() == []
    assert type(again(Plain(), weights_only=False)) is Plain


def test_paths_are_written_atomically(tmp_path):
    path = tmp_path / "model.pt"
    torch.save(torch.ones(3), path)
    before = path.read_bytes()
    with pytest.raises((AttributeError, pickle.PicklingError)):
        torch.save([torch.zeros(3), lambda: 0], path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["model.pt"]
    assert zipfile.ZipFile(path).namelist()[0] == "model/data.pkl"
    with pytest.raises(RuntimeError, match="Parent directory"):
        torch.save(1, tmp_path / "nowhere" / "x.pt")


def test_mmap_reads_and_copies_on_write(tmp_path):
    path = tmp_path / "model.pt"
    x = torch.randn(100)
    torch.save({"x": x, "empty": torch.empty(0)}, path)
    before = path.read_bytes()
    back = torch.load(path, mmap=True)
    assert torch.equal(back["x"], x) and back["empty"].shape == (0,)
    back["x"].zero_()
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        torch.load(io.BytesIO(before), mmap=True)


def test_map_location():
    file = saved(torch.ones(3))
    assert torch.load(file, map_location="meta").device.type == "meta"
    seen = []
    file.seek(0)
    torch.load(file, map_location=lambda storage, location: seen.append((storage.nbytes(), location)))
    assert seen == [(12, "cpu")]
    file.seek(0)
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        torch.load(file, map_location="cuda")


def test_damaged_files_say_so():
    whole = saved({"x": torch.arange(50.0)}).getvalue()
    for length in range(0, len(whole), 37):
        with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError)):
            torch.load(io.BytesIO(whole[:length]))
    position = whole.index(torch.arange(50.0).numpy().tobytes())
    broken = bytearray(whole)
    broken[position + 5] ^= 1
    with pytest.raises(RuntimeError, match="failed reading file data/0"):
        torch.load(io.BytesIO(broken))
    for at in range(0, len(whole), 11):  # whatever happens, it is an exception or a value
        broken = bytearray(whole)
        broken[at] ^= 0x41
        with contextlib.suppress(*REFUSALS):
            torch.load(io.BytesIO(broken))


def test_tar_archives_are_read():
    parts = {"sys_info": b"", "storages": b"", "tensors": b"", "pickle": b""}
    data = struct.pack("<4f", 1, 2, 3, 4)
    parts["storages"] = (
        pickle.dumps(1, 2) + b"\x80\x02X\x01\x00\x00\x00sX\x03\x00\x00\x00cpuctorch\nFloatStorage\n\x87."
    )
    parts["storages"] += struct.pack("<q", 4) + data + pickle.dumps([], 2)
    parts["tensors"] = pickle.dumps(1, 2) + pickle.dumps((7, "s", None), 2)
    parts["tensors"] += struct.pack("<ii", 2, 0) + struct.pack("<5q", 2, 2, 1, 2, 0)
    parts["pickle"] = b"\x80\x02]K\x07Qa."
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in parts.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    buffer.seek(0)
    assert torch.load(buffer)[0].tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_storages():
    x = torch.arange(6.0)
    storage = x[2:].untyped_storage()
    assert storage == x.untyped_storage() and storage.nbytes() == 24 and storage.data_ptr() == x.data_ptr()
    torch.storage._reset_warn_typed_storage_removal()
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        typed = x.storage()
    assert isinstance(typed, torch.FloatStorage) and not isinstance(typed, torch.LongStorage)
    typed[1] = 9
    assert x[1] == 9 and typed.tolist() == x.tolist()
    y = torch.empty(0)
    y.set_(storage, 1, (2, 2), (2, 1))
    assert y.tolist() == [[9, 2], [3, 4]]
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 24"):
        y.set_(torch.frombuffer(bytearray(24), dtype=torch.float32), 3, (2, 2), (2, 1))
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 24"):
        y.set_(storage, 3, (2, 2), (2, 1))  # the sizes and strides are those that y has
    y.set_()
    y.set_(storage, 3, (2, 2), (2, 1))  # what can grow does
    assert storage.nbytes() == 28 and y[0].tolist() == [3, 4]
    assert torch.equal(pickle.loads(pickle.dumps(x)), x)
    assert pickle.loads(pickle.dumps(storage)).tolist() == storage.tolist()


def test_npz(tmp_path):
    pytest.importorskip("numpy")
    from rushlight.utils.npz import load_npz, save_npz

    path = tmp_path / "tensors.npz"
    tensors = {
        name: torch.ones(2, 3, dtype=getattr(torch, name))
        for name in ("float16", "float64", "int8", "bool", "complex64")
    }
    for compressed in (False, True):
        save_npz(path, tensors, compressed=compressed)
        back = load_npz(path)
        assert list(back) == list(tensors)
        for name, tensor in tensors.items():
            assert back[name].dtype == tensor.dtype and back[name].equal(tensor)
    before = path.read_bytes()
    with pytest.raises(TypeError, match="no bfloat16"):
        save_npz(path, {"x": torch.ones(1).bfloat16()})
    with pytest.raises(TypeError, match="not an array of numbers"):
        save_npz(path, {"x": object()})
    assert path.read_bytes() == before


def test_safetensors(tmp_path):
    pytest.importorskip("safetensors")
    from rushlight.utils import safetensors

    path = tmp_path / "model.safetensors"
    tensors = {
        "a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2).bfloat16(),
        "empty": torch.empty(0, 2), "c": torch.ones(2, dtype=torch.complex64),
    }  # fmt: skip
    safetensors.save_file(tensors, path, {"made": "here"})
    back = safetensors.load_file(path)
    for name, tensor in tensors.items():
        assert back[name].dtype == tensor.dtype and back[name].equal(tensor)
    whole = torch.ones(4)
    for wrong, error in (
        ({"x": 1}, ValueError),
        ({"x": torch.ones(2, 3).t()}, ValueError),
        ({"x": whole, "y": whole[:2]}, RuntimeError),
    ):
        with pytest.raises(error):
            safetensors.save(wrong)
    model, other = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    safetensors.save_model(model, path)
    assert safetensors.load_model(other, path) == ([], [])
    assert other.weight.equal(model.weight)
    with pytest.raises(RuntimeError, match="Error\\(s\\) in loading state_dict"):
        safetensors.load_model(torch.nn.Linear(3, 2, bias=False), path)


def test_flipped_bytes_are_refused_clearly():
    """Whatever is damaged, load answers with a tensor or with one of the errors that say what is wrong."""
    content = {
        "a": torch.arange(6.0).reshape(2, 3),
        "b": [torch.nn.Parameter(torch.ones(3))],
        "c": torch.tensor(3),
    }
    rng = random.Random(11)
    for new in (True, False):
        good = saved(content, _use_new_zipfile_serialization=new).getvalue()
        for _ in range(300):
            bad = bytearray(good)
            for _ in range(rng.choice([1, 2, 8])):
                at = rng.randrange(len(bad))
                if rng.random() < 0.7:
                    bad[at] = rng.randrange(256)
                else:
                    del bad[at : at + rng.randrange(1, 12)]
            with (
                contextlib.suppress(RuntimeError, pickle.UnpicklingError, EOFError),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore")
                torch.load(io.BytesIO(bytes(bad)))


def test_options_of_saving(tmp_path):
    from rushlight.utils.serialization import config

    path = tmp_path / "a.pt"
    with config.patch("save.storage_alignment", 4096):
        torch.save(torch.arange(3.0), path)
    data = path.read_bytes()
    assert data.index(struct.pack("<3f", 0, 1, 2)) % 4096 == 0
    torch.serialization.set_crc32_options(False)
    try:
        torch.save(torch.arange(3.0), path)
    finally:
        torch.serialization.set_crc32_options(True)
    assert all(entry.CRC == 0 for entry in zipfile.ZipFile(path).infolist())
    assert torch.load(path).tolist() == [0, 1, 2]
    with pytest.raises(AttributeError):
        config.patch("save.nothing", 1)


def test_a_shared_mapping_writes_to_the_file(tmp_path):
    path = tmp_path / "a.pt"
    torch.save({"x": torch.zeros(3), "y": torch.ones(2)}, path)
    with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        torch.load(path, mmap=True)["x"].fill_(7)
    assert torch.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    assert torch.load(path)["x"].tolist() == [7, 7, 7]
    with config_mmap():
        torch.load(path)["y"].fill_(9)
    assert torch.load(path)["y"].tolist() == [1, 1]


def config_mmap():
    from rushlight.utils.serialization import config

    return config.patch({"load.mmap": True})


def test_models_can_be_allowed_by_their_classes():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    data = saved(model).getvalue()
    assert "torch.nn.modules.linear.Linear" in torch.serialization.get_unsafe_globals_in_checkpoint(
        io.BytesIO(data)
    )
    with torch.serialization.safe_globals([torch.nn.Sequential, torch.nn.Linear, torch.nn.BatchNorm1d]):
        assert repr(torch.load(io.BytesIO(data))) == repr(model)


def test_what_rushlight_lacks_is_named():
    body = b"\x80\x02ctorch._utils\n_rebuild_qtensor\n."
    with zipfile.ZipFile(buffer := io.BytesIO(), "w") as archive:
        archive.writestr("a/data.pkl", body)
        archive.writestr("a/version", b"3")
    with pytest.raises(NotImplementedError, match="quantized tensors"):
        torch.load(io.BytesIO(buffer.getvalue()))


def test_damage_is_named(tmp_path):
    import tarfile

    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        entry = tarfile.TarInfo("storages")
        entry.size = len(record := pickle.dumps({}, 2))
        archive.addfile(entry, io.BytesIO(record))
    with pytest.raises(RuntimeError, match="the records of the checkpoint are damaged"):
        torch.load(io.BytesIO(tar.getvalue()))
    whole = io.BytesIO()
    torch.save(torch.ones(3), whole, _use_new_zipfile_serialization=False)
    for length in range(1, len(whole.getvalue())):
        with pytest.raises((EOFError, RuntimeError, pickle.UnpicklingError), match=r"."):
            torch.load(io.BytesIO(whole.getvalue()[:length]))


@pytest.mark.parametrize(
    "name",
    ["tanh", "einsum", "split", "Tensor.add", "Tensor.sin_", "Tensor.max", "special.erf", "linalg.inv"],
)
def test_functions_are_pickled_by_name(name):
    import copy
    import operator

    function = operator.attrgetter(name)(torch)
    assert pickle.loads(pickle.dumps(function)) is function and copy.deepcopy([function])[0] is function


def test_operators_are_copied_and_pickled_by_name():
    for name in dir(torch.Tensor):
        operator = getattr(torch.Tensor, name)
        if type(operator) in (type(torch.Tensor.__rmod__), type(torch.Tensor.__add__)):
            assert copy.deepcopy(operator) is operator
            assert pickle.loads(pickle.dumps(operator)) is operator
    assert pickle.loads(pickle.dumps(int.__rmod__)) is int.__rmod__
