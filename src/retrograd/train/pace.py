"""How many steps to do in a call, and with how many threads, from how long calls took."""

from __future__ import annotations

from contextlib import AbstractContextManager

import retrograd as rg

LONGEST_CALL = 0.1  # seconds: so long a bar stands still, and Ctrl-C waits
MEASURED_CALL = 0.002  # seconds: calls that take less do not tell threads apart
LARGE_STEP = 0.01  # seconds: steps that take more are for all threads
TRIALS = 3  # calls with each number of threads


class Pace:
    """Calls take about 0.1 s; the first is of one step, since it compiles. Small steps are done
    with one thread or all, whichever took less time for a step in three calls: sharing what is
    brief costs more than it saves. No bits depend on either.

    >>> pace = Pace()
    >>> with pace.threads():
    ...     pass  # a call
    >>> pace.took(1, 0.001)
    >>> pace.steps
    8
    """

    def __init__(self) -> None:
        self.steps = 1  # to do in the next call
        self._calls = 0
        self._times: dict[int, list[float]] = {rg.num_threads(): [], 1: []}
        self._chosen = rg.num_threads()

    def threads(self) -> AbstractContextManager[object]:
        """The number of threads of the next call."""
        return rg.num_threads(self._chosen)

    def took(self, steps: int, seconds: float) -> None:
        """A call of so many steps has ended."""
        fitting = int(steps * LONGEST_CALL / max(seconds, 1e-9))
        self.steps = max(1, min(8 * self.steps, fitting))
        self._calls += 1
        if self._calls > 1 and len(self._times) > 1:
            self._compare(seconds, seconds / steps)

    def _compare(self, seconds: float, each: float) -> None:
        if each > LARGE_STEP:
            self._times, self._chosen = {}, max(self._times)
        elif seconds > MEASURED_CALL:
            self._times[self._chosen].append(each)
            self._chosen = min(self._times, key=lambda n: len(self._times[n]))
            if all(len(found) == TRIALS for found in self._times.values()):
                self._chosen = min(self._times, key=lambda n: min(self._times[n]))
                self._times = {}
