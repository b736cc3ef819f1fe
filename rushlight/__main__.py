"""Runs a program written for torch with `import torch` meaning Rushlight.

The program sees what it would see under plain Python: `__name__ == "__main__"`, its own `sys.argv`, its
directory in `sys.path`, its own lines in tracebacks and Python's exit codes.
"""

import builtins
import importlib.machinery
import io
import os
import runpy
import sys
from types import ModuleType
from typing import NoReturn

import rushlight
from rushlight._alias import FunctorchFinder, TorchFinder, explain
from rushlight.torch_version import followed

USAGE = """\
usage: python -m rushlight program.py [argument ...]
       python -m rushlight -m module [argument ...]
       python -m rushlight -c command [argument ...]
       python -m rushlight - [argument ...]          (program from standard input)

Runs a program written for torch: `import torch`, `torch.nn`, `torch.optim` ... resolve to Rushlight, whether
or not torch is installed. A name that Rushlight lacks raises an error that says so.

options:
  -h, --help     show this help
  -V, --version  show Rushlight's version
"""


def main(arguments: list[str]) -> None:
    if not arguments:
        sys.stderr.write(USAGE)
        sys.exit(2)
    what, rest = arguments[0], arguments[1:]
    if what in ("-h", "--help"):
        sys.stdout.write(USAGE)
    elif what in ("-V", "--version"):
        print(f"Rushlight {rushlight.__version__}")
    elif what in ("-m", "-c"):
        if not rest:
            fail(f"argument expected for the {what} option\n{USAGE}")
        prepare()
        if what == "-m":
            # sys.path[0] is the current directory already, as for `python -m`.
            sys.argv = rest
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv = ["-c", *rest[1:]]
            set_path("")
            run(rest[0], "<string>")
    elif what == "-":
        prepare()
        sys.argv = arguments
        set_path("")
        run(sys.stdin.read(), "<stdin>")
    elif what.startswith("-"):
        fail(f"unknown option {what}\n{USAGE}")
    else:
        prepare()
        sys.argv = arguments
        run_file(what)


def run_file(name: str) -> None:
    if os.path.isdir(name) or name.endswith((".zip", ".pyz")):
        runpy.run_path(name, run_name="__main__")
        return
    path = os.path.abspath(name)
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        fail(f"can't open file {path!r}: [Errno {error.errno}] {error.strerror}")
    set_path(os.path.dirname(os.path.realpath(path)))
    run(source, path)


def run(source: str | bytes, filename: str) -> None:
    """Executes `source` as the module `__main__`."""
    module = ModuleType("__main__")
    module.__dict__.update(__builtins__=builtins, __annotations__={})
    if filename != "<string>":
        module.__dict__.update(__file__=filename, __cached__=None)
    if os.path.exists(filename):
        module.__loader__ = importlib.machinery.SourceFileLoader("__main__", filename)
    else:
        module.__loader__ = importlib.machinery.BuiltinImporter
    sys.modules["__main__"] = module
    exec(compile(source, filename, "exec", dont_inherit=True), module.__dict__)


def prepare() -> None:
    """Puts Rushlight in torch's place, and takes this file's frames out of tracebacks."""
    sys.meta_path.insert(0, TorchFinder())
    sys.meta_path.append(FunctorchFinder())
    rushlight.__name__ = "torch"  # libraries that patch torch check the name
    # ... and ask how new torch is: as new as the one whose behaviour is followed here.
    rushlight.__version__ = followed(rushlight.__version__)
    show = sys.excepthook

    def excepthook(kind, error, traceback):
        while traceback is not None and traceback.tb_frame.f_code.co_filename in (__file__, "<frozen runpy>"):
            traceback = traceback.tb_next
        explain(error)
        show(kind, error.with_traceback(traceback), traceback)

    sys.excepthook = excepthook
    # Interpreters that the program starts find Rushlight as torch, too.
    started = os.path.join(os.path.dirname(os.path.abspath(rushlight.__file__)), "_started")
    places = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if started not in places:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (started, *places)))


def set_path(directory: str) -> None:
    if not sys.flags.safe_path:  # then Python put the current directory in front
        sys.path[0] = directory


def fail(message: str) -> NoReturn:
    sys.stderr.write(f"rushlight: {message}\n")
    sys.exit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
