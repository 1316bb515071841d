"""Records of the scans: running sums, products, extrema, recurrences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import DType, TensorType, bool_, complex128, float32, float64, int32
from retrograd.ops.scan import (
    CumArgMax,
    CumArgMin,
    CumMax,
    CumMin,
    CumProd,
    CumSum,
    LinearScan,
    LogCumSumExp,
)
from retrograd.verify.records.common import NUMBERS, SIZES, M, N, f64
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

# Of more than a vector of partial results, too.
SHAPES = (((3, 4), 1), ((2, 1, 3, 2), 2), ((0, 3), 0), ((3, 0), 0), ((1,), 0), ((2, 37), 1),
          ((3, 1), 0), ((19, 5), 0))  # fmt: skip

Step = Callable[..., Any]  # of the value before (None at first) and the elements


def running(step: Step) -> Callable[..., Array]:
    """A scan by a function of Python numbers."""

    def independent(op: Any, *inputs: Array) -> Array:
        rows = [np.moveaxis(x, op.axis, -1) for x in inputs]
        integer = np.issubdtype(rows[0].dtype, np.integer)
        y = np.empty_like(rows[0])
        for i in np.ndindex(y.shape[:-1]):
            state = None
            places = range(y.shape[-1])
            for t in reversed(places) if op.reverse else places:
                state = step(state, *(number(r[i][t]) for r in rows))
                y[i][t] = wrap(state, y.dtype) if integer else state
        return np.asarray(np.moveaxis(y, -1, op.axis))

    return independent


def attained(better: Callable[[Any, Any], bool]) -> Callable[..., Array]:
    def independent(op: Any, x: Array) -> Array:
        source = np.moveaxis(x, op.axis, -1)
        y = np.empty(source.shape, np.int64)
        for i in np.ndindex(y.shape[:-1]):
            values = [number(v) for v in source[i]]
            best = None
            places = range(len(values))
            for t in reversed(places) if op.reverse else places:
                best = t if best is None or better(values[t], values[best]) else best
                y[i][t] = best
        return np.asarray(np.moveaxis(y, -1, op.axis))

    return independent


def samples(name: str, kind: Any, dtypes: Sequence[DType], distinct: bool) -> Iterator[Sample]:
    rng = rng_for(name)

    def inputs(shape: tuple[int, ...], dtype: DType) -> tuple[Array, ...]:
        if distinct and dtype is float64:
            return (rng.permutation(math.prod(shape)).reshape(shape) * 0.25 - 1,)
        return tuple(draw(rng, shape, dtype) for _ in range(kind.arity))

    for reverse in (False, True):
        for dtype in dtypes:
            yield Sample(kind(0, reverse), inputs((7,), dtype), dtype in (float64, complex128))
        for shape, axis in SHAPES:
            small = math.prod(shape) < 30
            yield Sample(kind(axis, reverse), inputs(shape, float64), small)


def scan(
    name: str,
    kind: Any,
    independent: Callable[..., Array],
    dtypes: Sequence[DType] = NUMBERS,
    wrt: tuple[int, ...] = (0,),
    distinct: bool = False,
) -> Record:
    n = kind.arity
    failures = [
        Failure(kind(1), (f64(3),) * n, ShapeError),
        Failure(kind(-1), (f64(3),) * n, ShapeError),
        Failure(kind(0), (f64(),) * n, ShapeError),
        Failure(kind(0), (TensorType(bool_, (3,)),) * n, DTypeError),
    ]
    if int32 not in dtypes:
        failures.append(Failure(kind(0), (TensorType(int32, (3,)),) * n, DTypeError))
    if n == 2:
        failures.append(Failure(kind(0), (f64(3), f64(4)), ShapeError))
        failures.append(Failure(kind(0), (f64(3), TensorType(float32, (3,))), DTypeError))
    return Record(
        name,
        partial(samples, name, kind, dtypes, distinct),
        independent,
        wrt,
        ulps=64,
        absolute=16,
        failures=tuple(failures),
        symbolic=(
            Symbolic(kind(1), (f64(N, M),) * n, SIZES),
            Symbolic(kind(0, True), (f64(N, M),) * n, SIZES),
        ),
    )


def log_added(state: float | None, x: float) -> float:
    return x if state is None else float(np.logaddexp(state, x))


def first_or(f: Step) -> Step:
    return lambda state, x: x if state is None else f(state, x)


COMPARED = tuple(d for d in NUMBERS if not d.is_complex)
RECORDS = [
    scan("cumsum", CumSum, running(first_or(lambda s, x: s + x))),
    scan("cumprod", CumProd, running(first_or(lambda s, x: s * x))),
    scan("linear_scan", LinearScan, running(lambda s, a, b: b if s is None else a * s + b),
         wrt=(0, 1)),
    scan("logcumsumexp", LogCumSumExp, running(log_added), FLOATS),
    scan("cummax", CumMax, running(first_or(max)), COMPARED, distinct=True),
    scan("cummin", CumMin, running(first_or(min)), COMPARED, distinct=True),
    scan("cumargmax", CumArgMax, attained(lambda x, best: x > best), COMPARED, wrt=()),
    scan("cumargmin", CumArgMin, attained(lambda x, best: x < best), COMPARED, wrt=()),
]  # fmt: skip


def records() -> list[Record]:
    return RECORDS
