"""Special functions against SciPy on all boxes of a lattice, with poles, infinities and 0."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from retrograd.ir import float32, float64
from retrograd.ops.special import functions as sf
from retrograd.ops.special import scipy_functions as sc
from tests.verify.bound_propagation.lattices import (
    assert_holds,
    assert_tight,
    boxes,
    found,
    interval,
    ranges,
)

INF = np.inf
REAL = [-INF, -3.0, -2.5, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 1.75, 2.0, 7.0, INF]
INNER = [0.125, 0.25, 0.5, 0.75, 0.875]
ABOVE = [0.0, 0.25, 1.0, 3.0, INF]
MONOTONE = [
    (sf.erfcx, special.erfcx), (sf.ndtr, special.ndtr), (sf.ndtri, special.ndtri),
    (sf.erfinv, special.erfinv), (sf.erfcinv, special.erfcinv), (sf.logit, special.logit),
    (sf.k0e, special.k0e), (sf.k1e, special.k1e), (sc.exp1, special.exp1),
    (sc.spence, special.spence), (sc.ellipe, special.ellipe), (sc.expi, special.expi),
    (sc.ellipkm1, special.ellipkm1), (sf.i0e, special.i0e), (sf.digamma, special.digamma),
    (sf.trigamma, lambda x: special.polygamma(1, x)),
]  # fmt: skip
CURVED = [
    (sf.gamma, special.gamma), (sf.lgamma, special.gammaln), (sf.j0, special.j0),
    (sf.j1, special.j1), (sf.y0, special.y0), (sf.y1, special.y1), (sf.i1e, special.i1e),
    (sf.entr, special.entr),
]  # fmt: skip
BINARY = [
    (sf.xlogy, special.xlogy, [-INF, -1.0, 0.0, 2.0, INF], ABOVE),
    (sf.xlog1py, special.xlog1py, [-INF, -1.0, 0.0, 2.0, INF], [-1.0, -0.5, 0.0, 3.0, INF]),
    (sf.gammainc, special.gammainc, ABOVE[1:], ABOVE),
    (sf.gammaincc, special.gammaincc, ABOVE[1:], ABOVE),
    (sf.betaln, special.betaln, ABOVE[1:4], ABOVE[1:4]),
    (sf.zeta, special.zeta, [1.25, 2.0, 4.0], ABOVE[1:4]),
    (sf.rel_entr, special.rel_entr, ABOVE, ABOVE),
    (sc.gammaincinv, special.gammaincinv, ABOVE[1:4], INNER),
]  # fmt: skip


def first(x):
    return getattr(x, "name", "")


@pytest.mark.parametrize("dtype", [float64, float32], ids=str)
@pytest.mark.parametrize(("op", "exact"), MONOTONE + CURVED, ids=first)
def test_all_of_a_box_is_inside(op, exact, dtype):
    assert_holds(found(op, dtype, *boxes(REAL)), ranges(exact, float64, REAL))


@pytest.mark.parametrize(("op", "exact"), MONOTONE, ids=first)
def test_where_a_function_is_monotone_its_ends_are_those_of_the_box(op, exact):
    """Up to 64 units of the value, and of 1."""
    y, true = found(op, float32, *boxes(INNER)), ranges(exact, float64, INNER)
    more = 90 * float(np.finfo(np.float32).eps)
    assert_tight(y, true._replace(low=true.low - more, high=true.high + more), more)


@pytest.mark.parametrize(("op", "exact", "a", "b"), BINARY, ids=first)
def test_functions_of_two_numbers(op, exact, a, b):
    y, true = found(op, float64, *boxes(a, b)), ranges(exact, float64, a, b)
    assert_holds(y, true)
    inner = [v for v in a if 0 < v < INF], [v for v in b if 0 < v < INF]
    y, true = found(op, float64, *boxes(*inner)), ranges(exact, float64, *inner)
    points = (true.low == true.high) & np.isfinite(true.low)
    assert points.any()
    assert_tight(y, true._replace(low=true.low - 1e-10, high=true.high + 1e-10), 1e-9, points)


def test_poles_and_extrema():
    y = found(sf.gamma, float64, interval([-0.5, -1.75, 1.0, 3.0], [0.5, -1.25, 2.0, 4.0]))
    assert y.nan.tolist() == [True, False, False, False]
    assert (y.lower[0], y.upper[0]) == (-INF, INF)
    assert y.lower[1] >= 0
    assert y.lower[2] == pytest.approx(0.8856031944108887)
    assert (y.lower[3], y.upper[3]) == (pytest.approx(2), pytest.approx(6))
    y = found(sf.entr, float64, interval([0.25], [0.5]))
    assert y.upper[0] == pytest.approx(np.exp(-1))
    y = found(sf.y0, float64, interval([0.0, -1.0], [1.0, 1.0]))
    assert y.lower[0] == -INF
    assert y.nan.tolist() == [False, True]


def test_infinity_times_the_logarithm_of_one_may_be_nan():
    y = found(sf.xlogy, float64, interval([1.0, 1.0], [INF, 2.0]), interval([0.5] * 2, [2.0] * 2))
    assert y.nan.tolist() == [True, False]


def test_orders_that_are_known_and_not():
    y = found(
        sf.bessel_j, float64, interval([2.0, 0.0], [2.0, 1.0]), interval([1.0] * 2, [1.0] * 2)
    )
    assert y.lower[0] == pytest.approx(special.jv(2, 1.0))
    assert y.nan.tolist() == [False, True]
    assert (y.lower[1], y.upper[1]) == (pytest.approx(-1.01), pytest.approx(1.01))
