"""Records of the operations on matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import TensorType, as_dtype, float32, int32
from retrograd.lazy_import import need
from retrograd.ops.linalg import (
    LU,
    QR,
    SVD,
    Cholesky,
    Cofactor,
    CofactorSlope,
    Complement,
    Det,
    Eig,
    EigenSum,
    Eigh,
    Eigvals,
    Eigvalsh,
    Expm,
    Inv,
    LeastFactors,
    LeastSquares,
    LogAbsDet,
    Lyapunov,
    NuclearNorm,
    Pinv,
    Polar,
    SingularSum,
    Solve,
    SpectralNorm,
    Svdvals,
    TriangularSolve,
    Turn,
)
from retrograd.verify.records.common import M, N, f64
from retrograd.verify.records.record import Array, Failure, Record, Sample, Symbolic, rng_for

SIZES = ({"N": 3, "M": 2}, {"N": 1, "M": 3}, {"N": 0, "M": 1}, {"N": 4, "M": 0})
Make = Callable[[np.random.Generator, tuple[int, ...]], Array]


def general(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Matrices of full rank, well conditioned, with distinct singular values."""
    x = rng.uniform(-1, 1, shape)
    m, n = shape[-2:]
    return np.asarray(x + np.eye(m, n) * (2 + np.arange(n)))


def spread(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """The same with singular values farther apart, for derivatives of vectors."""
    return np.asarray(
        general(rng, shape) + 2 * np.diag(np.arange(max(shape)))[: shape[-2], : shape[-1]]
    )


def positive(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Positive definite matrices and a small antisymmetric part."""
    x = rng.uniform(-1, 1, shape)
    n = shape[-1]
    product = np.einsum("...ij,...kj->...ik", x, x) + np.eye(n) * (1 + np.arange(n))
    return np.asarray(product + 0.1 * (x - np.swapaxes(x, -1, -2)))


def plane(make: Make, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Complex matrices: those of `make` with others for their imaginary part, smaller ones."""
    x, y = make(rng, shape), 0.3 * rng.uniform(-1, 1, shape)
    if make is orthonormal:
        return np.asarray(np.linalg.qr(x + 1j * y)[0])
    return np.asarray(x + 1j * y)


def uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.asarray(rng.uniform(-1, 1, shape))


def scaled(x: Array, k: int) -> Array:
    """Another sample of a batch: what is invertible or definite stays so."""
    return np.asarray(x * (1 + k / 4))


def looped(f: Callable[..., Any]) -> Callable[..., Array]:
    """An independent meaning for one matrix, applied to each of a stack, in float64."""

    def independent(op: Any, *arrays: Array) -> Array:
        batch, dtype = arrays[0].shape[:-2], arrays[0].dtype
        kind = as_dtype(np.result_type(dtype, np.float64))
        wide = [a.astype(kind.dtype) for a in arrays]
        result = op.infer(*[TensorType(kind, a.shape) for a in arrays])
        y = np.zeros(result.shape, result.dtype.dtype)
        dtype = op.infer(*[TensorType(as_dtype(dtype), a.shape) for a in arrays]).dtype.dtype
        for i in np.ndindex(batch):
            y[i] = f(op, *[a[i] for a in wide])
        return y.astype(dtype)

    return independent


def samples_of(
    name: str,
    cases: Sequence[tuple[Any, Sequence[tuple[Make, tuple[int, ...]]]]],
    smooth: bool = True,
) -> Callable[[], Iterator[Sample]]:
    """Each op on the given inputs in float64, and in float32, and on complex ones likewise."""

    def samples() -> Iterator[Sample]:
        rng = rng_for(name)
        for op, inputs in cases:
            arrays = tuple(make(rng, shape) for make, shape in inputs)
            yield Sample(op, arrays, smooth)
            yield Sample(op, tuple(a.astype(np.float32) for a in arrays))
        for op, inputs in cases:
            numbers = tuple(plane(make, rng, shape) for make, shape in inputs)
            # Of many values some are so close to one another that differences are not exact.
            yield Sample(op, numbers, smooth and numbers[0].shape[-1] <= 4)
            yield Sample(op, tuple(a.astype(np.complex64) for a in numbers))

    return samples


def given_of(op: Any, shapes: Sequence[tuple[int, ...]]) -> Callable[[], Iterator[Sample]]:
    """An op that passes on its last input: it computes nothing, so differences see nothing move."""

    def samples() -> Iterator[Sample]:
        rng = rng_for(op.name)
        arrays = tuple(uniform(rng, shape) for shape in shapes)
        yield Sample(op, arrays)
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


def scipy_linalg() -> Any:
    return need("scipy.linalg", "the meaning of an operation on matrices")


def cholesky(op: Any, x: Array) -> Array:
    y: Array = scipy_linalg().cholesky((x + x.conj().T) / 2, lower=not op.upper)
    return y


def substituted(op: Any, a: Array, b: Array) -> Array:
    if not a.size:
        return b
    y: Array = scipy_linalg().solve_triangular(
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


def singular_failures(op: Any) -> tuple[Failure, ...]:
    """What the ops of singular values refuse."""
    return (
        Failure(op, (TensorType(int32, (3, 3)),), DTypeError),
        Failure(op, (f64(3),), ShapeError),
    )


def tall(op: Any) -> tuple[Failure, ...]:
    """What every op of matrices with as many rows as columns, or more, refuses."""
    return (
        Failure(op, (TensorType(int32, (3, 3)),), DTypeError),
        Failure(op, (f64(3),), ShapeError),
        Failure(op, (f64(2, 3),), ShapeError),
        Failure(op, (f64(N, M),), ShapeError),
    )


def eliminated(op: Any, x: Array) -> Array:
    m, n = x.shape
    y = np.zeros((n + 2, m), x.dtype)
    y[n] = np.arange(m)
    if x.size:
        getrf = (
            scipy_linalg().lapack.zgetrf if x.dtype.kind == "c" else scipy_linalg().lapack.dgetrf
        )
        found, exchanges, _ = getrf(x)
        y[:n], y[n + 1, :n] = found.T, exchanges
        for i, j in enumerate(exchanges):
            y[n, [i, j]] = y[n, [j, i]]
    return y


def solved(op: Any, a: Array, f: Array, b: Array) -> Array:
    y: Array = scipy_linalg().solve(a.T if op.transpose else a, b) if b.size else b
    return y


def with_factors(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Array, Array]:
    a = general(rng, shape)
    return a, np.asarray(LU().reference(a))


def solve_samples() -> Iterator[Sample]:
    rng = rng_for("solve")
    for op, shape, k in (
        (Solve(), (3, 3), 2),
        (Solve(True), (3, 3), 1),
        (Solve(), (2, 2, 2), 3),
        (Solve(True), (0, 0), 2),
        (Solve(), (2, 2), 0),
        (Solve(), (17, 17), 2),
    ):
        a, f = with_factors(rng, shape)
        arrays = a, f, uniform(rng, (*shape[:-1], k))
        yield Sample(op, arrays, True)
        yield Sample(op, tuple(x.astype(np.float32) for x in arrays))
        z = plane(general, rng, shape)
        numbers = z, np.asarray(LU().reference(z)), plane(uniform, rng, (*shape[:-1], k))
        yield Sample(op, numbers, True)
        yield Sample(op, tuple(x.astype(np.complex64) for x in numbers))


def least_factors_of(op: Any, x: Array, limit: Array) -> Array:
    """By SciPy: of matrices of full rank LAPACK's factors, else the pseudo-inverse and NaN."""
    n = x.shape[1]
    if not n or np.linalg.matrix_rank(x, rtol=limit.item().real) == n:
        (h, tau), _ = scipy_linalg().qr(x, mode="raw") if n else ((x, x[0, :0]), None)
        return np.concatenate([h.T, tau[:, None]], axis=1)
    p = scipy_linalg().pinv(x, rtol=limit.item().real)
    return np.concatenate([p, np.full((n, 1), np.nan, x.dtype)], axis=1)


def least_squares_of(op: Any, x: Array, f: Array, b: Array) -> Array:
    a = x.conj().T if op.adjoint else x
    if not b.size or not x.size:
        return np.zeros((a.shape[1], b.shape[1]), b.dtype)
    return np.asarray(scipy_linalg().pinv(a, rtol=1e-6) @ b)


def limits(shape: tuple[int, ...]) -> Array:
    return np.full((*shape[:-2], 1, 1), 1e-6)


def deficient(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Matrices of a rank one less than they could have."""
    x = general(rng, shape)
    x[..., -1] = 0.5 * x[..., 0]
    return x


def least_factors_samples() -> Iterator[Sample]:
    rng = rng_for("least_factors")
    for make, shape in ((general, (4, 3)), (general, (2, 3, 3)), (general, (3, 0)),
                        (general, (40, 17)), (deficient, (5, 3))):  # fmt: skip
        x, z = make(rng, shape), plane(make, rng, shape)
        if make is deficient:
            z[..., -1] = 0.5 * z[..., 0]
        yield Sample(LeastFactors(), (x, limits(shape)))
        yield Sample(LeastFactors(), (z, limits(shape).astype(z.dtype)))


def least_squares_samples() -> Iterator[Sample]:
    rng = rng_for("least_squares")
    for make, shape, k in ((general, (4, 2), 2), (general, (3, 3), 1), (general, (2, 3, 2), 3),
                           (general, (3, 0), 2), (general, (2, 2), 0), (general, (40, 17), 20),
                           (deficient, (5, 3), 2)):  # fmt: skip
        for adjoint in (False, True):
            rows = (*shape[:-2], shape[-1] if adjoint else shape[-2], k)
            for x in (make(rng, shape), plane(make, rng, shape)):
                if make is deficient:
                    x[..., -1] = 0.5 * x[..., 0]
                f = np.asarray(LeastFactors().reference(x, limits(shape).astype(x.dtype)))
                b = (uniform(rng, rows) + 0 * x.flat[:1].sum()).astype(x.dtype)
                # A difference quotient leaves the matrices of lower rank.
                smooth = make is general and shape[-2] < 40
                yield Sample(LeastSquares(adjoint), (x, f, b), smooth)


def inv_samples() -> Iterator[Sample]:
    rng = rng_for("inv")
    for shape in SQUARES:
        arrays = with_factors(rng, shape)
        yield Sample(Inv(), arrays, True)
        yield Sample(Inv(), tuple(x.astype(np.float32) for x in arrays))
        z = plane(general, rng, shape)
        yield Sample(Inv(), (z, np.asarray(LU().reference(z))), True)


def solve_inputs(type: TensorType) -> Array:
    """Inputs of symbolic types that fit one another."""
    shape = tuple(int(n) for n in type.shape)
    if shape[-2] == shape[-1] + 2:
        return np.asarray(LU().reference(solve_inputs(f64(shape[-1], shape[-1]))))
    return drawn(general)(type)


def least_inputs(type: TensorType) -> Array:
    """Inputs of symbolic types that fit one another: matrices, factors and limits."""
    n, m = (int(size) for size in type.shape)
    if (n, m) == (1, 1):
        return limits((1, 1))
    if m > n:
        x = least_inputs(f64(m - 1, n))
        return np.asarray(LeastFactors().reference(x, limits(x.shape)))
    return general(np.random.default_rng(2), (n, m))


def factored(op: Any, x: Array) -> Array:
    if not x.size:
        return np.zeros((x.shape[1], sum(x.shape)), x.dtype)
    q, r = scipy_linalg().qr(x, mode="economic")
    return np.concatenate([q.T, r], axis=1)


def completed(op: Any, q: Array) -> Array:
    m, k = q.shape
    y: Array = scipy_linalg().qr(q)[0][:, k:] if q.size else np.eye(m)
    return y


def orthonormal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.asarray(np.linalg.qr(rng.standard_normal(shape))[0])


def signs(v: Array) -> Array:
    """What makes the first large component of each column positive."""
    found = np.ones(v.shape[1], v.dtype)
    for j, column in enumerate(v.T):
        first = next(c for c in column if abs(c) >= 0.6 * max(abs(column)))
        found[j] = abs(first) / first
    return found


def eigen(op: Any, x: Array) -> Array:
    if not x.size:
        return np.zeros((1, 0), x.dtype)
    w, v = scipy_linalg().eigh((x + x.conj().T) / 2, driver="evd")
    return np.concatenate([w[None], (v * signs(v)).T])


def eigen_of_any(op: Any, x: Array) -> Array:
    if not x.size:
        return np.zeros((1, 0), np.complex128)
    w, v = scipy_linalg().eig(x)
    v = v / np.linalg.norm(v, axis=0) + 0j
    return np.concatenate([w[None], (v * signs(v)).T])


def apart(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Matrices that are not symmetric, with distinct eigenvalues, of which some are complex."""
    x = general(rng, shape)
    turn = np.diag(np.ones(max(shape[-1] - 1, 0)), 1) if shape[-1] else np.zeros((0, 0))
    return np.asarray(x + 2 * (turn - turn.T))


def singular(op: Any, x: Array) -> Array:
    if not x.size:
        return np.zeros((1 + sum(x.shape), 0), x.dtype)
    u, s, vh = scipy_linalg().svd(x, full_matrices=False)
    return np.concatenate([s[None], u * signs(u), vh.conj().T * signs(u)])


SQUARES: list[tuple[int, ...]] = [(3, 3), (2, 2, 2), (1, 1), (0, 0), (0, 2, 2), (17, 17)]
TALL: list[tuple[int, ...]] = [*SQUARES, (4, 2), (2, 3, 2), (3, 0)]
SYMBOLS = (f64(N, N), f64(M, N, N))


def cofactors(op: Any, x: Array) -> Array:
    """Determinants of what is left without a row and a column."""
    y = np.zeros_like(x)
    for i, j in np.ndindex(x.shape):
        minor = np.delete(np.delete(x, i, 0), j, 1)
        y[i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    return y


def cofactors_along(op: Any, x: Array, t: Array) -> Array:
    """Traces of t times the cofactors of what is left without a row and a column."""
    y = np.zeros_like(x)
    for i, j in np.ndindex(x.shape):
        minor, other = (np.delete(np.delete(a, i, 0), j, 1) for a in (x, t))
        y[i, j] = (-1) ** (i + j) * np.sum(cofactors(op, minor) * other)
    return y


def of_one(name: str, op: Any, f: Any, make: Make, shapes: list[tuple[int, ...]], failures: Any,
           wrt: tuple[int, ...] = (0,), symbols: Any = SYMBOLS) -> Record:  # fmt: skip
    """The record of an op of one matrix."""
    cases = [(op, [(make, shape)]) for shape in shapes]
    return Record(
        name,
        samples_of(name, cases, bool(wrt)),
        looped(f),
        wrt,
        ulps=256,
        absolute=256,
        failures=failures,
        symbolic=tuple(Symbolic(op, (t,), SIZES, make=drawn(make)) for t in symbols),
        vary=scaled,
    )


SOLVERS = [
    of_one("lu", LU(), eliminated, general, TALL, tall(LU())),
    Record(
        "solve",
        solve_samples,
        looped(solved),
        (0, 2),
        ulps=64,
        absolute=64,
        failures=(
            Failure(Solve(), (f64(3, 4), f64(5, 3), f64(3, 1)), ShapeError),
            Failure(Solve(), (f64(3, 3), f64(4, 3), f64(3, 1)), ShapeError),
            Failure(Solve(), (f64(3, 3), f64(5, 3), f64(4, 1)), ShapeError),
            Failure(Solve(), (f64(3, 3), f64(5, 3), TensorType(float32, (3, 1))), DTypeError),
        ),
        symbolic=(
            Symbolic(Solve(), (f64(N, N), f64(N + 2, N), f64(N, M)), SIZES, make=solve_inputs),
        ),
        vary=scaled,
    ),
    Record(
        "least_factors",
        least_factors_samples,
        looped(least_factors_of),
        ulps=64,
        absolute=64,
        failures=(
            Failure(LeastFactors(), (f64(3, 4), f64(1, 1)), ShapeError),
            Failure(LeastFactors(), (f64(4, 3), f64(1, 2)), ShapeError),
            Failure(LeastFactors(), (f64(4, 3), TensorType(float32, (1, 1))), DTypeError),
        ),
        symbolic=(
            Symbolic(LeastFactors(), (f64(N + M, N), f64(1, 1)), SIZES, make=least_inputs),
        ),
    ),
    Record(
        "least_squares",
        least_squares_samples,
        looped(least_squares_of),
        (0, 2),
        ulps=256,
        absolute=64,
        failures=(
            Failure(LeastSquares(), (f64(3, 4), f64(4, 4), f64(3, 1)), ShapeError),
            Failure(LeastSquares(), (f64(4, 3), f64(3, 4), f64(4, 1)), ShapeError),
            Failure(LeastSquares(), (f64(4, 3), f64(3, 5), f64(3, 1)), ShapeError),
            Failure(LeastSquares(True), (f64(4, 3), f64(3, 5), f64(4, 1)), ShapeError),
        ),
        symbolic=(
            Symbolic(
                LeastSquares(), (f64(N + M, N), f64(N, N + M + 1), f64(N + M, 1)), SIZES,
                make=least_inputs,
            ),
        ),
        vary=scaled,
    ),
    Record(
        "inv",
        inv_samples,
        looped(lambda op, a, f: scipy_linalg().inv(a) if a.size else a),
        (0,),
        ulps=64,
        absolute=64,
        failures=(
            Failure(Inv(), (f64(3, 4), f64(5, 3)), ShapeError),
            Failure(Inv(), (f64(3, 3), f64(4, 3)), ShapeError),
            Failure(Inv(), (f64(3, 3), TensorType(float32, (5, 3))), DTypeError),
        ),
        symbolic=(Symbolic(Inv(), (f64(N, N), f64(N + 2, N)), SIZES, make=solve_inputs),),
        vary=scaled,
    ),
    of_one("qr", QR(), factored, general, [s for s in TALL if 0 not in s], tall(QR())),
    of_one("complement", Complement(), completed, orthonormal, [(4, 2), (3, 3), (2, 3, 1), (3, 0)],
           tall(Complement()), (), (f64(N, N),)),
    of_one("expm", Expm(), lambda op, x: scipy_linalg().expm(x) if x.size else x, uniform,
           [(3, 3), (2, 2, 2), (1, 1), (0, 0), (0, 2, 2), (8, 8)], refused(Expm(), f64(3, 3))),
    of_one("cofactor", Cofactor(), cofactors, general, SQUARES[:-1],
           refused(Cofactor(), f64(3, 3))),
    Record(
        "cofactor_slope",
        samples_of(
            "cofactor_slope",
            [(CofactorSlope(), [(general, s), (uniform, s)])
             for s in ((3, 3), (4, 4), (2, 2, 2), (1, 1), (0, 2, 2))],
        ),
        looped(cofactors_along),
        (0, 1),
        ulps=256,
        absolute=256,
        failures=(
            *refused(CofactorSlope(), f64(3, 3), f64(3, 3)),
            Failure(CofactorSlope(), (f64(3, 3), f64(2, 2)), ShapeError),
        ),
        symbolic=(
            Symbolic(CofactorSlope(), (f64(M, N, N), f64(M, N, N)),
                     ({"N": 3, "M": 2}, {"N": 2, "M": 0}), make=drawn(general)),
        ),
        vary=scaled,
    ),
    of_one("eig", Eig(), eigen_of_any, apart, SQUARES[:-1], refused(Eig(), f64(3, 3))),
    of_one("eigvals", Eigvals(), lambda op, x: eigen_of_any(op, x)[0], apart, SQUARES[:-1],
           refused(Eigvals(), f64(3, 3))),
    *(
        Record(
            name,
            samples_of(name, [(op, [(uniform, (2, 3, 3)), (uniform, (2,))])], False),
            lambda op, x, d: d,
            failures=(
                *refused(op, f64(3, 3), f64()),
                Failure(op, (f64(2, 3, 3), f64()), ShapeError),
            ),
            symbolic=(Symbolic(op, (f64(M, N, N), f64(M)), SIZES),),
        )
        for name, op in (("det", Det()), ("logabsdet", LogAbsDet()))
    ),
    *(
        Record(
            op.name,
            samples_of(op.name, [(op, [(uniform, shape) for shape in shapes])], False),
            lambda op, *arrays: arrays[-1],
            failures=tuple(Failure(op, types, ShapeError) for types in refusals),
            symbolic=(Symbolic(op, named, SIZES),),
        )
        for op, shapes, refusals, named in (
            (Polar(), [(3, 2), (3, 2)], [(f64(2, 3), f64(2, 3)), (f64(3, 2), f64(2, 2))],
             (f64(N + M, N), f64(N + M, N))),
            (Lyapunov(), [(2, 3, 3)] * 3, [(f64(3, 3), f64(2, 2), f64(3, 3))],
             (f64(N, N), f64(N, N), f64(N, N))),
        )
    ),
    *(
        Record(
            op.name,
            given_of(op, shapes),
            lambda op, *arrays: arrays[-1],
            failures=tuple(Failure(op, types, ShapeError) for types in refusals),
            symbolic=(Symbolic(op, named, SIZES),),
        )
        for op, shapes, refusals, named in (
            (NuclearNorm(), [(2, 3, 2), (2,)], [(f64(3, 2), f64(2)), (f64(2, 3), f64())],
             (f64(N + M, N), f64())),
            (SpectralNorm(), [(2, 2, 3), (2,)], [(f64(3, 2), f64(2))], (f64(N + M, N), f64())),
            (Turn(), [(3,), (3, 3), (3, 3)], [(f64(2), f64(3, 3), f64(3, 3))],
             (f64(N), f64(N, N), f64(N, N))),
            (EigenSum(), [(3, 3), (3,), (3, 3)], [(f64(3, 3), f64(2), f64(3, 3))],
             (f64(N, N), f64(N), f64(N, N))),
            (SingularSum(), [(3, 2), (2,), (3, 2)], [(f64(3, 2), f64(3), f64(3, 2))],
             (f64(N + M, N), f64(N), f64(N + M, N))),
        )
    ),
    Record(
        "pinv",
        samples_of(
            "pinv",
            [
                (Pinv(), [(uniform, (3, 2)), (uniform, (2, 3))]),
                (Pinv(), [(uniform, (2, 3, 3)), (uniform, (2, 3, 3))]),
            ],
            False,
        ),
        lambda op, x, p: p,
        failures=(
            Failure(Pinv(), (f64(3, 2), f64(3, 2)), ShapeError),
            Failure(Pinv(), (f64(3, 2), TensorType(float32, (2, 3))), DTypeError),
        ),
        symbolic=(Symbolic(Pinv(), (f64(N, M), f64(M, N)), SIZES),),
    ),
    of_one("eigh", Eigh(), eigen, positive, SQUARES, refused(Eigh(), f64(3, 3))),
    of_one("eigvalsh", Eigvalsh(), lambda op, x: eigen(op, x)[0].real, positive, SQUARES,
           refused(Eigvalsh(), f64(3, 3))),
    of_one("svd", SVD(), singular, spread, [*TALL, (2, 4)], singular_failures(SVD())),
    of_one("svdvals", Svdvals(), lambda op, x: singular(op, x)[0].real, general, [*TALL, (2, 4)],
           singular_failures(Svdvals())),
]  # fmt: skip


_TIES = "single vectors and values are no functions of a matrix in which several values are equal"
_RANK = "pivots and signs jump where columns are equal or zero"
_THIRD = "the third derivative of a determinant is NaN where the matrix is singular"
_EDGES = {
    **dict.fromkeys(("eig", "eigvals", "eigh", "eigvalsh", "svd", "svdvals"), _TIES),
    **dict.fromkeys(("lu", "qr"), _RANK),
    **dict.fromkeys(("cofactor", "cofactor_slope"), _THIRD),
    "least_squares": "the residual of a matrix of lower rank is a number of 1e63 here",
}


def records() -> list[Record]:
    return [replace(r, edges=_EDGES.get(r.name, "")) for r in (*FACTORS, *SOLVERS)]
