"""The complex step, where a function is analytic, and only there."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ops.elementwise import abs, cos, erf, sin, zmul
from retrograd.ops.matmul import DotGeneral
from retrograd.verify.certification.complex_step import evidence
from retrograd.verify.certification.subject import of_op
from retrograd.verify.rule_checks import placeholders
from tests.verify.certification.planted import planted

X = np.array([0.3, 1.7])


def found(op, *arrays, **more):
    return evidence(of_op(op, arrays, [0], placeholders(arrays), **more), 0)


def test_analytic_functions():
    assert found(sin, X).error < 1e-14
    product = DotGeneral((), (), (1,), (0,))
    assert found(product, np.ones((2, 3)), np.ones((3, 2))).status == "passed"


@pytest.mark.parametrize(
    ("op", "why"), [(erf, "does not take complex numbers"), (abs, "complex numbers")]
)
def test_others_are_left_out_and_say_why(op, why):
    e = found(op, X)
    assert e.status == "does not apply"
    assert why in e.detail


def test_a_real_part_is_not_analytic():
    part = planted("part", lambda x: np.real(x) + 0 * x, lambda g, y, x: g)
    assert "not analytic" in found(part, X).detail


def test_a_wrong_rule_is_caught():
    wrong = planted("wrong", np.sin, lambda g, y, x: zmul(g, cos(x)) * (1 + 1e-9))
    e = found(wrong, X)
    assert e.status == "failed"
    assert "by the complex step" in e.detail


def test_in_mpmaths_numbers():
    mp = pytest.importorskip("mpmath").mp
    assert "mpmath" in found(erf, X, elementwise=True, meaning=mp.erf).detail
    e = found(erf, X, elementwise=True, meaning=mp.erfc)
    assert e.status == "failed"
