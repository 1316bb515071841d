"""Sums over the steps of a loop, in twice the precision."""

from fractions import Fraction

import numpy as np
import pytest

from retrograd.ir import Graph, TensorType, complex64, complex128, float16, float32, float64, full
from retrograd.ops.control import compensated_carry as cc
from retrograd.ops.leaf import input_node
from retrograd.verify.rule_checks import run
from tests.ops.derive import derive

TERMS = np.random.default_rng(0).uniform(0, 1, 300)


@pytest.mark.parametrize("dtype", [float16, float32, float64, complex64, complex128], ids=str)
def test_a_long_sum_is_rounded_once(dtype):
    """As exact fractions have it, to the last bit; plainly added it is not."""
    t = TensorType(dtype, ())
    x, total = input_node(t), [input_node(s) for s in cc.carried(t)]
    step = Graph([*total, x], cc.more(total, x))
    state = [np.zeros((), s.dtype.dtype) for s in cc.carried(t)]
    terms = TERMS.astype(dtype.dtype)
    for term in terms:
        state = run(step, [*state, np.asarray(term)])
    (found,) = run(Graph(total, [cc.summed(total, dtype)]), state)
    exact = float(sum(Fraction(float(v.real)) for v in terms))
    assert found == np.asarray(exact).astype(dtype.dtype)
    assert found.dtype == dtype.dtype


def test_a_term_that_is_larger_than_the_sum():
    t = TensorType(float64, ())
    x, total = input_node(t), [input_node(t), input_node(t)]
    step = Graph([*total, x], cc.more(total, x))
    state = [np.array(0.0), np.array(0.0)]
    for term in (1.0, 1e17, 3.0, -1e17):
        state = run(step, [*state, np.array(term)])
    assert run(Graph(total, [cc.summed(total, float64)]), state) == [4]


def test_sums_in_a_wider_dtype_or_with_what_is_rounded_off():
    kinds = {float16: [float64], float32: [float64], complex64: [complex128]}
    kinds |= {float64: [float64] * 2, complex128: [complex128] * 2}
    for dtype, expected in kinds.items():
        assert [t.dtype for t in cc.carried(TensorType(dtype, ()))] == expected


def test_what_is_rounded_off_has_no_derivative():
    """A sum of x, x^2 and x^3, with the slope of its terms and nothing more."""

    def f(x):
        state = [full(0, t) for t in cc.carried(x.type)]
        for term in (x, x * x, x * x * x):
            state = cc.more(state, term)
        return cc.summed(state, x.dtype)

    assert derive(f, 3.0) == (39, 34, 20)


def test_a_total_that_is_not_finite_stays():
    total = [input_node(TensorType(float64, ())) for _ in range(2)]
    graph = Graph(total, [cc.summed(total, float64)])
    with np.errstate(invalid="ignore"):
        assert run(graph, [np.array(np.inf), np.array(np.nan)]) == [np.inf]
    (zero,) = run(graph, [np.array(-0.0), np.array(0.0)])
    assert np.signbit(zero)
