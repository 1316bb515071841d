"""Records of the ops without inputs, of random bits, and of the ops that steer differentiation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import (
    DTYPES,
    TensorType,
    float16,
    float32,
    float64,
    int8,
    int64,
    uint8,
    uint32,
)
from retrograd.ops.assume import Assume
from retrograd.ops.identity import Alias, StopGradient
from retrograd.ops.leaf import Constant, Input, Iota, SizeOf
from retrograd.ops.random.threefry import RandomBits
from retrograd.ops.remat import After, Keep, RegionIn, RegionOut
from retrograd.verify.records.common import SIZES, M, N, f64
from retrograd.verify.records.elementwise import wrap
from retrograd.verify.records.record import (
    SHAPES,
    Array,
    Failure,
    Record,
    Sample,
    Symbolic,
    draw,
    rng_for,
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
        symbolic=(Symbolic(Constant(np.array(2.5), (N, 2)), (), SIZES),),
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


def after_samples() -> Iterator[Sample]:
    rng = rng_for("after")
    for dtype in DTYPES:
        x = draw(rng, (2, 3), dtype)
        yield Sample(After(), (x,))
        yield Sample(After(), (x, draw(rng, (4,), float64), draw(rng, (), int8)))
    smooth = (rng.normal(size=(2, 3)), rng.normal(size=4))
    yield Sample(After(), smooth, smooth=True)


AFTER = Record(
    "after",
    after_samples,
    lambda op, x, *others: np.array(x),
    (0,),
    symbolic=(Symbolic(After(), (f64(N, 2), f64(M)), SIZES),),
)


ASSUMED = Assume(N, "<=", 1000, "assume: f64[2] for N up to 1000")
ASSUME = Record(
    "assume",
    partial(same_samples, replace(ASSUMED, left=2)),
    lambda op, x: np.array(x),
    (0,),
    failures=(
        Failure(replace(ASSUMED, left=1001), (f64(2),), ShapeError),
        Failure(Assume(3, "!=", 3, "assume: f64[2], not 3"), (f64(2),), ShapeError),
        Failure(Assume(3, ">", 2, ""), (f64(2),), ShapeError),
    ),
    symbolic=(Symbolic(ASSUMED, (f64(N, 2),), SIZES),),
)


def records() -> list[Record]:
    same = [
        Record(
            op.name,
            partial(same_samples, op),
            lambda op, x: np.array(x),
            wrt,
            symbolic=(Symbolic(op, (f64(N, 2),), SIZES),),
        )
        for op, wrt in (
            (StopGradient(), ()),
            *[(mark, (0,)) for mark in (Alias(), RegionIn(), RegionOut(), Keep())],
        )
    ]
    return [*LEAVES, RANDOM, *same, AFTER, ASSUME]
