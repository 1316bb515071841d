"""Long native calls that Ctrl-C can end.

Python handles signals in its main thread, between two steps of the interpreter: never during a
native call. So the main thread has a helper make a long call, and waits where it can be
interrupted. If a handler raises while it waits, as the one of Ctrl-C does, the call is asked to
stop, by a number in memory that it looks at now and then, and the exception goes on once the call
has ended.
"""

from __future__ import annotations

import _thread
import ctypes
import threading
from collections.abc import Callable

from retrograd.tuning import TUNING


def interruptible(call: Callable[[], int], stop: int) -> int:
    """The result of `call()`, during which signals are handled.

    `stop` is the address of an aligned 8-byte word, which becomes 0 first, and 1 if the call is to
    end early. Whatever `call` needs to stay in memory it must hold itself.

    Costs a tenth of a millisecond, so it is for calls that take much longer. In other threads than
    the main one, which no signal ever interrupts, it is `call()`.
    """
    word = ctypes.c_int64.from_address(stop)
    word.value = 0
    if threading.current_thread() is not threading.main_thread():
        return call()
    task = _Task(call)
    alone = False
    try:
        try:
            _thread.start_new_thread(task.run, ())
        except RuntimeError:  # "can't start new thread"
            alone = task.begun.acquire(blocking=False)
        if not alone:
            task.wait()
    except BaseException:
        if not alone:
            _end(task, word)
        raise
    return call() if alone else task.result()


class _Task:
    """A call made by another thread. Locks and nothing else: an exception may come at any point,
    and must not leave it open whether the call is running."""

    def __init__(self, call: Callable[[], int]) -> None:
        self._call = call
        self._value = 0
        self._failure: BaseException | None = None
        self.begun = threading.Lock()  # taken by whoever comes first: helper, or who gives it up
        self._done = threading.Lock()
        self._done.acquire()

    def run(self) -> None:
        if not self.begun.acquire(blocking=False):
            return
        try:
            self._value = self._call()
        except BaseException as failure:  # for the thread that waits
            self._failure = failure
        finally:
            self._done.release()

    def wait(self) -> None:
        # With a timeout, because only a signal that the main thread itself was given wakes it.
        while not self._done.acquire(timeout=TUNING.signal_poll_s):
            pass

    def result(self) -> int:
        if self._failure is not None:
            raise self._failure
        return self._value


def _end(task: _Task, word: ctypes.c_int64) -> None:
    """Have the call stop, and wait until it has: it writes into memory that others will use.

    Further exceptions of handlers are dropped meanwhile; the first is on its way.
    """
    if task.begun.acquire(blocking=False):
        return  # it has not begun, and never will
    while True:
        try:
            word.value = 1
            task.wait()
            return
        except BaseException:  # Ctrl-C again
            continue
