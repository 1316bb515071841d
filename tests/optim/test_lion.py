"""Lion by its formulas in NumPy."""

import numpy as np

from retrograd import optim
from tests.optim.steps import GRADIENTS, START, moved


def test_steps() -> None:
    lr, beta1, beta2, decay = 0.1, 0.7, 0.9, 0.2
    p, m, expected = START, np.zeros(3), []
    for g in GRADIENTS:
        p = p * (1 - lr * decay) - lr * np.sign(beta1 * m + (1 - beta1) * g)
        m = beta2 * m + (1 - beta2) * g
        expected.append(p)
    found = moved(optim.Lion, lr=lr, betas=(beta1, beta2), weight_decay=decay)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    uphill = moved(optim.Lion, -GRADIENTS, lr=lr, betas=(beta1, beta2), weight_decay=decay,
                   maximize=True)  # fmt: skip
    np.testing.assert_array_equal(uphill, found)
