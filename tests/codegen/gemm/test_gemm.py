"""Matrix products by the routine that large ones take, against NumPy in float64; their bits are
those of the loops that small ones take, whatever the layout, the threads, the machine, and what is
known of the sizes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.gemm import ROUTINES, routine_text
from retrograd.codegen.gemm.gemm import PACKS
from retrograd.codegen.target import Target
from retrograd.ir import Dim, Graph, float32, float64, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.shape import Permute, Slice
from retrograd.passes.lowering import strided_views
from retrograd.runtime import compiler
from retrograd.runtime.executable import Executable
from retrograd.tuning import TUNING
from tests.runtime.agreement import GuardedProgram

LAYOUTS = list(itertools.product((False, True), repeat=2))  # whether a and b lie turned
# Around the sizes of vectors, tiles and blocks; (m, k, n).
SIZES = [
    (1, 1, 1), (1, 3, 17), (3, 1, 2), (3, 17, 3), (7, 5, 16), (8, 4, 48), (9, 17, 49), (17, 33, 64),
    (16, 257, 31), (20, 9, 112), (65, 300, 97), (33, 1100, 20), (140, 513, 130),
    (5, 700, 600), (300, 7, 210),
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_store(monkeypatch):
    """Programs of other settings must not be found where programs are kept."""
    monkeypatch.setenv("RETROGRAD_CACHE_DIR", "off")


def choose(monkeypatch, routine: bool) -> None:
    """Have contractions done by the routine, or by loops."""
    for name in strided_views.LIMITS:
        monkeypatch.setattr(strided_views, name, 0 if routine else 1 << 60)


def graph_of(m, k, n, turned, dtype, batch=()) -> Graph:
    """`a[..., m, k] @ b[..., k, n]`, either with its last two axes swapped."""
    shapes = ((k, m) if turned[0] else (m, k)), ((n, k) if turned[1] else (k, n))
    a, b = (input_node(spec((*batch, *s), dtype)) for s in shapes)
    first = len(batch)
    axes = (first + (not turned[0]),), (first + turned[1],)
    y = DotGeneral(*axes, tuple(range(first)), tuple(range(first)))(a, b)
    return Graph([a, b], [y])


def draw(graph, sizes=None, seed=0):
    r = np.random.default_rng(seed)
    types = [x.type.bind(sizes or {}) for x in graph.inputs]
    return [r.normal(size=t.shape).astype(t.dtype.dtype) for t in types]


def expected(arrays, turned):
    """The product in float64, and how far off it the sum of so many rounded products may be."""
    a, b = (np.swapaxes(x, -1, -2) if t else x for x, t in zip(arrays, turned, strict=True))
    eps = np.finfo(a.dtype).eps
    a, b = a.astype(np.float64), b.astype(np.float64)
    return a @ b, a.shape[-1] * eps * (abs(a) @ abs(b))


@pytest.mark.slow
@pytest.mark.parametrize("turned", LAYOUTS, ids=str)
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.sample(1)
def test_products_of_many_sizes(monkeypatch, turned, dtype):
    """Right, inside of their memory, and to the bit what loops give."""
    for m, k, n in SIZES:
        graph = graph_of(m, k, n, turned, dtype)
        arrays = draw(graph)
        found = []
        for routine in (True, False):
            choose(monkeypatch, routine)
            program = GuardedProgram(graph)
            found.append(program(arrays)[0])
            program.check_guards()
        y, bound = expected(arrays, turned)
        assert (abs(found[0] - y) <= bound).all(), (m, k, n)
        np.testing.assert_array_equal(found[0], found[1], err_msg=str((m, k, n)))


@pytest.mark.parametrize("turned", LAYOUTS, ids=str)
@pytest.mark.parametrize("sizes", [(0, 3, 4), (3, 0, 70), (3, 4, 0), (0, 0, 0), (40, 0, 40)])
def test_empty_products(monkeypatch, turned, sizes):
    """The sum of no products is zero, and not minus zero."""
    choose(monkeypatch, routine=True)
    names = dict(zip("MKN", sizes, strict=True))
    for m, k, n in (sizes, tuple(map(Dim, "MKN"))):
        graph = graph_of(m, k, n, turned, float32)
        (y,) = Executable(graph)(draw(graph, names))
        assert y.shape == (sizes[0], sizes[2])
        assert (y == 0).all()
        assert not np.signbit(y).any()


@pytest.mark.parametrize("turned", LAYOUTS, ids=str)
@pytest.mark.parametrize("named", ["M", "K", "N", "MKN"])
@pytest.mark.sample(4)
def test_named_sizes(turned, named):
    """The bits do not tell whether sizes were known; both ways are taken in the order that pays."""
    for sizes in [(3, 17, 9), (33, 40, 50), (70, 300, 130)]:
        m, k, n = (Dim(name) if name in named else d for name, d in zip("MKN", sizes, strict=True))
        graph = graph_of(*sizes, turned, float32)
        arrays = draw(graph)
        (y,) = Executable(graph_of(m, k, n, turned, float32))(arrays)
        np.testing.assert_array_equal(y, Executable(graph)(arrays)[0], err_msg=str(sizes))


@pytest.mark.parametrize("turned", LAYOUTS, ids=str)
@pytest.mark.parametrize("batch", [(3,), (2, 2)], ids=str)
def test_stacks(monkeypatch, turned, batch):
    choose(monkeypatch, routine=True)
    graph = graph_of(19, 40, 53, turned, float32, batch)
    arrays = draw(graph)
    y, bound = expected(arrays, turned)
    program = GuardedProgram(graph)
    assert (abs(program(arrays)[0] - y) <= bound).all()
    program.check_guards()


def test_views_of_memory(monkeypatch):
    """Operands that are parts of larger arrays are read where they are."""
    choose(monkeypatch, routine=True)
    a, b = input_node(spec((90, 70), float32)), input_node(spec((80, 120), float32))
    left = Slice((7, 5), (40, 55), (1, 1))(a)  # [33, 50]
    right = Slice((20, 11), (70, 108), (1, 1))(b)  # [50, 97]
    every = Slice((0, 0), (80, 120), (1, 2))(b)  # [80, 60], of which neither stride is 1
    dot, turned = DotGeneral((1,), (0,)), DotGeneral((1,), (1,))
    outputs = [dot(left, right), dot(Permute((1, 0))(right), Permute((1, 0))(left)),
               turned(Slice((0, 0), (90, 60), (1, 1))(a), every)]  # fmt: skip
    graph = Graph([a, b], outputs)
    x, y = arrays = draw(graph)
    x, y = x.astype(np.float64), y.astype(np.float64)
    first = x[7:40, 5:55] @ y[20:70, 11:108]
    program = GuardedProgram(graph)
    wanted = first, first.T, x[:, :60] @ y[:, ::2].T
    for found, value in zip(program(arrays), wanted, strict=True):
        np.testing.assert_allclose(found, value, rtol=0, atol=2e-4)
    program.check_guards()


@pytest.mark.parametrize("turned", LAYOUTS, ids=str)
@pytest.mark.parametrize("named", [False, True], ids=["static", "symbolic"])
@pytest.mark.sample(2)
def test_threads(turned, named):
    for m, k, n in [(130, 300, 400), (333, 257, 129), (64, 512, 512), (3100, 200, 150)]:
        graph = graph_of(Dim("M") if named else m, k, n, turned, float32)
        arrays = draw(graph, {"M": m})
        found = []
        for threads in (1, 2, 3, 5):
            with rg.num_threads(threads):
                program = Executable(graph)
                found.append(program(arrays)[0])
        assert program.plan.threaded
        for y in found[1:]:
            np.testing.assert_array_equal(y, found[0])


@pytest.mark.parametrize("turned", LAYOUTS, ids=str)
def test_what_is_not_finite_stays_in_its_row_and_column(monkeypatch, turned):
    """Lanes and rows that do not count may hold anything; it must not be seen."""
    choose(monkeypatch, routine=True)
    for m, k, n in [(5, 7, 13), (20, 300, 50)]:
        graph = graph_of(m, k, n, turned, float32)
        a, b = arrays = draw(graph)
        (a.T if turned[0] else a)[m - 1, k - 1] = np.inf
        (b.T if turned[1] else b)[k - 1, n - 1] = np.nan
        (b.T if turned[1] else b)[0, 1] = -np.inf
        with np.errstate(invalid="ignore"):
            wanted, _ = expected(arrays, turned)
        (found,) = Executable(graph)(arrays)
        for test in (np.isnan, np.isposinf, np.isneginf):
            np.testing.assert_array_equal(test(found), test(wanted))


def test_gradients_of_a_large_product():
    r = np.random.default_rng(0)
    a, b, g = (r.normal(size=s).astype(np.float32) for s in ((70, 210), (210, 130), (70, 130)))
    found = rg.grad(lambda a, b: ((a @ b) * g).sum(), argnums=(0, 1))(a, b)
    wide = [x.astype(np.float64) for x in (a, b, g)]
    np.testing.assert_allclose(found[0].numpy(), wide[2] @ wide[1].T, rtol=0, atol=1e-3)
    np.testing.assert_allclose(found[1].numpy(), wide[0].T @ wide[2], rtol=0, atol=1e-3)


# -- machines -------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(("width", "registers"), [(16, 32), (8, 16), (4, 32), (4, 16), (2, 16)])
@pytest.mark.sample(1)
def test_other_machines(monkeypatch, width, registers):
    """Tiles of every shape; all of them give the same bits."""
    choose(monkeypatch, routine=True)
    here, made = compiler.Compiler(), compiler.Compiler()
    made.machine = Target(width, registers, here.machine.fma)
    for dtype, turned in itertools.product((float32, float64), LAYOUTS):
        for sizes in [(9, 17, 49), (19, 300, 101)]:
            graph = graph_of(*sizes, turned, dtype)
            arrays, found = draw(graph), []
            for own in (here, made):
                monkeypatch.setattr(compiler, "_ENGINE", own)
                found.append(Executable(graph)(arrays)[0])
            np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("name", [name for name in ROUTINES if name not in PACKS])
@pytest.mark.parametrize("fma", [True, False])
def test_without_fused_products(name, fma):
    """Whether products are rounded is the machine's choice, and nobody else's."""
    text = routine_text(Target(4, 16, fma), name)
    assert ("llvm.fma" in text) is fma
    assert ("fmul" in text) is not fma


def test_memory_of_threads_is_counted():
    graph = graph_of(256, 256, 256, (False, False), float32)
    program = Executable(graph)
    with rg.num_threads(2):
        two = program.predicted_peak
    with rg.num_threads(1):
        assert (
            two - program.predicted_peak == program.recipe.facts.scratch == TUNING.gemm_pack_bytes
        )


def test_small_products_take_no_memory():
    """They are done by loops, which read operands where they are."""
    program = Executable(graph_of(20, 20, 20, (False, False), float32))
    assert program.recipe.facts.scratch == 0
    assert program.plan.nanoseconds({}) < TUNING.parallel_grain_ns
