"""Differences in mpmath's numbers, with their bound."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.verify.certification.multiprecision import difference, evidence
from retrograd.verify.certification.subject import of_op
from retrograd.verify.rule_checks import placeholders
from tests.verify.certification.planted import RIGHT, X

mp = pytest.importorskip("mpmath").mp


def subject(meaning):
    return of_op(RIGHT, [X], [0], placeholders([X]), elementwise=True, meaning=meaning)


@pytest.mark.parametrize("by", [(0,), (1,), (0, 1), (0, 0), (0, 0, 1), (1, 1, 1)])
def test_the_bound_holds(by):
    a, b = (by.count(k) for k in (0, 1))
    with mp.workdps(60):
        x, y = mp.mpf("0.7"), mp.mpf("1.3")
        found = difference(mp, lambda x, y: mp.exp(2 * x) * mp.exp(3 * y), (x, y), by)
        right = 2**a * 3**b * mp.exp(2 * x + 3 * y)
        assert abs(found.value - right) <= found.error + mp.mpf(10) ** -25
        assert found.error < 1e-12


def test_a_rule_is_compared_to_fifteen_digits():
    for order in (1, 2, 3):
        found = evidence(subject(lambda x: x * mp.sin(x)), 0, order, f"order {order}")
        assert found.status == "passed"
        assert (found.error or 0.0) < 1e-14
    other = evidence(subject(lambda x: x * mp.sin(x) * (1 + mp.mpf(10) ** -8)), 0, 1, "differences")
    assert other.status == "failed"
    assert "times what it should be" in other.detail


def test_what_is_no_function_of_mpmaths_numbers_is_left_to_others():
    assert evidence(subject(lambda x: float(x) * np.sin(float(x))), 0, 1, "differences") is None
    assert evidence(subject(lambda x: x.no_such_thing), 0, 1, "differences") is None
    assert evidence(subject(None), 0, 1, "differences") is None
