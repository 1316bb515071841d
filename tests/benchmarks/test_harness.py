"""The harness with workloads that cost nothing: turns, failures, comparison."""

import math
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness import overview, processes, results, run
from benchmarks.harness.processes import Worker, WorkerFailed
from benchmarks.harness.result import Outcome, Result, distances
from benchmarks.harness.run import Options
from benchmarks.harness.table import caption, markdown, plain
from benchmarks.harness.workload import (
    Claim,
    Target,
    Unavailable,
    Workload,
    library,
    loop,
    needed,
    scanned,
)

# A module that takes the place of the catalog in the worker.
CATALOG = """
import os, time
from benchmarks.harness.workload import Session, Unavailable, Workload, loop

def counting(factor):
    def step(state, x):
        time.sleep(0.001)
        return state + 1, factor * x / (state + 1)
    return lambda: loop(step, 0, [(1.0,), (2.0,)], float)

def compiling():
    def step(state, x):
        time.sleep(1.0 if state == 4 else 0.001)  # the first whose loss is not compared
        return state + 1, x
    return loop(step, 0, [(1.0,)], float)

def talking():
    print("a library that talks")
    os.system("echo so does what it calls")
    return counting(1.0)()

def refusing():
    raise Unavailable("python has no such thing yet")

def missing():
    import surely_not_installed

def raising():
    raise ValueError("two lines\\nof text")

def dying():
    os._exit(3)

def hanging():
    time.sleep(60)

PEERS = {
    "python": counting(1.0), "python-other": counting(2.0), "python-talking": talking,
    "python-refusing": refusing, "python-missing": missing, "python-raising": raising,
    "python-dying": dying, "python-hanging": hanging, "python-compiling": compiling,
}

def find(name):
    return Workload(name, "", PEERS, checks=4)
"""


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `sitecustomize` puts the catalog above in the place of the real one."""
    folder = tmp_path_factory.mktemp("catalog")
    (folder / "fake_catalog.py").write_text(CATALOG)
    (folder / "sitecustomize.py").write_text(
        "import sys, fake_catalog\nsys.modules['benchmarks.harness.catalog'] = fake_catalog\n"
    )
    return folder


@pytest.fixture
def fake(catalog: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    real = processes.environment

    def environment(*args: Any, **kwargs: Any) -> dict[str, str]:
        found = real(*args, **kwargs)
        return {**found, "PYTHONPATH": f"{found['PYTHONPATH']}:{catalog}"}

    monkeypatch.setattr(processes, "environment", environment)
    names = ["", "-other", "-talking", "-refusing", "-missing", "-raising", "-dying", "-hanging"]
    return Workload("T1", "test", dict.fromkeys([f"python{n}" for n in names], lambda: None))  # type: ignore[arg-type, return-value]


OPTIONS = Options(threads=1, seconds=0.02, rounds=2, limit=20)


def test_peers_are_measured_in_turns_and_their_losses_compared(fake: Workload) -> None:
    told: list[str] = []
    peers = ["python", "python-talking"]
    result = run.run(fake, peers, OPTIONS, told.append)
    assert [o.losses for o in result.outcomes] == [[1.0, 1.0, 1 / 3, 0.5]] * 2
    assert all(len(o.times) == 2 and min(o.times) >= 0.001 for o in result.outcomes)
    assert all(o.peak and o.first is not None and not o.problem for o in result.outcomes)
    assert told == [
        "T1: python, first steps",
        "T1: python-talking, first steps",
        "T1: round 1 of 2",
        "T1: round 2 of 2",
    ]
    assert not result.failed()


def test_the_processor_does_not_count_sleep(fake: Workload) -> None:
    options = replace(OPTIONS, clock="processor")
    result = run.run(fake, ["python"], options, lambda _: None)
    assert 0 < max(result.outcomes[0].times) < 0.001  # a step sleeps for as long
    assert caption(result).startswith("test (processor time per step, 1 thread")
    assert result.as_json()["clock"] == "processor"


@pytest.mark.slow
def test_peers_that_cannot_are_told_apart_from_those_that_fail(fake: Workload) -> None:
    peers = ["python", "python-refusing", "python-missing", "python-raising", "python-dying"]
    result = run.run(fake, peers, OPTIONS, lambda _: None)
    good, refusing, missing, raising, dying = result.outcomes
    assert good.time is not None
    assert (refusing.problem, refusing.missing) == ("python has no such thing yet", True)
    assert (missing.problem, missing.missing) == ("surely_not_installed is not installed", True)
    assert (raising.problem, raising.missing) == ("ValueError: two lines", False)
    assert (dying.problem, dying.missing) == ("ended with code 3", False)
    assert "python-raising: failed: ValueError: two lines" in plain(result)
    assert not result.failed()  # they are not retrograd


def state_of(pid: int) -> str:
    """What a process does: R runs, S sleeps, T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc to look at")
def test_between_requests_a_worker_does_nothing(fake: Workload) -> None:
    worker = Worker("T1", "python", 1)
    try:
        for request in ({"do": "start"}, {"do": "run", "seconds": 0.01}):
            worker.ask(request, 20)
            deadline = time.monotonic() + 5
            while (state := state_of(worker.process.pid)) != "T" and time.monotonic() < deadline:
                time.sleep(0.01)
            assert state == "T"
    finally:
        worker.close()


@pytest.mark.slow
def test_a_worker_that_does_not_answer_is_ended(fake: Workload) -> None:
    worker = Worker("T1", "python-hanging", 1)
    began = time.monotonic()
    with pytest.raises(WorkerFailed, match="no answer within 1 s"):
        worker.ask({"do": "start"}, limit=1)
    assert time.monotonic() - began < 30
    assert worker.process.poll() is not None


def test_a_worker_holds_no_library_but_that_of_its_peer(fake: Workload) -> None:
    code = "import sys, benchmarks.harness.worker; print('retrograd' in sys.modules)"
    env = processes.environment(1, Path("/nowhere"), keep=False)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.stdout == "False\n", done.stderr


def result_of(times: dict[str, float], losses: dict[str, list[float]] | None = None) -> Result:
    targets = (Target("retrograd", 2.0, "jax", 4.0),)
    workload = Workload("T2", "test", {}, targets=targets, floors=frozenset({"numpy"}))
    outcomes = [Outcome(p, [t], losses=(losses or {}).get(p, [])) for p, t in times.items()]
    return Result(workload, outcomes, 1, None)


def test_ratios_are_to_the_best_peer_and_targets_to_the_one_they_name() -> None:
    result = result_of({"retrograd": 3.0, "jax": 5.0, "torch": 4.0, "numpy": 0.1})
    mine = result.outcomes[0]
    assert result.ratio(mine) == 0.75
    assert result.target(mine) == 2.5
    assert "2.50 s, x1.2" in plain(result)
    assert "| **retrograd** | **3.00 s** | **0.75** |" in markdown(result)
    alone = result_of({"retrograd": 3.0})
    assert (alone.ratio(alone.outcomes[0]), alone.target(alone.outcomes[0])) == (None, None)


def test_a_table_says_who_else_had_the_cores() -> None:
    workload = Workload("T1", "test", {})
    assert "busy" not in caption(Result(workload, [], 2, None))
    assert caption(Result(workload, [], 2, 0.012, 0.0)).endswith("kept 0.01 cores busy)")
    assert caption(Result(workload, [], 2, 0.1, 0.25)).endswith("0.10 cores busy, the host 0.25)")


def test_an_overview_has_a_row_for_each_workload() -> None:
    times = {"retrograd": 3.0, "retrograd-named": 2.0, "retrograd-eager": 6.0, "torch": 4.0}
    alone = result_of({"retrograd-eager": 1.0}, {"retrograd-eager": [1.0]})
    both = result_of(times, {p: [1.0, 2.0 if p != "torch" else 2.1] for p in times})
    both.outcomes[1].peak, both.outcomes[1].first = 5_000_000, 0.5
    first, second = overview.lines([both, alone])[2:]
    assert first == (
        "| T2 | 2.00 s (retrograd-named) | 6.00 s | 4.00 s (torch) | 0.50 | 1.50 | 500 ms; ;  "
        "| 5; ;  | 5e-02 DIFFERS |"
    )
    assert second == "| T2 |  | 1.00 s |  |  |  | -; ; - | -; ; - |  |"


@pytest.mark.slow
def test_steps_that_compile_are_not_measured(fake: Workload) -> None:
    """The first step after those whose losses are compared may have another size."""
    worker = Worker(fake.name, "python-compiling", 1)
    try:
        worker.ask({"do": "start"}, 20)
        assert worker.ask({"do": "run", "seconds": 0.5}, 20)["calls"] > 1
    finally:
        worker.close()


def test_claims_say_how_many_times_as_fast() -> None:
    claims = (Claim("retrograd", "jax", 4), Claim("retrograd", "torch", 6), Claim("x", "jax", 1))
    workload = Workload("T3", "test", {}, claims=claims, unlike=frozenset({"jax"}))
    times = {"retrograd": [1.0, 3.0, 2.0], "jax": [9.0, 9.0, 4.0], "torch": [10.0, 8.0, 10.0]}
    outcomes = [Outcome(p, t, losses=[float(len(p))]) for p, t in times.items()]
    result = Result(workload, outcomes[:2], 1, None)
    assert result.disagreeing() == []
    result = Result(workload, outcomes, 1, None)
    assert [(g, m) for _, g, m in result.gains()] == [(4.5, 4.0), (5.0, 8.0)]
    assert (
        "retrograd is 4.50 times as fast as jax (4.00 by the least times); aimed at: 4, met"
        in plain(result)
    )
    assert (
        "- retrograd is 5.00 times as fast as torch (8.00 by the least times); aimed at: 6, missed"
        in (markdown(result))
    )
    assert [c["found"] for c in result.as_json()["claims"]] == [4.5, 5.0]


@pytest.mark.parametrize(
    ("losses", "wrong"),
    [
        ({"retrograd": [1.0, 2.0], "jax": [1.0, 2.0001]}, []),
        ({"retrograd": [1.0, 2.1], "jax": [1.0, 2.0], "torch": [1.0]}, ["retrograd", "jax"]),
        ({"retrograd": [1.0, 2.1], "jax": [1.0, 2.0], "torch": [1.0, 2.0]}, ["retrograd"]),
        ({"retrograd": [math.nan], "jax": [1.0]}, ["retrograd"]),
        ({"retrograd": [math.inf], "jax": [1.0], "torch": [1.0]}, ["retrograd"]),
        ({"retrograd": [math.nan], "jax": [math.nan]}, ["retrograd", "jax"]),
    ],
)
def test_losses_that_differ_are_found(losses: dict[str, list[float]], wrong: list[str]) -> None:
    result = result_of(dict.fromkeys(losses, 1.0), losses)
    assert result.disagreeing() == wrong
    assert result.failed() == bool(wrong)


def test_distances_of_nothing() -> None:
    assert distances({}) == {}


def test_sessions_of_a_loop_and_of_a_scan_have_the_same_losses() -> None:
    single = loop(lambda s, x: (s + x, s * 1.0), 0, [(1,), (2,)], float)
    many = scanned(lambda s, n: (s + n, [0.0, 1.0, 3.0, 4.0][:n]), 0, 4, 4)
    assert [next(single.losses) for _ in range(4)] == list(many.losses) == [0.0, 1.0, 3.0, 4.0]
    single.wait()
    assert many.scale == 4


def test_what_a_library_lacks_is_named() -> None:
    with pytest.raises(Unavailable, match="math has no scan yet"):
        needed(math, "scan")
    assert library("torch-compile") == "torch"


def test_a_table_of_another_benchmark_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "RESULTS.md"
    path.write_text("# Results\n\nby hand\n", encoding="utf-8")
    for lines in (["old"], [r"| new \1 |"]):
        results.write_table(path, "things", "## Things", lines)
        results.write_table(path, "others", "## Others", ["theirs"])
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# Results\n\nby hand\n")
    assert "old" not in text
    for once in (r"| new \1 |", "theirs", "## Things", "## Others", "<!-- end of things -->"):
        assert text.count(once) == 1
