"""`python -m benchmarks`: the command, its exit codes and files. No test asserts a time."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from benchmarks import __main__ as command
from benchmarks.harness.result import Outcome
from benchmarks.harness.result import Result as Measured
from benchmarks.harness.results import BY_HAND
from benchmarks.harness.workload import Workload
from retrograd.cli.signature import command as command_of

APP = command_of(command.bench)


def run(*args: object) -> Result:
    return CliRunner().invoke(APP, [*map(str, args)])


def measured(losses: dict[str, list[float]], problems: dict[str, str] | None = None) -> Any:
    """What stands in for a run: every peer takes a millisecond and has these losses."""

    def fake(workload: Any, peers: Sequence[str], options: Any, tell: Any) -> Measured:
        outcomes = []
        for p in peers:
            problem = (problems or {}).get(p, "")
            times = [] if problem else [1e-3]
            outcomes.append(Outcome(p, times, losses=losses.get(p, [1.0]), problem=problem))
        plain = workload if isinstance(workload, Workload) else workload.as_workload()
        return Measured(plain, outcomes, options.threads, 0.0)

    return fake


@pytest.fixture
def agreeing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "run", measured({}))


def test_help_and_wrong_usage() -> None:
    assert "beside every peer" in run("--help").output
    for args in (
        ["W99"],
        ["W1", "--peers", "nobody"],
        ["--threads", 0],
        ["--threads", 10**6],
        ["--clock", "sun"],
    ):
        result = run(*args)
        assert result.exit_code == 2, result.output
        assert "Traceback" not in result.output


@pytest.mark.slow
def test_a_real_run_of_one_peer(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    options = ("--seconds", 0.05, "--rounds", 2, "--threads", 1, "--json", file)
    result = run("W9-jit-1", "--peers", "retrograd", *options)
    assert result.exit_code == 0, result.output
    (found,) = json.loads(file.read_text())["results"]
    (outcome,) = found["outcomes"]
    assert found["workload"] == "W9-jit-1"
    assert outcome["peer"] == "retrograd"
    assert len(outcome["times"]) == 2
    assert min(outcome["times"]) > 0
    assert outcome["losses"] == pytest.approx([0.5 * 0.99**50 + 0.01 * 39.4994, 0.99**50], abs=1e-4)


@pytest.mark.usefixtures("agreeing")
def test_a_group_of_workloads_is_named_at_once() -> None:
    output = run("w9", "--peers", "retrograd,jax").output
    for name in ("W9-jit-1", "W9-jit-64", "W9-eager-1", "W9-eager-64", "retrograd-eager", "jax"):
        assert f"{name}  " in output
    assert "torch" not in output


@pytest.mark.usefixtures("agreeing")
def test_optional_peers_run_when_they_are_named() -> None:
    assert "torch-compile" not in run("W1", "--peers", "torch").output
    assert "torch-compile" in run("W1", "--peers", "torch-compile").output


def test_losses_that_differ_fail_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = {"retrograd": [1.0, 2.0], "jax": [1.0, 1.0], "torch": [1.0, 1.0]}
    monkeypatch.setattr(command, "run", measured(losses))
    result = run("W1", "--peers", "retrograd,jax,torch")
    assert result.exit_code == 1
    assert "the losses differ by more than 1e-04: retrograd" in result.output
    assert "failed: W1" in result.stderr


def test_a_peer_that_fails_is_told_and_not_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "run", measured({}, {"jax": "no answer within 1 s"}))
    result = run("W1", "--peers", "retrograd,jax,torch")
    assert (result.exit_code, "jax: failed: no answer within 1 s" in result.output) == (0, True)
    monkeypatch.setattr(command, "run", measured({}, {"retrograd": "SystemError: no"}))
    assert run("W1", "--peers", "retrograd,jax").exit_code == 1


@pytest.mark.usefixtures("agreeing")
def test_results_keep_other_workloads_and_what_was_written_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command.limits, "answer", lambda *given: "slow kernels.")
    assert run("W1", "--write").exit_code == 2  # there is no such directory
    (tmp_path / "benchmarks").mkdir()
    document = tmp_path / "benchmarks" / "RESULTS.md"
    assert run("W2", "--write", "--peers", "retrograd,jax").exit_code == 0
    document.write_text(document.read_text() + "\nThe cat sat on the machine.\n")
    assert run("W1", "--write", "--peers", "retrograd,jax").exit_code == 0
    text = document.read_text()
    assert text.index("### W1\n") < text.index("### W2\n") < text.index(BY_HAND)
    assert text.endswith("The cat sat on the machine.\n")
    assert "- processor: " in text
    assert "What limits `retrograd`: slow kernels." in text
    assert "| retrograd | 1.00 ms | 1.00 |" in text
