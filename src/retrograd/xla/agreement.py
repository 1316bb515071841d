"""Processes that run one program together: that they do the same, and what is said where one ends.

What all have to do alike is told to process 0 through the key-value store of JAX's coordinator
before it is done: two processes that wait in different collectives would wait forever.
"""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.errors import DistributedError, DistributedTimeoutError, RetrogradError
from retrograd.files import unwritten
from retrograd.lazy_import import need

_NUMBERS = itertools.count()
POLL_S = 0.001  # between looks at a result that is awaited, at first
SHOWN = 160  # characters of what a process does
_LOST = ("gloo", "connection", "heartbeat", "unavailable", "deadline", "coordination", "aborted")


@dataclass
class AgreedRun:
    """What this process knows of those it runs with: its number, how many there are, and how many
    seconds they wait for each other."""

    index: int = 0
    count: int = 1
    limit_s: float = 300.0


RUN = AgreedRun()  # `initialize` fills it in


def joined(index: int, count: int, limit_s: float) -> None:
    """This process is one of several from here on."""
    RUN.index, RUN.count, RUN.limit_s = index, count, limit_s


def is_main() -> bool:
    """Whether this is process 0, or the only one."""
    return RUN.index == 0


def is_several() -> bool:
    """Whether there are other processes."""
    return RUN.count > 1


def one_writes() -> AbstractContextManager[None]:
    """A block in which process 0 writes files for all, as each of them would write the same."""
    return nullcontext() if is_main() else unwritten()


def any_of(yes: bool) -> bool:
    """Whether any of the processes says yes; all of them have to ask."""
    return yes if RUN.count == 1 else bool(_all_say(float(yes)).any())


def first_says(number: float) -> float:
    """The number that process 0 gives; all of them have to ask. What depends on the clock is
    decided so, since all have to do the same."""
    return number if RUN.count == 1 else float(_all_say(number)[0])


def _all_say(number: float) -> Any:
    return exchanged(np.array([number], np.float32)).reshape(-1)


def exchanged(array: Any) -> Any:
    """The arrays of all processes, `[processes, ...]`; each gives one of the same shape and dtype,
    of 32 bits."""
    gather = need("jax.experimental.multihost_utils", "several processes").process_allgather
    with collective(True):
        return np.asarray(gather(array)).reshape(RUN.count, *array.shape)


def awaited(result: Any) -> None:
    """Return when a `jax.Array` that processes compute together is there; `DistributedTimeoutError`
    where that takes longer than the limit, as one of them does not take part."""
    began, pause = time.monotonic(), POLL_S
    while not result.is_ready():
        if time.monotonic() - began > RUN.limit_s:
            raise DistributedTimeoutError(
                f"a program that {RUN.count} processes run together has not ended within "
                f"{RUN.limit_s:g} s: one of them hangs, or does something else. See the output of "
                "the others; give rg.distributed.initialize a longer timeout_s for long programs"
            )
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _state() -> Any:
    """JAX's record of the processes. It has no public name for the store (as of 0.10)."""
    return need("jax._src.distributed", "several processes").global_state


SAME_PROGRAM = (
    "all processes run the same program, on the same mesh, with arrays of the same shapes, dtypes "
    "and shardings"
)


def agree(what: str, content: str, remedy: str = SAME_PROGRAM) -> None:
    """Return where all processes come with the same `content`; no communication where there is one.

    `DistributedError`, in all of them, that says which process does something else, and the
    remedy; `DistributedTimeoutError` where one does not come within the limit of `initialize`.
    """
    if RUN.count == 1:
        return
    state = _state()
    key = f"retrograd/{next(_NUMBERS)}"
    mine = f"{hashlib.sha256(content.encode()).hexdigest()} {what[:SHOWN]}"
    if state.process_id == 0:
        verdict = _verdict(state, key, mine, remedy)
        state.client.key_value_set(f"{key}/verdict", verdict)
    else:
        state.client.key_value_set(f"{key}/{state.process_id}", mine)
        verdict = _awaited(state.client, f"{key}/verdict", 2 * RUN.limit_s, "process 0")
    if verdict != "same":
        raise (DistributedTimeoutError if "within" in verdict else DistributedError)(verdict)


def _verdict(state: Any, key: str, mine: str, remedy: str) -> str:
    """What process 0 finds: `same`, or what is wrong."""
    for i in range(1, state.num_processes):
        try:
            other = _awaited(state.client, f"{key}/{i}", RUN.limit_s, f"process {i}")
        except DistributedTimeoutError as error:
            return str(error)
        if other != mine:
            (a, does), (b, asks) = other.split(" ", 1), mine.split(" ", 1)
            same = " of the same name, but not the same" if does == asks and a != b else ""
            return f"process {i} {does}{same}, where process 0 {asks}; {remedy}"
    return "same"


def _awaited(client: Any, key: str, seconds: float, who: str) -> str:
    try:
        return str(client.blocking_key_value_get(key, int(seconds * 1000)))
    except Exception as error:  # of a class that is not public
        if "DEADLINE_EXCEEDED" not in str(error):
            raise lost(error) from error
        raise DistributedTimeoutError(
            f"{who} did not come within {seconds:g} s to where the others are; it may have ended, "
            "or do something else. See its own output"
        ) from None


def lost(error: Exception) -> DistributedError:
    """What to raise where a process has ended that the others need."""
    return DistributedError(
        f"a process that this one computes with has ended, or cannot be reached: {error!s:.300}. "
        "See the output of the others; start all of them again, from the last checkpoint"
    )


@contextmanager
def collective(is_multi_process: bool) -> Iterator[None]:
    """A block in which processes compute together: failures of the connection are
    `DistributedError`."""
    try:
        yield
    except RetrogradError:
        raise
    except (ValueError, RuntimeError) as error:  # JAX raises both for the same
        if not is_multi_process or not any(word in str(error).lower() for word in _LOST):
            raise
        raise lost(error) from error
