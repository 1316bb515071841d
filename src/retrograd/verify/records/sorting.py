"""Records of sorting and searching."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from functools import cmp_to_key, partial
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import DTYPES, TensorType, float32, float64
from retrograd.ops.sort import ArgSort, SearchSorted, Sort
from retrograd.verify.records.common import REALS, SIZES, M, N, f64
from retrograd.verify.records.elementwise import number
from retrograd.verify.records.record import Array, Failure, Record, Sample, Symbolic, draw, rng_for

SHAPES = (((3, 4), 1), ((2, 1, 3, 2), 2), ((0, 3), 0), ((3, 0), 0), ((1,), 0), ((5, 2), 0))


def samples(kind: Any) -> Iterator[Sample]:
    rng = rng_for(kind.name)
    for descending in (False, True):
        for dtype in REALS:
            for n in (9, 100, 700):
                yield Sample(kind(0, descending), (draw(rng, (n,), dtype),))
        for shape, axis in SHAPES:
            x = rng.permutation(int(np.prod(shape))).reshape(shape) * 0.25 - 1
            yield Sample(kind(axis, descending), (x,), True)
        if kind is ArgSort:
            for count, shape in ((0, (3,)), (1, (2, 5)), (3, (4, 3)), (5, (2, 200)), (9, (700,))):
                x = draw(rng, shape, float64)
                yield Sample(ArgSort(len(shape) - 1, descending, count), (x,))
                yield Sample(ArgSort(0, descending, 1), (x.astype(np.float32),))
        special = np.array([0.0, np.nan, -0.0, np.inf, -np.inf, 1.0, -np.nan, 0.0, -1.0, -0.0])
        for dtype in (d for d in DTYPES if d.is_float):
            for copies in (1, 20):
                x = np.tile(special, copies).astype(dtype.dtype)
                if kind is ArgSort:
                    yield Sample(kind(0, descending), (x,))


def by_comparison(descending: bool) -> Callable[[Any], Any]:
    """A key that orders Python numbers: NaN last, the others by size."""

    def compare(a: Any, b: Any) -> int:
        if a != a or b != b:
            return int(a != a) - int(b != b)
        return (int(a > b) - int(a < b)) * (-1 if descending else 1)

    return cmp_to_key(compare)


def ordered(op: Any, x: Array) -> Array:
    rows = np.moveaxis(x, op.axis, -1)
    at = np.empty(rows.shape, np.int64)
    key = by_comparison(op.descending)
    for i in np.ndindex(rows.shape[:-1]):
        values = [number(v) for v in rows[i]]
        at[i] = sorted(range(len(values)), key=lambda t, v=values: key(v[t]))  # type: ignore[misc]
    y = at if op.name == "argsort" else np.take_along_axis(rows, at, -1)
    if getattr(op, "count", -1) != -1:
        y = y[..., : op.count]
    return np.asarray(np.moveaxis(y, -1, op.axis))


SHORT = [
    Failure(ArgSort(0), (f64(2**32),), ShapeError),
    Failure(ArgSort(0, False, 4), (f64(3),), ShapeError),
    Failure(ArgSort(0, False, -2), (f64(3),), ShapeError),
]


def order(kind: Any) -> Record:
    return Record(
        kind.name,
        partial(samples, kind),
        ordered,
        (0,) if kind is Sort else (),
        edges="which of equal elements moves to which place is a choice",
        failures=(
            Failure(kind(1), (f64(3),), ShapeError),
            Failure(kind(-1), (f64(3),), ShapeError),
            Failure(kind(0), (f64(),), ShapeError),
            *(SHORT if kind is ArgSort else []),
        ),
        symbolic=(
            Symbolic(kind(1), (f64(N, M),), (*SIZES, {"N": 2, "M": 300})),
            Symbolic(kind(0, True), (f64(N, M),), SIZES),
            *([Symbolic(ArgSort(1, True, 1), (f64(N, M),), SIZES)] if kind is ArgSort else []),
            *([Symbolic(ArgSort(0, False, M), (f64(N + M),), SIZES)] if kind is ArgSort else []),
        ),
    )


def search_samples() -> Iterator[Sample]:
    rng = rng_for("searchsorted")
    for right in (False, True):
        for dtype in REALS:
            row = np.sort(draw(rng, (20,), dtype))
            yield Sample(SearchSorted(right), (row, draw(rng, (9,), dtype)))
        for n, shape in ((0, (3,)), (1, (2, 2)), (5, ()), (5, (0, 2)), (1000, (50,))):
            row = np.sort(draw(rng, (n,), float64))
            yield Sample(SearchSorted(right), (row, draw(rng, shape, float64)))
        rows = np.sort(draw(rng, (2, 3, 8), float64))
        yield Sample(SearchSorted(right, 2), (rows, draw(rng, (2, 3, 4, 2), float64)))


def searched(op: Any, row: Array, values: Array) -> Array:
    f = bisect.bisect_right if op.right else bisect.bisect_left
    y = np.empty(values.shape, np.int64)
    for i in np.ndindex(values.shape):
        y[i] = f([number(v) for v in row[i[: op.shared]]], number(values[i]))
    return y


SEARCH = Record(
    "searchsorted",
    search_samples,
    searched,
    failures=(
        Failure(SearchSorted(), (f64(3), TensorType(float32, (2,))), DTypeError),
        Failure(SearchSorted(), (f64(3, 2), f64(2)), ShapeError),
        Failure(SearchSorted(), (f64(), f64(2)), ShapeError),
        Failure(SearchSorted(False, 1), (f64(3, 2), f64(2, 2)), ShapeError),
        Failure(SearchSorted(False, 1), (f64(3, 2), f64()), ShapeError),
    ),
    symbolic=(
        # Rows have to be sorted, which equal elements are.
        Symbolic(SearchSorted(), (f64(N), f64(M, 2)), SIZES, low=1, high=1),
        Symbolic(SearchSorted(True, 1), (f64(N, M), f64(N, 3)), SIZES, low=1, high=1),
    ),
)


def records() -> list[Record]:
    return [order(Sort), order(ArgSort), SEARCH]
