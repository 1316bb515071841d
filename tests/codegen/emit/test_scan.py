"""Running sums and recurrences: one order in every tier, around the sizes at which blocks end."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ir import (
    Dim,
    DType,
    Graph,
    Node,
    bool_,
    float16,
    float32,
    float64,
    int32,
    spec,
    uint8,
)
from retrograd.ops.leaf import input_node
from retrograd.ops.numerics.compensated_sum import by_halves
from retrograd.ops.scan import CumMax, CumMin, CumSum, LinearScan, LogCumSumExp
from retrograd.runtime.executors.reference import ReferenceProgram
from tests.codegen.emit.same_bits import REALS, assert_same_bits
from tests.codegen.emit.tiers import WIDE, Array, assert_bits, in_every_tier, numbers
from tests.runtime.agreement import GuardedProgram, assert_same, sample


@pytest.mark.slow
@pytest.mark.parametrize("dtype", WIDE, ids=str)
def test_scans(dtype: DType) -> None:
    rng = np.random.default_rng(0)
    nodes: list[Node] = []
    others: list[Node] = []
    cases: list[list[Array]] = [[], []]
    outputs: tuple[list[Node], list[Node]] = [], []
    alike = []  # outputs of one order in NumPy's functions, too
    for number, shape in enumerate(((1,), (16,), (17,), (33,), (50, 3), (33, 40), (200,))):
        names = tuple(Dim(f"s{number}_{j}") for j in range(len(shape)))
        for down in (False, True):
            for op, many in ((CumSum(0, down), 1), (LinearScan(0, down), 2)):
                own = [input_node(spec(shape, dtype)) for _ in range(many)]
                named = [input_node(spec(names, dtype)) for _ in range(many)]
                outputs[0].append(op(*own))
                outputs[1].append(op(*named))
                alike.append(many == 2 or len(shape) == 2)
                nodes += own
                others += named
                for special, arrays in enumerate(cases):
                    if many == 2:
                        by = rng.choice([1.0, -1.0, 0.5, 0.0, 1.7], shape)
                        arrays.append(by.astype(dtype.dtype))
                    arrays.append(numbers(rng, shape, dtype, bool(special)))
    graph = Graph(nodes, outputs[0])
    found = in_every_tier(graph, Graph(others, outputs[1]), cases)
    for same, a, b in zip(alike, ReferenceProgram(graph)(cases[1]), found, strict=True):
        if same:
            assert_bits(a, b, "reference")


def test_running_values_as_a_tree() -> None:
    for n in range(20):
        x = np.arange(n) ** 2
        assert (by_halves(np.add, x) == np.cumsum(x)).all()


@pytest.mark.parametrize("dtype", WIDE, ids=str)
def test_logcumsumexp(dtype: DType) -> None:
    x = np.random.default_rng(0).standard_normal((3, 40)) * 5
    x[0, :3] = -np.inf
    node = input_node(spec((3, 40), dtype))
    graph = Graph([node], [LogCumSumExp(1, dtype is float64)(node)])
    arrays = [x.astype(dtype.dtype)]
    (y,) = in_every_tier(graph, None, [arrays])
    (z,) = ReferenceProgram(graph)(arrays)
    np.testing.assert_allclose(y, z, rtol=8 * np.finfo(dtype.dtype).eps, atol=1e-6)


@pytest.mark.parametrize("dtype", [d for d in REALS if d is not bool_], ids=str)
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.sample(4)
def test_running_extrema_of_whole_vectors_and_a_rest(dtype: DType, reverse: bool) -> None:
    """What is written for the lanes left over is what belongs there, and nothing beside it."""
    for n in (1, 2, 15, 16, 17, 18, 32, 33, 49):
        x = input_node(spec((5, n), dtype))
        outputs = [op(1, reverse)(x) for op in (CumMax, CumMin)]
        graph = Graph([x], outputs)
        arrays = [sample((5, n), dtype, n)]
        expected = ReferenceProgram(graph)(arrays)
        program = GuardedProgram(graph)
        for y, r in zip(program(arrays), expected, strict=True):
            assert_same_bits(y.reshape(-1), r.reshape(-1), f"{n} columns")
        program.check_guards()


@pytest.mark.parametrize("dtype", [float16, float32, float64, int32, uint8], ids=str)
def test_cumsum(dtype: DType) -> None:
    for shape, axis in [((7,), 0), ((3, 5), 0), ((3, 5), 1), ((0, 2), 0), ((2, 1, 4), 1)]:
        x = input_node(spec(shape, dtype), "x")
        graph = Graph([x], [CumSum(axis)(x), CumSum(axis, True)(x)])
        assert_same(graph, [sample(shape, dtype)])
