"""Which way launches go: shared, or alone where that takes less time."""

import ctypes
import platform
import time

import numpy as np
import pytest

from retrograd.runtime.native import layout
from retrograd.runtime.thread_pool import ThreadPool
from tests.runtime.thread_programs import Programs

_PROGRAM = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)


class Spinning:
    """A program that takes so many microseconds on one thread, and on several; how it was run."""

    def __init__(self, team: ThreadPool, alone: float, shared: float) -> None:
        self.alone, self.shared = alone, shared
        self.threads: list[int] = []
        self._pace = np.zeros(layout.PACE_WORDS, np.int64)
        self._team = team
        self._code = _PROGRAM(self._run)

    def _run(self, frame: int, thread: int, threads: int, pool: int) -> int:
        self.threads.append(threads)
        end = time.perf_counter() + (self.alone if threads == 1 else self.shared) * 1e-6
        while time.perf_counter() < end:
            pass
        return 5

    def share_of_alone(self, launches: int) -> float:
        """That of the launches from here on."""
        address = ctypes.cast(self._code, ctypes.c_void_p).value or 0
        self.threads.clear()
        for _ in range(launches):
            assert self._team.run(address, 0, 2, self._pace.ctypes.data) == 5
        return self.threads.count(1) / launches


@pytest.fixture(scope="module")
def team() -> ThreadPool:
    made = Programs(ThreadPool())
    made.gather(2)
    return made.team


def test_launches_go_the_quicker_way_and_find_out_when_that_changes(team):
    program = Spinning(team, alone=30, shared=150)
    assert program.share_of_alone(16) == 0  # there was no trial yet
    program.share_of_alone(100)
    assert program.share_of_alone(300) > 0.8
    program.alone, program.shared = 150, 30
    program.share_of_alone(1000)
    assert program.share_of_alone(300) < 0.2


def test_trials_become_rare(team):
    program = Spinning(team, alone=100, shared=20)
    shares = [program.share_of_alone(n) for n in (100, 1000, 2000)]
    assert 0.2 > shares[0] > shares[1] > shares[2] > 0
    assert shares[2] < 0.015


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="cycles differ")
def test_of_long_launches_one_in_a_trial_is_alone(team):
    program = Spinning(team, alone=25_000, shared=20_000)
    assert program.share_of_alone(25) == 1 / 25
