"""Ops that pass on a value computed elsewhere, as the function of their other inputs that it is.

Differences of the op alone see nothing move; here the value moves with the inputs, by SciPy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import scipy.linalg
from scipy import special

from retrograd.ir import Op
from retrograd.ops.linalg.determinant import Det, LogAbsDet
from retrograd.ops.linalg.eigen import EigenSum, Turn
from retrograd.ops.linalg.pinv import Pinv
from retrograd.ops.linalg.polar import Lyapunov, NuclearNorm, Polar
from retrograd.ops.linalg.svd import SingularSum, SpectralNorm
from retrograd.ops.random import implicit_gradients as implicit
from retrograd.verify.records.control import CUBE
from retrograd.verify.records.record import rng_for
from retrograd.verify.rule_checks import Array, check_gradient, check_tangent


def hermitian(x: Array) -> Array:
    return (x + x.conj().swapaxes(-1, -2)) / 2


def unitary(x: Array) -> Array:
    u, _, vh = np.linalg.svd(x, full_matrices=False)
    return u @ vh


def eigen_sum(x: Array, g: Array) -> Array:
    _, v = np.linalg.eigh(hermitian(x))
    return (v * g[..., None, :]) @ v.conj().swapaxes(-1, -2)


def singular_sum(x: Array, g: Array) -> Array:
    u, _, vh = np.linalg.svd(x, full_matrices=False)
    return (u * g[..., None, :]) @ vh


def log_determinant(x: Array) -> Array:
    sign, size = np.linalg.slogdet(x)
    return size + 1j * np.angle(sign) if np.iscomplexobj(x) else size


def singular_values(x: Array) -> Array:
    return np.linalg.svd(x, compute_uv=False)


def solution(x: Array, c: Array) -> Array:
    found: Array = scipy.linalg.solve_sylvester(hermitian(x), hermitian(x), c)
    return found


def cube_along(x: Array, e: Array, c: Array) -> Array:
    x, e = hermitian(x), hermitian(e)
    return c[..., None, None] * (x @ x @ e + x @ e @ x + e @ x @ x)


@dataclasses.dataclass(frozen=True)
class Case:
    """An op, the value of `value(*inputs)`, the shapes of these, and which it is a function of."""

    op: Op
    value: Callable[..., Array]
    shapes: tuple[tuple[int, ...], ...]
    wrt: tuple[int, ...] = (0,)

    def __str__(self) -> str:
        return f"{self.op.name}-{self.shapes[0]}"


OF_MATRICES = [
    Case(Det(), np.linalg.det, ((2, 3, 3),)),
    Case(Det(), np.linalg.det, ((1, 1),)),
    Case(LogAbsDet(), log_determinant, ((2, 3, 3),)),
    Case(Polar(), unitary, ((4, 3),)),
    Case(Polar(), unitary, ((2, 2, 2),)),
    Case(NuclearNorm(), lambda x: singular_values(x).sum(-1), ((2, 4, 3),)),
    Case(SpectralNorm(), lambda x: singular_values(x).max(-1), ((2, 4, 3),)),
    Case(SpectralNorm(), lambda x: singular_values(x).max(-1), ((2, 3),)),
    Case(Pinv(), np.linalg.pinv, ((4, 3),)),
    Case(Pinv(), np.linalg.pinv, ((2, 2, 3),)),
    Case(Lyapunov(), solution, ((3, 3), (3, 3)), (0, 1)),
    Case(EigenSum(), eigen_sum, ((3, 3), (3,)), (0, 1)),
    Case(EigenSum(), eigen_sum, ((2, 2, 2), (2, 2)), (0, 1)),
    Case(SingularSum(), singular_sum, ((4, 3), (3,)), (0, 1)),
    Case(SingularSum(), singular_sum, ((2, 2, 4), (2, 2)), (0, 1)),
    # Of values that are apart nothing turns.
    Case(Turn(), lambda w, m: np.eye(3) + 0 * m, ((3,), (3, 3)), (1,)),
    Case(CUBE, cube_along, ((2, 3, 3), (2, 3, 3), (2,)), (0, 1, 2)),
]


@pytest.mark.parametrize("case", OF_MATRICES, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.sample(16)
def test_functions_of_matrices(case: Case, dtype: str) -> None:
    """Matrices have singular values and eigenvalues that are apart."""
    rng = rng_for(f"{case} {dtype}")
    matrix = len(case.shapes[-1 if case.op.name == "turn" else 0])
    arrays = []
    for shape in case.shapes:
        x = rng.normal(size=shape)
        if len(shape) == matrix:
            x += 2 * np.eye(shape[-2], shape[-1]) * (1 + np.arange(shape[-1]))
            x = x + 1j * rng.normal(size=shape) if dtype == "complex128" else x
        arrays.append(x)
    check(case, arrays)


LEVELS = np.array([0.1, 0.6, 0.9])  # what samples are quantiles of
SAMPLES = [
    Case(implicit.implicit_exp, np.exp, ((3,),)),
    Case(implicit.implicit_gamma, lambda a: special.gammaincinv(a, LEVELS), ((3,),)),
    Case(implicit.implicit_log_gamma, lambda a: np.log(special.gammaincinv(a, LEVELS)), ((3,),)),
    Case(
        implicit.implicit_beta, lambda a, b: special.betaincinv(a, b, LEVELS), ((3,), (3,)), (0, 1)
    ),
]


@pytest.mark.parametrize("case", SAMPLES, ids=str)
def test_samples_as_quantiles(case: Case) -> None:
    rng = rng_for(str(case))
    check(case, [rng.uniform(0.5, 4.0, shape) for shape in case.shapes])


def check(case: Case, arrays: list[Array]) -> None:
    """Reverse mode to second order, and forward mode, of the value and of its gradient."""
    arrays = [*arrays, np.asarray(case.value(*arrays))]
    for order in (1, 2):
        check_gradient(case.op, arrays, case.wrt, order, given=case.value)
    check_tangent(case.op, arrays, case.wrt, case.value)
