"""How many threads programs may use: what the machine has, and what was asked for."""

from __future__ import annotations

import functools
import math
import operator
import os
from contextvars import ContextVar
from pathlib import Path

from retrograd.errors import OptionError

MOST_THREADS = 1024
VARIABLE = "RETROGRAD_NUM_THREADS"
PLACING = "RETROGRAD_PIN_THREADS"

# None: the default of this process. Others are set by `rg.num_threads`.
THREADS: ContextVar[int | None] = ContextVar("threads", default=None)


def threads_here() -> int:
    """The most threads that a program may use which is called here and now."""
    asked = THREADS.get()
    return default_threads() if asked is None else asked


@functools.cache
def default_threads() -> int:
    """As many as RETROGRAD_NUM_THREADS says, else as there are cores to run on.

    Hardware threads of one core share its arithmetic units, so they count once.
    """
    text = os.environ.get(VARIABLE, "").strip()
    if text:
        if not text.isdecimal():
            raise OptionError(f"the environment variable {VARIABLE} is {text!r}; make it a number")
        return checked(int(text), f"the environment variable {VARIABLE}")
    return min(_cores(allowed_processors()), processors())


def checked(n: object, what: str = "the number of threads") -> int:
    """`n` as a number of threads; `OptionError` if it cannot be one."""
    try:
        count = operator.index(n)  # type: ignore[arg-type]
    except TypeError:
        raise OptionError(f"{what} is {n!r}; it must be an integer") from None
    if isinstance(n, bool) or not 1 <= count <= MOST_THREADS:
        raise OptionError(f"{what} is {n!r}; it must be from 1 to {MOST_THREADS}")
    return count


@functools.cache
def processors() -> int:
    """How many threads can run at the same time: by affinity, and by the quota of a container."""
    return min(max(1, len(allowed_processors())), _quota() or MOST_THREADS)


def placing() -> bool:
    """Whether worker threads may be kept off the caller's processor: unless the environment
    variable RETROGRAD_PIN_THREADS is 0."""
    return os.environ.get(PLACING, "").strip() != "0"


def allowed_processors() -> set[int]:
    """The numbers of the processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _cores(cpus: set[int], root: Path = Path("/sys/devices/system/cpu")) -> int:
    """How many cores these processors belong to; each its own where the system does not say."""
    cores = set()
    for cpu in cpus:
        topology = root / f"cpu{cpu}" / "topology"
        cores.add(_read(topology / "thread_siblings_list") or str(cpu))
    return max(1, len(cores))


def _quota(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Processors that the container's share of time amounts to, rounded up; None if unlimited.

    Threads beyond it would be stopped for tens of milliseconds whenever the share is used up.
    """
    both = _read(root / "cpu.max").split()  # version 2: "max 100000" or "200000 100000"
    if not both:
        both = [_read(root / "cpu" / f"cpu.cfs_{name}_us") for name in ("quota", "period")]
    try:
        quota, period = map(int, both)
    except ValueError:
        return None
    return max(1, math.ceil(quota / period)) if quota > 0 and period > 0 else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeError):
        return ""
