"""Hessian-vector products, gradients of each sample, and a whole Hessian, of small networks.

A step computes them for other data and returns the mean of squares of the result, in place of a
loss; nothing is trained.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.harness.workload import Build, Session, Workload, loop
from benchmarks.workloads.libraries import item, jax_library, normal, tensors

SIZES, BATCH = (784, 512, 512, 10), 128  # as W3
INPUTS, HIDDEN = 14, 8  # a network of 129 weights
Compute = Callable[[Any, Any, Any], Any]  # (p, x, y) to a tree of results


def weights(sizes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [a for n, m in pairwise(sizes) for a in (normal(rng, m, n), np.zeros(m, np.float32))]


def batches(classes: int, inputs: int) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    x = rng.normal(0, 1, (4, BATCH, inputs)).astype(np.float32)
    return list(zip(x, rng.integers(0, classes, (4, BATCH)), strict=True))


def network(lib: Any, p: Any, x: Any) -> Any:
    F = lib.nn.functional
    for k in range(0, len(p) - 2, 2):
        x = lib.tanh(F.linear(x, p[k], p[k + 1]))
    return F.linear(x, p[-2], p[-1])


def classified(lib: Any) -> Callable[..., Any]:
    return lambda p, x, y: lib.nn.functional.cross_entropy(network(lib, p, x), y)


def measured(lib: Any, compute: Compute, sizes: tuple[int, ...], jit: Any = None) -> Session:
    """A session that computes, for one batch after the other."""

    def step(p: Any, x: Any, y: Any) -> Any:
        parts = compute(p, x, y)
        return sum((part**2).mean() for part in parts)

    run = jit(step) if jit else step
    p = [lib.tensor(w) for w in weights(sizes)]
    given = tensors(lib, batches(sizes[-1], sizes[0]))
    return loop(lambda p, x, y: (p, run(p, x, y)), p, given, item)


# -- Hessian times vector -------------------------------------------------------------------------
def direction(lib: Any) -> list[Any]:
    return [lib.tensor(np.ones_like(w)) for w in weights(SIZES)]


def hvp_torch() -> Session:
    import torch

    f, v = classified(torch), direction(torch)

    def compute(p: Any, x: Any, y: Any) -> Any:
        p = [w.requires_grad_() for w in p]
        g = torch.autograd.grad(f(p, x, y), p, create_graph=True)
        along = sum((a * b).sum() for a, b in zip(g, v, strict=True))
        return torch.autograd.grad(along, p)

    return measured(torch, compute, SIZES)


def hvp_retrograd() -> Session:
    import retrograd as rg

    f, v = classified(rg), direction(rg)
    return measured(rg, lambda p, x, y: rg.hvp(lambda p: f(p, x, y), p, v), SIZES, rg.jit)


def hvp_jax() -> Session:
    import jax

    lib = jax_library()
    f, v = classified(lib), direction(lib)

    def compute(p: Any, x: Any, y: Any) -> Any:
        return jax.jvp(lambda p: jax.grad(f)(p, x, y), (p,), (v,))[1]

    return measured(lib, compute, SIZES, jax.jit)


# -- gradients of each sample, the Hessian --------------------------------------------------------
def per_sample(lib: Any, grad: Any, vmap: Any, jit: Any = None) -> Session:
    one = grad(lambda p, x, y: classified(lib)(p, x[None], y[None]))
    return measured(lib, vmap(one, (None, 0, 0)), SIZES, jit)


def whole_hessian(lib: Any, hessian: Any, jit: Any = None) -> Session:
    """Of the mean squared error of one output, by all weights as one vector."""
    shapes = [w.shape for w in weights((INPUTS, HIDDEN, 1))]

    def f(flat: Any, x: Any, y: Any) -> Any:
        p, at = [], 0
        for shape in shapes:
            size = int(np.prod(shape))
            p.append(flat[at : at + size].reshape(shape))
            at += size
        return lib.nn.functional.mse_loss(network(lib, p, x)[:, 0], lib.sin(x[:, 0]))

    def compute(p: Any, x: Any, y: Any) -> Any:
        flat = lib.concat([w.reshape((-1,)) for w in p], axis=0)
        return [hessian(f)(flat, x, y)]

    return measured(lib, compute, (INPUTS, HIDDEN, 1), jit)


def peers(name: str) -> dict[str, Build]:
    def with_retrograd() -> Session:
        import retrograd as rg

        if name == "hessian":
            return whole_hessian(rg, rg.hessian, rg.jit)
        return per_sample(rg, rg.grad, rg.vmap, rg.jit)

    def with_torch() -> Session:
        import torch

        if name == "hessian":
            return whole_hessian(torch, torch.func.hessian)
        return per_sample(torch, torch.func.grad, torch.func.vmap)

    def with_jax() -> Session:
        import jax

        if name == "hessian":
            return whole_hessian(jax_library(), jax.hessian, jax.jit)
        return per_sample(jax_library(), jax.grad, jax.vmap, jax.jit)

    return {"retrograd": with_retrograd, "torch": with_torch, "jax": with_jax}


WORKLOADS = (
    Workload(
        "held-hvp",
        "Hessian of the MLP of W3 times a vector",
        {"retrograd": hvp_retrograd, "torch": hvp_torch, "jax": hvp_jax},
        checks=4,
    ),
    Workload(
        "held-per-sample",
        "gradients of each of 128 samples, MLP of W3",
        peers("per-sample"),
        checks=4,
    ),
    Workload("held-hessian", "Hessian of a network of 129 weights", peers("hessian"), checks=4),
)
