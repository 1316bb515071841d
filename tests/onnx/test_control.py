"""`If`, `Loop` and `Scan`, with what their bodies take from around them."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.scan import CumArgMax, CumArgMin, CumMax, CumMin

pytest.importorskip("onnx", reason="ONNX is not installed (extra: onnx)")

from tests.onnx.evaluator import agrees, run

X = np.array([0.5, -1.0, 2.0], np.float32)
ROWS = np.arange(12, dtype=np.float32).reshape(4, 3) / 7


@pytest.mark.parametrize("sign", [1, -1])
def test_both_branches_see_what_is_around_them(sign):
    def f(x):
        y = rg.exp(x)
        return rg.cond(x.sum() > 0, lambda a: a * y, lambda a: (a - y) * x[0], x)

    kinds = agrees(f, sign * X)
    assert kinds.count("If") == 1
    assert kinds.count("Exp") == 1


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_goes_through_rows_in_either_direction(reverse):
    def f(x, rows, w):
        return rg.scan(lambda c, r: (rg.tanh(c * w + r), c + r), x, rows, reverse=reverse)

    assert agrees(f, X, ROWS, 2 * X).count("Scan") == 1


def test_a_scan_without_rows_counts_and_one_without_steps_is_none():
    assert "Range" in agrees(lambda x: rg.scan(lambda c, _: (c * 2, c), x, length=3), X)
    assert "Scan" not in agrees(lambda x: rg.scan(lambda c, _: (c * 2, c), x, length=0), X)


def test_a_named_length():
    n = rg.Dim("N")
    f = rg.scan
    graph = rg.trace(lambda x, r: f(lambda c, r: (c + r, c), x, r)[0], rg.spec(3), rg.spec((n, 3)))
    for rows in (ROWS, ROWS[:1]):
        np.testing.assert_allclose(run(graph, [X, rows])[0], X + rows.sum(0), rtol=1e-6)


def test_loops_end_by_their_condition_or_after_the_most_steps():
    def f(x):
        return rg.while_loop(lambda s: (s < 100).all(), lambda s: s * 2 + 1, x)

    assert agrees(f, X * X).count("Loop") == 1
    graph = rg.trace(lambda x: rg.while_loop(lambda s: s > 0, lambda s: s + 1, x, 5), rg.spec(()))
    assert run(graph, [np.float32(1)])[0] == 6


def test_running_extrema_and_where_they_are():
    x = np.array([[1, np.nan, 3], [2, 5, np.nan], [2, 1, 0]], np.float32)
    for axis in (0, 1):
        for op, place, expected in (
            (CumMax, CumArgMax, np.maximum),
            (CumMin, CumArgMin, np.minimum),
        ):
            node = input_node(spec((3, 3)), "x")
            graph = Graph([node], [op(axis)(node), place(axis)(node)])
            values, places = run(graph, [x])
            np.testing.assert_array_equal(values, expected.accumulate(x, axis))
            np.testing.assert_array_equal(np.take_along_axis(x, places, axis), values)


def test_running_sums_and_products_of_integers_and_half_precision():
    for dtype in ("int8", "float16"):
        x = np.array([[3, -4, 5], [1, 2, 3]], dtype)
        agrees(lambda x: (rg.cumsum(x, 1), rg.cumprod(x, 0)), x)
