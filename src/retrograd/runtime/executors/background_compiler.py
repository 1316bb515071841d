"""Compiling behind the scenes: programs that may come back get code while nobody waits for them.

What is typed at a prompt is interpreted, as its first result should not wait for a compiler. While
the next line is typed there is time, so a thread compiles what ran last. It begins when nothing was
interpreted for a while, as it would slow down what is. It ends when there is nothing left to do,
and there is none while the process forks. With the environment variable RETROGRAD_BACKGROUND=0
there is none at all.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Protocol

from retrograd.shared import at_fork
from retrograd.tuning import TUNING

VARIABLE = "RETROGRAD_BACKGROUND"


class Waiting(Protocol):
    """What can be compiled."""

    def compile(self) -> object: ...


class BackgroundCompiler:
    """The programs that wait, and the thread that compiles them while there are any; nothing of
    either unless `used`."""

    def __init__(self, used: bool = True) -> None:
        # Taken as itself: entering the condition is Python's, which can be interrupted inside.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._waiting: dict[weakref.ref[Waiting], None] = {}  # in the order in which they ran
        self._latest = -math.inf  # when something was interpreted
        self._thread: threading.Thread | None = None
        self._forking = False
        self._used = used

    def ran(self, program: Waiting) -> bool:
        """A program was interpreted, and may come back. Returns whether it waits to be compiled."""
        if not self._used:
            return False
        self._latest = max(self._latest, time.monotonic())
        with self._lock:
            name = weakref.ref(program)
            self._waiting.pop(name, None)
            self._waiting[name] = None
            while len(self._waiting) > TUNING.background_programs:
                del self._waiting[next(iter(self._waiting))]
            if self._thread is None and not self._forking:
                self._start()
            return name in self._waiting

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Nothing begins meanwhile: somebody waits for what runs, or is compiled, in the block."""
        self._latest = math.inf
        try:
            yield
        finally:
            self._latest = time.monotonic()

    def forget(self) -> None:
        """Compile none of what waits, unless it runs again."""
        with self._lock:
            self._waiting.clear()

    def finish(self) -> None:
        """Wait until nothing is left to compile; it begins at once."""
        self._latest = -math.inf
        while (thread := self._thread) is not None:
            thread.join()

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, name="retrograd-compiler")
        try:
            thread.start()
        except RuntimeError:  # no threads can be had, or the interpreter ends: callers will compile
            self._waiting.clear()
        else:
            self._thread = thread

    def _work(self) -> None:
        while (program := self._next()) is not None:
            with contextlib.suppress(Exception):  # who runs it will compile it, and be told
                program.compile()
            del program  # it need not live for what comes next

    def _next(self) -> Waiting | None:
        """What to compile now, waiting for its time; None ends the thread."""
        with self._lock:
            while self._waiting and not self._forking and threading.main_thread().is_alive():
                left = self._latest + TUNING.background_idle_s - time.monotonic()
                if left > 0:
                    self._changed.wait(min(left, TUNING.background_poll_s))
                elif (program := self._waiting.popitem()[0]()) is not None:
                    return program
            self._thread = None
            return None

    def before_fork(self) -> None:
        """End the thread, and let nobody start another one."""
        self._forking = True
        if (thread := self._thread) is not None:
            thread.join()
        self._lock.acquire()

    def after_fork(self) -> None:
        self._forking = False
        self._lock.release()


BEHIND = BackgroundCompiler(os.environ.get(VARIABLE) != "0")
at_fork(before=BEHIND.before_fork, after=BEHIND.after_fork)
