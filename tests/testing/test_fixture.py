"""What the fixture `retrograd` has."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd.testing.fixture import Checks


def test_trees_are_compared() -> None:
    checks = Checks()
    assert checks.allclose((rg.ones(2), {"a": rg.ones(3)}), ([1.0, 1.0], {"a": np.ones(3)}))
    assert checks.allclose(rg.ones(2, dtype=rg.bfloat16), np.ones(2))
    assert checks.allclose(np.array([np.nan]), np.array([np.nan]))
    with pytest.raises(AssertionError, match=r"shape \(2,\), expected \(3,\)"):
        checks.allclose(rg.ones(2), np.ones(3))
    with pytest.raises(AssertionError, match=r"\['a'\]"):
        checks.allclose({"a": rg.ones(2)}, {"a": np.array([1.0, 1.1])})
    with pytest.raises(AssertionError):
        checks.allclose(np.float64(1 + 1e-5), np.float64(1))
    assert checks.allclose(np.float32(1 + 1e-6), np.float64(1))
    assert checks.allclose(1.1, 1.0, rtol=0.2)


def test_functions_are_those_of_the_package() -> None:
    checks = Checks()
    assert checks.gradcheck is rg.gradcheck
    assert checks.certify is rg.verify.certify
    assert checks.rules is rg.verify.rules
    with checks.backend("reference"):
        assert checks.gradcheck(rg.sin, np.array([1.0]))
