"""What `make test` leaves out of sweeps, and what it never does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import sampling
from tests.sampling import sampled

ROOT = Path(__file__).parents[1]
# What is another number in every run, or for every revision.
FRESH = re.compile(
    r"default_rng\(\)|\bRandom\(\)|SystemRandom|rev-parse|uuid[14]\(|^import secrets", re.MULTILINE
)
FRESH_ON_PURPOSE = {
    "programs/test_programs.py",  # exhaustive
    "data/test_loader.py",  # a sampler that cannot be drawn again
    "test_sampling.py",
}
SWEEPS = """
import pytest
from tests.sampling import sampled

@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(9))
def test_seeds(seed): pass

@pytest.mark.sample(1, per="name")
@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("name", "ab")
def test_names(name, kind): pass

@pytest.mark.parametrize("case", sampled(range(9), 3))
def test_cases(case): pass

def test_alone(): pass
"""


def collected(folder: Path, *options: str) -> list[str]:
    """The names of the tests above that are run."""
    (folder / "test_sweeps.py").write_text(SWEEPS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "-p",
         "no:xdist", "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"),
         "--confcutdir", str(ROOT / "tests"), "-p", "tests.conftest", *options,
         str(folder / "test_sweeps.py")],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [line.split("::")[1] for line in done.stdout.splitlines() if "::" in line]


@pytest.mark.slow
def test_a_sample_is_of_every_sweep_and_the_same_every_time(tmp_path: Path) -> None:
    whole, some = collected(tmp_path), collected(tmp_path, "--sample")
    assert len(whole) == 9 + 10 + 9 + 1
    assert some == [
        "test_seeds[0]", "test_seeds[1]", "test_names[a-3]", "test_names[b-1]",
        "test_cases[3]", "test_cases[7]", "test_cases[8]", "test_alone",
    ]  # fmt: skip


def test_another_seed_is_another_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "is_sampling", True)
    chosen = {tuple(sampled(range(100), 4, str(k))) for k in range(10)}
    assert len(chosen) == 10
    assert all(sorted(some) == list(some) for some in chosen)
    assert sampled(range(3), 4) == [0, 1, 2]
    monkeypatch.setattr(sampling, "is_sampling", False)
    assert sampled(range(100), 4) == list(range(100))


def test_a_test_that_passed_passes_again() -> None:
    """Seeds are numbers in the source: what has failed fails again, for everybody."""
    tests = ROOT / "tests"
    found = {
        str(path.relative_to(tests))
        for path in tests.rglob("*.py")
        if FRESH.search(path.read_text(encoding="utf-8"))
    }
    assert found == FRESH_ON_PURPOSE
