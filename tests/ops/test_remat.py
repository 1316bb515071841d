"""Marks of regions pass values, tangents and cotangents on."""

import numpy as np
import pytest

from retrograd.autodiff import pullback, pushforward
from retrograd.ir import Graph, TensorType, float64, full
from retrograd.ops.leaf import input_node
from retrograd.ops.remat import After, Keep, RegionIn, RegionOut
from retrograd.verify.rule_checks import run
from tests.ops.derive import cotangents, derive, derive_forward

T = TensorType(float64, ())


@pytest.mark.parametrize("mark", [RegionIn, RegionOut, Keep])
def test_a_mark_is_the_identity(mark):
    def f(x):
        return mark()(x * x) * x

    assert derive(f, 2.0) == (8, 12, 12)
    assert derive_forward(f, 2.0) == (12, 12)


def test_tangents_are_marked_too():
    """So that a tangent inside of a region is computed again with it."""
    x, t = input_node(T), input_node(T)
    (found,) = pushforward([RegionIn()(x)], [x], [t])
    assert (found.op, found.inputs) == ("region_in", (t,))


def test_what_is_computed_late_has_no_gradient_by_what_it_waits_for():
    x, y = input_node(T), input_node(T)
    z = After()(x * x, y) * y
    dx, dy = cotangents(z, [x, y])
    assert run(Graph([x, y], [z, dx, dy]), [np.array(3.0), np.array(5.0)]) == [45, 30, 9]
    assert pullback([After()(x, y)], [full(1, T)], [y]) == [None]
