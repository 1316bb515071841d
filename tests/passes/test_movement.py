import numpy as np
import pytest

import retrograd as rg
import retrograd.ops.elementwise as e
from retrograd.ir import Dim, Graph, TensorType, bool_, complex64, full, int32, spec
from retrograd.ops.identity import Alias, StopGradient
from retrograd.ops.index import Gather
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral, matmul
from retrograd.ops.reduce import (
    LogSumExp,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from retrograd.ops.shape import Concat, Expand, Flip, Pad, Permute, Reshape, Slice, slice_axis
from retrograd.passes import cse, optimize, simplify
from retrograd.runtime.executable import Executable
from tests.passes.agreement import assert_kept, draw, special_values
from tests.random_graphs import SIZES, same_values

N = Dim("N")


def zero(x):
    return full(0, spec((), x.dtype))


# Written on x: f32[N, 4, 3]; the operations that are left.
MOVES = {
    "reshape, same": (lambda x: Reshape(x.shape)(x), []),
    "reshape of reshape": (lambda x: Reshape((4, 3 * N))(Reshape((12 * N,))(x)), ["reshape"]),
    "reshape there and back": (lambda x: Reshape(x.shape)(Reshape((12 * N,))(x)), []),
    "permute, same": (lambda x: Permute((0, 1, 2))(x), []),
    "permute of permute": (lambda x: Permute((1, 0, 2))(Permute((2, 0, 1))(x)), ["permute"]),
    "permute there and back": (lambda x: Permute((1, 2, 0))(Permute((2, 0, 1))(x)), []),
    "expand by nothing": (lambda x: Expand(x.shape, ())(x), []),
    "expand of expand": (
        lambda x: Expand((5, N, 2, 4, 3), (0,))(Expand((N, 2, 4, 3), (1,))(x)),
        ["expand"],
    ),
    "permute of expand": (
        lambda x: Permute((1, 0, 2, 3))(Expand((7, *x.shape), (0,))(x)),
        ["expand"],
    ),
    "slice of all": (lambda x: slice_axis(x, 0, 0, N), []),
    "slice of slice": (lambda x: slice_axis(slice_axis(x, 1, 1, 4), 1, 1, 3), ["slice"]),
    "slice of slice, symbolic": (
        lambda x: slice_axis(slice_axis(x, 0, 1, N), 0, 1, N - 1),
        ["slice"],
    ),
    "slice of slice, steps": (
        lambda x: Slice((0, 1, 0), (N, 2, 3), (1, 2, 1))(Slice((0, 0, 0), (N, 4, 3), (1, 2, 1))(x)),
        ["slice"],
    ),
    "part of concat": (lambda x: slice_axis(Concat(0)(-x, x, x), 0, N, 2 * N), []),
    "inside of pad": (
        lambda x: slice_axis(Pad((0, 2, 0), (0, 1, 0), (0, 0, 0))(x, zero(x)), 1, 2, 6),
        [],
    ),
    "pad by nothing": (lambda x: Pad((0,) * 3, (0,) * 3, (0,) * 3)(x, zero(x)), []),
    "flip of flip": (lambda x: Flip((1, 0))(Flip((0, 1))(x)), []),
    "flip of another flip": (lambda x: Flip((0, 1))(Flip((1, 2))(x)), ["flip"]),
    "flip of nothing": (lambda x: Flip(())(x), []),
    "concat of one": (lambda x: Concat(1)(x), []),
    "alias": (lambda x: Alias()(Alias()(x)), []),
    "stop_gradient twice": (lambda x: StopGradient()(StopGradient()(x)), ["stop_gradient"]),
    "maximum over no axes": (lambda x: ReduceMax(())(x), []),
    "product over no axes": (lambda x: ReduceProd(())(x), []),
    "logsumexp over no axes": (lambda x: LogSumExp(())(x), []),
    "sum over no axes stays, for -0.0": (lambda x: ReduceSum(())(x), ["reduce_sum"]),
    "sum of zeros": (lambda x: ReduceSum((0, 1))(full(0, x.type)), ["constant"]),
    "product of ones": (lambda x: ReduceProd((0,))(full(1, x.type)), ["constant"]),
    "maximum of repetitions": (
        lambda x: ReduceMax((1,))(Expand((N, 2, 4, 3), (1,))(x)),
        [],
    ),
    "maximum of perhaps no repetitions stays": (
        lambda x: ReduceMin((1,))(Expand((N, 4, 3, 2 * N), (3,))(x)),
        ["expand", "reduce_min"],
    ),
}


@pytest.mark.parametrize(("written", "left"), MOVES.values(), ids=MOVES)
def test_movement(written, left):
    x = input_node(spec((N, 4, 3)), "x")
    g = Graph([x], [written(x)])
    result = assert_kept(optimize, g, draw(g))
    assert [n.op for n in result.body] == left


@pytest.mark.parametrize("op", [ReduceSum, ReduceProd, LogSumExp, ReduceAny, ReduceAll])
def test_a_reduction_over_nothing_is_its_empty_value(op):
    dtype = bool_ if op in (ReduceAny, ReduceAll) else "float32"
    x = input_node(spec((2, 0), dtype))
    g = assert_kept(simplify, Graph([x], [op((1,))(x)]), [np.zeros((2, 0), dtype)])
    assert [n.op for n in g.body] == ["constant"]


def test_equal_values_reduced():
    for op, value in ((ReduceMax, 2.5), (ReduceMin, -0.0), (ReduceAny, True), (ReduceAll, False)):
        k = full(value, spec((3, 2), bool if isinstance(value, bool) else "float32"))
        g = assert_kept(simplify, Graph([], [op((1,))(k)]), [])
        assert [n.op for n in g.body] == ["constant"]


# -- contractions, on integers, where every order of summation gives the same ---------------------


def operands(*shapes):
    return [input_node(spec(s, int32), name) for s, name in zip(shapes, "ab", strict=True)]


def ops(graph):
    return [n.op for n in graph.body]


@pytest.mark.parametrize(
    ("shape", "perm", "axis", "left"),
    [
        ((4, 3), (1, 0), 1, ["dot_general"]),
        ((3, 4), (0, 1), 1, ["dot_general"]),
        ((4, 2, 3), (1, 2, 0), 2, ["dot_general"]),
        ((4, 2, 3), (2, 1, 0), 2, ["permute", "dot_general"]),  # the free axes change places
    ],
)
def test_permutations_go_into_contractions(shape, perm, axis, left):
    a, b = operands(shape, (4, 5))
    y = DotGeneral((axis,), (0,))(Permute(perm)(a), b)
    g = Graph([a, b], [y])
    assert ops(assert_kept(simplify, g, draw(g))) == left
    g = Graph([a, b], [DotGeneral((0,), (axis,))(b, Permute(perm)(a))])
    assert ops(assert_kept(simplify, g, draw(g))) == left


def test_batched_permutations_go_into_contractions():
    a, b = operands((3, 7, 2), (7, 3, 5))
    y = matmul(Permute((1, 2, 0))(a), b)
    g = Graph([a, b], [y])
    assert ops(assert_kept(simplify, g, draw(g))) == ["dot_general"]


@pytest.mark.parametrize("batched", [False, True])
def test_a_transposed_product_is_the_product_in_the_other_order(batched):
    lead = (7,) if batched else ()
    a, b = operands((*lead, 2, 3), (*lead, 3, 5))
    y = Permute((0, 2, 1) if batched else (1, 0))(matmul(a, b))
    g = Graph([a, b], [y])
    result = assert_kept(simplify, g, draw(g))
    assert ops(result) == ["dot_general"]
    assert result.outputs[0].inputs == (b, a)


@pytest.mark.parametrize(
    ("rows", "axis", "perm", "left"),
    [
        (3, 0, (0, 1, 2), ["dot_general", "gather"]),
        (3, 0, (1, 0, 2), ["dot_general", "gather", "permute"]),
        (3, 0, (0, 2, 1), ["gather", "dot_general"]),  # summed over places
        (4, 0, (0, 1, 2), ["gather", "dot_general"]),  # rows are not read four times
        (3, 1, (0, 1, 2), ["gather", "dot_general"]),  # columns are read
    ],
)
def test_rows_of_a_small_table_are_multiplied_before_they_are_read(rows, axis, perm, left):
    table, index = input_node(spec((rows, 6), int32)), input_node(spec((3, 4), int32))
    x = Permute(perm)(Gather(axis)(table, index))
    w = input_node(spec((x.shape[2], 8), int32))
    g = Graph([table, index, w], [DotGeneral((2,), (0,))(x, w)])
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 3, x.shape, dtype=np.int32) for x in g.inputs]
    assert ops(assert_kept(optimize, g, arrays)) == left


def test_rows_of_a_product_have_the_bits_of_products_of_rows():
    rng = np.random.default_rng(0)
    table, w = rng.normal(size=(5, 300)), rng.normal(size=(40, 300))
    index = rng.integers(0, 5, (30, 7))
    for dtype in ("f", "d"):
        e, m = table.astype(dtype), w.astype(dtype)
        read = rg.jit(lambda e, i, m: rg.take(e, i, axis=0) @ m.mT)(e, index, m)
        plain = rg.jit(lambda x, m: x @ m.mT)(e[index], m)
        assert read.numpy().tobytes() == plain.numpy().tobytes()


def test_a_product_that_others_read_is_not_computed_twice():
    a, b = operands((2, 3), (3, 5))
    product = matmul(a, b)
    g = Graph([a, b], [Permute((1, 0))(product), product])
    assert simplify(g) is g


def sum_of_products(dtype, count=3):
    """Of `count` pairs, as the gradient by a weight that is used so often."""
    leaves, total = [], None
    for k in range(count):
        a, b = (input_node(spec((40 + k, n), dtype), f"{x}{k}") for n, x in ((30, "a"), (20, "b")))
        leaves += [a, b]
        y = DotGeneral((0,), (0,))(a, b)
        total = y if total is None else e.add(total, y)
    return leaves, total


def test_a_transposed_sum_of_products_is_the_sum_of_products_in_the_other_order():
    """To the bit: each product adds up in the same order, and so does the sum."""
    leaves, total = sum_of_products("float32")
    g = Graph(leaves, [Permute((1, 0))(total)])
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=x.shape).astype(np.float32) for x in leaves]
    result = optimize(g)
    assert sorted(ops(result)) == ["add"] * 2 + ["dot_general"] * 3
    (before,), (after,) = Executable(g)(arrays), Executable(result)(arrays)
    np.testing.assert_array_equal(before, after)


def test_long_sums_of_products_are_transposed_without_recursion():
    leaves, total = sum_of_products("int32", 1500)
    assert "permute" not in ops(optimize(Graph(leaves, [Permute((1, 0))(total)])))


def test_sums_stay_that_others_read_or_that_have_other_parts():
    leaves, total = sum_of_products("int32")
    product = total.inputs[1]
    turned = Permute((1, 0))(total)
    other = input_node(spec(total.shape, int32), "other")
    for outputs in ([turned, total], [turned, product]):
        g = Graph(leaves, outputs)
        assert simplify(g) is g
    g = Graph([*leaves, other], [Permute((1, 0))(e.add(total, other))])
    assert simplify(g) is g


@pytest.mark.parametrize("readable", [True, False])
@pytest.mark.parametrize("view", [True, False])
def test_what_products_can_read_on_the_left_only_stays_there(readable, view):
    shapes = (7, 30), (7, 20), (50, 2, 30) if view else (40, 2, 30), (40, 2, 20), (2, 40, 20)
    a, b, c, d, turned = leaves = [input_node(spec(s, int32)) for s in shapes]
    left = slice_axis(c, 0, 5, 45) if view else c
    if readable:
        y = DotGeneral((0, 1), (0, 1))(left, d)
    else:  # rows of `left` are added up in another order than they lie
        y = DotGeneral((1, 0), (0, 1))(left, turned)
    total = e.add(DotGeneral((0,), (0,))(a, b), y)
    g = Graph(leaves, [Permute((1, 0))(total)])
    left = ops(assert_kept(optimize, g, draw(g)))
    assert ("permute" not in left) == (readable and not view)


ONE = {
    "no axes": ((4,), (5,), DotGeneral((), ())),
    "an axis of size 1": ((4, 1), (1, 5), DotGeneral((1,), (0,))),
    "several, in any order": ((1, 4, 1), (5, 1, 1), DotGeneral((2, 0), (1, 2))),
    "of each sample": ((3, 1, 4), (3, 1, 2, 5), DotGeneral((1,), (1,), (0,), (0,))),
    "batches that lie behind": ((1, 4, N), (5, N, 1), DotGeneral((0,), (2,), (2,), (1,))),
    "a number": ((1,), (1,), DotGeneral((0,), (0,))),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize(("left", "right", "contraction"), ONE.values(), ids=ONE)
def test_a_sum_of_one_product_is_that_product(left, right, contraction, dtype):
    """To the bit, as compiled programs compute both."""
    a, b = input_node(spec(left, dtype), "a"), input_node(spec(right, dtype), "b")
    g = Graph([a, b], [contraction(a, b)])
    result = assert_kept(optimize, g, draw(g))
    assert "dot_general" not in ops(result)
    assert "mul" in ops(result)
    arrays = [
        np.resize(special_values(x.dtype), TensorType.bind(x.type, SIZES).shape) for x in (a, b)
    ]
    for x, y in ((0, 1), (1, 0)):
        arrays[x] = np.roll(arrays[x], 3 + y)
        (before,), (after,) = Executable(g)(arrays), Executable(result)(arrays)
        assert same_values(before, after), (before, after)


def test_a_sum_of_one_product_or_more_stays():
    a, b = (input_node(spec(s), x) for s, x in (((4, N), "a"), ((N, 5), "b")))
    for pair in ((a, b), [input_node(spec(s, complex64)) for s in ((4, 1), (1, 5))]):
        g = Graph(pair, [DotGeneral((1,), (0,))(*pair)])
        assert ops(optimize(g)) == ["dot_general"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_size_that_turns_out_to_be_one_changes_no_bit(dtype):
    a, b = (input_node(spec(s, dtype), x) for s, x in (((36, N), "a"), ((N, 36), "b")))
    named = Graph([a, b], [DotGeneral((1,), (0,))(a, b)])
    a, b = (input_node(spec(s, dtype), x) for s, x in (((36, 1), "a"), ((1, 36), "b")))
    one = optimize(Graph([a, b], [DotGeneral((1,), (0,))(a, b)]))
    values = special_values(a.dtype)
    arrays = [values.reshape(36, 1), values.reshape(1, 36)]
    (before,), (after,) = Executable(named)(arrays), Executable(one)(arrays)
    assert same_values(before, after)


def test_contractions_of_floats_agree_to_rounding():
    a, b = input_node(spec((40, 30)), "a"), input_node(spec((40, 20)), "b")
    y = Permute((1, 0))(matmul(Permute((1, 0))(a), b))
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.5, 1, x.shape).astype(np.float32) for x in (a, b)]
    assert len(assert_kept(optimize, Graph([a, b], [y]), arrays, ulps=16).body) == 1


def test_layers_written_with_transposes_come_out_without():
    x, w = operands((6, 4), (5, 4))
    y = matmul(x, Permute((1, 0))(w))
    z = matmul(Permute((1, 0))(y), Reshape((6, 4))(x))
    g = Graph([x, w], [e.neg(e.neg(z))])
    result = assert_kept(lambda g: cse(simplify(g)), g, draw(g))
    assert ops(result) == ["dot_general", "dot_general"]
