"""Tapes of numbers: what they hold, and when they go."""

import gc
import sys
import weakref

import pytest

from retrograd.scalar import tape


@pytest.mark.slow
def test_a_deep_chain_is_freed_without_recursion(Value):
    limit = sys.getrecursionlimit()
    y = Value(1.0)
    for k in range(40_000):
        y = -y
        if k % 100 == 0:
            y.backward()  # a tape for each, and each reads from the one before
    assert y.data == 1.0
    del y
    assert sys.getrecursionlimit() == limit


@pytest.mark.slow
def test_what_a_loop_records_goes(Value):
    """Training, evaluating, and recording without ever looking."""
    w = Value(0.5)

    def training():
        loss = (w * 3 - 1) ** 2
        loss.backward()
        w.data -= 0.01 * w.grad
        w.grad = 0.0

    def evaluating():
        return sum(((w * k).tanh() for k in (0.1, 0.2, 0.3)), Value(0.0)).data

    def recording():
        return (w * 3 - 1) ** 2

    def shared(scale=w * 2):
        (scale * 3).backward()

    def tapes():
        gc.collect()
        return sum(type(x).__name__ == "Tape" for x in gc.get_objects())

    before = tapes()
    # A tape for each backward pass; without one, a tape takes many thousands of operations.
    for f, count in ((training, 500), (evaluating, 60_000), (recording, 60_000), (shared, 500)):
        for _ in range(count):
            f()
        assert tapes() <= before + 6, (f.__name__, tapes(), before)


def test_a_large_page_with_few_handles_is_closed(Value):
    x = Value(1.0)
    y = x
    for _ in range(70_000):
        y = -y
    first = x * 1
    assert first._tape is not None
    assert y._row < 70_000
    assert y.data == 1.0
    y.backward()
    assert x.grad == 1.0


def test_leaves_go_with_what_was_made_of_them(Value):
    x = type("Tracked", (Value,), {"__slots__": ("__weakref__",)})(1.0)
    gone = weakref.ref(x)
    y = x * 2
    y.backward()
    del x, y
    gc.collect()
    assert gone() is None


def test_a_row_that_was_taken_and_never_written(monkeypatch):
    """An interrupt between the two leaves a gap that nobody waits for."""
    monkeypatch.setattr(tape, "PATIENCE", 2)
    p = tape.ScalarTape()
    a = p.number(2.0)
    p.free += 1
    b = p.put(4, a, a)
    assert p.value(b) == 4.0
