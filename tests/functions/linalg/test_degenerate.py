"""Complex matrices, and eigenvalues of any, where there is nothing to hold on to: repeated values,
lost rank, no elements; on every backend, against what holds for such matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import LinAlgError

Array = np.ndarray[Any, Any]
L = rg.linalg


@pytest.fixture(params=["llvm", "reference"], autouse=True)
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    with rg.backend(request.param):
        yield request.param


def draw(*shape: int, seed: int = 0) -> Array:
    rng = np.random.default_rng((seed, *shape))
    return np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape))


def unitary(n: int) -> Array:
    return np.asarray(np.linalg.qr(draw(n, n))[0])


def hermitian(values: Any) -> Array:
    q = unitary(len(values))
    return np.asarray((q * values) @ q.conj().T)


def mH(x: Any) -> Any:
    return rg.conj(rg.matrix_transpose(x))


def close(found: Any, expected: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(found.numpy(), np.asarray(expected), tolerance, tolerance)


def matching(f: Callable[[Any], Any], g: Callable[[Any], Any], x: Array) -> None:
    """Two functions of a matrix have the same value and the same slope, compiled too."""
    c = draw(*x.shape, seed=3)

    def total(h: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda z: rg.sum(rg.real(h(z) * rg.asarray(c)))

    for run in (lambda h: h, rg.jit):
        close(run(f)(x), run(g)(x).numpy())
        close(run(rg.grad(total(f)))(x), run(rg.grad(total(g)))(x).numpy(), 1e-9)


# -- repeated values ------------------------------------------------------------------------------
def step(x: Any, low: float, high: float) -> Any:
    """The polynomial that is 0 at one value and 1 at the other, and flat at both: of a matrix with
    these eigenvalues the projection on the space of the second, to first order."""
    u = (x - low * rg.eye(x.shape[0])) / (high - low)
    return 3 * u @ u - 2 * u @ u @ u


@pytest.mark.slow
def test_projections_by_hermitian_eigenvalues() -> None:
    def project(x: Any) -> Any:
        v = L.eigh(x).eigenvectors[:, 2:]
        return v @ mH(v)

    matching(project, lambda x: step((x + mH(x)) / 2, 1, 3), hermitian([1, 1, 3, 3, 3]))


def weighted(recipe: Callable[[Any], Any], c: Array) -> Callable[[Any], Any]:
    return lambda x: rg.sum(rg.real(recipe(x) * rg.asarray(c)))


def by_eigh(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def recipe(x: Any) -> Any:
        w, v = L.eigh(x)
        return (v * f(w)) @ mH(v)

    return recipe


def by_eig(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def recipe(x: Any) -> Any:
        w, v = L.eig(x)
        return (v * f(w)) @ L.inv(v)

    return recipe


def by_svd(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def recipe(x: Any) -> Any:
        u, s, vh = L.svd(x)
        return (u * f(s)) @ vh

    return recipe


@pytest.mark.slow
@pytest.mark.parametrize("f", [rg.sqrt, rg.log, rg.exp], ids=["sqrt", "log", "exp"])
@pytest.mark.parametrize("by", [by_eigh, by_eig, by_svd])
@pytest.mark.sample(2)
def test_functions_by_vectors_of_equal_values_have_no_derivative(by: Any, f: Any) -> None:
    """What f is near the equal values is not known where vectors turn: NaN, in both modes, and for
    the second derivative; and for others what it is."""
    points = [np.eye(3), np.diag([1.0, 1, 2])]
    points += [] if by is by_eig else [hermitian([1, 1, 2])]
    whole = draw(3, 3), draw(3, 3, seed=1)
    for x in points:
        c, t = (a if x.dtype.kind == "c" else a.real for a in whole)
        total = weighted(by(f), c)
        for run in (lambda h: h, rg.jit):
            assert np.isnan(run(rg.grad(total))(x).numpy()).all()
        assert np.isnan(rg.jvp(total, (rg.asarray(x),), (rg.asarray(t),))[1].numpy())
        assert np.isnan(rg.hvp(total, rg.asarray(x), rg.asarray(t)).numpy()).all()
    x = np.diag([1.0, 3, 2])
    cube: dict[Any, Callable[[Any], Any]] = {
        by_eigh: lambda x: (h := (x + mH(x)) / 2) @ h @ h,
        by_eig: lambda x: x @ x @ x,
        by_svd: lambda x: x @ mH(x) @ x,
    }
    expected = rg.grad(weighted(cube[by], c.real))(x).numpy()
    close(rg.grad(weighted(by(lambda w: w**3), c.real))(x), expected)


@pytest.mark.parametrize("make", [lambda x: x, np.real])
def test_projections_by_eigenvalues(make: Any) -> None:
    """For matrices that are not hermitian: on the space of an eigenvalue that there is twice."""
    v = make(draw(4, 4))
    x = v @ np.diag([1, 1, 2, -1]) @ np.linalg.inv(v)

    def project(x: Any) -> Any:
        w, v = L.eig(x)
        return (v * (rg.abs(w - 1) < 0.5)) @ L.inv(v)

    def polynomial(x: Any) -> Any:  # 1 and flat at 1, 0 and flat at 2 and -1
        one = rg.eye(4, dtype="complex128")
        p = (x - 2 * one) @ (x + one)
        return 0.25 * p @ p @ x

    x = np.asarray(x, complex)
    c = draw(4, 4, seed=1)
    close(project(x), polynomial(rg.asarray(x)).numpy())
    close(rg.grad(weighted(project, c))(x), rg.grad(weighted(polynomial, c))(x).numpy(), 1e-8)


def test_projections_by_singular_values() -> None:
    def project(x: Any) -> Any:
        vh = L.svd(x, full_matrices=False).Vh[:2]
        return mH(vh) @ vh

    x = unitary(3) * np.array([3.0, 3, 1]) @ unitary(3)
    matching(project, lambda x: step(mH(x) @ x, 1, 9), np.asarray(x))


@pytest.mark.parametrize("values", [[3, 1, 0], [1, 0, 0], [0, 0, 0]])
@pytest.mark.sample(2)
def test_products_by_singular_values(values: Any) -> None:
    """`V s^2 V^H = x^H x`, with values of zero as well."""

    def gram(x: Any) -> Any:
        _, s, vh = L.svd(x, full_matrices=False)
        return (mH(vh) * s**2) @ vh

    x = unitary(3) * np.array(values, float) @ unitary(3)
    matching(gram, lambda x: mH(x) @ x, np.asarray(x))


@pytest.mark.parametrize("f", [L.eigh, L.svd, L.eig], ids=["eigh", "svd", "eig"])
@pytest.mark.parametrize("x", [np.eye(3) + 0j, np.zeros((3, 3), complex)])
@pytest.mark.sample(4)
def test_single_vectors_of_equal_values_have_no_derivative(f: Any, x: Array) -> None:
    c = rg.asarray(draw(3, 3))

    def total(z: Any) -> Any:
        vectors = f(z).U if f is L.svd else f(z).eigenvectors
        return rg.sum(rg.real(vectors * c))

    for run in (lambda h: h, rg.jit):
        assert np.isnan(run(rg.grad(total))(x).numpy()).all()
    assert np.isnan(rg.jvp(total, (rg.asarray(x),), (c,))[1].numpy())


@pytest.mark.parametrize("f", [L.eigh, L.svd, L.eig], ids=["eigh", "svd", "eig"])
def test_other_vectors_have_one(f: Any) -> None:
    """The vector of a simple value, where others are equal, moves as that of a matrix where they
    are not quite; forward and reverse."""
    c, t = draw(4), hermitian([1, 2, 3, -1])

    def total(z: Any) -> Any:
        values, vectors = f(z)[:2] if f is not L.svd else (f(z).S, f(z).U)
        column = vectors[:, rg.argmax(rg.real(values))]
        return rg.sum(rg.real(column * rg.asarray(c)))

    x, near = hermitian([1, 1, 1, 3]), hermitian([1, 1 + 1e-9, 1 - 1e-9, 3])
    found = rg.grad(total)(x)
    close(found, rg.grad(total)(near).numpy(), 1e-7)
    slope = rg.jvp(total, (rg.asarray(x),), (rg.asarray(t),))[1]
    close(slope, np.sum((found.numpy().conj() * t).real), 1e-9)


# -- lost rank ------------------------------------------------------------------------------------
@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_least_squares_of_lower_rank(rank: int) -> None:
    x = draw(5, rank) @ draw(rank, 4, seed=1)
    b = draw(5, 2)
    close(L.pinv(x), np.linalg.pinv(x))
    solution, _, found, _ = L.lstsq(x, b)
    close(solution, np.linalg.lstsq(x, b, rcond=None)[0])
    assert found.item() == rank
    assert L.matrix_rank(x).item() == rank
    if rank:
        # Along tangents that keep the rank, x A and B x, the derivative is that of differences.
        a, left = draw(4, 4, seed=2), draw(5, 5, seed=2)
        t = x @ a + left @ x

        def moved(h: float) -> Array:
            y = (np.eye(5) + h * left) @ x @ (np.eye(4) + h * a)
            return np.asarray(np.linalg.pinv(y, rcond=1e-9))

        want = (moved(1e-5) - moved(-1e-5)) / 2e-5
        found = rg.jvp(lambda z: L.pinv(z, rtol=1e-9), (rg.asarray(x),), (rg.asarray(t),))[1]
        close(found, want, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.sample(1)
def test_determinants_of_singular_matrices(rank: int) -> None:
    """They are polynomials, with derivatives of every order that is taken here."""

    def polynomial(x: Any) -> Any:
        a, b, c = (x[0, i] * (x[1, i - 2] * x[2, i - 1] - x[1, i - 1] * x[2, i - 2])
                   for i in range(3))  # fmt: skip
        return a + b + c

    x = draw(3, rank) @ draw(rank, 3, seed=1)
    t = rg.asarray(draw(3, 3, seed=2))
    for run in (lambda h: h, rg.jit):
        slopes = [rg.grad(lambda z, f=f: rg.real(f(z))) for f in (L.det, polynomial)]
        first, expected = (run(g)(x) for g in slopes)
        close(first, expected.numpy(), 1e-11)
        second, expected = (
            run(rg.grad(lambda z, g=g: rg.sum(rg.real(g(z) * t))))(x) for g in slopes
        )
        close(second, expected.numpy(), 1e-11)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [3, 14, 20])
@pytest.mark.sample(4)
def test_matrices_without_an_inverse(n: int, dtype: str) -> None:
    """Each is named, and none gives numbers."""
    x = (draw(2, n, n) + n * np.eye(n)).astype(dtype)
    x[1, :, n // 2] = 0
    for f in (L.inv, lambda y: L.solve(y, y), lambda y: L.solve_triangular(y, y)):
        with pytest.raises(LinAlgError, match=r"\[1\].* singular"):
            rg.jit(f)(x).numpy()
    definite = x @ x.conj().swapaxes(1, 2)
    definite[1, 2, 2] = -1
    with pytest.raises(LinAlgError, match=r"\[1\].* positive definite.* order 3"):
        rg.jit(L.cholesky)(definite).numpy()
    assert L.det(x).numpy()[1] == 0
    sign, size = L.slogdet(x)
    assert sign.numpy()[1] == 0
    assert size.numpy()[1] == -np.inf


# -- no elements ----------------------------------------------------------------------------------
ALL: dict[str, Callable[[Any], Any]] = {
    name: getattr(L, name)
    for name in (
        "cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "expm", "inv", "lu", "pinv", "qr",
        "slogdet", "svd", "svdvals",
    )
}  # fmt: skip
ALL |= {
    "solve": lambda x: L.solve(x, x),
    "lstsq": lambda x: L.lstsq(x, x).solution,
    "triangular": lambda x: L.solve_triangular(x, x),
    "power": lambda x: L.matrix_power(x, 3),
}


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("name", ALL)
@pytest.mark.sample(5)
def test_empty_arrays(name: str, dtype: str) -> None:
    """Of 0x0 matrices, and of stacks of none: shapes and dtypes are those of others."""
    f = ALL[name]
    some = f(rg.asarray(np.stack([np.eye(3, dtype=dtype)] * 2)))
    some = some if isinstance(some, tuple) else (some,)
    for shape in ((0, 3, 3), (2, 0, 0), (0, 0)):
        x = rg.asarray(np.zeros(shape, dtype))
        for run in (lambda h: h, rg.jit):
            found = run(f)(x)
            found = found if isinstance(found, tuple) else (found,)
            for y, like in zip(found, some, strict=True):
                assert y.dtype is like.dtype
                sizes = dict(zip((2, 3), (shape[0], shape[-1]), strict=True))
                expected = tuple(sizes[n] for n in like.shape)
                assert y.numpy().shape == (expected if len(shape) == 3 else expected[1:])
        assert rg.grad(lambda z: total(f(z)))(x).numpy().shape == shape


def total(results: Any) -> Any:
    results = results if isinstance(results, tuple) else (results,)
    return sum(rg.sum(rg.abs(y)) for y in results)
