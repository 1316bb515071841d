"""What every public function costs the first time at a prompt that has seen `x + 1`.

Each function is called for the first time in a process of its own, forked from one that has
computed `x + 1` and nothing else: no function profits from what another one compiled. A forked
process takes up to twice as long, as it copies what memory it touches; what takes long there is
called again in processes that were not forked. Times are of the processor (of all threads), the
least of a few tries. A busy machine makes them longer too, by as much as it does the loop whose
time is printed first. Without `--cache` nothing is found on disk,
so that everything is compiled.

With `--seen` it is what a function costs that was called before: the median of some calls, in
microseconds of the clock, after a few calls and a pause, as between two lines at a prompt.

    python benchmarks/prompt.py [sum linalg.inv ...] [--above 10] [--tries 3] [--size 3]
                                [--backward] [--seen] [--cache FOLDER] [--threads 1]
"""

from __future__ import annotations

import argparse
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

LIMIT = 40.0  # milliseconds that a new operation may take
SEEN = 50.0  # microseconds that a seen one may take


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of the names of functions")
    parser.add_argument("--above", type=float, help="milliseconds (microseconds) worth a line")
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--size", type=int, default=3, help="of the arrays")
    parser.add_argument("--backward", action="store_true", help="with the gradient of the sum")
    parser.add_argument("--seen", action="store_true", help="of what was called before")
    parser.add_argument("--cache", default="off", help="a folder of compiled code")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--alone", help=argparse.SUPPRESS)  # the one function to call, and no other
    options = parser.parse_args()
    above = options.above or (SEEN if options.seen else LIMIT)
    unit = "us" if options.seen else "ms"
    os.environ["RETROGRAD_CACHE_DIR"] = options.cache
    os.environ["RETROGRAD_NUM_THREADS"] = str(options.threads)

    begin = time.process_time()
    total = 0
    for i in range(1_000_000):
        total += i
    print(f"a million additions in Python {1e3 * (time.process_time() - begin):.0f} ms")
    begin = time.process_time()
    import numpy as np

    import retrograd as rg

    imported = time.process_time()
    (rg.tensor(np.ones(3, np.float32)) + 1).numpy()
    first = time.process_time()
    print(f"import {1e3 * (imported - begin):.0f} ms, x + 1 {1e3 * (first - imported):.0f} ms")

    from benchmarks.calls import Arrays, calls

    arrays = Arrays(options.size, options.backward)
    if options.alone:
        call = calls(arrays)[options.alone]
        begin = time.process_time()
        use(call, arrays if options.backward else None)
        print(1e3 * (time.process_time() - begin))
        return
    chosen = {
        name: call
        for name, call in calls(arrays).items()
        if not options.names or any(part in name for part in options.names)
    }
    found: dict[str, float] = {}
    for name, call in chosen.items():

        def run(call: Callable[[], Any] = call) -> None:
            use(call, arrays if options.backward else None)

        if options.seen:
            found[name] = again(run, arrays)
            continue
        found[name] = min(apart(run) for _ in range(options.tries))
        if not found[name] < above:
            found[name] = min(alone(name) for _ in range(options.tries))
    slow = {name: t for name, t in found.items() if not t < above}
    for name, t in sorted(slow.items(), key=lambda item: -item[1]):
        print(f"{t:7.1f} {unit}  {name}")
    times = sorted(found.values())
    print(
        f"{len(slow)} of {len(found)} functions take {above:g} {unit} or more; "
        f"the median is {times[len(times) // 2]:.1f} {unit}, the sum {sum(times) / 1e3:.2f} "
        f"{'ms' if options.seen else 's'}"
    )


def use(call: Callable[[], Any], arrays: Any) -> None:
    """Compute a call and, given the arrays that it takes, the gradient of the sum."""
    from benchmarks.calls import compute, differentiate

    result = call()
    compute(result)
    if arrays is not None:
        differentiate(arrays, result)


def again(run: Callable[[], None], arrays: Any) -> float:
    """Microseconds that a call takes on arrays on which it was made before: what is to be compiled,
    has been."""
    from retrograd.runtime.executors.background_compiler import BEHIND

    first, taken = len(arrays.made), []
    for _ in range(5):
        run()
        BEHIND.finish()
        arrays.again(first)
    for _ in range(50):
        arrays.again(first)
        start = time.perf_counter()
        run()
        taken.append(1e6 * (time.perf_counter() - start))
    return sorted(taken)[len(taken) // 2]


def alone(name: str) -> float:
    """Milliseconds of the processor that a call takes in a process of its own, which was not
    forked; NaN if it fails."""
    done = subprocess.run([sys.executable, *sys.argv, "--alone", name], capture_output=True)
    return float(done.stdout.split()[-1]) if done.returncode == 0 else float("nan")


def apart(run: Callable[[], Any]) -> float:
    """Milliseconds of the processor that a call takes in a process of its own; NaN if it fails."""
    from retrograd.codegen.gemm import ROUTINES, routine_text
    from retrograd.runtime.compiler import engine

    text = routine_text(engine().machine, min(ROUTINES))

    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        taken = float("nan")
        try:
            # What the parent did for `x + 1` once more, so that the memory it used is our own:
            # a process that was not forked need not copy it.
            for _ in range(2):
                engine()._hasty.compile(text)
            start = time.process_time()
            run()
            taken = 1e3 * (time.process_time() - start)
        finally:
            os.write(writing, struct.pack("d", taken))
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as file:
        return float(struct.unpack("d", file.read())[0])


if __name__ == "__main__":
    main()
