"""Orders, choices and relaxed choices drawn."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg


@pytest.mark.slow
def test_shuffle_and_choice() -> None:
    g = rg.random.Generator(9)
    x = rg.arange(12.0).reshape((3, 4))
    y = g.shuffle(x, axis=1).numpy()
    assert sorted(y[0]) == [0, 1, 2, 3]
    assert (y[1] - y[0] == 4).all()
    orders = [tuple(g.shuffle(rg.arange(3)).tolist()) for _ in range(600)]
    assert all(60 < orders.count(o) < 145 for o in set(orders))
    assert len(set(orders)) == 6
    p = np.array([1.0, 3.0, 0.0, 4.0])
    drawn = g.choice(4, (8000,), p=p).numpy()
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 8000, p / 8, atol=0.02)
    assert sorted(g.choice(5, (5,), replace=False).tolist()) == [0, 1, 2, 3, 4]
    firsts = [g.choice(4, (2,), replace=False, p=p).tolist() for _ in range(500)]
    assert all(a != b and 2 not in (a, b) for a, b in firsts)
    assert g.choice(rg.ones((6, 2)), (3,)).shape == (3, 2)


def test_gumbel_softmax() -> None:
    p = np.array([0.2, 0.5, 0.3])
    logits = rg.asarray(np.broadcast_to(np.log(p), (20_000, 3)))
    y = rg.random.Generator(1).gumbel_softmax(logits, 0.7, hard=True).numpy()
    np.testing.assert_allclose(y.mean(0), p, atol=0.012)
    assert set(np.unique(y)) == {0.0, 1.0}
