"""The definition of meaning: each node on its own, shown to an observer."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import ShapeError
from retrograd.ir import Dim, Graph, Node, float16, float32, spec
from retrograd.ops.elementwise import add, exp, mul
from retrograd.ops.index import Gather
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import Permute
from retrograd.runtime.executors.reference import ReferenceProgram


def test_results_are_arrays_of_their_own() -> None:
    """Fresh, contiguous and of the dtype of the node, whatever NumPy made of it."""
    x = input_node(spec((2, 3), float32))
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    turned, same, again = ReferenceProgram(Graph([x], [Permute((1, 0))(x), x, x]))([a])
    np.testing.assert_array_equal(turned, a.T)
    for y in (turned, same, again):
        assert y.flags.c_contiguous
        assert y.flags.writeable
        assert not np.shares_memory(y, a)
    assert not np.shares_memory(same, again)
    half = input_node(spec((3,), float16))
    (y,) = ReferenceProgram(Graph([half], [exp(half)]))([np.ones(3, np.float16)])
    assert y.dtype == np.float16


def test_an_observer_sees_every_node_once() -> None:
    x = input_node(spec((2,), float32))
    y = mul(x, x)
    z = add(y, exp(y))
    seen: list[tuple[Node, list[float], int]] = []
    graph = Graph([x], [z])
    program = ReferenceProgram(graph, lambda n, v, given: seen.append((n, v.tolist(), len(given))))
    program([np.array([1, 2], np.float32)])
    assert [n for n, _, _ in seen] == [x, *graph.body]
    assert [count for _, _, count in seen] == [0, *[len(n.inputs) for n in graph.body]]
    assert seen[1][1] == [1, 4]


@pytest.mark.parametrize("into", [False, True])
def test_bodies_of_loops(into: bool) -> None:
    """Each step is seen, if that is asked for."""
    graph = rg.trace(lambda x: rg.fori_loop(0, 5, lambda i, y: rg.tanh(y), x), spec((2,), float32))
    ops: list[str] = []
    program = ReferenceProgram(graph, lambda n, v, given: ops.append(n.op), into_loops=into)
    a = np.array([0.5, -1], np.float32)
    found = program([a])[0]
    assert ops.count("tanh") == (5 if into else 0)
    for _ in range(5):
        a = np.tanh(a)
    np.testing.assert_allclose(found, a, 1e-6)


def test_errors_name_the_node() -> None:
    x, i = input_node(spec((3,), float32)), input_node(spec((1,), rg.int64))
    program = ReferenceProgram(Graph([x, i], [Gather(0)(x, i).renamed("chosen")]))
    with pytest.raises(IndexError, match=r"the index 5 .*chosen"):
        program([np.ones(3, np.float32), np.array([5])])
    n = Dim("N")
    short = ReferenceProgram(rg.trace(lambda x: x[: n - 2], spec((n,), float32)))
    assert short([np.ones(3, np.float32)])[0].shape == (1,)
    with pytest.raises(ShapeError):
        short([np.ones(1, np.float32)])
