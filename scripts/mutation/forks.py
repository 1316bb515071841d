"""Work in forked children of a warm process, a few at a time."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, NamedTuple, TypeVar

T = TypeVar("T")
POLL = 0.002  # seconds between looks at the children
MEMORY = 4 << 30  # bytes that a child may add


class Outcome(NamedTuple):
    """What a child returned, and the signal it died of, 0 if none."""

    value: Any
    signal: int


def forked(
    tasks: Iterable[T], work: Callable[[T, Callable[[Any], None]], None], workers: int
) -> Iterator[tuple[T, Outcome]]:
    """Run `work(task, tell)` for each task in a child of its own; its outcome is what it told last.

    Values go through JSON. Outcomes come in the order in which the children end.
    """
    waiting = iter(tasks)
    running: dict[int, tuple[T, IO[bytes]]] = {}
    file: IO[bytes]
    is_over = False
    try:
        while not is_over or running:
            while not is_over and len(running) < workers:
                try:
                    task = next(waiting)
                except StopIteration:
                    is_over = True
                    break
                file = tempfile.TemporaryFile()  # noqa: SIM115 # closed when the child has ended
                running[_started(task, work, file)] = (task, file)
            for pid in list(running):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    task, file = running.pop(pid)
                    yield task, Outcome(_told(file), status & 0x7F)  # 0 where it ended by itself
                    break
            else:
                time.sleep(POLL)
    finally:  # an interrupt
        for pid, (_, file) in running.items():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            file.close()


def _started(task: T, work: Callable[[T, Callable[[Any], None]], None], file: IO[bytes]) -> int:
    with warnings.catch_warnings():  # of other threads: a child needs none of them
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python
        warnings.simplefilter("ignore", RuntimeWarning)  # of JAX, where something imported it
        pid = os.fork()
    if pid == 0:
        _child(task, work, file)
    return pid


def _told(file: IO[bytes]) -> Any:
    with file:
        file.seek(0)
        found = file.read()
    return json.loads(found) if found else None


def _child(task: T, work: Callable[[T, Callable[[Any], None]], None], file: IO[bytes]) -> None:
    code = 1
    try:
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (1, 2):
            os.dup2(quiet, stream)
        limit_memory()

        def tell(value: Any) -> None:
            os.ftruncate(file.fileno(), 0)
            os.pwrite(file.fileno(), json.dumps(value).encode(), 0)

        work(task, tell)
        code = 0
    finally:
        os._exit(code)


def limit_memory() -> None:
    """The process may take so much more memory than it has; on Linux only."""
    if sys.platform == "linux":
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))


def limit_time(seconds: float) -> None:
    """The process is killed after so much processor time, or thirty times as much by the clock."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 30 * seconds)
