"""`retrograd predict`: what it refuses; what it prints is tested beside the recipes."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from retrograd.cli.main import app


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["predict", *map(str, words)])
    return result.exit_code, result.output


def test_what_cannot_be_predicted_with(tmp_path: Path) -> None:
    code, text = run(tmp_path, tmp_path / "x.png")
    assert code == 1
    assert "there is no run to predict with" in text
    (tmp_path / "task.json").write_text("{}")
    code, text = run(tmp_path, tmp_path / "x.png")
    assert code == 1
    assert "does not describe a run" in text
    (tmp_path / "task.json").write_text('{"recipe": "gpt"}')
    code, text = run(tmp_path, tmp_path / "x.png")
    assert code == 1
    assert "predicts nothing" in text


def test_a_run_on_a_table_takes_one_table(tmp_path: Path) -> None:
    (tmp_path / "task.json").write_text('{"recipe": "tabular"}')
    code, text = run(tmp_path, "a.csv", "b.csv")
    assert code == 2
    assert "one table at a time" in text
