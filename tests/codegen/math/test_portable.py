"""Portable functions: the bits that NumPy's correctly rounded operations give."""

import numpy as np
import pytest

from retrograd.ops.special import portable
from retrograd.ops.special.portable import NumPyPortableMath
from tests.codegen.math.edges import values


@pytest.mark.parametrize("name", ["log", "exp", "atan", "log_factorial"])
def test_bits_are_those_of_the_formula(name: str) -> None:
    """A product and a sum that were fused would differ in the last bit somewhere."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.random(400), np.geomspace(1e-300, 1e4, 200), [0.5, 1.0, 2.0**-53]])
    (y,) = values([f"portable_{name}"], x)
    with np.errstate(all="ignore"):
        right = getattr(portable, name)(NumPyPortableMath(), x)
    np.testing.assert_array_equal(y, right)
