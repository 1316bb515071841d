"""The script that runs other packages' tests on tensors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_a_suite_is_run_with_tensors_and_counted(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    command = [sys.executable, "-m", "scripts.ecosystem", "scipy.constants"]
    done = subprocess.run(
        [*command, "--peers", "retrograd", "--save", str(tmp_path)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": "src"}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert "scipy.constants" in done.stdout
    found = json.loads((tmp_path / "scipy.constants-retrograd.json").read_text())
    assert set(found["outcomes"].values()) == {"passed"}
    assert all("retrograd" in name for name in found["outcomes"])
