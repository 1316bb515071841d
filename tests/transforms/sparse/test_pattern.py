"""Patterns of dependence: everything that is not zero, and for known operations nothing else."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.transforms.sparse import pattern

RNG = np.random.default_rng(0)
BAND = np.triu(np.tril(np.ones((6, 6)), 1), -1)
INDEX = np.array([3, 0, 3, 5])

# Functions of a vector of six elements, and whether the pattern is exact.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "elementwise": (lambda x: rg.sin(x) * x + 1, True),
    "a mask": (lambda x: x * np.array([1.0, 0, 1, 0, 0, 1]), True),
    "a choice": (lambda x: rg.where(np.arange(6) < 2, x, x[::-1]), True),
    "differences": (lambda x: x[1:] - x[:-1], True),
    "broadcast": (lambda x: x[:, None] * x[None, :3], True),
    "reshape and transpose": (lambda x: (x.reshape(2, 3).T ** 2).reshape(-1), True),
    "pad, roll, concat": (lambda x: rg.concat([rg.pad(x, 1), rg.roll(x, 2)]), True),
    "sums": (lambda x: x.reshape(2, 3).sum(axis=0), True),
    "logsumexp": (lambda x: rg.logsumexp(x.reshape(2, 3), axis=1), True),
    "gather": (lambda x: rg.take(x, INDEX) ** 2, True),
    "scatter": (lambda x: rg.zeros(6, dtype="float64").at[INDEX].add(x[:4] ** 2), True),
    "set": (lambda x: x.at[np.array([1, 2])].set(x[:2] * 2), False),
    "a band": (lambda x: BAND @ x, True),
    "a product of two": (lambda x: x.reshape(2, 3) @ x.reshape(3, 2), True),
    "batched product": (lambda x: rg.einsum("bi,bj->bij", x.reshape(2, 3), x.reshape(2, 3)), True),
    "running sum": (lambda x: rg.cumsum(x, axis=0), True),
    "running products of rows": (lambda x: rg.cumprod(x.reshape(2, 3) + 3, axis=1), True),
    "running sum backwards": (lambda x: rg.flip(rg.cumsum(rg.flip(x))) ** 2, True),
    "rows at positions that are not known": (
        lambda x: rg.take_along_axis(x.reshape(2, 3), rg.argsort(x.reshape(2, 3), axis=1), axis=1),
        False,
    ),
    "sorted rows": (lambda x: rg.sort(x.reshape(2, 3), axis=1), False),
    "windows": (lambda x: rg.avg_pool(x[None, None], 2, stride=1).reshape(-1), True),
    "convolution": (lambda x: rg.conv(x[None, None], np.ones((1, 1, 3))).reshape(-1), True),
    "strided convolution of zeros": (
        lambda x: rg.conv(
            x.reshape(1, 1, 2, 3), np.array([[[[1.0, 0], [0, 2]]]] * 2), stride=2, padding=1
        ).reshape(-1),
        True,
    ),
    "kernels": (lambda x: rg.conv(np.eye(3)[None], x.reshape(2, 3, 1)).reshape(-1), True),
    "grouped convolution": (
        lambda x: rg.conv(x.reshape(1, 2, 3), np.ones((4, 1, 2)), groups=2).reshape(-1),
        True,
    ),
    "convolution of both": (
        lambda x: rg.conv(x[None, None], x[:3][None, None]).reshape(-1),
        True,
    ),
    "matrices": (lambda x: rg.linalg.inv(x[:4].reshape(2, 2) + 3 * np.eye(2)).reshape(-1), False),
    "a stack of matrices": (
        lambda x: rg.linalg.inv(x[:, None, None] * np.ones((6, 2, 2)) + 3 * np.eye(2)).sum((1, 2)),
        True,
    ),
    "a stack of systems": (
        lambda x: rg.linalg.solve(np.eye(2) * 2 + np.ones((3, 2, 2)), x.reshape(3, 2, 1))[..., 0],
        True,
    ),
    "constant": (lambda x: rg.stop_gradient(x) * 2 + 0 * x, True),
    "comparison": (lambda x: rg.where(x > 0, x, 2 * x[::-1]), False),
    "loop": (lambda x: rg.scan(lambda c, v: (c * v, c), x[0], x)[1], True),
    "elementwise loop": (lambda x: rg.scan(lambda c, _: (rg.sin(c), None), x, length=9)[0], True),
    "long loop": (lambda x: rg.scan(lambda c, _: (rg.sin(c), None), x, length=9000)[0], True),
    "long loop of a band": (
        lambda x: rg.scan(lambda c, v: (c + v, rg.sin(c[1:])), x, rg.ones((9000, 6)))[1][-1],
        True,
    ),
    "loop that mixes": (
        lambda x: rg.scan(lambda c, _: (rg.concat([c[:1], c[:-1] + c[1:]]), None), x, length=2)[0],
        True,
    ),
    "loop backwards": (lambda x: rg.scan(lambda c, v: (c + v, c), 0.0, x, reverse=True)[1], True),
    "loop with an end": (
        lambda x: rg.while_loop(lambda s: s[1] < 5, lambda s: (s[0] * 1.1, s[1] + 1), (x, 0))[0],
        True,
    ),
    "choice of branches": (lambda x: rg.cond(x[0] < 9, lambda x: x * 2, rg.sin, x), True),
    "choice of different branches": (
        lambda x: rg.cond(x[0] < 9, lambda x: x * 2, lambda x: x[::-1], x),
        False,
    ),
    "custom rule": (rg.custom_jvp(rg.sin, lambda p, t: (rg.sin(p[0]), t[0] * rg.cos(p[0]))), True),
    "custom rule in reverse": (
        lambda x: rg.custom_vjp(
            lambda x, y: (x**3 + y[::-1], x),
            lambda x, y: ((x**3 + y[::-1], x), x),
            lambda x, g: (3 * x**2 * g[0] + g[1], g[0][::-1]),
        )(x, rg.sin(x))[0],
        True,
    ),
    "custom rule, batched": (
        rg.vmap(rg.custom_vjp(lambda x: x**3, lambda x: (x**3, x), lambda x, g: (3 * x**2 * g,))),
        True,
    ),
    "custom rule that forgets": (
        rg.custom_vjp(lambda x: x * x.sum(), lambda x: (x * x.sum(), x), lambda x, g: (g * x,)),
        True,
    ),
    "checkpoint": (rg.checkpoint(lambda x: rg.sin(x) ** 2), True),
}


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.sample(24)
def test_what_is_left_out_is_zero(name, backend):
    f, exact = FUNCTIONS[name]
    x = RNG.normal(size=6)
    dense = rg.jacobian(lambda x: f(x).reshape(-1))(x).numpy()
    with rg.backend(backend):
        found = rg.jacobian(f, sparse=True)(x)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-12, atol=1e-14)
    if exact:
        assert found.nnz == np.count_nonzero(dense)


def test_large_contractions_are_looked_at_by_rows(monkeypatch):
    f = lambda x: rg.einsum("bik,bkj->bij", x.reshape(3, 4, 2), np.ones((3, 2, 5)))
    x = RNG.normal(size=24)
    small = rg.jacobian(f, sparse=True)(x)
    monkeypatch.setattr(pattern, "MOST_PRODUCTS", 1)
    large = rg.jacobian(f, sparse=True)(x)
    assert small.nnz == large.nnz == 3 * 4 * 2 * 5
    np.testing.assert_allclose(small.toarray(), large.toarray())
