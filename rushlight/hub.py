"""torch.hub: parameters by URL, models from a directory with a `hubconf.py`.

Repositories on GitHub are not fetched: clone one and name its directory with `source="local"`.
"""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from types import ModuleType
from typing import Any
from urllib.parse import urlparse
from urllib.request import Request, urlopen

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # in the name of a file: how its SHA256 begins
_hub_dir: str | None = None


class _Faketqdm:
    """Stands for tqdm's bar where tqdm is not installed: counts, and shows nothing."""

    def __init__(self, total: int | None = None, disable: bool = False, *args: Any, **kwargs: Any) -> None:
        self.total, self.disable, self.n = total, disable, 0

    def update(self, n: int) -> None:
        self.n += n

    def close(self) -> None:
        pass

    def __enter__(self) -> _Faketqdm:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def __getattr__(name: str) -> Any:
    if name != "tqdm":
        raise AttributeError(f"module 'torch.hub' has no attribute '{name}'")
    try:
        from tqdm import tqdm
    except ImportError:
        tqdm = _Faketqdm
    globals()["tqdm"] = tqdm
    return tqdm


def _get_torch_home() -> str:
    """Where libraries keep what they have fetched, by the variables that torch reads."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The directory for what is fetched: `set_dir`'s, or `hub` in $TORCH_HOME or ~/.cache/torch.

    >>> rushlight.hub.set_dir("/tmp/models")
    >>> rushlight.hub.get_dir()
    '/tmp/models'
    """
    return os.path.join(_get_torch_home(), "hub") if _hub_dir is None else _hub_dir


def set_dir(d: str | os.PathLike) -> None:
    """Chooses the directory for what is fetched."""
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Fetches a file; `dst` is there only when it is whole and its SHA256 begins with `hash_prefix`."""
    dst = os.path.expanduser(dst)
    with urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as source:
        length = source.headers.get("Content-Length")
        bar = __getattr__("tqdm")(
            total=None if length is None else int(length),
            disable=not progress, unit="B", unit_scale=True, unit_divisor=1024,
        )  # fmt: skip
        handle, partial = tempfile.mkstemp(dir=os.path.dirname(dst) or ".", suffix=".partial")
        try:
            digest = hashlib.sha256()
            with open(handle, "wb") as part, bar:
                while chunk := source.read(1 << 17):
                    part.write(chunk)
                    digest.update(chunk)
                    bar.update(len(chunk))
            found = digest.hexdigest()
            if hash_prefix is not None and found[: len(hash_prefix)] != hash_prefix:
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(partial, 0o666 & ~mask)
            shutil.move(partial, dst)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.remove(partial)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """Loads what `torch.save` wrote from a URL, fetched once and kept in `model_dir`."""
    import rushlight

    directory = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(directory, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(directory, name)
    if not os.path.exists(path):
        sys.stdout.write(f'Downloading: "{url}" to {path}\n')
        named = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, named.group(1) if named else None, progress)
    return rushlight.load(path, map_location=map_location, weights_only=weights_only)


def _hubconf(directory: str, source: str) -> ModuleType:
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise NotImplementedError(
            "torch.hub does not fetch repositories from GitHub: clone it and give its directory to "
            "torch.hub.load with source='local'"
        )
    directory = os.path.expanduser(directory)
    with _path(directory):
        spec = importlib.util.spec_from_file_location("hubconf.py", os.path.join(directory, "hubconf.py"))
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Calls the function `model` of a directory's `hubconf.py` (`source="local"`) and returns its result."""
    module = _hubconf(repo_or_dir, source)
    needed = getattr(module, "dependencies", None) or ()
    missing = [name for name in needed if name not in sys.modules and importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    entry = getattr(module, model, None)
    if not callable(entry):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    with _path(os.path.expanduser(repo_or_dir)):
        return entry(*args, **kwargs)


@contextlib.contextmanager
def _path(directory: str) -> Any:
    sys.path.insert(0, directory)
    try:
        yield
    finally:
        sys.path.remove(directory)


def list(github: str, *args: Any, **kwargs: Any) -> builtins.list[str]:
    """Not implemented: repositories are not fetched from GitHub."""
    raise NotImplementedError("torch.hub.list is not implemented: repositories are not fetched from GitHub")


def help(github: str, model: str, *args: Any, **kwargs: Any) -> str:
    """Not implemented: repositories are not fetched from GitHub."""
    raise NotImplementedError("torch.hub.help is not implemented: repositories are not fetched from GitHub")
