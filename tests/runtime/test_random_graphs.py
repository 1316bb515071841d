"""Random graphs on the llvm backend: sizes 0, 1, 3, 17 and symbolic ones, all ops mixed."""

from __future__ import annotations

import pytest

from retrograd.autodiff import gradient
from retrograd.ir import Graph, float32, float64
from tests.runtime.agreement import assert_same, sample
from tests.runtime.random_graphs import Builder

BLOCK = 10  # graphs in one test


@pytest.mark.parametrize("block", range(8))
@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
@pytest.mark.sample(2)
def test_random_graphs(block: int, symbolic: bool) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        b = Builder(seed, float64 if seed % 3 else float32, symbolic)
        graph = b.graph(25)
        try:
            assert_same(graph, b.arrays(), ulps=4096, scale=1.0)
        except BaseException:
            print(f"seed {seed}, sizes {b.dims}")  # noqa: T201
            raise


@pytest.mark.slow
@pytest.mark.parametrize("block", range(3))
@pytest.mark.sample(1)
def test_gradients_of_random_graphs(block: int) -> None:
    for seed in range(1000 + block * BLOCK, 1000 + (block + 1) * BLOCK):
        b = Builder(seed, float64, symbolic=seed % 2 == 0)
        graph = b.graph(12)
        end = next((y for y in graph.outputs if y.dtype.is_float and y not in b.inputs), None)
        if end is None:
            continue
        g = gradient(Graph(graph.inputs, [end]))
        sizes = b.dims
        extra = [
            sample([d if isinstance(d, int) else d.evaluate(sizes) for d in x.shape], x.dtype, 9)
            for x in g.inputs[len(b.inputs) :]
        ]
        try:
            assert_same(g, [*b.arrays(), *extra], ulps=1e5, scale=1.0)
        except BaseException:
            print(f"seed {seed}, sizes {sizes}")  # noqa: T201
            raise
