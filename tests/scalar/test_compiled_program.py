"""Programs of traced functions, and the leaves they work on."""

from typing import Any

import pytest

import retrograd as rg
from tests.scalar.with_jit import both


def test_leaves_are_leaves_outside_too(Value):
    """Their numbers live in arrays after the first call; nothing else is different."""
    w = Value(1.0, label="w")
    step = rg.jit(lambda x: _descend(w, x))
    step(2.0)
    assert (w.data, w.grad, w.label) == (0.6, 4.0, "w")
    y = w * w
    w.data = 5.0
    z = w * w
    y.backward()
    assert (y.data, z.data, w.grad) == (0.36, 25.0, pytest.approx(5.2))
    w.grad = 0.0
    assert repr(w) == "Value(data=5.0, grad=0.0, label='w')"
    step(2.0)
    assert (w.data, w.grad) == (3.0, 20.0)
    other = rg.jit(lambda: (w * 2).data)
    assert other() == 6.0


def _descend(w, x):
    y = w * w * x
    y.backward()
    w.data -= 0.1 * w.grad


def test_leaves_that_are_made_inside(Value):
    """Those that go with the call are new in each; those that somebody keeps are state."""

    def make(cls, jit):
        w = cls(2.0)
        kept: list[Any] = []

        @jit
        def f(c):
            if not kept:
                kept.append(cls(1.0))
            x, z = cls(0.5), cls(w.data * c)
            y = w * x * z * kept[0]
            y.backward()
            x.data = x.data + 1.0
            kept[0].data = kept[0].data * 0.5 + c
            return [x.grad, z.grad, x.data, z.data, y]

        def step(k):
            y = f(1.0 + k)
            y[-1].backward()
            return y

        return step, [w]

    both(Value, make)
