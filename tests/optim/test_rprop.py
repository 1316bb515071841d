"""Rprop by its rule in NumPy."""

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim
from tests.optim.steps import GRADIENTS, START, moved


def test_steps() -> None:
    shrink, grow, least, most = 0.5, 1.5, 0.08, 0.2
    p, before, size, expected = START, np.zeros(3), np.full(3, 0.1), []
    gradients = [*GRADIENTS, *GRADIENTS]
    for grad in gradients:
        g = grad.copy()
        for i in range(3):
            agrees = np.sign(g[i] * before[i])
            size[i] = np.clip(size[i] * {1: grow, -1: shrink, 0: 1}[agrees], least, most)
            g[i] = 0 if agrees < 0 else g[i]
        p, before = p - np.sign(g) * size, g
        expected.append(p)
    options = {"etas": (shrink, grow), "step_sizes": (least, most)}
    np.testing.assert_array_equal(moved(optim.Rprop, gradients, lr=0.1, **options), expected)


def test_refusals() -> None:
    with pytest.raises(rg.OptionError, match="etas"):
        optim.Rprop(etas=(1.2, 0.5))
    with pytest.raises(rg.OptionError, match="step_sizes"):
        optim.Rprop(step_sizes=(1.0, 0.5))
