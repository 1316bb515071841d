"""Derivatives of random graphs, computed in several ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrograd.autodiff import batch, gradient, pullback, pushforward, tangent
from retrograd.ir import Graph, Node, full, verify
from retrograd.ops.leaf import constant
from retrograd.verify.rule_checks import compare, difference, run
from tests.sampling import examples
from tests.smooth_graphs import smooth_arrays, smooth_graph

seeds = st.integers(0, 10**6)
few = examples(60)


def scalar(seed: int) -> tuple[Graph, list[Any], list[Any]]:
    """A graph with a scalar output, a point, and a direction."""
    graph = smooth_graph(seed)
    rng = np.random.default_rng(seed)
    directions = [np.asarray(rng.uniform(-1, 1, x.shape)) for x in graph.inputs]
    return graph.with_outputs(graph.outputs[:1]), smooth_arrays(graph, seed), directions


def dot(xs: Any, ys: Any) -> Any:
    return sum(np.sum(x * y) for x, y in zip(xs, ys, strict=True))


@pytest.mark.slow
@few
@given(seeds)
def test_gradient_against_finite_differences(seed: int) -> None:
    graph, xs, ts = scalar(seed)
    (expected,) = difference(graph, xs, dict(enumerate(ts)))
    found = run(gradient(graph), xs)
    compare("the gradient", dot(found, ts), expected, 1e-6)
    (forward,) = run(tangent(graph), [*xs, *ts])
    compare("the tangent", forward, dot(found, ts), 1e-11)


@pytest.mark.slow
@few
@given(seeds)
def test_second_order_in_three_ways(seed: int) -> None:
    """Reverse over reverse, forward over reverse, and finite differences of the gradient."""
    graph, xs, ts = scalar(seed)
    first = gradient(graph)
    tangents = [constant(t) for t in ts]
    forward = pushforward(first.outputs, graph.inputs, tangents, set(graph.inputs))
    over_reverse = [
        full(0, x.type) if t is None else t for x, t in zip(graph.inputs, forward, strict=True)
    ]
    twice = pullback(first.outputs, tangents, graph.inputs, set(graph.inputs))
    reverse = [
        full(0, x.type) if g is None else g for x, g in zip(graph.inputs, twice, strict=True)
    ]
    found = run(Graph(graph.inputs, [*over_reverse, *reverse]), xs)
    n = len(xs)
    expected = difference(first, xs, dict(enumerate(ts)))
    for a, b, c in zip(found[:n], found[n:], expected, strict=True):
        compare("reverse over reverse", b, a, 1e-10)
        compare("forward over reverse", a, c, 1e-5)


@few
@given(seeds)
def test_array_outputs(seed: int) -> None:
    """<v, J t> = <J^T v, t> with a cotangent input for the output that is an array."""
    graph, xs, ts = scalar(seed)
    graph = smooth_graph(seed)
    back, forth = gradient(graph), tangent(graph)
    v = np.asarray(np.random.default_rng(seed).uniform(-1, 1, graph.outputs[1].shape))
    seed_of_scalar = graph.outputs[1].shape == ()
    pulled = run(back, xs if seed_of_scalar else [*xs, v])
    pushed = run(forth, [*xs, *ts])
    v = np.ones(()) if seed_of_scalar else v
    compare("<v, J t>", pushed[0] + np.sum(v * pushed[1]), dot(pulled, ts), 1e-10)


@examples(30)
@given(seeds)
def test_a_batched_gradient_is_a_loop(seed: int) -> None:
    graph, xs, _ = scalar(seed)
    first = gradient(graph)
    rng = np.random.default_rng(seed)
    stacked = [bool(s) for s in rng.integers(0, 2, len(xs))]
    stacked[0] = True
    stacks = [np.stack([x, x * 0.5, -x]) if s else x for x, s in zip(xs, stacked, strict=True)]
    many = batch(first, stacked, 3)
    verify(many)
    found = run(many, stacks)
    for k in range(3):
        one = run(first, [x[k] if s else x for x, s in zip(stacks, stacked, strict=True)])
        for a, b in zip(found, one, strict=True):
            compare(f"sample {k}", a[k], b, 1e-11)


@pytest.mark.slow
@examples(30)
@given(seeds)
def test_third_order(seed: int) -> None:
    """The derivative of the curvature t' H t along t, against finite differences."""
    graph, xs, ts = scalar(seed)
    curvature: list[Node] = list(graph.outputs)
    tangents = [constant(t) for t in ts]
    for _ in range(2):
        (t,) = pushforward(curvature, graph.inputs, tangents, set(graph.inputs))
        curvature = [full(0, graph.outputs[0].type) if t is None else t]
    (expected,) = difference(Graph(graph.inputs, curvature), xs, dict(enumerate(ts)))
    third = run(gradient(Graph(graph.inputs, curvature)), xs)
    compare("the third derivative", dot(third, ts), expected, 1e-4)


@few
@given(seeds)
def test_the_same_construction_gives_the_same_graph(seed: int) -> None:
    one, two = gradient(smooth_graph(seed)), gradient(smooth_graph(seed))
    assert one == two
    verify(one)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300))
def test_larger_graphs(seed: int) -> None:
    graph = smooth_graph(seed, steps=40)
    graph = graph.with_outputs(graph.outputs[:1])
    xs = smooth_arrays(graph, seed)
    ts = [np.asarray(np.random.default_rng(seed).uniform(-1, 1, x.shape)) for x in xs]
    first = gradient(graph)
    (expected,) = difference(graph, xs, dict(enumerate(ts)))
    compare("the gradient", dot(run(first, xs), ts), expected, 1e-5)
    forward = run(tangent(first), [*xs, *ts])
    for found, right in zip(forward, difference(first, xs, dict(enumerate(ts))), strict=True):
        compare("forward over reverse", found, right, 1e-4)
