"""Normal samples are the quantiles of the bits they are drawn from."""

import numpy as np
from scipy import special

from retrograd.ops.random.sampling import FORMULAS, NumPySampleMath, normal


def test_normal_inverts_the_distribution_function():
    key, m = np.array([3, 5], np.uint32), NumPySampleMath()
    for law, centred, tolerance in (
        ("normal", normal._centred64, 1e-14),
        ("normal32", normal._centred32, 1e-6),
    ):
        u = centred(m, key, (20000,)).astype(np.float64) + 0.5
        z = FORMULAS[law].draw(m, key, (20000,))
        np.testing.assert_allclose(z, special.ndtri(u), rtol=tolerance, atol=tolerance)
