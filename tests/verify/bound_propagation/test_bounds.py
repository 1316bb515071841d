"""Bounds hold: no program gives what is not within them, whatever it is asked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import ir
from retrograd.backend_registry import compile_graph
from retrograd.errors import ArgumentError, DTypeError, OptionError, ShapeError
from retrograd.verify.bound_propagation.bounds import METHODS
from retrograd.verify.bound_propagation.interval import Interval
from retrograd.verify.bound_propagation.propagation import RULES
from retrograd.verify.records import RECORDS
from tests.random_graphs import random_arrays, random_graph
from tests.verify.bound_propagation.holding import (
    WIDTHS,
    climbed,
    graph_of,
    points_of,
    region_around,
    violation,
)

Box, ball, bounds = rg.verify.Box, rg.verify.ball, rg.verify.bounds
NAMES = [name for name in RECORDS if name != "input"]
BRIEF = ("mul", "pow", "sin", "reduce_sum", "gather", "argmax", "dot_general", "cond")


def attacked(
    name: str, backend: str, draws: int, seed: int = 0, most: int = 10**6
) -> tuple[int, str]:
    """All samples of a record, with regions around their inputs."""
    count = 0
    for i, sample in enumerate(RECORDS[name].samples()):
        if i == most:
            break
        nodes = sample.nodes()
        graph = graph_of(sample.op(*nodes), nodes)
        program = compile_graph(graph, backend)
        for k, width in enumerate(WIDTHS):
            rng = np.random.default_rng([seed, i, k])
            region = region_around(rng, name, sample.inputs, width)
            seen, wrong = violation(graph, program, region, points_of(rng, region, draws))
            count += seen
            if wrong:
                return count, wrong
    return count, ""


@pytest.mark.parametrize("name", BRIEF)
def test_no_result_of_an_op_is_outside(name):
    count, wrong = attacked(name, "reference", draws=1, most=3)
    assert not wrong, wrong
    assert count


@pytest.mark.slow
def test_no_result_of_any_op_is_outside():
    """The same of every op, on the reference."""
    wrong = {n: attacked(n, "reference", draws=1, seed=1, most=3) for n in NAMES}
    assert not {n: w for n, (_, w) in wrong.items() if w}
    assert sum(count for count, _ in wrong.values()) > 10_000


@pytest.mark.exhaustive
@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("name", NAMES)
def test_no_result_of_all_samples_is_outside(name, backend):
    """The campaign: every sample of every op in each dtype, regions of four widths."""
    for seed in range(3):
        _, wrong = attacked(name, backend, draws=6, seed=seed)
        assert not wrong, wrong


def attacked_graph(seed: int, backend: str, draws: int) -> str:
    """A random program with NaN, infinities and zeros among its inputs."""
    graph = random_graph(seed, symbolic=False)
    arrays = random_arrays(graph, seed)
    program = compile_graph(graph, backend)
    for k, width in enumerate(WIDTHS):
        rng = np.random.default_rng([seed, k])
        region = region_around(rng, "", arrays, width)
        _, wrong = violation(
            rg.Graph(graph.inputs, graph.outputs), program, region, points_of(rng, region, draws)
        )
        if wrong:
            return wrong
    return ""


@pytest.mark.parametrize("seed", range(3))
def test_no_result_of_a_random_program_is_outside(seed):
    assert not (wrong := attacked_graph(seed, "reference", 1)), wrong


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(2000))
def test_no_result_of_random_programs_is_outside(seed):
    for backend in ("reference", "llvm"):
        assert not (wrong := attacked_graph(1000 + seed, backend, 6)), wrong


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_no_result_of_more_random_programs_is_outside(seed):
    assert not (wrong := attacked_graph(100 + seed, "reference", 3)), wrong


def network(x: Any) -> Any:
    """Smooth and not, deep enough for a search to have something to find."""
    w = rg.tensor(np.sin(np.arange(15.0, dtype=np.float32)).reshape(5, 3))
    h = rg.tanh(x @ w) + rg.relu(x[..., :3] - 0.2)
    return (rg.softmax(h) * rg.exp(-h * h)).sum() + rg.var(h)


@pytest.mark.parametrize("up", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_search_by_gradients_finds_nothing_outside(up):
    """The extremum of a function in a box is looked for with its own gradient."""
    rng = np.random.default_rng(5)
    with rg.backend("reference"):
        f, slope = network, rg.grad(network)
        for width in (0.01, 0.5):
            box = ball(rng.normal(size=(5,)).astype(np.float32), width)
            found, slopes = bounds(f, box), bounds(slope, box)
            start = rng.uniform(box.lower, box.upper).astype(np.float32)

            def of(x: Any) -> Any:
                return np.asarray(slope(rg.tensor(x)))

            for x in climbed(of, box.lower, box.upper, start, 4, up):
                assert x in box
                y, g = f(rg.tensor(x)).item(), of(x)
                assert found.lower <= y <= found.upper
                assert (slopes.lower <= g).all()
                assert (g <= slopes.upper).all()


def test_a_wrong_rule_is_caught(monkeypatch):
    """A sine taken for monotone, and a sum whose rounding is forgotten."""
    right = RULES["sin"]
    monkeypatch.setitem(
        RULES, "sin", lambda node, x: Interval(np.sin(x.lower), np.sin(x.upper), x.nan)
    )
    assert attacked("sin", "reference", draws=3)[1]
    monkeypatch.setitem(RULES, "sin", right)
    monkeypatch.setitem(
        RULES,
        "reduce_sum",
        lambda node, x: Interval(x.lower.sum(node.prim.axes), x.upper.sum(node.prim.axes), x.nan),
    )
    x = np.full(7, 0.1, np.float32)
    low, high = bounds(rg.sum, x)
    assert not low <= np.sum(x) <= high


# -- the interface --------------------------------------------------------------------------------


def test_bounds_have_the_structure_of_the_result():
    def f(model: Any, x: Any) -> Any:
        return {"y": model["w"] * x, "n": (x.sum(), 3)}

    low, high = bounds(f, {"w": np.float32(2)}, Box([0.0, 1.0], [1.0, 1.0]))
    assert low["y"].tolist() == pytest.approx([0, 2])
    assert high["y"].tolist() == pytest.approx([2, 2])
    assert low["n"][1] == high["n"][1] == 3
    assert low["n"][0] == pytest.approx(1)
    assert low["y"].dtype == np.float64


def test_modules_and_graphs_and_gradients():
    with rg.backend("reference"):
        model = rg.nn.Linear(3, 2)
        box = ball(np.zeros((1, 3), np.float32), 0.1)
        low, high = bounds(model, box)
        y = np.asarray(model(rg.zeros((1, 3))))
        assert (low <= y).all()
        assert (y <= high).all()
        assert (high - low < 1).all()
        graph = rg.trace(lambda model, x: model(x), model, rg.zeros((1, 3)))
        again = bounds(graph, model, box)
        assert np.array_equal(again.lower, low)
        assert np.array_equal(again.upper, high)
        slopes = bounds(rg.grad(lambda x: (x**2).sum()), Box([1.0], [2.0]))
        assert slopes.lower == pytest.approx(2)
        assert slopes.upper == pytest.approx(4)


def test_named_sizes_are_those_of_the_regions():
    n = rg.Dim("N")
    graph = rg.trace(lambda x: x.sum(), rg.spec((n,)))
    low, high = bounds(graph, Box([1.0, 2.0, 3.0], [2.0, 2.0, 4.0]))
    assert low == pytest.approx(6)
    assert high == pytest.approx(8)


def test_the_same_node_is_one_value():
    box = Box([-1.0, 2.0], [3.0, 4.0])
    for f, low, high in (
        (lambda x: x - x, [0, 0], [0, 0]),
        (lambda x: x * x, [0, 4], [9, 16]),
        (lambda x: x == x, [1, 1], [1, 1]),
    ):
        found = bounds(f, box)
        assert found.lower.tolist() == pytest.approx(low)
        assert found.upper.tolist() == pytest.approx(high)
    found = bounds(lambda x: x / x, Box([2.0], [4.0]))
    assert found.lower == pytest.approx(1)
    assert found.upper == pytest.approx(1)


def test_where_a_value_may_be_nan_there_are_no_bounds():
    low, high = bounds(rg.sqrt, Box([-1.0, 1.0], [4.0, 4.0]))
    assert low.tolist() == [-math.inf, pytest.approx(1)]
    assert high.tolist() == [math.inf, pytest.approx(2)]


def test_infinite_regions():
    low, high = bounds(rg.relu, Box([-math.inf], [math.inf]))
    assert (low, high) == (0, math.inf)
    low, high = bounds(rg.sigmoid, Box([-math.inf], [math.inf]))
    assert low == 0
    assert high == pytest.approx(1, rel=1e-5)


def test_what_is_empty():
    low, high = bounds(lambda x: (x * 2, x.sum()), Box(np.zeros((0, 3)), np.ones((0, 3))))
    assert low[0].shape == high[0].shape == (0, 3)
    assert low[1] == high[1] == 0


def test_what_is_wrong_is_said():
    box = Box([0.0], [1.0])
    with pytest.raises(OptionError, match=r"did you mean|those that there are"):
        bounds(rg.sin, box, method="ipb")
    with pytest.raises(ArgumentError, match="give a function"):
        bounds(3, box)
    graph = rg.trace(rg.sin, rg.spec((2,)))
    with pytest.raises(ShapeError):
        bounds(graph, box)
    with pytest.raises(DTypeError):
        bounds(graph, Box(np.zeros(2), np.ones(2)))
    with pytest.raises(ShapeError):
        bounds(ir.Graph(graph.inputs, graph.outputs), box, box)
    assert "ibp" in METHODS
