"""torch.hub: models from a directory with a hubconf.py, and state dicts from an address, kept in a cache.

Repositories on GitHub are not fetched; a clone of one loads with `source="local"`.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from typing import Any
from urllib.parse import urlparse
from urllib.request import Request, urlopen

import rushlight

__all__ = [
    "download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir",
]  # fmt: skip

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_directory: str | None = None


def _get_torch_home() -> str:
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The directory of the cache: `set_dir`, or $TORCH_HOME/hub, or ~/.cache/torch/hub."""
    return _directory if _directory is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike) -> None:
    """Sets the directory of the cache."""
    global _directory
    _directory = os.path.expanduser(os.fspath(d))


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Fetches `url` into the file `dst`, which appears when it is complete.

    With `hash_prefix` the SHA-256 of the content must begin so. `progress` says on stderr how far it is.
    """
    dst = os.path.expanduser(dst)
    digest = hashlib.sha256()
    with urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as response:
        length = response.headers.get("Content-Length")
        total = int(length) if length else None
        handle, partial = tempfile.mkstemp(dir=os.path.dirname(dst) or ".", suffix=".partial")
        try:
            with os.fdopen(handle, "wb") as file:
                done = 0
                while block := response.read(1 << 20):
                    file.write(block)
                    digest.update(block)
                    done += len(block)
                    if progress:
                        sys.stderr.write(
                            f"\r{done / 1e6:.1f} MB" + (f" of {total / 1e6:.1f}" if total else "")
                        )
            if progress:
                sys.stderr.write("\n")
            if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
                raise RuntimeError(
                    f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")'
                )
            shutil.move(partial, dst)
        finally:
            if os.path.exists(partial):
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
    """What `torch.load` reads from the file behind `url`, which is fetched once and kept in the cache.

    `check_hash=True` takes the beginning of the SHA-256 from the name of the file: `name-<hash>.pth`.
    """
    model_dir = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(model_dir, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    cached = os.path.join(model_dir, name)
    if not os.path.exists(cached):
        sys.stdout.write(f'Downloading: "{url}" to {cached}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, cached, found.group(1) if found else None, progress)
    return rushlight.load(cached, map_location=map_location, weights_only=weights_only)


def _hubconf(repo_or_dir: str, source: str) -> Any:
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise NotImplementedError(
            "torch.hub does not fetch repositories here: clone it and use source='local' with its directory"
        )
    spec = importlib.util.spec_from_file_location("hubconf", os.path.join(repo_or_dir, "hubconf.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, repo_or_dir)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(repo_or_dir)
    missing = [name for name in getattr(module, "dependencies", []) if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry_point(module: Any, model: Any) -> Any:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    function = getattr(module, model, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return function


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
    """Calls the function `model` of `repo_or_dir/hubconf.py` with the other arguments (source="local")."""
    return _entry_point(_hubconf(repo_or_dir, source.lower()), model)(*args, **kwargs)


def _github(github: str) -> Any:
    return _hubconf(github, "local" if os.path.isdir(github) else "github")


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    verbose: bool = True,
) -> builtins.list[str]:
    """The functions that the hubconf.py in the directory `github` offers."""
    module = _github(github)
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
) -> str | None:
    """The docstring of the function `model` that the hubconf.py in the directory `github` offers."""
    return _entry_point(_github(github), model).__doc__
