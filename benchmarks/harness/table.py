"""Results as text."""

from __future__ import annotations

from benchmarks.harness.result import Outcome, Result
from benchmarks.harness.workload import library

HEADER = ("peer", "time", "to best", "target", "first step", "import", "peak MB", "loss")


def duration(seconds: float | None) -> str:
    """A time in the unit that suits it, to three digits.

    >>> duration(1.234e-4), duration(3.5), duration(4.1e-8), duration(None)
    ('123 us', '3.50 s', '41.0 ns', '')
    """
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if seconds >= size or unit == "ns":
            number = seconds / size
            digits = 2 if number < 10 else 1 if number < 100 else 0
            return f"{number:.{digits}f} {unit}"
    raise AssertionError


def megabytes(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:.0f}"


def ratio(number: float | None) -> str:
    """A ratio to three digits.

    >>> ratio(0.0421), ratio(12.34), ratio(None)
    ('0.042', '12.3', '')
    """
    if number is None:
        return ""
    return f"{number:.3f}" if number < 0.1 else f"{number:.2f}" if number < 10 else f"{number:.1f}"


def rows(result: Result) -> list[tuple[str, ...]]:
    """A row for each peer that could be measured, in the columns of `HEADER`."""
    wrong = result.disagreeing()
    distances = result.distances()
    found: list[tuple[str, ...]] = []
    for o in result.outcomes:
        if o.problem:
            continue
        distance = distances.get(o.peer)
        loss = "" if distance is None else f"{distance:.0e}"
        found.append(
            (
                o.peer,
                duration(o.time),
                ratio(result.ratio(o)),
                aim(result, o),
                duration(o.first),
                duration(o.import_time),
                megabytes(o.peak),
                f"{loss} DIFFERS" if o.peer in wrong else loss,
            )
        )
    return found


def aim(result: Result, outcome: Outcome) -> str:
    """The target, and how the time compares with it."""
    target = result.target(outcome)
    if target is None or outcome.time is None:
        return ""
    state = "met" if outcome.time <= target else f"x{outcome.time / target:.1f}"
    return f"{duration(target)}, {state}"


def claims(result: Result) -> list[str]:
    """What the project aims at beside other peers, and what it has."""
    return [
        f"{c.peer} is {ratio(gain)} times as fast as {c.against} ({ratio(least)} by the least "
        f"times); aimed at: {c.times:.0f}, {'met' if gain >= c.times else 'missed'}"
        for c, gain, least in result.gains()
    ]


def problems(result: Result) -> list[str]:
    """What could not be measured, and why."""
    found = []
    for o in result.outcomes:
        if o.problem:
            found.append(f"{o.peer}: {'' if o.missing else 'failed: '}{o.problem}")
    wrong = result.disagreeing()
    if wrong:
        found.append(
            f"the losses differ by more than {result.workload.tolerance:.0e}: {', '.join(wrong)}"
        )
        found += [f"  {o.peer}: {shortened(o.losses)}" for o in result.outcomes if o.losses]
    return found


def shortened(losses: list[float]) -> str:
    shown = [f"{loss:.6g}" for loss in losses]
    return " ".join(shown if len(shown) <= 6 else [*shown[:3], "...", *shown[-2:]])


def caption(result: Result) -> str:
    """The title, and the circumstances."""
    noise = "" if result.load is None else f"; other programs kept {result.load:.2f} cores busy"
    noise += f", the host {result.stolen:.2f}" if result.stolen else ""
    threads = f"{result.threads} thread{'s' if result.threads != 1 else ''}"
    time = "processor time" if result.clock == "processor" else "time"
    return f"{result.workload.title} ({time} per {result.workload.per}, {threads}{noise})"


def plain(result: Result) -> str:
    """A result for the terminal."""
    body = rows(result)
    lines = [f"{result.workload.name}  {caption(result)}"]
    if body:
        widths = [max(len(r[i]) for r in [HEADER, *body]) for i in range(len(HEADER))]
        for r in [HEADER, *body]:
            cells = [
                c.ljust(w) if i == 0 else c.rjust(w)
                for i, (c, w) in enumerate(zip(r, widths, strict=True))
            ]
            lines.append("  " + "  ".join(cells).rstrip())
    lines += [f"  {p}" for p in [*claims(result), *problems(result)]]
    return "\n".join(lines)


def markdown(result: Result) -> str:
    """A result for a document; retrograd's rows are bold where they are ahead of every peer."""
    lines = [caption(result) + ".", ""]
    body = rows(result)
    if body:
        lines += ["| " + " | ".join(HEADER) + " |", "|---" + "|---:" * (len(HEADER) - 1) + "|"]
        for r, o in zip(body, (o for o in result.outcomes if not o.problem), strict=True):
            number = result.ratio(o)
            ahead = library(o.peer) == "retrograd" and number is not None and number < 1
            cells = [f"**{c}**" if ahead and i < 3 else c for i, c in enumerate(r)]
            lines.append("| " + " | ".join(cells) + " |")
    notes = [*claims(result), *problems(result)]
    if notes:
        lines += ["", *(f"- {n.strip()}" for n in notes)]
    return "\n".join(lines)
