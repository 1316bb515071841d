"""What NumPy computes of the portable functions has the bits of their formulas."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ops.special import portable

DRAWN = np.random.default_rng(0).integers(0, 2**64, 20000, dtype=np.uint64).view(np.float64)
POWERS = np.exp2(np.arange(-1074.0, 1024.0))
ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 2.0**-1022, 1.0, np.nextafter(1, 0)])
NORMAL = np.concatenate(
    [DRAWN[(DRAWN >= 2.0**-1022) & np.isfinite(DRAWN)], POWERS[POWERS >= 2.0**-1022]]
)
ALL = np.concatenate([DRAWN, POWERS, ODD])
WIDE = np.linspace(-750, 720, 99999)  # some of whose exponentials are subnormal
CASES = {
    "log": (portable.log, portable.log_of_arrays, (NORMAL, ALL)),
    "exp": (portable.exp, portable.exp_of_arrays, (np.linspace(-690, 690, 9999), WIDE, ALL)),
    "log_factorial": (
        portable.log_factorial, portable.log_factorial_of_arrays, (np.arange(500.0), POWERS),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_numpy_takes_a_shorter_way_to_the_same_bits(name):
    formula, shorter, arrays = CASES[name]
    with np.errstate(all="ignore"):
        for x in arrays:
            assert shorter(x).tobytes() == formula(portable.NumPyPortableMath(), x).tobytes()
            assert np.asarray(shorter(x[7])).tobytes() == shorter(x)[7].tobytes()
