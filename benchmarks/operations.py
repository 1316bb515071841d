"""Single operations, compiled, beside NumPy, SciPy and PyTorch: in one process, in turns.

The time is the least of many calls, on one thread and on several; each number of threads has a
process of its own, since some libraries read it when they are loaded. Libraries that are absent are
left out. Results must agree.

    python benchmarks/operations.py [sort conv2d ...] [--threads 1 2] [--seconds 0.2] [--write]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import retrograd as rg
from benchmarks.harness.operations import Case, cases, installed
from benchmarks.harness.results import write_table
from benchmarks.harness.table import duration, ratio

AIM = 1.5  # times the best of the others
RESULTS = Path(__file__).with_name("RESULTS.md")
INTRODUCTION = f"""## Operations

Written by `python benchmarks/operations.py --write`: each operation compiled by retrograd beside
NumPy, SciPy and PyTorch in one process, in turns, the least time of many calls. **Ratio**: the time
over that of the fastest other library, so below 1 is ahead; the project aims at {AIM} at most, and
what is beyond is bold. Unless a dtype is named, numbers are float32. Gradients are of the sum of
squares."""
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RETROGRAD_NUM_THREADS")
ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="words that begin the names of operations")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=0.2, help="for each library and operation")
    parser.add_argument("--write", action="store_true", help=f"bring {RESULTS.name} up to date")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        measure_all(options.names, options.seconds, options.threads[0])
        return
    if options.write and options.names:
        parser.error("--write is for all operations")
    found = {n: measured_apart(n, options.names, options.seconds) for n in options.threads}
    lines = table(found)
    print("\n".join(lines))
    if options.write:
        write_table(RESULTS, "operations", INTRODUCTION, lines)


def measured_apart(threads: int, names: list[str], seconds: float) -> dict[str, dict[str, float]]:
    """Times by operation and library, in a process that has so many threads."""
    command = [sys.executable, __file__, "--child", "--threads", str(threads)]
    command += ["--seconds", str(seconds), *(["--", *names] if names else [])]
    environment = {**os.environ, **dict.fromkeys(VARIABLES, str(threads))}
    found = {}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            name, times = json.loads(line)
            found[name] = times
            shown = ", ".join(f"{peer} {duration(time)}" for peer, time in times.items())
            print(f"... {threads}: {name}: {shown}", file=sys.stderr)
    if child.returncode:
        raise SystemExit(f"failed with {threads} threads")
    return found


def measure_all(names: list[str], seconds: float, threads: int) -> None:
    """Print a line of JSON for each operation."""
    rg.num_threads(threads)
    torch = installed("torch")
    if torch is not None:
        torch.set_num_threads(threads)
    for case in cases():
        if not names or any(case.name.startswith(name) for name in names):
            check(case)
            print(json.dumps([case.name, measure(case, seconds)]), flush=True)


def check(case: Case) -> None:
    """All libraries must give the same numbers."""
    if not case.checked:
        return
    found = {name: values(run()) for name, run in case.runs.items()}
    ours = found["retrograd"]
    for name, theirs in found.items():
        for a, b in zip(ours, theirs, strict=True):
            scale = 0.0 if case.exact or not b.size else float(np.abs(b).max())
            if not np.allclose(a, b, rtol=0, atol=2e-3 * scale):
                raise SystemExit(f"{case.name}: retrograd and {name} differ")


def values(result: Any) -> list[np.ndarray[Any, Any]]:
    """Results as arrays."""
    parts = result if isinstance(result, tuple | list) else (result,)
    return [np.asarray(x.numpy() if hasattr(x, "numpy") else x) for x in parts]


def measure(case: Case, seconds: float) -> dict[str, float]:
    """The least time of each library, in rounds of turns."""
    best = dict.fromkeys(case.runs, float("inf"))
    for run in case.runs.values():
        run()
    gc.collect()
    gc.disable()
    for _ in range(ROUNDS):
        for name, run in case.runs.items():
            end = perf_counter() + seconds / ROUNDS
            now = perf_counter()
            while now < end:
                run()
                after = perf_counter()
                best[name] = min(best[name], after - now)
                now = perf_counter()
    gc.enable()
    return best


def table(found: dict[int, dict[str, dict[str, float]]]) -> list[str]:
    """A row for each operation, with columns for each number of threads."""
    heads = ["operation"]
    for n in found:
        heads += [f"retrograd, {n} thread{'s' if n != 1 else ''}", "best of others", "ratio"]
    lines = [row(heads), row(["---"] + ["---:"] * (len(heads) - 1))]
    for name in next(iter(found.values())):
        cells = [name]
        for times in found.values():
            cells += compared(times[name])
        lines.append(row(cells))
    return lines


def compared(times: dict[str, float]) -> list[str]:
    others = {peer: time for peer, time in times.items() if peer != "retrograd"}
    own = times["retrograd"]
    if not others:
        return [duration(own), "", ""]
    peer = min(others, key=others.__getitem__)
    share = own / others[peer]
    shown = f"**{ratio(share)}**" if share > AIM else ratio(share)
    return [duration(own), f"{duration(others[peer])} ({peer})", shown]


def row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
