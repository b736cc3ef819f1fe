"""What `import torch` finds in an interpreter that a program under `python -m rushlight` has started.

`prepare` (rushlight/__main__.py) puts the directory above into PYTHONPATH. Rushlight takes torch's place when
it is first imported; in an interpreter that cannot load it, of another version of Python, torch is what else
is installed under that name.
"""

import importlib
import sys
from pathlib import Path

_above, _home = Path(__file__).parents[1], str(Path(__file__).parents[3])


def _take_place() -> None:
    beside = _home not in sys.path
    if beside:
        sys.path.append(_home)  # Rushlight may run from its sources
    try:
        from rushlight.__main__ import prepare
    except ImportError:
        sys.path[:] = [place for place in sys.path if Path(place) != _above]
        if beside:
            sys.path.remove(_home)
    else:
        prepare()
    del sys.modules["torch"]
    importlib.invalidate_caches()
    importlib.import_module("torch")


_take_place()
