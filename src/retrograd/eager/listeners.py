"""Listeners: who is shown what is recorded. Tapes are, and the watch of `rg.debug`."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any

from retrograd.eager.modes import is_tracing, is_unseen, unseen
from retrograd.eager.program_cache import LOCK
from retrograd.ir import Node
from retrograd.runtime.backend import Array


class Listener:
    """What a listener is asked and told. One that has buffers of its own (`is_buffered`) records in
    them, and the buffers tell it what becomes of them; any other is shown nodes."""

    __slots__ = ("__weakref__",)

    @property
    def sees_all(self) -> bool:
        """Whether everything that is recorded here is shown to it."""
        return False

    @property
    def is_buffered(self) -> bool:
        """Whether it records in buffers of its own at the moment."""
        return False

    def record(self, result: Node) -> None:
        """A result that no buffer has seen."""

    def pass_over(self, result: Node) -> None:
        """A node was made just now that stands for something computed before: it is no result."""

    def holds(self, node: Node) -> bool:
        """Whether it has a node, and with it everything that this was computed from."""
        return False

    def buffer_for(self, handles: Sequence[Any], buffers: Sequence[Any]) -> Any:
        """Its buffer for an operation on handles, of which `buffers` belong to listeners; None
        where the operation has to be recorded on nodes, or is refused there."""
        return None

    def gradients_of_leaves(self, h: Any, seed: Array) -> list[tuple[Any, Array]] | None:
        """The gradients that `backward()` of a tensor in one of its buffers adds to leaves; None
        where they have to be found on nodes."""
        return None

    def differentiates(self, outputs: Sequence[Node], wrt: Sequence[Node]) -> None:
        """Gradients are about to be built of nodes, of functions that are traced, too."""


# Those that have nodes, or want them.
LISTENERS: tuple[weakref.ref[Listener], ...] = ()
# The one that is shown all that happens in a block.
BLOCK: ContextVar[Listener | None] = ContextVar("listener", default=None)


def block_listener() -> Listener | None:
    """The listener that is shown all that happens here, if a block says so."""
    return BLOCK.get()


def listening() -> list[Listener]:
    """Who is shown each result that no buffer has seen: those of `LISTENERS`, and that of the
    block. Nobody inside of functions that are traced, whose results have no value."""
    block = BLOCK.get()
    if (not LISTENERS and block is None) or is_tracing() or is_unseen():
        return []
    found = registered()
    return found if block is None or block in found else [*found, block]


def unlisted() -> AbstractContextManager[None]:
    """Inside the block nobody is shown anything: what is computed stands for many values, or is
    shown as part of a later result."""
    return unseen() if listening() else nullcontext()


def registered() -> list[Listener]:
    """Those of `LISTENERS` that are still there. Others, that could not be left out when they went
    because an exception came or a lock was held, are left out now: all else asks for this way only
    where there is somebody."""
    global LISTENERS
    found = [listener for listener in [ref() for ref in LISTENERS] if listener is not None]
    if len(found) < len(LISTENERS) and LOCK.acquire(blocking=False):
        LISTENERS = tuple([ref for ref in LISTENERS if ref() is not None])
        LOCK.release()
    return found


def sees_all() -> bool:
    """Whether somebody is shown everything that is recorded here."""
    return any(listener.sees_all for listener in listening())


def tell_gradient(outputs: Sequence[Node], wrt: Sequence[Node]) -> None:
    """Tell all listeners that gradients of nodes are about to be built."""
    if LISTENERS:
        for listener in registered():
            listener.differentiates(outputs, wrt)


def shown(node: Node) -> Node:
    """A result that no library function has returned, after the listeners have seen it."""
    for listener in listening():
        listener.record(node)
    return node


def is_held(node: Node) -> bool:
    """Whether a listener holds a node, and with it everything it was computed from."""
    return any(listener.holds(node) for listener in listening())


def add_listener(listener: Listener) -> None:
    """Show results to a listener for as long as it lives, once each. The tuple is replaced, never
    changed, so that other threads may be going through it."""
    global LISTENERS
    with LOCK:
        others = [ref for ref in LISTENERS if ref() not in (None, listener)]
        LISTENERS = (*others, weakref.ref(listener, _forget))


def drop_listener(listener: Listener) -> None:
    """Show nothing to a listener from now on, whoever may still hold it: a traceback, say."""
    global LISTENERS
    with LOCK:
        LISTENERS = tuple([ref for ref in LISTENERS if ref() not in (None, listener)])


def _forget(ref: weakref.ref[Any]) -> None:
    """A listener is gone. That may happen anywhere, so nobody is waited for; what is left of it
    here then is left out by whoever looks."""
    global LISTENERS
    if LOCK.acquire(blocking=False):
        LISTENERS = tuple([other for other in LISTENERS if other is not ref])
        LOCK.release()
