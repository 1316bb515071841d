"""The commands, their help, and wrong usage."""

from pathlib import Path

import pytest

import retrograd as rg
from tests.cli.runs import run


@pytest.mark.parametrize(
    "args", [[], ["train"], ["train", "gpt"], ["sample"], ["info"]], ids=lambda a: " ".join(a)
)
def test_every_command_has_help(args: list[str]) -> None:
    for flag in ("--help", "-h"):
        result = run(*args, flag)
        assert result.exit_code == 0
        assert "Usage: retrograd" in result.output or "Usage:" in result.output


def test_the_version() -> None:
    result = run("--version")
    assert (result.exit_code, result.output) == (0, f"retrograd {rg.__version__}\n")


@pytest.mark.parametrize(
    "args",
    [
        ["nonsense"],
        ["train", "nonsense"],
        ["train", "gpt", "--nonsense"],
        ["train", "gpt", "--steps", "0"],
        ["train", "gpt", "--steps", "many"],
        ["train", "gpt", "--width", "6"],
        ["train", "gpt", "--lr", "-1"],
        ["train", "gpt", "--dtype", "int8"],
        ["train", "gpt", "--backend", "abacus"],
        ["train", "gpt", "--drawing", "a.png"],
        ["sample"],
        ["sample", "x", "--temperature", "-1"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2_and_writes_nothing(
    args: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*args)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []
