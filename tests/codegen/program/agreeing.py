"""Functions of two matrices whose results threads and tiers agree on to the bit."""

from __future__ import annotations

import numpy as np

import retrograd as rg
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.op_by_op import OpByOpExecutor

RNG = np.random.default_rng(5)


W = RNG.normal(size=(300, 300)).astype(np.float32) / 16


X = RNG.normal(size=(300, 200)).astype(np.float32)


def step(w, x):
    return rg.tanh(w @ x)


def the_same_for_threads_and_tiers(f, differentiated):
    """The graph of a function, or of its gradient, whose results have the same bits."""
    loss = rg.value_and_grad(lambda w, x: (f(w, x) ** 2).sum(), argnums=(0, 1))
    graph = rg.trace(loss if differentiated else f, rg.tensor(W), rg.tensor(X))
    results = []
    for threads in (1, 2, 3):
        with rg.num_threads(threads):
            program = Executable(graph, simplify=True)
            results += [program([W, X]), program([W, X])]
    results.append(OpByOpExecutor(graph)([W, X]))
    for found in results[1:]:
        for a, b in zip(found, results[0], strict=True):
            np.testing.assert_array_equal(a, b)
    return graph
