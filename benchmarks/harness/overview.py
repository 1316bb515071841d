"""Several workloads in one table, a row for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.harness.result import Outcome, Result
from benchmarks.harness.table import duration, megabytes, ratio
from benchmarks.harness.workload import library

HEADER = (
    "workload", "compiled", "eager", "best peer", "ratio", "eager ratio", "first step", "peak MB",
    "loss",
)  # fmt: skip


def lines(results: Sequence[Result]) -> list[str]:
    """A Markdown table. **Ratio**: time of the fastest compiled way to use retrograd, and of its
    eager one, over that of the best peer. **First step** and **peak** are of the three, **loss** is
    the largest distance of any."""
    rows = ["| " + " | ".join(HEADER) + " |", "|---" + "|---:" * (len(HEADER) - 1) + "|"]
    return rows + ["| " + " | ".join(row(r)) + " |" for r in results]


def row(result: Result) -> tuple[str, ...]:
    mine = [o for o in result.outcomes if library(o.peer) == "retrograd"]
    compiled = quickest(o for o in mine if "eager" not in o.peer)
    eager = quickest(o for o in mine if "eager" in o.peer)
    best = result.best()
    three = (compiled, eager, best)
    found = list(result.distances().values())
    loss = f"{max(found):.0e}" if len(found) > 1 else ""
    return (
        result.workload.name,
        shown(compiled, "retrograd"),
        shown(eager, "retrograd-eager"),
        shown(best),
        *(ratio(result.ratio(o)) if o else "" for o in three[:2]),
        "; ".join(duration(o.first) if o else "-" for o in three),
        "; ".join(megabytes(o.peak) if o else "-" for o in three),
        f"{loss} DIFFERS" if result.disagreeing() else loss,
    )


def quickest(outcomes: Iterable[Outcome]) -> Outcome | None:
    return min((o for o in outcomes if o.times), key=lambda o: o.time or 0.0, default=None)


def shown(outcome: Outcome | None, usual: str = "") -> str:
    """The time, and whose it is unless that goes without saying."""
    if outcome is None:
        return ""
    return duration(outcome.time) + ("" if outcome.peer == usual else f" ({outcome.peer})")
