"""What libraries take from torch.hub that can be had without fetching anything."""

from __future__ import annotations

import os
import re
from urllib.parse import urlparse

__all__ = ["HASH_REGEX", "torch_home", "urlparse"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # of the names of model files


def torch_home() -> str:
    """Where libraries keep what they have fetched, by the variables that torch reads."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))
