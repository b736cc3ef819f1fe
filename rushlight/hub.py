"""torch.hub: files fetched once and kept, and models that a directory offers in its `hubconf.py`.

Fetching repositories from GitHub is not there: clone one and name its directory with ``source="local"``.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import uuid
import warnings
import zipfile
from typing import Any
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from rushlight.serialization import load as _load_file

__all__ = [
    "download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir",
]  # fmt: skip

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # of the names of model files
READ_DATA_CHUNK = 128 * 1024
_hub_dir: str | None = None


class _Progress:
    """How much has arrived, on standard error: what is shown where tqdm is not installed."""

    def __init__(self, total: int | None = None, disable: bool = False, **kwargs: Any) -> None:
        self.total, self.disable, self.n = total, disable, 0

    def update(self, n: int) -> None:
        self.n += n
        if not self.disable:
            done = f"{self.n:.1f} bytes" if self.total is None else f"{100 * self.n / self.total:.1f}%"
            sys.stderr.write(f"\r{done}")
            sys.stderr.flush()

    def set_description(self, *args: Any, **kwargs: Any) -> None:
        pass

    def write(self, line: str) -> None:
        sys.stderr.write(f"{line}\n")

    def close(self) -> None:
        self.disable = True

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        if not self.disable:
            sys.stderr.write("\n")


def __getattr__(name: str) -> Any:
    if name == "tqdm":  # looked for when it is used: importing it takes longer than importing Rushlight
        try:
            from tqdm import tqdm  # type: ignore[import-untyped]
        except ImportError:
            tqdm = _Progress
        globals()[name] = tqdm
        return tqdm
    raise AttributeError(f"module 'torch.hub' has no attribute '{name}'")


def _get_torch_home() -> str:
    """Where libraries keep what they have fetched, by the variables that torch reads."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The directory of what was fetched: what `set_dir` was given, else ``hub`` below ``$TORCH_HOME``."""
    if os.environ.get("TORCH_HUB"):
        warnings.warn("TORCH_HUB is deprecated, please use env TORCH_HOME instead", stacklevel=2)
    return os.path.join(_get_torch_home(), "hub") if _hub_dir is None else _hub_dir


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets the directory where files are kept.

    >>> before = rushlight.hub.get_dir()
    >>> rushlight.hub.set_dir("models")
    >>> rushlight.hub.get_dir()
    'models'
    >>> rushlight.hub.set_dir(before)
    """
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Fetches a URL into a file, which is there only once it is whole and its SHA256 begins as told."""
    dst = os.path.expanduser(dst)
    with _new_file_beside(dst) as file:
        try:
            with urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as source:
                length = source.headers.get("Content-Length")
                digest = hashlib.sha256()
                bar = sys.modules[__name__].tqdm(
                    total=int(length) if length is not None else None,
                    disable=not progress,
                    unit="B",
                    unit_scale=True,
                    unit_divisor=1024,
                )
                with bar:
                    while piece := source.read(READ_DATA_CHUNK):
                        file.write(piece)
                        digest.update(piece)
                        bar.update(len(piece))
            found = digest.hexdigest()
            if hash_prefix is not None and not found.startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
            file.close()
            shutil.move(file.name, dst)
        finally:
            if os.path.exists(file.name):
                os.remove(file.name)


def _new_file_beside(path: str) -> Any:
    for _ in range(tempfile.TMP_MAX):
        try:
            return open(f"{path}.{uuid.uuid4().hex}.partial", "xb")
        except FileExistsError:
            continue
    raise FileExistsError(errno.EEXIST, "No usable temporary file name found")


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """What `torch.load` reads from a URL; the file is fetched once and kept in `model_dir`.

    With `check_hash` the file's name tells how its SHA256 begins: ``name-<digits>.pth``.
    """
    if os.environ.get("TORCH_MODEL_ZOO"):
        warnings.warn("TORCH_MODEL_ZOO is deprecated, please use env TORCH_HOME instead", stacklevel=2)
    if model_dir is None:
        model_dir = os.path.join(get_dir(), "checkpoints")
    os.makedirs(model_dir, exist_ok=True)
    name = os.path.basename(urlparse(url).path) if file_name is None else file_name
    kept = os.path.join(model_dir, name)
    if not os.path.exists(kept):
        sys.stdout.write(f'Downloading: "{url}" to {kept}\n')
        prefix = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, kept, prefix and prefix.group(1), progress=progress)
    if (inner := _only_file_in_archive(kept)) is not None:
        warnings.warn(
            "Falling back to the old format < 1.6. This support will be deprecated in favor of default "
            "zipfile format introduced in 1.6. Please redo torch.save() to save it in the new zipfile "
            "format.",
            FutureWarning,
            stacklevel=2,
        )
        with zipfile.ZipFile(kept) as archive:
            kept = archive.extract(_inside(inner), model_dir)
    return _load_file(kept, map_location=map_location, weights_only=weights_only)


def _only_file_in_archive(path: str) -> str | None:
    """The name of the one file in a zip archive made by hand; what torch.save writes holds several."""
    if not zipfile.is_zipfile(path):
        return None
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    return members[0].filename if len(members) == 1 and not members[0].is_dir() else None


def _inside(name: str) -> str:
    """The name of a member of an archive; those that would be written elsewhere are refused."""
    normal = os.path.normpath(name)
    if normal.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", normal):
        raise ValueError(f"Archive entry has absolute path: {name}")
    if ".." in re.split(r"[/\\]", normal):
        raise ValueError(f"Archive entry contains directory traversal: {name}")
    return name


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: bool | str = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Calls the function `model` of the directory's ``hubconf.py``; `source` has to be ``"local"``."""
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        _no_github(repo_or_dir)
    sys.path.insert(0, repo_or_dir)
    try:
        path = os.path.join(repo_or_dir, "hubconf.py")
        spec = importlib.util.spec_from_file_location("hubconf.py", path)
        assert spec is not None and spec.loader is not None  # the name ends in .py
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return _entry(module, model)(*args, **kwargs)
    finally:
        sys.path.remove(repo_or_dir)


def _entry(module: Any, model: str) -> Any:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    needed = getattr(module, "dependencies", None) or ()
    missing = [package for package in needed if importlib.util.find_spec(package) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    function = getattr(module, model, None)
    if function is None or not callable(function):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return function


def _no_github(repository: str) -> Any:
    raise NotImplementedError(
        f"torch.hub does not fetch repositories from GitHub: clone {repository} and load it with "
        'torch.hub.load(directory, model, source="local")'
    )


def list(github: str, *args: Any, **kwargs: Any) -> Any:
    """Not implemented: what a repository on GitHub offers."""
    _no_github(github)


def help(github: str, *args: Any, **kwargs: Any) -> Any:
    """Not implemented: what a repository on GitHub says of a model."""
    _no_github(github)
