"""What old tapes hold on to without need.

A tape keeps the tapes that its rows read from, and those keep others. Where something crosses from
each tape to the next, say because a tape was full in the middle of an expression, they are a chain
that grows for ever, although nothing alive was computed from its far end. So when a chain has grown
by some measure, each of its tapes but the newest is asked which of its foreign rows the rows with
handles, and those that other tapes read, were computed from; it lets go of the others.
"""

from __future__ import annotations

from typing import Any

TAPE = 1 << 10  # what a tape counts, in rows, beside its rows
LEAST = 1 << 17  # rows of a chain that is looked through for the first time


def sources(tape: Any) -> set[Any]:
    """The tapes that a tape reads from."""
    return {source for source, _ in tape.foreign.values()}


def measure(tape: Any) -> None:
    """Note how much a tape that was closed keeps, and whether that is worth a look; under the
    lock."""
    behind = sources(tape)
    tape.burden = tape.size + TAPE + max([s.burden for s in behind], default=0)
    tape.patience = max([s.patience for s in behind], default=LEAST)
    if tape.burden > tape.patience:
        release(tape)


def release(newest: Any) -> None:
    """Let go of what no handle needs, in the tapes that one reads from."""
    tapes = [newest]
    known = {newest}
    for p in tapes:
        for source in sources(p):
            if source not in known:
                known.add(source)
                tapes.append(source)
    # To find handles can take a look at every object there is.
    held = newest.held(tapes[1:]) if len(tapes) > 1 else {}
    if held is None:
        return  # another thread is in the middle of something; next time
    for p in tapes[1:]:
        if p.foreign:
            needed = _needed(p, held.get(p, set()) | p.exported)
            p.drop([r for r in p.foreign if r not in needed])
    for p in sorted(tapes, key=lambda p: p.stamp):
        p.burden = p.size + TAPE + max([s.burden for s in sources(p)], default=0)
    newest.patience = 2 * newest.burden + LEAST


def _needed(tape: Any, rows: set[int]) -> set[int]:
    """The given rows that some rows were computed from. Gradients stay as they are."""
    if not rows:
        return set()
    tape.value(max(rows))
    with tape.keeping_gradients():
        tape.begin()
        for r in rows:
            tape.seed(r, 0.0)
        start = max(rows)
        for i in sorted(tape.customs, reverse=True):
            if i <= start and tape.back(start, i + 1):
                if tape.visited(i):
                    for r in tape.customs[i].rows:
                        tape.seed(r, 0.0)
                start = i - 1
        tape.back(start, 0)
        return {r for r, _ in tape.reached()}
