"""Rules for planes: what `test_relaxation.py` does not say, how tight they are and where they end.

How near a plane comes is compared with dense samples, and with optima that are written out.
"""

import math

import numpy as np
import pytest

from retrograd.ir import TensorType, float64
from retrograd.ops import elementwise as el
from retrograd.ops.leaf import input_node
from retrograd.ops.reduce import LogSumExp, ReduceMax
from retrograd.verify.bound_propagation import relaxation as rx
from retrograd.verify.bound_propagation.interval import Interval
from retrograd.verify.bound_propagation.propagation import interval_of
from retrograd.verify.bound_propagation.relaxation_rules import (
    RELAXATIONS,
    Plane,
    Relaxed,
    cases,
    within,
)

R = np.random.default_rng(0)


def relaxed(op, *xs):
    node = op(*[input_node(TensorType(float64, x.shape)) for x in xs])
    y = interval_of(node, xs)
    return RELAXATIONS[node.op](node, xs, y), y


def interval(low, high):
    return Interval(np.array(low, float), np.array(high, float))


@pytest.mark.parametrize(("name", "f", "low", "high"), [
    ("exp", np.exp, 0.0, 1.0), ("sqrt", np.sqrt, 1.0, 4.0), ("tanh", np.tanh, -2.0, 3.0),
    ("log", np.log, 0.5, 2.0), ("reciprocal", lambda x: 1 / x, -3.0, -1.0), ("cos", np.cos, 0, 2),
    ("erf", lambda x: np.vectorize(math.erf)(x), 0.5, 2.0),
])  # fmt: skip
def test_planes_touch_the_function(name, f, low, high):
    found, _ = relaxed(el.ELEMENTWISE[name], interval([low], [high]))
    x = np.linspace(low, high, 2001)
    for side, plane in ((1, found.lower[0]), (-1, found.upper[0])):
        gap = side * (f(x) - plane.slopes[0] * x - plane.bias)
        assert gap.min() >= -1e-12
        assert gap.min() <= 0.02 * (f(x).max() - f(x).min())


def test_the_first_case_that_holds_is_taken():
    y = interval([-1, -2, -3], [1, 2, 3])
    line = lambda k: (
        lambda: rx.BoundingLines(
            (rx.Line(np.full(3, k), np.zeros(3)),), (rx.Line(np.full(3, k), np.ones(3)),)
        )
    )
    masks = np.array([[True, False, False], [True, True, False]])
    lines = cases(y, (masks[0], line(5.0)), (masks[1], line(7.0)))
    assert [k.slope.tolist() for k in lines.lower] == [[5, 7, 0]] * 3
    assert [k.bias.tolist() for k in lines.lower] == [[0, 0, -3]] * 3
    assert [k.bias.tolist() for k in lines.upper] == [[1, 1, 3]] * 3


def test_constants_stand_where_a_plane_is_not_finite():
    """Of a reduction, an element that is not finite spoils the whole plane of its row."""
    slopes = np.array([[1.0, np.nan], [2.0, 3.0], [4.0, 5.0]])
    plane = Plane((slopes,), np.array([0.0, np.inf, 7.0]))
    found = within(Relaxed((0,), (plane,), (plane,), (1,)), interval([-9, -8, -7], [9, 8, 7]))
    for part, ends in ((found.lower, [-9, -8, 7]), (found.upper, [9, 8, 7])):
        assert part[0].bias.tolist() == ends
        assert part[0].slopes[0].tolist() == [[0, 0], [0, 0], [4, 5]]


def test_a_maximum_is_one_element_where_it_is_known_to_be():
    x = interval([[3.0, -1.0, 0.0], [0.0, 0.0, -1.0]], [[4.0, 1.0, 2.0], [2.0, 1.0, -0.5]])
    found, _ = relaxed(ReduceMax((1,)), x)
    for plane in (found.lower[0], found.upper[0]):
        assert plane.slopes[0][0].tolist() == [1, 0, 0]
        assert plane.bias[0] == pytest.approx(0, abs=1e-12)
    p = x.lower + (x.upper - x.lower) * R.uniform(size=(4000, 2, 3))
    for plane in found.upper:
        gap = (plane.slopes[0] * p).sum(-1) + plane.bias - p.max(-1)
        assert gap.min() >= 0
        assert gap[:, 1].min() < 0.3


@pytest.mark.parametrize("width", [1e-3, 2.0])
def test_logsumexp_is_between_its_planes(width):
    """Below, the tangent plane with the softmax of the middle; above, off by the square at most."""
    middle = R.normal(size=(3, 5))
    found, _ = relaxed(LogSumExp((1,)), interval(middle - width, middle + width))
    e = np.exp(middle)
    np.testing.assert_allclose(found.lower[0].slopes[0], e / e.sum(1, keepdims=True), rtol=1e-9)
    p = middle + width * R.uniform(-1, 1, size=(2000, 3, 5))
    exact = np.log(np.exp(p).sum(-1))
    for side, planes in ((1, found.lower), (-1, found.upper)):
        for plane in planes:
            gap = side * (exact - (plane.slopes[0] * p).sum(-1) - plane.bias)
            assert gap.min() >= -1e-12
            assert gap.max() <= 3 * width * width


def test_a_power_that_is_not_one_number_is_bounded_by_its_interval():
    x, p = interval([1.0, 2.0], [2.0, 3.0]), interval([2.0, 3.0], [2.0, 3.0])
    found, y = relaxed(el.pow, x, p)
    assert found.lower[0].slopes[0].tolist() == [0, 0]
    assert found.lower[0].bias.tolist() == y.lower.tolist()
    assert found.upper[0].bias.tolist() == y.upper.tolist()
    cube, _ = relaxed(el.pow, x, interval([3.0, 3.0], [3.0, 3.0]))
    assert cube.upper[0].slopes[0] == pytest.approx([7.0, 19.0])  # chords of t**3
