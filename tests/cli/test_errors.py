"""Failures of a command as one readable message."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import retrograd as rg
from retrograd.cli.errors import ReadableErrors, readable
from retrograd.cli.signature import command
from tests.cli.runs import run


def bad_texts(folder: Path) -> dict[str, tuple[Path, str]]:
    (folder / "empty").touch()
    (folder / "latin").write_bytes(b"anna\nb\xf6rje\n")
    return {
        "empty": (folder / "empty", "is empty"),
        "latin": (folder / "latin", "byte 6 (0xf6), in line 2"),
        "missing": (folder / "missing", "no such file"),
        "directory": (folder, "this is a directory"),
    }


@pytest.mark.parametrize("kind", ["empty", "latin", "missing", "directory"])
def test_bad_text_is_a_message_and_exit_code_1(tmp_path: Path, kind: str) -> None:
    path, message = bad_texts(tmp_path)[kind]
    out = tmp_path / "run"
    result = run("train", "gpt", "--data", path, "--out", out)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert str(path) in result.stderr
    assert "Traceback" not in result.output
    assert not out.exists()
    assert run("--debug", "train", "gpt", "--data", path, "--out", out).exception is not None


def test_an_error_is_a_sentence_with_its_file_and_notes() -> None:
    error = FileNotFoundError(2, "there is no such file", "a.txt")
    error.add_note("look elsewhere")
    assert readable(error) == "a.txt: there is no such file\nlook elsewhere"
    assert readable(OSError(28, "no space is left")) == "no space is left"
    assert readable(rg.ShapeError("wrong shape")) == "wrong shape"


def test_a_defect_is_no_message() -> None:
    def broken() -> None:
        raise ZeroDivisionError

    def refused() -> None:
        raise rg.OptionError("so not")

    app = ReadableErrors(commands=[command(broken), command(refused)])
    found = CliRunner().invoke(app, ["refused"])
    assert (found.exit_code, found.stderr) == (1, "error: so not\n")
    assert isinstance(CliRunner().invoke(app, ["broken"]).exception, ZeroDivisionError)


def test_ctrl_c_is_the_exit_code_of_its_signal() -> None:
    def stopped() -> None:
        raise KeyboardInterrupt

    app = ReadableErrors(commands=[command(stopped)])
    assert CliRunner().invoke(app, ["stopped"]).exit_code == 130
