"""Transforms commute where mathematics says so, in any order; third derivatives of every op."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.autodiff import pullback, pushforward
from retrograd.ir import Graph, Node, full
from retrograd.ops.leaf import constant
from retrograd.verify import rule_checks as rules
from retrograd.verify.records import RECORDS
from tests.sampling import sampled

RNG = np.random.default_rng(0)
MATRIX = RNG.normal(size=(4, 4)) / 2
X = RNG.uniform(0.3, 1.2, size=4)
V = RNG.normal(size=4)

Function = Callable[[Any], Any]
cube = rg.custom_vjp(lambda x: x**3, lambda x: (x**3, x), lambda x, g: (3 * x**2 * g,))
sine = rg.custom_jvp(rg.sin, lambda p, t: (rg.sin(p[0]), rg.cos(p[0]) * t[0]))
# Smooth scalar functions of a vector of four positive numbers.
POOL: dict[str, Function] = {
    "polynomial": lambda x: (x**3 * x[::-1]).sum(),
    "chain": lambda x: (rg.exp(rg.sin(x)) * rg.log(x)).sum(),
    "layer": lambda x: rg.logsumexp(rg.tanh(MATRIX @ x)),
    "softmax": lambda x: (rg.softmax(x) * x).sum(),
    "inverse": lambda x: rg.linalg.inv(rg.diag(x) + MATRIX @ MATRIX.T).sum(),
    "determinant": lambda x: rg.linalg.slogdet(rg.outer(x, x) + 2 * np.eye(4))[1],
    "gather and scatter": lambda x: (
        rg.zeros(3, dtype="float64").at[np.array([0, 2, 2])].add(x[np.array([1, 1, 3])]) ** 3
    ).sum(),
    "running product": lambda x: rg.cumprod(x, axis=0).sum(),
    "convolution": lambda x: (rg.conv(x[None, None], MATRIX[:1, None, :2]) ** 3).sum(),
    "sorted": lambda x: (rg.sort(x) * np.arange(4.0) * x).sum(),
    "choice": lambda x: rg.where(np.arange(4) < 2, rg.sqrt(x), x**4).sum(),
    "gamma": lambda x: rg.special.gammaln(x + 1).sum() * x[0],
    "scan": lambda x: rg.scan(lambda c, v: (rg.tanh(c * v + c), c * c), x, x)[1].sum(),
    "scan that keeps little": lambda x: (
        rg.scan(lambda c, v: (rg.sin(c) * v, c), x[0], x, checkpoint=2)[0] * x.sum()
    ),
    "cond": lambda x: rg.cond(x[0] < 10.0, lambda x: (x**3).sum(), lambda x: x.sum(), x),
    "while": lambda x: rg.while_loop(
        lambda s: s[1] < 3.0, lambda s: (s[0] * x.sum() + x, s[1] * 2.0), (x, rg.max(x) * 0 + 1)
    )[0].sum(),
    "fori": lambda x: rg.fori_loop(0, 3, lambda i, y: rg.sin(y) * x + y, x).sum(),
    "custom reverse rule": lambda x: (cube(x) * x).sum(),
    "custom forward rule": lambda x: (sine(x) * x).sum(),
}
# What changes nothing about a function, in any order and number.
WRAPPINGS: dict[str, Callable[[Function], Function]] = {
    "jit": rg.jit,
    "checkpoint": rg.checkpoint,
    "contractions": rg.checkpoint(policy="contractions"),
    "vmap": lambda f: lambda x: rg.vmap(f)(rg.stack([x, x]))[0],
    "vmap, last axis": lambda f: lambda x: rg.vmap(f, in_axes=-1)(rg.stack([x, x], axis=1))[1],
    "linear part": lambda f: lambda x: f(x) + 0 * rg.jvp(f, (x,), (x,))[1],
    "value": lambda f: lambda x: rg.value_and_grad(f)(x)[0],
    "in a scan": lambda f: lambda x: rg.scan(lambda c, v: (c, f(c + v)), x, 0 * x[:2])[1][1],
    "in a choice": lambda f: lambda x: rg.cond(x[0] > -50.0, f, lambda x: x.sum(), x),
    "in a loop": lambda f: lambda x: rg.fori_loop(0, 2, lambda i, y: f(x), 0 * x[0]),
    "a loop with a condition": lambda f: (
        lambda x: rg.while_loop(
            lambda s: s[0] < 2, lambda s: (s[0] + 1, f(x)), (rg.tensor(0), 0 * x[0])
        )[1]
    ),
}


def close(a: Any, b: Any, rtol: float = 1e-9) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", POOL)
@pytest.mark.sample(3)
def test_modes_agree_and_commute(name):
    f = POOL[name]
    x = rg.tensor(X)
    g, h = rg.grad(f)(x).numpy(), rg.hessian(f)(x).numpy()
    close(rg.jacfwd(f)(x).numpy(), g)
    close(rg.jit(rg.grad(f))(x).numpy(), g)
    close(rg.grad(rg.jit(f))(x).numpy(), g)
    close(rg.jvp(f, (X,), (V,))[1].numpy(), g @ V)
    close(h, h.T)
    close(rg.jacrev(rg.grad(f))(x).numpy(), h)
    close(rg.jacrev(rg.jacfwd(f))(x).numpy(), h)
    close(rg.hvp(f, x, V).numpy(), h @ V)
    close(rg.grad(lambda x: rg.jvp(f, (x,), (V,))[1])(x).numpy(), h @ V)
    close(rg.hessian(f, sparse=True)(x).toarray(), h)
    stack = np.stack([X, X + 0.1])
    both = rg.vmap(rg.grad(f))(stack).numpy()
    close(both[0], g)
    close(rg.grad(lambda s: rg.vmap(f)(s).sum())(stack).numpy(), both)
    close(rg.vmap(rg.hessian(f))(stack).numpy()[0], h)
    step = 1e-6
    for i in (0, 3):
        e = np.eye(4)[i] * step
        slope = (f(rg.tensor(X + e)).item() - f(rg.tensor(X - e)).item()) / (2 * step)
        close(g[i], slope, 1e-6)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sample(4)
def test_random_nestings(seed):
    rng = np.random.default_rng(seed)
    plain = POOL[str(rng.choice(sorted(POOL)))]
    f = plain
    for name in rng.choice(sorted(WRAPPINGS), size=rng.integers(1, 4)):
        f = WRAPPINGS[str(name)](f)
    order = int(rng.integers(1, 4))
    modes = [(rg.jacfwd, rg.jacrev)[i] for i in rng.integers(0, 2, order)]
    d, expected = f, plain
    for mode in modes:
        d = mode(d)
        expected = rg.jacfwd(expected)
        if rng.random() < 0.3:
            d = WRAPPINGS[str(rng.choice(["jit", "checkpoint", "vmap"]))](d)
    close(d(rg.tensor(X)).numpy(), expected(rg.tensor(X)).numpy(), 1e-8)


@pytest.mark.parametrize("name", POOL)
@pytest.mark.sample(4)
def test_third_derivatives_are_symmetric_and_those_of_differences(name):
    f = POOL[name]
    third = rg.jacfwd(rg.hessian(f))(rg.tensor(X)).numpy()
    for axes in ((1, 0, 2), (2, 1, 0), (0, 2, 1)):
        close(third, third.transpose(axes), 1e-8)
    step = 1e-5
    e = V * step
    h = rg.hessian(f)
    slope = (h(rg.tensor(X + e)).numpy() - h(rg.tensor(X - e)).numpy()) / (2 * step)
    close(third @ V, slope, 2e-5)


# Ops with derivatives in parameters that are offered to a lower order; beyond, they are NaN.
LOWER = ("gammainc", "gammaincc", "betainc", "betaincc", "implicit")
SMOOTH = [n for n in sorted(RECORDS) if RECORDS[n].wrt and not n.startswith(LOWER)]


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.sample(16)
def test_third_derivatives_of_every_op(name):
    """Forward mode three times, reverse mode three times, and differences of the second."""
    record = RECORDS[name]
    rng = np.random.default_rng(1)
    for sample in sampled(record.smooth_samples()[:3], 1, name):
        if any(np.asarray(a).dtype.kind == "c" for a in sample.inputs):
            continue
        wrt = [i for i in record.wrt_of(sample) if i not in record.unchecked]
        inputs = rules.placeholders(sample.inputs)
        chosen = [inputs[i] for i in wrt]
        u, v, w = ([rng.normal(size=sample.inputs[i].shape) for i in wrt] for _ in range(3))
        y = sample.op(*inputs)
        if not y.dtype.is_inexact or y.dtype.is_complex:
            continue
        s = rules.contract([y], np.random.default_rng(2))
        second = moved(moved(s, chosen, u), chosen, v)
        forward = moved(second, chosen, w)
        reverse = s
        for direction in (u, v, w):
            reverse = pulled(reverse, chosen, direction)
        graph = Graph(inputs, [forward, reverse])
        a, b = rules.run(graph, sample.inputs)
        if np.isnan(a) and np.isnan(b):
            continue  # not offered
        scale = 1 + abs(b)
        assert abs(a - b) <= 1e-7 * scale, f"{sample}: {a} forward, {b} reverse"
        moving: dict[int, Any] = dict(zip(wrt, w, strict=True))
        slope = rules.difference(Graph(inputs, [second]), sample.inputs, moving)[0]
        assert abs(a - slope) <= 1e-4 * (1 + abs(slope)), f"{sample}: {a}, differences {slope}"


def moved(s: Node, wrt: list[Node], directions: list[Any]) -> Node:
    (t,) = pushforward([s], wrt, [constant(d) for d in directions])
    return full(0, s.type) if t is None else t


def pulled(s: Node, wrt: list[Node], directions: list[Any]) -> Node:
    """The derivative in a direction, by way of the gradient."""
    total = full(0, s.type)
    for g, d in zip(pullback([s], [full(1, s.type)], wrt), directions, strict=True):
        if g is not None:
            product = g * constant(d)
            total = total + rules.ReduceSum(tuple(range(product.type.rank)))(product)
    return total


def test_a_wrong_rule_would_be_noticed(monkeypatch):
    kind = type(RECORDS["cumprod"].smooth_samples()[0].op)
    right = kind.jvp
    monkeypatch.setattr(
        kind, "jvp", lambda self, *a: None if (t := right(self, *a)) is None else t * 1.01
    )
    with pytest.raises(AssertionError, match="reverse"):
        test_third_derivatives_of_every_op("cumprod")
