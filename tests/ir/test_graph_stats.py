import numpy as np
import pytest

import retrograd.ops.elementwise as e
from retrograd.ir import Dim, Graph, spec, stats
from retrograd.ops.leaf import Constant, input_node
from retrograd.ops.linalg import LU, Cholesky, Solve
from retrograd.ops.matmul import DotGeneral, matmul
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import Permute

N = Dim("N")


def mlp(n):
    x, w = input_node(spec((n, 3)), "x"), input_node(spec((3, 4)), "w")
    h = e.tanh(matmul(x, w))
    return Graph([x, w], [ReduceSum((0, 1))(h * h)], "mlp")


def test_counts_of_a_small_network():
    s = mlp(5).stats()
    assert (s.nodes, s.inputs, s.outputs) == (6, 2, 1)
    assert s.ops == {"dot_general": 1, "tanh": 1, "mul": 1, "reduce_sum": 1}
    assert s.flops == 2 * 5 * 3 * 4 + 20 + 20  # contraction, products, sum
    assert s.transcendentals == 20
    assert s.input_bytes == 4 * (15 + 12)
    assert s.output_bytes == 4
    assert s.constant_bytes == 0
    # read and written: dot 15 + 12 + 20, tanh 20 + 20, mul 3 * 20, sum 20 + 1
    assert s.bytes_moved == 4 * (47 + 40 + 60 + 21)
    assert s.peak_bytes == 4 * (15 + 12 + 20 + 20)


def test_counts_of_linear_algebra():
    a, b = input_node(spec((5, N, N))), input_node(spec((5, N, 3)))
    s = Graph([a, b], [Solve()(a, LU()(a), b), Cholesky()(a)]).stats({"N": 30})
    assert s.flops == 5 * (2 * 30**3 // 3 + 2 * 30**2 * 3 + 30**3 // 3)


def test_symbolic_sizes_give_expressions_and_numbers_for_numbers():
    g = mlp(N)
    s = g.stats()
    assert s.flops == 32 * N
    assert s.peak_bytes == 4 * (3 * N + 12 + 8 * N)
    assert "32*N" in str(s)
    assert g.stats({"N": 5}).flops == mlp(5).stats().flops
    assert g.stats({"N": 5}).peak_bytes == mlp(5).stats().peak_bytes
    assert "(N = 5)" in str(g.stats({"N": 5}))


def test_batched_contraction():
    a, b = input_node(spec((7, 2, 3))), input_node(spec((7, 3, 5)))
    g = Graph([a, b], [DotGeneral((2,), (1,), (0,), (0,))(a, b)])
    assert g.stats().flops == 2 * 7 * 2 * 3 * 5


def test_movement_and_names_cost_no_operations_and_splats_store_one_element():
    x = input_node(spec((2, 3)))
    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    y = Permute((1, 0))(x) + Constant(table, (3, 2))() + 1
    s = Graph([x], [y]).stats()
    assert s.flops == 12
    assert s.constant_bytes == table.nbytes + 4


def test_peak_memory_frees_what_is_no_longer_read():
    x = y = input_node(spec((1000,)))
    for _ in range(50):
        y = e.neg(y)
    assert Graph([x], [y]).stats().peak_bytes == 3 * 4000  # the input, one read, one written
    assert Graph([x], [x]).stats().peak_bytes == 4000


def test_a_cut_graph_does_not_look_behind_its_inputs():
    x = input_node(spec((1000,)))
    a = e.neg(x)
    assert Graph([a], [e.neg(a)]).stats().peak_bytes == 8000


@pytest.mark.parametrize(
    ("elements", "text"), [(3, "flops            3\n"), (10**6, "1 M"), (12_345_678, "12.3 M")]
)
def test_text_is_readable(elements, text):
    x = input_node(spec((elements,)), "x")
    assert text in str(stats(Graph([x], [x + x], "sum")))
