"""Bodies that work on any number of rows: what is enclosed, bound and computed before."""

import numpy as np

from retrograd.ir import Dim, Graph, TensorType, float64, full
from retrograd.ops.control.row_functions import (
    ROWS,
    apply,
    bound,
    enclose,
    enclose_late,
    rows_of,
    substituted,
)
from retrograd.ops.elementwise import exp, sin
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral, matmul
from retrograd.ops.shape import expand
from retrograd.verify.rule_checks import run

T = TensorType(float64, ())
ROW = TensorType(float64, (ROWS, 2))
RNG = np.random.default_rng(0)


def node(*shape):
    return input_node(TensorType(float64, shape))


def test_only_what_is_used_is_enclosed():
    a, b, w, v = node(4, 2), node(4, 3), node(2, 2), node(5)
    found = enclose(ROW, [a, b], [w, v], lambda h, a, b, w, v: matmul(h * a, w), ROW)
    assert (found.rows, found.shared) == ([a], [w])
    assert [x.type for x in found.body.inputs] == [ROW, rows_of(a.type), w.type]
    zero = enclose(ROW, [a], [w], lambda *xs: None, ROW)
    assert (zero.rows, zero.shared, zero.body.outputs[0].op) == ([], [], "constant")
    late = enclose_late(ROW, [a], [w], lambda *xs: None, ROW, 4)
    assert (late.rows, late.shared) == ([], [])
    for body in (zero.body, late.body):
        h = node(4, 2)
        assert not run(Graph([h], [apply(body, [h], 4)]), [np.ones((4, 2))])[0].any()


def test_a_body_is_applied_to_any_number_of_rows():
    h, w = input_node(ROW), node(2, 2)
    body = Graph([h, w], [sin(matmul(h, w)) + expand(full(3, T), (ROWS, 2), (0, 1)) * h])
    x, m = RNG.normal(size=(3, 2)), RNG.normal(size=(2, 2))
    rows, matrix = node(3, 2), node(2, 2)
    y = apply(body, [rows, matrix], 3)
    np.testing.assert_allclose(run(Graph([rows, matrix], [y]), [x, m])[0], np.sin(x @ m) + 3 * x)
    fixed = bound(body, {"_rows": 3})
    assert not fixed.dim_names
    assert fixed.inputs[0].shape == (3, 2)
    assert bound(fixed, {"_rows": 7}) is fixed


def test_what_does_not_depend_on_the_first_rows_is_computed_before():
    """For all rows at once; a matrix that is read along its columns comes transposed."""
    x, w = node(4, 2), node(2, 2)

    def f(h, x, w):
        return DotGeneral((1,), (1,))(h, sin(w)) * exp(x)

    late = enclose_late(ROW, [x], [w], f, ROW, 4)
    ops = [n.op for n in late.body.nodes]
    assert "exp" not in ops
    assert "sin" not in ops
    assert [n.prim for n in late.body.nodes if n.op == "dot_general"] == [DotGeneral((1,), (0,))]
    first = node(4, 2)
    y = apply(late.body, [first, *late.rows, *late.shared], 4)
    h, a, m = RNG.normal(size=(4, 2)), RNG.normal(size=(4, 2)), RNG.normal(size=(2, 2))
    found = run(Graph([first, x, w], [y]), [h, a, m])[0]
    np.testing.assert_allclose(found, h @ np.sin(m).T * np.exp(a))


def test_sizes_in_which_some_names_have_values():
    n, m = Dim("n"), Dim("m")
    assert substituted(n * n + 2 * m, {"n": 3}) == 2 * m + 9
    assert substituted((n + 1) // m, {"n": 6, "m": 2}) == 3
    assert substituted((n + 1) // m, {"m": m * 2}) == (n + 1) // (2 * m)
    assert substituted(5, {"n": 3}) == 5
