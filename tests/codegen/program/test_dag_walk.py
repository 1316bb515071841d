"""Walks through graphs in regions: threads share the nodes of wide levels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import gnn
from retrograd.ir import Graph
from retrograd.runtime.paired_program import on_real
from retrograd.schedule.control_regions import regions_of
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.verify.records import RECORDS
from tests.codegen.program.agreeing import W, X, the_same_for_threads_and_tiers
from tests.runtime.agreement import GuardedProgram


def layered(count, width):
    """Edges of a graph of levels, three from each level to a node of the next."""
    rng = np.random.default_rng(0)
    to = np.repeat(np.arange(width, count * width), 3)
    return np.stack([(to // width - 1) * width + rng.integers(width, size=len(to)), to])


EDGES = layered(5, 60)


def walked(w, x):
    graph = gnn.Graph(300, EDGES)
    return gnn.dag_scan(lambda m, x: rg.tanh(m @ w[:200, :200] + x), graph, x)


def walks_in_a_scan(w, x):
    return rg.scan(lambda c, _: (walked(w, c) * 0.5 + x, None), x, length=2)[0]


def walks_in_a_loop(w, x):
    step = lambda s: (s[0] + 1, walked(w, s[1]) * 0.5 + x)
    return rg.while_loop(lambda s: s[0] < 2, step, (0, x))[1]


def a_walk_in_a_choice(w, x):
    return rg.cond(x[0, 0] > -50, lambda x: walked(w, x), lambda x: x, x)


def shared_walks(tile_groups, within=False):
    """Walks through graphs inside of regions, whose levels threads share."""
    count = 0
    for group in tile_groups:
        for kernel in group.kernels if group.is_region else ():
            for region in regions_of(kernel):
                count += within and region.walk is not None
                count += sum(shared_walks(block, True) for block in region.tile_groups)
    return count


@pytest.mark.slow
@pytest.mark.parametrize("f", [walks_in_a_scan, walks_in_a_loop, a_walk_in_a_choice])
@pytest.mark.parametrize("differentiated", [False, True])
@pytest.mark.sample(1)
def test_threads_share_the_levels_of_walks_in_regions(f, differentiated):
    graph = the_same_for_threads_and_tiers(f, differentiated)
    assert shared_walks(KernelPlan(graph.optimize()).tile_groups) >= 1 + differentiated


def test_checks_that_fail_in_walks_in_regions():
    def f(w, x, i):
        graph = gnn.Graph(300, EDGES)
        cell = lambda m, x: rg.tanh(m @ w[:200, :200] + x) * w[i, 0]
        step = lambda c, _: (gnn.dag_scan(cell, graph, c), None)
        return rg.scan(step, x, length=2)[0]

    compiled = rg.jit(f)
    with rg.num_threads(2):
        good = compiled(W, X, 7).numpy()
        for _ in range(2):
            with pytest.raises(IndexError, match="the index 300"):
                compiled(W, X, 300).numpy()
        np.testing.assert_array_equal(compiled(W, X, 7).numpy(), good)


@pytest.mark.parametrize("threads", [1, 2])
def test_edges_and_orders_from_anywhere_touch_no_other_memory(threads):
    """As of a saved graph that somebody made up: results are wrong, and nothing else is."""
    rng = np.random.default_rng(threads)
    for sample in RECORDS["dag_scan"].samples():
        nodes = sample.nodes()
        op: Any = sample.op
        program: Any = on_real(Graph(nodes, [op(*nodes)]), GuardedProgram)
        edges, order, *rest = sample.inputs
        for most in (2, 10, 1 << 40, 1 << 62):
            wrong = [rng.integers(-most, most, a.shape) for a in (edges, order)]
            with rg.num_threads(threads):
                (found,) = program([*wrong, *rest])
            assert len(found) == op.nodes
            program.check_guards()
