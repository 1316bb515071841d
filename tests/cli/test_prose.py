"""`retrograd train gpt --text`, `--config`, and running text from `retrograd sample`."""

import json
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from retrograd.io import CheckpointManager, load_checkpoint
from retrograd.train.gpt import sampling
from tests.cli.runs import run

SMALL = ["--depth", 1, "--width", 8, "--heads", 2, "--context", 8, "--batch", 2]
QUICK = ["--steps", 4, "--backend", "reference", *SMALL]
TEXT = "".join(f"{i} bottles of beer\n" for i in range(60))


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "TEXT_LENGTH", 20)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    return path


def train(*args: object) -> str:
    result = run("train", "gpt", *args)
    assert result.exit_code == 0, result.output + result.stderr
    return result.output


def latest(out: Path) -> Path:
    found = CheckpointManager(out).latest
    assert found is not None
    return found


def test_a_run_on_a_text_leaves_all_in_its_folder(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    said = train("--text", text, "--out", out, *QUICK, "--val-every", 2, "--samples", 2)
    assert f"{len(TEXT):,} characters as {len(TEXT):,} tokens" in said
    assert "bits per byte" in said
    assert "2 samples at temperature 0.8" in said
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert [e["step"] for e in log if "loss" in e] == [1, 2, 3, 4]
    bits = [e["validation bits per byte"] for e in log if "validation loss" in e]
    assert len(bits) == 2
    assert ET.parse(out / "loss.svg").getroot().tag.endswith("svg")
    options = tomllib.loads((out / "config.toml").read_text())
    assert (options["text"], options["width"], options["schedule"]) == (str(text), 8, "cosine")


@pytest.mark.slow
def test_a_configuration_gives_the_same_run_and_options_count_before_it(
    text: Path, tmp_path: Path
) -> None:
    first, second, third = (tmp_path / n for n in "abc")
    quiet = ("--samples", 0, "--backend", "reference")
    train("--text", text, "--out", first, *QUICK, "--seed", 3, "--no-final-norm", *quiet)
    train("--config", first / "config.toml", "--out", second, *quiet)
    assert latest(second).read_bytes() == latest(first).read_bytes()
    train("--config", first / "config.toml", "--out", third, "--seed", 4, *quiet)
    assert latest(third).read_bytes() != latest(first).read_bytes()
    said = train("--out", third, "--resume", "--steps", 6, *quiet)
    assert "Trained to step 6" in said


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("widht = 3", "no option 'widht'"),
        ("width = 3.5", "width"),
        ("steps = 0", "steps"),
        ("resume = 1", "resume is true or false, not 1"),
        ("width = [1]", "width is a number or a text"),
        ("width = ", "is no TOML"),
        ('positions = "left"', "positions"),
    ],
)
def test_wrong_configurations_are_wrong_usage(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "c.toml"
    path.write_text(content)
    result = run("train", "gpt", "--config", path, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert not (tmp_path / "run").exists()


def test_wrong_options_and_texts(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    for args in (
        ("--data", text, "--text", text),
        ("--text", text, "--top-p", 0),
        ("--text", text, "--top-k", 0),
        ("--text", text, "--temperature", -1),
        ("--text", text, "--dropout", 1),
        ("--text", text, "--clip", 0),
        ("--text", text, "--warmup", 5, "--steps", 4),
        ("--text", text, "--positions", "rotary", "--width", 6, "--heads", 2),
        ("--vocab", 10),
        ("--lr", "nan"),
    ):
        assert run("train", "gpt", "--out", out, *args).exit_code == 2, args
    short = tmp_path / "short"
    short.write_text("little")
    result = run("train", "gpt", "--text", short, "--out", out)
    assert (result.exit_code, "a sample is of 129" in result.stderr) == (1, True)
    short.write_bytes(b"")
    result = run("train", "gpt", "--text", short, "--out", out)
    assert (result.exit_code, "is empty" in result.stderr) == (1, True)


@pytest.mark.slow
def test_samples_of_running_text(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train("--text", text, "--out", out, *QUICK, "--samples", 0)
    options = ("sample", out, "--backend", "reference", "--length", 40, "--prompt", "12 b")
    result = run(*options, "--top-k", 3, "--top-p", 0.9)
    assert result.exit_code == 0
    assert result.output.startswith("12 b")
    assert len(result.output) == 41
    assert run(*options, "--top-k", 3, "--top-p", 0.9).output == result.output
    assert len(run(*options, "-n", 2).output) > 80
    for wrong in (("--top-k", 0), ("--top-p", 1.5), ("--temperature", -1), ("--length", 0)):
        assert run("sample", out, *wrong).exit_code == 2
    result = run("sample", out, "--prompt", "ß", "--backend", "reference")
    assert (result.exit_code, "character 'ß'" in result.stderr) == (1, True)


@pytest.mark.slow
def test_byte_pairs(text: Path, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers", reason="tokenizers is not installed (extra: text)")
    out = tmp_path / "run"
    said = train("--text", text, "--out", out, *QUICK, "--tokens", "bpe", "--vocab", 260)
    assert "260 different ones" in said
    assert load_checkpoint(latest(out))["gpt"]["vocab_size"] == 260
    result = run("sample", out, "--prompt", "ä", "--length", 20, "--backend", "reference")
    assert result.output.startswith("ä")
    assert "Trained to step 5" in train("--out", out, "--resume", "--steps", 5, "--samples", 0)
