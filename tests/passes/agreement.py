"""A pass keeps the meaning of a graph: same inputs, same outputs to the bit, well-typed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.autodiff import gradient
from retrograd.ir import DType, Graph, Node, Op, TensorType, spec, verify
from retrograd.ops.leaf import input_node
from retrograd.runtime.executors.reference import ReferenceProgram
from tests.random_graphs import SIZES, SPECIAL, Array, random_values, same_values


def assert_kept(
    run: Callable[[Graph], Graph], graph: Graph, arrays: Sequence[Array], ulps: float = 0
) -> Graph:
    """`run(graph)`, having verified that it is `graph` in other words."""
    result = run(graph)
    verify(result)
    assert result.inputs == graph.inputs
    assert [y.type for y in result.outputs] == [y.type for y in graph.outputs]
    before, after = ReferenceProgram(graph)(arrays), ReferenceProgram(result)(arrays)
    for k, (a, b) in enumerate(zip(before, after, strict=True)):
        if ulps:
            np.testing.assert_allclose(b, a, rtol=ulps * np.finfo(a.dtype).eps)
        else:
            assert same_values(a, b), f"output {k}: {a} became {b}\n{graph}\n{result}"
    return result


def special_values(dtype: DType) -> Array:
    """NaN, infinities, zeros of both signs, the ends and some ordinary numbers."""
    if dtype.kind == "bool":
        return np.array([True, False] * 18)
    if dtype.is_integer:
        ends = np.iinfo(dtype.dtype)
        few = np.array([0, 1, 2, 3, 5, ends.max, ends.min, ends.max - 1], dtype.dtype)
        return np.resize(few, 36)
    some = np.array([*SPECIAL, 1e-3, -7.25, 1e4, 1.1, -1e-5, 1e-45, 1e-310, 3e-8, -2e38])
    with np.errstate(all="ignore"):
        return np.resize(some.astype(dtype.dtype), 36)


def pairs(dtype: DType) -> list[Array]:
    """Two inputs that put every special value beside many others."""
    values = special_values(dtype)
    return [np.repeat(values, len(values)), np.tile(values, len(values))]


def two_inputs(dtype: DType, count: int) -> tuple[Node, Node]:
    type = spec((count,), dtype)
    return input_node(type, "x"), input_node(type, "w")


def draw(graph: Graph, seed: int = 0) -> list[Array]:
    """Ordinary and special inputs for a graph of named sizes."""
    rng = np.random.default_rng(seed)
    return [random_values(rng, TensorType.bind(x.type, SIZES)) for x in graph.inputs]


def loops(graph: Graph, op: str = "scan") -> list[Any]:
    return [n for n in graph.nodes if n.op == op]


def optimized(f: Callable[..., Any], *specs: TensorType) -> Graph:
    """The optimised graph of a function, which computes what the graph as traced does."""
    graph = rg.trace(f, *specs)
    better = graph.optimize()
    verify(better)
    rng = np.random.default_rng(0)
    arrays = [np.asarray(rng.normal(size=t.shape)) for t in specs]
    with rg.backend("reference"):
        both = [g(*arrays) for g in (graph, better)]
    for a, b in zip(*[y if isinstance(y, tuple) else (y,) for y in both], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-12)
    return better


def with_gradients(op: Op, types: Sequence[Any]) -> Graph:
    """The gradients of an op, as a graph."""
    inputs = [input_node(t) for t in types]
    y = op(*inputs)
    forward = Graph(inputs, [y])
    back = gradient(forward)
    return Graph(back.inputs, [*back.outputs])
