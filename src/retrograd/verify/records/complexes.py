"""Records of what takes complex numbers apart and puts them together, and of the transform."""

from __future__ import annotations

import cmath
from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import TensorType, complex64, complex128, float16, float32, float64, lookup
from retrograd.ops.fft import Fft
from retrograd.verify.records.common import SIZES, M, N
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


def part(name: str) -> Record:
    op = lookup(name)()

    def samples() -> Iterator[Sample]:
        rng = rng_for(name)
        for shape in SHAPES:
            yield Sample(op, (draw(rng, shape, complex128),), True)
            yield Sample(op, (draw(rng, shape, complex64),))

    def independent(op: Any, z: Array) -> Array:
        values = [getattr(complex(v), name) for v in z.reshape(-1)]
        kind = np.float32 if z.dtype == np.complex64 else np.float64
        return np.array(values, kind).reshape(z.shape)

    return Record(
        name,
        samples,
        independent,
        (0,),
        failures=(Failure(op, (TensorType(float32, (2,)),), DTypeError),),
        symbolic=(Symbolic(op, (TensorType(complex128, (N, M)),), SIZES),),
    )


def joined() -> Record:
    op = lookup("complex")()

    def samples() -> Iterator[Sample]:
        rng = rng_for("complex")
        for shape in SHAPES:
            yield Sample(op, (draw(rng, shape, float64), draw(rng, shape, float64)), True)
            yield Sample(op, (draw(rng, shape, float32), draw(rng, shape, float32)))

    def independent(op: Any, x: Array, y: Array) -> Array:
        values = [complex(a, b) for a, b in zip(x.reshape(-1), y.reshape(-1), strict=True)]
        kind = np.complex64 if x.dtype == np.float32 else np.complex128
        return np.array(values, kind).reshape(x.shape)

    x = TensorType(float32, (2,))
    wrong = [(x, x.with_dtype(float64)), (x, x.with_shape((3,)))]
    wrong += [(x.with_dtype(d), x.with_dtype(d)) for d in (float16, complex64)]
    return Record(
        "complex",
        samples,
        independent,
        (0, 1),
        failures=tuple(Failure(op, types, DTypeError) for types in wrong),
        symbolic=(Symbolic(op, (TensorType(float64, (N, M)),) * 2, SIZES),),
    )


def transform() -> Record:
    def samples() -> Iterator[Sample]:
        rng = rng_for("fft")
        for shape, axis in [((1,), 0), ((7,), 0), ((2, 4), 1), ((3, 2), 0), ((0, 5), 1)]:
            for inverse in (False, True):
                yield Sample(Fft(axis, inverse), (draw(rng, shape, complex128),), True)
                yield Sample(Fft(axis, inverse), (draw(rng, shape, complex64),))

    def independent(op: Any, z: Array) -> Array:
        n, sign = z.shape[op.axis], 1 if op.inverse else -1
        turns = [[cmath.exp(2j * cmath.pi * sign * j * k / n) for j in range(n)] for k in range(n)]
        y = np.tensordot(np.array(turns), z.astype(np.complex128), (1, op.axis))
        return np.moveaxis(y, 0, op.axis).astype(z.dtype)

    z = TensorType(complex64, (2, 3))
    return Record(
        "fft",
        samples,
        independent,
        (0,),
        ulps=16,
        absolute=64,
        failures=(
            Failure(Fft(0), (z.with_dtype(float32),), DTypeError),
            Failure(Fft(2), (z,), ShapeError),
            Failure(Fft(0), (z.with_shape((0, 3)),), ShapeError),
        ),
        symbolic=(
            Symbolic(Fft(1), (TensorType(complex128, (N, 4)),), SIZES),
            Symbolic(Fft(0), (TensorType(complex128, (N, 4)),), SIZES[:2]),
        ),
    )


def records() -> list[Record]:
    return [part("real"), part("imag"), joined(), transform()]
