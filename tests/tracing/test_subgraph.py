"""Functions of the user's as graphs inside of operations."""

import numpy as np
import pytest

import retrograd as rg
from retrograd import pytree
from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import TensorType, float32, float64
from retrograd.runtime.executors.reference import ReferenceProgram
from retrograd.tracing.subgraph import (
    ArgumentNodes,
    TracedSubgraph,
    graph_of,
    same_structure,
    together,
)

TWO = TensorType(float32, (2,))


def types(*trees):
    return [pytree.flatten(tree) for tree in trees]


def traced(f, *trees):
    """The subgraph, its outputs, and what it captured."""
    sub = TracedSubgraph(f, types(*trees), "scan")
    leaves, _ = pytree.flatten(sub.value)
    outputs = sub.outputs(leaves, [None] * len(leaves))
    return sub, outputs, sub.captured(outputs)


def test_a_closed_graph_has_inputs_for_what_was_captured():
    w = rg.tensor([2.0, 3.0], requires_grad=True)
    outside = rg.exp(w)
    around = [w.node, outside.node]

    def step(x, more):
        return {"y": x * w + outside, "k": more[0] * 2}

    sub, outputs, captured = traced(step, TWO, [TWO])
    assert sub.name == "step"
    assert [x.name for x in sub.inputs] == ["x", "more[0]"]
    assert captured == together([*reversed(around), w.node])
    graph = graph_of(sub.inputs, outputs, captured, sub.name)
    assert len(graph.inputs) == 4
    values = [rg.Tensor(n).numpy() for n in captured]
    x = np.array([1, -1], np.float32)
    found = ReferenceProgram(graph)([*values, x, 3 * x])
    names = list(sub.value)
    np.testing.assert_allclose(found[sorted(names).index("y")], x * [2, 3] + np.exp([2, 3]), 1e-6)
    np.testing.assert_array_equal(found[sorted(names).index("k")], 6 * x)


def test_numbers_that_a_function_returns_take_the_dtype_given():
    sub = TracedSubgraph(lambda x: (x, 1), types(TWO), "cond")
    outputs = sub.outputs(pytree.flatten(sub.value)[0], [None, float64])
    assert [y.dtype for y in outputs] == [float32, float64]
    with pytest.raises(DTypeError, match="cond: the function returned 'no', where tensors"):
        sub.outputs(["no"], [None])


@pytest.mark.parametrize(
    ("f", "words"),
    [(3, "takes a function, not 3"), (lambda: 1, r"calls the function with 1 arguments")],
)
def test_what_cannot_be_called_with_these_arguments(f, words):
    with pytest.raises(rg.ArgumentError, match=f"scan {words}"):
        TracedSubgraph(f, types(TWO), "scan")


def test_leaves_know_their_paths_and_which_are_numbers():
    x = ArgumentNodes({"a": 1, "b": [rg.ones(2), np.float64(2)]}, "scan")
    assert x.weak == [True, False, True]
    assert x.label(1, "carry") == "carry['b'][0]"
    assert x.label(1, "") == "its leaf ['b'][0]"
    assert ArgumentNodes(1.0, "scan").label(0, "") == "it"
    x.cast({0: float64, 1: float64})
    assert [n.dtype for n in x.nodes] == [float64, float64, float64]


def test_structures_that_differ_name_the_leaf():
    def form(tree):
        return pytree.flatten(tree)[1]

    same_structure("scan", "the carry", form([1, 2]), form([3, 4]))
    with pytest.raises(ShapeError, match=r"there is \['c'\], .* no \['b'\].*\.py:\d+"):
        same_structure("scan", "the carry", form({"a": 1, "c": 2}), form({"a": 1, "b": 2}))
    with pytest.raises(ShapeError, match=r"scan: the carry has the structure"):
        same_structure("scan", "the carry", form(1), form([]))
