"""sin, cos and tan where the quadrant changes, at huge angles, and their symmetries."""

import mpmath
import numpy as np
import pytest

from retrograd.ir import DType, float32, float64
from tests.codegen.math.edges import around, assert_ulps, values

NAMES = ["sin", "cos", "tan"]


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_between_quadrants(dtype: DType) -> None:
    """At odd multiples of pi/4 sin and cos change places."""
    x = around(*(np.arange(1, 20, 2) * (np.pi / 4)), dtype=dtype)
    for name, y, bound in zip(NAMES, values(NAMES, x, dtype=dtype), (1.7, 1.7, 3.6), strict=True):
        assert_ulps(y, getattr(mpmath, name), bound, x)


def test_symmetries_to_the_bit() -> None:
    x = np.concatenate([np.geomspace(1e-300, 1e300, 300), [0.0]])
    for name, y, z in zip(NAMES, values(NAMES, x), values(NAMES, -x), strict=True):
        assert (z if name == "cos" else -z).tobytes() == y.tobytes(), name


def test_small_angles_are_their_own_sine() -> None:
    x = np.array([5e-324, 2.3e-308, 1e-20, -1e-20, -0.0])
    sin, cos, tan = values(NAMES, x)
    assert sin.tobytes() == tan.tobytes() == x.tobytes()
    assert (cos == 1).all()
