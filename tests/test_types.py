"""What type checkers say of a user's program, by mypy and by pyright; both must say the same."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import retrograd as rg

PROGRAM = Path(__file__).with_name("typed_program.txt")
SOURCE = Path(rg.__file__).parents[1]


def expected() -> dict[int, str]:
    """By line what stands behind `# is`."""
    found = {}
    for number, line in enumerate(PROGRAM.read_text(encoding="utf-8").splitlines(), 1):
        if said := re.search(r"# is (.*)$", line):
            found[number] = said[1]
    assert len(found) > 100
    return found


@pytest.fixture
def program(tmp_path):
    """The file, where checkers take it for Python."""
    path = tmp_path / "program.py"
    path.write_bytes(PROGRAM.read_bytes())
    return path


def plain(text: str) -> str:
    """A type without the modules of classes, in one spelling for both checkers."""
    text = re.sub(r"(?:\w+\.)+(?=\w)", "", text.strip().strip('"'))
    named = re.fullmatch(r"tuple\[.*, fallback=(\w+)\]", text)
    return named[1] if named else text.replace("Unknown", "Any")


def run(command: list[str], folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "MYPYPATH": str(SOURCE)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    return done.stdout + done.stderr


def compare(found: dict[int, str], errors: set[int], text: str) -> None:
    wanted = expected()
    wrong = {i for i, kind in wanted.items() if kind == "an error"}
    assert errors == wrong, text
    told = {i: kind for i, kind in wanted.items() if i not in wrong}
    assert {i: found.get(i) for i in told} == told


@pytest.mark.slow
def test_mypy(program, tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed (extra: dev)")
    options = ["--strict", "--no-error-summary", "--cache-dir", str(tmp_path)]
    text = run([sys.executable, "-m", "mypy", *options, str(program)], tmp_path)
    found, errors = {}, set()
    for line in text.splitlines():
        if said := re.match(r".*program\.py:(\d+): note: Revealed type is (.*)", line):
            found[int(said[1])] = plain(said[2])
        elif said := re.match(r".*program\.py:(\d+): error: ", line):
            errors.add(int(said[1]))
        else:
            assert "note:" in line, text
    compare(found, errors, text)


@pytest.mark.slow
@pytest.mark.usefixtures("program")
def test_pyright(tmp_path):
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip("basedpyright is not installed (extra: dev)")
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps({"typeCheckingMode": "standard", "pythonVersion": "3.11"})
    )
    command = ["-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
    text = run([sys.executable, *command, "-p", str(tmp_path)], tmp_path)
    found, errors = {}, set()
    for one in json.loads(text[text.index("{") :])["generalDiagnostics"]:
        line = one["range"]["start"]["line"] + 1
        if said := re.match(r'Type of "(?:.|\n)*" is "((?:.|\n)*)"$', one["message"]):
            found[line] = plain(said[1])
        elif one["severity"] == "error":
            errors.add(line)
    compare(found, errors, text)
