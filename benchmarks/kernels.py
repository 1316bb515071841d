"""Where the time of a workload goes: the kernels of its compiled step, slowest first.

Each line is a kernel as `explain()` describes it, after its share of the time, its cycles per step
(of the clock that the processor counts with, which need not be the one it runs at), and the
operations and bytes of each cycle. What lies between kernels is not counted.

    python benchmarks/kernels.py [W4] [--peer PEER] [--steps N] [--top N] [--threads N]
"""

from __future__ import annotations

import argparse
import re
from typing import Any

import retrograd as rg
from benchmarks.harness.catalog import find
from benchmarks.harness.limits import timed_programs
from retrograd.codegen.launch_layout import COUNTED_CYCLES, COUNTER_WORDS


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workload", nargs="?", default="W4")
    parser.add_argument("--peer", default="retrograd", help="or retrograd-eager, for instance")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--top", type=int, default=20, help="how many kernels to show")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    rg.num_threads(options.threads)
    with timed_programs() as programs:
        session = find(options.workload).peers[options.peer]()
        next(session.losses)
        session.step()  # caches are warm afterwards
    for program in programs:
        program.times[:] = 0
    for _ in range(options.steps):
        session.step()
    session.wait()
    program = max(programs, key=lambda p: p.times.sum())
    show(program, options.workload, options.steps, options.top)


def show(program: Any, name: str, steps: int, top: int) -> None:
    head, *rest = program.explain().splitlines()
    lines = [line for line in rest if line[:6].strip()]  # those of bands have no number
    cycles = [t / steps for t in program.times[COUNTED_CYCLES::COUNTER_WORDS].tolist()]
    total = sum(cycles) or 1
    print(f"{name}: {head}; {total:,.0f} cycles a step")
    kinds: dict[str, float] = {}
    for line, spent in zip(lines, cycles, strict=True):
        kind = line.split()[1]
        kinds[kind] = kinds.get(kind, 0) + spent
    shares = sorted(kinds.items(), key=lambda k: -k[1])
    print("by kind: " + ", ".join(f"{kind} {spent / total:.1%}" for kind, spent in shares))
    print(f"{'share':>6} {'cycles':>13} {'ops/cycle':>9} {'B/cycle':>7}  kernel")
    for k in sorted(range(len(lines)), key=lambda k: -cycles[k])[:top]:
        work = re.search(r"(\d+) bytes, (\d+) operations\b", lines[k])
        bytes_, operations = (int(w) / (cycles[k] or 1) for w in work.groups()) if work else (0, 0)
        print(
            f"{cycles[k] / total:6.1%} {cycles[k]:13,.0f} {operations:9.1f} {bytes_:7.2f}  "
            + lines[k].strip()[:150]
        )


if __name__ == "__main__":
    main()
