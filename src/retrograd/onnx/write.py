"""A graph as an ONNX model."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np

from retrograd.errors import BackendError, RetrogradError
from retrograd.ir import Dim, Graph, Node
from retrograd.onnx import control, elementwise, index, reduce, shape  # noqa: F401 - the rules
from retrograd.onnx.writer import IR_VERSION, OPSET, RULES, OnnxWriter, Shared, values_of

__all__ = ["OPSET", "RULES", "offered", "to_bytes"]  # of the package

EMBEDDED = 3_000  # nodes of a graph whose model a page carries


def _package() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:  # also of a folder that is called onnx
        raise BackendError(
            "writing ONNX needs the package onnx: pip install 'retrograd[onnx]'"
        ) from None
    return onnx


def _named(shared: Shared, x: Node, other: str) -> str:
    """The name of an input or output: its own, unless it has none or several have the same."""
    name = x.name or other
    if name in shared.taken:
        return shared.name(name)
    shared.taken.add(name)
    return name


def to_bytes(graph: Graph, weights: Mapping[Node, Any]) -> bytes:
    """The ONNX model of a graph, checked by ONNX's own checker. Inputs that have a weight need not
    be given to it."""
    onnx = _package()
    made = _model(onnx, graph, weights)
    onnx.checker.check_model(made, full_check=True)
    return bytes(made.SerializeToString())


def offered(graph: Graph, weights: Mapping[Node, Any]) -> dict[str, str]:
    """What a page has to take away: the model in base64 under "model", or why there is none under
    "refused"."""
    if len(graph) > EMBEDDED:
        return {"refused": f"graphs of more than {EMBEDDED} nodes are not carried by a page"}
    try:
        return {"model": b64encode(to_bytes(graph, weights)).decode()}
    except RetrogradError as error:
        return {"refused": str(error)}


def _model(onnx: Any, graph: Graph, weights: Mapping[Node, Any]) -> Any:
    w = OnnxWriter(onnx)
    names = [_named(w.shared, x, f"input_{i}") for i, x in enumerate(graph.inputs)]
    ends = [_named(w.shared, y, f"output_{i}") for i, y in enumerate(graph.outputs)]
    infos = []
    for name, x in zip(names, graph.inputs, strict=True):
        w.where = x
        infos.append(w.info(name, x.dtype, x.shape))
        for axis, d in enumerate(x.shape):
            if isinstance(d, Dim) and str(d).isidentifier():
                w.shared.sizes.setdefault(str(d), (name, axis))
    w.where = None
    for end, value in zip(ends, values_of(w, graph, names), strict=True):
        w.nodes.append(onnx.helper.make_node("Identity", [value], [end], name=end))
    results = [w.info(n, y.dtype, y.shape) for n, y in zip(ends, graph.outputs, strict=True)]
    stored = [
        onnx.numpy_helper.from_array(np.array(weights[x], order="C"), name)
        for name, x in zip(names, graph.inputs, strict=True)
        if x in weights
    ]
    stored += w.shared.constants
    return onnx.helper.make_model(
        onnx.helper.make_graph(w.nodes, graph.name or "graph", infos, results, stored),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="retrograd",
    )
