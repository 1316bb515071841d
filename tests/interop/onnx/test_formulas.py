"""Formulas that are read back as the op they were written for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.interop.onnx import graph_of
from retrograd.onnx import to_bytes
from tests.interop.onnx.suite import onnx


def written(f: Any, *specs: Any) -> Any:
    return onnx.load_from_string(to_bytes(rg.trace(f, *specs), {}))


def ops(model: Any) -> list[str]:
    return [n.op for n in graph_of(model, "m").nodes if n.op not in ("input", "constant")]


@pytest.mark.parametrize("dtype", [rg.float32, rg.float64, rg.float16, rg.bfloat16])
def test_the_op_is_back(dtype: Any) -> None:
    specs = rg.spec((3,), dtype), rg.spec((3,), dtype)
    assert ops(written(lambda x, y: rg.log1p(rg.hypot(x, y)), *specs)) == ["hypot", "log1p"]
    assert ops(written(lambda x, y: rg.expm1(x) + rg.exp2(y), *specs)) == ["expm1", "exp2", "add"]


def test_in_the_body_of_a_loop_too() -> None:
    model = written(lambda x: rg.scan(lambda c, v: (rg.log1p(c * v), c), 1.0, x)[1], rg.spec((4,)))
    (scan,) = [n for n in graph_of(model, "m").nodes if n.op == "scan"]
    assert "log1p" in {n.op for n in scan.attrs["body"].nodes}


def test_what_the_text_of_a_node_says_is_not_believed() -> None:
    """Another constant, operator, wire, or another use of what is within: the nodes count."""
    x = np.array([0.5, 2], np.float32)
    model = written(lambda x: rg.log2(x), rg.spec((2,)))
    assert ops(model) == ["log2"]
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    (factor,) = changed.graph.initializer
    factor.CopyFrom(onnx.numpy_helper.from_array(np.float32(2), factor.name))
    assert "log2" not in ops(changed)
    np.testing.assert_allclose(graph_of(changed, "m")(x).numpy(), 2 * np.log(x), rtol=1e-6)
    changed.CopyFrom(model)
    changed.graph.node[0].op_type = "Exp"
    assert "log2" not in ops(changed)
    changed.CopyFrom(model)
    changed.graph.node[0].doc_string = "log10"
    assert "log2" not in ops(changed)
    changed.CopyFrom(model)
    changed.graph.output[0].name = changed.graph.node[0].output[0]
    assert ops(changed) == ["log"]
    changed.CopyFrom(model)
    changed.graph.node[1].input[0] = changed.graph.input[0].name
    assert "log2" not in ops(changed)


def test_no_file_has_the_domain_of_ops() -> None:
    model = written(lambda x: -x, rg.spec((2,)))
    model.graph.node[0].op_type = "log2"
    model.graph.node[0].domain = "retrograd"
    with pytest.raises(rg.BackendError, match="retrograd:log2"):
        graph_of(model, "m")
