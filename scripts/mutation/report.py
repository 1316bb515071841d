"""What became of the mutants, as text and as JSON."""

from __future__ import annotations

import collections
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from scripts.mutation.campaign import EQUIVALENT, IMPOSSIBLE, KILLED, SURVIVED, TIMED_OUT, Result
from scripts.mutation.mutants import Mutant

STATUSES = (KILLED, TIMED_OUT, EQUIVALENT, IMPOSSIBLE, SURVIVED)


def survivors(results: Iterable[Result]) -> list[Result]:
    return sorted(
        (r for r in results if r.status == SURVIVED),
        key=lambda r: (r.mutant.file, r.mutant.line, r.mutant.column),
    )


def counts(results: Iterable[Result]) -> dict[str, collections.Counter[str]]:
    """For each file how many of each status."""
    found: dict[str, collections.Counter[str]] = {}
    for r in results:
        found.setdefault(r.mutant.file, collections.Counter())[r.status] += 1
    return dict(sorted(found.items()))


def rate(count: collections.Counter[str]) -> float:
    """The share of the mutants, those known as equivalent apart, that survived."""
    tried = count.total() - count[EQUIVALENT] - count[IMPOSSIBLE]
    return count[SURVIVED] / tried if tried else 0.0


def text(results: Sequence[Result]) -> str:
    """A table by file, then the survivors."""
    lines = [f"{'file':44} {'mutants':>8}" + "".join(f"{s:>11}" for s in STATUSES) + "     rate"]
    total: collections.Counter[str] = collections.Counter()
    for file, count in [*counts(results).items(), ("all", total)]:
        row = "".join(f"{count[s]:>11}" for s in STATUSES)
        lines.append(f"{file:44} {count.total():>8}{row}  {rate(count):6.1%}")
        if count is not total:
            total.update(count)
    for r in survivors(results):
        reach = (
            f"{r.ran} of {r.reached_by} tests that reach it"
            if r.reached_by
            else "no test reaches it"
        )
        lines.append(f"survived ({reach}): {r.mutant}")
    return "\n".join(lines)


def as_json(results: Sequence[Result]) -> str:
    table: dict[str, Any] = {
        file: {**{s: count[s] for s in STATUSES}, "rate": round(rate(count), 4)}
        for file, count in counts(results).items()
    }
    mutants = [
        {
            **{name: getattr(r.mutant, name) for name in
               ("file", "function", "line", "column", "kind", "before", "after", "number")},
            "status": r.status, "killer": r.killer, "ran": r.ran, "reached_by": r.reached_by,
        }
        for r in sorted(results, key=lambda r: (r.mutant.file, r.mutant.line, r.mutant.column))
    ]  # fmt: skip
    return json.dumps({"files": table, "mutants": mutants}, indent=1)


def survived_before(path: Path, mutants: Iterable[Mutant]) -> list[Mutant]:
    """Those of the mutants that survived in a run of which this is the JSON."""
    found = _read(path)
    return [m for m in mutants if _status(found, m) == SURVIVED]


def settled_before(path: Path, mutants: Iterable[Mutant]) -> list[Result]:
    """What became of those of the mutants that a test noticed in a run of which this is the
    JSON."""
    found = _read(path)
    return [
        Result(m, _status(found, m), found[(*m.key, m.number)]["killer"])
        for m in mutants
        if _status(found, m) in (KILLED, TIMED_OUT, IMPOSSIBLE)
    ]


def _read(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    names = ("file", "function", "kind", "before", "after", "number")
    found = json.loads(path.read_text(encoding="utf-8"))["mutants"]
    return {tuple(m[name] for name in names): m for m in found}


def _status(found: dict[tuple[Any, ...], dict[str, Any]], mutant: Mutant) -> str:
    return str(found.get((*mutant.key, mutant.number), {}).get("status", ""))
