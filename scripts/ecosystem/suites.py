"""The tests that packages ship, and runs of them with one namespace."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from scripts.ecosystem.namespace_plugin import OneNamespace

_SCIPY = """
_lib cluster constants differentiate fft integrate interpolate linalg ndimage optimize signal
spatial special stats
"""
SUITES = [*(f"scipy.{name}" for name in _SCIPY.split()), "sklearn", "array_api_extra"]
MARKS = {"scipy": r"\bxp\b", "sklearn": "array_api", "array_api_extra": r"\bxp\b"}


def files(suite: str) -> Iterator[str]:
    """The files of tests that name a namespace."""
    spec = find_spec(suite)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{suite} is not installed")
    for path in sorted(Path(spec.origin).parent.rglob("test_*.py")):
        if "vendoring" in path.parts:  # needs its repository
            continue
        if re.search(MARKS[suite.split(".")[0]], path.read_text()):
            yield str(path)


def run(suite: str, peer: str, limit: float, options: list[str]) -> dict[str, dict[str, str]]:
    """What became of the tests of a suite with a namespace, and why."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "outcomes.json"
        command = [sys.executable, "-m", "scripts.ecosystem", suite, "--peers", peer]
        environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
        try:
            done = subprocess.run(
                [*command, "--into", str(path), *options],
                env=environment, timeout=limit, check=False, capture_output=True, text=True,
            )  # fmt: skip
            if not path.exists():
                raise SystemExit(f"{suite} with {peer} did not start: {done.stdout}{done.stderr}")
        except subprocess.TimeoutExpired:
            print(f"{suite} with {peer} took more than {limit:.0f} s")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        outcomes = {name: outcome for name, outcome, _ in lines}
        reasons = {name: reason for name, _, reason in lines if reason}
        return {"outcomes": outcomes, "reasons": reasons}


def collect(suite: str, peer: str, select: str, into: Path, every: int) -> None:
    """Run the tests of a suite here, with pytest's own settings and not those of a project."""
    settings = into.with_suffix(".ini")
    settings.write_text("[pytest]\n")
    paths = list(files(suite))
    root = str(Path(os.path.commonpath([str(Path(path).parent) for path in paths])))
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore", "-k", select]
    given = [*options, "-c", str(settings), "--rootdir", root, *paths]
    pytest.main(given, plugins=[OneNamespace(suite, peer, into, every)])
