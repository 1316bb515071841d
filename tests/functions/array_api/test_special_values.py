"""The standard's tables of special values for real numbers, row by row; those for complex numbers
are in `tests/passes/lowering/test_complex.py`.

A row `condition -> result` (two conditions for functions of two arguments) holds for every number
of a pool that meets the condition. `x`, `x1`, `x2` stand for an argument.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

import retrograd as rg
from tests.functions.array_api.test_names import SECTIONS

INF, NAN = math.inf, math.nan
POOL = [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 8.0, 1e30, INF]
POOL = [NAN, *POOL, *(-x for x in POOL)]


def whole(x: float) -> bool:
    return math.isfinite(x) and x == int(x)


def minus(x: float) -> bool:
    return math.copysign(1, x) < 0


CONDITIONS: dict[str, Callable[[float], bool]] = {
    "any": lambda x: True,
    "nan": math.isnan,
    "number": lambda x: not math.isnan(x),
    "finite": math.isfinite,
    "inf": math.isinf,
    "+inf": lambda x: x == INF,
    "-inf": lambda x: x == -INF,
    "0": lambda x: x == 0,
    "+0": lambda x: x == 0 and not minus(x),
    "-0": lambda x: x == 0 and minus(x),
    ">0": lambda x: x > 0,
    "<0": lambda x: x < 0,
    ">=+0": lambda x: x >= 0 and not minus(x),
    "<=-0": lambda x: x <= 0 and minus(x),
    "+finite": lambda x: 0 < x < INF,
    "-finite": lambda x: -INF < x < 0,
    "nonzero": lambda x: math.isfinite(x) and x != 0,
    "1": lambda x: x == 1,
    "-1": lambda x: x == -1,
    ">1": lambda x: x > 1,
    "<1": lambda x: x < 1,
    "<-1": lambda x: x < -1,
    "whole": whole,
    "odd": lambda x: whole(x) and abs(x) < 1e9 and int(x) % 2 == 1,
    "even": lambda x: whole(x) and int(x) % 2 == 0,
    "broken": lambda x: math.isfinite(x) and not whole(x),
    "|x|>1": lambda x: abs(x) > 1,
    "|x|=1": lambda x: abs(x) == 1,
    "|x|<1": lambda x: abs(x) < 1,
}
SAME = "0 -> x; inf -> x"
UNARY = {
    "abs": "nan -> nan; -0 -> +0; -inf -> +inf",
    "acos": "nan -> nan; >1 -> nan; <-1 -> nan; 1 -> +0",
    "acosh": "nan -> nan; <1 -> nan; 1 -> +0; +inf -> +inf",
    "asin": "nan -> nan; >1 -> nan; <-1 -> nan; 0 -> x",
    "asinh": f"nan -> nan; {SAME}",
    "atan": "nan -> nan; 0 -> x; +inf -> pi/2; -inf -> -pi/2",
    "atanh": "nan -> nan; >1 -> nan; <-1 -> nan; -1 -> -inf; 1 -> +inf; 0 -> x",
    "ceil": f"nan -> nan; whole -> x; {SAME}",
    "cos": "nan -> nan; 0 -> 1; inf -> nan",
    "cosh": "nan -> nan; 0 -> 1; inf -> +inf",
    "exp": "nan -> nan; 0 -> 1; +inf -> +inf; -inf -> +0",
    "expm1": "nan -> nan; 0 -> x; +inf -> +inf; -inf -> -1",
    "floor": f"nan -> nan; whole -> x; {SAME}",
    "isfinite": "nan -> False; inf -> False; finite -> True",
    "isinf": "nan -> False; inf -> True; finite -> False",
    "isnan": "nan -> True; number -> False",
    "log": "nan -> nan; <0 -> nan; 0 -> -inf; 1 -> +0; +inf -> +inf",
    "log1p": "nan -> nan; <-1 -> nan; -1 -> -inf; 0 -> x; +inf -> +inf",
    "log2": "nan -> nan; <0 -> nan; 0 -> -inf; 1 -> +0; +inf -> +inf",
    "log10": "nan -> nan; <0 -> nan; 0 -> -inf; 1 -> +0; +inf -> +inf",
    "reciprocal": "nan -> nan; +0 -> +inf; -0 -> -inf; +inf -> +0; -inf -> -0",
    "round": f"nan -> nan; whole -> x; {SAME}",
    "sign": "nan -> nan; <0 -> -1; 0 -> 0; >0 -> 1",
    "signbit": "+0 -> False; >0 -> False; -0 -> True; <0 -> True",
    "sin": "nan -> nan; 0 -> x; inf -> nan",
    "sinh": f"nan -> nan; {SAME}",
    "sqrt": "nan -> nan; <0 -> nan; 0 -> x; +inf -> +inf",
    "tan": "nan -> nan; 0 -> x; inf -> nan",
    "tanh": "nan -> nan; 0 -> x; +inf -> 1; -inf -> -1",
    "trunc": f"nan -> nan; whole -> x; {SAME}",
}
NANS = "nan, any -> nan; any, nan -> nan"
UNEQUAL = "nan, any -> False; any, nan -> False"
BINARY = {
    "add": f"{NANS}; +inf, -inf -> nan; -inf, +inf -> nan; +inf, +inf -> +inf; -inf, -inf -> -inf;"
    "inf, finite -> x1; finite, inf -> x2; -0, -0 -> -0; -0, +0 -> +0; +0, -0 -> +0; +0, +0 -> +0;"
    "0, nonzero -> x2; nonzero, 0 -> x1",
    "subtract": f"{NANS}; +inf, +inf -> nan; -inf, -inf -> nan; +inf, -inf -> +inf;"
    "inf, finite -> x1; finite, inf -> -x2; -0, +0 -> -0; +0, +0 -> +0; -0, -0 -> +0;"
    "0, nonzero -> -x2; nonzero, 0 -> x1",
    "atan2": f"{NANS}; >0, 0 -> pi/2; +0, >0 -> +0; +0, +0 -> +0; +0, -0 -> pi; +0, <0 -> pi;"
    "-0, >0 -> -0; -0, +0 -> -0; -0, -0 -> -pi; -0, <0 -> -pi; <0, 0 -> -pi/2;"
    "+finite, +inf -> +0; +finite, -inf -> pi; -finite, +inf -> -0; -finite, -inf -> -pi;"
    "+inf, finite -> pi/2; -inf, finite -> -pi/2; +inf, +inf -> pi/4; +inf, -inf -> 3*pi/4;"
    "-inf, +inf -> -pi/4; -inf, -inf -> -3*pi/4",
    "copysign": "any, <=-0 -> -abs(x1); any, >=+0 -> abs(x1); nan, number -> nan;"
    "+inf, -inf -> -inf; 0, -0 -> -0; 0, >0 -> +0",
    "divide": f"{NANS}; inf, inf -> nan; 0, 0 -> nan; +0, >0 -> +0; -0, >0 -> -0; +0, <0 -> -0;"
    "-0, <0 -> +0; >0, +0 -> +inf; >0, -0 -> -inf; <0, +0 -> -inf; <0, -0 -> +inf;"
    "+inf, >=+0 -> +inf_; +inf, -finite -> -inf; -inf, +finite -> -inf; -inf, -finite -> +inf;"
    "+finite, +inf -> +0; +finite, -inf -> -0; -finite, +inf -> -0; -finite, -inf -> +0",
    "equal": UNEQUAL + "; 0, 0 -> True; +inf, +inf -> True; -inf, -inf -> True;+inf, -inf -> False",
    "not_equal": "nan, any -> True; any, nan -> True; 0, 0 -> False; +inf, +inf -> False",
    "floor_divide": f"{NANS}; inf, inf -> nan; 0, 0 -> nan; +0, >0 -> +0; -0, >0 -> -0;"
    "+0, <0 -> -0; -0, <0 -> +0; >0, +0 -> +inf; >0, -0 -> -inf; <0, +0 -> -inf; <0, -0 -> +inf;"
    "+finite, +inf -> +0; +finite, -inf -> -1; -finite, +inf -> -1; -finite, -inf -> +0",
    **dict.fromkeys(("greater", "greater_equal", "less", "less_equal"), UNEQUAL),
    "hypot": "inf, any -> +inf; any, inf -> +inf; nan, finite -> nan; finite, nan -> nan;"
    "0, finite -> abs(x2); finite, 0 -> abs(x1)",
    "logaddexp": f"{NANS}; +inf, number -> +inf; number, +inf -> +inf",
    "maximum": NANS,
    "minimum": NANS,
    "multiply": f"{NANS}; inf, 0 -> nan; 0, inf -> nan; +inf, >0 -> +inf; +inf, <0 -> -inf;"
    "-inf, >0 -> -inf; -inf, <0 -> +inf; >0, +inf -> +inf; <0, +inf -> -inf; >0, -inf -> -inf;"
    "<0, -inf -> +inf; +0, <=-0 -> _-0",
    "nextafter": f"{NANS}; -0, +0 -> +0; +0, -0 -> -0",
    "pow": "|x|>1, +inf -> +inf; |x|>1, -inf -> +0; |x|=1, inf -> 1; 1, any -> 1; any, 0 -> 1;"
    "nan, nonzero -> nan; |x|<1, +inf -> +0; |x|<1, -inf -> +inf; +inf, >0 -> +inf;"
    "+inf, <0 -> +0; -inf, odd -> _odd; -finite, broken -> nan; +0, >0 -> +0; +0, <0 -> +inf",
    "remainder": f"{NANS}; inf, inf -> nan; inf, finite -> nan; any, 0 -> nan; +0, >0 -> +0;"
    "-0, >0 -> +0; +0, <0 -> -0; -0, <0 -> -0; +finite, +inf -> x1; -finite, -inf -> x1;"
    "+finite, -inf -> x2; -finite, +inf -> x2",
}
# Rows above whose result is a condition of its own, written as a function of the arguments.
SPECIAL = {
    "+inf_": lambda x1, x2: NAN if math.isinf(x2) else INF,
    "_-0": lambda x1, x2: NAN if math.isinf(x2) else -0.0,
    "_odd": lambda x1, x2: -INF if x2 > 0 else -0.0,
}
# Functions of the standard that have no table for real numbers.
PLAIN = (
    "bitwise_invert conj imag logical_not negative positive real square bitwise_and bitwise_or "
    "bitwise_xor bitwise_left_shift bitwise_right_shift logical_and logical_or logical_xor clip"
)


def test_every_function_has_a_table_or_none() -> None:
    listed = [*UNARY, *BINARY, *PLAIN.split()]
    assert sorted(listed) == sorted(SECTIONS["elementwise"])


def rows(table: str) -> list[tuple[list[str], str]]:
    split = [row.split("->") for row in table.split(";")]
    return [([c.strip() for c in left.split(",")], right.strip()) for left, right in split]


def result(told: str, x: tuple[float, ...]) -> float:
    if told in SPECIAL:
        return SPECIAL[told](*x)
    scope = {"inf": INF, "nan": NAN, "pi": math.pi, "x": x[0], "x1": x[0], "x2": x[-1], "abs": abs}
    return float(eval(told.replace("-0", "-0.0") if told in ("-0", "+0") else told, scope))


def same(found: float, right: float, eps: float) -> bool:
    """Equal with the sign of zero, or as near as a result that is not exact can be."""
    if math.isnan(right):
        return math.isnan(found)
    if right == 0 or math.isinf(right):
        return found == right and minus(found) == minus(right)
    return abs(found - right) <= 2 * eps * abs(right)


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
@pytest.mark.sample(30)
def test_real_numbers(name: str, dtype: str, backend: str) -> None:
    table, arguments = (UNARY[name], 1) if name in UNARY else (BINARY[name], 2)
    pool = [float(np.dtype(dtype).type(x)) for x in POOL]
    cases = list(itertools.product(pool, repeat=arguments))
    columns = [np.array(c, dtype) for c in zip(*cases, strict=True)]
    with rg.backend(backend):
        found = getattr(rg, name)(*map(rg.asarray, columns)).numpy()
    met = 0
    for conditions, told in rows(table):
        for x, y in zip(cases, found.tolist(), strict=True):
            if all(CONDITIONS[c](a) for c, a in zip(conditions, x, strict=True)):
                right = result(told, x)
                assert same(float(y), right, float(np.finfo(dtype).eps)), (
                    conditions,
                    told,
                    x,
                    y,
                    right,
                )
                met += 1
    assert met >= len(rows(table))
