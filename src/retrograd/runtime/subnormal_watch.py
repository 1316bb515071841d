"""Warns of programs that subnormal numbers slow down.

Native code counts the calls in which a program met any: the processor keeps that in a flag, so that
it costs two reads of a register. Most such programs lose nothing that matters, so before anything
is said a call is tried out, once as it is and once with these numbers flushed, on memory of its
own: results, and their bits, are those of the call itself. What is compared is the processor time
of one thread, which others on the machine hardly change.
"""

from __future__ import annotations

import ctypes
import math
import time
import warnings
from typing import Any

import numpy as np

from retrograd.errors import SubnormalWarning
from retrograd.ir.source import user_level
from retrograd.memory_limit import available_memory
from retrograd.runtime.call_frame import CallFrame
from retrograd.runtime.denormals import NEVER, flush_subnormals
from retrograd.runtime.interrupt import interruptible
from retrograd.runtime.threads import THREADS
from retrograd.tuning import TUNING

Shaped = Any  # a `SpecializedExecutable`, whose module imports this one


def look(shaped: Shaped, frame: CallFrame) -> None:
    """Try out the call that a frame is ready for, and warn if these numbers slow it down, and have
    cost as much time by now as is worth saying. If they do not slow it down, it is tried out again
    after twice as many calls; if they do, once they may have cost that time."""
    count = shaped.program.subnormals
    calls = count.calls
    count.wait(calls, NEVER)  # whatever happens meanwhile
    there = available_memory()
    if there is not None and 2 * shaped.peak > there:
        return
    exact, flushed = _tried_out(shaped, frame)
    if exact <= TUNING.subnormal_slowdown * flushed:
        count.wait(calls, 2 * calls)
    elif (enough := math.ceil(TUNING.subnormal_loss_s / (exact - flushed))) > calls:
        count.wait(calls, enough)
    else:
        _warn(shaped, calls, exact, flushed)


def _tried_out(shaped: Shaped, frame: CallFrame) -> tuple[float, float]:
    """Seconds that a call takes, and with subnormal numbers flushed."""
    trial = _Trial(shaped, frame)
    return trial.least(flush=False), trial.least(flush=True)


class _Trial:
    """A call on memory of its own: a frame, and the arrays that it writes to."""

    def __init__(self, shaped: Shaped, frame: CallFrame) -> None:
        self._program, count = shaped.program, len(shaped.inputs)
        token = THREADS.set(1)
        try:
            self._frame = shaped.fresh_frame()
        finally:
            THREADS.reset(token)
        made = [np.empty(shape, dtype) for dtype, shape in shaped.outputs]
        for array in (*made, self._frame.arena):
            array.reshape(-1).view(np.uint8).fill(
                0
            )  # the system gives memory when it is first written to
        block = self._frame.block
        block[:count] = frame.block[:count]
        block[count : count + len(made)] = [y.ctypes.data for y in made]
        self._copied = []  # results that overwrite an input: where that is
        for k, j in self._program.donated.items():
            block[j] = made[k].ctypes.data
            self._copied.append((made[k], int(frame.block[j])))
        self._kept = made

    def least(self, flush: bool) -> float:
        """The least seconds of several runs, one after the other: the first after another kind of
        run tends to what that took."""
        found: list[float] = []
        while len(found) < 2 or sum(found) < TUNING.subnormal_trial_s:
            found.append(self.seconds(flush))
        return min(found)

    def seconds(self, flush: bool) -> float:
        """Seconds that one thread computes."""
        passed: list[float] = []
        for array, source in self._copied:
            ctypes.memmove(array.ctypes.data, source, array.nbytes)

        def run() -> int:
            before = flush_subnormals(flush)
            try:
                start = time.thread_time()
                self._program.run_once(self._frame)
                passed.append(time.thread_time() - start)
            finally:
                flush_subnormals(before)
            return 0

        if self._frame.stop:
            interruptible(run, self._frame.stop)
        else:
            run()
        return passed[0]


def _warn(shaped: Shaped, calls: int, exact: float, flushed: float) -> None:
    graph = shaped.program.graph
    source = next((n.source for n in reversed(graph.body) if n.source), None)
    where = f" for {source}" if source else ""
    warnings.warn(
        f"subnormal numbers slow down the program{where}: it met some in {calls} calls, and one "
        f"takes {_ms(exact)} ms of a processor, {_ms(flushed)} if they are flushed to zero. "
        "That is `with rg.flush_subnormals():` around it; results then differ where numbers are "
        "too small to be normal, below 1.2e-38 in float32. It is said once for a program",
        SubnormalWarning,
        stacklevel=user_level(),
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g}"
