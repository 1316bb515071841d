"""Recorded graphs that differ in sizes alone are run by one program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.backend_registry import start_graph
from retrograd.eager.program_cache import PROGRAMS
from retrograd.ir import Dim, Graph, Node, float32, spec
from retrograd.ir.node import nested
from retrograd.ops import elementwise as el
from retrograd.ops.leaf import input_node
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import Slice, reshape
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.graph_family import FAMILIES, Generalization, Unlike, skeleton
from retrograd.tuning import TUNING
from tests.sampling import sampled

SIZES = (5, 8, 7, 33, 12, 2, 1, 3, 64)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    FAMILIES.clear()
    PROGRAMS.clear()
    yield
    FAMILIES.clear()


def graph_of(f: Callable[..., Any], *shapes: tuple[int, ...]) -> Graph:
    inputs = [input_node(spec(s, float32)) for s in shapes]
    outputs = f(*inputs)
    return Graph(inputs, [outputs] if isinstance(outputs, Node) else outputs)


def generalization(*graphs: Graph) -> Generalization:
    samples = [skeleton(g) for g in graphs]
    assert len({s.key for s in samples}) == 1
    return Generalization(graphs[-1], samples)


def flat(x: Node) -> Node:
    n, m = x.shape
    return el.tanh(reshape(x, (n * m,)))


def test_sizes_become_names_and_attributes_what_follows_from_them():
    found = generalization(*[graph_of(flat, shape) for shape in ((4, 5), (6, 3))])
    (y,) = found.graph.outputs
    assert str(y.type) == "f32[M*N]"
    for shape, fits in (((7, 9), True), ((4, 5), True), ((1, 9), False), ((0, 2), False)):
        assert found.fits(skeleton(graph_of(flat, shape)).numbers) is fits


def test_only_what_differs_gets_a_name():
    found = generalization(*[graph_of(flat, shape) for shape in ((4, 5), (6, 5))])
    assert str(found.graph.outputs[0].type) == "f32[5*N]"
    assert found.fits(skeleton(graph_of(flat, (9, 5))).numbers)
    assert not found.fits(skeleton(graph_of(flat, (9, 6))).numbers)


def test_the_rest_of_a_table_follows_from_what_is_taken():
    def gradient(n: int) -> rg.Graph:
        return rg.trace(rg.grad(lambda t, x: (t[:n] * x).sum()), rg.spec((99, 4)), rg.spec((n, 4)))

    found = generalization(gradient(4), gradient(7))
    assert found.graph.dim_names == ("N",)
    assert found.fits(skeleton(gradient(50)).numbers)


def test_a_guess_that_is_wrong_fits_nothing_else():
    def first(x: Node, n: int) -> Node:
        return Slice((0,), (n,), (1,))(x)

    graphs = [graph_of(lambda x, n=n: first(x, n), (m,)) for m, n in ((10, 4), (12, 6), (20, 5))]
    found = generalization(*graphs[:2])  # all but six
    assert not found.fits(skeleton(graphs[2]).numbers)
    with pytest.raises(Unlike):
        generalization(*graphs)


def test_other_operations_and_attributes_are_no_sizes():
    def total(axis: int) -> Graph:
        return graph_of(lambda x: ReduceSum((axis,))(x), (4, 6))

    assert skeleton(total(0)).key == skeleton(total(1)).key
    with pytest.raises(Unlike):
        generalization(total(0), total(1))
    keys = {skeleton(graph_of(f, (4, 6))).key for f in (el.exp, el.tanh, el.sin, lambda x: x * 2.0)}
    assert len(keys) == 4


def test_what_is_not_compared():
    named = graph_of(lambda x: flat(x), (Dim("N"), 3))  # type: ignore[arg-type]
    for graph in (named, graph_of(lambda x: x * 2.0, ())):
        with pytest.raises(Unlike):
            skeleton(graph)


def test_what_loops_repeat_has_names_too():
    def loop(n: int) -> Graph:
        return rg.trace(
            lambda x: rg.fori_loop(0, 3, lambda i, c: c * x + x.sum(), x), rg.spec((n, 3))
        )

    found = generalization(loop(4), loop(7))
    assert {str(d) for g in nested(found.graph) for x in g.nodes for d in x.shape} >= {"N", "3"}
    assert found.fits(skeleton(loop(9)).numbers)
    assert not found.fits(skeleton(loop(1)).numbers)
    (y,) = Executable(found.graph)([np.full((2, 3), 0.5, np.float32)])
    (expected,) = Executable(loop(2))([np.full((2, 3), 0.5, np.float32)])
    np.testing.assert_array_equal(y, expected)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: rg.tanh(x) * x + 0.5,
    "mean": lambda x: x.mean(0),
    "softmax": lambda x: rg.log_softmax(x, axis=0),
    "product": lambda x: x @ x.T,
    "flattened": lambda x: x.reshape(-1) * 2,
    "halves": lambda x: x[: x.shape[0] // 2].sum(0),
    "differences": lambda x: x[1:] - x[:-1],
    "with a constant": lambda x: rg.concat([x, rg.ones((3, 6))]),
    "sorted": lambda x: rg.sort(x, axis=0),
    "running": lambda x: rg.cumsum(x, axis=0),
    "masked": lambda x: rg.where(rg.arange(x.shape[0])[:, None] > 1, x, 0.0),
    "standardized": lambda x: (x - x.mean(0)) / (x.std(0) + 0.1),
    "convolved": lambda x: rg.nn.functional.conv1d(x[:, None], rg.ones((2, 1, 3)), padding=1),
    "looped": lambda x: rg.scan(lambda c, r: (c * 0.5 + r, c), rg.zeros(6), x)[0],
    "looped by product": lambda x: rg.scan(
        lambda c, r: (rg.tanh(c @ x.T @ x * 0.1 + r), c.sum()), rg.zeros(6), x
    )[0],
    "counted": lambda x: rg.fori_loop(0, 3, lambda i, c: rg.tanh(c) + x * 0.5, x),
    "chosen": lambda x: rg.cond(x.sum() > 0, lambda: rg.tanh(x).sum(0), lambda: x.mean(0)),
    "mapped": lambda x: rg.vmap(lambda r: rg.scan(lambda c, e: (c * 0.5 + e, c), 0.0, r)[0])(x),
    "transformed": lambda x: abs(rg.fft.fft(x, axis=0)),
    "logsumexp": lambda x: rg.logsumexp(x, axis=0),
    "part of a table": lambda x: rg.linspace(0, 1, 99)[: x.shape[0], None] * x,
}


@pytest.fixture(autouse=True)
def recorded(monkeypatch):
    """Operations are recorded, however often sizes change: graphs are what families are of."""
    monkeypatch.setattr(TUNING, "unknown_recordings", 10**6)
    monkeypatch.setattr(TUNING, "returned_runs", 0)


def results(f: Callable[[Any], Any], n: int) -> list[bytes]:
    """The value of a function of n rows, and its gradient."""
    given = np.random.default_rng(n).standard_normal((n, 6)).astype(np.float32)
    x: Any = rg.tensor(given, requires_grad=True)
    y = f(x)
    (y * y).sum().backward()
    slopes = rg.grad(lambda x: (f(x) ** 2).sum())(given)
    return [y.numpy().tobytes(), x.grad.numpy().tobytes(), slopes.numpy().tobytes()]


@pytest.mark.parametrize("tier", ["as it comes", "compiled", "interpreted"])
@pytest.mark.parametrize("name", sampled(FUNCTIONS, 5))
@pytest.mark.sample(4)
def test_the_bits_are_those_of_programs_for_the_very_sizes(name, tier, monkeypatch):
    if tier != "as it comes":
        monkeypatch.setattr(TUNING, "huge_runs", 0 if tier == "compiled" else 1)
        monkeypatch.setattr(TUNING, "interpreted_nodes", -1 if tier == "compiled" else 10**12)
    sizes = SIZES if tier != "compiled" else SIZES[:5]
    found = [results(FUNCTIONS[name], n) for n in sizes]
    FAMILIES.clear()
    PROGRAMS.clear()
    monkeypatch.setattr(TUNING, "naming_attempts", 0)
    assert found == [results(FUNCTIONS[name], n) for n in sizes]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is compiled from here on."""
    made: list[str] = []
    init = Executable.__init__

    def noted(self, graph, *args, **options):
        made.append(str(graph))
        init(self, graph, *args, **options)

    monkeypatch.setattr(Executable, "__init__", noted)
    return made


def test_a_loop_whose_sizes_change_compiles_a_few_programs(compiled):
    w: Any = rg.tensor(np.ones((6, 4), np.float32), requires_grad=True)
    optimizer = rg.optim.SGD([w], lr=0.01)

    def step(n: int) -> None:
        loss = (rg.tanh(rg.ones((n, 6)) @ w) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()

    for n in range(2, 40):
        step(n)
    compiled.clear()
    for n in range(40, 120):
        step(n)
    assert compiled == []


def test_loops_whose_sizes_change_compile_a_few_programs(compiled):
    def run(n: int) -> float:
        x = np.ones((n, 3), np.float32)
        grown = rg.while_loop(lambda c: c.sum() < 1000, lambda c: c * 1.5, rg.asarray(x))
        slope = rg.grad(lambda x: rg.scan(lambda c, r: (c + r * r, c), rg.zeros(3), x)[0].sum())
        return (grown.sum() + slope(x).sum()).item()

    for n in range(2, 30):
        run(n)
    compiled.clear()
    for n in range(30, 60):
        steps = int(np.ceil(np.log(1000 / (3 * n)) / np.log(1.5)))
        assert run(n) == pytest.approx(3 * n * 1.5**steps + 6 * n, rel=1e-5)
    assert compiled == []


def test_gradients_without_jit_compile_nothing_for_other_sizes(compiled):
    slope = rg.grad(lambda x: (rg.tanh(x) * rg.sin(x) + x**2).sum() / x.shape[0])
    for n in range(2, 60):
        slope(np.ones((n, 3))).numpy()
    compiled.clear()
    for n in range(60, 150):
        expected = (1 - np.tanh(1) ** 2) * np.sin(1) + np.tanh(1) * np.cos(1) + 2
        np.testing.assert_allclose(slope(np.ones((n, 3))).numpy(), expected / n)
    assert compiled == []


def test_one_program_serves_graphs_of_all_sizes():
    programs = [start_graph(graph_of(flat, (n, n + 1)), "llvm") for n in (4, 7, 9, 30, 2)]
    assert len({id(p) for p in programs[1:]}) == 1
    assert programs[0] is not programs[1]
    (y,) = programs[1]([np.ones((9, 10), np.float32)])
    assert y.tolist() == [np.tanh(np.float32(1))] * 90
    assert start_graph(graph_of(flat, (1, 2)), "llvm") is not programs[1]


def test_families_are_bounded(monkeypatch):
    monkeypatch.setattr(TUNING, "graph_families", 3)
    for k in range(1, 8):
        start_graph(graph_of(lambda x, k=k: x * float(k), (2,)), "llvm")
    assert len(FAMILIES) == 3


def test_threads_share_families():
    def run(n: int) -> Any:
        return rg.grad(lambda x: (rg.tanh(x) ** 2).sum())(np.full((n, 2), 0.5)).numpy()

    sizes = [2 + k % 13 for k in range(80)]
    with ThreadPoolExecutor(4) as pool:
        for n, found in zip(sizes, pool.map(run, sizes), strict=True):
            assert found.tolist() == run(n).tolist()
