"""`rg.linalg` against NumPy and SciPy, derivatives against finite differences, and identities."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import retrograd as rg
from retrograd.errors import DTypeError, LinAlgError, OptionError, ShapeError
from tests.functions.linalg.matrices import Array, close, general, positive

SHAPES = [(3, 3), (1, 1), (0, 0), (17, 17), (2, 3, 3), (0, 2, 2), (2, 1, 4, 4)]
TALL = [(5, 3), (4, 1), (3, 0), (2, 6, 2)]
WIDE = [(3, 5), (1, 4), (2, 2, 6)]


@pytest.mark.parametrize("backend", ["llvm", "reference"])
@pytest.mark.parametrize("shape", [*SHAPES, *TALL, *WIDE])
def test_against_numpy(shape: tuple[int, ...], backend: str) -> None:
    x = general(*shape)
    square = shape[-1] == shape[-2]
    names = ["matrix_rank", "pinv", "svdvals", "trace", "diagonal"] if x.size else []
    if square:
        names += ["det", "inv", "slogdet"]
    with rg.backend(backend):
        for name in names:
            found = getattr(rg.linalg, name)(rg.asarray(x))
            expected = getattr(np.linalg, name)(x)
            pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [
                (found, expected)
            ]  # fmt: skip
            for f, e in pairs:
                close(f, e)


@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3,)), ((2, 3, 3), (3, 2)), ((3, 3), (4, 3, 2)),
     ((2, 1, 3, 3), (4, 3, 1)), ((3, 3), (5, 2, 3, 1)), ((0, 3, 3), (3, 1)), ((0, 0), (0, 2))],
)  # fmt: skip
def test_solve(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = general(*a), np.random.default_rng(1).standard_normal(b)
    expected = np.linalg.solve(x, y)
    close(rg.linalg.solve(rg.asarray(x), rg.asarray(y)), expected)
    close(rg.linalg.lu_solve(rg.linalg.lu_factor(rg.asarray(x)), rg.asarray(y)), expected)
    for lower, trans, unit in itertools.product((False, True), (0, 1), (False, True)):
        t = np.tril(x) if lower else np.triu(x)
        if unit:
            t = t - t * np.eye(a[-1]) + np.eye(a[-1])
        t = np.swapaxes(t, -1, -2) if trans else t
        found = rg.linalg.solve_triangular(
            rg.asarray(x), rg.asarray(y), trans=trans, lower=lower, unit_diagonal=unit
        )
        close(found, np.linalg.solve(t, y))


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 6, 2)])
def test_lstsq(shape: tuple[int, ...]) -> None:
    a, b = general(*shape), np.random.default_rng(2).standard_normal((*shape[:-1], 3))
    found = rg.linalg.lstsq(rg.asarray(a), rg.asarray(b))
    close(found.solution, np.linalg.pinv(a) @ b)
    close(found.residuals, ((a @ (np.linalg.pinv(a) @ b) - b) ** 2).sum(-2))
    close(found.singular_values, np.linalg.svd(a, compute_uv=False))
    assert (found.rank.numpy() == min(shape[-2:])).all()
    if a.ndim == 2:
        close(
            rg.linalg.lstsq(rg.asarray(a), rg.asarray(b[:, 0])).solution,
            np.linalg.lstsq(a, b[:, 0])[0],
        )
        a[:, -1] = a[:, 0]  # of lower rank
        found = rg.linalg.lstsq(rg.asarray(a), rg.asarray(b))
        close(found.solution, np.linalg.lstsq(a, b)[0])
        assert found.rank.item() == np.linalg.matrix_rank(a)


def test_a_tolerance_for_each_matrix() -> None:
    x = np.stack([np.diag([1, 1e-3, 1e-6])] * 3)
    rtol = np.array([1e-7, 1e-4, 1e-2])
    for given in (rtol, rg.asarray(rtol)):
        found = rg.linalg.matrix_rank(rg.asarray(x), rtol=given)
        np.testing.assert_array_equal(found.numpy(), [3, 2, 1])
        close(rg.linalg.pinv(rg.asarray(x), rtol=given), np.linalg.pinv(x, rtol=rtol))
    assert rg.linalg.lstsq(rg.asarray(x), rg.asarray(x), rtol=1e-4).rank.tolist() == [2, 2, 2]


@pytest.mark.parametrize("n", [-3, -1, 0, 1, 2, 5, 10])
def test_matrix_power(n: int) -> None:
    x = general(2, 3, 3)
    close(rg.linalg.matrix_power(rg.asarray(x), n), np.linalg.matrix_power(x, n), 1e-8)


@pytest.mark.slow
def test_products() -> None:
    rng = np.random.default_rng(3)
    for a, b in (((2, 3), (4, 5)), ((3,), (2, 2)), ((2, 2), (3,)), ((2, 1, 3), (2, 2)), ((), (2,))):
        x, y = rng.standard_normal(a), rng.standard_normal(b)
        close(rg.linalg.kron(rg.asarray(x), rg.asarray(y)), np.kron(x, y))
    x, y = rng.standard_normal((4, 3)), rng.standard_normal((2, 1, 3))
    close(rg.linalg.cross(rg.asarray(x), rg.asarray(y)), np.linalg.cross(x, y))
    close(rg.linalg.cross(rg.asarray(x.T.copy()), rg.asarray(x.T.copy() + 1), axis=0),
          np.linalg.cross(x.T, x.T + 1, axis=0))  # fmt: skip
    chain = [rng.standard_normal(s) for s in ((4,), (4, 50), (50, 2), (2, 30), (30,))]
    for first, last in ((0, 5), (1, 5), (0, 4), (1, 4), (1, 3), (1, 2)):
        part = chain[first:last]
        want = part[0] if len(part) == 1 else np.linalg.multi_dot(part)
        close(rg.linalg.multi_dot([rg.asarray(c) for c in part]), want)
    for k in range(-5, 6):
        x = rng.standard_normal((2, 3, 4))
        close(rg.linalg.diagonal(rg.asarray(x), offset=k), np.linalg.diagonal(x, offset=k), 0)
        close(rg.linalg.trace(rg.asarray(x), offset=k), np.linalg.trace(x, offset=k))
        close(rg.linalg.diag(rg.asarray(x[0]), k), np.diag(x[0], k), 0)
        close(rg.linalg.diag(rg.asarray(x[0, 0]), k), np.diag(x[0, 0], k), 0)
    assert rg.linalg.trace(rg.asarray(np.eye(3, dtype=np.int8))).dtype is rg.int64


def test_einsum_takes_a_good_order() -> None:
    """Left to right would take a matrix of a million elements."""
    rng = np.random.default_rng(4)
    a, b, c, d = (rng.standard_normal(s) for s in ((1000, 2), (2, 1000), (1000, 2), (2, 3)))
    graph = rg.trace(lambda *x: rg.einsum("ij,jk,kl,lm->im", *x), a, b, c, d)
    assert graph.stats().flops < 100_000
    close(graph(a, b, c, d), np.einsum("ij,jk,kl,lm->im", a, b, c, d, optimize=True))
    e = rng.standard_normal((2, 3, 2))
    text = "...a,ab,b...,a,->..."
    operands = [
        e,
        rng.standard_normal((2, 4)),
        rng.standard_normal((4, 2, 3)),
        e[0, 0],
        np.float64(2),
    ]
    close(rg.einsum(text, *map(rg.asarray, operands)), np.einsum(text, *operands))


# -- derivatives ----------------------------------------------------------------------------------
def weights(y: Any, seed: int = 0) -> Any:
    parts = list(y) if isinstance(y, tuple) else [y]
    rng = np.random.default_rng(seed)
    parts = [p for p in parts if p.dtype is rg.float64]
    total = [rg.sum(p * rg.asarray(rng.uniform(0.5, 1.5, p.shape))) for p in parts]
    return sum(total[1:], total[0])


def value(f: Callable[[Any], Any], x: Array) -> Any:
    return f(rg.asarray(x)).numpy()


def difference(f: Callable[[Any], Any], x: Any, t: Any, h: float = 1e-3) -> Any:
    near, far = f(x + h * t) - f(x - h * t), f(x + 2 * h * t) - f(x - 2 * h * t)
    return (8 * near - far) / (12 * h)


FUNCTIONS: dict[str, tuple[Callable[..., Any], Array]] = {
    "det": (rg.linalg.det, general(2, 3, 3)),
    "expm": (rg.linalg.expm, general(2, 3, 3) / 2),
    "expm, scaled": (rg.linalg.expm, general(3, 3) - 4 * np.eye(3)),
    "slogdet": (rg.linalg.slogdet, general(3, 3)),
    "inv": (rg.linalg.inv, general(2, 3, 3)),
    "pinv tall": (rg.linalg.pinv, general(4, 2)),
    "pinv wide": (rg.linalg.pinv, general(2, 4)),
    "lu tall": (rg.linalg.lu, general(4, 3)),
    "lu wide": (rg.linalg.lu, general(2, 4)),
    "lu_solve": (lambda x: rg.linalg.lu_solve(rg.linalg.lu_factor(x), x[:, 0]), general(3, 3)),
    "qr tall": (rg.linalg.qr, general(4, 3)),
    "qr wide": (rg.linalg.qr, general(2, 4)),
    "svd wide": (lambda x: rg.linalg.svd(x, full_matrices=False), general(2, 4)),
    "svd full": (rg.linalg.svd, general(3, 3)),
    "eigh": (rg.linalg.eigh, positive(3, 3)),
    "solve": (lambda x: rg.linalg.solve(x, x[0] ** 2), general(3, 3)),
    "solve many": (lambda x: rg.linalg.solve(x[0], x**2), general(2, 3, 3)),
    "lstsq": (lambda x: rg.linalg.lstsq(x, x[:, 0] ** 2).solution, general(4, 2)),
    "matrix_power": (lambda x: rg.linalg.matrix_power(x, -3), general(3, 3)),
    "cond": (rg.linalg.cond, general(4, 3)),
    "nuc": (lambda x: rg.linalg.matrix_norm(x, ord="nuc"), general(4, 3)),
    "diagonal": (lambda x: rg.linalg.diagonal(x, offset=1) ** 2, general(3, 4)),
    "diag": (lambda x: rg.linalg.diag(x[0], 2) ** 3, general(3, 4)),
    "kron": (lambda x: rg.kron(x, x[:2]), general(3, 3)),
    "cross": (lambda x: rg.cross(x, x**2), general(3, 3)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.sample(4)
def test_derivatives(name: str) -> None:
    """First order of the value, second of the gradient; forward mode beside reverse."""
    f, x = FUNCTIONS[name]
    loss = rg.jit(lambda y: weights(f(y)))
    first = rg.jit(rg.grad(lambda y: weights(f(y))))
    inner = rg.asarray(np.random.default_rng(5).uniform(0.5, 1.5, x.shape))
    second = rg.jit(rg.grad(lambda y: rg.sum(rg.grad(lambda z: weights(f(z)))(y) * inner)))
    rng = np.random.default_rng(6)
    for _ in range(2):
        t = rng.uniform(-1, 1, x.shape)
        g = first(rg.asarray(x)).numpy()
        want = difference(lambda y: loss(rg.asarray(y)).numpy(), x, t)
        np.testing.assert_allclose(np.sum(g * t), want, 1e-8, 1e-8)
        h = second(rg.asarray(x)).numpy()
        want = difference(lambda y: rg.sum(first(rg.asarray(y)) * inner).numpy(), x, t)
        np.testing.assert_allclose(np.sum(h * t), want, 1e-7, 1e-7)
        _, tangent = rg.jvp(lambda y: weights(f(y)), (rg.asarray(x),), (rg.asarray(t),))
        np.testing.assert_allclose(tangent.numpy(), np.sum(g * t), 1e-10, 1e-10)


THIRD = ["det", "inv", "qr tall", "svd wide", "eigh", "lu tall", "expm", "pinv tall", "solve"]


@pytest.mark.parametrize("name", THIRD)
@pytest.mark.sample(1)
def test_third_derivatives(name: str) -> None:
    """Along a line, by reverse mode three times."""
    f, x = FUNCTIONS[name]
    t = np.random.default_rng(14).uniform(-1, 1, x.shape)

    def along(h: Any) -> Any:
        return weights(f(rg.asarray(x) + h * rg.asarray(t)))

    second = rg.jit(rg.grad(rg.grad(along)))
    third = rg.grad(rg.grad(rg.grad(along)))(rg.asarray(np.float64(0))).numpy()
    want = difference(partial(value, second), np.float64(0), np.float64(1))
    np.testing.assert_allclose(third, want, 1e-7, 1e-7)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap(name: str) -> None:
    f, x = FUNCTIONS[name]
    stack = np.stack([x, 1.5 * x, x + 0.01])
    found = rg.vmap(f)(rg.asarray(stack))
    for i, sample in enumerate(stack):
        expected = f(rg.asarray(sample))
        for a, b in zip(
            *(y if isinstance(y, tuple) else (y,) for y in (found, expected)), strict=True
        ):
            close(a[i], b.numpy())


# -- degenerate cases -----------------------------------------------------------------------------
def test_repeated_eigenvalues() -> None:
    """Of a function of the space that vectors span, the gradient is right."""
    q = np.linalg.qr(np.random.default_rng(7).standard_normal((5, 5)))[0]
    x = (q * [1, 1, 1, 2, 2]) @ q.T
    c = rg.asarray(np.random.default_rng(8).standard_normal((5, 5)))

    def project(y: Any) -> Any:
        v = rg.linalg.eigh(y).eigenvectors[:, :3]
        return rg.sum(c * (v @ rg.matrix_transpose(v)))

    t = np.random.default_rng(9).standard_normal((5, 5))
    g = rg.grad(project)(rg.asarray(x)).numpy()
    want = difference(lambda y: project(rg.asarray(y)).numpy(), x, t + t.T)
    np.testing.assert_allclose(np.sum(g * (t + t.T)), want, 1e-7)
    for f in (rg.linalg.eigh, lambda y: rg.linalg.svd(y)):
        for point in (np.eye(4), np.zeros((4, 4))):
            g = rg.grad(lambda y, f=f: weights(f(y)))(rg.asarray(point)).numpy()
            assert np.isnan(g).all()
    g = rg.grad(lambda y: rg.sum(rg.linalg.eigvalsh(y) ** 2))(rg.asarray(np.eye(4)))
    close(g, 2 * np.eye(4))


@pytest.mark.parametrize("backend", ["llvm", "reference"])
@pytest.mark.parametrize(
    "values",
    [
        rg.linalg.eigvalsh,
        lambda y: rg.linalg.eigh(y).eigenvalues,
        rg.linalg.svdvals,
        lambda y: rg.linalg.svd(y).S,
    ],
)
def test_second_derivatives_at_repeated_values(values: Any, backend: str) -> None:
    """Forward mode through the gradient is complete. Reverse mode through it does not know how the
    gradient by the values depends on them: NaN, unless t does not join vectors of equal values."""
    t = np.random.default_rng(12).standard_normal((4, 4))
    t = t + t.T
    apart = t.copy()
    apart[0, 1] = apart[1, 0] = 0

    def f(y: Any) -> Any:
        return rg.sum(values(y) ** 2)

    with rg.backend(backend):
        x, along = rg.asarray(np.diag([2.0, 2, 5, 1])), rg.asarray(t)
        close(rg.jvp(rg.grad(f), (x,), (along,))[1], 2 * t)
        twice = rg.grad(lambda y, c: rg.sum(rg.grad(f)(y) * rg.asarray(c)))
        assert np.isnan(twice(x, t).numpy()).all()
        close(twice(x, apart), 2 * apart)


def test_pinv_of_lower_rank() -> None:
    """At constant rank the derivative is exact, with equal singular values as well."""
    rng = np.random.default_rng(12)
    u, v = (np.linalg.qr(rng.standard_normal((n, 2)))[0] for n in (5, 4))
    x = 3 * u @ v.T
    a, b = rng.standard_normal((5, 5)), rng.standard_normal((4, 4))

    def moved(h: float) -> Array:
        return np.asarray((np.eye(5) + h * a) @ x @ (np.eye(4) + h * b))

    tangent = a @ x + x @ b
    want = difference(lambda h: np.linalg.pinv(moved(float(h))), np.float64(0), np.float64(1))
    _, found = rg.jvp(
        lambda y: rg.linalg.pinv(y, rtol=1e-10), (rg.asarray(x),), (rg.asarray(tangent),)
    )
    close(found, want, 1e-8)
    g = rg.grad(lambda y: weights(rg.linalg.pinv(y, rtol=1e-10)))(rg.asarray(x))
    close(rg.sum(g * rg.asarray(tangent)), weights(rg.asarray(want)).numpy(), 1e-8)


def test_expm_far_and_near() -> None:
    rng = np.random.default_rng(13)
    for scale in (0, 1e-8, 0.1, 3, 30, 200):
        for n in (1, 2, 5, 30):
            x = rng.standard_normal((n, n)) * scale / n**0.5
            x = x - max(0, scale - 10) * np.eye(n)
            want = scipy.linalg.expm(x)
            found = rg.linalg.expm(rg.asarray(x)).numpy()
            assert np.abs(found - want).max() <= 1e-12 * (1 + scale) * np.abs(want).max()
    turn = np.array([[0.0, -100 * np.pi], [100 * np.pi, 0.0]])
    close(rg.linalg.expm(rg.asarray(turn)), np.eye(2), 1e-10)
    for bad in (np.nan, np.inf, -np.inf):
        for backend in ("llvm", "reference"):
            with rg.backend(backend):
                stack = np.stack([np.eye(3), np.diag([1, bad, 0])])
                y = rg.linalg.expm(rg.asarray(stack)).numpy()
            np.testing.assert_allclose(y[0], np.e * np.eye(3), atol=1e-14)
            assert np.isnan(y[1]).all()


def test_singular() -> None:
    x = general(2, 3, 3)
    x[1, 2] = 0
    x[1, :, 2] = 0
    t = rg.asarray(x)
    close(rg.linalg.det(t), np.linalg.det(x))
    sign, logarithm = rg.linalg.slogdet(t)
    assert sign.numpy()[1] == 0
    assert logarithm.numpy()[1] == -np.inf
    for f in (rg.linalg.inv, lambda y: rg.linalg.solve(y, y[0, 0])):
        with pytest.raises(
            LinAlgError, match=r"(solve|inv) of the matrix \[1\]: it is singular.*test_linalg.py"
        ):
            f(t).numpy()
    with pytest.raises(LinAlgError, match=r"inv of the matrix \[1\]: it is singular"):
        rg.grad(lambda y: rg.sum(rg.linalg.slogdet(y).logabsdet))(t).numpy()
    with pytest.raises(np.linalg.LinAlgError, match="diagonal"):
        rg.linalg.solve_triangular(t, t[0, 0]).numpy()
    with pytest.raises(ValueError, match=r"not positive definite"):
        rg.linalg.cholesky(t - 10).numpy()


def test_a_remembered_program_names_the_line_of_this_call() -> None:
    x = rg.asarray(np.zeros((2, 5, 5)))

    def first() -> None:
        rg.linalg.inv(x).numpy()

    def second() -> None:
        rg.linalg.inv(x).numpy()

    for f, name in ((first, "first"), (second, "second"), (first, "first")):
        with pytest.raises(LinAlgError, match=rf"test_linalg.py:\d+ in {name}:"):
            f()


# -- the namespace --------------------------------------------------------------------------------
STANDARD = {
    "cholesky": "(x, /, *, upper=False)",
    "cross": "(x1, x2, /, *, axis=-1)",
    "det": "(x, /)",
    "diagonal": "(x, /, *, offset=0)",
    "eigh": "(x, /)",
    "eigvalsh": "(x, /)",
    "inv": "(x, /)",
    "matmul": "(x1, x2, /)",
    "matrix_norm": "(x, /, *, keepdims=False, ord='fro')",
    "matrix_power": "(x, n, /)",
    "matrix_rank": "(x, /, *, rtol=None)",
    "matrix_transpose": "(x, /)",
    "outer": "(x1, x2, /)",
    "pinv": "(x, /, *, rtol=None)",
    "qr": "(x, /, *, mode='reduced')",
    "slogdet": "(x, /)",
    "solve": "(x1, x2, /)",
    "svd": "(x, /, *, full_matrices=True)",
    "svdvals": "(x, /)",
    "tensordot": "(x1, x2, /, *, axes=2)",
    "trace": "(x, /, *, offset=0, dtype=None)",
    "vecdot": "(x1, x2, /, *, axis=-1)",
    "vector_norm": "(x, /, *, axis=None, keepdims=False, ord=2)",
}


@pytest.mark.parametrize("name", STANDARD)
def test_the_standard_names(name: str) -> None:
    """Arguments of the standard, with its defaults; PyTorch's `dim` and others may stand beside."""
    parameters = inspect.signature(getattr(rg.linalg, name)).parameters
    scope: dict[str, Any] = {}
    exec(f"def f{STANDARD[name]}: ...", scope)
    wanted = inspect.signature(scope["f"]).parameters
    positional = [p for p, kind in wanted.items() if kind.kind is kind.POSITIONAL_ONLY]
    assert list(parameters)[: len(positional)] == positional
    assert {p: parameters[p].default for p in wanted} == {p: wanted[p].default for p in wanted}
    by_name = [p for p in wanted if p not in positional]
    assert all(parameters[p].kind is not inspect.Parameter.POSITIONAL_ONLY for p in by_name)
    assert name in rg.linalg.__all__


def test_every_name_has_a_docstring() -> None:
    assert all(getattr(rg.linalg, name).__doc__ for name in rg.linalg.__all__)


def test_results_have_names() -> None:
    t = rg.asarray(positive(3, 3))
    for f, fields in (
        (rg.linalg.eigh, ("eigenvalues", "eigenvectors")),
        (rg.linalg.qr, ("Q", "R")),
        (rg.linalg.slogdet, ("sign", "logabsdet")),
        (rg.linalg.svd, ("U", "S", "Vh")),
    ):
        for result in (f(t), f(t), rg.jit(f)(t), rg.vmap(f)(t[None])):
            assert result._fields == fields  # type: ignore[attr-defined]
            assert all(isinstance(x, rg.Tensor) for x in result)


@pytest.mark.slow
def test_symbolic_sizes_and_text(tmp_path: Any) -> None:
    def f(a: Any, b: Any) -> Any:
        w, v = rg.linalg.eigh(a)
        c = rg.linalg.cholesky(a)
        return rg.linalg.solve(a, b) + c @ b + v @ b + rg.linalg.inv(a) @ b, w, rg.linalg.det(a)

    run = rg.jit(f, shapes={"a": "B N N", "b": "B N K"})
    for b, n, k in ((2, 3, 4), (1, 5, 1), (3, 1, 2)):
        a, y = positive(b, n, n), np.random.default_rng(0).standard_normal((b, n, k))
        for x, e in zip(
            run(rg.asarray(a), rg.asarray(y)), f(rg.asarray(a), rg.asarray(y)), strict=True
        ):
            close(x, e.numpy())
    graph = rg.trace(f, a, y)
    assert rg.Graph.parse(str(graph)) == graph
    graph.save(tmp_path / "graph.txt")
    for x, e in zip(rg.load_graph(tmp_path / "graph.txt")(a, y), graph(a, y), strict=True):
        close(x, e.numpy(), 0)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_other_dtypes(dtype: str) -> None:
    x = positive(2, 3, 3)
    t = rg.astype(rg.asarray(x), dtype)
    eps = {"float32": 1e-5, "float16": 2e-2, "bfloat16": 1e-1}[dtype]
    for f in (rg.linalg.inv, rg.linalg.cholesky, rg.linalg.det, rg.linalg.pinv):
        y = f(t)
        assert str(y.dtype) == dtype
        close(rg.astype(y, "float64"), f(rg.asarray(x)).numpy(), eps)
    assert rg.linalg.inv(rg.asarray(np.eye(2, dtype=np.int32))).dtype is rg.float32


def test_refuses() -> None:
    x, v = rg.asarray(general(3, 4)), rg.asarray(np.ones(3))
    for f in (rg.linalg.cholesky, rg.linalg.det, rg.linalg.inv, rg.linalg.eigh, rg.linalg.slogdet,
              rg.linalg.lu_factor, lambda y: rg.linalg.matrix_power(y, 2)):  # fmt: skip
        with pytest.raises(ShapeError):
            f(x)
        with pytest.raises(ShapeError):
            f(v)
    with pytest.raises(ShapeError, match="equally many rows"):
        rg.linalg.solve(x[:, :3], rg.asarray(np.ones(4)))
    with pytest.raises(ShapeError, match="square"):
        rg.linalg.solve(x, v)
    with pytest.raises(OptionError):
        rg.linalg.qr(x, mode="raw")
    with pytest.raises(OptionError):
        rg.linalg.matrix_norm(x, ord=3)
    with pytest.raises(ShapeError, match="3 components"):
        rg.cross(x, x)
    with pytest.raises(ShapeError):
        rg.linalg.matrix_power(x[:, :3], 1.5)  # type: ignore[arg-type]
    with pytest.raises(DTypeError):
        rg.linalg.diag("abc")
