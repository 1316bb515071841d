"""What limits retrograd where a target is not met: its kernels against their floors, measured.

Run as `python -m benchmarks.harness.limits W3 retrograd 2` (workload, peer, threads) it prints the
table. The floor of a kernel is what its arithmetic or the memory it touches would take alone: at
the rate of a loop of nothing but multiply-adds, or of a BLAS that is faster, and at that of going
through as much memory as a call touches, each on one thread.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import retrograd as rg
from benchmarks.harness.catalog import find
from benchmarks.harness.processes import environment
from benchmarks.harness.rates import Rates, clock, peak, streaming
from benchmarks.harness.result import Result
from benchmarks.harness.table import duration
from benchmarks.harness.workload import library
from retrograd.codegen.launch_layout import COUNTED_CYCLES, COUNTER_WORDS
from retrograd.runtime.executable import Executable
from retrograd.schedule.control_regions import length_of, regions_of
from retrograd.schedule.cost_model import known, traffic
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.planning.kernel_report import KernelReport, kernel_reports

SECONDS = 1.5  # for the steps of one number of threads
TOGETHER = 1e-3  # seconds of steps that are timed as one
SHOWN = 8  # kernels
LIMIT = 300.0  # seconds until the process is given up
HEADER = ("kernel", "times", "time", "share", "arithmetic", "memory", "time to floor")


def missed(result: Result) -> list[str]:
    """The peers of retrograd that are compiled and did not meet their target."""
    found = []
    for o in result.outcomes:
        target = result.target(o)
        late = target is not None and o.time is not None and o.time > target
        if late and library(o.peer) == "retrograd" and o.peer in result.workload.peers:
            found.append(o.peer)
    return found


def limits(result: Result) -> str:
    """The tables of a result, as Markdown; a reason where one could not be made."""
    parts = []
    for peer in missed(result):
        given = [result.workload.name, peer, str(result.threads)]
        command = [sys.executable, "-m", "benchmarks.harness.limits", *given]
        with tempfile.TemporaryDirectory(prefix="retrograd_benchmarks_") as cache:
            env = environment(1, Path(cache), keep=False)
            parts.append(f"What limits `{peer}`: {answer(command, env)}")
    return "\n\n".join(parts)


def answer(command: Sequence[str], env: dict[str, str]) -> str:
    """What a program prints, or why it printed nothing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=env)
    except subprocess.TimeoutExpired:
        return f"no table within {LIMIT:.0f} s."
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"ended with code {done.returncode}"]
        return f"no table: {lines[-1]}"
    return done.stdout.strip()


# -- in a process of its own ----------------------------------------------------------------------
class Line(NamedTuple):
    """Equal kernels of a program together; seconds."""

    text: str
    many: int
    time: float
    arithmetic: float
    memory: float

    @property
    def floor(self) -> float:
        return max(self.arithmetic, self.memory)


def table(name: str, peer: str, threads: int) -> str:
    """The table of a workload."""
    with rg.flush_subnormals(), rg.num_threads(1):
        program, steps, scale = measured(name, peer, threads)
    reports = kernel_reports(program.plan, {}, program.times.tolist())
    for k, kernel in enumerate(program.plan.kernels):
        if regions_of(kernel):
            reports[k] = replace(reports[k], bytes=repeated_bytes(kernel))
    rates = Rates(peak(), streaming(touched(program)))
    found = lines_of(reports, rates)
    whole, kernels = steps[1], sum(line.time for line in found)
    floor = sum(min(line.floor, line.time) for line in found)
    each = f" of {scale} steps" if scale > 1 else ""
    others = "".join(f", {duration(t)} with {n} threads" for n, t in steps.items() if n != 1)
    head = (
        f"a call{each} takes {duration(whole)} with one thread{others}, the least of many. Of the "
        f"former, {duration(kernels)} are kernels, whose floors add up to {duration(floor)}: "
        f"{rates.operations / 1e9:.0f} GFLOP/s, the best of a loop of multiply-adds and of "
        f"every BLAS at hand, and {rates.bytes / 1e9:.0f} GB/s, going through as much memory as a "
        "call touches. What is read in part counts as a whole, but for the time of its kernel at "
        "most. The rest is between kernels, and in Python."
    )
    return "\n".join([head, "", *markdown(found, kernels)])


def measured(name: str, peer: str, threads: int) -> tuple[Any, dict[int, float], int]:
    """The program of a workload, with the least seconds of each kernel in `times`, on one thread;
    the least seconds of a call by number of threads; and the steps of a call."""
    steps = {}
    for count in sorted({1, threads}):
        with rg.num_threads(count):
            session = find(name).peers[peer]()
            next(session.losses)
            steps[count] = min(seconds(session.step, session.wait, TOGETHER))
    with timed_programs() as programs:
        session = find(name).peers[peer]()
        next(session.losses)
        session.step()
        for _ in seconds(session.step, session.wait):
            pass
        program = max(programs, key=lambda p: p.times.sum())
        least = np.full(program.times.size, np.inf)

        def step() -> None:
            program.times[:] = 0
            session.step()
            session.wait()
            if program.times.any():  # another may have run, for another length
                np.minimum(least, program.times, out=least)

        for _ in seconds(step):
            pass
    program.times = least[COUNTED_CYCLES::COUNTER_WORDS] / clock()
    return program, steps, session.scale


@contextmanager
def timed_programs() -> Iterator[list[Any]]:
    """The list of programs that are compiled meanwhile; each counts the cycles of its kernels."""
    programs: list[Any] = []
    plain = Executable.__init__

    def timed(self: Any, *args: Any, **kwargs: Any) -> None:
        plain(self, *args, **{**kwargs, "timed": True})
        programs.append(self)

    Executable.__init__ = timed  # type: ignore[method-assign]
    try:
        yield programs
    finally:
        Executable.__init__ = plain  # type: ignore[method-assign]


def seconds(
    step: Callable[[], Any], wait: Callable[[], Any] = lambda: None, least: float = 0.0
) -> Iterator[float]:
    """The times of steps, for a while, twenty at least; those shorter than `least` together."""
    end, done, many = time.perf_counter() + SECONDS, 0, 1
    while done < 20 or time.perf_counter() < end:
        began = time.perf_counter()
        for _ in range(many):
            step()
        wait()
        passed = time.perf_counter() - began
        yield passed / many
        if passed < least:
            many *= 2
        done += 1


def repeated_bytes(kernel: Kernel) -> int:
    """The bytes that the kernels inside of a loop touch, in all its steps."""
    total = 0
    for region in regions_of(kernel):
        inner = [k for block in region.blocks for k in block]
        each = sum(repeated_bytes(k) if regions_of(k) else known(traffic(k)) for k in inner)
        length = length_of(region)
        total += each * (1 if length is None else known(length))
    return total


def touched(program: Any) -> int:
    """Bytes of memory that a call touches."""
    plan = program.plan
    given = sum(b.bytes for b in (*plan.inputs, *plan.outputs) if isinstance(b.bytes, int))
    return given + plan.layout({}).arena + plan.scratch.arena


def lines_of(reports: Sequence[KernelReport], rates: Rates) -> list[Line]:
    """Kernels, those that are alike as one, the slowest first."""
    found: dict[tuple[str, int | None, int | None], list[float]] = {}
    for r in reports:
        text = re.sub(r"%\d+: ", "", r.text)
        text += f" ({r.ops})" if r.ops else ""
        found.setdefault((text, r.operations, r.bytes), []).append(r.measured or 0.0)
    lines = [
        Line(
            text,
            len(times),
            sum(times),
            len(times) * (operations or 0) / rates.operations,
            len(times) * (size or 0) / rates.bytes,
        )
        for (text, operations, size), times in found.items()
    ]
    return sorted(lines, key=lambda line: -line.time)


def markdown(lines: Sequence[Line], whole: float) -> list[str]:
    """The slowest kernels, and the others in a row."""
    shown = list(lines[:SHOWN])
    if rest := lines[SHOWN:]:
        times = (sum(r.time for r in rest), sum(r.arithmetic for r in rest))
        many, memory = sum(r.many for r in rest), sum(r.memory for r in rest)
        shown.append(Line(f"{many} others", 0, *times, memory))
    rows = ["| " + " | ".join(HEADER) + " |", "|---" + "|---:" * (len(HEADER) - 1) + "|"]
    for line in shown:
        cells = (
            line.text.replace("|", "\\|") if len(line.text) <= 90 else line.text[:87] + "...",
            str(line.many or ""),
            duration(line.time),
            f"{line.time / max(whole, 1e-12):.0%}",
            duration(line.arithmetic),
            duration(line.memory),
            f"{line.time / line.floor:.1f}" if line.floor else "",
        )
        rows.append("| " + " | ".join(cells) + " |")
    return rows


if __name__ == "__main__":
    sys.stdout.write(table(sys.argv[1], sys.argv[2], int(sys.argv[3])) + "\n")
