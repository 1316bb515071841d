"""The order of the nodes of a graph: the array that `ops/toposort.py` describes, by hand."""

import numpy as np
import pytest

from retrograd.errors import CycleError
from retrograd.ir import Dim, Graph, int64, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.toposort import DagOrder, parts
from retrograd.runtime.executable import Executable

EDGES = Dim("E")


def program(nodes: int) -> Executable:
    edges = input_node(spec((2, EDGES), int64))
    return Executable(Graph([edges], [DagOrder(nodes)(edges)]))


def levels_of(nodes: int, edges: np.ndarray) -> np.ndarray:
    """The longest path to each node, step by step."""
    level = np.zeros(nodes, int)
    for _ in range(nodes):
        for a, b in edges.T:
            level[b] = max(level[b], level[a] + 1)
    return level


def test_random_graphs() -> None:
    rng = np.random.default_rng(0)
    for nodes, count in ((1, 0), (5, 0), (12, 20), (40, 100), (9, 30)):
        ends = np.sort(rng.integers(0, nodes, (2, count)), axis=0)
        edges = rng.permutation(nodes)[ends[:, ends[0] != ends[1]]].astype(np.int64)
        (array,) = program(nodes)([edges])
        found = parts(array, nodes, edges.shape[1])
        level = levels_of(nodes, edges)
        np.testing.assert_array_equal(found.order, np.lexsort((np.arange(nodes), level)))
        assert found.levels == level.max() + 1
        starts = np.searchsorted(np.sort(level), np.arange(nodes + 1))
        np.testing.assert_array_equal(found.level, starts)
        for ends, start, edge in (
            (edges[1], found.in_start, found.in_edge),
            (edges[0], found.out_start, found.out_edge),
        ):
            for v in range(nodes):
                own = edge[start[v] : start[v + 1]]
                np.testing.assert_array_equal(own, np.flatnonzero(ends == v))


def test_circles_are_refused() -> None:
    run = program(4)
    for edges in ([[0, 1, 2], [1, 2, 0]], [[3], [3]]):
        with pytest.raises(CycleError):
            run([np.array(edges)])
    assert run([np.array([[0], [1]])])[0][0] == 2
