"""Reductions: ties, tails, products with zeros, nothing to reduce."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from retrograd.ir import Node, TensorType, bfloat16, float16, float64, reachable
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.reduce import LogSumExp, ReduceMax, ReduceMin, ReduceProd, products_of_others
from retrograd.ops.shape import expand, slice_axis
from tests.ops.derive import total, vector_gradient, vector_hessian

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("kind", [ReduceMax, ReduceMin])
def test_ties_of_many_share_the_gradient(kind: Any) -> None:
    x = [[2.0, 1.0, 2.0, 2.0], [5.0, 5.0, 5.0, 5.0]]
    sign = 1 if kind is ReduceMax else -1
    _, gradient = vector_gradient(lambda v: total(kind((1,))(v)), sign * np.array(x))
    np.testing.assert_allclose(gradient, [[1 / 3, 0, 1 / 3, 1 / 3], [0.25] * 4])
    _, gradient = vector_gradient(lambda v: kind((0, 1))(v), np.full((2, 3), 7.0))
    np.testing.assert_allclose(gradient, np.full((2, 3), 1 / 6))


def test_a_nan_is_not_hidden_by_reduce_max() -> None:
    _, gradient = vector_gradient(lambda v: total(ReduceMax((1,))(v)), [[1.0, NAN], [1.0, 2.0]])
    assert np.isnan(gradient[0]).all()
    np.testing.assert_array_equal(gradient[1], [0, 1])


def logsumexp(x: Node) -> Node:
    return LogSumExp((x.type.rank - 1,))(x)


def log_softmax(x: Node) -> Node:
    return x - expand(logsumexp(x), x.shape, (x.type.rank - 1,))


def test_logsumexp_tails() -> None:
    def f(x: Node) -> Node:
        return total(logsumexp(x))

    rows = [[1000.0, 1000.0], [-1000.0, -1001.0], [-INF, 2.0], [-INF, -INF], [1e308, -1e308]]
    _, gradient = vector_gradient(f, rows)
    w = 1 / (1 + math.exp(-1))
    expected = np.array([[0.5, 0.5], [w, 1 - w], [0, 1], [0, 0], [1, 0]])
    np.testing.assert_allclose(gradient, expected)
    np.testing.assert_array_equal(vector_hessian(logsumexp, [-INF, -INF]), np.zeros((2, 2)))
    np.testing.assert_allclose(
        vector_hessian(logsumexp, [1e3, 1e3]), [[0.25, -0.25], [-0.25, 0.25]]
    )
    np.testing.assert_array_equal(vector_gradient(logsumexp, [INF, 1.0])[1], [NAN, 0])


@pytest.mark.parametrize("dtype", [float16, bfloat16], ids=str)
def test_the_gradient_of_logsumexp_in_half_precision_is_rounded_once(dtype: Any) -> None:
    x = np.random.default_rng(0).normal(size=300).astype(dtype.dtype)
    _, gradient = vector_gradient(logsumexp, x)
    e = np.exp(x.astype(np.float64))
    exact = e / e.sum()
    eps = {float16: 2.0**-11, bfloat16: 2.0**-8}[dtype]
    assert (abs(gradient.astype(np.float64) - exact) <= 1.001 * eps * exact + 2.0**-25).all()


def test_log_softmax_tails() -> None:
    """The gradient of -log p[0] is p - (1, 0, 0), also where p[0] underflows."""

    def loss(x: Node) -> Node:
        return -total(log_softmax(x) * full_like(x, [1.0, 0.0, 0.0]))

    value, gradient = vector_gradient(loss, [-2000.0, 0.0, 0.0])
    np.testing.assert_allclose(value, 2000 + math.log(2))
    np.testing.assert_allclose(gradient, [-1, 0.5, 0.5])
    value, gradient = vector_gradient(loss, [2000.0, 0.0, -2000.0])
    np.testing.assert_array_equal(gradient, [0, 0, 0])
    _, gradient = vector_gradient(lambda x: -total(part(log_softmax(x))), [1.0, 2.0, -INF])
    np.testing.assert_allclose(gradient[2], 0)


def full_like(x: Node, values: Any) -> Node:
    return constant(np.asarray(values, x.dtype.dtype))


def part(x: Node) -> Node:
    return slice_axis(x, 0, 0, 1)


def prod(x: Node) -> Node:
    return ReduceProd((0,))(x)


@pytest.mark.parametrize(
    "x",
    [[2.0, 3.0, 4.0], [0.0, 3.0, 4.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0, 2.0], [5.0], [2.0] * 7],
)
def test_derivatives_of_a_product_with_zeros(x: list[float]) -> None:
    """The derivative by x[i] is the product of the others, the second one of the others but two."""
    n = len(x)
    first = [math.prod(x[:i] + x[i + 1 :]) for i in range(n)]
    second = [
        [
            0 if i == j else math.prod(v for k, v in enumerate(x) if k not in (i, j))
            for j in range(n)
        ]
        for i in range(n)
    ]
    value, gradient = vector_gradient(prod, x)
    assert value == math.prod(x)
    np.testing.assert_array_equal(gradient, first)
    np.testing.assert_array_equal(vector_hessian(prod, x), second)


@pytest.mark.parametrize(("n", "pads"), [(8, 0), (7, 1), (5, 2)])
def test_the_other_factors_are_a_tree_of_products(n: int, pads: int) -> None:
    """Three products for each element, and no table of all pairs; odd numbers get one more."""
    x = input_node(TensorType(float64, (n,)))
    nodes = reachable([products_of_others(x)])
    assert [y.op for y in nodes].count("pad") == pads
    assert sum(y.type.size for y in nodes if y.op == "mul") <= 3 * (n + pads)
    assert "reduce_prod" not in {y.op for y in nodes}


def test_product_that_overflows_or_underflows() -> None:
    _, gradient = vector_gradient(prod, [1e-200, 1e-200, 1e300])
    np.testing.assert_allclose(gradient, [1e100, 1e100, 0], rtol=1e-12)


def test_reductions_over_nothing() -> None:
    empty = np.zeros((0,))
    for f, value in ((total, 0), (prod, 1), (logsumexp, -INF)):
        found, gradient = vector_gradient(f, empty)
        assert found == value
        assert gradient.shape == (0,)
    _, gradient = vector_gradient(lambda x: total(logsumexp(x)), np.zeros((3, 0)))
    assert gradient.shape == (3, 0)
