"""Portable functions: the bits that NumPy's correctly rounded operations give."""

import numpy as np
import pytest

from retrograd.ops.special.portable import FORMULAS, NumPyPortableMath
from tests.codegen.math.edges import values


@pytest.mark.parametrize("name", FORMULAS)
def test_bits_are_those_of_the_formula(name: str) -> None:
    """A product and a sum that were fused would differ in the last bit somewhere."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.random(400), np.geomspace(1e-300, 1e4, 200), [0.5, 1.0, 2.0**-53]])
    (y,) = values([name], x)
    with np.errstate(all="ignore"):
        right = FORMULAS[name](NumPyPortableMath(), x)
    np.testing.assert_array_equal(y, right)
