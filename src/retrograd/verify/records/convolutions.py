"""Records of convolution, windows and pooling."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import TensorType, as_dtype, bool_, complex128, float32, float64
from retrograd.ops.conv import Conv
from retrograd.ops.pool import MaxPool, MaxPoolIndex
from retrograd.ops.windows import Fold, Windows
from retrograd.verify.records.common import NUMBERS, SIZES, M, N, b1, f64, uses
from retrograd.verify.records.movement import moving
from retrograd.verify.records.record import (
    Array,
    Failure,
    Record,
    Sample,
    Symbolic,
    draw,
    rng_for,
)


def conv(
    strides: Any = 1,
    low: Any = 0,
    high: Any = 0,
    x_dilation: Any = 1,
    w_dilation: Any = 1,
    groups: Any = 1,
    rank: int = 1,
) -> Conv:
    given = (strides, low, high, x_dilation, w_dilation)
    wide: Any = [v if isinstance(v, tuple) else (v,) * rank for v in given]
    return Conv(wide[0], wide[1], wide[2], wide[3], wide[4], groups)


CONVS: list[tuple[Conv, tuple[int, ...], tuple[int, ...]]] = [
    (conv(), (2, 3, 5), (2, 3, 3)),
    (conv((2, 1), (1, 0), (0, 2), 1, (1, 2), 2, 2), (1, 4, 5, 4), (2, 2, 3, 2)),
    (conv(2, 1, 2, 2, 3), (2, 1, 4), (2, 1, 2)),
    (conv(1, -1, 3, rank=1), (2, 2, 5), (1, 2, 2)),
    (conv(3, 4, -2), (1, 1, 4), (2, 1, 2)),
    (conv(groups=3), (2, 3, 4), (3, 1, 2)),
    (conv(groups=2, low=1, high=1), (1, 2, 4), (4, 1, 3)),
    (conv(rank=2, low=1, high=1), (1, 2, 3, 3), (2, 2, 3, 3)),
    (conv(rank=2), (2, 3, 2, 2), (2, 3, 1, 1)),
    (conv(rank=2), (2, 3, 2, 3), (2, 3, 2, 3)),
    (conv(rank=2, x_dilation=2, low=1, high=(0, 1)), (1, 2, 2, 2), (2, 2, 2, 2)),
    (conv(rank=3, strides=(1, 2, 1)), (1, 2, 2, 3, 2), (1, 2, 2, 2, 1)),
    (conv(), (0, 2, 4), (3, 2, 2)),
    (conv(), (1, 0, 4), (2, 0, 2)),
]


def conv_samples() -> Iterator[Sample]:
    rng = rng_for("conv")
    for k, (op, *shapes) in enumerate(CONVS):
        for dtype in NUMBERS if k < 2 else (float64,):
            arrays = tuple(draw(rng, s, dtype) for s in shapes)
            yield Sample(op, arrays, dtype in (float64, complex128))


def convolved(op: Any, x: Array, w: Array) -> Array:
    """The definition, element by element; halves are summed in float32."""
    dtype = x.dtype
    if as_dtype(dtype).is_half:
        x, w = x.astype(np.float32), w.astype(np.float32)
    types = (TensorType(as_dtype(a.dtype), a.shape) for a in (x, w))
    y: Any = np.zeros(op.infer(*types).shape, x.dtype)
    own = w.shape[0] // op.groups
    axes = list(zip(op.strides, op.low, op.x_dilation, op.w_dilation, x.shape[2:], strict=True))
    with np.errstate(all="ignore"):
        for n, o, *p in np.ndindex(*y.shape):
            for c, *k in np.ndindex(*w.shape[1:]):
                at = []
                for i, j, (stride, low, gap, dilation, size) in zip(p, k, axes, strict=True):
                    place, off = divmod(i * stride + j * dilation - low, gap)
                    at.append(place if off == 0 and 0 <= place < size else None)
                if None not in at:
                    y[(n, o, *p)] += w[(o, c, *k)] * x[(n, o // own * w.shape[1] + c, *at)]
    return np.asarray(y).astype(dtype)


CONV = Record(
    "conv",
    conv_samples,
    convolved,
    (0, 1),
    ulps=64,
    absolute=64,
    failures=(
        Failure(conv(), (f64(2, 3, 5), TensorType(float32, (2, 3, 3))), DTypeError),
        Failure(conv(), (b1(2, 3, 5), b1(2, 3, 3)), DTypeError),
        Failure(conv(), (f64(2, 3, 5, 5), f64(2, 3, 3)), ShapeError),
        Failure(conv(), (f64(2, 3, 5), f64(2, 3, 3, 3)), ShapeError),
        Failure(conv(), (f64(2, 3, 5), f64(2, 2, 3)), ShapeError),
        Failure(conv(groups=2), (f64(2, 4, 5), f64(3, 2, 3)), ShapeError),
        Failure(conv(), (f64(2, 3, 5), f64(2, 3, 6)), ShapeError),
        Failure(conv(w_dilation=3), (f64(2, 3, 6), f64(2, 3, 3)), ShapeError),
        Failure(conv(), (f64(2, 3, 5), f64(2, 3, 0)), ShapeError),
        Failure(conv(low=4), (f64(2, 3, 0), f64(2, 3, 2)), ShapeError),
        Failure(conv(strides=0), (f64(2, 3, 5), f64(2, 3, 3)), ShapeError),
        Failure(conv(x_dilation=0), (f64(2, 3, 5), f64(2, 3, 3)), ShapeError),
        Failure(conv(w_dilation=0), (f64(2, 3, 5), f64(2, 3, 3)), ShapeError),
        Failure(conv(low=(1, 1)), (f64(2, 3, 5), f64(2, 3, 3)), ShapeError),
    ),
    symbolic=(
        Symbolic(conv(), (f64(N, 2, 6), f64(4, 2, 3)), SIZES),
        Symbolic(conv(low=1, high=1), (f64(N, 2, M + 1), f64(4, 2, 3)), SIZES),
        Symbolic(conv(2, 1, 2, 1, 2), (f64(N, 2, M + 2), f64(4, 2, 2)), SIZES),
        Symbolic(conv(x_dilation=2, low=1), (f64(2, 2, M), f64(N, 2, 2)), SIZES),
        Symbolic(conv(groups=M), (f64(2, 3 * M, 5), f64(2 * M, 3, 2)), SIZES),
        Symbolic(conv(low=M - 1), (f64(N, 2, 4), f64(3, 2, M)), SIZES),
    ),
)

WINDOWS = moving(
    "windows",
    [
        (Windows((3,), (1,), (1,)), [(2, 5)]),
        (Windows((2, 3), (2, 1), (1, 2)), [(2, 5, 6)]),
        (Windows((4,), (1,), (1,)), [(4,)]),
        (Windows((1, 1), (1, 1), (1, 1)), [(2, 3)]),
        (Windows((2, 1), (3, 2), (1, 1)), [(5, 4)]),
        (Windows((2,), (1,), (1,)), [(0, 3)]),
        (Windows((), (), ()), [(3,)]),
    ],
    lambda op, shape, i: (
        *i[: len(shape) - len(op.sizes)],
        *(
            i[len(shape) - len(op.sizes) + a] * s + i[len(shape) + a] * d
            for a, (s, d) in enumerate(zip(op.strides, op.dilations, strict=True))
        ),
    ),
    [
        (Windows((4,), (1,), (1,)), ShapeError, f64(3)),
        (Windows((2,), (1,), (3,)), ShapeError, f64(3)),
        (Windows((0,), (1,), (1,)), ShapeError, f64(3)),
        (Windows((2,), (0,), (1,)), ShapeError, f64(3)),
        (Windows((2,), (1,), (0,)), ShapeError, f64(3)),
        (Windows((2, 2), (1, 1), (1, 1)), ShapeError, f64(3)),
        (Windows((2,), (1, 1), (1,)), ShapeError, f64(3)),
    ],
    [
        (Windows((3,), (1,), (1,)), f64(N, M + 2)),
        (Windows((2,), (2,), (1,)), f64(M + 1)),
        (Windows((M,), (1,), (2,)), f64(N, 2 * M)),
    ],
)


def overlapped(op: Any, x: Array) -> Array:
    rank = len(op.shape)
    at = x.ndim - 2 * rank
    wide = x.astype(np.float32) if as_dtype(x.dtype).is_half else x
    y: Any = np.zeros((*x.shape[:at], *op.shape), wide.dtype)
    with np.errstate(all="ignore"):
        for i in np.ndindex(*x.shape):
            o, k = i[at : at + rank], i[at + rank :]
            place = (a * s + b * d for a, b, s, d in
                     zip(o, k, op.strides, op.dilations, strict=True))  # fmt: skip
            y[(*i[:at], *place)] += wide[i]
    return np.asarray(y).astype(x.dtype)


FOLDS: Sequence[tuple[Any, Sequence[tuple[int, ...]]]] = [
    (Fold((5,), (1,), (1,)), [(2, 3, 3)]),
    (Fold((5, 6), (2, 1), (1, 2)), [(2, 2, 2, 2, 3)]),
    (Fold((4, 7), (2, 3), (1, 1)), [(2, 2, 2, 2, 2)]),
    (Fold((6,), (2,), (1,)), [(3, 2)]),
    (Fold((9,), (4,), (2,)), [(2, 2)]),
    (Fold((4,), (1,), (1,)), [(0, 3, 2)]),
    (Fold((3,), (1,), (1,)), [(3, 1)]),
    (Fold((), (), ()), [(3,)]),
]
FOLD = Record(
    "fold",
    lambda: (s for s in uses("fold", FOLDS) if s.inputs[0].dtype != np.bool_),
    overlapped,
    (0,),
    absolute=16,
    failures=(
        Failure(Fold((5,), (1,), (1,)), (f64(2, 3),), ShapeError),
        Failure(Fold((5,), (1,), (1,)), (f64(3),), ShapeError),
        Failure(Fold((2,), (1,), (1,)), (f64(1, 3),), ShapeError),
        Failure(Fold((5,), (1,), (1,)), (b1(3, 3),), DTypeError),
    ),
    symbolic=(
        Symbolic(Fold((M + 2,), (1,), (1,)), (f64(N, M, 3),), SIZES),
        Symbolic(Fold((2 * M,), (2,), (1,)), (f64(N, M, 2),), SIZES),
        Symbolic(Fold((2 * M + 1, N + 1), (2, 1), (1, 1)), (f64(M, N, 2, 2),), SIZES[:2]),
    ),
)

Pool = tuple[tuple[int, ...], ...]
POOLS: list[tuple[Pool, tuple[int, ...]]] = [
    (((2,), (2,), (1,), (0,), (0,)), (2, 5)),
    (((3, 2), (2, 1), (1, 2), (1, 0), (1, 1)), (2, 5, 4)),
    (((2, 2), (2, 2), (1, 1), (0, 0), (0, 0)), (2, 3, 4, 5)),
    (((3,), (1,), (1,), (1,), (1,)), (3, 4)),
    (((2, 2, 1), (1, 2, 1), (1, 1, 1), (0, 1, 0), (0, 0, 0)), (2, 3, 2)),
    (((7, 6), (1, 1), (1, 1), (0, 1), (1, 0)), (2, 7, 7)),
    (((41,), (3,), (1,), (0,), (0,)), (50,)),
    (((2,), (2,), (1,), (0,), (0,)), (0, 4)),
    (((1,), (2,), (1,), (0,), (0,)), (5,)),
]


def pool_samples(kind: Any) -> Iterator[Sample]:
    """Distinct numbers in float64, many equal ones in every dtype, NaN and infinities too."""
    rng = rng_for(kind.name)
    for k, (attributes, shape) in enumerate(POOLS):
        size = int(np.prod(shape))
        x = (rng.permutation(size) - size / 2).reshape(shape)
        yield Sample(kind(*attributes), (x,), True)
        if k < 2:
            for dtype in [d for d in NUMBERS if not d.is_complex]:
                yield Sample(kind(*attributes), (draw(rng, shape, dtype),))
        odd = draw(rng, shape, float64)
        special = rng.choice([np.nan, -np.inf, np.inf, 0.0], shape)
        yield Sample(kind(*attributes), (np.where(rng.random(shape) < 0.3, special, odd),))
        yield Sample(kind(*attributes), (np.full(shape, -np.inf),))
    yield Sample(kind((3,), (1,), (1,), (1,), (1,)), (np.zeros((2, 4), np.uint8),))


def greatest(op: Any, x: Array) -> tuple[Array, Array]:
    """Values and positions of the maxima, window by window; a NaN is greater than all."""
    at = x.ndim - len(op.sizes)
    shape = op.infer(TensorType(as_dtype(x.dtype), x.shape)).shape
    values: Any = np.zeros(shape, x.dtype)
    index = np.zeros(shape, np.int32)
    for i in np.ndindex(*shape):
        found: Any = None
        for k, place in enumerate(itertools.product(*map(range, op.sizes))):
            where = [o * s + j * d - low for o, s, j, d, low in
                     zip(i[at:], op.strides, place, op.dilations, op.low, strict=True)]  # fmt: skip
            if any(not 0 <= w < n for w, n in zip(where, x.shape[at:], strict=True)):
                continue
            value = x[(*i[:at], *where)]
            if found is None or value > found or (value != value and found == found):
                found, index[i] = value, k
        values[i] = found
    return values, index


def pool(kind: Any, which: int) -> Record:
    one = ((2,), (1,), (1,), (0,), (0,))
    return Record(
        kind.name,
        partial(pool_samples, kind),
        lambda op, x: greatest(op, x)[which],
        (0,) if which == 0 else (),
        failures=(
            Failure(kind(*one), (TensorType(bool_, (3,)),), DTypeError),
            Failure(kind(*one), (f64(1),), ShapeError),
            Failure(kind(*one), (f64(),), ShapeError),
            Failure(kind((2,), (0,), (1,), (0,), (0,)), (f64(3),), ShapeError),
            Failure(kind((2,), (1,), (1,), (-1,), (0,)), (f64(3),), ShapeError),
            Failure(kind((2,), (1,), (1,), (1,), (0, 0)), (f64(3),), ShapeError),
            Failure(kind((2,), (1,), (1,), (2,), (2,)), (f64(0),), ShapeError),
        ),
        symbolic=(
            Symbolic(kind(*one), (f64(N, M + 1),), SIZES),
            Symbolic(kind((2, 2), (2, 2), (1, 1), (0, 1), (0, 1)), (f64(N, 4, M + 1),), SIZES),
            Symbolic(kind((40,), (2,), (1,), (0,), (0,)), (f64(N, 40 + M),), SIZES),
        ),
    )


def records() -> list[Record]:
    return [CONV, WINDOWS, FOLD, pool(MaxPool, 0), pool(MaxPoolIndex, 1)]
