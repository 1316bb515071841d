"""What is computed without compiled code has its bits: fused products, contractions, scatters,
searches, and linear algebra by the routines that compiled code calls."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
from collections import OrderedDict
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
from retrograd.runtime import denormals
from retrograd.runtime.backend import Array
from retrograd.runtime.executable import Executable, start_compiler
from retrograd.runtime.executors import op_kernels
from retrograd.runtime.executors.numpy_mirror import contracting, formulas, ordered
from retrograd.runtime.executors.op_by_op import OpByOpExecutor
from retrograd.runtime.native import numpy_api
from retrograd.runtime.paired_program import on_real
from tests.runtime.executors.test_op_by_op import bits

FLOATS = [float32, float64]


@pytest.fixture(autouse=True)
def nothing_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered, "_DONE", OrderedDict())
    monkeypatch.setattr(op_kernels, "_PROGRAMS", OrderedDict())
    monkeypatch.setattr(denormals, "_used", False)  # another test may have flushed them


def assert_without_code(op: Op, arrays: Sequence[Array], compiles: bool = False) -> None:
    """The bits of compiled code, and no code."""
    inputs = [input_node(spec(a.shape, a.dtype)) for a in arrays]
    graph = Graph(inputs, [op(*inputs)])
    try:
        (compiled,) = on_real(graph, Executable)(arrays)
    except RetrogradError as error:
        with pytest.raises(type(error)):
            on_real(graph, OpByOpExecutor)(arrays)
        return
    before = op_kernels.COMPILED["programs"]
    (found,) = on_real(graph, OpByOpExecutor)(arrays)
    assert (op_kernels.COMPILED["programs"] > before) == compiles
    assert (found.shape, found.dtype) == (compiled.shape, compiled.dtype)
    np.testing.assert_array_equal(bits(found), bits(compiled), graph.outputs[0].describe())


# -- products that are rounded once ---------------------------------------------------------------
def by_the_c_library(arrays: Sequence[Array]) -> Array:
    single = arrays[0].dtype == np.float32
    library = ctypes.CDLL(ctypes.util.find_library("m") or "ucrtbase")
    f = getattr(library, "fmaf" if single else "fma")
    f.argtypes = [ctypes.c_float if single else ctypes.c_double] * 3
    f.restype = f.argtypes[0]
    return np.array(
        [f(*x) for x in zip(*[a.tolist() for a in arrays], strict=True)], arrays[0].dtype
    )


def factors(kind: str, dtype, n: int) -> list[Array]:
    rng = np.random.default_rng(7)
    digits = 12 if dtype is float32 else 27

    def wild(low: int, high: int) -> Array:
        return rng.standard_normal(n) * 2.0 ** rng.integers(low, high, n)

    if kind == "wild":
        found = [wild(-70, 70), wild(-70, 70), wild(-140, 120)]
    elif kind == "cancelling":
        a, b = wild(-30, 30).astype(dtype.dtype), wild(-30, 30).astype(dtype.dtype)
        near = 1 + rng.integers(-4, 5, n) * np.finfo(dtype.dtype).eps
        found = [a, b, -(a * b) * near]
    elif kind == "ties":
        a, b = (1 + rng.integers(0, 1 << digits, n) * 2.0**-digits for _ in range(2))
        found = [a, b, rng.integers(-5, 6, n) * 2.0 ** rng.integers(-70, 30, n)]
    else:
        special = [0.0, -0.0, 1.0, -1.0, 2.0, math.inf, -math.inf, math.nan]
        found = [rng.choice(special, n) for _ in range(3)]
        found[2][:99] = np.finfo(dtype.dtype).max
    with np.errstate(over="ignore"):
        return [x.astype(dtype.dtype) for x in found]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("kind", ["wild", "cancelling", "ties", "special"])
def test_products_and_sums_are_rounded_once(kind: str, dtype) -> None:
    arrays = factors(kind, dtype, 4000)
    with np.errstate(all="ignore"):
        found = start_compiler().fused(*arrays)
    np.testing.assert_array_equal(bits(found), bits(by_the_c_library(arrays)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_any_bits(dtype) -> None:
    rng = np.random.default_rng(3)
    words = [rng.integers(0, 256, 20_000 * np.dtype(dtype).itemsize, np.uint8) for _ in range(3)]
    arrays = [w.view(dtype) for w in words]
    with np.errstate(all="ignore"):
        found = start_compiler().fused(*arrays)
    np.testing.assert_array_equal(bits(found), bits(by_the_c_library(arrays)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_operands_lie_anywhere_and_broadcast(dtype) -> None:
    fused = start_compiler().fused
    x = np.arange(24, dtype=dtype).reshape(2, 3, 4)
    a, b, c = x[:, ::-1, ::2], x.transpose(0, 2, 1)[:, :2, :1].transpose(0, 2, 1), dtype(3)
    found = fused(a, b, c)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, a * b + c)  # exact for such numbers
    into = np.full((2, 3, 4), dtype(-1))[:, :, 1::2]
    assert fused(a, b, c, into) is into
    np.testing.assert_array_equal(into, found)
    assert fused(x[:0], x[:0], c).shape == (0, 3, 4)


def test_without_such_a_function_code_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contracting, "multiply_add", lambda: None)
    monkeypatch.setattr(formulas, "fused", lambda: None)
    x = np.linspace(0.1, 2, 9, dtype=np.float32).reshape(3, 3)
    assert_without_code(DotGeneral((1,), (0,)), [x, x], compiles=True)
    assert_without_code(lookup("exp")(), [x], compiles=True)


def test_no_function_is_made_for_a_numpy_of_another_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(numpy_api, "KNOWN", 1)
    assert numpy_api.make_ufunc("fused", [(0, np.float32)], 3) is None


def test_contractions_rounded_twice_where_compiled_code_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contracting, "multiply_add", lambda: contracting._rounded_twice)
    x, y = (np.random.default_rng(k).standard_normal((4, 4)).astype(np.float32) for k in (1, 2))
    inputs = [input_node(spec(a.shape, a.dtype)) for a in (x, y)]
    found = OpByOpExecutor(Graph(inputs, [DotGeneral((1,), (0,))(*inputs)]))([x, y])[0]
    total = np.zeros((4, 4), np.float32)
    for k in range(4):
        total += x[:, k, None] * y[k]
    np.testing.assert_array_equal(found, total)


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
    assert_without_code(op, arrays)


def test_contractions_of_what_is_not_finite() -> None:
    x = np.array([[np.inf, 1.0, 1e-45], [np.nan, -0.0, 3e38]], np.float32)
    y = np.array([[0.0, 1.0], [-1.0, 3e38], [np.inf, 1e-40]], np.float32)
    assert_without_code(DotGeneral((1,), (0,)), [x, y])
    wide = [a.astype(np.float64) for a in (x, y)]
    assert_without_code(DotGeneral((1,), (0,)), wide)
    wide[0][0, 1] = 1e-300
    assert_without_code(DotGeneral((1,), (0,)), wide)


def test_much_work_is_compiled() -> None:
    x, y = np.ones((300, 200), np.float32), np.ones((200, 300), np.float32)
    assert_without_code(DotGeneral((1,), (0,)), [x, y], compiles=True)


# -- scatters and searches ------------------------------------------------------------------------
SPECIAL = (0.0, -0.0, 1.0, -1.0, 1.5, math.inf, -math.inf, math.nan, 1e-40, -1e-45, 3e38)


@pytest.mark.parametrize("dtype", [float32, float64, int32, int64], ids=str)
@pytest.mark.parametrize("kind", [ScatterAdd, ScatterMul, ScatterMax, ScatterMin])
@pytest.mark.parametrize("axes", [(0, 0), (1, 0), (1, 1), (2, 1)], ids=str)
@pytest.mark.sample(16)
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

    assert_without_code(op, [drawn(shape), index, drawn(new)])


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
    assert_without_code(SearchSorted(right, 1), [row, values])


def test_searches_in_what_is_not_sorted_are_compiled() -> None:
    rng = np.random.default_rng(5)
    row, values = rng.standard_normal(50), rng.standard_normal(40)
    assert_without_code(SearchSorted(), [row, values], compiles=True)


# -- scans ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "linear_scan"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((5,), 0), ((70,), 0), ((3, 33), 1), ((33, 3), 0), ((4, 17, 1), 1), ((2, 3, 4), 1)],
    ids=str,
)  # fmt: skip
@pytest.mark.sample(15)
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
        assert_without_code(op, arrays)


# -- linear algebra -------------------------------------------------------------------------------
SIZES = (1, 2, 3, 6, 7, 12, 13, 16, 17, 40)


def matrices(shape: tuple[int, ...], dtype, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype.dtype)


def built(name: str, a: Array, *more: object, **options: object) -> Node:
    return lookup(name)(*more, **options)(input_node(spec(a.shape, a.dtype)))


def value(node: Node, arrays: Sequence[Array]) -> Array:
    return Executable(Graph(list(node.inputs), [node]))(arrays)[0]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.sample(2)
def test_factors_and_what_is_solved_by_them(n: int, dtype) -> None:
    a, b = matrices((n, n), dtype), matrices((n, 3), dtype, 2)
    assert_without_code(lookup("lu")(), [a])
    assert_without_code(lookup("lu")(), [matrices((2, n + 3, n), dtype)])
    f = value(built("lu", a), [a])
    assert_without_code(lookup("inv")(), [a, f])
    for transpose in (False, True):
        for right in (b, b[:, :1].copy()):
            assert_without_code(lookup("solve")(transpose), [a, f, right])
    spd = (a @ a.T + n * np.eye(n)).astype(dtype.dtype)
    for upper in (False, True):
        assert_without_code(lookup("cholesky")(upper), [spd])
        for transpose in (False, True):
            for unit in (False, True):
                op = lookup("triangular_solve")(upper, transpose, unit)
                assert_without_code(op, [a, b])
                assert_without_code(op, [a, b[:, :1].copy()])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [*[(n, n) for n in SIZES], (2, 5, 3), (30, 4)], ids=str)
@pytest.mark.sample(6)
def test_orthogonal_factors(shape: tuple[int, ...], dtype) -> None:
    a = matrices(shape, dtype)
    for name in ("qr", "svd", "svdvals"):
        assert_without_code(lookup(name)(), [a])
    if shape[-2] > shape[-1]:
        assert_without_code(lookup("complement")(), [np.linalg.qr(a)[0].astype(a.dtype)])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (2, 7, 7), (40, 20)], ids=str)
@pytest.mark.sample(3)
def test_least_squares(shape: tuple[int, ...], dtype) -> None:
    a, limit = matrices(shape, dtype), np.full((*shape[:-2], 1, 1), 1e-5, dtype.dtype)
    assert_without_code(lookup("least_factors")(), [a, limit])
    inputs = [input_node(spec(x.shape, dtype)) for x in (a, limit)]
    f = value(lookup("least_factors")()(*inputs), [a, limit])
    for k in (1, 3, 20):
        for adjoint in (False, True):
            rows = shape[-1] if adjoint else shape[-2]
            b = matrices((*shape[:-2], rows, k), dtype, 3)
            assert_without_code(lookup("least_squares")(adjoint), [a, f, b])


def test_least_squares_of_what_may_lack_rank_are_compiled() -> None:
    a, limit = matrices((6, 3), float32), np.full((1, 1), 1e-5, np.float32)
    a[:, 2] = a[:, 0]
    assert_without_code(lookup("least_factors")(), [a, limit], compiles=True)
    inputs = [input_node(spec(x.shape, float32)) for x in (a, limit)]
    f = value(lookup("least_factors")()(*inputs), [a, limit])
    b = matrices((6, 2), float32, 3)
    assert_without_code(lookup("least_squares")(False), [a, f, b], compiles=True)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.sample(3)
def test_spectra(n: int, dtype) -> None:
    a = matrices((2, n, n), dtype)
    for name in ("eigh", "eigvalsh", "eig", "eigvals"):
        assert_without_code(lookup(name)(), [a])
    for size in (0.1, 1.0, 30.0):
        assert_without_code(lookup("expm")(), [(size * a).astype(dtype.dtype)])
    a[0, 0, -1] = np.inf
    assert_without_code(lookup("expm")(), [a])


@pytest.mark.parametrize("name", ["lu", "cholesky", "svd", "eigh", "eig", "svdvals", "eigvals"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
def test_matrices_that_are_refused(name: str, bad: float) -> None:
    a = np.eye(5, dtype=np.float32)
    a[2, 2] = bad
    op = lookup("cholesky")(False) if name == "cholesky" else lookup(name)()
    assert_without_code(op, [a])


def test_what_is_singular() -> None:
    a = matrices((4, 4), float32)
    a[:, 2] = a[:, 0]
    a[3] = a[1] = 0
    f = value(built("lu", a), [a])
    assert_without_code(lookup("lu")(), [a])
    assert_without_code(lookup("inv")(), [a, f])
    assert_without_code(lookup("solve")(False), [a, f, matrices((4, 2), float32)])
    op = lookup("triangular_solve")(False, False, False)
    assert_without_code(op, [np.tril(a), matrices((4, 2), float32)])


# -- loops ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("reverse", [False, True])
def test_short_scans(reverse: bool) -> None:
    c, state, x = (input_node(spec(s, float32)) for s in ((4,), (4,), (4,)))
    new = el.tanh(state * c + x)
    body = Graph([c, state, x], [new, new * x])
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((4,), (4,), (5, 4))]
    inputs = [input_node(spec(a.shape, a.dtype)) for a in arrays]
    graph = Graph(inputs, items(Scan(body, 1, 1, 5, reverse)(*inputs)))
    before = op_kernels.COMPILED["programs"]
    found = OpByOpExecutor(graph)(arrays)
    assert op_kernels.COMPILED["programs"] == before
    for a, b in zip(found, Executable(graph)(arrays), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(bits(a), bits(b))


def test_long_scans_are_compiled() -> None:
    state = input_node(spec((4,), float32))
    scan = Scan(Graph([state], [el.tanh(state)]), 1, 0, 1000)
    x = input_node(spec((4,), float32))
    before = op_kernels.COMPILED["programs"]
    OpByOpExecutor(Graph([x], items(scan(x))))([np.ones(4, np.float32)])
    assert op_kernels.COMPILED["programs"] == before + 1
