"""`retrograd train digits`, `train images` and `predict` on images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from retrograd.cli.main import app


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(w) for w in words])
    return result.exit_code, result.output


@pytest.mark.slow
def test_digits(tmp_path: Path) -> None:
    code, text = run("train", "digits", "--out", tmp_path, "--epochs", 1, "--width", 1)
    assert code == 0, text
    assert "tested on 269" in text
    assert "tested on 269" in (tmp_path / "report.txt").read_text()
    code, text = run("train", "digits", "--out", tmp_path, "--config", tmp_path / "config.toml")
    assert code == 0, text
    some = ["--steps", 3, "--batch", 8, "--width", 1]
    code, text = run("train", "digits", "--out", tmp_path / "some", *some)
    assert code == 0, text
    assert [*(tmp_path / "some").glob("step-00000003.safetensors")]
    code, text = run("train", "digits", "--lr", 0)
    assert (code, "positive" in text) == (2, True)


@pytest.mark.slow
def test_folders_and_predictions(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image", reason="pillow is not installed (extra: data)")
    rng = np.random.default_rng(0)
    for name, low in (("dark", 0), ("light", 155)):
        (tmp_path / "data" / name).mkdir(parents=True)
        for i in range(12):
            pixels = (low + rng.uniform(0, 100, (9, 9))).astype(np.uint8)
            pillow.fromarray(pixels).save(tmp_path / "data" / name / f"{i}.png")
    options = ["--size", 8, "--gray", "--epochs", 40, "--batch", 8, "--width", 4]
    code, text = run("train", "images")
    assert (code, "give a folder of images once" in text) == (2, True)
    data = ["--data", tmp_path / "data"]
    code, text = run("train", "images", *data, "--out", tmp_path / "run", *options)
    assert code == 0, text
    files = [tmp_path / "data" / name / "0.png" for name in ("dark", "light")]
    code, text = run("predict", tmp_path / "run", *files)
    assert code == 0, text
    assert [line.split(",")[1] for line in text.splitlines()[1:]] == ["dark", "light"]
