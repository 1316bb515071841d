"""Sizes that only a run knows: loops, ranges and positions of such a length, and what follows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.interop.onnx.suite import graph_of, onnx

h = onnx.helper
F64, I64, BOOL = 11, 7, 9
RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 3))


def info(name: str, kind: int, shape: Any) -> Any:
    return h.make_tensor_value_info(name, kind, shape)


def model(nodes: Any, inputs: Any, outputs: Any, **constants: Any) -> Any:
    weights = [onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    graph = h.make_graph(nodes, "g", inputs, outputs, weights)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def body(until: float | None = None) -> Any:
    """Row i of x is added to the state; the tangent of that is collected. With `until` the loop
    ends where the state's sum of squares is not below it."""
    nodes = [
        h.make_node("Gather", ["x", "i"], ["row"], axis=0),
        h.make_node("Add", ["s", "row"], ["sum"]),
        h.make_node("Tanh", ["sum"], ["part"]),
    ]
    if until is None:
        nodes.append(h.make_node("Identity", ["go"], ["again"]))
    else:
        nodes += [
            h.make_node("ReduceSumSquare", ["sum"], ["size"], keepdims=0),
            h.make_node("Constant", [], ["limit"], value_float=until),
            h.make_node("CastLike", ["limit", "size"], ["most"]),
            h.make_node("Less", ["size", "most"], ["again"]),
        ]
    given = [info("i", I64, []), info("go", BOOL, []), info("s", F64, [3])]
    found = [info("again", BOOL, []), info("sum", F64, [3]), info("part", F64, [3])]
    return h.make_graph(nodes, "body", given, found)


def summed(count: Any, inputs: Any, until: float | None = None) -> Any:
    """A model of a loop whose parts are squared and added up."""
    nodes = [
        *count,
        h.make_node("Loop", ["n", "", "start"], ["last", "parts"], body=body(until)),
        h.make_node("Mul", ["parts", "parts"], ["squares"]),
        h.make_node("ReduceSum", ["squares"], ["y"], keepdims=0),
    ]
    outputs = [info("last", F64, [3]), info("y", F64, [])]
    return model(nodes, [info("x", F64, ["N", 3]), *inputs], outputs, start=np.zeros(3))


def expected(x: Any, n: int, until: float = np.inf) -> tuple[Any, float]:
    state, total = np.zeros(3), 0.0
    for i in range(n):
        state = state + x[i]
        total += float((np.tanh(state) ** 2).sum())
        if not (state**2).sum() < until:
            break
    return state, total


def test_as_many_steps_as_a_size_with_a_name() -> None:
    count = [
        h.make_node("Shape", ["x"], ["shape"]),
        h.make_node("Constant", [], ["zero"], value_int=0),
        h.make_node("Gather", ["shape", "zero"], ["n"]),
    ]
    g = graph_of(summed(count, []), "m")
    for n in (0, 1, 5):
        last, y = g(X[:n])
        np.testing.assert_allclose(last.numpy(), expected(X, n)[0], rtol=1e-14)
        np.testing.assert_allclose(float(y), expected(X, n)[1], rtol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("until", [None, 1.5])
def test_as_many_steps_as_an_input_says(until: float | None) -> None:
    """Also where the condition ends the loop before."""
    g = graph_of(summed([], [info("n", I64, [])], until), "m")
    bound = np.inf if until is None else until
    compiled = rg.jit(g)
    for n in (-1, 0, 1, 4, 5):
        for run in (g, compiled):
            last, y = run(X, n)
            np.testing.assert_allclose(last.numpy(), expected(X, n, bound)[0], rtol=1e-14)
            np.testing.assert_allclose(float(y), expected(X, n, bound)[1], rtol=1e-14)
    with rg.backend("reference"):
        rg.testing.check_grads(lambda x: g(x, 4)[1], (X,), order=2)


def test_results_of_such_a_size_are_refused_by_name() -> None:
    nodes = [h.make_node("Loop", ["n", "", "start"], ["last", "parts"], body=body(), name="steps")]
    inputs = [info("x", F64, ["N", 3]), info("n", I64, [])]
    m = model(nodes, inputs, [info("parts", F64, [None, 3])], start=np.zeros(3))
    with pytest.raises(rg.TraceError, match=r"'steps' needs the number of steps.*shape of parts"):
        graph_of(m, "m")
    assert graph_of(m, "m", {"n": np.array(2)})(X).shape == (2, 3)


def test_ranges_and_positions() -> None:
    """The ranges are of one length, given twice; elements that are kept go on to a sum."""
    nodes = [
        h.make_node("Constant", [], ["zero"], value_int=0),
        h.make_node("Constant", [], ["one"], value_int=1),
        h.make_node("Constant", [], ["two"], value_int=2),
        h.make_node("Range", ["zero", "n", "one"], ["a"]),
        h.make_node("Range", ["zero", "n", "one"], ["b"]),
        h.make_node("Range", ["one", "n", "two"], ["c"]),
        h.make_node("Mul", ["a", "b"], ["squares"]),
        h.make_node("ReduceSum", ["squares"], ["y"], keepdims=0),
        h.make_node("ReduceSum", ["c"], ["odd"], keepdims=0),
        h.make_node("NonZero", ["v"], ["places"]),
        h.make_node("ReduceSum", ["places"], ["at"], keepdims=0),
        h.make_node("Compress", ["x", "kept"], ["rows"], axis=0),
        h.make_node("ReduceSumSquare", ["rows"], ["size"], keepdims=0),
    ]
    inputs = [
        info("n", I64, []), info("v", I64, ["M", 2]), info("x", F64, ["N", 3]),
        info("kept", BOOL, ["N"]),
    ]  # fmt: skip
    outputs = [info("y", I64, []), info("odd", I64, []), info("at", I64, [])]
    g = graph_of(model(nodes, inputs, [*outputs, info("size", F64, [])]), "m")
    for n in (-2, 0, 1, 6):
        v, kept = RNG.integers(0, 2, (4, 2)), RNG.integers(0, 2, 5) > 0
        y, odd, at, size = g(n, v, X, kept)
        assert int(y) == sum(k * k for k in range(n))
        assert int(odd) == sum(range(1, n, 2))
        assert int(at) == np.sum(np.nonzero(v))
        np.testing.assert_allclose(float(size), (X[kept] ** 2).sum(), rtol=1e-14)


def sequence_model(position: bool = False) -> Any:
    """A loop that appends two rows a step to a list, which is stacked, and asked for its last."""
    inner = h.make_graph(
        [
            h.make_node("Gather", ["x", "i"], ["row"], axis=0),
            h.make_node("SequenceInsert", ["list", "row", *(["i"] if position else [])], ["more"]),
            h.make_node("Neg", ["row"], ["minus"]),
            h.make_node("SequenceInsert", ["more", "minus"], ["most"]),
            h.make_node("Identity", ["go"], ["again"]),
        ],
        "body", [info("i", I64, []), info("go", BOOL, []), h.make_empty_tensor_value_info("list")],
        [info("again", BOOL, []), h.make_empty_tensor_value_info("most")],
    )  # fmt: skip
    nodes = [
        h.make_node("Shape", ["x"], ["shape"]),
        h.make_node("Constant", [], ["zero"], value_int=0),
        h.make_node("Constant", [], ["end"], value_int=-1),
        h.make_node("Gather", ["shape", "zero"], ["n"]),
        h.make_node("SequenceEmpty", [], ["none"], dtype=F64),
        h.make_node("Loop", ["n", "", "none"], ["all"], body=inner),
        h.make_node("ConcatFromSequence", ["all"], ["stacked"], axis=-1, new_axis=1),
        h.make_node("ConcatFromSequence", ["all"], ["joined"], axis=0),
        h.make_node("SequenceAt", ["all", "end"], ["last"]),
        h.make_node("SequenceLength", ["all"], ["count"]),
    ]
    names = ("stacked", "joined", "last", "count")
    outputs = [h.make_empty_tensor_value_info(n) for n in names]
    return model(nodes, [info("x", F64, ["N", 3])], outputs)


def test_lists_that_a_loop_appends_to() -> None:
    g = graph_of(sequence_model(), "m")
    for n in (1, 5):
        rows = [s * row for row in X[:n] for s in (1, -1)]
        stacked, joined, last, count = g(X[:n])
        assert (stacked.numpy() == np.stack(rows, -1)).all()
        assert (joined.numpy() == np.concatenate(rows)).all()
        assert (last.numpy() == rows[-1]).all()
        assert int(count) == 2 * n
    with pytest.raises(rg.TraceError, match="body reads a sequence"):
        graph_of(sequence_model(position=True), "m")


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2])
def test_gradients_of_while_loops_are_read_again(order: int, tmp_path: Any) -> None:
    """Written they are loops that collect, and go back through, as many steps as there were."""

    def f(x: Any) -> Any:
        grown = rg.while_loop(lambda c: (c**2).sum() < 90.0, lambda c: c * 1.5 + rg.sin(c), x)
        return (grown**2).sum()

    slope = rg.grad(f) if order == 1 else rg.grad(lambda x: (rg.grad(f)(x) ** 2).sum())
    g = rg.trace(slope, rg.spec((3,), rg.float64))
    g.to_onnx(tmp_path / "g.onnx")
    read = rg.load_onnx(tmp_path / "g.onnx")
    for x in ([0.1, 0.2, 0.3], [9.0, 9.0, 9.0], [4.0, 5.0, 6.0]):
        assert (read(np.array(x)).numpy() == g(np.array(x)).numpy()).all()


def test_many_such_sizes_are_refused() -> None:
    nodes: list[Any] = [
        h.make_node("Constant", [], ["zero"], value_int=0),
        h.make_node("Constant", [], ["one"], value_int=1),
        h.make_node("Identity", ["n"], ["n0"]),
    ]
    for k in range(40):
        nodes += [
            h.make_node("Add", [f"n{k}", "one"], [f"n{k + 1}"]),
            h.make_node("Range", ["zero", f"n{k + 1}", "one"], [f"r{k}"]),
            h.make_node("ReduceSum", [f"r{k}"], [f"s{k}"], keepdims=0),
        ]
    outputs = [info(f"s{k}", I64, []) for k in range(40)]
    with pytest.raises(rg.FormatError, match="sizes that only a run knows"):
        graph_of(model(nodes, [info("n", I64, [])], outputs), "m")
