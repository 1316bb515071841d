"""What is stored, and what is computed again where it is read."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph, spec
from retrograd.ops.elementwise import add, exp, mul, relu, sub, tanh
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral, matmul
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import expand, permute, reshape
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.reference import ReferenceProgram
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.tuning import TUNING

LARGE, LITTLE = 600, 30  # rows and columns: beyond what a kernel leaves in the cache, and within


def stored(graph: Graph) -> list[str]:
    """The operations whose results a plan keeps in memory, the outputs aside."""
    plan = KernelPlan(graph)
    kept = [b for k in plan.kernels for b in k.outs if b.kind == "temporary"]
    return sorted(b.node.op for b in kept)


def steps(x, count=3):
    """A few cheap steps."""
    for _ in range(count):
        x = add(x, relu(x))
    return x


def product(n):
    x, y = (input_node(spec((n, n))) for _ in range(2))
    return [x, y], matmul(x, y)


@pytest.mark.parametrize("n", [LARGE, LITTLE])
def test_cheap_steps_from_one_stored_array_are_taken_again_where_it_is_large(n):
    inputs, p = product(n)
    s = steps(p)
    graph = Graph(inputs, [matmul(tanh(s), p), exp(s)])
    assert stored(graph) == (
        ["dot_general", "tanh"] if n == LARGE else ["add", "dot_general", "tanh"]
    )
    r = np.random.default_rng(0)
    arrays = [(r.normal(size=(n, n)) / n).astype(np.float32) for _ in range(2)]
    found, right = Executable(graph)(arrays), ReferenceProgram(graph)(arrays)
    for y, e in zip(found, right, strict=True):  # sums are taken in another order
        np.testing.assert_allclose(y, e, rtol=1e-5, atol=1e-6 * np.abs(e).max())


def test_a_small_array_may_take_part():
    inputs, p = product(LARGE)
    bias = input_node(spec((LARGE,)))
    s = relu(add(p, expand(bias, p.shape, (0,))))
    graph = Graph([*inputs, bias], [matmul(tanh(s), p), exp(s)])
    assert stored(graph) == ["dot_general", "tanh"]


def test_not_from_two_large_arrays_nor_in_many_steps():
    inputs, p = product(LARGE)
    q = matmul(p, p)
    s = add(p, q)
    graph = Graph(inputs, [matmul(tanh(s), p), exp(s)])
    assert stored(graph) == ["add", "dot_general", "dot_general", "tanh"]
    s = steps(p, 6)
    graph = Graph(inputs, [matmul(tanh(s), p), exp(s)])
    assert "add" in stored(graph)


def test_what_is_summed_right_away_is_stored():
    inputs, p = product(LARGE)
    s = steps(p)
    total = expand(ReduceSum((1,))(s), s.shape, (1,))
    assert stored(Graph(inputs, [mul(s, total)])) == ["add", "dot_general", "reduce_sum"]


def centred(p):
    """A matrix less the means of its columns, as batch norm begins."""
    return sub(p, expand(ReduceSum((0,))(p), p.shape, (0,)))


def test_what_a_batch_is_summed_of_is_not_stored():
    """When its last row is reached, the first is in no cache; so the sum, and what uses it, load
    the product, however many they are. Nor is what has one number for each column."""
    inputs, p = product(LARGE)
    s = centred(p)
    total = expand(ReduceSum((0,))(mul(s, s)), s.shape, (0,))
    others = [input_node(spec(p.shape)) for _ in range(TUNING.view_readers + 1)]
    several = [ReduceSum((0,))(mul(s, x)) for x in others]
    graph = Graph([*inputs, *others], [mul(s, total), *several])
    assert stored(graph) == ["dot_general", "reduce_sum", "reduce_sum"]
    r = np.random.default_rng(0)
    arrays = [(r.normal(size=x.shape) / LARGE).astype(np.float32) for x in graph.inputs]
    kept = Graph(graph.inputs, [*graph.outputs, s])  # an output is stored
    for y, e in zip(Executable(graph)(arrays), Executable(kept)(arrays), strict=False):
        np.testing.assert_array_equal(y, e)  # to the bit


def test_what_is_not_cheap_is_stored_for_several_kernels():
    """It is no source of itself."""
    inputs, p = product(LARGE)
    s, turned = tanh(p), permute(tanh(p), (1, 0))
    graph = Graph(inputs, [s * relu(p), exp(s), *(ReduceSum((0,))(x) for x in (s, turned))])
    assert "tanh" in stored(graph)


def test_it_may_be_loaded_through_a_reshape_or_take_many_steps_itself():
    inputs, p = product(LARGE)
    s = centred(reshape(p, (LARGE, 2, LARGE // 2)))
    assert stored(Graph(inputs, [exp(s), ReduceSum((0,))(mul(s, s))])) == [
        "dot_general",
        "reduce_sum",
    ]
    s = centred(steps(p, 6))
    graph = Graph(inputs, [exp(s), ReduceSum((0,))(mul(s, s))])
    assert stored(graph) == ["add", "dot_general", "reduce_sum"]


def test_inputs_are_not_read_later_for_it():
    """Or an output could no longer be written over one that the caller gave away."""
    x, w = (input_node(spec((LARGE, LARGE))) for _ in range(2))
    s = steps(x)
    graph = Graph([x, w], [matmul(tanh(s), w), exp(s)])
    assert "add" in stored(graph)


def outer(a, b):
    shape = (*a.shape, *b.shape)
    return mul(expand(a, shape, (1,)), expand(b, shape, (0,)))


def test_a_column_times_a_row_is_stored_for_nobody():
    """Both are far smaller than their product, which would have to be written to be read."""
    a, b = (input_node(spec((n,))) for n in (LARGE, LARGE + 1))
    p = outer(a, b)
    sums = [ReduceSum((0,))(p), ReduceSum((1,))(mul(p, p))]
    graph = Graph([a, b], sums)
    assert stored(graph) == []
    assert stored(Graph([a, b], [ReduceSum((1,))(exp(p)), exp(p)])) == []
    assert stored(Graph([a, b], [*sums, p])) == []  # it is an output


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_a_matrix_that_is_multiplied_by_a_vector_is_computed_where_it_is_read(turned, first):
    x, v = input_node(spec((LARGE, LARGE))), input_node(spec((LARGE,)))
    wide = mul(x, relu(x))
    used = (0,) if turned else (1,)
    pair = (v, wide) if first else (wide, v)
    y = DotGeneral(*((0,), used) if first else (used, (0,)))(*pair)
    graph = Graph([x, v], [y])
    assert stored(graph) == []
    r = np.random.default_rng(0)
    arrays = [r.normal(size=n.shape).astype(np.float32) for n in (x, v)]
    (found,) = Executable(graph)(arrays)
    (once,) = Executable(Graph([x], [wide]))(arrays[:1])
    (expected,) = Executable(Graph([x, v], [y.with_inputs((v, x) if first else (x, v))]))(
        [once, arrays[1]]
    )
    np.testing.assert_array_equal(found, expected)  # to the bit


def test_a_matrix_that_is_multiplied_by_several_vectors_is_stored():
    x, v = input_node(spec((LARGE, LARGE))), input_node(spec((LARGE, 2)))
    assert stored(Graph([x, v], [matmul(mul(x, x), v)])) == ["mul"]
    w = input_node(spec((LARGE, 1)))  # as is the vector, which all rows read
    assert stored(Graph([x, w], [matmul(x, mul(w, w))])) == ["mul"]


@pytest.mark.slow
def test_an_activation_and_its_gradient():
    """Of the steps of GELU, nothing but the function in their middle is kept for the gradient."""
    r = np.random.default_rng(0)
    w, x, v = ((r.normal(size=(LARGE, LARGE)) / 24).astype(np.float32) for _ in range(3))

    def f(w, x, v):
        return rg.nn.functional.gelu(x @ w, approximate="tanh") @ v

    found = rg.grad(lambda *a: (f(*a) ** 2).sum(), argnums=(0, 1, 2))(w, x, v)
    with rg.backend("reference"):
        expected = rg.grad(lambda *a: (f(*a) ** 2).sum(), argnums=(0, 1, 2))(w, x, v)
        expected = [e.numpy() for e in expected]  # type: ignore[assignment]
    for y, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(y.numpy(), e, rtol=1e-3, atol=1e-3)
