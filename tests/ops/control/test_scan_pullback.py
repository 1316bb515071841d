"""Gradients of loops with respect to what all steps read: a product or sum after the loop."""

import numpy as np
import pytest

import retrograd as rg


def unrolled(w, b, h, x):
    total = 0.0
    for t in range(x.shape[0]):
        h = rg.tanh(h @ w + x[t] * b)
        total = total + (h * h).sum()
    return total + h.sum()


def looped(w, b, h, x):
    def step(h, row):
        h = rg.tanh(h @ w + row * b)
        return h, (h * h).sum()

    h, parts = rg.scan(step, h, x)
    return parts.sum() + h.sum()


@pytest.mark.parametrize("shape", [(1, 3, 2), (37, 1, 5), (4, 6, 17)])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.slow
def test_first_and_second_derivatives_are_those_of_the_unrolled_loop(shape, compiled):
    steps, batch, width = shape
    r = np.random.default_rng(0)
    shapes = (width, width), (width,), (batch, width), (steps, batch, width)
    given = [r.normal(size=s) * 0.3 for s in shapes]
    wrap = rg.jit if compiled else (lambda f: f)
    every = (0, 1, 2, 3)
    ours = wrap(rg.grad(looped, every))(*given)
    theirs = rg.grad(unrolled, every)(*given)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10, atol=1e-12)

    def curved(f):
        return lambda w: (rg.grad(f)(w, *given[1:]) ** 2).sum()

    second = [wrap(rg.grad(curved(f)))(given[0]).numpy() for f in (looped, unrolled)]
    np.testing.assert_allclose(second[0], second[1], rtol=1e-9, atol=1e-12)
