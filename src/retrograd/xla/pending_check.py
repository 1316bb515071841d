"""Checks of programs that run while Python goes on: whoever looks at results is told what failed.

A program tells by an array whether its checks held (`GraphFunction`). To wait for that array is to
wait for the program. So results carry a `PendingCheck`, which is settled where they are fetched;
what is computed from them before carries it on. A check that fails is raised by each look at a
result, by the next program that is given one once it is known, and, where nobody ever looked, it is
reported as Python does with exceptions that nobody can catch, when the results are gone or the
process ends.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Iterable
from typing import Any
from weakref import WeakSet

import numpy as np

from retrograd.errors import BackendError, MemoryLimitError
from retrograd.lazy_import import need
from retrograd.shared import members
from retrograd.tuning import TUNING
from retrograd.xla.graph_function import GraphFunction


class PendingCheck:
    """What one call of a program says of its checks, when it has run: `failure` is the array that
    tells, `before` are the checks of what the call was given."""

    __slots__ = ("__weakref__", "_before", "_failed", "_failure", "_function", "_told")

    def __init__(
        self, function: GraphFunction, failure: Any, before: Iterable[PendingCheck] = ()
    ) -> None:
        self._function = function
        self._failure = failure  # None: it is known
        self._failed: list[int] | None = None  # what it said, if something failed
        self._before = list(before)
        self._told = False  # whether somebody asked
        _ALIVE.add(self)

    def settle(self) -> None:
        """Wait for the program, and raise what failed first, in it or before it."""
        self._told = True
        while self._before:
            self._before[-1].settle()
            self._before.pop()
        failure = self._failure
        if failure is not None:
            found = read(failure).tolist()
            self._failed = found if found[0] else None
            self._failure = None
            if self._function.has_host_calls:  # an exception of a function on the host is no number
                self._function.check(found)
        if self._failed is not None:
            self._function.check(self._failed)

    def is_settled(self) -> bool:
        """Whether all is known to be well, without waiting; raises what is known to have failed."""
        self._before = [c for c in self._before if not c.is_settled()]
        if self._before:
            return False
        if self._failure is None or self._failure.is_ready():
            self.settle()
        return self._failure is None

    def _ahead(self) -> int:
        """How many calls in a row are not settled."""
        return 1 + max([c._ahead() for c in self._before], default=0)

    def __del__(self) -> None:
        if not self._told:
            self.settle()


_ALIVE: WeakSet[PendingCheck] = WeakSet()


def unsettled(checks: Iterable[PendingCheck | None]) -> list[PendingCheck]:
    """Those of the checks that are still open; raises what is known to have failed. Programs do not
    run ahead of their checks forever: after some calls in a row the first is waited for."""
    found = []
    for check in dict.fromkeys(checks):
        if check is not None and not check.is_settled():
            if check._ahead() >= TUNING.xla_checks_ahead:
                check.settle()
            else:
                found.append(check)
    return found


def read(array: Any) -> Any:
    """The numbers of a `jax.Array`, in an array that is nobody else's."""
    try:
        return np.array(array)
    except need("jax", "the backend 'xla'").errors.JaxRuntimeError as error:
        raise plain(error) from None


def plain(error: Exception) -> Exception:
    """The error of the library for one of XLA."""
    text = str(error)
    if "RESOURCE_EXHAUSTED" in text or "ut of memory" in text:
        return MemoryLimitError(f"XLA has no memory for this program: {text}")
    return BackendError(f"XLA could not run this program: {text}")


@atexit.register
def _at_exit() -> None:
    """Report what failed and nobody looked at."""
    for check in members(_ALIVE):
        if not check._told:
            try:
                check.settle()
            except Exception as error:
                sys.excepthook(type(error), error, error.__traceback__)
