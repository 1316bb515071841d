"""Extrapolated differences: how close, and what they say of kinks and poles."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ops.elementwise import abs, exp, floor, sqrt
from retrograd.verify.certification.differences import Directional, evidence, noise, ridders
from retrograd.verify.certification.subject import of_op
from retrograd.verify.rule_checks import placeholders
from tests.verify.certification.planted import RIGHT, planted

X = np.array([0.3, 1.7])


def subject(op, *arrays):
    return of_op(op, arrays, list(range(len(arrays))), placeholders(arrays))


@pytest.mark.parametrize("wide", [np.float64, np.longdouble])
@pytest.mark.parametrize(
    ("f", "slope"),
    [(np.exp, 1.0), (np.cos, 0.0), (lambda x: 1 / (0.1 + x), -100.0), (lambda x: x**9 + x, 1.0)],
)
def test_the_bound_holds(wide, f, slope):
    found = ridders(lambda h: f(wide(h)), 2.0**-5)
    assert np.abs(found.value - slope) <= 20 * found.error + 1e-13 * max(1.0, -slope)
    assert found.error < 1e-7


def test_steps_that_leave_the_domain_are_made_smaller():
    with np.errstate(all="ignore"):
        found = ridders(lambda h: np.log(0.01 + h), 2.0**-5)
    assert abs_close(found.value, 100.0, 1e-6)


def abs_close(a, b, tolerance):
    return -tolerance <= a - b <= tolerance


def test_a_pole_settles_nowhere():
    found = ridders(lambda h: np.sign(h) / np.sqrt(np.abs(h)), 2.0**-5)
    assert not found.error < 1e-3


def test_extended_precision_where_the_platform_has_it():
    whole = subject(exp, X)
    wide = np.finfo(np.longdouble).eps < np.finfo(np.float64).eps
    expected = np.longdouble if wide else np.float64
    assert Directional(whole, whole.scalar(0)).dtype is expected
    # A meaning that gives float64 whatever it is given is evaluated there.
    plain = subject(planted("plain", lambda x: np.float64(np.sin(x)), lambda g, y, x: g), X)
    assert Directional(plain, plain.scalar(0)).dtype is np.float64


def test_values_of_fewer_digits_are_noticed():
    def rounded(h):
        return np.float64(np.float32(np.exp(np.float64(h) * 3 + 0.1)))

    assert 1e-9 < noise(rounded, np.float64) < 1e-6
    assert noise(lambda h: np.exp(h * 3), np.float64) == 0
    assert noise(np.abs, np.float64) == 0


def test_a_kink_has_two_slopes():
    at = np.array([1.0, 0.0])
    found = evidence(subject(abs, at), 0, 1, "differences")
    assert found.status == "passed"
    whole = subject(abs, at)
    left, right = Directional(whole, whole.scalar(0)).sides(0, np.array([0.0, 1.0]))
    assert left.value == pytest.approx(-right.value)


def test_where_nothing_settles_nothing_is_claimed():
    found = evidence(subject(sqrt, np.array([0.0])), 0, 1, "differences")
    assert found.status == "inconclusive"
    assert evidence(subject(floor, X), 0, 1, "differences").status == "passed"


def test_orders_are_compared_with_the_order_below():
    for order in (1, 2, 3, 4):
        found = evidence(subject(RIGHT, X), 0, order, f"order {order}")
        assert found.status == "passed"
        assert (found.error or 0.0) < 1e-12
