"""A program that subnormal numbers slow down is warned of, once; nothing else is."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.runtime import fast_call, subnormal_watch
from retrograd.runtime.denormals import flushes, tells
from retrograd.tuning import TUNING

pytestmark = pytest.mark.skipif(not tells(), reason="this processor does not tell")
TINY = np.float32(1e-40)  # subnormal


@pytest.fixture(params=[(2.0, 1.0), (1.2, 1.0)], ids=["dear", "cheap"])
def tried(request, monkeypatch) -> tuple[list[Any], bool]:
    """The trials that were made, whose times are made up; whether they say that flushing pays."""
    found: list[Any] = []
    true = subnormal_watch._tried_out

    def made_up(shaped: Any, frame: Any) -> tuple[float, float]:
        exact, flushed = true(shaped, frame)
        assert exact > 0
        assert flushed > 0
        found.append(shaped)
        times: tuple[float, float] = request.param
        return times

    monkeypatch.setattr(subnormal_watch, "_tried_out", made_up)
    monkeypatch.setattr(TUNING, "subnormal_calls", 4)
    return found, request.param[0] > 1.5


def calls(f: Callable[[], Any], n: int) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(n):
            f()
    return caught


def test_brief_calls_in_c(tried):
    trials, dear = tried
    f = rg.jit(lambda x: x * 3)
    x = rg.tensor(np.array([TINY, 1, 2], np.float32))
    caught = calls(lambda: f(x).numpy(), 40)
    assert len(trials) == (1 if dear else 4)  # after 4, 8, 16, 32 calls
    assert [c.category for c in caught] == [rg.SubnormalWarning] * dear
    if dear:
        text = str(caught[0].message)
        assert "in 4 calls" in text
        assert "rg.flush_subnormals()" in text
        assert "lambda x: x * 3" in text
        assert caught[0].filename == __file__


def test_what_costs_little_is_not_said_until_it_costs_more(monkeypatch):
    trials = []

    def made_up(shaped: Any, frame: Any) -> tuple[float, float]:
        trials.append(shaped)
        return 0.2, 0.1

    monkeypatch.setattr(subnormal_watch, "_tried_out", made_up)
    f = rg.jit(lambda x: x * 3)
    x = rg.tensor(np.array([TINY, 1, 2], np.float32))
    monkeypatch.setattr(TUNING, "subnormal_calls", 4)
    assert calls(lambda: f(x).numpy(), 9) == []
    assert len(calls(lambda: f(x).numpy(), 9)) == 1  # after 10 calls, a second was lost
    assert len(trials) == 2


def test_calls_without_c(tried, monkeypatch):
    monkeypatch.setattr(fast_call, "compiled", None)
    trials, dear = tried
    graph = rg.trace(lambda x: x * 3, rg.spec((3,), rg.float32))
    x = rg.tensor(np.array([TINY, 1, 2], np.float32))
    caught = calls(lambda: graph(x).numpy(), 20)
    assert len(trials) == (1 if dear else 3)
    assert len(caught) == dear


@pytest.mark.parametrize("threads", [1, 2])
def test_long_calls_and_what_only_a_worker_met(tried, threads):
    trials, dear = tried
    x = np.ones(1 << 19, np.float32)
    x[-1] = TINY
    f = rg.jit(lambda x: rg.exp(x * 3) * 2)
    with rg.num_threads(threads):
        caught = calls(lambda: f(x).numpy(), 8)
    assert trials
    assert len(caught) == dear


def test_donated_arguments_keep_their_values(tried):
    """A trial overwrites nothing of the call's."""
    trials, _ = tried
    step = rg.jit(lambda w, x: w * np.float32(0.5) + x, donate=["w"])
    for n in (3, 1 << 16):
        w, x = rg.tensor(np.full(n, TINY)), rg.tensor(np.full(n, TINY))
        expected = w.numpy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rg.SubnormalWarning)
            for _ in range(12):
                w = step(w, x)
                expected = expected * np.float32(0.5) + TINY
        np.testing.assert_array_equal(w.numpy(), expected)
    assert {s.inputs[0][1][0] for s in trials} == {3, 1 << 16}


def test_nothing_is_tried_where_there_are_none(tried):
    trials, _ = tried
    f = rg.jit(lambda x: rg.tanh(x) @ x)
    assert calls(lambda: f(rg.ones((4, 4))).numpy(), 20) == []
    with rg.flush_subnormals():
        assert calls(lambda: f(rg.tensor(np.full((4, 4), TINY))).numpy(), 20) == []
    tiny = np.full(4, TINY) + TINY  # which NumPy met, not the program
    assert calls(lambda: (f(rg.ones((4, 4))).numpy(), tiny * tiny), 20) == []
    assert trials == []


def test_an_error_that_a_warning_became_gives_back_what_was_donated(tried):
    _, dear = tried
    step = rg.jit(lambda w: w * 3, donate=["w"])
    kept = rg.tensor(np.array([TINY, 1], np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error", rg.SubnormalWarning)
        for _ in range(8):
            w = rg.tensor(np.array([TINY, 1], np.float32))
            try:
                step(w)
            except rg.SubnormalWarning:
                assert dear
                np.testing.assert_array_equal(w.numpy(), kept.numpy())


@pytest.mark.skipif(not flushes(), reason="this processor has no such mode")
def test_times_are_those_of_the_modes():
    """Products of subnormal numbers, on whatever processor: measured, and of the right order."""
    graph = rg.trace(lambda x, y: x @ y, rg.spec((64, 64), rg.float32), rg.spec((64, 64)))
    program = rg.runtime.executable.Executable(graph)
    arrays = [np.full((64, 64), TINY), np.ones((64, 64), np.float32)]
    expected = program(arrays)[0]
    shaped = program.last
    assert shaped is not None
    frame = shaped.frame()
    frame.block[:3] = [a.ctypes.data for a in (*arrays, expected)]
    assert program.run_once(frame) == 0
    exact, flushed = subnormal_watch._tried_out(shaped, frame)
    assert 0 < flushed < 1.2 * exact
    assert (expected > 0).all()
