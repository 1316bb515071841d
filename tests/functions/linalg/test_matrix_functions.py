"""Functions of symmetric and hermitian matrices, the polar decomposition, and what is made of them:
derivatives of first, second and third order, where eigenvalues are equal, nearly equal, and not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.linalg

import retrograd as rg
from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.functions.linalg.matrix_functions import _graph
from retrograd.ir import Graph, TensorType, float64
from retrograd.ops.control.body import run
from retrograd.ops.control.matrix_function import divided_differences
from retrograd.ops.leaf import input_node

Array = np.ndarray[Any, Any]
F = Callable[[Any], Any]
L = rg.linalg


@pytest.fixture(params=["reference", pytest.param("llvm", marks=pytest.mark.slow)])
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    with rg.backend(request.param):
        yield request.param


def draw(*shape: int, complex: bool = False, seed: int = 0) -> Array:
    rng = np.random.default_rng((seed, *shape))
    x = rng.normal(size=shape)
    return np.asarray(x + 1j * rng.normal(size=shape) if complex else x)


def with_values(values: Any, complex: bool = False) -> Array:
    """A hermitian matrix with these eigenvalues."""
    q = np.linalg.qr(draw(len(values), len(values), complex=complex))[0]
    return np.asarray((q * values) @ q.conj().T)


POINTS = {
    "identity": np.eye(3),
    "twice": np.diag([1.0, 1.0, 2.0]),
    "pairs": with_values([1, 1, 2, 2]),
    "complex": with_values([1, 1, 2, 2], True),
    "close": with_values([1, 1 + 1e-13, 1 + 1e-8, 1 + 1e-3]),
    "complex close": with_values([1, 1 + 1e-10, 3], True),
    "apart": with_values([0.5, 1, 2.5]),
    "one": np.array([[2.0]]),
    "none": np.zeros((0, 0)),
    "stack": np.stack([np.eye(3), with_values([1, 1 + 1e-6, 2]), with_values([3, 1, 2])]),
}


def sym(x: Any) -> Any:
    return (x + mH(x)) / 2


def mH(x: Any) -> Any:
    return rg.conj(rg.matrix_transpose(x))


def like(x: Array, seed: int) -> Any:
    return rg.asarray(draw(*x.shape, complex=x.dtype.kind == "c", seed=seed))


def along(f: F, t: Any) -> F:
    return lambda x: rg.jvp(f, (x,), (t,))[1]


def weighted(f: F, t: Any) -> F:
    return lambda x: rg.sum(rg.real(f(x) * t))


def forward(f: F, x: Array, order: int) -> F:
    for k in range(order):
        f = along(f, like(x, k))
    return f


def reverse(f: F, x: Array, order: int) -> F:
    f = weighted(f, like(x, 7))
    for k in range(order):
        f = weighted(rg.grad(f), like(x, k))
    return f


def same(f: F, g: F, x: Array, orders: int = 3, tolerance: float = 1e-11) -> None:
    """Two functions of a matrix agree up to third derivatives, in both modes, compiled too."""
    z = rg.asarray(x)
    for order in range(orders + 1):
        for mode in (forward, reverse):
            found = rg.jit(mode(f, x, order)) if order % 2 else mode(f, x, order)
            expected = mode(g, x, order)(z).numpy()
            np.testing.assert_allclose(found(z).numpy(), expected, tolerance, tolerance)


def squared(x: Any) -> Any:
    return sym(x) @ sym(x)


# Each composition is a polynomial, whose derivatives need no eigenvalues.
IDENTITIES: dict[str, tuple[F, F]] = {
    "cube": (lambda x: L.funmh(x, lambda w: w**3), lambda x: squared(x) @ sym(x)),
    "root": (lambda x: L.sqrtmh(x) @ L.sqrtmh(x), sym),
    "inverse root": (lambda x: L.invsqrtmh(x) @ L.invsqrtmh(x), lambda x: L.inv(sym(x))),
    "logarithm": (lambda x: L.expmh(L.logmh(x)), sym),
    "exponential": (lambda x: L.expmh(0.5 * x), lambda x: L.expm(0.5 * sym(x))),
    "power": (lambda x: L.powmh(L.powmh(x, 1.5), 2 / 1.5), squared),
    "magnitude": (lambda x: L.absmh(x - 1.7 * eye(x)), lambda x: L.signmh(x - 1.7 * eye(x))
                  @ (sym(x) - 1.7 * eye(x))),
    "polar": (lambda x: L.polar(x).U @ L.polar(x).P, lambda x: x),
    "sign": (lambda x: L.polar(sym(x) - 1.7 * eye(x)).U, lambda x: L.signmh(x - 1.7 * eye(x))),
}  # fmt: skip


def eye(x: Any) -> Any:
    return rg.eye(x.shape[-1], dtype=x.dtype)


@pytest.mark.slow
@pytest.mark.parametrize("name", IDENTITIES)
@pytest.mark.sample(1)
def test_to_third_order(name: str) -> None:
    with rg.backend("reference"):
        same(*IDENTITIES[name], POINTS["complex"], tolerance=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", IDENTITIES)
def test_to_third_order_everywhere(name: str, point: str, backend: str) -> None:
    same(*IDENTITIES[name], POINTS[point], tolerance=1e-10)


FEW = [p if p in ("close", "one", "none", "stack") else pytest.param(p, marks=pytest.mark.slow)
       for p in POINTS]  # fmt: skip


@pytest.mark.parametrize("point", FEW)
def test_square_roots_to_second_order(point: str, backend: str) -> None:
    same(*IDENTITIES["root"], POINTS[point], 2)


@pytest.mark.parametrize("point", FEW)
def test_polar_factors_to_second_order(point: str, backend: str) -> None:
    """`x (x^H x)^(-1/2)`."""
    x = POINTS[point] + 0.3 * (draw(*POINTS[point].shape) if point == "apart" else 0)
    same(lambda x: L.polar(x).U, lambda x: x @ L.invsqrtmh(mH(x) @ x), x, 2, 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["root", "polar"])
@pytest.mark.sample(1)
def test_compiled(name: str) -> None:
    """First derivatives, and the second in one mode."""
    f, g = IDENTITIES[name]
    x = POINTS["complex close"]
    same(f, g, x, 1)
    t = like(x, 4)
    found, expected = (
        rg.jit(lambda x, h=h: rg.hvp(weighted(h, t), x, t))(x).numpy() for h in (f, g)
    )
    np.testing.assert_allclose(found, expected, 1e-11, 1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 3, 2)])
@pytest.mark.sample(1)
def test_polar_against_scipy(shape: tuple[int, ...], backend: str) -> None:
    x = draw(*shape, complex=True)
    for side in ("right", "left"):
        u, p = L.polar(x, side=side)
        for i in np.ndindex(shape[:-2]):
            expected = scipy.linalg.polar(x[i], side)
            np.testing.assert_allclose(u.numpy()[i], expected[0], 1e-12, 1e-13)
            np.testing.assert_allclose(p.numpy()[i], expected[1], 1e-12, 1e-13)
    for side in ("right", "left"):

        def recipe(z: Any, side: str = side) -> Any:
            u, s, vh = L.svd(z, full_matrices=False)
            p = (mH(vh) * rg.expand_dims(s, -2)) @ vh if side == "right" else (
                u * rg.expand_dims(s, -2)) @ mH(u)  # fmt: skip
            return rg.concat([u @ vh, p], -1 if side == "left" else -2)

        def joined(z: Any, side: str = side) -> Any:
            return rg.concat([*L.polar(z, side=side)], -1 if side == "left" else -2)

        same_total(joined, recipe, x)


def same_total(f: F, g: F, x: Array) -> None:
    """Gradients and second derivatives, of results that have another shape than the argument."""
    c = rg.asarray(draw(*f(rg.asarray(x)).shape, seed=5))
    t = like(x, 6)
    slopes = [rg.grad(lambda z, h=h: rg.sum(rg.real(h(z)) * c)) for h in (f, g)]
    found, expected = (s(rg.asarray(x)).numpy() for s in slopes)
    np.testing.assert_allclose(found, expected, 1e-9, 1e-10)
    found, expected = (
        rg.grad(lambda z, s=s: rg.sum(rg.real(s(z) * t)))(rg.asarray(x)).numpy() for s in slopes
    )
    np.testing.assert_allclose(found, expected, 1e-8, 1e-9)


# -- divided differences --------------------------------------------------------------------------
NUMBERS: dict[str, Callable[[Any], Any]] = {
    "sqrtmh": mpmath.sqrt,
    "invsqrtmh": lambda x: 1 / mpmath.sqrt(x),
    "logmh": mpmath.log,
    "expmh": mpmath.exp,
}


def exact(f: Callable[[Any], Any], points: Array) -> Any:
    """A divided difference in 120 digits, with equal points a little apart."""
    s = [mpmath.mpf(float(x)) for x in sorted(points)]
    s = [x * (1 + i * mpmath.mpf(10) ** -30) for i, x in enumerate(s)]
    values = [f(x) for x in s]
    for k in range(1, len(s)):
        values = [(values[i + 1] - values[i]) / (s[i + k] - s[i]) for i in range(len(s) - k)]
    return values[0]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("name", NUMBERS)
def test_divided_differences_of_any_distances(name: str, order: int) -> None:
    rng = np.random.default_rng(order)
    gaps = [0, 1e-15, 1e-13, 1e-10, 1e-7, 1e-5, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1, 2]
    steps = np.cumprod(1 + rng.choice(gaps, (60, order)), axis=1)
    first = rng.choice([1e-6, 0.3, 1.0, 5.0], (60, 1))
    points = rng.permuted(np.concatenate([first, first * steps], axis=1), axis=1)
    inputs = [input_node(TensorType(float64, (60,))) for _ in range(order + 1)]
    table = divided_differences(_graph(name, float64, 1), inputs, [])
    (found,) = run(Graph(inputs, [table]), list(points.T))
    with mpmath.workdps(120):
        for y, x in zip(found, points, strict=True):
            expected = exact(NUMBERS[name], x)
            assert abs(mpmath.mpf(float(y)) / expected - 1) < 1e-12, x


def test_functions_with_kinks_and_jumps() -> None:
    """Where eigenvalues lie on either side, differences are quotients; where on one, slopes."""
    x, t = with_values([-2, -2, 1, 3]), sym(rg.asarray(draw(4, 4))).numpy()
    w, v = np.linalg.eigh(x)
    kinked: list[tuple[Callable[[Any], Any], F]] = [
        (np.abs, rg.abs),
        (np.sign, rg.sign),
        (lambda w: np.maximum(w, 0), rg.relu),
        (lambda w: 1.0 * (w > 0), lambda w: w > 0),
    ]
    for f, of_tensor in kinked:
        same_side = np.sign(w)[:, None] == np.sign(w)
        slope = (f(w + 1e-3) - f(w - 1e-3)) / 2e-3
        gap = np.where(same_side, 1, w[:, None] - w)
        table = np.where(same_side, slope[:, None], (f(w)[:, None] - f(w)) / gap)
        expected = v @ (table * (v.T @ t @ v)) @ v.T
        _, found = rg.jvp(lambda x, f=of_tensor: L.funmh(x, f), (rg.asarray(x),), (rg.asarray(t),))
        np.testing.assert_allclose(found.numpy(), expected, 1e-10, 1e-11)


# -- values, types, transforms --------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "complex128"])
def test_dtypes(dtype: str, backend: str) -> None:
    x = rg.astype(rg.asarray(with_values([1, 1, 2], dtype.startswith("complex"))), dtype)
    wide = x.numpy().astype("complex128" if dtype.startswith("complex") else "float64")
    tolerance = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-6, "complex64": 2e-6}
    for name, f in {"sqrtmh": np.sqrt, "logmh": np.log, "expmh": np.exp, "absmh": np.abs}.items():
        y = getattr(L, name)(x)
        assert y.dtype is x.dtype
        w, v = np.linalg.eigh((wide + wide.conj().T) / 2)
        expected = (v * f(w)) @ v.conj().T
        limit = tolerance.get(dtype, 1e-13)
        np.testing.assert_allclose(y.numpy().astype(expected.dtype), expected, limit, 4 * limit)
        assert rg.grad(lambda x, name=name: rg.sum(rg.abs(getattr(L, name)(x))))(x).dtype is x.dtype
    u, p = L.polar(x)
    assert u.dtype is p.dtype is x.dtype


def test_integers_become_floating() -> None:
    assert L.sqrtmh(rg.asarray([[4, 0], [0, 9]])).tolist() == [[2, 0], [0, 3]]


def test_vmap_and_backward(backend: str) -> None:
    x = POINTS["stack"]
    c = rg.asarray(draw(3, 3))
    for f in (L.sqrtmh, lambda x: L.polar(x).U, lambda x: L.funmh(x, rg.exp)):
        slope = rg.grad(weighted(f, c))
        second = rg.grad(weighted(slope, c))
        found, twice = (rg.vmap(g)(rg.asarray(x)).numpy() for g in (slope, second))
        for i, sample in enumerate(x):
            one, two = (g(rg.asarray(sample)).numpy() for g in (slope, second))
            np.testing.assert_allclose(found[i], one, 1e-12, 1e-13)
            np.testing.assert_allclose(twice[i], two, 1e-11, 1e-12)
        t = rg.tensor(x, requires_grad=True)
        rg.sum(f(t) * c).backward()
        np.testing.assert_allclose(t.grad.numpy(), found, 1e-12, 1e-13)


def test_numbers_from_around_the_function(backend: str) -> None:
    """`f(x; p)` has derivatives in p, to second order, also beside those in x, mapped too."""
    x, c = rg.asarray(with_values([1, 1, 2])), rg.asarray(draw(3, 3))

    def total(x: Any, p: Any) -> Any:
        return rg.sum(L.funmh(x, lambda w: w**2 * rg.exp(p * w)) * c)

    def written(x: Any, p: Any) -> Any:
        return rg.sum(sym(x) @ sym(x) @ L.expm(p * sym(x)) * c)

    p = rg.tensor(0.3, dtype="float64")
    for order in (lambda f: f, lambda f: lambda x, p: rg.sum(rg.grad(f)(x, p) * c)):
        pair = [rg.grad(order(f), argnums=1) for f in (total, written)]
        found, expected = (g(x, p).item() for g in pair)
        assert found == pytest.approx(expected, rel=1e-11)
        found, expected = (rg.grad(g, argnums=1)(x, p).item() for g in pair)
        assert found == pytest.approx(expected, rel=1e-11)
    several = rg.asarray(np.array([0.1, 0.3, -1.0]))
    slopes = rg.vmap(rg.grad(total, argnums=1), (None, 0))(x, several).numpy()
    expected = [rg.grad(written, argnums=1)(x, q).item() for q in several]
    np.testing.assert_allclose(slopes, expected, 1e-11)
    power = rg.grad(lambda p: rg.sum(L.powmh(x, p) * c))(rg.tensor(0.5, dtype="float64"))
    w, v = np.linalg.eigh(x.numpy())
    expected = np.sum((v * np.sqrt(w) * np.log(w)) @ v.T * c.numpy())
    assert power.item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_roots_of_matrices_of_lower_rank() -> None:
    a = draw(4, 2)
    x = a @ a.T
    y = L.sqrtmh(x).numpy()
    np.testing.assert_allclose(y @ y, x, 0, 1e-7)  # roots of rounding errors
    assert np.isnan(L.sqrtmh(np.diag([1.0, -1.0])).numpy()).any()
    assert np.isnan(L.logmh(np.diag([1.0, -1.0])).numpy()).any()
    for f in (L.sqrtmh, lambda x: L.polar(x).U, L.signmh):
        slope = rg.grad(lambda x, f=f: rg.sum(f(x) * rg.asarray(draw(3, 3))))(np.zeros((3, 3)))
        assert f is L.signmh or not np.isfinite(slope.numpy()).any()


def test_what_is_refused() -> None:
    for f in (L.sqrtmh, L.logmh, lambda x: L.funmh(x, rg.exp), lambda x: L.powmh(x, 2.0)):
        with pytest.raises(ShapeError, match="square"):
            f(rg.ones((2, 3)))
        with pytest.raises(ShapeError):
            f(rg.ones(3))
    with pytest.raises(ShapeError, match="not a number"):
        L.funmh(rg.eye(2), lambda w: rg.stack([w, w]))
    with pytest.raises(DTypeError, match="returned complex64"):
        L.funmh(rg.eye(2), lambda w: rg.complex(w, w))
    several = rg.tensor([1.0, 2.0])
    with pytest.raises(ShapeError, match="from around it"):
        L.funmh(rg.eye(2), lambda w: rg.sum(w * several))
    with pytest.raises(OptionError, match="side"):
        L.polar(rg.eye(2), side="up")


# -- symmetric functions of eigenvalues and singular values ---------------------------------------
SYMMETRIC: dict[str, tuple[F, F, list[str]]] = {
    "eigenvalues": (
        lambda x: rg.sum(L.eigvalsh(x) ** 3),
        lambda x: rg.real(L.trace(squared(x) @ sym(x))), ["identity", "twice", "pairs", "apart"]),
    "eigh": (
        lambda x: rg.sum(L.eigh(x).eigenvalues ** 3),
        lambda x: rg.real(L.trace(squared(x) @ sym(x))), ["identity", "pairs"]),
    "entropy": (
        lambda x: rg.sum(L.eigvalsh(x) * rg.log(L.eigvalsh(x))),
        lambda x: L.trace(sym(x) @ L.logmh(x)), ["identity", "pairs"]),
    "two matrices": (
        lambda x: rg.sum(L.eigvalsh(x) * L.eigvalsh(2 * x)),
        lambda x: 2 * L.trace(squared(x)), ["identity", "pairs"]),
    "product": (
        lambda x: rg.prod(L.eigvalsh(x)), lambda x: L.det(sym(x)), ["identity", "twice"]),
    "singular values": (
        lambda x: rg.sum(L.svdvals(x) ** 4),
        lambda x: L.trace(x @ x.mT @ x @ x.mT), ["identity", "pairs", "apart"]),
    "svd": (
        lambda x: rg.sum(L.svd(x).S ** 4),
        lambda x: L.trace(x @ x.mT @ x @ x.mT), ["identity", "pairs"]),
    "nuclear": (
        lambda x: L.matrix_norm(x, ord="nuc"),
        lambda x: L.trace(L.sqrtmh(x.mT @ x)), ["identity", "pairs", "apart"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SYMMETRIC)
@pytest.mark.sample(3)
def test_hessians_of_symmetric_functions(name: str, backend: str) -> None:
    f, g, points = SYMMETRIC[name]
    for point in points:
        x = rg.asarray(POINTS[point])
        for h in (rg.grad, rg.hessian):
            np.testing.assert_allclose(h(f)(x).numpy(), h(g)(x).numpy(), 1e-10, 1e-11)


@pytest.mark.parametrize("shape", [(3, 2), (2, 3)])
def test_hessians_of_rectangular_matrices(shape: tuple[int, int]) -> None:
    x = rg.asarray(2 * np.eye(*shape))
    for name in ("singular values", "nuclear"):
        f, g, _ = SYMMETRIC[name]
        turned = x if shape == (3, 2) else x.mT
        found, expected = rg.hessian(f)(x).numpy(), rg.hessian(g)(turned).numpy()
        expected = expected if shape == (3, 2) else expected.transpose(1, 0, 3, 2)
        np.testing.assert_allclose(found, expected, 1e-10, 1e-11)


def test_complex_hessians() -> None:
    x, t = rg.asarray(POINTS["complex"]), like(POINTS["complex"], 3)
    f, g, _ = SYMMETRIC["eigenvalues"]
    found, expected = (rg.hvp(h, x, t).numpy() for h in (f, g))
    np.testing.assert_allclose(found, expected, 1e-11, 1e-12)


def test_second_derivatives_that_are_not_known_are_nan() -> None:
    """Modes in which vectors of equal eigenvalues would have to be chosen twice, functions that are
    not symmetric, and what comes after the second derivative."""
    x, s, t = (rg.asarray(a) for a in (np.eye(3), draw(3, 3, seed=1), draw(3, 3, seed=2)))
    cube = SYMMETRIC["eigenvalues"][0]

    ordered = rg.asarray(np.diag([1.0, 2, 3])), rg.asarray(np.diag([3.0, 1, 2]))
    assert np.isnan(along(along(cube, s), t)(x).numpy())
    assert np.isnan(along(along(cube, ordered[0]), ordered[1])(x).numpy())
    assert np.isnan(rg.grad(along(cube, s))(x).numpy()).all()
    assert np.isnan(rg.grad(lambda x: rg.sum(rg.grad(cube)(x) * t))(x).numpy()).all()
    assert np.isnan(rg.hvp(lambda x: L.eigvalsh(x)[0] ** 2, x, t).numpy()).all()
    assert np.isnan(along(lambda x: rg.hvp(cube, x, s), t)(x).numpy()).any()
    assert np.isnan(rg.hvp(lambda x: rg.sum(L.svdvals(x) ** 2), 0 * x, t).numpy()).any()


def test_directional_derivatives_of_equal_eigenvalues() -> None:
    """They are those of the values in order, for small steps."""
    t = draw(3, 3)
    t = t + t.T
    for make, x in ((L.eigvalsh, 2 * np.eye(3)), (L.svdvals, 2 * np.eye(3))):
        _, found = rg.jvp(make, (rg.asarray(x),), (rg.asarray(t),))
        expected = (make(rg.asarray(x + 1e-7 * t)).numpy() - 2) / 1e-7
        np.testing.assert_allclose(found.numpy(), expected, 1e-5, 1e-5)
    x = np.diag([1.0, 1, 3])
    found = rg.jvp(L.eigvalsh, (rg.asarray(x),), (rg.asarray(t),))[1].numpy()  # type: ignore[assignment]
    np.testing.assert_allclose(found, [*np.linalg.eigvalsh(t[:2, :2]), t[2, 2]], 1e-12)
