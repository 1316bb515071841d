"""Programs of symbolic sizes at many values of these: refused where an op is, right where not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import ShapeError
from retrograd.schedule.shape_checks import grows, rounded

N, E = rg.Dim("N"), rg.Dim("E")


def test_sizes_that_grow() -> None:
    assert all(map(grows, (0, 3, N, N * E + 2 * N + 1, N * N)))
    assert not any(map(grows, (-1, N - 1, N - E, N // 2, N * E - 3)))


def test_rounded_sizes_are_enough() -> None:
    for n in range(2000):
        m = rounded({"N": n})["N"]
        assert n <= m <= max(n, 5 * n // 4 + 1)


@pytest.mark.parametrize(
    ("f", "least"),
    [
        (lambda x: x[3:], 3),
        (lambda x: x[: x.shape[0] - 4], 4),
        (lambda x: x[1:-1], 2),
        (lambda x: rg.max(x, axis=0), 1),
    ],
)
def test_sizes_that_make_no_sense_are_refused(f: Any, least: int) -> None:
    jitted = rg.jit(lambda x: f(x * 2.0), shapes={"x": "N 2"})
    for n in (40, *range(least, 12)):
        x = np.arange(2.0 * n).reshape(n, 2)
        np.testing.assert_array_equal(jitted(x).numpy(), f(rg.tensor(x * 2)).numpy())
    for n in range(least):
        with pytest.raises(ShapeError):
            jitted(np.ones((n, 2)))


@pytest.mark.slow
def test_many_sizes_in_any_order() -> None:
    """Memory is laid out for several sizes together, which makes no difference to results."""

    def f(x: Any, w: Any, at: Any) -> Any:
        a = rg.softmax(x @ w, axis=1)
        b = rg.cumulative_sum(a[at] * 3.0, axis=0)
        return rg.sort(b, axis=0) @ w.T + rg.max(a)

    jitted = rg.jit(f, shapes={"x": "N 5", "w": "5 K", "at": "E"})
    rng = np.random.default_rng(0)
    for _ in range(150):
        n, k, e = (int(s) for s in rng.integers(1, 70, 3))
        x, w, at = rng.normal(size=(n, 5)), rng.normal(size=(5, k)), rng.integers(0, n, e)
        a = np.exp(x @ w - (x @ w).max(1, keepdims=True))
        a /= a.sum(1, keepdims=True)
        expected = np.sort(np.cumsum(a[at] * 3.0, 0), 0) @ w.T + a.max()
        np.testing.assert_allclose(jitted(x, w, at).numpy(), expected, rtol=1e-12, atol=1e-13)
    assert jitted.cache_stats()["compilations"] == 1


def scanned(f: Any) -> Any:
    return lambda x: rg.scan(lambda c, r: (c + f(r).sum(), c), rg.sum(x) * 0.0, x)[0]


KERNEL = np.ones((1, 1, 5))


@pytest.mark.parametrize("f", [
    scanned(lambda r: r[:5]),
    scanned(lambda r: r[2:-3]),
    scanned(lambda r: r[4]),
    scanned(lambda r: rg.max(r[4:])),
    scanned(lambda r: rg.conv(r[None, None], KERNEL)),
    scanned(lambda r: rg.arange(6, r.shape[0] + 1)),
    scanned(lambda r: rg.scan(lambda c, v: (c + v * r[4], v), r[0], r)[0]),
    rg.grad(scanned(lambda r: rg.sin(r[:5]))),
    lambda x: rg.cond(x.sum() > 0, lambda x: x[:, :5].sum(), lambda x: x.sum(), x),
    lambda x: rg.while_loop(lambda c: c < 30, lambda c: c + x[:, 4].sum(), rg.sum(x)),
    rg.vmap(lambda x: x[:5]),
    rg.grad(lambda x: rg.checkpoint(lambda x: rg.sin(x[:, :5]).sum())(x)),
])  # fmt: skip
@pytest.mark.parametrize("backend", ["llvm", "reference"])
@pytest.mark.sample(5)
def test_sizes_are_refused_inside_of_loops_and_branches(f: Any, backend: str) -> None:
    """No memory is read that is not there."""
    with rg.backend(backend):
        jitted = rg.jit(f, shapes={"x": "N M"})
        for m in (7, 5):
            x = np.random.default_rng(m).uniform(1, 2, (3, m))
            np.testing.assert_allclose(jitted(x).numpy(), f(rg.tensor(x)).numpy(), 1e-12)
        for _ in range(2):
            with pytest.raises((ShapeError, ValueError), match="4" if backend == "llvm" else None):
                jitted(np.ones((3, 4)))
        assert jitted(np.ones((3, 6))).dtype is rg.float64
