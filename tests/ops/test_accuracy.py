"""Values and gradients of the elementary functions against mpmath at 40 digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from retrograd.autodiff import pullback
from retrograd.ir import DType, Graph, TensorType, float32, float64, full
from retrograd.ops.elementwise import ELEMENTWISE
from retrograd.ops.leaf import input_node
from retrograd.verify.rules import run

mp = mpmath.mp
WIDE = np.concatenate([-np.geomspace(1e-12, 30, 40)[::-1], np.geomspace(1e-12, 30, 40)])
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
    "erf": (WIDE[10:70], mp.erf, bell, 0),
    "erfc": (WIDE[10:70], mp.erfc, lambda x: -bell(x), 0),
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
            # exp(-x^2) carries the rounding of x^2, once more for its size
            ("gradient", float(gradient[i]), expected[1], bound or 6 + 2 * float(v) ** 2),
        ):
            if abs(right) < float(np.finfo(dtype.dtype).max):
                error = abs(found - right) / max(abs(right), tiny / eps**0.5)
                assert error <= most * eps, f"{what} of {name} at {v!r}: {found!r}, not {right!r}"
