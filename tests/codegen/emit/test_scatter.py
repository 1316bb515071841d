"""Scatters: updates in blocks and in one order in every tier, and indices of every type."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ir import (
    Dim,
    DType,
    Graph,
    Node,
    bfloat16,
    float16,
    float32,
    int8,
    int64,
    spec,
    uint8,
    uint64,
)
from retrograd.ops.index import Gather, ScatterAdd
from retrograd.ops.leaf import input_node
from retrograd.runtime.executors.reference import ReferenceProgram
from tests.codegen.emit.tiers import WIDE, Array, assert_bits, in_every_tier, numbers
from tests.runtime.agreement import assert_same, sample

# Updates, places, and what stands before and behind the axis.
SCATTERS = [
    (1, 3, (), ()), (2, 1, (), ()), (15, 1, (), (3,)), (16, 1, (), ()), (16, 1, (), (3,)),
    (17, 1, (), (3,)), (18, 1, (), ()), (32, 1, (), (5,)), (33, 2, (2,), (5,)), (49, 1, (), (17,)),
    (300, 4, (), ()), (300, 7, (), (40,)), (300, 3, (3,), ()), (400, 5, (2, 2), (3, 2)),
    (50, 60, (), (1,)), (700, 40, (), (2,)),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("dtype", WIDE, ids=str)
@pytest.mark.sample(1)
def test_scatters(dtype: DType) -> None:
    nodes: list[Node] = []
    others: list[Node] = []
    cases: list[list[Array]] = [[], []]
    outputs: tuple[list[Node], list[Node]] = [], []
    for number, (n, k, before, behind) in enumerate(SCATTERS):
        op, rng = ScatterAdd(len(before)), np.random.default_rng(n)
        shape, updates = (*before, k, *behind), (*before, n, *behind)
        types = spec(shape, dtype), spec((n,), int64), spec(updates, dtype)
        own = [input_node(t) for t in types]
        names = [Dim(f"s{number}_{j}") for j in range(len(shape) + 1)]
        wide = [*names[: len(before)], names[-1], *names[len(before) + 1 : -1]]
        given = spec(tuple(names[:-1]), dtype), spec((names[-1],), int64), spec(tuple(wide), dtype)
        named = [input_node(t) for t in given]
        outputs[0].append(op(*own))
        outputs[1].append(op(*named))
        nodes += own
        others += named
        for special, arrays in enumerate(cases):
            arrays += [
                numbers(rng, shape, dtype, bool(special)),
                rng.integers(0, k, n),
                numbers(rng, updates, dtype, bool(special)),
            ]
    graph = Graph(nodes, outputs[0])
    found = in_every_tier(graph, Graph(others, outputs[1]), cases)
    for y, a, b in zip(outputs[0], ReferenceProgram(graph)(cases[1]), found, strict=True):
        assert_bits(a, b, f"reference: {y.describe()}")


@pytest.mark.parametrize("dtype", WIDE, ids=str)
def test_scatters_of_rows_with_positions_of_their_own(dtype: DType) -> None:
    rng = np.random.default_rng(0)
    nodes: list[Node] = []
    arrays: list[Array] = []
    outputs: list[Node] = []
    for shape, updates, behind in (((5, 7), (5, 60), ()), ((3, 2, 7), (3, 2, 60), (4,))):
        shared = len(shape) - 1
        whole = (*updates, *behind)
        types = spec((*shape, *behind), dtype), spec(updates, int64), spec(whole, dtype)
        own = [input_node(t) for t in types]
        outputs.append(ScatterAdd(shared, shared)(*own))
        nodes += own
        arrays += [
            numbers(rng, (*shape, *behind), dtype, False),
            rng.integers(-7, 7, updates),
            numbers(rng, whole, dtype, False),
        ]
    in_every_tier(Graph(nodes, outputs), None, [arrays])


@pytest.mark.parametrize("dtype", [float32, float16, bfloat16, int64, int8], ids=str)
@pytest.mark.parametrize("index_type", [int64, int8, uint8, uint64], ids=str)
@pytest.mark.sample(4)
def test_gather_and_scatter(dtype: DType, index_type: DType) -> None:
    cases = [((5,), (7,), 0, 0), ((5, 3), (2, 2), 0, 0), ((4, 5), (3,), 1, 0),
             ((2, 5, 3), (2, 4), 1, 1), ((5,), (), 0, 0), ((5,), (0,), 0, 0),
             ((2, 3, 4), (2, 6), 2, 1), ((0, 3), (0,), 0, 0)]  # fmt: skip
    for shape, index_shape, axis, shared in cases:
        x = input_node(spec(shape, dtype), "x")
        index = input_node(spec(index_shape, index_type), "i")
        y = Gather(axis, shared)(x, index)
        u = input_node(y.type, "u")
        graph = Graph([x, index, u], [y, ScatterAdd(axis, shared)(x, index, u)])
        size = shape[axis]
        low = -size if index_type.kind == "int" else 0
        i = np.random.default_rng(3).integers(low, max(size, 1), index_shape)
        arrays = [sample(shape, dtype), i.astype(index_type.dtype), sample(y.shape, dtype, 2)]
        assert_same(graph, arrays)
