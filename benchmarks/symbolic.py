"""Programs compiled for named sizes, beside those compiled for the sizes at hand: in turns.

The time is the least of many calls, on one thread, memory and code warm. Values must agree;
where bits differ, the ratio has a star: sums may be taken in another order where a size is 1,
or where a plan prefers another form of a convolution.

    python benchmarks/symbolic.py [product "W2, all" ...] [--seconds 0.1] [--above 1.3] [--write]
"""

from __future__ import annotations

import argparse
import gc
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import retrograd as rg
from benchmarks.harness.results import write_table
from benchmarks.harness.table import duration
from benchmarks.named import Case, Values, cases
from retrograd.ir import Dim, Graph, spec
from retrograd.runtime.executable import Executable

AIM = 1.3
ROUNDS, BATCH = 20, 50e-6  # measurements at least, and seconds that each of them takes
RESULTS = Path(__file__).with_name("RESULTS.md")
INTRODUCTION = f"""## Named sizes

Written by `python benchmarks/symbolic.py --write`: the time of a call of a program compiled
once for named sizes, over that of one compiled for the sizes at hand, in turns, the least of many,
one thread; then the time of the latter. The project aims at {AIM} at most; what is above is bold. A
star: the bits differ, as a plan takes other sums, or another form of a convolution, where it knows
the sizes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="words that begin the names of cases")
    parser.add_argument("--seconds", type=float, default=0.1, help="for each pair of programs")
    parser.add_argument("--above", type=float, default=0.0, help="show ratios above this only")
    parser.add_argument("--write", action="store_true", help=f"bring {RESULTS.name} up to date")
    options = parser.parse_args()
    if options.write and (options.names or options.above):
        parser.error("--write is for all cases")
    rg.num_threads(1)
    lines = []
    for case in cases():
        if not options.names or any(case.name.startswith(n) for n in options.names):
            cells = measured(case, options.seconds, options.above)
            if cells:
                lines.append(f"| {case.name} | {'; '.join(cells)} |")
                print(lines[-1], flush=True)
    if options.write:
        table = ["| program | named over known, by size |", "| --- | --- |", *lines]
        write_table(RESULTS, "named sizes", INTRODUCTION, table)


def measured(case: Case, seconds: float, above: float) -> list[str]:
    """What comes of one case, for each of its sizes, if it is above a ratio."""
    named = compiled(graph_of(case))
    cells = []
    for sizes in case.sizes:
        arrays = case.arrays(sizes)
        known = compiled(rg.trace(case.f, *arrays))
        same = agree(named(arrays), known(arrays), case.name)
        times = measure(known, named, arrays, seconds)
        share = times[1] / times[0]
        if share >= above:
            shown = f"**{share:.2f}**" if share > AIM else f"{share:.2f}"
            cells.append(f"{label(sizes)}: {shown}{'' if same else ' *'} ({duration(times[0])})")
    return cells


def label(sizes: Values) -> str:
    """Values of names, those with the same value together."""
    names: dict[int, list[str]] = {}
    for name, n in sizes.items():
        names.setdefault(n, []).append(name)
    return " ".join(f"{'='.join(same)}={n}" for n, same in names.items())


def graph_of(case: Case) -> Graph:
    specs = [spec(tuple(map(size, s)), getattr(rg, d)) for s, d in case.shapes()]
    return rg.trace(case.f, *specs)


def size(text: str) -> int | Dim:
    return int(text) if text.isdigit() else Dim(text)


def compiled(graph: Graph) -> Executable:
    return Executable(graph, simplify=True)


def agree(a: list[Any], b: list[Any], name: str) -> bool:
    """Whether bits are equal; values have to be."""
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4, err_msg=name)
    return all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


def measure(known: Executable, named: Executable, arrays: list[Any], seconds: float) -> list[float]:
    """The least time of either, in turns."""
    programs, best = (known, named), [float("inf")] * 2
    start = perf_counter()
    for _ in range(5):
        known(arrays)
    once = (perf_counter() - start) / 5
    often = max(int(BATCH / once), 1)
    rounds = max(int(seconds / 2 / (once * often)), ROUNDS)
    gc.collect()
    gc.disable()
    for _ in range(rounds):
        for k, program in enumerate(programs):
            program(arrays)
            start = perf_counter()
            for _ in range(often):
                program(arrays)
            best[k] = min(best[k], (perf_counter() - start) / often)
    gc.enable()
    return best


if __name__ == "__main__":
    main()
