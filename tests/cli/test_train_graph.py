"""`retrograd train graph`: report, picture, and going on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

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
