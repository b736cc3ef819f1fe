"""`python -m rushlight program.py`: torch's place, and otherwise plain Python's behaviour."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight

PACKAGE_PARENT = Path(rushlight.__file__).parents[1]


@pytest.fixture
def directory(tmp_path):
    """An empty directory in which an installed torch would break any program that touched it."""
    trap = tmp_path / "trap" / "torch"
    trap.mkdir(parents=True)
    (trap / "__init__.py").write_text("raise SystemExit('the installed torch was imported')\n")
    return tmp_path


@pytest.fixture
def python(directory):
    def run(*arguments, stdin=None):
        path = os.pathsep.join([str(directory / "trap"), str(PACKAGE_PARENT)])
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=directory,
            env={**os.environ, "PYTHONPATH": path},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


@pytest.fixture
def program(directory, python):
    """Runs the given source as program.py under `python -m rushlight`."""

    def run(source, *arguments):
        (directory / "program.py").write_text(source)
        return python("-m", "rushlight", "program.py", *arguments)

    return run


def test_torch_is_rushlight(program):
    result = program("""\
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.optim import SGD
import rushlight

assert torch is rushlight
assert sys.modules["torch.nn"] is nn is rushlight.nn
assert nn.functional is F
assert optim.SGD is SGD is rushlight.optim.SGD
assert nn.__spec__.name == "rushlight.nn"
assert [module.__name__ for module in (torch, nn, F)] == ["torch", "torch.nn", "torch.nn.functional"]
x = torch.tensor(3.0, requires_grad=True)
(x ** 2).backward()
print(x.grad)
""")
    assert (result.returncode, result.stdout, result.stderr) == (0, "tensor(6.)\n", "")


def test_own_modules_are_known_by_their_own_names(program):
    """What is ours is told by the module that it was made in, which bears torch's name there."""
    result = program("""\
import torch
import torch.nn.functional as F

x = torch.rand(3, 2)
losses = [
    lambda x: F.pdist(x).sum(),
    lambda x: torch.cdist(x, x + 1).sum(),
    lambda x: F.embedding_bag(torch.tensor([[0, 1]]), x).sum(),
]
for loss in losses:
    leaf = x.clone().requires_grad_()
    loss(leaf).backward()
    assert torch.allclose(torch.func.grad(loss)(x), leaf.grad)
    assert torch.allclose(torch.vmap(torch.func.grad(loss))(x[None])[0], leaf.grad)

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


refused = 0
for call in (
    lambda: torch.func.grad(lambda x: Double.apply(x).sum())(x),
    lambda: torch.func.grad(lambda x: x.requires_grad_().sum())(x),
    lambda: torch.distributions.Distribution(validate_args=False).expand((2,)),
):
    try:
        call()
    except (RuntimeError, NotImplementedError):
        refused += 1
print(refused)
""")
    assert (result.returncode, result.stdout, result.stderr) == (0, "3\n", "")


SHOW = """\
import os, sys
print(__name__, os.path.basename(globals().get("__file__", "none")), sys.argv, os.path.basename(sys.path[0]))
"""


def test_another_name_alone_is_enough(directory, python):
    (directory / "program.py").write_text("""\
import sys
import rushlight
sys.modules["torch"] = rushlight
import torch.nn as nn
import torch.nn.functional as F
import torch.autograd.gradcheck
import torch.utils.checkpoint
from torch.utils.checkpoint import checkpoint
from torch.autograd import Function, gradcheck
names = [name for name in sys.modules if name.startswith("torch.")]
assert all(sys.modules[name] is sys.modules["rushlight" + name[5:]] for name in names)
print(callable(gradcheck), nn.Module is rushlight.nn.Module, Function is rushlight.autograd.Function)
try:
    import torch.nonsense
except ModuleNotFoundError as error:
    print(error)
""")
    result = python("program.py")
    assert (result.stdout, result.stderr) == ("True True True\nNo module named 'torch.nonsense'\n", "")


def test_without_the_name_torch_is_torch(directory, python):
    (directory / "program.py").write_text("import rushlight, rushlight.nn\nimport torch.nn\n")
    assert "the installed torch was imported" in python("program.py").stderr


@pytest.mark.parametrize("how", ["file", "-c", "-", "-m", "subdirectory", "package directory"])
def test_program_sees_what_python_shows(how, directory, python):
    (directory / "show.py").write_text(SHOW)
    (directory / "sub").mkdir()
    (directory / "sub" / "show.py").write_text(SHOW)
    (directory / "sub" / "__main__.py").write_text(SHOW)
    stdin = SHOW if how == "-" else None
    arguments = {
        "file": ["show.py"],
        "-c": ["-c", SHOW],
        "-": ["-"],
        "-m": ["-m", "show"],
        "subdirectory": [Path("sub", "show.py")],
        "package directory": ["sub"],
    }[how]
    expected = python(*arguments, "one", "--two", stdin=stdin)
    actual = python("-m", "rushlight", *arguments, "one", "--two", stdin=stdin)
    assert actual.stdout == expected.stdout != ""
    assert (actual.stderr, actual.returncode) == (expected.stderr, expected.returncode)


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    return 1 / 0\n\nf()\n",
        "x = (\n",
        "import sys\nsys.exit(7)\n",
        "raise SystemExit('stopped')\n",
        "raise KeyboardInterrupt\n",
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError('no') from error\n",
    ],
)
def test_tracebacks_and_exit_codes_are_pythons(source, directory, python):
    (directory / "program.py").write_text(source)
    expected = python("program.py")
    actual = python("-m", "rushlight", "program.py")
    assert (actual.stderr, actual.returncode) == (expected.stderr, expected.returncode)
    assert expected.returncode != 0


@pytest.mark.parametrize(
    "line, message",
    [
        (
            "torch.no_such_function(1)",
            "AttributeError: module 'rushlight' has no attribute 'no_such_function'",
        ),
        ("torch.nn.NoSuchLayer()", "AttributeError: module 'rushlight.nn' has no attribute 'NoSuchLayer'"),
        (
            "torch.ones(1).no_such_method()",
            "Tensor' object has no attribute 'no_such_method'",
        ),
        (
            "from torch.nn import NoSuchLayer",
            "ImportError: cannot import name 'NoSuchLayer' from 'torch.nn'",
        ),
        ("import torch.no_such_module", "ModuleNotFoundError: No module named 'torch.no_such_module'"),
        (
            "from torch.nn.no_such_module import x",
            "ModuleNotFoundError: No module named 'torch.nn.no_such_module'",
        ),
    ],
)
def test_what_rushlight_lacks_is_said(program, line, message):
    result = program(f"import torch\n{line}\n")
    assert message in result.stderr
    assert re.search(r"Rushlight( does not have|, which runs in torch's place here, has no) ", result.stderr)
    assert result.returncode == 1


def test_other_missing_names_are_left_alone(program):
    result = program("import os\nos.no_such_name\n")
    assert "AttributeError" in result.stderr
    assert "Rushlight" not in result.stderr


PARAMETER = """\
import pickle
import torch
weight = torch.nn.Parameter(torch.ones(1))
print(type(weight).__module__, type(torch.ones(1)).__module__)
assert pickle.loads(pickle.dumps(type(weight))) is torch.nn.parameter.Parameter
"""


TYPES = """\
import io, pickle, torch
values = [torch.float32, torch.device("cpu"), torch.Size([1]), torch.strided, torch.contiguous_format]
print({type(value).__module__ for value in values}, type(values[0]), torch.dtype is type(values[0]))
assert pickle.loads(pickle.dumps(values)) == values
file = io.BytesIO()
torch.save(values[:3], file)
file.seek(0)
assert torch.load(file) == values[:3]
try:
    torch.ones(2) + torch.float32
except TypeError as error:
    print(error)
"""


def test_types_of_what_is_no_tensor_are_torchs(program):
    result = program(TYPES)
    assert result.stderr == ""
    first, second = result.stdout.splitlines()
    assert first == "{'torch'} <class 'torch.dtype'> True"
    assert second == "unsupported operand type(s) for +: 'Tensor' and 'torch.dtype'"


@pytest.mark.parametrize("first", ["", "import rushlight.nn\n", "import torch.nn.parameter\n"])
def test_a_parameter_is_torchs(program, first):
    """Libraries tell whose tensor it is by the module of its class."""
    result = program(first + PARAMETER)
    assert result.stderr == ""
    assert result.stdout == "torch.nn.parameter torch\n"


def test_usage(python):
    assert python("-m", "rushlight").returncode == 2
    assert "usage:" in python("-m", "rushlight", "--help").stdout
    assert rushlight.__version__ in python("-m", "rushlight", "--version").stdout
    missing = python("-m", "rushlight", "no_such_program.py")
    assert missing.returncode == 2
    assert "can't open file" in missing.stderr
    assert python("-m", "rushlight", "--no-such-option").returncode == 2
    assert python("-m", "rushlight", "-c").returncode == 2


def test_dtypes_that_only_have_a_name():
    import rushlight as torch

    assert repr(torch.quint8) == "torch.quint8" and torch.quint8.itemsize == 1
    assert [d.itemsize for d in (torch.uint4, torch.int1, torch.bits16)] == [1, 1, 2]
    assert torch.int7.is_signed and not torch.uint7.is_signed and torch.float4_e2m1fn_x2.is_floating_point
    assert torch.float4_e2m1fn_x2.abbr == "f4e2m1fnx2" and torch.bits8.abbr == "b8x1"
    with pytest.raises(RuntimeError, match="Bits types are undefined"):
        torch.bits8.is_signed
    for dtype in (torch.qint8, torch.quint4x2, torch.uint4, torch.bits8, torch.float4_e2m1fn_x2):
        with pytest.raises(NotImplementedError, match="no tensor can have this dtype"):
            torch.zeros(2, dtype=dtype)
        with pytest.raises(NotImplementedError, match="no tensor can have this dtype"):
            torch.ones(2).to(dtype)


def test_a_program_sees_the_version_of_torch_that_is_followed(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import torch\nprint(torch.__name__, torch.__version__, torch.torch is torch)\n")
    done = subprocess.run(
        [sys.executable, "-m", "rushlight", str(program)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.startswith("torch 2.13.0+rushlight.") and done.stdout.endswith(" True\n"), done.stderr


def test_a_source_tree_without_a_compiled_part_says_so(tmp_path):
    package = tmp_path / "rushlight"
    package.mkdir()
    (package / "__init__.py").write_text(Path(rushlight.__file__).read_text())
    (package / "_C.pyi").touch()
    ended = subprocess.run(
        [sys.executable, "-c", "import rushlight"], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.returncode == 1 and "`make dev` to compile it here" in ended.stderr


ASKS_THE_METADATA = """\
import importlib.metadata as metadata
import torch

version = metadata.version("torch")
print(version == torch.__version__, version.startswith("2.13.0+rushlight."), torch.__version__ >= (2, 9))
print("torch" in metadata.packages_distributions()["torch"], metadata.metadata("Torch")["Name"])
print([found.metadata["Name"] for found in metadata.distributions(path=[])])
"""


@pytest.mark.parametrize("first", ["", 'import sys, rushlight\nsys.modules["torch"] = rushlight\n'])
def test_libraries_are_told_which_torch_is_installed(directory, python, first):
    """accelerate and transformers ask importlib.metadata, with or without an installed torch."""
    (directory / "program.py").write_text(first + ASKS_THE_METADATA)
    result = python("program.py") if first else python("-m", "rushlight", "program.py")
    assert (result.stdout, result.stderr) == ("True True True\nTrue torch\n[]\n", "")


def test_by_its_own_name_it_says_its_own_version(python):
    result = python("-c", "import rushlight; print(rushlight.__version__, '__version__' in dir(rushlight))")
    assert (result.stdout, result.stderr) == ("0.1.0 True\n", "")


def test_functorch_is_found_where_it_is_not_installed(program):
    result = program("""\
import sys
sys.path = [place for place in sys.path if "site-packages" not in place]
import torch
import functorch
from functorch import make_functional
from functorch.experimental import chunk_vmap
import functorch.compile
print(functorch.__version__ == torch.__version__, functorch.FunctionalModule.__name__)
print(chunk_vmap(torch.sin)(torch.zeros(2)))
import functorch.dim
""")
    assert result.stdout.splitlines() == ["True FunctionalModule", "tensor([0., 0.])"]
    assert "No module named 'functorch.dim'" in result.stderr


def test_programs_that_are_started_find_rushlight_as_torch(program, directory):
    (directory / "started.py").write_text(
        "import torch.nn as nn, torch; print(nn.__name__, torch.__version__)\n"
    )
    result = program("""\
import subprocess, sys, torch
def run(*arguments):
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    print(done.stdout + done.stderr, end="")
print(torch.__version__)
run("-c", "import torch; print(torch.ones(1, requires_grad=True).sum().grad_fn.name())")
run("started.py")
run("-c", "import subprocess, sys; subprocess.run([sys.executable, 'started.py'])")
run("-c", "import os, torch; print(os.environ['PYTHONPATH'].count('rushlight/_started'), torch.__name__)")
""")
    version, name, *started, last = result.stdout.splitlines()
    assert name == "SumBackward0"
    assert started[:2] == [f"torch.nn {version}"] * 2
    assert last == "1 torch"


def test_an_interpreter_that_cannot_load_rushlight_finds_the_torch_that_is_installed(program, directory):
    package = directory / "installed" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("print('the installed torch')\n")
    result = program("""\
import subprocess, sys
code = "import sys; sys.modules['rushlight'] = None; sys.path.insert(2, 'installed')"
code += "; import torch; print(torch.__file__)"
path = __import__("os").environ["PYTHONPATH"].split(":")[0]
done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": path})
print(done.stdout)
""")
    said, where = result.stdout.split()[:-1], result.stdout.split()[-1]
    assert said == ["the", "installed", "torch"]
    assert where.endswith("__init__.py") and "installed" in where
