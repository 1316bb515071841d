"""Any composition of transforms, in any order: random nestings against the plain ones.

A derivative in a direction, forward (`J v`) or reverse (`v^T J`), can be had in many ways; and many
ways of calling a function change nothing. A case takes a function, one to three derivatives, for
each a way at random, and around each level random wrappers. What comes out has to be what the plain
`jvp` and `vjp` give one after another on the reference backend.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

N = 4
Function = Callable[[Any], Any]
A = np.random.default_rng(7).normal(size=(N, N)) * 0.4
DIAGONAL = np.diag(np.arange(1.0, N + 1)) * 2
WEIGHTS = np.array([1.0, 2.0, 3.0, 5.0])
V = [np.random.default_rng(i).normal(size=N) for i in range(4)]


def definite(x: Any) -> Any:
    t = rg.tanh(x)
    return np.eye(N) * 4 + A @ A.T + t[:, None] * t[None, :]


def of_rank_one(x: Any, y: Any) -> Any:
    return DIAGONAL + 0.3 * rg.tanh(x)[:, None] * y[None, :]


def scanned(x: Any) -> Any:
    c, ys = rg.scan(lambda c, t: (rg.tanh(c + t * x[0]), c * t), rg.mean(x), x)
    return ys + c


def scanned_back(x: Any) -> Any:
    step = lambda c, t: (rg.sin(c * 1.1 + t), c.sum() * t)
    c, ys = rg.scan(step, x, x, reverse=True, checkpoint="log")
    d, zs = rg.scan(step, x, x, checkpoint=2)
    return ys * d + zs + c


def chosen_in_a_scan(x: Any) -> Any:
    def step(c: Any, t: Any) -> Any:
        return rg.cond(t > 0, lambda c: (c * rg.sin(t), c), lambda c: (c + t * t, c * c), c)

    c, ys = rg.scan(step, x[0], x)
    return ys * c


def scanned_in_a_loop(x: Any) -> Any:
    def body(s: Any) -> Any:
        return rg.scan(lambda c, t: (c * 0.8 + 0.05 * rg.sin(t), None), s, x)[0]

    return rg.while_loop(lambda s: abs(s) > 0.2, body, x.sum() + 2) * x


def complex_scan(x: Any) -> Any:
    z = rg.fft.fft(x) / 4
    c, ys = rg.scan(lambda c, t: (c * t + 0.3j, c - t), z[1], z)
    return rg.real(ys * c) + rg.imag(ys) * abs(c)


FUNCTIONS: dict[str, Function] = {
    "elementwise": lambda x: rg.sin(x) * rg.exp(-x * x) + rg.log1p(x * x),
    "reductions": lambda x: rg.logsumexp(x) + x * rg.mean(x * x) + rg.prod(x + 2) / 9,
    "softmax": lambda x: rg.softmax(x) * 3 + rg.cumulative_sum(x),
    "solve": lambda x: rg.linalg.solve(definite(x), rg.cos(x)),
    "cholesky": lambda x: rg.linalg.cholesky(definite(x))[:, 0],
    "determinant": lambda x: rg.linalg.slogdet(definite(x))[1] * x,
    "eigenvalues": lambda x: rg.linalg.eigvalsh(of_rank_one(x, rg.tanh(x))),
    "singular_values": lambda x: rg.linalg.svdvals(of_rank_one(x, rg.cos(x))),
    "gather": lambda x: x[np.array([2, 0, 3, 3])] * rg.sin(x),
    "scatter": lambda x: rg.sin(x).at[np.array([1, 2])].add(x[:2] * x[2:]),
    "set": lambda x: (x * x).at[1].set(rg.cos(x[0])),
    "segments": lambda x: rg.segment_sum(rg.sin(x), np.array([0, 1, 1, 3]), N) * x,
    "sort": lambda x: rg.sort(x * WEIGHTS + np.array([0, 0.3, -0.2, 0.1])) ** 2,
    "maximum": lambda x: rg.max(x * WEIGHTS) * rg.maximum(x, x * x - 0.3),
    "convolution": lambda x: rg.conv(x[None, None], rg.tanh(x[:3])[None, None], padding=1)[0, 0],
    "fourier": lambda x: rg.real(rg.fft.fft(x) * rg.conj(rg.fft.fft(rg.sin(x)))),
    "products": lambda x: (x[:, None] * A) @ rg.sin(x) + rg.einsum("i,ij,j->i", x, A, x),
    "movement": lambda x: rg.roll(x, 1) * rg.flip(x) + rg.concat([x[2:], x[:2]]),
    "where": lambda x: rg.where(x > 0.2, rg.sin(x), x * x),
    "stop_gradient": lambda x: x * rg.stop_gradient(rg.sin(x)),
    "scan": scanned,
    "scan_checkpointed": scanned_back,
    "scan_complex": complex_scan,
    "cond": lambda x: rg.cond(x.sum() > 0.1, lambda x: rg.sin(x) * x, lambda x: rg.cos(x), x),
    "cond_in_scan": chosen_in_a_scan,
    "while": lambda x: rg.while_loop(
        lambda s: (s * s).sum() > 0.3, lambda s: s * 0.7 + 0.01 * rg.sin(x) * s, x
    ),
    "scan_in_while": scanned_in_a_loop,
    "fori": lambda x: rg.fori_loop(0, 3, lambda i, s: rg.sin(s) + x * 0.1 * i, x),
    "fori_dynamic": lambda x: rg.fori_loop(
        rg.tensor(0), rg.tensor(3), lambda i, s: rg.sin(s) + x * 0.1, x
    ),
    "checkpoint": lambda x: rg.checkpoint(lambda y: rg.exp(rg.sin(y)) * x)(x * 2),
    "vmap_inside": lambda x: rg.vmap(lambda a: rg.sin(a) * x.sum() + a)(x),
    "jit_inside": lambda x: rg.jit(lambda a: rg.sin(a) * a)(x) + x,
    "grad_inside": lambda x: rg.grad(lambda a: (rg.sin(a) * x).sum() * a.sum())(x),
    "linearize_inside": lambda x: rg.linearize(lambda a: rg.sin(a) * a, x)[1](x) * x,
    "hvp_inside": lambda x: rg.hvp(lambda a: (rg.sin(a) * a.sum()).sum(), x, x),
}
SMOOTH = [name for name in FUNCTIONS if name != "stop_gradient"]

Derivative = Callable[[Function, Any], Function]
FORWARD: dict[str, Derivative] = {
    "jvp": lambda f, v: lambda x: rg.jvp(f, (x,), (rg.asarray(v),))[1],
    "jacfwd": lambda f, v: lambda x: rg.jacfwd(f)(x) @ v,
    "jacrev": lambda f, v: lambda x: rg.jacrev(f)(x) @ v,
    "linearize": lambda f, v: lambda x: rg.linearize(f, x)[1](rg.asarray(v)),
    "vjp_of_vjp": lambda f, v: (
        lambda x: rg.grad(lambda u: (rg.vjp(f, x)[1](u)[0] * v).sum())(rg.asarray(np.ones(N)))
    ),
    "vmap_of_jvp": lambda f, v: (
        lambda x: v @ rg.vmap(lambda e: rg.jvp(f, (x,), (e,))[1])(np.eye(N))
    ),
}
REVERSE: dict[str, Derivative] = {
    "vjp": lambda f, v: lambda x: rg.vjp(f, x)[1](rg.asarray(v))[0],
    "grad": lambda f, v: rg.grad(lambda x: (f(x) * v).sum()),
    "value_and_grad": lambda f, v: lambda x: rg.value_and_grad(lambda x: (f(x) * v).sum())(x)[1],
    "jacrev": lambda f, v: lambda x: v @ rg.jacrev(f)(x),
    "jacfwd": lambda f, v: lambda x: v @ rg.jacfwd(f)(x),
    "vmap_of_vjp": lambda f, v: lambda x: v @ rg.vmap(lambda e: rg.vjp(f, x)[1](e)[0])(np.eye(N)),
}
WRAPPERS: dict[str, Callable[[Function], Function]] = {
    "jit": rg.jit,
    "checkpoint": rg.checkpoint,
    "contractions": lambda f: rg.checkpoint(f, policy="contractions"),
    "vmap": lambda f: lambda x: rg.vmap(f)(x[None])[0],
    "vmap_axes": lambda f: lambda x: rg.vmap(f, 1, -1)(rg.stack([x * 2, x], axis=1))[:, 1],
    "scan": lambda f: lambda x: rg.scan(lambda c, _: (f(c), None), x, length=1)[0],
    "scan_stacked": lambda f: lambda x: rg.scan(lambda _, t: (None, f(t)), None, x[None])[1][0],
    "cond": lambda f: lambda x: rg.cond((x * x).sum() >= 0, f, lambda x: x, x),
    "fori": lambda f: lambda x: rg.fori_loop(0, 1, lambda i, c: f(c), x),
    "while": lambda f: (
        lambda x: rg.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, f(s[1])), (0, x))[1]
    ),
    "vjp": lambda f: lambda x: rg.vjp(f, x)[0],
    "jvp": lambda f: lambda x: rg.jvp(f, (x,), (x,))[0],
    "linearize": lambda f: lambda x: rg.linearize(f, x)[0],
}


def picked(rng: np.random.Generator, table: dict[str, Any]) -> tuple[str, Any]:
    name = list(table)[rng.integers(len(table))]
    return name, table[name]


def wrapped(rng: np.random.Generator, f: Function, said: list[str]) -> Function:
    while rng.random() < 0.45:
        name, wrapper = picked(rng, WRAPPERS)
        said.append(name)
        f = wrapper(f)
    return f


def agrees(name: str, seed: int, orders: int) -> None:
    rng = np.random.default_rng([seed, list(FUNCTIONS).index(name)])
    plain = f = FUNCTIONS[name]
    said: list[str] = []
    x = rng.normal(size=N)
    f = wrapped(rng, f, said)
    for i in range(1 + rng.integers(orders)):
        forward = rng.random() < 0.5
        plain = (FORWARD["jvp"] if forward else REVERSE["vjp"])(plain, V[i])
        how, derivative = picked(rng, FORWARD if forward else REVERSE)
        said.append(f"[{how}]")
        f = wrapped(rng, derivative(f, V[i]), said)
    with rg.backend("reference"):
        expected = plain(x).numpy()
    for backend in ("reference", "llvm")[seed % 2 :]:
        with rg.backend(backend):
            found = f(rg.tensor(x, dtype=rg.float64)).numpy()
        atol = 1e-9 * max(1, np.abs(expected).max())
        about = f"{name} {seed} {backend}: {' '.join(said)}"
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=atol, err_msg=about)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.sample(4)
def test_compositions(name):
    agrees(name, 1, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [*range(2, 8), *[pytest.param(k, marks=pytest.mark.exhaustive) for k in range(8, 14)]]
)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_many_deep_compositions(name, seed):
    agrees(name, seed, 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMOOTH)
def test_third_derivatives_are_differences_of_second_ones(name):
    f, x = FUNCTIONS[name], np.random.default_rng(11).normal(size=N)
    second = rg.jit(lambda x: rg.hvp(lambda x: (f(x) * V[0]).sum(), x, rg.asarray(V[1])))
    third = rg.grad(lambda x: (second(x) * V[2]).sum())(x).numpy()
    expected = rg.numerical_gradient(lambda x: (second(x) * V[2]).sum(), x).numpy()
    atol = 1e-7 * max(1, np.abs(expected).max())
    np.testing.assert_allclose(third, expected, rtol=1e-6, atol=atol)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scan", "cond_in_scan", "solve", "scan_complex", "while"])
@pytest.mark.sample(2)
def test_laws(name):
    f, x = FUNCTIONS[name], np.random.default_rng(3).normal(size=N)
    loss = lambda x: (f(x) * V[0]).sum()
    hessian = rg.hessian(loss)(x).numpy()
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(
        rg.hvp(loss, x, rg.asarray(V[1])).numpy(), hessian @ V[1], rtol=1e-8, atol=1e-10
    )
    xs = np.stack([x, V[2], V[3]])
    stacked = rg.grad(lambda xs: rg.vmap(loss)(xs).sum())(xs).numpy()
    np.testing.assert_allclose(rg.vmap(rg.grad(loss))(xs).numpy(), stacked, rtol=1e-9, atol=1e-10)
    compiled = rg.jit(rg.grad(loss))(x).numpy()
    np.testing.assert_allclose(rg.grad(rg.jit(loss))(x).numpy(), compiled, rtol=1e-9, atol=1e-10)
