"""Forward mode on graphs."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.autodiff import gradient, pushforward, tangent
from retrograd.errors import GradientError
from retrograd.ir import (
    Graph,
    Provenance,
    TensorType,
    float64,
    full,
    int32,
    made_by,
    verify,
)
from retrograd.ops.elementwise import cast, exp, sin
from retrograd.ops.leaf import input_node
from retrograd.ops.reduce import ReduceSum
from retrograd.verify.records import RECORDS
from retrograd.verify.rule_checks import run

SCALAR = TensorType(float64, ())
VECTOR = TensorType(float64, (3,))


def test_tangent_graph() -> None:
    x, y = input_node(VECTOR, "x"), input_node(VECTOR)
    n = input_node(TensorType(int32, ()), "n")
    t = tangent(Graph([x, n, y], [sin(x) * y, cast(n, float64), cast(x, int32)]))
    verify(t)
    assert [v.name for v in t.inputs] == ["x", "n", "", "t_x", "t_input1"]
    a, b, da, db = (np.array([0.1, 0.2, 0.3]) * k for k in (1, 2, 3, 4))
    found, zero = run(t, [a, np.array(7, np.int32), b, da, db])
    np.testing.assert_allclose(found, np.cos(a) * da * b + np.sin(a) * db)
    assert zero == 0


def test_no_dependence_is_none() -> None:
    x, y = input_node(SCALAR), input_node(SCALAR)
    one = full(1, SCALAR)
    whole = cast(cast(x, int32), float64)
    assert pushforward([sin(y), whole], [x], [one]) == [None, None]
    assert pushforward([x], [x], [one]) == [one]


def test_a_boundary_stops_tangents() -> None:
    x = input_node(SCALAR)
    h = sin(x)
    one = full(1, SCALAR)
    assert pushforward([exp(h)], [x], [one], stop={h}) == [None]
    assert pushforward([exp(h)], [h], [one], stop={h, x}) != [None]


def test_tangents_of_another_type_are_refused() -> None:
    x = input_node(SCALAR)
    with pytest.raises(GradientError, match=r"must be f64\[\], not f64\[3\]"):
        pushforward([sin(x)], [x], [full(1, VECTOR)])


def test_forward_of_forward_has_names_of_its_own() -> None:
    x = input_node(VECTOR, "x")
    twice = tangent(tangent(Graph([x], [x * x])))
    verify(twice)
    assert [v.name for v in twice.inputs] == ["x", "t_x", "t_x_2", "t_t_x"]


def test_provenance() -> None:
    x = input_node(SCALAR, "x")
    with made_by(Provenance("layer")):
        y = exp(x)
    t = tangent(Graph([x], [y]))
    made = [n for n in t.nodes if n.op == "zmul"]
    assert [(n.origin, n.scope) for n in made] == [(y, "layer")]


def test_forward_over_reverse_is_reverse_over_reverse() -> None:
    """The Hessian of sum(sin(x)) sum(x^2), one column by each."""
    x = input_node(VECTOR, "x")
    y = ReduceSum((0,))(sin(x)) * ReduceSum((0,))(x * x)
    first = gradient(Graph([x], [y]))
    reverse, forward = gradient(first), tangent(first)
    point = np.array([0.3, -0.5, 1.1])
    s, c, q = np.sin(point), np.cos(point), point
    hessian = np.diag(-s * np.sum(q * q) + 2 * np.sum(s))
    hessian += 2 * np.outer(c, q) + 2 * np.outer(q, c)
    for i in range(3):
        v = np.eye(3)[i]
        np.testing.assert_allclose(run(reverse, [point, v])[0], hessian[i], rtol=1e-12)
        np.testing.assert_allclose(run(forward, [point, v])[0], hessian[:, i], rtol=1e-12)


def test_inputs_without_a_derivative_have_no_tangent() -> None:
    """Alone none arrives; beside tangents of other inputs they add nothing."""
    count = 0
    for name, record in RECORDS.items():
        for sample in record.smooth_samples()[:1]:
            inputs = sample.nodes()
            y = sample.op(*inputs)
            wrt = [inputs[i] for i in record.wrt_of(sample)]
            known = {*wrt, *(inputs[i] for i in record.unchecked if i < len(inputs))}
            others = [x for x in inputs if x.type.is_inexact and x not in known]
            ones = {x: full(1, x.type) for x in inputs if x.type.is_inexact}
            for x in others:
                assert pushforward([y], [x], [ones[x]]) == [None], name
            if others and known:
                moving = [*known, *others]
                ends = [
                    *pushforward([y], moving, [ones[x] for x in moving]),
                    *pushforward([y], [*known], [ones[x] for x in known]),
                ]
                graph = Graph(inputs, [t for t in ends if t is not None])
                found, expected = run(graph, sample.inputs)
                np.testing.assert_array_equal(found, expected, err_msg=name)
                count += 1
    assert count >= 5
