"""Kernels of single operations, made for all sizes, have the bits of code that knows the sizes:
contractions, scatters, searches, scans, linear algebra, loops."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from retrograd.errors import RetrogradError
from retrograd.ir import Graph, Node, Op, float32, float64, int32, int64, lookup, spec
from retrograd.ops import elementwise as el
from retrograd.ops.control import Scan
from retrograd.ops.identity import items
from retrograd.ops.index import Scatter, ScatterAdd
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.scatter import ScatterMax, ScatterMin, ScatterMul
from retrograd.ops.sort import SearchSorted
from retrograd.runtime.backend import Array
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.op_by_op import OpByOpExecutor
from retrograd.runtime.executors.op_kernels import COMPILED
from retrograd.runtime.paired_program import on_real
from tests.runtime.executors.test_op_by_op import bits

FLOATS = [float32, float64]


def assert_agrees(op: Op, arrays: Sequence[Array]) -> None:
    """The bits of code that knows the sizes."""
    inputs = [input_node(spec(a.shape, a.dtype)) for a in arrays]
    graph = Graph(inputs, [op(*inputs)])
    try:
        (compiled,) = on_real(graph, Executable)(arrays)
    except RetrogradError as error:
        with pytest.raises(type(error)):
            on_real(graph, OpByOpExecutor)(arrays)
        return
    (found,) = on_real(graph, OpByOpExecutor)(arrays)
    assert (found.shape, found.dtype) == (compiled.shape, compiled.dtype)
    np.testing.assert_array_equal(bits(found), bits(compiled), graph.outputs[0].describe())


# -- contractions ---------------------------------------------------------------------------------
CONTRACTIONS = (
    (DotGeneral((1,), (0,)), (3, 5), (5, 4)),
    (DotGeneral((1,), (0,)), (3, 100), (100, 4)),
    (DotGeneral((0,), (1,)), (7, 3), (4, 7)),
    (DotGeneral((1,), (0,)), (3, 50), (50, 1)),
    (DotGeneral((0,), (0,)), (50, 3), (50, 1)),
    (DotGeneral((0,), (0,)), (33,), (33,)),
    (DotGeneral((0,), (0,)), (40, 6), (40,)),
    (DotGeneral((2, 0), (0, 2), (1,), (1,)), (3, 4, 18), (18, 4, 3)),
    (DotGeneral((2, 0), (0, 2), (1,), (1,)), (3, 4, 5), (5, 4, 3, 2)),
    (DotGeneral((1, 2), (0, 1)), (4, 17, 1), (17, 1)),
    (DotGeneral((2,), (1,), (0,), (0,)), (6, 2, 3), (6, 3, 2)),
)  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("case", range(len(CONTRACTIONS)))
def test_contractions(case: int, dtype) -> None:
    op, *shapes = CONTRACTIONS[case]
    rng = np.random.default_rng(case)
    arrays = [rng.standard_normal(s) * 10.0 ** rng.integers(-4, 5, s) for s in shapes]
    arrays = [np.where(rng.random(x.shape) < 0.1, -0.0, x).astype(dtype.dtype) for x in arrays]
    assert_agrees(op, arrays)


def test_contractions_of_what_is_not_finite() -> None:
    x = np.array([[np.inf, 1.0, 1e-45], [np.nan, -0.0, 3e38]], np.float32)
    y = np.array([[0.0, 1.0], [-1.0, 3e38], [np.inf, 1e-40]], np.float32)
    assert_agrees(DotGeneral((1,), (0,)), [x, y])
    wide = [a.astype(np.float64) for a in (x, y)]
    assert_agrees(DotGeneral((1,), (0,)), wide)
    wide[0][0, 1] = 1e-300
    assert_agrees(DotGeneral((1,), (0,)), wide)


# -- scatters and searches ------------------------------------------------------------------------
SPECIAL = (0.0, -0.0, 1.0, -1.0, 1.5, math.inf, -math.inf, math.nan, 1e-40, -1e-45, 3e38)


@pytest.mark.parametrize("dtype", [float32, float64, int32, int64], ids=str)
@pytest.mark.parametrize("kind", [ScatterAdd, ScatterMul, ScatterMax, ScatterMin])
@pytest.mark.parametrize("axes", [(0, 0), (1, 0), (1, 1), (2, 1)], ids=str)
@pytest.mark.sample(10)
def test_scatters(axes: tuple[int, int], kind: type[Scatter], dtype) -> None:
    axis, shared = axes
    op = kind(axis, shared)
    rng = np.random.default_rng(axis)
    shape = (3, 4, 5)
    index = rng.integers(-shape[axis], shape[axis], (*shape[:shared], 9))
    new = (*shape[:axis], 9, *shape[axis + 1 :])

    def drawn(s: tuple[int, ...]) -> Array:
        found = rng.choice(SPECIAL, s) if dtype.is_float else rng.integers(-99, 99, s)
        return np.asarray(found).astype(dtype.dtype)

    assert_agrees(op, [drawn(shape), index, drawn(new)])


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", [float32, int64], ids=str)
def test_searches(dtype, right: bool) -> None:
    rng = np.random.default_rng(4)
    row = np.sort(rng.integers(-4, 5, (2, 12)).astype(dtype.dtype), axis=-1)
    values = rng.integers(-6, 7, (2, 30)).astype(dtype.dtype)
    if dtype.is_float:
        row[:, -2:], row[0, 3:5] = np.nan, (-0.0, 0.0)
        row[0] = np.sort(row[0])
        values[:, :5] = (np.nan, -0.0, 0.0, np.inf, -np.inf)
    assert_agrees(SearchSorted(right, 1), [row, values])


def test_searches_in_what_is_not_sorted() -> None:
    rng = np.random.default_rng(5)
    row, values = rng.standard_normal(50), rng.standard_normal(40)
    assert_agrees(SearchSorted(), [row, values])


# -- scans ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "linear_scan"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((5,), 0), ((70,), 0), ((3, 33), 1), ((33, 3), 0), ((4, 17, 1), 1), ((2, 3, 4), 1)],
    ids=str,
)  # fmt: skip
@pytest.mark.sample(10)
def test_scans(name: str, shape: tuple[int, ...], axis: int, reverse: bool, dtype) -> None:
    rng = np.random.default_rng(axis)
    op = lookup(name)(axis, reverse)
    for special in (False, True):
        arrays = [
            (rng.choice(SPECIAL, shape) if special else rng.standard_normal(shape)).astype(
                dtype.dtype
            )
            for _ in range(op.arity or 1)
        ]
        assert_agrees(op, arrays)


# -- linear algebra -------------------------------------------------------------------------------
SIZES = (1, 2, 3, 6, 7, 12, 13, 16, 17, 40)


def matrices(shape: tuple[int, ...], dtype, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype.dtype)


def built(name: str, a: Array, *more: object, **options: object) -> Node:
    return lookup(name)(*more, **options)(input_node(spec(a.shape, a.dtype)))


def value(node: Node, arrays: Sequence[Array]) -> Array:
    return Executable(Graph(list(node.inputs), [node]))(arrays)[0]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.sample(2)
def test_factors_and_what_is_solved_by_them(n: int, dtype) -> None:
    a, b = matrices((n, n), dtype), matrices((n, 3), dtype, 2)
    assert_agrees(lookup("lu")(), [a])
    assert_agrees(lookup("lu")(), [matrices((2, n + 3, n), dtype)])
    f = value(built("lu", a), [a])
    assert_agrees(lookup("inv")(), [a, f])
    for transpose in (False, True):
        for right in (b, b[:, :1].copy()):
            assert_agrees(lookup("solve")(transpose), [a, f, right])
    spd = (a @ a.T + n * np.eye(n)).astype(dtype.dtype)
    for upper in (False, True):
        assert_agrees(lookup("cholesky")(upper), [spd])
        for transpose in (False, True):
            for unit in (False, True):
                op = lookup("triangular_solve")(upper, transpose, unit)
                assert_agrees(op, [a, b])
                assert_agrees(op, [a, b[:, :1].copy()])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [*[(n, n) for n in SIZES], (2, 5, 3), (30, 4)], ids=str)
@pytest.mark.sample(4)
def test_orthogonal_factors(shape: tuple[int, ...], dtype) -> None:
    a = matrices(shape, dtype)
    for name in ("qr", "svd", "svdvals"):
        assert_agrees(lookup(name)(), [a])
    if shape[-2] > shape[-1]:
        assert_agrees(lookup("complement")(), [np.linalg.qr(a)[0].astype(a.dtype)])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (2, 7, 7), (40, 20)], ids=str)
@pytest.mark.sample(3)
def test_least_squares(shape: tuple[int, ...], dtype) -> None:
    a, limit = matrices(shape, dtype), np.full((*shape[:-2], 1, 1), 1e-5, dtype.dtype)
    assert_agrees(lookup("least_factors")(), [a, limit])
    inputs = [input_node(spec(x.shape, dtype)) for x in (a, limit)]
    f = value(lookup("least_factors")()(*inputs), [a, limit])
    for k in (1, 3, 20):
        for adjoint in (False, True):
            rows = shape[-1] if adjoint else shape[-2]
            b = matrices((*shape[:-2], rows, k), dtype, 3)
            assert_agrees(lookup("least_squares")(adjoint), [a, f, b])


def test_least_squares_of_what_may_lack_rank() -> None:
    a, limit = matrices((6, 3), float32), np.full((1, 1), 1e-5, np.float32)
    a[:, 2] = a[:, 0]
    assert_agrees(lookup("least_factors")(), [a, limit])
    inputs = [input_node(spec(x.shape, float32)) for x in (a, limit)]
    f = value(lookup("least_factors")()(*inputs), [a, limit])
    b = matrices((6, 2), float32, 3)
    assert_agrees(lookup("least_squares")(False), [a, f, b])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.sample(3)
def test_spectra(n: int, dtype) -> None:
    a = matrices((2, n, n), dtype)
    for name in ("eigh", "eigvalsh", "eig", "eigvals"):
        assert_agrees(lookup(name)(), [a])
    for size in (0.1, 1.0, 30.0):
        assert_agrees(lookup("expm")(), [(size * a).astype(dtype.dtype)])
    a[0, 0, -1] = np.inf
    assert_agrees(lookup("expm")(), [a])


@pytest.mark.parametrize("name", ["lu", "cholesky", "svd", "eigh", "eig", "svdvals", "eigvals"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
def test_matrices_that_are_refused(name: str, bad: float) -> None:
    a = np.eye(5, dtype=np.float32)
    a[2, 2] = bad
    op = lookup("cholesky")(False) if name == "cholesky" else lookup(name)()
    assert_agrees(op, [a])


def test_what_is_singular() -> None:
    a = matrices((4, 4), float32)
    a[:, 2] = a[:, 0]
    a[3] = a[1] = 0
    f = value(built("lu", a), [a])
    assert_agrees(lookup("lu")(), [a])
    assert_agrees(lookup("inv")(), [a, f])
    assert_agrees(lookup("solve")(False), [a, f, matrices((4, 2), float32)])
    op = lookup("triangular_solve")(False, False, False)
    assert_agrees(op, [np.tril(a), matrices((4, 2), float32)])


# -- loops ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("reverse", [False, True])
def test_scans_over_a_body(reverse: bool) -> None:
    c, state, x = (input_node(spec(s, float32)) for s in ((4,), (4,), (4,)))
    new = el.tanh(state * c + x)
    body = Graph([c, state, x], [new, new * x])
    rng = np.random.default_rng(1)
    programs = []
    for length in (5, 2, 9, 1, 0):
        arrays = [rng.standard_normal(s).astype(np.float32) for s in ((4,), (4,), (length, 4))]
        inputs = [input_node(spec(a.shape, a.dtype)) for a in arrays]
        graph = Graph(inputs, items(Scan(body, 1, 1, length, reverse)(*inputs)))
        found = OpByOpExecutor(graph)(arrays)
        programs.append(COMPILED["programs"])
        for a, b in zip(found, Executable(graph)(arrays), strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_array_equal(bits(a), bits(b))
    assert programs[0] == programs[1] == programs[2]  # one for all lengths
