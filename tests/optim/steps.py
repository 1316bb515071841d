"""Steps of an optimizer from given gradients, in both forms."""

from typing import Any

import numpy as np

import retrograd as rg

START = np.array([1.0, -2.0, 0.5])
MATRIX = np.array([[1.0, -2.0], [0.5, 3.0], [0.2, 0.1]])
MATRICES = np.random.default_rng(1).normal(size=(4, 3, 2))
GRADIENTS = np.random.default_rng(0).normal(size=(4, 3))


def moved(kind: Any, gradients: Any = GRADIENTS, start: Any = START, **options: Any) -> Any:
    """The parameter after each step; the pure form gives the same bits."""
    p: Any = rg.tensor(start, requires_grad=True)
    opt, pure = kind([p], **options), kind(**options)
    q = rg.tensor(start)
    state, found = pure.init(q), []
    for g in gradients:
        p.grad = rg.tensor(g)
        opt.step()
        q, state = pure.update(q, rg.tensor(g), state)
        np.testing.assert_array_equal(p.numpy(), q.numpy())
        found.append(p.numpy().copy())
    return found
