"""`retrograd train graph`: report, picture, and going on."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from retrograd.cli.main import app


@pytest.mark.slow
def test_command(tmp_path: Path) -> None:
    pytest.importorskip("networkx", reason="NetworkX is not installed (extra: gnn)")
    options: list[Any] = ["--out", tmp_path, "--per-class", 2, "--pick", "degree", "--steps", 60]
    result = CliRunner().invoke(app, ["train", "graph", *map(str, options)])
    assert result.exit_code == 0, result.output
    assert "nodes/s" in result.output
    assert "tested on 30 nodes" in (tmp_path / "report.txt").read_text(encoding="utf-8")
    assert (tmp_path / "picture.svg").read_text(encoding="utf-8").startswith("<svg")
    short = [*options[:-1], 40, "--out", tmp_path / "b", "--dropout", 0.3, "--data", "davis"]
    CliRunner().invoke(app, ["train", "graph", *map(str, short)])
    again = ["train", "graph", "--resume", "--steps", "60", "--out", str(tmp_path / "b")]
    result = CliRunner().invoke(app, again)
    assert result.exit_code == 0, result.output
    whole = [*options, "--out", tmp_path / "c", "--dropout", 0.3, "--data", "davis"]
    CliRunner().invoke(app, ["train", "graph", *map(str, whole)])
    ends = [tmp_path / name / "step-00000060.safetensors" for name in "bc"]
    assert ends[0].read_bytes() == ends[1].read_bytes()
    wrong = CliRunner().invoke(app, [*again, "--hidden", "3"])
    assert wrong.exit_code == 1
    assert "cannot go on with hidden = 3" in wrong.output
    wrong = CliRunner().invoke(app, ["train", "graph", "--data", "nothing.xyz"])
    assert wrong.exit_code == 1
    assert "a graph is a file" in wrong.output


@pytest.mark.slow
def test_a_configuration_gives_the_same_run(tmp_path: Path) -> None:
    pytest.importorskip("networkx", reason="NetworkX is not installed (extra: gnn)")
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))

    def train(out: Path, *options: Any) -> Any:
        given = ["train", "graph", "--out", out, *options]
        return CliRunner().invoke(app, [*map(str, given)])

    options = ["--data", "davis", "--steps", 4, "--dropout", 0.3, "--weight-decay", 0.1]
    assert train(first, *options, "--label", "bipartite").exit_code == 0
    found = tomllib.loads((first / "config.toml").read_text(encoding="utf-8"))
    chosen = {"data": "davis", "label": "bipartite", "steps": 4, "weight_decay": 0.1}
    assert found.items() >= chosen.items()
    result = train(second, "--config", first / "config.toml")
    assert result.exit_code == 0, result.output
    same = "step-00000004.safetensors"
    assert (second / same).read_bytes() == (first / same).read_bytes()
    assert train(third, "--config", first / "config.toml", "--steps", 3).exit_code == 0
    assert (third / "step-00000003.safetensors").exists()
    (tmp_path / "bad.toml").write_text("hiden = 3", encoding="utf-8")
    wrong = train(third, "--config", tmp_path / "bad.toml")
    assert wrong.exit_code == 2
    assert "hidden" in wrong.output
