"""Transforms and control flow along axes whose sizes have names, next to the same with numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg

f64 = rg.float64
CASES: dict[str, Any] = {
    "scan in vmap": lambda x: rg.vmap(lambda r: rg.scan(lambda c, e: (c + e, c * e), 0.0, r)[1])(x),
    "vmap in scan": lambda x: rg.scan(
        lambda c, r: (c + r, rg.vmap(lambda e: e * c.sum())(r)), rg.zeros(x.shape[1], dtype=f64), x
    )[1],
    "cond in vmap": lambda x: rg.vmap(
        lambda r: rg.cond(r.sum() > 2, lambda r: r * 2, lambda r: r * r, r)
    )(x),
    "while, backwards": lambda x: rg.while_loop(
        lambda s: (s[1] ** 2).sum() < 100.0, lambda s: (s[0] + 1, s[1] * 1.7), (0, x)
    )[1],
    "jacobian of scan": lambda x: rg.jacrev(
        lambda v: rg.scan(lambda c, e: (c * 0.5 + rg.sin(e), c), 0.0, v)[1]
    )(x[0]),
    "grad of a checkpoint": lambda x: rg.grad(
        lambda x: rg.checkpoint(lambda y: (rg.sin(y) @ rg.cos(y).mT).sum())(x)
    )(x),
    "complex scan": lambda x: rg.real(
        rg.scan(lambda c, r: (c * (0.5 + 1j) + r, c), rg.zeros(x.shape[1], dtype=rg.complex128), x)[
            0
        ]
    ),
    "jacrev vmap": lambda x: rg.vmap(rg.jacrev(lambda v: rg.sin(v) * v.sum()))(x),
    "hessian in scan": lambda x: rg.scan(
        lambda c, r: (c + rg.hessian(lambda v: (v**3).sum() * v.sum())(r).sum(), c),
        0.0 * x.sum(),
        x,
    )[0],
    "grad of while_loop in vmap": lambda x: rg.vmap(
        lambda v: rg.grad(
            lambda v: rg.while_loop(lambda s: (s**2).sum() < 50.0, lambda s: s * 1.5 + 0.1, v).sum()
        )(v)
    )(x),
    "fori_loop of N steps": lambda x: rg.fori_loop(
        0, x.shape[0], lambda i, c: rg.sin(c) + x[i], rg.zeros(x.shape[1], dtype=f64)
    ),
    "fori_loop of N + M steps": lambda x: rg.fori_loop(
        0, x.shape[0] + x.shape[1], lambda i, c: c * 1.1 + i, 0.0 * x.sum()
    ),
    "scan with logarithmic checkpoints": lambda x: rg.scan(
        lambda c, r: (rg.sin(c) + r, c), rg.zeros(x.shape[1], dtype=f64), x, checkpoint="log"
    )[1],
    "scan in reverse": lambda x: rg.scan(
        lambda c, r: (rg.sin(c) + r, c), rg.zeros(x.shape[1], dtype=f64), x, reverse=True
    )[1],
    "scan of N // 2 steps": lambda x: rg.scan(
        lambda c, _: (c * 1.5 + 1, c), 0.0 * x.sum(), None, length=x.shape[0] // 2
    )[0],
    "nested scan": lambda x: rg.scan(
        lambda c, r: rg.scan(lambda d, e: (d * 0.9 + e, d * e), c, r), 0.0 * x.sum(), x
    )[1],
    "a size decides which branch": lambda x: rg.cond(
        rg.asarray(x.shape[0]) > 2, lambda x: x * 2, lambda x: x * x, x
    ),
    "a size decides which value": lambda x: rg.where(rg.asarray(x.shape[0]) > 2, x * 2, x * x),
    "fixed_point": lambda x: rg.fixed_point(
        lambda y: 0.5 * rg.cos(y) + 0.1 * x, rg.zeros(x.shape, dtype=f64)
    ),
    "expm": lambda x: rg.linalg.expm(0.1 * x @ x.mT),
    "einsum": lambda x: rg.einsum("nm,km,kj->nj", x, x, x),
    "permutation": lambda x: x[rg.random.Generator(1).permutation(x.shape[0])],
    "jvp of scan": lambda x: rg.jvp(
        lambda x: rg.scan(lambda c, r: (rg.sin(c) + r, c), rg.zeros(x.shape[1], dtype=f64), x)[1],
        (x,),
        (x,),
    )[1],
    "third deriv": lambda x: rg.vmap(
        rg.vmap(rg.grad(rg.grad(rg.grad(lambda t: rg.sin(t) * t**4))))
    )(x),
    "jacfwd of grad": lambda x: rg.jacfwd(rg.grad(lambda x: (x**3).sum() * x.sum()))(x),
    "conv_transpose": lambda x: rg.conv_transpose(
        x[None, None], rg.ones((1, 2, 3, 3)), stride=2, padding=1, output_padding=1
    ),
    "vmap with in_axes": lambda x: rg.vmap(lambda a, b: a @ b, in_axes=(0, None))(x, x.mT),
    "N + N + 1": lambda x: rg.concat([x, x, x[:1]], axis=0),
    "N - 1": lambda x: x[1:] - x[:-1],
    "halves": lambda x: x[: x.shape[0] // 2].sum() + x[x.shape[0] // 2 :].sum() * 2,
    "M * M": lambda x: rg.reshape(x[:, :, None] * x[:, None, :], (x.shape[0], -1)),
    "kron": lambda x: rg.kron(x, x),
    "vmap in vmap": lambda x: rg.vmap(lambda a: rg.vmap(lambda b: (a * b).sum())(x))(x),
    "scan with checkpoints": lambda x: rg.scan(
        lambda c, r: (c * 0.5 + r, c * r), rg.zeros(x.shape[1], dtype=f64), x, checkpoint=2
    )[1],
    "while": lambda x: rg.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, rg.sin(s[1])), (0, x)
    )[1],
    "jacobian": lambda x: rg.jacobian(lambda x: rg.sin(x) * x.sum())(x),
    "hessian": lambda x: rg.hessian(lambda x: (rg.sin(x) * x.sum()).sum())(x[0]),
    "linearize": lambda x: rg.linearize(lambda x: rg.sin(x), x)[1](x),
    "a named number of segments": lambda x: rg.segment_sum(
        x, rg.arange(x.shape[0]) // 2, (x.shape[0] + 1) // 2
    ),
    "pad by N": lambda x: rg.pad(x, ((0, x.shape[0]), (x.shape[1], 0))),
    "updates at places": lambda x: x.at[rg.arange(x.shape[0]), 0].add(x.shape[1]),
    "reads at places": lambda x: x[rg.arange(x.shape[0]), rg.arange(x.shape[0]) % x.shape[1]],
    "N * N": lambda x: rg.reshape(x @ x.mT, (x.shape[0] ** 2,)),
    "two sizes": lambda x: (
        rg.concat([x.sum(0), x.sum(1)])[1:] - rg.concat([x.sum(1), x.sum(0)])[:-1]
    ),
}


def both(f: Any) -> Any:
    return lambda x: (f(x), rg.grad(lambda x: rg.sin(f(x)).sum())(x))


def given(n: int, m: int) -> Any:
    return np.random.default_rng(n).uniform(0.2, 1.5, (n, m))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sample(10)
def test_values_and_gradients_on_the_reference(name: str) -> None:
    with rg.backend("reference"):
        named: Any = rg.jit(both(CASES[name]), shapes={"x": "N M"})
        for found, expected in zip(
            named(given(3, 4)), both(CASES[name])(rg.tensor(given(3, 4))), strict=True
        ):
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_compiled_once(name: str) -> None:
    f = both(CASES[name])
    named: Any = rg.jit(f, shapes={"x": "N M"})
    for n, m in ((3, 4), (1, 1), (5, 2), (2, 7)):
        for found, expected in zip(named(given(n, m)), f(rg.tensor(given(n, m))), strict=True):
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-10)
    assert named.cache_stats()["compilations"] == 1
