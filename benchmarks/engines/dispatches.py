"""Steps of W1 to W6 on the `wgpu` backend: dispatches per step, what the host takes for each, and
whether losses are those of native code; beside that the kernels that eager PyTorch launches.

A kernel of PyTorch is an operation of ATen that computes: views are none. Host time is processor
time of the calling thread, the least of several steps whose programs are compiled: to encode and
submit the commands, and for the whole step, with what `jit` does and with waiting for checks.

    python -m benchmarks.engines.dispatches [W1 W3 ...]
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import retrograd as rg
from benchmarks.harness.workload import Session
from benchmarks.workloads import chargpt, cnn, gcn, microgpt, mlp, moons

WORKLOADS = {"W1": microgpt, "W2": moons, "W3": mlp, "W4": chargpt, "W5": cnn, "W6": gcn}
LOSSES = 4  # that are compared
WARM = 20  # steps before, in which buffers find their places
STEPS = 6  # of which the least time counts
VIEWS = frozenset((
    "view", "_unsafe_view", "t", "transpose", "permute", "expand", "unsqueeze", "squeeze", "slice",
    "select", "detach", "alias", "as_strided", "split", "unbind", "lift_fresh", "_reshape_alias",
))  # fmt: skip


@contextmanager
def counted() -> Iterator[list[float]]:
    """How many dispatches are encoded here, and the seconds that it takes."""
    from retrograd.wgpu.run import CommandEncoder

    count: list[float] = [0, 0.0]
    own, again, submit = CommandEncoder.step, CommandEncoder.replay, CommandEncoder.submit

    def timed(f: Callable[..., None], self: Any, *args: Any) -> None:
        start = time.thread_time()
        f(self, *args)
        count[1] += time.thread_time() - start

    def step(self: Any, item: Any) -> None:
        count[0] += 1
        timed(own, self, item)

    def replay(self: Any, recorded: Any) -> None:
        count[0] += len(recorded)
        timed(again, self, recorded)

    def submitted(self: Any) -> None:
        timed(submit, self)

    CommandEncoder.step, CommandEncoder.replay, CommandEncoder.submit = step, replay, submitted  # type: ignore[method-assign]
    try:
        yield count
    finally:
        CommandEncoder.step, CommandEncoder.replay, CommandEncoder.submit = own, again, submit  # type: ignore[method-assign]


def losses(make: Callable[[], Session]) -> list[float]:
    return list(itertools.islice(make().losses, LOSSES))


def on_wgpu(make: Callable[[], Session]) -> tuple[int, float, float, list[float]]:
    """Dispatches of a step, seconds of the host for each to encode and in all, first losses."""
    with rg.backend("wgpu"):
        found = losses(make)
        session = make()
        for _ in range(WARM):
            session.step()
        session.wait()
        times = []
        for _ in range(STEPS):
            with counted() as count:
                start = time.thread_time()
                session.step()
                times.append((count[1], time.thread_time() - start))
            session.wait()
    encode, whole = (min(t) / max(count[0], 1) for t in zip(*times, strict=True))
    return int(count[0]), encode, whole, found


def kernels_of_torch(make: Callable[[], Session]) -> int:
    """The operations of a step of PyTorch that compute."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counting(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.count += func.overloadpacket.__name__ not in VIEWS
            return func(*args, **(kwargs or {}))

    session = make()
    session.step()
    with Counting() as mode:
        session.step()
    return mode.count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *WORKLOADS], default=[])
    print("      dispatches  us each to encode  in all  torch kernels  losses differ by at most")
    for name in parser.parse_args().names or WORKLOADS:
        module: Any = WORKLOADS[name]
        count, encode, whole, found = on_wgpu(module.with_retrograd)
        with rg.backend("llvm"):
            expected = losses(module.with_retrograd)
        apart = float(np.max(np.abs(np.subtract(found, expected)) / np.abs(expected)))
        kernels = kernels_of_torch(module.with_torch)
        own = f"{count:10}  {encode * 1e6:17.1f}  {whole * 1e6:6.1f}"
        print(f"{name}    {own}  {kernels:13}  {apart:.1e}", flush=True)


if __name__ == "__main__":
    main()
