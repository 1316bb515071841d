"""Records of the operations on matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.linalg

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import TensorType, float32, float64, int32
from retrograd.ops.linalg import Cholesky, TriangularSolve
from tests.records.common import M, N, f64
from tests.records.record import Array, Failure, Record, Sample, Symbolic, rng_for

SIZES = ({"N": 3, "M": 2}, {"N": 1, "M": 3}, {"N": 0, "M": 1}, {"N": 4, "M": 0})
Make = Callable[[np.random.Generator, tuple[int, ...]], Array]


def general(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Matrices of full rank, well conditioned, with distinct singular values."""
    x = rng.uniform(-1, 1, shape)
    m, n = shape[-2:]
    return np.asarray(x + np.eye(m, n) * (2 + np.arange(n)))


def positive(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Positive definite matrices and a small antisymmetric part."""
    x = rng.uniform(-1, 1, shape)
    n = shape[-1]
    product = np.einsum("...ij,...kj->...ik", x, x) + np.eye(n) * (1 + np.arange(n))
    return np.asarray(product + 0.1 * (x - np.swapaxes(x, -1, -2)))


def uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.asarray(rng.uniform(-1, 1, shape))


def scaled(x: Array, k: int) -> Array:
    """Another sample of a batch: what is invertible or definite stays so."""
    return np.asarray(x * (1 + k / 4))


def looped(f: Callable[..., Any]) -> Callable[..., Array]:
    """An independent meaning for one matrix, applied to each of a stack, in float64."""

    def independent(op: Any, *arrays: Array) -> Array:
        batch, dtype = arrays[0].shape[:-2], arrays[0].dtype
        wide = [a.astype(np.float64) for a in arrays]
        shape = op.infer(*[TensorType(float64, a.shape) for a in arrays]).shape
        y = np.zeros(shape)
        for i in np.ndindex(batch):
            y[i] = f(op, *[a[i] for a in wide])
        return y.astype(dtype)

    return independent


def samples_of(
    name: str, cases: Sequence[tuple[Any, Sequence[tuple[Make, tuple[int, ...]]]]]
) -> Callable[[], Iterator[Sample]]:
    """Each op on the given inputs in float64, and in float32."""

    def samples() -> Iterator[Sample]:
        rng = rng_for(name)
        for op, inputs in cases:
            arrays = tuple(make(rng, shape) for make, shape in inputs)
            yield Sample(op, arrays, True)
            yield Sample(op, tuple(a.astype(np.float32) for a in arrays))

    return samples


def drawn(make: Make) -> Callable[[TensorType], Array]:
    """Inputs of symbolic types: square ones by `make`, others uniform."""

    def draw(type: TensorType) -> Array:
        shape = tuple(int(n) for n in type.shape)
        square = len(shape) >= 2 and shape[-1] == shape[-2]
        return (make if square else uniform)(np.random.default_rng(len(shape)), shape)

    return draw


def refused(op: Any, *types: TensorType) -> tuple[Failure, ...]:
    """What every op of square matrices refuses in its first operand."""
    _, *rest = types
    bad: list[tuple[TensorType, type[Exception]]] = [
        (TensorType(int32, (3, 3)), DTypeError),
        (f64(3), ShapeError),
        (f64(3, 4), ShapeError),
    ]
    return tuple(Failure(op, (t, *rest), e) for t, e in bad)  # type: ignore[arg-type]


def cholesky(op: Any, x: Array) -> Array:
    y: Array = scipy.linalg.cholesky((x + x.T) / 2, lower=not op.upper)
    return y


def substituted(op: Any, a: Array, b: Array) -> Array:
    if not a.size:
        return b
    y: Array = scipy.linalg.solve_triangular(
        a, b, trans=int(op.transpose), lower=not op.upper, unit_diagonal=op.unit
    )
    return y


SOLVES = [
    TriangularSolve(upper, transpose, unit)
    for upper in (False, True)
    for transpose in (False, True)
    for unit in (False, True)
]

FACTORS = [
    Record(
        "cholesky",
        samples_of(
            "cholesky",
            [
                (Cholesky(), [(positive, (3, 3))]),
                (Cholesky(True), [(positive, (2, 2))]),
                (Cholesky(), [(positive, (2, 1, 2, 2))]),
                (Cholesky(), [(positive, (1, 1))]),
                (Cholesky(), [(positive, (0, 0))]),
                (Cholesky(True), [(positive, (0, 3, 3))]),
                (Cholesky(), [(positive, (17, 17))]),
            ],
        ),
        looped(cholesky),
        (0,),
        ulps=64,
        absolute=64,
        failures=refused(Cholesky(), f64(3, 3)),
        symbolic=(
            Symbolic(Cholesky(), (f64(N, N),), SIZES, make=drawn(positive)),
            Symbolic(Cholesky(True), (f64(M, N, N),), SIZES, make=drawn(positive)),
        ),
        vary=scaled,
    ),
    Record(
        "triangular_solve",
        samples_of(
            "triangular_solve",
            [
                *((op, [(general, (3, 3)), (uniform, (3, 2))]) for op in SOLVES),
                (SOLVES[0], [(general, (2, 2, 2)), (uniform, (2, 2, 1))]),
                (SOLVES[2], [(general, (0, 0)), (uniform, (0, 2))]),
                (SOLVES[4], [(general, (3, 3)), (uniform, (3, 0))]),
            ],
        ),
        looped(substituted),
        (0, 1),
        ulps=64,
        absolute=64,
        failures=(
            *refused(SOLVES[0], f64(3, 3), f64(3, 2)),
            Failure(SOLVES[0], (f64(3, 3), f64(2, 3)), ShapeError),
            Failure(SOLVES[0], (f64(2, 3, 3), f64(3, 3)), ShapeError),
            Failure(SOLVES[0], (f64(3, 3), TensorType(float32, (3, 3))), DTypeError),
        ),
        symbolic=(Symbolic(SOLVES[0], (f64(N, N), f64(N, M)), SIZES, make=drawn(general)),),
        vary=scaled,
    ),
]


def records() -> list[Record]:
    return FACTORS
