"""Elementary functions: values and gradients against mpmath at 40 digits; kinks, ties, bounds and
tails with exact values and derivatives."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from retrograd.autodiff import pullback
from retrograd.ir import DType, Graph, Node, TensorType, float32, float64, full
from retrograd.ops.elementwise import (
    ELEMENTWISE,
    abs,
    clamp,
    log,
    logaddexp,
    max,
    min,
    mod,
    relu,
    sigmoid,
    softplus,
)
from retrograd.ops.leaf import input_node
from retrograd.verify.rule_checks import run
from tests.ops.derive import derive

mp = mpmath.mp
INF, NAN = math.inf, math.nan
WIDE = np.concatenate([-np.geomspace(1e-12, 30, 40)[::-1], np.geomspace(1e-12, 30, 40)])
BELL = np.concatenate([WIDE[10:70], np.linspace(-8, 8, 61)])
POSITIVE = np.geomspace(1e-30, 1e30, 60)
UNIT = np.concatenate([-np.geomspace(1e-9, 0.999, 30), np.geomspace(1e-9, 0.999, 30)])
ABOVE_ONE = 1 + np.geomspace(1e-6, 1e10, 40)
ABOVE_MINUS_ONE = np.concatenate([-1 + np.geomspace(1e-6, 1, 30), np.geomspace(1e-12, 1e10, 40)])

# name: (points, f, f', bound of the relative error of the gradient in units of eps)
Case = tuple[Any, Callable[..., Any], Callable[..., Any], float]


def sech2(x: Any) -> Any:
    return 1 / mp.cosh(x) ** 2


def bell(x: Any) -> Any:
    return 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)


def logistic(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


CASES: dict[str, Case] = {
    "exp": (WIDE, mp.exp, mp.exp, 4),
    "expm1": (WIDE, mp.expm1, mp.exp, 4),
    "log": (POSITIVE, mp.log, lambda x: 1 / x, 4),
    "log2": (POSITIVE, lambda x: mp.log(x, 2), lambda x: 1 / x / mp.log(2), 4),
    "log10": (POSITIVE, mp.log10, lambda x: 1 / x / mp.log(10), 4),
    "log1p": (ABOVE_MINUS_ONE, mp.log1p, lambda x: 1 / (1 + x), 4),
    "sqrt": (POSITIVE, mp.sqrt, lambda x: 1 / (2 * mp.sqrt(x)), 4),
    "rsqrt": (POSITIVE[10:50], lambda x: 1 / mp.sqrt(x), lambda x: -(x ** mp.mpf("-1.5")) / 2, 6),
    "cbrt": (POSITIVE, mp.cbrt, lambda x: 1 / (3 * mp.cbrt(x) ** 2), 6),
    "reciprocal": (POSITIVE[20:40], lambda x: 1 / x, lambda x: -1 / x**2, 4),
    "tanh": (WIDE, mp.tanh, sech2, 8),
    "sech2": (WIDE, sech2, lambda x: -2 * mp.tanh(x) * sech2(x), 8),
    "sinh": (WIDE, mp.sinh, mp.cosh, 4),
    "cosh": (WIDE, mp.cosh, mp.sinh, 4),
    "asinh": (WIDE, mp.asinh, lambda x: 1 / mp.sqrt(1 + x * x), 4),
    "acosh": (ABOVE_ONE, mp.acosh, lambda x: 1 / mp.sqrt(x - 1) / mp.sqrt(x + 1), 6),
    "atanh": (UNIT, mp.atanh, lambda x: 1 / (1 - x) / (1 + x), 6),
    "asin": (UNIT, mp.asin, lambda x: 1 / mp.sqrt((1 - x) * (1 + x)), 6),
    "acos": (UNIT, mp.acos, lambda x: -1 / mp.sqrt((1 - x) * (1 + x)), 6),
    "atan": (WIDE, mp.atan, lambda x: 1 / (1 + x * x), 4),
    "sigmoid": (WIDE, logistic, lambda x: logistic(x) * logistic(-x), 8),
    "softplus": (WIDE, lambda x: mp.log1p(mp.exp(x)), logistic, 8),
    "erf": (BELL, mp.erf, bell, 4),
    "ndtr": (BELL, mp.ncdf, mp.npdf, 4),
    "erfc": (BELL, mp.erfc, lambda x: -bell(x), 4),
}


@pytest.mark.parametrize("dtype", [float64, float32], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_relative_error(name: str, dtype: DType) -> None:
    points, f, slope, bound = CASES[name]
    x = points.astype(dtype.dtype)
    eps, tiny = (float(getattr(np.finfo(dtype.dtype), k)) for k in ("eps", "tiny"))
    node = input_node(TensorType(dtype, x.shape))
    y = ELEMENTWISE[name](node)
    (g,) = pullback([y], [full(1, y.type)], [node])
    assert g is not None
    value, gradient = run(Graph([node], [y, g]), [x])
    for i, v in enumerate(x):
        with mp.workdps(40):
            exact = mpmath.mpf(float(v))
            expected = float(f(exact)), float(slope(exact))
        for what, found, right, most in (
            ("value", float(value[i]), expected[0], 6.0),
            ("gradient", float(gradient[i]), expected[1], bound),
        ):
            if math.fabs(right) < float(np.finfo(dtype.dtype).max):
                error = math.fabs(found - right) / builtins.max(math.fabs(right), tiny / eps**0.5)
                assert error <= most * eps, f"{what} of {name} at {v!r}: {found!r}, not {right!r}"


def test_kinks_have_a_subgradient() -> None:
    assert derive(abs, 0.0)[1] == 0
    assert derive(abs, -2.0)[1] == -1
    assert derive(relu, 0.0)[1] == 0
    assert derive(relu, 1e-300)[1] == 1


def test_ties_of_two_share_the_gradient() -> None:
    np.testing.assert_array_equal(derive(max, 2.0, 2.0)[1], [0.5, 0.5])
    np.testing.assert_array_equal(derive(min, 2.0, 2.0)[1], [0.5, 0.5])
    np.testing.assert_array_equal(derive(max, 1.0, 2.0)[1], [0, 1])
    np.testing.assert_array_equal(derive(min, 1.0, 2.0)[1], [1, 0])
    np.testing.assert_array_equal(derive(max, -INF, -INF)[1], [0.5, 0.5])
    assert derive(lambda x: max(x, x), 3.0)[1] == 1
    assert derive(lambda x: max(x, -x), 0.0)[1] == 0


def test_a_nan_is_not_hidden_by_max() -> None:
    for f in (max, min):
        value, gradient, _ = derive(f, NAN, 1.0)
        assert np.isnan(value)
        assert gradient[0] == 1
        assert np.isnan(derive(f, 1.0, NAN)[0])


@pytest.mark.parametrize(
    ("x", "lo", "hi", "value", "gradient"),
    [
        (0.5, 0.0, 1.0, 0.5, [1, 0, 0]),
        (-1.0, 0.0, 1.0, 0.0, [0, 1, 0]),
        (2.0, 0.0, 1.0, 1.0, [0, 0, 1]),
        (0.0, 0.0, 1.0, 0.0, [0, 1, 0]),
        (1.0, 0.0, 1.0, 1.0, [0, 0, 1]),
        (0.5, 1.0, 0.0, 0.0, [0, 0, 1]),
        (-5.0, 1.0, 0.0, 0.0, [0, 0, 1]),
        (5.0, 1.0, 0.0, 0.0, [0, 0, 1]),
        (1.0, 1.0, 1.0, 1.0, [0, 0, 1]),
        (0.5, 1.0, 1.0, 1.0, [0, 0, 1]),
        (2.0, 1.0, 1.0, 1.0, [0, 0, 1]),
    ],
)
def test_clamp(x: float, lo: float, hi: float, value: float, gradient: list[float]) -> None:
    """At and beyond its bounds the input gets nothing; the bound in force gets everything."""
    found = derive(clamp, x, lo, hi)
    assert found[0] == value
    np.testing.assert_array_equal(found[1], gradient)


def test_clamp_passes_on_nan() -> None:
    value, gradient, _ = derive(clamp, NAN, 0.0, 1.0)
    assert np.isnan(value)
    np.testing.assert_array_equal(gradient, [1, 0, 0])


def test_mod_counts_the_quotient_it_took() -> None:
    """1 mod 0.1 is 0.0999..., nine times 0.1 taken away, although 1 / 0.1 rounds to 10."""
    value, gradient, _ = derive(mod, 1.0, 0.1)
    assert value == pytest.approx(0.1)
    np.testing.assert_array_equal(gradient, [1, -9])
    np.testing.assert_array_equal(derive(mod, -7.0, 3.0)[1], [1, 3])
    np.testing.assert_array_equal(derive(mod, 7.0, -3.0)[1], [1, 3])
    # whole, although what was taken away, divided, is 53.00000000000001
    assert (5.35 - math.fmod(5.35, 0.1)) / 0.1 != 53
    np.testing.assert_array_equal(derive(mod, 5.35, 0.1)[1], [1, -53])


def test_sigmoid_and_softplus_tails() -> None:
    for x in (-INF, -1000.0, 1000.0, INF):
        value, gradient, hessian = derive(sigmoid, x)
        assert (value, gradient[0], hessian[0, 0]) == (float(x > 0), 0, 0)
        value, gradient, hessian = derive(softplus, x)
        assert (value, gradient[0], hessian[0, 0]) == (x if x > 0 else 0, float(x > 0), 0)
    for x in (-40.0, -700.0):
        _, gradient, hessian = derive(sigmoid, x)
        np.testing.assert_allclose([gradient[0], hessian[0, 0]], math.exp(x), rtol=1e-13)
        _, gradient, _ = derive(sigmoid, -x)
        np.testing.assert_allclose(gradient[0], math.exp(x), rtol=1e-13)


def test_logaddexp_tails() -> None:
    np.testing.assert_array_equal(derive(logaddexp, -INF, 3.0)[1], [0, 1])
    np.testing.assert_array_equal(derive(logaddexp, 3.0, -INF)[1], [1, 0])
    np.testing.assert_array_equal(derive(logaddexp, INF, 3.0)[1], [1, 0])
    np.testing.assert_array_equal(derive(logaddexp, 1e5, -1e5)[1], [1, 0])
    np.testing.assert_array_equal(derive(logaddexp, 1e308, -1e308)[1], [1, 0])
    np.testing.assert_array_equal(derive(logaddexp, 5000.0, 5000.0)[1], [0.5, 0.5])
    np.testing.assert_array_equal(
        derive(logaddexp, 5000.0, 5000.0)[2], [[0.25, -0.25], [-0.25, 0.25]]
    )
    value, gradient, hessian = derive(logaddexp, -INF, -INF)
    assert value == -INF
    np.testing.assert_array_equal(gradient, [0, 0])
    np.testing.assert_array_equal(hessian, np.zeros((2, 2)))


def test_log_probabilities_of_impossible_paths() -> None:
    """log(p) of p = 0 inside a running logaddexp: no NaN comes back."""

    def f(p: Node, q: Node) -> Node:
        return logaddexp(logaddexp(log(p), log(p)), log(q))

    _, gradient, hessian = derive(f, 0.0, 0.5)
    np.testing.assert_array_equal(gradient, [0, 2])
    assert hessian[1, 1] == -4
