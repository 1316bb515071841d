"""What the derivative is where mathematics leaves a choice, or the number line ends: a table.

Each row is a point and the slopes that the rules give there, exactly: at kinks and jumps 0, at ties
an equal share or the first, infinite where the slope is, at zeros of either sign and at infinities
the limit of the formula, NaN where there is none. `docs/numerical-conventions.md` says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograd.autodiff import pullback
from retrograd.backend_registry import compile_graph
from retrograd.ir import Graph, full
from retrograd.ops.elementwise import ELEMENTWISE
from retrograd.ops.leaf import constant
from retrograd.ops.pool import MaxPool
from retrograd.ops.reduce import LogSumExp, ReduceMax, ReduceMin, ReduceProd
from retrograd.ops.scan import CumMax, CumMin, CumProd, LogCumSumExp
from retrograd.ops.sort import Sort
from retrograd.verify.certification.certificate import FAILED, NONE, PASSED, Evidence
from retrograd.verify.rule_checks import placeholders

KIND = "conventions"
INF, NAN = float("inf"), float("nan")
Numbers = Any  # a number for an elementwise operation, an array else


class Convention(NamedTuple):
    """A point of an operation, and what each input receives there for the cotangents 1, 2, 3, ...
    of the elements of the result. None is an input that gets nothing."""

    op: str
    kind: str
    at: tuple[Numbers, ...]
    slopes: tuple[Numbers | None, ...]
    why: str = ""


# Of one argument: kinks, jumps and ends of the domain.
_POINTS: dict[str, dict[float, float]] = {
    "floor": {1.0: 0},
    "ceil": {1.0: 0},
    "trunc": {1.0: 0},
    "round": {0.5: 0, 1.5: 0},
    "asin": {1.0: INF, -1.0: INF},
    "acos": {1.0: -INF, -1.0: -INF},
    "acosh": {1.0: INF},
    "atanh": {1.0: INF, -1.0: INF},
    "logit": {1.0: INF},
    "ndtri": {1.0: INF},
    "erfinv": {1.0: INF, -1.0: INF},
    "erfcinv": {2.0: -INF},
    "gamma": {-1.0: NAN},
    "log1p": {-1.0: INF},
}
# Slopes at -inf, -0.0, 0.0, inf; as equal that zeros have no sign.
_ENDS: dict[str, tuple[float, float, float, float]] = {
    "neg": (-1, -1, -1, -1),
    "abs": (-1, 0, 0, 1),
    "sign": (0, 0, 0, 0),
    "floor": (0, 0, 0, 0),
    "ceil": (0, 0, 0, 0),
    "trunc": (0, 0, 0, 0),
    "round": (0, 0, 0, 0),
    "relu": (0, 0, 0, 1),
    "reciprocal": (0, -INF, -INF, 0),
    "sqrt": (NAN, -INF, INF, 0),
    "rsqrt": (NAN, -INF, -INF, 0),
    "cbrt": (0, INF, INF, 0),
    "exp": (0, 1, 1, INF),
    "expm1": (0, 1, 1, INF),
    "exp2": (0, np.log(2), np.log(2), INF),
    "log": (0, -INF, INF, 0),
    "log2": (0, -INF, INF, 0),
    "log10": (0, -INF, INF, 0),
    "log1p": (0, 1, 1, 0),
    "sin": (NAN, 1, 1, NAN),
    "cos": (NAN, 0, 0, NAN),
    "tan": (NAN, 1, 1, NAN),
    "asin": (NAN, 1, 1, NAN),
    "acos": (NAN, -1, -1, NAN),
    "atan": (0, 1, 1, 0),
    "sinh": (INF, 1, 1, INF),
    "cosh": (-INF, 0, 0, INF),
    "tanh": (0, 1, 1, 0),
    "sech2": (0, 0, 0, 0),
    "asinh": (0, 1, 1, 0),
    "acosh": (NAN, NAN, NAN, 0),
    "atanh": (0, 1, 1, 0),
    "erf": (0, 2 / np.sqrt(np.pi), 2 / np.sqrt(np.pi), 0),
    "erfc": (0, -2 / np.sqrt(np.pi), -2 / np.sqrt(np.pi), 0),
    "sigmoid": (0, 0.25, 0.25, 0),
    "softplus": (0, 0.5, 0.5, 1),
    "gamma": (NAN, -INF, -INF, INF),
    "lgamma": (NAN, INF, -INF, INF),
    "digamma": (NAN, INF, INF, 0),
    "trigamma": (NAN, -INF, -INF, 0),
    "erfcx": (-INF, -2 / np.sqrt(np.pi), -2 / np.sqrt(np.pi), 0),
    "ndtr": (0, 1 / np.sqrt(2 * np.pi), 1 / np.sqrt(2 * np.pi), 0),
    "ndtri": (NAN, INF, INF, NAN),
    "erfinv": (NAN, np.sqrt(np.pi) / 2, np.sqrt(np.pi) / 2, NAN),
    "erfcinv": (NAN, -INF, -INF, NAN),
    "logit": (0, -INF, INF, 0),
    "entr": (NAN, INF, INF, -INF),
    "j0": (0, 0, 0, 0),
    "j1": (0, 0.5, 0.5, 0),
    "i0e": (0, 0, 0, 0),
    "i1e": (0, 0.5, 0.5, 0),
    "y0": (NAN, INF, INF, 0),
    "y1": (NAN, INF, INF, 0),
    "k0e": (0, -INF, -INF, 0),
    "k1e": (NAN, INF, -INF, 0),
    "exp1": (NAN, INF, -INF, 0),
    "expi": (0, -INF, INF, INF),
}
# Of several arguments: points, slopes, what is special.
_SEVERAL: dict[str, list[tuple[tuple[float, ...], tuple[float | None, ...], str]]] = {
    "max": [
        ((1, 1), (0.5, 0.5), "tie"),
        ((0.0, -0.0), (0.5, 0.5), "tie"),
        ((INF, INF), (0.5, 0.5), "tie"),
        ((NAN, 1), (1, 1), "NaN"),
    ],
    "min": [
        ((1, 1), (0.5, 0.5), "tie"),
        ((0.0, -0.0), (0.5, 0.5), "tie"),
        ((NAN, 1), (1, 1), "NaN"),
    ],
    "clamp": [
        ((0, 0, 1), (0, 1, 0), "kink"),
        ((1, 0, 1), (0, 0, 1), "kink"),
        ((0.5, 2, 1), (0, 0, 1), "the upper bound is below the lower"),
        ((0.5, 0.5, 0.5), (0, 0, 1), "tie"),
    ],
    "hypot": [((0, 0), (0, 0), "kink")],
    "atan2": [((0, 0), (0, 0), "jump"), ((0.0, -1.0), (-1, 0), "jump")],
    "copysign": [((0, 1), (0, 0), "kink"), ((1, -0.0), (-1, 0), "signed zero")],
    "pow": [
        ((0, 0), (0, 0), "zero"),
        ((0, 2), (0, 0), "zero"),
        ((0, 1), (1, 0), "zero"),
        ((0, 0.5), (INF, 0), "zero"),
        ((0, -1), (-INF, -INF), "zero"),
        ((-1, 2), (-2, NAN), "the power has no slope below 0"),
        ((INF, 0), (0, INF), "infinity"),
    ],
    "mod": [((2, 1), (1, -2), "jump"), ((1, INF), (1, 0), "infinity")],
    "logaddexp": [
        ((-INF, -INF), (0, 0), "infinity"),
        ((-INF, 1), (0, 1), "infinity"),
        ((INF, 0), (1, 0), "infinity"),
        ((INF, INF), (NAN, NAN), "infinity"),
    ],
    "xlogy": [((0, 0), (-INF, 0), "zero"), ((1, 0), (-INF, INF), "zero")],
    "xlog1py": [((0, -1), (-INF, 0), "zero"), ((1, -1), (-INF, INF), "zero")],
    "rel_entr": [
        ((0, 0), (INF, 0), "zero"),
        ((0, 1), (-INF, 0), "zero"),
        ((1, 0), (INF, -INF), "zero"),
    ],
    "zmul": [((0, INF), (INF, 0), "a zero absorbs"), ((1, INF), (INF, 1), "infinity")],
    "zzmul": [((0, INF), (INF, 0), "a zero absorbs"), ((INF, 0), (0, INF), "a zero absorbs")],
    "zdiv": [((0, 0), (INF, 0), "a zero absorbs"), ((1, 0), (INF, -INF), "pole")],
    "mul": [((0, INF), (INF, 0), "infinity")],
    "div": [
        ((1, 0), (INF, -INF), "pole"),
        ((1, INF), (0, 0), "infinity"),
        ((0, 0), (INF, NAN), "pole"),
    ],
    "gammainc": [
        ((0.5, 0), (0, INF), "zero"),
        ((1, 0), (0, 1), "zero"),
        ((1, INF), (0, 0), "infinity"),
    ],
    "betainc": [((1, 1, 0), (0, 0, 1), "zero"), ((0.5, 0.5, 0), (0, 0, INF), "zero")],
    "nextafter": [((1, 2), (1, None), "the neighbour moves along")],
}
# Operations with axes, of which each row has one.
_OPERATIONS: dict[str, tuple[Any, list[tuple[Any, Any, str]]]] = {
    "reduce_max": (
        ReduceMax((0,)),
        [([1, 3, 3], [0, 0.5, 0.5], "tie"), ([1, NAN], [NAN, NAN], "NaN")],
    ),
    "reduce_min": (ReduceMin((0,)), [([1, 3, 1], [0.5, 0, 0.5], "tie")]),
    "reduce_prod": (
        ReduceProd((0,)),
        [([2, 0, 3], [0, 6, 0], "zero"), ([0, 0, 3], [0, 0, 0], "zeros"), ([], [], "empty")],
    ),
    "logsumexp": (
        LogSumExp((0,)),
        [
            ([-INF, -INF], [0, 0], "infinity"),
            ([-INF, 0], [0, 1], "infinity"),
            ([INF, 0], [NAN, 0], "infinity"),
        ],
    ),
    "cummax": (CumMax(0, False), [([1, 3, 3], [1, 5, 0], "tie: the first")]),
    "cummin": (CumMin(0, False), [([3, 1, 1], [1, 5, 0], "tie: the first")]),
    "cumprod": (CumProd(0, False), [([2, 0, 3], [1, 22, 0], "zero")]),
    "logcumsumexp": (LogCumSumExp(0, False), [([-INF, 0], [0, 2], "infinity")]),
    "sort": (Sort(0, False), [([2, 1, 1], [3, 1, 2], "tie: in their order")]),
    "max_pool": (
        MaxPool((2,), (2,), (1,), (0,), (0,)),
        [([[5.0, 5.0, 1.0, 1.0]], [[1, 0, 2, 0]], "tie: the first")],
    ),
}


def conventions(op: str | None = None) -> list[Convention]:
    """The rows of an operation, or all of them.

    >>> from retrograd.verify.certification.conventions import conventions
    >>> [(row.at, row.slopes) for row in conventions("abs")][1]
    ((-0.0,), (0,))
    """
    return [row for row in _rows() if op is None or row.op == op]


def _rows() -> Iterator[Convention]:
    for op, points in _POINTS.items():
        for x, slope in points.items():
            yield Convention(op, "kink or end", (x,), (slope,))
    for op, slopes in _ENDS.items():
        for x, slope in zip((-INF, -0.0, 0.0, INF), slopes, strict=True):
            kind = "zero" if x == 0 else "infinity"
            yield Convention(op, kind, (x,), (slope,))
    for op, rows in _SEVERAL.items():
        for at, given, kind in rows:
            yield Convention(op, kind, at, given)
    for op, (_, several) in _OPERATIONS.items():
        for array, gradient, kind in several:
            yield Convention(op, kind, (array,), (gradient,))


def slopes_of(
    op: Any, at: Sequence[Numbers], backend: str, seed: Any
) -> list[np.ndarray[Any, Any]]:
    """What the inputs receive at a point, for a cotangent of the result."""
    arrays = [np.asarray(x, np.float64) for x in at]
    inputs = placeholders(arrays)
    y = op(*inputs)
    cotangent = np.broadcast_to(seed, tuple(map(int, y.shape))).astype(np.float64)
    found = pullback([y], [constant(cotangent)], inputs, set(inputs))
    ends = [full(0, x.type) if g is None else g for g, x in zip(found, inputs, strict=True)]
    return [np.asarray(g) for g in compile_graph(Graph(inputs, ends), backend)(arrays)]


def found_slopes(name: str, backend: str, op: Any = None) -> list[list[Any]]:
    """The slopes by all inputs at the rows of an operation: those of an elementwise one at once."""
    rows = conventions(name)
    if name not in _OPERATIONS:
        columns = list(zip(*(row.at for row in rows), strict=True))
        found = slopes_of(op or ELEMENTWISE[name], columns, backend, 1.0)
        return [list(slopes) for slopes in zip(*found, strict=True)]
    result = []
    for row in rows:
        count = np.size(row.at[0])
        y = op or _OPERATIONS[name][0]
        size = int(np.prod(y(*placeholders([np.asarray(row.at[0], np.float64)])).shape))
        seed: Any = np.arange(1.0, 1 + size)
        result.append(slopes_of(y, row.at, backend, seed if count and size > 1 else 1.0))
    return result


def evidence(name: str, i: int, backends: Sequence[str], op: Any = None) -> Evidence:
    """The slopes by input i at the points of the table, on each backend, exactly but for the sign
    of zeros, and irrational numbers to rounding."""
    rows = conventions(name)
    if not rows:
        return Evidence(KIND, NONE, detail="no kink, tie or end of the line")
    count = 0
    for backend in backends:
        for row, slopes in zip(rows, found_slopes(name, backend, op), strict=True):
            found, expected = slopes[i], row.slopes[i]
            wanted = np.zeros(np.shape(found)) if expected is None else np.asarray(expected, float)
            count += 1
            if not np.allclose(found, wanted, rtol=4e-16, atol=0, equal_nan=True):
                said = (
                    f"{row.kind} at {', '.join(map(str, row.at))}: the slope by input {i} is "
                    f"{np.asarray(found).tolist()} on {backend}, the convention {wanted.tolist()}"
                )
                return Evidence(KIND, FAILED, count, None, said)
    return Evidence(KIND, PASSED, count, None, "exactly")
