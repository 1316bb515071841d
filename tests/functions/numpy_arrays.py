"""Arrays, and the comparison of what is computed with them with NumPy."""

import numpy as np

rng = np.random.default_rng(0)
A = rng.normal(size=(3, 4)).astype(np.float32)
B = rng.normal(size=(4,)).astype(np.float32)
C = rng.normal(size=(2, 3, 4)).astype(np.float32)
I = rng.integers(-9, 9, (3, 4))  # noqa: E741
P = np.abs(A) + 0.1


def same(got, expected, rtol=2e-6):
    expected = np.asarray(expected)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.numpy(), expected, rtol=rtol, atol=1e-6)
