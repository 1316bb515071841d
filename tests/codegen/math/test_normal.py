"""The normal distribution: quantiles undo probabilities, far into the tails."""

import mpmath
import numpy as np

from tests.codegen.math.edges import around, assert_ulps, values


def test_quantiles_undo_probabilities() -> None:
    """Of each formula, and where these meet: at 0.075, and at exp(-25)."""
    x = np.concatenate([np.linspace(-37, -0.1, 60), around(-1.4395314709384563, -6.5)])
    (p,) = values(["ndtr"], x)
    (back,) = values(["ndtri"], p)
    np.testing.assert_allclose(back, x, rtol=4e-15, atol=1e-15)


def test_tails() -> None:
    x = np.array([-38.4, -37.6, -30.0, -8.0, -1e-300, 0.0, 8.0, 40.0])
    (p,) = values(["ndtr"], x)
    normal = p > 1e-307
    assert_ulps(p[normal], mpmath.ncdf, 4.0, x[normal])
    assert 0 < p[0] < 1e-320
    assert p[-1] == 1


def test_ends_of_the_ranges_of_quantiles() -> None:
    inf, nan = np.inf, np.nan
    for name, x, right in (
        ("ndtri", [0.0, 1.0, 0.5, -0.1, 1.1, nan], [-inf, inf, 0.0, nan, nan, nan]),
        ("erfinv", [-1.0, 1.0, -0.0, 1.5, -1.5, nan], [-inf, inf, -0.0, nan, nan, nan]),
        ("erfcinv", [0.0, 2.0, 1.0, -0.1, 2.1, nan], [inf, -inf, 0.0, nan, nan, nan]),
    ):
        np.testing.assert_array_equal(values([name], x)[0], right, err_msg=name)
    assert np.signbit(values(["erfinv"], [-0.0])[0][0])


def test_scaled_complement_where_its_formulas_meet() -> None:
    x = around(0.45, 0.47, 0.5, 27.0, 27.5, -26.0)
    (y,) = values(["erfcx"], np.r_[x, 1e9, 1e300, np.inf])
    assert_ulps(y[: x.size], lambda x: mpmath.exp(x * x) * mpmath.erfc(x), 4.0, x)
    np.testing.assert_allclose(y[x.size :], [1e-9 / np.sqrt(np.pi), 1e-300 / np.sqrt(np.pi), 0])
