"""Makes `import torch` mean Rushlight, for programs written for torch.

`TorchFinder` answers every import of `torch` or `torch.anything` with the Rushlight module of the same name:
the same object, so that `sys.modules["torch.nn"] is rushlight.nn`. An installed torch is never looked at. The
command line (`python -m rushlight program.py`) puts the finder in front of `sys.meta_path`.
"""

import importlib
import importlib.abc
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import rushlight


def rushlight_name(torch_name: str) -> str:
    """`torch.nn` -> `rushlight.nn`"""
    return "rushlight" + torch_name.removeprefix("torch")


def torch_name(rushlight_name: str) -> str:
    """`rushlight.nn` -> `torch.nn`"""
    return "torch" + rushlight_name.removeprefix("rushlight")


class TorchFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and loads `torch.x.y` as `rushlight.x.y`.

    What Rushlight lacks is not found by the finders after this one either: they look for a submodule of torch
    in Rushlight's own directory.
    """

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        name = rushlight_name(fullname)
        try:
            found = name in sys.modules or importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:  # not even the package it would be in
            found = False
        return ModuleSpec(fullname, self) if found else None

    @staticmethod
    def find_distributions(context=None):
        """What is asked of one directory is not answered: torch's place is none."""
        asked = vars(context) if context is not None else {}
        named = asked.get("name") is None or asked["name"].lower() == "torch"
        return iter([torch_distribution()] if named and "path" not in asked else [])

    def create_module(self, spec):
        module = importlib.import_module(rushlight_name(spec.name))
        # The import system stamps the spec it was asked for on the module; exec_module puts its own back.
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module):
        own = module.__spec__.loader_state
        module.__spec__ = own
        # It says the name that the program knows: torch's tests are called after `torch.nn.__name__`.
        module.__name__ = torch_name(own.name)
        # What a package imported of itself is there under its other name as well: importing it once more
        # would put the module in the place of what the package has under that name, such as the function
        # autograd.gradcheck.
        inner = own.name + "."
        for name, loaded in list(sys.modules.items()):
            if name.startswith(inner):
                sys.modules.setdefault(torch_name(name), loaded)
                loaded.__name__ = torch_name(name)
        name_types("torch")


class FunctorchFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `functorch`, which comes with torch, where it is not installed: it stands last."""

    OURS = "rushlight._functorch.package"

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] != "functorch":
            return None
        found = importlib.util.find_spec(self.OURS + fullname.removeprefix("functorch"))
        return found and ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        module = importlib.import_module(self.OURS + spec.name.removeprefix("functorch"))
        spec.loader_state = module.__spec__  # as in TorchFinder
        return module

    def exec_module(self, module):
        module.__spec__ = module.__spec__.loader_state
        module.__version__ = rushlight.__version__


def torch_distribution():
    """What `importlib.metadata` says of an installed torch: libraries ask it if there is one, and how new."""
    import importlib.metadata
    from pathlib import Path

    from rushlight.torch_version import TorchVersion, followed

    version = rushlight.__version__
    if not isinstance(version, TorchVersion):
        version = followed(version)
    files = {
        "METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n",
        "top_level.txt": "torch\n",
    }

    class TorchDistribution(importlib.metadata.Distribution):
        def read_text(self, filename):
            return files.get(filename)

        def locate_file(self, path):
            return Path(rushlight.__file__).parents[1] / path

    return TorchDistribution()


def name_types(package: str) -> None:
    """Lets parameters, dtypes and their like say that they are torch's or ours: libraries tell by the
    module of a type whose it is."""
    for kind in (
        rushlight.dtype,
        rushlight.device,
        rushlight.Size,
        rushlight.layout,
        rushlight.memory_format,
    ):
        kind.__module__ = package
    for kind in vars(sys.modules.get("rushlight.nn.parameter", object)).values():
        if isinstance(kind, type) and kind.__module__.endswith("nn.parameter"):
            kind.__module__ = f"{package}.nn.parameter"


def explain(error: BaseException) -> None:
    """Adds a note to an error about a name that torch may have and Rushlight lacks."""
    missing = None
    if isinstance(error, ImportError):
        if (error.name or "").partition(".")[0] in ("torch", "rushlight"):
            missing = f"no module {error.name}" if isinstance(error, ModuleNotFoundError) else "no such name"
    elif isinstance(error, AttributeError) and error.name is not None:
        owner = error.obj
        if isinstance(owner, ModuleType) and owner.__name__.partition(".")[0] in ("torch", "rushlight"):
            name = owner.__name__.removeprefix("rushlight").removeprefix("torch")
            missing = f"no torch{name}.{error.name}"
        elif isinstance(owner, rushlight.Tensor):
            missing = f"no Tensor.{error.name}"
    if missing is not None and "Rushlight" not in str(error):
        error.add_note(f"Rushlight, which runs in torch's place here, has {missing}.")
