"""`retrograd train gpt`: what it says, what it writes, going on, and Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import retrograd as rg
from retrograd.io import CheckpointManager, load_checkpoint
from tests.cli.runs import QUICK, run


def test_training_says_where_the_names_are_from_and_prints_samples(tmp_path: Path) -> None:
    picture = tmp_path / "pictures" / "gradient.svg"
    result = run("train", "gpt", "--out", tmp_path / "run", "--drawing", picture, *QUICK)
    assert result.exit_code == 0, result.output
    assert "5,163 first names of the 1990 census" in result.output
    assert "step 3: validation loss" in result.output
    assert "3 samples at temperature 0.5:\n1  " in result.output
    assert result.output.endswith(f"The graph of the gradient is drawn in {picture}\n")
    assert picture.read_text().startswith("<svg")


@pytest.mark.slow
def test_training_on_a_file_and_resuming_it_without_naming_it(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("[bold]eins\nzwei[/bold]\ndrei\n", encoding="utf-8")
    args = ("train", "gpt", "--out", tmp_path / "run")
    assert f"Text: {text}" in run(*args, "--data", text, *QUICK).output
    result = run(*args, "--resume", "--steps", 5, "--samples", 0, "--backend", "reference")
    assert result.exit_code == 0, result.output
    assert f"Text: {text}" in result.output
    assert "Trained to step 5" in result.output
    latest = CheckpointManager(tmp_path / "run").latest
    assert latest is not None
    assert load_checkpoint(latest)["gpt"]["width"] == 8


@pytest.mark.slow
def test_running_twice_starts_afresh(tmp_path: Path) -> None:
    outputs = [run("train", "gpt", "--out", tmp_path, *QUICK) for _ in range(2)]
    assert [o.exit_code for o in outputs] == [0, 0]
    samples = [o.output.split("samples at")[1] for o in outputs]
    assert samples[0] == samples[1]


def test_a_text_of_one_line_is_enough(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("only one line")
    result = run("train", "gpt", "--data", tmp_path / "a", "--out", tmp_path / "run", *QUICK)
    assert result.exit_code == 0
    assert "only one document" in result.output


def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run("train", "gpt", "--out", tmp_path / "file", *QUICK)
    assert result.exit_code == 1
    assert "a file of this name is in the way" in result.stderr


def command(*args: object) -> list[str]:
    return [sys.executable, "-m", "retrograd", *map(str, args)]


def environment() -> dict[str, Any]:
    return {**os.environ, "PYTHONPATH": str(Path(rg.__file__).parent.parent)}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as on POSIX systems")
def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    args = ("train", "gpt", "--out", out, "--steps", 1_000_000, "--backend", "reference")
    process = subprocess.Popen(
        command(*args, "--checkpoint-every", 1),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    deadline = time.monotonic() + 60
    while not CheckpointManager(out).paths() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert f"retrograd train gpt --out {out} --resume" in output
    assert "Traceback" not in errors
    latest = CheckpointManager(out).latest
    assert latest is not None
    assert load_checkpoint(latest)["step"] > 0
    assert not [p for p in out.iterdir() if p.suffix == ".part"]
