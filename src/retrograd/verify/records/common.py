"""Sizes, types and samples that the records of ops with attributes share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from retrograd.ir import (
    DTYPES,
    Dim,
    DType,
    TensorType,
    bool_,
    complex128,
    float64,
    int64,
)
from retrograd.verify.records.record import (
    INEXACT,
    INTEGERS,
    Sample,
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


def uses(
    name: str,
    cases: Sequence[tuple[Any, Sequence[tuple[int, ...]]]],
    dtypes: Sequence[DType] = DTYPES,
) -> Iterator[Sample]:
    """Each op on float64 inputs of the given shapes; the first two cases in every dtype too."""
    rng = rng_for(name)
    for k, (op, shapes) in enumerate(cases):
        for dtype in dtypes if k < 2 else (float64,):
            arrays = tuple(draw(rng, s, dtype) for s in shapes)
            yield Sample(op, arrays, dtype in (float64, complex128))


REALS = tuple(d for d in DTYPES if not d.is_complex)
NUMBERS, ALL = (*INTEGERS, *INEXACT), REALS
