"""Products with logarithms: what zeros absorb, and differences of close numbers."""

import itertools

import mpmath
import numpy as np
import scipy.special

from tests.codegen.math.edges import around, assert_ulps, values

SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, 1e-300, np.inf, np.nan)


def test_zero_times_any_logarithm_is_zero_but_of_nan() -> None:
    """As SciPy has it."""
    x, y = np.array(list(itertools.product(SPECIAL, repeat=2))).T
    with np.errstate(all="ignore"):
        for name, found in zip(
            ("xlogy", "xlog1py", "rel_entr"), values(["xlogy", "xlog1py", "rel_entr"], x, y),
            strict=True,
        ):  # fmt: skip
            np.testing.assert_allclose(found, getattr(scipy.special, name)(x, y), 1e-14)


def test_entropy_of_no_probability() -> None:
    (y,) = values(["entr"], [0.0, -0.0, 1.0, -1e-300, np.inf, np.nan])
    np.testing.assert_array_equal(y, [0, 0, 0, -np.inf, -np.inf, np.nan])


def test_relative_entropy_of_close_numbers() -> None:
    """Where `log(x) - log(y)` would lose every digit, and where the formula changes."""
    x = np.r_[1 + 2.0 ** -np.arange(2, 52, 3), 2 - 1e-15, 2.0, 2 + 1e-15, 0.5]
    y = np.ones(x.size)
    (found,) = values(["rel_entr"], x, y)
    assert_ulps(found, lambda a, b: a * mpmath.log(a / b), 2.0, x, y)


def test_logit_near_a_half_and_at_its_ends() -> None:
    x = np.concatenate([around(0.5, 0.3, 0.65), [5e-324, 1 - 2.0**-53]])
    (y,) = values(["logit"], np.r_[x, 0.0, 1.0, -0.1, 1.1])
    assert_ulps(y[: x.size], lambda p: mpmath.log(p / (1 - p)), 2.0, x)
    np.testing.assert_array_equal(y[x.size :], [-np.inf, np.inf, np.nan, np.nan])
