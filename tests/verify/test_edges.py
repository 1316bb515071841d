"""The check of zeros and ties catches rules that are wrong there, and only there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrograd.ops.elementwise import FLOAT, Elementwise, abs, max, sign, zmul
from retrograd.verify.edges import check_edges, edge_points
from retrograd.verify.rule_checks import RuleError

X = np.array([0.0, -0.7, 0.0, 1.1])


def planted(name: str, reference: Any, *derivatives: Any) -> Elementwise:
    """An elementwise op that is not registered."""
    return Elementwise(name, reference, derivatives, FLOAT)


SQUARE = planted("right", np.square, lambda g, y, x: zmul(g, 2 * x))
# The gradient 2|x| sign(x) is right everywhere; its own derivative takes sign for a constant.
SQUARED_ABS = planted("squared", np.square, lambda g, y, x: zmul(g, 2 * abs(x) * sign(x)))
OUTSIDE = planted("outside", np.abs, lambda g, y, x: zmul(g, sign(x) + 2 * (1 - abs(sign(x)))))
WRONG_AT_ZERO = planted("zero", np.sin, lambda g, y, x: zmul(g, np.pi * abs(sign(x)) * 0 + 0 * x))


def test_a_right_rule_passes_to_second_order() -> None:
    assert check_edges(SQUARE, [X], [0], 1) > 0
    assert check_edges(SQUARE, [X], [0], 2) > 0


def test_a_second_derivative_lost_at_zero_is_caught() -> None:
    assert check_edges(SQUARED_ABS, [X], [0], 1) > 0
    with pytest.raises(RuleError, match="order 2 derivative of squared"):
        check_edges(SQUARED_ABS, [X], [0], 2)


def test_a_number_outside_of_a_kink_is_caught() -> None:
    assert check_edges(abs, [X], [0], 1) > 0
    with pytest.raises(RuleError, match="order 1 derivative of outside"):
        check_edges(OUTSIDE, [X], [0], 1)


def test_a_gradient_lost_at_zero_is_caught() -> None:
    with pytest.raises(RuleError, match="order 1 derivative of zero"):
        check_edges(WRONG_AT_ZERO, [np.zeros(3)], [0], 1)


def test_points_have_zeros_and_ties() -> None:
    points = dict(edge_points([X + 1, X + 2], [0, 1]))
    assert list(points) == ["zeros in input 0", "zeros in input 1", "equal elements"]
    np.testing.assert_array_equal(points["zeros in input 0"][0], [0.0, 0.30000000000000004, 0, 2.1])
    np.testing.assert_array_equal(points["equal elements"][1], [1.0] * 4)
    assert check_edges(max, points["equal elements"], [0, 1], 1) > 0
