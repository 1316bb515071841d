"""The order of a graph's nodes against networkx, and what is no order."""

import networkx
import numpy as np
import pytest

from retrograd.errors import CycleError, DTypeError, IndexRangeError, ShapeError
from retrograd.ir import TensorType, float32, int64
from retrograd.ops.leaf import input_node
from retrograd.ops.toposort import DagOrder, order_size, parts
from retrograd.verify.rule_checks import check_result


def ordered(nodes, edges):
    edges = np.array(edges, np.int64).reshape(-1, 2).T
    return parts(check_result(DagOrder(nodes), [edges]), nodes, edges.shape[1])


@pytest.mark.parametrize("seed", range(5))
def test_levels_and_edges_of_random_graphs(seed):
    rng = np.random.default_rng(seed)
    n, place = 12, rng.permutation(12)
    pairs = [sorted(rng.choice(n, 2, replace=False)) for _ in range(20)]  # some more than once
    edges = [(int(place[a]), int(place[b])) for a, b in pairs]
    graph = networkx.DiGraph(edges)
    graph.add_nodes_from(range(n))
    found = ordered(n, edges)
    levels = [found.order[a:b].tolist() for a, b in zip(found.level, found.level[1:], strict=False)]
    assert levels[: found.levels] == [sorted(x) for x in networkx.topological_generations(graph)]
    assert set(found.level[found.levels :]) == {n}
    for v in range(n):
        into = found.in_edge[found.in_start[v] : found.in_start[v + 1]]
        out = found.out_edge[found.out_start[v] : found.out_start[v + 1]]
        assert into.tolist() == [e for e, (_, b) in enumerate(edges) if b == v]
        assert out.tolist() == [e for e, (a, _) in enumerate(edges) if a == v]


def test_no_nodes_and_no_edges():
    assert ordered(0, []).levels == 0
    alone = ordered(3, [])
    assert alone.levels == 1
    assert (alone.order.tolist(), alone.level.tolist()) == ([0, 1, 2], [0, 3, 3, 3])
    assert order_size(3, 0) == 16


def test_what_is_wrong_is_named():
    with pytest.raises(IndexRangeError, match=r"edge 1 leads from node 1 to node 3, .* no node 3"):
        ordered(3, [(0, 1), (1, 3)])
    with pytest.raises(IndexRangeError, match="edge 0 leads from node -1"):
        ordered(3, [(-1, 1)])
    with pytest.raises(CycleError, match=r"a cycle of 3 nodes: 1 -> 3 -> 2 -> 1$"):
        ordered(5, [(0, 1), (1, 3), (3, 2), (2, 1), (2, 4)])
    with pytest.raises(CycleError, match=r"a cycle of 1 nodes: 0 -> 0$"):
        ordered(1, [(0, 0)])
    with pytest.raises(CycleError, match=r"a cycle of 30 nodes: 0 -> .* -> \.\.\. -> .* -> 0$"):
        ordered(30, [(i, (i + 1) % 30) for i in range(30)])


def test_edges_are_two_rows_of_int64():
    with pytest.raises(DTypeError, match="edges as int64"):
        DagOrder(3)(input_node(TensorType(float32, (2, 4))))
    with pytest.raises(ShapeError, match=r"edges as \[2, E\]"):
        DagOrder(3)(input_node(TensorType(int64, (3, 4))))
