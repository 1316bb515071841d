"""The process that measures one workload with one peer.

Started by `processes.Worker` as `python -m benchmarks.harness.worker W1 jax 2`: workload, peer,
threads. It reads one JSON object a line and answers each with one: `{"do": "start"}` imports the
library, sets up and computes the losses to compare; `{"do": "run", "seconds": 0.5}` measures.
Between two requests it sleeps, so that others can be measured.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from itertools import islice
from typing import Any, TextIO

from benchmarks.harness.catalog import find
from benchmarks.harness.workload import LIBRARIES, Session, Unavailable, library

CLOCKS: dict[str, Callable[[], float]] = {
    "wall": time.perf_counter,
    "processor": time.process_time,  # of all threads
}
TORCH = ("torch", "torch_geometric")  # libraries whose arithmetic is PyTorch's


def start(name: str, peer: str, threads: int, clock: str) -> tuple[dict[str, Any], Session]:
    """Import, set up, and take the first steps."""
    now = CLOCKS[clock]
    workload = find(name)
    began = time.perf_counter()
    for module in LIBRARIES[library(peer)]:
        importlib.import_module(module)
    import_time = time.perf_counter() - began
    import_memory = peak_memory()
    limit_threads(library(peer), threads)
    flush_subnormals(library(peer))
    began = now()
    session = workload.peers[peer]()
    built = now()
    losses = [next(session.losses)]
    first = now() - built
    losses += islice(session.losses, workload.checks - 1)
    session.step()  # compiles, where steps are taken many at once
    session.wait()
    report = {
        "import": import_time,
        "import_memory": import_memory,
        "setup": built - began,
        "first": first,
        "losses": losses,
        "version": version(library(peer)),
    }
    return report, session


def engine(name: str) -> Any:
    """The module that computes for a library."""
    return sys.modules.get("torch" if name in TORCH else name)


def limit_threads(name: str, threads: int) -> None:
    """Tell a library how many threads to use; the environment has told the others."""
    module = engine(name)
    if name in TORCH:
        module.set_num_threads(threads)
        module.set_num_interop_threads(1)
    elif name == "retrograd" and hasattr(module, "num_threads"):
        module.num_threads(threads)


def flush_subnormals(name: str) -> None:
    """Have numbers that are too small to be normal count as zero where a library leaves the choice:
    JAX leaves none, and they come up in workloads that are trained for long."""
    module = engine(name)
    if name in TORCH:
        module.set_flush_denormal(True)
    elif name == "retrograd":
        module.flush_subnormals()


def version(name: str) -> str:
    if name == "python":
        return sys.version.split()[0]
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed as a package"


def measure(session: Session, seconds: float, clock: str) -> dict[str, Any]:
    """Steps for so many seconds, at least one; waits for the last before it looks at the clock."""
    step, wait = session.step, session.wait
    wait()
    calls, chunk = 0, 1
    work = time.process_time()
    began = time.perf_counter()
    while True:
        for _ in range(chunk):
            step()
        calls += chunk
        passed = time.perf_counter() - began
        if passed >= seconds:
            break
        # Look at the clock about a hundred times, however short a step is.
        chunk = max(1, int(calls * seconds / 100 / passed))
    wait()
    passed, work = time.perf_counter() - began, time.process_time() - work
    return {
        "time": (passed if clock == "wall" else work) / calls / session.scale,
        "calls": calls,
        "wall": passed,
        "cpu": work,
        "peak": peak_memory(),
    }


def peak_memory() -> int:
    """The most memory that this process has held, in bytes.

    Not from `getrusage` where there is another way: on Linux its figure survives `exec`, so that it
    may be that of the process that started this one.
    """
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            lines = [line for line in file if line.startswith("VmHWM")]
        return int(lines[0].split()[1]) * 1024
    except (OSError, IndexError):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def answer(request: dict[str, Any], job: tuple[str, str, int], held: list[Session]) -> Any:
    """The answer to a request; `held` keeps the session between requests."""
    if request["do"] == "start":
        report, session = start(*job, request.get("clock", "wall"))
        held.append(session)
        return report
    return measure(held[0], request["seconds"], request.get("clock", "wall"))


def serve(requests: TextIO, answers: TextIO, job: tuple[str, str, int]) -> None:
    """Answer until there are no more requests, or one has failed."""
    held: list[Session] = []
    for line in requests:
        try:
            reply = answer(json.loads(line), job, held)
        except Unavailable as reason:
            reply = {"missing": str(reason)}
        except ModuleNotFoundError as error:
            reply = {"missing": f"{error.name} is not installed"}
        except Exception as error:
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {error}".strip().split("\n")[0]}
        print(json.dumps(reply), file=answers, flush=True)
        if "missing" in reply or "error" in reply:
            return


def main() -> None:
    name, peer, threads = sys.argv[1:]
    # What a library prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[-int(threads) :])
    serve(sys.stdin, answers, (name, peer, int(threads)))


if __name__ == "__main__":
    main()
