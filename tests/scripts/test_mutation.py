"""The tool of mutation finds what tests do not notice, and no rule changes unnoticed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from scripts.mutation import report, targets
from scripts.mutation.__main__ import chosen
from scripts.mutation.campaign import (
    EQUIVALENT,
    KILLED,
    SURVIVED,
    TIMED_OUT,
    Campaign,
    Result,
    Suite,
)
from scripts.mutation.equivalents import Equivalents
from scripts.mutation.mutants import Mutant, mutants_of, parse

ROOT = Path(__file__).parents[2]
PLANTED = '''
def sign_of(x):
    return -x

def scaled(x, factor):
    """The product."""
    if factor is None:
        raise ValueError("a - b")
    return factor * x

TABLE = {"kept": lambda g, c: g if c else 0.0}

def count(n):
    k = 0
    while k < n:
        k += 1
    return k

def never(x):
    return x + x
'''


@pytest.fixture
def planted(tmp_path: Path) -> ModuleType:
    """A module of a few functions, in the folder of the test."""
    path = tmp_path / "planted.py"
    path.write_text(PLANTED)
    spec = importlib.util.spec_from_file_location("planted", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(mutants: list[Mutant]) -> list[str]:
    return [f"{m.function}: {m.kind}: {m.before} -> {m.after}" for m in mutants]


def test_mutants_of_a_file(planted: ModuleType) -> None:
    path = Path(planted.__file__ or "")
    found = mutants_of(parse(path), "planted.py")
    assert read(found) == [
        "sign_of: sign: -x -> x",
        "scaled: factor: factor * x -> factor",
        "scaled: factor: factor * x -> x",
        "TABLE: mask: g if c else 0.0 -> g",
        "TABLE: mask: g if c else 0.0 -> 0.0",
        "TABLE: factor: 0.0 -> 1.0",
        "count: bound: 0 -> 1",
        "count: bound: k < n -> k <= n",
        "count: term: k += 1 -> pass",
        "count: sign: k += 1 -> k -= 1",
        "count: bound: 1 -> 2",
        "never: sign: x + x -> x - x",
        "never: term: x + x -> x",
        "never: term: x + x -> x",
    ]
    assert [m.number for m in found[-2:]] == [1, 2]


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@needs_fork
@pytest.mark.slow
def test_a_campaign_tells_what_survived(planted: ModuleType, tmp_path: Path) -> None:
    """Each mutant of the planted module, against tests of which one is too weak."""
    tree = parse(tmp_path / "planted.py")
    (tmp_path / "equivalents.toml").write_text(
        '[[equivalent]]\nfile = "planted.py"\nfunction = "TABLE"\nkind = "mask"\n'
        'before = "g if c else 0.0"\nafter = "g"\nreason = "a test of this test"\n'
    )
    equivalents = Equivalents(tmp_path / "equivalents.toml")
    calls = {
        "sign": lambda: planted.sign_of(2.0) == -2.0,
        "scaled": lambda: planted.scaled(3.0, 1.0) == 3.0,  # whether it multiplies is not seen
        "kept": lambda: planted.TABLE["kept"](2.0, True) == 2.0,
        "count": lambda: planted.count(3) == 3,
        "failing": lambda: planted.never(1.0) == 0.0,
    }
    names = list(calls)
    tests = Suite(names, names, lambda i: calls[names[i]]())
    mutants = mutants_of(tree, "planted.py")
    said: list[str] = []
    campaign = Campaign(tmp_path, {"planted.py": tree}, mutants, equivalents,
                        grace=0.2, say=said.append)  # fmt: skip
    results = campaign.run(tests)
    of = {f"{r.mutant.function}: {r.mutant.before} -> {r.mutant.after}": r for r in results}
    assert len(results) == len(mutants)
    assert of["sign_of: -x -> x"].status == KILLED
    assert of["sign_of: -x -> x"].killer == "sign"
    assert of["scaled: factor * x -> factor"].status == KILLED
    assert of["scaled: factor * x -> x"].status == SURVIVED
    assert of["scaled: factor * x -> x"].reached_by == 1
    assert of["TABLE: g if c else 0.0 -> g"].status == EQUIVALENT
    assert of["TABLE: 0.0 -> 1.0"].status == SURVIVED
    assert of["count: k += 1 -> pass"].status == TIMED_OUT
    assert of["never: x + x -> x - x"].reached_by == 0  # its test fails without a mutant
    assert any("scaled: factor: factor * x -> x" in line for line in said)
    assert "survived (1 of 1 tests that reach it): planted.py:9" in report.text(results)
    # This process is as it was.
    assert planted.scaled(3.0, 2.0) == 6.0
    assert planted.sign_of.__code__.co_names == ()
    assert (tmp_path / "planted.py").read_text() == PLANTED


@needs_fork
def test_coverage_is_kept_of_what_did_not_change(planted: ModuleType, tmp_path: Path) -> None:
    """After a change of a file the tests that reach it are measured again, and those that fail."""
    other = tmp_path / "other.py"
    other.write_text("def double(x):\n    return 2 * x\n")
    spec = importlib.util.spec_from_file_location("other", other)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    calls = {
        "sign": lambda: planted.sign_of(2.0) == -2.0,
        "double": lambda: module.double(2.0) == 4.0,
        "failing": lambda: False,
    }
    names = list(calls)
    tests = Suite(names, names, lambda i: calls[names[i]]())

    def measured() -> list[str]:
        said: list[str] = []
        Campaign(tmp_path, {}, [], Equivalents(), covered=["planted.py", "other.py"],
                 kept=tmp_path / "coverage.json", say=said.append).run(tests)  # fmt: skip
        return [line.partition(":")[0] for line in said]

    assert measured() == ["coverage of 3 tests"]
    assert measured() == []
    other.write_text("def double(x):\n    return x * 2\n")
    assert measured() == ["coverage of 2 tests"]  # that of the other file, and the failing one


def test_a_run_goes_on_where_another_ended(planted: ModuleType, tmp_path: Path) -> None:
    """What was noticed stays noticed; what survived, or was not tried, is tried."""
    mutants = mutants_of(parse(tmp_path / "planted.py"), "planted.py")
    statuses = [KILLED, SURVIVED, EQUIVALENT, TIMED_OUT]
    path = tmp_path / "report.json"
    results = [Result(m, s, "a test") for m, s in zip(mutants, statuses, strict=False)]
    path.write_text(report.as_json(results))
    assert report.settled_before(path, mutants) == [
        Result(mutants[0], KILLED, "a test"), Result(mutants[3], TIMED_OUT, "a test")
    ]  # fmt: skip
    assert report.survived_before(path, mutants) == [mutants[1]]


@pytest.mark.slow
def test_rules_are_found() -> None:
    trees, mutants = chosen(["ops/elementwise.py", "ops/shape.py"])
    found = read(mutants)
    assert set(trees) == {"ops/elementwise.py", "ops/shape.py"}
    assert "cos: sign: -zmul(g, sin(x)) -> zmul(g, sin(x))" in found
    assert not any(line.startswith("Slice.reference") for line in found)
    assert any(line.startswith("Slice.vjp") for line in found)
    with pytest.raises(SystemExit, match="nothing to mutate at"):
        chosen(["ops/elementwize.py"])


def test_equivalent_mutants_still_exist() -> None:
    """Each entry of the list fits a mutant of today, and says why no test can kill it."""
    equivalents = Equivalents()
    files = {entry["file"] for entry in equivalents.entries}
    mutants = [m for file in files for m in mutants_of(parse(targets.SOURCE / file), file)]
    assert equivalents.gone(mutants) == []
    assert all(len(entry["reason"]) > 20 for entry in equivalents.entries)


@pytest.mark.slow
@needs_fork
def test_no_mutant_of_a_sample_survives(tmp_path: Path) -> None:
    """Eight elementwise operations, against their records and the tests of their special points."""
    some = ["hypot", "clamp", "logaddexp", "rsqrt", "sech2", "expm1", "cbrt", "softplus"]
    folder, out = str(tmp_path / "coverage"), tmp_path / "mutants.json"
    files = [f"tests/ops/test_{topic}.py" for topic in ("records", "elementwise", "singular")]
    run = subprocess.run(
        [sys.executable, "-m", "scripts.mutation", "ops/elementwise.py",
         "--functions", ",".join(some), "--keyword", " or ".join(some), "--sample", "30",
         "--tests", *files, "--workers", "1", "--coverage", folder, "--json", str(out)],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    statuses = [m["status"] for m in json.loads(out.read_text())["mutants"]]
    assert statuses.count(KILLED) > 20
