"""Errors of rounding: what NumPy computes in a narrow dtype is that near to what is exact."""

import math

import mpmath
import numpy as np
import pytest

from retrograd.ir import TensorType, bfloat16, float16, float32, float64
from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import Cast
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import LogSumExp, ReduceSum
from retrograd.ops.shape import reshape
from retrograd.verify.bound_propagation.interval import Interval
from retrograd.verify.bound_propagation.linear_error import (
    added,
    magnitudes,
    rounding_error,
    softmax_error,
)

R = np.random.default_rng(0)


def given(shape, dtype=float32):
    return input_node(TensorType(dtype, shape))


def error_of(node, y, *xs):
    points = [Interval(wide, wide) for wide in (np.asarray(x, np.float64) for x in xs)]
    return rounding_error(node, points, Interval(y, y))


@pytest.mark.parametrize("dtype", [float32, float64])
def test_sums_in_any_order(dtype):
    """Each order is within the error, and the error within a few hundred of what they miss by."""
    x = (R.normal(size=(2000, 3)) * 10.0 ** R.integers(-3, 4, (2000, 3))).astype(dtype.dtype)
    exact = np.array([math.fsum(map(float, column)) for column in x.T])
    error = error_of(ReduceSum((0,))(given(x.shape, dtype)), exact, x)
    for order in (np.arange(2000), R.permutation(2000), np.argsort(-np.abs(x[:, 0]))):
        found = np.cumsum(x[order], axis=0)[-1].astype(np.float64)
        assert (np.abs(found - exact) <= error).all()
    assert (error <= 2000 * np.finfo(dtype.dtype).eps * np.abs(x).sum(0, dtype=float)).all()


def test_products_of_matrices():
    a, b = (R.normal(size=s).astype(np.float32) for s in ((4, 300), (300, 5)))
    node = DotGeneral((1,), (0,), (), ())(given(a.shape), given(b.shape))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert added(node) == 300
    error = error_of(node, exact, a, b)
    found = sum(a[:, k, None] * b[k] for k in range(300))
    assert (np.abs(found - exact) <= error).all()
    total = magnitudes(node, [np.abs(a).astype(float), np.abs(b).astype(float)])
    np.testing.assert_allclose(total, np.abs(a).astype(float) @ np.abs(b), rtol=1e-6)


@pytest.mark.parametrize(("name", "exact"), [
    ("exp", mpmath.exp), ("tanh", mpmath.tanh), ("sin", mpmath.sin), ("erf", mpmath.erf),
    ("reciprocal", lambda x: 1 / x),
])  # fmt: skip
def test_functions_of_float32(name, exact):
    x = R.normal(size=60).astype(np.float32) * 3
    op = el.ELEMENTWISE[name]
    y = np.array([float(exact(mpmath.mpf(float(v)))) for v in x])
    error = error_of(op(given(x.shape)), y, x)
    found = np.asarray(op.reference(x), np.float32).astype(np.float64)
    assert (np.abs(found - y) <= error).all()
    assert (error <= 16.1 * 2.0**-23 * np.abs(y) + 1e-30).all()


@pytest.mark.parametrize("narrow", [float16, bfloat16, float32])
def test_casts(narrow):
    x = R.normal(size=200)
    node = Cast(narrow)(given(x.shape, float64))
    found = x.astype(narrow.dtype).astype(np.float64)
    assert (np.abs(found - x) <= error_of(node, x, x)).all()
    assert error_of(Cast(float64)(given((200,), float32)), x, x) == 0


def test_what_rounds_nothing():
    x = given((2, 3))
    for node in (reshape(x, (6,)), el.neg(x), el.abs(x), el.gt(x, x), el.relu(x)):
        assert error_of(node, np.ones(node.shape), np.ones((2, 3))) == 0.0


def test_softmax_and_logsumexp():
    x = R.normal(size=(40, 7)).astype(np.float32) * 5
    wide = x.astype(np.float64)
    m = x.max(1, keepdims=True)
    e = np.exp(x - m)
    total = np.exp(wide - m).sum(1, keepdims=True)
    z = given(x.shape)
    exact = np.exp(wide - m) / total
    error = softmax_error(el.div(z, z), Interval(wide, wide), (1,), Interval(exact, exact))
    assert (np.abs(e / e.sum(1, keepdims=True) - exact) <= error).all()
    y = (m + np.log(total))[:, 0]
    found = (m + np.log(e.sum(1, keepdims=True)))[:, 0]
    assert (np.abs(found - y) <= error_of(LogSumExp((1,))(z), y, x)).all()
    assert np.isinf(softmax_error(el.div(z, z), Interval(wide - np.inf, wide), (1,),
                                  Interval(exact, exact))).all()  # fmt: skip
