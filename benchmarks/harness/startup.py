"""What is measured in fresh processes: importing a library, and its first step."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.harness.result import Outcome
from benchmarks.harness.workload import LIBRARIES, Target, Workload


@dataclass(frozen=True)
class Startup:
    """The first step of a workload in a fresh process, `of` None for the import alone. `warm`: a
    process before it has done the same, with the same cache directory."""

    name: str
    title: str
    of: Workload | None = None
    warm: bool = False
    targets: Sequence[Target] = ()

    @property
    def group(self) -> str:
        return self.name.split("-")[0]

    @property
    def peers(self) -> tuple[str, ...]:
        return tuple(LIBRARIES) if self.of is None else tuple(self.of.peers)

    @property
    def optional(self) -> frozenset[str]:
        return frozenset() if self.of is None else self.of.optional

    def as_workload(self) -> Workload:
        """What stands in a result."""
        per = "import" if self.of is None else "first step"
        floors = frozenset({"python", "numpy"}) if self.of is None else frozenset()
        return Workload(self.name, self.title, {}, per=per, targets=self.targets, floors=floors)


CODE = """
import {modules}
try:
    with open("/proc/self/status") as file:
        print([line.split()[1] for line in file if line.startswith("VmHWM")][0])
except OSError:
    import resource
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def import_library(outcome: Outcome) -> None:
    """The time of a process that imports a library and ends, and the memory it takes."""
    modules = ", ".join(LIBRARIES[outcome.peer]) or "sys"
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(modules=modules)], capture_output=True, text=True
    )
    passed = time.perf_counter() - began
    if done.returncode:
        outcome.problem = done.stderr.strip().splitlines()[-1]
        outcome.missing = "ModuleNotFoundError" in outcome.problem
        return
    outcome.times.append(passed)
    outcome.peak = int(done.stdout.split()[-1]) * 1024
