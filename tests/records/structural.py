"""Records of the ops with attributes: movement, reductions, indexing, contraction, leaves."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import scipy.special

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import (
    DTYPES,
    Dim,
    TensorType,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
    uint32,
)
from retrograd.ops.control import Alias, StopGradient
from retrograd.ops.index import Gather, ScatterAdd
from retrograd.ops.leaf import Constant, Input, Iota, SizeOf
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.random import RandomBits
from retrograd.ops.reduce import (
    ArgMax,
    ArgMin,
    CumSum,
    LogSumExp,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from retrograd.ops.shape import Concat, Expand, Flip, Pad, Permute, Reshape, Slice
from tests.records.elementwise import number, wrap
from tests.records.record import (
    FLOATS,
    INTEGERS,
    SHAPES,
    Array,
    Failure,
    Record,
    Sample,
    Symbolic,
    draw,
    rng_for,
)

N, M = Dim("N"), Dim("M")
SIZES = ({"N": 3, "M": 4}, {"N": 1, "M": 2}, {"N": 0, "M": 1})


def f64(*shape: int | Dim) -> TensorType:
    return TensorType(float64, shape)


def i64(*shape: int | Dim) -> TensorType:
    return TensorType(int64, shape)


def b1(*shape: int | Dim) -> TensorType:
    return TensorType(bool_, shape)


def uses(name: str, cases: Sequence[tuple[Any, Sequence[tuple[int, ...]]]]) -> Iterator[Sample]:
    """Each op on float64 inputs of the given shapes; the first two cases in every dtype too."""
    rng = rng_for(name)
    for k, (op, shapes) in enumerate(cases):
        for dtype in DTYPES if k < 2 else (float64,):
            yield Sample(op, tuple(draw(rng, s, dtype) for s in shapes), dtype is float64)


def moving(
    name: str,
    cases: Sequence[tuple[Any, Sequence[tuple[int, ...]]]],
    where: Callable[..., Any],
    failures: Sequence[tuple[Any, type[ShapeError | DTypeError], Any]],
    symbolic: Sequence[tuple[Any, TensorType]],
) -> Record:
    """An op that moves elements: `where(op, shape)` maps each index of the result to one of the
    input."""

    def independent(op: Any, x: Array) -> Array:
        shape = op.infer(TensorType(float64, x.shape)).shape
        y = np.empty(shape, x.dtype)
        for i in np.ndindex(y.shape):
            y[i] = x[where(op, x.shape, i)]
        return y

    return Record(
        name,
        partial(uses, name, cases),
        independent,
        (0,),
        failures=tuple(Failure(op, (t,), error) for op, error, t in failures),
        symbolic=tuple(Symbolic(op, (t,), SIZES) for op, t in symbolic),
    )


def _flat(op: Any, shape: tuple[int, ...], i: tuple[int, ...]) -> tuple[int, ...]:
    at = 0
    for k, n in zip(i, op.shape, strict=True):
        at = at * n + k
    found = []
    for n in reversed(shape):
        at, k = divmod(at, n)
        found.append(k)
    return tuple(reversed(found))


def _permuted(op: Any, shape: tuple[int, ...], i: tuple[int, ...]) -> tuple[int, ...]:
    at = [0] * len(shape)
    for k, axis in zip(i, op.perm, strict=True):
        at[axis] = k
    return tuple(at)


MOVING = [
    moving(
        "expand",
        [
            (Expand((4, 3), (0,)), [(3,)]),
            (Expand((2, 3, 4), (1,)), [(2, 4)]),
            (Expand((2, 3), (0, 1)), [()]),
            (Expand((2, 1, 3, 4), (1, 3)), [(2, 3)]),
            (Expand((0, 3), (0,)), [(3,)]),
            (Expand((5, 0), (0,)), [(0,)]),
            (Expand((2, 3), ()), [(2, 3)]),
        ],
        lambda op, shape, i: tuple(k for a, k in enumerate(i) if a not in op.axes),
        [
            (Expand((4, 3), (0,)), ShapeError, f64(2)),
            (Expand((4, 3), (2,)), ShapeError, f64(4, 3)),
            (Expand((4, 3), (0, 0)), ShapeError, f64(3)),
            (Expand((4, 3), (1, 0)), ShapeError, f64()),
            (Expand((-4, 3), (0,)), ShapeError, f64(3)),
        ],
        [(Expand((N, 2, M), (1,)), f64(N, M)), (Expand((N, M, N), (0, 2)), f64(M))],
    ),
    moving(
        "reshape",
        [
            (Reshape((6,)), [(2, 3)]),
            (Reshape((3, 4)), [(2, 3, 2)]),
            (Reshape(()), [(1, 1)]),
            (Reshape((1, 1)), [()]),
            (Reshape((0, 5)), [(3, 0)]),
            (Reshape((2, 2, 3, 1)), [(4, 3)]),
        ],
        _flat,
        [
            (Reshape((4,)), ShapeError, f64(2, 3)),
            (Reshape((-2, -3)), ShapeError, f64(2, 3)),
            (Reshape((N, 2)), ShapeError, f64(2, M)),
        ],
        [(Reshape((N * 2, M)), f64(N, 2, M)), (Reshape((N, M)), f64(N * M))],
    ),
    moving(
        "permute",
        [
            (Permute((1, 0)), [(2, 3)]),
            (Permute((2, 0, 1)), [(2, 3, 4)]),
            (Permute(()), [()]),
            (Permute((0, 1)), [(2, 3)]),
            (Permute((3, 1, 0, 2)), [(2, 1, 3, 2)]),
            (Permute((1, 0)), [(0, 3)]),
        ],
        _permuted,
        [
            (Permute((0, 0)), ShapeError, f64(2, 3)),
            (Permute((0,)), ShapeError, f64(2, 3)),
            (Permute((0, 2)), ShapeError, f64(2, 3)),
        ],
        [(Permute((2, 0, 1)), f64(N, 2, M))],
    ),
    moving(
        "slice",
        [
            (Slice((1,), (5,), (1,)), [(7,)]),
            (Slice((0, 1), (2, 7), (1, 3)), [(3, 8)]),
            (Slice((0,), (7,), (3,)), [(10,)]),
            (Slice((2,), (2,), (1,)), [(5,)]),
            (Slice((2,), (2,), (3,)), [(5,)]),
            (Slice((0, 3), (0, 3), (2, 1)), [(0, 4)]),
            (Slice((), (), ()), [()]),
            (Slice((0, 0, 1, 0), (2, 1, 3, 1), (1, 1, 2, 2)), [(2, 1, 3, 2)]),
            (Slice((4,), (5,), (9,)), [(5,)]),
            (Slice((0,), (-1,), (2,)), [(0,)]),
        ],
        lambda op, shape, i: tuple(
            a + k * s for a, k, s in zip(op.starts, i, op.steps, strict=True)
        ),
        [
            (Slice((1,), (5,), (1,)), ShapeError, f64(4)),
            (Slice((-1,), (3,), (1,)), ShapeError, f64(4)),
            (Slice((3,), (1,), (1,)), ShapeError, f64(4)),
            (Slice((0,), (4,), (0,)), ShapeError, f64(4)),
            (Slice((0,), (4,), (-1,)), ShapeError, f64(4)),
            (Slice((0,), (4,), (1,)), ShapeError, f64(4, 4)),
            (Slice((-1,), (3,), (1,)), ShapeError, f64(N)),
            (Slice((5,), (5,), (1,)), ShapeError, f64(4)),
        ],
        [
            (Slice((0, 1), (N, M), (1, 1)), f64(N, M)),
            (Slice((0, 0), (N, M), (2, 3)), f64(N, M)),
            (Slice((N,), (2 * N,), (2,)), f64(2 * N)),
            (Slice((1,), (N + 1,), (2,)), f64(N + 2)),
        ],
    ),
    moving(
        "flip",
        [
            (Flip((0,)), [(4,)]),
            (Flip((0, 2)), [(2, 3, 4)]),
            (Flip(()), [(3,)]),
            (Flip((1,)), [(3, 0)]),
            (Flip((3, 0)), [(2, 1, 3, 2)]),
        ],
        lambda op, shape, i: tuple(
            n - 1 - k if a in op.axes else k for a, (k, n) in enumerate(zip(i, shape, strict=True))
        ),
        [
            (Flip((1,)), ShapeError, f64(3)),
            (Flip((-1,)), ShapeError, f64(3)),
            (Flip((0, 0)), ShapeError, f64(3)),
        ],
        [(Flip((0, 1)), f64(N, M))],
    ),
]


def padded(op: Any, x: Array, value: Array) -> Array:
    axes = zip(x.shape, op.low, op.high, op.interior, strict=True)
    rows = []  # per axis, for each place of the result, the index of the element or None
    for n, low, high, interior in axes:
        inside = list(itertools.chain(*[[k] + [None] * interior for k in range(n)]))
        rows.append([None] * low + inside[: len(inside) - interior if n else 0] + [None] * high)
    y = np.empty([len(r) for r in rows], x.dtype)
    for i in np.ndindex(y.shape):
        at = [row[k] for row, k in zip(rows, i, strict=True)]
        y[i] = value if None in at else x[tuple(at)]  # type: ignore[arg-type]
    return y


PAD = Record(
    "pad",
    partial(
        uses,
        "pad",
        [
            (Pad((1,), (2,), (0,)), [(3,), ()]),
            (Pad((1, 0), (0, 2), (1, 2)), [(2, 3), ()]),
            (Pad((0,), (0,), (0,)), [(3,), ()]),
            (Pad((), (), ()), [(), ()]),
            (Pad((1,), (1,), (0,)), [(0,), ()]),
            (Pad((1,), (1,), (3,)), [(0,), ()]),
            (Pad((0,), (0,), (3,)), [(1,), ()]),
            (Pad((0, 1, 2, 0), (1, 0, 0, 0), (0, 1, 2, 0)), [(2, 1, 3, 2), ()]),
        ],
    ),
    padded,
    (0, 1),
    failures=(
        Failure(Pad((1,), (1,), (0,)), (f64(3), f64(1)), ShapeError),
        Failure(Pad((1,), (1,), (0,)), (f64(3), TensorType(float32, ())), DTypeError),
        Failure(Pad((1,), (1,), (0,)), (f64(3, 3), f64()), ShapeError),
        Failure(Pad((-1,), (1,), (0,)), (f64(3), f64()), ShapeError),
        Failure(Pad((1,), (1,), (-1,)), (f64(3), f64()), ShapeError),
    ),
    symbolic=(
        Symbolic(Pad((1, 0), (0, M), (0, 0)), (f64(N, M), f64()), SIZES),
        Symbolic(Pad((1, N), (0, 2), (2, 1)), (f64(N, M), f64()), SIZES),
    ),
)


def joined(op: Any, *arrays: Array) -> Array:
    rows = [list(np.moveaxis(a, op.axis, 0)) for a in arrays]
    flat = [row for part in rows for row in part]
    if not flat:
        return arrays[0]
    return np.asarray(np.stack(flat, op.axis))


CONCAT = Record(
    "concat",
    partial(
        uses,
        "concat",
        [
            (Concat(0), [(2,), (3,)]),
            (Concat(1), [(2, 1), (2, 3), (2, 2)]),
            (Concat(0), [(3,)]),
            (Concat(0), [(0,), (3,)]),
            (Concat(0), [(0,), (0,)]),
            (Concat(2), [(2, 1, 1, 2), (2, 1, 2, 2)]),
        ],
    ),
    joined,
    (0, 1, 2),
    failures=(
        Failure(Concat(0), (), ShapeError),
        Failure(Concat(1), (f64(2), f64(2)), ShapeError),
        Failure(Concat(0), (f64(2, 2), f64(2, 3)), ShapeError),
        Failure(Concat(0), (f64(2), f64(2, 2)), ShapeError),
        Failure(Concat(0), (f64(2), TensorType(float32, (2,))), DTypeError),
    ),
    symbolic=(Symbolic(Concat(1), (f64(N, M), f64(N, 2), f64(N, M)), SIZES),),
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
        failures=tuple(failures),
        symbolic=(Symbolic(kind((0, 2)), (x,), sizes), Symbolic(kind((1,)), (x,), SIZES)),
    )


NUMBERS, ALL = (*INTEGERS, *FLOATS), tuple(DTYPES)


def argument(name: str, kind: Any, f: Callable[[list[Any]], Any]) -> Record:
    def independent(op: Any, x: Array) -> Array:
        rows = np.moveaxis(x, op.axis, -1)
        y = np.empty(rows.shape[:-1], np.int64)
        for i in np.ndindex(y.shape):
            values = [number(v) for v in rows[i]]
            y[i] = values.index(f(values))
        return y

    cases = [
        (kind(0), [(7,)]),
        (kind(1), [(3, 5)]),
        (kind(2), [(2, 1, 3, 2)]),
        (kind(1), [(0, 3)]),
        (kind(0), [(1,)]),
    ]
    return Record(
        name,
        partial(uses, name, cases),
        independent,
        failures=(
            Failure(kind(1), (f64(3),), ShapeError),
            Failure(kind(-1), (f64(3),), ShapeError),
            Failure(kind(0), (f64(0, 2),), ShapeError),
        ),
        symbolic=(Symbolic(kind(1), (f64(N, M),), SIZES),),
    )


def running(op: Any, x: Array) -> Array:
    rows = np.moveaxis(np.empty_like(x), op.axis, -1)
    source = np.moveaxis(x, op.axis, -1)
    for i in np.ndindex(rows.shape[:-1]):
        values = [number(v) for v in source[i]]
        ordered = values[::-1] if op.reverse else values
        total = list(itertools.accumulate(ordered))
        if np.issubdtype(x.dtype, np.integer):
            total = [wrap(v, x.dtype) for v in total]
        rows[i] = total[::-1] if op.reverse else total
    return np.asarray(np.moveaxis(rows, -1, op.axis))


def cumsum_samples() -> Iterator[Sample]:
    rng = rng_for("cumsum")
    for reverse in (False, True):
        for dtype in NUMBERS:
            yield Sample(CumSum(0, reverse), (draw(rng, (7,), dtype),), dtype is float64)
        for shape, axis in (((3, 4), 1), ((2, 1, 3, 2), 2), ((0, 3), 0), ((3, 0), 0), ((1,), 0)):
            yield Sample(CumSum(axis, reverse), (draw(rng, shape, float64),), True)


def total(values: list[Any]) -> Any:
    return math.fsum(values) if values and isinstance(values[0], float) else sum(values)


def log_total(values: list[Any]) -> Any:
    return scipy.special.logsumexp(values) if values else -math.inf


REDUCTIONS = [
    reduction("reduce_sum", ReduceSum, total, NUMBERS),
    reduction("reduce_prod", ReduceProd, lambda v: reduce(operator.mul, v, 1), NUMBERS),
    reduction("reduce_max", ReduceMax, max, ALL, empty=False, distinct=True),
    reduction("reduce_min", ReduceMin, min, ALL, empty=False, distinct=True),
    reduction("logsumexp", LogSumExp, log_total, FLOATS),
    reduction("reduce_any", ReduceAny, any, (bool_,)),
    reduction("reduce_all", ReduceAll, all, (bool_,)),
    argument("argmax", ArgMax, max),
    argument("argmin", ArgMin, min),
    Record(
        "cumsum",
        cumsum_samples,
        running,
        (0,),
        failures=(
            Failure(CumSum(1), (f64(3),), ShapeError),
            Failure(CumSum(0), (f64(),), ShapeError),
            Failure(CumSum(0), (TensorType(bool_, (3,)),), DTypeError),
        ),
        symbolic=(
            Symbolic(CumSum(1), (f64(N, M),), SIZES),
            Symbolic(CumSum(0, True), (f64(N, M),), SIZES),
        ),
    ),
]


GATHERS: list[tuple[tuple[int, int], tuple[int, ...], tuple[int, ...]]] = [
    ((0, 0), (5,), (3,)),
    ((1, 0), (2, 4, 3), (2, 2)),
    ((0, 0), (5, 2), ()),
    ((1, 1), (2, 4), (2, 3)),
    ((2, 1), (2, 3, 4, 2), (2, 5)),
    ((2, 2), (2, 2, 3), (2, 2)),
    ((0, 0), (3,), (0,)),
    ((1, 0), (0, 3), (2,)),
    ((0, 0), (0, 3), (0,)),
]


def index_samples(name: str) -> Iterator[Sample]:
    rng = rng_for(name)
    for k, ((axis, shared), shape, index_shape) in enumerate(GATHERS):
        for dtype in (*NUMBERS, bool_) if k == 0 else (float64,):
            for counts in INTEGERS if k == 0 and dtype is float64 else (int64,):
                low = 0 if counts.kind == "uint" else -shape[axis]
                index = rng.integers(low, max(shape[axis], low + 1), index_shape)
                x = draw(rng, shape, dtype)
                inputs: tuple[Any, ...] = (x, np.asarray(index, counts.dtype))
                if name == "gather":
                    yield Sample(Gather(axis, shared), inputs, dtype is float64)
                elif dtype is not bool_:
                    result = shape[:axis] + index_shape[shared:] + shape[axis + 1 :]
                    inputs += (draw(rng, result, dtype),)
                    yield Sample(ScatterAdd(axis, shared), inputs, dtype is float64)


def places(op: Any, x: Array, index: Array) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Pairs of an index of what is read or written, and the index of it in `x`."""
    own = index.ndim - op.shared
    shape = x.shape[: op.axis] + index.shape[op.shared :] + x.shape[op.axis + 1 :]
    for i in np.ndindex(shape):
        s, p = i[: op.shared], i[op.shared : op.axis]
        k, q = i[op.axis : op.axis + own], i[op.axis + own :]
        at = int(index[s + k])
        yield i, (*s, *p, at % x.shape[op.axis], *q)


def gathered(op: Any, x: Array, index: Array) -> Array:
    own = index.shape[op.shared :]
    y = np.empty(x.shape[: op.axis] + own + x.shape[op.axis + 1 :], x.dtype)
    for i, at in places(op, x, index):
        y[i] = x[at]
    return y


def scattered(op: Any, x: Array, index: Array, updates: Array) -> Array:
    y = x.copy()
    for i, at in places(op, x, index):
        with np.errstate(over="ignore"):
            y[at] = y[at] + updates[i]
    return y


GATHER = Record(
    "gather",
    partial(index_samples, "gather"),
    gathered,
    (0,),
    failures=(
        Failure(Gather(0), (f64(3), f64(2)), DTypeError),
        Failure(Gather(0), (f64(3), TensorType(bool_, (2,))), DTypeError),
        Failure(Gather(1), (f64(3), i64(2)), ShapeError),
        Failure(Gather(-1), (f64(3), i64(2)), ShapeError),
        Failure(Gather(0), (f64(), i64(2)), ShapeError),
        Failure(Gather(0, 1), (f64(3, 2), i64(3)), ShapeError),
        Failure(Gather(1, 1), (f64(3, 2), i64(2)), ShapeError),
        Failure(Gather(1, 1), (f64(3, 2), i64()), ShapeError),
    ),
    symbolic=(
        Symbolic(Gather(0), (f64(N + 2, 2), i64(M)), SIZES, below=2),
        Symbolic(Gather(1, 1), (f64(N, M), i64(N, 3)), SIZES),
    ),
)
SCATTER = Record(
    "scatter_add",
    partial(index_samples, "scatter_add"),
    scattered,
    (0, 2),
    failures=(
        Failure(ScatterAdd(0), (f64(3), f64(2), f64(2)), DTypeError),
        Failure(ScatterAdd(0), (f64(3), i64(2), TensorType(float32, (2,))), DTypeError),
        Failure(ScatterAdd(0), (f64(3), i64(2), f64(3)), ShapeError),
        Failure(ScatterAdd(1), (f64(3), i64(2), f64(3)), ShapeError),
        Failure(ScatterAdd(0), (b1(3), i64(2), b1(2)), DTypeError),
    ),
    symbolic=(
        Symbolic(ScatterAdd(0), (f64(N + 2, 2), i64(M), f64(M, 2)), SIZES, below=2),
        Symbolic(ScatterAdd(1, 1), (f64(N, M), i64(N, 3), f64(N, 3)), SIZES),
    ),
)


DOTS: list[tuple[Any, list[tuple[int, ...]]]] = [
    (DotGeneral((1,), (0,)), [(2, 3), (3, 4)]),
    (DotGeneral((2,), (1,), (0,), (0,)), [(2, 3, 4), (2, 4, 2)]),
    (DotGeneral((0, 2), (1, 0)), [(2, 3, 4), (4, 2, 3)]),
    (DotGeneral((3, 0), (0, 2), (2,), (1,)), [(2, 1, 3, 2), (2, 3, 2)]),
    (DotGeneral((0,), (0,)), [(3,), (3,)]),
    (DotGeneral((), ()), [(2,), (3,)]),
    (DotGeneral((), ()), [(), ()]),
    (DotGeneral((), (), (0,), (0,)), [(3,), (3,)]),
    (DotGeneral((), (), (0, 1), (1, 0)), [(2, 3), (3, 2, 2)]),
    (DotGeneral((1,), (0,)), [(2, 0), (0, 3)]),
    (DotGeneral((1,), (0,)), [(0, 3), (3, 2)]),
    (DotGeneral((1, 2), (3, 1), (3,), (0,)), [(1, 2, 3, 2), (2, 3, 2, 2)]),
]


def contracted(op: Any, a: Array, b: Array) -> Array:
    """By einsum, in the dtype itself, float32 for half precision, or Python integers."""
    letters = iter("abcdefghijkl")
    left = ["" for _ in a.shape]
    right = ["" for _ in b.shape]
    for i, j in zip((*op.a_batch, *op.a_contract), (*op.b_batch, *op.b_contract), strict=True):
        left[i] = right[j] = next(letters)
    left = [x or next(letters) for x in left]
    right = [x or next(letters) for x in right]
    batch = [left[i] for i in op.a_batch]
    rest = [x for x in left if x not in right] + [x for x in right if x not in left]
    formula = f"{''.join(left)},{''.join(right)}->{''.join(batch + rest)}"
    if np.issubdtype(a.dtype, np.integer):
        exact = np.einsum(formula, a.astype(object), b.astype(object))
        flat = [wrap(v, a.dtype) for v in np.asarray(exact, object).ravel()]
        return np.array(flat, a.dtype).reshape(np.shape(exact))
    wide = a.dtype if a.dtype.itemsize > 2 else np.dtype(np.float32)
    return np.asarray(np.einsum(formula, a.astype(wide), b.astype(wide)), wide).astype(a.dtype)


def dot_samples() -> Iterator[Sample]:
    rng = rng_for("dot_general")
    for k, (op, shapes) in enumerate(DOTS):
        for dtype in NUMBERS if k < 2 else (float64,):
            yield Sample(op, tuple(draw(rng, s, dtype) for s in shapes), dtype is float64)


DOT = Record(
    "dot_general",
    dot_samples,
    contracted,
    (0, 1),
    failures=(
        Failure(DotGeneral((1,), (0,)), (f64(2, 3), f64(4, 2)), ShapeError),
        Failure(DotGeneral((1,), (0,)), (f64(2, 3), TensorType(float32, (3, 2))), DTypeError),
        Failure(DotGeneral((1,), (0,)), (TensorType(bool_, (2, 2)),) * 2, DTypeError),
        Failure(DotGeneral((2,), (0,)), (f64(2, 3), f64(3, 2)), ShapeError),
        Failure(DotGeneral((-1,), (0,)), (f64(2, 3), f64(3, 2)), ShapeError),
        Failure(DotGeneral((1, 1), (0, 1)), (f64(2, 3), f64(3, 3)), ShapeError),
        Failure(DotGeneral((1,), ()), (f64(2, 3), f64(3, 3)), ShapeError),
        Failure(DotGeneral((1,), (), (), (0,)), (f64(2, 3), f64(3, 3)), ShapeError),
    ),
    symbolic=(
        Symbolic(DotGeneral((1,), (0,)), (f64(N, M), f64(M, 2)), SIZES),
        Symbolic(DotGeneral((2,), (1,), (0,), (0,)), (f64(N, 2, M), f64(N, M, 3)), SIZES),
    ),
)


def constant_samples() -> Iterator[Sample]:
    rng = rng_for("constant")
    for dtype in DTYPES:
        yield Sample(Constant(draw(rng, (3,), dtype), (3,)), ())
        yield Sample(Constant(draw(rng, (), dtype), (2, 3)), ())
    for shape in SHAPES:
        yield Sample(Constant(draw(rng, shape, float32), shape), ())


def filled(op: Any) -> Array:
    y = np.empty(op.shape, op.value.dtype)
    for i in np.ndindex(y.shape):
        y[i] = op.value[i] if op.value.ndim else op.value
    return y


def iota_samples() -> Iterator[Sample]:
    for dtype in DTYPES:
        yield Sample(Iota((5,), 0, dtype), ())
    for shape in SHAPES:
        for axis in range(len(shape)):
            yield Sample(Iota(shape, axis, int64), ())
    yield Sample(Iota((300,), 0, int8), ())
    yield Sample(Iota((2100,), 0, float16), ())


def counted(op: Any) -> Array:
    y = np.empty(op.shape, op.dtype.dtype)
    for i in np.ndindex(y.shape):
        y[i] = wrap(i[op.axis], y.dtype) if op.dtype.is_integer else i[op.axis]
    return y


def size_value(op: Any) -> Array:
    value = wrap(op.size, op.dtype.dtype) if op.dtype.is_integer else op.size
    return np.asarray(value, op.dtype.dtype)


LEAVES = [
    Record("input", lambda: iter([Sample(Input(float32, (2, 3)), ())]), None),
    Record(
        "constant",
        constant_samples,
        filled,
        symbolic=(Symbolic(Constant(np.float64(2.5), (N, 2)), (), SIZES),),
    ),
    Record(
        "iota",
        iota_samples,
        counted,
        failures=(Failure(Iota((3,), 1, int64), (), ShapeError),),
        symbolic=(Symbolic(Iota((N, M), 1, float64), (), SIZES),),
    ),
    Record(
        "size_of",
        lambda: iter([Sample(SizeOf(n, d), ()) for n in (0, 5, 300) for d in DTYPES]),
        size_value,
        symbolic=(Symbolic(SizeOf(N * 2 + M, float64), (), SIZES),),
    ),
]


def random123(k0: int, k1: int, x0: int, x1: int) -> tuple[int, int]:
    """Threefry-2x32-20, from the pseudocode of the paper, in Python integers."""
    mask = 0xFFFFFFFF
    ks = (k0, k1, k0 ^ k1 ^ 0x1BD11BDA)
    rotations = (13, 15, 26, 6, 17, 29, 16, 24)
    x0, x1 = (x0 + k0) & mask, (x1 + k1) & mask
    for r in range(20):
        x0 = (x0 + x1) & mask
        n = rotations[r % 8]
        x1 = (((x1 << n) | (x1 >> (32 - n))) & mask) ^ x0
        if r % 4 == 3:
            j = r // 4 + 1
            x0, x1 = (x0 + ks[j % 3]) & mask, (x1 + ks[(j + 1) % 3] + j) & mask
    return x0, x1


def random_samples() -> Iterator[Sample]:
    rng = rng_for("random_bits")
    for keys, shape in (
        ((), (5,)),
        ((), ()),
        ((3,), (2, 3)),
        ((2, 2), ()),
        ((), (0,)),
        ((0,), (3,)),
    ):
        key = rng.integers(0, 2**32, (*keys, 2)).astype(np.uint32)
        yield Sample(RandomBits(shape), (key,))


def random_words(op: Any, key: Array) -> Array:
    y = np.empty((*key.shape[:-1], *op.shape), np.uint32)
    for i in np.ndindex(key.shape[:-1]):
        for n, j in enumerate(np.ndindex(*op.shape)):
            y[i + j] = random123(int(key[i][0]), int(key[i][1]), n, 0)[0]
    return y


RANDOM = Record(
    "random_bits",
    random_samples,
    random_words,
    failures=(
        Failure(RandomBits((3,)), (TensorType(uint32, (3,)),), ShapeError),
        Failure(RandomBits((3,)), (TensorType(uint32, ()),), ShapeError),
        Failure(RandomBits((3,)), (TensorType(uint8, (2,)),), DTypeError),
        Failure(RandomBits((-3,)), (TensorType(uint32, (2,)),), ShapeError),
    ),
    symbolic=(Symbolic(RandomBits((N, M)), (TensorType(uint32, (2,)),), SIZES, below=99),),
)


def same_samples(op: Any) -> Iterator[Sample]:
    rng = rng_for(op.name)
    for dtype in DTYPES:
        yield Sample(op, (draw(rng, (5,), dtype),), dtype is float64)
    for shape in SHAPES:
        yield Sample(op, (draw(rng, shape, float64),), True)


def records() -> list[Record]:
    same = [
        Record(
            op.name,
            partial(same_samples, op),
            lambda op, x: np.array(x),
            wrt,
            symbolic=(Symbolic(op, (f64(N, 2),), SIZES),),
        )
        for op, wrt in ((StopGradient(), ()), (Alias(), (0,)))
    ]
    return [*MOVING, PAD, CONCAT, *REDUCTIONS, GATHER, SCATTER, DOT, *LEAVES, RANDOM, *same]
