"""What limits retrograd where a target is not met: its kernels against their floors, measured.

Run as `python -m retrograd_bench.limits W3 retrograd 2` (workload, peer, threads) it prints the
table. The floor of a kernel is what its arithmetic or the memory it touches would take alone: at
the rate of a loop of nothing but multiply-adds, and at that of going through as much memory as a
call touches, each on one thread.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import retrograd as rg
from retrograd.backends.kernel.report import KernelReport, kernel_reports
from retrograd.backends.llvm.engine import engine
from retrograd.backends.llvm.product.tile import Tile
from retrograd.backends.llvm.program import LLVMProgram
from retrograd.backends.llvm.types import literal
from retrograd.backends.llvm.writer import Writer
from retrograd_bench.catalog import find
from retrograd_bench.processes import environment
from retrograd_bench.result import Result
from retrograd_bench.table import duration
from retrograd_bench.workload import library

SECONDS = 1.5  # for the steps of one number of threads
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
        command = [sys.executable, "-m", "retrograd_bench.limits", *given]
        with tempfile.TemporaryDirectory(prefix="retrograd_bench_") as cache:
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
class Rates(NamedTuple):
    """Operations and bytes a second."""

    operations: float
    bytes: float


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
    rates = Rates(multiply_adds(), streaming(touched(program)))
    found = lines_of(reports, rates)
    whole, kernels = steps[1], sum(line.time for line in found)
    floor = sum(min(line.floor, line.time) for line in found)
    each = f" of {scale} steps" if scale > 1 else ""
    others = "".join(f", {duration(t)} with {n} threads" for n, t in steps.items() if n != 1)
    head = (
        f"a call{each} takes {duration(whole)} with one thread{others}, the least of many. Of the "
        f"former, {duration(kernels)} are kernels, whose floors add up to {duration(floor)}: "
        f"{rates.operations / 1e9:.0f} GFLOP/s, a loop of multiply-adds, and "
        f"{rates.bytes / 1e9:.0f} GB/s, going through as much memory as a call touches. What is "
        "read in part counts as a whole, but for the time of its kernel at most. The rest is "
        "between kernels, and in Python."
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
            steps[count] = min(seconds(session.step, session.wait))
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
    program.times = least / clock()
    return program, steps, session.scale


@contextmanager
def timed_programs() -> Iterator[list[Any]]:
    """The list of programs that are compiled meanwhile; each counts the cycles of its kernels."""
    programs: list[Any] = []
    plain = LLVMProgram.__init__

    def timed(self: Any, *args: Any, **kwargs: Any) -> None:
        plain(self, *args, **{**kwargs, "timed": True})
        programs.append(self)

    LLVMProgram.__init__ = timed  # type: ignore[method-assign]
    try:
        yield programs
    finally:
        LLVMProgram.__init__ = plain  # type: ignore[method-assign]


def clock() -> float:
    """The cycles in a second that kernels are timed with."""
    x = np.ones(1 << 21, np.float32)
    program: Any = LLVMProgram(rg.trace(lambda x: rg.sin(x) * rg.exp(x), x), timed=True)
    rates = []
    for _ in range(10):
        program.times[:] = 0
        began = time.perf_counter()
        program([x])
        rates.append(float(program.times.sum()) / (time.perf_counter() - began))
    return max(rates)  # what the call takes beside its kernel makes it seem slower


def seconds(step: Callable[[], Any], wait: Callable[[], Any] = lambda: None) -> Iterator[float]:
    """The times of steps, for a while, twenty at least."""
    end, done = time.perf_counter() + SECONDS, 0
    while done < 20 or time.perf_counter() < end:
        began = time.perf_counter()
        step()
        wait()
        yield time.perf_counter() - began
        done += 1


def multiply_adds() -> float:
    """Operations a second of a loop of nothing but multiply-adds of vectors."""
    tile = Tile.of(engine().machine, rg.float32)
    declared: list[str] = []
    w = Writer(declared.append)
    one = literal(1.0, rg.float32, tile.lanes)
    loop = w.open_loop("%n", carried=[(tile.vector, one)] * (tile.rows * tile.vectors))
    w.close_loop(loop, [tile.added(w, one, one, total) for total in loop.values])
    for k, total in enumerate(loop.values):
        tile.store(w, total, tile.at(w, "%block", k * tile.lanes))
    w.line("ret i64 0")
    head = "define i64 @run(ptr %block, i64 %n, i64 %threads, ptr %team) {"
    lines = [*(f"declare {d}" for d in dict.fromkeys(declared)), head, w.text(), "}"]
    code = engine().compile("\n".join(lines) + "\n", [])
    room = np.empty(len(loop.values) * tile.lanes, np.float32)
    steps, times = 200_000, []
    for _ in range(10):
        began = time.perf_counter()
        code.run(room.ctypes.data, steps, 1, 0)
        times.append(time.perf_counter() - began)
    return 2 * room.size * steps / min(times)


def touched(program: Any) -> int:
    """Bytes of memory that a call touches."""
    plan = program.plan
    given = sum(b.bytes for b in (*plan.inputs, *plan.outputs) if isinstance(b.bytes, int))
    return given + plan.layout({}).arena + plan.scratch.arena


def streaming(size: int) -> float:
    """Bytes a second, read and written, of going through arrays that take so many bytes together:
    copying one, or changing it in place, whichever is faster."""
    best = 0.0
    for arrays, change in ((2, lambda x, y: np.copyto(y, x)), (1, lambda x, _: np.negative(x, x))):
        x = np.ones(max(size // (4 * arrays), 1024), np.float32)
        y = np.zeros_like(x)
        many = max((1 << 20) // x.size, 1)
        for _ in range(30):
            began = time.perf_counter()
            for _ in range(many):
                change(x, y)
            best = max(best, 2 * x.nbytes * many / (time.perf_counter() - began))
    return best


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
