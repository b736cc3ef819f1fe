"""torch.hub: files fetched from URLs and kept, and models of directories."""

import hashlib
import http.server
import io
import threading
import zipfile
from contextlib import contextmanager
from functools import partial
from urllib.error import HTTPError

import pytest

import rushlight as torch
from rushlight import hub


class Quiet(http.server.SimpleHTTPRequestHandler):
    asked = []

    def do_GET(self):
        self.asked.append((self.path, self.headers["User-Agent"]))
        super().do_GET()

    def log_message(self, *args):
        pass


@contextmanager
def server(directory):
    Quiet.asked.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=directory)) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def saved(path):
    torch.save({"w": torch.arange(3.0)}, path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Where files are kept during the test."""
    monkeypatch.setattr(hub, "_hub_dir", None)
    monkeypatch.setattr(hub, "tqdm", hub._Progress, raising=False)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "hub" / "checkpoints"


def test_weights_are_fetched_once_over_http(tmp_path, kept, capsys):
    saved(tmp_path / "model.pth")
    with server(tmp_path) as address:
        url = f"{address}/model.pth?version=1"
        assert hub.load_state_dict_from_url(url)["w"].tolist() == [0, 1, 2]
        shown = capsys.readouterr()
        assert shown.out == f'Downloading: "{url}" to {kept / "model.pth"}\n' and shown.err == "\r100.0%\n"
        assert hub.load_state_dict_from_url(url, weights_only=True)["w"].tolist() == [0, 1, 2]
        assert torch.utils.model_zoo.load_url(url, progress=False)["w"].shape == (3,)
    assert Quiet.asked == [("/model.pth?version=1", "torch.hub")] and capsys.readouterr() == ("", "")
    assert [path.name for path in kept.iterdir()] == ["model.pth"]


def test_weights_of_a_file_url_keep_the_name_asked_for(tmp_path, kept, capsys):
    saved(tmp_path / "model.pth")
    url = (tmp_path / "model.pth").as_uri()
    states = hub.load_state_dict_from_url(url, str(tmp_path / "mine"), progress=False, file_name="other")
    assert states["w"].dtype == torch.float32 and (tmp_path / "mine" / "other").exists()
    assert capsys.readouterr().err == "" and not kept.exists()


def test_the_hash_in_the_name_is_checked(tmp_path, kept):
    digest = saved(tmp_path / "model.pth")
    good, bad = tmp_path / f"model-{digest[:8]}.pth", tmp_path / "model-0123abcd.pth"
    for path in (good, bad):
        path.write_bytes((tmp_path / "model.pth").read_bytes())
    assert hub.load_state_dict_from_url(good.as_uri(), check_hash=True)["w"].sum() == 3
    with pytest.raises(RuntimeError, match=rf'invalid hash value \(expected "0123abcd", got "{digest}"\)'):
        hub.load_state_dict_from_url(bad.as_uri(), check_hash=True)
    assert [path.name for path in kept.iterdir()] == [good.name]
    assert hub.load_state_dict_from_url(bad.as_uri())["w"].sum() == 3


def test_a_broken_download_leaves_what_was_there(tmp_path, kept):
    target = tmp_path / "kept.bin"
    target.write_bytes(b"before")
    with server(tmp_path) as address, pytest.raises(HTTPError, match="404") as refused:
        hub.download_url_to_file(f"{address}/absent.bin", str(target), progress=False)
    refused.value.close()  # it holds the connection
    assert target.read_bytes() == b"before" and list(tmp_path.iterdir()) == [target]


def test_a_length_that_is_not_told(tmp_path, kept, monkeypatch, capsys):
    class Source(io.BytesIO):
        headers = {}

    monkeypatch.setattr(hub, "urlopen", lambda request: Source(b"x" * 200_000))
    hub.download_url_to_file("http://unknown/", str(tmp_path / "file"))
    assert capsys.readouterr().err == "\r131072.0 bytes\r200000.0 bytes\n"
    assert (tmp_path / "file").stat().st_size == 200_000


def test_weights_zipped_by_hand(tmp_path, kept):
    torch.save({"w": torch.ones(2)}, tmp_path / "inner.pth", _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(tmp_path / "packed.pth", "w") as archive:
        archive.write(tmp_path / "inner.pth", "inner.pth")
    with pytest.warns(FutureWarning, match="old format < 1.6"):
        assert hub.load_state_dict_from_url((tmp_path / "packed.pth").as_uri())["w"].tolist() == [1, 1]
    for name, told in [("../out.pth", "directory traversal"), ("/out.pth", "absolute path")]:
        with zipfile.ZipFile(tmp_path / "bad.pth", "w") as archive:
            archive.writestr(name, b"")
        with pytest.warns(FutureWarning), pytest.raises(ValueError, match=told):
            hub.load_state_dict_from_url((tmp_path / "bad.pth").as_uri(), str(tmp_path / told))


def test_models_of_a_directory(tmp_path):
    (tmp_path / "inside.py").write_text("size = 4")
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['json']\nimport inside\nnumber = 3\n"
        "def wide(n, bias=True): return inside.size * n, bias\n"
    )
    assert hub.load(str(tmp_path), "wide", 2, source="local", bias=False) == (8, False)
    for wrong in ("absent", "number"):
        with pytest.raises(RuntimeError, match=f"Cannot find callable {wrong} in hubconf"):
            hub.load(str(tmp_path), wrong, source="local")
    (tmp_path / "hubconf.py").write_text("dependencies = ['json', 'not_there_1', 'not_there_2']")
    with pytest.raises(RuntimeError, match="Missing dependencies: not_there_1, not_there_2"):
        hub.load(str(tmp_path), "wide", source="local")
    with pytest.raises(ValueError, match='Unknown source: "svn"'):
        hub.load(str(tmp_path), "wide", source="svn")
    for call in (hub.load, hub.help, hub.list):
        with pytest.raises(NotImplementedError, match="clone owner/models"):
            call("owner/models", "wide")


def test_where_files_are_kept(monkeypatch):
    monkeypatch.setattr(hub, "_hub_dir", None)
    monkeypatch.delenv("TORCH_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert hub.get_dir() == "/cache/torch/hub"
    monkeypatch.setenv("TORCH_HOME", "~/there")
    monkeypatch.setenv("HOME", "/user")
    assert hub.get_dir() == "/user/there/hub"
    hub.set_dir("~/other")
    assert hub.get_dir() == "/user/other"
    monkeypatch.setenv("TORCH_HUB", "/old")
    with pytest.warns(UserWarning, match="TORCH_HUB is deprecated"):
        assert hub.get_dir() == "/user/other"
