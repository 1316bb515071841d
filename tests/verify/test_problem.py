"""A program and a property as one problem."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.verify.problem import problem_of

verify = rg.verify


def test_flat_inputs_and_outputs():
    a = verify.Box(np.zeros((2, 1), np.float32), np.ones((2, 1), np.float32))
    b = verify.Box([-1.0], [2.0])

    def f(inputs, scale):
        x, y = inputs["x"], inputs["y"]
        return {"sum": x[:, 0] * scale + y, "first": x[0, 0]}

    prop = verify.Property(
        ({"x": a, "y": b}, 3.0), lambda first, total: (total > first) & (first < 9)
    )
    problem = problem_of(f, prop)
    np.testing.assert_array_equal(problem.regions[0].lower, [0, 0, -1])
    np.testing.assert_array_equal(problem.regions[0].upper, [1, 1, 2])
    assert problem.shapes == [(), (2,)]
    with rg.backend("reference"):
        y = problem.run(np.array([0.25, 0.5, -1.0]))
    np.testing.assert_allclose(y, [0.25, -0.25, 0.5])
    np.testing.assert_allclose(problem.network(np.array([[0.25, 0.5, -1.0]])), y[None])
    assert problem.violated(np.array([0.25, 0.5, -1.0]), y) is not None
    assert problem.violated(np.array([0.25, 0.5, -1.5]), y) is None  # outside of the region
    assert problem.violated(np.array([0.25, 0.5, -1.0]), np.array([0.0, 1.0, 1.0])) is None


def test_boxes_that_the_program_cannot_hold_are_widened():
    """0.1 is no float32: the box in float32 contains the one in float64."""
    box = verify.Box(np.array([0.1]), np.array([0.3]))
    graph = rg.trace(lambda x: x, rg.spec((1,)))
    (region,) = problem_of(graph, verify.Property(box, lambda y: y > 0)).regions
    assert region.lower[0] <= 0.1
    assert region.upper[0] >= 0.3
    assert region.lower[0] == np.float32(region.lower[0])
    assert region.upper[0] - region.lower[0] < 0.2 + 1e-7


def test_what_is_no_problem():
    box = verify.Box(np.zeros(1, np.int32), np.ones(1, np.int32))
    with pytest.raises(rg.RetrogradError, match="floating inputs"):
        problem_of(lambda x: x, verify.Property(box, lambda y: y > 0))
    graph = rg.trace(lambda x: rg.concat([x, x]), rg.spec((rg.Dim("N"),)))
    narrow = verify.Box([0.0], [1.0])
    assert problem_of(graph, verify.Property(narrow, lambda y: y >= 0)).shapes == [(2,)]
