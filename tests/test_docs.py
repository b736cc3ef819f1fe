"""The documents say what is so: their code runs, the files they name exist."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted(path for path in (ROOT / "docs").glob("*.md") if path.stem != "coverage")
WITH_CODE = [path for path in DOCUMENTS if path.stem != "libraries"]  # a list of names
DESIGN = sorted((ROOT / "docs" / "design").glob("*.md"))
NAMING = [*DOCUMENTS, ROOT / "docs" / "design" / "measured.md"]


@pytest.mark.parametrize("document", WITH_CODE, ids=lambda path: path.stem)
def test_code_blocks(document):
    blocks = re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL)
    assert blocks
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, document.name, str(document), 0)
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_the_example_of_the_readme(capsys):
    exec(re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL).group(1), {})
    assert capsys.readouterr().out.startswith("tensor(")


@pytest.mark.parametrize(
    "document", [ROOT / "README.md", ROOT / "CHANGELOG.md", *DOCUMENTS, *DESIGN], ids=lambda path: path.stem
)
def test_named_files_exist(document):
    folders = r"native|rushlight|tests|docs|tools|examples|benchmarks|cmake"
    for name in re.findall(rf"(?<![\w/.])((?:{folders})/[\w/.-]*\w)", document.read_text()):
        made_by_the_build = name.startswith("rushlight/_lib/")
        assert made_by_the_build or (ROOT / name).exists() or (ROOT / f"{name}.py").exists(), name


@pytest.mark.parametrize("document", NAMING, ids=lambda path: path.stem)
def test_named_functions_exist(document):
    sources = [path for folder in ("native", "rushlight") for path in (ROOT / folder).rglob("*.*")]
    code = "".join(path.read_text() for path in sources if path.suffix in (".py", ".h", ".cpp"))
    words = set(re.findall(r"\w+", code))
    for name in re.findall(r"`(?:\w+\.)*([a-z_]\w+)`", document.read_text()):
        assert name in words, name
