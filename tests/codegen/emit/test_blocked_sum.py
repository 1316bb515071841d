"""Scatters, scans and walks in blocks: one order in every tier, around the sizes at which blocks
end, with zeros, infinities and NaN among the terms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import gnn
from retrograd.ir import Dim, DType, Graph, Node, bfloat16, float16, float32, float64, int64, spec
from retrograd.ops.index import ScatterAdd
from retrograd.ops.leaf import input_node
from retrograd.ops.numerics.compensated_sum import BLOCK, by_halves, scattered
from retrograd.ops.scan import CumSum, LinearScan, LogCumSumExp
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.op_by_op import OpByOpExecutor
from retrograd.runtime.executors.reference import ReferenceProgram

Array = np.ndarray[Any, Any]
WIDE = [float32, float64]
# Updates, places, and what stands before and behind the axis.
SCATTERS = [
    (1, 3, (), ()), (2, 1, (), ()), (15, 1, (), (3,)), (16, 1, (), ()), (16, 1, (), (3,)),
    (17, 1, (), (3,)), (18, 1, (), ()), (32, 1, (), (5,)), (33, 2, (2,), (5,)), (49, 1, (), (17,)),
    (300, 4, (), ()), (300, 7, (), (40,)), (300, 3, (3,), ()), (400, 5, (2, 2), (3, 2)),
    (50, 60, (), (1,)), (700, 40, (), (2,)),
]  # fmt: skip


def numbers(rng: np.random.Generator, shape: Any, dtype: DType, special: bool) -> Array:
    """Of very different sizes; some are special."""
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 6, shape)
    x[rng.random(shape) < 0.1] = -0.0
    if special:
        x[rng.random(shape) < 0.02] = np.inf
        x[rng.random(shape) < 0.01] = -np.inf
        x[rng.random(shape) < 0.01] = np.finfo(np.float64 if dtype is float64 else np.float32).max
    return x.astype(dtype.dtype)


def assert_bits(found: Array, expected: Array, what: Any) -> None:
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype), what
    if found.dtype.kind == "f" and found.dtype.itemsize > 2:
        np.testing.assert_array_equal(found, expected, err_msg=str(what))  # and NaN
        np.testing.assert_array_equal(
            np.signbit(found[found == 0]), np.signbit(expected[found == 0])
        )
    else:
        assert found.tobytes() == expected.tobytes(), what


def in_every_tier(graph: Graph, named: Graph | None, cases: list[list[Array]]) -> list[Array]:
    """The values of a graph, which every tier gives; `named` is the same for sizes with names."""
    compiled = Executable(graph)
    tiers: dict[str, Any] = {"narrow": Executable(graph, light=True, narrow=True)}
    tiers["interpreted"] = OpByOpExecutor(graph)
    if named is not None:
        tiers["named"] = Executable(named)
    for arrays in cases:
        expected = compiled(arrays)
        for name, program in tiers.items():
            for y, a, b in zip(graph.outputs, program(arrays), expected, strict=True):
                assert_bits(a, b, f"{name}: {y.describe()}")
    return expected


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


@pytest.mark.parametrize("dtype", WIDE, ids=str)
@pytest.mark.sample(1)
def test_threads(dtype: DType) -> None:
    """Large enough for threads to share it."""
    rng = np.random.default_rng(0)
    for shape, axis in (((30_000, 20), 0), ((20, 30_000), 1), ((100_000,), 0), ((4, 9000, 30), 1)):
        ids = rng.integers(0, 50, shape[axis])
        x = numbers(rng, shape, dtype, False)

        def f(x: Any, ids: Any = ids, shape: Any = shape, axis: int = axis) -> Any:
            nothing = rg.zeros((*shape[:axis], 50, *shape[axis + 1 :]), dtype=x.dtype)
            return rg.scatter_add(nothing, ids, x, axis=axis), rg.cumsum(x, axis=axis)

        for y, z in zip(*[_with_threads(n, f, x) for n in (1, 2)], strict=True):
            assert_bits(y, z, (shape, axis))


def _with_threads(n: int, f: Any, x: Array) -> list[Array]:
    with rg.num_threads(n):
        return [y.numpy() for y in rg.jit(f)(x)]


@pytest.mark.parametrize("dtype", [float16, bfloat16], ids=str)
def test_half_precision_is_rounded_once(dtype: DType) -> None:
    rng = np.random.default_rng(0)
    u, i = rng.standard_normal((3000, 2)).astype(dtype.dtype), rng.integers(0, 3, 3000)
    exact = np.zeros((3, 2))
    np.add.at(exact, i, u.astype(np.float64))
    for backend in ("llvm", "reference"):
        with rg.backend(backend):
            for axis, x in ((0, u), (1, np.ascontiguousarray(u.T))):
                zero = np.zeros((3, 2) if axis == 0 else (2, 3), dtype.dtype)
                y = rg.scatter_add(zero, i, x, axis=axis).numpy()
                expected = exact if axis == 0 else exact.T
                assert (y == expected.astype(np.float32).astype(dtype.dtype)).all()
            y = rg.cumsum(u, axis=0).numpy()
            exact_sums = np.cumsum(u.astype(np.float64), 0).astype(np.float32).astype(dtype.dtype)
            assert (y == exact_sums).all()


def test_no_zero_changes_its_sign_and_no_infinity_becomes_nan() -> None:
    for dtype in (np.float32, np.float64):
        minus = np.full(100, -0.0, dtype)
        big = np.full(100, np.finfo(dtype).max)
        for column in (False, True):

            def shaped(x: Array, column: bool = column) -> Array:
                return x[:, None] if column else x

            def total(x: Array, start: float) -> Array:
                first = shaped(np.full(1, start, x.dtype))
                return rg.scatter_add(first, np.zeros(len(x), int), shaped(x)).numpy().reshape(())

            assert np.signbit(total(minus, -0.0))
            assert not np.signbit(total(minus, 0.0))
            assert total(np.where(np.arange(100) == 50, np.inf, 1).astype(dtype), 0) == np.inf
            assert total(big, 0) == np.inf
            both = np.where(np.arange(100) == 50, np.inf, 1)
            both[70] = -np.inf
            assert np.isnan(total(both.astype(dtype), 0))
            sums = rg.cumsum(shaped(minus), axis=0).numpy()
            assert np.signbit(sums).all()
            both[70] = 1
            sums = rg.cumsum(shaped(both.astype(dtype)), axis=0).numpy().reshape(-1)
            assert (sums[50:] == np.inf).all()
            assert np.isfinite(sums[:50]).all()


def test_whole_numbers_wrap() -> None:
    x = np.full((100, 2), 2**62, np.int64)
    assert (rg.segment_sum(x, np.zeros(100, np.int64), 1).numpy() == 100 * 2**62 % 2**64).all()
    assert rg.cumsum(x, axis=0)[3].tolist() == [0, 0]
    y = np.full((100, 2), 200, np.uint8)
    assert rg.scatter_add(np.zeros((1, 2), np.uint8), np.zeros(100, int), y).tolist() == [[32, 32]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_complex_numbers_are_scattered_by_parts(dtype: str) -> None:
    rng = np.random.default_rng(0)
    re, im = rng.standard_normal((2, 500, 3)).astype(dtype)
    ids = rng.integers(0, 4, 500)
    parts = [rg.segment_sum(x, ids, 4).numpy() for x in (re, im)]
    for backend in ("llvm", "reference"):
        with rg.backend(backend):
            z = rg.segment_sum(re + 1j * im, ids, 4).numpy()
            assert (z.real == parts[0]).all()
            assert (z.imag == parts[1]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 15, 16, 17, 32, 33, 500])
@pytest.mark.sample(5)
def test_messages_to_a_node(count: int, dtype: Any) -> None:
    """Those of a walk through a graph are added in blocks, like updates of a scatter."""
    edges = np.stack([np.arange(count), np.full(count, count)])
    graph = gnn.Graph(count + 1, edges)
    x = np.random.default_rng(0).standard_normal((count + 1, 3)).astype(dtype)
    x[count] = 0

    def states(x: Any) -> Any:
        return gnn.dag_scan(lambda a, x: a + x, graph, x)

    expected = np.zeros((1, 3), dtype)
    scattered(expected, np.zeros(count, np.int64), x[:count], False)
    for backend in ("llvm", "reference"):
        with rg.backend(backend):
            assert (rg.jit(states)(x)[-1].numpy() == expected[0]).all()


def test_another_block_is_noticed() -> None:
    """The cases above would not agree if a tier had blocks of another size."""
    x = numbers(np.random.default_rng(0), (300, 2), float32, False)
    y, z = np.zeros((1, 2), np.float32), np.zeros((1, 2), np.float32)
    scattered(y, np.zeros(300, np.int64), x, False)
    for start in range(0, 300, 2 * BLOCK):
        z += np.add.accumulate(x[start : start + 2 * BLOCK])[-1]
    assert (y != z).any()


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
