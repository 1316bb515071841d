"""The process that measures something of one checkout; `speed.py` starts it, by its path.

    speed_worker.py ROOT list                         workloads and peers of retrograd
    speed_worker.py ROOT steps WORKLOAD PEER THREADS  for each line read, seconds: time of a step
    speed_worker.py ROOT first WORKLOAD PEER THREADS  the first step of a process
    speed_worker.py ROOT prompt FUNCTION              a call at a prompt, and the same again
    speed_worker.py ROOT import                       importing the library

Prints lines of JSON. It imports the package and the workloads of the checkout at ROOT, wherever it
keeps them, and nothing of these scripts.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

# Where the workloads of a checkout may be.
PLACES = ("benchmarks.harness", "retrograd_bench")
AGAIN = 40  # calls of what was called before
WARM = 0.5  # seconds of steps before any that counts
PAUSE = 0.3  # seconds in which what is prepared in the background gets ready
# What is called at a prompt: functions of a matrix x, a square one m, a row, and integers i.
PROMPT: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda rg, a: rg.sum(a.x, axis=0),
    "tanh": lambda rg, a: rg.tanh(a.x),
    "divide": lambda rg, a: a.x / a.y,
    "where": lambda rg, a: rg.where(a.x > 0.5, a.x, a.y),
    "softmax": lambda rg, a: rg.softmax(a.x, axis=-1),
    "layer_norm": lambda rg, a: rg.layer_norm(a.x, a.row, a.row),
    "matmul": lambda rg, a: a.x @ a.m,
    "einsum": lambda rg, a: rg.einsum("ij,kj->ik", a.x, a.y),
    "sort": lambda rg, a: rg.sort(a.x, axis=0),
    "cumsum": lambda rg, a: rg.cumsum(a.x, axis=1),
    "concat": lambda rg, a: rg.concat([a.x, a.y]),
    "take": lambda rg, a: rg.take(a.x, a.i, axis=0),
    "scatter_add": lambda rg, a: rg.scatter_add(a.x, a.i, a.y[:3]),
    "conv": lambda rg, a: rg.conv(a.image, a.kernel, padding=1),
    "max_pool": lambda rg, a: rg.max_pool(a.image, 2),
    "inv": lambda rg, a: rg.linalg.inv(a.m),
    "eigvalsh": lambda rg, a: rg.linalg.eigvalsh(a.m),
    "normal": lambda rg, a: rg.random.Generator(1).normal((4, 4)),
    "gradient": lambda rg, a: rg.grad(lambda x: (rg.sin(x) * x).sum())(a.x),
}


def catalog(root: Path) -> Any:
    """The module that lists the workloads."""
    for place in PLACES:
        try:
            found = importlib.util.find_spec(f"{place}.catalog")
        except ModuleNotFoundError:
            continue
        if found and found.origin and root in Path(found.origin).parents:
            return importlib.import_module(f"{place}.catalog")
    raise SystemExit(f"no workloads in {root}")


def listed(root: Path) -> list[tuple[str, str]]:
    return [
        (workload.name, peer)
        for workload in catalog(root).STEPS
        for peer in workload.peers
        if peer.split("-")[0] == "retrograd"
    ]


def session(root: Path, name: str, peer: str, threads: int) -> tuple[Any, dict[str, float]]:
    """A session that has taken its first step, and what that took."""
    workload = catalog(root).find(name)
    rg = importlib.import_module("retrograd")
    rg.num_threads(threads)
    rg.flush_subnormals()
    began = time.perf_counter()
    made = workload.peers[peer]()
    next(made.losses)
    return made, {"first": time.perf_counter() - began, "memory": peak_memory()}


def steps(root: Path, name: str, peer: str, threads: int) -> None:
    """Measure once for each number of seconds read."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])
    made, first = session(root, name, peer, threads)
    list(islice(made.losses, catalog(root).find(name).checks - 1))
    timed(made, WARM)
    print(json.dumps(first), flush=True)
    for line in sys.stdin:
        taken = timed(made, float(line))
        print(json.dumps({"time": taken, "memory": peak_memory()}), flush=True)


def timed(made: Any, seconds: float) -> float:
    """Seconds of a step, from as many as fit; waits for the last before it looks at the clock."""
    calls, chunk = 0, 1
    began = time.perf_counter()
    while True:
        for _ in range(chunk):
            made.step()
        calls += chunk
        passed = time.perf_counter() - began
        if passed >= seconds:
            break
        # Look at the clock about a hundred times, however short a step is.
        chunk = max(1, int(calls * seconds / 100 / passed))
    made.wait()
    return float((time.perf_counter() - began) / calls / made.scale)


class Arrays:
    """New arrays to call a function on."""

    def __init__(self, rg: Any, np: Any) -> None:
        rng = np.random.default_rng(0)

        def drawn(*shape: int) -> Any:
            return rg.tensor(rng.uniform(0.1, 0.9, shape).astype(np.float32))

        self.x, self.y, self.row = drawn(5, 4), drawn(5, 4), drawn(4)
        self.m = rg.tensor((rng.uniform(size=(4, 4)) + 4 * np.eye(4)).astype(np.float32))
        self.i = rg.tensor(np.array([0, 2, 1]))
        self.image, self.kernel = drawn(2, 3, 6, 6), drawn(4, 3, 3, 3)


def prompt(name: str) -> dict[str, float]:
    """The first call of a function in a process that has computed `x + 1`, and later ones."""
    np, rg = importlib.import_module("numpy"), importlib.import_module("retrograd")
    (rg.tensor(np.ones(3, np.float32)) + 1).numpy()
    times = []
    for at in range(1 + 5 + AGAIN):
        arrays = Arrays(rg, np)
        began = time.perf_counter()
        PROMPT[name](rg, arrays).numpy()
        times.append(time.perf_counter() - began)
        if at in (0, 5):
            time.sleep(PAUSE)
    return {"new": times[0], "seen": statistics.median(times[-AGAIN:])}


def peak_memory() -> int:
    """The most bytes that this process has held; 0 where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next(int(s.split()[1]) * 1024 for s in lines if s.startswith("VmHWM"))


def main() -> None:
    root, what, *rest = Path(sys.argv[1]), *sys.argv[2:]
    if what == "list":
        print(json.dumps(listed(root)))
    elif what == "steps":
        steps(root, rest[0], rest[1], int(rest[2]))
    elif what == "first":
        print(json.dumps(session(root, rest[0], rest[1], int(rest[2]))[1]))
    elif what == "prompt":
        print(json.dumps(prompt(rest[0])))
    else:
        importlib.import_module("retrograd")
        print(json.dumps({"memory": peak_memory()}))


if __name__ == "__main__":
    main()
