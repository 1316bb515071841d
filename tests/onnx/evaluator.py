"""ONNX models run by ONNX's own evaluator, and what they are made of."""

import warnings

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

import retrograd as rg
from retrograd.interop.onnx import graph_of
from retrograd.onnx import to_bytes


def run(graph, arrays, weights=None):
    model = onnx.load_from_string(to_bytes(graph, weights or {}))
    names = [x.name for x in model.graph.input]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of the evaluator's own arithmetic
        return ReferenceEvaluator(model).run(None, dict(zip(names, arrays, strict=False)))


def agrees(f, *arrays, sizes=None):
    """The kinds of operators of the model of a function, which gives what the function does, and
    is read back to a graph that gives the same bits."""
    shapes = sizes or [a.shape for a in arrays]
    specs = [rg.spec(s, a.dtype.name) for s, a in zip(shapes, arrays, strict=True)]
    graph = rg.trace(f, *specs)
    found = run(graph, arrays)
    model = onnx.load_from_string(to_bytes(graph, {}))
    again = graph_of(model, "a model")
    with rg.backend("reference"):
        expected, back = graph(*arrays), again(*arrays)
    several = isinstance(expected, tuple)
    for a, b, c in zip(
        found, expected if several else (expected,), back if several else (back,), strict=True
    ):
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-5, atol=1e-6)
        assert np.asarray(a).dtype == b.numpy().dtype
        np.testing.assert_array_equal(c.numpy(), b.numpy())
        assert c.dtype is b.dtype
    return [n.op_type for n in model.graph.node]
