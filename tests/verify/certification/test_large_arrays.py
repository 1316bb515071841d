"""Slopes at many elements are what is known of them."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.verify.certification import edge_cases
from retrograd.verify.certification.large_arrays import CASES, WRT, large


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_slopes_at_some_elements(name):
    found = large(name, ("reference", "llvm"), 70_001)
    assert found.status == "passed"
    assert found.count == 2 * 70_001


def test_each_case_is_that_of_its_input():
    assert {name: make(10).wrt for name, make in CASES.items()} == WRT


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_wrong_slope_is_found(name):
    right = CASES[name](5_000)
    slope = np.array(right.slope)
    slope[-1] += 1
    wrong = large(name, ("reference",), 5_000, right._replace(slope=slope))
    assert wrong.status == "failed"
    assert "of 5000 elements" in wrong.detail


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CASES)
def test_slopes_at_very_many_elements(name):
    assert large(name, ("llvm",), edge_cases.LARGE).status == "passed"
