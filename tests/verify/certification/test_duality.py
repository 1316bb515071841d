"""Forward mode against reverse mode."""

from __future__ import annotations

import numpy as np

from retrograd.verify.certification.duality import evidence
from retrograd.verify.certification.subject import of_op
from retrograd.verify.rule_checks import placeholders
from tests.verify.certification.planted import RIGHT, Broken

A = np.arange(6.0).reshape(2, 3) / 7 - 0.3


def found(op, *arrays, orders=3):
    return evidence(of_op(op, arrays, [0], placeholders(arrays)), 0, orders)


def test_modes_agree_to_the_third_order():
    assert found(RIGHT, A).status == "passed"
    assert found(Broken((0,)), A).count == 3


def test_a_forward_rule_alone_wrong_is_caught():
    e = found(Broken((1,), "forward"), A, orders=1)
    assert e.status == "failed"
    assert "in forward mode" in e.detail
