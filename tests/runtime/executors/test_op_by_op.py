"""Interpreting gives the bits that compiling gives, so it never shows which of both was done."""

from __future__ import annotations

import math
import random
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Dim, Graph, Node, bfloat16, bool_, float32, float64, spec
from retrograd.ops import elementwise as el
from retrograd.ops.index import Gather
from retrograd.ops.leaf import input_node
from retrograd.passes import optimize
from retrograd.runtime.backend import Array
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors import op_kernels
from retrograd.runtime.executors.background_compiler import BackgroundCompiler
from retrograd.runtime.executors.op_by_op import OpByOpExecutor
from retrograd.runtime.paired_program import on_real
from retrograd.verify.records import RECORDS
from tests.functions.programs import random_program
from tests.runtime.agreement import sample
from tests.runtime.random_graphs import Builder
from tests.sampling import mostly_exhaustive, sampled


def bits(a: Array) -> Array:
    """What two arrays are compared by: every NaN is the same, and 0.0 is not -0.0."""
    a = np.ascontiguousarray(a)
    if a.dtype.kind == "c":
        a = np.stack([a.real, a.imag], -1)
    words = a.view(f"u{a.dtype.itemsize}").copy()
    words[a != a] = 1
    return words


def assert_same_bits(graph: Graph, arrays: Sequence[Array]) -> None:
    graph = optimize(graph)
    compiled = on_real(graph, Executable)(arrays)
    interpreted = on_real(graph, OpByOpExecutor)(arrays)
    for y, a, b in zip(graph.outputs, compiled, interpreted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(bits(a), bits(b), y.describe())


@pytest.mark.parametrize("name", [n for n in RECORDS if n != "input"])
@pytest.mark.sample(40)
def test_samples(name: str) -> None:
    assert_same_bits_of_samples(name)


def assert_same_bits_of_samples(name: str) -> None:
    inputs: list[Node] = []
    outputs: list[Node] = []
    arrays: list[Array] = []
    for one in sampled(RECORDS[name].samples(), 1, name):
        nodes = one.nodes()
        inputs += nodes
        outputs.append(one.op(*nodes))
        arrays += one.inputs
    assert_same_bits(Graph(inputs, outputs), arrays)


@pytest.mark.parametrize("name", [n for n, r in RECORDS.items() if r.symbolic])
@pytest.mark.sample(13)
def test_symbolic_sizes(name: str) -> None:
    for case in sampled(RECORDS[name].symbolic, 1, name):
        nodes = [input_node(t) for t in case.types]
        named = input_node(spec(tuple(Dim(n) for n in case.sizes[0]), bool_))
        graph = Graph([*nodes, named], [case.op(*nodes)])
        compiled, interpreted = (on_real(graph, p) for p in (Executable, OpByOpExecutor))
        for sizes in case.sizes:
            arrays = [case.draw(t.bind(sizes)) for t in [*case.types, named.type]]
            for a, b in zip(compiled(arrays), interpreted(arrays), strict=True):
                np.testing.assert_array_equal(bits(a), bits(b))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sample(4)
def test_random_graphs(seed: int) -> None:
    dtype = (float32, float64, bfloat16)[seed % 3]
    b = Builder(seed, dtype, symbolic=False)
    graph = b.graph(12)
    assert_same_bits(graph, b.arrays())


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.sample(4)
def test_random_programs_and_their_gradients(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def results() -> list[Array]:
        p = random_program(seed, np.float32)
        leaves = [rg.tensor(x, requires_grad=True) for x in p.inputs]
        loss = p.loss(*leaves)
        if loss.requires_grad:
            loss.backward()
        return [loss.numpy(), *[x.grad.numpy() for x in leaves if x.grad is not None]]

    def program(make):
        monkeypatch.setattr("retrograd.eager.program_cache.PROGRAMS", OrderedDict())
        monkeypatch.setattr("retrograd.eager.trace_cache.SITES", {})
        monkeypatch.setattr(
            "retrograd.eager.program_cache.start_graph", lambda graph, *_: make(optimize(graph))
        )
        return results()

    for a, b in zip(program(Executable), program(OpByOpExecutor), strict=True):
        np.testing.assert_array_equal(bits(a), bits(b))


@pytest.mark.parametrize("dtype", [float32, float64])
@pytest.mark.parametrize(
    "shape", [(1,), (3,), (17,), (1000,), (3, 130), (130, 3), (5, 6, 7), (40, 33, 2)]
)
@pytest.mark.sample(4)
def test_sums_of_many_sizes(shape: tuple[int, ...], dtype) -> None:
    x = input_node(spec(shape, dtype))
    axes = [tuple(a for a in range(len(shape)) if k >> a & 1) for k in range(1, 1 << len(shape))]
    y = el.tanh(x)
    outputs = [rg.ops.reduce.reduce_sum(z, a) for a in axes for z in (x, y * x)]
    outputs += [rg.ops.scan.CumSum(a)(y) for a in range(len(shape))]
    assert_same_bits(Graph([x], outputs), [sample(x.shape, dtype, 1)])


@pytest.mark.parametrize("dtype", [float32, float64])
@pytest.mark.parametrize(
    ("n", "k", "m"), [(1, 3, 1), (4, 4, 4), (8, 16, 3), (33, 50, 21), (1, 300, 1), (64, 64, 64)]
)
@pytest.mark.sample(4)
def test_products_of_many_sizes(n: int, k: int, m: int, dtype) -> None:
    a, b = input_node(spec((n, k), dtype)), input_node(spec((k, m), dtype))
    dot = rg.ops.matmul.DotGeneral((1,), (0,))
    y = dot(a, b)
    z = dot(el.tanh(a) * 0.5, b)
    assert_same_bits(
        Graph([a, b], [y, el.relu(z)]), [sample(a.shape, dtype, 1), sample(b.shape, dtype, 2)]
    )


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.sample(4)
def test_products_of_matrices_and_vectors_in_every_layout(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = (float32, float64)[seed % 2]
    k, n, m = (int(rng.choice([1, 2, 3, 5, 8, 16, 17, 33, 100])) for _ in range(3))
    shapes: list[tuple[int, ...]] = [(k,), (k,)]
    axes = [0, 0]
    for i, free in enumerate((n, m)):
        if rng.random() < 0.8:
            axes[i] = int(rng.integers(2))
            shapes[i] = (free, k) if axes[i] else (k, free)
    a, b = (input_node(spec(shape, dtype)) for shape in shapes)
    dot = rg.ops.matmul.DotGeneral((axes[0],), (axes[1],))
    arrays = [sample(x.shape, dtype, seed + i) for i, x in enumerate((a, b))]
    assert_same_bits(Graph([a, b], [dot(a, b)]), arrays)


# -- when it is done ------------------------------------------------------------------------------
SIZES = (1, 1, 2, 3, 5, 16, 17, 33)


def random_contraction(seed: int) -> tuple[list[Node], Node, list[Array]]:
    """Any number of axes, in any order, many of size 1, with any order of summation."""
    rng = np.random.default_rng(seed)
    counts = {"batch": rng.integers(3), "sum": rng.integers(4),
              "rows": rng.integers(3), "columns": rng.integers(3)}  # fmt: skip
    sizes = {(kind, i): int(rng.choice(SIZES)) for kind, n in counts.items() for i in range(n)}
    axes = [
        [x for x in rng.permutation(list(sizes), axis=0).tolist() if x[0] != without]
        for without in ("columns", "rows")
    ]
    places = [{(kind, int(i)): k for k, (kind, i) in enumerate(own)} for own in axes]

    def listed(kind: str, own: int) -> tuple[int, ...]:
        return tuple(places[own][kind, i] for i in range(counts[kind]))

    dot = rg.ops.matmul.DotGeneral(
        listed("sum", 0), listed("sum", 1), listed("batch", 0), listed("batch", 1)
    )
    dtype = [float32, float32, float64, rg.float16][seed % 4]
    shapes = [tuple(sizes[x] for x in place) for place in places]
    nodes = [input_node(spec(s, dtype)) for s in shapes]
    arrays = [rng.normal(size=s).astype(dtype.dtype) for s in shapes]
    return nodes, dot(*nodes), arrays


# For each level of code, the bounds within which all work is its own.
ALL, NONE = (math.inf, math.inf), (-1, -1)
LEVELS = {"narrow": (ALL, ALL), "light": (NONE, ALL), "full": (NONE, NONE)}


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of one level only."""
    monkeypatch.setattr(op_kernels, "_PROGRAMS", OrderedDict())
    monkeypatch.setattr(op_kernels, "LEVELS", LEVELS[request.param])
    monkeypatch.setattr(op_kernels, "BEHIND", BackgroundCompiler(used=False))


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sample(4, per="level")
def test_contractions_of_many_axes(seed: int) -> None:
    nodes, y, arrays = random_contraction(seed)
    if max(a.size for a in arrays) < 10**6 and y.type.size < 10**6:
        assert_same_bits(Graph(nodes, [y]), arrays)


@pytest.mark.slow
@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("name", mostly_exhaustive([n for n in RECORDS if n != "input"], 40))
def test_samples_on_every_level(name: str) -> None:
    assert_same_bits_of_samples(name)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.sample(4)
def test_convolution_and_pooling_with_gradients(seed: int) -> None:
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    rank, dtype = draw.choice([1, 2, 2, 3]), draw.choice([np.float32, np.float64, np.float16])
    groups = draw.choice([1, 1, 2, 3])
    given = groups * draw.choice([1, 2, 8]), groups * draw.choice([1, 4, 16])
    kernel, sizes = (tuple([draw.choice(c) for _ in range(rank)]) for c in ([1, 2, 3], [9, 10, 13]))
    options = {
        name: tuple([draw.choice(choices) for _ in range(rank)])
        for name, choices in (("stride", [1, 2]), ("padding", [0, 0, 1, 2]), ("dilation", [1, 2]))
    }
    x = rng.normal(size=(draw.choice([1, 2, 5]), given[0], *sizes)).astype(dtype)
    w = rng.normal(size=(given[1], given[0] // groups, *kernel)).astype(dtype)
    pool = (
        lambda y: rg.tanh(y),
        lambda y: rg.max_pool(y, 2),
        lambda y: rg.avg_pool(y, 3, stride=1, padding=1),
        lambda y: rg.max_pool(rg.tanh(y), 3, stride=2, padding=1),
    )[seed % 4]

    def f(x, w):
        y = pool(rg.conv(x, w, groups=groups, **options))
        return (rg.tanh(y) * y).sum()

    assert_same_bits(rg.trace(rg.value_and_grad(f, argnums=(0, 1)), x, w), [x, w])


def test_an_index_out_of_range_names_the_node() -> None:
    x, i = input_node(spec((3,), float32)), input_node(spec((2,), "int64"))
    program = OpByOpExecutor(Graph([x, i], [Gather(0)(x, i)]))
    with pytest.raises(rg.errors.IndexRangeError, match=r"index 7 on axis 0 of size 3.*gather"):
        program([np.ones(3, np.float32), np.array([0, 7])])


def test_results_are_fresh_and_writable() -> None:
    x = input_node(spec((2, 3), float32))
    a = np.ones((2, 3), np.float32)
    first, second = OpByOpExecutor(Graph([x], [x, x]))([a])
    first[:] = 5
    assert (a == 1).all()
    assert (second == 1).all()


def test_memory_of_what_is_done_is_let_go() -> None:
    x = input_node(spec((3,), float32))
    y = x
    for _ in range(5):
        y = y + 1
    program = OpByOpExecutor(Graph([x], [y]))
    steps = program.calls({}).steps
    assert sum(len(ends) for *_, ends in steps) >= 5  # each value goes with its last use
    assert program([np.zeros(3, np.float32)])[0].tolist() == [5, 5, 5]
