"""Checks that are waited for where results are looked at: nothing that failed is lost."""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.tuning import TUNING
from retrograd.xla.pending_check import PendingCheck, unsettled

jax = pytest.importorskip("jax", reason="the extra xla is not installed")


class Failure:
    """The array of a program that has not ended until somebody waits for it."""

    def __init__(self, number: int, ready: bool = False) -> None:
        self.number, self.ready = number, ready

    def is_ready(self) -> bool:
        return self.ready

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self.ready = True
        return np.array([self.number, 0, 0], np.int64)


class Named:
    """A function whose checks are known by numbers."""

    has_host_calls = False

    def check(self, failure: Any) -> None:
        if failure[0]:
            raise rg.IndexRangeError(f"check {failure[0]}")


def pending(number: int, *before: PendingCheck, ready: bool = False) -> PendingCheck:
    return PendingCheck(Named(), Failure(number, ready), before)  # type: ignore[arg-type]


def test_what_failed_first_is_raised_each_time() -> None:
    last = pending(3, pending(0), pending(0, pending(2)))
    for _ in range(2):
        with pytest.raises(rg.IndexRangeError, match="check 2"):
            last.settle()


def test_what_is_known_is_not_waited_for() -> None:
    first = pending(0)
    last = pending(0, first)
    assert unsettled([last, None, last]) == [last]
    assert not last.is_settled()
    first.settle()
    last.settle()
    assert unsettled([last]) == []
    with pytest.raises(rg.IndexRangeError, match="check 1"):
        unsettled([pending(1, ready=True)])


def test_calls_do_not_run_ahead_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TUNING, "xla_checks_ahead", 4)
    last = pending(0)
    for _ in range(3):
        assert unsettled([last]) == [last]
        last = pending(0, last)
    assert unsettled([last]) == []
    assert last.is_settled()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_nobody_looked_at_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda info: told.append(info.exc_value))
    check = pending(7)
    del check
    gc.collect()
    assert [str(e) for e in told] == ["check 7"]


def step() -> Any:
    """A step of training that looks a row up."""

    def f(s: Any, i: Any) -> Any:
        return s + s[i].sum(), s.sum()

    return rg.jit(f, donate=("s",))


def test_a_step_whose_index_is_out_of_range() -> None:
    f, s = step(), rg.tensor([1.0, 2.0, 3.0])
    with rg.backend("xla"):
        s, _ = f(s, rg.tensor([0]))
        bad, total = f(s, rg.tensor([5]))
        for look in (total.item, bad.numpy, total.item, lambda: (total + 1).item()):
            with pytest.raises(rg.IndexRangeError, match=r"the index 5 on axis 0 of size 3"):
                look()
        with pytest.raises(rg.IndexRangeError, match=r"the index 5"):
            f(bad, rg.tensor([0]))
        s, total = f(rg.tensor([1.0, 2.0, 3.0]), rg.tensor([2]))
        assert s.tolist() == [4.0, 5.0, 6.0]
    assert total.item() == 6.0


def test_the_error_goes_through_programs_without_checks() -> None:
    f, twice = step(), rg.jit(lambda x, y: x * 2 + y)
    with rg.backend("xla"):
        s, _ = f(rg.tensor([1.0, 2.0]), rg.tensor([0]))
        s, total = f(s, rg.tensor([9]))
        with pytest.raises(rg.IndexRangeError, match=r"the index 9"):
            twice(s, total).numpy()


@pytest.mark.slow
def test_the_end_of_a_process_reports_it() -> None:
    program = (
        "import retrograd as rg\n"
        "f = rg.jit(lambda s, i: s[i], donate=('s',))\n"
        "with rg.backend('xla'):\n"
        "    y = f(rg.tensor([1.0, 2.0]), rg.tensor([7]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "the index 7 on axis 0" in done.stderr
