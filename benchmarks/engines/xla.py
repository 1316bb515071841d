"""Training steps on the `xla` backend beside the same models written in JAX by hand.

    python -m benchmarks.engines.xla                  # MLP, GPT, CNN, LSTM
    python -m benchmarks.engines.xla W4 --turns 20

Both run in one process and take turns of several steps; what counts is the least time of a turn, by
the clock and of the processor. The first step (tracing, compiling, running) is that of a process of
its own for each. Losses of the first steps are compared.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Any

from benchmarks.harness.workload import Session, Workload
from benchmarks.workloads import chargpt, cnn, mlp
from benchmarks.workloads.held_out import recurrent

WORKLOADS: dict[str, Workload] = {
    w.name: w for w in (mlp.WORKLOAD, chargpt.WORKLOAD, cnn.WORKLOAD, recurrent.WORKLOADS[0])
}
STEPS = 10  # in a turn
PEERS = ("jax", "xla")


def context(peer: str) -> AbstractContextManager[Any]:
    """Where the peer runs."""
    if peer == "jax":
        return nullcontext()
    import retrograd as rg

    return rg.backend("xla")


def session(workload: Workload, peer: str) -> Session:
    return workload.peers["jax" if peer == "jax" else "retrograd"]()


def timed(f: Callable[[], Any]) -> tuple[float, float]:
    """How long it takes by the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    f()
    return time.perf_counter() - clock, time.process_time() - processor


def first_step(name: str, peer: str) -> tuple[float, float]:
    """The first step, in this process; what is imported does not count."""
    import jax.numpy as jnp

    import retrograd  # noqa: F401

    jnp.zeros(1).block_until_ready()
    with context(peer):
        made = session(WORKLOADS[name], peer)

        def step() -> None:
            made.step()
            made.wait()

        return timed(step)


def in_process(name: str, peer: str) -> tuple[float, float]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.engines.xla", name, "--first", peer]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    clock, processor = map(float, done.stdout.split())
    return clock, processor


def steady(workload: Workload, turns: int) -> dict[str, tuple[float, float]]:
    """The least times of a step."""
    sessions, losses = {}, {}
    for peer in PEERS:
        with context(peer):
            losses[peer] = list(islice(session(workload, peer).losses, 3))
            sessions[peer] = session(workload, peer)
    for a, b in zip(*losses.values(), strict=True):
        assert abs(a - b) <= 2e-3 * abs(a), f"{workload.name}: the losses are {losses}"
    found: dict[str, list[tuple[float, float]]] = {peer: [] for peer in PEERS}
    for _ in range(turns):
        for peer, made in sessions.items():

            def turn(made: Session = made) -> None:
                for _ in range(STEPS):
                    made.step()
                made.wait()

            with context(peer):
                found[peer].append(timed(turn))
    return {
        peer: (min(c for c, _ in all_) / STEPS, min(p for _, p in all_) / STEPS)
        for peer, all_ in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(WORKLOADS))
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--first", choices=PEERS, help="only the first step, of this peer")
    options = parser.parse_args()
    if options.first:
        print(*first_step(options.names[0], options.first))
        return
    for name in options.names:
        workload = WORKLOADS[name]
        times = steady(workload, options.turns)
        first = {peer: min(in_process(name, peer) for _ in range(2)) for peer in PEERS}
        print(f"{workload.name}: {workload.title}")
        for what, of in (("step", times), ("first step", first)):
            (jc, jp), (xc, xp) = of["jax"], of["xla"]
            print(
                f"  {what:10}  jax {1e3 * jc:8.2f} ms ({1e3 * jp:8.2f} of the processor)   "
                f"xla {1e3 * xc:8.2f} ms ({1e3 * xp:8.2f})   {xc / jc:.2f} ({xp / jp:.2f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
