"""The command line: what it prints, its exit codes, its messages for bad input."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import retrograd as rg
from retrograd.cli.main import app
from retrograd.io import CheckpointManager, load_checkpoint

QUICK = ["--steps", "3", "--samples", "3", "--width", "8", "--heads", "2", "--backend", "reference"]


def run(*args: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in args])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a short run on the bundled names."""
    out = tmp_path_factory.mktemp("runs") / "gpt"
    assert run("train", "gpt", "--out", out, *QUICK).exit_code == 0
    return out


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


def test_info_names_versions_backends_and_processor() -> None:
    result = run("info")
    assert result.exit_code == 0
    for word in ("numpy", "llvmlite", "reference", "threads", "features", "accelerators"):
        assert word in result.output


def test_training_says_where_the_names_are_from_and_prints_samples(tmp_path: Path) -> None:
    picture = tmp_path / "pictures" / "gradient.svg"
    result = run("train", "gpt", "--out", tmp_path / "run", "--drawing", picture, *QUICK)
    assert result.exit_code == 0, result.output
    assert "5,163 first names of the 1990 census" in result.output
    assert "step 3: validation loss" in result.output
    assert "3 samples at temperature 0.5:\n1  " in result.output
    assert result.output.endswith(f"The graph of the gradient is drawn in {picture}\n")
    assert picture.read_text().startswith("<svg")


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


def test_running_twice_starts_afresh(tmp_path: Path) -> None:
    outputs = [run("train", "gpt", "--out", tmp_path, *QUICK) for _ in range(2)]
    assert [o.exit_code for o in outputs] == [0, 0]
    samples = [o.output.split("samples at")[1] for o in outputs]
    assert samples[0] == samples[1]


def test_samples_are_printed_one_a_line_and_nothing_else(finished: Path) -> None:
    options = ("-n", 4, "--prompt", "an", "--seed", 5, "--backend", "reference")
    result = run("sample", finished, *options)
    assert result.exit_code == 0
    assert len(result.output.splitlines()) == 4
    assert all(line.startswith("an") for line in result.output.splitlines())
    path = CheckpointManager(finished).latest
    assert run("sample", path, *options).output == result.output
    assert run("sample", path, *options, "--seed", 6).output != result.output


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


def test_output_into_a_closed_pipe_is_quiet(finished: Path) -> None:
    sample = " ".join(
        command("sample", finished, "-n", 3000, "--length", 1, "--backend", "reference")
    )
    result = subprocess.run(
        f"{sample} | head -n 1", shell=True, capture_output=True, text=True, env=environment()
    )
    assert len(result.stdout.splitlines()) == 1
    assert result.stderr == ""
