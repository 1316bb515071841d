"""Functions against mpmath: its interval arithmetic where it has one, else its numbers.

An interval must hold the exact value of every point, to the last digit that mpmath gives, and be
hardly wider than need be.
"""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import retrograd.ops.elementwise as el
from retrograd.ir import TensorType, float32, float64
from retrograd.ops.leaf import input_node
from retrograd.ops.special import functions as sf
from retrograd.ops.special import scipy_functions as sc
from retrograd.verify.bound_propagation import rules
from retrograd.verify.bound_propagation.interval import Interval
from retrograd.verify.bound_propagation.propagation import interval_of

assert rules
mp, iv = mpmath.mp, mpmath.iv
# Op, mpmath's function, where its arguments are taken from, in mpmath's interval arithmetic.
UNARY = [
    (el.exp, mpmath.exp, -5, 5, iv.exp),
    (el.log, mpmath.log, 0.01, 9, iv.log),
    (el.sqrt, mpmath.sqrt, 0, 9, iv.sqrt),
    (el.sin, mpmath.sin, -9, 9, iv.sin),
    (el.cos, mpmath.cos, -9, 9, iv.cos),
    (el.expm1, mpmath.expm1, -3, 3, None),
    (el.log1p, mpmath.log1p, -0.9, 5, None),
    (el.tanh, mpmath.tanh, -4, 4, None),
    (el.sinh, mpmath.sinh, -4, 4, None),
    (el.cosh, mpmath.cosh, -4, 4, None),
    (el.asin, mpmath.asin, -1, 1, None),
    (el.acos, mpmath.acos, -1, 1, None),
    (el.atan, mpmath.atan, -9, 9, None),
    (el.sech2, lambda x: mpmath.sech(x) ** 2, -3, 3, None),
    (el.erf, mpmath.erf, -3, 3, None),
    (el.erfc, mpmath.erfc, -3, 6, None),
    (el.sigmoid, lambda x: 1 / (1 + mpmath.exp(-x)), -9, 9, None),
    (el.softplus, lambda x: mpmath.log1p(mpmath.exp(x)), -9, 9, None),
    (sf.gamma, mpmath.gamma, -2.9, 5, None),
    (sf.lgamma, lambda x: mpmath.log(abs(mpmath.gamma(x))), -2.9, 9, None),
    (sf.digamma, mpmath.digamma, 0.1, 9, None),
    (sf.trigamma, lambda x: mpmath.zeta(2, x), 0.1, 9, None),
    (sf.j0, lambda x: mpmath.besselj(0, x), -20, 20, None),
    (sf.j1, lambda x: mpmath.besselj(1, x), -20, 20, None),
    (sf.y0, lambda x: mpmath.bessely(0, x), 0.1, 20, None),
    (sf.y1, lambda x: mpmath.bessely(1, x), 0.1, 20, None),
    (sf.i0e, lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)), -9, 9, None),
    (sf.i1e, lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), -9, 9, None),
    (sf.ndtr, mpmath.ncdf, -5, 5, None),
    (sf.entr, lambda x: -x * mpmath.log(x), 0.001, 3, None),
    (sc.exp1, mpmath.e1, 0.01, 5, None),
    (sc.expi, mpmath.ei, 0.01, 5, None),
    (sc.ellipe, mpmath.ellipe, -3, 1, None),
]  # fmt: skip
BINARY = [
    (el.pow, mpmath.power, (0.1, 3), (-3, 3)),
    (el.atan2, mpmath.atan2, (-2, 2), (0.1, 2)),
    (el.hypot, mpmath.hypot, (-2, 2), (-2, 2)),
    (el.logaddexp, lambda a, b: mpmath.log(mpmath.exp(a) + mpmath.exp(b)), (-5, 5), (-5, 5)),
    (sf.betaln, lambda a, b: mpmath.log(mpmath.beta(a, b)), (0.1, 5), (0.1, 5)),
    (sf.gammainc, lambda a, x: mpmath.gammainc(a, 0, x, regularized=True), (0.2, 5), (0.01, 5)),
    (sf.gammainc_dx, lambda a, x: mpmath.exp(-x) * x ** (a - 1) / mpmath.gamma(a), (0.2, 5),
     (0.1, 5)),
    (sf.zeta, mpmath.zeta, (1.1, 5), (0.2, 4)),
    (sf.xlogy, lambda a, b: a * mpmath.log(b), (-2, 2), (0.1, 3)),
    (sf.rel_entr, lambda a, b: a * mpmath.log(a / b), (0.01, 2), (0.01, 2)),
]  # fmt: skip


def found(op, dtype, *ends):
    given = [Interval(np.asarray(a, float), np.asarray(b, float)) for a, b in ends]
    shape = given[0].shape
    node = op(*[input_node(TensorType(dtype, shape)) for _ in given])
    return interval_of(node, given)


def boxes(rng, low, high, count, dtype):
    kind = dtype.dtype
    x = rng.uniform(low, high, (count, 2)) * 1.0
    x[::2, 1] = np.clip(x[::2, 0] + rng.uniform(0, 0.05, len(x[::2])), low, high)
    x = np.sort(x, axis=1).astype(kind).astype(float)
    return x[:, 0], x[:, 1]


@pytest.mark.parametrize("dtype", [float64, pytest.param(float32, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("op", "exact", "low", "high", "tight"), UNARY, ids=lambda x: getattr(x, "name", "")
)
def test_functions_of_one_number(op, exact, low, high, tight, dtype):
    rng = np.random.default_rng(0)
    a, b = boxes(rng, low, high, 6, dtype)
    y = found(op, dtype, (a, b))
    slack = 1e-4 if dtype is float32 else 1e-12
    for k in range(len(a)):
        for x in (a[k], b[k], *rng.uniform(a[k], b[k], 3)):
            value = exact(mpmath.mpf(x))
            assert y.lower[k] <= value <= y.upper[k], (op.name, a[k], b[k], x)
        if tight is not None:
            best = tight(iv.mpf([a[k], b[k]]))
            more = slack * (1 + abs(float(best.mid)))
            assert y.lower[k] >= float(best.a) - more
            assert y.upper[k] <= float(best.b) + more


@pytest.mark.parametrize(
    ("op", "exact", "first", "second"), BINARY, ids=lambda x: getattr(x, "name", "")
)
def test_functions_of_two_numbers(op, exact, first, second):
    rng = np.random.default_rng(1)
    ends = [boxes(rng, e[0], e[1], 6, float64) for e in (first, second)]
    y = found(op, float64, *ends)
    for k in range(6):
        for t in (0, 0.2, 0.7, 1):
            for s in (0, 0.5, 1):
                p, q = (
                    min(max(a[k] * (1 - u) + b[k] * u, a[k]), b[k])
                    for (a, b), u in zip(ends, (t, s), strict=True)
                )
                assert y.lower[k] <= exact(mpmath.mpf(p), mpmath.mpf(q)) <= y.upper[k]


def test_critical_points_are_reached():
    """An extremum inside is found, one outside is not."""
    y = found(el.sin, float64, ([1.0, 0.1, 4.0], [2.0, 1.0, 5.0]))
    assert y.upper[0] >= 1
    assert y.upper[1] < 0.85
    assert y.lower[2] <= -1
    y = found(el.cos, float64, ([-0.1], [0.1]))
    assert y.upper >= 1
    assert y.lower > 0.99
    y = found(sf.gamma, float64, ([1.0], [2.0]))
    assert 0.8855 < y.lower[0] <= 0.8857
    assert np.isinf(found(el.tan, float64, ([1.0], [2.0])).upper)


def test_where_a_function_is_not_defined_it_may_be_nan():
    y = found(el.log, float32, ([-1.0, 1.0], [1.0, 2.0]))
    assert y.nan.tolist() == [True, False]
    assert y.lower[0] == -np.inf
    assert found(el.asin, float32, ([0.0], [2.0])).nan.all()
    assert found(el.exp, float32, ([0.0], [2.0])).nan is False
