"""torch.hub: parameters by URL and models from a directory."""

import hashlib
import os

import pytest

import rushlight
from rushlight import hub

HUBCONF = """
dependencies = ["rushlight"{more}]
import rushlight, beside

def net(size=2):
    rushlight.manual_seed(0)
    return rushlight.nn.Linear(size, beside.OUT)

number = 3
"""


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "_hub_dir", None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    (tmp_path / "beside.py").write_text("OUT = 1")
    (tmp_path / "hubconf.py").write_text(HUBCONF.format(more=""))
    return tmp_path


def test_parameters_by_url(directory):
    saved = directory / "model.pth"
    rushlight.save({"weight": rushlight.ones(2)}, saved)
    digest = hashlib.sha256(saved.read_bytes()).hexdigest()
    named = saved.rename(directory / f"model-{digest[:8]}.pth")
    got = hub.load_state_dict_from_url(named.as_uri(), progress=False, check_hash=True)
    assert got["weight"].tolist() == [1, 1]
    kept = os.path.join(hub.get_dir(), "checkpoints")
    assert hub.get_dir() == str(directory / "home" / "hub") and os.listdir(kept) == [named.name]
    named.unlink()  # fetched once
    assert hub.load_state_dict_from_url(named.as_uri(), progress=False)["weight"].tolist() == [1, 1]


def test_a_file_that_is_not_the_one_asked_for(directory):
    wrong = directory / "model-00000000.pth"
    rushlight.save({}, wrong)
    with pytest.raises(RuntimeError, match='invalid hash value \\(expected "00000000", got "'):
        hub.load_state_dict_from_url(wrong.as_uri(), progress=False, check_hash=True)
    assert os.listdir(os.path.join(hub.get_dir(), "checkpoints")) == []


def test_a_model_from_a_directory(directory):
    assert hub.load(str(directory), "net", 3, source="local").weight.shape == (1, 3)
    for name in ("number", "nothing"):
        with pytest.raises(RuntimeError, match=f"Cannot find callable {name} in hubconf"):
            hub.load(str(directory), name, source="local")
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load(str(directory), "net", source="elsewhere")
    with pytest.raises(NotImplementedError, match="source='local'"):
        hub.load("owner/name", "net")
    (directory / "hubconf.py").write_text(HUBCONF.format(more=', "no_such_package"'))
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        hub.load(str(directory), "net", source="local")
