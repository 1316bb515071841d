"""Tapes let go of what nothing alive was computed from, and of nothing else."""

import math
import random

import pytest

from retrograd.scalar import reclaim


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.sample(1)
def test_what_is_needed_stays(Value, monkeypatch, seed):
    """Values with their exact slopes by `x`, some forgotten, with backward passes in between; each
    closed tape looks through all before it."""
    released = []
    release = reclaim.release

    def counted(tape):
        released.append(tape)
        release(tape)
        tape.patience = 0

    monkeypatch.setattr(reclaim, "LEAST", 0)
    monkeypatch.setattr(reclaim, "release", counted)
    rng = random.Random(seed)
    x = Value(1.1)
    known = [(x, x.data, 1.0)]
    for k in range(80):
        (a, u, du), (b, v, dv) = rng.choice(known), rng.choice(known)
        y = a * b * 0.25 + a.sin()
        known.append((y, u * v * 0.25 + math.sin(u), (u * dv + du * v) * 0.25 + math.cos(u) * du))
        if k % 3 == 0:
            rng.choice(known)[0].backward()
        if len(known) > 8:
            del known[rng.randrange(1, len(known) - 1)]
    assert len(released) > 5
    for y, value, slope in known:
        x.grad = 0.0
        y.backward()
        assert y.data == pytest.approx(value, rel=1e-12)
        assert x.grad == pytest.approx(slope, rel=1e-10)


def test_a_gradient_that_was_there_stays(Value, monkeypatch):
    monkeypatch.setattr(reclaim, "LEAST", 0)
    x = Value(2.0)
    h = x * x
    y = h * 3
    y.backward()
    for _ in range(20):
        h = h + x * 0
        h.backward()
    assert (y.grad, y._prev[0].grad) == (1.0, 1.0)
    z = y * 2
    z.backward()
    assert y.grad == 2.0
