"""What a run found."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.harness.workload import Claim, Workload, library


@dataclass
class Outcome:
    """What one peer did on one workload; times in seconds, memory in bytes."""

    peer: str
    times: list[float] = field(default_factory=list)  # of each round
    wall: float = 0.0  # spent on them
    first: float | None = None
    setup: float | None = None
    import_time: float | None = None
    import_memory: int | None = None
    peak: int | None = None
    losses: list[float] = field(default_factory=list)
    version: str = ""
    problem: str = ""  # why there is no time
    missing: bool = False  # the problem is that there is no such thing here

    @property
    def time(self) -> float | None:
        return statistics.median(self.times) if self.times else None


@dataclass
class Result:
    """A workload and what every peer did on it."""

    workload: Workload
    outcomes: list[Outcome]
    threads: int
    load: float | None  # cores that other programs kept busy meanwhile
    stolen: float | None = None  # cores that the host of a virtual machine had for others
    clock: str = "wall"  # what times are of, see `Options`

    def of(self, peer: str) -> Outcome | None:
        return next((o for o in self.outcomes if o.peer == peer), None)

    def best(self) -> Outcome | None:
        """The fastest outcome that is not retrograd's."""
        out = {"retrograd", *self.workload.floors}
        others = [o for o in self.outcomes if o.times and library(o.peer) not in out]
        return min(others, key=lambda o: o.time or 0.0, default=None)

    def ratio(self, outcome: Outcome) -> float | None:
        """The time of an outcome over that of the best peer."""
        best = self.best()
        if best is None or not best.time or outcome.time is None:
            return None
        return outcome.time / best.time

    def target(self, outcome: Outcome) -> float | None:
        """The time that an outcome is to reach here, in seconds."""
        for target in self.workload.targets:
            against = self.of(target.against)
            if target.peer == outcome.peer and against is not None and against.time:
                return target.ratio * against.time
        return None

    def gains(self) -> list[tuple[Claim, float, float]]:
        """The claims of the workload, and how many times as fast the peer is: by medians, and by
        the least times of all rounds. Claims on what was not measured are left out."""
        found = []
        for claim in self.workload.claims:
            mine, other = (self.of(p) for p in (claim.peer, claim.against))
            if mine and other and mine.time and other.time:
                gain = other.time / mine.time
                found.append((claim, gain, min(other.times) / min(mine.times)))
        return found

    def distances(self) -> dict[str, float]:
        """How far the losses of each peer are from those of the others: see `distances`."""
        unlike = self.workload.unlike
        return distances(
            {o.peer: o.losses for o in self.outcomes if o.losses and o.peer not in unlike}
        )

    def disagreeing(self) -> list[str]:
        """The peers whose losses are not those of the others."""
        return [p for p, d in self.distances().items() if not d <= self.workload.tolerance]

    def failed(self) -> bool:
        """Whether losses disagree, or retrograd could not do what it says it can."""
        broken = [o for o in self.outcomes if o.problem and not o.missing]
        return bool(self.disagreeing()) or any(library(o.peer) == "retrograd" for o in broken)

    def as_json(self) -> dict[str, Any]:
        rows = []
        for o in self.outcomes:
            row = {**asdict(o), "time": o.time, "ratio": self.ratio(o), "target": self.target(o)}
            rows.append({**row, "distance": self.distances().get(o.peer)})
        return {
            "workload": self.workload.name,
            "title": self.workload.title,
            "per": self.workload.per,
            "threads": self.threads,
            "clock": self.clock,
            "other_load": self.load,
            "tolerance": self.workload.tolerance,
            "outcomes": rows,
            "claims": [{**asdict(c), "found": g, "least": m} for c, g, m in self.gains()],
        }


def distances(losses: dict[str, Sequence[float]] | dict[str, list[float]]) -> dict[str, float]:
    """For each peer the largest distance of a loss to the median of that step, relative to the
    median or to 1, whichever is larger; NaN is infinitely far from everything.

    Peers may stop early: each step is compared among those that have it.

    >>> distances({"a": [1.0, 2.0], "b": [1.0, 2.0], "c": [1.0, 2.5]})
    {'a': 0.0, 'b': 0.0, 'c': 0.25}
    """
    found = dict.fromkeys(losses, 0.0)
    for step in range(max(map(len, losses.values()), default=0)):
        here = {p: values[step] for p, values in losses.items() if len(values) > step}
        finite = [v for v in here.values() if v == v]
        middle = statistics.median(finite) if finite else 0.0
        for peer, value in here.items():
            far = abs(value - middle) / max(1.0, abs(middle)) if value == value else float("inf")
            found[peer] = max(found[peer], far)
    return found
