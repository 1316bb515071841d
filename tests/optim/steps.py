"""Steps of an optimizer from given gradients, in both forms."""

from typing import Any

import numpy as np

import retrograd as rg

START = np.array([1.0, -2.0, 0.5])
GRADIENTS = np.random.default_rng(0).normal(size=(4, 3))


def moved(kind: Any, **options: Any) -> Any:
    """The parameter after each step; the pure form gives the same bits."""
    p: Any = rg.tensor(START, requires_grad=True)
    opt, pure = kind([p], **options), kind(**options)
    q = rg.tensor(START)
    state, found = pure.init(q), []
    for g in GRADIENTS:
        p.grad = rg.tensor(g)
        opt.step()
        q, state = pure.update(q, rg.tensor(g), state)
        np.testing.assert_array_equal(p.numpy(), q.numpy())
        found.append(p.numpy().copy())
    return found
