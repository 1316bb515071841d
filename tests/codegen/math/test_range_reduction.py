"""Angles reduced by multiples of pi/2, against mpmath with hundreds of digits."""

import mpmath
import numpy as np
import pytest

from retrograd.codegen.math.range_reduction import reduced
from retrograd.codegen.math.term import Term
from retrograd.ir import DType, float32, float64
from tests.codegen.math.edges import formulas


def rest(a: Term) -> Term:
    return reduced(a)[1]


def quadrant(a: Term) -> Term:
    return (reduced(a)[0] & 3).rounded()


def angles(dtype: DType) -> np.ndarray:
    """Of every size, close to multiples of pi/2, and on both sides of where the method changes."""
    rng = np.random.default_rng(0)
    top = np.finfo(dtype.dtype).maxexp
    every = np.ldexp(rng.uniform(1, 2, 300), rng.integers(-60, top, 300))
    multiples = rng.integers(1, 2**20, 100) * (np.pi / 2)
    limits = [2.0**17, 2.0**17 + 0.02, 2.0**30, 2.0**30 + 1e-6, 0.0, np.pi / 4]
    worst = [6381956970095103.0 * 2.0**797, np.finfo(float).max] if dtype is float64 else []
    x = np.concatenate([every, multiples, limits, worst]).astype(dtype.dtype)
    return x[np.isfinite(x)]


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_quadrant_and_rest(dtype: DType) -> None:
    a = angles(dtype)
    r, n = formulas([rest, quadrant], a, dtype=dtype)
    with mpmath.mp.workdps(400):
        for x, found, turns in zip(a, r, n, strict=True):
            whole = mpmath.nint(mpmath.mpf(float(x)) * 2 / mpmath.pi)
            right = mpmath.mpf(float(x)) - whole * mpmath.pi / 2
            if turns != whole % 4:  # halfway between two multiples either will do
                step = 1 if turns == (whole + 1) % 4 else -1
                assert turns == (whole + step) % 4, x
                right -= step * mpmath.pi / 2
            assert abs(right) < mpmath.pi / 4 * (1 + 1e-5), x
            error = abs(mpmath.mpf(float(found)) - right)
            assert error <= 1.5 * float(np.spacing(abs(found))), x


def test_an_infinite_angle_has_no_rest() -> None:
    (r,) = formulas([rest], [np.inf, np.inf, 1.0, 2e300])
    np.testing.assert_array_equal(np.isnan(r), [True, True, False, False])
