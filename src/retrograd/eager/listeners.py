"""Who is shown what is recorded: tapes."""

from __future__ import annotations

import weakref
from typing import Any

from retrograd.eager.modes import current_tape, is_tracing, is_unseen
from retrograd.eager.program_cache import LOCK
from retrograd.ir import Node

RECORDERS: tuple[weakref.ref[Any], ...] = ()


def recorders() -> list[Any]:
    """Who is shown each result that no page has seen: tapes that have nodes, and the one that
    records all that happens here. Not those inside of functions that are traced, which have no
    value."""
    block = current_tape()
    if (not RECORDERS and block is None) or is_tracing() or is_unseen():
        return []
    found = alive()
    return found if block is None or block in found else [*found, block]


def alive() -> list[Any]:
    """Those of `RECORDERS` that are still there."""
    return [tape for tape in [ref() for ref in RECORDERS] if tape is not None]


def sees_all() -> bool:
    """Whether somebody is shown everything that is recorded here."""
    return any(tape.sees_all for tape in recorders())


def shown(node: Node) -> Node:
    """A result that no library function has returned, after the tapes have seen it."""
    for tape in recorders():
        tape.record(node)
    return node


def on_tape(node: Node) -> bool:
    """Whether a tape holds a node, and with it everything it was computed from."""
    return any(tape.holds(node) for tape in recorders())


def add_recorder(tape: Any) -> None:
    """Show results to a tape for as long as it lives, once each. The tuple is replaced, never
    changed, so that other threads may be going through it."""
    global RECORDERS
    with LOCK:
        others = [ref for ref in RECORDERS if ref() not in (None, tape)]
        RECORDERS = (*others, weakref.ref(tape, _forget))


def drop_recorder(tape: Any) -> None:
    """Show nothing to a tape from now on, whoever may still hold it: a traceback, say."""
    global RECORDERS
    with LOCK:
        RECORDERS = tuple([ref for ref in RECORDERS if ref() not in (None, tape)])


def _forget(ref: weakref.ref[Any]) -> None:
    """A tape is gone. That may happen anywhere, so nobody is waited for; what is left of it here
    then is left out by whoever looks."""
    global RECORDERS
    if LOCK.acquire(blocking=False):
        RECORDERS = tuple([other for other in RECORDERS if other is not ref])
        LOCK.release()
