"""`retrograd doctor` and its exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import retrograd as rg
from retrograd.api import doctor
from retrograd.api.doctor import Finding
from tests.cli.runs import run


def test_exit_codes_and_mending(monkeypatch: pytest.MonkeyPatch) -> None:
    mended: list[int] = []
    findings = [Finding("a", "ok", "fine"), Finding("b", "note", "so", "do"),
                Finding("c", "wrong", "broken", "mend", lambda: mended.append(1))]  # fmt: skip
    monkeypatch.setattr("retrograd.api.doctor.examine", lambda: iter(findings))
    result = run("doctor")
    assert result.exit_code == 1
    assert "wrong  c: broken" in result.output
    assert "remedy: mend" in result.output
    assert "--fix" in result.output.splitlines()[-1]
    assert mended == []
    result = run("doctor", "--fix")
    assert (result.exit_code, mended) == (0, [1])
    assert "All that was wrong is mended." in result.output
    told = json.loads(run("doctor", "--json").output)
    assert [f["level"] for f in told["findings"]] == ["ok", "note", "wrong"]
    findings.pop()
    result = run("doctor")
    assert result.exit_code == 0
    assert "Nothing is wrong." in result.output


def test_all_that_can_be_looked_at_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks themselves, but for engines, which take seconds to start."""
    monkeypatch.setattr(doctor, "available", lambda: ["reference"])
    monkeypatch.setattr(doctor, "lacking", lambda name: None)
    monkeypatch.setenv("RETROGRAD_CACHE_DIR", "off")
    result = run("doctor")
    for topic in ("installation", "shadows", "packages", "processor", "blas", "threads", "cache"):
        assert f"  {topic}: " in result.output


@pytest.mark.slow
def test_a_broken_machine_in_a_process_of_its_own(tmp_path: Path) -> None:
    """A damaged cache, a file named numpy.py, too many threads; all found, the cache mended."""
    cache = tmp_path / "cache" / "compiled"
    cache.mkdir(parents=True, mode=0o700)
    (cache / ("a" * 64)).write_bytes(b"RGC1" + bytes(50))
    (tmp_path / "numpy.py").touch()
    command = [sys.executable, "-P", "-m", "retrograd", "doctor", "--json"]
    here = str(Path(rg.__file__).parents[1])
    more = {
        "RETROGRAD_CACHE_DIR": str(cache.parent), "OMP_NUM_THREADS": "999", "PYTHONPATH": here,
    }  # fmt: skip

    def go(*options: str) -> tuple[int, list[str]]:
        done = subprocess.run(
            [*command, *options], cwd=tmp_path, env={**os.environ, **more},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        told = json.loads(done.stdout)["findings"]
        return done.returncode, [f["topic"] for f in told if f["level"] == "wrong"]

    code, topics = go("--fix")
    assert code == 1
    assert set(topics) >= {"shadows", "threads", "cache"}
    (tmp_path / "numpy.py").unlink()
    del more["OMP_NUM_THREADS"]
    assert "cache" not in go()[1]
