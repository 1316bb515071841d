"""A compiled program that writes down how long each of its kernels took."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from retrograd.ir import Graph
from retrograd.runtime.backend import Array, bind
from retrograd.runtime.executable import Executable
from retrograd.schedule.planning.plan import KernelPlan


@dataclass(frozen=True)
class KernelTimes:
    """One call of a program: nanoseconds of each kernel of the plan."""

    plan: KernelPlan
    graph: Graph
    sizes: dict[str, int]
    times: list[float]


PROFILED = "profiled"  # the name of the backend; no choice of a user
RUNS: ContextVar[list[KernelTimes] | None] = ContextVar("runs", default=None)


class ProfiledProgram:
    """Runs a graph as native code that counts cycles; tells every call to `RUNS`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._program = Executable(graph, timed=True, simplify=True)
        self._plan = self._program.plan  # a program makes it anew each time it is asked

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        counted: Any = self._program.times
        counted[:] = 0
        start = time.perf_counter()
        results = self._program(arrays)
        passed = (time.perf_counter() - start) * 1e9
        runs = RUNS.get()
        if runs is not None:
            total = max(int(counted.sum()), 1)
            shares = [float(t) * passed / total for t in counted]
            runs.append(
                KernelTimes(self._plan, self.graph, bind(self.graph.inputs, arrays), shares)
            )
        return results
