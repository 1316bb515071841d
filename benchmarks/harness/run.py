"""One run: a process for each peer, all alive, measured in turns."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.processes import Worker, WorkerFailed
from benchmarks.harness.result import Outcome, Result
from benchmarks.harness.startup import Startup, import_library
from benchmarks.harness.workload import Workload


@dataclass(frozen=True)
class Options:
    """How to measure. Each peer gets `seconds` in `rounds` turns; a request that is not answered
    within `limit` seconds ends its worker. Times of steps, and of the first one, are those of a
    clock on the wall or what processors have worked for them."""

    threads: int
    seconds: float = 2.0
    rounds: int = 5
    limit: float = 60.0
    clock: str = "wall"  # or "processor"


Tell = Callable[[str], None]


def run(workload: Workload | Startup, peers: Sequence[str], options: Options, tell: Tell) -> Result:
    """Measure these peers of a workload; `tell` is given what is being done."""
    if isinstance(workload, Startup):
        return run_startup(workload, peers, options, tell)
    outcomes = [Outcome(p) for p in peers]
    workers: dict[str, Worker] = {}
    loads: list[tuple[float, float]] = []
    try:
        for outcome in outcomes:
            tell(f"{workload.name}: {outcome.peer}, first steps")
            worker = Worker(workload.name, outcome.peer, options.threads)
            workers[outcome.peer] = worker
            ask(worker, {"do": "start", "clock": options.clock}, outcome, options.limit)
        for i in range(options.rounds):
            tell(f"{workload.name}: round {i + 1} of {options.rounds}")
            for outcome in outcomes:
                if not outcome.problem and wants_more(outcome, options):
                    turn(workers[outcome.peer], outcome, options, loads)
    finally:
        for worker in workers.values():
            worker.close()
    if not loads:
        return Result(workload, outcomes, options.threads, None, clock=options.clock)
    load, stolen = (statistics.median(numbers) for numbers in zip(*loads, strict=True))
    return Result(workload, outcomes, options.threads, load, stolen, options.clock)


def wants_more(outcome: Outcome, options: Options) -> bool:
    """Slow peers get three turns and no more than is needed for them."""
    return len(outcome.times) < 3 or outcome.wall < 1.5 * options.seconds


def turn(
    worker: Worker, outcome: Outcome, options: Options, loads: list[tuple[float, float]]
) -> None:
    """Measure once; note in `loads` the cores that others had: programs here, and the host's."""
    before, began = busy(), time.perf_counter()
    seconds = options.seconds / options.rounds
    request = {"do": "run", "seconds": seconds, "clock": options.clock}
    reply = ask(worker, request, outcome, options.limit)
    after, passed = busy(), time.perf_counter() - began
    if reply and before is not None and after is not None:
        others = after[0] - before[0] - reply["cpu"]
        loads.append((max(0.0, others / passed), (after[1] - before[1]) / passed))


def ask(worker: Worker, request: Any, outcome: Outcome, limit: float) -> dict[str, Any] | None:
    """Ask, and note what the answer says; None if there was none."""
    try:
        reply = worker.ask(request, limit)
    except WorkerFailed as reason:
        outcome.problem = str(reason)
        outcome.times.clear()
        return None
    if "missing" in reply:
        outcome.problem, outcome.missing = reply["missing"], True
        return None
    if request["do"] == "start":
        outcome.import_time, outcome.import_memory = reply["import"], reply["import_memory"]
        outcome.setup, outcome.first = reply["setup"], reply["first"]
        outcome.losses, outcome.version = reply["losses"], reply["version"]
    else:
        outcome.times.append(reply["time"])
        outcome.wall += reply["wall"]
        outcome.peak = reply["peak"]
    return reply


def busy() -> tuple[float, float] | None:
    """Seconds that the processors of this machine have worked, for whomever, and that the host of a
    virtual machine has had them for others; None if not told."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            fields = [int(f) for f in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return None
    user, nice, system, _, _, irq, softirq, stolen = fields
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / tick, stolen / tick


def run_startup(what: Startup, peers: Sequence[str], options: Options, tell: Tell) -> Result:
    """A fresh process for every measurement, in turns."""
    outcomes = [Outcome(p) for p in peers]
    with tempfile.TemporaryDirectory(prefix="retrograd_benchmarks_") as folder:
        # What the second process finds on disk was left by a first one, which is not measured.
        for i in range(-1 if what.warm else 0, 3):
            tell(f"{what.name}: round {max(i + 1, 0)} of 3")
            for outcome in outcomes:
                if outcome.problem:
                    continue
                if what.of is None:
                    import_library(outcome)
                    continue
                cache = Path(folder) / outcome.peer if what.warm else None
                worker = Worker(what.of.name, outcome.peer, options.threads, cache)
                try:
                    request = {"do": "start", "clock": options.clock}
                    reply = ask(worker, request, outcome, options.limit)
                finally:
                    worker.close()
                outcome.first = None  # it is the time itself
                if reply and i >= 0:
                    outcome.times.append(reply["first"])
    return Result(what.as_workload(), outcomes, options.threads, None, clock=options.clock)
