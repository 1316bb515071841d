"""The stages of compilation as text."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.functions.random.continuous import normal
from retrograd.ir import float32
from retrograd.ops.identity import StopGradient
from retrograd.ops.leaf import input_node

STAGES = ("traced", "complex", "random", "canonical", "inference", "lowered", "kernels", "llvm")


def test_explain_shows_every_stage():
    graph = rg.trace(
        lambda z: rg.linalg.solve(z, z @ rg.negative(-z)).real.sum(), rg.spec((3, 3), "complex64")
    )
    found = {stage: graph.explain(stage=stage) for stage in STAGES}
    assert found["traced"] == str(graph).rstrip()
    assert "c64[3, 3]" in found["traced"]
    assert "c64" not in found["complex"]
    assert found["traced"].count("neg(") == 2
    assert "neg(" not in found["canonical"]
    assert "# paired:solve" in found["lowered"]
    assert found["kernels"].count("\n") == graph.explain().count("\n")
    assert "define i64 @run(ptr %block" in found["llvm"]


def test_explain_writes_samples_out_and_drops_what_only_differentiation_reads():
    key = input_node(rg.spec((2,), "uint32"), "key")
    graph = rg.Graph([key], [StopGradient()(normal(key, (4,), float32))])
    assert "draw(" in graph.explain(stage="complex")
    assert "draw(" not in graph.explain(stage="random")
    assert "stop_gradient(" in graph.explain(stage="canonical")
    assert "stop_gradient(" not in graph.explain(stage="inference")


def test_an_unknown_stage_is_an_error_that_lists_them_in_order():
    graph = rg.trace(rg.sin, rg.spec((3,), rg.float32))
    with pytest.raises(rg.OptionError, match="no stage 'fused'.*" + ", ".join(STAGES)):
        graph.explain(stage="fused")
    with pytest.raises(rg.OptionError, match="give no arguments"):
        graph.explain(np.ones(3, "f"), stage="llvm")
    assert "took" in graph.explain(np.ones(3, "f"), stage="kernels")


def test_kernels_are_those_of_the_simplified_graph():
    graph = rg.trace(lambda x: rg.exp(rg.negative(-x)), rg.spec((3,), rg.float32))
    text = graph.explain(stage="kernels")
    assert "exp" in text
    assert "neg" not in text
