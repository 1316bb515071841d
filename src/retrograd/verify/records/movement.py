"""Records of the ops that move elements."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import (
    TensorType,
    float32,
    float64,
)
from retrograd.ops.shape import Concat, Expand, Flip, Pad, Permute, Reshape, Slice, SliceSet
from retrograd.verify.records.common import SIZES, M, N, f64, uses
from retrograd.verify.records.record import (
    Array,
    Failure,
    Record,
    Symbolic,
)


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
        y[i] = value if None in at else x[tuple(at)]
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


def replaced(op: Any, x: Array, value: Array) -> Array:
    y = x.copy()
    for i in np.ndindex(value.shape):
        y[tuple(a + k * s for a, k, s in zip(op.starts, i, op.steps, strict=True))] = value[i]
    return y


SLICE_SET = Record(
    "slice_set",
    partial(
        uses,
        "slice_set",
        [
            (SliceSet((1,), (3,), (1,)), [(4,), (2,)]),
            (SliceSet((0, 1), (3, 5), (2, 3)), [(3, 5), (2, 2)]),
            (SliceSet((0,), (3,), (1,)), [(3,), (3,)]),
            (SliceSet((), (), ()), [(), ()]),
            (SliceSet((2,), (4,), (5,)), [(4,), (1,)]),
            (SliceSet((1, 0), (1, 2), (1, 1)), [(3, 2), (0, 2)]),
            (SliceSet((0, 0, 1, 2), (2, 1, 4, 3), (1, 1, 2, 1)), [(2, 1, 4, 3), (2, 1, 2, 1)]),
        ],
    ),
    replaced,
    (0, 1),
    failures=(
        Failure(SliceSet((1,), (3,), (1,)), (f64(3), f64(3)), ShapeError),
        Failure(SliceSet((-1,), (1,), (1,)), (f64(3), f64(2)), ShapeError),
        Failure(SliceSet((0,), (4,), (2,)), (f64(3), f64(2)), ShapeError),
        Failure(SliceSet((0,), (1,), (0,)), (f64(3), f64(1)), ShapeError),
        Failure(SliceSet((0,), (1,), (1,)), (f64(3, 3), f64(1, 1)), ShapeError),
        Failure(SliceSet((0,), (1,), (1,)), (f64(3), f64()), ShapeError),
        Failure(SliceSet((0,), (1,), (1,)), (f64(3), TensorType(float32, (1,))), DTypeError),
    ),
    symbolic=(
        Symbolic(SliceSet((0, 1), (N, M + 1), (1, 1)), (f64(N, M + 1), f64(N, M)), SIZES),
        Symbolic(SliceSet((N,), (3 * N,), (2,)), (f64(3 * N), f64(N)), SIZES),
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


def records() -> list[Record]:
    return [*MOVING, PAD, SLICE_SET, CONCAT]
