"""Models of one node, and what ONNX Runtime says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.interop.onnx.suite import graph_of, onnx

Described = tuple[str, int, Sequence[Any]]
DOMAINS = {"": 21, "ai.onnx.ml": 3, "ai.onnx.preview.training": 1}


def one_node(
    operator: str,
    inputs: Sequence[Described],
    outputs: int = 1,
    domain: str = "",
    **attributes: Any,
) -> Any:
    h = onnx.helper
    names = [f"y{i}" for i in range(outputs)]
    node = h.make_node(operator, [x[0] for x in inputs], names, domain=domain, **attributes)
    graph = h.make_graph(
        [node], "g", [h.make_tensor_value_info(*x) for x in inputs],
        [h.make_empty_tensor_value_info(y) for y in names],
    )  # fmt: skip
    opsets = [h.make_opsetid(*pair) for pair in DOMAINS.items()]
    return h.make_model(graph, opset_imports=opsets, ir_version=10)


def agrees_with_runtime(model: Any, *arrays: Any, rtol: float = 1e-5) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [x.name for x in session.get_inputs()]
    expected = session.run(None, dict(zip(names, arrays, strict=True)))
    found = graph_of(model, "m")(*arrays)
    found = found if isinstance(found, tuple) else (found,)
    for a, b in zip(found, expected, strict=True):
        assert a.numpy().dtype == b.dtype
        np.testing.assert_allclose(a.numpy(), b, rtol=rtol, atol=1e-6)
