"""What threads share: locks, tables, and attributes that change together.

Two things can happen to a thread anywhere: an exception of a signal's handler, and a fork by
another thread, after which the child has what the thread has done so far, and not the thread.

- *Locks* can all be taken again by who has them, and are taken by `with` alone, which CPython
  interrupts neither between taking a lock and being inside nor before giving it back. In a child of
  fork none is held but by the thread that forked. A fork waits for those that `lock` has made, so
  that nobody is compiling then; those of single objects (`own_lock`) are made free in the child.
- *Tables* are dicts. Unlike an `OrderedDict`, and unlike all that is written in Python, a dict is
  whole whenever a key's `__hash__` or `__eq__` raises. What goes through one goes through a copy.
- What has to change together is changed by one call of a function in C, `assign`.
"""

from __future__ import annotations

import functools
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

WAIT = 20.0  # seconds that a fork waits for threads that compile; longer, and it is done without

_LOCKS: list[tuple[int, Any]] = []  # by rank: who has one takes those of higher ranks only
_OWN: weakref.WeakSet[Any] = weakref.WeakSet()
_BEFORE: list[Callable[[], None]] = []
_AFTER: list[Callable[[], None]] = []
_CHILD: list[Callable[[], None]] = []


class _Forking(threading.local):
    def __init__(self) -> None:
        self.taken: list[Any] = []  # for the fork that is under way


_FORKING = _Forking()


def lock(rank: int, made: Any = None) -> Any:
    """A lock of the process, or one that somebody else has made. A fork waits for it."""
    made = made or threading.RLock()
    _LOCKS.append((rank, made))
    _LOCKS.sort(key=lambda entry: entry[0])
    return made


IMPORTING = lock(55)  # around imports inside functions: a child would wait for one half done


def own_lock() -> Any:
    """A lock of one object, of which there are few."""
    made = threading.RLock()
    _OWN.add(made)
    return made


def at_fork(
    before: Callable[[], None] | None = None,
    after: Callable[[], None] | None = None,
    in_child: Callable[[], None] | None = None,
) -> None:
    """Have functions called: before a fork and before any lock is taken for it; after it, in parent
    and child; in the child, first of all."""
    for f, functions in ((before, _BEFORE), (after, _AFTER), (in_child, _CHILD)):
        if f is not None:
            functions.append(f)


def free(held: Any) -> None:
    """In a child of fork: have a lock that a thread holds which is not there any more."""
    if not held._is_owned():
        held._at_fork_reinit()


def _before_fork() -> None:
    for f in list(_BEFORE):
        f()
    end = time.monotonic() + WAIT
    for _, one in list(_LOCKS):
        if one.acquire(timeout=max(end - time.monotonic(), 0.01)):
            _FORKING.taken.append(one)


def _after_fork() -> None:
    taken = _FORKING.taken
    while taken:
        taken.pop().release()
    for f in list(_AFTER):
        f()


def _in_child() -> None:
    for _, one in list(_LOCKS):
        free(one)
    for one in members(_OWN):
        free(one)
    for f in list(_CHILD):
        f()
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)


def contained(f: F) -> F:
    """What `f` sets in context variables ends with it, wherever an exception comes: a block that
    was interrupted on its way out has left nothing behind. Not for functions of the user's, which
    may set some of their own."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        return copy_context().run(f, *args, **kwargs)

    return call  # type: ignore[return-value]


def holding(locks: Sequence[Any], f: Callable[[], T]) -> T:
    """`f()`, with all of these locks, taken in this order. By `with`, some at a time, and not by an
    `ExitStack`, which an exception may interrupt between taking a lock and noting it."""
    if not locks:
        return f()
    taken: list[Any] = [*locks[:8], *[threading.RLock() for _ in range(8 - len(locks))]]
    a, b, c, d, e, g, h, i = taken
    with a, b, c, d, e, g, h, i:
        return holding(locks[8:], f)


def completed(f: Callable[[], None]) -> None:
    """Have something happen as a whole that may be done again from its start: an exception that
    comes from outside meanwhile, as that of Ctrl-C does, goes on when it is done."""
    try:
        f()
    except BaseException:
        f()
        raise


def members(found: weakref.WeakSet[T]) -> list[T]:
    """What is in a weak set. A loop over one fails where another thread adds something, or where
    something goes; a copy of its references is made at once."""
    references: set[Callable[[], T | None]] = found.data.copy()  # type: ignore[attr-defined]
    return [x for reference in references if (x := reference()) is not None]


def assign(changes: Iterable[tuple[Any, str, Any]]) -> None:
    """Set attributes of objects, which are slots or in a `__dict__`: all, or none.

    What they were is freed afterwards, as that may run code in Python.
    """
    listed = list(changes)
    kept = [getattr(x, name, None) for x, name, _ in listed]
    objects, names, values = zip(*listed, strict=True) if listed else ((), (), ())
    deque(map(setattr, objects, names, values), maxlen=0)
    del kept


def trim(table: dict[Any, Any], capacity: int) -> None:
    """Forget the oldest entries of a table that has more than so many, and some more, so that it is
    not gone through for each that is entered."""
    if len(table) > capacity:
        for key in list(table)[: len(table) - capacity + capacity // 8]:
            table.pop(key, None)


class Key:
    """A key of a table, whose hash is computed once: that of an operation takes a microsecond."""

    __slots__ = ("_hash", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._hash = hash(value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Key) and self.value == other.value)
