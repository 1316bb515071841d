"""`retrograd train tabular`, and `predict` on tables."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from retrograd.cli.main import app


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(w) for w in words])
    return result.exit_code, result.output


@pytest.mark.slow
def test_a_table_from_the_first_to_the_last_command(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    rows = [["x", "flag", "kind"], *[[v, v > 1, "up" if v > 0 else "down"] for v in x]]
    with open(tmp_path / "a.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    out = tmp_path / "run"
    options = ["--epochs", 30, "--batch", 32, "--width", 8, "--depth", 1, "--lr", 0.01]
    code, text = run(
        "train", "tabular", tmp_path / "a.csv", "--target", "kind", "--out", out, *options
    )
    assert code == 0, text
    assert "tested on 30 rows" in (out / "report.txt").read_text()
    assert {p.name for p in out.iterdir()} >= {"predictions.svg", "loss.svg", "config.toml"}
    code, text = run("predict", out, tmp_path / "a.csv", "--out", tmp_path / "p.csv")
    assert (code, text) == (0, "")
    found = list(csv.reader((tmp_path / "p.csv").read_text().splitlines()))
    assert found[0] == ["row", "kind", "probability of down", "probability of up"]
    right = [f[1] == ("up" if v > 0 else "down") for f, v in zip(found[1:], x, strict=True)]
    assert np.mean(right) > 0.9
    again = ["train", "tabular", tmp_path / "a.csv", "--config", out / "config.toml", "--out", out]
    code, text = run(*again, "--resume")  # which was done
    assert code == 0, text
    code, text = run(*again, "--resume", "--width", 9)
    assert (code, "cannot go on" in text) == (1, True)
    code, text = run("train", "tabular", tmp_path / "a.csv", "--target", "kinds", "--out", out)
    assert code == 1
    assert "near to it: kind" in text


def test_steps_in_place_of_epochs_and_a_table_by_name(tmp_path: Path) -> None:
    table = tmp_path / "a.csv"
    table.write_text("x,y\n" + "".join([f"{i % 7},{i % 7 * 2}\n" for i in range(60)]))
    out = tmp_path / "run"
    small = ["--width", 4, "--depth", 1, "--batch", 8, "--target", "y", "--out", out]
    code, text = run("train", "tabular", "--data", table, *small, "--steps", 3)
    assert code == 0, text
    assert [p.name for p in out.glob("step-*.safetensors")] == ["step-00000003.safetensors"]
    assert "steps = 3" in (out / "config.toml").read_text()
    for given in ([], [table, "--data", table]):
        code, text = run("train", "tabular", *given, *small)
        assert (code, "give a table once: by its place, or with --data" in text) == (2, True)
    code, text = run("train", "tabular", table, *small, "--steps", 0)
    assert (code, "x>=1" in text) == (2, True)
