"""The page on training: what it shows runs, and does what it says."""

from pathlib import Path
from typing import Any

import pytest

from scripts import pages

PAGE = Path(__file__).parents[3] / "docs" / "training.md"


@pytest.mark.slow
def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    runs = [names.get("run") for _ in pages.run(PAGE, tmp_path, names, ["python"])]
    first, stopped, resumed, _, _, called = runs
    assert first.history["loss"][-1] < 0.2 < first.history["loss"][0]
    assert stopped.best.value > 0.9
    assert stopped.stopped == resumed.stopped == "early stopping"
    assert called.epoch <= 30
    assert {"log.jsonl", "loss.svg"} < {p.name for p in Path("runs/quadrants").iterdir()}
