"""What a graph tells of its compiled program."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.functions.random.continuous import normal
from retrograd.ir import float32
from retrograd.ops.identity import StopGradient
from retrograd.ops.leaf import input_node
from retrograd.runtime.executable import Executable

ROWS = rg.Dim("N")


def layer(x, w):
    return rg.softmax(rg.relu(x @ w) @ w.T)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rows", [4, 3000])
def test_compiled_bytes_are_those_of_a_call(rows, threads):
    with rg.num_threads(threads):
        graph = rg.trace(layer, rg.spec((rows, 64), rg.float32), rg.spec((64, 96), rg.float32))
        program = Executable(graph, simplify=True)
        assert graph.stats().compiled_bytes == program.predicted_peak
        assert "compiled peak" in str(graph.stats())


def test_compiled_bytes_need_sizes():
    graph = rg.trace(layer, rg.spec((ROWS, 64), rg.float32), rg.spec((64, 96), rg.float32))
    assert graph.stats().compiled_bytes is None
    assert "compiled peak" not in str(graph.stats())
    program = Executable(graph, simplify=True)
    assert graph.stats({"N": 20}).compiled_bytes == program.peak_bytes({"N": 20})


def test_explain_tells_kernels_and_times():
    graph = rg.trace(layer, rg.spec((3000, 64), rg.float32), rg.spec((64, 96), rg.float32))
    text = graph.explain()
    assert "row by row: " in text
    assert "stored: an output" in text
    assert "took" not in text
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s).astype("f") for s in ((3000, 64), (64, 96))]
    lines = graph.explain(*arrays).splitlines()
    assert sum("took" in line for line in lines) == int(lines[0].split()[0])


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
    assert "stop_gradient(" in graph.explain(stage="inference")
    assert "stop_gradient(" not in graph.explain(stage="lowered")


def test_an_unknown_stage_is_an_error_that_lists_them_in_order():
    graph = rg.trace(rg.sin, rg.spec((3,), rg.float32))
    with pytest.raises(rg.OptionError, match="no stage 'fused'.*" + ", ".join(STAGES)):
        graph.explain(stage="fused")
    with pytest.raises(rg.OptionError, match="give no arguments"):
        graph.explain(np.ones(3, "f"), stage="llvm")
    assert "took" in graph.explain(np.ones(3, "f"), stage="kernels")
