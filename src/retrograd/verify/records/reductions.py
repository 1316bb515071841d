"""Records of the reductions and running sums."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import (
    TensorType,
    bool_,
    complex64,
    float32,
    float64,
    int32,
)
from retrograd.lazy_import import need
from retrograd.ops.reduce import (
    ArgMax,
    ArgMin,
    LogSumExp,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from retrograd.verify.records.common import ALL, NUMBERS, SIZES, M, N, f64, uses
from retrograd.verify.records.elementwise import number, wrap
from retrograd.verify.records.record import (
    FLOATS,
    Array,
    Failure,
    Record,
    Sample,
    Symbolic,
    draw,
    rng_for,
)


def over_axes(name: str, f: Callable[[list[Any]], Any]) -> Callable[..., Array]:
    """A reduction by a function of a list of Python numbers."""

    def independent(op: Any, x: Array) -> Array:
        kept = [a for a in range(x.ndim) if a not in op.axes]
        y = np.empty([x.shape[a] for a in kept], x.dtype)
        rows = np.transpose(x, (*kept, *op.axes)).reshape(*y.shape, -1) if x.size else None
        for i in np.ndindex(y.shape):
            value = f([] if rows is None else [number(v) for v in rows[i]])
            y[i] = wrap(value, x.dtype) if np.issubdtype(x.dtype, np.integer) else value
        return y

    return independent


def reduction(
    name: str,
    kind: Any,
    f: Callable[[list[Any]], Any],
    dtypes: Sequence[Any],
    empty: bool = True,
    distinct: bool = False,
    ulps: float = 8,
) -> Record:
    shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((7,), (0,)),
        ((2, 3), (1,)),
        ((2, 3), (0, 1)),
        ((2, 3), ()),
        ((), ()),
        ((2, 1, 3, 2), (1, 3)),
        ((2, 1, 3, 2), (0, 2)),
        ((0, 3), (1,)),
        ((1,), (0,)),
    ] + ([((0,), (0,)), ((3, 0), (1,))] if empty else [])

    def samples() -> Iterator[Sample]:
        rng = rng_for(name)
        for k, (shape, axes) in enumerate(shapes):
            for dtype in dtypes if k < 2 else [d for d in (bool_, float64) if d in dtypes][-1:]:
                x = draw(rng, shape, dtype)
                if distinct and dtype is float64:
                    x = rng.permutation(x.size).reshape(shape) * 0.25 - 1
                alive = kind is not LogSumExp or x.size > 0  # else it is -inf
                yield Sample(kind(axes), (x,), dtype is float64 and alive)

    bad = [d for d in (bool_, int32, float32) if d not in dtypes]
    failures = [
        Failure(kind((2,)), (TensorType(dtypes[0], (2, 3)),), ShapeError),
        Failure(kind((-1,)), (TensorType(dtypes[0], (2, 3)),), ShapeError),
        Failure(kind((1, 0)), (TensorType(dtypes[0], (2, 3)),), ShapeError),
        Failure(kind((0, 0)), (TensorType(dtypes[0], (2, 3)),), ShapeError),
        *[Failure(kind((0,)), (TensorType(d, (2, 3)),), DTypeError) for d in bad],
    ]
    if not empty:
        failures.append(Failure(kind((0,)), (TensorType(dtypes[0], (0, 3)),), ShapeError))
    sizes = SIZES if empty else SIZES[:2]
    x = TensorType(dtypes[-1], (N, 2, M))
    return Record(
        name,
        samples,
        over_axes(name, f),
        (0,) if float64 in dtypes else (),
        ulps=ulps,
        failures=tuple(failures),
        symbolic=(Symbolic(kind((0, 2)), (x,), sizes), Symbolic(kind((1,)), (x,), SIZES)),
    )


def argument(name: str, kind: Any, f: Callable[[list[Any]], Any]) -> Record:
    def independent(op: Any, x: Array) -> Array:
        rows = np.moveaxis(x, op.axis, -1)
        y = np.empty(rows.shape[:-1], np.int64)
        for i in np.ndindex(y.shape):
            values = [number(v) for v in rows[i]]
            y[i] = values.index(f(values))
        return y

    cases: list[tuple[Any, Sequence[tuple[int, ...]]]] = [
        (kind(0), [(7,)]),
        (kind(1), [(3, 5)]),
        (kind(2), [(2, 1, 3, 2)]),
        (kind(1), [(0, 3)]),
        (kind(0), [(1,)]),
    ]
    return Record(
        name,
        partial(uses, name, cases, ALL),
        independent,
        failures=(
            Failure(kind(0), (TensorType(complex64, (3,)),), DTypeError),
            Failure(kind(1), (f64(3),), ShapeError),
            Failure(kind(-1), (f64(3),), ShapeError),
            Failure(kind(0), (f64(0, 2),), ShapeError),
        ),
        symbolic=(Symbolic(kind(1), (f64(N, M),), SIZES),),
    )


def total(values: list[Any]) -> Any:
    return math.fsum(values) if values and isinstance(values[0], float) else sum(values)


def log_total(values: list[Any]) -> Any:
    if not values:
        return -math.inf
    return need("scipy.special", "the meaning of logsumexp").logsumexp(values)


REDUCTIONS = [
    reduction("reduce_sum", ReduceSum, total, NUMBERS),
    # Complex numbers are multiplied by their angles where the size is not known.
    reduction("reduce_prod", ReduceProd, lambda v: reduce(operator.mul, v, 1), NUMBERS, ulps=16),
    reduction("reduce_max", ReduceMax, max, ALL, empty=False, distinct=True),
    reduction("reduce_min", ReduceMin, min, ALL, empty=False, distinct=True),
    reduction("logsumexp", LogSumExp, log_total, FLOATS),
    reduction("reduce_any", ReduceAny, any, (bool_,)),
    reduction("reduce_all", ReduceAll, all, (bool_,)),
    argument("argmax", ArgMax, max),
    argument("argmin", ArgMin, min),
]


def records() -> list[Record]:
    return REDUCTIONS
