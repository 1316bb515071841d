"""The thread pool, its Python half: a team of threads that run one program together.

The native half is `runtime/native/thread_pool.c`. A program is called on the caller's thread alone:
`i64 run(ptr block, i64 0, i64 threads, ptr team)`. What is to be shared it hands to

- `i64 rg_share(ptr team, ptr work, ptr argument, i64 threads)`, with the team and the threads that
  it was given: `i64 work(ptr argument, i64 thread, i64 threads, ptr team)` is called by the caller,
  as thread 0, and by those workers, from 1 to `threads` - 1, that come before it has returned
  there. It must return there when all there is to do has been done or begun by somebody, whoever
  came. When those who came have returned, the result is the largest (unsigned) of theirs, and what
  they wrote is seen by the caller.

So nobody waits for a thread that has not begun anything: on a busy machine, where threads may not
run for milliseconds, the others do its part. What a program computes must not depend on who did
what.

With one thread there is nothing to share, and `team` may be anything. There are at most as many as
were asked for; fewer where threads cannot be started, have not arrived yet, or where the team is
busy with the program of another Python thread.

Workers are Python threads, for the sake of portability, which enter native code once and stay
there, without the interpreter's lock: at first spinning, so that to share costs less than a
microsecond, and after `spin_s` asleep.
"""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.runtime.native import addresses, layout
from retrograd.runtime.native.os_functions import os_functions, parking
from retrograd.runtime.threads import MOST_THREADS, allowed_processors, placing, processors
from retrograd.shared import at_fork, lock, own_lock
from retrograd.tuning import TUNING

POOL_BYTES = layout.WORKERS + MOST_THREADS * layout.WORKER_BYTES

_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64,
    ctypes.c_void_p, ctypes.c_void_p,
)  # fmt: skip
_WORK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
_PAUSES = ctypes.CFUNCTYPE(None, ctypes.c_int64)
_RESET = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_FLUSH = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


class ThreadPool:
    """Worker threads and the memory they meet in. A process needs one: see `current_team`."""

    def __init__(self, how: str | None = None) -> None:
        code = addresses()
        self.symbols = {"rg_share": code["rg_share"]}
        self.launcher = code["rg_launch"]  # its address
        self._launch = _LAUNCH(self.launcher)
        self._work = _WORK(code["rg_worker"])
        self._native_reset = _RESET(code["rg_reset"])
        self.flush = _FLUSH(code["rg_flush"])
        self._os = os_functions(how or parking())
        self._memory = np.zeros(POOL_BYTES + layout.ALIGNMENT, np.uint8)
        self.address = -(-self._memory.ctypes.data // layout.ALIGNMENT) * layout.ALIGNMENT
        self._asked = 1  # threads that workers have been started for, the caller included
        self._pause = _seconds_per_pause(_PAUSES(code["rg_pauses"]))
        self._reset()
        at_fork(in_child=self._reset)

    def run(
        self, code: int, block: int, threads: int, pace: int | None = None, met: int | None = None
    ) -> int:
        """Run a program, given by its address, on up to so many threads; its result on thread 0.
        `pace` is the address of what is known of the times of its launches, by which it is run on
        one where that is quicker (`layout.PACE_WORDS`); `met` of the number of those that met
        subnormal numbers.

        May be called by several Python threads at once: one gets the team, the others run alone.
        """
        self.prepare(threads)
        return self._launch(self.address, code, block, threads, pace, met)

    @property
    def threads(self) -> int:
        """How many threads a launch can have by now, the caller's included."""
        return 1 + int(self.words(layout.ARRIVED)[0])

    def words(self, at: int, count: int = 1) -> Any:
        """Words of the memory they meet in, see `layout.py`."""
        return (ctypes.c_int64 * count).from_address(self.address + at)

    def prepare(self, threads: int) -> None:
        """Have workers for so many threads started; they arrive in a moment."""
        if threads > self._asked:
            self._hire(threads)

    def _hire(self, threads: int) -> None:
        """Start the workers that are missing, or as many as the system allows.

        They take their numbers themselves when they arrive, so an exception at any point in here
        cannot leave the team counting on somebody who never comes.
        """
        threads = min(threads, MOST_THREADS)
        with self._hiring:
            self.words(layout.ALLOWED, 16)[:] = _mask(allowed_processors())
            self.words(layout.PIN)[0] = placing()
            for number in range(self._asked, threads):
                # Not tried again where it fails: every call would pay for a refusal.
                self._asked = number + 1
                worker = threading.Thread(
                    target=_serve,
                    args=(self._work, self.address, self._memory),
                    name=f"retrograd-{number}",
                    daemon=True,
                )
                try:
                    worker.start()
                except (RuntimeError, MemoryError):  # what "can't start new thread" comes as
                    self._asked = threads
                    return

    def _reset(self) -> None:
        """A team without workers: at the beginning, and in a child of fork, which has no threads
        but the one that forked. Addresses stay what they are."""
        ctypes.memset(self.address, 0, layout.WORKERS + layout.WORKER_BYTES * self.threads)
        patience, haste = (
            max(1, round(t / self._pause)) for t in (TUNING.spin_s, TUNING.crowded_spin_s)
        )
        self.words(layout.PATIENCE, 3)[:] = [patience, haste, processors()]
        self.words(layout.CAPACITY)[0] = MOST_THREADS
        self.words(layout.OS, len(self._os))[:] = self._os
        self._native_reset(self.address)
        self._hiring = own_lock()
        self._asked = 1


def _serve(work: Any, address: int, memory: Any) -> None:
    """The life of a worker. Never returns, so what it was given is never freed, not even while the
    interpreter shuts down."""
    if hasattr(signal, "pthread_sigmask"):
        # Signals are for threads that can act on them. Those of faults stay, for faulthandler.
        faults = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - faults)
    work(address, threading.get_native_id())


def _mask(cpus: set[int]) -> list[int]:
    """1,024 bits, in words, of which those of the processors are set."""
    words = [sum(1 << cpu % 64 for cpu in cpus if cpu // 64 == k) for k in range(16)]
    return [w - (w >> 63 << 64) for w in words]  # the words are signed


def _seconds_per_pause(pauses: Callable[[int], None]) -> float:
    """Processors differ by a factor of ten."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        pauses(1000)
        times.append(time.perf_counter() - start)
    return max(min(times) / 1000, 1e-10)


_LOCK = lock(65)
_TEAM: ThreadPool | None = None


def current_team() -> ThreadPool:
    """The team of this process; the same object, at the same address, in children of fork."""
    global _TEAM
    with _LOCK:
        if _TEAM is None:
            _TEAM = ThreadPool()
        return _TEAM
