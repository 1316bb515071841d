"""The page on training: what it shows runs, and does what it says."""

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "training.md"


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.M)
    names: dict[str, Any] = {}
    runs = []
    for block in blocks:
        exec(compile(textwrap.dedent(block), str(PAGE), "exec"), names)
        runs.append(names.get("run"))
    first, stopped, resumed, _, called = runs
    assert first.history["loss"][-1] < 0.2 < first.history["loss"][0]
    assert stopped.best.value > 0.9
    assert stopped.stopped == resumed.stopped == "early stopping"
    assert called.epoch <= 30
    assert {"log.jsonl", "loss.svg"} < {p.name for p in Path("runs/quadrants").iterdir()}
