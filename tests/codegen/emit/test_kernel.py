"""Every op family on the llvm backend, over dtypes and odd shapes."""

from __future__ import annotations

import re

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import (
    DTYPES,
    Dim,
    DType,
    Graph,
    Node,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    full,
    int8,
    int32,
    int64,
    spec,
    uint8,
    uint32,
    uint64,
)
from retrograd.ops.elementwise import ELEMENTWISE, Cast
from retrograd.ops.leaf import Iota, constant, input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.random.threefry import RandomBits
from retrograd.ops.reduce import (
    ArgMax,
    ArgMin,
    LogSumExp,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from retrograd.ops.shape import Concat, Expand, Flip, Pad, Permute, Reshape, Slice
from retrograd.ops.special import incomplete
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.reference import ReferenceProgram
from tests.runtime.agreement import GuardedProgram, assert_same, sample

FLOATS = (float16, bfloat16, float32, float64)
REALS = [d for d in DTYPES if not d.is_complex]  # for complex numbers see test_pairs.py


def graph_of(op, *types) -> Graph:
    inputs = [input_node(t, f"x{i}") for i, t in enumerate(types)]
    return Graph(inputs, [op(*inputs)])


# Compared with mpmath in test_special_math: near zeros they and NumPy's differ by more ulp.
OSCILLATING = {"digamma", "j0", "j1", "y0", "y1", "bessel_j", *incomplete.FUNCTIONS}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.sample(2)
def test_elementwise(dtype: DType) -> None:
    """All elementwise ops of a dtype in one graph: special values, then moderate ones."""
    most = max(len(op.derivatives) for op in ELEMENTWISE.values())
    inputs = [input_node(spec((61,), dtype), f"x{i}") for i in range(most)]
    condition = input_node(spec((61,), bool_), "c")
    outputs: list[Node] = []
    for op in ELEMENTWISE.values():
        if op.name == "select":
            outputs.append(op(condition, *inputs[1:3]))
        elif dtype.kind in op.kinds and op.name not in OSCILLATING:
            outputs.append(op(*inputs[: op.arity]))
    graph = Graph([*inputs, condition], outputs)
    c = sample((61,), bool_)
    ulps = 8 if dtype in (float32, float64) else 2
    program = GuardedProgram(graph)
    for special in (True, False):
        arrays = [sample((61,), dtype, seed, special) for seed in range(most)]
        assert_same(graph, [*arrays, c], ulps, program)


@pytest.mark.parametrize("source", REALS, ids=str)
def test_cast(source: DType) -> None:
    x = input_node(spec((77,), source), "x")
    graph = Graph([x], [Cast(to)(x) for to in REALS])
    assert_same(graph, [sample((77,), source, 1, special=True)], ulps=0)
    if source.is_float:
        with np.errstate(over="ignore"):
            values = np.geomspace(1e-9, 1e20, 77) * np.where(np.arange(77) % 2, 1, -1)
            assert_same(graph, [values.astype(source.dtype)], ulps=0)


SHAPES = [
    ((), ()), ((5,), (0,)), ((3, 4), (0,)), ((3, 4), (1,)), ((3, 4), (0, 1)), ((0, 3), (0,)),
    ((3, 0), (1,)), ((1, 1), (0, 1)), ((2, 17, 3), (1,)), ((2, 3, 17), (0, 2)), ((300,), (0,)),
    ((3, 257), (1,)), ((257, 3), (0,)), ((4, 1, 5), (1,)), ((3, 4), ()), ((1, 600), (0,)),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [*FLOATS, int8, int32, uint64, bool_], ids=str)
@pytest.mark.sample(1)
def test_reductions(dtype: DType) -> None:
    for shape, axes in SHAPES:
        x = input_node(spec(shape, dtype), "x")
        ops = [ReduceMax, ReduceMin]
        if any(shape[a] == 0 for a in axes):
            ops = []
        if dtype is bool_:
            ops += [ReduceAny, ReduceAll]
        else:
            ops += [ReduceSum, ReduceProd]
        if dtype.is_float:
            ops.append(LogSumExp)
        graph = Graph([x], [op(axes)(x) for op in ops])
        array = sample(shape, dtype)
        if dtype.is_float and shape == (300,):
            array = np.abs(array)
        program = GuardedProgram(graph)
        assert_same(graph, [array], 64, program)
        assert_same(graph, [sample(shape, dtype, 3, special=not dtype.is_float)], 64, program)


@pytest.mark.parametrize("dtype", [float32, bfloat16, int64, uint8, bool_], ids=str)
def test_positions_of_extrema(dtype: DType) -> None:
    for shape, axis in [((7,), 0), ((3, 5), 0), ((3, 5), 1), ((0, 2), 1), ((2, 1, 4), 1)]:
        x = input_node(spec(shape, dtype), "x")
        graph = Graph([x], [ArgMax(axis)(x), ArgMin(axis)(x)])
        assert_same(graph, [sample(shape, dtype, 1, special=True)])
        assert_same(graph, [np.zeros(shape, dtype.dtype)])


def test_reductions_of_nan_and_infinity() -> None:
    x = input_node(spec((4, 40), float32), "x")
    outputs = [op((axis,))(x) for op in (ReduceMax, ReduceMin, ReduceSum, LogSumExp)
               for axis in (0, 1)]  # fmt: skip
    array = sample((4, 40), float32)
    array[1, 5], array[2, 7], array[3, :] = np.nan, np.inf, -np.inf
    assert_same(Graph([x], outputs), [array])


@pytest.mark.parametrize("dtype", [float32, bfloat16, int8, bool_], ids=str)
def test_movement(dtype: DType) -> None:
    def check(op, *shapes) -> None:
        graph = graph_of(op, *(spec(s, dtype) for s in shapes))
        assert_same(graph, [sample(s, dtype, i) for i, s in enumerate(shapes)])

    check(Expand((3, 4, 5), (0, 2)), (4,))
    check(Expand((3, 0), (1,)), (3,))
    check(Expand((2, 3), (0, 1)), ())
    check(Reshape((6, 4)), (2, 3, 4))
    check(Reshape((2, 12)), (2, 3, 4))
    check(Reshape((3, 1, 8)), (2, 3, 4))
    check(Reshape(()), (1, 1))
    check(Reshape((1, 1)), ())
    check(Reshape((5, 0)), (0, 3))
    check(Permute((2, 0, 1)), (2, 3, 4))
    check(Permute((1, 0)), (0, 3))
    check(Slice((1, 0), (5, 3), (2, 1)), (6, 3))
    check(Slice((2,), (2,), (1,)), (6,))
    check(Flip((0, 2)), (2, 3, 4))
    check(Flip((0,)), (0, 4))
    check(Pad((1, 0), (2, 3), (0, 2)), (3, 4), ())
    check(Pad((2, 1), (0, 1), (0, 0)), (0, 3), ())
    check(Pad((2,), (3,), (1,)), (0,), ())
    check(Pad((2,), (3,), (1,)), (1,), ())
    check(Concat(0), (2, 3), (0, 3), (4, 3))
    check(Concat(1), (2, 3), (2, 1))
    check(Concat(1), *[(2, k % 4) for k in range(9)])
    check(Concat(0), (0,), (0,))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("rows", [3, Dim("N")], ids=["static", "symbolic"])
def test_concat_of_many_parts_that_are_the_same_everywhere(rows, axis):
    """What is written does not depend on the place, but the place does."""
    x, s = input_node(spec((rows, 4), float32)), input_node(spec((), float32))
    shape = (rows, 2) if axis else (2, 4)
    parts = [Expand(shape, (0, 1))(s * s) for _ in range(6)]
    zeros = [full(0, spec((rows, 4), float32)) for _ in range(6)]
    graph = Graph([x, s], [Concat(axis)(x, *parts), Concat(axis)(x, *zeros)])
    assert_same(graph, [sample((3, 4), float32), np.array(3, np.float32)])


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d is not bool_], ids=str)
@pytest.mark.sample(4)
def test_contractions(dtype: DType) -> None:
    cases = [
        ((3, 4), (4, 5), (1,), (0,), (), ()), ((4, 3), (4, 5), (0,), (0,), (), ()),
        ((3, 4), (5, 4), (1,), (1,), (), ()), ((2, 3, 4), (2, 4, 5), (2,), (1,), (0,), (0,)),
        ((3,), (3,), (0,), (0,), (), ()), ((3,), (4,), (), (), (), ()), ((), (4,), (), (), (), ()),
        ((3, 4), (4,), (1,), (0,), (), ()), ((4,), (4, 3), (0,), (0,), (), ()),
        ((2, 3, 4), (4, 3, 5), (1, 2), (1, 0), (), ()), ((3, 0), (0, 5), (1,), (0,), (), ()),
        ((0, 3), (3, 5), (1,), (0,), (), ()), ((1, 1), (1, 1), (1,), (0,), (), ()),
        ((3, 2, 4), (5, 4, 2), (2,), (1,), (1,), (2,)), ((17, 33), (33, 19), (1,), (0,), (), ()),
    ]  # fmt: skip
    for a, b, ac, bc, ab, bb in cases:
        graph = graph_of(DotGeneral(ac, bc, ab, bb), spec(a, dtype), spec(b, dtype))
        assert_same(graph, [sample(a, dtype), sample(b, dtype, 1)], ulps=64)


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_contractions_of_views(dtype: DType) -> None:
    a = input_node(spec((3, 20, 40), dtype), "a")
    b = input_node(spec((3, 40, 24), dtype), "b")
    v = input_node(spec((40, 24), dtype), "v")
    batched = DotGeneral((2,), (1,), (0,), (0,))
    outputs = [
        batched(a, b),
        DotGeneral((1,), (1,), (0,), (0,))(Permute((0, 2, 1))(a), b),
        DotGeneral((2,), (0,))(a, v),
        DotGeneral((2,), (1,))(a, Permute((1, 0))(v)),
        DotGeneral((0, 2), (0, 1))(a, b),
        DotGeneral((1,), (2,), (0,), (0,))(Permute((0, 2, 1))(a), Permute((0, 2, 1))(b)),
        DotGeneral((1,), (0,))(Reshape((60, 40))(a), v),
        batched(a, Expand((3, 40, 24), (0,))(v)),
        DotGeneral((2,), (0,))(a, Slice((0, 4), (40, 20), (1, 1))(v)),
        DotGeneral((2,), (0,))(a, Slice((0, 0), (40, 24), (1, 2))(v)),
        DotGeneral((2,), (0,))(a, Flip((0,))(v)),
        DotGeneral((1,), (0,), (2,), (1,))(a, Expand((20, 40, 24), (0,))(v)),
        DotGeneral((2, 1), (1, 0))(a, Expand((20, 40, 24), (0,))(v)),
    ]
    arrays = [sample(x.shape, dtype, i) for i, x in enumerate((a, b, v))]
    assert_same(Graph([a, b, v], outputs), arrays, ulps=128)


def test_leaves_and_random_bits() -> None:
    key = input_node(spec((3, 2), uint32), "key")
    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    empty = np.zeros((0, 4), np.float32)
    outputs = [
        RandomBits((5, 7))(key),
        RandomBits(())(key),
        RandomBits((0,))(key),
        *[Iota((3, 4), axis, d)() for axis in (0, 1) for d in DTYPES if d is not bool_],
        constant(table),
        constant(np.float64(2.5)),
        constant(np.array([[True]])),
        constant(empty),
        Concat(0)(constant(empty), constant(table)),
        key,
    ]
    assert_same(Graph([key], [*outputs, outputs[0], key]), [sample((3, 2), uint32, special=True)])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_signs_of_zeros(dtype: DType) -> None:
    """Of zeros of both signs the maximum is 0.0 and the minimum -0.0, in whatever order they come:
    in `reference`, which says what is meant, and in compiled code."""
    zeros = np.array([[0.0, -0.0], [-0.0, 0.0], [0.0, 0.0], [-0.0, -0.0]] * 5, dtype.dtype)
    a, b, x = (
        input_node(spec(s, dtype), n) for s, n in (((20,), "a"), ((20,), "b"), ((20, 2), "x"))
    )
    wide = input_node(spec((2, 20), dtype), "wide")
    op = {name: ELEMENTWISE[name] for name in ("max", "min", "relu", "clamp")}
    graph = Graph([a, b, x, wide], [
        op["max"](a, b), ReduceMax((1,))(x), ReduceMax((0,))(wide), op["relu"](a),
        op["min"](a, b), ReduceMin((1,))(x), ReduceMin((0,))(wide), op["clamp"](a, b, a),
    ])  # fmt: skip
    one, two = zeros[:, 0].copy(), zeros[:, 1].copy()
    arrays = [one, two, zeros, np.ascontiguousarray(zeros.T)]
    negative = np.signbit(one), np.signbit(two)
    both, either = negative[0] & negative[1], negative[0] | negative[1]
    bounded = (negative[0] & negative[1]) | negative[0]
    expected = [both, both, both, np.zeros(20, bool), either, either, either, bounded]
    for program in (ReferenceProgram(graph), Executable(graph)):
        for y, signs in zip(program(arrays), expected, strict=True):
            assert not y.any()
            np.testing.assert_array_equal(np.signbit(y), signs)


def test_what_no_lane_reads_is_not_looked_for_outside_of_the_buffer() -> None:
    """x86 takes hundreds of cycles to read no lane of memory that there is not."""
    text = rg.trace(lambda x: rg.roll(x, 3, 0), rg.spec((400, 24))).explain(stage="llvm")
    loads = re.findall(r"call <\d+ x float> @llvm.masked.load\S*\(ptr (%\w+)", text)
    assert len(loads) == 2
    assert all(re.search(rf"{place} = select i1 %\w+, ptr %\w+, ptr %\w+", text) for place in loads)
