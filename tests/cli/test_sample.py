"""`retrograd sample`: texts and nothing else."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import retrograd as rg
from retrograd.io import CheckpointManager
from tests.cli.runs import QUICK, run


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a short run on the bundled names."""
    out = tmp_path_factory.mktemp("runs") / "gpt"
    assert run("train", "gpt", "--out", out, *QUICK).exit_code == 0
    return out


def test_samples_are_printed_one_a_line_and_nothing_else(finished: Path) -> None:
    options = ("-n", 4, "--prompt", "an", "--seed", 5, "--backend", "reference")
    result = run("sample", finished, *options)
    assert result.exit_code == 0
    assert len(result.output.splitlines()) == 4
    assert all(line.startswith("an") for line in result.output.splitlines())
    path = CheckpointManager(finished).latest
    assert run("sample", path, *options).output == result.output
    assert run("sample", path, *options, "--seed", 6).output != result.output


def test_bad_checkpoints(tmp_path: Path, finished: Path) -> None:
    result = run("sample", tmp_path)
    assert (result.exit_code, "no checkpoint in this directory" in result.stderr) == (1, True)
    result = run("train", "gpt", "--out", tmp_path, "--resume")
    assert (result.exit_code, "no checkpoint in this directory" in result.stderr) == (1, True)
    result = run("sample", tmp_path / "none")
    assert (result.exit_code, "no such file" in result.stderr) == (1, True)
    latest = CheckpointManager(finished).latest
    assert latest is not None
    (tmp_path / "cut").write_bytes(latest.read_bytes()[:-5])
    result = run("sample", tmp_path / "cut")
    assert (result.exit_code, "it was cut" in result.stderr) == (1, True)
    result = run("train", "gpt", "--out", finished, "--resume", "--width", 16)
    assert (result.exit_code, "run with width = 8" in result.stderr) == (1, True)
    result = run("sample", latest, "--prompt", "Ä", "--backend", "reference")
    assert (result.exit_code, "character 'Ä'" in result.stderr) == (1, True)


def command(*args: object) -> list[str]:
    return [sys.executable, "-m", "retrograd", *map(str, args)]


def environment() -> dict[str, Any]:
    return {**os.environ, "PYTHONPATH": str(Path(rg.__file__).parent.parent)}


@pytest.mark.slow
def test_output_into_a_closed_pipe_is_quiet(finished: Path) -> None:
    sample = " ".join(
        command("sample", finished, "-n", 3000, "--length", 1, "--backend", "reference")
    )
    result = subprocess.run(
        f"{sample} | head -n 1", shell=True, capture_output=True, text=True, env=environment()
    )
    assert len(result.stdout.splitlines()) == 1
    assert result.stderr == ""
